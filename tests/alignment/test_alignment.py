"""The Alignment object: what it shows, what it equals, what it refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.alignment import Alignment


def test_rows_operations_and_cigar_show_the_pairs():
    y = Alignment("ACGT", "AGTT", [(0, 0), (2, 1), (3, 2)])
    assert y.rows() == ("ACGT-", "A-GTT")
    assert y.operations == "=D==I"
    assert y.cigar == "1=1D2=1I"
    assert y.identity == pytest.approx(3 / 5)
    assert len(y) == 3
    assert str(y) == "ACGT-\n| ||\nA-GTT"


def test_unpaired_symbols_of_the_first_sequence_come_first():
    assert Alignment("AB", "CD", []).rows() == ("AB--", "--CD")
    assert Alignment.from_rows("A-B", "-C-").pairs.tolist() == []
    assert Alignment("AXB", "AYB", [(0, 0), (2, 2)]).rows() == ("AX-B", "A-YB")


def test_a_local_alignment_covers_its_part_only():
    y = Alignment("xxACGyy", "AGz", [(2, 0), (4, 1)], local=True)
    assert y.rows() == ("ACG", "A-G")
    assert y.spans == ((2, 5), (0, 2))
    empty = Alignment("ab", "cd", [], local=True)
    assert (empty.rows(), empty.cigar, empty.identity, str(empty)) == (("", ""), "", 0.0, "(nothing aligned)")
    assert "nothing aligned" in repr(empty)


def test_tokens_are_shown_in_columns():
    y = Alignment(["the", "cat"], ["a", "the", "dog"], [(0, 1), (1, 2)])
    assert y.rows() == (["-", "the", "cat"], ["a", "the", "dog"])
    assert str(y) == "- the cat\n  |   .\na the dog"


def test_long_rows_are_broken():
    y = Alignment("A" * 25, "A" * 25, [(i, i) for i in range(25)])
    assert [len(line) for line in y.format(10).splitlines()] == [10, 10, 10, 0, 10, 10, 10, 0, 5, 5, 5]
    assert y.format(None).count("\n") == 2
    with pytest.raises(ValueError, match="width"):
        y.format(0)


def test_equality_is_that_of_sequences_and_pairs():
    y = Alignment("AB", "AB", [(0, 0)], score=1.0)
    assert y == Alignment(["A", "B"], "AB", [(0, 0)], score=2.0)
    assert hash(y) == hash(Alignment("AB", "AB", [(0, 0)]))
    assert y != Alignment("AB", "AB", [(0, 1)])
    assert y != Alignment("AC", "AB", [(0, 0)])
    assert y != "AB"
    assert pickle.loads(pickle.dumps(y)) == y


def test_pairs_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        Alignment("AB", "AB", [(0, 0)]).pairs[0] = 1


@given(st.lists(st.sampled_from("MDI"), max_size=20), st.integers(0, 2**32 - 1))
def test_rows_and_back_is_the_same_alignment(columns, seed):
    letters = np.random.default_rng(seed).choice(list("ACGT"), size=(len(columns), 2))
    top = "".join("-" if c == "I" else a for c, (a, _) in zip(columns, letters, strict=True))
    bottom = "".join("-" if c == "D" else b for c, (_, b) in zip(columns, letters, strict=True))
    y = Alignment.from_rows(top, bottom)
    assert (y.s, y.t) == (top.replace("-", ""), bottom.replace("-", ""))
    assert Alignment.from_rows(*y.rows()) == y
    assert len(y) == columns.count("M")


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(0, 0), (0, 1)], r"ascend in both sequences, found \(0, 0\) before \(0, 1\)"),
        ([(0, 1), (1, 0)], r"found \(0, 1\) before \(1, 0\)"),
        ([(0, 3)], r"within sequences of 2 and 3 symbols, found \(0, 3\)"),
        ([(-1, 0)], r"found \(-1, 0\)"),
        ([0, 1], "shape"),
        ([(0, 1, 2)], "shape"),
        ([(0.5, 1.0)], "integers"),
        ([(0, 1), (1,)], "index pairs"),
    ],
)
def test_impossible_pairs_are_refused(pairs, message):
    with pytest.raises(ValueError, match=message):
        Alignment("AB", "ABC", pairs)


@pytest.mark.parametrize(
    ("rows", "message"),
    [(("A-B", "AB"), "one length, got 3 and 2"), (("A-B", "A-C"), "both have a gap in one column, as in column 1")],
)
def test_impossible_rows_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        Alignment.from_rows(*rows)


def test_a_local_alignment_of_nothing_covers_nothing():
    nothing = Alignment("AB", "BA", [], local=True)
    assert nothing.spans == ((0, 0), (0, 0))
    assert nothing.rows() == ("", "")
    assert (nothing.identity, str(nothing)) == (0.0, "(nothing aligned)")
    assert Alignment("AB", "BA", []).rows() == ("AB--", "--BA")


def test_rows_are_strings_where_both_sequences_are():
    assert Alignment("AB", ["A", "C"], [(0, 0)]).rows() == (["A", "B", "-"], ["A", "-", "C"])
    assert Alignment(["A"], "A", [(0, 0)]).rows() == (["A"], ["A"])


@pytest.mark.parametrize(("n", "m"), [(1, 3), (3, 1), (2, 2)])
def test_symbols_after_the_last_pair_have_columns_of_their_own(n, m):
    top, bottom = Alignment("A" * n, "A" * m, [(0, 0)]).rows()
    assert (top, bottom) == ("A" * n + "-" * (m - 1), "A" + "-" * (n - 1) + "A" * (m - 1))


def test_the_width_of_blocks():
    y = Alignment("ABC", "ABC", [(0, 0), (1, 1), (2, 2)])
    assert y.format(None) == y.format(3) == "ABC\n|||\nABC"
    assert y.format(2) == "AB\n||\nAB\n\nC\n|\nC"
    assert y.format(1).count("\n\n") == 2
    for wrong in (0, -1, True, 2.0, "3"):
        with pytest.raises(ValueError, match="width must be a positive integer or None"):
            y.format(wrong)
    words = Alignment(["aa", "b", "cc"], ["aa", "b", "cc"], [(0, 0), (1, 1), (2, 2)])
    assert words.format(7) == "aa b cc\n|  | |\naa b cc"  # 2 + 1 + 1 + 1 + 2 characters
    assert words.format(6) == "aa b\n|  |\naa b\n\ncc\n|\ncc"
    assert words.format(4) == "aa b\n|  |\naa b\n\ncc\n|\ncc"
    assert words.format(3) == "aa\n|\naa\n\nb\n|\nb\n\ncc\n|\ncc"
    letters = ["a", "b", "c", "d", "ee"]
    five = Alignment(letters, letters, [(k, k) for k in range(5)])
    assert five.format(5).splitlines()[::4] == ["a b c", "d ee"]
