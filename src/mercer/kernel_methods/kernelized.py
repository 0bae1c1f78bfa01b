"""Structured models with any kernel on their observations, in the dual form.

By the representer theorem the weights of a regularised linear model lie in the span of the features of the training
observations, w = Σ_j α_j φ(x_j) for every label (or part). With K = L Lᵀ the rows of L are coordinates in that span::

    ⟨w, φ(x_i)⟩ = (K α)_i = ⟨v, L_i⟩,   v = Lᵀ α,   ‖w‖² = αᵀ K α = ‖v‖²

so that training the linear model ½‖v‖² + C Σ loss on the rows of L trains the kernel machine. Any loss, structure and
solver can be used, and the certified gap is that of the kernel machine. New observations have the coordinates L_PP⁻¹
k(P, x) on the pivots P.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from mercer._estimator import Estimator
from mercer._state.saved import Fields, Objects, Saved
from mercer._validation import check_count
from mercer.data.sequences import Sequences
from mercer.kernel_methods._precomputed import is_precomputed
from mercer.kernel_methods.base import KernelMethod
from mercer.kernel_methods.cholesky import IncompleteCholesky
from mercer.kernel_methods.collections import count
from mercer.kernels import Gaussian
from mercer.kernels.base import check_kernel, require_positive_definite
from mercer.learning.estimator import RiskEstimator
from mercer.maps.spectra import scale_gamma
from mercer.structures.output_set import Choices

__all__ = ["KernelizedModel"]

_MOST_VALUES = 1 << 28
"""Numbers of L, unless a rank was given: 2 GiB."""


def _model_has(name: str) -> Callable[[Any], bool]:
    """Whether the model has a method; raises the AttributeError of the model, which says why not."""

    def has(estimator: KernelizedModel) -> bool:
        getattr(getattr(estimator, "model_", estimator.model), name)
        return True

    return has


class KernelizedModel(Saved, Estimator):
    """Train a linear model of the library with a kernel on its observations.

    With ``LinearClassifier("hinge")`` this is the multiclass support vector machine of Crammer and Singer with a
    kernel, with ``Tagger("hinge")`` the max-margin Markov network in its kernel form, with ``Ranker()`` the RankSVM
    (ordinal regression, conjoint analysis) with a kernel, and with ``LabelRanker()`` label ranking. With a
    ``StructuredPredictor`` whose structure is an :class:`~mercer.structures.OutputSet` it is the structured support
    vector machine with a joint kernel k((x, y), (x', y')).

    Parameters
    ----------
    model : LinearClassifier, Ranker, LabelRanker, Tagger or StructuredPredictor
        The model to train, with any loss and solver. It is copied, not changed. Its ``penalty`` must be "l2", the
        squared norm in the space of the kernel.
    kernel : Kernel, "precomputed" or None
        A positive definite kernel on observations: rows of X, objects of any kind, the positions of sequences, or pairs
        (x, y) of an input and one of its outputs, for example by :class:`~mercer.kernels.TensorProduct`. None: a
        Gaussian whose width is 1 / (number of columns × variance of X). With ``"precomputed"``, for models of rows
        only, X is the kernel matrix.
    rank : int, optional
        Maximum number of training observations in the expansion, chosen by pivoted Cholesky. By default as many as
        ``tol`` requires, which is exact.
    tol : float, default=1e-10
        Stop when every observation's squared distance from the span of the chosen ones is at most ``tol`` times the
        largest k(x, x).
    n_jobs : int, optional
        Threads for kernel values.

    Attributes
    ----------
    model_ : the fitted linear model
        Its weights belong to the columns of ``map_``.
    map_ : IncompleteCholesky
        Coordinates of observations; ``map_.support_objects_`` are the observations of the expansion.
    history_, converged_ : of ``model_``

    Notes
    -----
    Every step of training costs as much as that of a dense linear model with one column for each observation of the
    expansion. Beyond a few thousand observations set ``rank``, or map the observations with
    :class:`~mercer.maps.FourierFeatures`.

    References
    ----------
    .. [Crammer2001] K. Crammer and Y. Singer. On the algorithmic implementation of multiclass kernel-based vector
       machines. Journal of Machine Learning Research 2, 2001.
    .. [Taskar2003] B. Taskar, C. Guestrin and D. Koller. Max-margin Markov networks. NIPS, 2003.
    .. [Joachims2002] T. Joachims. Optimizing search engines using clickthrough data. KDD, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.classification import LinearClassifier
    >>> from mercer.kernel_methods import KernelizedModel
    >>> from mercer.kernels import Gaussian
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> y = ["even", "even", "odd", "odd"]
    >>> LinearClassifier(C=100.0).fit(X, y).score(X, y) < 1.0  # no line separates them
    True
    >>> model = KernelizedModel(LinearClassifier(C=100.0), Gaussian(1.0)).fit(X, y)
    >>> model.score(X, y), model.dual_coef_.shape
    (1.0, (1, 4))

    Outputs that resemble each other, with a cost of their distance:

    >>> from mercer.kernels import TensorProduct
    >>> from mercer.structured import StructuredPredictor
    >>> from mercer.structures import OutputSet
    >>> stars = OutputSet([(1,), (2,), (3,)], cost=lambda y, z: abs(y[0] - z[0]))
    >>> joint = TensorProduct(Gaussian(1.0), Gaussian(0.5))
    >>> X, y = [[0.0], [0.5], [1.0], [1.5], [2.0], [2.5]], [(1,), (1,), (3,), (3,), (2,), (2,)]
    >>> KernelizedModel(StructuredPredictor(stars, C=100.0, random_state=0), joint).fit(X, y).predict([[0.2], [1.2]])
    [(1,), (3,)]
    """

    _parts_reason = KernelMethod._parts_reason
    saved = Fields(model_=Objects(), map_=Objects())

    model_: Any
    map_: IncompleteCholesky

    def __init__(
        self,
        model: Any,
        kernel: Any = None,
        *,
        rank: int | None = None,
        tol: float = 1e-10,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.kernel = kernel
        self.rank = rank
        self.tol = tol
        self.n_jobs = n_jobs

    # ------------------------------------------------------------------ training

    def _check(self, known: bool = True) -> str:
        """The form of the inputs of the model, "rows", "sequences" or "pairs"."""
        form = getattr(self.model, "_observations", None)
        if not isinstance(self.model, RiskEstimator) or form is None:
            raise TypeError(
                "model must be LinearClassifier, Ranker, LabelRanker, Tagger or StructuredPredictor, whose scores are "
                f"linear in observations, got {type(self.model).__name__}"
            )
        if form == "pairs" and known and not hasattr(self.model.structure, "outputs_of"):
            raise TypeError(
                "the structure of model must be an OutputSet, whose outputs can be written out, got "
                f"{type(self.model.structure).__name__}"
            )
        if form == "pairs" and self.kernel is None:
            raise ValueError("kernel must be given: a kernel of pairs (x, y), such as TensorProduct(kernel, Delta())")
        if self.model.penalty != "l2":
            raise ValueError(
                f"model must have penalty='l2', the norm in the space of the kernel, got {self.model.penalty!r}"
            )
        if getattr(self.model, "template", None) is not None:
            raise ValueError(
                "model must have template=None: a template needs named features, a kernel compares objects"
            )
        if is_precomputed(self.kernel):
            if form != "rows":
                raise ValueError(
                    f"kernel='precomputed' is for models of rows, and {type(self.model).__name__} takes {form}: give "
                    "a kernel"
                )
        elif self.kernel is not None:
            require_positive_definite(check_kernel("kernel", self.kernel), type(self).__name__)
        return form

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> KernelizedModel:
        """Train the model on the coordinates of the observations.

        Parameters
        ----------
        X : inputs of the model
            Objects in place of feature rows: an array, strings, graphs, …; for ``Tagger`` sequences of them.
        y : outputs, as the model takes them
        sample_weight : array of a number for each example, optional
            Factors of C.
        **fit_params
            Further arguments of the model's ``fit``: ``groups``, ``dev``, ``checkpoint``.

        Returns
        -------
        self
        """
        self._check()
        objects, stacked = self._objects(X)
        n = count(objects)
        if n == 0:
            raise ValueError("X is empty: there is nothing to learn from")
        rank = n if self.rank is None else min(n, check_count("rank", self.rank))
        if self.rank is None and n * n > _MOST_VALUES:
            raise ValueError(
                f"the expansion over {n:,} observations may take {8 * n * n / 2**30:.0f} GiB: give a rank such as 2000"
            )
        kernel = self.kernel
        if kernel is None:
            _check_numeric(objects)
            kernel = Gaussian(scale_gamma(Gaussian()._prepared("X", objects).matrix(), None))
        coordinates = IncompleteCholesky(kernel, rank, self.tol, n_jobs=self.n_jobs)
        rows = coordinates.fit_transform(objects)
        if fit_params.get("dev") is not None:
            held_X, *held = fit_params["dev"]
            held_objects, held_stacked = self._objects(held_X)
            fit_params["dev"] = (held_stacked(coordinates.transform(held_objects)), *held)
        if sample_weight is not None:
            fit_params["sample_weight"] = sample_weight
        model = clone(self.model)
        if self.model._observations == "pairs":
            model.set_params(structure=Choices(self.model.structure))
        model.fit(stacked(rows), y, **fit_params)
        self.model_, self.map_ = model, coordinates
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(coordinates, name):
                setattr(self, name, getattr(coordinates, name))
        return self

    # ------------------------------------------------------------------ what was learned

    @property
    def history_(self) -> dict[str, list[float]]:
        """Return objective, bound and gap of each iteration."""
        return self._fitted().history_

    @property
    def converged_(self) -> bool:
        """Return whether the solver reached its tolerance."""
        return self._fitted().converged_

    @property
    def classes_(self) -> Any:
        """Return the sorted labels of the model."""
        return self._fitted().classes_

    @property
    def dual_coef_(self) -> np.ndarray:
        """Return α of shape (n_outputs, n_support) or (n_support,): scores are Σ_j α_j k(x_j, x) plus a constant.

        Only for models of rows; ``map_.support_objects_`` are the x_j.
        """
        model = self._fitted()
        if self._check() != "rows":
            raise AttributeError(f"dual_coef_ is for models of rows, and this is {type(model).__name__}")
        coef = np.asarray(model.coef_, float)
        dual = solve_triangular(self.map_.factor_, np.atleast_2d(coef).T, lower=True, trans="T").T
        return dual if coef.ndim == 2 else dual[0]

    # ------------------------------------------------------------------ prediction

    def coordinates(self, X: Any) -> Any:
        """Return the coordinates of observations, in the form that ``model_`` takes.

        Parameters
        ----------
        X : inputs of the model

        Returns
        -------
        array of shape (n, n_support) or Sequences
        """
        self._fitted()
        self._check(known=False)
        objects, stacked = self._objects(X)
        return stacked(self.map_.transform(objects))

    def _objects(self, X: Any) -> tuple[Any, Callable[[np.ndarray], Any]]:
        """All observations one after the other, and what makes inputs of the model of their coordinates."""
        form = self.model._observations
        if form == "rows":
            return X, lambda rows: rows
        if form == "sequences":
            objects, offsets = _positions(X)
            return objects, lambda rows: Sequences(rows, offsets)
        if isinstance(X, (str, bytes)) or not hasattr(X, "__iter__"):
            raise ValueError(f"X must be a list of inputs, got {type(X).__name__}")
        inputs = list(X)
        if not inputs:
            raise ValueError("X is empty")
        outputs = [list(self.model.structure.outputs_of(x)) for x in inputs]
        ends = np.cumsum([len(some) for some in outputs])[:-1]
        pairs = [(x, y) for x, some in zip(inputs, outputs, strict=True) for y in some]
        return pairs, lambda rows: list(zip(outputs, np.split(rows, ends), strict=True))

    def predict(self, X: Any) -> Any:
        """Return the outputs with the highest scores.

        Parameters
        ----------
        X : inputs of the model

        Returns
        -------
        outputs, as the model gives them
        """
        return self._fitted().predict(self.coordinates(X))

    def score(self, X: Any, y: Any, *args: Any, **params: Any) -> float:
        """Return the score of the model, with its own further arguments."""
        return self._fitted().score(self.coordinates(X), y, *args, **params)

    @available_if(_model_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of the labels, or of the rows."""
        return self._fitted().decision_function(self.coordinates(X))

    @available_if(_model_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the labels."""
        return self._fitted().predict_proba(self.coordinates(X))

    @available_if(_model_has("predict_grades"))
    def predict_grades(self, X: Any) -> np.ndarray:
        """Return the grades of rows."""
        return self._fitted().predict_grades(self.coordinates(X))

    @available_if(_model_has("predict_marginals"))
    def predict_marginals(self, X: Any) -> Any:
        """Return the probability of every label at every position."""
        return self._fitted().predict_marginals(self.coordinates(X))

    @available_if(_model_has("k_best"))
    def k_best(self, X: Any, k: int) -> Any:
        """Return the k best outputs of each example with their log-probabilities."""
        return self._fitted().k_best(self.coordinates(X), k)

    @available_if(_model_has("log_likelihood"))
    def log_likelihood(self, X: Any, y: Any) -> np.ndarray:
        """Return log p(y | x) of each example."""
        return self._fitted().log_likelihood(self.coordinates(X), y)

    def _fitted(self) -> Any:
        if not hasattr(self, "model_"):
            raise NotFittedError("this KernelizedModel is not fitted yet: call fit first")
        if self.model._observations == "pairs":  # of a file: the structure stays with its author
            self.model_.structure = Choices(self.model.structure)
        return self.model_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = True
        return tags

    # ------------------------------------------------------------------ model files

    def _check_state(self) -> None:
        self._check(known=False)  # files have no structures
        if type(self.model_) is not type(self.model) or not hasattr(self.model_, "coef_"):
            raise ValueError(f"model_ must be a fitted {type(self.model).__name__}")
        pairs = self.model._observations == "pairs"
        width = len(self.model_.coef_) if pairs else self.model_.n_features_in_
        if not isinstance(self.map_, IncompleteCholesky) or width != len(self.map_.support_):
            raise ValueError("map_ must have one column for each feature of model_")
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.map_, name):
                setattr(self, name, getattr(self.map_, name))


# ---------------------------------------------------------------------------------------------------- inputs


def _positions(X: Any) -> tuple[Any, np.ndarray]:
    """The positions of sequences one after the other, and where each sequence begins."""
    if isinstance(X, Sequences):
        if X.edges is not None:
            raise ValueError("X has edge features, and the kernel compares positions: leave them out")
        return X.rows.matrix(int(X.offsets[0]), int(X.offsets[-1])), X.offsets - X.offsets[0]
    if isinstance(X, (str, bytes)) or not hasattr(X, "__iter__"):
        raise ValueError(f"X must be a list of sequences of objects, got {type(X).__name__}")
    items: list[Any] = [item if hasattr(item, "__len__") else list(item) for item in X]
    if any(isinstance(item, (str, bytes)) for item in items):
        raise ValueError("each sequence of X must be a list of objects, got a string: split it into words or letters")
    lengths = [item.shape[0] if sp.issparse(item) else len(item) for item in items]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    if items and all(sp.issparse(item) for item in items):
        return sp.vstack(items, format="csr"), offsets
    if items and all(isinstance(item, np.ndarray) and item.ndim == 2 for item in items):
        if len({item.shape[1] for item in items}) > 1:
            raise ValueError("the sequences of X have different numbers of columns")
        return np.concatenate(items), offsets
    return list(chain.from_iterable(items)), offsets


def _check_numeric(objects: Any) -> None:
    """Refuse objects that a Gaussian does not compare, and name kernels that do."""
    first = objects[0] if isinstance(objects, (list, tuple)) else None
    if isinstance(first, (str, bytes, dict, set, frozenset)):
        raise ValueError(
            f"kernel must be given for objects of type {type(first).__name__}, such as mercer.kernels.NGram() for"
            " strings: without one it is a Gaussian, which takes rows of numbers"
        )
