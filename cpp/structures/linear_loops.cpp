// Compiled once for each instruction set.
#include "structures/linear_loops.hpp"

#include "structures/linear.hpp"

namespace mercer::MERCER_ARCH {

template <> const LinearLoops<double>& table<LinearLoops<double>>() {
  static constexpr LinearLoops<double> loops = {
      .scores = scores<double>,
      .backward = backward<double>,
  };
  return loops;
}

template <> const LinearLoops<float>& table<LinearLoops<float>>() {
  static constexpr LinearLoops<float> loops = {
      .scores = scores<float>,
      .backward = backward<float>,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
