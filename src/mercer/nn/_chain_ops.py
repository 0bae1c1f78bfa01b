"""The operators of chains; see `mercer.nn._operators`. Outputs are labels; −100 marks an unknown label."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mercer.nn import _chain_core, _chain_torch
from mercer.nn._inputs import UNKNOWN, length_mask
from mercer.nn._operators import Operators, Words, say_once

__all__ = ["CHAIN"]


def _backend(emissions: Tensor) -> Any:
    """Return the backend module for this device."""
    if emissions.device.type == "cpu":
        return _chain_core
    if emissions.device.type == "cuda":
        from mercer.nn import _chain_cuda

        reason = _chain_cuda.missing(emissions.device)
        if reason is None:
            return _chain_cuda
        say_once(f"no kernels of mercer.nn on {emissions.device} ({reason}): falling back to slow torch operations")
    return _chain_torch


def _known(tags: Tensor, lengths: Tensor, n_labels: int) -> bool:
    """Return whether all tags are known; raise an error if a tag is out of range."""
    if tags.device.type == "cpu":
        return _chain_core.known(tags, lengths, n_labels)
    inside = length_mask(lengths, tags.shape[1])
    unknown, above = inside & (tags == UNKNOWN), inside & (tags >= n_labels)
    state = torch.stack([unknown.any(), (inside & (tags < 0) & ~unknown).any() | above.any()]).tolist()
    if state[1]:
        _chain_core.known(tags.cpu(), lengths.cpu(), n_labels)
    return not state[0]


CHAIN = Operators(
    "chain",
    ("transitions", "start", "end"),
    _backend,
    _known,
    Words(
        structure="a chain",
        unknown=f"some tags are unknown ({UNKNOWN} or None): only the log loss supports unknown tags",
        impossible="no labelling of sequence {} is possible: its emissions and the constraints forbid all labellings",
        forbidden="the tags of sequence {} are forbidden: the constraints, or emissions of −inf, exclude them",
    ),
)
