"""Recorded arguments as JSON, and arrays that end (or begin) at a page that cannot be read.

A value is a JSON node: numbers, strings, booleans and None stand for themselves, and everything else is an object with
one key: ``array``, ``list``, ``tuple``, ``dict``, ``bytes``, ``int`` (beyond 64 bits), ``float`` (not finite), ``text``
(not UTF-8), ``scalar`` (of NumPy) or ``made``, an object of the compiled core together with the call that made it.
"""

from __future__ import annotations

import base64
import ctypes
import math
import mmap
import zlib
from typing import Any

import numpy as np

Node = Any
PAGE = mmap.PAGESIZE


class NotRecordable(TypeError):
    """A value that has no node."""


def encode(value: Any, made: dict[int, Node] | None = None) -> Node:
    """Return the node of a value; ``made`` holds the nodes of objects of the core, by identity."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.generic):
        return {"scalar": [value.dtype.str, value.tobytes().hex()]}
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else {"int": str(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return {"text": value.encode("utf-8", "surrogatepass").hex()}
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise NotRecordable("arrays of objects")
        packed = base64.b64encode(zlib.compress(np.ascontiguousarray(value).tobytes(), 9)).decode()
        return {"array": [value.dtype.str, list(value.shape), packed]}
    if isinstance(value, list):
        return {"list": [encode(item, made) for item in value]}
    if isinstance(value, tuple):
        return {"tuple": [encode(item, made) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key, made), encode(item, made)] for key, item in value.items()]}
    if made is not None and id(value) in made:
        return {"made": made[id(value)]}
    raise NotRecordable(type(value).__name__)


def decode_array(node: Node) -> np.ndarray:
    """Return the array of an ``array`` node, writable."""
    dtype, shape, packed = node["array"]
    return np.frombuffer(bytearray(zlib.decompress(base64.b64decode(packed))), np.dtype(dtype)).reshape(shape)


def encode_array(array: np.ndarray) -> Node:
    """Return an ``array`` node that keeps the array itself, for mutations."""
    return {"held": array}


def unpacked(node: Node, arrays: dict[str, Node]) -> Node:
    """Return a copy of a node with its arrays decoded and held, equal ones once; they are never changed in place."""
    if isinstance(node, dict):
        if "array" not in node:
            return {key: unpacked(item, arrays) for key, item in node.items()}
        text = repr(node["array"])
        if text not in arrays:
            arrays[text] = encode_array(decode_array(node))
        return arrays[text]
    return [unpacked(item, arrays) for item in node] if isinstance(node, list) else node


def copied(node: Node) -> Node:
    """Return a copy of a node that shares its held arrays."""
    if isinstance(node, dict):
        return node if "held" in node else {key: copied(item) for key, item in node.items()}
    return [copied(item) for item in node] if isinstance(node, list) else node


def plain(node: Node) -> Node:
    """Return a node without held arrays: what can be written as JSON."""
    if isinstance(node, dict):
        if "held" in node:
            return encode(node["held"])
        return {key: plain(item) for key, item in node.items()}
    return [plain(item) for item in node] if isinstance(node, list) else node


class Builder:
    """Makes values of nodes; arrays lie at the edge of a page that faults on every access."""

    def __init__(self, call: Any, guarded: bool = True, at_end: bool = True) -> None:
        self.call = call
        self.guarded = guarded
        self.at_end = at_end
        self.pages: list[GuardedPages] = []
        self.objects: dict[Any, Any] = {}  # equal nodes are one object, as a tree of cliques and its graph have to be

    def build(self, node: Node) -> Any:
        """Return the value of a node."""
        if not isinstance(node, dict):
            return node
        (kind, content), *_ = node.items()
        if kind in ("array", "held"):
            array = content if kind == "held" else decode_array(node)
            if not self.guarded or array.dtype.hasobject:
                return array
            page = GuardedPages(array.nbytes, self.at_end)
            self.pages.append(page)
            return page.copy_of(array)
        if kind == "list":
            return [self.build(item) for item in content]
        if kind == "tuple":
            return tuple(self.build(item) for item in content)
        if kind == "dict":
            return {self.build(key): self.build(item) for key, item in content}
        if kind == "bytes":
            return base64.b64decode(content)
        if kind == "int":
            return int(content)
        if kind == "float":
            return float(content)
        if kind == "text":
            return bytes.fromhex(content).decode("utf-8", "surrogatepass")
        if kind == "scalar":
            return np.frombuffer(bytes.fromhex(content[1]), np.dtype(content[0]))[0]
        if kind == "made":
            key = _key(content)
            if key not in self.objects:
                self.objects[key] = self.call(content, self)
            return self.objects[key]
        raise ValueError(f"there is no node {kind!r}")


def _key(node: Node) -> Any:
    if isinstance(node, dict):
        return id(node["held"]) if "held" in node else tuple((key, _key(item)) for key, item in node.items())
    return tuple(_key(item) for item in node) if isinstance(node, list) else (type(node), node)


_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class GuardedPages:
    """Memory with an unreadable page before and after it, until `close`."""

    def __init__(self, size: int, at_end: bool) -> None:
        inner = -(-size // PAGE) * PAGE
        self.size = inner + 2 * PAGE
        found = _libc.mmap(None, self.size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if found in (None, ctypes.c_void_p(-1).value):
            raise MemoryError("no address space for a guarded array")
        self.begin = int(found)
        if inner and _libc.mprotect(self.begin + PAGE, inner, mmap.PROT_READ | mmap.PROT_WRITE):
            raise MemoryError("no memory for a guarded array")
        self.place = self.begin + PAGE + (inner - size if at_end else 0)

    def copy_of(self, array: np.ndarray) -> np.ndarray:
        """Return a copy of the array in this memory, with the same order of axes and strides."""
        buffer = (ctypes.c_char * array.nbytes).from_address(self.place)
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        copy: np.ndarray = np.ndarray(array.shape, array.dtype, buffer, order=order)
        copy[...] = array
        copy.flags.writeable = array.flags.writeable
        return copy

    def close(self) -> None:
        """Unmap the memory: no array of it may be used from here on."""
        if self.begin:
            _libc.munmap(self.begin, self.size)
            self.begin = 0
