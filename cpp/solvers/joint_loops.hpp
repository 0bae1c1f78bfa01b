// What the ascent on a box does at every step, over all coordinates; see solvers/joint_dual.cpp.
#pragma once

#include <cstdint>

#include "base/dispatch.hpp"

namespace mercer {

// The slope of coordinate i is r_i; grows and falls are 1 where it may grow or fall, else 0.
struct BoxAscent {
  double* r;
  const double *grows, *falls, *inverse;  // 1 / G_ii
  int64_t size;
};

struct Steepest {
  double violation = 0;  // the largest slope that a coordinate may follow
  double promise = 0;    // the largest slope^2 / G_ii among them
  int64_t block = 0;     // where that is
};

struct JointLoops {
  static constexpr const char* concern = "joint_dual";
  // r -= change row, and what is steepest then.
  Steepest (*move)(BoxAscent at, const double* row, double change);
  Steepest (*move_single)(BoxAscent at, const float* row, double change);
  // The coordinate of a block that promises most.
  int64_t (*best)(BoxAscent at, int64_t block);
};
MERCER_TABLE(JointLoops)

}  // namespace mercer
