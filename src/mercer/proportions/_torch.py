"""Training of torch modules on shares of bags, a few bags per step; torch is imported on first use."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.proportions.gradient import Objective, Run, Shares

__all__ = ["Settings", "module_scores", "train_module"]

_ROWS = 1 << 14  # scored at a time without gradients


@dataclass(frozen=True)
class Settings:
    """Training parameters of `ProportionClassifier`."""

    loss: str
    alpha: float
    max_iter: int
    tol: float
    batch: int
    learning_rate: float
    patience: int


def _torch() -> Any:
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a module as scorer needs PyTorch, which is not installed: pip install mercer[torch]", name="torch"
        ) from error
    return torch


def _kind(module: Any) -> tuple[Any, Any]:
    """Type and device of the weights."""
    torch = _torch()
    first = next((p for p in module.parameters() if p.is_floating_point()), None)
    return (torch.get_default_dtype(), torch.device("cpu")) if first is None else (first.dtype, first.device)


def _tensor(module: Any, X: Any) -> Any:
    dense = X.toarray() if sp.issparse(X) else X
    dtype, device = _kind(module)
    return _torch().as_tensor(np.ascontiguousarray(dense)).to(device=device, dtype=dtype)


def _outputs(module: Any, X: Any, n_classes: int) -> Any:
    """What the module gives for rows: one column for two classes, otherwise one for each."""
    outputs = module(X)
    if outputs.ndim == 1:
        outputs = outputs[:, None]
    if (
        outputs.ndim != 2
        or len(outputs) != len(X)
        or outputs.shape[1] not in ({1, 2} if n_classes == 2 else {n_classes})
    ):
        wanted = "1 or 2 outputs" if n_classes == 2 else f"{n_classes} outputs"
        raise ValueError(f"scorer must give {wanted} for each of {len(X)} rows, got shape {tuple(outputs.shape)}")
    if n_classes == 2 and outputs.shape[1] == 2:
        outputs = outputs[:, 1:] - outputs[:, :1]
    return outputs


def module_scores(module: Any, X: Any, n_classes: int) -> np.ndarray:
    """Return the scores of all rows in evaluation mode, float64."""
    torch = _torch()
    module.eval()
    parts = []
    with torch.no_grad():
        for at in range(0, X.shape[0], _ROWS):
            parts.append(_outputs(module, _tensor(module, X[at : at + _ROWS]), n_classes).double().cpu().numpy())
    return np.concatenate(parts) if parts else np.zeros((0, 1 if n_classes == 2 else n_classes))


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """The generator of torch begins at a seed, and is what it was afterwards."""
    torch = _torch()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def train_module(
    module: Any,
    X: Any,
    shares: Shares,
    kept: np.ndarray,
    held: np.ndarray | None,
    seed: int,
    reset: bool,
    settings: Settings,
    stop: threading.Event,
    shown: Callable[[Run], None],
) -> Run:
    """Train by Adam over batches of items; keep the best state by training objective, or by held-out items."""
    torch = _torch()
    run, order = Run(), np.random.RandomState(seed)
    own, rows = shares.select(kept)
    whole = Objective(own, settings.loss)
    other = None if held is None else shares.select(held)
    check = None if other is None else (Objective(other[0], settings.loss), X[other[1]])
    decayed = [p for p in module.parameters() if p.requires_grad and p.ndim > 1]

    def note() -> None:
        value = whole(module_scores(module, X[rows], shares.n_classes))[0]
        value += 0.5 * settings.alpha * float(sum((p.detach().double() ** 2).sum() for p in decayed))
        out = None if check is None else check[0](module_scores(module, check[1], shares.n_classes))[0]
        better = (value if out is None else out) < run.score or run.w is None
        run.keep(copy.deepcopy(module) if better else None, value, out, settings.tol)
        shown(run)

    with _seeded(seed):
        if reset:
            for part in module.modules():
                if callable(getattr(part, "reset_parameters", None)):
                    part.reset_parameters()
        optimiser = torch.optim.Adam([p for p in module.parameters() if p.requires_grad], lr=settings.learning_rate)
        try:
            for _ in range(settings.max_iter):
                module.train()
                for items in _batches(order.permutation(kept), settings.batch):
                    _step(module, X, shares, items, decayed, whole.n, len(kept), settings, optimiser)
                note()
                if run.waited >= settings.patience:
                    run.converged = True
                    break
        except KeyboardInterrupt:
            stop.set()
            if run.w is None:
                note()
    return run


def _batches(order: np.ndarray, size: int) -> list[np.ndarray]:
    return [order[at : at + size] for at in range(0, len(order), size)]


def _step(
    module: Any,
    X: Any,
    shares: Shares,
    items: np.ndarray,
    decayed: list[Any],
    total: float,
    n_items: int,
    settings: Settings,
    optimiser: Any,
) -> None:
    """One step: the gradient in scores comes from `Objective`, that in weights from torch."""
    torch = _torch()
    part, rows = shares.select(np.sort(items))
    F = _outputs(module, _tensor(module, X[rows]), shares.n_classes)
    risk = Objective(part, settings.loss)
    _, G = risk(F.detach().double().cpu().numpy())
    G *= risk.n * n_items / (total * len(items))  # so that the mean over batches is the whole
    optimiser.zero_grad()
    F.backward(torch.as_tensor(G).to(device=F.device, dtype=F.dtype))
    for p in (p for p in decayed if p.grad is not None):
        p.grad.add_(p.detach(), alpha=settings.alpha)
    optimiser.step()
