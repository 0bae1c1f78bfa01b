// Compiled once for each instruction set (see CMakeLists.txt): fills the table of kernels of the set MERCER_ARCH.
#include "structures/chain.hpp"
#include "base/dispatch.hpp"
#include "structures/linear.hpp"
#include "solvers/multiclass_dual.hpp"
#include "solvers/chain_online.hpp"
#include "structures/segments.hpp"
#include "inference/spins.hpp"

#define MERCER_STRING_(x) #x
#define MERCER_STRING(x) MERCER_STRING_(x)

namespace mercer::MERCER_ARCH {

const Kernels& kernels() {
  // clang-format off
  static const Kernels table = {
      MERCER_STRING(MERCER_ARCH),
      spin_sweep, count_sweep,
      segment_marginals, segment_best, segment_k_best, segment_sample, segment_spans, segment_score,
      dot<float, float>, dot<float, double>, dot<bfloat16, bfloat16>, dot<bfloat16, float>, dot<bfloat16, double>,
      dot<double, double>,
      axpy<float, float>, axpy<float, double>, axpy<bfloat16, float>, axpy<bfloat16, double>,
      axpy<double, double>, to_bfloat16,
      scores<double>, backward<double>, marginals<double>, log_loss<double>, viterbi<double>, decode<double>,
      k_best<double>, sample<double>, score<double>, online<double>, margin<double>,
      multiclass_prepare<double>, multiclass_epoch<double>, multiclass_check<double>,
      scores<float>, backward<float>, marginals<float>, log_loss<float>, viterbi<float>, decode<float>,
      k_best<float>, sample<float>, score<float>, online<float>, margin<float>,
      multiclass_prepare<float>, multiclass_epoch<float>, multiclass_check<float>,
  };
  // clang-format on
  return table;
}

}  // namespace mercer::MERCER_ARCH
