// Feature rows, patterns of weights, part scores and their adjoint as Python sees them; see structures/linear.hpp.
#include <algorithm>

#include "base/csr_rows.hpp"
#include "base/memory.hpp"
#include "base/parallel.hpp"
#include "base/vector_loops.hpp"
#include "structures/linear_loops.hpp"

namespace mercer {

namespace {

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
  loops<LinearLoops<T>>().scores(x, row, count, p, w.data(), out.data(), n_threads);
}

template <class T>
void backward(const FeatureRows& rows, int64_t row, int64_t count, const WeightPattern& pattern, In2<T> mu,
              Out1<double> out, int threads) {
  const Pattern p = pattern.view();
  check_linear(rows, row, count, p, int64_t(out.shape(0)), int64_t(mu.shape(0)), int64_t(mu.shape(1)));
  const Rows<T> x = rows.view<T>();
  const int n_threads = thread_count(threads);
  nb::gil_scoped_release release;
  loops<LinearLoops<T>>().backward(x, row, count, p, mu.data(), out.data(), n_threads);
}

// scores = X v and out = X' (weights * scores), in one pass over the rows: what conjugate gradients ask for, a row is in
// the cache when it is needed again. Long passes are cut into parts whatever the threads, and added up in their order.
template <class T>
void normal_product(const FeatureRows& rows, In1<double> weights, In1<double> v, Out1<double> scores, Out1<double> out,
                    int threads) {
  const int64_t n = rows.n_rows(), d = rows.n_columns();
  require(int64_t(weights.shape(0)) == n && int64_t(scores.shape(0)) == n,
          "weights and scores must be one for each row");
  require(int64_t(v.shape(0)) == d && int64_t(out.shape(0)) == d, "v and out must be one for each column");
  const Rows<T> x = rows.view<T>();
  const int n_threads = thread_count(threads);
  nb::gil_scoped_release release;
  constexpr int64_t kParts = 4;
  const int64_t size = x.indptr ? x.indptr[n] : n * d;
  const int64_t parts = size >= (int64_t(1) << 18) && d <= size / 32 ? kParts : 1;
  std::vector<double> sums(size_t((parts - 1) * d), 0.0);
  std::fill(out.data(), out.data() + d, 0.0);
  const VectorLoops& vectors = loops<VectorLoops>();
  in_parallel(parts, n_threads, [&](int64_t part) {
    double* sum = part ? sums.data() + (part - 1) * d : out.data();
    for (int64_t i = part * n / parts; i < (part + 1) * n / parts; ++i) {
      if (!x.indptr) {
        const T* row = x.values + i * d;
        double score;
        if constexpr (sizeof(T) == 4) {
          score = vectors.dot_fd(row, v.data(), d);
          vectors.axpy_fd(weights.data()[i] * score, row, sum, d);
        } else {
          score = vectors.dot_dd(row, v.data(), d);
          vectors.axpy_dd(weights.data()[i] * score, row, sum, d);
        }
        scores.data()[i] = score;
        continue;
      }
      const int64_t begin = x.indptr[i], end = x.indptr[i + 1];
      double score = 0;
      for (int64_t k = begin; k < end; ++k) score += v.data()[x.indices[k]] * (x.values ? double(x.values[k]) : 1.0);
      const double change = weights.data()[i] * score;
      for (int64_t k = begin; k < end; ++k) sum[x.indices[k]] += change * (x.values ? double(x.values[k]) : 1.0);
      scores.data()[i] = score;
    }
  });
  for (int64_t part = 1; part < parts; ++part)
    for (int64_t j = 0; j < d; ++j) out.data()[j] += sums[size_t((part - 1) * d + j)];
}

// The logistic loss of two labels and its slopes, in parts whose sums are added in their order whatever the threads.
double logistic_slopes(In1<double> scores, In1<int32_t> labels, In1<double> weights, double weight,
                       Out1<double> probabilities, Out1<double> slopes, int threads) {
  const int64_t n = int64_t(scores.shape(0)), given = int64_t(weights.shape(0));
  require(int64_t(labels.shape(0)) == n && int64_t(probabilities.shape(0)) == n && int64_t(slopes.shape(0)) == n,
          "labels, probabilities and slopes must be one for each score");
  require(given == 0 || given == n, "weights must be one for each score, or none");
  const int n_threads = thread_count(threads);
  nb::gil_scoped_release release;
  constexpr int64_t kPart = 16384;
  const int64_t parts = (n + kPart - 1) / kPart;
  std::vector<double> sums(size_t(parts), 0.0);
  in_parallel(parts, n_threads, [&](int64_t part) {
    const int64_t begin = part * kPart, count = std::min(kPart, n - begin);
    sums[size_t(part)] = loops<LogisticLoops>().slopes(scores.data() + begin, labels.data() + begin,
                                                       given ? weights.data() + begin : nullptr, weight, count,
                                                       probabilities.data() + begin, slopes.data() + begin);
  });
  double total = 0;
  for (double value : sums) total += value;
  return total;
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

}  // namespace

void bind_linear(nb::module_& m) {
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

#define MERCER_BIND(T)                                                                                                \
  m.def("scores", &scores<T>, "rows"_a, "row"_a, "count"_a, "pattern"_a, "w"_a.noconvert(), "out"_a.noconvert(),      \
        "threads"_a = 1);                                                                                             \
  m.def("backward", &backward<T>, "rows"_a, "row"_a, "count"_a, "pattern"_a, "mu"_a.noconvert(), "out"_a.noconvert(), \
        "threads"_a = 1);
  MERCER_BIND(double)
  MERCER_BIND(float)
#undef MERCER_BIND
  m.def(
      "normal_product",
      [](const FeatureRows& rows, In1<double> weights, In1<double> v, Out1<double> scores, Out1<double> out,
         int threads) {
        (rows.single() ? &normal_product<float> : &normal_product<double>)(rows, weights, v, scores, out, threads);
      },
      "rows"_a, "weights"_a.noconvert(), "v"_a.noconvert(), "scores"_a.noconvert(), "out"_a.noconvert(),
      "threads"_a = 1, "scores = X v and out = X' (weights * scores), in one pass.");
  m.def("logistic_slopes", &logistic_slopes, "scores"_a.noconvert(), "labels"_a.noconvert(), "weights"_a.noconvert(),
        "weight"_a, "probabilities"_a.noconvert(), "slopes"_a.noconvert(), "threads"_a = 1,
        "The summed logistic loss of two labels, p of label 1 and the slopes in the scores.");
  m.def("observed_pattern", &observed_pattern, "indptr"_a.noconvert(), "indices"_a.noconvert(), "columns"_a.noconvert(),
        "n_features"_a, "n_columns"_a, "fill"_a,
        "The pairs that occur together: (starts, columns) or (None, None) for all.");
}

}  // namespace mercer
