// Stacked feature rows and patterns of weights, as the compiled loops see them; checked owners are in base/csr_rows.hpp.
#pragma once

#include <cstdint>

namespace mercer {

// Stacked feature rows: CSR (indices ascending in a row; values == nullptr means all ones) or dense (indptr ==
// nullptr).
template <class T> struct Rows {
  const int64_t* indptr;
  const int32_t* indices;
  const T* values;
  int64_t n_rows, n_columns;
};

// Which (feature, column) pairs have a weight. starts == nullptr: all, weight f * width + column. Otherwise feature f
// owns the weights starts[f] .. starts[f+1], for the columns named in columns; a row with all columns is used as a
// dense one.
struct Pattern {
  // The first weight of a feature and, as bits, the columns that it has weights for: one word to read at random.
  struct Head {
    uint32_t start, bits;
  };
  const uint32_t* starts;   // short, as they are read at random
  const uint16_t* columns;  // where width allows it; otherwise nullptr, and
  const int32_t* wide_columns;
  int64_t n_features, width, n_weights;
  const Head* heads = nullptr;  // of sparse patterns with at most 32 columns

  int32_t column(int64_t i) const { return columns ? columns[i] : wide_columns[i]; }
};

// Calls work with the columns of a pattern, whichever their type is: for loops over many of them.
template <class Work> inline void with_columns(const Pattern& p, Work work) {
  if (p.columns)
    work(p.columns);
  else
    work(p.wide_columns);
}

}  // namespace mercer
