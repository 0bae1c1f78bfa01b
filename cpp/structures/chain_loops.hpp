// Batches of chains and the verbs over them; see structures/chain.hpp, and structures/chain_paths.hpp for further verbs.
//
// Notation: θ part scores, μ marginals. A chain of T positions and C labels scores a labelling y by
//   start[y_0] + Σ_t nodes[t][y_t] + Σ_{t≥1} (transitions[y_{t-1}][y_t] + edges[t][y_{t-1}][y_t]) + end[y_{T-1}].
// Forbidden parts are exact -inf. Sequences are stacked: sequence i holds the positions offsets[i] .. offsets[i+1].
#pragma once

#include "base/csr.hpp"
#include "base/dispatch.hpp"

namespace mercer {

template <class T> struct Chains {
  const T *nodes, *transitions, *start, *end, *edges;  // edges may be nullptr
  const int64_t* offsets;                              // offsets[0] need not be 0: positions are relative to offsets[0]
  int64_t n;
  int C;
  const int32_t* codes = nullptr;  // where positions share rows of nodes: the row of each position, of so many
  int64_t n_rows = 0;
  const T *row_exp = nullptr, *row_shifts = nullptr;  // those rows as the recursions need them; made by marginals

  const T* row(int64_t position) const { return nodes + (codes ? int64_t(codes[position]) : position) * C; }
};

template <class T> struct ChainMarginals {
  T* nodes;                           // may be nullptr
  double *transitions, *start, *end;  // sums over all sequences; may be nullptr (all three together)
  T* edges;                           // a position's own edge marginals; may be nullptr
  double* log_partition;
  double* entropy;     // may be nullptr
  int64_t* fallbacks;  // how many sequences needed the log domain
  int64_t stride =
      0;  // from one position of nodes to the next, C or C rounded up to whole vectors (then padded with 0); 0 = C
  const double* weights = nullptr;  // factors of what sequences add to nodes and sums; those of 0 are passed over
};

// Verbs return false where the input holds NaN or +inf.
template <class T> struct ChainLoops {
  static constexpr const char* concern = "chain";
  bool (*marginals)(const Chains<T>&, const ChainMarginals<T>&, int threads);
  bool (*log_loss)(const Rows<T>&, const Pattern&, const Chains<T>&, const int32_t* labels, const double* w,
                   double* loss, double* gradient, double* sums, int threads);
  bool (*viterbi)(const Chains<T>&, int32_t* labels, double* score, int threads);
  bool (*decode)(const Rows<T>&, const Pattern&, const Chains<T>&, const double* w, int32_t* labels, double* score,
                 int threads);
};

MERCER_TABLE(ChainLoops<double>)
MERCER_TABLE(ChainLoops<float>)

}  // namespace mercer
