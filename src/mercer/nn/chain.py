"""Linear-chain conditional random fields as layers: exact losses and decoding over a network's emissions.

    score(y) = start[y_0] + Σ_t emissions[t, y_t] + Σ_{t≥1} transitions[y_{t−1}, y_t] + end[y_{T−1}]

Losses and inference are those of `mercer.nn._layer`. The compiled core processes CPU tensors; custom kernels process
GPU tensors.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mercer._validation import check_choice
from mercer.learning.losses import Loss
from mercer.nn._chain_ops import CHAIN
from mercer.nn._inputs import as_batch, as_tags, computed_in
from mercer.nn._layer import StructuredLayer, fused_log_loss
from mercer.nn._settings import LOSSES, REDUCTIONS, label_names
from mercer.structures.constraints import Constraints

__all__ = ["CRF", "ChainCRF"]


class ChainCRF(StructuredLayer):
    """A linear-chain conditional random field over the emissions of a network.

    Calling the layer returns the loss. :meth:`decode`, :meth:`marginals`, :meth:`k_best`, :meth:`sample`,
    :meth:`entropy` and :meth:`log_partition` use the same scores. All of them are exact.

    Parameters
    ----------
    n_labels : int or sequence of labels
        The number of labels, or their names in order.
    loss : {"log", "hinge", "squared-hinge", "softmax-margin", "hybrid"} or Loss, default="log"
        As in :class:`mercer.tagging.Tagger`; pass an object such as ``Hybrid(alpha=0.3)`` to configure a loss.
    constraints : Constraints or None
        Forbidden labellings, in training and decoding: scores of −inf, probabilities of 0. Their labels are the names
        in ``n_labels``, otherwise the names passed to ``Constraints.bio`` and similar constructors, otherwise numbers.
    cost : {"hamming"}, mapping, array or Cost, optional
        Δ of the margin losses; default: the number of wrong labels.
    reduction : {"mean", "sum", "token_mean", "none"}, default="mean"
        Mean or sum over the sequences of a batch, the sum divided by the number of positions, or one loss per sequence.
    checkpoint : bool, default=False
        Recompute the sums in the backward pass instead of storing them: half the memory of a step, up to twice its
        time.
    check : bool, default=True
        Whether values are checked (tags in range, finite emissions, masks without holes, allowed tags). On a GPU this
        synchronises with the device once per call.
    device, dtype : optional
        Device and type of the parameters; float32 or float64. Emissions may be half precision; sums are then float32.

    Attributes
    ----------
    transitions : Parameter of shape (n_labels, n_labels)
        Score of label j after label i.
    start, end : Parameters of shape (n_labels,)

    Notes ----- Sums use the probability domain with a scale at every position, and the log domain for sequences that
    underflow. Results are deterministic. The memory of a step is O(batch × time × labels).

    Gradients of the loss and of :meth:`log_partition` are exact; second derivatives raise NotImplementedError. The
    operators are registered with torch.library, so ``torch.compile`` has no graph break. Decoding cannot be exported to
    ONNX, which has no operator for data-dependent backtracking: export the network up to the emissions.

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

    operators = CHAIN

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
        super().__init__(
            n_labels, {}, loss=loss, constraints=constraints, cost=cost, reduction=reduction, checkpoint=checkpoint,
            check=check, device=device, dtype=dtype,
        )  # fmt: skip

    def forward(
        self, emissions: Any, tags: Any, lengths: Any = None, mask: Any = None, reduction: str | None = None
    ) -> Tensor:
        """Return the loss of the tags.

        Parameters
        ----------
        emissions : tensor of shape (batch, time, n_labels), or a packed or nested sequence of (time, n_labels)
        tags : integer tensor of shape (batch, time), or lists of numbers
            −100 or None marks an unknown tag (log loss only). Values past the end of a sequence are ignored.
        lengths : tensor or list of shape (batch,), optional
            Number of positions of each sequence; default: all of ``time``.
        mask : bool tensor of shape (batch, time), optional
            Alternative to lengths: true for the first positions of a sequence, false for the rest.
        reduction : optional
            Overrides the reduction of the layer.
        """
        return self._loss(emissions, tags, lengths, mask, reduction)

    def score(self, emissions: Any, tags: Any, lengths: Any = None, mask: Any = None) -> Tensor:
        """Return the score of known tags, (batch,), float64."""
        return self._score(emissions, tags, lengths, mask)

    def _outputs(self, given: Any, theta: Tensor, lengths: Tensor) -> Tensor:
        return as_tags(given, theta)

    def _labels_at(self, y: Tensor) -> Tensor:
        return y

    # ------------------------------------------------------------------ between the worlds

    @classmethod
    def from_tagger(cls, tagger: Any, **options: Any) -> ChainCRF:
        """Return the layer with the transitions and constraints of a fitted :class:`mercer.tagging.Tagger`.

        Parameters
        ----------
        tagger : Tagger
        **options
            Arguments of the constructor. The loss defaults to the loss of the tagger if the layer supports it.

        See Also
        --------
        emissions_of : The weights of the tagger's features as ``torch.nn.Linear``.
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
        """Return the linear layer from features to emissions of a fitted tagger."""
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
            A fitted tagger with the labels of this layer.
        emissions : torch.nn.Linear without bias, optional
            New weights of its features. Weights of (feature, label) pairs that are missing in the tagger must be 0.
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
                raise ValueError("a tagger has no label bias: use a linear layer without bias")
            dense = emissions.weight.detach().double().cpu().numpy().T
            if dense.shape != (structure.n_features, structure.n_labels):
                raise ValueError(
                    f"emissions must go from {structure.n_features} features to {structure.n_labels} labels"
                )
            keys, flat = structure.keys("nodes"), dense.ravel()
            others = np.delete(flat, keys)
            if others.any():
                raise ValueError(
                    f"{np.count_nonzero(others)} weights belong to (feature, label) pairs missing in the tagger: "
                    "fit it with weights='all'"
                )
            coef[structure.slices["nodes"]] = flat[keys]
        made.coef_ = coef
        return made


def _chain_of(tagger: Any) -> Any:
    """Return the structure of a fitted tagger whose transitions depend only on labels."""
    structure = getattr(tagger, "structure_", None)
    if structure is None:
        raise ValueError("the tagger is not fitted: fit it first")
    if structure.n_edge_features:
        raise ValueError("the tagger has observation-dependent transitions, which the layer does not support")
    return structure


class CRF(nn.Module):
    """:class:`ChainCRF` with the interface of pytorch-crf, as a drop-in replacement.

    ``forward`` returns the log-likelihood (to be maximised), and ``decode`` returns lists. State dicts of pytorch-crf
    can be loaded.

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
            truth = CHAIN.score(*parts, lengths, y, True)
            return (truth - CHAIN.log_partition(*parts, lengths, None, True)).to(computed_in(theta, self.transitions))
        return -fused_log_loss(CHAIN, parts, y, lengths, reduction, True, True)

    def decode(self, emissions: Tensor, mask: Tensor | None = None) -> list[list[int]]:
        """Return the best tags of each sequence."""
        with torch.no_grad():
            theta, lengths = self._batch(emissions, mask)
            parts = theta, self.transitions, self.start_transitions, self.end_transitions
            labels, _ = CHAIN.decode(*parts, lengths, True)
        return [row[:n] for row, n in zip(labels.tolist(), lengths.tolist(), strict=True)]

    def _batch(self, emissions: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        if not self.batch_first:
            emissions = emissions.transpose(0, 1)
            mask = None if mask is None else mask.transpose(0, 1)
        return as_batch(emissions, None, mask, self.num_tags, self.transitions, True)

    def extra_repr(self) -> str:
        """Return the text of ``print(layer)``."""
        return f"num_tags={self.num_tags}, batch_first={self.batch_first}"
