// Kernels of two strings that are recursions over their places: gap-weighted subsequences, weighted degrees, edit distance.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__)
#define MERCER_AVX2 __attribute__((target("avx2")))
#define MERCER_INLINE inline __attribute__((always_inline))
#else
#define MERCER_INLINE inline
#endif

namespace mercer {

// ---------------------------------------------------------------------------------------------- subsequences
//
//   K_n(s, t) = Σ_{u ∈ Σⁿ} Σ_{i: s[i] = u} Σ_{j: t[j] = u} λ^(span i + span j)          (Lodhi and others)
//   K'_m(sa, t) = λ K'_m(s, t) + K''_m(sa, t),   K''_m(sa, tb) = λ K''_m(sa, t) + [a = b] λ² K'_{m-1}(s, t)
//
// Several t at a time, interleaved: the recursion over t has to wait for itself, the lanes do not wait for each other.
constexpr int subsequence_lanes = 8;

// t: n symbols of each lane, interleaved, with symbols that s does not have where a lane has ended. K: length × (n + 1) × lanes.
MERCER_INLINE void subsequence_body(const uint32_t* s, int64_t n_s, const uint32_t* t, int64_t n, int64_t length, double decay, double* K,
                                    double* total) {
  constexpr int L = subsequence_lanes;
  const int64_t row = (n + 1) * L;
  const double square = decay * decay;
  std::fill(K, K + row, 1.0);
  std::fill(K + row, K + length * row, 0.0);
  for (int l = 0; l < L; ++l) total[l] = 0.0;
  for (int64_t i = 0; i < n_s; ++i) {
    const uint32_t a = s[i];
    const double* last = K + (length - 1) * row;
    for (int64_t j = 0; j < n; ++j)
      for (int l = 0; l < L; ++l) total[l] += t[j * L + l] == a ? square * last[j * L + l] : 0.0;
    for (int64_t m = length - 1; m >= 1; --m) {
      const double* shorter = K + (m - 1) * row;
      double* own = K + m * row;
      double run[L] = {};
      for (int l = 0; l < L; ++l) own[l] *= decay;
      for (int64_t j = 0; j < n; ++j)
        for (int l = 0; l < L; ++l) {
          run[l] = decay * run[l] + (t[j * L + l] == a ? square * shorter[j * L + l] : 0.0);
          own[(j + 1) * L + l] = decay * own[(j + 1) * L + l] + run[l];
        }
    }
  }
}

inline void subsequence_plain(const uint32_t* s, int64_t n_s, const uint32_t* t, int64_t n, int64_t length, double decay, double* K, double* total) {
  subsequence_body(s, n_s, t, n, length, decay, K, total);
}
#ifdef MERCER_AVX2
MERCER_AVX2 inline void subsequence_avx2(const uint32_t* s, int64_t n_s, const uint32_t* t, int64_t n, int64_t length, double decay, double* K,
                                         double* total) {
  subsequence_body(s, n_s, t, n, length, decay, K, total);
}
#endif

inline void subsequence_values(const uint32_t* s, int64_t n_s, const uint32_t* t, int64_t n, int64_t length, double decay, double* K, double* total) {
#ifdef MERCER_AVX2
  if (__builtin_cpu_supports("avx2")) return subsequence_avx2(s, n_s, t, n, length, decay, K, total);
#endif
  subsequence_plain(s, n_s, t, n, length, decay, K, total);
}

// ---------------------------------------------------------------------------------------------- weighted degree
//
//   k(x, z) = Σ_d β_d Σ_{|i - j| ≤ S} (1 - |i - j| / (S + 1)) [x[i:i+d] = z[j:j+d]]
//
// A string is kept as bit planes: bit i of plane b is bit b of its i-th symbol. Equal symbols of 64 places are then a few word operations,
// and equal substrings of length d are the places where d equal symbols follow each other.

// Number of planes for symbols below sigma.
inline int64_t planes_for(int64_t sigma) {
  int64_t planes = 1;
  while (planes < 32 && (int64_t(1) << planes) < sigma) ++planes;
  return planes;
}

class WeightedDegree {
 public:
  WeightedDegree(int64_t degree, int64_t shift, int64_t planes) : degree_(degree), shift_(shift), planes_(planes), counts_(size_t(degree)) {}

  // Planes of one string with room for shifts: `words` words each.
  void pack(const uint32_t* x, int64_t n, int64_t words, uint64_t* bits) const {
    std::fill(bits, bits + planes_ * words, uint64_t(0));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t b = 0; b < planes_; ++b) bits[b * words + (i >> 6)] |= uint64_t((x[i] >> b) & 1) << (i & 63);
  }

  double operator()(const uint64_t* x, int64_t nx, int64_t x_words, const uint64_t* z, int64_t nz, int64_t z_words, const double* beta) {
    std::fill(counts_.begin(), counts_.end(), int64_t(0));
    compare(x, nx, x_words, z, nz, z_words, 0, shift_ + 1);
    for (int64_t s = 1; s <= shift_; ++s) {
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
  void compare(const uint64_t* x, int64_t nx, int64_t x_words, const uint64_t* z, int64_t nz, int64_t z_words, int64_t s, int64_t weight) {
    const int64_t n = std::min(nx - s, nz);
    if (n <= 0) return;
    const int64_t words = (n + 63) >> 6;
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
  // The string whose places are the bits; symbols below sigma. False where its table would be too large: many different symbols.
  bool set(const uint32_t* x, int64_t n, int64_t sigma) {
    n_ = n;
    blocks_ = std::max<int64_t>(1, (n + 63) / 64);
    number_.assign(size_t(sigma), 0);
    int64_t distinct = 1;  // row 0 is for symbols that x does not have
    for (int64_t i = 0; i < n; ++i)
      if (number_[x[i]] == 0) number_[x[i]] = distinct++;
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
  std::vector<uint64_t> where_, up_, down_;
};

// With other costs: one for insertions and deletions, one for substitutions.
inline double edit_distance(const uint32_t* x, int64_t n, const uint32_t* z, int64_t m, double indel, double substitution, std::vector<double>& row) {
  row.resize(size_t(m) + 1);
  for (int64_t j = 0; j <= m; ++j) row[size_t(j)] = double(j) * indel;
  for (int64_t i = 1; i <= n; ++i) {
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
