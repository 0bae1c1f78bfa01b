"""Parts of shapes: divide aligned point clouds of one class into common parts.

Cells of a grid are words, clouds are documents, parts are topics [Blei2003]. Gibbs sampling draws the part of each
point from the product of three terms [Xiong2013c]:

    co-occurrence   (n_wk + β) / (n_k + β W) · (n_mk + α)
    smoothness      exp(Σ_j exp|⟨o_i, o_j⟩| 1[z_j = k]) over neighbours, in the cloud and in other clouds
    position        N(x; μ_k, v_k + Λ),   1/v_k = 1/V₀ + l/Λ,   μ_k = v_k (μ₀/V₀ + Σ x/Λ)

The published smoothness term does not depend on labels and cancels; here neighbours favour their own label. The
published position term has only the variance v_k of the mean, which shrinks with every point and suppresses the other
two terms: it is ``position="posterior"``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer import _core
from mercer._estimator import Estimator
from mercer._state.saved import Fields, Floats, Ints, LabelValues, ListOf, Nested, Number, OnlyInside, Saved
from mercer._validation import check_choice, check_count, check_flag, check_positive
from mercer.data.clouds import PointCloud
from mercer.fields._base import _seed_of
from mercer.fields._grid import Grid, as_clouds, links, stacked
from mercer.learning.learners import Keys

__all__ = ["ShapeClassifier", "ShapePartModel", "SpatialLDA"]


class _PartModel(Saved, Estimator):
    """A grid, the parts of its cells, and their shares."""

    saved = Fields(
        part_words_=Floats(None, None, low=0.0, high=1.0),
        weights_=Floats("part_words_", low=0.0, high=1.0),
        mixtures_=Floats(None, "part_words_", low=0.0, high=1.0),
        centres_=Floats("part_words_", "grid_shape_"),
        variances_=Floats("part_words_", "grid_shape_", low=0.0),
        labels_=OnlyInside(ListOf(Ints(None))),
        grid_low_=Floats(None),
        grid_size_=Number(0.0),
        grid_shape_=Ints("grid_low_", low=1),
    )

    labels_: list[np.ndarray]

    def _check_state(self) -> None:
        size = int(self.grid_shape_.astype(float).prod()) + 1
        if self.part_words_.shape[1] != size or self.grid_size_ <= 0:
            raise ValueError(f"part_words_ must have a column for each of the {size} words of the grid")

    @property
    def grid_(self) -> Grid:
        """The grid that makes words of points."""
        check_is_fitted(self)
        return Grid(self.grid_low_, self.grid_size_, self.grid_shape_)

    def _prepare(self, clouds: Any, grid: Grid | None) -> tuple[list[PointCloud], np.ndarray, np.ndarray, np.ndarray]:
        check_count("n_parts", self.n_parts)
        check_positive("alpha", self.alpha)
        check_positive("beta", self.beta)
        check_count("max_iter", self.max_iter, 0)
        point_clouds = as_clouds("clouds", clouds)
        points, offsets = stacked(point_clouds)
        grid = Grid.around(points, check_count("grid", self.grid)) if grid is None else grid
        self.grid_low_, self.grid_size_, self.grid_shape_ = grid.low, float(grid.size), grid.shape
        return point_clouds, points, offsets, grid.words(points)

    def _finish(self, parts: np.ndarray, words: np.ndarray, points: np.ndarray, offsets: np.ndarray) -> None:
        k, n_words = self.n_parts, self.grid_.n_words if hasattr(self, "part_words_") else self._n_words()
        by_word = np.zeros((k, n_words))
        np.add.at(by_word, (parts, words), 1.0)
        document = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        by_document = np.zeros((len(offsets) - 1, k))
        np.add.at(by_document, (document, parts), 1.0)
        counts = np.bincount(parts, minlength=k).astype(float)
        smoothed = by_word + self.beta
        self.part_words_ = smoothed / smoothed.sum(axis=1, keepdims=True)
        mixtures = by_document + self.alpha
        self.mixtures_ = mixtures / mixtures.sum(axis=1, keepdims=True)
        self.weights_ = self.mixtures_.mean(axis=0)
        sums = np.stack([np.bincount(parts, axis, k) for axis in points.T], axis=1)
        middle = points.mean(axis=0)
        self.centres_ = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1.0)[:, None], middle)
        squares = (points - self.centres_[parts]) ** 2
        sums = np.stack([np.bincount(parts, axis, k) for axis in squares.T], axis=1)
        self.variances_ = sums / np.maximum(counts, 1.0)[:, None] + self.grid_size_**2 / 12.0
        self.labels_ = [parts[a:b] for a, b in pairwise(offsets)]

    def _n_words(self) -> int:
        return int(self.grid_shape_.prod()) + 1

    def _first(self, n: int, keys: Keys) -> np.ndarray:
        random = np.random.Generator(np.random.Philox(key=keys.next()))
        return random.integers(0, self.n_parts, n).astype(np.int32)

    def predict(self, clouds: Any) -> list[np.ndarray]:
        """Return the most probable part of each point of new clouds, aligned like the training clouds.

        Parameters
        ----------
        clouds : list of clouds

        Returns
        -------
        list of int arrays
        """
        check_is_fitted(self)
        grid = self.grid_
        labels_of = []
        for i, cloud in enumerate(as_clouds("clouds", clouds, len(self.grid_low_))):
            words = grid.words(cloud.points)
            outside = int((words == grid.n_words - 1).sum())
            if outside:
                raise ValueError(
                    f"{outside} of {len(words)} points of clouds[{i}] lie outside the training grid: align and scale"
                    " the cloud like the training clouds"
                )
            labels_of.append(self._scores(cloud.points, words).argmax(axis=1))
        return labels_of

    def _scores(self, points: np.ndarray, words: np.ndarray) -> np.ndarray:
        return np.log(self.part_words_.T[words]) + np.log(self.weights_)

    def log_likelihood(self, clouds: Any) -> np.ndarray:
        """Return the log-likelihood of each cloud: Σ_i log Σ_k α_k θ_k(w_i); points outside the grid count as unseen.

        Parameters
        ----------
        clouds : list of clouds

        Returns
        -------
        array of shape (n_clouds,)
        """
        check_is_fitted(self)
        share = np.log(self.weights_ @ self.part_words_)
        point_clouds = as_clouds("clouds", clouds, len(self.grid_low_))
        return np.array([share[self.grid_.words(cloud.points)].sum() for cloud in point_clouds])


class SpatialLDA(_PartModel):
    """Divide aligned point clouds into parts by co-occurring cells of a grid (latent Dirichlet allocation).

    Parameters
    ----------
    n_parts : int, default=4
    grid : int, default=16
        Cells along the longest side of the bounding box.
    alpha, beta : float, default=0.1 and 0.01
        Concentrations of parts in a cloud and of cells in a part.
    max_iter : int, default=200
        Sweeps of Gibbs sampling.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    labels_ : list of int arrays, the part of each point
    part_words_ : array (n_parts, n_cells + 1), the cells of each part; the last represents all outside
    mixtures_ : array (n_clouds, n_parts), the parts of each cloud
    weights_ : array (n_parts,), the shares of parts
    centres_, variances_ : arrays (n_parts, dimension)
        Mean and variance of the points of each part, along each axis.

    References
    ----------
    .. [Blei2003] D. Blei, A. Ng and M. Jordan. Latent Dirichlet allocation. Journal of Machine Learning Research 3,
       2003.
    .. [Griffiths2004] T. Griffiths and M. Steyvers. Finding scientific topics. Proceedings of the National Academy of
       Sciences 101, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.fields import SpatialLDA
    >>> random = np.random.default_rng(0)
    >>> ends = lambda: np.concatenate([random.normal([0, 0, 0], 0.1, (40, 3)), random.normal([3, 0, 0], 0.1, (40, 3))])
    >>> model = SpatialLDA(2, random_state=0).fit([ends()[: 40 + 5 * i] for i in range(8)])
    >>> model.mixtures_.shape
    (8, 2)
    """

    def __init__(
        self,
        n_parts: int = 4,
        *,
        grid: int = 16,
        alpha: float = 0.1,
        beta: float = 0.01,
        max_iter: int = 200,
        random_state: Any = None,
    ) -> None:
        self.n_parts = n_parts
        self.grid = grid
        self.alpha = alpha
        self.beta = beta
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, clouds: Any, y: Any = None) -> SpatialLDA:
        """Find the parts of aligned clouds.

        Parameters
        ----------
        clouds : list of arrays (n_points, dimension), PointCloud or paths of files
        y : ignored

        Returns
        -------
        self
        """
        _, points, offsets, words = self._prepare(clouds, None)
        keys = Keys(_seed_of(self.random_state))
        parts = self._first(len(points), keys)
        alpha = np.full(self.n_parts, self.alpha, np.float32)
        _core.fields.topic_sweeps(
            offsets, words, parts, self._n_words(), alpha, float(self.beta), keys.next(), self.max_iter
        )
        self._finish(parts, words, points, offsets)
        return self


class ShapePartModel(_PartModel):
    """Divide aligned point clouds into parts by co-occurrence, smoothness and position (SLDMRF).

    Parameters
    ----------
    n_parts : int, default=4
    grid : int, default=16
        Cells along the longest side of the bounding box.
    cooccurrence, smoothness, position : bool, bool, {"predictive", "posterior"} or None
        The three terms. Co-occurrence alone is latent Dirichlet allocation, with smoothness LDMRF; position alone is
        a mixture of Gaussians. ``"posterior"`` is the printed position term, a nearest centre in effect.
    n_neighbors : int, default=6
        Neighbours of a point in its own cloud.
    spread : float, default=0.25
        √Λ, the spread of a part, in root mean square radii of the clouds.
    alpha, beta : float, default=0.1 and 0.01
        Concentrations of parts in a cloud and of cells in a part.
    max_iter : int, default=200
        Sweeps of Gibbs sampling.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    labels_ : list of int arrays, the part of each point
    part_words_ : array (n_parts, n_cells + 1), the cells of each part; the last represents all outside
    mixtures_ : array (n_clouds, n_parts), the parts of each cloud
    weights_ : array (n_parts,), the shares of parts
    centres_, variances_ : arrays (n_parts, dimension)
        Mean and variance of the points of each part, along each axis.

    References
    ----------
    .. [Xiong2013c] H. Xiong, S. Szedmak and J. Piater. 3D object class geometry modeling with spatial latent Dirichlet
       Markov random fields. GCPR, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.fields import ShapePartModel
    >>> random = np.random.default_rng(0)
    >>> ends = lambda: np.concatenate([random.normal([0, 0, 0], 0.1, (30, 3)), random.normal([3, 0, 0], 0.1, (30, 3))])
    >>> model = ShapePartModel(2, random_state=0, max_iter=50).fit([ends() for _ in range(4)])
    >>> [len(set(model.labels_[0][a:b].tolist())) for a, b in ((0, 30), (30, 60))]
    [1, 1]
    """

    def __init__(
        self,
        n_parts: int = 4,
        *,
        grid: int = 16,
        cooccurrence: bool = True,
        smoothness: bool = True,
        position: str | None = "predictive",
        n_neighbors: int = 6,
        spread: float = 0.25,
        alpha: float = 0.1,
        beta: float = 0.01,
        max_iter: int = 200,
        random_state: Any = None,
    ) -> None:
        self.n_parts = n_parts
        self.grid = grid
        self.cooccurrence = cooccurrence
        self.smoothness = smoothness
        self.position = position
        self.n_neighbors = n_neighbors
        self.spread = spread
        self.alpha = alpha
        self.beta = beta
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, clouds: Any, y: Any = None) -> ShapePartModel:
        """Find the parts of aligned clouds.

        Parameters
        ----------
        clouds : list of arrays (n_points, dimension), PointCloud or paths of files
        y : ignored

        Returns
        -------
        self
        """
        return self._fit(clouds, None)

    def _fit(self, clouds: Any, grid: Grid | None) -> ShapePartModel:
        check_choice("position", self.position, ("predictive", "posterior", None))
        spread = check_positive("spread", self.spread)
        check_count("n_neighbors", self.n_neighbors)
        if not any((check_flag("cooccurrence", self.cooccurrence), self.smoothness, self.position)):
            raise ValueError("at least one of cooccurrence, smoothness and position must be enabled")
        point_clouds, points, offsets, words = self._prepare(clouds, grid)
        if check_flag("smoothness", self.smoothness):
            starts, neighbours, weights = links(point_clouds, offsets, self.n_neighbors)
        else:
            starts, neighbours = np.zeros(len(points) + 1, np.int64), np.zeros(0, np.int32)
            weights = np.zeros(0)
        radius = float(np.mean(np.sum((points - points.mean(axis=0)) ** 2, axis=1))) or 1.0
        places = Grid(self.grid_low_, self.grid_size_, self.grid_shape_).centres(words)
        keys = Keys(_seed_of(self.random_state))
        parts = self._first(len(points), keys)
        _core.fields.part_sweeps(
            offsets,
            words,
            parts,
            self._n_words(),
            np.full(self.n_parts, float(self.alpha)),
            float(self.beta),
            starts,
            neighbours,
            weights,
            np.ascontiguousarray(places),
            radius,
            spread**2 * radius,
            bool(self.cooccurrence),
            bool(self.smoothness),
            self.position is not None,
            self.position == "predictive",
            keys.next(),
            self.max_iter,
        )
        self._finish(parts, words, points, offsets)
        return self

    def _scores(self, points: np.ndarray, words: np.ndarray) -> np.ndarray:
        scores = super()._scores(points, words)
        if self.position is None:
            return scores
        return scores + _log_normal(self, points)


METHODS = ("parts", "mixture", "global")


class ShapeClassifier(ClassifierMixin, Saved, Estimator):
    """Classify aligned point clouds by the class whose parts make them most likely.

    Parameters
    ----------
    n_parts : int, default=4
        Parts of each class.
    method : {"parts", "mixture", "global"}, default="parts"
        ``"parts"``: a :class:`ShapePartModel` of each class, scored by the cells of its parts. ``"mixture"``: the same
        model with positions alone. ``"global"``: the share of each cell in the class, without parts. Summed over parts
        the share of a cell is that in the class, so that the first and the last differ by smoothing only.
    grid : int, default=16
        Cells along the longest side of the bounding box of all clouds.
    spread : float, default=0.25
        As in :class:`ShapePartModel`.
    beta : float, default=0.01
        Concentration of cells in a part.
    max_iter : int, default=100
        Sweeps of Gibbs sampling.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    classes_ : array of labels
    models_ : list of ShapePartModel, one for each class

    References
    ----------
    .. [Xiong2013c] H. Xiong, S. Szedmak and J. Piater. 3D object class geometry modeling with spatial latent Dirichlet
       Markov random fields. GCPR, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.fields import ShapeClassifier
    >>> random = np.random.default_rng(0)
    >>> clouds = [random.normal(0, scale, (60, 3)) for scale in [(1, 1, 1), (2, 0.2, 0.2)] * 6]
    >>> model = ShapeClassifier(2, max_iter=20, random_state=0).fit(clouds[:8], ["ball", "rod"] * 4)
    >>> model.predict(clouds[8:]).tolist()
    ['ball', 'rod', 'ball', 'rod']
    """

    saved = Fields(classes_=LabelValues(1), models_=ListOf(Nested(ShapePartModel), "classes_"))

    def __init__(
        self,
        n_parts: int = 4,
        *,
        method: str = "parts",
        grid: int = 16,
        spread: float = 0.25,
        beta: float = 0.01,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.n_parts = n_parts
        self.method = method
        self.grid = grid
        self.spread = spread
        self.beta = beta
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, clouds: Any, y: Any) -> ShapeClassifier:
        """Learn the parts of each class.

        Parameters
        ----------
        clouds : list of arrays (n_points, dimension), PointCloud or paths of files
            Clouds with the same alignment and scale.
        y : labels of the clouds

        Returns
        -------
        self
        """
        check_choice("method", self.method, METHODS)
        point_clouds = as_clouds("clouds", clouds)
        labels = np.asarray(y)
        if labels.ndim != 1 or len(labels) != len(point_clouds):
            raise ValueError(
                f"y must hold one label for each of the {len(point_clouds)} clouds, got shape {labels.shape}"
            )
        self.classes_, number = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"need at least two classes to learn from, found {len(self.classes_)}")
        grid = Grid.around(stacked(point_clouds)[0], check_count("grid", self.grid))
        seed = _seed_of(self.random_state)
        whole = self.method == "global"
        self.models_ = [
            ShapePartModel(
                1 if whole else self.n_parts,
                grid=self.grid,
                cooccurrence=self.method != "mixture",
                smoothness=self.method == "parts",
                position=None if whole else "predictive",
                spread=self.spread,
                beta=self.beta,
                max_iter=0 if whole else self.max_iter,
                random_state=seed,
            )._fit([cloud for cloud, k in zip(point_clouds, number, strict=True) if k == c], grid)
            for c in range(len(self.classes_))
        ]
        return self

    def decision_function(self, clouds: Any) -> np.ndarray:
        """Return the log-likelihood of clouds in each class.

        Parameters
        ----------
        clouds : list of clouds

        Returns
        -------
        array of shape (n_clouds, n_classes)
        """
        check_is_fitted(self)
        if self.method != "mixture":
            return np.stack([model.log_likelihood(clouds) for model in self.models_], axis=1)
        point_clouds = as_clouds("clouds", clouds, len(self.models_[0].grid_low_))
        return np.array([[_mixture(model, cloud.points) for model in self.models_] for cloud in point_clouds])

    def predict(self, clouds: Any) -> np.ndarray:
        """Return the most likely class of each cloud.

        Parameters
        ----------
        clouds : list of clouds

        Returns
        -------
        array of labels
        """
        scores = self.decision_function(clouds)
        return self.classes_[scores.argmax(axis=1)]

    def predict_proba(self, clouds: Any) -> np.ndarray:
        """Return the probabilities of classes that are equally frequent.

        Parameters
        ----------
        clouds : list of clouds

        Returns
        -------
        array of shape (n_clouds, n_classes)
        """
        return softmax(self.decision_function(clouds), axis=1)

    def score(self, clouds: Any, y: Any) -> float:
        """Return the accuracy.

        Parameters
        ----------
        clouds : list of clouds
        y : labels

        Returns
        -------
        float
        """
        return float(np.mean(self.predict(clouds) == np.asarray(y)))


def _log_normal(model: _PartModel, points: np.ndarray) -> np.ndarray:
    """log N(x_i; c_k, diag v_k), points × parts."""
    squares = ((points[:, None, :] - model.centres_) ** 2 / model.variances_).sum(axis=2)
    return -0.5 * (squares + np.log(2.0 * np.pi * model.variances_).sum(axis=1))


def _mixture(model: ShapePartModel, points: np.ndarray) -> float:
    """Σ_i log Σ_k π_k N(x_i; c_k, v_k): the mixture of Gaussians that positions alone make."""
    return float(logsumexp(_log_normal(model, points) + np.log(model.weights_), axis=1).sum())
