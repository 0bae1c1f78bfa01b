"""Every kind of estimator with its defaults beside the same one tuned by cross-validation, on three real sets each.

    python benchmarks/tuned.py [--parts taggers markov strings posteriors segmenters texts rows kernels machines others
                                numbers ranking proportions labels graphs images trees fields faces]

Tuned is a search over the values in the table of this script by three folds of the training part (bags are cut whole);
the test part is looked at once. What a default loses against a tuned model is the last column, in points. Sets come
from the folder that MERCER_DATA names; those that are missing are left out and named. `WITHOUT` says why a kind of
model has no rows here; a test compares both with the kinds of models that there are.
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

from mercer.classification import CompactClassifier, KMeansMajority, LinearClassifier, RelativeMarginSVC, SampledKNN
from mercer.data import read_mulan
from mercer.datasets import (
    load_basenp,
    load_conll2000,
    load_conll2002,
    load_r8,
    load_sms_spam,
    load_trec_questions,
    load_tu,
)
from mercer.fields import RBM, BoltzmannMachine
from mercer.inference import ChowLiuTree, LatentTree
from mercer.kernel_methods import (
    KernelFisher,
    KernelMeanClassifier,
    KernelNuSVC,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    LinearProgramSVC,
    OnlineKernelClassifier,
    RepresenterEstimator,
)
from mercer.kernels import Gaussian
from mercer.labeling import GraphLabeler, GridLabeler
from mercer.markov import HiddenMarkovModel, HMMClassifier
from mercer.metrics import make_span_scorer
from mercer.multilabel import (
    CompressedLabels,
    HashedLabelSets,
    JointSVM,
    KernelHomogeneityAnalysis,
    MultiLabelCRF,
    NeighborLabels,
    OnlineJointSVM,
    SeparateSVM,
)
from mercer.online import HashedClassifier, HashedRegressor
from mercer.proportions import (
    AlternatingProportionSVM,
    BagCV,
    ConvexProportionSVM,
    InverseCalibration,
    MeanMap,
    ProportionClassifier,
    make_bags,
)
from mercer.ranking import LabelRanker, Ranker
from mercer.recognition import CodeClassifier, SparseRepresentationClassifier
from mercer.segmentation import Segmenter
from mercer.structured import MaximumEntropyDiscrimination
from mercer.tagging import Tagger

Split = tuple[Any, Any, Any, Any]
STRENGTHS = [0.01, 0.1, 1.0, 10.0]

MAPS = "makes features: what they are worth shows in the classifier after it, on the pages of maps and hashing"
ONE_SET = "needs a kind of data of which fewer than three public sets were at hand"
WITHOUT = {
    **dict.fromkeys(
        (
            "CirculantProjection", "Codebook", "CompactNonlinearMap", "FourierFeatures", "PolynomialSketch",
            "CorrelationSelector",
            "GraphletHasher", "CountMinSketch", "HashAccumulator", "RandomProjection", "RecordHasher", "SparseCoder",
            "SignedHashProjection", "StringHasher", "TableEncoder", "TextHasher", "AdditiveMap", "FourierMap", "Gram",
            "NystroemMap", "CCA", "IncompleteCholesky", "KernelCCA", "KernelPCA", "MultiSetCCA", "PreImage",
            "HomogeneityAnalysis", "BilinearEmbedding", "CirculantEmbedding", "SignProjection", "IterativeQuantization",
            "SpectralHashing", "ShiftInvariantHashing",
        ),
        MAPS,
    ),
    **dict.fromkeys(
        ("GaussianModel", "GaussianMixtureModel", "MultinomialModel", "LinearStringModel"),
        "belongs to a kernel, and is fitted by it",
    ),
    **dict.fromkeys(
        ("ICP", "KernelRegistration", "FeatureMatching", "SoftAssign", "MixtureRegistration", "CoherentPointDrift"),
        "learns nothing from examples: see the page of registration",
    ),
    **dict.fromkeys(
        (
            "SupervisedClusterer", "Parser", "Aligner", "AttributeRetriever", "WeakAttributes", "CategoryAttributes",
            "ZeroShotClassifier", "VideoEventDetector", "AttributeModeler", "ShapeClassifier", "ShapePartModel",
            "SpatialLDA", "MultipleInstanceSVM",
        ),
        ONE_SET,
    ),
    "StructuredPredictor": "has no default: the structure is the user's",
    "KernelizedModel": "has no default: model and kernel are the user's; see benchmarks/kernel_machines.py",
    "DependencyModel": "has no default: the outcomes are the user's",
    "KernelDependencyEstimation": "has no default: both kernels are the user's",
    "MajorityBag": "a baseline without settings",
    "KernelOneClass": "has no score: nu is the share of outliers that the user expects",
    "ParzenWindow": "has no settings but the kernel",
}  # fmt: skip


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    args = parse(parser, parts=["rows"])
    warnings.simplefilter("ignore")
    print(f"{'estimator':30}{'set':28}{'default':>16}{'tuned':>16}{'lost':>8}  chosen", flush=True)
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
    print(f"{name:30}{where:28}{cells[0]:>16}{cells[1]:>16}{lost:>8.1f}  {said}", flush=True)


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


def corpora(n: int, features: Callable[[Any], Any] = window) -> Iterator[tuple[str, Split]]:
    """Tagging tasks of n training and n test sentences."""
    for name, load in (
        ("base NPs", lambda: load_basenp("train") + load_basenp("test")),
        ("CoNLL-2000", lambda: load_conll2000("train")),
        ("CoNLL-2002 Dutch", lambda: load_conll2002("ned", "train")),
    ):
        with from_data(name):
            sentences = load()
            order = np.random.default_rng(7).permutation(len(sentences))[: 2 * n]
            X = [features(sentences[i]) for i in order]
            y = [[_spelled(token[-1]) for token in sentences[i]] for i in order]
            yield name, (X[:n], y[:n], X[n:], y[n:])


def _spelled(tag: str) -> str:
    return {"B": "B-NP", "I": "I-NP"}.get(tag, tag)


def taggers() -> None:
    """Taggers: F1 of spans."""
    for name, split in corpora(sized(300, 20)):
        search("Tagger", name, Tagger(), {"C": [0.1, 1.0, 10.0]}, split, make_span_scorer())


def hidden_markov() -> None:
    """Hidden Markov models with labels, over parts of speech: F1 of spans."""
    for name, split in corpora(sized(300, 20), lambda sentence: [token[1] for token in sentence]):
        model = HiddenMarkovModel(emission="categorical")
        search("HiddenMarkovModel", name, model, {"smoothing": [0.01, 0.1, 1.0]}, split, make_span_scorer())


def posteriors() -> None:
    """Distributions over the weights of a tagger: F1 of spans."""
    for name, split in corpora(sized(100, 20)):
        model = MaximumEntropyDiscrimination(Tagger("hinge"), random_state=0)
        search("MaximumEntropyDiscrimination", name, model, {"C": [0.1, 1.0, 10.0]}, split, make_span_scorer())


def strings() -> None:
    """Strings of DNA: whole strings right."""
    for name, (texts, classes) in dna():
        X, X_test, y, y_test = train_test_split(texts, classes, test_size=0.5, random_state=7, stratify=classes)
        states = {"model": [HiddenMarkovModel(n) for n in sized((2, 4, 8), (2, 3))]}
        search("HMMClassifier", name, HMMClassifier(random_state=0), states, (X, y, X_test, y_test))


def dna() -> Iterator[tuple[str, tuple[list[str], list[str]]]]:
    """Promoters of E. coli, splice sites of primates and of C. elegans: strings and their classes, 1,000 at most."""
    home, random = Path(os.environ.get("MERCER_DATA", ".")), np.random.default_rng(7)
    for name, file in (
        ("promoters", home / "promoters" / "promoters.data"),
        ("splice sites", home / "splice" / "keel-splice.dat"),
        ("splice sites of C. elegans", home / "celegans-splice" / "C_elegans_acc_seq.csv"),
    ):
        with from_data(name):
            lines = [line for line in file.read_text().splitlines() if line and not line.startswith("@")]
            cells = [[cell.strip() for cell in line.split(",")] for line in lines]
            if name == "splice sites":
                cells = [[row[-1], "".join(row[:-1])] for row in cells]
            kept = random.permutation(len(cells))[: sized(1000, 40)]
            yield name, ([cells[i][-1].lower() for i in kept], [cells[i][0] for i in kept])


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
            grid = {"max_iter": [1, 4], "learning_rate": [0.5, 2.5], "counts": ["sqrt", "linear"]}
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
        "OnlineKernelClassifier": (OnlineKernelClassifier(random_state=0), {"max_iter": [3, 10, 30]}),
        "CompactClassifier": (CompactClassifier(random_state=0), {"n_components": [16, 32, 64]}),
    }
    for name, split in columns():
        fisher = KernelFisher(Gaussian(1 / split[0].shape[1])), {"alpha": [1e-4, 1e-3, 1e-2, 1e-1]}
        for title, (model, grid) in {**models, "KernelFisher": fisher}.items():
            n = 300 if title == "LinearProgramSVC" else None  # of 45 linear programs the digits have
            search(title, name, model, grid, (split[0][:n], split[1][:n], *split[2:]))


def others() -> None:
    """Baselines and sparse codes over rows: rows right."""
    for name, split in columns():
        d = split[0].shape[1]
        models: dict[str, tuple[Any, dict[str, list[Any]]]] = {
            "SampledKNN": (SampledKNN(random_state=0), {"fraction": [0.03, 0.3, 1.0], "n_neighbors": [1, 5, 15]}),
            "KMeansMajority": (KMeansMajority(random_state=0), {"coverage": [0.7, 0.9, 0.99]}),
            "KernelMeanClassifier": (KernelMeanClassifier(), {"kernel": [Gaussian(f / d) for f in (0.1, 0.3, 1.0)]}),
            "RepresenterEstimator": (RepresenterEstimator(Gaussian(1 / d), "logistic"), {"C": STRENGTHS}),
        }
        for title, (model, grid) in models.items():
            if title != "RepresenterEstimator" or len(np.unique(split[1])) == 2:
                search(title, name, model, grid, split)
    for name, split in two_classes():
        if name != "breast cancer":
            model = RepresenterEstimator(Gaussian(1 / split[0].shape[1]), "logistic")
            search("RepresenterEstimator", name, model, {"C": STRENGTHS}, split)


def faces() -> None:
    """Sparse codes over faces and digits: rows right."""
    for name, split in pictures():
        for title, model in (
            ("SparseRepresentationClassifier", SparseRepresentationClassifier()),
            ("CodeClassifier", CodeClassifier()),
        ):
            search(title, name, model, {"solver": ["lasso", "omp"]}, split)


def pictures() -> Iterator[tuple[str, Split]]:
    """Faces of Yale, lit from many sides; faces of Yale B; scans of digits: a few of each class."""
    from scipy.io import loadmat

    home = Path(os.environ.get("MERCER_DATA", "."))
    for name, file in (("Yale", "Yale_32x32.mat"), ("Yale B", "YaleB_32x32.mat")):
        with from_data(name):
            found = loadmat(home / "yale-b" / file)
            X, y = found["fea"].astype(float), found["gnd"].ravel()
            few = np.isin(y, np.unique(y)[: sized(15, 3)])
            yield name, few_of_each(X[few], y[few], 5, 4)
    X, y = load_digits(return_X_y=True)
    yield "digits", few_of_each(X, y, sized(20, 5), sized(20, 4))


def few_of_each(X: np.ndarray, y: np.ndarray, train: int, test: int) -> Split:
    """Some rows of each class to learn from, others to be tested on."""
    rng = np.random.default_rng(7)
    places = [rng.permutation(np.flatnonzero(y == c)) for c in np.unique(y)]
    a = rng.permutation(np.concatenate([place[:train] for place in places]))
    b = np.concatenate([place[train : train + test] for place in places])
    return X[a], y[a], X[b], y[b]


# ------------------------------------------------------------------------------------------------------------ numbers


def numbers() -> None:
    """Regression: R²."""
    for name, split in quantities():
        d = split[0].shape[1]
        widths = [Gaussian(factor / d) for factor in (0.1, 0.3, 1.0)]
        for title, model, grid in (
            ("HashedRegressor", HashedRegressor(), {"learning_rate": [0.3, 1.0, 2.5], "max_iter": [8, 32]}),
            ("KernelRidge", KernelRidge(), {"alpha": [0.1, 1.0, 10.0], "kernel": widths}),
            ("KernelSVR", KernelSVR(), {"C": [0.1, 1.0, 10.0], "kernel": widths}),
        ):
            search(title, name, model, grid, split)


def quantities() -> Iterator[tuple[str, Split]]:
    """Numbers to predict, standardised: diabetes, the age in Adult, the elevation in CoverType."""
    from sklearn.datasets import load_diabetes

    yield "diabetes progression", _standard_numbers(*load_diabetes(return_X_y=True))
    home = Path(os.environ.get("MERCER_DATA", "."))
    n = sized(1200, 100)
    with from_data("age in Adult"):
        with gzip.open(home / "uci" / "adult.data.gz", "rt") as stream:
            rows = [line.split(", ") for line in stream if line.count(", ") == 14][:n]
        kinds = [1, 3, 5, 6, 7, 8, 9]
        names = sorted({(c, row[c]) for row in rows for c in kinds})
        place = {name: i for i, name in enumerate(names)}
        X = np.zeros((len(rows), len(names) + 1))
        for i, row in enumerate(rows):
            X[i, [place[c, row[c]] for c in kinds]] = 1.0
            X[i, -1] = float(row[12])
        yield "age in Adult", _standard_numbers(X, np.array([float(row[0]) for row in rows]))
    with from_data("elevation in CoverType"):
        with gzip.open(home / "covtype-subset" / "covtype_kaggle_train15120.csv.gz", "rt") as stream:
            table = np.loadtxt(stream, delimiter=",", skiprows=1, max_rows=n)
        yield "elevation in CoverType", _standard_numbers(table[:, 2:55], table[:, 1])


def _standard_numbers(X: np.ndarray, y: np.ndarray) -> Split:
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=7)
    scale = StandardScaler().fit(X)
    return scale.transform(X), (y - y.mean()) / y.std(), scale.transform(X_test), (y_test - y.mean()) / y.std()


def ranking() -> None:
    """Rankers, rows of one class before those of the other: pairs right; of labels: first labels right."""
    for name, split in two_classes():
        search("Ranker", name, Ranker(), {"C": STRENGTHS}, split)
    for name, (X, y, X_test, y_test) in columns():
        labels = np.unique(y)

        def graphs(truth: np.ndarray, labels: np.ndarray = labels) -> list[Any]:
            return [[(label, other) for other in labels if other != label] for label in truth]

        if len(labels) > 2:
            search("LabelRanker", name, LabelRanker(), {"C": STRENGTHS}, (X, graphs(y), X_test, graphs(y_test)))
    with from_data("vowel"):
        table = np.genfromtxt(
            Path(os.environ.get("MERCER_DATA", ".")) / "uci" / "Vowel.csv", delimiter=",", dtype=str, skip_header=1
        )
        X, y, X_test, y_test = _standard(table[:, :-1].astype(float), np.unique(table[:, -1], return_inverse=True)[1])
        labels = np.unique(y)
        split = (X, graphs(y, labels), X_test, graphs(y_test, labels))
        search("LabelRanker", "vowel", LabelRanker(), {"C": STRENGTHS}, split)


# -------------------------------------------------------------------------------------------------------- label sets


def labels() -> None:
    """Label sets: micro-F1."""
    models: dict[str, tuple[Any, dict[str, list[Any]]]] = {
        "OnlineJointSVM": (OnlineJointSVM(random_state=0), {"margin": [1.0, 5.0, 20.0]}),
        "SeparateSVM": (SeparateSVM(), {"C": [0.001, 0.01, 0.1, 1.0]}),
        "CompressedLabels": (CompressedLabels(random_state=0), {"alpha": [0.1, 1.0, 10.0]}),
        "MultiLabelCRF": (MultiLabelCRF(random_state=0), {"C": [0.001, 0.01, 0.1]}),
        "KernelHomogeneityAnalysis": (KernelHomogeneityAnalysis(), {"alpha": [0.01, 0.1, 1.0]}),
        "JointSVM": (JointSVM(), {"C": [0.1, 1.0, 10.0]}),
        "NeighborLabels": (NeighborLabels(), {"n_neighbors": [5, 10, 20]}),
        "HashedLabelSets": (HashedLabelSets(random_state=0), {"learning_rate": [0.2, 0.5, 1.0], "max_iter": [3, 10]}),
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
        "ConvexProportionSVM": (ConvexProportionSVM(random_state=0), {"C": STRENGTHS}),
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


# ------------------------------------------------------------------------------------------------------ nodes, pixels


def graphs() -> None:
    """Nodes of graphs: nodes right. Parts of proteins from their sizes, atoms from the bonds around them."""
    for name, n in (("ENZYMES", 200), ("PROTEINS", 200), ("Mutagenicity", 200)):
        with from_data(name):
            found, _ = load_tu(name)
            order = np.random.default_rng(7).permutation(len(found))[: sized(2 * n, 12)]
            X, y = zip(*(nodes_of(found[int(i)]) for i in order), strict=True)
            half = len(X) // 2
            split = (list(X[:half]), list(y[:half]), list(X[half:]), list(y[half:]))
            search("GraphLabeler", name, GraphLabeler(), {"C": [0.1, 1.0, 10.0]}, split)


def nodes_of(graph: Any) -> tuple[tuple[np.ndarray, np.ndarray], list[int]]:
    """What is known of the nodes (attributes, the number of neighbours, and of theirs), edges, labels."""
    edges = np.asarray(graph.edges).reshape(-1, 2)
    n = graph.n_nodes
    degree = np.bincount(edges.ravel(), minlength=n).astype(float)
    around = np.zeros(n)
    np.add.at(around, edges[:, 0], degree[edges[:, 1]])
    np.add.at(around, edges[:, 1], degree[edges[:, 0]])
    parts = [np.eye(6)[np.minimum(degree, 5).astype(int)], around[:, None] / 10]
    if graph.node_attributes is not None:
        parts.append(np.log1p(np.abs(np.asarray(graph.node_attributes, float))))
    return (np.hstack(parts), edges), np.asarray(graph.node_labels).tolist()


def images() -> None:
    """Horses, a quarter of the side; under noise, strokes of digits and outlines of clothes: pixels right."""
    with from_data("horses"):
        from defaults import horses, quartered

        X, y = quartered(*horses(sized(24, 6)))
        n = len(X) // 2
        search("GridLabeler", "horses", GridLabeler(), {"block": [1, 2, 4]}, (X[:n], y[:n], X[n:], y[n:]))
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


# ---------------------------------------------------------------------------------------------------------- densities


def bits() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Rows of bits: votes, words of newsgroup posts, objects in pictures."""
    from scipy.io import loadmat

    home = Path(os.environ.get("MERCER_DATA", "."))
    with from_data("votes"):
        rows = np.genfromtxt(home / "uci" / "HouseVotes84.csv", delimiter=",", dtype=str, skip_header=1)
        yield "votes", *halves((np.char.strip(rows[:, 1:], '"') == "y").astype(np.uint8))
    with from_data("words of posts"):
        found = loadmat(home / "20news-w100" / "20news_w100.mat")["documents"]
        yield "words of posts", *halves(np.asarray(found.todense()).T[: sized(3000, 100)].astype(np.uint8))
    with from_data("objects in pictures"):
        table = np.genfromtxt(home / "sun09-presence" / "SUN09train_presence.csv", delimiter=",")
        table = table[np.isfinite(table).all(axis=1)]
        yield "objects in pictures", *halves((table[: sized(3000, 100)] > 0).astype(np.uint8))


def halves(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and rows for the test, at random."""
    order = np.random.default_rng(7).permutation(len(X))
    return X[order[::2]], X[order[1::2]]


def trees() -> None:
    """Trees over bits: the mean log-likelihood of a column, × 100."""
    for name, X, X_test in bits():
        split = (X, None, X_test, None)
        per_column = lambda model, rows, truth: model.score(rows) / rows.shape[1]  # noqa: E731
        search("ChowLiuTree", name, ChowLiuTree(), {"smoothing": [0.1, 0.5, 2.0]}, split, per_column)
        if X.shape[1] <= 100:
            search("LatentTree", name, LatentTree(), {"smoothing": [0.1, 0.5, 2.0]}, split, per_column)


def fields() -> None:
    """Fields over bits: the mean log-likelihood of a column, × 100."""

    def per_column(model: Any, rows: np.ndarray, truth: Any) -> float:
        return float(model.score(rows)) / rows.shape[1]

    for name, X, X_test in bits():
        split = (X, None, X_test, None)
        small = {"max_iter": 2} if sized(False, True) else {}
        rbm = RBM(random_state=0, **small)
        search("RBM", name, rbm, {"n_hidden": [32, 256], "weight_decay": [0.0, 1e-3]}, split, per_column)
        pairs = BoltzmannMachine(random_state=0, **small)
        search("BoltzmannMachine", name, pairs, {"weight_decay": [0.0, 1e-3, 1e-2]}, split, per_column)


PARTS: dict[str, Callable[[], None]] = {
    "taggers": taggers,
    "markov": hidden_markov,
    "strings": strings,
    "posteriors": posteriors,
    "segmenters": segmenters,
    "texts": texts,
    "rows": rows,
    "kernels": kernels,
    "machines": machines,
    "others": others,
    "numbers": numbers,
    "ranking": ranking,
    "labels": labels,
    "proportions": proportions,
    "graphs": graphs,
    "images": images,
    "trees": trees,
    "fields": fields,
    "faces": faces,
}

if __name__ == "__main__":
    main()
