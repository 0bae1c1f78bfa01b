"""What holds for all tests and for the examples in docstrings: threads, imports, and modules that are left out.

Linear algebra gets one thread, and threads that wait for others sleep: the matrices are small, and workers of
pytest-xdist share the processor. What is told to use several threads still does.
"""

import gc
import importlib
import importlib.util
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
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


def module_with_examples(path: Path) -> bool:
    """Whether a file is a module of the package with examples; if so it is imported by its name.

    Collected first, a module would be executed a second time after its package has imported it: there would be two of
    each of its classes, and of what it registers.
    """
    if path.suffix != ".py" or path.name == "__main__.py" or not path.is_relative_to(SOURCE):
        return False
    if ">>> " not in path.read_text():
        return False
    parts = path.relative_to(SOURCE).with_suffix("").parts
    importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples only where there are some: looking at everything that a test module holds takes time."""
    has_examples = module_with_examples(file_path)
    found = yield
    return found if has_examples else [node for node in found if not isinstance(node, DoctestModule)]


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
    """Hide what was collected from the collector of cycles, which looks seldom: all of it takes half a second."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
