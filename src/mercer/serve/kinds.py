"""The input form and verbs of every kind of model, or the reason why it is not served.

The tables are complete: a test walks the registry of model kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._state.registry import kind_of
from mercer.serve.errors import RequestError
from mercer.serve.forms import FORMS, Form, Views, form_of_objects, objects_of, size_of

__all__ = ["INPUTS", "PAGES", "REFUSED", "SPECIALS", "SPECIAL_CALLS", "Answerer", "answerer", "listed", "plain"]

INPUTS: dict[str, str] = {
    **dict.fromkeys(("Tagger", "HiddenMarkovModel", "HMMClassifier"), "sequences"),
    "Segmenter": "segments",
    "Parser": "tokens",
    "Aligner": "pairs",
    "GraphLabeler": "node graphs",
    "GridLabeler": "images",
    **dict.fromkeys(
        ("SupervisedClusterer", "VideoEventDetector", "ShapeClassifier", "ShapePartModel", "SpatialLDA"), "arrays"
    ),
    **dict.fromkeys(("HashedClassifier", "HashedRegressor"), "examples"),
    **dict.fromkeys(
        (
            "RelativeMarginSVC", "LinearClassifier", "SampledKNN", "KMeansMajority", "LabelRanker", "Ranker",
            "CompactClassifier", "CompactNonlinearMap", "CirculantProjection", "FourierFeatures", "PolynomialSketch",
            "CorrelationSelector", "RandomProjection", "CodeClassifier", "SparseCoder",
            "SparseRepresentationClassifier", "SignedHashProjection", "AttributeRetriever", "WeakAttributes",
            "CategoryAttributes", "ZeroShotClassifier", "GaussianModel", "GaussianMixtureModel", "AdditiveMap",
            "FourierMap", "OnlineJointSVM", "CompressedLabels", "HashedLabelSets", "NeighborLabels", "MultiLabelCRF",
            "SeparateSVM",
            "AlternatingProportionSVM", "ConvexProportionSVM", "MultipleInstanceSVM", "InverseCalibration", "MeanMap",
            "ProportionClassifier", "AttributeModeler", "ICP", "KernelRegistration", "FeatureMatching", "SoftAssign",
            "MixtureRegistration", "CoherentPointDrift", "BilinearEmbedding", "CirculantEmbedding", "SignProjection",
            "IterativeQuantization", "SpectralHashing", "ShiftInvariantHashing", "PreImage",
        ),
        "rows",
    ),
    **dict.fromkeys(
        ("ChowLiuTree", "LatentTree", "HomogeneityAnalysis", "DependencyModel", "BoltzmannMachine", "RBM"), "integers"
    ),
    "TableEncoder": "records",
    "RecordHasher": "records",
    **dict.fromkeys(("TextHasher", "StringHasher", "LinearStringModel", "MultinomialModel"), "strings"),
    "GraphletHasher": "graphs",
    **dict.fromkeys(("CountMinSketch", "MajorityBag"), "names"),
    **dict.fromkeys(
        (
            "Gram", "NystroemMap", "IncompleteCholesky", "KernelDependencyEstimation", "KernelFisher",
            "KernelMeanClassifier", "KernelNuSVC", "KernelOneClass", "KernelPCA", "KernelRidge", "KernelSVC",
            "KernelSVR", "LinearProgramSVC", "OnlineKernelClassifier", "ParzenWindow", "RepresenterEstimator",
            "JointSVM",
        ),
        "objects",
    ),
    **dict.fromkeys(("CCA", "MultiSetCCA", "KernelCCA", "KernelHomogeneityAnalysis"), "views"),
}  # fmt: skip
"""Kind of model → name of the form of its input."""

REFUSED: dict[str, str] = {
    "MaximumEntropyDiscrimination": "it wraps another model: save and serve its model_",
    "KernelizedModel": "its input form depends on the wrapped model: serve a kernel machine or a tagger",
    "StructuredPredictor": "its structure is Python code, which a model file does not contain",
    "Codebook": "an item is a set of descriptors, which has no request format",
    "HashAccumulator": "it aggregates its input and has no predictions for new objects",
}
"""Kind of model → why it is not served."""

PAGES: dict[str, str] = {
    "sequences": "tagger",
    "segments": "segmenter",
    "tokens": "parser",
    "pairs": "aligner",
    "node graphs": "graph",
    "images": "image",
}
"""Form of the input → web page of the model; for other forms the output decides (`Answerer.page`)."""

_VERBS = (
    "predict", "transform", "query", "decode", "score_samples", "log_prob", "decision_function", "predict_proba",
    "predict_marginals", "predict_segments", "boundary_marginals", "entropy", "log_likelihood", "marginals", "scores",
    "project", "score_videos",
)  # fmt: skip
_ONLY = {
    "decode": {"PreImage"},
    "log_likelihood": {"HiddenMarkovModel", "ShapePartModel", "SpatialLDA"},
    "marginals": {"ChowLiuTree", "LatentTree"},
    "scores": {"GaussianModel", "GaussianMixtureModel", "HiddenMarkovModel", "MultinomialModel"},
    "log_prob": {"GaussianModel", "GaussianMixtureModel", "MultinomialModel"},
}
"""Verbs whose name other kinds use for methods with additional arguments."""
_REGISTRATIONS = {
    "ICP", "KernelRegistration", "FeatureMatching", "SoftAssign", "MixtureRegistration", "CoherentPointDrift",
}  # fmt: skip
_CODES = {
    "BilinearEmbedding", "CirculantEmbedding", "SignProjection", "IterativeQuantization", "SpectralHashing",
    "ShiftInvariantHashing",
}  # fmt: skip
_SHARES = {
    "AlternatingProportionSVM", "ConvexProportionSVM", "InverseCalibration", "MeanMap", "ProportionClassifier",
    "MultipleInstanceSVM",
}  # fmt: skip


@dataclass(frozen=True)
class Answerer:
    """A loaded model with its available verbs.

    Attributes
    ----------
    model : object
    kind : str
    form : Form
    verbs : tuple of str
        Methods that take only new inputs; ``:predict`` calls the first one.
    k_best, explain : bool
        Whether the model lists the best outputs, and explains its predictions.
    classes : list or None
        Labels, in the order of probabilities.
    page : str
        The type of its web page.
    """

    model: Any
    kind: str
    form: Form
    verbs: tuple[str, ...]
    k_best: bool
    explain: bool
    classes: list[Any] | None
    page: str

    @property
    def probabilities(self) -> str | None:
        """Return the verb that gives probabilities."""
        return next((verb for verb in ("predict_proba", "predict_marginals") if verb in self.verbs), None)

    @property
    def specials(self) -> tuple[str, ...]:
        """Return the verbs with special requests."""
        return tuple(name for name, kinds in SPECIALS.items() if self.kind in kinds)

    def example(self) -> list[Any]:
        """Return valid instances."""
        return self.form.example(self.model)

    def ask(self, verb: str, X: Any) -> Any:
        """Return the results of a verb, one per instance."""
        method = getattr(self.model, verb)
        if not isinstance(X, Views):
            return method(X)
        result = method(*X.parts) if self.kind == "CCA" else method(list(X.parts))
        if isinstance(result, (list, tuple)):
            return list(zip(*(list(part) for part in result), strict=True))
        return result

    def best(self, X: Any, k: int) -> list[Any]:
        """Return the k best outputs of each instance, with their scores."""
        return self.model.k_best(X, k)

    def explained(self, X: Any, n: int) -> list[Any]:
        """Return the explanation of each prediction."""
        made: list[dict[str, Any]] = []
        for i in range(size_of(X)):
            try:
                one = self.model.explain([part[i] for part in X.parts] if isinstance(X, Views) else X[i], n)
            except ValueError as error:  # the input has been predicted already: it has no second output to compare with
                made.append({"problem": str(error).partition(":")[0]})
                continue
            terms = [{"name": t.name, "value": t.value, "contribution": t.contribution} for t in one.terms]
            made.append(
                {
                    "output": plain(one.output),
                    "against": plain(one.against),
                    "score": one.score,
                    "constant": one.constant,
                    "terms": terms,
                    "rest": one.rest,
                    "n_terms": one.n_terms,
                }
            )
        return made


def answerer(model: Any) -> Answerer:
    """Return the HTTP interface of a model; raise a ValueError with the reason if it is not served."""
    kind = kind_of(model)
    if kind in REFUSED:
        raise ValueError(f"a {kind} is not served: {REFUSED[kind]}")
    form = FORMS[INPUTS[kind]]
    if form.name == "objects":
        given = (getattr(model, name, None) for name in ("kernel", "input_kernel", "output_kernel"))
        if any(isinstance(kernel, str) and kernel == "precomputed" for kernel in given):
            raise ValueError(f"this {kind} is not served: its kernel is precomputed and undefined for new objects")
        form = form_of_objects(objects_of(model))
    verbs = tuple(verb for verb in _VERBS if kind in _ONLY.get(verb, {kind}) and hasattr(model, verb))
    classes = getattr(model, "classes_", None)
    known = None if classes is None else listed(classes)
    return Answerer(
        model,
        kind,
        form,
        verbs,
        hasattr(model, "k_best"),
        hasattr(model, "explain"),
        known,
        _page(kind, form, verbs),
    )


def _page(kind: str, form: Form, verbs: Sequence[str]) -> str:
    if kind in _REGISTRATIONS:
        return "registration"
    if kind in _CODES:
        return "retrieval"
    if kind in _SHARES:
        return "shares"
    if kind == "HiddenMarkovModel":
        return "hidden"
    if kind == "HMMClassifier":
        return "classifier"
    if form.name in PAGES:
        return PAGES[form.name]
    return "classifier" if "predict" in verbs else "numbers"


# ------------------------------------------------------------------------------------ verbs with requests of their own


def _register(model: Any, body: dict[str, Any]) -> dict[str, Any]:
    """Return the transform from one cloud to another, with the settings of a registration."""
    from sklearn.base import clone

    clouds = []
    for name in ("source", "target"):
        rows = body.get(name)
        if not isinstance(rows, list) or not rows:
            raise RequestError(422, f'"{name}" must be an array of points (arrays of numbers)')
        try:
            points = np.array(rows, dtype=np.float64)
        except (ValueError, TypeError, OverflowError):
            points = np.zeros(0)
        if points.ndim != 2 or not np.isfinite(points).all():
            raise RequestError(422, f'"{name}" must be an array of points (arrays of finite numbers of equal length)')
        clouds.append(points)
    pose = clone(model).fit(*clouds).result_
    return {
        "transform": pose.transform.tolist(),
        "moved": pose.apply(clouds[0]).tolist(),
        "fitness": pose.fitness,
        "rmse": pose.rmse,
        "radius": pose.radius,
        "certified": pose.certified,
        "reason": pose.reason,
        "converged": pose.converged,
    }


def _nearest(model: Any, body: dict[str, Any]) -> dict[str, Any]:
    """Return the rows whose codes are nearest to those of the queries."""
    from mercer.retrieval import angle_estimate, hamming_distances
    from mercer.serve.forms import Limits, numbers

    k = body.get("k", 5)
    if type(k) is not int or not 1 <= k <= 1000:
        raise RequestError(422, '"k" must be an integer from 1 to 1000')
    limits, width = Limits(), int(model.n_features_in_)
    for name in ("instances", "among"):
        if not isinstance(body.get(name), list) or not body[name]:
            raise RequestError(422, f'"{name}" must be an array of rows of {width} numbers')
    queries, rows = (numbers(body[name], limits, width) for name in ("instances", "among"))
    distances = np.asarray(hamming_distances(model.transform(queries), model.transform(rows)))
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    angles = np.degrees(angle_estimate(distances, int(model.n_bits)))
    nearest = [
        [{"index": int(j), "distance": int(distances[i, j]), "angle": float(angles[i, j])} for j in neighbours]
        for i, neighbours in enumerate(order)
    ]
    return {"nearest": nearest}


def _shares(model: Any, body: dict[str, Any]) -> dict[str, Any]:
    """Return the shares of the predicted classes, of all rows and of each group."""
    from mercer.serve.forms import FORMS, Limits

    instances, groups = body.get("instances"), body.get("groups")
    if not isinstance(instances, list) or not instances:
        raise RequestError(422, '"instances" must be an array of rows')
    if groups is not None and (not isinstance(groups, list) or len(groups) != len(instances)):
        raise RequestError(422, '"groups" must contain one group per instance')
    predicted = listed(model.predict(FORMS["rows"].read(model, instances, Limits())))
    classes = listed(model.classes_)

    def share(labels: list[Any]) -> dict[str, float]:
        return {str(c): labels.count(c) / len(labels) for c in classes}

    made: dict[str, Any] = {"predictions": predicted, "shares": share(predicted)}
    if groups is not None:
        members: dict[str, list[Any]] = {}
        for name, label in zip(groups, predicted, strict=True):
            members.setdefault(str(name), []).append(label)
        made["groups"] = {name: {"rows": len(places), **share(places)} for name, places in sorted(members.items())}
    return made


SPECIALS = {"register": _REGISTRATIONS, "nearest": _CODES, "shares": _SHARES}
SPECIAL_CALLS = {"register": _register, "nearest": _nearest, "shares": _shares}


# ----------------------------------------------------------------------------------------------------- answers as JSON


_WRITTEN = frozenset({str, int, bool, type(None)})  # lists of these are JSON as they are


def plain(value: Any) -> Any:
    """Convert a value to JSON types and arrays of numbers for orjson; non-finite numbers become null."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "fiub":
            return value.tolist() if value.ndim == 0 else np.ascontiguousarray(value)
        return [plain(item) for item in value.tolist()]
    if hasattr(value, "tocsr"):
        return _sparse_rows(value.tocsr())
    if type(value).__name__ == "Alignment":
        lines = str(value).splitlines()
        return {"pairs": value.pairs.tolist(), "score": value.score, "rows": [lines[0], lines[-1]]}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        if type(value) is list and _WRITTEN.issuperset(map(type, value)):
            return value
        return [plain(item) for item in value]
    return str(value)


def listed(value: Any) -> list[Any]:
    """Convert a collection to a list of JSON values."""
    made = plain(value)
    return made.tolist() if isinstance(made, np.ndarray) else made


def _sparse_rows(matrix: Any) -> list[dict[str, Any]]:
    rows = []
    for a, b in zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True):
        rows.append({"columns": matrix.indices[a:b].tolist(), "values": plain(matrix.data[a:b].astype(float))})
    return rows
