"""Attributes of animals from shares of categories, and from shares made 0 or 1.

    MERCER_DATA=… python benchmarks/attributes_awa.py [--parts choose graded images categories machine]

Animals with Attributes: 4,992 images (PHOG, 252 features) of 50 categories, 85 attributes. The matrix
`predicate-matrix-continuous` holds strengths of association from 0 to 100, which are used as shares (−1, not known,
stays unknown). There are no labels of single images, so rankings are judged by the binary matrix of the category of
each image: truth at the level of classes, which favours what is trained on that very matrix. Parts:

    images       half of the images of all 50 categories held out
    categories   the 10 categories of the zero-shot split held out
    machine      as images, every fourth attribute, with the default of `AttributeModeler`, the alternating machine
                 (about half a second for each attribute)
    graded       generated categories with shares in [0.2, 0.8] and known attributes of single images
    choose       C of that default, on generated categories that graded does not show, and on images and categories
                 held out of the 40 categories of the zero-shot split that are not for testing
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
import warnings
from pathlib import Path

import numpy as np
from _timing import SMOKE, from_data, parse, sized
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import StandardScaler

from mercer.datasets import make_attribute_categories
from mercer.proportions import (
    AttributeModeler,
    BinarizedAttributes,
    MeanMap,
    ProportionClassifier,
    discretize_proportions,
)

SHAPE = sized((20, 60), (4, 9))  # categories, and images of each
CHOOSING = 100  # first seed of generated categories on which defaults are chosen


def load(home: Path) -> dict[str, np.ndarray]:
    """Features, categories, shares (NaN where not known), the binary matrix and the zero-shot split."""
    with gzip.open(home / "phog_first100perclass.npy.gz") as file:
        X = np.sqrt(np.load(file).astype(np.float64))
    some = slice(None, None, sized(1, 12))  # images
    names = [line.split()[1] for line in (home / "classes.txt").read_text().splitlines()]
    strength = np.loadtxt(home / "predicate-matrix-continuous.txt")
    return {
        "X": StandardScaler().fit_transform(X[some]) / np.sqrt(X.shape[1]),
        "category": np.loadtxt(home / "phog_first100perclass_labels.txt", dtype=int)[some] - 1,
        "shares": np.where(strength < 0, np.nan, strength / 100),
        "binary": np.loadtxt(home / "predicate-matrix-binary.txt", dtype=int),
        "new": np.array([names.index(line.strip()) for line in (home / "testclasses.txt").read_text().splitlines()]),
    }


def models(machine: bool) -> dict[str, tuple[object, str]]:
    """Name → estimator, and which shares it gets; the alternating machine takes longer."""
    found: dict[str, tuple[object, str]] = {
        "binarised at the mean, linear SVM": (BinarizedAttributes("mean"), "shares"),
        "binarised at 1/2, linear SVM": (BinarizedAttributes(0.5), "shares"),
        "shares, mean map": (AttributeModeler(MeanMap(alpha=0.01)), "shares"),
        "shares, by gradient": (AttributeModeler(ProportionClassifier(random_state=0)), "shares"),
        "shares of 0, 1/3, 2/3, 1, by gradient": (AttributeModeler(ProportionClassifier(random_state=0)), "levels"),
    }
    if machine:
        found["shares, alternating machine (default)"] = (AttributeModeler(random_state=0), "shares")
    return found


def mean_precision(scores: np.ndarray, truth: np.ndarray) -> tuple[float, int]:
    """Mean AP over the attributes that some rows have and some have not, and how many those are."""
    use = truth.any(axis=0) & ~truth.all(axis=0)
    found = [average_precision_score(truth[:, a], scores[:, a]) for a in np.flatnonzero(use)]
    return float(np.mean(found)), int(use.sum())


def awa(part: str, data: dict[str, np.ndarray]) -> None:
    category = data["category"]
    every = sized(4 if part == "machine" else 1, 40)
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
    for name, (model, which) in models(part == "machine").items():
        shares = data["shares"][kept, ::every]
        shares = shares if which == "shares" else discretize_proportions(shares)
        begin = time.process_time()
        model.fit(data["X"][~held], category[~held], shares)
        taken = time.process_time() - begin
        found, _ = mean_precision(model.decision_function(data["X"][held]), truth)
        print(f"| {name} | {found:.3f} | {taken:.1f} |", flush=True)


def graded(seeds: int = 5) -> None:
    title = "graded: {} generated categories of {} images".format(*SHAPE)
    print(f"\n{title}, shares in [0.2, 0.8], {seeds} seeds; a third held out\n")
    print("| method | mean AP |\n|---|---|")
    for name in models(True):
        found = []
        for seed in range(seeds):
            task = make_attribute_categories(*SHAPE, random_state=seed)
            held = np.arange(len(task.X)) % 3 == 0
            model, which = models(True)[name]
            shares = task.proportions if which == "shares" else discretize_proportions(task.proportions)
            model.fit(task.X[~held], task.category[~held], shares)
            found.append(model.score(task.X[held], task.attributes[held]))
        print(f"| {name} | {np.mean(found):.3f} ± {np.std(found):.3f} |", flush=True)


def choose(data: dict[str, np.ndarray] | None, seeds: int = 3) -> None:
    """Average precision of the default learner against C: generated, and images and categories of AwA held out."""
    print(f"\nchoose: generated categories, {seeds} seeds from {CHOOSING}; 40 categories of AwA, every 4th attribute\n")
    print("| model | generated | images | categories |\n|---|---|---|---|")
    tasks = [make_attribute_categories(*SHAPE, random_state=CHOOSING + seed) for seed in range(seeds)]
    candidates: dict[str, object] = {"binarised at the mean": BinarizedAttributes("mean")}
    candidates |= {"by gradient": AttributeModeler(ProportionClassifier(random_state=0))}
    candidates |= {f"default, C = {C:g}": AttributeModeler(C=C) for C in sized((1.0, 10.0, 100.0), (1.0,))}
    for name, model in candidates.items():
        cells = []
        for task in tasks:
            held = np.arange(len(task.X)) % 3 == 0
            model.fit(task.X[~held], task.category[~held], task.proportions)
            cells.append(model.score(task.X[held], task.attributes[held]))
        line = f"| {name} | {np.mean(cells):.3f} ± {np.std(cells):.3f} |"
        if data is not None:
            kept = np.setdiff1d(np.arange(50), data["new"])
            inside = np.isin(data["category"], kept)
            X, category = data["X"][inside], np.searchsorted(kept, data["category"][inside])
            shares, binary = data["shares"][kept, ::4], data["binary"][kept, ::4]
            by_image = np.random.default_rng(1).random(len(category)) < 0.5
            aside = np.random.default_rng(2).permutation(len(kept))[:8]
            for held, used in ((by_image, np.arange(len(kept))), (np.isin(category, aside), None)):
                used = np.setdiff1d(np.arange(len(kept)), aside) if used is None else used
                model.fit(X[~held], category[~held], shares[used])
                line += f" {mean_precision(model.decision_function(X[held]), binary[category[held]])[0]:.3f} |"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=["graded", "images", "categories", "machine"])
    parts = parse(parser, parts=["graded", "choose", "images"]).parts
    warnings.simplefilter("ignore")
    if "graded" in parts:
        graded(sized(5, 1))
    rest = [part for part in parts if part not in ("graded", "choose")]
    home = os.environ.get("MERCER_DATA")
    if "choose" in parts:
        choose(None if home is None or SMOKE else load(Path(home) / "awa"), sized(3, 1))
    if rest and home is None:
        print("\nMERCER_DATA is not set: the parts on Animals with Attributes are left out")
        return
    for part in rest:
        with from_data(part):
            awa(part, load(Path(str(home)) / "awa"))


if __name__ == "__main__":
    main()
