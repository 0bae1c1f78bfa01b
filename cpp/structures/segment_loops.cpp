// Compiled once for each instruction set.
#include "structures/segment_loops.hpp"

#include "structures/segment_pairs.hpp"
#include "structures/segments.hpp"

namespace mercer::MERCER_ARCH {

template <> const SegmentLoops& table<SegmentLoops>() {
  static constexpr SegmentLoops loops = {
      .marginals = segment_marginals,
      .best = segment_best,
      .k_best = segment_k_best,
      .sample = segment_sample,
      .spans = segment_spans,
      .score = segment_score,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
