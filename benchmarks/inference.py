"""All marginals of graphical models: beside pyAgrum, pgmpy and PGMax, in one run.

    python benchmarks/inference.py [--parts chains trees networks repository files whole loopy loopy-large gibbs cuts]
                                   [--repeats 5]
    python benchmarks/inference.py --smoke          (small networks, one repeat)

chains       Bayesian networks in a row, 100 and 1,000 nodes of 5 states
trees        the same with a random parent among all nodes before
networks     nodes of 3 states with up to 3 parents among the 4 before, 100 and 1,000 nodes; and with 10 % observed
repository   the networks of bnlearn's repository, from the files in pgmpy's package, without evidence and with a tenth
             of the variables observed; and generated ones with deterministic tables (--networks: some of them by name)
files        the same networks read from BIF and from UAI files, beside pyAgrum's loadBN and loadMRF
whole        the same networks from arrays to all marginals with a tenth observed, building included
loopy        100 synchronous sweeps of sum-product messages on a 30 × 30 grid of binary variables
loopy-large  the same on 300 × 300
gibbs        sweeps over a 100 × 100 Ising grid, beside a checkerboard sampler in NumPy
cuts         the best assignment of a 512 × 512 grid of two states, beside PyMaxflow

pyAgrum: LazyPropagation (makeInference, a posterior for every node). pgmpy: a query of VariableElimination for each
node, once, for 100 nodes. PGMax: its compiled run, and build + first call. "ready": the model is built and was asked
before (ours keeps its tree of cliques, pyAgrum's engine is new each time); "build": from arrays. Seconds of the
processor, one thread, medians of interleaved repeats. Peers that are not installed are left out.

repository: every run is in a process of its own and begins with the network in memory: an order of elimination is
searched for (mercer), an engine made (pyAgrum). A run that takes more than --limit seconds or --memory bytes ends
without a result. "error" is the largest difference between marginals of the two.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import logging
import multiprocessing
import os
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
from _timing import SMOKE, missing, parse, record, sized
from sklearn.exceptions import ConvergenceWarning

from mercer import _core
from mercer.inference import BayesianNetwork, FactorGraph, grid_edges, infer, minimum_cut, read_uai

PARTS = ("chains", "trees", "networks", "repository", "files", "whole", "loopy", "loopy-large", "gibbs", "cuts")
SWEEPS = 100
LONG = 10.0  # seconds after which a network is not measured again


def peer(name: str) -> Any:
    """The module of a peer, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(name)
    except ImportError:
        return None


def measured(runs: dict[str, Callable[[], Any]], repeats: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Median seconds and the last result of each, interleaved; short ones run several times in a row."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    results: dict[str, Any] = {}
    numbers = {}
    for name, run in runs.items():
        start = time.process_time()
        run()
        numbers[name] = 1 + int(0.02 / max(1e-5, time.process_time() - start))
    for _ in range(repeats):
        for name, run in runs.items():
            gc.collect()
            start = time.process_time()
            for _ in range(numbers[name]):
                results[name] = run()
            seconds[name].append((time.process_time() - start) / numbers[name])
    return {name: float(np.median(taken)) for name, taken in seconds.items()}, results


def show(title: str, seconds: dict[str, float]) -> None:
    print(f"\n{title}")
    ours = {name: s for name, s in seconds.items() if name.startswith("mercer")}
    for name, s in seconds.items():
        kind = name.split(", ")[-1]
        own = next((t for other, t in ours.items() if other.endswith(kind)), None)
        ratio = "" if name in ours or own is None else f"   mercer is {s / own:8.1f}x as fast"
        print(f"  {name:34s} {1e3 * s:11.3f} ms{ratio}")
        if name in ours and len(ours) == len(seconds):
            record("exact", f"{title.partition(' (')[0]}, {kind}", ours=1e3 * s, unit="ms")
        elif name not in ours and own is not None:
            other = name.split(",")[0]
            record(
                "exact", f"{title.partition(' (')[0]}, {kind}", peer=other, theirs=1e3 * s, ours=1e3 * own, unit="ms"
            )


# ---------------------------------------------------------------------------------------------- exact


def random_tables(rng: np.random.Generator, parents: list[list[int]], states: int) -> list[np.ndarray]:
    """Conditional tables with rows drawn evenly."""
    return [rng.dirichlet(np.ones(states), size=(states,) * len(given)) for given in parents]


def structure(part: str, n: int, rng: np.random.Generator) -> tuple[list[list[int]], int]:
    """Parents of each node, and the number of states."""
    if part == "chains":
        return [[i - 1] if i else [] for i in range(n)], 5
    if part == "trees":
        return [[int(rng.integers(i))] if i else [] for i in range(n)], 5
    near = [list(range(max(0, i - 4), i)) for i in range(n)]
    return [sorted(rng.permutation(c)[: rng.integers(1, 4)].tolist()) if c else [] for c in near], 3


def ours(parents: list[list[int]], tables: list[np.ndarray]) -> BayesianNetwork:
    names = [f"v{i}" for i in range(len(parents))]
    return BayesianNetwork(
        {v: t.shape[-1] for v, t in zip(names, tables, strict=True)},
        {v: [names[j] for j in p] for v, p in zip(names, parents, strict=True)},
        dict(zip(names, tables, strict=True)),
    )


def agrum_network(gum: Any, parents: list[list[int]], tables: list[np.ndarray]) -> Any:
    network = gum.BayesNet()
    ids = [network.add(gum.RangeVariable(f"v{i}", "", 0, t.shape[-1] - 1)) for i, t in enumerate(tables)]
    for i, given in enumerate(parents):
        for j in given:
            network.addArc(ids[j], ids[i])
    for i, table in enumerate(tables):
        # The first variable changes fastest: the node itself, then its parents as they were added.
        network.cpt(ids[i]).fillWith(np.moveaxis(table, -1, 0).reshape(-1, order="F").tolist())
    return network


def agrum_marginals(gum: Any, network: Any, evidence: dict[str, int]) -> np.ndarray:
    engine = gum.LazyPropagation(network)
    if hasattr(engine, "setNumberOfThreads"):
        engine.setNumberOfThreads(1)
    engine.setEvidence(evidence)
    engine.makeInference()
    return np.concatenate([engine.posterior(f"v{i}").toarray() for i in range(network.size())])


def pgmpy_network(parents: list[list[int]], tables: list[np.ndarray]) -> Any:
    models = import_module("pgmpy.models")
    factors = import_module("pgmpy.factors.discrete")
    made = getattr(models, "DiscreteBayesianNetwork", None) or models.BayesianNetwork
    network = made([(f"v{j}", f"v{i}") for i, given in enumerate(parents) for j in given])
    for i, (given, table) in enumerate(zip(parents, tables, strict=True)):
        card = table.shape[-1]
        network.add_cpds(
            factors.TabularCPD(
                f"v{i}", card, table.reshape(-1, card).T.tolist(), [f"v{j}" for j in given], [card] * len(given)
            )
        )
    return network


def exact(part: str, repeats: int, sizes: tuple[int, ...] = sized((100, 1000), (100,))) -> None:
    rng = np.random.default_rng(0)
    gum = peer("pyagrum")
    for n in sizes:
        parents, states = structure(part, n, rng)
        tables = random_tables(rng, parents, states)
        network = ours(parents, tables)
        drawn = network.sample(1, random_state=0)[0]
        seen = {f"v{i}": int(drawn[i]) for i in rng.permutation(n)[: n // 10]}
        for evidence in ({}, seen):
            graph = network.factor_graph
            assert graph.compiled is not None
            runs: dict[str, Callable[[], Any]] = {
                "mercer, ready": lambda e=evidence, g=graph: infer(g, evidence=e).marginals.flat,
                "mercer, build": lambda e=evidence, p=parents, t=tables: infer(ours(p, t), evidence=e).marginals.flat,
            }
            if gum is not None:
                theirs = agrum_network(gum, parents, tables)
                runs["pyAgrum, ready"] = lambda e=evidence, m=theirs: agrum_marginals(gum, m, e)
                runs["pyAgrum, build"] = lambda e=evidence, p=parents, t=tables: agrum_marginals(
                    gum, agrum_network(gum, p, t), e
                )
            taken, results = measured(runs, repeats)
            if gum is not None:
                assert np.allclose(results["mercer, ready"], results["pyAgrum, ready"], atol=1e-8)
            if n == 100 and not evidence and peer("pgmpy") is not None:
                taken["pgmpy, ready"] = pgmpy_seconds(parents, tables)
            note = f", {len(evidence)} observed" if evidence else ""
            show(f"{part}: {n} nodes of {states} states{note} ({infer(graph, evidence=evidence).method})", taken)


def pgmpy_seconds(parents: list[list[int]], tables: list[np.ndarray]) -> float:
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = pgmpy_network(parents, tables)
        engine = import_module("pgmpy.inference").VariableElimination(network)
        start = time.process_time()
        for i in range(len(tables)):
            engine.query([f"v{i}"], show_progress=False)
        return time.process_time() - start


# ---------------------------------------------------------------------------------------------- real networks


def repository_files() -> dict[str, Path]:
    """The networks in pgmpy's package, by name."""
    found = find_spec("pgmpy")
    if found is None or found.origin is None:
        return {}
    folder = Path(found.origin).parent
    return {path.name.split(".")[0]: path for path in sorted(folder.rglob("*.bif.gz"), key=lambda p: p.stat().st_size)}


def read_network(path: Path) -> BayesianNetwork:
    with tempfile.NamedTemporaryFile(suffix=".bif") as file:
        file.write(gzip.decompress(path.read_bytes()))
        file.flush()
        return BayesianNetwork.read(file.name)


def generated_network(n: int, window: int, seed: int = 0) -> BayesianNetwork:
    """Nodes of 2 to 5 states with parents among the last few; half of the tables are functions."""
    rng = np.random.default_rng(seed)
    names, cards = [f"v{i}" for i in range(n)], rng.integers(2, 6, n)
    parents, tables = {}, {}
    for i, name in enumerate(names):
        near = np.arange(max(0, i - window), i)
        given = sorted(rng.permutation(near)[: rng.integers(1, 4)].tolist()) if i else []
        shape = tuple(cards[given].tolist())
        rows = rng.dirichlet(np.ones(cards[i]), size=shape)
        if given and rng.random() < 0.5:
            rows = np.eye(cards[i])[rng.integers(0, cards[i], shape)]
        parents[name], tables[name] = [names[j] for j in given], rows
    return BayesianNetwork(dict(zip(names, cards.tolist(), strict=True)), parents, tables)


def cpu_seconds(pid: int | None) -> float:
    """Seconds of the processor that another process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def in_child(run: Callable[[], tuple[float, Any]], limit: float, memory: float) -> tuple[float, Any] | None:
    """What a run gives in a process of its own, or None if it takes too long or too much memory."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
        sender.send(run())

    child = context.Process(target=work)
    child.start()
    sender.close()
    try:
        while not receiver.poll(0.2):
            if cpu_seconds(child.pid) > limit:
                return None
        return receiver.recv()
    except EOFError:  # the process has ended without a result
        return None
    finally:
        child.kill()
        child.join()


def warmed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and the result of a run; short ones are repeated, so that the first calls of a process do not count."""
    seconds, answer = [], None
    while not seconds or (seconds[0] < 0.1 and len(seconds) < 10):
        start = time.process_time()
        answer = run()
        seconds.append(time.process_time() - start)
    return float(np.median(seconds)), answer


def our_marginals(network: BayesianNetwork, evidence: dict[str, int]) -> tuple[float, Any]:
    graph = network.factor_graph.compiled

    def run() -> Any:
        graph.cache.clear()  # no order of elimination from a call before
        graph.__dict__.pop("possible", None)
        result = infer(network, evidence=evidence)
        return result.marginals.flat, result.exact, result.method, result.extra.get("bytes", 0)

    return warmed(run)


def their_marginals(gum: Any, network: BayesianNetwork, evidence: dict[str, int]) -> tuple[float, Any]:
    theirs, seen = their_builder(gum, network)(), their_evidence(network, evidence)
    return warmed(lambda: agrum_marginals(gum, theirs, seen))


def their_evidence(network: BayesianNetwork, evidence: dict[str, int]) -> dict[str, int]:
    place = {name: i for i, name in enumerate(network.names)}
    return {f"v{place[name]}": state for name, state in evidence.items()}


def their_builder(gum: Any, network: BayesianNetwork) -> Callable[[], Any]:
    """Makes pyAgrum's network from lists that are ready in its own order of entries."""
    place = {name: f"v{i}" for i, name in enumerate(network.names)}
    order = [(name, len(network.states[name]), network.parents[name]) for name in network._order]
    rows = {name: np.moveaxis(network.tables[name], -1, 0).reshape(-1, order="F").tolist() for name in network.names}

    def build() -> Any:
        theirs = gum.BayesNet()
        for name, states, _ in order:
            theirs.add(gum.RangeVariable(place[name], "", 0, states - 1))
        for name, _, parents in order:
            for parent in parents:
                theirs.addArc(place[parent], place[name])
            theirs.cpt(place[name]).fillWith(rows[name])
        return theirs

    return build


# ---------------------------------------------------------------------------------------- reading, building


def side_by_side(
    table: str, name: str, runs: dict[str, Callable[[], Any]], repeats: int, sizes: str = ""
) -> dict[str, Any]:
    """A row of two runs that may be short, interleaved; the results of both."""
    seconds, results = measured(runs, repeats)
    (ours_, mine), *others = seconds.items()
    line = f"{table}: {name:16s} {ours_} {1e3 * mine:9.3f} ms"
    theirs = None
    for other, took in others:
        theirs = 1e3 * took
        line += f"   {other} {theirs:9.3f} ms   {took / mine:6.2f} x"
    record(table, name, peer="pyAgrum", theirs=theirs, ours=1e3 * mine, unit="ms", sizes=sizes)
    print(line, flush=True)
    return results


def named_networks(chosen: list[str] | None) -> dict[str, BayesianNetwork]:
    """The networks of the repository; in their place a generated one where there are none, or with ``--smoke``."""
    files = sized(repository_files, dict)()
    if not files:
        return {"generated-small": generated_network(60, 5)}
    return {name: read_network(path) for name, path in files.items() if chosen is None or name in chosen}


def files(repeats: int, chosen: list[str] | None) -> None:
    """The compiled readers beside pyAgrum's; their names of variables have no marks that one of both refuses."""
    gum = peer("pyagrum")
    with tempfile.TemporaryDirectory() as folder:
        for name, network in named_networks(chosen).items():
            for ending in ("bif", "uai"):
                path = Path(folder) / f"{name}.{ending}"
                write_plain(network, path) if ending == "bif" else network.factor_graph.write_uai(path)
                runs: dict[str, Callable[[], Any]] = {
                    "mercer": lambda p=path: BayesianNetwork.read(p) if p.suffix == ".bif" else read_uai(p)
                }
                if gum is not None:
                    load = gum.loadBN if ending == "bif" else gum.loadMRF
                    runs["pyAgrum"] = lambda p=path, load=load: load(str(p))
                sizes = f"{path.stat().st_size / 1e3:.3g} kB"
                results = side_by_side(f"reading {ending.upper()}", name, runs, repeats, sizes)
                if gum is not None:
                    n = network.factor_graph.n_variables
                    assert results["pyAgrum"].size() == n
                path.unlink()


def write_plain(network: BayesianNetwork, path: Path) -> None:
    """The network with names that every reader takes: the repository's hold slashes, plus signs and points."""
    names = {name: f"v{i}" for i, name in enumerate(network.names)}
    BayesianNetwork(
        {names[v]: [f"s{k}" for k in range(len(states))] for v, states in network.states.items()},
        {names[v]: [names[u] for u in parents] for v, parents in network.parents.items()},
        {names[v]: table for v, table in network.tables.items()},
    ).write(path)


def whole(repeats: int, chosen: list[str] | None) -> None:
    """From arrays (lists, for pyAgrum) to all marginals with a tenth of the variables observed, at least one."""
    gum = peer("pyagrum")
    for name, network in named_networks(chosen).items():
        rng = np.random.default_rng(0)
        drawn = network.sample(1, random_state=0)[0]
        seen = {network.names[i]: int(drawn[i]) for i in rng.permutation(len(drawn))[: max(1, len(drawn) // 10)]}
        states = {v: list(s) for v, s in network.states.items()}
        tables = {v: np.array(t) for v, t in network.tables.items()}
        runs: dict[str, Callable[[], Any]] = {
            "mercer": lambda s=states, p=dict(network.parents), t=tables, e=seen: (
                infer(BayesianNetwork(s, p, t), evidence=e).marginals.flat
            )
        }
        if gum is not None:
            build, observed = their_builder(gum, network), their_evidence(network, seen)
            runs["pyAgrum"] = lambda b=build, e=observed: agrum_marginals(gum, b(), e)
        results = side_by_side("building and marginals, a tenth observed", name, runs, repeats)
        if gum is not None:
            assert np.allclose(results["mercer"], results["pyAgrum"], atol=1e-8)


def repository(repeats: int, chosen: list[str] | None, limit: float, memory: float) -> None:
    gum, files = peer("pyagrum"), sized(repository_files, dict)()
    if not files and not SMOKE:
        print("pgmpy is not installed: generated networks only")
    makers: dict[str, Callable[[], BayesianNetwork]] = {
        "generated-small": lambda: generated_network(60, 5), "generated-large": lambda: generated_network(400, 9)
    }  # fmt: skip
    if SMOKE:
        del makers["generated-large"]
    makers.update({name: (lambda path=path: read_network(path)) for name, path in files.items()})
    if chosen:
        makers = {name: makers[name] for name in chosen}
    head = f"{'network':16s} {'observed':>8s} {'method':>14s} {'bytes':>9s} {'mercer':>10s}"
    print(head if gum is None else f"{head} {'pyAgrum':>10s} {'ratio':>9s} {'error':>8s}")
    for name, make in makers.items():
        network = make()
        rng = np.random.default_rng(0)
        drawn = network.sample(1, random_state=0)[0]
        seen = {network.names[i]: int(drawn[i]) for i in rng.permutation(len(drawn))[: len(drawn) // 10]}
        for evidence in ({}, seen) if seen else ({},):
            print(compare(gum, name, network, evidence, repeats, limit, memory), flush=True)


def compare(
    gum: Any, name: str, network: BayesianNetwork, evidence: dict[Any, int], repeats: int, limit: float, memory: float
) -> str:
    """A row of the table: runs of both, interleaved."""
    mine, theirs, found, flat, finished = [], [], None, None, gum is not None
    for _ in range(repeats):
        found = in_child(lambda: our_marginals(network, evidence), limit, memory)
        if found is None:
            break
        mine.append(found[0])
        if finished:
            other = in_child(lambda: their_marginals(gum, network, evidence), limit, memory)
            finished = other is not None
            if other is not None:
                theirs.append(other[0])
                flat = other[1]
        if found[0] + sum(theirs) > LONG:
            break
    if found is None:
        return f"{name:16s} {len(evidence):8d}  mercer: no result in {limit:.0f} s and {memory:.2g} bytes"
    marginals, exact, method, n_bytes = found[1]
    own = float(np.median(mine))
    method = method if exact else f"{method} (!)"
    took = float(np.median(theirs)) if theirs and flat is not None else None
    record(
        "repository, a tenth observed" if evidence else "repository",
        name,
        peer="pyAgrum",
        theirs=None if took is None else 1e3 * took,
        ours=1e3 * own,
        unit="ms",
        sizes=f"tables of {n_bytes:.2g} bytes",
    )
    row = f"{name:16s} {len(evidence):8d} {method:>14s} {n_bytes:9.2g} {1e3 * own:7.2f} ms"
    if gum is None:
        return row
    if not finished or flat is None:
        return row + f"  pyAgrum: no result in {limit:.0f} s and {memory:.2g} bytes"
    other_seconds = float(np.median(theirs))
    error = float(np.abs(flat - marginals).max())
    return row + f" {1e3 * other_seconds:7.2f} ms {other_seconds / own:7.1f} x {error:8.1e}"


# ---------------------------------------------------------------------------------------------- messages


def shim_jax() -> None:
    """PGMax 0.6.1 asks for a name that newer versions of JAX no longer have."""
    jax, backend = import_module("jax"), import_module("jax.extend.backend")
    if not hasattr(jax.lib, "xla_bridge"):
        jax.lib.xla_bridge = SimpleNamespace(get_backend=backend.get_backend)


def pgmax_runs(side: int, unary: np.ndarray, pairwise: np.ndarray) -> tuple[Callable[[], Any], ...] | None:
    """(build and first call, later calls) of PGMax."""
    if peer("pgmax") is None:
        return None
    shim_jax()
    fgraph, vgroup, factor = (import_module(f"pgmax.{part}") for part in ("fgraph", "vgroup", "fgroup"))
    inferer = import_module("pgmax.infer")
    kept: dict[str, Any] = {}

    def build() -> np.ndarray:
        variables = vgroup.NDVarArray(num_states=2, shape=(side, side))
        graph = fgraph.FactorGraph(variable_groups=variables)
        edges = grid_edges((side, side))
        pairs = [[variables[divmod(int(a), side)], variables[divmod(int(b), side)]] for a, b in edges]
        graph.add_factors(factor.PairwiseFactorGroup(variables_for_factors=pairs, log_potential_matrix=pairwise))
        bp = inferer.build_inferer(graph.bp_state, backend="bp")

        def sweeps(arrays: Any) -> Any:
            done = bp.run(arrays, num_iters=SWEEPS, damping=0.0, temperature=1.0)
            return inferer.get_marginals(bp.get_beliefs(done))[variables]

        kept["sweeps"] = import_module("jax").jit(sweeps)
        kept["arrays"] = bp.init(evidence_updates={variables: unary.reshape(side, side, 2)})
        return run()

    def run() -> np.ndarray:
        return np.asarray(kept["sweeps"](kept["arrays"])).reshape(-1)

    return build, run


def loopy(side: int, repeats: int) -> None:
    rng = np.random.default_rng(0)
    unary = rng.normal(size=(side * side, 2))
    pairwise = np.array([[0.3, -0.3], [-0.3, 0.3]])

    def build() -> FactorGraph:
        edges = grid_edges((side, side))
        return FactorGraph(np.full(side * side, 2), unary=unary, edges=edges, pairwise=pairwise, log=True)

    def run(graph: FactorGraph) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # all sweeps are asked for: tol=0
            return infer(graph, "bp", max_iter=SWEEPS, tol=0.0).marginals.flat

    ready = build()
    assert ready.compiled is not None
    runs: dict[str, Callable[[], Any]] = {"mercer, ready": lambda: run(ready), "mercer, build": lambda: run(build())}
    theirs = pgmax_runs(side, unary, pairwise)
    first = None
    if theirs is not None:
        start = time.process_time()
        theirs[0]()
        first = time.process_time() - start
        runs["PGMax, ready"] = theirs[1]
    taken, results = measured(runs, repeats)
    if first is not None:
        taken["PGMax with its compilation, build"] = first
        assert np.allclose(results["mercer, ready"], results["PGMax, ready"], atol=1e-3)  # PGMax: float32
    show(f"loopy: {side} x {side} grid, {SWEEPS} sweeps", taken)


class Checkerboard:
    """Gibbs sampling of an Ising grid in NumPy: half of the lattice at a time, on arrays that hold one colour each."""

    def __init__(self, side: int, coupling: float) -> None:
        self.random = np.random.default_rng(0)
        self.coupling = np.float32(coupling)
        self.spins = np.where(self.random.random((side, side)) < 0.5, 1, -1).astype(np.float32)

    def sweep(self) -> None:
        s = self.spins
        field = np.zeros_like(s)
        for colour in (0, 1):
            field[:] = 0.0
            field[1:] += s[:-1]
            field[:-1] += s[1:]
            field[:, 1:] += s[:, :-1]
            field[:, :-1] += s[:, 1:]
            for row in (0, 1):
                cells = np.s_[row::2, (row + colour) % 2 :: 2]
                odds = 1.0 + np.exp(-2.0 * self.coupling * field[cells])
                drawn = self.random.random(odds.shape, dtype=np.float32) * odds < 1.0
                s[cells] = np.where(drawn, np.float32(1.0), np.float32(-1.0))


def gibbs(repeats: int, side: int = sized(100, 20), sweeps: int = sized(200, 20), coupling: float = 0.4) -> None:
    """Sweeps over an Ising grid."""
    table = [[coupling, -coupling], [-coupling, coupling]]
    graph = FactorGraph(np.full(side * side, 2), edges=grid_edges((side, side)), pairwise=table, log=True).compiled
    board = Checkerboard(side, coupling)
    start, ones = np.zeros((1, side * side), np.int32), np.ones(sweeps)
    samplers = {kind: _core.inference.Sampler(graph.core, start, 0, kind, []) for kind in ("colours", "gibbs")}
    runs: dict[str, Callable[[], Any]] = {
        "numpy, checkerboard": lambda: [board.sweep() for _ in range(sweeps)],
        "mercer, by colours": lambda: samplers["colours"].run(ones, 0, None, None, False, 1),
        "with marginals": lambda: samplers["colours"].run(ones, 0, None, None, True, 1),
        "mercer, one by one": lambda: samplers["gibbs"].run(ones, 0, None, None, False, 1),
    }
    seconds, _ = measured(runs, repeats)
    print(f"Gibbs sweeps, {side} x {side} Ising grid")
    for name, value in seconds.items():
        print(f"  {name:22s} {sweeps / value:10.0f} sweeps/s   {seconds['numpy, checkerboard'] / value:6.1f} x")
        if name != "numpy, checkerboard":
            theirs = sweeps / seconds["numpy, checkerboard"]
            sizes = f"{side} x {side}"
            record("gibbs", name, peer="NumPy", theirs=theirs, ours=sweeps / value, unit="sweeps/s", sizes=sizes)


def cuts(repeats: int, side: int = sized(512, 64)) -> None:
    """Minimum cuts of noisy disks and of pure noise."""
    maxflow = peer("maxflow")
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:side, :side]
    disk = np.where(np.hypot(y - side / 2, x - side / 2) < side / 3, 1.0, -1.0) + 2.0 * rng.normal(size=(side, side))
    edges = grid_edges((side, side)).astype(np.int32)
    for name, single in (("a disk in noise", disk), ("noise", rng.normal(size=(side, side)))):
        for strength in (0.5, 1.0):
            source, sink = np.maximum(single, 0), np.maximum(-single, 0)

            def theirs(source: Any = source, sink: Any = sink, strength: float = strength) -> float:
                graph = maxflow.Graph[float](side * side, 2 * side * side)
                nodes = graph.add_grid_nodes((side, side))
                graph.add_grid_edges(nodes, strength)
                graph.add_grid_tedges(nodes, source, sink)
                return float(graph.maxflow())

            def mine(source: Any = source, sink: Any = sink, strength: float = strength) -> float:
                return minimum_cut(source.ravel(), sink.ravel(), edges, strength)[0]

            runs: dict[str, Callable[[], Any]] = {"mercer": mine}
            if maxflow is not None:
                runs["PyMaxflow"] = theirs
            seconds, results = measured(runs, repeats)
            line = f"cut of {name}, {side} x {side}, strength {strength}: mercer {1e3 * seconds['mercer']:.0f} ms"
            if maxflow is not None:
                assert np.isclose(results["mercer"], results["PyMaxflow"])
                ratio = seconds["PyMaxflow"] / seconds["mercer"]
                times = {"theirs": 1e3 * seconds["PyMaxflow"], "ours": 1e3 * seconds["mercer"]}
                record(
                    "cuts",
                    f"{name}, strength {strength}",
                    peer="PyMaxflow",
                    unit="ms",
                    sizes=f"{side} x {side}",
                    **times,
                )
                line += f", PyMaxflow {1e3 * seconds['PyMaxflow']:.0f} ms, {ratio:.2f} x"
            print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--networks", nargs="+", help="of 'repository', 'files' and 'whole', by name")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of the processor for a run of 'repository'")
    parser.add_argument("--memory", type=float, default=12e9, help="bytes of a run of 'repository'")
    given = parse(
        parser, parts=["chains", "networks", "repository", "files", "whole", "loopy", "gibbs", "cuts"], repeats=1
    )
    missing("pyagrum", "pgmpy", "pgmax", "maxflow")
    for part in given.parts:
        if part.startswith("loopy"):
            loopy(300 if part == "loopy-large" else 30, given.repeats)
        elif part == "gibbs":
            gibbs(given.repeats)
        elif part == "cuts":
            cuts(given.repeats)
        elif part in ("files", "whole"):
            (files if part == "files" else whole)(given.repeats, given.networks)
        elif part == "repository":
            repository(given.repeats, given.networks, given.limit, given.memory)
        else:
            exact(part, given.repeats)


if __name__ == "__main__":
    main()
