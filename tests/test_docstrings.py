"""What is public says what it takes and what it gives: every fit, predict and transform, in the imperative."""

from __future__ import annotations

import importlib
import inspect

import pytest

from mercer._state.registry import MODELS

VERBS = ("fit", "predict", "transform")


def methods():
    """Every such method of the public estimators, once: that of a base class stands for all of its heirs."""
    seen = {}
    for where in MODELS.values():
        module, _, name = where.partition(":")
        if module.startswith("mercer.nn"):  # needs torch
            continue
        for verb in VERBS:
            method = getattr(getattr(importlib.import_module(module), name), verb, None)
            if inspect.isfunction(method) and method.__module__.startswith("mercer"):
                seen[f"{method.__module__}.{method.__qualname__}"] = method
    return seen


METHODS = methods()


def test_there_are_methods_to_look_at():
    assert len(METHODS) > 150


@pytest.mark.parametrize("verb", VERBS)
def test_methods_list_what_they_take_and_what_they_give(verb):
    lacking = []
    for name, method in METHODS.items():
        if name.rsplit(".", 1)[1] == verb:
            lines = [line.strip() for line in (method.__doc__ or "").splitlines()]
            lacking += [f"{name}: {part}" for part in ("Parameters", "Returns") if part not in lines]
    assert lacking == []


@pytest.mark.parametrize("verb", VERBS)
def test_methods_name_all_their_parameters(verb):
    lacking = []
    for name, method in METHODS.items():
        if name.rsplit(".", 1)[1] == verb:
            heads = [line.split(" : ")[0] for line in (method.__doc__ or "").splitlines() if " : " in line]
            named = {word.strip("* ") for head in heads for word in head.split(",")}
            taken = (p for p in inspect.signature(method).parameters.values() if p.kind is not p.VAR_KEYWORD)
            lacking += [f"{name}: {p.name}" for p in taken if p.name not in named | {"self"}]
    assert lacking == []


@pytest.mark.parametrize("verb", VERBS)
def test_methods_begin_with_an_imperative(verb):
    first = {name: (method.__doc__ or "?").split()[0] for name, method in METHODS.items() if name.endswith(f".{verb}")}
    assert {name: word for name, word in first.items() if word.endswith("s") or not word[:1].isupper()} == {}
