"""All loops obey the instruction set asked for, and those without fused products give the same bits on every set."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from fuzz.entries import call_entry
from fuzz.record import SEEDS
from fuzz.values import Builder
from mercer import _core
from mercer.inference import Factor, MarkovNetwork, infer
from mercer.kernels import Subsequence
from mercer.maps import RecordHasher, TextHasher

pd = pytest.importorskip("pandas")

CPP = Path(__file__).parent.parent.parent / "cpp"
SETS = _core.instruction_sets()
# Concerns whose results do not depend on the set; CMakeLists.txt compiles them without fused products.
EXACT = {
    *("alignment", "bag_margin", "circulant", "dense", "factors", "signed_hash", "sparse_codes", "svm_smo"),
    *("hamming", "hashed_learner", "hashed_rows", "subsequences", "text"),
}


def concerns():
    """The names of all tables and choices, from the sources."""
    found = set()
    for path in [*CPP.rglob("*.hpp"), *CPP.rglob("*.cpp")]:
        if path.name != "dispatch.hpp":
            found |= set(re.findall(r'concern = "(\w+)"|set_for\("(\w+)"\)', path.read_text()))
    return {table or choice for table, choice in found}


def seeds():
    calls = [json.loads(line) for line in SEEDS.read_text().splitlines()]
    return [call for call in calls if "." in call["entry"]]  # those without choose sets themselves


class Kept(Builder):
    """A builder that keeps its arrays, which a call may write to."""

    def __init__(self):
        super().__init__(call_entry, guarded=False)
        self.arrays = []

    def build(self, node):
        value = super().build(node)
        if isinstance(value, np.ndarray):
            self.arrays.append(value)
        return value


def bits(value):
    """A result as something that compares equal where all bits are."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return [(key, bits(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [bits(item) for item in value]
    if isinstance(value, float):
        return value.hex()
    return value if isinstance(value, int | str | bytes | bool | None) else type(value).__name__


@pytest.fixture
def watched():
    """Watches what is chosen, and goes back to the set before."""
    before = _core.instruction_set()
    yield
    _core.watch_choices(False)
    _core.use_instruction_set(before)


def test_concerns_are_those_known():
    assert EXACT.issubset(concerns())


@pytest.mark.parametrize("name", SETS)
def test_every_loop_runs_under_the_set_asked_for(name, watched):
    _core.use_instruction_set(name)
    _core.watch_choices(True)
    for call in seeds():
        call_entry(call, Builder(call_entry, guarded=False))
    records()  # rows side by side, of which seeds have too few
    chosen = _core.choices()
    assert chosen.keys() == concerns(), (
        "a concern that no seed of the fuzzer reaches, or one that is not in the sources"
    )
    assert set(map(tuple, chosen.values())) == {(name,)}


def test_recorded_calls_of_exact_loops_give_equal_bits(watched):
    """Of every recorded call that needs exact loops only."""
    compared = set()
    for call in seeds():
        results = []
        for name in SETS:
            _core.use_instruction_set(name)
            _core.watch_choices(True)
            builder = Kept()
            results.append((bits(call_entry(call, builder)), bits(builder.arrays)))
            chosen = _core.choices()
        if chosen and chosen.keys() <= EXACT:
            compared |= chosen.keys()
            assert all(result == results[0] for result in results[1:]), call["entry"]
    assert len(compared) >= 8


def machine():
    x = np.random.default_rng(0).normal(size=(150, 5))
    K = np.exp(-0.3 * ((x[:, None] - x[None]) ** 2).sum(2))
    y = np.where(x[:, 0] * x[:, 1] > 0, 1.0, -1.0)
    low, high = np.minimum(0.0, 2 * y), np.maximum(0.0, 2 * y)
    machine = _core.machines.BoxBlocks(y, low, high, np.zeros(150), np.ones(150), 0, 1e-8, 100_000, 30)
    while len(places := machine.wanted()):
        machine.give(K[places])
    members = np.arange(150)
    whole = _core.machines.KernelMachine(K).solve_box(members, y, low, high, np.zeros(150), 0, 1e-8, 100_000)
    return whole, machine.result()


def network():
    random = np.random.default_rng(1)
    pairs = [(i, i + 1) for i in range(23)] + [(i, i + 5) for i in range(19)]
    factors = [Factor([f"x{i}"], random.uniform(0.2, 2, 2)) for i in range(24)]
    factors += [Factor([f"x{i}", f"x{j}"], random.uniform(0.2, 2, (2, 2))) for i, j in pairs]
    return [infer(MarkovNetwork(factors), method=method).marginals for method in ("junction-tree", "bp")]


def strings():
    random = np.random.default_rng(2)
    texts = ["".join(random.choice(list("abcd"), 60)) for _ in range(12)]
    return Subsequence(3)(texts)


def texts():
    random = np.random.default_rng(3)
    words = ["".join(random.choice(list("abcdefgh é"), 9)) for _ in range(400)]
    rows = TextHasher(ngrams=(1, 2)).transform([" ".join(random.choice(words, 60)) for _ in range(20)])
    return rows.indptr, rows.indices, rows.data


def records():
    random = np.random.default_rng(4)
    table = pd.DataFrame({name: random.integers(0, 50, 700).astype(str) for name in "abcde"})
    rows = RecordHasher().transform(table)
    return rows.indptr, rows.indices, rows.data


@pytest.mark.parametrize("compute", [machine, network, strings, texts, records])
def test_exact_loops_give_equal_bits_for_inputs_of_many_vectors(compute, watched):
    results = []
    for name in SETS:
        _core.use_instruction_set(name)
        results.append(bits(compute()))
    assert all(result == results[0] for result in results[1:])
