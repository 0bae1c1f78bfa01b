"""Explicit feature maps of structured inputs, and fast maps of vectors. They are scikit-learn transformers.

Names are imported on first access, so the maps of vectors need no compiled core.
"""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.maps._inverse import expected_collision_rate
    from mercer.maps.circulant import CirculantProjection
    from mercer.maps.codebook import Codebook, gradient_descriptors
    from mercer.maps.compact import CompactNonlinearMap
    from mercer.maps.fourier import FourierFeatures
    from mercer.maps.graphlets import GraphletHasher, canonical_form, graphlet_name
    from mercer.maps.projections import EmpiricalKernelMap, RandomFeatures, RandomProjection
    from mercer.maps.records import RecordHasher
    from mercer.maps.samples import RowSamples
    from mercer.maps.selection import CorrelationSelector
    from mercer.maps.signed_hash import SignedHashProjection
    from mercer.maps.sketches import PolynomialSketch
    from mercer.maps.streams import CountMinSketch, HashAccumulator
    from mercer.maps.strings import StringHasher
    from mercer.maps.tables import TableEncoder
    from mercer.maps.text import TextHasher

__all__ = [
    "CirculantProjection",
    "Codebook",
    "CompactNonlinearMap",
    "CorrelationSelector",
    "CountMinSketch",
    "EmpiricalKernelMap",
    "FourierFeatures",
    "GraphletHasher",
    "HashAccumulator",
    "PolynomialSketch",
    "RandomFeatures",
    "RandomProjection",
    "RecordHasher",
    "RowSamples",
    "SignedHashProjection",
    "StringHasher",
    "TableEncoder",
    "TextHasher",
    "canonical_form",
    "expected_collision_rate",
    "gradient_descriptors",
    "graphlet_name",
]
__getattr__, __dir__ = on_demand(__name__)
