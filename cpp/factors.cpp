// Factor graphs: structure, messages, mean field and iterated conditional modes, over flat tables of log-potentials.
//
// A message m_{f→i}(x_i) goes from a factor to a variable at one of its slots. With weights ρ_f (1 for belief propagation, the
// probability of appearing in a random forest for the tree-reweighted kind; spec 001 A6, A7, D1, D2)
//   h_{i→f}(x_i) = unary_i(x_i) + Σ_{g∋i} ρ_g m_{g→i}(x_i) − m_{f→i}(x_i)
//   m_{f→i}(x_i) = ⊕_{x_f \ x_i} [ table_f(x_f) / ρ_f + Σ_{j∈f, j≠i} h_{j→f}(x_j) ],      ⊕ = log Σ exp, or max
//   b_i(x_i) ∝ exp(unary_i + Σ_g ρ_g m_{g→i}),      b_f(x_f) ∝ exp(table_f / ρ_f + Σ_{i∈f} h_{i→f}).
// Messages are normalised. States that are impossible are exact −inf: they are counted beside the sum, so that a message can
// be taken out of it again.
#include "factors.hpp"

#include <cstring>
#include <queue>
#include <random>

namespace mercer {

// ---------------------------------------------------------------------------------------------- structure

namespace {

constexpr int64_t kMostEntries = int64_t(1) << 40;

// Union-find over variables; false where the two were together already.
struct Forest {
  std::vector<int32_t> parent;
  explicit Forest(int64_t n) : parent(size_t(n)) { std::iota(parent.begin(), parent.end(), 0); }
  int32_t root(int32_t i) {
    while (parent[size_t(i)] != i) i = parent[size_t(i)] = parent[size_t(parent[size_t(i)])];
    return i;
  }
  bool join(int32_t a, int32_t b) {
    a = root(a), b = root(b);
    if (a == b) return false;
    parent[size_t(std::max(a, b))] = std::min(a, b);
    return true;
  }
};

void set_factor(FactorStructure& s, int64_t f, Forest& joined, std::vector<int64_t>& last_seen) {
  const int64_t first = s.scope_starts[size_t(f)], stop = s.scope_starts[size_t(f) + 1];
  require(stop - first >= 2, "every factor must have at least two variables");
  int64_t size = 1;
  for (int64_t slot = stop - 1; slot >= first; --slot) {
    const int32_t v = s.scopes[size_t(slot)];
    require(v >= 0 && v < s.n, "a scope names a variable that does not exist");
    require(last_seen[size_t(v)] != f, "a scope names a variable twice");
    last_seen[size_t(v)] = f;
    s.strides[size_t(slot)] = size;
    s.slot_factor[size_t(slot)] = int32_t(f);
    require(size <= kMostEntries / s.cards[size_t(v)], "a table has too many entries");
    size *= s.cards[size_t(v)];
    if (slot < stop - 1 && !joined.join(v, s.scopes[size_t(stop - 1)])) s.forest = false;
  }
  const int64_t start = s.table_starts[size_t(f)];
  require(start >= 0 && start <= s.table_entries - size, "a table goes beyond the array of tables");
  s.table_sizes[size_t(f)] = size;
  require(s.belief_starts[size_t(f)] <= kMostEntries - size, "the tables have too many entries together");
  s.belief_starts[size_t(f) + 1] = s.belief_starts[size_t(f)] + size;
}

void set_incidence(FactorStructure& s) {
  s.message_starts.assign(s.scopes.size() + 1, 0);
  s.incident_starts.assign(size_t(s.n) + 1, 0);
  for (size_t slot = 0; slot < s.scopes.size(); ++slot) {
    s.message_starts[slot + 1] = s.message_starts[slot] + s.card(int64_t(slot));
    ++s.incident_starts[size_t(s.scopes[slot]) + 1];
  }
  for (size_t i = 0; i < size_t(s.n); ++i) s.incident_starts[i + 1] += s.incident_starts[i];
  std::vector<int64_t> next(s.incident_starts.begin(), s.incident_starts.end());
  s.incident.resize(s.scopes.size());
  for (size_t slot = 0; slot < s.scopes.size(); ++slot) s.incident[size_t(next[size_t(s.scopes[slot])]++)] = int64_t(slot);
}

bool below_infinity(const double* x, int64_t n) {
  bool good = true;
  for (int64_t i = 0; i < n; ++i) good &= x[i] < std::numeric_limits<double>::infinity();  // false for NaN, too
  return good;
}

}  // namespace

FlatGraph::FlatGraph(In1<int32_t> cards, In1<double> unary, double constant, In1<int64_t> scope_starts, In1<int32_t> scopes,
                     In1<int64_t> table_starts, In1<double> tables)
    : unary_(unary), tables_(tables), constant_(constant) {
  auto made = std::make_shared<FactorStructure>();
  FactorStructure& s = *made;
  s.n = int64_t(cards.shape(0));
  s.m = int64_t(table_starts.shape(0));
  require(s.n < INT32_MAX && s.m < INT32_MAX, "there are too many variables or factors");
  s.cards.assign(cards.data(), cards.data() + s.n);
  s.state_starts.assign(size_t(s.n) + 1, 0);
  for (size_t i = 0; i < size_t(s.n); ++i) {
    require(s.cards[i] >= 1, "every variable needs at least one state");
    s.state_starts[i + 1] = s.state_starts[i] + s.cards[i];
    s.most_states = std::max(s.most_states, s.cards[i]);
  }
  require(int64_t(scope_starts.shape(0)) == s.m + 1, "scope_starts must be one more than factors");
  s.scope_starts.assign(scope_starts.data(), scope_starts.data() + s.m + 1);
  const int64_t slots = int64_t(scopes.shape(0));
  require(s.scope_starts[0] == 0 && s.scope_starts[size_t(s.m)] == slots, "scope_starts must run from 0 to the slots");
  for (size_t f = 0; f < size_t(s.m); ++f) require(s.scope_starts[f] <= s.scope_starts[f + 1], "scope_starts must not decrease");
  s.scopes.assign(scopes.data(), scopes.data() + slots);
  s.table_starts.assign(table_starts.data(), table_starts.data() + s.m);
  s.table_entries = int64_t(tables.shape(0));
  s.strides.resize(size_t(slots));
  s.slot_factor.resize(size_t(slots));
  s.table_sizes.resize(size_t(s.m));
  s.belief_starts.assign(size_t(s.m) + 1, 0);
  Forest joined(s.n);
  std::vector<int64_t> last_seen(size_t(s.n), -1);
  for (int64_t f = 0; f < s.m; ++f) set_factor(s, f, joined, last_seen);
  set_incidence(s);
  structure_ = std::move(made);
  check_potentials();
}

void FlatGraph::check_potentials() const {
  require(int64_t(unary_.shape(0)) == structure_->states(), "unary must hold a value for every state");
  require(int64_t(tables_.shape(0)) == structure_->table_entries, "tables must be as long as before");
  require(below_infinity(unary_.data(), int64_t(unary_.shape(0))), "unary must hold log-potentials below +inf");
  require(below_infinity(tables_.data(), int64_t(tables_.shape(0))), "tables must hold log-potentials below +inf");
  require(below_infinity(&constant_, 1), "constant must be below +inf");
}

// ---------------------------------------------------------------------------------------------- messages in logarithms

namespace {

struct Impossible {};  // thrown where no state of a variable is possible

double log_sum(const double* x, int n) {
  double top = x[0];
  for (int k = 1; k < n; ++k) top = x[k] > top ? x[k] : top;
  if (top == kImpossible) return top;
  double total = 0.0;
  for (int k = 0; k < n; ++k) total += std::exp(x[k] - top);
  return top + std::log(total);
}

void check_signals() {
  nb::gil_scoped_acquire hold;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

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
        std::fill(m.data() + s_.message_starts[size_t(slot)], m.data() + s_.message_starts[size_t(slot) + 1], -std::log(double(s_.card(slot))));
    accumulate();
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
    const int64_t first = s_.scope_starts[size_t(f)], stop = s_.scope_starts[size_t(f) + 1], base = s_.message_starts[size_t(first)];
    for (int64_t slot = first; slot < stop; ++slot) incoming(slot, h_.data() + (s_.message_starts[size_t(slot)] - base));
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
    const int64_t first = s_.scope_starts[size_t(f)], stop = s_.scope_starts[size_t(f) + 1], base = s_.message_starts[size_t(first)];
    for (int64_t slot = first; slot < stop; ++slot) incoming(slot, h_.data() + (s_.message_starts[size_t(slot)] - base));
    const double* table = graph_.table(f);
    const double scale = 1.0 / rho(f);
    if (stop - first == 2) {
      const int rows = s_.card(first), columns = s_.card(first + 1);
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j) b[i * columns + j] = table[i * columns + j] * scale + h_[size_t(i)] + h_[size_t(rows + j)];
      return normalise(b, s_.table_sizes[size_t(f)]);
    }
    for (int64_t e = 0; e < s_.table_sizes[size_t(f)]; ++e) {
      b[e] = table[e] * scale;
      for (int64_t slot = first; slot < stop; ++slot)
        b[e] += h_[size_t(s_.message_starts[size_t(slot)] - base + e / s_.strides[size_t(slot)] % s_.card(slot))];
    }
    normalise(b, s_.table_sizes[size_t(f)]);
  }

  // The best states, chosen one variable after another: those chosen before are fixed in the factors around (spec 001 D1 flags
  // ties). Exact on a forest if the order goes from the roots.
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
    const int64_t first = s_.scope_starts[size_t(f)], stop = s_.scope_starts[size_t(f) + 1], base = s_.message_starts[size_t(first)];
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
    const int64_t f = s_.slot_factor[size_t(slot)], first = s_.scope_starts[size_t(f)], base = s_.message_starts[size_t(first)];
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

// Two passes over a forest: to the roots, and back (spec 001 A6). Gives the sum of what messages to the roots were divided by.
double two_passes(const FlatGraph& graph, Messages& messages, const Discovery& found) {
  const FactorStructure& s = messages.structure();
  std::vector<double> h, out(size_t(s.most_states));
  double total = graph.constant();
  auto incoming = [&](int64_t f, int64_t except) {
    const int64_t first = s.scope_starts[size_t(f)], stop = s.scope_starts[size_t(f) + 1], base = s.message_starts[size_t(first)];
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

double entropy(const double* p, int64_t n) {
  double total = 0.0;
  for (int64_t k = 0; k < n; ++k)
    if (p[k] > 0.0) total -= p[k] * std::log(p[k]);
  return total;
}
double expectation(const double* p, const double* value, int64_t n) {
  double total = 0.0;
  for (int64_t k = 0; k < n; ++k)
    if (p[k] > 0.0) total += p[k] * value[k];
  return total;
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
    total += expectation(b, graph.unary() + s.state_starts[size_t(v)], s.cards[size_t(v)]) + weight * entropy(b, s.cards[size_t(v)]);
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

constexpr int64_t kSlotsBetweenSignals = 1 << 16;

// Every message from those of the last sweep.
void synchronous_sweeps(Messages& messages, int64_t max_iter, double tol, double damping, Progress& progress) {
  const FactorStructure& s = messages.structure();
  std::vector<double> next(messages.m.size());
  int64_t since = 0;
  for (int64_t sweep = 0; sweep < max_iter; ++sweep) {
    double change = 0.0;
    for (int64_t f = 0; f < s.m; ++f) {
      change = std::max(change, messages.update(f, damping));
      const int64_t a = s.message_starts[size_t(s.scope_starts[size_t(f)])], b = s.message_starts[size_t(s.scope_starts[size_t(f) + 1])];
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
void random_sweeps(Messages& messages, int64_t max_iter, double tol, double damping, uint64_t seed, Progress& progress) {
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

// ---------------------------------------------------------------------------------------------- pairs of variables, without logarithms

// Synchronous sweeps over pairwise factors with positive tables, in products of numbers: no exp and no log in the loop. Allowed
// where nothing can vanish: a message is at least exp(−range of its table) / states, and the product of all messages to a
// variable must stay far above the smallest number.
class PairMessages {
 public:
  static bool suits(const FlatGraph& graph) {
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
        range[size_t(s.scopes[size_t(slot)])] += *high - *low + std::log(double(s.most_states));
    }
    return std::all_of(range.begin(), range.end(), [](double r) { return r < 300.0; });
  }

  PairMessages(const FlatGraph& graph, bool maximise)
      : s_(graph.structure()), maximise_(maximise), m_(size_t(s_.message_starts[size_t(s_.slots())])), b_(size_t(s_.states())) {
    for (int64_t v = 0; v < s_.n; ++v) {
      const double* u = graph.unary() + s_.state_starts[size_t(v)];
      const double top = *std::max_element(u, u + s_.cards[size_t(v)]);
      if (top == kImpossible) throw Impossible();
      for (int x = 0; x < s_.cards[size_t(v)]; ++x) unary_.push_back(std::exp(u[x] - top));
    }
    tables_.resize(size_t(s_.table_entries));
    for (int64_t f = 0; f < s_.m; ++f) {
      const int64_t start = s_.table_starts[size_t(f)];
      if (f > 0 && start == s_.table_starts[size_t(f) - 1]) continue;  // shared with the factor before
      const double* table = graph.tables() + start;
      const double top = *std::max_element(table, table + s_.table_sizes[size_t(f)]);
      for (int64_t e = 0; e < s_.table_sizes[size_t(f)]; ++e) tables_[size_t(start + e)] = std::exp(table[e] - top);
    }
    for (int64_t slot = 0; slot < s_.slots(); ++slot)
      for (int64_t k = s_.message_starts[size_t(slot)]; k < s_.message_starts[size_t(slot) + 1]; ++k)
        m_[size_t(k)] = maximise ? 1.0 : 1.0 / s_.card(slot);
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
        while (stop < s_.m && s_.card(s_.scope_starts[size_t(stop)]) == rows && s_.card(s_.scope_starts[size_t(stop)] + 1) == columns) ++stop;
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
  // b_i = unary_i Π m, normalised.
  void variables() {
    for (int64_t v = 0; v < s_.n; ++v) {
      const int card = s_.cards[size_t(v)];
      double* b = b_.data() + s_.state_starts[size_t(v)];
      std::copy(unary_.data() + s_.state_starts[size_t(v)], unary_.data() + s_.state_starts[size_t(v)] + card, b);
      for (int64_t k = s_.incident_starts[size_t(v)]; k < s_.incident_starts[size_t(v) + 1]; ++k) {
        const double* message = m_.data() + incident_[size_t(k)];
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

  // Both messages of every factor: p = b / m at both ends, then rows and columns of the table times p. R = 0: sizes at run time.
  template <int R, int C> double factors(int64_t first, int64_t stop, int rows_given, int columns_given, double damping) {
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
      const double* table = tables_.data() + s_.table_starts[size_t(f)];
      for (int i = 0; i < rows; ++i) p0[i] = b0[i] / m0[i];
      for (int j = 0; j < columns; ++j) p1[j] = b1[j] / m1[j], n1[j] = 0.0;
      for (int i = 0; i < rows; ++i) {
        const double* row = table + i * columns;
        double to_row = 0.0;
        if (maximise_) {
          for (int j = 0; j < columns; ++j) to_row = std::max(to_row, row[j] * p1[j]), n1[j] = std::max(n1[j], row[j] * p0[i]);
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
  bool maximise_;
  std::vector<double> m_, b_, unary_, tables_;
  std::vector<int64_t> incident_;
};

// ---------------------------------------------------------------------------------------------- pairs of binary variables

// The same where all variables have two states and no state is impossible. A message is one number, the odds r = m(1) / m(0),
// and so is a belief, B = u(1) / u(0) Π r. With T the table of a factor, from its first variable to its second and back
//   r₁ = (T₀₁ r₀ + T₁₁ B₀) / (T₀₀ r₀ + T₁₀ B₀),    r₀ = (T₁₀ r₁ + T₁₁ B₁) / (T₀₀ r₁ + T₀₁ B₁)
// where r on the right are the messages before: B / r leaves a message out of its own answer. One division a message; neighbouring
// factors go into one vector.
struct BinaryFactors {
  int64_t count;
  const int32_t *v0, *v1;
  const double *t00, *t01, *t10, *t11;  // one value each if shared
  double *r0, *r1, *change;
};

template <bool kMaximise> inline double either(double a, double b) { return kMaximise ? (a > b ? a : b) : a + b; }

template <bool kShared, bool kMaximise> inline void odds_block(const BinaryFactors& p, const double* __restrict B) {
  const int32_t *__restrict v0 = p.v0, *__restrict v1 = p.v1;
  const double *__restrict t00 = p.t00, *__restrict t01 = p.t01, *__restrict t10 = p.t10, *__restrict t11 = p.t11;
  double *__restrict r0 = p.r0, *__restrict r1 = p.r1, *__restrict change = p.change;
  for (int64_t f = 0; f < p.count; ++f) {
    const int64_t t = kShared ? 0 : f;
    const double a = r0[f], b = r1[f], B0 = B[v0[f]], B1 = B[v1[f]];
    const double to1 = either<kMaximise>(t01[t] * a, t11[t] * B0) / either<kMaximise>(t00[t] * a, t10[t] * B0);
    const double to0 = either<kMaximise>(t10[t] * b, t11[t] * B1) / either<kMaximise>(t00[t] * b, t01[t] * B1);
    // |m(1) − old m(1)|, where m(1) = r / (1 + r).
    const double d0 = std::abs(to0 - a) / ((1.0 + to0) * (1.0 + a)), d1 = std::abs(to1 - b) / ((1.0 + to1) * (1.0 + b));
    change[f] = d0 > d1 ? d0 : d1;
    r0[f] = to0;
    r1[f] = to1;
  }
}
MERCER_CLONES void odds_sum_shared(const BinaryFactors& p, const double* B) { odds_block<true, false>(p, B); }
MERCER_CLONES void odds_sum(const BinaryFactors& p, const double* B) { odds_block<false, false>(p, B); }
MERCER_CLONES void odds_max_shared(const BinaryFactors& p, const double* B) { odds_block<true, true>(p, B); }
MERCER_CLONES void odds_max(const BinaryFactors& p, const double* B) { odds_block<false, true>(p, B); }

class BinaryMessages {
 public:
  static bool suits(const FlatGraph& graph) {
    const FactorStructure& s = graph.structure();
    return s.m > 0 && std::all_of(s.cards.begin(), s.cards.end(), [](int32_t c) { return c == 2; }) &&
           all_finite(graph.unary(), s.states());
  }

  BinaryMessages(const FlatGraph& graph, bool maximise) : s_(graph.structure()), maximise_(maximise) {
    const size_t m = size_t(s_.m);
    shared_ = std::all_of(s_.table_starts.begin(), s_.table_starts.end(), [&](int64_t t) { return t == s_.table_starts[0]; });
    for (auto& t : table_) t.resize(shared_ ? 1 : m);
    for (size_t f = 0; f < (shared_ ? 1 : m); ++f) {
      const double* table = graph.table(int64_t(f));
      const double top = *std::max_element(table, table + 4);
      for (int e = 0; e < 4; ++e) table_[e][f] = std::exp(table[e] - top);
    }
    v_.resize(2 * m);
    r_.assign(2 * m, 1.0);
    for (size_t f = 0; f < m; ++f) v_[f] = s_.scopes[2 * f], v_[m + f] = s_.scopes[2 * f + 1];
    B_.resize(size_t(s_.n));
    for (size_t v = 0; v < size_t(s_.n); ++v) unary_.push_back(std::exp(graph.unary()[2 * v + 1] - graph.unary()[2 * v]));
    for (int64_t slot : s_.incident) incident_.push_back(int32_t(slot / 2 + (slot % 2) * s_.m));
  }

  void sweeps(int64_t max_iter, double tol, double damping, Progress& progress) {
    int64_t since = 0;
    for (int64_t sweep = 0; sweep < max_iter; ++sweep) {
      for (size_t v = 0; v < size_t(s_.n); ++v) {
        double odds = unary_[v];
        for (int64_t k = s_.incident_starts[v]; k < s_.incident_starts[v + 1]; ++k) odds *= r_[size_t(incident_[size_t(k)])];
        B_[v] = odds;
      }
      double change = 0.0;
      for (int64_t first = 0; first < s_.m; first += kBlock) change = std::max(change, block(first, damping));
      progress.residuals.push_back(change);
      if ((since += s_.slots()) > kSlotsBetweenSignals) check_signals(), since = 0;
      if ((progress.converged = change <= tol)) return;
    }
  }
  void hand_over(Messages& messages) const {
    for (int64_t f = 0; f < s_.m; ++f)
      for (int side = 0; side < 2; ++side) {
        double* m = messages.m.data() + 4 * f + 2 * side;
        const double odds = r_[size_t(f + side * s_.m)], high = std::max(1.0, odds);
        const double norm = maximise_ ? std::log(high) : std::log1p(odds);
        m[0] = -norm;
        m[1] = std::log(odds) - norm;
      }
    messages.accumulate();
  }

 private:
  static constexpr int64_t kBlock = 512;

  double block(int64_t first, double damping) {
    double change[kBlock], before[2 * kBlock];
    const int64_t count = std::min(kBlock, s_.m - first), t = shared_ ? 0 : first;
    double *r0 = r_.data() + first, *r1 = r0 + s_.m;
    if (damping > 0.0) std::copy(r0, r0 + count, before), std::copy(r1, r1 + count, before + kBlock);
    const BinaryFactors part{count, v_.data() + first, v_.data() + s_.m + first, table_[0].data() + t, table_[1].data() + t,
                             table_[2].data() + t, table_[3].data() + t, r0, r1, change};
    (maximise_ ? (shared_ ? odds_max_shared : odds_max) : (shared_ ? odds_sum_shared : odds_sum))(part, B_.data());
    if (damping > 0.0) {  // of probabilities, as everywhere
      for (int64_t f = 0; f < count; ++f) r0[f] = blend(r0[f], before[f], damping), r1[f] = blend(r1[f], before[kBlock + f], damping);
    }
    double largest[4] = {};
    int64_t f = 0;
    for (; f + 4 <= count; f += 4)
      for (int k = 0; k < 4; ++k) largest[k] = change[f + k] > largest[k] ? change[f + k] : largest[k];
    for (; f < count; ++f) largest[0] = std::max(largest[0], change[f]);
    return std::max(std::max(largest[0], largest[1]), std::max(largest[2], largest[3]));
  }
  static double blend(double odds, double old, double damping) {
    const double a = (1.0 - damping) / (1.0 + odds), b = damping / (1.0 + old);
    return (a * odds + b * old) / (a + b);
  }

  const FactorStructure& s_;
  bool maximise_, shared_ = false;
  std::vector<double> table_[4], r_, B_, unary_;
  std::vector<int32_t> v_, incident_;
};

// ---------------------------------------------------------------------------------------------- results for Python

// Everything a run of messages leaves behind.
nb::object passed(const FlatGraph& graph, Messages& messages, const Progress& progress, double total, bool has_total, bool maximise,
                  const std::vector<int32_t>& order) {
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
  for (int64_t f = 0; f < s.m; ++f) require(rho->data()[f] > 0.0 && rho->data()[f] <= 1.0, "weights must be above 0 and at most 1");
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
      for (int x = 0; x < card; ++x) score[size_t(x)] += messages.m[size_t(s.message_starts[size_t(s.incident[size_t(k)])] + x)];
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
  } catch (const Impossible&) {
    return nb::none();
  }
}

nb::object loopy_messages(const FlatGraph& graph, bool maximise, const std::string& schedule, int64_t max_iter, double tol, double damping,
                          uint64_t seed, std::optional<In1<double>> rho) {
  require(max_iter >= 1, "max_iter must be at least 1");
  require(tol >= 0.0 && damping >= 0.0 && damping < 1.0, "tol must be at least 0, damping from 0 to below 1");
  require(schedule == "synchronous" || schedule == "random" || schedule == "residual", "unknown schedule");
  const double* weights = checked_rho(graph.structure(), rho);
  try {
    Messages messages(graph, weights, maximise);
    messages.start();
    Progress progress;
    {
      nb::gil_scoped_release free;
      if (schedule == "random") {
        random_sweeps(messages, max_iter, tol, damping, seed, progress);
      } else if (schedule == "residual") {
        residual_sweeps(messages, max_iter, tol, damping, progress);
      } else if (!weights && PairMessages::suits(graph) && BinaryMessages::suits(graph)) {
        BinaryMessages pairs(graph, maximise);
        pairs.sweeps(max_iter, tol, damping, progress);
        pairs.hand_over(messages);
      } else if (!weights && PairMessages::suits(graph)) {
        PairMessages pairs(graph, maximise);
        pairs.sweeps(max_iter, tol, damping, progress);
        pairs.hand_over(messages);
      } else {
        synchronous_sweeps(messages, max_iter, tol, damping, progress);
      }
    }
    std::vector<int32_t> order;
    if (maximise) order = Discovery(graph.structure()).variables;
    return passed(graph, messages, progress, 0.0, false, maximise, order);
  } catch (const Impossible&) {
    return nb::none();
  }
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
  } catch (const Impossible&) {
    fail("messages leave no state possible");
  }
  return to_numpy(std::move(joint));
}

// How often each factor lies in a random forest. Factors that no forest has had yet come first, so that all are in one soon.
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

// ---------------------------------------------------------------------------------------------- mean field

// Σ_{x_f \ x_i} table_f(x_f) Π_{j≠i} q_j(x_j), added to out(x_i).
void add_expected(const FlatGraph& graph, int64_t slot, const double* q, double* out) {
  const FactorStructure& s = graph.structure();
  const int64_t f = s.slot_factor[size_t(slot)], first = s.scope_starts[size_t(f)], stop = s.scope_starts[size_t(f) + 1];
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
      if (other != slot) value *= q[s.state_starts[size_t(s.scopes[size_t(other)])] + e / s.strides[size_t(other)] % s.card(other)];
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
  for (int64_t k = 0; k < s.states(); ++k) require(q0.data()[k] >= 0.0 && q0.data()[k] <= 1.0, "q must hold probabilities");
  require(all_finite(graph.tables(), s.table_entries), "mean field needs positive potentials in factors of two variables or more");
}

// One variable after another (spec 001 A12): the bound never decreases.
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
      bound += expectation(p, graph.unary() + s.state_starts[size_t(v)], s.cards[size_t(v)]) + entropy(p, s.cards[size_t(v)]);
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
  std::vector<int64_t> place;             // of each variable in `variables`
  std::vector<int32_t> chain;             // of each variable
  std::vector<uint8_t> inside;            // factor: lies on a link
  std::vector<std::vector<int64_t>> on;   // factors on the link from place k to k + 1
  std::vector<int64_t> link_starts;       // joint probabilities of the link, by place
  std::vector<double> links;

  ChainField(const FlatGraph& g, In1<int64_t> chain_starts, In1<int32_t> chain_variables)
      : graph(g), s(g.structure()), starts(chain_starts.data()), n_chains(int64_t(chain_starts.shape(0)) - 1),
        variables(chain_variables.data()), place(size_t(s.n), -1), chain(size_t(s.n)), inside(size_t(s.m), 0), on(size_t(s.n)),
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
          link_starts[size_t(k)] + (linked ? int64_t(s.cards[size_t(variables[k])]) * s.cards[size_t(variables[k + 1])] : 0);
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
                "a factor joins variables of one chain that are not neighbours in it, or more than two variables with two of one chain");
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
        for (int j = 0; j < columns; ++j) table[i * columns + j] += graph.table(f)[straight ? i * columns + j : j * rows + i];
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
        if (!inside[size_t(s.slot_factor[size_t(s.incident[size_t(i)])])]) add_expected(graph, s.incident[size_t(i)], q.data(), score.data());
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
      for (int x = 0; x < card; ++x) change = std::max(change, std::abs(next[size_t(x)] - p[x])), p[x] = next[size_t(x)];
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
  return nb::make_tuple(to_numpy(std::move(done.q)), to_numpy(std::move(done.bounds)), to_numpy(std::move(done.residuals)), done.converged);
}

nb::object mean_field(const FlatGraph& graph, In1<double> q0, int64_t max_iter, double tol) {
  check_q(graph, q0);
  require(max_iter >= 1 && tol >= 0.0, "max_iter must be at least 1, tol at least 0");
  MeanField done;
  try {
    nb::gil_scoped_release free;
    done = naive_mean_field(graph, q0.data(), max_iter, tol);
  } catch (const Impossible&) {
    return nb::none();
  }
  return given_field(std::move(done));
}

nb::object chain_mean_field(const FlatGraph& graph, In1<double> q0, In1<int64_t> starts, In1<int32_t> variables, int64_t max_iter,
                            double tol) {
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
  } catch (const Impossible&) {
    return nb::none();
  }
  return given_field(std::move(done));
}

// ---------------------------------------------------------------------------------------------- iterated conditional modes

// (states, scores after each sweep, converged). A variable moves only to a state that is better (spec 001 D3).
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
        std::copy(graph.unary() + s.state_starts[size_t(v)], graph.unary() + s.state_starts[size_t(v)] + card, score.data());
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

void bind_factors(nb::module_& m) {
  nb::class_<FlatGraph>(m, "FlatGraph")
      .def(nb::init<In1<int32_t>, In1<double>, double, In1<int64_t>, In1<int32_t>, In1<int64_t>, In1<double>>(), "cards"_a,
           "unary"_a, "constant"_a, "scope_starts"_a, "scopes"_a, "table_starts"_a, "tables"_a)
      .def("with_potentials",
           [](const FlatGraph& graph, In1<double> unary, In1<double> tables, double constant) {
             return FlatGraph(graph.shared(), unary, constant, tables);
           }, "unary"_a, "tables"_a, "constant"_a)
      .def_prop_ro("is_forest", [](const FlatGraph& graph) { return graph.structure().forest; });
  m.def("tree_messages", &tree_messages, "graph"_a, "maximise"_a);
  m.def("loopy_messages", &loopy_messages, "graph"_a, "maximise"_a, "schedule"_a, "max_iter"_a, "tol"_a, "damping"_a, "seed"_a,
        "rho"_a.none());
  m.def("joint_beliefs", &joint_beliefs, "graph"_a, "messages"_a, "rho"_a.none());
  m.def("forest_weights", &forest_weights, "graph"_a, "least"_a, "seed"_a);
  m.def("mean_field", &mean_field, "graph"_a, "q"_a, "max_iter"_a, "tol"_a);
  m.def("chain_mean_field", &chain_mean_field, "graph"_a, "q"_a, "starts"_a, "variables"_a, "max_iter"_a, "tol"_a);
  m.def("icm", &icm, "graph"_a, "start"_a, "max_iter"_a);
}

}  // namespace mercer
