// Chains: what gains nothing by wide vectors, and is compiled once.
#pragma once

#include <vector>

#include "structures/chain_loops.hpp"

namespace mercer {

// Sequences in groups of about this many positions; a group's sums are private, and groups are added in order, so that
// the result does not depend on the number of threads.
constexpr int64_t kGroupPositions = 512;
std::vector<int64_t> groups_of(const int64_t* offsets, int64_t n);

// Verbs return false where the input holds NaN or +inf.
//
// The k best labellings of each sequence, best first; missing ones (fewer than k exist) have score -inf and labels -1.
template <class T> bool chain_k_best(const Chains<T>& chains, int k, int32_t* labels, double* score, int threads);

// Draws labellings from exp(score) / Z: forward sums, then labels drawn from the last position to the first.
template <class T> bool chain_sample(const Chains<T>& chains, int draws, uint64_t seed, int32_t* labels, int threads);

template <class T> bool chain_score(const Chains<T>& chains, const int32_t* labels, double* score);

// Marginals and log Z of sequence i by logarithms; sums go to the given accumulators (C x C, C, C).
template <class T>
bool chain_log_marginals(const Chains<T>& chains, int64_t i, const ChainMarginals<T>& out, double* sum_trans,
                         double* sum_start, double* sum_end);

}  // namespace mercer
