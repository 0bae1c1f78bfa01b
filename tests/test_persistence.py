"""Model files: what is written comes back, and no damaged or hostile file does anything but raise."""

from __future__ import annotations

import errno
import json
import os
import resource
import stat
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer._state import container
from mercer._state.container import read_file, write_atomically, write_file
from mercer._state.registry import MODELS, load, save
from mercer._state.values import pack_strings, unpack_strings
from mercer.exceptions import ModelFileError

DTYPES = [
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
]


class Fake:
    """The least a model must have to be saved."""

    def __init__(self, w: np.ndarray, labels: list[str], C: float = 1.0) -> None:
        self.w, self.labels, self.C = w, labels, C

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        labels = {f"labels.{part}": array for part, array in pack_strings(self.labels).items()}
        return {"C": self.C}, {"w": self.w, **labels}

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Fake:
        labels = unpack_strings({part: arrays[f"labels.{part}"] for part in ("bytes", "offsets")})
        if len(labels) != arrays["w"].shape[-1]:
            raise ValueError(f"{len(labels)} labels for {arrays['w'].shape[-1]} columns of weights")
        return cls(arrays["w"], labels, meta["C"])


@pytest.fixture
def fake_kind(monkeypatch: pytest.MonkeyPatch) -> str:
    module = types.ModuleType("fake_models")
    module.Fake = Fake  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fake_models", module)
    monkeypatch.setitem(MODELS, "Fake", "fake_models:Fake")
    return "Fake"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sample") / "sample.mercer"
    arrays = {"w": np.linspace(-1, 1, 6).reshape(2, 3), "used": np.array([True, False, True])}
    write_file(path, "Sample", {"C": 0.5, "loss": "log"}, {**arrays, **pack_strings(["né", "B-PER"])})
    return path.read_bytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch") / "file.mercer"


def forge(table: Any, payload: bytes = b"", description: Any = None, **changes: Any) -> bytes:
    """Return a file with a right checksum around whatever header a test wants."""
    if description is None:
        description = {"format": 2, "mercer": "0", "kind": "Sample", "meta": {}, **changes}
    described = {"checksum": "0" * 64, **description}
    metadata = {"mercer": json.dumps(described, separators=(",", ":"))}
    header = json.dumps({"__metadata__": metadata, **table}, separators=(",", ":")).encode()
    prefix = len(header).to_bytes(8, "little")
    checksum = container._blake2b([prefix, header, payload])
    return prefix + header.replace(b"0" * 64, checksum.encode(), 1) + payload


def refused(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        read_file(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


# ----------------------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (2, 3, 4)])
def test_arrays_come_back_as_they_were(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    write_file(tmp_path / "m", "K", {}, {"a": array})
    back = read_file(tmp_path / "m").arrays["a"]
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.flags.writeable
    np.testing.assert_array_equal(back, array)


def test_transposed_strided_and_big_endian_arrays_come_back_contiguous(tmp_path: Path) -> None:
    base = np.arange(12.0).reshape(3, 4)
    arrays = {"T": base.T, "strided": base[:, ::2], "big": base.astype(">f8")}
    write_file(tmp_path / "m", "K", {}, arrays)
    back = read_file(tmp_path / "m").arrays
    for name, array in arrays.items():
        assert back[name].flags.c_contiguous
        np.testing.assert_array_equal(back[name], array)


def test_non_finite_weights_come_back(tmp_path: Path) -> None:
    array = np.array([np.nan, -np.inf, np.inf, -0.0])
    write_file(tmp_path / "m", "K", {}, {"a": array})
    assert read_file(tmp_path / "m").arrays["a"].tobytes() == array.tobytes()


def test_no_arrays_and_empty_meta(tmp_path: Path) -> None:
    write_file(tmp_path / "m", "K", {}, {})
    assert read_file(tmp_path / "m", "K") == container.ModelFile("K", {}, {})


def test_the_safetensors_library_reads_our_files(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    arrays = {name: np.arange(5).astype(name) for name in DTYPES}
    write_file(tmp_path / "m", "K", {"C": 1}, {**arrays, "é": np.zeros((0, 3)), "0d": np.array(7)})
    with safetensors.safe_open(tmp_path / "m", framework="numpy") as file:
        assert json.loads(file.metadata()["mercer"])["meta"] == {"C": 1}
        assert file.get_tensor("é").shape == (0, 3)
        assert file.get_tensor("0d") == 7
        for name, array in arrays.items():
            np.testing.assert_array_equal(file.get_tensor(name), array)


def test_equal_models_make_equal_files(tmp_path: Path) -> None:
    a, b = np.arange(3.0), np.arange(4)
    write_file(tmp_path / "1", "K", {}, {"a": a, "b": b})
    write_file(tmp_path / "2", "K", {}, {"b": b, "a": a})
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


texts = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(meta=st.dictionaries(texts, json_values, max_size=5))
def test_meta_comes_back(scratch: Path, meta: dict[str, Any]) -> None:
    write_file(scratch, "K", meta, {})
    assert read_file(scratch).meta == meta


def test_meta_that_looks_like_a_checksum_comes_back(tmp_path: Path) -> None:
    meta = {"checksum": "0" * 64, "x": '{"checksum":"' + "0" * 64}
    write_file(tmp_path / "m", "0" * 64, meta, {"0" * 64: np.zeros(3)})
    assert read_file(tmp_path / "m").meta == meta


@given(strings=st.lists(st.text(st.characters(codec=None), max_size=8)))
def test_strings_come_back(strings: list[str]) -> None:
    assert unpack_strings(pack_strings(strings)) == strings


@pytest.mark.parametrize(
    ("data", "offsets", "message"),
    [
        ([104, 105], [0, 3], "rise"),
        ([104, 105], [1, 2], "rise"),
        ([104, 105], [0, 2, 1, 2], "rise"),
        ([104, 105], [], "not empty"),
        ([0xC3], [0, 1], "UTF-8"),
    ],
)
def test_bad_packed_strings_are_refused(data: list[int], offsets: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unpack_strings({"bytes": np.array(data, np.uint8), "offsets": np.array(offsets, np.int64)})


def test_packed_strings_need_both_arrays_and_right_dtypes() -> None:
    packed = pack_strings(["a"])
    with pytest.raises(ValueError, match=r"offsets.*missing"):
        unpack_strings({"bytes": packed["bytes"]})
    with pytest.raises(ValueError, match="uint8"):
        unpack_strings({**packed, "bytes": packed["bytes"].astype(np.int64)})
    with pytest.raises(TypeError, match="item 1 is a int"):
        pack_strings(["a", 1])  # type: ignore[list-item]


# ------------------------------------------------------------------------------------ what cannot be written


@pytest.mark.parametrize(
    ("meta", "error", "message"),
    [
        ({"a": {"tol": float("nan")}}, ValueError, r"meta\['a'\]\['tol'\] is nan"),
        ({"a": [0.0, float("-inf")]}, ValueError, r"meta\['a'\]\[1\] is -inf"),
        ({1: 2}, TypeError, "keys in a model file are strings"),
        ({"a": np.int64(3)}, TypeError, "is a int64"),
        ({"a": 2**70}, ValueError, "64 bits"),
        ({"a": object()}, TypeError, "is a object"),
        ([1], TypeError, "must be a dict"),
        ({"a": "x" * (9 * 2**20)}, ValueError, "put long lists in arrays"),
    ],
)
def test_meta_that_is_not_json_is_refused_before_writing(
    tmp_path: Path, meta: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        write_file(tmp_path / "m", "K", meta, {})
    assert not list(tmp_path.iterdir())


def test_circular_meta_is_refused(tmp_path: Path) -> None:
    meta: dict[str, Any] = {}
    meta["self"] = meta
    with pytest.raises(ValueError, match="contains itself"):
        write_file(tmp_path / "m", "K", meta, {})


@pytest.mark.parametrize(
    ("arrays", "error"),
    [
        ({"a": np.array(["x"])}, TypeError),
        ({"a": np.array([None])}, TypeError),
        ({"a": np.zeros(2, np.complex128)}, TypeError),
        ({"a": np.zeros(2, np.float16)}, TypeError),
        ({"a": [1, 2]}, TypeError),
        ({"": np.zeros(2)}, ValueError),
        ({"__metadata__": np.zeros(2)}, ValueError),
        ({"\ud800": np.zeros(2)}, ValueError),
    ],
)
def test_other_arrays_are_refused_before_writing(tmp_path: Path, arrays: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="array"):
        write_file(tmp_path / "m", "K", {}, arrays)
    assert not list(tmp_path.iterdir())


# --------------------------------------------------------------------------------------------- damaged files


def test_a_file_truncated_at_any_byte_is_refused(sample: bytes, scratch: Path) -> None:
    for length in range(len(sample)):
        refused(scratch, sample[:length])


def test_flipped_bits_of_every_byte_are_detected(sample: bytes, scratch: Path) -> None:
    for position in range(len(sample)):
        for bit in {position % 8, 7 - position % 8}:
            damaged = bytearray(sample)
            damaged[position] ^= 1 << bit
            refused(scratch, bytes(damaged))


@given(data=st.data())
def test_random_changes_are_detected(sample: bytes, scratch: Path, data: st.DataObject) -> None:
    damaged = bytearray(sample)
    edits = st.tuples(st.integers(0, len(sample) - 1), st.integers(0, 255))
    for position, value in data.draw(st.lists(edits, min_size=1, max_size=8)):
        damaged[position] = value
    if damaged != sample:
        refused(scratch, bytes(damaged))


@given(data=st.binary(max_size=300))
def test_random_bytes_are_refused(scratch: Path, data: bytes) -> None:
    refused(scratch, data)


@given(header=st.binary(max_size=200), payload=st.binary(max_size=40))
def test_random_headers_are_refused(scratch: Path, header: bytes, payload: bytes) -> None:
    refused(scratch, len(header).to_bytes(8, "little") + header + payload)


tensor_entries = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F64", "U8", "BOOL", "BF16", "", 3]),
        "shape": st.lists(st.sampled_from([0, 1, 2, 3, -1, 2**31, 2**62, 2**64, 1.5, True, None]), max_size=4)
        | json_values,
        "data_offsets": st.lists(st.sampled_from([0, 1, 8, 16, -1, 2**63, None]), max_size=3) | json_values,
    }
)


@settings(max_examples=80)
@given(
    table=st.dictionaries(texts, tensor_entries | json_values, max_size=3),
    payload=st.sampled_from([b"", b"\x01", bytes(8), bytes(16)]),
)
def test_hostile_tables_with_a_right_checksum_do_nothing_but_raise(
    scratch: Path, table: dict[str, Any], payload: bytes
) -> None:
    scratch.write_bytes(forge(table, payload))
    try:
        file = read_file(scratch)
    except ModelFileError:
        return
    assert sum(array.nbytes for array in file.arrays.values()) == len(payload)


def test_a_forged_file_that_is_right_is_read(tmp_path: Path) -> None:
    entry = {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}
    (tmp_path / "m").write_bytes(forge({"a": entry}, b"\x01\x02"))
    assert read_file(tmp_path / "m").arrays["a"].tolist() == [1, 2]


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**40, 9 * 2**20, 1000])
def test_a_huge_header_length_is_refused_without_reading(tmp_path: Path, length: int) -> None:
    message = refused(tmp_path / "m", length.to_bytes(8, "little") + b"{}")
    assert str(length) in message


def test_sizes_beyond_the_file_are_refused_without_allocating(tmp_path: Path) -> None:
    entry = {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}
    assert "truncated" in refused(tmp_path / "m", forge({"a": entry}))


@pytest.mark.parametrize(
    ("table", "payload", "message"),
    [
        ({"a": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}}, b"\x02", "not booleans"),
        ({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}}, b"\x02\x02", "does not follow"),
        ({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}, b"\x02\x02", "too many"),
        ({"a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 1]}}, b"\x02", "size that its shape"),
        ({"a": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}, b"\x02\x02", "dtype 'BF16'"),
        ({"a": {"dtype": "U8", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]}}, b"", "impossible shape"),
        ({"a": {"dtype": "U8", "shape": [1] * 33, "data_offsets": [0, 1]}}, b"\x02", "valid shape"),
    ],
)
def test_tables_that_cannot_be_are_refused(tmp_path: Path, table: Any, payload: bytes, message: str) -> None:
    assert message in refused(tmp_path / "m", forge(table, payload))


def test_deeply_nested_json_is_refused(tmp_path: Path) -> None:
    header = b"[" * 200_000
    assert "not JSON" in refused(tmp_path / "m", len(header).to_bytes(8, "little") + header)


def test_nan_in_a_description_is_refused(tmp_path: Path) -> None:
    assert "NaN is not JSON" in refused(tmp_path / "m", forge({}, meta={"a": float("nan")}))


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    assert "is empty" in refused(tmp_path / "m", b"")


def test_a_foreign_safetensors_file_is_refused(tmp_path: Path) -> None:
    numpy_format = pytest.importorskip("safetensors.numpy")
    for metadata in (None, {"format": "pt"}):
        data = numpy_format.save({"a": np.zeros(3)}, metadata)
        assert "not written by mercer" in refused(tmp_path / "m", data)
    assert "not JSON" in refused(tmp_path / "m", numpy_format.save({}, {"mercer": "nonsense"}))
    assert "JSON object" in refused(tmp_path / "m", numpy_format.save({}, {"mercer": "[1]"}))


def test_a_newer_format_is_named(tmp_path: Path) -> None:
    message = refused(tmp_path / "m", forge({}, format=3))
    assert "was written by a newer version of mercer (format 3; this version reads format 2)" in message


def test_an_older_format_is_named_with_a_way_out(tmp_path: Path) -> None:
    message = refused(tmp_path / "m", forge({}, format=1))
    assert "was written by an older version of mercer (format 1; this version reads format 2)" in message
    assert "train the model again" in message


@pytest.mark.parametrize("description", [{}, {"format": "1"}, {"format": True}, {"format": 0}, {"format": 2}])
def test_incomplete_descriptions_are_refused(tmp_path: Path, description: dict[str, Any]) -> None:
    assert "description has no" in refused(tmp_path / "m", forge({}, description=description))


def test_the_wrong_kind_is_named(tmp_path: Path) -> None:
    write_file(tmp_path / "m", "HMM", {}, {})
    with pytest.raises(ModelFileError, match="m holds a 'HMM', not a 'Tagger'"):
        read_file(tmp_path / "m", "Tagger")


def test_missing_files_and_directories_are_ordinary_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none")
    with pytest.raises(OSError):
        read_file(tmp_path)
    with pytest.raises(ModelFileError, match="not a regular file"):
        read_file("/dev/null")


# ------------------------------------------------------------------------------------------- atomic writing


@pytest.fixture
def old_file(tmp_path: Path) -> Iterator[Path]:
    """An existing model; whatever the test does, it must be intact and alone in its directory afterwards."""
    path = tmp_path / "model.mercer"
    write_file(path, "K", {"old": True}, {"w": np.ones(10)})
    yield path
    assert read_file(path).meta == {"old": True}
    assert [item.name for item in tmp_path.iterdir()] == ["model.mercer"]


def overwrite(path: Path) -> None:
    write_file(path, "K", {"old": False}, {"w": np.zeros(100_000)})


def no_space(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("step", ["fsync", "replace", "open", "fdopen"])
def test_a_failed_write_keeps_the_old_file(old_file: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(container.os, step, no_space)
        with pytest.raises(OSError, match="the old file is intact") as caught:
            overwrite(old_file)
    assert caught.value.errno == errno.ENOSPC
    assert str(old_file) in str(caught.value)


def test_a_file_cut_short_by_the_kernel_keeps_the_old_file(old_file: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="the old file is intact") as caught:
            overwrite(old_file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_keeps_the_old_file(old_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = os.open
    with monkeypatch.context() as patch:
        patch.setattr(container.os, "open", lambda *_: real_open("/dev/full", os.O_WRONLY))
        with pytest.raises(OSError, match="No space left on device; the old file is intact"):
            overwrite(old_file)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_write_keeps_the_old_file(old_file: Path, interruption: type[BaseException]) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"half of it"
        raise interruption

    with pytest.raises(interruption):
        write_atomically(old_file, chunks())


def test_a_failed_first_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container.os, "replace", no_space)
    with pytest.raises(OSError, match="no file was written"):
        overwrite(tmp_path / "new")
    assert not list(tmp_path.iterdir())


def test_a_failed_directory_flush_says_that_the_new_file_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_fsync = os.fsync

    def fsync(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real_fsync(handle)

    monkeypatch.setattr(container.os, "fsync", fsync)
    with pytest.raises(OSError, match="new file is in place"):
        overwrite(tmp_path / "m")
    assert read_file(tmp_path / "m").meta == {"old": False}


def test_what_is_not_a_regular_file_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path, "K", {}, {})
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        write_file(tmp_path / "pipe", "K", {}, {})
    with pytest.raises(FileNotFoundError, match="no file was written"):
        write_file(tmp_path / "none" / "m", "K", {}, {})


def test_links_and_permissions_survive(tmp_path: Path) -> None:
    target, link = tmp_path / "v1", tmp_path / "latest"
    target.write_bytes(b"")
    target.chmod(0o640)
    link.symlink_to(target)
    write_file(link, "K", {}, {})
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert read_file(target).kind == "K"


def test_a_reader_sees_one_whole_model_while_another_is_written(tmp_path: Path) -> None:
    path = tmp_path / "m"
    stop = threading.Event()

    def write(i: int) -> None:
        write_file(path, "K", {"i": i}, {"w": np.full(5000, i)})

    def keep_writing() -> None:
        i = 0
        while not stop.is_set():
            i += 1
            write(i)

    write(0)
    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        for _ in range(200):
            file = read_file(path)
            assert np.all(file.arrays["w"] == file.meta["i"])
    finally:
        stop.set()
        writer.join()


# ------------------------------------------------------------------------------------------- save and load


def test_a_model_comes_back(tmp_path: Path, fake_kind: str) -> None:
    save(Fake(np.eye(2, dtype=np.float32), ["né", "日本"], C=0.3), tmp_path / "m")
    back = load(tmp_path / "m")
    assert type(back) is Fake
    assert (back.labels, back.C) == (["né", "日本"], 0.3)
    np.testing.assert_array_equal(back.w, np.eye(2, dtype=np.float32))


def test_other_objects_cannot_be_saved(tmp_path: Path, fake_kind: str) -> None:
    class Child(Fake):
        pass

    for other in ({"a": 1}, Child(np.eye(1), ["a"]), Fake):
        with pytest.raises(TypeError, match=r"cannot be saved to a model file; these models can: .*Fake, .*HMM"):
            save(other, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_only_kinds_in_the_table_are_imported(tmp_path: Path) -> None:
    write_file(tmp_path / "m", "os:system", {}, {})
    with pytest.raises(ModelFileError, match="holds a 'os:system', which this version of mercer does not know"):
        load(tmp_path / "m")


def test_a_file_that_the_model_refuses_is_a_model_file_error(tmp_path: Path, fake_kind: str) -> None:
    labels = {f"labels.{part}": array for part, array in pack_strings(["a"]).items()}
    cases: list[tuple[dict[str, Any], dict[str, np.ndarray], str]] = [
        ({}, {"w": np.eye(1), **labels}, "not a complete Fake: 'C' is missing"),
        ({"C": 1}, {}, "is missing"),
        ({"C": 1}, {"w": np.eye(2), **labels}, "1 labels for 2 columns"),
        ({"C": 1}, {"w": np.array(1.0), **labels}, "not a valid Fake"),
    ]
    for meta, arrays, message in cases:
        write_file(tmp_path / "m", fake_kind, meta, arrays)
        with pytest.raises(ModelFileError, match=message):
            load(tmp_path / "m")
