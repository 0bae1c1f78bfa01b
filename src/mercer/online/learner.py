"""Code shared by the hashed estimators: settings, the loop over blocks of examples, model files."""

from __future__ import annotations

import copy
import copyreg
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from mercer import _core
from mercer._estimator import Estimator
from mercer._explain import Terms
from mercer._state.limits import reserve
from mercer._state.saved import AsJson, Choice, Count, Fields, Flag, Ints, Kind, Optional, Saved
from mercer._state.values import Reader, Writer
from mercer._validation import (
    check_choice,
    check_count,
    check_not_negative,
    check_positive,
    check_sparse,
    check_weights,
    thread_count,
)
from mercer.exceptions import ModelFileError
from mercer.learning.checkpoint import Checkpoint, digest_of, fingerprint
from mercer.learning.partitioned import Here, n_examples
from mercer.learning.penalties import Penalty
from mercer.learning.training import seed_state
from mercer.online._frames import frame_format, frame_records, frame_rows, split_label
from mercer.online._names import NameTable, Naming, Unnamed, frame_sample, names_of
from mercer.online._names import _Names as RecordNames
from mercer.online._progress import Progress
from mercer.online.files import FileLearning
from mercer.online.formats import ResolvedFormat
from mercer.online.inputs import (
    Documents,
    Inputs,
    Records,
    Rows,
    has_texts,
    hasher_params,
    is_documents,
    is_table,
    n_copies,
    table_columns,
    text_features,
)

__all__ = ["HashedLearner"]

SOLVERS = ("adagrad", "ftrl", "sgd")
RATES = {"adagrad": 2.5, "ftrl": 0.1, "sgd": 0.5}
"""``learning_rate=None``: chosen on the progressive loss of fifteen streams together, never for one of them."""

SGD_ALPHA = 1e-5
AUTO_PASSES = 16
AUTO_VISITS = {"rows": 100_000, "documents": 6_000}
"""``max_iter="auto"``: passes that visit so many rows or documents, at most 16. Chosen on five sets of rows, and on
folds of the training parts of five sets of documents together (1,500 each): few dense columns gain from many passes,
words from about four."""

_BLOCK = 1 << 20
"""Features times blocks of 16 classes between two looks at Ctrl-C: some tens of milliseconds."""

_LINE = 16


_TABLES = ("csv", "jsonl")  # formats with named fields


class _Weights(Kind):
    """The compiled model: its settings and its arrays. Reading gives both; the learner makes the model of them."""

    def write(self, value: Any, out: Writer) -> Any:
        state = value.state()
        arrays = {name: state[name] for name in ("intercepts", "counters")}
        arrays |= _pack("table", state["table"]) | _pack("scales", state["scales"])
        return {"settings": value.settings(), "arrays": {name: out.place(a, name) for name, a in arrays.items()}}

    def read(self, node: Any, source: Reader) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return dict(node["settings"]), {name: source.array(place) for name, place in node["arrays"].items()}


class _Names(Kind):
    """A `NameTable`, in arrays."""

    def write(self, value: Any, out: Writer) -> Any:
        return {name: out.place(array, name) for name, array in value.to_arrays().items()}

    def read(self, node: Any, source: Reader) -> NameTable:
        return NameTable.from_arrays({name: source.array(place) for name, place in node.items()})


class HashedLearner(FileLearning, Saved, Estimator):
    """Base of `HashedClassifier` and `HashedRegressor`."""

    loss: str
    n_bits: int
    solver: str
    penalty: str | None
    alpha: float | None
    l1_ratio: float
    max_iter: int | str
    n_jobs: int | None
    random_state: Any
    hasher: Any
    counts: str
    learning_rate: float | None
    shuffle: bool
    fit_intercept: bool
    verbose: int
    inverse_size: int

    model_: _core.learner.HashedModel
    progress_: Progress
    input_: str
    interrupted_: bool
    n_iter_: int

    version = 3  # l1 and l2 are penalty and alpha
    saved: ClassVar[Fields] = Fields(
        model_=_Weights(),
        progress_=AsJson(Progress),
        input_=Choice("array", "hashed"),
        interrupted_=Flag(),
        n_iter_=Optional(Count(1)),
        file_format_=Optional(AsJson(ResolvedFormat)),
        names_=Optional(_Names()),
        _categories=Optional(Ints(None)),
    )

    # ------------------------------------------------------------------ examples in parts

    _parts_how = "stream"

    def _fit_parts(self, place: Any, *, checkpoint: Any = None) -> Any:
        """Learn from parts: in their order where they are at hand, on a cluster by rounds of passes and averages.

        Averages of models that saw other parts are no pass over all of them: on a cluster a model depends on how the
        examples are cut, and nothing is promised about its loss.
        """
        if checkpoint is not None:
            raise TypeError("checkpoint is not for examples in partitions")
        self._check_parameters()
        passes, at_hand = self._passes(), isinstance(place, Here)
        more = self._known_of_parts(place)
        model = clone(self)
        for _ in range(passes):
            if at_hand:
                for i in range(place.n_parts):
                    place.use(i, partial(_learn_part, model, more))
                continue
            learnt = [one for one in place.each(_learnt_part, model, more) if one is not None]
            if not learnt:
                raise ValueError("nothing to learn from: all partitions are empty")
            model = learnt[0][0]
            model.model_ = _averaged([(one.model_, n) for one, n in learnt])
        if not hasattr(model, "model_"):
            raise ValueError("nothing to learn from: all partitions are empty")
        self.__dict__.update(
            {name: value for name, value in vars(model).items() if name.endswith("_") or name[0] == "_"}
        )
        self.n_iter_ = passes
        return self

    def _known_of_parts(self, place: Any) -> dict[str, Any]:
        """Return what ``partial_fit`` must be told before the first part."""
        return {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        return tags

    # ------------------------------------------------------------------ what was learnt

    @property
    def model_bytes_(self) -> int:
        """Return the bytes of the weights and the optimiser state, without labels and their intercepts."""
        check_is_fitted(self, "model_")
        return int(self.model_.table_bytes)

    @property
    def history_(self) -> dict[str, list[float]]:
        """Return progressive values at doubling numbers of examples, and at the end of each call of `fit`."""
        check_is_fitted(self, "model_")
        return self.progress_.history

    @property
    def progressive_loss_(self) -> float:
        """Return the average loss, each example predicted before it was learnt; for `fit`, over the first pass."""
        check_is_fitted(self, "model_")
        return self.progress_.average_loss

    # ------------------------------------------------------------------ looking inside

    _weighs_features = True
    _explains_decisions = True

    def _weight_labels(self) -> list[Any] | None:
        check_is_fitted(self, "model_")
        return list(self.classes_.tolist()) if hasattr(self, "classes_") else None

    def _label_weights(self, label: Any) -> tuple[np.ndarray, Callable[[int], str]]:
        """Weights of the columns, or of the features whose names were kept."""
        name: Callable[[int], str]
        if self.input_ == "array":
            hashes, name = np.arange(self.n_features_in_, dtype=np.uint64), self._column_name
        else:
            if not hasattr(self, "names_"):
                raise ValueError("no names of features were kept: this model was made without them")
            table = self.names_
            hashes, name = table.hashes, lambda k: table.names[k]
        weights = self._hash_scores(hashes, np.ones(len(hashes), np.float32))[0]
        if self._weight_labels() is None:
            return weights[:, 0], name
        at = self.classes_.tolist().index(label)
        if weights.shape[1] == 1:
            return (weights[:, 0] if at == 1 else -weights[:, 0]), name
        # Scores of classes are compared, so that a weight counts by how far it lies above the others.
        return weights[:, at] - weights.mean(axis=1), name

    def _terms(self, x: Any, output: Any, against: Any) -> Terms:
        check_is_fitted(self, "model_")
        if self.input_ == "array":
            row = self._inputs(x if issparse(x) or hasattr(x, "iloc") else np.atleast_2d(x), reset=False)[0].matrix  # type: ignore[union-attr]
            hashes, values, names = row.indices.astype(np.uint64), row.data, None
        elif (
            not isinstance(x, (str, bytes)) and getattr(self, "file_format_", ResolvedFormat("text")).format in _TABLES
        ):
            names, hashes, values = self._record_names(x)
        else:
            names, hashes, counts = self._document_names(x)
            values = np.sqrt(counts) if self.counts == "sqrt" else counts.astype(float)
        contributions, constants = self._hash_scores(hashes, values.astype(np.float32))
        labels = self._weight_labels()
        if labels is None:
            picked, constant = contributions[:, 0], float(constants[0])
            decided: tuple[Any, Any] = (picked.sum() + constant if output is None else output, None)
        else:
            if contributions.shape[1] == 1:
                contributions = np.hstack([np.zeros_like(contributions), contributions])
                constants = np.array([0.0, float(constants[0])])
            ranked = np.argsort(-(contributions.sum(axis=0) + constants), kind="stable").tolist()
            a = ranked[0] if output is None else _place(labels, "output", output)
            b = next(k for k in ranked if k != a) if against is None else _place(labels, "against", against)
            if a == b:
                raise ValueError(f"output and against must differ, both are {labels[a]!r}")
            picked, constant = contributions[:, a] - contributions[:, b], float(constants[a] - constants[b])
            decided = labels[a], labels[b]
        name = self._column_name if names is None else names.__getitem__
        places = hashes.astype(np.int64) if names is None else np.arange(len(hashes))
        return Terms(*decided, places, values, picked, name, constant)

    @property
    def names_bytes_(self) -> int:
        """Return the bytes of the table of feature names; 0 for models of arrays."""
        check_is_fitted(self, "model_")
        return self.names_.n_bytes if hasattr(self, "names_") else 0

    @property
    def names_(self) -> NameTable:
        """Return the names of the features with the largest weights, computed on first access."""
        unnamed: Unnamed | None = self.__dict__.get("_unnamed")
        if unnamed is not None:
            names, hashes = unnamed.names()
            if names or unnamed.texts:
                self._note_names(names, hashes)
            self.__dict__.pop("_unnamed", None)
        table: NameTable | None = self.__dict__.get("_names")
        if table is None:
            raise AttributeError("names_")
        return table

    @names_.setter
    def names_(self, table: NameTable) -> None:
        self._forget_names()
        self._names = table

    def _forget_names(self) -> None:
        """Of an earlier fit."""
        self.__dict__.pop("_names", None)
        self.__dict__.pop("_unnamed", None)

    def __getstate__(self) -> Any:
        _ = getattr(self, "names_", None)  # a copy has names, no documents
        return super().__getstate__()

    def _name_later(self, names: Naming) -> None:
        """Note what such a function will find; of many files, those before now."""
        unnamed = self.__dict__.get("_unnamed") or Unnamed()
        if len(unnamed.others) > 3:
            _ = self.names_
            unnamed = Unnamed(stride=unnamed.stride)
        self._unnamed = unnamed.with_others(names)

    def _note_names(self, names: list[str], hashes: np.ndarray) -> None:
        """Keep the names among these, and those kept before, whose weights are the largest."""
        table = self.__dict__.get("_names", NameTable.empty()).with_names(names, hashes)
        weights = self._hash_scores(table.hashes, np.ones(len(table.hashes), np.float32))[0]
        centred = weights if weights.shape[1] == 1 else weights - weights.mean(axis=1, keepdims=True)
        strength = np.abs(centred).max(axis=1, initial=0.0)
        self._names = table.strongest(strength, min(self.inverse_size, int(np.count_nonzero(strength))))

    def _column_name(self, column: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return f"x{column}" if names is None else str(names[column])

    def _document_names(self, x: Any) -> tuple[list[str], np.ndarray, np.ndarray]:
        """The features of one document: names, hashes and counts."""
        if not isinstance(x, (str, bytes)):
            raise ValueError(f"x must be one document, a str or bytes, got {type(x).__name__}")
        return names_of([x], self.hasher)

    def _record_names(self, x: Any) -> tuple[list[str], np.ndarray, np.ndarray]:
        """The features of one record, a dict or a row of a data frame: names, hashes and values."""
        if hasattr(x, "to_dict") and not hasattr(x, "columns"):  # a series of pandas
            x = x.to_dict()
        columns = table_columns([x] if isinstance(x, Mapping) and not is_table(x) else x)
        sizes = {len(cells) for cells in columns.values()}
        if sizes != {1}:
            raise ValueError(f"x must be one record, got {max(sizes, default=0)} rows")
        block = frame_records(self, columns, self.file_format_, False).examples(np.arange(1))
        first = slice(None, None, n_copies(self.hasher))  # of the copies of each feature
        names = RecordNames(self.hasher)
        names.fields([{name: cells[0] for name, cells in columns.items()}], self.file_format_)
        known = dict(zip(*(list(part) for part in reversed(names.result())), strict=True))
        hashes = np.asarray(block.hashes, np.uint64)[first]
        values = np.asarray(block.values, float)[first] if len(block.values) else np.ones(len(hashes))
        if block.documents and self.counts == "sqrt":
            values = np.sqrt(values)
        return [str(known.get(h, "(unnamed)")) for h in hashes], hashes, values

    def _hash_scores(self, hashes: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What features with these hashes and values add to every score, and the scores without any."""
        hashes, copies = hashes.astype(np.uint64), 1 if self.input_ == "array" else n_copies(self.hasher)
        n = len(hashes)
        if copies > 1:
            every = [hashes, *(_core.hashing.combine_hashes(hashes, k) for k in range(1, copies))]
            hashes, values = np.stack(every, axis=1).ravel(), np.repeat(values, copies)
        indptr = np.concatenate([[0], copies * np.arange(n + 1)]).astype(np.int64)  # none, then one feature each
        examples = _core.examples.Examples(indptr, hashes.astype(np.uint64), values.astype(np.float32))
        scores = self.model_.scores(examples, threads=thread_count(self.n_jobs)).astype(np.float64)
        return scores[1:] - scores[0], scores[0]

    # ------------------------------------------------------------------ settings

    def _check_parameters(self) -> dict[str, Any]:
        """The settings of the compiled model that all tasks share."""
        check_choice("solver", self.solver, SOLVERS)
        n_bits = check_n_bits(self.n_bits)
        rate = RATES[self.solver] if self.learning_rate is None else check_positive("learning_rate", self.learning_rate)
        penalty = Penalty.named(self.penalty, self.l1_ratio)
        if self.alpha is None:
            if self.solver != "sgd" and penalty.l1 > 0:
                raise ValueError(f"penalty={self.penalty!r} needs alpha, its factor: without one there is no penalty")
            alpha = SGD_ALPHA if self.solver == "sgd" else 0.0
        else:
            alpha = check_not_negative("alpha", self.alpha)
        if self.solver == "sgd" and alpha * penalty.l2 == 0:
            raise ValueError(
                "solver='sgd' needs alpha > 0 and penalty='l2', or 'elasticnet' with l1_ratio below 1: its steps are"
                " 1 / (alpha (t + t0)), alpha times the share of the ℓ2 part"
            )
        if not (isinstance(self.max_iter, str) and self.max_iter == "auto"):
            try:
                check_count("max_iter", self.max_iter)
            except ValueError:
                told = f"max_iter must be 'auto' or an integer of at least 1, got {self.max_iter!r}"
                raise ValueError(told) from None
        thread_count(self.n_jobs)
        check_count("inverse_size", self.inverse_size, 0)
        text_features(self.hasher)
        return {
            "loss": self.loss,
            "n_bits": n_bits,
            "optimizer": self.solver,
            "rate": rate,
            "l1": alpha * penalty.l1,
            "l2": alpha * penalty.l2,
            "intercept": bool(self.fit_intercept),
            "damped": check_choice("counts", self.counts, ("sqrt", "linear")) == "sqrt",
        }

    def _passes(self, inputs: Inputs | None = None) -> int:
        """Return the number of passes; ``"auto"`` is one over a stream, whose length nobody knows."""
        if not isinstance(self.max_iter, str):
            return self.max_iter
        if inputs is None:
            return 1
        text = isinstance(inputs, Documents) or (isinstance(inputs, Records) and inputs.documents)
        visits = AUTO_VISITS["documents" if text else "rows"]
        return min(AUTO_PASSES, max(1, -(-visits // max(1, len(inputs)))))

    def _new_model(self, settings: dict[str, Any], n_rows: int = 1) -> _core.learner.HashedModel:
        """A model that has learnt nothing; `n_rows` classes with weights of their own."""
        check_memory(settings, n_rows)
        try:
            return _core.learner.HashedModel(**settings)
        except MemoryError as error:
            raise MemoryError(f"no memory for {_size(settings, n_rows)}: lower n_bits") from error

    # ------------------------------------------------------------------ inputs

    def _inputs(self, X: Any, *, reset: bool, y: Any = "no_validation") -> tuple[Inputs, Any]:
        """Checked inputs, and y checked with them unless only inputs are asked for."""
        alone = isinstance(y, str) and y == "no_validation"
        if is_table(X):
            frame = has_texts(X) if reset else self.input_ == "hashed" and hasattr(self, "file_format_")
            if frame or (not alone and isinstance(y, str)):
                return self._frame_inputs(X, reset, y, alone)
        documents = is_documents(X, expected=not reset and self.input_ == "hashed")
        if not reset and documents != (self.input_ == "hashed"):
            seen = f"arrays of {self.n_features_in_} columns" if self.input_ == "array" else "documents or files"
            raise ValueError(f"this model has learnt from {seen}, and X is {'documents' if documents else 'an array'}")
        if documents:
            inputs: Inputs = Documents.of(X, self.hasher)
            if alone:
                return inputs, None
            y = self._check_y(y)
            if len(y) != len(inputs):
                raise ValueError(f"found {len(inputs)} documents and {len(y)} values in y")
            return inputs, y
        kinds: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "reset": reset}
        if alone:
            return Rows.of(validate_data(self, check_sparse("X", X), **kinds), self.n_bits), None
        X, y = validate_data(self, check_sparse("X", X), y, y_numeric=self._numeric_targets, **kinds)
        return Rows.of(X, self.n_bits), self._check_y(y)

    def _frame_inputs(self, X: Any, reset: bool, y: Any, alone: bool) -> tuple[Inputs, Any]:
        """Rows of a table with texts and categories, and y, which may be the name of one of its columns."""
        if not alone:
            X, y = split_label(X, y)
            y = self._check_y(y)
        columns = table_columns(X)
        if reset:
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
        form = frame_format(self, columns) if reset else self.file_format_
        records = frame_records(self, columns, form, reset)
        if reset:
            self.feature_names_in_ = np.array(list(columns), dtype=object)
            self.n_features_in_ = len(columns)
            self._frame = columns
        if not alone and len(y) != len(records):
            raise ValueError(f"found {len(records)} rows and {len(y)} values in y")
        return records, None if alone else y

    _numeric_targets = False

    def _check_y(self, y: Any) -> np.ndarray:
        raise NotImplementedError

    def _check_weights(self, sample_weight: Any, inputs: Inputs) -> np.ndarray | None:
        if sample_weight is None:
            return None
        rows = np.empty((len(inputs), 1))
        weights = _check_sample_weight(sample_weight, rows, dtype=np.float32, ensure_non_negative=True)
        if len(weights):
            check_weights(weights, len(weights))  # scikit-learn 1.7 lets weights of zero pass
        return weights

    # ------------------------------------------------------------------ walks

    def _block_sizes(self, inputs: Inputs) -> int:
        """Examples in a block."""
        work = max(1, inputs.n_values // max(1, len(inputs))) * max(1, self.model_.n_outputs // _LINE)
        return int(max(1, min(1 << 16, _BLOCK // work)))

    def _learn(
        self, inputs: Inputs, outputs: Callable[[np.ndarray], dict[str, Any]], passes: int, shuffle: bool
    ) -> None:
        """Passes over the inputs. Ctrl-C ends them, and the model stays as far as it came."""
        random = check_random_state(self.random_state) if shuffle else None
        step = self._block_sizes(inputs)
        self.interrupted_ = False
        run: _Run | None = self.__dict__.pop("_run", None)
        first_pass, first_row, order = (0, 0, None) if run is None else run.resume(self, random, len(inputs))
        self.progress_.start()
        try:
            for number in range(first_pass, passes):
                if order is None:
                    order = np.arange(len(inputs)) if random is None else random.permutation(len(inputs))
                for begin in range(first_row, len(order), step):
                    part = order[begin : begin + step]
                    examples = inputs.examples(part)
                    _core.examples.set_outputs(examples, **outputs(part))
                    self._learn_block(examples, judged=number == 0)
                    if run is not None and begin + step < len(order):
                        run.save(self, random, number, begin + step, order)
                if number == 0:
                    self.progress_.record(self.verbose)
                first_row, order = 0, None
        except KeyboardInterrupt:
            self.interrupted_ = True
        finally:
            self.progress_.stop()
            if run is not None:
                run.checkpoint.release()
        if run is not None and not self.interrupted_:
            run.checkpoint.close()
        frame = self.__dict__.pop("_frame", None)
        if frame is not None and self.inverse_size:
            self._name_later(frame_sample(self.hasher, frame_rows(frame), self.file_format_))
        if isinstance(inputs, Documents) and self.inverse_size:
            self._unnamed = (self.__dict__.get("_unnamed") or Unnamed()).with_texts(inputs.texts, self.hasher)

    def _save_to(self, checkpoint: Any, inputs: Inputs, y: np.ndarray, weights: np.ndarray | None) -> None:
        """Keeps the next `_learn` in a checkpoint, if there is one."""
        if checkpoint is None:
            return
        params = {**self.get_params(deep=False), "hasher": hasher_params(self.hasher)}
        params = {name: value for name, value in params.items() if name not in ("n_jobs", "verbose", "random_state")}
        settings = (params, seed_state(self.random_state), y.dtype.str)
        labels = y if y.dtype.kind in "biuf" else np.array(digest_of(y.tolist()))
        data = fingerprint(settings, [*inputs.fingerprint_arrays(), labels, weights])
        self._run = _Run(checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint), data)

    def _learn_block(self, examples: _core.examples.Examples, judged: bool = True) -> None:
        """Learns from a block; its figures are progressive ones if its examples are `judged` for the first time."""
        begin = 0
        while begin < len(examples):
            end = min(len(examples), begin + self.progress_.until_next) if judged else len(examples)
            figures = self.model_.learn(examples, begin, end)
            if judged:
                self.progress_.add(figures, self.verbose)
            begin = end

    def _blocks(self, X: Any) -> Iterator[tuple[slice, _core.examples.Examples]]:
        """The examples of X in blocks whose scores fit into memory with ease."""
        check_is_fitted(self, "model_")
        if isinstance(X, _core.examples.Examples):  # of a file
            yield slice(0, len(X)), X
            return
        inputs, _ = self._inputs(X, reset=False)
        step = self._block_sizes(inputs)
        for begin in range(0, len(inputs), step):
            part = np.arange(begin, min(len(inputs), begin + step))
            yield slice(begin, begin + len(part)), inputs.examples(part)

    def _scores(self, X: Any) -> np.ndarray:
        """Scores of all examples, (n, n_outputs)."""
        threads = thread_count(self.n_jobs)
        parts = [self.model_.scores(examples, threads=threads) for _, examples in self._blocks(X)]
        return np.concatenate(parts).astype(np.float64) if parts else np.zeros((0, self.model_.n_outputs))

    def _column_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the columns of an array, (n_outputs, n_features), and intercepts: scores of unit vectors."""
        check_is_fitted(self, "model_")
        if self.input_ != "array":
            raise AttributeError("coef_ and intercept_ need columns: this model has learnt from documents or files")
        n = self.n_features_in_
        indptr = np.concatenate([[0], np.arange(n + 1)])  # an empty row, then the unit vectors
        examples = _core.examples.row_examples(
            indptr, np.arange(n), np.ones(n), np.arange(n + 1), n, check_n_bits(self.n_bits), 0
        )
        scores = self.model_.scores(examples, threads=thread_count(self.n_jobs)).astype(np.float64)
        return (scores[1:] - scores[0]).T, scores[0]

    def _table_weights(self) -> np.ndarray:
        """The weights of the table alone, without what the optimizer keeps beside them.

        Compiled in ``cpp/solvers/hashed_learner.hpp``.
        """
        check_is_fitted(self, "model_")
        settings, state = self.model_.settings(), self.model_.state()
        several = settings["task"] == "multiclass"
        width = {"adagrad": 2, "ftrl": 3 if several else 4, "sgd": 1}[settings["optimizer"]]
        factor, row = state["counters"][4], state["counters"][9]
        side_by_side = 1 if not several else int(row) if settings["label_hashing"] == "separate" else _LINE
        return np.float32(factor) * state["table"].reshape(-1, width, side_by_side)[:, 0].ravel()

    # ------------------------------------------------------------------ model files

    def _check_complete(self) -> None:
        check_is_fitted(self, "model_")

    def _saved_params(self) -> dict[str, Any]:
        params = super()._saved_params()
        return {**params, "hasher": None if self.hasher is None else text_features(self.hasher)}

    @classmethod
    def _make(cls, params: dict[str, Any]) -> Any:
        hasher = params["hasher"]
        return cls(**{**params, "hasher": None if hasher is None else text_features(hasher)})

    def _check_state(self) -> None:
        """Make the compiled model, once its size is known to be allowed, and fill it."""
        self._check_parameters()
        given: Any = self.model_
        settings, arrays = given
        if check_n_bits(settings["n_bits"]) != self.n_bits:
            raise ValueError(f"the table has 2^{settings['n_bits']} weights, and n_bits is {self.n_bits}")
        check_choice("optimizer", settings["optimizer"], SOLVERS)
        n_rows = self._n_rows(settings)
        reserve(_bytes(settings, n_rows), f"a table of {_size(settings, n_rows)}")
        self.model_ = self._new_model(settings, n_rows)
        self._set_core_labels()
        most = self.model_.table_bytes // 4
        table, scales = (_unpack(name, arrays, most) for name in ("table", "scales"))
        self.model_.set_state(table, scales, arrays["intercepts"], arrays["counters"])
        if getattr(self, "_categories", None) is not None and self._categories.dtype != np.uint64:
            raise ValueError("the categories must be hashes")
        if self.input_ == "array" and not hasattr(self, "n_features_in_"):
            raise ValueError("n_features_in_ is missing")
        if len(getattr(self, "feature_names_in_", ())) not in (0, getattr(self, "n_features_in_", 0)):
            raise ValueError(f"expected {self.n_features_in_} feature names, found {len(self.feature_names_in_)}")

    def _set_core_labels(self) -> None:
        """Tells the new compiled model its labels."""

    def _n_rows(self, settings: dict[str, Any]) -> int:
        """Tables of a compiled model with these settings."""
        return 1


class _Run:
    """The passes of a `fit` in a checkpoint: the model, the generator, the order of the pass and the place in it."""

    def __init__(self, checkpoint: Checkpoint, fingerprint: str) -> None:
        self.checkpoint, self.fingerprint = checkpoint, fingerprint

    def resume(self, model: HashedLearner, random: Any, n: int) -> tuple[int, int, np.ndarray | None]:
        """Where to go on: pass, row and order; the model and the generator are brought there."""
        held = self.checkpoint.open(self.fingerprint)
        if held is None:
            return 0, 0, None
        try:
            state, arrays = held
            order = arrays.pop("order")
            if order.shape != (n,) or order.dtype != np.int64 or len(np.unique(order)) != n:
                raise ValueError(f"order must hold the numbers of {n} rows")
            if n and not (order.min() == 0 and order.max() == n - 1):
                raise ValueError("a row of order is out of range")
            words = arrays.pop("generator", None)
            other = type(model).from_state(state["model"], arrays)
            place = check_count("pass", state["pass"], 0), check_count("row", state["row"], 0)
            if random is not None:
                position, has_gauss, gauss = state["generator"]
                random.set_state(("MT19937", words, int(position), int(has_gauss), float(gauss)))
            other.progress_._before = float(state["seconds"])
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            self.checkpoint.release()
            what = f"the checkpoint does not fit this training: {error}"
            raise ModelFileError(f"{self.checkpoint.path}: {what}") from error
        model.model_, model.progress_ = other.model_, other.progress_
        return *place, order

    def save(self, model: HashedLearner, random: Any, number: int, row: int, order: np.ndarray) -> None:
        """Writes where the run is, when it is time."""
        if not self.checkpoint.due():
            return
        meta, arrays = model.to_state()
        state: dict[str, Any] = {"model": meta, "pass": number, "row": row, "seconds": model.progress_.seconds}
        arrays["order"] = order.astype(np.int64)
        if random is not None:
            _, arrays["generator"], *rest = random.get_state()
            state["generator"] = [float(x) for x in rest]
        self.checkpoint.write(state, arrays)


# ---------------------------------------------------------------------------------------------------- checks


def _learn_part(model: Any, more: dict[str, Any], part: Any, number: int) -> Any:
    if n_examples(part.X):
        model.partial_fit(part.X, part.y, sample_weight=part.sample_weight, **more)
    return model


def _learnt_part(part: Any, number: int, model: Any, more: dict[str, Any]) -> Any:
    n = n_examples(part.X)
    return (_learn_part(copy.deepcopy(model), more, part, number), n) if n else None


def _averaged(models: list[tuple[Any, int]]) -> _core.learner.HashedModel:
    """The mean of models of equal settings, each by its share of the examples."""
    total = sum(n for _, n in models)
    sums: dict[str, np.ndarray] = {}
    for model, n in models:
        for name, values in model.state().items():
            share = (n / total) * np.asarray(values, np.float64)
            sums[name] = sums[name] + share if name in sums else share
    first = models[0][0]
    made = _core.learner.HashedModel(**first.settings())
    if labels := first.labels():
        made.set_labels(labels)
    table, scales, intercepts = (sums[name].astype(np.float32) for name in ("table", "scales", "intercepts"))
    made.set_state(table, scales, intercepts, sums["counters"])
    return made


def check_n_bits(n_bits: Any) -> int:
    """Return an integer from 1 to 32."""
    if check_count("n_bits", n_bits) > 32:
        raise ValueError(f"n_bits must be at most 32 (2^32 weights take 32 GiB with adagrad), got {n_bits!r}")
    return int(n_bits)


def _bytes(settings: dict[str, Any], n_rows: int) -> int:
    width = {"adagrad": 2, "ftrl": 4, "sgd": 1}[settings["optimizer"]] + bool(settings.get("scaled"))
    return 4 * width * n_rows << settings["n_bits"]


def _size(settings: dict[str, Any], n_rows: int) -> str:
    rows = f" for each of {n_rows} classes" if n_rows > 1 else ""
    return f"2^{settings['n_bits']} weights{rows}: {_bytes(settings, n_rows) / 2**30:.2f} GiB"


def check_memory(settings: dict[str, Any], n_rows: int) -> None:
    """Raise MemoryError if the weights would not fit into memory."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return
    if _bytes(settings, n_rows) > there:
        raise MemoryError(f"{_size(settings, n_rows)}, but the machine has {there / 2**30:.1f} GiB: lower n_bits")


def _place(labels: list[Any], name: str, label: Any) -> int:
    if label not in labels:
        raise ValueError(f"{name}: unknown label {label!r}; known are {', '.join(map(repr, labels))}")
    return labels.index(label)


# ---------------------------------------------------------------------------------------------------- storage


def _pack(name: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """An array as it is, or only its lines of 16 that are not all 0 where that is shorter."""
    if not len(values) or len(values) % _LINE:
        return {name: values}
    lines = values.reshape(-1, _LINE)
    used = np.flatnonzero(lines.any(axis=1))
    if len(used) > 0.75 * len(lines):
        return {name: values}
    return {f"{name}_lines": used, f"{name}_used": lines[used], f"{name}_size": np.array([len(values)])}


def _unpack(name: str, arrays: dict[str, np.ndarray], most: int) -> np.ndarray:
    """The inverse of `_pack`, for an array of at most so many numbers."""
    if name in arrays:
        return arrays[name]
    size, used, lines = int(arrays[f"{name}_size"][0]), arrays[f"{name}_used"], arrays[f"{name}_lines"]
    if lines.ndim != 1 or lines.dtype.kind != "i" or used.dtype != np.float32:
        raise ValueError(f"the lines of {name} are not numbers of lines and their weights")
    if not 0 <= size <= most or size % _LINE or used.shape != (len(lines), _LINE):
        raise ValueError(f"the lines of {name} do not fit together")
    if len(lines) and not (lines.min() >= 0 and lines.max() < size // _LINE):
        raise ValueError(f"a line of {name} is out of range")
    values = np.zeros(size, np.float32)
    values.reshape(-1, _LINE)[lines] = used
    return values


def _rebuild(settings: dict[str, Any], labels: list[str], state: dict[str, np.ndarray]) -> _core.learner.HashedModel:
    model = _core.learner.HashedModel(**settings)
    if labels:
        model.set_labels(labels)
    most = model.table_bytes // 4
    table, scales = (_unpack(name, state, most) for name in ("table", "scales"))
    model.set_state(table, scales, state["intercepts"], state["counters"])
    return model


def _reduce(model: _core.learner.HashedModel) -> tuple[Any, ...]:
    state = model.state()
    packed = {"intercepts": state["intercepts"], "counters": state["counters"]}
    packed |= _pack("table", state["table"]) | _pack("scales", state["scales"])
    return _rebuild, (model.settings(), model.labels(), packed)


copyreg.pickle(_core.learner.HashedModel, _reduce)
