// Orders of elimination for a graph whose variables have different numbers of states.
//
// Eliminating a variable v joins its neighbours; {v} ∪ neighbours(v) at that moment is a clique of the triangulated
// graph. The cost of an order is the number of entries Σ_C Π_{v ∈ C} states(v) of tables over the maximal cliques. To
// find the best order is NP-hard. Greedy rules do well, and none is best everywhere (Kjærulff 1990), so several run,
// then the better ones with noise on their keys, as long as the search costs less than the tables that it may save.
// Steps are counted, not timed: a graph always gets the same order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "inference/factors.hpp"

namespace mercer {

enum class EliminationRule {
  kMinFill,       // fewest edges that are missing among the neighbours
  kMinDegree,     // fewest neighbours
  kMinWeight,     // smallest table of the clique
  kWeightedFill,  // missing edges, weighted with the product of the numbers of states at their ends
};

// Which variables were neighbours when each was eliminated.
struct Elimination {
  std::vector<int32_t> order;
  std::vector<std::vector<int32_t>> later;  // by variable
  double entries = 0.0;                     // of all cliques, before those are left out that lie in another one
  double maximal_entries = 0.0;             // of the maximal ones, if complete
  int32_t most_variables = 0;
  bool complete = true;
};

// The place of each variable in an order, and the neighbour that is eliminated next after it (−1: none).
inline std::vector<int32_t> places_of(const std::vector<int32_t>& order) {
  std::vector<int32_t> place(order.size());
  for (size_t t = 0; t < order.size(); ++t) place[size_t(order[t])] = int32_t(t);
  return place;
}
inline std::vector<int32_t> next_of(const Elimination& done, const std::vector<int32_t>& place) {
  std::vector<int32_t> next(done.order.size(), -1);
  for (size_t v = 0; v < next.size(); ++v)
    for (int32_t u : done.later[v])
      if (next[v] < 0 || place[size_t(u)] < place[size_t(next[v])]) next[v] = u;
  return next;
}
// The first variable of the clique that each variable is eliminated in: the set of v takes in that of the next variable
// p if it holds all of it.
inline std::vector<int32_t> clique_heads(const Elimination& done, const std::vector<int32_t>& next) {
  std::vector<int32_t> head(done.order.size(), -1);
  for (int32_t v : done.order) {
    if (head[size_t(v)] < 0) head[size_t(v)] = v;
    const int32_t p = next[size_t(v)];
    if (p >= 0 && head[size_t(p)] < 0 && done.later[size_t(p)].size() + 1 == done.later[size_t(v)].size())
      head[size_t(p)] = head[size_t(v)];
  }
  return head;
}

class Eliminator {
 public:
  explicit Eliminator(const FactorStructure& s) : s_(s), near_(size_t(s.n)), mark_(size_t(s.n), -1) {
    for (int64_t f = 0; f < s.m; ++f)
      for (int64_t a = s.scope_starts[size_t(f)]; a < s.scope_starts[size_t(f) + 1]; ++a)
        for (int64_t b = s.scope_starts[size_t(f)]; b < s.scope_starts[size_t(f) + 1]; ++b)
          if (a != b) near_[size_t(s.scopes[size_t(a)])].push_back(s.scopes[size_t(b)]);
    for (auto& list : near_) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }

  // Gives up where the cliques have more than `limit` entries. `noise` multiplies keys with 1 + noise · u, u uniform in
  // [0, 1).
  Elimination run(EliminationRule rule, double limit, double noise = 0.0, uint64_t seed = 0) {
    const auto whole = near_;
    steps_ += 8.0;
    rule_ = rule, noise_ = noise, random_ = seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
    gone_.assign(size_t(s_.n), 0);
    key_.assign(size_t(s_.n), 0.0);
    queue_ = {};
    for (int32_t v = 0; v < s_.n; ++v) set_key(v);
    Elimination done;
    done.later.resize(size_t(s_.n));
    while (!queue_.empty()) {
      const auto [key, size, v] = queue_.top();
      queue_.pop();
      if (gone_[size_t(v)] || key != key_[size_t(v)]) continue;
      clean(v);
      const std::vector<int32_t>& around = near_[size_t(v)];
      double entries = s_.cards[size_t(v)];
      for (int32_t u : around) entries *= s_.cards[size_t(u)];
      done.entries += entries;
      done.most_variables = std::max(done.most_variables, int32_t(around.size()) + 1);
      if (done.entries > limit) {
        done.complete = false;
        break;
      }
      remove(v);
      done.order.push_back(v);
      done.later[size_t(v)] = std::move(near_[size_t(v)]);
    }
    near_ = whole;
    if (done.complete) set_maximal_entries(done);
    return done;
  }

  double steps() const { return steps_; }  // counted over all runs

 private:
  using Entry = std::tuple<double, double, int32_t>;  // ties go to the smaller clique, then to the smaller number

  double uniform() {
    random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
    return double(random_ >> 11) * 0x1p-53;
  }

  void set_key(int32_t v) {
    clean(v);
    const auto& around = near_[size_t(v)];
    double size = std::log(double(s_.cards[size_t(v)]));
    for (int32_t u : around) size += std::log(double(s_.cards[size_t(u)]));
    double key = double(around.size());
    if (rule_ != EliminationRule::kMinDegree) {
      const auto [count, weight] = fill(v);
      // A variable whose neighbours are all joined goes at once: that is never worse.
      key = count == 0                             ? -1.0
            : rule_ == EliminationRule::kMinFill   ? double(count)
            : rule_ == EliminationRule::kMinWeight ? size
                                                   : weight;
    }
    if (noise_ > 0.0 && key > 0.0) key *= 1.0 + noise_ * uniform();
    steps_ += 8.0 + double(around.size());
    key_[size_t(v)] = key;
    queue_.emplace(key, size, v);
  }
  void clean(int32_t v) {
    auto& list = near_[size_t(v)];
    list.erase(std::remove_if(list.begin(), list.end(), [&](int32_t u) { return gone_[size_t(u)] != 0; }), list.end());
  }
  // Edges that are missing among the neighbours of v: how many, and their weight.
  std::pair<int64_t, double> fill(int32_t v) {
    const auto& around = near_[size_t(v)];
    int64_t missing = 0;
    double weight = 0.0;
    for (size_t a = 0; a + 1 < around.size(); ++a) {
      const int32_t u = around[a];
      const auto& list = near_[size_t(u)];
      double cards = 0.0;
      if (8 * (around.size() - a) < list.size()) {  // u has many neighbours: look the others up
        for (size_t b = a + 1; b < around.size(); ++b)
          if (!std::binary_search(list.begin(), list.end(), around[b])) ++missing, cards += s_.cards[size_t(around[b])];
        steps_ += 4.0 * double(around.size() - a);
      } else {
        ++stamp_;
        for (int32_t w : list) mark_[size_t(w)] = stamp_;
        for (size_t b = a + 1; b < around.size(); ++b)
          if (mark_[size_t(around[b])] != stamp_) ++missing, cards += s_.cards[size_t(around[b])];
        steps_ += double(list.size() + around.size() - a);
      }
      weight += cards * s_.cards[size_t(u)];
    }
    return {missing, weight};
  }

  void remove(int32_t v) {
    const std::vector<int32_t>& around = near_[size_t(v)];
    gone_[size_t(v)] = 1;
    if (key_[size_t(v)] < 0.0 || around.size() <= 1) {  // nothing to join
      for (int32_t u : around) set_key(u);
      return;
    }
    std::vector<int32_t> joined;
    for (int32_t u : around) {
      clean(u);
      joined.clear();
      std::set_union(near_[size_t(u)].begin(), near_[size_t(u)].end(), around.begin(), around.end(),
                     std::back_inserter(joined));
      joined.erase(std::lower_bound(joined.begin(), joined.end(), u));
      near_[size_t(u)] = joined;
      steps_ += double(joined.size());
    }
    std::vector<int32_t> touched(around.begin(), around.end());
    if (rule_ != EliminationRule::kMinDegree) {
      for (int32_t u : around) touched.insert(touched.end(), near_[size_t(u)].begin(), near_[size_t(u)].end());
      std::sort(touched.begin(), touched.end());
      touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    }
    for (int32_t u : touched) set_key(u);
  }

  void set_maximal_entries(Elimination& done) const {
    const std::vector<int32_t> head = clique_heads(done, next_of(done, places_of(done.order)));
    for (int32_t v : done.order) {
      if (head[size_t(v)] != v) continue;
      double entries = s_.cards[size_t(v)];
      for (int32_t u : done.later[size_t(v)]) entries *= s_.cards[size_t(u)];
      done.maximal_entries += entries;
    }
  }

  const FactorStructure& s_;
  std::vector<std::vector<int32_t>> near_;  // sorted; may hold variables that are gone
  EliminationRule rule_ = EliminationRule::kMinFill;
  double noise_ = 0.0, steps_ = 0.0;
  uint64_t random_ = 1;
  std::vector<uint8_t> gone_;
  std::vector<double> key_;
  std::vector<int64_t> mark_;
  int64_t stamp_ = 0;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue_;
};

constexpr double kMostSteps = 2e8;  // of a search: below a second

// The best order that a search finds, in at most `effort` steps for each entry of the tables that are at stake.
inline Elimination search_order(const FactorStructure& s, double limit, double effort) {
  constexpr EliminationRule rules[] = {EliminationRule::kMinFill, EliminationRule::kWeightedFill,
                                       EliminationRule::kMinWeight};
  constexpr double noises[] = {0.2, 1.0, 0.5, 3.0};
  Eliminator eliminator(s);
  Elimination best = eliminator.run(EliminationRule::kMinDegree, limit);
  if (s.n > 2000 && !best.complete) return best;  // the other rules take long where degrees grow
  auto try_rule = [&](EliminationRule rule, double noise, uint64_t seed) {
    const double bound = best.complete ? std::min(limit, 2.0 * best.maximal_entries) : limit;
    Elimination other = eliminator.run(rule, bound, noise, seed);
    if (other.complete && (!best.complete || other.maximal_entries < best.maximal_entries)) best = std::move(other);
  };
  for (EliminationRule rule : rules)
    if (!best.complete || eliminator.steps() < best.maximal_entries) try_rule(rule, 0.0, 0);
  auto affordable = [&] { return eliminator.steps() < std::min(kMostSteps, effort * best.maximal_entries); };
  for (uint64_t seed = 1; best.complete && affordable(); ++seed) try_rule(rules[seed % 3], noises[seed / 3 % 4], seed);
  return best;
}

}  // namespace mercer
