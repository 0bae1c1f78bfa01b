"""A synthetic treebank from a random grammar whose rules depend on the parent, which rule counts cannot represent.

A tree grows from the root. A label with parent u is expanded by one of its rules, with probability

    p(rule | label, u) ∝ p(rule | label) · exp(mismatch · ε[rule, u]),   ε standard normal,

so the content of a phrase depends on its context, as in real treebanks (subject and object noun phrases differ). With
mismatch 0 the trees come from a PCFG of the rules. Leaves are parts of speech or, with ``n_words``, words drawn by
Zipf's law from the vocabulary of the part of speech, some of them shared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer._validation import check_count
from mercer.data.trees import Tree

__all__ = ["Treebank", "make_treebank"]

_PHRASES = (  # noqa: SIM905
    "S VP NP SBAR SINV SQ WHNP WHPP PP ADJP ADVP QP PRT CONJP NX NAC UCP FRAG INTJ LST PRN RRC X WHADVP WHADJP SBARQ"
).split()
_TAGS = (  # noqa: SIM905
    "DT NN NNS NNP NNPS PRP PRP$ VB VBD VBZ VBP VBG VBN MD IN TO JJ JJR JJS RB RBR RBS RP CC CD EX FW WDT WP WP$ WRB "
    "UH SYM LS PDT POS , . : `` '' $ # -LCB- -RCB-"
).split()
_FREQUENT = 0.75  # of the phrases inside rules come from the first few labels
_DEEPEST = 40


class Treebank(NamedTuple):
    """Sentences and their trees; see :func:`make_treebank`."""

    sentences: list[list[str]]
    trees: list[Tree]


class _RandomGrammar:
    """Rules and their probabilities given the parent."""

    def __init__(self, n_labels: int, n_tags: int, n_rules: int, mismatch: float, random: np.random.Generator) -> None:
        self.labels, self.tags = _PHRASES[:n_labels], _TAGS[:n_tags]
        self.children: list[list[tuple[str, ...]]] = []
        self.cumulated: list[np.ndarray] = []  # probabilities of the rules, summed up: a row for each parent
        share = 1.0 / np.arange(1, n_labels + 1) ** 0.7
        sizes = np.maximum(2, np.round(n_rules * share / share.sum())).astype(int)
        frequency = 1.0 / np.arange(1, n_tags + 1) ** 2.0
        self._frequency = frequency / frequency.sum()
        for label in range(n_labels):
            rules = self._rules_of(label, int(sizes[label]), random)
            base = -0.3 * np.log(np.arange(1, len(rules) + 1))
            weights = np.exp(base + mismatch * random.normal(size=(n_labels + 1, len(rules))))
            self.children.append(rules)
            self.cumulated.append(np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1))  # last row: the root

    def _tag(self, random: np.random.Generator) -> str:
        return self.tags[int(random.choice(len(self.tags), p=self._frequency))]

    def _rules_of(self, label: int, size: int, random: np.random.Generator) -> list[tuple[str, ...]]:
        # A phrase has its own few heads, mostly; that is what tells phrases apart.
        heads = [self._tag(random) for _ in range(4)]
        rules_seen: dict[tuple[str, ...], None] = {}
        tries = 0
        while len(rules_seen) < size:
            tries += 1
            if tries > 100 * size:
                raise ValueError("n_rules is too large for these numbers of labels and tags")
            length = int(random.choice([1, 2, 3, 4], p=[0.12, 0.45, 0.3, 0.13]))
            place = int(random.integers(length))
            rule = [self._part(label, random) for _ in range(length)]
            if length == 1 or random.random() < 0.6:
                rule[place] = heads[int(random.integers(len(heads)))]
            # A sentence is rarely a single word; phrases alone in a rule only lead to later labels: no circles.
            if length == 1 and label + 1 < len(self.labels) and random.random() < 0.4:
                rule = [self.labels[int(random.integers(label + 1, len(self.labels)))]]
            if label == 0 and length == 1:
                continue
            rules_seen[tuple(rule)] = None
        rules = list(rules_seen)
        # The commonest rule of a label has tags only, so that trees come to an end.
        ends = [at for at, rule in enumerate(rules) if not any(part in self.labels for part in rule)]
        if label > 0 and not ends:
            rules[0] = (heads[0],)
        elif label > 0:
            rules[0], rules[ends[0]] = rules[ends[0]], rules[0]
        return rules

    def _part(self, label: int, random: np.random.Generator) -> str:
        if random.random() < (0.8 if label == 0 else 0.5):
            few = min(6, len(self.labels))
            at = (
                int(random.integers(1, few))
                if random.random() < _FREQUENT and few > 1
                else int(random.integers(len(self.labels)))
            )
            return self.labels[at]
        return self._tag(random)

    def draw(self, random: np.random.Generator, max_length: int) -> Tree | None:
        """Draw a tree; return None if it exceeds the limits."""
        numbers = {label: n for n, label in enumerate(self.labels)}
        room = [max_length]

        def grow(label: int, parent: int, depth: int) -> Tree | None:
            rules, cumulated = self.children[label], self.cumulated[label][parent]
            rule = rules[min(int(cumulated.searchsorted(random.random(), side="right")), len(rules) - 1)]
            if depth > _DEEPEST:
                return None
            children: list[Tree | str] = []
            for part in rule:
                if part in numbers:
                    child = grow(numbers[part], label, depth + 1)
                    if child is None:
                        return None
                    children.append(child)
                else:
                    room[0] -= 1
                    if room[0] < 0:
                        return None
                    children.append(part)
            return Tree(self.labels[label], children)

        return grow(0, len(self.labels), 0)


class _Lexicon:
    """Words of the parts of speech, by Zipf's law; a word may have several parts of speech."""

    def __init__(self, tags: list[str], n_words: int, random: np.random.Generator) -> None:
        self.words: dict[str, list[str]] = {}
        self.p: dict[str, np.ndarray] = {}
        own = np.maximum(1, random.dirichlet(np.full(len(tags), 0.5)) * n_words).astype(int)
        first = 0
        for tag, size in zip(tags, own, strict=True):
            shared = random.integers(0, n_words, size=max(1, int(size) // 5))
            numbers = [*range(first, first + int(size)), *shared.tolist()]
            first += int(size)
            self.words[tag] = [f"w{number}" for number in numbers]
            weight = 1.0 / np.arange(1, len(numbers) + 1)
            self.p[tag] = weight / weight.sum()

    def spoken(self, tree: Tree, random: np.random.Generator) -> Tree:
        """Return the tree with a word below each part of speech."""
        children: list[Tree | str] = []
        for child in tree.children:
            if isinstance(child, Tree):
                children.append(self.spoken(child, random))
            else:
                at = int(random.choice(len(self.p[child]), p=self.p[child]))
                children.append(Tree(child, [self.words[child][at]]))
        return Tree(tree.label, children)


def make_treebank(
    n: int = 1000,
    *,
    n_labels: int = 26,
    n_tags: int = 45,
    n_rules: int = 400,
    n_words: int | None = None,
    min_length: int = 4,
    max_length: int = 10,
    mismatch: float = 2.5,
    random_state: int | np.random.Generator | None = 0,
) -> Treebank:
    """Draw trees from a random grammar whose rule probabilities depend on the parent of a phrase.

    Parameters
    ----------
    n : int, default=1000
        Number of trees.
    n_labels, n_tags : int
        Phrase labels (at most 26) and parts of speech (at most 45).
    n_rules : int, default=400
        Approximate number of rules; frequent labels have more rules.
    n_words : int, optional
        Size of the vocabulary. By default the leaves are the parts of speech themselves.
    min_length, max_length : int
        Limits of the sentence length in words; other sentences are rejected while drawing.
    mismatch : float, default=2.5
        Dependence of the rules of a phrase on its parent; 0 gives a PCFG.
    random_state : int, Generator or None, default=0
        Seed of the grammar and of the trees.

    Returns
    -------
    bank : Treebank
        ``sentences`` and ``trees``.

    Examples
    --------
    >>> from mercer.datasets import make_treebank
    >>> bank = make_treebank(3, random_state=1)
    >>> [tree.leaves() for tree in bank.trees] == bank.sentences
    True
    >>> {tree.label for tree in bank.trees}
    {'S'}
    """
    check_count("n", n)
    for name, value, most in (("n_labels", n_labels, len(_PHRASES)), ("n_tags", n_tags, len(_TAGS))):
        if check_count(name, value, 2) > most:
            raise ValueError(f"{name} must be at most {most}, got {value}")
    check_count("n_rules", n_rules, n_labels)
    check_count("min_length", min_length)
    if check_count("max_length", max_length) < min_length:
        raise ValueError(f"max_length={max_length} is below min_length={min_length}")
    if not 0 <= mismatch < np.inf:
        raise ValueError(f"mismatch must be a finite number of at least 0, got {mismatch!r}")
    if n_words is not None:
        check_count("n_words", n_words, n_tags)
    random = np.random.default_rng(random_state)
    grammar = _RandomGrammar(n_labels, n_tags, n_rules, float(mismatch), random)
    lexicon = None if n_words is None else _Lexicon(grammar.tags, n_words, random)
    trees: list[Tree] = []
    thrown = 0
    while len(trees) < n:
        tree = grammar.draw(random, max_length)
        if tree is None or len(tree.leaves()) < min_length:
            thrown += 1
            if thrown > 1000 * n + 100_000:
                raise ValueError("almost no tree has the required length; widen min_length and max_length")
            continue
        trees.append(tree if lexicon is None else lexicon.spoken(tree, random))
    return Treebank([tree.leaves() for tree in trees], trees)
