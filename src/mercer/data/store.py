"""Examples on disk: a folder of pieces and a manifest, read piece by piece in bounded memory.

    train.store/manifest.json            description of the pieces: kinds, columns, sizes, checksums
    train.store/00000-3f29a1c4.piece     safetensors: the examples of one call of append, encoded

A piece is written completely and then entered in the manifest, which is replaced by a rename. So a reader sees a whole
append or nothing, and the next writer removes the remains of a killed one. Pieces are memory-mapped, or read if below 1
MiB. They are released after use, so memory and open files stay those of one piece.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import operator
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from mercer._state.container import MappedFile, map_file, write_atomically, write_file
from mercer._state.lock import FileLock
from mercer._state.values import Reader, Writer
from mercer._validation import check_count, check_offsets
from mercer.data.bags import Bags
from mercer.data.features import FeatureIndex, NamedSequences, as_sequences
from mercer.data.graphs import Graphs, as_graphs
from mercer.data.labels import LabelLists, TagSequences
from mercer.data.partitions import Partition
from mercer.data.sequences import Rows, Sequences
from mercer.data.templates import Template
from mercer.data.text import TextBuffer
from mercer.exceptions import ModelFileError, StoreError

__all__ = ["Store", "StoreError"]

FORMAT_VERSION = 1
_KIND = "store piece"
_MANIFEST = "manifest.json"
_PIECE_NAME = re.compile(r"[0-9]{5,}-[0-9a-f]{8}\.piece")
KINDS = ("sequences", "rows", "texts", "graphs", "bags", "items")


class Store:
    """Examples in a folder, written once in pieces and read piece by piece.

    Opening reads only the manifest. A piece is checked against its checksum on its first read.

    Parameters
    ----------
    path : str or path
        The folder. The first :meth:`append` creates it if needed.

    Attributes
    ----------
    kind : str or None
        Type of X: "sequences", "rows", "texts", "graphs", "bags" or "items"; None while the store is empty.
    pieces : list of dict
        File, bytes, checksum and number of examples of each piece.
    template : Template or None
        The template that made the features of sequences from columns.

    Examples
    --------
    >>> import tempfile
    >>> from mercer.data import Store
    >>> from mercer.tagging import Tagger
    >>> store = Store(tempfile.mkdtemp() + "/train.store")
    >>> store.append([[{"word": "the"}, {"word": "dog"}]], [["DET", "NOUN"]])
    >>> store.append([[{"word": "a"}, {"word": "cat"}]], [["DET", "NOUN"]])
    >>> store
    Store(2 examples of sequences in 2 pieces)
    >>> Tagger().fit(store).predict([[{"word": "the"}, {"word": "cat"}]])
    [['DET', 'NOUN']]
    """

    __mercer_partitions__ = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._places: dict[int, dict[str, Any]] = {}
        self._mapped: dict[int, MappedFile] = {}
        self._checked: set[str] = set()  # checksums of pieces that were compared with their contents
        self._manifest: dict[str, Any] = {"pieces": []}
        self.reload()

    def reload(self) -> None:
        """Read the manifest again, to see the appends of other processes."""
        before, self._manifest = self.pieces, _read_manifest(self.path)
        if self.pieces[: len(before)] != before:  # another store in its place
            self._mapped, self._places = {}, {}

    # ------------------------------------------------------------------ what it is

    @property
    def kind(self) -> str | None:
        """What X is."""
        return self._manifest["kind"]

    @property
    def pieces(self) -> list[dict[str, Any]]:
        """Files of the pieces, with their sizes and checksums."""
        return self._manifest["pieces"]

    @property
    def n_examples(self) -> int:
        """Number of examples in all pieces."""
        return sum(piece["examples"] for piece in self.pieces)

    @property
    def nbytes(self) -> int:
        """Bytes of all pieces."""
        return sum(piece["bytes"] for piece in self.pieces)

    @property
    def template(self) -> Template | None:
        """Return the template that made the features of sequences from columns."""
        text = self._manifest["settings"].get("template")
        return None if text is None else Template.parse(text)

    @property
    def columns(self) -> list[str] | None:
        """Return the names of the columns, if rows came from a frame."""
        return self._manifest["settings"].get("columns")

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        if not self.pieces:
            return "Store(empty)"
        n = len(self)
        return f"Store({self.n_examples:,} examples of {self.kind} in {n} piece{'s' if n > 1 else ''})"

    # ------------------------------------------------------------------ writing

    def append(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        kind: str | None = None,
        template: Template | None = None,
        n_bits: int = 0,
    ) -> None:
        """Write examples as one more piece.

        A piece should fit into memory several times; tens of megabytes are a good size. It becomes visible only when it
        is completely written.

        Parameters
        ----------
        X, y, sample_weight
            As estimators take them. With bags, y is a :class:`~mercer.proportions.Bags` of the rows of X; bags must be
            whole.
        kind : {"sequences", "rows", "texts", "graphs", "bags", "items"}, optional
            Type of X. Default: detected; ``"items"`` takes lists of any objects that model files can hold.
        template : Template, optional
            Makes the features of sequences of columns, and is stored.
        n_bits : int, default=0
            For sequences: hash the names of features into ``2**n_bits`` columns, for ``features="hashing"``.

        Raises
        ------
        StoreError
            If another process is writing, or earlier pieces differ in columns or kind.
        OSError
            For example if the disk is full. The store stays unchanged.
        """
        if not hasattr(X, "__len__") and not hasattr(X, "shape") and not hasattr(X, "__iter__"):
            raise TypeError(f"X must be examples, got {type(X).__name__}")
        if template is not None and not isinstance(template, Template):
            raise TypeError(f"template must be a Template, got {type(template).__name__}")
        kind = _kind_of(X, y, template) if kind is None else kind
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path.resolve(), "another process{owner} is writing to this store; wait for its end")
        try:
            lock.acquire()
        except ModelFileError as error:
            raise StoreError(str(error)) from None
        try:
            self.reload()  # another writer may have been here
            meta, arrays, settings, n = _encoded(kind, X, y, sample_weight, template, n_bits)
            self._check_settings(kind, settings)
            self._remove_strays()
            name = f"{len(self.pieces):05d}-{secrets.token_hex(4)}.piece"
            try:
                checksum = write_file(self.path / name, _KIND, meta, arrays)
                entry = {
                    "file": name,
                    "bytes": os.path.getsize(self.path / name),
                    "checksum": checksum,
                    "examples": n,
                }
                manifest = {**self._manifest, "kind": kind, "settings": settings, "pieces": [*self.pieces, entry]}
                _write_manifest(self.path, manifest)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(self.path / name)
                raise
            self._manifest = manifest
        finally:
            lock.release()

    def extend(
        self,
        examples: Iterable[tuple[Any, ...]],
        size: int = 4096,
        *,
        done: Callable[[int], None] | None = None,
        **settings: Any,
    ) -> None:
        """Append examples (x, y) from an iterable, in pieces of ``size`` examples.

        Parameters
        ----------
        examples : iterable of tuples (x, y)
        size : int, default=4096
            Examples of a piece.
        done : callable, optional
            Called after each piece with the number of examples written so far.
        **settings
            As in :meth:`append`.
        """
        size = check_count("size", size)
        batch: list[tuple[Any, ...]] = []
        written = 0

        def flush() -> None:
            nonlocal written
            self.append(*(list(column) for column in zip(*batch, strict=True)), **settings)
            written += len(batch)
            batch.clear()
            if done is not None:
                done(written)

        for example in examples:
            batch.append(example)
            if len(batch) >= size:
                flush()
        if batch:
            flush()

    def _check_settings(self, kind: str, settings: dict[str, Any]) -> None:
        if not self.pieces:
            return
        if kind != self.kind:
            raise StoreError(f"{self.path}: the store holds {self.kind}, these are {kind}")
        for name, before in self._manifest["settings"].items():
            if settings.get(name, ...) != before:
                raise StoreError(
                    f"{self.path}: {name} of the store: {_short(before)}; of these: {_short(settings.get(name))}"
                )

    def _remove_strays(self) -> None:
        """Remove pieces that writers left when they were killed."""
        known = {piece["file"] for piece in self.pieces}
        for file in self.path.glob("*.piece*"):
            if file.name not in known:
                with contextlib.suppress(OSError):
                    file.unlink()

    # ------------------------------------------------------------------ reading

    def __getitem__(self, i: int) -> Partition:
        """Return the examples of piece i, as views of the file; :meth:`drop` and :meth:`walk` release memory."""
        i = self._number(i)
        if i not in self._mapped:
            self._mapped[i] = self._map(i)
        file, places = self._mapped[i], self._places.setdefault(i, {})
        try:
            part = _decoded(self.kind or "", file.meta, file.arrays, places)
            _check_lengths(part, self.pieces[i]["examples"])
            return part
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            self._fail(i, f"does not hold what its manifest says ({error})", error)

    def __iter__(self) -> Iterator[Partition]:
        return self.walk()

    def walk(self) -> Iterator[Partition]:
        """Iterate over the pieces; the memory of one is released when the next is requested."""
        for i in range(len(self)):
            try:
                yield self[i]
            finally:
                self.drop(i)

    def drop(self, i: int) -> None:
        """Release the memory of piece i; accessed pages are read again."""
        file = self._mapped.pop(self._number(i), None)
        if file is not None:
            file.drop_pages()

    def verify(self) -> None:
        """Read all pieces and compare their checksums.

        Raises
        ------
        StoreError
            For the first piece that is missing, truncated or changed; the message names it.
        """
        self._checked.clear()
        for i in range(len(self)):
            self._map(i).drop_pages()

    def _number(self, i: Any) -> int:
        """The number of a piece; negative ones count from the end."""
        try:
            return range(len(self))[operator.index(i)]
        except TypeError:
            raise TypeError(f"the number of a piece must be an integer, got {_short(i)}") from None
        except IndexError:
            raise IndexError(f"piece {i} of {len(self)}: {self.path}") from None

    def _map(self, i: int) -> MappedFile:
        piece = self.pieces[i]
        path = self.path / piece["file"]
        try:
            size = os.path.getsize(path)
            if size != piece["bytes"]:
                self._fail(i, f"has {size:,} bytes, the manifest says {piece['bytes']:,}: it was cut short or replaced")
            file = map_file(path, _KIND, verify=piece["checksum"] not in self._checked)
        except FileNotFoundError as error:
            self._fail(i, "is missing", error)
        except ModelFileError as error:
            if isinstance(error, StoreError):
                raise
            self._fail(i, str(error).removeprefix(str(path)).strip(), error)
        if file.checksum != piece["checksum"]:
            self._fail(i, "is not the piece that was written: its checksum is another one than the manifest's")
        self._checked.add(piece["checksum"])
        return file

    def _fail(self, i: int, what: str, cause: Exception | None = None) -> NoReturn:
        raise StoreError(f"{self.path}: piece {i} ({self.pieces[i]['file']}) {what}") from cause

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_manifest": self._manifest, "_places": {}, "_mapped": {}, "_checked": set()}

    def distributed(self) -> StoreOnWorkers:
        """Return the pieces as partitions for the workers of the current Dask cluster, which must see this path.

        ``Tagger().fit(store.distributed())`` trains on the workers, ``Tagger().fit(store)`` in this process; the
        weights are equal.
        """
        if not self.pieces:
            raise StoreError(f"{self.path}: there is no store here, or nothing is written yet")
        return StoreOnWorkers(str(self.path.resolve()), [piece["checksum"] for piece in self.pieces])


class StoreOnWorkers:
    """The pieces of a store, read by workers; see :meth:`Store.distributed`."""

    __mercer_partitions__ = True

    def __init__(self, path: str, checksums: list[str]) -> None:
        self.path, self.checksums = path, checksums

    def __len__(self) -> int:
        return len(self.checksums)

    def __repr__(self) -> str:
        return f"StoreOnWorkers({self.path!r}, {len(self)} pieces)"

    def read(self, i: int) -> Partition:
        """Return the examples of piece i, if the client has seen the same piece."""
        store = Store(self.path)
        if i >= len(store) or store.pieces[i]["checksum"] != self.checksums[i]:
            raise StoreError(f"{self.path}: a worker finds no store here, or another one than the client sees")
        return store[i]


# ------------------------------------------------------------------------------------------------ manifest


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        text = _text_of(path / _MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        if path.exists() and (not path.is_dir() or any(not _is_ours(file.name) for file in path.iterdir())):
            raise StoreError(f"{path}: this is no store: there is no {_MANIFEST}") from None
        return {"format": FORMAT_VERSION, "kind": None, "settings": {}, "pieces": []}
    try:
        manifest = json.loads(text)
        checksum = manifest.pop("checksum")
        if manifest["format"] != FORMAT_VERSION:
            raise StoreError(
                f"{path}: the store has format {manifest['format']}, this version of mercer reads {FORMAT_VERSION}"
            )
        if checksum != _checksum(manifest):
            raise ValueError("its checksum does not match")
        _check_manifest(manifest)
    except StoreError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"{path / _MANIFEST} is damaged: {error}") from error
    return manifest


def _text_of(file: Path) -> bytes:
    """The contents of a file; a pipe or a folder is refused, and not waited for."""
    if not stat.S_ISREG(os.stat(file).st_mode):
        raise StoreError(f"{file} is no file")
    return file.read_bytes()


def _check_manifest(manifest: dict[str, Any]) -> None:
    """Raise ValueError for what no writer has written, although its checksum is right."""
    if manifest["kind"] not in (None, *KINDS):
        raise ValueError(f"its kind is {_short(manifest['kind'])}")
    if not isinstance(manifest["settings"], dict) or not isinstance(manifest["pieces"], list):
        raise ValueError("settings must be a mapping and pieces a list")
    template, columns = (manifest["settings"].get(name) for name in ("template", "columns"))
    if template is not None:
        if not isinstance(template, str):
            raise ValueError(f"its template is {_short(template)}")
        Template.parse(template)
    if columns is not None and not (isinstance(columns, list) and all(isinstance(name, str) for name in columns)):
        raise ValueError(f"its columns are {_short(columns)}")
    for piece in manifest["pieces"]:
        if not _PIECE_NAME.fullmatch(piece["file"]):
            raise ValueError(f"{_short(piece['file'])} is no name of a piece in the folder")
        counts = piece["bytes"], piece["examples"]
        if not all(type(count) is int and count >= 0 for count in counts) or not isinstance(piece["checksum"], str):
            raise ValueError(f"the entry of {piece['file']} needs its bytes, examples and checksum")


def _is_ours(name: str) -> bool:
    """Whether a writer that was killed before its first manifest may have left this file."""
    return name.endswith((".piece", ".tmp"))


def _write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    text = json.dumps({**manifest, "checksum": _checksum(manifest)}, indent=1, ensure_ascii=False)
    write_atomically(path / _MANIFEST, [text.encode()])


def _checksum(manifest: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(manifest, sort_keys=True).encode(), digest_size=16).hexdigest()


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"


# ------------------------------------------------------------------------------------------------ examples


def _kind_of(X: Any, y: Any, template: Template | None) -> str:
    """What X is, by its form."""
    if isinstance(y, Bags):
        return "bags"
    if isinstance(X, Sequences) or template is not None:
        return "sequences"
    if isinstance(X, TextBuffer):
        return "texts"
    if isinstance(X, Graphs):
        return "graphs"
    if getattr(X, "ndim", 0) == 2:
        return "rows"
    first = next((x for x in X if not hasattr(x, "__len__") or len(x)), None) if hasattr(X, "__iter__") else None
    if isinstance(first, (str, bytes)):
        return "texts"
    if getattr(first, "ndim", 0) == 2:
        return "sequences"
    if isinstance(first, (list, tuple)) and isinstance(first[0], (dict, list)) and _are_label_lists(y):
        return "sequences"
    return "items"


def _are_label_lists(y: Any) -> bool:
    if isinstance(y, LabelLists):
        return True
    if isinstance(y, np.ndarray) or not hasattr(y, "__iter__"):
        return False
    first = next((one for one in y if hasattr(one, "__len__") and not isinstance(one, str) and len(one)), None)
    return first is not None and isinstance(first[0], (str, int, float, type(None), set, frozenset, np.generic))


def _encoded(
    kind: str, X: Any, y: Any, sample_weight: Any, template: Template | None, n_bits: int
) -> tuple[dict[str, Any], dict[str, np.ndarray], dict[str, Any], int]:
    """The description of a piece, its arrays, what all pieces must share, and the number of examples."""
    out = Writer()
    settings: dict[str, Any] = {}
    if kind == "sequences":
        n, inputs = _write_sequences(X, template, n_bits, out, settings)
    elif kind in ("rows", "bags"):
        n, inputs = _write_rows(X, out, settings)
    elif kind == "texts":
        texts = TextBuffer(X)
        n, inputs = len(texts), {"binary": texts.binary}
        begin, end = int(texts.offsets[0]), int(texts.offsets[-1])
        out.arrays["X.data"], out.arrays["X.offsets"] = texts.data[begin:end], texts.offsets.astype(np.int64) - begin
        settings["binary"] = texts.binary
    elif kind == "graphs":
        graphs = as_graphs(X)
        n, inputs = len(graphs), out.node(graphs, "X")
    else:
        n, inputs = len(X), out.node(list(X), "X")
    if kind == "bags":
        if not isinstance(y, Bags):
            raise TypeError("with bags, y must be Bags of the rows of X")
        if y.n_rows != n:
            raise ValueError(f"X has {n} examples, and the bags in y are of {y.n_rows} rows: give Bags n_rows={n}")
        outputs, form = _write_bags(y, out), "bags"
    elif y is None:
        outputs, form = None, None
    elif kind in ("sequences", "graphs") and _are_label_lists(y):
        outputs, form = _write_labels(LabelLists.of(y), out), "labels"
        if kind == "sequences" and len(y) == n:
            positions, labels = np.diff(out.arrays["X.offsets"]), np.diff(out.arrays["y.offsets"])
            if (positions != labels).any():
                at = int((positions != labels).argmax())
                raise ValueError(f"sequence {at} has {positions[at]} positions and {labels[at]} labels")
    else:
        nested = isinstance(y, list) and any(hasattr(one, "__len__") and not isinstance(one, str) for one in y)
        values = None if nested or (isinstance(y, list) and kind not in ("rows", "texts")) else np.asarray(y)
        plain = values is not None and values.ndim in (1, 2) and values.dtype.kind in "biufUS"
        outputs, form = out.node(values if plain else list(y), "y"), "values"
    if y is not None and form != "bags" and len(y) != n:
        raise ValueError(f"X has {n} examples and y {len(y)}")
    weights = None
    if sample_weight is not None:
        given = np.asarray(sample_weight, dtype=np.float64)
        if given.shape != (n,):
            raise ValueError(f"X has {n} examples, sample_weight has the shape {given.shape}")
        if not np.isfinite(given).all() or (given < 0).any():
            raise ValueError("sample_weight must hold finite numbers of at least 0")
        weights = out.place(given, "sample_weight")
    settings |= {"y": form, "weights": weights is not None}
    return {"X": inputs, "y": outputs, "form": form, "sample_weight": weights}, out.arrays, settings, n


def _decoded(kind: str, meta: dict[str, Any], arrays: dict[str, np.ndarray], places: dict[str, Any]) -> Partition:
    """The inverse of :func:`_encoded`."""
    source = Reader(arrays)
    if kind == "sequences":
        X: Any = _read_sequences(meta["X"], arrays, places)
    elif kind in ("rows", "bags"):
        X = _read_rows(meta["X"], arrays)
    elif kind == "texts":
        X = TextBuffer.from_arrays(arrays["X.data"], arrays["X.offsets"], meta["X"]["binary"])
    else:
        X = source.value(meta["X"])
    form = meta["form"]
    y: Any = None
    if form == "bags":
        y = _read_bags(meta["y"], source)
    elif form == "labels":
        y = _read_labels(source.value(meta["y"]), arrays)
    elif form == "values":
        y = source.value(meta["y"])
    weights = None if meta["sample_weight"] is None else arrays[meta["sample_weight"]]
    return Partition(X, y, weights)


def _check_lengths(part: Partition, n: int) -> None:
    """Raise ValueError where a piece has another number of examples than its entry in the manifest."""
    rows = part.X.shape[0] if hasattr(part.X, "shape") else len(part.X)
    for name, count in (("X", rows), ("y", None if part.y is None else getattr(part.y, "n_rows", len(part.y)))):
        if count not in (None, n):
            raise ValueError(f"{name} has {count} examples, not {n}")
    if part.sample_weight is not None:
        _check_array("sample_weight", part.sample_weight, "f", (n,))


def _check_array(name: str, array: Any, kinds: str, shape: tuple[int, ...]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds or array.shape != shape:
        raise ValueError(f"{name} is no array of the shape {shape}")


_CSR = ("indptr", "indices", "values")


def _write_sequences(
    X: Any, template: Template | None, n_bits: int, out: Writer, settings: dict[str, Any]
) -> tuple[int, dict[str, Any]]:
    if isinstance(X, NamedSequences):
        sequences: Sequences = X
        names: Any = X.names
        edge_names: Any = X.edge_names
    else:
        index, edge_index = FeatureIndex(n_bits), FeatureIndex(n_bits)
        sequences = as_sequences(X, index, template=template, edge_index=edge_index, learn=True)
        named, edge_named = sequences.index, sequences.edge_index
        names = None if named is None or named.n_bits else named._core.state()
        edge_names = None if edge_named is None or edge_named.n_bits else edge_named._core.state()
        n_bits = 0 if named is None else named.n_bits
    if sequences.offsets[0] != 0 or sequences.offsets[-1] != sequences.rows.shape[0]:
        sequences = sequences[np.arange(len(sequences))]  # a part of a larger matrix is copied
    settings |= {
        "named": names is not None,
        "n_bits": n_bits,
        "template": None if template is None else template.text,
        "n_features": None if names is not None else sequences.n_features,
        "dtype": sequences.dtype.name,
        "edges": sequences.edges is not None,
    }
    out.arrays["X.offsets"] = np.asarray(sequences.offsets, np.int64)
    for part, rows in (("X", sequences.rows), ("E", sequences.edges)):
        if rows is not None and rows.dense is not None:
            out.arrays[f"{part}.dense"] = rows.dense
        elif rows is not None:
            for name in _CSR:
                if (array := getattr(rows, name)) is not None:
                    out.arrays[f"{part}.{name}"] = array
    for part, packed in (("X", names), ("E", edge_names)):
        if packed is not None:
            out.arrays[f"{part}.names"], out.arrays[f"{part}.name_offsets"] = packed
    widths = [sequences.n_features, sequences.n_edge_features]
    return len(sequences), {"widths": widths, "n_bits": n_bits, "dtype": sequences.dtype.name}


def _read_sequences(meta: dict[str, Any], arrays: dict[str, np.ndarray], places: dict[str, Any]) -> Sequences:
    def rows(part: str, width: int) -> Rows | None:
        if f"{part}.dense" in arrays:
            return Rows(dense=arrays[f"{part}.dense"])
        if f"{part}.indptr" not in arrays:
            return None
        indptr, indices, values = (arrays.get(f"{part}.{name}") for name in _CSR)
        return Rows(indptr=indptr, indices=indices, values=values, n_columns=width, dtype=meta["dtype"])

    nodes, edges = (rows(part, width) for part, width in zip("XE", meta["widths"], strict=True))
    if nodes is None:
        raise ValueError("there are no features")
    if "X.names" in arrays:
        names = arrays["X.names"], arrays["X.name_offsets"]
        edge_names = (arrays["E.names"], arrays["E.name_offsets"]) if "E.names" in arrays else None
        return NamedSequences(nodes, arrays["X.offsets"], names, edges=edges, edge_names=edge_names, places=places)
    index = FeatureIndex(meta["n_bits"]) if meta["n_bits"] else None
    return Sequences(nodes, arrays["X.offsets"], edges=edges, index=index, edge_index=index if edges else None)


def _write_rows(X: Any, out: Writer, settings: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    columns = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    matrix: Any = X if hasattr(X, "tocsr") else np.asarray(X)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise TypeError(f"rows must be a matrix of numbers, found {matrix.dtype} of {matrix.ndim} dimensions")
    sparse = hasattr(matrix, "tocsr")
    if sparse:
        matrix = matrix.tocsr()
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        for name in ("data", "indices", "indptr"):
            out.arrays[f"X.{name}"] = getattr(matrix, name)
    else:
        out.arrays["X.dense"] = np.ascontiguousarray(matrix)
    settings |= {
        "n_features": int(matrix.shape[1]),
        "dtype": matrix.dtype.name,
        "sparse": sparse,
        "columns": columns,
    }
    return int(matrix.shape[0]), {"shape": [int(n) for n in matrix.shape], "sparse": sparse}


def _read_rows(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    if not meta["sparse"]:
        return arrays["X.dense"]
    from scipy.sparse import csr_matrix

    parts = tuple(arrays[f"X.{name}"] for name in ("data", "indices", "indptr"))
    matrix = csr_matrix(parts, shape=tuple(meta["shape"]))
    matrix.check_format(full_check=True)
    matrix.has_canonical_format = True
    return matrix


def _write_labels(y: LabelLists, out: Writer) -> Any:
    tags = y.tags
    out.arrays["y.labels"] = np.asarray(tags.labels, np.int32)
    out.arrays["y.offsets"] = np.asarray(tags.offsets - tags.offsets[0], np.int64)
    if tags.allowed is not None and y.unsaid is not None:
        out.arrays["y.allowed"], out.arrays["y.unsaid"] = tags.allowed, y.unsaid
    return out.node(list(y.classes), "classes")


def _read_labels(classes: Any, arrays: dict[str, np.ndarray]) -> LabelLists:
    labels, allowed, unsaid = (arrays.get(f"y.{part}") for part in ("labels", "allowed", "unsaid"))
    if labels is None or not isinstance(classes, list):
        raise ValueError("there are no labels")
    offsets = check_offsets("y.offsets", arrays["y.offsets"], labels.size)
    _check_array("y.labels", labels, "i", (int(offsets[-1]),))
    if labels.size and not -1 <= labels.min() <= labels.max() < len(classes):
        raise ValueError("a label has no name")
    if allowed is not None:
        _check_array("y.allowed", allowed, "u", (len(labels), len(classes)))
        _check_array("y.unsaid", unsaid, "b", labels.shape)
    return LabelLists(TagSequences(labels, offsets, allowed), classes, unsaid)


_BAGS = ("names", "offsets", "members", "alone", "lower", "upper", "classes", "bag_weight", "row_weight", "n_rows")


def _write_bags(y: Bags, out: Writer) -> dict[str, Any]:
    return {part: out.node(getattr(y, part), f"y.{part}") for part in _BAGS}


def _read_bags(meta: dict[str, Any], source: Reader) -> Bags:
    bags = object.__new__(Bags)
    for part in _BAGS:
        setattr(bags, part, source.value(meta[part]))
    _check_bags(bags)
    return bags


def _check_bags(bags: Bags) -> None:
    """Raise ValueError for what `Bags` would not have made."""
    if type(bags.n_rows) is not int or bags.n_rows < 0:
        raise ValueError("the number of rows is no count")
    for name in ("members", "alone"):
        rows = getattr(bags, name)
        _check_array(name, rows, "i", (np.size(rows),))
        if rows.size and not 0 <= rows.min() <= rows.max() < bags.n_rows:
            raise ValueError("a bag has a row that is not there")
    bags.offsets = check_offsets("offsets", bags.offsets, len(bags.members))
    n_bags = len(bags.offsets) - 1
    if not n_bags or not (np.diff(bags.offsets) > 0).all():
        raise ValueError("a bag is empty")
    _check_array("names", bags.names, "biufUSO", (n_bags,))
    for name, length in (("bag_weight", n_bags), ("row_weight", len(bags.members))):
        weight = getattr(bags, name)
        _check_array(name, weight, "f", (length,))
        if not (weight >= 0).all() or not np.isfinite(weight).all():
            raise ValueError(f"{name} must hold finite numbers of at least 0")
    if (bags.lower is None) != (bags.upper is None):
        raise ValueError("shares need a lower and an upper bound")
    if bags.lower is None or bags.upper is None:
        return
    if bags.classes is None:
        raise ValueError("shares need the names of their classes")
    for name in ("lower", "upper"):
        _check_array(name, getattr(bags, name), "f", (n_bags, len(bags.classes)))
    _check_array("classes", bags.classes, "biufUSO", (len(bags.classes),))
    rounding = 1e-6
    if not ((bags.lower >= 0) & (bags.lower <= bags.upper + rounding) & (bags.upper <= 1 + rounding)).all():
        raise ValueError("shares must lie between 0 and 1")
