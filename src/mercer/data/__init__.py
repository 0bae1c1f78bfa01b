"""Containers, feature indices, label encodings and readers."""

from mercer.data.conll import DataFileError, Template, iter_conll, read_conll, write_conll
from mercer.data.features import FeatureIndex
from mercer.data.labels import LabelIndex, TagSequences
from mercer.data.segments import (
    Segmentations,
    SpanSequences,
    as_segments,
    check_segments,
    segments_from_bio,
    segments_from_boundaries,
    segments_from_frames,
    segments_to_bio,
    segments_to_boundaries,
    segments_to_frames,
)
from mercer.data.sequences import Sequences

__all__ = [
    "DataFileError",
    "FeatureIndex",
    "LabelIndex",
    "Segmentations",
    "Sequences",
    "SpanSequences",
    "TagSequences",
    "Template",
    "as_segments",
    "check_segments",
    "iter_conll",
    "read_conll",
    "segments_from_bio",
    "segments_from_boundaries",
    "segments_from_frames",
    "segments_to_bio",
    "segments_to_boundaries",
    "segments_to_frames",
    "write_conll",
]
