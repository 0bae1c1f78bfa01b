"""Recognition by sparse codes: the query as a combination of a few training images, whose class is predicted."""

from mercer.recognition.classifier import CodeClassifier, SparseRepresentationClassifier
from mercer.recognition.coder import SparseCoder

__all__ = ["CodeClassifier", "SparseCoder", "SparseRepresentationClassifier"]
