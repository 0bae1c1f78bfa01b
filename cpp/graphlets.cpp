// Graphlets: how often each type of small induced subgraph occurs in a graph, exactly or from samples, hashed by canonical form.
//
//   Φ_S(G) = #{A ⊂ V(G), |A| = k : G[A] ≅ S}                                     spec 000 S13
//   P(A | G) ∝ β(|E(A)|)  over the k-subsets A, by Gibbs moves                   spec 000 S14, Lemma 4
//   sample → canonical form → hash → count                                       spec 000 S16
//
// A subgraph of k nodes in an order is a mask: bit b (b - 1) / 2 + a says whether the nodes at places a < b are joined, so the first
// p nodes own the low bits and a further node only adds bits on top. What a node contributes is its join: the places it is joined to.
// Joins are kept for all nodes while a subset grows and shrinks, so the last node of a subset costs one shift.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>
#include <unordered_map>

#include "bindings.hpp"
#include "hashing.hpp"
#include "parallel.hpp"

namespace mercer {
namespace {

constexpr int MAX_K = 9;             // masks of 36 bits
constexpr int TABLE_K = 6;           // canonical masks of up to so many nodes stand in tables
constexpr int DERIVED_K = 5;         // counts of disconnected types of up to so many nodes follow from those of connected ones
constexpr uint16_t TAKEN = 1 << 15;  // mark of a member of the subset, beside its join

constexpr int pairs_of(int k) { return k * (k - 1) / 2; }

using Adjacency = std::array<uint16_t, MAX_K>;  // of each node, the set of its neighbours
using Codes = std::array<int32_t, MAX_K>;       // labels

Adjacency adjacency_of(uint64_t mask, int k) {
  Adjacency adjacency{};
  for (int b = 1; b < k; ++b)
    for (int a = 0; a < b; ++a)
      if (mask >> (pairs_of(b) + a) & 1) {
        adjacency[size_t(a)] |= uint16_t(1 << b);
        adjacency[size_t(b)] |= uint16_t(1 << a);
      }
  return adjacency;
}

// The mask of the same graph with node v moved to place[v].
uint64_t moved(const Adjacency& adjacency, int k, const int* place) {
  uint64_t mask = 0;
  for (int v = 1; v < k; ++v)
    for (int u = 0; u < v; ++u)
      if (adjacency[size_t(v)] >> u & 1) {
        const int a = std::min(place[u], place[v]), b = std::max(place[u], place[v]);
        mask |= uint64_t(1) << (pairs_of(b) + a);
      }
  return mask;
}

// ---------------------------------------------------------------------------------------------------- random numbers

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

// ---------------------------------------------------------------------------------------------------- canonical forms
//
// Nodes come sorted by label. A pattern says where labels repeat: bit p is set if the nodes p and p + 1 have the same one. The
// canonical mask is the least over all permutations that keep labels (k <= 6), or over the leaves of a search by colour refinement.

int all_equal(int k) { return (1 << (k - 1)) - 1; }

// Permutations that keep the cells of a pattern, each as the places of the nodes.
std::vector<std::array<int, TABLE_K>> permutations_within(int k, int pattern) {
  std::array<int, TABLE_K> cell{}, place{};
  for (int v = 1; v < k; ++v) cell[size_t(v)] = cell[size_t(v - 1)] + !(pattern >> (v - 1) & 1);
  std::iota(place.begin(), place.end(), 0);
  std::vector<std::array<int, TABLE_K>> kept;
  do {
    bool keeps = true;
    for (int v = 0; v < k; ++v) keeps = keeps && cell[size_t(place[size_t(v)])] == cell[size_t(v)];
    if (keeps) kept.push_back(place);
  } while (std::next_permutation(place.begin(), place.begin() + k));
  return kept;
}

// Canonical masks of all masks of k nodes under one pattern, made when first asked for.
const std::vector<uint16_t>& canonical_table(int k, int pattern) {
  struct Slot {
    std::once_flag once;
    std::vector<uint16_t> masks;
  };
  static std::array<std::array<Slot, 1 << (TABLE_K - 1)>, TABLE_K + 1> slots;
  Slot& slot = slots[size_t(k)][size_t(pattern)];
  std::call_once(slot.once, [&] {
    constexpr uint16_t OPEN = UINT16_MAX;
    const auto permutations = permutations_within(k, pattern);
    std::vector<uint16_t> masks(size_t(1) << pairs_of(k), OPEN);
    // Upwards: a mask that no smaller one reached is the least of its orbit.
    for (size_t mask = 0; mask < masks.size(); ++mask) {
      if (masks[mask] != OPEN) continue;
      const Adjacency adjacency = adjacency_of(mask, k);
      for (const auto& place : permutations) masks[moved(adjacency, k, place.data())] = uint16_t(mask);
    }
    slot.masks = std::move(masks);
  });
  return slot.masks;
}

// Individualisation and refinement: the least mask over the leaves of the search tree.
class CanonicalSearch {
 public:
  CanonicalSearch(uint64_t mask, int k, int pattern) : adjacency_(adjacency_of(mask, k)), k_(k) {
    Colours colours{};
    for (int v = 1; v < k; ++v) colours[size_t(v)] = (pattern >> (v - 1) & 1) ? colours[size_t(v - 1)] : v;
    descend(colours);
  }
  uint64_t best() const { return best_; }

 private:
  using Colours = std::array<int, MAX_K>;  // the number of nodes in earlier cells: where the cell begins

  // Splits cells by the numbers of neighbours in each cell, until nothing changes.
  void refine(Colours& colours) const {
    for (int cells = 0;;) {
      std::array<uint64_t, MAX_K> signature{};
      for (int v = 0; v < k_; ++v) {
        signature[size_t(v)] = uint64_t(colours[size_t(v)]) << 40;
        for (int u = 0; u < k_; ++u)
          if (adjacency_[size_t(v)] >> u & 1) signature[size_t(v)] += uint64_t(1) << (4 * colours[size_t(u)]);
      }
      uint32_t used = 0;
      for (int v = 0; v < k_; ++v) {
        int before = 0;
        for (int u = 0; u < k_; ++u) before += signature[size_t(u)] < signature[size_t(v)];
        colours[size_t(v)] = before;
        used |= 1u << before;
      }
      const int now = __builtin_popcount(used);
      if (now == cells) return;
      cells = now;
    }
  }

  bool twins(int u, int v) const {
    return (adjacency_[size_t(u)] & ~(1 << v)) == (adjacency_[size_t(v)] & ~(1 << u));
  }

  void descend(Colours colours) {
    refine(colours);
    std::array<int, MAX_K> size{};
    for (int v = 0; v < k_; ++v) ++size[size_t(colours[size_t(v)])];
    const auto wide = std::find_if(size.begin(), size.begin() + k_, [](int n) { return n > 1; });
    if (wide == size.begin() + k_) {
      best_ = std::min(best_, moved(adjacency_, k_, colours.data()));
      return;
    }
    const int cell = int(wide - size.begin());
    uint32_t tried = 0;
    for (int v = 0; v < k_; ++v) {
      if (colours[size_t(v)] != cell) continue;
      // Swapping twins changes nothing, so the tree below one is the tree below the other.
      bool seen = false;
      for (int u = 0; u < v; ++u) seen = seen || ((tried >> u & 1) && twins(u, v));
      if (seen) continue;
      tried |= 1u << v;
      Colours next = colours;
      for (int u = 0; u < k_; ++u)
        if (u != v && colours[size_t(u)] == cell) next[size_t(u)] = cell + 1;
      descend(next);
    }
  }

  Adjacency adjacency_;
  int k_;
  uint64_t best_ = UINT64_MAX;
};

// In how many orders the nodes can be taken so that every beginning is connected; 0 for a disconnected graph.
std::vector<uint32_t> growth_orders(const Adjacency& adjacency, int k) {
  std::vector<uint32_t> orders(size_t(1) << k, 0);
  for (uint32_t set = 1; set < (1u << k); ++set) {
    if ((set & (set - 1)) == 0) {
      orders[set] = 1;
      continue;
    }
    for (int v = 0; v < k; ++v)
      if ((set >> v & 1) && (adjacency[size_t(v)] & set)) orders[set] += orders[set ^ (1u << v)];
  }
  return orders;
}

// From keys to values, bounded: what does not fit any more is computed again.
class Memo {
 public:
  template <class Compute> uint64_t operator()(uint64_t key, Compute compute) {
    if (entries_.empty()) entries_.resize(1 << 12);
    size_t place = find(key);
    if (entries_[place].key == key + 1) return entries_[place].value;
    const uint64_t value = compute();
    if (used_ >= MOST) return value;
    if (2 * ++used_ > entries_.size()) {
      grow();
      place = find(key);
    }
    entries_[place] = {key + 1, value};
    return value;
  }

 private:
  static constexpr size_t MOST = size_t(1) << 20;
  struct Entry {
    uint64_t key = 0, value = 0;  // keys are kept plus one: 0 is an empty place
  };
  size_t find(uint64_t key) const {
    size_t place = mix64(key) & (entries_.size() - 1);
    while (entries_[place].key != 0 && entries_[place].key != key + 1) place = (place + 1) & (entries_.size() - 1);
    return place;
  }
  void grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old)
      if (entry.key) entries_[find(entry.key - 1)] = entry;
  }
  std::vector<Entry> entries_;
  size_t used_ = 0;
};

// Canonical masks and growth orders: from tables for k <= 6, else searched once for each mask.
class Canonical {
 public:
  uint64_t mask(uint64_t mask, int k, int pattern) {
    if (k <= TABLE_K) return canonical_table(k, pattern)[mask];
    const uint64_t key = mask | uint64_t(pattern) << 36 | uint64_t(k) << 44;
    return masks_(key, [&] { return CanonicalSearch(mask, k, pattern).best(); });
  }
  double orders(uint64_t mask, int k) {
    const uint64_t type = this->mask(mask, k, all_equal(k));  // isomorphic graphs have equally many: one sum over subsets for each type
    return double(orders_(type | uint64_t(k) << 44, [&] { return growth_orders(adjacency_of(type, k), k).back(); }));
  }

 private:
  Memo masks_, orders_;
};

// ---------------------------------------------------------------------------------------------------- one graph, and its labels

struct Graph {
  const int64_t* indptr;   // of its first node
  const int32_t* indices;  // of the whole stack
  const int32_t* codes;    // labels of its nodes as numbers that ascend with their keys, or null
  int32_t n;

  const int32_t* begin(int32_t v) const { return indices + indptr[v]; }
  const int32_t* end(int32_t v) const { return indices + indptr[v + 1]; }
  int64_t degree(int32_t v) const { return indptr[v + 1] - indptr[v]; }

  // From its edges alone, so that samples depend neither on the order of the graphs nor on threads.
  uint64_t seed(uint64_t given) const {
    uint64_t h = mix64(given);
    for (int32_t v = 0; v < n; ++v) {
      h = combine(h, uint64_t(degree(v)));
      for (const int32_t* u = begin(v); u < end(v); ++u) h = combine(h, uint64_t(*u));
    }
    return h;
  }
};

double binomial(double n, int k) {
  double value = 1;
  for (int i = 0; i < k; ++i) value *= (n - i) / (i + 1);
  return value;
}

// ---------------------------------------------------------------------------------------------------- subsets

// Members of a subset of nodes, and the joins of all nodes to it.
class Subset {
 public:
  void reset(const Graph& graph) {
    graph_ = &graph;
    joins_.assign(size_t(graph.n), 0);
  }
  uint16_t join(int32_t v) const { return joins_[size_t(v)]; }
  bool is_outside(int32_t v) const { return joins_[size_t(v)] == 0; }  // neither a member nor a neighbour of one
  void take(int32_t v, int place) {
    joins_[size_t(v)] |= TAKEN;
    for (const int32_t* u = graph_->begin(v); u < graph_->end(v); ++u) joins_[size_t(*u)] |= uint16_t(1 << place);
  }
  void give_back(int32_t v, int place) {
    for (const int32_t* u = graph_->begin(v); u < graph_->end(v); ++u) joins_[size_t(*u)] &= uint16_t(~(1 << place));
    joins_[size_t(v)] &= uint16_t(~TAKEN);
  }

 private:
  const Graph* graph_ = nullptr;
  std::vector<uint16_t> joins_;
};

uint64_t grown(uint64_t mask, uint16_t join, int place) { return mask | uint64_t(join & ~TAKEN) << pairs_of(place); }

// Every connected subset once (the ESU tree of Wernicke, 2006): a subset is grown from its smallest node, by nodes that are neighbours
// of none of the members before. Level p of the tree holds the connected subsets of p nodes, so one walk serves several sizes.
template <class Sink> class ConnectedSubsets {
 public:
  // sink(mask, nodes, k) for each subset of a wanted size (bit k of sizes). False as soon as there are more than `limit`.
  ConnectedSubsets(const Graph& graph, uint32_t sizes, Subset& subset, Sink& sink, int64_t limit)
      : graph_(graph), sizes_(sizes), most_(31 - __builtin_clz(sizes)), subset_(subset), sink_(sink), left_(limit) {}

  bool walk() {
    for (root_ = 0; root_ < graph_.n && left_ >= 0; ++root_) {
      nodes_[0] = root_;
      if (sizes_ >> 1 & 1) count(0, 1);
      if (most_ == 1) continue;
      extension_.clear();
      for (const int32_t* u = graph_.begin(root_); u < graph_.end(root_); ++u)
        if (*u > root_) extension_.push_back(*u);
      if (extension_.empty()) continue;
      subset_.take(root_, 0);
      extend(1, 0, 0, extension_.size());
      subset_.give_back(root_, 0);
    }
    return left_ >= 0;
  }

 private:
  void count(uint64_t mask, int k) {
    --left_;
    sink_(mask, nodes_.data(), k);
  }

  void extend(int place, uint64_t mask, size_t first, size_t last) {
    if (place == most_ - 1) {
      left_ -= int64_t(last - first);
      for (size_t i = first; i < last; ++i) {
        nodes_[size_t(place)] = extension_[i];
        sink_(grown(mask, subset_.join(extension_[i]), place), nodes_.data(), most_);
      }
      return;
    }
    for (size_t i = last; i-- > first && left_ >= 0;) {
      const int32_t w = nodes_[size_t(place)] = extension_[i];
      const uint64_t larger = grown(mask, subset_.join(w), place);
      if (sizes_ >> (place + 1) & 1) count(larger, place + 1);
      extension_.resize(last);
      for (size_t j = first; j < i; ++j) extension_.push_back(extension_[j]);
      for (const int32_t* u = graph_.begin(w); u < graph_.end(w); ++u)
        if (*u > root_ && subset_.is_outside(*u)) extension_.push_back(*u);
      if (extension_.size() == last) continue;
      subset_.take(w, place);
      extend(place + 1, larger, last, extension_.size());
      subset_.give_back(w, place);
    }
  }

  const Graph& graph_;
  const uint32_t sizes_;
  const int most_;
  Subset& subset_;
  Sink& sink_;
  int64_t left_;
  int32_t root_ = 0;
  std::array<int32_t, MAX_K> nodes_{};
  std::vector<int32_t> extension_;
};

// Every subset of k nodes once.
template <class Sink> void all_subsets(const Graph& graph, int k, Subset& subset, Sink& sink) {
  std::array<int32_t, MAX_K> nodes{};
  const auto extend = [&](const auto& self, int place, uint64_t mask) -> void {
    for (int32_t w = place ? nodes[size_t(place - 1)] + 1 : 0; w <= graph.n - (k - place); ++w) {
      nodes[size_t(place)] = w;
      const uint64_t larger = grown(mask, subset.join(w), place);
      if (place == k - 1) {
        sink(larger, nodes.data(), k);
        continue;
      }
      subset.take(w, place);
      self(self, place + 1, larger);
      subset.give_back(w, place);
    }
  };
  extend(extend, 0, 0);
}

// ---------------------------------------------------------------------------------------------------- independent samples

struct Drawn {
  uint64_t mask = 0;
  double weight = 0;  // one over its probability, up to what all subsets share
  std::array<int32_t, MAX_K> nodes{};
};

// Connected subsets, each draw weighted so that every connected subset counts the same in expectation: a node is drawn, then k - 1
// times a node of the boundary, each time uniformly. A subset A comes about in as many ways as its nodes have growth orders, so
//
//   weight = (number of first nodes) Π (sizes of the boundaries) / (growth orders of A),     E[weight 1(A)] = 1 for every A.
class Grower {
 public:
  Grower(const Graph& graph, int k, Subset& subset, Canonical& canonical) : graph_(graph), k_(k), subset_(subset), canonical_(canonical) {
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
Drawn draw_any(const Graph& graph, int k, Subset& subset, Random& random) {
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

// ---------------------------------------------------------------------------------------------------- Gibbs moves (Lemma 4)
//
// From A: a member i is picked uniformly and taken out; a node j of V \ A_i comes in with probability ∝ β(|E(A_i + j)|), i itself
// included. Nodes stand in buckets by their number of edges into the subset, so a move needs the sizes of k buckets, not n weights.
//
// With `connected`, weights of disconnected subsets are 0. On a connected graph the chain still reaches everything if β > 0: from A
// one gets to any B by taking out a leaf of a spanning tree of A and adding a node of B next to the common part, again and again.
// Where there are several components of k nodes, or where β has zeros, one step in eight is a jump: an independent draw (grown, or
// any k nodes), accepted by the Metropolis rule. Both kinds of step leave P(A | G) as it is, and jumps reach every subset.
class GibbsChain {
 public:
  GibbsChain(const Graph& graph, int k, const double* beta, bool connected, Subset& subset, Canonical& canonical)
      : graph_(graph), k_(k), beta_(beta), connected_(connected), scratch_(subset), grower_(graph, k, subset, canonical) {
    const bool has_zeros = std::any_of(beta + (connected ? k - 1 : 0), beta + pairs_of(k) + 1, [](double b) { return b == 0; });
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

// ---------------------------------------------------------------------------------------------------- disconnected types
//
// The counts of disconnected types follow from those of connected ones. For a type H with the components H_1 .. H_r,
//
//   Π_i #H_i = Σ_U c(U; H) #U,    c(U; H) the number of tuples (A_1 .. A_r) of subsets of U that cover U, with U[A_i] ≅ H_i,
//
// over all types U of at most k nodes. Every U ≠ H with c > 0 has fewer components than H, so the counts come out one after another.

struct Derived {
  int k;
  uint64_t type;
  std::vector<std::pair<int, uint64_t>> parts;               // size and canonical mask of each component
  std::vector<std::tuple<int, uint64_t, int64_t>> corrections;  // size and canonical mask of U, c(U; H)
  int64_t own;                                                // c(H; H)
};

uint64_t restricted(const Adjacency& adjacency, uint32_t set, int k) {
  std::array<int, MAX_K> place{};
  Adjacency inner{};
  int size = 0;
  for (int v = 0; v < k; ++v)
    if (set >> v & 1) place[size_t(size++)] = v;
  for (int b = 0; b < size; ++b)
    for (int a = 0; a < size; ++a)
      if (adjacency[size_t(place[size_t(b)])] >> place[size_t(a)] & 1) inner[size_t(b)] |= uint16_t(1 << a);
  std::array<int, MAX_K> same{};
  std::iota(same.begin(), same.end(), 0);
  return moved(inner, size, same.data());
}

std::vector<std::pair<int, uint64_t>> components_of(uint64_t mask, int k) {
  const Adjacency adjacency = adjacency_of(mask, k);
  std::vector<std::pair<int, uint64_t>> parts;
  for (uint32_t open = (1u << k) - 1; open;) {
    uint32_t part = open & -open, before = 0;
    while (part != before) {
      before = part;
      for (int v = 0; v < k; ++v)
        if (before >> v & 1) part |= adjacency[size_t(v)];
    }
    const int size = __builtin_popcount(part);
    parts.emplace_back(size, canonical_table(size, all_equal(size))[restricted(adjacency, part, k)]);
    open &= ~part;
  }
  std::sort(parts.begin(), parts.end());
  return parts;
}

int64_t coverings(uint64_t mask, int k, const std::vector<std::pair<int, uint64_t>>& parts) {
  const Adjacency adjacency = adjacency_of(mask, k);
  std::vector<std::pair<int, uint64_t>> type(size_t(1) << k);
  for (uint32_t set = 1; set < (1u << k); ++set) {
    const int size = __builtin_popcount(set);
    type[set] = {size, canonical_table(size, all_equal(size))[restricted(adjacency, set, k)]};
  }
  const auto count = [&](const auto& self, size_t i, uint32_t covered) -> int64_t {
    if (i == parts.size()) return covered == (1u << k) - 1;
    int64_t total = 0;
    for (uint32_t set = 1; set < (1u << k); ++set)
      if (type[set] == parts[i]) total += self(self, i + 1, covered | set);
    return total;
  };
  return count(count, 0, 0);
}

// The disconnected types of up to DERIVED_K nodes, in an order in which their counts can be computed.
const std::vector<Derived>& derived_types() {
  static const std::vector<Derived> derived = [] {
    struct Type {
      int k;
      uint64_t mask;
      std::vector<std::pair<int, uint64_t>> parts;
    };
    std::vector<Type> types;
    for (int k = 1; k <= DERIVED_K; ++k) {
      const auto& table = canonical_table(k, all_equal(k));
      for (size_t mask = 0; mask < table.size(); ++mask)
        if (table[mask] == mask) types.push_back({k, mask, components_of(mask, k)});
    }
    std::stable_sort(types.begin(), types.end(), [](const Type& a, const Type& b) {
      return a.k != b.k ? a.k < b.k : a.parts.size() < b.parts.size();
    });
    std::vector<Derived> found;
    for (const Type& type : types) {
      if (type.parts.size() == 1) continue;
      Derived entry{type.k, type.mask, type.parts, {}, coverings(type.mask, type.k, type.parts)};
      for (const Type& other : types)
        if (other.k <= type.k && other.parts.size() < type.parts.size())
          if (const int64_t c = coverings(other.mask, other.k, type.parts)) entry.corrections.emplace_back(other.k, other.mask, c);
      found.push_back(std::move(entry));
    }
    return found;
  }();
  return derived;
}

using TypeCounts = std::array<std::vector<int64_t>, DERIVED_K + 1>;  // by size and canonical mask

void derive_disconnected(TypeCounts& counts, int k) {
  __extension__ typedef __int128 Wide;
  for (const Derived& entry : derived_types()) {
    if (entry.k > k) break;
    Wide total = 1;
    for (const auto& [size, mask] : entry.parts) total *= counts[size_t(size)][mask];
    for (const auto& [size, mask, c] : entry.corrections) total -= Wide(c) * counts[size_t(size)][mask];
    counts[size_t(entry.k)][entry.type] = int64_t(total / entry.own);
  }
}

// ---------------------------------------------------------------------------------------------------- counts of one graph

struct Form {
  int k = 0;
  uint64_t mask = 0;
  Codes codes{};  // of the nodes in canonical order; 0 without labels
  bool operator==(const Form& other) const { return k == other.k && mask == other.mask && codes == other.codes; }
};

// Weights by canonical form.
class Counts {
 public:
  struct Entry {
    Form form;
    double weight;
  };
  Counts() : places_(64, -1) {}
  void clear() {
    if (places_.size() > 4096) places_.resize(4096);
    std::fill(places_.begin(), places_.end(), -1);
    entries_.clear();
  }
  void add(const Form& form, double weight) {
    size_t place = find(form);
    if (places_[place] >= 0) {
      entries_[size_t(places_[place])].weight += weight;
      return;
    }
    places_[place] = int32_t(entries_.size());
    entries_.push_back({form, weight});
    if (2 * entries_.size() > places_.size()) grow();
  }
  std::vector<Entry>& entries() { return entries_; }

 private:
  static uint64_t hash(const Form& form) {
    uint64_t h = form.mask * 16 + uint64_t(form.k);
    for (int v = 0; v < form.k; ++v) h = rotate_left(h * 0x9E3779B185EBCA87u, 23) + uint64_t(form.codes[size_t(v)]);
    return mix64(h);
  }
  size_t find(const Form& form) const {
    size_t place = hash(form) & (places_.size() - 1);
    while (places_[place] >= 0 && !(entries_[size_t(places_[place])].form == form)) place = (place + 1) & (places_.size() - 1);
    return place;
  }
  void grow() {
    places_.assign(places_.size() * 2, -1);
    for (size_t i = 0; i < entries_.size(); ++i) places_[find(entries_[i].form)] = int32_t(i);
  }
  std::vector<Entry> entries_;
  std::vector<int32_t> places_;
};

// The places a < b that a bit of a mask speaks of.
constexpr std::array<uint8_t, pairs_of(MAX_K)> ends(bool first) {
  std::array<uint8_t, pairs_of(MAX_K)> table{};
  for (int b = 1; b < MAX_K; ++b)
    for (int a = 0; a < b; ++a) table[size_t(pairs_of(b) + a)] = uint8_t(first ? a : b);
  return table;
}
constexpr auto FIRST = ends(true), SECOND = ends(false);

// Takes subsets and brings them into canonical form. Without labels, masks of up to 5 nodes are counted as they come, and brought
// into canonical form once a graph.
class Tally {
 public:
  Tally(Canonical& canonical, Counts& counts) : canonical_(canonical), counts_(counts) {}
  void begin(const Graph& graph) { codes_ = graph.codes; }

  void add(uint64_t mask, const int32_t* nodes, int k, double weight) {
    if (!codes_ && k <= DERIVED_K)
      raw_[size_t(k)][mask] += weight;
    else
      add_form(mask, nodes, k, weight);
  }
  void drop(int k) {  // forgets the raw counts of a size
    if (k <= DERIVED_K) raw_[size_t(k)].fill(0);
    counts_.clear();
  }
  void flush(int k) {
    if (codes_ || k > DERIVED_K) return;
    auto& raw = raw_[size_t(k)];
    const auto& table = canonical_table(k, all_equal(k));
    for (size_t mask = 0; mask < table.size(); ++mask) {
      if (raw[mask] == 0) continue;
      counts_.add({k, table[mask], {}}, raw[mask]);
      raw[mask] = 0;
    }
  }
  void take(int k, std::vector<int64_t>& by_type) {  // raw counts by canonical mask
    auto& raw = raw_[size_t(k)];
    const auto& table = canonical_table(k, all_equal(k));
    by_type.assign(table.size(), 0);
    for (size_t mask = 0; mask < table.size(); ++mask) by_type[table[mask]] += int64_t(raw[mask]);
    raw.fill(0);
  }

 private:
  void add_form(uint64_t mask, const int32_t* nodes, int k, double weight) {
    Form form;
    form.k = k;
    if (!codes_) {
      form.mask = canonical_.mask(mask, k, all_equal(k));
      return counts_.add(form, weight);
    }
    // Nodes sorted by label: order[p] is the node at place p, place its inverse.
    std::array<int, MAX_K> order{}, place{};
    for (int v = 0; v < k; ++v) {
      int p = v;
      const int32_t code = codes_[nodes[v]];
      for (; p > 0 && form.codes[size_t(p - 1)] > code; --p) {
        form.codes[size_t(p)] = form.codes[size_t(p - 1)];
        order[size_t(p)] = order[size_t(p - 1)];
      }
      form.codes[size_t(p)] = code;
      order[size_t(p)] = v;
    }
    int pattern = 0;
    for (int p = 0; p + 1 < k; ++p) pattern |= int(form.codes[size_t(p)] == form.codes[size_t(p + 1)]) << p;
    for (int p = 0; p < k; ++p) place[size_t(order[size_t(p)])] = p;
    uint64_t sorted = 0;
    for (uint64_t rest = mask; rest; rest &= rest - 1) {
      const int bit = __builtin_ctzll(rest);
      const int u = place[FIRST[size_t(bit)]], v = place[SECOND[size_t(bit)]];
      sorted |= uint64_t(1) << (u < v ? pairs_of(v) + u : pairs_of(u) + v);
    }
    form.mask = canonical_.mask(sorted, k, pattern);
    counts_.add(form, weight);
  }

  Canonical& canonical_;
  Counts& counts_;
  const int32_t* codes_ = nullptr;
  std::array<std::array<double, 1 << pairs_of(DERIVED_K)>, DERIVED_K + 1> raw_{};
};

enum class Method { exact, sample, mcmc };

struct Settings {
  std::vector<int> sizes;
  std::vector<std::vector<double>> beta;  // of each size, by edge count
  Method method = Method::exact;
  bool connected = true, normalize = false, is_signed = false;
  int64_t n_samples = 0, burn_in = 0, thin = 1;
  uint64_t seed = 0;
  int n_bits = 0;
};

// The largest number of subsets that are walked one by one; at some nanoseconds each, beyond patience.
constexpr double MOST_SUBSETS = 1e12;

class Counter {
 public:
  explicit Counter(const Settings& settings) : settings_(settings), tally_(canonical_, counts_) {}

  // Entries of all sizes, weights scaled as asked for.
  std::vector<Counts::Entry>& count(const Graph& graph, int64_t number) {
    counts_.clear();
    result_.clear();
    tally_.begin(graph);
    subset_.reset(graph);
    if (settings_.method == Method::exact) {
      count_exactly(graph, number);
    } else {
      const uint64_t seed = graph.seed(settings_.seed);
      for (size_t i = 0; i < settings_.sizes.size(); ++i) {
        const int k = settings_.sizes[i];
        Random random(combine(seed, uint64_t(k)));
        if (graph.n < k) continue;
        if (settings_.method == Method::mcmc)
          count_visits(graph, k, settings_.beta[i], random);
        else
          count_samples(graph, k, random);
        collect({k});
      }
    }
    if (settings_.normalize) normalize();
    return result_;
  }

 private:
  struct Unit {
    Tally& tally;
    void operator()(uint64_t mask, const int32_t* nodes, int k) const { tally.add(mask, nodes, k, 1.0); }
  };

  void collect(const std::vector<int>& sizes) {
    for (int k : sizes) tally_.flush(k);
    result_.insert(result_.end(), counts_.entries().begin(), counts_.entries().end());
    counts_.clear();
  }

  void count_exactly(const Graph& graph, int64_t number) {
    Unit unit{tally_};
    if (settings_.connected) {
      uint32_t sizes = 0;
      for (int k : settings_.sizes) sizes |= 1u << k;
      ConnectedSubsets<Unit>(graph, sizes, subset_, unit, INT64_MAX).walk();
      return collect(settings_.sizes);
    }
    int derived = 0;
    for (int k : settings_.sizes) {
      if (graph.n < k) continue;
      const double subsets = binomial(graph.n, k);
      const bool one_by_one = graph.codes || k > DERIVED_K;
      if (subsets > (one_by_one ? MOST_SUBSETS : 0x1p62))
        fail("graph " + std::to_string(number) + " has " + std::to_string(graph.n) + " nodes: too many subsets of " + std::to_string(k) +
             " nodes to count exactly with connected=False; use method='sample'");
      if (one_by_one) {
        all_subsets(graph, k, subset_, unit);
        collect({k});
      } else {
        derived = std::max(derived, k);
      }
    }
    if (derived) count_derived(graph, derived, unit);
  }

  void count_derived(const Graph& graph, int most, Unit& unit) {
    TypeCounts by_type;
    ConnectedSubsets<Unit>(graph, (2u << most) - 2, subset_, unit, INT64_MAX).walk();
    for (int k = 1; k <= most; ++k) tally_.take(k, by_type[size_t(k)]);
    derive_disconnected(by_type, most);
    for (int k : settings_.sizes)
      for (size_t mask = 0; k <= most && graph.n >= k && mask < by_type[size_t(k)].size(); ++mask)
        if (by_type[size_t(k)][mask]) result_.push_back({{k, mask, {}}, double(by_type[size_t(k)][mask])});
  }

  // Independent samples; a graph that has no more subsets than samples were asked for is walked instead.
  void count_samples(const Graph& graph, int k, Random& random) {
    Unit unit{tally_};
    const double share = 1.0 / double(settings_.n_samples);
    if (settings_.connected) {
      if (ConnectedSubsets<Unit>(graph, 1u << k, subset_, unit, settings_.n_samples).walk()) return;
      tally_.drop(k);
      Grower grower(graph, k, subset_, canonical_);
      for (int64_t s = 0; s < settings_.n_samples && grower.possible(); ++s) {
        const Drawn drawn = grower.draw(random);
        tally_.add(drawn.mask, drawn.nodes.data(), k, drawn.weight * share);
      }
      return;
    }
    const double subsets = binomial(graph.n, k);
    if (subsets <= double(settings_.n_samples)) return all_subsets(graph, k, subset_, unit);
    for (int64_t s = 0; s < settings_.n_samples; ++s) {
      const Drawn drawn = draw_any(graph, k, subset_, random);
      tally_.add(drawn.mask, drawn.nodes.data(), k, subsets * share);
    }
  }

  void count_visits(const Graph& graph, int k, const std::vector<double>& beta, Random& random) {
    GibbsChain chain(graph, k, beta.data(), settings_.connected, subset_, canonical_);
    if (!chain.possible()) return;
    chain.start(random);
    for (int64_t s = 0; s < settings_.burn_in; ++s) chain.step(random);
    for (int64_t s = 0; s < settings_.n_samples; ++s) {
      for (int64_t t = 0; t < settings_.thin; ++t) chain.step(random);
      if (chain.has_weight()) tally_.add(chain.mask(), chain.nodes(), k, 1.0);
    }
  }

  void normalize() {
    std::array<double, MAX_K + 1> totals{};
    for (const auto& entry : result_) totals[size_t(entry.form.k)] += entry.weight;
    for (auto& entry : result_) entry.weight /= totals[size_t(entry.form.k)];
  }

  const Settings& settings_;
  Canonical canonical_;
  Counts counts_;
  Tally tally_;
  Subset subset_;
  std::vector<Counts::Entry> result_;
};

// ---------------------------------------------------------------------------------------------------- hashed rows

// k as 4 bytes, the mask in as few as it needs, then 8 for the key of each label; the lowest byte first.
std::string form_bytes(const Form& form, const uint64_t* keys) {
  std::string bytes;
  const auto append = [&](uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes.push_back(char(value >> (8 * i) & 255));
  };
  append(uint64_t(form.k), 4);
  append(form.mask, (pairs_of(form.k) + 7) / 8);
  for (int v = 0; keys && v < form.k; ++v) append(keys[form.codes[size_t(v)]], 8);
  return bytes;
}

struct Row {
  std::vector<std::pair<int32_t, double>> cells;
};
using Forms = std::unordered_map<std::string, double>;  // canonical forms and their weights

Row hashed_row(const std::vector<Counts::Entry>& entries, const Settings& settings, const uint64_t* keys, Forms* forms) {
  std::vector<std::pair<uint64_t, double>> hashed;
  for (const auto& entry : entries) {
    const std::string form = form_bytes(entry.form, keys);
    if (forms) (*forms)[form] += entry.weight;
    hashed.emplace_back(feature_hash(form, settings.seed), entry.weight);
  }
  const uint64_t mask = bucket_mask(settings.n_bits);
  std::sort(hashed.begin(), hashed.end(), [mask](const auto& a, const auto& b) {
    return std::make_pair(a.first & mask, a.first) < std::make_pair(b.first & mask, b.first);
  });
  Row row;
  for (const auto& [hash, weight] : hashed) {
    const auto bucket = int32_t(hash & mask);
    const double value = settings.is_signed ? hash_sign(hash) * weight : weight;
    if (!row.cells.empty() && row.cells.back().first == bucket)
      row.cells.back().second += value;
    else
      row.cells.emplace_back(bucket, value);
  }
  return row;
}

// ---------------------------------------------------------------------------------------------------- bindings

class Stack {
 public:
  Stack(In1<int64_t> offsets, In1<int64_t> indptr, In1<int32_t> indices, std::optional<In1<int32_t>> codes,
        std::optional<In1<uint64_t>> keys)
      : offsets_(offsets.data()), indptr_(indptr.data()), indices_(indices.data()) {
    require(offsets.shape(0) >= 1 && indptr.shape(0) >= 1, "offsets and indptr must hold at least one value");
    n_ = int64_t(offsets.shape(0)) - 1;
    const int64_t nodes = int64_t(indptr.shape(0)) - 1;
    require(offsets_[0] == 0 && offsets_[n_] == nodes, "offsets must run from 0 to the number of nodes");
    require(indptr_[0] == 0 && indptr_[nodes] == int64_t(indices.shape(0)), "indptr must run from 0 to the number of indices");
    for (int64_t v = 0; v < nodes; ++v) require(indptr_[v] <= indptr_[v + 1], "indptr must not decrease");
    for (int64_t g = 0; g < n_; ++g) check_graph(offsets_[g], offsets_[g + 1]);
    require(codes.has_value() == keys.has_value(), "codes and keys of labels come together");
    if (codes) {
      require(int64_t(codes->shape(0)) == nodes, "codes must hold one value a node");
      for (int64_t v = 0; v < nodes; ++v)
        require(codes->data()[v] >= 0 && codes->data()[v] < int64_t(keys->shape(0)), "a label code is out of range");
      codes_ = codes->data();
      keys_ = keys->data();
    }
  }
  int64_t size() const { return n_; }
  const uint64_t* keys() const { return keys_; }
  int64_t work(int64_t g) const { return offsets_[g + 1] - offsets_[g]; }
  Graph graph(int64_t g) const {
    return {indptr_ + offsets_[g], indices_, codes_ ? codes_ + offsets_[g] : nullptr, int32_t(offsets_[g + 1] - offsets_[g])};
  }

 private:
  void check_graph(int64_t first, int64_t last) const {
    require(first <= last && last - first < INT32_MAX, "offsets must not decrease, and a graph has fewer than 2^31 nodes");
    for (int64_t v = first; v < last; ++v)
      for (int64_t e = indptr_[v]; e < indptr_[v + 1]; ++e) {
        require(indices_[e] >= 0 && indices_[e] < last - first, "a neighbour is out of range");
        require(indices_[e] != v - first, "a node is its own neighbour");
        require(e == indptr_[v] || indices_[e - 1] < indices_[e], "neighbours must ascend");
      }
  }

  const int64_t *offsets_, *indptr_;
  const int32_t *indices_, *codes_ = nullptr;
  const uint64_t* keys_ = nullptr;
  int64_t n_ = 0;
};

Settings checked(std::vector<int> sizes, const std::string& method, bool connected, int64_t n_samples, int64_t burn_in, int64_t thin,
                 std::vector<std::vector<double>> beta, bool normalize, uint64_t seed, int n_bits, bool is_signed) {
  Settings settings;
  require(!sizes.empty(), "sizes must not be empty");
  for (size_t i = 0; i < sizes.size(); ++i) {
    require(sizes[i] >= 1 && sizes[i] <= MAX_K, "sizes must lie between 1 and 9");
    require(i == 0 || sizes[i - 1] < sizes[i], "sizes must ascend");
  }
  require(method == "exact" || method == "sample" || method == "mcmc", "method must be 'exact', 'sample' or 'mcmc'");
  settings.method = method == "exact" ? Method::exact : method == "sample" ? Method::sample : Method::mcmc;
  if (settings.method == Method::mcmc) {
    require(beta.size() == sizes.size(), "beta must hold one list a size");
    for (size_t i = 0; i < beta.size(); ++i) {
      require(int(beta[i].size()) == pairs_of(sizes[i]) + 1, "beta must hold one value for each number of edges");
      require(all_finite(beta[i].data(), int64_t(beta[i].size())), "beta must be finite");
      for (double b : beta[i]) require(b >= 0, "beta must not be negative");
    }
  }
  require(settings.method == Method::exact || n_samples >= 1, "n_samples must be at least 1");
  require(burn_in >= 0 && thin >= 1, "burn_in must be at least 0 and thin at least 1");
  require(n_bits >= 1 && n_bits <= 30, "n_bits must lie between 1 and 30");
  settings.sizes = std::move(sizes);
  settings.beta = std::move(beta);
  settings.connected = connected;
  settings.normalize = normalize;
  settings.is_signed = is_signed;
  settings.n_samples = n_samples;
  settings.burn_in = burn_in;
  settings.thin = thin;
  settings.seed = seed;
  settings.n_bits = n_bits;
  return settings;
}

// Rows of all graphs, on threads. A part is a run of graphs that share a memory of canonical forms.
std::vector<Row> hashed_rows(const Stack& stack, const Settings& settings, int threads, Forms* forms) {
  std::vector<Row> rows(size_t(stack.size()));
  const int64_t parts = threads <= 1 ? 1 : std::min<int64_t>(stack.size(), int64_t(threads) * 16);
  in_parallel(parts, threads, [&](int64_t part) {
    const auto counter = std::make_unique<Counter>(settings);
    for (int64_t g = stack.size() * part / parts; g < stack.size() * (part + 1) / parts; ++g)
      rows[size_t(g)] = hashed_row(counter->count(stack.graph(g), g), settings, stack.keys(), forms);
  });
  return rows;
}

nb::object graphlet_rows(In1<int64_t> offsets, In1<int64_t> indptr, In1<int32_t> indices, std::optional<In1<int32_t>> codes,
                         std::optional<In1<uint64_t>> keys, std::vector<int> sizes, const std::string& method, bool connected,
                         int64_t n_samples, int64_t burn_in, int64_t thin, std::vector<std::vector<double>> beta, bool normalize,
                         uint64_t seed, int n_bits, bool is_signed, int threads) {
  const Stack stack(offsets, indptr, indices, codes, keys);
  const Settings settings =
      checked(std::move(sizes), method, connected, n_samples, burn_in, thin, std::move(beta), normalize, seed, n_bits, is_signed);
  threads = thread_count(threads);
  std::vector<int64_t> row_starts(1, 0);
  std::vector<int32_t> columns;
  std::vector<double> values;
  {
    nb::gil_scoped_release release;
    for (Row& row : hashed_rows(stack, settings, threads, nullptr)) {
      for (const auto& [column, value] : row.cells) {
        columns.push_back(column);
        values.push_back(value);
      }
      row_starts.push_back(int64_t(columns.size()));
    }
  }
  return nb::make_tuple(to_numpy(std::move(row_starts)), to_numpy(std::move(columns)), to_numpy(std::move(values)));
}

nb::list graphlet_forms(In1<int64_t> offsets, In1<int64_t> indptr, In1<int32_t> indices, std::optional<In1<int32_t>> codes,
                        std::optional<In1<uint64_t>> keys, std::vector<int> sizes, const std::string& method, bool connected,
                        int64_t n_samples, int64_t burn_in, int64_t thin, std::vector<std::vector<double>> beta, uint64_t seed,
                        int n_bits) {
  const Stack stack(offsets, indptr, indices, codes, keys);
  const Settings settings =
      checked(std::move(sizes), method, connected, n_samples, burn_in, thin, std::move(beta), false, seed, n_bits, false);
  Forms forms;
  {
    nb::gil_scoped_release release;
    hashed_rows(stack, settings, 1, &forms);
  }
  const std::vector<std::pair<std::string, double>> found(forms.begin(), forms.end());
  nb::list out;
  for (const auto& [form, weight] : found)
    out.append(nb::make_tuple(nb::bytes(form.data(), form.size()), feature_hash(form, seed) & bucket_mask(n_bits), weight));
  return out;
}

nb::bytes canonical_graph(In2<uint8_t> adjacency, std::optional<In1<uint64_t>> labels) {
  const auto k = int(adjacency.shape(0));
  require(k >= 1 && k <= MAX_K && int(adjacency.shape(1)) == k, "adjacency must be square, of 1 to 9 nodes");
  require(!labels || int(labels->shape(0)) == k, "labels must hold one value a node");
  std::array<int, MAX_K> order{}, place{};
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int v) { return labels ? labels->data()[v] : uint64_t(0); };
  std::stable_sort(order.begin(), order.begin() + k, [&](int a, int b) { return key(a) < key(b); });
  Form form;
  form.k = k;
  std::vector<uint64_t> keys;
  int pattern = 0;
  for (int p = 0; p < k; ++p) {
    place[size_t(order[size_t(p)])] = p;
    form.codes[size_t(p)] = p;
    keys.push_back(key(order[size_t(p)]));
    if (p > 0 && keys[size_t(p)] == keys[size_t(p - 1)]) pattern |= 1 << (p - 1);
  }
  Adjacency neighbours{};
  for (int v = 0; v < k; ++v)
    for (int u = 0; u < k; ++u) {
      require(adjacency(size_t(v), size_t(u)) == adjacency(size_t(u), size_t(v)), "adjacency must be symmetric");
      if (adjacency(size_t(v), size_t(u)) && u != v) neighbours[size_t(v)] |= uint16_t(1 << u);
    }
  form.mask = Canonical().mask(moved(neighbours, k, place.data()), k, pattern);
  const std::string bytes = form_bytes(form, labels ? keys.data() : nullptr);
  return nb::bytes(bytes.data(), bytes.size());
}

// The chain of Lemma 4 on one graph: all its states, and the probabilities of Gibbs moves between them.
nb::object graphlet_transitions(In1<int64_t> indptr, In1<int32_t> indices, int k, std::vector<double> beta, bool connected) {
  const int64_t ends[2] = {0, int64_t(indptr.shape(0)) - 1};
  const Stack stack(In1<int64_t>(ends, {2}, nb::handle()), indptr, indices, std::nullopt, std::nullopt);
  const Settings settings = checked({k}, "mcmc", connected, 1, 0, 1, {beta}, false, 0, 1, false);
  const Graph graph = stack.graph(0);
  require(binomial(graph.n, k) <= 1e4, "the graph has too many subsets for a matrix of transitions");
  Subset subset;
  subset.reset(graph);
  Canonical canonical;
  std::vector<std::vector<int32_t>> states;
  auto keep = [&](uint64_t mask, const int32_t* nodes, int) {
    if (!connected || canonical.orders(mask, k) > 0) states.emplace_back(nodes, nodes + k);
  };
  if (graph.n >= k) all_subsets(graph, k, subset, keep);
  const size_t n = states.size();
  std::vector<double> transitions(n * n, 0);
  GibbsChain chain(graph, k, settings.beta[0].data(), connected, subset, canonical);
  for (size_t s = 0; s < n; ++s) {
    chain.set(states[s].data());
    for (int place = 0; place < k; ++place) {
      const std::vector<double> moves = chain.move_probabilities(place);
      for (int32_t v = 0; v < graph.n; ++v) {
        if (moves[size_t(v)] == 0) continue;
        std::vector<int32_t> next = states[s];
        next[size_t(place)] = v;
        std::sort(next.begin(), next.end());
        const auto found = std::lower_bound(states.begin(), states.end(), next);
        transitions[s * n + size_t(found - states.begin())] += moves[size_t(v)] / k;
      }
    }
  }
  std::vector<int32_t> flat;
  for (const auto& state : states) flat.insert(flat.end(), state.begin(), state.end());
  return nb::make_tuple(to_numpy(std::move(flat)), to_numpy(std::move(transitions)));
}

// The subsets that the chain visits, one after another.
nb::object graphlet_walk(In1<int64_t> indptr, In1<int32_t> indices, int k, std::vector<double> beta, bool connected, int64_t n_samples,
                         int64_t burn_in, int64_t thin, uint64_t seed) {
  const int64_t ends[2] = {0, int64_t(indptr.shape(0)) - 1};
  const Stack stack(In1<int64_t>(ends, {2}, nb::handle()), indptr, indices, std::nullopt, std::nullopt);
  const Settings settings = checked({k}, "mcmc", connected, n_samples, burn_in, thin, {beta}, false, seed, 1, false);
  std::vector<int32_t> visited;
  {
    nb::gil_scoped_release release;
    const Graph graph = stack.graph(0);
    Subset subset;
    subset.reset(graph);
    Canonical canonical;
    GibbsChain chain(graph, k, settings.beta[0].data(), connected, subset, canonical);
    if (chain.possible()) {
      Random random(combine(graph.seed(seed), uint64_t(k)));
      chain.start(random);
      for (int64_t s = 0; s < burn_in; ++s) chain.step(random);
      for (int64_t s = 0; s < n_samples; ++s) {
        for (int64_t t = 0; t < thin; ++t) chain.step(random);
        if (chain.has_weight()) visited.insert(visited.end(), chain.nodes(), chain.nodes() + k);
      }
    }
  }
  return to_numpy(std::move(visited));
}

}  // namespace

void bind_graphlets(nb::module_& m) {
  m.def("graphlet_rows", &graphlet_rows, "offsets"_a, "indptr"_a, "indices"_a, "codes"_a.none(), "keys"_a.none(), "sizes"_a, "method"_a,
        "connected"_a, "n_samples"_a, "burn_in"_a, "thin"_a, "beta"_a, "normalize"_a, "seed"_a, "n_bits"_a, "signed"_a, "threads"_a);
  m.def("graphlet_forms", &graphlet_forms, "offsets"_a, "indptr"_a, "indices"_a, "codes"_a.none(), "keys"_a.none(), "sizes"_a, "method"_a,
        "connected"_a, "n_samples"_a, "burn_in"_a, "thin"_a, "beta"_a, "seed"_a, "n_bits"_a);
  m.def("label_key", [](const std::string& label) { return feature_hash(std::string_view(label), 0); }, "label"_a);
  m.def("canonical_graph", &canonical_graph, "adjacency"_a, "labels"_a.none());
  m.def("graphlet_transitions", &graphlet_transitions, "indptr"_a, "indices"_a, "k"_a, "beta"_a, "connected"_a);
  m.def("graphlet_walk", &graphlet_walk, "indptr"_a, "indices"_a, "k"_a, "beta"_a, "connected"_a, "n_samples"_a, "burn_in"_a, "thin"_a,
        "seed"_a);
}

}  // namespace mercer
