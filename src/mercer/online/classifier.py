"""Classification over hashed features: one weight vector in fixed memory, for two to ten thousand classes.

    two classes    s(x) = b + Σ_k w[f_k & mask] x_k,                        above 0: ``classes_[1]``
    more (joint)   s(x, y) = b_y + Σ_k sign(f_k, y) w[index(f_k, y)] x_k,   the class with the highest score

Each example is scored, then learnt, then discarded. The details are in ``cpp/solvers/hashed_learner.hpp``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from mercer._state.saved import Fields, LabelValues
from mercer._validation import check_choice, check_count, check_not_negative, thread_count
from mercer.online._progress import Progress
from mercer.online.inputs import Inputs, Rows
from mercer.online.learner import HashedLearner

__all__ = ["HashedClassifier"]

LOSSES = ("log", "hinge", "hybrid", "squared-hinge")
LABEL_HASHINGS = ("joint", "separate", "two-stage")


def _has_probabilities(model: HashedClassifier) -> bool:
    if model.loss not in ("log", "hybrid"):
        raise AttributeError(f"predict_proba needs loss='log' or 'hybrid', and this is {model.loss!r}")
    return True


def _refuse_label_sets(y: Any) -> None:
    """Raise ValueError for label sets, and say who learns them."""
    sets = (
        isinstance(y, (list, tuple)) and len(y) > 0 and all(isinstance(row, (list, tuple, set, frozenset)) for row in y)
    )
    table = getattr(y, "ndim", 1) == 2 and y.shape[1] > 1
    if sets or table:
        raise ValueError(
            "y holds label sets, and HashedClassifier gives one label to each example: use"
            " mercer.multilabel.HashedLabelSets, or mercer train classifier --multilabel for files"
        )


def _classes_of(part: Any, number: int) -> np.ndarray | None:
    if part.y is None:
        raise ValueError(f"partition {number}: y is missing")
    return np.unique(part.y) if len(part.y) else None


class HashedClassifier(ClassifierMixin, HashedLearner):
    """A linear classifier over hashed features, learnt example by example in fixed memory.

    Parameters
    ----------
    loss : {"log", "hinge", "hybrid", "squared-hinge"}, default="log"
        With y the true class and z the best other one: ``"log"`` −ln p(y | x), p ∝ exp score; ``"hinge"``
        h = max(0, 1 − score(y) + score(z)); ``"squared-hinge"`` h²; ``"hybrid"`` half of the log and half of the hinge
        loss (see ``log_share``). With up to 64 classes the log loss updates the weights of all classes. With more
        classes it updates the true class and the classes with a probability of at least 2 / (number of classes).
    n_bits : int, default=22
        The table has 2^n_bits weights; from 1 to 32. A weight takes 8 bytes with adagrad (12 if features have values
        other than 1), 16 with ftrl (12 with more than two classes), 4 with sgd.
    label_hashing : {"joint", "separate", "two-stage"}, default="joint"
        Layout of the weights of more than two classes. ``"joint"``: one table, indexed by a hash of feature and label.
        ``"two-stage"``: one table; features are hashed to buckets, and each label permutes the buckets. Both use a
        hashed sign, so the interference of colliding weights is 0 on average. ``"separate"``: a table for each class.
        Two classes always share one vector.
    solver : {"adagrad", "ftrl", "sgd"}, default="adagrad"
        ``"adagrad"``: a learning rate for each weight, features scaled by their largest value so far, and steps that do
        not overshoot. ``"ftrl"``: follow the regularised leader; with ``penalty="l1"`` and a large ``alpha`` most
        weights are exactly 0. ``"sgd"``: steps of 1 / (alpha (t + t0)), which over many passes minimises alpha/2 ‖w‖² +
        mean loss.
    penalty : {"l2", "l1", "elasticnet", None}, default="l2"
        ½ ‖w‖², ‖w‖₁, or l1_ratio ‖w‖₁ + (1 − l1_ratio) ½ ‖w‖²; never of intercepts. ftrl: of the whole vector. sgd:
        the ℓ2 part of the whole vector by a common factor, the ℓ1 part of the weights of an example when it is learnt.
        adagrad: both parts for the weights of an example when it is learnt, times their rates; so weights of features
        that do not occur again are not shrunk.
    alpha : float, optional
        Factor of the penalty. With sgd and adagrad it is relative to the mean loss over examples, with ftrl to the
        summed loss, so that values from 1 to 100 give zeros with ftrl. None: 1e-5 for sgd, 0 for the others.
    max_iter : int or "auto", default="auto"
        Passes of `fit` over the data. ``"auto"``: enough passes to visit 100,000 rows of an array or 6,000 documents,
        but at most 16; many rows take one pass. The number is stored in ``n_iter_``. `partial_fit` takes one pass, and
        `fit_file` takes one unless a number is given.
    n_jobs : int or None
        Threads of prediction; -1 for all cores. Training processes examples sequentially in one thread. No result
        depends on it.
    random_state : int, RandomState or None, default=0
        Seed of the order of examples in `fit`.
    l1_ratio : float, default=0.5
        Share of ‖w‖₁ in ``"elasticnet"``, from 0 to 1.
    log_share : float, default=0.5
        Share of the log loss in ``"hybrid"``, from 0 to 1.
    hasher : mercer.maps.TextHasher, mercer.maps.StringHasher or None
        Features of documents: the ``analyzer``, ``ngrams``, ``lowercase``, ``copies`` and ``seed`` of a `TextHasher`,
        or the substrings of a `StringHasher`. The learner takes counts from it and has its own table, so ``n_bits`` and
        ``signed`` of the hasher are ignored; one with ``weighting``, ``norm`` or ``weights`` raises an error, and so
        does ``kernel="mismatch"`` without an alphabet. With ``copies`` every feature has that many weights, including
        columns of tables. None: words in lower case.
    counts : {"sqrt", "linear"}, default="sqrt"
        The value of a word that occurs c times in a document: √c, which is better on long texts, or c. Arrays, records
        and the features of vw and svmlight files keep their values.
    learning_rate : float or None
        None: 2.5 for adagrad, 0.1 for ftrl, 0.5 for sgd.
    class_weight : dict, "balanced" or None
        Factors of the weights of examples.
    shuffle : bool, default=True
        Whether `fit` takes the examples in a random order, a new one in each pass. `partial_fit` never does.
    fit_intercept : bool, default=True
        Whether each class has its own score.
    verbose : int, default=0
        1 prints the progressive loss whenever the number of examples has doubled.
    inverse_size : int, default=10_000
        With documents and files: the maximum number of feature names to keep, for :meth:`top_features`; those with the
        largest weights among the names of a sample of 1 MB. They take about 1 MB (``names_bytes_``). 0 keeps none.

    Attributes
    ----------
    classes_ : array of labels; sorted, with later labels of `partial_fit` at the end
    n_features_in_ : int, number of columns of arrays
    model_bytes_ : int, bytes of the table; the same for any number of classes unless ``label_hashing="separate"``
    progressive_loss_ : float, average loss over the stream, each example predicted before it was learnt
    history_ : dict of lists: examples, loss, loss_since_last, error, seconds; see the guide
    coef_, intercept_ : weights of columns, for arrays
    n_iter_ : int, passes of the last `fit` over arrays or documents
    interrupted_ : bool, whether Ctrl-C ended `fit` or `fit_file`
    file_format_ : how the last file was read; later files are read in the same way
    skipped_ : examples and lines of the last file, and the number of skipped malformed lines (``n_skipped``)

    See Also
    --------
    mercer.multilabel.HashedLabelSets : any number of labels for an example, thousands of them, from files of any size.

    Notes
    -----
    The weight of an example (``sample_weight`` times ``class_weight``) acts like repetitions of the example: with
    adagrad and two classes a step of weight 2 equals two infinitesimally divided steps, not one of twice the length.

    Columns of an array below 2^n_bits have their own weights (two classes, or ``label_hashing="separate"``), so that
    nothing is lost by hashing.

    References
    ----------
    .. [Shi2009] Q. Shi, J. Petterson, G. Dror, J. Langford, A. Smola and S. V. N. Vishwanathan. Hash kernels for
       structured data. Journal of Machine Learning Research 10, 2009.
    .. [Duchi2011] J. Duchi, E. Hazan and Y. Singer. Adaptive subgradient methods for online learning and stochastic
       optimization. Journal of Machine Learning Research 12, 2011.
    .. [McMahan2013] H. B. McMahan and others. Ad click prediction: a view from the trenches. KDD, 2013.

    Examples
    --------
    >>> from mercer.online import HashedClassifier
    >>> texts = ["cheap pills now", "meeting at noon", "cheap watches now", "notes of the meeting"] * 5
    >>> labels = ["spam", "ham", "spam", "ham"] * 5
    >>> model = HashedClassifier(n_bits=16).fit(texts, labels)
    >>> model.predict(["cheap meeting pills now", "meeting notes"])
    array(['spam', 'ham'], dtype='<U4')
    >>> model.model_bytes_ == 2**16 * 8
    True
    """

    classes_: np.ndarray

    def __init__(
        self,
        loss: str = "log",
        n_bits: int = 22,
        label_hashing: str = "joint",
        solver: str = "adagrad",
        penalty: str | None = "l2",
        alpha: float | None = None,
        max_iter: int | str = "auto",
        n_jobs: int | None = None,
        random_state: Any = 0,
        *,
        l1_ratio: float = 0.5,
        log_share: float = 0.5,
        hasher: Any = None,
        counts: str = "sqrt",
        learning_rate: float | None = None,
        class_weight: Any = None,
        shuffle: bool = True,
        fit_intercept: bool = True,
        verbose: int = 0,
        inverse_size: int = 10_000,
    ) -> None:
        self.loss = loss
        self.n_bits = n_bits
        self.label_hashing = label_hashing
        self.solver = solver
        self.penalty = penalty
        self.alpha = alpha
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.l1_ratio = l1_ratio
        self.log_share = log_share
        self.hasher = hasher
        self.counts = counts
        self.learning_rate = learning_rate
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.fit_intercept = fit_intercept
        self.verbose = verbose
        self.inverse_size = inverse_size

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, checkpoint: Any = None) -> HashedClassifier:
        """Learn from examples and their labels, from scratch.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or documents
            Documents: a list of str or bytes, a string array, a series of pandas or Polars, an Arrow column.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Not negative.
        checkpoint : path or mercer.learning.Checkpoint, optional
            Training saves its state there every few seconds. A killed fit resumes from it when it is called again, with
            the same final model.

        Returns
        -------
        self
        """
        settings = self._check_parameters()
        _refuse_label_sets(y)
        inputs, y = self._inputs(X, reset=True, y=y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(f"need at least two classes to learn from, found one class: {classes.tolist()[0]!r}")
        weights = self._weights(inputs, y, classes, sample_weight)
        self._start(settings, inputs, classes)
        self.n_iter_ = self._passes(inputs)
        self._save_to(checkpoint, inputs, y, weights)
        self._learn(inputs, self._outputs(y, weights), self.n_iter_, self.shuffle)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> HashedClassifier:
        """Learn from more examples, in their order, in one pass.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        classes : array, optional
            All labels. Use it in the first call; it is required there if the call has at most two labels and more will
            follow. New labels are appended to ``classes_`` when they occur.

        Returns
        -------
        self
        """
        settings = self._check_parameters()
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all examples at once: use fit, or give the weights as a dict"
            )
        first = not hasattr(self, "model_")
        inputs, y = self._inputs(X, reset=first, y=y)
        seen = np.unique(y)
        if classes is not None:
            seen = np.unique(np.concatenate([np.asarray(classes), seen]))
        if not first:
            if self.model_.settings()["task"] == "binary" and len(np.union1d(self.classes_, seen)) > 2:
                new = np.setdiff1d(seen, self.classes_)
                raise ValueError(
                    f"a model of two classes cannot take a third one ({new.tolist()[0]!r}): "
                    "name all classes in the first call of partial_fit"
                )
            seen = np.concatenate([self.classes_, np.setdiff1d(seen, self.classes_)])
        weights = self._weights(inputs, y, np.unique(seen), sample_weight)
        if first:
            self._start(settings, inputs, seen)
        else:
            self.classes_ = seen
            self._set_core_labels()
        self._learn(inputs, self._outputs(y, weights), 1, False)
        return self

    def _known_of_parts(self, place: Any) -> dict[str, Any]:
        classes_of = [one for one in place.each(_classes_of) if one is not None]
        classes = np.unique(np.concatenate(classes_of)) if classes_of else np.zeros(0)
        if len(classes) == 1:
            raise ValueError(f"need at least two classes to learn from, found one class: {classes.tolist()[0]!r}")
        return {"classes": classes}

    def _score_units(self, y: Any) -> int:
        return len(y)

    def _start(self, settings: dict[str, Any], inputs: Inputs, classes: np.ndarray) -> None:
        """A model that has learnt nothing."""
        self.classes_ = classes
        several = len(classes) > 2
        settings |= {
            "task": "multiclass" if several else "binary",
            "label_hashing": self.label_hashing,
            "alpha": float(self.log_share),
            "scaled": isinstance(inputs, Rows),
        }
        if several and self.n_bits < 4:
            raise ValueError(f"n_bits must be at least 4 for more than two classes, got {self.n_bits}")
        self.model_ = self._new_model(settings, self._n_rows(settings))
        self._set_core_labels()
        self.progress_ = Progress()
        self._forget_names()
        self.input_ = "array" if isinstance(inputs, Rows) else "hashed"

    def _check_parameters(self) -> dict[str, Any]:
        check_choice("loss", self.loss, LOSSES)
        check_choice("label_hashing", self.label_hashing, LABEL_HASHINGS)
        if check_not_negative("log_share", self.log_share) > 1:
            raise ValueError(f"log_share must lie between 0 and 1, got {self.log_share!r}")
        return super()._check_parameters()

    def _check_y(self, y: Any) -> np.ndarray:
        y = np.asarray(y)
        if y.ndim != 1:
            raise ValueError(f"y must have one dimension, got an array of shape {y.shape}")
        check_classification_targets(y)
        return y

    def _weights(self, inputs: Any, y: np.ndarray, classes: np.ndarray, sample_weight: Any) -> np.ndarray | None:
        """The weight of each example, None if all are 1."""
        weights = self._check_weights(sample_weight, inputs)
        if self.class_weight is None:
            return weights
        factors = compute_class_weight(self.class_weight, classes=classes, y=y, sample_weight=weights)
        if (factors < 0).any():
            raise ValueError("class_weight must not be negative")
        factors = factors[np.searchsorted(classes, y)].astype(np.float32)
        return factors if weights is None else factors * weights

    def _outputs(self, y: np.ndarray, weights: np.ndarray | None) -> Any:
        order = np.argsort(self.classes_, kind="stable")
        numbers = order[np.searchsorted(self.classes_, y, sorter=order)].astype(np.int32)
        names = self.model_.labels()

        def of(part: np.ndarray) -> dict[str, Any]:
            return {
                "labels": numbers[part],
                "label_names": names,
                "weights": None if weights is None else weights[part],
            }

        return of

    def _n_rows(self, settings: dict[str, Any]) -> int:
        separate = settings["task"] == "multiclass" and settings["label_hashing"] == "separate"
        return len(self.classes_) if separate else 1

    def _set_core_labels(self) -> None:
        self.model_.set_labels([str(label) for label in self.classes_.tolist()])

    # ------------------------------------------------------------------ prediction

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores (n_samples, n_classes), or (n_samples,) with two classes, above 0 for ``classes_[1]``."""
        scores = self._scores(X)
        return scores.ravel() if self._one_output() else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with the highest score.

        Parameters
        ----------
        X : array, sparse matrix or documents, as in `fit`

        Returns
        -------
        array of shape (n_samples,)
        """
        threads = thread_count(self.n_jobs)
        parts = []
        for _, examples in self._blocks(X):
            if self._one_output():
                best = (self.model_.scores(examples, threads=threads).ravel() > 0).astype(np.intp)
                parts.append(np.minimum(best, len(self.classes_) - 1))
            else:
                parts.append(self.model_.top_k(examples, 1, threads=threads)[0].ravel())
        return self.classes_[np.concatenate(parts)] if parts else self.classes_[:0]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return p(y | x) ∝ exp score(x, y), with loss "log" or "hybrid".

        Parameters
        ----------
        X : array, sparse matrix or documents, as in `fit`

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        scores = self._scores(X)
        if self._one_output():
            scores = np.hstack([np.zeros_like(scores), scores])[:, : max(1, len(self.classes_))]
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True)

    def top_k(self, X: Any, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """Return the k labels with the highest scores, and these scores.

        Parameters
        ----------
        X : array, sparse matrix or documents, as in `fit`
        k : int
            At most the number of classes.

        Returns
        -------
        labels : array of shape (n_samples, k), best first
        scores : array of shape (n_samples, k)

        Examples
        --------
        >>> from mercer.online import HashedClassifier
        >>> model = HashedClassifier(n_bits=12).fit(["red rose", "blue sky", "green tree"] * 9, ["r", "b", "g"] * 9)
        >>> labels, scores = model.top_k(["a red sky"], 2)
        >>> sorted(labels[0].tolist()), bool(scores[0, 0] >= scores[0, 1])
        (['b', 'r'], True)
        """
        blocks = list(self._blocks(X))
        if check_count("k", k) > len(self.classes_):
            raise ValueError(f"k must be at most the number of classes, {len(self.classes_)}, got {k}")
        threads, labels, scores = thread_count(self.n_jobs), [], []
        for _, examples in blocks:
            if self._one_output():
                positive = self.model_.scores(examples, threads=threads).astype(np.float64)
                both = np.hstack([np.zeros_like(positive), positive])[:, : len(self.classes_)]
                number = np.argsort(-both, axis=1, kind="stable")[:, :k]
                score = np.take_along_axis(both, number, axis=1)
            else:
                number, score = self.model_.top_k(examples, k, threads=threads)
            labels.append(number)
            scores.append(score.astype(np.float64))
        if not blocks:
            return np.empty((0, k), self.classes_.dtype), np.zeros((0, k))
        return self.classes_[np.concatenate(labels)], np.concatenate(scores)

    def _one_output(self) -> bool:
        return self.model_.settings()["task"] == "binary"

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the columns of arrays: (n_classes, n_features), or (1, n_features) with two classes."""
        return self._column_weights()[0]

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts, for arrays: (n_classes,), or (1,) with two classes."""
        return self._column_weights()[1]

    # ------------------------------------------------------------------ model files

    saved = HashedLearner.saved | Fields(classes_=LabelValues())

    def _check_state(self) -> None:
        if len(np.unique(self.classes_)) != len(self.classes_):
            raise ValueError("classes_ must be a list without repeats")
        super()._check_state()
