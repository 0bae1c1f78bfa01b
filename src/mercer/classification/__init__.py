"""Classifiers: one label for each example."""

from mercer.classification.baselines import KMeansMajority, SampledKNN
from mercer.classification.compact import CompactClassifier
from mercer.classification.linear import LinearClassifier
from mercer.classification.relative import RelativeMarginSVC

__all__ = ["CompactClassifier", "KMeansMajority", "LinearClassifier", "RelativeMarginSVC", "SampledKNN"]
