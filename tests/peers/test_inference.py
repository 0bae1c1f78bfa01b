"""The same marginals as pyAgrum: random networks, and those of bnlearn's repository where pgmpy's package is there."""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from mercer.inference import BayesianNetwork, infer

gum = pytest.importorskip("pyagrum")

NETWORKS = ["alarm", "insurance", "hailfinder", "win95pts", "andes", "pigs", "water", "mildew", "diabetes", "munin3"]


def random_network(seed: int, n: int = 40) -> BayesianNetwork:
    """Variables of 2 to 4 states with up to three parents; a third of the tables are functions of the parents."""
    rng = np.random.default_rng(seed)
    names, cards = [f"v{i}" for i in range(n)], rng.integers(2, 5, n)
    parents, tables = {}, {}
    for i, name in enumerate(names):
        given = sorted(rng.permutation(np.arange(max(0, i - 6), i))[: rng.integers(0, 4)].tolist())
        shape = tuple(cards[given].tolist())
        functions = np.eye(cards[i])[rng.integers(0, cards[i], shape)]
        noisy = rng.dirichlet(np.full(cards[i], 0.5), size=shape)
        parents[name], tables[name] = [names[j] for j in given], functions if rng.random() < 1 / 3 else noisy
    return BayesianNetwork(dict(zip(names, cards.tolist(), strict=True)), parents, tables)


def peer_marginals(network: BayesianNetwork, evidence: dict[str, int]) -> tuple[np.ndarray, float]:
    """Marginals in the order of the variables, and log p(evidence)."""
    theirs = gum.BayesNet()
    for name in network.names:
        theirs.add(gum.RangeVariable(str(name), "", 0, len(network.states[name]) - 1))
    for name in network.names:
        for parent in network.parents[name]:
            theirs.addArc(str(parent), str(name))
        # The first variable changes fastest: the node itself, then its parents as they were added.
        theirs.cpt(str(name)).fillWith(np.moveaxis(network.tables[name], -1, 0).reshape(-1, order="F").tolist())
    engine = gum.LazyPropagation(theirs)
    engine.setEvidence(evidence)
    engine.makeInference()
    flat = np.concatenate([engine.posterior(str(name)).toarray() for name in network.names])
    return flat, float(np.log(engine.evidenceProbability()))


def assert_equal(network: BayesianNetwork, seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = network.sample(1, random_state=seed)[0]
    observed = {network.names[i]: int(drawn[i]) for i in rng.permutation(len(drawn))[: len(drawn) // 10]}
    for evidence in ({}, observed):
        flat, log_evidence = peer_marginals(network, evidence)
        result = infer(network, evidence=evidence)
        assert result.exact
        np.testing.assert_allclose(result.marginals.flat, flat, atol=1e-9)
        assert result.log_partition == pytest.approx(log_evidence, abs=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_marginals_of_random_networks_equal_the_peer(seed):
    assert_equal(random_network(seed), seed)


@pytest.mark.parametrize("name", NETWORKS)
def test_marginals_of_real_networks_equal_the_peer(name, tmp_path):
    package = find_spec("pgmpy")
    files = [] if package is None else list(Path(str(package.origin)).parent.rglob(f"{name}.bif.gz"))
    if not files:
        pytest.skip("pgmpy's package with the networks is not installed")
    path = tmp_path / f"{name}.bif"
    path.write_bytes(gzip.decompress(files[0].read_bytes()))
    assert_equal(BayesianNetwork.read(path), 0)
