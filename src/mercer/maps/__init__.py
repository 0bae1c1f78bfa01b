"""Explicit feature maps of structured inputs: transformers in scikit-learn's idiom."""

from mercer.maps.strings import StringHasher
from mercer.maps.text import TextHasher

__all__ = ["StringHasher", "TextHasher"]
