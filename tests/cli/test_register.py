"""``mercer register``: clouds from files to an aligned file, a matrix, a page; mistakes are named."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mercer.cli import main
from mercer.data import PointCloud, read_cloud, write_cloud
from mercer.datasets import make_mug
from mercer.manifolds import SO


@pytest.fixture
def clouds(tmp_path):
    source = make_mug(400, random_state=0)
    target = source @ SO(3).Exp([0.3, 2.5, 0.1]).T + [5, 0, 0]
    write_cloud(tmp_path / "a.ply", PointCloud(source))
    write_cloud(tmp_path / "b.xyz", PointCloud(target))
    return tmp_path, source, target


def test_a_cloud_is_aligned_and_reported(clouds, capsys):
    folder, _, target = clouds
    out = [str(folder / name) for name in ("out.pcd", "motion.txt", "page.html")]
    options = ["--output", out[0], "--transform", out[1], "--html", out[2]]
    assert main(["register", str(folder / "a.ply"), str(folder / "b.xyz"), *options]) == 0
    printed = capsys.readouterr().out
    assert "fitness" in printed
    assert "100.0%" in printed
    np.testing.assert_allclose(read_cloud(out[0]).points, target, atol=1e-6)
    np.testing.assert_allclose(np.loadtxt(out[1])[:3, :3], SO(3).Exp([0.3, 2.5, 0.1]), atol=1e-6)
    page = (folder / "page.html").read_text()
    assert page.count("<svg") == 3
    assert "<script" not in page


def test_json_has_the_matrix(clouds, capsys):
    folder, _, _ = clouds
    assert main(["register", str(folder / "a.ply"), str(folder / "b.xyz"), "--json", "--method", "kernel"]) == 0
    facts = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(np.array(facts["transform"])[:3, :3], SO(3).Exp([0.3, 2.5, 0.1]), atol=1e-6)
    assert facts["fitness"] == 1.0


def test_meshes_are_sampled_and_written_with_their_faces(tmp_path, capsys):
    corners = np.array([[0, 0, 0], [3, 0, 0], [0, 2, 0], [0, 0, 1.0]])
    mesh = PointCloud(corners, faces=[[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]])
    write_cloud(tmp_path / "a.off", mesh)
    write_cloud(tmp_path / "b.obj", PointCloud(corners @ SO(3).Exp([1.0, 2.0, 0.0]).T, faces=mesh.faces))
    files = [str(tmp_path / name) for name in ("a.off", "b.obj", "c.ply")]
    assert main(["register", *files[:2], "--output", files[2], "--points", "1500"]) == 0
    aligned = read_cloud(files[2])
    assert len(aligned.faces) == 4
    np.testing.assert_allclose(aligned.points, corners @ SO(3).Exp([1.0, 2.0, 0.0]).T, atol=0.05)
    capsys.readouterr()


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        (("a.ply", "none.ply"), [], "none.ply"),
        (("a.ply", "bad.ply"), [], "bad.ply:1: a PLY file begins with ply"),
        (("a.ply", "few.csv"), [], "at least 4 points"),
        (("a.ply", "b.xyz"), ["--output", "x/y.ply"], "no such directory"),
        (("a.ply", "b.stl"), [], "unknown kind of file"),
    ],
)
def test_mistakes_are_named_without_a_traceback(clouds, files, options, message, capsys, monkeypatch):
    folder, _, _ = clouds
    monkeypatch.chdir(folder)
    (folder / "bad.ply").write_text("nope\n")
    (folder / "few.csv").write_text("x,y,z\n1,2,3\n")
    (folder / "b.stl").write_text("solid\n")
    assert main(["register", *files, *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
