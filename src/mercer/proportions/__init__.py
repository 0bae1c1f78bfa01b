"""Learning from label proportions: bags with known shares of classes in, a classifier of single rows out."""

from mercer.proportions._base import IllPosedWarning
from mercer.proportions.bags import Bags, bag_proportions, make_bags
from mercer.proportions.convex import ConvexProportionSVM

__all__ = ["Bags", "ConvexProportionSVM", "IllPosedWarning", "bag_proportions", "make_bags"]
