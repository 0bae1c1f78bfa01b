// Exact inference over a tree of cliques: elimination, collect, distribute, the k best, samples.
//
// Eliminating a variable joins its neighbours. The sets {v} ∪ neighbours(v) at that moment, without those that lie in
// another one, are the maximal cliques of the triangulated graph; linking each to the clique of its next variable to go
// gives a tree with the running intersection property, a spanning tree of greatest total separator size.
//
// The table of a clique is laid out [separator to the parent | the other variables], so a message to the parent reduces
// rows:
//   collect     message(s) = ⊕_y table(s, y), added to the parent's table; ⊕ = log Σ exp or max
// Collecting sums leaves p(y | s, evidence) in the rows: table(s, y) − message(s), exponentiated. So
//   distribute  belief(s, y) = p(y | s) · Σ_{parent \ s} belief_parent
// needs no division, no logarithm, and no message back: products of probabilities only.
#include <cstring>
#include <queue>
#include <random>
#include <tuple>

#include "inference/factor_loops.hpp"
#include "inference/triangulation.hpp"

namespace mercer {
namespace {

// ---------------------------------------------------------------------------------------------- loops over tables

// Goes through a large table in order, with the place in a smaller one over some of its variables.
struct Walk {
  std::vector<int64_t> dims, steps;  // of the large table's axes, and how far each moves in the small one

  void add_axis(int64_t dim, int64_t step) {
    if (dim == 1) return;
    if (!dims.empty() && steps.back() == step * dim) {  // one longer axis
      dims.back() *= dim;
      steps.back() = step;
    } else {
      dims.push_back(dim);
      steps.push_back(step);
    }
  }
  // row(start in the large table, start in the small one, length, step)
  template <class Row> void rows(Row row) const {
    if (dims.empty()) return row(0, 0, 1, 0);
    const int64_t length = dims.back(), step = steps.back();
    const int outer = int(dims.size()) - 1;
    int64_t at[64] = {};
    int64_t large = 0, small = 0;
    while (true) {
      row(large, small, length, step);
      large += length;
      int axis = outer - 1;
      for (; axis >= 0; --axis) {
        small += steps[size_t(axis)];
        if (++at[axis] < dims[size_t(axis)]) break;
        small -= steps[size_t(axis)] * dims[size_t(axis)];
        at[axis] = 0;
      }
      if (axis < 0) return;
    }
  }
};

void add_into_large(const Walk& walk, double* large, const double* small) {
  walk.rows([&](int64_t l, int64_t s, int64_t length, int64_t step) {
    double* out = large + l;
    const double* in = small + s;
    if (step == 0) {
      const double x = *in;
      for (int64_t k = 0; k < length; ++k) out[k] += x;
    } else if (step == 1) {
      for (int64_t k = 0; k < length; ++k) out[k] += in[k];
    } else {
      for (int64_t k = 0; k < length; ++k) out[k] += in[k * step];
    }
  });
}

void multiply_into_large(const Walk& walk, double* large, const double* small) {
  walk.rows([&](int64_t l, int64_t s, int64_t length, int64_t step) {
    double* out = large + l;
    const double* in = small + s;
    if (step == 0) {
      const double x = *in;
      for (int64_t k = 0; k < length; ++k) out[k] *= x;
    } else if (step == 1) {
      for (int64_t k = 0; k < length; ++k) out[k] *= in[k];
    } else {
      for (int64_t k = 0; k < length; ++k) out[k] *= in[k * step];
    }
  });
}

void sum_into_small(const Walk& walk, const double* large, double* small) {
  walk.rows([&](int64_t l, int64_t s, int64_t length, int64_t step) {
    const double* in = large + l;
    double* out = small + s;
    if (step == 0) {
      double part[4] = {};
      int64_t k = 0;
      for (; k + 4 <= length; k += 4)
        for (int j = 0; j < 4; ++j) part[j] += in[k + j];
      for (; k < length; ++k) part[0] += in[k];
      *out += (part[0] + part[1]) + (part[2] + part[3]);
    } else if (step == 1) {
      for (int64_t k = 0; k < length; ++k) out[k] += in[k];
    } else {
      for (int64_t k = 0; k < length; ++k) out[k * step] += in[k];
    }
  });
}

double row_max(const double* x, int64_t n) {
  double best = x[0];
  for (int64_t k = 1; k < n; ++k) best = x[k] > best ? x[k] : best;
  return best;
}

// log Σ exp of each row into `message`; the rows become exp(x − message), or 0 where all is impossible.
void normalise_rows(double* table, int64_t rows, int64_t columns, double* message) {
  const int64_t chunk = std::max<int64_t>(1, 2048 / columns);
  for (int64_t first = 0; first < rows; first += chunk) {
    const int64_t stop = std::min(rows, first + chunk);
    for (int64_t r = first; r < stop; ++r) {
      double* x = table + r * columns;
      message[r] = row_max(x, columns);
      const double base = message[r] == kImpossible ? 0.0 : message[r];
      for (int64_t k = 0; k < columns; ++k) x[k] -= base;
    }
    loops<FactorLoops>().exp_all(table + first * columns, (stop - first) * columns);
    for (int64_t r = first; r < stop; ++r) {
      if (message[r] == kImpossible) continue;
      double* x = table + r * columns;
      double total = 0.0;
      for (int64_t k = 0; k < columns; ++k) total += x[k];
      message[r] += std::log(total);
      for (int64_t k = 0; k < columns; ++k) x[k] /= total;
    }
  }
}

constexpr int64_t kEntriesBetweenSignals = 1 << 22;  // work after which Ctrl-C is looked for
constexpr double kSafeRange = 600.0;                 // exp(−600) = 1e−261: products stay far above the smallest numbers

// Smallest and largest logarithm above −inf; where there is none the range is infinite.
std::pair<double, double> finite_range(const double* x, int64_t n) {
  double low = std::numeric_limits<double>::infinity(), high = kImpossible;
  for (int64_t k = 0; k < n; ++k) {
    low = x[k] < low && x[k] != kImpossible ? x[k] : low;
    high = x[k] > high ? x[k] : high;
  }
  if (high == kImpossible) return {kImpossible, std::numeric_limits<double>::infinity()};
  return {low, high};
}

// As normalise_rows, for rows of probabilities that were divided by exp(offset).
void divide_rows(double* table, int64_t rows, int64_t columns, double offset, double* message) {
  for (int64_t r = 0; r < rows; ++r) {
    double* x = table + r * columns;
    double part[4] = {};
    int64_t k = 0;
    for (; k + 4 <= columns; k += 4)
      for (int j = 0; j < 4; ++j) part[j] += x[k + j];
    for (; k < columns; ++k) part[0] += x[k];
    const double total = (part[0] + part[1]) + (part[2] + part[3]);
    message[r] = total > 0.0 ? std::log(total) + offset : kImpossible;
    const double scale = total > 0.0 ? 1.0 / total : 0.0;
    for (k = 0; k < columns; ++k) x[k] *= scale;
  }
}

// ---------------------------------------------------------------------------------------------- the tree

EliminationRule rule_of(const std::string& heuristic) {
  if (heuristic == "min-fill") return EliminationRule::kMinFill;
  if (heuristic == "min-degree") return EliminationRule::kMinDegree;
  if (heuristic == "min-weight") return EliminationRule::kMinWeight;
  require(heuristic == "weighted-min-fill",
          "heuristic must be 'auto', 'min-fill', 'min-degree', 'min-weight' or 'weighted-min-fill'");
  return EliminationRule::kWeightedFill;
}

struct Clique {
  std::vector<int32_t> variables;  // separator first
  int32_t separator = 0, parent = -1;
  int64_t rows = 1, columns = 1, start = 0, message = 0;
  Walk to_parent;  // through the parent's table, with the place in the separator
};

class CliqueTree {
 public:
  CliqueTree(const FlatGraph& graph, const std::string& heuristic, double max_size, bool stop_early, double effort)
      : structure_(graph.shared()) {
    const double limit = stop_early ? max_size : std::numeric_limits<double>::infinity();
    {
      nb::gil_scoped_release free;
      done_ = heuristic == "auto" ? search_order(s(), limit, effort) : Eliminator(s()).run(rule_of(heuristic), limit);
    }
    if (!done_.complete) {
      size_ = operations_ = done_.entries;
      return;
    }
    gather();
    fits_ = size_ <= max_size && widest_ <= 63;
    if (fits_) lay_out();
  }

  bool fits() const { return fits_; }
  bool complete() const { return done_.complete; }
  double size() const { return size_; }
  double operations() const { return operations_; }
  double bytes() const { return 8.0 * (size_ + 2.0 * most_rows_); }  // tables and two messages
  int32_t most_variables() const { return done_.most_variables; }
  nb::tuple cliques() const;
  nb::tuple elimination() const;
  nb::tuple sum(const FlatGraph& graph) const;
  nb::tuple max(const FlatGraph& graph, int64_t k) const;
  nb::object factor_beliefs(In1<double> beliefs) const;
  nb::tuple sample(const FlatGraph& graph, int64_t count, uint64_t seed) const;

 private:
  const FactorStructure& s() const { return *structure_; }
  void check(const FlatGraph& graph) const {
    require(graph.shared() == structure_, "the graph has another structure than the tree was made for");
    require(fits_, "the tree of cliques is too large");
  }
  void gather();
  void count_operations();
  void lay_out();
  Walk walk_to(const std::vector<int32_t>& large, const int32_t* small, int count) const;
  struct Part {
    std::vector<int32_t> scope;
    const double* values;  // logarithms
    int64_t count;
    double low, high;            // of the values above −inf
    std::vector<double> scaled;  // exp(values − high)
  };
  struct Members {
    std::vector<int32_t> variables, children;
    std::vector<int64_t> factors;
  };
  void multiply_parts(const Clique& clique, std::vector<Part>& parts, double* table) const;
  std::vector<Part> parts_of(size_t c, const FlatGraph& graph, const std::vector<std::vector<double>>& messages) const;
  std::vector<double> filled(const FlatGraph& graph) const;
  double collect_sums(const FlatGraph& graph, std::vector<double>& tables) const;
  void distribute(size_t c, std::vector<double>& tables, std::vector<double>& marginals) const;
  double collect_maxima(const FlatGraph& graph, std::vector<double>& tables) const;
  int64_t row_of(const Clique& clique, const int32_t* x) const {
    int64_t row = 0;
    for (int k = 0; k < clique.separator; ++k) {
      const int32_t v = clique.variables[size_t(k)];
      row = row * s().cards[size_t(v)] + x[v];
    }
    return row;
  }
  void set_column(const Clique& clique, int64_t column, int32_t* x) const {
    for (size_t k = clique.variables.size(); k-- > size_t(clique.separator);) {
      const int32_t v = clique.variables[k], card = s().cards[size_t(v)];
      x[v] = int32_t(column % card);
      column /= card;
    }
  }

  std::shared_ptr<const FactorStructure> structure_;
  Elimination done_;
  std::vector<Clique> cliques_;  // children before parents
  std::vector<int32_t> home_;    // clique of each variable: where it is outside the separator
  std::vector<int32_t> factor_home_;
  std::vector<Members> members_;  // of each clique: what is multiplied into its table
  double size_ = 0.0, operations_ = 0.0, most_rows_ = 0.0;
  size_t widest_ = 0;
  int64_t messages_ = 0;
  bool fits_ = false;
};

// Maximal cliques from the elimination, linked to a tree.
void CliqueTree::gather() {
  const size_t n = size_t(s().n);
  const std::vector<int32_t> position = places_of(done_.order), parent = next_of(done_, position);
  const std::vector<int32_t> first = clique_heads(done_, parent);
  std::vector<int32_t> last_of(n);
  for (int32_t v : done_.order) last_of[size_t(first[size_t(v)])] = v;
  // In the order of their last variables children come before parents.
  std::vector<int32_t> number(n, -1);
  std::vector<std::vector<int32_t>> inside(n);
  for (int32_t v : done_.order) inside[size_t(first[size_t(v)])].push_back(v);
  for (int32_t v : done_.order) {
    const int32_t head = first[size_t(v)];
    if (last_of[size_t(head)] != v) continue;
    number[size_t(head)] = int32_t(cliques_.size());
    Clique clique;
    clique.variables = done_.later[size_t(v)];
    std::sort(clique.variables.begin(), clique.variables.end(),
              [&](int32_t a, int32_t b) { return position[size_t(a)] > position[size_t(b)]; });
    clique.separator = int32_t(clique.variables.size());
    clique.variables.insert(clique.variables.end(), inside[size_t(head)].rbegin(), inside[size_t(head)].rend());
    widest_ = std::max(widest_, clique.variables.size());
    double entries = 1.0;
    double rows = 1.0;
    for (size_t k = 0; k < clique.variables.size(); ++k) {
      entries *= s().cards[size_t(clique.variables[k])];
      if (int32_t(k) < clique.separator) rows = entries;
    }
    size_ += entries;
    most_rows_ = std::max(most_rows_, rows);
    cliques_.push_back(std::move(clique));
  }
  home_.resize(n);
  for (size_t v = 0; v < n; ++v) home_[v] = number[size_t(first[v])];
  for (int32_t v : done_.order) {
    const int32_t head = first[size_t(v)];
    if (last_of[size_t(head)] == v && parent[size_t(v)] >= 0)
      cliques_[size_t(home_[size_t(v)])].parent = home_[size_t(parent[size_t(v)])];
  }
  factor_home_.resize(size_t(s().m));
  for (int64_t f = 0; f < s().m; ++f) {
    const int64_t a = s().scope_starts[size_t(f)], b = s().scope_starts[size_t(f) + 1];
    const int32_t earliest =
        *std::min_element(s().scopes.begin() + a, s().scopes.begin() + b,
                          [&](int32_t x, int32_t y) { return position[size_t(x)] < position[size_t(y)]; });
    factor_home_[size_t(f)] = home_[size_t(earliest)];
  }
  count_operations();
}

// Entries that are read or written: tables are filled and normalised, each factor is added, messages go up and come
// down.
void CliqueTree::count_operations() {
  std::vector<double> uses(cliques_.size(), 4.0);
  for (int32_t clique : factor_home_) uses[size_t(clique)] += 1.0;
  for (const Clique& clique : cliques_)
    if (clique.parent >= 0) uses[size_t(clique.parent)] += 2.0;
  for (size_t c = 0; c < cliques_.size(); ++c) {
    double entries = 1.0;
    for (int32_t v : cliques_[c].variables) entries *= s().cards[size_t(v)];
    operations_ += uses[c] * entries;
  }
}

void CliqueTree::lay_out() {
  int64_t start = 0;
  for (Clique& clique : cliques_) {
    clique.start = start;
    clique.message = messages_;
    for (size_t k = 0; k < clique.variables.size(); ++k) {
      const int64_t card = s().cards[size_t(clique.variables[k])];
      (int32_t(k) < clique.separator ? clique.rows : clique.columns) *= card;
    }
    start += clique.rows * clique.columns;
    messages_ += clique.rows;
  }
  for (Clique& clique : cliques_)
    if (clique.parent >= 0)
      clique.to_parent = walk_to(cliques_[size_t(clique.parent)].variables, clique.variables.data(), clique.separator);
  members_.resize(cliques_.size());
  for (int32_t v = 0; v < s().n; ++v) members_[size_t(home_[size_t(v)])].variables.push_back(v);
  for (int64_t f = 0; f < s().m; ++f) members_[size_t(factor_home_[size_t(f)])].factors.push_back(f);
  for (size_t c = 0; c < cliques_.size(); ++c)
    if (cliques_[c].parent >= 0) members_[size_t(cliques_[c].parent)].children.push_back(int32_t(c));
}

// Through a table over `large`, with the place in one over `small`.
Walk CliqueTree::walk_to(const std::vector<int32_t>& large, const int32_t* small, int count) const {
  Walk walk;
  for (int32_t v : large) {
    int64_t step = 0, stride = 1;
    for (int k = count - 1; k >= 0; --k) {
      if (small[k] == v) step = stride;
      stride *= s().cards[size_t(small[k])];
    }
    walk.add_axis(s().cards[size_t(v)], step);
  }
  return walk;
}

// Tables of all cliques with the log-potentials of their factors.
std::vector<double> CliqueTree::filled(const FlatGraph& graph) const {
  std::vector<double> tables(size_t(size_), 0.0);
  for (int32_t v = 0; v < s().n; ++v) {
    const Clique& clique = cliques_[size_t(home_[size_t(v)])];
    add_into_large(walk_to(clique.variables, &v, 1), tables.data() + clique.start,
                   graph.unary() + s().state_starts[size_t(v)]);
  }
  for (int64_t f = 0; f < s().m; ++f) {
    const Clique& clique = cliques_[size_t(factor_home_[size_t(f)])];
    const Walk walk = walk_to(clique.variables, s().scopes.data() + s().scope_starts[size_t(f)], s().arity(f));
    add_into_large(walk, tables.data() + clique.start, graph.table(f));
  }
  return tables;
}

// The tables that are multiplied into a clique: potentials of variables and factors, messages of children.
std::vector<CliqueTree::Part> CliqueTree::parts_of(size_t c, const FlatGraph& graph,
                                                   const std::vector<std::vector<double>>& messages) const {
  std::vector<Part> parts;
  auto add = [&](const int32_t* scope, int64_t arity, const double* values, int64_t count) {
    Part part{{scope, scope + arity}, values, count, 0.0, 0.0, {}};
    std::tie(part.low, part.high) = finite_range(values, count);
    parts.push_back(std::move(part));
  };
  for (const int32_t& v : members_[c].variables)
    add(&v, 1, graph.unary() + s().state_starts[size_t(v)], s().cards[size_t(v)]);
  for (int64_t f : members_[c].factors)
    add(s().scopes.data() + s().scope_starts[size_t(f)], s().arity(f), graph.table(f), s().table_sizes[size_t(f)]);
  for (int32_t child : members_[c].children) {
    const Clique& from = cliques_[size_t(child)];
    add(from.variables.data(), from.separator, messages[size_t(child)].data(), from.rows);
  }
  return parts;
}

// Multiplies parts, as probabilities divided by their largest, into the table of a clique. A part whose variables are
// all in another one goes into that, which is smaller than the table; one without differences is left out.
void CliqueTree::multiply_parts(const Clique& clique, std::vector<Part>& parts, double* table) const {
  std::vector<Part*> left;
  for (Part& part : parts) {
    if (part.low == part.high &&
        std::find(part.values, part.values + part.count, kImpossible) == part.values + part.count)
      continue;
    part.scaled.assign(part.values, part.values + part.count);
    for (double& x : part.scaled) x -= part.high;
    loops<FactorLoops>().exp_all(part.scaled.data(), part.count);
    left.push_back(&part);
  }
  std::stable_sort(left.begin(), left.end(), [](const Part* a, const Part* b) { return a->count < b->count; });
  std::fill(table, table + clique.rows * clique.columns, 1.0);
  for (size_t i = 0; i < left.size(); ++i) {
    const Part& part = *left[i];
    Part* into = nullptr;
    for (size_t j = i + 1; j < left.size() && into == nullptr; ++j) {
      const auto& scope = left[j]->scope;
      const bool inside = std::all_of(part.scope.begin(), part.scope.end(), [&](int32_t v) {
        return std::find(scope.begin(), scope.end(), v) != scope.end();
      });
      if (inside) into = left[j];
    }
    const std::vector<int32_t>& scope = into ? into->scope : clique.variables;
    multiply_into_large(walk_to(scope, part.scope.data(), int(part.scope.size())), into ? into->scaled.data() : table,
                        part.scaled.data());
  }
}

// Fills the table of every clique with p(y | s) and returns log Z.
//
// A clique is computed with probabilities where no product of its entries above 0 can underflow, which the ranges of
// the tables that go into it show before; else with logarithms.
double CliqueTree::collect_sums(const FlatGraph& graph, std::vector<double>& tables) const {
  double total = graph.constant();
  int64_t since = 0;
  std::vector<std::vector<double>> messages(cliques_.size());
  for (size_t c = 0; c < cliques_.size(); ++c) {
    const Clique& clique = cliques_[c];
    double* table = tables.data() + clique.start;
    std::vector<Part> parts = parts_of(c, graph, messages);
    std::vector<double>& message = messages[c];
    message.resize(size_t(clique.rows));
    double offset = 0.0, range = 0.0;
    for (const Part& part : parts) {
      offset += part.high;
      range += part.high - part.low;
    }
    if ((since += clique.rows * clique.columns) > kEntriesBetweenSignals) check_signals(), since = 0;
    if (range < kSafeRange) {
      multiply_parts(clique, parts, table);
      divide_rows(table, clique.rows, clique.columns, offset, message.data());
    } else {
      std::fill(table, table + clique.rows * clique.columns, 0.0);
      for (const Part& part : parts)
        add_into_large(walk_to(clique.variables, part.scope.data(), int(part.scope.size())), table, part.values);
      normalise_rows(table, clique.rows, clique.columns, message.data());
    }
    for (int32_t child : members_[c].children) std::vector<double>().swap(messages[size_t(child)]);
    if (clique.parent < 0) total += message[0];
  }
  return total;
}

double CliqueTree::collect_maxima(const FlatGraph& graph, std::vector<double>& tables) const {
  double total = graph.constant();
  std::vector<double> message;
  for (const Clique& clique : cliques_) {
    message.resize(size_t(clique.rows));
    for (int64_t r = 0; r < clique.rows; ++r)
      message[size_t(r)] = row_max(tables.data() + clique.start + r * clique.columns, clique.columns);
    if (clique.parent < 0)
      total += message[0];
    else
      add_into_large(clique.to_parent, tables.data() + cliques_[size_t(clique.parent)].start, message.data());
  }
  return total;
}

// Turns p(y | s) of a clique into p(s, y), and sums that to the marginals of y, once its parent's table is p.
void CliqueTree::distribute(size_t c, std::vector<double>& tables, std::vector<double>& marginals) const {
  const Clique& clique = cliques_[c];
  double* table = tables.data() + clique.start;
  std::vector<double> separator(size_t(clique.rows), clique.parent < 0 ? 1.0 : 0.0), inner(size_t(clique.columns), 0.0);
  if (clique.parent >= 0)
    sum_into_small(clique.to_parent, tables.data() + cliques_[size_t(clique.parent)].start, separator.data());
  for (int64_t r = 0; r < clique.rows; ++r) {
    double* row = table + r * clique.columns;
    const double p = separator[size_t(r)];
    for (int64_t k = 0; k < clique.columns; ++k) {
      row[k] *= p;
      inner[size_t(k)] += row[k];
    }
  }
  const std::vector<int32_t> variables(clique.variables.begin() + clique.separator, clique.variables.end());
  for (int32_t v : variables)
    sum_into_small(walk_to(variables, &v, 1), inner.data(), marginals.data() + s().state_starts[size_t(v)]);
}

// (beliefs of all cliques, marginals of all variables, log Z); the first two are empty where log Z is −inf.
nb::tuple CliqueTree::sum(const FlatGraph& graph) const {
  check(graph);
  std::vector<double> tables, marginals;
  double total;
  {
    nb::gil_scoped_release free;
    tables.resize(size_t(size_));
    total = collect_sums(graph, tables);
    if (total == kImpossible) {
      tables.clear();
    } else {
      marginals.assign(size_t(s().states()), 0.0);
      int64_t since = 0;
      for (size_t c = cliques_.size(); c-- > 0;) {
        if ((since += cliques_[c].rows * cliques_[c].columns) > kEntriesBetweenSignals) check_signals(), since = 0;
        distribute(c, tables, marginals);
      }
    }
  }
  return nb::make_tuple(to_numpy(std::move(tables)), to_numpy(std::move(marginals)), total);
}

nb::object CliqueTree::factor_beliefs(In1<double> beliefs) const {
  require(fits_ && double(beliefs.shape(0)) == size_, "beliefs must be those of this tree");
  std::vector<double> joint(size_t(s().belief_starts[size_t(s().m)]), 0.0);
  {
    nb::gil_scoped_release free;
    for (int64_t f = 0; f < s().m; ++f) {
      const Clique& clique = cliques_[size_t(factor_home_[size_t(f)])];
      const Walk walk = walk_to(clique.variables, s().scopes.data() + s().scope_starts[size_t(f)], s().arity(f));
      sum_into_small(walk, beliefs.data() + clique.start, joint.data() + s().belief_starts[size_t(f)]);
    }
  }
  return to_numpy(std::move(joint));
}

nb::tuple CliqueTree::sample(const FlatGraph& graph, int64_t count, uint64_t seed) const {
  check(graph);
  require(count >= 0 && (s().n == 0 || count <= (int64_t(1) << 40) / s().n), "too many samples");
  std::vector<int32_t> drawn(size_t(count * s().n), 0);
  double total;
  {
    nb::gil_scoped_release free;
    std::vector<double> tables(size_t(size_), 0.0);
    total = collect_sums(graph, tables);
    std::mt19937_64 random(seed);
    for (int64_t i = 0; i < count && total != kImpossible; ++i) {
      int32_t* x = drawn.data() + i * s().n;
      for (size_t c = cliques_.size(); c-- > 0;) {
        const Clique& clique = cliques_[c];
        const double* row = tables.data() + clique.start + row_of(clique, x) * clique.columns;
        double left = double(random() >> 11) * 0x1p-53;
        int64_t column = 0;
        for (int64_t k = 0; k < clique.columns; ++k) {
          if (row[k] <= 0.0) continue;
          column = k;  // the last possible one if rounding leaves something over
          if (left < row[k]) break;
          left -= row[k];
        }
        set_column(clique, column, x);
      }
    }
  }
  return nb::make_tuple(to_numpy(std::move(drawn)), total);
}

// ---------------------------------------------------------------------------------------------- the k best

// All assignments but those found are split into sets: "as this solution up to clique i, there none of these columns".
// The best of each set is known from the collected tables alone: below the separator nothing is fixed, so the rest
// follows greedily, and what is lost is row maximum − entry, added up over the cliques.
struct Candidate {
  double loss;
  int64_t base;    // solution that it begins as
  int64_t clique;  // place, from the root, where it differs
  int64_t column;
  std::vector<int64_t> excluded;
  // The best column of the row that is not excluded; false if none is possible.
  bool take_best(const double* row, int64_t columns, double top) {
    for (int64_t y = 0; y < columns; ++y) {
      if (row[y] == kImpossible || (column >= 0 && row[y] <= row[column])) continue;
      if (std::find(excluded.begin(), excluded.end(), y) == excluded.end()) column = y;
    }
    if (column >= 0) loss += top - row[column];
    return column >= 0;
  }
  bool operator<(const Candidate& other) const {
    return loss != other.loss ? loss > other.loss : std::tie(base, clique) > std::tie(other.base, other.clique);
  }
};

nb::tuple CliqueTree::max(const FlatGraph& graph, int64_t k) const {
  check(graph);
  require(k >= 1, "k must be at least 1");
  const int64_t n_cliques = int64_t(cliques_.size());
  std::vector<int32_t> states;
  std::vector<double> values;
  {
    nb::gil_scoped_release free;
    std::vector<double> tables = filled(graph);
    const double best = collect_maxima(graph, tables);
    std::vector<std::vector<int64_t>> columns;  // of each solution, by place from the root
    std::priority_queue<Candidate> waiting;
    if (best != kImpossible) waiting.push({0.0, -1, -1, 0, {}});
    std::vector<int32_t> x(size_t(s().n), 0);
    while (!waiting.empty() && int64_t(values.size()) < k) {
      Candidate candidate = waiting.top();
      waiting.pop();
      std::vector<int64_t> chosen(size_t(n_cliques), 0);
      const bool last = int64_t(values.size()) + 1 == k;
      double before = 0.0;
      for (int64_t i = 0; i < n_cliques; ++i) {
        const Clique& clique = cliques_[size_t(n_cliques - 1 - i)];
        const double* row = tables.data() + clique.start + row_of(clique, x.data()) * clique.columns;
        const double top = row_max(row, clique.columns);
        int64_t column = candidate.column;
        if (i < candidate.clique) column = columns[size_t(candidate.base)][size_t(i)];
        if (i > candidate.clique) column = std::max_element(row, row + clique.columns) - row;
        chosen[size_t(i)] = column;
        set_column(clique, column, x.data());
        if (!last && i >= candidate.clique) {
          Candidate next{before, int64_t(values.size()), i, -1, {}};
          if (i == candidate.clique) next.excluded = candidate.excluded;
          next.excluded.push_back(column);
          if (next.take_best(row, clique.columns, top)) waiting.push(std::move(next));
        }
        before += top - row[column];
      }
      states.insert(states.end(), x.begin(), x.end());
      values.push_back(best - candidate.loss);
      columns.push_back(std::move(chosen));
    }
  }
  return nb::make_tuple(to_numpy(std::move(states)), to_numpy(std::move(values)));
}

// ---------------------------------------------------------------------------------------------- what Python sees

nb::tuple CliqueTree::cliques() const {
  std::vector<int64_t> starts{0};
  std::vector<int32_t> variables, separators, parents;
  for (const Clique& clique : cliques_) {
    variables.insert(variables.end(), clique.variables.begin(), clique.variables.end());
    starts.push_back(int64_t(variables.size()));
    separators.push_back(clique.separator);
    parents.push_back(clique.parent);
  }
  return nb::make_tuple(to_numpy(std::move(starts)), to_numpy(std::move(variables)), to_numpy(std::move(separators)),
                        to_numpy(std::move(parents)));
}

nb::tuple CliqueTree::elimination() const {
  std::vector<int64_t> starts{0};
  std::vector<int32_t> later, order = done_.order;
  for (int32_t v : order) {
    later.insert(later.end(), done_.later[size_t(v)].begin(), done_.later[size_t(v)].end());
    starts.push_back(int64_t(later.size()));
  }
  return nb::make_tuple(to_numpy(std::move(order)), to_numpy(std::move(starts)), to_numpy(std::move(later)));
}

}  // namespace

void bind_cliques(nb::module_& m) {
  nb::class_<CliqueTree>(m, "CliqueTree")
      .def(nb::init<const FlatGraph&, const std::string&, double, bool, double>(), "graph"_a, "heuristic"_a,
           "max_size"_a, "stop_early"_a, "effort"_a = 0.25)
      .def_prop_ro("fits", &CliqueTree::fits)
      .def_prop_ro("complete", &CliqueTree::complete)
      .def_prop_ro("size", &CliqueTree::size)
      .def_prop_ro("bytes", &CliqueTree::bytes)
      .def_prop_ro("operations", &CliqueTree::operations)
      .def_prop_ro("most_variables", &CliqueTree::most_variables)
      .def("cliques", &CliqueTree::cliques)
      .def("elimination", &CliqueTree::elimination)
      .def("sum", &CliqueTree::sum, "graph"_a)
      .def("max", &CliqueTree::max, "graph"_a, "k"_a)
      .def("factor_beliefs", &CliqueTree::factor_beliefs, "beliefs"_a)
      .def("sample", &CliqueTree::sample, "graph"_a, "count"_a, "seed"_a);
}

}  // namespace mercer
