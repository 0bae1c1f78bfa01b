"""One iteration of Baum-Welch beside hmmlearn and dynamax, one thread each, in one run.

    python benchmarks/hidden_markov.py [--repeats 5] [--states 20] [--tokens 50000]

Both start from the same parameters; what an iteration makes of them is compared before it is timed. An iteration is
timed as the difference between fits of 1 and of 1 + ITERATIONS iterations, so that reading the data and the start do
not count. Seconds are processor time, medians of runs in turn. The peers are hmmlearn 0.3.3, in both of its
implementations ("log" is its default; one repeat, as it is slow), and dynamax after its compilation, where it is
installed: in its single precision, on a tenth of the sequences (it keeps the counts of every sequence), times 10.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from _timing import parse, required

from mercer.markov import HiddenMarkovModel
from mercer.markov.emissions import Mixture

hmm = required("hmmlearn.hmm")
CategoricalHMM, GaussianHMM = hmm.CategoricalHMM, hmm.GaussianHMM

ITERATIONS = 5
TENTH = 10
N_SYMBOLS, N_DIMENSIONS, LENGTH = 1000, 8, 25


def task(states: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random start, transition and emission probabilities."""
    random = np.random.default_rng(seed)
    return (
        random.dirichlet(np.ones(states)),
        random.dirichlet(np.ones(states), size=states),
        random.dirichlet(np.full(N_SYMBOLS, 0.3), size=states) + 1e-6,
    )


def ours(X: Any, kind: str, start: np.ndarray, A: np.ndarray, emission: Any) -> Callable[[int], HiddenMarkovModel]:
    """A call that runs so many iterations from the given parameters."""

    class Begun(HiddenMarkovModel):
        def _begin(self, X: Any, matrix: Any, tags: Any, random: Any) -> None:
            self.start_, self.transitions_ = start, A
            if isinstance(self._emission, Mixture):
                means, variances = emission
                self._emission.weights = np.ones((len(start), 1))
                self._emission.means, self._emission.covariances = means[:, None], variances[:, None]
            else:
                self._emission.probabilities = emission

    def run(iterations: int) -> HiddenMarkovModel:
        return Begun(len(start), emission=kind, smoothing=1e-9, max_iter=iterations, tol=-np.inf).fit(X)

    return run


def peer(
    X: np.ndarray, lengths: list[int], kind: str, start: np.ndarray, A: np.ndarray, emission: Any, how: str
) -> Any:
    """The same with hmmlearn."""

    def run(iterations: int) -> Any:
        options = {"n_components": len(start), "n_iter": iterations, "tol": -np.inf, "init_params": ""}
        options["implementation"] = how
        if kind == "multinomial":
            model = CategoricalHMM(**options)
            model.emissionprob_ = emission
        else:
            model = GaussianHMM(**options, covars_prior=0.0, covars_weight=0.0, min_covar=0.0)
            model.means_, model.covars_ = emission
        model.startprob_, model.transmat_ = start, A
        return model.fit(X, lengths)

    return run


def dynamax_run(
    X: np.ndarray, length: int, kind: str, start: np.ndarray, A: np.ndarray, emission: Any
) -> Callable[[int], Any] | None:
    """The same with dynamax: its steps of expectation and maximisation, compiled beforehand; None if it is missing."""
    try:
        hmm, jax = import_module("dynamax.hidden_markov_model"), import_module("jax")
    except ImportError:
        return None
    jnp = jax.numpy
    if kind == "multinomial":
        model = hmm.CategoricalHMM(len(start), 1, emission.shape[1], transition_matrix_stickiness=0.0)
        given = {"emission_probs": jnp.asarray(emission[:, None])}
    else:
        model = hmm.DiagonalGaussianHMM(len(start), X.shape[1])
        given = {"emission_means": jnp.asarray(emission[0]), "emission_scale_diags": jnp.sqrt(jnp.asarray(emission[1]))}
    params, props = model.initialize(
        jax.random.PRNGKey(0), initial_probs=jnp.asarray(start), transition_matrix=jnp.asarray(A), **given
    )
    batches = jnp.asarray(X.reshape(-1, length, X.shape[1])[::TENTH])

    @jax.jit
    def step(params: Any, state: Any) -> Any:
        statistics, logs = jax.vmap(lambda one: model.e_step(params, one))(batches)
        params, state = model.m_step(params, props, statistics, state)
        return params, state, logs.sum()

    def run(iterations: int) -> Any:
        now, state = params, model.initialize_m_step_state(params, props)
        for _ in range(iterations):
            now, state, likelihood = step(now, state)
        return float(likelihood), now

    return run


def seconds(call: Callable[[int], object], iterations: int) -> float:
    begun = time.process_time()
    call(iterations)
    return time.process_time() - begun


def compare(title: str, repeats: int, calls: dict[str, Callable[[int], Any]], tokens: int) -> None:
    print(f"{title}: seconds of one iteration")
    for call in calls.values():
        call(1)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for repeat in range(repeats):
        for name, call in calls.items():
            if repeat > 0 and name.endswith("log"):
                continue
            few = seconds(call, 1)
            scale = TENTH if name.startswith("dynamax") else 1
            times[name].append(max(1e-9, scale * (seconds(call, 1 + ITERATIONS) - few) / ITERATIONS))
    mine = statistics.median(times["mercer"])
    for name, values in times.items():
        median = statistics.median(values)
        print(f"  {name:22s} {median:8.4f} s  {tokens / median / 1e6:7.2f} M tokens/s   {median / mine:6.1f} x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--states", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=50_000)
    arguments = parse(parser, repeats=1, states=2, tokens=2000)
    warnings.simplefilter("ignore")
    random = np.random.default_rng(1)
    n = arguments.tokens // LENGTH
    lengths = [LENGTH] * n
    start, A, B = task(arguments.states)
    B /= B.sum(axis=1, keepdims=True)

    symbols = random.integers(0, N_SYMBOLS, size=(n, LENGTH))
    symbols.ravel()[:N_SYMBOLS] = np.arange(N_SYMBOLS)  # each occurs, so that both tools have the same columns
    names = [[f"{s:04d}" for s in row] for row in symbols]
    stacked = symbols.reshape(-1, 1)
    calls = {"mercer": ours(names, "multinomial", start, A, B)}
    for how in ("scaling", "log"):
        calls[f"hmmlearn, {how}"] = peer(stacked, lengths, "multinomial", start, A, B, how)
    theirs = dynamax_run(stacked, LENGTH, "multinomial", start, A, B)
    if theirs is not None:
        calls["dynamax, ready"] = theirs
    one, other = calls["mercer"](2), calls["hmmlearn, scaling"](2)
    print(
        f"largest difference of transitions after an iteration: {np.abs(one.transitions_ - other.transmat_).max():.1e}"
    )
    title = f"{arguments.states} states, {N_SYMBOLS} symbols, {arguments.tokens} tokens"
    compare(title, arguments.repeats, calls, arguments.tokens)

    vectors = random.normal(size=(n * LENGTH, N_DIMENSIONS))
    means = random.normal(size=(arguments.states, N_DIMENSIONS))
    variances = np.ones((arguments.states, N_DIMENSIONS))
    arrays = list(vectors.reshape(n, LENGTH, N_DIMENSIONS))
    calls = {"mercer": ours(arrays, "gaussian", start, A, (means, variances))}
    for how in ("scaling", "log"):
        calls[f"hmmlearn, {how}"] = peer(vectors, lengths, "gaussian", start, A, (means, variances), how)
    theirs = dynamax_run(vectors, LENGTH, "gaussian", start, A, (means, variances))
    if theirs is not None:
        calls["dynamax, ready"] = theirs
    title = f"{arguments.states} states, normal in {N_DIMENSIONS} dimensions, {arguments.tokens} tokens"
    compare(title, arguments.repeats, calls, arguments.tokens)


if __name__ == "__main__":
    main()
