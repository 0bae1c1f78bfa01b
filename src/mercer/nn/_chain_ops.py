"""The operators of chains, registered with torch.library: fake tensors, torch.compile and autograd know them.

    mercer::chain_log_partition   log Z of each sequence                        gradient: chain_marginals
    mercer::chain_score           the score of known labels                     gradient: chain_counts
    mercer::chain_log_loss        Σ_i w_i (log Z_i − score(y_i)), with its gradient, in one pass
    mercer::chain_marginals, chain_counts, chain_entropy, chain_decode, chain_k_best, chain_sample

Values are float64: for long sequences log Z and score are large and nearly equal. Second derivatives are refused.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from mercer.nn import _chain_core, _chain_torch
from mercer.nn._inputs import UNKNOWN, computed_in, length_mask

__all__ = ["backend", "chain_log_loss", "chain_log_partition", "chain_score"]

_said: list[str] = []


def say_once(text: str) -> None:
    """Warn the first time."""
    if text not in _said:
        _said.append(text)
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def backend(emissions: Tensor) -> Any:
    """The module that has the verbs for this device."""
    if emissions.device.type == "cpu":
        return _chain_core
    if emissions.device.type == "cuda":
        from mercer.nn import _chain_cuda

        reason = _chain_cuda.missing(emissions.device)
        if reason is None:
            return _chain_cuda
        say_once(
            f"no kernels of mercer.nn on {emissions.device} ({reason}): operations of torch are used, which are slow"
        )
    return _chain_torch


def _prepared(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> tuple[Any, Tensor, Any]:
    """Backend, emissions and shared scores in the type they are computed in (kernels read halves themselves)."""
    kind, module = computed_in(emissions, transitions), backend(emissions)
    if emissions.device.type != "cuda":
        emissions = emissions.to(kind)
    return module, emissions, tuple(x.to(kind) for x in (transitions, start, end))


def _refuse(name: str) -> Any:
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError(
            f"{name} has no derivative here: second derivatives of the log-partition are not computed"
        )

    return backward


def _no_context(ctx: Any, inputs: Any, output: Any) -> None:
    """Nothing is kept."""


def _named(dead: Tensor, text: str) -> None:
    if bool(dead.any()):
        raise ValueError(text.format(int(dead.nonzero()[0])))


UNKNOWN_TAGS = f"some tags are unknown ({UNKNOWN} or None): the loss needs all of them; the log loss does not"
NO_LABELLING = "no labelling of sequence {} is allowed: its emissions and the constraints forbid all"
FORBIDDEN = "the tags of sequence {} are forbidden: the constraints, or emissions of −inf, exclude them"


# ---------------------------------------------------------------------- log Z and its gradient


@torch.library.custom_op("mercer::chain_log_partition", mutates_args=())
def chain_log_partition(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, check: bool
) -> Tensor:
    """log Z of each sequence, float64."""
    module, theta, shared = _prepared(emissions, transitions, start, end)
    value: Tensor = module.log_partition(theta, shared, lengths)
    if check:
        _check_finite(value, theta)
    return value


def _check_finite(value: Tensor, emissions: Tensor) -> None:
    if emissions.device.type != "cpu":  # the core looks by itself
        _named(torch.isnan(value) | torch.isposinf(value), "the scores of sequence {} are NaN or +inf")


@chain_log_partition.register_fake
def _(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, check: bool) -> Tensor:
    return emissions.new_empty(emissions.shape[:1], dtype=torch.float64)


def _keep_scores(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:5])


def _log_partition_backward(ctx: Any, gradient: Tensor) -> Any:
    _, *parts = torch.ops.mercer.chain_marginals(*ctx.saved_tensors, gradient)
    return *(part.to(x.dtype) for part, x in zip(parts, ctx.saved_tensors, strict=False)), None, None


chain_log_partition.register_autograd(_log_partition_backward, setup_context=_keep_scores)


@torch.library.custom_op("mercer::chain_marginals", mutates_args=())
def chain_marginals(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """log Z, and the marginals of nodes, transitions, first and last labels, times the weights of the sequences."""
    module, theta, shared = _prepared(emissions, transitions, start, end)
    kind = computed_in(emissions, transitions)
    log_z, *parts = module.marginals(theta, shared, lengths, weights)
    nodes, pairs, first, last = (part.to(kind).contiguous() for part in parts)
    return log_z, nodes, pairs, first, last


@chain_marginals.register_fake
def _(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    kind = computed_in(emissions, transitions)
    parts = [torch.empty(x.shape, dtype=kind, device=x.device) for x in (emissions, transitions, start, end)]
    returned: Any = (emissions.new_empty(emissions.shape[:1], dtype=torch.float64), *parts)
    return returned


chain_marginals.register_autograd(_refuse("the marginals of a chain"), setup_context=_no_context)


@torch.library.custom_op("mercer::chain_entropy", mutates_args=())
def chain_entropy(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor) -> Tensor:
    """The entropy of each sequence, float64."""
    module, theta, shared = _prepared(emissions, transitions, start, end)
    out: Tensor = module.entropy(theta, shared, lengths)
    return out


@chain_entropy.register_fake
def _(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor) -> Tensor:
    return emissions.new_empty(emissions.shape[:1], dtype=torch.float64)


chain_entropy.register_autograd(_refuse("the entropy of a chain"), setup_context=_no_context)


# ---------------------------------------------------------------------- scores of labellings


@torch.library.custom_op("mercer::chain_score", mutates_args=())
def chain_score(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, tags: Tensor, lengths: Tensor, check: bool
) -> Tensor:
    """The score of known labels, float64."""
    module, theta, shared = _prepared(emissions, transitions, start, end)
    if check and not check_tags(tags, lengths, emissions.shape[2]):
        raise ValueError(UNKNOWN_TAGS)
    value: Tensor = module.score(theta, shared, tags, lengths)
    if check:
        _named(torch.isneginf(value), FORBIDDEN)
    return value


@chain_score.register_fake
def _(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, tags: Tensor, lengths: Tensor, check: bool
) -> Tensor:
    return emissions.new_empty(emissions.shape[:1], dtype=torch.float64)


def check_tags(tags: Tensor, lengths: Tensor, n_labels: int) -> bool:
    """Whether all tags are known; raises where one is out of range."""
    if tags.device.type == "cpu":
        return _chain_core.known(tags, lengths, n_labels)
    inside = length_mask(lengths, tags.shape[1])
    unknown, above = inside & (tags == UNKNOWN), inside & (tags >= n_labels)
    state = torch.stack([unknown.any(), (inside & (tags < 0) & ~unknown).any() | above.any()]).tolist()
    if state[1]:
        _chain_core.known(tags.cpu(), lengths.cpu(), n_labels)
    return not state[0]


@torch.library.custom_op("mercer::check_agreement", mutates_args=())
def check_agreement(value: Tensor, tags: Tensor, lengths: Tensor, n_labels: int) -> Tensor:
    """Raise where tags are out of range or no labelling agrees with them."""
    check_tags(tags, lengths, n_labels)
    _named(torch.isneginf(value), FORBIDDEN)
    return torch.zeros(0)


@check_agreement.register_fake
def _(value: Tensor, tags: Tensor, lengths: Tensor, n_labels: int) -> Tensor:
    return torch.empty(0)


check_agreement.register_autograd(lambda ctx, gradient: (None, None, None, None), setup_context=_no_context)


def _keep_tags(ctx: Any, inputs: Any, output: Any) -> None:
    emissions, transitions, start, end, tags, lengths, _ = inputs
    ctx.save_for_backward(emissions, tags, lengths)
    ctx.kinds = [x.dtype for x in (emissions, transitions, start, end)]


def _score_backward(ctx: Any, gradient: Tensor) -> Any:
    emissions, tags, lengths = ctx.saved_tensors
    parts = torch.ops.mercer.chain_counts(tags, lengths, gradient, emissions)
    return *(part.to(kind) for part, kind in zip(parts, ctx.kinds, strict=True)), None, None, None


chain_score.register_autograd(_score_backward, setup_context=_keep_tags)


@torch.library.custom_op("mercer::chain_counts", mutates_args=())
def chain_counts(tags: Tensor, lengths: Tensor, weights: Tensor, like: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Σ weights · 1_y in the form of the marginals."""
    module = _chain_core if like.device.type == "cpu" else _chain_torch
    kind = torch.float64 if like.dtype == torch.float64 else torch.float32
    parts = module.counts(tags, lengths, weights, like.to(kind))
    nodes, pairs, first, last = (part.to(kind).contiguous() for part in parts)
    return nodes, pairs, first, last


@chain_counts.register_fake
def _(tags: Tensor, lengths: Tensor, weights: Tensor, like: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    kind, C = torch.float64 if like.dtype == torch.float64 else torch.float32, like.shape[2]
    shapes = like.shape, (C, C), (C,), (C,)
    returned: Any = tuple(like.new_empty(shape, dtype=kind) for shape in shapes)
    return returned


# ---------------------------------------------------------------------- the log loss with its gradient, in one pass


@torch.library.custom_op("mercer::chain_log_loss", mutates_args=())
def chain_log_loss(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    tags: Tensor,
    lengths: Tensor,
    weights: Tensor,
    gradient: bool,
    partial: bool,
    check: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Σ w_i (log Z_i − score(y_i)) and, if asked for, its gradient in emissions, transitions, start and end.

    Where tags are unknown, the second term is the log-partition of all labellings that agree with the known ones.
    """
    given = emissions, transitions, start, end
    total, parts, _ = log_loss(given, tags, lengths, weights, gradient, partial, check)
    made: Any = parts if gradient else [x[:0].flatten() for x in given]
    returned: Any = (total, *(part.detach().clone() for part in made))
    return returned


def log_loss(
    given: tuple[Tensor, Tensor, Tensor, Tensor], tags: Tensor, lengths: Tensor, weights: Tensor | float,
    gradient: bool, partial: bool, check: bool,
) -> tuple[Tensor, list[Tensor], Tensor | None]:  # fmt: skip
    """The summed loss, its gradient in the types of what was given, and the gradient in one piece where it is so."""
    module, theta, shared = _prepared(*given)
    arguments = theta, shared, tags, lengths, weights, gradient, partial, check
    total, parts, flat = (
        module.log_loss(*arguments) if hasattr(module, "log_loss") else log_loss_by_verbs(module, *arguments)
    )
    if flat is not None and all(x.dtype == flat.dtype for x in given):
        return total, parts, flat
    return total, [part.to(x.dtype).contiguous() for part, x in zip(parts, given, strict=False)], None


class DirectLogLoss(torch.autograd.Function):
    """The same as the operator, without what registered operators cost in Python; for eager mode."""

    @staticmethod
    def forward(ctx: Any, emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, *rest: Any) -> Tensor:
        given = emissions, transitions, start, end
        tags, lengths, weights, partial, check = rest
        gradient = any(ctx.needs_input_grad[:4])
        total, parts, flat = log_loss(given, tags, lengths, weights, gradient, partial, check)
        if gradient:
            ctx.in_one, ctx.shapes = flat is not None, [x.shape for x in given]
            ctx.save_for_backward(*given, *((flat,) if flat is not None else parts))
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        given, parts = ctx.saved_tensors[:4], ctx.saved_tensors[4:]
        scaled = [(gradients[0] * part).to(part.dtype) for part in parts]
        if ctx.in_one:
            emissions, transitions, start, end = scaled[0].split_with_sizes([shape.numel() for shape in ctx.shapes])
            scaled = [emissions.view(ctx.shapes[0]), transitions.view(ctx.shapes[1]), start, end]
        if torch.is_grad_enabled():
            scaled = [_Once.apply(part, *given) for part in scaled]
        return *scaled, None, None, None, None, None


class _Once(torch.autograd.Function):
    """A gradient that has none itself."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, *given: Tensor) -> Tensor:
        return part.clone()

    backward = staticmethod(_refuse("the gradient of the log loss of a chain"))


def is_eager(emissions: Tensor) -> bool:
    """Whether operators need not be seen: no compiler and no tracing mode is at work."""
    return not torch.compiler.is_compiling() and type(emissions) is Tensor and not torch._C._len_torch_dispatch_stack()


def log_loss_by_verbs(
    module: Any, theta: Tensor, shared: Any, tags: Tensor, lengths: Tensor, weights: Tensor | float,
    gradient: bool, partial: bool, check: bool,
) -> tuple[Tensor, Any, None]:  # fmt: skip
    """The loss by the verbs of a backend."""
    known = check_tags(tags, lengths, theta.shape[2])
    if not known and not partial:
        raise ValueError(UNKNOWN_TAGS)
    if not isinstance(weights, Tensor):
        weights = torch.full((theta.shape[0],), float(weights), dtype=torch.float64, device=theta.device)
    all_of, parts = _summed(module, theta, shared, lengths, weights, gradient)
    if known:
        truth = module.score(theta, shared, tags, lengths)
        less = module.counts(tags, lengths, weights, theta) if gradient else None
    else:
        truth, less = _summed(module, restricted(theta, tags, lengths), shared, lengths, weights, gradient)
    if check:
        _check_finite(all_of, theta)
        _named(torch.isneginf(all_of), NO_LABELLING)
        _named(torch.isneginf(truth), FORBIDDEN)
    total = (weights.double() * (all_of - truth)).sum().to(shared[0].dtype)
    return total, [a - b for a, b in zip(parts, less or (), strict=True)] if gradient else [], None


def _summed(module: Any, theta: Tensor, shared: Any, lengths: Tensor, weights: Tensor, gradient: bool) -> Any:
    if not gradient:
        return module.log_partition(theta, shared, lengths), None
    value, *parts = module.marginals(theta, shared, lengths, weights)
    return value, parts


def restricted(emissions: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
    """Emissions with −inf for the labels that contradict a known tag."""
    labels = torch.arange(emissions.shape[2], device=emissions.device)
    free = (tags == UNKNOWN) | ~length_mask(lengths, tags.shape[1])
    allowed = (tags[:, :, None] == labels) | free[:, :, None]
    return emissions.masked_fill(~allowed, -torch.inf)


@chain_log_loss.register_fake
def _(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, tags: Tensor, lengths: Tensor,
    weights: Tensor, gradient: bool, partial: bool, check: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    kind = computed_in(emissions, transitions)
    parts = [x.new_empty(x.shape if gradient else (0,)) for x in (emissions, transitions, start, end)]
    returned: Any = (emissions.new_empty((), dtype=kind), *parts)
    return returned


def _keep_gradient(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*output[1:])


def _log_loss_backward(ctx: Any, total: Any, *others: Any) -> Any:
    if any(other is not None for other in others):
        _refuse("the gradient of the log loss of a chain")(ctx)
    if total is None:
        return (None,) * 10
    return *((total * part).to(part.dtype) for part in ctx.saved_tensors), *(None,) * 6


chain_log_loss.register_autograd(_log_loss_backward, setup_context=_keep_gradient)


# ---------------------------------------------------------------------- decoding


@torch.library.custom_op("mercer::chain_decode", mutates_args=())
def chain_decode(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, check: bool
) -> tuple[Tensor, Tensor]:
    """The best labels (batch, time), −1 in the padding, and their scores."""
    module, theta, shared = _prepared(emissions, transitions, start, end)
    labels, score = module.decode(theta, shared, lengths)
    if check:
        _check_finite(score, theta)
        _named(torch.isneginf(score), NO_LABELLING)
    return labels, score


@chain_decode.register_fake
def _(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, check: bool
) -> tuple[Tensor, Tensor]:
    labels = emissions.new_empty(emissions.shape[:2], dtype=torch.int64)
    return labels, emissions.new_empty(emissions.shape[:1], dtype=torch.float64)


@torch.library.custom_op("mercer::chain_k_best", mutates_args=())
def chain_k_best(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """The k best labellings (batch, k, time) and their scores (batch, k)."""
    module, theta, shared = _prepared(emissions, transitions, start, end)
    labels, scores = module.k_best(theta, shared, lengths, k)
    return labels, scores


@chain_k_best.register_fake
def _(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    batch, time = emissions.shape[:2]
    labels = emissions.new_empty((batch, k, time), dtype=torch.int64)
    return labels, emissions.new_empty((batch, k), dtype=torch.float64)


@torch.library.custom_op("mercer::chain_sample", mutates_args=())
def chain_sample(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, size: int, seed: int
) -> Tensor:
    """Labellings (batch, size, time) drawn from p(y)."""
    module, theta, shared = _prepared(emissions, transitions, start, end)
    out: Tensor = module.sample(theta, shared, lengths, size, seed)
    return out


@chain_sample.register_fake
def _(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, size: int, seed: int
) -> Tensor:
    batch, time = emissions.shape[:2]
    return emissions.new_empty((batch, size, time), dtype=torch.int64)
