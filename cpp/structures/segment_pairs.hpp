// Segmentations whose neighbouring segments score together as wholes (see SegmentBatch in structures/segment_loops.hpp):
//
//   U(e, l, c)  all that ends with the segment [e - l, e) labelled c:   V(e - l, l, c) + starts + segment(e - l, e, c)
//   V(s, m, b)  all that comes before a segment of length m labelled b: start[b] at 0, else ⊕_{l, a} U(s, l, a) + G
//   G(l, a, m, b) at s = τ(a, b) + edges(s, a, b) + pair(s - l, s, a, b) + Σ_f pair_spans[s][l][m][f] · scores[f][a][b]
//
// with ⊕ = log Σ exp or max. O(T K² C²) steps, times the number of features, and O(T K C) memory: a state knows the length
// of its segment. States (l, c) have the number (l - 1) C + c.
#pragma once

#include "structures/segments.hpp"

namespace mercer::MERCER_ARCH {

// Y(r, j) = by_row(r) + G(r, j) + by_column(j) at boundary s, row by row; by_row and by_column may be nullptr. Rows with
// U = -inf are left out: which ones are there is in rows_. Columns of segments that go beyond the end are -inf.
inline void SegmentWorkspace::join(int64_t s, const double* by_row, const double* by_column) {
  const int N = K * C, last = longest(s), next = int(std::min<int64_t>(K, T_ - s)), g = b_.g;
  const double* U = U_.data() + s * state_stride_;
  joined_.resize(size_t(N) * state_stride_);
  rows_.clear();
  std::vector<double>& base = scratch_;
  base.resize(std::max(base.size(), size_t(C) * C));
  for (int l = shortest_; l <= last; ++l) {
    bool any = false;
    for (int a = 0; a < C; ++a) any |= U[(l - 1) * C + a] > kNegInf<double>;
    if (!any) continue;
    for (int b = 0; b < C; ++b) {
      edge_row(s, b, third_.data());
      if (pairs_) pair_row(s - l, l, b, row_.data());
      for (int a = 0; a < C; ++a) base[a * C + b] = third_[a] + (pairs_ ? row_[a] : 0.0);
    }
    const double* features = b_.pair_spans + (((begin_ + s) * K + (l - 1)) * K) * int64_t(g);
    for (int a = 0; a < C; ++a) {
      const int r = (l - 1) * C + a;
      if (!(U[r] > kNegInf<double>)) continue;
      rows_.push_back(r);
      double* y = joined_.data() + int64_t(r) * state_stride_;
      std::fill(y, y + state_stride_, kNegInf<double>);
      const double first = by_row ? by_row[r] : 0.0;
      for (int m = 0; m < next; ++m)
        for (int b = 0; b < C; ++b) {
          double score = first + base[a * C + b];
          for (int f = 0; f < g; ++f)
            score += features[int64_t(m) * g + f] * b_.pair_span_scores[(int64_t(f) * C + a) * C + b];
          y[m * C + b] = by_column ? score + by_column[m * C + b] : score;
        }
    }
  }
}

// U of all segments that start at s, whose V is given.
inline void SegmentWorkspace::extend(int64_t s, const double* V) {
  for (int l = shortest_; l <= std::min<int64_t>(K, T_ - s); ++l) {
    one_segment_row(s, l, row_.data());
    double* U = U_.data() + (s + l) * state_stride_ + (l - 1) * C;
    for (int c = 0; c < C; ++c) U[c] = V[(l - 1) * C + c] + row_[c] + start_score(s, c);
  }
}

// All U, by sums or by maxima.
inline void SegmentWorkspace::joint_states(bool sums) {
  state_stride_ = padded(K * C);
  grown(U_, (T_ + 1) * state_stride_);
  std::fill_n(U_.begin(), (T_ + 1) * state_stride_, kNegInf<double>);
  before_.assign(size_t(state_stride_), kNegInf<double>);
  for (int l = 0; l < K; ++l) std::copy_n(b_.start, C, before_.begin() + int64_t(l) * C);
  extend(0, before_.data());
  for (int64_t s = 1; s < T_; ++s) {
    join(s, U_.data() + s * state_stride_, nullptr);
    for (int64_t j = 0; j < state_stride_; j += L) {
      Vec<double> top = splat(kNegInf<double>), all{};
      for (int r : rows_) top = vmax<double>(top, load(joined_.data() + r * state_stride_ + j));
      if (sums) {
        const Vec<double> shift = top > splat(kNegInf<double>) ? top : Vec<double>{};
        for (int r : rows_) all += vexp(load(joined_.data() + r * state_stride_ + j) - shift);
        top = top > splat(kNegInf<double>) ? top + vlog(all) : top;
      }
      store(before_.data() + j, top);
    }
    extend(s, before_.data());
  }
}

// U(T) + end: what whole segmentations score, by their last segment.
inline const std::vector<double>& SegmentWorkspace::last_states() {
  finals_.assign(size_t(K) * C, kNegInf<double>);
  for (int r = 0; r < K * C; ++r) finals_[size_t(r)] = U_[T_ * state_stride_ + r] + b_.end[r % C];
  return finals_;
}

inline double SegmentWorkspace::joint_forward() {
  joint_states(true);
  const std::vector<double>& finals = last_states();
  return log_sum(finals.data(), int64_t(finals.size()));
}

// From the last boundary to the first; after(e, l, c) = log Σ of everything after [e - l, e) labelled c.
inline void SegmentWorkspace::joint_backward(double log_z, const SegmentMarginals& out) {
  grown(after_, (T_ + 1) * state_stride_);
  pair_x_.assign(size_t(K + 1) * C * S, 0.0);
  std::vector<double> shares(size_t(C) * C);
  below_.assign(size_t(2 * S), 0.0);
  const std::vector<double>& finals = last_states();
  for (int l = shortest_; l <= longest(T_); ++l) {
    double* p = below_.data();
    for (int c = 0; c < C; ++c) {
      p[c] = std::exp(finals[size_t(l - 1) * C + c] - log_z);
      own_end()[c] += p[c];
    }
    count_whole(T_ - l, l, p, out);
  }
  for (int64_t r = 0; r < int64_t(K) * C; ++r) after_[T_ * state_stride_ + r] = b_.end[r % C];
  for (int64_t e = T_ - 1; e > 0; --e) {
    std::fill(before_.begin(), before_.end(), kNegInf<double>);
    for (int m = shortest_; m <= std::min<int64_t>(K, T_ - e); ++m) {
      one_segment_row(e, m, row_.data());
      const double* tail = after_.data() + (e + m) * state_stride_ + (m - 1) * C;
      for (int c = 0; c < C; ++c) before_[size_t(m - 1) * C + c] = row_[c] + start_score(e, c) + tail[c];
    }
    join(e, nullptr, before_.data());
    double* after = after_.data() + e * state_stride_;
    std::fill(after, after + state_stride_, kNegInf<double>);
    const double* U = U_.data() + e * state_stride_;
    const int next = int(std::min<int64_t>(K, T_ - e));
    for (size_t k = 0; k < rows_.size();) {
      const int l = rows_[k] / C + 1;
      double* p = below_.data();
      std::fill(p, p + S, 0.0);
      double* y = pair_x_.data() + int64_t(l) * C * S;
      std::fill(y, y + int64_t(C) * S, 0.0);
      for (; k < rows_.size() && rows_[k] / C + 1 == l; ++k) {
        const int r = rows_[k], a = r % C;
        double* row = joined_.data() + int64_t(r) * state_stride_;
        after[r] = log_sum(row, state_stride_);
        if (!(after[r] > kNegInf<double>)) continue;
        p[a] = std::exp(U[r] + after[r] - log_z);
        for (int64_t j = 0; j < state_stride_; j += L) store(row + j, vexp(load(row + j) - splat(after[r])));
        for (int m = 0; m < next; ++m)
          for (int b = 0; b < C; ++b) y[int64_t(b) * S + a] += row[m * C + b];
        if (p[a] > 0) count_joined(e, l, a, next, p[a], row);
      }
      count_whole(e - l, l, p, out);
    }
  }
}

// Expected features of two neighbours: row holds the shares of the next segments.
inline void SegmentWorkspace::count_joined(int64_t e, int l, int a, int next, double p, const double* row) {
  const int g = b_.g;
  const double* features = b_.pair_spans + (((begin_ + e) * K + (l - 1)) * K) * int64_t(g);
  double* sums = own_pair_spans();
  for (int m = 0; m < next; ++m)
    for (int b = 0; b < C; ++b) {
      const double q = p * row[m * C + b];
      for (int f = 0; f < g; ++f) sums[(int64_t(f) * C + a) * C + b] += q * features[int64_t(m) * g + f];
    }
}

// What the probabilities p of the segment [s, s + l), one a label, add to every expectation.
inline void SegmentWorkspace::count_whole(int64_t s, int l, const double* p, const SegmentMarginals& out) {
  for (int c = 0; c < C; ++c) {
    if (!(p[c] > 0)) continue;
    length_sums_[l * S + c] += p[c];
    if (s == 0) own_start()[c] += p[c];
    if (out.starts) out.starts[(begin_ + s) * C + c] += p[c];
    for (int64_t t = begin_ + s; t < begin_ + s + l; ++t) {
      if (out.frames) out.frames[t * C + c] += p[c];
      if (out.means) out.means[t * C + c] += p[c] * inverse_[l];
    }
  }
  count_rest(s, l, p, out);
}

// Label and length of the best segment before the boundary at s, where the next one has length m and label b.
inline std::pair<int, int> SegmentWorkspace::joint_best_before(int64_t s, int m, int b) {
  join(s, U_.data() + s * state_stride_, nullptr);
  const int64_t j = int64_t(m - 1) * C + b;
  std::pair<int, int> found{-1, 0};
  double top = kNegInf<double>;
  for (int a = 0; a < C; ++a)
    for (int r : rows_) {
      if (r % C != a || !(joined_[r * state_stride_ + j] > top)) continue;
      top = joined_[r * state_stride_ + j];
      found = {a, r / C + 1};
    }
  return found;
}

inline double SegmentWorkspace::joint_best(int32_t* length, int32_t* label) {
  joint_states(false);
  const std::vector<double>& finals = last_states();
  double score = kNegInf<double>;
  int c = -1, l = 0;
  for (int a = 0; a < C; ++a)
    for (int m = 1; m <= K; ++m)
      if (finals[size_t(m - 1) * C + a] > score) {
        score = finals[size_t(m - 1) * C + a];
        c = a;
        l = m;
      }
  for (int64_t e = T_; c >= 0 && e > 0;) {
    const int64_t s = e - l;
    length[s] = l;
    label[s] = c;
    if (s > 0) std::tie(c, l) = joint_best_before(s, l, c);
    e = s;
  }
  return score;
}

inline void SegmentWorkspace::joint_k_best(int k, int32_t* length, int32_t* label, int64_t stride, double* scores) {
  joint_states(false);  // what is -inf here has no ranks
  const int64_t N = int64_t(K) * C;
  std::vector<RankedSegment> table(size_t((T_ + 1) * N) * k, {kNegInf<double>, -1, 0, 0}), heap;
  auto cell = [&](int64_t e, int64_t r) { return table.data() + (e * N + r) * k; };
  auto offer = [&](const RankedSegment& x) {
    if (x.score > kNegInf<double>) heap.push_back(x);
  };
  for (int64_t s = 0; s < T_; ++s) {
    if (s > 0) join(s, nullptr, nullptr);
    for (int l = shortest_; l <= std::min<int64_t>(K, T_ - s); ++l) {
      one_segment_row(s, l, other_.data());
      for (int c = 0; c < C; ++c) {
        const int64_t j = int64_t(l - 1) * C + c;
        const double own = other_[c] + start_score(s, c);
        RankedSegment* found = cell(s + l, j);
        if (!(own > kNegInf<double>)) continue;
        if (s == 0) {
          found[0] = {b_.start[c] + own, -1, 0, 0};
          continue;
        }
        auto with = [&](int r, int rank) {
          const double before = rank < k ? cell(s, r)[rank].score : kNegInf<double>;
          return RankedSegment{before + joined_[r * state_stride_ + j] + own, r % C, r / C + 1, rank};
        };
        heap.clear();
        for (int r : rows_) offer(with(r, 0));
        merge_ranked(
            heap, k, [&](const RankedSegment& x) { return with((x.length - 1) * C + x.label, x.rank + 1); }, found);
      }
    }
  }
  heap.clear();
  for (int64_t r = 0; r < N; ++r)
    for (int rank = 0; rank < k; ++rank)
      offer({cell(T_, r)[rank].score + b_.end[r % C], int32_t(r % C), int32_t(r / C + 1), rank});
  std::sort(heap.begin(), heap.end(), [](const RankedSegment& x, const RankedSegment& y) { return ranks_below(y, x); });
  for (int r = 0; r < k && r < int(heap.size()); ++r) {
    scores[r] = heap[r].score;
    RankedSegment at = heap[r];
    for (int64_t e = T_; e > 0;) {
      const int64_t s = e - at.length;
      length[r * stride + s] = at.length;
      label[r * stride + s] = at.label;
      at = cell(e, int64_t(at.length - 1) * C + at.label)[at.rank];
      e = s;
    }
  }
}

}  // namespace mercer::MERCER_ARCH
