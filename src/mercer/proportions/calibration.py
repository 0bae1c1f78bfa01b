"""Inverse calibration: support vector regression from the means of bags to the logits of their shares.

    min ½‖w‖² + C Σ_k c_k (ξ_k + ξ*_k)      t_k(low) − ε − ξ_k ≤ ⟨w, m_k⟩ + b ≤ t_k(high) + ε + ξ*_k,   ξ, ξ* ≥ 0

with m_k the mean of φ over bag k, c_k its weight and t(p) = log(p / (1 − p)). The model of a share is
1 / (1 + exp(−(⟨w, m_k⟩ + b))), and rows are classified by the sign of ⟨w, φ(x)⟩ + b.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from mercer._state.saved import Fields, Objects
from mercer._validation import check_count, check_positive
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning, IllPosedWarning
from mercer.learning.qp.interior_point import fit_tubes
from mercer.proportions._base import Problem, ProportionEstimator, Solution, Space
from mercer.proportions._means import BagMeans, bag_means

__all__ = ["InverseCalibration"]

_CLIP = 0.02  # shares of small bags stay this far from 0 and 1


class InverseCalibration(ProportionEstimator):
    """Support vector regression on the means of bags, for classifying rows.

    Every bag is one point, the mean of its rows; its target is the logit of its share. The method is fast, because it
    has one point per bag. It is accurate if the mean of a bag resembles a row whose probability is the bag's share.

    Parameters
    ----------
    C : float, default=1.0
        Weight of errors outside the tube.
    epsilon : float, default=0.0
        Half the width of the tube, in logits. Bounds on a share widen the tube of its bag to the logits of both.
    clip : float or None, default=None
        Shares are clipped to [clip, 1 − clip] before the logit, which is infinite at 0 and 1. None: the smaller of 0.02
        and 1 / (2 · rows in the bag).
    kernel : Kernel, "precomputed" or None
        None is linear. The kernel of two bags is the mean of the kernel over pairs of their rows.
    map : transformer, optional
        A map of `mercer.maps`; the model is linear in its features.
    tol : float, default=1e-8
        Relative duality gap at which the solver stops. It is an interior point method, which takes 10 to 40 steps of
        O(bags³) operations, or O(bags · columns²) with fewer columns.
    max_iter : int or None, default=None
        Maximum number of its steps, with a warning; None for 200.
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0
        Show the progress of a large kernel matrix.

    Attributes
    ----------
    bag_error_, constant_bag_error_, majority_bag_error_ : float
        Mean absolute errors of shares on the training bags: of the predictions, of the best constant share for all
        bags, and of the most frequent class for all rows. A `ConstantAnswerWarning` is raised if the first is not below
        the second.
    classes_ : ndarray
    coef_ : ndarray of shape (1, d) or (n_classes, d)
        Without a kernel.
    intercept_ : ndarray
    duality_gap_ : float, or one for each class
        (primal − dual) / primal: an upper bound on the relative distance from the optimum.
    n_iter_ : int, or one for each class

    Notes
    -----
    Rows with a known label are also bags of one, with weight 1, even if they are in a bag. If one number lies within
    the tubes of all bags (equal shares, or one bag), the best w is 0 and the model is not determined: it raises an
    `IllPosedWarning`.

    References
    ----------
    .. [Rueping2010] S. Rüping. SVM classifier estimation from group probabilities. ICML, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.proportions import InverseCalibration, make_bags
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(400) % 2
    >>> X = rng.normal(size=(400, 2)) + 3 * y[:, None]
    >>> model = InverseCalibration(C=10.0).fit(X, bags=make_bags(y, 4, random_state=0))
    >>> model.score(X, y) > 0.95
    True
    """

    _parts_how = "bags"
    saved = ProportionEstimator.saved | Fields(duality_gap_=Objects(), n_iter_=Objects())

    def __init__(
        self,
        C: float = 1.0,
        epsilon: float = 0.0,
        *,
        clip: float | None = None,
        kernel: Any = None,
        map: Any = None,
        tol: float = 1e-8,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.clip = clip
        self.kernel = kernel
        self.map = map
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_positive("tol", self.tol)
        if isinstance(self.epsilon, bool) or not isinstance(self.epsilon, Real) or not 0 <= self.epsilon < np.inf:
            raise ValueError(f"epsilon must be a finite number of at least 0, got {self.epsilon!r}")
        if self.clip is not None and not (isinstance(self.clip, Real) and 0 < self.clip < 0.5):
            raise ValueError(f"clip must be a number in (0, 0.5) or None, got {self.clip!r}")
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)

    def _solve(self, space: Space, problem: Problem, random: np.random.RandomState) -> Solution:
        means = bag_means(problem)
        low, high = self._tubes(means)
        counted = means.bag_weight > 0
        if low[counted].max() <= high[counted].min() + 1e-9:
            message = "one share fits all bags, so that the means of bags tell nothing of the classes"
            warn_caller(message, IllPosedWarning)
        points = means.features(space) if space.linear else means.gram(space)
        upper, epsilon = float(self.C) * means.bag_weight, float(self.epsilon)
        tube = fit_tubes(points, low - epsilon, high + epsilon, upper, self.tol, self.max_iter, gram=not space.linear)
        gap = tube.gap / max(tube.objective, 1e-300)
        if not tube.converged:
            advice = "scale the features, or raise tol" if tube.stalled else "raise max_iter or tol"
            cause = " by rounding" if tube.stalled else ""
            message = f"stopped after {tube.steps} steps{cause}, with a relative gap of {gap:.1e}: {advice}"
            warn_caller(message, ConvergenceWarning)
        if space.linear:
            weights = np.asarray(points.T @ tube.coefficients).ravel()
        else:
            weights = np.asarray(means.average.T @ tube.coefficients)
        return Solution(weights, tube.intercept, {"duality_gap": gap, "n_iter": tube.steps})

    def _tubes(self, means: BagMeans) -> tuple[np.ndarray, np.ndarray]:
        """Logits of the bounds."""
        rows = np.diff(means.average.indptr)
        clip = np.minimum(_CLIP, 0.5 / rows) if self.clip is None else np.full(len(rows), float(self.clip))
        low, high = (np.clip(share, clip, 1.0 - clip) for share in (means.low, means.high))
        return np.log(low / (1.0 - low)), np.log(high / (1.0 - high))
