"""Model files: arrays in safetensors layout, and a JSON description under the metadata key ``mercer``.

A file is ``length (8 bytes, little endian) | header (JSON) | payload (the arrays, end to end)``. The
description holds the format version, the version of mercer, the kind of model, its ``meta`` and a checksum:

    checksum = blake2b(the whole file, with the 64 characters of the checksum itself read as "0")

so every changed byte is noticed, in the header (names, dtypes, shapes, meta) as in the payload. The checksum
stands first in the header, at a fixed place. Any safetensors reader opens these files; we read and write the
layout ourselves because arrays then stream through one file handle (no second copy of a large model, no
memory map of a file that another process may replace) and a full disk stays an `OSError` with its number.

Reading never runs anything from a file: a kind is looked up in the table `MODELS`, and nowhere else. What a file may
make us allocate is limited (`_limits.py`).

How a machine trained is no part of a model: ``n_jobs``, ``verbose`` and elapsed seconds are not written, and equal
trainings give equal files.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib
import importlib.metadata
import itertools
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

import numpy as np

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

from mercer._limits import DIMENSIONS, HEADER_BYTES, NESTING, TooLargeError, budget, default_budget, reserve

__all__ = [
    "FORMAT_VERSION",
    "MODELS",
    "ModelFile",
    "ModelFileError",
    "load",
    "pack_strings",
    "read_file",
    "save",
    "unpack_strings",
    "write_atomically",
    "write_file",
]

FORMAT_VERSION = 1

MODELS: dict[str, str] = {
    "Tagger": "mercer.tagging:Tagger",
    "HiddenMarkovModel": "mercer.markov:HiddenMarkovModel",
    "HashedClassifier": "mercer.online:HashedClassifier",
    "HashedRegressor": "mercer.online:HashedRegressor",
    "RelativeMarginSVC": "mercer.classification:RelativeMarginSVC",
    "SupervisedClusterer": "mercer.clustering:SupervisedClusterer",
    "LinearClassifier": "mercer.classification:LinearClassifier",
    "SampledKNN": "mercer.classification:SampledKNN",
    "KMeansMajority": "mercer.classification:KMeansMajority",
    "LabelRanker": "mercer.ranking:LabelRanker",
    "Ranker": "mercer.ranking:Ranker",
    "StructuredPredictor": "mercer.structured:StructuredPredictor",
    "Parser": "mercer.parsing:Parser",
    "Aligner": "mercer.alignment:Aligner",
    "CirculantProjection": "mercer.maps:CirculantProjection",
    "CompactClassifier": "mercer.classification:CompactClassifier",
    "CompactNonlinearMap": "mercer.maps:CompactNonlinearMap",
    "FourierFeatures": "mercer.maps:FourierFeatures",
    "PolynomialSketch": "mercer.maps:PolynomialSketch",
    "CorrelationSelector": "mercer.maps:CorrelationSelector",
    "GraphletHasher": "mercer.maps:GraphletHasher",
    "CountMinSketch": "mercer.maps:CountMinSketch",
    "HashAccumulator": "mercer.maps:HashAccumulator",
    "RandomProjection": "mercer.maps:RandomProjection",
    "RecordHasher": "mercer.maps:RecordHasher",
    "StringHasher": "mercer.maps:StringHasher",
    "TableEncoder": "mercer.maps:TableEncoder",
    "TextHasher": "mercer.maps:TextHasher",
    "Segmenter": "mercer.segmentation:Segmenter",
    "GaussianModel": "mercer.kernels:GaussianModel",
    "GaussianMixtureModel": "mercer.kernels:GaussianMixtureModel",
    "HMMModel": "mercer.kernels:HMMModel",
    "MultinomialModel": "mercer.kernels:MultinomialModel",
    "AdditiveMap": "mercer.kernels:AdditiveMap",
    "FourierMap": "mercer.kernels:FourierMap",
    "Gram": "mercer.kernels:Gram",
    "LinearStringModel": "mercer.kernels:LinearStringModel",
    "NystroemMap": "mercer.kernels:NystroemMap",
    "CCA": "mercer.kernel_methods:CCA",
    "IncompleteCholesky": "mercer.kernel_methods:IncompleteCholesky",
    "KernelCCA": "mercer.kernel_methods:KernelCCA",
    "KernelDependencyEstimation": "mercer.kernel_methods:KernelDependencyEstimation",
    "KernelFisher": "mercer.kernel_methods:KernelFisher",
    "KernelMeanClassifier": "mercer.kernel_methods:KernelMeanClassifier",
    "KernelNuSVC": "mercer.kernel_methods:KernelNuSVC",
    "KernelOneClass": "mercer.kernel_methods:KernelOneClass",
    "KernelPCA": "mercer.kernel_methods:KernelPCA",
    "KernelRidge": "mercer.kernel_methods:KernelRidge",
    "KernelSVC": "mercer.kernel_methods:KernelSVC",
    "KernelSVR": "mercer.kernel_methods:KernelSVR",
    "LinearProgramSVC": "mercer.kernel_methods:LinearProgramSVC",
    "MultiSetCCA": "mercer.kernel_methods:MultiSetCCA",
    "OnlineKernelClassifier": "mercer.kernel_methods:OnlineKernelClassifier",
    "ParzenWindow": "mercer.kernel_methods:ParzenWindow",
    "PreImage": "mercer.kernel_methods:PreImage",
    "RepresenterEstimator": "mercer.kernel_methods:RepresenterEstimator",
    "GraphLabeler": "mercer.labeling:GraphLabeler",
    "GridLabeler": "mercer.labeling:GridLabeler",
    "AlternatingProportionSVM": "mercer.proportions:AlternatingProportionSVM",
    "ConvexProportionSVM": "mercer.proportions:ConvexProportionSVM",
    "MultipleInstanceSVM": "mercer.proportions:MultipleInstanceSVM",
    "BilinearEmbedding": "mercer.retrieval:BilinearEmbedding",
    "CirculantEmbedding": "mercer.retrieval:CirculantEmbedding",
    "SignProjection": "mercer.retrieval:SignProjection",
    "InverseCalibration": "mercer.proportions:InverseCalibration",
    "MeanMap": "mercer.proportions:MeanMap",
    "MajorityBag": "mercer.proportions:MajorityBag",
    "ProportionClassifier": "mercer.proportions:ProportionClassifier",
    "VideoEventDetector": "mercer.proportions:VideoEventDetector",
    "AttributeModeler": "mercer.proportions:AttributeModeler",
}
"""Kind of model in a file → ``module:Class``. Loading imports the names in this table and no others."""

_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_DTYPE_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

_CHECKSUM_START = b'{"__metadata__":{"mercer":"{\\"checksum\\":\\"'
_NO_CHECKSUM = "0" * 64
_RUN_SETTINGS = ("n_jobs", "verbose")
"""Parameters that say how this machine trains, not what was learnt: files do not hold them."""

Path = str | os.PathLike[str]


class ModelFileError(ValueError):
    """A model file that cannot be read: damaged, foreign, of another kind, or from a newer mercer."""


@dataclass(frozen=True)
class ModelFile:
    """What a model file holds: the kind of model, its JSON description and its arrays."""

    kind: str
    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]


# ---------------------------------------------------------------------------------------------------- models


def save(model: Any, path: Path) -> None:
    """Write a fitted model to a file.

    The write is atomic: whatever happens, `path` holds either the whole new model or what it held before.

    Parameters
    ----------
    model : object
        A model of one of the kinds in ``MODELS``.
    path : str or path-like
        The file to write or to replace.

    Raises
    ------
    TypeError
        If models of this type cannot be saved.
    OSError
        If the file cannot be written (no space left, no permission, no such directory).
    """
    kind = _kind_of(model)
    meta, arrays = model.to_state()
    write_file(path, kind, _without_run_settings(meta), arrays)


def load(path: Path, *, max_bytes: int | None = None) -> Any:
    """Read a model that `save` wrote.

    Loading never runs code from the file. Parameters about the machine rather than the model (``n_jobs``,
    ``verbose``) have their defaults.

    Parameters
    ----------
    path : str or path-like
        The file to read: a regular file.
    max_bytes : int, optional
        Most memory that the model may take; reading may need as much again for a moment. Default: the larger of
        256 MiB and 16 times the size of the file. A short file can describe a large model, such as a hashed one with
        2^28 weights that are mostly 0.

    Returns
    -------
    object
        The model, of the class that was saved.

    Raises
    ------
    ModelFileError
        If the file is not a whole model file that this version of mercer reads, or describes a model that is larger
        than ``max_bytes``.
    OSError
        If the file is missing or cannot be opened.
    """
    if max_bytes is not None and (isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1):
        raise ValueError(f"max_bytes must be a positive integer or None, got {max_bytes!r}")
    name = os.fspath(path)
    try:
        size = os.stat(path).st_size
        with budget(default_budget(size) if max_bytes is None else max_bytes):
            file = read_file(path)
            if file.kind not in MODELS:
                raise ModelFileError(
                    f"{name} holds a {file.kind!r}, which this version of mercer does not know"
                    f" (it knows {_known_kinds()})"
                )
            cls = _class_of(file.kind)
            return _restored(name, file.kind, cls, _without_run_settings(file.meta), file.arrays)
    except MemoryError as err:
        raise ModelFileError(f"{name}: not enough memory for what the file describes{_reason(err)}") from err
    except RecursionError as err:
        raise ModelFileError(f"{name} is not a valid model file: its description is nested too deeply") from err


def _restored(name: str, kind: str, cls: Any, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    try:
        return cls.from_state(meta, arrays)
    except ModelFileError:
        raise
    except KeyError as err:
        raise ModelFileError(f"{name} is not a complete {kind}: {err} is missing") from err
    except TooLargeError as err:
        raise ModelFileError(f"{name} holds a {kind} that is too large: {err}") from err
    except _INVALID as err:
        raise ModelFileError(f"{name} is not a valid {kind}: {err}") from err


_INVALID = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, AssertionError, NotImplementedError)


def _reason(err: Exception) -> str:
    return f": {err}" if str(err) else ""


def _without_run_settings(meta: Any) -> Any:
    """The description without the parameters that say how a machine trains, in nested models too."""
    if isinstance(meta, Mapping):
        return {
            key: _without_run_settings(
                {k: v for k, v in value.items() if k not in _RUN_SETTINGS}
                if key in ("params", "parameters") and isinstance(value, Mapping)
                else value
            )
            for key, value in meta.items()
        }
    return [_without_run_settings(item) for item in meta] if isinstance(meta, list | tuple) else meta


def _kind_of(model: Any) -> str:
    cls = type(model)
    if callable(getattr(cls, "to_state", None)):
        for kind, target in MODELS.items():
            # By identity, not by name: a subclass would come back as its parent.
            if target.partition(":")[2] == cls.__name__ and _class_of(kind) is cls:
                return kind
    raise TypeError(f"a {cls.__name__} cannot be saved to a model file; these models can: {_known_kinds()}")


def _class_of(kind: str) -> Any:
    module, _, name = MODELS[kind].partition(":")
    return getattr(importlib.import_module(module), name)


def _known_kinds() -> str:
    return ", ".join(sorted(MODELS))


# --------------------------------------------------------------------------------------------------- strings


def pack_strings(strings: Sequence[str]) -> dict[str, np.ndarray]:
    """Lay a list of strings out as one UTF-8 buffer and its offsets (Arrow's layout).

    Parameters
    ----------
    strings : sequence of str
        Any strings, the empty one and lone surrogates included.

    Returns
    -------
    dict
        ``"bytes"``: uint8 array; ``"offsets"``: int64 array of ``len(strings) + 1`` positions in it.

    Examples
    --------
    >>> packed = pack_strings(["né", "", "B-PER"])
    >>> packed["offsets"]
    array([0, 3, 3, 8])
    >>> unpack_strings(packed)
    ['né', '', 'B-PER']
    """
    if isinstance(strings, str):
        raise TypeError("pack_strings takes a list of strings, not one string")
    for i, string in enumerate(strings):
        if not isinstance(string, str):
            raise TypeError(f"pack_strings takes strings, but item {i} is a {type(string).__name__}")
    # surrogatepass: text read with errors="surrogateescape" must come back as it was.
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(item) for item in encoded], out=offsets[1:])
    return {"bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8).copy(), "offsets": offsets}


def unpack_strings(packed: Mapping[str, np.ndarray]) -> list[str]:
    """Give back the list of strings that `pack_strings` laid out.

    Parameters
    ----------
    packed : mapping
        The arrays ``"bytes"`` and ``"offsets"``.

    Returns
    -------
    list of str
        The strings.

    Raises
    ------
    ValueError
        If the arrays are not what `pack_strings` makes.

    Examples
    --------
    >>> unpack_strings({"bytes": np.array([104, 105], np.uint8), "offsets": np.array([0, 3])})
    Traceback (most recent call last):
    ...
    ValueError: packed strings: offsets must rise from 0 to the number of bytes (2)
    """
    for part in ("bytes", "offsets"):
        if part not in packed:
            raise ValueError(f"packed strings: the array {part!r} is missing")
    data, offsets = packed["bytes"], packed["offsets"]
    if data.dtype != np.uint8 or data.ndim != 1:
        raise ValueError("packed strings: bytes must be a one-dimensional uint8 array")
    if offsets.dtype != np.int64 or offsets.ndim != 1 or not offsets.size:
        raise ValueError("packed strings: offsets must be a one-dimensional int64 array, not empty")
    if offsets[0] != 0 or offsets[-1] != data.size or np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f"packed strings: offsets must rise from 0 to the number of bytes ({data.size})")
    buffer, bounds = data.tobytes(), offsets.tolist()
    try:
        return [buffer[start:end].decode("utf-8", "surrogatepass") for start, end in itertools.pairwise(bounds)]
    except UnicodeDecodeError as err:
        raise ValueError(f"packed strings: not UTF-8 ({err.reason})") from err


# --------------------------------------------------------------------------------------------------- writing


def write_file(path: Path, kind: str, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write one model file, atomically.

    Parameters
    ----------
    path : str or path-like
        The file to write or to replace.
    kind : str
        The kind of model.
    meta : mapping
        What JSON can hold: dicts with string keys, lists, strings, finite numbers, booleans, None. Tuples
        come back as lists.
    arrays : mapping of str to ndarray
        Arrays of float32/64, int8/16/32/64, uint8/16/32/64 or bool. They come back C-contiguous.

    Raises
    ------
    TypeError, ValueError
        If `meta` or `arrays` hold something else. Nothing has been written then.
    OSError
        If the file cannot be written. A file that was there before is untouched.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/weights.mercer"
    >>> write_file(path, "Weights", {"C": 0.1}, {"w": np.arange(3.0)})
    >>> read_file(path)
    ModelFile(kind='Weights', meta={'C': 0.1}, arrays={'w': array([0., 1., 2.])})
    """
    if not isinstance(kind, str) or not kind:
        raise TypeError(f"kind must be a non-empty string, not {kind!r}")
    if not isinstance(meta, Mapping):
        raise TypeError(f"meta must be a dict, not a {type(meta).__name__}")
    plain_meta = _as_json_value(meta, "meta", 0)
    ordered = _checked_arrays(arrays)
    header = _header(kind, plain_meta, ordered)
    payload = [_raw_bytes(array) for array in ordered.values()]
    checksum = _blake2b([len(header).to_bytes(8, "little"), header, *payload])
    start = len(_CHECKSUM_START)
    header = header[:start] + checksum.encode() + header[start + len(checksum) :]
    write_atomically(path, [len(header).to_bytes(8, "little"), header, *payload])


def write_atomically(path: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write a file so that `path` always holds either all of it or what was there before.

    The bytes go to a temporary file in the same directory, which is flushed to the disk and then renamed.

    Parameters
    ----------
    path : str or path-like
        The file to write or to replace. A symbolic link is followed.
    chunks : iterable of bytes-like
        The contents, written one after the other.

    Raises
    ------
    OSError
        With the number of what went wrong; the message names `path` and says that the old file is intact.
    """
    shown = os.fspath(path)
    target = os.path.realpath(shown)
    existed = os.path.lexists(target)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, "cannot write a file here, it is a directory", shown)
    if existed and not os.path.isfile(target):
        raise OSError(errno.EINVAL, "cannot replace this, it is not a regular file", shown)
    _remove_stale(target)
    temporary = f"{target}.{secrets.token_hex(6)}.tmp"
    try:
        try:
            with _new_file(temporary) as file:
                for chunk in chunks:
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
                if existed:
                    os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
                os.replace(temporary, target)
        finally:  # after the rename there is nothing left to remove; before it, Ctrl-C comes here too
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    except OSError as err:
        outcome = "the old file is intact" if existed else "no file was written"
        raise OSError(err.errno, f"could not write: {err.strerror or err}; {outcome}", shown) from err
    _sync_directory(os.path.dirname(target), shown)


def _new_file(temporary: str) -> BinaryIO:
    """A new file, locked as long as it is open: so a writer that was killed can be told from one that writes."""
    # Not tempfile: its files are private (0600), these follow the umask as any other file does.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    while True:
        file = os.fdopen(os.open(temporary, flags, 0o666), "wb")
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # another writer took it for a stale one before it was locked


def _remove_stale(target: str) -> None:
    """Remove temporary files that writers of `target` left when they were killed."""
    if fcntl is None:
        return
    directory, name = os.path.split(target)
    pattern = re.compile(re.escape(name) + r"\.[0-9a-f]{12}\.tmp")
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for path in [entry.path for entry in entries if pattern.fullmatch(entry.name)]:
            with contextlib.suppress(OSError), open(path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while a writer has it
                os.unlink(path)


def _sync_directory(directory: str, shown: str) -> None:
    """Make the rename itself durable. The new file is whole and in place whatever happens here."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return  # a directory we may write but not read: nothing to sync through
    try:
        os.fsync(handle)
    except OSError as err:
        if err.errno in (errno.EINVAL, errno.ENOTSUP, errno.EROFS, errno.EBADF):
            return  # file systems that cannot sync a directory
        raise OSError(
            err.errno,
            f"the new file is in place, but its directory is not flushed to the disk: {err.strerror or err}",
            shown,
        ) from err
    finally:
        os.close(handle)


def _as_json_value(value: Any, where: str, depth: int) -> Any:
    """Return `value` as plain JSON types, or raise with the place that is not JSON."""
    if depth > NESTING:
        raise ValueError(f"{where} is nested more than {NESTING} levels deep, or contains itself")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        if abs(value) >= 2**64:
            raise ValueError(f"{where} is an integer of more than 64 bits; a model file cannot hold it")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} is {float(value)}; a model file describes models in finite numbers")
        return float(value)
    if isinstance(value, list | tuple):
        return [_as_json_value(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}; keys in a model file are strings")
        return {str(key): _as_json_value(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
    raise TypeError(f"{where} is a {type(value).__name__}; a model file holds JSON values and arrays only")


def _checked_arrays(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays little-endian and C-contiguous, widest items first so that all stay aligned."""
    result = {}
    for name, array in arrays.items():
        if not isinstance(name, str) or not name or name == "__metadata__":
            raise ValueError(f"{name!r} cannot be the name of an array in a model file")
        if not isinstance(array, np.ndarray):
            raise TypeError(f"array {name!r} is a {type(array).__name__}, not a numpy array")
        dtype = array.dtype.newbyteorder("<")
        if dtype not in _DTYPE_NAMES:
            allowed = ", ".join(sorted(d.name for d in _DTYPE_NAMES))
            raise TypeError(f"array {name!r} is of dtype {array.dtype}; a model file holds {allowed}")
        if array.ndim > DIMENSIONS:
            raise ValueError(f"array {name!r} has more than {DIMENSIONS} dimensions")
        # Not ascontiguousarray, which turns a scalar array into one of one dimension.
        result[name] = np.asarray(array, dtype=dtype, order="C")
    return dict(sorted(result.items(), key=lambda item: (-item[1].itemsize, item[0])))


def _header(kind: str, meta: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the header with its checksum still all "0"."""
    description = {
        "checksum": _NO_CHECKSUM,
        "format": FORMAT_VERSION,
        "mercer": _mercer_version(),
        "kind": kind,
        "meta": meta,
    }
    compact = (",", ":")
    text = json.dumps(description, separators=compact, allow_nan=False)
    table: dict[str, Any] = {"__metadata__": {"mercer": text}}
    end = 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        table[name] = {
            "dtype": _DTYPE_NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [start, end],
        }
    try:
        header = json.dumps(table, separators=compact, ensure_ascii=False).encode()
    except UnicodeEncodeError as err:
        raise ValueError("the names of the arrays in a model file must be valid Unicode") from err
    header += b" " * (-len(header) % 8)
    if len(header) > HEADER_BYTES:
        raise ValueError(
            f"the description of this model takes {len(header)} bytes, the limit is {HEADER_BYTES};"
            " put long lists in arrays (pack_strings for strings)"
        )
    return header


def _mercer_version() -> str:
    try:
        return importlib.metadata.version("mercer")
    except importlib.metadata.PackageNotFoundError:  # run from a source tree
        return "unknown"


def _raw_bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _blake2b(chunks: Iterable[bytes | memoryview]) -> str:
    digest = hashlib.blake2b(digest_size=32)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


# --------------------------------------------------------------------------------------------------- reading


def read_file(path: Path, kind: str | None = None) -> ModelFile:
    """Read one model file and check all of it.

    Parameters
    ----------
    path : str or path-like
        The file to read.
    kind : str, optional
        The kind of model expected; any kind by default.

    Returns
    -------
    ModelFile
        The kind, the description and the arrays.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged or incomplete, needs a newer mercer or is of another kind.
    OSError
        If the file is missing or cannot be opened.
    """
    name = os.fspath(path)
    _check_regular(os.stat(path), name)
    # Not blocking: a pipe that was put here since then is refused, not waited for.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        return _Reader(file, name).read(kind)


def _check_regular(status: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "this is a directory, not a model file", name)
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError(f"{name} is not a regular file, but a pipe, a socket or a device")


class _Reader:
    """Reads one open file; every failure names the file."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.file = file
        self.path = path

    def read(self, kind: str | None) -> ModelFile:
        header = self._read_header()
        table = self._json_object(header, "its header")
        description = self._description(table)
        arrays = self._allocate(table)
        raw = [_raw_bytes(array) for array in arrays.values()]
        for buffer in raw:
            self._fill(buffer)
        self._check_checksum(header, raw)
        # A byte other than 0 and 1 in a bool array is undefined behaviour for whoever uses it.
        for name, array in arrays.items():
            if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
                self._fail(f"is damaged: array {name!r} holds bytes that are not booleans")
        if kind is not None and description["kind"] != kind:
            self._fail(f"holds a {description['kind']!r}, not a {kind!r}")
        return ModelFile(description["kind"], description["meta"], dict(sorted(arrays.items())))

    def _fail(self, what: str, cause: Exception | None = None) -> NoReturn:
        raise ModelFileError(f"{self.path} {what}") from cause

    def _read_header(self) -> bytes:
        status = os.fstat(self.file.fileno())
        _check_regular(status, self.path)
        if status.st_size == 0:
            self._fail("is empty")
        self.size = status.st_size
        prefix = self.file.read(8)
        length = int.from_bytes(prefix, "little")
        if len(prefix) < 8:
            self._fail(f"is not a model file, or is truncated: it has only {self.size} bytes")
        if length > HEADER_BYTES:
            self._fail(f"is not a model file: its header would take {length} bytes (limit {HEADER_BYTES})")
        if length > self.size - 8:
            self._fail(
                f"is not a model file, or is truncated: its header would take {length} bytes,"
                f" the whole file has {self.size}"
            )
        header = self.file.read(length)
        if len(header) < length:
            self._fail("is truncated: it ends inside its header")
        return header

    def _json_object(self, text: str | bytes, what: str) -> dict[str, Any]:
        try:
            text = text.decode() if isinstance(text, bytes) else text
            value = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as err:
            self._fail(f"is not a model file, or is damaged: {what} is not JSON ({err})", err)
        if not isinstance(value, dict):
            self._fail(f"is not a model file, or is damaged: {what} is not a JSON object")
        return value

    def _description(self, table: dict[str, Any]) -> dict[str, Any]:
        metadata = table.pop("__metadata__", None)
        if not isinstance(metadata, dict) or not isinstance(metadata.get("mercer"), str):
            self._fail("was not written by mercer: it is a safetensors file without mercer's description")
        description = self._json_object(metadata["mercer"], "its description")
        version = description.get("format")
        if type(version) is not int or version < 1:
            self._fail("is damaged: its description has no valid format version")
        if version > FORMAT_VERSION:
            self._fail(
                f"was written by a newer version of mercer (format {version};"
                f" this version reads up to {FORMAT_VERSION})"
            )
        if not isinstance(description.get("kind"), str) or not isinstance(description.get("meta"), dict):
            self._fail("is damaged: its description has no kind or no meta")
        return description

    def _allocate(self, table: dict[str, Any]) -> dict[str, np.ndarray]:
        """Return empty arrays in file order, once it is certain that the file is as long as they need."""
        entries = [self._entry(name, entry) for name, entry in table.items()]
        layout = sorted(entries, key=lambda item: item[3:])
        position = 0
        for name, _, _, start, end in layout:
            if start != position:
                self._fail(f"is damaged: array {name!r} does not follow the one before it")
            position = end
        payload = self.size - self.file.tell()
        if position > payload:
            self._fail(f"is truncated: {payload} bytes of arrays where its header promises {position}")
        if position < payload:
            self._fail(f"is damaged: {payload - position} bytes too many at its end")
        try:
            reserve(position, "its arrays")
        except ValueError as err:
            self._fail(f"is too large: {err}", err)
        try:
            return {name: np.empty(shape, dtype) for name, dtype, shape, _, _ in layout}
        except (ValueError, OverflowError) as err:  # no items, but dimensions beyond what numpy counts
            self._fail(f"is damaged: impossible shape of an array ({err})", err)

    def _entry(self, name: str, entry: Any) -> tuple[str, np.dtype[Any], list[int], int, int]:
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            self._fail(f"is damaged: array {name!r} is not described as an array")
        code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(code, str) or code not in _DTYPES:
            self._fail(f"is damaged: array {name!r} is of dtype {code!r}, which mercer does not write")
        if not _are_sizes(shape) or len(shape) > DIMENSIONS:
            self._fail(f"is damaged: array {name!r} has no valid shape")
        if not _are_sizes(offsets) or len(offsets) != 2:
            self._fail(f"is damaged: array {name!r} has no valid place in the file")
        start, end = offsets
        if end - start != math.prod(shape) * _DTYPES[code].itemsize:
            self._fail(f"is damaged: the place of array {name!r} is not of the size that its shape needs")
        return name, _DTYPES[code], shape, start, end

    def _fill(self, buffer: memoryview) -> None:
        done = 0
        while done < len(buffer):
            count = self.file.readinto(buffer[done:])  # type: ignore[attr-defined]
            if not count:
                self._fail("is truncated: it ends inside its arrays")
            done += count

    def _check_checksum(self, header: bytes, raw: list[memoryview]) -> None:
        start, end = len(_CHECKSUM_START), len(_CHECKSUM_START) + len(_NO_CHECKSUM)
        blank = header[:start] + _NO_CHECKSUM.encode() + header[end:]
        found = _blake2b([len(header).to_bytes(8, "little"), blank, *raw])
        if not header.startswith(_CHECKSUM_START) or header[start:end] != found.encode():
            self._fail("is damaged, or was changed after mercer wrote it: its checksum does not match")


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 2**63 for item in value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
