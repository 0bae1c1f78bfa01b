"""Supervised clustering: learn an affinity between items from sets with known clusters."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.clustering.supervised import Certificate, SupervisedClusterer
    from mercer.structures.correlation import Clustering, correlation_clustering

__all__ = ["Certificate", "Clustering", "SupervisedClusterer", "correlation_clustering"]
__getattr__, __dir__ = on_demand(__name__)
