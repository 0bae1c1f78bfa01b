"""Estimators and tests that take any kernel and objects of any kind."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.kernel_methods._result import KernelTestResult
    from mercer.kernel_methods.cca import CCA, KernelCCA, MultiSetCCA, choose_regularization
    from mercer.kernel_methods.cholesky import IncompleteCholesky
    from mercer.kernel_methods.components import KernelPCA
    from mercer.kernel_methods.dependency import KernelDependencyEstimation
    from mercer.kernel_methods.fisher import KernelFisher
    from mercer.kernel_methods.hsic import HSIC
    from mercer.kernel_methods.kernelized import KernelizedModel
    from mercer.kernel_methods.linear_program import LinearProgramSVC
    from mercer.kernel_methods.losses import (
        ExponentialLoss,
        HingeLoss,
        HuberLoss,
        LogisticLoss,
        MulticlassHingeLoss,
        MulticlassLogisticLoss,
        MulticlassPerceptronLoss,
        NoveltyLoss,
        PerceptronLoss,
        PinballLoss,
        ScoreLoss,
        SquaredLoss,
        TaxonomyLoss,
    )
    from mercer.kernel_methods.means import KernelMeanClassifier, ParzenWindow
    from mercer.kernel_methods.mmd import MMD
    from mercer.kernel_methods.online import OnlineKernelClassifier
    from mercer.kernel_methods.preimage import PreImage
    from mercer.kernel_methods.representer import RepresenterEstimator
    from mercer.kernel_methods.ridge import KernelRidge
    from mercer.kernel_methods.support_vectors import KernelNuSVC, KernelOneClass, KernelSVC, KernelSVR

__all__ = [
    "CCA",
    "HSIC",
    "MMD",
    "ExponentialLoss",
    "HingeLoss",
    "HuberLoss",
    "IncompleteCholesky",
    "KernelCCA",
    "KernelDependencyEstimation",
    "KernelFisher",
    "KernelMeanClassifier",
    "KernelNuSVC",
    "KernelOneClass",
    "KernelPCA",
    "KernelRidge",
    "KernelSVC",
    "KernelSVR",
    "KernelTestResult",
    "KernelizedModel",
    "LinearProgramSVC",
    "LogisticLoss",
    "MultiSetCCA",
    "MulticlassHingeLoss",
    "MulticlassLogisticLoss",
    "MulticlassPerceptronLoss",
    "NoveltyLoss",
    "OnlineKernelClassifier",
    "ParzenWindow",
    "PerceptronLoss",
    "PinballLoss",
    "PreImage",
    "RepresenterEstimator",
    "ScoreLoss",
    "SquaredLoss",
    "TaxonomyLoss",
    "choose_regularization",
]
__getattr__, __dir__ = on_demand(__name__)
