"""``mercer train segmenter``: paragraphs of texts, and spans of column files; prediction, evaluation and display."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Generator, Iterable, Iterator
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mercer.cli import terminal
from mercer.cli.columns import batches, check_writable, line_batches, read_labelled, shown, with_ends
from mercer.cli.errors import Stopped, UsageError
from mercer.cli.options import TrainingOptions, grouped
from mercer.cli.promises import promised

if TYPE_CHECKING:
    from mercer.data.readers.conll import Sentence
    from mercer.report.portrait import Block
    from mercer.segmentation import Document, Segmenter

_BATCH = 1 << 14  # tokens
_SNIFFED = 200  # lines that are looked at to tell a column file from a text
_FEATURES = "Features"
_LEARNING = "Learning"
_RUNNING = "Running"


# Spelled out here, not taken from the estimator: the help must not import it. A test compares the names.
class SegmentFormat(StrEnum):
    """Formats of files of segments."""

    text = "text"
    columns = "columns"


class SentencesName(StrEnum):
    """Sentence splitting of texts."""

    rules = "split"
    lines = "lines"


class SegmenterLoss(StrEnum):
    """Losses of segmenters."""

    auto = "auto"
    hinge = "hinge"
    squared_hinge = "squared-hinge"
    slack = "slack"
    log = "log"
    softmax_margin = "softmax-margin"
    hybrid = "hybrid"
    adaptive_hybrid = "adaptive-hybrid"
    relative_margin = "relative-margin"
    circle = "circle"
    tempered = "tempered"


class SegmenterSolver(StrEnum):
    """Solvers of segmenters."""

    bmrm = "bmrm"
    bcfw = "bcfw"
    cutting_plane = "cutting-plane"
    subgradient = "subgradient"
    marginal_dual = "marginal-dual"
    lbfgs = "lbfgs"


class TuneName(StrEnum):
    """Uses of held-out texts."""

    f1 = "f1"
    accuracy = "accuracy"
    recall = "recall"
    precision = "precision"
    none = "none"


Sentences = Annotated[
    SentencesName,
    typer.Option(help="Texts: split at the end of sentences by rules, or take each line as one."),
]


@grouped
def train_segmenter(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Texts in UTF-8, one document each, with blank lines between paragraphs; or column files with "
            "BIO tags last. Also .gz; - for standard input.",
        ),
    ],
    model: Annotated[str, typer.Option("--model", "-m", metavar="PATH", help="Where to write the model.")],
    training: TrainingOptions,
    dev: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Held-out data; may be repeated. Texts: how readily a paragraph starts is chosen on them (--tune). "
            "Column files: training keeps the weights that label them best, and stops when that no longer improves.",
        ),
    ] = None,
    format: Annotated[
        SegmentFormat | None,
        typer.Option(
            help="What the files are. Default: column files if their last column holds span tags, else texts.",
            show_default=False,
        ),
    ] = None,
    sentences: Annotated[
        SentencesName,
        typer.Option(
            help="Texts: split at the end of sentences by rules, or take each line as one.", rich_help_panel=_FEATURES
        ),
    ] = SentencesName.rules,
    template: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Column files: [bold]words[/bold], [bold]words+pos[/bold], either with [bold]+spelling[/bold], or a "
            "file of CRF++ templates. Default: words+spelling with 2 columns, words+pos+spelling with 3 or more.",
            rich_help_panel=_FEATURES,
        ),
    ] = None,
    n_bits: Annotated[
        int,
        typer.Option(
            "--n-bits",
            metavar="N",
            min=0,
            help="Hash words and other names into 2^N features. 0: keep them.",
            rich_help_panel=_FEATURES,
        ),
    ] = 0,
    max_length: Annotated[
        int | None,
        typer.Option(
            "--max-length",
            metavar="N",
            min=1,
            help="The longest segment, in sentences or tokens. Default: the longest of the training data.",
            rich_help_panel=_FEATURES,
            show_default=False,
        ),
    ] = None,
    min_length: Annotated[
        int, typer.Option("--min-length", metavar="N", min=1, help="The shortest segment.", rich_help_panel=_FEATURES)
    ] = 1,
    loss: Annotated[
        SegmenterLoss,
        typer.Option(
            help="Training loss: hinge is a structured SVM, log a semi-Markov conditional random field. "
            "auto: hinge for texts, log for column files.",
            rich_help_panel=_LEARNING,
        ),
    ] = SegmenterLoss.auto,
    solver: Annotated[
        SegmenterSolver | None,
        typer.Option(
            help="Default: bmrm; lbfgs for log and softmax-margin, cutting-plane for relative-margin.",
            rich_help_panel=_LEARNING,
            show_default=False,
        ),
    ] = None,
    tune: Annotated[
        TuneName,
        typer.Option(help="Texts with --dev: what to choose the offset for.", rich_help_panel=_LEARNING),
    ] = TuneName.f1,
) -> None:
    """Train a segmenter: find the paragraphs of a text, or the spans of a sentence.

    Segments are scored as a whole: by length, by the coherence of their sentences or tokens, and by features of their
    start. Ctrl-C stops training and keeps the weights so far.

    [bold]Examples[/bold]
      mercer train segmenter chapter*.txt --dev last.txt --model paragraphs.mercer
      mercer predict paragraphs.mercer wall-of-text.txt > readable.txt
      mercer train segmenter train.conll --dev dev.conll --model names.mercer --loss log
    """
    check_writable(model)
    held_out = list(dev or [])
    if [*files, *held_out].count("-") > 1:
        raise UsageError("only one of the files can be standard input")
    with terminal.working(f"reading {shown(files[0])}{' …' if len(files) > 1 else ''}"):
        kind = format.value if format is not None else _kind(files, held_out)
        X: Any
        X_dev: Any
        y_dev: Any
        if kind == "text":
            if template is not None:
                raise UsageError("--template is for column files, and these are texts")
            X, y = _texts(files, sentences.value)
            settings = _text_settings(y, files, n_bits)
            X_dev, y_dev = (None, None) if not held_out else _texts(held_out, sentences.value)
        else:
            X, y = _labelled(files)
            settings = _column_settings(len(X[0][0]), files[0], template, n_bits)
            X_dev, y_dev = (None, None) if not held_out else _labelled(held_out, len(X[0][0]))
    from mercer.segmentation import Segmenter

    estimator = Segmenter(
        max_length,
        min_length,
        loss.value,
        "auto" if solver is None else solver.value,
        **training.parameters(),
        **settings,
    )
    with terminal.warnings_at_the_end():
        stops_early = None if X_dev is None or kind == "text" else (X_dev, _known_only(y_dev, y))
        estimator.fit(X, y, dev=stops_early, checkpoint=training.checkpoint)
        if kind == "text" and X_dev is not None and tune is not TuneName.none:
            estimator.tune_offset(X_dev, y_dev, metric=tune.value)
    import mercer

    mercer.save(estimator, model)
    if estimator.interrupted_:
        terminal.complain("interrupted", f"the model trained so far is saved to {model}")
    if not training.quiet:
        estimator.n_jobs = training.jobs
        _summarise(estimator, kind, X, y, None if X_dev is None else (X_dev, y_dev), model)
    if estimator.interrupted_:
        raise Stopped


# --------------------------------------------------------------------------------------------------------------- files


def _kind(files: list[str], others: list[str]) -> str:
    """Whether the files are texts or column files; all must be the same."""
    kinds_of = {}
    for file in [*files, *others]:
        if file == "-":
            raise UsageError("standard input does not say what it is", "--format text or --format columns")
        kinds_of[file] = "columns" if _has_span_tags(file) else "text"
    kinds = set(kinds_of.values())
    if len(kinds) > 1:
        a, b = (next(file for file, kind in kinds_of.items() if kind == wanted) for wanted in ("text", "columns"))
        raise UsageError(f"{a} reads as a text and {b} as a column file", "--format says what they are")
    return kinds.pop()


def _has_span_tags(file: str) -> bool:
    """Whether all lines have as many columns, at least two, and the last of them spells out spans."""
    from mercer.metrics import is_span_labelling

    with contextlib.closing(_lines(file)) as lines:
        rows = [line.split() for line in islice((line for line in lines if line.strip()), _SNIFFED)]
    widths = {len(row) for row in rows}
    return len(widths) == 1 and widths.pop() > 1 and is_span_labelling({row[-1] for row in rows})


def _lines(file: str) -> Generator[str, None, None]:
    """Decoded lines of a file, which may be packed."""
    from mercer.data.readers.lines import decoded_lines, open_source

    with contextlib.ExitStack() as stack:
        stream, name = open_source(file, stack)
        yield from decoded_lines(stream, name)


def _documents(files: Iterable[str], sentences: str) -> list[Document]:
    from mercer.segmentation import read_paragraphs

    documents = []
    for file in files:
        [document] = read_paragraphs("\n".join(_lines(file)), sentences=sentences)
        if not document.sentences:
            raise UsageError(f"{shown(file)}: no sentences in this file")
        documents.append(document)
    return documents


def _texts(files: list[str], sentences: str) -> tuple[list[list[str]], list[Any]]:
    """Sentences, and where paragraphs start."""
    documents = _documents(files, sentences)
    return [d.sentences for d in documents], [d.starts for d in documents]


def _text_settings(y: list[Any], files: list[str], n_bits: int) -> dict[str, Any]:
    from mercer.segmentation import ParagraphFeatures

    if all(len(starts) == 1 for starts in y):
        raise UsageError(
            f"{', '.join(map(shown, files[:3]))}: nothing to learn from: no file has more than one paragraph",
            "paragraphs are separated by blank lines",
        )
    return {"features": ParagraphFeatures(n_bits=n_bits), "form": "boundaries"}


def _labelled(files: list[str], width: int | None = None) -> tuple[list[Sentence], list[list[str]]]:
    """Sentences of column files without their labels, and the labels as BIO tags."""
    X: list[Sentence] = []
    y: list[list[str]] = []
    for file in files:
        sentences, tags = read_labelled(file, width)
        width = len(sentences[0][0])
        X += sentences
        y += as_bio(tags, file)
    return X, y


def as_bio(y: list[list[str]], file: str) -> list[list[str]]:
    """Return tags of any span scheme (IOB1, IOB2, BIOES, BILOU) as IOB2."""
    from mercer.metrics import is_span_labelling, spans

    hint = "mercer train tagger labels token by token"
    if not is_span_labelling(y):
        raise UsageError(f"{shown(file)}: expected span tags in the last column: O, B-NAME, I-NAME and their kin", hint)
    tag_lines = []
    for tags in y:
        written = ["O"] * len(tags)
        for start, end, name in spans(tags):
            if not name:
                raise UsageError(f"{shown(file)}: expected tags with names, such as B-NP, found {tags[start]!r}", hint)
            written[start:end] = [f"B-{name}", *[f"I-{name}"] * (end - start - 1)]
        tag_lines.append(written)
    return tag_lines


def _column_settings(width: int, file: str, name: str | None, n_bits: int) -> dict[str, Any]:
    from mercer.data.templates import Template, default_template

    template = Template.load(name) if name else default_template(width)
    if template.n_columns > width:
        raise UsageError(
            f"the template {name!r} uses column {template.n_columns - 1}, but {shown(file)} has "
            f"{terminal.count(width, 'column')} before the label (columns count from 0)"
        )
    return {"template": template, "n_bits": n_bits, "form": "bio"}


def _known_only(y_dev: Any, y: Any) -> list[list[str]]:
    """Held-out tags with O for spans of names that training does not have: they cannot be learnt."""
    known = {tag for tags in y for tag in tags}
    known |= {f"I-{tag[2:]}" for tag in known if tag.startswith("B-")}
    return [[tag if tag in known else "O" for tag in tags] for tags in y_dev]


def _summarise(estimator: Segmenter, kind: str, X: Any, y: Any, held_out: tuple[Any, Any] | None, model: str) -> None:
    terminal.heading("segmenter")
    text = kind == "text"
    n_segments = sum(map(len, y)) if text else sum(tag.startswith("B-") for tags in y for tag in tags)
    seconds = estimator.history_.get("seconds", [])
    rows: list[tuple[str, object]] = [
        ("texts" if text else "sentences", f"{len(X):,}"),
        ("sentences" if text else "tokens", f"{sum(map(len, X)):,}"),
        ("paragraphs" if text else "spans", f"{n_segments:,}"),
        *([] if text else [("labels", f"{len(estimator.classes_):,}")]),
        ("longest", f"{estimator.max_length_:,} {'sentences' if text else 'tokens'}"),
        ("weights", f"{len(estimator.coef_):,}"),
        ("iterations", f"{estimator.n_iter_:,}{' (converged)' if estimator.converged_ else ''}"),
        ("seconds", f"{seconds[-1] if seconds else 0.0:.2f}"),
    ]
    if held_out is not None:
        if text:
            rows.append(("offset", f"{estimator.offset_:.4g}"))
        for name, value in _scores(estimator, kind, *held_out).items():
            if isinstance(value, float):
                rows.append((f"{name.replace('_', ' ')}, held out", f"{value:.4f}"))
    rows.append(("model", f"{model} ({os.path.getsize(model) / 1e6:,.1f} MB)"))
    terminal.figures(rows)


# ------------------------------------------------------------------------------------------------- predict and evaluate


def is_segmenter(model: Any) -> bool:
    """Return whether a loaded model is one of these."""
    from mercer.segmentation import Segmenter

    return isinstance(model, Segmenter)


def _kind_of(model: Segmenter, path: str) -> str:
    from mercer.segmentation import ParagraphFeatures

    if isinstance(model.features_, ParagraphFeatures):
        return "text"
    if model.template is not None and model.form_ == "bio":
        return "columns"
    raise UsageError(
        f"{path}: this segmenter reads neither texts nor column files: it was trained on features",
        "use it from Python: mercer.load(path).predict(X)",
    )


def predict(
    model: Segmenter,
    path: str,
    file: str,
    output: str,
    *,
    sentences: str,
    lines: bool,
    as_json: bool,
    marginals: bool,
    k_best: int | None,
) -> None:
    """Write a text with its paragraphs, or a column file with its spans."""
    if _kind_of(model, path) == "text":
        if marginals or k_best is not None:
            raise UsageError(f"{path}: --marginals and --k-best are for column files", "--json has the probabilities")
        document = _documents([file], sentences)[0]
        starts = model.predict([document.sentences])[0]
        with _writing(output) as stream:
            stream.write(_text_of(model, document, starts, lines, as_json))
        return
    if lines or sentences != "split":
        raise UsageError(f"{path}: --lines and --sentences are for models of texts, this one reads column files")
    if marginals and k_best is not None:
        raise UsageError("--marginals and --k-best cannot be combined")
    if as_json and (marginals or k_best is not None):
        raise UsageError("--json cannot be combined with --marginals or --k-best")
    parts = batches(_sentences(model, file), _BATCH)
    if as_json:
        with _writing(output) as stream:
            for batch in parts:
                for sentence, segments in zip(batch, model.predict_segments(batch), strict=True):
                    spans = [{"start": a, "end": b, "label": label} for a, b, label in segments if label != "O"]
                    record = {"tokens": [token[0] for token in sentence], "spans": spans}
                    stream.write(json.dumps(record, ensure_ascii=False) + "\n")
        return
    if k_best is not None:
        from mercer.data.readers.conll import write_conll

        write_conll(output, _k_best(model, parts, k_best))
        return
    from mercer.online.writer import LineWriter

    assert model.template is not None
    with LineWriter(output) as write:
        for lines_of_batch in line_batches(file, model.template.n_columns, _BATCH, more=True):
            write(with_ends(lines_of_batch, lambda batch: _ends(model, batch, marginals)))


def _text_of(model: Segmenter, document: Document, starts: Any, lines: bool, as_json: bool) -> str:
    from mercer.segmentation import join_paragraphs

    if not as_json:
        return join_paragraphs(document.sentences, starts, lines=lines)
    p = model.boundary_marginals([document.sentences])[0].tolist()
    ends = [*starts[1:], len(document.sentences)]
    paragraphs = [
        {"start": int(a), "probability": p[a], "sentences": document.sentences[a:b]}
        for a, b in zip(starts, ends, strict=True)
    ]
    record = {"n_sentences": len(document.sentences), "starts": [int(a) for a in starts], "paragraphs": paragraphs}
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


@contextlib.contextmanager
def _writing(output: str) -> Iterator[Any]:
    """Standard output, or a file that is there whole or not at all."""
    if output == "-":
        yield sys.stdout
        return
    if os.path.exists(output) and not os.path.isfile(output):
        with open(output, "w", encoding="utf-8") as stream:
            yield stream
        return
    import io

    from mercer.data.readers.lines import replacing

    with replacing(output) as raw:
        stream = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
        yield stream
        stream.flush()
        stream.detach()


def _sentences(model: Segmenter, file: str) -> Iterator[Sentence]:
    """Sentences of a file that has at least the columns of the model's template."""
    from mercer.data.readers.conll import iter_conll

    assert model.template is not None
    needed = model.template.n_columns
    for sentence in iter_conll(file):
        if len(sentence[0]) < needed:
            raise UsageError(
                f"{shown(file)}: expected at least {needed} columns, which the model's template uses, "
                f"found {len(sentence[0])}"
            )
        yield sentence


def _k_best(model: Segmenter, parts: Iterable[list[Sentence]], k_best: int) -> Iterator[Sentence]:
    """The sentences with their new columns, once for each segmentation."""
    from mercer.data.segments import segments_to_bio

    for batch in parts:
        for sentence, ranked in zip(batch, model.k_best(batch, k_best), strict=True):
            for rank, (segments, score) in enumerate(ranked, 1):
                end = (str(rank), f"{score:.6f}")
                yield [(*token, tag, *end) for token, tag in zip(sentence, segments_to_bio(segments), strict=True)]


def _ends(model: Segmenter, batch: list[Sentence], marginals: bool) -> Iterator[tuple[str, ...]]:
    """What is appended to each token."""
    predicted = model.predict(batch)
    if not marginals:
        yield from ((tag,) for tags in predicted for tag in tags)
        return
    place = {label: i for i, label in enumerate(model.classes_.tolist())}
    for tags, mu in zip(predicted, model.predict_marginals(batch), strict=True):
        for tag, p in zip(tags, mu.tolist(), strict=True):
            yield tag, f"{p[place[tag if tag == 'O' else tag[2:]]]:.6f}"


def read(model: Segmenter, path: str, file: str, sentences: str) -> tuple[str, Any, Any]:
    """Return the kind, X and y of a file with known segments."""
    kind = _kind_of(model, path)
    if kind == "text":
        [document] = _documents([file], sentences)
        return kind, [document.sentences], [document.starts]
    if sentences != "split":
        raise UsageError(f"{path}: --sentences is for models of texts, this one reads column files")
    assert model.template is not None
    X, y = read_labelled(file)
    if len(X[0][0]) < model.template.n_columns:
        raise UsageError(
            f"{shown(file)}: expected at least {model.template.n_columns + 1} columns (the "
            f"{model.template.n_columns} of the model's template and the label), found {len(X[0][0]) + 1}"
        )
    return kind, X, as_bio(y, file)


def examine(model: Segmenter, path: str, file: str, top: int) -> list[Block]:
    """Return blocks for a page: performance on the segments of a file."""
    from mercer.report.examined import examined, examined_tags

    kind, X, y = read(model, path, file, SentencesName.rules.value)
    predicted = model.predict(X)
    if kind == "columns":
        probable = model.loss_ == "log"
        marginals = model.predict_marginals(X) if probable else None
        blocks = examined_tags(X, y, predicted, marginals, model.classes_.tolist(), top, spans=True)
        wrong = [list(a) != list(b) for a, b in zip(predicted, y, strict=True)]
        return [*blocks, promised("sentences", wrong, model, X, y)]
    import numpy as np

    from mercer.report.portrait import Facts

    sentences = [sentence for document in X for sentence in document]
    starts = [np.isin(np.arange(len(document)), places) for document, places in zip(X, y, strict=True)]
    predicted_marks = [np.isin(np.arange(len(document)), places) for document, places in zip(X, predicted, strict=True)]
    p = np.concatenate([np.asarray(q, float)[: len(d)] for q, d in zip(model.boundary_marginals(X), X, strict=True)])
    inner = np.concatenate([np.arange(len(document)) > 0 for document in X])  # the first sentence always starts one
    truth, answer, p = (np.concatenate(values)[inner] for values in (starts, predicted_marks, [p]))
    if not len(truth):
        raise UsageError(f"{shown(file)}: no second sentence, so there is no boundary to decide on")
    places = np.flatnonzero(inner)
    names = np.array(["goes on", "starts"])
    scores = _boundary_scores(y, predicted, [len(document) for document in X])
    rows = [(n.replace("_", " "), f"{v:.4f}" if isinstance(v, float) else f"{v:,}") for n, v in scores.items()]
    blocks = examined(
        names[truth.astype(int)], names[answer.astype(int)], confidence=np.where(answer, p, 1 - p),
        of_truth=np.where(truth, p, 1 - p), shown=lambda k: sentences[places[k]], worst=top, facts=False,
    )  # fmt: skip
    wrong = [list(a) != list(b) for a, b in zip(predicted, y, strict=True)]
    return [Facts(rows, "Held-out data"), *blocks, promised("texts", wrong, model, X, y)]


def evaluate_text(y: list[Any], predicted: list[Any], lengths: list[int], as_json: bool) -> None:
    """Print precision, recall and F1 of paragraph starts, and the windowed errors."""
    scores = _boundary_scores(y, predicted, lengths)
    if as_json:
        print(json.dumps(scores, indent=2))
        return
    terminal.figures(
        (name.replace("_", " "), f"{value:.4f}" if isinstance(value, float) else f"{value:,}")
        for name, value in scores.items()
    )


def _scores(model: Segmenter, kind: str, X: Any, y: Any) -> dict[str, Any]:
    from mercer.metrics import span_f1, token_accuracy

    predicted = model.predict(X)
    if kind == "columns":
        return {"token_accuracy": token_accuracy(y, predicted), "span_F1": span_f1(y, predicted)}
    return _boundary_scores(y, predicted, [len(document) for document in X])


def _boundary_scores(y: list[Any], predicted: list[Any], lengths: list[int]) -> dict[str, Any]:
    from mercer.metrics import boundary_score, pk, window_diff

    if max(lengths) < 2:
        raise UsageError("no text has a second sentence, so there is no boundary to decide on")
    score = boundary_score(y, predicted, lengths)
    return {
        "sentences": sum(lengths),
        "paragraphs": sum(map(len, y)),
        "predicted_paragraphs": sum(map(len, predicted)),
        "accuracy": score.accuracy,
        "precision": score.precision,
        "recall": score.recall,
        "F1": score.f1,
        "WindowDiff": window_diff(y, predicted, lengths),
        "Pk": pk(y, predicted, lengths),
    }
