"""Linear-chain conditional random fields as layers: exact losses and decoding over a network's emissions.

    score(y) = start[y_0] + Σ_t emissions[t, y_t] + Σ_{t≥1} transitions[y_{t−1}, y_t] + end[y_{T−1}]

    log             log Z − score(y)                                   gradient  marginals − 1_y
    hinge           max_z [Δ(y, z) + score(z)] − score(y)                        1_ẑ − 1_y
    squared-hinge   its square
    softmax-margin  log Σ_z exp(Δ(y, z) + score(z)) − score(y)                   marginals(θ + Δ) − 1_y
    hybrid(α)       α · log + (1 − α) · [1 + max_{z≠y} score(z) − score(y)]₊     the same blend

Where tags are unknown, the log loss has the log-partition of all labellings that agree with the known ones instead of
score(y). Tensors in main memory are computed by the compiled core, those on a GPU by kernels of our own.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mercer._validation import check_choice, check_count
from mercer.learning.losses import Loss
from mercer.nn import _chain_ops as ops
from mercer.nn._inputs import as_batch, as_tags, computed_in, length_mask
from mercer.nn._settings import (
    LOSSES,
    REDUCTIONS,
    cost_matrix,
    forbidden_masks,
    label_names,
    layer_loss,
    reduction_weights,
)
from mercer.structures.base import check_random_seed
from mercer.structures.constraints import Constraints

__all__ = ["CRF", "ChainCRF"]


class ChainCRF(nn.Module):
    """A linear-chain conditional random field over the emissions of a network.

    Calling the layer gives the loss; :meth:`decode`, :meth:`marginals`, :meth:`k_best`, :meth:`sample`,
    :meth:`entropy` and :meth:`log_partition` answer about the same scores. All of them are exact.

    Parameters
    ----------
    n_labels : int or sequence of labels
        Their number, or their names in order.
    loss : {"log", "hinge", "squared-hinge", "softmax-margin", "hybrid"} or Loss, default="log"
        As in :class:`mercer.tagging.Tagger`; ``Hybrid(alpha=0.3)`` for a configured one.
    constraints : Constraints or None
        Forbidden labellings, in training and decoding: scores of −inf, probabilities of 0. Their labels are the
        names in ``n_labels``, else those that ``Constraints.bio`` and its relatives were given, else numbers.
    cost : {"hamming"}, mapping, array or Cost, optional
        Δ of the margin losses; default: the number of wrong labels.
    reduction : {"mean", "sum", "token_mean", "none"}, default="mean"
        Mean or sum over the sequences of a batch, the sum divided by the number of positions, or one loss each.
    checkpoint : bool, default=False
        Keep nothing between the forward and the backward pass and compute the sums again: half the memory of a step,
        up to twice its time.
    check : bool, default=True
        Whether values are checked (tags in range, finite emissions, masks without holes, allowed tags). On a GPU this
        waits for the device once a call.
    device, dtype : optional
        Of the parameters; float32 or float64. Emissions may be half precision: sums are float32 then.

    Attributes
    ----------
    transitions : Parameter of shape (n_labels, n_labels)
        Score of label j after label i.
    start, end : Parameters of shape (n_labels,)

    Notes
    -----
    Sums run in the probability domain with a scale at every position, and again in the log domain where that
    underflows. Results are the same from run to run. Memory of a step is of the order of batch × time × labels.

    Gradients of the loss and of :meth:`log_partition` are exact; second derivatives raise NotImplementedError. The
    operators are registered with torch.library, so that ``torch.compile`` sees no graph break. Decoding cannot be
    exported to ONNX, which has no operator with a data-dependent walk back: export the network up to the emissions.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from mercer.nn import ChainCRF  # doctest: +SKIP
    >>> crf = ChainCRF(3)  # doctest: +SKIP
    >>> emissions = torch.tensor([[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0]]])  # doctest: +SKIP
    >>> crf.decode(emissions)  # doctest: +SKIP
    tensor([[0, 1]])
    >>> crf(emissions, torch.tensor([[0, 1]])).item()  # doctest: +SKIP
    0.334...
    """

    _forbidden_transitions: Tensor | None
    _forbidden_start: Tensor | None
    _forbidden_end: Tensor | None
    _cost: Tensor | None

    def __init__(
        self,
        n_labels: Any,
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
        self.loss = layer_loss(loss)
        self.constraints, self.checkpoint, self.check = constraints, bool(checkpoint), bool(check)
        self.reduction = check_choice("reduction", reduction, REDUCTIONS)
        kind = dtype or torch.get_default_dtype()
        if kind not in (torch.float32, torch.float64):
            raise ValueError(f"dtype must be torch.float32 or torch.float64, got {kind}")
        C = self.n_labels
        self.transitions = nn.Parameter(torch.zeros(C, C, dtype=kind, device=device))
        self.start = nn.Parameter(torch.zeros(C, dtype=kind, device=device))
        self.end = nn.Parameter(torch.zeros(C, dtype=kind, device=device))
        masks = forbidden_masks(constraints, C, self.labels)
        for i, name in enumerate(("transitions", "start", "end")):
            mask = None if masks is None else torch.from_numpy(masks[i]).to(device)
            self.register_buffer(f"_forbidden_{name}", mask, persistent=False)
        matrix = cost_matrix(self.loss, cost, C, self.labels)
        self.register_buffer("_cost", None if matrix is None else torch.from_numpy(matrix).to(device), persistent=False)

    def reset_parameters(self) -> None:
        """Set all parameters to 0: every allowed labelling is as probable as its emissions say."""
        for parameter in (self.transitions, self.start, self.end):
            nn.init.zeros_(parameter)

    # ------------------------------------------------------------------ the loss

    def forward(
        self, emissions: Any, tags: Any, lengths: Any = None, mask: Any = None, reduction: str | None = None
    ) -> Tensor:
        """Return the loss of the tags.

        Parameters
        ----------
        emissions : tensor of shape (batch, time, n_labels), or a packed or nested sequence of (time, n_labels)
        tags : integer tensor of shape (batch, time), or lists of numbers
            −100 or None where a tag is unknown (log loss only). What lies past the end of a sequence is not read.
        lengths : tensor or list of shape (batch,), optional
            Positions of each sequence; default all of ``time``.
        mask : bool tensor of shape (batch, time), optional
            Instead of lengths: true for the first positions of a sequence, false for the rest.
        reduction : optional
            Another one than the layer's.
        """
        theta, lengths = self._batch(emissions, lengths, mask)
        y = as_tags(tags, theta)
        wanted = self.reduction if reduction is None else check_choice("reduction", reduction, REDUCTIONS)
        shared, name = self._shared(), self.loss.name
        kind = computed_in(theta, self.transitions)
        if name in ("log", "softmax-margin") and wanted != "none" and not self.checkpoint:
            augmented = theta if name == "log" else self._augmented(theta, y, lengths)
            return fused_log_loss((augmented, *shared), y, lengths, wanted, name == "log", self.check)
        weights = reduction_weights(wanted, lengths)
        values = self._losses(theta, shared, y, lengths)
        return values.to(kind) if wanted == "none" else (weights * values).sum().to(kind)

    def _losses(self, theta: Tensor, shared: tuple[Tensor, Tensor, Tensor], y: Tensor, lengths: Tensor) -> Tensor:
        """The loss of each sequence, from log-partitions, decoding and scores."""
        name = self.loss.name
        if name == "log":
            return torch.ops.mercer.chain_log_partition(theta, *shared, lengths, self.check) - self._agreeing(
                theta, shared, y, lengths
            )
        truth = torch.ops.mercer.chain_score(theta, *shared, y, lengths, self.check)
        if name == "hybrid":
            return self._hybrid(theta, shared, y, lengths, truth)
        augmented = self._augmented(theta, y, lengths)
        if name == "softmax-margin":
            value: Tensor = torch.ops.mercer.chain_log_partition(augmented, *shared, lengths, self.check)
            return value - truth
        with torch.no_grad():
            z, _ = torch.ops.mercer.chain_decode(augmented, *shared, lengths, self.check)
        hinge = (torch.ops.mercer.chain_score(augmented, *shared, z, lengths, False) - truth).clamp(min=0.0)
        return hinge * hinge if name == "squared-hinge" else hinge

    def _agreeing(self, theta: Tensor, shared: Any, y: Tensor, lengths: Tensor) -> Tensor:
        """log Σ exp score over the labellings that agree with the tags."""
        value: Tensor = torch.ops.mercer.chain_log_partition(ops.restricted(theta, y, lengths), *shared, lengths, False)
        if self.check:
            torch.ops.mercer.check_agreement(value, y, lengths, self.n_labels)
        return value

    def _hybrid(self, theta: Tensor, shared: Any, y: Tensor, lengths: Tensor, truth: Tensor) -> Tensor:
        alpha = float(self.loss.alpha)  # type: ignore[attr-defined]
        with torch.no_grad():
            labels, scores = torch.ops.mercer.chain_k_best(theta, *shared, lengths, 2)
            outside = ~length_mask(lengths, y.shape[1])
            same = ((labels[:, 0] == y) | outside).all(1)
            other = torch.where(same[:, None], labels[:, 1], labels[:, 0])
            none = torch.isneginf(torch.where(same, scores[:, 1], scores[:, 0]))  # the tags are all there is
            other = torch.where(none[:, None], y, other)
        lead = 1.0 + torch.ops.mercer.chain_score(theta, *shared, other, lengths, False) - truth
        hinge = torch.where(none, 0.0, lead.clamp(min=0.0))
        if alpha == 0.0:
            return hinge
        log = torch.ops.mercer.chain_log_partition(theta, *shared, lengths, self.check) - truth
        return alpha * log + (1.0 - alpha) * hinge

    def _augmented(self, theta: Tensor, y: Tensor, lengths: Tensor) -> Tensor:
        """θ + Δ(y, ·)."""
        assert self._cost is not None
        known = y.clamp(0, self.n_labels - 1)
        return theta + self._cost.to(computed_in(theta, self.transitions))[known]

    # ------------------------------------------------------------------ verbs

    def decode(self, emissions: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return the best labels, an int64 tensor of shape (batch, time) with −1 past the end of a sequence."""
        return self._decoded(emissions, lengths, mask)[0]

    def best_score(self, emissions: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return the score of the best labels, (batch,), float64."""
        return self._decoded(emissions, lengths, mask)[1]

    def _decoded(self, emissions: Any, lengths: Any, mask: Any) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            theta, lengths = self._batch(emissions, lengths, mask)
            labels, score = torch.ops.mercer.chain_decode(theta, *self._shared(), lengths, self.check)
            return labels, score

    def k_best(self, emissions: Any, k: int, lengths: Any = None, mask: Any = None) -> tuple[Tensor, Tensor]:
        """Return the k best labellings and their log-probabilities.

        Returns
        -------
        labels : int64 tensor of shape (batch, k, time), best first
            −1 past the end of a sequence, and where a sequence has fewer than k labellings.
        log_probabilities : float64 tensor of shape (batch, k)
            −inf where there are fewer.
        """
        check_count("k", k)
        with torch.no_grad():
            theta, lengths = self._batch(emissions, lengths, mask)
            shared = self._shared()
            labels, scores = torch.ops.mercer.chain_k_best(theta, *shared, lengths, k)
            log_z = torch.ops.mercer.chain_log_partition(theta, *shared, lengths, self.check)
            return labels, scores - log_z[:, None]

    def sample(
        self, emissions: Any, size: int = 1, lengths: Any = None, mask: Any = None, random_state: Any = None
    ) -> Tensor:
        """Return labellings drawn from p(y | x), an int64 tensor of shape (batch, size, time).

        The same seed draws the same labellings on one kind of device; the numbers of a GPU are others.
        """
        check_count("size", size)
        seed = check_random_seed(random_state) >> 1
        with torch.no_grad():
            theta, lengths = self._batch(emissions, lengths, mask)
            out: Tensor = torch.ops.mercer.chain_sample(theta, *self._shared(), lengths, size, seed)
            return out

    def marginals(self, emissions: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return p(label at a position), (batch, time, n_labels); 0 past the end. It has no derivative."""
        theta, lengths = self._batch(emissions, lengths, mask)
        ones = torch.ones_like(lengths, dtype=torch.float64)
        out: Tensor = torch.ops.mercer.chain_marginals(theta, *self._shared(), lengths, ones)[1]
        return out

    def entropy(self, emissions: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return the entropy of p(y | x) in nats, (batch,), float64. It has no derivative."""
        theta, lengths = self._batch(emissions, lengths, mask)
        out: Tensor = torch.ops.mercer.chain_entropy(theta, *self._shared(), lengths)
        return out

    def log_partition(self, emissions: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return log Σ_y exp score(y), (batch,), float64; its gradient are the marginals."""
        theta, lengths = self._batch(emissions, lengths, mask)
        out: Tensor = torch.ops.mercer.chain_log_partition(theta, *self._shared(), lengths, self.check)
        return out

    def score(self, emissions: Any, tags: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return the score of known tags, (batch,), float64."""
        theta, lengths = self._batch(emissions, lengths, mask)
        y = as_tags(tags, theta)
        out: Tensor = torch.ops.mercer.chain_score(theta, *self._shared(), y, lengths, self.check)
        return out

    # ------------------------------------------------------------------ between the worlds

    @classmethod
    def from_tagger(cls, tagger: Any, **options: Any) -> ChainCRF:
        """Return the layer with the transitions and constraints of a fitted :class:`mercer.tagging.Tagger`.

        Parameters
        ----------
        tagger : Tagger
        **options
            Of the constructor. The loss is the tagger's where the layer knows it.

        See Also
        --------
        emissions_of : the weights of its features as ``torch.nn.Linear``.
        """
        structure = _chain_of(tagger)
        name = getattr(tagger.loss, "name", tagger.loss)
        made = cls(
            list(tagger.classes_), **{"loss": tagger.loss if name in LOSSES else "log",
                                      "constraints": tagger.constraints, **options},
        )  # fmt: skip
        C = structure.n_labels
        with torch.no_grad():
            for parameter, part in ((made.transitions, "transitions"), (made.start, "start"), (made.end, "end")):
                values = tagger.coef_[structure.slices[part]].reshape(parameter.shape)
                parameter.copy_(torch.from_numpy(np.array(values)))
        assert made.n_labels == C
        return made

    @staticmethod
    def emissions_of(tagger: Any, dtype: torch.dtype | None = None) -> nn.Linear:
        """Return the linear layer from features to emissions that a fitted tagger has."""
        structure = _chain_of(tagger)
        dense = np.zeros(structure.n_features * structure.n_labels)
        dense[structure.keys("nodes")] = tagger.coef_[structure.slices["nodes"]]
        weight = torch.from_numpy(np.ascontiguousarray(dense.reshape(structure.n_features, -1).T))
        made = nn.Linear(structure.n_features, structure.n_labels, bias=False, dtype=dtype)
        with torch.no_grad():
            made.weight.copy_(weight)
        return made

    def to_tagger(self, tagger: Any, emissions: nn.Linear | None = None) -> Any:
        """Return a copy of a fitted tagger with the transitions of this layer.

        Parameters
        ----------
        tagger : Tagger
            Fitted, with the labels of this layer.
        emissions : torch.nn.Linear without bias, optional
            New weights of its features. Weights of (feature, label) pairs that the tagger does not have must be 0.
        """
        structure = _chain_of(tagger)
        if structure.n_labels != self.n_labels:
            raise ValueError(f"the tagger has {structure.n_labels} labels, the layer {self.n_labels}")
        made = copy.deepcopy(tagger)
        coef = np.array(made.coef_, dtype=np.float64)
        for parameter, part in ((self.transitions, "transitions"), (self.start, "start"), (self.end, "end")):
            coef[structure.slices[part]] = parameter.detach().double().cpu().numpy().ravel()
        if emissions is not None:
            if emissions.bias is not None:
                raise ValueError("a tagger has no bias of labels: use a linear layer without one")
            dense = emissions.weight.detach().double().cpu().numpy().T
            if dense.shape != (structure.n_features, structure.n_labels):
                raise ValueError(
                    f"emissions must go from {structure.n_features} features to {structure.n_labels} labels"
                )
            keys, flat = structure.keys("nodes"), dense.ravel()
            others = np.delete(flat, keys)
            if others.any():
                raise ValueError(
                    f"{np.count_nonzero(others)} weights are of (feature, label) pairs that the tagger does not have: "
                    "fit it with weights='all'"
                )
            coef[structure.slices["nodes"]] = flat[keys]
        made.coef_ = coef
        return made

    # ------------------------------------------------------------------ parts

    def _batch(self, emissions: Any, lengths: Any, mask: Any) -> tuple[Tensor, Tensor]:
        if torch.onnx.is_in_onnx_export():
            raise NotImplementedError(
                "ChainCRF cannot be exported to ONNX, which has no operator for its recursions: export the network up "
                "to its emissions and decode them with ChainCRF.decode"
            )
        return as_batch(emissions, lengths, mask, self.n_labels, self.transitions, self.check)

    def _shared(self) -> tuple[Tensor, Tensor, Tensor]:
        """Transitions, start and end, −inf where forbidden."""
        parts = self.transitions, self.start, self.end
        if self._forbidden_transitions is None:
            return parts
        masks: Any = (self._forbidden_transitions, self._forbidden_start, self._forbidden_end)
        returned: Any = tuple(p.masked_fill(m, -torch.inf) for p, m in zip(parts, masks, strict=True))
        return returned

    def extra_repr(self) -> str:
        """What ``print(layer)`` says."""
        said = f"n_labels={self.n_labels}, loss={self.loss.name!r}, reduction={self.reduction!r}"
        return said if self.constraints is None else f"{said}, constraints={self.constraints!r}"


def fused_log_loss(
    parts: tuple[Tensor, Tensor, Tensor, Tensor], y: Tensor, lengths: Tensor, reduction: str, partial: bool, check: bool
) -> Tensor:
    """The reduced log loss and its gradient in one pass."""
    if ops.is_eager(parts[0]):
        weights: Any = {"mean": 1.0 / len(y), "sum": 1.0}.get(reduction)
        if weights is None:
            weights = reduction_weights(reduction, lengths)
        direct: Tensor = ops.DirectLogLoss.apply(*parts, y, lengths, weights, partial, check)
        return direct
    gradient = torch.is_grad_enabled() and any(x.requires_grad for x in parts)
    weights = reduction_weights(reduction, lengths)
    total: Tensor = torch.ops.mercer.chain_log_loss(*parts, y, lengths, weights, gradient, partial, check)[0]
    return total


def _chain_of(tagger: Any) -> Any:
    """The structure of a fitted tagger whose transitions depend on labels alone."""
    structure = getattr(tagger, "structure_", None)
    if structure is None:
        raise ValueError("the tagger is not fitted: fit it first")
    if structure.n_edge_features:
        raise ValueError("the tagger has observation-dependent transitions, which the layer has not")
    return structure


class CRF(nn.Module):
    """:class:`ChainCRF` under the names of pytorch-crf: change the import and keep the rest.

    ``forward`` returns the log-likelihood (to be maximised), ``decode`` lists. Weights saved from pytorch-crf load.

    Parameters
    ----------
    num_tags : int
    batch_first : bool, default=False
        Whether tensors are (batch, time, …) instead of (time, batch, …).

    Examples
    --------
    >>> from mercer.nn import CRF  # doctest: +SKIP
    >>> CRF(5, batch_first=True).decode(torch.zeros(1, 3, 5))  # doctest: +SKIP
    [[0, 0, 0]]
    """

    def __init__(self, num_tags: int, batch_first: bool = False) -> None:
        super().__init__()
        self.num_tags, self.batch_first = label_names(num_tags)[0], batch_first
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters uniformly from −0.1 to 0.1."""
        for parameter in (self.start_transitions, self.end_transitions, self.transitions):
            nn.init.uniform_(parameter, -0.1, 0.1)

    def forward(self, emissions: Tensor, tags: Tensor, mask: Tensor | None = None, reduction: str = "sum") -> Tensor:
        """Return the log-likelihood of the tags; reduction is "sum", "mean", "token_mean" or "none"."""
        check_choice("reduction", reduction, REDUCTIONS)
        theta, lengths = self._batch(emissions, mask)
        y = as_tags(tags if self.batch_first else tags.transpose(0, 1), theta)
        parts = theta, self.transitions, self.start_transitions, self.end_transitions
        if reduction == "none":
            log_z = torch.ops.mercer.chain_log_partition(*parts, lengths, True)
            truth = torch.ops.mercer.chain_score(*parts, y, lengths, True)
            return (truth - log_z).to(computed_in(theta, self.transitions))
        return -fused_log_loss(parts, y, lengths, reduction, True, True)

    def decode(self, emissions: Tensor, mask: Tensor | None = None) -> list[list[int]]:
        """Return the best tags of each sequence."""
        with torch.no_grad():
            theta, lengths = self._batch(emissions, mask)
            parts = theta, self.transitions, self.start_transitions, self.end_transitions
            labels, _ = torch.ops.mercer.chain_decode(*parts, lengths, True)
        return [row[:n] for row, n in zip(labels.tolist(), lengths.tolist(), strict=True)]

    def _batch(self, emissions: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        if not self.batch_first:
            emissions = emissions.transpose(0, 1)
            mask = None if mask is None else mask.transpose(0, 1)
        return as_batch(emissions, None, mask, self.num_tags, self.transitions, True)

    def extra_repr(self) -> str:
        """What ``print(layer)`` says."""
        return f"num_tags={self.num_tags}, batch_first={self.batch_first}"
