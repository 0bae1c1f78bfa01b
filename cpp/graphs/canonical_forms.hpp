// Small graphs as bit masks, and their canonical forms: the same mask for isomorphic graphs.
//
// A graph of k nodes in an order is a mask: bit b (b - 1) / 2 + a says whether the nodes at places a < b are joined, so
// the first p nodes own the low bits and a further node only adds bits on top.
//
// With labels, nodes come sorted by label. A pattern says where labels repeat: bit p is set if the nodes p and p + 1
// have the same one. The canonical mask is the least over all permutations that keep labels (k <= 6, from tables), or
// over the leaves of a search by colour refinement (remembered for each mask). Both are kept in hashed features: they
// must never change.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <vector>

#include "hashing/feature_hash.hpp"

namespace mercer::graphlets {

constexpr int MAX_K = 9;    // masks of 36 bits
constexpr int TABLE_K = 6;  // canonical masks of up to so many nodes stand in tables

constexpr int pairs_of(int k) { return k * (k - 1) / 2; }

using Adjacency = std::array<uint16_t, MAX_K>;  // of each node, the set of its neighbours

inline Adjacency adjacency_of(uint64_t mask, int k) {
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
inline uint64_t moved(const Adjacency& adjacency, int k, const int* place) {
  uint64_t mask = 0;
  for (int v = 1; v < k; ++v)
    for (int u = 0; u < v; ++u)
      if (adjacency[size_t(v)] >> u & 1) {
        const int a = std::min(place[u], place[v]), b = std::max(place[u], place[v]);
        mask |= uint64_t(1) << (pairs_of(b) + a);
      }
  return mask;
}

inline int all_equal(int k) { return (1 << (k - 1)) - 1; }

// Permutations that keep the cells of a pattern, each as the places of the nodes.
inline std::vector<std::array<int, TABLE_K>> permutations_within(int k, int pattern) {
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
inline const std::vector<uint16_t>& canonical_table(int k, int pattern) {
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

  bool twins(int u, int v) const { return (adjacency_[size_t(u)] & ~(1 << v)) == (adjacency_[size_t(v)] & ~(1 << u)); }

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
inline std::vector<uint32_t> growth_orders(const Adjacency& adjacency, int k) {
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
    const uint64_t type =
        this->mask(mask, k, all_equal(k));  // isomorphic graphs have equally many: one sum over subsets for each type
    return double(orders_(type | uint64_t(k) << 44, [&] { return growth_orders(adjacency_of(type, k), k).back(); }));
  }

 private:
  Memo masks_, orders_;
};

}  // namespace mercer::graphlets
