"""Random fields learnt by sampling: Boltzmann machines, their partition functions, and parts of shapes.

A field gives every state x the probability exp(θ·φ(x)) / Z(θ), where Z sums over all states and is intractable. Its
gradient needs an expectation under the model, which :mod:`~mercer.fields.learners` estimate in ten ways.
"""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.exceptions import DivergedError, UnreliableEstimateError
    from mercer.fields.boltzmann import BoltzmannMachine
    from mercer.fields.partition import LogPartition, log_partition
    from mercer.fields.parts import ShapeClassifier, ShapePartModel, SpatialLDA
    from mercer.fields.rbm import RBM
    from mercer.learning import learners

__all__ = [
    "RBM",
    "BoltzmannMachine",
    "DivergedError",
    "LogPartition",
    "ShapeClassifier",
    "ShapePartModel",
    "SpatialLDA",
    "UnreliableEstimateError",
    "learners",
    "log_partition",
]
__getattr__, __dir__ = on_demand(__name__)
