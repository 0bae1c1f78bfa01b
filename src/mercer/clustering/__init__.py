"""Supervised clustering: learn an affinity between items from sets with known clusters."""

from mercer.clustering.supervised import Certificate, SupervisedClusterer
from mercer.structures.correlation import Clustering, correlation_clustering

__all__ = ["Certificate", "Clustering", "SupervisedClusterer", "correlation_clustering"]
