"""Learning from label proportions: a classifier of single rows from bags with known shares of classes."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.data.bags import Bags, bag_proportions, make_bags, sample_mixture_bags
    from mercer.exceptions import ConstantAnswerWarning, IllPosedWarning
    from mercer.proportions.alternating import AlternatingProportionSVM
    from mercer.proportions.assignment import assign_labels
    from mercer.proportions.attributes import (
        AttributeModeler,
        BinarizedAttributes,
        average_precision_at,
        discretize_proportions,
        proportions_from_similarity,
        transfer_proportions,
    )
    from mercer.proportions.calibration import InverseCalibration
    from mercer.proportions.convex import ConvexProportionSVM
    from mercer.proportions.gradient import ProportionClassifier
    from mercer.proportions.instances import MultipleInstanceSVM
    from mercer.proportions.mean_map import MeanMap
    from mercer.proportions.selection import BagCV, MajorityBag, bag_score, proportion_risk
    from mercer.proportions.video import VideoEventDetector

__all__ = [
    "AlternatingProportionSVM",
    "AttributeModeler",
    "BagCV",
    "Bags",
    "BinarizedAttributes",
    "ConstantAnswerWarning",
    "ConvexProportionSVM",
    "IllPosedWarning",
    "InverseCalibration",
    "MajorityBag",
    "MeanMap",
    "MultipleInstanceSVM",
    "ProportionClassifier",
    "VideoEventDetector",
    "assign_labels",
    "average_precision_at",
    "bag_proportions",
    "bag_score",
    "discretize_proportions",
    "make_bags",
    "proportion_risk",
    "proportions_from_similarity",
    "sample_mixture_bags",
    "transfer_proportions",
]
__getattr__, __dir__ = on_demand(__name__)
