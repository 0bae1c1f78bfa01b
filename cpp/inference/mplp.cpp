// Dual ascent for best assignments: an upper bound of the best score that block after block only falls.
//
//   max_x Σ_i u_i(x_i) + Σ_f t_f(x_f)  ≤  Σ_i max (u_i + Σ_f λ_fi)  +  Σ_f max_{x_f} (t_f(x_f) − Σ_i λ_fi(x_i))
//
// A step takes one factor with r variables: with δ_i = u_i + Σ_{g ≠ f} λ_gi, λ_fi = −δ_i + 1/r max_{x_f \ i} (t_f + Σ_j
// δ_j), which is the best choice of its messages, the others given. States are read off the sums u_i + Σ λ.
#include <vector>

#include "inference/factors.hpp"

namespace mercer {
namespace {

class DualAscent {
 public:
  explicit DualAscent(const FlatGraph& graph)
      : graph_(graph), messages_(size_t(graph.structure().message_starts.back()), 0.0) {
    const FactorStructure& s = graph_.structure();
    sums_.assign(graph_.unary(), graph_.unary() + s.states());
    best_.assign(size_t(s.n), 0);
  }

  // One pass over all factors; the bound afterwards.
  double pass(bool forward) {
    const FactorStructure& s = graph_.structure();
    for (int64_t k = 0; k < s.m; ++k) step(forward ? k : s.m - 1 - k);
    return bound();
  }

  double bound() {
    const FactorStructure& s = graph_.structure();
    double total = graph_.constant();
    for (int64_t i = 0; i < s.n; ++i) total += top(sums_.data() + s.state_starts[size_t(i)], s.cards[size_t(i)]);
    for (int64_t f = 0; f < s.m; ++f) {
      reduced(f, [&](int64_t slot) { return messages_.data() + s.message_starts[size_t(slot)]; }, -1.0);
      total += top(table_.data(), s.table_sizes[size_t(f)]);
    }
    return total;
  }

  // The states that the sums prefer; kept if they are the best so far.
  void read_states() {
    const FactorStructure& s = graph_.structure();
    std::vector<int32_t> x(size_t(s.n));
    for (int64_t i = 0; i < s.n; ++i) {
      const double* row = sums_.data() + s.state_starts[size_t(i)];
      x[size_t(i)] = int32_t(std::max_element(row, row + s.cards[size_t(i)]) - row);
    }
    improve(x);
    const double value = graph_.score(x.data());
    if (!known_ || value > value_) {
      value_ = value;
      best_ = x;
      known_ = true;
    }
  }

  double value() const { return value_; }
  const std::vector<int32_t>& best() const { return best_; }

 private:
  static double top(const double* row, int64_t n) { return *std::max_element(row, row + n); }

  // t_f plus (or minus) a vector for each of its variables, into table_.
  template <class Of> void reduced(int64_t f, Of of, double sign) {
    const FactorStructure& s = graph_.structure();
    const int64_t size = s.table_sizes[size_t(f)];
    table_.assign(graph_.table(f), graph_.table(f) + size);
    for (int64_t slot = s.scope_starts[size_t(f)]; slot < s.scope_starts[size_t(f) + 1]; ++slot) {
      const double* row = of(slot);
      const int64_t stride = s.strides[size_t(slot)], card = s.card(slot);
      for (int64_t z = 0; z < size; ++z) table_[size_t(z)] += sign * row[(z / stride) % card];
    }
  }

  void step(int64_t f) {
    const FactorStructure& s = graph_.structure();
    const int64_t first = s.scope_starts[size_t(f)], last = s.scope_starts[size_t(f) + 1],
                  size = s.table_sizes[size_t(f)];
    const int64_t origin = s.message_starts[size_t(first)];
    rest_.resize(size_t(s.message_starts[size_t(last)] - origin));
    for (int64_t slot = first; slot < last; ++slot) {
      const double* sum = sums_.data() + s.state_starts[size_t(s.scopes[size_t(slot)])];
      const double* message = messages_.data() + s.message_starts[size_t(slot)];
      double* rest = rest_.data() + (s.message_starts[size_t(slot)] - origin);
      for (int k = 0; k < s.card(slot); ++k) rest[k] = sum[k] == kImpossible ? kImpossible : sum[k] - message[k];
    }
    reduced(f, [&](int64_t slot) { return rest_.data() + (s.message_starts[size_t(slot)] - origin); }, 1.0);
    const double share = 1.0 / double(last - first);
    for (int64_t slot = first; slot < last; ++slot) {
      const int64_t stride = s.strides[size_t(slot)], card = s.card(slot);
      maxima_.assign(size_t(card), kImpossible);
      for (int64_t z = 0; z < size; ++z) {
        double& m = maxima_[size_t((z / stride) % card)];
        m = std::max(m, table_[size_t(z)]);
      }
      double* sum = sums_.data() + s.state_starts[size_t(s.scopes[size_t(slot)])];
      double* message = messages_.data() + s.message_starts[size_t(slot)];
      const double* rest = rest_.data() + (s.message_starts[size_t(slot)] - origin);
      for (int64_t k = 0; k < card; ++k) {
        if (rest[k] == kImpossible ||
            maxima_[size_t(k)] == kImpossible) {  // a state that cannot be: no message brings it back
          sum[k] = kImpossible;
          message[k] = 0.0;
          continue;
        }
        sum[k] = share * maxima_[size_t(k)];
        message[k] = sum[k] - rest[k];
      }
    }
  }

  // One pass of conditional modes: ties between states are broken by the neighbours.
  void improve(std::vector<int32_t>& x) const {
    const FactorStructure& s = graph_.structure();
    for (int64_t i = 0; i < s.n; ++i) {
      int32_t best = x[size_t(i)];
      double top = kImpossible;
      for (int32_t k = 0; k < s.cards[size_t(i)]; ++k) {
        double total = graph_.unary()[s.state_starts[size_t(i)] + k];
        for (int64_t at = s.incident_starts[size_t(i)]; at < s.incident_starts[size_t(i) + 1]; ++at) {
          const int64_t slot = s.incident[size_t(at)], f = s.slot_factor[size_t(slot)];
          int64_t place = s.strides[size_t(slot)] * k;
          for (int64_t o = s.scope_starts[size_t(f)]; o < s.scope_starts[size_t(f) + 1]; ++o)
            if (o != slot) place += s.strides[size_t(o)] * x[size_t(s.scopes[size_t(o)])];
          total += graph_.table(f)[place];
        }
        if (total > top) {
          top = total;
          best = k;
        }
      }
      x[size_t(i)] = best;
    }
  }

  FlatGraph graph_;
  std::vector<double> messages_, sums_, table_, rest_, maxima_;
  std::vector<int32_t> best_;
  double value_ = kImpossible;
  bool known_ = false;
};

nb::tuple dual_ascent(const FlatGraph& graph, int64_t max_iter, double tol) {
  require(max_iter >= 1, "max_iter must be at least 1");
  require(tol >= 0, "tol must not be negative");
  std::vector<double> bounds, values;
  bool converged = false;
  DualAscent ascent(graph);
  for (int64_t t = 0; t < max_iter && !converged; ++t) {
    {
      nb::gil_scoped_release unlocked;
      bounds.push_back(ascent.pass(t % 2 == 0));
      ascent.read_states();
    }
    values.push_back(ascent.value());
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    const double scale = std::max(1.0, std::abs(bounds.back()));
    converged = bounds.back() - values.back() <= tol * scale ||
                (t > 0 && bounds[size_t(t) - 1] - bounds[size_t(t)] <= tol * scale) || bounds.back() == kImpossible;
  }
  return nb::make_tuple(to_numpy(std::vector<int32_t>(ascent.best())), to_numpy(std::move(bounds)),
                        to_numpy(std::move(values)), converged);
}

}  // namespace

void bind_dual(nb::module_& m) {
  m.def("dual_ascent", &dual_ascent, "graph"_a, "max_iter"_a, "tol"_a,
        "(best states, bounds, values, converged) of dual ascent on a factor graph.");
}

}  // namespace mercer
