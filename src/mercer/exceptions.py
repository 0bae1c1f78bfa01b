"""Errors and warnings of all modules. A filter on one of the warnings silences it everywhere.

The modules that raise them also export them: ``mercer.learning.ConvergenceWarning`` is the class of this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "ApproximateInferenceWarning",
    "ClusterError",
    "ColumnGuessWarning",
    "ConstantAnswerWarning",
    "ConvergenceWarning",
    "DataFileError",
    "DataScaleWarning",
    "DivergedError",
    "FetchError",
    "IllPosedWarning",
    "IndexFileError",
    "InfeasibleError",
    "ModelFileError",
    "OracleError",
    "ParseError",
    "PartError",
    "StoreError",
    "TooLargeError",
    "TreewidthError",
    "UncertainPoseWarning",
    "UnreliableEstimateError",
    "ZeroProbabilityError",
]


def __getattr__(name: str) -> Any:  # scikit-learn is slow to import, and most commands need none of it
    if name != "ConvergenceWarning":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import ConvergenceWarning as Base

    said = {"__module__": __name__, "__doc__": "Training ended before it converged; the message says what to do."}
    return globals().setdefault(name, type(name, (Base,), said))


# ----------------------------------------------------------------------------------------------------------- files


class ModelFileError(ValueError):
    """A model file cannot be loaded: corrupted, not a model file, of another kind, or from another version."""


class TooLargeError(ValueError):
    """The content of a model file would take more memory than the limit allows."""


class StoreError(ModelFileError):
    """A store cannot be read or written: corrupted, truncated, of another kind, or in use by another writer."""


class IndexFileError(ValueError):
    """A file is not an index of codes, is corrupted, or has another version.

    Examples
    --------
    >>> from mercer.retrieval import HammingIndex, IndexFileError
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "codes"
    >>> _ = path.write_bytes(b"something else")
    >>> try:
    ...     HammingIndex.load(path)
    ... except IndexFileError as error:
    ...     print("no" in str(error))
    True
    """


class DataFileError(ValueError):
    """A malformed file: names the file, the line and the error.

    Parameters
    ----------
    file : str
        Name of the file, as the user gave it.
    line : int
        Line number, counted from 1.
    what : str
        Description of the error: the expected and the actual content.
    hint : str, default=""
        A second sentence that helps to repair the file.

    Examples
    --------
    >>> from mercer.data import DataFileError
    >>> raise DataFileError("broken.conll", 1203, "expected 3 columns as in line 1, found 2")
    Traceback (most recent call last):
        ...
    mercer.exceptions.DataFileError: broken.conll:1203: expected 3 columns as in line 1, found 2
    """

    def __init__(self, file: str, line: int, what: str, hint: str = "") -> None:
        super().__init__(f"{file}:{line}: {what}")
        self.file = file
        self.line = line
        self.what = what
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:  # so that a worker process can hand the error back
        return type(self), (self.file, self.line, self.what, self.hint)


class ColumnGuessWarning(UserWarning):
    """The role of a column of a file was guessed from its values."""


class FetchError(OSError):
    """A data set could not be downloaded, or its checksum is wrong.

    Examples
    --------
    >>> from mercer.datasets import FetchError
    >>> issubclass(FetchError, OSError)
    True
    """


# --------------------------------------------------------------------------------- data and models that do not fit


class DataScaleWarning(UserWarning):
    """The units of the data do not fit the model: rescale the columns, or choose a kernel's width by the data."""


class InfeasibleError(ValueError):
    """An example whose true output is forbidden, or that has no allowed output at all."""

    def __init__(self, example: int) -> None:
        super().__init__(
            f"example {example}: the constraints forbid its labels (or every labelling of it); "
            "correct the labels or relax the constraints"
        )
        self.example = example


class ParseError(ValueError):
    """A sentence that the grammar cannot derive.

    Attributes
    ----------
    sentence : int
        Index of the sentence, from 0.
    word : str or None
        Its first word that the grammar does not know; None where all are known.
    """

    def __init__(self, sentence: int, word: str | None, detail: str = "") -> None:
        self.sentence, self.word = sentence, word
        why = detail or (
            f"the grammar does not know the word {word!r}"
            if word is not None
            else "the grammar knows all its words but derives no tree over them"
        )
        super().__init__(f"sentence {sentence} cannot be parsed: {why}")


class OracleError(ValueError):
    """A method of a user's structure raised an error or returned an impossible result; the message names it."""


class IllPosedWarning(UserWarning):
    """The proportions do not determine the model, such as equal shares in all bags for `MeanMap`.

    Examples
    --------
    >>> import warnings
    >>> from mercer.proportions import IllPosedWarning
    >>> warnings.simplefilter("error", IllPosedWarning)  # stop instead of going on with a guess
    >>> warnings.simplefilter("default", IllPosedWarning)
    """


class ConstantAnswerWarning(UserWarning):
    """The predicted shares of bags are no better than a constant share for all bags.

    The data then give no evidence that the model separates rows: use more rows, more or smaller bags, or other
    features. On held-out bags (`BagCV`) almost every model of pure noise raises this warning. Some useful models raise
    it too, because shares of predicted labels are noisy.

    Examples
    --------
    >>> import warnings
    >>> from mercer.proportions import ConstantAnswerWarning
    >>> warnings.simplefilter("error", ConstantAnswerWarning)  # stop instead of going on
    >>> warnings.simplefilter("default", ConstantAnswerWarning)
    """


class UncertainPoseWarning(UserWarning):
    """The pose may fit by chance, or several poses fit equally well."""


# ------------------------------------------------------------------------------------------ training and inference


class DivergedError(FloatingPointError):
    """Training overflowed. ``weights`` are the last finite ones, by name."""

    weights: dict[str, np.ndarray]


class ApproximateInferenceWarning(UserWarning):
    """Inference is approximate, because an exact method would exceed its limits; the message names the method.

    ``infer(method="auto")`` and the labelers of graphs give it.

    Examples
    --------
    >>> import warnings
    >>> from mercer.inference import ApproximateInferenceWarning, FactorGraph, grid_edges, infer
    >>> graph = FactorGraph([2] * 16, edges=grid_edges((4, 4)), pairwise=[[2, 1], [1, 2]])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     result = infer(graph, max_bytes=100, max_operations=1000)
    >>> result.exact, result.method, caught[0].category is ApproximateInferenceWarning
    (False, 'bp', True)
    """


class TreewidthError(ValueError):
    """An exact method would need tables that are too large.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference import FactorGraph, TreewidthError, grid_edges, infer
    >>> graph = FactorGraph(np.full(900, 2), edges=grid_edges((30, 30)), pairwise=[[2, 1], [1, 2]])
    >>> try:
    ...     infer(graph, "junction-tree", max_bytes=1e6)
    ... except TreewidthError:
    ...     print("too wide")
    too wide
    """


class ZeroProbabilityError(ValueError):
    """The evidence, or the whole model, has probability 0.

    Examples
    --------
    >>> from mercer.inference import FactorGraph, ZeroProbabilityError, infer
    >>> try:
    ...     infer(FactorGraph([2], unary=[[0.0, 1.0]]), evidence={0: 0})
    ... except ZeroProbabilityError as error:
    ...     print(error)
    the evidence has probability 0: {0: 0}
    """


class UnreliableEstimateError(ValueError):
    """The effective sample size of annealing is too small for a point estimate.

    Examples
    --------
    >>> from mercer.fields import UnreliableEstimateError
    >>> issubclass(UnreliableEstimateError, ValueError)
    True
    """


# ------------------------------------------------------------------------------------------------------ partitions


class PartError(ValueError):
    """Something is wrong with one partition; the message names it."""

    def __init__(self, number: int, what: str, kind: str = "") -> None:
        super().__init__(f"partition {number}: {what}")
        self.number, self.what, self.kind = number, what, kind

    def __reduce__(self) -> Any:
        return PartError, (self.number, self.what, self.kind)


class ClusterError(RuntimeError):
    """The cluster cannot be used: no scheduler, no workers, or workers with other versions."""
