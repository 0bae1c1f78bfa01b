// A factor graph as flat arrays of log-potentials: what every method of inference takes.
//
//   log p(x) + log Z = constant + Σ_i unary_i(x_i) + Σ_f table_f(x_f),    −inf is a potential of 0
//
// A slot is a place of a variable in the scope of a factor; slots are numbered through all factors, in the order of
// `scopes`.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "base/arrays.hpp"
#include "base/signals.hpp"

namespace mercer {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

// Everything but the potentials.
struct FactorStructure {
  int64_t n = 0, m = 0;
  std::vector<int32_t> cards;            // states of each variable
  std::vector<int64_t> state_starts;     // n + 1: its states among all states
  std::vector<int64_t> scope_starts;     // m + 1: slots of each factor
  std::vector<int32_t> scopes;           // variable of each slot
  std::vector<int64_t> strides;          // step of that variable in the table, for each slot
  std::vector<int32_t> slot_factor;      // factor of each slot
  std::vector<int64_t> message_starts;   // slots + 1: a vector over the states of the slot's variable, slot after slot
  std::vector<int64_t> table_starts;     // m: shared tables begin at the same place
  std::vector<int64_t> table_sizes;      // m
  std::vector<int64_t> belief_starts;    // m + 1: tables one after another, none shared
  std::vector<int64_t> incident_starts;  // n + 1
  std::vector<int64_t> incident;         // slots of each variable
  int64_t table_entries = 0;             // length of the array of tables
  int32_t most_states = 0;
  bool forest = true;  // variables and factors form no cycle

  int64_t states() const { return state_starts[size_t(n)]; }
  int64_t slots() const { return int64_t(scopes.size()); }
  int arity(int64_t f) const { return int(scope_starts[size_t(f) + 1] - scope_starts[size_t(f)]); }
  int card(int64_t slot) const { return cards[size_t(scopes[size_t(slot)])]; }
};

// A structure with potentials. The arrays are kept alive and must not change; Python marks them read-only.
class FlatGraph {
 public:
  FlatGraph(In1<int32_t> cards, In1<double> unary, double constant, In1<int64_t> scope_starts, In1<int32_t> scopes,
            In1<int64_t> table_starts, In1<double> tables);
  FlatGraph(std::shared_ptr<const FactorStructure> structure, In1<double> unary, double constant, In1<double> tables)
      : structure_(std::move(structure)), unary_(unary), tables_(tables), constant_(constant) {
    check_potentials();
  }

  const FactorStructure& structure() const { return *structure_; }
  const std::shared_ptr<const FactorStructure>& shared() const { return structure_; }
  const double* unary() const { return unary_.data(); }
  const double* tables() const { return tables_.data(); }
  const double* table(int64_t f) const { return tables_.data() + structure_->table_starts[size_t(f)]; }
  double constant() const { return constant_; }

  // Σ log-potentials of an assignment.
  double score(const int32_t* x) const {
    const FactorStructure& s = *structure_;
    double total = constant_;
    for (int64_t i = 0; i < s.n; ++i) total += unary()[s.state_starts[size_t(i)] + x[i]];
    for (int64_t f = 0; f < s.m; ++f) {
      int64_t at = 0;
      for (int64_t slot = s.scope_starts[size_t(f)]; slot < s.scope_starts[size_t(f) + 1]; ++slot)
        at += s.strides[size_t(slot)] * x[s.scopes[size_t(slot)]];
      total += table(f)[at];
    }
    return total;
  }

 private:
  void check_potentials() const;

  std::shared_ptr<const FactorStructure> structure_;
  In1<double> unary_, tables_;
  double constant_ = 0.0;
};

// Assignments given by Python: every state must exist.
inline void check_assignment(const FactorStructure& s, const int32_t* x, int64_t length, const char* what) {
  require(length == s.n, what);
  for (int64_t i = 0; i < s.n; ++i) require(x[i] >= 0 && x[i] < s.cards[size_t(i)], what);
}

// ---------------------------------------------------------------------------------------------- what methods share

struct Impossible {};  // thrown where no state of a variable is possible

inline double log_sum(const double* x, int n) {
  double top = x[0];
  for (int k = 1; k < n; ++k) top = x[k] > top ? x[k] : top;
  if (top == kImpossible) return top;
  double total = 0.0;
  for (int k = 0; k < n; ++k) total += std::exp(x[k] - top);
  return top + std::log(total);
}

constexpr int64_t kSlotsBetweenSignals = 1 << 16;  // work after which Ctrl-C is looked for

inline double entropy(const double* p, int64_t n) {
  double total = 0.0;
  for (int64_t k = 0; k < n; ++k)
    if (p[k] > 0.0) total -= p[k] * std::log(p[k]);
  return total;
}
inline double expectation(const double* p, const double* value, int64_t n) {
  double total = 0.0;
  for (int64_t k = 0; k < n; ++k)
    if (p[k] > 0.0) total += p[k] * value[k];
  return total;
}

inline bool below_infinity(const double* x, int64_t n) {
  bool good = true;
  for (int64_t i = 0; i < n; ++i) good &= x[i] < std::numeric_limits<double>::infinity();  // false for NaN, too
  return good;
}

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

}  // namespace mercer
