"""Scores of predictions, with a module for each kind of output.

Tokens, sequences and spans; label sets; segmentations; trees and clusters; rankings and classes; images.
"""

from mercer.metrics.images import mean_iou
from mercer.metrics.multilabel import (
    MultilabelScores,
    TagScore,
    label_propensities,
    multilabel_scores,
    one_error,
    precision_at_k,
    propensity_scored_precision_at_k,
    tag_score,
)
from mercer.metrics.ranking import ClassSizeError, error_by_class_size, pairwise_error
from mercer.metrics.scorers import SCORERS, OutputScorer, make_span_scorer, register_scorers
from mercer.metrics.segments import (
    BoundaryScore,
    boundary_cost,
    boundary_f1,
    boundary_score,
    pk,
    segment_confusion,
    segment_f1,
    window_diff,
)
from mercer.metrics.sequences import (
    SpanReport,
    SpanScore,
    is_span_labelling,
    sequence_accuracy,
    span_f1,
    span_report,
    spans,
    token_accuracy,
)
from mercer.metrics.structured import (
    ClusterScore,
    b_cubed_score,
    bracket_f1,
    hamming_loss,
    muc_score,
    pairwise_score,
    zero_one_loss,
)

__all__ = [
    "SCORERS",
    "BoundaryScore",
    "ClassSizeError",
    "ClusterScore",
    "MultilabelScores",
    "OutputScorer",
    "SpanReport",
    "SpanScore",
    "TagScore",
    "b_cubed_score",
    "boundary_cost",
    "boundary_f1",
    "boundary_score",
    "bracket_f1",
    "error_by_class_size",
    "hamming_loss",
    "is_span_labelling",
    "label_propensities",
    "make_span_scorer",
    "mean_iou",
    "muc_score",
    "multilabel_scores",
    "one_error",
    "pairwise_error",
    "pairwise_score",
    "pk",
    "precision_at_k",
    "propensity_scored_precision_at_k",
    "register_scorers",
    "segment_confusion",
    "segment_f1",
    "sequence_accuracy",
    "span_f1",
    "span_report",
    "spans",
    "tag_score",
    "token_accuracy",
    "window_diff",
    "zero_one_loss",
]
