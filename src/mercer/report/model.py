"""The page of a model: its type, its parameters, and its evaluation on held-out data."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.report.charts import bars, heat_map, line_chart
from mercer.report.html import Html, columns, figure, page, section, table, text_of
from mercer.report.labellings import _png_rgb
from mercer.report.portrait import Block, Curves, Facts, Listing, Matrix, Pictures, Weights, portrait

if TYPE_CHECKING:
    from mercer.segmentation import Segmenter
    from mercer.tagging import Tagger

__all__ = ["blocks_html", "model_page", "segmenter_figures", "tagger_figures"]

_MOST_LABELS = 60  # of one heat map: beyond it, cells are too small to read and the page too heavy


def model_page(model: Any, *, title: str, top: int = 15, label: Any = None, more: Iterable[Block] = ()) -> str:
    """Return a page that shows what a model of any kind has learnt.

    Parameters
    ----------
    model : object
        A fitted model.
    title : str
        The heading of the page.
    top : int, default=15
        Number of features per label.
    label : object, optional
        Show only the features of this label.
    more : iterable of blocks
        Further content, such as the blocks of `mercer.report.examined.examined`.

    Returns
    -------
    str
        The document; write it with :func:`mercer.report.write_page`.

    Examples
    --------
    >>> from mercer.tagging import Tagger
    >>> from mercer.report.model import model_page
    >>> tagger = Tagger().fit([[{"word": "the"}, {"word": "dog"}]], [["DET", "NOUN"]])
    >>> "word=dog" in model_page(tagger, title="A tagger", top=3)
    True
    """
    facts, *rest = portrait(model, top, label)
    return page(title, blocks_html([facts]), blocks_html([*more, *rest]))


def blocks_html(blocks: Iterable[Block]) -> Html:
    """Return blocks as markup, in sections; consecutive blocks with the same title share a section.

    Parameters
    ----------
    blocks : iterable of blocks
        See `mercer.report.portrait`.

    Returns
    -------
    Html
    """
    parts: list[str] = []
    pending: list[Block] = []
    for block in [*blocks, None]:
        if pending and (block is None or _title(block) != _title(pending[0])):
            parts.append(_section(pending))
            pending = []
        if block is not None:
            pending.append(block)
    return Html("\n".join(parts))


def _title(block: Block) -> str:
    return block.title


def _section(blocks: list[Block]) -> str:
    content: list[Html | str] = []
    curves = [block for block in blocks if isinstance(block, Curves)]
    for block in blocks:
        if not isinstance(block, Curves):
            content += _drawn(block)
    if curves:
        content.append(columns(*(_curve(block) for block in curves)))
    title = _title(blocks[0])
    return section(title, *content) if title else Html("\n".join(map(str, content)))


def _drawn(block: Block) -> list[Html | str]:
    if isinstance(block, Facts):
        return [_summary(block.rows)]
    if isinstance(block, Listing):
        return [*_note(block.note), table(block.rows, block.header, block.align)]
    if isinstance(block, Weights):
        return [*_note(block.note), _lists(block.lists)]
    if isinstance(block, Pictures):
        return [figure(_tiles(block.values), block.caption)]
    assert isinstance(block, Matrix)
    return _matrix(block)


def _tiles(pictures: np.ndarray) -> Html:
    """Return images in rows of ten; negative values are dark, positive values bright."""
    n, height, width = pictures.shape
    across = min(10, n)
    sheet = np.full((-(-n // across) * (height + 2) + 2, across * (width + 2) + 2), 255.0)
    for i, picture in enumerate(pictures):
        low = float(picture.min())
        span = float(np.abs(picture).max()) or 1.0
        shades = 127.5 * (1.0 + picture / span) if low < 0 else 255.0 * (1.0 - picture / span)
        y, x = 2 + i // across * (height + 2), 2 + i % across * (width + 2)
        sheet[y : y + height, x : x + width] = shades
    data = base64.b64encode(_png_rgb(np.repeat(sheet[:, :, None], 3, axis=2))).decode()
    return Html(
        f'<img alt="{n} pictures" style="width:100%;max-width:{3 * sheet.shape[1]}px;image-rendering:pixelated" '
        f'src="data:image/png;base64,{data}">'
    )


def _note(text: str) -> list[Html | str]:
    return [text] if text else []


def _curve(block: Curves) -> Html:
    series: dict[str, Any] = dict(block.series)
    if block.line is not None:
        series["calibrated"] = block.line
    return figure(line_chart(series, block.x, block.y, block.log), block.caption)


def _matrix(block: Matrix) -> list[Html | str]:
    out = _note(block.note)
    values, rows, names = block.values, block.rows, block.columns
    square = rows == names
    if len(names) > _MOST_LABELS or len(rows) > _MOST_LABELS:
        finite = np.where(np.isfinite(values), np.abs(values), 0.0)
        strength = finite.sum(axis=0) + (finite.sum(axis=1) if square else 0.0)
        kept = np.sort(np.argsort(-strength, kind="stable")[:_MOST_LABELS])
        what = "labels" if square else "columns"
        out.append(f"The {len(kept)} {what}, of {len(names)}, with the largest values.")
        values, names = values[:, kept], [names[k] for k in kept]
        if square:
            values, rows = values[kept], names
    drawn = heat_map(
        values, rows, names, caption=block.caption, row_axis=block.row_axis,
        column_axis=block.column_axis, diverging=block.diverging,
    )  # fmt: skip
    out.append(figure(drawn, f"{block.caption} Hover for the value."))
    return out


def _lists(lists: dict[str, list[tuple[str, float]]]) -> Html:
    charts = []
    for label, pairs in lists.items():
        drawn = (
            bars([name for name, _ in pairs], [weight for _, weight in pairs])
            if pairs
            else Html("<p>no feature has a non-zero weight for this label</p>")
        )
        heading = f"<h3>{text_of(label)}</h3>" if label else ""
        charts.append(f"<div>{heading}{drawn}</div>")
    return Html(f'<div class="grid">{"".join(charts)}</div>')


def segmenter_figures(segmenter: Segmenter) -> list[tuple[str, str]]:
    """Return the properties of a segmenter as named values.

    Parameters
    ----------
    segmenter : Segmenter
        A fitted model.

    Returns
    -------
    list of (name, value)
    """
    labels = [str(label) for label in segmenter.classes_.tolist()]
    shown = ", ".join(labels[:24]) + (", …" if len(labels) > 24 else "")
    pack = "numbers"
    if segmenter.features_ is not None:
        pack = type(segmenter.features_).__name__
    elif segmenter.template is not None:
        pack = "a template"
    shortest = int(segmenter.structure_.shortest.min())
    seconds = segmenter.history_.get("seconds", [])
    time = f" in {seconds[-1]:.2f} s" if seconds and np.isfinite(seconds[-1]) else ""
    end = "converged" if segmenter.converged_ else "not converged"
    return [
        ("segments", f"output as {segmenter.form_}, lengths {shortest:,} to {segmenter.max_length_:,} positions"),
        ("labels", f"{len(labels):,}: {shown}" if len(labels) > 1 else "none: boundaries only"),
        ("features", f"{segmenter.n_features_in_:,} per position ({pack})"),
        ("weights", f"{len(segmenter.coef_):,}"),
        ("objective", f"{segmenter.loss_} loss, C = {segmenter.C_:.4g}"),
        ("offset", f"{segmenter.offset_:.4g}"),
        ("training", f"{segmenter.solver_}, {segmenter.n_iter_:,} iterations{time}, {end}"),
    ]


def tagger_figures(tagger: Tagger) -> list[tuple[str, str]]:
    """Return the properties of a tagger as named values.

    Parameters
    ----------
    tagger : Tagger
        A fitted model.

    Returns
    -------
    list of (name, value)
    """
    labels = [str(label) for label in tagger.classes_.tolist()]
    shown = ", ".join(labels[:24]) + (", …" if len(labels) > 24 else "")
    penalty = "none" if tagger.penalty is None else tagger.penalty
    if penalty == "elasticnet":
        penalty += f" (ℓ1 share {tagger.l1_ratio:g})"
    method = tagger.solver_
    loss = tagger.loss if isinstance(tagger.loss, str) else tagger.loss.name
    zero = int(np.count_nonzero(tagger.coef_ == 0))
    features = f"{tagger.n_features_in_:,}" + (" (hashed)" if tagger.features == "hashing" else "")
    figures = [
        ("labels", f"{len(labels):,}: {shown}"),
        ("features", features),
        ("weights", f"{len(tagger.coef_):,}" + (f", {zero:,} are zero" if zero else "")),
        ("objective", f"{loss} loss, C = {tagger.C_:.4g}, penalty {penalty}"),
        ("transitions", tagger.transitions),
    ]
    if tagger.template is not None:
        n = len(tagger.template.unigrams), len(tagger.template.bigrams)
        figures.append(("template", f"{n[0]} unigram and {n[1]} bigram patterns"))
    if tagger.constraints is not None:
        c = tagger.constraints
        forbidden = [
            (len(c.forbidden), "transitions"),
            (len(c.forbidden_start), "first labels"),
            (len(c.forbidden_end), "last labels"),
        ]
        figures.append(("forbidden", ", ".join(f"{n} {what}" for n, what in forbidden if n) or "nothing"))
    seconds = tagger.history_.get("seconds", [])
    time = f" in {seconds[-1]:.2f} s" if seconds and np.isfinite(seconds[-1]) else ""
    end = "converged" if tagger.converged_ else "not converged"
    figures.append(("training", f"{method}, {tagger.n_iter_:,} iterations{time}, {end}"))
    if tagger.history_.get("dev_score"):
        figures.append(("held-out accuracy", f"{np.nanmax(tagger.history_['dev_score']):.4f}"))
    return figures


def _summary(figures: list[tuple[str, str]]) -> Html:
    rows = "".join(
        f'<tr><th scope="row" class="l">{text_of(name)}</th><td class="l">{text_of(value)}</td></tr>'
        for name, value in figures
    )
    return Html(f'<div class="scroll"><table class="facts"><tbody>{rows}</tbody></table></div>')
