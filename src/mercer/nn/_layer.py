"""Base class of the conditional random field layers: parameters, losses and inference over a network's emissions.

    log             log Z − score(y)                                   gradient  marginals − 1_y
    hinge           max_z [Δ(y, z) + score(z)] − score(y)                        1_ẑ − 1_y
    squared-hinge   its square
    softmax-margin  log Σ_z exp(Δ(y, z) + score(z)) − score(y)                   marginals(θ + Δ) − 1_y
    hybrid(α)       α · log + (1 − α) · [1 + max_{z≠y} score(z) − score(y)]₊     the same combination

For partially known outputs, the log loss replaces score(y) by the log-partition of all consistent outputs.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from mercer._validation import check_choice, check_count
from mercer.learning.losses import Loss
from mercer.nn._inputs import as_batch, computed_in, length_mask
from mercer.nn._operators import DirectLogLoss, Operators, is_eager
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

__all__ = ["StructuredLayer", "fused_log_loss"]


class StructuredLayer(nn.Module):
    """A conditional random field over emissions. A subclass defines its operators and converts outputs.

    Parameters
    ----------
    n_labels : int or sequence of labels
    more : dict of str to int
        Numbers of rows of further shared scores besides transitions, start and end; one column per label.
    loss, constraints, cost, reduction, checkpoint, check, device, dtype
        As in :class:`mercer.nn.ChainCRF`.
    """

    operators: ClassVar[Operators]

    transitions: nn.Parameter
    start: nn.Parameter
    end: nn.Parameter
    _forbidden_transitions: Tensor | None
    _forbidden_start: Tensor | None
    _forbidden_end: Tensor | None
    _cost: Tensor | None

    def __init__(
        self, n_labels: Any, more: dict[str, int], *, loss: str | Loss, constraints: Constraints | None, cost: Any,
        reduction: str, checkpoint: bool, check: bool, device: Any, dtype: torch.dtype | None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.n_labels, self.labels = label_names(n_labels)
        self.loss = layer_loss(loss)
        self.constraints, self.checkpoint, self.check = constraints, bool(checkpoint), bool(check)
        self.reduction = check_choice("reduction", reduction, REDUCTIONS)
        kind = dtype or torch.get_default_dtype()
        if kind not in (torch.float32, torch.float64):
            raise ValueError(f"dtype must be torch.float32 or torch.float64, got {kind}")
        C = self.n_labels
        shapes = {**{name: (rows, C) for name, rows in more.items()}, "transitions": (C, C), "start": (C,), "end": (C,)}
        for name in self.operators.shared:
            self.register_parameter(name, nn.Parameter(torch.zeros(shapes[name], dtype=kind, device=device)))
        masks = forbidden_masks(constraints, C, self.labels)
        for i, name in enumerate(("transitions", "start", "end")):
            mask = None if masks is None else torch.from_numpy(masks[i]).to(device)
            self.register_buffer(f"_forbidden_{name}", mask, persistent=False)
        matrix = cost_matrix(self.loss, cost, C, self.labels)
        self.register_buffer("_cost", None if matrix is None else torch.from_numpy(matrix).to(device), persistent=False)

    def reset_parameters(self) -> None:
        """Set all parameters to 0: probabilities then depend only on the emissions."""
        for parameter in self.parameters():
            nn.init.zeros_(parameter)

    def _outputs(self, given: Any, theta: Tensor, lengths: Tensor) -> Tensor:
        """Return outputs as an int64 tensor (batch, time)."""
        raise NotImplementedError

    def _labels_at(self, y: Tensor) -> Tensor:
        """Return the label of each position, if known."""
        raise NotImplementedError

    # ------------------------------------------------------------------ the loss

    def _loss(self, emissions: Any, outputs: Any, lengths: Any, mask: Any, reduction: str | None) -> Tensor:
        theta, lengths = self._batch(emissions, lengths, mask)
        y = self._outputs(outputs, theta, lengths)
        wanted = self.reduction if reduction is None else check_choice("reduction", reduction, REDUCTIONS)
        shared, name = self._shared(), self.loss.name
        if name in ("log", "softmax-margin") and wanted != "none" and not self.checkpoint:
            augmented = theta if name == "log" else self._augmented(theta, y)
            return fused_log_loss(self.operators, (augmented, *shared), y, lengths, wanted, name == "log", self.check)
        values, kind = self._losses(theta, shared, y, lengths), computed_in(theta, self.transitions)
        return values.to(kind) if wanted == "none" else (reduction_weights(wanted, lengths) * values).sum().to(kind)

    def _losses(self, theta: Tensor, shared: tuple[Tensor, ...], y: Tensor, lengths: Tensor) -> Tensor:
        """Return the loss of each sequence, from log-partitions, decoding and scores."""
        verbs, name = self.operators, self.loss.name
        if name == "log":
            agreeing = verbs.log_partition(theta, *shared, lengths, y, self.check)
            return self._log_partition(theta, shared, lengths) - agreeing
        truth = verbs.score(theta, *shared, lengths, y, self.check)
        if name == "hybrid":
            return self._hybrid(theta, shared, y, lengths, truth)
        augmented = self._augmented(theta, y)
        if name == "softmax-margin":
            return self._log_partition(augmented, shared, lengths) - truth
        with torch.no_grad():
            z, _ = verbs.decode(augmented, *shared, lengths, self.check)
        hinge = (verbs.score(augmented, *shared, lengths, z, False) - truth).clamp(min=0.0)
        return hinge * hinge if name == "squared-hinge" else hinge

    def _hybrid(self, theta: Tensor, shared: Any, y: Tensor, lengths: Tensor, truth: Tensor) -> Tensor:
        verbs, alpha = self.operators, float(self.loss.alpha)  # type: ignore[attr-defined]
        with torch.no_grad():
            ranked, scores = verbs.k_best(theta, *shared, lengths, 2)
            outside = ~length_mask(lengths, y.shape[1])
            same = ((ranked[:, 0] == y) | outside).all(1)
            other = torch.where(same[:, None], ranked[:, 1], ranked[:, 0])
            none = torch.isneginf(torch.where(same, scores[:, 1], scores[:, 0]))  # the truth is all there is
            other = torch.where(none[:, None], y, other)
        lead = 1.0 + verbs.score(theta, *shared, lengths, other, False) - truth
        hinge = torch.where(none, 0.0, lead.clamp(min=0.0))
        if alpha == 0.0:
            return hinge
        return alpha * (self._log_partition(theta, shared, lengths) - truth) + (1.0 - alpha) * hinge

    def _augmented(self, theta: Tensor, y: Tensor) -> Tensor:
        """θ + Δ(y, ·)."""
        assert self._cost is not None
        labels = self._labels_at(y).clamp(0, self.n_labels - 1)
        return theta + self._cost.to(computed_in(theta, self.transitions))[labels]

    def _log_partition(self, theta: Tensor, shared: Any, lengths: Tensor) -> Tensor:
        out: Tensor = self.operators.log_partition(theta, *shared, lengths, None, self.check)
        return out

    # ------------------------------------------------------------------ verbs

    def decode(self, emissions: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return the best output, an int64 tensor of shape (batch, time) with −1 past the end of a sequence."""
        return self._decoded(emissions, lengths, mask)[0]

    def best_score(self, emissions: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return the score of the best output, (batch,), float64."""
        return self._decoded(emissions, lengths, mask)[1]

    def _decoded(self, emissions: Any, lengths: Any, mask: Any) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            theta, lengths = self._batch(emissions, lengths, mask)
            outputs, score = self.operators.decode(theta, *self._shared(), lengths, self.check)
            return outputs, score

    def k_best(self, emissions: Any, k: int, lengths: Any = None, mask: Any = None) -> tuple[Tensor, Tensor]:
        """Return the k best outputs and their log-probabilities.

        Returns
        -------
        outputs : int64 tensor of shape (batch, k, time), best first
            −1 past the end of a sequence, and for missing outputs if a sequence has fewer than k.
        log_probabilities : float64 tensor of shape (batch, k)
            −inf for missing outputs.
        """
        check_count("k", k)
        with torch.no_grad():
            theta, lengths = self._batch(emissions, lengths, mask)
            shared = self._shared()
            outputs, scores = self.operators.k_best(theta, *shared, lengths, k)
            return outputs, scores - self._log_partition(theta, shared, lengths)[:, None]

    def sample(
        self, emissions: Any, size: int = 1, lengths: Any = None, mask: Any = None, random_state: Any = None
    ) -> Tensor:
        """Return outputs drawn from p(y | x), an int64 tensor of shape (batch, size, time).

        The same seed draws the same outputs on the same kind of device; CPU and GPU draws differ.
        """
        check_count("size", size)
        seed = _compiled_seed(random_state) if torch.compiler.is_compiling() else _seed(random_state)
        with torch.no_grad():
            theta, lengths = self._batch(emissions, lengths, mask)
            out: Tensor = self.operators.sample(theta, *self._shared(), lengths, size, seed, self.check)
            return out

    def marginals(self, emissions: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return p(label at a position), (batch, time, n_labels); 0 past the end. It is not differentiable."""
        theta, lengths = self._batch(emissions, lengths, mask)
        ones = torch.ones_like(lengths, dtype=torch.float64)
        out: Tensor = self.operators.marginals(theta, *self._shared(), lengths, None, ones, self.check)[1]
        return out

    def entropy(self, emissions: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return the entropy of p(y | x) in nats, (batch,), float64. It is not differentiable."""
        theta, lengths = self._batch(emissions, lengths, mask)
        out: Tensor = self.operators.entropy(theta, *self._shared(), lengths, self.check)
        return out

    def log_partition(self, emissions: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return log Σ_y exp score(y), (batch,), float64; its gradient is the marginals."""
        theta, lengths = self._batch(emissions, lengths, mask)
        return self._log_partition(theta, self._shared(), lengths)

    def _score(self, emissions: Any, outputs: Any, lengths: Any, mask: Any) -> Tensor:
        theta, lengths = self._batch(emissions, lengths, mask)
        y = self._outputs(outputs, theta, lengths)
        out: Tensor = self.operators.score(theta, *self._shared(), lengths, y, self.check)
        return out

    # ------------------------------------------------------------------ parts

    def _batch(self, emissions: Any, lengths: Any, mask: Any) -> tuple[Tensor, Tensor]:
        return as_batch(emissions, lengths, mask, self.n_labels, self.transitions, self.check)

    def _shared(self) -> tuple[Tensor, ...]:
        """Return the shared scores, with −inf for forbidden parts."""
        names = self.operators.shared
        if self._forbidden_transitions is None:
            return tuple(getattr(self, name) for name in names)
        masks = {name: getattr(self, f"_forbidden_{name}", None) for name in names}
        return tuple(
            getattr(self, name) if masks[name] is None else getattr(self, name).masked_fill(masks[name], -torch.inf)
            for name in names
        )

    def extra_repr(self) -> str:
        """Return the text of ``print(layer)``."""
        said = f"n_labels={self.n_labels}, loss={self.loss.name!r}, reduction={self.reduction!r}"
        return said if self.constraints is None else f"{said}, constraints={self.constraints!r}"


def _seed(random_state: Any) -> int:
    return check_random_seed(random_state) >> 1


_constant_seed = torch.compiler.assume_constant_result(_seed)


def _compiled_seed(random_state: Any) -> int:
    if isinstance(random_state, bool) or not isinstance(random_state, int):
        raise ValueError("a compiled sample needs an integer random_state: it draws the same outputs at each call")
    return _constant_seed(random_state)


def fused_log_loss(
    operators: Operators, parts: tuple[Tensor, ...], y: Tensor, lengths: Tensor, reduction: str, partial: bool,
    check: bool,
) -> Tensor:  # fmt: skip
    """Return the reduced log loss and its gradient in one pass."""
    if is_eager(parts[0]):
        weights: Any = {"mean": 1.0 / len(y), "sum": 1.0}.get(reduction)
        if weights is None:
            weights = reduction_weights(reduction, lengths)
        direct: Tensor = DirectLogLoss.apply(operators, *parts, y, lengths, weights, partial, check)
        return direct
    gradient = torch.is_grad_enabled() and any(x.requires_grad for x in parts)
    weights = reduction_weights(reduction, lengths)
    total: Tensor = operators.log_loss(*parts, lengths, y, weights, gradient, partial, check)[0]
    return total
