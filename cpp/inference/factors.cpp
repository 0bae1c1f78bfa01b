// Factor graphs as flat tables of log-potentials: checked once, then shared by all methods.
#include "inference/factors.hpp"

#include <map>

namespace mercer {

// ---------------------------------------------------------------------------------------------- structure

namespace {

constexpr int64_t kMostEntries = int64_t(1) << 40;

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
  for (size_t slot = 0; slot < s.scopes.size(); ++slot)
    s.incident[size_t(next[size_t(s.scopes[slot])]++)] = int64_t(slot);
}

}  // namespace

FlatGraph::FlatGraph(In1<int32_t> cards, In1<double> unary, double constant, In1<int64_t> scope_starts,
                     In1<int32_t> scopes, In1<int64_t> table_starts, In1<double> tables)
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
  for (size_t f = 0; f < size_t(s.m); ++f)
    require(s.scope_starts[f] <= s.scope_starts[f + 1], "scope_starts must not decrease");
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

// -------------------------------------------------------------------------------------------- states that cannot occur

namespace {

// Goes through the entries of a table over the states in `lists`, one for each axis: visit(entry, places in the lists).
template <class Visit>
void for_entries(const std::vector<std::vector<int32_t>>& lists, const int64_t* strides, Visit visit) {
  for (const auto& list : lists)
    if (list.empty()) return;
  std::vector<size_t> at(lists.size(), 0);
  while (true) {
    int64_t entry = 0;
    for (size_t k = 0; k < lists.size(); ++k) entry += strides[k] * lists[k][at[k]];
    visit(entry, at);
    size_t axis = lists.size();
    while (axis > 0 && ++at[axis - 1] == lists[axis - 1].size()) at[--axis] = 0;
    if (axis == 0) return;
  }
}

class PossibleStates {
 public:
  explicit PossibleStates(const FlatGraph& graph) : graph_(graph), s_(graph.structure()), states_(size_t(s_.n)) {
    for (int32_t v = 0; v < s_.n; ++v)
      for (int32_t x = 0; x < s_.cards[size_t(v)]; ++x)
        if (graph.unary()[s_.state_starts[size_t(v)] + x] != kImpossible) states_[size_t(v)].push_back(x);
    narrow();
  }

  const std::vector<std::vector<int32_t>>& states() const { return states_; }
  std::vector<std::vector<int32_t>> lists(int64_t f) const {
    std::vector<std::vector<int32_t>> lists;
    for (int64_t slot = s_.scope_starts[size_t(f)]; slot < s_.scope_starts[size_t(f) + 1]; ++slot)
      lists.push_back(states_[size_t(s_.scopes[size_t(slot)])]);
    return lists;
  }
  const int64_t* strides(int64_t f) const { return s_.strides.data() + s_.scope_starts[size_t(f)]; }

 private:
  // A state goes where no entry of some table supports it; only tables with zeros can lack support.
  void narrow() {
    std::vector<uint8_t> waiting(size_t(s_.m), 0);
    std::vector<uint8_t> zeros(size_t(s_.m), 0);
    std::vector<int64_t> queue;
    for (int64_t f = 0; f < s_.m; ++f) {
      const double* table = graph_.table(f);
      zeros[size_t(f)] =
          std::find(table, table + s_.table_sizes[size_t(f)], kImpossible) != table + s_.table_sizes[size_t(f)];
      if (zeros[size_t(f)]) queue.push_back(f), waiting[size_t(f)] = 1;
    }
    for (size_t next = 0; next < queue.size(); ++next) {
      const int64_t f = queue[next];
      waiting[size_t(f)] = 0;
      const auto allowed = lists(f);
      std::vector<std::vector<uint8_t>> supported;
      for (const auto& list : allowed) supported.emplace_back(list.size(), 0);
      for_entries(allowed, strides(f), [&](int64_t entry, const std::vector<size_t>& at) {
        if (graph_.table(f)[entry] == kImpossible) return;
        for (size_t k = 0; k < at.size(); ++k) supported[k][at[k]] = 1;
      });
      for (size_t k = 0; k < allowed.size(); ++k) {
        const int32_t v = s_.scopes[size_t(s_.scope_starts[size_t(f)]) + k];
        auto& left = states_[size_t(v)];
        const size_t before = left.size();
        left.clear();
        for (size_t j = 0; j < allowed[k].size(); ++j)
          if (supported[k][j]) left.push_back(allowed[k][j]);
        if (left.size() == before) continue;
        for (int64_t i = s_.incident_starts[size_t(v)]; i < s_.incident_starts[size_t(v) + 1]; ++i) {
          const int32_t other = s_.slot_factor[size_t(s_.incident[size_t(i)])];
          if (other != f && zeros[size_t(other)] && !waiting[size_t(other)])
            queue.push_back(other), waiting[size_t(other)] = 1;
        }
      }
    }
  }

  const FlatGraph& graph_;
  const FactorStructure& s_;
  std::vector<std::vector<int32_t>> states_;  // of each variable, those left
};

// The graph over the states that zeros leave possible, without variables of one state in its factors:
//   (places of the states among all, cards, unary, constant, scope_starts, scopes, table_starts, tables,
//    numbers of the factors, places of entries in the joint probabilities of all factors,
//    their sources in [joint | marginals | 1] of the smaller graph)
// None where all states are possible; False where a variable has none left.
nb::object without_impossible_states(const FlatGraph& graph) {
  const FactorStructure& s = graph.structure();
  std::vector<int64_t> kept, scope_starts{0}, table_starts, numbers, entries, sources;
  std::vector<int32_t> cards, scopes;
  std::vector<double> unary, tables;
  double constant = graph.constant();
  bool all = true, none = false;
  {
    nb::gil_scoped_release free;
    const PossibleStates possible(graph);
    std::vector<int64_t> starts{0};
    for (int32_t v = 0; v < s.n; ++v) {
      const auto& states = possible.states()[size_t(v)];
      all &= int32_t(states.size()) == s.cards[size_t(v)];
      none |= states.empty();
      cards.push_back(int32_t(states.size()));
      for (int32_t x : states) {
        kept.push_back(s.state_starts[size_t(v)] + x);
        unary.push_back(graph.unary()[kept.back()]);
      }
      starts.push_back(int64_t(unary.size()));
    }
    if (!all && !none) {
      std::vector<uint8_t> arity;  // of the smaller factor that each entry comes from
      for (int64_t f = 0; f < s.m; ++f) {
        const auto lists = possible.lists(f);
        const int64_t first = s.scope_starts[size_t(f)];
        std::vector<int32_t> scope;
        for (size_t k = 0; k < lists.size(); ++k)
          if (lists[k].size() > 1) scope.push_back(s.scopes[size_t(first) + k]);
        const int64_t start = int64_t(tables.size());
        int64_t place = 0;
        for_entries(lists, possible.strides(f), [&](int64_t entry, const std::vector<size_t>&) {
          const double value = graph.table(f)[entry];
          entries.push_back(s.belief_starts[size_t(f)] + entry);
          arity.push_back(uint8_t(std::min<size_t>(scope.size(), 2)));
          sources.push_back(scope.size() > 1    ? start + place
                            : scope.size() == 1 ? starts[size_t(scope[0])] + place
                                                : 0);
          if (scope.size() > 1)
            tables.push_back(value);
          else if (scope.size() == 1)
            unary[size_t(sources.back())] += value;
          else
            constant += value;
          ++place;
        });
        if (scope.size() > 1) {
          numbers.push_back(f);
          table_starts.push_back(start);
          scopes.insert(scopes.end(), scope.begin(), scope.end());
          scope_starts.push_back(int64_t(scopes.size()));
        }
      }
      for (size_t i = 0; i < sources.size(); ++i)
        if (arity[i] < 2) sources[i] += int64_t(tables.size() + (arity[i] == 0 ? unary.size() : 0));
    }
  }
  if (none) return nb::bool_(false);
  if (all) return nb::none();
  return nb::make_tuple(to_numpy(std::move(kept)), to_numpy(std::move(cards)), to_numpy(std::move(unary)), constant,
                        to_numpy(std::move(scope_starts)), to_numpy(std::move(scopes)),
                        to_numpy(std::move(table_starts)), to_numpy(std::move(tables)), to_numpy(std::move(numbers)),
                        to_numpy(std::move(entries)), to_numpy(std::move(sources)));
}

}  // namespace

// -------------------------------------------------------------------------------------------- factors put together

namespace {

// The free axes of a table that is cut at the observed states of the other ones.
struct Cut {
  std::vector<int32_t> scope;          // variables that are left
  std::vector<int64_t> dims, strides;  // of the table that is cut
  int64_t first = 0, size = 1, whole = 1;

  void set(const int32_t* variables, int64_t count, const int32_t* cards, const int32_t* observed) {
    scope.clear(), dims.clear(), strides.clear();
    first = 0, size = 1, whole = 1;
    for (int64_t k = count; k-- > 0;) {
      const int32_t v = variables[k], card = cards[v];
      if (observed[v] >= 0) {
        first += whole * observed[v];
      } else {
        scope.push_back(v), dims.push_back(card), strides.push_back(whole);
        size *= card;
      }
      whole *= card;
    }
    std::reverse(scope.begin(), scope.end());
    std::reverse(dims.begin(), dims.end());
    std::reverse(strides.begin(), strides.end());
  }
  // visit(place in the whole table) for each entry that is left, in order.
  template <class Visit> void entries(Visit visit) const {
    const int free = int(dims.size());
    if (free == 0) return visit(first);
    const int64_t length = dims.back(), step = strides.back();
    std::vector<int64_t> at(size_t(free), 0);
    int64_t place = first;
    while (true) {
      for (int64_t k = 0; k < length; ++k) visit(place + k * step);
      int axis = free - 2;
      for (; axis >= 0; --axis) {
        place += strides[size_t(axis)];
        if (++at[size_t(axis)] < dims[size_t(axis)]) break;
        place -= strides[size_t(axis)] * dims[size_t(axis)];
        at[size_t(axis)] = 0;
      }
      if (axis < 0) return;
    }
  }
};

void check_observed(const In1<int32_t>& observed, const int32_t* cards, int64_t n) {
  require(int64_t(observed.shape(0)) == n, "observed must hold a state, or -1, for every variable");
  for (int64_t v = 0; v < n; ++v)
    require(observed.data()[v] >= -1 && observed.data()[v] < cards[v], "observed must hold states that exist, or -1");
}

// Factors of any number of variables, at the evidence, as `FlatGraph` takes them: those that have one variable left
// are added to `unary`, those with none to `constant`, the others sorted by shape. Whole tables stay shared.
//   (cards, unary, constant, scope_starts, scopes, table_starts, tables, numbers of the factors that are left)
nb::tuple gathered(In1<int32_t> cards, std::optional<In1<double>> given_unary, double constant,
                   In1<int64_t> scope_starts, In1<int32_t> scopes, In1<int64_t> table_starts, In1<double> tables,
                   std::optional<In1<int32_t>> given_observed) {
  const int64_t n = int64_t(cards.shape(0)), m = int64_t(table_starts.shape(0));
  const int64_t slots = int64_t(scopes.shape(0)), entries = int64_t(tables.shape(0));
  require(n < INT32_MAX && m < INT32_MAX, "there are too many variables or factors");
  std::vector<int64_t> starts(size_t(n) + 1, 0);
  for (int64_t v = 0; v < n; ++v) {
    require(cards.data()[v] >= 1, "every variable needs at least one state");
    starts[size_t(v) + 1] = starts[size_t(v)] + cards.data()[v];
  }
  require(starts[size_t(n)] <= kMostEntries, "the variables have too many states together");
  if (given_unary)
    require(int64_t(given_unary->shape(0)) == starts[size_t(n)], "unary must hold a value for every state");
  require(require_offsets(scope_starts, slots, "scope_starts", "slots") == m,
          "scope_starts must be one more than factors");
  if (given_observed) check_observed(*given_observed, cards.data(), n);
  const std::vector<int32_t> nothing(given_observed ? 0 : size_t(n), -1);
  const int32_t* const observed = given_observed ? given_observed->data() : nothing.data();
  std::vector<int64_t> last_seen(size_t(n), -1);
  for (int64_t f = 0; f < m; ++f) {
    int64_t size = 1;
    for (int64_t slot = scope_starts.data()[f]; slot < scope_starts.data()[f + 1]; ++slot) {
      const int32_t v = scopes.data()[slot];
      require(v >= 0 && v < n, "a scope names a variable that does not exist");
      require(last_seen[size_t(v)] != f, "a scope names a variable twice");
      last_seen[size_t(v)] = f;
      require(size <= kMostEntries / cards.data()[v], "a table has too many entries");
      size *= cards.data()[v];
    }
    const int64_t start = table_starts.data()[f];
    require(start >= 0 && start <= entries - size, "a table goes beyond the array of tables");
  }

  std::vector<int32_t> left_cards, left_scopes, place(size_t(n), -1), shape;
  std::vector<int64_t> left_starts{0}, left_tables, numbers;
  std::vector<double> left_unary, values;
  {
    nb::gil_scoped_release free;
    std::vector<int64_t> own(size_t(n), 0);  // where the states of a variable that is left begin
    for (int64_t v = 0; v < n; ++v) {
      const double* x = given_unary ? given_unary->data() + starts[size_t(v)] : nullptr;
      if (observed[v] >= 0) {
        if (x) constant += x[observed[v]];
        continue;
      }
      place[size_t(v)] = int32_t(left_cards.size());
      own[size_t(v)] = int64_t(left_unary.size());
      left_cards.push_back(cards.data()[v]);
      left_unary.resize(left_unary.size() + size_t(cards.data()[v]), 0.0);
      if (x) std::copy(x, x + cards.data()[v], left_unary.end() - cards.data()[v]);
    }
    // Factors of each shape; short ones are done with at once.
    std::map<std::pair<size_t, std::vector<int32_t>>, std::vector<int64_t>> by_shape;
    std::pair<size_t, std::vector<int32_t>> key;
    Cut cut;
    auto set_cut = [&](int64_t f) {
      const int64_t a = scope_starts.data()[f], b = scope_starts.data()[f + 1];
      cut.set(scopes.data() + a, b - a, cards.data(), observed);
    };
    for (int64_t f = 0; f < m; ++f) {
      set_cut(f);
      const double* table = tables.data() + table_starts.data()[f];
      if (cut.scope.empty()) {
        constant += table[cut.first];
      } else if (cut.scope.size() == 1) {
        double* out = left_unary.data() + own[size_t(cut.scope[0])];
        for (int64_t k = 0; k < cut.size; ++k) out[k] += table[cut.first + k * cut.strides[0]];
      } else {
        key.second.assign(cut.dims.begin(), cut.dims.end());
        key.first = cut.dims.size();
        by_shape[key].push_back(f);
      }
    }
    std::map<std::pair<int64_t, int64_t>, int64_t> shared;  // (start, entries) of whole tables that are laid out
    for (const auto& [_, members] : by_shape) {
      for (int64_t f : members) {
        set_cut(f);
        const int64_t from = table_starts.data()[f];
        int64_t start = int64_t(values.size());
        if (cut.size == cut.whole) {
          const auto [found, fresh] = shared.emplace(std::make_pair(from, cut.size), start);
          start = found->second;
          if (fresh) values.insert(values.end(), tables.data() + from, tables.data() + from + cut.size);
        } else {
          cut.entries([&](int64_t entry) { values.push_back(tables.data()[from + entry]); });
        }
        left_tables.push_back(start);
        for (int32_t v : cut.scope) left_scopes.push_back(place[size_t(v)]);
        left_starts.push_back(int64_t(left_scopes.size()));
        numbers.push_back(f);
      }
    }
  }
  return nb::make_tuple(to_numpy(std::move(left_cards)), to_numpy(std::move(left_unary)), constant,
                        to_numpy(std::move(left_starts)), to_numpy(std::move(left_scopes)),
                        to_numpy(std::move(left_tables)), to_numpy(std::move(values)), to_numpy(std::move(numbers)));
}

// Joint probabilities of the factors of a graph from those at the evidence (`beliefs`, of the factors `numbers`) and
// the marginals of all its variables.
nb::object widened_beliefs(const FlatGraph& graph, In1<int32_t> observed, In1<int64_t> numbers, In1<double> beliefs,
                           In1<double> marginals) {
  const FactorStructure& s = graph.structure();
  check_observed(observed, s.cards.data(), s.n);
  require(int64_t(marginals.shape(0)) == s.states(), "marginals must hold a value for every state");
  std::vector<int64_t> from(size_t(s.m), -1);
  int64_t filled = 0;
  Cut cut;
  auto set_cut = [&](int64_t f) {
    cut.set(s.scopes.data() + s.scope_starts[size_t(f)], s.arity(f), s.cards.data(), observed.data());
  };
  for (size_t i = 0; i < numbers.shape(0); ++i) {
    const int64_t f = numbers.data()[i];
    require(f >= 0 && f < s.m && from[size_t(f)] < 0, "numbers must be of different factors");
    set_cut(f);
    require(cut.scope.size() > 1, "numbers must be of factors with two variables or more that are not observed");
    require(cut.size <= int64_t(beliefs.shape(0)) - filled, "beliefs must fit the factors");
    from[size_t(f)] = filled;
    filled += cut.size;
  }
  require(filled == int64_t(beliefs.shape(0)), "beliefs must fit the factors");
  std::vector<double> whole(size_t(s.belief_starts[size_t(s.m)]), 0.0);
  for (int64_t f = 0; f < s.m; ++f) {
    set_cut(f);
    double* out = whole.data() + s.belief_starts[size_t(f)];
    const double one = 1.0, *in = &one;
    if (cut.scope.size() == 1) {
      in = marginals.data() + s.state_starts[size_t(cut.scope[0])];
    } else if (cut.scope.size() > 1) {
      require(from[size_t(f)] >= 0, "numbers must name every factor with two variables or more that are not observed");
      in = beliefs.data() + from[size_t(f)];
    }
    cut.entries([&](int64_t entry) { out[entry] = *in++; });
  }
  return to_numpy(std::move(whole));
}

}  // namespace

void bind_factors(nb::module_& m) {
  m.def("gathered", &gathered, "cards"_a, "unary"_a.none(), "constant"_a, "scope_starts"_a, "scopes"_a,
        "table_starts"_a, "tables"_a, "observed"_a.none());
  m.def("widened_beliefs", &widened_beliefs, "graph"_a, "observed"_a, "numbers"_a, "beliefs"_a, "marginals"_a);
  m.def("without_impossible_states", &without_impossible_states, "graph"_a);
  nb::class_<FlatGraph>(m, "FlatGraph")
      .def(nb::init<In1<int32_t>, In1<double>, double, In1<int64_t>, In1<int32_t>, In1<int64_t>, In1<double>>(),
           "cards"_a, "unary"_a, "constant"_a, "scope_starts"_a, "scopes"_a, "table_starts"_a, "tables"_a)
      .def(
          "with_potentials",
          [](const FlatGraph& graph, In1<double> unary, In1<double> tables, double constant) {
            return FlatGraph(graph.shared(), unary, constant, tables);
          },
          "unary"_a, "tables"_a, "constant"_a)
      .def_prop_ro("state_starts",
                   [](const FlatGraph& graph) {
                     std::vector<int64_t> starts = graph.structure().state_starts;
                     return to_numpy(std::move(starts));
                   })
      .def_prop_ro("is_forest", [](const FlatGraph& graph) { return graph.structure().forest; });
}

}  // namespace mercer
