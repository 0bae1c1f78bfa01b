// Loops over the atoms of a dictionary; see solvers/sparse_codes.cpp.
#pragma once

#include <cstdint>

#include "base/dispatch.hpp"

namespace mercer {

struct SparseCodeLoops {
  static constexpr const char* concern = "sparse_codes";
  // out = (start − Σ_m c[m] q_m) · scale for rows q_m.
  void (*combine_rows)(const double* start, const double* const* rows, const double* c, int64_t k, double scale,
                       double* out, int64_t n);
  // alpha -= c q, and scores of the atoms that are left: |alpha| weight. Returns the largest.
  double (*update_correlations)(double* alpha, const double* q, double c, const double* weight, double* score,
                                int64_t n);
  // The same with the squares that the chosen atoms leave of each atom; score alpha² / left, 0 for dependent atoms.
  double (*update_decreases)(double* alpha, const double* q, double c, double* left, const double* least, double* score,
                             int64_t n);
  // c -= step · direction.
  void (*move_along)(double* c, const double* direction, double step, int64_t n);
  // out = c a + s b, b = c b − s a.
  void (*rotate)(const double* a, double* b, double c, double s, double* out, int64_t n);
  // How far below 0 (λ − c)⁺ − step (1 − direction), or the same with the other sign, falls within a block of atoms;
  // other: 0, or infinity where the other sign does not count.
  double (*join_slack)(const double* c, const double* direction, const double* barred, double lambda, double step,
                       double other, int64_t n);
};
MERCER_TABLE(SparseCodeLoops)

}  // namespace mercer
