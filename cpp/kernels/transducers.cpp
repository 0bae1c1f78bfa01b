// Weighted transducers: the weight of a pair of strings, and the weighted outputs of a string.
//
//   [[T]](x, y) = ⊕ over paths that read x and write y of the ⊗ of their weights      forward over (i, j, state)
//   [[T]](x, z) for all z, where finitely many outputs are possible
//   a walk over the prefixes of outputs
//
// Machines come without arcs that read and write nothing: those are removed before (kernels/transducers.py). So every
// arc moves on in x or in y, and a single pass over the cells (i, j) is enough.
#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <vector>

#include "base/arrays.hpp"
#include "hashing/feature_hash.hpp"
#include "base/parallel.hpp"

namespace mercer {
namespace {

struct Real {
  static constexpr double zero = 0.0;
  static double add(double a, double b) { return a + b; }
  static double times(double a, double b) { return a * b; }
};

struct Tropical {
  static constexpr double zero = std::numeric_limits<double>::infinity();
  static double add(double a, double b) { return a < b ? a : b; }
  static double times(double a, double b) { return a + b; }
};

struct Arc {
  int32_t source, input, output, target;  // labels: 0 is nothing, symbols count from 1
  double weight;
};

// Arcs sorted by (input, output): those of a pair of labels lie side by side.
class Machine {
 public:
  Machine(int64_t n_states, int64_t n_symbols, In1<int32_t> sources, In1<int32_t> inputs, In1<int32_t> outputs,
          In1<int32_t> targets, In1<double> weights, In1<double> initial, In1<double> final, bool tropical)
      : n_states_(n_states), tropical_(tropical) {
    require(n_states >= 0 && n_states < INT32_MAX && n_symbols >= 0 && n_symbols < INT32_MAX - 2,
            "a machine is too large");
    const size_t n = sources.shape(0);
    require(inputs.shape(0) == n && outputs.shape(0) == n && targets.shape(0) == n && weights.shape(0) == n,
            "arcs must have one length");
    require(int64_t(initial.shape(0)) == n_states && int64_t(final.shape(0)) == n_states,
            "initial and final need a weight a state");
    require(all_finite(weights.data(), int64_t(n)), "weights of arcs must be finite");
    take_ends(initial, initial_);
    take_ends(final, final_);
    for (size_t k = 0; k < n; ++k) {
      const Arc arc{sources.data()[k], inputs.data()[k], outputs.data()[k], targets.data()[k], weights.data()[k]};
      require(arc.source >= 0 && arc.source < n_states && arc.target >= 0 && arc.target < n_states,
              "an arc leads outside of the machine");
      require(arc.input >= 0 && arc.input <= n_symbols && arc.output >= 0 && arc.output <= n_symbols,
              "a label is out of range");
      require(arc.input > 0 || arc.output > 0, "arcs that read and write nothing must be removed before");
      arcs_.push_back(arc);
    }
    std::stable_sort(arcs_.begin(), arcs_.end(), [](const Arc& a, const Arc& b) {
      return a.input != b.input ? a.input < b.input : a.output < b.output;
    });
    starts_.assign(size_t(n_symbols) + 2, 0);
    for (const Arc& arc : arcs_) ++starts_[size_t(arc.input) + 1];
    for (size_t s = 1; s < starts_.size(); ++s) starts_[s] += starts_[s - 1];
    leaving_ = arcs_;
    std::stable_sort(leaving_.begin(), leaving_.end(), [](const Arc& a, const Arc& b) { return a.source < b.source; });
    sources_.assign(size_t(n_states) + 1, 0);
    for (const Arc& arc : leaving_) ++sources_[size_t(arc.source) + 1];
    for (size_t s = 1; s < sources_.size(); ++s) sources_[s] += sources_[s - 1];
  }

  int64_t n_states() const { return n_states_; }
  int64_t n_symbols() const { return int64_t(starts_.size()) - 2; }
  bool tropical() const { return tropical_; }
  const double* initial() const { return initial_.data(); }
  const double* final() const { return final_.data(); }

  // The arcs with these labels; a symbol of -1 is on none.
  std::pair<const Arc*, const Arc*> arcs(int32_t input, int32_t output) const {
    if (input < 0 || output < 0) return {nullptr, nullptr};
    const auto range = reading(input);
    const Arc* low = std::lower_bound(range.first, range.second, output,
                                      [](const Arc& a, int32_t label) { return a.output < label; });
    const Arc* high = low;
    while (high != range.second && high->output == output) ++high;
    return {low, high};
  }
  std::pair<const Arc*, const Arc*> reading(int32_t input) const {
    if (input < 0) return {nullptr, nullptr};
    return {arcs_.data() + starts_[size_t(input)], arcs_.data() + starts_[size_t(input) + 1]};
  }
  // Those that leave a state and read a symbol; by output.
  std::pair<const Arc*, const Arc*> leaving(int64_t state, int32_t input) const {
    const Arc *low = leaving_.data() + sources_[size_t(state)], *high = leaving_.data() + sources_[size_t(state) + 1];
    low = std::lower_bound(low, high, input, [](const Arc& a, int32_t label) { return a.input < label; });
    const Arc* end = low;
    while (end != high && end->input == input) ++end;
    return {low, end};
  }

 private:
  void take_ends(const In1<double>& from, std::vector<double>& to) const {
    for (size_t s = 0; s < from.shape(0); ++s) {
      const double w = from.data()[s];
      require(std::isfinite(w) || (tropical_ && w == Tropical::zero),
              "weights of initial and final states must be finite");
      to.push_back(w);
    }
  }

  int64_t n_states_;
  bool tropical_;
  std::vector<Arc> arcs_, leaving_;        // by (input, output); by (source, input, output)
  std::vector<int64_t> starts_, sources_;  // where the arcs of an input, of a source begin
  std::vector<double> initial_, final_;
};

struct Strings {
  const int64_t* offsets;
  const int32_t* symbols;
  int64_t n;

  int64_t length(int64_t i) const { return offsets[i + 1] - offsets[i]; }
  const int32_t* string(int64_t i) const { return symbols + offsets[i]; }
};

Strings checked(const Machine& machine, const In1<int64_t>& offsets, const In1<int32_t>& symbols) {
  const int64_t n = require_offsets_within(offsets, int64_t(symbols.shape(0)), "offsets", "symbols");
  const int64_t* p = offsets.data();
  for (int64_t k = p[0]; k < p[n]; ++k) {
    const int32_t s = symbols.data()[k];
    require(s == -1 || (s >= 1 && s <= machine.n_symbols()), "a symbol is out of range");
  }
  return {p, symbols.data(), n};
}

// ---------------------------------------------------------------------------------------------- pairs of strings

template <class Semiring> class Forward {
 public:
  explicit Forward(const Machine& machine) : machine_(machine), n_(size_t(machine.n_states())) {}

  double weight(const int32_t* x, int64_t n, const int32_t* y, int64_t m) {
    const size_t width = size_t(m + 1) * n_;
    row_.resize(width);
    before_.resize(width);
    writing_.clear();
    for (int64_t j = 0; j < m; ++j) writing_.push_back(machine_.arcs(0, y[j]));
    for (int64_t i = 0; i <= n; ++i) {
      std::fill(row_.begin(), row_.end(), Semiring::zero);
      if (i == 0) std::copy(machine_.initial(), machine_.initial() + n_, row_.begin());
      const auto reading = i > 0 ? machine_.arcs(x[i - 1], 0) : std::pair<const Arc*, const Arc*>(nullptr, nullptr);
      for (int64_t j = 0; j <= m; ++j) {
        double* cell = row_.data() + size_t(j) * n_;
        if (i > 0) follow(reading, before_.data() + size_t(j) * n_, cell);
        if (i > 0 && j > 0) follow(machine_.arcs(x[i - 1], y[j - 1]), before_.data() + size_t(j - 1) * n_, cell);
        if (j > 0) follow(writing_[size_t(j - 1)], cell - n_, cell);
      }
      row_.swap(before_);
    }
    double total = Semiring::zero;
    for (size_t s = 0; s < n_; ++s)
      total = Semiring::add(total, Semiring::times(before_[size_t(m) * n_ + s], machine_.final()[s]));
    return total;
  }

 private:
  static void follow(std::pair<const Arc*, const Arc*> arcs, const double* from, double* to) {
    for (const Arc* arc = arcs.first; arc != arcs.second; ++arc)
      to[arc->target] = Semiring::add(to[arc->target], Semiring::times(from[arc->source], arc->weight));
  }

  const Machine& machine_;
  size_t n_;
  std::vector<double> row_, before_;
  std::vector<std::pair<const Arc*, const Arc*>> writing_;
};

template <class Semiring>
void all_weights(const Machine& machine, const Strings& left, const Strings& right, double* out, int threads) {
  in_parallel(left.n, threads, [&](int64_t i) {
    Forward<Semiring> forward(machine);
    for (int64_t j = 0; j < right.n; ++j)
      out[i * right.n + j] = forward.weight(left.string(i), left.length(i), right.string(j), right.length(j));
  });
}

void transducer_weights(const Machine& machine, In1<int64_t> left_offsets, In1<int32_t> left_symbols,
                        In1<int64_t> right_offsets, In1<int32_t> right_symbols, Out2<double> out, int threads) {
  const Strings left = checked(machine, left_offsets, left_symbols),
                right = checked(machine, right_offsets, right_symbols);
  require(int64_t(out.shape(0)) == left.n && int64_t(out.shape(1)) == right.n, "out has the wrong shape");
  threads = thread_count(threads);
  double* K = out.data();
  nb::gil_scoped_release unlocked;
  machine.tropical() ? all_weights<Tropical>(machine, left, right, K, threads)
                     : all_weights<Real>(machine, left, right, K, threads);
}

// ---------------------------------------------------------------------------------------------- outputs of a string

// All outputs z of a string with [[T]](x, z): the prefixes of outputs form a tree, walked with a stack. A prefix
// carries the weights of the places (i, state) where it can have been written; moves that write nothing are followed
// from there, but only where something may still be written: what is left until the end of x is known from a pass
// backwards.
class Outputs {
 public:
  Outputs(const Machine& machine, int64_t limit) : machine_(machine), n_(machine.n_states()), limit_(limit) {}

  // False where there are more prefixes than the limit.
  bool list(const int32_t* x, int64_t length) {
    found.clear();
    start(x, length);
    int64_t seen = 0;
    while (!stack_.empty()) {
      Prefix prefix = std::move(stack_.back());
      stack_.pop_back();
      if (++seen > limit_) return false;
      double total = 0.0;
      bool ends = false;
      for (const Place& p : prefix.places) {
        total += p.weight * to_end_[size_t(p.at)];
        ends = ends || ends_[size_t(p.at)];
      }
      if (ends) found.emplace_back(prefix.key, total);
      spread(prefix.places, x, length);
      extend(prefix.key, x, length);
      if (int64_t(stack_.size()) > limit_) return false;
    }
    return true;
  }

  std::vector<std::pair<uint64_t, double>> found;

 private:
  struct Place {
    int64_t at;  // i * states + state
    double weight;
  };
  struct Prefix {
    uint64_t key;
    std::vector<Place> places;
  };
  struct Move {
    int32_t symbol;
    int64_t at;
    double weight;
  };

  // Backwards over x: the weight of ending without another symbol, and whether an end or another symbol can be reached.
  void start(const int32_t* x, int64_t length) {
    const size_t size = size_t((length + 1) * n_);
    to_end_.assign(size, 0.0);
    ends_.assign(size, 0);
    alive_.assign(size, 0);
    writes_.assign(size, 0);
    sums_.assign(size, 0.0);
    touched_.assign(size, 0);
    for (int64_t i = length; i >= 0; --i) {
      for (int64_t s = 0; s < n_; ++s)
        if (i == length && machine_.final()[s] != 0.0) {
          to_end_[size_t(i * n_ + s)] = machine_.final()[s];
          ends_[size_t(i * n_ + s)] = alive_[size_t(i * n_ + s)] = 1;
        }
      if (i < length)
        for (auto [arc, end] = machine_.reading(x[i]); arc != end; ++arc) back(*arc, i, i + 1);
      // Arcs that read nothing form no circle where outputs are finite, but may come in any order.
      for (bool changed = true; changed;) {
        changed = false;
        for (auto [arc, end] = machine_.reading(0); arc != end; ++arc) changed = back(*arc, i, i) || changed;
      }
    }
    stack_.clear();
    Prefix empty{feature_hash(uint64_t(0), 0), {}};
    for (int64_t s = 0; s < n_; ++s)
      if (machine_.initial()[s] != 0.0 && alive_[size_t(s)]) empty.places.push_back({s, machine_.initial()[s]});
    stack_.push_back(std::move(empty));
  }

  bool back(const Arc& arc, int64_t i, int64_t to) {
    const auto from = size_t(i * n_ + arc.source), at = size_t(to * n_ + arc.target);
    const uint8_t alive = alive_[from], writes = writes_[from];
    if (!alive_[at]) return false;
    alive_[from] = 1;
    if (arc.output > 0) {
      writes_[from] = 1;
    } else {  // it reads a symbol: to > i, and what follows is complete
      to_end_[from] += arc.weight * to_end_[at];
      ends_[from] |= ends_[at];
      writes_[from] |= writes_[at];
    }
    return alive_[from] != alive || writes_[from] != writes;
  }

  // places_: all places that are reached by writing nothing, in ascending order, where something may still be written.
  void spread(const std::vector<Place>& from, const int32_t* x, int64_t length) {
    places_.clear();
    for (const Place& p : from) reach(p.at, p.weight);
    while (!queue_.empty()) {
      const int64_t at = queue_.top();
      queue_.pop();
      const double weight = sums_[size_t(at)];
      touched_[size_t(at)] = 0;
      sums_[size_t(at)] = 0.0;
      places_.push_back({at, weight});
      const int64_t i = at / n_, s = at % n_;
      if (i == length) continue;
      for (auto [arc, end] = machine_.leaving(s, x[i]); arc != end && arc->output == 0; ++arc)
        reach((i + 1) * n_ + arc->target, weight * arc->weight);
    }
  }
  void reach(int64_t at, double weight) {
    if (!writes_[size_t(at)]) return;
    sums_[size_t(at)] += weight;
    if (touched_[size_t(at)]) return;
    touched_[size_t(at)] = 1;
    queue_.push(at);
  }

  void extend(uint64_t key, const int32_t* x, int64_t length) {
    moves_.clear();
    for (const Place& p : places_) {
      const int64_t i = p.at / n_, s = p.at % n_;
      for (auto [arc, end] = machine_.leaving(s, 0); arc != end; ++arc) write(*arc, i, p.weight);
      if (i == length) continue;
      for (auto [arc, end] = machine_.leaving(s, x[i]); arc != end; ++arc)
        if (arc->output > 0) write(*arc, i + 1, p.weight);
    }
    std::stable_sort(moves_.begin(), moves_.end(), [](const Move& a, const Move& b) {
      return a.symbol != b.symbol ? a.symbol < b.symbol : a.at < b.at;
    });
    for (size_t k = 0; k < moves_.size();) {
      Prefix next{combine(key, feature_hash(uint64_t(moves_[k].symbol), 0)), {}};
      const int32_t symbol = moves_[k].symbol;
      for (; k < moves_.size() && moves_[k].symbol == symbol; ++k) {
        if (!next.places.empty() && next.places.back().at == moves_[k].at)
          next.places.back().weight += moves_[k].weight;
        else
          next.places.push_back({moves_[k].at, moves_[k].weight});
      }
      stack_.push_back(std::move(next));
    }
  }
  void write(const Arc& arc, int64_t to, double weight) {
    const int64_t at = to * n_ + arc.target;
    if (alive_[size_t(at)]) moves_.push_back({arc.output, at, weight * arc.weight});
  }

  const Machine& machine_;
  int64_t n_, limit_;
  std::vector<double> to_end_, sums_;
  std::vector<uint8_t> ends_, alive_, writes_, touched_;
  std::vector<Prefix> stack_;
  std::vector<Place> places_;
  std::vector<Move> moves_;
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<int64_t>> queue_;
};

// Rows of (hash of an output, weight), keys ascending; None where a string has more than `limit` prefixes of outputs.
nb::object transducer_outputs(const Machine& machine, In1<int64_t> offsets, In1<int32_t> symbols, int64_t limit) {
  require(!machine.tropical(), "outputs are listed for real weights");
  require(limit >= 1, "limit must be at least 1");
  const Strings strings = checked(machine, offsets, symbols);
  std::vector<int64_t> starts{0};
  std::vector<uint64_t> keys;
  std::vector<double> values;
  bool complete = true;
  {
    nb::gil_scoped_release unlocked;
    Outputs outputs(machine, limit);
    for (int64_t i = 0; i < strings.n && complete; ++i) {
      complete = outputs.list(strings.string(i), strings.length(i));
      std::sort(outputs.found.begin(), outputs.found.end());
      const auto first = keys.size();
      for (const auto& [key, value] : outputs.found) {
        if (keys.size() > first && keys.back() == key) {  // two outputs with one hash
          values.back() += value;
          continue;
        }
        keys.push_back(key);
        values.push_back(value);
      }
      starts.push_back(int64_t(keys.size()));
    }
  }
  if (!complete) return nb::none();
  return nb::make_tuple(to_numpy(std::move(starts)), to_numpy(std::move(keys)), to_numpy(std::move(values)));
}

}  // namespace

void bind_transducers(nb::module_& m) {
  nb::class_<Machine>(m, "Machine", "A weighted transducer whose arcs all read or write a symbol.")
      .def(nb::init<int64_t, int64_t, In1<int32_t>, In1<int32_t>, In1<int32_t>, In1<int32_t>, In1<double>, In1<double>,
                    In1<double>, bool>(),
           "n_states"_a, "n_symbols"_a, "sources"_a, "inputs"_a, "outputs"_a, "targets"_a, "weights"_a, "initial"_a,
           "final"_a, "tropical"_a);
  m.def("transducer_weights", &transducer_weights, "machine"_a, "left_offsets"_a, "left_symbols"_a, "right_offsets"_a,
        "right_symbols"_a, "out"_a, "threads"_a = 1);
  m.def("transducer_outputs", &transducer_outputs, "machine"_a, "offsets"_a, "symbols"_a, "limit"_a);
}

}  // namespace mercer
