// What all recursions over segmentations share: scores of lengths and neighbours in rows of whole vectors, and sums in
// the log domain.
//
// Sums are of exponentials relative to the largest of their terms; forbidden parts are exact zeros.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "structures/chain.hpp"
#include "structures/chain_paths.hpp"
#include "structures/linear.hpp"
#include "structures/segment_loops.hpp"

namespace mercer::MERCER_ARCH {

// Scores that all sequences of a batch share. Rows have S numbers: one a label, padded to whole vectors.
struct SegmentTables {
  explicit SegmentTables(const SegmentBatch& batch)
      : b(batch),
        C(batch.C),
        K(batch.K),
        S(padded(batch.C)),
        shortest(batch.K + 1),
        pairs(batch.pair_means || batch.pair_variances),
        factors(!pairs && !batch.pair_spans && !batch.means && !batch.variances && !batch.spans && !batch.mark_length &&
                !batch.cuts) {
    lengths.assign(size_t(K + 1) * S, kNegInf<double>);
    for (int l = 1; l <= K; ++l)
      for (int c = 0; c < C; ++c) {
        lengths[l * S + c] = batch.lengths[int64_t(l - 1) * C + c];
        if (lengths[l * S + c] > kNegInf<double>) shortest = std::min(shortest, l);
      }
    trans.prepare(batch.transitions, C, S);
    into.assign(size_t(C) * S, kNegInf<double>);
    from.assign(size_t(C) * S, kNegInf<double>);
    for (int a = 0; a < C; ++a)
      for (int b = 0; b < C; ++b) into[a * S + b] = from[b * S + a] = batch.transitions[a * C + b];
    if (factors) prepare_products();
  }

  const SegmentBatch& b;
  const int C, K;
  const int64_t S;
  int shortest;      // the shortest length that some label may have
  const bool pairs;  // scores of segments depend on the next label
  const bool
      factors;  // the score of a segment is a sum of one part for its start, one for its length and one for its end
  bool convolves = false;  // so is its exponential a product, within the range of numbers
  Transitions<double> trans;
  AlignedVector<double> into, from;  // transitions by the first and by the second label
  AlignedVector<double> lengths,
      length_exp;  // row l: the scores of length l; their exponentials, divided by exp(length_shift)
  double length_shift = 0.0;

 private:
  void prepare_products() {
    constexpr int L = kLanes<double>;
    double low = std::numeric_limits<double>::infinity(), high = kNegInf<double>;
    for (double x : lengths) {
      high = std::max(high, x);
      if (x > kNegInf<double>) low = std::min(low, x);
    }
    length_shift = high > kNegInf<double> ? high : 0.0;
    convolves = !(high - low > 200.0);
    length_exp.resize(lengths.size());
    for (size_t k = 0; k < lengths.size(); k += L)
      store(length_exp.data() + k, vexp(load(lengths.data() + k) - splat(length_shift)));
  }
};

// The boundaries of one sequence, and rows to work in.
class SegmentRows {
 protected:
  static constexpr int L = kLanes<double>;

  explicit SegmentRows(const SegmentTables& tables)
      : t_(tables),
        b_(tables.b),
        C(tables.C),
        K(tables.K),
        S(tables.S),
        row_(S, 0.0),
        other_(S, 0.0),
        third_(S, 0.0),
        scratch_(size_t(std::max<int64_t>(S, K + 1))) {}

  double start_score(int64_t t, int c) const { return b_.starts ? b_.starts[(begin_ + t) * C + c] : 0.0; }
  double edge_score(int64_t t, int a, int b) const {
    const double score = b_.transitions[a * C + b];
    return b_.edges ? score + b_.edges[((begin_ + t) * C + a) * C + b] : score;
  }
  void add_starts(double* row, int64_t t) const {
    for (int c = 0; b_.starts && c < C; ++c) row[c] += b_.starts[(begin_ + t) * C + c];
  }

  // τ(·, b) + edges(t, ·, b) into a padded row.
  void edge_row(int64_t t, int b, double* out) const {
    std::copy_n(t_.from.data() + int64_t(b) * S, S, out);
    if (b_.edges)
      for (int a = 0; a < C; ++a) out[a] += b_.edges[((begin_ + t) * C + a) * C + b];
  }

  // B(0): what begins the first segment.
  void begin_row(double* B) const {
    std::fill(B, B + S, kNegInf<double>);
    for (int c = 0; c < C; ++c) B[c] = b_.start[c] + start_score(0, c);
  }

  int longest(int64_t e) const { return int(std::min<int64_t>(K, e)); }

  static double largest_of(const double* x, int64_t n) {
    double top = kNegInf<double>;
    for (int64_t k = 0; k < n; ++k) top = std::max(top, x[k]);
    return top;
  }
  static double log_sum(const double* x, int64_t n) {
    const double top = largest_of(x, n);
    if (!(top > kNegInf<double>)) return top;
    double total = 0;
    for (int64_t k = 0; k < n; ++k) total += std::exp(x[k] - top);
    return top + std::log(total);
  }
  double total(const double* x) const {
    Vec<double> all{};
    for (int64_t c = 0; c < S; c += L) all += load(x + c);
    return sum<double>(all);
  }

  // exp(x - max x) over a padded row; returns the maximum.
  double exp_row(const double* x, double* out) const {
    Vec<double> most = load(x);
    for (int64_t c = L; c < S; c += L) most = vmax<double>(most, load(x + c));
    const double top = largest<double>(most), shift = top > kNegInf<double> ? top : 0.0;
    for (int64_t c = 0; c < S; c += L) store(out + c, vexp(load(x + c) - shift));
    return top;
  }

  // out[b] = log Σ_a exp(x[a] + M[a][b]) from the exponentials of M, given exp(x - top) and top = max x; a sum that is
  // nearly lost is done again with logarithms.
  void log_product(const double* x, const double* exp_x, double top, const AlignedVector<double>& M,
                   const AlignedVector<double>& by_column, double* out) {
    if (!(top > kNegInf<double>)) return std::fill(out, out + S, kNegInf<double>);
    matvec(exp_x, C, M.data(), S, third_.data());
    for (int64_t b = 0; b < S; b += L) store(out + b, vlog(load(third_.data() + b)) + (top + t_.trans.shift));
    for (int b = 0; b < C; ++b) {
      if (third_[b] > 1e-250) continue;
      for (int a = 0; a < C; ++a) scratch_[a] = x[a] + by_column[b * S + a];
      out[b] = log_sum(scratch_.data(), C);
    }
    for (int64_t b = C; b < S; ++b) out[b] = kNegInf<double>;
  }

  // B(e) = starts(e) + log Σ_c exp(A(e, c) + τ + edges); exp(A - top) and top = max A are given.
  void into(int64_t e, const double* A, const double* exp_A, double top, double* B) {
    if (!b_.edges) {
      log_product(A, exp_A, top, t_.trans.exp, t_.from, B);
    } else {
      std::fill(B, B + S, kNegInf<double>);
      for (int b = 0; b < C; ++b) {
        edge_row(e, b, row_.data());
        for (int a = 0; a < C; ++a) row_[a] += A[a];
        const double most = exp_row(row_.data(), row_.data());
        B[b] = most > kNegInf<double> ? most + std::log(total(row_.data())) : most;
      }
    }
    add_starts(B, e);
  }

  const SegmentTables& t_;
  const SegmentBatch& b_;
  const int C, K;
  const int64_t S;
  int64_t begin_ = 0, T_ = 0;
  AlignedVector<double> row_, other_, third_;
  std::vector<double> scratch_;
};

}  // namespace mercer::MERCER_ARCH
