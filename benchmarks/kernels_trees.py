"""Kernels of trees: how fast, against the recursion as it is printed, and how time grows with matched pairs of nodes.

    python benchmarks/kernels_trees.py [--parts gram growth subtrees strings] [--repeats 3]

gram      Gram matrices of 2,000 generated parse trees; the peer is the recursion over all pairs of nodes in Python with
          a table of known pairs, on a sample of pairs of trees, in turn with the compiled kernel on the same sample.
growth    time against the number of pairs of nodes with the same production, on trees of growing size: the exponent.
subtrees  reading trees and listing their complete subtrees: time against the number of nodes, the exponent.
strings   rational kernels by listed outputs and by pairs, beside `Convolution` over the n-grams.

Seconds are of the processor, one thread, medians.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import numpy as np
from _timing import Row, exponent, interleaved, parse, sized

from mercer.data.trees import Tree
from mercer.datasets import make_treebank
from mercer.kernels import Convolution, Delta, PartialTree, Rational, SubsetTree, SubTree, Transducer
from mercer.kernels.base import Work
from reference.tree_kernels import recursive_subset_tree

PARTS = ("gram", "growth", "subtrees", "strings")


def matched_pairs(trees: list[Tree]) -> int:
    """Pairs of nodes with the same production, over all pairs of trees (i ≥ j)."""
    total: Counter[Any] = Counter()
    pairs = 0
    for tree in trees:
        own = Counter(tree.rules())
        total.update(own)
        pairs += sum(count * total[rule] for rule, count in own.items())
    return pairs


def gram(repeats: int) -> None:
    trees = make_treebank(sized(2000, 20), n_words=2000, min_length=6, max_length=25, random_state=0).trees
    n, nodes, pairs = len(trees), sum(len(list(tree.nodes())) for tree in trees), matched_pairs(trees)
    texts = [str(tree) for tree in trees]
    print(f"\n## Gram matrix of {n:,} trees, {nodes / n:.1f} nodes each, {pairs:,} matched pairs of nodes\n")
    print("| kernel | seconds | trees/s | pairs of trees/s |\n|---|---|---|---|")
    kernels = [SubsetTree(), PartialTree(), SubTree()]
    for kernel, seconds in zip(kernels, interleaved(repeats, *(lambda k=k: k(texts) for k in kernels)), strict=True):
        print(f"| {kernel} | {seconds:.3f} | {n / seconds:,.0f} | {n * (n + 1) / 2 / seconds:,.0f} |")
    sample = trees[: sized(60, 5)]
    slow, fast = beside_recursion(sample, repeats)
    print(f"\n{len(sample)} × {len(sample)} pairs: recursion in Python {slow:.3f} s, SubsetTree {fast:.5f} s, ", end="")
    print(f"ratio {slow / fast:,.0f}×; values agree")


def beside_recursion(sample: list[Tree], repeats: int) -> tuple[float, float]:
    """Seconds of the recursion in Python and of the compiled kernel, once their values were found to agree."""
    made: dict[str, np.ndarray] = {}

    def brute() -> None:
        made["brute"] = np.array([[recursive_subset_tree(x, z, 0.4) for z in sample] for x in sample])

    def ours() -> None:
        made["ours"] = SubsetTree(0.4)(sample, list(sample))

    slow, fast = interleaved(repeats, brute, ours)
    np.testing.assert_allclose(made["ours"], made["brute"], rtol=1e-10)
    return slow, fast


def growth(repeats: int, show: bool = True) -> float:
    """The exponent of the time in matched pairs of nodes."""
    say = print if show else (lambda text: None)
    # Few rules, so that most of the time is spent on matched pairs and not on looking for them.
    copies = sized((20, 40, 80, 160), (2, 4))
    most = copies[-1]
    trees = make_treebank(10 * most, n_labels=4, n_tags=6, n_rules=16, max_length=20, random_state=1).trees
    say("\n## Time against matched pairs of nodes\n")
    say("| nodes a tree | matched pairs | seconds | ns a pair |\n|---|---|---|---|")
    sizes, taken = [], []
    for joined in copies:
        forest = [Tree("TOP", trees[most * i : most * i + joined]) for i in range(10)] * 2
        kernel, pairs = SubsetTree(), matched_pairs(forest)
        A = kernel._prepare(forest)
        (seconds,) = interleaved(repeats, lambda A=A, kernel=kernel: kernel._whole(A, None, Work()))
        nodes = sum(len(list(tree.nodes())) for tree in forest) / len(forest)
        say(f"| {nodes:.0f} | {pairs:,} | {seconds:.4f} | {1e9 * seconds / pairs:.1f} |")
        sizes.append(float(pairs))
        taken.append(seconds)
    say(f"\nexponent of time in matched pairs: {exponent(sizes, taken):.3f}")
    return exponent(sizes, taken)


def subtrees(repeats: int) -> None:
    print("\n## Complete subtrees: time against nodes\n\n| nodes | seconds | nodes/s |\n|---|---|---|")
    text = str(Tree("TOP", make_treebank(sized(400, 10), min_length=4, max_length=20, random_state=1).trees))
    inner = text[len("(TOP ") : -1]
    sizes, taken = [], []
    for times in sized((16, 32, 64, 128, 256), (1, 2)):
        # Sentences of every copy have a label of their own: their subtrees differ.
        long = f"(TOP {' '.join(inner.replace('(S ', f'(S{i} ') for i in range(times))})"
        nodes = long.count("(")
        (seconds,) = interleaved(repeats, lambda long=long: SubTree()._prepare([long]))
        print(f"| {nodes:,} | {seconds:.4f} | {nodes / seconds:,.0f} |")
        sizes.append(float(nodes))
        taken.append(seconds)
    print(f"\nexponent of time in nodes: {exponent(sizes, taken):.3f}")


def strings(repeats: int) -> None:
    random = np.random.default_rng(0)
    X = ["".join(random.choice(list("ACGT"), size=60)) for _ in range(sized(1000, 10))]
    few = X[: sized(100, 10)]
    print("\n## Rational kernels, DNA strings of 60 symbols\n")
    print("| transducer | strings | outputs listed, s | by pairs, s |\n|---|---|---|---|")
    for name, T in (
        ("3-grams", Transducer.ngram(3, "ACGT")),
        ("gappy, 3", Transducer.gappy(3, "ACGT", 0.5)),
        ("mismatch, (4, 1)", Transducer.mismatch(4, 1, "ACGT")),
    ):
        listed, pairs = Rational(T), Rational(T, method="pairs")
        np.testing.assert_allclose(listed(few[:5]), pairs(few[:5]), rtol=1e-9)
        many, some, slow = interleaved(
            repeats, lambda k=listed: k(X), lambda k=listed: k(few), lambda k=pairs: k(few[:30])
        )
        print(f"| {name} | {len(X)} | {many:.3f} | |\n| | {len(few)} | {some:.4f} | |")
        print(f"| | {len(few[:30])} | | {slow:.4f} |")
    T = Transducer.ngram(3, "ACGT")
    parts = Convolution(lambda x: [x[i : i + 3] for i in range(len(x) - 2)], Delta())
    ours, theirs = interleaved(repeats, lambda: Rational(T)(few), lambda: parts(few))
    print(f"\n3-grams of {len(few)} strings: Rational {ours:.4f} s, Convolution {theirs:.4f} s, {theirs / ours:.1f}×")


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    """The lines of benchmarks/kernels.py."""
    n = sized(500 if quick else 2000, 20)
    trees = make_treebank(n, n_words=2000, min_length=6, max_length=25, random_state=0).trees
    some = trees[: sized(40, 5)]
    slow, fast = beside_recursion(some, 1)
    yield Row(f"subset trees, {len(some)} x {len(some)}", "recursion in Python", slow, fast, note="values agree")
    texts = [str(tree) for tree in trees]
    (taken,) = interleaved(repeats, lambda: SubsetTree()(texts))
    yield Row(f"subset-tree Gram, {n} trees", "", np.nan, taken, "report trees/s", note=f"{n / taken:,.0f} trees/s")
    slope = growth(repeats, show=False)
    yield Row(
        "subset trees against matched pairs of nodes", "", np.nan, np.nan, "linear",
        reached=slope <= 1.1, note=f"exponent {slope:.3f}",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=3)
    given = parse(parser, repeats=1)
    for part in given.parts:
        {"gram": gram, "growth": growth, "subtrees": subtrees, "strings": strings}[part](given.repeats)


if __name__ == "__main__":
    main()
