// Cosines and sines of many angles, and angles that come from fast Hadamard blocks, compiled once for each instruction
// set.
//
// A row of m angles a becomes a row of features: amplitude · [cos a_0 .. cos a_{p-1} | sin a_0 .. sin a_{p-1} | cos(a_p
// + b_0) ..], the first p = `paired` angles with both, the others with a phase b each.
//
// Structured angles: a = scale ∘ H S₃ H S₂ H S₁ x for each block, where H is the Hadamard matrix without its factor, in
// D log D additions, and S are diagonals of signs; x is padded with zeros to the D entries of a block.
#pragma once

#include <cstdint>

#include "base/dispatch.hpp"

namespace mercer {

template <class T> struct WaveTask {
  const T* angles;  // n rows, or nullptr where the angles are structured
  const T* x;       // n rows of d values
  int64_t n, d;
  int64_t size, blocks;  // D, a power of two of at least 64, and how many blocks
  const T* signs;        // blocks x 3 x D of ±1
  const T* scales;       // m
  const T* phases;       // m - paired
  int64_t m, paired;
  T amplitude;
  T* out;  // n rows of m + paired values
};

template <class T> struct WaveLoops {
  static constexpr const char* concern = "waves";
  void (*waves)(const WaveTask<T>&, int threads);
};

MERCER_TABLE(WaveLoops<float>)
MERCER_TABLE(WaveLoops<double>)

}  // namespace mercer
