"""Events in videos from labels of whole videos: a video is a bag of segments of several lengths.

instances of a video   segments of g frames, for every granularity g; "all" is the whole video
features               mean (or maximum) over the frames of the segment,   weight ϖ = its length
share of a bag         1 for a video with the event, 0 for others; the soft loss allows for frames without it

score of a video       Σ ϖ_i f(x_i) / Σ ϖ_i
score of a frame       mean of f over the segments that cover it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score
from sklearn.utils import check_array, check_random_state

from mercer._estimator import Estimator
from mercer._progress import say
from mercer._state.saved import Count, Fields, Flag, Floats, LabelValues, ListOf, Objects, Saved, outputs
from mercer._threads import each
from mercer._validation import check_choice, check_count, check_positive, check_sparse
from mercer.data.bags import Bags, missing_values, plain_values
from mercer.proportions._base import ProportionEstimator
from mercer.proportions._clones import default_learner, seeded_clone

__all__ = ["VideoEventDetector"]

POOLINGS = ("mean", "max")


@dataclass(frozen=True)
class Segments:
    """Segments of videos: frames starts … stops − 1 of all frames in a row, video by video."""

    starts: np.ndarray
    stops: np.ndarray
    video: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Return the number of frames of each segment."""
        return self.stops - self.starts


def cut(lengths: np.ndarray, granularities: Sequence[Any], stride: int) -> Segments:
    """Return the segments of videos with these lengths.

    Segments of g frames begin every ``stride`` frames, plus one that ends with the video. Videos shorter than g have no
    segment of that length; a video without any segment becomes one segment.
    """
    starts, stops, video = [], [], []
    begin = 0
    for v, n in enumerate(int(n) for n in lengths):
        for g in granularities:
            if g != "all" and g > n:
                continue
            size = n if g == "all" else int(g)
            at = np.unique(np.append(np.arange(0, n - size + 1, stride), n - size))
            starts.append(begin + at)
            stops.append(begin + at + size)
            video.append(np.full(len(at), v))
        if all(g != "all" and g > n for g in granularities):
            starts.append(np.array([begin]))
            stops.append(np.array([begin + n]))
            video.append(np.array([v]))
        begin += n
    return Segments(*(np.concatenate(part).astype(np.int64) for part in (starts, stops, video)))


def pooled(frames: Any, segments: Segments, pooling: str) -> Any:
    """Return features of segments: means, or maxima, over their frames."""
    if pooling == "max":
        bounds = zip(segments.starts, segments.stops, strict=True)
        if sp.issparse(frames):
            return sp.vstack([sp.csr_matrix(frames[a:b].max(axis=0)) for a, b in bounds], format="csr")
        return np.array([frames[a:b].max(axis=0) for a, b in bounds])
    return cover(segments, frames.shape[0], 1.0 / segments.lengths) @ frames


def cover(segments: Segments, n: int, values: np.ndarray) -> sp.csr_matrix:
    """The matrix with ``values[i]`` where segment i covers a frame, shape (n_segments, n)."""
    sizes = segments.lengths
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    frame = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - segments.starts, sizes)
    return sp.csr_matrix((np.repeat(values, sizes), frame, offsets), shape=(len(sizes), n))


def averages(scores: np.ndarray, segments: Segments, n: int) -> np.ndarray:
    """Return scores of n videos: means of segment scores, weighted by length."""
    weight = segments.lengths.astype(np.float64)
    total = np.bincount(segments.video, weight, minlength=n)
    return np.column_stack([np.bincount(segments.video, weight * f, minlength=n) / total for f in scores.T])


class VideoEventDetector(Saved, Estimator):
    """Detect events in videos and their frames, from labels of whole videos.

    A video is a bag of segments of several lengths. The share of positive segments is 1 if the video has the event,
    else 0. A learner from proportions then learns a function of segments.

    Parameters
    ----------
    granularities : sequence of integers and "all", default=(1, 3, 5, "all")
        Lengths of segments in frames; ``"all"`` is the whole video. ``("all",)`` alone is one feature vector for each
        video, the bag of words of a video. A model learnt from some lengths can be applied to others: set this
        parameter again after `fit`.
    stride : int, default=1
        Frames between the starts of segments of one length.
    pooling : {"mean", "max"}, default="mean"
        How the features of frames are pooled into those of a segment.
    estimator : ProportionEstimator, optional
        The learner of one event. Default: `AlternatingProportionSVM`, linear, with weight ``C`` for the share of each
        video and weight 1 for its segments together.
    C : float, default=1.0
        Weight of the shares 1 and 0 in the default learner. On generated videos values from 0.1 to 10 rank held-out
        videos equally well (``benchmarks/video_events.py --parts choose``); for other videos choose it by
        cross-validation.
    random_state : int, RandomState or None, default=None
        Used if the learner has none.
    n_jobs : int or None, default=None
        Threads; several events are learnt in parallel.
    verbose : int, default=0
        Print a line for each event learnt.

    Attributes
    ----------
    classes_ : ndarray
        Labels; with a matrix of labels the numbers of its columns.
    multilabel_ : bool
    estimators_ : list of ProportionEstimator
        One for each event: one for two classes, else one for each class (against the rest) or column.
    score_mean_, score_scale_ : ndarray, one for each event
        Mean and standard deviation of the scores of training videos, for `fuse`.

    See Also
    --------
    MultipleInstanceSVM : one frame is enough to make a video positive.

    References
    ----------
    .. [Lai2014] K.-T. Lai, F. X. Yu, M.-S. Chen and S.-F. Chang. Video event detection by inferring temporal instance
       labels. CVPR, 2014.

    Examples
    --------
    >>> from mercer.datasets import make_videos
    >>> from mercer.proportions import ProportionClassifier, VideoEventDetector
    >>> task = make_videos(n_videos=80)
    >>> detector = VideoEventDetector(estimator=ProportionClassifier(random_state=0))
    >>> detector = detector.fit(task.videos[:40], task.y[:40])
    >>> detector.score(task.videos[40:], task.y[40:]) > 0.9
    True
    >>> [segment.stop - segment.start for segment in detector.top_instances(task.videos[41], 2, granularity=1)]
    [1, 1]
    """

    saved = Fields(
        n_features_in_=Count(),
        classes_=LabelValues(),
        multilabel_=Flag(),
        estimators_=ListOf(Objects(), "_n_events"),
        score_mean_=Floats("_n_events"),
        score_scale_=Floats("_n_events"),
    )

    def __init__(
        self,
        granularities: Sequence[Any] = (1, 3, 5, "all"),
        *,
        stride: int = 1,
        pooling: str = "mean",
        estimator: Any = None,
        C: float = 1.0,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.granularities = granularities
        self.stride = stride
        self.pooling = pooling
        self.estimator = estimator
        self.C = C
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ------------------------------------------------------------------ learning

    def _check_parameters(self) -> None:
        given = self.granularities
        fits = isinstance(given, (list, tuple)) and len(given) > 0
        if not fits or any(g != "all" and (isinstance(g, bool) or not isinstance(g, int) or g < 1) for g in given):
            raise ValueError(f"granularities must be lengths of at least 1, or 'all', at least one, got {given!r}")
        if len(set(given)) < len(given):
            raise ValueError(f"granularities must differ, got {given!r}")
        check_count("stride", self.stride)
        check_choice("pooling", self.pooling, POOLINGS)
        check_positive("C", self.C)
        if self.estimator is not None and not isinstance(self.estimator, ProportionEstimator):
            kind = type(self.estimator).__name__
            raise ValueError(f"estimator must be a learner from proportions of mercer.proportions, got {kind}")

    def fit(self, videos: Any, y: Any) -> VideoEventDetector:
        """Learn from videos and their labels.

        Parameters
        ----------
        videos : list of arrays or sparse matrices of shape (n_frames, n_features), or Sequences
        y : array of shape (n_videos,), or of 0 and 1 with shape (n_videos, n_events)
            The label of each video; with two classes the second is the event. A matrix says which events each has.

        Returns
        -------
        self
        """
        self._check_parameters()
        frames, lengths = self._frames(videos, reset=True)
        targets = self._targets(y, len(lengths))
        segments = cut(lengths, self.granularities, self.stride)
        features = pooled(frames, segments, self.pooling)
        bags = Bags(segments.video, row_weight=segments.lengths)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=targets.shape[1])

        def learn(event: int) -> Any:
            share = targets[:, event].astype(np.float64)
            model = self._learner(len(segments.video) / len(lengths), int(seeds[event]))
            model._warns_of_constants = False  # not all segments of a positive video show the event
            model.fit(features, bags=bags, proportions=share)
            if self.verbose:
                say(f"event {event + 1} of {targets.shape[1]}: {int(share.sum())} of {len(share)} videos")
            return model

        self.estimators_ = each(learn, range(targets.shape[1]), self.n_jobs)
        scores = self._averages(features, segments, len(lengths))
        self.score_mean_, spread = scores.mean(axis=0), scores.std(axis=0)
        self.score_scale_ = np.where(spread > 0, spread, 1.0)
        return self

    def _learner(self, per_video: float, seed: int) -> Any:
        if self.estimator is None:
            return default_learner(self.C, per_video, seed, init="random", annealing=True, max_swaps=0)
        return seeded_clone(self.estimator, seed)

    def _frames(self, videos: Any, reset: bool) -> tuple[Any, np.ndarray]:
        """All frames in a row, and the length of each video."""
        if isinstance(videos, (str, bytes, dict)) or not hasattr(videos, "__iter__"):
            raise ValueError(f"videos must be a list of arrays (n_frames, n_features), got {type(videos).__name__}")
        array = isinstance(videos, np.ndarray) and videos.dtype.kind != "O" and videos.ndim < 3
        if sp.issparse(videos) or array:
            raise ValueError("videos must be a list of arrays (n_frames, n_features): for one video pass [video]")
        parts = []
        for number, video in enumerate(videos):
            try:
                parts.append(check_array(check_sparse("the features", video), accept_sparse="csr", dtype=np.float64))
            except ValueError as error:
                raise ValueError(f"video {number}: {error}") from error
        if not parts:
            raise ValueError("videos is empty: there is nothing to look at")
        widths = {part.shape[1] for part in parts}
        if len(widths) > 1:
            raise ValueError(f"videos must have frames of one width, got {', '.join(map(str, sorted(widths)))}")
        (width,) = widths
        if reset:
            self.n_features_in_ = width
        elif width != self.n_features_in_:
            raise ValueError(f"videos have {width} features, but the detector was fitted with {self.n_features_in_}")
        sparse = any(sp.issparse(part) for part in parts)
        frames = sp.vstack(parts, format="csr") if sparse else np.concatenate(parts)
        return frames, np.array([part.shape[0] for part in parts])

    def _targets(self, y: Any, n: int) -> np.ndarray:
        """Which events each video has, shape (n_videos, n_events); sets `classes_` and `multilabel_`."""
        labels = np.asarray(y) if np.ndim(y) == 2 else plain_values(y, "y")
        if labels.ndim not in (1, 2) or len(labels) != n:
            raise ValueError(f"y must hold a label, or a row of labels, for each of the {n} videos, got {labels.shape}")
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError("y must not hold NaN or infinite values")
        if labels.ndim == 1 and missing_values(labels).any():
            raise ValueError(f"the label of video {int(missing_values(labels).argmax())} is missing")
        self.multilabel_ = labels.ndim == 2
        if labels.ndim == 2:
            if not np.isin(labels, (0, 1)).all():
                raise ValueError("y with a row for each video must hold 0 and 1 only")
            self.classes_ = np.arange(labels.shape[1])
            targets = labels.astype(bool)
        else:
            self.classes_ = np.unique(labels)
            if len(self.classes_) < 2:
                raise ValueError(f"VideoEventDetector needs at least 2 classes, y has {len(self.classes_)} class(es)")
            targets = labels[:, None] == (self.classes_[1:] if len(self.classes_) == 2 else self.classes_)
        if not targets.shape[1]:
            raise ValueError("y has no columns: there are no events to learn")
        same = targets.all(axis=0) | ~targets.any(axis=0)
        if same.any():
            which = np.flatnonzero(same)[0]
            raise ValueError(f"event {which} is in all videos or in none: there is nothing to tell apart")
        return targets

    # ------------------------------------------------------------------ scores

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this VideoEventDetector is not fitted yet: call fit first")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "score_scale_")

    def _segment_scores(self, features: Any) -> np.ndarray:
        return np.column_stack([model.decision_function(features) for model in self.estimators_])

    def _averages(self, features: Any, segments: Segments, n: int) -> np.ndarray:
        return averages(self._segment_scores(features), segments, n)

    def _squeezed(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if values.shape[1] == 1 and not self.multilabel_ else values

    def score_videos(self, videos: Any) -> np.ndarray:
        """Score the event in each video: the mean score of its segments, weighted by their lengths.

        Parameters
        ----------
        videos : as in `fit`

        Returns
        -------
        ndarray of shape (n_videos,), positive for ``classes_[1]``; or (n_videos, n_events)
        """
        self._check_fitted()
        frames, lengths = self._frames(videos, reset=False)
        segments = cut(lengths, self.granularities, self.stride)
        return self._squeezed(self._averages(pooled(frames, segments, self.pooling), segments, len(lengths)))

    def decision_function(self, videos: Any) -> np.ndarray:
        """Return the scores of `score_videos`, with scikit-learn's method name."""
        return self.score_videos(videos)

    def predict(self, videos: Any) -> np.ndarray:
        """Predict the class of each video; after a matrix of labels in `fit`, the events with a positive score.

        Parameters
        ----------
        videos : list of arrays or sparse matrices, one for each video
            A row for each instance.

        Returns
        -------
        array of n_videos labels, or of 0 and 1 for each event
        """
        scores = self.score_videos(videos)
        if self.multilabel_:
            return (scores > 0).astype(np.int64)
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

    def frame_scores(self, videos: Any) -> list[np.ndarray]:
        """Return the score of every frame: the mean score of the segments that cover it.

        Parameters
        ----------
        videos : as in `fit`

        Returns
        -------
        list of ndarray of shape (n_frames,) or (n_frames, n_events)
        """
        self._check_fitted()
        frames, lengths = self._frames(videos, reset=False)
        segments = cut(lengths, self.granularities, self.stride)
        scores = self._segment_scores(pooled(frames, segments, self.pooling))
        covering = cover(segments, int(lengths.sum()), np.ones(len(segments.video))).T.tocsr()
        times = np.asarray(covering.sum(axis=1)).ravel()
        # With long strides a frame may be in no segment: it has the score of its video.
        whole = np.repeat(averages(scores, segments, len(lengths)), lengths, axis=0)
        means = np.where(times[:, None] > 0, covering @ scores / np.maximum(times, 1.0)[:, None], whole)
        return [self._squeezed(part) for part in np.split(means, np.cumsum(lengths)[:-1])]

    def top_instances(self, video: Any, n: int = 5, *, event: Any = None, granularity: Any = None) -> list[slice]:
        """Return the segments of a video with the highest scores, best first.

        Parameters
        ----------
        video : array of shape (n_frames, n_features)
        n : int, default=5
        event : label, optional
            The event, if there are several.
        granularity : int or "all", optional
            Only segments of this length, one of ``granularities``: 1 gives key frames. Default: of any length.

        Returns
        -------
        list of slice
            Frames ``video[segment]``; fewer than ``n`` if there are not so many.
        """
        self._check_fitted()
        check_count("n", n)
        number = self._event_number(event)
        frames, lengths = self._frames([video], reset=False)
        if granularity is not None:
            check_choice("granularity", granularity, tuple(self.granularities))
        segments = cut(lengths, self.granularities if granularity is None else [granularity], self.stride)
        scores = self._segment_scores(pooled(frames, segments, self.pooling))[:, number]
        best = np.argsort(-scores, kind="stable")[:n]
        return [slice(int(segments.starts[i]), int(segments.stops[i])) for i in best]

    def _event_number(self, event: Any) -> int:
        if len(self.estimators_) == 1:
            learnt = self.classes_.tolist()[-1]
            if event is not None and event != learnt:
                raise ValueError(f"event must be {learnt!r}, the one that was learnt, got {event!r}")
            return 0
        if event is None:
            raise ValueError(f"event must be one of {self.classes_.tolist()}: there are several")
        places = np.flatnonzero(self.classes_ == event)
        if not len(places):
            raise ValueError(f"event must be one of {self.classes_.tolist()}, got {event!r}")
        return int(places[0])

    def score(self, videos: Any, y: Any) -> float:
        """Return the average precision of the ranking of videos; with several events the mean over them.

        Parameters
        ----------
        videos, y : as in `fit`
            Events without a positive video are left out.

        Returns
        -------
        float
        """
        scores = self.score_videos(videos)
        scores = scores[:, None] if scores.ndim == 1 else scores
        labels = np.asarray(y)
        if labels.shape != ((len(scores), scores.shape[1]) if self.multilabel_ else (len(scores),)):
            raise ValueError(f"y must hold a label for each of the {len(scores)} videos, as in fit, got {labels.shape}")
        if not self.multilabel_:
            labels = labels[:, None] == (self.classes_[1:] if len(self.classes_) == 2 else self.classes_)
        precisions = [average_precision_score(t, s) for t, s in zip(labels.T, scores.T, strict=True) if t.any()]
        if not precisions:
            raise ValueError("y has no video with an event: average precision is not defined")
        return float(np.mean(precisions))

    @staticmethod
    def fuse(detectors: Sequence[VideoEventDetector], views: Sequence[Any], weights: Any = None) -> np.ndarray:
        """Return the scores of videos from several views, with one detector for each view (late fusion).

        Scores are standardised by their mean and standard deviation in training.

        Parameters
        ----------
        detectors : sequence of fitted VideoEventDetector
            Detectors of the same events.
        views : sequence of videos
            The same videos for each detector, in its features.
        weights : array, one for each detector, optional
            Default: equal.

        Returns
        -------
        ndarray of shape (n_videos,) or (n_videos, n_events)
        """
        if not len(detectors) or len(detectors) != len(views):
            raise ValueError(f"there must be one view for each detector, got {len(views)} for {len(detectors)}")
        w = np.ones(len(detectors)) if weights is None else np.asarray(weights, np.float64)
        if w.shape != (len(detectors),) or not np.isfinite(w).all() or (w < 0).any() or not w.any():
            raise ValueError("weights must be a number of at least 0 for each detector, not all 0")
        for detector in detectors:
            detector._check_fitted()
        if any(not np.array_equal(detector.classes_, detectors[0].classes_) for detector in detectors):
            raise ValueError("detectors must have learnt the same events")
        parts = []
        for detector, view in zip(detectors, views, strict=True):
            scores = detector.score_videos(view)
            many = scores if scores.ndim == 2 else scores[:, None]
            many = (many - detector.score_mean_) / detector.score_scale_
            parts.append(many if scores.ndim == 2 else many[:, 0])
        if len({part.shape for part in parts}) > 1:
            raise ValueError("views must hold the same videos")
        return np.asarray(np.tensordot(w / w.sum(), np.array(parts), axes=1))

    # ------------------------------------------------------------------ model files

    @property
    def _n_events(self) -> int:
        return len(self.classes_) if self.multilabel_ else outputs(self)

    def _saved_params(self) -> dict[str, Any]:
        # The learner is written as it was fitted; `fit` makes clones.
        return {**super()._saved_params(), "estimator": None if self.estimator is None else self.estimators_[0]}

    def _check_state(self) -> None:
        self._check_parameters()
        if not all(isinstance(model, ProportionEstimator) for model in self.estimators_):
            raise ValueError("estimators_ must be learners from proportions")
