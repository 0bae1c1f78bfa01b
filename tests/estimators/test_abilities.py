"""Habits of scikit-learn × all public estimators: a full cell works, an empty one has its reason on the page.

The page ``docs/guide/abilities.md`` shows the table. After a change, ``PYTHONPATH=tests python -m
estimators.test_abilities`` prints it anew.
"""

from __future__ import annotations

import inspect
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimators.cases import CASES, Case

PAGE = Path(__file__).parent.parent.parent / "docs" / "guide" / "abilities.md"
HEADING = "## Habits of scikit-learn"
HABITS = ("set_output", "feature_names_in_", "sample_weight", "class_weight", "predict_proba")

FIRST: dict[str, Case] = {}
for _case in CASES:
    FIRST.setdefault(_case.cls.__name__, _case)

NO_CLASSES = frozenset(
    {
        "CoherentPointDrift", "DependencyModel", "HashedRegressor", "KernelDependencyEstimation", "KernelRidge",
        "KernelSVR", "LabelRanker", "PreImage", "Ranker", "RepresenterEstimator", "AttributeModeler",
    }
)  # fmt: skip
"""Those whose predictions are numbers, objects, orders or attributes."""

PROPORTIONS = (
    "AlternatingProportionSVM", "BagCV", "BinarizedAttributes", "ConvexProportionSVM", "InverseCalibration",
    "MajorityBag", "MeanMap", "MultipleInstanceSVM", "ProportionClassifier", "VideoEventDetector",
)  # fmt: skip
LABEL_SETS = (
    "CompressedLabels", "HashedLabelSets", "JointSVM", "KernelHomogeneityAnalysis", "MultiLabelCRF", "NeighborLabels",
    "OnlineJointSVM", "SeparateSVM",
)  # fmt: skip
MAPS = (
    "AdditiveMap", "CirculantProjection", "FourierFeatures", "FourierMap", "GraphletHasher", "PolynomialSketch",
    "RandomFeatures", "RandomProjection", "RecordHasher", "SignProjection", "SignedHashProjection", "StringHasher",
    "ShiftInvariantHashing",
    "TextHasher", "TableEncoder", "MinMaxRescaler", "ParagraphFeatures", "SegmentStatistics", "Gram",
    "EmpiricalKernelMap", "IncompleteCholesky", "NystroemMap", "SparseCoder", "PreImage", "Codebook",
)  # fmt: skip
INNER = (
    "AttributeModeler", "BoundaryClassifier", "CategoryAttributes", "ZeroShotClassifier", "CodeClassifier",
    "KernelizedModel",
)  # fmt: skip
NEIGHBORS = ("SampledKNN", "SparseRepresentationClassifier", "NeighborLabels")
VIEWS = ("CCA", "KernelCCA", "MultiSetCCA")
STRUCTURED = (
    "Aligner", "GraphLabeler", "GridLabeler", "Parser", "Segmenter", "StructuredPredictor", "SupervisedClusterer",
    "MaximumEntropyDiscrimination", "Tagger", "HiddenMarkovModel", "SpatialLDA", "ShapePartModel",
)  # fmt: skip

REASONS: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    "set_output": (
        (VIEWS, "it takes several views and gives a table for each of them"),
        (("ParagraphFeatures", "SegmentStatistics"), "it gives a table for each document, to the segmenter"),
        (
            (
                "CoherentPointDrift", "FeatureMatching", "ICP", "KernelRegistration", "MixtureRegistration",
                "SoftAssign",
            ),
            "it moves points, and columns are coordinates",
        ),
    ),
    "feature_names_in_": (),
    "sample_weight": (
        (MAPS, "it learns nothing that rows are summed for"),
        (PROPORTIONS, "labels or shares of bags are known, not classes of rows: repeat a bag to weigh it"),
        (NEIGHBORS, "rows are looked up, not summed"),
        (("SpatialLDA", "ShapePartModel", "ShapeClassifier"),
         "its parts are drawn from counts of single points: give a cloud twice to weigh it"),
        (("AttributeModeler",),
         "labels or shares of bags are known, not classes of rows: repeat a bag to weigh it"),
        (("AttributeRetriever",), "an example is a query, and its answer a set of all rows"),
    ),
    "class_weight": (
        (LABEL_SETS, "a row has several classes; thresholds are chosen by measure="),
        (PROPORTIONS, "classes of rows are unknown, and the shares say how frequent they are"),
        (STRUCTURED, "an output has many parts, and cost= says how bad a mistake in each is"),
        (NEIGHBORS, "rows are looked up, not summed"),
        (("KMeansMajority",), "its clusters know no classes; weigh rows with sample_weight"),
        (INNER, "the estimator inside it takes weights of classes"),
        (("HMMClassifier", "KernelFisher", "KernelMeanClassifier"),
         "it takes priors from the classes; weigh rows with sample_weight"),
        (("KernelOneClass",), "it has one class"),
        (("ShapeClassifier",), "it compares likelihoods, and classes have no priors"),
    ),
    "predict_proba": (
        (("Tagger", "Segmenter", "GraphLabeler", "GridLabeler", "HiddenMarkovModel"),
         "predict_marginals has the probability of every part"),
        (("Aligner",), "match_probabilities has the probability of every pair"),
        (("Parser", "StructuredPredictor", "MaximumEntropyDiscrimination", "SupervisedClusterer", "SpatialLDA",
          "ShapePartModel"),
         "an output is a whole, and its parts have no probabilities here"),
        ((*NEIGHBORS, "KMeansMajority"), "votes and residuals are no probabilities"),
        (("ZeroShotClassifier",), "scores of categories can be compared, but are no probabilities"),
        (("CodeClassifier", "BoundaryClassifier", "CategoryAttributes", "KernelizedModel"),
         "so does the estimator inside it, or it has margins only"),
        (("KernelOneClass",), "it has one class"),
        (("KernelSVC", "KernelNuSVC", "KernelMeanClassifier", "LinearProgramSVC",
          "RelativeMarginSVC", "OnlineKernelClassifier", "CompactClassifier", "KernelFisher", "LinearClassifier"),
         "margins are no probabilities: scikit-learn's CalibratedClassifierCV makes some of them"),
        (PROPORTIONS, "margins are no probabilities, and there are no labels to calibrate them"),
        (LABEL_SETS, "it has margins only"),
        (("ShapeClassifier",), "likelihoods of classes are compared by bounds, which are no probabilities"),
    ),
}  # fmt: skip


def reason(name: str, habit: str) -> str:
    """Why an estimator has no such habit."""
    for names, text in REASONS[habit]:
        if name in names:
            return text
    raise KeyError(f"{name} has no {habit}, and nothing says why")


def has(case: Case, habit: str) -> bool | None:
    """Whether the estimator has a habit; None where it cannot mean anything."""
    model, X = case.make(), case.data(0).args[0]
    if habit == "set_output":
        return hasattr(model, "set_output") if hasattr(model, "transform") else None
    if habit == "feature_names_in_":
        return True if isinstance(X, np.ndarray) and X.ndim == 2 else None
    if habit == "sample_weight":
        return "sample_weight" in inspect.signature(model.fit).parameters
    if not hasattr(model, "predict") or case.cls.__name__ in NO_CLASSES:
        return None
    if habit == "class_weight":
        return "class_weight" in model.get_params(deep=False)
    return hasattr(model, "predict_proba") or hasattr(fitted(case), "predict_proba")


def fitted(case: Case) -> Any:
    data = case.data(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case.make().fit(*data.args, **data.kwargs)


def cells(name: str) -> list[str]:
    """The row of an estimator on the page, with reasons in the place of their numbers."""
    out = []
    for habit in HABITS:
        found = has(FIRST[name], habit)
        out.append("–" if found is None else "●" if found else reason(name, habit))
    return out


def on_page() -> tuple[dict[str, list[str]], list[str]]:
    """Rows of the table, reasons put in, and the names of its columns."""
    text = PAGE.read_text().split(HEADING)[1].split("\n## ")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    reasons = dict(re.findall(r"^\[(\d+)\] (.+?)\.$", text, re.MULTILINE))
    rows = {
        row[0].strip("`"): [reasons[cell.strip("[]")] if cell.startswith("[") else cell for cell in row[1:]]
        for row in lines[1:]
    }
    return rows, [cell.strip("`") for cell in lines[0][1:]]


def test_every_estimator_has_a_row() -> None:
    rows, columns = on_page()
    assert columns == list(HABITS)
    assert sorted(rows) == sorted(FIRST), "PYTHONPATH=tests python -m estimators.test_abilities prints the table"


@pytest.mark.parametrize("name", sorted(FIRST))
def test_the_page_says_what_an_estimator_can_do(name: str) -> None:
    assert on_page()[0][name] == cells(name)


def page() -> str:
    """The table and its notes in Markdown."""
    rows, notes = [], []
    for name in sorted(FIRST):
        row = []
        for cell in cells(name):
            if len(cell) > 1:
                notes += [cell] if cell not in notes else []
                cell = f"[{notes.index(cell) + 1}]"
            row.append(cell)
        rows.append(f"| `{name}` | {' | '.join(row)} |")
    head = ["| | " + " | ".join(f"`{habit}`" for habit in HABITS) + " |", "|---" * (len(HABITS) + 1) + "|"]
    return "\n".join([*head, *rows, "", *(f"[{i}] {note}.\n" for i, note in enumerate(notes, 1))])


if __name__ == "__main__":
    print(page())
