"""HTML views for notebooks: explanations, inference results, graphical models, bags.

`html_of` draws a value whose class derives from ``mercer._display.Displayed``; the view depends only on the type of the
value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from mercer._explain import Explanation
from mercer.attributes import AttributeReport
from mercer.inference import BayesianNetwork, FactorGraph, Inference, InferenceResult, MarkovNetwork
from mercer.proportions import Bags
from mercer.report.charts import (
    _INK,
    _LINE,
    _MUTED,
    _SURFACE,
    _short,
    _svg,
    _tag,
    _text,
    _width,
    bars,
    heat_map,
    probability_strip,
)
from mercer.report.html import Html, figure, page, paragraph, section, table, text_of
from mercer.report.model import blocks_html
from mercer.report.portrait import Block, Facts, Listing

__all__ = ["draw_graph", "html_of", "network_blocks", "network_page"]

_MOST_NODES = 60
_MOST_TABLES = 40
_MOST_ROWS = 30
_LARGEST_TABLE = 64


def html_of(value: Any) -> Html:
    """Return a result as HTML.

    Parameters
    ----------
    value : object
        An `Explanation`, an inference result, a graphical model or `Bags`.

    Returns
    -------
    Html

    Examples
    --------
    >>> from mercer.inference import FactorGraph, infer
    >>> from mercer.report.views import html_of
    >>> "yes" in html_of(infer(FactorGraph({"a": ["no", "yes"]}, unary={"a": [1, 3]})))
    True
    """
    for kind, draw in _VIEWS:
        if isinstance(value, kind):
            return draw(value)
    raise TypeError(f"no view of {type(value).__name__}")


# ------------------------------------------------------------------------------------------------------- explanations


def _explanation(value: Explanation) -> Html:
    against = "" if value.against is None else f" rather than {_plain(value.against)}"
    names = [term.name for term in value.terms]
    weights = [term.contribution for term in value.terms]
    if value.n_terms > len(value.terms):
        names.append(f"({value.n_terms - len(value.terms):,} more)")
        weights.append(value.rest)
    if value.constant:
        names.append("(constant)")
        weights.append(value.constant)
    drawn = bars(names, weights) if names else Html("<p>no feature of this input has a non-zero weight</p>")
    return Html(
        f"<p><strong>{text_of(_plain(value.output))}</strong>{text_of(against)}: score {value.score:+.4g}</p>{drawn}"
    )


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 120 else f"{text[:119]}…"


# ---------------------------------------------------------------------------------------------------------- inference


def _result(value: InferenceResult) -> Html:
    rows: list[tuple[str, str]] = [("method", f"{value.method}: {value.reason}")]
    rows.append(("exact", "yes" if value.exact else "no"))
    rows.append(("converged", f"{'yes' if value.converged else 'no'}, after {value.n_iter:,} iterations"))
    parts = []
    graph = value._whole.graph
    try:
        marginals = value.marginals
        rows.append(("log Z", f"{float(value.log_partition):.6g} ({value.log_partition.kind})"))
    except AttributeError:
        marginals = None
    if marginals is not None:
        shown = []
        for i in range(min(graph.n_variables, _MOST_ROWS)):
            states = _states(graph, i)
            p = np.asarray(marginals[graph.name(i)])
            best = int(p.argmax())
            strip = probability_strip(p, states) if len(p) <= 40 else Html("")
            shown.append([str(graph.name(i)), states[best], f"{p[best]:.4f}", strip])
        parts.append(table(shown, ["variable", "likeliest", "p", "distribution"]))
        if graph.n_variables > _MOST_ROWS:
            parts.append(paragraph(f"{graph.n_variables - _MOST_ROWS:,} more variables."))
    elif value._task == "map":
        best = value.map
        named = list(best.items() if isinstance(best, dict) else enumerate(best.tolist()))[:_MOST_ROWS]
        rows.append(("value", f"{value.map_value:.6g}"))
        parts.append(table([[str(a), str(b)] for a, b in named], ["variable", "best state"]))
    return Html("".join([blocks_html([Facts(rows)]), *parts]))


def _inference(value: Inference) -> Html:
    rows = [("method", value.method), *((name, str(option)) for name, option in value.options.items())]
    return blocks_html([Facts(rows)])


def _states(graph: FactorGraph, i: int) -> list[str]:
    if graph.states is not None:
        return [str(state) for state in graph.states[i]]
    return [str(k) for k in range(int(graph.cardinalities[i]))]


# ------------------------------------------------------------------------------------------------- graphical models


def network_blocks(network: Any) -> list[Block]:
    """Return the properties of a graphical model, and its small tables.

    Parameters
    ----------
    network : BayesianNetwork, MarkovNetwork or FactorGraph

    Returns
    -------
    list of blocks
        `Facts` first, then a listing for each table, up to 40.
    """
    names, edges, directed = _structure(network)
    states = _state_names(network)
    sizes = [len(states[name]) for name in names]
    rows = [
        ("variables", f"{len(names):,}"),
        ("arcs" if directed else "edges", f"{len(edges):,}"),
        ("states", f"{min(sizes, default=0)} to {max(sizes, default=0)} per variable"),
    ]
    blocks: list[Block] = [Facts(rows)]
    tables = _tables(network)
    large = 0
    for title, variables, values in tables:
        if values.size > _LARGEST_TABLE or len(blocks) > _MOST_TABLES:
            large += 1
            continue
        blocks.append(_table(title, variables, values, states))
    if large:
        rows.append(("tables", f"{len(tables) - large:,} shown, {large:,} larger or further tables omitted"))
    return blocks


def network_page(network: Any, *, title: str) -> str:
    """Return a page with the graph and the tables of a graphical model.

    Parameters
    ----------
    network : BayesianNetwork, MarkovNetwork or FactorGraph
    title : str
        The heading of the page.

    Returns
    -------
    str
        The document; write it with :func:`mercer.report.write_page`.
    """
    facts, *tables = network_blocks(network)
    drawn = "".join(f"<div><h3>{text_of(_title(block))}</h3>{_listing(block)}</div>" for block in tables)
    grid = Html(f'<div class="grid">{drawn}</div>')
    return page(
        title, blocks_html([facts]), section("Graph", _graph(network)), *([section("Tables", grid)] if tables else [])
    )


def _title(block: Block) -> str:
    return block.title if isinstance(block, Listing) else ""


def _listing(block: Block) -> Html:
    assert isinstance(block, Listing)
    return table(block.rows, block.header, block.align)


def _network(value: Any) -> Html:
    facts, *tables = network_blocks(value)
    shown = [f"<h4>{text_of(_title(block))}</h4>{_listing(block)}" for block in tables[:12]]
    return Html("".join([blocks_html([facts]), _graph(value), *shown]))


def _graph(network: Any) -> Html:
    names, edges, directed = _structure(network)
    if len(names) > _MOST_NODES:
        return paragraph(f"{len(names):,} variables: too many to draw.")
    caption = "An arrow points from a parent to its child." if directed else "Variables that share a factor are joined."
    return figure(draw_graph([str(name) for name in names], edges, directed=directed), caption)


def _structure(network: Any) -> tuple[list[Hashable], list[tuple[int, int]], bool]:
    """Return the names of the variables, the edges, and whether they are directed."""
    if isinstance(network, BayesianNetwork):
        names = list(network.names)
        place = {name: i for i, name in enumerate(names)}
        return names, [(place[p], place[c]) for c in names for p in network.parents[c]], True
    graph = network.factor_graph if isinstance(network, MarkovNetwork) else network
    pairs = {
        tuple(sorted((int(a), int(b))))
        for _, variables, _ in _numbered_tables(graph)
        for a, b in combinations(variables, 2)
    }
    return [graph.name(i) for i in range(graph.n_variables)], sorted(pairs), False  # type: ignore[arg-type]


def _state_names(network: Any) -> dict[Hashable, list[str]]:
    if isinstance(network, BayesianNetwork | MarkovNetwork):
        return {name: [str(state) for state in states] for name, states in network.states.items()}
    return {network.name(i): _states(network, i) for i in range(network.n_variables)}


def _tables(network: Any) -> list[tuple[str, list[Hashable], np.ndarray]]:
    if isinstance(network, BayesianNetwork):
        return [
            (
                f"p({name} | {', '.join(map(str, network.parents[name]))})" if network.parents[name] else f"p({name})",
                [*network.parents[name], name],
                network.tables[name],
            )
            for name in network.names
        ]
    graph = network.factor_graph if isinstance(network, MarkovNetwork) else network
    return [(title, [graph.name(i) for i in variables], values) for title, variables, values in _numbered_tables(graph)]


def _numbered_tables(graph: FactorGraph) -> list[tuple[str, list[int], np.ndarray]]:
    tables = []
    for factor in graph.factors:
        numbers = [graph.number(v) for v in factor.variables]
        names = ", ".join(str(graph.name(i)) for i in numbers)
        with np.errstate(over="ignore"):
            tables.append((f"φ({names})", numbers, np.exp(factor.log_table)))
    return tables


def _table(title: str, variables: Sequence[Hashable], values: np.ndarray, states: dict[Hashable, list[str]]) -> Listing:
    """Return a table with the states of the last variable as columns and those of all others as rows."""
    *given, last = variables
    header = [*map(str, given), *states[last]]
    rows = []
    for place in np.ndindex(values.shape[:-1]):
        rows.append([*(states[v][k] for v, k in zip(given, place, strict=True)), *(f"{p:.4g}" for p in values[place])])
    return Listing(title, header, rows, "l" * len(given) + "r" * len(states[last]))


def draw_graph(names: Sequence[str], edges: Sequence[tuple[int, int]], *, directed: bool = False) -> Html:
    """Draw a graph with node names, in layers if it is directed and acyclic, otherwise on a circle.

    Parameters
    ----------
    names : sequence of str
        One name per node.
    edges : sequence of (int, int)
        Pairs of nodes; with ``directed`` from the first to the second.
    directed : bool, default=False

    Returns
    -------
    Html
        An SVG element.

    Examples
    --------
    >>> from mercer.report.views import draw_graph
    >>> draw_graph(["rain", "grass"], [(0, 1)], directed=True).startswith("<svg")
    True
    """
    if not names:
        raise ValueError("draw_graph needs at least one node")
    layers = _layers(len(names), edges) if directed else None
    boxes = [max(36.0, _width(_short(name), 12) + 16) for name in names]
    places, width, height = _circle(boxes) if layers is None else _in_layers(layers, edges, boxes)
    parts = []
    for a, b in edges:
        (xa, ya), (xb, yb) = places[a], places[b]
        xa, ya = _border(xa, ya, xb, yb, boxes[a])
        xb, yb = _border(xb, yb, *places[a], boxes[b])
        title = _tag("title", text_of(f"{names[a]} {'→' if directed else '–'} {names[b]}"))
        parts.append(_tag("line", title, x1=xa, y1=ya, x2=xb, y2=yb, stroke=_MUTED, stroke_width=1.2))
        if directed:
            parts.append(_arrow_head(xa, ya, xb, yb))
    for (x, y), name, box in zip(places, names, boxes, strict=True):
        place = {"x": x - box / 2, "y": y - 13, "width": box, "height": 26, "rx": 13}
        parts.append(_tag("rect", **place, fill=_SURFACE, stroke=_LINE, stroke_width=1.5))
        parts.append(_text(_short(name), x, y + 4, 12, "middle", _INK, hover=name))
    return _svg(width, height, f"a graph of {len(names)} nodes", parts)


def _layers(n: int, edges: Sequence[tuple[int, int]]) -> list[int] | None:
    """Return the longest path from a root to each node; None if there is a cycle."""
    level = [0] * n
    for _ in range(n):
        changed = False
        for a, b in edges:
            if level[b] < level[a] + 1:
                level[b], changed = level[a] + 1, True
        if not changed:
            return level
    return None if edges else level


def _in_layers(
    level: list[int], edges: Sequence[tuple[int, int]], boxes: list[float]
) -> tuple[list[tuple[float, float]], float, float]:
    rows: dict[int, list[int]] = {}
    for node, depth in enumerate(level):
        rows.setdefault(depth, []).append(node)
    wide = max(sum(boxes[node] + 18 for node in row) for row in rows.values())
    x = {node: 0.0 for node in range(len(level))}
    parents: dict[int, list[int]] = {}
    for a, b in edges:
        parents.setdefault(b, []).append(a)
    for depth in sorted(rows):
        row = rows[depth]
        if depth:  # below the middle of their parents, as far as there is room
            row.sort(key=lambda node: float(np.mean([x[p] for p in parents.get(node, [node])])))
        total = sum(boxes[node] + 18 for node in row)
        at = (wide - total) / 2
        for node in row:
            x[node] = at + (boxes[node] + 18) / 2
            at += boxes[node] + 18
    return [(x[node] + 6, 26 + 74.0 * level[node]) for node in range(len(level))], wide + 12, 52 + 74.0 * max(level)


def _circle(boxes: list[float]) -> tuple[list[tuple[float, float]], float, float]:
    n = len(boxes)
    radius = max(60.0, n * 34 / (2 * math.pi), sum(boxes) / 7)
    if n == 1:
        return [(boxes[0] / 2 + 6, 26.0)], boxes[0] + 12, 52.0
    side = max(boxes) / 2 + 8
    places = [
        (side + radius + radius * math.cos(2 * math.pi * k / n), 24 + radius + radius * math.sin(2 * math.pi * k / n))
        for k in range(n)
    ]
    return places, 2 * (radius + side), 2 * radius + 48


def _border(x: float, y: float, to_x: float, to_y: float, box: float) -> tuple[float, float]:
    """Return the point where a line from the centre of a box leaves it."""
    dx, dy = to_x - x, to_y - y
    if not dx and not dy:
        return x, y
    reach = min(box / 2 / abs(dx) if dx else math.inf, 13 / abs(dy) if dy else math.inf)
    return x + dx * reach, y + dy * reach


def _arrow_head(xa: float, ya: float, xb: float, yb: float) -> str:
    length = math.hypot(xb - xa, yb - ya) or 1.0
    ux, uy = (xb - xa) / length, (yb - ya) / length
    left = f"{xb - 8 * ux + 4 * uy:.1f} {yb - 8 * uy - 4 * ux:.1f}"
    right = f"{xb - 8 * ux - 4 * uy:.1f} {yb - 8 * uy + 4 * ux:.1f}"
    return _tag("path", d=f"M{xb:.1f} {yb:.1f}L{left}L{right}Z", fill=_MUTED)


# --------------------------------------------------------------------------------------------------------------- bags


def _bags(value: Bags) -> Html:
    sizes = value.sizes
    rows = [
        ("bags", f"{len(value):,}"),
        ("rows", f"{value.n_rows:,}"),
        ("sizes", f"{sizes.min():,} to {sizes.max():,}"),
    ]
    listed: list[list[Any]] = []
    classes = [str(name) for name in value.classes] if value.lower is not None and value.classes is not None else []
    for k in range(min(len(value), _MOST_ROWS)):
        row: list[Any] = [str(value.names[k]), int(sizes[k])]
        if value.lower is not None:
            shares = value.shares[k]
            row += [float(share) for share in shares] if len(shares) <= 8 else []
            row.append(probability_strip(shares, classes or [str(j) for j in range(len(shares))]))
        listed.append(row)
    header = ["bag", "rows"]
    if value.lower is not None:
        n = value.lower.shape[1]
        header += ([*classes] or [f"share {j}" for j in range(n)]) if n <= 8 else []
        header.append("shares")
    more = [paragraph(f"{len(value) - _MOST_ROWS:,} more bags.")] if len(value) > _MOST_ROWS else []
    return Html("".join([blocks_html([Facts(rows)]), table(listed, header), *more]))


# --------------------------------------------------------------------------------------------------------- attributes


def _attributes(value: AttributeReport) -> Html:
    """Return properties of a table of attributes, and the table as a heat map with class names."""
    names = range(value.n_classes) if value.classes is None else value.classes.tolist()
    shown = value.table[:_MOST_NODES, :_MOST_NODES]
    columns = [str(j) for j in range(shown.shape[1])]
    left_out = "" if shown.size == value.table.size else f", the first {shown.shape[0]} × {shown.shape[1]}"
    chart = heat_map(
        shown, [str(name) for name in names][: len(shown)], columns, caption=f"attributes of classes{left_out}",
        row_axis="class", column_axis="attribute",
    )  # fmt: skip
    return Html(table(value.rows(), ["property", "value"]) + figure(chart, f"Attributes of classes{left_out}."))


_VIEWS: tuple[tuple[type, Callable[[Any], Html]], ...] = (
    (Explanation, _explanation),
    (InferenceResult, _result),
    (Inference, _inference),
    (BayesianNetwork, _network),
    (MarkovNetwork, _network),
    (FactorGraph, _network),
    (Bags, _bags),
    (AttributeReport, _attributes),
)
