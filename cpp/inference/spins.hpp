// Gibbs sampling of variables with two states in a pairwise graph, all variables of one colour at once.
//
//   p(x_i = 1 | rest) = 1 / (1 + exp(−β f_i)),    f_i = bias_i + Σ_j weight_ij x_j
//
// Variables of one colour have no factor in common, so their order does not matter. They lie side by side in blocks of
// 16; where the neighbours of a block lie side by side, too (as in grids), they are read with plain loads. Included
// once for each instruction set.
//
// Where all neighbours of a variable pull equally, p depends on their number in state 1 alone: states are bytes, 64 a
// vector, and a random byte is compared with the top byte of a threshold p 2^64 from a table. Only where both are equal
// are the other 56 bits drawn: p is met to 2^−53, with integers alone, so that all instruction sets draw the same.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "inference/spin_loops.hpp"

namespace mercer::MERCER_ARCH {

typedef float F16 __attribute__((vector_size(64)));
typedef int32_t I16 __attribute__((vector_size(64)));
typedef uint32_t U16 __attribute__((vector_size(64)));

inline F16 exp16(F16 x) {
  constexpr int parts = 64 / kVectorBytes;
  Vec<float> piece[parts];
  std::memcpy(piece, &x, sizeof x);
  for (int i = 0; i < parts; ++i) piece[i] = vexp(piece[i]);
  std::memcpy(&x, piece, sizeof x);
  return x;
}

// 16 generators side by side (xoshiro128+), as odd multiples of 2^−24 in (0, 1): with 0 among them, what has
// probability 0 would be drawn once in 2^23.
inline F16 uniform16(U16* s) {
  const U16 sum = s[0] + s[3], t = s[1] << 9;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = (s[3] << 11) | (s[3] >> 21);
  const U16 bits = (sum >> 9) | 0x3f800000u;
  F16 value;
  std::memcpy(&value, &bits, sizeof value);
  return value - (1.0f - 0x1p-24f);
}

inline void spin_block(const SpinField& field, int64_t block, float beta, float* x, float* totals, U16* random) {
  F16 f;
  std::memcpy(&f, field.bias + 16 * block, sizeof f);
  for (int64_t slot = field.slot_starts[block]; slot < field.slot_starts[block + 1]; ++slot) {
    F16 w, y;
    std::memcpy(&w, field.weights + 16 * slot, sizeof w);
    if (field.bases[slot] >= 0) {
      std::memcpy(&y, x + field.bases[slot], sizeof y);
    } else {
      const int32_t* at = field.places + 16 * (-field.bases[slot] - 1);
      for (int lane = 0; lane < 16; ++lane) y[lane] = x[at[lane]];
    }
    f += w * y;
  }
  F16 z = -beta * f;
  z = z > 80.0f ? F16{} + 80.0f : z;
  const F16 odds = exp16(z) + 1.0f;
  const F16 drawn = uniform16(random) * odds < 1.0f ? F16{} + 1.0f : F16{};
  std::memcpy(x + 16 * block, &drawn, sizeof drawn);
  if (totals) {
    F16 sum;
    std::memcpy(&sum, totals + 16 * block, sizeof sum);
    sum += 1.0f / odds;
    std::memcpy(totals + 16 * block, &sum, sizeof sum);
  }
}

inline void spin_sweep(const SpinField& field, float beta, float* x, float* totals, uint32_t* random, int threads) {
  for (int colour = 0; colour < field.n_colours; ++colour) {
    const int64_t begin = field.colour_starts[colour], end = field.colour_starts[colour + 1];  // in chunks
    in_parallel(end - begin, end - begin >= 64 ? threads : 1, [&](int64_t k) {
      const int64_t chunk = begin + k;
      U16 state[4];
      std::memcpy(state, random + STREAM * chunk, sizeof state);
      for (int64_t block = field.chunk_starts[chunk]; block < field.chunk_starts[chunk + 1]; ++block)
        spin_block(field, block, beta, x, totals, state);
      std::memcpy(random + STREAM * chunk, state, sizeof state);
    });
  }
}

typedef int8_t B64 __attribute__((vector_size(64)));

// 16 generators side by side (xoshiro128++), as 64 bytes.
inline B64 bytes64(U16* s) {
  const U16 sum = s[0] + s[3], result = ((sum << 7) | (sum >> 25)) + s[0], t = s[1] << 9;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = (s[3] << 11) | (s[3] >> 21);
  B64 bytes;
  std::memcpy(&bytes, &result, sizeof bytes);
  return bytes;
}

// Bytes of the vectors the target has: comparisons of wider ones become a branch for each byte.
typedef int8_t Bytes __attribute__((vector_size(kVectorBytes)));
typedef uint8_t Counters __attribute__((vector_size(kVectorBytes)));  // they may pass 127

// Bit i tells whether byte i is not 0 (it is 0 or −1).
inline uint64_t lanes_set(const Bytes& v) {
#if defined(__AVX512BW__)
  __m512i whole;
  std::memcpy(&whole, &v, sizeof whole);
  return _mm512_movepi8_mask(whole);
#elif defined(__AVX2__)
  __m256i whole;
  std::memcpy(&whole, &v, sizeof whole);
  return uint32_t(_mm256_movemask_epi8(whole));
#elif defined(__SSE2__)
  __m128i whole;
  std::memcpy(&whole, &v, sizeof whole);
  return uint32_t(_mm_movemask_epi8(whole));
#else
  uint64_t bits = 0;
  for (int lane = 0; lane < kVectorBytes; ++lane) bits |= uint64_t(v[lane] != 0) << lane;
  return bits;
#endif
}

// A counter, mixed (SplitMix64).
inline uint64_t next_word(uint64_t& counter) {
  uint64_t z = counter += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Lanes whose random byte equals that of the threshold: the remaining bits decide.
inline void settle(const CountField& field, int64_t block, uint64_t ties, const B64& count, uint64_t& random,
                   int8_t* x) {
  for (; ties; ties &= ties - 1) {
    const int lane = __builtin_ctzll(ties);
    const uint64_t threshold = field.exact[(64 * block + lane) * (field.degree + 1) + count[lane]],
                   low = ~uint64_t(0) >> 8;
    x[64 * block + lane] = threshold == ~uint64_t(0) || (next_word(random) & low) < (threshold & low);
  }
}

template <int D>
inline void count_block(const CountField& field, int64_t block, int8_t* x, uint8_t* visits, U16* random,
                        uint64_t& more) {
  B64 count = {};
  for (int64_t slot = field.slot_starts[block]; slot < field.slot_starts[block + 1]; ++slot) {
    B64 y, mask;
    std::memcpy(&y, x + field.bases[slot], sizeof y);
    std::memcpy(&mask, field.masks + 64 * slot, sizeof mask);
    count += y & mask;
  }
  const B64 drawn = bytes64(random);
  constexpr int parts = 64 / kVectorBytes;
  Bytes counts[parts], dice[parts];
  std::memcpy(counts, &count, sizeof count);
  std::memcpy(dice, &drawn, sizeof drawn);
  uint64_t ties = 0;
  for (int part = 0; part < parts; ++part) {
    const int64_t at = kVectorBytes * part;
    const int8_t* table = field.thresholds + 64 * (D + 1) * block + at;
    Bytes threshold;
    std::memcpy(&threshold, table, sizeof threshold);
    for (int c = 1; c <= D; ++c) {
      Bytes next;
      std::memcpy(&next, table + 64 * c, sizeof next);
      threshold = counts[part] >= int8_t(c) ? next : threshold;
    }
    const Bytes below = dice[part] < threshold, bits = below & int8_t(1);
    std::memcpy(x + 64 * block + at, &bits, sizeof bits);
    ties |= lanes_set(dice[part] == threshold) << at;
    if (visits)
      for (int c = 1; c <= D; ++c) {
        Counters met;
        uint8_t* place = visits + 64 * (D * block + c - 1) + at;
        std::memcpy(&met, place, sizeof met);
        met -= Counters(counts[part] == int8_t(c));  // a true lane is 255, which is −1
        std::memcpy(place, &met, sizeof met);
      }
  }
  if (ties) settle(field, block, ties, count, more, x);
}

template <int D>
inline void count_sweep_of(const CountField& field, int8_t* x, uint8_t* visits, uint32_t* random, int threads) {
  for (int colour = 0; colour < field.n_colours; ++colour) {
    const int64_t begin = field.colour_starts[colour], end = field.colour_starts[colour + 1];  // in chunks
    in_parallel(end - begin, end - begin >= 256 ? threads : 1, [&](int64_t k) {
      const int64_t chunk = begin + k;
      U16 state[4];
      uint64_t more;
      std::memcpy(state, random + STREAM * chunk, sizeof state);
      std::memcpy(&more, random + STREAM * chunk + 64, sizeof more);
      for (int64_t block = field.chunk_starts[chunk]; block < field.chunk_starts[chunk + 1]; ++block)
        count_block<D>(field, block, x, visits, state, more);
      std::memcpy(random + STREAM * chunk, state, sizeof state);
      std::memcpy(random + STREAM * chunk + 64, &more, sizeof more);
    });
  }
}

inline void count_sweep(const CountField& field, int8_t* x, uint8_t* visits, uint32_t* random, int threads) {
  switch (field.degree) {
    case 1: return count_sweep_of<1>(field, x, visits, random, threads);
    case 2: return count_sweep_of<2>(field, x, visits, random, threads);
    case 3: return count_sweep_of<3>(field, x, visits, random, threads);
    case 4: return count_sweep_of<4>(field, x, visits, random, threads);
    case 5: return count_sweep_of<5>(field, x, visits, random, threads);
    case 6: return count_sweep_of<6>(field, x, visits, random, threads);
    case 7: return count_sweep_of<7>(field, x, visits, random, threads);
    case 8: return count_sweep_of<8>(field, x, visits, random, threads);
  }
}

}  // namespace mercer::MERCER_ARCH
