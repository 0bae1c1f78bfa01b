// Minimum cuts: the side of each node in a cut of least capacity between a source and a sink.
//
//   min_{x ∈ {0,1}ⁿ}  Σ_i source_i x_i + sink_i (1 − x_i)
//                     + Σ_(i,j) forward_ij (1 − x_i) x_j + backward_ij x_i (1 − x_j)
//
// x_i = 0: on the side of the source. Two trees grow from the terminals until they touch; the path is filled, and nodes
// that lost their way to the root look for a new parent (the search of [Boykov2004], with distance marks).
// Trees are kept from path to path, which is what makes it quick on grids.
#include <algorithm>
#include <deque>
#include <limits>
#include <vector>

#include "base/arrays.hpp"
#include "base/signals.hpp"

namespace mercer {
namespace {

constexpr int32_t FREE = -1, ROOT = -2, ORPHAN = -3;  // instead of the arc to a parent
constexpr int32_t FAR = std::numeric_limits<int32_t>::max();

class Cut {
 public:
  Cut(In1<double> source, In1<double> sink, In2<int32_t> edges, In1<double> forward, In1<double> backward)
      : n_(int64_t(source.shape(0))),
        first_(size_t(n_) + 1, 0),
        rest_(size_t(n_)),
        parent_(size_t(n_), FREE),
        stamp_(size_t(n_), 0),
        distance_(size_t(n_), 0),
        to_sink_(size_t(n_), 0),
        waiting_(size_t(n_), 0) {
    const int64_t m = int64_t(edges.shape(0));
    const int32_t* ends = edges.data();
    for (int64_t e = 0; e < 2 * m; ++e) ++first_[size_t(ends[e]) + 1];
    for (int64_t i = 0; i < n_; ++i) first_[size_t(i) + 1] += first_[size_t(i)];
    arcs_.resize(size_t(2 * m));
    std::vector<int32_t> next(first_.begin(), first_.end() - 1);
    for (int64_t e = 0; e < m; ++e) {
      const int32_t u = ends[2 * e], v = ends[2 * e + 1];
      const int32_t a = next[size_t(u)]++, b = next[size_t(v)]++;
      arcs_[size_t(a)] = {forward.data()[e], v, b};
      arcs_[size_t(b)] = {backward.data()[e], u, a};
    }
    for (int64_t i = 0; i < n_; ++i) {
      const double s = source.data()[i], t = sink.data()[i];
      rest_[size_t(i)] = s - t;
      flow_ += std::min(s, t);
      if (s == t) continue;
      parent_[size_t(i)] = ROOT;
      distance_[size_t(i)] = 1;
      to_sink_[size_t(i)] = s < t;
      activate(int32_t(i));
    }
  }

  template <class Check> double run(Check check_interrupt) {
    int32_t current = FREE;
    for (int64_t turn = 1;; ++turn) {
      if ((turn & 0xfffff) == 0) check_interrupt();
      if (current == FREE || parent_[size_t(current)] == FREE) {
        current = next_active();
        if (current == FREE) return flow_;
      }
      const int32_t meeting = grow(current);
      ++time_;
      if (meeting == FREE) {
        current = FREE;
        continue;
      }
      augment(meeting);
      adopt();
    }
  }

  // Nodes that the source still reaches are on its side; nodes in no tree could be on either, and go to the sink's.
  void sides(uint8_t* out) const {
    for (int64_t i = 0; i < n_; ++i) out[i] = !(parent_[size_t(i)] != FREE && !to_sink_[size_t(i)]);
  }

 private:
  struct Arc {
    double capacity;
    int32_t head, twin;
  };

  void activate(int32_t i) {
    if (waiting_[size_t(i)]) return;
    waiting_[size_t(i)] = 1;
    active_.push_back(i);
  }

  int32_t next_active() {
    while (!active_.empty()) {
      const int32_t i = active_.front();
      active_.pop_front();
      waiting_[size_t(i)] = 0;
      if (parent_[size_t(i)] != FREE) return i;
    }
    return FREE;
  }

  // What can still flow from a tree's node through arc a: outwards in the tree of the source, inwards in that of the
  // sink.
  double residual(int32_t a, bool to_sink) const { return arcs_[size_t(to_sink ? arcs_[size_t(a)].twin : a)].capacity; }

  // Takes free neighbours into the tree of node i; the arc, directed from the source's tree, where it touches the other
  // tree.
  int32_t grow(int32_t i) {
    const bool to_sink = to_sink_[size_t(i)];
    for (int32_t a = first_[size_t(i)]; a < first_[size_t(i) + 1]; ++a) {
      if (!(residual(a, to_sink) > 0)) continue;
      const Arc& arc = arcs_[size_t(a)];
      const size_t j = size_t(arc.head);
      if (parent_[j] == FREE) {
        to_sink_[j] = to_sink;
        attach(j, arc.twin, i);
        activate(arc.head);
      } else if (bool(to_sink_[j]) != to_sink) {
        return to_sink ? arc.twin : a;
      } else if (stamp_[j] <= stamp_[size_t(i)] && distance_[j] > distance_[size_t(i)]) {
        attach(j, arc.twin, i);  // a shorter way to the root
      }
    }
    return FREE;
  }

  void attach(size_t j, int32_t arc_to_parent, int32_t i) {
    parent_[j] = arc_to_parent;
    stamp_[j] = stamp_[size_t(i)];
    distance_[j] = distance_[size_t(i)] + 1;
  }

  void augment(int32_t meeting) {
    double least = arcs_[size_t(meeting)].capacity;
    const int32_t tail = arcs_[size_t(arcs_[size_t(meeting)].twin)].head, head = arcs_[size_t(meeting)].head;
    for (int32_t i = tail;;) {
      const int32_t p = parent_[size_t(i)];
      if (p == ROOT) {
        least = std::min(least, rest_[size_t(i)]);
        break;
      }
      least = std::min(least, arcs_[size_t(arcs_[size_t(p)].twin)].capacity);
      i = arcs_[size_t(p)].head;
    }
    for (int32_t i = head;;) {
      const int32_t p = parent_[size_t(i)];
      if (p == ROOT) {
        least = std::min(least, -rest_[size_t(i)]);
        break;
      }
      least = std::min(least, arcs_[size_t(p)].capacity);
      i = arcs_[size_t(p)].head;
    }
    push(meeting, least);
    for (int32_t i = tail;;) {
      const int32_t p = parent_[size_t(i)];
      if (p == ROOT) {
        rest_[size_t(i)] -= least;
        if (!(rest_[size_t(i)] > 0)) orphan(i);
        break;
      }
      const int32_t next = arcs_[size_t(p)].head;
      if (push(arcs_[size_t(p)].twin, least)) orphan(i);
      i = next;
    }
    for (int32_t i = head;;) {
      const int32_t p = parent_[size_t(i)];
      if (p == ROOT) {
        rest_[size_t(i)] += least;
        if (!(rest_[size_t(i)] < 0)) orphan(i);
        break;
      }
      const int32_t next = arcs_[size_t(p)].head;
      if (push(p, least)) orphan(i);
      i = next;
    }
    flow_ += least;
  }

  // Whether the arc is full now.
  bool push(int32_t a, double amount) {
    Arc& arc = arcs_[size_t(a)];
    arc.capacity -= amount;
    arcs_[size_t(arc.twin)].capacity += amount;
    return !(arc.capacity > 0);
  }

  void orphan(int32_t i) {
    parent_[size_t(i)] = ORPHAN;
    orphans_.push_back(i);
  }

  // Distance to the root, or FAR if the way ends at an orphan; marks the way with the present time.
  int32_t way_to_root(int32_t start) {
    int32_t steps = 0, i = start;
    int32_t whole;
    for (;;) {
      if (stamp_[size_t(i)] == time_) {
        whole = steps + distance_[size_t(i)];
        break;
      }
      const int32_t p = parent_[size_t(i)];
      ++steps;
      if (p == ROOT) {
        stamp_[size_t(i)] = time_;
        distance_[size_t(i)] = 1;
        whole = steps;
        break;
      }
      if (p == ORPHAN || p == FREE) return FAR;
      i = arcs_[size_t(p)].head;
    }
    int32_t left = whole;
    for (i = start; stamp_[size_t(i)] != time_; i = arcs_[size_t(parent_[size_t(i)])].head) {
      stamp_[size_t(i)] = time_;
      distance_[size_t(i)] = left--;
    }
    return whole;
  }

  void adopt() {
    while (!orphans_.empty()) {
      const int32_t i = orphans_.back();
      orphans_.pop_back();
      const bool to_sink = to_sink_[size_t(i)];
      int32_t best = FREE, nearest = FAR;
      for (int32_t a = first_[size_t(i)]; a < first_[size_t(i) + 1]; ++a) {
        const int32_t j = arcs_[size_t(a)].head;
        if (!(residual(a, !to_sink) > 0) || bool(to_sink_[size_t(j)]) != to_sink || parent_[size_t(j)] == FREE)
          continue;
        const int32_t d = parent_[size_t(j)] == ORPHAN ? FAR : way_to_root(j);
        if (d < nearest) {
          nearest = d;
          best = a;
        }
      }
      if (best != FREE) {
        parent_[size_t(i)] = best;
        stamp_[size_t(i)] = time_;
        distance_[size_t(i)] = nearest + 1;
        continue;
      }
      // No way to the root is left: the node is free, its neighbours may take it again, its children are orphans.
      for (int32_t a = first_[size_t(i)]; a < first_[size_t(i) + 1]; ++a) {
        const int32_t j = arcs_[size_t(a)].head, p = parent_[size_t(j)];
        if (p == FREE || bool(to_sink_[size_t(j)]) != to_sink) continue;
        if (residual(a, !to_sink) > 0) activate(j);
        if (p >= 0 && arcs_[size_t(p)].head == i) orphan(j);
      }
      parent_[size_t(i)] = FREE;
    }
  }

  int64_t n_;
  std::vector<int32_t> first_;  // arcs of a node
  std::vector<Arc> arcs_;
  std::vector<double> rest_;     // what the terminals can still send (> 0) or take (< 0)
  std::vector<int32_t> parent_;  // arc to the parent, or FREE, ROOT, ORPHAN
  std::vector<int64_t> stamp_;   // when the distance was last right
  std::vector<int32_t> distance_;
  std::vector<uint8_t> to_sink_, waiting_;
  std::deque<int32_t> active_;
  std::vector<int32_t> orphans_;
  int64_t time_ = 0;
  double flow_ = 0.0;
};

void check_capacities(const In1<double>& c, int64_t n, const char* what) {
  require(int64_t(c.shape(0)) == n, what);
  require(all_finite(c.data(), n), "capacities must be finite");
  for (int64_t i = 0; i < n; ++i) require(c.data()[i] >= 0, "capacities must not be negative");
}

double min_cut(In1<double> source, In1<double> sink, In2<int32_t> edges, In1<double> forward, In1<double> backward,
               Out1<uint8_t> side) {
  const int64_t n = int64_t(source.shape(0)), m = int64_t(edges.shape(0));
  require(n < FAR && m < FAR / 2, "the graph is too large");
  require(edges.shape(1) == 2, "edges must be of shape (m, 2)");
  check_capacities(source, n, "source must hold one value for each node");
  check_capacities(sink, n, "sink must hold one value for each node");
  check_capacities(forward, m, "forward must hold one value for each edge");
  check_capacities(backward, m, "backward must hold one value for each edge");
  require(int64_t(side.shape(0)) == n, "side must hold one value for each node");
  for (int64_t e = 0; e < m; ++e) {
    const int32_t u = edges.data()[2 * e], v = edges.data()[2 * e + 1];
    require(u >= 0 && u < n && v >= 0 && v < n, "an edge names a node that is not there");
    require(u != v, "an edge must join two nodes");
  }
  nb::gil_scoped_release unlocked;
  Cut cut(source, sink, edges, forward, backward);
  const double flow = cut.run(check_signals);
  cut.sides(side.data());
  return flow;
}

}  // namespace

void bind_cuts(nb::module_& m) {
  m.def("min_cut", &min_cut, "source"_a.noconvert(), "sink"_a.noconvert(), "edges"_a.noconvert(),
        "forward"_a.noconvert(), "backward"_a.noconvert(), "side"_a.noconvert(),
        "Fills the side of each node (0: the source's) in a minimum cut; returns its capacity.");
}

}  // namespace mercer
