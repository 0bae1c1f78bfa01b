// Graphlets: how often each type of small induced subgraph occurs in a graph, exactly or from samples, hashed by
// canonical form.
//
//   Φ_S(G) = #{A ⊂ V(G), |A| = k : G[A] ≅ S}
//   subset → canonical form → hash → count
#include <atomic>
#include <memory>
#include <thread>
#include <unordered_map>

#include "base/arrays.hpp"
#include "graphs/canonical_labeling.hpp"
#include "base/parallel.hpp"
#include "graphs/subset_samplers.hpp"

namespace mercer {
namespace graphlets {
namespace {

constexpr int DERIVED_K = 5;  // counts of disconnected types of up to so many nodes follow from those of connected ones
using Codes = std::array<int32_t, MAX_K>;  // labels

// -------------------------------------------------------------------------------------------------- disconnected types
//
// The counts of disconnected types follow from those of connected ones. For a type H with the components H_1 .. H_r,
//
//   Π_i #H_i = Σ_U c(U; H) #U,
//   c(U; H) the number of tuples (A_1 .. A_r) of subsets of U that cover U, with U[A_i] ≅ H_i,
//
// over all types U of at most k nodes. Every U ≠ H with c > 0 has fewer components than H, so the counts come out one
// after another.

struct Derived {
  int k;
  uint64_t type;
  std::vector<std::pair<int, uint64_t>> parts;                  // size and canonical mask of each component
  std::vector<std::tuple<int, uint64_t, int64_t>> corrections;  // size and canonical mask of U, c(U; H)
  int64_t own;                                                  // c(H; H)
};

uint64_t restricted(const Adjacency& adjacency, uint32_t set, int k) {
  std::array<int, MAX_K> place{};
  Adjacency inner{};
  int size = 0;
  for (int v = 0; v < k; ++v)
    if (set >> v & 1) place[size_t(size++)] = v;
  for (int b = 0; b < size; ++b)
    for (int a = 0; a < size; ++a)
      if (adjacency[size_t(place[size_t(b)])] >> place[size_t(a)] & 1) inner[size_t(b)] |= uint16_t(1 << a);
  std::array<int, MAX_K> same{};
  std::iota(same.begin(), same.end(), 0);
  return moved(inner, size, same.data());
}

std::vector<std::pair<int, uint64_t>> components_of(uint64_t mask, int k) {
  const Adjacency adjacency = adjacency_of(mask, k);
  std::vector<std::pair<int, uint64_t>> parts;
  for (uint32_t open = (1u << k) - 1; open;) {
    uint32_t part = open & -open, before = 0;
    while (part != before) {
      before = part;
      for (int v = 0; v < k; ++v)
        if (before >> v & 1) part |= adjacency[size_t(v)];
    }
    const int size = __builtin_popcount(part);
    parts.emplace_back(size, canonical_table(size, all_equal(size))[restricted(adjacency, part, k)]);
    open &= ~part;
  }
  std::sort(parts.begin(), parts.end());
  return parts;
}

int64_t coverings(uint64_t mask, int k, const std::vector<std::pair<int, uint64_t>>& parts) {
  const Adjacency adjacency = adjacency_of(mask, k);
  std::vector<std::pair<int, uint64_t>> type(size_t(1) << k);
  for (uint32_t set = 1; set < (1u << k); ++set) {
    const int size = __builtin_popcount(set);
    type[set] = {size, canonical_table(size, all_equal(size))[restricted(adjacency, set, k)]};
  }
  const auto count = [&](const auto& self, size_t i, uint32_t covered) -> int64_t {
    if (i == parts.size()) return covered == (1u << k) - 1;
    int64_t total = 0;
    for (uint32_t set = 1; set < (1u << k); ++set)
      if (type[set] == parts[i]) total += self(self, i + 1, covered | set);
    return total;
  };
  return count(count, 0, 0);
}

// The disconnected types of up to DERIVED_K nodes, in an order in which their counts can be computed.
const std::vector<Derived>& derived_types() {
  static const std::vector<Derived> derived = [] {
    struct Type {
      int k;
      uint64_t mask;
      std::vector<std::pair<int, uint64_t>> parts;
    };
    std::vector<Type> types;
    for (int k = 1; k <= DERIVED_K; ++k) {
      const auto& table = canonical_table(k, all_equal(k));
      for (size_t mask = 0; mask < table.size(); ++mask)
        if (table[mask] == mask) types.push_back({k, mask, components_of(mask, k)});
    }
    std::stable_sort(types.begin(), types.end(), [](const Type& a, const Type& b) {
      return a.k != b.k ? a.k < b.k : a.parts.size() < b.parts.size();
    });
    std::vector<Derived> found;
    for (const Type& type : types) {
      if (type.parts.size() == 1) continue;
      Derived entry{type.k, type.mask, type.parts, {}, coverings(type.mask, type.k, type.parts)};
      for (const Type& other : types)
        if (other.k <= type.k && other.parts.size() < type.parts.size())
          if (const int64_t c = coverings(other.mask, other.k, type.parts))
            entry.corrections.emplace_back(other.k, other.mask, c);
      found.push_back(std::move(entry));
    }
    return found;
  }();
  return derived;
}

using TypeCounts = std::array<std::vector<int64_t>, DERIVED_K + 1>;  // by size and canonical mask

void derive_disconnected(TypeCounts& counts, int k) {
  __extension__ typedef __int128 Wide;
  for (const Derived& entry : derived_types()) {
    if (entry.k > k) break;
    Wide total = 1;
    for (const auto& [size, mask] : entry.parts) total *= counts[size_t(size)][mask];
    for (const auto& [size, mask, c] : entry.corrections) total -= Wide(c) * counts[size_t(size)][mask];
    counts[size_t(entry.k)][entry.type] = int64_t(total / entry.own);
  }
}

// ------------------------------------------------------------------------------------------------- counts of one graph

struct Form {
  int k = 0;
  uint64_t mask = 0;
  Codes codes{};  // of the nodes in canonical order; 0 without labels
  bool operator==(const Form& other) const { return k == other.k && mask == other.mask && codes == other.codes; }
};

// Weights by canonical form.
class Counts {
 public:
  struct Entry {
    Form form;
    double weight;
  };
  Counts() : places_(64, -1) {}
  void clear() {
    if (places_.size() > 4096) places_.resize(4096);
    std::fill(places_.begin(), places_.end(), -1);
    entries_.clear();
  }
  void add(const Form& form, double weight) {
    size_t place = find(form);
    if (places_[place] >= 0) {
      entries_[size_t(places_[place])].weight += weight;
      return;
    }
    places_[place] = int32_t(entries_.size());
    entries_.push_back({form, weight});
    if (2 * entries_.size() > places_.size()) grow();
  }
  std::vector<Entry>& entries() { return entries_; }

 private:
  static uint64_t hash(const Form& form) {
    uint64_t h = form.mask * 16 + uint64_t(form.k);
    for (int v = 0; v < form.k; ++v) h = rotate_left(h * 0x9E3779B185EBCA87u, 23) + uint64_t(form.codes[size_t(v)]);
    return mix64(h);
  }
  size_t find(const Form& form) const {
    size_t place = hash(form) & (places_.size() - 1);
    while (places_[place] >= 0 && !(entries_[size_t(places_[place])].form == form))
      place = (place + 1) & (places_.size() - 1);
    return place;
  }
  void grow() {
    places_.assign(places_.size() * 2, -1);
    for (size_t i = 0; i < entries_.size(); ++i) places_[find(entries_[i].form)] = int32_t(i);
  }
  std::vector<Entry> entries_;
  std::vector<int32_t> places_;
};

// The places a < b that a bit of a mask speaks of.
constexpr std::array<uint8_t, pairs_of(MAX_K)> ends(bool first) {
  std::array<uint8_t, pairs_of(MAX_K)> table{};
  for (int b = 1; b < MAX_K; ++b)
    for (int a = 0; a < b; ++a) table[size_t(pairs_of(b) + a)] = uint8_t(first ? a : b);
  return table;
}
constexpr auto FIRST = ends(true), SECOND = ends(false);

// Lets Ctrl-C end long work: the calling thread asks the interpreter now and then, and tells the others.
class Interrupt {
 public:
  void check() {
    if (std::this_thread::get_id() == caller_) {
      nb::gil_scoped_acquire acquire;
      if (PyErr_CheckSignals() != 0) {
        stopped_ = true;
        throw nb::python_error();
      }
    }
    if (stopped_) throw std::runtime_error("interrupted");
  }

 private:
  const std::thread::id caller_ = std::this_thread::get_id();
  std::atomic<bool> stopped_{false};
};

// Takes subsets and brings them into canonical form. Without labels, masks of up to 5 nodes are counted as they come,
// and brought into canonical form once a graph.
class Tally {
 public:
  Tally(Canonical& canonical, Counts& counts, Interrupt& interrupt)
      : canonical_(canonical), counts_(counts), interrupt_(interrupt) {}
  void begin(const Graph& graph) { codes_ = graph.codes; }

  void tick() {
    if (++ticks_ % (1 << 18) == 0) interrupt_.check();
  }
  void add(uint64_t mask, const int32_t* nodes, int k, double weight) {
    tick();
    if (!codes_ && k <= DERIVED_K)
      raw_[size_t(k)][mask] += weight;
    else
      add_form(mask, nodes, k, weight);
  }
  void drop(int k) {  // forgets the raw counts of a size
    if (k <= DERIVED_K) raw_[size_t(k)].fill(0);
    counts_.clear();
  }
  void flush(int k) {
    if (codes_ || k > DERIVED_K) return;
    auto& raw = raw_[size_t(k)];
    const auto& table = canonical_table(k, all_equal(k));
    for (size_t mask = 0; mask < table.size(); ++mask) {
      if (raw[mask] == 0) continue;
      counts_.add({k, table[mask], {}}, raw[mask]);
      raw[mask] = 0;
    }
  }
  void take(int k, std::vector<int64_t>& by_type) {  // raw counts by canonical mask
    auto& raw = raw_[size_t(k)];
    const auto& table = canonical_table(k, all_equal(k));
    by_type.assign(table.size(), 0);
    for (size_t mask = 0; mask < table.size(); ++mask) by_type[table[mask]] += int64_t(raw[mask]);
    raw.fill(0);
  }

 private:
  void add_form(uint64_t mask, const int32_t* nodes, int k, double weight) {
    Form form;
    form.k = k;
    if (!codes_) {
      form.mask = canonical_.mask(mask, k, all_equal(k));
      return counts_.add(form, weight);
    }
    // Nodes sorted by label: order[p] is the node at place p, place its inverse.
    std::array<int, MAX_K> order{}, place{};
    for (int v = 0; v < k; ++v) {
      int p = v;
      const int32_t code = codes_[nodes[v]];
      for (; p > 0 && form.codes[size_t(p - 1)] > code; --p) {
        form.codes[size_t(p)] = form.codes[size_t(p - 1)];
        order[size_t(p)] = order[size_t(p - 1)];
      }
      form.codes[size_t(p)] = code;
      order[size_t(p)] = v;
    }
    int pattern = 0;
    for (int p = 0; p + 1 < k; ++p) pattern |= int(form.codes[size_t(p)] == form.codes[size_t(p + 1)]) << p;
    for (int p = 0; p < k; ++p) place[size_t(order[size_t(p)])] = p;
    uint64_t sorted = 0;
    for (uint64_t rest = mask; rest; rest &= rest - 1) {
      const int bit = __builtin_ctzll(rest);
      const int u = place[FIRST[size_t(bit)]], v = place[SECOND[size_t(bit)]];
      sorted |= uint64_t(1) << (u < v ? pairs_of(v) + u : pairs_of(u) + v);
    }
    form.mask = canonical_.mask(sorted, k, pattern);
    counts_.add(form, weight);
  }

  Canonical& canonical_;
  Counts& counts_;
  Interrupt& interrupt_;
  uint64_t ticks_ = 0;
  const int32_t* codes_ = nullptr;
  std::array<std::array<double, 1 << pairs_of(DERIVED_K)>, DERIVED_K + 1> raw_{};
};

enum class Method { exact, sample, mcmc };

struct Settings {
  std::vector<int> sizes;
  std::vector<std::vector<double>> beta;  // of each size, by edge count
  Method method = Method::exact;
  bool connected = true, normalize = false, is_signed = false;
  int64_t n_samples = 0, burn_in = 0, thin = 1;
  uint64_t seed = 0;         // of the hash
  uint64_t sample_seed = 0;  // of the samples
  int n_bits = 0;
};

// The largest number of subsets that are walked one by one; at some nanoseconds each, beyond patience.
constexpr double MOST_SUBSETS = 1e12;

class Counter {
 public:
  Counter(const Settings& settings, Interrupt& interrupt)
      : settings_(settings), tally_(canonical_, counts_, interrupt) {}

  // Entries of all sizes, weights scaled as asked for.
  std::vector<Counts::Entry>& count(const Graph& graph, int64_t number) {
    counts_.clear();
    result_.clear();
    tally_.begin(graph);
    subset_.reset(graph);
    if (settings_.method == Method::exact) {
      count_exactly(graph, number);
    } else {
      const uint64_t seed = graph.seed(settings_.sample_seed);
      for (size_t i = 0; i < settings_.sizes.size(); ++i) {
        const int k = settings_.sizes[i];
        Random random(combine(seed, uint64_t(k)));
        if (graph.n < k) continue;
        if (settings_.method == Method::mcmc)
          count_visits(graph, k, settings_.beta[i], random);
        else
          count_samples(graph, k, random);
        collect({k});
      }
    }
    if (settings_.normalize) normalize();
    return result_;
  }

 private:
  struct Unit {
    Tally& tally;
    void operator()(uint64_t mask, const int32_t* nodes, int k) const { tally.add(mask, nodes, k, 1.0); }
  };

  void collect(const std::vector<int>& sizes) {
    for (int k : sizes) tally_.flush(k);
    result_.insert(result_.end(), counts_.entries().begin(), counts_.entries().end());
    counts_.clear();
  }

  void count_exactly(const Graph& graph, int64_t number) {
    Unit unit{tally_};
    if (settings_.connected) {
      uint32_t sizes = 0;
      for (int k : settings_.sizes) sizes |= 1u << k;
      ConnectedSubsets<Unit>(graph, sizes, subset_, unit, INT64_MAX).walk();
      return collect(settings_.sizes);
    }
    int derived = 0;
    for (int k : settings_.sizes) {
      if (graph.n < k) continue;
      const double subsets = binomial(graph.n, k);
      const bool one_by_one = graph.codes || k > DERIVED_K;
      if (subsets > (one_by_one ? MOST_SUBSETS : 0x1p62))
        fail("graph " + std::to_string(number) + " has " + std::to_string(graph.n) + " nodes: too many subsets of " +
             std::to_string(k) + " nodes to count exactly with connected=False; use method='sample'");
      if (one_by_one) {
        all_subsets(graph, k, subset_, unit);
        collect({k});
      } else {
        derived = std::max(derived, k);
      }
    }
    if (derived) count_derived(graph, derived, unit);
  }

  void count_derived(const Graph& graph, int most, Unit& unit) {
    TypeCounts by_type;
    ConnectedSubsets<Unit>(graph, (2u << most) - 2, subset_, unit, INT64_MAX).walk();
    for (int k = 1; k <= most; ++k) tally_.take(k, by_type[size_t(k)]);
    derive_disconnected(by_type, most);
    for (int k : settings_.sizes)
      for (size_t mask = 0; k <= most && graph.n >= k && mask < by_type[size_t(k)].size(); ++mask)
        if (by_type[size_t(k)][mask]) result_.push_back({{k, mask, {}}, double(by_type[size_t(k)][mask])});
  }

  // Independent samples; a graph that has no more subsets than samples were asked for is walked instead.
  void count_samples(const Graph& graph, int k, Random& random) {
    Unit unit{tally_};
    const double share = 1.0 / double(settings_.n_samples);
    if (settings_.connected) {
      if (ConnectedSubsets<Unit>(graph, 1u << k, subset_, unit, settings_.n_samples).walk()) return;
      tally_.drop(k);
      Grower grower(graph, k, subset_, canonical_);
      for (int64_t s = 0; s < settings_.n_samples && grower.possible(); ++s) {
        const Drawn drawn = grower.draw(random);
        if (drawn.weight > 0) tally_.add(drawn.mask, drawn.nodes.data(), k, drawn.weight * share);
      }
      return;
    }
    const double subsets = binomial(graph.n, k);
    if (subsets <= double(settings_.n_samples)) return all_subsets(graph, k, subset_, unit);
    for (int64_t s = 0; s < settings_.n_samples; ++s) {
      const Drawn drawn = draw_any(graph, k, subset_, random);
      tally_.add(drawn.mask, drawn.nodes.data(), k, subsets * share);
    }
  }

  void count_visits(const Graph& graph, int k, const std::vector<double>& beta, Random& random) {
    GibbsChain chain(graph, k, beta.data(), settings_.connected, subset_, canonical_);
    if (!chain.possible()) return;
    chain.start(random);
    const auto steps = [&](int64_t count) {
      for (int64_t t = 0; t < count; ++t) {
        chain.step(random);
        tally_.tick();
      }
    };
    steps(settings_.burn_in);
    for (int64_t s = 0; s < settings_.n_samples; ++s) {
      steps(settings_.thin);
      if (chain.has_weight()) tally_.add(chain.mask(), chain.nodes(), k, 1.0);
    }
  }

  void normalize() {
    std::array<double, MAX_K + 1> totals{};
    for (const auto& entry : result_) totals[size_t(entry.form.k)] += entry.weight;
    for (auto& entry : result_) entry.weight /= totals[size_t(entry.form.k)];
  }

  const Settings& settings_;
  Canonical canonical_;
  Counts counts_;
  Tally tally_;
  Subset subset_;
  std::vector<Counts::Entry> result_;
};

// ---------------------------------------------------------------------------------------------------- hashed rows

// k as 4 bytes, the mask in as few as it needs, then 8 for the key of each label; the lowest byte first.
std::string form_bytes(const Form& form, const uint64_t* keys) {
  std::string bytes;
  const auto append = [&](uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes.push_back(char(value >> (8 * i) & 255));
  };
  append(uint64_t(form.k), 4);
  append(form.mask, (pairs_of(form.k) + 7) / 8);
  for (int v = 0; keys && v < form.k; ++v) append(keys[form.codes[size_t(v)]], 8);
  return bytes;
}

constexpr int WHOLE_HASH = 64;  // as n_bits: the bucket is the hash itself

struct Row {
  std::vector<std::pair<uint64_t, double>> cells;  // buckets, ascending
};
using Forms = std::unordered_map<std::string, double>;  // canonical forms and their weights

Row hashed_row(const std::vector<Counts::Entry>& entries, const Settings& settings, const uint64_t* keys,
               Forms* forms) {
  std::vector<std::pair<uint64_t, double>> hashed;
  for (const auto& entry : entries) {
    const std::string form = form_bytes(entry.form, keys);
    if (forms) (*forms)[form] += entry.weight;
    hashed.emplace_back(feature_hash(form, settings.seed), entry.weight);
  }
  const uint64_t mask = settings.n_bits == WHOLE_HASH ? ~uint64_t(0) : bucket_mask(settings.n_bits);
  std::sort(hashed.begin(), hashed.end(), [mask](const auto& a, const auto& b) {
    return std::make_pair(a.first & mask, a.first) < std::make_pair(b.first & mask, b.first);
  });
  Row row;
  for (const auto& [hash, weight] : hashed) {
    const uint64_t bucket = hash & mask;
    const double value = settings.is_signed ? hash_sign(hash) * weight : weight;
    if (!row.cells.empty() && row.cells.back().first == bucket)
      row.cells.back().second += value;
    else
      row.cells.emplace_back(bucket, value);
  }
  return row;
}

// ---------------------------------------------------------------------------------------------------- bindings

GraphStack simple_graphs(In1<int64_t> offsets, In1<int64_t> indptr, In1<int32_t> indices,
                         std::optional<In1<int32_t>> codes = {}, std::optional<In1<uint64_t>> keys = {}) {
  GraphStack stack(offsets, indptr, indices, Neighbours::simple);
  stack.set_labels(codes, keys);
  return stack;
}

Settings checked(std::vector<int> sizes, const std::string& method, bool connected, int64_t n_samples, int64_t burn_in,
                 int64_t thin, std::vector<std::vector<double>> beta, bool normalize, uint64_t seed, int n_bits,
                 bool is_signed) {
  Settings settings;
  require(!sizes.empty(), "sizes must not be empty");
  for (size_t i = 0; i < sizes.size(); ++i) {
    require(sizes[i] >= 1 && sizes[i] <= MAX_K, "sizes must lie between 1 and 9");
    require(i == 0 || sizes[i - 1] < sizes[i], "sizes must ascend");
  }
  require(method == "exact" || method == "sample" || method == "mcmc", "method must be 'exact', 'sample' or 'mcmc'");
  settings.method = method == "exact" ? Method::exact : method == "sample" ? Method::sample : Method::mcmc;
  if (settings.method == Method::mcmc) {
    require(beta.size() == sizes.size(), "beta must hold one list a size");
    for (size_t i = 0; i < beta.size(); ++i) {
      require(int(beta[i].size()) == pairs_of(sizes[i]) + 1, "beta must hold one value for each number of edges");
      require(all_finite(beta[i].data(), int64_t(beta[i].size())), "beta must be finite");
      for (double b : beta[i]) require(b >= 0, "beta must not be negative");
    }
  }
  require(settings.method == Method::exact || n_samples >= 1, "n_samples must be at least 1");
  require(burn_in >= 0 && thin >= 1, "burn_in must be at least 0 and thin at least 1");
  require(n_bits >= 1 && n_bits <= 30, "n_bits must lie between 1 and 30");
  settings.sizes = std::move(sizes);
  settings.beta = std::move(beta);
  settings.connected = connected;
  settings.normalize = normalize;
  settings.is_signed = is_signed;
  settings.n_samples = n_samples;
  settings.burn_in = burn_in;
  settings.thin = thin;
  settings.seed = settings.sample_seed = seed;
  settings.n_bits = n_bits;
  return settings;
}

// Rows of all graphs, on threads. A part is a run of graphs that share a memory of canonical forms.
std::vector<Row> hashed_rows(const GraphStack& stack, const Settings& settings, int threads, Forms* forms) {
  std::vector<Row> rows(size_t(stack.size()));
  const int64_t parts = threads <= 1 ? 1 : std::min<int64_t>(stack.size(), int64_t(threads) * 16);
  Interrupt interrupt;
  in_parallel(parts, threads, [&](int64_t part) {
    const auto counter = std::make_unique<Counter>(settings, interrupt);
    for (int64_t g = stack.size() * part / parts; g < stack.size() * (part + 1) / parts; ++g)
      rows[size_t(g)] = hashed_row(counter->count(stack.graph(g), g), settings, stack.keys(), forms);
  });
  return rows;
}

nb::object graphlet_rows(In1<int64_t> offsets, In1<int64_t> indptr, In1<int32_t> indices,
                         std::optional<In1<int32_t>> codes, std::optional<In1<uint64_t>> keys, std::vector<int> sizes,
                         const std::string& method, bool connected, int64_t n_samples, int64_t burn_in, int64_t thin,
                         std::vector<std::vector<double>> beta, bool normalize, uint64_t seed, int n_bits,
                         bool is_signed, int threads, std::optional<uint64_t> sample_seed) {
  const GraphStack stack = simple_graphs(offsets, indptr, indices, codes, keys);
  Settings settings = checked(std::move(sizes), method, connected, n_samples, burn_in, thin, std::move(beta), normalize,
                              seed, n_bits, is_signed);
  settings.sample_seed = sample_seed.value_or(seed);
  threads = thread_count(threads);
  std::vector<int64_t> row_starts(1, 0);
  std::vector<int32_t> columns;
  std::vector<double> values;
  {
    nb::gil_scoped_release release;
    for (Row& row : hashed_rows(stack, settings, threads, nullptr)) {
      for (const auto& [column, value] : row.cells) {
        columns.push_back(int32_t(column));
        values.push_back(value);
      }
      row_starts.push_back(int64_t(columns.size()));
    }
  }
  return nb::make_tuple(to_numpy(std::move(row_starts)), to_numpy(std::move(columns)), to_numpy(std::move(values)));
}

// The same with the whole hash of each type in the place of its bucket, for kernels.
nb::object graphlet_keys(In1<int64_t> offsets, In1<int64_t> indptr, In1<int32_t> indices,
                         std::optional<In1<int32_t>> codes, std::optional<In1<uint64_t>> keys, std::vector<int> sizes,
                         const std::string& method, bool connected, int64_t n_samples, bool normalize, uint64_t seed,
                         int threads) {
  const GraphStack stack = simple_graphs(offsets, indptr, indices, codes, keys);
  require(method == "exact" || method == "sample", "method must be 'exact' or 'sample'");
  Settings settings = checked(std::move(sizes), method, connected, n_samples, 0, 1, {}, normalize, seed, 1, false);
  settings.n_bits = WHOLE_HASH;
  threads = thread_count(threads);
  std::vector<int64_t> row_starts(1, 0);
  std::vector<uint64_t> hashes;
  std::vector<double> values;
  {
    nb::gil_scoped_release release;
    for (const Row& row : hashed_rows(stack, settings, threads, nullptr)) {
      for (const auto& [hash, value] : row.cells) {
        hashes.push_back(hash);
        values.push_back(value);
      }
      row_starts.push_back(int64_t(hashes.size()));
    }
  }
  return nb::make_tuple(to_numpy(std::move(row_starts)), to_numpy(std::move(hashes)), to_numpy(std::move(values)));
}

nb::list graphlet_forms(In1<int64_t> offsets, In1<int64_t> indptr, In1<int32_t> indices,
                        std::optional<In1<int32_t>> codes, std::optional<In1<uint64_t>> keys, std::vector<int> sizes,
                        const std::string& method, bool connected, int64_t n_samples, int64_t burn_in, int64_t thin,
                        std::vector<std::vector<double>> beta, uint64_t seed, int n_bits,
                        std::optional<uint64_t> sample_seed) {
  const GraphStack stack = simple_graphs(offsets, indptr, indices, codes, keys);
  Settings settings = checked(std::move(sizes), method, connected, n_samples, burn_in, thin, std::move(beta), false,
                              seed, n_bits, false);
  settings.sample_seed = sample_seed.value_or(seed);
  Forms forms;
  {
    nb::gil_scoped_release release;
    hashed_rows(stack, settings, 1, &forms);
  }
  const std::vector<std::pair<std::string, double>> found(forms.begin(), forms.end());
  nb::list out;
  for (const auto& [form, weight] : found)
    out.append(
        nb::make_tuple(nb::bytes(form.data(), form.size()), feature_hash(form, seed) & bucket_mask(n_bits), weight));
  return out;
}

nb::bytes canonical_graph(In2<uint8_t> adjacency, std::optional<In1<uint64_t>> labels) {
  const auto k = int(adjacency.shape(0));
  require(k >= 1 && k <= MAX_K && int(adjacency.shape(1)) == k, "adjacency must be square, of 1 to 9 nodes");
  require(!labels || int(labels->shape(0)) == k, "labels must hold one value a node");
  std::array<int, MAX_K> order{}, place{};
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int v) { return labels ? labels->data()[v] : uint64_t(0); };
  std::stable_sort(order.begin(), order.begin() + k, [&](int a, int b) { return key(a) < key(b); });
  Form form;
  form.k = k;
  std::vector<uint64_t> keys;
  int pattern = 0;
  for (int p = 0; p < k; ++p) {
    place[size_t(order[size_t(p)])] = p;
    form.codes[size_t(p)] = p;
    keys.push_back(key(order[size_t(p)]));
    if (p > 0 && keys[size_t(p)] == keys[size_t(p - 1)]) pattern |= 1 << (p - 1);
  }
  Adjacency neighbours{};
  for (int v = 0; v < k; ++v)
    for (int u = 0; u < k; ++u) {
      require(adjacency(size_t(v), size_t(u)) == adjacency(size_t(u), size_t(v)), "adjacency must be symmetric");
      if (adjacency(size_t(v), size_t(u)) && u != v) neighbours[size_t(v)] |= uint16_t(1 << u);
    }
  form.mask = Canonical().mask(moved(neighbours, k, place.data()), k, pattern);
  const std::string bytes = form_bytes(form, labels ? keys.data() : nullptr);
  return nb::bytes(bytes.data(), bytes.size());
}

// The same for graphs of any size: nodes by their places in a canonical order that sorts them by label.
nb::object canonical_order(In2<uint8_t> adjacency, std::optional<In1<uint64_t>> labels) {
  const size_t n = adjacency.shape(0);
  require(adjacency.shape(1) == n && n < size_t(INT32_MAX), "adjacency must be square");
  require(!labels || labels->shape(0) == n, "labels must hold one value a node");
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> lists;
  for (size_t v = 0; v < n; ++v) {
    for (size_t u = 0; u < n; ++u) {
      require(adjacency(v, u) == adjacency(u, v), "adjacency must be symmetric");
      if (adjacency(v, u) && u != v) lists.push_back(int32_t(u));
    }
    offsets.push_back(int64_t(lists.size()));
  }
  std::vector<int32_t> colour(n, 0);
  if (labels) {
    std::vector<uint64_t> sorted(labels->data(), labels->data() + n);
    std::sort(sorted.begin(), sorted.end());
    for (size_t v = 0; v < n; ++v)
      colour[v] = int32_t(std::lower_bound(sorted.begin(), sorted.end(), labels->data()[v]) - sorted.begin());
  }
  std::vector<int32_t> order;
  {
    nb::gil_scoped_release unlocked;
    order = CanonicalOrder(std::move(offsets), std::move(lists), colour).order();
  }
  return to_numpy(std::move(order));
}

// The chain of Lemma 4 on one graph: all its states, and the probabilities of Gibbs moves between them.
nb::object graphlet_transitions(In1<int64_t> indptr, In1<int32_t> indices, int k, std::vector<double> beta,
                                bool connected) {
  const int64_t ends[2] = {0, int64_t(indptr.shape(0)) - 1};
  const GraphStack stack = simple_graphs(In1<int64_t>(ends, {2}, nb::handle()), indptr, indices);
  const Settings settings = checked({k}, "mcmc", connected, 1, 0, 1, {beta}, false, 0, 1, false);
  const Graph graph = stack.graph(0);
  require(binomial(graph.n, k) <= 1e4, "the graph has too many subsets for a matrix of transitions");
  Subset subset;
  subset.reset(graph);
  Canonical canonical;
  std::vector<std::vector<int32_t>> states;
  auto keep = [&](uint64_t mask, const int32_t* nodes, int) {
    if (!connected || canonical.orders(mask, k) > 0) states.emplace_back(nodes, nodes + k);
  };
  if (graph.n >= k) all_subsets(graph, k, subset, keep);
  const size_t n = states.size();
  std::vector<double> transitions(n * n, 0);
  GibbsChain chain(graph, k, settings.beta[0].data(), connected, subset, canonical);
  for (size_t s = 0; s < n; ++s) {
    chain.set(states[s].data());
    for (int place = 0; place < k; ++place) {
      const std::vector<double> moves = chain.move_probabilities(place);
      for (int32_t v = 0; v < graph.n; ++v) {
        if (moves[size_t(v)] == 0) continue;
        std::vector<int32_t> next = states[s];
        next[size_t(place)] = v;
        std::sort(next.begin(), next.end());
        const auto found = std::lower_bound(states.begin(), states.end(), next);
        require(found != states.end() && *found == next, "beta must let every subset move to another");
        transitions[s * n + size_t(found - states.begin())] += moves[size_t(v)] / k;
      }
    }
  }
  std::vector<int32_t> flat;
  for (const auto& state : states) flat.insert(flat.end(), state.begin(), state.end());
  return nb::make_tuple(to_numpy(std::move(flat)), to_numpy(std::move(transitions)));
}

// The subsets that the chain visits, one after another.
nb::object graphlet_walk(In1<int64_t> indptr, In1<int32_t> indices, int k, std::vector<double> beta, bool connected,
                         int64_t n_samples, int64_t burn_in, int64_t thin, uint64_t seed) {
  const int64_t ends[2] = {0, int64_t(indptr.shape(0)) - 1};
  const GraphStack stack = simple_graphs(In1<int64_t>(ends, {2}, nb::handle()), indptr, indices);
  const Settings settings = checked({k}, "mcmc", connected, n_samples, burn_in, thin, {beta}, false, seed, 1, false);
  std::vector<int32_t> visited;
  {
    nb::gil_scoped_release release;
    const Graph graph = stack.graph(0);
    Subset subset;
    subset.reset(graph);
    Canonical canonical;
    GibbsChain chain(graph, k, settings.beta[0].data(), connected, subset, canonical);
    if (chain.possible()) {
      Random random(combine(graph.seed(seed), uint64_t(k)));
      chain.start(random);
      for (int64_t s = 0; s < burn_in; ++s) chain.step(random);
      for (int64_t s = 0; s < n_samples; ++s) {
        for (int64_t t = 0; t < thin; ++t) chain.step(random);
        if (chain.has_weight()) visited.insert(visited.end(), chain.nodes(), chain.nodes() + k);
      }
    }
  }
  return to_numpy(std::move(visited));
}

}  // namespace
}  // namespace graphlets

void bind_graphlets(nb::module_& m) {
  using namespace graphlets;
  m.def("graphlet_rows", &graphlet_rows, "offsets"_a, "indptr"_a, "indices"_a, "codes"_a.none(), "keys"_a.none(),
        "sizes"_a, "method"_a, "connected"_a, "n_samples"_a, "burn_in"_a, "thin"_a, "beta"_a, "normalize"_a, "seed"_a,
        "n_bits"_a, "signed"_a, "threads"_a, "sample_seed"_a.none() = nb::none());
  m.def("graphlet_keys", &graphlet_keys, "offsets"_a, "indptr"_a, "indices"_a, "codes"_a.none(), "keys"_a.none(),
        "sizes"_a, "method"_a, "connected"_a, "n_samples"_a, "normalize"_a, "seed"_a, "threads"_a);
  m.def("graphlet_forms", &graphlet_forms, "offsets"_a, "indptr"_a, "indices"_a, "codes"_a.none(), "keys"_a.none(),
        "sizes"_a, "method"_a, "connected"_a, "n_samples"_a, "burn_in"_a, "thin"_a, "beta"_a, "seed"_a, "n_bits"_a,
        "sample_seed"_a.none() = nb::none());
  m.def("label_key", [](const std::string& label) { return feature_hash(std::string_view(label), 0); }, "label"_a);
  m.def("canonical_graph", &canonical_graph, "adjacency"_a, "labels"_a.none());
  m.def("canonical_order", &canonical_order, "adjacency"_a, "labels"_a.none());
  m.def("graphlet_transitions", &graphlet_transitions, "indptr"_a, "indices"_a, "k"_a, "beta"_a, "connected"_a);
  m.def("graphlet_walk", &graphlet_walk, "indptr"_a, "indices"_a, "k"_a, "beta"_a, "connected"_a, "n_samples"_a,
        "burn_in"_a, "thin"_a, "seed"_a);
}

}  // namespace mercer
