// Segmentations of sequences (semi-Markov chains): every verb over stacked sequences (see SegmentBatch in base/dispatch.hpp
// for the score).
//
//   A(e, c)  all that ends with a segment labelled c at e:    ⊕_l  B(e - l, c) + segment(e - l, e, c)
//   B(e, c') all that begins a segment labelled c' at e:      starts(e, c') + ⊕_c  A(e, c) + τ(c, c') + edges(e, c, c')
//
// with ⊕ = log Σ exp or max. Transitions are taken once a position and lengths once a label, so a sequence takes
// O(T K C + T C²) steps; segment scores are made from prefix sums when they are needed, so the memory is O(T C + K C)
// (with back-pointers found again on the way back). Where the score of a segment depends on the label after it
// (pair scores, Φ3) B is summed over c and l at once: O(T K C²) steps. Where it depends on the whole next segment, see
// structures/segment_pairs.hpp.
// Where segments know sums of frames, their length and their boundaries alone, sums and maxima are those of
// structures/segment_sweeps.hpp.
#pragma once

#include <atomic>
#include <functional>
#include <random>
#include <tuple>

#include "structures/segment_sweeps.hpp"

namespace mercer::MERCER_ARCH {

class SegmentWorkspace : private SegmentRows {
 public:
  // Threads are for the one sequence at hand.
  SegmentWorkspace(const SegmentTables& tables, int threads)
      : SegmentRows(tables),
        threads_(threads),
        pairs_(tables.pairs),
        shortest_(tables.shortest),
        joint_(tables.b.pair_spans),
        lengths_(tables.lengths),
        swept_(tables) {
    const SegmentBatch& batch = b_;
    inverse_.assign(size_t(K) + 1, 0.0);
    for (int l = 1; l <= K; ++l) inverse_[l] = 1.0 / l;
    variances_.assign(size_t(batch.variances ? batch.d : 0) * S, 0.0);
    for (int k = 0; batch.variances && k < batch.d; ++k)
      std::copy(batch.variances + int64_t(k) * C, batch.variances + int64_t(k + 1) * C, variances_.begin() + k * S);
    pair_variances_.assign(size_t(batch.pair_variances ? batch.d : 0) * C * S, 0.0);
    for (int k = 0; batch.pair_variances && k < batch.d; ++k)
      for (int a = 0; a < C; ++a)
        for (int b = 0; b < C; ++b)
          pair_variances_[(int64_t(k) * C + b) * S + a] = batch.pair_variances[(int64_t(k) * C + a) * C + b];
    variance_.assign(size_t(batch.d), 0.0);
    x_.assign(size_t(K + 1) * S, kNegInf<double>);
    square_.assign(size_t(C) * S, kNegInf<double>);
  }

  // Marginals of sequence i; sums over sequences go to `sums` (see SegmentMarginals), which belong to the caller's
  // group.
  void marginals(int64_t i, const SegmentMarginals& out, double* sums) {
    if (place(i) == 0) {  // the empty segmentation: one of them, with score 0
      out.log_partition[i] = 0.0;
      if (out.entropy) out.entropy[i] = 0.0;
      return;
    }
    const bool convolves = t_.convolves && swept_.take(begin_, T_);
    if (!convolves) take(i);
    const double log_z = convolves ? swept_.log_partition(out.wanted(), threads_) : forward();
    out.log_partition[i] = log_z;
    if (out.entropy) out.entropy[i] = 0.0;
    if (!out.wanted()) return;
    const bool found = log_z > kNegInf<double>;
    clear(out, !found || !convolves);
    if (!found) return;
    own_.assign(size_t(b_.sums()), 0.0);
    if (convolves) {
      swept_.marginals(log_z, out, own_.data(), threads_);
    } else {
      length_sums_.assign(size_t(K + 1) * S, 0.0);
      pair_sums_.assign(size_t(C) * S, 0.0);
      if (joint_)
        joint_backward(log_z, out);
      else
        backward(log_z, out);
      take_sums();
    }
    if (out.entropy) out.entropy[i] = std::max(0.0, log_z - expected_score(out));
    if (sums)
      for (size_t k = 0; k < own_.size(); ++k) sums[k] += own_[k];
  }

  // The best segmentation: length and label where a segment starts, 0 elsewhere.
  double best(int64_t i, int32_t* length, int32_t* label) {
    place(i);
    std::fill(length, length + T_, 0);
    std::fill(label, label + T_, 0);
    if (T_ == 0) return 0.0;
    if (joint_) {
      take(i);
      return joint_best(length, label);
    }
    const bool swept = t_.factors && swept_.take(begin_, T_);
    if (swept) {
      swept_.best_forward();
    } else {
      take(i);
      best_forward();
    }
    const double* A = swept ? swept_.ending(T_) : A_.data() + T_ * S;
    int c = -1;
    double score = kNegInf<double>;
    for (int a = 0; a < C; ++a) {
      const double value = A[a] + b_.end[a];
      if (value > score) {
        score = value;
        c = a;
      }
    }
    if (c < 0) return kNegInf<double>;
    int64_t e = T_;
    int l = swept ? swept_.best_length(e, c) : best_length(e, c);
    for (;;) {
      const int64_t s = e - l;
      length[s] = l;
      label[s] = c;
      if (s == 0) return score;
      if (swept) {
        c = swept_.best_label(s, c);
        l = swept_.best_length(s, c);
      } else {
        std::tie(c, l) = best_before(s, c);
      }
      e = s;
    }
  }

  // The k best segmentations, best first; where fewer exist the score is -inf and no segment is marked.
  void k_best(int64_t i, int k, int32_t* length, int32_t* label, int64_t stride, double* scores);

  // Draws from exp(score) / Z: forward sums, then segments drawn from the last to the first.
  void sample(int64_t i, int draws, uint64_t seed, int32_t* length, int32_t* label, int64_t stride);

  // segment(s, s + l, ·) of all segments, by start and length; -inf for those that go beyond the end.
  void spans(int64_t i, double* out) {
    take(i);
    std::fill(out + begin_ * K * C, out + (begin_ + T_) * K * C, kNegInf<double>);
    for (int64_t s = 0; s < T_; ++s)
      for (int l = 1; l <= std::min<int64_t>(K, T_ - s); ++l) {
        one_segment_row(s, l, row_.data());
        std::copy_n(row_.data(), C, out + ((begin_ + s) * K + (l - 1)) * C);
      }
  }

  // The score of a segmentation given as n segments that cover the sequence.
  double score(int64_t i, const int64_t* lengths, const int32_t* labels, int64_t n) {
    take(i);
    if (T_ == 0) return 0.0;
    if (n == 0) return kNegInf<double>;
    double total = b_.start[labels[0]] + b_.end[labels[n - 1]];
    int64_t s = 0;
    for (int64_t k = 0; k < n; ++k) {
      const int c = labels[k];
      if (lengths[k] > K) return kNegInf<double>;
      const int l = int(lengths[k]);
      one_segment_row(s, l, row_.data());
      total += row_[c] + start_score(s, c);
      if (k > 0) total += edge_score(s, labels[k - 1], c);
      if (pairs_ && k + 1 < n) {
        pair_row(s, l, labels[k + 1], row_.data());
        total += row_[c];
      }
      s += l;
      if (joint_ && k + 1 < n && lengths[k + 1] <= K) {
        const double* x = b_.pair_spans + (((begin_ + s) * K + (l - 1)) * K + (lengths[k + 1] - 1)) * b_.g;
        for (int f = 0; f < b_.g; ++f) total += x[f] * b_.pair_span_scores[(int64_t(f) * C + c) * C + labels[k + 1]];
      }
    }
    return total;
  }

 private:
  static double* grown(AlignedVector<double>& x, int64_t size) { return ChainScratch<double>::grown(x, size); }

  // ------------------------------------------------------------------------------------------ scores of parts

  int64_t place(int64_t i) {
    begin_ = b_.offsets[i] - b_.offsets[0];
    return T_ = b_.offsets[i + 1] - b_.offsets[i];
  }

  // Prefix sums of sequence i. Where a frame forbids a label its score counts as 0 there, and barrier_ remembers it.
  MERCER_APART void take(int64_t i) {
    if (place(i) == 0) return;
    barrier_.clear();
    if (b_.frames) prefix(b_.frames, grown(P_, (T_ + 1) * S), true);
    if (b_.cuts) cut();
    if (b_.means) prefix(b_.means, grown(M_, (T_ + 1) * S), false);
    if (b_.pair_means) {
      double* p = grown(PM_, (T_ + 1) * C * S);
      std::fill(p, p + (T_ + 1) * C * S, 0.0);
      for (int64_t t = 0; t < T_; ++t)
        for (int a = 0; a < C; ++a)
          for (int b = 0; b < C; ++b)
            p[((t + 1) * C + b) * S + a] = p[(t * C + b) * S + a] + b_.pair_means[((begin_ + t) * C + a) * C + b];
    }
    if (b_.x && T_ > 0) moments();
  }

  void prefix(const double* scores, double* sums, bool may_forbid) {
    std::fill(sums, sums + S, 0.0);
    for (int64_t t = 0; t < T_; ++t) {
      const double* x = scores + (begin_ + t) * C;
      double *to = sums + (t + 1) * S, *from = sums + t * S;
      bool forbids = false;
      for (int c = 0; c < C; ++c) {
        to[c] = from[c] + x[c];
        forbids |= !(x[c] > kNegInf<double>);
      }
      for (int c = C; c < S; ++c) to[c] = 0.0;
      if (!may_forbid) continue;
      if (!forbids) {
        if (!barrier_.empty()) std::copy_n(barrier_.data() + t * C, C, barrier_.data() + (t + 1) * C);
        continue;
      }
      if (barrier_.empty()) barrier_.assign(size_t(T_ + 1) * C, 0);
      for (int c = 0; c < C; ++c) {
        const bool forbidden = !(x[c] > kNegInf<double>);
        if (forbidden) to[c] = from[c];
        barrier_[(t + 1) * C + c] = forbidden ? t + 1 : barrier_[t * C + c];
      }
    }
  }

  // No segment goes on where one must begin.
  void cut() {
    if (barrier_.empty()) barrier_.assign(size_t(T_ + 1) * C, 0);
    int64_t last = 0;
    for (int64_t e = 1; e <= T_; ++e) {
      if (b_.cuts[begin_ + e - 1]) last = e - 1;
      for (int c = 0; c < C; ++c) barrier_[e * C + c] = std::max(barrier_[e * C + c], last);
    }
  }

  // Prefix sums of features and their squares around the sequence's mean, on which variances do not depend.
  void moments() {
    const int64_t d = b_.d;
    double *x1 = grown(X1_, (T_ + 1) * d), *x2 = grown(X2_, (T_ + 1) * d);
    center_.assign(size_t(d), 0.0);
    for (int64_t t = 0; t < T_; ++t)
      for (int64_t k = 0; k < d; ++k) center_[k] += b_.x[(begin_ + t) * d + k];
    for (double& m : center_) m /= double(T_);
    std::fill(x1, x1 + d, 0.0);
    std::fill(x2, x2 + d, 0.0);
    for (int64_t t = 0; t < T_; ++t)
      for (int64_t k = 0; k < d; ++k) {
        const double x = b_.x[(begin_ + t) * d + k] - center_[k];
        x1[(t + 1) * d + k] = x1[t * d + k] + x;
        x2[(t + 1) * d + k] = x2[t * d + k] + x * x;
      }
  }

  // The variance of each feature over [s, s + l).
  const double* variance(int64_t s, int l) {
    const int64_t d = b_.d;
    const double *a1 = X1_.data() + s * d, *e1 = a1 + l * d, *a2 = X2_.data() + s * d, *e2 = a2 + l * d,
                 inverse = inverse_[l];
    for (int64_t k = 0; k < d; ++k) {
      const double mean = (e1[k] - a1[k]) * inverse, v = (e2[k] - a2[k]) * inverse - mean * mean;
      variance_[k] = v > 0 ? v : 0.0;
    }
    return variance_.data();
  }

  // segment(s, s + l, ·) into a padded row.
  void segment_row(int64_t s, int l, double* out) {
    const int64_t e = s + l;
    const double *from = lengths_.data() + l * S, inverse = inverse_[l];
    const double *P0 = P_.data() + s * S, *P1 = P_.data() + e * S, *M0 = M_.data() + s * S, *M1 = M_.data() + e * S;
    for (int64_t c = 0; c < S; c += L) {
      Vec<double> x = load(from + c);
      if (b_.frames) x += load(P1 + c) - load(P0 + c);
      if (b_.means) x += (load(M1 + c) - load(M0 + c)) * inverse;
      store(out + c, x);
    }
    if (b_.variances) add_combination(variance(s, l), variances_.data(), S, out);
    if (b_.spans) {
      const double* x = b_.spans + ((begin_ + s) * K + (l - 1)) * C;
      for (int c = 0; c < C; ++c) out[c] += x[c];
    }
    if (b_.mark_length && b_.mark_length[begin_ + s] == l) out[b_.mark_label[begin_ + s]] += b_.mark_score[begin_ + s];
    if (!barrier_.empty())
      for (int c = 0; c < C; ++c)
        if (s < barrier_[e * C + c]) out[c] = kNegInf<double>;
  }

  // The same for verbs that ask for few rows.
  MERCER_APART void one_segment_row(int64_t s, int l, double* out) { segment_row(s, l, out); }

  // out += Σ_k x[k] W[k]
  void add_combination(const double* x, const double* W, int64_t stride, double* out) const {
    for (int64_t c = 0; c < S; c += L) {
      Vec<double> even = load(out + c), odd{};
      int k = 0;
      for (; k + 1 < b_.d; k += 2) {
        even += x[k] * load(W + k * stride + c);
        odd += x[k + 1] * load(W + (k + 1) * stride + c);
      }
      if (k < b_.d) even += x[k] * load(W + k * stride + c);
      store(out + c, even + odd);
    }
  }

  // pair(s, s + l, ·, next) into a padded row: what a segment scores for the label after it.
  MERCER_APART void pair_row(int64_t s, int l, int next, double* out) {
    std::fill(out, out + S, 0.0);
    if (b_.pair_means) {
      const double *P0 = PM_.data() + (s * C + next) * S, *P1 = PM_.data() + ((s + l) * C + next) * S;
      for (int64_t c = 0; c < S; c += L) store(out + c, (load(P1 + c) - load(P0 + c)) * inverse_[l]);
    }
    if (b_.pair_variances)
      add_combination(variance(s, l), pair_variances_.data() + int64_t(next) * S, int64_t(C) * S, out);
  }

  // ------------------------------------------------------------------------------------------ sums

  // Column by column: log Σ_l exp x_l over rows l = first .. last; x_l becomes exp(x_l - max), third_ their sums,
  // other_ the maxima.
  void log_sum_rows(int first, int last, double* out) {
    for (int64_t c = 0; c < S; c += L) {
      Vec<double> top = splat(kNegInf<double>), total{};
      for (int l = first; l <= last; ++l) top = vmax<double>(top, load(x_.data() + l * S + c));
      const Vec<double> shift = top > splat(kNegInf<double>) ? top : Vec<double>{};
      for (int l = first; l <= last; ++l) {
        const Vec<double> y = vexp(load(x_.data() + l * S + c) - shift);
        total += y;
        store(x_.data() + l * S + c, y);
      }
      store(other_.data() + c, top);
      store(third_.data() + c, total);
      store(out + c, top > splat(kNegInf<double>) ? top + vlog(total) : top);
    }
  }

  // x_l = B(e - l) + segment(e - l, e)
  MERCER_APART void ending_rows(int64_t e) {
    for (int l = shortest_; l <= longest(e); ++l) {
      double* x = x_.data() + l * S;
      segment_row(e - l, l, x);
      const double* B = B_.data() + (e - l) * S;
      for (int64_t c = 0; c < S; c += L) store(x + c, load(x + c) + load(B + c));
    }
  }

  double forward() {
    if (joint_) return joint_forward();
    grown(A_, (T_ + 1) * S);
    grown(B_, T_ * S);
    begin_row(B_.data());
    for (int64_t e = 1; e <= T_; ++e) {
      ending_rows(e);
      if (pairs_ && e < T_) {
        for (int b = 0; b < C; ++b) B_[e * S + b] = start_score(e, b) + pair_sum(e, b);
        std::fill(B_.begin() + e * S + C, B_.begin() + (e + 1) * S, kNegInf<double>);
        continue;
      }
      double* A = A_.data() + e * S;
      log_sum_rows(shortest_, longest(e), A);
      if (e == T_) break;
      const double top = exp_row(A, other_.data());
      into(e, A, other_.data(), top, B_.data() + e * S);
    }
    for (int64_t c = 0; c < S; ++c) row_[c] = c < C ? A_[T_ * S + c] + b_.end[c] : kNegInf<double>;
    return log_sum(row_.data(), C);
  }

  // log Σ over c and l of exp(x_l(c) + pair + τ + edges) for the label b after e.
  double pair_sum(int64_t e, int b) {
    const int last = longest(e);
    if (last < shortest_) return kNegInf<double>;
    edge_row(e, b, third_.data());
    pair_x_.resize(size_t(K + 1) * S);
    double top = kNegInf<double>;
    for (int l = shortest_; l <= last; ++l) {
      double* y = pair_x_.data() + l * S;
      pair_row(e - l, l, b, y);
      for (int64_t c = 0; c < S; c += L)
        store(y + c, load(y + c) + load(x_.data() + l * S + c) + load(third_.data() + c));
      top = std::max(top, largest_of(y, S));
    }
    if (!(top > kNegInf<double>)) return top;
    Vec<double> all{};
    for (int64_t k = int64_t(shortest_) * S; k < int64_t(last + 1) * S; k += L)
      all += vexp(load(pair_x_.data() + k) - splat(top));
    return top + std::log(sum<double>(all));
  }

  // ------------------------------------------------------------------------------------------ expectations

  // The sweeps write every row of frames and starts.
  void clear(const SegmentMarginals& out, bool all) const {
    auto zero = [&](double* x, int64_t width) {
      if (x) std::fill(x + begin_ * width, x + (begin_ + T_) * width, 0.0);
    };
    if (all) zero(out.frames, C);
    zero(out.means, C);
    if (all) zero(out.starts, C);
    zero(out.edges, int64_t(C) * C);
    zero(out.pair_means, int64_t(C) * C);
    zero(out.spans, int64_t(K) * C);
  }

  // From the last position to the first; after_(e, c) = log Σ of everything after a segment labelled c that ends at e.
  void backward(double log_z, const SegmentMarginals& out) {
    grown(after_, (T_ + 1) * S);
    double* end = after_.data() + T_ * S;
    for (int64_t c = 0; c < S; ++c) end[c] = c < C ? b_.end[c] : kNegInf<double>;
    if (pairs_) {
      ring_.assign(size_t(K + 1) * C * S, kNegInf<double>);
      pair_x_.resize(size_t(K + 1) * C * S);
    }
    reach_.assign(S, 0.0);
    share_.assign(S, 0.0);
    below_.assign(size_t(2 * S), 0.0);
    if (out.means) {
      grown(mean_cover_, T_ * S);
      std::fill(mean_cover_.begin(), mean_cover_.begin() + T_ * S, 0.0);
    }
    for (int64_t s = T_ - 1; s >= 0; --s) {
      const int last = int(std::min<int64_t>(K, T_ - s));
      std::fill(cover_row(s), cover_row(s) + S, 0.0);
      for (int l = shortest_; l <= last; ++l) {
        double* x = x_.data() + l * S;
        segment_row(s, l, x);
        const double* tail = after_.data() + (s + l) * S;
        if (pairs_ && s + l < T_) tail = pair_tail(s, l);
        for (int64_t c = 0; c < S; c += L) store(x + c, load(x + c) + load(tail + c));
      }
      log_sum_rows(shortest_, last, reach_.data());
      if (last < shortest_) std::fill(reach_.begin(), reach_.end(), kNegInf<double>);
      // x_l · share = p(segment [s, s + l) labelled c)
      const double* B = B_.data() + s * S;
      for (int64_t c = 0; c < S; c += L) store(share_.data() + c, vexp(load(other_.data() + c) + load(B + c) - log_z));
      if (last >= shortest_) count_segments(s, last, out);
      if (s > 0) count_neighbours(s, log_z, out);
    }
    if (out.frames)
      for (int64_t t = 0; t < T_; ++t) std::copy_n(cover_row(t), C, out.frames + (begin_ + t) * C);
    if (out.means)
      for (int64_t t = 0; t < T_; ++t) std::copy_n(mean_cover_.data() + t * S, C, out.means + (begin_ + t) * C);
  }

  // p(label at t), where A(t + 1) was: that is no longer needed when the first segment over t is met.
  double* cover_row(int64_t t) { return A_.data() + (t + 1) * S; }

  // The padded sums in the order of SegmentBatch::sums.
  void take_sums() {
    for (int l = 1; l <= K; ++l)
      for (int c = 0; c < C; ++c) own_lengths()[int64_t(l - 1) * C + c] += length_sums_[l * S + c];
    for (int a = 0; a < C; ++a)
      for (int b = 0; b < C; ++b) own_transitions()[int64_t(a) * C + b] += pair_sums_[a * S + b];
  }

  double* own_lengths() { return own_.data(); }
  double* own_transitions() { return own_lengths() + int64_t(K) * C; }
  double* own_start() { return own_transitions() + int64_t(C) * C; }
  double* own_end() { return own_start() + C; }
  double* own_variances() { return own_end() + C; }
  double* own_pair_variances() { return own_variances() + (b_.variances ? int64_t(b_.d) * C : 0); }
  double* own_pair_spans() { return own_pair_variances() + (b_.pair_variances ? int64_t(b_.d) * C * C : 0); }
  double& own_marks() { return own_.back(); }

  // From the longest to the shortest: a position lies in all segments from s that are long enough.
  void count_segments(int64_t s, int last, const SegmentMarginals& out) {
    double *below = below_.data(), *below_mean = below_.data() + S;
    std::fill(below_.begin(), below_.end(), 0.0);
    for (int l = last; l >= 1; --l) {
      double *p = x_.data() + l * S, *sums = length_sums_.data() + l * S, *cover = cover_row(s + l - 1);
      for (int64_t c = 0; c < S; c += L) {
        if (l >= shortest_) {
          const Vec<double> q = load(p + c) * load(share_.data() + c);
          store(p + c, q);
          store(sums + c, load(sums + c) + q);
          store(below + c, load(below + c) + q);
          store(below_mean + c, load(below_mean + c) + q * inverse_[l]);
        }
        store(cover + c, load(cover + c) + load(below + c));
      }
      if (out.means) {
        double* mean = mean_cover_.data() + (s + l - 1) * S;
        for (int64_t c = 0; c < S; c += L) store(mean + c, load(mean + c) + load(below_mean + c));
      }
      if (l < shortest_) continue;
      if (s + l == T_)
        for (int c = 0; c < C; ++c) own_end()[c] += p[c];
      count_rest(s, l, p, out);
    }
    count_starts(s, out);
  }
  void count_starts(int64_t s, const SegmentMarginals& out) {
    if (out.starts)
      for (int c = 0; c < C; ++c) out.starts[(begin_ + s) * C + c] = third_[c] * share_[c];
    if (s == 0)
      for (int c = 0; c < C; ++c) own_start()[c] += third_[c] * share_[c];
  }

  // Parts that few models have: variances, segments' own scores, marks, pairs.
  void count_rest(int64_t s, int l, const double* p, const SegmentMarginals& out) {
    if (out.spans) std::copy_n(p, C, out.spans + ((begin_ + s) * K + (l - 1)) * C);
    if (b_.mark_length && b_.mark_length[begin_ + s] == l)
      own_marks() += p[b_.mark_label[begin_ + s]] * b_.mark_score[begin_ + s];
    if (b_.variances) {
      const double* v = variance(s, l);
      double* sums = own_variances();
      for (int k = 0; k < b_.d; ++k)
        for (int c = 0; c < C; ++c) sums[int64_t(k) * C + c] += v[k] * p[c];
    }
    if ((pairs_ || joint_) && s + l < T_) count_pairs(s, l, p, out);
  }

  // ------ whole neighbours: structures/segment_pairs.hpp

  void join(int64_t s, const double* by_row, const double* by_column);
  void extend(int64_t s, const double* V);
  void joint_states(bool sums);
  const std::vector<double>& last_states();
  double joint_forward();
  void joint_backward(double log_z, const SegmentMarginals& out);
  void count_joined(int64_t e, int l, int a, int next, double p, const double* row);
  void count_whole(int64_t s, int l, const double* p, const SegmentMarginals& out);
  std::pair<int, int> joint_best_before(int64_t s, int m, int b);
  double joint_best(int32_t* length, int32_t* label);
  void joint_k_best(int k, int32_t* length, int32_t* label, int64_t stride, double* scores);

  // ------ pairs: the tail of a segment depends on where it began

  // log Σ_b exp(pair(s, s + l, ·, b) + τ + edges + starts + everything after), and the shares of the b in pair_x_.
  const double* pair_tail(int64_t s, int l) {
    const double* G = ring_.data() + ((s + l) % (K + 1)) * int64_t(C) * S;
    double* y = pair_x_.data() + int64_t(l) * C * S;
    for (int b = 0; b < C; ++b) {
      pair_row(s, l, b, y + int64_t(b) * S);
      for (int64_t c = 0; c < S; c += L) store(y + b * S + c, load(y + b * S + c) + load(G + int64_t(b) * S + c));
    }
    for (int64_t c = 0; c < S; ++c) {
      double top = kNegInf<double>, all = 0.0;
      for (int b = 0; b < C; ++b) top = std::max(top, y[b * S + c]);
      if (!(top > kNegInf<double>)) {
        row_[c] = top;
        for (int b = 0; b < C; ++b) y[b * S + c] = 0.0;
        continue;
      }
      for (int b = 0; b < C; ++b) all += y[b * S + c] = std::exp(y[b * S + c] - top);
      for (int b = 0; b < C; ++b) y[b * S + c] /= all;
      row_[c] = top + std::log(all);
    }
    return row_.data();
  }

  void count_pairs(int64_t s, int l, const double* p, const SegmentMarginals& out) {
    const double* y = pair_x_.data() + int64_t(l) * C * S;
    const double* v = b_.pair_variances ? variance(s, l) : nullptr;
    const int64_t e = s + l;
    for (int a = 0; a < C; ++a)
      for (int b = 0; b < C; ++b) {
        const double q = p[a] * y[b * S + a];
        if (!(q > 0)) continue;
        own_transitions()[a * C + b] += q;
        if (out.edges) out.edges[((begin_ + e) * C + a) * C + b] += q;
        if (out.pair_means)
          for (int64_t t = s; t < e; ++t) out.pair_means[((begin_ + t) * C + a) * C + b] += q * inverse_[l];
        for (int k = 0; v && k < b_.d; ++k) own_pair_variances()[(int64_t(k) * C + a) * C + b] += q * v[k];
      }
  }

  // ------ the boundary at s: what comes after it, and who the neighbours are

  void count_neighbours(int64_t s, double log_z, const SegmentMarginals& out) {
    for (int c = 0; c < C; ++c) reach_[c] += start_score(s, c);
    double* after = after_.data() + s * S;
    if (pairs_) {
      double* G = ring_.data() + (s % (K + 1)) * int64_t(C) * S;
      for (int b = 0; b < C; ++b) {
        edge_row(s, b, G + int64_t(b) * S);
        for (int64_t c = 0; c < S; ++c) G[int64_t(b) * S + c] += reach_[b];
      }
      return;
    }
    const double* A = A_.data() + s * S;
    if (!b_.edges) {
      const double next = exp_row(reach_.data(), share_.data()), top = exp_row(A, other_.data());
      log_product(reach_.data(), share_.data(), next, t_.trans.transposed, t_.into, after);
      if (!(top > kNegInf<double>) || !(next > kNegInf<double>)) return;
      const double factor = top + next + t_.trans.shift - log_z;
      if (factor < 300.0) {
        const double scale = std::exp(factor);
        for (int a = 0; a < C; ++a) {
          const double x = other_[a] * scale;
          if (!(x > 0)) continue;
          double* sums = pair_sums_.data() + a * S;
          const double* M = t_.trans.exp.data() + a * S;
          for (int64_t b = 0; b < S; b += L)
            store(sums + b, load(sums + b) + x * load(M + b) * load(share_.data() + b));
          if (out.edges)
            for (int b = 0; b < C; ++b) out.edges[((begin_ + s) * C + a) * C + b] = x * M[b] * share_[b];
        }
        return;
      }
    }
    for (int a = 0; a < C; ++a) {
      double* x = square_.data() + int64_t(a) * S;
      for (int b = 0; b < C; ++b) x[b] = edge_score(s, a, b) + reach_[b];
      after[a] = log_sum(x, C);
      for (int b = 0; b < C; ++b) {
        if (!(A[a] > kNegInf<double>) || !(x[b] > kNegInf<double>)) continue;
        const double q = std::exp(A[a] + x[b] - log_z);
        own_transitions()[a * C + b] += q;
        if (out.edges) out.edges[((begin_ + s) * C + a) * C + b] = q;
      }
    }
    for (int64_t a = C; a < S; ++a) after[a] = kNegInf<double>;
  }

  static MERCER_APART double add_products(const double* mu, const double* theta, int64_t size, double total) {
    for (int64_t k = 0; k < size; ++k)
      if (mu[k] > 0) total += mu[k] * theta[k];
    return total;
  }
  // Σ μ θ over all parts of the sequence; 0 · (-inf) counts as 0.
  double expected_score(const SegmentMarginals& out) {
    double total = own_marks();
    auto add = [&](const double* mu, const double* theta, int64_t size) {
      if (mu && theta) total = add_products(mu, theta, size, total);
    };
    auto here = [&](const double* mu, const double* theta, int64_t width) {
      if (mu && theta) add(mu + begin_ * width, theta + begin_ * width, T_ * width);
    };
    here(out.frames, b_.frames, C);
    here(out.means, b_.means, C);
    here(out.starts, b_.starts, C);
    here(out.edges, b_.edges, int64_t(C) * C);
    here(out.pair_means, b_.pair_means, int64_t(C) * C);
    here(out.spans, b_.spans, int64_t(K) * C);
    add(own_lengths(), b_.lengths, int64_t(K) * C);
    add(own_transitions(), b_.transitions, int64_t(C) * C);
    add(own_start(), b_.start, C);
    add(own_end(), b_.end, C);
    add(own_variances(), b_.variances, int64_t(b_.d) * C);
    add(own_pair_variances(), b_.pair_variances, int64_t(b_.d) * C * C);
    for (int64_t k = 0; joint_ && k < int64_t(b_.g) * C * C; ++k) total += own_pair_spans()[k] * b_.pair_span_scores[k];
    return total;
  }

  // ------------------------------------------------------------------------------------------ maxima

  void best_forward() {
    grown(A_, (T_ + 1) * S);
    grown(B_, T_ * S);
    begin_row(B_.data());
    for (int64_t e = 1; e <= T_; ++e) {
      double* A = A_.data() + e * S;
      ending_rows(e);
      for (int64_t c = 0; c < S; c += L) {
        Vec<double> top = splat(kNegInf<double>);
        for (int l = shortest_; l <= longest(e); ++l) top = vmax<double>(top, load(x_.data() + l * S + c));
        store(A + c, top);
      }
      if (e == T_) break;
      double* B = B_.data() + e * S;
      std::fill(B, B + S, kNegInf<double>);
      if (!pairs_ && !b_.edges) {
        maxplus(A, C, t_.into.data(), S, B);
      } else {
        for (int b = 0; b < C; ++b) B[b] = pairs_ ? pair_best(e, b, nullptr) : edge_best(e, b, A, nullptr);
      }
      for (int b = 0; b < C; ++b) B[b] += start_score(e, b);
    }
  }

  // The best label of the segment that ends at e where the next one has label b.
  double edge_best(int64_t e, int b, const double* A, int* label) {
    double top = kNegInf<double>;
    for (int a = 0; a < C; ++a) {
      const double value = A[a] + edge_score(e, a, b);
      if (value > top) {
        top = value;
        if (label) *label = a;
      }
    }
    return top;
  }
  // The same with its length, where the score of that segment depends on b; x_ holds its scores otherwise.
  double pair_best(int64_t e, int b, std::pair<int, int>* found) {
    edge_row(e, b, third_.data());
    double top = kNegInf<double>;
    for (int l = shortest_; l <= longest(e); ++l) {
      pair_row(e - l, l, b, row_.data());
      for (int a = 0; a < C; ++a) {
        const double value = x_[l * S + a] + row_[a] + third_[a];
        if (value > top) {
          top = value;
          if (found) *found = {a, l};
        }
      }
    }
    return top;
  }
  int best_length(int64_t e, int c) {
    ending_rows(e);
    int found = shortest_;
    double top = kNegInf<double>;
    for (int l = shortest_; l <= longest(e); ++l)
      if (x_[l * S + c] > top) {
        top = x_[l * S + c];
        found = l;
      }
    return found;
  }
  // Label and length of the segment before the boundary at e, where the next label is b.
  std::pair<int, int> best_before(int64_t e, int b) {
    std::pair<int, int> found{0, shortest_};
    if (pairs_) {
      ending_rows(e);
      pair_best(e, b, &found);
      return found;
    }
    edge_best(e, b, A_.data() + e * S, &found.first);
    found.second = best_length(e, found.first);
    return found;
  }

  const int threads_;
  const bool pairs_;    // scores of segments depend on the next label
  const int shortest_;  // the shortest length that some label may have
  const bool joint_;    // neighbours score together as wholes
  const AlignedVector<double>& lengths_;
  SweptSegments swept_;
  AlignedVector<double> variances_, pair_variances_;
  std::vector<double> inverse_, center_, variance_, own_;
  std::vector<int64_t> barrier_;  // where segments that end at e may begin at the earliest; empty: anywhere
  AlignedVector<double> P_, M_, PM_, X1_, X2_, A_, B_, after_, x_, pair_x_, ring_, square_, reach_, share_, below_;
  AlignedVector<double> length_sums_, pair_sums_, mean_cover_;
  // of whole neighbours: rows of states (length, label)
  int64_t state_stride_ = 0;
  AlignedVector<double> U_, joined_, before_;
  std::vector<double> finals_;
  std::vector<int> rows_;
};

// A step of a ranked segmentation: its score so far, the segment before, and the rank of what came before that.
struct RankedSegment {
  double score;
  int32_t label, length, rank;
};
// For heaps with the best on top; ties in favour of low labels, short segments and low ranks.
inline bool ranks_below(const RankedSegment& x, const RankedSegment& y) {
  if (x.score != y.score) return x.score < y.score;
  if (x.label != y.label) return x.label > y.label;
  return x.length != y.length ? x.length > y.length : x.rank > y.rank;
}
// The k best of several lists, each in descending order: heap holds their first items, next(item) gives the one after
// it.
template <class Next> inline void merge_ranked(std::vector<RankedSegment>& heap, int k, Next next, RankedSegment* out) {
  std::make_heap(heap.begin(), heap.end(), ranks_below);
  for (int r = 0; r < k; ++r) {
    if (heap.empty()) {
      out[r] = {kNegInf<double>, -1, 0, 0};
      continue;
    }
    std::pop_heap(heap.begin(), heap.end(), ranks_below);
    out[r] = heap.back();
    heap.pop_back();
    const RankedSegment after = next(out[r]);
    if (!(after.score > kNegInf<double>)) continue;
    heap.push_back(after);
    std::push_heap(heap.begin(), heap.end(), ranks_below);
  }
}

inline void SegmentWorkspace::k_best(int64_t i, int k, int32_t* length, int32_t* label, int64_t stride,
                                     double* scores) {
  take(i);
  for (int r = 0; r < k; ++r) {
    std::fill(length + r * stride, length + r * stride + T_, 0);
    std::fill(label + r * stride, label + r * stride + T_, 0);
    scores[r] = T_ == 0 && r == 0 ? 0.0 : kNegInf<double>;
  }
  if (T_ == 0) return;
  if (joint_) return joint_k_best(k, length, label, stride, scores);
  std::vector<RankedSegment> table(size_t(T_) * C * k, {kNegInf<double>, -1, 0, 0}), ending(size_t(C) * k), heap;
  for (int c = 0; c < C; ++c) table[int64_t(c) * k].score = b_.start[c] + start_score(0, c);
  auto cell = [&](int64_t t, int c) { return table.data() + (t * C + c) * k; };
  auto offer = [&](const RankedSegment& x) {
    if (x.score > kNegInf<double>) heap.push_back(x);
  };
  for (int64_t e = 1; e <= T_; ++e) {
    const int last = longest(e);
    for (int l = shortest_; l <= last; ++l) one_segment_row(e - l, l, x_.data() + l * S);
    auto with = [&](int c, int l, int rank, double extra) {
      return RankedSegment{rank < k ? cell(e - l, c)[rank].score + x_[l * S + c] + extra : kNegInf<double>, c, l, rank};
    };
    if (!pairs_ || e == T_)
      for (int c = 0; c < C; ++c) {
        heap.clear();
        for (int l = shortest_; l <= last; ++l) offer(with(c, l, 0, 0.0));
        merge_ranked(
            heap, k, [&](const RankedSegment& x) { return with(c, x.length, x.rank + 1, 0.0); },
            ending.data() + int64_t(c) * k);
      }
    if (e == T_) break;
    for (int b = 0; b < C; ++b) {
      heap.clear();
      if (pairs_) {
        std::vector<double> extra(size_t(K + 1) * S);
        for (int l = shortest_; l <= last; ++l) {
          pair_row(e - l, l, b, extra.data() + l * S);
          for (int c = 0; c < C; ++c) offer(with(c, l, 0, extra[l * S + c] += edge_score(e, c, b) + start_score(e, b)));
        }
        merge_ranked(
            heap, k,
            [&](const RankedSegment& x) { return with(x.label, x.length, x.rank + 1, extra[x.length * S + x.label]); },
            cell(e, b));
        continue;
      }
      // rank is for a moment the place in the list of what ends at e, and then that of what came before the segment.
      auto ended = [&](int c, int place) {
        const double score = place < k ? ending[int64_t(c) * k + place].score : kNegInf<double>;
        return RankedSegment{score + edge_score(e, c, b) + start_score(e, b), c, 0, place};
      };
      for (int c = 0; c < C; ++c) offer(ended(c, 0));
      RankedSegment* found = cell(e, b);
      merge_ranked(heap, k, [&](const RankedSegment& x) { return ended(x.label, x.rank + 1); }, found);
      for (int r = 0; r < k && found[r].label >= 0; ++r) {
        const RankedSegment& segment = ending[int64_t(found[r].label) * k + found[r].rank];
        found[r].length = segment.length;
        found[r].rank = segment.rank;
      }
    }
  }
  heap.clear();
  for (int c = 0; c < C; ++c)
    for (int r = 0; r < k; ++r) {
      RankedSegment x = ending[int64_t(c) * k + r];
      if (x.label < 0) break;
      x.score += b_.end[c];
      offer(x);
    }
  std::sort(heap.begin(), heap.end(), [](const RankedSegment& x, const RankedSegment& y) { return ranks_below(y, x); });
  for (int r = 0; r < k && r < int(heap.size()); ++r) {
    scores[r] = heap[r].score;
    RankedSegment at = heap[r];
    for (int64_t e = T_;;) {
      const int64_t s = e - at.length;
      length[r * stride + s] = at.length;
      label[r * stride + s] = at.label;
      if (s == 0) break;
      at = cell(s, at.label)[at.rank];
      e = s;
    }
  }
}

inline void SegmentWorkspace::sample(int64_t i, int draws, uint64_t seed, int32_t* length, int32_t* label,
                                     int64_t stride) {
  take(i);
  for (int r = 0; r < draws; ++r) {
    std::fill(length + r * stride, length + r * stride + T_, 0);
    std::fill(label + r * stride, label + r * stride + T_, 0);
  }
  if (T_ == 0 || !(forward() > kNegInf<double>)) return;
  std::seed_seq seq{uint32_t(seed), uint32_t(seed >> 32), uint32_t(i), uint32_t(uint64_t(i) >> 32)};
  std::mt19937_64 random(seq);
  std::vector<double> weights;
  auto draw = [&]() {  // a place in weights, which are logarithms
    const double top = largest_of(weights.data(), int64_t(weights.size()));
    double total = 0, running = 0;
    for (double& x : weights) total += x = std::exp(x - top);
    const double u = double(random() >> 11) * 0x1p-53 * total;
    int chosen = 0;
    for (int k = 0; k < int(weights.size()); ++k) {
      if (!(weights[k] > 0)) continue;
      running += weights[k];
      chosen = k;
      if (u < running) break;
    }
    return chosen;
  };
  auto draw_length = [&](int64_t e, int c) {
    ending_rows(e);
    weights.assign(size_t(longest(e)), kNegInf<double>);
    for (int l = shortest_; l <= longest(e); ++l) weights[l - 1] = x_[l * S + c];
    return draw() + 1;
  };
  for (int r = 0; joint_ && r < draws; ++r) {
    weights = last_states();
    int chosen = draw();
    for (int64_t e = T_;;) {
      const int c = chosen % C, l = chosen / C + 1;
      const int64_t s = e - l;
      length[r * stride + s] = l;
      label[r * stride + s] = c;
      if (s == 0) break;
      join(s, U_.data() + s * state_stride_, nullptr);
      weights.clear();
      for (int row : rows_) weights.push_back(joined_[row * state_stride_ + chosen]);
      chosen = rows_[size_t(draw())];
      e = s;
    }
  }
  for (int r = 0; !joint_ && r < draws; ++r) {
    weights.assign(size_t(C), 0.0);
    for (int c = 0; c < C; ++c) weights[c] = A_[T_ * S + c] + b_.end[c];
    int c = draw(), l = draw_length(T_, c);
    for (int64_t e = T_;;) {
      const int64_t s = e - l;
      length[r * stride + s] = l;
      label[r * stride + s] = c;
      if (s == 0) break;
      if (pairs_) {
        ending_rows(s);
        const int next = c;
        weights.assign(size_t(longest(s)) * C, kNegInf<double>);
        for (int k = shortest_; k <= longest(s); ++k) {
          pair_row(s - k, k, next, row_.data());
          for (int a = 0; a < C; ++a) weights[(k - 1) * C + a] = x_[k * S + a] + row_[a] + edge_score(s, a, next);
        }
        const int chosen = draw();
        l = chosen / C + 1;
        c = chosen % C;
      } else {
        const int next = c;
        weights.assign(size_t(C), 0.0);
        for (int a = 0; a < C; ++a) weights[a] = A_[s * S + a] + edge_score(s, a, next);
        c = draw();
        l = draw_length(s, c);
      }
      e = s;
    }
  }
}

// Runs work(workspace, group begin, group end, group) over groups of sequences, as for chains. A thread has one
// workspace and takes the next group when it is done with one; where there is one group, its sequences have all
// threads.
using SegmentWork = std::function<void(SegmentWorkspace&, int64_t begin, int64_t end, int64_t group)>;
inline void for_segment_groups(const SegmentBatch& batch, int threads, const SegmentWork& work) {
  const std::vector<int64_t> starts = groups_of(batch.offsets, batch.n);
  const int64_t n_groups = int64_t(starts.size()) - 1;
  const SegmentTables tables(batch);
  std::atomic<int64_t> next{0};
  in_parallel(std::min<int64_t>(n_groups, threads), threads, [&](int64_t) {
    SegmentWorkspace space(tables, n_groups == 1 ? threads : 1);
    for (int64_t g = next++; g < n_groups; g = next++) work(space, starts[g], starts[g + 1], g);
  });
}

inline void segment_marginals(const SegmentBatch& batch, const SegmentMarginals& out, int threads) {
  const int64_t size = out.sums ? batch.sums() : 0;
  const int64_t n_groups = int64_t(groups_of(batch.offsets, batch.n).size()) - 1;
  std::vector<double> sums(size_t(n_groups * size), 0.0);
  for_segment_groups(batch, threads, [&](SegmentWorkspace& space, int64_t begin, int64_t end, int64_t g) {
    for (int64_t i = begin; i < end; ++i) space.marginals(i, out, size ? sums.data() + g * size : nullptr);
  });
  for (int64_t g = 0; g < n_groups; ++g)
    for (int64_t k = 0; k < size; ++k) out.sums[k] += sums[size_t(g * size + k)];
}

inline void segment_best(const SegmentBatch& batch, int32_t* length, int32_t* label, double* score, int threads) {
  for_segment_groups(batch, threads, [&](SegmentWorkspace& space, int64_t begin, int64_t end, int64_t) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = batch.offsets[i] - batch.offsets[0];
      score[i] = space.best(i, length + at, label + at);
    }
  });
}

inline void segment_k_best(const SegmentBatch& batch, int k, int32_t* length, int32_t* label, double* score,
                           int threads) {
  const int64_t stride = batch.offsets[batch.n] - batch.offsets[0];
  for_segment_groups(batch, threads, [&](SegmentWorkspace& space, int64_t begin, int64_t end, int64_t) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = batch.offsets[i] - batch.offsets[0];
      space.k_best(i, k, length + at, label + at, stride, score + i * k);
    }
  });
}

inline void segment_sample(const SegmentBatch& batch, int draws, uint64_t seed, int32_t* length, int32_t* label,
                           int threads) {
  const int64_t stride = batch.offsets[batch.n] - batch.offsets[0];
  for_segment_groups(batch, threads, [&](SegmentWorkspace& space, int64_t begin, int64_t end, int64_t) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = batch.offsets[i] - batch.offsets[0];
      space.sample(i, draws, seed, length + at, label + at, stride);
    }
  });
}

inline void segment_spans(const SegmentBatch& batch, double* out, int threads) {
  for_segment_groups(batch, threads, [&](SegmentWorkspace& space, int64_t begin, int64_t end, int64_t) {
    for (int64_t i = begin; i < end; ++i) space.spans(i, out);
  });
}

// Segments of sequence i: firsts[i] .. firsts[i + 1].
inline void segment_score(const SegmentBatch& batch, const int64_t* lengths, const int32_t* labels,
                          const int64_t* firsts, double* score, int threads) {
  for_segment_groups(batch, threads, [&](SegmentWorkspace& space, int64_t begin, int64_t end, int64_t) {
    for (int64_t i = begin; i < end; ++i)
      score[i] = space.score(i, lengths + firsts[i], labels + firsts[i], firsts[i + 1] - firsts[i]);
  });
}

}  // namespace mercer::MERCER_ARCH
