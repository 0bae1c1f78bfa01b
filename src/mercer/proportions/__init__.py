"""Learning from label proportions: bags with known shares of classes in, a classifier of single rows out."""

from mercer.proportions._base import IllPosedWarning
from mercer.proportions.attributes import (
    AttributeModeler,
    BinarizedAttributes,
    average_precision_at,
    discretize_proportions,
    proportions_from_similarity,
    transfer_proportions,
)
from mercer.proportions.bags import Bags, bag_proportions, make_bags
from mercer.proportions.gradient import ProportionClassifier
from mercer.proportions.video import VideoEventDetector

__all__ = [
    "AttributeModeler",
    "Bags",
    "BinarizedAttributes",
    "IllPosedWarning",
    "ProportionClassifier",
    "VideoEventDetector",
    "average_precision_at",
    "bag_proportions",
    "discretize_proportions",
    "make_bags",
    "proportions_from_similarity",
    "transfer_proportions",
]
