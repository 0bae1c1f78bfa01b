"""Pairwise alignment whose substitution and gap scores are given, or learned from aligned pairs.

    score(s, t, y) = Σ_{(i,j) ∈ y} S[s_i, t_j] + Σ_gaps (gap_open + (l − 1) gap_extend) = ⟨w, Φ(x, y)⟩
    minimise  ½‖w‖² + C Σ_i loss(x_i, y_i; w)

A global alignment consumes every symbol of s and of t once, in a pair or in a gap. So S + 2c, gap_open + c and
gap_extend + c score every alignment of a pair higher by c (len(s) + len(t)), and prefer the same one: the scores are
defined up to c. Training picks the c of least norm; :meth:`Aligner.normalized_scores` reports those with
gap_extend = 0. Local alignments have no such freedom.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from mercer import _core
from mercer._estimator import Estimator
from mercer._validation import check_choice, check_count, check_positive, thread_count
from mercer.alignment.batch import Coded, Encoder, Scores, check_sequences, compile_batch, k_best, match_probabilities
from mercer.alignment.joint import AlignmentJoint
from mercer.alignment.pairs import Alignment, check_pairs, read_rows
from mercer.alignment.structure import AlignmentStructure, shared_pairs
from mercer.learning.checkpoint import Checkpoint, fingerprint
from mercer.learning.losses import loss_from_json, resolve_loss
from mercer.learning.risk import Risk
from mercer.learning.training import history_from_json, history_to_json, train
from mercer.structures.joint import Examples


class Aligner(Estimator):
    """Aligns pairs of sequences with scores that are learned from examples, or given.

    Parameters
    ----------
    mode : {"global", "local"}, default="global"
        All of both sequences (Needleman-Wunsch), or the best part of each (Smith-Waterman; possibly nothing).
    loss : str or Loss, default="hinge"
        ``"hinge"``, ``"squared-hinge"``, ``"slack"``, ``"softmax-margin"``, ``"log"``, …: see :mod:`mercer.learning`.
    solver : str or Solver, default="bcfw"
        ``"bcfw"``, ``"cutting-plane"``, ``"bmrm"``, ``"subgradient"``; ``"lbfgs"`` for smooth losses.
    C : float, default=1.0
        Weight of the summed loss against the penalty: ``½‖w‖² + C · Σ loss``.
    alphabet : str, sequence of tokens or None
        The symbols. None: those of the training pairs, sorted.
    symmetric : bool, default=True
        Whether replacing a by b and b by a have one score.
    cost : {"pairs", "zero-one"}, default="pairs"
        Δ of margin losses: true pairs missed plus pairs that are wrong, or 1 for every alignment but the true one.
    max_iter, tol : int and float or None
        None: the solver's own.
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
        Substitutions (with ``symmetric`` those of a ≤ b, row by row), ``gap_open_``, ``gap_extend_``.
    history_ : dict of lists: objective, primal, dual, gap, seconds, … as the solver has them
    converged_ : bool
    n_iter_ : int

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

    coef_: np.ndarray
    history_: dict[str, list[float]]
    converged_: bool
    n_iter_: int

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
        max_iter: int | None = None,
        tol: float | None = None,
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
        self.max_iter = max_iter
        self.tol = tol
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
        """An aligner with given scores, ready to predict.

        Parameters
        ----------
        substitution : array of shape (n_symbols, n_symbols), or dict (a, b) → score
            A dict may name each pair once; the score then holds both ways.
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
        w = structure.weights_of(Scores(matrix, float(gap_open), float(gap_extend)))
        model._set(Encoder(symbols), structure, w, {}, True, 0)
        return model

    # ------------------------------------------------------------------ training

    def fit(
        self,
        pairs: Any,
        alignments: Sequence[Any],
        *,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> Aligner:
        """Learns the scores from pairs and their true alignments.

        Parameters
        ----------
        pairs : list of (s, t)
            Strings or lists of tokens.
        alignments : list
            For each pair an :class:`Alignment`, index pairs (i, j), or two gapped strings such as ``("AC-G", "A-TG")``.
        checkpoint : path or Checkpoint, optional
            Training is saved there every few seconds; a fit that was killed goes on from there when it is called again.

        Returns
        -------
        self
        """
        C, loss = check_positive("C", self.C), resolve_loss(self.loss)
        sequences = check_sequences(pairs)
        if not sequences:
            raise ValueError("pairs must hold at least one pair to learn from")
        encoder = Encoder(_observed(sequences) if self.alphabet is None else self.alphabet)
        structure = AlignmentStructure(len(encoder.symbols), self.mode, self.symmetric, self.cost)
        X = _encode(encoder, sequences)
        Y = _read_alignments(alignments, sequences)
        risk = Risk(AlignmentJoint(structure, thread_count(self.n_jobs)), loss, Examples(X), Examples(Y))
        solver = self.solver if isinstance(self.solver, str) else self.solver.name
        said = solver, loss.to_json(), C, self.mode, self.symmetric, self.cost, list(encoder.symbols)
        result, history = train(
            risk,
            solver=self.solver,
            C=C,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.random_state,
            verbose=self.verbose,
            checkpoint=checkpoint,
            fingerprint=lambda: fingerprint(
                (said, [(len(s), len(t), len(y)) for (s, t), y in zip(sequences, Y, strict=True)]),
                [array for pair, y in zip(X, Y, strict=True) for array in (pair.s, pair.t, y)],
            ),
        )
        n_iter = len(history.get("seconds", ()))
        self._set(encoder, structure, np.array(result.w, dtype=float), history, result.converged, n_iter)
        return self

    def _set(
        self,
        encoder: Encoder,
        structure: AlignmentStructure,
        w: np.ndarray,
        history: dict[str, list[float]],
        converged: bool,
        n_iter: int,
    ) -> None:
        self._encoder, self.structure_ = encoder, structure
        self.alphabet_ = list(encoder.symbols)
        self.coef_ = w
        self._scores = structure.scores_of(w)
        self.substitution_, self.gap_open_, self.gap_extend_ = self._scores
        self.history_, self.converged_, self.n_iter_ = history, bool(converged), int(n_iter)

    # ------------------------------------------------------------------ prediction

    def predict(self, pairs: Any) -> list[Alignment]:
        """The best alignment of each pair."""
        return [found[0] for found in self._k_best(pairs, 1)]

    def k_best(self, pairs: Any, k: int) -> list[list[Alignment]]:
        """The k best alignments of each pair, best first; fewer where there are fewer."""
        if check_count("k", k) > 16384:
            raise ValueError(f"k must be at most 16384, got {k}")
        return self._k_best(pairs, k)

    def score_pairs(self, pairs: Any) -> np.ndarray:
        """The score of the best alignment of each pair, in memory for a few rows: how similar they are."""
        batch, _, _ = self._batch(pairs)
        return _core.align_scores(batch, thread_count(self.n_jobs))

    def match_probabilities(self, pairs: Any) -> list[np.ndarray]:
        """p(s_i and t_j are aligned) under p(y) ∝ exp score(y), an array (len(s), len(t)) for each pair.

        Probabilities in earnest only with ``loss="log"``: nothing calibrates margins.
        """
        batch, coded, _ = self._batch(pairs)
        return match_probabilities(batch, coded, len(self.alphabet_), thread_count(self.n_jobs))

    def log_partition(self, pairs: Any) -> np.ndarray:
        """log Σ_y exp score(y) of each pair: similarity over all alignments instead of the best one."""
        batch, _, _ = self._batch(pairs)
        return _core.align_log_partition(batch, thread_count(self.n_jobs))

    def score(self, pairs: Any, alignments: Sequence[Any]) -> float:
        """F1 of the aligned pairs of symbols, over all pairs of sequences together."""
        sequences = check_sequences(pairs)
        truth = _read_alignments(alignments, sequences)
        predicted = [alignment.pairs for alignment in self.predict(sequences)]
        right = sum(shared_pairs(y, z) for y, z in zip(truth, predicted, strict=True))
        total = sum(map(len, truth)) + sum(map(len, predicted))
        return 2 * right / total if total else 1.0

    def normalized_scores(self) -> tuple[np.ndarray, float, float]:
        """``(substitution, gap_open, gap_extend)`` without the freedom that global alignment leaves.

        Global scores are shifted so that extending a gap scores 0: S − 2 e, gap_open − e, 0 for gap_extend = e. They
        align every pair as before. Local scores have no such freedom and come back as they are.
        """
        self._check_is_fitted()
        if self.structure_.local:
            return self.substitution_.copy(), self.gap_open_, self.gap_extend_
        e = self.gap_extend_
        return self.substitution_ - 2 * e, self.gap_open_ - e, 0.0

    def _k_best(self, pairs: Any, k: int) -> list[list[Alignment]]:
        batch, _, sequences = self._batch(pairs)
        found = k_best(batch, k, thread_count(self.n_jobs))
        local = self.structure_.local
        return [
            [Alignment(s, t, one.pairs, one.score, local) for one in best]
            for (s, t), best in zip(sequences, found, strict=True)
        ]

    def _batch(self, pairs: Any) -> tuple[_core.AlignmentBatch, list[Coded], list[tuple[Any, Any]]]:
        self._check_is_fitted()
        sequences = check_sequences(pairs)
        coded = _encode(self._encoder, sequences)
        return compile_batch(coded, self._scores, self.structure_.local), coded, sequences

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def _check_is_fitted(self) -> None:
        if not hasattr(self, "coef_"):
            raise NotFittedError("this Aligner is not fitted yet: call fit first, or make one with Aligner.from_scores")

    # ------------------------------------------------------------------ model files

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Everything a model file needs. See :func:`mercer.save`."""
        self._check_is_fitted()
        params = self.get_params(deep=False)
        del params["alphabet"]
        params["loss"] = self.loss if isinstance(self.loss, str) else self.loss.to_json()
        params["solver"] = self.solver if isinstance(self.solver, str) else self.solver.name
        if not isinstance(self.random_state, (int, type(None))):
            params["random_state"] = None
        meta = {
            "params": params,
            "alphabet": self.alphabet_,
            "learned_alphabet": self.alphabet is None,
            "mode": self.structure_.mode,
            "symmetric": self.structure_.symmetric,
            "history": history_to_json(self.history_),
            "converged": self.converged_,
            "n_iter": self.n_iter_,
        }
        return meta, {"w": self.coef_}

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Aligner:
        """The inverse of :meth:`to_state`."""
        alphabet = None if meta["learned_alphabet"] else meta["alphabet"]
        model = cls(**{**meta["params"], "loss": loss_from_json(meta["params"]["loss"])}, alphabet=alphabet)
        encoder = Encoder(meta["alphabet"])
        structure = AlignmentStructure(len(encoder.symbols), meta["mode"], meta["symmetric"], model.cost)
        w = np.array(arrays["w"], dtype=float)
        if w.shape != (structure.n_weights,) or not np.isfinite(w).all():
            raise ValueError(f"expected {structure.n_weights} finite weights, found an array of shape {w.shape}")
        history = history_from_json(meta["history"])
        model._set(encoder, structure, w, history, meta["converged"], meta["n_iter"])
        return model


def _encode(encoder: Encoder, sequences: Sequence[tuple[Any, Any]]) -> list[Coded]:
    return [
        Coded(encoder.encode(s, f"pairs[{n}], first sequence"), encoder.encode(t, f"pairs[{n}], second sequence"))
        for n, (s, t) in enumerate(sequences)
    ]


def _observed(sequences: Sequence[tuple[Any, Any]]) -> list[Any]:
    """The symbols of all sequences, sorted."""
    try:
        found = {symbol for pair in sequences for sequence in pair for symbol in sequence}
    except TypeError as err:
        raise TypeError(f"pairs must hold strings or hashable tokens: {err}") from err
    if not found:
        raise ValueError("pairs must hold at least one symbol to learn from")
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=lambda symbol: (type(symbol).__name__, str(symbol)))


def _read_alignments(alignments: Sequence[Any], sequences: Sequence[tuple[Any, Any]]) -> list[np.ndarray]:
    """Index pairs of alignments in any form, checked against their sequences."""
    alignments = list(alignments)
    if len(alignments) != len(sequences):
        raise ValueError(f"alignments must be as many as pairs: {len(alignments)} for {len(sequences)}")
    out = []
    for number, (given, (s, t)) in enumerate(zip(alignments, sequences, strict=True)):
        where = f"alignments[{number}]"
        if isinstance(given, Alignment) or (len(given) == 2 and all(isinstance(row, str) for row in given)):
            try:
                a, b, pairs = (given.s, given.t, given.pairs) if isinstance(given, Alignment) else read_rows(*given)
            except ValueError as err:
                raise ValueError(f"{where}: {err}") from err
            if list(a) != list(s) or list(b) != list(t):
                raise ValueError(f"{where} is of other sequences than pairs[{number}]")
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
