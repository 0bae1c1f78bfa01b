// Gram matrices of vectors: functions of all pairs of rows, dense (kernels/pairwise.cpp) or sparse.
//
// Sparse rows: with f(0, 0) = 0, Σ_k f(x_k, z_k) = Σ_k f(x_k, 0) + Σ_k f(0, z_k) + Σ_{k: z_k ≠ 0} (f(x_k, z_k) - f(x_k,
// 0) - f(0, z_k)), and the last sum needs only the entries of z once x is spread out.
#include <cmath>

#include "base/csr_rows.hpp"
#include "kernels/pairwise.hpp"
#include "base/parallel.hpp"

namespace mercer {
namespace {

template <class T> using Rows2 = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

PairTerm term_named(const std::string& name) {
  static const char* names[] = {"product",  "squared", "absolute", "minimum", "chi_squared",
                                "harmonic", "subsets", "groups",   "splines"};
  for (int i = 0; i < 9; ++i)
    if (name == names[i]) return PairTerm(i);
  fail("there is no term '" + name + "'");
}
PairFinish finish_named(const std::string& name) {
  static const char* names[] = {"none", "gaussian", "decay", "matern_1", "matern_3", "matern_5", "power"};
  for (int i = 0; i < 7; ++i)
    if (name == names[i]) return PairFinish(i);
  fail("there is no finish '" + name + "'");
}

// The rule of a call, with its arrays kept alive and checked.
struct PairSettings {
  PairRule rule;
  std::optional<In1<int64_t>> offsets, indices;
  std::optional<In1<double>> values, weights;
  std::optional<In2<double>> pieces;

  PairSettings(const std::string& term, const std::string& finish, double gamma, double coef, int64_t degree) {
    rule.term = term_named(term);
    rule.finish = finish_named(finish);
    require(std::isfinite(gamma) && std::isfinite(coef), "gamma and coef must be finite");
    require(degree >= 1, "degree must be at least 1");
    rule.gamma = gamma;
    rule.coef = coef;
    rule.degree = degree;
  }
  void set_subsets(int64_t degree, double gamma) {
    require(degree >= 1 && degree <= 1 << 20, "the size of the subsets must be at least 1");
    require(std::isfinite(gamma) && gamma >= 0, "gamma of the coordinates must be at least 0");
    rule.degree = degree;
    rule.inner = gamma > 0;
    rule.inner_gamma = gamma;
  }
  void set_groups(In1<int64_t> starts, In1<int64_t> members, In1<double> member_values, In1<double> group_weights,
                  int64_t inner) {
    require(starts.shape(0) >= 1 && group_weights.shape(0) + 1 == starts.shape(0),
            "groups and weights must be equally many");
    require(members.shape(0) == member_values.shape(0), "indices and values must be equally many");
    require(inner >= 1, "the inner degree must be at least 1");
    rule.n_groups = int64_t(group_weights.shape(0));
    require_offsets(starts, int64_t(members.shape(0)), "offsets", "indices");
    offsets = starts, indices = members, values = member_values, weights = group_weights;
    rule.offsets = starts.data(), rule.indices = members.data();
    rule.values = member_values.data(), rule.weights = group_weights.data();
    rule.inner = inner;
  }
  void set_splines(In2<double> table, double width) {
    require(table.shape(0) >= 1 && table.shape(1) >= 1, "the table of pieces is empty");
    require(std::isfinite(width) && width > 0, "width must be positive");
    pieces = table;
    rule.pieces = table.data();
    rule.n_pieces = int64_t(table.shape(0));
    rule.order = int64_t(table.shape(1)) - 1;
    rule.inner_gamma = 1 / width;
  }
  void check(int64_t d) const {
    if (rule.term == PairTerm::groups) {
      require(offsets.has_value(), "the term groups needs set_groups");
      for (size_t t = 0; t < indices->shape(0); ++t)
        require(indices->data()[t] >= 0 && indices->data()[t] < d, "a member of a group is no column of the rows");
    }
    require(rule.term != PairTerm::splines || pieces.has_value(), "the term splines needs set_splines");
  }
};

template <class T> struct Output {
  T* data;
  int64_t rows, columns, stride;
  explicit Output(Rows2<T>& out)
      : data(out.data()), rows(int64_t(out.shape(0))), columns(int64_t(out.shape(1))), stride(int64_t(out.stride(0))) {
    require(columns <= 1 || out.stride(1) == 1, "rows of the output must be contiguous");
    require(rows <= 1 || stride >= columns, "rows of the output must not overlap");
  }
  // Where the values of n rows from row0 on with m columns go, and with `mirror` the transposed ones.
  void check(int64_t row0, int64_t n, int64_t m, bool mirror) const {
    require(row0 >= 0 && n >= 0 && n <= rows && row0 <= rows - n && m <= columns, "the output is too small");
    if (mirror) require(m == row0 + n && m <= rows, "a mirrored block needs the rows up to its own last one");
  }
};

template <class T>
void pairwise(In2<T> A, In2<T> B, const PairSettings& rule, std::optional<In1<T>> a_norms,
              std::optional<In1<T>> b_norms, Rows2<T> out, int64_t row0, bool mirror, int threads) {
  const Output<T> to(out);
  const int64_t n = int64_t(A.shape(0)), m = int64_t(B.shape(0)), d = int64_t(A.shape(1));
  require(d == int64_t(B.shape(1)), "both collections must have vectors of one length");
  to.check(row0, n, m, mirror);
  rule.check(d);
  const bool normed = rule.rule.finish == PairFinish::gaussian;
  require(a_norms.has_value() == normed && b_norms.has_value() == normed,
          "the finish gaussian takes norms, others do not");
  if (normed)
    require(int64_t(a_norms->shape(0)) == n && int64_t(b_norms->shape(0)) == m, "norms must be one for each row");
  const PairTask<T> task{A.data(),
                         B.data(),
                         normed ? a_norms->data() : nullptr,
                         normed ? b_norms->data() : nullptr,
                         n,
                         m,
                         d,
                         to.data,
                         to.stride,
                         row0,
                         mirror};
  const int n_threads = thread_count(threads);
  nb::gil_scoped_release release;
  loops<PairLoops<T>>().pairs(task, rule.rule, n_threads);
}

// ---------------------------------------------------------------------------------------------- sparse rows

double sparse_term(PairTerm term, double x, double z) {
  switch (term) {
    case PairTerm::product: return x * z;
    case PairTerm::squared: return (x - z) * (x - z);
    case PairTerm::absolute: return std::abs(x - z);
    case PairTerm::minimum: return std::min(x, z);
    case PairTerm::chi_squared: return x + z > 0 ? (x - z) * (x - z) / (x + z) : 0;
    case PairTerm::harmonic: return x + z > 0 ? 2 * x * z / (x + z) : 0;
    default: fail("this term needs dense rows");
  }
}

template <class T> double alone(const Rows<T>& rows, PairTerm term, int64_t i) {
  double total = 0;
  for (int64_t t = rows.indptr[i]; t < rows.indptr[i + 1]; ++t) total += sparse_term(term, rows.values[t], 0);
  return total;
}

template <class T, class Term>
void sparse_row(const Rows<T>& B, const double* x, double alone, const std::vector<double>& others, bool distance,
                T* out, Term term) {
  for (int64_t j = 0; j < B.n_rows; ++j) {
    double total = alone + others[size_t(j)];
    for (int64_t t = B.indptr[j]; t < B.indptr[j + 1]; ++t) {
      const double xk = x[B.indices[t]], zk = B.values[t];
      if (xk != 0) total += term(xk, zk);
    }
    out[j] = T(distance ? std::max(0.0, total) : total);  // a sum of differences may come out a little below 0
  }
}

template <class T>
void sparse_pairwise(In1<int64_t> a_indptr, In1<int32_t> a_indices, In1<T> a_data, In1<int64_t> b_indptr,
                     In1<int32_t> b_indices, In1<T> b_data, int64_t d, const std::string& name, Rows2<T> out,
                     int threads) {
  const Output<T> to(out);
  require(d >= 0 && d <= (int64_t(1) << 31), "the number of columns must lie in 0 .. 2^31");
  const Rows<T> A = sparse_rows<T>(a_indptr, a_indices, a_data, d), B = sparse_rows<T>(b_indptr, b_indices, b_data, d);
  const PairTerm term = term_named(name);
  require(int(term) < int(PairTerm::subsets), "this term needs dense rows");
  to.check(0, A.n_rows, B.n_rows, false);
  const int n_threads = thread_count(threads);
  nb::gil_scoped_release release;
  std::vector<double> others(size_t(B.n_rows));
  for (int64_t j = 0; j < B.n_rows; ++j) others[size_t(j)] = alone(B, term, j);
  const bool distance = term == PairTerm::squared || term == PairTerm::absolute || term == PairTerm::chi_squared;
  constexpr int64_t kRows = 32;
  in_parallel((A.n_rows + kRows - 1) / kRows, n_threads, [&](int64_t part) {
    std::vector<double> x(size_t(d), 0.0);
    for (int64_t i = part * kRows; i < std::min(A.n_rows, (part + 1) * kRows); ++i) {
      for (int64_t t = A.indptr[i]; t < A.indptr[i + 1]; ++t) x[size_t(A.indices[t])] = A.values[t];
      T* row = to.data + i * to.stride;
      const double own = alone(A, term, i);
      const auto run = [&](auto both) { sparse_row(B, x.data(), own, others, distance, row, both); };
      switch (term) {
        case PairTerm::product: run([](double u, double v) { return u * v; }); break;
        case PairTerm::squared: run([](double u, double v) { return -2 * u * v; }); break;
        case PairTerm::absolute:
          run([](double u, double v) { return std::abs(u - v) - std::abs(u) - std::abs(v); });
          break;
        case PairTerm::minimum: run([](double u, double v) { return std::min(u, v); }); break;
        case PairTerm::chi_squared: run([](double u, double v) { return (u - v) * (u - v) / (u + v) - u - v; }); break;
        default: run([](double u, double v) { return 2 * u * v / (u + v); }); break;
      }
      for (int64_t t = A.indptr[i]; t < A.indptr[i + 1]; ++t) x[size_t(A.indices[t])] = 0;
    }
  });
}

template <class T> void transpose_into(Rows2<const T> from, Rows2<T> out) {
  const Output<T> to(out);
  const int64_t n = int64_t(from.shape(0)), m = int64_t(from.shape(1)), stride = int64_t(from.stride(0));
  require(m <= 1 || from.stride(1) == 1, "rows of the input must be contiguous");
  require(to.rows == m && to.columns == n, "the output must have the transposed shape");
  const T* data = from.data();
  nb::gil_scoped_release release;
  constexpr int64_t kSquare = 64;  // squares stay in the cache
  for (int64_t j = 0; j < m; j += kSquare)
    for (int64_t i = 0; i < n; i += kSquare)
      for (int64_t c = j; c < std::min(j + kSquare, m); ++c)
        for (int64_t r = i; r < std::min(i + kSquare, n); ++r) to.data[c * to.stride + r] = data[r * stride + c];
}

template <class T> void bind_for(nb::module_& m) {
  // A converted copy of the output would be filled and thrown away: nothing is converted.
  m.def("pairwise", &pairwise<T>, "A"_a.noconvert(), "B"_a.noconvert(), "rule"_a, "a_norms"_a.noconvert().none(),
        "b_norms"_a.noconvert().none(), "out"_a.noconvert(), "row0"_a = 0, "mirror"_a = false, "threads"_a = 1,
        "A function of all pairs of rows, into out.");
  m.def("sparse_pairwise", &sparse_pairwise<T>, "a_indptr"_a.noconvert(), "a_indices"_a.noconvert(),
        "a_data"_a.noconvert(), "b_indptr"_a.noconvert(), "b_indices"_a.noconvert(), "b_data"_a.noconvert(),
        "n_columns"_a, "term"_a, "out"_a.noconvert(), "threads"_a = 1,
        "Sums over coordinates for all pairs of sparse rows, into out.");
  m.def("transpose_into", &transpose_into<T>, "matrix"_a.noconvert(), "out"_a.noconvert(),
        "Copies the transposed matrix.");
}

}  // namespace

void bind_vector_kernels(nb::module_& m) {
  nb::class_<PairSettings>(m, "PairRule")
      .def(nb::init<const std::string&, const std::string&, double, double, int64_t>(), "term"_a, "finish"_a = "none",
           "gamma"_a = 1.0, "coef"_a = 0.0, "degree"_a = 1)
      .def("set_subsets", &PairSettings::set_subsets, "degree"_a, "gamma"_a)
      .def("set_groups", &PairSettings::set_groups, "offsets"_a, "indices"_a, "values"_a, "weights"_a, "degree"_a)
      .def("set_splines", &PairSettings::set_splines, "pieces"_a, "width"_a);
  bind_for<float>(m);
  bind_for<double>(m);
}

}  // namespace mercer
