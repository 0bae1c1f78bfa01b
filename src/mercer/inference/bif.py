"""Files in the Bayesian interchange format (BIF): variables with named states, and their conditional tables.

    network asia { }
    variable smoke { type discrete [ 2 ] { yes, no }; }
    probability ( lung | smoke ) { (yes) 0.1, 0.9; (no) 0.01, 0.99; }

Comments (``//``, ``/* */``) and properties are ignored.
"""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

from mercer import _core
from mercer.inference.bayesian import BayesianNetwork
from mercer.inference.uai import _write, read_bytes

__all__ = ["read_bif", "write_bif"]

_PLAIN = re.compile(r'[^\s{}()\[\];,|"]+')


def read_bif(path: str | Path) -> BayesianNetwork:
    """Read a Bayesian network in the BIF format; an error names the line."""
    return BayesianNetwork._of_arrays(*read_bytes(path, _core.inference.read_bif))


def write_bif(network: BayesianNetwork, path: str | Path) -> None:
    """Write a Bayesian network in the BIF format."""
    lines = ["network unnamed {", "}"]
    for name in network.names:
        states = network.states[name]
        inside = ", ".join(map(_plain, states))
        lines += [f"variable {_plain(name)} {{", f"  type discrete [ {len(states)} ] {{ {inside} }};", "}"]
    for name in network.names:
        parents = network.parents[name]
        given = f" | {', '.join(map(_plain, parents))}" if parents else ""
        lines.append(f"probability ( {_plain(name)}{given} ) {{")
        for place in product(*(range(len(network.states[v])) for v in parents)):
            at = ", ".join(_plain(network.states[v][k]) for v, k in zip(parents, place, strict=True))
            values = ", ".join(f"{p:.17g}" for p in network.tables[name][place])
            lines.append(f"  ({at}) {values};" if parents else f"  table {values};")
        lines.append("}")
    _write(path, "\n".join(lines) + "\n")


def _plain(name: Any) -> str:
    text = str(name)
    if not _PLAIN.fullmatch(text) or text.startswith(("//", "/*")):
        raise ValueError(
            f"a BIF file cannot hold the name {text!r}: it must be without spaces and the characters {{}}()[];,|"
        )
    return text
