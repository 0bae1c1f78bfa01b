// Graphs end to end, as Python hands them over: the one view of a graph, and the one check.
#pragma once

#include <cstdint>
#include <optional>

#include "base/arrays.hpp"
#include "hashing/feature_hash.hpp"

namespace mercer {

struct Graph {
  const int64_t* indptr;   // of its first node: places in the arrays of the whole stack
  const int32_t* indices;  // of the whole stack
  int32_t n;
  const int32_t* codes = nullptr;  // labels of its nodes as numbers that ascend with their keys, or null

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

enum class Neighbours { any, simple };  // simple: ascending, and never the node itself

// All offsets are checked before one of them is used.
class GraphStack {
 public:
  GraphStack(const In1<int64_t>& offsets, const In1<int64_t>& indptr, const In1<int32_t>& indices,
             Neighbours neighbours = Neighbours::any)
      : offsets_(offsets.data()),
        indptr_(indptr.data()),
        indices_(indices.data()),
        entries_(int64_t(indices.shape(0))) {
    nodes_ = require_offsets(indptr, entries_, "indptr", "indices");
    n_ = require_offsets(offsets, nodes_, "offsets", "nodes");
    for (int64_t g = 0; g < n_; ++g) check_graph(offsets_[g], offsets_[g + 1], neighbours == Neighbours::simple);
  }
  // Labels of nodes as codes of keys, which come together.
  void set_labels(const std::optional<In1<int32_t>>& codes, const std::optional<In1<uint64_t>>& keys) {
    require(codes.has_value() == keys.has_value(), "codes and keys of labels come together");
    if (!codes) return;
    require(int64_t(codes->shape(0)) == nodes_, "codes must hold one value a node");
    for (int64_t v = 0; v < nodes_; ++v)
      require(codes->data()[v] >= 0 && codes->data()[v] < int64_t(keys->shape(0)), "a label code is out of range");
    codes_ = codes->data();
    keys_ = keys->data();
  }
  int64_t size() const { return n_; }
  int64_t nodes() const { return nodes_; }
  int64_t entries() const { return entries_; }
  int64_t first(int64_t g) const { return offsets_[g]; }
  int64_t order(int64_t g) const { return offsets_[g + 1] - offsets_[g]; }
  const uint64_t* keys() const { return keys_; }
  Graph graph(int64_t g) const {
    return {indptr_ + offsets_[g], indices_, int32_t(order(g)), codes_ ? codes_ + offsets_[g] : nullptr};
  }

 private:
  void check_graph(int64_t first, int64_t last, bool simple) const {
    require(last - first < INT32_MAX, "a graph has fewer than 2^31 nodes");
    for (int64_t v = first; v < last; ++v)
      for (int64_t e = indptr_[v]; e < indptr_[v + 1]; ++e) {
        require(indices_[e] >= 0 && indices_[e] < last - first, "a neighbour is out of range");
        if (!simple) continue;
        require(indices_[e] != v - first, "a node is its own neighbour");
        require(e == indptr_[v] || indices_[e - 1] < indices_[e], "neighbours must ascend");
      }
  }

  const int64_t *offsets_, *indptr_;
  const int32_t *indices_, *codes_ = nullptr;
  const uint64_t* keys_ = nullptr;
  int64_t n_ = 0, nodes_ = 0, entries_ = 0;
};

}  // namespace mercer
