// Messages between factors and variables: two passes over forests, and sweeps over graphs with cycles.
//
// A message m_{f→i}(x_i) goes from a factor to a variable at one of its slots. With weights ρ_f (1 for belief
// propagation, the probability of appearing in a random forest for the tree-reweighted kind)
//   h_{i→f}(x_i) = unary_i(x_i) + Σ_{g∋i} ρ_g m_{g→i}(x_i) − m_{f→i}(x_i)
//   m_{f→i}(x_i) = ⊕_{x_f \ x_i} [ table_f(x_f) / ρ_f + Σ_{j∈f, j≠i} h_{j→f}(x_j) ],      ⊕ = log Σ exp, or max
//   b_i(x_i) ∝ exp(unary_i + Σ_g ρ_g m_{g→i}),      b_f(x_f) ∝ exp(table_f / ρ_f + Σ_{i∈f} h_{i→f}).
// Messages are normalised. States that are impossible are exact −inf: they are counted beside the sum, so that a
// message can be taken out of it again.
#include "inference/factor_loops.hpp"
#include "inference/factors.hpp"

#include <queue>
#include <random>

namespace mercer {
namespace {

class Messages {
 public:
  Messages(const FlatGraph& graph, const double* rho, bool maximise)
      : graph_(graph), s_(graph.structure()), rho_(rho), maximise_(maximise) {
    m.assign(size_t(s_.message_starts[size_t(s_.slots())]), 0.0);
    int64_t most = 0;
    for (int64_t f = 0; f < s_.m; ++f)
      most = std::max(most, s_.message_starts[size_t(s_.scope_starts[size_t(f) + 1])] -
                                s_.message_starts[size_t(s_.scope_starts[size_t(f)])]);
    h_.resize(size_t(most));
    out_.resize(size_t(most));
    top_.resize(size_t(s_.most_states));
    accumulate();
  }

  std::vector<double> m;  // logarithms, normalised: to 1 for sums, to a largest value of 1 for maxima

  const FactorStructure& structure() const { return s_; }
  double rho(int64_t f) const { return rho_ ? rho_[f] : 1.0; }

  // Messages that say nothing, normalised: where sweeps begin.
  void start() {
    if (!maximise_)
      for (int64_t slot = 0; slot < s_.slots(); ++slot)
        std::fill(m.data() + s_.message_starts[size_t(slot)], m.data() + s_.message_starts[size_t(slot) + 1],
                  -std::log(double(s_.card(slot))));
    accumulate();
  }
  // Messages that an earlier run with other potentials ended with.
  void start(In1<double> given) {
    require(given.shape(0) == m.size(), "start must hold the messages of this graph");
    for (size_t k = 0; k < m.size(); ++k)
      require(given.data()[k] <= 1e-9 && std::isfinite(given.data()[k]),
              "start must hold logarithms of normalised messages");
    m.assign(given.data(), given.data() + given.shape(0));
    accumulate();
  }
  // Whether the product of all messages to a variable may be below exp(bound).
  bool below(double bound) const {
    std::vector<double> low(s_.state_starts.size(), 0.0);
    for (int64_t slot = 0; slot < s_.slots(); ++slot) {
      const double* message = m.data() + s_.message_starts[size_t(slot)];
      low[size_t(s_.scopes[size_t(slot)])] += *std::min_element(message, message + s_.card(slot));
    }
    return std::any_of(low.begin(), low.end(), [&](double x) { return x < bound; });
  }
  // The sums over all messages to each state, from scratch.
  void accumulate() {
    sum_.assign(graph_.unary(), graph_.unary() + s_.states());
    zeros_.assign(size_t(s_.states()), 0);
    for (size_t x = 0; x < sum_.size(); ++x)
      if (sum_[x] == kImpossible) sum_[x] = 0.0, zeros_[x] = 1;
    for (int64_t slot = 0; slot < s_.slots(); ++slot) add(slot, m.data() + s_.message_starts[size_t(slot)], 1);
  }
  void replace(int64_t slot, const double* message) {
    double* old = m.data() + s_.message_starts[size_t(slot)];
    add(slot, old, -1);
    std::copy(message, message + s_.card(slot), old);
    add(slot, old, 1);
  }

  // h_{i→f} at a slot.
  void incoming(int64_t slot, double* h) const {
    const int64_t at = s_.state_starts[size_t(s_.scopes[size_t(slot)])];
    const double* own = m.data() + s_.message_starts[size_t(slot)];
    const int card = s_.card(slot);
    for (int x = 0; x < card; ++x) {
      const bool zero = own[x] == kImpossible;
      const int32_t others = zeros_[size_t(at + x)] - (zero ? 1 : 0);
      h[x] = others > 0 ? kImpossible : sum_[size_t(at + x)] - (zero ? 0.0 : own[x]);
    }
  }

  // The message to one slot of f, normalised; the logarithm of what it was divided by. h: incoming of all slots of f.
  double outgoing(int64_t f, int64_t slot, const double* h, double* out) {
    const int card = s_.card(slot);
    if (s_.arity(f) == 2)
      pair_message(f, slot, h, out);
    else
      general_message(f, slot, h, out);
    double norm = maximise_ ? *std::max_element(out, out + card) : log_sum(out, card);
    if (norm == kImpossible) throw Impossible();
    for (int x = 0; x < card; ++x) out[x] -= norm;
    return norm;
  }

  // All messages of a factor into out(); the largest change of a probability.
  double update(int64_t f, double damping) {
    const int64_t first = s_.scope_starts[size_t(f)], stop = s_.scope_starts[size_t(f) + 1],
                  base = s_.message_starts[size_t(first)];
    for (int64_t slot = first; slot < stop; ++slot)
      incoming(slot, h_.data() + (s_.message_starts[size_t(slot)] - base));
    double change = 0.0;
    for (int64_t slot = first; slot < stop; ++slot) {
      double* out = out_.data() + (s_.message_starts[size_t(slot)] - base);
      outgoing(f, slot, h_.data(), out);
      const double* old = m.data() + s_.message_starts[size_t(slot)];
      for (int x = 0; x < s_.card(slot); ++x) {
        const double a = std::exp(out[x]), b = std::exp(old[x]);
        // What is impossible stays so, and is not approached by halves.
        if (damping > 0.0 && out[x] != kImpossible) out[x] = std::log((1.0 - damping) * a + damping * b);
        change = std::max(change, std::abs(a - b));
      }
    }
    return change;
  }
  const double* out() const { return out_.data(); }
  void apply(int64_t f) {
    const int64_t first = s_.scope_starts[size_t(f)], base = s_.message_starts[size_t(first)];
    for (int64_t slot = first; slot < s_.scope_starts[size_t(f) + 1]; ++slot)
      replace(slot, out_.data() + (s_.message_starts[size_t(slot)] - base));
  }

  // b_i, normalised to 1.
  void belief(int64_t v, double* b) const {
    const int64_t at = s_.state_starts[size_t(v)];
    const int card = s_.cards[size_t(v)];
    for (int x = 0; x < card; ++x) b[x] = zeros_[size_t(at + x)] > 0 ? kImpossible : sum_[size_t(at + x)];
    normalise(b, card);
  }
  // b_f, normalised to 1.
  void factor_belief(int64_t f, double* b) {
    const int64_t first = s_.scope_starts[size_t(f)], stop = s_.scope_starts[size_t(f) + 1],
                  base = s_.message_starts[size_t(first)];
    for (int64_t slot = first; slot < stop; ++slot)
      incoming(slot, h_.data() + (s_.message_starts[size_t(slot)] - base));
    const double* table = graph_.table(f);
    const double scale = 1.0 / rho(f);
    if (stop - first == 2) {
      const int rows = s_.card(first), columns = s_.card(first + 1);
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j)
          b[i * columns + j] = table[i * columns + j] * scale + h_[size_t(i)] + h_[size_t(rows + j)];
      return normalise(b, s_.table_sizes[size_t(f)]);
    }
    for (int64_t e = 0; e < s_.table_sizes[size_t(f)]; ++e) {
      b[e] = table[e] * scale;
      for (int64_t slot = first; slot < stop; ++slot)
        b[e] += h_[size_t(s_.message_starts[size_t(slot)] - base + e / s_.strides[size_t(slot)] % s_.card(slot))];
    }
    normalise(b, s_.table_sizes[size_t(f)]);
  }

  // The best states, chosen one variable after another: those chosen before are fixed in the factors around (ties are
  // broken by the order). Exact on a forest if the order goes from the roots.
  std::vector<int32_t> decode(const std::vector<int32_t>& order) {
    std::vector<int32_t> x(size_t(s_.n), -1);
    std::vector<double> score, out(size_t(s_.most_states));
    for (int32_t v : order) {
      const int card = s_.cards[size_t(v)];
      score.assign(graph_.unary() + s_.state_starts[size_t(v)], graph_.unary() + s_.state_starts[size_t(v)] + card);
      for (int64_t k = s_.incident_starts[size_t(v)]; k < s_.incident_starts[size_t(v) + 1]; ++k)
        add_clamped(s_.incident[size_t(k)], x, score.data(), out.data());
      x[size_t(v)] = int32_t(std::max_element(score.begin(), score.end()) - score.begin());
    }
    return x;
  }

 private:
  void add(int64_t slot, const double* message, int sign) {
    const int64_t at = s_.state_starts[size_t(s_.scopes[size_t(slot)])];
    const double weight = rho(s_.slot_factor[size_t(slot)]) * sign;
    for (int x = 0; x < s_.card(slot); ++x) {
      if (message[x] == kImpossible)
        zeros_[size_t(at + x)] += sign;
      else
        sum_[size_t(at + x)] += weight * message[x];
    }
  }
  template <class Size> static void normalise(double* b, Size n) {
    double top = kImpossible, total = 0.0;
    for (Size k = 0; k < n; ++k) top = std::max(top, b[k]);
    if (top == kImpossible) throw Impossible();
    for (Size k = 0; k < n; ++k) total += b[k] = std::exp(b[k] - top);
    for (Size k = 0; k < n; ++k) b[k] /= total;
  }

  void pair_message(int64_t f, int64_t slot, const double* h, double* out) {
    const int64_t first = s_.scope_starts[size_t(f)];
    const int rows = s_.card(first), columns = s_.card(first + 1);
    const bool to_rows = slot == first;
    const double *table = graph_.table(f), *other = to_rows ? h + rows : h, scale = 1.0 / rho(f);
    const int card = to_rows ? rows : columns, across = to_rows ? columns : rows;
    const int64_t step = to_rows ? 1 : columns, move = to_rows ? columns : 1;
    for (int x = 0; x < card; ++x) {
      const double* entry = table + x * move;
      double top = kImpossible;
      for (int y = 0; y < across; ++y) top = std::max(top, entry[y * step] * scale + other[y]);
      if (maximise_ || top == kImpossible) {
        out[x] = top;
        continue;
      }
      double total = 0.0;
      for (int y = 0; y < across; ++y) total += std::exp(entry[y * step] * scale + other[y] - top);
      out[x] = top + std::log(total);
    }
  }

  void general_message(int64_t f, int64_t slot, const double* h, double* out) {
    const int64_t first = s_.scope_starts[size_t(f)], stop = s_.scope_starts[size_t(f) + 1],
                  base = s_.message_starts[size_t(first)];
    const double* table = graph_.table(f);
    const double scale = 1.0 / rho(f);
    const int card = s_.card(slot);
    auto value = [&](int64_t e) {
      double total = table[e] * scale;
      for (int64_t other = first; other < stop; ++other)
        if (other != slot)
          total += h[s_.message_starts[size_t(other)] - base + e / s_.strides[size_t(other)] % s_.card(other)];
      return total;
    };
    const int64_t stride = s_.strides[size_t(slot)], size = s_.table_sizes[size_t(f)];
    double* top = maximise_ ? out : top_.data();
    std::fill(top, top + card, kImpossible);
    for (int64_t e = 0; e < size; ++e) top[e / stride % card] = std::max(top[e / stride % card], value(e));
    if (maximise_) return;
    std::fill(out, out + card, 0.0);
    for (int64_t e = 0; e < size; ++e) {
      const int64_t x = e / stride % card;
      if (top[x] != kImpossible) out[x] += std::exp(value(e) - top[x]);
    }
    for (int x = 0; x < card; ++x) out[x] = out[x] > 0.0 ? top[x] + std::log(out[x]) : kImpossible;
  }

  void add_clamped(int64_t slot, const std::vector<int32_t>& x, double* score, double* out) {
    const int64_t f = s_.slot_factor[size_t(slot)], first = s_.scope_starts[size_t(f)],
                  base = s_.message_starts[size_t(first)];
    for (int64_t other = first; other < s_.scope_starts[size_t(f) + 1]; ++other) {
      double* h = h_.data() + (s_.message_starts[size_t(other)] - base);
      const int32_t fixed = x[size_t(s_.scopes[size_t(other)])];
      if (fixed < 0) {
        incoming(other, h);
      } else {
        std::fill(h, h + s_.card(other), kImpossible);
        h[fixed] = 0.0;
      }
    }
    if (s_.arity(f) == 2)
      pair_message(f, slot, h_.data(), out);
    else
      general_message(f, slot, h_.data(), out);
    for (int k = 0; k < s_.card(slot); ++k) score[k] += rho(f) * out[k];
  }

  const FlatGraph& graph_;
  const FactorStructure& s_;
  const double* rho_;
  bool maximise_;
  std::vector<double> sum_;  // Σ of the finite terms of each state
  std::vector<int32_t> zeros_;
  std::vector<double> h_, out_, top_;
};

// Variables from the roots on, and the factors in the order in which they are met, each with the slot that met it.
struct Discovery {
  std::vector<int32_t> variables;
  std::vector<int64_t> slots;
  explicit Discovery(const FactorStructure& s) {
    std::vector<uint8_t> seen(size_t(s.n), 0), met(size_t(s.m), 0);
    for (int32_t root = 0; root < s.n; ++root) {
      if (seen[size_t(root)]) continue;
      seen[size_t(root)] = 1;
      variables.push_back(root);
      for (size_t next = variables.size() - 1; next < variables.size(); ++next) {
        const int32_t v = variables[next];
        for (int64_t k = s.incident_starts[size_t(v)]; k < s.incident_starts[size_t(v) + 1]; ++k) {
          const int64_t slot = s.incident[size_t(k)], f = s.slot_factor[size_t(slot)];
          if (met[size_t(f)]) continue;
          met[size_t(f)] = 1;
          slots.push_back(slot);
          for (int64_t other = s.scope_starts[size_t(f)]; other < s.scope_starts[size_t(f) + 1]; ++other) {
            const int32_t u = s.scopes[size_t(other)];
            if (!seen[size_t(u)]) seen[size_t(u)] = 1, variables.push_back(u);
          }
        }
      }
    }
  }
};

// Two passes over a forest: to the roots, and back. Gives the sum of what messages to the roots were divided by.
double two_passes(const FlatGraph& graph, Messages& messages, const Discovery& found) {
  const FactorStructure& s = messages.structure();
  std::vector<double> h, out(size_t(s.most_states));
  double total = graph.constant();
  auto incoming = [&](int64_t f, int64_t except) {
    const int64_t first = s.scope_starts[size_t(f)], stop = s.scope_starts[size_t(f) + 1],
                  base = s.message_starts[size_t(first)];
    h.resize(size_t(s.message_starts[size_t(stop)] - base));
    for (int64_t slot = first; slot < stop; ++slot)
      if (slot != except) messages.incoming(slot, h.data() + (s.message_starts[size_t(slot)] - base));
  };
  for (size_t k = found.slots.size(); k-- > 0;) {
    const int64_t slot = found.slots[k], f = s.slot_factor[size_t(slot)];
    incoming(f, slot);
    total += messages.outgoing(f, slot, h.data(), out.data());
    messages.replace(slot, out.data());
  }
  for (const int64_t up : found.slots) {
    const int64_t f = s.slot_factor[size_t(up)];
    incoming(f, -1);
    for (int64_t slot = s.scope_starts[size_t(f)]; slot < s.scope_starts[size_t(f) + 1]; ++slot) {
      if (slot == up) continue;
      messages.outgoing(f, slot, h.data(), out.data());
      messages.replace(slot, out.data());
    }
  }
  return total;
}

std::vector<double> all_beliefs(const Messages& messages) {
  const FactorStructure& s = messages.structure();
  std::vector<double> b(size_t(s.states()));
  for (int64_t v = 0; v < s.n; ++v) messages.belief(v, b.data() + s.state_starts[size_t(v)]);
  return b;
}

std::vector<double> all_factor_beliefs(Messages& messages) {
  const FactorStructure& s = messages.structure();
  std::vector<double> b(size_t(s.belief_starts[size_t(s.m)]));
  for (int64_t f = 0; f < s.m; ++f) messages.factor_belief(f, b.data() + s.belief_starts[size_t(f)]);
  return b;
}

// Bethe's free energy with its sign turned, an estimate of log Z; with weights ρ the tree-reweighted bound of it:
//   constant + Σ_i ⟨unary_i, b_i⟩ + Σ_f ⟨table_f, b_f⟩ + Σ_i (1 − Σ_{f∋i} ρ_f) H(b_i) + Σ_f ρ_f H(b_f)
double free_energy(const FlatGraph& graph, Messages& messages, const std::vector<double>& beliefs) {
  const FactorStructure& s = graph.structure();
  std::vector<double> joint;
  double total = graph.constant();
  for (int64_t v = 0; v < s.n; ++v) {
    const double* b = beliefs.data() + s.state_starts[size_t(v)];
    double weight = 1.0;
    for (int64_t k = s.incident_starts[size_t(v)]; k < s.incident_starts[size_t(v) + 1]; ++k)
      weight -= messages.rho(s.slot_factor[size_t(s.incident[size_t(k)])]);
    total += expectation(b, graph.unary() + s.state_starts[size_t(v)], s.cards[size_t(v)]) +
             weight * entropy(b, s.cards[size_t(v)]);
  }
  for (int64_t f = 0; f < s.m; ++f) {
    joint.resize(size_t(s.table_sizes[size_t(f)]));
    messages.factor_belief(f, joint.data());
    total += expectation(joint.data(), graph.table(f), s.table_sizes[size_t(f)]) +
             messages.rho(f) * entropy(joint.data(), s.table_sizes[size_t(f)]);
  }
  return total;
}

// ---------------------------------------------------------------------------------------------- schedules

struct Progress {
  std::vector<double> residuals;
  bool converged = false;
};

// Every message from those of the last sweep.
void synchronous_sweeps(Messages& messages, int64_t max_iter, double tol, double damping, Progress& progress) {
  const FactorStructure& s = messages.structure();
  std::vector<double> next(messages.m.size());
  int64_t since = 0;
  for (int64_t sweep = 0; sweep < max_iter; ++sweep) {
    double change = 0.0;
    for (int64_t f = 0; f < s.m; ++f) {
      change = std::max(change, messages.update(f, damping));
      const int64_t a = s.message_starts[size_t(s.scope_starts[size_t(f)])],
                    b = s.message_starts[size_t(s.scope_starts[size_t(f) + 1])];
      std::copy(messages.out(), messages.out() + (b - a), next.data() + a);
    }
    messages.m.swap(next);
    messages.accumulate();
    progress.residuals.push_back(change);
    if ((since += s.slots()) > kSlotsBetweenSignals) check_signals(), since = 0;
    if ((progress.converged = change <= tol)) return;
  }
}

// Factors in a random order, each from the newest messages.
void random_sweeps(Messages& messages, int64_t max_iter, double tol, double damping, uint64_t seed,
                   Progress& progress) {
  const FactorStructure& s = messages.structure();
  std::vector<int32_t> order(size_t(s.m));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  int64_t since = 0;
  for (int64_t sweep = 0; sweep < max_iter; ++sweep) {
    for (size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[size_t(random() % k)]);
    double change = 0.0;
    for (int32_t f : order) {
      change = std::max(change, messages.update(f, damping));
      messages.apply(f);
    }
    messages.accumulate();  // no drift of sums that were changed many times
    progress.residuals.push_back(change);
    if ((since += s.slots()) > kSlotsBetweenSignals) check_signals(), since = 0;
    if ((progress.converged = change <= tol)) return;
  }
}

// Always the factor whose messages would change most; as many updates as there are factors count as a sweep.
void residual_sweeps(Messages& messages, int64_t max_iter, double tol, double damping, Progress& progress) {
  const FactorStructure& s = messages.structure();
  using Entry = std::pair<double, int32_t>;
  std::priority_queue<Entry> queue;
  std::vector<double> current(size_t(s.m), -1.0);
  auto look = [&](int32_t f) {
    const double change = messages.update(f, damping);
    if (change == current[size_t(f)]) return;
    current[size_t(f)] = change;
    if (change > tol) queue.emplace(change, f);
  };
  for (int32_t f = 0; f < s.m; ++f) look(f);
  int64_t since = 0;
  for (int64_t sweep = 0; sweep < max_iter; ++sweep) {
    for (int64_t k = 0; k < s.m && !queue.empty();) {
      const auto [change, f] = queue.top();
      queue.pop();
      if (change != current[size_t(f)]) continue;
      ++k;
      messages.update(f, damping);
      messages.apply(f);
      current[size_t(f)] = -1.0;
      look(f);
      for (int64_t slot = s.scope_starts[size_t(f)]; slot < s.scope_starts[size_t(f) + 1]; ++slot) {
        const int32_t v = s.scopes[size_t(slot)];
        for (int64_t i = s.incident_starts[size_t(v)]; i < s.incident_starts[size_t(v) + 1]; ++i)
          if (s.slot_factor[size_t(s.incident[size_t(i)])] != f) look(s.slot_factor[size_t(s.incident[size_t(i)])]);
      }
    }
    messages.accumulate();
    const double largest = s.m ? *std::max_element(current.begin(), current.end()) : 0.0;
    progress.residuals.push_back(largest);
    if ((since += s.slots()) > kSlotsBetweenSignals) check_signals(), since = 0;
    if ((progress.converged = largest <= tol)) return;
  }
}

// ------------------------------------------------------------------------------ pairs of variables, without logarithms

// Synchronous sweeps over pairwise factors with positive tables, in products of numbers: no exp and no log in the loop
// but, with weights ρ, for powers of messages. Allowed where nothing can vanish: a message is at least exp(−range of
// its table / ρ) / states, and the product of all messages to a variable must stay far above the smallest number.
class PairMessages {
 public:
  static bool suits(const FlatGraph& graph, const double* rho) {
    const FactorStructure& s = graph.structure();
    std::vector<double> range(size_t(s.n), 0.0);
    for (int64_t v = 0; v < s.n; ++v) {
      double low = 0.0, high = kImpossible;
      const double* u = graph.unary() + s.state_starts[size_t(v)];
      for (int x = 0; x < s.cards[size_t(v)]; ++x) high = std::max(high, u[x]);
      for (int x = 0; x < s.cards[size_t(v)]; ++x)
        if (u[x] != kImpossible) low = std::max(low, high - u[x]);
      range[size_t(v)] = low;
    }
    for (int64_t f = 0; f < s.m; ++f) {
      if (s.arity(f) != 2) return false;
      const double* table = graph.table(f);
      const auto [low, high] = std::minmax_element(table, table + s.table_sizes[size_t(f)]);
      if (*low == kImpossible) return false;
      for (int64_t slot = s.scope_starts[size_t(f)]; slot < s.scope_starts[size_t(f) + 1]; ++slot)
        range[size_t(s.scopes[size_t(slot)])] +=
            (*high - *low) / (rho ? rho[f] : 1.0) + std::log(double(s.most_states));
    }
    return std::all_of(range.begin(), range.end(), [](double r) { return r < 300.0; });
  }

  // start: logarithms of messages.
  PairMessages(const FlatGraph& graph, const double* rho, bool maximise, const std::vector<double>& start)
      : s_(graph.structure()), rho_(rho), maximise_(maximise), m_(start.size()), b_(size_t(s_.states())) {
    for (int64_t v = 0; v < s_.n; ++v) {
      const double* u = graph.unary() + s_.state_starts[size_t(v)];
      const double top = *std::max_element(u, u + s_.cards[size_t(v)]);
      if (top == kImpossible) throw Impossible();
      for (int x = 0; x < s_.cards[size_t(v)]; ++x) unary_.push_back(std::exp(u[x] - top));
    }
    table_starts_ = rho ? s_.belief_starts.data() : s_.table_starts.data();  // weights leave no table shared
    tables_.resize(size_t(rho ? s_.belief_starts[size_t(s_.m)] : s_.table_entries));
    for (int64_t f = 0; f < s_.m; ++f) {
      if (f > 0 && table_starts_[f] == table_starts_[f - 1]) continue;  // shared with the factor before
      const double *table = graph.table(f), scale = rho ? 1.0 / rho[f] : 1.0;
      const double top = *std::max_element(table, table + s_.table_sizes[size_t(f)]);
      for (int64_t e = 0; e < s_.table_sizes[size_t(f)]; ++e)
        tables_[size_t(table_starts_[f] + e)] = std::exp((table[e] - top) * scale);
    }
    for (size_t k = 0; k < m_.size(); ++k) m_[k] = std::exp(start[k]);
    if (rho) power_.resize(m_.size());
    incident_.reserve(s_.incident.size());
    for (int64_t slot : s_.incident) incident_.push_back(s_.message_starts[size_t(slot)]);
  }

  void sweeps(int64_t max_iter, double tol, double damping, Progress& progress) {
    int64_t since = 0;
    for (int64_t sweep = 0; sweep < max_iter; ++sweep) {
      variables();
      double change = 0.0;
      for (int64_t first = 0; first < s_.m;) {
        const int rows = s_.card(s_.scope_starts[size_t(first)]), columns = s_.card(s_.scope_starts[size_t(first)] + 1);
        int64_t stop = first;
        while (stop < s_.m && s_.card(s_.scope_starts[size_t(stop)]) == rows &&
               s_.card(s_.scope_starts[size_t(stop)] + 1) == columns)
          ++stop;
        change = std::max(change, group(first, stop, rows, columns, damping));
        first = stop;
      }
      progress.residuals.push_back(change);
      if ((since += s_.slots()) > kSlotsBetweenSignals) check_signals(), since = 0;
      if ((progress.converged = change <= tol)) return;
    }
  }
  void hand_over(Messages& messages) const {
    for (size_t k = 0; k < m_.size(); ++k) messages.m[k] = std::log(m_[k]);
    messages.accumulate();
  }

 private:
  // b_i = unary_i Π m^ρ, normalised.
  void variables() {
    if (rho_)
      for (int64_t slot = 0; slot < s_.slots(); ++slot)
        for (int64_t k = s_.message_starts[size_t(slot)]; k < s_.message_starts[size_t(slot) + 1]; ++k)
          power_[size_t(k)] = std::pow(m_[size_t(k)], rho_[s_.slot_factor[size_t(slot)]]);
    const double* messages = rho_ ? power_.data() : m_.data();
    for (int64_t v = 0; v < s_.n; ++v) {
      const int card = s_.cards[size_t(v)];
      double* b = b_.data() + s_.state_starts[size_t(v)];
      std::copy(unary_.data() + s_.state_starts[size_t(v)], unary_.data() + s_.state_starts[size_t(v)] + card, b);
      for (int64_t k = s_.incident_starts[size_t(v)]; k < s_.incident_starts[size_t(v) + 1]; ++k) {
        const double* message = messages + incident_[size_t(k)];
        for (int x = 0; x < card; ++x) b[x] *= message[x];
      }
      double total = 0.0;
      for (int x = 0; x < card; ++x) total += b[x];
      const double scale = 1.0 / total;
      for (int x = 0; x < card; ++x) b[x] *= scale;
    }
  }

  double group(int64_t first, int64_t stop, int rows, int columns, double damping) {
    if (rows == columns) {
      switch (rows) {
        case 2: return factors<2, 2>(first, stop, 2, 2, damping);
        case 3: return factors<3, 3>(first, stop, 3, 3, damping);
        case 4: return factors<4, 4>(first, stop, 4, 4, damping);
        case 5: return factors<5, 5>(first, stop, 5, 5, damping);
        case 8: return factors<8, 8>(first, stop, 8, 8, damping);
      }
    }
    return factors<0, 0>(first, stop, rows, columns, damping);
  }

  // Both messages of every factor: p = b / m at both ends, then rows and columns of the table times p. R = 0: sizes at
  // run time.
  template <int R, int C>
  double factors(int64_t first, int64_t stop, int rows_given, int columns_given, double damping) {
    const int rows = R ? R : rows_given, columns = C ? C : columns_given;
    double fixed[R ? 2 * (R + C) : 1];
    std::vector<double> grown(R ? 0 : size_t(2 * (rows + columns)));
    double* p0 = R ? fixed : grown.data();
    double *p1 = p0 + rows, *n0 = p1 + columns, *n1 = n0 + rows;
    double change = 0.0;
    for (int64_t f = first; f < stop; ++f) {
      const int64_t slot = s_.scope_starts[size_t(f)];
      double *m0 = m_.data() + s_.message_starts[size_t(slot)], *m1 = m0 + rows;
      const double* b0 = b_.data() + s_.state_starts[size_t(s_.scopes[size_t(slot)])];
      const double* b1 = b_.data() + s_.state_starts[size_t(s_.scopes[size_t(slot) + 1])];
      const double* table = tables_.data() + table_starts_[f];
      for (int i = 0; i < rows; ++i) p0[i] = b0[i] / m0[i];
      for (int j = 0; j < columns; ++j) p1[j] = b1[j] / m1[j], n1[j] = 0.0;
      for (int i = 0; i < rows; ++i) {
        const double* row = table + i * columns;
        double to_row = 0.0;
        if (maximise_) {
          for (int j = 0; j < columns; ++j)
            to_row = std::max(to_row, row[j] * p1[j]), n1[j] = std::max(n1[j], row[j] * p0[i]);
        } else {
          for (int j = 0; j < columns; ++j) to_row += row[j] * p1[j], n1[j] += row[j] * p0[i];
        }
        n0[i] = to_row;
      }
      change = std::max(change, std::max(finish(n0, m0, rows, damping), finish(n1, m1, columns, damping)));
    }
    return change;
  }
  double finish(const double* next, double* message, int n, double damping) const {
    double total = 0.0, change = 0.0;
    for (int x = 0; x < n; ++x) total = maximise_ ? std::max(total, next[x]) : total + next[x];
    const double scale = 1.0 / total;
    for (int x = 0; x < n; ++x) {
      const double step = next[x] * scale - message[x];
      change = std::max(change, std::abs(step));
      message[x] += (1.0 - damping) * step;
    }
    return change;
  }

  const FactorStructure& s_;
  const double* rho_;
  bool maximise_;
  std::vector<double> m_, b_, unary_, tables_, power_;  // power_: m^ρ
  const int64_t* table_starts_;
  std::vector<int64_t> incident_;
};

// ------------------------------------------------------------------------------------------- pairs of binary variables

// The same where all variables have two states and no state is impossible. A message is one number, the odds r = m(1) /
// m(0), and so is a belief, B = u(1) / u(0) Π r^ρ. With T the table of a factor (to the power 1 / ρ), from its first
// variable to its second and back
//   r₁ = (T₀₁ r₀ + T₁₁ B₀) / (T₀₀ r₀ + T₁₀ B₀),    r₀ = (T₁₀ r₁ + T₁₁ B₁) / (T₀₀ r₁ + T₀₁ B₁)
// where r on the right are the messages before: B / r leaves a message out of its own answer. One division a message;
// neighbouring factors go into one vector.
class BinaryMessages {
 public:
  static bool suits(const FlatGraph& graph) {
    const FactorStructure& s = graph.structure();
    return s.m > 0 && std::all_of(s.cards.begin(), s.cards.end(), [](int32_t c) { return c == 2; }) &&
           all_finite(graph.unary(), s.states());
  }

  // alternate: if the graph is bipartite, messages from one half of the variables and from the other in turn, each from
  // the newest ones; as far as twice as many synchronous sweeps get, which are two such sequences that never meet.
  BinaryMessages(const FlatGraph& graph, const double* rho, bool maximise, const std::vector<double>& start,
                 bool alternate)
      : s_(graph.structure()), rho_(rho), maximise_(maximise) {
    const size_t m = size_t(s_.m);
    alternating_ = alternate && rho && !maximise && split();
    turned_.assign(m, 0);
    if (alternating_)
      for (size_t f = 0; f < m; ++f) turned_[f] = colour_[size_t(s_.scopes[2 * f])];
    shared_ = !rho && std::all_of(s_.table_starts.begin(), s_.table_starts.end(),
                                  [&](int64_t t) { return t == s_.table_starts[0]; });
    for (auto& t : table_) t.resize(shared_ ? 1 : m);
    for (size_t f = 0; f < (shared_ ? 1 : m); ++f) {
      const double *table = graph.table(int64_t(f)), scale = rho ? 1.0 / rho[f] : 1.0;
      const double top = *std::max_element(table, table + 4);
      for (int e = 0; e < 4; ++e) table_[e][f] = std::exp((table[e] - top) * scale);
      if (turned_[f]) std::swap(table_[1][f], table_[2][f]);
    }
    v_.resize(2 * m);
    r_.resize(2 * m);
    for (size_t f = 0; f < m; ++f)
      for (size_t side = 0; side < 2; ++side) v_[place(f, side)] = s_.scopes[2 * f + side];
    for (size_t f = 0; f < m; ++f)
      for (size_t side = 0; side < 2; ++side)
        r_[place(f, side)] = std::exp(start[4 * f + 2 * side + 1] - start[4 * f + 2 * side]);
    if (rho) {
      power_.resize(2 * m);
      weights_.assign(rho, rho + m);
      weights_.insert(weights_.end(), rho, rho + m);
    }
    B_.resize(size_t(s_.n));
    for (size_t v = 0; v < size_t(s_.n); ++v)
      unary_.push_back(std::exp(graph.unary()[2 * v + 1] - graph.unary()[2 * v]));
    for (int64_t slot : s_.incident) incident_.push_back(int32_t(place(size_t(slot / 2), size_t(slot % 2))));
  }

  void sweeps(int64_t max_iter, double tol, double damping, Progress& progress) {
    int64_t since = 0;
    for (int64_t sweep = 0; sweep < max_iter; ++sweep) {
      double change = 0.0;
      if (alternating_) {
        for (int half = 0; half < 2; ++half) change = std::max(change, messages_from(half, damping));
      } else {
        variables();
        for (int64_t first = 0; first < s_.m; first += kBlock) change = std::max(change, block(first, damping));
      }
      progress.residuals.push_back(change);
      if ((since += s_.slots()) > kSlotsBetweenSignals) check_signals(), since = 0;
      if ((progress.converged = change <= tol)) return;
    }
  }
  void hand_over(Messages& messages) const {
    for (int64_t f = 0; f < s_.m; ++f)
      for (int side = 0; side < 2; ++side) {
        double* m = messages.m.data() + 4 * f + 2 * side;
        const double odds = r_[place(size_t(f), size_t(side))], high = std::max(1.0, odds);
        const double norm = maximise_ ? std::log(high) : std::log1p(odds);
        m[0] = -norm;
        m[1] = std::log(odds) - norm;
      }
    messages.accumulate();
  }

 private:
  static constexpr int64_t kBlock = 512;

  // Where the message to a side of a factor is kept: those to the first half of the variables come first.
  size_t place(size_t f, size_t side) const { return f + (side ^ turned_[f]) * size_t(s_.m); }

  // Halves of the variables between which all factors lie, if there are such.
  bool split() {
    colour_.assign(size_t(s_.n), 2);
    std::vector<int32_t> open;
    for (int32_t root = 0; root < int32_t(s_.n); ++root) {
      if (colour_[size_t(root)] != 2) continue;
      colour_[size_t(root)] = 0;
      for (open.push_back(root); !open.empty();) {
        const int32_t v = open.back();
        open.pop_back();
        for (int64_t k = s_.incident_starts[size_t(v)]; k < s_.incident_starts[size_t(v) + 1]; ++k) {
          const int32_t u = s_.scopes[size_t(s_.incident[size_t(k)] ^ 1)];  // the other slot of the pair
          if (colour_[size_t(u)] == colour_[size_t(v)]) return false;
          if (colour_[size_t(u)] == 2) colour_[size_t(u)] = uint8_t(1 - colour_[size_t(v)]), open.push_back(u);
        }
      }
    }
    for (int32_t v = 0; v < int32_t(s_.n); ++v) half_[colour_[size_t(v)]].push_back(v);
    return true;
  }

  // All messages from one half of the variables; the largest change of a probability.
  double messages_from(int half, double damping) {
    const size_t m = size_t(s_.m), own = half ? m : 0, other = m - own;
    loops<FactorLoops>().log_all(r_.data() + own, weights_.data(), power_.data() + own, s_.m);
    sums_.clear();
    for (const int32_t v : half_[half]) {
      double sum = 0.0;
      for (int64_t k = s_.incident_starts[size_t(v)]; k < s_.incident_starts[size_t(v) + 1]; ++k)
        sum += power_[size_t(incident_[size_t(k)])];
      sums_.push_back(sum);
    }
    loops<FactorLoops>().exp_all(sums_.data(), int64_t(sums_.size()));
    for (size_t k = 0; k < sums_.size(); ++k) B_[size_t(half_[half][k])] = unary_[size_t(half_[half][k])] * sums_[k];
    double largest = 0.0, change[kBlock];
    for (size_t first = 0; first < m; first += kBlock) {
      const int64_t count = std::min(kBlock, int64_t(m - first));
      const double *t01 = table_[half ? 2 : 1].data() + first, *t10 = table_[half ? 1 : 2].data() + first;
      const BinaryHalf part{count,
                            v_.data() + own + first,
                            table_[0].data() + first,
                            t01,
                            t10,
                            table_[3].data() + first,
                            r_.data() + own + first,
                            r_.data() + other + first,
                            change,
                            damping};
      loops<FactorLoops>().odds_half(part, B_.data());
      for (int64_t f = 0; f < count; ++f) largest = change[f] > largest ? change[f] : largest;
    }
    return largest;
  }

  // B, as products or (with weights) as sums of logarithms, whose range `PairMessages::suits` bounds.
  void variables() {
    if (!rho_) {
      for (size_t v = 0; v < size_t(s_.n); ++v) {
        double odds = unary_[v];
        for (int64_t k = s_.incident_starts[v]; k < s_.incident_starts[v + 1]; ++k)
          odds *= r_[size_t(incident_[size_t(k)])];
        B_[v] = odds;
      }
      return;
    }
    loops<FactorLoops>().log_all(r_.data(), weights_.data(), power_.data(), int64_t(r_.size()));
    for (size_t v = 0; v < size_t(s_.n); ++v) {
      double sum = 0.0;
      for (int64_t k = s_.incident_starts[v]; k < s_.incident_starts[v + 1]; ++k)
        sum += power_[size_t(incident_[size_t(k)])];
      B_[v] = sum;
    }
    loops<FactorLoops>().exp_all(B_.data(), s_.n);
    for (size_t v = 0; v < size_t(s_.n); ++v) B_[v] *= unary_[v];
  }
  double block(int64_t first, double damping) {
    double change[kBlock];
    const int64_t count = std::min(kBlock, s_.m - first), t = shared_ ? 0 : first;
    double *r0 = r_.data() + first, *r1 = r0 + s_.m;
    const BinaryFactors part{count,
                             v_.data() + first,
                             v_.data() + s_.m + first,
                             table_[0].data() + t,
                             table_[1].data() + t,
                             table_[2].data() + t,
                             table_[3].data() + t,
                             r0,
                             r1,
                             change,
                             damping};
    const FactorLoops& with = loops<FactorLoops>();
    (maximise_ ? (shared_ ? with.odds_max_shared : with.odds_max) : (shared_ ? with.odds_sum_shared : with.odds_sum))(
        part, B_.data());
    double largest[4] = {};
    int64_t f = 0;
    for (; f + 4 <= count; f += 4)
      for (int k = 0; k < 4; ++k) largest[k] = change[f + k] > largest[k] ? change[f + k] : largest[k];
    for (; f < count; ++f) largest[0] = std::max(largest[0], change[f]);
    return std::max(std::max(largest[0], largest[1]), std::max(largest[2], largest[3]));
  }

  const FactorStructure& s_;
  const double* rho_;
  bool maximise_, shared_ = false, alternating_ = false;
  std::vector<double> table_[4], r_, B_, unary_, power_, weights_;  // power_: ρ log r
  std::vector<double> sums_;
  std::vector<int32_t> v_, incident_, half_[2];
  std::vector<uint8_t> colour_, turned_;  // turned_: factors whose first variable is of the second half
};

// ---------------------------------------------------------------------------------------------- results for Python

// Everything a run of messages leaves behind.
nb::object passed(const FlatGraph& graph, Messages& messages, const Progress& progress, double total, bool has_total,
                  bool maximise, const std::vector<int32_t>& order) {
  std::vector<double> beliefs, residuals = progress.residuals;
  std::vector<int32_t> states;
  {
    nb::gil_scoped_release free;
    if (maximise) {
      states = messages.decode(order);
    } else {
      beliefs = all_beliefs(messages);
      if (!has_total) total = free_energy(graph, messages, beliefs);
    }
  }
  return nb::make_tuple(to_numpy(std::move(beliefs)), total, to_numpy(std::move(states)), progress.converged,
                        to_numpy(std::move(residuals)), to_numpy(std::move(messages.m)));
}

const double* checked_rho(const FactorStructure& s, const std::optional<In1<double>>& rho) {
  if (!rho) return nullptr;
  require(int64_t(rho->shape(0)) == s.m, "rho must hold a weight for every factor");
  for (int64_t f = 0; f < s.m; ++f)
    require(rho->data()[f] > 0.0 && rho->data()[f] <= 1.0, "weights must be above 0 and at most 1");
  return rho->data();
}

// What is left at the roots, where messages have been divided by their normalisers on the way.
double at_roots(const FlatGraph& graph, const Messages& messages, const Discovery& found, bool maximise) {
  const FactorStructure& s = graph.structure();
  std::vector<uint8_t> below(size_t(s.n), 0);
  for (const int64_t up : found.slots) {
    const int64_t f = s.slot_factor[size_t(up)];
    for (int64_t slot = s.scope_starts[size_t(f)]; slot < s.scope_starts[size_t(f) + 1]; ++slot)
      if (slot != up) below[size_t(s.scopes[size_t(slot)])] = 1;
  }
  double total = 0.0;
  std::vector<double> score;
  for (int64_t v = 0; v < s.n; ++v) {
    if (below[size_t(v)]) continue;
    const int card = s.cards[size_t(v)];
    score.assign(graph.unary() + s.state_starts[size_t(v)], graph.unary() + s.state_starts[size_t(v)] + card);
    for (int64_t k = s.incident_starts[size_t(v)]; k < s.incident_starts[size_t(v) + 1]; ++k)
      for (int x = 0; x < card; ++x)
        score[size_t(x)] += messages.m[size_t(s.message_starts[size_t(s.incident[size_t(k)])] + x)];
    const double norm = maximise ? *std::max_element(score.begin(), score.end()) : log_sum(score.data(), card);
    if (norm == kImpossible) throw Impossible();
    total += norm;
  }
  return total;
}

// (beliefs, log Z, states, converged, residuals, messages), or None where everything is impossible.
nb::object tree_messages(const FlatGraph& graph, bool maximise) {
  require(graph.structure().forest, "the graph has a cycle");
  try {
    Messages messages(graph, nullptr, maximise);
    Discovery found(graph.structure());
    double total = 0.0;
    {
      nb::gil_scoped_release free;
      total = two_passes(graph, messages, found);
      total += at_roots(graph, messages, found, maximise);
    }
    Progress progress;
    progress.converged = true;
    return passed(graph, messages, progress, total, true, maximise, found.variables);
  } catch (const Impossible&) { return nb::none(); }
}

nb::object loopy_messages(const FlatGraph& graph, bool maximise, const std::string& schedule, int64_t max_iter,
                          double tol, double damping, uint64_t seed, std::optional<In1<double>> rho,
                          std::optional<In1<double>> start) {
  require(max_iter >= 1, "max_iter must be at least 1");
  require(tol >= 0.0 && damping >= 0.0 && damping < 1.0, "tol must be at least 0, damping from 0 to below 1");
  require(schedule == "synchronous" || schedule == "alternating" || schedule == "random" || schedule == "residual",
          "unknown schedule");
  const double* weights = checked_rho(graph.structure(), rho);
  try {
    Messages messages(graph, weights, maximise);
    if (start)
      messages.start(*start);
    else
      messages.start();
    Progress progress;
    {
      nb::gil_scoped_release free;
      if (schedule == "random") {
        random_sweeps(messages, max_iter, tol, damping, seed, progress);
      } else if (schedule == "residual") {
        residual_sweeps(messages, max_iter, tol, damping, progress);
      } else if (!PairMessages::suits(graph, weights) || messages.below(-300.0)) {
        synchronous_sweeps(messages, max_iter, tol, damping, progress);
      } else if (BinaryMessages::suits(graph)) {
        BinaryMessages pairs(graph, weights, maximise, messages.m, schedule == "alternating");
        pairs.sweeps(max_iter, tol, damping, progress);
        pairs.hand_over(messages);
      } else {
        PairMessages pairs(graph, weights, maximise, messages.m);
        pairs.sweeps(max_iter, tol, damping, progress);
        pairs.hand_over(messages);
      }
    }
    std::vector<int32_t> order;
    if (maximise) order = Discovery(graph.structure()).variables;
    return passed(graph, messages, progress, 0.0, false, maximise, order);
  } catch (const Impossible&) { return nb::none(); }
}

// Joint beliefs of all factors from messages that were handed out.
nb::object joint_beliefs(const FlatGraph& graph, In1<double> given, std::optional<In1<double>> rho) {
  const FactorStructure& s = graph.structure();
  Messages messages(graph, checked_rho(s, rho), false);
  require(given.shape(0) == messages.m.size(), "messages must be those of this graph");
  require(below_infinity(given.data(), int64_t(given.shape(0))), "messages must be below +inf");
  messages.m.assign(given.data(), given.data() + given.shape(0));
  messages.accumulate();
  std::vector<double> joint;
  try {
    nb::gil_scoped_release free;
    joint = all_factor_beliefs(messages);
  } catch (const Impossible&) { fail("messages leave no state possible"); }
  return to_numpy(std::move(joint));
}

// How often each factor lies in a random forest. Factors that no forest has had yet come first, so that all are in one
// soon.
nb::object forest_weights(const FlatGraph& graph, int64_t least, uint64_t seed) {
  const FactorStructure& s = graph.structure();
  require(least >= 1, "there must be at least one forest");
  std::vector<double> count(size_t(s.m), 0.0);
  {
    nb::gil_scoped_release free;
    std::mt19937_64 random(seed);
    std::vector<int32_t> order(size_t(s.m)), roots;
    std::iota(order.begin(), order.end(), 0);
    int64_t forests = 0;
    bool covered = false;
    while (forests < least || !covered) {
      for (size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[size_t(random() % k)]);
      std::stable_partition(order.begin(), order.end(), [&](int32_t f) { return count[size_t(f)] == 0.0; });
      Forest joined(s.n);
      for (int32_t f : order) {
        roots.clear();
        for (int64_t slot = s.scope_starts[size_t(f)]; slot < s.scope_starts[size_t(f) + 1]; ++slot)
          roots.push_back(joined.root(s.scopes[size_t(slot)]));
        std::sort(roots.begin(), roots.end());
        if (std::adjacent_find(roots.begin(), roots.end()) != roots.end()) continue;
        for (size_t k = 1; k < roots.size(); ++k) joined.join(roots[0], roots[k]);
        count[size_t(f)] += 1.0;
      }
      ++forests;
      covered = std::find(count.begin(), count.end(), 0.0) == count.end();
      check_signals();
    }
    for (double& c : count) c /= double(forests);
  }
  return to_numpy(std::move(count));
}

}  // namespace

void bind_messages(nb::module_& m) {
  m.def("tree_messages", &tree_messages, "graph"_a, "maximise"_a);
  m.def("loopy_messages", &loopy_messages, "graph"_a, "maximise"_a, "schedule"_a, "max_iter"_a, "tol"_a, "damping"_a,
        "seed"_a, "rho"_a.none(), "start"_a.none() = nb::none());
  m.def("joint_beliefs", &joint_beliefs, "graph"_a, "messages"_a, "rho"_a.none());
  m.def("forest_weights", &forest_weights, "graph"_a, "least"_a, "seed"_a);
}

}  // namespace mercer
