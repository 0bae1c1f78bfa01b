// Dual ascent for single labels; see solvers/multiclass_dual.hpp.
#pragma once

#include <utility>
#include <vector>

#include "base/csr.hpp"
#include "base/dispatch.hpp"

namespace mercer {

// Multiclass margins (solvers/multiclass_dual.hpp): min ½‖W‖² + Σ_i U_i max_c [Δ(y_i, c) + ⟨w_c - w_{y_i}, x_i⟩], or the square of
// the maximum.
struct MarginTerms {
  const int32_t* labels;
  const double* upper;  // U_i = C times the weight of the example
  int C;
  bool squared;
};
template <class T> struct MarginProblem : MarginTerms {
  Rows<T> rows;
};
// Strips of features, each with about as many stored values, for wide sparse rows (solvers/feature_partition.hpp).
struct MarginStrips {
  int wanted = 0;               // 0 or 1: none
  std::vector<int64_t> cuts;    // where the strips of a row begin and end among its stored values; empty: no strips
  int64_t batch = 0, most = 0;  // examples between two changes of W, and the most there may be
  int count() const { return cuts.empty() ? 1 : wanted; }
  const int64_t* of(int64_t i) const { return cuts.data() + i * (wanted + 1); }
};
// What dual ascent carries from call to call. α_i is kept as the (label, value) pairs of wrong labels with a value
// above 0.
struct MarginState {
  static constexpr int kMaxShards = 8;
  using Block = std::vector<std::pair<int32_t, double>>;
  int64_t stride =
      0;  // from the weights of a feature to those of the next; 1: of two labels only the second's are kept
  double mirrors() const { return stride == 1 ? 2.0 : 1.0; }  // how often a weight counts
  int shards = 1;
  double* w[1 + kMaxShards] = {};  // the weights, and the copy of each shard if there are several
  double* average = nullptr;       // of the weights after each epoch since the last check, the k-th counting k times
  int64_t averaged = 0;            // number of those epochs
  std::vector<double> memory, costs, norms;  // costs: Δ with rows padded by -inf; norms: ‖x_i‖²
  std::vector<Block> alpha;
  std::vector<int64_t> old_starts;  // α of an earlier epoch, stacked: what the extrapolation starts from
  Block old;
  int64_t since = 0;            // epochs since then
  double reach = 4;             // how far to extrapolate
  std::vector<int64_t> active;  // the examples to visit in the next epoch
  uint64_t seed = 0;
  int64_t block = 0;  // examples of a shard between two merges
  MarginStrips strips;
  double primal = 0, dual = 0;  // as of the last check
};

template <class T> struct MulticlassLoops {
  static constexpr const char* concern = "multiclass";
  void (*prepare)(const MarginProblem<T>&, const double* costs, MarginState&);
  double (*epoch)(const MarginProblem<T>&, MarginState&, int threads);
  void (*check)(const MarginProblem<T>&, MarginState&, double tol, int threads);
};

MERCER_TABLE(MulticlassLoops<double>)
MERCER_TABLE(MulticlassLoops<float>)

}  // namespace mercer
