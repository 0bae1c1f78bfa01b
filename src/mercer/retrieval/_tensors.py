"""Packed codes and exact search on torch tensors, on any device.

    dist(a, b) = (k − ⟨s(a), s(b)⟩) / 2          s(·) the k signs ±1 of a code

so the distances of many codes are a matrix product. In half precision it is exact if no sum exceeds 2,048: longer codes
are processed 2,048 bits at a time, and the parts are added as integers. On a GPU, a kernel of Mercer counts bits
instead (`_cuda_hamming`). Neighbours are the smallest values of distance · 2^p + position, so ties are resolved as in
the compiled scan, by position in the index.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer._arrays import with_less_memory
from mercer._warnings import warn_caller

__all__ = ["device_codes", "nearest", "pack", "signs", "unpack", "within"]

EXACT = 2048  # whole numbers up to here are exact in half precision
MOST_QUERIES = 1024  # at a time
SMALL = 1 << 27  # bytes that are taken without a look at what is free
KEY = 38  # bits of a place in an index, as in cpp/maps/hamming.cpp
GATHER = -9205322385119247871  # 0x8040201008040201: the lowest bits of eight bytes into the highest byte, first first


def pack(values: Tensor) -> Tensor:
    """The bits of values ≥ 0, eight a byte as `numpy.packbits` lays them out."""
    bits = values >= 0
    if bits.shape[1] % 8:
        bits = torch.nn.functional.pad(bits, (0, -bits.shape[1] % 8))
    eights = bits.contiguous().view(torch.uint8).view(torch.int64)
    return ((eights * GATHER >> 56) & 255).to(torch.uint8)


def unpack(codes: Tensor, n_bits: int) -> Tensor:
    """Signs −1 and +1 as int8."""
    return signs(codes, n_bits, torch.int8)


def signs(codes: Tensor, n_bits: int, dtype: torch.dtype) -> Tensor:
    """Signs −1 and +1 of any type: a table of the eight signs of each byte."""
    rows = _table(codes.device, dtype).index_select(0, codes.reshape(-1).to(torch.int32))
    return rows.reshape(codes.shape[0], -1)[:, :n_bits]


@lru_cache(maxsize=16)
def _table(device: torch.device, dtype: torch.dtype) -> Tensor:
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    return torch.from_numpy(2 * bits.astype(np.int8) - 1).to(device, dtype)


def device_codes(name: str, codes: Tensor, n_bits: int) -> Tensor:
    """Packed codes of ``n_bits`` bits, contiguous; the bits that fill the last byte must be zero."""
    if codes.dtype != torch.uint8 or codes.ndim != 2:
        raise ValueError(
            f"{name} must be a matrix of packed codes (uint8), got {codes.dtype} of shape {tuple(codes.shape)}"
        )
    width = -(-n_bits // 8)
    if codes.shape[1] != width:
        raise ValueError(f"{name} must have {width} bytes ({n_bits} bits) a row, got {codes.shape[1]}")
    if n_bits % 8 and bool((codes[:, -1] & (0xFF >> n_bits % 8)).any()):
        raise ValueError(f"{name} have bits after bit {n_bits}: is n_bits right, is the order that of numpy.packbits?")
    return codes.contiguous()


def distances(queries: Tensor, codes: Tensor, n_bits: int, shift: int | None = None) -> Tensor:
    """Hamming distances of all pairs, int32; with ``shift`` distance · 2^shift + place."""
    if _counts_bits(codes):
        from mercer.retrieval import _cuda, _cuda_hamming

        try:
            return _cuda_hamming.distances(queries, codes, shift)
        except _cuda.KernelError as error:
            warn_caller(f"{error}: distances are computed by matrix products", RuntimeWarning)
    bits = by_products(queries, codes, n_bits)
    if shift is None:
        return bits
    return bits.bitwise_left_shift_(shift).add_(torch.arange(len(codes), dtype=torch.int32, device=codes.device))


def by_products(queries: Tensor, codes: Tensor, n_bits: int) -> Tensor:
    """The same by products of signs, on any device."""
    kind = torch.float32 if codes.device.type == "cpu" else torch.float16
    total: Any = None
    for start in range(0, n_bits, EXACT):
        bits = min(EXACT, n_bits - start)
        part = slice(start // 8, (start + bits + 7) // 8)
        product = (signs(queries[:, part], bits, kind) @ signs(codes[:, part], bits, kind).T).to(torch.int32)
        total = product if total is None else total.add_(product)
    return total.neg_().add_(n_bits).bitwise_right_shift_(1)


def _stretches(codes: Tensor, n_queries: int, n_bits: int) -> int:
    """Codes at a time: keys of a place and a distance have 31 bits, and all must fit into memory."""
    most = 1 << (30 - n_bits.bit_length())
    each = 24 * n_queries + (0 if _counts_bits(codes) else 8 * min(n_bits, EXACT))
    if each * min(most, codes.shape[0]) <= SMALL:  # asking takes longer than searching
        return most
    if codes.device.type == "cuda":
        held = torch.cuda.memory_reserved(codes.device) - torch.cuda.memory_allocated(codes.device)
        room = (torch.cuda.mem_get_info(codes.device)[0] + held) // 2
    else:
        room = SMALL
    return max(1, min(most, room // each))


def _counts_bits(codes: Tensor) -> bool:
    """Whether a kernel of our own finds distances."""
    if not codes.is_cuda:
        return False
    from mercer.retrieval import _cuda_hamming

    return _cuda_hamming.serves(codes)


def nearest(codes: Tensor, queries: Tensor, n_bits: int, k: int) -> tuple[Tensor, Tensor]:
    """(distances, places) of the k nearest codes of each query, k at most the number of codes."""

    def some(step: int) -> Tensor:
        starts = range(0, len(queries), step)
        return torch.cat([_nearest_keys(codes, queries[at : at + step], n_bits, k) for at in starts])

    keys = with_less_memory(some, MOST_QUERIES, queries)
    return (keys >> KEY).to(torch.int32), keys & ((1 << KEY) - 1)


def _nearest_keys(codes: Tensor, queries: Tensor, n_bits: int, k: int) -> Tensor:
    shift = 30 - n_bits.bit_length()
    step = _stretches(codes, queries.shape[0], n_bits)
    best: Any = None
    for start in range(0, codes.shape[0], step):
        block = codes[start : start + step]
        keys = distances(queries, block, n_bits, shift)
        keys = keys.topk(min(k, block.shape[0]), dim=1, largest=False, sorted=True).values.to(torch.int64)
        keys = (keys >> shift << KEY) + (keys & ((1 << shift) - 1)) + start
        if best is not None:
            both = torch.cat([best, keys], dim=1)
            keys = both.topk(min(k, both.shape[1]), dim=1, largest=False, sorted=True).values
        best = keys
    return best


def within(codes: Tensor, queries: Tensor, n_bits: int, radius: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return (counts, distances, positions) of the codes within a radius for each query, nearest first."""

    def some(step: int) -> list[tuple[Tensor, Tensor, Tensor]]:
        starts = range(0, len(queries), step)
        return [_within(codes, queries[at : at + step], n_bits, radius) for at in starts]

    parts = with_less_memory(some, MOST_QUERIES, queries)
    counts, near, places = (torch.cat(part) for part in zip(*parts, strict=True))
    return counts, near, places


def _within(codes: Tensor, queries: Tensor, n_bits: int, radius: int) -> tuple[Tensor, Tensor, Tensor]:
    step = _stretches(codes, queries.shape[0], n_bits)
    rows, near, places = [], [], []
    for start in range(0, codes.shape[0], step):
        bits = distances(queries, codes[start : start + step], n_bits)
        row, place = torch.nonzero(bits <= radius, as_tuple=True)
        rows.append(row)
        near.append(bits[row, place])
        places.append(place + start)
    row, distance, place = torch.cat(rows), torch.cat(near), torch.cat(places)
    # Places ascend within a query: a stable sort leaves ties in their order.
    order = torch.sort(row * (n_bits + 1) + distance, stable=True).indices
    counts = torch.bincount(row, minlength=queries.shape[0])
    return counts, distance[order], place[order]
