// Compiled once for each instruction set, without fused products: sums are the same for vectors of any width.
#include "structures/alignment_loops.hpp"

namespace mercer::MERCER_ARCH {

namespace {

void match_and_delete(int64_t m, double least, double open, double extend, const double* __restrict pair,
                      const double* __restrict H0, const double* __restrict M0, const double* __restrict D0,
                      double* __restrict F, double* __restrict M, double* __restrict D) {
  for (int64_t j = 1; j <= m; ++j) {
    const double before = H0[j - 1] > least ? H0[j - 1] : least;
    const double match = pair[j - 1] + before;
    const double opened = M0[j] + open, extended = D0[j] + extend;
    const double deleted = opened >= extended ? opened : extended;
    M[j] = match;
    D[j] = deleted;
    F[j] = match >= deleted ? match : deleted;
  }
}

void best_of_row(int64_t m, const double* __restrict F, const double* __restrict I, double* __restrict H) {
  for (int64_t j = 0; j <= m; ++j) H[j] = F[j] >= I[j] ? F[j] : I[j];
}

void trace_row(int64_t m, bool local, double open, double extend, const double* __restrict H0,
               const double* __restrict M0, const double* __restrict D0, const double* __restrict F,
               const double* __restrict M, const double* __restrict D, const double* __restrict I,
               uint8_t* __restrict trace) {
  trace[0] = uint8_t(kDelete | (M0[0] + open >= D0[0] + extend ? 0 : kDeleteExtends));
  for (int64_t j = 1; j <= m; ++j) {
    const int which = (M[j] >= D[j] ? 0 : 1), left = (M[j - 1] >= D[j - 1] ? 0 : 1);
    const int inserted = F[j] >= I[j] ? 0 : 1, longer = F[j - 1] + open >= I[j - 1] + extend ? 0 : 1;
    const int extends = M0[j] + open >= D0[j] + extend ? 0 : 1;
    const int starts = int(local) & (H0[j - 1] > 0.0 ? 0 : 1);
    const int state = inserted * kInsert + (1 - inserted) * which, source = longer * kInsert + (1 - longer) * left;
    trace[j] = uint8_t(state + kDeleteExtends * extends + (source << kInsertShift) + kStarts * starts);
  }
}

}  // namespace

template <> const AlignmentLoops& table<AlignmentLoops>() {
  static constexpr AlignmentLoops loops = {
      .match_and_delete = match_and_delete,
      .best_of_row = best_of_row,
      .trace_row = trace_row,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
