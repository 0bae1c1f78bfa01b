"""``mercer predict``: label the sentences or examples of a file, in batches and bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from mercer.cli import classifier, multilabel, proportions, segmenter
from mercer.cli.columns import (
    batches,
    check_tagger,
    check_writable,
    iter_columns,
    line_batches,
    load,
    n_columns,
    with_ends,
)
from mercer.cli.errors import UsageError
from mercer.cli.options import FileOptions, OnError, OnErrorName, grouped

if TYPE_CHECKING:
    from mercer.data.readers.conll import Sentence
    from mercer.tagging import Tagger

_BATCH = 1 << 14  # tokens
_TAGGERS = "Taggers and segmenters of column files"
_TEXTS = "Segmenters of texts"
_CLASSIFIERS = "Classifiers and regressors"


@grouped
def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that mercer train wrote.")],
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Sentences (a column file), a text, or examples in the format of training; also .gz; - for standard "
            "input.",
        ),
    ],
    reading: FileOptions,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="PATH", help="Where to write (also .gz); - is standard output."),
    ] = "-",
    marginals: Annotated[
        bool,
        typer.Option("--marginals", help="Append the probability of the predicted label.", rich_help_panel=_TAGGERS),
    ] = False,
    k_best: Annotated[
        int | None,
        typer.Option(
            "--k-best",
            metavar="K",
            min=1,
            help="Write the K best labellings of each sentence in order, and append to each line the rank and the "
            "log-probability of the labelling.",
            rich_help_panel=_TAGGERS,
        ),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Write one sentence per line.", rich_help_panel=_TEXTS)
    ] = False,
    sentences: Annotated[
        segmenter.SentencesName,
        typer.Option(
            help="Split texts into sentences by rules, or take each line as one sentence.", rich_help_panel=_TEXTS
        ),
    ] = segmenter.SentencesName.rules,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Segmenters: write JSON, paragraphs with their probabilities, or a line with the spans of each "
            "sentence.",
        ),
    ] = False,
    proba: Annotated[
        bool,
        typer.Option("--proba", help="Append the probability of the predicted label.", rich_help_panel=_CLASSIFIERS),
    ] = False,
    top: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            min=1,
            help="Write the K best labels of each example with their scores (with --proba: probabilities).",
            rich_help_panel=_CLASSIFIERS,
        ),
    ] = None,
    on_error: OnError = OnErrorName.stop,
    jobs: Annotated[int, typer.Option(metavar="N", help="Threads; -1 for all cores.")] = -1,
) -> None:
    """Label the sentences of a file with a tagger or segmenter, or its examples with a classifier or regressor.

    A tagger takes the columns of the training file, with or without its label column. It appends the predicted label to
    each line, and copies blank lines and comments unchanged. A segmenter of column files does the same. A segmenter of
    texts ignores the paragraphs of a text, and writes the text with blank lines at the predicted ones. A classifier or
    regressor takes examples as in training, with or without labels. It writes a line for each line of the file, so that
    paste can join both. The model remembers how the file was read. All files but texts are read and written in batches:
    a stream can have any length.

    [bold]Examples[/bold]
      mercer predict np.mercer text.conll --output labelled.conll
      cat text.conll | mercer predict np.mercer - --marginals | head
      mercer predict paragraphs.mercer wall-of-text.txt > readable.txt
      mercer predict spam.mercer mail.txt --proba
      mercer predict votes.mercer people.csv
      mercer predict news.mercer news.csv --top 3 --output topics.tsv
    """
    if output != "-":
        check_writable(output, device=True)
    loaded = load(model)
    if proportions.is_proportional(loaded):
        proportions.predict(loaded, file, output, reading.separator)
        return
    if multilabel.is_multilabel(loaded):
        multilabel.predict(loaded, file, output, reading.label, top)
        return
    if classifier.is_hashed(loaded):
        _check_no_texts(model, lines, sentences, as_json)
        if marginals or k_best is not None:
            raise UsageError(
                f"{model}: --marginals and --k-best are for taggers", "--proba and --top are for classifiers"
            )
        loaded.n_jobs = jobs
        classifier.predict(loaded, file, output, proba, top, on_error.value, reading.file_format())
        return
    for_classifiers = proba or top is not None or reading.given
    if segmenter.is_segmenter(loaded):
        if for_classifiers:
            raise UsageError(f"{model}: this is a segmenter, and the options are for classifiers")
        loaded.n_jobs = jobs
        segmenter.predict(
            loaded,
            model,
            file,
            output,
            sentences=sentences.value,
            lines=lines,
            as_json=as_json,
            marginals=marginals,
            k_best=k_best,
        )
        return
    tagger = check_tagger(loaded, model, jobs)
    if for_classifiers:
        raise UsageError(
            f"{model}: this is a tagger, and the options are for classifiers",
            "--marginals and --k-best are for taggers",
        )
    _check_no_texts(model, lines, sentences, as_json)
    if marginals and k_best is not None:
        raise UsageError("--marginals and --k-best cannot be combined")
    if k_best is not None:
        from mercer.data.readers.conll import write_conll

        parts = batches(iter_columns(file, n_columns(tagger)), _BATCH)
        write_conll(output, _k_best(tagger, parts, k_best))
        return
    from mercer.online.writer import LineWriter

    with LineWriter(output) as write:
        for lines_of_batch in line_batches(file, n_columns(tagger), _BATCH):
            write(with_ends(lines_of_batch, lambda batch: _ends(tagger, batch, marginals)))


def _check_no_texts(model: str, lines: bool, sentences: segmenter.SentencesName, as_json: bool) -> None:
    if lines or as_json or sentences is not segmenter.SentencesName.rules:
        raise UsageError(
            f"{model}: --lines, --sentences and --json are for segmenters, and this is another kind of model"
        )


def _k_best(tagger: Tagger, parts: Iterable[list[Sentence]], k_best: int) -> Iterator[Sentence]:
    """The sentences with their new columns, once for each labelling."""
    for batch in parts:
        for sentence, ranked in zip(batch, tagger.k_best(batch, k_best), strict=True):
            for rank, (labels, score) in enumerate(ranked, 1):
                end = (str(rank), f"{score:.6f}")
                yield [(*token, label, *end) for token, label in zip(sentence, labels, strict=True)]


def _ends(tagger: Tagger, batch: list[Sentence], marginals: bool) -> Iterator[tuple[str, ...]]:
    predicted = tagger.predict(batch)
    if not marginals:
        yield from ((str(label),) for labels in predicted for label in labels)
        return
    place = {label: i for i, label in enumerate(tagger.classes_.tolist())}
    for labels, mu in zip(predicted, tagger.predict_marginals(batch), strict=True):
        yield from ((str(label), f"{p[place[label]]:.6f}") for label, p in zip(labels, mu.tolist(), strict=True))
