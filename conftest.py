"""What holds for all tests and for the examples in docstrings: threads, imports, and modules that are left out.

Linear algebra gets one thread, and threads that wait for others sleep: the matrices are small, and workers of
pytest-xdist share the processor. What is told to use several threads still does.
"""

import gc
import importlib
import importlib.util
import os
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["OMP_NUM_THREADS"] = "1"
else:  # another order of sets in every run, and the same one for all workers, who must agree on the names of tests
    os.environ.setdefault("PYTHONHASHSEED", str(int.from_bytes(os.urandom(4), "big")))

os.fsync = lambda handle: None  # what a test writes need not outlive a power cut, and each call waits for the disk

SOURCE = Path(__file__).parent / "src"
OF_TORCH = ["src/mercer/nn/*", "src/mercer/*/_tensors.py", "src/mercer/fields/_walks.py"]
collect_ignore_glob = [] if importlib.util.find_spec("torch") else OF_TORCH


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names of tests that hold an address in memory: workers would not agree on them."""
    named = [item.nodeid for item in items if " at 0x" in item.nodeid.lower()]
    if named:
        raise pytest.UsageError(f"ids of parametrised tests differ from run to run: {named[0]}")


def pytest_collect_file(file_path: Path) -> None:
    """Import a module of the package by its name before its examples are collected.

    Collected first, a module would be executed a second time after its package has imported it: there would be two of
    each of its classes, and of what it registers.
    """
    if file_path.suffix == ".py" and file_path.name != "__main__.py" and file_path.is_relative_to(SOURCE):
        parts = file_path.relative_to(SOURCE).with_suffix("").parts
        importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Let a worker send one message for a test that passed, not five: they took two thirds of the time of a small test.

    What is left out is that the test begins and ends, and that set-up and tear-down went well.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def pytest_collection_finish() -> None:
    """Hide what was collected from the collector of cycles: a look at all of it takes half a second each time."""
    gc.collect()
    gc.freeze()
