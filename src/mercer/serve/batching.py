"""Dynamic batching: requests that wait together are predicted together, on a thread beside the event loop.

    event loop:  submit → bounded queue → await
    thread:      take waiting requests with equal options, join, call once, split, return

Only requests with equal options and the same loaded model are joined. The number of predictions is checked against the
number of instances. If a joined call fails, each request is called separately, so bad input only fails its own request.
Jobs of disconnected clients are dropped before the call.
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
    """Raised if the queue is full; the request is rejected at once."""


class Job:
    """One request in the queue."""

    __slots__ = ("argument", "batch", "begun", "dropped", "future", "key", "size")

    def __init__(self, key: Hashable, argument: Any, size: int, future: asyncio.Future[Any]) -> None:
        self.key, self.argument, self.size, self.future = key, argument, size, future
        self.dropped = False
        """Set if the client disconnected; the thread then skips the job."""
        self.batch = 0
        """Number of requests in the batch of this one."""
        self.begun = 0.0


class Batcher:
    """A queue in front of one model.

    Parameters
    ----------
    call : callable
        Function of (key, list of arguments) that returns one answer per argument; runs on the batcher's thread.
    max_batch : int
        Maximal number of instances in one call.
    max_delay : float
        Seconds that the first request of a batch waits for others once the thread is free.
    max_queue : int
        Maximal number of waiting and running requests; `submit` raises `Full` above it.
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
        """Waiting and running requests; only the event loop changes this number."""
        self.coming = 0
        """Requests that arrived in this turn of the event loop; they are queued in the next turn."""
        self.batches = self.batched = 0
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()  # None is the last
        self._closed = False
        self._taken: deque[Job] = deque()
        """A job that did not fit into the last batch; only the thread uses it."""
        self._ended = False
        self._thread = threading.Thread(target=self._work, name=f"mercer-{name}", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ on the event loop

    def expect(self) -> None:
        """Count a request that will be submitted in the next turn of the event loop."""
        if not self.coming:
            asyncio.get_running_loop().call_soon(self._come)
        self.coming += 1

    def _come(self) -> None:
        self.coming = 0

    def submit(self, key: Hashable, argument: Any, size: int) -> Job:
        """Queue one request; ``job.future`` gets the answer. Raises `Full` if the queue is full."""
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
        """Stop the thread after the queued jobs are done."""
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
        """Take the first job and the next jobs with the same key, up to the batch size; None at the end."""
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
        """Take one job out of the queue or note the end; return False if none arrived in time."""
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
