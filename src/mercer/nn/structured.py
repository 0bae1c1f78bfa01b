"""A loss over part scores of a network for any structure of the library, on the CPU.

loss(θ, y) and its gradient with respect to θ come from the methods of the structure (`mercer.learning.losses`)
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mercer._validation import check_choice
from mercer.data.labels import TagSequences
from mercer.learning.losses import Loss, resolve_loss
from mercer.structures.base import Structure
from mercer.structures.costs import resolve_cost

__all__ = ["StructuredLoss"]

_GRADIENTS = {"w": "total"}  # where marginals have another name than scores
_PLAIN = "probabilities"  # of structures whose θ is an array


class _Value(torch.autograd.Function):
    """The summed loss, computed together with its gradient."""

    @staticmethod
    def forward(ctx: Any, layer: Any, theta: Any, y: Any, names: tuple[str, ...], *tensors: Tensor) -> Tensor:
        arrays = [x.detach().numpy() for x in tensors]
        if names:
            given = copy.copy(theta)
            for name, array in zip(names, arrays, strict=True):
                setattr(given, name, np.ascontiguousarray(array))
        else:
            given = arrays[0].astype(np.float64)
        values, mu = layer.loss.value_and_gradient(layer.structure, given, y)
        made = []
        for name, x in zip(names or (_PLAIN,), tensors, strict=True):
            gradient = np.asarray(getattr(mu, _GRADIENTS.get(name, name)))
            while gradient.ndim > x.dim():  # scores that the examples share
                gradient = gradient.sum(axis=0)
            made.append(torch.from_numpy(np.array(gradient)).to(x.dtype).reshape(x.shape))
        ctx.save_for_backward(*made)
        return torch.tensor(float(np.sum(values)), dtype=torch.float64)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        if torch.is_grad_enabled():
            raise NotImplementedError("StructuredLoss does not support second derivatives")
        return None, None, None, None, *(part * gradients[0].to(part.dtype) for part in ctx.saved_tensors)


class StructuredLoss(nn.Module):
    """A loss over the part scores of any structure.

    Parameters
    ----------
    structure : Structure
        For example :class:`mercer.structures.Chain`, ``Segments``, ``Labels``, ``GraphLabels`` or ``LabelSets``.
    loss : str or Loss, default="log"
        Any loss of :mod:`mercer.learning`.
    cost : optional
        Δ of the margin losses; default: the structure's own.
    reduction : {"mean", "sum"}, default="mean"
        Reduction over the examples.

    Notes
    -----
    θ is what ``structure.scores`` returns, with tensors in place of arrays: a tensor for ``Labels`` and ``Enumerated``,
    ``ChainScores``, ``SegmentScores``, ``GraphScores`` and the like for others. All tensors must be in main memory.

    Examples
    --------
    >>> import numpy as np  # doctest: +SKIP
    >>> import torch  # doctest: +SKIP
    >>> from mercer.nn import StructuredLoss  # doctest: +SKIP
    >>> from mercer.structures import Labels  # doctest: +SKIP
    >>> theta = torch.tensor([[2.0, 0.0, 0.0]], requires_grad=True)  # doctest: +SKIP
    >>> StructuredLoss(Labels(3, 0), loss="hinge")(theta, [1])  # doctest: +SKIP
    tensor(3., grad_fn=<...>)
    """

    def __init__(
        self, structure: Structure, loss: str | Loss = "log", *, cost: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        if not isinstance(structure, Structure):
            raise TypeError(f"structure must be a Structure of mercer.structures, got {type(structure).__name__}")
        self.structure = structure
        self.loss = resolve_loss(loss, None if cost is None else resolve_cost(cost))
        self.reduction = check_choice("reduction", reduction, ("mean", "sum"))

    def forward(self, theta: Any, y: Any) -> Tensor:
        """Return the loss of outputs y in the form of the structure; tensors and lists of labels also work."""
        if isinstance(theta, Tensor):
            names: tuple[str, ...] = ()
            tensors = [theta]
        else:
            names = tuple(name for name, value in vars(theta).items() if isinstance(value, Tensor))
            tensors = [getattr(theta, name) for name in names]
        if not tensors:
            raise TypeError("theta contains no tensor: pass the part scores as tensors")
        for tensor in tensors:
            if tensor.device.type != "cpu":
                raise ValueError(f"StructuredLoss needs CPU tensors, but theta is on {tensor.device}: use theta.cpu()")
            if bool(torch.isnan(tensor).any()) or bool(torch.isposinf(tensor).any()):
                raise ValueError("theta contains NaN or +inf")
        kept = [x.to(torch.float64 if x.dtype == torch.float64 else torch.float32) for x in tensors]
        total = _Value.apply(self, theta, _outputs(theta, y), names, *kept)
        n = len(theta)
        value: Tensor = total / n if self.reduction == "mean" and n else total
        return value.to(kept[0].dtype)

    def extra_repr(self) -> str:
        """Return the text of ``print(layer)``."""
        return f"{type(self.structure).__name__}, loss={self.loss.name!r}, reduction={self.reduction!r}"


def _outputs(theta: Any, y: Any) -> Any:
    """Return plain labels in the form of the structure."""
    if isinstance(y, Tensor):
        y = y.detach().cpu().numpy()
    if not isinstance(y, (np.ndarray, list)):
        return y
    labels = np.asarray(y)
    if hasattr(theta, "offsets") and hasattr(theta, "nodes"):
        return TagSequences(np.ascontiguousarray(labels, dtype=np.int32), np.asarray(theta.offsets))
    return labels
