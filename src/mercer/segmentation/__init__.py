"""Segmentation of sequences with features of whole segments; paragraphs of text."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.segmentation.baselines import BoundaryClassifier, OffsetCurve, tune_offset
    from mercer.segmentation.features import (
        FeaturePack,
        MinMaxRescaler,
        ParagraphFeatures,
        SegmentFeatures,
        SegmentStatistics,
        bow_rescale,
        segment_statistics,
    )
    from mercer.segmentation.language import NgramModel
    from mercer.segmentation.segmenter import Segmenter
    from mercer.segmentation.text import (
        Document,
        join_paragraphs,
        read_paragraphs,
        sentence_spans,
        split_sentences,
    )

__all__ = [
    "BoundaryClassifier",
    "Document",
    "FeaturePack",
    "MinMaxRescaler",
    "NgramModel",
    "OffsetCurve",
    "ParagraphFeatures",
    "SegmentFeatures",
    "SegmentStatistics",
    "Segmenter",
    "bow_rescale",
    "join_paragraphs",
    "read_paragraphs",
    "segment_statistics",
    "sentence_spans",
    "split_sentences",
    "tune_offset",
]
__getattr__, __dir__ = on_demand(__name__)
