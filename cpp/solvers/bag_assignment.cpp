// Labels of the instances of bags, given their scores and the share of positives that each bag should have.
//
//   min over y in {-1, +1}^|B|   sum_i L'(y_i, f_i) + r L(p(y)),    p(y) = sum_i v_i [y_i = 1] / sum_i v_i
//
// L'(y, f) = max(0, 1 - y f), or its square; L(p) = the distance of p to [low, high], or its square; r = ratio times
// the weight of the bag. Making instance i positive saves delta_i = L'(-1, f_i) - L'(+1, f_i), which ascends with f_i.
// With equal v the best m positives are those of largest f, and the cost is convex in m: the m-th positive costs r
// (L(m/n) - L((m-1)/n)) - delta_(m), which does not fall with m, so halving by selection finds m in O(n) on average,
// and a full sort is not needed. Instances of known label keep it and shift the count. With unequal v the problem is a
// knapsack: instances in the order of delta_i / v_i, the best prefix, then single flips until none helps; that is not
// exact.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/arrays.hpp"
#include "base/parallel.hpp"

namespace mercer {
namespace {

struct Losses {
  bool squared_hinge, squared_share;

  double instance(double y, double f) const {
    const double short_of = std::max(0.0, 1.0 - y * f);
    return squared_hinge ? short_of * short_of : short_of;
  }
  double saving(double f) const { return instance(-1.0, f) - instance(1.0, f); }
  double share(double p, double low, double high) const {
    const double off = std::max({0.0, low - p, p - high});
    return squared_share ? off * off : off;
  }
};

struct Candidate {
  double key;  // score, or saving for each unit of weight
  int64_t at;
};

// Largest key first; equal keys by place, so that the order is the same everywhere.
inline bool before(const Candidate& a, const Candidate& b) { return a.key > b.key || (a.key == b.key && a.at < b.at); }

struct Bag {
  const double *scores, *weights;
  const int8_t *known, *current;  // current may be null
  int64_t n;
  double low, high, r;
};

class Assigner {
 public:
  explicit Assigner(Losses losses) : losses_(losses) {}

  void assign(const Bag& bag, int8_t* labels) {
    bool equal = true;
    for (int64_t i = 1; i < bag.n && equal; ++i) equal = bag.weights[i] == bag.weights[0];
    if (equal)
      by_count(bag, labels);
    else
      by_weight(bag, labels);
  }

  // Sum of instance losses, and the loss of the share.
  std::pair<double, double> cost(const Bag& bag, const int8_t* labels) const {
    double instances = 0, positive = 0, total = 0;
    for (int64_t i = 0; i < bag.n; ++i) {
      instances += losses_.instance(labels[i], bag.scores[i]);
      total += bag.weights[i];
      if (labels[i] > 0) positive += bag.weights[i];
    }
    return {instances, losses_.share(positive / total, bag.low, bag.high)};
  }

 private:
  void by_count(const Bag& bag, int8_t* labels) {
    candidates_.clear();
    int64_t fixed = 0;
    for (int64_t i = 0; i < bag.n; ++i) {
      labels[i] = bag.known[i] != 0 ? bag.known[i] : int8_t(-1);
      if (bag.known[i] == 0) candidates_.push_back({bag.scores[i], i});
      fixed += bag.known[i] > 0;
    }
    const double n = double(bag.n);
    int64_t sure = 0, possible = int64_t(candidates_.size());  // the best number of positives lies between these
    while (sure < possible) {
      const int64_t middle = sure + (possible - sure) / 2;
      std::nth_element(candidates_.begin() + sure, candidates_.begin() + middle, candidates_.begin() + possible,
                       before);
      const double rise = losses_.share(double(fixed + middle + 1) / n, bag.low, bag.high) -
                          losses_.share(double(fixed + middle) / n, bag.low, bag.high);
      if (bag.r * rise < losses_.saving(candidates_[size_t(middle)].key))
        sure = middle + 1;
      else
        possible = middle;
    }
    for (int64_t m = 0; m < sure; ++m) labels[candidates_[size_t(m)].at] = 1;
  }

  void by_weight(const Bag& bag, int8_t* labels) {
    double total = 0, positive = 0;
    candidates_.clear();
    for (int64_t i = 0; i < bag.n; ++i) {
      total += bag.weights[i];
      labels[i] = bag.known[i];
      if (bag.known[i] > 0) positive += bag.weights[i];
      if (bag.known[i] != 0) continue;
      const double saving = losses_.saving(bag.scores[i]);
      if (bag.weights[i] > 0)
        candidates_.push_back({saving / bag.weights[i], i});
      else
        labels[i] = saving > 0 ? 1 : -1;  // does not count in the share
    }
    std::sort(candidates_.begin(), candidates_.end(), before);
    double change = 0, best = 0, weight = positive;
    const double at_zero = losses_.share(positive / total, bag.low, bag.high);
    size_t kept = 0;
    for (size_t m = 0; m < candidates_.size(); ++m) {
      const int64_t i = candidates_[m].at;
      change -= losses_.saving(bag.scores[i]);
      weight += bag.weights[i];
      const double value = change + bag.r * (losses_.share(weight / total, bag.low, bag.high) - at_zero);
      if (value < best) {
        best = value;
        kept = m + 1;
      }
    }
    for (size_t m = 0; m < candidates_.size(); ++m) labels[candidates_[m].at] = m < kept ? 1 : -1;
    flip(bag, total, labels);
    if (bag.current) keep_better(bag, total, labels);
  }

  // Single flips, each of which lowers the cost, until none does.
  void flip(const Bag& bag, double total, int8_t* labels) const {
    double positive = 0;
    for (int64_t i = 0; i < bag.n; ++i) positive += labels[i] > 0 ? bag.weights[i] : 0.0;
    for (bool changed = true; changed;) {
      changed = false;
      for (int64_t i = 0; i < bag.n; ++i) {
        if (bag.known[i] != 0) continue;
        const double moved = labels[i] > 0 ? -bag.weights[i] : bag.weights[i];
        const double saved = double(-labels[i]) * losses_.saving(bag.scores[i]);
        const double old_share = bag.r * losses_.share(positive / total, bag.low, bag.high);
        const double new_share = bag.r * losses_.share((positive + moved) / total, bag.low, bag.high);
        // A margin above rounding keeps two labellings of equal cost from taking turns for ever.
        if (new_share - old_share - saved < -1e-12 * (1.0 + std::abs(saved) + old_share + new_share)) {
          labels[i] = int8_t(-labels[i]);
          positive += moved;
          changed = true;
        }
      }
    }
  }

  // The labels from before, improved, where they cost less: so that alternation never loses ground.
  void keep_better(const Bag& bag, double total, int8_t* labels) {
    other_.assign(bag.current, bag.current + bag.n);
    for (int64_t i = 0; i < bag.n; ++i)
      if (bag.known[i] != 0) other_[size_t(i)] = bag.known[i];
    flip(bag, total, other_.data());
    const auto [a, b] = cost(bag, labels);
    const auto [c, d] = cost(bag, other_.data());
    if (c + bag.r * d < a + bag.r * b) std::copy(other_.begin(), other_.end(), labels);
  }

  Losses losses_;
  std::vector<Candidate> candidates_;
  std::vector<int8_t> other_;
};

void check(const In1<double>& scores, const In1<int64_t>& offsets, const In1<double>& low, const In1<double>& high,
           const In1<double>& bag_weight, const In1<double>& row_weight, const In1<int8_t>& known,
           const std::optional<In1<int8_t>>& current, double ratio) {
  const int64_t n = int64_t(scores.shape(0)), bags = int64_t(offsets.shape(0)) - 1;
  require(bags >= 0 && offsets.data()[0] == 0, "offsets must start with 0");
  for (int64_t k = 0; k < bags; ++k)
    require(offsets.data()[k] < offsets.data()[k + 1], "every bag needs an instance: offsets must ascend");
  require(offsets.data()[bags] <= n, "offsets go beyond the scores");
  require(int64_t(low.shape(0)) == bags && int64_t(high.shape(0)) == bags && int64_t(bag_weight.shape(0)) == bags,
          "low, high and bag_weight must have one entry for each bag");
  require(int64_t(row_weight.shape(0)) == n && int64_t(known.shape(0)) == n,
          "row_weight and known must have one entry for each score");
  require(all_finite(scores.data(), n), "scores must be finite");
  for (int64_t k = 0; k < bags; ++k) {
    require(low.data()[k] >= 0 && low.data()[k] <= high.data()[k] && high.data()[k] <= 1,
            "bounds must satisfy 0 <= low <= high <= 1");
    require(bag_weight.data()[k] >= 0 && std::isfinite(bag_weight.data()[k]),
            "bag_weight must be finite and at least 0");
    double total = 0;
    for (int64_t i = offsets.data()[k]; i < offsets.data()[k + 1]; ++i) {
      require(row_weight.data()[i] >= 0, "row_weight must be at least 0");
      total += row_weight.data()[i];
    }
    require(total > 0 && std::isfinite(total), "the row_weight of a bag must sum to a positive finite number");
  }
  for (int64_t i = 0; i < n; ++i) require(known.data()[i] >= -1 && known.data()[i] <= 1, "known must be -1, 0 or 1");
  for (int64_t i = offsets.data()[bags]; i < n; ++i)
    require(known.data()[i] != 0, "an instance without a bag needs a known label");
  if (current) {
    require(int64_t(current->shape(0)) == n, "current must have one entry for each score");
    for (int64_t i = 0; i < n; ++i)
      require(current->data()[i] == 1 || current->data()[i] == -1, "current must be -1 or 1");
  }
  require(ratio >= 0 && std::isfinite(ratio), "ratio must be finite and at least 0");
}

bool choice(const std::string& given, const char* plain, const char* squared, const char* message) {
  require(given == plain || given == squared, message);
  return given == squared;
}

nb::tuple assign_labels(In1<double> scores, In1<int64_t> offsets, In1<double> low, In1<double> high,
                        In1<double> bag_weight, In1<double> row_weight, In1<int8_t> known,
                        std::optional<In1<int8_t>> current, double ratio, const std::string& loss,
                        const std::string& proportion_loss, int threads) {
  check(scores, offsets, low, high, bag_weight, row_weight, known, current, ratio);
  const Losses losses{
      choice(loss, "hinge", "squared-hinge", "loss must be 'hinge' or 'squared-hinge'"),
      choice(proportion_loss, "absolute", "squared", "proportion_loss must be 'absolute' or 'squared'")};
  threads = thread_count(threads);
  const int64_t n = int64_t(scores.shape(0)), bags = int64_t(offsets.shape(0)) - 1, inside = offsets.data()[bags];
  std::vector<int8_t> labels(static_cast<size_t>(n));
  std::vector<double> instances(size_t(bags) + 1, 0.0), shares(static_cast<size_t>(bags));
  {
    nb::gil_scoped_release unlocked;
    // Runs of bags of about equally many instances; where they end does not depend on the number of threads.
    std::vector<int64_t> starts{0};
    for (int64_t k = 0; k < bags; ++k)
      if (offsets.data()[k + 1] - offsets.data()[starts.back()] >= 4096) starts.push_back(k + 1);
    if (starts.back() != bags) starts.push_back(bags);
    in_parallel(int64_t(starts.size()) - 1, threads, [&](int64_t part) {
      Assigner assigner(losses);
      for (int64_t k = starts[size_t(part)]; k < starts[size_t(part) + 1]; ++k) {
        const int64_t at = offsets.data()[k];
        const Bag bag{scores.data() + at,
                      row_weight.data() + at,
                      known.data() + at,
                      current ? current->data() + at : nullptr,
                      offsets.data()[k + 1] - at,
                      low.data()[k],
                      high.data()[k],
                      ratio * bag_weight.data()[k]};
        assigner.assign(bag, labels.data() + at);
        std::tie(instances[size_t(k)], shares[size_t(k)]) = assigner.cost(bag, labels.data() + at);
      }
    });
    for (int64_t i = inside; i < n; ++i) {
      labels[size_t(i)] = known.data()[i];
      instances[size_t(bags)] += losses.instance(known.data()[i], scores.data()[i]);
    }
  }
  return nb::make_tuple(to_numpy(std::move(labels)), to_numpy(std::move(instances)), to_numpy(std::move(shares)));
}

}  // namespace

void bind_assignment(nb::module_& m) {
  m.def("assign_labels", &assign_labels, "scores"_a, "offsets"_a, "low"_a, "high"_a, "bag_weight"_a, "row_weight"_a,
        "known"_a, "current"_a.none(), "ratio"_a, "loss"_a, "proportion_loss"_a, "threads"_a,
        "(labels, sums of instance losses of each bag and of instances without one, losses of the shares).");
}

}  // namespace mercer
