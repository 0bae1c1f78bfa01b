"""Explicit feature maps of structured inputs: transformers in scikit-learn's idiom."""

from mercer.maps.graphlets import GraphletHasher, canonical_form, graphlet_name
from mercer.maps.projections import EmpiricalKernelMap, RandomFeatures, RandomProjection
from mercer.maps.records import RecordHasher
from mercer.maps.selection import CorrelationSelector
from mercer.maps.streams import CountMinSketch, HashAccumulator
from mercer.maps.strings import StringHasher
from mercer.maps.text import TextHasher

__all__ = [
    "CorrelationSelector",
    "CountMinSketch",
    "EmpiricalKernelMap",
    "GraphletHasher",
    "HashAccumulator",
    "RandomFeatures",
    "RandomProjection",
    "RecordHasher",
    "StringHasher",
    "TextHasher",
    "canonical_form",
    "graphlet_name",
]
