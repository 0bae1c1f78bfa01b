// The verbs of chains as Python sees them; see structures/chain.hpp.
#include <optional>
#include <vector>

#include "base/csr_rows.hpp"
#include "base/vector_loops.hpp"
#include "structures/chain_paths.hpp"

namespace mercer {

namespace {

template <class T>
Chains<T> chains_of(In2<T> nodes, In2<T> transitions, In1<T> start, In1<T> end, std::optional<In3<T>> edges,
                    In1<int64_t> offsets) {
  const int64_t rows = int64_t(nodes.shape(0)), C = int64_t(nodes.shape(1));
  require(C >= 1 && C <= 32767, "a chain needs between 1 and 32767 labels");
  require(int64_t(transitions.shape(0)) == C && int64_t(transitions.shape(1)) == C,
          "transitions must be labels x labels");
  require(int64_t(start.shape(0)) == C && int64_t(end.shape(0)) == C, "start and end need one score a label");
  const int64_t n = require_offsets_of_part(offsets, rows, "offsets", "positions");
  if (edges)
    require(int64_t(edges->shape(0)) == rows && int64_t(edges->shape(1)) == C && int64_t(edges->shape(2)) == C,
            "edges must be positions x labels x labels");
  return {
      nodes.data(), transitions.data(), start.data(), end.data(), edges ? edges->data() : nullptr, offsets.data(), n,
      int(C)};
}
const char* const kNotFinite = "scores must be finite or -inf: a score is NaN or +inf (features or weights too large?)";

template <class T>
int64_t chain_marginals(In2<T> nodes, In2<T> transitions, In1<T> start, In1<T> end, std::optional<In3<T>> edges,
                        In1<int64_t> offsets, std::optional<Out2<T>> out_nodes,
                        std::optional<Out2<double>> out_transitions, std::optional<Out1<double>> out_start,
                        std::optional<Out1<double>> out_end, std::optional<Out3<T>> out_edges,
                        Out1<double> log_partition, std::optional<Out1<double>> entropy, int threads,
                        std::optional<In1<double>> weights) {
  const Chains<T> chains = chains_of<T>(nodes, transitions, start, end, edges, offsets);
  const int64_t rows = int64_t(nodes.shape(0)), C = chains.C;
  require(int64_t(log_partition.shape(0)) == chains.n, "log_partition needs one place a sequence");
  if (entropy) require(int64_t(entropy->shape(0)) == chains.n, "entropy needs one place a sequence");
  if (out_nodes)
    require(int64_t(out_nodes->shape(0)) == rows && int64_t(out_nodes->shape(1)) == C, "out_nodes has the wrong shape");
  require(bool(out_transitions) == bool(out_start) && bool(out_start) == bool(out_end), "give all of the sums or none");
  if (out_transitions) {
    require(int64_t(out_transitions->shape(0)) == C && int64_t(out_transitions->shape(1)) == C,
            "out_transitions has the wrong shape");
    require(int64_t(out_start->shape(0)) == C && int64_t(out_end->shape(0)) == C,
            "out_start or out_end has the wrong shape");
  }
  if (out_edges)
    require(
        int64_t(out_edges->shape(0)) == rows && int64_t(out_edges->shape(1)) == C && int64_t(out_edges->shape(2)) == C,
        "out_edges has the wrong shape");
  if (weights) require(int64_t(weights->shape(0)) == chains.n, "weights must be one number a sequence");
  int64_t fallbacks = 0;
  const ChainMarginals<T> out{out_nodes ? out_nodes->data() : nullptr,
                              out_transitions ? out_transitions->data() : nullptr,
                              out_start ? out_start->data() : nullptr,
                              out_end ? out_end->data() : nullptr,
                              out_edges ? out_edges->data() : nullptr,
                              log_partition.data(),
                              entropy ? entropy->data() : nullptr,
                              &fallbacks,
                              0,
                              weights ? weights->data() : nullptr};
  const int n_threads = thread_count(threads);
  bool sound;
  {
    nb::gil_scoped_release release;
    sound = loops<ChainLoops<T>>().marginals(chains, out, n_threads);
  }
  require(sound, kNotFinite);
  return fallbacks;
}

// Expected counts of a hidden Markov model whose positions send out one symbol each: log p(symbol | state) is a row of
// `table`. Fills `nodes` with p(state | position) and adds it up by symbol into `counts`.
void hidden_marginals(In2<double> table, In1<int32_t> codes, In2<double> transitions, In1<double> start,
                      In1<int64_t> offsets, Out2<double> nodes, Out2<double> counts, Out2<double> out_transitions,
                      Out1<double> out_start, Out1<double> log_partition, int threads) {
  const int64_t rows = int64_t(table.shape(0)), C = int64_t(table.shape(1)), positions = int64_t(codes.shape(0));
  require(C >= 1 && C <= 32767, "a chain needs between 1 and 32767 labels");
  require(int64_t(transitions.shape(0)) == C && int64_t(transitions.shape(1)) == C,
          "transitions must be labels x labels");
  require(int64_t(start.shape(0)) == C, "start needs one score a label");
  const int64_t n = require_offsets_of_part(offsets, positions, "offsets", "positions");
  for (int64_t t = 0; t < positions; ++t)
    require(codes.data()[t] >= 0 && codes.data()[t] < rows, "codes must be rows of table");
  require(int64_t(nodes.shape(0)) == positions && int64_t(nodes.shape(1)) == C, "nodes has the wrong shape");
  require(int64_t(counts.shape(0)) == rows && int64_t(counts.shape(1)) == C, "counts has the wrong shape");
  require(int64_t(out_transitions.shape(0)) == C && int64_t(out_transitions.shape(1)) == C,
          "out_transitions has the wrong shape");
  require(int64_t(out_start.shape(0)) == C, "out_start has the wrong shape");
  require(int64_t(log_partition.shape(0)) == n, "log_partition needs one place a sequence");
  const std::vector<double> zeros(size_t(C), 0.0);
  std::vector<double> out_end(size_t(C), 0.0);
  const Chains<double> chains{table.data(), transitions.data(), start.data(), zeros.data(), nullptr, offsets.data(), n,
                              int(C),       codes.data(),       rows};
  const ChainMarginals<double> out{nodes.data(), out_transitions.data(), out_start.data(), out_end.data(),
                                   nullptr,      log_partition.data(),   nullptr,          nullptr};
  const int n_threads = thread_count(threads);
  bool sound;
  {
    nb::gil_scoped_release release;
    sound = loops<ChainLoops<double>>().marginals(chains, out, n_threads);
    const auto add = loops<VectorLoops>().axpy_dd;
    for (int64_t t = 0; t < positions && sound; ++t)
      add(1.0, nodes.data() + t * C, counts.data() + int64_t(codes.data()[t]) * C, C);
  }
  require(sound, kNotFinite);
}

template <class T>
void chain_viterbi(In2<T> nodes, In2<T> transitions, In1<T> start, In1<T> end, std::optional<In3<T>> edges,
                   In1<int64_t> offsets, Out1<int32_t> labels, Out1<double> score, int threads) {
  const Chains<T> chains = chains_of<T>(nodes, transitions, start, end, edges, offsets);
  require(labels.shape(0) == nodes.shape(0) && int64_t(score.shape(0)) == chains.n,
          "labels or score has the wrong shape");
  const int n_threads = thread_count(threads);
  bool sound;
  {
    nb::gil_scoped_release release;
    sound = loops<ChainLoops<T>>().viterbi(chains, labels.data(), score.data(), n_threads);
  }
  require(sound, kNotFinite);
}

template <class T>
void k_best_of_chains(In2<T> nodes, In2<T> transitions, In1<T> start, In1<T> end, std::optional<In3<T>> edges,
                      In1<int64_t> offsets, Out2<int32_t> labels, Out2<double> score, int threads) {
  const Chains<T> chains = chains_of<T>(nodes, transitions, start, end, edges, offsets);
  const int64_t k = int64_t(score.shape(1));
  require(k >= 1 && k <= 1000000, "k must be at least 1");
  require(int64_t(labels.shape(0)) == k && labels.shape(1) == nodes.shape(0) && int64_t(score.shape(0)) == chains.n,
          "labels or score has the wrong shape");
  const int n_threads = thread_count(threads);
  bool sound;
  {
    nb::gil_scoped_release release;
    sound = chain_k_best<T>(chains, int(k), labels.data(), score.data(), n_threads);
  }
  require(sound, kNotFinite);
}

template <class T>
void sample_of_chains(In2<T> nodes, In2<T> transitions, In1<T> start, In1<T> end, std::optional<In3<T>> edges,
                      In1<int64_t> offsets, uint64_t seed, Out2<int32_t> labels, int threads) {
  const Chains<T> chains = chains_of<T>(nodes, transitions, start, end, edges, offsets);
  require(labels.shape(1) == nodes.shape(0), "labels has the wrong shape");
  const int draws = int(labels.shape(0)), n_threads = thread_count(threads);
  bool sound;
  {
    nb::gil_scoped_release release;
    sound = chain_sample<T>(chains, draws, seed, labels.data(), n_threads);
  }
  require(sound, kNotFinite);
}

template <class T>
void score_of_chains(In2<T> nodes, In2<T> transitions, In1<T> start, In1<T> end, std::optional<In3<T>> edges,
                     In1<int64_t> offsets, In1<int32_t> labels, Out1<double> score) {
  const Chains<T> chains = chains_of<T>(nodes, transitions, start, end, edges, offsets);
  require(labels.shape(0) == nodes.shape(0) && int64_t(score.shape(0)) == chains.n,
          "labels or score has the wrong shape");
  for (size_t t = 0; t < labels.shape(0); ++t)
    require(labels.data()[t] >= 0 && labels.data()[t] < chains.C, "a label is out of range");
  bool sound;
  {
    nb::gil_scoped_release release;
    sound = chain_score<T>(chains, labels.data(), score.data());
  }
  require(sound, kNotFinite);
}

// Chains whose node scores are made on the way, from rows and weights.
template <class T>
Chains<T> chains_over(const FeatureRows& rows, const Pattern& p, In1<double> w, In2<T> transitions, In1<T> start,
                      In1<T> end, In1<int64_t> offsets) {
  const int64_t C = p.width, n = require_offsets_within(offsets, rows.n_rows(), "offsets", "rows");
  require(C <= 32767, "a chain needs between 1 and 32767 labels");
  require(int64_t(transitions.shape(0)) == C && int64_t(transitions.shape(1)) == C,
          "transitions must be labels x labels");
  require(int64_t(start.shape(0)) == C && int64_t(end.shape(0)) == C, "start and end need one score a label");
  require(rows.n_columns() <= p.n_features, "the rows have more features than the pattern");
  require(int64_t(w.shape(0)) == p.n_weights, "the number of weights does not fit the pattern");
  return {nullptr, transitions.data(), start.data(), end.data(), nullptr, offsets.data(), n, int(C)};
}

// The best labelling of each sequence, from rows and weights.
template <class T>
void chain_decode(const FeatureRows& rows, const WeightPattern& pattern, In1<double> w, In2<T> transitions,
                  In1<T> start, In1<T> end, In1<int64_t> offsets, Out1<int32_t> labels, Out1<double> score,
                  int threads) {
  const Pattern p = pattern.view();
  const Rows<T> x = rows.view<T>();
  const Chains<T> chains = chains_over<T>(rows, p, w, transitions, start, end, offsets);
  require(int64_t(labels.shape(0)) == offsets.data()[chains.n] - offsets.data()[0], "labels has the wrong shape");
  require(int64_t(score.shape(0)) == chains.n, "score needs one place a sequence");
  const int n_threads = thread_count(threads);
  bool sound;
  {
    nb::gil_scoped_release release;
    sound = loops<ChainLoops<T>>().decode(x, p, chains, w.data(), labels.data(), score.data(), n_threads);
  }
  require(sound, kNotFinite);
}

// The labels' own objects in a list for each sequence; None for -1.
nb::list label_lists(nb::list classes, In1<int32_t> labels, In1<int64_t> offsets) {
  const int64_t n = require_offsets_of_part(offsets, int64_t(labels.shape(0)), "offsets", "labels"),
                C = int64_t(nb::len(classes));
  for (size_t t = 0; t < labels.shape(0); ++t)
    require(labels.data()[t] >= -1 && labels.data()[t] < C, "a label is out of range");
  const int32_t* label = labels.data();
  PyObject* out = PyList_New(Py_ssize_t(n));
  if (!out) throw nb::python_error();
  for (int64_t i = 0; i < n; ++i) {
    const Py_ssize_t size = Py_ssize_t(offsets.data()[i + 1] - offsets.data()[i]);
    PyObject* row = PyList_New(size);
    if (!row) {
      Py_DECREF(out);
      throw nb::python_error();
    }
    for (Py_ssize_t t = 0; t < size; ++t, ++label) {
      PyObject* object = *label < 0 ? Py_None : PyList_GET_ITEM(classes.ptr(), Py_ssize_t(*label));
      Py_INCREF(object);
      PyList_SET_ITEM(row, t, object);
    }
    PyList_SET_ITEM(out, Py_ssize_t(i), row);
  }
  return nb::steal<nb::list>(out);
}

// The log loss of fully known sequences; adds its gradient to out_nodes, out_transitions, out_start and out_end.
template <class T>
void chain_log_loss(const FeatureRows& rows, const WeightPattern& pattern, In1<double> w, In2<T> transitions,
                    In1<T> start, In1<T> end, In1<int64_t> offsets, In1<int32_t> labels, Out1<double> loss,
                    Out1<double> out_nodes, Out1<double> out_shared, int threads) {
  const Pattern p = pattern.view();
  const Rows<T> x = rows.view<T>();
  const Chains<T> chains = chains_over<T>(rows, p, w, transitions, start, end, offsets);
  const int64_t C = p.width, n = chains.n;
  require(int64_t(out_nodes.shape(0)) == p.n_weights, "the number of weights does not fit the pattern");
  require(int64_t(labels.shape(0)) == offsets.data()[n] - offsets.data()[0], "labels has the wrong shape");
  for (size_t t = 0; t < labels.shape(0); ++t)
    require(labels.data()[t] >= 0 && labels.data()[t] < C, "a label is out of range");
  require(int64_t(loss.shape(0)) == n, "loss needs one place a sequence");
  require(int64_t(out_shared.shape(0)) == C * C + 2 * C, "out_shared must hold labels x labels + 2 labels values");
  const int n_threads = thread_count(threads);
  bool sound;
  {
    nb::gil_scoped_release release;
    sound = loops<ChainLoops<T>>().log_loss(x, p, chains, labels.data(), w.data(), loss.data(), out_nodes.data(),
                                            out_shared.data(), n_threads);
  }
  require(sound, kNotFinite);
}

// μ + weights[i] 1_y, in place, for the parts of a batch of chains; also the counts of the shared parts.
template <class T>
void chain_add(In1<int32_t> labels, In1<int64_t> offsets, In1<double> weights, Out2<T> nodes, Out2<double> transitions,
               Out1<double> start, Out1<double> end, std::optional<Out3<T>> edges) {
  const int64_t C = int64_t(nodes.shape(1)), rows = int64_t(nodes.shape(0));
  const int64_t n = require_offsets_of_part(offsets, rows, "offsets", "positions");
  require(int64_t(transitions.shape(0)) == C && int64_t(transitions.shape(1)) == C,
          "transitions must be labels x labels");
  require(int64_t(start.shape(0)) == C && int64_t(end.shape(0)) == C, "start and end need one place a label");
  require(int64_t(labels.shape(0)) == rows, "labels has the wrong shape");
  require(int64_t(weights.shape(0)) == n, "weights must be one number a sequence");
  for (int64_t t = 0; t < rows; ++t) require(labels.data()[t] >= 0 && labels.data()[t] < C, "a label is out of range");
  if (edges)
    require(int64_t(edges->shape(0)) == rows && int64_t(edges->shape(1)) == C && int64_t(edges->shape(2)) == C,
            "edges has the wrong shape");
  const int32_t* y = labels.data();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t begin = offsets.data()[i] - offsets.data()[0], stop = offsets.data()[i + 1] - offsets.data()[0];
    const double weight = weights.data()[i];
    if (begin == stop || weight == 0.0) continue;
    start.data()[y[begin]] += weight;
    end.data()[y[stop - 1]] += weight;
    for (int64_t t = begin; t < stop; ++t) {
      nodes.data()[t * C + y[t]] += T(weight);
      if (t == begin) continue;
      transitions.data()[y[t - 1] * C + y[t]] += weight;
      if (edges) edges->data()[(t * C + y[t - 1]) * C + y[t]] += T(weight);
    }
  }
}

}  // namespace

void bind_chain(nb::module_& m) {
#define MERCER_CHAIN_ARGUMENTS                                                                    \
  "nodes"_a.noconvert(), "transitions"_a.noconvert(), "start"_a.noconvert(), "end"_a.noconvert(), \
      "edges"_a.noconvert().none(), "offsets"_a.noconvert()
#define MERCER_BIND(T)                                                                                              \
  m.def("marginals", &chain_marginals<T>, MERCER_CHAIN_ARGUMENTS, "out_nodes"_a.noconvert().none(),                 \
        "out_transitions"_a.noconvert().none(), "out_start"_a.noconvert().none(), "out_end"_a.noconvert().none(),   \
        "out_edges"_a.noconvert().none(), "log_partition"_a.noconvert(), "entropy"_a.noconvert().none(),            \
        "threads"_a = 1, "weights"_a.noconvert() = nb::none());                                                     \
  m.def("viterbi", &chain_viterbi<T>, MERCER_CHAIN_ARGUMENTS, "labels"_a.noconvert(), "score"_a.noconvert(),        \
        "threads"_a = 1);                                                                                           \
  m.def("k_best", &k_best_of_chains<T>, MERCER_CHAIN_ARGUMENTS, "labels"_a.noconvert(), "score"_a.noconvert(),      \
        "threads"_a = 1);                                                                                           \
  m.def("sample", &sample_of_chains<T>, MERCER_CHAIN_ARGUMENTS, "seed"_a, "labels"_a.noconvert(), "threads"_a = 1); \
  m.def("decode", &chain_decode<T>, "rows"_a, "pattern"_a, "w"_a.noconvert(), "transitions"_a.noconvert(),          \
        "start"_a.noconvert(), "end"_a.noconvert(), "offsets"_a.noconvert(), "labels"_a.noconvert(),                \
        "score"_a.noconvert(), "threads"_a = 1);                                                                    \
  m.def("log_loss", &chain_log_loss<T>, "rows"_a, "pattern"_a, "w"_a.noconvert(), "transitions"_a.noconvert(),      \
        "start"_a.noconvert(), "end"_a.noconvert(), "offsets"_a.noconvert(), "labels"_a.noconvert(),                \
        "loss"_a.noconvert(), "out_nodes"_a.noconvert(), "out_shared"_a.noconvert(), "threads"_a = 1);              \
  m.def("score", &score_of_chains<T>, MERCER_CHAIN_ARGUMENTS, "labels"_a.noconvert(), "score"_a.noconvert());       \
  m.def("add", &chain_add<T>, "labels"_a.noconvert(), "offsets"_a.noconvert(), "weights"_a.noconvert(),             \
        "nodes"_a.noconvert(), "transitions"_a.noconvert(), "start"_a.noconvert(), "end"_a.noconvert(),             \
        "edges"_a.noconvert().none());
  MERCER_BIND(double)
  MERCER_BIND(float)
#undef MERCER_BIND
#undef MERCER_CHAIN_ARGUMENTS

  m.def("hidden_marginals", &hidden_marginals, "table"_a.noconvert(), "codes"_a.noconvert(),
        "transitions"_a.noconvert(), "start"_a.noconvert(), "offsets"_a.noconvert(), "nodes"_a.noconvert(),
        "counts"_a.noconvert(), "out_transitions"_a.noconvert(), "out_start"_a.noconvert(),
        "log_partition"_a.noconvert(), "threads"_a = 1);
  m.def("label_lists", &label_lists, "classes"_a, "labels"_a.noconvert(), "offsets"_a.noconvert(),
        "The labels of each sequence as a list of objects; None for -1.");
}

}  // namespace mercer
