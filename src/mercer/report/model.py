"""The pages of a tagger and of a segmenter: what it is, transitions, features that speak for each label, training."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.report.charts import bars, heat_map, line_chart
from mercer.report.html import Html, columns, figure, page, section, text_of

if TYPE_CHECKING:
    from mercer.segmentation import Segmenter
    from mercer.tagging import Tagger

__all__ = ["segmenter_figures", "segmenter_page", "tagger_figures", "tagger_page"]

_MOST_CURVES = 8  # of one chart: beyond it, they cannot be told apart
_MOST_LABELS = 60  # of one heat map: beyond it, cells are too small to read and the page too heavy


def tagger_page(tagger: Tagger, *, title: str, top: int = 15) -> str:
    """Return a page that shows what a tagger has learnt.

    Parameters
    ----------
    tagger : Tagger
        A fitted one.
    title : str
        The heading of the page.
    top : int, default=15
        How many features of each label.

    Returns
    -------
    str
        The document; write it with :func:`mercer.report.write_page`.

    Examples
    --------
    >>> from mercer.tagging import Tagger
    >>> from mercer.report.model import tagger_page
    >>> tagger = Tagger().fit([[{"word": "the"}, {"word": "dog"}]], [["DET", "NOUN"]])
    >>> "word=dog" in tagger_page(tagger, title="A tagger", top=3)
    True
    """
    if top < 1:
        raise ValueError(f"top must be at least 1, got {top}")
    return page(
        title,
        _summary(tagger_figures(tagger)),
        section("Transitions", *_transitions(tagger)),
        section("Features", *_features(tagger, top, _strongest)),
        section("Training", *_training(tagger)),
    )


def segmenter_page(segmenter: Segmenter, *, title: str, top: int = 15) -> str:
    """Return a page that shows what a segmenter has learnt.

    Parameters
    ----------
    segmenter : Segmenter
        A fitted one.
    title : str
        The heading of the page.
    top : int, default=15
        How many features of each label.

    Returns
    -------
    str
        The document; write it with :func:`mercer.report.write_page`.

    Examples
    --------
    >>> from mercer.segmentation import Segmenter
    >>> from mercer.report.model import segmenter_page
    >>> segmenter = Segmenter().fit([[{"word": "the"}, {"word": "dog"}]], [["DET", "NOUN"]])
    >>> "sum:word=dog" in segmenter_page(segmenter, title="A segmenter", top=3)
    True
    """
    if top < 1:
        raise ValueError(f"top must be at least 1, got {top}")
    sections = [section("Lengths", *_lengths(segmenter))] if segmenter.max_length_ > 1 else []
    if len(segmenter.classes_) > 1:
        sections.append(section("Transitions", *_transitions(segmenter)))
    return page(
        title,
        _summary(segmenter_figures(segmenter)),
        *sections,
        section("Features", *_features(segmenter, top, _strongest_of_segments)),
        section("Training", *_training(segmenter)),
    )


def segmenter_figures(segmenter: Segmenter) -> list[tuple[str, str]]:
    """Return what a segmenter is, as named figures.

    Parameters
    ----------
    segmenter : Segmenter
        A fitted one.

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
        ("segments", f"written as {segmenter.form_}, of {shortest:,} to {segmenter.max_length_:,} positions"),
        ("labels", f"{len(labels):,}: {shown}" if len(labels) > 1 else "none: boundaries only"),
        ("features", f"{segmenter.n_features_in_:,} of a position ({pack})"),
        ("weights", f"{len(segmenter.coef_):,}"),
        ("objective", f"{segmenter.loss_} loss, C = {segmenter.C_:.4g}"),
        ("offset", f"{segmenter.offset_:.4g}"),
        ("training", f"{segmenter.solver_}, {segmenter.n_iter_:,} iterations{time}, {end}"),
    ]


def tagger_figures(tagger: Tagger) -> list[tuple[str, str]]:
    """Return what a tagger is, as named figures.

    Parameters
    ----------
    tagger : Tagger
        A fitted one.

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
        ("weights", f"{len(tagger.coef_):,}" + (f", {zero:,} of them zero" if zero else "")),
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


def _transitions(model: Tagger | Segmenter) -> list[Html | str]:
    labels, weights = [str(label) for label in model.classes_.tolist()], model.transitions_
    ends = np.stack([model.start_, model.end_])
    out: list[Html | str] = [
        "How much each pair of neighbouring labels adds to the score of a labelling: blue pairs are "
        "encouraged, orange ones discouraged."
    ]
    if len(labels) > _MOST_LABELS:
        finite = np.where(np.isfinite(weights), np.abs(weights), 0.0)
        strength = finite.sum(axis=0) + finite.sum(axis=1)
        kept = np.sort(np.argsort(-strength, kind="stable")[:_MOST_LABELS])
        out.append(f"Shown are the {_MOST_LABELS} labels, of {len(labels)}, with the largest weights.")
        labels, weights, ends = [labels[k] for k in kept], weights[np.ix_(kept, kept)], ends[:, kept]
    pairs = heat_map(weights, labels, labels, caption="transition weights", row_axis="from", column_axis="to")
    edges = heat_map(ends, ["first", "last"], labels, caption="weights of the first and the last label")
    out.append(figure(pairs, "Transition weights, from the label of a row to that of a column. Hover for the value."))
    out.append(figure(edges, "Weights of the first and the last label of a sequence."))
    return out


def _lengths(segmenter: Segmenter) -> list[Html | str]:
    """Scores of lengths: a curve a label, or, with many labels, a table in colours."""
    labels, scores = [str(label) for label in segmenter.classes_.tolist()], segmenter.lengths_
    sizes = np.arange(1, len(scores) + 1)
    what = (
        "How much a segment of each length adds to the score of a segmentation; "
        "lengths that are not allowed are left out."
    )
    if len(labels) <= _MOST_CURVES:
        curves = {label: (sizes, column) for label, column in zip(labels, scores.T, strict=True)}
        return [what, figure(line_chart(curves, "length", "score"), "Scores of lengths, by label.")]
    rows = np.unique(np.geomspace(1, len(sizes), min(len(sizes), _MOST_LABELS)).astype(int)) - 1
    strength = np.where(np.isfinite(scores), np.abs(scores), 0.0).sum(axis=0)
    kept = np.sort(np.argsort(-strength, kind="stable")[:_MOST_LABELS])
    names = [str(sizes[k]) for k in rows]
    drawn = heat_map(
        scores[np.ix_(rows, kept)], names, [labels[k] for k in kept], caption="scores of lengths", row_axis="length"
    )
    return [what, figure(drawn, "Scores of lengths, by label. Hover for the value.")]


def _features(model: Any, top: int, strongest: Callable[..., tuple[list[str], list[float]]]) -> list[Html | str]:
    charts = []
    for label in model.classes_.tolist():
        names, values = strongest(model, label, top)
        drawn = bars(names, values) if names else Html("<p>no feature has a weight for this label</p>")
        title = str(label) if len(model.classes_) > 1 else "every segment"
        charts.append(Html(f"<h3>{text_of(title)}</h3>{drawn}"))
    return [
        f"For each label the {top} features that speak most for it, and up to {max(1, top // 3)} that "
        "speak most against it.",
        Html(f'<div class="grid">{"".join(f"<div>{chart}</div>" for chart in charts)}</div>'),
    ]


def _strongest(tagger: Tagger, label: Any, top: int) -> tuple[list[str], list[float]]:
    weights = tagger.feature_weights(label)
    order = np.argsort(-weights, kind="stable")
    best = [k for k in order[:top] if weights[k] > 0]
    worst = [k for k in order[-max(1, top // 3) :] if weights[k] < 0]
    chosen = [int(k) for k in [*best, *worst]]
    return [tagger.feature_name(k) for k in chosen], [float(weights[k]) for k in chosen]


def _strongest_of_segments(segmenter: Segmenter, label: Any, top: int) -> tuple[list[str], list[float]]:
    best = [one for one in segmenter.top_features(top, label=label) if one[1] > 0]
    worst = [one for one in segmenter.top_features(max(1, top // 3), label=label, against=True) if one[1] < 0]
    chosen = [*best, *worst[::-1]]
    return [name for name, _ in chosen], [weight for _, weight in chosen]


_CURVES = (
    ("objective", "objective", False, "The objective: penalty and C times the loss."),
    ("gap", "gap", True, "How far it can be from the optimum: the relative gap to the dual objective."),
    ("gradient_norm", "gradient norm", True, "The norm of its gradient, which is 0 at the optimum."),
    ("mistakes", "mistakes", False, "Positions labelled wrong during each pass over the training data."),
    ("dev_score", "score", False, "The score of the model on held-out data."),
)


def _training(model: Tagger | Segmenter) -> list[Html | str]:
    charts = []
    for name, title, log, caption in _CURVES:
        values = model.history_.get(name, [])
        if values:
            steps = list(range(1, len(values) + 1))
            charts.append(figure(line_chart({title: (steps, values)}, "iteration", title, log), caption))
    return [columns(*charts)] if charts else ["No training history was kept."]
