"""Every kind of estimator with its defaults beside the same one tuned by cross-validation, on three real sets each.

    python benchmarks/tuned.py [--parts taggers segmenters texts rows kernels machines proportions labels images noise]

Tuned is a search over the values in the table of this script by three folds of the training part (bags are cut whole);
the test part is looked at once. What a default loses against a tuned model is the last column, in points. Sets come
from the folder that MERCER_DATA names; those that are missing are left out and named.
"""

from __future__ import annotations

import argparse
import gzip
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _timing import from_data, parse, record, seconds, sized
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_svmlight_file, load_wine
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler

from mercer.classification import CompactClassifier, LinearClassifier, RelativeMarginSVC
from mercer.data import read_mulan
from mercer.datasets import load_basenp, load_conll2000, load_conll2002, load_r8, load_sms_spam, load_trec_questions
from mercer.kernel_methods import (
    KernelFisher,
    KernelNuSVC,
    KernelSVC,
    LinearProgramSVC,
    OnlineKernelClassifier,
)
from mercer.kernels import Gaussian
from mercer.labeling import GridLabeler
from mercer.metrics import make_span_scorer
from mercer.multilabel import HashedLabelSets, JointSVM, KernelHomogeneityAnalysis, NeighborLabels
from mercer.online import HashedClassifier
from mercer.proportions import (
    AlternatingProportionSVM,
    BagCV,
    InverseCalibration,
    MeanMap,
    ProportionClassifier,
    make_bags,
)
from mercer.segmentation import Segmenter
from mercer.tagging import Tagger

Split = tuple[Any, Any, Any, Any]
STRENGTHS = [0.01, 0.1, 1.0, 10.0]


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    args = parse(parser, parts=["rows"])
    warnings.simplefilter("ignore")
    print(f"{'estimator':26}{'set':24}{'default':>16}{'tuned':>16}{'lost':>8}  chosen", flush=True)
    for part in args.parts:
        PARTS[part]()


def compare(
    name: str,
    where: str,
    default: Callable[[], float],
    tuned: Callable[[], tuple[float, dict[str, Any]]],
) -> None:
    """Print and record the score of both."""
    first, score = seconds(default)
    second, (best, chosen) = seconds(tuned)
    lost = 100 * (best - score)
    said = ", ".join(f"{key}={value}" for key, value in chosen.items())
    values = {
        "default": {"value": round(100 * score, 1), "seconds": round(first, 2)},
        "tuned": {"value": round(100 * best, 1), "seconds": round(second, 2)},
        "lost": round(lost, 1),
        "chosen": said,
    }
    record("default and tuned, %", f"{name}: {where}", values=values)
    cells = f"{100 * score:.1f} ({first:.1f} s)", f"{100 * best:.1f} ({second:.1f} s)"
    print(f"{name:26}{where:24}{cells[0]:>16}{cells[1]:>16}{lost:>8.1f}  {said}", flush=True)


def search(name: str, where: str, model: Any, grid: Any, split: Split, scoring: Any = None) -> None:
    """Compare the default with the best of a grid."""
    X, y, X_test, y_test = split
    score = scoring or (lambda fitted, inputs, truth: fitted.score(inputs, truth))

    def tuned() -> tuple[float, dict[str, Any]]:
        found = GridSearchCV(model, grid, cv=3, scoring=scoring).fit(X, y)
        return score(found.best_estimator_, X_test, y_test), found.best_params_

    compare(name, where, lambda: score(clone(model).fit(X, y), X_test, y_test), tuned)


# --------------------------------------------------------------------------------------------------------- sequences


def window(sentence: list[tuple[str, ...]]) -> list[list[str]]:
    """Words and parts of speech around each token, its suffix and whether it is capital."""
    rows = []
    for i, (word, *_) in enumerate(sentence):
        names = [f"suffix={word[-3:]}", f"capital={word[:1].isupper()}"]
        for step in range(-2, 3):
            if 0 <= i + step < len(sentence):
                names += [f"w{step}={sentence[i + step][0].lower()}", f"p{step}={sentence[i + step][1]}"]
        rows.append(names)
    return rows


def corpora(n: int) -> Iterator[tuple[str, Split]]:
    """Tagging tasks of n training and n test sentences."""
    for name, load in (
        ("base NPs", lambda: load_basenp("train") + load_basenp("test")),
        ("CoNLL-2000", lambda: load_conll2000("train")),
        ("CoNLL-2002 Dutch", lambda: load_conll2002("ned", "train")),
    ):
        with from_data(name):
            sentences = load()
            order = np.random.default_rng(7).permutation(len(sentences))[: 2 * n]
            X = [window(sentences[i]) for i in order]
            y = [[_spelled(token[-1]) for token in sentences[i]] for i in order]
            yield name, (X[:n], y[:n], X[n:], y[n:])


def _spelled(tag: str) -> str:
    return {"B": "B-NP", "I": "I-NP"}.get(tag, tag)


def taggers() -> None:
    """Taggers: F1 of spans."""
    for name, split in corpora(sized(300, 20)):
        search("Tagger", name, Tagger(), {"C": [0.1, 1.0, 10.0]}, split, make_span_scorer())


def segmenters() -> None:
    """Segmenters: F1 of spans."""
    for name, split in corpora(sized(150, 20)):
        model = Segmenter(form="bio")
        search("Segmenter", name, model, {"C": [0.01, 0.1, 1.0]}, split, make_span_scorer())


# -------------------------------------------------------------------------------------------------------------- texts


def texts() -> None:
    """Texts: documents right."""
    for name, load in (("SMS", load_sms_spam), ("TREC questions", load_trec_questions), ("R8", load_r8)):
        with from_data(name):
            data = load()
            n = sized(3000, 200)
            X, X_test, y, y_test = train_test_split(data.texts, data.labels, test_size=0.5, random_state=7)
            grid = {"passes": [1, 4], "learning_rate": [0.5, 2.5], "counts": ["sqrt", "linear"]}
            search(
                "HashedClassifier", name, HashedClassifier(random_state=0), grid, (X[:n], y[:n], X_test[:n], y_test[:n])
            )


# --------------------------------------------------------------------------------------------------------------- rows


def columns() -> Iterator[tuple[str, Split]]:
    """Sets of rows, standardised on the training part."""
    built_in = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}
    for name, load in built_in.items():
        yield name, _standard(*load(return_X_y=True))


def _standard(X: np.ndarray, y: np.ndarray) -> Split:
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=7, stratify=y)
    scale = StandardScaler().fit(X)
    return scale.transform(X), y, scale.transform(X_test), y_test


def rows() -> None:
    """Linear classifiers: rows right."""
    for name, split in columns():
        for loss in ("log", "hinge"):
            search(f"LinearClassifier, {loss}", name, LinearClassifier(loss), {"C": STRENGTHS}, split)


def kernels() -> None:
    """Kernel machines: rows right."""
    for name, split in columns():
        d = split[0].shape[1]
        grid = {"C": [1.0, 10.0, 100.0], "kernel": [Gaussian(factor / d) for factor in (0.1, 0.3, 1.0)]}
        search("KernelSVC", name, KernelSVC(), grid, split)


def machines() -> None:
    """Other machines and classifiers over rows: rows right."""
    models: dict[str, tuple[Any, dict[str, list[Any]]]] = {
        "KernelNuSVC": (KernelNuSVC(), {"nu": [0.05, 0.1, 0.2, 0.5]}),
        "LinearProgramSVC": (LinearProgramSVC(), {"C": [0.1, 1.0, 10.0]}),
        "RelativeMarginSVC": (RelativeMarginSVC(), {"C": [1.0, 10.0], "B": [1.5, 2.0, 4.0]}),
        "OnlineKernelClassifier": (OnlineKernelClassifier(random_state=0), {"n_epochs": [3, 10, 30]}),
        "CompactClassifier": (CompactClassifier(random_state=0), {"n_components": [16, 32, 64]}),
    }
    for name, split in columns():
        fisher = KernelFisher(Gaussian(1 / split[0].shape[1])), {"regularization": [1e-4, 1e-3, 1e-2, 1e-1]}
        for title, (model, grid) in {**models, "KernelFisher": fisher}.items():
            n = 300 if title == "LinearProgramSVC" else None  # of 45 linear programs the digits have
            search(title, name, model, grid, (split[0][:n], split[1][:n], *split[2:]))


# -------------------------------------------------------------------------------------------------------- label sets


def labels() -> None:
    """Label sets: micro-F1."""
    models: dict[str, tuple[Any, dict[str, list[Any]]]] = {
        "KernelHomogeneityAnalysis": (KernelHomogeneityAnalysis(), {"ridge": [0.01, 0.1, 1.0]}),
        "JointSVM": (JointSVM(), {"C": [0.1, 1.0, 10.0]}),
        "NeighborLabels": (NeighborLabels(), {"n_neighbors": [5, 10, 20]}),
        "HashedLabelSets": (HashedLabelSets(random_state=0), {"rate": [0.2, 0.5, 1.0], "n_epochs": [3, 10]}),
    }
    home = Path(os.environ.get("MERCER_DATA", ".")) / "multilabel"
    for name in ("emotions", "flags", "birds"):
        with from_data(name):
            split = []
            for part in ("train", "test"):
                table = read_mulan(home / name / f"{name}-{part}.arff", home / name / f"{name}.xml")
                X = table.X.toarray() if hasattr(table.X, "toarray") else table.X
                split += [np.asarray(X, float), table.Y.toarray()]
            scale = StandardScaler().fit(split[0])
            split[0], split[2] = scale.transform(split[0]), scale.transform(split[2])
            for title, (model, grid) in models.items():
                search(title, name, model, grid, tuple(split), micro_f1)  # type: ignore[arg-type]


def micro_f1(model: Any, X: Any, y: Any) -> float:
    """Share of labels that are right, as `multilabel_scores` counts it."""
    given = model.predict(X)
    given = given.toarray() if hasattr(given, "toarray") else np.asarray(given)
    return float(2 * (given * y).sum() / max(1, given.sum() + y.sum()))


# -------------------------------------------------------------------------------------------------------- proportions


def two_classes() -> Iterator[tuple[str, Split]]:
    """Sets of two classes from the folder of public data."""
    home = Path(os.environ.get("MERCER_DATA", "."))
    yield "breast cancer", _standard(*load_breast_cancer(return_X_y=True))
    for name, file in (("heart", "heart_scale"), ("diabetes", "diabetes_scale.svm")):
        with from_data(name):
            X, y = load_svmlight_file(str(home / "libsvm" / file))
            yield name, _standard(X.toarray(), (y > 0).astype(int))


def proportions() -> None:
    """Label proportions: rows right, from bags of 16 random rows; tuned on held-out bags, without labels."""
    models: dict[str, tuple[Any, dict[str, list[Any]]]] = {
        "MeanMap": (MeanMap(), {"alpha": STRENGTHS}),
        "InverseCalibration": (InverseCalibration(), {"C": STRENGTHS}),
        "AlternatingProportionSVM": (AlternatingProportionSVM(random_state=0), {"C": STRENGTHS}),
        "ProportionClassifier": (ProportionClassifier(random_state=0), {"alpha": [1e-4, 1e-3, 1e-2]}),
    }
    for name, (X, y, X_test, y_test) in two_classes():
        bags = make_bags(y, 16, random_state=7)
        for title, (model, grid) in models.items():
            compare(
                title,
                name,
                lambda m=model, X=X, b=bags, new=(X_test, y_test): float(clone(m).fit(X, bags=b).score(*new)),
                lambda m=model, g=grid, X=X, b=bags, new=(X_test, y_test): _by_bags(m, g, X, b, new),
            )


def _by_bags(model: Any, grid: Any, X: Any, bags: Any, new: tuple[Any, Any]) -> tuple[float, dict[str, Any]]:
    found = BagCV(model, grid, cv=3, random_state=0).fit(X, bags=bags)
    return float(found.score(*new)), found.best_params_


# ------------------------------------------------------------------------------------------------------------- images


def images() -> None:
    """Images of horses, a quarter of the side: pixels right."""
    with from_data("horses"):
        from defaults import horses, quartered

        X, y = quartered(*horses(sized(24, 6)))
        n = len(X) // 2
        search("GridLabeler", "horses", GridLabeler(), {"block": [1, 2, 4]}, (X[:n], y[:n], X[n:], y[n:]))


def noise() -> None:
    """Strokes of digits and outlines of clothes under noise: pixels right."""
    home = Path(os.environ.get("MERCER_DATA", "."))
    sources = (
        ("noisy digits", home / "mnist" / "t10k-images-idx3-ubyte.gz"),
        ("noisy clothes", home / "fashion-mnist" / "t10k-images-idx3-ubyte.gz"),
    )
    for name, file in sources:
        with from_data(name):
            n = sized(12, 4)
            rng = np.random.default_rng(7)
            with gzip.open(file) as stream:
                grey = np.frombuffer(stream.read(16 + 784 * 2 * n), np.uint8)[16:].reshape(2 * n, 28, 28)
            y = list((grey > 127).astype(int))
            X = list(np.clip(grey + rng.normal(0, 100, grey.shape), 0, 255))
            search("GridLabeler", name, GridLabeler(), {"block": [1, 2, 4]}, (X[:n], y[:n], X[n:], y[n:]))


PARTS: dict[str, Callable[[], None]] = {
    "taggers": taggers,
    "segmenters": segmenters,
    "texts": texts,
    "rows": rows,
    "kernels": kernels,
    "machines": machines,
    "labels": labels,
    "proportions": proportions,
    "images": images,
    "noise": noise,
}

if __name__ == "__main__":
    main()
