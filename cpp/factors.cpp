// Factor graphs as flat tables of log-potentials: checked once, then shared by all methods.
#include "factors.hpp"

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
  for (size_t slot = 0; slot < s.scopes.size(); ++slot) s.incident[size_t(next[size_t(s.scopes[slot])]++)] = int64_t(slot);
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

void bind_factors(nb::module_& m) {
  nb::class_<FlatGraph>(m, "FlatGraph")
      .def(nb::init<In1<int32_t>, In1<double>, double, In1<int64_t>, In1<int32_t>, In1<int64_t>, In1<double>>(), "cards"_a,
           "unary"_a, "constant"_a, "scope_starts"_a, "scopes"_a, "table_starts"_a, "tables"_a)
      .def("with_potentials",
           [](const FlatGraph& graph, In1<double> unary, In1<double> tables, double constant) {
             return FlatGraph(graph.shared(), unary, constant, tables);
           }, "unary"_a, "tables"_a, "constant"_a)
      .def_prop_ro("is_forest", [](const FlatGraph& graph) { return graph.structure().forest; });
  bind_messages(m);
  bind_mean_field(m);
}

}  // namespace mercer
