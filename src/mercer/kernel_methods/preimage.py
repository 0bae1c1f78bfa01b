"""Pre-images: the object whose features are nearest to a point of feature space.

y* = argmin_y ‖φ(y) − t‖²,   t = Σ_i γ_i φ(y_i):        minimise k(y, y) − 2 Σ_i γ_i k(y_i, y)

among candidates, by a fixed-point iteration for Gaussian kernels, or by a search over strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._state.saved import Fields, Objects, Saved
from mercer._validation import check_choice, check_count, check_positive
from mercer.kernel_methods.collections import count, objects
from mercer.kernels.approximations import chosen_objects
from mercer.kernels.base import Kernel, check_kernel
from mercer.kernels.vectors import Gaussian

__all__ = ["PreImage"]

SEEDS = 512  # strings that a search begins with, at most, where all strings of a length are tried
PATIENCE = 3  # characters that may be added without a gain


class PreImage(Saved, Estimator):
    """Map points of feature space back to objects.

    Parameters
    ----------
    kernel : Kernel
        The kernel of the feature space.
    method : {"candidates", "fixed_point", "beam"} or callable, default="candidates"
        ``"candidates"``: the best of the training objects, or of those passed to `decode`. ``"fixed_point"``: for
        `Gaussian` kernels of vectors, z ← Σ γ_i k(z, y_i) y_i / Σ γ_i k(z, y_i), starting from the best object.
        ``"beam"``: for kernels of strings: beam search with strings that grow at both ends, then single edits of the
        best strings. A callable ``f(kernel, points, coef)`` returns an object itself.
    alphabet : sequence of str, optional
        Characters for ``"beam"``; by default those of the objects.
    beam_width : int, default=10
        Number of strings that ``"beam"`` keeps.
    max_length : int, optional
        Maximum length of strings of ``"beam"``; by default that of the longest object.
    max_iter : int, default=100
        Maximum steps of ``"fixed_point"``, and rounds of edits of ``"beam"``.
    tol : float, default=1e-8
        ``"fixed_point"`` stops when no coordinate moves by more than ``tol`` times the largest one.

    Attributes
    ----------
    points_ : collection
        The objects y_i.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> from mercer.kernel_methods import PreImage
    >>> decoder = PreImage(Linear()).fit([[0.0], [1.0], [4.0]])
    >>> decoder.decode([[0.5, 0.0, 0.5]])[0]  # nearest to (0 + 4) / 2
    [1.0]
    >>> decoder.decode([[0.5, 0.0, 0.5]], candidates=[[2.5], [3.0]])[0]
    [2.5]
    """

    saved = Fields(points_=Objects())

    def __init__(
        self,
        kernel: Kernel,
        method: str | Callable[[Kernel, Any, np.ndarray], Any] = "candidates",
        alphabet: Sequence[str] | None = None,
        beam_width: int = 10,
        max_length: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-8,
    ) -> None:
        self.kernel = kernel
        self.method = method
        self.alphabet = alphabet
        self.beam_width = beam_width
        self.max_length = max_length
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, points: Any, y: Any = None) -> PreImage:
        """Store the objects whose images span the points of feature space.

        Parameters
        ----------
        points : collection of objects
            What the kernel takes.
        y : ignored

        Returns
        -------
        self : PreImage
        """
        check_kernel("kernel", self.kernel)._check_params()
        if not callable(self.method):
            check_choice("method", self.method, ("candidates", "fixed_point", "beam"))
        check_count("beam_width", self.beam_width)
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol)
        points = objects("points", points)
        if self.method == "fixed_point":
            if not isinstance(self.kernel, Gaussian):
                raise ValueError(f"method='fixed_point' is for Gaussian kernels of vectors, got {self.kernel!r}")
            points = np.asarray(points, np.float64)
            if points.ndim != 2:
                raise ValueError(f"points must be a matrix for method='fixed_point', got shape {points.shape}")
        if self.method == "beam":
            self._check_strings(points)
        self._norms = self.kernel.diag(points)
        self.points_ = points
        return self

    def _check_state(self) -> None:
        self.fit(self.points_)  # it checks the parameters and the points

    def _check_strings(self, points: Any) -> None:
        if not all(isinstance(point, str) for point in points):
            raise ValueError("points must be strings for method='beam'")
        letters = sorted(set("".join(points))) if self.alphabet is None else list(self.alphabet)
        if not letters or not all(isinstance(letter, str) and len(letter) == 1 for letter in letters):
            raise ValueError(f"alphabet must be a sequence of single characters, got {self.alphabet!r}")
        self._letters = letters
        longest = max(len(point) for point in points)
        self._longest = longest if self.max_length is None else check_count("max_length", self.max_length)

    def decode(self, coef: Any, candidates: Any = None) -> Any:
        """Return the pre-images of Σ_i coef[t, i] φ(points_i), one for each row t.

        Parameters
        ----------
        coef : array of shape (n_targets, n_points)
            Coefficients γ.
        candidates : collection, optional
            Objects to choose among, instead of ``method``.

        Returns
        -------
        collection of n_targets objects
            An array if the objects are rows of an array, else a list.
        """
        check_is_fitted(self)
        n = count(self.points_)
        coef = np.asarray(coef, np.float64)
        if coef.ndim != 2 or coef.shape[1] != n:
            raise ValueError(f"coef must have a row for each target and {n} columns, got shape {coef.shape}")
        if not np.isfinite(coef).all():
            raise ValueError("coef must be finite")
        if candidates is not None:
            candidates = objects("candidates", candidates)
            return chosen_objects(candidates, self._nearest(coef, candidates))
        if callable(self.method):
            return [self.method(self.kernel, self.points_, row) for row in coef]
        if self.method == "beam":
            return [_StringSearch(self, row).run() for row in coef]
        nearest = self._nearest(coef, None)
        if self.method == "candidates":
            return chosen_objects(self.points_, nearest)
        return np.array([self._fixed_point(row, self.points_[i]) for row, i in zip(coef, nearest, strict=True)])

    def distances(self, coef: Any, Y: Any) -> np.ndarray:
        """Return ‖φ(y) − t‖² for each target (row) and object y of Y (column)."""
        coef = np.asarray(coef, np.float64)
        own = np.einsum("ti,ij,tj->t", coef, self.kernel(self.points_), coef, optimize=True)
        crossed = coef @ self.kernel(self.points_, Y)
        return np.maximum(own[:, None] + self.kernel.diag(Y)[None, :] - 2.0 * crossed, 0.0)

    def _nearest(self, coef: np.ndarray, candidates: Any) -> np.ndarray:
        if candidates is None:
            norms, crossed = self._norms, coef @ self.kernel(self.points_)
        else:
            norms, crossed = self.kernel.diag(candidates), coef @ self.kernel(self.points_, candidates)
        return (norms[None, :] - 2.0 * crossed).argmin(axis=1)

    def _fixed_point(self, coef: np.ndarray, start: np.ndarray) -> np.ndarray:
        z, scale = start, max(float(np.abs(self.points_).max()), 1e-300)
        best, best_value = z, -np.inf
        for _ in range(int(self.max_iter)):
            weights = coef * self.kernel([z], self.points_)[0]
            total = weights.sum()  # ⟨φ(z), t⟩, which the pre-image makes as large as it can: k(z, z) is 1
            if total > best_value:
                best, best_value = z, total
            if total <= 1e-12 * np.abs(weights).sum():
                break  # t points away from every object near z: the iteration would divide by nothing
            new = weights @ self.points_ / total
            moved = np.abs(new - z).max()
            z = new
            if moved <= self.tol * scale:
                break
        final = float((coef * self.kernel([z], self.points_)[0]).sum())
        return z if final > best_value else best


class _StringSearch:
    """One target of a search over strings."""

    def __init__(self, decoder: PreImage, coef: np.ndarray) -> None:
        self.decoder = decoder
        self.coef = coef
        self.known: dict[str, float] = {}

    def run(self) -> str:
        points = sorted(set(self.decoder.points_))
        self._score(points)
        self._grow(self._seeds(points))
        self._edit()
        return self._best(1)[0]

    def _score(self, strings: Iterable[str]) -> list[str]:
        """Remember k(y, y) − 2 Σ γ_i k(y_i, y) of strings; returns those that are new."""
        new = sorted({s for s in strings if s not in self.known})
        if new:
            kernel = self.decoder.kernel
            values = kernel.diag(new) - 2.0 * (self.coef @ kernel(self.decoder.points_, new))
            self.known.update(zip(new, values.tolist(), strict=True))
        return new

    def _best(self, number: int, among: Iterable[str] | None = None) -> list[str]:
        strings = self.known if among is None else among
        return sorted(strings, key=lambda s: (round(self.known[s], 10), len(s), s))[:number]

    def _seeds(self, points: list[str]) -> list[str]:
        """All strings of the largest length of which there are not too many, and longer pieces of the objects."""
        letters, length = self.decoder._letters, 1
        while len(letters) ** (length + 1) <= SEEDS and len(letters) > 1 and length < self.decoder._longest:
            length += 1
        pieces = {p[i : i + length + 1] for p in points for i in range(len(p) - length)}
        seeds = ["".join(s) for s in product(letters, repeat=length)] if len(letters) ** length <= SEEDS else letters
        return [s for s in {*seeds, *pieces} if len(s) <= self.decoder._longest]

    def _grow(self, seeds: list[str]) -> None:
        self._score(seeds)
        beam = self._best(self.decoder.beam_width, seeds)
        waited = 0
        while beam and waited < PATIENCE:
            before = self.known[self._best(1)[0]]
            longer = {s + c for s in beam for c in self.decoder._letters}
            longer |= {c + s for s in beam for c in self.decoder._letters}
            longer = {s for s in longer if len(s) <= self.decoder._longest}
            self._score(longer)
            beam = self._best(self.decoder.beam_width, longer)
            waited = 0 if self.known[self._best(1)[0]] < before else waited + 1

    def _edit(self) -> None:
        for _ in range(int(self.decoder.max_iter)):
            before = self._best(1)
            edited = {e for s in self._best(self.decoder.beam_width) for e in self._neighbours(s)}
            if not self._score(edited) or self._best(1) == before:
                return

    def _neighbours(self, s: str) -> set[str]:
        """Strings that one character put in, taken out or replaced, or one cut and exchange, makes of s."""
        letters = self.decoder._letters
        neighbours = {s[:i] + s[i + 1 :] for i in range(len(s))}
        neighbours |= {s[:i] + c + s[i + 1 :] for i in range(len(s)) for c in letters}
        if len(s) < self.decoder._longest:
            neighbours |= {s[:i] + c + s[i:] for i in range(len(s) + 1) for c in letters}
        neighbours |= {s[i:] + s[:i] for i in range(1, len(s))}
        return {e for e in neighbours if e}
