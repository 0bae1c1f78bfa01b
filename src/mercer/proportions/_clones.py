"""Learners for several events or attributes: clones of a given learner, or of the default large-margin learner.

The default gives the rows of a bag together the weight of one row, so that C means the same for all bag sizes: ½ ‖w‖² +
Σ_k (mean hinge loss of bag k + C · loss of its share). With ``scale``, both losses are multiplied by it.
"""

from __future__ import annotations

import importlib
from typing import Any

from sklearn.base import clone

__all__ = ["default_learner", "seeded_clone"]


def seeded_clone(estimator: Any, seed: int, **parameters: Any) -> Any:
    """Return a clone with new parameters, and with this seed unless it has one or takes none."""
    model = clone(estimator).set_params(**parameters)
    names = model.get_params(deep=False)
    if "random_state" in names and names["random_state"] is None:
        model.set_params(random_state=int(seed))
    return model


def default_learner(C: float, rows_per_bag: float, seed: int, *, scale: float = 1.0, **options: Any) -> Any:
    """Return the linear alternating learner."""
    make = importlib.import_module("mercer.proportions").AlternatingProportionSVM
    return make(C=float(C) * scale, C_instance=scale / rows_per_bag, random_state=int(seed), **options)
