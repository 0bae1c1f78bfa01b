"""The pages of a tagger and of a segmenter."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from mercer.report.model import model_page, segmenter_figures, tagger_figures
from mercer.segmentation import Segmenter
from mercer.tagging import Constraints, Tagger

X = [[{"word": "the"}, {"word": "dog"}, {"word": "barks"}], [{"word": "a"}, {"word": "dog"}]]
y = [["B-NP", "I-NP", "O"], ["B-NP", "I-NP"]]


def parsed(page: str) -> ET.Element:
    return ET.fromstring(page[page.index("<main>") : page.index("</main>") + len("</main>")])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"constraints": Constraints.bio(["B-NP", "I-NP", "O"])},
        {"features": "hashing", "n_bits": 8},
        {"penalty": "l1", "solver": "owlqn"},
        {"penalty": "elasticnet", "solver": "owlqn"},
        {"penalty": None, "max_iter": 3},
        {"solver": "sgd"},
        {"solver": "averaged-perceptron"},
        {"transitions": "features"},
        {"max_iter": 0},
    ],
)
def test_every_kind_of_tagger_has_a_page(options: dict) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tagger = Tagger(**options).fit(X, y)
    root = parsed(model_page(tagger, title="A tagger", top=3))
    headings = [h.text for h in root.iter("h2")]
    assert headings == ["Transitions", "Features", *(["Training"] if tagger.history_ else [])]
    assert [h.text for h in root.iter("h3")] == ["B-NP", "I-NP", "O"]


def test_it_shows_forbidden_transitions_features_and_history() -> None:
    tagger = Tagger(constraints=Constraints.bio(["B-NP", "I-NP", "O"])).fit(X, y, dev=(X, y))
    page = model_page(tagger, title="A tagger")
    for text in ("O → I-NP: forbidden", "first → I-NP: forbidden", "word=dog", "gradient norm", "held-out"):
        assert text in page


def test_names_from_the_data_never_become_markup() -> None:
    bad = "<script>alert(1)</script>"
    tagger = Tagger().fit([[{bad: True}, {"b": True}]], [[f"B-{bad}", "O&<i>"]])
    page = model_page(tagger, title=bad)
    assert "<script" not in page
    parsed(page)


def test_numeric_features_and_labels_have_names_too() -> None:
    tagger = Tagger().fit([np.eye(3)], [[0, 1, 2]])
    assert "x0" in model_page(tagger, title="numbers")


def test_many_labels_give_a_readable_page() -> None:
    labels = [f"L{i:03d}" for i in range(80)]
    tagger = Tagger(max_iter=3, tol=1.0).fit([[{"w": label} for label in labels]], [labels])
    page = model_page(tagger, title="many", top=1)
    assert "60 labels, of 80" in page


def test_figures_name_what_was_trained() -> None:
    figures = dict(tagger_figures(Tagger(C=0.5).fit(X, y)))
    assert figures["labels"] == "3: B-NP, I-NP, O"
    assert "C = 0.5" in figures["objective"]
    assert "converged" in figures["training"]


def test_top_must_be_positive() -> None:
    with pytest.raises(ValueError, match="top"):
        model_page(Tagger().fit(X, y), title="none", top=0)


@pytest.mark.parametrize(
    ("options", "headings"),
    [
        ({}, ["Lengths", "Transitions", "Features", "Training"]),
        ({"loss": "log", "length_model": "poisson"}, ["Lengths", "Transitions", "Features", "Training"]),
        ({"max_iter": 0}, ["Lengths", "Transitions", "Features"]),
        ({"max_length": {"O": 1}, "boundaries": False}, ["Lengths", "Transitions", "Features", "Training"]),
    ],
)
def test_every_kind_of_segmenter_has_a_page(options: dict, headings: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        segmenter = Segmenter(form="bio", **options).fit(X, y)
    root = parsed(model_page(segmenter, title="A segmenter", top=3))
    assert [h.text for h in root.iter("h2")] == headings
    assert [h.text for h in root.iter("h3")] == ["NP", "O"]


def test_pages_of_segmenters_show_what_there_is() -> None:
    X_numbers = [np.eye(4)]
    flat = model_page(Segmenter(1).fit(X_numbers, [[0, 1, 2, 1]]), title="segments of one position")
    assert "Lengths" not in flat
    assert "sum:x0" in flat
    cuts = model_page(Segmenter(form="boundaries").fit(X_numbers, [[0, 2]]), title="boundaries")
    assert "Transitions" not in cuts
    assert "every segment" in cuts


def test_lengths_of_many_labels_are_a_table() -> None:
    labels = [f"L{i}" for i in range(12)]
    words = [{"w": label} for label in labels for _ in range(2)]
    segmenter = Segmenter(max_iter=3, tol=1.0).fit([words], [[label for label in labels for _ in range(2)]])
    page = model_page(segmenter, title="many", top=1)
    assert "Lengths" in page
    parsed(page)


def test_features_against_a_label_are_the_lowest() -> None:
    segmenter = Segmenter(form="bio").fit(X, y)
    every = segmenter.top_features(100, label="O")
    assert segmenter.top_features(3, label="O", against=True) == sorted(every, key=lambda one: one[1])[:3]


def test_figures_name_what_a_segmenter_is() -> None:
    figures = dict(segmenter_figures(Segmenter(C=0.5, form="bio").fit(X, y)))
    assert figures["labels"] == "2: NP, O"
    assert "lengths 1 to 2 positions" in figures["segments"]
    assert "C = 0.5" in figures["objective"]
