// A row of the best alignment; see structures/alignment.cpp.
#pragma once

#include <cstdint>

#include "base/dispatch.hpp"

namespace mercer {

enum State : uint8_t { kMatch = 0, kDelete = 1, kInsert = 2, kStart = 3 };

// A byte of traceback: which state H is (bits 0-1), whether D extends (bit 2), where I comes from (bits 3-4), whether a
// local pair starts the alignment (bit 5).
constexpr uint8_t kDeleteExtends = 4, kStarts = 32;
constexpr int kInsertShift = 3;

struct AlignmentLoops {
  static constexpr const char* concern = "alignment";
  // M, D and F = max(M, D) of a row: independent cells, which the compiler turns into vectors.
  void (*match_and_delete)(int64_t m, double least, double open, double extend, const double* pair, const double* H0,
                           const double* M0, const double* D0, double* F, double* M, double* D);
  // H = max(F, I).
  void (*best_of_row)(int64_t m, const double* F, const double* I, double* H);
  // The bytes of a row: the same comparisons once more, cell by cell.
  void (*trace_row)(int64_t m, bool local, double open, double extend, const double* H0, const double* M0,
                    const double* D0, const double* F, const double* M, const double* D, const double* I,
                    uint8_t* trace);
};
MERCER_TABLE(AlignmentLoops)

}  // namespace mercer
