// Compiled once for each instruction set, without fused products: sums are the same for vectors of any width.
#include "solvers/bag_loops.hpp"

#include <algorithm>

namespace mercer::MERCER_ARCH {

namespace {

constexpr int kLanes = BagLoops::kLanes;

std::pair<double, double> loss_at(double c, double square, const double* g, const double* upper, int64_t n) {
  constexpr int kSums = 16;
  double losses[kSums] = {}, turns[kSums] = {};
  for (int64_t i = 0; i + kSums <= n; i += kSums) {
    for (int k = 0; k < kSums; ++k) {
      const double margin = 1 - g[i + k], short_of = 1 - c * margin, u = short_of > 0 ? upper[i + k] : 0.0;
      losses[k] += u * short_of;
      turns[k] += u * margin;
    }
  }
  for (int64_t i = n - n % kSums; i < n; ++i) {
    const double margin = 1 - g[i], short_of = 1 - c * margin, u = short_of > 0 ? upper[i] : 0.0;
    losses[0] += u * short_of;
    turns[0] += u * margin;
  }
  double loss = c * c * square / 2, turn = c * square;
  for (int k = 0; k < kSums; ++k) loss += losses[k], turn -= turns[k];
  return {loss, turn};
}

double advance(double size, const double* __restrict row, const double* __restrict a, const double* __restrict upper,
               const double* __restrict q, const double* __restrict inverse, double* __restrict g,
               double* __restrict gain, int64_t n) {
  double most[kLanes] = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) {
      const int64_t j = i + k;
      g[j] -= size * row[j];
      double to = a[j] + g[j] * inverse[j];
      to = to > 0.0 ? to : 0.0;
      to = to < upper[j] ? to : upper[j];
      const double step = to - a[j];
      gain[j] = step * (g[j] - step * q[j] / 2);
      most[k] = gain[j] > most[k] ? gain[j] : most[k];
    }
  }
  return *std::max_element(most, most + kLanes);
}

int64_t place_of(double least, const double* values, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    int hits = 0;
    for (int k = 0; k < kLanes; ++k) hits |= values[i + k] >= least;
    if (hits) return std::find_if(values + i, values + i + kLanes, [least](double v) { return v >= least; }) - values;
  }
  return 0;
}

void mix_signs(const double* weights, const double* signs, int64_t count, int64_t stride, int64_t i, double* out,
               int64_t n) {
  std::fill(out, out + n, 0.0);
  for (int64_t t = 0; t < count; ++t) {
    const double *y = signs + t * stride, c = weights[t] * y[i];
    for (int64_t j = 0; j < n; ++j) out[j] += c * y[j];
  }
}

void multiply(const double* __restrict a, const double* __restrict b, double* __restrict out, int64_t n) {
  for (int64_t j = 0; j < n; ++j) out[j] = a[j] * b[j];
}

}  // namespace

template <> const BagLoops& table<BagLoops>() {
  static constexpr BagLoops loops = {
      .loss_at = loss_at,
      .advance = advance,
      .place_of = place_of,
      .mix_signs = mix_signs,
      .multiply = multiply,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
