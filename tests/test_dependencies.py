"""Each dependency that pyproject.toml declares is imported somewhere, and each import is declared."""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

MODULES = {"scikit-learn": "sklearn", "array-api-compat": "array_api_compat"}
# Come with one of our dependencies, which could not do without them.
CARRIED = {"joblib": "scikit-learn", "threadpoolctl": "scikit-learn", "click": "typer"}
# Of a user's own data or kernel: imported to recognise what is there already, never asked for.
RECOGNISED = {"pandas", "polars", "cupy", "cuda"}
# Of the standard library of newer versions of Python.
NEWER = {"compression"}
RUN_TIME = ("plot", "torch", "data", "graphs", "dask", "serve")  # extras of users; bench, docs and dev are tools


def required(requirements: list[str]) -> set[str]:
    return {re.match(r"[A-Za-z0-9_.-]+", requirement)[0].lower() for requirement in requirements}


@functools.cache
def imported() -> dict[str, str]:
    """Top-level modules that are imported anywhere in the package, functions included, and one file that does."""
    found: dict[str, str] = {}
    for path in (ROOT / "src" / "mercer").rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "import_module" in text else statements(ast.parse(text)):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [node.module]
            elif isinstance(node, ast.Call) and called(node) == "import_module" and node.args:
                names = [node.args[0].value] if isinstance(node.args[0], ast.Constant) else []
            for name in names:
                found.setdefault(name.split(".")[0], str(path.relative_to(ROOT)))
    return found


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node; expressions hold no imports but calls of ``import_module``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child
            yield from statements(child)


def called(call: ast.Call) -> str:
    """The last part of the name of what is called."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def test_every_dependency_is_used() -> None:
    extras = PROJECT["optional-dependencies"]
    declared = required(PROJECT["dependencies"]) | {name for extra in RUN_TIME for name in required(extras[extra])}
    unused = {name for name in declared if MODULES.get(name, name.replace("-", "_")) not in imported()}
    assert unused == set()


def test_every_import_is_declared() -> None:
    extras = PROJECT["optional-dependencies"]
    declared = required(PROJECT["dependencies"]) | {name for extra in RUN_TIME for name in required(extras[extra])}
    modules = {MODULES.get(name, name.replace("-", "_")) for name in declared}
    modules |= {module for module, carrier in CARRIED.items() if carrier in declared}
    others = {
        name: path
        for name, path in imported().items()
        if name not in sys.stdlib_module_names and name not in modules | RECOGNISED | NEWER | {"mercer"}
    }
    assert others == {}


def test_extras_are_those_that_something_uses() -> None:
    assert set(PROJECT["optional-dependencies"]) == {*RUN_TIME, "bench", "docs", "dev"}


def test_the_job_of_the_oldest_dependencies_installs_the_lower_bounds() -> None:
    workflow = ROOT / ".github" / "workflows" / "tests.yml"
    pinned = dict(re.findall(r'"([\w-]+)==([\d.]+)\.\*"', workflow.read_text()))
    bounds = dict(re.findall(r"^([\w-]+)>=([\d.]+)$", "\n".join(PROJECT["dependencies"]), re.M))
    assert pinned.keys() == bounds.keys()
    for name, bound in bounds.items():
        assert f"{pinned[name]}.0".startswith(f"{bound}."), name
