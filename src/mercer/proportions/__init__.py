"""Learning from label proportions: bags with known shares of classes in, a classifier of single rows out."""

from mercer.proportions._base import IllPosedWarning
from mercer.proportions.alternating import AlternatingProportionSVM
from mercer.proportions.assignment import assign_labels
from mercer.proportions.bags import Bags, bag_proportions, make_bags, sample_mixture_bags
from mercer.proportions.calibration import InverseCalibration
from mercer.proportions.convex import ConvexProportionSVM
from mercer.proportions.instances import MultipleInstanceSVM
from mercer.proportions.mean_map import MeanMap
from mercer.proportions.selection import BagCV, MajorityBag, bag_score, proportion_risk

__all__ = [
    "AlternatingProportionSVM",
    "BagCV",
    "Bags",
    "ConvexProportionSVM",
    "IllPosedWarning",
    "InverseCalibration",
    "MajorityBag",
    "MeanMap",
    "MultipleInstanceSVM",
    "assign_labels",
    "bag_proportions",
    "bag_score",
    "make_bags",
    "proportion_risk",
    "sample_mixture_bags",
]
