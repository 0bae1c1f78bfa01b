"""Accumulators do not depend on the order of their stream, and sketches are never too low."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mercer
from mercer._core import hashing
from mercer.maps import CountMinSketch, HashAccumulator, RecordHasher
from reference import records as slow

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

WORDS = ["cat", "dog", "naïve—日本", "", "a longer word than the others", "dog"]

# ------------------------------------------------------------------------------------------------ accumulators


def true_sums(keys: list[str], weights: list[float], n_bits: int, signed: bool, seed: int) -> np.ndarray:
    """The sum of each bucket, exact and rounded once."""
    terms: list[list[float]] = [[] for _ in range(1 << n_bits)]
    for key, weight in zip(keys, weights, strict=True):
        hash_ = slow.name_hash(key, seed)
        terms[hash_ % (1 << n_bits)].append(-weight if signed and hash_ >> 63 else weight)
    return np.array([math.fsum(bucket) for bucket in terms])


STREAM = st.lists(
    st.tuples(
        st.sampled_from(WORDS),
        st.one_of(st.integers(-(10**6), 10**6), st.floats(2.0**-12, 1e12), st.floats(-1e12, -(2.0**-12))),
    ),
    max_size=40,
)


@given(STREAM, st.sampled_from([1, 2, 6]), st.booleans(), st.integers(0, 3), st.randoms())
@settings(max_examples=50, deadline=None)
def test_sums_are_exact_in_any_order_and_any_pieces(stream, n_bits, signed, seed, random):
    keys, weights = [key for key, _ in stream], [float(weight) for _, weight in stream]
    batch = HashAccumulator(n_bits, signed, seed).update(keys, np.array(weights, np.float64))
    assert batch.value.tolist() == true_sums(keys, weights, n_bits, signed, seed).tolist()

    shuffled = list(zip(keys, weights, strict=True))
    random.shuffle(shuffled)
    cut = random.randint(0, len(shuffled))
    left, right = HashAccumulator(n_bits, signed, seed), HashAccumulator(n_bits, signed, seed)
    for key, weight in shuffled[:cut]:
        left.update(key, weight)
    right.update([key for key, _ in shuffled[cut:]], [weight for _, weight in shuffled[cut:]] or None)
    assert left.merge(right).value.tobytes() == batch.value.tobytes()
    assert HashAccumulator(n_bits, signed, seed).merge(right).value.tobytes() == right.value.tobytes()


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_long_stream_in_shuffled_merged_chunks_equals_the_batch(signed, dtype):
    random = np.random.default_rng(0)
    keys = random.integers(0, 5000, 40_000)
    weights = random.standard_normal(40_000) * 10.0 ** random.integers(-30, 10, 40_000)  # also far below 2^-64
    batch = HashAccumulator(8, signed, dtype=dtype).update(keys, weights)
    parts = [HashAccumulator(8, signed, dtype=dtype) for _ in range(3)]
    for number, chunk in enumerate(np.array_split(random.permutation(40_000), 17)):
        parts[number % 3].update(keys[chunk], weights[chunk])
    merged = parts[2].merge(parts[0]).merge(parts[1])
    assert merged.value.dtype == dtype
    assert merged.value.tobytes() == batch.value.tobytes()
    assert np.add.accumulate(weights)[-1] != np.add.accumulate(weights[::-1])[-1]  # plain sums depend on the order


def test_small_weights_are_rounded_to_the_grid_and_no_further():
    accumulator = HashAccumulator(1)
    accumulator.update("cat", 2.0**-64).update("cat", 1.0)
    assert accumulator.update("cat", -1.0).value.sum() == 2.0**-64  # nothing was lost beside the 1
    assert HashAccumulator(1).update("cat", 2.0**-66).value.sum() == 0.0
    assert HashAccumulator(1).update("cat", 3 * 2.0**-66).value.sum() == 2.0**-64
    weight = np.nextafter(2.0**-12, 1)
    assert HashAccumulator(1).update("cat", weight).value.sum() == weight


def test_whole_weights_need_half_the_memory():
    accumulator = HashAccumulator(10).update(WORDS, [1, -2, 3, 4, 5, 2**53])
    assert set(accumulator.to_state()[1]) == {"_whole"}
    assert set(accumulator.update("cat", 0.5).to_state()[1]) == {"_whole", "_fraction"}


def test_values_round_once():
    # Twice rounded, 2^53 + 1 + 2^-60 would come out as 2^53.
    accumulator = HashAccumulator(1).update("x", 2.0**53).update("x", 1.0).update("x", 2.0**-60)
    assert accumulator.value.max() == 2.0**53 + 2
    narrow = HashAccumulator(1, dtype=np.float32).update("x", 2.0**24).update("x", 1.0).update("x", 2.0**-60)
    assert narrow.value.max() == np.float32(2.0**24 + 2)


@pytest.mark.parametrize(
    "keys",
    [
        WORDS,
        tuple(WORDS),
        (word for word in WORDS),
        [word.encode() for word in WORDS],
        np.array(WORDS),
        np.array(WORDS, dtype=object),
        np.array([word.encode() for word in WORDS]),
        np.array(WORDS).astype(np.dtype("U40").newbyteorder(">")),
        pa.array(WORDS),
        pa.chunked_array([WORDS[:2], WORDS[2:]]),
        pa.array(WORDS, pa.large_string()),
        pa.array(WORDS).dictionary_encode(),
        pd.Series(WORDS),
        pd.Series(WORDS, dtype=object),
        pd.Series(WORDS, dtype="category"),
        pd.Categorical(WORDS),
        pd.Index(WORDS),
        pl.Series(WORDS),
    ],
    ids=lambda keys: type(keys).__name__,
)
def test_strings_of_every_kind_are_the_same_keys(keys):
    expected = true_sums(WORDS, [1.0] * len(WORDS), 12, False, 3)
    assert HashAccumulator(12, seed=3).update(keys).value.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64, np.uint8, np.uint64, object])
def test_integers_of_every_kind_are_the_same_keys(dtype):
    numbers = np.array([3, 100, 7, 3], dtype=dtype)
    expected = HashAccumulator(12).update([3, 100, 7, 3]).value
    assert HashAccumulator(12).update(numbers).value.tolist() == expected.tolist()
    assert HashAccumulator(12).update(pa.array([3, 100, 7, 3])).value.tolist() == expected.tolist()
    one_by_one = HashAccumulator(12)
    for number in numbers:
        one_by_one.update(number)
    assert one_by_one.value.tolist() == expected.tolist()
    below_zero = HashAccumulator(12).update(np.array([-1], np.int8)).value
    assert below_zero.tolist() == HashAccumulator(12).update([-1]).value.tolist()


def test_text_and_numbers_are_different_keys():
    assert HashAccumulator(20).update("7").value.tolist() != HashAccumulator(20).update(7).value.tolist()


def test_a_stream_of_tokens_equals_the_counted_record():
    row = RecordHasher(10, signed=True).transform([{"cat": 2, "dog": 1.5}])
    stream = HashAccumulator(10, signed=True).update(["cat", "dog", "cat"], [1, 1.5, 1])
    assert (stream.to_csr() != row).nnz == 0
    assert stream.to_csr().shape == (1, 1024)


def test_hashes_can_be_fed_directly():
    hashes = hashing.hash_keys(WORDS, 5)
    expected = HashAccumulator(9, True, 5).update(WORDS, 2.5).value
    assert HashAccumulator(9, True, 5).update_hashes(hashes, 2.5).value.tolist() == expected.tolist()


def test_an_accumulator_comes_back_from_a_file(tmp_path):
    for weights in (None, 0.3):
        accumulator = HashAccumulator(6, True, 2**63 + 1, np.float32).update(WORDS, weights)
        mercer.save(accumulator, tmp_path / "stream.mercer")
        found = mercer.load(tmp_path / "stream.mercer")
        assert found.value.tobytes() == accumulator.value.tobytes()
        assert found.merge(accumulator).value.tobytes() == accumulator.merge(accumulator).value.tobytes()


@pytest.mark.parametrize(
    ("keys", "weights", "error", "message"),
    [
        ("a", float("nan"), ValueError, "weight 0 is not"),
        (["a", "b"], [1.0, np.inf], ValueError, "weights must be finite.*weight 1 is not"),
        ("a", 2.0**62, ValueError, "below 2\\^62"),
        (["a"] * 3, [-(2.0**61)] * 3, ValueError, "must stay below 2\\^63"),
        ("a", 2**60, ValueError, "integer weights must be at most 2\\^53"),
        ("a", "heavy", TypeError, "weights must be numbers"),
        (["a", "b"], [1.0], ValueError, "one for each of the 2 keys"),
        ([1.5], None, TypeError, "row 0: expected a key: str, bytes or an integer, found float"),
        (["a", None], None, TypeError, "row 1: expected a key"),
        ([True], None, TypeError, "row 0: expected a key"),
        ([2**64], None, ValueError, "row 0: an integer key must lie in"),
        ([-(2**63) - 1], None, ValueError, "row 0: an integer key must lie in"),
        (["\ud800"], None, ValueError, "row 0.*surrogates"),
        (np.zeros(3), None, TypeError, "keys must be strings, bytes or integers"),
        (np.zeros((2, 2), int), None, ValueError, "keys must have one dimension"),
        (pa.array(["a", None]), None, ValueError, "missing values"),
        (pd.Series(["a", None], dtype="category"), None, ValueError, "missing values"),
        (pa.array([1.5]), None, TypeError, "keys must be strings"),
        (5.0, None, TypeError, "not iterable"),
    ],
)  # fmt: skip
def test_a_wrong_update_raises_and_changes_nothing(keys, weights, error, message):
    accumulator = HashAccumulator(4).update("a", 2.0**61)
    before = accumulator.value
    with pytest.raises(error, match=message):
        accumulator.update(keys, weights)
    assert accumulator.value.tolist() == before.tolist()


@pytest.mark.parametrize("settings_", [{"n_bits": 5}, {"signed": True}, {"seed": 1}, {"dtype": np.float32}])
def test_only_accumulators_of_equal_settings_are_merged(settings_):
    (name,) = settings_
    with pytest.raises(ValueError, match=f"{name} differs"):
        HashAccumulator(**{"n_bits": 4, **settings_}).merge(HashAccumulator(4))
    with pytest.raises(TypeError, match="expected a HashAccumulator"):
        HashAccumulator(4).merge({})  # type: ignore[arg-type]


@pytest.mark.parametrize("settings_", [{"n_bits": 0}, {"n_bits": 31}, {"seed": -1}, {"dtype": np.int64}])
def test_wrong_settings_of_an_accumulator_raise(settings_):
    (name,) = settings_
    with pytest.raises(ValueError, match=name):
        HashAccumulator(**settings_)


@pytest.mark.parametrize("hashes", [np.zeros(2), np.zeros(2, np.int64), np.zeros((1, 2), np.uint64)])
def test_hashes_of_another_type_raise(hashes):
    with pytest.raises(ValueError, match="hashes must be a uint64 array"):
        HashAccumulator(4).update_hashes(hashes)


def test_a_damaged_accumulator_does_not_load():
    meta, arrays = HashAccumulator(4).update("a", 0.5).to_state()
    whole, fraction = arrays["_whole"], arrays["_fraction"]
    for changed in (
        {"_whole": whole[:3]},
        {"_whole": whole.astype(np.int32)},
        {"_fraction": fraction[:3]},
        {"_fraction": fraction.astype(float)},
        {"_fraction": fraction.astype(np.int64)},
    ):
        with pytest.raises(ValueError, match=r"shape|integers"):
            HashAccumulator.from_state(meta, {**arrays, **changed})
    for mass in (str(2**127), "1" * 1000, "x", 3):
        meta["fitted"]["_mass"] = mass
        with pytest.raises(ValueError):
            HashAccumulator.from_state(meta, arrays)


# ------------------------------------------------------------------------------------------------ count-min sketch


def zipf(n: int = 100_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    stream = np.random.default_rng(0).zipf(1.3, n) % 50_000
    keys, counts = np.unique(stream, return_counts=True)
    return stream, keys, counts


@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize(("eps", "delta"), [(0.01, 0.1), (0.001, 0.05)])
def test_estimates_are_never_below_the_truth_and_rarely_far_above(conservative, eps, delta):
    stream, keys, counts = zipf()
    excess = []
    for seed in range(5):
        sketch = CountMinSketch(eps=eps, delta=delta, seed=seed, conservative=conservative).update(stream)
        assert sketch.total == len(stream)
        assert sketch.error_bound <= eps * len(stream)
        estimates = sketch.query(keys)
        assert (estimates >= counts).all()
        excess.append(np.mean(estimates - counts > eps * len(stream)))
    assert max(excess) <= delta


def test_conservative_estimates_are_at_most_the_plain_ones():
    stream, keys, _ = zipf(20_000)
    plain = CountMinSketch(100, 3).update(stream).query(keys)
    careful = CountMinSketch(100, 3, conservative=True).update(stream).query(keys)
    assert (careful <= plain).all()
    assert careful.sum() < plain.sum()


def test_size_follows_from_the_error():
    sketch = CountMinSketch(eps=0.001, delta=0.01)
    assert (sketch.width, sketch.depth) == (2719, 5)


def test_sketches_of_chunks_merge_into_that_of_the_whole():
    stream, _, _ = zipf(10_000)
    whole = CountMinSketch(64, 4).update(stream)
    parts = CountMinSketch(64, 4).update(stream[7000:]).merge(CountMinSketch(64, 4).update(stream[:7000]))
    np.testing.assert_array_equal(parts.table, whole.table)
    assert parts.total == whole.total


def test_inner_products_are_never_below_the_truth():
    random = np.random.default_rng(2)
    a, b = random.integers(0, 300, 5000), random.integers(100, 400, 5000)
    truth = float(np.bincount(a, minlength=400) @ np.bincount(b, minlength=400))
    errors = []
    for seed in range(50):
        left, right = (CountMinSketch(eps=0.01, delta=0.05, seed=seed).update(stream) for stream in (a, b))
        assert left.inner(right) >= truth
        errors.append(left.inner(right) - truth)
    assert np.mean(np.array(errors) > 0.01 * 5000 * 5000) <= 0.05
    wide = CountMinSketch(2**18, 3).update(a).inner(CountMinSketch(2**18, 3).update(b))
    assert wide == truth


def test_two_keys_fall_independently_of_each_other():
    """Pairwise independence: over seeds, the cells of two keys are uniform on all pairs of cells."""
    width, seeds = 4, 4000
    counts = np.zeros((width, width))
    hashes = np.array([12345, 12346], np.uint64)  # the same for every seed: only the rows' functions differ
    for seed in range(seeds):
        cells = []
        for hash_ in hashes:
            table = np.zeros((1, width))
            hashing.update_sketch(table, seed, np.array([hash_], np.uint64), None, False)
            cells.append(int(table.argmax()))
        counts[tuple(cells)] += 1
    expected = seeds / width**2
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    assert chi_squared < 37.7  # 15 degrees of freedom, p = 0.001


def test_rows_of_a_sketch_differ():
    sketch = CountMinSketch(1000, 4)
    hashing.update_sketch(sketch.table, 0, np.arange(50, dtype=np.uint64), None, False)
    assert len({row.tobytes() for row in sketch.table}) == 4


def test_cells_are_pinned():
    table = np.zeros((3, 1000))
    hashing.update_sketch(table, 7, np.array([2**64 - 1, 2**61 - 1, 0], np.uint64), np.array([1.0, 2.0, 4.0]), False)
    # The last two keys are equal modulo the prime 2^61 − 1.
    expected = {(0, 638): 6.0, (0, 751): 1.0, (1, 786): 6.0, (1, 807): 1.0, (2, 383): 6.0, (2, 692): 1.0}
    assert {(int(r), int(c)): float(table[r, c]) for r, c in np.argwhere(table)} == expected


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(1, 5000))
@settings(max_examples=40, deadline=None)
def test_cells_equal_their_definition(hash_, seed, width):
    table = np.zeros((3, width))
    hashing.update_sketch(table, seed, np.array([hash_], np.uint64), None, False)
    prime = 2**61 - 1
    for row in range(3):
        a = 1 + slow.number_hash(2 * row, seed) % prime % (prime - 1)
        b = slow.number_hash(2 * row + 1, seed) % prime
        assert table[row].argmax() == (((a * hash_ + b) % prime) * width) >> 61


def test_a_sketch_comes_back_from_a_file(tmp_path):
    sketch = CountMinSketch(50, 3, seed=2**64 - 1, conservative=True).update(WORDS, 1.5)
    mercer.save(sketch, tmp_path / "sketch.mercer")
    found = mercer.load(tmp_path / "sketch.mercer")
    assert found.query(WORDS).tolist() == sketch.query(WORDS).tolist()
    assert repr(found) == repr(sketch)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({}, "give width or eps"),
        ({"width": 5}, "give depth or delta"),
        ({"width": 5, "eps": 0.1, "depth": 2}, "give width or eps"),
        ({"width": 0, "depth": 2}, "width"),
        ({"width": 5, "depth": 2.5}, "depth"),
        ({"eps": 0.0, "delta": 0.1}, "eps must be"),
        ({"eps": 0.1, "delta": 1.0}, "delta must be"),
        ({"eps": float("nan"), "delta": 0.5}, "eps must be"),
        ({"width": 5, "depth": 2, "seed": -1}, "seed"),
        ({"eps": 1e-300, "delta": 0.5}, "too large"),
    ],
)
def test_wrong_settings_of_a_sketch_raise(settings_, message):
    with pytest.raises(ValueError, match=message):
        CountMinSketch(**settings_)


def test_wrong_counts_raise_and_change_nothing():
    sketch = CountMinSketch(10, 2).update("a")
    for weights in (-1.0, float("nan"), [1.0, np.inf]):
        with pytest.raises(ValueError, match="weights must be finite and not negative"):
            sketch.update(["a", "b"], weights)
    assert (sketch.total, sketch.query("a")) == (1.0, 1.0)


def test_only_sketches_of_equal_settings_meet():
    sketch = CountMinSketch(10, 2)
    for other in (CountMinSketch(11, 2), CountMinSketch(10, 3), CountMinSketch(10, 2, seed=1)):
        for call in (sketch.merge, sketch.inner):
            with pytest.raises(ValueError, match="differs"):
                call(other)
    with pytest.raises(TypeError, match="expected a CountMinSketch"):
        sketch.merge(None)  # type: ignore[arg-type]
    careful = CountMinSketch(10, 2, conservative=True)
    with pytest.raises(ValueError, match="conservative"):
        careful.inner(careful)


def test_a_damaged_sketch_does_not_load():
    meta, arrays = CountMinSketch(10, 2).update("a").to_state()
    with pytest.raises(ValueError, match="table must have the shape"):
        CountMinSketch.from_state(meta, {"table": arrays["table"][:1]})
    for bad in (-1.0, np.nan):
        with pytest.raises(ValueError, match="table must hold"):
            CountMinSketch.from_state(meta, {"table": np.full((2, 10), bad)})


# ------------------------------------------------------------------------------------------------ the binding

HASHES = np.zeros(1, np.uint64)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hashing.add_weights(np.zeros(3, np.int64), None, HASHES, None, False), "power of two"),
        (lambda: hashing.add_weights(np.zeros(4, np.int64), np.zeros(2, np.uint64), HASHES, None, False), "one length"),
        (lambda: hashing.add_weights(np.zeros(4, np.int64), None, HASHES, np.ones(2), False), "one length"),
        (lambda: hashing.add_weights(np.zeros(4, np.int64), None, HASHES, np.array([0.5]), False), "fraction"),
        (lambda: hashing.add_weights(np.zeros(4, np.int64), None, HASHES, np.array([np.nan]), False), "range"),
        (lambda: hashing.update_sketch(np.zeros((1, 2)), 0, np.zeros(2, np.uint64), np.ones(1), False), "one length"),
        (lambda: hashing.round_sums(np.zeros(4, np.int64), np.zeros(2, np.uint64), False), "one length"),
    ],
)  # fmt: skip
def test_the_binding_checks_what_it_gets(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_results_go_to_the_array_itself_or_nowhere():
    with pytest.raises(TypeError):
        hashing.update_sketch(np.zeros((2, 4), np.float32), 0, HASHES, None, False)
    with pytest.raises(TypeError):
        hashing.add_weights(np.zeros(8, np.int64)[::2], None, HASHES, None, False)
