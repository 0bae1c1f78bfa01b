"""Drawn faces are hard for nearest neighbours; files of faces are read, and broken ones are named."""

from __future__ import annotations

import io
import os
import tarfile

import numpy as np
import pytest
from scipy.io import savemat

from mercer.datasets import load_faces, make_faces


def test_faces_are_images_of_people_and_repeatable():
    images, names = make_faces(3, 4, (10, 8), random_state=0)
    assert images.shape == (12, 10, 8)
    assert images.min() >= 0
    assert images.max() <= 1
    assert list(names) == [f"person {i:02d}" for i in range(3) for _ in range(4)]
    assert np.array_equal(make_faces(3, 4, (10, 8), random_state=0).images, images)


def test_light_changes_pixels_more_than_people_do():
    images, _ = make_faces(20, 10, random_state=0)
    people = images.reshape(20, 10, -1)
    assert people.std(axis=1).mean() > people.mean(axis=1).std(axis=0).mean()


@pytest.mark.parametrize("settings", [{"n_people": 0}, {"n_images": -1}, {"size": (4, 20)}])
def test_wrong_sizes_are_named(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        make_faces(**settings)


def archive(path, files):
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as file:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))


def test_archives_are_read_in_the_order_of_their_numbers(tmp_path):
    files = {f"att_faces/s{s}/{k}.pgm": b"P5\n# grey\n2 1\n255\n" + bytes([s, k]) for s in (10, 2) for k in (10, 9)}
    archive(tmp_path / "orl-faces" / "att_faces.tar.gz", files)
    images, names = load_faces("orl", tmp_path)
    assert list(names) == ["s2", "s2", "s10", "s10"]
    assert (images.reshape(4, 2) * 255).round().tolist() == [[2, 9], [2, 10], [10, 9], [10, 10]]


def test_matlab_files_are_read_column_by_column(tmp_path):
    (tmp_path / "yale-b").mkdir()
    rows = np.arange(2048).reshape(2, 1024) % 256
    savemat(tmp_path / "yale-b" / "YaleB_32x32.mat", {"fea": rows, "gnd": [[1], [2]]})
    images, names = load_faces("yale-b", tmp_path)
    assert list(names) == ["person 01", "person 02"]
    assert images[0, 1, 0] * 255 == pytest.approx(1)
    assert images[0, 0, 1] * 255 == pytest.approx(32)


@pytest.mark.parametrize(
    "content",
    [b"", b"P5\n2 2\n255\nabc", b"P2\n1 1\n255\n0", b"P5\n0 0\n255\n", b"P5\n-1 2\n255\nab", b"P5\n1 1\n0\na", b"P5 1"],
)
def test_broken_images_are_named(tmp_path, content):
    archive(tmp_path / "orl-faces" / "att_faces.tar.gz", {"s1/1.pgm": content})
    with pytest.raises(ValueError, match=r"att_faces\.tar\.gz:s1/1\.pgm"):
        load_faces("orl", tmp_path)


def test_broken_files_are_named(tmp_path):
    for folder, name in (("orl-faces", "att_faces.tar.gz"), ("yale-b", "YaleB_32x32.mat")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(b"nothing of the kind")
        with pytest.raises(ValueError, match=name):
            load_faces({"orl-faces": "orl"}.get(folder, folder), tmp_path)
    archive(tmp_path / "lfwcrop-subset" / "lfwcrop_grey_62x20.tar.gz", {})
    with pytest.raises(ValueError, match="PGM"):
        load_faces("lfw", tmp_path)
    with pytest.raises(ValueError, match="name"):
        load_faces("ar", tmp_path)


@pytest.mark.parametrize(("name", "shape", "people"), [("yale-b", (2414, 32, 32), 38), ("orl", (400, 112, 92), 40)])
def test_public_collections_have_their_sizes(name, shape, people):
    if "MERCER_DATA" not in os.environ:
        pytest.skip("MERCER_DATA names no folder of data sets")
    images, names = load_faces(name)
    assert images.shape == shape
    assert len(np.unique(names)) == people
