"""Learning from label proportions: bags with known shares of classes in, a classifier of single rows out."""

from mercer.proportions._base import IllPosedWarning
from mercer.proportions.bags import Bags, bag_proportions, make_bags
from mercer.proportions.gradient import ProportionClassifier

__all__ = ["Bags", "IllPosedWarning", "ProportionClassifier", "bag_proportions", "make_bags"]
