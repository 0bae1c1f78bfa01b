"""Linear-chain conditional random fields as layers: exact losses and decoding over a network's emissions.

    score(y) = start[y_0] + Σ_t emissions[t, y_t] + Σ_{t≥1} transitions[y_{t−1}, y_t] + end[y_{T−1}]

Losses and verbs are those of `mercer.nn._layer`. Tensors in main memory are computed by the compiled core, those on a
GPU by kernels of our own.
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
            −100 or None where a tag is unknown (log loss only). What lies past the end of a sequence is not read.
        lengths : tensor or list of shape (batch,), optional
            Positions of each sequence; default all of ``time``.
        mask : bool tensor of shape (batch, time), optional
            Instead of lengths: true for the first positions of a sequence, false for the rest.
        reduction : optional
            Another one than the layer's.
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
        """What ``print(layer)`` says."""
        return f"num_tags={self.num_tags}, batch_first={self.batch_first}"
