// Sums of a tile of features; see maps/signed_hash.cpp.
#pragma once

#include <cstdint>

#include "base/dispatch.hpp"

namespace mercer {

constexpr int64_t kHashLine = 64;   // bytes: as many rows as fill a line are projected together
constexpr uint32_t kHashMinus = 1;  // in the low bits of a place, which is a multiple of kHashLine

template <class T> struct SignedHashLoops {
  static constexpr const char* concern = "signed_hash";
  // A line of rows: sums[bucket][row] ± = x[feature][row] for all places of a tile of features.
  void (*add_tile)(const T* x, int64_t features, const uint32_t* places, int64_t n_hashes, char* sums);
};
MERCER_TABLE(SignedHashLoops<float>)
MERCER_TABLE(SignedHashLoops<double>)

}  // namespace mercer
