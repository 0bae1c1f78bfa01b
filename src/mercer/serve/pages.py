"""The web page at ``/``: a form for each kind of model, and results drawn by the report code.

The page itself is static (``static/page.js``, ``static/page.css``): it requests ``GET /v1/models`` and ``GET
/v1/models/NAME`` and builds a form by the field ``page`` of the response. It shows its request as curl and Python code
and sends it to ``POST /v1/models/NAME:show``. This path takes the body of ``:predict`` (with ``"verb"`` for another
verb) and returns ``{"answer": result of the verb, "html": drawing}``. `draw` makes the drawings, with one function per
page type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mercer.report.charts import bars
from mercer.report.clouds import plot_clouds
from mercer.report.html import STYLE, Html, paragraph, table, text_of
from mercer.report.labellings import plot_graph_labelling, plot_labelling
from mercer.report.segmentations import plot_segmentation
from mercer.serve.errors import RequestError
from mercer.serve.kinds import Answerer

__all__ = ["docs", "draw", "index", "static"]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline';"
    " img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {
    "page.js": "text/javascript",
    "docs.js": "text/javascript",
    "page.css": "text/css",
    "icon.svg": "image/svg+xml",
    "report.css": "text/css",
}
_COLOURS = 7
_UNSURE = 0.8
"""Tokens with a label probability below this value are underlined."""
_SHOWN = 200  # rows of a table
_NARROW: dict[str, Any] = {"length": 90.0, "characters": 22}  # charts that a phone shows whole


def index() -> Any:
    """Return the page."""
    return _page("page.html")


def docs() -> Any:
    """Return the page that shows the OpenAPI document."""
    return _page("docs.html")


def _page(name: str) -> Any:
    from starlette.responses import HTMLResponse

    text = (Path(__file__).parent / "static" / name).read_text()
    return HTMLResponse(text, headers={"content-security-policy": _POLICY})


def static(name: str) -> Any:
    """Return a static file of the page; only files in the table exist."""
    from starlette.responses import Response

    if name not in _TYPES:
        raise RequestError(404, "this path does not exist")
    content = STYLE if name == "report.css" else (Path(__file__).parent / "static" / name).read_text()
    return Response(content, media_type=_TYPES[name])


def draw(answers: Answerer, body: dict[str, Any], answer: dict[str, Any]) -> Html:
    """Return a result as markup, by the page type of the model."""
    fields = json.loads(json.dumps(answer, default=_listed))
    instances = body.get("instances") or []
    parts = _DRAWINGS.get(answers.page, _numbers)(answers, instances, fields, body)
    parts += _best(fields) + _explained(fields)
    return Html("\n".join(parts))


def _listed(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


# ---------------------------------------------------------------------------------------------------------- sequences


def _words(instance: Any) -> list[str]:
    """Return the text of each position."""

    def word(token: Any) -> str:
        if isinstance(token, dict):
            return ", ".join(f"{key}={value}" for key, value in token.items())
        if isinstance(token, list):
            return str(token[0]) if token and isinstance(token[0], str) else ""
        return str(token)

    return [word(token) or str(t) for t, token in enumerate(instance)]


def _kind_of_label(label: Any) -> str:
    """Return the label of a span without its prefix: B-PER and I-PER become PER."""
    text = str(label)
    return text[2:] if len(text) > 2 and text[1] == "-" and text[0] in "BIESLU" else text


def _tokens(answers: Answerer, words: Sequence[str], labels: Sequence[Any], probabilities: Any) -> Html:
    kinds = sorted({_kind_of_label(label) for label in (answers.classes or labels)} - {"O"})
    classes = [str(label) for label in answers.classes or []]
    made = []
    for t, (word, label) in enumerate(zip(words, labels, strict=True)):
        kind = _kind_of_label(label)
        colour = "none" if kind == "O" else f"c{kinds.index(kind) % _COLOURS}"
        sure, said = "", f"{word}: {label}"
        if probabilities is not None and str(label) in classes:
            p = float(probabilities[t][classes.index(str(label))])
            said += f", probability {p:.3f}"
            sure = "" if p >= _UNSURE else " unsure"
        made.append(
            f'<span class="token {colour}{sure}" tabindex="0" title="{text_of(said)}">'
            f"<span>{text_of(word)}</span><small>{text_of(label)}</small></span>"
        )
    return Html(f'<p class="tokens">{" ".join(made)}</p>')


def _tagged(answers: Answerer, instances: list[Any], fields: dict[str, Any], body: dict[str, Any]) -> list[Html]:
    made = []
    for i, labels in enumerate(fields.get("predictions", [])):
        marginals = fields["probabilities"][i] if "probabilities" in fields else None
        made.append(_tokens(answers, _words(instances[i]), labels, marginals))
    if "probabilities" in fields:
        made.append(paragraph(f"Underlined: probability below {_UNSURE:.0%}. Hover over a token for its probability."))
    return made


def _segmented(answers: Answerer, instances: list[Any], fields: dict[str, Any], body: dict[str, Any]) -> list[Html]:
    made = []
    for i, segments in enumerate(fields.get("predict_segments", fields.get("predictions", []))):
        starts = fields["boundary_marginals"][i] if "boundary_marginals" in fields else None
        n = len(instances[i])
        triples = [tuple(one) for one in segments] if segments and isinstance(segments[0], list) else None
        if triples is None:
            ends = [*segments[1:], n]
            triples = [(a, b, None) for a, b in zip(segments, ends, strict=True)]
        made.append(Html(f'<div class="scroll">{plot_segmentation(prediction=triples, marginals=starts)}</div>'))
        if all(isinstance(token, str) for token in instances[i]):
            rows = [
                [f"{a} to {b - 1}", "" if label is None else str(label), " ".join(instances[i][a:b])]
                for a, b, label in triples
            ]
            made.append(table(rows, ["positions", "label", "text"]))
    return made


# -------------------------------------------------------------------------------------------------- classes and scores


def _classified(answers: Answerer, instances: list[Any], fields: dict[str, Any], body: dict[str, Any]) -> list[Html]:
    made = []
    for i, label in enumerate(fields.get("predictions", [])[:20]):
        if len(fields["predictions"]) > 1:
            made.append(Html(f"<h3>{text_of(_short(instances[i]))}</h3>"))
        made.append(Html(f'<p class="verdict">{text_of(_said(answers, label))}</p>'))
        values = fields.get("probabilities", fields.get("scores"))
        if values is not None and answers.classes is not None:
            row = np.atleast_1d(np.asarray(values[i], float))
            if row.ndim == 1 and len(row) == len(answers.classes):
                order = np.argsort(-row)[:15]
                chart = bars([str(answers.classes[k]) for k in order], row[order], **_NARROW)
                made.append(Html(f'<div class="scroll">{chart}</div>'))
            elif len(row) == 1:
                made.append(paragraph("score ", float(row[0])))
    return made


def _said(answers: Answerer, label: Any) -> str:
    """Return a prediction as text: a label, or the labels of a set."""
    if isinstance(label, list) and answers.classes is not None and len(label) == len(answers.classes):
        inside = [str(c) for c, has in zip(answers.classes, label, strict=True) if has == 1]
        return ", ".join(inside) or "no label"
    return _short(label)


def _short(value: Any, most: int = 80) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _shared(answers: Answerer, instances: list[Any], fields: dict[str, Any], body: dict[str, Any]) -> list[Html]:
    made = []
    if "shares" in fields:
        names, values = list(fields["shares"]), list(fields["shares"].values())
        made += [
            Html("<h3>Shares of all rows</h3>"),
            Html(f'<div class="scroll">{bars(names, values, **_NARROW)}</div>'),
        ]
    if "groups" in fields:
        header = ["group", "rows", *fields["shares"]]
        rows = [
            [name, group["rows"], *(group[c] for c in fields["shares"])] for name, group in fields["groups"].items()
        ]
        made += [Html("<h3>Shares of groups</h3>"), table(rows[:_SHOWN], header)]
    labels = fields.get("predictions", [])
    if labels:
        rows = [[i + 1, str(label), _short(instances[i])] for i, label in enumerate(labels[:_SHOWN])]
        made += [Html("<h3>Rows</h3>"), table(rows, ["row", "class", "input"])]
        if len(labels) > _SHOWN:
            made.append(paragraph(f"{len(labels) - _SHOWN:,} more rows are in the response."))
    return made


def _numbers(answers: Answerer, instances: list[Any], fields: dict[str, Any], body: dict[str, Any]) -> list[Html]:
    rows = [[i + 1, _short(instances[i]), _short(value, 300)] for i, value in enumerate(fields["predictions"][:_SHOWN])]
    return [table(rows, ["", "input", answers.verbs[0]])]


# --------------------------------------------------------------------------------- images, graphs, clouds, codes, trees


def _image(answers: Answerer, instances: list[Any], fields: dict[str, Any], body: dict[str, Any]) -> list[Html]:
    from mercer.serve.forms import FORMS, Limits

    made = []
    for i, pixels in enumerate(FORMS["images"].read(answers.model, instances[:4], Limits())):
        marginals = np.asarray(fields["probabilities"][i], float) if "probabilities" in fields else None
        drawn = plot_labelling(pixels, prediction=np.asarray(fields["predictions"][i]), marginals=marginals)
        made.append(Html(f'<div class="scroll whole">{drawn}</div>'))
    return made


def _graph(answers: Answerer, instances: list[Any], fields: dict[str, Any], body: dict[str, Any]) -> list[Html]:
    made = []
    for i, labels in enumerate(fields["predictions"][:10]):
        marginals = fields["probabilities"][i] if "probabilities" in fields else None
        drawn = plot_graph_labelling(instances[i]["edges"], labels, marginals=marginals)
        made.append(Html(f'<div class="scroll whole">{drawn}</div>'))
    return made


def _registered(answers: Answerer, instances: list[Any], fields: dict[str, Any], body: dict[str, Any]) -> list[Html]:
    if "moved" not in fields:
        return _numbers(answers, instances, fields, body)
    source, target = np.asarray(body["source"], float), np.asarray(body["target"], float)
    facts = [
        ["fitness", f"{fields['fitness']:.1%} of the points within {fields['radius']:.3g}"],
        ["rmse", fields["rmse"]],
        ["motion", json.dumps([[round(v, 4) for v in row] for row in fields["transform"]])],
    ]
    return [
        Html("<h3>Before</h3>"),
        Html(f'<div class="scroll whole">{plot_clouds(source, target)}</div>'),
        Html("<h3>After</h3>"),
        Html(f'<div class="scroll whole">{plot_clouds(np.asarray(fields["moved"], float), target)}</div>'),
        table(facts, ["", ""]),
    ]


def _retrieved(answers: Answerer, instances: list[Any], fields: dict[str, Any], body: dict[str, Any]) -> list[Html]:
    if "nearest" not in fields:
        return _numbers(answers, instances, fields, body)
    made = []
    for i, nearest in enumerate(fields["nearest"][:20]):
        rows = [[one["index"], one["distance"], one["angle"], _short(body["among"][one["index"]])] for one in nearest]
        made += [Html(f"<h3>{text_of(_short(instances[i]))}</h3>"), table(rows, ["row", "bits", "angle (°)", "values"])]
    return made


def _plain_text(answers: Answerer, instances: list[Any], fields: dict[str, Any], body: dict[str, Any]) -> list[Html]:
    made = []
    for one in fields["predictions"][:20]:
        text = "\n".join(one["rows"]) if isinstance(one, dict) and "rows" in one else str(one)
        made.append(Html(f"<pre>{text_of(text)}</pre>"))
    return made


# ------------------------------------------------------------------------------------------- for models of any kind


def _best(fields: dict[str, Any]) -> list[Html]:
    made = []
    for ranked in fields.get("k_best", [])[:5]:
        rows = [[k + 1, _output(one["output"]), one["score"]] for k, one in enumerate(ranked)]
        made += [Html("<h3>Best outputs</h3>"), table(rows, ["", "output", "score"])]
    return made


def _output(value: Any) -> str:
    """Return an output as text: labels, segments as "label 0–4", an alignment as two rows."""
    if isinstance(value, dict) and "rows" in value:
        return " / ".join(value["rows"])
    if isinstance(value, list) and value and all(isinstance(item, list) and len(item) == 3 for item in value):
        return ", ".join(f"{'' if label is None else f'{label} '}{a}–{b - 1}" for a, b, label in value)
    flat = isinstance(value, list) and not any(isinstance(item, list) for item in value)
    return " ".join(map(str, value)) if flat else _short(value, 300)


def _explained(fields: dict[str, Any]) -> list[Html]:
    made = []
    for one in fields.get("explanations", [])[:5]:
        if "problem" in one:
            made.append(paragraph(f"Nothing to explain: {one['problem']}."))
            continue
        against = "" if one["against"] is None else f" rather than {_output(one['against'])}"
        heading = f"Explanation of {_output(one['output'])}{against}"
        made.append(Html(f"<h3>{text_of(heading)}</h3>"))
        if one["terms"]:
            names = [term["name"] for term in one["terms"]]
            chart = bars(names, [term["contribution"] for term in one["terms"]], **_NARROW)
            made.append(Html(f'<div class="scroll">{chart}</div>'))
        else:
            made.append(paragraph("No feature of this input has a weight in the model."))
    return made


_DRAWINGS: dict[str, Callable[[Answerer, list[Any], dict[str, Any], dict[str, Any]], list[Html]]] = {
    "tagger": _tagged,
    "hidden": _tagged,
    "segmenter": _segmented,
    "classifier": _classified,
    "shares": _shared,
    "image": _image,
    "graph": _graph,
    "registration": _registered,
    "retrieval": _retrieved,
    "parser": _plain_text,
    "aligner": _plain_text,
    "numbers": _numbers,
}
