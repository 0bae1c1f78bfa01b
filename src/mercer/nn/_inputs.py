"""Inputs of the layers: emissions, lengths or masks, tags; packed and nested sequences.

Internally, a batch is always emissions (batch, time, labels), lengths (batch,) and optional tags (batch, time), where
−100 marks unknown tags.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

__all__ = [
    "BEGINS",
    "UNKNOWN",
    "WITHIN",
    "as_batch",
    "as_numbers",
    "as_tags",
    "computed_in",
    "length_mask",
    "restricted",
]

UNKNOWN = -100
WITHIN, BEGINS = -1, -2
"""Codes of segments: a position inside a segment, and the start of a segment of unknown label."""
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def computed_in(emissions: Tensor, transitions: Tensor) -> torch.dtype:
    """Return float64 if an argument is float64, otherwise float32."""
    return torch.float64 if torch.float64 in (emissions.dtype, transitions.dtype) else torch.float32


def length_mask(lengths: Tensor, time: int) -> Tensor:
    """Return a mask (batch, time), True within a sequence."""
    return torch.arange(time, device=lengths.device)[None, :] < lengths[:, None]


def as_batch(emissions: Any, lengths: Any, mask: Any, n_labels: int, weight: Tensor, check: bool) -> tuple[Any, Tensor]:
    """Return emissions of shape (batch, time, labels) and lengths of shape (batch,) on their device."""
    traced = torch.compiler.is_compiling() or torch.jit.is_tracing() or bool(torch._C._len_torch_dispatch_stack())
    if traced and torch.onnx.is_in_onnx_export():
        raise NotImplementedError(
            "ONNX has no operator for the recursions of a conditional random field: export "
            "the network up to its emissions and decode them with mercer.nn"
        )
    if isinstance(emissions, PackedSequence):
        if lengths is not None or mask is not None:
            raise ValueError("packed emissions contain their lengths: omit lengths and mask")
        emissions, lengths = pad_packed_sequence(emissions, batch_first=True)
    elif isinstance(emissions, Tensor) and emissions.is_nested:
        if lengths is not None or mask is not None:
            raise ValueError("nested emissions contain their lengths: omit lengths and mask")
        lengths = torch.tensor([len(part) for part in emissions.unbind()], dtype=torch.int64)
        emissions = torch.nested.to_padded_tensor(emissions, 0.0)
    if not isinstance(emissions, Tensor):
        raise TypeError(f"emissions must be a tensor, a packed or a nested sequence, got {type(emissions).__name__}")
    if emissions.dim() != 3 or emissions.shape[2] != n_labels:
        raise ValueError(f"emissions must be (batch, time, {n_labels}), got {tuple(emissions.shape)}")
    if emissions.dtype not in _FLOATS:
        raise ValueError(f"emissions must be floating-point numbers, got {emissions.dtype}")
    if emissions.device != weight.device:
        raise ValueError(f"the layer is on {weight.device}, the emissions on {emissions.device}: move one of them")
    if emissions.shape[0] == 0 or emissions.shape[1] == 0:
        raise ValueError(f"emissions have no positions: their shape is {tuple(emissions.shape)}")
    batch, time = emissions.shape[:2]
    if lengths is not None and mask is not None:
        raise ValueError("pass lengths or a mask, not both")
    if mask is not None:
        if not isinstance(mask, Tensor) or mask.shape != emissions.shape[:2]:
            raise ValueError(f"mask must be a tensor of shape {(batch, time)}")
        return emissions, torch.ops.mercer.mask_lengths(mask.to(emissions.device, torch.bool), check)
    if lengths is None:
        if traced:
            return emissions, torch.full((batch,), time, dtype=torch.int64, device=emissions.device)
        return emissions, _full(batch, time, emissions.device)
    if isinstance(lengths, Tensor) and lengths.is_floating_point():
        raise ValueError(f"lengths must be integers, got {lengths.dtype}")
    sizes = torch.as_tensor(lengths, dtype=torch.int64)
    if sizes.shape != (batch,):
        raise ValueError(f"lengths must be one number per sequence, ({batch},), got {tuple(sizes.shape)}")
    return emissions, torch.ops.mercer.checked_lengths(sizes, time, check).to(emissions.device)


@functools.lru_cache(maxsize=64)
def _full(batch: int, time: int, device: torch.device) -> Tensor:
    """Return the lengths of a batch without padding; read-only."""
    with torch.inference_mode(False):
        return torch.full((batch,), time, dtype=torch.int64, device=device)


def as_tags(tags: Any, emissions: Tensor) -> Tensor:
    """Return tags (batch, time) on the device of the emissions; None and −100 mark unknown ones."""
    batch, time = emissions.shape[:2]
    if isinstance(tags, Sequence) and not isinstance(tags, (str, bytes, PackedSequence)):
        tags = _padded(tags, batch, time)
    return as_numbers(tags, emissions, "tags")


def as_numbers(given: Any, emissions: Tensor, name: str) -> Tensor:
    """Return outputs (batch, time) of a tensor, packed or nested, on the device of the emissions."""
    batch, time = emissions.shape[:2]
    padded = isinstance(given, PackedSequence) or (isinstance(given, Tensor) and given.is_nested)
    if isinstance(given, PackedSequence):
        given = pad_packed_sequence(given, batch_first=True, padding_value=UNKNOWN)[0]
    elif isinstance(given, Tensor) and given.is_nested:
        given = torch.nested.to_padded_tensor(given, UNKNOWN)
    if not isinstance(given, Tensor):
        raise TypeError(f"{name} must be a tensor or lists, got {type(given).__name__}")
    if given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
        raise ValueError(f"{name} must be integers, got {given.dtype}")
    if padded and given.dim() == 2 and given.shape[0] == batch and given.shape[1] < time:
        given = torch.nn.functional.pad(given, (0, time - given.shape[1]), value=UNKNOWN)
    if given.shape != emissions.shape[:2]:
        raise ValueError(f"{name} must be of shape (batch, time) = {(batch, time)}, got {tuple(given.shape)}")
    if given.device != emissions.device:
        raise ValueError(f"the emissions are on {emissions.device}, the {name} on {given.device}: move one of them")
    return given if given.dtype == torch.int64 else given.to(torch.int64)


def _padded(tags: Sequence[Any], batch: int, time: int) -> Tensor:
    if len(tags) != batch:
        raise ValueError(f"tags are {len(tags)} sequences, emissions {batch}")
    padded = torch.full((batch, time), UNKNOWN, dtype=torch.int64)
    for i, row in enumerate(tags):
        if len(row) > time:
            raise ValueError(f"the tags of sequence {i} are {len(row)}, its emissions {time}")
        known = [UNKNOWN if tag is None else int(tag) for tag in row]
        padded[i, : len(known)] = torch.tensor(known, dtype=torch.int64)
    return padded


def restricted(emissions: Tensor, tags: Tensor | None, lengths: Tensor) -> Tensor:
    """Return emissions with −inf for the labels that contradict a known tag."""
    if tags is None:
        return emissions
    labels = torch.arange(emissions.shape[2], device=emissions.device)
    free = (tags == UNKNOWN) | ~length_mask(lengths, tags.shape[1])
    allowed = (tags[:, :, None] == labels) | free[:, :, None]
    return emissions.masked_fill(~allowed, -torch.inf)


@torch.library.custom_op("mercer::mask_lengths", mutates_args=())
def _mask_lengths(mask: Tensor, check: bool) -> Tensor:
    lengths = mask.sum(1)
    if check:
        broken = (mask[:, 1:] & ~mask[:, :-1]).any(1) | (lengths == 0)
        if bool(broken.any()):
            i = int(broken.nonzero()[0])
            why = "has a hole" if int(lengths[i]) else "is empty"
            raise ValueError(f"the mask of sequence {i} {why}: it must be true first and then false")
    return lengths


@_mask_lengths.register_fake
def _(mask: Tensor, check: bool) -> Tensor:
    return mask.new_empty(mask.shape[:1], dtype=torch.int64)


@torch.library.custom_op("mercer::checked_lengths", mutates_args=())
def _checked_lengths(lengths: Tensor, time: int, check: bool) -> Tensor:
    if check:
        broken = (lengths < 1) | (lengths > time)
        if bool(broken.any()):
            i = int(broken.nonzero()[0])
            raise ValueError(f"the length of sequence {i} is {int(lengths[i])}: it must be 1 to {time}")
    return lengths.clone()


@_checked_lengths.register_fake
def _(lengths: Tensor, time: int, check: bool) -> Tensor:
    return torch.empty_like(lengths)
