"""The operators of a structure, registered with torch.library for fake tensors, torch.compile and autograd.

    log_partition   log Z of each sequence, or of all outputs consistent with the known parts     gradient: marginals
    score           the score of known outputs                                                  gradient: counts
    log_loss        Σ_i w_i (log Z_i − score(y_i)), with its gradient, in one pass
    marginals, counts, entropy, decode, k_best, sample

An operator is mercer::{structure}_{verb}. Its tensors are emissions (batch, time, labels), the shared scores one by
one, and lengths (batch,); outputs are int64 tensors (batch, time). Values are float64: for long sequences log Z and
score are large and nearly equal. Second derivatives raise an error.

A *backend* is a module that implements the operators as functions of (emissions, shared scores, lengths, …).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor

from mercer._warnings import warn_caller
from mercer.nn._inputs import computed_in, length_mask

__all__ = [
    "DirectLogLoss",
    "Operators",
    "Words",
    "check_emissions",
    "is_eager",
    "log_loss_by_verbs",
    "named",
    "refuse_derivative",
    "say_once",
]

_said: list[str] = []


def say_once(text: str) -> None:
    """Warn the first time."""
    if text not in _said:
        _said.append(text)
        warn_caller(text, RuntimeWarning)


def named(dead: Tensor, text: str) -> None:
    """Raise an error with the number of the first invalid sequence."""
    if bool(dead.any()):
        raise ValueError(text.format(int(dead.nonzero()[0])))


def is_eager(emissions: Tensor) -> bool:
    """Return whether no compiler and no tracing mode is active."""
    return not torch.compiler.is_compiling() and type(emissions) is Tensor and not torch._C._len_torch_dispatch_stack()


def _check_finite(value: Tensor, emissions: Tensor) -> None:
    if emissions.device.type != "cpu":  # the core looks by itself
        named(torch.isnan(value) | torch.isposinf(value), "the scores of sequence {} are NaN or +inf")


def check_emissions(emissions: Tensor, lengths: Tensor) -> None:
    """Raise an error if a sequence contains NaN or +inf, for operations whose results do not show it."""
    wrong = (~(emissions < torch.inf)).any(2) & length_mask(lengths, emissions.shape[1])
    named(wrong.any(1), "the emissions of sequence {} are NaN or +inf")


def refuse_derivative(what: str) -> NoReturn:
    """Raise an error for a derivative that is not implemented."""
    raise NotImplementedError(f"there is no derivative of {what}: mercer.nn does not compute second derivatives")


@torch.library.custom_op("mercer::no_derivative", mutates_args=())
def _no_derivative(like: Tensor, what: str) -> Tensor:
    """A gradient that raises an error when computed, but not when torch.compile traces it in advance."""
    refuse_derivative(what)


@_no_derivative.register_fake
def _(like: Tensor, what: str) -> Tensor:
    return torch.empty_like(like)


def _no_context(ctx: Any, inputs: Any, output: Any) -> None:
    """Save nothing for the backward pass."""


@dataclass(frozen=True)
class Words:
    """Error messages of a structure."""

    structure: str
    unknown: str
    """Message for an unknown output that must be known."""
    impossible: str
    """Message if no output is allowed; {} is the sequence."""
    forbidden: str
    """Message if the given outputs are not allowed."""


class Operators:
    """The operators of one structure.

    Parameters
    ----------
    name : str
        Name of the structure in the names of the operators.
    shared : tuple of str
        Names of the shared scores, transitions among them.
    backend : callable
        Function of emissions that returns the backend module.
    known : callable
        Function of (outputs, lengths, labels) that returns whether all outputs are known; it raises an error for a
        label out of range.
    words : Words
    """

    def __init__(
        self,
        name: str,
        shared: tuple[str, ...],
        backend: Callable[[Tensor], Any],
        known: Callable[[Tensor, Tensor, int], bool],
        words: Words,
    ) -> None:
        self.name, self.shared, self.backend, self.known, self.words = name, shared, backend, known, words
        self.n = 1 + len(shared)  # tensors with scores
        self._pivot = 1 + shared.index("transitions")
        scores = ", ".join(f"Tensor {each}" for each in ("emissions", *shared))
        parts = ", ".join(["Tensor"] * self.n)
        batch = f"{scores}, Tensor lengths"

        def made(verb: str, schema: str, run: Any, fake: Any, backward: Any = None, keep: Any = _no_context) -> Any:
            op = torch.library.custom_op(f"mercer::{name}_{verb}", run, mutates_args=(), schema=schema)
            op.register_fake(fake)
            if backward is not None:
                op.register_autograd(backward, setup_context=keep)
            return getattr(torch.ops.mercer, f"{name}_{verb}").default

        one = self._fake_values
        self.log_partition = made(
            "log_partition", f"({batch}, Tensor? outputs, bool check) -> Tensor", self._log_partition, one,
            self._log_partition_backward, self._keep_scores,
        )  # fmt: skip
        self.marginals = made(
            "marginals", f"({batch}, Tensor? outputs, Tensor weights, bool check) -> (Tensor, {parts})",
            self._marginals, self._fake_marginals, self._refusing(f"the marginals of {words.structure}"),
            self._keep_refused,
        )  # fmt: skip
        self.entropy = made(
            "entropy", f"({batch}, bool check) -> Tensor", self._entropy, one,
            self._refusing(f"the entropy of {words.structure}"), self._keep_refused,
        )  # fmt: skip
        self.score = made(
            "score", f"({batch}, Tensor outputs, bool check) -> Tensor", self._score, one, self._score_backward,
            self._keep_outputs,
        )  # fmt: skip
        self.counts = made(
            "counts", f"(Tensor outputs, Tensor lengths, Tensor weights, Tensor like, int longest) -> ({parts})",
            self._counts, self._fake_counts, self._counts_backward, self._keep_weights,
        )  # fmt: skip
        self.log_loss = made(
            "log_loss", f"({batch}, Tensor outputs, Tensor weights, bool gradient, bool partial, bool check) "
            f"-> (Tensor, {parts})", self._log_loss, self._fake_log_loss, self._log_loss_backward, self._keep_gradient,
        )  # fmt: skip
        self.decode = made("decode", f"({batch}, bool check) -> (Tensor, Tensor)", self._decode, self._fake_decode)
        self.k_best = made("k_best", f"({batch}, int k) -> (Tensor, Tensor)", self._k_best, self._fake_k_best)
        self.sample = made(
            "sample", f"({batch}, int size, int seed, bool check) -> Tensor", self._sample, self._fake_sample
        )

    # ------------------------------------------------------------------ arguments

    def _prepared(self, given: tuple[Tensor, ...]) -> tuple[Any, Tensor, tuple[Tensor, ...]]:
        """Return backend, emissions and shared scores in the computation type (kernels read half precision as is)."""
        emissions, kind = given[0], self._kind(given)
        if emissions.dtype != kind and emissions.device.type != "cuda":
            emissions = emissions.to(kind)
        shared = tuple(x if x.dtype == kind else x.to(kind) for x in given[1:])
        return self.backend(emissions), emissions, shared

    def _kind(self, given: tuple[Tensor, ...]) -> torch.dtype:
        return computed_in(given[0], given[self._pivot])

    def _fake_values(self, emissions: Tensor, *rest: Any) -> Tensor:
        return emissions.new_empty(emissions.shape[:1], dtype=torch.float64)

    # ------------------------------------------------------------------ second derivatives

    def _keep_refused(self, ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[: self.n])
        ctx.more = len(inputs) - self.n

    def _refusing(self, what: str) -> Any:
        def backward(ctx: Any, *gradients: Any) -> Any:
            return *(torch.ops.mercer.no_derivative(x, what) for x in ctx.saved_tensors), *(None,) * ctx.more

        return backward

    def _keep_weights(self, ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[2])

    def _counts_backward(self, ctx: Any, *gradients: Any) -> Any:
        what = f"the gradient of a score of {self.words.structure}"
        return None, None, torch.ops.mercer.no_derivative(ctx.saved_tensors[0], what), None, None

    # ------------------------------------------------------------------ log Z and its gradient

    def _log_partition(self, *arguments: Any) -> Tensor:
        given, (lengths, outputs, check) = arguments[: self.n], arguments[self.n :]
        module, theta, shared = self._prepared(given)
        if check and outputs is not None:
            self.known(outputs, lengths, theta.shape[2])
        value: Tensor = module.log_partition(theta, shared, lengths, outputs)
        if check:
            _check_finite(value, theta)
            if outputs is not None:
                named(torch.isneginf(value), self.words.forbidden)
        return value

    def _keep_scores(self, ctx: Any, inputs: Any, output: Any) -> None:
        outputs = inputs[self.n + 1]
        ctx.restricts = outputs is not None
        ctx.save_for_backward(*inputs[: self.n + 1], *(() if outputs is None else (outputs,)))

    def _log_partition_backward(self, ctx: Any, gradient: Tensor) -> Any:
        given, lengths = ctx.saved_tensors[: self.n], ctx.saved_tensors[self.n]
        outputs = ctx.saved_tensors[-1] if ctx.restricts else None
        _, *parts = self.marginals(*given, lengths, outputs, gradient, False)
        return *(part.to(x.dtype) for part, x in zip(parts, given, strict=True)), None, None, None

    def _marginals(self, *arguments: Any) -> tuple[Tensor, ...]:
        given, (lengths, outputs, weights, check) = arguments[: self.n], arguments[self.n :]
        module, theta, shared = self._prepared(given)
        log_z, *parts = module.marginals(theta, shared, lengths, weights, outputs)
        if check:
            _check_finite(log_z, theta)
        return log_z, *(part.to(self._kind(given)).contiguous() for part in parts)

    def _fake_marginals(self, *arguments: Any) -> tuple[Tensor, ...]:
        given = arguments[: self.n]
        parts = (torch.empty(x.shape, dtype=self._kind(given), device=x.device) for x in given)
        return self._fake_values(given[0]), *parts

    def _entropy(self, *arguments: Any) -> Tensor:
        lengths, check = arguments[self.n :]
        module, theta, shared = self._prepared(arguments[: self.n])
        out: Tensor = module.entropy(theta, shared, lengths)
        if check:
            _check_finite(out, theta)
        return out

    # ------------------------------------------------------------------ scores of outputs

    def _score(self, *arguments: Any) -> Tensor:
        given, (lengths, outputs, check) = arguments[: self.n], arguments[self.n :]
        module, theta, shared = self._prepared(given)
        if check and not self.known(outputs, lengths, theta.shape[2]):
            raise ValueError(self.words.unknown)
        value: Tensor = module.score(theta, shared, outputs, lengths)
        if check:
            named(torch.isneginf(value), self.words.forbidden)
        return value

    def _keep_outputs(self, ctx: Any, inputs: Any, output: Any) -> None:
        given = inputs[: self.n]
        ctx.save_for_backward(given[0], inputs[self.n + 1], inputs[self.n])
        ctx.kinds, ctx.longest = [x.dtype for x in given], given[1].shape[0]

    def _score_backward(self, ctx: Any, gradient: Tensor) -> Any:
        emissions, outputs, lengths = ctx.saved_tensors
        parts = self.counts(outputs, lengths, gradient, emissions, ctx.longest)
        return *(part.to(kind) for part, kind in zip(parts, ctx.kinds, strict=True)), None, None, None

    def _counts(
        self, outputs: Tensor, lengths: Tensor, weights: Tensor, like: Tensor, longest: int
    ) -> tuple[Tensor, ...]:
        kind = torch.float64 if like.dtype == torch.float64 else torch.float32
        parts = self.backend(like).counts(outputs, lengths, weights, like.to(kind), longest)
        return tuple(part.to(kind).contiguous() for part in parts)

    def _fake_counts(
        self, outputs: Tensor, lengths: Tensor, weights: Tensor, like: Tensor, longest: int
    ) -> tuple[Tensor, ...]:
        kind, C = torch.float64 if like.dtype == torch.float64 else torch.float32, like.shape[2]
        sizes = {"durations": (longest, C), "transitions": (C, C), "start": (C,), "end": (C,)}
        shapes = like.shape, *(sizes[each] for each in self.shared)
        return tuple(like.new_empty(shape, dtype=kind) for shape in shapes)

    # ------------------------------------------------------------------ the log loss with its gradient, in one pass

    def _log_loss(self, *arguments: Any) -> tuple[Tensor, ...]:
        given, (lengths, outputs, weights, gradient, partial, check) = arguments[: self.n], arguments[self.n :]
        total, parts, flat = self.summed_log_loss(given, outputs, lengths, weights, gradient, partial, check)
        if not gradient:
            return total, *(x.detach()[:0].flatten().clone() for x in given)
        if flat is not None:
            parts = _split(flat, [x.shape for x in given])
        return total, *(part.detach().clone() for part in parts)

    def summed_log_loss(
        self, given: tuple[Tensor, ...], outputs: Tensor, lengths: Tensor, weights: Tensor | float,
        gradient: bool, partial: bool, check: bool,
    ) -> tuple[Tensor, list[Tensor], Tensor | None]:  # fmt: skip
        """Return the loss and its gradient in the types of the inputs, as parts or in one block of memory.

        For unknown outputs, the second term is the log-partition of all outputs consistent with the known ones.
        """
        module, theta, shared = self._prepared(given)
        compute = getattr(module, "log_loss", None)
        arguments = theta, shared, outputs, lengths, weights, gradient, partial, check
        total, parts, flat = log_loss_by_verbs(self, module, *arguments) if compute is None else compute(*arguments)
        if flat is not None:
            if all(x.dtype == flat.dtype for x in given):
                return total, [], flat
            parts = _split(flat, [x.shape for x in given])
        return total, [part.to(x.dtype).contiguous() for part, x in zip(parts, given, strict=False)], None

    def _fake_log_loss(self, *arguments: Any) -> tuple[Tensor, ...]:
        given, gradient = arguments[: self.n], arguments[-3]
        parts = (x.new_empty(x.shape if gradient else (0,)) for x in given)
        return given[0].new_empty((), dtype=self._kind(given)), *parts

    def _keep_gradient(self, ctx: Any, inputs: Any, output: Any) -> None:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*output[1:])

    def _log_loss_backward(self, ctx: Any, total: Any, *others: Any) -> Any:
        if any(other is not None for other in others):
            refuse_derivative(f"the gradient of the log loss of {self.words.structure}")
        if total is None:
            return (None,) * (self.n + 6)
        return *((total * part).to(part.dtype) for part in ctx.saved_tensors), *(None,) * 6

    # ------------------------------------------------------------------ decoding

    def _decode(self, *arguments: Any) -> tuple[Tensor, Tensor]:
        lengths, check = arguments[self.n :]
        module, theta, shared = self._prepared(arguments[: self.n])
        outputs, score = module.decode(theta, shared, lengths)
        if check:
            _check_finite(score, theta)
            named(torch.isneginf(score), self.words.impossible)
        return outputs, score

    def _fake_decode(self, emissions: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        return emissions.new_empty(emissions.shape[:2], dtype=torch.int64), self._fake_values(emissions)

    def _k_best(self, *arguments: Any) -> tuple[Tensor, Tensor]:
        lengths, k = arguments[self.n :]
        module, theta, shared = self._prepared(arguments[: self.n])
        outputs, scores = module.k_best(theta, shared, lengths, k)
        return outputs, scores

    def _fake_k_best(self, emissions: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        (batch, time), k = emissions.shape[:2], rest[-1]
        return emissions.new_empty((batch, k, time), dtype=torch.int64), emissions.new_empty(
            (batch, k), dtype=torch.float64
        )

    def _sample(self, *arguments: Any) -> Tensor:
        lengths, size, seed, check = arguments[self.n :]
        module, theta, shared = self._prepared(arguments[: self.n])
        if check and theta.device.type != "cpu":
            check_emissions(theta, lengths)
        out: Tensor = module.sample(theta, shared, lengths, size, seed)
        return out

    def _fake_sample(self, emissions: Tensor, *rest: Any) -> Tensor:
        return emissions.new_empty((emissions.shape[0], rest[-3], emissions.shape[1]), dtype=torch.int64)


def log_loss_by_verbs(
    operators: Operators, module: Any, theta: Tensor, shared: Any, outputs: Tensor, lengths: Tensor,
    weights: Tensor | float, gradient: bool, partial: bool, check: bool,
) -> tuple[Tensor, Any, None]:  # fmt: skip
    """Return the loss by the operations of a backend."""
    words = operators.words
    known = operators.known(outputs, lengths, theta.shape[2])
    if not known and not partial:
        raise ValueError(words.unknown)
    if not isinstance(weights, Tensor):
        weights = torch.full((theta.shape[0],), float(weights), dtype=torch.float64, device=theta.device)

    def summed(agreeing: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        if not gradient:
            return module.log_partition(theta, shared, lengths, agreeing), []
        value, *parts = module.marginals(theta, shared, lengths, weights, agreeing)
        return value, parts

    all_of, parts = summed(None)
    less: Any = []
    if not known:
        truth, less = summed(outputs)
    else:
        truth = module.score(theta, shared, outputs, lengths)
        if gradient:
            less = module.counts(outputs, lengths, weights, theta.to(shared[0].dtype), shared[0].shape[0])
    if check:
        _check_finite(all_of, theta)
        named(torch.isneginf(all_of), words.impossible)
        named(torch.isneginf(truth), words.forbidden)
    total = (weights.double() * (all_of - truth)).sum().to(shared[0].dtype)
    return total, [a - b for a, b in zip(parts, less, strict=True)], None


class DirectLogLoss(torch.autograd.Function):
    """The operator `log_loss` without the Python overhead of registered operators; for eager mode."""

    @staticmethod
    def forward(ctx: Any, operators: Operators, *arguments: Any) -> Tensor:
        n = operators.n
        given, (outputs, lengths, weights, partial, check) = arguments[:n], arguments[n:]
        gradient = any(ctx.needs_input_grad[1 : n + 1])
        total, parts, flat = operators.summed_log_loss(given, outputs, lengths, weights, gradient, partial, check)
        if gradient:
            ctx.in_one, ctx.n, ctx.structure = flat is not None, n, operators.words.structure
            ctx.save_for_backward(*given, *(parts if flat is None else (flat,)))
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        given, parts = ctx.saved_tensors[: ctx.n], ctx.saved_tensors[ctx.n :]
        if ctx.in_one:
            scaled = _split(gradients[0] * parts[0], [x.shape for x in given])
        else:
            scaled = [(gradients[0] * part).to(part.dtype) for part in parts]
        if torch.is_grad_enabled():
            scaled = [_Once.apply(ctx.structure, part, *given) for part in scaled]
        return None, *scaled, *(None,) * 5


class _Once(torch.autograd.Function):
    """A gradient without second derivatives."""

    @staticmethod
    def forward(ctx: Any, structure: str, part: Tensor, *given: Tensor) -> Tensor:
        ctx.structure = structure
        return part.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        refuse_derivative(f"the gradient of the log loss of {ctx.structure}")


def _split(flat: Tensor, shapes: list[torch.Size]) -> list[Tensor]:
    """Return views of these shapes into one block of memory."""
    pieces = flat.split_with_sizes([shape.numel() for shape in shapes])
    return [x if len(shape) == 1 else x.view(shape) for x, shape in zip(pieces, shapes, strict=True)]
