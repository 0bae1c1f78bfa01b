// Compiled once for each instruction set; see base/vector_loops.hpp.
#include "base/vector_loops.hpp"

#include <cstring>

namespace mercer::MERCER_ARCH {

namespace {

inline double wide(double x) { return x; }
inline double wide(float x) { return x; }
inline double wide(bfloat16 x) {
  const uint32_t bits = uint32_t(x) << 16;
  float out;
  std::memcpy(&out, &bits, 4);
  return out;
}

// Σ x_i y_i in double, over sixteen running sums that the compiler keeps in vectors.
template <class A, class B> double dot(const A* x, const B* y, int64_t n) {
  double sums[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int k = 0; k < 16; ++k) sums[k] += wide(x[i + k]) * wide(y[i + k]);
  for (; i < n; ++i) sums[i % 16] += wide(x[i]) * wide(y[i]);
  for (int half = 8; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) sums[k] += sums[k + half];
  return sums[0];
}

// out += alpha x
template <class A, class B> void axpy(double alpha, const A* x, B* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = B(double(out[i]) + alpha * wide(x[i]));
}

// The nearest numbers, of two equally near ones the even one; x is finite.
void to_bfloat16(const float* x, bfloat16* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, x + i, 4);
    out[i] = bfloat16((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

}  // namespace

template <> const VectorLoops& table<VectorLoops>() {
  static constexpr VectorLoops loops = {
      .dot_ff = dot<float, float>,
      .dot_fd = dot<float, double>,
      .dot_hh = dot<bfloat16, bfloat16>,
      .dot_hf = dot<bfloat16, float>,
      .dot_hd = dot<bfloat16, double>,
      .dot_dd = dot<double, double>,
      .axpy_ff = axpy<float, float>,
      .axpy_fd = axpy<float, double>,
      .axpy_hf = axpy<bfloat16, float>,
      .axpy_hd = axpy<bfloat16, double>,
      .axpy_dd = axpy<double, double>,
      .to_bfloat16 = to_bfloat16,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
