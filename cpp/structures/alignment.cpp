// Pairwise alignment with affine gaps by dynamic programming (Gotoh's three states), over batches of pairs.
//
// An alignment y of s (length n) and t (length m) is a set of pairs (i, j) that ascend in both. It scores
//   Σ_{(i,j) ∈ y} (S[s_i][t_j] + bonus(i, j)) + Σ_{gaps of length l} (open + (l − 1) extend),
// where a gap is a run of symbols of s, or of t, between two neighbouring pairs. Globally the runs before the first and
// after the last pair are gaps as well; locally they are free, and no pair at all scores 0.
//
// A path through the states M (a pair), D (a symbol of s in a gap) and I (a symbol of t in a gap) stands for each
// alignment once, since between two pairs all D come before all I: paths and sets of pairs correspond one to one. So
// the k best paths are k different alignments, and log Z = log Σ_y exp score(y) counts every alignment once.
//   M(i, j) = S[s_i][t_j] + bonus(i, j) + ⊕ {M, D, I}(i−1, j−1)        (locally: ⊕ also the start, 0)
//   D(i, j) = ⊕ {M(i−1, j) + open, D(i−1, j) + extend}
//   I(i, j) = ⊕ {M(i, j−1) + open, D(i, j−1) + open, I(i, j−1) + extend}
// with ⊕ = max, or log Σ exp. The cost of wrong pairs is such a bonus, for at most one j of each i.
//
// Memory: a few rows for scores. A traceback takes a byte for each cell, and above kCellBudget only rows kept here and
// there, from which the cells between are computed again; the same for the forward values that expectations need.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <vector>

#include "base/arrays.hpp"
#include "base/parallel.hpp"
#include "base/signals.hpp"
#include "structures/alignment_loops.hpp"

namespace mercer {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr int64_t kCellBudget = int64_t(1) << 26;   // bytes of a traceback or of forward values kept whole
constexpr int64_t kMemoryLimit = int64_t(1) << 32;  // bytes that one pair may take at all

// One pair of sequences with the scores of the batch. anchor[i] is the column with a bonus in row i, or -1.
struct Problem {
  const int32_t *s, *t;
  int64_t n, m;
  const double* substitution;
  int64_t n_symbols;
  double open, extend;
  bool local;
  const int32_t* anchor;
  const double* bonus;

  // Scores of pairing s_i with every symbol of t.
  void pair_scores(int64_t i, double* out) const {
    poll_signals(8 * m);  // every row of every recursion begins here
    const double* row = substitution + int64_t(s[i]) * n_symbols;
    for (int64_t j = 0; j < m; ++j) out[j] = row[t[j]];
    if (anchor && anchor[i] >= 0) out[anchor[i]] += bonus[i];
  }
};

struct Pair {
  int32_t i, j;
};

struct Best {
  double score = 0.0;
  std::vector<Pair> pairs;
};

// ---------------------------------------------------------------------------------------------- the best alignment

// Row i of the maximum: H = max(M, D, I), M, D in columns 0 .. m; I is used up within its row.
struct MaxRow {
  std::vector<double> H, M, D;
  explicit MaxRow(int64_t m = 0) : H(size_t(m + 1), kNever), M(size_t(m + 1), kNever), D(size_t(m + 1), kNever) {}
};

void first_row(const Problem& p, MaxRow& row) {
  std::fill(row.H.begin(), row.H.end(), kNever);
  std::fill(row.M.begin(), row.M.end(), kNever);
  std::fill(row.D.begin(), row.D.end(), kNever);
  if (p.local) return;
  row.H[0] = row.M[0] = 0.0;
  double gap = p.open;
  for (int64_t j = 1; j <= p.m; ++j, gap += p.extend) row.H[size_t(j)] = gap;
}

// What a row needs while it is made: scores of pairs, F = max(M, D), I.
struct Scratch {
  std::vector<double> pair, F, I;
  explicit Scratch(int64_t m) : pair(size_t(m) + 1), F(size_t(m) + 1), I(size_t(m) + 1) {}
};

// The next row of the maximum; trace (m + 1 bytes) may be null.
void next_row(const Problem& p, int64_t i, const MaxRow& above, MaxRow& row, Scratch& scratch, uint8_t* trace) {
  const AlignmentLoops& rows = loops<AlignmentLoops>();
  p.pair_scores(i - 1, scratch.pair.data());
  double *F = scratch.F.data(), *I = scratch.I.data();
  row.M[0] = kNever;
  row.D[0] = F[0] = std::max(above.M[0] + p.open, above.D[0] + p.extend);
  rows.match_and_delete(p.m, p.local ? 0.0 : kNever, p.open, p.extend, scratch.pair.data(), above.H.data(),
                        above.M.data(), above.D.data(), F, row.M.data(), row.D.data());
  double insert = I[0] = kNever;
  for (int64_t j = 1; j <= p.m; ++j) I[j] = insert = std::max(F[j - 1] + p.open, insert + p.extend);
  rows.best_of_row(p.m, F, I, row.H.data());
  if (trace)
    rows.trace_row(p.m, p.local, p.open, p.extend, above.H.data(), above.M.data(), above.D.data(), F, row.M.data(),
                   row.D.data(), I, trace);
}

// Where the best alignment ends: (n, m) globally, the first best pair locally (no pair: i = 0).
struct End {
  double score = 0.0;
  int64_t i = 0, j = 0;
};

void watch_local_end(const Problem& p, int64_t i, const MaxRow& row, End& end) {
  double top = kNever;
  for (int64_t j = 1; j <= p.m; ++j) top = row.M[size_t(j)] > top ? row.M[size_t(j)] : top;
  if (!(top > end.score)) return;
  for (int64_t j = 1; j <= p.m; ++j)
    if (row.M[size_t(j)] > end.score) end = {row.M[size_t(j)], i, j};
}

[[noreturn]] void too_large(const Problem& p, const char* what, double bytes) {
  fail("a pair of " + std::to_string(p.n) + " and " + std::to_string(p.m) + " symbols is too long for " + what +
       ": it would take " + std::to_string(int64_t(bytes / 1e9) + 1) + " GB, the limit is 4 GB");
}

// Rows between two kept ones, so that kept rows of `row_bytes` and cells of `cell_bytes` between them take least
// together.
int64_t block_rows(const Problem& p, int64_t cell_bytes, int64_t row_bytes, const char* what) {
  const double width = double(p.m + 1), cells = width * double(p.n + 1);
  if (cells * double(cell_bytes) <= double(kCellBudget)) return std::max<int64_t>(p.n, 1);
  const double rows = std::ceil(std::sqrt(double(p.n) * double(row_bytes) / double(cell_bytes)));
  const int64_t block = std::min(p.n, int64_t(rows));
  const double bytes =
      width * (double(block + 1) * double(cell_bytes) + (double(p.n) / double(block) + 2) * double(row_bytes));
  if (bytes > double(kMemoryLimit)) too_large(p, what, bytes);
  return block;
}

double best_score(const Problem& p) {
  MaxRow above(p.m), row(p.m);
  Scratch scratch(p.m);
  End end;
  first_row(p, above);
  for (int64_t i = 1; i <= p.n; ++i) {
    next_row(p, i, above, row, scratch, nullptr);
    if (p.local) watch_local_end(p, i, row, end);
    std::swap(above, row);
  }
  return p.local ? end.score : above.H[size_t(p.m)];
}

// The traceback bytes of the rows (low, high], refilled from the kept row `low` when the walk gets there.
class Traceback {
 public:
  explicit Traceback(const Problem& p)
      : p_(p), block_(block_rows(p, 1, 24, "a traceback")), width_(p.m + 1), scratch_(p.m) {}

  End forward() {
    MaxRow above(p_.m), row(p_.m);
    End end;
    first_row(p_, above);
    const bool whole = block_ >= p_.n;
    if (whole) trace_.resize(size_t(p_.n * width_));
    for (int64_t i = 1; i <= p_.n; ++i) {
      if (!whole && (i - 1) % block_ == 0) kept_.push_back(above);
      next_row(p_, i, above, row, scratch_, whole ? trace_.data() + (i - 1) * width_ : nullptr);
      if (p_.local) watch_local_end(p_, i, row, end);
      std::swap(above, row);
    }
    if (!p_.local) end = {above.H[size_t(p_.m)], p_.n, p_.m};
    low_ = whole ? 0 : p_.n;
    return end;
  }

  uint8_t at(int64_t i, int64_t j) {
    if (i <= low_) refill(i);
    return trace_[size_t((i - 1 - low_) * width_ + j)];
  }

  std::vector<Pair> walk(const End& end) {
    std::vector<Pair> pairs;
    int64_t i = end.i, j = end.j;
    State state = p_.local ? kMatch : i > 0 ? State(at(i, j) & 3) : kInsert;
    while (i > 0) {
      const uint8_t cell = at(i, j);
      if (state == kMatch) {
        pairs.push_back({int32_t(i - 1), int32_t(j - 1)});
        --i, --j;
        if (cell & kStarts || i == 0) break;  // in row 0 there is nothing but I
        state = State(at(i, j) & 3);
      } else if (state == kDelete) {
        --i;
        state = cell & kDeleteExtends ? kDelete : kMatch;
        if (j == 0) break;  // in column 0 there is nothing but D
      } else {
        --j;
        state = State(cell >> kInsertShift & 3);
      }
    }
    std::reverse(pairs.begin(), pairs.end());
    return pairs;
  }

 private:
  void refill(int64_t i) {
    const int64_t which = (i - 1) / block_;
    low_ = which * block_;
    const int64_t high = std::min(low_ + block_, p_.n);
    trace_.resize(size_t((high - low_) * width_));
    MaxRow above = kept_[size_t(which)], row(p_.m);
    for (int64_t r = low_ + 1; r <= high; ++r) {
      next_row(p_, r, above, row, scratch_, trace_.data() + (r - 1 - low_) * width_);
      std::swap(above, row);
    }
  }

  const Problem& p_;
  int64_t block_, width_, low_ = 0;
  std::vector<uint8_t> trace_;
  std::vector<MaxRow> kept_;
  Scratch scratch_;
};

Best best_alignment(const Problem& p) {
  Traceback traceback(p);
  const End end = traceback.forward();
  return {end.score, traceback.walk(end)};
}

// ---------------------------------------------------------------------------------------------- the k best alignments

// Every cell keeps the k best ways into each of its states, with the rank of the predecessor each came from.
class KBest {
 public:
  KBest(const Problem& p, int64_t k) : p_(p), k_(k), width_(p.m + 1) {
    const double bytes = double(p.n + 1) * double(width_) * 3.0 * double(k) * 2.0;
    if (bytes > double(kMemoryLimit)) too_large(p, "that many alignments", bytes);
    back_.resize(size_t((p.n + 1) * width_ * 3 * k));
  }

  std::vector<Best> run() {
    Lists above(width_, k_), row(width_, k_);
    std::vector<double> pair(size_t(p_.m) + 1);
    if (p_.local) ends_.push_back({0.0, 0, 0, kStart, 0});
    for (int64_t i = 0; i <= p_.n; ++i) {
      if (i > 0) p_.pair_scores(i - 1, pair.data());
      for (int64_t j = 0; j <= p_.m; ++j) cell(i, j, pair.data(), above, row);
      std::swap(above, row);
    }
    if (!p_.local) collect(above, p_.n, p_.m, {kMatch, kDelete, kInsert});
    std::vector<Best> out;
    for (const Ending& e : ends_) out.push_back({e.score, walk(e)});
    return out;
  }

 private:
  struct Lists {
    int64_t k;
    std::vector<double> score;
    std::vector<int32_t> count;
    Lists(int64_t width, int64_t k_) : k(k_), score(size_t(width * 3 * k_)), count(size_t(width * 3), 0) {}
    const double* of(int64_t j, int state) const { return score.data() + (j * 3 + state) * k; }
    int32_t size(int64_t j, int state) const { return count[size_t(j * 3 + state)]; }
  };
  struct Source {
    const double* score;
    int32_t size;
    double add;
    State state;
    int32_t at;
  };
  struct Ending {
    double score;
    int64_t i, j;
    State state;
    int32_t rank;
  };

  uint16_t* back(int64_t i, int64_t j, int state) { return back_.data() + ((i * width_ + j) * 3 + state) * k_; }

  // Merges sorted sources into the list of (i, j, state); of equal scores the earlier source comes first.
  void merge(Lists& row, int64_t i, int64_t j, State state, Source* sources, int n_sources) {
    double* out = row.score.data() + (j * 3 + state) * k_;
    uint16_t* from = back(i, j, state);
    int64_t found = 0;
    for (; found < k_; ++found) {
      int best = -1;
      double top = kNever;
      for (int a = 0; a < n_sources; ++a) {
        Source& source = sources[a];
        if (source.at >= source.size) continue;
        const double value = source.score[source.at] + source.add;
        if (best < 0 || value > top) top = value, best = a;
      }
      if (best < 0) break;
      out[found] = top;
      from[found] = uint16_t(sources[best].at << 2 | sources[best].state);
      ++sources[best].at;
    }
    row.count[size_t(j * 3 + state)] = int32_t(found);
  }

  void cell(int64_t i, int64_t j, const double* pair, const Lists& above, Lists& row) {
    const double zero = 0.0;
    poll_signals(16 * k_);
    if (i == 0 && j == 0 && !p_.local) {
      Source start{&zero, 1, 0.0, kStart, 0};
      merge(row, i, j, kMatch, &start, 1);
      row.count[kDelete] = row.count[kInsert] = 0;
      return;
    }
    Source from[4];
    int n = 0;
    if (i > 0 && j > 0) {
      const double add = pair[j - 1];
      if (p_.local) from[n++] = {&zero, 1, add, kStart, 0};
      for (State state : {kMatch, kDelete, kInsert})
        from[n++] = {above.of(j - 1, state), above.size(j - 1, state), add, state, 0};
    }
    merge(row, i, j, kMatch, from, n);
    n = 0;
    if (i > 0) {
      from[n++] = {above.of(j, kMatch), above.size(j, kMatch), p_.open, kMatch, 0};
      from[n++] = {above.of(j, kDelete), above.size(j, kDelete), p_.extend, kDelete, 0};
    }
    merge(row, i, j, kDelete, from, n);
    n = 0;
    if (j > 0) {
      from[n++] = {row.of(j - 1, kMatch), row.size(j - 1, kMatch), p_.open, kMatch, 0};
      from[n++] = {row.of(j - 1, kDelete), row.size(j - 1, kDelete), p_.open, kDelete, 0};
      from[n++] = {row.of(j - 1, kInsert), row.size(j - 1, kInsert), p_.extend, kInsert, 0};
    }
    merge(row, i, j, kInsert, from, n);
    if (p_.local) collect(row, i, j, {kMatch});
  }

  // Takes endings in (i, j) into the k best of all.
  void collect(const Lists& row, int64_t i, int64_t j, std::initializer_list<State> states) {
    for (State state : states)
      for (int32_t r = 0; r < row.size(j, state); ++r) {
        const double score = row.of(j, state)[r];
        if (int64_t(ends_.size()) == k_ && score <= ends_.back().score) break;
        auto place =
            std::upper_bound(ends_.begin(), ends_.end(), score, [](double x, const Ending& e) { return x > e.score; });
        ends_.insert(place, {score, i, j, state, r});
        if (int64_t(ends_.size()) > k_) ends_.pop_back();
      }
  }

  std::vector<Pair> walk(const Ending& end) {
    std::vector<Pair> pairs;
    int64_t i = end.i, j = end.j, rank = end.rank;
    State state = end.state;
    while (state != kStart) {
      const uint16_t from = back(i, j, state)[rank];
      if (state == kMatch && State(from & 3) == kStart && !p_.local) break;
      if (state == kMatch) {
        pairs.push_back({int32_t(i - 1), int32_t(j - 1)});
        --i, --j;
      } else if (state == kDelete) {
        --i;
      } else {
        --j;
      }
      state = State(from & 3);
      rank = from >> 2;
    }
    std::reverse(pairs.begin(), pairs.end());
    return pairs;
  }

  const Problem& p_;
  int64_t k_, width_;
  std::vector<uint16_t> back_;
  std::vector<Ending> ends_;
};

// ---------------------------------------------------------------------------------------------- expectations

inline double log_add(double a, double b) {
  const double high = a > b ? a : b, low = a > b ? b : a;
  const double difference = low - high;
  if (!(difference > -37.5)) return high;  // below the last bit of `high`; also -inf and -inf
  return high + std::log1p(std::exp(difference));
}

// Log-domain values of a row: M, D, I in columns 0 .. m.
struct LogRow {
  std::vector<double> M, D, I;
  explicit LogRow(int64_t m = 0) : M(size_t(m + 1), kNever), D(size_t(m + 1), kNever), I(size_t(m + 1), kNever) {}
};

struct Expected {
  double log_partition = 0.0;
  double* counts = nullptr;  // n_symbols² substitutions, openings, extensions: added to
  double* pairs = nullptr;   // n × m probabilities of pairs, or null
};

// Forward and backward recursions, the backward one row by row from the end; forward rows come from blocks that are
// filled again from kept rows where a pair is too long to keep all of them.
class ForwardBackward {
 public:
  explicit ForwardBackward(const Problem& p)
      : p_(p), block_(block_rows(p, 24, 24, "expected counts")), pair_(size_t(p.m) + 1), pair_below_(size_t(p.m) + 1) {}

  double forward(bool keep) {
    LogRow above(p_.m), row(p_.m);
    double total = p_.local ? 0.0 : kNever;  // locally no pair at all scores 0
    const bool whole = block_ >= p_.n;
    if (whole) block_ = p_.n + 1;
    for (int64_t i = 0; i <= p_.n; ++i) {
      fill(i, above, row, total);
      if (keep && whole)
        rows_.push_back(row);
      else if (keep && i % block_ == 0)
        kept_.push_back(row);
      std::swap(above, row);
    }
    if (keep && whole) filled_ = 0;
    if (!p_.local) {
      const size_t m = size_t(p_.m);
      total = log_add(log_add(above.M[m], above.D[m]), above.I[m]);
    }
    return total;
  }

  void expect(Expected& out) {
    out.log_partition = log_z_ = forward(true);
    LogRow below(p_.m), row(p_.m);
    for (int64_t i = p_.n; i >= 0; --i) {
      backward(i, below, row);
      count(i, row, out);
      std::swap(below, row);
    }
  }

 private:
  void fill(int64_t i, const LogRow& above, LogRow& row, double& local_total) {
    const double open = p_.open, extend = p_.extend;
    if (i > 0) p_.pair_scores(i - 1, pair_.data());
    for (size_t j = 0; j <= size_t(p_.m); ++j) {
      double match = kNever;
      if (i > 0 && j > 0) {
        double before = log_add(log_add(above.M[j - 1], above.D[j - 1]), above.I[j - 1]);
        if (p_.local) before = log_add(before, 0.0);
        match = pair_[j - 1] + before;
        if (p_.local) local_total = log_add(local_total, match);
      } else if (i == 0 && j == 0 && !p_.local) {
        match = 0.0;
      }
      row.M[j] = match;
      row.D[j] = i > 0 ? log_add(above.M[j] + open, above.D[j] + extend) : kNever;
      row.I[j] = j > 0 ? log_add(log_add(row.M[j - 1], row.D[j - 1]) + open, row.I[j - 1] + extend) : kNever;
    }
  }

  // log Σ exp score of everything that may follow each state of row i.
  void backward(int64_t i, const LogRow& below, LogRow& row) {
    if (i < p_.n) p_.pair_scores(i, pair_below_.data());
    for (int64_t at = p_.m; at >= 0; --at) {
      const size_t j = size_t(at);
      const bool inside = i < p_.n && at < p_.m;
      const double end = !p_.local && i == p_.n && at == p_.m ? 0.0 : kNever;
      const double next = inside ? pair_below_[j] + below.M[j + 1] : end;
      const double insert = at < p_.m ? row.I[j + 1] : kNever;
      const double onward = log_add(next, insert + p_.open);
      const double below_D = i < p_.n ? below.D[j] : kNever;
      row.I[j] = log_add(next, insert + p_.extend);
      row.D[j] = log_add(onward, below_D + p_.extend);
      row.M[j] = log_add(onward, below_D + p_.open);
      if (p_.local) row.M[j] = log_add(row.M[j], 0.0);
    }
  }

  const LogRow& forward_row(int64_t i) {
    const int64_t which = i / block_;
    if (which != filled_) {
      const int64_t low = which * block_, high = std::min(low + block_ - 1, p_.n);
      rows_.assign(1, kept_[size_t(which)]);
      double ignored = kNever;
      for (int64_t r = low + 1; r <= high; ++r) {
        rows_.emplace_back(p_.m);
        fill(r, rows_[size_t(r - 1 - low)], rows_[size_t(r - low)], ignored);
      }
      filled_ = which;
    }
    return rows_[size_t(i - which * block_)];
  }

  // Adds what happens on the way into row i and within it: pairs and D of row i, I of row i. `row` is the backward row
  // i.
  void count(int64_t i, const LogRow& row, Expected& out) {
    const LogRow& here = forward_row(i);
    double opened = 0.0, extended = 0.0;
    double* substitutions = i > 0 ? out.counts + int64_t(p_.s[i - 1]) * p_.n_symbols : nullptr;
    for (int64_t j = 1; i > 0 && j <= p_.m; ++j) {
      const double probability = weight(here.M[size_t(j)] + row.M[size_t(j)]);
      substitutions[p_.t[j - 1]] += probability;
      if (out.pairs) out.pairs[(i - 1) * p_.m + j - 1] = probability;
    }
    for (size_t j = 1; j <= size_t(p_.m); ++j) {
      opened += weight(log_add(here.M[j - 1], here.D[j - 1]) + p_.open + row.I[j]);
      extended += weight(here.I[j - 1] + p_.extend + row.I[j]);
    }
    // D into row i + 1 leaves row i: the backward D of row i + 1 was kept when that row was done.
    if (i < p_.n)
      for (size_t j = 0; j <= size_t(p_.m); ++j) {
        opened += weight(here.M[j] + p_.open + below_D_[j]);
        extended += weight(here.D[j] + p_.extend + below_D_[j]);
      }
    below_D_ = row.D;
    out.counts[p_.n_symbols * p_.n_symbols] += opened;
    out.counts[p_.n_symbols * p_.n_symbols + 1] += extended;
  }

  double weight(double log_weight) const {
    const double x = log_weight - log_z_;
    return x > -745.0 ? std::exp(x) : 0.0;
  }

  const Problem& p_;
  int64_t block_, filled_ = -1;
  double log_z_ = 0.0;
  std::vector<double> pair_, pair_below_, below_D_;
  std::vector<LogRow> kept_, rows_;
};

// ---------------------------------------------------------------------------------------------- expectations, scaled

// The same recursions on weights exp(score), with an exponent of two for each cell: M, D and I stand for M 2^e, D 2^e,
// I 2^e. What gets lost is below 2^-1000 of another state of its cell, and since whatever follows one state follows the
// others for at most kScaledScore more or less, it never matters. Beyond scores of that size the log-domain recursions
// take over.
constexpr double kScaledScore = 40.0;
constexpr int32_t kEmpty = -(1 << 29);  // the exponent of a cell of zeros

// 2^d for d <= 0; 0 where that is below the smallest normal number.
inline double power_of_two(int32_t d) {
  const int64_t bits = d < -1022 ? 0 : int64_t(d + 1023) << 52;
  double out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

struct Cell {
  double M, D, I;
  int32_t e;

  void normalize() {
    const double top = std::max(M, std::max(D, I));
    if (top < 0x1p200 && top > 0x1p-200) return;
    if (top == 0.0) {
      e = kEmpty;
      return;
    }
    const int shift = std::ilogb(top);
    M = std::ldexp(M, -shift), D = std::ldexp(D, -shift), I = std::ldexp(I, -shift);
    e += shift;
  }
};

// A sum of terms x 2^e with far apart exponents.
struct ScaledSum {
  double x = 0.0;
  int32_t e = kEmpty;
  void add(double y, int32_t f) {
    if (y == 0.0) return;
    if (f > e) x *= power_of_two(e - f), e = f;
    x += y * power_of_two(f - e);
    if (x > 0x1p200) x *= 0x1p-200, e += 200;
  }
};

class ScaledForwardBackward {
 public:
  static bool fits(const Problem& p, double largest) {
    if (p.bonus)
      for (int64_t i = 0; i < p.n; ++i)
        if (p.anchor[i] >= 0 && std::fabs(p.bonus[i]) > kScaledScore) return false;
    return largest <= kScaledScore;
  }

  // weights: exp of the substitution scores.
  ScaledForwardBackward(const Problem& p, const double* weights)
      : p_(p),
        weights_(weights),
        open_(std::exp(p.open)),
        extend_(std::exp(p.extend)),
        block_(block_rows(p, sizeof(Cell), sizeof(Cell), "expected counts")),
        width_(size_t(p.m) + 1),
        pair_(width_) {
    if (block_ >= p.n) block_ = p.n + 1;
  }

  double forward(bool keep) {
    std::vector<Cell> above(keep ? 0 : width_), row(keep ? 0 : width_);
    if (keep) rows_.resize(size_t(std::min(block_, p_.n + 1)) * width_);
    if (p_.local) total_.add(1.0, 0);  // no pair at all
    Cell* last = nullptr;
    for (int64_t i = 0; i <= p_.n; ++i) {
      const size_t place = size_t(i % block_);
      if (keep) {
        // The first row of a block follows the last one of the block before, which it may overwrite only afterwards.
        Cell* here = rows_.data() + place * width_;
        if (place == 0 && i > 0) {
          above.assign(last, last + width_);
          fill(i, above.data(), here, true);
        } else {
          fill(i, last, here, true);
        }
        if (place == 0) kept_.insert(kept_.end(), here, here + width_);
        last = here;
      } else {
        fill(i, above.data(), row.data(), true);
        std::swap(above, row);
        last = above.data();
      }
    }
    filled_ = p_.n / block_;
    if (!p_.local) total_.add(last[p_.m].M + last[p_.m].D + last[p_.m].I, last[p_.m].e);
    return std::log(total_.x) + double(total_.e) * 0.693147180559945309417;
  }

  void expect(Expected& out) {
    out.log_partition = forward(true);
    inverse_ = 1.0 / total_.x;
    std::vector<Cell> below(width_), row(width_);
    for (int64_t i = p_.n; i >= 0; --i) {
      backward(i, below.data(), row.data());
      count(i, row.data(), below.data(), out);
      std::swap(below, row);
    }
  }

 private:
  void pair_weights(int64_t i) {
    const double* row = weights_ + int64_t(p_.s[i]) * p_.n_symbols;
    poll_signals(8 * p_.m);
    for (int64_t j = 0; j < p_.m; ++j) pair_[size_t(j)] = row[p_.t[j]];
    if (p_.anchor && p_.anchor[i] >= 0) pair_[size_t(p_.anchor[i])] *= std::exp(p_.bonus[i]);
  }

  void fill(int64_t i, const Cell* above, Cell* row, bool sum) {
    if (i > 0) pair_weights(i - 1);
    const Cell none{0.0, 0.0, 0.0, kEmpty};
    const bool local = p_.local;
    for (int64_t j = 0; j <= p_.m; ++j) {
      const bool paired = i > 0 && j > 0;
      const Cell& diagonal = paired ? above[j - 1] : none;
      const Cell& up = i > 0 ? above[j] : none;
      const Cell& left = j > 0 ? row[j - 1] : none;
      const bool starts = local ? paired : i == 0 && j == 0;
      int32_t e = std::max(diagonal.e, std::max(up.e, left.e));
      if (starts) e = std::max(e, 0);
      double before = (diagonal.M + diagonal.D + diagonal.I) * power_of_two(diagonal.e - e);
      if (starts) before += power_of_two(-e);
      Cell& cell = row[j];
      cell.M = (paired ? pair_[size_t(j - 1)] : 1.0) * before;
      cell.D = (up.M * open_ + up.D * extend_) * power_of_two(up.e - e);
      cell.I = ((left.M + left.D) * open_ + left.I * extend_) * power_of_two(left.e - e);
      cell.e = e;
      cell.normalize();
      if (local && sum) total_.add(cell.M, cell.e);
    }
  }

  void backward(int64_t i, const Cell* below, Cell* row) {
    if (i < p_.n) pair_weights(i);
    const Cell none{0.0, 0.0, 0.0, kEmpty};
    for (int64_t j = p_.m; j >= 0; --j) {
      const bool paired = i < p_.n && j < p_.m;
      const Cell& diagonal = paired ? below[j + 1] : none;
      const Cell& down = i < p_.n ? below[j] : none;
      const Cell& right = j < p_.m ? row[j + 1] : none;
      const bool global_end = !p_.local && i == p_.n && j == p_.m;
      int32_t e = std::max(diagonal.e, std::max(down.e, right.e));
      if (p_.local || global_end) e = std::max(e, 0);
      const double next = global_end ? power_of_two(-e)
                          : paired   ? pair_[size_t(j)] * diagonal.M * power_of_two(diagonal.e - e)
                                     : 0.0;
      const double insert = right.I * power_of_two(right.e - e), deleted = down.D * power_of_two(down.e - e);
      const double onward = next + open_ * insert;
      Cell& cell = row[j];
      cell.M = onward + open_ * deleted + (p_.local ? power_of_two(-e) : 0.0);
      cell.D = onward + extend_ * deleted;
      cell.I = next + extend_ * insert;
      cell.e = e;
      cell.normalize();
    }
  }

  const Cell* forward_row(int64_t i) {
    const int64_t which = i / block_;
    if (which != filled_) {
      const int64_t low = which * block_, high = std::min(low + block_ - 1, p_.n);
      std::copy(kept_.begin() + which * int64_t(width_), kept_.begin() + (which + 1) * int64_t(width_), rows_.begin());
      for (int64_t r = low + 1; r <= high; ++r)
        fill(r, rows_.data() + size_t(r - 1 - low) * width_, rows_.data() + size_t(r - low) * width_, false);
      filled_ = which;
    }
    return rows_.data() + size_t(i - which * block_) * width_;
  }

  // x 2^e / Z, which is at most 1.
  double share(double x, int32_t e) const {
    const int32_t d = e - total_.e;
    return d <= 0 ? x * power_of_two(d) * inverse_ : std::ldexp(x * inverse_, d);
  }

  // Pairs and I of row i, and D from row i to row i + 1. `row` and `below` are backward rows i and i + 1.
  void count(int64_t i, const Cell* row, const Cell* below, Expected& out) {
    const Cell* here = forward_row(i);
    double opened = 0.0, extended = 0.0;
    double* substitutions = i > 0 ? out.counts + int64_t(p_.s[i - 1]) * p_.n_symbols : nullptr;
    for (int64_t j = 1; j <= p_.m; ++j) {
      if (i > 0) {
        const double probability = share(here[j].M * row[j].M, here[j].e + row[j].e);
        substitutions[p_.t[j - 1]] += probability;
        if (out.pairs) out.pairs[(i - 1) * p_.m + j - 1] = probability;
      }
      const Cell& left = here[j - 1];
      const double onward = share(row[j].I, left.e + row[j].e);
      opened += (left.M + left.D) * open_ * onward;
      extended += left.I * extend_ * onward;
    }
    for (int64_t j = 0; i < p_.n && j <= p_.m; ++j) {
      const double onward = share(below[j].D, here[j].e + below[j].e);
      opened += here[j].M * open_ * onward;
      extended += here[j].D * extend_ * onward;
    }
    out.counts[p_.n_symbols * p_.n_symbols] += opened;
    out.counts[p_.n_symbols * p_.n_symbols + 1] += extended;
  }

  const Problem& p_;
  const double* weights_;
  double open_, extend_;
  int64_t block_, filled_ = -1;
  size_t width_;
  std::vector<double> pair_;
  std::vector<Cell> kept_, rows_;
  ScaledSum total_;
  double inverse_ = 1.0;
};

// ---------------------------------------------------------------------------------------------- batches

// Stacked pairs: pair p holds s[s_offsets[p] .. s_offsets[p + 1]] and the same of t.
struct Batch {
  In1<int32_t> s, t;
  In1<int64_t> s_offsets, t_offsets;
  In2<double> substitution;
  double open, extend;
  bool local;
  std::optional<In1<int32_t>> anchor;
  std::optional<In1<double>> bonus;

  int64_t size() const { return int64_t(s_offsets.shape(0)) - 1; }

  Problem problem(int64_t p) const {
    const int64_t a = s_offsets.data()[p], b = t_offsets.data()[p];
    return {s.data() + a,
            t.data() + b,
            s_offsets.data()[p + 1] - a,
            t_offsets.data()[p + 1] - b,
            substitution.data(),
            int64_t(substitution.shape(0)),
            open,
            extend,
            local,
            anchor ? anchor->data() + a : nullptr,
            bonus ? bonus->data() + a : nullptr};
  }

  void check() const {
    require(substitution.shape(0) == substitution.shape(1), "substitution must be a square matrix");
    require(substitution.shape(0) <= 65536, "substitution must have at most 65536 rows");
    require(all_finite(substitution.data(), int64_t(substitution.size())), "substitution scores must be finite");
    require(std::isfinite(open) && std::isfinite(extend), "gap scores must be finite");
    check_stack(s, s_offsets, "s");
    check_stack(t, t_offsets, "t");
    require(s_offsets.shape(0) == t_offsets.shape(0), "s and t must hold the same number of sequences");
    require(anchor.has_value() == bonus.has_value(), "anchor and bonus go together");
    if (!anchor) return;
    require(anchor->shape(0) == s.shape(0) && bonus->shape(0) == s.shape(0), "anchor and bonus must be as long as s");
    require(all_finite(bonus->data(), int64_t(bonus->size())), "bonus must be finite");
    for (int64_t p = 0; p < size(); ++p) {
      const Problem x = problem(p);
      for (int64_t i = 0; i < x.n; ++i) require(x.anchor[i] >= -1 && x.anchor[i] < x.m, "an anchor is out of range");
    }
  }

 private:
  void check_stack(const In1<int32_t>& x, const In1<int64_t>& offsets, const char* name) const {
    const std::string of = name;
    if (offsets.shape(0) < 1) fail(of + "_offsets must hold at least one value");
    const int64_t n = int64_t(offsets.shape(0)) - 1;
    const int64_t* o = offsets.data();
    if (o[0] != 0 || o[n] != int64_t(x.shape(0))) fail(of + "_offsets must run from 0 to the length of " + of);
    for (int64_t p = 0; p < n; ++p) {
      if (o[p] > o[p + 1]) fail(of + "_offsets must not decrease");
      if (o[p + 1] - o[p] > (int64_t(1) << 30)) fail("a sequence in " + of + " has more than 2^30 symbols");
    }
    const int64_t symbols = int64_t(substitution.shape(0));
    for (size_t i = 0; i < x.shape(0); ++i)
      if (x.data()[i] < 0 || x.data()[i] >= symbols) fail("a symbol of " + of + " has no row in substitution");
  }
};

// Lists of alignments as arrays: pairs (stacked i, j), their offsets, scores, and the offsets of each problem's
// alignments.
nb::tuple pack(std::vector<std::vector<Best>>&& found) {
  std::vector<int32_t> pairs;
  std::vector<int64_t> pair_offsets{0}, offsets{0};
  std::vector<double> scores;
  for (const auto& list : found) {
    for (const Best& best : list) {
      for (const Pair& pair : best.pairs) pairs.push_back(pair.i), pairs.push_back(pair.j);
      pair_offsets.push_back(int64_t(pairs.size() / 2));
      scores.push_back(best.score);
    }
    offsets.push_back(int64_t(scores.size()));
  }
  return nb::make_tuple(to_numpy(std::move(pairs)), to_numpy(std::move(pair_offsets)), to_numpy(std::move(scores)),
                        to_numpy(std::move(offsets)));
}

nb::tuple align_k_best(const Batch& batch, int64_t k, int threads) {
  require(k >= 1 && k <= 16384, "k must lie between 1 and 16384");
  const int n_threads = thread_count(threads);
  std::vector<std::vector<Best>> found(size_t(batch.size()));
  {
    nb::gil_scoped_release release;
    in_parallel(batch.size(), n_threads, [&](int64_t i) {
      const Problem p = batch.problem(i);
      if (k == 1)
        found[size_t(i)].push_back(best_alignment(p));
      else
        found[size_t(i)] = KBest(p, k).run();
    });
  }
  return pack(std::move(found));
}

nb::object align_scores(const Batch& batch, int threads) {
  const int n_threads = thread_count(threads);
  std::vector<double> out(size_t(batch.size()));
  {
    nb::gil_scoped_release release;
    in_parallel(batch.size(), n_threads, [&](int64_t i) { out[size_t(i)] = best_score(batch.problem(i)); });
  }
  return to_numpy(std::move(out));
}

// exp of the substitution scores, and the largest score by size.
struct Weights {
  std::vector<double> substitution;
  double largest;
  explicit Weights(const Batch& batch) : substitution(batch.substitution.size()) {
    largest = std::max(std::fabs(batch.open), std::fabs(batch.extend));
    for (size_t a = 0; a < substitution.size(); ++a) {
      substitution[a] = std::exp(batch.substitution.data()[a]);
      largest = std::max(largest, std::fabs(batch.substitution.data()[a]));
    }
  }
};

nb::object align_log_partition(const Batch& batch, int threads) {
  const int n_threads = thread_count(threads);
  const Weights weights(batch);
  std::vector<double> out(size_t(batch.size()));
  {
    nb::gil_scoped_release release;
    in_parallel(batch.size(), n_threads, [&](int64_t i) {
      const Problem p = batch.problem(i);
      if (ScaledForwardBackward::fits(p, weights.largest))
        out[size_t(i)] = ScaledForwardBackward(p, weights.substitution.data()).forward(false);
      else
        out[size_t(i)] = ForwardBackward(p).forward(false);
    });
  }
  return to_numpy(std::move(out));
}

// counts: (pairs, n_symbols² + 2), zeroed here; matches: the probabilities of all pairs of symbols, stacked, or None.
nb::object align_expect(const Batch& batch, Out2<double> counts, std::optional<Out1<double>> matches, int threads) {
  const int64_t symbols = int64_t(batch.substitution.shape(0)), width = symbols * symbols + 2;
  require(int64_t(counts.shape(0)) == batch.size() && int64_t(counts.shape(1)) == width, "counts has the wrong shape");
  std::vector<int64_t> offsets{0};
  for (int64_t i = 0; i < batch.size(); ++i) {
    const Problem p = batch.problem(i);
    require(p.m == 0 || p.n <= (int64_t(1) << 40) / p.m, "a pair is too long for probabilities of all its cells");
    offsets.push_back(offsets.back() + p.n * p.m);
  }
  require(!matches || int64_t(matches->shape(0)) == offsets.back(), "matches has the wrong length");
  const int n_threads = thread_count(threads);
  const Weights weights(batch);
  std::vector<double> out(size_t(batch.size()));
  {
    nb::gil_scoped_release release;
    std::fill(counts.data(), counts.data() + counts.size(), 0.0);
    in_parallel(batch.size(), n_threads, [&](int64_t i) {
      const Problem p = batch.problem(i);
      Expected expected;
      expected.counts = counts.data() + i * width;
      expected.pairs = matches ? matches->data() + offsets[size_t(i)] : nullptr;
      if (ScaledForwardBackward::fits(p, weights.largest))
        ScaledForwardBackward(p, weights.substitution.data()).expect(expected);
      else
        ForwardBackward(p).expect(expected);
      out[size_t(i)] = expected.log_partition;
    });
  }
  return to_numpy(std::move(out));
}

}  // namespace

void bind_alignment(nb::module_& m) {
  nb::class_<Batch>(m, "AlignmentBatch")
      .def(
          "__init__",
          [](Batch* self, In1<int32_t> s, In1<int64_t> s_offsets, In1<int32_t> t, In1<int64_t> t_offsets,
             In2<double> substitution, double gap_open, double gap_extend, bool local,
             std::optional<In1<int32_t>> anchor, std::optional<In1<double>> bonus) {
            Batch batch{s, t, s_offsets, t_offsets, substitution, gap_open, gap_extend, local, anchor, bonus};
            batch.check();
            new (self) Batch(std::move(batch));
          },
          "s"_a, "s_offsets"_a, "t"_a, "t_offsets"_a, "substitution"_a, "gap_open"_a, "gap_extend"_a, "local"_a,
          "anchor"_a = nb::none(), "bonus"_a = nb::none());
  m.def("k_best", &align_k_best, "batch"_a, "k"_a, "threads"_a = 1);
  m.def("scores", &align_scores, "batch"_a, "threads"_a = 1);
  m.def("log_partition", &align_log_partition, "batch"_a, "threads"_a = 1);
  m.def("expect", &align_expect, "batch"_a, "counts"_a, "matches"_a = nb::none(), "threads"_a = 1);
}

}  // namespace mercer
