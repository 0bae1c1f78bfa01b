"""Models are replaced as a whole, refused files change nothing, mapped files share their memory."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer._state.container import read_file
from mercer.classification import LinearClassifier
from mercer.serve.errors import RequestError
from mercer.serve.store import Snapshots, Store, model_names
from reference.model_zoo import POINTS, ZOO


def classifier(*labels: str) -> LinearClassifier:
    return LinearClassifier().fit(POINTS, np.repeat(list(labels), 12))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    mercer.save(classifier("no", "yes"), tmp_path / "m.mercer")
    return tmp_path / "m.mercer"


def events(store: Store) -> list[tuple[str, dict[str, Any]]]:
    seen: list[tuple[str, dict[str, Any]]] = []
    store.report = lambda event, **facts: seen.append((event, facts))
    return seen


@pytest.mark.parametrize("mapped", [False, True])
def test_a_replaced_file_takes_the_place_of_the_model(file: Path, tmp_path: Path, mapped: bool) -> None:
    snapshots = Snapshots.create([str(file)]) if mapped else None
    store = Store({"m": str(file)}, snapshots=snapshots)
    seen = events(store)
    store.load_all()
    old = store.get("m")
    assert not store.check(store.entries["m"])
    mercer.save(classifier("left", "right"), file)
    assert store.check(store.entries["m"])
    new = store.get("m")
    assert new.version != old.version
    assert set(new.answers.model.predict(POINTS)) == {"left", "right"}
    assert set(old.answers.model.predict(POINTS)) == {"no", "yes"}  # requests that run keep theirs
    assert [event for event, _ in seen] == ["loaded", "replaced"]
    if snapshots is not None:
        assert len(list(snapshots.folder.iterdir())) == 1
        snapshots.remove()
        assert not snapshots.folder.exists()
        assert set(new.answers.model.predict(POINTS)) == {"left", "right"}  # mapped still


@pytest.mark.parametrize("mapped", [False, True])
def test_a_start_while_files_are_replaced_takes_the_last_one(
    file: Path, monkeypatch: pytest.MonkeyPatch, mapped: bool
) -> None:
    from mercer.serve import store as module

    replaced, load = [], module.load

    def slow(path: str, **options: Any) -> Any:
        model = load(path, **options)
        if len(replaced) < 3:
            replaced.append(path)
            mercer.save(classifier("left", f"right{len(replaced)}"), file)
        return model

    monkeypatch.setattr(module, "load", slow)
    snapshots = Snapshots.create([str(file)]) if mapped else None
    store = Store({"m": str(file)}, snapshots=snapshots)
    store.load_all()
    assert set(store.get("m").answers.model.predict(POINTS)) == {"left", "right3"}
    if snapshots is not None:
        snapshots.remove()
    monkeypatch.setattr(module, "load", lambda path, **options: (replaced.clear(), slow(path, **options))[1])
    with pytest.raises(mercer.ModelFileError, match="changed during each of 20 attempts"):
        Store({"m": str(file)}).load_all()


def test_a_copy_that_another_process_removes_is_made_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mercer.serve import store as module

    snapshots, removed, load = Snapshots.create([str(file)]), [], module.load

    def late(path: str, **options: Any) -> Any:
        if not removed:
            removed.append(path)
            Path(path).unlink()
        return load(path, **options)

    monkeypatch.setattr(module, "load", late)
    store = Store({"m": str(file)}, snapshots=snapshots)
    store.load_all()
    assert removed
    assert store.ready
    snapshots.remove()


def test_files_that_cannot_be_served_change_nothing(file: Path, tmp_path: Path) -> None:
    store = Store({"m": str(file)})
    store.load_all()
    seen = events(store)
    good = file.read_bytes()
    old = store.get("m")
    mercer.save(ZOO["StructuredPredictor"].fit(), tmp_path / "other")
    for content, reason in (
        (b"", "is empty"),
        (good[:-9], "truncated"),
        (good[:-1] + bytes([good[-1] ^ 1]), "checksum"),
        ((tmp_path / "other").read_bytes(), "a StructuredPredictor is not served: its structure is Python code"),
    ):
        file.write_bytes(content)
        assert not store.check(store.entries["m"])
        assert not store.check(store.entries["m"])  # not tried again before it changes again
        assert store.get("m") is old
        event, facts = seen.pop()
        assert event == "refused"
        assert reason in facts["reason"]
        assert not seen
    file.unlink()
    assert not store.check(store.entries["m"])
    assert not store.check(store.entries["m"])
    assert [event for event, _ in seen] == ["refused"]
    file.write_bytes(good)
    assert store.check(store.entries["m"])
    assert store.get("m").version == old.version  # the same model again


def test_a_file_that_cannot_be_served_is_an_error_at_the_start(tmp_path: Path) -> None:
    mercer.save(ZOO["HashAccumulator"].fit(), tmp_path / "m.mercer")
    with pytest.raises(mercer.ModelFileError, match="a HashAccumulator is not served"):
        Store({"m": str(tmp_path / "m.mercer")}).load_all()
    with pytest.raises(FileNotFoundError):
        Store({"m": str(tmp_path / "nothing")}).load_all()
    with pytest.raises(RequestError, match="there is no model"):
        Store({}).get("m")


def test_names_of_models() -> None:
    assert model_names(["a/tagger.mercer", "spam=b/mail.mercer"]) == {
        "tagger": "a/tagger.mercer",
        "spam": "b/mail.mercer",
    }
    for wrong in (["a/m.mercer", "b/m.mercer"], ["x y=m.mercer"], [], ["=m"]):
        with pytest.raises(ValueError, match=r"two models|not a valid model name|no model"):
            model_names(wrong)


def test_mapped_arrays_are_pages_of_the_file(file: Path) -> None:
    plain, mapped = read_file(file), read_file(file, mapped=True)
    assert plain.arrays.keys() == mapped.arrays.keys()
    for name, array in mapped.arrays.items():
        assert np.array_equal(array, plain.arrays[name])
        assert isinstance(array.base, mmap.mmap)
        array[...] = 0  # a copy of the process
    assert all(np.array_equal(a, read_file(file).arrays[name]) for name, a in plain.arrays.items())


@pytest.mark.parametrize("kind", ["Tagger", "KernelSVC", "HashedClassifier", "GridLabeler"])
def test_mapped_models_answer_as_others(kind: str, tmp_path: Path) -> None:
    mercer.save(ZOO[kind].fit(), tmp_path / "m")
    first, second = (ZOO[kind].use(mercer.load(tmp_path / "m", mapped=mapped)) for mapped in (False, True))
    assert str(first) == str(second)


def test_the_weights_of_a_mapped_tagger_are_not_copied(tmp_path: Path) -> None:
    mercer.save(ZOO["Tagger"].fit(), tmp_path / "m")
    base: Any = mercer.load(tmp_path / "m", mapped=True).coef_
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, mmap.mmap)
