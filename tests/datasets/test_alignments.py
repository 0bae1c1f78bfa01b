"""Planted alignments: what is drawn is consistent, and the planted scores are those of the model behind it."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.alignment import Aligner, Alignment
from mercer.datasets import make_alignments


def test_alignments_are_those_of_their_pairs():
    task = make_alignments(50, length=(0, 12), flank=3, random_state=1)
    assert len(task.pairs) == len(task.alignments) == 50
    for (s, t), y in zip(task.pairs, task.alignments, strict=True):
        assert len(Alignment(s, t, y)) <= 12
        assert set(s + t) <= set(task.alphabet)


def test_the_same_seed_gives_the_same_task():
    one, two, other = (make_alignments(5, random_state=seed) for seed in (3, 3, 4))
    assert one.pairs == two.pairs
    assert np.array_equal(one.substitution, two.substitution)
    assert one.pairs != other.pairs


def test_the_planted_scores_are_log_odds_of_a_distribution():
    task = make_alignments(4000, length=10, n_letters=4, gap_rate=0.1, gap_extension=0.4, random_state=0)
    counts, background = np.zeros((4, 4)), np.zeros(4)
    opened = extended = places = 0
    for (s, t), y in zip(task.pairs, task.alignments, strict=True):
        x = [np.array([task.alphabet.index(a) for a in z], int) for z in (s, t)]
        np.add.at(counts, (x[0][y[:, 0]], x[1][y[:, 1]]), 1)
        for side in (0, 1):
            loose = np.delete(x[side], y[:, side])
            background += np.bincount(loose, minlength=4)
        gaps = np.diff(np.concatenate([[[-1, -1]], y, [[len(s), len(t)]]]), axis=0) - 1
        opened += np.count_nonzero(gaps)
        extended += gaps.sum() - np.count_nonzero(gaps)
        places += gaps.size
    f = background / background.sum()
    found = np.log(counts / counts.sum() / np.outer(f, f)) + 2 * np.log(1 - opened / places)
    assert np.allclose(found, task.substitution, atol=0.25)  # rare pairs are few
    epsilon = extended / (opened + extended)
    assert np.log(epsilon) == pytest.approx(task.gap_extend, abs=0.05)
    rate = opened / places
    assert np.log(rate * (1 - epsilon) / (1 - rate)) == pytest.approx(task.gap_open, abs=0.05)


def test_planted_scores_align_better_than_identity():
    task = make_alignments(40, random_state=2)
    planted = Aligner.from_scores(task.substitution, task.gap_open, task.gap_extend, task.alphabet)
    plain = Aligner.from_scores(np.where(np.eye(20), 1.0, -1.0), -2.0, -0.5, task.alphabet)
    assert planted.score(task.pairs, task.alignments) > plain.score(task.pairs, task.alignments)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"n": -1}, "n must"),
        ({"length": (5, 2)}, "length"),
        ({"n_letters": 1}, "n_letters"),
        ({"n_letters": 60}, "n_letters"),
        ({"conservation": float("nan")}, "conservation"),
        ({"gap_rate": 1.0}, "gap_rate"),
        ({"gap_extension": 0.0}, "gap_extension"),
        ({"flank": -1}, "flank"),
    ],
)
def test_bad_arguments_are_named(arguments, name):
    with pytest.raises(ValueError, match=name):
        make_alignments(**arguments)
