"""Classifiers: one label for each example."""

from mercer.classification.linear import LinearClassifier
from mercer.classification.relative import RelativeMarginSVC

__all__ = ["LinearClassifier", "RelativeMarginSVC"]
