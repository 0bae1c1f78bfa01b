"""Names of hashed features: a bounded table, so that a model can say which words and fields its weights belong to.

A hashed model knows hashes alone. Names are noted for a sample of the training data, and those with the largest
weights are kept; what a kept name weighs is read from the model when it is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import _core
from mercer._state.values import pack_strings, unpack_strings
from mercer.data import TextBuffer
from mercer.online._inputs import text_features

__all__ = ["NAMED_BYTES", "NameTable", "document_sample", "names_of"]

NAMED_BYTES = 1 << 20
"""Bytes of documents whose names are noted in a fit, spread evenly over all: some tens of milliseconds."""
_LONGEST = 200
"""Characters of a name that is worth keeping."""


def names_of(texts: Any, hasher: Any) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The different features of documents: names, 64-bit hashes and counts."""
    buffer = TextBuffer(texts)
    names, hashes, counts = _core.text.text_names(buffer.data, buffer.offsets, **text_features(hasher)._settings())
    return list(names), np.asarray(hashes, np.uint64), np.asarray(counts)


def document_sample(texts: Sequence[Any]) -> list[Any]:
    """Documents from all over a collection, of `NAMED_BYTES` together."""
    n = len(texts)
    probe = [len(texts[i]) for i in range(0, n, max(1, n // 64))]
    wanted = int(NAMED_BYTES / max(1.0, float(np.mean(probe)))) if probe else 0
    return [texts[i] for i in range(0, n, max(1, -(-n // max(1, wanted))))]


@dataclass(frozen=True)
class NameTable:
    """Names of features and their hashes."""

    names: list[str]
    hashes: np.ndarray

    @classmethod
    def empty(cls) -> NameTable:
        """No names."""
        return cls([], np.zeros(0, np.uint64))

    @property
    def n_bytes(self) -> int:
        """Memory of the table: names, their strings' overhead, hashes."""
        return sum(49 + len(name.encode("utf-8", "surrogatepass")) for name in self.names) + 16 * len(self.names)

    def with_names(self, names: Sequence[str], hashes: np.ndarray) -> NameTable:
        """The table with more names, each once; names that are longer than 200 characters are left out."""
        place = dict(zip(self.hashes.tolist(), self.names, strict=True))
        for name, value in zip(names, hashes.tolist(), strict=True):
            if len(name) <= _LONGEST:
                place.setdefault(value, name)
        return NameTable(list(place.values()), np.fromiter(place, np.uint64, len(place)))

    def strongest(self, strength: np.ndarray, n: int) -> NameTable:
        """The n names of the largest strength, in the order of the table."""
        if len(self.names) <= n:
            return self
        kept = np.sort(np.argsort(-strength, kind="stable")[:n])
        return NameTable([self.names[k] for k in kept], self.hashes[kept])

    def to_arrays(self) -> dict[str, np.ndarray]:
        """What a model file keeps."""
        packed = pack_strings(self.names)
        return {"names.bytes": packed["bytes"], "names.offsets": packed["offsets"], "names.hashes": self.hashes}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> NameTable:
        """The inverse of `to_arrays`."""
        names = unpack_strings({"bytes": arrays["names.bytes"], "offsets": arrays["names.offsets"]})
        hashes = arrays["names.hashes"]
        if hashes.dtype != np.uint64 or hashes.shape != (len(names),):
            raise ValueError(f"expected the hashes of {len(names)} names, found an array of shape {hashes.shape}")
        return cls(names, hashes)
