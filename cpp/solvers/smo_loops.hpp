// What support vector machines do at every step, over all instances; see solvers/svm_smo.hpp.
#pragma once

#include <cstdint>
#include <limits>

#include "base/dispatch.hpp"

namespace mercer {
namespace smo {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What is looked through at every step, of the instances not set aside. v_i = (slope of h_i, without its corners) - (Ks)_i;
// where s_i may grow, v + grows is what it gains by that, elsewhere grows is -infinity; where it may fall, v + falls is what
// it loses, elsewhere falls is infinity. Rows of K are read at `places`, or straight where that is null.
struct Watched {
  double* v;
  const double *grows, *falls, *diagonal;
  const int32_t* places;
  int64_t size;
  double flat;  // a curvature that stands for less
  double tie;   // a difference in v that rounding may have made
};

struct Extremes {
  double up = -kInfinity, down = kInfinity;  // the largest v + grows, the smallest v + falls
  int64_t block = 0;                         // where the largest is
  double width() const { return up - down; }
};

}  // namespace smo

struct SmoLoops {
  static constexpr const char* concern = "svm_smo";
  // v -= t (ki - kj) and what is extreme then.
  smo::Extremes (*move)(smo::Watched w, const double* ki, const double* kj, double t);
  // The best partner of an instance by a second-order model; -1 if none promises anything.
  int64_t (*partner)(smo::Watched w, const double* ki, double up, double kii);
  // out += sum over k of c[k] rows[k], of `count` rows, for the n entries from `first` on.
  void (*add_rows)(const double* const* rows, const double* c, int64_t count, int64_t first, double* out, int64_t n);
  // The upper half of H += sum over k of c[k] x_k x_k' for four rows x_k of length m.
  void (*add_squares)(const double* x, const double* c, int64_t m, double* H);
};
MERCER_TABLE(SmoLoops)

}  // namespace mercer
