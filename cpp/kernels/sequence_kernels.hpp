// Kernels of two strings that are recursions over their places: gap-weighted subsequences, weighted degrees, edit
// distance.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/dispatch.hpp"
#include "base/signals.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define MERCER_LANES_X86
#endif

namespace mercer {

// ---------------------------------------------------------------------------------------------- subsequences
//
//   K_n(s, t) = Σ_{u ∈ Σⁿ} Σ_{i: s[i] = u} Σ_{j: t[j] = u} λ^(span i + span j)          (Lodhi and others)
//   K'_m(i, j) = Σ_{i' ≤ i, j' ≤ j, s_i' = t_j'} λ^(i - i' + j - j' + 2) K'_{m-1}(i' - 1, j' - 1),   K'_0 = 1
//   K_n = Σ_{i, j, s_i = t_j} λ² K'_{n-1}(i - 1, j - 1)
//
// With D_m = λ^-(i + j) K'_m all powers leave the sums: D_m(i, j) adds up D_{m-1}(i' - 1, j' - 1) where the symbols are
// equal. Eight t at a time, interleaved: the sum along t has to wait for itself, the lanes do not wait for each other.

constexpr int subsequence_lanes = 8;
typedef double LaneValues __attribute__((vector_size(64)));
typedef int64_t LaneBits __attribute__((vector_size(64)));
struct alignas(64) Lane8 {
  LaneValues v;
};
struct alignas(64) Symbol8 {
  LaneBits v;  // where a lane has ended, a symbol that no string has
};

struct SubsequenceTask {
  const uint32_t* s;
  int64_t n_s;
  const Symbol8* t;
  int64_t n;
  int64_t shortest, length;
  double decay;
  Lane8* D;                 // length × (n + 1)
  Symbol8* same;            // n: all bits where the symbols are equal
  const double *up, *down;  // n: λ^(j + 1), λ^-j
};

// One row of s at one length m: `own` takes it to D_m, `count` adds up Σ_j λ^(j + 1) D_{m-1}(i - 1, j) over equal
// symbols.
template <bool own_too, bool count>
inline __attribute__((always_inline)) LaneValues subsequence_level(const SubsequenceTask& task, const Lane8* shorter,
                                                                   Lane8* own) {
  LaneValues run = {}, found = {};
  for (int64_t j = 0; j < task.n; ++j) {
    const LaneValues value = (LaneValues)((LaneBits)shorter[j].v & task.same[j].v);
    if (count) found += task.up[j] * value;
    if (own_too) {
      run += value;
      own[j + 1].v += run;
    }
  }
  return found;
}

inline __attribute__((always_inline)) void subsequence_body(const SubsequenceTask& task, double* total) {
  const int64_t row = task.n + 1;
  const LaneValues zero = {};
  for (int64_t i = 0; i < task.length * row; ++i) task.D[i].v = zero;
  LaneValues sum = {};
  double rise = task.decay, fall = 1.0;  // λ^(i + 1), λ^-i
  for (int64_t i = 0; i < task.n_s; ++i) {
    const LaneBits symbol = LaneBits{} + int64_t(task.s[i]);
    for (int64_t j = 0; j < task.n; ++j) {
      task.same[j].v = task.t[j].v == symbol;
      task.D[j].v = zero + fall * task.down[j];
    }
    sum += rise * subsequence_level<false, true>(task, task.D + (task.length - 1) * row, nullptr);
    for (int64_t m = task.length - 1; m >= 1; --m) {
      const Lane8* shorter = task.D + (m - 1) * row;
      if (m >= task.shortest)
        sum += rise * subsequence_level<true, true>(task, shorter, task.D + m * row);
      else
        subsequence_level<true, false>(task, shorter, task.D + m * row);
    }
    rise *= task.decay;
    fall /= task.decay;
    poll_signals(subsequence_lanes * task.length * task.n);
  }
  for (int l = 0; l < subsequence_lanes; ++l) total[l] = sum[l];
}

inline void subsequence_plain(const SubsequenceTask& task, double* total) { subsequence_body(task, total); }
#ifdef MERCER_LANES_X86
__attribute__((target("avx2"))) inline void subsequence_avx2(const SubsequenceTask& task, double* total) {
  subsequence_body(task, total);
}
__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw"))) inline void subsequence_avx512(
    const SubsequenceTask& task, double* total) {
  subsequence_body(task, total);
}
#endif

// The powers λ^-(i + j) and the sums over them stay within the range of doubles.
inline bool subsequence_in_range(int64_t n_s, int64_t n, int64_t length, double decay) {
  return -double(n_s + n) * std::log2(decay) + 2.0 * double(length) * std::log2(double(std::max(n_s, n)) + 1.0) <
         1000.0;
}

inline void subsequence_values(const SubsequenceTask& task, double* total) {
#ifdef MERCER_LANES_X86
  switch (set_for("subsequences")) {
    case InstructionSet::avx512: return subsequence_avx512(task, total);
    case InstructionSet::avx2: return subsequence_avx2(task, total);
    case InstructionSet::baseline: break;
  }
#endif
  subsequence_plain(task, total);
}

// Long strings, without the change of scale. K: length × (m + 1).
inline double subsequence_value(const uint32_t* s, int64_t n, const uint32_t* t, int64_t m, int64_t shortest,
                                int64_t length, double decay, std::vector<double>& K) {
  const int64_t row = m + 1;
  const double square = decay * decay;
  K.assign(size_t(length * row), 0.0);
  std::fill(K.begin(), K.begin() + row, 1.0);
  double total = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    poll_signals(length * m);
    for (int64_t p = length; p >= 1; --p) {
      const double* shorter = K.data() + (p - 1) * row;
      double* own = p < length ? K.data() + p * row : nullptr;
      double run = 0.0, found = 0.0;
      for (int64_t j = 0; j < m; ++j) {
        const double value = t[j] == s[i] ? square * shorter[j] : 0.0;
        found += value;
        run = decay * run + value;
        if (own) own[j + 1] = decay * own[j + 1] + run;
      }
      if (p >= shortest) total += found;
    }
  }
  return total;
}

// ---------------------------------------------------------------------------------------------- weighted degree
//
//   k(x, z) = Σ_d β_d Σ_{|i - j| ≤ S} (1 - |i - j| / (S + 1)) [x[i:i+d] = z[j:j+d]]
//
// A string is kept as bit planes: bit i of plane b is bit b of its i-th symbol. Equal symbols of 64 places are then a
// few word operations, and equal substrings of length d are the places where d equal symbols follow each other.

// Number of planes for symbols below sigma.
inline int64_t planes_for(int64_t sigma) {
  int64_t planes = 1;
  while (planes < 32 && (int64_t(1) << planes) < sigma) ++planes;
  return planes;
}

class WeightedDegree {
 public:
  WeightedDegree(int64_t degree, int64_t shift, int64_t planes)
      : degree_(degree), shift_(shift), planes_(planes), counts_(size_t(degree)) {}

  // Planes of one string with room for shifts: `words` words each.
  void pack(const uint32_t* x, int64_t n, int64_t words, uint64_t* bits) const {
    std::fill(bits, bits + planes_ * words, uint64_t(0));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t b = 0; b < planes_; ++b) bits[b * words + (i >> 6)] |= uint64_t((x[i] >> b) & 1) << (i & 63);
  }

  double operator()(const uint64_t* x, int64_t nx, int64_t x_words, const uint64_t* z, int64_t nz, int64_t z_words,
                    const double* beta) {
    std::fill(counts_.begin(), counts_.end(), int64_t(0));
    compare(x, nx, x_words, z, nz, z_words, 0, shift_ + 1);
    for (int64_t s = 1; s <= std::min(shift_, std::max(nx, nz)); ++s) {  // shifted further, nothing lies over anything
      compare(x, nx, x_words, z, nz, z_words, s, shift_ + 1 - s);
      compare(z, nz, z_words, x, nx, x_words, s, shift_ + 1 - s);
    }
    double total = 0.0;
    for (int64_t d = 0; d < degree_; ++d) total += beta[d] * double(counts_[size_t(d)]);
    return total / double(shift_ + 1);
  }

 private:
  static uint64_t word_at(const uint64_t* plane, int64_t words, int64_t word, int64_t bit) {
    const uint64_t low = word < words ? plane[word] : 0;
    if (bit == 0) return low;
    const uint64_t high = word + 1 < words ? plane[word + 1] : 0;
    return (low >> bit) | (high << (64 - bit));
  }
  static int count(uint64_t bits) { return __builtin_popcountll(bits); }

  // Adds `weight` for every substring of x[s:] that stands at the same place in z.
  void compare(const uint64_t* x, int64_t nx, int64_t x_words, const uint64_t* z, int64_t nz, int64_t z_words,
               int64_t s, int64_t weight) {
    const int64_t n = std::min(nx - s, nz);
    if (n <= 0) return;
    const int64_t words = (n + 63) >> 6;
    poll_signals(words * (planes_ + degree_));
    equal_.resize(size_t(words) + 1);
    for (int64_t w = 0; w < words; ++w) {
      uint64_t differs = 0;
      for (int64_t b = 0; b < planes_; ++b)
        differs |= word_at(x + b * x_words, x_words, w + (s >> 6), s & 63) ^ z[b * z_words + w];
      equal_[size_t(w)] = ~differs;
    }
    if (n & 63) equal_[size_t(words) - 1] &= (uint64_t(1) << (n & 63)) - 1;
    equal_[size_t(words)] = 0;
    if (words == 1) {
      uint64_t run = equal_[0];
      for (int64_t d = 0; d < degree_ && run; ++d, run &= run >> 1) counts_[size_t(d)] += weight * count(run);
      return;
    }
    for (int64_t d = 0; d < degree_; ++d) {
      int64_t found = 0;
      for (int64_t w = 0; w < words; ++w) {
        found += count(equal_[size_t(w)]);
        equal_[size_t(w)] &= (equal_[size_t(w)] >> 1) | (equal_[size_t(w) + 1] << 63);
      }
      if (found == 0) break;
      counts_[size_t(d)] += weight * found;
    }
  }

  int64_t degree_, shift_, planes_;
  std::vector<int64_t> counts_;
  std::vector<uint64_t> equal_;
};

// ---------------------------------------------------------------------------------------------- edit distance

// Levenshtein's distance with unit costs, a column of 64 differences at a time (Myers; Hyyrö for the whole distance).
class UnitDistance {
 public:
  // The string whose places are the bits; symbols below sigma. False where its table would be too large: many different
  // symbols.
  bool set(const uint32_t* x, int64_t n, int64_t sigma) {
    n_ = n;
    blocks_ = std::max<int64_t>(1, (n + 63) / 64);
    for (const uint32_t symbol : present_) number_[symbol] = 0;
    present_.clear();
    number_.resize(size_t(sigma), 0);
    int64_t distinct = 1;  // row 0 is for symbols that x does not have
    for (int64_t i = 0; i < n; ++i)
      if (number_[x[i]] == 0) {
        number_[x[i]] = distinct++;
        present_.push_back(x[i]);
      }
    if (distinct > largest_table / blocks_) return false;
    where_.assign(size_t(distinct * blocks_), 0);
    for (int64_t i = 0; i < n; ++i) where_[size_t(number_[x[i]] * blocks_ + (i >> 6))] |= uint64_t(1) << (i & 63);
    return true;
  }
  int64_t operator()(const uint32_t* z, int64_t m) {
    if (n_ == 0) return m;
    up_.assign(size_t(blocks_), ~uint64_t(0));
    down_.assign(size_t(blocks_), 0);
    int64_t distance = n_;
    const uint64_t last = uint64_t(1) << ((n_ - 1) & 63);
    for (int64_t j = 0; j < m; ++j) {
      poll_signals(8 * blocks_);
      const uint64_t* where = where_.data() + number_[z[j]] * blocks_;
      uint64_t in_up = 1, in_down = 0;  // the row above the matrix grows by one at each step
      for (int64_t b = 0; b < blocks_; ++b) {
        uint64_t& up = up_[size_t(b)];
        uint64_t& down = down_[size_t(b)];
        const uint64_t match = where[b] | in_down;
        const uint64_t diagonal = (((match & up) + up) ^ up) | match | down;
        uint64_t right_up = down | ~(diagonal | up), right_down = up & diagonal;
        if (b + 1 == blocks_) distance += int64_t((right_up & last) != 0) - int64_t((right_down & last) != 0);
        const uint64_t out_up = right_up >> 63, out_down = right_down >> 63;
        right_up = (right_up << 1) | in_up;
        right_down = (right_down << 1) | in_down;
        up = right_down | ~((where[b] | down) | right_up);
        down = right_up & (where[b] | down);
        in_up = out_up;
        in_down = out_down;
      }
    }
    return distance;
  }

 private:
  static constexpr int64_t largest_table = 1 << 25;
  int64_t n_ = 0, blocks_ = 1;
  std::vector<int64_t> number_;
  std::vector<uint32_t> present_;
  std::vector<uint64_t> where_, up_, down_;
};

// With other costs: one for insertions and deletions, one for substitutions.
inline double edit_distance(const uint32_t* x, int64_t n, const uint32_t* z, int64_t m, double indel,
                            double substitution, std::vector<double>& row) {
  row.resize(size_t(m) + 1);
  for (int64_t j = 0; j <= m; ++j) row[size_t(j)] = double(j) * indel;
  for (int64_t i = 1; i <= n; ++i) {
    poll_signals(m);
    double diagonal = row[0];
    row[0] = double(i) * indel;
    for (int64_t j = 1; j <= m; ++j) {
      const double through = diagonal + (x[i - 1] == z[j - 1] ? 0.0 : substitution);
      diagonal = row[size_t(j)];
      row[size_t(j)] = std::min(through, std::min(diagonal, row[size_t(j) - 1]) + indel);
    }
  }
  return row[size_t(m)];
}

}  // namespace mercer
