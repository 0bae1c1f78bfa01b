// The Python face of the compiled core: checks every array, releases the GIL, calls the kernels of the machine's best
// instruction set.

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/arrays.hpp"
#include "hashing/hash.hpp"
#include "hashing/vocabulary.hpp"

using namespace mercer;

namespace {

// ---------------------------------------------------------------------------------------------- instruction sets

bool supported(const std::string& name) {
  if (name == "baseline") return true;
#if defined(MERCER_X86)
  __builtin_cpu_init();
  const bool avx2_ok = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (name == "avx2") return avx2_ok;
  if (name == "avx512")
    return avx2_ok && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
  return false;
}

const Kernels* kernels_named(const std::string& name) {
  if (!supported(name)) return nullptr;
#if defined(MERCER_X86)
  if (name == "avx512") return &avx512::kernels();
  if (name == "avx2") return &avx2::kernels();
#endif
  return &baseline::kernels();
}

const Kernels* best_kernels() {
  if (const char* wish = std::getenv("MERCER_SIMD")) {
    if (const Kernels* found = kernels_named(wish)) return found;
    fail(std::string("MERCER_SIMD=") + wish +
         ": this machine cannot run that; leave it unset, or baseline, avx2 or avx512");
  }
  for (const char* name : {"avx512", "avx2"})
    if (const Kernels* found = kernels_named(name)) return found;
  return kernels_named("baseline");
}

std::atomic<const Kernels*> current{nullptr};

}  // namespace

const Kernels& mercer::kernels() {
  const Kernels* table = current.load();
  if (!table) current.store(table = best_kernels());
  return *table;
}

namespace {

// --------------------------------------------------------------------------------------- part scores and their adjoint

void check_linear(const FeatureRows& rows, int64_t row, int64_t count, const Pattern& p, int64_t n_weights,
                  int64_t out_rows, int64_t out_width) {
  require(row >= 0 && count >= 0 && count <= rows.n_rows() && row <= rows.n_rows() - count,
          "the range of rows is out of bounds");
  require(rows.n_columns() <= p.n_features, "the rows have more features than the pattern");
  require(n_weights == p.n_weights, "the number of weights does not fit the pattern");
  require(out_rows == count && out_width == p.width, "the score array has the wrong shape");
}

template <class T>
void scores(const FeatureRows& rows, int64_t row, int64_t count, const WeightPattern& pattern, In1<double> w,
            Out2<T> out, int threads) {
  const Pattern p = pattern.view();
  check_linear(rows, row, count, p, int64_t(w.shape(0)), int64_t(out.shape(0)), int64_t(out.shape(1)));
  const Rows<T> x = rows.view<T>();
  const int n_threads = thread_count(threads);
  nb::gil_scoped_release release;  // NaN in w shows in the scores, which every verb checks
  if constexpr (sizeof(T) == 8)
    kernels().scores_f64(x, row, count, p, w.data(), out.data(), n_threads);
  else
    kernels().scores_f32(x, row, count, p, w.data(), out.data(), n_threads);
}

template <class T>
void backward(const FeatureRows& rows, int64_t row, int64_t count, const WeightPattern& pattern, In2<T> mu,
              Out1<double> out, int threads) {
  const Pattern p = pattern.view();
  check_linear(rows, row, count, p, int64_t(out.shape(0)), int64_t(mu.shape(0)), int64_t(mu.shape(1)));
  const Rows<T> x = rows.view<T>();
  const int n_threads = thread_count(threads);
  nb::gil_scoped_release release;
  if constexpr (sizeof(T) == 8)
    kernels().backward_f64(x, row, count, p, mu.data(), out.data(), n_threads);
  else
    kernels().backward_f32(x, row, count, p, mu.data(), out.data(), n_threads);
}

// What work on so many features has left behind goes back to the system, if it is much: the training that follows needs
// the room.
void give_back([[maybe_unused]] int64_t n_features) {
#if defined(__GLIBC__)
  if (n_features >= int64_t(1) << 20) malloc_trim(0);
#endif
}

// The (feature, column) pairs that occur together, as the starts and columns of a pattern: columns[t] is the column of
// row t, -1 for any, -2 for a row to leave out. A feature seen with the share `fill` of the columns gets all of them.
// Empty where all pairs occur.
std::pair<nb::object, nb::object> observed_pattern(In1<int64_t> indptr, In1<int32_t> indices, In1<int32_t> columns,
                                                   int64_t n_features, int64_t n_columns, double fill) {
  const int64_t n_rows = require_offsets(indptr, int64_t(indices.shape(0)), "indptr", "indices");
  require(n_features >= 0 && n_columns >= 1 && int64_t(columns.shape(0)) == n_rows, "the shapes do not fit");
  require(n_columns <= INT32_MAX, "a pattern has less than 2^31 columns");
  require(n_features == 0 || n_columns <= (int64_t(1) << 40) / n_features, "the pattern has too many pairs");
  for (int64_t t = 0; t < n_rows; ++t)
    require(columns.data()[t] >= -2 && columns.data()[t] < n_columns, "a column is out of range");
  for (size_t k = 0; k < indices.shape(0); ++k)
    require(indices.data()[k] >= 0 && indices.data()[k] < n_features, "a feature is out of range");
  std::vector<uint32_t> starts;
  std::vector<uint16_t> kept;
  std::vector<int32_t> kept_wide;
  bool everything = true;
  {
    nb::gil_scoped_release release;
    const int64_t words = (n_columns + 31) / 32;
    std::vector<uint32_t> seen(size_t(n_features * words), 0);
    for (int64_t t = 0; t < n_rows; ++t) {
      const int32_t c = columns.data()[t];
      if (c == -2) continue;
      for (int64_t k = indptr.data()[t]; k < indptr.data()[t + 1]; ++k) {
        uint32_t* set = seen.data() + indices.data()[k] * words;
        if (c >= 0)
          set[c / 32] |= uint32_t(1) << (c % 32);
        else
          std::fill(set, set + words, ~uint32_t(0));
      }
    }
    auto count = [&](int64_t f) {
      int64_t total = 0;
      for (int64_t i = 0; i < words; ++i) total += __builtin_popcount(seen[f * words + i]);
      return double(total) >= std::max(1.0, fill * double(n_columns)) ? n_columns : total;
    };
    starts.reserve(size_t(n_features) + 1);
    starts.push_back(0);
    int64_t total = 0;
    for (int64_t f = 0; f < n_features; ++f) {
      const int64_t size = count(f);
      total += size;
      require(total <= int64_t(UINT32_MAX), "the pattern has too many weights");
      starts.push_back(uint32_t(total));
      everything = everything && size == n_columns;
    }
    const auto fill_in = [&](auto& out) {
      out.reserve(size_t(total));
      for (int64_t f = 0; f < n_features; ++f) {
        using Column = typename std::decay_t<decltype(out)>::value_type;
        if (int64_t(starts[f + 1] - starts[f]) == n_columns) {
          for (int64_t c = 0; c < n_columns; ++c) out.push_back(Column(c));
          continue;
        }
        for (int64_t i = 0; i < words; ++i)
          for (uint32_t bits = seen[f * words + i]; bits; bits &= bits - 1)
            out.push_back(Column(32 * i + __builtin_ctz(bits)));
      }
    };
    if (!everything && n_columns <= 65536)
      fill_in(kept);
    else if (!everything)
      fill_in(kept_wide);
  }
  give_back(int64_t(indices.shape(0)));
  if (everything) return {nb::none(), nb::none()};
  return {to_numpy(std::move(starts)), n_columns <= 65536 ? to_numpy(std::move(kept)) : to_numpy(std::move(kept_wide))};
}

template <class A, class B> double vector_dot(In1<A> x, In1<B> y) {
  require(x.shape(0) == y.shape(0), "vectors of one length are needed");
  const int64_t n = int64_t(x.shape(0));
  nb::gil_scoped_release release;
  if constexpr (sizeof(A) == 8)
    return kernels().dot_dd(x.data(), y.data(), n);
  else if constexpr (sizeof(A) == 4 && sizeof(B) == 8)
    return kernels().dot_fd(x.data(), y.data(), n);
  else if constexpr (sizeof(A) == 4)
    return kernels().dot_ff(x.data(), y.data(), n);
  else if constexpr (sizeof(B) == 8)
    return kernels().dot_hd(x.data(), y.data(), n);
  else if constexpr (sizeof(B) == 4)
    return kernels().dot_hf(x.data(), y.data(), n);
  else
    return kernels().dot_hh(x.data(), y.data(), n);
}

template <class A, class B> void vector_axpy(double alpha, In1<A> x, Out1<B> out) {
  require(x.shape(0) == out.shape(0), "vectors of one length are needed");
  const int64_t n = int64_t(x.shape(0));
  nb::gil_scoped_release release;
  if constexpr (sizeof(A) == 8)
    kernels().axpy_dd(alpha, x.data(), out.data(), n);
  else if constexpr (sizeof(A) == 4 && sizeof(B) == 8)
    kernels().axpy_fd(alpha, x.data(), out.data(), n);
  else if constexpr (sizeof(A) == 4)
    kernels().axpy_ff(alpha, x.data(), out.data(), n);
  else if constexpr (sizeof(B) == 8)
    kernels().axpy_hd(alpha, x.data(), out.data(), n);
  else
    kernels().axpy_hf(alpha, x.data(), out.data(), n);
}

void vector_to_bfloat16(In1<float> x, Out1<bfloat16> out) {
  require(x.shape(0) == out.shape(0), "vectors of one length are needed");
  nb::gil_scoped_release release;
  kernels().to_bfloat16(x.data(), out.data(), int64_t(x.shape(0)));
}

// ---------------------------------------------------------------------------------------------- chains

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
                        Out1<double> log_partition, std::optional<Out1<double>> entropy, int threads) {
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
  int64_t fallbacks = 0;
  const ChainMarginals<T> out{
      out_nodes ? out_nodes->data() : nullptr, out_transitions ? out_transitions->data() : nullptr,
      out_start ? out_start->data() : nullptr, out_end ? out_end->data() : nullptr,
      out_edges ? out_edges->data() : nullptr, log_partition.data(),
      entropy ? entropy->data() : nullptr,     &fallbacks};
  const int n_threads = thread_count(threads);
  bool sound;
  {
    nb::gil_scoped_release release;
    if constexpr (sizeof(T) == 8)
      sound = kernels().marginals_f64(chains, out, n_threads);
    else
      sound = kernels().marginals_f32(chains, out, n_threads);
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
    sound = kernels().marginals_f64(chains, out, n_threads);
    const auto add = kernels().axpy_dd;
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
    if constexpr (sizeof(T) == 8)
      sound = kernels().viterbi_f64(chains, labels.data(), score.data(), n_threads);
    else
      sound = kernels().viterbi_f32(chains, labels.data(), score.data(), n_threads);
  }
  require(sound, kNotFinite);
}

template <class T>
void chain_k_best(In2<T> nodes, In2<T> transitions, In1<T> start, In1<T> end, std::optional<In3<T>> edges,
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
    if constexpr (sizeof(T) == 8)
      sound = kernels().k_best_f64(chains, int(k), labels.data(), score.data(), n_threads);
    else
      sound = kernels().k_best_f32(chains, int(k), labels.data(), score.data(), n_threads);
  }
  require(sound, kNotFinite);
}

template <class T>
void chain_sample(In2<T> nodes, In2<T> transitions, In1<T> start, In1<T> end, std::optional<In3<T>> edges,
                  In1<int64_t> offsets, uint64_t seed, Out2<int32_t> labels, int threads) {
  const Chains<T> chains = chains_of<T>(nodes, transitions, start, end, edges, offsets);
  require(labels.shape(1) == nodes.shape(0), "labels has the wrong shape");
  const int draws = int(labels.shape(0)), n_threads = thread_count(threads);
  bool sound;
  {
    nb::gil_scoped_release release;
    if constexpr (sizeof(T) == 8)
      sound = kernels().sample_f64(chains, draws, seed, labels.data(), n_threads);
    else
      sound = kernels().sample_f32(chains, draws, seed, labels.data(), n_threads);
  }
  require(sound, kNotFinite);
}

template <class T>
void chain_score(In2<T> nodes, In2<T> transitions, In1<T> start, In1<T> end, std::optional<In3<T>> edges,
                 In1<int64_t> offsets, In1<int32_t> labels, Out1<double> score) {
  const Chains<T> chains = chains_of<T>(nodes, transitions, start, end, edges, offsets);
  require(labels.shape(0) == nodes.shape(0) && int64_t(score.shape(0)) == chains.n,
          "labels or score has the wrong shape");
  for (size_t t = 0; t < labels.shape(0); ++t)
    require(labels.data()[t] >= 0 && labels.data()[t] < chains.C, "a label is out of range");
  bool sound;
  {
    nb::gil_scoped_release release;
    if constexpr (sizeof(T) == 8)
      sound = kernels().score_f64(chains, labels.data(), score.data());
    else
      sound = kernels().score_f32(chains, labels.data(), score.data());
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
    if constexpr (sizeof(T) == 8)
      sound = kernels().decode_f64(x, p, chains, w.data(), labels.data(), score.data(), n_threads);
    else
      sound = kernels().decode_f32(x, p, chains, w.data(), labels.data(), score.data(), n_threads);
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
    if constexpr (sizeof(T) == 8)
      sound = kernels().log_loss_f64(x, p, chains, labels.data(), w.data(), loss.data(), out_nodes.data(),
                                     out_shared.data(), n_threads);
    else
      sound = kernels().log_loss_f32(x, p, chains, labels.data(), w.data(), loss.data(), out_nodes.data(),
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

// ---------------------------------------------------------------------------------------------- online learning

template <class T>
std::pair<double, int64_t> run_online(const FeatureRows& rows, const WeightPattern& pattern,
                                      const FeatureRows* edge_rows, const WeightPattern* edge_pattern,
                                      In1<int64_t> offsets, In1<int32_t> labels,
                                      std::optional<In1<uint8_t>> shared_mask, std::optional<In2<uint8_t>> allowed,
                                      const OnlineOptions& options, In1<int64_t> order, Out1<double> w,
                                      Out1<double> extra, OnlineState& state) {
  OnlineData<T> data =
      online_data<T>(rows, pattern, edge_rows, edge_pattern, offsets, labels, shared_mask, order, int64_t(w.shape(0)));
  const int64_t size = int64_t(w.shape(0));
  // SGD without an l1 penalty keeps nothing beside the weights.
  const bool lean = options.rule == Rule::sgd_log && options.l1 == 0.0;
  require(int64_t(extra.shape(0)) == size || (lean && extra.shape(0) == 0),
          "the vector beside the weights has the wrong length");
  if (allowed) {
    require(int64_t(allowed->shape(0)) == data.rows.n_rows && int64_t(allowed->shape(1)) == data.C,
            "allowed has the wrong shape");
    data.allowed = allowed->data();
  }
  int64_t mistakes = 0;
  nb::gil_scoped_release release;
  if (!all_finite(w.data(), size)) fail("weights must be finite");
  double loss;
  if constexpr (sizeof(T) == 8)
    loss = kernels().online_f64(data, options, order.data(), int64_t(order.shape(0)), w.data(), extra.data(), state,
                                &mistakes);
  else
    loss = kernels().online_f32(data, options, order.data(), int64_t(order.shape(0)), w.data(), extra.data(), state,
                                &mistakes);
  return {loss, mistakes};
}

std::pair<double, int64_t> online(const FeatureRows& rows, const WeightPattern& pattern, const FeatureRows* edge_rows,
                                  const WeightPattern* edge_pattern, In1<int64_t> offsets, In1<int32_t> labels,
                                  std::optional<In1<uint8_t>> shared_mask, std::optional<In2<uint8_t>> allowed,
                                  int rule, double rate, double decay, double l2, double l1, double aggressiveness,
                                  In1<int64_t> order, Out1<double> w, Out1<double> extra, OnlineState& state) {
  require(rule >= 0 && rule <= 2, "unknown rule");
  for (double x : {rate, decay, l2, l1, aggressiveness})
    require(std::isfinite(x) && x >= 0, "rates and penalties must be finite and not negative");
  const OnlineOptions options{Rule(rule), rate, decay, l2, l1, aggressiveness};
  if (rows.single())
    return run_online<float>(rows, pattern, edge_rows, edge_pattern, offsets, labels, shared_mask, allowed, options,
                             order, w, extra, state);
  return run_online<double>(rows, pattern, edge_rows, edge_pattern, offsets, labels, shared_mask, allowed, options,
                            order, w, extra, state);
}

// ---------------------------------------------------------------------------------------------- vocabulary

nb::tuple built(RowsBuilder&& rows) {
  nb::object values = rows.all_ones ? nb::none() : to_numpy(std::move(rows.values));
  return nb::make_tuple(to_numpy(std::move(rows.offsets)), to_numpy(std::move(rows.indptr)),
                        to_numpy(std::move(rows.indices)), values);
}

nb::tuple encode_tokens(Vocabulary& v, nb::handle sequences, bool grow) {
  RowsBuilder rows;
  if (!read_tokens(sequences.ptr(), v, grow, rows)) throw nb::python_error();
  return built(std::move(rows));
}

using PieceArgument = std::variant<std::string, std::pair<int, int>>;
nb::tuple encode_columns(Vocabulary& v, nb::handle sentences, const std::vector<std::vector<PieceArgument>>& patterns,
                         bool grow) {
  std::vector<TemplatePattern> compiled;
  for (const auto& pattern : patterns) {
    TemplatePattern pieces;
    for (const PieceArgument& piece : pattern) {
      if (std::holds_alternative<std::string>(piece)) {
        pieces.push_back({std::get<std::string>(piece), 0, -1});
      } else {
        const auto [row, column] = std::get<std::pair<int, int>>(piece);
        require(column >= 0, "a template's column must not be negative");
        pieces.push_back({"", row, column});
      }
    }
    compiled.push_back(std::move(pieces));
  }
  RowsBuilder rows;
  if (!read_columns(sentences.ptr(), compiled, v, grow, rows)) throw nb::python_error();
  return built(std::move(rows));
}

// Strings in Arrow's layout; token t has the strings token_offsets[t] .. token_offsets[t+1].
nb::tuple encode_utf8(Vocabulary& v, In1<uint8_t> bytes, In1<int64_t> string_offsets, In1<int64_t> token_offsets,
                      bool grow) {
  auto check = [](const In1<int64_t>& x, int64_t last, const char* what) {
    require(x.shape(0) >= 1 && x.data()[0] >= 0, what);
    for (size_t i = 1; i < x.shape(0); ++i) require(x.data()[i - 1] <= x.data()[i], what);
    require(x.data()[x.shape(0) - 1] <= last, what);
  };
  check(string_offsets, int64_t(bytes.shape(0)), "string offsets must not decrease nor leave the bytes");
  check(token_offsets, int64_t(string_offsets.shape(0)) - 1, "token offsets must not decrease nor leave the strings");
  RowsBuilder rows;
  const char* data = reinterpret_cast<const char*>(bytes.data());
  for (size_t t = 0; t + 1 < token_offsets.shape(0); ++t) {
    for (int64_t s = token_offsets.data()[t]; s < token_offsets.data()[t + 1]; ++s) {
      const int64_t begin = string_offsets.data()[s], end = string_offsets.data()[s + 1];
      rows.add(v.column(std::string_view(data + begin, size_t(end - begin)), grow), 1.0);
    }
    rows.close_row();
  }
  return built(std::move(rows));
}

// Sorts the names and carries the columns of rows read before along: each row stays ascending.
void sort_names(Vocabulary& v, In1<int64_t> indptr, Out1<int32_t> indices, std::optional<Out1<double>> values) {
  const int64_t size = int64_t(indices.shape(0)), n_rows = require_offsets(indptr, size, "indptr", "indices");
  require(v.n_bits() == 0, "a hashing vocabulary keeps no names");
  for (int64_t k = 0; k < size; ++k)
    require(indices.data()[k] >= 0 && indices.data()[k] < v.size(), "a column index is out of range");
  if (values) require(int64_t(values->shape(0)) == size, "values and indices must have one length");
  std::vector<int32_t> place = v.sort();
  std::vector<std::pair<int32_t, double>> row;
  for (int64_t i = 0; i < n_rows; ++i) {
    const int64_t begin = indptr.data()[i], end = indptr.data()[i + 1];
    row.clear();
    for (int64_t k = begin; k < end; ++k) row.emplace_back(place[indices.data()[k]], values ? values->data()[k] : 1.0);
    std::sort(row.begin(), row.end());
    for (int64_t k = begin; k < end; ++k) {
      indices.data()[k] = row[k - begin].first;
      if (values) values->data()[k] = row[k - begin].second;
    }
  }
  std::vector<int32_t>().swap(place);
  give_back(size);
}

nb::tuple vocabulary_state(const Vocabulary& v) {
  std::vector<uint8_t> bytes(v.bytes().begin(), v.bytes().end());
  std::vector<int64_t> offsets{0};
  for (size_t i = 0; i < v.ends().size(); ++i) offsets.push_back(int64_t(v.ends()[i]));
  return nb::make_tuple(to_numpy(std::move(bytes)), to_numpy(std::move(offsets)));
}

void add_names(Vocabulary& v, In1<uint8_t> bytes, In1<int64_t> offsets) {
  require(v.n_bits() == 0, "a hashing vocabulary keeps no names");
  require_offsets(offsets, int64_t(bytes.shape(0)), "offsets", "bytes");
  const char* data = reinterpret_cast<const char*>(bytes.data());
  for (size_t i = 0; i + 1 < offsets.shape(0); ++i) {
    const int64_t before = v.size();
    const int64_t begin = offsets.data()[i], end = offsets.data()[i + 1];
    require(v.column(std::string_view(data + begin, size_t(end - begin)), true) == before,
            "a feature name stands twice");
  }
}

}  // namespace

namespace mercer {
void bind_fields(nb::module_& m);
}

NB_MODULE(_core, m) {
  nb::set_leak_warnings(
      false);  // objects that live to the end of the interpreter (in caches, in tracebacks) are no leak
#if defined(__unix__) || defined(__APPLE__)
  pthread_atfork(nullptr, nullptr, [] { threads_are_lost = threads_were_used.load(); });
#endif
  kernels();  // a wrong MERCER_SIMD is an error of the import, not of the first use
  m.doc() = "Compiled loops of mercer: plain arrays in, plain arrays out.";

  m.def("instruction_set", [] { return std::string(kernels().name); }, "The instruction set in use.");
  m.def(
      "instruction_sets",
      [] {
        std::vector<std::string> names;
        for (const char* name : {"baseline", "avx2", "avx512"})
          if (kernels_named(name)) names.push_back(name);
        return names;
      },
      "The instruction sets that this machine can run.");
  m.def(
      "use_instruction_set",
      [](const std::string& name) {
        const Kernels* found = kernels_named(name);
        if (!found) fail("this machine cannot run the instruction set '" + name + "'");
        current.store(found);
      },
      "name"_a, "Chooses an instruction set (the best one is in use by default).");
  m.def(
      "hash_bytes", [](nb::bytes text, uint64_t seed) { return hash_bytes({text.c_str(), text.size()}, seed); },
      "text"_a, "seed"_a = 0, "A 64-bit hash, the same on all platforms.");

  nb::class_<FeatureRows>(m, "Rows", "Checked feature rows: CSR (values None = all ones) or a dense matrix.")
      .def(nb::init<In1<int64_t>, In1<int32_t>, nb::object, int64_t, bool>(), "indptr"_a.noconvert(),
           "indices"_a.noconvert(), "values"_a.none(), "n_columns"_a, "single"_a = false)
      .def(nb::init<In2<double>>(), "dense"_a.noconvert())
      .def(nb::init<In2<float>>(), "dense"_a.noconvert())
      .def_prop_ro("single", &FeatureRows::single)
      .def_prop_ro("n_rows", &FeatureRows::n_rows)
      .def_prop_ro("n_columns", &FeatureRows::n_columns);

  nb::class_<WeightPattern>(m, "Pattern", "Which (feature, column) pairs have weights: all, or those listed.")
      .def(nb::init<int64_t, int64_t>(), "n_features"_a, "width"_a)
      .def(nb::init<In1<uint32_t>, In1<uint16_t>, int64_t>(), "starts"_a.noconvert(), "columns"_a.noconvert(),
           "width"_a)
      .def(nb::init<In1<uint32_t>, In1<int32_t>, int64_t>(), "starts"_a.noconvert(), "columns"_a.noconvert(), "width"_a)
      .def(nb::init<In1<int64_t>, In1<uint16_t>, int64_t>(), "starts"_a.noconvert(), "columns"_a.noconvert(), "width"_a)
      .def(nb::init<In1<int64_t>, In1<int32_t>, int64_t>(), "starts"_a.noconvert(), "columns"_a.noconvert(), "width"_a)
      .def_prop_ro("n_weights", [](const WeightPattern& p) { return p.view().n_weights; })
      .def_prop_ro("n_features", [](const WeightPattern& p) { return p.view().n_features; })
      .def_prop_ro("width", [](const WeightPattern& p) { return p.view().width; });

#define MERCER_VECTORS(A, B)                                             \
  m.def("dot", &vector_dot<A, B>, "x"_a.noconvert(), "y"_a.noconvert()); \
  m.def("axpy", &vector_axpy<A, B>, "alpha"_a, "x"_a.noconvert(), "out"_a.noconvert());
  MERCER_VECTORS(double, double)
  MERCER_VECTORS(float, double)
  MERCER_VECTORS(float, float)
  MERCER_VECTORS(bfloat16, double)
  MERCER_VECTORS(bfloat16, float)
#undef MERCER_VECTORS
  m.def("dot", &vector_dot<bfloat16, bfloat16>, "x"_a.noconvert(), "y"_a.noconvert());
  m.def("to_bfloat16", &vector_to_bfloat16, "x"_a.noconvert(), "out"_a.noconvert());

#define MERCER_CHAIN_ARGUMENTS                                                                    \
  "nodes"_a.noconvert(), "transitions"_a.noconvert(), "start"_a.noconvert(), "end"_a.noconvert(), \
      "edges"_a.noconvert().none(), "offsets"_a.noconvert()
#define MERCER_BIND(T)                                                                                                \
  m.def("scores", &scores<T>, "rows"_a, "row"_a, "count"_a, "pattern"_a, "w"_a.noconvert(), "out"_a.noconvert(),      \
        "threads"_a = 1);                                                                                             \
  m.def("backward", &backward<T>, "rows"_a, "row"_a, "count"_a, "pattern"_a, "mu"_a.noconvert(), "out"_a.noconvert(), \
        "threads"_a = 1);                                                                                             \
  m.def("chain_marginals", &chain_marginals<T>, MERCER_CHAIN_ARGUMENTS, "out_nodes"_a.noconvert().none(),             \
        "out_transitions"_a.noconvert().none(), "out_start"_a.noconvert().none(), "out_end"_a.noconvert().none(),     \
        "out_edges"_a.noconvert().none(), "log_partition"_a.noconvert(), "entropy"_a.noconvert().none(),              \
        "threads"_a = 1);                                                                                             \
  m.def("chain_viterbi", &chain_viterbi<T>, MERCER_CHAIN_ARGUMENTS, "labels"_a.noconvert(), "score"_a.noconvert(),    \
        "threads"_a = 1);                                                                                             \
  m.def("chain_k_best", &chain_k_best<T>, MERCER_CHAIN_ARGUMENTS, "labels"_a.noconvert(), "score"_a.noconvert(),      \
        "threads"_a = 1);                                                                                             \
  m.def("chain_sample", &chain_sample<T>, MERCER_CHAIN_ARGUMENTS, "seed"_a, "labels"_a.noconvert(), "threads"_a = 1); \
  m.def("chain_decode", &chain_decode<T>, "rows"_a, "pattern"_a, "w"_a.noconvert(), "transitions"_a.noconvert(),      \
        "start"_a.noconvert(), "end"_a.noconvert(), "offsets"_a.noconvert(), "labels"_a.noconvert(),                  \
        "score"_a.noconvert(), "threads"_a = 1);                                                                      \
  m.def("chain_log_loss", &chain_log_loss<T>, "rows"_a, "pattern"_a, "w"_a.noconvert(), "transitions"_a.noconvert(),  \
        "start"_a.noconvert(), "end"_a.noconvert(), "offsets"_a.noconvert(), "labels"_a.noconvert(),                  \
        "loss"_a.noconvert(), "out_nodes"_a.noconvert(), "out_shared"_a.noconvert(), "threads"_a = 1);                \
  m.def("chain_score", &chain_score<T>, MERCER_CHAIN_ARGUMENTS, "labels"_a.noconvert(), "score"_a.noconvert());       \
  m.def("chain_add", &chain_add<T>, "labels"_a.noconvert(), "offsets"_a.noconvert(), "weights"_a.noconvert(),         \
        "nodes"_a.noconvert(), "transitions"_a.noconvert(), "start"_a.noconvert(), "end"_a.noconvert(),               \
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
  m.def("observed_pattern", &observed_pattern, "indptr"_a.noconvert(), "indices"_a.noconvert(), "columns"_a.noconvert(),
        "n_features"_a, "n_columns"_a, "fill"_a,
        "The pairs that occur together: (starts, columns) or (None, None) for all.");

  nb::class_<OnlineState>(m, "OnlineState", "What an online learner carries from call to call.")
      .def(nb::init<>())
      .def_rw("scale", &OnlineState::scale)
      .def_rw("step", &OnlineState::step)
      .def_rw("l1_total", &OnlineState::l1_total);
  m.def("online", &online, "rows"_a, "pattern"_a, "edge_rows"_a.none(), "edge_pattern"_a.none(),
        "offsets"_a.noconvert(), "labels"_a.noconvert(), "shared_mask"_a.noconvert().none(),
        "allowed"_a.noconvert().none(), "rule"_a, "rate"_a, "decay"_a, "l2"_a, "l1"_a, "aggressiveness"_a,
        "order"_a.noconvert(), "w"_a.noconvert(), "extra"_a.noconvert(), "state"_a,
        "Runs an online rule over the sequences in the given order; returns (summed loss, wrong labels).");

  nb::class_<Vocabulary>(m, "Vocabulary", "Feature names to columns, by a table or by hashing.")
      .def(
          "__init__",
          [](Vocabulary* v, int n_bits) {
            require(n_bits >= 0 && n_bits <= 30, "n_bits must be between 0 (no hashing) and 30");
            new (v) Vocabulary(n_bits);
          },
          "n_bits"_a = 0)
      .def("__len__", &Vocabulary::size)
      .def_prop_ro("n_bits", &Vocabulary::n_bits)
      .def(
          "name",
          [](const Vocabulary& v, int64_t i) {
            require(v.n_bits() == 0 && i >= 0 && i < v.size(), "no such feature");
            const std::string_view s = v.name(i);
            return nb::str(s.data(), s.size());
          },
          "column"_a)
      .def(
          "find", [](Vocabulary& v, const std::string& name) { return v.column(name, false); }, "name"_a)
      .def("encode_tokens", &encode_tokens, "sequences"_a, "grow"_a)
      .def("encode_columns", &encode_columns, "sentences"_a, "patterns"_a, "grow"_a)
      .def("encode_utf8", &encode_utf8, "bytes"_a.noconvert(), "string_offsets"_a.noconvert(),
           "token_offsets"_a.noconvert(), "grow"_a)
      .def("sort", &sort_names, "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert().none())
      .def("state", &vocabulary_state, "The names as (bytes, offsets).")
      .def("add_names", &add_names, "bytes"_a.noconvert(), "offsets"_a.noconvert());

  bind_alignment(m);
  bind_blocks(m);
  bind_multiclass(m);
  bind_parsing(m);
  bind_ranking(m);
  bind_relative(m);
  bind_examples(m);
  bind_graphlets(m);
  bind_learner(m);
  bind_readers(m);
  bind_records(m);
  bind_segments(m);
  bind_text(m);
  bind_keyed_rows(m);
  bind_vector_kernels(m);
  bind_string_kernels(m);
  bind_transducers(m);
  bind_tree_kernels(m);
  bind_graph_kernels(m);
  bind_dependence(m);
  bind_cliques(m);
  bind_factors(m);
  bind_gibbs(m);
  bind_cuts(m);
  bind_dual(m);
  bind_assignment(m);
  bind_machines(m);
  bind_labellings(m);
  bind_circulant(m);
  bind_hamming(m);
  bind_fastmaps(m);
  bind_fields(m);
}
