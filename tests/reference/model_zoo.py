"""A small fitted model of every kind that a model file can hold, and a way to use each: `ZOO`, by kind."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import mercer.alignment as alignment
import mercer.classification as classification
import mercer.clustering as clustering
import mercer.kernel_methods as methods
import mercer.kernels as kernels
import mercer.labeling as labeling
import mercer.maps as maps
import mercer.markov as markov
import mercer.multilabel as multilabel
import mercer.online as online
import mercer.parsing as parsing
import mercer.proportions as proportions
import mercer.ranking as ranking
import mercer.recognition as recognition
import mercer.retrieval as retrieval
import mercer.segmentation as segmentation
import mercer.structured as structured
import mercer.tagging as tagging
from estimators.cases import CASES, Case
from estimators.outputs import fit, outputs
from mercer.data.trees import Tree

__all__ = ["ZOO", "Animal"]

random = np.random.default_rng(0)
POINTS = np.abs(random.normal(size=(24, 3))) + np.repeat([[0.0], [2.0]], 12, axis=0)
OTHERS = random.normal(size=(24, 2))
LABELS = np.repeat(["no", "yes"], 12)
TARGETS = POINTS @ [1.0, -2.0, 0.5]
WORDS = ["abab", "abba", "bbab", "aabb", "baba", "bbbb", "aaba", "babb"] * 3
TEXTS = ["cheap pills now", "meeting at noon", "cheap watches now", "notes of the meeting"] * 6
TEXT_LABELS = ["spam", "ham", "spam", "ham"] * 6
RECORDS = [{"city": "Oslo" if i % 2 else "Rome", "age": float(i)} for i in range(24)]
BAGS = np.repeat(np.arange(6), 4)
SHARES = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
SEQUENCES = [random.normal(size=(5, 3)) for _ in range(8)]
TAGS = [["x" if row[0] > 0 else "y" for row in sequence] for sequence in SEQUENCES]
TREES = [Tree.parse("(S (NP (N dogs)) (VP (V bark)))"), Tree.parse("(S (NP (N cats)) (VP (V see) (NP (N dogs))))")]
GRAPHS = [np.triu(random.integers(0, 2, (n, n)), 1) for n in (4, 5, 6)]
GRAPHS = [upper + upper.T for upper in GRAPHS]


@dataclass(frozen=True)
class Animal:
    """How to fit a model of a kind, and what to ask of it."""

    fit: Callable[[], Any]
    use: Callable[[Any], Any]


def _used(case: Case, model: Any) -> Any:
    return outputs(case, case.load(model))


ZOO: dict[str, Animal] = {}


def _add(kind: str, fit: Callable[[], Any], use: Callable[[Any], Any]) -> None:
    def quiet() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fit()

    ZOO[kind] = Animal(quiet, use)


def _points(kind: str, make: Callable[..., Any], *more: Any, y: Any = LABELS, **settings: Any) -> None:
    use = lambda model: [getattr(model, verb)(POINTS) for verb in _verbs(model)]  # noqa: E731
    _add(kind, lambda: make(*more, **settings).fit(POINTS, y), use)


def _verbs(model: Any) -> list[str]:
    names = ("predict", "decision_function", "predict_proba", "score_samples", "transform")
    return [name for name in names if hasattr(model, name)]


def _bags(kind: str, make: Callable[..., Any], **settings: Any) -> None:
    _add(
        kind,
        lambda: make(**settings).fit(POINTS, bags=BAGS, proportions=SHARES),
        lambda model: [getattr(model, verb)(POINTS) for verb in _verbs(model)],
    )


# ------------------------------------------------------------------------------------------------ structured outputs

_add("Tagger", lambda: tagging.Tagger(max_iter=20).fit(SEQUENCES, TAGS), lambda m: m.predict(SEQUENCES))
_add(
    "HiddenMarkovModel",
    lambda: markov.HiddenMarkovModel(2, max_iter=5, random_state=0).fit([list(w) for w in WORDS]),
    lambda m: m.predict([list(w) for w in WORDS]),
)
SEGMENTS = [[(0, 2, "x"), (2, 5, "y")] for _ in SEQUENCES]
_add(
    "Segmenter",
    lambda: segmentation.Segmenter(3, loss="log", max_iter=10, random_state=0).fit(SEQUENCES, SEGMENTS),
    lambda m: m.predict(SEQUENCES),
)
_add("Parser", lambda: parsing.Parser(method="pcfg", rare=1).fit(None, TREES), lambda m: m.predict([["dogs", "bark"]]))
PAIRS = [("AB", "AB"), ("ABB", "AB"), ("BA", "BBA")]
COLUMNS = [[(0, 0), (1, 1)], [(0, 0), (1, 1)], [(0, 0), (1, 2)]]
_add("Aligner", lambda: alignment.Aligner(C=1.0, random_state=0).fit(PAIRS, COLUMNS), lambda m: m.predict(PAIRS))
CHAINS = [(x, np.array([[0, 1], [1, 2], [2, 3], [3, 4]])) for x in SEQUENCES]
_add(
    "GraphLabeler", lambda: labeling.GraphLabeler(max_iter=10, random_state=0).fit(CHAINS, TAGS),
    lambda m: m.predict(CHAINS),
)  # fmt: skip
MASKS = [np.where(np.arange(8) < 4, 0, 1)[None].repeat(8, 0) for _ in range(3)]
IMAGES = [mask + 0.3 * random.normal(size=mask.shape) for mask in MASKS]
_add(
    "GridLabeler", lambda: labeling.GridLabeler(block=4, max_iter=10, random_state=0).fit(IMAGES, MASKS),
    lambda m: m.predict(IMAGES),
)  # fmt: skip
SETS = [random.normal(size=(4, 2)) + np.array([[0, 0], [0, 0], [4, 4], [4, 4]]) for _ in range(5)]
PARTITIONS = [[0, 0, 1, 1] for _ in SETS]
_add(
    "SupervisedClusterer",
    lambda: clustering.SupervisedClusterer(C=0.3, tol=1e-2, random_state=0).fit(SETS, PARTITIONS),
    lambda m: m.predict(SETS),
)


class Sign(structured.CustomStructure):
    """The sign of a number."""

    def features(self, x: Any, y: Any) -> np.ndarray:
        """Number times sign, and the sign."""
        return np.array([x * y, y], dtype=float)

    def argmax(self, w: np.ndarray, x: Any, cost_to: Any = None) -> Any:
        """The better sign."""
        return max((-1, 1), key=lambda z: w @ self.features(x, z) + (cost_to is not None and z != cost_to))


NUMBERS = [-2.0, -1.0, 1.0, 2.0]


def _use_predictor(model: Any) -> Any:
    model.structure = Sign()
    return model.predict(NUMBERS)


_add(
    "StructuredPredictor",
    lambda: structured.StructuredPredictor(Sign(), max_iter=20, random_state=0).fit(NUMBERS, [-1, -1, 1, 1]),
    _use_predictor,
)
_add(
    "LabelRanker",
    lambda: ranking.LabelRanker("star").fit(POINTS, ranking.preference_graph.from_label(LABELS)),
    lambda m: m.predict(POINTS),
)
_points("Ranker", ranking.Ranker, "roc-area", y=np.repeat([0, 1], 12))

# ------------------------------------------------------------------------------------------------ vectors and texts

_add(
    "HashedClassifier",
    lambda: online.HashedClassifier(n_bits=8, random_state=0).fit(TEXTS, TEXT_LABELS),
    lambda m: [m.predict(TEXTS), m.predict_proba(TEXTS)],
)
_points("HashedRegressor", online.HashedRegressor, n_bits=8, y=TARGETS)
_points("LinearClassifier", classification.LinearClassifier, random_state=0)
_points("RelativeMarginSVC", classification.RelativeMarginSVC, B=5.0)
_points("SampledKNN", classification.SampledKNN, 0.5, 3, random_state=0)
_points("KMeansMajority", classification.KMeansMajority, fraction=0.5, random_state=0)
_points("CompactClassifier", classification.CompactClassifier, 4, max_iter=2, random_state=0)
_points("CompactNonlinearMap", maps.CompactNonlinearMap, 4, max_iter=2, random_state=0)
_points("CirculantProjection", maps.CirculantProjection, 4, random_state=0)
_points("FourierFeatures", maps.FourierFeatures, 8, random_state=0)
_points("PolynomialSketch", maps.PolynomialSketch, 8, random_state=0)
_points("CorrelationSelector", maps.CorrelationSelector)
_points("RandomProjection", maps.RandomProjection, 2, random_state=0)
_points("CodeClassifier", recognition.CodeClassifier, solver="omp", n_nonzero=2)
_points("SparseCoder", recognition.SparseCoder, n_nonzero=2)
_points("SparseRepresentationClassifier", recognition.SparseRepresentationClassifier)
_points("SignedHashProjection", maps.SignedHashProjection, 4, random_state=0)
_points("SignProjection", retrieval.SignProjection, 8, random_state=0)
_points("IterativeQuantization", retrieval.IterativeQuantization, 2, random_state=0)
_points("SpectralHashing", retrieval.SpectralHashing, 8)
_points("ShiftInvariantHashing", retrieval.ShiftInvariantHashing, 8, random_state=0)
_points("BilinearEmbedding", retrieval.BilinearEmbedding, 4, random_state=0)
_points("CirculantEmbedding", retrieval.CirculantEmbedding, 3, random_state=0)
_add("TextHasher", lambda: maps.TextHasher(n_bits=8).fit(TEXTS), lambda m: m.transform(TEXTS))
_add("StringHasher", lambda: maps.StringHasher(n_bits=8, max_length=3).fit(WORDS), lambda m: m.transform(WORDS))
_add("RecordHasher", lambda: maps.RecordHasher(8, [("city", "age")]).fit(RECORDS), lambda m: m.transform(RECORDS))
_add("TableEncoder", lambda: maps.TableEncoder().fit(RECORDS), lambda m: m.transform(RECORDS))
_add(
    "GraphletHasher", lambda: maps.GraphletHasher((3,), n_samples=20, n_bits=6).fit(GRAPHS),
    lambda m: m.transform(GRAPHS),
)  # fmt: skip
_add(
    "HashAccumulator", lambda: maps.HashAccumulator(6).update(WORDS),
    lambda m: [m.value, m.update(WORDS).value],
)  # fmt: skip
_add("CountMinSketch", lambda: maps.CountMinSketch(50, 3).update(WORDS), lambda m: [m.query(WORDS), m.update(WORDS)])

# ------------------------------------------------------------------------------------------------ kernels

SQUARE = (kernels.Linear() + 1.0) ** 2
for _kind, _settings in {
    "KernelSVC": {}, "KernelNuSVC": {"nu": 0.3}, "KernelOneClass": {"nu": 0.3}, "KernelMeanClassifier": {},
    "LinearProgramSVC": {}, "ParzenWindow": {}, "KernelFisher": {},
    "OnlineKernelClassifier": {"budget": 10, "random_state": 0},
    "RepresenterEstimator": {}, "KernelPCA": {"n_components": 2}, "IncompleteCholesky": {"rank": 3},
}.items():  # fmt: skip
    _points(_kind, getattr(methods, _kind), SQUARE, y=np.repeat([0, 1], 12), **_settings)
_points("KernelSVR", methods.KernelSVR, SQUARE, y=TARGETS)
LABEL_SETS = np.stack([np.repeat([0, 1], 12), np.arange(24) % 2], axis=1)
_add("JointSVM", lambda: multilabel.JointSVM(kernel=SQUARE).fit(POINTS, LABEL_SETS), lambda m: m.predict(POINTS))
_points("KernelRidge", methods.KernelRidge, SQUARE, y=TARGETS)
_add("CCA", lambda: methods.CCA(2, 0.1).fit(POINTS, OTHERS), lambda m: m.transform(POINTS, OTHERS))
_add(
    "MultiSetCCA", lambda: methods.MultiSetCCA(1).fit([POINTS, OTHERS, POINTS[:, :2]]),
    lambda m: m.transform([POINTS, OTHERS, POINTS[:, :2]]),
)  # fmt: skip
_add(
    "KernelCCA", lambda: methods.KernelCCA([kernels.NGram(2), kernels.Gaussian(0.5)], 2, 0.1).fit([WORDS, POINTS]),
    lambda m: m.transform([WORDS, POINTS]),
)  # fmt: skip
_add(
    "KernelDependencyEstimation",
    lambda: methods.KernelDependencyEstimation(kernels.Gaussian(0.5), kernels.NGram(2), 3).fit(POINTS, WORDS),
    lambda m: m.predict(POINTS[:3]),
)
_add(
    "PreImage", lambda: methods.PreImage(kernels.Gaussian(0.5), "fixed_point").fit(POINTS),
    lambda m: m.decode(np.full((1, len(POINTS)), 1 / len(POINTS))),
)  # fmt: skip
_points("NystroemMap", kernels.NystroemMap, kernels.Gaussian(0.5), 5, y=None, random_state=0)
_points("FourierMap", kernels.FourierMap, kernels.Gaussian(0.5), 7, y=None, random_state=0)
_points("AdditiveMap", kernels.AdditiveMap, kernels.ChiSquared(None), 2, y=None)
_add("Gram", lambda: kernels.Gram(kernels.NGram(2)).fit(WORDS), lambda m: m.transform(WORDS))
_add(
    "LinearStringModel",
    lambda: kernels.LinearStringModel(kernels.NGram(2), WORDS, np.linspace(-1, 1, len(WORDS)), 0.25),
    lambda m: m.predict(["ab", "bbaab"]),
)
_add("GaussianModel", lambda: kernels.GaussianModel().fit(POINTS), lambda m: m.scores(POINTS))
_add(
    "GaussianMixtureModel", lambda: kernels.GaussianMixtureModel(2, random_state=0).fit(POINTS),
    lambda m: m.scores(POINTS),
)  # fmt: skip
_add("MultinomialModel", lambda: kernels.MultinomialModel().fit(WORDS), lambda m: m.scores(WORDS))

# ------------------------------------------------------------------------------------------------ bags

_bags("AlternatingProportionSVM", proportions.AlternatingProportionSVM, n_init=1, random_state=0)
_bags("ConvexProportionSVM", proportions.ConvexProportionSVM)
_bags("InverseCalibration", proportions.InverseCalibration)
_bags("MeanMap", proportions.MeanMap)
_bags("ProportionClassifier", proportions.ProportionClassifier, max_iter=3, random_state=0)
_add(
    "MultipleInstanceSVM",
    lambda: proportions.MultipleInstanceSVM().fit(POINTS, bags=BAGS, labels=[0, 0, 0, 1, 1, 1]),
    lambda m: m.predict(POINTS),
)
_add(
    "MajorityBag", lambda: proportions.MajorityBag().fit(BAGS, dict(enumerate(SHARES))),
    lambda m: m.predict(BAGS),
)  # fmt: skip
VIDEOS = [random.normal(size=(6, 3)) + label for label in (0, 0, 0, 2, 2, 2)]
_add(
    "VideoEventDetector",
    lambda: proportions.VideoEventDetector((1, "all"), random_state=0).fit(VIDEOS, [0, 0, 0, 1, 1, 1]),
    lambda m: m.score_videos(VIDEOS),
)
_add(
    "AttributeModeler",
    lambda: proportions.AttributeModeler(random_state=0).fit(
        POINTS, np.repeat(np.arange(4), 6), np.array([[0.2, 0.8], [0.4, 0.3], [0.7, 0.1], [0.9, 0.6]])
    ),
    lambda m: m.predict(POINTS),
)

# What has no smaller animal above is as it stands among the cases of all estimators.
for _case in CASES:
    if _case.not_saved is None and _case.cls.__name__ not in ZOO:
        _add(_case.cls.__name__, partial(fit, _case), partial(_used, _case))
