// A canonical order of the nodes of a graph of any size: isomorphic graphs in their orders are the same graph.
//
// Cells of nodes are split by the numbers of neighbours in other cells; where that comes to an end, a node of the first
// cell of several is set apart, and so on: a tree whose leaves are orders. Of them the least counts, by what splitting
// met with on the way (the trace) and then by the bits of the adjacency matrix. Two leaves with the same bits are an
// automorphism: the tree below one of its branches is that below the other, and a branch to which automorphisms that
// keep the nodes set apart so far lead need not be entered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "hashing/feature_hash.hpp"
#include "base/signals.hpp"

namespace mercer {

class CanonicalOrder {
 public:
  // Neighbours of node v: lists[offsets[v] ... offsets[v + 1]), ascending. Colours: nodes of smaller ones come first.
  CanonicalOrder(std::vector<int64_t> offsets, std::vector<int32_t> lists, const std::vector<int32_t>& colour)
      : n_(int32_t(colour.size())),
        words_((size_t(n_) + 63) / 64),
        offsets_(std::move(offsets)),
        lists_(std::move(lists)) {
    for (auto* of_nodes : {&order_, &place_, &cell_, &size_, &count_, &met_, &root_}) of_nodes->assign(size_t(n_), 0);
    waits_.assign(size_t(n_), 0);
    on_path_.assign(size_t(n_), 0);
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) { return colour[at(a)] < colour[at(b)]; });
    for (int32_t i = 0, start = 0; i < n_; ++i) {
      if (i > 0 && colour[at(order_[at(i)])] != colour[at(order_[at(i - 1)])]) start = i;
      if (start == i) {
        ++cells_;
        enqueue(i);
      }
      place_[at(order_[at(i)])] = i;
      cell_[at(order_[at(i)])] = start;
      ++size_[at(start)];
    }
    find_twins();
  }

  // Node order()[i] comes at place i.
  const std::vector<int32_t>& order() {
    if (n_ > 0 && best_.order.empty()) search();
    return best_.order;
  }

 private:
  struct Level {
    std::vector<int32_t> splits;      // where cells began that refinement made here, in their order
    std::vector<int32_t> candidates;  // nodes of the target cell, one of each kind of twins; at first only one of them
    size_t next = 0;
    bool complete = false;  // whether all candidates are there
    int32_t target = 0;
    uint64_t trace = 0;
    bool as_first = true;  // the traces so far are those of the first leaf
    int against_best = 0;  // and less than, as or more than those of the best one
  };
  struct Leaf {
    std::vector<int32_t> order, path;
    std::vector<uint64_t> traces, bits;
  };
  using Moves = std::vector<std::pair<int32_t, int32_t>>;  // node and image, where they differ

  static constexpr size_t MOST_MOVES = size_t(1) << 24;  // of all automorphisms that are kept
  static size_t at(int64_t i) { return size_t(i); }

  // Nodes with the same neighbours but for each other get the same number: exchanging them changes nothing.
  void find_twins() {
    twin_.resize(size_t(n_));
    std::iota(twin_.begin(), twin_.end(), 0);
    std::vector<int32_t> nodes(static_cast<size_t>(n_));
    for (const bool closed : {false, true}) {
      std::vector<std::vector<int32_t>> around(static_cast<size_t>(n_));
      for (int32_t v = 0; v < n_; ++v) {
        auto& of_v = around[at(v)];
        of_v.assign(lists_.begin() + offsets_[at(v)], lists_.begin() + offsets_[at(v) + 1]);
        if (closed) of_v.insert(std::lower_bound(of_v.begin(), of_v.end(), v), v);
      }
      std::iota(nodes.begin(), nodes.end(), 0);
      std::sort(nodes.begin(), nodes.end(), [&](int32_t a, int32_t b) { return around[at(a)] < around[at(b)]; });
      for (size_t i = 1; i < nodes.size(); ++i)
        if (around[at(nodes[i])] == around[at(nodes[i - 1])]) twin_[at(nodes[i])] = twin_[at(nodes[i - 1])];
    }
  }

  // ------------------------------------------------------------------ cells

  void enqueue(int32_t start) {
    waits_[at(start)] = 1;
    queue_.push_back(start);
  }

  void add(uint64_t& trace, uint64_t value) const { trace = mix64(trace ^ value) + 0x9e3779b97f4a7c15ULL; }

  void move_to(int32_t node, int32_t place) {
    const int32_t other = order_[at(place)], from = place_[at(node)];
    order_[at(from)] = other;
    place_[at(other)] = from;
    order_[at(place)] = node;
    place_[at(node)] = place;
  }

  // A cell begins at `start` within the one that began at `before`, and is `size` long.
  void begin_cell(int32_t before, int32_t start, int32_t size, Level& level) {
    for (int32_t i = start; i < start + size; ++i) cell_[at(order_[at(i)])] = start;
    size_[at(start)] = size;
    size_[at(before)] -= size;
    level.splits.push_back(start);
    ++cells_;
  }

  void undo(Level& level) {
    for (auto split = level.splits.rbegin(); split != level.splits.rend(); ++split) {
      const int32_t start = *split, before = cell_[at(order_[at(start) - 1])];
      for (int32_t i = start; i < start + size_[at(start)]; ++i) cell_[at(order_[at(i)])] = before;
      size_[at(before)] += size_[at(start)];
      size_[at(start)] = 0;
      --cells_;
    }
    level.splits.clear();
  }

  // Splits cells by the numbers of neighbours in those that wait, until none waits.
  void refine(Level& level) {
    size_t head = 0;
    for (; head < queue_.size() && cells_ < n_; ++head) {
      const int32_t start = queue_[head];
      waits_[at(start)] = 0;
      splitter_.assign(order_.begin() + start, order_.begin() + start + size_[at(start)]);
      add(level.trace, uint64_t(start));
      for (const int32_t w : splitter_)
        for (int64_t e = offsets_[at(w)]; e < offsets_[at(w) + 1]; ++e) {
          const int32_t v = lists_[at(e)], cell = cell_[at(v)];
          if (size_[at(cell)] == 1) continue;
          if (count_[at(v)]++ == 0) {
            counted_.push_back(v);
            if (met_[at(cell)]++ == 0) cells_met_.push_back(cell);
          }
        }
      std::sort(cells_met_.begin(), cells_met_.end());
      for (const int32_t cell : cells_met_) met_[at(cell)] = 0;
      for (const int32_t v : counted_) {  // to the end of their cells
        const int32_t cell = cell_[at(v)];
        move_to(v, cell + size_[at(cell)] - ++met_[at(cell)]);
      }
      for (const int32_t cell : cells_met_) split(cell, level);
      for (const int32_t v : counted_) count_[at(v)] = 0;
      for (const int32_t cell : cells_met_) met_[at(cell)] = 0;
      counted_.clear();
      cells_met_.clear();
    }
    for (; head < queue_.size(); ++head) waits_[at(queue_[head])] = 0;
    queue_.clear();
  }

  // A cell whose last met_ nodes have neighbours in the splitter: into parts of equal counts, ascending.
  void split(int32_t cell, Level& level) {
    const int32_t end = cell + size_[at(cell)], first = end - met_[at(cell)];
    const auto counts = [&](int32_t i) { return count_[at(order_[at(i)])]; };
    std::sort(order_.begin() + first, order_.begin() + end,
              [&](int32_t a, int32_t b) { return count_[at(a)] < count_[at(b)]; });
    for (int32_t i = first; i < end; ++i) place_[at(order_[at(i)])] = i;
    add(level.trace, uint64_t(cell) << 32 | uint32_t(first));
    starts_.clear();
    if (first > cell) starts_.push_back(cell);
    for (int32_t i = first; i < end; ++i)
      if (i == first || counts(i) != counts(i - 1)) {
        starts_.push_back(i);
        add(level.trace, uint64_t(i) << 32 | uint32_t(counts(i)));
      }
    if (starts_.size() == 1) return;
    starts_.push_back(end);
    size_t largest = 0;
    for (size_t part = 1; part + 1 < starts_.size(); ++part)
      if (starts_[part + 1] - starts_[part] > starts_[largest + 1] - starts_[largest]) largest = part;
    const bool waited = waits_[at(cell)];
    // From the last part, so that what remains is always the beginning.
    for (size_t part = starts_.size() - 2; part > 0; --part)
      begin_cell(cell, starts_[part], starts_[part + 1] - starts_[part], level);
    for (size_t part = 0; part + 1 < starts_.size(); ++part)
      if (!waits_[at(starts_[part])] && (waited || part != largest)) enqueue(starts_[part]);
  }

  // ------------------------------------------------------------------ the tree

  void search() {
    levels_.emplace_back();
    refine(levels_.back());
    open(levels_.back(), 0);
    for (int64_t steps = 0; !levels_.empty(); ++steps) {
      if ((steps & 15) == 0) check_signals();
      if (cells_ == n_) {
        return_to(leaf());
        continue;
      }
      Level& above = levels_.back();
      const int32_t node = next_of(above);
      if (node < 0) {
        return_to(levels_.size() - 1);
        continue;
      }
      Level level;
      const int32_t from = above.target, apart = from + size_[at(from)] - 1;  // at the end: the others stay as they are
      move_to(node, apart);
      begin_cell(from, apart, 1, level);
      enqueue(apart);
      refine(level);
      compare(level, above);
      if (!level.as_first && level.against_best > 0) {
        undo(level);
        continue;
      }
      path_.push_back(node);
      on_path_[at(node)] = 1;
      open(level, from);
      levels_.push_back(std::move(level));
    }
  }

  // Goes up until `depth` levels are left.
  void return_to(size_t depth) {
    while (levels_.size() > depth) {
      undo(levels_.back());
      levels_.pop_back();
      if (!path_.empty()) {
        on_path_[at(path_.back())] = 0;
        path_.pop_back();
      }
    }
  }

  void open(Level& level, int32_t from) {
    if (cells_ == n_) return;
    while (size_[at(from)] == 1) ++from;
    level.target = from;
    level.candidates.push_back(order_[at(from)]);  // most levels are left again without another one
  }

  // All candidates, behind the first.
  void complete(Level& level) {
    level.complete = true;
    const int32_t first = level.candidates[0], from = level.target;
    std::vector<int32_t> nodes(order_.begin() + from, order_.begin() + from + size_[at(from)]);
    std::sort(nodes.begin(), nodes.end(),
              [&](int32_t a, int32_t b) { return std::pair(twin_[at(a)], a) < std::pair(twin_[at(b)], b); });
    for (size_t i = 0; i < nodes.size(); ++i)
      if (twin_[at(nodes[i])] != twin_[at(first)] && (i == 0 || twin_[at(nodes[i])] != twin_[at(nodes[i - 1])]))
        level.candidates.push_back(nodes[i]);
  }

  // The next branch to which no automorphism leads from an earlier one; -1: there is none.
  int32_t next_of(Level& level) {
    auto& nodes = level.candidates;
    if (level.next == 0) return nodes[level.next++];
    if (!level.complete) complete(level);
    join_orbits();
    while (level.next < nodes.size()) {
      const int32_t node = nodes[level.next], orbit = orbit_of(node);
      const auto end = nodes.begin() + std::ptrdiff_t(level.next);
      if (std::none_of(nodes.begin(), end, [&](int32_t tried) { return orbit_of(tried) == orbit; })) {
        ++level.next;
        return node;
      }
      nodes.erase(end);
    }
    return -1;
  }

  // Orbits of the automorphisms that keep the nodes of the path; twins, which can be exchanged, are in one.
  void join_orbits() {
    std::iota(root_.begin(), root_.end(), 0);
    for (const Moves& moves : automorphisms_) {
      if (std::any_of(moves.begin(), moves.end(), [&](const auto& move) { return on_path_[at(move.first)]; })) continue;
      for (const auto& [node, image] : moves) root_[at(orbit_of(node))] = orbit_of(image);
    }
  }

  int32_t orbit_of(int32_t node) {
    node = twin_[at(node)];
    while (root_[at(node)] != node) node = root_[at(node)] = root_[at(root_[at(node)])];
    return node;
  }

  void compare(Level& level, const Level& above) const {
    const size_t depth = levels_.size();
    level.as_first = above.as_first &&
                     (first_.order.empty() || (depth < first_.traces.size() && level.trace == first_.traces[depth]));
    level.against_best = above.against_best;
    if (level.against_best == 0 && !best_.order.empty()) {
      if (depth >= best_.traces.size())
        level.against_best = 1;
      else
        level.against_best = level.trace < best_.traces[depth] ? -1 : level.trace > best_.traces[depth];
    }
  }

  // Takes an order; returns how many levels are to be kept.
  size_t leaf() {
    const Level& level = levels_.back();
    Leaf found;
    found.bits.assign(size_t(n_) * words_, 0);
    for (int32_t v = 0; v < n_; ++v)
      for (int64_t e = offsets_[at(v)]; e < offsets_[at(v) + 1]; ++e) {
        const int32_t row = place_[at(v)], column = place_[at(lists_[at(e)])];
        found.bits[size_t(row) * words_ + size_t(column) / 64] |= uint64_t(1) << (63 - column % 64);
      }
    if (best_.order.empty()) {
      keep(found);
      first_ = best_;
      return levels_.size() - 1;
    }
    if (level.as_first && found.bits == first_.bits) return automorphism(first_);
    int against = level.against_best;
    if (against == 0 && levels_.size() < best_.traces.size()) against = -1;
    if (against == 0) {
      if (found.bits == best_.bits) return automorphism(best_);
      against = found.bits < best_.bits ? -1 : 1;
    }
    if (against < 0) keep(found);
    return levels_.size() - 1;
  }

  void keep(Leaf& found) {
    found.order = order_;
    found.path = path_;
    found.traces.clear();
    for (Level& level : levels_) {
      found.traces.push_back(level.trace);
      level.against_best = 0;
    }
    best_ = std::move(found);
  }

  // Nodes of an earlier leaf become those of this one: back to where the two paths part.
  size_t automorphism(const Leaf& earlier) {
    Moves moves;
    for (size_t i = 0; i < order_.size(); ++i)
      if (earlier.order[i] != order_[i]) moves.emplace_back(earlier.order[i], order_[i]);
    if (moves_ + moves.size() <= MOST_MOVES) {
      moves_ += moves.size();
      automorphisms_.push_back(std::move(moves));
    }
    const auto parted = std::mismatch(path_.begin(), path_.end(), earlier.path.begin(), earlier.path.end());
    return size_t(parted.first - path_.begin()) + 1;
  }

  int32_t n_, cells_ = 0;
  size_t words_, moves_ = 0;
  std::vector<int64_t> offsets_;
  std::vector<int32_t> lists_, twin_;
  std::vector<int32_t> order_, place_, cell_,
      size_;  // nodes by place and back; where a node's cell begins; by where it begins, its size
  std::vector<int32_t> count_, met_, root_;  // neighbours in the splitter; by cell, nodes that have any; of orbits
  std::vector<int32_t> queue_, splitter_, counted_, cells_met_, starts_, path_;
  std::vector<char> waits_, on_path_;
  std::vector<Level> levels_;
  std::vector<Moves> automorphisms_;
  Leaf first_, best_;
};

}  // namespace mercer
