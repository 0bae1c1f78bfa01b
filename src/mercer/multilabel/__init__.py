"""Many labels at once: joint machines, kernels of label sets, homogeneity analysis, several views, compression."""

from mercer.kernels.outputs import LinearOutput, LogOddsOutput, OutputKernel, PolynomialOutput
from mercer.multilabel.crf import MultiLabelCRF
from mercer.multilabel.joint import JointSVM

__all__ = ["JointSVM", "LinearOutput", "LogOddsOutput", "MultiLabelCRF", "OutputKernel", "PolynomialOutput"]
