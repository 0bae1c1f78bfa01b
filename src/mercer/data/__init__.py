"""Containers, feature indices, label encodings and readers."""

from mercer.data.conll import DataFileError, Template, iter_conll, read_conll, write_conll
from mercer.data.features import FeatureIndex
from mercer.data.labels import LabelIndex, TagSequences
from mercer.data.sequences import Sequences
from mercer.data.text import TextBuffer

__all__ = [
    "DataFileError",
    "FeatureIndex",
    "LabelIndex",
    "Sequences",
    "TagSequences",
    "Template",
    "TextBuffer",
    "iter_conll",
    "read_conll",
    "write_conll",
]
