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
from mercer.kernels.graphs import Graphlet, ShortestPath, WeisfeilerLehman
from mercer.kernels.nodes import Diffusion, RegularizedLaplacian, neighbor_graph
from mercer.kernels.vectors import Linear
from mercer.kernels.walks import RandomWalk

__all__ = [
    "Centered",
    "Constant",
    "Convolution",
    "Corrected",
    "Diffusion",
    "DirectSum",
    "FunctionKernel",
    "Gram",
    "Graphlet",
    "Kernel",
    "Linear",
    "Normalized",
    "NystroemMap",
    "OnColumn",
    "Power",
    "Product",
    "RandomWalk",
    "RegularizedLaplacian",
    "Scaled",
    "ShortestPath",
    "Sum",
    "TensorProduct",
    "Translated",
    "WeisfeilerLehman",
    "neighbor_graph",
]
