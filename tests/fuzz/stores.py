"""Stores of every kind of examples, their manifest or a piece mutated and the checksums computed anew, then read."""

from __future__ import annotations

import copy
import os
import random
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.engine import REFUSED, Case, Target
from fuzz.model_files import change_array, change_json
from fuzz.mutate import Mutator
from fuzz.values import Builder, decode_array, encode, plain
from mercer._state import container
from mercer.data import store as stores
from mercer.data.store import Store
from mercer.exceptions import StoreError

PIECE = "00000-00000000.piece"
UNSET = 77_777_777  # bytes of the piece
X = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.0], [0.5, 0.5]])
PAIR = ([0, 1, 2], [1, 0])  # the graph of one edge


def _written(kind: str) -> tuple[Any, ...]:
    """The examples of one piece."""
    import scipy.sparse as sp

    from mercer.data import Graph, Template
    from mercer.proportions import Bags

    named = [[{"w": "a", "n": 1.5}, {"w": "b"}], [{"w": "b"}]]
    columns = [[("a", "A"), ("b", "B")], [("c", "C")]]
    edge = Graph(*map(np.array, PAIR), node_labels=np.array([1, 2]))
    return {
        "names": (named, [["X", "Y"], [None]]),
        "columns": (columns, [["X", "Y"], ["X"]], None, {"template": Template.parse("U0:%x[0,0]\nB")}),
        "hashed": (named, [["X", "Y"], [{"X", "Y"}]], [1.0, 2.0], {"n_bits": 6}),
        "matrices": ([X[:3], X[3:]], [[0, 1, 0], [1]]),
        "rows": (X, [0, 1, 0, 1], np.ones(4)),
        "sparse": (sp.csr_matrix(X), ["a", "b", "a", "b"]),
        "texts": (["one text", "", "three"], [1, 0, 1]),
        "graphs": ([edge, edge], [[0, 1], [1, 1]]),
        "bags": (X, Bags([0, 0, 1, 1], {0: 0.5, 1: 1.0})),
        "items": ([["a", 1], {"b": 2.5}], [None, "c"]),
    }[kind]


def _use(part: Any) -> None:
    """What an estimator does first with the examples of a piece."""
    import scipy.sparse as sp

    from mercer.data import Graphs, Sequences, TextBuffer
    from mercer.maps import TextHasher
    from mercer.proportions import Bags, MeanMap

    if isinstance(part.X, Sequences):
        from mercer.tagging import Tagger

        Tagger(max_iter=2, tol=1.0).fit(part.X, part.y, part.sample_weight)
    elif isinstance(part.X, TextBuffer):
        TextHasher(n_bits=6).transform(part.X)
    elif isinstance(part.X, Graphs):
        for graph in part.X:
            assert len(graph.edges) == graph.n_edges
    elif isinstance(part.y, Bags):
        MeanMap().fit(part.X, bags=part.y)
    elif sp.issparse(part.X) or isinstance(part.X, np.ndarray):
        from mercer.classification import LinearClassifier

        LinearClassifier("log", max_iter=2, tol=1.0).fit(part.X, part.y, part.sample_weight)


def _appended(folder: Path, kind: str) -> Store:
    """A store with one more piece."""
    examples = [*_written(kind)]
    options = examples.pop() if isinstance(examples[-1], dict) else {}
    store = Store(folder)
    store.append(*examples, **options)
    return store


KINDS = ("names", "columns", "hashed", "matrices", "rows", "sparse", "texts", "graphs", "bags", "items")


class Stores(Target):
    """Mutated stores."""

    name = "stores"

    def __init__(self, only: str | None = None) -> None:
        self.kinds = [only] if only else list(KINDS)
        self.manifests: dict[str, Any] = {}
        self.pieces: dict[str, tuple[Any, dict[str, np.ndarray]]] = {}
        self.values = Mutator({})

    def load(self) -> None:
        warnings.simplefilter("ignore")
        for kind in self.kinds:
            with tempfile.TemporaryDirectory() as folder:
                store = _appended(Path(folder), kind)
                piece = container.read_file(Path(folder, store.pieces[0]["file"]))
                self.manifests[kind], self.pieces[kind] = copy.deepcopy(store._manifest), (piece.meta, piece.arrays)
                self.manifests[kind]["pieces"][0] |= {"file": PIECE, "checksum": "unset", "bytes": UNSET}
                _use(store[0])

    def case(self, seed: int, number: int) -> Case:
        draw = random.Random(seed * 1_000_003 + number)
        kind = self.kinds[number % len(self.kinds)]
        meta, arrays = self.pieces[kind]
        case = {
            "kind": kind,
            "manifest": copy.deepcopy(self.manifests[kind]),
            "meta": copy.deepcopy(meta),
            "arrays": {name: {"held": np.array(array)} for name, array in arrays.items()},
        }
        for _ in range(draw.choice((1, 1, 2, 3))):
            place = draw.choice(("manifest", "meta", "arrays", "arrays"))
            if place != "arrays" or not case["arrays"]:
                change_json(case["manifest" if place == "arrays" else place], draw)
            else:
                change_array(case["arrays"], self.values, draw)
        return case

    def run(self, case: Case) -> str | None:
        builder = Builder(None, guarded=False)
        arrays = {
            name: builder.build(node) if "held" in node else decode_array(node) for name, node in case["arrays"].items()
        }
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            try:
                checksum = container.write_file(Path(folder, PIECE), "store piece", case["meta"], arrays)
                manifest = self._signed(copy.deepcopy(case["manifest"]), checksum, os.path.getsize(Path(folder, PIECE)))
                stores._write_manifest(Path(folder), manifest)
            except (TypeError, ValueError, RecursionError):
                return REFUSED  # no such files
            for use in (self._read, self._append):
                answer = use(Path(folder), case["kind"])
                if answer is not None and answer is not REFUSED:
                    return answer
        return answer

    @staticmethod
    def _signed(manifest: Any, checksum: str, size: int) -> Any:
        """The manifest with the checksum and the bytes of the piece, but where these were changed."""
        for piece in manifest["pieces"] if isinstance(manifest.get("pieces"), list) else ():
            if isinstance(piece, dict):
                for name, unset, value in (("checksum", "unset", checksum), ("bytes", UNSET, size)):
                    if piece.get(name) == unset:
                        piece[name] = value
        return manifest

    def _read(self, folder: Path, kind: str) -> Any:
        try:
            store = Store(folder)
            repr(store), store.template, store.columns, store.nbytes, store.n_examples
            store.verify()
            parts = list(store)
        except Exception as error:
            return REFUSED if isinstance(error, StoreError) else f"open: {type(error).__name__}: {error}"
        for part in parts[:2]:
            try:
                _use(part)
            except Exception as error:
                return (
                    REFUSED if isinstance(error, (ValueError, TypeError)) else f"use: {type(error).__name__}: {error}"
                )
        return None

    def _append(self, folder: Path, kind: str) -> Any:
        """What a changed store says to the next writer."""
        try:
            _appended(folder, kind)
        except Exception as error:
            return REFUSED if isinstance(error, ValueError) else f"append: {type(error).__name__}: {error}"
        return None

    def subject(self, case: Case) -> str:
        return str(case["kind"])

    def smaller(self, case: Case) -> Iterator[Case]:
        meta, arrays = self.pieces[case["kind"]]
        for name, array in arrays.items():
            if name not in case["arrays"] or plain(case["arrays"][name]) != encode(np.asarray(array)):
                made = copy.deepcopy(case)
                made["arrays"][name] = {"held": np.array(array)}
                yield made
        for part, original in (("meta", meta), ("manifest", self.manifests[case["kind"]])):
            if case[part] != original:
                yield {**copy.deepcopy(case), part: copy.deepcopy(original)}

    def plain(self, case: Case) -> Case:
        return {**case, "arrays": plain(case["arrays"])}
