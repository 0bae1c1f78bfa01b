"""One word for one thing: what constructors of public estimators call their parameters (docs/guide/parameters.md)."""

from __future__ import annotations

import importlib
import inspect

import pytest

from mercer._state.registry import MODELS

OTHER_WORDS = {
    **dict.fromkeys(
        ("lam", "lambda_", "lmbda", "reg", "regularization", "l1", "l2", "ridge", "shrinkage"), "C or alpha"
    ),
    **dict.fromkeys(("weight_decay", "penalty_weight"), "alpha"),
    **dict.fromkeys(
        ("n_iter", "n_iters", "n_epochs", "epochs", "passes", "max_rounds", "rounds", "max_epochs"), "max_iter"
    ),
    **dict.fromkeys(("eps", "tolerance", "precision"), "tol"),
    **dict.fromkeys(("n_threads", "threads", "workers", "n_workers"), "n_jobs"),
    **dict.fromkeys(("seed", "random_seed", "rng"), "random_state"),
    **dict.fromkeys(("algorithm_name", "optimizer", "optimiser"), "solver"),
    **dict.fromkeys(("rate", "eta", "eta0", "step_size", "lr"), "learning_rate"),
    **dict.fromkeys(("n_iter_no_change", "n_stale"), "patience"),
    **dict.fromkeys(("k", "n_features_out", "n_latent"), "n_components, n_neighbors or another number by its name"),
}
"""What others say, and the word here."""

REASONS = {
    (
        "BoltzmannMachine",
        "weight_decay",
    ): "a step shrinks the weights by this share, times the rate: the word of networks",
    ("RBM", "weight_decay"): "as for BoltzmannMachine",
    ("NeuralTagger", "optimizer"): "a function that makes an optimiser of PyTorch, and no name of a solver",
    **{
        (f"{kind}Hasher", "seed"): "it names a hash function, which is the same everywhere, and draws nothing"
        for kind in ("Graphlet", "Record", "String", "Text")
    },
    ("FeatureMatching", "tolerance"): "a distance in space, and not when to stop",
}

OF_DIRICHLET = {
    ("SpatialLDA", "alpha"): "of the Dirichlet distribution, as everywhere in topic models",
    ("ShapePartModel", "alpha"): "as for SpatialLDA",
}


def constructors() -> dict[str, inspect.Signature]:
    named = {}
    for where in MODELS.values():
        module, _, name = where.partition(":")
        try:
            cls = getattr(importlib.import_module(module), name)
        except ImportError:  # PyTorch is not installed
            continue
        if hasattr(cls, "fit"):
            named[name] = inspect.signature(cls)
    return named


CONSTRUCTORS = constructors()


def test_no_constructor_has_another_word():
    others = {
        f"{name}({parameter})": OTHER_WORDS[parameter]
        for name, signature in CONSTRUCTORS.items()
        for parameter in signature.parameters
        if parameter in OTHER_WORDS and (name, parameter) not in REASONS
    }
    assert others == {}


def test_reasons_are_of_parameters_that_exist():
    exist = {(name, parameter) for name, signature in CONSTRUCTORS.items() for parameter in signature.parameters}
    known = {key for key in (*REASONS, *OF_DIRICHLET) if key[0] in CONSTRUCTORS}
    assert known <= exist


@pytest.mark.parametrize("parameter", ["n_jobs", "verbose", "warm_start", "patience"])
def test_common_parameters_have_one_default(parameter):
    defaults = {
        repr(signature.parameters[parameter].default)
        for name, signature in CONSTRUCTORS.items()
        if parameter in signature.parameters and name != "NeuralTagger"
    }
    assert len(defaults) == 1, defaults
