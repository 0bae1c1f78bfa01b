"""Output spaces and their verbs: argmax, argmin, k_best, log_partition, marginals, sample, entropy, score."""

from mercer.structures.base import Structure
from mercer.structures.chain import Chain, ChainMarginals, ChainScores
from mercer.structures.constraints import Constraints
from mercer.structures.enumerated import Enumerated
from mercer.structures.labels import Labels

__all__ = ["Chain", "ChainMarginals", "ChainScores", "Constraints", "Enumerated", "Labels", "Structure"]
