"""Exact search in a sharded index; each shard is a `HammingIndex`.

    nearest(q) = the first k of ∪_s nearest_s(q), by distance, then by shard, then by place in the shard

Every shard is searched separately, here or on the workers of a cluster, and the results are merged. The result equals
that of one index of all codes in order.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mercer._threads import each
from mercer._validation import check_count, is_dask, thread_count
from mercer.retrieval._codes import as_numpy, checked_codes
from mercer.retrieval.index import HammingIndex

__all__ = ["ShardedIndex"]


class ShardedIndex:
    """Exact nearest neighbours by Hamming distance among the codes of several indices.

    Parameters
    ----------
    shards : list of HammingIndex, or of paths of their files, or of Dask's delayed indices or futures
        A file is memory-mapped by the process that searches it: this one, or workers that see the same path.
    on_workers : bool, default=False
        Search on the workers of Dask's current client. Delayed indices and futures are always searched there.
    n_jobs : int, optional
        Number of shards searched in parallel in this process; −1 for all cores.

    Attributes
    ----------
    n_bits : int
        Bits of a code, the same in all shards.
    sizes : ndarray of int64
        Codes in each shard.

    Notes
    -----
    If no shard has its own ids, ids are numbered across shards, as in one index. Otherwise all shards must have
    distinct ids.

    Examples
    --------
    >>> from mercer.retrieval import HammingIndex, ShardedIndex, pack_codes
    >>> codes = pack_codes([[1, 1, 1, 1], [1, 1, -1, -1], [-1, -1, -1, -1]])
    >>> index = ShardedIndex([HammingIndex(codes[:2], n_bits=4), HammingIndex(codes[2:], n_bits=4)])
    >>> distances, ids = index.search(pack_codes([[-1, -1, -1, 1]]), k=2)
    >>> distances.tolist(), ids.tolist()
    ([[1, 3]], [[2, 0]])
    """

    def __init__(self, shards: Sequence[Any], *, on_workers: bool = False, n_jobs: int | None = None) -> None:
        if isinstance(shards, (str, bytes, os.PathLike, HammingIndex)) or not len(shards):
            raise ValueError("shards must be a list of at least one HammingIndex or path of one")
        self.shards = list(shards)
        self.on_workers = bool(on_workers) or is_dask(self.shards)
        self.n_jobs = n_jobs
        thread_count(n_jobs)
        facts = self._ask(_facts)
        self.n_bits = facts[0][0]
        for i, (bits, _, _) in enumerate(facts):
            if bits != self.n_bits:
                raise ValueError(f"shard {i} has codes of {bits} bits, shard 0 of {self.n_bits}")
        self.sizes = np.array([size for _, size, _ in facts], np.int64)
        named = [ids is not None for _, size, ids in facts if size]
        if any(named) and not all(named):
            raise ValueError("some shards have explicit ids and others do not: pass ids to all of them")
        self._named = any(named)
        if self._named:
            ids = np.concatenate([np.zeros(0, np.int64) if ids is None else ids for _, _, ids in facts])
            values, counts = np.unique(ids, return_counts=True)
            if len(values) < len(ids):
                raise ValueError(f"id {values[counts > 1][0]} is in the shards twice: ids must be different")
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])

    def __len__(self) -> int:
        return int(self.sizes.sum())

    def __repr__(self) -> str:
        return f"ShardedIndex({len(self)} codes of {self.n_bits} bits in {len(self.shards)} shards)"

    def search(self, queries: Any, k: int = 10) -> tuple[Any, Any]:
        """Return the k nearest codes of each query.

        Parameters
        ----------
        queries : array of uint8 of shape (n_queries, ⌈n_bits / 8⌉)
            Packed codes.
        k : int, default=10
            Neighbours.

        Returns
        -------
        distances : array of int32 of shape (n_queries, k)
            Ascending; ties in the order of the shards, and of the codes in a shard.
        ids : array of int64 of shape (n_queries, k)
            With fewer than k codes, the rest has id −1 and distance ``n_bits + 1``.
        """
        k = check_count("k", k)
        packed, back = checked_codes("queries", queries, self.n_bits), as_numpy(queries)[1]
        answers = self._answers(_nearest, packed, k)
        distances = np.concatenate([part for part, _, _ in answers], axis=1)
        ids = np.concatenate([self._names(s, part) for s, (_, part, _) in enumerate(answers)], axis=1)
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return back(np.take_along_axis(distances, order, 1)), back(np.take_along_axis(ids, order, 1))

    def search_radius(self, queries: Any, radius: int) -> tuple[list[Any], list[Any]]:
        """Return all codes within a distance of each query.

        Parameters
        ----------
        queries : array of uint8 of shape (n_queries, ⌈n_bits / 8⌉)
            Packed codes.
        radius : int
            Largest distance.

        Returns
        -------
        distances : list of array of int32
            One array per query, ascending; ties in the order of the shards.
        ids : list of array of int64
        """
        radius = check_count("radius", radius, 0)
        packed, back = checked_codes("queries", queries, self.n_bits), as_numpy(queries)[1]
        answers = self._answers(_within, packed, radius)
        distances, ids = [], []
        for q in range(len(packed)):
            near = np.concatenate([part[q] for part, _, _ in answers])
            order = np.argsort(near, kind="stable")
            names = np.concatenate([self._names(s, part[q]) for s, (_, part, _) in enumerate(answers)])
            distances.append(back(near[order]))
            ids.append(back(names[order]))
        return distances, ids

    def _names(self, shard: int, ids: np.ndarray) -> np.ndarray:
        """Ids in a shard as ids in the whole."""
        return ids if self._named else np.where(ids < 0, ids, ids + self._starts[shard])

    def _answers(self, function: Any, *arguments: Any) -> list[Any]:
        """What every shard finds; raises where one has grown or shrunk, since ids are counted from those before it."""
        answers = self._ask(function, *arguments)
        for shard, (size, (*_, now)) in enumerate(zip(self.sizes, answers, strict=True)):
            if now != size:
                told = f"shard {shard} has {now} codes, and had {size} when this index was made: make another"
                raise ValueError(told)
        return answers

    def _ask(self, function: Any, *arguments: Any) -> list[Any]:
        """What every shard answers, in their order."""
        if not self.on_workers:
            return each(lambda shard: function(shard, *arguments), self.shards, self.n_jobs)
        from mercer.learning.partitioned import computed_on_workers

        return computed_on_workers(function, self.shards, *arguments)


def _opened(shard: Any) -> HammingIndex:
    if isinstance(shard, (str, Path, os.PathLike)):
        return HammingIndex.load(shard)
    if not isinstance(shard, HammingIndex):
        raise TypeError(f"a shard must be a HammingIndex or the path of its file, got {type(shard).__name__}")
    return shard


def _facts(shard: Any) -> tuple[int, int, np.ndarray | None]:
    index = _opened(shard)
    return index.n_bits, len(index), None if index._ids is None else index.ids


def _nearest(shard: Any, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, int]:
    index = _opened(shard)
    return (*index.search(queries, k), len(index))


def _within(shard: Any, queries: np.ndarray, radius: int) -> tuple[list[np.ndarray], list[np.ndarray], int]:
    index = _opened(shard)
    return (*index.search_radius(queries, radius), len(index))
