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
