"""Answers of an oracle, computed once for equal arguments: a test that runs for every instruction set asks again."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P, T = ParamSpec("P"), TypeVar("T")


def once(function: Callable[P, T]) -> Callable[P, T]:
    """The function, with answers for the last arguments kept by their contents; callers must not change an answer."""
    known: dict[bytes, T] = {}

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        key = pickle.dumps((args, kwargs))
        if key not in known:
            if len(known) == 128:
                del known[next(iter(known))]
            known[key] = function(*args, **kwargs)
        return known[key]

    return call
