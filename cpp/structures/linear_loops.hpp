// Part scores and their adjoint; see structures/linear.hpp.
#pragma once

#include "base/csr.hpp"
#include "base/dispatch.hpp"

namespace mercer {

template <class T> struct LinearLoops {
  static constexpr const char* concern = "linear";
  void (*scores)(const Rows<T>&, int64_t row, int64_t count, const Pattern&, const double* w, T* out, int threads);
  void (*backward)(const Rows<T>&, int64_t row, int64_t count, const Pattern&, const T* mu, double* out, int threads);
};

// The logistic loss log(1 + exp(-s)), s = ±score, of two labels: the sum of weight * loss, the probabilities of label 1,
// and weight * slope in the score. One weight for all where there is no array of them.
struct LogisticLoops {
  static constexpr const char* concern = "linear";
  double (*slopes)(const double* scores, const int32_t* labels, const double* weights, double weight, int64_t n,
                   double* probabilities, double* slopes);
};

MERCER_TABLE(LinearLoops<double>)
MERCER_TABLE(LinearLoops<float>)
MERCER_TABLE(LogisticLoops)

}  // namespace mercer
