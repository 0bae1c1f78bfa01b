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
from mercer.kernels.approximations import NystroemMap
from mercer.kernels.base import Kernel
from mercer.kernels.gram import Gram
from mercer.kernels.model_kernels import Fisher, ProbabilityProduct
from mercer.kernels.models import GaussianMixtureModel, GaussianModel, HMMModel, MultinomialModel
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
from mercer.kernels.vectors import Linear

__all__ = [
    "Centered",
    "Constant",
    "Convolution",
    "Corrected",
    "DirectSum",
    "Fisher",
    "FunctionKernel",
    "GaussianMixtureModel",
    "GaussianModel",
    "Gram",
    "HMMModel",
    "Intersection",
    "Jaccard",
    "Kernel",
    "Linear",
    "MultinomialModel",
    "Normalized",
    "NystroemMap",
    "OnColumn",
    "Power",
    "ProbabilityProduct",
    "Product",
    "RKHSFunction",
    "Scaled",
    "SetMean",
    "Subspace",
    "Sum",
    "TensorProduct",
    "Translated",
    "alignment",
    "distance",
    "gram_schmidt",
    "is_conditionally_positive_definite",
    "is_positive_definite",
    "is_strictly_positive_definite",
    "pivoted_cholesky",
]
