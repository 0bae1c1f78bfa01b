"""Sparse codes of many signals over one dictionary: x ≈ Σ_j a_j φ_j with few a_j ≠ 0.

    omp               the atom with the largest ``|⟨φ_j, r⟩|``, then least squares over the atoms chosen so far
    order-recursive   the atom whose choice decreases ‖r‖ most, then least squares
    l1                min ‖a‖₁ subject to ‖x − Φa‖ ≤ tol ‖x‖ (basis pursuit denoising)
    lasso             min ½‖x − Φa‖² + alpha ‖x‖ ‖a‖₁

Atoms and signals are first scaled to unit length, so units affect neither the choice of atoms nor the meaning of
``tol`` and ``alpha``. Codes refer to the unscaled atoms and signals. The ℓ1 problems are solved by homotopy along λ and
come with a duality gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import _core
from mercer._validation import check_choice, check_count, check_flag, check_positive, thread_count

__all__ = ["SOLVERS", "Dictionary", "SparseCodes", "sparse_codes"]

SOLVERS = ("omp", "order-recursive", "l1", "lasso")
GRAM_BYTES = 1 << 28  # the largest Gram matrix that is kept: 5,792 atoms
BLOCK_BYTES = 1 << 24  # of correlations at a time
_UNREACHED, _STEP_LIMIT = 1, 2


@dataclass(frozen=True)
class SparseCodes:
    """Codes of signals, with residuals and gaps.

    Attributes
    ----------
    codes : csr_matrix of shape (n_signals, n_atoms)
        a: ``codes @ dictionary`` approximates the signals.
    residuals : ndarray of shape (n_signals,)
        ‖x − Φa‖ / ‖x‖; 0 for signals that are 0.
    penalties : ndarray of shape (n_signals,)
        For "l1" and "lasso": the λ at the end of the path, for signals and atoms of unit length.
    gaps : ndarray of shape (n_signals,)
        For "l1" and "lasso": the duality gap, relative to ‖a‖₁ or to the objective at 0.
    n_iter : ndarray of shape (n_signals,)
        Number of atoms chosen, or of support changes along the path.
    reached : ndarray of bool of shape (n_signals,)
        Whether ‖x − Φa‖ ≤ tol ‖x‖; True if no ``tol`` was given.
    finished : ndarray of bool of shape (n_signals,)
        Whether the path ended before ``max_iter`` steps.
    """

    codes: sp.csr_matrix
    residuals: np.ndarray
    penalties: np.ndarray
    gaps: np.ndarray
    n_iter: np.ndarray
    reached: np.ndarray
    finished: np.ndarray


class Dictionary:
    """Atoms of unit length and, if there are few enough, their inner products.

    Parameters
    ----------
    atoms : ndarray of shape (n_atoms, n_features)
        Rows are atoms. Atoms that are 0 are never used.
    gram : bool, optional
        Whether to compute all inner products, which pays off for many signals; by default if they fit into 256 MiB.
    """

    def __init__(self, atoms: np.ndarray, gram: bool | None = None) -> None:
        atoms = np.ascontiguousarray(atoms, np.float64)
        self.norms, unit = _unit_rows(atoms)
        self.atoms = unit
        if gram is None:
            gram = 8 * len(unit) ** 2 <= GRAM_BYTES
        self.gram = np.ascontiguousarray(unit @ unit.T) if gram else None
        self.compiled = _core.sparse_codes.CodeDictionary(self.atoms, self.gram)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "compiled"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.compiled = _core.sparse_codes.CodeDictionary(self.atoms, self.gram)


def sparse_codes(
    signals: np.ndarray,
    dictionary: Dictionary | np.ndarray,
    solver: str = "omp",
    *,
    n_nonzero: int | None = None,
    tol: float | None = None,
    alpha: float | None = None,
    positive: bool = False,
    barred: np.ndarray | None = None,
    max_iter: int | None = None,
    n_jobs: int | None = None,
) -> SparseCodes:
    """Return the sparse codes of signals over a dictionary.

    Parameters
    ----------
    signals : ndarray of shape (n_signals, n_features)
        Rows are signals.
    dictionary : Dictionary or ndarray of shape (n_atoms, n_features)
        Rows are atoms.
    solver : {"omp", "order-recursive", "l1", "lasso"}, default="omp"
        The problem or rule, as above.
    n_nonzero : int, optional
        Maximum number of atoms in a code, for "omp" and "order-recursive".
    tol : float, optional
        Residual to stop at, as a share of ‖x‖, for all but "lasso". At 1 or more all codes are 0.
    alpha : float, optional
        λ of "lasso" for signals and atoms of unit length.
    positive : bool, default=False
        Codes without negative entries; not for "order-recursive".
    barred : ndarray of int of shape (n_signals,), optional
        For each signal, an atom that its code must not use, or −1.
    max_iter : int, optional
        Maximum number of steps along the path of "l1" and "lasso"; by default 20 · min(n_atoms, n_features) + 100.
    n_jobs : int, optional
        Threads; results do not depend on them.

    Returns
    -------
    SparseCodes
        Codes, residuals, gaps.

    References
    ----------
    .. [Pati1993] Y. C. Pati, R. Rezaiifar and P. S. Krishnaprasad. Orthogonal matching pursuit: recursive function
       approximation with applications to wavelet decomposition. Asilomar Conference on Signals, Systems and Computers,
       1993.
    .. [Cotter1999] S. F. Cotter, J. Adler, B. D. Rao and K. Kreutz-Delgado. Forward sequential algorithms for best
       basis selection. IEE Proceedings: Vision, Image and Signal Processing 146, 1999.
    .. [Osborne2000] M. R. Osborne, B. Presnell and B. A. Turlach. A new approach to variable selection in least squares
       problems. IMA Journal of Numerical Analysis 20, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.learning.sparse_codes import sparse_codes
    >>> atoms = np.random.default_rng(0).normal(size=(40, 20))
    >>> found = sparse_codes(2 * atoms[[3]] - atoms[[7]], atoms, "omp", n_nonzero=2)
    >>> found.codes.toarray()[0, [3, 7]].round(6), found.codes.nnz
    (array([ 2., -1.]), 2)
    """
    settings = check_settings(solver, n_nonzero, tol, alpha, positive)
    if not isinstance(dictionary, Dictionary):
        dictionary = Dictionary(dictionary)
    n_atoms, d = dictionary.atoms.shape
    signals = np.ascontiguousarray(signals, np.float64)
    if signals.ndim != 2 or signals.shape[1] != d:
        raise ValueError(f"signals must have the {d} features of the atoms, got shape {signals.shape}")
    if barred is not None:
        barred = np.ascontiguousarray(barred, np.int64)
    steps = 100 + 20 * min(n_atoms, d) if max_iter is None else check_count("max_iter", max_iter)
    norms, unit = _unit_rows(signals)
    block = max(64, BLOCK_BYTES // (8 * n_atoms))
    parts = []
    for first in range(0, len(unit), block):
        rows = slice(first, first + block)
        args = (
            dictionary.compiled,
            unit[rows],
            np.ascontiguousarray(unit[rows] @ dictionary.atoms.T),
            np.full(len(unit[rows]), settings["target"]),
            None if barred is None else barred[rows],
        )
        threads = thread_count(n_jobs)
        if solver in ("l1", "lasso"):
            parts.append(_core.sparse_codes.l1_codes(*args, solver == "l1", positive, steps, threads))
        else:
            most = min(n_atoms, d) if n_nonzero is None else int(n_nonzero)
            parts.append(_core.sparse_codes.greedy_codes(*args, most, solver == "order-recursive", positive, threads))
    return _joined(parts, norms, dictionary.norms, checked=tol is not None or solver == "l1")


def check_settings(
    solver: str, n_nonzero: int | None, tol: float | None, alpha: float | None, positive: bool
) -> dict[str, Any]:
    """Check that the settings fit the solver; return the residual or λ that ends the search."""
    check_choice("solver", solver, SOLVERS)
    check_flag("positive", positive)
    greedy = solver in ("omp", "order-recursive")
    if n_nonzero is not None:
        check_count("n_nonzero", n_nonzero)
        if not greedy:
            raise ValueError(f"n_nonzero is for solver='omp' and 'order-recursive'; {solver!r} ends at tol or alpha")
    for name, value, fits in (("tol", tol, solver != "lasso"), ("alpha", alpha, solver == "lasso")):
        if value is not None:
            if not fits:
                raise ValueError(f"{name} has no meaning for solver={solver!r}")
            check_positive(name, value)
    if positive and solver == "order-recursive":
        raise ValueError("positive=True is for solver='omp', 'l1' and 'lasso': 'order-recursive' has no such form")
    if greedy and n_nonzero is None and tol is None:
        raise ValueError(f"solver={solver!r} needs n_nonzero, tol or both")
    if solver == "l1" and tol is None:
        raise ValueError("solver='l1' needs tol, the residual as a share of the signal's norm")
    if solver == "lasso" and alpha is None:
        raise ValueError("solver='lasso' needs alpha")
    # A signal of unit length may be longer than 1 by rounding.
    return {"target": ((alpha if solver == "lasso" else tol) or 0.0) * (1 + 1e-12)}


def _unit_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Norms, and rows of norm 1; rows that are 0 stay so. Largest entries first, so that squares do not overflow."""
    largest = np.abs(rows).max(axis=1, initial=0.0)
    scaled = rows / np.where(largest > 0, largest, 1.0)[:, None]
    lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    return largest * lengths, np.ascontiguousarray(scaled / np.where(lengths > 0, lengths, 1.0)[:, None])


def _joined(parts: list[Any], signal_norms: np.ndarray, atom_norms: np.ndarray, checked: bool) -> SparseCodes:
    def column(i: int, dtype: type) -> np.ndarray:
        return np.concatenate([part[i] for part in parts] or [np.zeros(0)]).astype(dtype, copy=False)

    atoms, values, status = column(1, np.int64), column(2, np.float64), column(7, np.int64)
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part[0]) for part in parts] or [[]]))])
    rows = np.repeat(np.arange(len(signal_norms)), np.diff(indptr).astype(np.int64))
    with np.errstate(over="ignore"):
        entries = values * (signal_norms[rows] / atom_norms[atoms])
    if not np.isfinite(entries).all():
        row = int(rows[np.flatnonzero(~np.isfinite(entries))[0]])
        raise ValueError(f"the code of row {row} overflows: it is too long for these atoms; scale rows and atoms alike")
    return SparseCodes(
        codes=sp.csr_matrix(
            (entries, atoms, indptr.astype(np.int64)),
            (len(signal_norms), len(atom_norms)),
        ),
        residuals=column(3, np.float64),
        penalties=column(4, np.float64),
        gaps=column(5, np.float64),
        n_iter=column(6, np.int64),
        reached=(status & _UNREACHED == 0) if checked else np.ones(len(signal_norms), bool),
        finished=status & _STEP_LIMIT == 0,
    )
