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
from mercer.kernels.vectors import Linear

__all__ = [
    "AllSubstrings",
    "Centered",
    "Constant",
    "Convolution",
    "Corrected",
    "DirectSum",
    "EditDistance",
    "FunctionKernel",
    "Gappy",
    "Gram",
    "Kernel",
    "Linear",
    "LinearStringModel",
    "Mismatch",
    "NGram",
    "Normalized",
    "NystroemMap",
    "OnColumn",
    "Power",
    "Product",
    "Scaled",
    "Spectrum",
    "Subsequence",
    "Sum",
    "TensorProduct",
    "Translated",
    "WeightedDegree",
]
