// Support vector machines over a kernel matrix that is never whole: ascent by blocks [Osuna1997], [Joachims1999].
//
// The program is that of svm_smo.hpp. A block of instances is chosen, those that violate the optimality conditions most
// and the last ones chosen before; with the others fixed, their program has a small matrix of its own and is solved by
// pairs; then g = Ks is brought up to date by the rows of what has moved. Rows of K are asked for in batches, so that a
// caller may compute them as products of matrices, and the last used ones are kept, as many as there is room for.
//
// The order of all sums is fixed by the places of instances: neither threads nor the room for rows change a bit of what
// a block makes of its rows (room changes which blocks there are).
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/parallel.hpp"
#include "base/signals.hpp"
#include "solvers/svm_smo.hpp"

namespace mercer {
namespace {

using smo::kInfinity;

constexpr int64_t kMostInBlock = 512;
constexpr int64_t kStretch = 4096;  // instances that one thread brings up to date at a time
constexpr double kLocal = 0.1;      // of the violation of all: to which a block is solved
constexpr double kLargest = 1e150;  // of the kernel's values

bool small(const double* x, int64_t n) {
  int large = 0;
#pragma omp simd reduction(| : large)
  for (int64_t i = 0; i < n; ++i) large |= !(std::abs(x[i]) <= kLargest);
  return !large;
}

template <class Reward> class BlockAscent {
 public:
  // room: rows that may be in memory, with those on their way.
  BlockAscent(Reward reward, std::vector<double> start, std::vector<double> diagonal, int64_t split, double tol,
              int64_t max_steps, int64_t room, int threads)
      : reward_(std::move(reward)),
        s_(std::move(start)),
        diagonal_(std::move(diagonal)),
        n_(int64_t(s_.size())),
        starts_{0, split ? split : n_, n_},
        groups_(split && split < n_ ? 2 : 1),
        tol_(tol),
        max_steps_(max_steps),
        threads_(threads),
        batch_(std::clamp<int64_t>(room / 9, 2, 256)),
        block_(std::clamp<int64_t>((room - batch_) / 2, 4, kMostInBlock)),
        capacity_(std::min(n_, std::max(room - batch_, block_))) {
    for (auto* values : {&g_, &v_, &grows_, &falls_}) values->assign(size_t(n_), 0.0);
    slot_of_.assign(size_t(n_), -1);
    chosen_.assign(size_t(n_), 0);
    for (int64_t i = 0; i < n_; ++i)
      if (s_[size_t(i)] != 0.0) to_add_.push_back(int32_t(i));
  }

  // The places of the rows that are needed next; none at the end.
  std::vector<int64_t> wanted() {
    while (asked_.empty() && !finished_) {
      check_signals();
      if (added_ < to_add_.size()) {
        const size_t end = std::min(to_add_.size(), added_ + size_t(batch_));
        asked_.assign(to_add_.begin() + int64_t(added_), to_add_.begin() + int64_t(end));
        break;
      }
      if (block_now_.empty() || solved_) choose();
      if (finished_) break;
      for (const int32_t i : block_now_)
        if (slot_of_[size_t(i)] < 0 && int64_t(asked_.size()) < batch_) asked_.push_back(i);
      if (asked_.empty()) solve();
    }
    return {asked_.begin(), asked_.end()};
  }

  // Whether all values are of a size to be worked with; else nothing has changed.
  bool give(const double* rows) {
    for (size_t k = 0; k < asked_.size(); ++k)
      if (!small(rows + int64_t(k) * n_, n_)) return false;
    if (flat_ == 0) set_flat(asked_[0], rows);
    if (added_ < to_add_.size()) {
      std::vector<const double*> from;
      std::vector<double> by;
      for (size_t k = 0; k < asked_.size(); ++k) {
        from.push_back(rows + int64_t(k) * n_);
        by.push_back(s_[size_t(asked_[k])]);
      }
      add_rows(from, by);
      added_ += asked_.size();
    } else {
      for (size_t k = 0; k < asked_.size(); ++k) {
        const int64_t slot = free_slot();
        std::copy(rows + int64_t(k) * n_, rows + int64_t(k + 1) * n_, slots_[size_t(slot)].get());
        slot_of_[size_t(asked_[k])] = int32_t(slot);
        row_of_[size_t(slot)] = asked_[k];
        used_[size_t(slot)] = clock_;
      }
    }
    asked_.clear();
    return true;
  }

  int64_t size() const { return n_; }
  int64_t asked() const { return int64_t(asked_.size()); }
  bool finished() const { return finished_; }
  const smo::Outcome& outcome() const { return found_; }
  const std::vector<double>& s() const { return s_; }
  const std::vector<double>& g() const { return g_; }

 private:
  // As `scale_flat` of the ascent by pairs does, by the distances from the first instance whose row there is.
  void set_flat(int64_t i, const double* row) {
    double sum = 0;
    for (int64_t j = 0; j < n_; ++j) sum += diagonal_[size_t(j)] + diagonal_[size_t(i)] - 2 * row[j];
    const double mean = sum / double(n_);
    flat_ = 1e-12 * (mean > 0 && mean < kInfinity ? mean : 1.0);
  }

  // g += the sum of rows times factors.
  void add_rows(const std::vector<const double*>& rows, const std::vector<double>& by) {
    const int64_t parts = (n_ + kStretch - 1) / kStretch;
    in_parallel(parts, threads_, [&](int64_t part) {
      const int64_t first = part * kStretch, count = std::min(kStretch, n_ - first);
      loops<SmoLoops>().add_rows(rows.data(), by.data(), int64_t(rows.size()), first, g_.data() + first, count);
    });
  }

  int64_t free_slot() {
    if (int64_t(slots_.size()) < capacity_) {
      slots_.emplace_back(new double[size_t(n_)]);
      row_of_.push_back(-1);
      used_.push_back(0);
      return int64_t(slots_.size()) - 1;
    }
    // The one used last longest ago; those of the block at hand have been used just now.
    const int64_t slot = std::min_element(used_.begin(), used_.end()) - used_.begin();
    slot_of_[size_t(row_of_[size_t(slot)])] = -1;
    return slot;
  }
  const double* row(int32_t i) const { return slots_[size_t(slot_of_[size_t(i)])].get(); }

  struct Candidate {
    double score;
    uint32_t mixed;  // ties are broken by neither end of the data
    int32_t at;
    bool operator<(const Candidate& other) const {
      if (score != other.score) return score > other.score;
      return mixed != other.mixed ? mixed < other.mixed : at < other.at;
    }
  };

  // The next block, or the end.
  void choose() {
    for (int64_t i = 0; i < n_; ++i) {
      const size_t at = size_t(i);
      v_[at] = reward_.linear(at) - g_[at];
      grows_[at] = reward_.after(at, s_[at]);
      falls_[at] = reward_.before(at, s_[at]);
    }
    width_ = -kInfinity;
    int worst = 0;
    for (int group = 0; group < groups_; ++group) {
      const int64_t first = starts_[size_t(group)];
      const smo::Watched all{v_.data() + first,
                             grows_.data() + first,
                             falls_.data() + first,
                             nullptr,
                             nullptr,
                             starts_[size_t(group) + 1] - first,
                             flat_,
                             0.0};
      extremes_[size_t(group)] = loops<SmoLoops>().move(all, g_.data(), g_.data(), 0.0);
      if (extremes_[size_t(group)].width() > width_) width_ = extremes_[size_t(group)].width(), worst = group;
    }
    if (first_width_ < 0) first_width_ = width_;
    // Differences below rounding are no violations.
    const bool settled = !(width_ > std::max(tol_, 1e-13 * std::max(1.0, first_width_)));
    if (settled || found_.iterations >= max_steps_) return finish();

    ++clock_;
    solved_ = false;
    std::vector<int32_t> before;
    before.swap(block_now_);
    std::vector<Candidate> rising, falling;
    const auto take = [&](int32_t i) {
      if (chosen_[size_t(i)] == clock_) return false;
      chosen_[size_t(i)] = clock_;
      block_now_.push_back(i);
      return true;
    };
    for (const int32_t i : before) chosen_[size_t(i)] = -clock_;
    for (int group = 0; group < groups_; ++group) {
      const smo::Extremes& now = extremes_[size_t(group)];
      if (!(now.width() > tol_)) continue;
      const double middle = now.up < kInfinity && now.down > -kInfinity ? 0.5 * (now.up + now.down) : 0.0;
      int32_t top = -1, bottom = -1;
      for (int64_t i = starts_[size_t(group)]; i < starts_[size_t(group) + 1]; ++i) {
        const double up = v_[size_t(i)] + grows_[size_t(i)], down = v_[size_t(i)] + falls_[size_t(i)];
        const uint32_t mixed = uint32_t(i) * 2654435761u;
        if (group == worst && top < 0 && up >= now.up) top = int32_t(i);
        if (group == worst && bottom < 0 && down <= now.down) bottom = int32_t(i);
        if (chosen_[size_t(i)] == -clock_) continue;
        if (up > now.down + tol_) rising.push_back({up - middle, mixed, int32_t(i)});
        if (down < now.up - tol_) falling.push_back({middle - down, mixed, int32_t(i)});
      }
      if (top >= 0) take(top);
      if (bottom >= 0) take(bottom);
    }
    const size_t fresh = before.empty() ? size_t(block_) : size_t(block_ / 2);
    const auto best = [&](std::vector<Candidate>& of, size_t until) {
      const size_t most = std::min(of.size(), until);
      std::nth_element(of.begin(), of.begin() + int64_t(most), of.end());
      std::sort(of.begin(), of.begin() + int64_t(most));
      for (size_t k = 0; k < most && block_now_.size() < until; ++k) take(of[k].at);
    };
    best(rising, fresh / 2 + 1);
    best(falling, fresh);
    best(rising, fresh);
    // Of those before, the ones that came last; older ones stand before younger ones.
    std::vector<int32_t> kept;
    for (size_t k = before.size(); k-- > 0 && kept.size() + block_now_.size() < size_t(block_);)
      if (chosen_[size_t(before[k])] != clock_) kept.push_back(before[k]);
    std::reverse(kept.begin(), kept.end());
    block_now_.insert(block_now_.begin(), kept.begin(), kept.end());
    for (const int32_t i : block_now_)
      if (slot_of_[size_t(i)] >= 0) used_[size_t(slot_of_[size_t(i)])] = clock_;
  }

  // The program of the block, the others fixed.
  void solve() {
    std::vector<int32_t> places(block_now_);
    std::sort(places.begin(), places.end());
    const int64_t q = int64_t(places.size());
    matrix_.resize(size_t(q * q));
    for (int64_t a = 0; a < q; ++a) {
      const double* from = row(places[size_t(a)]);
      for (int64_t b = 0; b < q; ++b) matrix_[size_t(a * q + b)] = from[places[size_t(b)]];
    }
    const int64_t split = std::lower_bound(places.begin(), places.end(), int32_t(starts_[1])) - places.begin();
    smo::PairAscent<Reward, smo::MatrixRows> inner({matrix_.data(), q}, q, {}, split);
    for (int64_t a = 0; a < q; ++a) inner.s[size_t(a)] = s_[size_t(places[size_t(a)])];
    inner.recompute();
    std::vector<double> shift;  // what the others make of g
    for (int64_t a = 0; a < q; ++a) shift.push_back(g_[size_t(places[size_t(a)])] - inner.g[size_t(a)]);
    inner.reward = reward_.part(places, shift);
    inner.flat = flat_;
    inner.ties = smo::kTies;
    const double aim = std::max(0.5 * tol_, kLocal * width_);
    found_.iterations += inner.ascend({0.0, 0.0, aim, max_steps_ - found_.iterations}).iterations;
    std::vector<const double*> rows;
    std::vector<double> by;
    for (int64_t a = 0; a < q; ++a) {
      const int32_t i = places[size_t(a)];
      const double change = inner.s[size_t(a)] - s_[size_t(i)];
      if (change == 0.0) continue;
      rows.push_back(row(i));
      by.push_back(change);
      s_[size_t(i)] = inner.s[size_t(a)];
    }
    add_rows(rows, by);
    solved_ = true;
  }

  void finish() {
    finished_ = true;
    found_.violation = width_;
    found_.converged = width_ <= tol_;
    found_.squared_norm = found_.loss = found_.gap = 0;
    for (int group = 0; group < groups_; ++group) {
      const int64_t first = starts_[size_t(group)], count = starts_[size_t(group) + 1] - first;
      const double b = found_.intercepts[size_t(group)] = smo::intercept(
          extremes_[size_t(group)], v_.data() + first, grows_.data() + first, falls_.data() + first, count);
      for (int64_t i = first; i < first + count; ++i) {
        const size_t at = size_t(i);
        found_.squared_norm += s_[at] * g_[at];
        found_.loss += reward_.loss(at, v_[at] - b);
        found_.gap += reward_.gap(at, s_[at], v_[at] - b);
      }
    }
    found_.squared_norm = std::max(found_.squared_norm, 0.0);
    slots_.clear();
  }

  Reward reward_;
  std::vector<double> s_, g_, diagonal_, v_, grows_, falls_, matrix_;
  int64_t n_;
  std::array<int64_t, 3> starts_;
  int groups_;
  double tol_;
  int64_t max_steps_;
  int threads_;
  int64_t batch_, block_, capacity_, clock_ = 0;
  double flat_ = 0, width_ = kInfinity, first_width_ = -1;
  std::array<smo::Extremes, 2> extremes_;
  std::vector<int32_t> to_add_, block_now_, asked_, slot_of_;
  size_t added_ = 0;
  std::vector<int64_t> chosen_, row_of_, used_;
  std::vector<std::unique_ptr<double[]>> slots_;
  bool solved_ = false, finished_ = false;
  smo::Outcome found_;
};

std::vector<double> checked(const In1<double>& values, int64_t n, const char* message) {
  require(int64_t(values.shape(0)) == n && all_finite(values.data(), n), message);
  return {values.data(), values.data() + n};
}

template <class Reward> class Blocks {
 public:
  Blocks(Reward reward, std::vector<double> start, const In1<double>& diagonal, int64_t split, double tol,
         int64_t max_iter, int64_t room, int threads)
      : ascent_(checked_ascent(std::move(reward), std::move(start), diagonal, split, tol, max_iter, room, threads)) {}
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  nb::object wanted() {
    std::vector<int64_t> places;
    {
      nb::gil_scoped_release unlocked;
      places = ascent_.wanted();
    }
    return to_numpy(std::move(places));
  }

  void give(In2<double> rows) {
    require(ascent_.asked() > 0, "no rows were asked for");
    require(int64_t(rows.shape(0)) == ascent_.asked() && int64_t(rows.shape(1)) == ascent_.size(),
            "rows must be those that were asked for, with a value for each instance");
    bool good = false;
    {
      nb::gil_scoped_release unlocked;
      good = ascent_.give(rows.data());
    }
    require(good, "K must be finite and not exceed 1e150: scale the features down");
  }

  nb::tuple result() const {
    require(ascent_.finished(), "the machine is not at its end: rows are still wanted");
    const smo::Outcome& found = ascent_.outcome();
    const auto [first, second] = found.intercepts;
    return nb::make_tuple(to_numpy(std::vector<double>(ascent_.s())), to_numpy(std::vector<double>(ascent_.g())), first,
                          second, found.squared_norm, found.loss, found.gap, found.iterations, found.converged);
  }

 private:
  static BlockAscent<Reward> checked_ascent(Reward reward, std::vector<double> start, const In1<double>& diagonal,
                                            int64_t split, double tol, int64_t max_iter, int64_t room, int threads) {
    const int64_t n = int64_t(start.size());
    require(n >= 1, "there must be at least one instance");
    require(n <= std::numeric_limits<int32_t>::max(), "there are too many instances");
    require(split >= 0 && split <= n, "split must be a number of instances");
    require(tol > 0 && std::isfinite(tol), "tol must be positive");
    require(max_iter >= 1, "max_iter must be at least 1");
    require(room >= 1, "there must be room for a row");
    std::vector<double> diagonal_of = checked(diagonal, n, "diagonal needs a finite value for each instance");
    require(small(diagonal_of.data(), n), "K must not exceed 1e150: scale the features down");
    return {std::move(reward),    std::move(start), std::move(diagonal_of), split, tol, max_iter, room,
            thread_count(threads)};
  }

  BlockAscent<Reward> ascent_;
};

using BoxBlocks = Blocks<smo::Box>;
using TubeBlocks = Blocks<smo::Tube>;

void make_box(BoxBlocks* self, In1<double> slope, In1<double> low, In1<double> high, In1<double> start,
              In1<double> diagonal, int64_t split, double tol, int64_t max_iter, int64_t room, int threads) {
  const int64_t n = int64_t(slope.shape(0));
  smo::Box box{checked(slope, n, "slope needs a finite value for each instance"),
               checked(low, n, "low needs a finite value for each instance"),
               checked(high, n, "high needs a finite value for each instance")};
  std::vector<double> from = checked(start, n, "start needs a finite value for each instance");
  for (size_t i = 0; i < size_t(n); ++i)
    require(box.low[i] <= from[i] && from[i] <= box.high[i], "start must lie between low and high");
  new (self) BoxBlocks(std::move(box), std::move(from), diagonal, split, tol, max_iter, room, threads);
}

void make_tube(TubeBlocks* self, In1<double> target, double width, In1<double> upper, In1<double> diagonal, double tol,
               int64_t max_iter, int64_t room, int threads) {
  const int64_t n = int64_t(target.shape(0));
  require(width >= 0 && std::isfinite(width), "width must be finite and at least 0");
  smo::Tube tube{checked(target, n, "target needs a finite value for each instance"),
                 checked(upper, n, "upper needs a finite value for each instance"), width};
  for (double value : tube.upper) require(value >= 0, "upper must be at least 0");
  new (self)
      TubeBlocks(std::move(tube), std::vector<double>(size_t(n), 0.0), diagonal, 0, tol, max_iter, room, threads);
}

template <class Class> void bind_verbs(nb::class_<Class>& bound) {
  bound
      .def("wanted", &Class::wanted, "The places of the rows that are needed next, after all that can be done without.")
      .def("give", &Class::give, "rows"_a, "The rows that were asked for.")
      .def("result", &Class::result, "What KernelMachine.solve_box gives.");
}

}  // namespace

void bind_block_machines(nb::module_& m) {
  nb::class_<BoxBlocks> box(m, "BoxBlocks", "The program of KernelMachine.solve_box with rows of K on demand.");
  box.def("__init__", &make_box, "slope"_a, "low"_a, "high"_a, "start"_a, "diagonal"_a, "split"_a, "tol"_a,
          "max_iter"_a, "room"_a, "threads"_a = 1);
  bind_verbs(box);
  nb::class_<TubeBlocks> tube(m, "TubeBlocks", "The program of KernelMachine.solve_tube with rows of K on demand.");
  tube.def("__init__", &make_tube, "target"_a, "width"_a, "upper"_a, "diagonal"_a, "tol"_a, "max_iter"_a, "room"_a,
           "threads"_a = 1);
  bind_verbs(tube);
}

}  // namespace mercer
