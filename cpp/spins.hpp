// Gibbs sampling of variables with two states in a pairwise graph, all variables of one colour at once.
//
//   p(x_i = 1 | rest) = 1 / (1 + exp(−β f_i)),    f_i = bias_i + Σ_j weight_ij x_j
//
// Variables of one colour have no factor in common, so their order does not matter. They lie side by side in blocks of 16; where the neighbours
// of a block lie side by side, too (as in grids), they are read with plain loads. Included once for each instruction set.
#pragma once

#include "kernels.hpp"
#include "parallel.hpp"
#include "simd.hpp"

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

// 16 generators side by side (xoshiro128+), as numbers in [0, 1).
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
  return value - 1.0f;
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
      std::memcpy(state, random + 64 * chunk, sizeof state);
      for (int64_t block = field.chunk_starts[chunk]; block < field.chunk_starts[chunk + 1]; ++block)
        spin_block(field, block, beta, x, totals, state);
      std::memcpy(random + 64 * chunk, state, sizeof state);
    });
  }
}

}  // namespace mercer::MERCER_ARCH
