"""Semi-Markov conditional random fields as layers: segments of up to max_length positions, scored as a whole.

    score(y) = start[c_1] + Σ_segments (Σ_{t in segment} emissions[t, c] + durations[length, c])
               + Σ_neighbours transitions[c, c'] + end[c_L]

Scores of segments come from prefix sums of the emissions, so memory is linear in time: nothing of the size time ×
max_length × labels is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mercer._validation import check_choice, check_count
from mercer.learning.losses import Loss
from mercer.nn import _segment_ops  # noqa: F401  (registers the operators)
from mercer.nn._inputs import as_batch, computed_in, length_mask
from mercer.nn._settings import (
    REDUCTIONS,
    cost_matrix,
    forbidden_masks,
    label_names,
    layer_loss,
    reduction_weights,
)
from mercer.structures.base import check_random_seed
from mercer.structures.constraints import Constraints

__all__ = ["SemiMarkovCRF"]


class SemiMarkovCRF(nn.Module):
    """A semi-Markov conditional random field over the emissions of a network.

    Segments are tensors of shape (batch, time) that hold the label at the first position of each segment and −1 within
    it, or lists of (start, stop, label).

    Parameters
    ----------
    n_labels : int or sequence of labels
    max_length : int
        Positions of the longest segment.
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
        Score of a segment of each length.
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

    _forbidden_transitions: Tensor | None
    _forbidden_start: Tensor | None
    _forbidden_end: Tensor | None
    _cost: Tensor | None

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
        super().__init__()
        self.n_labels, self.labels = label_names(n_labels)
        self.max_length, self.loss = check_count("max_length", max_length), layer_loss(loss)
        self.constraints, self.checkpoint, self.check = constraints, bool(checkpoint), bool(check)
        self.reduction = check_choice("reduction", reduction, REDUCTIONS)
        kind = dtype or torch.get_default_dtype()
        if kind not in (torch.float32, torch.float64):
            raise ValueError(f"dtype must be torch.float32 or torch.float64, got {kind}")
        C = self.n_labels
        self.durations = nn.Parameter(torch.zeros(max_length, C, dtype=kind, device=device))
        self.transitions = nn.Parameter(torch.zeros(C, C, dtype=kind, device=device))
        self.start = nn.Parameter(torch.zeros(C, dtype=kind, device=device))
        self.end = nn.Parameter(torch.zeros(C, dtype=kind, device=device))
        masks = forbidden_masks(constraints, C, self.labels)
        for i, name in enumerate(("transitions", "start", "end")):
            mask = None if masks is None else torch.from_numpy(masks[i]).to(device)
            self.register_buffer(f"_forbidden_{name}", mask, persistent=False)
        matrix = cost_matrix(self.loss, cost, C, self.labels)
        self.register_buffer("_cost", None if matrix is None else torch.from_numpy(matrix).to(device), persistent=False)

    # ------------------------------------------------------------------ the loss

    def forward(
        self, emissions: Any, segments: Any, lengths: Any = None, mask: Any = None, reduction: str | None = None
    ) -> Tensor:
        """Return the loss of the segments.

        Parameters
        ----------
        emissions : tensor of shape (batch, time, n_labels), or a packed or nested sequence
        segments : int64 tensor of shape (batch, time), or lists of (start, stop, label)
        lengths, mask, reduction
            As in :class:`ChainCRF`.
        """
        theta, lengths = self._batch(emissions, lengths, mask)
        y = self._rows(segments, theta, lengths)
        wanted = self.reduction if reduction is None else check_choice("reduction", reduction, REDUCTIONS)
        weights, shared, name = reduction_weights(wanted, lengths), self._shared(), self.loss.name
        if name in ("log", "softmax-margin") and wanted != "none" and not self.checkpoint:
            parts = (theta if name == "log" else self._augmented(theta, y)), *shared
            gradient = torch.is_grad_enabled() and any(x.requires_grad for x in parts)
            total: Tensor = torch.ops.mercer.segment_log_loss(*parts, y, lengths, weights, gradient, self.check)[0]
            return total
        values, kind = self._losses(theta, shared, y, lengths), computed_in(theta, self.transitions)
        return values.to(kind) if wanted == "none" else (weights * values).sum().to(kind)

    def _losses(self, theta: Tensor, shared: Any, y: Tensor, lengths: Tensor) -> Tensor:
        """The loss of each sequence."""
        ops, name = torch.ops.mercer, self.loss.name
        truth: Tensor = ops.segment_score(theta, *shared, y, lengths, self.check)
        if name == "log":
            return ops.segment_log_partition(theta, *shared, lengths, self.check) - truth
        if name == "hybrid":
            return self._hybrid(theta, shared, y, lengths, truth)
        augmented = self._augmented(theta, y)
        if name == "softmax-margin":
            return ops.segment_log_partition(augmented, *shared, lengths, self.check) - truth
        with torch.no_grad():
            z, _ = ops.segment_decode(augmented, *shared, lengths, self.check)
        hinge = (ops.segment_score(augmented, *shared, z, lengths, False) - truth).clamp(min=0.0)
        return hinge * hinge if name == "squared-hinge" else hinge

    def _hybrid(self, theta: Tensor, shared: Any, y: Tensor, lengths: Tensor, truth: Tensor) -> Tensor:
        ops, alpha = torch.ops.mercer, float(self.loss.alpha)  # type: ignore[attr-defined]
        with torch.no_grad():
            ranked, scores = ops.segment_k_best(theta, *shared, lengths, 2)
            outside = ~length_mask(lengths, y.shape[1])
            same = ((ranked[:, 0] == y) | outside).all(1)
            other = torch.where(same[:, None], ranked[:, 1], ranked[:, 0])
            none = torch.isneginf(torch.where(same, scores[:, 1], scores[:, 0]))
            other = torch.where(none[:, None], y, other)
        lead = 1.0 + ops.segment_score(theta, *shared, other, lengths, False) - truth
        hinge = torch.where(none, 0.0, lead.clamp(min=0.0))
        if alpha == 0.0:
            return hinge
        return alpha * (ops.segment_log_partition(theta, *shared, lengths, self.check) - truth) + (1 - alpha) * hinge

    def _augmented(self, theta: Tensor, y: Tensor) -> Tensor:
        """θ + Δ(y, ·)."""
        assert self._cost is not None
        at = torch.arange(y.shape[1], device=y.device).expand_as(y)
        first = torch.where(y >= 0, at, 0).cummax(1).values
        label = y.gather(1, first).clamp(0, self.n_labels - 1)
        return theta + self._cost.to(computed_in(theta, self.transitions))[label]

    # ------------------------------------------------------------------ verbs

    def decode(self, emissions: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return the best segments, an int64 tensor of shape (batch, time); see :meth:`segments`."""
        with torch.no_grad():
            theta, lengths = self._batch(emissions, lengths, mask)
            tags: Tensor = torch.ops.mercer.segment_decode(theta, *self._shared(), lengths, self.check)[0]
            return tags

    def k_best(self, emissions: Any, k: int, lengths: Any = None, mask: Any = None) -> tuple[Tensor, Tensor]:
        """Return the k best segmentations, (batch, k, time), and their log-probabilities, (batch, k)."""
        check_count("k", k)
        with torch.no_grad():
            theta, lengths = self._batch(emissions, lengths, mask)
            shared = self._shared()
            tags, scores = torch.ops.mercer.segment_k_best(theta, *shared, lengths, k)
            log_z = torch.ops.mercer.segment_log_partition(theta, *shared, lengths, self.check)
            return tags, scores - log_z[:, None]

    def sample(
        self, emissions: Any, size: int = 1, lengths: Any = None, mask: Any = None, random_state: Any = None
    ) -> Tensor:
        """Return segmentations drawn from p(y | x), (batch, size, time)."""
        check_count("size", size)
        seed = check_random_seed(random_state) >> 1
        with torch.no_grad():
            theta, lengths = self._batch(emissions, lengths, mask)
            out: Tensor = torch.ops.mercer.segment_sample(theta, *self._shared(), lengths, size, seed)
            return out

    def marginals(self, emissions: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return p(label at a position), (batch, time, n_labels). It has no derivative."""
        theta, lengths = self._batch(emissions, lengths, mask)
        ones = torch.ones_like(lengths, dtype=torch.float64)
        out: Tensor = torch.ops.mercer.segment_marginals(theta, *self._shared(), lengths, ones)[1]
        return out

    def entropy(self, emissions: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return the entropy of p(y | x) in nats, (batch,), float64. It has no derivative."""
        theta, lengths = self._batch(emissions, lengths, mask)
        out: Tensor = torch.ops.mercer.segment_entropy(theta, *self._shared(), lengths)
        return out

    def log_partition(self, emissions: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return log Σ_y exp score(y), (batch,), float64; its gradient are the marginals."""
        theta, lengths = self._batch(emissions, lengths, mask)
        out: Tensor = torch.ops.mercer.segment_log_partition(theta, *self._shared(), lengths, self.check)
        return out

    def score(self, emissions: Any, segments: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return the score of segments, (batch,), float64."""
        theta, lengths = self._batch(emissions, lengths, mask)
        y = self._rows(segments, theta, lengths)
        out: Tensor = torch.ops.mercer.segment_score(theta, *self._shared(), y, lengths, self.check)
        return out

    def segments(self, tags: Tensor, lengths: Any = None) -> list[list[tuple[int, int, Any]]]:
        """Return a tensor of segments as lists of (start, stop, label), labels by name where the layer has names."""
        sizes = [tags.shape[1]] * len(tags) if lengths is None else [int(n) for n in lengths]
        found = []
        for row, size in zip(tags.tolist(), sizes, strict=True):
            starts = [t for t in range(size) if row[t] >= 0]
            stops = [*starts[1:], size]
            names = [row[t] if self.labels is None else self.labels[row[t]] for t in starts]
            found.append(list(zip(starts, stops, names, strict=True)))
        return found

    # ------------------------------------------------------------------ parts

    def _rows(self, segments: Any, theta: Tensor, lengths: Tensor) -> Tensor:
        """Segments as a tensor (batch, time)."""
        batch, time = theta.shape[:2]
        if isinstance(segments, Tensor):
            if segments.shape != theta.shape[:2] or segments.is_floating_point():
                raise ValueError(f"segments must be integers of shape {(batch, time)}, got {tuple(segments.shape)}")
            if segments.device != theta.device:
                raise ValueError(f"the emissions are on {theta.device}, the segments on {segments.device}")
            return segments.to(torch.int64)
        if not isinstance(segments, Sequence) or len(segments) != batch:
            raise ValueError(f"segments must be a tensor or {batch} lists of (start, stop, label)")
        numbers = None if self.labels is None else {label: c for c, label in enumerate(self.labels)}
        rows = torch.full((batch, time), -1, dtype=torch.int64)
        for i, (listed, n) in enumerate(zip(segments, lengths.tolist(), strict=True)):
            at = 0
            for begin, stop, label in listed:
                if begin != at or not begin < stop <= n:
                    raise ValueError(
                        f"the segments of sequence {i} must follow each other from 0 to {n}, found {begin}:{stop}"
                    )
                if numbers is not None and label not in numbers:
                    raise ValueError(f"unknown label {label!r} in sequence {i}")
                rows[i, begin] = int(label) if numbers is None else numbers[label]
                at = stop
            if at != n:
                raise ValueError(f"the segments of sequence {i} end at {at}, the sequence at {n}")
        return rows.to(theta.device)

    def _batch(self, emissions: Any, lengths: Any, mask: Any) -> tuple[Tensor, Tensor]:
        if torch.onnx.is_in_onnx_export():
            raise NotImplementedError(
                "SemiMarkovCRF cannot be exported to ONNX: export the network up to its emissions"
            )
        return as_batch(emissions, lengths, mask, self.n_labels, self.transitions, self.check)

    def _shared(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Durations, transitions, start and end, −inf where forbidden."""
        parts = self.transitions, self.start, self.end
        if self._forbidden_transitions is None:
            return self.durations, *parts
        masks = self._forbidden_transitions, self._forbidden_start, self._forbidden_end
        given: Any = zip(parts, masks, strict=True)
        made = (p.masked_fill(m, -torch.inf) for p, m in given)
        returned: Any = (self.durations, *made)
        return returned

    def extra_repr(self) -> str:
        """What ``print(layer)`` says."""
        said = f"n_labels={self.n_labels}, max_length={self.max_length}, loss={self.loss.name!r}"
        return said if self.constraints is None else f"{said}, constraints={self.constraints!r}"
