// Markov chain Monte Carlo on factor graphs: Gibbs (single variables, blocks of them, colours) and Metropolis, at any
// temperature.
//
// A sampler holds a number of chains. Each has its own stream of random numbers, so the result does not depend on the
// number of threads.
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "inference/factors.hpp"
#include "hashing/feature_hash.hpp"
#include "base/parallel.hpp"
#include "inference/spin_layout.hpp"

namespace mercer {
namespace {

constexpr int64_t FLUSH = 1 << 12;      // sweeps that may be summed in single precision
constexpr int64_t MAX_JOINT = 1 << 16;  // joint states of a block
// Probability that a Metropolis sweep passes a variable by. Without it, proposals that are always accepted (a flat
// target) turn the whole assignment round and round in the order of the sweep: the chain is periodic. With it every
// sweep may leave any variables as they are, so the product over variables is aperiodic, and irreducible wherever
// single changes lead from each assignment to each other one.
constexpr double LAZINESS = 0.25;

// xoshiro256++
class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& s : state_) s = mix64(seed += 0x9e3779b97f4a7c15ull);
  }
  uint64_t next() {
    const uint64_t result = rotated(state_[0] + state_[3], 23) + state_[0], t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotated(state_[3], 45);
    return result;
  }
  double uniform() { return double(next() >> 11) * 0x1p-53; }
  int64_t below(int64_t n) { return int64_t((unsigned __int128)(next()) * uint64_t(n) >> 64); }

 private:
  static uint64_t rotated(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::array<uint64_t, 4> state_;
};

// Draws k with probability ∝ exp(logits[k]); −1 if all are impossible. Leaves the probabilities in `logits`.
int32_t draw(std::vector<double>& logits, size_t count, Random& random) {
  double top = kImpossible;
  for (size_t k = 0; k < count; ++k) top = std::max(top, logits[k]);
  if (top == kImpossible) return -1;
  double sum = 0.0;
  for (size_t k = 0; k < count; ++k) sum += logits[k] = std::exp(logits[k] - top);
  double left = random.uniform() * sum;
  int32_t chosen = -1;
  for (size_t k = 0; k < count; ++k) {
    if (chosen < 0 && left < logits[k]) chosen = int32_t(k);
    left -= chosen < 0 ? logits[k] : 0.0;
    logits[k] /= sum;
  }
  for (size_t k = count; chosen < 0 && k-- > 0;)
    if (logits[k] > 0) chosen = int32_t(k);  // rounding
  return chosen;
}

struct Chain {
  explicit Chain(uint64_t seed) : random(seed) {}
  Random random;
  std::vector<int32_t> x, first, best;
  std::vector<uint8_t> moved,
      choice;  // has a variable left its first state; was there another state to go to in a sweep that counts
  double best_value = kImpossible;
  std::vector<double> totals;
  int64_t swept = 0, accepted = 0, proposed = 0;
  // Spins only.
  std::vector<float> spins, sums;
  std::vector<int8_t> bits;
  std::vector<uint8_t> visits;
  std::vector<uint32_t> streams;
  int64_t summed = 0;
};

class Sampler {
 public:
  enum Kind { GIBBS, RANDOM, METROPOLIS, COLOURS };  // RANDOM: Gibbs with variables drawn at random

  Sampler(const FlatGraph& graph, In2<int32_t> start, uint64_t seed, const std::string& kind,
          std::vector<std::vector<int64_t>> blocks)
      : graph_(graph), blocks_(std::move(blocks)) {
    const FactorStructure& s = graph_.structure();
    kind_ = kind == "gibbs" ? GIBBS : kind == "random" ? RANDOM : kind == "metropolis" ? METROPOLIS : COLOURS;
    require(kind_ != COLOURS || kind == "colours", "kind must be 'gibbs', 'random', 'metropolis' or 'colours'");
    require(int64_t(start.shape(1)) == s.n, "start must hold one state for each variable");
    require(blocks_.empty() || kind_ == GIBBS, "only Gibbs sampling takes blocks");
    check_blocks();
    if (kind_ == COLOURS) {
      require(SpinGraph::possible(graph_),
              "colours need variables with two states and factors of two variables without zeros");
      const SpinGraph spins(graph_);
      if (Counts::possible(spins)) counts_ = std::make_unique<Counts>(spins);
      spins_ = std::make_unique<Spins>(spins);
    }
    for (size_t c = 0; c < start.shape(0); ++c) {
      const int32_t* x = start.data() + c * size_t(s.n);
      check_assignment(s, x, s.n, "start must hold states of the variables");
      chains_.emplace_back(mix64(seed + 0x632be59bd9b4e019ull * (c + 1)));
      Chain& chain = chains_.back();
      chain.x.assign(x, x + s.n);
      chain.first = chain.x;
      chain.moved.assign(size_t(s.n), 0);
      chain.choice.assign(size_t(s.n), 0);
      if (kind_ == COLOURS)  // no pair is impossible: whatever a variable's own table leaves open
        for (int64_t i = 0; i < s.n; ++i) chain.choice[size_t(i)] = possible_states(i) > 1;
      chain.totals.assign(size_t(s.states()), 0.0);
      chain.best = chain.x;
      chain.best_value = graph_.score(x);
      if (spins_) begin_spins(chain);
    }
  }

  // Sweeps at the given inverse temperatures. Every `keep` sweeps the states go to `samples` and their score to
  // `trace`, and the best are remembered.
  void run(In1<double> betas, int64_t keep, std::optional<Out3<int32_t>> samples, std::optional<Out2<double>> trace,
           bool collect, int threads) {
    const int64_t sweeps = int64_t(betas.shape(0)), n = graph_.structure().n, chains = int64_t(chains_.size());
    require(keep >= 0 && (keep > 0 || (!samples && !trace)), "keep must be positive where something is kept");
    require(all_finite(betas.data(), sweeps), "betas must be finite");
    for (int64_t t = 0; t < sweeps; ++t) require(betas.data()[t] >= 0, "betas must not be negative");
    const int64_t kept = keep ? sweeps / keep : 0;
    if (samples)
      require(
          int64_t(samples->shape(0)) == chains && int64_t(samples->shape(1)) == kept && int64_t(samples->shape(2)) == n,
          "samples must be of shape (chains, kept, variables)");
    if (trace)
      require(int64_t(trace->shape(0)) == chains && int64_t(trace->shape(1)) == kept,
              "trace must be of shape (chains, kept)");
    threads = thread_count(threads);
    nb::gil_scoped_release unlocked;
    tabled_ = counts_ && counts_->prepare(betas.data(), sweeps);
    in_parallel(chains, chains > 1 ? threads : 1, [&](int64_t c) {
      Chain& chain = chains_[size_t(c)];
      if (spins_) read_spins(chain);
      for (int64_t t = 0; t < sweeps; ++t) {
        sweep(chain, betas.data()[t], collect, chains > 1 ? 1 : threads);
        if (!keep || (t + 1) % keep != 0) continue;
        if (spins_) write_spins(chain);
        mark_moves(chain);
        const double value = graph_.score(chain.x.data());
        if (value > chain.best_value) {
          chain.best_value = value;
          chain.best = chain.x;
        }
        if (samples) std::copy(chain.x.begin(), chain.x.end(), samples->data() + (c * kept + t / keep) * n);
        if (trace) trace->data()[c * kept + t / keep] = value;
      }
      if (spins_) write_spins(chain);
      if (spins_) flush(chain);
      mark_moves(chain);
    });
  }

  nb::object states() const {
    std::vector<int32_t> all;
    for (const Chain& c : chains_) all.insert(all.end(), c.x.begin(), c.x.end());
    return to_numpy(std::move(all));
  }
  // Sums of the conditional probabilities (Gibbs) or visits (Metropolis) of every state, chain after chain, and the
  // sweeps they are from.
  nb::tuple totals() const {
    std::vector<double> all;
    std::vector<int64_t> swept;
    for (const Chain& c : chains_) {
      all.insert(all.end(), c.totals.begin(), c.totals.end());
      swept.push_back(c.swept);
    }
    return nb::make_tuple(to_numpy(std::move(all)), to_numpy(std::move(swept)));
  }
  // For every variable: whether some chain has left its first state (at a sweep that was looked at), and whether
  // there was another possible state in a sweep that was collected.
  nb::tuple mobility() const {
    std::vector<uint8_t> moved(size_t(graph_.structure().n), 0), choice(moved);
    for (const Chain& c : chains_)
      for (size_t i = 0; i < moved.size(); ++i) moved[i] |= c.moved[i], choice[i] |= c.choice[i];
    return nb::make_tuple(to_numpy(std::move(moved)), to_numpy(std::move(choice)));
  }
  nb::tuple best() const {
    const Chain* top = &chains_.front();
    for (const Chain& c : chains_)
      if (c.best_value > top->best_value) top = &c;
    return nb::make_tuple(to_numpy(std::vector<int32_t>(top->best)), top->best_value);
  }
  double acceptance() const {
    int64_t accepted = 0, proposed = 0;
    for (const Chain& c : chains_) accepted += c.accepted, proposed += c.proposed;
    return proposed ? double(accepted) / double(proposed) : 1.0;
  }

 private:
  int possible_states(int64_t i) const {
    const FactorStructure& s = graph_.structure();
    const double* unary = graph_.unary() + s.state_starts[size_t(i)];
    return int(std::count_if(unary, unary + s.cards[size_t(i)], [](double u) { return u != kImpossible; }));
  }
  static void mark_moves(Chain& chain) {
    for (size_t i = 0; i < chain.x.size(); ++i) chain.moved[i] |= uint8_t(chain.x[i] != chain.first[i]);
  }

  void check_blocks() {
    const FactorStructure& s = graph_.structure();
    std::vector<int> seen(size_t(s.n), 0);
    for (const auto& block : blocks_) {
      require(!block.empty(), "a block must hold at least one variable");
      int64_t joint = 1;
      for (int64_t v : block) {
        require(v >= 0 && v < s.n, "a block names a variable that is not there");
        require(!seen[size_t(v)]++, "a variable is in two blocks, or twice in one");
        joint *= s.cards[size_t(v)];
        require(joint <= MAX_JOINT, "a block has more than 65536 joint states");
      }
      most_joint_ = std::max(most_joint_, joint);
    }
    if (!blocks_.empty())
      for (int64_t v = 0; v < s.n; ++v)
        if (!seen[size_t(v)]) blocks_.push_back({v});
  }

  void sweep(Chain& chain, double beta, bool collect, int threads) {
    if (collect) ++chain.swept;
    if (kind_ == COLOURS) {
      if (tabled_)
        loops<SpinLoops>().count_sweep(counts_->field, chain.bits.data() + Counts::WIDTH,
                                       collect ? chain.visits.data() : nullptr, chain.streams.data(), threads);
      else
        loops<SpinLoops>().spin_sweep(spins_->field, float(beta), chain.spins.data(),
                                      collect ? chain.sums.data() : nullptr, chain.streams.data(), threads);
      if (collect && ++chain.summed == (tabled_ ? Counts::FLUSH : FLUSH)) flush(chain);
      return;
    }
    const FactorStructure& s = graph_.structure();
    std::vector<double> logits(size_t(std::max<int64_t>(most_joint_, s.most_states)) + 1);
    if (!blocks_.empty()) {
      for (const auto& block : blocks_) draw_block(chain, block, beta, collect, logits);
      return;
    }
    if (kind_ == RANDOM) return random_scan(chain, beta, collect, logits);
    for (int64_t i = 0; i < s.n; ++i)
      kind_ == GIBBS ? draw_one(chain, i, beta, collect, logits) : propose(chain, i, beta, collect);
  }

  // As many draws as there are variables, of variables chosen at random. What a variable's conditional probabilities are
  // is known when it is drawn alone, so marginals count the states at the end of each sweep.
  void random_scan(Chain& chain, double beta, bool collect, std::vector<double>& logits) {
    const FactorStructure& s = graph_.structure();
    for (int64_t k = 0; k < s.n; ++k) {
      const int64_t i = std::min(s.n - 1, int64_t(chain.random.uniform() * double(s.n)));
      draw_one(chain, i, beta, collect, logits, false);
    }
    for (int64_t i = 0; collect && i < s.n; ++i)
      chain.totals[size_t(s.state_starts[size_t(i)] + chain.x[size_t(i)])] += 1.0;
  }

  // Σ of the log-potentials that depend on variable i, were it in state k.
  double local(const Chain& chain, int64_t i, int32_t k) const {
    const FactorStructure& s = graph_.structure();
    double total = graph_.unary()[s.state_starts[size_t(i)] + k];
    for (int64_t at = s.incident_starts[size_t(i)]; at < s.incident_starts[size_t(i) + 1]; ++at) {
      const int64_t slot = s.incident[size_t(at)], f = s.slot_factor[size_t(slot)];
      total += graph_.table(f)[rest(chain, slot, f) + s.strides[size_t(slot)] * k];
    }
    return total;
  }
  // Where the table of factor f stands at the states of all its variables but that of the slot.
  int64_t rest(const Chain& chain, int64_t slot, int64_t f) const {
    const FactorStructure& s = graph_.structure();
    int64_t at = 0;
    for (int64_t o = s.scope_starts[size_t(f)]; o < s.scope_starts[size_t(f) + 1]; ++o)
      if (o != slot) at += s.strides[size_t(o)] * chain.x[size_t(s.scopes[size_t(o)])];
    return at;
  }

  void draw_one(Chain& chain, int64_t i, double beta, bool collect, std::vector<double>& logits, bool sums = true) {
    const FactorStructure& s = graph_.structure();
    const int32_t card = s.cards[size_t(i)];
    const double* unary = graph_.unary() + s.state_starts[size_t(i)];
    for (int32_t k = 0; k < card; ++k) logits[size_t(k)] = unary[k];
    for (int64_t at = s.incident_starts[size_t(i)]; at < s.incident_starts[size_t(i) + 1]; ++at) {
      const int64_t slot = s.incident[size_t(at)], f = s.slot_factor[size_t(slot)], stride = s.strides[size_t(slot)];
      const double* table = graph_.table(f) + rest(chain, slot, f);
      for (int32_t k = 0; k < card; ++k) logits[size_t(k)] += table[stride * k];
    }
    int open = 0;
    for (int32_t k = 0; k < card; ++k)
      if (logits[size_t(k)] != kImpossible) {
        logits[size_t(k)] *= beta;
        ++open;
      }
    chain.choice[size_t(i)] |= uint8_t(collect && open > 1);
    const int32_t drawn = draw(logits, size_t(card), chain.random);
    if (drawn < 0) return;  // nothing is possible here until neighbours change
    chain.x[size_t(i)] = drawn;
    if (collect && sums)
      for (int32_t k = 0; k < card; ++k) chain.totals[size_t(s.state_starts[size_t(i)] + k)] += logits[size_t(k)];
  }

  void draw_block(Chain& chain, const std::vector<int64_t>& block, double beta, bool collect,
                  std::vector<double>& logits) {
    const FactorStructure& s = graph_.structure();
    std::vector<int64_t> factors;
    int64_t joint = 1;
    for (int64_t v : block) {
      joint *= s.cards[size_t(v)];
      for (int64_t at = s.incident_starts[size_t(v)]; at < s.incident_starts[size_t(v) + 1]; ++at)
        factors.push_back(s.slot_factor[size_t(s.incident[size_t(at)])]);
    }
    std::sort(factors.begin(), factors.end());
    factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
    const std::vector<int32_t> before = states_of(chain, block);
    std::vector<int32_t> open;  // states of the first possible joint state
    for (int64_t z = 0; z < joint; ++z) {
      set(chain, block, z);
      double total = 0.0;
      for (int64_t v : block) total += graph_.unary()[s.state_starts[size_t(v)] + chain.x[size_t(v)]];
      for (int64_t f : factors) {
        int64_t at = 0;
        for (int64_t o = s.scope_starts[size_t(f)]; o < s.scope_starts[size_t(f) + 1]; ++o)
          at += s.strides[size_t(o)] * chain.x[size_t(s.scopes[size_t(o)])];
        total += graph_.table(f)[at];
      }
      logits[size_t(z)] = total == kImpossible ? total : beta * total;
      if (total == kImpossible || !collect) continue;
      if (open.empty()) open = states_of(chain, block);
      for (size_t k = 0; k < block.size(); ++k)
        chain.choice[size_t(block[k])] |= uint8_t(chain.x[size_t(block[k])] != open[k]);
    }
    const int32_t drawn = draw(logits, size_t(joint), chain.random);
    if (drawn < 0) {
      for (size_t k = 0; k < block.size(); ++k) chain.x[size_t(block[k])] = before[k];
      return;
    }
    if (collect)
      for (int64_t z = 0; z < joint; ++z) {
        set(chain, block, z);
        for (int64_t v : block)
          chain.totals[size_t(s.state_starts[size_t(v)] + chain.x[size_t(v)])] += logits[size_t(z)];
      }
    set(chain, block, drawn);
  }

  static std::vector<int32_t> states_of(const Chain& chain, const std::vector<int64_t>& block) {
    std::vector<int32_t> states;
    for (int64_t v : block) states.push_back(chain.x[size_t(v)]);
    return states;
  }
  void set(Chain& chain, const std::vector<int64_t>& block, int64_t z) const {
    for (int64_t v : block) {
      const int64_t card = graph_.structure().cards[size_t(v)];
      chain.x[size_t(v)] = int32_t(z % card);
      z /= card;
    }
  }

  // A state drawn from the others, taken with probability min(1, exp(β Δ)); now and then the variable is passed by.
  void propose(Chain& chain, int64_t i, double beta, bool collect) {
    const FactorStructure& s = graph_.structure();
    const int32_t card = s.cards[size_t(i)], now = chain.x[size_t(i)];
    if (card > 1 && chain.random.uniform() >= LAZINESS) {
      const int32_t other = int32_t((now + 1 + chain.random.below(card - 1)) % card);
      const double here = local(chain, i, now), there = local(chain, i, other), u = chain.random.uniform();
      ++chain.proposed;
      chain.choice[size_t(i)] |= uint8_t(collect && there != kImpossible);
      if (there != kImpossible && (here == kImpossible || there >= here || u < std::exp(beta * (there - here)))) {
        chain.x[size_t(i)] = other;
        ++chain.accepted;
      }
    }
    if (collect) chain.totals[size_t(s.state_starts[size_t(i)] + chain.x[size_t(i)])] += 1.0;
  }

  void begin_spins(Chain& chain) const {
    chain.spins.assign(spins_->length() + 16, 0.0f);
    chain.sums.assign(spins_->length(), 0.0f);
    if (counts_) {
      chain.bits.assign(counts_->length() + 2 * Counts::WIDTH, 0);
      chain.visits.assign(counts_->length() * size_t(counts_->field.degree), 0);
    }
    const size_t chunks = std::max(spins_->chunk_starts.size(), counts_ ? counts_->chunk_starts.size() : 0) - 1;
    chain.streams.resize(STREAM * chunks);
    for (uint32_t& word : chain.streams) word = uint32_t(chain.random.next() >> 32) | 1u;
  }
  // The states as the loops hold them, and back.
  void read_spins(Chain& chain) const {
    for (size_t i = 0; i < chain.x.size(); ++i)
      if (tabled_)
        chain.bits[Counts::WIDTH + size_t(counts_->place[i])] = int8_t(chain.x[i]);
      else
        chain.spins[size_t(spins_->place[i])] = float(chain.x[i]);
  }
  void write_spins(Chain& chain) const {
    for (size_t i = 0; i < chain.x.size(); ++i)
      chain.x[i] = tabled_ ? chain.bits[Counts::WIDTH + size_t(counts_->place[i])]
                           : chain.spins[size_t(spins_->place[i])] > 0.5f;
  }
  void flush(Chain& chain) const {
    for (size_t i = 0; i < chain.x.size(); ++i) {
      const double up =
          tabled_ ? counts_->taken(i, chain.summed, chain.visits.data()) : double(chain.sums[size_t(spins_->place[i])]);
      chain.totals[2 * i] += double(chain.summed) - up;
      chain.totals[2 * i + 1] += up;
    }
    std::fill(chain.sums.begin(), chain.sums.end(), 0.0f);
    std::fill(chain.visits.begin(), chain.visits.end(), uint8_t(0));
    chain.summed = 0;
  }

  FlatGraph graph_;
  std::vector<std::vector<int64_t>> blocks_;
  int64_t most_joint_ = 1;
  Kind kind_;
  std::unique_ptr<Spins> spins_;
  std::unique_ptr<Counts> counts_;  // where neighbours pull equally; used while the temperature stays the same
  bool tabled_ = false;
  std::vector<Chain> chains_;
};

}  // namespace

void bind_gibbs(nb::module_& m) {
  m.def("can_colour", [](const FlatGraph& g) { return SpinGraph::possible(g); }, "graph"_a);
  nb::class_<Sampler>(m, "Sampler", "Chains of samples of a factor graph.")
      .def(
          "__init__",
          [](Sampler* self, const FlatGraph& graph, In2<int32_t> start, uint64_t seed, const std::string& kind,
             std::vector<std::vector<int64_t>> blocks) {
            require(start.shape(0) >= 1, "start must hold at least one chain");
            new (self) Sampler(graph, start, seed, kind, std::move(blocks));
          },
          "graph"_a, "start"_a.noconvert(), "seed"_a, "kind"_a, "blocks"_a)
      .def("run", &Sampler::run, "betas"_a.noconvert(), "keep"_a, "samples"_a.noconvert().none(),
           "trace"_a.noconvert().none(), "collect"_a, "threads"_a = 1)
      .def("states", &Sampler::states)
      .def("totals", &Sampler::totals)
      .def("mobility", &Sampler::mobility)
      .def("best", &Sampler::best)
      .def("acceptance", &Sampler::acceptance);
}

}  // namespace mercer
