// Compiled once for each instruction set, without fused products: steps are the same for vectors of any width.
#include "solvers/joint_loops.hpp"

#include <algorithm>

namespace mercer::MERCER_ARCH {

namespace {

constexpr int64_t kBlock = 64;  // entries among which the place of the largest promise is looked for
// Promises that differ by less are the same: rounding must not choose, and with it the unit of the data.
constexpr double kTie = 1.0 + 1e-9;

[[gnu::always_inline]] inline double slope(double r, double grows, double falls) {
  const double up = r * grows, down = -r * falls;
  return up > down ? up : down;
}

template <class Number> Steepest move(BoxAscent at, const Number* row, double change) {
  Steepest found;
  double* __restrict r = at.r;
  for (int64_t first = 0; first < at.size; first += kBlock) {
    const int64_t end = std::min(first + kBlock, at.size);
    double violation = 0, promise = 0;
#pragma omp simd reduction(max : violation, promise)
    for (int64_t i = first; i < end; ++i) {
      const double here = r[i] - change * double(row[i]), v = slope(here, at.grows[i], at.falls[i]),
                   p = v * v * at.inverse[i];
      r[i] = here;
      violation = v > violation ? v : violation;
      promise = p > promise ? p : promise;
    }
    found.violation = std::max(found.violation, violation);
    if (promise > found.promise * kTie) {
      found.promise = promise;
      found.block = first;
    }
  }
  return found;
}

int64_t best(BoxAscent at, int64_t block) {
  double most = 0;
  int64_t place = block;
  for (int64_t i = block; i < std::min(block + kBlock, at.size); ++i) {
    const double v = slope(at.r[i], at.grows[i], at.falls[i]), p = v * v * at.inverse[i];
    if (p > most * kTie) {
      most = p;
      place = i;
    }
  }
  return place;
}

}  // namespace

template <> const JointLoops& table<JointLoops>() {
  static constexpr JointLoops loops = {.move = move<double>, .move_single = move<float>, .best = best};
  return loops;
}

}  // namespace mercer::MERCER_ARCH
