// Sums of a tile of features; see maps/signed_hash.cpp.
#pragma once

#include <cstdint>

#include "base/dispatch.hpp"

namespace mercer {

constexpr int64_t kHashLine = 64;   // bytes: as many rows as fill a line are projected together
constexpr uint32_t kHashMinus = 1;  // in the low bits of a place, which is a multiple of kHashLine
constexpr int64_t kHashTile = 512;  // features whose lines stay in the first cache; number kHashTile is a line of zeros
constexpr int64_t kHashSlice = 8;   // buckets that are summed together

// The places of a tile that have one sign, by buckets: slices of kHashSlice buckets with about as many features each.
struct HashSlices {
  const uint32_t* buckets;   // kHashSlice for each slice; the number of buckets where there are no more
  const uint32_t* lengths;   // of the slices, ascending: branches that depend on them are foreseen
  const uint16_t* features;  // 8 x the feature, lengths[s] x kHashSlice for slice s, filled up with 8 x kHashTile
  int64_t n;
};

// Rows that are wanted next: some of their cache lines are fetched with each slice. From memory they would come late,
// since the processor does not foresee that so many rows are read side by side.
struct RowsAhead {
  const char* rows;  // may be null
  int64_t stride;    // bytes from one to the next
  int64_t n, bytes;  // how many there are, and bytes of each
};

template <class T> struct SignedHashLoops {
  static constexpr const char* concern = "signed_hash";
  // A line of rows: sums[bucket][row] ± = x[feature][row] for all places of a tile of features.
  void (*add_tile)(const T* x, int64_t features, const uint32_t* places, int64_t n_hashes, char* sums);
  // The same by buckets: sums[bucket][row] += or -= Σ x[feature][row], features in the order of the slices.
  void (*add_slices)(const T* x, const HashSlices& slices, bool minus, const RowsAhead& ahead, T* sums);
  // The same for one row, a number in every eighth byte of x, and sums[bucket].
  void (*add_slices_of_row)(const T* x, const HashSlices& slices, bool minus, T* sums);
  // tile[feature][row] = x[row][feature] for a line of rows, those beyond the last 0.
  void (*fill_tile)(const T* x, int64_t stride, int64_t rows, int64_t features, T* tile);
};
MERCER_TABLE(SignedHashLoops<float>)
MERCER_TABLE(SignedHashLoops<double>)

}  // namespace mercer
