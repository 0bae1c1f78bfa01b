"""Queries of Bayesian networks beside pyAgrum and pgmpy."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pytest

from mercer.inference import BayesianNetwork, infer


def random_network(seed: int, n: int = 14, most_parents: int = 3) -> tuple[BayesianNetwork, dict, dict, dict]:
    """A network with 2 to 4 states a variable, and its sizes, parents and tables."""
    random = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(n)]
    sizes = {name: int(random.integers(2, 5)) for name in names}
    parents = {
        name: sorted(random.choice(names[:i], size=min(i, int(random.integers(most_parents + 1))), replace=False))
        for i, name in enumerate(names)
    }
    parents = {name: [str(p) for p in given] for name, given in parents.items()}
    tables = {
        name: random.dirichlet(np.ones(sizes[name]), size=tuple(sizes[p] for p in given))
        for name, given in parents.items()
    }
    return BayesianNetwork(sizes, parents, tables), sizes, parents, tables


def evidence_of(network: BayesianNetwork, sizes: dict, seed: int) -> dict[str, int]:
    """A third of the variables, at states that occur together."""
    row = network.sample(1, random_state=seed)[0]
    names = list(sizes)
    chosen = np.random.default_rng(seed).permutation(len(names))[: len(names) // 3]
    return {names[i]: int(row[i]) for i in chosen}


@pytest.mark.parametrize("seed", range(8))
def test_posteriors_and_the_probability_of_evidence_equal_those_of_pyagrum(seed):
    gum = pytest.importorskip("pyagrum", reason="pyagrum: not installed")
    network, sizes, parents, tables = random_network(seed)
    theirs = gum.BayesNet()
    for name, size in sizes.items():
        theirs.add(gum.RangeVariable(name, "", 0, size - 1))
    for name, given in parents.items():
        for parent in given:
            theirs.addArc(parent, name)
    for name, table in tables.items():
        # The first variable changes fastest: the node itself, then its parents as they were added.
        theirs.cpt(name).fillWith(np.moveaxis(table, -1, 0).reshape(-1, order="F").tolist())
    for evidence in ({}, evidence_of(network, sizes, seed)):
        engine = gum.LazyPropagation(theirs)
        engine.setEvidence(evidence)
        engine.makeInference()
        result = infer(network, evidence=evidence)
        for name in set(sizes) - set(evidence):
            np.testing.assert_allclose(result.marginals[name], engine.posterior(name).toarray(), atol=1e-9)
        assert result.log_partition == pytest.approx(np.log(engine.evidenceProbability()), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_posteriors_and_the_best_assignment_equal_those_of_pgmpy(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = pytest.importorskip("pgmpy.models", reason="pgmpy: not installed")
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.inference import VariableElimination
    logging.disable(logging.WARNING)
    try:
        network, sizes, parents, tables = random_network(seed, n=8)
        theirs = models.DiscreteBayesianNetwork([(p, name) for name, given in parents.items() for p in given])
        theirs.add_nodes_from(sizes)
        for name, given in parents.items():
            columns = tables[name].reshape(-1, sizes[name]).T.tolist()
            theirs.add_cpds(TabularCPD(name, sizes[name], columns, given or None, [sizes[p] for p in given] or None))
        engine = VariableElimination(theirs)
        evidence = evidence_of(network, sizes, seed)
        hidden = [name for name in sizes if name not in evidence]
        result = infer(network, evidence=evidence)
        for name in hidden:
            values = engine.query([name], evidence=evidence, show_progress=False).values
            np.testing.assert_allclose(result.marginals[name], values, atol=1e-9)
        best = engine.map_query(hidden, evidence=evidence, show_progress=False)
        expected = network.log_probability({**evidence, **{name: int(best[name]) for name in hidden}})
        found = infer(network, task="map", evidence=evidence)
        assert network.log_probability(found.map) == pytest.approx(expected, abs=1e-9)
    finally:
        logging.disable(logging.NOTSET)
