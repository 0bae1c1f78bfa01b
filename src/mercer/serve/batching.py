"""Requests that wait together are predicted together, on a thread beside the event loop.

    event loop:  submit → bounded queue → await
    thread:      take what waits with equal options, join, call once, split, give back

Only requests with equal options and the same loaded model are joined. Every answer is checked against the number of
instances that were asked for; where a joined call fails, each request is called alone, so that one caller's bad input
is that caller's error. Callers that went away are dropped before the call.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

__all__ = ["Batcher", "Full", "Job"]


class Full(Exception):
    """The queue is full: the request is refused at once."""


class Job:
    """One request in the queue."""

    __slots__ = ("argument", "batch", "begun", "dropped", "future", "key", "size")

    def __init__(self, key: Hashable, argument: Any, size: int, future: asyncio.Future[Any]) -> None:
        self.key, self.argument, self.size, self.future = key, argument, size, future
        self.dropped = False
        """Set where the caller went away: the thread skips the job."""
        self.batch = 0
        """How many requests were predicted together with this one."""
        self.begun = 0.0


class Batcher:
    """A queue in front of one model.

    Parameters
    ----------
    call : callable
        (key, list of arguments) to a list with one answer for each argument; runs on the batcher's thread.
    max_batch : int
        Most instances in one call.
    max_delay : float
        Seconds that the first request of a batch may wait for others, once the thread is free.
    max_queue : int
        Most requests that wait or run; beyond it `submit` raises `Full`.
    """

    def __init__(
        self,
        call: Callable[[Hashable, list[Any]], Sequence[Any]],
        *,
        max_batch: int = 256,
        max_delay: float = 0.0,
        max_queue: int = 64,
        name: str = "model",
    ) -> None:
        self.call, self.max_batch, self.max_delay, self.max_queue = call, max_batch, max_delay, max_queue
        self.waiting = 0
        """Requests that wait or run; changed by the event loop alone."""
        self.coming = 0
        """Requests that came in this turn of the event loop; in the next turn they wait."""
        self.batches = self.batched = 0
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()  # None is the last
        self._closed = False
        self._taken: deque[Job] = deque()
        """Out of the queue and not predicted yet: what did not fit into the last batch. Of the thread alone."""
        self._ended = False
        self._thread = threading.Thread(target=self._work, name=f"mercer-{name}", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ on the event loop

    def expect(self) -> None:
        """Count a request that is submitted in the next turn of the event loop, before anything else is read."""
        if not self.coming:
            asyncio.get_running_loop().call_soon(self._come)
        self.coming += 1

    def _come(self) -> None:
        self.coming = 0

    def submit(self, key: Hashable, argument: Any, size: int) -> Job:
        """Queue one request; its answer comes in ``job.future``. Raises `Full` where the queue is full."""
        if self.waiting >= self.max_queue or self._closed:
            raise Full
        self.waiting += 1
        job = Job(key, argument, size, asyncio.get_running_loop().create_future())
        self._jobs.put(job)
        return job

    def _deliver(self, answers: list[tuple[Job, Any]]) -> None:
        for job, answer in answers:
            self.waiting -= 1
            if job.future.done():  # cancelled, or out of time
                continue
            if isinstance(answer, BaseException):
                job.future.set_exception(answer)
            else:
                job.future.set_result(answer)

    def close(self) -> None:
        """End the thread once what is queued is done."""
        self._closed = True
        self._jobs.put(None)

    def join(self, seconds: float) -> None:
        """Wait for the thread to end."""
        self._thread.join(seconds)

    # ------------------------------------------------------------------ on the thread

    def _work(self) -> None:
        while True:
            batch = self._take()
            if batch is None:
                return
            live = [job for job in batch if not (job.dropped or job.future.cancelled())]
            answers: list[tuple[Job, Any]] = [(job, asyncio.CancelledError()) for job in batch if job not in live]
            if live:
                answers += zip(live, self._answers(live), strict=True)
            loop = batch[0].future.get_loop()
            try:
                loop.call_soon_threadsafe(self._deliver, answers)
            except RuntimeError:  # the loop has ended
                return

    def _take(self) -> list[Job] | None:
        """The first job and those behind it with the same key, up to the size of a batch; None at the end."""
        taken = self._taken
        if not taken and not self._ended:
            self._pull(None)
        until = time.monotonic() + self.max_delay if self.max_delay > 0 else 0.0
        while not self._ended:
            if not self._jobs.empty():
                self._pull(None)
            elif until and sum(job.size for job in taken) < self.max_batch:
                left = until - time.monotonic()
                if left <= 0 or not self._pull(left):
                    break
            else:
                break
        if not taken:
            return None
        first = taken.popleft()
        batch, size, others = [first], first.size, []
        while taken and size < self.max_batch:
            job = taken.popleft()
            if job.key == first.key and size + job.size <= self.max_batch:
                batch.append(job)
                size += job.size
            else:
                others.append(job)
        taken.extendleft(reversed(others))
        return batch

    def _pull(self, seconds: float | None) -> bool:
        """Take one job out of the queue, or note the end; False where none came in time."""
        try:
            job = self._jobs.get(timeout=seconds)
        except queue.Empty:
            return False
        if job is None:
            self._ended = True
        else:
            self._taken.append(job)
        return True

    def _answers(self, jobs: list[Job]) -> list[Any]:
        now = time.monotonic()
        self.batches += 1
        self.batched += len(jobs)
        for job in jobs:
            job.begun, job.batch = now, len(jobs)
        key = jobs[0].key
        try:
            answers = list(self.call(key, [job.argument for job in jobs]))
            if len(answers) == len(jobs):
                return answers
            error: BaseException = RuntimeError(f"{len(answers)} answers for {len(jobs)} requests")
        except Exception as caught:
            error = caught
        if len(jobs) == 1:
            return [error]
        return [answer for job in jobs for answer in self._alone(key, job)]

    def _alone(self, key: Hashable, job: Job) -> list[Any]:
        try:
            answers = list(self.call(key, [job.argument]))
            return answers if len(answers) == 1 else [RuntimeError(f"{len(answers)} answers for one request")]
        except Exception as error:
            return [error]
