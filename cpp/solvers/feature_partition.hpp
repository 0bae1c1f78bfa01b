// Dual ascent for the multiclass margin machine (solvers/multiclass_dual.hpp) on wide sparse rows, cut by features.
//
// The features are cut into strips with about as many stored values, once and for all. A batch of examples goes through
// three steps:
//
//   score    z_k = Σ_strips Σ_{f in strip} x_kf w_f      a strip at a time, for all examples of the batch at the same W
//   solve    D is maximised over each α_k on its own     an example at a time: ΔW_k = x_k ⊗ δ_k
//   update   w_f += x_kf δ_k                             a strip at a time, example after example
//
// A thread keeps to its strips, so the weights stay in its cache, and two threads meet twice a batch: the update of one
// batch and the scores of the next are one step. Every sum has a fixed order, hence the same result for any number of
// threads.
//
// The examples of a batch do not see each other's changes. On the way of an update to its weights, the scores z'_k with
// the changes before it cost next to nothing, and with them what D has won is known, as Δ = Σ_k ΔW_k has
//
//   ‖Δ‖² = Σ_k ‖x_k‖² ‖δ_k‖² + 2 ⟨z'_k - z_k, δ_k⟩.
//
// D along the batch's change is slope · t - ½ curvature · t². The whole change is kept if it wins a quarter of the
// slope (each example alone would win half of it or more); else the best t is taken. Sparse examples share few
// features, so that what a batch wins is nearly the sum of what its examples would win alone; where it is not, batches
// become smaller.
#pragma once

#include <algorithm>
#include <vector>

#include "solvers/multiclass_step.hpp"
#include "base/parallel.hpp"
#include "base/pipeline_pool.hpp"

namespace mercer::MERCER_ARCH {

constexpr int64_t kBatchWork = 3 << 15;  // weights that a batch touches: they fit the cache
constexpr int64_t kLeastWork = 1 << 13;  // with fewer, meeting takes longer than the work
constexpr int64_t kBatches = 32;         // in an epoch, at least
constexpr double kWasted = 0.8,
                 kFree = 0.9;  // share of the sum of separate gains: below, batches become smaller; above, larger

// The stored values of row i in a strip.
template <class T> inline Row<T> strip_of(const MarginProblem<T>& p, const MarginState& s, int64_t i, int strip) {
  const int64_t* cut = s.strips.of(i) + strip;
  return {p.rows.indices + cut[0], p.rows.values ? p.rows.values + cut[0] : nullptr, cut[1] - cut[0]};
}

// No strips for rows that are dense or whose features are not in order, nor where the weights of a feature may be less
// than a vector (of eight, whatever the instruction set, so that all take the same steps): two threads would write the
// vector at a border.
template <class T> void cut_strips(const MarginProblem<T>& p, MarginState& s) {
  const int64_t n = p.rows.n_rows, n_columns = p.rows.n_columns, strips = s.strips.wanted;
  if (!p.rows.indptr || strips < 2 || n == 0 || s.stride % 8 != 0) return;
  const int64_t first = p.rows.indptr[0], last = p.rows.indptr[n];
  std::vector<int64_t> count(n_columns + 1, 0);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = p.rows.indptr[i]; k < p.rows.indptr[i + 1]; ++k) {
      if (k > p.rows.indptr[i] && p.rows.indices[k] < p.rows.indices[k - 1]) return;
      ++count[p.rows.indices[k] + 1];
    }
  for (int64_t f = 0; f < n_columns; ++f) count[f + 1] += count[f];
  std::vector<int64_t> borders(strips + 1, n_columns);
  borders[0] = 0;
  for (int64_t a = 1; a < strips; ++a) {
    const int64_t f = std::lower_bound(count.begin(), count.end(), (last - first) * a / strips) - count.begin();
    borders[a] = std::min(n_columns, (f + 7) / 8 * 8);  // whole cache lines
  }
  s.strips.cuts.resize(n * (strips + 1));
  for (int64_t i = 0; i < n; ++i) {
    const int32_t *begin = p.rows.indices + p.rows.indptr[i], *end = p.rows.indices + p.rows.indptr[i + 1];
    for (int64_t a = 0; a <= strips; ++a)
      s.strips.cuts[i * (strips + 1) + a] = std::lower_bound(begin, end, borders[a]) - p.rows.indices;
  }
  const int64_t row = std::max<int64_t>(1, (last - first) / n * s.stride);
  s.strips.most = std::min<int64_t>(256, std::max<int64_t>(16, kBatchWork / row));
  s.strips.batch = s.strips.most;
}

// What the scores of x were, times δ, in the sum of the lanes returned; then w[feature(k)] += value(k) δ.
template <int NV, class T>
inline Vec<double> score_and_update_block(const Row<T>& x, double* w, int64_t stride, const double* delta) {
  constexpr int L = kLanes<double>;
  Vec<double> d[NV], total[NV] = {};
  for (int j = 0; j < NV; ++j) d[j] = load(delta + j * L);
  for (int64_t k = 0; k < x.size; ++k) {
    double* row = w + x.feature(k) * stride;
    const double v = x.value(k);
    for (int j = 0; j < NV; ++j) {
      const Vec<double> old = load(row + j * L);
      total[j] += v * old;
      store(row + j * L, old + v * d[j]);
    }
  }
  Vec<double> along{};
  for (int j = 0; j < NV; ++j) along += total[j] * d[j];
  return along;
}
template <class T>
inline double score_and_update(const Row<T>& x, double* w, int64_t stride, int64_t width, const double* delta) {
  constexpr int L = kLanes<double>;
  Vec<double> along{};
  for (int64_t c = 0; c < width; c += 4 * L) {
    switch (std::min<int64_t>((width - c) / L, 4)) {
      case 4: along += score_and_update_block<4>(x, w + c, stride, delta + c); break;
      case 3: along += score_and_update_block<3>(x, w + c, stride, delta + c); break;
      case 2: along += score_and_update_block<2>(x, w + c, stride, delta + c); break;
      case 1: along += score_and_update_block<1>(x, w + c, stride, delta + c); break;
    }
  }
  return sum<double>(along);
}

// One epoch's visits. A stage works on the strips (update of the last batch and scores of this one; or, if the last
// batch went too far, taking back and scores) or on the examples of the batch, in as many parts.
template <class T> class StripVisits {
 public:
  StripVisits(const MarginProblem<T>& problem, MarginState& state, std::vector<uint8_t>& rests)
      : p_(problem),
        s_(state),
        rests_(rests),
        width_(padded(problem.C)),
        strips_(state.strips.count()),
        batch_(std::min(state.strips.batch, std::max<int64_t>(1, int64_t(state.active.size()) / kBatches))),
        batches_((int64_t(state.active.size()) + batch_ - 1) / batch_) {
    for (Slots& slots : slots_) {
      slots.parts.resize(strips_ * batch_ * width_);
      slots.deltas.resize(batch_ * width_);
      slots.slope.resize(batch_);
      slots.curvature.resize(batch_);
      slots.along.resize(batch_);
      slots.gaps.resize(batch_);
      slots.crossing.resize(strips_);
      for (int a = 0; a < strips_; ++a) slots.shards.emplace_back(p_, s_, nullptr, true);
    }
    for (int a = 0; a < strips_; ++a) scratch_.emplace_back(width_);
  }

  // The sum of the gaps just before each visit.
  double run(int threads) {
    const int64_t values = p_.rows.indptr[p_.rows.n_rows] - p_.rows.indptr[0];
    const int64_t work = batch_ * s_.stride * (values / std::max<int64_t>(1, p_.rows.n_rows));
    if (batches_ == 0) return 0.0;
    in_stages(
        strips_, work < kLeastWork ? 1 : std::min(threads, strips_), [&](int64_t part) { this->part(int(part)); },
        [&] { return next(); });
    if (won_ < kWasted * alone_)
      s_.strips.batch = std::max<int64_t>(2, batch_ / 2);  // 2, or it would never be known to be too small
    else if (won_ > kFree * alone_)
      s_.strips.batch = std::max(s_.strips.batch, std::min(s_.strips.most, 2 * batch_));
    return total_;
  }

 private:
  enum class Stage { move, take_back, solve };
  // What is known of the examples of a batch.
  struct Slots {
    AlignedVector<double> parts, deltas;                // scores by strip; δ
    std::vector<double> slope, curvature, along, gaps;  // along: ⟨z_k, δ_k⟩
    std::vector<double> crossing;                       // Σ_k ⟨z'_k, δ_k⟩ of each strip
    std::vector<MarginShard> shards;
  };
  int64_t size(int64_t batch) const { return std::min(batch_, int64_t(s_.active.size()) - batch * batch_); }
  int64_t example(int64_t batch, int64_t k) const { return s_.active[batch * batch_ + k]; }

  void part(int a) {
    if (stage_ == Stage::solve) return solve(b_, a);
    if (stage_ == Stage::take_back)
      take_back(b_ - 1, a);
    else if (b_ > 0)
      update(b_ - 1, a);
    if (b_ < batches_) score(b_, a);
  }
  bool next() {
    if (stage_ == Stage::move && b_ > 0) {
      step_ = step_of(b_ - 1);
      if (step_ < 1) {
        stage_ = Stage::take_back;
        return true;
      }
    }
    if (stage_ != Stage::solve) {
      stage_ = Stage::solve;
      return b_ < batches_;
    }
    for (int64_t k = 0; k < size(b_); ++k) total_ += slots_[b_ % 2].gaps[k];
    stage_ = Stage::move;
    ++b_;
    return true;
  }

  void score(int64_t b, int strip) {
    Slots& slots = slots_[b % 2];
    const int64_t count = size(b);
    fetch(b, 0, strip);
    for (int64_t k = 0; k < count; ++k) {
      if (k + 1 < count) fetch(b, k + 1, strip);
      mercer::MERCER_ARCH::fetch(&s_.alpha[example(b, k)]);
      label_scores(strip_of(p_, s_, example(b, k), strip), s_.w[0], s_.stride, width_, scores(slots, strip, k));
    }
  }
  void solve(int64_t b, int a) {
    constexpr int L = kLanes<double>;
    Slots& slots = slots_[b % 2];
    MarginShard& shard = slots.shards[a];
    const int64_t count = size(b), end = count * (a + 1) / strips_;
    double* z = scratch_[a].data();
    shard.forget();
    for (int64_t k = count * a / strips_; k < end; ++k) {
      const int64_t i = example(b, k);
      if (k + 1 < end) mercer::MERCER_ARCH::fetch(s_.alpha[example(b, k + 1)].data());
      double* delta = slots.deltas.data() + k * width_;
      for (int64_t c = 0; c < width_; c += L) {
        Vec<double> total = load(scores(slots, 0, k) + c);
        for (int strip = 1; strip < strips_; ++strip) total += load(scores(slots, strip, k) + c);
        store(z + c, total);
      }
      shard.slope = shard.curvature = slots.slope[k] = slots.curvature[k] = slots.along[k] = 0;
      slots.gaps[k] = shard.visit(i, z, delta);
      rests_[b * batch_ + k] = shard.at_rest(i, slots.gaps[k]);
      if (!(slots.gaps[k] > 0)) continue;
      Vec<double> products{}, squares{};
      for (int64_t c = 0; c < width_; c += L) {
        products += load(z + c) * load(delta + c);
        squares += load(delta + c) * load(delta + c);
      }
      const double along = sum<double>(products), square = sum<double>(squares);
      slots.slope[k] = shard.slope - along;
      slots.curvature[k] = shard.curvature + s_.norms[i] * square;
      slots.along[k] = along;
    }
  }
  void update(int64_t b, int strip) {
    Slots& slots = slots_[b % 2];
    const int64_t count = size(b);
    double crossing = 0;
    for (int64_t k = 0; k < count; ++k) {
      if (!(slots.gaps[k] > 0)) continue;
      const Row<T> x = strip_of(p_, s_, example(b, k), strip);
      crossing += score_and_update(x, s_.w[0], s_.stride, width_, slots.deltas.data() + k * width_);
    }
    slots.crossing[strip] = crossing;
  }
  void take_back(int64_t b, int strip) {
    Slots& slots = slots_[b % 2];
    AlignedVector<double>& delta = scratch_[strip];
    slots.shards[strip].shorten(step_);
    for (int64_t k = 0; k < size(b); ++k) {
      if (!(slots.gaps[k] > 0)) continue;
      for (int64_t c = 0; c < width_; ++c) delta[c] = (step_ - 1) * slots.deltas[k * width_ + c];
      label_update(strip_of(p_, s_, example(b, k), strip), s_.w[0], s_.stride, width_, delta.data());
    }
  }
  double step_of(int64_t b) {
    const Slots& slots = slots_[b % 2];
    double slope = 0, curvature = 0, crossing = 0;
    for (int64_t k = 0; k < size(b); ++k) {
      slope += slots.slope[k];
      curvature += slots.curvature[k];
      crossing -= slots.along[k];
    }
    for (int strip = 0; strip < strips_; ++strip) crossing += slots.crossing[strip];
    const double whole = curvature + 2 * crossing, step = whole <= 1.5 * slope ? 1.0 : std::max(0.0, slope / whole);
    alone_ += slope - 0.5 * curvature;
    won_ += step * (slope - 0.5 * step * whole);
    return step;
  }

  double* scores(Slots& slots, int strip, int64_t k) const {
    return slots.parts.data() + (strip * batch_ + k) * width_;
  }
  void fetch(int64_t b, int64_t k, int strip) const {
    const Row<T> x = strip_of(p_, s_, example(b, k), strip);
    for (int64_t j = 0; j < x.size; ++j)
      for (int64_t c = 0; c < s_.stride; c += 8) mercer::MERCER_ARCH::fetch(s_.w[0] + x.indices[j] * s_.stride + c);
  }

  const MarginProblem<T>& p_;
  MarginState& s_;
  std::vector<uint8_t>& rests_;
  const int64_t width_;
  const int strips_;
  const int64_t batch_, batches_;
  Slots slots_[2];                              // of this batch and of the one before
  std::vector<AlignedVector<double>> scratch_;  // of every strip
  Stage stage_ = Stage::move;
  int64_t b_ = 0;
  double step_ = 1, total_ = 0, won_ = 0,
         alone_ = 0;  // what D has won, and what the examples would each have won alone
};

template <class T>
double visit_by_strips(const MarginProblem<T>& p, MarginState& s, std::vector<uint8_t>& rests, int threads) {
  return StripVisits<T>(p, s, rests).run(threads);
}

// shards[0] has the weights that go on; the α are split over as many shards as there are strips.
template <class T>
void extrapolate_by_strips(const MarginProblem<T>& p, MarginState& s, std::vector<MarginShard>& shards, int threads) {
  constexpr int64_t kChunk = 2048;
  const int64_t n = p.rows.n_rows, width = padded(p.C);
  const int strips = s.strips.count();
  while (int(shards.size()) < strips) shards.emplace_back(p, s, nullptr, true);
  AlignedVector<double> deltas(std::min(n, kChunk) * width);
  std::vector<uint8_t> moves(std::min(n, kChunk));
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t count = std::min(kChunk, n - begin);
    in_parallel(strips, threads, [&](int64_t a) {
      for (int64_t k = count * a / strips; k < count * (a + 1) / strips; ++k)
        moves[k] = shards[a].extrapolate(begin + k, s.reach, deltas.data() + k * width);
    });
    in_parallel(strips, threads, [&](int64_t strip) {
      for (int64_t k = 0; k < count; ++k) {
        if (!moves[k]) continue;
        const Row<T> x = strip_of(p, s, begin + k, int(strip));
        label_update(x, s.w[1], s.stride, width, deltas.data() + k * width);
        shards[0].mark(x);
      }
    });
  }
}

}  // namespace mercer::MERCER_ARCH
