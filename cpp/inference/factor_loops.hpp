// Loops over tables and messages of factor graphs; see inference/cliques.cpp and inference/messages.cpp.
#pragma once

#include <cstdint>

#include "base/dispatch.hpp"

namespace mercer {

// Factors of two binary variables; see BinaryMessages.
struct BinaryFactors {
  int64_t count;
  const int32_t *v0, *v1;
  const double *t00, *t01, *t10, *t11;  // one value each if shared
  double *r0, *r1, *change;
  double damping;  // share of the old message, as a probability
};

// The messages of the same factors in one direction; see BinaryMessages.
struct BinaryHalf {
  int64_t count;
  const int32_t* v;  // where they come from
  const double *t00, *t01, *t10, *t11, *from;
  double *to, *change;
  double damping;
};

struct FactorLoops {
  static constexpr const char* concern = "factors";
  // exp in place for x ≤ 700: x = n ln 2 + r, a polynomial in r, and 2^n in the exponent bits; exact 0 below the range.
  void (*exp_all)(double* x, int64_t count);
  // out = weights log x for normal x > 0.
  void (*log_all)(const double* x, const double* weights, double* out, int64_t count);
  // Both messages of every factor, sums or maxima, with one table for all factors or one each.
  void (*odds_sum_shared)(const BinaryFactors&, const double* B);
  void (*odds_sum)(const BinaryFactors&, const double* B);
  void (*odds_max_shared)(const BinaryFactors&, const double* B);
  void (*odds_max)(const BinaryFactors&, const double* B);
  void (*odds_half)(const BinaryHalf&, const double* B);  // sums, a table for each factor
};
MERCER_TABLE(FactorLoops)

}  // namespace mercer
