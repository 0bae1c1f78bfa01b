"""Rational kernels: the similarity of two strings according to a transducer.

    k(x, z) = ψ([[T ∘ T⁻¹]](x, z)) = ψ(Σ_y [[T]](x, y) [[T]](z, y))

Either the outputs y of every string are enumerated once with their weights, or T ∘ T⁻¹ runs on every pair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_choice
from mercer.kernels._keyed import KeyedRows, matrices
from mercer.kernels.base import INDEFINITE, PD, Kernel, Work, mirrored
from mercer.kernels.transducers import Transducer

__all__ = ["Rational"]

METHODS = ("auto", "features", "pairs")
MOST_PREFIXES = 1 << 16  # of the outputs of one string, where they are listed
STRINGS_AT_ONCE = 256  # strings, and about how many steps, of one call into compiled code: it cannot be interrupted
STEPS_AT_ONCE = 1 << 28
# Sums of powers with coefficients of at least 0: positive definite kernels stay positive definite.
KEEP_DEFINITE = (np.exp, np.expm1, np.sinh, np.cosh, np.square, np.positive)


class _Strings:
    """Encoded strings, and the weights of their outputs where these were listed; a prepared collection."""

    def __init__(self, offsets: np.ndarray, symbols: np.ndarray, rows: KeyedRows | None) -> None:
        self.offsets = offsets
        self.symbols = symbols
        self.rows = rows

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, cut: slice) -> _Strings:
        start, stop, step = cut.indices(len(self))
        if step != 1:
            raise ValueError("strings are cut with a step of 1")
        stop = max(start, stop)
        rows = None if self.rows is None else self.rows[start:stop]
        return _Strings(self.offsets[start : stop + 1], self.symbols, rows)


class Rational(Kernel):
    """The kernel of strings defined by a transducer: k(x, z) = ψ(Σ_y [[T]](x, y) [[T]](z, y)).

    With `Transducer.ngram` this is the n-gram kernel, with `Transducer.mismatch` and `Transducer.gappy` the mismatch
    and gappy kernels. Your own transducer can compare any features of strings.

    Parameters
    ----------
    transducer : Transducer
        T, over the real semiring unless ``make_pd=False``.
    psi : callable, optional
        ψ, applied to matrices; by default the values are unchanged. The kernel counts as positive definite with
        ``np.exp``, ``np.expm1``, ``np.sinh``, ``np.cosh`` and ``np.square``, and as indefinite with all others.
    make_pd : bool, default=True
        T ∘ T⁻¹, which is positive definite for any T. With False the kernel is ψ([[T]](x, z)) itself: [[T]] must be
        symmetric, and the kernel counts as indefinite.
    method : {"auto", "features", "pairs"}, default="auto"
        ``"features"`` enumerates the outputs of every string with their weights, if these are finite in number;
        ``"pairs"`` runs T ∘ T⁻¹ on every pair, in time ``|x| |z|`` times the number of its arcs; ``"auto"`` uses
        ``"features"`` if no string has more than 65,536 prefixes of outputs.

    References
    ----------
    .. [Cortes2004] C. Cortes, P. Haffner and M. Mohri. Rational kernels: theory and algorithms. Journal of Machine
       Learning Research 5, 2004.

    Examples
    --------
    >>> from mercer.kernels import Rational, Transducer
    >>> k = Rational(Transducer.ngram(3, "AB"))
    >>> k(["ABABA", "BABAB"])
    array([[5., 4.],
           [4., 5.]])
    >>> k.features(["ABABA", "BABAB"]).toarray().shape
    (2, 2)
    """

    def __init__(
        self,
        transducer: Transducer,
        psi: Callable[[np.ndarray], np.ndarray] | None = None,
        make_pd: bool = True,
        method: str = "auto",
    ) -> None:
        self.transducer = transducer
        self.psi = psi
        self.make_pd = make_pd
        self.method = method

    @property
    def definiteness(self) -> str:
        """Return ``"pd"`` for T ∘ T⁻¹ with a ψ that preserves definiteness."""
        return PD if self.make_pd and (self.psi is None or self.psi in KEEP_DEFINITE) else INDEFINITE

    @property
    def has_features(self) -> bool:  # type: ignore[override]
        """Return whether the outputs can be enumerated."""
        return self.psi is None and self._lists_outputs()

    def _lists_outputs(self) -> bool:
        T = self.transducer
        usable = isinstance(T, Transducer) and T.semiring == "real" and self.make_pd and self.method != "pairs"
        return usable and T._writes_finitely()

    def _check_params(self) -> None:
        T = self.transducer
        if not isinstance(T, Transducer):
            raise ValueError(f"transducer must be a Transducer, got {T!r}")
        T._check_complete()
        if not isinstance(self.make_pd, (bool, np.bool_)):
            raise ValueError(f"make_pd must be True or False, got {self.make_pd!r}")
        if self.psi is not None and not callable(self.psi):
            raise ValueError(f"psi must be a function of matrices or None, got {self.psi!r}")
        check_choice("method", self.method, METHODS)
        if T.semiring != "real" and self.make_pd:
            raise ValueError(
                f"a {T.semiring} transducer defines no positive definite kernel: use the real semiring, or "
                "make_pd=False for its weights as they are"
            )
        if self.method == "features" and not self._lists_outputs():
            reason = "a string has infinitely many outputs" if self.make_pd else "make_pd=False has no features"
            raise ValueError(f"method='features' cannot be used: {reason}; use 'auto' or 'pairs'")

    # ------------------------------------------------------------------ matrices

    def _prepare(self, X: Any) -> _Strings:
        offsets, symbols = self.transducer._encoded(X, "string")
        rows = self._outputs(offsets, symbols) if self._lists_outputs() else None
        return _Strings(offsets, symbols, rows)

    def _outputs(self, offsets: np.ndarray, symbols: np.ndarray) -> KeyedRows | None:
        machine = self.transducer._machine()
        parts = []
        for start in range(0, max(1, len(offsets) - 1), STRINGS_AT_ONCE):
            some = offsets[start : start + STRINGS_AT_ONCE + 1]
            made = _core.kernels.transducer_outputs(machine, some, symbols, MOST_PREFIXES)
            if made is None:
                if self.method == "features":
                    raise ValueError(
                        f"a string has more than {MOST_PREFIXES} prefixes of outputs: use method='pairs' or 'auto'"
                    )
                return None
            parts.append(made)
        counts = np.concatenate([np.diff(part[0]) for part in parts])
        rows = KeyedRows(
            np.concatenate([[0], np.cumsum(counts)]),
            np.concatenate([part[1] for part in parts]),
            np.concatenate([part[2] for part in parts]),
        )
        if not np.isfinite(rows.values).all():
            raise OverflowError("weights of outputs are too large for float64: scale the arcs of the transducer")
        return rows

    def _gram(self, A: _Strings, B: _Strings | None, work: Work) -> np.ndarray:
        if A.rows is not None and (B is None or B.rows is not None):
            K = A.rows.gram(None if B is None else B.rows, work)
        else:
            K = self._by_pairs(A, B, work)
        return self._transformed(K)

    def _diag(self, A: _Strings, work: Work) -> np.ndarray:
        if A.rows is not None:
            return self._transformed(A.rows.diag())
        return np.array([self._gram(A[i : i + 1], None, work)[0, 0] for i in range(len(A))])

    def _features(self, parts: list[_Strings]) -> list[Any]:
        rows = [part.rows for part in parts]
        if any(row is None for row in rows):
            raise ValueError(f"a string has more than {MOST_PREFIXES} prefixes of outputs: there are too many features")
        return matrices([row for row in rows if row is not None])

    def _by_pairs(self, A: _Strings, B: _Strings | None, work: Work) -> np.ndarray:
        """Rows at a time, so that a long computation can be interrupted."""
        T = self.transducer._with_itself() if self.make_pd else self.transducer
        machine, other = T._machine(), A if B is None else B
        K = np.empty((len(A), len(other)))
        steps = np.diff(A.offsets).max(initial=1) * float(other.offsets[-1] - other.offsets[0] + len(other))
        at_once = int(max(1, STEPS_AT_ONCE // (max(1, len(T._arcs)) * max(1.0, steps))))
        symmetric = B is None and self.make_pd
        for start in range(0, len(A), at_once):
            stop = min(len(A), start + at_once)
            # Of a symmetric matrix the rows up to the diagonal; the rest is a copy.
            right = other[:stop] if symmetric else other
            block = np.empty((stop - start, len(right)))
            _core.kernels.transducer_weights(
                machine, A.offsets[start : stop + 1], A.symbols, right.offsets, right.symbols, block, work.threads
            )
            K[start:stop, : len(right)] = block
        if symmetric:
            return mirrored(K)
        if B is None:
            self._check_symmetric(K)
            return mirrored(K)
        return K

    @staticmethod
    def _check_symmetric(K: np.ndarray) -> None:
        with np.errstate(invalid="ignore"):
            uneven = (K != K.T) & ~np.isclose(K, K.T, rtol=1e-9, atol=0.0)
        if uneven.any():
            i, j = (int(k) for k in np.argwhere(uneven)[0])
            raise ValueError(
                f"[[T]] is not symmetric: {K[i, j]:g} for strings {i} and {j}, {K[j, i]:g} the other way round; use "
                "make_pd=True"
            )

    def _transformed(self, K: np.ndarray) -> np.ndarray:
        if self.psi is not None:
            made = np.asarray(self.psi(K), np.float64)
            if made.shape != K.shape:
                raise ValueError(f"psi must keep the shape of a matrix: {K.shape} became {made.shape}")
            K = made
        if not np.isfinite(K).all():
            raise ValueError(
                "values of the kernel are not finite (no path, or weights that are too large): scale the arcs, or pass "
                "a psi that maps them to numbers"
            )
        return K
