// The compiled loops as plain functions over plain arrays, one table of them for each instruction set.
//
// Notation: θ part scores, μ marginals. A chain of T positions and C labels scores a labelling y by
//   start[y_0] + Σ_t nodes[t][y_t] + Σ_{t≥1} (transitions[y_{t-1}][y_t] + edges[t][y_{t-1}][y_t]) + end[y_{T-1}].
// Forbidden parts are exact -inf. Sequences are stacked: sequence i holds the positions offsets[i] .. offsets[i+1].
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace mercer {

// A process forked from one that has used OpenMP's threads has none of them, and GNU's OpenMP waits for them for ever:
// such a process works on one thread (the results are the same).
inline std::atomic<bool> threads_were_used{false}, threads_are_lost{false};

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

using bfloat16 = uint16_t;  // the upper half of a float

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
};

// Segmentations: a sequence of T positions is cut into segments [s, e) of lengths 1 .. K, each with a label c, and
// scores
//   start[c of the first] + end[c of the last]
//   + Σ segments   starts[s][c] + lengths[e - s][c] + Σ_{s ≤ t < e} (frames[t][c] + means[t][c] / (e - s))
//                  + Σ_k variances[k][c] · var_k(x_s .. x_{e-1}) + spans[s][e - s][c]
//                  + mark_score[s] where mark_length[s] = e - s and mark_label[s] = c
//   + Σ neighbours transitions[c][c'] + edges[e][c][c'] + Σ_{s ≤ t < e} pair_means[t][c][c'] / (e - s)
//                  + Σ_k pair_variances[k][c][c'] · var_k(x_s .. x_{e-1})
// for a segment [s, e) labelled c whose successor, from e on, is labelled c'. What is nullptr counts 0.
struct SegmentBatch {
  const double *frames, *means, *starts;         // positions x C
  const double* lengths;                         // K x C, -inf for lengths that a label may not have
  const double *transitions, *start, *end;       // C x C, C, C
  const double *edges, *pair_means;              // positions x C x C
  const double* spans;                           // positions x K x C, by start and length
  const double *x, *variances, *pair_variances;  // positions x d, d x C, d x C x C
  const int32_t *mark_length, *mark_label;       // positions
  const double* mark_score;
  const int64_t* offsets;  // offsets[0] need not be 0: positions are relative to offsets[0]
  int64_t n;
  int C, K, d;
  // [lengths | transitions | start | end | variances | pair variances | marks]: what is summed over sequences.
  int64_t sums() const {
    const int64_t c = C;
    return K * c + c * c + 2 * c + (variances ? d * c : 0) + (pair_variances ? d * c * c : 0) + 1;
  }
};
struct SegmentMarginals {  // each may be nullptr but log_partition
  double *frames, *means, *starts, *edges, *pair_means, *spans;
  double* sums;
  double *log_partition, *entropy;
  bool wanted() const { return frames || means || starts || edges || pair_means || spans || sums || entropy; }
};

// Losses and rules of the online learners.
enum class Rule : int { sgd_log = 0, perceptron = 1, passive_aggressive = 2 };

// What an online learner carries from sequence to sequence. Weights are scale * w (the L2 shrinkage touches one
// number).
struct OnlineState {
  double scale = 1.0;
  double step = 0.0;      // number of updates so far
  double l1_total = 0.0;  // cumulative L1 penalty that every weight could have had
};
struct OnlineOptions {
  Rule rule;
  double rate, decay;     // sgd: step size rate / (1 + rate * decay * step); decay = λ of λ/2 ‖w‖² + mean loss
  double l2, l1;          // penalties against the mean loss
  double aggressiveness;  // passive-aggressive: upper bound of the step
};
template <class T> struct OnlineData {
  Rows<T> rows, edge_rows;  // edge_rows.n_rows == 0: no observation-dependent transitions
  Pattern nodes, edges;
  const int64_t* offsets;
  const int32_t* labels;
  const uint8_t* shared_mask;  // C x C + 2 C: 1 = forbidden, 2 = kept at its value; may be nullptr
  const uint8_t* allowed;      // positions x C: the labels possible where the label is -1; nullptr = all of them
  int64_t n;
  int C;
};
// Offsets of the parts of the weight vector: [nodes | transitions C x C | start C | end C | edges].

// Multiclass margins (solvers/multiclass_dual.hpp): min ½‖W‖² + Σ_i U_i max_c [Δ(y_i, c) + ⟨w_c - w_{y_i}, x_i⟩], or the square of
// the maximum.
template <class T> struct MarginProblem {
  Rows<T> rows;
  const int32_t* labels;
  const double* upper;  // U_i = C times the weight of the example
  int C;
  bool squared;
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
  int64_t stride = 0;  // from the weights of a feature to those of the next
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

// Takes the planes that a margin learner finds: slope as (weight, value) pairs, offset Δ, violation Δ - <w, slope>.
struct PlaneSink {
  virtual ~PlaneSink() = default;
  virtual void take(int64_t example, const std::pair<int64_t, double>* slope, int64_t size, double offset,
                    double violation) = 0;
};

// Returns false where the input holds NaN or +inf.
// Variables with two states in blocks of 16 of one colour; see inference/spins.hpp. Blocks are in chunks with a random generator
// each.
struct SpinField {
  const float* bias;           // of every place
  const int64_t* slot_starts;  // of every block
  const int64_t* bases;        // of every slot: where its 16 neighbours begin, or -1 - k: places[16 k ...]
  const float* weights;        // 16 for each slot
  const int32_t* places;
  const int64_t* chunk_starts;   // blocks of every chunk
  const int64_t* colour_starts;  // chunks of every colour
  int n_colours;
};

// The same where the neighbours of a variable all pull equally: p(x_i = 1 | rest) depends on how many of them are 1.
// Blocks of 64.
struct CountField {
  const int8_t* thresholds;      // blocks x (degree + 1) x 64: the top byte of p 2^64 by the count, minus 128
  const uint64_t* exact;         // places x (degree + 1): p 2^64; the largest number means 1
  const int64_t* slot_starts;    // of every block
  const int64_t* bases;          // of every slot: where its 64 neighbours begin; from -64 on
  const int8_t* masks;           // 64 for each slot: 1 for neighbours
  const int64_t* chunk_starts;   // blocks of every chunk
  const int64_t* colour_starts;  // chunks of every colour
  int n_colours, degree;
};
constexpr int STREAM = 66;  // words of the random generators of a chunk

struct Kernels {
  const char* name;
  void (*spin_sweep)(const SpinField&, float beta, float* x, float* totals, uint32_t* random, int threads);
  void (*count_sweep)(const CountField&, int8_t* x, uint8_t* visits, uint32_t* random, int threads);
#define MERCER_KERNELS_FOR(T, suffix)                                                                                 \
  void (*scores_##suffix)(const Rows<T>&, int64_t row, int64_t count, const Pattern&, const double* w, T* out,        \
                          int threads);                                                                               \
  void (*backward_##suffix)(const Rows<T>&, int64_t row, int64_t count, const Pattern&, const T* mu, double* out,     \
                            int threads);                                                                             \
  bool (*marginals_##suffix)(const Chains<T>&, const ChainMarginals<T>&, int threads);                                \
  bool (*log_loss_##suffix)(const Rows<T>&, const Pattern&, const Chains<T>&, const int32_t* labels, const double* w, \
                            double* loss, double* gradient, double* sums, int threads);                               \
  bool (*viterbi_##suffix)(const Chains<T>&, int32_t* labels, double* score, int threads);                            \
  bool (*decode_##suffix)(const Rows<T>&, const Pattern&, const Chains<T>&, const double* w, int32_t* labels,         \
                          double* score, int threads);                                                                \
  bool (*k_best_##suffix)(const Chains<T>&, int k, int32_t* labels, double* score, int threads);                      \
  bool (*sample_##suffix)(const Chains<T>&, int draws, uint64_t seed, int32_t* labels, int threads);                  \
  bool (*score_##suffix)(const Chains<T>&, const int32_t* labels, double* score);                                     \
  double (*online_##suffix)(const OnlineData<T>&, const OnlineOptions&, const int64_t* order, int64_t count,          \
                            double* w, double* extra, OnlineState& state, int64_t* mistakes);                         \
  double (*margin_##suffix)(const OnlineData<T>&, const double* cost, const int64_t* order, int64_t count, double* w, \
                            OnlineState& state, PlaneSink& sink);                                                     \
  void (*multiclass_prepare_##suffix)(const MarginProblem<T>&, const double* costs, MarginState&);                    \
  double (*multiclass_epoch_##suffix)(const MarginProblem<T>&, MarginState&, int threads);                            \
  void (*multiclass_check_##suffix)(const MarginProblem<T>&, MarginState&, double tol, int threads);
  void (*segment_marginals)(const SegmentBatch&, const SegmentMarginals&, int threads);
  void (*segment_best)(const SegmentBatch&, int32_t* length, int32_t* label, double* score, int threads);
  void (*segment_k_best)(const SegmentBatch&, int k, int32_t* length, int32_t* label, double* score, int threads);
  void (*segment_sample)(const SegmentBatch&, int draws, uint64_t seed, int32_t* length, int32_t* label, int threads);
  void (*segment_spans)(const SegmentBatch&, double* out, int threads);
  void (*segment_score)(const SegmentBatch&, const int64_t* lengths, const int32_t* labels, const int64_t* firsts,
                        double* score, int threads);
  // Mixed-precision vector arithmetic: products are added up in double, in a fixed order.
  double (*dot_ff)(const float*, const float*, int64_t);
  double (*dot_fd)(const float*, const double*, int64_t);
  double (*dot_hh)(const bfloat16*, const bfloat16*, int64_t);
  double (*dot_hf)(const bfloat16*, const float*, int64_t);
  double (*dot_hd)(const bfloat16*, const double*, int64_t);
  double (*dot_dd)(const double*, const double*, int64_t);
  void (*axpy_ff)(double alpha, const float* x, float* out, int64_t);
  void (*axpy_fd)(double alpha, const float* x, double* out, int64_t);
  void (*axpy_hf)(double alpha, const bfloat16* x, float* out, int64_t);
  void (*axpy_hd)(double alpha, const bfloat16* x, double* out, int64_t);
  void (*axpy_dd)(double alpha, const double* x, double* out, int64_t);
  void (*to_bfloat16)(const float* x, bfloat16* out, int64_t);
  MERCER_KERNELS_FOR(double, f64)
  MERCER_KERNELS_FOR(float, f32)
#undef MERCER_KERNELS_FOR
};

namespace baseline {
const Kernels& kernels();
}
#if defined(MERCER_X86)
namespace avx2 {
const Kernels& kernels();
}
namespace avx512 {
const Kernels& kernels();
}
#endif

}  // namespace mercer
