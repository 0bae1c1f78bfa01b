"""Estimators and tests that take any kernel and objects of any kind."""

from mercer.kernel_methods._result import KernelTestResult
from mercer.kernel_methods.cca import CCA, KernelCCA, MultiSetCCA, choose_regularization
from mercer.kernel_methods.dependency import KernelDependencyEstimation
from mercer.kernel_methods.fisher import KernelFisher
from mercer.kernel_methods.hsic import HSIC
from mercer.kernel_methods.mmd import MMD
from mercer.kernel_methods.preimage import PreImage

__all__ = [
    "CCA",
    "HSIC",
    "MMD",
    "KernelCCA",
    "KernelDependencyEstimation",
    "KernelFisher",
    "KernelTestResult",
    "MultiSetCCA",
    "PreImage",
    "choose_regularization",
]
