"""Output structures: inference (argmax, argmin, k_best, log_partition, marginals, sample, entropy, score) and costs."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.exceptions import OracleError
    from mercer.structures.base import Structure
    from mercer.structures.chain import Chain, ChainMarginals, ChainScores
    from mercer.structures.constraints import Constraints
    from mercer.structures.costs import (
        BoundaryDifference,
        Cost,
        CostMatrix,
        Hamming,
        SegmentCost,
        SegmentDifference,
        Taxonomy,
        ZeroOne,
        resolve_cost,
    )
    from mercer.structures.enumerated import Enumerated
    from mercer.structures.graph_inputs import GraphInputs
    from mercer.structures.graph_labels import GraphLabels, GraphMarginals, GraphScores
    from mercer.structures.joint import Joint
    from mercer.structures.label_sets import LabelSetMarginals, LabelSets, LabelSetScores, dependent_pairs
    from mercer.structures.labels import Labels
    from mercer.structures.output_set import OutputSet
    from mercer.structures.segment_parts import SegmentMarginals, SegmentScores, length_basis
    from mercer.structures.segments import Segments

__all__ = [
    "BoundaryDifference",
    "Chain",
    "ChainMarginals",
    "ChainScores",
    "Constraints",
    "Cost",
    "CostMatrix",
    "Enumerated",
    "GraphInputs",
    "GraphLabels",
    "GraphMarginals",
    "GraphScores",
    "Hamming",
    "Joint",
    "LabelSetMarginals",
    "LabelSetScores",
    "LabelSets",
    "Labels",
    "OracleError",
    "OutputSet",
    "SegmentCost",
    "SegmentDifference",
    "SegmentMarginals",
    "SegmentScores",
    "Segments",
    "Structure",
    "Taxonomy",
    "ZeroOne",
    "dependent_pairs",
    "length_basis",
    "resolve_cost",
]
__getattr__, __dir__ = on_demand(__name__)
