"""Recovery of sparse codes from projections: coherence, restricted isometry, recovery rates and bounds.

coherence             μ(Φ) = max_{i ≠ j} ``|⟨φ_i, φ_j⟩|`` / (‖φ_i‖ ‖φ_j‖): recovers all codes of k < (1 + 1/μ) / 2 atoms
restricted isometry   (1 − δ_k) ‖a‖² ≤ ‖Φa‖² ≤ (1 + δ_k) ‖a‖² for all a with k entries
required dimension    d ≥ 16 k² ln(n / δ): matching pursuit recovers k of n atoms with probability 1 − δ
recognition rate      (1 − δ) q, where q is the rate with exact codes

The last two are stated for projections H A of any dictionary A. They cannot hold in general: two equal atoms have equal
projections, and the columns of H A are dependent unless the columns of A are orthonormal. Use `recovery_rate` to
measure the recovery.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from mercer._validation import check_count
from mercer.learning.sparse_codes import Dictionary, sparse_codes

__all__ = [
    "coherence",
    "guaranteed_sparsity",
    "recognition_rate_bound",
    "recovery_rate",
    "required_dimension",
    "restricted_isometry",
]


def _check_atoms(atoms: Any) -> np.ndarray:
    return check_array(atoms, dtype=np.float64, input_name="atoms")


def _check_sparsity(sparsity: Any, n_atoms: int) -> int:
    if check_count("sparsity", sparsity) > n_atoms:
        raise ValueError(f"sparsity must be at most the {n_atoms} atoms, got {sparsity}")
    return int(sparsity)


def _check_probability(name: str, value: Any, least: float = 0.0) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not least <= float(value) <= 1:
        raise ValueError(f"{name} must be a number from {least:g} to 1, got {value!r}")
    return float(value)


def coherence(atoms: Any) -> float:
    """Return the largest absolute cosine between two atoms.

    Parameters
    ----------
    atoms : array of shape (n_atoms, n_features)
        Rows are atoms; at least two, all non-zero.

    Returns
    -------
    float
        μ, from 0 for orthogonal atoms to 1 for parallel ones.

    Examples
    --------
    >>> from mercer.theory.sensing import coherence
    >>> round(coherence([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]]), 3)
    0.707
    """
    rows = _check_atoms(atoms)
    norms = np.linalg.norm(rows, axis=1)
    if len(rows) < 2 or not norms.all():
        raise ValueError("atoms must have at least two rows, and no row may be 0")
    unit = rows / norms[:, None]
    most = 0.0
    for first in range(0, len(unit), 1024):
        cosines = np.abs(unit[first : first + 1024] @ unit.T)
        cosines[np.arange(len(cosines)), first + np.arange(len(cosines))] = 0.0
        most = max(most, float(cosines.max()))
    return min(most, 1.0)


def guaranteed_sparsity(atoms: Any) -> int:
    """Return the largest k for which the coherence guarantees recovery of every code with k entries.

    k < (1 + 1/μ) / 2, for matching pursuit as well as for the smallest ℓ1 norm [Tropp2004]_. For projected images,
    whose atoms are highly correlated, k is 0 or 1 and uninformative about recovery in practice.

    Parameters
    ----------
    atoms : array of shape (n_atoms, n_features)
        Rows are atoms.

    Returns
    -------
    int
        k; the number of atoms if they are orthogonal.

    References
    ----------
    .. [Tropp2004] J. A. Tropp. Greed is good: algorithmic results for sparse approximation. IEEE Transactions on
       Information Theory 50, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.theory.sensing import guaranteed_sparsity
    >>> guaranteed_sparsity(np.vstack([np.eye(16), np.linalg.qr(np.ones((16, 16)) - 8 * np.eye(16))[0]]))
    1
    """
    mu, n = coherence(atoms), len(_check_atoms(atoms))
    return n if mu == 0 else max(0, min(n, math.ceil((1 + 1 / mu) / 2) - 1))


def restricted_isometry(atoms: Any, sparsity: int, n_trials: int = 1000, random_state: Any = None) -> float:
    """Return a lower bound of the restricted isometry constant δ_k, from random sets of atoms.

    The constant is a maximum over all sets of k atoms. The maximum over random sets is a lower bound that grows with
    the number of trials, not an estimate. Atoms are scaled to unit length.

    Parameters
    ----------
    atoms : array of shape (n_atoms, n_features)
        Rows are atoms.
    sparsity : int
        k.
    n_trials : int, default=1000
        Number of random sets.
    random_state : int, RandomState or None, default=None
        Seed of the sets.

    Returns
    -------
    float
        The largest max(λ_max − 1, 1 − λ_min) over Gram matrices of the sets.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.theory.sensing import restricted_isometry
    >>> atoms = np.random.default_rng(0).normal(size=(50, 400))
    >>> 0.1 < restricted_isometry(atoms, 3, random_state=0) < 0.4
    True
    """
    unit = Dictionary(_check_atoms(atoms), gram=False).atoms
    k = _check_sparsity(sparsity, len(unit))
    random, most = check_random_state(random_state), 0.0
    for _ in range(check_count("n_trials", n_trials)):
        chosen = unit[random.choice(len(unit), k, replace=False)]
        eigenvalues = np.linalg.eigvalsh(chosen @ chosen.T)
        most = max(most, float(eigenvalues[-1]) - 1, 1 - float(eigenvalues[0]))
    return most


def recovery_rate(
    atoms: Any,
    sparsity: int,
    projection: Any = None,
    *,
    solver: str = "omp",
    n_trials: int = 100,
    tol: float = 1e-3,
    random_state: Any = None,
) -> float:
    """Return how often a planted code is recovered from the projection of its signal.

    A trial draws ``sparsity`` atoms with normal coefficients, projects their sum and solves for the code. The
    projection is refitted in each trial if it takes a ``random_state``.

    Parameters
    ----------
    atoms : array of shape (n_atoms, n_features)
        Rows are atoms.
    sparsity : int
        Atoms in a signal.
    projection : transformer, optional
        A projection such as ``SignedHashProjection(100)``; by default signals are not projected.
    solver : {"omp", "order-recursive", "l1"}, default="omp"
        Greedy solvers are given the number of atoms; "l1" is given the residual 1e-6.
    n_trials : int, default=100
        Number of signals.
    tol : float, default=1e-3
        Largest error of a coefficient that counts as recovery.
    random_state : int, RandomState or None, default=None
        Seed of signals and projections.

    Returns
    -------
    float
        Share of trials with all coefficients correct.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import SignedHashProjection
    >>> from mercer.theory.sensing import recovery_rate
    >>> atoms = np.random.default_rng(0).normal(size=(200, 500))
    >>> recovery_rate(atoms, 5, SignedHashProjection(100), n_trials=20, random_state=0)
    1.0
    """
    rows = _check_atoms(atoms)
    k, random = _check_sparsity(sparsity, len(rows)), check_random_state(random_state)
    if solver not in ("omp", "order-recursive", "l1"):
        raise ValueError(f"solver must be 'omp', 'order-recursive' or 'l1', got {solver!r}")
    stop: dict[str, Any] = {"tol": 1e-6} if solver == "l1" else {"n_nonzero": k}
    recovered = 0
    for _ in range(check_count("n_trials", n_trials)):
        planted = np.zeros(len(rows))
        planted[random.choice(len(rows), k, replace=False)] = random.standard_normal(k)
        measured, signal = rows, planted[None] @ rows
        if projection is not None:
            fresh = clone(projection)
            if "random_state" in fresh.get_params(deep=False):
                fresh.set_params(random_state=random.randint(2**31 - 1))
            measured = np.asarray(fresh.fit(rows).transform(rows))
            signal = np.asarray(fresh.transform(signal))
        codes = sparse_codes(signal, Dictionary(measured, gram=False), solver, **stop).codes.toarray()[0]
        recovered += bool(np.abs(codes - planted).max() <= tol)
    return recovered / n_trials


def required_dimension(sparsity: int, n_atoms: int, delta: float) -> int:
    """Return the dimension that the theorem on matching pursuit with hashed measurements requires.

    ⌈16 k² ln(n / δ)⌉ [Shi2010]_. The theorem is loose: it requires 151 dimensions for one of 1,216 atoms and 3,763 for
    five, although 50 to 100 recover random codes.

    Parameters
    ----------
    sparsity : int
        k.
    n_atoms : int
        n.
    delta : float
        δ, the probability of failure.

    Returns
    -------
    int
        d.

    References
    ----------
    .. [Shi2010] Q. Shi, H. Li and C. Shen. Rapid face recognition using hashing. CVPR, 2010.

    Examples
    --------
    >>> from mercer.theory.sensing import required_dimension
    >>> [required_dimension(k, 1216, 0.1) for k in (1, 2, 5)]
    [151, 602, 3763]
    """
    n = check_count("n_atoms", n_atoms)
    k, failure = _check_sparsity(sparsity, n), _check_probability("delta", delta)
    if not 0 < failure < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}")
    return math.ceil(16 * k**2 * math.log(n / failure))


def recognition_rate_bound(rate: float, delta: float) -> float:
    """Return the recognition rate if codes are recovered with probability 1 − δ.

    Parameters
    ----------
    rate : float
        q, the rate with exact codes.
    delta : float
        δ, the probability that a code is not recovered.

    Returns
    -------
    float
        (1 − δ) q: all queries whose code is not recovered may be wrong.

    Examples
    --------
    >>> from mercer.theory.sensing import recognition_rate_bound
    >>> round(recognition_rate_bound(0.98, 0.1), 3)
    0.882
    """
    return (1 - _check_probability("delta", delta)) * _check_probability("rate", rate)
