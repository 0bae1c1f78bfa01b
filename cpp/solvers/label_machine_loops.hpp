// Newton's method for eight linear machines at once over sparse rows; see solvers/label_machines.cpp.
#pragma once

#include <cstdint>

#include "base/csr.hpp"
#include "base/dispatch.hpp"

namespace mercer {

constexpr int kMachines = 8;  // of a block: one value of each fills a cache line

// min over (w, b)  ½‖w‖² + Σ_i C |t_i| max(0, 1 − sign(t_i) (⟨w, x_i⟩ + b))², of `count` machines.
struct LabelMachines {
  Rows<double> x;
  const double* targets;  // t of row i and machine j: targets[i * stride + j]
  int64_t stride;
  int count;
  double C, tol;
  bool intercept;
  int64_t max_iter;
  double* weights;  // a row of n_columns for each machine: the start, and what is found
  double* shifts;   // b of each machine
  double *objective, *gap;
  uint8_t* converged;
  int64_t steps;
  void (*poll)();  // looks for signals
};

struct LabelMachineLoops {
  static constexpr const char* concern = "label_machines";
  void (*solve)(LabelMachines& machines);
};
MERCER_TABLE(LabelMachineLoops)

}  // namespace mercer
