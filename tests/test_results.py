"""Pages of results are what the files of results give: nobody types a figure, and every printed table has an entry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks import __main__ as runner
from benchmarks import results as figures

ROOT = Path(__file__).parent.parent
ROWS = figures.rows_of(figures.MEASURED)
SOURCES = {name: figures.catalogue(name) for name in figures.CATALOGUES}
TABLE = re.compile(r"(?:^\|.*\n)+", re.M)
# Tables of words: what a script, a task or a measure is.
OF_WORDS = ("| script |", "| measure | how |", "| name | what |", "| task | start with |")


def numbered(kind: str, *ranges: str) -> list[str]:
    """Names of tables or figures: "2.1-2.9" are nine of chapter 2."""
    names = []
    for part in ranges:
        first, _, last = part.partition("-")
        chapter, _, start = first.rpartition(".")
        stop = int((last or first).rpartition(".")[2])
        names += [f"{kind} {chapter}{'.' if chapter else ''}{k}" for k in range(int(start), stop + 1)]
    return names


# All that the works number, counted in the works: the catalogues must have each of them, once.
PRINTED = {
    "shi-2011": [
        *numbered("table", "2.1-2.9", "3.1-3.4", "5.1-5.6", "6.1-6.6", "7.1-7.3", "8.1"),
        *numbered("figure", "2.1-2.2", "3.1-3.4", "5.1", "6.1-6.4", "7.1-7.4", "8.1"),
    ],
    "xiong-2015": [
        *numbered("figure", "2.1-2.2", "3.1-3.4", "4.1", "6.1"),
        *numbered("table", "3.1"),
        *numbered("SLDMRF, figure", "1-7"),
        *numbered("PSMC, figure", "1-6"),
        *numbered("PSMC, table", "1"),
        *numbered("joint SVM (2013), table", "1"),
        *numbered("joint SVM (2013), figure", "1"),
        *numbered("joint SVM (2014), table", "1-5"),
        *numbered("joint SVM (2014), figure", "1-3"),
        *numbered("homogeneity analysis, table", "1-2"),
        *numbered("homogeneity analysis, figure", "1-8"),
        *numbered("KGHA, table", "1-7"),
        "registration, table I",
        *numbered("registration, figure", "1-9"),
    ],
    "kernel-chapters": numbered("figure", "1.1-1.3", "2.1"),
    "jebara-lecture": [
        "table: weighted grammar on the Penn Treebank",
        "figure 1: training times",
        "table: two-class digits",
        "table: structured relative margin",
    ],
    "yu-2015": [
        *numbered("table", "2.1", "3.1-3.3", "4.1-4.5", "5.1-5.2", "7.1-7.2", "8.1-8.5", "9.1", "10.1", "12.1-12.2"),
        *numbered("table", "13.1-13.5"),
        *numbered("figure", "3.1-3.4", "4.1", "5.1-5.3", "6.1", "7.1-7.2", "8.1-8.2", "9.1-9.6", "10.1-10.5"),
        *numbered("figure", "12.1-12.8", "13.1-13.9"),
    ],
}


def rows_for(*values: dict, **fields: object) -> list[dict]:
    where = {"script": "s", "table": "t", "machine": "a machine", "date": "2026-01-02", "unit": "s"}
    return [{**where, "measure": f"row {k}", **fields, **value} for k, value in enumerate(values)]


def test_pages_are_what_the_files_of_results_give():
    for page, expected in figures.pages().items():
        assert (ROOT / page).read_text() == expected, f"{page} differs from benchmarks/results/: run make results"


def test_pages_to_fill_have_blocks():
    for page in figures.PAGES:
        assert figures.BLOCK.search((ROOT / page).read_text()), f"{page} has no block of figures"


def test_every_page_of_results_is_written_from_a_catalogue():
    found = {path.stem for path in (ROOT / "docs" / "results").glob("*.md")}
    assert found == {*figures.CATALOGUES, "index", "peers"}


@pytest.mark.parametrize("name", figures.CATALOGUES)
def test_every_printed_table_and_figure_has_one_entry(name):
    listed = [printed for item in figures.items_of(SOURCES[name]) for printed in item["names"]]
    assert len(set(listed)) == len(listed), "two entries of one name"
    assert set(PRINTED[name]) <= set(listed), sorted(set(PRINTED[name]) - set(listed))
    if name != "jebara-lecture":  # slides have no numbers; their examples are entries too
        assert set(listed) == set(PRINTED[name])


@pytest.mark.parametrize("name", figures.CATALOGUES)
def test_an_entry_was_run_or_says_why_not(name):
    for item in figures.items_of(SOURCES[name]):
        assert item["data"] in figures.DATA, item["names"]
        assert item["outcome"] in figures.OUTCOMES, item["names"]
        if item["outcome"] == "not run":
            assert item["data"] == "none", item["names"]
            assert "ours" not in item, item["names"]
            assert item["text"].strip(), f"{item['names']} gives no reason"
        elif item["outcome"] in figures.RUN:
            assert "ours" in item or item.get("text", "").strip(), f"{item['names']} has nothing of ours"
        assert ("printed" in item) == ("columns" in item), item["names"]
        for row in item.get("printed", []):
            assert len(row) <= len(item["columns"]), (item["names"], row)


def test_measured_figures_stand_on_a_page():
    shown = figures.shown_tables(list(SOURCES.values()))
    text = (ROOT / "docs" / "results" / "index.md").read_text()
    for name in {f"{row['script']} / {row['table']}" for row in ROWS}:
        assert name in shown or f"**{name}**" in text, f"{name} stands on no page: run make results"
    assert {
        "chain_crf / conll2000",
        "relative_margin / usps",
        "chunking / basenp",
    } <= shown  # picked, in a guide, listed
    lines = list(figures.others(rows_for({"ours": 1.0}, {"values": {"a": 2.0}}), {"s / u"}))
    assert lines.count("**s / t**") == 2  # two kinds of rows
    assert "| row 1 | 2.0 |" in lines
    assert list(figures.others(rows_for({"ours": 1.0}), {"s / t"})) == []


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_catalogues_name_published_works(name):
    text = (figures.FOLDER / f"{name}.toml").read_text()
    assert not re.search(r"\bseeds? 00\d|\bspec\b|\bcatalogue", text)


@pytest.mark.parametrize("page", [page for page in figures.PAGES if "/guide/" not in page])
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
    with pytest.raises(ValueError, match="no measure of 's / t' matches 'z'"):
        figures.chosen_rows(rows, {"rows": "s / t", "where": "z"})


ITEM = {
    "names": ["table 1.2", "figure 3"],
    "title": "a comparison",
    "data": "same",
    "outcome": "in part",
    "columns": ["what", "a", "b"],
    "printed": [["row 0", 90.0, ""], ["row 1", 80.5, 70.0]],
    "beside": True,
    "ours": [{"rows": "s / t", "first": "what"}],
    "text": "The reason.",
}


def test_printed_figures_stand_in_brackets_behind_ours():
    rows = rows_for({"values": {"a": 91.0, "b": 2.0}}, {"values": {"a": {"value": 80.0, "deviation": 1.0}, "b": 71.0}})
    lines = list(figures.item_lines(ITEM, rows))
    assert lines[0] == "### Table 1.2, figure 3: a comparison"
    assert figures.anchor(ITEM) == "table-12-figure-3-a-comparison"
    assert "| row 0 | 91.0 (90) | 2.0 |" in lines
    assert "| row 1 | 80.0 ± 1.0 (80.5) | 71.0 (70) |" in lines
    assert "Ours less printed, 3 cells: +0.5 in the mean, from -0.5 to +1.0." in lines
    assert "The reason." in lines
    assert not any("Printed:" in line for line in lines)
    columns = rows_for({"values": {"ours": 3.0, "theirs": 2.0}}, {"values": {"ours": {"value": 1.0}, "theirs": 2.0}})
    expected = "Ours less printed, 2 cells: +0.0 in the mean, from -1.0 to +1.0."
    assert figures.difference_of(columns, ["ours", "theirs"]) == expected
    assert figures.difference_of(columns) == ""
    apart = list(figures.item_lines({**ITEM, "beside": False}, rows))
    assert "| row 1 | 80.5 | 70.0 |" in apart
    assert "| row 1 | 80.0 ± 1.0 | 71.0 |" in apart


def test_a_printed_row_without_ours_is_an_error():
    rows = rows_for({"values": {"a": 91.0, "b": 2.0}})
    with pytest.raises(ValueError, match="nothing of ours stands beside \\['row 1'\\]"):
        list(figures.item_lines(ITEM, rows))
    rows = rows_for({"values": {"a": 91.0}}, {"values": {"a": 1.0}})
    with pytest.raises(ValueError, match="'row 1' has no column 'b'"):
        list(figures.item_lines(ITEM, rows))


def test_the_overview_counts_outcomes():
    source = {"name": "x", "title": "X", "about": "About.\n\nMore.", "chapter": [{"title": "One", "item": [ITEM]}]}
    rows = rows_for({"values": {"a": 91.0, "b": 2.0}})
    page = figures.overview([source], rows)
    assert "Other measurements" not in page
    assert "**x / y**" in figures.overview([source], [{**rows[0], "script": "x", "table": "y"}])
    assert "| [X](x.md) | 2 |  | 2 |" in page
    assert "| all | 2 |  | 2 |" in page
    assert "| [table 1.2, figure 3](x.md#table-12-figure-3-a-comparison) | a comparison |" in page
    assert "More." not in page


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
