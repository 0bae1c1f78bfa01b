// Loops of the programs of bags; see solvers/bag_margin_qp.cpp.
#pragma once

#include <cstdint>
#include <utility>

#include "base/dispatch.hpp"

namespace mercer {

struct BagLoops {
  static constexpr const char* concern = "bag_margin";
  static constexpr int kLanes = 16;  // arrays of a program are filled up to a multiple of it
  // ½ c² square + Σ_i upper_i max(0, 1 − c (1 − g_i)) and its slope in c.
  std::pair<double, double> (*loss_at)(double c, double square, const double* g, const double* upper, int64_t n);
  // What a step along one coordinate changes: the slopes, and what each coordinate would gain next. Returns the largest
  // gain.
  double (*advance)(double size, const double* row, const double* a, const double* upper, const double* q,
                    const double* inverse, double* g, double* gain, int64_t n);
  // The first place of a value of at least `least`; there is one.
  int64_t (*place_of)(double least, const double* values, int64_t n);
  // Σ_t weights_t y_ti y_tj for all j. Signs of labelling t begin at t stride.
  void (*mix_signs)(const double* weights, const double* signs, int64_t count, int64_t stride, int64_t i, double* out,
                    int64_t n);
  void (*multiply)(const double* a, const double* b, double* out, int64_t n);
};
MERCER_TABLE(BagLoops)

}  // namespace mercer
