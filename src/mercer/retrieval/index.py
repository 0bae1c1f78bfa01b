"""Exact search among packed codes by Hamming distance.

Codes are stored in blocks of eight, word by word (`cpp/maps/hamming.cpp`), in memory and in files, so a file can be
searched in place. Neighbours are ordered by distance, then by position in the index. Results do not depend on the
number of threads, the instruction set, the method, or the device. Queries on a GPU are answered there, from a copy of
the codes made for the first query (`_tensors`).

A file holds, little endian:

    0   "MERCERHX" | version u32 | size of the header u32 | bits u64 | codes u64 | words a code u64
    40  offset of the codes u64 | offset of the ids u64, 0 if they are 0, 1, … | size of the file u64
    64  blake2b-256 of all that follows the header | blake2b-256 of the 96 bytes so far
    128 blocks, ⌈codes / 8⌉ × words × 8 words u64 | ids i64
"""

from __future__ import annotations

import hashlib
import os
import struct
from numbers import Integral
from typing import Any

import numpy as np

from mercer._arrays import compiled, is_tensor
from mercer._state.container import write_atomically
from mercer._validation import check_choice, check_count, thread_count
from mercer.exceptions import IndexFileError
from mercer.retrieval._codes import as_numpy, checked_codes, hamming_distances, on_device, to_words

__all__ = ["HammingIndex", "IndexFileError"]

MAGIC, VERSION, HEADER = b"MERCERHX", 1, struct.Struct("<8sIIQQQQQQ32s")
HEADER_SIZE = 128
MOST_BITS = 1 << 24


class HammingIndex:
    """An index of binary codes: exact nearest neighbours by Hamming distance.

    Parameters
    ----------
    codes : array of uint8 of shape (n, ⌈n_bits / 8⌉), optional
        Initial packed codes (see `pack_codes`).
    n_bits : int, optional
        Bits per code; required without codes, otherwise by default eight times the bytes of a code.
    ids : array of int of shape (n,), optional
        Distinct ids ≥ 0 of the codes; by default 0, 1, ….
    method : {"scan", "multi-index"}, default="scan"
        Compare with every code, or look up substrings of the code in tables (multi-index hashing). The latter reads
        only a small part of the codes if there are many codes and neighbours are near, and scans otherwise. Both are
        exact.
    n_jobs : int, optional
        Threads; −1 for all cores.

    Attributes
    ----------
    n_bits : int
        Bits of a code.
    ids : ndarray of int64
        Return the ids of the codes, in insertion order.

    References
    ----------
    .. [Norouzi2014] M. Norouzi, A. Punjani and D. Fleet. Fast exact search in Hamming space with multi-index hashing.
       IEEE Transactions on Pattern Analysis and Machine Intelligence 36, 2014.

    Examples
    --------
    >>> from mercer.retrieval import HammingIndex, pack_codes
    >>> index = HammingIndex(pack_codes([[1, 1, 1, 1], [1, 1, -1, -1], [-1, -1, -1, -1]]), n_bits=4, ids=[10, 20, 30])
    >>> distances, ids = index.search(pack_codes([[1, 1, 1, -1]]), k=2)
    >>> distances.tolist(), ids.tolist()
    ([[1, 1]], [[10, 20]])
    """

    def __init__(
        self,
        codes: Any = None,
        n_bits: int | None = None,
        ids: Any = None,
        method: str = "scan",
        n_jobs: int | None = None,
    ) -> None:
        if codes is not None and not is_tensor(codes) and np.ndim(codes) == 0:
            hint = f": use HammingIndex(n_bits={codes})" if isinstance(codes, Integral) else ""
            raise ValueError(f"codes must be a matrix of packed codes (uint8), got {codes!r}{hint}")
        if n_bits is None:
            if codes is None:
                raise ValueError("n_bits is needed for an index without codes")
            shape = codes.shape if is_tensor(codes) else np.shape(codes)
            n_bits = 8 * shape[1] if len(shape) == 2 else 8
        self.n_bits = check_count("n_bits", n_bits)
        if self.n_bits > MOST_BITS:
            raise ValueError(f"n_bits must not exceed 2^24, got {n_bits}")
        self.method = check_choice("method", method, ("scan", "multi-index"))
        self.n_jobs = n_jobs
        thread_count(n_jobs)
        self._words = -(-self.n_bits // 64)
        self._n = 0
        self._blocks = np.zeros((0, self._words, 8), np.uint64)
        self._ids: np.ndarray | None = None  # None: 0, 1, …
        self._tables: Any = None
        self._copies: dict[str, Any] = {}  # the packed codes on devices
        if codes is not None:
            self.add(codes, ids)
        elif ids is not None:
            raise ValueError("ids need codes")

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        return f"HammingIndex({self._n} codes of {self.n_bits} bits, method={self.method!r})"

    @property
    def ids(self) -> np.ndarray:
        """Ids of the codes, in the order in which they were added."""
        return np.arange(self._n, dtype=np.int64) if self._ids is None else self._ids[: self._n].copy()

    @property
    def codes(self) -> np.ndarray:
        """Return the packed codes, in insertion order."""
        return self._rows(np.arange(self._n))

    def _rows(self, positions: np.ndarray) -> np.ndarray:
        words = np.ascontiguousarray(self._blocks[positions // 8, :, positions % 8])
        return np.ascontiguousarray(words.view(np.uint8)[:, : -(-self.n_bits // 8)])

    def add(self, codes: Any, ids: Any = None) -> HammingIndex:
        """Add codes.

        Parameters
        ----------
        codes : array of uint8 of shape (n, ⌈n_bits / 8⌉)
            Packed codes.
        ids : array of int of shape (n,), optional
            New ids ≥ 0; by default they continue after the highest id.

        Returns
        -------
        HammingIndex
            Itself.
        """
        packed = checked_codes("codes", codes, self.n_bits)
        count = len(packed)
        named = self._new_ids(ids, count)
        end = self._n + count
        if -(-end // 8) > len(self._blocks) or not self._blocks.flags.writeable:
            room = max(-(-end // 8), int(1.5 * len(self._blocks)) if self._n else 0)
            blocks = np.zeros((room, self._words, 8), np.uint64)
            used = -(-self._n // 8)
            blocks[:used] = self._blocks[:used]
            self._blocks = blocks
        words, start = to_words(packed), 0
        if self._n % 8:  # fill the last block
            start = min(count, 8 - self._n % 8)
            self._blocks[self._n // 8, :, self._n % 8 : self._n % 8 + start] = words[:start].T
        first, whole = -(-self._n // 8), (count - start) // 8
        if whole:
            eights = words[start : start + 8 * whole].reshape(whole, 8, -1)
            self._blocks[first : first + whole] = eights.transpose(0, 2, 1)
        rest = words[start + 8 * whole :]
        if len(rest):
            self._blocks[first + whole, :, : len(rest)] = rest.T
        if named is not None:
            self._ids = np.concatenate([self.ids, named])
        self._n, self._tables, self._copies = end, None, {}
        return self

    def _new_ids(self, ids: Any, count: int) -> np.ndarray | None:
        """Ids of codes to add; None if all ids are 0, 1, … still."""
        if ids is None:
            if self._ids is None:
                return None
            start = int(self._ids.max()) + 1 if len(self._ids) else 0
            if start + count > 1 << 63:
                raise ValueError("automatic ids are exhausted: pass ids for the new codes")
            return np.arange(start, start + count, dtype=np.int64)
        named = _checked_ids("ids", ids)
        if len(named) != count:
            raise ValueError(f"ids must contain one id for each of the {count} codes, got {len(named)}")
        together = np.concatenate([self.ids, named])
        values, counts = np.unique(together, return_counts=True)
        if (counts > 1).any():
            raise ValueError(f"ids must be new and different, but {values[counts > 1][0]} occurs twice")
        return named

    def _positions(self, ids: np.ndarray) -> np.ndarray:
        """Positions of ids; −1 where there is none."""
        if self._ids is None:
            return np.where(ids < self._n, ids, -1)
        order = np.argsort(self._ids, kind="stable")
        at = np.searchsorted(self._ids, ids, sorter=order)
        positions = order[np.minimum(at, self._n - 1)] if self._n else np.zeros(len(ids), np.int64)
        return np.where((at < self._n) & (self._ids[positions] == ids) if self._n else False, positions, -1)

    def get(self, ids: Any) -> np.ndarray:
        """Return the packed codes with these ids.

        Parameters
        ----------
        ids : array of int
            Ids in the index.

        Returns
        -------
        ndarray of uint8 of shape (len(ids), ⌈n_bits / 8⌉)
            Their codes.
        """
        wanted = _checked_ids("ids", ids)
        positions = self._positions(wanted)
        if (positions < 0).any():
            raise KeyError(f"there is no code with id {wanted[positions < 0][0]}")
        return self._rows(positions)

    def remove(self, ids: Any) -> int:
        """Remove codes by their ids; unknown ids are ignored.

        Parameters
        ----------
        ids : array of int
            Ids.

        Returns
        -------
        int
            Number of removed codes. The others keep their ids and their order.
        """
        positions = self._positions(_checked_ids("ids", ids))
        gone = np.zeros(self._n, bool)
        gone[positions[positions >= 0]] = True
        if not gone.any():
            return 0
        kept = np.flatnonzero(~gone)
        codes, names = self._rows(kept), self.ids[kept]
        self._n, self._blocks, self._ids = 0, np.zeros((0, self._words, 8), np.uint64), None
        self.add(codes)
        self._ids = names
        return int(gone.sum())

    def _allowed(self, filter: Any) -> np.ndarray | None:
        """A bit for each position, eight a byte, of a mask or of ids."""
        mask = self._mask(filter)
        return None if mask is None else np.packbits(mask, bitorder="little")

    def _mask(self, filter: Any) -> np.ndarray | None:
        """A truth value for each position, of a mask or of ids."""
        if filter is None:
            return None
        chosen = np.asarray(as_numpy(filter)[0])
        if chosen.dtype == bool:
            if chosen.shape != (self._n,):
                got = chosen.shape
                raise ValueError(f"a boolean filter must have a value for each of the {self._n} codes, got {got}")
            return chosen
        positions = self._positions(_checked_ids("filter", chosen))
        mask = np.zeros(self._n, bool)
        mask[positions[positions >= 0]] = True
        return mask

    def _search(self, queries: Any, k: int, radius: int, filter: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(offsets, distances, positions) of what is found, in calls of a second or so each."""
        packed = checked_codes("queries", queries, self.n_bits)
        core, threads = compiled(), thread_count(self.n_jobs)
        if core is None:
            return self._plain_scan(packed, k, radius, self._mask(filter))
        words, allowed = to_words(packed), self._allowed(filter)
        step = max(16, 4_000_000_000 // max(1, self._n * self._words))
        if self.method == "multi-index" and self._tables is None:
            self._tables = self._make_tables(threads)

        def found(block: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            if self.method == "multi-index":
                return self._tables.search(self._blocks, block, k, radius, allowed, threads)
            return core.hamming_search(self._blocks, self._n, block, k, radius, allowed, threads)

        if len(words) <= step:
            return found(words)
        parts = [found(np.ascontiguousarray(words[start : start + step])) for start in range(0, len(words), step)]
        sizes, distances, positions = zip(*((np.diff(part[0]), *part[1:]) for part in parts), strict=True)
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        return offsets, np.concatenate(distances), np.concatenate(positions)

    def _plain_scan(
        self, queries: np.ndarray, k: int, radius: int, mask: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same without the compiled core: slow, for few codes."""
        codes, sizes = self.codes, []
        distances, positions = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for query in queries:
            bits = hamming_distances(query[None, :], codes)[0] if self._n else np.zeros(0, np.int32)
            near = bits <= radius
            places = np.flatnonzero(near if mask is None else near & mask)
            order = places[np.argsort(bits[places], kind="stable")][: k or None]
            sizes.append(len(order))
            distances.append(bits[order])
            positions.append(order)
        return np.cumsum([0, *sizes], dtype=np.int64), np.concatenate(distances), np.concatenate(positions)

    def _on_device(self, queries: Any, filter: Any) -> tuple[Any, Any, Any]:
        """Codes beside the queries, the queries, and the places of the codes (None: all)."""
        import torch

        from mercer.retrieval import _tensors

        checked = _tensors.device_codes("queries", queries, self.n_bits)
        place = str(queries.device)
        if place not in self._copies:
            self._copies[place] = torch.from_numpy(self.codes).to(queries.device)
        codes, mask = self._copies[place], self._mask(filter)
        if mask is None:
            return codes, checked, None
        places = torch.from_numpy(np.flatnonzero(mask)).to(queries.device)
        return codes[places], checked, places

    def _make_tables(self, threads: int) -> Any:
        """Substrings of about log₂ n bits: a value then names about one code (spec: exact for any length)."""
        length = min(20, max(1, round(np.log2(max(2, self._n)))), self.n_bits)
        return compiled().multi_index(self._blocks, self._n, self.n_bits, -(-self.n_bits // length), threads)

    def search(self, queries: Any, k: int = 10, filter: Any = None) -> tuple[Any, Any]:
        """Return the k nearest codes of each query.

        Parameters
        ----------
        queries : array of uint8 of shape (n_queries, ⌈n_bits / 8⌉)
            Packed codes. Queries on a GPU are answered there, always by scanning.
        k : int, default=10
            Neighbours.
        filter : array, optional
            Codes to search: a boolean for each code, in index order, or ids.

        Returns
        -------
        distances : array of int32 of shape (n_queries, k)
            Ascending; ties in index order. Distances and ids have the array library of the queries.
        ids : array of int64 of shape (n_queries, k)
            Ids of the codes. With fewer than k codes, the rest has id −1 and distance ``n_bits + 1``.
        """
        k = check_count("k", k)
        if on_device(queries):
            return self._device_search(queries, k, filter)
        offsets, distances, positions = self._search(queries, min(k, max(1, self._n)), self.n_bits, filter)
        n_queries, back = len(offsets) - 1, as_numpy(queries)[1]
        if len(positions) == n_queries * k:
            return back(distances.reshape(n_queries, k)), back(self._names(positions).reshape(n_queries, k))
        nearest, ids = np.full((n_queries, k), self.n_bits + 1, np.int32), np.full((n_queries, k), -1, np.int64)
        row = np.repeat(np.arange(n_queries), np.diff(offsets))
        column = np.arange(len(positions)) - offsets[row]
        nearest[row, column] = distances
        ids[row, column] = self._names(positions)
        return back(nearest), back(ids)

    def _device_search(self, queries: Any, k: int, filter: Any) -> tuple[Any, Any]:
        from mercer.retrieval import _tensors

        codes, checked, places = self._on_device(queries, filter)
        shape, device, torch = (checked.shape[0], k), checked.device, _tensors.torch
        nearest = torch.full(shape, self.n_bits + 1, dtype=torch.int32, device=device)
        ids = torch.full(shape, -1, dtype=torch.int64, device=device)
        fewer = min(k, codes.shape[0])
        if fewer and checked.shape[0]:
            nearest[:, :fewer], at = _tensors.nearest(codes, checked, self.n_bits, fewer)
            ids[:, :fewer] = self._device_names(at, places)
        return nearest, ids

    def _device_names(self, at: Any, places: Any) -> Any:
        import torch

        at = at if places is None else places[at]
        return at if self._ids is None else torch.from_numpy(np.array(self.ids)).to(at.device)[at]

    def search_radius(self, queries: Any, radius: int, filter: Any = None) -> tuple[list[Any], list[Any]]:
        """Return all codes within a distance of each query.

        Parameters
        ----------
        queries : array of uint8 of shape (n_queries, ⌈n_bits / 8⌉)
            Packed codes.
        radius : int
            Largest distance.
        filter : array, optional
            Only these: a boolean for each code, in the order of the index, or ids.

        Returns
        -------
        distances : list of array of int32
            One array per query, ascending; ties in index order. Arrays have the library of the queries.
        ids : list of array of int64
            Their ids.
        """
        radius = min(check_count("radius", radius, 0), self.n_bits)
        if on_device(queries):
            return self._device_radius(queries, radius, filter)
        offsets, distances, positions = self._search(queries, 0, radius, filter)
        cuts, back, count = offsets[1:-1], as_numpy(queries)[1], len(offsets) - 1
        parts = [np.split(values, cuts)[:count] for values in (distances, self._names(positions))]
        return [back(part) for part in parts[0]], [back(part) for part in parts[1]]

    def _device_radius(self, queries: Any, radius: int, filter: Any) -> tuple[list[Any], list[Any]]:
        from mercer.retrieval import _tensors

        codes, checked, places = self._on_device(queries, filter)
        if checked.shape[0] == 0 or codes.shape[0] == 0:
            nothing = [checked.new_zeros(0, dtype=kind) for kind in (_tensors.torch.int32, _tensors.torch.int64)]
            return [nothing[0]] * checked.shape[0], [nothing[1]] * checked.shape[0]
        counts, distances, at = _tensors.within(codes, checked, self.n_bits, radius)
        sizes = counts.tolist()
        return list(distances.split(sizes)), list(self._device_names(at, places).split(sizes))

    def _names(self, positions: np.ndarray) -> np.ndarray:
        return positions if self._ids is None else np.asarray(self._ids)[positions]

    def save(self, path: Any) -> None:
        """Write the index to a file atomically.

        Parameters
        ----------
        path : str or path-like
            The file to write or to replace.
        """
        blocks = np.ascontiguousarray(self._blocks[: -(-self._n // 8)]).astype("<u8", copy=False)
        payload: list[Any] = [blocks.reshape(-1).view(np.uint8).data if blocks.size else b""]
        ids_at = 0
        if self._ids is not None:
            ids_at = HEADER_SIZE + blocks.nbytes
            payload.append(np.ascontiguousarray(self._ids[: self._n]).astype("<i8", copy=False).tobytes())
        size = HEADER_SIZE + sum(len(part) for part in payload)
        digest = hashlib.blake2b(digest_size=32)
        for part in payload:
            digest.update(part)
        fields = (self.n_bits, self._n, self._words, HEADER_SIZE, ids_at, size)
        head = HEADER.pack(MAGIC, VERSION, HEADER_SIZE, *fields, digest.digest())
        write_atomically(path, [head + hashlib.blake2b(head, digest_size=32).digest(), *payload])

    @classmethod
    def load(
        cls, path: Any, mmap: bool = True, verify: bool = False, method: str = "scan", n_jobs: int | None = None
    ) -> HammingIndex:
        """Open a file that `save` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.
        mmap : bool, default=True
            Search the file in place: pages are read on demand and shared between processes. The file must not change
            during use. Adding and removing first copy the codes into memory.
        verify : bool, default=False
            Read the whole file and compare its checksum. The header is always checked, and the size of the file.
        method, n_jobs
            As in the constructor.

        Returns
        -------
        HammingIndex
            The index.

        Raises
        ------
        IndexFileError
            If the file is not an index, has another version, or is truncated or damaged.
        """
        n_bits, n, ids_at, checksum = _read_header(path)
        index = cls(n_bits=n_bits, method=method, n_jobs=n_jobs)
        count = -(-n // 8)
        data = np.memmap(path, np.uint8, mode="r") if mmap else np.fromfile(path, np.uint8)
        if verify and hashlib.blake2b(data[HEADER_SIZE:].data, digest_size=32).digest() != checksum:
            raise IndexFileError(f"{os.fspath(path)}: the codes do not match their checksum: the file is damaged")
        stop = HEADER_SIZE + count * 64 * index._words
        index._blocks = np.asarray(data[HEADER_SIZE:stop].view("<u8").reshape(count, index._words, 8), np.uint64)
        index._ids = np.asarray(data[ids_at:].view("<i8"), np.int64) if ids_at else None
        index._n = n
        return index

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_tables"], state["_copies"] = None, {}
        state["_blocks"] = np.array(self._blocks)
        return state


def _checked_ids(name: str, ids: Any) -> np.ndarray:
    """Integers ≥ 0."""
    id_array = np.atleast_1d(np.asarray(as_numpy(ids)[0]))
    if id_array.size == 0:
        return np.zeros(0, np.int64)
    if id_array.ndim != 1 or id_array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers of one dimension, got {id_array.dtype} of shape {id_array.shape}")
    if id_array.min() < 0 or id_array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must lie between 0 and 2^63 − 1, got {id_array.min()} … {id_array.max()}")
    return id_array.astype(np.int64)


def _read_header(path: Any) -> tuple[int, int, int, bytes]:
    """(bits, codes, offset of the ids, checksum) of a file that is as long as its header says."""
    shown = os.fspath(path)
    with open(path, "rb") as file:
        head = file.read(HEADER_SIZE)
        size = os.fstat(file.fileno()).st_size
    if head[: len(MAGIC)] != MAGIC:
        raise IndexFileError(f"{shown}: not an index of binary codes")
    if len(head) >= 12 and (version := int.from_bytes(head[8:12], "little")) != VERSION:
        raise IndexFileError(f"{shown}: version {version} of the format; this mercer reads version {VERSION}")
    if len(head) < HEADER_SIZE:
        raise IndexFileError(f"{shown}: the file is cut short: {size} bytes")
    fields = HEADER.unpack(head[: HEADER.size])
    if hashlib.blake2b(head[: HEADER.size], digest_size=32).digest() != head[HEADER.size :]:
        raise IndexFileError(f"{shown}: the header does not match its checksum: the file is damaged")
    _, _, _, n_bits, n, words, codes_at, ids_at, expected, checksum = fields
    if size != expected:
        raise IndexFileError(f"{shown}: the file has {size} bytes and should have {expected}: is it cut short?")
    end = HEADER_SIZE + -(-n // 8) * 64 * words
    whole = end + 8 * n if ids_at else end
    sound = 1 <= n_bits <= MOST_BITS and words == -(-n_bits // 64) and codes_at == HEADER_SIZE and whole == size
    if not sound or ids_at not in (0, end):
        raise IndexFileError(f"{shown}: the header contradicts itself")
    return n_bits, n, ids_at, checksum
