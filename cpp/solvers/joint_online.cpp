// The joint machine of label sets, learned online: with unit rows x_i, unit codes v_i of their label sets and
// b_i = <v_i, W x_i>,
//
//   primal     where b_i < margin:   W += step v_i x_i'            |W|^2 += 2 step b_i + step^2
//   kernels    b_i = sum_j a_j G_ij over the product G of the two kernel matrices; where b_i < margin:
//              perceptron  a_i += step           gradient  a_j = max(0, a_j + step G_ij) for all j
//
// W is kept with a row for each feature, so that the scores of all labels are sums of contiguous rows. `sums` collects what
// makes the mean of W over the rows seen: mean = W - sums / seen. `own` has for each row the sum of its steps, and of its
// steps times the rows seen before them: what it has added to both, in units of v_i x_i'.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/csr_rows.hpp"
#include "base/signals.hpp"

namespace mercer {
namespace {

template <class Work> void for_features(const Rows<double>& X, int64_t i, Work work) {
  if (!X.indptr) {
    for (int64_t j = 0; j < X.n_columns; ++j)
      if (const double x = X.values[i * X.n_columns + j]; x != 0.0) work(j, x);
    return;
  }
  for (int64_t k = X.indptr[i]; k < X.indptr[i + 1]; ++k) work(int64_t(X.indices[k]), X.values ? X.values[k] : 1.0);
}

void require_order(const In1<int64_t>& order, int64_t n) {
  for (size_t at = 0; at < order.shape(0); ++at)
    require(order.data()[at] >= 0 && order.data()[at] < n, "order must hold numbers of rows");
}

void require_rates(double step, double margin) {
  require(step > 0 && std::isfinite(step), "step must be positive");
  require(margin >= 0 && std::isfinite(margin), "margin must be finite and at least 0");
}

nb::tuple joint_pass(const FeatureRows& rows, In2<double> codes, Out2<double> weights, Out2<double> sums,
                     In1<int64_t> order, Out2<double> own, double step, double margin, double squared_norm,
                     int64_t seen) {
  const Rows<double> X = rows.view<double>();
  const int64_t T = int64_t(codes.shape(1));
  require(int64_t(codes.shape(0)) == X.n_rows, "codes needs a row for each row of features");
  for (const auto* matrix : {&weights, &sums})
    require(int64_t(matrix->shape(0)) == X.n_columns && int64_t(matrix->shape(1)) == T,
            "weights and sums need a row for each feature and a column for each label");
  require_order(order, X.n_rows);
  require(int64_t(own.shape(0)) == X.n_rows && own.shape(1) == 2, "own needs two numbers for each row");
  require_rates(step, margin);
  require(seen >= 0 && seen < int64_t(1) << 53, "seen must lie in 0 .. 2^53 - 1");  // it is counted on, and a factor
  int64_t updates = 0;
  {
    nb::gil_scoped_release unlocked;
    std::vector<double> scores(static_cast<size_t>(T));
    double *W = weights.data(), *U = sums.data();
    for (size_t at = 0; at < order.shape(0); ++at) {
      const int64_t i = order.data()[at];
      const double* v = codes.data() + i * T;
      std::fill(scores.begin(), scores.end(), 0.0);
      for_features(X, i, [&](int64_t j, double x) {
        const double* row = W + j * T;
        for (int64_t t = 0; t < T; ++t) scores[size_t(t)] += x * row[t];
      });
      double value = 0, length = 0, x_length = 0;
      for (int64_t t = 0; t < T; ++t) {
        value += v[t] * scores[size_t(t)];
        length += v[t] * v[t];
      }
      if (value < margin && length > 0) {
        const double later = step * double(seen);
        for_features(X, i, [&](int64_t j, double x) {
          double *row = W + j * T, *sum = U + j * T;
          const double change = step * x, delayed = later * x;
          for (int64_t t = 0; t < T; ++t) {
            row[t] += change * v[t];
            sum[t] += delayed * v[t];
          }
          x_length += x * x;
        });
        own.data()[2 * i] += step;
        own.data()[2 * i + 1] += later;
        squared_norm += 2 * step * value + step * step * length * x_length;
        ++updates;
      }
      ++seen;
      if (at % 256 == 255) check_signals();
    }
  }
  return nb::make_tuple(updates, squared_norm, seen);
}

int64_t joint_kernel_pass(In2<double> G, Out1<double> alpha, In1<int64_t> order, double step, double margin,
                          bool gradient) {
  const int64_t n = int64_t(G.shape(0));
  require(int64_t(G.shape(1)) == n && int64_t(alpha.shape(0)) == n,
          "G must be square, with a coefficient for each row");
  require_order(order, n);
  require_rates(step, margin);
  nb::gil_scoped_release unlocked;
  int64_t updates = 0;
  double* a = alpha.data();
  for (size_t at = 0; at < order.shape(0); ++at) {
    const int64_t i = order.data()[at];
    const double* row = G.data() + i * n;
    double value = 0;
    for (int64_t j = 0; j < n; ++j) value += row[j] * a[j];
    if (value < margin && row[i] > 0) {
      if (gradient)
        for (int64_t j = 0; j < n; ++j) a[j] = std::max(0.0, a[j] + step * row[j]);
      else
        a[i] += step;
      ++updates;
    }
    if (at % 256 == 255) check_signals();
  }
  return updates;
}

}  // namespace

void bind_joint_online(nb::module_& m) {
  m.def("joint_pass", &joint_pass, "rows"_a, "codes"_a, "weights"_a, "sums"_a, "order"_a, "own"_a, "step"_a, "margin"_a,
        "squared_norm"_a, "seen"_a, "One pass of the joint machine: (updates, |W|^2, rows seen).");
  m.def("joint_kernel_pass", &joint_kernel_pass, "G"_a, "alpha"_a, "order"_a, "step"_a, "margin"_a, "gradient"_a,
        "One pass over a product of kernel matrices; the number of updates.");
}

}  // namespace mercer
