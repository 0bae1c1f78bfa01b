"""Kernels on vectors, strings, trees, graphs, sets and distributions; one algebra for all of them."""

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
from mercer.kernels.approximations import (
    AdditiveMap,
    FourierMap,
    NystroemMap,
)
from mercer.kernels.base import (
    Kernel,
)
from mercer.kernels.discrete import (
    Delta,
)
from mercer.kernels.gram import (
    Gram,
)
from mercer.kernels.model_kernels import (
    Fisher,
    ProbabilityProduct,
)
from mercer.kernels.models import (
    GaussianMixtureModel,
    GaussianModel,
    HMMModel,
    MultinomialModel,
)
from mercer.kernels.rational import (
    Rational,
)
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
from mercer.kernels.sets import (
    Intersection,
    Jaccard,
    SetMean,
    Subspace,
)
from mercer.kernels.string_models import (
    LinearStringModel,
)
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
from mercer.kernels.transducers import (
    Transducer,
)
from mercer.kernels.trees import (
    PartialTree,
    SubsetTree,
    SubTree,
)
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

__all__ = [
    "ANOVA",
    "AdditiveMap",
    "AllSubstrings",
    "BSpline",
    "Centered",
    "ChiSquared",
    "Constant",
    "Convolution",
    "Corrected",
    "Delta",
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
    "HMMModel",
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
    "Rational",
    "Scaled",
    "SetMean",
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
    "alignment",
    "distance",
    "gram_schmidt",
    "is_conditionally_positive_definite",
    "is_positive_definite",
    "is_strictly_positive_definite",
    "median_heuristic",
    "pivoted_cholesky",
    "position_weights",
]
