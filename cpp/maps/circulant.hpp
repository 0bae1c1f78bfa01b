// Circular convolution r ⊛ x = F⁻¹(F(r) ∘ F(x)) with a fixed r, for batches of rows.
//
// Two rows travel as one complex vector x + i y: r is real, so r ⊛ x and r ⊛ y are the real and the imaginary part of
// the answer, and no step unpacks spectra of real vectors. The forward transform goes from the natural to a scrambled
// order (decimation in frequency), F(r) is kept in the scrambled order, and the inverse goes back from it: nothing is
// ever reordered. Since the product is entry by entry, a block is transformed, multiplied and transformed back as a
// whole before the next one is touched, which keeps long vectors in the cache.
//
// n = (head radices) × m. A head pass splits blocks of size N into p of size N / p, vectors running along a block. The
// tail transforms blocks of m, one in each lane of a vector. Short vectors are all tail, with one pair of rows in each
// lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/dispatch.hpp"

namespace mercer {

constexpr int kVectorBytes = 64;  // in every build: lanes never change what is computed

template <class T> struct ConvolutionPlan {
  struct Pass {
    int64_t size, radix;            // blocks of `size` become `radix` blocks of size / radix
    std::vector<T> cosines, sines;  // exp(-2πi s j / size) for s = 1 .. radix - 1 and j = 0 .. size / radix
    std::vector<T> roots;           // cos and sin of 2π t / radix for t = 0 .. radix
  };
  static constexpr int64_t lanes = kVectorBytes / int64_t(sizeof(T));
  int64_t n = 0, m = 0;     // length; size of the tail
  bool batched = false;     // short: a pair of rows in each lane
  std::size_t cached = 0;   // the head pass from which blocks are small enough to go through all passes together
  int64_t cached_size = 0;  // and the size of these blocks
  std::vector<Pass> head, tail;

  int64_t groups() const {
    return batched ? 1 : (cached_size / m + lanes - 1) / lanes;
  }  // of the tail, in a cached block
  int64_t spectrum_size() const { return batched ? 2 * n : n / cached_size * groups() * 2 * m * lanes; }
};

// No fused products: codes must be the same on every machine.
template <class T> struct ConvolutionLoops {
  static constexpr const char* concern = "circulant";
  // F(r) / n in the scrambled order.
  void (*spectrum)(const ConvolutionPlan<T>& plan, const T* r, T* out);
  // out(row, values) gets what rows first .. last of X, times signs (nullptr: none), become. False if a row is not
  // finite.
  bool (*rows)(const ConvolutionPlan<T>& plan, const T* spectrum, const T* X, const T* signs, int64_t first,
               int64_t last, int64_t n_bits, T* real_out, uint8_t* packed_out);
};

MERCER_TABLE(ConvolutionLoops<float>)
MERCER_TABLE(ConvolutionLoops<double>)

}  // namespace mercer
