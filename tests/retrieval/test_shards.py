"""ShardedIndex: the answers of one index, whatever the shards are."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.retrieval import HammingIndex, ShardedIndex

CODES = np.random.default_rng(0).integers(0, 256, (50, 2), dtype=np.uint8)
QUERIES = np.random.default_rng(1).integers(0, 256, (7, 2), dtype=np.uint8)


@pytest.fixture
def shards(tmp_path):
    """In memory, empty, and in a file."""
    HammingIndex(CODES[30:]).save(tmp_path / "last.codes")
    return [HammingIndex(CODES[:11]), HammingIndex(n_bits=16), HammingIndex(CODES[11:30]), tmp_path / "last.codes"]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_answers_are_those_of_one_index(shards, n_jobs):
    whole, sharded = HammingIndex(CODES), ShardedIndex(shards, n_jobs=n_jobs)
    assert len(sharded) == 50
    assert sharded.sizes.tolist() == [11, 0, 19, 20]
    assert "4 shards" in repr(sharded)
    for k in (1, 5, 60):  # 16 bits and 50 codes: many distances are equal
        for expected, found in zip(whole.search(QUERIES, k), sharded.search(QUERIES, k), strict=True):
            np.testing.assert_array_equal(found, expected)
    for expected, found in zip(whole.search_radius(QUERIES, 5), sharded.search_radius(QUERIES, 5), strict=True):
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_array_equal(other, one)


def test_ids_of_the_shards_are_kept():
    ids = np.arange(50)[::-1] + 100
    whole = HammingIndex(CODES, ids=ids)
    sharded = ShardedIndex([HammingIndex(CODES[:20], ids=ids[:20]), HammingIndex(CODES[20:], ids=ids[20:])])
    for expected, found in zip(whole.search(QUERIES, 4), sharded.search(QUERIES, 4), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_shards_that_do_not_fit_are_named(tmp_path):
    one, named = HammingIndex(CODES), HammingIndex(CODES, ids=range(50))
    for shards, message in (
        ([], "at least one"),
        ("x", "at least one"),
        ([one, HammingIndex(n_bits=8)], "shard 1 has codes of 8 bits, shard 0 of 16"),
        ([one, named], "some shards have explicit ids"),
        ([named, named], "id 0 is in the shards twice"),
    ):
        with pytest.raises(ValueError, match=message):
            ShardedIndex(shards)
    with pytest.raises(TypeError, match="a shard must be a HammingIndex"):
        ShardedIndex([3])
    with pytest.raises(FileNotFoundError):
        ShardedIndex([tmp_path / "none"])
    with pytest.raises(ValueError, match="k must"):
        ShardedIndex([one]).search(QUERIES, 0)


def test_a_shard_that_has_grown_is_refused():
    first = HammingIndex(CODES[:4])
    both = ShardedIndex([first, HammingIndex(CODES[4:9])])
    first.add(CODES[9:10])
    for ask in (lambda: both.search(QUERIES, 2), lambda: both.search_radius(QUERIES, 2)):
        with pytest.raises(ValueError, match="shard 0 has 5 codes, and had 4 when this index was made"):
            ask()
