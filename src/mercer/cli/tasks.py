"""Learning tasks from a file: detect its content, read it, fit on some rows, score on others.

Used by ``mercer train auto`` and ``mercer tune``. A task is a file, a suitable kind of estimator, and the reason.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mercer.cli import classifier, terminal
from mercer.cli.columns import shown
from mercer.cli.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    from mercer.online.formats import FileFormat
    from mercer.report.portrait import Block

KINDS = ("classifier", "regressor", "tagger", "segmenter")
MOST_BLOCKS = 256
"""Megabytes of examples to keep in memory, for held-out rows and shuffling."""

_MOST_HELD_OUT = 20_000
_PARAGRAPHS = 5  # of a passage that is held out as a whole


@dataclass
class Verdict:
    """The performance of a model on held-out rows."""

    name: str
    value: float
    baseline: float
    baseline_name: str
    figures: list[tuple[str, str]]
    blocks: list[Block] = field(default_factory=list)

    @property
    def beats(self) -> bool:
        """Return whether the model is better than the baseline."""
        return self.value > self.baseline


class Task:
    """A file, with the way an estimator learns from it."""

    kind: str
    why: str
    n: int

    def estimator(self, **settings: Any) -> Any:
        """Return a new estimator."""
        raise NotImplementedError

    def fit(self, rows: np.ndarray, **settings: Any) -> Any:
        """Fit an estimator to these rows."""
        raise NotImplementedError

    def judge(self, model: Any, rows: np.ndarray, brief: bool = False) -> Verdict:
        """Score a model on these rows."""
        raise NotImplementedError

    def groups(self) -> Any:
        """Return the classes for stratified folds, or None."""
        return None

    def candidates(self) -> list[dict[str, Any]]:
        """Return candidate settings, the defaults first."""
        raise NotImplementedError

    def command(self, model: str) -> str:
        """Return the command that trains on all rows."""
        raise NotImplementedError

    def alternative(self, model: str) -> str | None:
        """Return another suitable kind of estimator, and the command that trains it."""
        return None

    def split(self, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return random training rows and held-out rows."""
        import numpy as np

        if self.n < 10:
            raise UsageError(f"{self.n} rows are too few to hold some of them out", "ten are the least")
        order = np.random.default_rng(seed).permutation(self.n)
        held_out = min(_MOST_HELD_OUT, max(1, round(share * self.n)))
        return np.sort(order[held_out:]), np.sort(order[:held_out])


def _command(kind: str, file: str, model: str, *options: str) -> str:
    """The command line that trains on all rows of a file, quoted for a shell."""
    return shlex.join(["mercer", "train", kind, file, *options, "--model", model])


def _reading_options(said: FileFormat) -> list[str]:
    """The options of commands that say what `said` says of a file."""
    options = [("--format", said.format), ("--label", said.label), ("--encoding", said.encoding)]
    options += [("--roles", f"{name}={role}") for name, role in (said.roles or {}).items()]
    return [part for option, value in options if value is not None for part in (option, str(value))]


def look_at(file: str, kind: str | None, said: FileFormat, quiet: bool, on_error: str = "raise") -> Task:
    """Return the task of a file: the requested kind, or the kind that fits its content."""
    from mercer.data.readers.sniff import sniff
    from mercer.data.readers.source import Source

    if file != "-" and not os.path.exists(file):
        raise FileNotFoundError(2, "No such file or directory", file)
    source = Source(file, said.encoding)
    asked = said.format
    sniffed = None if asked else sniff(source)
    if kind == "tagger" or (kind is None and sniffed is not None and sniffed.format == "columns"):
        return TaggerTask(file, "" if sniffed is None else sniffed.why)
    if kind == "segmenter" and sniffed is not None and sniffed.format == "columns":
        return SpanTask(file, sniffed.why)
    if kind == "segmenter" or (kind is None and sniffed is not None and sniffed.format == "prose"):
        return SegmenterTask(file)
    return HashedTask(source, kind, said, quiet, on_error)


# ---------------------------------------------------------------------------------------------- examples


class HashedTask(Task):
    """Rows of a table, texts or svmlight lines: `HashedClassifier` or `HashedRegressor`."""

    def __init__(self, source: Any, kind: str | None, said: FileFormat, quiet: bool, on_error: str = "raise") -> None:
        self.source, self.said, self.on_error = source, said, on_error
        self.kind, self.why = _kind_of(source, said) if kind is None else (kind, "as asked for")
        model = self.estimator()
        model._say = classifier.teller(quiet)
        self.run = self._training(model)
        del model._say
        self.small = self.run.load(MOST_BLOCKS)
        if not self.small and len(self.run.held[0]) <= MOST_BLOCKS:
            next(iter(self.run.held[1]))  # not long but malformed: raises
        self.n, self.texts = 0, False
        if self.small and not self.run.first:
            raise UsageError(f"{source.name}: no examples in this file")
        if self.small:
            self.records, self.y = self.run.examples()
            self.n, self.texts = len(self.y), self.records.documents
            classifier.show_skipped(source.path, self.run.report())
            if not self.n:
                raise UsageError(f"{source.name}: no labelled examples in this file")
            if self.kind == "classifier" and len(set(self.y.tolist())) == 1:
                what = f"all {self.n:,} rows have the label {str(self.y[0])!r}: there is nothing to learn"
                raise UsageError(f"{source.name}: {what}", "--label names another column")

    def _training(self, model: Any) -> Any:
        from mercer.online.training import Training

        return Training(model, self.source, self.said, self.on_error, None, afresh=True)

    def estimator(self, **settings: Any) -> Any:
        from mercer.online import HashedClassifier, HashedRegressor

        return (HashedClassifier if self.kind == "classifier" else HashedRegressor)(**settings)

    def fit(self, rows: np.ndarray, **settings: Any) -> Any:
        ngrams = settings.pop("ngrams", None)
        model = self.estimator(**settings)
        if ngrams is None:
            self.run.with_model(model).fit_rows(rows)
            return model
        from mercer.maps import TextHasher

        model.set_params(hasher=TextHasher(ngrams=ngrams))
        model._say = lambda kind, message: None
        run = self._training(model)
        del model._say
        run.load(MOST_BLOCKS)
        run.fit_rows(rows)
        return model

    def fit_stream(self) -> Any:
        """Fit to a file that is too long for memory, in file order."""
        model = self.run.model
        self.run.fit(None)
        return model

    def _block(self, model: Any, rows: np.ndarray) -> Any:
        if model.hasher is None:
            return self.records.examples(rows)
        run = self._training(model)
        run.load(MOST_BLOCKS)
        return run.examples()[0].examples(rows)

    def judge(self, model: Any, rows: np.ndarray, brief: bool = False) -> Verdict:
        import numpy as np

        model._say = lambda kind, message: None
        block = self._block(model, rows)
        del model._say
        truth = self.y[rows]
        if self.kind == "regressor":
            return _judge_numbers(truth.astype(float), model.predict(block), None if brief else self._shown(rows))
        p = model.predict_proba(block)
        names = np.array([str(c) for c in model.classes_.tolist()], dtype=object)
        predicted = names[p.argmax(axis=1)]
        right = float((truth == predicted).mean())
        _, counts = np.unique(truth.astype(str), return_counts=True)
        usual = float(counts.max() / len(truth))
        figures = [("accuracy", f"{right:.4f}"), ("error", f"{1 - right:.4f}"), ("most frequent class", f"{usual:.4f}")]
        verdict = Verdict("accuracy", right, usual, "the most frequent class", figures)
        if not brief:
            from mercer.report.examined import examined

            place = {name: i for i, name in enumerate(names)}
            at = np.array([place.get(t, -1) for t in truth])
            of_truth = np.where(at >= 0, p[np.arange(len(p)), at], 0.0)
            verdict.figures.append(("log loss", f"{-np.log(np.maximum(of_truth, 1e-12)).mean():.4f}"))
            text = truth.astype(str), predicted.astype(str)
            verdict.blocks = examined(
                *text, confidence=p.max(axis=1), of_truth=of_truth, shown=self._shown(rows), facts=False
            )
        return verdict

    def _shown(self, rows: np.ndarray) -> Any:
        """What pages show of these rows; None where the lines of the file are not its examples."""
        from mercer.data.readers.excerpts import excerpts

        places = self.run.labelled()[rows]
        text = excerpts(self.source, self.run.form, sum(map(len, self.run.first)))
        return None if text is None else lambda k: text(int(places[k]))

    def groups(self) -> Any:
        return self.y.astype(str) if self.kind == "classifier" else None

    def candidates(self) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = [{}]
        made += [{"learning_rate": rate} for rate in (0.3, 1.0, 6.0)]
        made += [{"max_iter": passes} for passes in ((1, 3, 8) if self.texts else (2, 8, 32))]
        made += [{"solver": "ftrl", "penalty": "l1", "alpha": alpha} for alpha in (0.0, 1.0)]
        made += [{"alpha": alpha} for alpha in (1e-4, 1e-3)]
        if self.texts:
            made += [{"ngrams": (1, 2)}, {"ngrams": (1, 2), "max_iter": 3}]
        return made

    def command(self, model: str) -> str:
        options = [*_reading_options(self.said), *(("--on-error", self.on_error) if self.on_error != "raise" else ())]
        return _command(self.kind, self.source.path, model, *options)


def _kind_of(source: Any, said: FileFormat) -> tuple[str, str]:
    """Whether labels are classes or numbers, and why."""
    from mercer.data.readers.roles import guess_label
    from mercer.online.formats import read_table, resolved_format

    form = resolved_format(source, None, said)
    if form.format in ("csv", "jsonl"):
        table = read_table(form, source)
        if table is None:
            return "classifier", "it has labels"
        roles = said.roles or {}
        label = next((name for name, role in roles.items() if role == "label"), None) or form.label
        if isinstance(label, int) and not isinstance(label, bool) and -len(table.names) <= label < len(table.names):
            label = table.names[label]
        guess = guess_label(table, False)
        label = label if isinstance(label, str) else guess[0] if guess else None
        if label not in table.names:
            return "classifier", "it has labels"
        column = table[label]
        whole = all(value.lstrip("+-").isdecimal() for value in column.values)
        many = column.n_different > (50 if whole else 20) and column.n_different > column.n_values // 20
        if column.role in ("number", "id") and many:
            return "regressor", f"its label {label!r} is a number with {column.n_different:,} different values"
        return (
            "classifier",
            f"its label {label!r} has {column.n_different:,} class{'es' if column.n_different > 1 else ''}",
        )
    if form.format in ("svmlight", "vw"):
        head, whole = source.head()
        labels = [line.split()[0] for line in head.decode("utf-8", "replace").splitlines()[:2000] if line.split()]
        fractions = {label for label in labels if "." in label and not label.rstrip("0").endswith(".")}
        if len(fractions) > 20 and len(set(labels)) > len(labels) // 20:
            return "regressor", f"its labels are numbers with {len(set(labels)):,} different values"
        return "classifier", f"its lines begin with {len(set(labels)):,} different labels"
    return "classifier", "its lines have labels"


def _judge_numbers(truth: np.ndarray, predicted: np.ndarray, shown: Any = None) -> Verdict:
    import numpy as np

    from mercer.report.examined import examined_numbers

    spread = float(((truth - truth.mean()) ** 2).mean())
    error = float(((truth - predicted) ** 2).mean())
    r2 = 1 - error / spread if spread > 0 else 0.0
    figures = [
        ("R²", f"{r2:.4f}"),
        ("mean absolute error", f"{np.abs(truth - predicted).mean():.6g}"),
        ("of the mean for all", f"{np.abs(truth - truth.mean()).mean():.6g}"),
    ]
    blocks = examined_numbers(truth, predicted, shown, facts=False)
    return Verdict("R²", r2, 0.0, "the mean for all rows", figures, blocks)


# ---------------------------------------------------------------------------------------------- sentences


class TaggerTask(Task):
    """Sentences of a column file: `Tagger`."""

    kind = "tagger"

    def __init__(self, file: str, why: str) -> None:
        from mercer.cli.columns import read_labelled
        from mercer.data.templates import default_template

        self.file = file
        with terminal.working(f"reading {shown(file)}"):
            self.X, self.y = read_labelled(file)
        self.n = len(self.X)
        self.width = len(self.X[0][0])
        self.why = why or "a token a line"
        self.template = default_template(self.width)

    def estimator(self, **settings: Any) -> Any:
        from mercer.tagging import Tagger

        return Tagger(template=self.template, **{"n_jobs": -1, **settings})

    def fit(self, rows: np.ndarray, **settings: Any) -> Any:
        model = self.estimator(**settings)
        return model.fit([self.X[i] for i in rows], [self.y[i] for i in rows])

    def judge(self, model: Any, rows: np.ndarray, brief: bool = False) -> Verdict:
        from mercer.metrics import is_span_labelling, span_f1, token_accuracy

        X, y = [self.X[i] for i in rows], [self.y[i] for i in rows]
        predicted = model.predict(X)
        right = token_accuracy(y, predicted)
        usual = self._usual_labels(rows)
        guessed = [[usual.get(token[0], usual[None]) for token in sentence] for sentence in X]
        baseline = token_accuracy(y, guessed)
        figures = [("token accuracy", f"{right:.4f}"), ("most frequent label of each word", f"{baseline:.4f}")]
        verdict = Verdict("accuracy", right, baseline, "the most frequent label of each word", figures)
        if is_span_labelling(y) and (self.kind == "segmenter" or is_span_labelling(model.classes_.tolist())):
            f1 = span_f1(y, predicted)
            figures += [("span F1", f"{f1:.4f}"), ("of that baseline", f"{span_f1(y, guessed):.4f}")]
            verdict.name, verdict.value, verdict.baseline = "span F1", f1, span_f1(y, guessed)
        if not brief:
            verdict.blocks = self._examined(model, X, y, predicted)
        return verdict

    def _examined(self, model: Any, X: Any, y: Any, predicted: Any) -> list[Block]:
        from mercer.report.examined import examined_tags

        probable = getattr(model.loss, "name", model.loss) == "log"
        marginals = model.predict_marginals(X) if probable else None
        return examined_tags(X, y, predicted, marginals, model.classes_.tolist(), facts=False)

    def _usual_labels(self, held_out: np.ndarray) -> dict[Any, str]:
        """The most frequent label of each word in the other sentences; under None that of all words."""
        from collections import Counter, defaultdict

        left = set(held_out.tolist())
        counts: dict[Any, Counter[str]] = defaultdict(Counter)
        for i, (sentence, labels) in enumerate(zip(self.X, self.y, strict=True)):
            if i not in left:
                for token, label in zip(sentence, labels, strict=True):
                    counts[token[0]][label] += 1
                    counts[None][label] += 1
        return {word: times.most_common(1)[0][0] for word, times in counts.items()}

    def candidates(self) -> list[dict[str, Any]]:
        return [{}, {"C": 0.1}, {"C": 0.3}, {"C": 3.0}, {"C": 10.0}, {"penalty": "l1", "C": 1.0}]

    def command(self, model: str) -> str:
        return _command("tagger", self.file, model)

    def alternative(self, model: str) -> str | None:
        from mercer.metrics import is_span_labelling

        if not is_span_labelling(self.y):
            return None
        # Tagger and segmenter on the same features: benchmarks/segments.py --parts entities.
        return (
            f"{_command('segmenter', self.file, model)} scores spans as a whole: about as good on names"
            " and chunks, and several times slower"
        )


class SpanTask(TaggerTask):
    """Sentences of a column file with span tags: `Segmenter`."""

    kind = "segmenter"

    def __init__(self, file: str, why: str) -> None:
        from mercer.cli.segmenter import as_bio

        super().__init__(file, why)
        self.y = as_bio(self.y, file)

    def estimator(self, **settings: Any) -> Any:
        from mercer.segmentation import Segmenter

        return Segmenter(template=self.template, form="bio", **{"n_jobs": -1, **settings})

    def _examined(self, model: Any, X: Any, y: Any, predicted: Any) -> list[Block]:
        from mercer.report.examined import examined_tags

        marginals = model.predict_marginals(X)
        return examined_tags(X, y, predicted, marginals, model.classes_.tolist(), spans=True, facts=False)

    def candidates(self) -> list[dict[str, Any]]:
        return [{}, {"C": 0.1}, {"C": 0.3}, {"C": 3.0}, {"C": 10.0}]

    def command(self, model: str) -> str:
        return _command("segmenter", self.file, model)

    def alternative(self, model: str) -> str | None:
        return None


class SegmenterTask(Task):
    """A text with blank lines between paragraphs: `Segmenter`."""

    kind = "segmenter"

    def __init__(self, file: str) -> None:
        from mercer.cli import segmenter

        self.file, self.why = file, "text without labels: blank lines tell where paragraphs start"
        [sentences], [starts] = segmenter._texts([file], segmenter.SentencesName.rules.value)
        places = [*map(int, starts), len(sentences)]
        cuts = [*range(0, len(places) - 1, _PARAGRAPHS), len(places) - 1]
        self.X = [sentences[places[a] : places[b]] for a, b in pairwise(cuts)]
        self.y = [[place - places[a] for place in places[a:b]] for a, b in pairwise(cuts)]
        self.n = len(self.X)
        if self.n < 10:
            what = "expected examples with labels, sentences with tags, or a text of many paragraphs"
            raise UsageError(f"{shown(file)}: {what}", "the guide on files shows what each looks like")
        self.settings = segmenter._text_settings(self.y, [file], 20)

    def estimator(self, **settings: Any) -> Any:
        from mercer.segmentation import Segmenter

        return Segmenter(**{**self.settings, "n_jobs": -1, **settings})

    def fit(self, rows: np.ndarray, **settings: Any) -> Any:
        return self.estimator(**settings).fit([self.X[i] for i in rows], [self.y[i] for i in rows])

    def judge(self, model: Any, rows: np.ndarray, brief: bool = False) -> Verdict:
        X, y = [self.X[i] for i in rows], [self.y[i] for i in rows]
        right = predicted = true = sentences = 0
        for answer, starts, passage in zip(model.predict(X), y, X, strict=True):
            a, b = set(map(int, answer)) - {0}, set(starts) - {0}
            right, predicted, true, sentences = (
                right + len(a & b),
                predicted + len(a),
                true + len(b),
                sentences + len(passage),
            )
        f1 = 2 * right / max(1, predicted + true)
        every = 2 * true / max(1, sentences - len(X) + true)
        figures = [("F1 of paragraph starts", f"{f1:.4f}"), ("a start before every sentence", f"{every:.4f}")]
        return Verdict("F1", f1, every, "a start before every sentence", figures)

    def candidates(self) -> list[dict[str, Any]]:
        return [{}, {"C": 0.1}, {"C": 1.0}, {"C": 10.0}]

    def command(self, model: str) -> str:
        return _command("segmenter", self.file, model)
