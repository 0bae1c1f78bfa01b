// Segmentations whose segments know sums of frames, their length and their boundaries alone. The score of a segment is
// then a product of three factors,
//   exp segment(s, e, c) = exp -P(s, c) · exp lengths(e - s, c) · exp P(e, c)         P: prefix sums of frames
// so what ends at a boundary is a convolution of what opens before it, without an exponential for each length:
//
//   forward    A'(e) = ⊕_l B'(e - l) + lengths(l)        A = A' + P        B' = B - P
//   backward   R'(s) = ⊕_l E'(s + l) + lengths(l)        R = R' - P + starts        E' = E + P
//
// B(e) follows from A(e) and E(s) from R(s) by the transitions; E(s, c) is all that comes after a segment labelled c
// that ends at s. Terms of sums are kept relative to a reference for each label, which moves along; sums that come out
// too small are done again with logarithms.
//
// A sweep keeps a window of K rows of each. The rows that the other direction needs to count expectations are stored,
// for a sequence [0, T) with a middle m: those of the forward sweep up to m, those of the backward sweep from there on.
// Then both go on through the other's half and count segments by their shares in Z, which is known at m:
//   Z = Σ_c exp(B'(m, c) + R'(m, c)) + Σ_{s < m < e} exp(B'(s) + lengths(e - s) + E'(e))
// Segments that begin before m are counted by the backward sweep, all others by the forward one. The two sweeps need no
// more of each other than that, so they may have a thread each. A short sequence has m = T; m depends on the sequence
// alone, so the results do not depend on the threads.
#pragma once

#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "structures/segment_rows.hpp"

namespace mercer::MERCER_ARCH {

// Memory without first values. A large piece asks for large pages: the first touch of a small one costs more than the
// work on it.
class RawRows {
 public:
  RawRows() = default;
  RawRows(const RawRows&) = delete;
  RawRows& operator=(const RawRows&) = delete;
  ~RawRows() { release(); }

  double* grown(int64_t size) {
    if (size > size_) {
      release();
      constexpr size_t page = size_t(1) << 21;
      const size_t bytes = size_t(size) * sizeof(double);
      align_ = std::align_val_t(bytes >= 2 * page ? page : 64);
      data_ = static_cast<double*>(::operator new(bytes, align_));
      size_ = size;
#if defined(MADV_HUGEPAGE)
      if (bytes >= 2 * page) madvise(data_, bytes / page * page, MADV_HUGEPAGE);
#endif
    }
    return data_;
  }
  int64_t size() const { return size_; }
  void release() {
    if (data_) ::operator delete(data_, align_);
    data_ = nullptr;
    size_ = 0;
  }

 private:
  double* data_ = nullptr;
  int64_t size_ = 0;
  std::align_val_t align_{64};
};

// Rows t of a sequence, of which the newest `reach` are kept; D = 1: t ascends, D = -1: t descends.
template <int D> class Window {
 public:
  void begin(int64_t t, int64_t reach, int64_t S) {
    reach_ = reach;
    S_ = S;
    rows_ = 2 * reach + 16;
    if (int64_t(data_.size()) < rows_ * S) data_.resize(size_t(rows_ * S));
    base_ = D > 0 ? t : t - rows_ + 1;
  }
  double* row(int64_t t) { return data_.data() + (t - base_) * S_; }
  const double* row(int64_t t) const { return data_.data() + (t - base_) * S_; }
  // Room for row t, which follows the newest one.
  double* enter(int64_t t) {
    if (D > 0 && t - base_ == rows_) {
      std::copy_n(row(t - reach_), reach_ * S_, data_.data());
      base_ = t - reach_;
    } else if (D < 0 && t < base_) {
      const double* kept = row(t + 1);
      base_ = t + reach_ + 1 - rows_;
      std::copy_backward(kept, kept + reach_ * S_, data_.data() + rows_ * S_);
    }
    return row(t);
  }

 private:
  AlignedVector<double> data_;
  int64_t base_ = 0, reach_ = 0, rows_ = 0, S_ = 0;
};

// Prefix sums of frames: one row is kept for every block of positions, the others are made from it when they are asked
// for, always by the same additions.
class PrefixSums {
 public:
  explicit PrefixSums(const SegmentTables& tables) : b_(tables.b), C(tables.C), S(tables.S) {}

  // False where a frame forbids a label: such sums have no difference.
  bool take(int64_t begin, int64_t T) {
    begin_ = begin;
    T_ = T;
    if (!b_.frames) return true;
    bases_.resize(size_t(T / kBlock + 1) * S);
    row_.assign(size_t(S), 0.0);
    bool sound = true;
    for (int64_t t = 0; t < T; ++t) {
      if (t % kBlock == 0) std::copy(row_.begin(), row_.end(), bases_.begin() + t / kBlock * S);
      const double* x = b_.frames + (begin_ + t) * C;
      for (int c = 0; c < C; ++c) {
        sound &= x[c] > kNegInf<double>;
        row_[c] += x[c];
      }
    }
    if (T % kBlock == 0) std::copy(row_.begin(), row_.end(), bases_.begin() + T / kBlock * S);
    return sound;
  }

  // The rows of one block at a time, for one sweep.
  struct Reader {
    AlignedVector<double> rows;
    int64_t block = -1;
  };
  // P(t), nullptr where there are no frames.
  const double* row(int64_t t, Reader& reader) const {
    if (!b_.frames) return nullptr;
    const int64_t block = t / kBlock;
    if (block != reader.block) fill(block, reader);
    return reader.rows.data() + t % kBlock * S;
  }

 private:
  static constexpr int64_t kBlock = 64;

  void fill(int64_t block, Reader& reader) const {
    reader.block = block;
    reader.rows.resize(size_t(kBlock * S));
    std::copy_n(bases_.data() + block * S, S, reader.rows.data());
    const int64_t last = std::min(kBlock - 1, T_ - block * kBlock);
    for (int64_t k = 0; k < last; ++k) {
      const double *x = b_.frames + (begin_ + block * kBlock + k) * C, *from = reader.rows.data() + k * S;
      double* to = reader.rows.data() + (k + 1) * S;
      for (int c = 0; c < C; ++c) to[c] = from[c] + x[c];
      for (int64_t c = C; c < S; ++c) to[c] = 0.0;
    }
  }

  const SegmentBatch& b_;
  const int C;
  const int64_t S;
  int64_t begin_ = 0, T_ = 0;
  AlignedVector<double> bases_, row_;
};

// What the sweeps of one sequence leave for each other: open(t) is B'(t) up to m and E'(t) beyond, closed(t) A'(t) and
// R'(t). Each thread keeps its own from call to call, but gives back what one very long sequence needed.
struct StoredRows {
  int64_t T = 0, m = 0, S = 0;
  RawRows opens, closes;

  static StoredRows& mine() {
    static thread_local StoredRows rows;
    return rows;
  }
  void trim() {
    for (RawRows* rows : {&opens, &closes})
      if (rows->size() > (int64_t(1) << 21)) rows->release();
  }

  void begin(int64_t positions, int64_t middle, int64_t width) {
    T = positions;
    m = middle;
    S = width;
    open_ = opens.grown((T + 1) * S);
    closed_ = closes.grown((T + 1) * S);
  }
  double* open(int64_t t) { return open_ + t * S; }
  double* closed(int64_t t) { return closed_ + t * S; }

 private:
  double *open_ = nullptr, *closed_ = nullptr;
};

// One direction: D = 1 from the first position to the last, D = -1 from the last to the first.
template <int D> class Sweep : private SegmentRows {
 public:
  Sweep(const SegmentTables& tables, const PrefixSums& prefixes)
      : SegmentRows(tables),
        prefixes_(prefixes),
        closed_(S),
        real_(S),
        exp_(S),
        share_(S),
        reference_(S),
        padding_(S, 0.0) {
    for (int64_t c = C; c < S; ++c) padding_[c] = 1.0;
  }

  // Before the first step, at boundary 0 or T.
  void begin(int64_t begin, int64_t T) {
    begin_ = begin;
    T_ = T;
    reader_.block = -1;
    const int64_t t = D > 0 ? 0 : T;
    reach_ = int(std::min<int64_t>(K, T));
    open_.begin(t, reach_, S);
    exps_.begin(t, reach_, S);
    double* x = open_.enter(t);
    if (D > 0) {
      begin_row(x);
    } else {
      for (int64_t c = 0; c < S; ++c) x[c] = c < C ? b_.end[c] : kNegInf<double>;
      add_prefix(x, T, 1.0);
    }
    for (int64_t c = 0; c < S; ++c) reference_[c] = x[c] > kNegInf<double> ? x[c] : 0.0;
  }

  const double* open(int64_t t) const { return open_.row(t); }
  const double* closed() const { return closed_.data(); }  // of the last step

  // Up to and including boundary `to`, from the one after `from`; rows are left in `stored` where given.
  void run(int64_t from, int64_t to, StoredRows* stored) {
    if (stored && D > 0) std::copy_n(open_.row(from), S, stored->open(from));
    if (stored && D < 0 && from > stored->m) std::copy_n(open_.row(from), S, stored->open(from));
    for (int64_t t = from + D; D > 0 ? t <= to : t >= to; t += D) {
      close(t);
      const bool inner = t > 0 && t < T_;
      if (inner) reopen(t);
      if (!stored || (D < 0 && t == stored->m)) continue;  // the rows of m belong to the forward sweep
      std::copy_n(closed_.data(), S, stored->closed(t));
      if (inner) std::copy_n(open_.row(t), S, stored->open(t));
    }
  }

  // log Z, by what this (forward) sweep has before m and the backward one has from there on.
  double log_partition(int64_t m, const Sweep<-D>& other) {
    if (m == T_) {
      std::copy_n(closed_.data(), S, row_.data());
      add_prefix(row_.data(), T_, 1.0);
      for (int c = 0; c < C; ++c) row_[c] += b_.end[c];
      return log_sum(row_.data(), C);
    }
    std::vector<double> terms;
    for (int c = 0; c < C; ++c) terms.push_back(open_.row(m)[c] + other.closed()[c]);
    for (int64_t e = m + 1; e <= std::min<int64_t>(T_, m + K - 1); ++e) {
      const int first = std::max<int64_t>(t_.shortest, e - m + 1), last = longest(e);
      if (first > last) continue;
      convolve(e, first, last, row_.data());
      for (int c = 0; c < C; ++c) terms.push_back(row_[c] + other.open(e)[c]);
    }
    return log_sum(terms.data(), int64_t(terms.size()));
  }

  // ------ expectations

  // Before the first counted step: sums at 0, and, for the backward sweep, room for segments that go beyond m.
  void begin_counting(int64_t m, double log_z) {
    log_z_ = log_z;
    lengths_.assign(size_t(K + 1) * S, 0.0);
    pairs_.assign(size_t(C) * S, 0.0);
    transitions_.assign(size_t(C) * C, 0.0);
    lefts_.resize(size_t(kPairs * S));
    rights_.resize(size_t(kPairs * S));
    n_pairs_ = 0;
    const int64_t beyond = D > 0 ? m : std::min<int64_t>(T_, m + K - 1) - 1;
    cover_.begin(beyond, reach_, S);
    for (int64_t t = beyond; D < 0 && t >= m; --t) std::fill_n(cover_.enter(t), S, 0.0);
  }

  // On through the other sweep's half. The backward sweep also counts the boundary m.
  void count(StoredRows& stored, const SegmentMarginals& out) {
    const int64_t m = stored.m;
    if (D < 0 && m < T_) count_boundary(m, stored, out);
    for (int64_t t = D > 0 ? m + 1 : m - 1; D > 0 ? t <= T_ : t >= 0; t += D) {
      close(t);
      count_segments(t, D > 0 ? std::min<int64_t>(longest(t), t - m) : longest(T_ - t), stored.open(t), out);
      if (t > 0 && t < T_) reopen(t);
      if (t < T_) count_boundary(t, stored, out);
      settle(t, m, out);
    }
    flush_pairs();
    for (int a = 0; a < C; ++a)
      for (int b = 0; b < C; ++b) transitions_[int64_t(a) * C + b] += pairs_[a * S + b] * t_.trans.exp[a * S + b];
  }

  // p(label) of positions from m on, as far as segments that begin before m cover them.
  const double* beyond(int64_t t, int64_t m) const { return spill_.data() + (t - m) * S; }
  // The sums of what was counted; p(last label) or p(first label), where the sweep has arrived.
  void add_sums(double* lengths, double* transitions) const {
    for (int l = 1; l <= K; ++l)
      for (int c = 0; c < C; ++c) lengths[int64_t(l - 1) * C + c] += lengths_[l * S + c];
    for (int64_t k = 0; k < int64_t(C) * C; ++k) transitions[k] += transitions_[size_t(k)];
  }
  void add_ends(double log_z, double* labels) {
    if (D > 0)
      std::copy_n(b_.end, C, row_.data());
    else
      begin_row(row_.data());
    add_prefix(row_.data(), D > 0 ? T_ : 0, D);
    for (int c = 0; c < C; ++c) labels[c] += std::exp(closed_[c] + row_[c] - log_z);
  }

 private:
  static constexpr int64_t kPairs = 32;

  void add_prefix(double* row, int64_t t, double sign) {
    const double* P = prefixes_.row(t, reader_);
    for (int64_t c = 0; P && c < S; c += L) store(row + c, load(row + c) + sign * load(P + c));
  }

  // ------ one step: what closes at t, and what opens there

  void close(int64_t t) {
    const int last = longest(D > 0 ? t : T_ - t);
    newest_ = t - D;
    oldest_ = t - D * int64_t(last);
    enter();
    convolve(t, t_.shortest, last, closed_.data());
  }

  void reopen(int64_t t) {
    std::copy_n(closed_.data(), S, real_.data());
    add_prefix(real_.data(), t, D);
    if (D < 0) add_starts(real_.data(), t);
    top_ = exp_row(real_.data(), exp_.data());
    double* x = open_.enter(t);
    if (D > 0)
      into(t, real_.data(), exp_.data(), top_, x);
    else
      before(t, x);
    add_prefix(x, t, -D);
  }

  // E(t, a) = log Σ_b exp(τ(a, b) + edges(t, a, b) + R(t, b))
  void before(int64_t t, double* E) {
    if (!b_.edges) return log_product(real_.data(), exp_.data(), top_, t_.trans.transposed, t_.into, E);
    for (int a = 0; a < C; ++a) {
      for (int b = 0; b < C; ++b) scratch_[b] = edge_score(t, a, b) + real_[b];
      E[a] = log_sum(scratch_.data(), C);
    }
    for (int64_t a = C; a < S; ++a) E[a] = kNegInf<double>;
  }

  // The exponentials of the newest row, relative to the references; a label that has gone far beyond its reference gets
  // a new one.
  void enter() {
    const double* x = open_.row(newest_);
    double* g = exps_.enter(newest_);
    Vec<double> most = splat(kNegInf<double>);
    for (int64_t c = 0; c < S; c += L) {
      const Vec<double> y = load(x + c) - load(reference_.data() + c);
      most = vmax<double>(most, y);
      store(g + c, vexp(y < splat(100.0) ? y : splat(100.0)));
    }
    if (!(largest<double>(most) > 100.0)) return;
    for (int c = 0; c < C; ++c)
      if (x[c] - reference_[c] > 100.0) refer(c);
  }
  // A new reference for label c: the largest of the rows from the oldest to the newest.
  void refer(int c) {
    double top = kNegInf<double>;
    for (int64_t t = oldest_; t != newest_ + D; t += D) top = std::max(top, open_.row(t)[c]);
    if (!(top > kNegInf<double>)) return;
    reference_[c] = top;
    for (int64_t t = oldest_; t != newest_ + D; t += D) exps_.row(t)[c] = std::exp(open_.row(t)[c] - top);
  }

  // third_ = Σ_l exp lengths(l) exps(t - D l), and their logarithms into out, for lengths first .. last.
  // Labels whose sum is nearly lost are listed in lost_: out has their logarithms, third_ is 0.
  void convolve(int64_t t, int first, int last, double* out) {
    lost_.clear();
    Vec<double> least = splat(1.0);
    for (int64_t c = 0; c < S; c += L) {
      Vec<double> even{}, odd{};
      const double *w = t_.length_exp.data() + c, *g = last < first ? w : exps_.row(t - D * int64_t(first)) + c;
      int l = first;
      for (; l < last; l += 2, g -= 2 * D * S) {
        even += load(w + l * S) * load(g);
        odd += load(w + (l + 1) * S) * load(g - D * S);
      }
      if (l == last) even += load(w + l * S) * load(g);
      const Vec<double> all = even + odd, real = all + load(padding_.data() + c);
      least = least < real ? least : real;
      store(third_.data() + c, all);
      const Vec<double> logs = vlog(real) + load(reference_.data() + c) + splat(t_.length_shift);
      store(out + c, all > Vec<double>{} ? logs : splat(kNegInf<double>));
    }
    if (-largest<double>(-least) > 1e-60) return;
    for (int c = 0; c < C; ++c)
      if (!(third_[c] > 1e-60)) convolve_one(t, first, last, c, out);
  }
  void convolve_one(int64_t t, int first, int last, int c, double* out) {
    third_[c] = 0.0;
    out[c] = kNegInf<double>;
    if (last < first) return;
    for (int l = first; l <= last; ++l) scratch_[l] = t_.lengths[l * S + c] + open_.row(t - D * int64_t(l))[c];
    out[c] = log_sum(scratch_.data() + first, last - first + 1);
    if (!(out[c] > kNegInf<double>)) return;
    refer(c);
    double all = 0.0;
    for (int l = first; l <= last; ++l) all += t_.length_exp[l * S + c] * exps_.row(t - D * int64_t(l))[c];
    if (all > 1e-60)
      third_[c] = all;
    else
      lost_.push_back(c);
  }

  // ------ counting

  // The position that a segment from or to t covers last, seen from t, if it has l positions.
  static int64_t position(int64_t t, int l) { return D > 0 ? t - l : t + l - 1; }
  static int64_t start_of(int64_t t, int l) { return D > 0 ? t - l : t; }

  // Segments between t and the rows of the window, of up to `last` positions: p = exp lengths(l) exps(t - D l) share.
  // A position lies in all of them that are long enough, so they are taken from the longest to the shortest.
  void count_segments(int64_t t, int last, const double* others, const SegmentMarginals& out) {
    std::fill_n(cover_.enter(position(t, 1)), S, 0.0);
    for (int64_t c = 0; c < S; c += L) {  // what has no sum (or a lost one) has no share either
      const Vec<double> logs = load(others + c) + load(reference_.data() + c) + (t_.length_shift - log_z_),
                        most = splat(700.0);
      const Vec<double> share = vexp(logs < most ? logs : most);  // beyond the range of exp only where it has none
      store(share_.data() + c, load(third_.data() + c) > Vec<double>{} ? share : Vec<double>{});
    }
    for (int64_t c = 0; c < S; c += L) {
      const Vec<double> share = load(share_.data() + c);
      Vec<double> below{};
      const double *g = exps_.row(t - D * int64_t(last)) + c, *w = t_.length_exp.data() + c;
      double *sums = lengths_.data() + c, *cover = cover_.row(position(t, last)) + c;
      int l = last;
      for (; l >= t_.shortest; --l, g += D * S, cover += D * S) {
        const Vec<double> p = load(w + l * S) * load(g) * share;
        below += p;
        store(sums + l * S, load(sums + l * S) + p);
        store(cover, load(cover) + below);
      }
      for (; l >= 1; --l, cover += D * S) store(cover, load(cover) + below);
    }
    if (out.spans)
      for (int l = t_.shortest; l <= last; ++l)
        for (int c = 0; c < C; ++c)
          out.spans[((begin_ + start_of(t, l)) * K + (l - 1)) * C + c] =
              t_.length_exp[l * S + c] * exps_.row(t - D * int64_t(l))[c] * share_[c];
    for (int c : lost_) count_lost(t, last, c, others[c], out);
  }
  // The same for a label whose products are below the range of a double: term by term.
  void count_lost(int64_t t, int last, int c, double other, const SegmentMarginals& out) {
    double below = 0.0;
    for (int l = last; l >= 1; --l) {
      const double x =
          l >= t_.shortest ? other + t_.lengths[l * S + c] + open_.row(t - D * int64_t(l))[c] : kNegInf<double>;
      const double p = x > kNegInf<double> ? std::exp(x - log_z_) : 0.0;
      below += p;
      lengths_[l * S + c] += p;
      cover_.row(position(t, l))[c] += below;
      if (out.spans) out.spans[((begin_ + start_of(t, l)) * K + (l - 1)) * C + c] = p;
    }
  }

  // Segments that start at t, and the labels on both sides of it.
  void count_boundary(int64_t t, StoredRows& stored, const SegmentMarginals& out) {
    const double *B = D > 0 ? open_.row(t) : stored.open(t), *R = D > 0 ? stored.closed(t) : closed_.data();
    if (out.starts) {
      for (int64_t c = 0; c < S; c += L) store(row_.data() + c, vexp(load(B + c) + load(R + c) - log_z_));
      std::copy_n(row_.data(), C, out.starts + (begin_ + t) * C);
    }
    if (t == 0) return;
    double* theirs = other_.data();  // A or R of the other sweep, whichever this one does not have
    std::copy_n(stored.closed(t), S, theirs);
    add_prefix(theirs, t, -D);
    if (D > 0) add_starts(theirs, t);
    const double *A = D > 0 ? real_.data() : theirs, *after = D > 0 ? theirs : real_.data();
    if (b_.edges) return count_pairs(t, A, after, out);
    double *left = lefts_.data() + n_pairs_ * S, *right = rights_.data() + n_pairs_ * S;
    double* mine = D > 0 ? left : right;
    const double top = exp_row(theirs, D > 0 ? right : left);
    if (!(top > kNegInf<double>) || !(top_ > kNegInf<double>)) return;
    const double factor = top + top_ + t_.trans.shift - log_z_;
    if (!(factor < 300.0)) return count_pairs(t, A, after, out);
    const double scale = std::exp(factor);
    for (int64_t c = 0; c < S; c += L) store(mine + c, scale * load(exp_.data() + c));
    for (int a = 0; out.edges && a < C; ++a)
      for (int b = 0; b < C; ++b)
        out.edges[((begin_ + t) * C + a) * C + b] = left[a] * t_.trans.exp[a * S + b] * right[b];
    if (++n_pairs_ == kPairs) flush_pairs();
  }
  // Products of rows that wait, all at once.
  void flush_pairs() {
    outer(lefts_.data(), rights_.data(), n_pairs_, C, S, pairs_.data());
    n_pairs_ = 0;
  }
  void count_pairs(int64_t t, const double* A, const double* after, const SegmentMarginals& out) {
    for (int a = 0; a < C; ++a)
      for (int b = 0; b < C; ++b) {
        const double score = A[a] + edge_score(t, a, b) + after[b];
        if (!(score > kNegInf<double>)) continue;
        const double p = std::exp(score - log_z_);
        transitions_[int64_t(a) * C + b] += p;
        if (out.edges) out.edges[((begin_ + t) * C + a) * C + b] = p;
      }
  }

  // Positions that no further segment will cover.
  void settle(int64_t t, int64_t m, const SegmentMarginals& out) {
    if (D > 0) {
      const int64_t end = t == T_ ? T_ : t - K + 1;
      for (int64_t k = std::max(m, t - K); k < end; ++k) write(k, out);
      return;
    }
    const int64_t end = std::min<int64_t>(t + K, std::min<int64_t>(T_, m + K - 1));
    for (int64_t k = t == 0 ? 0 : t + K - 1; k < end; ++k) {
      if (k < m) {
        write(k, out);
        continue;
      }
      spill_.resize(size_t(reach_) * S);
      std::copy_n(cover_.row(k), S, spill_.data() + (k - m) * S);
    }
  }
  void write(int64_t k, const SegmentMarginals& out) const {
    if (out.frames) std::copy_n(cover_.row(k), C, out.frames + (begin_ + k) * C);
  }

  const PrefixSums& prefixes_;
  PrefixSums::Reader reader_;
  Window<D> open_, exps_;  // B' or E', and their exponentials relative to reference_
  Window<D> cover_;        // p(label) of positions
  AlignedVector<double> closed_, real_, exp_, share_, reference_, padding_, lengths_, pairs_, lefts_, rights_, spill_;
  std::vector<double> transitions_;
  std::vector<int> lost_;
  int64_t oldest_ = 0, newest_ = 0, n_pairs_ = 0;  // rows between the first two count for the next sum
  int reach_ = 0;
  double top_ = 0.0, log_z_ = 0.0;
};

// Sums, expectations and maxima of one sequence after the other.
class SweptSegments : private SegmentRows {
 public:
  explicit SweptSegments(const SegmentTables& tables)
      : SegmentRows(tables),
        prefixes_(tables),
        stored_(StoredRows::mine()),
        forward_(tables, prefixes_),
        backward_(tables, prefixes_) {}
  SweptSegments(const SweptSegments&) = delete;
  SweptSegments& operator=(const SweptSegments&) = delete;
  ~SweptSegments() { stored_.trim(); }

  // False where a frame forbids a label.
  bool take(int64_t begin, int64_t T) {
    begin_ = begin;
    T_ = T;
    reader_.block = -1;
    return prefixes_.take(begin, T);
  }

  // log Z; the two sweeps of a long sequence may have a thread each.
  double log_partition(bool keep_rows, int threads) {
    m_ = T_ < kLong ? T_ : T_ / 2;
    StoredRows* stored = keep_rows ? &stored_ : nullptr;
    if (stored) stored->begin(T_, m_, S);
    in_parallel(m_ < T_ ? 2 : 1, threads, [&](int64_t part) {
      if (part == 0) {
        forward_.begin(begin_, T_);
        forward_.run(0, m_, stored);
      }
      if (part == 1 || m_ == T_) {
        backward_.begin(begin_, T_);
        backward_.run(T_, m_, stored);
      }
    });
    return forward_.log_partition(m_, backward_);
  }

  // Marginals, after log_partition(true, ...) gave a finite number; sums are added to [lengths | transitions | start |
  // end].
  void marginals(double log_z, const SegmentMarginals& out, double* sums, int threads) {
    in_parallel(m_ < T_ ? 2 : 1, threads, [&](int64_t part) {
      if (part == 0) {
        backward_.begin_counting(m_, log_z);
        backward_.count(stored_, out);
      } else {
        forward_.begin_counting(m_, log_z);
        forward_.count(stored_, out);
      }
    });
    if (out.frames)
      for (int64_t t = m_; t < std::min<int64_t>(T_, m_ + K - 1); ++t)
        for (int c = 0; c < C; ++c) out.frames[(begin_ + t) * C + c] += backward_.beyond(t, m_)[c];
    double *lengths = sums, *transitions = lengths + int64_t(K) * C, *start = transitions + int64_t(C) * C,
           *end = start + C;
    backward_.add_sums(lengths, transitions);
    if (m_ < T_) forward_.add_sums(lengths, transitions);
    backward_.add_ends(log_z, start);
    forward_.add_ends(log_z, end);
  }

  // ------ the best segmentation

  // B' into the stored open rows and A into the closed ones.
  void best_forward() {
    stored_.begin(T_, T_, S);
    begin_row(stored_.open(0));
    for (int64_t e = 1; e <= T_; ++e) {
      double* A = stored_.closed(e);
      best_of_sums(e, A);
      add_prefix(A, e, 1.0);
      if (e == T_) break;
      double* B = stored_.open(e);
      if (!b_.edges) {
        maxplus(A, C, t_.into.data(), S, B);
      } else {
        std::fill(B, B + S, kNegInf<double>);
        for (int b = 0; b < C; ++b) best_label(e, b, &B[b]);
      }
      add_starts(B, e);
      add_prefix(B, e, -1.0);
    }
  }
  const double* ending(int64_t e) { return stored_.closed(e); }

  // The best label of the segment that ends at e where the next one has label b; the lowest of equals.
  int best_label(int64_t e, int b, double* score = nullptr) {
    const double* A = stored_.closed(e);
    double top = kNegInf<double>;
    int found = 0;
    for (int a = 0; a < C; ++a) {
      const double value = A[a] + edge_score(e, a, b);
      if (value > top) {
        top = value;
        found = a;
      }
    }
    if (score) *score = top;
    return found;
  }
  // The best length of the segment labelled c that ends at e; the shortest of equals.
  int best_length(int64_t e, int c) {
    double top = kNegInf<double>;
    int found = t_.shortest;
    for (int l = t_.shortest; l <= longest(e); ++l) {
      const double value = t_.lengths[l * S + c] + stored_.open(e - l)[c];
      if (value > top) {
        top = value;
        found = l;
      }
    }
    return found;
  }

 private:
  static constexpr int64_t kLong = 2048;

  void add_prefix(double* row, int64_t t, double sign) {
    const double* P = prefixes_.row(t, reader_);
    for (int64_t c = 0; P && c < S; c += L) store(row + c, load(row + c) + sign * load(P + c));
  }

  // out = max_l lengths(l) + B'(e - l)
  void best_of_sums(int64_t e, double* out) {
    const int last = longest(e);
    for (int64_t c = 0; c < S; c += L) {
      Vec<double> even = splat(kNegInf<double>), odd = even;
      const double *w = t_.lengths.data() + c, *B = stored_.open(e) + c;
      int l = t_.shortest;
      for (; l < last; l += 2) {
        even = vmax<double>(even, load(w + l * S) + load(B - l * S));
        odd = vmax<double>(odd, load(w + (l + 1) * S) + load(B - (l + 1) * S));
      }
      if (l == last) even = vmax<double>(even, load(w + l * S) + load(B - l * S));
      store(out + c, vmax<double>(even, odd));
    }
  }

  int64_t m_ = 0;
  PrefixSums prefixes_;
  PrefixSums::Reader reader_;
  StoredRows& stored_;
  Sweep<1> forward_;
  Sweep<-1> backward_;
};

}  // namespace mercer::MERCER_ARCH
