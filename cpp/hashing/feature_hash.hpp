// Hashed features: what a feature's 64-bit hash is, and which bucket and sign follow from it.
//
//   Φ̄_j(x) = Σ_{i: bucket(i) = j} sign(i) Φ_i(x)
//
// The bucket comes from the low bits, the sign from the highest one: they are independent, which matters. What these
// functions return is kept in model files and pinned by tests: the same on every platform, in every version.
#pragma once

#include <cstdint>
#include <string_view>

#include "hashing/hash.hpp"

namespace mercer {

// Spreads every bit of x over all bits; a bijection.
inline uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
  return x ^ (x >> 32);
}

// The hash of a feature's name: of a word, an n-gram, a substring, "field=value".
inline uint64_t feature_hash(std::string_view name, uint64_t seed) { return mix64(fast_hash(name) ^ mix64(seed)); }

// The hash of a feature that is a number: a column, a node label, a canonical form.
inline uint64_t feature_hash(uint64_t number, uint64_t seed) {
  return mix64(mix64(number + 0x9E3779B97F4A7C15u) ^ mix64(seed));
}

// The hash of a pair in this order: of an n-gram from its beginning and its last word, of a cross of two fields, of a
// feature and a label, of a feature and the number of its copy.
inline uint64_t combine(uint64_t first, uint64_t second) {
  return mix64(rotate_left(first, 29) * 0x9E3779B185EBCA87u + second);
}

inline uint64_t bucket_mask(int n_bits) { return (uint64_t(1) << n_bits) - 1; }
inline int hash_sign(uint64_t hash) { return (hash >> 63) ? -1 : 1; }

}  // namespace mercer
