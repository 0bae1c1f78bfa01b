// Kernels of graphs: shortest paths, refined labels, walks on product graphs; pairs of words that are few edits apart.
//
//   Φ_{a,b,d}(G) = #{(u, v) : u ≠ v, a = label(u), b = label(v), d = distance(u, v)}
//   c_{t+1}(v) = hash(c_t(v), {{c_t(u) : u ~ v}}),    Φ_{t,c}(G) = #{v : c_t(v) = c}  (Weisfeiler and Lehman)
//   k(G, G') = Σ_{(u,u')} s_u s'_u' x_{uu'},    x = r r' + T x,    T_{uu',vv'} = S_uv S'_u'v'
//
// Walks live on pairs (u, u') of nodes with equal labels, and on pairs of edges with equal labels. S is symmetric for
// all kinds of walks (a walk with transition probabilities is scaled by the roots of the degrees), so I − T is
// symmetric and positive definite.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <queue>
#include <unordered_map>

#include "base/parallel.hpp"
#include "graphs/graph.hpp"

namespace mercer {
namespace graph_kernels {
namespace {

// Work on graphs in runs: the result of one graph depends on nothing else.
template <class Work> void over_graphs(int64_t n, int threads, Work work) {
  const int64_t parts = threads <= 1 ? 1 : std::min<int64_t>(n, int64_t(threads) * 16);
  in_parallel(parts, threads, [&](int64_t part) {
    for (int64_t g = n * part / parts; g < n * (part + 1) / parts; ++g) work(g);
  });
}

// ---------------------------------------------------------------------------------------------------- shortest paths

struct PathCell {
  uint64_t key = 0, ends = 0;  // of (labels, length); of the labels alone
  double length = 0, count = 0;
};

// Lengths that differ by rounding in the order of a sum are one length: 34 bits of the mantissa are kept, integers stay
// as they are.
double rounded_length(double length) {
  int exponent = 0;
  const double mantissa = std::frexp(length, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 34)), exponent - 34);
}

PathCell path_cell(uint64_t from, uint64_t to, double length, double count) {
  uint64_t bits;
  std::memcpy(&bits, &length, 8);
  const uint64_t ends = combine(from, to);
  return {combine(ends, bits), ends, length, count};
}

// Distances from one node to all others, -1 where there is no path.
class Distances {
 public:
  Distances(const Graph& graph, const double* weights) : graph_(graph), weights_(weights), length_(size_t(graph.n)) {}

  const std::vector<double>& from(int32_t source) {
    std::fill(length_.begin(), length_.end(), -1.0);
    if (weights_)
      dijkstra(source);
    else
      breadth_first(source);
    return length_;
  }

 private:
  void breadth_first(int32_t source) {
    queue_.assign(1, source);
    length_[size_t(source)] = 0;
    for (size_t head = 0; head < queue_.size(); ++head) {
      const int32_t v = queue_[head];
      for (int64_t e = graph_.indptr[v]; e < graph_.indptr[v + 1]; ++e) {
        const int32_t u = graph_.indices[e];
        if (length_[size_t(u)] >= 0) continue;
        length_[size_t(u)] = length_[size_t(v)] + 1;
        queue_.push_back(u);
      }
    }
  }
  void dijkstra(int32_t source) {
    using Item = std::pair<double, int32_t>;
    std::priority_queue<Item, std::vector<Item>, std::greater<Item>> open;
    open.emplace(0.0, source);
    while (!open.empty()) {
      const auto [far, v] = open.top();
      open.pop();
      if (length_[size_t(v)] >= 0) continue;
      length_[size_t(v)] = far;
      for (int64_t e = graph_.indptr[v]; e < graph_.indptr[v + 1]; ++e)
        if (length_[size_t(graph_.indices[e])] < 0) open.emplace(far + weights_[e], graph_.indices[e]);
    }
    for (double& length : length_)
      if (length > 0) length = rounded_length(length);
  }

  const Graph& graph_;
  const double* weights_;
  std::vector<double> length_;
  std::vector<int32_t> queue_;
};

void sort_cells(std::vector<PathCell>& cells) {
  std::sort(cells.begin(), cells.end(), [](const PathCell& a, const PathCell& b) { return a.key < b.key; });
}

// Counts in a table by (label, label, length), where that is small; labels are numbered within the graph.
constexpr int64_t TABLE = int64_t(1) << 18;

std::vector<PathCell> tabulated_paths(const Graph& graph, const std::vector<uint64_t>& labels,
                                      const std::vector<int32_t>& codes) {
  const size_t n = size_t(graph.n), l = labels.size();
  std::vector<int64_t> table(l * l * n, 0);
  Distances distances(graph, nullptr);
  for (int32_t u = 0; u < graph.n; ++u) {
    const std::vector<double>& length = distances.from(u);
    int64_t* of_label = table.data() + size_t(codes[size_t(u)]) * l * n;
    for (size_t v = 0; v < n; ++v)
      if (length[v] > 0) ++of_label[size_t(codes[v]) * n + size_t(length[v])];
  }
  std::vector<PathCell> cells;
  for (size_t a = 0; a < l; ++a)
    for (size_t b = 0; b < l; ++b)
      for (size_t d = 1; d < n; ++d)
        if (const int64_t count = table[(a * l + b) * n + d])
          cells.push_back(path_cell(labels[a], labels[b], double(d), double(count)));
  return cells;
}

std::vector<PathCell> path_cells(const Graph& graph, const uint64_t* keys, const double* weights) {
  std::vector<uint64_t> labels(keys, keys + graph.n);
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  const auto l = int64_t(labels.size());
  std::vector<PathCell> cells;
  if (!weights && l * l <= TABLE / std::max(1, graph.n)) {
    std::vector<int32_t> codes(size_t(graph.n));
    for (size_t v = 0; v < codes.size(); ++v)
      codes[v] = int32_t(std::lower_bound(labels.begin(), labels.end(), keys[v]) - labels.begin());
    cells = tabulated_paths(graph, labels, codes);
  } else {
    std::unordered_map<uint64_t, PathCell> found;
    Distances distances(graph, weights);
    for (int32_t u = 0; u < graph.n; ++u) {
      const std::vector<double>& length = distances.from(u);
      for (int32_t v = 0; v < graph.n; ++v) {
        if (v == u || length[size_t(v)] < 0) continue;
        const PathCell cell = path_cell(keys[u], keys[v], length[size_t(v)], 1);
        PathCell& kept = found.emplace(cell.key, PathCell{cell.key, cell.ends, cell.length, 0}).first->second;
        kept.count += 1;
      }
    }
    for (const auto& entry : found) cells.push_back(entry.second);
  }
  sort_cells(cells);
  return cells;
}

std::vector<uint64_t> node_keys(const GraphStack& stack, const std::optional<In1<uint64_t>>& keys) {
  if (!keys) return std::vector<uint64_t>(size_t(stack.nodes()), 0);
  require(int64_t(keys->shape(0)) == stack.nodes(), "keys must hold one value a node");
  return std::vector<uint64_t>(keys->data(), keys->data() + stack.nodes());
}

const double* edge_weights(const GraphStack& stack, const std::optional<In1<double>>& weights) {
  if (!weights) return nullptr;
  require(int64_t(weights->shape(0)) == stack.entries(), "weights must hold one value for each of the indices");
  for (int64_t e = 0; e < stack.entries(); ++e)
    require(std::isfinite(weights->data()[e]) && weights->data()[e] >= 0, "weights must be finite and at least 0");
  return weights->data();
}

nb::object shortest_path_rows(In1<int64_t> offsets, In1<int64_t> indptr, In1<int32_t> indices,
                              std::optional<In1<uint64_t>> keys, std::optional<In1<double>> weights, int threads) {
  const GraphStack stack(offsets, indptr, indices);
  const std::vector<uint64_t> labels = node_keys(stack, keys);
  const double* lengths = edge_weights(stack, weights);
  threads = thread_count(threads);
  std::vector<std::vector<PathCell>> rows(size_t(stack.size()));
  std::vector<int64_t> starts(1, 0);
  std::vector<uint64_t> feature, ends;
  std::vector<double> length, count;
  {
    nb::gil_scoped_release release;
    over_graphs(stack.size(), threads, [&](int64_t g) {
      rows[size_t(g)] = path_cells(stack.graph(g), labels.data() + stack.first(g), lengths);
    });
    for (const auto& row : rows) {
      for (const PathCell& cell : row) {
        feature.push_back(cell.key);
        ends.push_back(cell.ends);
        length.push_back(cell.length);
        count.push_back(cell.count);
      }
      starts.push_back(int64_t(feature.size()));
    }
  }
  return nb::make_tuple(to_numpy(std::move(starts)), to_numpy(std::move(feature)), to_numpy(std::move(ends)),
                        to_numpy(std::move(length)), to_numpy(std::move(count)));
}

// ---------------------------------------------------------------------------------------------------- refined labels

enum class Base { subtree, edge, shortest_path };
using Counted = std::vector<std::pair<uint64_t, double>>;

// The neighbours' colours enter as a sum of their hashes, which has no order and counts repeats.
void refine(const Graph& graph, const uint64_t* edge_keys, const std::vector<uint64_t>& colour,
            std::vector<uint64_t>& next) {
  for (int32_t v = 0; v < graph.n; ++v) {
    uint64_t around = 0;
    for (int64_t e = graph.indptr[v]; e < graph.indptr[v + 1]; ++e) {
      const uint64_t c = colour[size_t(graph.indices[e])];
      around += feature_hash(edge_keys ? combine(feature_hash(edge_keys[e], 2), c) : c, 1);
    }
    next[size_t(v)] = combine(colour[size_t(v)], around);
  }
}

void add_counted(std::vector<uint64_t>& keys, Counted& out) {
  std::sort(keys.begin(), keys.end());
  for (size_t i = 0; i < keys.size();) {
    size_t j = i;
    while (j < keys.size() && keys[j] == keys[i]) ++j;
    out.emplace_back(keys[i], double(j - i));
    i = j;
  }
}

void add_round(const Graph& graph, const std::vector<uint64_t>& colour, const uint64_t* edge_keys, uint64_t round,
               Base base, std::vector<uint64_t>& keys, Counted& out) {
  keys.clear();
  if (base == Base::shortest_path) {
    for (const PathCell& cell : path_cells(graph, colour.data(), nullptr))
      out.emplace_back(combine(cell.key, round), cell.count);
    return;
  }
  for (int32_t v = 0; v < graph.n; ++v) {
    if (base == Base::subtree) {
      keys.push_back(combine(colour[size_t(v)], round));
      continue;
    }
    for (int64_t e = graph.indptr[v]; e < graph.indptr[v + 1]; ++e) {
      if (graph.indices[e] < v) continue;
      const uint64_t a = colour[size_t(v)], b = colour[size_t(graph.indices[e])];
      const uint64_t ends = combine(std::min(a, b), std::max(a, b));
      keys.push_back(combine(edge_keys ? combine(ends, edge_keys[e]) : ends, round));
    }
  }
  add_counted(keys, out);
}

Counted refined_row(const Graph& graph, const uint64_t* labels, const uint64_t* edge_keys, int rounds, Base base) {
  std::vector<uint64_t> colour(size_t(graph.n)), next(size_t(graph.n)), keys;
  for (size_t v = 0; v < colour.size(); ++v) colour[v] = feature_hash(labels[v], 0);
  Counted out;
  for (int round = 0;; ++round) {
    add_round(graph, colour, edge_keys, uint64_t(round), base, keys, out);
    if (round == rounds) break;
    refine(graph, edge_keys, colour, next);
    colour.swap(next);
  }
  std::sort(out.begin(), out.end());
  Counted merged;
  for (const auto& [key, count] : out) {
    if (!merged.empty() && merged.back().first == key)
      merged.back().second += count;
    else
      merged.emplace_back(key, count);
  }
  return merged;
}

nb::object weisfeiler_lehman_rows(In1<int64_t> offsets, In1<int64_t> indptr, In1<int32_t> indices,
                                  std::optional<In1<uint64_t>> keys, std::optional<In1<uint64_t>> edge_keys, int rounds,
                                  const std::string& base, int threads) {
  const GraphStack stack(offsets, indptr, indices);
  const std::vector<uint64_t> labels = node_keys(stack, keys);
  require(!edge_keys || int64_t(edge_keys->shape(0)) == stack.entries(),
          "edge_keys must hold one value for each of the indices");
  require(rounds >= 0 && rounds <= 1000, "rounds must lie between 0 and 1000");
  require(base == "subtree" || base == "edge" || base == "shortest_path",
          "base must be 'subtree', 'edge' or 'shortest_path'");
  const Base kind = base == "subtree" ? Base::subtree : base == "edge" ? Base::edge : Base::shortest_path;
  threads = thread_count(threads);
  std::vector<Counted> rows(size_t(stack.size()));
  std::vector<int64_t> starts(1, 0);
  std::vector<uint64_t> feature;
  std::vector<double> count;
  {
    nb::gil_scoped_release release;
    over_graphs(stack.size(), threads, [&](int64_t g) {
      rows[size_t(g)] = refined_row(stack.graph(g), labels.data() + stack.first(g),
                                    edge_keys ? edge_keys->data() : nullptr, rounds, kind);
    });
    for (const auto& row : rows) {
      for (const auto& [key, value] : row) {
        feature.push_back(key);
        count.push_back(value);
      }
      starts.push_back(int64_t(feature.size()));
    }
  }
  return nb::make_tuple(to_numpy(std::move(starts)), to_numpy(std::move(feature)), to_numpy(std::move(count)));
}

// ---------------------------------------------------------------------------------------------------- walks

// Graphs for walks: S in `weights`, nodes of each graph in ascending order of their labels' keys.
class WalkGraphs {
 public:
  WalkGraphs(In1<int64_t> offsets, In1<int64_t> indptr, In1<int32_t> indices, In1<double> weights,
             In1<int32_t> edge_codes, In1<uint64_t> keys, In1<double> start, In1<double> stop, In1<double> radius,
             int n_edge_codes)
      : offsets_(offsets),
        indptr_(indptr),
        indices_(indices),
        weights_(weights),
        edge_codes_(edge_codes),
        keys_(keys),
        start_(start),
        stop_(stop),
        radius_(radius),
        stack_(offsets_, indptr_, indices_),
        n_edge_codes_(n_edge_codes) {
    const auto nodes = size_t(stack_.nodes()), entries = size_t(stack_.entries());
    require(weights.shape(0) == entries && edge_codes.shape(0) == entries,
            "weights and edge_codes must hold one value for each of the indices");
    require(keys.shape(0) == nodes && start.shape(0) == nodes && stop.shape(0) == nodes,
            "keys, start and stop must hold one value a node");
    require(radius.shape(0) == size_t(stack_.size()), "radius must hold one value a graph");
    require(n_edge_codes >= 1, "n_edge_codes must be at least 1");
    for (size_t e = 0; e < entries; ++e) {
      require(std::isfinite(weights_.data()[e]) && weights_.data()[e] >= 0, "weights must be finite and at least 0");
      require(edge_codes_.data()[e] >= 0 && edge_codes_.data()[e] < n_edge_codes, "an edge code is out of range");
    }
    for (size_t v = 0; v < nodes; ++v) {
      const double from = start_.data()[v], to = stop_.data()[v];
      require(std::isfinite(from) && std::isfinite(to) && from >= 0 && to >= 0,
              "start and stop must be finite and at least 0");
    }
    for (int64_t g = 0; g < stack_.size(); ++g) {
      require(std::isfinite(radius_.data()[g]) && radius_.data()[g] >= 0, "radius must be finite and at least 0");
      for (int64_t v = stack_.first(g) + 1; v < stack_.first(g) + stack_.order(g); ++v)
        require(keys_.data()[v - 1] <= keys_.data()[v], "keys must ascend in every graph");
    }
  }
  int64_t size() const { return stack_.size(); }
  int n_edge_codes() const { return n_edge_codes_; }
  double radius(int64_t g) const { return radius_.data()[g]; }
  const GraphStack& stack() const { return stack_; }
  const double* weights() const { return weights_.data(); }
  const int32_t* edge_codes() const { return edge_codes_.data(); }
  const uint64_t* keys(int64_t g) const { return keys_.data() + stack_.first(g); }
  const double* start(int64_t g) const { return start_.data() + stack_.first(g); }
  const double* stop(int64_t g) const { return stop_.data() + stack_.first(g); }

 private:
  In1<int64_t> offsets_, indptr_;
  In1<int32_t> indices_;
  In1<double> weights_;
  In1<int32_t> edge_codes_;
  In1<uint64_t> keys_;
  In1<double> start_, stop_, radius_;
  GraphStack stack_;
  int n_edge_codes_;
};

enum class Solver { conjugate_gradient, fixed_point };

struct WalkSettings {
  Solver solver = Solver::conjugate_gradient;
  int64_t max_length = -1;  // -1: walks of all lengths
  double tol = 1e-10;
  int n_edge_codes = 1;
};

double dot(const std::vector<double>& x, const std::vector<double>& y) {
  double total = 0;
  const size_t n = x.size();
#pragma omp simd reduction(+ : total)
  for (size_t i = 0; i < n; ++i) total += x[i] * y[i];
  return total;
}

// The product of two graphs. A vector holds, node after node of the first graph, the nodes of the second one with the
// same label: these are neighbours in memory, since nodes are sorted by label.
class Product {
  static constexpr int LANES = 4;

 public:
  explicit Product(const WalkSettings& settings) : settings_(settings) {}

  double value(const WalkGraphs& left, int64_t i, const WalkGraphs& right, int64_t j) {
    a_ = left.stack().graph(i);
    b_ = right.stack().graph(j);
    a_weights_ = left.weights();
    b_weights_ = right.weights();
    a_codes_ = left.edge_codes();
    b_codes_ = right.edge_codes();
    match(left.keys(i), right.keys(j));
    if (!size_) return 0;
    outer(left.start(i), right.start(j), start_);
    outer(left.stop(i), right.stop(j), stop_);
    bound_ = left.radius(i) * right.radius(j);
    if (settings_.max_length >= 0) return series(settings_.max_length);
    require(bound_ < 1, "the sum over walks diverges");
    return settings_.solver == Solver::fixed_point ? series(-1) : conjugate_gradient();
  }

 private:
  void match(const uint64_t* a, const uint64_t* b) {
    const auto n = size_t(a_.n);
    low_.resize(n);
    width_.resize(n);
    place_.resize(n);
    size_ = 0;
    for (size_t u = 0; u < n; ++u) {
      if (u > 0 && a[u] == a[u - 1]) {
        low_[u] = low_[u - 1];
        width_[u] = width_[u - 1];
      } else {
        const auto range = std::equal_range(b, b + b_.n, a[u]);
        low_[u] = range.first - b;
        width_[u] = range.second - range.first;
      }
      place_[u] = size_;
      size_ += size_t(width_[u]);
    }
    stride_ = size_t(b_.n) * size_t(settings_.n_edge_codes);
    row_.resize(stride_ * LANES);
  }

  void outer(const double* a, const double* b, std::vector<double>& out) const {
    out.resize(size_);
    for (size_t u = 0; u < size_t(a_.n); ++u)
      for (int64_t c = 0; c < width_[u]; ++c) out[place_[u] + size_t(c)] = a[u] * b[low_[u] + c];
  }

  // y = T x: along the edges of the first graph, then along those of the second. Nodes of one label are taken together,
  // up to LANES of them, as they share the second step.
  void apply(const std::vector<double>& x, std::vector<double>& y) {
    for (int32_t u = 0, lanes; u < a_.n; u += lanes) {
      lanes = 1;
      const auto together = [&](int32_t v) {
        return low_[size_t(v)] == low_[size_t(u)] && width_[size_t(v)] == width_[size_t(u)];
      };
      while (lanes < LANES && u + lanes < a_.n && together(u + lanes)) ++lanes;
      if (!width_[size_t(u)]) continue;
      std::fill(row_.begin(), row_.begin() + std::ptrdiff_t(size_t(lanes) * stride_), 0.0);
      for (int32_t lane = 0; lane < lanes; ++lane) gather(x, u + lane, row_.data() + size_t(lane) * stride_);
      double* out = y.data() + place_[size_t(u)];
      switch (lanes) {
        case 1: spread<1>(u, out); break;
        case 2: spread<2>(u, out); break;
        case 3: spread<3>(u, out); break;
        default: spread<LANES>(u, out);
      }
    }
  }

  void gather(const std::vector<double>& x, int32_t u, double* row) const {
    for (int64_t e = a_.indptr[u]; e < a_.indptr[u + 1]; ++e) {
      const auto v = size_t(a_.indices[e]);
      double* to = row + size_t(a_codes_[e]) * size_t(b_.n) + low_[v];
      const double* from = x.data() + place_[v];
      const double weight = a_weights_[e];
      for (int64_t c = 0; c < width_[v]; ++c) to[c] += weight * from[c];
    }
  }

  template <int N> void spread(int32_t u, double* out) const {
    const int64_t width = width_[size_t(u)], low = low_[size_t(u)];
    const double* row = row_.data();
    for (int64_t c = 0; c < width; ++c) {
      double total[N] = {};
      for (int64_t e = b_.indptr[low + c]; e < b_.indptr[low + c + 1]; ++e) {
        const double weight = b_weights_[e];
        const double* at = row + size_t(b_codes_[e]) * size_t(b_.n) + size_t(b_.indices[e]);
        for (int k = 0; k < N; ++k) total[k] += weight * at[size_t(k) * stride_];
      }
      for (int k = 0; k < N; ++k) out[k * width + c] = total[k];
    }
  }

  // Σ_l ⟨start, T^l stop⟩, up to a length or until what is left is below the tolerance: all terms are at least 0.
  double series(int64_t max_length) {
    x_ = stop_;
    y_.resize(size_);
    double total = dot(start_, x_);
    const double scale = std::sqrt(dot(start_, start_)) * (max_length < 0 ? bound_ / (1 - bound_) : 0);
    for (int64_t l = 1; max_length < 0 || l <= max_length; ++l) {
      if (max_length < 0 && std::sqrt(dot(x_, x_)) * scale <= settings_.tol * total) return total;
      if (max_length < 0 && l > 1000000)
        throw std::runtime_error("the fixed point was not reached in 1000000 steps: use solver='cg'");
      apply(x_, y_);
      x_.swap(y_);
      total += dot(start_, x_);
    }
    return total;
  }

  // With r = stop − (I − T) x and the error e of x, ⟨stop, x + e⟩ = ⟨stop + r, x⟩ + ⟨r, (I − T)⁻¹ r⟩ for symmetric T:
  // where walks start as they stop, the value has an error of second order, |r|² / (1 − bound). Else it is at most
  // |start| |r| / (1 − bound). The value is at least ⟨start, stop⟩, since all terms of the series are at least 0.
  double conjugate_gradient() {
    x_ = stop_;
    y_.resize(size_);
    apply(x_, y_);
    residual_ = y_;
    direction_ = residual_;
    double rr = dot(residual_, residual_);
    const bool second_order = start_ == stop_;
    const double allowed = settings_.tol * (1 - bound_) * dot(start_, stop_);
    const double linear = allowed / std::max(std::sqrt(dot(start_, start_)), 1e-300),
                 floor = 1e-15 * std::sqrt(dot(stop_, stop_));
    const double goal = std::max(second_order ? std::sqrt(allowed) : linear, floor);
    const size_t most = 10 * size_ + 100;
    for (size_t step = 0; rr > goal * goal; ++step) {
      if (step == most)
        throw std::runtime_error(
            "conjugate gradients did not converge: use solver='spectral' or 'direct', or a smaller decay");
      apply(direction_, y_);
      double curvature = 0;
#pragma omp simd reduction(+ : curvature)
      for (size_t i = 0; i < size_; ++i) {
        y_[i] = direction_[i] - y_[i];
        curvature += direction_[i] * y_[i];
      }
      const double alpha = rr / curvature;
      double next = 0;
#pragma omp simd reduction(+ : next)
      for (size_t i = 0; i < size_; ++i) {
        x_[i] += alpha * direction_[i];
        residual_[i] -= alpha * y_[i];
        next += residual_[i] * residual_[i];
      }
      const double beta = next / rr;
      for (size_t i = 0; i < size_; ++i) direction_[i] = residual_[i] + beta * direction_[i];
      rr = next;
    }
    return dot(start_, x_) + (second_order ? dot(residual_, x_) : 0);
  }

  const WalkSettings settings_;
  Graph a_{}, b_{};
  const double *a_weights_ = nullptr, *b_weights_ = nullptr;
  const int32_t *a_codes_ = nullptr, *b_codes_ = nullptr;
  std::vector<int64_t> low_, width_;
  std::vector<size_t> place_;
  size_t size_ = 0, stride_ = 0;
  double bound_ = 0;
  std::vector<double> start_, stop_, row_, x_, y_, residual_, direction_;
};

// Calls fill(i, first, last) for the entries (i, first .. last) of a matrix, on threads, and mirrors a symmetric one.
template <class Fill> void fill_matrix(Out2<double>& out, bool symmetric, int threads, Fill fill) {
  const auto n = int64_t(out.shape(0)), m = int64_t(out.shape(1));
  constexpr int64_t RUN = 64;  // entries of one piece of work
  const int64_t runs = (m + RUN - 1) / RUN;
  in_parallel(n * runs, threads, [&](int64_t part) {
    const int64_t i = part / runs, first = part % runs * RUN;
    const int64_t last = std::min(first + RUN, symmetric ? i + 1 : m);
    if (first < last) fill(i, first, last);
  });
  if (!symmetric) return;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j) out(size_t(j), size_t(i)) = out(size_t(i), size_t(j));
}

void walk_gram(const WalkGraphs& left, const WalkGraphs* right, const std::string& solver, int64_t max_length,
               double tol, Out2<double> out, int threads) {
  WalkSettings settings;
  require(solver == "cg" || solver == "fixed_point", "solver must be 'cg' or 'fixed_point'");
  require(max_length >= -1, "max_length must be at least 0, or -1 for all");
  require(std::isfinite(tol) && tol > 0, "tol must be positive");
  settings.solver = solver == "cg" ? Solver::conjugate_gradient : Solver::fixed_point;
  settings.max_length = max_length;
  settings.tol = tol;
  const WalkGraphs& other = right ? *right : left;
  settings.n_edge_codes = std::max(left.n_edge_codes(), other.n_edge_codes());
  require(int64_t(out.shape(0)) == left.size() && int64_t(out.shape(1)) == other.size(),
          "out must have a row for each graph of left, a column for each of right");
  threads = thread_count(threads);
  nb::gil_scoped_release release;
  fill_matrix(out, right == nullptr, threads, [&](int64_t i, int64_t first, int64_t last) {
    Product product(settings);
    for (int64_t j = first; j < last; ++j) out(size_t(i), size_t(j)) = product.value(left, i, other, j);
  });
}

// Σ_pq a_p b_q / (1 − μ_p ν_q): walks on graphs without labels, whose product has all products of their eigenvalues.
struct Spectra {
  Spectra(const In1<int64_t>& offsets, const In1<double>& weights, const In1<double>& values)
      : offsets(offsets.data()), weights(weights.data()), values(values.data()), n(int64_t(offsets.shape(0)) - 1) {
    require(weights.shape(0) == values.shape(0), "weights and values must have one length");
    require_offsets(offsets, int64_t(values.shape(0)), "offsets", "values");
    require(all_finite(this->weights, this->offsets[n]) && all_finite(this->values, this->offsets[n]),
            "weights and values must be finite");
    for (int64_t p = 0; p < this->offsets[n]; ++p) largest = std::max(largest, std::abs(this->values[p]));
  }
  const int64_t* offsets;
  const double *weights, *values;
  int64_t n;
  double largest = 0;
};

double spectral_value(const Spectra& left, int64_t i, const Spectra& right, int64_t j) {
  const int64_t first = right.offsets[j], last = right.offsets[j + 1];
  double total = 0;
  for (int64_t p = left.offsets[i]; p < left.offsets[i + 1]; ++p) {
    const double mu = left.values[p];
    double inner = 0;
#pragma omp simd reduction(+ : inner)
    for (int64_t q = first; q < last; ++q) inner += right.weights[q] / (1 - mu * right.values[q]);
    total += left.weights[p] * inner;
  }
  return total;
}

void spectral_gram(In1<int64_t> left_offsets, In1<double> left_weights, In1<double> left_values,
                   In1<int64_t> right_offsets, In1<double> right_weights, In1<double> right_values, bool symmetric,
                   Out2<double> out, int threads) {
  const Spectra left(left_offsets, left_weights, left_values), right(right_offsets, right_weights, right_values);
  require(left.largest * right.largest < 1, "the sum over walks diverges");
  require(int64_t(out.shape(0)) == left.n && int64_t(out.shape(1)) == right.n,
          "out must have a row for each graph of left, a column for each of right");
  require(!symmetric || left.n == right.n, "a symmetric matrix is square");
  threads = thread_count(threads);
  nb::gil_scoped_release release;
  fill_matrix(out, symmetric, threads, [&](int64_t i, int64_t first, int64_t last) {
    for (int64_t j = first; j < last; ++j) out(size_t(i), size_t(j)) = spectral_value(left, i, right, j);
  });
}

// --------------------------------------------------------------------------------------------- words a few edits apart

struct Words {
  const int32_t* codes;
  const int64_t* offsets;
  std::vector<uint64_t> letters;  // a bit for each letter, modulo 64
  int64_t length(int64_t i) const { return offsets[i + 1] - offsets[i]; }
};

// Insertions, deletions and substitutions from a to b if they are at most `limit`, else limit + 1. Only cells within
// `limit` of the diagonal can lie on such a path.
int64_t edit_distance_within(const int32_t* a, int64_t n, const int32_t* b, int64_t m, int64_t limit,
                             std::vector<int64_t>& row) {
  row.resize(size_t(m) + 1);
  for (int64_t j = 0; j <= m; ++j) row[size_t(j)] = j <= limit ? j : limit + 1;
  for (int64_t i = 1; i <= n; ++i) {
    const int64_t first = std::max<int64_t>(1, i - limit), last = std::min(m, i + limit);
    int64_t diagonal = row[size_t(first - 1)], least = limit + 1;
    row[size_t(first - 1)] = first == 1 && i <= limit ? i : limit + 1;
    least = std::min(least, row[size_t(first - 1)]);
    for (int64_t j = first; j <= last; ++j) {
      const int64_t above = j == i + limit ? limit + 1 : row[size_t(j)];
      const int64_t best = std::min({diagonal + (a[i - 1] != b[j - 1]), above + 1, row[size_t(j - 1)] + 1, limit + 1});
      diagonal = row[size_t(j)];
      row[size_t(j)] = best;
      least = std::min(least, best);
    }
    if (least > limit) return limit + 1;
  }
  return row[size_t(m)];
}

nb::object edit_pairs(In1<int64_t> offsets, In1<int32_t> codes, int64_t limit, int threads) {
  const int64_t n = require_offsets(offsets, int64_t(codes.shape(0)), "offsets", "codes");
  require(limit >= 0 && limit <= (int64_t(1) << 30), "limit must lie between 0 and 2^30");
  threads = thread_count(threads);
  Words words{codes.data(), offsets.data(), std::vector<uint64_t>(size_t(n), 0)};
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = words.offsets[i]; k < words.offsets[i + 1]; ++k)
      words.letters[size_t(i)] |= uint64_t(1) << (uint32_t(words.codes[k]) & 63);
  std::vector<std::vector<std::array<int64_t, 2>>> found(static_cast<size_t>(n));
  std::vector<int64_t> first, second, distance;
  {
    nb::gil_scoped_release release;
    over_graphs(n, threads, [&](int64_t i) {
      std::vector<int64_t> row;
      for (int64_t j = i + 1; j < n; ++j) {
        const uint64_t a = words.letters[size_t(i)], b = words.letters[size_t(j)];
        // Each letter that only one of the words has needs an edit; one substitution may serve one letter of each.
        if (std::abs(words.length(i) - words.length(j)) > limit || __builtin_popcountll(a & ~b) > limit ||
            __builtin_popcountll(b & ~a) > limit)
          continue;
        const int64_t d = edit_distance_within(words.codes + words.offsets[i], words.length(i),
                                               words.codes + words.offsets[j], words.length(j), limit, row);
        if (d <= limit) found[size_t(i)].push_back({j, d});
      }
    });
    for (int64_t i = 0; i < n; ++i)
      for (const auto& [j, d] : found[size_t(i)]) {
        first.push_back(i);
        second.push_back(j);
        distance.push_back(d);
      }
  }
  return nb::make_tuple(to_numpy(std::move(first)), to_numpy(std::move(second)), to_numpy(std::move(distance)));
}

}  // namespace
}  // namespace graph_kernels

void bind_graph_kernels(nb::module_& m) {
  using namespace graph_kernels;
  m.def("shortest_path_rows", &shortest_path_rows, "offsets"_a, "indptr"_a, "indices"_a, "keys"_a.none(),
        "weights"_a.none(), "threads"_a);
  m.def("weisfeiler_lehman_rows", &weisfeiler_lehman_rows, "offsets"_a, "indptr"_a, "indices"_a, "keys"_a.none(),
        "edge_keys"_a.none(), "rounds"_a, "base"_a, "threads"_a);
  nb::class_<WalkGraphs>(m, "WalkGraphs")
      .def(nb::init<In1<int64_t>, In1<int64_t>, In1<int32_t>, In1<double>, In1<int32_t>, In1<uint64_t>, In1<double>,
                    In1<double>, In1<double>, int>(),
           "offsets"_a, "indptr"_a, "indices"_a, "weights"_a, "edge_codes"_a, "keys"_a, "start"_a, "stop"_a, "radius"_a,
           "n_edge_codes"_a)
      .def("__len__", &WalkGraphs::size);
  m.def("walk_gram", &walk_gram, "left"_a, "right"_a.none(), "solver"_a, "max_length"_a, "tol"_a, "out"_a, "threads"_a);
  m.def("spectral_gram", &spectral_gram, "left_offsets"_a, "left_weights"_a, "left_values"_a, "right_offsets"_a,
        "right_weights"_a, "right_values"_a, "symmetric"_a, "out"_a, "threads"_a);
  m.def("edit_pairs", &edit_pairs, "offsets"_a, "codes"_a, "limit"_a, "threads"_a);
}

}  // namespace mercer
