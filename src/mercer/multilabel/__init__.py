"""Multi-label classification: joint models, kernels on label sets, homogeneity analysis, several views, compression."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.kernels.outputs import LinearOutput, LogOddsOutput, OutputKernel, PolynomialOutput
    from mercer.multilabel.compressed import CompressedLabels
    from mercer.multilabel.crf import MultiLabelCRF
    from mercer.multilabel.dependency import Dependency, DependencyModel
    from mercer.multilabel.hashed import HashedLabelSets
    from mercer.multilabel.homogeneity import HomogeneityAnalysis
    from mercer.multilabel.joint import JointSVM
    from mercer.multilabel.neighbors import NeighborLabels
    from mercer.multilabel.online import OnlineJointSVM
    from mercer.multilabel.separate import SeparateSVM
    from mercer.multilabel.views import KernelHomogeneityAnalysis

__all__ = [
    "CompressedLabels",
    "Dependency",
    "DependencyModel",
    "HashedLabelSets",
    "HomogeneityAnalysis",
    "JointSVM",
    "KernelHomogeneityAnalysis",
    "LinearOutput",
    "LogOddsOutput",
    "MultiLabelCRF",
    "NeighborLabels",
    "OnlineJointSVM",
    "OutputKernel",
    "PolynomialOutput",
    "SeparateSVM",
]
__getattr__, __dir__ = on_demand(__name__)
