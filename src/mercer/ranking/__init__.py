"""Learning to rank: examples by grades or by a measure, labels by preference graphs."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.ranking import preference_graph
    from mercer.ranking.label_ranker import LabelRanker
    from mercer.ranking.ranker import Ranker

__all__ = ["LabelRanker", "Ranker", "preference_graph"]
__getattr__, __dir__ = on_demand(__name__)
