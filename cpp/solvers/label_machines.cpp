// Linear machines with the squared hinge for many labels over the same sparse rows: blocks of eight, each by Newton steps.
#include <algorithm>
#include <cmath>

#include "base/arrays.hpp"
#include "base/csr_rows.hpp"
#include "base/parallel.hpp"
#include "base/signals.hpp"
#include "solvers/label_machine_loops.hpp"

namespace mercer {
namespace {

int64_t newton_machines(In1<int64_t> indptr, In1<int32_t> indices, In1<double> values, int64_t n_columns,
                        In2<double> targets, double C, bool intercept, double tol, int64_t max_iter,
                        Out2<double> weights, Out1<double> shifts, Out1<double> objective, Out1<double> gap,
                        Out1<uint8_t> converged, int threads) {
  const Rows<double> x = sparse_rows<double>(indptr, indices, values, n_columns);
  const int64_t m = int64_t(targets.shape(1)), blocks = (m + kMachines - 1) / kMachines;
  require(int64_t(targets.shape(0)) == x.n_rows, "there must be a row of targets for each row");
  require(int64_t(weights.shape(0)) == m && int64_t(weights.shape(1)) == n_columns && int64_t(shifts.shape(0)) == m &&
              int64_t(objective.shape(0)) == m && int64_t(gap.shape(0)) == m && int64_t(converged.shape(0)) == m,
          "an output has the wrong shape");
  require(C > 0 && std::isfinite(C) && tol > 0 && max_iter >= 0, "C and tol must be positive");
  require(all_finite(values.data(), int64_t(values.shape(0))), "features must be finite");
  require(all_finite(targets.data(), x.n_rows * m), "targets must be finite");
  require(all_finite(weights.data(), m * n_columns) && all_finite(shifts.data(), m), "the start must be finite");
  const double* t = targets.data();
  double *w = weights.data(), *b = shifts.data(), *value = objective.data(), *left = gap.data();
  uint8_t* done = converged.data();
  const int n_threads = thread_count(threads);
  const LabelMachineLoops& loops = mercer::loops<LabelMachineLoops>();
  std::vector<int64_t> steps(static_cast<size_t>(blocks));
  {
    nb::gil_scoped_release release;
    in_parallel(blocks, n_threads, [&](int64_t block) {
      const int64_t first = block * kMachines;
      LabelMachines part{x,
                         t + first,
                         m,
                         int(std::min<int64_t>(kMachines, m - first)),
                         C,
                         tol,
                         intercept,
                         max_iter,
                         w + first * n_columns,
                         b + first,
                         value + first,
                         left + first,
                         done + first,
                         0,
                         check_signals};
      loops.solve(part);
      steps[size_t(block)] = part.steps;
    });
  }
  return steps.empty() ? 0 : *std::max_element(steps.begin(), steps.end());
}

}  // namespace

void bind_label_machines(nb::module_& m) {
  m.def("newton_machines", &newton_machines, "indptr"_a, "indices"_a, "values"_a, "n_columns"_a, "targets"_a, "C"_a,
        "intercept"_a, "tol"_a, "max_iter"_a, "weights"_a, "shifts"_a, "objective"_a, "gap"_a, "converged"_a,
        "threads"_a,
        "Train a linear machine with the squared hinge for each column of targets, from a start: Newton steps taken.");
}

}  // namespace mercer
