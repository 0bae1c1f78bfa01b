// All substrings of strings: suffix arrays for one pair, suffix automata for one string against many.
//
//   k(x, z) = Σ_s w(|s|) #_x(s) #_z(s) = Σ_{i, j} W(lcp(x[i:], z[j:])),   W(l) = w(1) + … + w(l)
//
// Both take time linear in |x| + |z|. The array of a pair is made by induced sorting: its passes read and write in long
// runs, so that the time for a symbol hardly grows with the length. The automaton of x is walked by z in a few steps a
// symbol; its random reads are slow once it is larger than the caches, but it is made once for all z.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hashing/feature_hash.hpp"

namespace mercer {

// ---------------------------------------------------------------------------------------------- suffix array

// Induced sorting. The text ends with a 0 that stands nowhere else; symbols are below `sigma`.
template <class Symbol> class SuffixSorter {
 public:
  static void sort(const Symbol* text, int32_t* order, int32_t n, int32_t sigma) {
    SuffixSorter sorter(text, order, n, sigma);
    sorter.run();
  }

 private:
  SuffixSorter(const Symbol* text, int32_t* order, int32_t n, int32_t sigma)
      : text_(text), order_(order), n_(n), counts_(size_t(sigma), 0), ends_(size_t(sigma)), smaller_(size_t(n), false) {
    for (int32_t i = 0; i < n; ++i) ++counts_[size_t(text[i])];
    smaller_[size_t(n) - 1] = true;  // of type S: smaller than the suffix that follows it
    for (int32_t i = n - 2; i >= 0; --i)
      smaller_[size_t(i)] = text[i] < text[i + 1] || (text[i] == text[i + 1] && smaller_[size_t(i) + 1]);
  }
  bool leftmost(int32_t i) const { return i > 0 && smaller_[size_t(i)] && !smaller_[size_t(i) - 1]; }

  void run() {
    if (n_ == 1) {
      order_[0] = 0;
      return;
    }
    std::vector<int32_t> places;
    for (int32_t i = 1; i < n_; ++i)
      if (leftmost(i)) places.push_back(i);
    induce(places);  // sorts the stretches between leftmost S places
    std::vector<int32_t> sorted;
    sorted.reserve(places.size());
    for (int32_t i = 0; i < n_; ++i)
      if (leftmost(order_[i])) sorted.push_back(order_[i]);
    const int32_t names = name_stretches(places, sorted);
    if (names < int32_t(places.size())) sort_places(places, names, sorted);
    induce(sorted);
  }

  // Numbers the stretches by their rank, in names_, in the order of the text; equal ones share a number.
  int32_t name_stretches(const std::vector<int32_t>& places, const std::vector<int32_t>& sorted) {
    std::vector<int32_t> name(size_t(n_) / 2 + 1, 0);
    std::vector<int32_t> length(size_t(n_) / 2 + 1, 1);
    for (size_t k = 0; k + 1 < places.size(); ++k) length[size_t(places[k]) / 2] = places[k + 1] - places[k] + 1;
    int32_t names = 0;
    for (size_t r = 0; r < sorted.size(); ++r) {
      if (r > 0) {
        const int32_t a = sorted[r - 1], b = sorted[r], size = length[size_t(a) / 2];
        const bool same = size == length[size_t(b) / 2] && a + size <= n_ && b + size <= n_ &&
                          std::equal(text_ + a, text_ + a + size, text_ + b);
        names += !same;
      }
      name[size_t(sorted[r]) / 2] = names;
    }
    names_.resize(places.size());
    for (size_t k = 0; k < places.size(); ++k) names_[k] = name[size_t(places[k]) / 2];
    return names + 1;
  }

  void sort_places(const std::vector<int32_t>& places, int32_t names, std::vector<int32_t>& sorted) {
    std::vector<int32_t> order(places.size());
    SuffixSorter<int32_t>::sort(names_.data(), order.data(), int32_t(names_.size()), names);
    for (size_t r = 0; r < order.size(); ++r) sorted[r] = places[size_t(order[r])];
  }

  void set_starts() {
    int32_t sum = 0;
    for (size_t c = 0; c < counts_.size(); ++c) {
      ends_[c] = sum;
      sum += counts_[c];
    }
  }
  void set_ends() {
    int32_t sum = 0;
    for (size_t c = 0; c < counts_.size(); ++c) ends_[c] = sum += counts_[c];
  }

  // From leftmost S places in their order: all L suffixes, then all S suffixes.
  void induce(const std::vector<int32_t>& seeds) {
    std::fill(order_, order_ + n_, -1);
    set_ends();
    for (size_t k = seeds.size(); k-- > 0;) order_[--ends_[size_t(text_[seeds[k]])]] = seeds[k];
    set_starts();
    for (int32_t i = 0; i < n_; ++i) {
      const int32_t j = order_[i] - 1;
      if (order_[i] > 0 && !smaller_[size_t(j)]) order_[ends_[size_t(text_[j])]++] = j;
    }
    set_ends();
    for (int32_t i = n_ - 1; i >= 0; --i) {
      const int32_t j = order_[i] - 1;
      if (order_[i] > 0 && smaller_[size_t(j)]) order_[--ends_[size_t(text_[j])]] = j;
    }
  }

  template <class> friend class SuffixSorter;
  const Symbol* text_;
  int32_t* order_;
  int32_t n_;
  std::vector<int32_t> counts_, ends_, names_;
  std::vector<bool> smaller_;
};

// Longest common prefixes of neighbours in the order (Kasai and others): lcp[r] of the suffixes of rank r - 1 and r.
template <class Symbol>
void common_prefixes(const Symbol* text, const int32_t* order, int32_t n, std::vector<int32_t>& lcp) {
  std::vector<int32_t> before(
      static_cast<size_t>(n));  // at first the suffix one rank lower, then the common prefix with it
  before[size_t(order[0])] = -1;
  for (int32_t r = 1; r < n; ++r) before[size_t(order[r])] = order[r - 1];
  int32_t h = 0;
  for (int32_t i = 0; i < n; ++i) {
    const int32_t j = before[size_t(i)];
    if (j < 0) {
      h = 0;
    } else {
      while (text[i + h] == text[j + h]) ++h;  // ends: separators stand once, the last suffix is the shortest
    }
    before[size_t(i)] = h;
    if (h > 0) --h;
  }
  lcp.resize(size_t(n));
  for (int32_t r = 0; r < n; ++r) lcp[size_t(r)] = before[size_t(order[r])];
}

// k(x, z) by the suffix array of x, a separator, z and an end. `symbols` are below sigma; text is a buffer.
//
// Σ over the nodes of the suffix tree of (W(depth) - W(depth of the parent)) #_x #_z: the ranks are swept with a stack
// of the nodes above the current leaf, and a node is added up when it is left. Terms are not negative, so that nothing
// cancels.
template <class Symbol> class SubstringPair {
 public:
  double operator()(const uint32_t* x, int64_t nx, const uint32_t* z, int64_t nz, int64_t sigma, const double* W) {
    if (nx == 0 || nz == 0) return 0.0;
    const int32_t n = int32_t(nx + nz + 2);
    text_.resize(size_t(n));
    for (int64_t i = 0; i < nx; ++i) text_[size_t(i)] = Symbol(x[i] + 2);
    text_[size_t(nx)] = 1;
    for (int64_t i = 0; i < nz; ++i) text_[size_t(nx + 1 + i)] = Symbol(z[i] + 2);
    text_[size_t(n) - 1] = 0;
    order_.resize(size_t(n));
    SuffixSorter<Symbol>::sort(text_.data(), order_.data(), n, int32_t(sigma + 2));
    common_prefixes(text_.data(), order_.data(), n, lcp_);
    return sweep(n, int32_t(nx), W);
  }

 private:
  struct Node {
    int32_t depth, x, z;
  };
  double sweep(int32_t n, int32_t nx, const double* W) {
    path_.clear();
    double total = 0.0;
    for (int32_t r = 0; r < n; ++r) {
      const int32_t common = r + 1 < n ? lcp_[size_t(r) + 1] : 0;
      int32_t x = order_[size_t(r)] < nx, z = !x;
      while (!path_.empty() && path_.back().depth > common) {
        const int32_t depth = path_.back().depth;
        x += path_.back().x;
        z += path_.back().z;
        path_.pop_back();
        const int32_t parent = path_.empty() ? common : std::max(common, path_.back().depth);
        total += (W[depth] - W[parent]) * double(x) * double(z);
      }
      if (common == 0) continue;
      if (path_.empty() || path_.back().depth < common) {
        path_.push_back({common, x, z});
      } else {
        path_.back().x += x;
        path_.back().z += z;
      }
    }
    return total;
  }

  std::vector<Symbol> text_;
  std::vector<int32_t> order_, lcp_;
  std::vector<Node> path_;
};

// ---------------------------------------------------------------------------------------------- suffix automaton

// Transitions of few symbols: a row of targets a state; 0 for none (the start is nobody's target).
class DenseTransitions {
 public:
  explicit DenseTransitions(int64_t sigma) : sigma_(size_t(sigma)) {}
  void reserve(size_t states) { targets_.reserve(states * sigma_); }
  void clear() { targets_.clear(); }
  void add_state() { targets_.resize(targets_.size() + sigma_, 0); }
  void add_copy(int32_t state) {
    const size_t from = size_t(state) * sigma_, end = targets_.size();
    targets_.resize(end + sigma_);
    std::copy_n(targets_.begin() + int64_t(from), sigma_, targets_.begin() + int64_t(end));
  }
  int32_t get(int32_t state, uint32_t symbol) const { return targets_[size_t(state) * sigma_ + symbol]; }
  void set(int32_t state, uint32_t symbol, int32_t target) { targets_[size_t(state) * sigma_ + symbol] = target; }

 private:
  size_t sigma_;
  std::vector<int32_t> targets_;
};

// Transitions of many symbols: one hash table for all states, and a list a state of those it has.
class HashedTransitions {
 public:
  explicit HashedTransitions(int64_t) { rehash(64); }
  void reserve(size_t states) {
    size_t size = 64;
    while (size < states * 4) size *= 2;
    rehash(size);
  }
  void clear() {
    heads_.clear();
    edges_.clear();
    std::fill(slots_.begin(), slots_.end(), -1);
  }
  void add_state() { heads_.push_back(-1); }
  void add_copy(int32_t state) {
    const int32_t made = int32_t(heads_.size());
    add_state();
    for (int32_t e = heads_[size_t(state)]; e >= 0; e = edges_[size_t(e)].next) {
      const Edge edge = edges_[size_t(e)];
      set(made, edge.symbol, edge.target);
    }
  }
  int32_t get(int32_t state, uint32_t symbol) const {
    const int32_t e = slots_[find(state, symbol)];
    return e < 0 ? 0 : edges_[size_t(e)].target;
  }
  void set(int32_t state, uint32_t symbol, int32_t target) {
    const size_t slot = find(state, symbol);
    if (slots_[slot] >= 0) {
      edges_[size_t(slots_[slot])].target = target;
      return;
    }
    slots_[slot] = int32_t(edges_.size());
    edges_.push_back({state, symbol, target, heads_[size_t(state)]});
    heads_[size_t(state)] = slots_[slot];
    if (edges_.size() * 2 > slots_.size()) rehash(slots_.size() * 2);
  }

 private:
  struct Edge {
    int32_t state;
    uint32_t symbol;
    int32_t target, next;
  };
  size_t find(int32_t state, uint32_t symbol) const {
    size_t i = size_t(mix64((uint64_t(uint32_t(state)) << 32) | symbol)) & (slots_.size() - 1);
    while (slots_[i] >= 0 && (edges_[size_t(slots_[i])].state != state || edges_[size_t(slots_[i])].symbol != symbol))
      i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  void rehash(size_t size) {
    slots_.assign(size, -1);
    for (size_t e = 0; e < edges_.size(); ++e) slots_[find(edges_[e].state, edges_[e].symbol)] = int32_t(e);
  }
  std::vector<int32_t> heads_, slots_;
  std::vector<Edge> edges_;
};

// The automaton of all substrings of weighted strings, annotated so that z is scored as it is read:
//   f(z) = Σ_i a_i k(x_i, z),   at each place of z: the sum over the suffixes that are substrings of some x.
template <class Transitions> class SubstringAutomaton {
 public:
  explicit SubstringAutomaton(int64_t sigma) : sigma_(uint32_t(sigma)), next_(sigma) { reset(0); }

  void reset(int64_t symbols) {
    next_.clear();
    length_.clear();
    link_.clear();
    mass_.clear();
    const size_t states = size_t(symbols) * 2 + 1;
    next_.reserve(states);
    length_.reserve(states);
    link_.reserve(states);
    mass_.reserve(states);
    make_state(0, -1);
    next_.add_state();
  }

  void add(const uint32_t* x, int64_t n, double weight) {
    int32_t last = 0;
    for (int64_t i = 0; i < n; ++i) {
      last = extend(last, x[i]);
      mass_[size_t(last)] += weight;
    }
  }

  // W: cumulative weights of lengths, at least up to the longest string.
  void annotate(const double* W) {
    const size_t n = length_.size();
    std::vector<int32_t> starts(size_t(*std::max_element(length_.begin(), length_.end())) + 2, 0), by_length(n);
    for (const int32_t l : length_) ++starts[size_t(l) + 1];
    for (size_t l = 1; l < starts.size(); ++l) starts[l] += starts[l - 1];
    for (size_t v = 0; v < n; ++v) by_length[size_t(starts[size_t(length_[v])]++)] = int32_t(v);
    for (size_t r = n; r-- > 1;) {
      const size_t v = size_t(by_length[r]);
      mass_[size_t(link_[v])] += mass_[v];
    }
    shorter_.assign(n, 0.0);
    for (size_t r = 1; r < n; ++r) {
      const size_t v = size_t(by_length[r]), up = size_t(link_[v]);
      // What the suffixes of all lengths up to link's give, less what mass · W(l) counts of them.
      const double through = up == 0 ? 0.0 : shorter_[up] + mass_[up] * W[length_[up]];
      shorter_[v] = through - mass_[v] * W[length_[up]];
    }
    mass_[0] = 0.0;
  }

  double score(const uint32_t* z, int64_t n, const double* W) const {
    double total = 0.0;
    int32_t v = 0, matched = 0;
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t symbol = z[i];
      if (symbol >= sigma_) {
        v = matched = 0;
        continue;
      }
      int32_t to = next_.get(v, symbol);
      while (to == 0 && v != 0) {
        v = link_[size_t(v)];
        matched = length_[size_t(v)];
        to = next_.get(v, symbol);
      }
      if (to == 0) continue;
      v = to;
      ++matched;
      total += shorter_[size_t(v)] + mass_[size_t(v)] * W[matched];
    }
    return total;
  }

 private:
  int32_t make_state(int32_t length, int32_t link) {
    length_.push_back(length);
    link_.push_back(link);
    mass_.push_back(0.0);
    return int32_t(length_.size()) - 1;
  }
  int32_t split(int32_t p, uint32_t symbol, int32_t q) {
    const int32_t made = make_state(length_[size_t(p)] + 1, link_[size_t(q)]);
    next_.add_copy(q);
    link_[size_t(q)] = made;
    for (; p >= 0 && next_.get(p, symbol) == q; p = link_[size_t(p)]) next_.set(p, symbol, made);
    return made;
  }
  int32_t extend(int32_t last, uint32_t symbol) {
    int32_t q = next_.get(last, symbol);
    if (q != 0) return length_[size_t(q)] == length_[size_t(last)] + 1 ? q : split(last, symbol, q);
    const int32_t made = make_state(length_[size_t(last)] + 1, 0);
    next_.add_state();
    int32_t p = last;
    for (; p >= 0 && (q = next_.get(p, symbol)) == 0; p = link_[size_t(p)]) next_.set(p, symbol, made);
    if (p >= 0) link_[size_t(made)] = length_[size_t(q)] == length_[size_t(p)] + 1 ? q : split(p, symbol, q);
    return made;
  }

  uint32_t sigma_;
  Transitions next_;
  std::vector<int32_t> length_, link_;
  std::vector<double> mass_, shorter_;
};

}  // namespace mercer
