"""Semi-Markov conditional random fields as layers: segments of up to max_length positions, scored as a whole.

    score(y) = start[c_1] + Σ_segments (Σ_{t in segment} emissions[t, c] + durations[length, c])
               + Σ_neighbours transitions[c, c'] + end[c_L]

Scores of segments come from prefix sums of the emissions. Memory is linear in time; no array of size time × max_length
× labels is allocated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from mercer._validation import check_count
from mercer.learning.losses import Loss
from mercer.nn._inputs import BEGINS, UNKNOWN, WITHIN, as_numbers
from mercer.nn._layer import StructuredLayer
from mercer.nn._segment_ops import SEGMENTS
from mercer.structures.constraints import Constraints

__all__ = ["SemiMarkovCRF"]


class SemiMarkovCRF(StructuredLayer):
    """A semi-Markov conditional random field over the emissions of a network.

    Segments are tensors of shape (batch, time) with the label at the first position of each segment and −1 elsewhere,
    or lists of (start, stop, label). For partially known segments, the log loss sums over all consistent segmentations.
    In tensors, −2 starts a segment of unknown label, and −100 marks a position without information. In lists, (start,
    stop, None) stands for any segments that begin at start and end at stop.

    Parameters
    ----------
    n_labels : int or sequence of labels
    max_length : int
        Maximal segment length in positions.
    loss : {"log", "hinge", "squared-hinge", "softmax-margin", "hybrid"} or Loss, default="log"
        The cost of the margin losses is the number of positions with a wrong label.
    constraints : Constraints or None
        Labels that must not follow each other, begin or end a sequence.
    cost : optional
        As in :class:`ChainCRF`, by position.
    reduction, checkpoint, check, device, dtype
        As in :class:`ChainCRF`.

    Attributes
    ----------
    durations : Parameter of shape (max_length, n_labels)
        Score of each segment length.
    transitions : Parameter of shape (n_labels, n_labels)
    start, end : Parameters of shape (n_labels,)

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from mercer.nn import SemiMarkovCRF  # doctest: +SKIP
    >>> crf = SemiMarkovCRF(2, max_length=4)  # doctest: +SKIP
    >>> emissions = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]]])  # doctest: +SKIP
    >>> with torch.no_grad():  # doctest: +SKIP
    ...     _ = crf.durations.fill_(-1.0)  # every segment costs 1
    >>> crf.segments(crf.decode(emissions))  # doctest: +SKIP
    [[(0, 2, 0), (2, 3, 1)]]
    """

    operators = SEGMENTS

    durations: nn.Parameter

    def __init__(
        self,
        n_labels: Any,
        max_length: int,
        *,
        loss: str | Loss = "log",
        constraints: Constraints | None = None,
        cost: Any = None,
        reduction: str = "mean",
        checkpoint: bool = False,
        check: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        longest = check_count("max_length", max_length)
        super().__init__(
            n_labels, {"durations": longest}, loss=loss, constraints=constraints, cost=cost, reduction=reduction,
            checkpoint=checkpoint, check=check, device=device, dtype=dtype,
        )  # fmt: skip
        self.max_length = longest

    def forward(
        self, emissions: Any, segments: Any, lengths: Any = None, mask: Any = None, reduction: str | None = None
    ) -> Tensor:
        """Return the loss of the segments.

        Parameters
        ----------
        emissions : tensor of shape (batch, time, n_labels), or a packed or nested sequence
        segments : int64 tensor of shape (batch, time), or lists of (start, stop, label)
            Completely known segments, or for the log loss partially known segments.
        lengths, mask, reduction
            As in :class:`ChainCRF`.
        """
        return self._loss(emissions, segments, lengths, mask, reduction)

    def score(self, emissions: Any, segments: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return the score of segments, (batch,), float64."""
        return self._score(emissions, segments, lengths, mask)

    def segments(self, tags: Tensor, lengths: Any = None) -> list[list[tuple[int, int, Any]]]:
        """Return a tensor of segments as lists of (start, stop, label), with label names if the layer has names."""
        sizes = [tags.shape[1]] * len(tags) if lengths is None else [int(n) for n in lengths]
        segments = []
        for row, size in zip(tags.tolist(), sizes, strict=True):
            starts = [t for t in range(size) if row[t] >= 0]
            stops = [*starts[1:], size]
            names = [row[t] if self.labels is None else self.labels[row[t]] for t in starts]
            segments.append(list(zip(starts, stops, names, strict=True)))
        return segments

    def _labels_at(self, y: Tensor) -> Tensor:
        at = torch.arange(y.shape[1], device=y.device).expand_as(y)
        return y.gather(1, torch.where(y >= 0, at, 0).cummax(1).values)

    def _outputs(self, given: Any, theta: Tensor, lengths: Tensor) -> Tensor:
        """Return segments as a tensor (batch, time)."""
        batch, time = theta.shape[:2]
        if isinstance(given, (Tensor, PackedSequence)):
            return as_numbers(given, theta, "segments")
        if not isinstance(given, Sequence) or len(given) != batch:
            raise ValueError(f"segments must be a tensor or {batch} lists of (start, stop, label)")
        rows = torch.full((batch, time), WITHIN, dtype=torch.int64)
        for i, (listed, n) in enumerate(zip(given, lengths.tolist(), strict=True)):
            at = 0
            for begin, stop, label in listed:
                if begin != at or not begin < stop <= n:
                    raise ValueError(
                        f"the segments of sequence {i} must follow each other from 0 to {n}, found {begin}:{stop}"
                    )
                if label is None:
                    rows[i, begin:stop] = UNKNOWN
                rows[i, begin] = self._number(label, i)
                at = stop
            if at != n:
                raise ValueError(f"the segments of sequence {i} end at {at}, the sequence at {n}")
        return rows.to(theta.device)

    def _number(self, label: Any, sequence: int) -> int:
        if label is None:
            return BEGINS
        if self.labels is None:
            return int(label)
        if label not in self.labels:
            raise ValueError(f"unknown label {label!r} in sequence {sequence}")
        return self.labels.index(label)

    def extra_repr(self) -> str:
        """Return the text of ``print(layer)``."""
        return f"{super().extra_repr()}, max_length={self.max_length}"
