"""Everything about grammars by listing all trees: slow, and obviously right."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mercer.parsing import Grammar, Tree, Word

LABELS, WORDS = ("S", "A", "B", "C"), ("a", "b")


def all_trees(grammar: Grammar, words: list[str]) -> list[Tree]:
    """Every tree of a sentence; a label occurs once at most in a chain of unary rules."""
    return list(_expansions(grammar, words, grammar.start, 0, len(words), frozenset()))


def _expansions(grammar: Grammar, words: list[str], label: str, i: int, j: int, used: frozenset[str]) -> Iterator[Tree]:
    if label in used:
        return
    for rule, weight in zip(grammar.rules, grammar.weights, strict=True):
        if rule.parent != label or weight == -np.inf:
            continue
        chain = used | {label} if len(rule.children) == 1 else frozenset()
        for children in _sequences(grammar, words, rule.children, i, j, chain):
            yield Tree(label, children)


def _sequences(grammar, words, symbols, i, j, used) -> Iterator[list[Tree | str]]:
    if not symbols:
        if i == j:
            yield []
        return
    first, rest = symbols[0], symbols[1:]
    if isinstance(first, Word):
        if i < j and words[i] == first.text:
            for others in _sequences(grammar, words, rest, i + 1, j, used):
                yield [words[i], *others]
        return
    for k in range(i + 1, j - len(rest) + 1):
        if rest or k == j:
            for tree in _expansions(grammar, words, first, i, k, used if not rest else frozenset()):
                for others in _sequences(grammar, words, rest, k, j, frozenset()):
                    yield [tree, *others]


def random_grammar(seed: int, cycles: str = "error") -> Grammar:
    """A small random grammar with rules of one to three symbols, labels and words mixed."""
    random = np.random.default_rng(seed)
    while True:
        rules = {("S", ("A", "B")), ("S", ("S", "S"))}
        for label in LABELS[1:]:
            rules.update((label, (Word(word),)) for word in WORDS if random.random() < 0.7)
        for _ in range(int(random.integers(6, 12))):
            length = int(random.choice([1, 2, 2, 3]))
            symbols = tuple(
                Word(str(random.choice(WORDS))) if random.random() < 0.3 else str(random.choice(LABELS))
                for _ in range(length)
            )
            rules.add((str(random.choice(LABELS)), symbols))
        listed = sorted(rules, key=repr)
        try:
            return Grammar(listed, random.normal(size=len(listed)), "S", cycles=cycles)
        except ValueError:  # a circle, or a symbol that cannot be reached
            continue


def random_sentence(seed: int, length: int) -> list[str]:
    return [str(word) for word in np.random.default_rng([seed, length]).choice(WORDS, size=length)]
