"""Classifiers: one label for each example."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.classification.baselines import KMeansMajority, SampledKNN
    from mercer.classification.compact import CompactClassifier
    from mercer.classification.linear import LinearClassifier
    from mercer.classification.relative import RelativeMarginSVC

__all__ = ["CompactClassifier", "KMeansMajority", "LinearClassifier", "RelativeMarginSVC", "SampledKNN"]
__getattr__, __dir__ = on_demand(__name__)
