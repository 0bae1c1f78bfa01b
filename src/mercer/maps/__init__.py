"""Explicit feature maps of structured inputs, and fast maps of vectors. They are scikit-learn transformers.

Names are imported on first access, so the maps of vectors need no compiled core.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_MODULES = {
    "CirculantProjection": "circulant",
    "Codebook": "codebook",
    "CompactNonlinearMap": "compact",
    "CorrelationSelector": "selection",
    "CountMinSketch": "streams",
    "EmpiricalKernelMap": "projections",
    "FourierFeatures": "fourier",
    "GraphletHasher": "graphlets",
    "HashAccumulator": "streams",
    "PolynomialSketch": "sketches",
    "RandomFeatures": "projections",
    "RandomProjection": "projections",
    "RecordHasher": "records",
    "RowSamples": "samples",
    "SignedHashProjection": "signed_hash",
    "StringHasher": "strings",
    "TableEncoder": "tables",
    "TextHasher": "text",
    "canonical_form": "graphlets",
    "expected_collision_rate": "_inverse",
    "gradient_descriptors": "codebook",
    "graphlet_name": "graphlets",
}

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


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
