"""The fuzzer finds what it should, reaches every entry point, and finds nothing in a bounded run with a fixed seed."""

from __future__ import annotations

import ctypes
import json
import os
import sys

import numpy as np
import pytest

from fuzz.core_calls import CoreCalls
from fuzz.engine import CORPUS, REFUSED, Finding, Target, describe, fuzz, minimised, replay, run_alone
from fuzz.entries import call_entry, entry_points
from fuzz.readers import READERS, Readers
from fuzz.values import Builder, GuardedPages, encode, plain
from reference.forked import popen

pytestmark = pytest.mark.skipif(not hasattr(os, "fork") or sys.platform != "linux", reason="needs fork and guard pages")

SECONDS = float(os.environ.get("FUZZ_SECONDS", "4"))
SEED, CASES = 18, 3_000  # a run that was clean; `make fuzz` draws others


BOUNDED = {"core": 0.5, "models": 0.3, "readers": 0.15, "stores": 0.05, "checkpoints": 0.1}  # shares


@pytest.mark.parametrize("target", BOUNDED)
def test_a_bounded_run_finds_nothing(target):
    share = BOUNDED[target]
    options = ["--target", target, "--seed", str(SEED), "--no-keep"]
    options += ["--seconds", str(share * SECONDS), "--cases", str(int(share * CASES))]
    process = popen("import sys; from fuzz.__main__ import main; sys.exit(main())", *options, text=True)
    said = process.communicate(timeout=600)
    assert process.returncode == 0, said


def test_every_entry_point_of_the_core_is_reached():
    """Without a seed: ``PYTHONPATH=tests python -m fuzz.record FILES`` with tests or scenarios that call it."""
    target = CoreCalls("dot")  # seeds are run by the bounded run
    assert len(entry_points()) > 200
    assert target.unreached() == []


# ------------------------------------------------------------------------------------------------ the machine itself


class Planted(Target):
    """Fails in one of the known ways at each case whose number is a multiple of 50."""

    name = "planted"

    def case(self, seed, number):
        return {
            "number": number,
            "way": ("read", "hang", "abort", "unclear")[number // 50 % 4],
            "bad": number % 50 == 7,
            "extra": 1,
        }

    def run(self, case):
        if not case["bad"]:
            return REFUSED if case["number"] % 2 else None
        if case["way"] == "read":
            page = GuardedPages(24, at_end=True)
            array = page.copy_of(np.zeros(3))
            ctypes.string_at(array.ctypes.data, 25)
        elif case["way"] == "hang":
            while True:
                pass
        elif case["way"] == "abort":
            os.abort()
        return "unclear error: RuntimeError: std::bad_cast"

    def subject(self, case):
        return case["way"]

    def smaller(self, case):
        if case["extra"]:
            yield {**case, "bad": False, "extra": 0}
            yield {**case, "extra": 0}


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr("fuzz.engine.CPU_SECONDS", 0.2)


@pytest.mark.usefixtures("quick")
def test_each_kind_of_failure_is_found_attributed_and_made_smaller(tmp_path):
    report = fuzz(Planted(), 1, 60.0, workers=2, most_cases=200, log=lambda line: None)
    found = {finding.subject: finding for finding in report.findings}
    assert {subject: finding.why.partition(":")[0] for subject, finding in found.items()} == {
        "read": "crash",
        "hang": "hang",
        "abort": "crash",
        "unclear": "unclear error",
    }
    assert found["read"].why == "crash: SIGSEGV"
    assert all(finding.case["extra"] == 0 and finding.case["bad"] for finding in report.findings)
    assert report.cases == 200
    assert report.refused == 96  # the odd numbers, less the four that fail
    for finding in report.findings:
        finding.save(tmp_path)
    again = replay(Planted(), tmp_path)
    assert len(again) == 4
    assert json.loads((tmp_path / found["abort"].name).read_text())["why"] == "crash: SIGABRT"


def test_arrays_end_or_begin_at_an_unreadable_page():
    class Peek(Target):
        def run(self, case):
            page = GuardedPages(24, at_end=case["at_end"])
            ctypes.string_at(page.copy_of(np.zeros(3)).ctypes.data + case["shift"], 24)

    for at_end, shift, ends in (
        (True, 0, None),
        (True, 1, "crash: SIGSEGV"),
        (False, 0, None),
        (False, -1, "crash: SIGSEGV"),
    ):
        assert run_alone(Peek(), {"at_end": at_end, "shift": shift}) == ends


def test_recorded_values_come_back():
    values = [
        None,
        True,
        -(2**63),
        10**30,
        0.5,
        float("inf"),
        "é",
        "\ud800",
        b"\0a",
        [1, (2.5, "x")],
        {"a": [1]},
        np.float32(0.1),
        np.arange(6, dtype=np.uint16).reshape(2, 3),
        np.zeros((0, 3)),
    ]
    for value in values:
        node = json.loads(json.dumps(encode(value)))
        builder = Builder(call_entry)
        back = builder.build(node)
        if isinstance(value, np.ndarray):
            assert back.dtype == value.dtype
            assert np.array_equal(back, value)
        else:
            assert type(back) is type(value)
            assert back == value


def test_equal_seeds_draw_equal_calls():
    first, second = CoreCalls(), CoreCalls()
    first.load()
    second.load()
    for number in range(0, 300, 7):
        assert plain(first.case(3, number)) == plain(second.case(3, number))
    assert any(plain(first.case(3, number)) != plain(first.case(4, number)) for number in range(10))


def test_unclear_errors_are_told_from_clear_ones():
    assert describe(ValueError("offsets must not decrease")) is None
    assert describe(MemoryError("std::bad_alloc")) is None
    assert "bad_cast" in str(describe(RuntimeError("std::bad_cast")))
    assert describe(RecursionError("maximum recursion depth exceeded")) is not None
    assert describe(SystemError("error return without exception set")) is not None


def test_files_of_every_reader_are_read_as_they_are(tmp_path):
    for number, (files, run) in enumerate(READERS.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        run(files, folder)
    assert set(Readers().names) == set(READERS)


def test_corpus_files_are_small_and_name_their_target():
    for path in CORPUS.glob("*.json"):
        kept = json.loads(path.read_text())
        assert path.name.startswith(kept["target"] + "-")
        assert path.stat().st_size < 20_000
        assert Finding(kept["target"], "", kept["why"], kept["case"]).why


def test_a_smaller_case_has_to_fail_in_the_same_way():
    case = {"number": 7, "way": "unclear", "bad": True, "extra": 1}
    assert minimised(Planted(), case, "unclear error: x") == {**case, "extra": 0}
    assert minimised(Planted(), {**case, "extra": 0}, "unclear error: x") == {**case, "extra": 0}
