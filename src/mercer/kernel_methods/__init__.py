"""Estimators that take any kernel and any objects: support vectors, components, means, online learners, any loss."""

from mercer.kernel_methods.cholesky import IncompleteCholesky
from mercer.kernel_methods.components import KernelPCA
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
from mercer.kernel_methods.online import OnlineKernelClassifier
from mercer.kernel_methods.representer import RepresenterEstimator
from mercer.kernel_methods.ridge import KernelRidge
from mercer.kernel_methods.support_vectors import KernelNuSVC, KernelOneClass, KernelSVC, KernelSVR

__all__ = [
    "ExponentialLoss",
    "HingeLoss",
    "HuberLoss",
    "IncompleteCholesky",
    "KernelMeanClassifier",
    "KernelNuSVC",
    "KernelOneClass",
    "KernelPCA",
    "KernelRidge",
    "KernelSVC",
    "KernelSVR",
    "LinearProgramSVC",
    "LogisticLoss",
    "MulticlassHingeLoss",
    "MulticlassLogisticLoss",
    "MulticlassPerceptronLoss",
    "NoveltyLoss",
    "OnlineKernelClassifier",
    "ParzenWindow",
    "PerceptronLoss",
    "PinballLoss",
    "RepresenterEstimator",
    "ScoreLoss",
    "SquaredLoss",
    "TaxonomyLoss",
]
