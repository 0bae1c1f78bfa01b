"""Containers, feature indices, label encodings and readers."""

from mercer.data.clouds import PointCloud
from mercer.data.features import FeatureIndex
from mercer.data.graphs import Graph, Graphs
from mercer.data.labels import LabelIndex, TagSequences
from mercer.data.partitions import Partition, Partitions
from mercer.data.readers.arff import ArffAttribute, ArffTable, MultilabelTable, read_arff, read_mulan
from mercer.data.readers.conll import iter_conll, read_conll, write_conll
from mercer.data.readers.label_sets import read_multilabel
from mercer.data.readers.meshes import read_cloud, write_cloud
from mercer.data.readers.table import read_columns, read_records
from mercer.data.readers.tu import read_tu
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
from mercer.data.store import Store
from mercer.data.templates import Template
from mercer.data.text import TextBuffer
from mercer.exceptions import DataFileError, StoreError

__all__ = [
    "ArffAttribute",
    "ArffTable",
    "DataFileError",
    "FeatureIndex",
    "Graph",
    "Graphs",
    "LabelIndex",
    "MultilabelTable",
    "Partition",
    "Partitions",
    "PointCloud",
    "Segmentations",
    "Sequences",
    "SpanSequences",
    "Store",
    "StoreError",
    "TagSequences",
    "Template",
    "TextBuffer",
    "as_segments",
    "check_segments",
    "iter_conll",
    "read_arff",
    "read_cloud",
    "read_columns",
    "read_conll",
    "read_mulan",
    "read_multilabel",
    "read_records",
    "read_tu",
    "segments_from_bio",
    "segments_from_boundaries",
    "segments_from_frames",
    "segments_to_bio",
    "segments_to_boundaries",
    "segments_to_frames",
    "write_cloud",
    "write_conll",
]
