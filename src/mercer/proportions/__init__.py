"""Learning from label proportions: bags with known shares of classes in, a classifier of single rows out."""

from mercer.proportions._base import IllPosedWarning
from mercer.proportions.bags import Bags, bag_proportions, make_bags
from mercer.proportions.convex import ConvexProportionSVM
from mercer.proportions.instances import MultipleInstanceSVM

__all__ = [
    "Bags",
    "ConvexProportionSVM",
    "IllPosedWarning",
    "MultipleInstanceSVM",
    "bag_proportions",
    "make_bags",
]
