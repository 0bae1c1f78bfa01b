"""Classifiers: one label for each example."""

from mercer.classification.baselines import KMeansMajority, SampledKNN
from mercer.classification.linear import LinearClassifier
from mercer.classification.relative import RelativeMarginSVC

__all__ = ["KMeansMajority", "LinearClassifier", "RelativeMarginSVC", "SampledKNN"]
