"""The one way to do several things at once in Python; compiled loops have their own (``cpp/base/parallel.hpp``)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from mercer._validation import thread_count

__all__ = ["each"]

_Given = TypeVar("_Given")


def each(
    call: Callable[[Any], _Given],
    items: Iterable[Any],
    n_jobs: int | None = None,
    *,
    processes: bool = False,
    stop: threading.Event | None = None,
) -> list[_Given]:
    """Return the result of ``call`` for every item, in the order of the items.

    Parameters
    ----------
    call : callable
        Must not change data that calls for other items read. With ``processes`` it is pickled.
    items : iterable
    n_jobs : int or None
        Number of workers, as in scikit-learn: None is 1, -1 all cores. With one worker, no thread or process is
        started.
    processes : bool, default=False
        Use processes instead of threads, for Python code that holds the interpreter lock. joblib starts them, or sends
        the calls to the cluster of ``joblib.parallel_config``.
    stop : Event, optional
        Set when a call fails or on Ctrl-C, so that long calls on other threads can end soon. The error is raised once
        all running calls have ended. Calls that have not begun by then never begin.

    Examples
    --------
    >>> each(abs, [-1, 2, -3], n_jobs=2)
    [1, 2, 3]
    """
    items, threads = list(items), thread_count(n_jobs)
    if processes and n_jobs is None and "joblib" in sys.modules:
        threads = sys.modules["joblib"].effective_n_jobs(None)  # of ``joblib.parallel_config``, 1 without it
    if threads == 1 or len(items) <= 1:
        return [call(item) for item in items]
    if processes:
        from joblib import Parallel, delayed

        return list(Parallel(n_jobs=threads)(delayed(call)(item) for item in items))
    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        waiting = [pool.submit(call, item) for item in items]
        try:
            return [one.result() for one in waiting]
        except BaseException:
            if stop is not None:
                stop.set()
            for one in waiting:
                one.cancel()
            raise
