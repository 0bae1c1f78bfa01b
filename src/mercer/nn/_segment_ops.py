"""The operators of segmentations; see `mercer.nn._operators`.

Outputs contain the label at the first position of each segment and −1 elsewhere. −2 starts a segment of unknown label,
and −100 marks a position without information.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from mercer.nn import _segment_core, _segment_cuda
from mercer.nn._inputs import BEGINS, UNKNOWN, WITHIN, length_mask
from mercer.nn._operators import Operators, Words, named

__all__ = ["SEGMENTS"]


def _backend(emissions: Tensor) -> Any:
    return _segment_core if emissions.device.type == "cpu" else _segment_cuda


def _known(tags: Tensor, lengths: Tensor, n_labels: int) -> bool:
    """Return whether all segments are known; raise an error if a row is not a segmentation."""
    inside = length_mask(lengths, tags.shape[1])
    named(tags[:, 0] == WITHIN, "the segments of sequence {} omit its first position, which must have a label")
    unknown = inside & ((tags == BEGINS) | (tags == UNKNOWN))
    wrong = (inside & ~unknown & ((tags < WITHIN) | (tags >= n_labels))).any(1)
    named(
        wrong, f"a label of the segments of sequence {{}} is not −1 to {n_labels - 1}, {BEGINS} or {UNKNOWN} (unknown)"
    )
    return not bool(unknown.any())


SEGMENTS = Operators(
    "segment",
    ("durations", "transitions", "start", "end"),
    _backend,
    _known,
    Words(
        structure="segments",
        unknown=f"some segments are unknown ({BEGINS} or {UNKNOWN}): only the log loss supports unknown segments",
        impossible="no segmentation of sequence {} is possible: segment lengths, emissions or constraints forbid all",
        forbidden="the segments of sequence {} are forbidden: by max_length, the constraints or emissions of −inf",
    ),
)
