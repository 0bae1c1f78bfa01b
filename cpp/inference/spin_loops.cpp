// Compiled once for each instruction set.
#include "inference/spin_loops.hpp"

#include "inference/spins.hpp"

namespace mercer::MERCER_ARCH {

template <> const SpinLoops& table<SpinLoops>() {
  static constexpr SpinLoops loops = {
      .spin_sweep = spin_sweep,
      .count_sweep = count_sweep,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
