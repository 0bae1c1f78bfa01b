"""Learning to rank: examples by grades or by a measure, labels by preference graphs."""

from mercer.ranking import preference_graph
from mercer.ranking.label_ranker import LabelRanker
from mercer.ranking.ranker import Ranker

__all__ = ["LabelRanker", "Ranker", "preference_graph"]
