"""Training without inference: losses of nodes given their neighbours, or of independent pieces.

    pseudo-likelihood   −Σ_v log p(y_v | y of the neighbours of v)
    piecewise           −Σ_v log p_v(y_v) − Σ_e log p_e(y_e), each piece normalised by itself

Both are smooth and convex, take one pass over nodes and edges, and are baselines for the joint likelihood.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.learning.losses import Loss
from mercer.structures.base import Structure

__all__ = ["Piecewise", "PseudoLikelihood"]


class PseudoLikelihood(Loss):
    """−Σ_v log p(y_v | labels of its neighbours); nodes with unknown labels around them are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.labeling import GraphInputs, PseudoLikelihood
    >>> from mercer.data.labels import TagSequences
    >>> from mercer.learning import Risk
    >>> from mercer.structures import GraphLabels
    >>> X = GraphInputs.from_list([(np.eye(2), [(0, 1)])])
    >>> y = TagSequences(np.array([0, 1]), X.offsets)
    >>> round(Risk(GraphLabels(2, 2), PseudoLikelihood(), X, y).value(np.zeros(7)), 4)  # two coins
    1.3863
    """

    name = "pseudo-likelihood"
    takes_partial = True

    def value_and_gradient(self, structure: Structure, theta: Any, y: Any) -> tuple[np.ndarray, Any]:
        """Return summed conditional log losses and their slope."""
        return structure.pseudo_likelihood(theta, y)  # type: ignore[attr-defined]


class Piecewise(Loss):
    """−Σ log-likelihoods of single nodes and single edges; pieces with unknown labels are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.labeling import GraphInputs, Piecewise
    >>> from mercer.data.labels import TagSequences
    >>> from mercer.learning import Risk
    >>> from mercer.structures import GraphLabels
    >>> X = GraphInputs.from_list([(np.eye(2), [(0, 1)])])
    >>> y = TagSequences(np.array([0, 1]), X.offsets)
    >>> round(Risk(GraphLabels(2, 2), Piecewise(), X, y).value(np.zeros(7)), 4)  # two coins and a pair of them
    2.7726
    """

    name = "piecewise"
    takes_partial = True

    def value_and_gradient(self, structure: Structure, theta: Any, y: Any) -> tuple[np.ndarray, Any]:
        """Return summed log losses of the pieces and their slope."""
        return structure.piecewise(theta, y)  # type: ignore[attr-defined]
