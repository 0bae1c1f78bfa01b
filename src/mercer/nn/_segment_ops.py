"""The operators of segmentations, registered with torch.library; see `mercer.nn._chain_ops`.

Segmentations are int64 tensors (batch, time): the label at the first position of each segment, −1 within it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mercer.nn import _segment_core, _segment_cuda
from mercer.nn._chain_ops import _check_finite, _named, _no_context, _refuse
from mercer.nn._inputs import computed_in, length_mask

__all__ = ["check_segments"]

_NONE_ALLOWED = "no segmentation of sequence {} is allowed: lengths of segments, emissions and constraints forbid all"
_FORBIDDEN = "the segments of sequence {} are forbidden: by max_length, the constraints or emissions of −inf"


def _prepared(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor
) -> tuple[Any, Tensor, Any]:
    kind = computed_in(emissions, transitions)
    module: Any = _segment_core if emissions.device.type == "cpu" else _segment_cuda
    return module, emissions, tuple(x.to(kind) for x in (durations, transitions, start, end))


def check_segments(tags: Tensor, lengths: Tensor, n_labels: int) -> None:
    """Raise where a row is not a segmentation."""
    inside = length_mask(lengths, tags.shape[1])
    _named(tags[:, 0] < 0, "the segments of sequence {} leave out its first position: a label must stand there")
    wrong = (inside & ((tags < -1) | (tags >= n_labels))).any(1)
    _named(wrong, f"a label of the segments of sequence {{}} is not −1 to {n_labels - 1}")


# ---------------------------------------------------------------------- log Z and its gradient


@torch.library.custom_op("mercer::segment_log_partition", mutates_args=())
def segment_log_partition(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, check: bool
) -> Tensor:
    """log Z of each sequence, float64."""
    module, theta, shared = _prepared(emissions, durations, transitions, start, end)
    value: Tensor = module.log_partition(theta, shared, lengths)
    if check:
        _check_finite(value, theta)
    return value


@segment_log_partition.register_fake
def _(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, check: bool
) -> Tensor:
    return emissions.new_empty(emissions.shape[:1], dtype=torch.float64)


def _keep_scores(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:6])


def _log_partition_backward(ctx: Any, gradient: Tensor) -> Any:
    _, *parts = torch.ops.mercer.segment_marginals(*ctx.saved_tensors, gradient)
    return *(part.to(x.dtype) for part, x in zip(parts, ctx.saved_tensors, strict=False)), None, None


segment_log_partition.register_autograd(_log_partition_backward, setup_context=_keep_scores)


@torch.library.custom_op("mercer::segment_marginals", mutates_args=())
def segment_marginals(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor,
    weights: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """log Z, and the marginals of frames, durations, transitions, first and last labels, times the weights."""
    module, theta, shared = _prepared(emissions, durations, transitions, start, end)
    log_z, *parts = module.marginals(theta, shared, lengths, weights)
    kind = computed_in(emissions, transitions)
    return log_z, *(part.to(kind).contiguous() for part in parts)


@segment_marginals.register_fake
def _(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor,
    weights: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    kind, given = computed_in(emissions, transitions), (emissions, durations, transitions, start, end)
    parts = [torch.empty(x.shape, dtype=kind, device=x.device) for x in given]
    returned: Any = (emissions.new_empty(emissions.shape[:1], dtype=torch.float64), *parts)
    return returned


segment_marginals.register_autograd(_refuse("the marginals of segments"), setup_context=_no_context)


@torch.library.custom_op("mercer::segment_entropy", mutates_args=())
def segment_entropy(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor
) -> Tensor:
    """The entropy of each sequence, float64."""
    module, theta, shared = _prepared(emissions, durations, transitions, start, end)
    out: Tensor = module.entropy(theta, shared, lengths)
    return out


@segment_entropy.register_fake
def _(emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor) -> Tensor:
    return emissions.new_empty(emissions.shape[:1], dtype=torch.float64)


segment_entropy.register_autograd(_refuse("the entropy of segments"), setup_context=_no_context)


# ---------------------------------------------------------------------- scores of segmentations


@torch.library.custom_op("mercer::segment_score", mutates_args=())
def segment_score(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, tags: Tensor,
    lengths: Tensor, check: bool,
) -> Tensor:  # fmt: skip
    """The score of segmentations, float64."""
    module, theta, shared = _prepared(emissions, durations, transitions, start, end)
    if check:
        check_segments(tags, lengths, emissions.shape[2])
    value: Tensor = module.score(theta, shared, tags, lengths)
    if check:
        _named(torch.isneginf(value), _FORBIDDEN)
    return value


@segment_score.register_fake
def _(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, tags: Tensor,
    lengths: Tensor, check: bool,
) -> Tensor:  # fmt: skip
    return emissions.new_empty(emissions.shape[:1], dtype=torch.float64)


def _keep_tags(ctx: Any, inputs: Any, output: Any) -> None:
    *parts, tags, lengths, _ = inputs
    ctx.save_for_backward(parts[0], tags, lengths)
    ctx.kinds, ctx.max_length = [x.dtype for x in parts], parts[1].shape[0]


def _score_backward(ctx: Any, gradient: Tensor) -> Any:
    emissions, tags, lengths = ctx.saved_tensors
    parts = torch.ops.mercer.segment_counts(tags, lengths, gradient, emissions, ctx.max_length)
    return *(part.to(kind) for part, kind in zip(parts, ctx.kinds, strict=True)), None, None, None


segment_score.register_autograd(_score_backward, setup_context=_keep_tags)


@torch.library.custom_op("mercer::segment_counts", mutates_args=())
def segment_counts(
    tags: Tensor, lengths: Tensor, weights: Tensor, like: Tensor, max_length: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Σ weights · 1_y in the form of the marginals."""
    kind = torch.float64 if like.dtype == torch.float64 else torch.float32
    parts = _segment_cuda.counts(tags, lengths, weights, like.to(kind), max_length)
    returned: Any = tuple(part.to(kind).contiguous() for part in parts)
    return returned


@segment_counts.register_fake
def _(
    tags: Tensor, lengths: Tensor, weights: Tensor, like: Tensor, max_length: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    kind, C = torch.float64 if like.dtype == torch.float64 else torch.float32, like.shape[2]
    shapes = like.shape, (max_length, C), (C, C), (C,), (C,)
    returned: Any = tuple(like.new_empty(shape, dtype=kind) for shape in shapes)
    return returned


# ---------------------------------------------------------------------- the log loss with its gradient


@torch.library.custom_op("mercer::segment_log_loss", mutates_args=())
def segment_log_loss(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, tags: Tensor,
    lengths: Tensor, weights: Tensor, gradient: bool, check: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Σ w_i (log Z_i − score(y_i)) and, if asked for, its gradient in all five."""
    given = emissions, durations, transitions, start, end
    module, theta, shared = _prepared(*given)
    kind = computed_in(emissions, transitions)
    if check:
        check_segments(tags, lengths, emissions.shape[2])
    parts: Any = ()
    if gradient:
        log_z, *parts = module.marginals(theta, shared, lengths, weights)
    else:
        log_z = module.log_partition(theta, shared, lengths)
    truth = module.score(theta, shared, tags, lengths)
    if check:
        _check_finite(log_z, theta)
        _named(torch.isneginf(log_z), _NONE_ALLOWED)
        _named(torch.isneginf(truth), _FORBIDDEN)
    total = (weights.double() * (log_z - truth)).sum().to(kind)
    if not gradient:
        return total, *(x.new_empty(0) for x in given)
    less = _segment_cuda.counts(tags, lengths, weights, theta.to(kind), durations.shape[0])
    made = ((a - b).to(x.dtype).contiguous() for a, b, x in zip(parts, less, given, strict=True))
    return total, *made


@segment_log_loss.register_fake
def _(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, tags: Tensor,
    lengths: Tensor, weights: Tensor, gradient: bool, check: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    kind, given = computed_in(emissions, transitions), (emissions, durations, transitions, start, end)
    parts = [x.new_empty(x.shape if gradient else (0,)) for x in given]
    returned: Any = (emissions.new_empty((), dtype=kind), *parts)
    return returned


def _keep_gradient(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*output[1:])


def _log_loss_backward(ctx: Any, total: Any, *others: Any) -> Any:
    if any(other is not None for other in others):
        _refuse("the gradient of the log loss of segments")(ctx)
    if total is None:
        return (None,) * 10
    return *((total * part).to(part.dtype) for part in ctx.saved_tensors), *(None,) * 5


segment_log_loss.register_autograd(_log_loss_backward, setup_context=_keep_gradient)


# ---------------------------------------------------------------------- decoding


@torch.library.custom_op("mercer::segment_decode", mutates_args=())
def segment_decode(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, check: bool
) -> tuple[Tensor, Tensor]:
    """The best segmentations and their scores."""
    module, theta, shared = _prepared(emissions, durations, transitions, start, end)
    tags, score = module.decode(theta, shared, lengths)
    if check:
        _check_finite(score, theta)
        _named(torch.isneginf(score), _NONE_ALLOWED)
    return tags, score


@segment_decode.register_fake
def _(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, check: bool
) -> tuple[Tensor, Tensor]:
    tags = emissions.new_empty(emissions.shape[:2], dtype=torch.int64)
    return tags, emissions.new_empty(emissions.shape[:1], dtype=torch.float64)


@torch.library.custom_op("mercer::segment_k_best", mutates_args=())
def segment_k_best(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """The k best segmentations (batch, k, time) and their scores (batch, k)."""
    module, theta, shared = _prepared(emissions, durations, transitions, start, end)
    tags, scores = module.k_best(theta, shared, lengths, k)
    return tags, scores


@segment_k_best.register_fake
def _(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    batch, time = emissions.shape[:2]
    tags = emissions.new_empty((batch, k, time), dtype=torch.int64)
    return tags, emissions.new_empty((batch, k), dtype=torch.float64)


@torch.library.custom_op("mercer::segment_sample", mutates_args=())
def segment_sample(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, size: int,
    seed: int,
) -> Tensor:  # fmt: skip
    """Segmentations (batch, size, time) drawn from p(y)."""
    module, theta, shared = _prepared(emissions, durations, transitions, start, end)
    out: Tensor = module.sample(theta, shared, lengths, size, seed)
    return out


@segment_sample.register_fake
def _(
    emissions: Tensor, durations: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, size: int,
    seed: int,
) -> Tensor:  # fmt: skip
    batch, time = emissions.shape[:2]
    return emissions.new_empty((batch, size, time), dtype=torch.int64)
