"""Learners for several events or attributes: clones of one given, or the default, a large-margin learner.

The default weighs the rows of a bag together as much as one row elsewhere, so that C means the same for all sizes of
bags: ½ ‖w‖² + Σ_k (mean hinge loss of bag k + C · loss of its share). With ``scale``, both losses are multiplied by it.
"""

from __future__ import annotations

import importlib
from typing import Any

from sklearn.base import clone

__all__ = ["default_learner", "seeded_clone"]


def seeded_clone(estimator: Any, seed: int, **parameters: Any) -> Any:
    """A clone with other parameters, and with this seed unless it has one or takes none."""
    model = clone(estimator).set_params(**parameters)
    names = model.get_params(deep=False)
    if "random_state" in names and names["random_state"] is None:
        model.set_params(random_state=int(seed))
    return model


def default_learner(C: float, rows_per_bag: float, seed: int, *, scale: float = 1.0, **options: Any) -> Any:
    """The alternating machine, linear."""
    make = importlib.import_module("mercer.proportions").AlternatingProportionSVM
    return make(C=float(C) * scale, C_instance=scale / rows_per_bag, random_state=int(seed), **options)
