// Random fields learned by sampling: half sweeps of restricted Boltzmann machines, sweeps of pairwise fields of units
// with two states and of labels on graphs, collapsed Gibbs sampling of topics and of parts of shapes.
//
//   p(x) ∝ exp(β θ·φ(x)): every sweep leaves the field at inverse temperature β invariant.
#include <cmath>
#include <cstring>
#include <vector>

#include "base/arrays.hpp"
#include "base/parallel.hpp"
#include "base/signals.hpp"
#include "inference/field_loops.hpp"

namespace mercer {
namespace {

// A number in [0, 1) of a counter.
double uniform(uint64_t counter) { return double(mixed_counter(counter) >> 11) * 0x1p-53; }

void require_bits(const uint8_t* x, int64_t n) {
  uint8_t seen = 0;
  for (int64_t i = 0; i < n; ++i) seen |= x[i];
  require(seen <= 1, "states must be 0 or 1");
}

// As many threads as so many steps of work, a nanosecond or less each, are worth. Threads that wait for each other on a
// busy machine lose a turn of its scheduler, some milliseconds, however small the work was.
int threads_worth(double steps, int threads) { return steps < double(int64_t(1) << 22) ? 1 : threads; }

// Rows are counted on from it, which must not leave the range of its type.
void require_first_row(int64_t first_row) {
  require(first_row >= 0 && first_row < int64_t(1) << 62, "first_row must lie in 0 .. 2^62 - 1");
}

template <class T> T* optional_output(std::optional<Out2<T>>& out, int64_t n, int64_t m) {
  if (!out) return nullptr;
  require(int64_t(out->shape(0)) == n && int64_t(out->shape(1)) == m, "an output has the wrong shape");
  return out->data();
}

// ---------------------------------------------------------------------------------------------- restricted machines

void half_sweep(In2<uint8_t> x, In2<float> w, std::optional<In1<float>> bias, double beta, uint64_t key,
                int64_t first_row, std::optional<Out2<float>> fields, std::optional<Out2<float>> probabilities,
                std::optional<Out2<uint8_t>> states, int threads) {
  HalfSweep t{};
  t.n = int64_t(x.shape(0));
  t.k = int64_t(x.shape(1));
  t.m = int64_t(w.shape(1));
  require(int64_t(w.shape(0)) == t.k, "the matrix must have a row for each unit");
  require(!bias || int64_t(bias->shape(0)) == t.m, "there must be a bias for each column of the matrix");
  require_first_row(first_row);
  require_bits(x.data(), t.n * t.k);
  t.x = x.data();
  t.w = w.data();
  t.bias = bias ? bias->data() : nullptr;
  t.beta = float(beta);
  t.key = key;
  t.first_row = first_row;
  t.fields = optional_output(fields, t.n, t.m);
  t.probabilities = optional_output(probabilities, t.n, t.m);
  t.states = optional_output(states, t.n, t.m);
  if (!t.n || !t.m) return;
  const int n_threads = threads_worth(double(t.n) * double(t.m) * double(t.k + 16), thread_count(threads));
  const FieldLoops& loops = mercer::loops<FieldLoops>();
  nb::gil_scoped_release release;
  loops.half_sweep(t, n_threads);
}

void sample_fields(In2<float> fields, double scale, uint64_t key, int64_t first_row,
                   std::optional<Out2<float>> probabilities, std::optional<Out2<uint8_t>> states, int threads) {
  const int64_t n = int64_t(fields.shape(0)), m = int64_t(fields.shape(1));
  float* p = optional_output(probabilities, n, m);
  uint8_t* s = optional_output(states, n, m);
  require_first_row(first_row);
  const float* f = fields.data();
  const int n_threads = threads_worth(16.0 * double(n) * double(m), thread_count(threads));
  const FieldLoops& loops = mercer::loops<FieldLoops>();
  nb::gil_scoped_release release;
  loops.sample(f, n, m, float(scale), key, first_row, p, s, n_threads);
}

void outer(In2<uint8_t> x, In2<float> dense, double scale, Out2<float> out, int threads) {
  const int64_t n = int64_t(x.shape(0)), k = int64_t(x.shape(1)), m = int64_t(dense.shape(1));
  require(int64_t(dense.shape(0)) == n, "both matrices must have the same number of rows");
  require(int64_t(out.shape(0)) == k && int64_t(out.shape(1)) == m, "the output has the wrong shape");
  require_bits(x.data(), n * k);
  if (!n || !k || !m) return;
  const uint8_t* from = x.data();
  const float* d = dense.data();
  float* to = out.data();
  const int n_threads = threads_worth(double(n) * double(k) * double(m), thread_count(threads));
  const FieldLoops& loops = mercer::loops<FieldLoops>();
  nb::gil_scoped_release release;
  loops.outer(from, n, k, d, m, float(scale), to, n_threads);
}

void softplus_sums(In2<float> a, std::optional<In2<float>> b, double beta, Out1<double> out, int threads) {
  const int64_t n = int64_t(a.shape(0)), m = int64_t(a.shape(1));
  require(!b || (int64_t(b->shape(0)) == n && int64_t(b->shape(1)) == m), "both fields must have the same shape");
  require(int64_t(out.shape(0)) == n, "the output has the wrong shape");
  const float *first = a.data(), *second = b ? b->data() : nullptr;
  double* to = out.data();
  const int n_threads = threads_worth(16.0 * double(n) * double(m), thread_count(threads));
  const FieldLoops& loops = mercer::loops<FieldLoops>();
  nb::gil_scoped_release release;
  loops.softplus_sums(first, second, n, m, float(beta), to, n_threads);
}

void transpose(In2<float> from, Out2<float> to) {
  constexpr int64_t kTile = 16;
  const int64_t n = int64_t(from.shape(0)), m = int64_t(from.shape(1));
  require(int64_t(to.shape(0)) == m && int64_t(to.shape(1)) == n, "the output has the wrong shape");
  const float* a = from.data();
  float* b = to.data();
  for (int64_t i = 0; i < n; i += kTile)
    for (int64_t j = 0; j < m; j += kTile)
      for (int64_t r = i; r < std::min(n, i + kTile); ++r)
        for (int64_t c = j; c < std::min(m, j + kTile); ++c) b[c * n + r] = a[r * m + c];
}

// ---------------------------------------------------------------------------------------------- pairs of units

struct Adjacency {
  Adjacency(const In1<int64_t>& starts, const In1<int32_t>& neighbours, int64_t size) {
    const int64_t n = require_offsets(starts, int64_t(neighbours.shape(0)), "starts", "neighbours");
    require(n == size, "starts must hold one more value than there are variables");
    for (size_t e = 0; e < neighbours.shape(0); ++e)
      require(neighbours.data()[e] >= 0 && neighbours.data()[e] < size, "a neighbour is out of range");
  }
};

void spin_sweep(Out2<int8_t> states, In1<int64_t> starts, In1<int32_t> neighbours, In1<float> weights, In2<float> bias,
                double lo, double gain, double beta, bool backward, uint64_t key, int64_t first_row, int threads) {
  SpinChains t{};
  t.n = int64_t(states.shape(0));
  t.size = int64_t(states.shape(1));
  Adjacency(starts, neighbours, t.size);
  require(weights.shape(0) == neighbours.shape(0), "there must be a weight for each neighbour");
  require(int64_t(bias.shape(1)) == t.size && (bias.shape(0) == 1 || int64_t(bias.shape(0)) == t.n),
          "bias must have a column for each unit, and one row or a row for each chain");
  require_first_row(first_row);
  require_bits(reinterpret_cast<const uint8_t*>(states.data()), t.n * t.size);
  if (!t.n || !t.size) return;
  t.states = states.data();
  t.starts = starts.data();
  t.neighbours = neighbours.data();
  t.weights = weights.data();
  t.bias = bias.data();
  t.bias_stride = bias.shape(0) == 1 ? 0 : t.size;
  t.lo = float(lo);
  t.gain = float(gain);
  t.beta = float(beta);
  t.backward = backward;
  t.key = key;
  t.first_row = first_row;
  const double steps = double(t.n) * double(weights.shape(0) + 16 * states.shape(1));
  const int n_threads = threads_worth(steps, thread_count(threads));
  const FieldLoops& loops = mercer::loops<FieldLoops>();
  nb::gil_scoped_release release;
  loops.spin_sweep(t, n_threads);
}

// ---------------------------------------------------------------------------------------------- labels on graphs

struct LabelField {
  LabelField(const In2<double>& nodes, const In2<int64_t>& edges, const In3<double>& pairs, int64_t size)
      : n(size), k(int64_t(nodes.shape(1))), m(int64_t(edges.shape(0))) {
    require(int64_t(nodes.shape(0)) == n, "there must be a row of scores for each node");
    require(k >= 1 && k <= 256, "there must be between 1 and 256 labels");
    require(edges.shape(1) == 2, "an edge is a pair of nodes");
    require(int64_t(pairs.shape(0)) == m && int64_t(pairs.shape(1)) == k && int64_t(pairs.shape(2)) == k,
            "there must be a table of labels x labels for each edge");
    for (int64_t e = 0; e < 2 * m; ++e)
      require(edges.data()[e] >= 0 && edges.data()[e] < n, "an edge names a node that does not exist");
  }
  int64_t n, k, m;
};

void require_labels(const uint8_t* labels, int64_t count, int64_t k) {
  uint8_t most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, labels[i]);
  require(int64_t(most) < k, "a label is out of range");
}

// One sweep of every chain over the nodes in their order.
void label_sweep(Out2<uint8_t> states, In2<double> nodes, In2<int64_t> edges, In3<double> pairs, double beta,
                 bool backward, uint64_t key, int threads) {
  const int64_t chains = int64_t(states.shape(0)), n = int64_t(states.shape(1));
  const LabelField field(nodes, edges, pairs, n);
  const int64_t k = field.k, m = field.m;
  require_labels(states.data(), chains * n, k);
  uint8_t* out = states.data();
  const double *score = nodes.data(), *table = pairs.data();
  const int64_t* ends = edges.data();
  const int n_threads = threads_worth(double(chains) * double(k) * double(16 * n + 2 * m), thread_count(threads));
  nb::gil_scoped_release release;
  // Tables with the labels of the second node in rows, so that every neighbour adds one row.
  std::vector<double> flipped(static_cast<size_t>(m * k * k));
  for (int64_t e = 0; e < m; ++e)
    for (int64_t a = 0; a < k; ++a)
      for (int64_t b = 0; b < k; ++b) flipped[size_t((e * k + b) * k + a)] = table[(e * k + a) * k + b];
  struct Neighbour {
    int64_t node;
    const double* rows;
  };
  std::vector<int64_t> starts(size_t(n) + 1, 0);
  for (int64_t e = 0; e < 2 * m; ++e) ++starts[size_t(ends[e]) + 1];
  for (int64_t i = 0; i < n; ++i) starts[size_t(i) + 1] += starts[size_t(i)];
  std::vector<Neighbour> neighbours(static_cast<size_t>(2 * m));
  std::vector<int64_t> next(starts.begin(), starts.end() - 1);
  for (int64_t e = 0; e < m; ++e) {
    neighbours[size_t(next[size_t(ends[2 * e])]++)] = {ends[2 * e + 1], flipped.data() + e * k * k};
    neighbours[size_t(next[size_t(ends[2 * e + 1])]++)] = {ends[2 * e], table + e * k * k};
  }
  in_parallel(chains, n_threads, [&](int64_t chain) {
    uint8_t* y = out + chain * n;
    const uint64_t own = row_key(key, chain);
    std::vector<double> p(static_cast<size_t>(k));
    for (int64_t turn = 0; turn < n; ++turn) {
      const int64_t i = backward ? n - 1 - turn : turn;
      for (int64_t c = 0; c < k; ++c) p[size_t(c)] = score[i * k + c];
      for (int64_t e = starts[size_t(i)]; e < starts[size_t(i) + 1]; ++e) {
        const Neighbour& to = neighbours[size_t(e)];
        if (to.node == i) continue;
        const double* row = to.rows + int64_t(y[to.node]) * k;
        for (int64_t c = 0; c < k; ++c) p[size_t(c)] += row[c];
      }
      const double u = uniform(own + uint64_t(i));
      if (k == 2) {
        y[i] = u * (1.0 + std::exp(beta * (p[0] - p[1]))) < 1.0;
        continue;
      }
      double top = p[0], total = 0;
      for (int64_t c = 1; c < k; ++c) top = std::max(top, p[size_t(c)]);
      for (int64_t c = 0; c < k; ++c) total += p[size_t(c)] = std::exp(beta * (p[size_t(c)] - top));
      double left = u * total;
      int64_t c = 0;
      while (c + 1 < k && left >= p[size_t(c)]) left -= p[size_t(c++)];
      y[i] = uint8_t(c);
    }
  });
}

// θ·φ of every chain, for each graph of a stack.
void label_scores(In2<uint8_t> states, In2<double> nodes, In2<int64_t> edges, In3<double> pairs,
                  In1<int64_t> node_offsets, In1<int64_t> edge_offsets, Out2<double> out, int threads) {
  const int64_t chains = int64_t(states.shape(0)), n = int64_t(states.shape(1));
  const LabelField field(nodes, edges, pairs, n);
  const int64_t k = field.k;
  require_labels(states.data(), chains * n, k);
  const int64_t graphs = require_offsets(node_offsets, n, "node_offsets", "nodes");
  require(require_offsets(edge_offsets, field.m, "edge_offsets", "edges") == graphs,
          "node_offsets and edge_offsets must be of the same graphs");
  require(int64_t(out.shape(0)) == chains && int64_t(out.shape(1)) == graphs, "the output has the wrong shape");
  const int64_t *first = node_offsets.data(), *first_edge = edge_offsets.data(), *ends = edges.data();
  const double *score = nodes.data(), *table = pairs.data();
  const uint8_t* labels = states.data();
  double* to = out.data();
  const int n_threads = threads_worth(2.0 * double(chains) * double(n + field.m), thread_count(threads));
  nb::gil_scoped_release release;
  in_parallel(chains, n_threads, [&](int64_t chain) {
    const uint8_t* y = labels + chain * n;
    for (int64_t g = 0; g < graphs; ++g) {
      double total = 0;
      for (int64_t i = first[g]; i < first[g + 1]; ++i) total += score[i * k + y[i]];
      for (int64_t e = first_edge[g]; e < first_edge[g + 1]; ++e)
        total += table[(e * k + y[ends[2 * e]]) * k + y[ends[2 * e + 1]]];
      to[chain * graphs + g] = total;
    }
  });
}

// Sums over chains of the indicators of labels and of pairs of labels, each chain weighted for each graph.
void label_counts(In2<uint8_t> states, In2<double> weights, In2<int64_t> edges, In1<int64_t> node_offsets,
                  In1<int64_t> edge_offsets, Out2<double> nodes, Out3<double> pairs) {
  const int64_t chains = int64_t(states.shape(0)), n = int64_t(states.shape(1));
  const LabelField field(In2<double>(nodes), edges, In3<double>(pairs), n);
  const int64_t k = field.k;
  require_labels(states.data(), chains * n, k);
  const int64_t graphs = require_offsets(node_offsets, n, "node_offsets", "nodes");
  require(require_offsets(edge_offsets, field.m, "edge_offsets", "edges") == graphs,
          "node_offsets and edge_offsets must be of the same graphs");
  require(int64_t(weights.shape(0)) == chains && int64_t(weights.shape(1)) == graphs,
          "weights must have a row for each chain and a column for each graph");
  const int64_t *first = node_offsets.data(), *first_edge = edge_offsets.data(), *ends = edges.data();
  for (int64_t chain = 0; chain < chains; ++chain) {
    const uint8_t* y = states.data() + chain * n;
    for (int64_t g = 0; g < graphs; ++g) {
      const double weight = weights.data()[chain * graphs + g];
      for (int64_t i = first[g]; i < first[g + 1]; ++i) nodes.data()[i * k + y[i]] += weight;
      for (int64_t e = first_edge[g]; e < first_edge[g + 1]; ++e)
        pairs.data()[(e * k + y[ends[2 * e]]) * k + y[ends[2 * e + 1]]] += weight;
    }
  }
}

// ---------------------------------------------------------------------------------------------- topics and parts

void require_corpus(const In1<int64_t>& offsets, const In1<int32_t>& words, const Out1<int32_t>& topics,
                    int64_t n_words, int64_t k) {
  require_offsets(offsets, int64_t(words.shape(0)), "offsets", "words");
  require(topics.shape(0) == words.shape(0), "there must be a topic for each word");
  for (size_t i = 0; i < words.shape(0); ++i)
    require(words.data()[i] >= 0 && words.data()[i] < n_words && topics.data()[i] >= 0 && topics.data()[i] < k,
            "a word or a topic is out of range");
}

// Sweeps of collapsed Gibbs sampling over all words. Counts are made from the topics.
void topic_sweeps(In1<int64_t> offsets, In1<int32_t> words, Out1<int32_t> topics, int64_t n_words, In1<float> alpha,
                  double beta, uint64_t key, int64_t sweeps) {
  TopicCorpus t{};
  t.k = int64_t(alpha.shape(0));
  require(t.k >= 1 && n_words >= 1 && sweeps >= 0, "there must be at least one topic and one word");
  require(n_words <= (int64_t(1) << 40) / (t.k + 16), "there are too many words and topics");
  require_corpus(offsets, words, topics, n_words, t.k);
  t.offsets = offsets.data();
  t.documents = int64_t(offsets.shape(0)) - 1;
  t.words = words.data();
  t.topics = topics.data();
  t.n_words = n_words;
  t.stride = (t.k + 15) / 16 * 16;
  t.alpha = alpha.data();
  t.beta = float(beta);
  const FieldLoops& loops = mercer::loops<FieldLoops>();
  nb::gil_scoped_release release;
  std::vector<float> by_word(size_t(n_words * t.stride), 0.0f), by_document(size_t(t.documents * t.stride), 0.0f),
      totals(size_t(t.stride), 0.0f);
  for (int64_t m = 0; m < t.documents; ++m)
    for (int64_t i = t.offsets[m]; i < t.offsets[m + 1]; ++i) {
      by_word[size_t(t.words[i] * t.stride + t.topics[i])] += 1.0f;
      by_document[size_t(m * t.stride + t.topics[i])] += 1.0f;
      totals[size_t(t.topics[i])] += 1.0f;
    }
  t.by_word = by_word.data();
  t.by_document = by_document.data();
  t.totals = totals.data();
  for (int64_t s = 0; s < sweeps; ++s) {
    t.key = mixed_counter(key + uint64_t(s));
    loops.topic_sweep(t);
    check_signals();
  }
}

// Terms of the part of a point: co-occurrence (topics), smoothness (labels of neighbours) and position.
//   log p(z_i = k) = [log (n_wk + β) − log (n_k + β W) + log (n_mk + α_k)] + Σ_j g_ij 1[z_j = k] + log N(x_i; μ_k, v_k)
// with 1/v = 1/V₀ + l/Λ and μ = v (μ₀/V₀ + Σ x/Λ) of the l other points of the part; v grows by Λ in the predictive
// form.
void part_sweeps(In1<int64_t> offsets, In1<int32_t> words, Out1<int32_t> parts, int64_t n_words, In1<double> alpha,
                 double beta, In1<int64_t> starts, In1<int32_t> neighbours, In1<double> weights, In2<double> positions,
                 double prior_variance, double variance, bool use_words, bool use_neighbours, bool use_positions,
                 bool predictive, uint64_t key, int64_t sweeps) {
  const int64_t n = int64_t(words.shape(0)), k = int64_t(alpha.shape(0)), d = int64_t(positions.shape(1));
  require(k >= 1 && n_words >= 1 && sweeps >= 0 && d >= 1, "there must be at least one part, word and dimension");
  require(n_words <= (int64_t(1) << 40) / k, "there are too many words and parts");
  require_corpus(offsets, words, parts, n_words, k);
  Adjacency(starts, neighbours, n);
  require(weights.shape(0) == neighbours.shape(0), "there must be a weight for each neighbour");
  require(int64_t(positions.shape(0)) == n, "there must be a position for each point");
  require(prior_variance > 0 && variance > 0, "variances must be positive");
  const int64_t documents = int64_t(offsets.shape(0)) - 1;
  const double mass = beta * double(n_words);
  std::vector<double> by_word(size_t(n_words * k), 0.0), by_document(size_t(documents * k), 0.0),
      totals(size_t(k), 0.0), sums(size_t(k * d), 0.0), mean(size_t(d), 0.0), p(static_cast<size_t>(k));
  const double* x = positions.data();
  const auto count = [&](int64_t m, int64_t i, int64_t part, double sign) {
    by_word[size_t(words.data()[i] * k + part)] += sign;
    by_document[size_t(m * k + part)] += sign;
    totals[size_t(part)] += sign;
    for (int64_t c = 0; c < d; ++c) sums[size_t(part * d + c)] += sign * x[i * d + c];
  };
  int32_t* z = parts.data();
  nb::gil_scoped_release release;
  for (int64_t m = 0; m < documents; ++m)
    for (int64_t i = offsets.data()[m]; i < offsets.data()[m + 1]; ++i) count(m, i, z[i], 1.0);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < d; ++c) mean[size_t(c)] += x[i * d + c] / double(n);
  const auto log_position = [&](int64_t i, int64_t part) {
    const double v = 1.0 / (1.0 / prior_variance + totals[size_t(part)] / variance);
    const double spread = predictive ? v + variance : v;
    double square = 0;
    for (int64_t c = 0; c < d; ++c) {
      const double mu = v * (mean[size_t(c)] / prior_variance + sums[size_t(part * d + c)] / variance);
      square += (x[i * d + c] - mu) * (x[i * d + c] - mu);
    }
    return -0.5 * (double(d) * std::log(spread) + square / spread);
  };
  for (int64_t s = 0; s < sweeps; ++s) {
    const uint64_t own = mixed_counter(key + uint64_t(s));
    for (int64_t m = 0; m < documents; ++m)
      for (int64_t i = offsets.data()[m]; i < offsets.data()[m + 1]; ++i) {
        count(m, i, z[i], -1.0);
        for (int64_t c = 0; c < k; ++c) {
          double value = use_positions ? log_position(i, c) : 0.0;
          if (use_words)
            value += std::log((by_word[size_t(words.data()[i] * k + c)] + beta) / (totals[size_t(c)] + mass) *
                              (by_document[size_t(m * k + c)] + alpha.data()[c]));
          p[size_t(c)] = value;
        }
        if (use_neighbours)
          for (int64_t e = starts.data()[i]; e < starts.data()[i + 1]; ++e)
            p[size_t(z[neighbours.data()[e]])] += weights.data()[e];
        double top = p[0], total = 0;
        for (int64_t c = 1; c < k; ++c) top = std::max(top, p[size_t(c)]);
        for (int64_t c = 0; c < k; ++c) total += p[size_t(c)] = std::exp(p[size_t(c)] - top);
        double left = uniform(own + uint64_t(i)) * total;
        int64_t c = 0;
        while (c + 1 < k && left >= p[size_t(c)]) left -= p[size_t(c++)];
        z[i] = int32_t(c);
        count(m, i, c, 1.0);
      }
    check_signals();
  }
}

}  // namespace

void bind_fields(nb::module_& f) {
  f.def(
      "half_sweep", &half_sweep, "x"_a.noconvert(), "w"_a.noconvert(), "bias"_a.noconvert().none(), "beta"_a, "key"_a,
      "first_row"_a, "fields"_a.noconvert().none(), "probabilities"_a.noconvert().none(), "states"_a.noconvert().none(),
      "threads"_a,
      "Fields beta · x w + bias of rows of bits, their probabilities and draws, as far as there are arrays for them.");
  f.def("sample_fields", &sample_fields, "fields"_a.noconvert(), "scale"_a, "key"_a, "first_row"_a,
        "probabilities"_a.noconvert().none(), "states"_a.noconvert().none(), "threads"_a,
        "Draws of units with the log odds scale · fields.");
  f.def("outer", &outer, "x"_a.noconvert(), "dense"_a.noconvert(), "scale"_a, "out"_a.noconvert(), "threads"_a,
        "out += scale · xᵀ dense for rows x of bits.");
  f.def("softplus_sums", &softplus_sums, "a"_a.noconvert(), "b"_a.noconvert().none(), "beta"_a, "out"_a.noconvert(),
        "threads"_a, "Row sums of log(1 + e^f) for f = beta · a, or a + beta · (b − a).");
  f.def("transpose", &transpose, "matrix"_a.noconvert(), "out"_a.noconvert());
  f.def("spin_sweep", &spin_sweep, "states"_a.noconvert(), "starts"_a.noconvert(), "neighbours"_a.noconvert(),
        "weights"_a.noconvert(), "bias"_a.noconvert(), "lo"_a, "gain"_a, "beta"_a, "backward"_a, "key"_a, "first_row"_a,
        "threads"_a, "One Gibbs sweep of chains of units with two states.");
  f.def("label_sweep", &label_sweep, "states"_a.noconvert(), "nodes"_a.noconvert(), "edges"_a.noconvert(),
        "pairs"_a.noconvert(), "beta"_a, "backward"_a, "key"_a, "threads"_a,
        "One Gibbs sweep of chains of labels on a graph.");
  f.def("label_scores", &label_scores, "states"_a.noconvert(), "nodes"_a.noconvert(), "edges"_a.noconvert(),
        "pairs"_a.noconvert(), "node_offsets"_a.noconvert(), "edge_offsets"_a.noconvert(), "out"_a.noconvert(),
        "threads"_a);
  f.def("label_counts", &label_counts, "states"_a.noconvert(), "weights"_a.noconvert(), "edges"_a.noconvert(),
        "node_offsets"_a.noconvert(), "edge_offsets"_a.noconvert(), "nodes"_a.noconvert(), "pairs"_a.noconvert());
  f.def("topic_sweeps", &topic_sweeps, "offsets"_a.noconvert(), "words"_a.noconvert(), "topics"_a.noconvert(),
        "n_words"_a, "alpha"_a.noconvert(), "beta"_a, "key"_a, "sweeps"_a);
  f.def("part_sweeps", &part_sweeps, "offsets"_a.noconvert(), "words"_a.noconvert(), "parts"_a.noconvert(), "n_words"_a,
        "alpha"_a.noconvert(), "beta"_a, "starts"_a.noconvert(), "neighbours"_a.noconvert(), "weights"_a.noconvert(),
        "positions"_a.noconvert(), "prior_variance"_a, "variance"_a, "use_words"_a, "use_neighbours"_a,
        "use_positions"_a, "predictive"_a, "key"_a, "sweeps"_a);
}

}  // namespace mercer
