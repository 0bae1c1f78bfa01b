"""Learning from files that are larger than memory, and predicting for them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mercer import _core
from mercer.data.readers.source import FilePath, Source
from mercer.exceptions import ColumnGuessWarning
from mercer.learning.checkpoint import Checkpoint
from mercer.online.blocks import ReadReport, labelled_blocks, outputs_of
from mercer.online.formats import FileFormat, ResolvedFormat, announce
from mercer.online.training import Training
from mercer.online.writer import HEADER, LineWriter, prediction_lines, with_gaps

__all__ = ["ColumnGuessWarning", "FileLearning", "FilePath", "ReadReport"]


class FileLearning:
    """The file methods of hashed learners: a mixin of `HashedClassifier` and `HashedRegressor`."""

    file_format_: ResolvedFormat

    def fit_file(
        self,
        path: FilePath,
        format: FileFormat | str | None = None,
        *,
        classes: Any = None,
        on_error: str = "raise",
        limit: int | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> Any:
        r"""Learn from a file, from scratch, in blocks and fixed memory.

        With ``max_iter="auto"`` a file of up to about four megabytes is learnt as `fit` learns an array: shuffled, in
        several passes. A longer file, or a given number of passes, is read in file order without shuffling. Reading,
        hashing and learning overlap unless ``n_jobs=1``; the result is the same. ``verbose=1`` prints the progressive
        loss at powers of two, as Vowpal Wabbit does. Ctrl-C stops reading and keeps the model trained so far
        (``interrupted_``); so does a malformed line, after its error.

        Parameters
        ----------
        path : str, path, "-" or binary file
            Also a folder with a folder of texts for each class. Data compressed with gzip, bzip2, xz or zstandard are
            decompressed, independent of the file name; ``"-"`` is standard input.
        format : FileFormat or str, optional
            Format of the file and roles of its columns, or the name of the format; by default detected from the first
            bytes.
        classes : array, optional
            All labels (classifiers). Required only if a stream that cannot be read again has two labels in its first
            megabytes and further labels later.
        on_error : {"raise", "skip"}, default="raise"
            Treatment of malformed lines. Skipped lines are counted in ``skipped_``, the first few with line and reason.
        limit : int, optional
            Maximum number of examples to read.
        checkpoint : path or Checkpoint, optional
            Training saves its state there every few seconds. A killed training resumes from it when it is called again,
            with the same final model. The learnt part of the file is read again, but not learnt again.

        Returns
        -------
        self

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from mercer.online import HashedClassifier
        >>> path = Path(tempfile.mkdtemp()) / "mail.txt"
        >>> lines = "spam\tcheap pills now\nham\tmeeting at noon\nspam\tcheap watches\nham\tnotes of the meeting\n"
        >>> _ = path.write_text(lines * 5)
        >>> model = HashedClassifier(n_bits=16).fit_file(path)
        >>> model.predict(["cheap meeting pills now", "meeting notes"])
        array(['spam', 'ham'], dtype='<U4')
        >>> model.score_file(path)
        1.0
        """
        said = FileFormat.of(format)
        run = Training(self, Source(path, said.encoding), said, on_error, limit, afresh=True)
        if checkpoint is not None:
            run.checkpoint = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
        run.fit(classes)
        return self

    def partial_fit_file(
        self,
        path: FilePath,
        format: FileFormat | str | None = None,
        *,
        classes: Any = None,
        on_error: str = "raise",
        limit: int | None = None,
    ) -> Any:
        """Learn from another file, in one pass.

        Parameters
        ----------
        path, on_error, limit
            As in `fit_file`.
        format : FileFormat or str, optional
            Unspecified parts are those of the previous file.
        classes : array, optional
            In the first call: all labels.

        Returns
        -------
        self
        """
        said = FileFormat.of(format)
        run = Training(self, Source(path, said.encoding), said, on_error, limit, afresh=not hasattr(self, "model_"))
        run.partial_fit(classes)
        return self

    def predict_file(
        self,
        path: FilePath,
        output: str | os.PathLike[str] | None = None,
        format: FileFormat | str | None = None,
        *,
        proba: bool = False,
        top: int | None = None,
        on_error: str = "raise",
        limit: int | None = None,
    ) -> np.ndarray | int:
        """Predict for every example of a file, with or without labels.

        Parameters
        ----------
        path, limit
            As in `fit_file`.
        output : str, path or "-", optional
            Write a line for each example here (``"-"``: standard output) instead of returning them. Blank lines,
            comments and the header of a csv also have a line, so that ``paste`` can join both files.
        format : FileFormat or str, optional
            Unspecified parts are those of the training file. ``label=False``: there is no label.
        proba : bool, default=False
            Return probabilities of all classes; in ``output``, the probability of the predicted label follows it after
            a tab.
        top : int, optional
            Write this number of top labels of each example with their scores (with ``proba``: probabilities). Needs
            ``output``.
        on_error : {"raise", "skip"}, default="raise"
            With ``"skip"`` malformed lines have no prediction; `output` has an empty line there.

        Returns
        -------
        array of predictions, or with `output` the number of examples
        """
        if top is not None and output is None:
            raise ValueError("top needs an output; for arrays see top_k")
        if output is None:
            report = ReadReport()
            blocks = labelled_blocks(self, path, FileFormat.of(format), on_error, limit, required=False, report=report)
            wanted = self.predict_proba if proba else self.predict  # type: ignore[attr-defined]
            parts = [wanted(block) for block in blocks]
            self._report_unseen(path, report)
            return (
                np.concatenate(parts)
                if parts
                else wanted(_core.examples.Examples(np.zeros(1, np.int64), np.empty(0, np.uint64)))
            )
        n, report = 0, ReadReport()
        blocks = labelled_blocks(
            self, path, FileFormat.of(format), on_error, limit, required=False, report=report, keep_lines=True
        )
        with LineWriter(output) as write:
            for block in blocks:
                gaps = [
                    (n_before, self._header(proba, top) if line == HEADER else line) for n_before, line in report.gaps
                ]
                write(with_gaps(prediction_lines(self, block, proba, top), gaps))
                n += len(block)
        self._report_unseen(path, report)
        return n

    def _header(self, proba: bool, top: int | None) -> str:
        """The line above the predictions for a csv with a header, so that both files have as many lines."""
        name = getattr(self.file_format_, "label", None)
        label = name if isinstance(name, str) else "label"
        if not proba and top is None:
            return label
        score = "probability" if proba else "score"
        ranks = range(1, 1 + (top or 1))
        return "\t".join(f"{label}\t{score}" if not top else f"{label} {k}\t{score} {k}" for k in ranks)

    def _report_unseen(self, path: FilePath, report: ReadReport) -> None:
        message = report.unseen()
        if message:
            announce(self, None, [f"{Source(path).name}: {message}"], [])

    def score_file(
        self,
        path: FilePath,
        format: FileFormat | str | None = None,
        *,
        on_error: str = "raise",
        limit: int | None = None,
    ) -> float:
        """Return the accuracy (R² for a regressor) over the labelled examples of a file, weighted by importance.

        Parameters
        ----------
        path, on_error, limit
            As in `fit_file`.
        format : FileFormat or str, optional
            Unspecified parts are those of the training file.

        Returns
        -------
        float
            Unknown labels count as errors.
        """
        sums = np.zeros(4)  # weight; right or Σ (y - ŷ)²; Σ y; Σ y²
        for block in labelled_blocks(self, path, FileFormat.of(format), on_error, limit):
            truth, weights, known = outputs_of(self, block)
            predicted = np.asarray(self.predict(block))[known]  # type: ignore[attr-defined]
            truth, weights = truth[known], weights[known]
            if self._numeric_targets:  # type: ignore[attr-defined]
                sums += [weights.sum(), weights @ (truth - predicted) ** 2, weights @ truth, weights @ truth**2]
            else:
                sums[:2] += [weights.sum(), weights @ (truth == predicted)]
        if not sums[0]:
            raise ValueError(f"{Source(path).name}: no labelled examples in this file")
        if not self._numeric_targets:  # type: ignore[attr-defined]
            return float(sums[1] / sums[0])
        spread = sums[3] - sums[2] ** 2 / sums[0]
        return float(1 - sums[1] / spread) if spread > 0 else float("nan")
