"""Bags of visual words: counts of image descriptors quantised by a codebook.

    word(d) = argmin_k ‖d − c_k‖,   h_k = share of the descriptors of the item whose word is k

The words c_k are the centres of k-means on the descriptors of all training items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._state.saved import Count, Fields, Floats, Saved
from mercer._validation import check_choice, check_count

__all__ = ["Codebook", "gradient_descriptors"]


def gradient_descriptors(image: Any, size: int = 16, step: int = 8, cells: int = 4, bins: int = 8) -> np.ndarray:
    """Return gradient histograms of overlapping patches of a grey image, on a regular grid.

    These are upright descriptors of one scale, as in dense SIFT. A patch is divided into cells × cells cells, each with
    a histogram of directions weighted by gradient lengths. A descriptor is normalised to length 1, clipped at 0.2 and
    normalised again. Patches without a gradient are skipped.

    Parameters
    ----------
    image : array of shape (height, width)
    size, step : int, default=16, 8
        Side of a patch and distance of neighbouring patches, in pixels. ``size`` is a multiple of ``cells``.
    cells, bins : int, default=4, 8

    Returns
    -------
    array of shape (n_patches, cells² · bins)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import gradient_descriptors
    >>> gradient_descriptors(np.random.default_rng(0).random((32, 32))).shape
    (9, 128)
    >>> gradient_descriptors(np.ones((32, 32))).shape
    (0, 128)
    """
    picture = np.asarray(image, float)
    check_count("step", step), check_count("bins", bins)
    if check_count("size", size) % check_count("cells", cells):
        raise ValueError(f"size must be a multiple of cells={cells}, got {size}")
    if picture.ndim != 2 or min(picture.shape) < size or not np.isfinite(picture).all():
        raise ValueError(
            f"image must be a grey image of finite numbers of at least {size} x {size}, got {picture.shape}"
        )
    dy, dx = np.gradient(picture)
    length = np.hypot(dx, dy)
    turn = np.arctan2(dy, dx) / (2 * np.pi) * bins  # shared by the two nearest directions
    low = np.floor(turn)
    planes = np.zeros((bins, *picture.shape))
    rows, columns = np.indices(picture.shape)
    for k, share in ((low, 1 - (turn - low)), (low + 1, turn - low)):
        np.add.at(planes, (k.astype(int) % bins, rows, columns), length * share)
    sums = np.pad(planes.cumsum(axis=1).cumsum(axis=2), ((0, 0), (1, 0), (1, 0)))
    side = size // cells
    tops, lefts = (np.arange(0, n - size + 1, step) for n in picture.shape)
    a = (tops[:, None] + side * np.arange(cells + 1)).ravel()
    b = (lefts[:, None] + side * np.arange(cells + 1)).ravel()
    at = sums[:, a][:, :, b].reshape(bins, len(tops), cells + 1, len(lefts), cells + 1)
    cell = np.diff(np.diff(at, axis=2), axis=4)
    described = np.maximum(cell.transpose(1, 3, 2, 4, 0).reshape(len(tops) * len(lefts), -1), 0.0)
    norms = np.linalg.norm(described, axis=1)
    described = np.minimum(described[norms > 1e-12] / norms[norms > 1e-12, None], 0.2)
    return described / np.linalg.norm(described, axis=1, keepdims=True) if len(described) else described


class Codebook(Saved, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Map a set of descriptors to a histogram of visual words.

    Parameters
    ----------
    n_words : int, default=50
        Size of the codebook.
    descriptors : {"given", "gradients"} or callable, default="given"
        Source of the descriptors. "given": an item is an array (n_descriptors, n_features). "gradients": an item is a
        grey image, described by :func:`gradient_descriptors`. Or a function item → array.
    nested : bool, default=False
        X is a list of sequences of items, such as the frames of videos; ``transform`` returns a list of arrays then,
        one row for each frame, which :class:`~mercer.segmentation.SegmentStatistics` takes.
    normalize : bool, default=True
        Shares instead of counts.
    max_descriptors : int, default=100_000
        Maximum number of descriptors for k-means; a random sample if there are more.
    random_state : int, RandomState or None, default=None
        Seed of the sample and of k-means.

    Attributes
    ----------
    words_ : array of shape (n_words, n_features)
    n_features_in_ : int
        Number of features of a descriptor.

    References
    ----------
    .. [Sivic2003] J. Sivic and A. Zisserman. Video Google: a text retrieval approach to object matching in videos.
       ICCV, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import Codebook
    >>> rng = np.random.default_rng(0)
    >>> frames = [rng.normal(size=(30, 2)) + [4 * (k % 2), 0] for k in range(6)]
    >>> Codebook(2, random_state=0).fit_transform(frames).max(axis=1) > 0.9
    array([ True,  True,  True,  True,  True,  True])
    """

    saved = Fields(n_features_in_=Count(1), words_=Floats("n_words", "n_features_in_"))

    def __init__(
        self,
        n_words: int = 50,
        descriptors: str | Callable[[Any], Any] = "given",
        *,
        nested: bool = False,
        normalize: bool = True,
        max_descriptors: int = 100_000,
        random_state: Any = None,
    ) -> None:
        self.n_words = n_words
        self.descriptors = descriptors
        self.nested = nested
        self.normalize = normalize
        self.max_descriptors = max_descriptors
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Codebook:
        """Learn the words from the descriptors of all items.

        Parameters
        ----------
        X : list of items, or of sequences of items
        y : None
            Not used.

        Returns
        -------
        self
        """
        items = self._items(X)[0]
        described = self._described(items, None)
        points = np.concatenate(described) if described else np.zeros((0, 1))
        k, most = check_count("n_words", self.n_words), check_count("max_descriptors", self.max_descriptors)
        if len(points) < k:
            raise ValueError(f"a codebook of {k} words needs as many descriptors, X has {len(points)}")
        random = check_random_state(self.random_state)
        if len(points) > most:
            points = points[np.sort(random.permutation(len(points))[:most])]
        self.n_features_in_ = points.shape[1]
        model = KMeans(min(k, len(np.unique(points, axis=0))), n_init=1, random_state=random).fit(points)
        if model.n_clusters < k:
            raise ValueError(f"X has {model.n_clusters} different descriptors: too few for {k} words")
        self.words_ = np.ascontiguousarray(model.cluster_centers_, np.float64)
        return self

    def transform(self, X: Any) -> Any:
        """Return a histogram of words for each item.

        Parameters
        ----------
        X : list of items, or of sequences of items

        Returns
        -------
        array of shape (n_items, n_words), or a list of them with ``nested=True``
            A row of 0 for an item without descriptors.
        """
        check_is_fitted(self, "words_")
        items, ends = self._items(X)
        rows = np.zeros((len(items), len(self.words_)))
        squares = (self.words_**2).sum(axis=1)
        for i, points in enumerate(self._described(items, self.n_features_in_)):
            words = (squares - 2 * points @ self.words_.T).argmin(axis=1)
            rows[i] = np.bincount(words, minlength=len(self.words_))
        if self.normalize:
            rows /= np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
        return rows if ends is None else np.split(rows, ends[:-1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.words_)

    def _saved_params(self) -> dict[str, Any]:
        if callable(self.descriptors):
            raise ValueError("descriptors is a function, which a model file cannot hold: give descriptors themselves")
        return super()._saved_params()

    def _check_state(self) -> None:
        check_choice("descriptors", self.descriptors, ("given", "gradients"))
        for name in ("nested", "normalize"):
            check_choice(name, getattr(self, name), (True, False))

    def _items(self, X: Any) -> tuple[Sequence[Any], np.ndarray | None]:
        """All items, and where each sequence ends."""
        check_choice("nested", self.nested, (True, False))
        if isinstance(X, (str, bytes)) or not hasattr(X, "__len__"):
            raise ValueError(f"X must be a list of items, got {type(X).__name__}")
        if not self.nested:
            return list(X), None
        parts = [list(part) for part in X]
        return [item for part in parts for item in part], np.cumsum([len(part) for part in parts])

    def _described(self, items: Sequence[Any], width: int | None) -> list[np.ndarray]:
        if not callable(self.descriptors):
            check_choice("descriptors", self.descriptors, ("given", "gradients"))
        describe = gradient_descriptors if self.descriptors == "gradients" else self.descriptors
        out = []
        for i, item in enumerate(items):
            points = np.asarray(describe(item) if callable(describe) else item, float)
            if points.size == 0:  # an item without descriptors
                points = np.zeros((0, points.shape[1] if points.ndim == 2 and points.shape[1] else width or 0))
            if points.ndim != 2:
                raise ValueError(
                    f"item {i} must have descriptors of shape (n_descriptors, n_features), got {points.shape}: "
                    "descriptors='gradients' takes images, nested=True sequences of items"
                )
            if not np.isfinite(points).all():
                raise ValueError(f"item {i}: descriptors must be finite, found NaN or infinity")
            width = points.shape[1] if width is None and len(points) else width
            if len(points) and points.shape[1] != width:
                raise ValueError(f"item {i} has descriptors of {points.shape[1]} features, expected {width}")
            out.append(points)
        return [points if len(points) else np.zeros((0, width or 0)) for points in out]
