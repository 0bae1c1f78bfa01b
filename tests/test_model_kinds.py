"""Every kind of model file: equal trainings give equal files, and no changed file does anything but raise."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import mercer
from mercer import ModelFileError
from mercer._state import container
from mercer._state.container import read_file, write_file
from mercer._state.limits import LEAST_BUDGET, budget, reserve
from mercer._state.registry import MODELS
from mercer.exceptions import TooLargeError
from mercer.online import HashedClassifier
from reference.model_zoo import TEXT_LABELS, TEXTS, ZOO


@pytest.fixture(autouse=True)
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of files are written here, and none must survive a power cut."""
    monkeypatch.setattr(container.os, "fsync", lambda handle: None)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of every kind, as `mercer.save` writes it."""
    folder = tmp_path_factory.mktemp("zoo")
    for kind, animal in ZOO.items():
        mercer.save(animal.fit(), folder / kind)
    return {kind: folder / kind for kind in ZOO}


def changed(source: Path, path: Path, *, meta: Any = None, arrays: Any = None) -> Path:
    """A copy of a file with another description or other arrays, and a right checksum."""
    file = read_file(source)
    write_file(path, file.kind, file.meta if meta is None else meta, file.arrays if arrays is None else arrays)
    return path


def with_value(meta: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The description with one value replaced; the path is names and numbers with dots between them."""
    made: Any = copy.deepcopy(meta)
    *parents, last = [int(part) if part.isdecimal() else part for part in path.split(".")]
    node = made
    for part in parents:
        node = node[part]
    node[last] = value
    return made


# ------------------------------------------------------------------------------------------- what is in a file


def test_the_zoo_has_every_kind() -> None:
    assert set(ZOO) == set(MODELS)


@pytest.mark.parametrize("kind", ZOO)
def test_equal_trainings_give_equal_files(kind: str, files: dict[str, Path], tmp_path: Path) -> None:
    mercer.save(ZOO[kind].fit(), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == files[kind].read_bytes()


@pytest.mark.parametrize("kind", ZOO)
def test_a_file_says_nothing_about_the_machine(kind: str, files: dict[str, Path], tmp_path: Path) -> None:
    model = ZOO[kind].fit()
    loaded = mercer.load(files[kind])
    if not isinstance(model, BaseEstimator):
        return
    defaults = type(model)._get_param_names()
    said = {name: 2 for name in ("n_jobs", "verbose") if name in defaults}
    model.set_params(**said)
    mercer.save(model, tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == files[kind].read_bytes()
    for name in said:
        assert getattr(mercer.load(tmp_path / "m"), name) == getattr(loaded, name) != 2
    header = json.dumps(read_file(files[kind]).meta)
    assert not any(word in header for word in ('"n_jobs"', '"verbose"', '"seconds"'))


def test_files_that_ask_for_threads_get_none(files: dict[str, Path], tmp_path: Path) -> None:
    meta = read_file(files["Tagger"]).meta
    path = changed(files["Tagger"], tmp_path / "m", meta=with_value(meta, "params.n_jobs", 10_000))
    assert mercer.load(path).n_jobs is None


def test_a_loaded_history_has_one_entry_an_iteration_and_goes_on(files: dict[str, Path]) -> None:
    tagger = mercer.load(files["Tagger"])
    assert tagger.n_iter_ == len(tagger.history_["seconds"]) == len(tagger.history_["objective"]) > 0
    assert np.isnan(tagger.history_["seconds"]).all()


# ------------------------------------------------------------------------------------------------ memory


def test_a_short_file_cannot_ask_for_gigabytes(tmp_path: Path) -> None:
    """Two kilobytes that describe 2^28 weights, which are all 0."""
    mercer.save(HashedClassifier(n_bits=8).fit(TEXTS, TEXT_LABELS), tmp_path / "m")
    meta, arrays = read_file(tmp_path / "m").meta, read_file(tmp_path / "m").arrays
    for n_bits, message in ((28, "too large: a table of 2\\^28 weights"), (2**31 - 1, "n_bits"), (2**62, "n_bits")):
        big = with_value(with_value(meta, "fitted.model_.settings.n_bits", n_bits), "params.n_bits", n_bits)
        lines = {**arrays, "table_size": np.array([2**29])}
        for held in (lines, {k: v for k, v in lines.items() if not k.startswith("table")}):
            path = changed(tmp_path / "m", tmp_path / "big", meta=big, arrays=held)
            assert path.stat().st_size < 10_000
            with pytest.raises(ModelFileError, match=message):
                mercer.load(path)


def test_the_caller_says_how_much_a_model_may_take(tmp_path: Path) -> None:
    model = HashedClassifier(n_bits=20).fit(TEXTS, TEXT_LABELS)
    mercer.save(model, tmp_path / "m")
    with pytest.raises(ModelFileError, match=r"8\.0 MiB.*raise the limit: max_bytes=\d+") as caught:
        mercer.load(tmp_path / "m", max_bytes=2**20)
    needed = int(str(caught.value).rpartition("max_bytes=")[2].split()[0])
    assert mercer.load(tmp_path / "m", max_bytes=needed).predict(TEXTS).tolist() == TEXT_LABELS
    with pytest.raises(ModelFileError, match="too large: its arrays"):
        mercer.load(tmp_path / "m", max_bytes=100)
    for wrong in (0, -1, 1.5, True, "1"):
        with pytest.raises(ValueError, match="max_bytes must be"):
            mercer.load(tmp_path / "m", max_bytes=wrong)  # type: ignore[arg-type]


def test_a_table_for_each_class_counts_as_many_times(tmp_path: Path) -> None:
    labels = [str(i % 12) for i in range(len(TEXTS))]
    model = HashedClassifier(n_bits=12, label_hashing="separate").fit(TEXTS, labels)
    mercer.save(model, tmp_path / "m")
    with pytest.raises(ModelFileError, match="for each of 12 classes"):
        mercer.load(tmp_path / "m", max_bytes=12 * 2**12 * 8 - 1)
    assert mercer.load(tmp_path / "m").predict(TEXTS).tolist() == model.predict(TEXTS).tolist()


def test_reservations_add_up_and_mean_nothing_outside_of_loading() -> None:
    reserve(2**60, "anything")
    with budget(100):
        reserve(60, "one thing")
        with pytest.raises(TooLargeError, match="another would take 60 bytes, and the model 120 bytes in all"):
            reserve(60, "another")
    reserve(2**60, "anything")
    assert LEAST_BUDGET == 256 * 2**20


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("no memory for 3"), RecursionError("too deep")])
def test_no_memory_and_endless_recursion_are_errors_of_the_file(
    error: Exception, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(HashedClassifier, "from_state", fail)
    with pytest.raises(ModelFileError, match=r"HashedClassifier.*(memory|nested)"):
        mercer.load(files["HashedClassifier"])


def test_a_description_that_is_nested_beyond_reason_is_refused(files: dict[str, Path], tmp_path: Path) -> None:
    header, _, rest = files["KernelSVC"].read_bytes()[8:].partition(b'\\"meta\\":')
    deep = header + b'\\"meta\\":' + b'{\\"params\\":' * 3000 + b"1" + b"}" * 3000 + rest[:0] + b'}"}}'
    blank = deep[: len(container._CHECKSUM_START)] + b"0" * 64 + deep[len(container._CHECKSUM_START) + 64 :]
    prefix = len(blank).to_bytes(8, "little")
    checksum = container._blake2b([prefix, blank]).encode()
    (tmp_path / "m").write_bytes(prefix + blank.replace(b"0" * 64, checksum, 1))
    with pytest.raises(ModelFileError):
        mercer.load(tmp_path / "m")


# ------------------------------------------------------------------------------------------- no regular files


@pytest.fixture
def alarm() -> Iterator[None]:
    """A call that waits for ever fails instead."""

    def stop(*_: Any) -> None:
        raise TimeoutError("the call waits for ever")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, alarm: None) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (mercer.load, read_file):
        with pytest.raises(ModelFileError, match="pipe is not a regular file"):
            read(tmp_path / "pipe")


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(
    files: dict[str, Path], tmp_path: Path, alarm: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the path and its opening."""
    os.mkfifo(tmp_path / "pipe")
    status = os.stat(files["Tagger"])
    monkeypatch.setattr(container.os, "stat", lambda path: status)
    with pytest.raises(ModelFileError, match="not a regular file"):
        read_file(tmp_path / "pipe")


def test_sockets_devices_and_directories_are_refused(tmp_path: Path, alarm: None) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket"))
        for path in (tmp_path / "socket", "/dev/null", "/dev/zero"):
            with pytest.raises(ModelFileError, match="not a regular file"):
                mercer.load(path)
    with pytest.raises(IsADirectoryError, match="this is a directory, not a model file"):
        mercer.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        mercer.load(tmp_path / "nothing")


def test_models_are_loaded_from_threads_with_budgets_of_their_own(files: dict[str, Path]) -> None:
    found: list[Any] = []

    def work(most: int | None) -> None:
        for _ in range(10):
            try:
                found.append(type(mercer.load(files["HashedClassifier"], max_bytes=most)).__name__)
            except ModelFileError:
                found.append("refused")

    threads = [threading.Thread(target=work, args=(most,)) for most in (None, 10, None, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == ["HashedClassifier"] * 20 + ["refused"] * 20


# ---------------------------------------------------------------------------------------- changed descriptions

LOADED_AND_FAILED = [
    ("HiddenMarkovModel", "fitted.index_", 0),
    ("HiddenMarkovModel", "fitted._emission.is", "LabelIndex"),
    ("HiddenMarkovModel", "fitted._labels.params.classes", 3),
    ("Parser", "params.preterminals", 2**31 - 1),
    ("Parser", "params.preterminals", 0),
    ("GridLabeler", "params.block", 0),
    ("GridLabeler", "params.block", None),
    ("GridLabeler", "params.features", 1.5),
    ("GridLabeler", "params.connectivity", 5),
    ("HashedClassifier", "params.loss", "x"),
    ("HashedClassifier", "params.n_bits", 9),
    ("HashedRegressor", "params.n_bits", 1.5),
    ("CompactClassifier", "fitted.map_.fitted.classes_.shape", [1, 2]),
    ("PolynomialSketch", "params.n_components", 2**31 - 1),
    ("PolynomialSketch", "params.n_components", 10**6),
    ("StringHasher", "params.gap", 2**62),
    ("StringHasher", "params.mismatches", 2**62),
    ("RecordHasher", "params.interactions", {"kind": "list", "items": [{"kind": "list", "items": ["a", "\ud800"]}]}),
    ("TableEncoder", "fitted.columns_", []),
    ("TableEncoder", "fitted.columns_.0", {"name": "city", "kind": "category", "categories": ["Rome"]}),
    ("KernelOneClass", "fitted.offset_", "x"),
    ("KernelOneClass", "fitted.offset_", None),
    ("KernelFisher", "params.n_components", 1.5),
    ("KernelSVC", "fitted.n_features_in_", -1),
    ("AdditiveMap", "params.n_steps", 2**31 - 1),
    ("MeanMap", "params.map", 3),
    ("MeanMap", "params.map", []),
    ("RelativeMarginSVC", "fitted._gamma", -1.0),
    ("RandomProjection", "params.dtype", []),
    ("Segmenter", "fitted._starts_are_rows", None),
    ("Segmenter", "fitted.structure_.params.max_length", 10**6),
    ("GraphLabeler", "fitted.structure_.params.n_labels", 200),
    ("Aligner", "fitted.structure_.params.n_symbols", 50_000),
    ("Tagger", "fitted.structure_.params.n_labels", 10**9),
    ("Tagger", "fitted.index_", {"same": 7}),
    ("Tagger", "fitted.index_", {"same": 0}),
]


@pytest.mark.parametrize(("kind", "where", "value"), LOADED_AND_FAILED)
def test_descriptions_that_failed_at_their_first_use_are_refused(
    kind: str, where: str, value: Any, files: dict[str, Path], tmp_path: Path
) -> None:
    meta = with_value(read_file(files[kind]).meta, where, value)
    with pytest.raises(ModelFileError, match=rf"m (is not a valid|holds a) {kind}"):
        mercer.load(changed(files[kind], tmp_path / "m", meta=meta))


def test_blocks_larger_than_an_image_take_no_memory(files: dict[str, Path], tmp_path: Path) -> None:
    meta = with_value(read_file(files["GridLabeler"]).meta, "fitted.block_", 2**31 - 1)
    model = mercer.load(changed(files["GridLabeler"], tmp_path / "m", meta=meta))
    assert model.predict([np.zeros((8, 8))])[0].shape == (8, 8)


@pytest.mark.parametrize(
    ("kind", "name", "array"),
    [
        ("HiddenMarkovModel", "start_", lambda a: -a),
        ("FourierFeatures", "scales_", lambda a: a.astype(np.int64)),
        ("GridLabeler", "scale_", lambda a: 0 * a),
        ("OnlineKernelClassifier", "support_", lambda a: a[:1]),
        ("RandomProjection", "components_", lambda a: a[:0]),
        ("HashedClassifier", "model_.table_lines", lambda a: a.astype(float)),
    ],
)
def test_arrays_that_failed_at_their_first_use_are_refused(
    kind: str, name: str, array: Any, files: dict[str, Path], tmp_path: Path
) -> None:
    arrays = read_file(files[kind]).arrays
    path = changed(files[kind], tmp_path / "m", arrays={**arrays, name: array(arrays[name])})
    with pytest.raises(ModelFileError, match=rf"is not a valid {kind}"):
        mercer.load(path)


def test_probabilities_in_single_precision_are_read(files: dict[str, Path], tmp_path: Path) -> None:
    arrays = read_file(files["HiddenMarkovModel"]).arrays
    single = {**arrays, "start_": arrays["start_"].astype(np.float32)}
    ZOO["HiddenMarkovModel"].use(mercer.load(changed(files["HiddenMarkovModel"], tmp_path / "m", arrays=single)))


VALUES = [2**31 - 1, 2**62, -1, 0, 3, 1.5, 1e308, True, None, "x", "", [], {}, [1] * 5, ["a", "b"], "é\ud800"]


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all values of a description."""
    if path:
        yield path
    items = node.items() if isinstance(node, dict) else enumerate(node[:3]) if isinstance(node, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ZOO)
def test_a_sample_of_changes_does_nothing_but_raise(kind: str, files: dict[str, Path], tmp_path: Path) -> None:
    """A changed file is refused, or the model works, or says what does not fit it."""
    file = read_file(files[kind])
    random = np.random.default_rng(len(kind))
    every = list(places(file.meta))
    for _ in range(12):
        where = every[random.integers(len(every))]
        value = VALUES[random.integers(len(VALUES))]
        meta = with_value(file.meta, ".".join(map(str, where)), value)
        try:
            model = mercer.load(changed(files[kind], tmp_path / "m", meta=meta))
        except ModelFileError:
            continue
        with contextlib.suppress(ValueError):  # anything else is a failure
            ZOO[kind].use(model)
