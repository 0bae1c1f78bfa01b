"""Partitions on the workers of a Dask cluster. This is the only module that imports Dask.

A partition is a task that loads and encodes its examples. The client holds the future, so that Dask rebuilds the
partition if a worker is lost. The client owns the weights. An evaluation is one task per worker. The task reads the
weights, evaluates the risks of its partitions, and adds neighbours in the tree of
:class:`~mercer.learning.partitioned.TreeSum`. On one machine, weights and sums go through files in shared memory, and
the task holds the number of the evaluation. Otherwise weights are scattered and sums gathered; sparse sums are sent as
their nonzero entries. A lost task runs again on another worker and gives the same bits.

Settings, by ``dask.config.set``: ``mercer.traffic`` is the format of transferred gradients: ``"float64"``,
``"float32"`` or ``"bfloat16"``. Only float64 guarantees equal bits for any number of workers. ``mercer.shared-memory``
may be False.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from mercer._validation import is_dask
from mercer.data.partitions import Partition
from mercer.data.store import StoreOnWorkers
from mercer.exceptions import ClusterError
from mercer.learning.partitioned import (
    SUMS,
    Place,
    TreeSum,
    add_arrays,
    answers,
    ask,
    check_alone,
    different,
    environment,
    gram_block,
    grown,
    joined,
    local_risk,
    n_examples,
    part_score,
    surveyed,
)

try:
    import dask
    import distributed
    from dask import delayed
    from distributed import Client
except ImportError as _error:  # pragma: no cover - an environment without Dask
    raise ImportError("Dask is needed for this: pip install mercer[dask]") from _error

__all__ = ["ClusterError", "OnWorkers", "computed", "connect", "gram_matrix", "lazily", "scores"]

_RETRIES = 8  # evaluations that failed for want of workers, one after the other, before giving up
_LOOK = 1.0  # seconds between two looks at who works
_LOCK = threading.Lock()  # one evaluation at a time in a worker: structures use their buffers again


def connect(address: str, timeout: float = 5.0) -> Client:
    """Connect to a scheduler; raise an error within seconds if there is none."""
    try:
        return Client(address, timeout=timeout)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(f"no Dask scheduler answers at {address!r}: {str(error).splitlines()[0]}") from None


def current_client() -> Client:
    """Return the current client, after a check that all workers have the same versions."""
    try:
        return distributed.get_client()
    except ValueError:
        raise ClusterError(
            "no Dask client: connect to a cluster first, with dask.distributed.Client(address) or "
            "Client(LocalCluster())"
        ) from None


# ------------------------------------------------------------------------------------------------ parts


def delayed_parts(X: Any, y: Any, sample_weight: Any) -> list[Any]:
    """Return Dask collections as one delayed :class:`Partition` for each of their partitions."""
    if isinstance(X, StoreOnWorkers):
        check_alone(X, y, sample_weight)
        read = delayed(_read_stored, pure=True)
        return [read(X, i, X.checksums[i]) for i in range(len(X))]
    columns = {"X": X, "y": y, "sample_weight": sample_weight}
    cut = {name: _pieces(name, value) for name, value in columns.items() if value is not None}
    counts = {name: len(pieces) for name, pieces in cut.items()}
    if len(set(counts.values())) > 1:
        raise ValueError("different numbers of partitions: " + ", ".join(f"{k} has {n}" for k, n in counts.items()))
    if not counts["X"]:
        raise ValueError("nothing to learn from: no partitions")
    make = delayed(_as_partition, pure=True)
    return [make(**dict(zip(cut, row, strict=True))) for row in zip(*cut.values(), strict=True)]


def _read_stored(store: StoreOnWorkers, i: int, checksum: str) -> Partition:
    return store.read(i)


def _pieces(name: str, value: Any) -> list[Any]:
    if isinstance(value, list):
        plain = next((one for one in value if not dask.is_dask_collection(one)), None)
        if plain is not None:
            raise TypeError(f"{name} must be a Dask collection as X is, found a list of {type(plain).__name__}")
        return list(value)
    if not is_dask(value):
        raise TypeError(f"{name} must be a Dask collection as X is, found {type(value).__name__}")
    if hasattr(value, "chunks") and hasattr(value, "ndim"):
        whole = value.rechunk({1: -1}) if value.ndim == 2 else value
        return list(whole.to_delayed().ravel())
    if hasattr(value, "to_delayed"):
        return list(value.to_delayed())
    raise TypeError(f"{name} must be a Dask bag, dataframe, series, array or a list of delayed parts")


def _as_partition(X: Any, y: Any = None, sample_weight: Any = None) -> Partition:
    if y is None and isinstance(X, tuple):  # delayed parts that hold all of it
        return Partition(*X)
    X = list(X) if isinstance(X, Iterator) or type(X) is list else X
    if type(y).__module__.startswith("pandas"):
        y = y.to_numpy()
    elif isinstance(y, Iterator):
        y = list(y)
    return Partition(X, y, sample_weight if sample_weight is None else np.asarray(sample_weight))


# ------------------------------------------------------------------------------------------------ shared memory


def _folder() -> str:
    return "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()


_MAPS: dict[str, tuple[int, np.ndarray]] = {}  # files that this process has mapped, with their inodes


def _mapped(path: str, size: int, create: bool = False) -> np.ndarray:
    """A file of ``size`` bytes in shared memory."""
    if create and (not os.path.exists(path) or os.path.getsize(path) != size):
        with open(f"{path}.new", "wb") as file:
            file.truncate(size)
        os.replace(f"{path}.new", path)
    inode = os.stat(path).st_ino
    held = _MAPS.get(path)
    if held is None or held[0] != inode or held[1].size != size:
        for gone in [other for other in list(_MAPS) if not os.path.exists(other)]:
            _MAPS.pop(gone, None)  # of a training that is over: its memory is free when nobody maps it
        _MAPS[path] = held = (inode, np.memmap(path, np.uint8, "r+", shape=(size,)))
    return held[1]


class _Shared:
    """A vector in shared memory, as a task names it."""

    def __init__(self, path: str, n: int, version: int) -> None:
        self.path, self.n, self.version = path, n, version

    def read(self) -> np.ndarray:
        """The vector, if it is of this version."""
        data = _mapped(self.path, 8 + 8 * self.n)
        if int(data[:8].view(np.int64)[0]) != self.version:
            raise RuntimeError(f"the weights in {self.path} are not those of evaluation {self.version}")
        return data[8:].view(np.float64)


_TRAFFIC = {"float64": np.float64, "float32": np.float32, "bfloat16": np.uint16}


def packed(vector: np.ndarray, traffic: str) -> np.ndarray:
    """Return a vector in transfer format. float32 keeps 24 bits (relative error 6e-8), bfloat16 8 (4e-3)."""
    if traffic == "float64":
        return vector
    single = vector.astype(np.float32)
    if traffic == "float32":
        return single
    bits = single.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def unpacked(vector: np.ndarray, traffic: str) -> np.ndarray:
    """Return the inverse of :func:`packed`, as a new float64 array."""
    if traffic == "bfloat16":
        return (vector.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return np.array(vector, dtype=np.float64)  # astype would keep numpy.memmap


class Thin:
    """A sparse vector in transfer format: −0 is an entry, because sums must keep their bits."""

    def __init__(self, n: int, places: np.ndarray, values: np.ndarray) -> None:
        self.n, self.places, self.values = n, places, values
        self.nbytes = places.nbytes + values.nbytes

    def dense(self) -> np.ndarray:
        """The vector."""
        out = np.zeros(self.n, self.values.dtype)
        out[self.places] = self.values
        return out


def thinned(vector: np.ndarray) -> np.ndarray | Thin:
    """Return the vector, or its entries and indices if these are smaller by a quarter."""
    places = np.flatnonzero(vector.view(f"u{vector.itemsize}"))
    kind: Any = np.int32 if len(vector) < 2**31 else np.int64
    if len(places) * (np.dtype(kind).itemsize + vector.itemsize) > 0.75 * vector.nbytes:
        return vector
    return Thin(len(vector), places.astype(kind), vector[places])


# ------------------------------------------------------------------------------------------------ tasks


def _survey(model: Any, part: Partition, number: int) -> Any:
    return surveyed(model, part, number)


def _grow(model: Any, part: Partition, number: int, loss: Any, begun: bool) -> Any:
    from types import SimpleNamespace

    return grown(model, part, number, loss, SimpleNamespace(**vars(model)) if begun else None)


def _local(shell: Any, part: Partition, number: int, loss: Any) -> Any:
    with contextlib.suppress(ValueError):  # not on a worker
        shell.n_jobs = distributed.get_worker().state.nthreads
        if hasattr(shell, "structure_"):
            shell.structure_.threads = shell.n_jobs
    return local_risk(shell, part, number, loss)


def _evaluate(
    risks: list[Any],
    numbers: list[int],
    verb: str,
    weights: Any,
    arguments: tuple[Any, ...],
    n_parts: int,
    traffic: str,
    answer: str | None,
) -> Any:
    """What parts answer: sums of neighbours as nodes of the tree, or a list."""
    w = weights.read() if isinstance(weights, _Shared) else weights
    given = arguments if w is None else (w, *arguments)
    with _LOCK:
        if verb not in SUMS:
            return [ask(risk, number, verb, given) for risk, number in zip(risks, numbers, strict=True)]
        tree = TreeSum(n_parts, add_arrays)
        for risk, number in zip(risks, numbers, strict=True):
            tree.put(0, number, ask(risk, number, verb, given))
        nodes = [
            (level, number, tuple(packed(x, traffic) if isinstance(x, np.ndarray) else x for x in value))
            for level, number, value in tree.pending()
        ]
        if answer is None:
            return [
                (level, number, tuple(thinned(x) if isinstance(x, np.ndarray) else x for x in value))
                for level, number, value in nodes
            ]
        # A worker that takes over from a lost one answers for several groups of parts: a file for each.
        path = f"{answer}-{os.getpid()}-{numbers[0]}"
        return _to_memory(nodes, path, weights.version if isinstance(weights, _Shared) else 0)


def _to_memory(nodes: list[Any], path: str, version: int) -> Any:
    """Arrays of nodes in a file of this process; what is left of the nodes names their places."""
    arrays = [x for _, _, value in nodes for x in value if isinstance(x, np.ndarray)]
    data = _mapped(path, 8 + sum(-(-x.nbytes // 8) * 8 for x in arrays), create=True)
    data[:8].view(np.int64)[0] = version
    at, out = 8, []
    for level, number, value in nodes:
        left: list[Any] = []
        for x in value:
            if isinstance(x, np.ndarray):
                data[at : at + x.nbytes].view(x.dtype)[:] = x
                left.append(_Place(at, len(x), x.dtype.str))
                at += -(-x.nbytes // 8) * 8
            else:
                left.append(x)
        out.append((level, number, tuple(left)))
    return path, data.size, version, out


class _Place:
    """Where an array lies in a file."""

    def __init__(self, at: int, n: int, dtype: str) -> None:
        self.at, self.n, self.dtype = at, n, dtype


def _from_memory(answer: Any) -> list[Any]:
    path, size, version, nodes = answer
    data = _mapped(path, size)
    if int(data[:8].view(np.int64)[0]) != version:
        raise _Lost(f"the sums in {path} are not those of evaluation {version}")

    def taken(x: Any) -> Any:
        if not isinstance(x, _Place):
            return x
        dtype = np.dtype(x.dtype)
        return data[x.at : x.at + x.n * dtype.itemsize].view(dtype)

    return [(level, number, tuple(taken(x) for x in value)) for level, number, value in nodes]


class _Lost(Exception):
    """An evaluation whose parts must be asked again."""


# ------------------------------------------------------------------------------------------------ the place


class OnWorkers(Place):
    """Partitions on the workers of the current client.

    Parameters
    ----------
    X, y, sample_weight
        Dask bags, dataframes, series, arrays, lists of delayed parts, or the path of a store.
    """

    _checked = 0.0

    def __init__(self, X: Any, y: Any, sample_weight: Any) -> None:
        self.client = current_client()
        self._parts = delayed_parts(X, y, sample_weight)
        self.n_parts = len(self._parts)
        self._token, self._version = secrets.token_hex(4), 0
        self._futures: list[Any] = []
        self._groups: list[tuple[str | None, list[int]]] = []
        self._known: frozenset[str] = frozenset()
        self._traffic = str(dask.config.get("mercer.traffic", "float64"))
        if self._traffic not in _TRAFFIC:
            raise ValueError(f"mercer.traffic must be one of {', '.join(map(repr, _TRAFFIC))}, got {self._traffic!r}")
        self._path: str | None = os.path.join(_folder(), f"mercer-{os.getuid()}-{self._token}")
        self._wants_memory = bool(dask.config.get("mercer.shared-memory", True))
        self._check_workers()

    def describe(self) -> str:
        """See :class:`Place`."""
        how = "shared memory" if self._shares else "network"
        return f"{self.n_parts} partitions on {len(self._known)} workers ({how})"

    # ------------------------------------------------------------------ workers

    def _workers(self) -> frozenset[str]:
        return frozenset(self.client.scheduler_info(n_workers=-1)["workers"])

    def _check_workers(self) -> None:
        """Refuse workers with other versions; see whether all of them share memory with this process."""
        self._known, self._checked = self._workers(), time.monotonic()
        if not self._known:
            with contextlib.suppress(TimeoutError):
                self.client.wait_for_workers(1, timeout=10)
            self._known = self._workers()
        if not self._known:
            raise ClusterError("the cluster has no workers")
        mine = environment()
        token = f"{self._path}.token"
        with open(token, "w") as file:
            file.write(self._token)
        try:
            answers = self.client.run(_look, token, on_error="return")
        finally:
            os.unlink(token)
        shares = True
        for address, answer in answers.items():
            if isinstance(answer, Exception):
                if address in self._workers():
                    raise ClusterError(f"worker {address} cannot import mercer: {answer!r}")
                continue
            theirs, seen = answer
            if differences := different(mine, theirs):
                hint = ""
                if any(text.startswith("instruction set") for text in differences):
                    hint = "; set MERCER_SIMD to one that all machines have"
                raise ClusterError(f"worker {address} differs: {', '.join(differences)}{hint}")
            shares = shares and seen == self._token
        self._shares = shares and self._wants_memory

    # ------------------------------------------------------------------ layouts

    def survey(self, model: Any) -> Any:
        """See :class:`Place`."""
        tree = TreeSum(self.n_parts, lambda a, b: delayed(joined)(model, a, b))
        for i, part in enumerate(self._parts):
            tree.put(0, i, delayed(_survey)(model, part, i, dask_key_name=f"mercer-survey-{i}-{self._token}"))
        return self._computed(tree.result())

    def grow(self, model: Any, loss: Any) -> Any:
        """See :class:`Place`."""
        grown_model: Any = model
        for i, part in enumerate(self._parts):
            name = f"mercer-grow-{i}-{self._token}"
            grown_model = delayed(_grow)(grown_model, part, i, loss, i > 0, dask_key_name=name)
        return self._computed(grown_model)

    def part(self, i: int) -> Partition:
        """See :class:`Place`."""
        return self._computed(self._parts[i])

    def each(self, function: Any, *arguments: Any) -> list[Any]:
        """See :class:`Place`."""
        once = [delayed(argument) for argument in arguments]
        made = [
            delayed(function)(part, i, *once, dask_key_name=f"mercer-part-{i}-{secrets.token_hex(4)}")
            for i, part in enumerate(self._parts)
        ]
        return list(self._computed(delayed(list)(made)))

    def _computed(self, value: Any) -> Any:
        future = self.client.compute(value)
        try:
            return future.result()
        except distributed.KilledWorker as error:
            raise self._killed(error) from None
        finally:
            future.release()

    def settle(self, shell: Any, loss: Any) -> None:
        """See :class:`Place`."""
        self._shell, self._loss = shell, loss
        self._place_parts()
        self._group()

    def _place_parts(self) -> None:
        """Let workers make the risks of the parts, again where they are lost.

        Each worker gets neighbours, as many as its threads ask for: left alone, the scheduler may give three of four
        parts to one of two workers, and the other one waits for it in every pass. Sums of neighbours are added where
        they are.
        """
        scattered = self.client.scatter(self._shell, broadcast=True, hash=False)
        self._scattered, self._futures, homes = scattered, [], self._homes()
        for home, numbers in itertools.groupby(range(self.n_parts), lambda i: homes[i] if homes else None):
            made = [
                delayed(_local)(
                    delayed(scattered), self._parts[i], i, self._loss,
                    dask_key_name=f"mercer-part-{i}-{self._token}-{secrets.token_hex(3)}",
                )
                for i in numbers
            ]  # fmt: skip
            where = {} if home is None else {"workers": [home], "allow_other_workers": True}
            self._futures += self.client.compute(made, **where)

    def _homes(self) -> list[str]:
        """The worker that should hold each part; nothing where there are none at the moment."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        seats = [address for address in sorted(workers) for _ in range(workers[address]["nthreads"])]
        return [seats[i * len(seats) // self.n_parts] for i in range(self.n_parts)] if seats else []

    def _group(self) -> None:
        """Note which worker holds which parts."""
        distributed.wait(self._futures)
        for i, future in enumerate(self._futures):
            if future.status == "error":
                error = future.exception()
                if isinstance(error, distributed.KilledWorker):
                    raise self._killed(error) from None
                raise error
            if future.status != "finished":
                raise _Lost(f"partition {i} is lost")
        held = self.client.who_has(self._futures)
        by_worker: dict[str | None, list[int]] = {}
        load: dict[str, int] = {}
        for i, future in enumerate(self._futures):
            holders = sorted(held.get(future.key, ()), key=lambda a: (load.get(a, 0), a))
            worker = holders[0] if holders else None
            if worker is not None:
                load[worker] = load.get(worker, 0) + 1
            by_worker.setdefault(worker, []).append(i)
        self._groups = list(by_worker.items())

    def _killed(self, error: Any) -> MemoryError:
        """An error that names the partition whose task ended its workers."""
        words = str(getattr(error, "task", error)).split("-")
        named = next((w for k, w in enumerate(words[1:], 1) if words[k - 1] in ("part", "survey", "grow")), None)
        if named is None or not named.isdecimal():
            numbers: list[int] = next((n for key, n in getattr(self, "_asked", {}).items() if key in str(error)), [])
            task = str(getattr(error, "task", None))  # of the caller, who makes the examples?
            numbers = numbers or [i for i, part in enumerate(self._parts) if task in map(str, part.__dask_graph__())]
            named = ", ".join(map(str, numbers)) or "unknown"
        return MemoryError(
            f"partition {named} ended the worker processes that tried it, most likely because memory ran out: cut "
            "the data into more partitions, give workers more memory, or write the data to a store "
            "(mercer.data.Store) and fit that, which reads piece by piece"
        )

    # ------------------------------------------------------------------ evaluations

    def sums(self, verb: str, w: np.ndarray | None, *arguments: Any) -> Any:
        """See :class:`Place`."""
        tree = TreeSum(self.n_parts, add_arrays)
        for nodes in self._asked_safely(verb, w, arguments, None):
            for level, number, value in nodes:
                tree.put(level, number, value)
        return tree.result()

    def lists(self, verb: str, w: np.ndarray | None, *arguments: Any, only: int | None = None) -> list[Any]:
        """See :class:`Place`."""
        answers = self._asked_safely(verb, w, arguments, only)
        groups = self._groups if only is None else [(None, [only])]
        by_number = {
            i: x for (_, numbers), got in zip(groups, answers, strict=True) for i, x in zip(numbers, got, strict=True)
        }
        return [by_number[i] for i in sorted(by_number)]

    def _asked_safely(self, verb: str, w: np.ndarray | None, arguments: tuple[Any, ...], only: int | None) -> list[Any]:
        """All answers to one question; where some are lost, the question is put again with the same weights."""
        for attempt in range(_RETRIES + 1):
            try:
                if time.monotonic() - self._checked > _LOOK and self._workers() != self._known:
                    self._check_workers()
                    self._group()
                return self._ask_all(verb, w, arguments, only)
            except distributed.KilledWorker as error:
                raise self._killed(error) from None
            except (_Lost, distributed.CancelledError, distributed.client.FutureCancelledError) as error:
                if attempt == _RETRIES:
                    raise ClusterError(
                        f"the cluster lost its partitions {attempt + 1} times in a row: {error}"
                    ) from None
                self._restore()
        raise AssertionError

    def _restore(self) -> None:
        """Make what is lost again: the client has the model, and parts have recipes."""
        self.client.cancel(self._futures)
        self._place_parts()
        with contextlib.suppress(_Lost):
            self._group()

    def _ask_all(self, verb: str, w: np.ndarray | None, arguments: tuple[Any, ...], only: int | None) -> list[Any]:
        self._version += 1
        weights, answer = self._send(w), None
        if self._shares and verb in SUMS and self._path is not None:
            answer = f"{self._path}-sums"
        groups = self._groups if only is None else [(None, [only])]
        futures, self._asked = [], {}
        for place, numbers in groups:
            key = f"mercer-ask-{verb}-{self._version}-{numbers[0]}-{self._token}"
            self._asked[key] = numbers
            where = {} if place is None else {"workers": [place], "allow_other_workers": True}
            futures.append(
                self.client.submit(
                    _evaluate, [self._futures[i] for i in numbers], numbers, verb, weights, arguments, self.n_parts,
                    self._traffic, answer, key=key, pure=False, **where,
                )
            )  # fmt: skip
        try:
            answers = self.client.gather(futures, direct=answer is None)
        finally:
            for future in futures:
                future.release()
        return answers if verb not in SUMS else [self._received(one, answer is not None) for one in answers]

    def _send(self, w: np.ndarray | None) -> Any:
        """Weights to where workers read them."""
        if w is None:
            return None
        self.bytes_moved += w.nbytes
        if not self._shares or self._path is None:
            self._sent = self.client.scatter(np.array(w), broadcast=True, hash=False, direct=True)
            return self._sent
        data = _mapped(f"{self._path}-weights", 8 + w.nbytes, create=True)
        data[8:].view(np.float64)[:] = w
        data[:8].view(np.int64)[0] = self._version
        return _Shared(f"{self._path}-weights", len(w), self._version)

    def _received(self, nodes: Any, in_memory: bool) -> list[Any]:
        """Nodes of the tree with arrays of their own."""
        out = []
        for level, number, value in _from_memory(nodes) if in_memory else nodes:
            self.bytes_moved += sum(x.nbytes for x in value if isinstance(x, (np.ndarray, Thin)))
            full = [x.dense() if isinstance(x, Thin) else x for x in value]
            arrays = tuple(unpacked(x, self._traffic) if isinstance(x, np.ndarray) else x for x in full)
            out.append((level, number, arrays))
        return out

    def close(self) -> None:
        """Release the partitions on the workers and the files in shared memory."""
        with contextlib.suppress(Exception):
            self.client.cancel(self._futures)
        self._futures, self._scattered = [], None
        if self._path is not None:
            folder, name = os.path.split(self._path)
            for file in os.listdir(folder):
                if file.startswith(name):
                    _MAPS.pop(os.path.join(folder, file), None)
                    with contextlib.suppress(OSError):
                        os.unlink(os.path.join(folder, file))


def _look(token: str) -> tuple[dict[str, str], str | None]:
    """On a worker: its versions, and what it reads in a file of the client."""
    try:
        with open(token) as file:
            return environment(), file.read()
    except OSError:
        return environment(), None


# ------------------------------------------------------------------------------------------------ fitted models


def _answers(
    part: Any, model: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any], takes_y: bool = False
) -> Any:
    part = part if isinstance(part, Partition) else _as_partition(part)
    return answers(model, method, part, args, kwargs, takes_y)


def _as_series(part: Any, model: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    import pandas as pd

    answered = getattr(model, method)(part, *args, **kwargs)
    if getattr(answered, "ndim", 1) == 2:
        return pd.DataFrame(answered, index=part.index)
    return pd.Series(answered, index=part.index)


def lazily(
    model: Any, method: str, X: Any, args: tuple[Any, ...], kwargs: dict[str, Any], takes_y: bool = False
) -> Any:
    """Return the lazy result of a method on a Dask collection, as a collection of the same kind."""
    more = {"model": model, "method": method, "args": args, "kwargs": kwargs}
    if isinstance(X, (StoreOnWorkers, list)):
        once = delayed(model)
        ask_one = delayed(_answers)
        parts = delayed_parts(X, None, None) if isinstance(X, StoreOnWorkers) else X
        return [ask_one(part, once, method, args, kwargs, takes_y) for part in parts]
    if takes_y:
        raise TypeError(f"{method} takes a Store, Partitions or delayed parts (X, y), found {type(X).__name__}")
    if hasattr(X, "chunks"):
        X = X.rechunk({1: -1}) if X.ndim == 2 else X
        sample = getattr(model, method)(np.zeros((1, X.shape[1]), X.dtype), *args, **kwargs)
        if sample.ndim == 1:
            return X.map_blocks(_answers, drop_axis=list(range(1, X.ndim)), dtype=sample.dtype, meta=sample[:0], **more)
        chunks = (X.chunks[0], (sample.shape[1],))
        return X.map_blocks(_answers, chunks=chunks, dtype=sample.dtype, meta=sample[:0], **more)
    if hasattr(X, "divisions"):
        sample = _as_series(X._meta_nonempty, **more)
        return X.map_partitions(_as_series, meta=sample.iloc[:0], **more)
    return X.map_partitions(_answers, **more)


def gram_matrix(kernel: Any, X: Any, Z: Any, dtype: Any) -> Any:
    """Return a Dask array with a block for each pair of partitions; only the partition sizes are computed."""
    import dask.array as da

    for name, given in (("X", X), ("Z", Z)):
        if given is not None and not (is_dask(given) or isinstance(given, StoreOnWorkers)):
            raise TypeError(f"{name} must be a Dask collection as the other objects are, got {type(given).__name__}")
    once, columns = delayed(kernel), None
    rows = delayed_parts(X, None, None)
    sizes = [delayed(_size)(part) for part in rows]
    if Z is not None:
        columns = delayed_parts(Z, None, None)
        sizes += [delayed(_size)(part) for part in columns]
    counts = dask.compute(*sizes)
    heights, widths = counts[: len(rows)], counts[: len(rows)] if columns is None else counts[len(rows) :]
    make = delayed(_gram_block, pure=True)

    def block(i: int, j: int) -> Any:
        if columns is None and j < i:
            return block(j, i).T
        made = make(once, rows[i], None if columns is None and i == j else (columns or rows)[j], np.dtype(dtype).str)
        return da.from_delayed(made, (heights[i], widths[j]), dtype)

    return da.block([[block(i, j) for j in range(len(widths))] for i in range(len(heights))])


def _size(part: Partition) -> int:
    return n_examples(part.X)


def _gram_block(kernel: Any, a: Partition, b: Partition | None, dtype: str) -> np.ndarray:
    return gram_block(kernel, a, a if b is None else b, np.dtype(dtype))


def computed(function: Callable[..., Any], items: Iterable[Any], *arguments: Any) -> list[Any]:
    """See :func:`mercer.learning.partitioned.computed_on_workers`."""
    once = [delayed(argument) for argument in arguments]
    return list(dask.compute(*[delayed(function)(item, *once) for item in items]))


def scores(model: Any, X: Any, y: Any) -> list[tuple[float, float]]:
    """Return the number of correct predictions and of all predictions for each partition."""
    once = delayed(model)
    part_scores = dask.compute(*[delayed(part_score)(once, part) for part in delayed_parts(X, y, None)])
    return list(part_scores)
