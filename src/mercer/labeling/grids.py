"""Image labelling: blocks of pixels as a grid with dependent neighbours.

    p(y | x) ∝ exp( Σ_v ⟨w_{y_v}, x_v⟩ + Σ_{u∼v} ⟨w_e, x_uv⟩ 1[y_u = y_v] )

with features x_v of blocks and x_uv of pairs of neighbours (a constant, and their similarity).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mercer._state.saved import Count, Fields, Floats, Number, Optional
from mercer._validation import check_choice, check_count
from mercer._warnings import warn_caller
from mercer.data.labels import LabelIndex, TagSequences
from mercer.inference.graph import grid_edges
from mercer.labeling.features import as_image, block_contrasts, block_features, block_labels
from mercer.labeling.graphs import GraphLabeler, _split
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.losses import Log, Loss
from mercer.learning.risk import Risk
from mercer.learning.solvers import Solver
from mercer.learning.training import train
from mercer.metrics.images import check_label_maps
from mercer.structures.graph_inputs import GraphInputs
from mercer.structures.graph_labels import GraphLabels

__all__ = ["GridLabeler"]

_LARGEST_BLOCK, _ENOUGH_BLOCKS = 8, 400


class GridLabeler(GraphLabeler):
    """Label the pixels of images in blocks, with dependent neighbouring blocks.

    Parameters
    ----------
    loss, inference, solver, C, training, cost, penalty, l1_ratio, max_iter, tol, patience, warm_start, n_jobs, \
random_state, verbose
        As in :class:`GraphLabeler`. With ``warm_start`` features stay standardised as in the first fit.
    block : int or "auto", default="auto"
        Side length of a block in pixels; all pixels of a block get one label. ``"auto"``: the largest up to 8 that
        leaves at least 400 blocks in half of the training images. Neighbours help if an object covers many blocks; on a
        coarse grid they mostly smooth away thin parts.
    connectivity : {4, 8}, default=4
        Neighbours of a block: 8 includes diagonal ones.
    features : "auto" or callable, default="auto"
        Features of blocks: :func:`block_features`, or a function of an image and the block size that returns an array
        (rows of blocks, columns of blocks, features). Features are standardised.
    edge_weights : {"attractive", "potts", "symmetric", "directed", "none"}, default="attractive"
        With ``"attractive"`` neighbours tend to agree, less so across borders, and minimum cuts are exact for two
        labels; ``"none"`` is a classifier of single blocks.
    unknown : optional
        A value in label maps that marks an unknown label. (With margin losses every block
        must have a known pixel.)

    Attributes
    ----------
    classes_, coef_, inference_, exact_, history_, solver_, C_, converged_, n_iter_
        As of :class:`GraphLabeler`.
    block_ : int, pixels of a side of a block
    grid_score_, alone_score_ : float
        Accuracy on blocks of this model, and of a logistic regression on single blocks; on
        the training images, or on ``dev``. A warning is raised if the grid is not better.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.labeling import GridLabeler
    >>> random = np.random.default_rng(0)
    >>> truth = np.zeros((32, 32), int)
    >>> truth[8:24, 8:24] = 1
    >>> images = [truth + random.normal(size=truth.shape) for _ in range(6)]
    >>> labeler = GridLabeler(block=4, C=0.1).fit(images[:4], [truth] * 4)
    >>> labeler.predict(images[4:])[0].shape, labeler.score(images[4:], [truth] * 2) > 0.9
    ((32, 32), True)
    """

    def __init__(
        self,
        loss: str | Loss = "log",
        inference: str = "auto",
        solver: str | Solver = "auto",
        C: float | str = "auto",
        *,
        block: int | str = "auto",
        connectivity: int = 4,
        features: str | Callable[[np.ndarray, int], np.ndarray] = "auto",
        edge_weights: str = "attractive",
        unknown: Any = None,
        training: str = "joint",
        cost: Any = "hamming",
        penalty: str | None = "l2",
        l1_ratio: float = 0.5,
        max_iter: int | None = None,
        tol: float | None = None,
        patience: int = 10,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            loss, inference, solver, C, edge_weights=edge_weights, training=training, cost=cost, penalty=penalty,
            l1_ratio=l1_ratio, max_iter=max_iter, tol=tol, patience=patience, warm_start=warm_start, n_jobs=n_jobs,
            random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.block = block
        self.connectivity = connectivity
        self.features = features
        self.unknown = unknown

    def fit(
        self,
        X: Any,
        y: Sequence[Any],
        sample_weight: Any = None,
        *,
        dev: tuple[Any, Sequence[Any]] | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> GridLabeler:
        """Train on images and their label maps.

        Parameters
        ----------
        X : list of arrays of shape (H, W) or (H, W, channels)
            Sizes may differ, but not the number of channels.
        y : list of arrays of shape (H, W)
            A label for each pixel; None if unknown.
        sample_weight : array of a number for each image, optional
            Factors of C, not negative.
        dev : (X, y), optional
            Held-out data: the weights with the best accuracy of blocks on it are kept.
        checkpoint : path or Checkpoint, optional
            As in :meth:`GraphLabeler.fit`.

        Returns
        -------
        self
        """
        _check_sizes(X, y)
        return self._fit(X, y, sample_weight=sample_weight, dev=dev, checkpoint=checkpoint)

    def partial_fit(self, X: Any, y: Sequence[Any]) -> GridLabeler:
        """Make one pass of an online solver over more images; features stay standardised as in the first call.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.

        Returns
        -------
        self
        """
        _check_sizes(X, y)
        return self._partial_fit(X, y)

    # ------------------------------------------------------------------ prediction

    def predict(self, X: Any) -> Any:
        """Return a label map of the size of each image.

        Parameters
        ----------
        X : list of arrays of shape (H, W) or (H, W, channels), or one such array
            An array of three dimensions is one image if its number of channels is that of training, and otherwise a
            stack of one-channel images.

        Returns
        -------
        list of arrays of shape (H, W), or one array for one image
        """
        if self._is_one_image(X):
            return self.predict([X])[0]
        images = _images(X)
        inputs = self._fitted(images)
        blocks = _split(self._argmax(self.coef_, inputs), inputs)
        return [self.classes_[self._enlarged(rows, image)] for rows, image in zip(blocks, images, strict=True)]

    def predict_marginals(self, X: Any) -> Any:
        """Return the probability of every label at each pixel.

        Parameters
        ----------
        X
            As in :meth:`predict`.

        Returns
        -------
        list of arrays of shape (H, W, labels), or one array for one image
        """
        if self._is_one_image(X):
            return self.predict_marginals([X])[0]
        images = _images(X)
        marginals = super().predict_marginals(images)
        return [self._enlarged(rows, image) for rows, image in zip(marginals, images, strict=True)]

    def _is_one_image(self, X: Any) -> bool:
        if not isinstance(X, np.ndarray) or X.ndim not in (2, 3) or X.dtype.kind not in "uifb" or not X.size:
            return False
        if X.ndim == 2:
            return True
        self._check_is_fitted()
        corner = as_image(X[:1, :1])
        make = block_features if isinstance(self.features, str) else self.features
        return X.shape[2] > 1 and np.shape(make(corner, self.block_))[-1] == self.n_features_in_

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy over pixels with a known label."""
        _check_sizes(X, y)
        right = total = 0
        for predicted, truth in zip(self.predict(X), check_label_maps(y), strict=True):
            known = (truth != self.unknown) & (truth != None)  # noqa: E711 (element by element)
            right, total = right + int(((predicted == truth) & known).sum()), total + int(known.sum())
        if not total:
            raise ValueError("no known label to compare with")
        return right / total

    def log_likelihood(self, X: Any, y: Any) -> np.ndarray:
        """Return log p(labels of the blocks | image) of each image, with the plan's log Z."""
        return super().log_likelihood(X, y)

    def _read(self, X: Any, y: Any) -> tuple[GraphInputs, TagSequences]:
        _check_sizes(X, y)
        return super()._read(X, y)

    def _ranked(self, x: Any) -> list[Any]:
        """Return the best labels of the blocks as rows, in encoded form."""
        return [np.array(item[0], dtype=object) for item in self.k_best([x], 2)[0]]

    def _encoded_outputs(self, x: Any, outputs: list[Any]) -> tuple[GraphInputs, TagSequences]:
        inputs = self._inputs([x] * len(outputs))
        rows = []
        for output, n in zip(outputs, inputs.lengths.tolist(), strict=True):
            given = np.asarray(output, dtype=object)
            if given.ndim == 1 and len(given) == n:  # labels of blocks
                rows.append(self._labels.encode([given.tolist()], np.array([n])).labels)
            else:
                rows.append(self._encode_maps(self._labels, [given], inputs[:1]).labels)
        return inputs, TagSequences(np.concatenate(rows), inputs.offsets)

    def _edge_name(self, feature: int) -> str:
        return "constant" if feature == 0 else "alike" if feature == 1 else f"e{feature}"

    def _read_to_compare(self, X: Any, y: Any) -> tuple[GraphInputs, TagSequences]:
        _check_sizes(X, y)
        return super()._read_to_compare(X, y)

    def _enlarged(self, rows: np.ndarray, image: np.ndarray) -> np.ndarray:
        H, W = image.shape[:2]
        h, w = -(-H // self.block_), -(-W // self.block_)
        grid = rows.reshape(h, w, *rows.shape[1:])
        return grid.repeat(min(self.block_, H), axis=0)[:H].repeat(min(self.block_, W), axis=1)[:, :W]

    # ------------------------------------------------------------------ model files

    saved = GraphLabeler.saved | Fields(
        block_=Count(1),
        mean_=Floats("n_features_in_"),
        scale_=Floats("n_features_in_", low=np.finfo(float).tiny),
        grid_score_=Optional(Number(0, 1)),
        alone_score_=Optional(Number(0, 1)),
    )

    def _saved_params(self) -> dict[str, Any]:
        if not isinstance(self.features, str):
            raise TypeError("a model file cannot contain the function features: use features='auto'")
        return super()._saved_params()

    # ------------------------------------------------------------------ parts

    def _check(self) -> None:
        if not (isinstance(self.block, str) and self.block == "auto"):
            try:
                check_count("block", self.block)
            except ValueError:
                raise ValueError(f"block must be 'auto' or an integer of at least 1, got {self.block!r}") from None
        check_choice("connectivity", self.connectivity, (4, 8))
        if not callable(self.features):
            check_choice("features", self.features, ("auto",))
        super()._check()

    def _reason_against_parts(self) -> str | None:
        return "standardisation and block size need all images at once"

    def _learn_inputs(self, X: Any, last: Any) -> GraphInputs:
        images, goes_on = _images(X), last is not None
        if not (goes_on and isinstance(self.block, str)):
            self.block_ = _block_of(images) if isinstance(self.block, str) else self.block
        inputs = self._grids(images)
        if goes_on:
            return self._standardised(inputs)
        self.n_features_in_ = inputs.n_features
        self.mean_ = inputs.nodes.mean(axis=0) if len(inputs) else np.zeros(inputs.n_features)
        spread = inputs.nodes.std(axis=0) if len(inputs) else np.zeros(inputs.n_features)
        self.scale_ = np.where(spread > 0, spread, 1.0)
        return self._standardised(inputs)

    def _compare(
        self, inputs: GraphInputs, tags: TagSequences, held_out: tuple[GraphInputs, TagSequences] | None
    ) -> None:
        """Also label blocks independently, and warn if neighbours do not help."""
        if self.edge_weights == "none":
            return
        alone = GraphLabels(
            len(self._labels), inputs.n_features, n_edge_features=self.n_edge_features_, edge_weights="none",
            threads=self.structure_.threads,
        )  # fmt: skip
        result, _ = train(Risk(alone, Log(), inputs, tags), solver="lbfgs", C=1.0, tol=1e-3, warn=False)
        seen, truth = (inputs, tags) if held_out is None else held_out
        known = truth.labels >= 0
        together = self._argmax(self.coef_, seen)
        single, _ = alone.argmax(alone.scores(result.w, seen))
        self.grid_score_ = float((together[known] == truth.labels[known]).mean())
        self.alone_score_ = float((single[known] == truth.labels[known]).mean())
        if self.grid_score_ <= self.alone_score_:
            smaller = " a smaller block or" if self.block_ > 1 else ""
            warn_caller(
                f"neighbours do not help: the grid labels {self.grid_score_:.1%} of the "
                f"{'training' if held_out is None else 'held-out'} blocks right, blocks one by one "
                f"{self.alone_score_:.1%}; try{smaller} edge_weights='none'",
                UserWarning,
            )

    def _inputs(self, X: Any) -> GraphInputs:
        return self._standardised(self._grids(_images(X)))

    def _standardised(self, inputs: GraphInputs) -> GraphInputs:
        if not len(inputs):
            inputs = inputs.with_features(np.zeros((0, self.n_features_in_)), np.zeros((0, self.n_edge_features_)))
        if inputs.n_features != self.n_features_in_:
            raise ValueError(
                f"blocks of X have {inputs.n_features} features, the model has {self.n_features_in_}: images need as "
                "many channels as in training"
            )
        return self._with_bias(inputs.with_features((inputs.nodes - self.mean_) / self.scale_))

    def _grids(self, images: list[np.ndarray]) -> GraphInputs:
        make = block_features if isinstance(self.features, str) else self.features
        graphs = []
        for i, image in enumerate(images):
            shape = tuple(-(-n // self.block_) for n in image.shape[:2])
            features = np.asarray(make(image, self.block_), dtype=float)
            if features.ndim != 3 or features.shape[:2] != shape:
                raise ValueError(f"image {i}: features returned shape {features.shape}, expected {shape} + (features,)")
            edges = grid_edges(shape, self.connectivity)
            graphs.append((features.reshape(-1, features.shape[2]), edges, block_contrasts(image, edges, self.block_)))
        return GraphInputs.from_list(graphs)

    def _learn_labels(self, y: Any, inputs: GraphInputs, more: Sequence[Any]) -> tuple[LabelIndex, TagSequences]:
        labels = LabelIndex(sorted(self._labels_of(y) | set(more)))
        if len(labels) < 2:
            raise ValueError(f"need at least two different labels to learn from, found {len(labels)}")
        return labels, self._encode(labels, y, inputs)

    def _labels_of(self, y: Any) -> set[Any]:
        """Return the labels that occur in maps."""
        labels: set[Any] = set()
        for i, truth in enumerate(check_label_maps(y)):
            values, _ = _values(truth, i)
            labels.update(values)
        return labels - {self.unknown, None}

    def _with_unseen(self, y: Any) -> LabelIndex:
        return self._labels.with_unseen([sorted(self._labels_of(y))])

    def _encode(self, labels: LabelIndex, y: Any, inputs: GraphInputs) -> TagSequences:
        maps = check_label_maps(y)
        parts = []
        for i, truth in enumerate(maps):
            values, places = _values(truth, i)
            lookup = {c: k for k, c in enumerate(labels.classes)} | {None: -1, self.unknown: -1}
            missing = [v for v in values if v not in lookup]
            if missing:
                raise ValueError(f"label map {i}: unknown label {missing[0]!r}")
            numbers = np.array([lookup[v] for v in values], np.int32)[places].reshape(truth.shape)
            blocks = block_labels(numbers, len(labels), self.block_)
            parts.append(blocks.ravel())
        return TagSequences(np.concatenate(parts) if parts else np.zeros(0, np.int32), inputs.offsets)


def _block_of(images: list[np.ndarray]) -> int:
    """Return the largest block up to 8 pixels with at least 400 blocks in half of the images."""
    for block in range(_LARGEST_BLOCK, 1, -1):
        counts = [-(-image.shape[0] // block) * -(-image.shape[1] // block) for image in images]
        if counts and np.median(counts) >= _ENOUGH_BLOCKS:
            return block
    return 1


def _images(X: Any) -> list[np.ndarray]:
    if isinstance(X, (str, bytes)) or not hasattr(X, "__len__"):
        raise TypeError(f"X must be a list of images, got {type(X).__name__}")
    images = [as_image(image, f"image {i}") for i, image in enumerate(X)]
    channels = {image.shape[2] for image in images}
    if len(channels) > 1:
        raise ValueError(f"images have different numbers of channels: {sorted(channels)}")
    return images


def _values(truth: np.ndarray, i: int) -> tuple[list[Any], np.ndarray]:
    """Return the distinct labels of a map, and the label index of each pixel."""
    flat = truth.ravel().tolist() if truth.dtype.kind in "fO" else []
    if any(isinstance(value, float) and not math.isfinite(value) for value in flat):
        raise ValueError(f"label map {i} contains NaN or infinity: use None or the value of 'unknown'")
    if truth.dtype != object:
        values, places = np.unique(truth, return_inverse=True)
        return values.tolist(), places
    numbers: dict[Any, int] = {}
    places = np.array([numbers.setdefault(label, len(numbers)) for label in flat], np.int64)
    return list(numbers), places


def _check_sizes(X: Any, y: Any) -> None:
    """Check that images and label maps have the same sizes."""
    images, maps = _images(X), check_label_maps(y)
    if len(images) != len(maps):
        raise ValueError(f"{len(images)} images in X, {len(maps)} label maps in y")
    for i, (image, truth) in enumerate(zip(images, maps, strict=True)):
        if image.shape[:2] != truth.shape:
            raise ValueError(f"label map {i} has shape {truth.shape}, the image {image.shape[:2]}")
