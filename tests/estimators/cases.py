"""What every public estimator is tested on: a `Case` says how to construct it, what to fit and which verbs to compare.

`public_estimators` finds the classes by walking the package, so that a new estimator without a case fails a test.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import mercer
from mercer.alignment import Aligner
from mercer.attributes import AttributeRetriever, CategoryAttributes, WeakAttributes, ZeroShotClassifier
from mercer.classification import (
    CompactClassifier,
    KMeansMajority,
    LinearClassifier,
    RelativeMarginSVC,
    SampledKNN,
)
from mercer.clustering import SupervisedClusterer
from mercer.data import Graphs
from mercer.datasets import (
    make_actions,
    make_attribute_categories,
    make_mug,
    make_paragraphs,
    make_regions,
    make_videos,
)
from mercer.fields import RBM, BoltzmannMachine, ShapeClassifier, ShapePartModel, SpatialLDA
from mercer.inference import ChowLiuTree, LatentTree
from mercer.kernel_methods import (
    CCA,
    IncompleteCholesky,
    KernelCCA,
    KernelDependencyEstimation,
    KernelFisher,
    KernelizedModel,
    KernelMeanClassifier,
    KernelNuSVC,
    KernelOneClass,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    LinearProgramSVC,
    MultiSetCCA,
    OnlineKernelClassifier,
    ParzenWindow,
    PreImage,
    RepresenterEstimator,
)
from mercer.kernels import (
    AdditiveMap,
    ChiSquared,
    FourierMap,
    Gaussian,
    GaussianMixtureModel,
    GaussianModel,
    Gram,
    Kernel,
    Linear,
    MultinomialModel,
    NGram,
    NystroemMap,
)
from mercer.labeling import GraphLabeler, GridLabeler
from mercer.maps import (
    CirculantProjection,
    Codebook,
    CompactNonlinearMap,
    CorrelationSelector,
    EmpiricalKernelMap,
    FourierFeatures,
    GraphletHasher,
    PolynomialSketch,
    RandomFeatures,
    RandomProjection,
    RecordHasher,
    SignedHashProjection,
    StringHasher,
    TableEncoder,
    TextHasher,
)
from mercer.maps.hashed import HashedMap
from mercer.markov import HiddenMarkovModel, HMMClassifier
from mercer.multilabel import (
    CompressedLabels,
    DependencyModel,
    HashedLabelSets,
    HomogeneityAnalysis,
    JointSVM,
    KernelHomogeneityAnalysis,
    MultiLabelCRF,
    NeighborLabels,
    OnlineJointSVM,
    SeparateSVM,
)
from mercer.online import HashedClassifier, HashedRegressor
from mercer.parsing import Parser, read_trees
from mercer.proportions import (
    AlternatingProportionSVM,
    AttributeModeler,
    BagCV,
    BinarizedAttributes,
    ConvexProportionSVM,
    InverseCalibration,
    MajorityBag,
    MeanMap,
    MultipleInstanceSVM,
    ProportionClassifier,
    VideoEventDetector,
    make_bags,
)
from mercer.ranking import LabelRanker, Ranker
from mercer.recognition import CodeClassifier, SparseCoder, SparseRepresentationClassifier
from mercer.registration import (
    ICP,
    CoherentPointDrift,
    FeatureMatching,
    KernelRegistration,
    MixtureRegistration,
    SoftAssign,
)
from mercer.registration.base import Registration
from mercer.retrieval import (
    BilinearEmbedding,
    CirculantEmbedding,
    IterativeQuantization,
    ShiftInvariantHashing,
    SignProjection,
    SpectralHashing,
)
from mercer.segmentation import (
    BoundaryClassifier,
    FeaturePack,
    MinMaxRescaler,
    NgramModel,
    ParagraphFeatures,
    Segmenter,
    SegmentStatistics,
)
from mercer.structured import CustomStructure, MaximumEntropyDiscrimination, StructuredPredictor
from mercer.tagging import NeuralTagger, Tagger

VERBS = (
    "predict",
    "predict_proba",
    "predict_marginals",
    "decision_function",
    "transform",
    "score_samples",
    "entropy",
    "log_prob",
    "scores",
)
"""Methods that take new inputs alone; a case names others."""


@dataclass(frozen=True)
class Data:
    """Arguments of ``fit`` and new inputs for the verbs."""

    args: tuple[Any, ...]
    new: Any
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One estimator, constructed, with data of its kind."""

    make: Callable[[], Any]
    data: Callable[[int], Data]
    verbs: tuple[str, ...] = VERBS
    use: Callable[[Any, Any], Any] | None = None
    """(fitted model, new inputs) to outputs, where a verb needs more than the inputs."""
    arrays: bool = False
    """Inputs are one array of rows: scale, shift and order of columns can be changed."""
    load: Callable[[Any], Any] = lambda model: model
    """What a loaded model needs before it is used."""
    paired: bool = True
    """The second argument of ``fit`` has one output for each input."""
    not_saved: str | None = None
    """Why ``mercer.save`` refuses the model."""
    takes: tuple[str, ...] = ()
    """Arrays that most estimators refuse (names in ``broken_arrays``) and this one takes."""
    rtol: float = 1e-8
    """Of the outputs under these changes."""
    agreement: float = 0.9
    """Share of training rows whose prediction no change of units, order or constants moves without a warning."""
    same: frozenset[str] = frozenset()
    """Changes of the inputs (names in ``test_scales``) that must not change the predictions."""

    @property
    def cls(self) -> type:
        return type(self.make())


# ------------------------------------------------------------------------------------------------------------ discovery


@functools.cache
def public_estimators() -> dict[type, str]:
    """Every public class with ``fit``, and the shortest public module that exports it."""
    places: dict[type, str] = {}
    for info in pkgutil.walk_packages(mercer.__path__, "mercer."):
        if any(part.startswith("_") for part in info.name.split(".")) or info.name.startswith("mercer.cli"):
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError:  # an optional library
            continue
        for name in getattr(module, "__all__", ()):
            try:
                value = getattr(module, name)
            except ImportError:
                continue
            if not inspect.isclass(value) or not value.__module__.startswith("mercer"):
                continue
            if issubclass(value, BaseEstimator) and hasattr(value, "fit"):
                places[value] = min(places.get(value, info.name), info.name, key=len)
    return places


# ----------------------------------------------------------------------------------------------------------- input data


def rows(seed: int, n: int = 24, d: int = 4, classes: int = 2, shift: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, d)) + shift * np.eye(d)[y % d], y


def labelled(seed: int) -> Data:
    X, y = rows(seed)
    return Data((X[:18], y[:18]), X[18:])


def three_classes(seed: int) -> Data:
    X, y = rows(seed, 36, 4, 3)
    return Data((X[:30], np.array(["a", "b", "c"])[y[:30]]), X[30:])


def label_sets(seed: int) -> Data:
    X, _ = rows(seed, 36)
    Y = (X[:30, :3] > [0.3, 0.6, 0.9]).astype(int)
    return Data((X[:30], Y), X[30:])


def bits(seed: int) -> Data:
    X = np.random.default_rng(seed).integers(0, 2, (24, 5))
    X[:, 1] = X[:, 0]
    return Data((X[:18],), X[18:])


def clouds(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    found = [rng.normal(0.0, (1.0, 0.3, 0.3), (25, 3)) for _ in range(8)]
    return Data((found,), [found[0][:9], found[1]])


def labelled_clouds(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    found = [rng.normal(0.0, (1.0, 0.3, 0.3) if i % 2 else (0.3, 0.3, 1.0), (25, 3)) for i in range(10)]
    return Data((found[:8], ["rod", "pole"] * 4), found[8:])


def label_sets_of_views(seed: int) -> Data:
    X, Y = label_sets(seed).args
    new = label_sets(seed).new
    return Data(([X, np.tanh(X)], Y), [new, np.tanh(new)])


def category_table(seed: int) -> Data:
    X, _ = rows(seed, 36)
    table = np.digitize(X, [0.0, 1.0])
    return Data((table[:30],), table[30:])


def outcomes(seed: int) -> Data:
    table = category_table(seed).args[0]
    table = np.c_[table, table[:, 0] > 0].astype(int)
    return Data((table,), table[:6, :4])


def real_targets(seed: int) -> Data:
    X, _ = rows(seed)
    return Data((X[:18], X[:18] @ [1.0, -1.0, 0.5, 0.0]), X[18:])


def unlabelled(seed: int) -> Data:
    X, _ = rows(seed)
    return Data((X[:18],), X[18:])


def wide(seed: int) -> Data:
    X, _ = rows(seed, 24, 16)
    return Data((X[:18],), X[18:])


def positive_rows(seed: int) -> Data:
    X = np.random.default_rng(seed).dirichlet(np.ones(4), size=24)
    return Data((X[:18],), X[18:])


def two_views(seed: int) -> Data:
    X, _ = rows(seed)
    Y = np.c_[X[:, ::-1] + 0.1 * np.random.default_rng(seed).normal(size=X.shape), X[:, :1]]
    return Data((X[:18], Y[:18]), (X[18:], Y[18:]))


def views(seed: int) -> Data:
    (X, Y), (X_new, Y_new) = two_views(seed).args, two_views(seed).new
    return Data(([X, Y],), [X_new, Y_new])


def described_items(seed: int) -> Data:
    points = rows(seed, 60, 3)[0]
    return Data((np.split(points[:48], [9, 20, 33]),), np.split(points[48:], [5]))


def two_clouds(seed: int) -> Data:
    source = make_mug(120, random_state=seed)
    turn = np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
    return Data((source[:100], source[:100] @ turn.T + [1.0, 2.0, 3.0]), source[100:])


def pairs_of_vectors(seed: int) -> Data:
    X, _ = rows(seed)
    return Data((X[:18], np.sign(X[:18])), X[18:])


def words(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("abcd"), size=rng.integers(3, 9))) for _ in range(16)]


def strings(seed: int) -> Data:
    return Data((words(seed)[:12],), words(seed)[12:])


def labelled_strings(seed: int) -> Data:
    return Data((words(seed)[:12], np.arange(12) % 2), words(seed)[12:])


def sentences(seed: int) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [list(rng.choice(["the", "cat", "sat", "on", "mats"], size=rng.integers(2, 6))) for _ in range(12)]


def tagged(seed: int) -> Data:
    X = sentences(seed)
    y = [["N" if word.endswith(("t", "s")) else "O" for word in sentence] for sentence in X]
    return Data((X[:9], y[:9]), X[9:])


def symbols(seed: int) -> Data:
    X = [list(word) for word in words(seed)]
    return Data((X[:12],), X[12:])


def classified_symbols(seed: int) -> Data:
    X = [list(word) for word in words(seed)]
    return Data((X[:12], ["even" if len(x) % 2 == 0 else "odd" for x in X[:12]]), X[12:])


def texts(seed: int) -> Data:
    X = [" ".join(sentence) for sentence in sentences(seed)]
    return Data((X[:9], [int("cat" in text) for text in X[:9]]), X[9:])


def plain_texts(seed: int) -> Data:
    data = texts(seed)
    return Data(data.args[:1], data.new)


def text_targets(seed: int) -> Data:
    data = texts(seed)
    return Data((data.args[0], [float(len(text)) for text in data.args[0]]), data.new)


def records(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    X = [{"city": str(rng.choice(["Oslo", "Rome"])), "age": int(rng.integers(9, 90))} for _ in range(12)]
    return Data((X[:9],), X[9:])


def table(seed: int) -> Data:
    X = [(str(record["age"]), record["city"]) for record in (*records(seed).args[0], *records(seed).new)]

    def columns(part: list[tuple[str, str]]) -> dict[str, list[str]]:
        return {"age": [age for age, _ in part], "city": [city for _, city in part]}

    return Data((columns(X[:9]),), columns(X[9:]))


def graphs(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    edges = []
    for _ in range(8):
        n = int(rng.integers(4, 8))
        edges.append([(i, i + 1) for i in range(n - 1)] + [(0, int(rng.integers(2, n)))])
    return Data((Graphs.from_edges(edges[:6]),), Graphs.from_edges(edges[6:]))


@functools.cache
def _regions(seed: int) -> Any:
    return make_regions(6, random_state=seed)


def labelled_graphs(seed: int) -> Data:
    task = _regions(seed)
    return Data((task.X[:4], task.y[:4]), task.X[4:])


def images(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    truth = np.zeros((16, 16), int)
    truth[4:12, 4:12] = 1
    X = [truth + rng.normal(size=truth.shape) for _ in range(6)]
    return Data((X[:4], [truth] * 4), X[4:])


def aligned(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    pairs, truth = [], []
    for _ in range(8):
        first = "".join(rng.choice(list("ACGT"), size=6))
        gap = int(rng.integers(1, 5))
        pairs.append((first, first[:gap] + first[gap + 1 :]))
        truth.append((first, first[:gap] + "-" + first[gap + 1 :]))
    return Data((pairs[:6], truth[:6]), pairs[6:])


TREES = """
(S (NP (Det the) (N dog)) (VP (V saw) (NP (Det a) (N cat))))
(S (NP (N cats)) (VP (VP (V saw) (NP (Det the) (N dog))) (PP (P with) (NP (N eyes)))))
(S (NP (Det a) (N cat)) (VP (V saw) (NP (NP (Det the) (N park)) (PP (P with) (NP (N dogs))))))
(S (NP (Det the) (N cat)) (VP (V saw) (NP (N cats))))
"""


def trees(seed: int) -> Data:
    order = np.random.default_rng(seed).permutation(4)
    found = read_trees(TREES)
    return Data((None, [found[i] for i in order]), [["the", "cat", "saw", "a", "dog"], ["cats", "saw", "dogs"]])


def clusters(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    y = [np.array([0, 0, 1, 1]) for _ in range(5)]
    X = [4 * np.eye(3)[labels] + rng.normal(size=(4, 3)) for labels in y]
    return Data((X[:3], y[:3]), X[3:])


def in_bags(seed: int) -> Data:
    X, y = rows(seed, 48, 3, 2, 2.5)
    return Data((X,), X[:8], {"bags": make_bags(y, 6, random_state=seed)})


def labelled_bags(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    X, bags = rng.normal(size=(48, 2)), np.repeat(np.arange(8), 6)
    X[:24:6] += 6.0
    return Data((X,), X[:8], {"bags": bags, "labels": [True] * 4 + [False] * 4})


def named_bags(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    names = list(rng.choice(["a", "b", "c"], size=12))
    return Data(([*names, "a", "b", "c"], {"a": 0.25, "b": 1.0, "c": 0.4}), ["b", "a", "c"])


@functools.cache
def _categories(seed: int) -> Any:
    return make_attribute_categories(6, 10, 2, 4, random_state=seed)


def categories(seed: int) -> Data:
    task = _categories(seed)
    return Data((task.X, task.category, task.proportions), task.X[:6])


@functools.cache
def _videos(seed: int) -> Any:
    return make_videos(12, 10, 4, random_state=seed)


def videos(seed: int) -> Data:
    task = _videos(seed)
    return Data((task.videos[:10], task.y[:10]), task.videos[10:])


def ranked(seed: int) -> Data:
    X, _ = rows(seed)
    grades = np.digitize(X[:18, 0], [-0.3, 0.8])
    return Data((X[:18], grades), X[18:], {"groups": np.arange(18) // 6})


def preferences(seed: int) -> Data:
    X, _ = rows(seed)
    likes = [[("tea", "milk"), ("milk", "water")] if x[0] > x[1] else [("milk", "tea")] for x in X]
    return Data((X[:18], likes[:18]), X[18:])


@functools.cache
def _actions(seed: int) -> Any:
    return make_actions(6, 40, n_actions=2, random_state=seed)


def actions(seed: int) -> Data:
    task = _actions(seed)
    return Data((task.X[:4], task.y[:4]), task.X[4:6])


def frames(seed: int) -> Data:
    data = actions(seed)
    return Data(data.args[:1], data.new)


@functools.cache
def _paragraphs(seed: int) -> Any:
    return make_paragraphs(8, (3, 5), topic_share=0.6, vocabulary=60, random_state=seed)


def documents(seed: int) -> Data:
    task = _paragraphs(seed)
    return Data((task.documents[:6], task.starts[:6]), task.documents[6:])


def plain_documents(seed: int) -> Data:
    data = documents(seed)
    return Data(data.args[:1], data.new)


def orders(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(3, 2)) for _ in range(12)]
    y = [tuple(np.argsort(-x[:, 0]).tolist()) for x in X]
    return Data((X[:9], y[:9]), X[9:])


class Order(CustomStructure):
    """The order of the rows of x, by scores of rows."""

    def features(self, x: Any, y: Any) -> np.ndarray:
        return np.linspace(1, -1, len(y)) @ np.asarray(x)[list(y)]

    def argmax(self, w: np.ndarray, x: Any, cost_to: Any = None) -> tuple[int, ...]:
        candidates = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]

        def value(y: tuple[int, ...]) -> float:
            return float(w @ self.features(x, y)) + (0.0 if cost_to is None else self.cost(cost_to, y))

        return max(candidates, key=value)

    def __repr__(self) -> str:
        return "Order()"


def with_order(model: Any) -> Any:
    return model.set_params(structure=Order())


def draw_waves(n: int, random: Any) -> Any:
    return random.standard_normal((4, n))


def wave(X: Any, draws: Any) -> np.ndarray:
    return np.cos(np.asarray(X) @ draws)


ANY_UNIT = frozenset({"scaled", "tiny"})
DISTANCES = frozenset({"shifted", "permuted", "constant"})
"""What distances between rows do not see."""
REPEATED = frozenset({"repeated"})
LINEAR = frozenset({"permuted", "constant"})


def pair_views(model: Any, new: Any) -> Any:
    return model.transform(*new)


def decoded(model: Any, new: Any) -> Any:
    return model.decode(np.full((2, 18), 1 / 18))


CASES = [
    Case(lambda: Aligner(C=10.0, random_state=0), aligned),
    Case(lambda: CompactClassifier(4, max_iter=3, steps=5, random_state=0), three_classes, arrays=True, agreement=0.6),
    Case(lambda: KMeansMajority(random_state=0), three_classes, arrays=True, same=ANY_UNIT | DISTANCES | REPEATED),
    Case(lambda: LinearClassifier(random_state=0), three_classes, arrays=True, same=frozenset({"permuted"})),
    Case(lambda: RelativeMarginSVC(), three_classes, arrays=True, same=ANY_UNIT | {"permuted"}),
    Case(lambda: SampledKNN(0.9, random_state=0), three_classes, arrays=True, same=ANY_UNIT | DISTANCES),
    Case(lambda: SupervisedClusterer(random_state=0), clusters),
    Case(lambda: ICP(), two_clouds, paired=False),
    Case(lambda: KernelRegistration(n_points=50), two_clouds, paired=False),
    Case(lambda: FeatureMatching(effort=1), two_clouds, paired=False),
    Case(lambda: SoftAssign(cooling=0.7), two_clouds, paired=False),
    Case(lambda: MixtureRegistration(max_iter=10), two_clouds, paired=False),
    Case(lambda: CoherentPointDrift(), two_clouds, paired=False),
    Case(lambda: CCA(), two_views, use=pair_views),
    Case(lambda: IncompleteCholesky(Gaussian(0.5), rank=8), unlabelled, arrays=True, same=DISTANCES | REPEATED),
    Case(lambda: KernelCCA(Gaussian(0.5)), views),
    Case(lambda: KernelDependencyEstimation(Gaussian(0.5), Linear()), pairs_of_vectors),
    Case(lambda: KernelFisher(Gaussian(0.5)), labelled, arrays=True, same=DISTANCES),
    Case(lambda: KernelMeanClassifier(Gaussian(0.5)), labelled, arrays=True, same=DISTANCES | REPEATED),
    Case(lambda: KernelNuSVC(Gaussian(0.5)), labelled, arrays=True, same=DISTANCES),
    Case(lambda: KernelOneClass(Gaussian(0.5)), unlabelled, arrays=True, same=DISTANCES),
    Case(lambda: KernelPCA(Gaussian(0.5), 3), unlabelled, arrays=True, same=DISTANCES | REPEATED),
    # Rows are scaled to unit length, which a constant column changes.
    Case(lambda: OnlineJointSVM(random_state=0), label_sets, arrays=True, agreement=0.8),
    Case(lambda: SeparateSVM(), label_sets, arrays=True),
    Case(lambda: CompressedLabels(3, random_state=0), label_sets, arrays=True),
    Case(lambda: HashedLabelSets(10, random_state=0), label_sets),
    Case(lambda: NeighborLabels(5), label_sets, arrays=True, same=DISTANCES),
    Case(lambda: HomogeneityAnalysis(2), category_table),
    Case(lambda: DependencyModel([4], 2), outcomes),
    Case(lambda: KernelHomogeneityAnalysis(2), label_sets_of_views),
    Case(lambda: JointSVM(kernel=Gaussian(0.5)), label_sets, arrays=True, same=DISTANCES),
    Case(lambda: MultiLabelCRF(), label_sets, ("predict", "predict_proba"), arrays=True),
    Case(lambda: RBM(4, max_iter=5, random_state=0), bits),
    Case(lambda: BoltzmannMachine(max_iter=5, n_particles=20, random_state=0), bits),
    Case(lambda: SpatialLDA(3, max_iter=5, random_state=0), clouds, (*VERBS, "log_likelihood")),
    Case(lambda: ShapePartModel(3, max_iter=5, random_state=0), clouds, (*VERBS, "log_likelihood")),
    Case(lambda: ShapeClassifier(2, max_iter=5, random_state=0), labelled_clouds),
    Case(lambda: KernelRidge(Gaussian(0.5)), real_targets, arrays=True, same=DISTANCES),
    Case(lambda: KernelSVC(Gaussian(0.5)), three_classes, arrays=True, same=DISTANCES),
    Case(lambda: KernelSVC(NGram(2)), labelled_strings),
    Case(lambda: KernelizedModel(LinearClassifier(random_state=0), Gaussian(0.5)), three_classes, arrays=True),
    Case(lambda: KernelSVR(Gaussian(0.5)), real_targets, arrays=True, same=DISTANCES),
    Case(lambda: LinearProgramSVC(Gaussian(0.5)), labelled, arrays=True, same=DISTANCES),
    Case(lambda: MultiSetCCA(), views),
    Case(lambda: OnlineKernelClassifier(Gaussian(0.5), random_state=0), labelled, arrays=True, same=DISTANCES),
    Case(lambda: ParzenWindow(Gaussian(0.5)), unlabelled, arrays=True, same=DISTANCES | REPEATED),
    Case(lambda: PreImage(Linear()), unlabelled, use=decoded),
    Case(lambda: RepresenterEstimator(Gaussian(0.5)), real_targets, arrays=True, same=DISTANCES),
    Case(lambda: AdditiveMap(ChiSquared(None)), positive_rows),
    Case(lambda: FourierMap(Gaussian(0.5), 16, random_state=0), unlabelled, arrays=True),
    Case(lambda: GaussianMixtureModel(2, random_state=0), unlabelled, arrays=True, takes=("three-dimensional",)),
    Case(lambda: GaussianModel(), unlabelled, arrays=True, takes=("three-dimensional",)),
    Case(lambda: Gram(Gaussian(0.5)), unlabelled, arrays=True, same=DISTANCES),
    Case(lambda: MultinomialModel(), strings),
    Case(lambda: NystroemMap(Gaussian(0.5), 8, random_state=0), unlabelled, arrays=True, same=DISTANCES),
    Case(lambda: GraphLabeler(C=0.1, random_state=0), labelled_graphs),
    Case(lambda: GridLabeler(block=4, C=0.1, random_state=0), images),
    Case(lambda: CirculantProjection(8, random_state=0), wide, arrays=True),
    Case(lambda: CompactNonlinearMap(4, max_iter=3, steps=5, random_state=0), three_classes, arrays=True),
    Case(lambda: Codebook(4, random_state=0), described_items, use=lambda model, X: {"transform": model.transform(X)}),
    Case(lambda: CorrelationSelector(), labelled, arrays=True, takes=("strings",)),
    Case(
        lambda: EmpiricalKernelMap(n_components=8, random_state=0),
        unlabelled,
        arrays=True,
        not_saved="its kernel may be a function",
    ),
    Case(lambda: FourierFeatures(16, random_state=0), unlabelled, arrays=True),
    Case(lambda: GraphletHasher(sizes=3, n_bits=8), graphs),
    Case(lambda: PolynomialSketch(16, random_state=0), unlabelled, arrays=True),
    Case(lambda: RandomFeatures(wave, draw_waves, 8, random_state=0), unlabelled, not_saved="it holds functions"),
    Case(lambda: RandomProjection(4, random_state=0), wide, arrays=True),
    Case(lambda: RecordHasher(n_bits=10), records),
    Case(lambda: ChowLiuTree(), bits, verbs=("marginals", "score_samples")),
    Case(lambda: LatentTree(), bits, verbs=("marginals", "score_samples")),
    Case(lambda: AttributeRetriever(), label_sets, arrays=True),
    Case(lambda: AttributeRetriever(n_weak=2, information="semi-supervised"), label_sets, arrays=True),
    Case(lambda: WeakAttributes(n_splits=4, n_references=3, random_state=0), label_sets, arrays=True),
    Case(lambda: WeakAttributes(n_splits=4, n_references=3, latent=True, random_state=0), three_classes, arrays=True),
    Case(lambda: CategoryAttributes(), three_classes, arrays=True),
    Case(lambda: CategoryAttributes("ecoc", 6, random_state=0, decode="hamming"), three_classes, arrays=True),
    Case(
        lambda: ZeroShotClassifier([[1, 0, 1], [0, 1, 0]], novel=["d", "e"], generalised=True),
        three_classes,
        arrays=True,
    ),
    Case(
        lambda: CodeClassifier(alpha=0.1),
        three_classes,
        arrays=True,
        takes=("three-dimensional",),
        agreement=0.4,
        same=ANY_UNIT | {"permuted"},
    ),
    Case(lambda: SparseCoder(solver="l1", tol=0.2), unlabelled, arrays=True, takes=("three-dimensional",)),
    Case(
        lambda: SparseRepresentationClassifier(),
        three_classes,
        arrays=True,
        takes=("three-dimensional",),
        same=ANY_UNIT | {"permuted"},
    ),
    Case(lambda: SignedHashProjection(8, random_state=0), wide, arrays=True),
    Case(lambda: StringHasher(n_bits=10, max_length=3), strings),
    Case(lambda: TableEncoder(), table),
    Case(lambda: TextHasher(n_bits=10, weighting="tfidf"), plain_texts),
    Case(lambda: HiddenMarkovModel(2, random_state=0), symbols),
    Case(lambda: HiddenMarkovModel(2, random_state=0), tagged),
    Case(lambda: HMMClassifier(HiddenMarkovModel(2), random_state=0), classified_symbols),
    Case(lambda: MaximumEntropyDiscrimination(Tagger("hinge"), "laplace", random_state=0), tagged),
    Case(lambda: HashedClassifier(n_bits=12), texts),
    Case(lambda: HashedRegressor(n_bits=12), text_targets),
    Case(lambda: Parser(C=10.0, random_state=0), trees),
    Case(lambda: AlternatingProportionSVM(n_init=2, random_state=0), in_bags, arrays=True, same=LINEAR),
    Case(lambda: AttributeModeler(ProportionClassifier(random_state=0, max_iter=20), random_state=0), categories),
    Case(
        lambda: BagCV(MeanMap(), {"alpha": [0.01, 1.0]}, cv=3, random_state=0),
        in_bags,
        not_saved="the model it chose, best_estimator_, is what to save",
    ),
    Case(lambda: BinarizedAttributes(), categories, not_saved="a baseline for comparisons"),
    Case(lambda: ConvexProportionSVM(random_state=0), in_bags, arrays=True, same=LINEAR),
    Case(lambda: InverseCalibration(), in_bags, arrays=True, same=LINEAR),
    Case(lambda: MajorityBag(), named_bags),
    Case(lambda: MeanMap(), in_bags, arrays=True, same=LINEAR),
    Case(lambda: MultipleInstanceSVM(), labelled_bags, arrays=True, same=LINEAR),
    Case(lambda: ProportionClassifier(random_state=0, max_iter=20), in_bags, arrays=True),
    Case(
        lambda: VideoEventDetector((1, 3), estimator=ProportionClassifier(random_state=0, max_iter=10)),
        videos,
    ),
    Case(lambda: LabelRanker(random_state=0), preferences, arrays=True, same=frozenset({"permuted"})),
    Case(lambda: Ranker(random_state=0), ranked, arrays=True, same=LINEAR),
    Case(lambda: BilinearEmbedding(8, random_state=0), wide, arrays=True, same=ANY_UNIT | REPEATED),
    Case(lambda: CirculantEmbedding(8, random_state=0), wide, arrays=True, same=ANY_UNIT | REPEATED),
    Case(lambda: CirculantEmbedding(8, "learned", random_state=0), wide, arrays=True),
    Case(lambda: IterativeQuantization(8, random_state=0), wide, arrays=True, same=ANY_UNIT | {"shifted"} | REPEATED),
    Case(lambda: SpectralHashing(8), wide, arrays=True, same=ANY_UNIT | DISTANCES | REPEATED),
    Case(lambda: ShiftInvariantHashing(8, random_state=0), wide, arrays=True, same=ANY_UNIT),
    Case(lambda: SignProjection(8, random_state=0), wide, arrays=True, same=ANY_UNIT | REPEATED),
    Case(
        lambda: BoundaryClassifier("svm", features=ParagraphFeatures(words=False, n_topics=0)),
        documents,
        not_saved="a baseline for comparisons",
    ),
    Case(
        lambda: MinMaxRescaler(),
        unlabelled,
        arrays=True,
        same=ANY_UNIT | {"shifted"},
        not_saved="part of the features of a Segmenter",
    ),
    Case(
        lambda: NgramModel(),
        plain_texts,
        use=lambda model, new: [model.entropy(text) for text in new],
        not_saved="part of the features of a Segmenter",
    ),
    Case(
        lambda: ParagraphFeatures(words=False, n_topics=0),
        plain_documents,
        use=lambda model, new: model.transform(new).boundaries,
        not_saved="part of the features of a Segmenter",
    ),
    Case(
        lambda: SegmentStatistics(window=1),
        frames,
        use=lambda model, new: model.transform(new).boundaries,
        not_saved="part of the features of a Segmenter",
    ),
    Case(lambda: Segmenter(features=SegmentStatistics(window=1), random_state=0), actions),
    Case(lambda: StructuredPredictor(Order(), C=10.0, random_state=0), orders, load=with_order),
    Case(lambda: Tagger(random_state=0), tagged),
    Case(lambda: Tagger("hinge", C=0.1, random_state=0), tagged),
]

ABSTRACT: dict[type, str] = {
    FeaturePack: "the base class of features of segments",
    HashedMap: "the base class of maps by hashing",
    Kernel: "has no fit",
    Registration: "the base class of registrations",
    NeuralTagger: "needs PyTorch and a module: tests/tagging/test_neural.py",
}
