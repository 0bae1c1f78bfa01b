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
from mercer.kernels.discrete import Delta
from mercer.kernels.gram import Gram
from mercer.kernels.rational import Rational
from mercer.kernels.transducers import Transducer
from mercer.kernels.trees import PartialTree, SubsetTree, SubTree
from mercer.kernels.vectors import Linear

__all__ = [
    "Centered",
    "Constant",
    "Convolution",
    "Corrected",
    "Delta",
    "DirectSum",
    "FunctionKernel",
    "Gram",
    "Kernel",
    "Linear",
    "Normalized",
    "NystroemMap",
    "OnColumn",
    "PartialTree",
    "Power",
    "Product",
    "Rational",
    "Scaled",
    "SubTree",
    "SubsetTree",
    "Sum",
    "TensorProduct",
    "Transducer",
    "Translated",
]
