"""Fills the tables of the pages from benchmarks/results.jsonl, so that no figure in them is typed by hand.

    python tools/figures.py            # says which pages differ from what the results give
    python tools/figures.py --write    # fills them (make figures)

A page holds blocks

    <!-- figures: SCRIPT / TABLE | title of the first column -->
    <!-- figures: end -->

and what stands between the two lines is made from the rows of that table, in the order of the file. A block that picks
rows, from any tables, names them, one a line, with other words for a measure after " = " where they are wanted:

    <!-- figures: pick | title of the first column
    SCRIPT / TABLE / measure = other words
    -->
    <!-- figures: end -->

Rows beside a peer have the columns measure, peer, the peer's figure, ours and the ratio, and are left out where the
peer was not installed; other rows have a column for each of their values. Below a table stands how, when and where it
was measured. ``python -m benchmarks SCRIPT --json`` writes the rows.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results.jsonl"
PAGES = (
    "README.md",
    "docs/benchmarks.md",
    "docs/defaults.md",
    "docs/proportions_results.md",
    "docs/recognition_results.md",
    "docs/registration_results.md",
)
BLOCK = re.compile(r"(<!-- figures: (?!end)(.*?)-->\n)(.*?)(<!-- figures: end -->)", re.S)
COMPARED = ("peer", "peer's", "mercer", "ratio")

Row = dict[str, Any]


def rows_of(file: Path) -> list[Row]:
    """The rows of a file of results."""
    return [json.loads(line) for line in file.read_text().splitlines() if line]


# ----------------------------------------------------------------------------------------------------------- cells


def number(value: float, decimals: int | None = None) -> str:
    """A number for people: three digits, or so many decimals; thousands apart."""
    if isinstance(value, int):
        return f"{value:,}"
    if decimals is not None:
        return f"{value:,.{decimals}f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def quantity(value: float | None, unit: str) -> str:
    """A figure with its unit."""
    if value is None:
        return ""
    if unit == "%":
        return f"{value:.2f} %"
    if unit == "tokens/s":
        return f"{value / 1000:,.0f} k tokens/s"
    return f"{number(value)} {unit}".strip()


def decimals_of(values: list[Any]) -> int | None:
    """As many decimals as the finest figure of a column has, where these are one or two."""
    figures = [part for value in values for part in parts_of(value) if isinstance(part, float)]
    most = max((len(str(figure).partition(".")[2]) for figure in figures if "e" not in str(figure)), default=0)
    return most if 1 <= most <= 2 else None


def parts_of(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value[key] for key in ("value", "deviation") if key in value]
    return value if isinstance(value, list) else [value]


def shown(value: Any, decimals: int | None) -> str:
    """A value of a row: words, a number, a pair, a mean with its deviation, seconds or a printed figure in brackets."""
    if isinstance(value, dict):
        text = number(value["value"], decimals)
        if value.get("deviation") is not None:
            text += f" ± {number(value['deviation'], decimals)}"
        if value.get("seconds") is not None:
            text += f" ({value['seconds']:.1f} s)" if value["seconds"] else ""
        if value.get("printed") is not None:
            text += f" ({number(value['printed'])})"
        return text
    if isinstance(value, list):
        return " / ".join(shown(part, decimals) for part in value)
    return number(value, decimals) if isinstance(value, (int, float)) else str(value)


# ---------------------------------------------------------------------------------------------------------- tables


def table(rows: list[Row], first: str) -> Iterator[str]:
    """The lines of a table in Markdown, and those below it that say where the rows come from."""
    rows = [row for row in rows if not row.get("peer") or row.get("theirs") is not None or row.get("ratio") is not None]
    values = [row["values"] for row in rows if "values" in row]
    if values and len(values) < len(rows):
        raise ValueError(f"{rows[0]['script']}: rows beside a peer and rows of values in one table")
    titles = list(dict.fromkeys(title for row in values for title in row)) if values else list(COMPARED)
    if not values and not any(row.get("peer") for row in rows):
        titles = ["mercer"]
    yield f"| {first} | " + " | ".join(titles) + " |"
    yield "|---|" + "".join("---|" if title == "peer" else "---:|" for title in titles)
    decimals = {title: decimals_of([row.get(title, "") for row in values]) for title in titles}
    for row in rows:
        if values:
            cells = [shown(row["values"].get(title, ""), decimals[title]) for title in titles]
        elif titles == ["mercer"]:
            cells = [quantity(row.get("ours"), row["unit"])]
        else:
            cells = [peer_of(row), *(quantity(row.get(side), row["unit"]) for side in ("theirs", "ours")), ratio(row)]
        yield f"| {row.get('label') or row['measure']} | " + " | ".join(cells) + " |"
    yield ""
    yield provenance(rows)


def peer_of(row: Row) -> str:
    """A peer with its version behind its name: "hmmlearn 0.3.3, scaling"."""
    name, version = row.get("peer", ""), row.get("peer_version", "")
    return re.sub(r"^[^\s,]+", lambda match: f"{match[0]} {version}", name) if version else name


def ratio(row: Row) -> str:
    """How many times better ours is: never of sides that were not measured in one run."""
    value = row.get("ratio")
    if value is None:
        return ""
    return (
        f"{value:,.0f}" if value >= 100 or isinstance(value, int) else f"{value:.1f}" if value >= 1 else f"{value:.2f}"
    )


def provenance(rows: list[Row]) -> str:
    """How, when and where rows were measured, a clause for each run."""
    days: dict[tuple[str, str, bool], list[str]] = {}
    for row in rows:
        command = f"`python -m benchmarks {' '.join(filter(None, (row['script'], row.get('options', ''))))}`"
        days.setdefault((command, row["machine"], bool(row.get("earlier"))), []).append(row["date"])
    clauses = [
        f"{command}, {' and '.join(sorted(set(dates)))}{' (earlier)' if earlier else ''}, {machine}"
        for (command, machine, earlier), dates in days.items()
    ]
    if len(clauses) <= 2:
        return "Measured by " + "; ".join(clauses) + "."
    scripts, dates = sorted({row["script"] for row in rows}), sorted({row["date"] for row in rows})
    machines = sorted({re.sub(r", (?:busy|load [\d.]+)$", "", row["machine"]) for row in rows})
    when = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    return f"Measured by `python -m benchmarks` ({', '.join(scripts)}), {when}, {'; '.join(machines)}."


def named(rows: list[Row], script: str, name: str) -> list[Row]:
    """The rows of a table."""
    found = [row for row in rows if (row["script"], row["table"]) == (script, name)]
    if not found:
        raise ValueError(f"the results have no table {name!r} of {script!r}")
    return found


def picked(rows: list[Row], line: str) -> Row:
    """The row that a line of a block names; the last one, where several have the name."""
    key, _, label = line.partition(" = ")
    script, name, measure = (part.strip() for part in key.split(" / ", 2))
    peers = [
        row for row in named(rows, script, name) if measure in (row["measure"], f"{row['measure']} @ {row.get('peer')}")
    ]
    if not peers:
        raise ValueError(f"the results have no {measure!r} in the table {name!r} of {script!r}")
    return {**peers[-1], "label": label.strip()}


def block(rows: list[Row], head: str) -> str:
    """What stands between the two lines of a block."""
    title, *lines = head.strip().splitlines()
    source, _, first = (part.strip() for part in title.partition("|"))
    if source == "pick":
        chosen = [picked(rows, line) for line in lines if line.strip()]
    else:
        script, _, name = (part.strip() for part in source.partition(" / "))
        chosen = named(rows, script, name)
    return "\n" + "\n".join(table(chosen, first or "measure")) + "\n\n"


def filled(page: str, rows: list[Row]) -> str:
    """A page with all its blocks filled."""
    return BLOCK.sub(lambda match: match[1] + block(rows, match[2]) + match[4], page)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="fill the pages")
    arguments = parser.parse_args()
    rows, status = rows_of(RESULTS), 0
    for name in PAGES:
        path = ROOT / name
        old = path.read_text()
        new = filled(old, rows)
        if old == new:
            continue
        if arguments.write:
            path.write_text(new)
            print(f"{name}: filled")
        else:
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, "as results"))
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
