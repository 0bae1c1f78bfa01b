"""Label sets beside scikit-learn, scikit-multilearn-ng, napkinXC and prince: time, and scores on Mulan's data sets.

    python benchmarks/multilabel.py [--tables joint linear neighbours homogeneity views files scores] [--sets scene …]

joint        one joint machine against one SVC a label, Gaussian kernel of the same width, C = 1
linear       one linear machine a label against OneVsRest(LinearSVC), the objective of both (scikit-learn's also
             regularises the offset); napkinXC's binary relevance with its F1
neighbours   nearest neighbours against MLkNN
homogeneity  multiple correspondence analysis against prince, and a table of a million rows
views        exact and blocked kernel homogeneity analysis: growth with the rows
files        `HashedLabelSets` from files, by the number of labels
scores       micro-F1, macro-F1, subset accuracy, Hamming loss and ranking loss of all methods

Dense features are standardised on the training rows, features of 0 and 1 are left alone. Constants are chosen by
three-fold cross-validation of micro-F1 on the training rows, for ours and for peers, from the grids below; test rows
are looked at once. cal500 has no split: its first 335 rows are for training.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
import warnings
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from _timing import Row, exponent, from_data, measured, missing, parse, peer, record, seconds, sized, table
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from mercer.data import Sequences
from mercer.datasets import load_multilabel
from mercer.kernels import Gaussian
from mercer.learning import Penalty, Risk, resolve_loss, resolve_solver
from mercer.learning.monitor import Monitor
from mercer.metrics import multilabel_scores
from mercer.multilabel import (
    CompressedLabels,
    HashedLabelSets,
    HomogeneityAnalysis,
    JointSVM,
    KernelHomogeneityAnalysis,
    LinearOutput,
    LogOddsOutput,
    NeighborLabels,
    OnlineJointSVM,
    PolynomialOutput,
    SeparateSVM,
)
from mercer.structures import LabelSets, dependent_pairs

SETS = ("flags", "emotions", "birds", "cal500", "medical", "genbase", "scene", "yeast", "corel5k", "tmc2007")
SPARSE = ("medical", "genbase", "corel5k", "tmc2007")
TABLES = ("joint", "linear", "neighbours", "homogeneity", "views", "files", "scores")
NAN = float("nan")


def data(name: str) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Training rows and labels, test rows and labels."""
    train, test = load_multilabel(name), load_multilabel(name, "test")
    X, Z = train.X, test.X
    if name in SPARSE:
        X, Z = sp.csr_matrix(X), sp.csr_matrix(Z)
    else:
        scaler = StandardScaler().fit(X)
        X, Z = scaler.transform(X), scaler.transform(Z)
    n = sized(10**9, 80)
    return X[:n], train.Y.toarray()[:n], Z[:n], test.Y.toarray()[:n]


def scale(X: Any) -> float:
    """γ of scikit-learn's "scale"."""
    dense = X.toarray() if sp.issparse(X) else X
    return 1.0 / (dense.shape[1] * dense.var())


# ---------------------------------------------------------------------------------------------------------- speed


def varied(Y: np.ndarray) -> list[int]:
    """Labels of both classes: one SVC needs them."""
    return [t for t in range(Y.shape[1]) if 0 < Y[:, t].sum() < len(Y)]


def joint(names: list[str], repeats: int) -> None:
    """One joint machine, one SVC a label: fit and predict."""

    def rows() -> Any:
        for name in names:
            X, Y, Z, _ = data(name)
            gamma, labels, single = scale(X), varied(Y), X.astype(np.float32)

            def separate(X: Any = X, Y: np.ndarray = Y, gamma: float = gamma, labels: list[int] = labels) -> list[SVC]:
                return [SVC(C=1.0, gamma=gamma).fit(X, Y[:, t]) for t in labels]

            fitted = measured(
                repeats,
                {
                    "peer": separate,
                    "ours": lambda X=X, Y=Y, gamma=gamma: JointSVM(kernel=Gaussian(gamma)).fit(X, Y),
                    "matrix": lambda X=single, gamma=gamma: Gaussian(gamma)(X),
                },
            )
            machines, model = fitted["peer"][1], fitted["ours"][1]
            answered = measured(
                repeats,
                {
                    "peer": lambda Z=Z, machines=machines: [machine.predict(Z) for machine in machines],
                    "ours": lambda Z=Z, model=model: model.predict(Z),
                },
            )
            size = f"{X.shape[0]:,} × {X.shape[1]}, {Y.shape[1]} labels"
            theirs, ours = fitted["peer"][0], fitted["ours"][0]
            yield Row(f"{name} ({size}): fit", "sklearn SVC a label", theirs, ours, "≥ 20x", 20.0)
            alone = fitted["matrix"][0]
            yield Row(f"{name}: of this the kernel matrix", "sklearn SVC a label", theirs, alone)
            theirs, ours = answered["peer"][0], answered["ours"][0]
            yield Row(f"{name}: predict", "sklearn SVC a label", theirs, ours, "≥ 10x", 10.0)

    table(rows(), "joint")


def objective_of(X: Any, Y: np.ndarray, W: np.ndarray, b: np.ndarray, C: float) -> float:
    margins = (2.0 * Y - 1.0) * (np.asarray(X @ W.T) + b)
    return float(0.5 * (W**2).sum() + C * (np.maximum(0, 1 - margins) ** 2).sum())


def one_each(model: OneVsRestClassifier, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights and offsets of scikit-learn's machines; labels of one class have none."""
    d = next(one.coef_.shape[1] for one in model.estimators_ if hasattr(one, "coef_"))
    W, b = np.zeros((Y.shape[1], d)), 2.0 * Y[0] - 1.0
    for t, one in enumerate(model.estimators_):
        if hasattr(one, "coef_"):
            W[t], b[t] = one.coef_[0], one.intercept_[0]
    return W, b


def linear(names: list[str], repeats: int) -> None:
    """One linear machine a label, squared hinge loss, all defaults but C."""
    napkin = peer("napkinxc")

    def rows() -> Any:
        for name in names:
            X, Y, Z, truth = data(name)
            X, Z = sp.csr_matrix(X), sp.csr_matrix(Z)

            for C in (0.1, 1.0):
                one = OneVsRestClassifier(LinearSVC(C=C))
                own = SeparateSVM(C, threshold=None)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    done = measured(
                        repeats,
                        {"peer": lambda X=X, Y=Y, m=one: m.fit(X, Y), "ours": lambda X=X, Y=Y, m=own: m.fit(X, Y)},
                    )
                model = done["ours"][1]
                ours = objective_of(X, Y, model.coef_, model.intercept_, C)
                other = objective_of(X, Y, *one_each(done["peer"][1], Y), C)
                note = f"objective {ours:.6g} against {other:.6g}"
                yield Row(f"{name}: one machine a label, C = {C:g}", "sklearn OneVsRest(LinearSVC)", done["peer"][0],
                          done["ours"][0], "≥ 3x", 3.0, note=note)  # fmt: skip
            spent, f1 = napkin_relevance(napkin, X, Y, Z, truth)
            for own, shown in (
                (HashedLabelSets(20, random_state=0), "HashedLabelSets"),
                (SeparateSVM(1.0, threshold=None), "SeparateSVM, C = 1, no thresholds"),
            ):
                taken, model = measured(repeats, {"ours": lambda X=X, Y=Y, m=own: m.fit(X, Y)})["ours"]
                ours = multilabel_scores(truth, model.predict(Z)).micro_f1
                note = f"micro-F1 {100 * ours:.1f} against {100 * f1:.1f}"
                yield Row(f"{name}: {shown}", "napkinXC BR" if napkin else "napkinxc", spent, taken,
                          "≤ 1.2 its time", 1 / 1.2, note=note)  # fmt: skip

    table(rows(), "linear")


def napkin_relevance(napkin: Any, X: Any, Y: np.ndarray, Z: Any, truth: np.ndarray) -> tuple[float, float]:
    """Seconds of training and micro-F1 of binary relevance at its own probability of a half."""
    if napkin is None:
        return NAN, NAN
    from napkinxc.models import BR

    sets = [np.flatnonzero(row).tolist() for row in Y]
    with tempfile.TemporaryDirectory() as folder:
        model = BR(folder, threads=1, verbose=0)
        spent, _ = seconds(lambda: model.fit(X, sets))
        predicted = model.predict(Z, threshold=0.5)
    P = np.zeros_like(truth)
    for row, labels in zip(P, predicted, strict=True):
        row[list(labels)] = 1
    return spent, multilabel_scores(truth, P).micro_f1


def neighbours(names: list[str]) -> None:
    """Nearest neighbours: fit of both, which looks for the neighbours of the training rows."""
    absent = missing("skmultilearn")

    def rows() -> Any:
        for name in names:
            X, Y, Z, truth = data(name)
            spent, model = seconds(lambda X=X, Y=Y: NeighborLabels(10).fit(X, Y))
            f1 = multilabel_scores(truth, model.predict(Z)).micro_f1
            theirs, other = NAN, NAN
            if not absent:
                theirs, their_model = seconds(lambda X=X, Y=Y: mlknn().fit(sp.csr_matrix(X), sp.csr_matrix(Y)))
                other = multilabel_scores(truth, their_model.predict(sp.csr_matrix(Z)).toarray()).micro_f1
            note = f"micro-F1 {100 * f1:.1f} against {100 * other:.1f}"
            yield Row(f"{name}: fit", "scikit-multilearn-ng MLkNN", theirs, spent, "≥ 20x", 20.0, note=note)

    table(rows(), "neighbours")


def mlknn() -> Any:
    from skmultilearn.adapt import MLkNN

    return MLkNN(k=10)


def homogeneity(repeats: int) -> None:
    """Tables of categories."""
    prince = peer("prince")
    n, J = sized((100_000, 20), (500, 4))
    rng = np.random.default_rng(0)
    codes = np.minimum(rng.geometric(0.3, (n, J)), 8)
    codes[:, 1] = np.where(rng.random(n) < 0.7, codes[:, 0], codes[:, 1])

    def rows() -> Any:
        import pandas as pd

        frame = pd.DataFrame({f"c{j}": pd.Categorical([f"v{v}" for v in codes[:, j]]) for j in range(J)})
        ours = measured(repeats, {"ours": lambda: HomogeneityAnalysis(3).fit(frame)})["ours"]
        theirs, note = NAN, ""
        if prince is not None:
            text = frame.astype(str)
            theirs, model = seconds(lambda: prince.MCA(n_components=3).fit(text))
            spent, _ = seconds(lambda: model.row_coordinates(text))
            theirs += spent
            apart = np.abs(np.asarray(model.eigenvalues_) - ours[1].eigenvalues_).max()
            note = f"eigenvalues differ by {apart:.1e}"
        yield Row(f"{n:,} × {J}, three components with row scores", "prince", theirs, ours[0], "≥ 10x", 10.0, note=note)
        n2, J2 = sized((1_200_000, 37), (2000, 5))
        large = np.random.default_rng(1).integers(0, 6, (n2, J2)).astype(np.int8)
        large[:, 1:][large[:, 1:] == 5] = -1  # about a sixth is missing
        spent, _ = seconds(lambda: HomogeneityAnalysis(3).fit(large))
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        yield Row(f"{n2:,} × {J2}, a sixth missing", "", NAN, spent, "< 2 GB", reached=used < 2,
                  note=f"{used:.2f} GB at most, all tables before included")  # fmt: skip

    table(rows(), "homogeneity")


def files() -> None:
    """Time of an example of `HashedLabelSets` by the number of labels: rows with three labels and 30 features."""
    rng = np.random.default_rng(0)
    n, sizes, times = sized(20_000, 300), (1000, 10_000, 30_000), []
    print("| labels | µs an example, learned | µs an example, predicted |\n|---|---|---|")
    for T in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.svm")
            with open(path, "w") as file:
                for _ in range(n):
                    labels = np.minimum((T * rng.random(3) ** 2).astype(int), T - 1)
                    columns = np.unique(np.concatenate([labels % 50_000, rng.integers(0, 50_000, 27)]))
                    file.write(",".join(map(str, labels)) + " " + " ".join(f"{j + 1}:1" for j in columns) + "\n")
            spent, model = seconds(lambda path=path: HashedLabelSets(22, 1).fit_file(path, "svmlight"))
            asked, _ = seconds(lambda path=path, model=model: model.predict_file(path, format="svmlight", n_labels=5))
        times.append(spent)
        print(f"| {T:,} | {1e6 * spent / n:.1f} | {1e6 * asked / n:.1f} |", flush=True)
        record(
            "files", f"{T:,} labels", values={"learned": 1e6 * spent / n, "predicted": 1e6 * asked / n}, sizes=f"{n:,}"
        )
    print(f"learning: time ~ labels^{exponent(sizes, times):.2f}")


def views() -> None:
    """Kernel homogeneity analysis: the exact matrices at one size, blocks at several."""

    def task(n: int) -> tuple[list[np.ndarray], np.ndarray]:
        rng = np.random.default_rng(n)
        Z = rng.normal(size=(n, 6))
        Y = (Z @ np.random.default_rng(1).normal(size=(6, 20)) > 1).astype(int)
        return [np.tanh(Z @ np.random.default_rng(j + 2).normal(size=(6, 10))) for j in range(3)], Y

    def rows() -> Any:
        n = sized(5000, 200)
        X, Y = task(n)
        spent, _ = seconds(lambda: KernelHomogeneityAnalysis(10).fit(X, Y))
        yield Row(f"exact, {n:,} × 3 views", "", NAN, spent)
        sizes, times = sized([12_500, 25_000, 50_000], [200, 400]), []
        for size in sizes:
            X, Y = task(size)
            make = KernelHomogeneityAnalysis(10, approx="meka", random_state=0)
            spent, _ = seconds(lambda X=X, Y=Y, make=make: make.fit(X, Y))
            times.append(spent)
            used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            whole = 3 * 8 * size**2 / 2**30
            note = f"{used:.2f} GB at most, all fits before included; three matrices are {whole:.1f} GB"
            yield Row(f"blocks, {size:,} × 3 views", "", NAN, spent, note=note)
        grown = exponent(sizes, times)
        print(f"blocks: time ~ n^{grown:.2f}")
        record("views", "growth of blocks with the rows", values={"exponent": grown})

    table(rows(), "views")


# --------------------------------------------------------------------------------------------------------- scores


class Powerset(BaseEstimator):
    """A classifier whose classes are the label sets of training."""

    def __init__(self, C: float = 10.0, gamma: float = 1.0) -> None:
        self.C = C
        self.gamma = gamma

    def fit(self, X: Any, Y: np.ndarray) -> Powerset:
        self.sets_, kind = np.unique(Y, axis=0, return_inverse=True)
        self.machine_ = SVC(C=self.C, gamma=self.gamma).fit(X, kind.ravel())
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.sets_[self.machine_.predict(X)]


class Relevance(BaseEstimator):
    """One machine a label; labels of one class are constant."""

    def __init__(self, kind: str = "linear", C: float = 1.0, gamma: float = 1.0) -> None:
        self.kind = kind
        self.C = C
        self.gamma = gamma

    def fit(self, X: Any, Y: np.ndarray) -> Relevance:
        one = LinearSVC(C=self.C, max_iter=5000) if self.kind == "linear" else SVC(C=self.C, gamma=self.gamma)
        self.model_ = OneVsRestClassifier(one).fit(X, Y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.model_.predict(X)

    def decision_function(self, X: Any) -> np.ndarray:
        return self.model_.decision_function(X)


def methods(X: Any, n: int, T: int) -> dict[str, tuple[Any, list[dict[str, Any]]]]:
    """Methods and the settings among which cross-validation chooses."""
    gamma = scale(X)
    widths = [gamma, 4 * gamma] if n <= 3000 else [gamma]
    kernels = [Gaussian(width) for width in widths]
    exact = n <= 5000
    all_of: dict[str, tuple[Any, list[dict[str, Any]]]] = {}
    grid = [{"kernel": k, "C": C} for k in kernels for C in (1.0, 10.0)] if exact else [{"kernel": kernels[0]}]
    for name, output in (
        ("JointSVM", LinearOutput()),
        ("JointSVM, 2y − 1", LinearOutput(code="signs")),
        ("JointSVM, polynomial", PolynomialOutput()),
        ("JointSVM, log odds", LogOddsOutput()),
    ):
        all_of[name] = JointSVM(output_kernel=output), grid
    if exact:
        wide = [gamma / 2, gamma, 2 * gamma] if n <= 3000 else [gamma]
        views = [{"kernels": Gaussian(g), "alpha": r} for g in wide for r in (0.1, 0.3, 1.0)] if n <= 3000 else [{}]
        all_of["KernelHomogeneityAnalysis"] = KernelHomogeneityAnalysis(), views
        all_of["KernelHomogeneityAnalysis, for sets"] = KernelHomogeneityAnalysis(measure="subset"), views
    else:
        dense = {"approx": "meka", "random_state": 0}
        all_of["KernelHomogeneityAnalysis, blocks"] = KernelHomogeneityAnalysis(**dense), [{}]
    all_of["HashedLabelSets"] = HashedLabelSets(20, random_state=0), [{"max_iter": e} for e in (3, 10)]
    all_of["SeparateSVM"] = SeparateSVM(), [{}]
    all_of["OnlineJointSVM"] = OnlineJointSVM(random_state=0), [{"margin": m} for m in (1.0, 5.0, 20.0)]
    all_of["CompressedLabels"] = CompressedLabels(random_state=0), [{"alpha": a} for a in (0.1, 1.0, 10.0)]
    all_of["NeighborLabels"] = NeighborLabels(), [{"n_neighbors": k} for k in (10, 30)]
    all_of.update(label_set_fields(n, T))
    all_of["one LinearSVC a label"] = Relevance(), [{"C": C} for C in (0.01, 0.1, 1.0)]
    if exact:
        grid = [{"gamma": g, "C": C} for g in widths for C in (1.0, 10.0)]
        all_of["one SVC a label"] = Relevance("gaussian", 10.0, gamma), grid if n <= 2000 else [{}]
        if n <= 3000:  # one machine for each pair of thousands of label sets
            all_of["powerset SVC"] = Powerset(10.0, gamma), grid if n <= 2000 else [{}]
    all_of["chain of logistic regressions"] = ClassifierChain(LogisticRegression(max_iter=500)), [{}]
    return all_of


class PairwiseField(BaseEstimator):
    """`LabelSets` linear in the features, with a weight for each pair of up to 8 labels, else for those of the tree of
    the most dependent ones, on which sums are exact too."""

    def __init__(self, loss: str = "log", C: float = 1.0) -> None:
        self.loss = loss
        self.C = C

    def _inputs(self, X: Any) -> Sequences:
        ones = np.ones((X.shape[0], 1))
        rows = sp.csr_matrix(sp.hstack([X, ones])) if sp.issparse(X) else np.hstack([X, ones])
        return Sequences(rows, np.arange(X.shape[0] + 1))

    def fit(self, X: Any, Y: np.ndarray) -> PairwiseField:
        inputs = self._inputs(X)
        pairs: Any = "all" if Y.shape[1] <= 8 else dependent_pairs(Y)
        self.structure_ = LabelSets(Y.shape[1], inputs.n_features, pairs)
        risk, penalty = Risk(self.structure_, resolve_loss(self.loss), inputs, Y.astype(np.int8)), Penalty()
        settings = {"max_iter": 200, "tol": 1e-3, "monitor": Monitor(), "random_state": 0}
        solver = resolve_solver("auto", risk.loss, penalty)
        self.w_ = solver.minimize(risk, penalty, self.C, np.zeros(risk.n_weights), **settings).w
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.structure_.argmax(self.structure_.scores(self.w_, self._inputs(X)))[0]

    def decision_function(self, X: Any) -> np.ndarray:
        return self.structure_.marginals(self.structure_.scores(self.w_, self._inputs(X))).labels


def label_set_fields(n: int, T: int) -> dict[str, tuple[Any, list[dict[str, Any]]]]:
    """Models with pairwise dependence of labels."""
    small = n * T <= 60_000
    log = [{"C": C} for C in (0.001, 0.01, 0.1, 1.0)] if small else [{}]
    hinge = [{"C": C} for C in (0.01, 0.1)] if small else [{"C": 0.01}]
    fields: dict[str, tuple[Any, list[dict[str, Any]]]] = {"LabelSets, log": (PairwiseField("log", 0.1), log)}
    if n * T <= 500_000:  # with the 374 labels of corel5k training takes the better part of an hour
        fields["LabelSets, hinge"] = PairwiseField("hinge", 0.1), hinge
    return fields


def chosen(model: Any, grid: list[dict[str, Any]], X: Any, Y: np.ndarray) -> Any:
    """The settings with the best mean micro-F1 of three folds."""
    if len(grid) == 1:
        return clone(model).set_params(**grid[0])
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    values = []
    for settings in grid:
        kept = []
        for train, held_out in folds:
            fitted = clone(model).set_params(**settings).fit(X[train], Y[train])
            kept.append(multilabel_scores(Y[held_out], fitted.predict(X[held_out])))
        measure = "subset_accuracy" if getattr(model, "measure", "") == "subset" else "micro_f1"
        values.append(np.mean([getattr(score, measure) for score in kept]))
    return clone(model).set_params(**grid[int(np.argmax(values))])


def ranking_scores(model: Any, Z: Any) -> Any:
    for verb in ("predict_proba", "decision_function"):
        if hasattr(model, verb):
            try:
                return np.asarray(getattr(model, verb)(Z), float)
            except (AttributeError, ValueError):
                continue
    return None


def scores(names: list[str], chosen_methods: list[str] | None) -> None:
    """All methods on all sets, or those named, or whose names begin as given; what a method cannot do is said."""
    print(
        "| set | method | micro-F1 | macro-F1 | subset | Hamming | ranking loss | fit s |\n|" + "---|" * 8, flush=True
    )
    for name in names:
        with from_data(name):
            X, Y, Z, truth = data(name)
            known = methods(X, *Y.shape)
            begun = tuple(name for name in chosen_methods or () if name not in known)
            for number, (method, (model, grid)) in enumerate(known.items()):
                grid = grid[: sized(None, 2 if number == 0 else 1)]
                if chosen_methods and method not in chosen_methods and not method.startswith(begun):
                    continue
                dense = method.startswith("KernelHomogeneityAnalysis, blocks")
                A, B = (X.toarray(), Z.toarray()) if dense and sp.issparse(X) else (X, Z)
                one_score(name, method, model, grid, A, Y, B, truth)
            if (not chosen_methods or "MLkNN" in chosen_methods) and not missing("skmultilearn"):
                one_score(name, "MLkNN", MLkNNPeer(), [{}], X, Y, Z, truth)


class MLkNNPeer(BaseEstimator):
    """scikit-multilearn-ng's, with arrays in and out."""

    def fit(self, X: Any, Y: np.ndarray) -> MLkNNPeer:
        self.model_ = mlknn().fit(sp.csr_matrix(X), sp.csr_matrix(Y))
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.model_.predict(sp.csr_matrix(X)).toarray()

    def decision_function(self, X: Any) -> np.ndarray:
        return self.model_.predict_proba(sp.csr_matrix(X)).toarray()


def one_score(
    name: str, method: str, model: Any, grid: list[dict[str, Any]], X: Any, Y: np.ndarray, Z: Any, truth: np.ndarray
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = chosen(model, grid, X, Y)
            spent, fitted = seconds(lambda: model.fit(X, Y))
            found = multilabel_scores(
                truth, np.asarray(_dense(fitted.predict(Z))).astype(int), ranking_scores(fitted, Z)
            )
        except Exception as error:
            print(f"| {name} | {method} | fails: {str(error).splitlines()[0][:70]} | | | | | |", flush=True)
            record("scores", f"{name}, {method}", values={"micro-F1": "fails"})
            return
    cells = [
        100 * found.micro_f1, 100 * found.macro_f1, 100 * found.subset_accuracy, found.hamming_loss, found.ranking_loss,
    ]  # fmt: skip
    titles = ("micro-F1", "macro-F1", "subset", "Hamming", "ranking loss")
    shown = [f"{c:.1f}" for c in cells[:3]] + [f"{c:.4f}" for c in cells[3:]]
    print(f"| {name} | {method} | {' | '.join(shown)} | {spent:.3g} |", flush=True)
    values = dict(zip(titles, (round(c, 4) for c in cells), strict=True)) | {"fit s": spent}
    record("scores", f"{name}, {method}", values=values)


def _dense(Y: Any) -> Any:
    return Y.toarray() if sp.issparse(Y) else Y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--methods", nargs="+", help="of the scores: by name or its beginning; default: all")
    parser.add_argument("--repeats", type=int, default=3)
    options = parse(parser, sets=["flags"], repeats=1)
    start = time.time()
    if "joint" in options.tables:
        with from_data("joint"):
            joint(sized([name for name in ("scene", "yeast") if name in options.sets], ["emotions"]), options.repeats)
        with from_data("joint"):
            joint(sized([name for name in ("corel5k",) if name in options.sets], []), 1)
    if "linear" in options.tables:
        with from_data("linear"):
            linear(sized(["medical", "corel5k", "tmc2007"], ["emotions"]), 1)
    if "neighbours" in options.tables:
        with from_data("neighbours"):
            neighbours(sized(["corel5k"], ["emotions"]))
    if "homogeneity" in options.tables:
        homogeneity(options.repeats)
    if "views" in options.tables:
        views()
    if "files" in options.tables:
        files()
    if "scores" in options.tables:
        scores(options.sets, options.methods)
    print(f"{time.time() - start:.0f} s in all")


if __name__ == "__main__":
    main()
