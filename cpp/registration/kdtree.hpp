// A k-d tree of points in D dimensions (D = 0: any number, known at run time): nearest points, k nearest, all in a ball.
//
// Points are copied in the order of the leaves, so that neighbours lie beside each other in memory. Cells are cut at the
// median of their widest side. Equal distances go to the smaller position in the input, so that answers do not depend on
// the order of visits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace mercer {

constexpr double kFar = std::numeric_limits<double>::infinity();

// The k nearest so far, sorted.
class NearestList {
 public:
  NearestList(double* distances, int64_t* positions, int k, double limit)
      : distances_(distances), positions_(positions), k_(k), limit_(limit) {}
  double limit() const { return limit_; }
  int size() const { return size_; }
  void add(double distance, int64_t position) {
    if (size_ == k_ && !(distance < distances_[k_ - 1] || position < positions_[k_ - 1])) return;
    int at = size_ < k_ ? size_++ : k_ - 1;
    while (at > 0 &&
           (distances_[at - 1] > distance || (distances_[at - 1] == distance && positions_[at - 1] > position))) {
      distances_[at] = distances_[at - 1];
      positions_[at] = positions_[at - 1];
      --at;
    }
    distances_[at] = distance;
    positions_[at] = position;
    if (size_ == k_) limit_ = std::min(limit_, distances_[k_ - 1]);
  }

 private:
  double* distances_;
  int64_t* positions_;
  int k_, size_ = 0;
  double limit_;
};

template <int D> class KdTree {
 public:
  KdTree(const double* points, int64_t n, int d) : d_(d), n_(n) {
    order_.resize(size_t(n));
    for (int64_t i = 0; i < n; ++i) order_[size_t(i)] = i;
    nodes_.reserve(size_t(n / 4 + 2));
    if (n) build(points, 0, n);
    sorted_.resize(size_t(n) * size_t(dim()));
    for (int64_t i = 0; i < n; ++i)
      for (int k = 0; k < dim(); ++k) sorted_[size_t(i * dim() + k)] = points[order_[size_t(i)] * dim() + k];
  }

  int64_t size() const { return n_; }
  int dim() const { return D ? D : d_; }
  // Positions in the input, in the order of the leaves.
  const std::vector<int64_t>& order() const { return order_; }
  const double* sorted(int64_t i) const { return sorted_.data() + i * dim(); }

  // The nearest point at a squared distance of at most `limit`: its place in the order of the leaves, or -1.
  int64_t nearest(const double* query, double limit, double* distance) const {
    Best best{limit, -1, this};
    search(query, best);
    *distance = best.limit_;
    return best.at;
  }
  // Fills sorted lists of the k nearest; returns how many there are within the limit.
  int k_nearest(const double* query, int k, double limit, double* distances, int64_t* positions) const {
    NearestList list(distances, positions, k, limit);
    Listing sink{list, this};
    search(query, sink);
    return list.size();
  }
  // The same with places in the order of the leaves.
  void near_places(const double* query, NearestList& list) const {
    Places sink{list};
    search(query, sink);
  }
  // Calls visit(place, squared distance) for every point with a squared distance of at most `limit`.
  template <class Visit> void ball(const double* query, double limit, Visit visit) const {
    Ball<Visit> sink{limit, visit};
    search(query, sink);
  }
  double squared(const double* a, const double* b) const {
    double sum = 0;
    for (int k = 0; k < dim(); ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
    return sum;
  }

 private:
  static constexpr int64_t kLeaf = 8;
  struct Node {
    int64_t first, last;  // points; a leaf has axis -1
    int64_t right;        // the left child is the next node
    double cut;
    int axis;
  };
  struct Best {
    double limit_;
    int64_t at;
    const KdTree* tree;
    double limit() const { return limit_; }
    void offer(double distance, int64_t place) {
      if (distance < limit_ ||
          (distance == limit_ && (at < 0 || tree->order_[size_t(place)] < tree->order_[size_t(at)]))) {
        limit_ = distance;
        at = place;
      }
    }
  };
  struct Listing {
    NearestList& list;
    const KdTree* tree;
    double limit() const { return list.limit(); }
    void offer(double distance, int64_t place) { list.add(distance, tree->order_[size_t(place)]); }
  };
  struct Places {
    NearestList& list;
    double limit() const { return list.limit(); }
    void offer(double distance, int64_t place) { list.add(distance, place); }
  };
  template <class Visit> struct Ball {
    double limit_;
    Visit& visit;
    double limit() const { return limit_; }
    void offer(double distance, int64_t place) { visit(place, distance); }
  };

  void build(const double* points, int64_t first, int64_t last) {
    const size_t at = nodes_.size();
    nodes_.push_back({first, last, 0, 0.0, -1});
    if (last - first <= kLeaf) return;
    int axis = 0;
    double widest = -1;
    for (int k = 0; k < dim(); ++k) {
      double low = kFar, high = -kFar;
      for (int64_t i = first; i < last; ++i) {
        const double x = points[order_[size_t(i)] * dim() + k];
        low = std::min(low, x);
        high = std::max(high, x);
      }
      if (high - low > widest) widest = high - low, axis = k;
    }
    if (widest <= 0) return;  // all points are equal: one leaf, however large
    const int64_t middle = (first + last) / 2;
    const int width = dim();
    std::nth_element(order_.begin() + first, order_.begin() + middle, order_.begin() + last, [=](int64_t a, int64_t b) {
      const double x = points[a * width + axis], y = points[b * width + axis];
      return x < y || (x == y && a < b);
    });
    nodes_[at].axis = axis;
    nodes_[at].cut = points[order_[size_t(middle)] * width + axis];
    build(points, first, middle);
    nodes_[at].right = int64_t(nodes_.size());
    build(points, middle, last);
  }

  template <class Sink> void search(const double* query, Sink& sink) const {
    if (!n_) return;
    double offsets[D ? D : 64] = {};
    descend(0, query, 0.0, offsets, sink);
  }
  template <class Sink> void descend(int64_t at, const double* query, double reach, double* offsets, Sink& sink) const {
    const Node& node = nodes_[size_t(at)];
    if (node.axis < 0) {
      for (int64_t i = node.first; i < node.last; ++i) {
        const double distance = squared(query, sorted(i));
        if (distance <= sink.limit()) sink.offer(distance, i);
      }
      return;
    }
    // Squared distance to the far cell: the offset along this axis takes the place of the one before.
    const double away = query[node.axis] - node.cut, old = offsets[node.axis];
    const int64_t near = away < 0 ? at + 1 : node.right, far = away < 0 ? node.right : at + 1;
    descend(near, query, reach, offsets, sink);
    const double beyond = reach - old * old + away * away;
    if (beyond > sink.limit() * (1 + 1e-12)) return;
    offsets[node.axis] = away;
    descend(far, query, beyond, offsets, sink);
    offsets[node.axis] = old;
  }

  int d_;
  int64_t n_;
  std::vector<int64_t> order_;
  std::vector<Node> nodes_;
  std::vector<double> sorted_;
};

}  // namespace mercer
