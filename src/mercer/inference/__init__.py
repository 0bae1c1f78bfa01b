"""Graphical models over discrete variables, and inference: exact, message passing, variational, sampling.

`infer` is the interface to all methods. Models are `FactorGraph`, `BayesianNetwork` and `MarkovNetwork`.
"""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand
from mercer.exceptions import ApproximateInferenceWarning, TreewidthError, ZeroProbabilityError
from mercer.inference import modes as _modes  # noqa: F401  (enters its methods into the table)
from mercer.inference.accuracy import marginal_bounds
from mercer.inference.bayesian import BayesianNetwork
from mercer.inference.cuts import is_submodular, minimum_cut
from mercer.inference.diagnostics import effective_sample_size, r_hat
from mercer.inference.elimination import max_marginals, variable_elimination
from mercer.inference.factor import Factor
from mercer.inference.graph import CompiledGraph, FactorGraph, Group, grid_edges
from mercer.inference.junction import JunctionTree, has_running_intersection, maximum_spanning_tree, triangulate
from mercer.inference.limits import Limits
from mercer.inference.markov import MarkovNetwork
from mercer.inference.messages import appearance_probabilities
from mercer.inference.registry import METHODS, Inference, Method, choose, infer, register, run_method
from mercer.inference.relaxation import LPSolution, lp_inference, relaxed_marginals
from mercer.inference.result import ErrorEstimate, FactorMarginals, InferenceResult, LogPartition, Marginals, Outcome
from mercer.inference.sampling import metropolis_hastings
from mercer.inference.transitions import (
    ChainState,
    Cycle,
    MarkovChain,
    Metropolis,
    MixedKernel,
    TransitionKernel,
    run_chain,
)
from mercer.inference.uai import read_uai, read_uai_evidence, write_uai, write_uai_evidence
from mercer.inference.variational import find_chains

if TYPE_CHECKING:
    from mercer.inference.gaussian import GaussianGibbs, GaussianNetwork
    from mercer.inference.trees import ChowLiuTree, LatentTree

__all__ = [
    "METHODS",
    "ApproximateInferenceWarning",
    "BayesianNetwork",
    "ChainState",
    "ChowLiuTree",
    "CompiledGraph",
    "Cycle",
    "ErrorEstimate",
    "Factor",
    "FactorGraph",
    "FactorMarginals",
    "GaussianGibbs",
    "GaussianNetwork",
    "Group",
    "Inference",
    "InferenceResult",
    "JunctionTree",
    "LPSolution",
    "LatentTree",
    "Limits",
    "LogPartition",
    "Marginals",
    "MarkovChain",
    "MarkovNetwork",
    "Method",
    "Metropolis",
    "MixedKernel",
    "Outcome",
    "TransitionKernel",
    "TreewidthError",
    "ZeroProbabilityError",
    "appearance_probabilities",
    "choose",
    "effective_sample_size",
    "find_chains",
    "grid_edges",
    "has_running_intersection",
    "infer",
    "is_submodular",
    "lp_inference",
    "marginal_bounds",
    "max_marginals",
    "maximum_spanning_tree",
    "metropolis_hastings",
    "minimum_cut",
    "r_hat",
    "read_uai",
    "read_uai_evidence",
    "register",
    "relaxed_marginals",
    "run_chain",
    "run_method",
    "triangulate",
    "variable_elimination",
    "write_uai",
    "write_uai_evidence",
]
__getattr__, __dir__ = on_demand(__name__)
