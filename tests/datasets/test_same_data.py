"""The same seed gives the same data in every version: results that name a generator and its seed can be repeated."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mercer import datasets
from mercer.data.trees import Tree
from mercer.datasets.clouds import make_mug
from mercer.datasets.dominance import make_mixed_dominance, make_nondominant


def numbers(value: Any) -> Iterator[float]:
    """All numbers of a value of any kind, texts as their checksums."""
    if value is None:
        yield -1.0
    elif isinstance(value, (str, Tree)):
        yield zlib.crc32(str(value).encode()) / 2**32
    elif isinstance(value, (bool, int, float, np.generic)):
        yield float(value)
    elif sparse.issparse(value):
        yield from numbers(value.toarray())
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        yield from value.shape
        yield from value.ravel().astype(float).tolist()
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from numbers(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from numbers(str(key))
            yield from numbers(value[key])
    elif isinstance(value, Iterable):
        items = list(value)
        yield len(items)
        for item in items:
            yield from numbers(item)
    else:
        raise TypeError(f"what are the numbers of a {type(value).__name__}?")


def fingerprint(value: Any) -> tuple[int, float, float]:
    """How many numbers, their mean, and a mean that depends on their order."""
    every = np.fromiter(numbers(value), float)
    return len(every), float(every.mean()), float((every * np.cos(np.arange(len(every)))).mean())


MADE: dict[str, tuple[Callable[[], Any], tuple[int, float, float]]] = {
    "alignments": (
        lambda: datasets.make_alignments(6),
        (826, 8.48460783479, -0.0521935252531),
    ),
    "alignments with flanks": (
        lambda: datasets.make_alignments(
            4, 9, 5, conservation=1.0, gap_rate=0.2, gap_extension=0.3, flank=3, random_state=1
        ),
        (125, 4.23047808888, -0.263726398722),
    ),
    "chains": (
        lambda: datasets.make_chain_task(6, 4, 5, n_labels=4, n_features=60, active=6),
        (425, 1.38780017651, -0.028773769643),
    ),
    "chains of any length": (
        lambda: datasets.make_chain_task(5, 3, (2, 6), n_labels=3, n_features=40, active=5, random_state=1),
        (238, 1.34560512575, -0.310105782977),
    ),
    "mug": (
        lambda: make_mug(200),
        (602, 0.378106434523, 0.330880950371),
    ),
    "noisy mug": (
        lambda: make_mug(60, noise=0.1, random_state=1),
        (182, 0.322240711888, 0.304019628042),
    ),
    "coreference": (
        lambda: datasets.make_coreference(3, 2),
        (1084, 1.07863140619, 0.024976043165),
    ),
    "noisy coreference": (
        lambda: datasets.make_coreference(2, 2, n_entities=(2, 3), n_mentions=(4, 8), noise=0.5, random_state=1),
        (293, 0.650968068541, -0.0882481148442),
    ),
    "digit codes": (
        lambda: datasets.make_digit_codes(8, 4),
        (6216, 0.529963113931, 3.71281700662e-05),
    ),
    "nondominant": (
        lambda: make_nondominant(3, n=20),
        (44, 1.88636363636, 0.00212566280211),
    ),
    "scattered nondominant": (
        lambda: make_nondominant(4, 0.5, 30, 0.8, 0.3, random_state=1),
        (64, 1.80432344659, 0.275550101927),
    ),
    "mixed dominance": (
        lambda: make_mixed_dominance(0.5, 10, 8),
        (94, 1.84889415978, 0.0873745757406),
    ),
    "mixed dominance, one side": (
        lambda: make_mixed_dominance(1.0, 6, 8, 0.3, random_state=1),
        (58, 0.48275862069, 0.0895394992867),
    ),
    "faces": (
        lambda: datasets.make_faces(3, 4, (12, 10), random_state=0),
        (1457, 0.24020549423, -0.00199484666542),
    ),
    "faces without noise": (
        lambda: datasets.make_faces(2, 6, (9, 8), noise=0.0, random_state=1),
        (881, 0.306950116539, 0.00625353727382),
    ),
    "motif graphs": (
        lambda: datasets.make_motif_graphs(4),
        (530, 22.6320754717, 0.678617107695),
    ),
    "labelled motif graphs": (
        lambda: datasets.make_motif_graphs(4, (10, 12), 2.0, 2, n_labels=3, random_state=1),
        (271, 6.9778597786, 0.336739408017),
    ),
    "toy of proportions": (
        lambda: datasets.make_proportion_toy(0),
        (805, 0.997929674962, 0.466733809209),
    ),
    "regions": (
        lambda: datasets.make_regions(4),
        (939, 1.81232107088, -0.0301622853646),
    ),
    "harder regions": (
        lambda: datasets.make_regions(3, (4, 6), 1.5, 0.5, 7, random_state=1),
        (260, 0.919495448424, -0.0265071995253),
    ),
    "actions": (
        lambda: datasets.make_actions(2, 60),
        (1304, 1.62349629557, -0.0692031904649),
    ),
    "actions of more persons": (
        lambda: datasets.make_actions(2, 60, 3, 3, difficulty=2, n_features=4, duration=(4.0, 9.0), random_state=1),
        (2074, 2.6182229527, 0.0819014877919),
    ),
    "hard actions": (
        lambda: datasets.make_actions(2, 60, difficulty=3, stay=0.2, drift=0.3, duration=6.0, random_state=2),
        (1408, 2.63914759486, 0.00972918135306),
    ),
    "actions as counts": (
        lambda: datasets.make_actions(2, 40, emissions="histogram", random_state=3),
        (8240, 0.171966019417, -0.00109957284982),
    ),
    "paragraphs": (
        lambda: datasets.make_paragraphs(3),
        (264, 4.39560436152, 0.255027421619),
    ),
    "paragraphs with cues": (
        lambda: datasets.make_paragraphs(
            2, 4, 3, 5, n_topics=3, topic_share=0.8, cue_share=0.5, vocabulary=90, random_state=1
        ),
        (68, 2.03200851202, 0.348388288133),
    ),
    "shapes": (
        lambda: datasets.make_shapes(3, 24),
        (7002, 0.739577531808, 0.00700624398408),
    ),
    "shapes of three kinds": (
        lambda: datasets.make_shapes(3, 32, 0.2, 3, (1, 3), random_state=1),
        (12403, 0.773038386395, 0.000381954535822),
    ),
    "topic tree": (
        lambda: datasets.make_topic_tree(12, 60),
        (136, 80.9325621272, -76.4583815838),
    ),
    "flat topic tree": (
        lambda: datasets.make_topic_tree(6, 40, depth=2, length=8, zipf=0.0, ambiguity=0.0, random_state=1),
        (90, 116.001945664, 58.0822026647),
    ),
    "topic tree with signals": (
        lambda: datasets.make_topic_tree(9, 40, depth=2, signal=(0.2, 0.3), ambiguity=0.5, random_state=2),
        (93, 167.97629444, -103.274063703),
    ),
    "Zipf corpus": (
        lambda: datasets.make_zipf_corpus(12, 300),
        (27, 1.30611309722, 0.772235613443),
    ),
    "Zipf corpus of three classes": (
        lambda: datasets.make_zipf_corpus(9, 200, 3, length=20, separation=2.0, mixing=0.2, random_state=1),
        (21, 1.51343325749, 0.194251353923),
    ),
    "treebank": (
        lambda: datasets.make_treebank(6, n_labels=5, n_tags=6, n_rules=30),
        (58, 1.40767208322, 0.148526210187),
    ),
    "treebank of few words": (
        lambda: datasets.make_treebank(
            4, n_labels=4, n_tags=5, n_rules=24, n_words=20, min_length=3, max_length=6, mismatch=1.0, random_state=1
        ),
        (29, 1.18844875692, 0.419496063211),
    ),
    "videos": (
        lambda: datasets.make_videos(8),
        (5075, 0.148760693432, 0.0505543170017),
    ),
    "videos of three events": (
        lambda: datasets.make_videos(
            6, (20, 30), 8, n_events=3, share=0.3, run=2, distractors=0.2, separation=1.0, scene=0.1, random_state=1
        ),
        (1458, 0.258719998077, 0.0210380977208),
    ),
    "attribute categories": (
        lambda: datasets.make_attribute_categories(5, 6),
        (799, 0.307644766205, 0.0848547778666),
    ),
    "blurred attribute categories": (
        lambda: datasets.make_attribute_categories(
            4, 5, 3, 6, low=0.1, high=0.6, separation=1.0, scatter=0.2, random_state=1
        ),
        (233, 0.437194816474, 0.101944772244),
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_a_seed_gives_the_data_that_it_gave_before(name: str) -> None:
    make, expected = MADE[name]
    assert fingerprint(make()) == pytest.approx(expected, rel=1e-7, abs=1e-9)
