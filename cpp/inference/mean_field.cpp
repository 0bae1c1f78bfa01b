// Mean field and iterated conditional modes: one variable, or one chain of them, at a time, given all others.
//
// q = Π_i q_i, or a product of chains; each part takes its best form given the others, so the bound
//   constant + Σ_i ⟨unary_i, q_i⟩ + Σ_f E_q[table_f] + H(q) ≤ log Z
// never decreases. The modes do the same with single states instead of distributions.
#include "inference/factors.hpp"

namespace mercer {
namespace {

// ---------------------------------------------------------------------------------------------- mean field

// Σ_{x_f \ x_i} table_f(x_f) Π_{j≠i} q_j(x_j), added to out(x_i).
void add_expected(const FlatGraph& graph, int64_t slot, const double* q, double* out) {
  const FactorStructure& s = graph.structure();
  const int64_t f = s.slot_factor[size_t(slot)], first = s.scope_starts[size_t(f)],
                stop = s.scope_starts[size_t(f) + 1];
  const double* table = graph.table(f);
  const int card = s.card(slot);
  if (stop - first == 2) {
    const int64_t other = first + first + 1 - slot, across = s.card(other);
    const double* p = q + s.state_starts[size_t(s.scopes[size_t(other)])];
    for (int x = 0; x < card; ++x) {
      const double* entry = table + x * s.strides[size_t(slot)];
      double total = 0.0;
      for (int64_t y = 0; y < across; ++y) total += entry[y * s.strides[size_t(other)]] * p[y];
      out[x] += total;
    }
    return;
  }
  for (int64_t e = 0; e < s.table_sizes[size_t(f)]; ++e) {
    double value = table[e];
    for (int64_t other = first; other < stop; ++other)
      if (other != slot)
        value *= q[s.state_starts[size_t(s.scopes[size_t(other)])] + e / s.strides[size_t(other)] % s.card(other)];
    out[e / s.strides[size_t(slot)] % card] += value;
  }
}

// Σ_{x_f} table_f(x_f) Π q.
double expected_table(const FlatGraph& graph, int64_t f, const double* q, std::vector<double>& scratch) {
  const FactorStructure& s = graph.structure();
  const int64_t slot = s.scope_starts[size_t(f)];
  scratch.assign(size_t(s.card(slot)), 0.0);
  add_expected(graph, slot, q, scratch.data());
  return expectation(q + s.state_starts[size_t(s.scopes[size_t(slot)])], scratch.data(), s.card(slot));
}

void softmax(double* x, int n) {
  const double norm = log_sum(x, n);
  if (norm == kImpossible) throw Impossible();
  for (int k = 0; k < n; ++k) x[k] = std::exp(x[k] - norm);
}

struct MeanField {
  std::vector<double> q, bounds, residuals;
  bool converged = false;
};

void check_q(const FlatGraph& graph, const In1<double>& q0) {
  const FactorStructure& s = graph.structure();
  require(int64_t(q0.shape(0)) == s.states(), "q must hold a probability for every state");
  for (int64_t k = 0; k < s.states(); ++k)
    require(q0.data()[k] >= 0.0 && q0.data()[k] <= 1.0, "q must hold probabilities");
  require(all_finite(graph.tables(), s.table_entries),
          "mean field needs positive potentials in factors of two variables or more");
}

// One variable after another: the bound never decreases.
MeanField naive_mean_field(const FlatGraph& graph, const double* q0, int64_t max_iter, double tol) {
  const FactorStructure& s = graph.structure();
  MeanField done;
  done.q.assign(q0, q0 + s.states());
  std::vector<double> next(size_t(s.most_states)), scratch;
  int64_t since = 0;
  for (int64_t sweep = 0; sweep < max_iter && !done.converged; ++sweep) {
    double change = 0.0;
    for (int64_t v = 0; v < s.n; ++v) {
      const int card = s.cards[size_t(v)];
      const int64_t at = s.state_starts[size_t(v)];
      std::copy(graph.unary() + at, graph.unary() + at + card, next.data());
      for (int64_t k = s.incident_starts[size_t(v)]; k < s.incident_starts[size_t(v) + 1]; ++k)
        add_expected(graph, s.incident[size_t(k)], done.q.data(), next.data());
      softmax(next.data(), card);
      for (int x = 0; x < card; ++x) {
        change = std::max(change, std::abs(next[size_t(x)] - done.q[size_t(at + x)]));
        done.q[size_t(at + x)] = next[size_t(x)];
      }
    }
    double bound = graph.constant();
    for (int64_t v = 0; v < s.n; ++v) {
      const double* p = done.q.data() + s.state_starts[size_t(v)];
      bound += expectation(p, graph.unary() + s.state_starts[size_t(v)], s.cards[size_t(v)]) +
               entropy(p, s.cards[size_t(v)]);
    }
    for (int64_t f = 0; f < s.m; ++f) bound += expected_table(graph, f, done.q.data(), scratch);
    done.bounds.push_back(bound);
    done.residuals.push_back(change);
    if ((since += s.slots()) > kSlotsBetweenSignals) check_signals(), since = 0;
    done.converged = change <= tol;
  }
  return done;
}

// Chains of variables: q is a product of chains, each with its exact distribution given the expectations of all others.
struct ChainField {
  const FlatGraph& graph;
  const FactorStructure& s;
  const int64_t* starts;
  int64_t n_chains;
  const int32_t* variables;
  std::vector<int64_t> place;            // of each variable in `variables`
  std::vector<int32_t> chain;            // of each variable
  std::vector<uint8_t> inside;           // factor: lies on a link
  std::vector<std::vector<int64_t>> on;  // factors on the link from place k to k + 1
  std::vector<int64_t> link_starts;      // joint probabilities of the link, by place
  std::vector<double> links;

  ChainField(const FlatGraph& g, In1<int64_t> chain_starts, In1<int32_t> chain_variables)
      : graph(g),
        s(g.structure()),
        starts(chain_starts.data()),
        n_chains(int64_t(chain_starts.shape(0)) - 1),
        variables(chain_variables.data()),
        place(size_t(s.n), -1),
        chain(size_t(s.n)),
        inside(size_t(s.m), 0),
        on(size_t(s.n)),
        link_starts(size_t(s.n) + 1, 0) {
    require(n_chains >= 0 && starts[0] == 0 && starts[n_chains] == s.n && int64_t(chain_variables.shape(0)) == s.n,
            "chains must hold every variable once");
    for (int64_t c = 0; c < n_chains; ++c) {
      require(starts[c] < starts[c + 1], "a chain must not be empty");
      for (int64_t k = starts[c]; k < starts[c + 1]; ++k) {
        const int32_t v = variables[k];
        require(v >= 0 && v < s.n && place[size_t(v)] < 0, "chains must hold every variable once");
        place[size_t(v)] = k;
        chain[size_t(v)] = int32_t(c);
      }
    }
    for (int64_t f = 0; f < s.m; ++f) set_inside(f);
    for (int64_t k = 0; k < s.n; ++k) {
      const bool linked = k + 1 < s.n && chain[size_t(variables[k])] == chain[size_t(variables[k + 1])];
      link_starts[size_t(k) + 1] =
          link_starts[size_t(k)] +
          (linked ? int64_t(s.cards[size_t(variables[k])]) * s.cards[size_t(variables[k + 1])] : 0);
    }
    links.assign(size_t(link_starts[size_t(s.n)]), 0.0);
  }

  void set_inside(int64_t f) {
    const int64_t first = s.scope_starts[size_t(f)], stop = s.scope_starts[size_t(f) + 1];
    for (int64_t a = first; a < stop; ++a)
      for (int64_t b = a + 1; b < stop; ++b) {
        const int32_t u = s.scopes[size_t(a)], v = s.scopes[size_t(b)];
        if (chain[size_t(u)] != chain[size_t(v)]) continue;
        const int64_t gap = place[size_t(u)] - place[size_t(v)];
        require(stop - first == 2 && (gap == 1 || gap == -1),
                "a factor joins variables of one chain that are not neighbours in it, or more than two variables with "
                "two of one chain");
        inside[size_t(f)] = 1;
        on[size_t(std::min(place[size_t(u)], place[size_t(v)]))].push_back(f);
      }
  }
  // Σ of the tables on the link from place k: rows are states of the first variable.
  void link_table(int64_t k, double* table) const {
    const int rows = s.cards[size_t(variables[k])], columns = s.cards[size_t(variables[k + 1])];
    std::fill(table, table + rows * columns, 0.0);
    for (int64_t f : on[size_t(k)]) {
      const bool straight = s.scopes[size_t(s.scope_starts[size_t(f)])] == variables[k];
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j)
          table[i * columns + j] += graph.table(f)[straight ? i * columns + j : j * rows + i];
    }
  }

  // The exact distribution of a chain: forwards sums, then probabilities backwards.
  double update(int64_t c, std::vector<double>& q) {
    const int64_t first = starts[c], stop = starts[c + 1];
    std::vector<std::vector<double>> forward(size_t(stop - first));
    std::vector<double> table;
    for (int64_t k = first; k < stop; ++k) {
      const int32_t v = variables[k];
      const int card = s.cards[size_t(v)];
      std::vector<double>& score = forward[size_t(k - first)];
      score.assign(graph.unary() + s.state_starts[size_t(v)], graph.unary() + s.state_starts[size_t(v)] + card);
      for (int64_t i = s.incident_starts[size_t(v)]; i < s.incident_starts[size_t(v) + 1]; ++i)
        if (!inside[size_t(s.slot_factor[size_t(s.incident[size_t(i)])])])
          add_expected(graph, s.incident[size_t(i)], q.data(), score.data());
      if (k == first) continue;
      const std::vector<double>& before = forward[size_t(k - 1 - first)];
      table.resize(before.size() * size_t(card));
      link_table(k - 1, table.data());
      std::vector<double> column(before.size());
      for (int j = 0; j < card; ++j) {
        for (size_t i = 0; i < before.size(); ++i) column[i] = before[i] + table[i * size_t(card) + size_t(j)];
        score[size_t(j)] += log_sum(column.data(), int(column.size()));
      }
    }
    double change = 0.0;
    for (int64_t k = stop - 1; k >= first; --k) {
      const int32_t v = variables[k];
      const int card = s.cards[size_t(v)];
      std::vector<double> next(size_t(card), 0.0);
      if (k == stop - 1) {
        next = forward[size_t(k - first)];
        softmax(next.data(), card);
      } else {
        back(k, forward[size_t(k - first)], q, next);
      }
      double* p = q.data() + s.state_starts[size_t(v)];
      for (int x = 0; x < card; ++x)
        change = std::max(change, std::abs(next[size_t(x)] - p[x])), p[x] = next[size_t(x)];
    }
    return change;
  }
  // p(x_k, x_{k+1}) = p(x_k | x_{k+1}) q(x_{k+1}), where the first ∝ exp(forward(x_k) + table).
  void back(int64_t k, const std::vector<double>& forward, const std::vector<double>& q, std::vector<double>& next) {
    const int rows = int(forward.size()), columns = s.cards[size_t(variables[k + 1])];
    const double* after = q.data() + s.state_starts[size_t(variables[k + 1])];
    double* joint = links.data() + link_starts[size_t(k)];
    link_table(k, joint);
    std::vector<double> column(size_t(rows), 0.0);
    for (int j = 0; j < columns; ++j) {
      for (int i = 0; i < rows; ++i) column[size_t(i)] = forward[size_t(i)] + joint[i * columns + j];
      if (after[j] > 0.0) softmax(column.data(), rows);
      for (int i = 0; i < rows; ++i) {
        joint[i * columns + j] = after[j] > 0.0 ? column[size_t(i)] * after[j] : 0.0;
        next[size_t(i)] += joint[i * columns + j];
      }
    }
  }
  double bound(const std::vector<double>& q, std::vector<double>& scratch) const {
    double total = graph.constant();
    std::vector<double> table;
    for (int64_t k = 0; k < s.n; ++k) {
      const int32_t v = variables[k];
      const double* p = q.data() + s.state_starts[size_t(v)];
      const int card = s.cards[size_t(v)];
      total += expectation(p, graph.unary() + s.state_starts[size_t(v)], card);
      const int64_t size = link_starts[size_t(k) + 1] - link_starts[size_t(k)];
      const bool has_before = k > starts[chain[size_t(v)]];
      if (size) {
        table.resize(size_t(size));
        link_table(k, table.data());
        const double* joint = links.data() + link_starts[size_t(k)];
        total += expectation(joint, table.data(), size) + entropy(joint, size);
        if (has_before) total -= entropy(p, card);
      } else if (!has_before) {
        total += entropy(p, card);
      }
    }
    for (int64_t f = 0; f < s.m; ++f)
      if (!inside[size_t(f)]) total += expected_table(graph, f, q.data(), scratch);
    return total;
  }
};

nb::tuple given_field(MeanField&& done) {
  return nb::make_tuple(to_numpy(std::move(done.q)), to_numpy(std::move(done.bounds)),
                        to_numpy(std::move(done.residuals)), done.converged);
}

nb::object mean_field(const FlatGraph& graph, In1<double> q0, int64_t max_iter, double tol) {
  check_q(graph, q0);
  require(max_iter >= 1 && tol >= 0.0, "max_iter must be at least 1, tol at least 0");
  MeanField done;
  try {
    nb::gil_scoped_release free;
    done = naive_mean_field(graph, q0.data(), max_iter, tol);
  } catch (const Impossible&) { return nb::none(); }
  return given_field(std::move(done));
}

nb::object chain_mean_field(const FlatGraph& graph, In1<double> q0, In1<int64_t> starts, In1<int32_t> variables,
                            int64_t max_iter, double tol) {
  check_q(graph, q0);
  require(max_iter >= 1 && tol >= 0.0, "max_iter must be at least 1, tol at least 0");
  require(starts.shape(0) >= 1, "chains must hold every variable once");
  MeanField done;
  try {
    ChainField field(graph, starts, variables);
    nb::gil_scoped_release free;
    done.q.assign(q0.data(), q0.data() + q0.shape(0));
    std::vector<double> scratch;
    for (int64_t sweep = 0; sweep < max_iter && !done.converged; ++sweep) {
      double change = 0.0;
      for (int64_t c = 0; c < field.n_chains; ++c) change = std::max(change, field.update(c, done.q));
      done.bounds.push_back(field.bound(done.q, scratch));
      done.residuals.push_back(change);
      check_signals();
      done.converged = change <= tol;
    }
  } catch (const Impossible&) { return nb::none(); }
  return given_field(std::move(done));
}

// ------------------------------------------------------------------------------------------ iterated conditional modes

// (states, scores after each sweep, converged). A variable moves only to a state that is better.
nb::tuple icm(const FlatGraph& graph, In1<int32_t> start, int64_t max_iter) {
  const FactorStructure& s = graph.structure();
  check_assignment(s, start.data(), int64_t(start.shape(0)), "start must give every variable one of its states");
  require(max_iter >= 1, "max_iter must be at least 1");
  std::vector<int32_t> x(start.data(), start.data() + s.n);
  std::vector<double> scores, score(size_t(s.most_states));
  bool converged = false;
  {
    nb::gil_scoped_release free;
    int64_t since = 0;
    for (int64_t sweep = 0; sweep < max_iter && !converged; ++sweep) {
      converged = true;
      for (int64_t v = 0; v < s.n; ++v) {
        const int card = s.cards[size_t(v)];
        std::copy(graph.unary() + s.state_starts[size_t(v)], graph.unary() + s.state_starts[size_t(v)] + card,
                  score.data());
        for (int64_t k = s.incident_starts[size_t(v)]; k < s.incident_starts[size_t(v) + 1]; ++k) {
          const int64_t slot = s.incident[size_t(k)], f = s.slot_factor[size_t(slot)];
          const double* entry = graph.table(f);
          for (int64_t other = s.scope_starts[size_t(f)]; other < s.scope_starts[size_t(f) + 1]; ++other)
            if (other != slot) entry += s.strides[size_t(other)] * x[size_t(s.scopes[size_t(other)])];
          for (int k2 = 0; k2 < card; ++k2) score[size_t(k2)] += entry[k2 * s.strides[size_t(slot)]];
        }
        const int32_t best = int32_t(std::max_element(score.begin(), score.begin() + card) - score.begin());
        if (score[size_t(best)] > score[size_t(x[size_t(v)])]) x[size_t(v)] = best, converged = false;
      }
      scores.push_back(graph.score(x.data()));
      if ((since += s.slots()) > kSlotsBetweenSignals) check_signals(), since = 0;
    }
  }
  return nb::make_tuple(to_numpy(std::move(x)), to_numpy(std::move(scores)), converged);
}

}  // namespace

void bind_mean_field(nb::module_& m) {
  m.def("mean_field", &mean_field, "graph"_a, "q"_a, "max_iter"_a, "tol"_a);
  m.def("chain_mean_field", &chain_mean_field, "graph"_a, "q"_a, "starts"_a, "variables"_a, "max_iter"_a, "tol"_a);
  m.def("icm", &icm, "graph"_a, "start"_a, "max_iter"_a);
}

}  // namespace mercer
