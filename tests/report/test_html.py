"""Report pages: text never becomes markup, and a page needs nothing but itself."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.report import Html, columns, figure, page, paragraph, section, sparkline, table, write_page

EVIL = '<script>alert("1")</script>'
VOID = {"meta", "img", "br"}


class Balance(HTMLParser):
    """Collects tags and checks that each one that opens is closed in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tags(html: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Balance()
    parser.feed(html)
    parser.close()
    assert not parser.open
    return parser.seen


@pytest.mark.parametrize(
    "html",
    [
        page(EVIL, EVIL),
        section(EVIL, EVIL),
        paragraph(EVIL),
        table([[EVIL]], [EVIL]),
        columns(EVIL, EVIL),
        figure(sparkline([1, 2]), EVIL),
    ],
    ids=["page", "section", "paragraph", "table", "columns", "figure"],
)
def test_text_never_becomes_markup(html: str) -> None:
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "script" not in {tag for tag, _ in tags(html)}


@given(text=st.text(st.characters(codec=None)))
def test_any_text_makes_a_page_that_can_be_written(text: str) -> None:
    html = page(text, section(text, text, table([[text]], [text])))
    html.encode()
    assert "\x00" not in html
    tags(html)


def test_a_page_asks_the_network_for_nothing() -> None:
    html = page("Title", section("One", columns(sparkline([1, 2]), "text"), table([[1]], ["a"])))
    for tag, attributes in tags(html):
        assert tag not in {"script", "link", "iframe", "object"}
        assert not {"src", "href", "srcset"} & set(attributes)
    assert "url(" not in html
    assert "@import" not in html
    assert "default-src 'none'" in html


def test_a_page_has_what_readers_need() -> None:
    html = page("Title", section("One"))
    assert html.startswith("<!DOCTYPE html>")
    assert '<html lang="en">' in html
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert [tag for tag, _ in tags(html) if tag in {"h1", "h2", "main"}] == ["h1", "main", "h2"]


def test_markup_goes_in_as_it_is_and_text_as_paragraphs() -> None:
    assert section("H", Html("<hr/>"), "a & b") == ("<section>\n<h2>H</h2>\n<hr/>\n<p>a &amp; b</p>\n</section>")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.123456, "0.1235"),
        (np.float32(0.5), "0.5"),
        (12345, "12345"),
        (np.int64(7), "7"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
        (-np.inf, "-∞"),
        (True, "True"),
        (None, "None"),
        ("a<b", "a&lt;b"),
        (Html("<b>x</b>"), "<b>x</b>"),
    ],
)
def test_cells_are_written_for_people(value: Any, shown: str) -> None:
    assert f">{shown}</td>" in table([[value]], ["column"])


def test_columns_of_numbers_go_right_unless_told() -> None:
    assert table([["a", 1], ["b", 2.5]], ["x", "y"]).count('class="r"') == 3
    assert table([["a", 1], ["b", "-"]], ["x", "y"]).count('class="r"') == 0
    assert table([["a", 1]], ["x", "y"], align="cl").count('class="c"') == 2


def test_a_table_may_have_no_rows() -> None:
    assert "<tbody>\n</tbody>" in table([], ["a"])


@pytest.mark.parametrize(
    ("rows", "header", "align", "message"),
    [
        ([], [], None, "at least one column"),
        ([[1, 2], [3]], ["a", "b"], None, "row 1 has 1 cells"),
        ([[1]], ["a"], "rr", "1 letters"),
        ([[1]], ["a"], "x", "'x'"),
    ],
)
def test_ragged_tables_are_refused(rows: Any, header: Any, align: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        table(rows, header, align)


def test_columns_and_figures_need_content() -> None:
    with pytest.raises(ValueError, match="at least one"):
        columns()
    with pytest.raises(TypeError, match=r"Html\("):
        figure("<svg/>", "caption")  # type: ignore[arg-type]


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    html = page("né 日本", "text")
    write_page(tmp_path / "a.html", html)
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == html
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
    with pytest.raises(FileNotFoundError):
        write_page(tmp_path / "none" / "a.html", html)
