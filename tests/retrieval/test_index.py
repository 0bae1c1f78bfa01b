"""HammingIndex: brute force for any length, ids, removal, filters, radius, files."""

from __future__ import annotations

import pickle
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import _core
from mercer.retrieval import HammingIndex, IndexFileError, hamming_distances, pack_codes, unpack_codes
from reference.codes import nearest, packed


def random_bits(n, n_bits, seed=0, spread=0.5):
    return np.random.default_rng(seed).random((n, n_bits)) < spread


@pytest.fixture(params=_core.instruction_sets())
def instruction_set(request):
    before = _core.instruction_set()
    _core.use_instruction_set(request.param)
    yield request.param
    _core.use_instruction_set(before)


@pytest.mark.parametrize("n_bits", [1, 7, 8, 63, 64, 65, 128, 190, 256, 300, 512, 777, 2500])
def test_neighbours_are_those_of_brute_force_on_every_instruction_set(n_bits, instruction_set):
    bits, queries = random_bits(67, n_bits), random_bits(5, n_bits, seed=1)
    for method in ("scan", "multi-index"):
        index = HammingIndex(pack_codes(bits), n_bits=n_bits, method=method)
        distances, ids = index.search(pack_codes(queries), k=9)
        for q, query in enumerate(queries):
            assert list(zip(distances[q], ids[q], strict=True)) == nearest(bits, query, 9), (method, q)


def test_a_lone_query_that_reads_several_streams_finds_what_brute_force_does(instruction_set):
    n, n_bits = 700_001, 64  # longer than the streams, with a rest, and with many ties
    codes = np.random.default_rng(0).integers(0, 256, (n, n_bits // 8), dtype=np.uint8)
    query, allowed = codes[n // 2 : n // 2 + 1] ^ 3, np.arange(n) % 3 > 0
    exact = hamming_distances(query, codes)[0]
    index = HammingIndex(codes, n_jobs=1)
    for wanted in (None, allowed):
        places = np.arange(n) if wanted is None else np.flatnonzero(wanted)
        order = places[np.argsort(exact[places], kind="stable")]
        distances, ids = index.search(query, k=300, filter=wanted)
        np.testing.assert_array_equal(ids[0], order[:300])
        np.testing.assert_array_equal(distances[0], exact[order[:300]])
        _, (ids,) = index.search_radius(query, 20, filter=wanted)
        np.testing.assert_array_equal(ids, order[exact[order] <= 20])


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 60), n_bits=st.integers(1, 150), k=st.integers(1, 70), seed=st.integers(0, 9999),
    method=st.sampled_from(["scan", "multi-index"]), threads=st.sampled_from([1, 3]),
    spread=st.sampled_from([0.02, 0.5]),
)  # fmt: skip
def test_ties_fall_to_the_earlier_code_and_missing_ones_are_marked(n, n_bits, k, seed, method, threads, spread):
    bits, queries = random_bits(n, n_bits, seed, spread), random_bits(2, n_bits, seed + 1, spread)
    allowed = np.random.default_rng(seed).random(n) < 0.7
    index = HammingIndex(pack_codes(bits), n_bits=n_bits, method=method, n_jobs=threads)
    distances, ids = index.search(pack_codes(queries), k=k, filter=allowed)
    for q, query in enumerate(queries):
        expected = nearest(bits, query, k, allowed)
        found = len(expected)
        assert list(zip(distances[q, :found], ids[q, :found], strict=True)) == expected
        assert (ids[q, found:] == -1).all()
        assert (distances[q, found:] == n_bits + 1).all()


@pytest.mark.parametrize("method", ["scan", "multi-index"])
@pytest.mark.parametrize("n_bits", [24, 64, 100])
def test_many_near_codes_are_found_among_many(method, n_bits):
    random = np.random.default_rng(3)
    bits = random_bits(5000, n_bits, 2)
    bits[1000:1040] = bits[0] ^ (random.random((40, n_bits)) < 0.05)
    index = HammingIndex(pack_codes(bits), n_bits=n_bits, method=method, n_jobs=2)
    distances, ids = index.search(pack_codes(bits[:1]), k=30)
    assert list(zip(distances[0], ids[0], strict=True)) == nearest(bits, bits[0], 30)
    for radius in (0, 3, 9):
        within, names = index.search_radius(pack_codes(bits[:1]), radius)
        expected = [(d, p) for d, p in nearest(bits, bits[0], 5000) if d <= radius]
        assert list(zip(within[0], names[0], strict=True)) == expected


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_results(threads):
    bits, queries = random_bits(20_000, 20, 4), random_bits(300, 20, 5)  # short codes: many ties
    reference = HammingIndex(pack_codes(bits), n_bits=20).search(pack_codes(queries), k=25)
    found = HammingIndex(pack_codes(bits), n_bits=20, n_jobs=threads).search(pack_codes(queries), k=25)
    np.testing.assert_array_equal(found[0], reference[0])
    np.testing.assert_array_equal(found[1], reference[1])
    one = HammingIndex(pack_codes(bits), n_bits=20, n_jobs=threads).search(pack_codes(queries[:1]), k=25)
    np.testing.assert_array_equal(one[1][0], reference[1][0])


def test_adding_in_pieces_removing_and_filtering_by_ids_is_like_a_list_of_pairs():
    random = np.random.default_rng(0)
    bits = random_bits(200, 77, 6)
    index, kept = HammingIndex(n_bits=77), {}
    start = 0
    for size in (1, 3, 8, 20, 0, 7, 100, 61):
        ids = 1000 - np.arange(start, start + size)
        index.add(pack_codes(bits[start : start + size]), ids=ids)
        kept.update(zip(ids.tolist(), bits[start : start + size], strict=True))
        start += size
        gone = random.choice(sorted(kept), size=len(kept) // 5, replace=False)
        assert index.remove([*gone, 5]) == len(gone)
        for name in gone.tolist():
            del kept[name]
        assert index.ids.tolist() == list(kept)
        np.testing.assert_array_equal(unpack_codes(index.codes, 77) > 0, np.array(list(kept.values())).reshape(-1, 77))
    names, rows = list(kept), np.array(list(kept.values()))
    query = random_bits(1, 77, 7)
    for allowed in (None, np.array([name % 3 == 0 for name in names])):
        expected = [(d, names[p]) for d, p in nearest(rows, query[0], 10, allowed)]
        by_id = [] if allowed is None else np.array(names)[allowed].tolist()
        filters = [allowed] if allowed is None else [allowed, by_id, [*by_id, 999_999]]
        for chosen in filters:
            distances, ids = index.search(pack_codes(query), k=10, filter=chosen)
            assert list(zip(distances[0], ids[0], strict=True)) == expected
    np.testing.assert_array_equal(index.get([names[3]]), pack_codes(rows[3:4]))
    with pytest.raises(KeyError, match="no code with id 999999"):
        index.get([999_999])


def test_new_ids_go_on_after_the_highest():
    index = HammingIndex(pack_codes(random_bits(3, 9)), n_bits=9, ids=[4, 9, 2])
    assert index.add(pack_codes(random_bits(2, 9, 1))).ids.tolist() == [4, 9, 2, 10, 11]
    plain = HammingIndex(pack_codes(random_bits(3, 9)), n_bits=9)
    plain.remove([0])
    assert plain.ids.tolist() == [1, 2]
    assert plain.add(pack_codes(random_bits(1, 9))).ids.tolist() == [1, 2, 3]


def test_packing_is_that_of_the_definition_and_of_numpy():
    bits = random_bits(9, 21)
    np.testing.assert_array_equal(pack_codes(bits), packed(bits))
    np.testing.assert_array_equal(pack_codes(np.where(bits, 0.0, -1e-30)), packed(bits))
    np.testing.assert_array_equal(unpack_codes(packed(bits), 21), np.where(bits, 1, -1))
    expected = (bits[:, None, :] != bits[None, :, :]).sum(axis=2)
    np.testing.assert_array_equal(hamming_distances(pack_codes(bits)), expected)


@pytest.mark.parametrize(("codes", "message"), [
    (np.zeros((2, 3), np.float64), "packed codes"),
    (np.zeros((2, 3), np.uint8), "2 bytes"),
    (np.zeros(2, np.uint8), "matrix with a code in each row"),
    (np.full((1, 2), 255, np.uint8), "bits after bit 10"),
])  # fmt: skip
def test_codes_of_another_form_are_refused(codes, message):
    index = HammingIndex(n_bits=10)
    for call in (index.add, index.search):
        with pytest.raises(ValueError, match=message):
            call(codes)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: HammingIndex(), "n_bits is needed"),
    (lambda: HammingIndex(n_bits=0), "n_bits"),
    (lambda: HammingIndex(n_bits=8, method="tree"), "method"),
    (lambda: HammingIndex(n_bits=8, n_jobs=0), "n_jobs"),
    (lambda: HammingIndex(np.zeros((2, 1), np.uint8), ids=[1, 1]), "1 occurs twice"),
    (lambda: HammingIndex(np.zeros((2, 1), np.uint8), ids=[1]), "each of the 2 codes"),
    (lambda: HammingIndex(np.zeros((2, 1), np.uint8), ids=[-1, 3]), "between 0"),
    (lambda: HammingIndex(np.zeros((2, 1), np.uint8), ids=[0.5, 1]), "integers"),
    (lambda: HammingIndex(np.zeros((2, 1), np.uint8)).search(np.zeros((1, 1), np.uint8), k=0), "k must"),
    (lambda: HammingIndex(np.zeros((2, 1), np.uint8)).search(np.zeros((1, 1), np.uint8), filter=[True]), "2 codes"),
    (lambda: HammingIndex(np.zeros((2, 1), np.uint8)).search_radius(np.zeros((1, 1), np.uint8), -1), "radius"),
])  # fmt: skip
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("method", ["scan", "multi-index"])
def test_an_empty_index_and_no_queries_are_no_special_case(method):
    empty = HammingIndex(n_bits=30, method=method)
    distances, ids = empty.search(pack_codes(random_bits(2, 30)), k=3)
    assert (ids == -1).all()
    assert distances.shape == (2, 3)
    full = HammingIndex(pack_codes(random_bits(5, 30)), n_bits=30, method=method)
    assert full.search(np.zeros((0, 4), np.uint8), k=3)[1].shape == (0, 3)
    assert full.search_radius(np.zeros((0, 4), np.uint8), 3) == ([], [])


def test_a_noncontiguous_matrix_of_codes_is_read_as_it_looks():
    bits = random_bits(12, 40)
    wide = np.zeros((12, 10), np.uint8)
    wide[:, ::2] = pack_codes(bits)
    index = HammingIndex(wide[:, ::2], n_bits=40)
    np.testing.assert_array_equal(index.codes, pack_codes(bits))


@pytest.mark.parametrize("ids", [None, np.arange(50, 89)])
@pytest.mark.parametrize("mmap", [True, False])
def test_a_file_gives_the_same_index_and_adding_to_it_leaves_the_file_alone(tmp_path, ids, mmap):
    bits = random_bits(39, 70)
    index = HammingIndex(pack_codes(bits), n_bits=70, ids=ids)
    path = tmp_path / "codes.index"
    index.save(path)
    before = path.read_bytes()
    loaded = HammingIndex.load(path, mmap=mmap, verify=True)
    for method in ("scan", "multi-index"):
        loaded.method = method
        queries = pack_codes(bits[:4])
        for found, expected in zip(loaded.search(queries), index.search(queries), strict=True):
            np.testing.assert_array_equal(found, expected)
    loaded.add(pack_codes(bits[:1]))
    loaded.remove([int(index.ids[0])])
    assert len(loaded) == 39
    assert path.read_bytes() == before
    copied = pickle.loads(pickle.dumps(HammingIndex.load(path, mmap=mmap)))
    np.testing.assert_array_equal(copied.codes, pack_codes(bits))


def test_an_empty_index_can_be_saved(tmp_path):
    HammingIndex(n_bits=12).save(tmp_path / "empty")
    assert len(HammingIndex.load(tmp_path / "empty", verify=True)) == 0


def test_files_that_are_damaged_cut_or_of_another_version_are_refused(tmp_path):
    path = tmp_path / "codes.index"
    HammingIndex(pack_codes(random_bits(20, 33)), n_bits=33, ids=np.arange(20) + 3).save(path)
    good = path.read_bytes()

    def error(data, **options):
        path.write_bytes(data)
        with pytest.raises(IndexFileError) as caught:
            HammingIndex.load(path, **options)
        return str(caught.value)

    assert "not an index" in error(b"PK" + good[2:])
    assert "not an index" in error(b"")
    assert "version 2" in error(good[:8] + struct.pack("<I", 2) + good[12:])
    for length in range(len(good)):  # every byte
        assert ("not an index" if length < 8 else "cut short") in error(good[:length])
    assert "cut short" in error(good + b"\0")
    for at in range(16, 128):
        assert "damaged" in error(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
    for at in (128, 200, len(good) - 1):
        assert "damaged" in error(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :], verify=True)


@pytest.mark.parametrize("codes", [128, np.int64(128), "codes", object()])
def test_codes_that_are_no_matrix_are_named(codes):
    with pytest.raises(ValueError, match="codes must be a matrix of packed codes"):
        HammingIndex(codes)


def test_a_number_of_bits_in_the_place_of_codes_is_told_where_it_belongs():
    with pytest.raises(ValueError, match=r"use HammingIndex\(n_bits=128\)"):
        HammingIndex(128)
    index = HammingIndex(n_bits=128)
    for verb in (index.add, index.search):
        for wrong in (5, None, [[1, 2]], "x"):
            with pytest.raises(ValueError, match="must be a matrix of packed codes"):
                verb(wrong)
    assert len(index) == 0
