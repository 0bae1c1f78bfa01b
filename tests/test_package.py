"""What ``import mercer`` gives: modules and estimators by name, imported when first used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import mercer
from mercer._state.registry import MODELS

SCRIPT = """
import sys, mercer
assert not {"numpy.random", "scipy", "sklearn", "mercer.tagging"} & set(sys.modules) - {"numpy.random"}
assert mercer.kernels.Gaussian is mercer.kernels.vectors.Gaussian
assert mercer.Tagger is mercer.tagging.Tagger
"""


# What takes most of the time and memory of an import: each is loaded by what needs it, when that is used.
HEAVY = {
    "scipy", "sklearn", "joblib", "pandas", "pyarrow", "torch", "dask", "distributed", "rich", "typer", "matplotlib",
    "networkx", "uvicorn", "fastapi", "starlette", "pooch",
}  # fmt: skip
IMPORTS = """
import sys, mercer
for name in sys.argv[1].split(","):
    __import__("mercer." + name)
    found = {module.partition(".")[0] for module in sys.modules} & set(sys.argv[2].split(","))
    assert not found, f"import mercer.{name} loads {sorted(found)}"
from mercer.inference import BayesianNetwork, infer
net = BayesianNetwork({"a": 2, "b": 2}, {"b": ["a"]}, {"a": [0.5, 0.5], "b": [[0.9, 0.1], [0.2, 0.8]]})
assert infer(net, evidence={"b": 0}).exact
assert "scipy" not in sys.modules, "inference loads SciPy"
"""


def test_importing_a_module_loads_nothing_heavy() -> None:
    arguments = [",".join(sorted(mercer._MODULES)), ",".join(sorted(HEAVY))]
    run = subprocess.run([sys.executable, "-c", IMPORTS, *arguments], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("name", sorted(mercer._MODULES - {"nn"}))  # its layers need torch
def test_every_public_name_of_a_module_is_there(name: str) -> None:
    module = importlib.import_module(f"mercer.{name}")
    listed = getattr(module, "__all__", [])
    assert set(listed) <= set(dir(module))
    for attribute in listed:
        assert getattr(module, attribute) is vars(module)[attribute]
    with pytest.raises(AttributeError, match="no_such_thing"):
        module.no_such_thing  # noqa: B018


def test_modules_and_estimators_are_imported_when_first_used() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_estimator_is_found_at_the_top(name: str) -> None:
    module, _, attribute = MODELS[name].partition(":")
    assert getattr(mercer, name) is getattr(importlib.import_module(module), attribute)
    assert name in dir(mercer)


def test_modules_are_listed() -> None:
    assert {"tagging", "kernels", "inference", "datasets", "metrics"} <= set(dir(mercer))


def test_unknown_names_are_refused_by_name() -> None:
    with pytest.raises(AttributeError, match="no_such_thing"):
        mercer.no_such_thing  # noqa: B018
