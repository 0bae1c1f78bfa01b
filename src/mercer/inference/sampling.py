"""Markov chain Monte Carlo: marginals and samples from chains that have the model as their stationary distribution.

- Gibbs draws a variable (or a block of them) from p(x_i | rest), which satisfies detailed balance;
- Metropolis proposes another state of a variable and takes it with probability min(1, p(new) / p(old)). A random
  quarter of the variables is skipped in each sweep, because proposals that are always accepted would make the chain
  periodic;
- Metropolis-Hastings takes any proposal q with probability min(1, p(y) q(x | y) / (p(x) q(y | x)));
- annealing runs them at p(x)^β with β rising, towards the best assignment.

Marginals of Gibbs are means of the conditional probabilities p(x_i | rest), which vary less than those of the states.

The agreement of chains is measured by the score and by the marginals of every variable (split R-hat of the indicators
of its states). A variable that never changed its state in any chain, and started in the same state in all, is no
evidence of agreement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_choice, check_count, check_positive, thread_count
from mercer._warnings import warn_caller
from mercer.inference.diagnostics import ChainMarginals, effective_sample_size, r_hat
from mercer.inference.graph import CompiledGraph
from mercer.inference.registry import _factor_graph, best_states, register
from mercer.inference.result import Outcome
from mercer.inference.transitions import Metropolis, run_chain

__all__ = ["metropolis_hastings"]

KEPT = 1 << 24  # states of samples that are kept without being asked to
SEGMENT = 2e6  # draws between two looks at Ctrl-C
POOR = 1.1  # R-hat above which chains do not agree
BATCHES = 20  # parts of a chain whose marginals are compared
SHORTEST = 10  # sweeps of such a part
LEAST = 4  # samples without which nothing can be said about agreement


def _starts(graph: CompiledGraph, start: Any, n_chains: int, random: np.random.Generator) -> np.ndarray:
    if isinstance(start, str):
        check_choice("start", start, ("random", "unary"))
        if start == "unary":
            return np.tile(best_states(graph, graph.unary), (n_chains, 1))
        return _spread_starts(graph, n_chains, random)
    states = np.asarray(start)
    graph.score(states)  # checks
    return np.ascontiguousarray(np.broadcast_to(states, (n_chains, graph.n_variables)), np.int32)


def _spread_starts(graph: CompiledGraph, n_chains: int, random: np.random.Generator) -> np.ndarray:
    """Random states, different ones in different chains as far as a variable has so many that are possible."""
    n = graph.n_variables
    possible = ~np.isneginf(graph.unary)
    if not n:
        return np.zeros((n_chains, 0), np.int32)
    count = _possible_states(graph)
    turns = random.random((n, n_chains)).argsort(axis=1)  # which chain comes first is drawn for each variable
    number = (random.integers(0, np.maximum(count, 1))[:, None] + turns) % np.maximum(count, 1)[:, None]
    order = np.argsort(~possible + 2 * np.repeat(np.arange(n), graph.cardinalities), kind="stable")
    states = order[graph.state_starts[:-1, None] + number] - graph.state_starts[:-1, None]
    return np.ascontiguousarray(states.T, np.int32)


def _generator(random_state: Any) -> np.random.Generator:
    return np.random.default_rng(random_state)


def _seed(random: np.random.Generator) -> int:
    return int(random.integers(0, 2**63))


def _run(
    sampler: Any, graph: CompiledGraph, betas: np.ndarray, keep: int, samples: Any, trace: Any, **how: Any
) -> None:
    """Sweeps in segments, so that Ctrl-C is heard."""
    n_chains = len(trace) if trace is not None else 1
    step = max(1, int(SEGMENT / max(1, graph.n_variables * n_chains)))
    step = max(keep, step // keep * keep) if keep else step
    for first in range(0, len(betas), step):
        part = np.ascontiguousarray(betas[first : first + step])
        kept = len(part) // keep if keep else 0
        at = first // keep if keep else 0
        drawn = None if samples is None else np.empty((n_chains, kept, graph.n_variables), np.int32)
        scores = None if trace is None else np.empty((n_chains, kept))
        sampler.run(part, keep, drawn, scores, **how)
        if samples is not None:
            samples[:, at : at + kept] = drawn
        if trace is not None:
            trace[:, at : at + kept] = scores


def _sample(
    graph: CompiledGraph,
    kind: str,
    blocks: list[list[int]],
    *,
    n_samples: int,
    burn_in: int | None,
    thin: int,
    n_chains: int,
    start: Any,
    keep_samples: bool | str,
    n_jobs: int | None,
    random_state: Any,
) -> Outcome:
    check_count("n_samples", n_samples)
    check_count("thin", thin)
    check_count("n_chains", n_chains)
    warm = n_samples * thin // 4 + 10 if burn_in is None else check_count("burn_in", burn_in, 0)
    check_choice("keep_samples", keep_samples, ("auto", True, False))
    random = _generator(random_state)
    starts = _starts(graph, start, n_chains, random)
    sampler = _core.inference.Sampler(graph.core, starts, _seed(random), kind, blocks)
    kept = n_samples * n_chains * graph.n_variables <= KEPT if keep_samples == "auto" else bool(keep_samples)
    samples = np.empty((n_chains, n_samples, graph.n_variables), np.int32) if kept else None
    trace = np.empty((n_chains, n_samples))
    how = {"threads": thread_count(n_jobs)}
    _run(sampler, graph, np.ones(warm), 0, None, None, collect=False, **how)
    collected = _collect(sampler, graph, n_samples, thin, samples, trace, how)
    states, value = sampler.best()
    moved, choice = (flags.astype(bool) for flags in sampler.mobility())
    free = _possible_states(graph) > 1
    unmoved = free & (~choice | (~moved & (starts == starts[:1]).all(axis=0)))
    agreement = collected.r_hat()
    if n_samples >= LEAST:  # chains that came to one state from different ones agree
        agreement[np.repeat(free & ~unmoved, graph.cardinalities) & np.isnan(agreement)] = 1.0
    errors = collected.standard_errors()
    if kind in ("metropolis", "random"):  # visits come in whole numbers
        errors = np.maximum(errors, np.repeat(free, graph.cardinalities) / (n_samples * thin * n_chains))
    extra: dict[str, Any] = {
        "chain_marginals": collected.chains,
        "mcse": np.where(np.repeat(unmoved, graph.cardinalities), np.inf, errors),
        "trace": trace,
        "effective_sample_size": effective_sample_size(trace),
        "r_hat": _largest(np.append(agreement[np.repeat(free, graph.cardinalities)], r_hat(trace))),
        "n_unmoved": int(unmoved.sum()),
        "acceptance": sampler.acceptance(),
    }
    _warn_of_disagreement(extra, graph.n_variables)
    marginals = _normalised(graph, collected.chains.mean(axis=0))
    return Outcome(
        marginals=marginals,
        states=states,
        value=value,
        samples=samples,
        factor_beliefs=None if samples is None else lambda: _counted(graph, samples),
        converged=bool((extra["r_hat"] <= POOR and not unmoved.any()) or not free.any()),
        n_iter=warm + n_samples * thin,
        residual=float(np.abs(collected.chains - marginals).max(initial=0.0)),
        history={"score": trace.mean(axis=0).tolist()},
        error=float(extra["mcse"].max(initial=0.0)),
        extra=extra,
    )


def _counted(graph: CompiledGraph, samples: np.ndarray) -> np.ndarray:
    """Shares of the samples with each joint state of the variables of a factor, factor after factor."""
    flat = samples.reshape(-1, graph.n_variables).astype(np.int64)
    out = np.empty(int(graph.belief_starts[-1]))
    for f in range(graph.n_factors):
        scope = graph.scopes[graph.scope_starts[f] : graph.scope_starts[f + 1]]
        shape = tuple(graph.cardinalities[scope].tolist())
        size = int(np.prod(shape))
        places = np.ravel_multi_index(tuple(flat[:, scope].T), shape)
        start = int(graph.belief_starts[f])
        out[start : start + size] = np.bincount(places, minlength=size) / max(1, len(flat))
    return out


def _collect(
    sampler: Any, graph: CompiledGraph, n_samples: int, thin: int, samples: Any, trace: np.ndarray, how: dict[str, Any]
) -> ChainMarginals:
    """Run all sweeps that count, in batches whose marginals can be compared."""
    n_batches = max(2, min(BATCHES, n_samples, n_samples * thin // SHORTEST) // 2 * 2) if n_samples >= LEAST else 1
    ends = np.arange(n_batches + 1) * n_samples // n_batches
    collected = ChainMarginals(n_batches)
    for begin, end in pairwise(ends.tolist()):
        part = None if samples is None else samples[:, begin:end]
        _run(sampler, graph, np.ones((end - begin) * thin), thin, part, trace[:, begin:end], collect=True, **how)
        totals, swept = sampler.totals()
        collected.add(totals.reshape(len(swept), -1), swept)
    return collected


def _possible_states(graph: CompiledGraph) -> np.ndarray:
    """How many states of each variable its own potentials allow."""
    if not graph.n_variables:
        return np.zeros(0, np.int64)
    return np.add.reduceat((~np.isneginf(graph.unary)).astype(np.int64), graph.state_starts[:-1])


def _largest(values: np.ndarray) -> float:
    """The largest of the values that are not NaN; NaN if all are."""
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else float("nan")


def _warn_of_disagreement(extra: dict[str, Any], n_variables: int) -> None:
    advice = (
        "Raise burn_in and n_samples, draw blocks of variables that depend strongly on each other, or take "
        "method='bp' or 'trw'"
    )
    if extra["r_hat"] > POOR:
        message = (
            f"the chains do not agree: R-hat is {extra['r_hat']:.3g}, above {POOR}, and the effective sample size of "
            f"the score {extra['effective_sample_size']:.3g}. {advice}"
        )
    elif extra["n_unmoved"]:
        message = (
            f"{extra['n_unmoved']} of {n_variables} variables never changed their state in any chain, so the samples "
            f"say nothing about them: start the chains in different states (start='random', n_chains > 1). {advice}"
        )
    else:
        return
    from mercer.exceptions import ConvergenceWarning  # scikit-learn is heavy

    warn_caller(message, ConvergenceWarning)


def _normalised(graph: CompiledGraph, flat: np.ndarray) -> np.ndarray:
    """Probabilities that sum to 1; equal ones for a variable that could never be drawn."""
    if not graph.n_variables:
        return flat
    sums = np.add.reduceat(flat, graph.state_starts[:-1])
    whole = np.repeat(sums, graph.cardinalities)
    even = np.repeat(1.0 / graph.cardinalities, graph.cardinalities)
    return np.where(whole > 0, flat / np.where(whole > 0, whole, 1.0), even)


def _gibbs(
    graph: CompiledGraph,
    task: str,
    *,
    n_samples: int = 1000,
    burn_in: int | None = None,
    thin: int = 1,
    n_chains: int = 4,
    schedule: str = "auto",
    scan: str = "systematic",
    blocks: Sequence[Sequence[int]] | None = None,
    start: Any = "random",
    keep_samples: bool | str = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Outcome:
    """Gibbs sampling: one variable after another, colour by colour, blocks of variables, or variables at random."""
    check_choice("schedule", schedule, ("auto", "sequential", "chromatic"))
    if check_choice("scan", scan, ("systematic", "random")) == "random":
        if blocks is not None or schedule == "chromatic":
            raise ValueError("scan='random' draws single variables: leave blocks and schedule out")
        return _sample(
            graph, "random", [], n_samples=n_samples, burn_in=burn_in, thin=thin, n_chains=n_chains, start=start,
            keep_samples=keep_samples, n_jobs=n_jobs, random_state=random_state,
        )  # fmt: skip
    if blocks is not None and schedule == "chromatic":
        raise ValueError("blocks are drawn one after another: leave schedule at 'auto' or 'sequential'")
    colours = schedule != "sequential" and blocks is None and _core.inference.can_colour(graph.core)
    if schedule == "chromatic" and not colours:
        raise ValueError(
            "schedule='chromatic' takes variables with two states and factors of two variables without zeros"
        )
    named = [[int(v) for v in block] for block in blocks] if blocks is not None else []
    return _sample(
        graph, "colours" if colours else "gibbs", named, n_samples=n_samples, burn_in=burn_in, thin=thin,
        n_chains=n_chains, start=start, keep_samples=keep_samples, n_jobs=n_jobs, random_state=random_state,
    )  # fmt: skip


def _metropolis(
    graph: CompiledGraph,
    task: str,
    *,
    n_samples: int = 1000,
    burn_in: int | None = None,
    thin: int = 1,
    n_chains: int = 4,
    start: Any = "random",
    keep_samples: bool | str = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Outcome:
    """Metropolis: the variables in turn, but for a random quarter, are offered one of their other states."""
    return _sample(
        graph, "metropolis", [], n_samples=n_samples, burn_in=burn_in, thin=thin, n_chains=n_chains, start=start,
        keep_samples=keep_samples, n_jobs=n_jobs, random_state=random_state,
    )  # fmt: skip


def _annealing(
    graph: CompiledGraph,
    task: str,
    *,
    n_sweeps: int = 1000,
    hottest: float = 10.0,
    coldest: float = 0.05,
    n_chains: int = 4,
    move: str = "metropolis",
    start: Any = "random",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Outcome:
    """Simulated annealing: temperatures fall geometrically; the best assignment seen is kept."""
    check_count("n_sweeps", n_sweeps)
    check_count("n_chains", n_chains)
    check_choice("move", move, ("metropolis", "gibbs"))
    if check_positive("hottest", hottest) < check_positive("coldest", coldest):
        raise ValueError(f"hottest must not be below coldest, got {hottest} and {coldest}")
    random = _generator(random_state)
    starts = _starts(graph, start, n_chains, random)
    kind = "colours" if move == "gibbs" and _core.inference.can_colour(graph.core) else move
    sampler = _core.inference.Sampler(graph.core, starts, _seed(random), kind, [])
    betas = 1.0 / np.geomspace(hottest, coldest, n_sweeps)
    trace = np.empty((n_chains, n_sweeps))
    _run(sampler, graph, betas, 1, None, trace, collect=False, threads=thread_count(n_jobs))
    states, value = sampler.best()
    extra = {"trace": trace, "acceptance": sampler.acceptance()}
    history = {"value": np.maximum.accumulate(trace.max(axis=0)).tolist()}
    return Outcome(states=states, value=value, n_iter=n_sweeps, history=history, extra=extra)


def metropolis_hastings(
    model: Any,
    propose: Callable[[np.ndarray, np.random.Generator], tuple[np.ndarray, float]],
    *,
    n_samples: int = 1000,
    burn_in: int = 0,
    thin: int = 1,
    start: Any = None,
    random_state: Any = None,
) -> dict[str, Any]:
    """Sample a model with your own proposal.

    Parameters
    ----------
    model : FactorGraph, BayesianNetwork or MarkovNetwork
        What to sample from.
    propose : callable
        ``propose(x, generator)`` → ``(y, log_ratio)``: another assignment, and log q(x | y) − log q(y | x), which is 0
        for a symmetric proposal.
    n_samples, burn_in, thin : int
        Number of samples, of proposals before the first sample, and of proposals between samples.
    start : array of int, optional
        Initial assignment, which must be possible. Default: the best state of each variable on its own.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    dict
        ``samples`` (samples × variables), their ``scores``, ``acceptance`` (share of accepted proposals), and
        ``effective_sample_size`` of the scores (NaN if they are all equal).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference import FactorGraph, metropolis_hastings
    >>> def flip(x, random):
    ...     y = x.copy()
    ...     y[random.integers(len(y))] ^= 1
    ...     return y, 0.0
    >>> graph = FactorGraph([2, 2], unary=[[1, 3], [1, 1]], edges=[[0, 1]], pairwise=[[4, 1], [1, 4]])
    >>> drawn = metropolis_hastings(graph, flip, n_samples=4000, random_state=0)
    >>> bool(abs(drawn["samples"].mean(axis=0) - [0.75, 0.65]).max() < 0.05)
    True
    """
    graph = _factor_graph(model).compiled
    if not callable(propose):
        raise ValueError(f"propose must be callable, got {propose!r}")
    random = _generator(random_state)
    x = _starts(graph, "unary" if start is None else start, 1, random)[0]
    if np.isneginf(graph.score(x)):
        raise ValueError("start has probability 0: give an assignment that is possible")

    def proposed(x: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, float]:
        y, ratio = propose(x.copy(), random)
        return np.asarray(y), ratio

    kernel = Metropolis(lambda x: float(graph.score(x)), proposed)
    chain = run_chain(kernel, x, n_samples, burn_in=burn_in, thin=thin, random_state=random)
    return {
        "samples": np.asarray(chain.samples, dtype=np.int32),
        "scores": chain.log_density,
        "acceptance": chain.acceptance,
        "effective_sample_size": chain.effective_sample_size,
    }


register("gibbs", _gibbs, tasks=("marginals",))
register("metropolis", _metropolis, tasks=("marginals",))
register("annealing", _annealing, tasks=("map",))
