"""Labels for the nodes of graphs and the blocks of images, with dependent neighbours."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.exceptions import ApproximateInferenceWarning
    from mercer.labeling.baselines import Piecewise, PseudoLikelihood
    from mercer.labeling.features import block_contrasts, block_features, block_labels
    from mercer.labeling.graphs import GraphLabeler
    from mercer.labeling.grids import GridLabeler
    from mercer.structures.graph_inputs import GraphInputs

__all__ = [
    "ApproximateInferenceWarning",
    "GraphInputs",
    "GraphLabeler",
    "GridLabeler",
    "Piecewise",
    "PseudoLikelihood",
    "block_contrasts",
    "block_features",
    "block_labels",
]
__getattr__, __dir__ = on_demand(__name__)
