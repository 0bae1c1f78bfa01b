"""Kernel homogeneity analysis: several views of objects and their label sets, in one latent space.

    min  λ Σ_j (‖X − K_j α_j‖² + c ‖α_j‖²_K) + ‖X − T P‖² + c ‖P‖²        X'X = I,  1'X = 0

K_j the centred kernel matrix of view j, T the centred label matrix, X the latent values, which can be predicted from
every view and which predict the labels. Alternating updates are an orthogonal iteration for

    A = λ Σ_j K_j (K_j + c)⁻¹ + T T'(T T' + c)⁻¹

whose leading eigenvectors are X. A new object has the mean over views of K_j(x, ·) α_j, α_j = (K_j + c)⁻¹ X, and labels
T'X times that. Scores of held-out rows come without another fit: (h_ii x_i − (H X)_i) / (h_ii − 1), H = K (K + c)⁻¹.

If label sets recur, each also has its own score: views predict "the set is y" as they predict latent values. The weight
of these scores, relative to the probabilities of labels, maximises the number of exact sets of held-out rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, lapack
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._explain import ScoreModel, ScoreRows
from mercer._state.saved import (
    Choice,
    Count,
    Fields,
    Floats,
    LabelValues,
    ListOf,
    Nested,
    Optional,
    Saved,
)
from mercer._validation import check_choice, check_count, check_positive, thread_count, used_examples
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning
from mercer.kernel_methods.base import KernelMethod, one_object
from mercer.kernel_methods.collections import count, taken
from mercer.kernels import Gaussian, Kernel
from mercer.multilabel._decisions import Decisions, check_threshold
from mercer.multilabel._meka import BlockKernel
from mercer.multilabel.joint import LabelSetClassifier, label_rows
from mercer.multilabel.label_forms import FORMS, distinct, fit_labels

__all__ = ["KernelHomogeneityAnalysis"]

_SAMPLE = 500  # rows whose distances give the width of a kernel
_SET_CELLS = 1 << 24  # rows times label sets up to which sets have scores of their own


class View(KernelMethod):
    """One view: its kernel, its training objects and the coefficients of their kernel values."""

    saved = KernelMethod.saved | Fields(coef_=Floats("support_", None), offset_=Floats(None))

    def __init__(self, kernel: Any = None, *, n_jobs: int | None = None) -> None:
        self.kernel = kernel
        self.n_jobs = n_jobs

    def latent(self, X: Any) -> np.ndarray:
        """K(x, ·) α, centred."""
        return self._expanded(X, self.coef_) + self.offset_

    def _check_complete(self) -> None:
        self._check_fitted()


class BlockView(Saved):
    """One view by blocks: centres, and for each block landmarks with the coefficients of their kernel values."""

    saved = Fields(
        centres_=Floats(None, None),
        landmarks_=ListOf(Floats(None, None), "centres_"),
        coefs_=ListOf(Floats(None, None), "centres_"),
        offset_=Floats(None),
    )

    centres_: np.ndarray
    landmarks_: list[np.ndarray]
    coefs_: list[np.ndarray]
    offset_: np.ndarray

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def latent(self, X: Any) -> np.ndarray:
        """K(x, ·) α of the approximate kernel, centred."""
        X = check_array(X, dtype=np.float64)
        if X.shape[1] != self.centres_.shape[1]:
            raise ValueError(f"a view has {X.shape[1]} columns, training had {self.centres_.shape[1]}")
        block = ((self.centres_**2).sum(axis=1) - 2 * X @ self.centres_.T).argmin(axis=1)
        out = np.empty((len(X), len(self.offset_)))
        for s, (marks, coef) in enumerate(zip(self.landmarks_, self.coefs_, strict=True)):
            rows = np.flatnonzero(block == s)
            if len(rows):
                out[rows] = self.kernel(X[rows], marks) @ coef
        return out + self.offset_

    def _check_state(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise ValueError("the kernel of a view must be a kernel")
        for marks, coef in zip(self.landmarks_, self.coefs_, strict=True):
            if marks.shape[1] != self.centres_.shape[1] or coef.shape != (len(marks), len(self.offset_)):
                raise ValueError("landmarks and coefficients of a view do not fit together")


class KernelHomogeneityAnalysis(
    LabelSetClassifier, Saved, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ScoreModel, Estimator
):
    """Learn label sets from several views of objects, through a common latent space of views and labels.

    Parameters
    ----------
    n_components : int or float, default=1.0
        Dimensions of the latent space, or their share of the number of labels (n_rows − 2 at most).
    C : float, default=0.1
        λ of the formula above: weight of the prediction of latent values from the views.
    alpha : float, default=0.1
        c of the formula above; smaller values fit training rows more closely.
    kernels : Kernel, "precomputed", None, or a list of these for each view
        None: a Gaussian with the mean distance of two rows as its width.
    solver : {"eig", "als"}, default="eig"
        One eigenproblem, or alternating updates until the latent space moves by less than ``tol``.
    approx : {None, "meka"}
        Exact matrices, with n² numbers per view, or blocks of Nyström approximations, with n × rank numbers, for
        arrays.
    n_blocks, rank : int
        Of the approximation.
    decode : {"auto", "direct", "seen"}, default="auto"
        Each label by its own probability, or the label set of training that is most likely; ``"auto"`` is the better
        one by ``measure`` on held-out scores. Recurring label sets also have their own scores.
    threshold, measure
        As in `JointSVM`.
    max_iter : int, default=1000
    tol : float, default=1e-6
        Tolerance of the alternating updates.
    random_state : int, RandomState or None
        Of the approximation.
    n_jobs : int or None
    verbose : int, default=0

    Attributes
    ----------
    object_scores_ : array of shape (n_rows, n_components)
        X, the latent values of the training rows.
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of A.
    label_map_ : array of shape (n_components, n_labels)
    set_shares_ : array of shape (n_sets,) or None
        Shares of the label sets in training, if sets have their own scores.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.multilabel import KernelHomogeneityAnalysis
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(80, 2))
    >>> Y = (Z @ [[1, 1, 0], [0, 1, 1]] > 0).astype(int)
    >>> views = [Z + 0.1 * rng.normal(size=Z.shape), np.tanh(Z)]
    >>> model = KernelHomogeneityAnalysis(2).fit([v[:60] for v in views], Y[:60])
    >>> bool((model.predict([v[60:] for v in views]) == Y[60:]).mean() > 0.9)
    True

    References
    ----------
    .. [Xiong2015] H. Xiong. Inference, learning and optimization on structured domains. PhD thesis, University of
       Innsbruck, 2015.
    .. [Si2017] S. Si, C.-J. Hsieh and I. Dhillon. Memory efficient kernel approximation. Journal of Machine Learning
       Research 18, 2017.
    """

    version = 2  # lam and ridge are C and alpha
    saved = Fields(
        classes_=LabelValues(1),
        label_form_=Choice(*FORMS),
        views_=ListOf(Nested(View, BlockView)),
        object_scores_=Floats(None, "eigenvalues_"),
        eigenvalues_=Floats(None),
        label_map_=Floats("eigenvalues_", "classes_"),
        shares_=Floats("classes_", low=0.0, high=1.0),
        set_shares_=Optional(Floats(None, low=0.0, high=1.0)),
        decisions_=Nested(Decisions),
        n_iter_=Count(0),
    )

    set_shares_: np.ndarray | None

    def __init__(
        self,
        n_components: float = 1.0,
        C: float = 0.1,
        alpha: float = 0.1,
        kernels: Any = None,
        *,
        solver: str = "eig",
        approx: str | None = None,
        n_blocks: int = 10,
        rank: int = 64,
        decode: str = "auto",
        threshold: Any = "auto",
        measure: str = "micro-f1",
        max_iter: int = 1000,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.C = C
        self.alpha = alpha
        self.kernels = kernels
        self.solver = solver
        self.approx = approx
        self.n_blocks = n_blocks
        self.rank = rank
        self.decode = decode
        self.threshold = threshold
        self.measure = measure
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> KernelHomogeneityAnalysis:
        """Learn from views of objects and their label sets.

        Parameters
        ----------
        X : list of views
            Each an array of rows, a kernel matrix, or a collection of objects of any kind with a kernel for it; a
            single array is one view.
        Y : array or sparse matrix of 0 and 1, or list of label sets
        sample_weight : array of a number for each object, optional
            At least 0: an object of weight 2 counts as two, one of weight 0 is left out. For ``approx=None``.

        Returns
        -------
        self : KernelHomogeneityAnalysis
        """
        self._check_parameters()
        views = _as_views(X)
        kernels = self._kernels(len(views))
        n = _same_length(views)
        used, weights = used_examples(sample_weight, n)
        if weights is not None and self.approx is not None:
            raise ValueError(f"sample_weight needs approx=None, which is {self.approx!r}")
        labels, classes, form = fit_labels(Y, n, used)
        n = labels.shape[0]
        p = self._dimensions(n, len(classes))
        # With weights w all matrices of objects are multiplied by √w from both sides, and latent values by √w.
        roots = np.ones(n) if weights is None else np.sqrt(weights)
        trivial = roots / np.linalg.norm(roots)
        shares = np.asarray(labels.mean(axis=0) if weights is None else weights @ labels / weights.sum()).ravel()
        U, strength = _label_part(roots[:, None] * (labels.toarray() - shares), self.alpha)
        pairs = enumerate(zip(views, kernels, strict=True))
        if self.approx == "meka":
            parts: list[Any] = [self._blocked(view, kernel, j) for j, (view, kernel) in pairs]
        else:
            parts = [self._exact(view, kernel, j, used, roots) for j, (view, kernel) in pairs]

        def product(V: np.ndarray) -> np.ndarray:
            V = V.reshape(n, -1)
            out = U @ (strength[:, None] * (U.T @ V))
            for part in parts:
                out += self.C * part.smooth(V)
            return out

        if self.solver == "als":
            values, latent, steps = self._by_updates(product, trivial, p)
        elif self.approx == "meka":
            values, latent, steps = self._by_small_matrix(parts, U, strength, p)
        else:
            values, latent, steps = self._by_eigenvectors(product, trivial, p)
        self.classes_, self.label_form_, self.shares_ = classes, form, shares
        self.eigenvalues_, self.object_scores_, self.n_iter_ = values, latent / roots[:, None], steps
        self.label_map_ = np.ascontiguousarray(np.asarray((labels.T @ (roots[:, None] * latent)).T))
        members, set_shares = self._set_targets(labels, weights)
        targets = latent if members is None else np.hstack([latent, roots[:, None] * (members - set_shares)])
        held_out = sum(part.left_out(targets) for part in parts) / len(parts) / roots[:, None]
        scores = held_out[:, :p] @ self.label_map_ + shares
        own = None if members is None else held_out[:, p:] + set_shares
        sets = None if self.decode == "auto" else self.decode == "seen"
        self.decisions_ = Decisions().fit(scores, labels, self.threshold, self.measure, sets, weights, own)
        by_own = self.decisions_.by_sets_ and self.decisions_.own_weight_ is not None
        self.set_shares_ = set_shares if by_own else None
        self.views_ = [part.view(targets if by_own else latent) for part in parts]
        return self

    def _set_targets(self, labels: sp.csr_matrix, weights: np.ndarray | None) -> tuple[Any, Any]:
        """Which label set of training each row has, a column each, and their shares; None where sets hardly recur."""
        if self.decode == "direct":
            return None, None
        seen, kind = distinct(labels)
        n, m = labels.shape[0], seen.shape[0]
        if 2 * m > n or n * m > _SET_CELLS:
            return None, None
        return np.eye(m)[kind], np.bincount(kind, weights, minlength=m) / (n if weights is None else weights.sum())

    def _check_parameters(self) -> None:
        if isinstance(self.n_components, float):
            if not 0 < self.n_components <= 1:
                raise ValueError(f"n_components is a share of the labels: between 0 and 1, got {self.n_components!r}")
        else:
            check_count("n_components", self.n_components)
        check_positive("C", self.C)
        check_positive("alpha", self.alpha)
        check_choice("solver", self.solver, ("eig", "als"))
        check_choice("approx", self.approx, (None, "meka"))
        check_choice("decode", self.decode, ("auto", "direct", "seen"))
        check_count("n_blocks", self.n_blocks)
        check_count("rank", self.rank)
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol)
        check_threshold(self.threshold, self.measure)
        thread_count(self.n_jobs)

    def _kernels(self, J: int) -> list[Any]:
        kernels = list(self.kernels) if isinstance(self.kernels, (list, tuple)) else [self.kernels] * J
        if len(kernels) != J:
            raise ValueError(f"there are {J} views and {len(kernels)} kernels")
        return kernels

    def _dimensions(self, n: int, T: int) -> int:
        if n < 3:
            raise ValueError(f"there must be three rows or more, got {n}")
        if isinstance(self.n_components, float):
            return min(math.ceil(self.n_components * T), n - 2)
        p = self.n_components
        if p > n - 2:
            raise ValueError(f"n_components is {p}: {n} rows take {n - 2} at most")
        return int(p)

    def _exact(
        self, X: Any, kernel: Any, j: int, used: np.ndarray | None = None, roots: np.ndarray | None = None
    ) -> _ExactPart:
        some = X if used is None or kernel is not None else taken(X, used)
        view = View(_mean_width(some, j) if kernel is None else kernel, n_jobs=self.n_jobs)
        try:
            X = view._collected(X, reset=True)
            K = view._gram(X)
        except ValueError as error:
            raise ValueError(f"view {j}: {error}") from error
        if used is not None:
            K = K[np.ix_(used, used)]
        places = np.arange(len(K)) if used is None else used
        return _ExactPart(view, X, K, self.alpha, places, np.ones(len(K)) if roots is None else roots)

    def _blocked(self, X: Any, kernel: Any, j: int) -> _BlockPart:
        if isinstance(kernel, str):
            raise ValueError("approx='meka' needs kernels and rows, but kernels are 'precomputed'")
        try:
            X = check_array(X, dtype=np.float64)
        except ValueError as error:
            raise ValueError(f"view {j}: {error}") from error
        random = check_random_state(self.random_state)
        used = _mean_width(X, j) if kernel is None else kernel
        return _BlockPart(BlockKernel(used, X, self.n_blocks, self.rank, random), self.alpha)

    def _by_eigenvectors(self, product: Any, trivial: np.ndarray, p: int) -> tuple[np.ndarray, np.ndarray, int]:
        n = len(trivial)
        start = np.cos(np.arange(n) * 1.7)
        operator = LinearOperator(
            (n, n), lambda v: product(v).ravel() - trivial * (trivial @ v.ravel()), dtype=np.float64
        )
        values, vectors = eigsh(operator, k=p, which="LA", v0=start - trivial * (trivial @ start), tol=1e-10)
        order = np.argsort(-values)
        vectors = vectors[:, order]
        largest = np.abs(vectors / trivial[:, None]).argmax(axis=0)
        return values[order], np.ascontiguousarray(vectors * np.sign(vectors[largest, np.arange(p)])), 0

    def _by_small_matrix(
        self, parts: list[Any], U: np.ndarray, strength: np.ndarray, p: int
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """The eigenvectors of B B' from those of B'B, which is as large as the ranks together, whatever the rows."""
        blocks = [part.blocks for part in parts]
        roots = [np.sqrt(self.C * part.shrinkage) for part in parts] + [np.sqrt(strength)]
        ends = np.cumsum([0, *(len(root) for root in roots)])
        where = [slice(a, b) for a, b in pairwise(ends.tolist())]
        M = np.zeros((ends[-1], ends[-1]))
        for i, (mine, block) in enumerate(zip(where, blocks, strict=False)):
            M[mine, where[-1]] = block.project(U)
            M[mine, mine] = np.eye(len(roots[i]))
            for other, rival in zip(where[:i], blocks[:i], strict=True):
                M[other, mine] = rival.against(block)
        M[where[-1], where[-1]] = np.eye(len(strength))
        M = np.triu(M) + np.triu(M, 1).T
        root = np.concatenate(roots)
        M *= root[:, None]
        M *= root
        if p >= len(M):
            raise ValueError(f"n_components is {p}, but the blocks and labels have {len(M)} dimensions together")
        values, vectors = eigsh(M, k=p, which="LA", v0=np.cos(np.arange(len(M)) * 1.7), tol=1e-10)
        order = np.argsort(-values)
        values, vectors = values[order], root[:, None] * vectors[:, order]
        latent = U @ vectors[where[-1]]
        for mine, block in zip(where, blocks, strict=False):
            latent += block.lift(vectors[mine])
        latent /= np.sqrt(values)
        largest = np.abs(latent).argmax(axis=0)
        return values, np.ascontiguousarray(latent * np.sign(latent[largest, np.arange(p)])), 0

    def _by_updates(self, product: Any, trivial: np.ndarray, p: int) -> tuple[np.ndarray, np.ndarray, int]:
        X = np.cos(np.outer(np.arange(1, len(trivial) + 1), np.arange(1, p + 1)) * 1.7)
        X = np.linalg.qr(X - np.outer(trivial, trivial @ X))[0]
        step = 0
        while step < self.max_iter:
            step += 1
            new = product(X)
            new = np.linalg.qr(new - np.outer(trivial, trivial @ new))[0]
            moved = math.sqrt(max(0.0, p - float((np.abs(X.T @ new) ** 2).sum())))
            X = new
            if moved < self.tol:
                break
        else:
            warn_caller(
                f"the alternating updates still moved the latent space by {moved:.2g} after {self.max_iter} rounds;"
                " use solver='eig'",
                ConvergenceWarning,
            )
        values, rotation = np.linalg.eigh(X.T @ product(X))
        X = X @ rotation[:, ::-1]
        largest = np.abs(X / trivial[:, None]).argmax(axis=0)
        return values[::-1].copy(), np.ascontiguousarray(X * np.sign(X[largest, np.arange(p)])), step

    # ------------------------------------------------------------------ prediction

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def transform(self, X: Any) -> np.ndarray:
        """Return the latent values of objects: the mean prediction over views.

        Parameters
        ----------
        X : list of views, as in `fit`

        Returns
        -------
        latent : array of shape (n_rows, n_components)
        """
        return self._predictions(X)[:, : len(self.eigenvalues_)]

    def _predictions(self, X: Any) -> np.ndarray:
        """Latent values, and behind them scores of label sets less their shares."""
        check_is_fitted(self, "views_")
        views = _as_views(X)
        if len(views) != len(self.views_):
            raise ValueError(f"expected {len(self.views_)} views as in fit, got {len(views)}")
        _same_length(views)
        total: Any = 0.0
        for j, (part, view) in enumerate(zip(self.views_, views, strict=True)):
            try:
                total = total + part.latent(view)
            except ValueError as error:
                raise ValueError(f"view {j}: {error}") from error
        return np.asarray(total) / len(views)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of each label: about 1 if it is present, about 0 if not.

        Parameters
        ----------
        X : list of views, as in `fit`

        Returns
        -------
        scores : array of shape (n_rows, n_labels)
        """
        latent = self.transform(X)
        return latent @ self.label_map_ + self.shares_

    def _predicted(self, X: Any) -> sp.csr_matrix:
        found, p = self._predictions(X), len(self.eigenvalues_)
        P = self.decisions_.probabilities(found[:, :p] @ self.label_map_ + self.shares_)
        return self.decisions_.label_sets(P, None if self.set_shares_ is None else found[:, p:] + self.set_shares_)

    def _score_rows(self) -> ScoreRows:
        """Scores of labels as sums over the components of the latent space."""
        check_is_fitted(self, "views_")
        return replace(label_rows(self.label_map_.T, self.classes_), constants=np.asarray(self.shares_, float))

    def _activations(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        latent = self.transform([one_object(view) for view in x] if isinstance(x, (list, tuple)) else one_object(x))[0]
        return np.arange(len(latent)), latent

    def _feature_name(self, column: int) -> str:
        return f"component {column}"

    def _label_products(self) -> np.ndarray:
        check_is_fitted(self, "views_")
        return np.asarray(self.label_map_.T @ self.label_map_)

    def _check_state(self) -> None:
        self._check_parameters()
        if len(self.decisions_.slopes_) != len(self.classes_) or not self.views_:
            raise ValueError(f"there must be a view, and decisions for {len(self.classes_)} labels")
        if (self.set_shares_ is None) != (self.decisions_.own_weight_ is None or not self.decisions_.by_sets_):
            raise ValueError("shares of label sets and the weight of their scores are there together")
        n_sets = 0 if self.set_shares_ is None else len(self.set_shares_)
        if n_sets not in (0, self.decisions_.seen_.shape[0]):
            raise ValueError(f"there are {self.decisions_.seen_.shape[0]} label sets and {n_sets} shares of them")
        for view in self.views_:
            if len(view.offset_) != len(self.eigenvalues_) + n_sets:
                raise ValueError(f"a view must have {len(self.eigenvalues_)} components and {n_sets} label sets")
            if isinstance(view, View) and view.coef_.shape[1] != len(view.offset_):
                raise ValueError("the coefficients of a view must have as many columns as components")


# ---------------------------------------------------------------------------------------------------- views


class _ExactPart:
    """K (K + c)⁻¹ = 1 − c (K + c)⁻¹ of a view with its whole matrix."""

    def __init__(self, view: View, X: Any, K: np.ndarray, c: float, places: np.ndarray, roots: np.ndarray) -> None:
        self.made, self.X, self.c, self.places, self.roots = view, X, c, places, roots
        shares = roots**2 / (roots @ roots)
        means = shares @ K
        self.means = means
        K = K - means
        K -= means[:, None]
        K += shares @ means
        K *= roots[:, None]
        K *= roots
        K[np.diag_indices_from(K)] += c
        try:
            factor, _ = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError as error:
            raise ValueError("a kernel matrix is not positive semi-definite: raise alpha") from error
        inverse, info = lapack.dpotri(factor, lower=1, overwrite_c=1)
        if info != 0:
            raise ValueError("a kernel matrix is singular: raise alpha")
        self.inverse = np.tril(inverse) + np.tril(inverse, -1).T

    def smooth(self, V: np.ndarray) -> np.ndarray:
        return V - self.c * (self.inverse @ V)

    def left_out(self, V: np.ndarray) -> np.ndarray:
        """What the view predicts for each row from the others."""
        own = 1.0 - self.c * np.diag(self.inverse)
        return (self.smooth(V) - own[:, None] * V) / (1.0 - own)[:, None]

    def view(self, V: np.ndarray) -> View:
        alpha = np.ascontiguousarray(self.roots[:, None] * (self.inverse @ V))
        self.made._keep(self.X, self.places)
        self.made.coef_ = alpha
        self.made.offset_ = -self.means @ alpha
        return self.made


class _BlockPart:
    """The same for a view by blocks."""

    def __init__(self, blocks: BlockKernel, c: float) -> None:
        self.blocks, self.c = blocks, c

    @property
    def shrinkage(self) -> np.ndarray:
        """Eigenvalues of K (K + c)⁻¹."""
        return self.blocks.eigenvalues / (self.blocks.eigenvalues + self.c)

    def smooth(self, V: np.ndarray) -> np.ndarray:
        return self.blocks.smooth(V, self.c)

    def left_out(self, V: np.ndarray) -> np.ndarray:
        own = self.blocks.leverages(self.c)
        return (self.smooth(V) - own[:, None] * V) / np.maximum(1.0 - own, 1e-9)[:, None]

    def view(self, V: np.ndarray) -> BlockView:
        made = BlockView(self.blocks.kernel)
        coefs, offset = self.blocks.expansion(V, self.c)
        made.centres_ = np.ascontiguousarray(self.blocks.centres)
        made.landmarks_ = [np.ascontiguousarray(marks) for marks in self.blocks.landmarks]
        made.coefs_ = [np.ascontiguousarray(coef) for coef in coefs]
        made.offset_ = offset
        return made


def _label_part(T: np.ndarray, c: float) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal U and strengths s with T T'(T T' + c)⁻¹ = U diag(s) U'."""
    values, vectors = np.linalg.eigh(T.T @ T)
    kept = values > 1e-10 * max(float(values[-1]), 1.0)  # a label in one row has a sum of squares of about 1
    if not kept.any():
        raise ValueError("every label is in all rows or in none: there is nothing to learn")
    U = T @ (vectors[:, kept] / np.sqrt(values[kept]))
    return U, values[kept] / (values[kept] + c)


def _as_views(X: Any) -> list[Any]:
    if isinstance(X, Mapping):
        X = list(X.values())
    if isinstance(X, np.ndarray) and X.dtype != object:
        return [X] if X.ndim <= 2 else list(X)
    if sp.issparse(X) or hasattr(X, "iloc") or not isinstance(X, (list, tuple)):
        return [X]
    if not len(X):
        raise ValueError("there is no view: X must be a list of at least one")
    for j, view in enumerate(X):
        if view is None:
            raise ValueError(f"view {j} is missing")
    first = X[0]
    if isinstance(first, (str, bytes)) or not (hasattr(first, "__len__") or sp.issparse(first)):
        return [X]
    numbers = isinstance(first, (list, tuple, np.ndarray)) and len(first) and np.isscalar(first[0])
    if numbers and not isinstance(first[0], (str, bytes)):
        return [X]  # rows of numbers: one view
    return list(X)


def _same_length(views: list[Any]) -> int:
    lengths = [count(view) for view in views]
    if len(set(lengths)) > 1:
        raise ValueError(f"the views have different numbers of rows: {', '.join(map(str, lengths))}")
    return lengths[0]


def _mean_width(X: Any, j: int) -> Gaussian:
    """A Gaussian whose width is the mean distance of two rows."""
    try:
        rows = check_array(X, accept_sparse="csr", dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"view {j}: {error}") from error
    if rows.shape[0] > _SAMPLE:
        rows = rows[np.linspace(0, rows.shape[0] - 1, _SAMPLE).astype(int)]
    rows = rows.toarray() if sp.issparse(rows) else rows
    squares = (rows**2).sum(axis=1)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0.0))
    n = len(rows)
    mean = float(distances.sum() / max(n * (n - 1), 1))
    if not mean > 0 or mean < 1e-9 * math.sqrt(float(squares.max(initial=0.0))):
        raise ValueError(f"view {j}: all rows are the same, so that they tell nothing about labels")
    return Gaussian(1.0 / (2.0 * mean**2))
