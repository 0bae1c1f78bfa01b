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

MERCER_TABLE(LinearLoops<double>)
MERCER_TABLE(LinearLoops<float>)

}  // namespace mercer
