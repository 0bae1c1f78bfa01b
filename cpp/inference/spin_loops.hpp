// Sweeps over variables with two states; see inference/spins.hpp.
#pragma once

#include <cstdint>

#include "base/dispatch.hpp"

namespace mercer {

// Variables with two states in blocks of 16 of one colour; see inference/spins.hpp. Blocks are in chunks with a random generator
// each.
struct SpinField {
  const float* bias;           // of every place
  const int64_t* slot_starts;  // of every block
  const int64_t* bases;        // of every slot: where its 16 neighbours begin, or -1 - k: places[16 k ...]
  const float* weights;        // 16 for each slot
  const int32_t* places;
  const int64_t* chunk_starts;   // blocks of every chunk
  const int64_t* colour_starts;  // chunks of every colour
  int n_colours;
};

// The same where the neighbours of a variable all pull equally: p(x_i = 1 | rest) depends on how many of them are 1.
// Blocks of 64.
struct CountField {
  const int8_t* thresholds;      // blocks x (degree + 1) x 64: the top byte of p 2^64 by the count, minus 128
  const uint64_t* exact;         // places x (degree + 1): p 2^64; the largest number means 1
  const int64_t* slot_starts;    // of every block
  const int64_t* bases;          // of every slot: where its 64 neighbours begin; from -64 on
  const int8_t* masks;           // 64 for each slot: 1 for neighbours
  const int64_t* chunk_starts;   // blocks of every chunk
  const int64_t* colour_starts;  // chunks of every colour
  int n_colours, degree;
};
constexpr int STREAM = 66;  // words of the random generators of a chunk

struct SpinLoops {
  static constexpr const char* concern = "spins";
  void (*spin_sweep)(const SpinField&, float beta, float* x, float* totals, uint32_t* random, int threads);
  void (*count_sweep)(const CountField&, int8_t* x, uint8_t* visits, uint32_t* random, int threads);
};

MERCER_TABLE(SpinLoops)

}  // namespace mercer
