// Sweeps of random fields over many chains at once, compiled once for each instruction set.
//
// Binary rows x times a dense matrix W, for restricted Boltzmann machines: units are taken in groups of five, all 32
// sums of the rows of W of a group are made once, and every chain adds the one that its five bits name ("four
// Russians"). One addition does the work of five products, however many bits are set.
//
// Random numbers are functions of (key, row, column) and not of an order: results do not depend on threads, and other
// devices can draw the same.
#pragma once

#include <cstdint>

#include "base/dispatch.hpp"

namespace mercer {

// What to make of fields f = beta · (x W) + bias of n chains; outputs may be nullptr. The key makes the numbers of row
// `first_row` on.
struct HalfSweep {
  const uint8_t* x;  // n rows of k bits, one a byte
  int64_t n, k;
  const float* w;  // k x m
  int64_t m;
  const float* bias;  // m, or nullptr
  float beta;
  uint64_t key;
  int64_t first_row;
  float* fields;         // n x m
  float* probabilities;  // σ(f)
  uint8_t* states;       // 1 with that probability
};

// Units with two states lo and lo + gain, and pairs of them: f_i = bias_i + Σ_j weight_ij x_j.
struct SpinChains {
  int8_t* states;  // n x size: 0 or 1
  int64_t n, size;
  const int64_t* starts;
  const int32_t* neighbours;
  const float* weights;
  const float* bias;    // size, or one row for each chain
  int64_t bias_stride;  // 0 or size
  float lo, gain, beta;
  bool backward;  // from the last unit to the first: the reversal of the other sweep
  uint64_t key;
  int64_t first_row;
};

// Topics of words: counts by word and topic, by document and topic, and by topic.
struct TopicCorpus {
  const int64_t* offsets;  // words of each document
  int64_t documents;
  const int32_t* words;
  int32_t* topics;
  int64_t n_words, k, stride;  // stride: k rounded up
  float *by_word, *by_document, *totals;
  const float* alpha;  // k
  float beta;
  uint64_t key;
};

struct FieldLoops {
  static constexpr const char* concern = "fields";
  void (*half_sweep)(const HalfSweep&, int threads);
  void (*sample)(const float* fields, int64_t n, int64_t m, float scale, uint64_t key, int64_t first_row,
                 float* probabilities, uint8_t* states, int threads);
  void (*outer)(const uint8_t* x, int64_t n, int64_t k, const float* dense, int64_t m, float scale, float* out,
                int threads);
  void (*softplus_sums)(const float* a, const float* b, int64_t n, int64_t m, float beta, double* out, int threads);
  void (*spin_sweep)(const SpinChains&, int threads);
  void (*topic_sweep)(const TopicCorpus&);
};

// A 64-bit word of a counter (SplitMix64's finaliser).
inline uint64_t mixed_counter(uint64_t z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
inline uint64_t row_key(uint64_t key, int64_t row) { return mixed_counter(key ^ mixed_counter(uint64_t(row))); }

MERCER_TABLE(FieldLoops)

}  // namespace mercer
