"""Scores of label sequences, against hand-counted cases and a slow second reading of the span rules."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.metrics import (
    SpanScore,
    is_span_labelling,
    sequence_accuracy,
    span_f1,
    span_report,
    spans,
    token_accuracy,
)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("", []),
        ("O O", []),
        ("B-A I-A O", [(0, 2, "A")]),
        ("B-A B-A", [(0, 1, "A"), (1, 2, "A")]),
        ("B-A I-B", [(0, 1, "A"), (1, 2, "B")]),
        ("O I-A I-A", [(1, 3, "A")]),  # IOB1
        ("I-A B-A I-A", [(0, 1, "A"), (1, 3, "A")]),  # IOB1, touching
        ("I-A I-B", [(0, 1, "A"), (1, 2, "B")]),
        ("B-A I-A E-A S-A O", [(0, 3, "A"), (3, 4, "A")]),  # BIOES
        ("B-A L-A U-A U-B", [(0, 2, "A"), (2, 3, "A"), (3, 4, "B")]),  # BILOU
        ("E-A E-A", [(0, 1, "A"), (1, 2, "A")]),
        ("B-A E-A I-A", [(0, 2, "A"), (2, 3, "A")]),
        ("B-A E-B", [(0, 1, "A"), (1, 2, "B")]),
        ("B I I O B", [(0, 3, ""), (4, 5, "")]),  # no types
        ("B-per-son I-per-son", [(0, 2, "per-son")]),
    ],
)
def test_spans_follow_conlleval(labels: str, expected: list) -> None:
    assert spans(labels.split()) == expected


def slow_spans(labels: list[str]) -> list[tuple[int, int, str]]:
    """Every gap between two tokens asked by itself: does a span end here, does one start here?"""
    padded = ["O", *labels, "O"]

    def starts(before: str, here: str) -> bool:
        if here == "O":
            return False
        return here[0] in "BSU" or before[0] in "OESLU" or before[2:] != here[2:]

    def ends(before: str, here: str) -> bool:
        if before == "O":
            return False
        return before[0] in "ESLU" or here[0] in "OBSU" or before[2:] != here[2:]

    gaps = list(enumerate(pairwise(padded)))
    begin = [t for t, gap in gaps if starts(*gap)]
    end = [t for t, gap in gaps if ends(*gap)]
    return [(a, b, labels[a][2:]) for a, b in zip(begin, end, strict=True)]


span_labels = st.one_of(st.just("O"), st.builds("{}-{}".format, st.sampled_from("BILUES"), st.sampled_from("AB")))
label_lists = st.lists(span_labels, max_size=12)


@given(label_lists)
def test_spans_equal_the_slow_reading(labels: list[str]) -> None:
    assert spans(labels) == slow_spans(labels)


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["A", "B", ""])), max_size=6))
def test_all_schemes_spell_the_same_spans(pieces: list[tuple[int, str]]) -> None:
    expected, iob2, iob1, bioes, bilou = [], [], [], [], []
    for n, kind in pieces:
        start = len(iob2)
        if not kind:
            for scheme in (iob2, iob1, bioes, bilou):
                scheme += ["O"] * n
            continue
        touching = bool(expected) and expected[-1][1] == start and expected[-1][2] == kind
        expected.append((start, start + n, kind))
        iob2 += [f"B-{kind}"] + [f"I-{kind}"] * (n - 1)
        iob1 += [f"B-{kind}" if touching else f"I-{kind}"] + [f"I-{kind}"] * (n - 1)
        for scheme, last, single in ((bioes, "E", "S"), (bilou, "L", "U")):
            inside = [f"B-{kind}"] + [f"I-{kind}"] * (n - 2) + [f"{last}-{kind}"]
            scheme += [f"{single}-{kind}"] if n == 1 else inside
    assert spans(iob2) == spans(iob1) == spans(bioes) == spans(bilou) == expected


@pytest.mark.parametrize("label", ["NN", "", "X-NP", "BNP", "b-NP", None, 3])
def test_labels_that_spell_no_span_are_refused(label: object) -> None:
    with pytest.raises(ValueError, match="is no span label"):
        spans(["O", label])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("labels", "answer"),
    [
        (["B-NP", "I-NP", "O"], True),
        ({"B-NP"}, True),
        (["B", "I", "O"], True),
        ([["B-NP", "I-NP"], ["O"]], True),
        (np.array(["B-NP", "O"]), True),
        (["S-A", "B-A", "E-A", "I-A", "O"], True),
        (["NN", "VB"], False),
        (["B-NP", "NN"], False),
        (["O"], False),
        ([], False),
        (["B", "I"], False),
        (["A", "B", "I", "O"], False),
        (["0", "1"], False),
        ([0, 1], False),
        ([None, "B-NP"], False),
    ],
)
def test_span_labellings_are_recognised(labels: list, answer: bool) -> None:
    assert is_span_labelling(labels) is answer


def test_report_counts_by_hand() -> None:
    y_true = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "B-NP", "O"]]
    y_pred = [["B-NP", "I-NP", "B-PP", "B-VP"], ["B-NP", "I-NP", "O"]]
    report = span_report(y_true, y_pred)
    assert (report.support, report.predicted, report.correct) == (4, 4, 2)
    assert (report.precision, report.recall, report.f1) == (0.5, 0.5, 0.5)
    assert report.accuracy == 5 / 7
    assert list(report.by_label) == ["NP", "PP", "VP"]
    assert report.by_label["NP"] == SpanScore(1 / 2, 1 / 3, 2 / 5, support=3, predicted=2, correct=1)
    assert report.by_label["PP"] == SpanScore(0.0, 0.0, 0.0, support=0, predicted=1, correct=0)
    assert span_f1(y_true, y_pred) == report.f1
    assert dataclasses.asdict(report)["by_label"]["VP"]["correct"] == 1


def test_report_prints_an_aligned_table() -> None:
    report = span_report([["B-a-rather-long-type", "B-X", "O"]], [["B-a-rather-long-type", "O", "O"]])
    lines = str(report).split("\n")
    table = [line for line in lines[:-1] if line]
    assert len({len(line) for line in table}) == 1
    assert [line.split()[0] for line in table] == ["precision", "X", "a-rather-long-type", "all"]
    assert lines[-1].split() == ["token", "accuracy", "0.6667"]


def test_no_spans_at_all_score_zero_not_nan() -> None:
    report = span_report([["O", "O"]], [["O", "O"]])
    assert (report.precision, report.recall, report.f1, report.accuracy) == (0.0, 0.0, 0.0, 1.0)
    assert "all spans" in str(report)


@given(st.lists(label_lists.filter(bool), min_size=1, max_size=4))
def test_the_truth_scores_one(y: list[list[str]]) -> None:
    assert token_accuracy(y, y) == sequence_accuracy(y, y) == 1.0
    assert span_f1(y, y) == (1.0 if any(map(spans, y)) else 0.0)


def test_accuracies_count_tokens_and_sequences() -> None:
    y_true, y_pred = [["a", "b", "c"], ["a"]], [["a", "x", "x"], ["a"]]
    assert token_accuracy(y_true, y_pred) == 0.5
    assert sequence_accuracy(y_true, y_pred) == 0.5


def test_arrays_score_like_lists() -> None:
    y_true, y_pred = [["B-A", "O"], ["O"]], [["B-A", "B-A"], ["O"]]
    as_arrays = [np.array(y) for y in y_pred]
    assert token_accuracy(y_true, as_arrays) == token_accuracy(y_true, y_pred)
    assert span_report([np.array(y) for y in y_true], as_arrays) == span_report(y_true, y_pred)
    assert type(token_accuracy(y_true, as_arrays)) is float


@pytest.mark.parametrize("score", [token_accuracy, sequence_accuracy, span_f1, span_report])
def test_what_does_not_fit_is_refused(score) -> None:
    with pytest.raises(ValueError, match="y_true has 2 sequences, but y_pred has 1"):
        score([["O"], ["O"]], [["O"]])
    with pytest.raises(ValueError, match="sequence 2 has 1 labels in y_true, but 2 in y_pred"):
        score([["O"], ["O"]], [["O"], ["O", "O"]])
    with pytest.raises(ValueError, match="y_true must be a list of label sequences, found 'B-NP'"):
        score(["B-NP", "O"], ["B-NP", "O"])
    with pytest.raises(ValueError, match="holds no"):
        score([], [])
