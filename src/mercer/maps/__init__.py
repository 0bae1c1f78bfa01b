"""Explicit feature maps of structured inputs: transformers in scikit-learn's idiom."""

from mercer.maps.projections import EmpiricalKernelMap, RandomFeatures, RandomProjection
from mercer.maps.records import RecordHasher
from mercer.maps.streams import CountMinSketch, HashAccumulator

__all__ = [
    "CountMinSketch",
    "EmpiricalKernelMap",
    "HashAccumulator",
    "RandomFeatures",
    "RandomProjection",
    "RecordHasher",
]
