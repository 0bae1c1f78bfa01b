"""Recognition by sparse codes: a query as a combination of few training images, and whose images these are."""

from mercer.recognition.classifier import CodeClassifier, SparseRepresentationClassifier
from mercer.recognition.coder import SparseCoder

__all__ = ["CodeClassifier", "SparseCoder", "SparseRepresentationClassifier"]
