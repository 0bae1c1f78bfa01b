"""Generated actions and paragraphs have what was asked for; the built-in prose is prose."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from mercer.data.prose import split_sentences
from mercer.datasets import load_topics_prose, make_actions, make_paragraphs


def frame_accuracy(task):
    """Accuracy of a classifier of frames, each person's first sequence held out."""
    n = len(task.X) // len(np.unique(task.persons))
    held = np.arange(len(task.X)) % n == 0
    X, y = ([part[i] for i in np.flatnonzero(~held)] for part in (task.X, task.y))
    model = RidgeClassifier().fit(np.concatenate(X), np.concatenate(y))
    X, y = ([part[i] for i in np.flatnonzero(held)] for part in (task.X, task.y))
    return model.score(np.concatenate(X), np.concatenate(y))


@pytest.mark.parametrize("emissions", ["gaussian", "histogram"])
@pytest.mark.parametrize("n_actions", [2, 3, 4, 6])
def test_actions_have_the_shape_asked_for(emissions, n_actions):
    task = make_actions(3, 60, n_actions, 4, emissions=emissions)
    assert len(task.X) == len(task.y) == len(task.segments) == 12
    assert task.persons.tolist() == np.repeat(range(4), 3).tolist()
    for x, y, segments, starts in zip(task.X, task.y, task.segments, task.starts, strict=True):
        assert x.shape == (60, 4 if emissions == "gaussian" else 50)
        assert segments[0][0] == 0
        assert segments[-1][1] == 60
        assert all(a[1] == b[0] and a[2] != b[2] for a, b in pairwise(segments))
        assert y.tolist() == [c for a, b, c in segments for _ in range(b - a)]
        assert starts.tolist() == [a for a, _, _ in segments]
        if emissions == "histogram":
            assert x.min() >= 0
            np.testing.assert_allclose(x.sum(axis=1), 1)


@pytest.mark.parametrize("emissions", ["gaussian", "histogram"])
def test_each_level_is_harder_than_the_one_before(emissions):
    def accuracy(level, seed):
        return frame_accuracy(make_actions(difficulty=level, n_actions=3, emissions=emissions, random_state=seed))

    found = [np.mean([accuracy(level, seed) for seed in range(4)]) for level in range(1, 6)]
    assert found[0] > 0.85
    assert (np.diff(found) < 0).all()


def test_labels_are_the_same_at_every_level():
    easy, hard = make_actions(difficulty=1, random_state=3), make_actions(difficulty=5, random_state=3)
    assert easy.segments == hard.segments
    assert not np.allclose(easy.X[0], hard.X[0])


def test_durations_follow_their_means():
    task = make_actions(40, 400, 2, 1, duration=(5.0, 25.0))
    lengths = [[], []]
    for segments in task.segments:
        for a, b, c in segments[:-1]:  # the last one is cut
            lengths[c].append(b - a)
    assert np.mean(lengths[0]) == pytest.approx(5, rel=0.15)
    assert np.mean(lengths[1]) == pytest.approx(25, rel=0.15)


def test_cycles_of_one_action_are_told_apart_by_their_drift():
    task = make_actions(2, 100, 3, 2, stay=1.0, drift=1.0, duration=10.0)
    assert all(len(np.unique(y)) == 1 for y in task.y)
    assert all(len(segments) > 5 for segments in task.segments)
    jumps, others = [], []
    for x, starts in zip(task.X, task.starts, strict=True):
        steps = np.linalg.norm(np.diff(x, axis=0), axis=1)
        at = np.isin(np.arange(1, 100), starts)
        jumps += steps[at].tolist()
        others += steps[~at].tolist()
    assert np.mean(jumps) > 1.15 * np.mean(others)


@pytest.mark.parametrize("maker", [make_actions, make_paragraphs])
def test_the_same_seed_gives_the_same_task(maker):
    a, b, c = maker(random_state=5), maker(random_state=5), maker(random_state=6)
    first, second, third = (task.X[0].tolist() if maker is make_actions else task.documents for task in (a, b, c))
    assert first == second != third


def test_paragraphs_have_the_sizes_asked_for():
    task = make_paragraphs(5, (2, 4), (3, 5), (4, 6), n_topics=3)
    assert len(task) == 5
    for document, starts, topics in zip(task.documents, task.starts, task.topics, strict=True):
        sizes = np.diff(np.append(starts, len(document)))
        assert starts[0] == 0
        assert 2 <= len(starts) <= 4
        assert set(sizes) <= {3, 4, 5}
        assert all(4 <= len(sentence.split()) <= 6 for sentence in document)
        assert np.flatnonzero(np.diff(topics)).tolist() == (starts[1:] - 1).tolist()
        assert split_sentences(" ".join(document)) == document
    assert task.lengths.tolist() == [len(d) for d in task.documents]


def test_sentences_of_a_paragraph_share_words_and_cues_open_paragraphs():
    task = make_paragraphs(10, topic_share=0.7, cue_share=1.0)
    same, other = [], []
    openers, rest = set(), set()
    for document, starts in zip(task.documents, task.starts, strict=True):
        bags = [set(s.lower().strip(".").split()) for s in document]
        for t in range(1, len(document)):
            shared = len(bags[t] & bags[t - 1]) / len(bags[t] | bags[t - 1])
            (other if t in starts else same).append(shared)
        for t, sentence in enumerate(document):
            (openers if t in starts else rest).add(sentence.split()[0].strip(".").lower())
    assert np.mean(same) > 2 * np.mean(other)
    assert len(openers) <= 3
    assert not openers & rest


def test_the_prose_of_python_reads_as_prose():
    task = load_topics_prose()
    assert len(task) > 15
    assert task.lengths.min() >= 8
    assert task.lengths.sum() > 800
    assert task.names == sorted(task.names)
    sentences = [sentence for document in task.documents for sentence in document]
    assert np.mean([sentence[-1] in '.?!:)"”' for sentence in sentences]) > 0.99
    unwanted = (">>>", "* ", "|", "+--", "New in version", "Changed in version")
    assert not any(sentence.startswith(unwanted) for sentence in sentences)
    assert not any("::=" in sentence or "\n" in sentence for sentence in sentences)


def test_no_paragraph_of_the_prose_occurs_twice():
    task = load_topics_prose()
    paragraphs = [
        " ".join(document[a:b])
        for document, starts in zip(task.documents, task.starts, strict=True)
        for a, b in zip(starts, np.append(starts[1:], len(document)), strict=True)
    ]
    assert len(set(paragraphs)) == len(paragraphs)
    assert len(load_topics_prose(min_sentences=40)) < len(task)


@pytest.mark.parametrize(
    ("maker", "arguments", "message"),
    [
        (make_actions, {"difficulty": 6}, "difficulty"),
        (make_actions, {"emissions": "poisson"}, "emissions"),
        (make_actions, {"n_actions": 0}, "n_actions"),
        (make_actions, {"n_actions": 1}, "stay=1"),
        (make_actions, {"n_frames": 0}, "n_frames"),
        (make_actions, {"stay": 1.5}, "stay"),
        (make_actions, {"drift": -1.0}, "drift"),
        (make_actions, {"duration": 0.5}, "duration"),
        (make_actions, {"duration": (9.0, 3.0)}, "duration"),
        (make_paragraphs, {"n_topics": 1}, "n_topics"),
        (make_paragraphs, {"topic_share": -0.1}, "topic_share"),
        (make_paragraphs, {"cue_share": "all"}, "cue_share"),
        (make_paragraphs, {"n_sentences": (4, 2)}, "n_sentences"),
        (make_paragraphs, {"n_words": 0}, "n_words"),
        (make_paragraphs, {"vocabulary": 0}, "vocabulary"),
        (load_topics_prose, {"min_sentences": 0}, "min_sentences"),
    ],
)
def test_bad_arguments_are_named(maker, arguments, message):
    with pytest.raises(ValueError, match=message):
        maker(**arguments)
