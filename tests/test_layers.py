"""Imports go downwards only, optional libraries only where they are used, ``import mercer`` is cheap."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import mercer

SOURCE = Path(__file__).parent.parent / "src" / "mercer"

# From the top down, as in docs/architecture.md; a layer may import its own and those below it.
LAYERS = [
    {"cli", "serve", "report", "__main__"},
    {"theory"},
    {
        "tagging", "segmentation", "labeling", "parsing", "multilabel", "proportions", "online", "markov",
        "recognition", "registration", "attributes", "classification", "structured", "alignment", "ranking",
        "clustering", "kernel_methods", "nn", "retrieval", "fields",
    },
    {"learning"},
    {"structures"},
    {"inference"},
    {"kernels", "maps"},
    {"manifolds"},
    {"data", "datasets"},
    {"metrics"},
    {
        "_arrays", "_command", "_core", "_display", "_em", "_estimator", "_explain", "_gpu_random", "_lazy",
        "_linalg", "_nvrtc", "_progress", "_state", "_threads", "_validation", "_versions", "_warnings", "exceptions",
        "__init__",
    },
]  # fmt: skip
DEPTH = {name: depth for depth, names in enumerate(LAYERS) for name in names}
OPTIONAL = {
    "pyarrow", "matplotlib", "torch", "dask", "distributed", "pooch", "starlette", "orjson", "uvicorn", "httptools",
    "pandas", "polars", "networkx",
}  # fmt: skip
MODULES = sorted(SOURCE.rglob("*.py"))

CPP = SOURCE.parent.parent / "cpp"
COMPILED = sorted(CPP.rglob("*.[ch]pp"))
# From the bottom up: a file in cpp/ includes from its own folder and those before it.
FOLDERS = [
    "base",
    "hashing",
    "io",
    "structures",
    "inference",
    "graphs",
    "kernels",
    "maps",
    "solvers",
    "registration",
    "bind",
]
UPWARD = {("base", "hashing/vocabulary.hpp")}


def part_of(path: Path) -> str:
    """The name right below the package: 'learning' of learning/solvers/sgd.py, 'metrics' of metrics.py."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


PARTS: dict[str, list[Path]] = {}
for _path in MODULES:
    PARTS.setdefault(part_of(_path), []).append(_path)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)  # where imports are: not inside of expressions


@cache
def imports(path: Path) -> list[tuple[str, int, bool]]:
    """(module, line, whether it happens on import) of every import, but ``if TYPE_CHECKING``."""
    found = []

    def visit(node: ast.AST, on_import: bool) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            found.extend((alias.name, node.lineno, on_import) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            found.append((node.module, node.lineno, on_import))
            if node.module == "mercer":
                found.extend((f"mercer.{alias.name}", node.lineno, on_import) for alias in node.names)
        inside = on_import and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for child in ast.iter_child_nodes(node):
            if isinstance(child, BLOCKS):
                visit(child, inside)

    visit(tree_of(path), True)
    return found


def test_the_package_is_the_one_that_is_read():
    assert len(MODULES) > 20
    assert "mercer" in sys.modules
    assert Path(mercer.__file__).read_text() == (SOURCE / "__init__.py").read_text()


@pytest.mark.parametrize("own", PARTS)
def test_imports_go_downwards_only(own):
    assert own in DEPTH, f"{own} has no place among the layers: add it to LAYERS and to docs/architecture.md"
    for path in PARTS[own]:
        for module, line, _ in imports(path):
            parts = module.split(".")
            if parts[0] != "mercer" or len(parts) < 2 or parts[1] not in DEPTH:
                continue
            assert DEPTH[parts[1]] >= DEPTH[own], f"{path}:{line}: {own} imports {module}, which lies above it"


def test_the_page_on_the_architecture_names_every_part():
    root = SOURCE.parent.parent
    page = (root / "docs" / "architecture.md").read_text()
    parts = {part_of(path) for path in MODULES} - {"__init__", "__main__"}
    names = parts | {path.relative_to(CPP).as_posix() for path in COMPILED}
    assert sorted(name for name in names if f"`{name}`" not in page) == []


@pytest.mark.parametrize("own", FOLDERS)
def test_compiled_code_includes_what_lies_beneath_only(own):
    for path in (path for path in COMPILED if path.relative_to(CPP).parts[0] == own):
        for include in re.findall(r'#include "(.+)"', path.read_text()):
            assert (CPP / include).is_file(), f"{path}: {include} is not a path in cpp/"
            folder = include.split("/")[0]
            allowed = FOLDERS.index(folder) <= FOLDERS.index(own) or (own, include) in UPWARD
            assert allowed, f"{path}: {own} includes {include}, which lies above it"


ONE_PLACE = {
    "concurrent.futures": "_threads.py",
    "joblib": "_threads.py",
    "multiprocessing": "_threads.py",
}
"""What has one place in the library: others call what that place offers."""


@pytest.mark.parametrize("own", PARTS)
def test_no_part_imports_what_is_private_to_another(own):
    for path in PARTS[own]:
        for node in ast.walk(tree_of(path)):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("mercer."):
                continue
            other = node.module.removeprefix("mercer.")
            part = other.split(".")[0]
            if part == own or part.startswith("_"):
                continue
            for alias in node.names:
                private = alias.name.startswith("_")
                assert not private, f"{path}:{node.lineno}: {own} imports {alias.name}, which is private to {other}"
            hidden = any(word.startswith("_") for word in other.split("."))
            assert not hidden, f"{path}:{node.lineno}: {own} imports {other}, a private file of another part"


@pytest.mark.parametrize("own", PARTS)
def test_threads_and_processes_are_started_in_one_place(own):
    for path in PARTS[own]:
        for module, line, _ in imports(path):
            place = next((ONE_PLACE[name] for name in ONE_PLACE if f"{module}.".startswith(f"{name}.")), None)
            assert place in (None, path.name), f"{path}:{line}: imports {module}: use mercer._threads.each"


@pytest.mark.parametrize("own", sorted(set(PARTS) - {"cli", "report", "__main__", "_progress", "_versions"}))
def test_the_library_prints_through_one_function(own):
    for path in PARTS[own]:
        if path.name == "files.py" and own == "online":  # writes predictions to any stream, and a table of progress
            continue
        for node in ast.walk(tree_of(path)):
            calls = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
            assert not calls, f"{path}:{node.lineno}: prints: use mercer._progress.say"


@pytest.mark.parametrize("own", PARTS)
def test_optional_libraries_are_not_imported_on_import(own):
    for path in PARTS[own]:
        # mercer.nn imports torch when asked for; modules for tensors are imported where there is one.
        optional = OPTIONAL - ({"torch"} if own == "nn" or path.name in ("_tensors.py", "_walks.py") else set())
        if path.name == "_dask.py":  # imported where a collection of Dask or a cluster is
            optional -= {"dask", "distributed"}
        for module, line, on_import in imports(path):
            assert not (on_import and module.split(".")[0] in optional), f"{path}:{line}: imports {module} at the top"


def test_importing_mercer_loads_no_heavy_library():
    heavy = ["sklearn", "scipy", "safetensors", "typer", "rich", *sorted(OPTIONAL)]
    code = f"import sys, mercer; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_tagger_works_without_the_optional_libraries():
    code = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {sorted(OPTIONAL)}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
from mercer.tagging import Tagger
print(Tagger(C=10.0).fit([["a", "b"]], [["X", "Y"]]).predict([["a", "b"]]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[['X', 'Y']]", done.stderr


@pytest.mark.slow
def test_the_page_on_the_architecture_lists_what_data_pass():
    """``python tools/passes.py`` writes the table anew."""
    tool = runpy.run_path(str(SOURCE.parent.parent / "tools" / "passes.py"))
    text = tool["PAGE"].read_text()
    begin, end = tool["table_of"](text)
    assert text[begin:end].strip() == tool["page"]()
