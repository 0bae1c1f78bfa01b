// Batches of segmentations and the verbs over them; see structures/segments.hpp.
#pragma once

#include <cstdint>

#include "base/dispatch.hpp"

namespace mercer {

// Segmentations: a sequence of T positions is cut into segments [s, e) of lengths 1 .. K, each with a label c, and
// scores
//   start[c of the first] + end[c of the last]
//   + Σ segments   starts[s][c] + lengths[e - s][c] + Σ_{s ≤ t < e} (frames[t][c] + means[t][c] / (e - s))
//                  + Σ_k variances[k][c] · var_k(x_s .. x_{e-1}) + spans[s][e - s][c]
//                  + mark_score[s] where mark_length[s] = e - s and mark_label[s] = c
//   + Σ neighbours transitions[c][c'] + edges[e][c][c'] + Σ_{s ≤ t < e} pair_means[t][c][c'] / (e - s)
//                  + Σ_k pair_variances[k][c][c'] · var_k(x_s .. x_{e-1})
//                  + Σ_f pair_spans[e][e - s][m][f] · pair_span_scores[f][c][c']
// for a segment [s, e) labelled c whose successor, [e, e + m), is labelled c'. What is nullptr counts 0.
struct SegmentBatch {
  const double *frames, *means, *starts;         // positions x C
  const double* lengths;                         // K x C, -inf for lengths that a label may not have
  const double *transitions, *start, *end;       // C x C, C, C
  const double *edges, *pair_means;              // positions x C x C
  const double* spans;                           // positions x K x C, by start and length
  const double *x, *variances, *pair_variances;  // positions x d, d x C, d x C x C
  const double *pair_spans, *pair_span_scores;   // positions x K x K x g, by boundary and both lengths; g x C x C
  const int32_t *mark_length, *mark_label;       // positions
  const double* mark_score;
  const uint8_t* cuts;     // positions, 1 where a segment must begin
  const int64_t* offsets;  // offsets[0] need not be 0: positions are relative to offsets[0]
  int64_t n;
  int C, K, d, g;
  // [lengths | transitions | start | end | variances | pair variances | pair spans | marks]: summed over sequences.
  int64_t sums() const {
    const int64_t c = C;
    return K * c + c * c + 2 * c + (variances ? d * c : 0) + (pair_variances ? d * c * c : 0) +
           (pair_spans ? g * c * c : 0) + 1;
  }
};
struct SegmentMarginals {  // each may be nullptr but log_partition
  double *frames, *means, *starts, *edges, *pair_means, *spans;
  double* sums;
  double *log_partition, *entropy;
  bool wanted() const { return frames || means || starts || edges || pair_means || spans || sums || entropy; }
};

struct SegmentLoops {
  static constexpr const char* concern = "segments";
  void (*marginals)(const SegmentBatch&, const SegmentMarginals&, int threads);
  void (*best)(const SegmentBatch&, int32_t* length, int32_t* label, double* score, int threads);
  void (*k_best)(const SegmentBatch&, int k, int32_t* length, int32_t* label, double* score, int threads);
  void (*sample)(const SegmentBatch&, int draws, uint64_t seed, int32_t* length, int32_t* label, int threads);
  void (*spans)(const SegmentBatch&, double* out, int threads);
  void (*score)(const SegmentBatch&, const int64_t* lengths, const int32_t* labels, const int64_t* firsts,
                double* score, int threads);
};

MERCER_TABLE(SegmentLoops)

}  // namespace mercer
