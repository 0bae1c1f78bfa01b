"""Recognition by sparse codes: the query as a combination of a few training images, whose class is predicted."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.recognition.classifier import CodeClassifier, SparseRepresentationClassifier
    from mercer.recognition.coder import SparseCoder

__all__ = ["CodeClassifier", "SparseCoder", "SparseRepresentationClassifier"]
__getattr__, __dir__ = on_demand(__name__)
