"""Elements of a report page: text, tables, figures, and the page with its style.

Markup is an `Html`, a string that needs no further escaping. Every function accepts both kinds of string: an `Html` is
inserted unchanged, and any other value is escaped. So label names of a data set or model can never become markup.
"""

from __future__ import annotations

import math
import numbers
import os
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from mercer._state.container import write_atomically

__all__ = ["Html", "columns", "figure", "page", "paragraph", "section", "table", "write_page"]


class Html(str):
    """A string of markup that is not escaped. Use it only for your own markup, never for untrusted text.

    Examples
    --------
    >>> from mercer.report import Html, paragraph
    >>> paragraph("1 < 2, ", Html("<em>surely</em>"))
    '<p>1 &lt; 2, <em>surely</em></p>'
    """

    __slots__ = ()

    def _repr_html_(self) -> str:  # notebooks show it
        return self


def page(title: str, *sections: str) -> str:
    """Return a complete self-contained page without scripts, fonts or network access.

    Parameters
    ----------
    title : str
        The title, also shown as the main heading.
    *sections : str
        Content: markup from this module, or text, which becomes paragraphs.

    Returns
    -------
    str
        The document.

    Examples
    --------
    >>> from mercer.report import page, section
    >>> text = page("A tagger", section("Labels", "It knows B, I and O."))
    >>> text.startswith("<!DOCTYPE html>") and "<p>It knows B, I and O.</p>" in text
    True
    """
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{text_of(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header><h1>{text_of(title)}</h1></header>
<main>
{_blocks(sections)}
</main>
</body>
</html>
"""


def section(heading: str, *content: str) -> Html:
    """Return a section of a page.

    Parameters
    ----------
    heading : str
        Its heading.
    *content : str
        Markup, or text, which becomes paragraphs.

    Returns
    -------
    Html
        The section.
    """
    return Html(f"<section>\n<h2>{text_of(heading)}</h2>\n{_blocks(content)}\n</section>")


def paragraph(*content: Any) -> Html:
    """Return a paragraph of text, numbers and inline markup.

    Parameters
    ----------
    *content : str, number or Html
        The content, joined without spaces.

    Returns
    -------
    Html
        The paragraph.

    Examples
    --------
    >>> paragraph("F1 is ", 0.93214, " & rising")
    '<p>F1 is 0.9321 &amp; rising</p>'
    """
    return Html(f"<p>{''.join(text_of(item) for item in content)}</p>")


def table(rows: Iterable[Sequence[Any]], header: Sequence[Any], align: str | None = None) -> Html:
    """Return a table.

    Parameters
    ----------
    rows : iterable of sequences
        The cells: text, numbers, or `Html` such as a sparkline.
    header : sequence
        The names of the columns.
    align : str, optional
        One letter per column, ``l``, ``c`` or ``r``. By default numbers are right-aligned and all other cells
        left-aligned.

    Returns
    -------
    Html
        The table.

    Raises
    ------
    ValueError
        If there is no column, or the number of columns of a row or of `align` differs from the header.

    Examples
    --------
    >>> print(table([["<O>", 0.5]], ["label", "F1"]))
    <div class="scroll"><table>
    <thead><tr><th scope="col" class="l">label</th><th scope="col" class="r">F1</th></tr></thead>
    <tbody>
    <tr><td class="l">&lt;O&gt;</td><td class="r">0.5</td></tr>
    </tbody>
    </table></div>
    """
    header, cells = list(header), [list(row) for row in rows]
    if not header:
        raise ValueError("a table needs at least one column, but header is empty")
    for i, row in enumerate(cells):
        if len(row) != len(header):
            raise ValueError(f"row {i} has {len(row)} cells, but the header has {len(header)} columns")
    if align is None:
        align = "".join(_natural_alignment([row[j] for row in cells]) for j in range(len(header)))
    if len(align) != len(header) or set(align) - set("lcr"):
        raise ValueError(f"align must have {len(header)} letters from l, c and r, not {align!r}")
    head = "".join(f'<th scope="col" class="{a}">{text_of(name)}</th>' for a, name in zip(align, header, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{a}">{text_of(cell)}</td>' for a, cell in zip(align, row, strict=True))
        + "</tr>\n"
        for row in cells
    )
    inner = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>"
    return Html(f'<div class="scroll"><table>\n{inner}\n</table></div>')


def columns(*content: str) -> Html:
    """Return elements side by side, or stacked on a narrow page.

    Parameters
    ----------
    *content : str
        The elements, from left to right: markup or text.

    Returns
    -------
    Html
        The elements in columns.

    Raises
    ------
    ValueError
        If there is no element.
    """
    if not content:
        raise ValueError("columns needs at least one element")
    inner = "\n".join(f"<div>{_blocks([item])}</div>" for item in content)
    return Html(f'<div class="columns">\n{inner}\n</div>')


def figure(svg: Html, caption: str) -> Html:
    """Return a chart with its caption.

    Parameters
    ----------
    svg : Html
        A chart of ``mercer.report.charts``, or your own markup as ``Html(...)``.
    caption : str
        The caption.

    Returns
    -------
    Html
        The figure.
    """
    if not isinstance(svg, Html):
        raise TypeError("svg must be Html: a chart of mercer.report, or your own markup wrapped in Html(...)")
    return Html(f'<figure><div class="scroll">{svg}</div><figcaption>{text_of(caption)}</figcaption></figure>')


def write_page(path: str | os.PathLike[str], html: str) -> None:
    """Write a page to a file atomically.

    Parameters
    ----------
    path : str or path-like
        The file to write or to replace.
    html : str
        The document that `page` returned.

    Raises
    ------
    OSError
        If the file cannot be written; an existing file stays unchanged.
    """
    write_atomically(path, [html.encode()])


# Characters that neither HTML nor XML allows, escaped or not, and halves of surrogate pairs.
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")


def text_of(value: Any) -> str:
    """Return a value as markup: `Html` unchanged, floats to four digits, other values escaped."""
    if isinstance(value, Html):
        return value
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        value = number_text(float(value))
    return escape(_NOT_TEXT.sub("\ufffd", str(value)))


def number_text(value: float) -> str:
    """Return a number to four significant digits, and ``–`` for NaN."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.4g}"


def _blocks(content: Iterable[str]) -> str:
    return "\n".join(item if isinstance(item, Html) else paragraph(item) for item in content)


def _natural_alignment(cells: Sequence[Any]) -> str:
    plain = [cell for cell in cells if cell is not None and cell != ""]
    is_number = [isinstance(cell, numbers.Real) and not isinstance(cell, bool) for cell in plain]
    return "r" if plain and all(is_number) else "l"


# Lets a browser refuse scripts and whatever is not in the file, should markup slip in after all.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

# Colours: two poles (blue and orange, told apart by colour-blind readers too) and six series. White text must
# be readable on a pole at full strength, in light and in dark. Charts name the same variables.
STYLE = """
:root {
  color-scheme: light dark;
  --surface: #ffffff; --ink: #1d2329; --muted: #626b75; --line: #dde1e6; --faint: #f4f6f8;
  --pos: #1f6fb2; --neg: #c2541d; --on-strong: #ffffff;
  --s1: #1f6fb2; --s2: #c2541d; --s3: #2a8560; --s4: #8250b8; --s5: #96700a; --s6: #b23a6e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --surface: #14171b; --ink: #e4e7ea; --muted: #98a1ab; --line: #31373e; --faint: #1c2025;
    --pos: #3584cc; --neg: #cf6a33; --on-strong: #ffffff;
    --s1: #68aeee; --s2: #ee945f; --s3: #5fc398; --s4: #b896e6; --s5: #d3b04c; --s6: #ea85b0;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--surface); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  -webkit-text-size-adjust: 100%;
}
header, main { max-width: 72rem; margin: 0 auto; padding: 0 1.5rem; }
header { padding-top: 3.5rem; }
main { padding-bottom: 5rem; }
h1 { margin: 0 0 1rem; font-size: 2rem; line-height: 1.2; font-weight: 650; letter-spacing: -0.015em; }
h2 { margin: 0 0 1rem; font-size: 1.25rem; line-height: 1.3; font-weight: 600; letter-spacing: -0.005em; }
h3 { margin: 0.5rem 0; font-size: 1rem; line-height: 1.3; font-weight: 600; overflow-wrap: anywhere; }
section { margin-top: 2.75rem; padding-top: 1.75rem; border-top: 1px solid var(--line); }
p { max-width: 44rem; margin: 0 0 1rem; overflow-wrap: anywhere; }
.scroll { max-width: 100%; overflow-x: auto; }
table { margin: 0 0 1rem; border-collapse: collapse; font-size: 0.925rem; line-height: 1.4; }
th { color: var(--muted); font-weight: 550; border-bottom: 1px solid var(--muted); vertical-align: bottom; }
td { border-bottom: 1px solid var(--line); vertical-align: middle; }
th, td { padding: 0.4rem 1.5rem 0.4rem 0; font-variant-numeric: tabular-nums; }
th:last-child, td:last-child { padding-right: 0.25rem; }
.l { text-align: left; } .c { text-align: center; } .r { text-align: right; }
td.l:last-child { min-width: 11rem; }
tbody tr:hover { background: var(--faint); }
table.strip th, table.strip td { border: 0; padding: 0.2rem 0.4rem; text-align: center; }
table.strip th { padding-left: 0; text-align: right; white-space: nowrap; vertical-align: middle; }
table.facts th { border-bottom-color: var(--line); white-space: nowrap; vertical-align: top; }
table.strip { margin-bottom: 2.25rem; font-size: 1.05rem; }
table.strip th { font-size: 0.875rem; }
mark {
  padding: 0.05rem 0.45rem; border-radius: 0.25rem; background: var(--neg); color: var(--on-strong);
  font-weight: 600; text-decoration: line-through;
}
.tiles { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.5rem 0 0; }
.tiles > div { flex: 1 1 12rem; padding: 1rem 1.25rem; border-radius: 0.5rem; background: var(--faint); }
.tiles strong { display: block; font-size: 1.75rem; line-height: 1.2; font-weight: 650; }
.tiles span { color: var(--muted); font-size: 0.9rem; }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.9em; }
pre { margin: 0; padding: 1rem 1.25rem; border-radius: 0.5rem; background: var(--faint); overflow-x: auto; }
.columns { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; align-items: flex-start; }
.columns > div { flex: 0 1 auto; min-width: 0; }
/* Charts of one kind, in as many columns as fit. */
.grid { display: grid; gap: 1.5rem 2rem; }
.grid { grid-template-columns: repeat(auto-fill, minmax(min(100%, 30rem), 1fr)); }
.grid > div { min-width: 0; overflow-x: auto; }
.columns figure { width: min-content; max-width: 100%; }
figure { margin: 1.25rem 0 1.75rem; }
figcaption { max-width: 44rem; margin-top: 0.5rem; color: var(--muted); font-size: 0.875rem; }
svg, img { vertical-align: middle; max-width: none; }
svg rect, svg path, svg circle { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
@media print {
  body { font-size: 10.5pt; }
  header { padding-top: 0; }
  header, main { max-width: none; padding-left: 0; padding-right: 0; }
  h2 { break-after: avoid; }
  figure, tr, svg { break-inside: avoid; }
  .scroll { overflow: visible; }
  svg { max-width: 100%; height: auto; }
}
"""
