"""Label sets in the source's own measures: annotation of images, components of a latent space, functions of genes.

    python benchmarks/annotation.py [--tables annotation components genes correlations]

annotation    Corel5k: precision and recall of each label, averaged, and the F1 of the two averages; five labels a row
components    Corel5k: the same for kernel homogeneity analysis of 2,000 training rows, by its number of components
genes         yeast, two views (expression, phylogenetic profiles): 1 − ranking loss, five splits, by components too
correlations  how many pairs of labels are correlated, in all sets

Corel5k has 499 visual words here, which make one view, and the labels that occur in both parts count, as in the
literature: 260 of 374. Rows are of unit length, as in print. Constants are chosen by F1 (1 − ranking loss for
genes) on a quarter of the training rows (of 2,000 of them at most), which is kept aside once. Test rows are looked at
once.
"""

from __future__ import annotations

import argparse
import os
import warnings
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from _timing import from_data, parse, record, seconds, sized, spread
from sklearn.base import BaseEstimator, clone
from sklearn.preprocessing import StandardScaler, normalize

from mercer.datasets import load_multilabel
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.metrics import multilabel_scores, tag_score
from mercer.multilabel import (
    JointSVM,
    KernelHomogeneityAnalysis,
    LinearOutput,
    LogOddsOutput,
    OnlineJointSVM,
    PolynomialOutput,
    SeparateSVM,
)

TABLES = ("annotation", "components", "genes", "correlations")
SETS = ("flags", "emotions", "birds", "cal500", "medical", "genbase", "scene", "yeast", "corel5k", "tmc2007")
SHARES = (0.2, 0.4, 0.5, 0.6, 0.8)
CHOSEN = 2000  # training rows at most by which constants are chosen
LABELS = 5  # a row, as in print


def corel() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows of unit length and the labels that occur in both parts; with --smoke a small set."""
    train, test = (load_multilabel(sized("corel5k", "emotions"), part) for part in ("train", "test"))
    Y, truth = train.Y.toarray(), test.Y.toarray()
    both = np.flatnonzero(Y.any(axis=0) & truth.any(axis=0))
    X, Z = (normalize(part.X.toarray() if sp.issparse(part.X) else part.X) for part in (train, test))
    n = sized(10**9, 80)
    return X[:n], Y[:n, both], Z[:n], truth[:n, both]


def best_labels(scores: np.ndarray, k: int = LABELS) -> np.ndarray:
    """1 for the labels with the highest scores of each row."""
    P = np.zeros(scores.shape, int)
    np.put_along_axis(P, np.argsort(-scores, axis=1, kind="stable")[:, :k], 1, axis=1)
    return P


class Ridge(BaseEstimator):
    """Kernel ridge regression of the labels, the mean of the kernels of all views."""

    def __init__(self, kernels: Any = None, alpha: float = 0.1) -> None:
        self.kernels = kernels
        self.alpha = alpha

    def _parts(self, X: Any) -> list[Any]:
        views = X if isinstance(X, list) else [X]
        kernels = self.kernels if isinstance(self.kernels, list) else [self.kernels] * len(views)
        return list(zip(kernels, views, strict=True))

    def fit(self, X: Any, Y: np.ndarray) -> Ridge:
        self.parts_, self.shares_ = self._parts(X), Y.mean(axis=0)
        K = np.mean([np.asarray(kernel(view)) for kernel, view in self.parts_], axis=0)
        K[np.diag_indices_from(K)] += self.alpha
        self.coef_ = np.linalg.solve(K, Y - self.shares_)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        parts = zip(self._parts(X), self.parts_, strict=True)
        K = np.mean([np.asarray(kernel(view, known)) for (kernel, view), (_, known) in parts], axis=0)
        return K @ self.coef_ + self.shares_


def width(X: np.ndarray) -> float:
    """γ of a Gaussian as wide as the mean distance of two rows."""
    some = X[np.linspace(0, len(X) - 1, min(len(X), 500)).astype(int)]
    squares = (some**2).sum(axis=1)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * some @ some.T, 0.0))
    return 1.0 / (2.0 * (distances.sum() / (len(some) * (len(some) - 1))) ** 2)


def annotated(model: Any, X: Any, Y: np.ndarray) -> float:
    return tag_score(Y, best_labels(model.decision_function(X))).f1


def ranked(model: Any, X: Any, Y: np.ndarray) -> float:
    scores = model.decision_function(X)
    return 1.0 - multilabel_scores(Y, best_labels(scores), scores).ranking_loss


def taken(X: Any, rows: np.ndarray) -> Any:
    return [view[rows] for view in X] if isinstance(X, list) else X[rows]


def fitted(model: Any, grid: list[dict[str, Any]], X: Any, Y: np.ndarray, judge: Any) -> tuple[Any, float, dict]:
    """The model with the settings that are best on rows kept aside, its seconds of fit, and the settings."""
    grid = grid[: sized(None, 2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if len(grid) > 1:
            order = np.random.default_rng(0).permutation(len(Y))[:CHOSEN]
            out, kept = order[: len(order) // 4], order[len(order) // 4 :]
            values = [
                judge(clone(model).set_params(**settings).fit(taken(X, kept), Y[kept]), taken(X, out), Y[out])
                for settings in grid
            ]
            settings = grid[int(np.argmax(values))]
        else:
            settings = grid[0]
        model = clone(model).set_params(**settings)
        spent, _ = seconds(lambda: model.fit(X, Y))
    return model, spent, settings


# ---------------------------------------------------------------------------------------------------------- tables


def annotation(shares_only: bool = False, wanted: list[str] | None = None) -> None:
    """Table 4 of KGHA, tables 4 and 5 of the joint machine; or table 3 of KGHA."""
    X, Y, Z, truth = corel()
    if shares_only:
        some = np.random.default_rng(1).permutation(len(X))[:CHOSEN]
        X, Y = X[some], Y[some]
    g = width(X)
    gaussians = [Gaussian(g), Gaussian(2 * g)]
    ridges = (0.1, 0.3, 1.0)
    joint = [{"kernel": k, "C": C} for k in (*gaussians, Polynomial(2, coef0=1.0)) for C in (1.0, 10.0)]
    views = [{"kernels": gaussians[0], "alpha": r} for r in ridges]
    name, methods = "components", {
        f"{share:g}": (KernelHomogeneityAnalysis(share, decode="direct"), views) for share in SHARES
    }  # fmt: skip
    if not shares_only:
        name, methods = "annotation", {
            "joint SVM": (JointSVM(output_kernel=LinearOutput(), decode="direct"), joint),
            "joint SVM, log odds": (JointSVM(output_kernel=LogOddsOutput(), decode="direct"), joint),
            "joint SVM, polynomial 2": (JointSVM(output_kernel=PolynomialOutput(2)), joint),
            "joint SVM, polynomial 3": (JointSVM(output_kernel=PolynomialOutput(3)), joint),
            "joint SVM, online": (OnlineJointSVM(random_state=0), [{"margin": m} for m in (1.0, 5.0, 20.0)]),
            "linear ridge": (Ridge(Linear()), [{"alpha": r} for r in (0.1, 1.0, 10.0)]),
            "kernel ridge": (Ridge(), [{"kernels": gaussians[0], "alpha": r} for r in ridges]),
            "homogeneity analysis, linear": (
                KernelHomogeneityAnalysis(0.5, kernels=Linear(), decode="direct"),
                [{"alpha": r} for r in (0.1, 1.0, 10.0)],
            ),
            "KGHA-d": (KernelHomogeneityAnalysis(1.0, decode="direct"), views),
            "KGHA-r": (KernelHomogeneityAnalysis(0.5, C=1e-5, decode="direct"), views),
            "KGHA": (
                KernelHomogeneityAnalysis(decode="direct"),
                [{**own, "n_components": share} for share in (0.2, 0.5, 0.8) for own in views],
            ),
            "one linear machine a label": (SeparateSVM(), [{}]),
        }  # fmt: skip
    print(
        f"\n{name}: {len(Y):,} rows, {Y.shape[1]} labels\n| method | P | R | F1 | fit s | chosen |\n" + "|---" * 6 + "|"
    )
    for method, (model, grid) in methods.items():
        if wanted and not method.startswith(tuple(wanted)):
            continue
        model, spent, settings = fitted(model, grid, X, Y, annotated)
        found = tag_score(truth, best_labels(model.decision_function(Z)))
        values = {"P": 100 * found.precision, "R": 100 * found.recall, "F1": 100 * found.f1, "fit s": spent}
        shown = " | ".join(f"{value:.1f}" for value in values.values())
        print(f"| {method} | {shown} | {settings} |", flush=True)
        record(name, method, unit="", values=values)


def genes() -> None:
    """Tables 6 and 7 of KGHA: five splits into 60 % for training and the rest."""
    parts = [load_multilabel("yeast", part) for part in ("train", "test")]
    X, Y = np.vstack([part.X for part in parts]), np.vstack([part.Y.toarray() for part in parts])
    kept: dict[str, list[float]] = {}
    for split in range(sized(5, 1)):
        order = np.random.default_rng(split).permutation(len(X))[: sized(10**9, 120)]
        train, test = np.split(order, [int(0.6 * len(order))])
        scaled = StandardScaler().fit(X[train]).transform(X)
        views = [scaled[:, :79], scaled[:, 79:]]
        own, new = taken(views, train), taken(views, test)
        kernels = [Gaussian(width(view)) for view in own]
        grid = [{"alpha": r} for r in (0.1, 0.3, 1.0, 3.0)]
        methods = {
            f"KGHA, {share:g}": KernelHomogeneityAnalysis(share, kernels=kernels, decode="direct") for share in SHARES
        } | {
            "kernel ridge": Ridge(kernels),
            "KGHA-d": KernelHomogeneityAnalysis(1.0, kernels=kernels, decode="direct"),
            "KGHA-r": KernelHomogeneityAnalysis(0.5, C=1e-5, kernels=kernels, decode="direct"),
            "KGHA-d, expression alone": KernelHomogeneityAnalysis(1.0, kernels=kernels[:1], decode="direct"),
        }
        for method, model in methods.items():
            alone = method.endswith("alone")
            model, _, _ = fitted(model, grid, own[:1] if alone else own, Y[train], ranked)
            kept.setdefault(method, []).append(100 * ranked(model, new[:1] if alone else new, Y[test]))
    print("\ngenes\n| method | 1 − ranking loss, % |\n|---|---|")
    for method, values in kept.items():
        print(f"| {method} | {np.mean(values):.2f} ± {np.std(values):.2f} |", flush=True)
        record("genes", method, unit="", values={"1 − ranking loss, %": spread(values)})


def correlations() -> None:
    """The share of pairs of labels by the size of their correlation in the training rows."""
    edges = (0.05, 0.1, 0.2, 0.5)
    print(
        "\ncorrelations\n| set | pairs | "
        + " | ".join(f"above {e:g}" for e in edges)
        + " | median |\n"
        + "|---" * 7
        + "|"
    )
    for name in sized(SETS, ("emotions",)):
        with from_data(name):
            Y = load_multilabel(name).Y.toarray().astype(float)
            Y = Y[:, (Y.sum(axis=0) > 0) & (Y.sum(axis=0) < len(Y))]
            pairs = np.abs(np.corrcoef(Y.T)[np.triu_indices(Y.shape[1], 1)])
            values: dict[str, Any] = {"pairs": len(pairs)}
            values |= {f"above {e:g}, %": 100 * float((pairs > e).mean()) for e in edges}
            values["median"] = float(np.median(pairs))
            print(f"| {name} | " + " | ".join(f"{value:.3g}" for value in values.values()) + " |", flush=True)
            record("correlations", name, unit="", values=values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--methods", nargs="+", help="of annotation: those whose names begin so; default: all")
    options = parse(parser)
    for name in options.tables:
        with from_data(name):
            if name in ("annotation", "components"):
                annotation(name == "components", options.methods)
            else:
                globals()[name]()


if __name__ == "__main__":
    main()
