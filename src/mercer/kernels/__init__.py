"""Kernels on vectors, strings, trees, graphs, sets and distributions, and their sums and products."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.kernels.algebra import (
        Centered,
        Constant,
        Convolution,
        Corrected,
        DirectSum,
        FunctionKernel,
        Normalized,
        OnColumn,
        Power,
        Product,
        Scaled,
        Sum,
        TensorProduct,
        Translated,
    )
    from mercer.kernels.approximations import AdditiveMap, FourierMap, NystroemMap
    from mercer.kernels.attributed import AttributedPaths, AttributedWalks, HashedAttributes
    from mercer.kernels.base import Kernel
    from mercer.kernels.discrete import Delta
    from mercer.kernels.gram import Gram
    from mercer.kernels.graphs import Graphlet, ShortestPath, WeisfeilerLehman
    from mercer.kernels.model_kernels import Fisher, ProbabilityProduct
    from mercer.kernels.models import GaussianMixtureModel, GaussianModel, MultinomialModel
    from mercer.kernels.nodes import Diffusion, RegularizedLaplacian, neighbor_graph
    from mercer.kernels.rational import Rational
    from mercer.kernels.rkhs import (
        RKHSFunction,
        alignment,
        distance,
        gram_schmidt,
        is_conditionally_positive_definite,
        is_positive_definite,
        is_strictly_positive_definite,
        pivoted_cholesky,
    )
    from mercer.kernels.sets import Intersection, Jaccard, SetMean, Subspace
    from mercer.kernels.string_models import LinearStringModel
    from mercer.kernels.strings import (
        AllSubstrings,
        EditDistance,
        Gappy,
        Mismatch,
        NGram,
        Spectrum,
        Subsequence,
        WeightedDegree,
    )
    from mercer.kernels.transducers import Transducer
    from mercer.kernels.trees import PartialTree, SubsetTree, SubTree
    from mercer.kernels.vectors import (
        ANOVA,
        BSpline,
        ChiSquared,
        ExponentialDot,
        Gaussian,
        HistogramIntersection,
        Laplacian,
        Linear,
        LocalityImproved,
        Matern,
        NegativeDistance,
        Polynomial,
        Pyramid,
        median_heuristic,
        position_weights,
    )
    from mercer.kernels.walks import RandomWalk

__all__ = [
    "ANOVA",
    "AdditiveMap",
    "AllSubstrings",
    "AttributedPaths",
    "AttributedWalks",
    "BSpline",
    "Centered",
    "ChiSquared",
    "Constant",
    "Convolution",
    "Corrected",
    "Delta",
    "Diffusion",
    "DirectSum",
    "EditDistance",
    "ExponentialDot",
    "Fisher",
    "FourierMap",
    "FunctionKernel",
    "Gappy",
    "Gaussian",
    "GaussianMixtureModel",
    "GaussianModel",
    "Gram",
    "Graphlet",
    "HashedAttributes",
    "HistogramIntersection",
    "Intersection",
    "Jaccard",
    "Kernel",
    "Laplacian",
    "Linear",
    "LinearStringModel",
    "LocalityImproved",
    "Matern",
    "Mismatch",
    "MultinomialModel",
    "NGram",
    "NegativeDistance",
    "Normalized",
    "NystroemMap",
    "OnColumn",
    "PartialTree",
    "Polynomial",
    "Power",
    "ProbabilityProduct",
    "Product",
    "Pyramid",
    "RKHSFunction",
    "RandomWalk",
    "Rational",
    "RegularizedLaplacian",
    "Scaled",
    "SetMean",
    "ShortestPath",
    "Spectrum",
    "SubTree",
    "Subsequence",
    "SubsetTree",
    "Subspace",
    "Sum",
    "TensorProduct",
    "Transducer",
    "Translated",
    "WeightedDegree",
    "WeisfeilerLehman",
    "alignment",
    "distance",
    "gram_schmidt",
    "is_conditionally_positive_definite",
    "is_positive_definite",
    "is_strictly_positive_definite",
    "median_heuristic",
    "neighbor_graph",
    "pivoted_cholesky",
    "position_weights",
]
__getattr__, __dir__ = on_demand(__name__)
