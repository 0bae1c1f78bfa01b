"""Learning from label proportions: bags with known shares of classes in, a classifier of single rows out."""

from mercer.proportions._base import IllPosedWarning
from mercer.proportions.alternating import AlternatingProportionSVM
from mercer.proportions.assignment import assign_labels
from mercer.proportions.bags import Bags, bag_proportions, make_bags

__all__ = [
    "AlternatingProportionSVM",
    "Bags",
    "IllPosedWarning",
    "assign_labels",
    "bag_proportions",
    "make_bags",
]
