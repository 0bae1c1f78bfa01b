// Subsets of the nodes of a graph, one after another: all connected ones, or all.
//
// What a node contributes to a subset is its join: the places of the members that it is joined to. Joins are kept for
// all nodes while a subset grows and shrinks, so the last node of a subset costs one shift.
#pragma once

#include "graphs/canonical_forms.hpp"
#include "graphs/graph.hpp"

namespace mercer::graphlets {

constexpr uint16_t TAKEN = 1 << 15;  // mark of a member of the subset, beside its join

inline double binomial(double n, int k) {
  double value = 1;
  for (int i = 0; i < k; ++i) value *= (n - i) / (i + 1);
  return value;
}

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

inline uint64_t grown(uint64_t mask, uint16_t join, int place) {
  return mask | uint64_t(join & ~TAKEN) << pairs_of(place);
}

// Every connected subset once (the ESU tree of Wernicke, 2006): a subset is grown from its smallest node, by nodes that
// are neighbours of none of the members before. Level p of the tree holds the connected subsets of p nodes, so one walk
// serves several sizes.
template <class Sink> class ConnectedSubsets {
 public:
  // sink(mask, nodes, k) for each subset of a wanted size (bit k of sizes). False as soon as there are more than
  // `limit`.
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

}  // namespace mercer::graphlets
