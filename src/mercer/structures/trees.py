"""Trees of a grammar as structured outputs: Φ, the costs and the searches that losses need.

    Φ(x, y) = counts of the rules in y   [+ for each bracket: its label with the words at its edges]

| cost Δ(y*, y), p brackets in y, t in y*, c in both | argmax of score + Δ |
|---|---|
| bracket | p + t − 2 c, the Hamming distance of the sets of brackets | a chart with ±1 on each bracket |
| zero-one | 1 if y ≠ y* | the two best trees |
| f1 | 1 − 2 c / (p + t) | a chart over (score, p, c), exact: see cpp/structures/chart.hpp |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mercer._validation import check_choice
from mercer.data.trees import Tree
from mercer.exceptions import ParseError
from mercer.structures.custom import CustomStructure
from mercer.structures.grammar import Grammar, stack_offsets
from mercer.structures.joint import Examples, FeatureSum, Joint, JointScores

__all__ = ["COSTS", "FEATURES", "TreeBatches", "TreeStructure"]

COSTS = ("bracket", "zero-one", "f1")
FEATURES = ("rules", "rules+boundaries")
_EDGES = 4  # first word, last word, word before, word after
_DENSE = 4096  # feature vectors up to this length are dense


class TreeStructure(CustomStructure):
    """The trees of a grammar over a sentence, for :class:`mercer.structured.StructuredPredictor`.

    Sentences are lists of words and outputs :class:`Tree` objects, or, for speed, word numbers (:meth:`Grammar.encode`)
    and leftmost derivations (:meth:`Grammar.derivation`), both int32 arrays. The output has the type of the input.

    Parameters
    ----------
    grammar : Grammar
        The grammar; its weights are ignored.
    cost : {"bracket", "zero-one", "f1"}, default="bracket"
        Δ: brackets in one tree only, whether the trees differ, or 1 − F1 of the brackets.
    features : {"rules", "rules+boundaries"}, default="rules"
        Counts of rules; "rules+boundaries" adds, for each bracket, its label together with its first word, its last
        word, the word before it and the word after it.
    preterminals : bool, default=True
        Whether a node directly above a single word is a bracket, for costs and boundary features.

    Attributes
    ----------
    n_weights : int
        Length of Φ: rules first, in the order of ``grammar.rules``.

    Examples
    --------
    >>> from mercer.parsing import Grammar, Tree, TreeStructure
    >>> grammar = Grammar.from_text('''
    ...     S -> NP VP
    ...     NP -> Det N | NP PP
    ...     VP -> V NP | VP PP
    ...     PP -> P NP
    ...     Det -> the
    ...     N -> dog | park
    ...     V -> saw
    ...     P -> in
    ... ''')
    >>> structure = TreeStructure(grammar)
    >>> words = "the dog saw the dog in the park".split()
    >>> import numpy as np
    >>> w = np.zeros(structure.n_weights)
    >>> w[grammar.index("NP", ("NP", "PP"))] = 1.0
    >>> tree = structure.argmax(w, words)
    >>> other = structure.argmax(w, words, cost_to=tree)
    >>> structure.cost(tree, other)
    2.0
    """

    def __init__(
        self, grammar: Grammar, cost: str = "bracket", *, features: str = "rules", preterminals: bool = True
    ) -> None:
        if not isinstance(grammar, Grammar):
            raise TypeError(f"grammar must be a Grammar, got {type(grammar).__name__}")
        self.grammar = grammar
        self.cost_name = check_choice("cost", cost, COSTS)
        self.features_name = check_choice("features", features, FEATURES)
        self.preterminals = bool(preterminals)
        self.n_rules, self.n_labels = len(grammar.rules), len(grammar.labels)
        self._edge_words = len(grammar.words) + 1  # the last stands for the sentence's edge
        self.n_weights = self.n_rules
        if features == "rules+boundaries":
            self.n_weights += _EDGES * self._edge_words * self.n_labels
        number = {label: n for n, label in enumerate(grammar.labels)}
        # For each rule: its label, which of its children are words, and whether its node is a bracket.
        self._shapes = [
            (
                number[rule.parent],
                tuple(not isinstance(child, str) for child in rule.children),
                self.preterminals or len(rule.children) > 1 or isinstance(rule.children[0], str),
            )
            for rule in grammar.rules
        ]

    # ------------------------------------------------------------------ words and trees, or numbers

    def _encoded(self, x: Any) -> np.ndarray:
        return x if isinstance(x, np.ndarray) else self.grammar.encode(x)

    def _derivation(self, y: Any) -> np.ndarray:
        return y if isinstance(y, np.ndarray) else self.grammar.derivation(y)

    def _given(self, derivation: np.ndarray, x: Any) -> Any:
        return derivation if isinstance(x, np.ndarray) else self.grammar.tree(derivation, x)

    def brackets(self, y: np.ndarray | Tree) -> list[tuple[int, int, int]]:
        """Return (label number, start, end) of each bracket of a tree or a derivation."""
        brackets: list[tuple[int, int, int]] = []
        position = 0
        stack: list[list[Any]] = []  # label, whether words, counts, start, next child
        for number in self._derivation(y).tolist():
            stack.append([*self._shapes[number], position, 0])
            while stack:
                node = stack[-1]
                label, words, counts, start, at = node
                while at < len(words) and words[at]:
                    position += 1
                    at += 1
                if at < len(words):
                    node[4] = at + 1
                    break
                if counts:
                    brackets.append((label, start, position))
                stack.pop()
        return brackets

    # ------------------------------------------------------------------ Φ

    def columns(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the features of a derivation, repeated as often as they occur."""
        if self.n_weights == self.n_rules:
            return y
        return np.concatenate([y, self._edge_columns(x, self.brackets(y))])

    def features(self, x: Any, y: Any) -> Any:
        """Return Φ(x, y): an array, or a sparse row if it is long."""
        columns = self.columns(self._encoded(x), self._derivation(y))
        if self.n_weights <= _DENSE:
            return np.bincount(columns, minlength=self.n_weights).astype(float)
        columns, counts = np.unique(columns, return_counts=True)
        return csr_array(
            (counts.astype(float), columns.astype(np.int32), np.array([0, len(columns)], np.int32)),
            shape=(1, self.n_weights),
        )

    def _edge_columns(self, x: np.ndarray, brackets: list[tuple[int, int, int]]) -> np.ndarray:
        if not brackets:
            return np.zeros(0, np.int64)
        label, start, end = np.array(brackets, dtype=np.int64).T
        edges = np.stack(self._edges(x, start, end))
        kind = np.arange(_EDGES)[:, None] * self._edge_words
        return (self.n_rules + (kind + edges) * self.n_labels + label).ravel()

    def _edges(self, x: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, ...]:
        """The words at the edges of spans: first, last, before, after."""
        padded = np.concatenate([x, [self._edge_words - 1]]).astype(np.int64)  # x[-1] and x[n] are the sentence's edge
        return padded[start], padded[end - 1], padded[start - 1], padded[end]

    def _sigma(self, w: np.ndarray, x: np.ndarray) -> np.ndarray | None:
        """Scores of brackets, cells × labels, from the weights of boundary features."""
        if self.n_weights == self.n_rules:
            return None
        table = w[self.n_rules :].reshape(_EDGES, self._edge_words, self.n_labels)
        first, last, before, after = self._edges(x, *_cells(len(x)))
        return np.ascontiguousarray(table[0, first] + table[1, last] + table[2, before] + table[3, after], dtype=float)

    def _stacked_sigma(self, w: np.ndarray, X: Sequence[np.ndarray]) -> np.ndarray | None:
        if self.n_weights == self.n_rules:
            return None
        return np.concatenate([self._sigma(w, x) for x in X])

    # ------------------------------------------------------------------ Δ

    def cost(self, y_true: Any, y: Any) -> float:
        """Return Δ(y*, y)."""
        if self.cost_name == "zero-one":
            return 0.0 if self.equal(y_true, y) else 1.0
        return self._bracket_cost(self.brackets(y_true), self.brackets(y))

    def _bracket_cost(self, y_true: list[tuple[int, int, int]], y: list[tuple[int, int, int]]) -> float:
        true, predicted = set(y_true), set(y)
        correct, total = len(true & predicted), len(true) + len(predicted)
        if self.cost_name == "bracket":
            return float(total - 2 * correct)
        return 1.0 - 2.0 * correct / total if total else 0.0

    def equal(self, y: Any, z: Any) -> bool:
        """Return whether two trees are the same."""
        return np.array_equal(self._derivation(y), self._derivation(z))

    # ------------------------------------------------------------------ searches

    def argmax(self, w: np.ndarray, x: Any, cost_to: Any = None) -> Any:
        """Return the tree of highest score (plus cost, if ``cost_to`` is given)."""
        words = self._encoded(x)
        truth = None if cost_to is None else self._derivation(cost_to)
        brackets = None if truth is None or self.cost_name == "zero-one" else self.brackets(truth)
        return self._given(self.search(w, [words], None if truth is None else [(truth, brackets)])[0], x)

    def search(
        self,
        w: np.ndarray,
        X: Sequence[np.ndarray],
        truths: Sequence[tuple[np.ndarray, list[tuple[int, int, int]] | None]] | None = None,
        threads: int = 1,
    ) -> list[np.ndarray]:
        """Call :meth:`argmax` for many encoded sentences, on several threads.

        Parameters
        ----------
        w : array
        X : list of arrays of word numbers
        truths : list of (derivation, brackets), optional
            The true trees, if the cost is to be added; brackets are not needed for ``"zero-one"``.
        threads : int

        Returns
        -------
        derivations : list of arrays
        """
        rules, sigma = self._rule_weights(w), self._stacked_sigma(w, X)
        batch = (rules, np.concatenate(X), stack_offsets(X))
        chart, flags = self.grammar.chart, (self.preterminals, threads)
        if truths is not None and self.cost_name == "zero-one":
            return self._best_others(chart.k_best(*batch, 2, sigma, *flags), [truth for truth, _ in truths])
        if truths is None:
            search = chart.best(*batch, sigma, *flags)
        elif self.cost_name == "bracket":
            costs = 1.0 - 2.0 * self._marks(X, truths)
            search = chart.best(*batch, costs if sigma is None else costs + sigma, *flags)
        else:
            n_true = np.array([len(brackets or ()) for _, brackets in truths])
            search = chart.f1_best(*batch, self._marks(X, truths), n_true, sigma, *flags)
        derivations, offsets, scores = search
        if np.isneginf(scores).any():
            raise ParseError(int(np.flatnonzero(np.isneginf(scores))[0]), None)
        return np.split(derivations, offsets[1:-1])

    def _best_others(
        self, search: tuple[np.ndarray, np.ndarray, np.ndarray], truths: list[np.ndarray]
    ) -> list[np.ndarray]:
        """Of the two best trees the one with the higher score + 0/1 cost."""
        derivations, offsets, scores = search
        trees = np.split(derivations, offsets[1:-1])
        chosen = []
        for i, truth in enumerate(truths):
            first, second = scores[2 * i : 2 * i + 2]
            if first == -np.inf:
                raise ParseError(i, None)
            other = second + 1.0 > first and np.array_equal(trees[2 * i], truth)
            chosen.append(trees[2 * i + int(other)])
        return chosen

    def _marks(self, X: Sequence[np.ndarray], truths: Sequence[tuple[np.ndarray, Any]]) -> np.ndarray:
        """1 for each true bracket: cells × labels of all sentences."""
        first = np.concatenate([[0], np.cumsum([len(x) * (len(x) + 1) // 2 for x in X])])
        marks = np.zeros((int(first[-1]), self.n_labels), np.uint8)
        for i, (_, brackets) in enumerate(truths):
            for label, start, end in brackets:
                marks[first[i] + _cell(len(X[i]), start, end), label] = 1
        return marks

    def argmin(self, w: np.ndarray, x: Any) -> Any:
        """Return the tree of lowest score."""
        return self.argmax(-np.asarray(w), x)

    def k_best(self, w: np.ndarray, x: Any, k: int) -> list[tuple[Any, float]]:
        """Return the k best trees and their scores, best first; fewer if there are fewer."""
        words = self._encoded(x)
        parses = self._k_best(self._rule_weights(w), words, self._sigma(w, words), k)
        return [(self._given(derivation, x), score) for derivation, score in parses]

    def log_partition(self, w: np.ndarray, x: Any, cost_to: Any = None) -> tuple[float, np.ndarray]:
        """Return log Σ_y exp(score + Δ) and the expected features (Δ only if ``cost_to`` is given)."""
        words = self._encoded(x)
        sigma = self._sigma(w, words)
        if cost_to is None:
            return self._inside(w, words, sigma)
        truth = self._derivation(cost_to)
        if self.cost_name == "bracket":
            brackets = self.brackets(truth)
            costs = 1.0 - 2.0 * self._marks([words], [(truth, brackets)])
            value, expected = self._inside(w, words, costs if sigma is None else costs + sigma)
            return value + len(brackets), expected
        if self.cost_name == "f1":
            raise ValueError("1 - F1 is not a sum over brackets, so it has no partition function: use cost='bracket'")
        value, expected = self._inside(w, words, sigma)
        row = self.features(words, truth)
        row = row if isinstance(row, np.ndarray) else row.toarray().ravel()
        p = min(1.0, math.exp(float(row @ w) - value))  # of the true tree, which alone costs nothing
        total = math.e * (1.0 - p) + p
        return value + math.log(total), (math.e * (expected - p * row) + p * row) / total

    # ------------------------------------------------------------------ charts

    def _rule_weights(self, w: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(w[: self.n_rules], dtype=float)

    def _k_best(
        self, rules: np.ndarray, x: np.ndarray, sigma: np.ndarray | None, k: int
    ) -> list[tuple[np.ndarray, float]]:
        derivations, offsets, scores = self.grammar.chart.k_best(
            rules, x, stack_offsets([x]), k, sigma, self.preterminals
        )
        trees = [
            (derivations[offsets[r] : offsets[r + 1]].copy(), float(scores[r])) for r in range(k) if scores[r] > -np.inf
        ]
        if not trees:
            raise ParseError(0, None)
        return trees

    def _inside(self, w: np.ndarray, x: np.ndarray, sigma: np.ndarray | None) -> tuple[float, np.ndarray]:
        counts = np.zeros((1, self.n_rules))
        brackets = None if self.n_weights == self.n_rules else np.zeros((len(x) * (len(x) + 1) // 2, self.n_labels))
        value = self.grammar.chart.log_partition(
            self._rule_weights(w), x, stack_offsets([x]), sigma, self.preterminals, counts, brackets
        )
        if value[0] == -np.inf:
            raise ParseError(0, None)
        if brackets is None:
            return float(value[0]), counts[0]
        expected = np.zeros(self.n_weights)
        expected[: self.n_rules] = counts[0]
        table = expected[self.n_rules :].reshape(_EDGES, self._edge_words, self.n_labels)
        for kind, words in enumerate(self._edges(x, *_cells(len(x)))):
            np.add.at(table[kind], words, brackets)
        return float(value[0]), expected


class TreeBatches(Joint):
    """A :class:`TreeStructure` with the interface of solvers, searched in batches instead of one by one.

    Sentences and trees are numbers (encoded words, derivations), checked on creation.
    """

    def __init__(self, structure: TreeStructure, threads: int = 1) -> None:
        super().__init__(structure, structure.n_weights)
        self.threads = threads
        self._known: dict[int, tuple[Any, np.ndarray, list[tuple[int, int, int]]]] = {}

    def _true(self, x: np.ndarray, y: np.ndarray, number: int) -> tuple[Any, np.ndarray, list[tuple[int, int, int]]]:
        """(y, columns, brackets) of a true tree, which is asked for again and again."""
        held = self._known.get(number)
        if held is None or held[0] is not y:
            held = self._known[number] = (y, self.structure.columns(x, y), self.structure.brackets(y))
        return held

    def argmax(self, theta: JointScores) -> tuple[list[Any], np.ndarray]:
        """The best trees, with costs if θ has them."""
        if theta.cost_to is None:
            derivations = self.structure.search(theta.w, theta.X.items, None, self.threads)
            return derivations, self.score(theta, derivations)
        if np.ndim(theta.scale):
            return super().argmax(theta)
        # max scale Δ + ⟨w, Φ⟩ has the same argmax as max Δ + ⟨w / scale, Φ⟩.
        scale = float(theta.scale)
        held = [
            self._true(x, y, theta.X.first + i) for i, (x, y) in enumerate(zip(theta.X, theta.cost_to, strict=True))
        ]
        truths = [(y, brackets) for y, _, brackets in held]
        derivations = self.structure.search(
            theta.w / scale if scale != 1.0 else theta.w, theta.X.items, truths, self.threads
        )
        return derivations, self.score(theta, derivations) + scale * self.cost_between(theta.cost_to, derivations)

    def score(self, theta: JointScores, y: Sequence[Any]) -> np.ndarray:
        """⟨w, Φ(x, y)⟩."""
        return np.array(
            [
                theta.w[self._columns(x, one, theta.X.first + i)].sum()
                for i, (x, one) in enumerate(zip(theta.X, y, strict=True))
            ]
        )

    def _columns(self, x: np.ndarray, y: np.ndarray, number: int) -> np.ndarray:
        held = self._known.get(number)
        return held[1] if held is not None and held[0] is y else self.structure.columns(x, y)

    def add_output(self, mu: FeatureSum, y: Sequence[Any], weights: np.ndarray) -> None:
        """``μ += weights · 1_y``."""
        for i, (x, one, weight) in enumerate(zip(mu.X, y, weights, strict=True)):
            if weight:
                np.add.at(mu.total, self._columns(x, one, mu.X.first + i), weight)

    def difference(self, X: Examples, y: Sequence[Any], z: Sequence[Any]) -> csr_array:
        """Φ(x, y) − Φ(x, z)."""
        rows, values, offsets = [], [], [0]
        for i, (x, one, other) in enumerate(zip(X, y, z, strict=True)):
            plus, minus = self._true(x, one, X.first + i)[1], self.structure.columns(x, other)
            columns, where = np.unique(np.concatenate([plus, minus]), return_inverse=True)
            signs = np.concatenate([np.ones(len(plus)), -np.ones(len(minus))])
            counts = np.bincount(where, weights=signs, minlength=len(columns))
            rows.append(columns[counts != 0])
            values.append(counts[counts != 0])
            offsets.append(offsets[-1] + len(rows[-1]))
        data = (np.concatenate(values), np.concatenate(rows).astype(np.int32), np.array(offsets, np.int32))
        return csr_array(data, shape=(len(X), self.n_weights))


def _cell(n: int, i: int, j: int) -> int:
    """The place of the words [i, j) among all spans of a sentence of n words: by start, then by end."""
    return i * n - i * (i - 1) // 2 + (j - i - 1)


def _cells(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of all spans, in the order of :func:`_cell`."""
    start = np.repeat(np.arange(n), np.arange(n, 0, -1))
    return start, np.concatenate([np.arange(i + 1, n + 1) for i in range(n)])
