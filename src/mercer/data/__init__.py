"""Containers, feature indices, label encodings and readers."""

from mercer.data.conll import DataFileError, Template, iter_conll, read_conll, write_conll
from mercer.data.features import FeatureIndex
from mercer.data.graphs import Graph, Graphs
from mercer.data.labels import LabelIndex, TagSequences
from mercer.data.sequences import Sequences
from mercer.data.text import TextBuffer
from mercer.data.tu import read_tu

__all__ = [
    "DataFileError",
    "FeatureIndex",
    "Graph",
    "Graphs",
    "LabelIndex",
    "Sequences",
    "TagSequences",
    "Template",
    "TextBuffer",
    "iter_conll",
    "read_conll",
    "read_tu",
    "write_conll",
]
