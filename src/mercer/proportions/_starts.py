"""Learners whose solutions are starts of others."""

from __future__ import annotations

import numpy as np

from mercer.proportions._base import Problem, Solution, Space
from mercer.proportions.calibration import InverseCalibration
from mercer.proportions.convex import ConvexProportionSVM
from mercer.proportions.mean_map import MeanMap

__all__ = ["NAMED_STARTS", "named_solution"]

NAMED_STARTS = {"inverse-calibration": InverseCalibration, "mean-map": MeanMap, "convex": ConvexProportionSVM}


def named_solution(name: str, space: Space, problem: Problem, random: np.random.RandomState) -> Solution:
    """Return the solution of the learner of this name, with its default parameters."""
    return NAMED_STARTS[name]()._solve(space, problem, random)
