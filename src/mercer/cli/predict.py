"""``mercer predict``: labels for the sentences of a column file, batch by batch in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from mercer.cli.columns import batches, check_writable, iter_columns, load_tagger, n_columns
from mercer.cli.errors import Mistake

if TYPE_CHECKING:
    from mercer.data.conll import Sentence
    from mercer.tagging import Tagger

_BATCH = 1 << 14  # tokens


def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that mercer train wrote.")],
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Sentences: a column file (also .gz), or - for standard input."),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="PATH", help="Where to write (also .gz); - is standard output."
        ),
    ] = "-",
    marginals: Annotated[
        bool, typer.Option("--marginals", help="Append the probability of the predicted label.")
    ] = False,
    k_best: Annotated[
        int | None,
        typer.Option(
            "--k-best",
            metavar="K",
            min=1,
            help="Write the K best labellings of each sentence, one after the other, and append to each "
            "line the rank and the log-probability of the labelling.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Threads; -1 for all cores.")] = -1,
) -> None:
    """Label the sentences of a file.

    The file has the columns of the training file, with or without its label column. Each line comes back with
    the predicted label appended. Sentences are read and written in batches: a stream of any length will do.

    [bold]Examples[/bold]
      mercer predict np.mercer text.conll --output labelled.conll
      cat text.conll | mercer predict np.mercer - --marginals | head
    """
    if marginals and k_best is not None:
        raise Mistake("--marginals and --k-best cannot be combined")
    if output != "-":
        check_writable(output, device=True)
    tagger = load_tagger(model, jobs)
    from mercer.data.conll import write_conll

    sentences = iter_columns(file, n_columns(tagger))
    write_conll(output, _labelled(tagger, batches(sentences, _BATCH), marginals, k_best))


def _labelled(
    tagger: Tagger, parts: Iterable[list[Sentence]], marginals: bool, k_best: int | None
) -> Iterator[Sentence]:
    """The sentences with their new columns."""
    for batch in parts:
        if k_best is not None:
            for sentence, ranked in zip(batch, tagger.k_best(batch, k_best), strict=True):
                for rank, (labels, score) in enumerate(ranked, 1):
                    end = (str(rank), f"{score:.6f}")
                    yield [(*token, label, *end) for token, label in zip(sentence, labels, strict=True)]
            continue
        predicted = tagger.predict(batch)
        if not marginals:
            for sentence, labels in zip(batch, predicted, strict=True):
                yield [(*token, label) for token, label in zip(sentence, labels, strict=True)]
            continue
        place = {label: i for i, label in enumerate(tagger.classes_.tolist())}
        for sentence, labels, mu in zip(batch, predicted, tagger.predict_marginals(batch), strict=True):
            yield [
                (*token, label, f"{p[place[label]]:.6f}")
                for token, label, p in zip(sentence, labels, mu.tolist(), strict=True)
            ]
