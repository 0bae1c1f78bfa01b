"""Hidden Markov models beside hmmlearn: the likelihood that training reaches, and the seconds of an iteration.

    python benchmarks/hidden_markov.py [--parts reached speed] [--seeds 10] [--repeats 5] [--states 20] [--tokens 50000]

reached      log-likelihood of the training data after fits without labels with many seeds, and their processor time.
             Gaps are to the best fit of all tools and seeds. Mercer runs with its defaults, and with hardly any
             pseudo-counts (they cost likelihood on the training data); hmmlearn 0.3.3 with 300 iterations, its stop at
             0.01, one start, and as the best of the starts with all seeds. MERCER_DATA adds real sequences. The
             defaults of Mercer were chosen on other sets.
speed        one iteration of Baum-Welch beside hmmlearn and dynamax, one thread each.

In the part on speed both start from the same parameters; what an iteration makes of them is compared before it is
timed. An iteration is timed as the difference between fits of 1 and of 1 + ITERATIONS iterations, so that reading the
data and the start do not count. Seconds are processor time, medians of runs in turn. The peers are hmmlearn 0.3.3, in
both of its implementations ("log" is its default; one repeat, as it is slow), and dynamax after its compilation, where
it is installed: in its single precision, on a tenth of the sequences (it keeps the counts of every sequence), times 10.
"""

from __future__ import annotations

import argparse
import gzip
import logging
import os
import statistics
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from _timing import parse, record, required

from mercer.datasets._home import data_file
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
        def _begin(self, X: Any, matrix: Any, tags: Any, turn: int, random: Any) -> None:
            self.start_, self.transitions_ = start, A
            if isinstance(self._emission, Mixture):
                means, variances = emission
                self._emission.weights = np.ones((len(start), 1))
                self._emission.means, self._emission.covariances = means[:, None], variances[:, None]
            else:
                self._emission.probabilities = emission

    def run(iterations: int) -> HiddenMarkovModel:
        return Begun(len(start), emission=kind, smoothing=1e-9, n_init=1, max_iter=iterations, tol=-1e300).fit(X)

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


def symbols_of(random: np.random.Generator, states: int, symbols: int, n: int, length: int) -> list[list[str]]:
    """Sequences of a random model over symbols."""
    A = 0.5 * np.eye(states) + 0.5 * random.dirichlet(np.ones(states), size=states)
    B = np.cumsum(random.dirichlet(np.full(symbols, 0.5), size=states), axis=1)
    path = paths_of(random, A, n, length)
    return [[f"{int((random.random() > B[s][:-1]).sum()):03d}" for s in states] for states in path]


def vectors_of(random: np.random.Generator, states: int, width: int, n: int, length: int) -> list[np.ndarray]:
    """Sequences of a random model of normal vectors."""
    A = 0.5 * np.eye(states) + 0.5 * random.dirichlet(np.ones(states), size=states)
    means, spread = 1.2 * random.normal(size=(states, width)), np.exp(0.4 * random.normal(size=(states, width)))
    path = paths_of(random, A, n, length)
    return [means[states] + spread[states] * random.normal(size=(length, width)) for states in path]


def paths_of(random: np.random.Generator, A: np.ndarray, n: int, length: int) -> list[np.ndarray]:
    paths = []
    for _ in range(n):
        states = [int(random.integers(len(A)))]
        while len(states) < length:
            states.append(int(random.choice(len(A), p=A[states[-1]])))
        paths.append(np.array(states))
    return paths


def real_sets(home: Path) -> dict[str, tuple[int, Any]]:
    """DNA, words and parts of speech, and spoken vowels, with a number of states each."""
    dna = [line.split(",")[2].strip() for line in (home / "promoters" / "promoters.data").read_text().splitlines()]
    splice = (home / "splice" / "keel-splice.dat").read_text().splitlines()[:100]
    path = data_file("conll2000", "train.txt", home)
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as file:
        sentences = [[line.split() for line in block.splitlines()] for block in file.read().split("\n\n")[:250]]
    rows = np.genfromtxt(home / "uci" / "Vowel.csv", delimiter=",", skip_header=1, usecols=range(1, 10))
    frames = rows.reshape(15, 6, 11, 9).transpose(0, 2, 1, 3).reshape(-1, 6, 9)  # speaker and vowel: six frames
    return {
        "promoters, 4 states": (4, [list(x) for x in dna if x]),
        "splice, 4 states": (4, [[c.strip() for c in line.split(",")[:60]] for line in splice]),
        "conll2000 words, 5 states": (5, [[token[0].lower() for token in s] for s in sentences if s]),
        "conll2000 parts of speech, 6 states": (6, [[token[1] for token in s] for s in sentences if s]),
        "vowels, 5 states, normal": (5, list(frames)),
    }


def reached(seeds: int) -> None:
    """Likelihoods of fits without labels, over seeds."""
    random = np.random.default_rng(2024)
    sets: dict[str, tuple[int, Any]] = {
        "generated, 3 states, 4 symbols": (3, symbols_of(random, 3, 4, 40, 60)),
        "generated, 5 states, 12 symbols": (5, symbols_of(random, 5, 12, 40, 60)),
        "generated, 4 states, 2 symbols": (4, symbols_of(random, 4, 2, 40, 60)),
        "generated, 4 states, normal in 3": (4, vectors_of(random, 4, 3, 30, 50)),
        "generated, 6 states, normal in 6": (6, vectors_of(random, 6, 6, 30, 50)),
    }
    home = os.environ.get("MERCER_DATA")
    if home:
        sets |= real_sets(Path(home))
    else:
        print("MERCER_DATA is not set: real sequences are left out")
    print(
        f"log-likelihood reached, {seeds} seeds: mean and largest gap to the best fit, share within 1; seconds of a fit"
    )
    for title, (n, X) in sets.items():
        runs = {
            "mercer": lambda seed, n=n, X=X: HiddenMarkovModel(n, random_state=seed).fit(X).log_likelihood(X).sum(),
            "mercer, smoothing=1e-6": lambda seed, n=n, X=X: (
                HiddenMarkovModel(n, smoothing=1e-6, random_state=seed).fit(X).log_likelihood(X).sum()
            ),
            "hmmlearn": lambda seed, n=n, X=X: hmmlearn_fit(n, X, seed),
        }
        values: dict[str, list[float]] = {name: [] for name in runs}
        spent = dict.fromkeys(runs, 0.0)
        for seed in range(seeds):
            for name, run in runs.items():
                begun = time.process_time()
                values[name].append(float(run(seed)))
                spent[name] += time.process_time() - begun
        best = max(max(v) for v in values.values())
        columns: dict[str, Any] = {}
        print(f"{title}: best {best:.1f}")
        for name, v in values.items():
            gaps = best - np.array(v)
            line = f"  {name:24s} {gaps.mean():9.2f} {gaps.max():9.2f}  {(gaps < 1).mean():5.0%}"
            line += f"  {spent[name] / seeds:7.2f} s"
            columns |= {f"{name}: mean, largest gap": [round(float(gaps.mean()), 1), round(float(gaps.max()), 1)]}
            columns |= {f"{name}: s": round(spent[name] / seeds, 2)}
            if name == "hmmlearn":
                columns[f"best of {seeds}"] = round(float(gaps.min()), 1)
                line += f"   best of {seeds}: {gaps.min():.2f} in {spent[name]:.1f} s"
            print(line, flush=True)
        record("reached", title, values=columns, sizes=f"{seeds} seeds")


def hmmlearn_fit(n: int, X: Any, seed: int) -> float:
    lengths = [len(x) for x in X]
    if isinstance(X[0], np.ndarray):
        stacked = np.concatenate(X)
        model = GaussianHMM(n, n_iter=300, random_state=seed)
    else:
        _, codes = np.unique([s for x in X for s in x], return_inverse=True)
        stacked = codes.reshape(-1, 1)
        model = CategoricalHMM(n, n_iter=300, random_state=seed)
    model.implementation = "scaling"  # the faster of its two
    return float(model.fit(stacked, lengths).score(stacked, lengths))


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
        if name != "mercer":
            record("iteration", title, peer=name, theirs=1e3 * median, ours=1e3 * mine, unit="ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=("reached", "speed"), default=("reached", "speed"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--states", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=50_000)
    arguments = parse(parser, seeds=2, repeats=1, states=2, tokens=2000)
    warnings.simplefilter("ignore")
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)  # it warns of more parameters than positions
    if "reached" in arguments.parts:
        reached(arguments.seeds)
    if "speed" not in arguments.parts:
        return
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
