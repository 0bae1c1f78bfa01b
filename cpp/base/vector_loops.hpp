// Mixed-precision vector arithmetic: products are added up in double, in a fixed order.
#pragma once

#include <cstdint>

#include "base/dispatch.hpp"

namespace mercer {

using bfloat16 = uint16_t;  // the upper half of a float

// f: float, h: bfloat16, d: double.
struct VectorLoops {
  static constexpr const char* concern = "vectors";
  double (*dot_ff)(const float*, const float*, int64_t);
  double (*dot_fd)(const float*, const double*, int64_t);
  double (*dot_hh)(const bfloat16*, const bfloat16*, int64_t);
  double (*dot_hf)(const bfloat16*, const float*, int64_t);
  double (*dot_hd)(const bfloat16*, const double*, int64_t);
  double (*dot_dd)(const double*, const double*, int64_t);
  void (*axpy_ff)(double alpha, const float* x, float* out, int64_t);
  void (*axpy_fd)(double alpha, const float* x, double* out, int64_t);
  void (*axpy_hf)(double alpha, const bfloat16* x, float* out, int64_t);
  void (*axpy_hd)(double alpha, const bfloat16* x, double* out, int64_t);
  void (*axpy_dd)(double alpha, const double* x, double* out, int64_t);
  void (*to_bfloat16)(const float* x, bfloat16* out, int64_t);
};

MERCER_TABLE(VectorLoops)

}  // namespace mercer
