"""Point clouds and meshes in files: PLY, OFF, OBJ, PCD, columns of numbers (xyz, txt, csv), NumPy arrays.

A file is read as a whole, and its header is compared with its size before any allocation. Polygons are split into
triangles that share their first corner.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mercer.data.clouds import PointCloud
from mercer.data.readers.lines import FilePath, counted, replacing
from mercer.exceptions import DataFileError

__all__ = ["read_cloud", "write_cloud"]

_CUT = "the file may be truncated; copy or download it again"
_MISSING = "pass drop_missing=True to drop such points"
_MOST_CORNERS = 1 << 20
_MOST_UNPACKED = 1 << 33


def read_cloud(source: FilePath, *, drop_missing: bool = False) -> PointCloud:
    """Read a point cloud or a mesh from a file.

    Parameters
    ----------
    source : path
        The suffix determines the format: ``.ply`` (ascii, binary of either byte order), ``.off``, ``.obj``, ``.pcd``
        (ascii, binary, compressed), ``.xyz``, ``.txt`` and ``.csv`` (columns), ``.npy``, ``.npz`` (``points``, and
        perhaps ``normals`` and ``faces``), each also compressed as ``.gz``. A header line names the columns (x, y, z,
        nx, ny, nz); without one, the first three are coordinates.
    drop_missing : bool, default=False
        Drop points with NaN coordinates, which some scanners write for missing measurements. By default such a point
        raises an error.

    Returns
    -------
    PointCloud

    Raises
    ------
    DataFileError
        If the file is damaged: names the line, or in binary files the byte.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mercer.data import read_cloud
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "triangle.off")
    >>> _ = path.write_text("OFF\\n3 1 0\\n0 0 0\\n1 0 0\\n0 1 0\\n3 0 1 2\\n")
    >>> read_cloud(path)
    PointCloud(3 points, 3-D, 1 faces)
    >>> folder.cleanup()
    """
    name = os.fspath(source)
    ending = _ending(name)
    if ending not in _READERS:
        raise ValueError(f"{name}: unknown kind of file; expected one that ends in {', '.join(_READERS)}")
    points, normals, faces = _READERS[ending](name, _content(name))
    return _cloud(name, points, normals, faces, drop_missing)


def _ending(name: str) -> str:
    return os.path.splitext(name.removesuffix(".gz"))[1].lower()


def _content(name: str) -> bytes:
    with open(name, "rb") as file:
        if not name.endswith(".gz"):
            return file.read()
        try:
            content = gzip.GzipFile(fileobj=file).read(_MOST_UNPACKED + 1)
        except EOFError as error:
            raise DataFileError(name, 1, "the compressed data end too early", _CUT) from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise DataFileError(name, 1, f"not valid gzip data ({error})", _CUT) from error
    if len(content) > _MOST_UNPACKED:
        raise DataFileError(name, 1, f"the compressed data unpack to more than {_MOST_UNPACKED >> 30} GiB")
    return content


def _cloud(name: str, points: np.ndarray, normals: Any, faces: Any, drop_missing: bool) -> PointCloud:
    if points.ndim != 2 or points.shape[1] < 2:
        raise DataFileError(
            name, 1, f"expected points of at least 2 coordinates, found an array of shape {points.shape}"
        )
    missing = ~np.isfinite(points).all(axis=1)
    if normals is not None and not np.isfinite(normals[~missing]).all():
        if not drop_missing:
            row = int(np.flatnonzero(~np.isfinite(normals).all(axis=1))[0])
            raise DataFileError(name, 1, f"the normal of point {row} (counted from 0) is NaN or infinite", _MISSING)
        normals = None
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        if not drop_missing:
            raise DataFileError(name, 1, f"point {first} (counted from 0) has NaN or infinite coordinates", _MISSING)
        if faces is not None:
            new = np.cumsum(~missing) - 1
            faces = new[faces[~missing[faces].any(axis=1)]]
        points, normals = points[~missing], None if normals is None else normals[~missing]
    return PointCloud(points, normals, faces)


# ------------------------------------------------------------------------------------------------ lines of numbers


class _Lines:
    """The lines of a text that are not empty, with their numbers in the file."""

    def __init__(self, name: str, content: bytes, first: int = 1, comments: bool = False) -> None:
        lines = content.splitlines()
        if comments and b"#" in content:
            lines = [line.split(b"#", 1)[0] for line in lines]
        self.name, self.end, self.at = name, first + len(lines), 0
        self.numbers = [k for k, line in enumerate(lines, first) if line.strip()]
        self.lines = [line for line in lines if line.strip()]

    def fail(self, what: str, hint: str = "") -> DataFileError:
        """Return an error at the line that was read last."""
        return DataFileError(self.name, self.numbers[max(0, self.at - 1)] if self.numbers else 1, what, hint)

    def words(self, expected: str) -> list[bytes]:
        if self.at >= len(self.lines):
            raise DataFileError(self.name, max(1, self.end - 1), f"the file ends where {expected} should be", _CUT)
        self.at += 1
        return self.lines[self.at - 1].split()

    def rows(self, count: int, expected: str) -> list[list[bytes]]:
        left = len(self.lines) - self.at
        if count > left:
            what = f"{counted(count, expected)} should follow, but only {counted(left, 'line')} do"
            raise DataFileError(self.name, max(1, self.end - 1), what, _CUT)
        self.at += count
        return [line.split() for line in self.lines[self.at - count : self.at]]

    def table(self, count: int, width: int, expected: str, *, more: bool = False) -> np.ndarray:
        """Return ``count`` lines of ``width`` numbers; with ``more`` they may go on with other things."""
        rows = self.rows(count, expected)
        self.at -= count
        if more:
            rows = [row[:width] for row in rows]
        if set(map(len, rows)) == {width}:
            with contextlib.suppress(ValueError):
                values = np.array([word for row in rows for word in row], dtype=np.bytes_).astype(np.float64)
                self.at += count
                return values.reshape(count, width)
        for row in rows:  # a line is wrong: which?
            self.at += 1
            if len(row) != width:
                raise self.fail(f"expected {counted(width, 'number')}, found {len(row)}")
            for word in row:
                _number(word, self.fail)
        return np.zeros((0, width))


Fail = Callable[[str], DataFileError]


def _number(word: bytes, fail: Fail) -> float:
    try:
        return float(word)
    except ValueError as error:
        raise fail(f"expected a number, found {_shown(word)}") from error


def _whole(word: bytes, fail: Fail, expected: str) -> int:
    if not word.isdigit() or len(word) > 18:
        raise fail(f"expected {expected}, a whole number, found {_shown(word)}")
    return int(word)


def _shown(word: bytes) -> str:
    return repr(word[:30].decode("utf-8", "replace"))


def _triangles(corners: list[int], n_points: int, fail: Fail, first: int = 0) -> Iterator[tuple[int, int, int]]:
    """Cut a polygon into triangles that share its first corner; files count points from ``first``, corners from 0."""
    if len(corners) < 3:
        raise fail(f"a face needs at least 3 corners, found {len(corners)}")
    for corner in corners:
        if not 0 <= corner < n_points:
            last = n_points - 1 + first
            raise fail(f"a face names point {corner + first}, but there are points {first} to {last} only")
    for k in range(1, len(corners) - 1):
        yield corners[0], corners[k], corners[k + 1]


def _as_faces(triangles: list[tuple[int, int, int]]) -> np.ndarray | None:
    return np.array(triangles, np.int64) if triangles else None


def _counted_faces(lines: _Lines, count: int, n_points: int) -> np.ndarray | None:
    """Read lines "k corner … corner", as in OFF; colours may follow."""
    triangles: list[tuple[int, int, int]] = []
    rows = lines.rows(count, "face")
    lines.at -= count
    for row in rows:
        lines.at += 1
        k = _whole(row[0], lines.fail, "the number of corners")
        if k > len(row) - 1:
            raise lines.fail(f"a face of {k} corners needs {k + 1} numbers, found {len(row)}")
        if k < 3:  # a point or an edge: not an error in OFF files, and no surface
            continue
        corners = [_whole(word, lines.fail, "the position of a point") for word in row[1 : k + 1]]
        triangles.extend(_triangles(corners, n_points, lines.fail))
    return _as_faces(triangles)


# ------------------------------------------------------------------------------------------------ OFF and OBJ

_Parts = tuple[np.ndarray, Any, Any]


def _read_off(name: str, content: bytes) -> _Parts:
    lines = _Lines(name, content, comments=True)
    words = lines.words("OFF")
    magic = words[0].upper()
    if magic not in (b"OFF", b"COFF", b"NOFF", b"CNOFF"):
        raise lines.fail(f"an OFF file begins with OFF, found {_shown(words[0])}")
    counts = words[1:] or lines.words("the numbers of points and faces")
    if len(counts) < 2:
        raise lines.fail(f"expected the numbers of points and faces, found {counted(len(counts), 'word')}")
    n_points = _whole(counts[0], lines.fail, "the number of points")
    n_faces = _whole(counts[1], lines.fail, "the number of faces")
    normal = b"N" in magic
    table = lines.table(n_points, 6 if normal else 3, "point", more=True)
    faces = _counted_faces(lines, n_faces, n_points)
    return table[:, :3], table[:, 3:] if normal else None, faces


def _read_obj(name: str, content: bytes) -> _Parts:
    lines = _Lines(name, content, comments=True)
    points: list[list[bytes]] = []
    numbers: list[int] = []
    polygons: list[tuple[int, list[bytes], int]] = []
    for k, line in enumerate(lines.lines):
        words = line.split()
        if words[0] == b"v":
            points.append(words[1:4])
            numbers.append(k)
        elif words[0] == b"f":
            polygons.append((k, words[1:], len(points)))
    if not points:
        raise DataFileError(name, 1, "an OBJ file has lines 'v x y z', found none")
    triangles: list[tuple[int, int, int]] = []
    for k, words, seen in polygons:
        lines.at = k + 1
        corners = []
        for word in words:
            index = word.split(b"/", 1)[0]
            back = index.startswith(b"-")
            position = _whole(index.removeprefix(b"-"), lines.fail, "the position of a point")
            if position == 0:
                raise lines.fail("positions of points begin with 1 in an OBJ file, found 0")
            corners.append(seen - position if back else position - 1)
        triangles.extend(_triangles(corners, len(points), lines.fail, 1))
    try:
        table = np.array([word for row in points for word in row], dtype=np.bytes_).astype(np.float64)
        table = table.reshape(len(points), 3)
        if any(len(row) != 3 for row in points):
            raise ValueError
    except ValueError:
        for k, row in zip(numbers, points, strict=True):
            lines.at = k + 1
            if len(row) != 3:
                raise lines.fail(f"expected 3 coordinates, found {len(row)}") from None
            for word in row:
                _number(word, lines.fail)
        raise
    return table, None, _as_faces(triangles)


# ------------------------------------------------------------------------------------------------ PLY

_PLY_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1", "short": "i2", "int16": "i2", "ushort": "u2",
    "uint16": "u2", "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4", "float": "f4", "float32": "f4",
    "double": "f8", "float64": "f8",
}  # fmt: skip


class _Element:
    """An element of a PLY header: its properties, (name, type) or (name, type, type of the length)."""

    def __init__(self, name: str, count: int) -> None:
        self.name, self.count = name, count
        self.properties: list[tuple[str, ...]] = []

    @property
    def plain(self) -> bool:
        return all(len(p) == 2 for p in self.properties)

    def columns(self, names: tuple[str, ...]) -> list[int] | None:
        known = [p[0] for p in self.properties]
        return [known.index(n) for n in names] if all(n in known for n in names) else None


def _read_ply(name: str, content: bytes) -> _Parts:
    form, elements, start, line = _ply_header(name, content)
    values: dict[str, Any] = {}
    wanted = {e.name for e in elements} & {"vertex", "face"}
    read = _PlyText(name, content[start:], line) if form == "ascii" else _PlyBytes(name, content, start, form)
    for element in elements:
        values[element.name] = read.element(element, values, element.name in wanted)
        wanted.discard(element.name)
        if not wanted:
            break
    points, normals = values["vertex"]
    return points, normals, values.get("face")


def _ply_header(name: str, content: bytes) -> tuple[str, list[_Element], int, int]:
    """The format, the elements, and where (byte, line) the data begin."""
    elements: list[_Element] = []
    form, at, number = "", 0, 0
    while True:
        end = content.find(b"\n", at, at + 4096)
        number += 1
        if end < 0:
            raise DataFileError(name, number, "the header of a PLY file ends with end_header, found none", _CUT)
        words = content[at:end].decode("utf-8", "replace").split()
        at = end + 1
        if number == 1:
            if words != ["ply"]:
                raise DataFileError(name, 1, f"a PLY file begins with ply, found {_shown(content[:end])}")
        elif words == ["end_header"]:
            break
        elif words[:1] == ["format"]:
            form = words[1] if len(words) == 3 else ""
            if form not in ("ascii", "binary_little_endian", "binary_big_endian"):
                raise DataFileError(name, number, f"unknown format {' '.join(words[1:])!r} of a PLY file")
        elif words[:1] == ["element"]:
            if len(words) != 3 or not words[2].isascii() or not words[2].isdigit() or len(words[2]) > 18:
                raise DataFileError(name, number, f"expected 'element name count', found {' '.join(words)[:60]!r}")
            elements.append(_Element(words[1], int(words[2])))
        elif words[:1] == ["property"]:
            if not elements:
                raise DataFileError(name, number, "a property must follow an element")
            elements[-1].properties.append(_ply_property(name, number, words))
        elif words[:1] not in ([], ["comment"], ["obj_info"]):
            raise DataFileError(name, number, f"unknown word {words[0][:30]!r} in the header of a PLY file")
    vertex = next((e for e in elements if e.name == "vertex"), None)
    if not form or vertex is None:
        raise DataFileError(name, number, "the header of a PLY file must name a format and an element vertex")
    if not vertex.plain or not vertex.columns(("x", "y")):
        raise DataFileError(name, number, "the element vertex must have the properties x, y and perhaps z, and no list")
    for element in elements:
        if len(element.properties) > 1000:
            raise DataFileError(name, number, f"the element {element.name} has more than 1000 properties")
        known = [p[0] for p in element.properties]
        if len(set(known)) != len(known):
            raise DataFileError(name, number, f"the element {element.name} names a property twice")
    return form, elements, at, number + 1


def _ply_property(name: str, number: int, words: list[str]) -> tuple[str, ...]:
    plain = len(words) == 3 and words[1] in _PLY_TYPES
    listed = len(words) == 5 and words[1] == "list" and words[2] in _PLY_TYPES and words[3] in _PLY_TYPES
    if plain:
        return words[2], _PLY_TYPES[words[1]]
    if listed and _PLY_TYPES[words[2]][0] != "f":
        return words[4], _PLY_TYPES[words[3]], _PLY_TYPES[words[2]]
    raise DataFileError(name, number, f"expected 'property type name', found {' '.join(words)[:60]!r}")


def _vertices(element: _Element, column: Callable[[int], np.ndarray]) -> tuple[np.ndarray, Any]:
    axes = element.columns(("x", "y", "z")) or element.columns(("x", "y")) or []
    points = np.stack([column(k) for k in axes], axis=1).astype(np.float64)
    names = ("nx", "ny", "nz")[: len(axes)]
    normals = element.columns(names)
    return points, None if normals is None else np.stack([column(k) for k in normals], axis=1).astype(np.float64)


def _corners(element: _Element) -> int:
    """Which property holds the corners of a face."""
    for k, p in enumerate(element.properties):
        if len(p) == 3 and p[0] in ("vertex_indices", "vertex_index"):
            return k
    return -1


class _PlyText:
    """Elements of an ascii PLY file, one after another."""

    def __init__(self, name: str, content: bytes, first: int) -> None:
        self.lines = _Lines(name, content, first)

    def element(self, element: _Element, values: dict[str, Any], wanted: bool) -> Any:
        lines = self.lines
        if not wanted or (element.name == "face" and ("vertex" not in values or _corners(element) < 0)):
            lines.rows(element.count, element.name)
            return None
        if element.name == "vertex":
            table = lines.table(element.count, len(element.properties), "point")
            return _vertices(element, lambda k: table[:, k])
        return self.faces(element, len(values["vertex"][0]))

    def faces(self, element: _Element, n_points: int) -> np.ndarray | None:
        lines, place = self.lines, _corners(element)
        if place == 0 and len(element.properties) == 1:
            return _counted_faces(lines, element.count, n_points)
        triangles: list[tuple[int, int, int]] = []
        rows = lines.rows(element.count, "face")
        lines.at -= element.count
        for row in rows:
            lines.at += 1
            at = 0
            for k, p in enumerate(element.properties):
                size = 1
                if len(p) == 3:
                    if at >= len(row):
                        raise lines.fail(f"expected a value of {p[0]}, found the end of the line")
                    size = _whole(row[at], lines.fail, f"the length of {p[0]}")
                    at += 1
                if size > len(row) - at:
                    raise lines.fail(f"expected {counted(size, 'value')} of {p[0]}, found {len(row) - at}")
                if k == place:
                    corners = [_whole(w, lines.fail, "the position of a point") for w in row[at : at + size]]
                    triangles.extend(_triangles(corners, n_points, lines.fail))
                at += size
        return _as_faces(triangles)


class _PlyBytes:
    """Elements of a binary PLY file, one after another."""

    def __init__(self, name: str, content: bytes, at: int, form: str) -> None:
        self.name, self.content, self.at = name, content, at
        self.order = "<" if form == "binary_little_endian" else ">"

    def fail(self, what: str, hint: str = "") -> DataFileError:
        return DataFileError(self.name, 1, f"byte {self.at}: {what}", hint)

    def take(self, dtype: Any, count: int, expected: str) -> np.ndarray:
        kind = np.dtype(dtype)
        if kind.itemsize * count > len(self.content) - self.at:
            left = len(self.content) - self.at
            raise self.fail(f"{counted(count, expected)} need {kind.itemsize * count} bytes, but {left} are left", _CUT)
        values = np.frombuffer(self.content, kind, count, self.at)
        self.at += kind.itemsize * count
        return values

    def element(self, element: _Element, values: dict[str, Any], wanted: bool) -> Any:
        if element.plain:
            fields = [(f"f{k}", self.order + p[1]) for k, p in enumerate(element.properties)]
            table = self.take(fields, element.count if fields else 0, f"{element.name} row")
            return _vertices(element, lambda k: table[f"f{k}"]) if element.name == "vertex" else None
        n_points = len(values["vertex"][0]) if "vertex" in values else -1
        return self.faces(element, n_points, wanted and element.name == "face" and n_points >= 0)

    def faces(self, element: _Element, n_points: int, wanted: bool) -> np.ndarray | None:
        place = _corners(element) if wanted else -1
        if element.count > len(self.content) - self.at:  # a row takes a byte or more
            raise self.fail(
                f"{counted(element.count, element.name)} should follow, which the file is too short for", _CUT
            )
        if len(element.properties) == 1 and place == 0:
            faces = self.all_triangles(element, n_points)
            if faces is not None:
                return faces
        triangles: list[tuple[int, int, int]] = []
        for _ in range(element.count):
            for k, p in enumerate(element.properties):
                size = 1
                if len(p) == 3:
                    size = int(self.take(self.order + p[2], 1, f"length of {p[0]}")[0])
                    if not 0 <= size <= _MOST_CORNERS:
                        raise self.fail(f"a list {p[0]} of {size} values")
                row = self.take(self.order + p[1], size, f"value of {p[0]}")
                if k == place:
                    triangles.extend(_triangles([int(v) for v in row], n_points, self.fail))
        return _as_faces(triangles)

    def all_triangles(self, element: _Element, n_points: int) -> np.ndarray | None:
        """Return the faces if all of them have three corners, which one look at the bytes tells."""
        _, item, length = element.properties[0]
        kind = np.dtype([("n", self.order + length), ("v", self.order + item, (3,))])
        if kind.itemsize * element.count > len(self.content) - self.at or item[0] == "f":
            return None
        rows = np.frombuffer(self.content, kind, element.count, self.at)
        if not (rows["n"] == 3).all():
            return None
        faces = rows["v"].astype(np.int64)
        if element.count and (faces.min() < 0 or faces.max() >= n_points):
            return None
        self.at += kind.itemsize * element.count
        return faces


# ------------------------------------------------------------------------------------------------ PCD


def _read_pcd(name: str, content: bytes) -> _Parts:
    header: dict[bytes, list[bytes]] = {}
    at, number = 0, 0
    while b"DATA" not in header:
        end = content.find(b"\n", at, at + 65536)
        number += 1
        if end < 0:
            raise DataFileError(name, number, "the header of a PCD file ends with DATA, found none", _CUT)
        words = content[at:end].split(b"#", 1)[0].split()
        at = end + 1
        if words:
            header[words[0]] = words[1:]

    def fail(what: str) -> DataFileError:
        return DataFileError(name, number, what)

    names = [word.decode("utf-8", "replace") for word in header.get(b"FIELDS", [])]
    sizes, types = header.get(b"SIZE", []), header.get(b"TYPE", [])
    repeats = header.get(b"COUNT", [b"1"] * len(names))
    if not names or not len(names) == len(sizes) == len(types) == len(repeats):
        raise fail("FIELDS, SIZE, TYPE and COUNT of the header must have one entry a field each")
    kinds = []
    for size, kind, repeat in zip(sizes, types, repeats, strict=True):
        code = {b"F": "f", b"I": "i", b"U": "u"}.get(kind, "?") + size.decode("ascii", "replace")
        if code not in ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
            raise fail(f"unknown field of type {_shown(kind)} and size {_shown(size)}")
        count = _whole(repeat, fail, "the COUNT of a field")
        if not 1 <= count <= 10_000:
            raise fail(f"a field must have between 1 and 10000 values, found {count}")
        kinds.append((f"<{code}", count))
    points = header.get(b"POINTS") or [b""]
    n = _whole(points[0], fail, "POINTS")
    axes = [names.index(axis) for axis in ("x", "y", "z") if axis in names]
    if len(axes) < 2:
        raise fail("FIELDS must name x, y and perhaps z")
    columns = _pcd_columns(name, content, at, number, header[b"DATA"], kinds, n, fail)
    normal = [names.index(f"normal_{axis}") for axis in ("x", "y", "z") if f"normal_{axis}" in names]
    stacked = [np.stack([columns(k) for k in which], axis=1).astype(np.float64) for which in (axes, normal) if which]
    return stacked[0], stacked[1] if len(normal) == len(axes) else None, None


def _pcd_columns(
    name: str, content: bytes, at: int, number: int, data: list[bytes], kinds: list[tuple[str, int]], n: int, fail: Fail
) -> Callable[[int], np.ndarray]:
    """A function that gives the values of a field."""
    firsts = np.concatenate([[0], np.cumsum([count for _, count in kinds])])
    form = data[0] if data else b""
    if form == b"ascii":
        table = _Lines(name, content[at:], number + 1).table(n, int(firsts[-1]), "point")
        return lambda k: table[:, firsts[k]]
    record = np.dtype([(f"f{k}", kind, (count,)) for k, (kind, count) in enumerate(kinds)])
    binary = _PlyBytes(name, content, at, "binary_little_endian")
    if form == b"binary":
        rows = binary.take(record, n, "point")
        return lambda k: rows[f"f{k}"][:, 0]
    if form != b"binary_compressed":
        raise fail(f"unknown form {_shown(form)} of the data of a PCD file")
    packed, whole = (int(v) for v in binary.take("<u4", 2, "size"))
    if whole != n * record.itemsize:
        raise binary.fail(f"{n} points take {n * record.itemsize} bytes, but the data unpack to {whole}")
    if whole > 300 * (packed + 1):  # the format reaches about 88 to 1
        raise binary.fail(f"{packed} bytes cannot hold {whole}")
    raw = _unpack_lzf(bytes(binary.take("u1", packed, "byte")), whole, binary.fail)
    starts = np.concatenate([[0], np.cumsum([np.dtype(kind).itemsize * count * n for kind, count in kinds])])
    return lambda k: np.frombuffer(raw, kinds[k][0], n * kinds[k][1], int(starts[k])).reshape(n, -1)[:, 0]


def _unpack_lzf(packed: bytes, size: int, fail: Fail) -> bytes:
    """Undo the compression of Marc Lehmann's LZF: runs of bytes as they are, and references to earlier ones."""
    out = bytearray()
    at, end = 0, len(packed)
    try:
        while at < end:
            control = packed[at]
            at += 1
            if control < 32:
                run = packed[at : at + control + 1]
                if len(run) != control + 1:
                    raise IndexError
                out += run
                at += control + 1
            else:
                length = control >> 5
                if length == 7:
                    length += packed[at]
                    at += 1
                back = len(out) - ((control & 31) << 8 | packed[at]) - 1
                at += 1
                if back < 0:
                    raise IndexError
                for _ in range(length + 2):
                    out.append(out[back])
                    back += 1
            if len(out) > size:
                raise IndexError
    except IndexError:
        raise fail("the compressed data are damaged") from None
    if len(out) != size:
        raise fail(f"the compressed data unpack to {len(out)} bytes instead of {size}")
    return bytes(out)


# ------------------------------------------------------------------------------------------------ columns and NumPy


def _read_columns(name: str, content: bytes) -> _Parts:
    content = content.removeprefix(b"\xef\xbb\xbf").replace(b",", b" ").replace(b";", b" ")
    lines = _Lines(name, content, comments=True)
    if not lines.lines:
        raise DataFileError(name, 1, "expected lines of numbers, found none")
    first = lines.words("a line of numbers")
    try:
        [float(word) for word in first]
        header = None
        lines.at = 0
    except ValueError:
        header = [word.decode("utf-8", "replace").strip("\"'").lower() for word in first]
    width = len(header or first)
    axes = ["x", "y", "z"][:width]
    if header is not None:
        axes = [axis for axis in ("x", "y", "z") if axis in header]
        if axes[:2] != ["x", "y"]:
            raise lines.fail(f"expected numbers, or a header with columns x, y and perhaps z, found {_shown(first[0])}")
    if width < 2:
        raise lines.fail(f"expected at least 2 numbers a line, found {width}")
    table = lines.table(len(lines.lines) - lines.at, width, "point")
    names = header or axes
    normals = [names.index(f"n{axis}") for axis in axes if f"n{axis}" in names]
    points = table[:, [names.index(axis) for axis in axes]]
    return points, table[:, normals] if len(normals) == len(axes) else None, None


def _npy(name: str, content: bytes) -> np.ndarray:
    """An array of NumPy's format; its header is compared with the size first."""
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(stream)
        if dtype.hasobject or dtype.kind not in "fiu":
            raise ValueError(f"expected numbers, found {dtype}")
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if len(shape) > 4 or size != len(content) - stream.tell():
            raise ValueError(f"the header says {shape} of {dtype}, which is not what follows it")
        values = np.frombuffer(content, dtype, offset=stream.tell())
        return values.reshape(shape[::-1]).T if fortran else values.reshape(shape)
    except (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError) as error:
        reason = str(error)[:200] if not isinstance(error, UnicodeError) else "the header is not text"
        raise DataFileError(name, 1, f"not a valid .npy file: {reason}", _CUT) from error


def _read_npy(name: str, content: bytes) -> _Parts:
    return _npy(name, content).astype(np.float64), None, None


def _read_npz(name: str, content: bytes) -> _Parts:
    arrays: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for part in ("points", "normals", "faces"):
                if f"{part}.npy" in archive.namelist():
                    if archive.getinfo(f"{part}.npy").file_size > 1032 * len(content):  # deflate's best is 1032 to 1
                        raise zipfile.BadZipFile(f"{part} cannot be as large as it says")
                    arrays[part] = _npy(f"{name}:{part}", archive.read(f"{part}.npy"))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise DataFileError(name, 1, f"not a valid .npz file: {error}", _CUT) from error
    if "points" not in arrays:
        raise DataFileError(name, 1, "expected an array called points")
    points, normals, faces = arrays["points"].astype(np.float64), arrays.get("normals"), arrays.get("faces")
    try:
        PointCloud(np.zeros(points.shape), None if normals is None else np.nan_to_num(normals.astype(float)), faces)
    except ValueError as error:
        raise DataFileError(name, 1, str(error)) from error
    return points, None if normals is None else normals.astype(np.float64), faces


_READERS: dict[str, Callable[[str, bytes], _Parts]] = {
    ".ply": _read_ply,
    ".off": _read_off,
    ".obj": _read_obj,
    ".pcd": _read_pcd,
    ".xyz": _read_columns,
    ".txt": _read_columns,
    ".csv": _read_columns,
    ".npy": _read_npy,
    ".npz": _read_npz,
}


# ------------------------------------------------------------------------------------------------ writing


def write_cloud(destination: FilePath, cloud: PointCloud, *, binary: bool = True) -> None:
    """Write a point cloud or a mesh to a file.

    The write is atomic.

    Parameters
    ----------
    destination : path
        The suffix determines the format, as in :func:`read_cloud`; ``.gz`` compresses.
    cloud : PointCloud
    binary : bool, default=True
        Write PLY and PCD files in binary form (little endian), else as text.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mercer.data import PointCloud, read_cloud, write_cloud
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "points.ply")
    ...     write_cloud(path, PointCloud([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]))
    ...     print(read_cloud(path).points)
    [[0. 1. 2.]
     [3. 4. 5.]]
    """
    name = os.fspath(destination)
    ending = _ending(name)
    if ending not in _READERS:
        raise ValueError(f"{name}: unknown kind of file; expected one that ends in {', '.join(_READERS)}")
    if cloud.dimension > 3 and ending not in (".npy", ".npz"):
        raise ValueError(f"{name}: only .npy and .npz hold points of {cloud.dimension} coordinates")
    with replacing(name) as file:
        file.write(_WRITERS[ending](cloud, binary))


def _text(values: np.ndarray, separator: str = " ", before: str = "") -> str:
    return "".join(before + separator.join(map(repr, row)) + "\n" for row in values.tolist())


def _three(values: np.ndarray) -> np.ndarray:
    return values if values.shape[1] == 3 else np.hstack([values, np.zeros((len(values), 3 - values.shape[1]))])


def _columns(cloud: PointCloud) -> tuple[list[str], np.ndarray]:
    names = list("xyz"[: cloud.dimension])
    if cloud.normals is None:
        return names, cloud.points
    return [*names, *(f"n{axis}" for axis in names)], np.hstack([cloud.points, cloud.normals])


def _ply(cloud: PointCloud, binary: bool) -> bytes:
    names, table = _columns(cloud)
    header = ["ply", f"format {'binary_little_endian' if binary else 'ascii'} 1.0", f"element vertex {len(table)}"]
    header += [f"property double {name}" for name in names]
    faces = cloud.faces
    if faces is not None:
        header += [f"element face {len(faces)}", "property list uchar int vertex_indices"]
    text = "\n".join([*header, "end_header"]) + "\n"
    if not binary:
        return (text + _text(table) + ("" if faces is None else _text(faces, before="3 "))).encode()
    body = text.encode() + table.astype("<f8").tobytes()
    if faces is not None:
        rows = np.empty(len(faces), np.dtype([("n", "u1"), ("v", "<i4", (3,))]))
        rows["n"], rows["v"] = 3, faces
        body += rows.tobytes()
    return body


def _off(cloud: PointCloud, binary: bool) -> bytes:
    faces = np.zeros((0, 3), np.int64) if cloud.faces is None else cloud.faces
    normals = cloud.normals
    table = _three(cloud.points) if normals is None else np.hstack([_three(cloud.points), _three(normals)])
    magic = "OFF" if normals is None else "NOFF"
    return f"{magic}\n{len(table)} {len(faces)} 0\n{_text(table)}{_text(faces, before='3 ')}".encode()


def _obj(cloud: PointCloud, binary: bool) -> bytes:
    faces = "" if cloud.faces is None else _text(cloud.faces + 1, before="f ")
    return (_text(_three(cloud.points), before="v ") + faces).encode()


def _pcd(cloud: PointCloud, binary: bool) -> bytes:
    names, table = _columns(cloud)
    names = [name if len(name) == 1 else f"normal_{name[1]}" for name in names]
    k, n = len(names), len(table)
    header = [
        "VERSION 0.7", f"FIELDS {' '.join(names)}", "SIZE" + " 8" * k, "TYPE" + " F" * k, "COUNT" + " 1" * k,
        f"WIDTH {n}", "HEIGHT 1", "VIEWPOINT 0 0 0 1 0 0 0", f"POINTS {n}", f"DATA {'binary' if binary else 'ascii'}",
    ]  # fmt: skip
    body = table.astype("<f8").tobytes() if binary else _text(table).encode()
    return "\n".join(header).encode() + b"\n" + body


def _xyz(cloud: PointCloud, binary: bool) -> bytes:
    names, table = _columns(cloud)
    return ((f"# {' '.join(names)}\n" if cloud.normals is None else " ".join(names) + "\n") + _text(table)).encode()


def _csv(cloud: PointCloud, binary: bool) -> bytes:
    names, table = _columns(cloud)
    return (",".join(names) + "\n" + _text(table, ",")).encode()


def _to_npy(cloud: PointCloud, binary: bool) -> bytes:
    stream = io.BytesIO()
    np.save(stream, cloud.points, allow_pickle=False)
    return stream.getvalue()


def _to_npz(cloud: PointCloud, binary: bool) -> bytes:
    stream = io.BytesIO()
    parts = {"points": cloud.points, "normals": cloud.normals, "faces": cloud.faces}
    known: dict[str, Any] = {name: part for name, part in parts.items() if part is not None}
    np.savez_compressed(stream, **known)
    return stream.getvalue()


_WRITERS: dict[str, Callable[[PointCloud, bool], bytes]] = {
    ".ply": _ply,
    ".off": _off,
    ".obj": _obj,
    ".pcd": _pcd,
    ".xyz": _xyz,
    ".txt": _xyz,
    ".csv": _csv,
    ".npy": _to_npy,
    ".npz": _to_npz,
}
