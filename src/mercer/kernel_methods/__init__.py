"""Estimators and tests that take any kernel and objects of any kind."""

from mercer.kernel_methods._result import KernelTestResult
from mercer.kernel_methods.hsic import HSIC
from mercer.kernel_methods.mmd import MMD

__all__ = [
    "HSIC",
    "MMD",
    "KernelTestResult",
]
