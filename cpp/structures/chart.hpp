// Charts over a weighted grammar with binary, unary and lexical rules: best tree, k best trees, log-partition and
// expected counts.
//
//   score(x, y) = Σ_{rule in y} w[rule] + Σ_{(label, i, j) bracket of y} σ[i, j, label]
//   best   V[i, j, A] = max over  A → B C at k: w + V[i, k, B] + V[k, j, C];   A → B: w + V[i, j, B];   A → x_i: w
//          (+ σ)
//   inside the same with log Σ exp for max;
//   posterior of a production = μ[A] · exp(its score − inside[A]), from the root down
//
// σ are scores of brackets (costs, span features); a weight of −inf forbids a rule. The unary rules have no cycle
// (checked when the grammar is made), so one pass in topological order closes a cell. Symbols without a label come from
// binarisation and make no bracket.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mercer {

constexpr double kForbidden = -std::numeric_limits<double>::infinity();
constexpr int32_t kUnary = -1, kLexical = -2;  // in place of a split

struct BinaryRule {
  int32_t parent, left, right, weight;  // weight: number of the user's rule; −1: score 0
};
struct UnaryRule {
  int32_t parent, child, weight;
};
struct LexicalRule {
  int32_t parent, terminal, weight;
};

struct ChartGrammar {
  int32_t n_symbols = 0, n_labels = 0, n_terminals = 0, n_weights = 0, start = 0;
  std::vector<int32_t> label;         // of each symbol, or −1
  std::vector<BinaryRule> binary;     // grouped by left child
  std::vector<int64_t> by_left;       // where the rules of a left child begin
  std::vector<int32_t> parent_rules;  // numbers of binary rules, grouped by parent
  std::vector<int64_t> by_parent;
  std::vector<UnaryRule> unary;  // children before parents; grouped by parent
  std::vector<std::pair<int32_t, int32_t>> unary_of;
  std::vector<LexicalRule> lexical;  // grouped by terminal
  std::vector<int64_t> by_terminal;

  // Groups and orders the rules; returns a symbol on a cycle of unary rules, or −1.
  int32_t prepare() {
    std::stable_sort(binary.begin(), binary.end(), [](auto& a, auto& b) { return a.left < b.left; });
    by_left = starts(binary, n_symbols, [](auto& r) { return r.left; });
    parent_rules.resize(binary.size());
    for (size_t r = 0; r < binary.size(); ++r) parent_rules[r] = int32_t(r);
    std::stable_sort(parent_rules.begin(), parent_rules.end(),
                     [&](int32_t a, int32_t b) { return binary[a].parent < binary[b].parent; });
    by_parent = starts(parent_rules, n_symbols, [&](int32_t r) { return binary[r].parent; });
    std::stable_sort(lexical.begin(), lexical.end(), [](auto& a, auto& b) { return a.terminal < b.terminal; });
    by_terminal = starts(lexical, n_terminals, [](auto& r) { return r.terminal; });
    return order_unary();
  }

 private:
  template <class Items, class Key> static std::vector<int64_t> starts(const Items& items, int32_t n, Key key) {
    std::vector<int64_t> begin(size_t(n) + 1, 0);
    for (auto& item : items) ++begin[size_t(key(item)) + 1];
    for (int32_t i = 0; i < n; ++i) begin[i + 1] += begin[i];
    return begin;
  }

  int32_t order_unary() {
    std::vector<int32_t> open(n_symbols, 0), rank(n_symbols, 0), ready;
    for (auto& r : unary) ++open[r.parent];
    std::vector<std::vector<int32_t>> parents(n_symbols);
    for (auto& r : unary) parents[r.child].push_back(r.parent);
    for (int32_t s = 0; s < n_symbols; ++s)
      if (!open[s]) ready.push_back(s);
    for (size_t at = 0; at < ready.size(); ++at) {
      rank[ready[at]] = int32_t(at);
      for (int32_t p : parents[ready[at]])
        if (--open[p] == 0) ready.push_back(p);
    }
    if (int32_t(ready.size()) < n_symbols)
      for (int32_t s = 0; s < n_symbols; ++s)
        if (open[s]) return s;
    std::stable_sort(unary.begin(), unary.end(), [&](auto& a, auto& b) { return rank[a.parent] < rank[b.parent]; });
    unary_of.assign(n_symbols, {0, 0});
    for (size_t r = 0; r < unary.size(); ++r) {
      auto& range = unary_of[unary[r].parent];
      if (range.second == 0) range.first = int32_t(r);
      range.second = int32_t(r) + 1;
    }
    return -1;
  }
};

// The weights as they stand on the chart's own rules.
struct RuleScores {
  std::vector<double> binary, unary, lexical;

  RuleScores(const ChartGrammar& g, const double* w) {
    auto take = [&](const auto& rules, std::vector<double>& out) {
      out.resize(rules.size());
      for (size_t r = 0; r < rules.size(); ++r) out[r] = rules[r].weight < 0 ? 0.0 : w[rules[r].weight];
    };
    take(g.binary, binary);
    take(g.unary, unary);
    take(g.lexical, lexical);
  }
};

struct Sentence {
  const int32_t* words;
  int32_t n;
  const double* spans;  // σ: cells × labels, or null
  bool count_lexical;   // whether a label right above its word is a bracket

  int64_t cell(int32_t i, int32_t j) const { return int64_t(i) * n - int64_t(i) * (i - 1) / 2 + (j - i - 1); }
  static int64_t cells(int64_t n) { return n * (n + 1) / 2; }
};

struct Back {
  int32_t rule, split;
};

// ---------------------------------------------------------------------------------------------- filling

// What all charts share: values of the closed cells, and which symbols a cell reached.
struct Cells {
  int64_t n_symbols = 0, at = 0;
  double* open_row = nullptr;
  std::vector<double> values;
  std::vector<std::vector<int32_t>> reached;

  void start(const ChartGrammar& g, const Sentence& x) {
    n_symbols = g.n_symbols;
    const int64_t cells = Sentence::cells(x.n);
    values.assign(size_t(cells * n_symbols), kForbidden);
    if (int64_t(reached.size()) < cells) reached.resize(size_t(cells));
    for (int64_t c = 0; c < cells; ++c) reached[size_t(c)].clear();
  }
  const double* row(int64_t cell) const { return values.data() + cell * n_symbols; }
  void open(int64_t cell) {
    at = cell;
    open_row = values.data() + cell * n_symbols;
  }
};

struct MaxCells : Cells {
  std::vector<Back> back;

  void start(const ChartGrammar& g, const Sentence& x) {
    Cells::start(g, x);
    back.resize(values.size());
  }
  void add(int32_t A, double value, int32_t rule, int32_t split) {
    if (!(value > open_row[A])) return;
    if (open_row[A] == kForbidden) reached[size_t(at)].push_back(A);
    open_row[A] = value;
    back[size_t(at * n_symbols + A)] = {rule, split};
  }
  void shift(int32_t A, double by) { open_row[A] += by; }
  double current(int32_t A) const { return open_row[A]; }
  void close() {}
};

// log Σ exp with a running maximum: the row holds the maximum, `sums` the sum relative to it, until the cell is closed.
struct SumCells : Cells {
  std::vector<double> sums;

  void start(const ChartGrammar& g, const Sentence& x) {
    Cells::start(g, x);
    sums.assign(size_t(n_symbols), 0.0);
  }
  void add(int32_t A, double value, int32_t, int32_t) {
    if (value == kForbidden) return;
    double& top = open_row[A];
    if (top == kForbidden) {
      reached[size_t(at)].push_back(A);
      top = value;
      sums[size_t(A)] = 1.0;
    } else if (value <= top) {
      sums[size_t(A)] += std::exp(value - top);
    } else {
      sums[size_t(A)] = sums[size_t(A)] * std::exp(top - value) + 1.0;
      top = value;
    }
  }
  void shift(int32_t A, double by) { open_row[A] += by; }
  double current(int32_t A) const {
    return open_row[A] == kForbidden ? kForbidden : open_row[A] + std::log(sums[size_t(A)]);
  }
  void close() {
    for (int32_t A : reached[size_t(at)])
      if (open_row[A] != kForbidden) open_row[A] += std::log(sums[size_t(A)]);
  }
};

inline double span_score(const ChartGrammar& g, const Sentence& x, int64_t cell, int32_t A) {
  return x.spans && g.label[A] >= 0 ? x.spans[cell * g.n_labels + g.label[A]] : 0.0;
}

template <class Chart>
void close_unary(const ChartGrammar& g, const RuleScores& w, const Sentence& x, int64_t cell, Chart& chart) {
  for (size_t r = 0; r < g.unary.size(); ++r) {
    const UnaryRule& rule = g.unary[r];
    const double below = chart.current(rule.child);
    if (below != kForbidden)
      chart.add(rule.parent, below + w.unary[r] + span_score(g, x, cell, rule.parent), int32_t(r), kUnary);
  }
}

template <class Chart> void fill(const ChartGrammar& g, const RuleScores& w, const Sentence& x, Chart& chart) {
  chart.start(g, x);
  for (int32_t i = 0; i < x.n; ++i) {
    const int64_t cell = x.cell(i, i + 1);
    chart.open(cell);
    for (int64_t r = g.by_terminal[x.words[i]]; r < g.by_terminal[x.words[i] + 1]; ++r) {
      const int32_t A = g.lexical[r].parent;
      chart.add(A, w.lexical[r] + (x.count_lexical ? span_score(g, x, cell, A) : 0.0), int32_t(r), kLexical);
    }
    close_unary(g, w, x, cell, chart);
    chart.close();
  }
  for (int32_t width = 2; width <= x.n; ++width) {
    for (int32_t i = 0; i + width <= x.n; ++i) {
      const int32_t j = i + width;
      const int64_t cell = x.cell(i, j);
      chart.open(cell);
      for (int32_t k = i + 1; k < j; ++k) {
        const int64_t left_cell = x.cell(i, k);
        const double *left = chart.row(left_cell), *right = chart.row(x.cell(k, j));
        for (int32_t B : chart.reached[size_t(left_cell)])
          for (int64_t r = g.by_left[B]; r < g.by_left[B + 1]; ++r)
            chart.add(g.binary[r].parent, left[B] + right[g.binary[r].right] + w.binary[r], int32_t(r), k);
      }
      if (x.spans)
        for (int32_t A : chart.reached[size_t(cell)]) chart.shift(A, span_score(g, x, cell, A));
      close_unary(g, w, x, cell, chart);
      chart.close();
    }
  }
}

// ---------------------------------------------------------------------------------------------- best tree

// Appends the user's rules of the best tree, leftmost first: the order in which a tree is rebuilt from them.
inline void best_derivation(const ChartGrammar& g, const Sentence& x, const MaxCells& chart,
                            std::vector<int32_t>& out) {
  struct Open {
    int32_t i, j, A;
  };
  std::vector<Open> open{{0, x.n, g.start}};
  while (!open.empty()) {
    const Open item = open.back();
    open.pop_back();
    const Back back = chart.back[size_t(x.cell(item.i, item.j) * chart.n_symbols + item.A)];
    int32_t weight;
    if (back.split == kLexical) {
      weight = g.lexical[back.rule].weight;
    } else if (back.split == kUnary) {
      weight = g.unary[back.rule].weight;
      open.push_back({item.i, item.j, g.unary[back.rule].child});
    } else {
      const BinaryRule& rule = g.binary[back.rule];
      weight = rule.weight;
      open.push_back({back.split, item.j, rule.right});
      open.push_back({item.i, back.split, rule.left});
    }
    if (weight >= 0) out.push_back(weight);
  }
}

inline double root_value(const ChartGrammar& g, const Sentence& x, const Cells& chart) {
  return x.n ? chart.row(x.cell(0, x.n))[g.start] : kForbidden;
}

// ---------------------------------------------------------------------------------------------- k best trees

// Lazy enumeration from the root [Huang2005]: an item opens its next derivation only when a larger one asks
// for it.
class KBest {
 public:
  KBest(const ChartGrammar& g, const RuleScores& w, const Sentence& x, const MaxCells& chart)
      : g_(g), w_(w), x_(x), chart_(chart) {}

  // The score of the k-th best tree (from 0), or −inf where there are fewer.
  double score(int32_t k) {
    return has(0, x_.n, g_.start, k) ? items_[key(0, x_.n, g_.start)].done[size_t(k)].score : kForbidden;
  }

  void derivation(int32_t k, std::vector<int32_t>& out) { emit(0, x_.n, g_.start, k, out); }

 private:
  struct Edge {
    int32_t rule, split;
  };
  struct Candidate {
    double score;
    int32_t edge, left, right;                  // ranks of the parts
    bool operator<(const Candidate& o) const {  // larger score first; ties in the order of the edges
      if (score != o.score) return score < o.score;
      if (edge != o.edge) return edge > o.edge;
      return left != o.left ? left > o.left : right > o.right;
    }
  };
  struct Item {
    bool open = false;
    std::vector<Edge> edges;
    std::vector<Candidate> done;
    std::priority_queue<Candidate> waiting;
  };

  int64_t key(int32_t i, int32_t j, int32_t A) const { return x_.cell(i, j) * chart_.n_symbols + A; }

  double part(int32_t i, int32_t j, int32_t A, int32_t rank) {
    return rank == 0 ? chart_.row(x_.cell(i, j))[A] : items_[key(i, j, A)].done[size_t(rank)].score;
  }

  double value(int32_t i, int32_t j, int32_t A, const Edge& e, int32_t left, int32_t right) {
    const double sigma = span_score(g_, x_, x_.cell(i, j), A);
    if (e.split == kLexical) return w_.lexical[e.rule] + (x_.count_lexical ? sigma : 0.0);
    if (e.split == kUnary) return part(i, j, g_.unary[e.rule].child, left) + w_.unary[e.rule] + sigma;
    const BinaryRule& r = g_.binary[e.rule];
    return part(i, e.split, r.left, left) + part(e.split, j, r.right, right) + w_.binary[e.rule] + sigma;
  }

  void open(int32_t i, int32_t j, int32_t A, Item& item) {
    item.open = true;
    auto take = [&](Edge e) {
      const double score = value(i, j, A, e, 0, 0);
      if (score == kForbidden) return;
      item.edges.push_back(e);
      item.waiting.push({score, int32_t(item.edges.size()) - 1, 0, 0});
    };
    if (j == i + 1)
      for (int64_t r = g_.by_terminal[x_.words[i]]; r < g_.by_terminal[x_.words[i] + 1]; ++r)
        if (g_.lexical[r].parent == A) take({int32_t(r), kLexical});
    for (int32_t k = i + 1; k < j; ++k)
      for (int64_t at = g_.by_parent[A]; at < g_.by_parent[A + 1]; ++at) take({g_.parent_rules[at], k});
    for (int32_t r = g_.unary_of[A].first; r < g_.unary_of[A].second; ++r) take({r, kUnary});
  }

  bool has(int32_t i, int32_t j, int32_t A, int32_t rank) {
    if (chart_.row(x_.cell(i, j))[A] == kForbidden) return false;
    Item& item = items_[key(i, j, A)];  // nodes of the map stay where they are
    if (!item.open) open(i, j, A, item);
    while (int32_t(item.done.size()) <= rank) {
      if (!item.done.empty()) expand(i, j, A, item);
      if (item.waiting.empty()) return false;
      item.done.push_back(item.waiting.top());
      item.waiting.pop();
    }
    return true;
  }

  // The neighbours of the derivation taken last; (a, b + 1) from (a, b), and (a + 1, 0) from (a, 0): each pair once.
  void expand(int32_t i, int32_t j, int32_t A, Item& item) {
    const Candidate last = item.done.back();
    const Edge e = item.edges[size_t(last.edge)];
    if (e.split == kLexical) return;
    auto push = [&](int32_t left, int32_t right) {
      item.waiting.push({value(i, j, A, e, left, right), last.edge, left, right});
    };
    if (e.split == kUnary) {
      if (has(i, j, g_.unary[e.rule].child, last.left + 1)) push(last.left + 1, 0);
      return;
    }
    const BinaryRule& r = g_.binary[e.rule];
    if (has(e.split, j, r.right, last.right + 1)) push(last.left, last.right + 1);
    if (last.right == 0 && has(i, e.split, r.left, last.left + 1)) push(last.left + 1, 0);
  }

  void emit(int32_t i, int32_t j, int32_t A, int32_t rank, std::vector<int32_t>& out) {
    has(i, j, A, rank);
    const Item& item = items_[key(i, j, A)];
    const Candidate c = item.done[size_t(rank)];
    const Edge e = item.edges[size_t(c.edge)];
    const int32_t weight = e.split == kLexical ? g_.lexical[e.rule].weight
                           : e.split == kUnary ? g_.unary[e.rule].weight
                                               : g_.binary[e.rule].weight;
    if (weight >= 0) out.push_back(weight);
    if (e.split == kLexical) return;
    if (e.split == kUnary) return emit(i, j, g_.unary[e.rule].child, c.left, out);
    emit(i, e.split, g_.binary[e.rule].left, c.left, out);
    emit(e.split, j, g_.binary[e.rule].right, c.right, out);
  }

  const ChartGrammar& g_;
  const RuleScores& w_;
  const Sentence& x_;
  const MaxCells& chart_;
  std::unordered_map<int64_t, Item> items_;
};

// ---------------------------------------------------------------------------------------------- expectations

// Adds the expected number of each rule to `counts`, and of each bracket to `brackets` (cells × labels) where given.
inline void expectations(const ChartGrammar& g, const RuleScores& w, const Sentence& x, const SumCells& inside,
                         double* counts, double* brackets) {
  const int64_t S = inside.n_symbols;
  std::vector<double> mu(size_t(Sentence::cells(x.n) * S), 0.0);
  mu[size_t(x.cell(0, x.n) * S + g.start)] = 1.0;
  auto count = [&](int32_t weight, double p) {
    if (weight >= 0) counts[weight] += p;
  };
  for (int32_t width = x.n; width >= 1; --width) {
    for (int32_t i = 0; i + width <= x.n; ++i) {
      const int32_t j = i + width;
      const int64_t cell = x.cell(i, j);
      double* m = mu.data() + cell * S;
      const double* in = inside.row(cell);
      for (int64_t r = int64_t(g.unary.size()) - 1; r >= 0; --r) {
        const UnaryRule& rule = g.unary[r];
        if (m[rule.parent] <= 0 || in[rule.child] == kForbidden) continue;
        const double p = m[rule.parent] *
                         std::exp(in[rule.child] + w.unary[r] + span_score(g, x, cell, rule.parent) - in[rule.parent]);
        m[rule.child] += p;
        count(rule.weight, p);
      }
      if (brackets)
        for (int32_t A : inside.reached[size_t(cell)])
          if (g.label[A] >= 0) brackets[cell * g.n_labels + g.label[A]] += m[A];
      if (width == 1) {
        for (int64_t r = g.by_terminal[x.words[i]]; r < g.by_terminal[x.words[i] + 1]; ++r) {
          const int32_t A = g.lexical[r].parent;
          if (m[A] <= 0) continue;
          const double sigma = x.count_lexical ? span_score(g, x, cell, A) : 0.0;
          const double p = m[A] * std::exp(w.lexical[r] + sigma - in[A]);
          count(g.lexical[r].weight, p);
          if (brackets && !x.count_lexical && g.label[A] >= 0) brackets[cell * g.n_labels + g.label[A]] -= p;
        }
        continue;
      }
      for (int32_t k = i + 1; k < j; ++k) {
        const int64_t left_cell = x.cell(i, k), right_cell = x.cell(k, j);
        const double *left = inside.row(left_cell), *right = inside.row(right_cell);
        double *m_left = mu.data() + left_cell * S, *m_right = mu.data() + right_cell * S;
        for (int32_t B : inside.reached[size_t(left_cell)])
          for (int64_t r = g.by_left[B]; r < g.by_left[B + 1]; ++r) {
            const BinaryRule& rule = g.binary[r];
            if (m[rule.parent] <= 0 || right[rule.right] == kForbidden) continue;
            const double score = left[B] + right[rule.right] + w.binary[r] + span_score(g, x, cell, rule.parent);
            const double p = m[rule.parent] * std::exp(score - in[rule.parent]);
            m_left[B] += p;
            m_right[rule.right] += p;
            count(rule.weight, p);
          }
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------- 1 − F1

// argmax_y score(x, y) + 1 − F1(y*, y), exactly. F1 = 2 c / (p + t) with p brackets of y, c of them true, t true ones:
// it does not add up over brackets, so the chart keeps for each item the partial trees that differ in (score, p, c).
// The cost rises with p and falls with c: a partial tree with no larger score, no more brackets and no fewer true ones
// than another can never win, and neither can one whose score + best rest + 1 − 2 c / (p_max + t) is below the value of
// a tree in hand.
class F1Search {
 public:
  F1Search(const ChartGrammar& g, const RuleScores& w, const Sentence& x, const uint8_t* truth, int64_t n_true)
      : g_(g), w_(w), x_(x), truth_(truth), t_(double(n_true)), S_(g.n_symbols) {}

  // The value of the best tree, whose rules are appended to `out`; −inf where there is no tree.
  double run(std::vector<int32_t>& out) {
    fill(g_, w_, x_, best_);
    if (root_value(g_, x_, best_) == kForbidden) return kForbidden;
    most_brackets();
    outside();
    double incumbent = kForbidden;
    std::vector<int32_t> tree;
    // Starting values: the best tree, then best trees under the cost made linear at (p, c) of the last one.
    double p = 0, c = 0;
    for (int round = 0; round < 3; ++round) {
      std::vector<int32_t> found;
      const double value = linear_step(round, p, c, found);
      if (!(value > incumbent)) break;
      incumbent = value;
      tree = found;
    }
    grow(incumbent);
    const auto& roots = fronts_[size_t(x_.cell(0, x_.n) * S_ + g_.start)];
    int32_t winner = -1;
    for (size_t e = 0; e < roots.size(); ++e) {
      const double value = roots[e].score + cost(roots[e].p, roots[e].c);
      if (value > incumbent) {
        incumbent = value;
        winner = int32_t(e);
      }
    }
    if (winner < 0)
      out.insert(out.end(), tree.begin(), tree.end());
    else
      emit(0, x_.n, g_.start, winner, out);
    return incumbent;
  }

 private:
  struct Entry {
    double score;
    int32_t p, c, rule, split, left, right;
  };

  double cost(double p, double c) const { return p + t_ > 0 ? 1.0 - 2.0 * c / (p + t_) : 0.0; }
  bool is_true(int64_t cell, int32_t A) const { return truth_[cell * g_.n_labels + g_.label[A]] != 0; }

  // Brackets that a production of A adds in a cell: (1 or 0, of them true).
  std::pair<int32_t, int32_t> bracket(int64_t cell, int32_t A, bool lexical) const {
    if (g_.label[A] < 0 || (lexical && !x_.count_lexical)) return {0, 0};
    return {1, is_true(cell, A) ? 1 : 0};
  }

  double sigma(int64_t cell, int32_t A, bool lexical) const {
    return lexical && !x_.count_lexical ? 0.0 : span_score(g_, x_, cell, A);
  }

  void most_brackets() {
    RuleScores flat = w_;
    for (auto* list : {&flat.binary, &flat.unary, &flat.lexical})
      for (double& score : *list) score = score == kForbidden ? kForbidden : 0.0;
    std::vector<double> ones(size_t(Sentence::cells(x_.n) * g_.n_labels), 1.0);
    Sentence counted = x_;
    counted.spans = ones.data();
    MaxCells chart;
    fill(g_, flat, counted, chart);
    p_max_ = root_value(g_, counted, chart);
  }

  double linear_step(int round, double& p, double& c, std::vector<int32_t>& found) {
    MaxCells chart;
    const MaxCells* used = &best_;
    if (round) {
      const double q = p + t_;
      const double per_bracket = q > 0 ? 2 * c / (q * q) : 0.0, per_true = q > 0 ? -2 / q : 0.0;
      std::vector<double> spans(size_t(Sentence::cells(x_.n) * g_.n_labels));
      for (size_t s = 0; s < spans.size(); ++s)
        spans[s] = per_bracket + (truth_[s] ? per_true : 0.0) + (x_.spans ? x_.spans[s] : 0.0);
      Sentence costed = x_;
      costed.spans = spans.data();
      fill(g_, w_, costed, chart);
      used = &chart;
    }
    double score = 0;
    int64_t brackets = 0, right = 0;
    measure(*used, score, brackets, right);
    p = double(brackets);
    c = double(right);
    best_derivation(g_, x_, *used, found);
    return score + cost(p, c);
  }

  // Score without costs, brackets and true brackets of the tree that the chart's back pointers hold.
  void measure(const MaxCells& chart, double& score, int64_t& p, int64_t& c) const {
    struct Open {
      int32_t i, j, A;
    };
    std::vector<Open> open{{0, x_.n, g_.start}};
    while (!open.empty()) {
      const Open item = open.back();
      open.pop_back();
      const int64_t cell = x_.cell(item.i, item.j);
      const Back back = chart.back[size_t(cell * S_ + item.A)];
      const auto [one, hit] = bracket(cell, item.A, back.split == kLexical);
      p += one;
      c += hit;
      score += sigma(cell, item.A, back.split == kLexical);
      if (back.split == kLexical) {
        score += w_.lexical[back.rule];
      } else if (back.split == kUnary) {
        score += w_.unary[back.rule];
        open.push_back({item.i, item.j, g_.unary[back.rule].child});
      } else {
        score += w_.binary[back.rule];
        open.push_back({item.i, back.split, g_.binary[back.rule].left});
        open.push_back({back.split, item.j, g_.binary[back.rule].right});
      }
    }
  }

  // The best score of what surrounds an item.
  void outside() {
    outside_.assign(best_.values.size(), kForbidden);
    outside_[size_t(x_.cell(0, x_.n) * S_ + g_.start)] = 0.0;
    auto raise = [](double& to, double value) { to = std::max(to, value); };
    for (int32_t width = x_.n; width >= 1; --width)
      for (int32_t i = 0; i + width <= x_.n; ++i) {
        const int32_t j = i + width;
        const int64_t cell = x_.cell(i, j);
        double* out = outside_.data() + cell * S_;
        for (int64_t r = int64_t(g_.unary.size()) - 1; r >= 0; --r) {
          const int32_t A = g_.unary[r].parent;
          raise(out[g_.unary[r].child], out[A] + w_.unary[r] + sigma(cell, A, false));
        }
        for (int32_t k = i + 1; k < j; ++k) {
          const int64_t lc = x_.cell(i, k), rc = x_.cell(k, j);
          const double *left = best_.row(lc), *right = best_.row(rc);
          for (int32_t B : best_.reached[size_t(lc)])
            for (int64_t r = g_.by_left[B]; r < g_.by_left[B + 1]; ++r) {
              const BinaryRule& rule = g_.binary[r];
              const double above = out[rule.parent] + w_.binary[r] + sigma(cell, rule.parent, false);
              if (above == kForbidden || right[rule.right] == kForbidden) continue;
              raise(outside_[size_t(lc * S_ + B)], above + right[rule.right]);
              raise(outside_[size_t(rc * S_ + rule.right)], above + left[B]);
            }
        }
      }
  }

  void offer(int64_t cell, int32_t A, Entry e, bool lexical) {
    const auto [one, hit] = bracket(cell, A, lexical);
    e.p += one;
    e.c += hit;
    e.score += sigma(cell, A, lexical);
    const double bound = e.score + outside_[size_t(cell * S_ + A)] + cost(p_max_, e.c);
    if (!(bound > incumbent_)) return;
    auto& front = fronts_[size_t(cell * S_ + A)];
    for (const Entry& f : front)
      if (f.score >= e.score && f.p >= e.p && f.c <= e.c) return;
    front.erase(std::remove_if(front.begin(), front.end(),
                               [&](const Entry& f) { return e.score >= f.score && e.p >= f.p && e.c <= f.c; }),
                front.end());
    front.push_back(e);
  }

  void grow(double incumbent) {
    incumbent_ = incumbent;
    fronts_.assign(best_.values.size(), {});
    for (int32_t width = 1; width <= x_.n; ++width)
      for (int32_t i = 0; i + width <= x_.n; ++i) {
        const int32_t j = i + width;
        const int64_t cell = x_.cell(i, j);
        if (width == 1)
          for (int64_t r = g_.by_terminal[x_.words[i]]; r < g_.by_terminal[x_.words[i] + 1]; ++r)
            offer(cell, g_.lexical[r].parent, {w_.lexical[r], 0, 0, int32_t(r), kLexical, 0, 0}, true);
        for (int32_t k = i + 1; k < j; ++k) {
          const int64_t lc = x_.cell(i, k), rc = x_.cell(k, j);
          for (int32_t B : best_.reached[size_t(lc)]) {
            const auto& left = fronts_[size_t(lc * S_ + B)];
            if (left.empty()) continue;
            for (int64_t r = g_.by_left[B]; r < g_.by_left[B + 1]; ++r) {
              const auto& right = fronts_[size_t(rc * S_ + g_.binary[r].right)];
              for (size_t a = 0; a < left.size(); ++a)
                for (size_t b = 0; b < right.size(); ++b)
                  offer(cell, g_.binary[r].parent,
                        {left[a].score + right[b].score + w_.binary[r], left[a].p + right[b].p, left[a].c + right[b].c,
                         int32_t(r), k, int32_t(a), int32_t(b)},
                        false);
            }
          }
        }
        for (size_t r = 0; r < g_.unary.size(); ++r) {
          const auto& below = fronts_[size_t(cell * S_ + g_.unary[r].child)];
          for (size_t a = 0; a < below.size(); ++a)
            offer(cell, g_.unary[r].parent,
                  {below[a].score + w_.unary[r], below[a].p, below[a].c, int32_t(r), kUnary, int32_t(a), 0}, false);
        }
      }
  }

  void emit(int32_t i, int32_t j, int32_t A, int32_t entry, std::vector<int32_t>& out) const {
    const Entry& e = fronts_[size_t(x_.cell(i, j) * S_ + A)][size_t(entry)];
    const int32_t weight = e.split == kLexical ? g_.lexical[e.rule].weight
                           : e.split == kUnary ? g_.unary[e.rule].weight
                                               : g_.binary[e.rule].weight;
    if (weight >= 0) out.push_back(weight);
    if (e.split == kLexical) return;
    if (e.split == kUnary) return emit(i, j, g_.unary[e.rule].child, e.left, out);
    emit(i, e.split, g_.binary[e.rule].left, e.left, out);
    emit(e.split, j, g_.binary[e.rule].right, e.right, out);
  }

  const ChartGrammar& g_;
  const RuleScores& w_;
  const Sentence& x_;
  const uint8_t* truth_;
  const double t_;
  const int64_t S_;
  double p_max_ = 0, incumbent_ = kForbidden;
  MaxCells best_;
  std::vector<double> outside_;
  std::vector<std::vector<Entry>> fronts_;
};

}  // namespace mercer
