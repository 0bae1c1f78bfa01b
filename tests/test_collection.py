"""Any file can be collected alone, in any order: a module of the package is executed once, whoever imports it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.pathlib import import_path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
FILES = [path for path in sorted((SOURCE / "mercer").rglob("*.py")) if path.name != "__main__.py"]


def test_a_module_that_registers_something_can_be_collected_alone():
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:xdist", "src/mercer/inference/cuts.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "minimum_cut" in done.stdout


def test_pytest_has_the_modules_that_everybody_else_has(request):
    collect = next(p for p in request.config.pluginmanager.get_plugins() if getattr(p, "SOURCE", None) == SOURCE)
    for path in FILES:
        relative = path.relative_to(SOURCE).with_suffix("")
        if "nn" in relative.parts or relative.name in ("_tensors", "_walks"):
            continue  # needs PyTorch
        if not collect.module_with_examples(path):
            continue
        name = ".".join(relative.parts[:-1] if relative.name == "__init__" else relative.parts)
        module = sys.modules[name]
        assert import_path(path, mode="importlib", root=ROOT, consider_namespace_packages=False) is module


def test_names_of_tests_hold_no_addresses(request):
    hook = next(p for p in request.config.pluginmanager.get_plugins() if getattr(p, "SOURCE", None) == SOURCE)

    class Item:
        nodeid = f"tests/test_x.py::test_it[{object()!r}]"

    with pytest.raises(pytest.UsageError, match="differ from run to run"):
        hook.pytest_collection_modifyitems([Item()])
