// Compiled once for each instruction set.
#include "solvers/multiclass_loops.hpp"

#include "solvers/multiclass_dual.hpp"

namespace mercer::MERCER_ARCH {

template <> const MulticlassLoops<double>& table<MulticlassLoops<double>>() {
  static constexpr MulticlassLoops<double> loops = {
      .prepare = multiclass_prepare<double>,
      .epoch = multiclass_epoch<double>,
      .check = multiclass_check<double>,
  };
  return loops;
}

template <> const MulticlassLoops<float>& table<MulticlassLoops<float>>() {
  static constexpr MulticlassLoops<float> loops = {
      .prepare = multiclass_prepare<float>,
      .epoch = multiclass_epoch<float>,
      .check = multiclass_check<float>,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
