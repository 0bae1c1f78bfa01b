"""Classifiers: one label for each example."""

from mercer.classification.linear import LinearClassifier

__all__ = ["LinearClassifier"]
