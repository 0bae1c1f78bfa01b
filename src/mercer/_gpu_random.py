"""Source text for GPU kernels that draw the same random numbers as the compiled loops."""

from __future__ import annotations

__all__ = ["RANDOM"]

RANDOM = """
typedef unsigned long long u64;
typedef unsigned int u32;

__device__ u64 mixed(u64 z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// The number of a key, row and column, in (0, 1).
__device__ float uniform(u64 key, long long row, long long column) {
  const u64 of_row = mixed(key ^ mixed((u64)row));
  u32 x = (u32)column ^ (u32)of_row;
  x ^= x >> 16; x *= 0x21f0aaadu; x ^= x >> 15; x *= 0xd35a2d97u; x ^= x >> 15;
  x += (u32)(of_row >> 32);
  x ^= x >> 16; x *= 0x85ebca6bu; x ^= x >> 13; x *= 0xc2b2ae35u; x ^= x >> 16;
  return (float)(x >> 9) * 1.1920928955078125e-07f + 5.9604644775390625e-08f;
}

// 1 with the log odds f, of a number in (0, 1).
__device__ float drawn(float u, float f) { return u * (1.0f + expf(-f)) < 1.0f ? 1.0f : 0.0f; }
"""
