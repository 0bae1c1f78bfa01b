// Rows of hashed features as they are made: buckets sorted, features that share one added, the whole a CSR matrix.
//
// A row does not depend on the order in which its features come: those of one bucket are added in the order of their hashes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "hashing.hpp"

namespace mercer {

// Sorts N keys by comparing and exchanging fixed places (Batcher's odd-even merge sort): no branch depends on the keys, which are random.
constexpr size_t kNetworkLimit = 16;

template <size_t N> struct Network {
  std::array<std::pair<uint8_t, uint8_t>, 64> pairs{};
  size_t count = 0;
  constexpr Network() {
    for (size_t p = 1; p < N; p *= 2)
      for (size_t k = p; k >= 1; k /= 2)
        for (size_t j = k % p; j + k < N; j += 2 * k)
          for (size_t i = 0; i < k && i + j + k < N; ++i)
            if ((i + j) / (2 * p) == (i + j + k) / (2 * p)) {
              pairs[count].first = uint8_t(i + j);
              pairs[count++].second = uint8_t(i + j + k);
            }
  }
};

template <size_t N, size_t... I> inline void sort_fixed(uint64_t* keys, std::index_sequence<I...>) {
  constexpr Network<N> network{};
  uint64_t k[N];
  std::memcpy(k, keys, sizeof k);
  const auto exchange = [&](size_t a, size_t b) {
    const uint64_t x = k[a], y = k[b];
    k[a] = x < y ? x : y;
    k[b] = x < y ? y : x;
  };
  (exchange(network.pairs[I].first, network.pairs[I].second), ...);
  std::memcpy(keys, k, sizeof k);
}
template <size_t N> void sort_fixed(uint64_t* keys) { sort_fixed<N>(keys, std::make_index_sequence<Network<N>{}.count>{}); }

inline void sort_keys(uint64_t* keys, size_t n) {
  switch (n) {
    case 0: case 1: return;
    case 2: return sort_fixed<2>(keys);
    case 3: return sort_fixed<3>(keys);
    case 4: return sort_fixed<4>(keys);
    case 5: return sort_fixed<5>(keys);
    case 6: return sort_fixed<6>(keys);
    case 7: return sort_fixed<7>(keys);
    case 8: return sort_fixed<8>(keys);
    case 9: return sort_fixed<9>(keys);
    case 10: return sort_fixed<10>(keys);
    case 11: return sort_fixed<11>(keys);
    case 12: return sort_fixed<12>(keys);
    case 13: return sort_fixed<13>(keys);
    case 14: return sort_fixed<14>(keys);
    case 15: return sort_fixed<15>(keys);
    case 16: return sort_fixed<16>(keys);
    default: std::sort(keys, keys + n);
  }
}

template <class T> class RowWriter {
 public:
  RowWriter(int n_bits, bool is_signed) : mask_(bucket_mask(n_bits)), sign_(is_signed ? uint64_t(1) << 63 : 0) { ends.push(0); }

  // A feature of the row at hand; the value is finite and not 0.
  void push(uint64_t hash, double value) {
    if (n_ == hashes_.size()) grow();
    hashes_[n_] = hash;
    values_[n_++] = value;
    ones_ &= value == 1.0;
  }

  // As many features as there are places of a stride, but for those of value 0.
  void push_strided(const uint64_t* hashes, const double* values, size_t stride, size_t count) {
    while (n_ + count > hashes_.size()) grow();
    uint64_t* const to_hash = hashes_.data();
    double* const to_value = values_.data();
    size_t n = n_;
    bool ones = ones_;
    for (size_t c = 0; c < count; ++c) {
      const double value = values[c * stride];
      to_hash[n] = hashes[c * stride];
      to_value[n] = value;
      ones &= value == 1.0 || value == 0.0;
      n += value != 0.0;
    }
    n_ = n;
    ones_ = ones;
  }

  void close(int64_t row) {
    const size_t n = n_;
    const uint64_t mask = mask_, sign = sign_;
    const uint64_t* const hashes = hashes_.data();
    uint64_t* const keys = keys_.data();
    // bucket | sign | place: what a row of ones needs is in the key.
    for (size_t k = 0; k < n; ++k) keys[k] = (hashes[k] & mask) << 32 | (hashes[k] & sign) >> 32 | k;
    sort_keys(keys, n);
    uint64_t shared = 0;
    for (size_t k = 1; k < n; ++k) shared |= uint64_t((keys[k] ^ keys[k - 1]) >> 32 == 0);
    if (shared || !(ones_ ? write_ones() : write_values())) write_sums(row);
    ends.push(int64_t(indices.size()));
    n_ = 0;
    ones_ = true;
  }

  void append(const RowWriter& other) {
    const int64_t before = int64_t(indices.size());
    indices.append(other.indices.data(), other.indices.size());
    values.append(other.values.data(), other.values.size());
    for (size_t i = 1; i < other.ends.size(); ++i) ends.push(other.ends.data()[i] + before);
  }

  nb::object release() { return nb::make_tuple(ends.release(), indices.release(), values.release()); }

  Buffer<int64_t> ends;
  Buffer<int32_t> indices;
  Buffer<T> values;

 private:
  static constexpr uint64_t kPlace = (uint64_t(1) << 31) - 1;

  void grow() {
    const size_t larger = 2 * n_ + 16;
    if (larger > kPlace) fail("a row has too many features");
    hashes_.resize(larger);
    values_.resize(larger);
    keys_.resize(larger);
  }
  bool write_ones() {
    const size_t n = n_;
    int32_t* const column = indices.room(n);
    T* const value = values.room(n);
    const uint64_t* const keys = keys_.data();
    for (size_t k = 0; k < n; ++k) {
      column[k] = int32_t(keys[k] >> 32);
      value[k] = T(1 - int32_t(keys[k] >> 30 & 2));
    }
    indices.advance(n);
    values.advance(n);
    return true;
  }
  // False, with nothing written, where a value is 0 or infinite in T.
  bool write_values() {
    int32_t* const column = indices.room(n_);
    T* const value = values.room(n_);
    bool good = true;
    for (size_t k = 0; k < n_; ++k) {
      column[k] = int32_t(keys_[k] >> 32);
      value[k] = T(signed_value(keys_[k]));
      good &= value[k] != 0 && std::abs(value[k]) <= std::numeric_limits<T>::max();
    }
    if (!good) return false;
    indices.advance(n_);
    values.advance(n_);
    return true;
  }
  void write_sums(int64_t row) {
    for (size_t k = 0; k < n_;) {
      size_t end = k + 1;
      while (end < n_ && (keys_[end] ^ keys_[k]) >> 32 == 0) ++end;
      std::sort(keys_.begin() + std::ptrdiff_t(k), keys_.begin() + std::ptrdiff_t(end), [this](uint64_t a, uint64_t b) {
        const uint64_t i = a & kPlace, j = b & kPlace;
        return hashes_[i] != hashes_[j] ? hashes_[i] < hashes_[j] : values_[i] < values_[j];
      });
      double total = 0;
      const int32_t bucket = int32_t(keys_[k] >> 32);
      for (; k < end; ++k) total += signed_value(keys_[k]);
      if (!(std::abs(total) <= double(std::numeric_limits<T>::max())))
        fail("row " + std::to_string(row) + ": a sum of features is too large for the dtype");
      if (T(total) == 0) continue;
      indices.push(bucket);
      values.push(T(total));
    }
  }
  double signed_value(uint64_t key) const {
    uint64_t bits;
    std::memcpy(&bits, &values_[key & kPlace], 8);
    bits ^= (key & uint64_t(1) << 31) << 32;
    double value;
    std::memcpy(&value, &bits, 8);
    return value;
  }

  uint64_t mask_, sign_;
  size_t n_ = 0;
  bool ones_ = true;
  std::vector<uint64_t> hashes_, keys_;
  std::vector<double> values_;
};

}  // namespace mercer
