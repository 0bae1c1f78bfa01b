"""Attributes of animals from shares of categories, and from shares made 0 or 1 (spec 004 II-25).

    MERCER_DATA=… python benchmarks/attributes_awa.py [--parts graded images categories machine]

Animals with Attributes: 4,992 images (PHOG, 252 features) of 50 categories, 85 attributes. The matrix
`predicate-matrix-continuous` holds strengths of association from 0 to 100, which are used as shares (−1, not known,
stays unknown). There are no labels of single images, so rankings are judged by the binary matrix of the category of
each image: truth at the level of classes, which favours what is trained on that very matrix. Parts:

    images       half of the images of all 50 categories held out
    categories   the 10 categories of the zero-shot split held out
    machine      as images, every fourth attribute, with the alternating machine (about 2 s for each attribute)
    graded       generated categories with shares in [0.2, 0.8] and known attributes of single images (P47)
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import StandardScaler

import mercer.proportions
from mercer.datasets import make_attribute_categories
from mercer.proportions import AttributeModeler, BinarizedAttributes, ProportionClassifier, discretize_proportions


def load(home: Path) -> dict[str, np.ndarray]:
    """Features, categories, shares (NaN where not known), the binary matrix and the zero-shot split."""
    with gzip.open(home / "phog_first100perclass.npy.gz") as file:
        X = np.sqrt(np.load(file).astype(np.float64))
    names = [line.split()[1] for line in (home / "classes.txt").read_text().splitlines()]
    strength = np.loadtxt(home / "predicate-matrix-continuous.txt")
    return {
        "X": StandardScaler().fit_transform(X) / np.sqrt(X.shape[1]),
        "category": np.loadtxt(home / "phog_first100perclass_labels.txt", dtype=int) - 1,
        "shares": np.where(strength < 0, np.nan, strength / 100),
        "binary": np.loadtxt(home / "predicate-matrix-binary.txt", dtype=int),
        "new": np.array([names.index(line.strip()) for line in (home / "testclasses.txt").read_text().splitlines()]),
    }


def models(**machine: float) -> dict[str, tuple[object, str]]:
    """Name → estimator, and which shares it gets; with the alternating machine where its parameters are given."""
    found: dict[str, tuple[object, str]] = {
        "binarised at the mean, linear SVM": (BinarizedAttributes("mean"), "shares"),
        "binarised at 1/2, linear SVM": (BinarizedAttributes(0.5), "shares"),
        "shares, by gradient": (AttributeModeler(ProportionClassifier(random_state=0)), "shares"),
        "shares of 0, 1/3, 2/3, 1, by gradient": (AttributeModeler(ProportionClassifier(random_state=0)), "levels"),
    }
    if machine and hasattr(mercer.proportions, "AlternatingProportionSVM"):
        learner = mercer.proportions.AlternatingProportionSVM(random_state=0, **machine)
        found["shares, alternating machine"] = (AttributeModeler(learner), "shares")
    return found


def mean_precision(scores: np.ndarray, truth: np.ndarray) -> tuple[float, int]:
    """Mean AP over the attributes that some rows have and some have not, and how many those are."""
    use = truth.any(axis=0) & ~truth.all(axis=0)
    found = [average_precision_score(truth[:, a], scores[:, a]) for a in np.flatnonzero(use)]
    return float(np.mean(found)), int(use.sum())


def awa(part: str, data: dict[str, np.ndarray]) -> None:
    category = data["category"]
    every, settings = 1, {}
    if part == "machine":  # features have length 1 or so, and C = 1 would leave the shares unheeded
        every, settings = 4, {"C": 100.0, "C_instance": 1.0, "n_init": 1, "step": 2.0}
    if part != "categories":
        held = np.random.default_rng(0).random(len(category)) < 0.5
        kept = np.arange(50)
    else:
        held = np.isin(category, data["new"])
        kept = np.setdiff1d(np.arange(50), data["new"])
    truth = data["binary"][category[held], ::every]
    chance, n = mean_precision(np.zeros(truth.shape), truth)
    print(f"\n{part}: {(~held).sum()} images to learn from, {held.sum()} to rank, {n} attributes\n")
    print("| method | mean AP | CPU s |\n|---|---|---|")
    print(f"| chance | {chance:.3f} | |")
    for name, (model, which) in models(**settings).items():
        shares = data["shares"][kept, ::every]
        shares = shares if which == "shares" else discretize_proportions(shares)
        begin = time.process_time()
        model.fit(data["X"][~held], category[~held], shares)
        taken = time.process_time() - begin
        found, _ = mean_precision(model.decision_function(data["X"][held]), truth)
        print(f"| {name} | {found:.3f} | {taken:.1f} |", flush=True)


def graded(seeds: int = 5) -> None:
    print(f"\ngraded: 20 generated categories of 60 images, shares in [0.2, 0.8], {seeds} seeds; a third held out\n")
    print("| method | mean AP |\n|---|---|")
    settings = {"C_instance": 1 / 40, "n_init": 2}
    for name in models(**settings):
        found = []
        for seed in range(seeds):
            task = make_attribute_categories(20, 60, random_state=seed)
            held = np.arange(len(task.X)) % 3 == 0
            model, which = models(**settings)[name]
            shares = task.proportions if which == "shares" else discretize_proportions(task.proportions)
            model.fit(task.X[~held], task.category[~held], shares)
            found.append(model.score(task.X[held], task.attributes[held]))
        print(f"| {name} | {np.mean(found):.3f} ± {np.std(found):.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=["graded", "images", "categories", "machine"])
    parts = parser.parse_args().parts
    warnings.simplefilter("ignore")
    if "graded" in parts:
        graded()
    rest = [part for part in parts if part != "graded"]
    home = os.environ.get("MERCER_DATA")
    if rest and home is None:
        print("\nMERCER_DATA is not set: the parts on Animals with Attributes are left out")
        return
    for part in rest:
        awa(part, load(Path(str(home)) / "awa"))


if __name__ == "__main__":
    main()
