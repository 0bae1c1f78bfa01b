"""Circulant binary embedding: b(x) = sign(R D x) with R = circ(r), in O(d log d) time and O(d) memory.

    R[i, j] = r[(i − j) mod d],     R x = r ⊛ x = F⁻¹(F(r) ∘ F(x)),     D = diag(±1)

Learning minimises

    min over B ∈ {−1, +1}, r of   ‖B − X D Rᵀ‖² + λ ‖R Rᵀ − I‖² + μ [Σ_similar ‖R D (x_i − x_j)‖² − Σ_dissimilar ‖…‖²]

For fixed r, B is a sign. For fixed B, the problem in r splits into one for each frequency, with z = F(r)_l,

    min  a |z|² + λ d (|z|² − 1)² − 2 Re(conj(c) z),     a = Σ_i |F(x_i)|² + μ A,     c = Σ_i conj(F(x_i)) F(B_i)

whose minimiser is z = p c / |c|, p ≥ 0 the root of 2 λ d p³ + (a − 2 λ d) p = |c|: there is no step size, and the
objective never rises. Frequencies 0 and d/2 are real; the same formula applies.

With fewer bits than outputs, the remaining outputs need targets. B_ij = 0 moves variance into the bits. This is good if
the spectrum of the data is flat. If a few directions hold most of the variance, as in images, all bits depend on these,
and codes are worse than random ones. B_ij = ±1 keeps R close to a rotation of the data, whose first outputs are used.
If one direction holds nearly all of the variance, even that spreads it over all bits, which then carry little other
information. With fewer rows than outputs, learning overfits. `rest` chooses the targets, by default by the neighbours
that codes of held-out rows keep among the training rows. Learned codes are used only if they are significantly better
than random ones.
"""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np
import scipy.fft
from sklearn.utils import check_random_state

from mercer._arrays import compiled, is_numpy, on_device_of, to_numpy
from mercer._state.saved import Fields, Floats, Ints, Objects, Transient, check_shapes
from mercer._validation import check_choice, check_count, check_positive, check_weights, thread_count
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning
from mercer.retrieval._codes import SignCodes, check_optional_positive, on_device
from mercer.retrieval.circulant_source import plan_for

__all__ = ["CirculantEmbedding"]

_MARGIN = 2.0  # standard errors by which learned codes must be better than random ones


class CirculantEmbedding(SignCodes):
    """Binary codes by circulant projections: long codes of long vectors, in O(d log d).

    b(x) = sign(r ⊛ (D x)), its first ``n_bits`` entries. With more bits than features, several circulants with their
    own signs give d bits each.

    Parameters
    ----------
    n_bits : int, default=256
        Bits of a code.
    method : {"random", "learned"}, default="random"
        r is normal, or learned from data by alternating optimisation of bits and frequencies.
    alpha : float, default=1.0
        Weight λ > 0 of ‖R Rᵀ − I‖², which keeps bits uncorrelated. Results hardly depend on it.
    pair_weight : float, default=1.0
        Weight μ ≥ 0 of the pairs passed to `fit`.
    rest : {"auto", "sign", "zero"}, default="auto"
        For learned codes with fewer bits than features: the targets of outputs beyond the bits. "sign": near ±1 like
        the bits; "zero": near 0, so that variance moves into the bits. "auto" learns both from four fifths of the rows,
        uses the other rows as queries against these, and then learns from all rows with the setting that kept more of
        the queries' neighbours. If that is not better than a random circulant by two standard errors, the circulant
        stays random. With pairs, or with fewer than 300 rows, "auto" is "sign".
    max_iter : int, default=10
        Maximum number of iterations.
    tol : float, default=0.0
        Learning ends when an iteration lowers the objective by less than this share.
    sign_flip : bool, default=True
        Whether inputs get random signs D. Without them codes of smooth inputs are much noisier.
    random_state : int, RandomState or None, default=None
        Seed of r and D.
    n_jobs : int, optional
        Threads; −1 for all cores. Codes do not depend on it.

    Attributes
    ----------
    r_ : ndarray of shape (n_circulants, n_features)
        First columns of the circulants.
    signs_ : ndarray of int8 of shape (n_circulants, n_features)
        The signs D.
    history_ : list of list of float
        For a learned embedding: the objective of each circulant at the start and after each iteration; empty if it
        stayed random.
    n_iter_ : int
        Maximum number of iterations over all circulants; 1 for random ones.
    n_features_in_ : int
        Features of the input.

    Notes
    -----
    Codes are computed in the type of the input, in compiled code if the number of features is a product of primes up to
    13, otherwise by `scipy.fft`. The compiled code processes rows in pairs, so the sign of a projection within rounding
    error of zero may depend on the other row. For learning, centre rows and scale them to length 1.

    References
    ----------
    .. [Yu2014] F. X. Yu, S. Kumar, Y. Gong and S.-F. Chang. Circulant binary embedding. ICML, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.retrieval import CirculantEmbedding, hamming_distances
    >>> x = np.random.default_rng(0).normal(size=(1, 4096)).astype(np.float32)
    >>> X = np.concatenate([x, 2 * x, -x])
    >>> codes = CirculantEmbedding(n_bits=4096, random_state=0).fit(X).transform(X)
    >>> codes.shape, hamming_distances(codes)[0].tolist()
    ((3, 512), [0, 0, 4096])
    """

    r_: np.ndarray
    history_: list[list[float]]
    _plans: dict[Any, Any]

    version = 2  # n_iter, lambda_ and mu are max_iter, alpha and pair_weight
    saved = SignCodes.saved | Fields(
        r_=Floats(None, None),
        signs_=Ints(None, None, low=-1, below=2),
        history_=Objects(),
        _plans=Transient(dict),
    )

    def __init__(
        self,
        n_bits: int = 256,
        method: str = "random",
        alpha: float = 1.0,
        pair_weight: float = 1.0,
        rest: str = "auto",
        max_iter: int = 10,
        tol: float = 0.0,
        sign_flip: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.method = method
        self.alpha = alpha
        self.pair_weight = pair_weight
        self.rest = rest
        self.max_iter = max_iter
        self.tol = tol
        self.sign_flip = sign_flip
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: Any = None, similar: Any = None, dissimilar: Any = None, sample_weight: Any = None
    ) -> CirculantEmbedding:
        """Draw the circulants and, with ``method="learned"``, fit them to X.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Vectors. A random embedding uses only the number of columns.
        y : None
            Not used.
        similar, dissimilar : array of int of shape (n_pairs, 2), optional
            Rows of X that should have near codes, and rows that should not: the semi-supervised form.
        sample_weight : array of n numbers of at least 0, optional
            For learned circulants: a row of weight 2 counts as two.

        Returns
        -------
        CirculantEmbedding
            Itself.
        """
        lambda_, mu, rounds, tol = self._check_params()
        X, _ = self._checked(X, reset=True)
        n = X.shape[0]
        pairs = [_checked_pairs(name, p, n) for name, p in (("similar", similar), ("dissimilar", dissimilar))]
        if self.method == "random" and (similar is not None or dissimilar is not None):
            raise ValueError('pairs are for method="learned": a random embedding cannot use them')
        weights = check_weights(sample_weight, n)
        self._draw()
        if self.method == "learned":
            if not (X != 0).any():
                warn_caller("all rows of X are zero: nothing to learn from", ConvergenceWarning)
            for c in range(len(self.r_)):
                start = self.r_[c] / np.sqrt(X.shape[1])
                self.r_[c], history = self._learned(c, X, start, lambda_, mu, pairs, rounds, tol, weights)
                self.history_.append(history)
        return self

    @property
    def n_iter_(self) -> int:
        return max([1, *(len(history) - 1 for history in self.history_)])

    def partial_fit(self, X: Any, y: Any = None) -> CirculantEmbedding:
        """Learn from one more batch of rows; a random embedding is drawn in the first call and then fixed.

        The sums a and c over all rows so far are stored, O(d) numbers, where each batch uses the bits of the circulant
        at that time. Any bits bound the objective from above, so each call lowers an upper bound of the objective of
        all rows. `fit` and model files do not store these sums: the first call after one of them starts from the bits
        of the current circulant, and learns from the rows of that call onwards.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Vectors.
        y : None
            Not used.

        Returns
        -------
        CirculantEmbedding
            Itself. ``history_`` holds the bound for a row and circulant after each call.
        """
        lambda_ = self._check_params()[0]
        first = not hasattr(self, "r_")
        X, _ = self._checked(X, reset=first)
        if not first and is_numpy(X) and not np.isfinite(X).all():  # no compiled loop looks at it here
            raise ValueError("X contains NaN or infinity")
        if first:
            self._draw()
        if self.method == "random":
            return self
        if not hasattr(self, "_sums"):
            self._sums: list[dict[str, Any]] = [{"a": 0.0, "c": 0.0, "n": 0} for _ in self.r_]
            self.history_ = [[] for _ in self.r_]
            self.r_ = self.r_ / np.sqrt(X.shape[1])
        for c, kept in enumerate(self._sums):
            learner = self._learner(c, X, lambda_)
            learner.rest = 0.0 if self.rest == "zero" else 1.0
            z = learner.real_ends(scipy.fft.rfft(self.r_[c]))
            kept["c"] = kept["c"] + learner.correlation(z)
            kept["a"], kept["n"] = kept["a"] + learner.a, kept["n"] + X.shape[0]
            z = learner.real_ends(frequency_step(kept["a"], kept["c"], lambda_ * learner.d, z))
            learner.a, learner.n = kept["a"], kept["n"]
            self.r_[c] = scipy.fft.irfft(z, n=learner.d)
            self.history_[c].append(learner.objective(z, kept["c"]) / kept["n"])
        self._plans = {}
        self._forget_copies()
        return self

    def _check_params(self) -> tuple[float, float, int, float]:
        """(λ, μ, rounds, tol)."""
        check_count("n_bits", self.n_bits)
        check_choice("method", self.method, ("random", "learned"))
        check_choice("rest", self.rest, ("auto", "sign", "zero"))
        lambda_, mu = check_positive("alpha", self.alpha), check_optional_positive("pair_weight", self.pair_weight)
        rounds, tol = check_count("max_iter", self.max_iter), check_optional_positive("tol", self.tol)
        check_choice("sign_flip", self.sign_flip, (True, False))
        thread_count(self.n_jobs)
        return lambda_, mu, rounds, tol

    def _draw(self) -> None:
        """Random circulants and signs."""
        random = check_random_state(self.random_state)
        d = self.n_features_in_
        count = -(-self.n_bits // d)
        self.r_ = random.standard_normal((count, d))
        self.signs_ = np.ones((count, d), np.int8)
        if self.sign_flip:
            self.signs_ -= 2 * random.randint(0, 2, size=(count, d), dtype=np.int8)
        self._plans = {}
        self.history_ = []
        self._forget_copies()
        if hasattr(self, "_sums"):
            del self._sums

    def _learner(self, c: int, X: Any, lambda_: float, weights: np.ndarray | None = None) -> _Learner:
        return _Learner(X, self.signs_[c], self._part(c), lambda_, thread_count(self.n_jobs), weights)

    def _learned(
        self,
        c: int,
        X: Any,
        r: np.ndarray,
        lambda_: float,
        mu: float,
        pairs: list[np.ndarray],
        rounds: int,
        tol: float,
        weights: np.ndarray | None,
    ) -> tuple[np.ndarray, list[float]]:
        """What circulant c learns from X, starting from r, and the history."""
        n, d = X.shape
        few = n < 300 or d > 1 << 19  # or too long for as many rows as it takes to tell
        rest = "sign" if self.rest == "auto" and (any(map(len, pairs)) or few) else self.rest
        if rest == "auto":
            held = np.arange(n) % 5 == 0
            own = None if weights is None else weights[~held]
            part, tried = self._learner(c, _taken(X, np.flatnonzero(~held)), lambda_, own), {"start": r}
            for rest in ("sign", "zero") if part.bits < part.d else ("sign",):
                part.rest = 0.0 if rest == "zero" else 1.0
                tried[rest] = part.run(r, rounds, tol)[0]
            kept = part.kept_neighbours(_taken(X, np.flatnonzero(held)), list(tried.values()))
            best = 1 + int(np.argmax(kept[1:].mean(axis=1)))
            gain = kept[best] - kept[0]
            if gain.mean() <= _MARGIN * gain.std() / np.sqrt(len(gain)):
                return r, []
            rest = list(tried)[best]
        whole = self._learner(c, X, lambda_, weights)
        whole.add_pairs(X, mu, pairs)
        whole.rest = 0.0 if rest == "zero" else 1.0
        return whole.run(r, rounds, tol)

    def _part(self, c: int) -> int:
        """Bits that circulant c gives."""
        return min(self.n_features_in_, self.n_bits - c * self.n_features_in_)

    def _plan(self, c: int, dtype: np.dtype) -> Any:
        """The compiled convolution with circulant c, made once."""
        if (c, dtype) not in self._plans:
            core = compiled()
            kind = core.Circulant32 if dtype == np.float32 else core.Circulant64
            signs = np.ascontiguousarray(self.signs_[c].astype(dtype)) if self.sign_flip else None
            self._plans[c, dtype] = kind(np.ascontiguousarray(self.r_[c].astype(dtype)), signs)
        return self._plans[c, dtype]

    def _by_scipy(self, c: int, X: np.ndarray) -> np.ndarray:
        workers = thread_count(self.n_jobs)
        spectrum = scipy.fft.rfft(self.r_[c].astype(X.dtype))
        product = scipy.fft.rfft(X * self.signs_[c].astype(X.dtype), axis=1, workers=workers) * spectrum
        result = scipy.fft.irfft(product, n=X.shape[1], axis=1, workers=workers)
        result[~X.any(axis=1)] = 0
        return result[:, : self._part(c)]

    def _by_tensors(self, X: Any) -> Any:
        """All projections of a tensor, by the Fourier transforms of its library."""
        xp, kept, d = array_api_compat.array_namespace(X), self._like(X, self._numbers), X.shape[1]
        parts = []
        for c in range(len(self.r_)):
            product = xp.fft.rfft(X * kept["signs"][c, :] if self.sign_flip else X)
            product *= xp.fft.rfft(kept["r"][c, :])
            parts.append(xp.fft.irfft(product, n=d)[:, : self._part(c)])
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)

    def _numbers(self) -> dict[str, np.ndarray]:
        return {"r": self.r_, "signs": self.signs_.astype(np.float64)}

    def _has_loops(self, d: int) -> bool:
        """Whether there is a compiled convolution for this length."""
        return compiled() is not None and compiled().circulant_length(d)

    def _looks_itself(self) -> bool:
        return self._has_loops(self.n_features_in_)

    def _project(self, X: Any) -> Any:
        if not is_numpy(X):
            return self._by_tensors(X)
        parts = []
        for c in range(len(self.r_)):
            if self._has_loops(X.shape[1]):
                part = np.empty((len(X), self._part(c)), X.dtype)
                self._plan(c, X.dtype).project(X, part, thread_count(self.n_jobs))
            else:
                part = self._by_scipy(c, X)
            parts.append(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def _fused(self, X: Any) -> Any:
        """On a GPU, float32: one kernel, which reads X once and writes bits once."""
        if not (on_device(X) and X.is_cuda and X.ndim == 2 and len(self.r_) == 1 and X.shape[1] == self.r_.shape[1]):
            return None
        plan = plan_for(X.shape[1])
        if plan is None or str(X.dtype) != "torch.float32" or not len(X):
            return None
        import torch

        from mercer.retrieval import _cuda

        X = X.detach() if X.stride(1) == 1 else X.detach().contiguous()
        try:
            place = ("cuda", X.device)
            if place not in self._plans:
                self._plans[place] = _cuda.CodeTables(plan, self.r_[0], self.signs_[0], X.device)
            out = torch.empty((len(X), -(-self.n_bits // 8)), dtype=torch.uint8, device=X.device)
            self._plans[place].write(X, self.n_bits, out)
        except _cuda.KernelError as error:
            warn_caller(f"{error}: codes are computed by torch's own transforms", RuntimeWarning)
            return None
        if not self._plans[place].finite():
            if bool(torch.isfinite(X).all()):
                raise ValueError("numbers of X are so large that their sums overflow float32: scale X")
            raise ValueError("X contains NaN or infinity")
        return out

    def _codes(self, X: Any) -> Any:
        if not is_numpy(X) or len(self.r_) > 1 or not self._has_loops(X.shape[1]):
            return super()._codes(X)
        out = np.empty((len(X), -(-self.n_bits // 8)), np.uint8)
        rows = max(64, (1 << 25) // X.shape[1] // 64 * 64)  # a call of at most about a second
        for start in range(0, len(X), rows):
            block = X[start : start + rows]
            self._plan(0, X.dtype).codes(block, self.n_bits, out[start : start + rows], thread_count(self.n_jobs))
        return out

    def _back(self, signs: np.ndarray) -> np.ndarray:
        d = self.n_features_in_
        total = np.zeros((len(signs), d))
        for c in range(len(self.r_)):
            padded = np.zeros((len(signs), d))
            padded[:, : self._part(c)] = signs[:, c * d : c * d + self._part(c)]
            spectrum = np.conj(scipy.fft.rfft(self.r_[c])) * scipy.fft.rfft(padded, axis=1)
            total += scipy.fft.irfft(spectrum, n=d, axis=1) * self.signs_[c]
        return total

    def to_dense(self) -> np.ndarray:
        """Return the projection as a matrix of shape (n_bits, n_features), for tests and inspection.

        Returns
        -------
        ndarray
            R D, with a row for each bit.
        """
        self._check_fitted()
        d = self.n_features_in_
        shifts = (np.arange(d)[:, None] - np.arange(d)[None, :]) % d
        return np.concatenate([self.r_[c][shifts][: self._part(c)] * self.signs_[c] for c in range(len(self.r_))])

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_plans" in state:
            state["_plans"] = {}
        return state

    def _check_state(self) -> None:
        super()._check_state()
        blocks = -(-self.n_bits // self.n_features_in_)
        check_shapes(self, r_=(blocks, self.n_features_in_), signs_=(blocks, self.n_features_in_))
        if self.signs_.dtype != np.int8 or not (np.abs(self.signs_) == 1).all():
            raise ValueError(f"expected signs −1 and +1 of int8, found {self.signs_.dtype}")


def _taken(X: Any, rows: np.ndarray) -> Any:
    """Some rows of an array of any kind."""
    return array_api_compat.array_namespace(X).take(X, on_device_of(X, rows), axis=0)


def _checked_pairs(name: str, pairs: Any, n: int) -> np.ndarray:
    """Pairs of rows, perhaps none."""
    pair_array = np.zeros((0, 2), np.int64) if pairs is None else np.asarray(pairs)
    if pair_array.size == 0:
        return np.zeros((0, 2), np.int64)
    if pair_array.ndim != 2 or pair_array.shape[1] != 2 or pair_array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be integers of shape (pairs, 2), got {pair_array.dtype} of shape {pair_array.shape}"
        )
    if pair_array.min() < 0 or pair_array.max() >= n:
        raise ValueError(f"{name} must name rows 0 … {n - 1} of X, got {pair_array.min()} … {pair_array.max()}")
    return pair_array.astype(np.int64)


def frequency_step(a: np.ndarray, c: np.ndarray, weight: float, start: np.ndarray) -> np.ndarray:
    """Return the minimiser of a|z|² + weight (|z|² − 1)² − 2 Re(conj(c) z) for each frequency.

    z = p c/|c| with p the largest root of p³ + P p = Q, P = (a − 2 weight) / (2 weight), Q = |c| / (2 weight). Above
    that root the cubic is increasing and convex, so Newton's method from above converges to it monotonically. If c = 0
    all phases are optimal, and that of ``start`` is kept.
    """
    P, Q = (a - 2 * weight) / (2 * weight), np.abs(c) / (2 * weight)
    p = np.sqrt(np.maximum(-P, 0)) + np.cbrt(Q)
    for _ in range(100):
        slope = 3 * p**2 + P
        lower = np.where(slope > 0, p - (p**3 + P * p - Q) / np.where(slope > 0, slope, 1), p)
        lower = np.minimum(np.maximum(lower, 0), p)
        if np.array_equal(lower, p):
            break
        p = lower
    guide = np.where(np.abs(c) > 0, c, np.where(np.abs(start) > 0, start, 1))
    return p * guide / np.abs(guide)


class _Learner:
    """Alternates between bits and frequencies for one circulant, over the non-negative frequencies of real vectors.

    Sums over rows are taken where X lies; the frequencies themselves are NumPy's.
    """

    def __init__(
        self, X: Any, signs: np.ndarray, bits: int, lambda_: float, workers: int, weights: np.ndarray | None = None
    ) -> None:
        self.X, self.bits, self.lambda_ = X, bits, lambda_
        self.rest = 1.0  # the size of targets beyond the bits
        self.n_rows, self.d = X.shape
        self.n = self.n_rows if weights is None else float(weights.sum())
        self.weights = None if weights is None else on_device_of(X, weights)
        self.xp = array_api_compat.array_namespace(X)
        self.signs = on_device_of(X, signs.astype(np.float64))
        self.workers = {"workers": workers} if is_numpy(X) else {}
        self.fft = scipy.fft if is_numpy(X) else self.xp.fft
        self.rows = max(1, (1 << (22 if is_numpy(X) else 26)) // self.d)
        self.twice = np.full(self.d // 2 + 1, 2.0)  # frequency l stands for itself and for d − l
        self.twice[0] = 1.0
        if self.d % 2 == 0:
            self.twice[-1] = 1.0
        self.a = np.zeros(self.d // 2 + 1)
        for spectra, own in self.spectra():
            self.a += self.power(spectra, own)

    def add_pairs(self, X: Any, mu: float, pairs: list[np.ndarray]) -> None:
        """a += μ A for pairs of similar rows, and −μ A for those of dissimilar ones."""
        for sign, chosen in zip((mu, -mu), pairs, strict=True):
            for start in range(0, len(chosen), self.rows):
                left, right = (on_device_of(X, side.copy()) for side in chosen[start : start + self.rows].T)
                ends = [self.xp.astype(self.xp.take(X, side, axis=0), self.xp.float64) for side in (left, right)]
                self.a += sign * self.power(self.spectrum(ends[0] - ends[1]))

    def spectrum(self, X: Any) -> Any:
        return self.fft.rfft(X * self.signs, axis=1, **self.workers)

    def spectra(self) -> Any:
        """Spectra of some rows at a time, and a column of their weights."""
        for start in range(0, self.n_rows, self.rows):
            own = 1.0 if self.weights is None else self.weights[start : start + self.rows][:, None]
            yield self.spectrum(self.xp.astype(self.X[start : start + self.rows, :], self.xp.float64)), own

    def power(self, spectra: Any, weights: Any = 1.0) -> np.ndarray:
        return to_numpy(self.xp.sum(weights * self.xp.abs(spectra) ** 2, axis=0))

    def correlation(self, z: np.ndarray) -> np.ndarray:
        """c = Σ_i conj(F(x_i)) F(B_i) with the bits B of the circulant with spectrum z; beyond the bits, ± rest."""
        total, near = np.zeros(len(z), np.complex128), on_device_of(self.X, z)
        for spectra, own in self.spectra():
            H = self.fft.irfft(spectra * near, n=self.d, axis=1, **self.workers)
            B = 2.0 * self.xp.astype(H >= 0, self.xp.float64) - 1.0
            B[:, self.bits :] *= self.rest
            B = self.fft.rfft(B, axis=1, **self.workers)
            total += to_numpy(self.xp.sum(own * (self.xp.conj(spectra) * B), axis=0))
        return self.real_ends(total)

    def kept_neighbours(self, queries: Any, vectors: list[np.ndarray]) -> np.ndarray:
        """For each r and query, how many of its 10 nearest learned rows by angle are among the first by code.

        The mean over the first 10 and the first eighth of the learned rows, 10 to 50: long codes differ in the former
        alone, and short ones find few of so few.
        """
        asked = np.asarray(to_numpy(queries[: max(60, min(1000, (1 << 23) // self.d)), :]), np.float64)
        learned = range(min(self.n_rows, 2000))
        frequencies = [scipy.fft.rfft(r) for r in vectors]
        codes = self._codes_of(asked, frequencies)
        products = np.zeros((1 + len(vectors), len(asked), len(learned)))
        step = max(1, (1 << 22) // self.d)
        for start in range(0, len(learned), step):
            block = slice(start, min(start + step, len(learned)))
            rows = np.asarray(to_numpy(self.X[block, :]), np.float64)
            lengths = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
            products[0][:, block] = (asked @ rows.T) / lengths
            for product, own, other in zip(products[1:], codes, self._codes_of(rows, frequencies), strict=True):
                product[:, block] = own @ other.T
        near, most = _largest(products[0], 10), min(50, max(10, len(learned) // 8))
        kept = np.zeros((len(vectors), len(asked)))
        for counts, product in zip(kept, products[1:], strict=True):
            first = _largest(product, most)
            counts[:] = [(np.isin(a, b).sum() + np.isin(a, b[:10]).sum()) / 2 for a, b in zip(near, first, strict=True)]
        return kept

    def _codes_of(self, rows: np.ndarray, frequencies: list[np.ndarray]) -> list[np.ndarray]:
        """Signs of the bits of rows, for each spectrum of a circulant."""
        spectra = scipy.fft.rfft(rows * to_numpy(self.signs), axis=1, **self.workers)
        projected = (scipy.fft.irfft(spectra * z, n=self.d, axis=1, **self.workers) for z in frequencies)
        return [np.where(H[:, : self.bits] >= 0, np.float32(1), np.float32(-1)) for H in projected]

    def real_ends(self, z: np.ndarray) -> np.ndarray:
        """Frequencies that are their own mirror are real: rounding must not say otherwise."""
        z[self.twice == 1.0] = z[self.twice == 1.0].real
        return z

    def objective(self, z: np.ndarray, c: np.ndarray) -> float:
        distortion = np.sum(self.twice * (self.a * np.abs(z) ** 2 - 2 * np.real(np.conj(c) * z))) / self.d
        spread = self.lambda_ * np.sum(self.twice * (np.abs(z) ** 2 - 1) ** 2)
        return float(distortion + spread + self.n * (self.bits + self.rest**2 * (self.d - self.bits)))

    def run(self, r: np.ndarray, rounds: int, tol: float) -> tuple[np.ndarray, list[float]]:
        z = self.real_ends(scipy.fft.rfft(r))
        history: list[float] = []
        for _ in range(rounds):
            c = self.correlation(z)
            if not history:
                history.append(self.objective(z, c))
            z = self.real_ends(frequency_step(self.a, c, self.lambda_ * self.d, z))
            history.append(self.objective(z, c))
            if history[-2] - history[-1] <= tol * abs(history[-2]):
                break
        return scipy.fft.irfft(z, n=self.d), history


def _largest(products: np.ndarray, k: int) -> np.ndarray:
    """The places of the k largest values of each row, the first of equal ones first."""
    return np.argsort(-products, axis=1, kind="stable")[:, :k]
