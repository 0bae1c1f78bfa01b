"""Mutations of recorded calls: one to three changes of leaves, drawn by a seed."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np

from fuzz.entries import located
from fuzz.values import Node, copied, decode_array, encode_array, unpacked

INTEGERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    64,
    255,
    256,
    2**15,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32,
    2**40,
    2**62,
    2**63 - 1,
    -(2**63),
)
BEYOND = ({"int": str(2**63)}, {"int": str(2**64)}, {"int": str(-(2**63) - 1)}, {"int": str(10**23)})
FLOATS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1e-300,
    5e-324,
    1e18,
    1e300,
    -1e300,
    *({"float": f} for f in ("nan", "inf", "-inf")),
)
TEXTS = ("", "a", "\0", "é", "日本", "x" * 300, "nan", "-1", "exact", {"text": "eda080"}, {"text": "ff"[:0] + "edb380"})
DTYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1", ">f8", "<c16", "<U3")
# How much work is asked for: any number is right, and large ones are only slow.
WORK = re.compile(
    r"thread|iter|pass|round|sample|sweep|epoch|burn|thin|step|max_length|n_perm|repeat|trial|restart|least|copies|block$|shift$"
)
MOST_WORK = 20


def argument_names(entry: str) -> list[str]:
    """Return the names of positional arguments, from the signature that nanobind writes into the docstring."""
    target, part = located(entry)
    doc = (getattr(target, part, None) if part else target).__doc__ or ""
    match = re.search(r"\((.*)\)", doc.splitlines()[0]) if doc else None
    if not match:
        return []
    names = re.findall(r"(?:^|, )\*?(\w+)(?=: )", match.group(1))
    return [name for name in names if name != "self"]


class Mutator:
    """Draws calls; equal seeds and numbers give equal calls."""

    def __init__(self, seeds: dict[str, list[Node]]) -> None:
        arrays: dict[str, Node] = {}
        self.seeds = {entry: [unpacked(call, arrays) for call in calls] for entry, calls in seeds.items()}
        self.entries = sorted(entry for entry in seeds if seeds[entry])
        self.names = {entry: argument_names(entry) for entry in self.entries}

    def case(self, seed: int, number: int, entry: str | None = None) -> Node:
        """Return call ``number`` of the run with this seed; entry points take turns."""
        draw = random.Random(seed * 1_000_003 + number)
        entry = entry or self.entries[number % len(self.entries)]
        calls = self.seeds[entry]
        call = copied(calls[(number // len(self.entries)) % len(calls)])
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            self._change(call, draw)
        if draw.random() < 0.2:
            call["at_end"] = False  # arrays begin at an unreadable page instead
        return call

    # ------------------------------------------------------------------ where

    def _change(self, call: Node, draw: random.Random) -> None:
        places = self._places(call)
        if not places:
            return
        # Arrays carry the most ways to go wrong; objects of the core come with their own arguments.
        weights = [4 if _is_array(holder[key]) else 1 for holder, key, _ in places]
        holder, key, name = draw.choices(places, weights)[0]
        if draw.random() < 0.06:
            other = draw.choice(places)
            holder[key] = copied(other[0][other[1]])
        else:
            holder[key] = self._changed(holder[key], name, draw)

    def _places(self, call: Node) -> list[tuple[Any, Any, str]]:
        """All leaves of the arguments: the container, the key in it, and the name of the argument."""
        found: list[tuple[Any, Any, str]] = []
        names = self.names.get(call["entry"]) or []
        for index in range(len(call["args"])):
            self._leaves(call["args"], index, names[index] if index < len(names) else "", found)
        for key in call["kwargs"]:
            self._leaves(call["kwargs"], key, key, found)
        if "self" in call:
            inner = call["self"].get("made")
            if inner:
                found += self._places(inner)
        for step in call.get("then", ()):
            found += self._places(step)
        return found

    def _leaves(self, holder: Any, key: Any, name: str, found: list[tuple[Any, Any, str]]) -> None:
        node = holder[key]
        found.append((holder, key, name))
        if isinstance(node, dict):
            (kind, content), *_ = node.items()
            if kind in ("list", "tuple"):
                for index in range(min(len(content), 12)):
                    self._leaves(content, index, name, found)
            elif kind == "dict":
                for pair in content[:12]:
                    self._leaves(pair, 1, name, found)
            elif kind == "made":
                found += self._places(content)

    # ------------------------------------------------------------------ how

    def _changed(self, node: Node, name: str, draw: random.Random) -> Node:
        if draw.random() < 0.02:
            return draw.choice((None, 0, "", {"list": []}, {"tuple": []}, True, 1.5, {"bytes": ""}))
        if isinstance(node, bool):
            return not node
        if isinstance(node, int):
            return self._integer(node, name, draw)
        if isinstance(node, float):
            if WORK.search(name):
                return node
            return draw.choice((*FLOATS, node * 2, -node, node + 1e-9))
        if isinstance(node, str):
            return draw.choice((*TEXTS, node[:-1], node + "x", node.upper()))
        if not isinstance(node, dict):
            return draw.choice((0, 1.0, "", {"list": []}, node))
        (kind, content), *_ = node.items()
        if kind in ("array", "held"):
            array = content.copy() if kind == "held" else decode_array(node)
            return encode_array(self._array(array, name, draw))
        if kind in ("list", "tuple"):
            return {kind: self._items(content, draw)}
        if kind == "bytes":
            return {"bytes": draw.choice(("", "AA==", "/////w==", content[: len(content) // 8 * 4]))}
        if kind == "made":
            others = [call for call in self.seeds.get(content["entry"], ()) if call is not content]
            return {"made": copied(draw.choice(others))} if others else node
        if kind == "int":
            return draw.choice(INTEGERS)
        return node

    def _integer(self, node: int, name: str, draw: random.Random) -> Node:
        if WORK.search(name):
            return draw.choice((0, -1, 1, 2, 3, min(node, MOST_WORK), -(2**31), -(2**63)))
        return draw.choice((*INTEGERS, *BEYOND, node + 1, node - 1, node * 2, -node))

    def _items(self, items: list[Node], draw: random.Random) -> list[Node]:
        items = list(items)
        way = draw.randrange(5)
        if way == 0 or not items:
            return []
        at = draw.randrange(len(items))
        if way == 1:
            del items[at]
        elif way == 2:
            items.insert(at, copied(items[at]))
        elif way == 3:
            items.reverse()
        else:
            items[at] = draw.choice((None, 0, -1, 2**63 - 1, "", {"bytes": ""}, {"list": []}, {"float": "nan"}))
        return items

    def _array(self, array: np.ndarray, name: str, draw: random.Random) -> np.ndarray:
        way = draw.random()
        if way < 0.55:
            return self._entries(array, draw)
        if way < 0.85:
            return self._shape(array, draw)
        if way < 0.95:
            with np.errstate(all="ignore"):
                try:
                    return np.ascontiguousarray(array.astype(draw.choice(DTYPES)))
                except (TypeError, ValueError, OverflowError):
                    return array
        if way < 0.97:
            array.flags.writeable = False
            return array
        return np.asfortranarray(array) if array.ndim > 1 else array

    def _entries(self, array: np.ndarray, draw: random.Random) -> np.ndarray:
        if not array.size:
            return self._shape(array, draw)
        flat = array.reshape(-1)
        for _ in range(draw.choice((1, 1, 2, array.size))):
            at = draw.randrange(flat.size) if draw.random() < 0.7 else draw.choice((0, -1))
            if array.dtype.kind in "iu":
                limits = np.iinfo(array.dtype)
                near = int(flat[at])
                value = draw.choice(
                    (*INTEGERS, array.size, array.size + 1, near + 1, near - 1, near + 1, limits.max, limits.min)
                )
                flat[at] = min(max(value, int(limits.min)), int(limits.max))
            elif array.dtype.kind == "f":
                value = draw.choice(
                    (0.0, -1.0, 1e300, -1e300, 5e-324, 1e18, float("nan"), float("inf"), float("-inf"), 0.5)
                )
                with np.errstate(all="ignore"):
                    flat[at] = value
            elif array.dtype.kind == "b":
                flat[at] = not flat[at]
        if draw.random() < 0.1:
            flat[...] = np.sort(flat)[:: draw.choice((1, -1))]
        return array

    def _shape(self, array: np.ndarray, draw: random.Random) -> np.ndarray:
        way = draw.randrange(9)
        if array.ndim == 0:
            return array.reshape(1)
        axis = draw.randrange(array.ndim)
        length = array.shape[axis]
        if way == 0:
            return np.take(array, range(0), axis)
        if way == 1:
            return np.take(array, range(length - 1), axis) if length else array[None]
        if way == 2 and length:
            return np.concatenate([array, np.take(array, [length - 1], axis)], axis)
        if way == 3:
            return np.concatenate([array, array, array], axis)
        if way == 4:
            return array[None]
        if way == 5:
            return array.reshape(-1)
        if way == 6:
            return np.ascontiguousarray(array.T)
        if way == 7 and length:
            return np.take(array, [0], axis)
        return np.take(array, range(1, length), axis) if length else array


def _is_array(node: Node) -> bool:
    return isinstance(node, dict) and ("array" in node or "held" in node)
