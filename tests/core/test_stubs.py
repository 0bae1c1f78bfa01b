"""The types of the compiled core are those of the module: `make stubs` writes them."""

import ast
import importlib.util
import re
import types
from importlib.metadata import version
from pathlib import Path

import pytest

from mercer import _core

ROOT = Path(__file__).parent.parent.parent
STUBS = ROOT / "src" / "mercer" / "_core"


def of_module(module):
    """The names of a compiled module and of its submodules: functions, classes and their members, constants."""
    names = set()
    for name, value in vars(module).items():
        if isinstance(value, types.ModuleType):
            names |= {f"{name}.{inner}" for inner in of_module(value)}
        elif not name.startswith("_"):
            names.add(name)
            if isinstance(value, type):
                names |= {f"{name}.{member}" for member in vars(value) if not member.startswith("_")}
    return names


def of_stubs(folder):
    """The same as the stubs say."""
    names = set()
    for file in folder.glob("*.pyi"):
        prefix = "" if file.stem == "__init__" else f"{file.stem}."
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(prefix + node.name)
            if isinstance(node, ast.AnnAssign):
                names.add(prefix + node.target.id)
            if isinstance(node, ast.ClassDef):
                members = {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
                names |= {f"{prefix}{node.name}.{member}" for member in members if not member.startswith("_")}
    return names


def test_stubs_name_what_the_module_has():
    assert of_stubs(STUBS) == of_module(_core)


@pytest.mark.slow
def test_stubs_are_those_of_the_module():
    pytest.importorskip("nanobind", reason="nanobind makes the stubs")
    (made_by,) = re.search(r"nanobind ([\d.]+)", (STUBS / "__init__.pyi").read_text()).groups()
    if version("nanobind") != made_by:
        pytest.skip(f"the stubs were made by nanobind {made_by}; {version('nanobind')} may write them differently")
    spec = importlib.util.spec_from_file_location("stubs", ROOT / "tools" / "stubs.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    differences = tool.differences()
    assert not differences, "run `make stubs`:\n" + "\n".join(differences[:40])
