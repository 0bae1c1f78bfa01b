// Recursions over first-order chains (see structures/chain_loops.hpp for the score of a labelling); they are in
// structures/chain_recursions.cpp, compiled once for each instruction set.
//
// Sums run in the probability domain with a scale at every position:
//   e_t = exp(θ_t - max θ_t)
//   a_t = (a_{t-1} M) ∘ e_t / Σ a_{t-1},   u_t = e_t ∘ b_t / Σ u_{t+1},   b_{t-1} = M u_t
//   log Z = Σ log Σ a_t + shifts,   μ_t = a_t ∘ b_t / ⟨a_t, b_t⟩,   ξ_t = (a_{t-1} ⊗ u_t) ∘ M / ⟨a_{t-1}, b_{t-1}⟩
// A position is scaled by the sum of its neighbour, which is ready long before it is needed, and the two recursions run
// side by side from both ends: what bounds them is the latency of one step, and so two steps share it. Underflow loses
// at most the smallest normal number over ⟨a_t, b_t⟩ of the mass; where that product, or a sum, is small the sequence
// is done again in the log domain. Forbidden parts are exact zeros in both.
#pragma once

#include <limits>
#include <vector>

#include "base/simd.hpp"
#include "structures/chain_loops.hpp"

namespace mercer::MERCER_ARCH {

template <class T> constexpr T kNegInf = -std::numeric_limits<T>::infinity();

// exp(M - shift) with padded rows, and its transpose.
template <class T> struct Transitions {
  AlignedVector<T> exp, transposed;
  T shift = 0;
  bool finite = true;

  void prepare(const T* scores, int C, int64_t stride);
};

// Memory of the recursions, kept by each thread from call to call: for short sequences fresh memory costs as much as
// the work.
template <class T> struct ChainScratch {
  AlignedVector<T> e, a, b, u, s, delta;

  static ChainScratch& mine() {
    static thread_local ChainScratch scratch;
    return scratch;
  }
  static T* grown(AlignedVector<T>& x, int64_t size) {
    if (int64_t(x.size()) < size) x.resize(size_t(size));
    return x.data();
  }
  // What one very long sequence needed is given back.
  void trim() {
    for (AlignedVector<T>* x : {&e, &a, &b, &u, &delta})
      if (x->size() > (size_t(1) << 21)) AlignedVector<T>().swap(*x);
  }
};

template <class T> class ChainWorkspace {
 public:
  explicit ChainWorkspace(const Chains<T>& chains);

  // Takes in what the chains' shared scores (transitions, start, end) are now.
  void refresh();

  bool bad() const { return bad_; }

  // The rows that positions share, as exp(θ - max θ) and max θ.
  void prepare_rows(AlignedVector<T>& rows, AlignedVector<T>& shifts);

  // Marginals and log Z of sequence i; sums go to the given accumulators (C x C, C, C), which belong to the caller's
  // group.
  void marginals(int64_t i, const ChainMarginals<T>& out, double* sum_trans, double* sum_start, double* sum_end);

  double viterbi(int64_t i, int32_t* labels);

 private:
  // exp(x - max x) into a padded vector.
  inline T prepare_vector(const T* x, T* out);

  // θ_t - max θ_t into a padded row; returns the maximum, -inf where every label is forbidden.
  inline T shift_nodes(const T* nodes, T* out);

  // e_t of all positions; false where a position has no label that is allowed.
  inline bool own_nodes(int64_t begin, int64_t steps, double& shifts);
  // The same from rows that positions share: each was exponentiated once.
  inline bool shared_nodes(int64_t begin, int64_t steps, double& shifts);

  // Scores of the edge into a position, rows padded with -inf, for the max-plus recursions.
  inline void prepare_max();
  inline const T* edge_max(int64_t position);

  inline bool scaled(int64_t begin, int64_t steps, int64_t i, const ChainMarginals<T>& out, double* sum_trans,
                     double* sum_start, double* sum_end);

  // Edge marginals position by position (observation-dependent transitions, or when the caller wants them).
  inline void own_edges(int64_t begin, int64_t steps, int64_t, const ChainMarginals<T>& out, double* sum_trans);

  // H = log Z - E[score]; 0 · (-inf) counts as 0.
  inline void entropy(int64_t begin, int64_t steps, int64_t i, const ChainMarginals<T>& out);

  // exp of the scores of the edge into a position, for observation-dependent transitions.
  inline void prepare_edges(int64_t position, int64_t t);
  const Transitions<T>& edge_exp(int64_t t) const { return c_.edges ? local_[t] : trans_; }

  // out = x ∘ y · factor (y == nullptr: x · factor), over a padded row; returns the sum.
  inline T times(const T* x, const T* y, T factor, T* out) const;

  const Chains<T>& c_;
  const T* nodes_end_ = nullptr;
  const int C;
  const int64_t S;  // C rounded up to whole vectors
  Transitions<T> trans_;
  std::vector<Transitions<T>> local_;
  ChainScratch<T>& scratch_ = ChainScratch<T>::mine();
  AlignedVector<T>&e_ = scratch_.e, &a_ = scratch_.a, &b_ = scratch_.b, &u_ = scratch_.u, &s_ = scratch_.s,
  &delta_ = scratch_.delta;
  AlignedVector<T> start_, end_, max_, local_max_, edge_scratch_;
  T start_shift_ = 0, end_shift_ = 0;
  double edge_expectation_ = 0.0;
  bool bad_ = false;
};

}  // namespace mercer::MERCER_ARCH
