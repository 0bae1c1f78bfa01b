"""Every way to write a segmentation reads back as it was; what is wrong is named."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from mercer.data import (
    LabelIndex,
    Segmentations,
    Sequences,
    SpanSequences,
    as_segments,
    check_segments,
    segments_from_bio,
    segments_from_boundaries,
    segments_from_frames,
    segments_to_bio,
    segments_to_boundaries,
    segments_to_frames,
)


@st.composite
def segmentation(draw, labels=("a", "b")):
    sizes = draw(st.lists(st.integers(1, 4), max_size=6))
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(int).tolist()
    return [(a, b, draw(st.sampled_from(labels))) for a, b in pairwise(bounds)]


def length_of(segments):
    return segments[-1][1] if segments else 0


@given(segmentation())
def test_triples_come_back_from_bio_tags_boundaries_and_numbers(y):
    n = length_of(y)
    assert segments_from_bio(segments_to_bio(y)) == y
    labels = [label for _, _, label in y]
    assert segments_from_boundaries(segments_to_boundaries(y), n, labels) == y
    assert Segmentations.from_segments([y], [n], ["a", "b"]).segments(["a", "b"]) == [y]
    assert check_segments([list(one) for one in y], n) == y


@given(segmentation())
def test_frames_come_back_and_merge_only_neighbours_of_one_label(y):
    frames = segments_to_frames(y)
    runs = segments_from_frames(frames)
    assert segments_to_frames(runs) == frames
    assert all(a[2] != b[2] for a, b in pairwise(runs))
    if all(a[2] != b[2] for a, b in pairwise(y)):
        assert runs == y


def test_neighbours_of_one_label_are_lost_in_frames_only():
    y = [(0, 2, "a"), (2, 3, "a")]
    assert segments_from_frames(segments_to_frames(y)) == [(0, 3, "a")]
    assert segments_from_bio(segments_to_bio(y)) == y


@given(st.lists(st.sampled_from(["O", "B-x", "I-x", "B-y", "I-y"]), max_size=10))
def test_bio_tags_come_back(tags):
    valid = all(
        tag[0] != "I" or (t > 0 and tags[t - 1] in (f"B-{tag[2:]}", f"I-{tag[2:]}")) for t, tag in enumerate(tags)
    )
    if valid:
        assert segments_to_bio(segments_from_bio(tags)) == tags
    else:
        with pytest.raises(ValueError, match=r"position \d: 'I-. *' does not follow|does not follow"):
            segments_from_bio(tags)


FORMS = {
    "triples": [[(0, 2, "a"), (2, 3, "b")], []],
    "bio": [["B-a", "I-a", "B-b"], []],
    "frames": [["a", "a", "b"], []],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("given_form", ["auto", None])
def test_every_form_is_recognised(form, given_form):
    wanted = [[(0, 2, "a"), (2, 3, "b")], []]
    assert as_segments(FORMS[form], [3, 0], given_form or form) == wanted


def test_boundaries_are_recognised_by_their_number():
    wanted = [[(0, 2, 0), (2, 3, 0)], [(0, 1, 0), (1, 4, 0)]]
    assert as_segments([[0, 2], [1]], [3, 4]) == wanted
    assert as_segments([np.array([2]), np.array([0, 1])], [3, 4]) == wanted
    assert as_segments([[0, 1]], [2], "boundaries") == [[(0, 1, 0), (1, 2, 0)]]
    assert as_segments([np.array([3, 3, 7])], [3]) == [[(0, 2, 3), (2, 3, 7)]]


@pytest.mark.parametrize(
    ("y", "lengths", "form", "message"),
    [
        ([[(0, 2, "a"), (1, 3, "b")]], [3], "auto", r"sequence 0: segment 1: \[1, 3\) overlaps the one before it"),
        ([[(0, 1, "a"), (2, 3, "b")]], [3], "auto", "the positions 1 to 1 before it belong to no segment"),
        ([[(0, 1, "a")]], [3], "auto", "the segments end at 1, the sequence at 3: they leave the rest out"),
        ([[(0, 4, "a")]], [3], "auto", "they go beyond it"),
        ([[(0, 0, "a")]], [3], "auto", "empty or reversed"),
        ([[(0, 1)]], [3], "auto", r"expected \(start, end, label\)"),
        ([[("x", 1, "a")]], [3], "auto", "must be integers"),
        ([[2, 1]], [4], "boundaries", "boundaries must ascend: 1 comes after 2"),
        ([[1, 1]], [4], "boundaries", "boundaries must ascend: 1 comes after 1"),
        ([[4]], [4], "boundaries", "boundary 4 lies outside the sequence, which has 4 positions"),
        ([[-1]], [4], "boundaries", "boundary -1 lies outside"),
        ([[0.5]], [4], "boundaries", "integers"),
        ([["a"]], [2], "frames", "2 positions in X and 1 labels in y"),
        ([["a"]], [2], "auto", "sequence 0 has 2 positions in X and 1 labels in y"),
        ([["B-a", "I-b"]], [2], "auto", "'I-b' does not follow"),
        ([["B-a", "x"]], [2], "bio", "expected 'O', 'B-NAME' or 'I-NAME', found 'x'"),
        ([["a"]], [1, 2], "auto", "2 sequences in X, 1 in y"),
        ([["a"]], [1], "tags", "form must be one of"),
    ],
)
def test_what_is_wrong_is_named(y, lengths, form, message):
    with pytest.raises(ValueError, match=message):
        as_segments(y, lengths, form)


def test_what_is_no_list_is_refused():
    with pytest.raises(TypeError, match="expected a list of segmentations"):
        as_segments("abc", [3])
    with pytest.raises(TypeError, match="sequence 0: expected a list of labels, boundaries or segments, found int"):
        as_segments([3], [3])


def test_an_unknown_label_is_named():
    with pytest.raises(ValueError, match=r"sequence 1, segment \[0, 2\): unknown label 'c'; known are 'a', 'b'"):
        Segmentations.from_segments([[], [(0, 2, "c")]], [0, 2], LabelIndex(["a", "b"]))


# -------------------------------------------------------------------------------------------- many of them


@given(st.lists(segmentation(labels=(0, 1, 2)), max_size=5))
def test_stacked_segmentations_hold_what_was_given(y):
    sizes = [length_of(one) for one in y]
    stacked = Segmentations.from_segments(y, sizes, range(3))
    assert len(stacked) == len(y)
    assert stacked.complete
    assert stacked.segments(range(3)) == y
    assert stacked.frames().tolist() == [c for one in y for c in segments_to_frames(one)]
    starts = [int(sum(sizes[:i])) + s for i, one in enumerate(y) for s, _, _ in one]
    assert stacked.starts.tolist() == starts
    again = Segmentations.from_marks(*stacked.marks(), stacked.positions)
    assert again.segments(range(3)) == y
    runs = Segmentations.from_frames(stacked.frames(), stacked.positions)
    assert runs.segments(range(3)) == [segments_from_frames(segments_to_frames(one)) for one in y]
    for a in range(len(y) + 1):
        for b in range(a, len(y) + 1):
            assert stacked[a:b].segments(range(3)) == y[a:b]
            assert stacked[a:b].frames().tolist() == [c for one in y[a:b] for c in segments_to_frames(one)]
    assert [one.segments(range(3))[0] for one in stacked] == y


def test_a_sequence_without_segmentation_has_no_labels():
    y = Segmentations([2], [1], [0, 0, 1], [0, 3, 5])
    assert not y.complete
    assert y.frames().tolist() == [-1, -1, -1, 1, 1]
    assert y.starts.tolist() == [3]
    assert y.segments("ab") == [[], [(0, 2, "b")]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1], [0, 0], [0, 1], [0, 1]), "equally many"),
        (([1], [0], [0, 1], [0, 1, 2]), "number of sequences"),
        (([1], [0], [0, 2], [0, 1]), "firsts must begin with 0, end"),
        (([0, 1], [0, 0], [0, 2], [0, 1]), "length of at least 1"),
        (([1], [-1], [0, 1], [0, 1]), "label of at least 0"),
        (([1], [0], [0, 1], [0, 3]), "sequence 0: the segments cover 1 positions of 3"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Segmentations(*arguments)


# ------------------------------------------------------------------------------------- features of segments


def spans(sparse=False):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(7, 2))
    X = Sequences(csr_matrix(matrix) if sparse else matrix, [0, 3, 3, 7], edges=rng.normal(size=(7, 1)))
    return SpanSequences(X.rows, X.offsets, spans=rng.normal(size=(7, 2, 3)), edges=X.edges)


@pytest.mark.parametrize("sparse", [False, True])
def test_features_of_segments_follow_their_sequences(sparse):
    X = spans(sparse)
    part = X[2:]
    assert isinstance(part, SpanSequences)
    assert part.spans is X.spans
    chosen = X[[2, 0]]
    np.testing.assert_array_equal(chosen.spans, np.concatenate([X.spans[3:], X.spans[:3]]))
    assert chosen.n_edge_features == 1
    assert SpanSequences.concatenate([X[:1], X[1:]]) == X
    assert X[2:] == X[[2]]
    assert X[[2, 0]] != X
    assert pickle.loads(pickle.dumps(X)) == X


def test_features_of_segments_come_from_a_function():
    X = Sequences(np.arange(5.0)[:, None], [0, 2, 5])
    found = SpanSequences.from_function(X, lambda x, s, e: [x[s:e].sum(), e - s], 2)
    np.testing.assert_array_equal(found.spans[3], [[3.0, 1.0], [7.0, 2.0]])
    np.testing.assert_array_equal(found.spans[1], [[1.0, 1.0], [0.0, 0.0]])  # the second goes beyond its sequence
    texts = [["a", "bc"], ["d", "ef", "g"]]
    words = SpanSequences.from_function(X, lambda x, s, e: [len("".join(x[s:e]))], 2, inputs=texts)
    assert words.spans[2, 1, 0] == 3.0
    assert words.n_span_features == 1


def test_features_of_segments_are_checked():
    X = Sequences(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="with 3 positions, found"):
        SpanSequences(X.rows, X.offsets, spans=np.zeros((2, 2, 1)))
    with pytest.raises(ValueError, match=r"segment \[0, 2\): the function gave shape"):
        SpanSequences.from_function(X, lambda x, s, e: np.zeros(e - s), 2)
    with pytest.raises(ValueError, match="3 inputs"):
        SpanSequences.from_function(X, lambda x, s, e: [1.0], 2, inputs=[1, 2, 3])
    with pytest.raises(ValueError, match="some of the parts"):
        SpanSequences.concatenate([spans(), X])
