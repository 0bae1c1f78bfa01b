"""Trees of a grammar as outputs to learn: Φ, the costs and the searches that losses and solvers ask for (spec 003 E1, D7).

    Φ(x, y) = counts of the rules in y   [+ for each bracket: its label with the words at its edges]

| cost Δ(y*, y), p brackets in y, t in y*, c in both | argmax of score + Δ |
|---|---|
| bracket | p + t − 2 c, the Hamming distance of the sets of brackets | a chart with ±1 on each bracket |
| zero-one | 1 if y ≠ y* | the two best trees |
| f1 | 1 − 2 c / (p + t) | a chart over (score, p, c), exact: see cpp/chart.hpp |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mercer._validation import check_choice
from mercer.data.trees import Tree
from mercer.parsing.grammar import Grammar, ParseError, stack_offsets
from mercer.structured import Structure

__all__ = ["COSTS", "FEATURES", "TreeStructure"]

COSTS = ("bracket", "zero-one", "f1")
FEATURES = ("rules", "rules+boundaries")
_EDGES = 4  # first word, last word, word before, word after
_DENSE = 4096  # feature vectors up to this length are dense


class TreeStructure(Structure):
    """The trees of a grammar over a sentence, for :class:`mercer.structured.StructuredPredictor`.

    Sentences are lists of words and outputs :class:`Tree` objects; or, where speed counts, word numbers
    (:meth:`Grammar.encode`) and leftmost derivations (:meth:`Grammar.derivation`), both int32 arrays. What comes back is of the
    kind that went in.

    Parameters
    ----------
    grammar : Grammar
        Its rules. The weights of the grammar are not used.
    cost : {"bracket", "zero-one", "f1"}, default="bracket"
        Δ: brackets in one tree only, whether the trees differ, or 1 − F1 of the brackets.
    features : {"rules", "rules+boundaries"}, default="rules"
        Counts of rules; or also, for each bracket, its label together with its first word, its last word, the word before it
        and the word after it.
    preterminals : bool, default=True
        Whether a node right above a single word is a bracket, for costs and boundary features.

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
        """(label number, start, end) of each bracket of a tree or a derivation."""
        found: list[tuple[int, int, int]] = []
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
                    found.append((label, start, position))
                stack.pop()
        return found

    # ------------------------------------------------------------------ Φ

    def features(self, x: Any, y: Any) -> Any:
        """Φ(x, y): an array, or a sparse row where it is long."""
        derivation = self._derivation(y)
        columns = derivation
        if self.n_weights > self.n_rules:
            columns = np.concatenate([derivation, self._edge_columns(self._encoded(x), self.brackets(derivation))])
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

    # ------------------------------------------------------------------ Δ

    def cost(self, y_true: Any, y: Any) -> float:
        """Δ(y*, y)."""
        if self.cost_name == "zero-one":
            return 0.0 if self.equal(y_true, y) else 1.0
        true, found = set(self.brackets(y_true)), set(self.brackets(y))
        correct, total = len(true & found), len(true) + len(found)
        if self.cost_name == "bracket":
            return float(total - 2 * correct)
        return 1.0 - 2.0 * correct / total if total else 0.0

    def equal(self, y: Any, z: Any) -> bool:
        """Whether two trees are the same."""
        return np.array_equal(self._derivation(y), self._derivation(z))

    # ------------------------------------------------------------------ searches

    def argmax(self, w: np.ndarray, x: Any, cost_to: Any = None) -> Any:
        """The tree of highest score (plus cost, if ``cost_to`` is given)."""
        words = self._encoded(x)
        rules, sigma = self._rule_weights(w), self._sigma(w, words)
        if cost_to is None:
            found = self._best(rules, words, sigma)
        elif self.cost_name == "zero-one":
            truth = self._derivation(cost_to)
            first, *others = self._k_best(rules, words, sigma, 2)
            found = first[0]
            if others and np.array_equal(found, truth) and others[0][1] + 1.0 > first[1]:
                found = others[0][0]
        elif self.cost_name == "bracket":
            found = self._best(rules, words, self._with_cost(sigma, words, self.brackets(cost_to)))
        else:
            found = self._f1_best(rules, words, sigma, self.brackets(cost_to))
        return self._given(found, x)

    def argmin(self, w: np.ndarray, x: Any) -> Any:
        """The tree of lowest score."""
        return self.argmax(-np.asarray(w), x)

    def k_best(self, w: np.ndarray, x: Any, k: int) -> list[tuple[Any, float]]:
        """The k best trees and their scores, best first; fewer where there are fewer."""
        words = self._encoded(x)
        found = self._k_best(self._rule_weights(w), words, self._sigma(w, words), k)
        return [(self._given(derivation, x), score) for derivation, score in found]

    def log_partition(self, w: np.ndarray, x: Any, cost_to: Any = None) -> tuple[float, np.ndarray]:
        """log Σ_y exp(score + Δ) and the features expected under that distribution (Δ only if ``cost_to`` is given)."""
        words = self._encoded(x)
        sigma = self._sigma(w, words)
        if cost_to is None:
            return self._inside(w, words, sigma)
        truth = self._derivation(cost_to)
        if self.cost_name == "bracket":
            brackets = self.brackets(truth)
            value, expected = self._inside(w, words, self._with_cost(sigma, words, brackets))
            return value + len(brackets), expected
        if self.cost_name == "f1":
            raise ValueError("1 - F1 is no sum over brackets, so it has no partition function: use cost='bracket'")
        value, expected = self._inside(w, words, sigma)
        row = self.features(words, truth)
        row = row if isinstance(row, np.ndarray) else row.toarray().ravel()
        p = min(1.0, math.exp(float(row @ w) - value))  # of the true tree, which alone costs nothing
        total = math.e * (1.0 - p) + p
        return value + math.log(total), (math.e * (expected - p * row) + p * row) / total

    # ------------------------------------------------------------------ charts

    def _rule_weights(self, w: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(w[: self.n_rules], dtype=float)

    def _with_cost(self, sigma: np.ndarray | None, x: np.ndarray, truth: list[tuple[int, int, int]]) -> np.ndarray:
        """σ plus the Hamming cost of each bracket, up to the number of true ones: +1 for a wrong one, −1 for a true one."""
        n = len(x)
        costed = np.ones((n * (n + 1) // 2, self.n_labels))
        for label, i, j in truth:
            costed[_cell(n, i, j), label] = -1.0
        return costed if sigma is None else costed + sigma

    def _best(self, rules: np.ndarray, x: np.ndarray, sigma: np.ndarray | None) -> np.ndarray:
        found, _, score = self.grammar.chart.best(rules, x, stack_offsets([x]), sigma, self.preterminals)
        if score[0] == -np.inf:
            raise ParseError(0, None)
        return found

    def _k_best(
        self, rules: np.ndarray, x: np.ndarray, sigma: np.ndarray | None, k: int
    ) -> list[tuple[np.ndarray, float]]:
        found, offsets, scores = self.grammar.chart.k_best(rules, x, stack_offsets([x]), k, sigma, self.preterminals)
        trees = [
            (found[offsets[r] : offsets[r + 1]].copy(), float(scores[r])) for r in range(k) if scores[r] > -np.inf
        ]
        if not trees:
            raise ParseError(0, None)
        return trees

    def _f1_best(
        self, rules: np.ndarray, x: np.ndarray, sigma: np.ndarray | None, truth: Sequence[tuple[int, int, int]]
    ) -> np.ndarray:
        n = len(x)
        marks = np.zeros((n * (n + 1) // 2, self.n_labels), np.uint8)
        for label, i, j in truth:
            marks[_cell(n, i, j), label] = 1
        found, _, score = self.grammar.chart.f1_best(
            rules, x, stack_offsets([x]), marks, np.array([len(truth)]), sigma, self.preterminals
        )
        if score[0] == -np.inf:
            raise ParseError(0, None)
        return found

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


def _cell(n: int, i: int, j: int) -> int:
    """The place of the words [i, j) among all spans of a sentence of n words: by start, then by end."""
    return i * n - i * (i - 1) // 2 + (j - i - 1)


def _cells(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of all spans, in the order of :func:`_cell`."""
    start = np.repeat(np.arange(n), np.arange(n, 0, -1))
    return start, np.concatenate([np.arange(i + 1, n + 1) for i in range(n)])
