"""Writes the pages of results: printed tables of the sources beside ours, and every table of figures in the docs.

    python -m benchmarks results            # writes what differs
    python -m benchmarks results --check    # says what differs, and ends with status 1 if anything does

Everything comes from the files of ``benchmarks/results/``, so that no figure on these pages is typed by hand:

``measured.jsonl``  rows that scripts measured, a line of JSON each (``python -m benchmarks SCRIPT --json``)
``*.toml``          the catalogue of a source: every table and figure it prints, the printed numbers, which of our rows
                    stand beside them, how the two differ and why; or the reason why nothing was run

A catalogue becomes ``docs/results/NAME.md``, and all of them ``docs/results/index.md``. An item has the names of tables
or figures (``names``), a ``title``, on what data ours ran (``data``), an ``outcome``, and then as it needs ``columns``
and ``printed`` (rows of the printed table, the label first), ``ours`` (blocks of measured rows), ``text``. Of an item
with ``beside`` the printed numbers stand in brackets behind ours of the same row and column.

Other pages hold blocks

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
was measured.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks" / "results"
MEASURED = FOLDER / "measured.jsonl"
CATALOGUES = ("shi-2011", "xiong-2015", "kernel-chapters", "jebara-lecture", "yu-2015")
# Pages with blocks to fill.
PAGES = (
    "README.md",
    "docs/results/peers.md",
    "docs/defaults.md",
    "docs/guide/census.md",
    "docs/guide/command-line.md",
    "docs/guide/growth.md",
    "docs/guide/parsing.md",
    "docs/guide/promises.md",
    "docs/guide/relative-margin.md",
    "docs/guide/serving.md",
    "docs/tutorials/networks.md",
)
BLOCK = re.compile(r"(<!-- figures: (?!end)(.*?)-->\n)(.*?)(<!-- figures: end -->)", re.S)
COMPARED = ("peer", "peer's", "mercer", "ratio")

# What ours ran on, and what came out: the words an item may use, and what they mean on the overview.
DATA = {
    "same": "the data of the source",
    "part": "a part or another version of the data of the source",
    "other": "other public data",
    "generated": "generated data",
    "none": "no data needed, or nothing run",
}
OUTCOMES = {
    "as printed": "figures agree within their spread, or a claim holds",
    "in part": "some figures or claims hold, others do not",
    "better": "ours are better than the printed figures",
    "worse": "ours are worse than the printed figures",
    "differs": "the claim or the order does not hold in our run",
    "not comparable": "ran, on data that the printed figures say nothing about",
    "not run": "not run, for the reason given",
    "nothing to run": "a description, a notation or an illustration",
}
RUN = tuple(OUTCOMES)[:6]

Row = dict[str, Any]
Item = dict[str, Any]


def rows_of(file: Path) -> list[Row]:
    """The rows of a file of results."""
    return [json.loads(line) for line in file.read_text().splitlines() if line]


def catalogue(name: str) -> dict[str, Any]:
    """The catalogue of a source."""
    return {"name": name, **tomllib.loads((FOLDER / f"{name}.toml").read_text())}


def items_of(source: dict[str, Any]) -> list[Item]:
    """All items of a catalogue, in order."""
    return [item for chapter in source["chapter"] for item in chapter.get("item", [])]


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
    if value is None:
        return ""
    if isinstance(value, dict):
        text = number(value["value"], decimals)
        if value.get("deviation") is not None:
            text += f" ± {number(value['deviation'], decimals)}"
        if value.get("seconds") is not None:
            text += f" ({value['seconds']:.1f} s)" if value["seconds"] else ""
        if value.get("printed") is not None:
            printed = value["printed"]
            text += f" ({printed if isinstance(printed, str) else number(printed)})"
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


# ------------------------------------------------------------------------------------------- printed beside ours


def markdown(columns: list[str], rows: list[list[Any]]) -> Iterator[str]:
    """A printed table, its figures as they are printed."""
    yield "| " + " | ".join(columns) + " |"
    yield "|---|" + "---:|" * (len(columns) - 1)
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in [*row, *[""] * (len(columns) - len(row))]) + " |"


def chosen_rows(rows: list[Row], spec: dict[str, Any]) -> list[Row]:
    """The measured rows of a block of an item: all of a table, or those whose measure matches; some of the columns."""
    script, _, name = spec["rows"].partition(" / ")
    found = named(rows, script, name)
    if "where" in spec:
        found = [row for row in found if re.search(spec["where"], row["measure"])]
        if not found:
            raise ValueError(f"no measure of {spec['rows']!r} matches {spec['where']!r}")
    if "cut" in spec:  # a part of the measure that all rows of the block share
        found = [{**row, "label": re.sub(spec["cut"], "", row["measure"])} for row in found]
    if "columns" in spec:
        found = [{**row, "values": {key: row["values"][key] for key in spec["columns"] if key in row["values"]}}
                 for row in found]  # fmt: skip
    return found


def with_printed(rows: list[Row], item: Item) -> list[Row]:
    """Rows with the printed figure of the same row and column behind ours."""
    printed = {row[0]: dict(zip(item["columns"][1:], row[1:], strict=False)) for row in item["printed"]}
    known = [row.get("label") or row["measure"] for row in rows]
    if missing := set(printed) - set(known):
        raise ValueError(f"{item['names'][0]}: nothing of ours stands beside {sorted(missing)}")
    result = []
    for row, label in zip(rows, known, strict=True):
        values = dict(row["values"])
        for column, figure in printed.get(label, {}).items():
            if figure == "":
                continue
            if column not in values:
                raise ValueError(f"{item['names'][0]}: {label!r} has no column {column!r}")
            ours = values[column]
            values[column] = (
                {**ours, "printed": figure} if isinstance(ours, dict) else {"value": ours, "printed": figure}
            )
        result.append({**row, "values": values})
    return result


def differences(rows: list[Row], against: tuple[str, str] | None = None) -> list[float]:
    """Ours less the printed, of all values that have both, or of two columns."""
    found = []
    for row in rows:
        values = row.get("values", {})
        if against is not None:
            ours, printed = (values.get(column) for column in against)
            values = {"": {"value": ours["value"] if isinstance(ours, dict) else ours, "printed": printed}}
        for value in values.values():
            if isinstance(value, dict) and isinstance(value.get("printed"), (int, float)):
                found.append(value["value"] - value["printed"])
    return found


def difference_of(rows: list[Row], against: tuple[str, str] | None = None) -> str:
    """A sentence on the differences, or nothing where there are fewer than two."""
    values = differences(rows, against)
    if len(values) < 2:
        return ""
    digits = 1 if max(map(abs, values)) >= 1 else 3
    shown = (sum(values) / len(values), min(values), max(values))
    mean, least, most = (f"{round(value, digits) + 0.0:+.{digits}f}" for value in shown)  # no -0.0
    return f"Ours less printed, {len(values)} cells: {mean} in the mean, from {least} to {most}."


# ----------------------------------------------------------------------------------------------------------- pages


def title_of(item: Item) -> str:
    """The heading of an item: "Table 2.2, table 2.3: error and time"."""
    names = ", ".join(item["names"])
    return f"{names[0].upper()}{names[1:]}: {item['title']}"


def anchor(item: Item) -> str:
    """The anchor of the heading of an item, as GitHub and MyST make them."""
    return re.sub(r"[^\w\- ]", "", title_of(item).lower()).replace(" ", "-")


def item_lines(item: Item, rows: list[Row]) -> Iterator[str]:
    """The lines of an item."""
    yield f"### {title_of(item)}"
    yield ""
    data = "" if item["data"] == "none" else f" Run on {DATA[item['data']]}."
    yield f"**{item['outcome'].capitalize()}.**{data}"
    yield ""
    beside = item.get("beside", False)
    if "printed" in item and not beside:
        yield "Printed:"
        yield ""
        yield from markdown(item["columns"], item["printed"])
        yield ""
    for k, spec in enumerate(item.get("ours", [])):
        chosen = chosen_rows(rows, spec)
        if beside and k == 0:
            chosen = with_printed(chosen, item)
        if "caption" in spec or "printed" in item:
            yield spec.get("caption") or ("Ours, the printed in brackets:" if beside else "Ours:")
            yield ""
        yield from table(chosen, spec.get("first", "measure"))
        yield ""
        if spec.get("difference", True) and (sentence := difference_of(chosen, spec.get("against"))):
            yield sentence
            yield ""
    if text := item.get("text", "").strip():
        yield text
        yield ""


def source_page(source: dict[str, Any], rows: list[Row]) -> str:
    """The page of a source."""
    lines = [
        f"<!-- Written by python -m benchmarks results from benchmarks/results/{source['name']}.toml. -->",
        "",
        f"# {source['title']}",
        "",
        source["about"].strip(),
        "",
    ]
    for chapter in source["chapter"]:
        lines += [f"## {chapter['title']}", ""]
        if text := chapter.get("about", "").strip():
            lines += [text, ""]
        for item in chapter.get("item", []):
            lines += item_lines(item, rows)
        for spec in chapter.get("more", []):  # what was measured besides the printed tables
            lines += [f"### {spec['title']}", ""]
            if text := spec.get("text", "").strip():
                lines += [text, ""]
            for part in spec.get("ours", []):
                if "caption" in part:
                    lines += [part["caption"], ""]
                lines += [*table(chosen_rows(rows, part), part.get("first", "measure")), ""]
            if text := spec.get("below", "").strip():
                lines += [text, ""]
    lines += ["Next: [the overview](index.md) of all sources, or [other packages](peers.md) in time and memory.", ""]
    return "\n".join(lines)


def shown_tables(sources: list[dict[str, Any]]) -> set[str]:
    """Tables of measured rows ("SCRIPT / TABLE") that stand on a page of a source or in a block of another page."""
    specs = [
        spec
        for source in sources
        for chapter in source["chapter"]
        for part in (*chapter.get("item", []), *chapter.get("more", []))
        for spec in part.get("ours", [])
    ]
    found = {spec["rows"] for spec in specs}
    for page in PAGES:
        for match in BLOCK.finditer((ROOT / page).read_text()):
            title, *lines = match[2].strip().splitlines()
            names = [title] if not title.startswith("pick") else lines
            found |= {" / ".join(re.split(r" / |\|", name.strip())[:2]).strip() for name in names}
    return found


def others(rows: list[Row], shown: set[str]) -> Iterator[str]:
    """The lines of tables that were measured and stand on no other page."""
    tables: dict[tuple[str, bool], list[Row]] = {}
    for row in rows:
        name = f"{row['script']} / {row['table']}"
        if name not in shown:
            tables.setdefault((name, "values" in row), []).append(row)  # one kind of rows in a table
    if tables:
        yield from ("", "## Other measurements", "", "Tables of scripts that stand on no page yet.")
    for (name, _), found in tables.items():
        yield from ("", f"**{name}**", "", *table(found, "measure"))


def overview(sources: list[dict[str, Any]], rows: list[Row]) -> str:
    """The page that lists every table and figure of the sources, and what was measured besides."""
    head = (FOLDER / "overview.md").read_text().strip()
    lines = [
        "<!-- Written by python -m benchmarks results from benchmarks/results/. -->", "", head, "",
        "| source | tables and figures | " + " | ".join(OUTCOMES) + " |",
        "|---|---:|" + "---:|" * len(OUTCOMES),
    ]  # fmt: skip
    totals: Counter[str] = Counter()
    for source in sources:
        counts = Counter({outcome: 0 for outcome in OUTCOMES})
        for item in items_of(source):
            counts[item["outcome"]] += len(item["names"])
        totals += counts
        cells = [str(counts[outcome] or "") for outcome in OUTCOMES]
        lines.append(f"| [{source['title']}]({source['name']}.md) | {counts.total()} | " + " | ".join(cells) + " |")
    lines.append(f"| all | {totals.total()} | " + " | ".join(str(totals[outcome] or "") for outcome in OUTCOMES) + " |")
    lines += ["", "What the words mean:", "", "| outcome | |", "|---|---|"]
    lines += [f"| {outcome} | {meaning} |" for outcome, meaning in OUTCOMES.items()]
    for source in sources:
        lines += ["", f"## {source['title']}", "", source["about"].strip().partition("\n\n")[0], ""]
        lines += ["| printed | what | ran on | outcome |", "|---|---|---|---|"]
        for item in items_of(source):
            names = ", ".join(item["names"])
            data = "" if item["data"] == "none" else DATA[item["data"]]
            link = f"[{names}]({source['name']}.md#{anchor(item)})"
            lines.append(f"| {link} | {item['title']} | {data} | {item['outcome']} |")
    lines += others(rows, shown_tables(sources))
    toc = "\n".join(source["name"] for source in sources)
    lines += ["", "Next: [other packages](peers.md) in time and memory, or [default against tuned](../defaults.md)."]
    lines += ["", "```{toctree}", ":hidden:", "", toc, "peers", "```", ""]
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """What every page that the results give must hold, by its path in the repository."""
    rows = rows_of(MEASURED)
    sources = [catalogue(name) for name in CATALOGUES]
    written = {f"docs/results/{source['name']}.md": source_page(source, rows) for source in sources}
    written["docs/results/index.md"] = overview(sources, rows)
    return written | {name: filled((ROOT / name).read_text(), rows) for name in PAGES}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", "--smoke", action="store_true", help="write nothing, say what differs")
    arguments = parser.parse_args()
    status = 0
    for name, new in pages().items():
        path = ROOT / name
        old = path.read_text() if path.exists() else ""
        if old == new:
            continue
        if not arguments.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(new)
            print(f"{name}: written")
        else:
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, "as results"))
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
