// Random subsets of the nodes of a graph: independent weighted draws, and a Markov chain.
//
//   P(A | G) ∝ β(|E(A)|)  over the k-subsets A, by Gibbs moves
#pragma once

#include <stdexcept>

#include "graphs/node_subsets.hpp"

namespace mercer::graphlets {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() { return mix64(state_ += 0x9E3779B97F4A7C15u); }
  uint64_t below(uint64_t n) {  // the bias of at most n / 2^64 is far below what samples can show
    __extension__ typedef unsigned __int128 Wide;
    return uint64_t((Wide(next()) * n) >> 64);
  }
  double uniform() { return double(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

// ------------------------------------------------------------------------------------------------- independent samples

struct Drawn {
  uint64_t mask = 0;
  double weight = 0;  // one over its probability, up to what all subsets share
  std::array<int32_t, MAX_K> nodes{};
};

// Connected subsets, each draw weighted so that every connected subset counts the same in expectation: a node is drawn,
// then k - 1 times a node of the boundary, each time uniformly. A subset A comes about in as many ways as its nodes
// have growth orders, so
//
//   weight = (number of first nodes) Π (sizes of the boundaries) / (growth orders of A),
//   E[weight 1(A)] = 1 for every A.
class Grower {
 public:
  Grower(const Graph& graph, int k, Subset& subset, Canonical& canonical)
      : graph_(graph), k_(k), subset_(subset), canonical_(canonical) {
    find_roots();
  }
  bool possible() const { return !roots_.empty(); }
  int components() const { return components_; }  // with at least k nodes

  Drawn draw(Random& random) {
    Drawn drawn;
    double ways = double(roots_.size());
    drawn.nodes[0] = roots_[random.below(roots_.size())];
    boundary_.clear();
    int place = 1;
    for (; place < k_; ++place) {
      enter(drawn.nodes[size_t(place - 1)], place - 1);
      if (boundary_.empty()) break;  // not in a symmetric graph
      const size_t i = random.below(boundary_.size());
      ways *= double(boundary_.size());
      const int32_t w = drawn.nodes[size_t(place)] = boundary_[i];
      boundary_[i] = boundary_.back();
      boundary_.pop_back();
      drawn.mask = grown(drawn.mask, subset_.join(w), place);
    }
    leave(drawn, std::min(place, k_ - 1));
    drawn.weight = place == k_ ? ways / canonical_.orders(drawn.mask, k_) : 0;
    return drawn;
  }

  // The weight that drawing these nodes in a random one of their growth orders would have.
  double replayed_weight(const Drawn& state, Random& random) {
    const auto orders = growth_orders(adjacency_of(state.mask, k_), k_);
    std::array<int, MAX_K> order{};
    uint32_t set = (1u << k_) - 1;
    const Adjacency adjacency = adjacency_of(state.mask, k_);
    for (int place = k_ - 1; place > 0; --place) {
      uint64_t left = random.below(orders[set]);
      for (int v = 0; v < k_; ++v) {
        if (!(set >> v & 1) || !(adjacency[size_t(v)] & set)) continue;
        const uint32_t ways = orders[set ^ (1u << v)];
        if (left < ways) {
          order[size_t(place)] = v;
          set ^= 1u << v;
          break;
        }
        left -= ways;
      }
    }
    order[0] = __builtin_ctz(set);
    double ways = double(roots_.size());
    boundary_.clear();
    Drawn replay;
    for (int place = 0; place + 1 < k_; ++place) {
      replay.nodes[size_t(place)] = state.nodes[size_t(order[size_t(place)])];
      enter(replay.nodes[size_t(place)], place);
      ways *= double(boundary_.size());
      const int32_t next = state.nodes[size_t(order[size_t(place + 1)])];
      const auto found = std::find(boundary_.begin(), boundary_.end(), next);
      if (found != boundary_.end()) boundary_.erase(found);
    }
    leave(replay, k_ - 1);
    return ways / double(orders.back());
  }

 private:
  void enter(int32_t v, int place) {
    for (const int32_t* u = graph_.begin(v); u < graph_.end(v); ++u)
      if (subset_.is_outside(*u)) boundary_.push_back(*u);
    subset_.take(v, place);
  }
  void leave(const Drawn& drawn, int count) {
    for (int place = 0; place < count; ++place) subset_.give_back(drawn.nodes[size_t(place)], place);
  }

  // The nodes in components of at least k nodes: growth from there never ends early.
  void find_roots() {
    std::vector<uint8_t> seen(size_t(graph_.n), 0);
    std::vector<int32_t> component;
    for (int32_t start = 0; start < graph_.n; ++start) {
      if (seen[size_t(start)]) continue;
      component.assign(1, start);
      seen[size_t(start)] = 1;
      for (size_t i = 0; i < component.size(); ++i)
        for (const int32_t* u = graph_.begin(component[i]); u < graph_.end(component[i]); ++u)
          if (!seen[size_t(*u)]) {
            seen[size_t(*u)] = 1;
            component.push_back(*u);
          }
      if (int64_t(component.size()) < k_) continue;
      ++components_;
      roots_.insert(roots_.end(), component.begin(), component.end());
    }
    std::sort(roots_.begin(), roots_.end());
  }

  const Graph& graph_;
  const int k_;
  Subset& subset_;
  Canonical& canonical_;
  int components_ = 0;
  std::vector<int32_t> roots_, boundary_;
};

// k different nodes, all subsets equally likely.
inline Drawn draw_any(const Graph& graph, int k, Subset& subset, Random& random) {
  Drawn drawn;
  drawn.weight = 1;
  for (int place = 0; place < k; ++place) {
    int32_t v;
    do v = int32_t(random.below(uint64_t(graph.n)));
    while (subset.join(v) & TAKEN);
    drawn.nodes[size_t(place)] = v;
    drawn.mask = grown(drawn.mask, subset.join(v), place);
    subset.take(v, place);
  }
  for (int place = 0; place < k; ++place) subset.give_back(drawn.nodes[size_t(place)], place);
  return drawn;
}

// ----------------------------------------------------------------------------------------------- Gibbs moves (Lemma 4)
//
// From A: a member i is picked uniformly and taken out; a node j of V \ A_i comes in with probability ∝ β(|E(A_i +
// j)|), i itself included. Nodes stand in buckets by their number of edges into the subset, so a move needs the sizes
// of k buckets, not n weights.
//
// With `connected`, weights of disconnected subsets are 0. On a connected graph the chain still reaches everything if β
// > 0: from A one gets to any B by taking out a leaf of a spanning tree of A and adding a node of B next to the common
// part, again and again. Where there are several components of k nodes, or where β has zeros, one step in eight is a
// jump: an independent draw (grown, or any k nodes), accepted by the Metropolis rule. Both kinds of step leave P(A | G)
// as it is, and jumps reach every subset.
class GibbsChain {
 public:
  GibbsChain(const Graph& graph, int k, const double* beta, bool connected, Subset& subset, Canonical& canonical)
      : graph_(graph),
        k_(k),
        beta_(beta),
        connected_(connected),
        scratch_(subset),
        grower_(graph, k, subset, canonical) {
    const bool has_zeros =
        std::any_of(beta + (connected ? k - 1 : 0), beta + pairs_of(k) + 1, [](double b) { return b == 0; });
    jumps_ = has_zeros || (connected && grower_.components() > 1);
    joins_.assign(size_t(graph.n), 0);
    where_.resize(size_t(graph.n));
    buckets_[0].resize(size_t(graph.n));
    std::iota(buckets_[0].begin(), buckets_[0].end(), 0);
    std::iota(where_.begin(), where_.end(), 0);
  }
  bool possible() const { return connected_ ? grower_.possible() : graph_.n >= k_; }
  bool has_weight() const { return beta_[__builtin_popcountll(mask())] > 0; }
  const int32_t* nodes() const { return nodes_.data(); }

  void start(Random& random) { go_to(propose(random)); }
  void set(const int32_t* nodes) {
    Drawn drawn;
    std::copy(nodes, nodes + k_, drawn.nodes.begin());
    go_to(drawn);
  }

  void step(Random& random) {
    if (jumps_ && random.below(8) == 0) return jump(random);
    const int place = int(random.below(uint64_t(k_)));
    const int32_t i = nodes_[size_t(place)];
    take_out(place);
    const double total = weigh();
    if (total > 0) {
      double left = random.uniform() * total;
      int d = 0;
      while (d < k_ - 1 && left >= weights_[size_t(d)] * double(counts_[size_t(d)])) {
        left -= weights_[size_t(d)] * double(counts_[size_t(d)]);
        ++d;
      }
      while (counts_[size_t(d)] == 0 || weights_[size_t(d)] == 0) --d;  // rounding may lead one past the last bucket
      put_in(pick(d, random), place);
    } else {
      put_in(i, place);
    }
  }

  // The probability that a move ends at each node, when the member at a place is taken out; 0 for members that stay.
  std::vector<double> move_probabilities(int place) {
    const int32_t i = nodes_[size_t(place)];
    take_out(place);
    const double total = weigh();
    std::vector<double> probabilities(size_t(graph_.n), 0);
    for (int d = 0; d < k_ && total > 0; ++d)
      for (int32_t v : buckets_[size_t(d)])
        if (allowed(v)) probabilities[size_t(v)] = weights_[size_t(d)] / total;
    if (total == 0) probabilities[size_t(i)] = 1;
    put_in(i, place);
    return probabilities;
  }

  uint64_t mask() const {
    uint64_t mask = 0;
    for (int b = 1; b < k_; ++b) mask |= uint64_t(joins_[size_t(nodes_[size_t(b)])] & ((1 << b) - 1)) << pairs_of(b);
    return mask;
  }

 private:
  Drawn propose(Random& random) { return connected_ ? grower_.draw(random) : draw_any(graph_, k_, scratch_, random); }

  void jump(Random& random) {
    Drawn here;
    here.nodes = nodes_;
    here.mask = mask();
    const Drawn there = propose(random);
    const double weight_here = connected_ ? grower_.replayed_weight(here, random) : 1.0;
    const double from = beta_[__builtin_popcountll(here.mask)] * weight_here;
    const double to = beta_[__builtin_popcountll(there.mask)] * there.weight;
    if (random.uniform() * from < to) go_to(there);
  }

  void go_to(const Drawn& drawn) {
    for (int place = 0; started_ && place < k_; ++place) take_out(place);
    for (int place = 0; place < k_; ++place) put_in(drawn.nodes[size_t(place)], place);
    started_ = true;
  }

  // Σ of β over the nodes that may come in, by buckets; members left are not in buckets.
  double weigh() {
    int edges = 0;
    for (int32_t v : nodes_in()) edges += __builtin_popcount(joins_[size_t(v)]);
    edges /= 2;
    find_parts();
    double total = 0;
    for (int d = 0; d < k_; ++d) {
      const auto& bucket = buckets_[size_t(d)];
      if (!connected_ || (parts_.size() <= 1 && d > 0) || k_ == 1)
        counts_[size_t(d)] = int64_t(bucket.size());
      else if (d < int(parts_.size()))
        counts_[size_t(d)] = 0;  // too few edges to reach every part
      else
        counts_[size_t(d)] = std::count_if(bucket.begin(), bucket.end(), [&](int32_t v) { return allowed(v); });
      weights_[size_t(d)] = beta_[edges + d];
      total += weights_[size_t(d)] * double(counts_[size_t(d)]);
    }
    return total;
  }

  // The members that are left, without the place taken out.
  std::vector<int32_t>& nodes_in() {
    members_.clear();
    for (int place = 0; place < k_; ++place)
      if (place != gap_) members_.push_back(nodes_[size_t(place)]);
    return members_;
  }

  // Connected parts of the members left, as sets of places.
  void find_parts() {
    parts_.clear();
    if (!connected_) return;
    uint32_t open = ((1u << k_) - 1) & ~(1u << gap_);
    while (open) {
      uint32_t part = open & -open, grown_part = 0;
      while (part != grown_part) {
        grown_part = part;
        for (int place = 0; place < k_; ++place)
          if (grown_part >> place & 1) part |= joins_[size_t(nodes_[size_t(place)])] & open;
      }
      parts_.push_back(part);
      open &= ~part;
    }
  }
  bool allowed(int32_t v) const {
    return std::all_of(parts_.begin(), parts_.end(), [&](uint32_t part) { return joins_[size_t(v)] & part; });
  }

  int32_t pick(int d, Random& random) {
    const auto& bucket = buckets_[size_t(d)];
    uint64_t i = random.below(uint64_t(counts_[size_t(d)]));
    if (counts_[size_t(d)] == int64_t(bucket.size())) return bucket[i];
    for (int32_t v : bucket)
      if (allowed(v) && i-- == 0) return v;
    throw std::logic_error("a bucket holds fewer nodes than were counted");
  }

  void into_bucket(int32_t v) {
    auto& bucket = buckets_[size_t(__builtin_popcount(joins_[size_t(v)]))];
    where_[size_t(v)] = int64_t(bucket.size());
    bucket.push_back(v);
  }
  void out_of_bucket(int32_t v) {
    auto& bucket = buckets_[size_t(__builtin_popcount(joins_[size_t(v)]))];
    const int64_t place = where_[size_t(v)];
    bucket[size_t(place)] = bucket.back();
    where_[size_t(bucket[size_t(place)])] = place;
    bucket.pop_back();
    where_[size_t(v)] = -1;
  }
  void put_in(int32_t v, int place) {
    nodes_[size_t(place)] = v;
    gap_ = -1;
    out_of_bucket(v);
    change_joins(v, place);
  }
  void take_out(int place) {
    const int32_t v = nodes_[size_t(place)];
    gap_ = place;
    change_joins(v, place);
    into_bucket(v);
  }
  void change_joins(int32_t v, int place) {
    for (const int32_t* u = graph_.begin(v); u < graph_.end(v); ++u) {
      const bool free = where_[size_t(*u)] >= 0;
      if (free) out_of_bucket(*u);
      joins_[size_t(*u)] ^= uint16_t(1 << place);
      if (free) into_bucket(*u);
    }
  }

  const Graph& graph_;
  const int k_;
  const double* beta_;
  const bool connected_;
  Subset& scratch_;
  Grower grower_;
  bool jumps_ = false, started_ = false;
  int gap_ = -1;
  std::array<int32_t, MAX_K> nodes_{};
  std::vector<uint16_t> joins_;
  std::vector<int64_t> where_;  // place in its bucket; -1 for members
  std::array<std::vector<int32_t>, MAX_K + 1> buckets_;
  std::array<double, MAX_K> weights_{};
  std::array<int64_t, MAX_K> counts_{};
  std::vector<uint32_t> parts_;
  std::vector<int32_t> members_;
};

}  // namespace mercer::graphlets
