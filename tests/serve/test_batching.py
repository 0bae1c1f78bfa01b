"""Requests that wait together are predicted together, and each caller gets its own answer."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from mercer.serve.batching import Batcher, Full


class Model:
    """Doubles numbers; remembers its calls, and waits until it is let go."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, list[Any]]] = []
        self.go = threading.Event()
        self.begun = threading.Event()
        self.go.set()

    def __call__(self, key: Any, arguments: list[Any]) -> list[Any]:
        self.begun.set()
        self.go.wait(20)
        self.calls.append((key, list(arguments)))
        if any(argument == "bad" for argument in arguments):
            raise ValueError("bad")
        return [(key, 2 * argument) for argument in arguments]


async def held(model: Model, batcher: Batcher) -> Any:
    """Keep the thread busy with a first request, so that those that follow wait together."""
    model.go.clear()
    first = batcher.submit("first", 0, 1)
    await asyncio.to_thread(model.begun.wait, 20)
    return first


def test_each_caller_gets_its_own_answer() -> None:
    """A thousand callers of three kinds; whoever got another's answer would see it."""
    model = Model()

    async def run() -> None:
        batcher = Batcher(model, max_queue=2000, max_batch=64)
        await held(model, batcher)
        jobs = [(i, f"options {i % 3}", batcher.submit(f"options {i % 3}", i, 1 + i % 2)) for i in range(1000)]
        model.go.set()
        for i, key, job in jobs:
            assert await job.future == (key, 2 * i)
        assert batcher.waiting == 0
        batcher.close()

    asyncio.run(run())
    assert len(model.calls) < 100
    for key, arguments in model.calls:
        assert key == "first" or len({f"options {i % 3}" for i in arguments}) == 1
        assert sum(1 + i % 2 for i in arguments) <= 64


def test_a_bad_request_fails_alone() -> None:
    model = Model()

    async def run() -> None:
        batcher = Batcher(model)
        await held(model, batcher)
        jobs = [batcher.submit("k", value, 1) for value in (1, "bad", 3)]
        model.go.set()
        assert await jobs[0].future == ("k", 2)
        assert await jobs[2].future == ("k", 6)
        with pytest.raises(ValueError, match="bad"):
            await jobs[1].future
        batcher.close()

    asyncio.run(run())
    assert [arguments for _, arguments in model.calls[1:]] == [[1, "bad", 3], [1], ["bad"], [3]]


def test_a_call_with_too_few_answers_is_an_error_of_all_its_requests() -> None:
    async def run() -> None:
        batcher = Batcher(lambda key, arguments: [])
        with pytest.raises(RuntimeError, match="0 answers for 1 requests"):
            await batcher.submit("k", 1, 1).future
        batcher.close()

    asyncio.run(run())


def test_callers_that_went_away_are_dropped_and_hold_nobody_up() -> None:
    model = Model()

    async def run() -> None:
        batcher = Batcher(model)
        await held(model, batcher)
        jobs = [batcher.submit("k", i, 1) for i in range(4)]
        jobs[1].future.cancel()
        jobs[2].dropped = True
        model.go.set()
        assert await jobs[0].future == ("k", 0)
        assert await jobs[3].future == ("k", 6)
        assert await batcher.submit("k", 7, 1).future == ("k", 14)
        assert batcher.waiting == 0
        batcher.close()

    asyncio.run(run())
    assert [0, 3] in [arguments for _, arguments in model.calls]


def test_a_full_queue_refuses_at_once() -> None:
    model = Model()

    async def run() -> None:
        batcher = Batcher(model, max_queue=3)
        first = await held(model, batcher)
        others = [batcher.submit("k", i, 1) for i in range(2)]
        with pytest.raises(Full):
            batcher.submit("k", 9, 1)
        model.go.set()
        await asyncio.gather(first.future, *(job.future for job in others))
        assert await batcher.submit("k", 9, 1).future == ("k", 18)
        batcher.close()
        batcher.join(10)
        with pytest.raises(Full):
            batcher.submit("k", 9, 1)

    asyncio.run(run())


def test_a_delay_gathers_requests_that_come_one_after_the_other() -> None:
    model = Model()

    async def run() -> None:
        batcher = Batcher(model, max_delay=10.0, max_batch=3)
        jobs = []
        for i in range(3):  # the third fills the batch, which ends the delay
            jobs.append(batcher.submit("k", i, 1))
            await asyncio.sleep(0.01)
        assert [await job.future for job in jobs] == [("k", 0), ("k", 2), ("k", 4)]
        batcher.close()

    asyncio.run(run())
    assert model.calls == [("k", [0, 1, 2])]
