"""Tables of figures in the pages are those of the results: nobody types one, and no ratio is of two runs."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from benchmarks import __main__ as runner

ROOT = Path(__file__).parent.parent
SPEC = importlib.util.spec_from_file_location("figures", ROOT / "tools" / "figures.py")
figures = importlib.util.module_from_spec(SPEC)
sys.modules["figures"] = figures
SPEC.loader.exec_module(figures)

ROWS = figures.rows_of(figures.RESULTS)
TABLE = re.compile(r"(?:^\|.*\n)+", re.M)
# Tables of words: what a script, a task or a measure is. Tables 8.3 and 8.4 are filled by proportions_page.py.
OF_WORDS = ("| script |", "| measure | how |", "| name | what |", "| set | method |", "| task | start with |")


def rows_for(*values: dict, **fields: object) -> list[dict]:
    where = {"script": "s", "table": "t", "machine": "a machine", "date": "2026-01-02", "unit": "s"}
    return [{**where, "measure": f"row {k}", **fields, **value} for k, value in enumerate(values)]


@pytest.mark.parametrize("page", figures.PAGES)
def test_a_page_has_the_figures_of_the_results(page):
    text = (ROOT / page).read_text()
    assert figures.BLOCK.search(text), f"{page} has no block of figures"
    assert figures.filled(text, ROWS) == text, f"{page} differs from benchmarks/results.jsonl: run make figures"


@pytest.mark.parametrize("page", figures.PAGES)
def test_no_table_of_figures_is_typed_by_hand(page):
    outside = figures.BLOCK.sub("", (ROOT / page).read_text())
    for table in TABLE.findall(outside):
        assert table.startswith(OF_WORDS), f"{page}: a table outside of the blocks of figures:\n{table[:200]}"


def test_rows_say_where_they_come_from():
    for row in ROWS:
        for key in ("script", "table", "measure", "machine", "date", "commit"):
            assert row.get(key), f"{key} is missing in {row}"
        assert (ROOT / "benchmarks" / f"{row['script']}.py").exists(), row
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"]), row
        assert not re.search(r"localhost|\.local\b|\d+\.\d+\.\d+\.\d+", row["machine"]), row


def test_rows_have_names_of_their_own():
    keys = [tuple(row.get(key) for key in runner.KEY) for row in ROWS]
    assert len(set(keys)) == len(keys)


def test_a_ratio_is_of_the_two_figures_beside_it():
    for row in ROWS:
        if row.get("ratio") is None:
            continue
        assert row.get("peer"), row
        if row.get("ours") is None or row.get("theirs") is None:
            assert row.get("earlier"), f"a ratio without both figures: {row}"
            continue
        expected = row["ours"] / row["theirs"] if row["unit"].endswith("/s") else row["theirs"] / row["ours"]
        digits = 0.12 if row.get("earlier") else 0.01  # figures of earlier runs are as the page had them, rounded
        assert row["ratio"] == pytest.approx(expected, rel=digits, abs=0.05), row


def test_what_a_block_shows():
    rows = rows_for(
        {"peer": "A, quick", "peer_version": "1.2", "theirs": 3.0, "ours": 0.25, "ratio": 12.0}, {"ours": 2.0}
    )
    assert list(figures.table(rows, "measure")) == [
        "| measure | peer | peer's | mercer | ratio |",
        "|---|---|---:|---:|---:|",
        "| row 0 | A 1.2, quick | 3 s | 0.25 s | 12.0 |",
        "| row 1 |  |  | 2 s |  |",
        "",
        "Measured by `python -m benchmarks s`, 2026-01-02, a machine.",
    ]
    values = [{"a": 97.0, "b": {"value": 1.25, "deviation": 0.5, "printed": 2}}, {"a": 8.5, "b": "word"}]
    lines = list(figures.table(rows_for(*({"values": value} for value in values)), "set"))
    assert lines[2:4] == ["| row 0 | 97.0 | 1.25 ± 0.50 (2) |", "| row 1 | 8.5 | word |"]


def test_a_block_that_names_no_row_is_an_error():
    rows = rows_for({"ours": 1.0})
    with pytest.raises(ValueError, match="no table 'u' of 's'"):
        figures.filled("<!-- figures: s / u -->\n<!-- figures: end -->", rows)
    with pytest.raises(ValueError, match="no 'row 7' in the table 't'"):
        figures.filled("<!-- figures: pick\ns / t / row 7\n-->\n<!-- figures: end -->", rows)


def test_filling_a_page_twice_changes_nothing_and_follows_the_results():
    page = "before\n\n<!-- figures: s / t | what -->\n<!-- figures: end -->\n\nbehind\n"
    once = figures.filled(page, rows_for({"ours": 1.0}))
    assert figures.filled(once, rows_for({"ours": 1.0})) == once
    assert "| row 0 | 2 s |" in figures.filled(once, rows_for({"ours": 2.0}))
    assert once.startswith("before\n")
    assert once.endswith("\nbehind\n")


def test_rows_of_a_run_replace_those_of_the_same_name():
    old = rows_for({"ours": 1.0}, {"ours": 2.0}) + rows_for({"ours": 3.0}, table="other")
    new = rows_for({"ours": 9.0}) + rows_for({"ours": 5.0, "measure": "new"})
    merged = runner.merged(old, new)
    assert [(row["table"], row["measure"], row["ours"]) for row in merged] == [
        ("t", "row 0", 9.0),
        ("t", "row 1", 2.0),
        ("t", "new", 5.0),
        ("other", "row 0", 3.0),
    ]


def test_tables_that_a_script_prints_become_rows():
    lines = ["## speed", "", "| set | C | s |", "|---|---:|---:|", "| a | 1 | 2.5 |", "| a | 10 | 1.0 ± 0.5 |", "done"]
    assert runner.rows_of_tables("x", lines) == [
        {"script": "x", "table": "speed", "measure": "a", "values": {"C": 1, "s": 2.5}},
        {"script": "x", "table": "speed", "measure": "a, 10", "values": {"s": {"value": 1.0, "deviation": 0.5}}},
    ]
