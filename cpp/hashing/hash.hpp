// Hashes of bytes. hash_bytes is 64-bit, after the published XXH64 algorithm: the same on every platform, for any
// alignment.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace mercer {

inline uint64_t rotate_left(uint64_t x, int r) { return (x << r) | (x >> (64 - r)); }

inline uint64_t read64(const char* p) {
  uint64_t x;
  std::memcpy(&x, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  x = __builtin_bswap64(x);
#endif
  return x;
}
inline uint32_t read32(const char* p) {
  uint32_t x;
  std::memcpy(&x, p, 4);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  x = __builtin_bswap32(x);
#endif
  return x;
}

inline uint64_t hash_bytes(std::string_view bytes, uint64_t seed = 0) {
  constexpr uint64_t P1 = 0x9E3779B185EBCA87u, P2 = 0xC2B2AE3D27D4EB4Fu, P3 = 0x165667B19E3779F9u,
                     P4 = 0x85EBCA77C2B2AE63u, P5 = 0x27D4EB2F165667C5u;
  const char* p = bytes.data();
  const char* const end = p + bytes.size();
  auto round = [](uint64_t lane, uint64_t input) { return rotate_left(lane + input * P2, 31) * P1; };
  uint64_t h;
  if (bytes.size() >= 32) {
    uint64_t lanes[4] = {seed + P1 + P2, seed + P2, seed, seed - P1};
    for (; end - p >= 32; p += 32)
      for (int i = 0; i < 4; ++i) lanes[i] = round(lanes[i], read64(p + 8 * i));
    h = rotate_left(lanes[0], 1) + rotate_left(lanes[1], 7) + rotate_left(lanes[2], 12) + rotate_left(lanes[3], 18);
    for (uint64_t lane : lanes) h = (h ^ round(0, lane)) * P1 + P4;
  } else {
    h = seed + P5;
  }
  h += bytes.size();
  for (; end - p >= 8; p += 8) h = rotate_left(h ^ round(0, read64(p)), 27) * P1 + P4;
  if (end - p >= 4) {
    h = rotate_left(h ^ (read32(p) * P1), 23) * P2 + P3;
    p += 4;
  }
  for (; p < end; ++p) h = rotate_left(h ^ (uint8_t(*p) * P5), 11) * P1;
  h = (h ^ (h >> 33)) * P2;
  h = (h ^ (h >> 29)) * P3;
  return h ^ (h >> 32);
}

// A faster hash for tables that live in memory only: two words at a time through a 128-bit product.
inline uint64_t fast_hash(std::string_view bytes) {
  constexpr uint64_t K1 = 0x9E3779B185EBCA87u, K2 = 0xC2B2AE3D27D4EB4Fu;
  const auto mix = [](uint64_t a, uint64_t b) {
    __extension__ typedef unsigned __int128 Wide;
    const Wide product = Wide(a) * b;
    return uint64_t(product) ^ uint64_t(product >> 64);
  };
  const char* p = bytes.data();
  size_t n = bytes.size();
  uint64_t h = n * K1, a = 0, b = 0;
  for (; n > 16; p += 16, n -= 16) h = mix(read64(p) ^ K1 ^ h, read64(p + 8) ^ K2);
  if (n >= 8) {
    a = read64(p);
    b = read64(p + n - 8);
  } else if (n >= 4) {
    a = read32(p);
    b = read32(p + n - 4);
  } else if (n > 0) {
    a = uint64_t(uint8_t(p[0])) << 16 | uint64_t(uint8_t(p[n / 2])) << 8 | uint8_t(p[n - 1]);
  }
  h = mix(a ^ K1 ^ h, b ^ K2);
  return mix(h ^ K2, K1);
}

}  // namespace mercer
