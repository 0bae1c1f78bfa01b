"""Files in the Bayesian interchange format (BIF): variables with named states, and their conditional tables.

    network asia { }
    variable smoke { type discrete [ 2 ] { yes, no }; }
    probability ( lung | smoke ) { (yes) 0.1, 0.9; (no) 0.01, 0.99; }

Comments (``//``, ``/* */``) and properties are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from mercer.inference.bayesian import _ROW_TOLERANCE, BayesianNetwork
from mercer.inference.uai import _write

__all__ = ["read_bif", "write_bif"]

_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"|[{}()\[\];,|]|[^\s{}()\[\];,|"]+', re.S)
_PLAIN = re.compile(r'[^\s{}()\[\];,|"]+')


class _Reader:
    def __init__(self, path: str | Path) -> None:
        self.path = path
        text = Path(path).read_text(encoding="utf-8", errors="replace")
        self.tokens: list[tuple[str, int]] = []
        line, done = 1, 0
        for match in _TOKEN.finditer(text):
            line += text.count("\n", done, match.start())
            done = match.start()
            token = match.group()
            if not token.startswith(("//", "/*")):
                self.tokens.append((token, line))
        self.next = 0
        self.states: dict[str, list[str]] = {}
        self.parents: dict[str, list[str]] = {}
        self.tables: dict[str, np.ndarray] = {}

    def line(self) -> int:
        if not self.tokens:
            return 1
        return self.tokens[min(max(self.next - 1, 0), len(self.tokens) - 1)][1]

    def fail(self, what: str) -> ValueError:
        return ValueError(f"{self.path}:{self.line()}: {what}")

    def peek(self) -> str:
        return self.tokens[self.next][0] if self.next < len(self.tokens) else ""

    def take(self, what: str) -> str:
        if self.next >= len(self.tokens):
            raise self.fail(f"the file ends where {what} should be")
        self.next += 1
        return self.tokens[self.next - 1][0]

    def expect(self, token: str) -> None:
        token_read = self.take(repr(token))
        if token_read != token:
            raise self.fail(f"expected {token!r}, found {token_read!r}")

    def name(self, what: str) -> str:
        token = self.take(what)
        if token in "{}()[];,|":
            raise self.fail(f"expected {what}, found {token!r}")
        return token.strip('"')

    def names(self, end: str, what: str) -> list[str]:
        """Names up to ``end``, with or without commas between them."""
        listed: list[str] = []
        while self.peek() != end:
            if listed and self.peek() == ",":
                self.take("','")
            listed.append(self.name(what))
        self.expect(end)
        return listed

    def numbers(self) -> np.ndarray:
        values = []
        for word in self.names(";", "a probability"):
            try:
                values.append(float(word))
            except ValueError:
                raise self.fail(f"expected a probability, found {word!r}") from None
            if not np.isfinite(values[-1]) or values[-1] < 0:
                raise self.fail(f"a probability must be finite and at least 0, found {word}")
        return np.array(values)

    # ------------------------------------------------------------------ blocks

    def read(self) -> BayesianNetwork:
        blocks: dict[str, Callable[[], None]] = {
            "network": self.network, "variable": self.variable, "probability": self.probability,
        }  # fmt: skip
        while self.next < len(self.tokens):
            kind = self.take("a block")
            if kind not in blocks:
                raise self.fail(f"expected network, variable or probability, found {kind!r}")
            blocks[kind]()
        missing = [name for name in self.states if name not in self.tables]
        if missing or not self.states:
            raise self.fail(f"variable {missing[0]!r} has no table" if missing else "the file has no variables")
        try:
            return BayesianNetwork(self.states, self.parents, self.tables)
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from error

    def skip_property(self) -> bool:
        if self.peek() != "property":
            return False
        while self.take("';'") != ";":
            pass
        return True

    def network(self) -> None:
        if self.peek() != "{":
            self.name("the name of the network")
        self.expect("{")
        while self.peek() != "}":
            if not self.skip_property():
                raise self.fail(f"expected a property or '}}', found {self.take('a property')!r}")
        self.expect("}")

    def variable(self) -> None:
        name = self.name("the name of a variable")
        if name in self.states:
            raise self.fail(f"variable {name!r} appears twice")
        self.expect("{")
        while self.peek() != "}":
            if self.skip_property():
                continue
            self.expect("type")
            self.expect("discrete")
            self.expect("[")
            count = self.name("the number of states")
            self.expect("]")
            self.expect("{")
            states = self.names("}", "the name of a state")
            if str(len(states)) != count:
                raise self.fail(f"variable {name!r} has [ {count} ] states, but {len(states)} are named")
            if len(set(states)) != len(states):
                raise self.fail(f"variable {name!r} has a state twice: {states}")
            self.expect(";")
            self.states[name] = states
        self.expect("}")
        if name not in self.states:
            raise self.fail(f"variable {name!r} has no type")

    def probability(self) -> None:
        self.expect("(")
        name = self.known(self.name("the name of a variable"))
        parents = []
        if self.peek() == "|":
            self.take("'|'")
            parents = [self.known(v) for v in self.names(")", "the name of a parent")]
        else:
            self.expect(")")
        if name in self.tables:
            raise self.fail(f"variable {name!r} has two tables")
        shape = tuple(len(self.states[v]) for v in (*parents, name))
        table = np.full(shape, np.nan)
        default: np.ndarray | None = None
        self.expect("{")
        while self.peek() != "}":
            if self.skip_property():
                continue
            word = self.take("a row of the table")
            if word == "table":
                table[...] = self.whole(name, parents, shape)
            elif word == "default":
                default = self.row(name)
            elif word == "(":
                place = tuple(
                    self.state(v, s) for v, s in self.zipped(name, parents, self.names(")", "the state of a parent"))
                )
                table[place] = self.row(name)
            else:
                raise self.fail(f"expected table, default or the states of the parents in parentheses, found {word!r}")
        self.expect("}")
        empty = np.isnan(table).any(axis=-1)
        if empty.any() and default is not None:
            table[empty] = default
        elif empty.any():
            place = tuple(int(k) for k in np.argwhere(empty)[0])
            named = ", ".join(f"{v}={self.states[v][k]}" for v, k in zip(parents, place, strict=True))
            raise self.fail(f"the table of {name!r} has no row{f' for {named}' if named else ''}")
        self.parents[name], self.tables[name] = parents, table

    def known(self, name: str) -> str:
        if name not in self.states:
            raise self.fail(f"there is no variable {name!r} before this line")
        return name

    def zipped(self, name: str, parents: list[str], states: list[str]) -> Any:
        if len(states) != len(parents):
            raise self.fail(f"{name!r} has {len(parents)} parents, but the row names {len(states)} states")
        return zip(parents, states, strict=True)

    def state(self, variable: str, state: str) -> int:
        if state not in self.states[variable]:
            raise self.fail(f"variable {variable!r} has no state {state!r}: its states are {self.states[variable]}")
        return self.states[variable].index(state)

    def row(self, name: str) -> np.ndarray:
        values = self.numbers()
        if len(values) != len(self.states[name]):
            raise self.fail(
                f"{name!r} has {len(self.states[name])} states, but the row has {len(values)} probabilities"
            )
        if abs(values.sum() - 1) > _ROW_TOLERANCE:
            raise self.fail(f"the probabilities of {name!r} must sum to 1, they sum to {values.sum():g}")
        return values

    def whole(self, name: str, parents: list[str], shape: tuple[int, ...]) -> np.ndarray:
        """``table``: all entries, the variable itself changing slowest (its states, then those of the parents)."""
        values = self.numbers()
        if len(values) != int(np.prod(shape)):
            raise self.fail(f"the table of {name!r} needs {int(np.prod(shape))} entries, found {len(values)}")
        table = np.moveaxis(values.reshape((shape[-1], *shape[:-1])), 0, -1)
        if (abs(table.sum(axis=-1) - 1) > _ROW_TOLERANCE).any():
            raise self.fail(f"the probabilities of {name!r} must sum to 1 for all states of its parents")
        return table


def read_bif(path: str | Path) -> BayesianNetwork:
    """Reads a Bayesian network in the BIF format; an error names the line."""
    return _Reader(path).read()


def write_bif(network: BayesianNetwork, path: str | Path) -> None:
    """Writes a Bayesian network in the BIF format."""
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
