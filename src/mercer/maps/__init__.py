"""Explicit feature maps of structured inputs: transformers in scikit-learn's idiom."""

from mercer.maps.graphlets import GraphletHasher, canonical_form, graphlet_name
from mercer.maps.selection import CorrelationSelector

__all__ = ["CorrelationSelector", "GraphletHasher", "canonical_form", "graphlet_name"]
