"""Learning from label proportions: bags with known shares of classes in, a classifier of single rows out."""

from mercer.proportions._base import IllPosedWarning
from mercer.proportions.bags import Bags, bag_proportions, make_bags
from mercer.proportions.calibration import InverseCalibration
from mercer.proportions.mean_map import MeanMap

__all__ = ["Bags", "IllPosedWarning", "InverseCalibration", "MeanMap", "bag_proportions", "make_bags"]
