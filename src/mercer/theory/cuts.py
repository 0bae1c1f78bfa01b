"""Bounds on the number of cutting planes, independent of the number of outputs.

With R the largest ‖Φ(x, y) − Φ(x, z)‖, Δ the largest cost, C the weight of the *mean* loss and ε the tolerance::

    one slack           ⌈log₂(Δ / 4 R² C)⌉ + ⌈16 R² C / ε⌉
    relative margin     max(2 C R² / ε_B², 2 n / ε, 8 C R² / ε²)

The first bound is also independent of the number n of examples: a pass over all examples adds at most one plane, so
training time is linear in n. The second is for one slack per example, with costs of at most 1 and bounds B that hold up
to ε_B. Both are loose: solvers stop after tens of planes when the bounds allow millions.
"""

from __future__ import annotations

import math

from mercer._validation import check_count, check_positive

__all__ = ["cutting_planes_bound", "relative_margin_planes_bound"]


def cutting_planes_bound(C: float, radius: float, tol: float, max_cost: float = 1.0) -> int:
    """Return the maximal number of planes that the one-slack cutting-plane solver adds.

    Parameters
    ----------
    C : float
        Weight of the mean loss: n times the C of a sum over n examples.
    radius : float
        R, the largest ‖Φ(x, y) − Φ(x, z)‖.
    tol : float
        ε, the violation that a plane needs to be added: absolute, on the slack, in units of the mean loss.
    max_cost : float, default=1.0
        Δ, the largest cost.

    Returns
    -------
    int

    References
    ----------
    .. [Joachims2009] T. Joachims, T. Finley and C.-N. Yu. Cutting-plane training of structural SVMs. Machine
       Learning 77, 2009.

    Examples
    --------
    >>> from mercer.theory.cuts import cutting_planes_bound
    >>> cutting_planes_bound(C=1.0, radius=2.0, tol=0.01)
    6396
    """
    C, R = check_positive("C", C), check_positive("radius", radius)
    tol, cost = check_positive("tol", tol), check_positive("max_cost", max_cost)
    first = math.ceil(math.log2(cost / (4 * R**2 * C)))  # negative for large C: then the first planes gain at once
    return max(1, first + math.ceil(16 * R**2 * C / tol))


def relative_margin_planes_bound(C: float, radius: float, n: int, tol: float, tol_B: float) -> int:
    """Return the maximal number of planes of the structured relative margin machine with one slack per example.

    Parameters
    ----------
    C : float
        Weight of the mean loss.
    radius : float
        R, the largest ‖Φ(x, y) − Φ(x, z)‖.
    n : int
        Examples.
    tol, tol_B : float
        ε and ε_B: allowed violations of the margins and of the bound B.

    Returns
    -------
    int

    References
    ----------
    .. [Shivaswamy2010] P. Shivaswamy and T. Jebara. Maximum relative margin and data-dependent regularization.
       Journal of Machine Learning Research 11, 2010.

    Examples
    --------
    >>> from mercer.theory.cuts import relative_margin_planes_bound
    >>> relative_margin_planes_bound(C=1.0, radius=2.0, n=100, tol=0.1, tol_B=0.1)
    3200
    """
    C, R, n = check_positive("C", C), check_positive("radius", radius), check_count("n", n)
    tol, tol_B = check_positive("tol", tol), check_positive("tol_B", tol_B)
    return math.ceil(max(2 * C * R**2 / tol_B**2, 2 * n / tol, 8 * C * R**2 / tol**2))
