"""Weighted context-free grammars: rules A → β with weights, their binary form for charts, and PCFGs by counting.

    score(x, y) = Σ_{rule in y} w[rule];   PCFG: w[A → β] = log (count(A → β) / count(A))

A tree is stored as its leftmost derivation: the numbers of its rules, parents before children, from left to right.
Rules of any length are binarised internally: A → B C D is A → B ⟨C D⟩ with ⟨C D⟩ → C D, whose score is 0 and which does
not appear in the derivation, so users only see their own trees.
"""

from __future__ import annotations

import copy
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mercer import _core
from mercer._state.saved import Saved
from mercer._validation import check_choice, check_count, check_offsets
from mercer.data.trees import Tree, Word
from mercer.exceptions import ParseError

__all__ = ["Grammar", "ParseError", "Rule"]

_MAX_STATES = 20_000


class Rule(NamedTuple):
    """A rule: a label and its right-hand side, labels (strings) and words (:class:`Word`).

    Examples
    --------
    >>> from mercer.parsing import Rule, Word
    >>> print(Rule("NP", ("Det", Word("dog"))))
    NP -> Det 'dog'
    """

    parent: str
    children: tuple[str | Word, ...]

    def __str__(self) -> str:
        return f"{self.parent} -> {' '.join(c if isinstance(c, str) else repr(c) for c in self.children)}"


class Grammar(Saved):
    """A weighted context-free grammar.

    Parameters
    ----------
    rules : list of Rule or of (label, children)
        Children are labels (strings) and :class:`Word` objects; at least one per rule. A string that is not the label
        of a rule counts as a word.
    weights : array of shape (n_rules,), optional
        Scores of the rules; 0 by default, −inf forbids a rule.
    start : str, optional
        The root label of every tree; by default the label of the first rule.
    cycles : {"error", "once"}, default="error"
        Treatment of cycles of unary rules, such as A → B and B → A. A tree could repeat the cycle any number of times,
        so there would be infinitely many trees, and no best tree if the cycle adds to the score. ``"error"`` raises an
        error; ``"once"`` allows each label once in a chain of unary rules.
    unknown : str, optional
        A word of the grammar that represents all unknown words.

    Attributes
    ----------
    rules : list of Rule
    weights : array
    start : str
    labels : list of str
        The nonterminals, in the order of their first rules.
    words : list of str
        The terminals.

    Examples
    --------
    >>> from mercer.parsing import Grammar
    >>> grammar = Grammar.from_text('''
    ...     S -> NP VP
    ...     NP -> Det N | N [-0.5]
    ...     VP -> V NP
    ...     Det -> the
    ...     N -> dog | cat
    ...     V -> chased
    ... ''')
    >>> tree = grammar.parse("the dog chased the cat".split())
    >>> print(tree)
    (S (NP (Det the) (N dog)) (VP (V chased) (NP (Det the) (N cat))))
    >>> int(grammar.counts(tree)[grammar.index("NP", ("Det", "N"))])
    2
    """

    def __init__(
        self,
        rules: Iterable[Rule | tuple[str, Sequence[str | Word]]],
        weights: Any = None,
        start: str | None = None,
        *,
        cycles: str = "error",
        unknown: str | None = None,
    ) -> None:
        self.cycles = check_choice("cycles", cycles, ("error", "once"))
        self.rules = _read_rules(rules)
        self._numbers = {rule: number for number, rule in enumerate(self.rules)}
        if len(self._numbers) < len(self.rules):
            twice = next(rule for rule, n in Counter(self.rules).items() if n > 1)
            raise ValueError(f"the rule {twice} is given twice")
        self.weights = _read_weights(weights, len(self.rules))
        self.labels: list[str] = list(dict.fromkeys(rule.parent for rule in self.rules))
        self.words: list[str] = list(
            dict.fromkeys(child.text for rule in self.rules for child in rule.children if isinstance(child, Word))
        )
        self._word_numbers = {word: number for number, word in enumerate(self.words)}
        self.start = self.labels[0] if start is None else start
        self.unknown = unknown
        if unknown is not None and unknown not in self._word_numbers:
            raise ValueError(f"unknown={unknown!r} is not a word of the grammar")
        self._check_symbols()
        self._chart_rules = _ChartRules(self)

    # ------------------------------------------------------------------ model files

    def _saved_params(self) -> dict[str, Any]:
        """Symbols by name, rules by the numbers of their symbols: labels first, then words."""
        label = {name: n for n, name in enumerate(self.labels)}
        word = {name: len(label) + n for n, name in enumerate(self.words)}
        children = [[word[c.text] if isinstance(c, Word) else label[c] for c in rule.children] for rule in self.rules]
        return {
            "symbols": self.labels + self.words,
            "n_labels": len(label),
            "parents": np.array([label[rule.parent] for rule in self.rules], dtype=np.int64),
            "children": np.array([c for row in children for c in row], dtype=np.int64),
            "offsets": stack_offsets([np.array(row) for row in children]),
            "weights": self.weights,
            "start": self.start,
            "cycles": self.cycles,
            "unknown": self.unknown,
        }

    @classmethod
    def _make(cls, params: dict[str, Any]) -> Grammar:
        symbols, n_labels = params["symbols"], check_count("n_labels", params["n_labels"])
        parents, children = params["parents"], params["children"]
        offsets = check_offsets("offsets", params["offsets"], len(children))
        if len(offsets) != len(parents) + 1 or not all(isinstance(symbol, str) for symbol in symbols):
            raise ValueError("the rules of the grammar do not fit together")
        for numbers, bound in ((parents, n_labels), (children, len(symbols))):
            if numbers.dtype.kind != "i" or (len(numbers) and (numbers.min() < 0 or numbers.max() >= bound)):
                raise ValueError("a symbol of the grammar is out of range")
        named: list[str | Word] = [*symbols[:n_labels], *(Word(word) for word in symbols[n_labels:])]
        rules = [
            Rule(symbols[parent], tuple(named[c] for c in children[offsets[r] : offsets[r + 1]].tolist()))
            for r, parent in enumerate(parents.tolist())
        ]
        settings = {name: params[name] for name in ("start", "cycles", "unknown")}
        return cls(rules, params["weights"], **settings)

    # ------------------------------------------------------------------ making one

    @classmethod
    def from_text(
        cls, text: str, start: str | None = None, *, cycles: str = "error", unknown: str | None = None
    ) -> Grammar:
        """Return a grammar from lines ``A -> B C [weight] | 'word' [weight]``.

        Weights are in square brackets and default to 0; ``#`` begins a comment. A symbol in quotes, or one without a
        rule, is a word.
        """
        rules, weights = [], []
        for number, line in enumerate(text.splitlines(), 1):
            tokens = _tokens(line, number)
            if not tokens:
                continue
            if len(tokens) < 3 or tokens[1] != "->" or isinstance(tokens[0], Word):
                raise ValueError(f"line {number}: expected 'LABEL -> symbols [weight]', found {line.strip()!r}")
            for alternative, weight in _alternatives(tokens[2:], number):
                rules.append(Rule(str(tokens[0]), alternative))
                weights.append(weight)
        return cls(rules, weights, start, cycles=cycles, unknown=unknown)

    @classmethod
    def from_trees(
        cls,
        trees: Iterable[Tree],
        smoothing: float = 0.0,
        *,
        cycles: str = "error",
        unknown: str | None = None,
    ) -> Grammar:
        """Return the probabilistic grammar of highest likelihood: weights are logarithms of relative frequencies.

        Parameters
        ----------
        trees : list of Tree
            Trees with the same root label.
        smoothing : float, default=0.0
            Pseudo-count added to each rule's count.
        cycles, unknown
            As for :class:`Grammar`.
        """
        if isinstance(smoothing, bool) or not isinstance(smoothing, (int, float)) or not 0 <= smoothing < math.inf:
            raise ValueError(f"smoothing must be a finite number of at least 0, got {smoothing!r}")
        trees = check_trees(trees)
        roots = sorted({tree.label for tree in trees})
        if len(roots) > 1:
            raise ValueError(
                f"the trees have the root labels {', '.join(roots)}; a grammar has one start symbol: "
                "put a common root above them, Tree('ROOT', [tree])"
            )
        counts = Counter(rule for tree in trees for rule in tree.rules())
        totals: Counter[str] = Counter()
        for (parent, _), count in counts.items():
            totals[parent] += count + smoothing  # type: ignore[assignment]
        weights = [math.log((count + smoothing) / totals[parent]) for (parent, _), count in counts.items()]
        return cls([Rule(*rule) for rule in counts], weights, roots[0], cycles=cycles, unknown=unknown)

    def with_weights(self, weights: Any) -> Grammar:
        """Return the same rules with new weights."""
        other = copy.copy(self)  # rules and compiled grammar are shared
        other.weights = _read_weights(weights, len(self.rules))
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "chart"}  # compiled again when needed

    def __len__(self) -> int:
        return len(self.rules)

    def __str__(self) -> str:
        return "\n".join(f"{rule} [{weight:g}]" for rule, weight in zip(self.rules, self.weights, strict=True))

    def index(self, parent: str, children: Sequence[str | Word]) -> int:
        """Return the number of a rule; a child that is not a label counts as a word."""
        given = Rule(parent, tuple(children))
        rule = Rule(parent, tuple(_as_symbol(child, set(self.labels)) for child in given.children))
        if given not in self._numbers and rule not in self._numbers:
            raise KeyError(f"the grammar has no rule {rule}")
        return self._numbers[given] if given in self._numbers else self._numbers[rule]

    # ------------------------------------------------------------------ trees and sentences

    def derivation(self, tree: Tree) -> np.ndarray:
        """Return the leftmost derivation: the numbers of the tree's rules, parents before children.

        Unknown words count as the unknown word of the grammar, if it has one.
        """
        if tree.label != self.start:
            raise ValueError(f"the tree's root is {tree.label!r}, the grammar's start symbol {self.start!r}")
        numbers = []
        for parent, children in tree.rules():
            rule = Rule(parent, children)
            number = self._numbers.get(rule)
            if number is None and self.unknown is not None:
                known = tuple(
                    Word(self.unknown) if isinstance(c, Word) and c.text not in self._word_numbers else c
                    for c in children
                )
                number = self._numbers.get(Rule(parent, known))
            if number is None:
                raise ValueError(f"the grammar has no rule {rule}")
            numbers.append(number)
        self._check_chains(tree)
        return np.array(numbers, dtype=np.int32)

    def tree(self, derivation: np.ndarray, words: Sequence[str] | None = None) -> Tree:
        """Return the tree of a leftmost derivation; ``words``, if given, replace its leaves."""
        spoken = iter(words) if words is not None else None
        finished: list[Tree] = []
        open_nodes: list[tuple[Rule, list[Tree | str]]] = []
        numbers = iter(derivation.tolist())
        open_nodes.append((self.rules[next(numbers)], []))
        while open_nodes:
            rule, children = open_nodes[-1]
            if len(children) == len(rule.children):
                open_nodes.pop()
                node = Tree(rule.parent, children)
                if open_nodes:
                    open_nodes[-1][1].append(node)
                else:
                    finished.append(node)
                continue
            symbol = rule.children[len(children)]
            if isinstance(symbol, Word):
                children.append(next(spoken) if spoken is not None else symbol.text)
            else:
                open_nodes.append((self.rules[next(numbers)], []))
        return finished[0]

    def counts(self, tree: Tree) -> np.ndarray:
        """Return Φ(x, y): the count of each rule in the tree."""
        return np.bincount(self.derivation(tree), minlength=len(self.rules)).astype(float)

    def score(self, tree: Tree) -> float:
        """Return the sum of the weights of the tree's rules: for a PCFG log p(tree)."""
        return float(self.weights[self.derivation(tree)].sum())

    def encode(self, sentence: Sequence[str], number: int = 0) -> np.ndarray:
        """Return the numbers of the words of a sentence."""
        check_sentence(sentence, number)
        default = -1 if self.unknown is None else self._word_numbers[self.unknown]
        encoded = np.array([self._word_numbers.get(word, default) for word in sentence], dtype=np.int32)
        if (encoded < 0).any():
            raise ParseError(number, sentence[int(np.flatnonzero(encoded < 0)[0])])
        return encoded

    # ------------------------------------------------------------------ parsing

    @cached_property
    def chart(self) -> _core.parsing.ChartGrammar:
        """The compiled grammar."""
        return self._chart_rules.compiled(self)

    def parse(self, sentence: Sequence[str]) -> Tree:
        """Return the tree of highest score.

        Raises
        ------
        ParseError
            If the grammar derives no tree.
        """
        return self.k_best(sentence, 1)[0][0]

    def k_best(self, sentence: Sequence[str], k: int) -> list[tuple[Tree, float]]:
        """Return the k trees of highest score, best first; fewer if there are fewer."""
        x = self.encode(sentence)
        rules, offsets, scores = self.chart.k_best(self.weights, x, stack_offsets([x]), k, None, True)
        derivations = [
            (self.tree(rules[offsets[r] : offsets[r + 1]], sentence), float(scores[r]))
            for r in range(k)
            if scores[r] > -np.inf
        ]
        if not derivations:
            raise ParseError(0, None)
        return derivations

    def log_partition(self, sentence: Sequence[str]) -> float:
        """Return log Σ_y exp score(y) over all trees: for a PCFG log p(sentence); −inf without a tree."""
        x = self.encode(sentence)
        return float(self.chart.log_partition(self.weights, x, stack_offsets([x]), None, True, None, None)[0])

    # ------------------------------------------------------------------ checks

    def _check_symbols(self) -> None:
        known = set(self.labels)
        if self.start not in known:
            raise ValueError(f"no rule expands the start symbol {self.start!r}")
        productive = _closure(
            {rule.parent for rule in self.rules if all(isinstance(c, Word) for c in rule.children)},
            lambda done: {r.parent for r in self.rules if all(isinstance(c, Word) or c in done for c in r.children)},
        )
        _refuse(known - productive, "derive no sentence, because their rules never end in words", self.labels)
        reachable = _closure(
            {self.start},
            lambda done: {c for r in self.rules if r.parent in done for c in r.children if isinstance(c, str)},
        )
        _refuse(known - reachable, f"cannot be reached from the start symbol {self.start!r}", self.labels)

    def _check_chains(self, tree: Tree) -> None:
        if not self._chart_rules.circular:
            return
        chains = [(tree, frozenset[str]())]
        while chains:
            node, above = chains.pop()
            if node.label in above:
                raise ValueError(f"the label {node.label!r} occurs twice in a chain of unary rules (cycles='once')")
            children = [child for child in node.children if isinstance(child, Tree)]
            lone = len(node.children) == 1
            chains.extend((child, above | {node.label} if lone else frozenset()) for child in children)


class _ChartRules:
    """The binary form of a grammar; see :class:`Grammar`.

    Labels on a circle of unary rules (``cycles="once"``) are split into states (label, labels beneath it in the chain),
    so that the charts only meet grammars without circles: A over the chain {B, C} is another symbol than A over {C}.
    A symbol for "A in any state" leads to them by rules of score 0.
    """

    def __init__(self, grammar: Grammar) -> None:
        self.symbol_labels: list[int] = list(range(len(grammar.labels)))
        self.number = {label: n for n, label in enumerate(grammar.labels)}
        self.binary: list[tuple[int, int, int, int]] = []
        self.unary: list[tuple[int, int, int]] = []
        self.lexical: list[tuple[int, int, int]] = []
        self._made: dict[Any, int] = {}
        chains = {
            (r.parent, r.children[0]) for r in grammar.rules if len(r.children) == 1 and isinstance(r.children[0], str)
        }
        self.group = _circles(grammar.labels, chains)
        self.circular = bool(self.group)
        if self.circular and grammar.cycles == "error":
            circle = " -> ".join(_one_circle(self.group, chains))
            raise ValueError(
                f"the unary rules form a cycle, {circle}: a tree could repeat it any number of times, and its score "
                f"would have no bound; remove a rule, or allow each label once in a chain with cycles='once'"
            )
        self._bottom = {label: self.number[label] for label in grammar.labels}
        if self.circular:
            self._split(grammar)
        for number, rule in enumerate(grammar.rules):
            self._add(grammar, number, rule)

    def compiled(self, grammar: Grammar) -> _core.parsing.ChartGrammar:
        def table(rows: list[Any], width: int) -> np.ndarray:
            return np.array(rows, dtype=np.int32).reshape(len(rows), width)

        return _core.parsing.ChartGrammar(
            len(grammar.words),
            len(grammar.labels),
            len(grammar.rules),
            self.number[grammar.start],
            np.array(self.symbol_labels, dtype=np.int32),
            table(self.binary, 4),
            table(self.unary, 3),
            table(self.lexical, 3),
        )

    def _symbol(self, key: Any, label: int = -1) -> tuple[int, bool]:
        """The number of a made symbol, and whether it is new."""
        if key in self._made:
            return self._made[key], False
        self._made[key] = len(self.symbol_labels)
        self.symbol_labels.append(label)
        if len(self._made) > _MAX_STATES and isinstance(key, tuple) and key[0] == "state":
            raise ValueError("the cycles of unary rules are too large; remove some of these rules")
        return self._made[key], True

    def _child(self, grammar: Grammar, symbols: tuple[str | Word, ...]) -> int:
        """The chart's symbol for the rest of a rule, which rules that end alike share; in time linear in its length."""
        made = self._single(grammar, symbols[-1])
        for symbol in reversed(symbols[:-1]):
            first, rest = self._single(grammar, symbol), made
            made, new = self._symbol(("rest", first, rest))
            if new:
                self.binary.append((made, first, rest, -1))
        return made

    def _single(self, grammar: Grammar, symbol: str | Word) -> int:
        """The chart's symbol for a label or a word."""
        if isinstance(symbol, str):
            return self.number[symbol]
        made, new = self._symbol(("word", symbol))
        if new:
            self.lexical.append((made, grammar._word_numbers[symbol.text], -1))
        return made

    def _add(self, grammar: Grammar, number: int, rule: Rule) -> None:
        bottom, first = self._bottom[rule.parent], rule.children[0]
        if len(rule.children) > 1:
            left, right = self._child(grammar, rule.children[:1]), self._child(grammar, rule.children[1:])
            self.binary.append((bottom, left, right, number))
        elif isinstance(first, Word):
            self.lexical.append((bottom, grammar._word_numbers[first.text], number))
        elif self.group.get(rule.parent) is None or self.group.get(rule.parent) != self.group.get(first):
            self.unary.append((bottom, self.number[first], number))

    def _split(self, grammar: Grammar) -> None:
        within: dict[Any, list[tuple[str, int]]] = {}
        for number, rule in enumerate(grammar.rules):
            first = rule.children[0]
            chain = len(rule.children) == 1 and isinstance(first, str) and rule.parent != first
            if chain and rule.parent in self.group and self.group.get(str(first)) == self.group[rule.parent]:
                within.setdefault(first, []).append((rule.parent, number))
        todo = []
        for label in self.group:
            self.symbol_labels[self.number[label]] = -1  # "any state" is no bracket; its states are
            state = (label, frozenset((label,)))
            self._bottom[label], _ = self._symbol(("state", state), self.number[label])
            self.unary.append((self.number[label], self._bottom[label], -1))
            todo.append(state)
        while todo:
            label, used = todo.pop()
            below = self._made["state", (label, used)]
            for parent, number in within.get(label, ()):
                if parent in used:
                    continue
                state = (parent, used | {parent})
                made, new = self._symbol(("state", state), self.number[parent])
                self.unary.append((made, below, number))
                if new:
                    self.unary.append((self.number[parent], made, -1))
                    todo.append(state)


# ---------------------------------------------------------------------------------------------- reading


def check_trees(trees: Iterable[Tree], name: str = "trees") -> list[Tree]:
    """Return a list of at least one tree."""
    if isinstance(trees, (str, Tree)):
        raise TypeError(f"{name} must be a list of Tree objects")
    listed = list(trees)
    for number, tree in enumerate(listed):
        if not isinstance(tree, Tree):
            raise TypeError(
                f"{name}[{number}] must be a Tree, got {type(tree).__name__} (Tree.parse reads bracket notation)"
            )
    if not listed:
        raise ValueError(f"{name} is empty: at least one tree is needed")
    return listed


def check_sentence(sentence: Sequence[str], number: int) -> None:
    """Return a non-empty list of strings."""
    if isinstance(sentence, (str, bytes)) or not isinstance(sentence, Sequence):
        raise TypeError(f"sentence {number} must be a list of words, got {sentence!r}")
    if not sentence:
        raise ValueError(f"sentence {number} is empty: a tree has at least one word")
    for word in sentence:
        if not isinstance(word, str):
            raise TypeError(f"sentence {number} has the word {word!r}; words are strings")


def stack_offsets(encoded: Sequence[np.ndarray]) -> np.ndarray:
    """Return the offsets of the stacked sentences."""
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(x) for x in encoded], out=offsets[1:])
    return offsets


def _read_rules(rules: Any) -> list[Rule]:
    if isinstance(rules, str):
        raise TypeError("rules must be a list of rules; Grammar.from_text reads a text")
    given = []
    for number, rule in enumerate(rules):
        try:
            parent, children = rule
        except (TypeError, ValueError):
            raise TypeError(f"rules[{number}] must be a Rule or a pair (label, children), got {rule!r}") from None
        if not isinstance(parent, str) or isinstance(children, (str, Word)):
            raise TypeError(f"rules[{number}] must be a label (a string) and a list of children, got {rule!r}")
        if not len(children):
            raise ValueError(f"rules[{number}]: {parent} has an empty right-hand side; every rule needs a child")
        given.append((parent, tuple(children)))
    if not given:
        raise ValueError("a grammar needs at least one rule")
    labels = {parent for parent, _ in given}
    return [Rule(parent, tuple(_as_symbol(child, labels) for child in children)) for parent, children in given]


def _as_symbol(child: Any, labels: set[str]) -> str | Word:
    if isinstance(child, Word) or (isinstance(child, str) and child in labels):
        return child
    if isinstance(child, str):
        return Word(child)
    raise TypeError(f"a child in a rule is a label or a word, got {child!r}")


def _read_weights(weights: Any, n: int) -> np.ndarray:
    w = np.zeros(n) if weights is None else np.array(weights, dtype=float)
    if w.shape != (n,):
        raise ValueError(f"weights must have shape ({n},), one for each rule, got {w.shape}")
    if np.isnan(w).any() or (w == np.inf).any():
        raise ValueError("weights must be finite numbers, or -inf for a forbidden rule")
    return w


_SYMBOL = re.compile(r"""\s*(?:(?P<comment>\#.*)|(?P<arrow>->)|(?P<bar>\|)|\[(?P<weight>[^\]]*)\]|
    '(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<plain>[^\s|\[\]'"#]+))""", re.X)  # fmt: skip


def _tokens(line: str, number: int) -> list[Any]:
    tokens: list[Any] = []
    position, line = 0, line.rstrip()
    while position < len(line):
        match = _SYMBOL.match(line, position)
        if match is None:
            raise ValueError(f"line {number}: cannot read {line[position:].strip()!r}")
        position = match.end()
        kind, value = match.lastgroup, match.group(match.lastgroup or 0)
        if kind == "comment":
            break
        if kind == "weight":
            try:
                tokens.append(float(value))
            except ValueError:
                raise ValueError(f"line {number}: the weight [{value}] is not a number") from None
        else:
            tokens.append(Word(value) if kind in ("single", "double") else value)
    return tokens


def _alternatives(tokens: list[Any], number: int) -> list[tuple[tuple[str | Word, ...], float]]:
    alternatives = []
    symbols: list[str | Word] = []
    weight: float | None = None
    for token in [*tokens, "|"]:
        if token == "|":
            if not symbols:
                raise ValueError(f"line {number}: an alternative without symbols")
            alternatives.append((tuple(symbols), 0.0 if weight is None else weight))
            symbols, weight = [], None
        elif isinstance(token, float):
            if weight is not None:
                raise ValueError(f"line {number}: two weights for one alternative")
            weight = token
        elif weight is not None or token == "->":
            raise ValueError(f"line {number}: a weight stands at the end of an alternative, and '->' once in a line")
        else:
            symbols.append(token)
    return alternatives


# ---------------------------------------------------------------------------------------------- graphs of labels


def _closure(start: set[str], grow: Any) -> set[str]:
    done = start
    while True:
        larger = done | grow(done)
        if len(larger) == len(done):
            return done
        done = larger


def _refuse(symbols: set[str], why: str, order: list[str]) -> None:
    if symbols:
        named = [symbol for symbol in order if symbol in symbols]
        more = f" and {len(named) - 5} more" if len(named) > 5 else ""
        raise ValueError(f"symbols that {why}: {', '.join(named[:5])}{more}")


def _circles(labels: list[str], chains: set[tuple[Any, Any]]) -> dict[str, int]:
    """Label → number of its circle (strongly connected component), for the labels on one."""
    children: dict[str, set[str]] = {label: set() for label in labels}
    for parent, child in chains:
        children[parent].add(child)
    below = {
        label: _closure(set(children[label]), lambda done: {c for d in done for c in children[d]}) for label in labels
    }
    group: dict[str, int] = {}
    for number, label in enumerate(labels):
        if label in below[label] and label not in group:
            for other in below[label]:
                if label in below[other]:
                    group[other] = number
    return group


def _one_circle(group: dict[str, int], chains: set[tuple[Any, Any]]) -> list[str]:
    first = min(group)
    inside = {label for label in group if group[label] == group[first]}
    paths = [[first]]
    for path in paths:  # breadth first, so the circle shown is a shortest one
        for parent, child in sorted(chains):
            if parent == path[-1] and child in inside:
                if child == first:
                    return [*path, child]
                if child not in path:
                    paths.append([*path, child])
    return [first]
