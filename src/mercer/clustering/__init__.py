"""Clustering that is learnt: from sets of items with known clusters to an affinity between items."""

from mercer.clustering.supervised import Certificate, SupervisedClusterer
from mercer.structures.correlation import Clustering, correlation_clustering

__all__ = ["Certificate", "Clustering", "SupervisedClusterer", "correlation_clustering"]
