"""A scikit-learn estimator of a PyTorch module that computes emissions, with a chain CRF on top.

minimise  Σ_batches mean loss(crf(module(x)), y)   by steps of an optimiser, in random order
"""

from __future__ import annotations

import copy
import functools
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer._progress import say
from mercer._state.container import read_file, write_file
from mercer._validation import check_count, check_positive
from mercer.data.labels import LabelIndex
from mercer.learning.losses import Loss
from mercer.structures.base import check_random_seed
from mercer.structures.constraints import Constraints

__all__ = ["NeuralTagger"]

_KIND = "neural-tagger"
_PADDING, _UNSEEN = 0, 1


class NeuralTagger(BaseEstimator):
    """Label sequences with a PyTorch module and a chain CRF on top of it.

    Parameters
    ----------
    module : torch.nn.Module or callable, optional
        Maps a batch of inputs to emissions of shape (batch, time, labels). A callable ``module(n_inputs, n_labels)`` is
        called when training begins and returns a module: ``n_inputs`` is the size of the vocabulary (a tuple of sizes
        where tokens are tuples), or the number of columns. Default, for words and tuples of words:
        :class:`mercer.nn.WindowNetwork`, which also sees suffixes of the (first) word and its shape.
    loss : {"log", "hinge", "squared-hinge", "softmax-margin", "hybrid"} or Loss, default="log"
    constraints : Constraints or None
        Forbidden labellings, in training and prediction.
    max_iter : int, default=10
        Epochs: passes over the sequences.
    batch_size : int, default=32
        Number of sequences per batch.
    learning_rate : float, default=1e-3
        Initial learning rate; it decreases linearly to 0 over the epochs.
    optimizer : callable, optional
        Maps parameters to an optimiser, whose learning rate is not changed; default AdamW.
    min_count : int, default=1
        Words that occur less often in training are treated as unseen.
    patience : int, default=3
        With ``fit(..., dev=…)``: epochs without a better held-out score before training stops.
    device : str or torch.device, optional
        Default: that of the module's parameters.
    random_state : int, Generator or None
        Seed of the order of batches, of new modules and of :meth:`sample`.
    verbose : int, default=0
        1 writes a line for each epoch to standard error.

    Attributes
    ----------
    classes_ : array of labels, sorted
    module_ : torch.nn.Module
    crf_ : mercer.nn.ChainCRF
    vocabularies_ : list of dicts from words to numbers, or None
    history_ : dict of lists: loss and, with dev, score of each epoch

    Notes
    -----
    X is a list of sequences: of words, of tuples of words (each component with its own vocabulary), of integers, or
    arrays of shape (positions, columns). Modules see numbers of words padded with 0, where 1 is an unseen word, or
    float32 columns. None marks an unknown label.

    Examples
    --------
    >>> from mercer.tagging import NeuralTagger  # doctest: +SKIP
    >>> X, y = [["the", "dog", "barks"], ["a", "dog"]], [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]  # doctest: +SKIP
    >>> tagger = NeuralTagger(max_iter=60, learning_rate=0.05, random_state=0).fit(X, y)  # doctest: +SKIP
    >>> tagger.predict([["the", "dog"]])  # doctest: +SKIP
    [['DET', 'NOUN']]
    """

    def __init__(
        self,
        module: Any = None,
        loss: str | Loss = "log",
        *,
        constraints: Constraints | None = None,
        max_iter: int = 10,
        batch_size: int = 32,
        learning_rate: float = 1e-3,
        optimizer: Callable[[Any], Any] | None = None,
        min_count: int = 1,
        patience: int = 3,
        device: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.module = module
        self.loss = loss
        self.constraints = constraints
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.min_count = min_count
        self.patience = patience
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def fit(
        self, X: Sequence[Any], y: Sequence[Sequence[Any]], *, dev: tuple[Sequence[Any], Sequence[Any]] | None = None
    ) -> NeuralTagger:
        """Train on sequences and their labels.

        Parameters
        ----------
        X : list of sequences
        y : list of lists of labels
        dev : tuple (X, y), optional
            Held-out data: the weights of the epoch with the best :meth:`score` on it are kept.

        Notes
        -----
        A failed fit leaves the model unchanged.
        """
        before = dict(self.__dict__)
        try:
            self._fit(X, y, dev)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _fit(self, X: Sequence[Any], y: Sequence[Sequence[Any]], dev: Any) -> None:
        torch = _torch()
        for name in ("max_iter", "batch_size", "min_count", "patience"):
            check_count(name, getattr(self, name))
        check_positive("learning_rate", self.learning_rate)
        if len(X) != len(y) or not len(X):
            raise ValueError(f"X has {len(X)} sequences, y {len(y)}: they must be equally many, and at least one")
        seed = check_random_seed(self.random_state) >> 1
        random = np.random.default_rng(seed)
        self._labels = LabelIndex.from_sequences(y)
        self.classes_ = self._labels.array
        self.vocabularies_, self.n_inputs_ = self._learn(X)
        tags = self._labels.encode(y, np.array([len(x) for x in X]))
        rows = [np.where(row < 0, -100, row) for row in np.split(tags.labels.astype(np.int64), tags.offsets[1:-1])]
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self._build()
            parameters = [*self.module_.parameters(), *self.crf_.parameters()]
            make = self.optimizer or (lambda given: torch.optim.AdamW(given, lr=self.learning_rate))
            optimizer = make([p for p in parameters if p.requires_grad])
            inputs = [self._numbers(x) for x in X]
            steps = self.max_iter * -(-len(X) // self.batch_size)
            falling = None
            if self.optimizer is None:
                falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1.0 - step / steps))
            self.history_: dict[str, list[float]] = {"loss": [], **({} if dev is None else {"score": []})}
            best: tuple[float, Any] = (-np.inf, None)
            waited = 0
            for epoch in range(self.max_iter):
                self.history_["loss"].append(self._epoch(inputs, rows, optimizer, falling, random))
                if dev is not None:
                    score = self.score(*dev)
                    self.history_["score"].append(score)
                    waited += 1
                    if score > best[0]:
                        best, waited = (score, copy.deepcopy([self.module_.state_dict(), self.crf_.state_dict()])), 0
                if self.verbose:
                    say(f"epoch {epoch + 1}: " + ", ".join(f"{k} {v[-1]:.5g}" for k, v in self.history_.items()))
                if waited >= self.patience:
                    break
        if best[1] is not None:
            self.module_.load_state_dict(best[1][0])
            self.crf_.load_state_dict(best[1][1])
        self.n_iter_ = len(self.history_["loss"])

    def _epoch(
        self, X: list[Any], rows: list[np.ndarray], optimizer: Any, falling: Any, random: np.random.Generator
    ) -> float:
        """A pass over the data in random order, sequences of like length together; the mean loss of a sequence."""
        torch = _torch()
        self.module_.train()
        lengths = np.array([len(x) for x in X])
        order = random.permutation(len(X))
        blocks = [block[np.argsort(lengths[block], kind="stable")] for block in _cut(order, 32 * self.batch_size)]
        batches = [batch for block in blocks for batch in _cut(block, self.batch_size)]
        total = 0.0
        for k in random.permutation(len(batches)):
            chosen = batches[k]
            inputs, sizes = self._padded([X[i] for i in chosen])
            tags = torch.nn.utils.rnn.pad_sequence(
                [torch.from_numpy(rows[i]) for i in chosen], batch_first=True, padding_value=-100
            ).to(inputs.device)
            optimizer.zero_grad()
            loss = self.crf_(self._emissions(inputs), tags, sizes)
            if not bool(torch.isfinite(loss)):
                raise FloatingPointError("the loss is not finite: take a smaller learning rate")
            loss.backward()
            optimizer.step()
            if falling is not None:
                falling.step()
            total += float(loss.detach()) * len(chosen)
        return total / len(X)

    # ------------------------------------------------------------------ prediction

    def predict(self, X: Sequence[Any]) -> list[list[Any]]:
        """Return the best labelling of each sequence."""
        tags: list[list[Any]] = []
        for emissions, lengths in self._batches(X):
            labels = self.crf_.decode(emissions, lengths).tolist()
            tags += [[self.classes_[c] for c in row[:n]] for row, n in zip(labels, lengths.tolist(), strict=True)]
        return [[_plain(label) for label in row] for row in tags]

    def predict_marginals(self, X: Sequence[Any]) -> list[np.ndarray]:
        """Return p(label at a position): an array (positions, labels) for each sequence."""
        marginals = []
        for emissions, lengths in self._batches(X):
            mu = self.crf_.marginals(emissions, lengths).cpu().numpy()
            marginals += [row[:n] for row, n in zip(mu, lengths.tolist(), strict=True)]
        return marginals

    def k_best(self, X: Sequence[Any], k: int) -> list[list[tuple[list[Any], float]]]:
        """Return the k best labellings of each sequence (or all, if fewer) with their log-probabilities."""
        paths = []
        for emissions, lengths in self._batches(X):
            ranked, scores = (x.cpu().numpy() for x in self.crf_.k_best(emissions, check_count("k", k), lengths))
            for rows, values, n in zip(ranked, scores, lengths.tolist(), strict=True):
                kept = [(rows[r, :n], values[r]) for r in range(k) if np.isfinite(values[r])]
                paths.append([([_plain(self.classes_[c]) for c in row], float(p)) for row, p in kept])
        return paths

    def log_likelihood(self, X: Sequence[Any], y: Sequence[Sequence[Any]]) -> np.ndarray:
        """Return log p(y | x) of each sequence."""
        from mercer.nn import ChainCRF

        crf = ChainCRF(list(self.classes_), constraints=self.constraints)
        crf.load_state_dict(self.crf_.state_dict())
        tags = self._labels.encode(y, np.array([len(x) for x in X]))
        rows = iter(np.split(np.where(tags.labels < 0, -100, tags.labels), tags.offsets[1:-1]))
        values = [
            -crf(emissions.cpu(), [next(rows).tolist() for _ in lengths], lengths.cpu(), reduction="none")
            for emissions, lengths in self._batches(X)
        ]
        return np.concatenate([x.detach().numpy() for x in values]) if values else np.zeros(0)

    def score(self, X: Sequence[Any], y: Sequence[Sequence[Any]]) -> float:
        """Return the accuracy over positions with a known label."""
        pairs = [(a, b) for row, true in zip(self.predict(X), y, strict=True) for a, b in zip(row, true, strict=True)]
        known = [a == b for a, b in pairs if b is not None]
        return float(np.mean(known)) if known else 0.0

    # ------------------------------------------------------------------ model files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write weights, labels and vocabularies to a safetensors file, without the code of the module."""
        self._check_fitted()
        arrays = {
            f"{part}.{name}": value.detach().cpu().contiguous().numpy()
            for part, module in (("module", self.module_), ("crf", self.crf_))
            for name, value in module.state_dict().items()
        }
        meta = {
            "classes": [_plain(label) for label in self.classes_],
            "vocabularies": None if self.vocabularies_ is None else [list(words) for words in self.vocabularies_],
            "fields": None if self.vocabularies_ is None else self._tuples,
            "n_inputs": list(self.n_inputs_) if isinstance(self.n_inputs_, tuple) else self.n_inputs_,
            "loss": self.loss if isinstance(self.loss, str) else self.loss.to_json(),
            "constraints": None if self.constraints is None else self.constraints.to_json(),
        }
        write_file(Path(path), _KIND, meta, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], module: Any = None, **options: Any) -> NeuralTagger:
        """Read a model that :meth:`save` wrote, into a module or a factory of one; default: the default network."""
        from mercer.learning.losses import loss_from_json

        torch = _torch()
        file = read_file(Path(path), _KIND)
        meta = file.meta
        constraints = None if meta["constraints"] is None else Constraints.from_json(meta["constraints"])
        made = cls(module, **{"loss": loss_from_json(meta["loss"]), "constraints": constraints, **options})
        made._labels = LabelIndex(meta["classes"])
        made.classes_ = made._labels.array
        words = meta["vocabularies"]
        made.vocabularies_ = None if words is None else [{w: i + 2 for i, w in enumerate(each)} for each in words]
        made._tuples = bool(meta["fields"])
        made.n_inputs_ = tuple(meta["n_inputs"]) if isinstance(meta["n_inputs"], list) else meta["n_inputs"]
        made._build()
        for part, target in (("module", made.module_), ("crf", made.crf_)):
            own = {n.removeprefix(f"{part}."): a for n, a in file.arrays.items() if n.startswith(f"{part}.")}
            target.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in own.items()})
        return made

    # ------------------------------------------------------------------ parts

    def _build(self) -> None:
        """A module and a layer with fresh weights."""
        torch = _torch()
        from mercer.nn import ChainCRF, WindowNetwork

        if self.module is None:
            if self.vocabularies_ is None:
                raise ValueError("the network that is taken by default is for words: give a module for numbers")
            self.module_ = WindowNetwork(self.n_inputs_, len(self.classes_))
        elif isinstance(self.module, torch.nn.Module):
            self.module_ = copy.deepcopy(self.module)
        else:
            self.module_ = self.module(self.n_inputs_, len(self.classes_))
        if not isinstance(self.module_, torch.nn.Module):
            raise TypeError(f"module must be a torch.nn.Module or make one, got {type(self.module_).__name__}")
        first = next(self.module_.parameters(), None)
        device = self.device or (torch.device("cpu") if first is None else first.device)
        self.module_.to(device)
        names = [_plain(label) for label in self.classes_]
        self.crf_ = ChainCRF(names, loss=self.loss, constraints=self.constraints).to(device)

    def _learn(self, X: Sequence[Any]) -> tuple[list[dict[Any, int]] | None, Any]:
        """Vocabularies of words, and the number of inputs that a module has to know of."""
        first = next((x[0] for x in X if len(x)), None)
        if first is None:
            raise ValueError("X holds no position")
        self._tuples = isinstance(first, tuple) or (self.module is None and isinstance(first, str))
        if not self._tuples and not isinstance(first, str):
            first_input = np.asarray(X[0])
            columns = (
                int(first_input.shape[1]) if first_input.ndim == 2 else int(max(np.max(x) for x in X if len(x))) + 1
            )
            return None, columns
        counts = [Counter(words) for words in zip(*(self._fields(token) for x in X for token in x), strict=True)]
        kept = [sorted(w for w, n in count.items() if n >= self.min_count) for count in counts]
        vocabularies = [{word: i + 2 for i, word in enumerate(words)} for words in kept]
        sizes = tuple(len(words) + 2 for words in vocabularies)
        return vocabularies, sizes if self._tuples else sizes[0]

    def _fields(self, token: Any) -> tuple[Any, ...]:
        if self.module is not None:
            return token if self._tuples else (token,)
        word, *others = token if isinstance(token, tuple) else (token,)
        return *_seen(str(word)), *others

    def _numbers(self, x: Any) -> Any:
        """One sequence as a tensor."""
        torch = _torch()
        if not len(x):
            raise ValueError("a sequence is empty: leave it out")
        if self.vocabularies_ is None:
            array = np.asarray(x)
            if array.dtype.kind in "iu" and array.ndim == 1:
                return torch.from_numpy(array.astype(np.int64))
            if array.ndim != 2 or array.shape[1] != self.n_inputs_:
                raise ValueError(f"expected arrays of {self.n_inputs_} columns, got shape {array.shape}")
            return torch.from_numpy(array.astype(np.float32))
        rows = [
            [words.get(w, _UNSEEN) for words, w in zip(self.vocabularies_, self._fields(t), strict=True)] for t in x
        ]
        numbers = torch.tensor(rows, dtype=torch.int64)
        return numbers if self._tuples else numbers[:, 0]

    def _tensors(self, X: Sequence[Any]) -> tuple[Any, Any]:
        """A padded batch on the device of the module, and its lengths."""
        return self._padded([self._numbers(x) for x in X])

    def _padded(self, parts: list[Any]) -> tuple[Any, Any]:
        torch = _torch()
        lengths = torch.tensor([len(part) for part in parts])
        padded = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=_PADDING)
        return padded.to(self.crf_.transitions.device), lengths

    def _emissions(self, inputs: Any) -> Any:
        emissions = self.module_(inputs)
        expected = (*inputs.shape[:2], len(self.classes_))
        if tuple(emissions.shape) != expected:
            raise ValueError(f"the module must give emissions of shape {expected}, got {tuple(emissions.shape)}")
        return emissions

    def _batches(self, X: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Emissions and lengths of batches, in order."""
        self._check_fitted()
        torch = _torch()
        was = self.module_.training
        self.module_.eval()
        try:
            for begin in range(0, len(X), self.batch_size):
                inputs, lengths = self._tensors(X[begin : begin + self.batch_size])
                with torch.no_grad():
                    yield self._emissions(inputs), lengths
        finally:
            self.module_.train(was)

    def _check_fitted(self) -> None:
        if not hasattr(self, "module_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this NeuralTagger is not fitted yet: call fit first")


@functools.lru_cache(maxsize=1 << 16)
def _seen(word: str) -> tuple[str, str, str, str]:
    """What the default network sees of a word: small letters, two suffixes, and the kinds of its characters."""
    kinds = ("9" if c.isdigit() else "A" if c.isupper() else "a" if c.islower() else c for c in word)
    shape = "".join(kind for kind, _ in itertools.groupby(kinds))
    small = word.lower()
    return small, small[-3:], small[-2:], shape


def _cut(order: np.ndarray, size: int) -> list[np.ndarray]:
    return [order[k : k + size] for k in range(0, len(order), size)]


def _plain(label: Any) -> Any:
    """A label as Python has it."""
    return label.item() if isinstance(label, np.generic) else label


def _torch() -> Any:
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "NeuralTagger needs PyTorch, which is not installed: pip install mercer[torch]", name="torch"
        ) from error
    return torch
