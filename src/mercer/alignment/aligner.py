"""Pairwise alignment with substitution and gap scores that are given, or learned from aligned pairs.

    score(s, t, y) = Σ_{(i,j) ∈ y} S[s_i, t_j] + Σ_gaps (gap_open + (l − 1) gap_extend) = ⟨w, Φ(x, y)⟩
    minimise  ½‖w‖² + C Σ_i loss(x_i, y_i; w)

A global alignment consumes every symbol of s and of t once, in a pair or in a gap. So S + 2c, gap_open + c and
gap_extend + c score every alignment of a pair higher by c (len(s) + len(t)), and prefer the same one: the scores are
defined up to c. Training picks the c of least norm. :meth:`Aligner.normalized_scores` returns the scores with
gap_extend = 0. The scores of local alignments are unique.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import NotFittedError

from mercer import _core
from mercer._estimator import Outputs
from mercer._state.saved import Fields, Floats, ListOf, Nested, Objects
from mercer._validation import check_choice, check_count, thread_count
from mercer.data.alignments import Alignment, check_pairs, read_rows
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.estimator import StructuredEstimator
from mercer.learning.risk import Risk
from mercer.structures.alignment import AlignmentStructure, shared_pairs
from mercer.structures.alignment_batch import (
    Coded,
    Encoder,
    Scores,
    check_sequences,
    compile_batch,
    k_best,
    match_probabilities,
)
from mercer.structures.alignment_joint import AlignmentJoint
from mercer.structures.joint import Examples


class Aligner(StructuredEstimator):
    """Align pairs of sequences with scores that are given or learnt from examples.

    Parameters
    ----------
    mode : {"global", "local"}, default="global"
        ``"global"`` aligns both sequences completely (Needleman-Wunsch), ``"local"`` the best part of each
        (Smith-Waterman; possibly empty).
    loss : str or Loss, default="hinge"
        ``"hinge"``, ``"squared-hinge"``, ``"slack"``, ``"softmax-margin"``, ``"log"``, …: see :mod:`mercer.learning`.
    solver : str or Solver, default="bcfw"
        ``"bcfw"``, ``"cutting-plane"``, ``"bmrm"``, ``"subgradient"``; ``"lbfgs"`` for smooth losses (``"owlqn"`` with
        an ℓ1 penalty), ``"auto"`` to choose by the loss; ``"averaged-perceptron"``, ``"passive-aggressive"`` and, for
        the log loss, ``"sgd"`` take one pair per step.
    C : float, default=1.0
        Weight of the summed loss against the penalty: ``penalty(w) + C · Σ loss``.
    alphabet : str, sequence of tokens or None
        The symbols. None: those of the training pairs, sorted.
    symmetric : bool, default=True
        Whether replacing a by b and b by a have one score.
    cost : {"pairs", "zero-one"}, default="pairs"
        Δ of margin losses: true pairs missed plus pairs that are wrong, or 1 for every alignment but the true one.
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        ½‖w‖², ‖w‖₁, or ``l1_ratio · ‖w‖₁ + (1 − l1_ratio) · ½‖w‖²``. ℓ1 needs ``"owlqn"`` or ``"sgd"``.
    l1_ratio : float, default=0.5
        Share of ℓ1 in ``"elasticnet"``, 0 to 1.
    max_iter, tol : int and float or None
        None: the solver's own.
    patience : int, default=10
        With ``fit(…, dev=…)``: iterations without a better held-out score before training stops.
    warm_start : bool, default=False
        Start from the scores of the last fit. Without ``alphabet``, new symbols are allowed.
    n_jobs : int or None
        Threads; -1 for all cores. The result does not depend on it.
    random_state : int, RandomState, Generator or None
        Seed of solvers that draw at random.
    verbose : int, default=0
        1 shows progress on standard error, 2 prints a line for each iteration.

    Attributes
    ----------
    alphabet_ : list of symbols
    substitution_ : array of shape (n_symbols, n_symbols), rows and columns as in ``alphabet_``
    gap_open_, gap_extend_ : float
        A gap of length l scores ``gap_open_ + (l − 1) · gap_extend_``.
    coef_ : array, the weight vector
        Substitutions (with ``symmetric`` only those with a ≤ b, row by row), then ``gap_open_`` and ``gap_extend_``.
    history_ : dict of lists: objective, primal, dual, gap, seconds, … as the solver has them
    solver_ : str, the solver that ran; ``"given"`` for :meth:`from_scores`
    converged_ : bool
    interrupted_ : bool, whether Ctrl-C ended the training
    n_iter_ : int

    References
    ----------
    .. [Tsochantaridis2005] I. Tsochantaridis, T. Joachims, T. Hofmann and Y. Altun. Large margin methods for structured
       and interdependent output variables. Journal of Machine Learning Research 6, 2005.

    Examples
    --------
    >>> from mercer.alignment import Aligner
    >>> pairs = [("ACGT", "AGT"), ("GATGACA", "GATACA"), ("TCAT", "CAT")]
    >>> truth = [("ACGT", "A-GT"), ("GATGACA", "GAT-ACA"), ("TCAT", "-CAT")]
    >>> aligner = Aligner(C=10.0, random_state=0).fit(pairs, truth)
    >>> print(aligner.predict([("TACGA", "TAGA")])[0])
    TACGA
    || ||
    TA-GA
    """

    _output_form = Outputs("alignments")

    coef_: np.ndarray
    structure_: AlignmentStructure
    substitution_: np.ndarray
    gap_open_: float
    gap_extend_: float

    saved = StructuredEstimator.saved | Fields(
        alphabet_=ListOf(Objects()),
        structure_=Nested(AlignmentStructure),
        coef_=Floats("structure_.n_weights"),
    )
    lacks: ClassVar[dict[str, str]] = dict.fromkeys(
        ("sample", "entropy"), "the compiled recursions over alignments have no such pass yet"
    )

    def __init__(
        self,
        mode: str = "global",
        loss: Any = "hinge",
        solver: Any = "bcfw",
        C: float = 1.0,
        *,
        alphabet: Sequence[Any] | None = None,
        symmetric: bool = True,
        cost: str = "pairs",
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
        self.mode = mode
        self.loss = loss
        self.solver = solver
        self.C = C
        self.alphabet = alphabet
        self.symmetric = symmetric
        self.cost = cost
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_scores(
        cls,
        substitution: Any,
        gap_open: float,
        gap_extend: float,
        alphabet: Sequence[Any] | None = None,
        *,
        mode: str = "global",
        n_jobs: int | None = None,
    ) -> Aligner:
        """Return an aligner with given scores, ready to predict.

        Parameters
        ----------
        substitution : array of shape (n_symbols, n_symbols), or dict (a, b) → score
            A dict may hold each pair once; the score then applies in both directions.
        gap_open, gap_extend : float
            A gap of length l scores ``gap_open + (l − 1) · gap_extend``: negative numbers, as a rule.
        alphabet : str or sequence of tokens
            The symbols of the matrix's rows; not needed with a dict.
        mode : {"global", "local"}, default="global"
        n_jobs : int or None

        Examples
        --------
        >>> aligner = Aligner.from_scores([[1, -1], [-1, 1]], -2, -1, alphabet="AB", mode="local")
        >>> aligner.predict([("AAB", "BAB")])[0].pairs.tolist()
        [[1, 1], [2, 2]]
        """
        symbols, matrix = _read_substitution(substitution, alphabet)
        for name, value in (("gap_open", gap_open), ("gap_extend", gap_extend)):
            if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number, got {value!r}")
        symmetric = bool((matrix == matrix.T).all())
        model = cls(mode, alphabet=symbols, symmetric=symmetric, n_jobs=n_jobs)
        structure = AlignmentStructure(len(symbols), check_choice("mode", mode, ("global", "local")), symmetric)
        model._encoder, model.alphabet_, model.structure_ = Encoder(symbols), symbols, structure
        model._keep_given(structure.weights_of(Scores(matrix, float(gap_open), float(gap_extend))), "given")
        return model

    # ------------------------------------------------------------------ training

    def fit(
        self,
        X: Any,
        y: Sequence[Any],
        sample_weight: Any = None,
        *,
        dev: tuple[Any, Sequence[Any]] | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> Aligner:
        """Learn the scores from pairs and their true alignments.

        Parameters
        ----------
        X : list of (s, t)
            Strings or lists of tokens.
        y : list
            For each pair an :class:`Alignment`, index pairs (i, j), or two gapped strings such as ``("AC-G", "A-TG")``.
        sample_weight : array of a number for each pair, optional
            Factors of C, not negative.
        dev : (X, y), optional
            Held-out data: the weights with the best :meth:`score` on it are kept, and training stops when it no longer
            rises.
        checkpoint : path or Checkpoint, optional
            Training saves its state there every few seconds. A killed fit resumes from it when it is called again.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight=sample_weight, dev=dev, checkpoint=checkpoint)

    def partial_fit(self, X: Any, y: Sequence[Any]) -> Aligner:
        """Make one pass of an online solver over more pairs; without ``alphabet``, new symbols are allowed.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y)

    def _learn(self, X: Any, y: Any, loss: Any, last: Any) -> Risk:
        sequences = check_sequences(X)
        if not sequences:
            raise ValueError("X must hold at least one pair to learn from")
        symbols = self.alphabet
        if symbols is None:
            symbols = _observed(sequences if last is None else [*sequences, (last.alphabet_, ())])
        self._encoder = Encoder(symbols)
        self.alphabet_ = list(self._encoder.symbols)
        self.structure_ = AlignmentStructure(len(self.alphabet_), self.mode, self.symmetric, self.cost)
        inputs, outputs = _encode(self._encoder, sequences), _read_alignments(y, sequences)
        return Risk(self._structure(), loss, Examples(inputs), Examples(outputs))

    def _structure(self) -> AlignmentJoint:
        return AlignmentJoint(self.structure_, thread_count(self.n_jobs))

    def _read(self, X: Any, y: Any) -> tuple[Examples, Examples]:
        sequences = check_sequences(X)
        return Examples(_encode(self._encoder, sequences)), Examples(_read_alignments(y, sequences))

    def _quality(self, w: np.ndarray, X: Examples, y: Examples) -> float:
        batch = compile_batch(X, self.structure_.scores_of(w), self.structure_.local)
        predicted = [alignments[0].pairs for alignments in k_best(batch, 1, thread_count(self.n_jobs))]
        right = sum(shared_pairs(truth, z) for truth, z in zip(y, predicted, strict=True))
        total = sum(map(len, y)) + sum(map(len, predicted))
        return 2 * right / total if total else 1.0

    def _arrays(self, X: Examples, y: Examples) -> Iterable[np.ndarray | None]:
        sizes = np.array([(len(s), len(t), len(truth)) for (s, t), truth in zip(X, y, strict=True)])
        return [sizes, *(array for pair, truth in zip(X, y, strict=True) for array in (pair.s, pair.t, truth))]

    def _settings(self, risk: Risk) -> Any:
        return self.alphabet_

    def _carry(self, w: np.ndarray, last: Any, risk: Risk) -> np.ndarray:
        scores = last.structure_.scores_of(w)
        n, place = len(self.alphabet_), self._encoder.encode(last.alphabet_, "alphabet of the last fit")
        substitution = np.zeros((n, n))
        substitution[np.ix_(place, place)] = scores.substitution
        return self.structure_.weights_of(scores._replace(substitution=substitution))

    def _keep(self, w: np.ndarray) -> None:
        self.coef_ = np.array(w, dtype=float)
        self._score_table = self.structure_.scores_of(self.coef_)
        self.substitution_, self.gap_open_, self.gap_extend_ = self._score_table

    # ------------------------------------------------------------------ prediction

    def predict(self, X: Any) -> list[Alignment]:
        """Return the best alignment of each pair.

        Parameters
        ----------
        X : list of pairs (s, t)
            Sequences of symbols.

        Returns
        -------
        list of Alignment
        """
        return [alignments[0] for alignments in self._alignments(X, 1)]

    def k_best(self, X: Any, k: int) -> list[list[Alignment]]:
        """Return the k best alignments of each pair, best first; fewer if there are fewer."""
        if check_count("k", k) > 16384:
            raise ValueError(f"k must be at most 16384, got {k}")
        return self._alignments(X, k)

    def score_pairs(self, X: Any) -> np.ndarray:
        """Return the score of the best alignment of each pair, a measure of similarity, in memory for a few rows."""
        batch, _, _ = self._batch(X)
        return _core.alignment.scores(batch, thread_count(self.n_jobs))

    def match_probabilities(self, X: Any) -> list[np.ndarray]:
        """Return p(s_i and t_j are aligned) under p(y) ∝ exp score(y), an array (len(s), len(t)) for each pair.

        Only ``loss="log"`` gives calibrated probabilities; margin losses do not.
        """
        batch, coded, _ = self._batch(X)
        return match_probabilities(batch, coded, len(self.alphabet_), thread_count(self.n_jobs))

    def log_partition(self, X: Any) -> np.ndarray:
        """Return log Σ_y exp score(y) of each pair: similarity over all alignments instead of the best one."""
        batch, _, _ = self._batch(X)
        return _core.alignment.log_partition(batch, thread_count(self.n_jobs))

    def score(self, X: Any, y: Sequence[Any]) -> float:
        """Return the F1 of the aligned pairs of symbols, over all pairs of sequences together."""
        return super().score(X, y)

    def normalized_scores(self) -> tuple[np.ndarray, float, float]:
        """Return ``(substitution, gap_open, gap_extend)``, made unique for global alignment.

        Global scores are shifted so that extending a gap scores 0: S − 2 e, gap_open − e, 0 for gap_extend = e. The
        alignments do not change. Local scores are already unique and are returned unchanged.
        """
        self._check_is_fitted()
        if self.structure_.local:
            return self.substitution_.copy(), self.gap_open_, self.gap_extend_
        e = self.gap_extend_
        return self.substitution_ - 2 * e, self.gap_open_ - e, 0.0

    def _ranked(self, x: Any) -> list[Any]:
        return list(self.k_best([x], 2)[0])

    def _weight_name(self, k: int) -> str:
        s = self.structure_
        if k >= s.n_weights - 2:
            return "gap opened" if k == s.n_weights - 2 else "gap extended"
        a, b = (int(i) for i in np.argwhere(s.place == k)[0])
        names = [*map(str, self._encoder.symbols), "?"]
        return f"{names[min(a, len(names) - 1)]} – {names[min(b, len(names) - 1)]}"

    def _alignments(self, X: Any, k: int) -> list[list[Alignment]]:
        batch, _, sequences = self._batch(X)
        alignments = k_best(batch, k, thread_count(self.n_jobs))
        local = self.structure_.local
        return [
            [Alignment(s, t, one.pairs, one.score, local) for one in best]
            for (s, t), best in zip(sequences, alignments, strict=True)
        ]

    def _batch(self, X: Any) -> tuple[_core.alignment.AlignmentBatch, list[Coded], list[tuple[Any, Any]]]:
        self._check_is_fitted()
        sequences = check_sequences(X)
        coded = _encode(self._encoder, sequences)
        return compile_batch(coded, self._score_table, self.structure_.local), coded, sequences

    def _check_is_fitted(self) -> None:
        if not hasattr(self, "coef_"):
            raise NotFittedError("this Aligner is not fitted yet: call fit first, or make one with Aligner.from_scores")

    # ------------------------------------------------------------------ model files

    def _check_state(self) -> None:
        super()._check_state()
        self._encoder = Encoder(self.alphabet_)
        if self._encoder.symbols != self.alphabet_ or len(self.alphabet_) != self.structure_.n_symbols:
            raise ValueError(f"alphabet_ must hold {self.structure_.n_symbols} different symbols")
        self._keep(self.coef_)


def _encode(encoder: Encoder, sequences: Sequence[tuple[Any, Any]]) -> list[Coded]:
    return [
        Coded(encoder.encode(s, f"X[{n}], first sequence"), encoder.encode(t, f"X[{n}], second sequence"))
        for n, (s, t) in enumerate(sequences)
    ]


def _observed(sequences: Sequence[tuple[Any, Any]]) -> list[Any]:
    """The symbols of all sequences, sorted."""
    try:
        symbols = {symbol for pair in sequences for sequence in pair for symbol in sequence}
    except TypeError as err:
        raise TypeError(f"X must hold strings or hashable tokens: {err}") from err
    if not symbols:
        raise ValueError("X must hold at least one symbol to learn from")
    try:
        return sorted(symbols)
    except TypeError:
        return sorted(symbols, key=lambda symbol: (type(symbol).__name__, str(symbol)))


def _read_alignments(alignments: Sequence[Any], sequences: Sequence[tuple[Any, Any]]) -> list[np.ndarray]:
    """Index pairs of alignments in any form, checked against their sequences."""
    alignments = list(alignments)
    if len(alignments) != len(sequences):
        raise ValueError(f"y must be as many as X: {len(alignments)} for {len(sequences)}")
    out = []
    for number, (given, (s, t)) in enumerate(zip(alignments, sequences, strict=True)):
        where = f"y[{number}]"
        if isinstance(given, Alignment) or (len(given) == 2 and all(isinstance(row, str) for row in given)):
            try:
                a, b, pairs = (given.s, given.t, given.pairs) if isinstance(given, Alignment) else read_rows(*given)
            except ValueError as err:
                raise ValueError(f"{where}: {err}") from err
            if list(a) != list(s) or list(b) != list(t):
                raise ValueError(f"{where} is of other sequences than X[{number}]")
        else:
            pairs = given
        out.append(check_pairs(pairs, len(s), len(t), where))
    return out


def _read_substitution(substitution: Any, alphabet: Sequence[Any] | None) -> tuple[list[Any], np.ndarray]:
    """Symbols and a checked matrix from a matrix or a dict."""
    if isinstance(substitution, Mapping):
        if any(not isinstance(key, tuple) or len(key) != 2 for key in substitution):
            raise ValueError("substitution as a dict must have keys (a, b)")
        symbols = _observed([((a,), (b,)) for a, b in substitution]) if alphabet is None else list(alphabet)
        matrix = np.array([[_lookup(substitution, a, b) for b in symbols] for a in symbols], dtype=float)
    else:
        if alphabet is None:
            raise ValueError("alphabet must name the rows of the substitution matrix")
        symbols = list(alphabet)
        matrix = np.array(substitution, dtype=float)
    if matrix.shape != (len(symbols), len(symbols)):
        raise ValueError(
            f"substitution must have the shape ({len(symbols)}, {len(symbols)}) of the alphabet, got {matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        raise ValueError("substitution must hold finite scores, found NaN or infinity")
    return symbols, matrix


def _lookup(scores: Mapping[Any, Any], a: Any, b: Any) -> float:
    for key in ((a, b), (b, a)):
        if key in scores:
            return float(scores[key])
    raise ValueError(f"substitution has no score for ({a!r}, {b!r})")
