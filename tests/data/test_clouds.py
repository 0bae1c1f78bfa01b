"""Point clouds: sampling by area, thinning, motions; files of every format there and back, and damaged ones."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from mercer.data import DataFileError, PointCloud, read_cloud, write_cloud
from mercer.datasets._home import data_home

RNG = np.random.default_rng(0)
POINTS = RNG.standard_normal((7, 3)) * [1, 1e-9, 1e9]
FACES = np.array([[0, 1, 2], [2, 3, 6], [4, 5, 6]])
NORMALS = RNG.standard_normal((7, 3))
ENDINGS = ["ply", "off", "obj", "pcd", "xyz", "txt", "csv", "npy", "npz", "ply.gz", "csv.gz"]


def test_points_fall_on_faces_in_proportion_to_their_area():
    mesh = PointCloud([[0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 5, 5], [8, 5, 5], [5, 8, 5]], faces=[[0, 1, 2], [3, 4, 5]])
    assert mesh.area == pytest.approx(5)
    sample = mesh.sample(20_000, random_state=0)
    low = sample.points[:, 2] < 2
    assert low.mean() == pytest.approx(0.1, abs=0.01)
    inside = sample.points[low]
    assert inside.min() >= 0
    assert (inside[:, 0] + inside[:, 1]).max() <= 1 + 1e-12
    np.testing.assert_allclose(inside.mean(axis=0), [1 / 3, 1 / 3, 0], atol=0.02)
    np.testing.assert_allclose(sample.normals, [[0, 0, 1]] * 20_000, atol=1e-12)
    np.testing.assert_array_equal(mesh.sample(5, random_state=3).points, mesh.sample(5, random_state=3).points)


def test_thinning_keeps_the_mean_of_each_cell():
    points = RNG.random((500, 3)) * 4
    thin = PointCloud(points, normals=points).thin(1.0)
    cells = np.floor(points - points.min(axis=0)).astype(int)
    expected = {tuple(c): points[(cells == c).all(axis=1)].mean(axis=0) for c in np.unique(cells, axis=0)}
    np.testing.assert_allclose(np.sort(thin.points, axis=0), np.sort(list(expected.values()), axis=0))
    np.testing.assert_allclose(np.linalg.norm(thin.normals, axis=1), 1)
    with pytest.raises(ValueError, match="size must be a positive"):
        PointCloud(points).thin(0)


def test_motions_move_points_and_turn_normals():
    turn = np.array([[0, -1, 0, 5], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    moved = PointCloud([[1, 2, 3]], normals=[[0, 2, 0]]).transform(turn)
    np.testing.assert_allclose(moved.points, [[3, 1, 3]])
    np.testing.assert_allclose(moved.normals, [[-1, 0, 0]])
    with pytest.raises(ValueError, match=r"shape \(4, 4\)"):
        PointCloud([[1, 2, 3]]).transform(np.eye(3))


def test_wrong_clouds_are_named():
    with pytest.raises(ValueError, match="points must have one point a row"):
        PointCloud([1, 2, 3])
    with pytest.raises(ValueError, match="array of numbers"):
        PointCloud([["a", "b"]])
    with pytest.raises(ValueError, match="point 1 does"):
        PointCloud([[0, 0], [0, np.nan]])
    with pytest.raises(ValueError, match="faces must hold positions from 0 to 1"):
        PointCloud([[0, 0], [0, 1]], faces=[[0, 1, 2]])
    with pytest.raises(ValueError, match="normals must have the shape"):
        PointCloud([[0, 0], [0, 1]], normals=[[0, 1]])
    with pytest.raises(ValueError, match="only a mesh"):
        PointCloud([[0, 0], [0, 1]]).sample(3)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("binary", [True, False])
def test_files_give_back_what_was_written(ending, binary, tmp_path):
    path = tmp_path / f"cloud.{ending}"
    write_cloud(path, PointCloud(POINTS, NORMALS, FACES), binary=binary)
    cloud = read_cloud(path)
    np.testing.assert_array_equal(cloud.points, POINTS)
    kind = ending.split(".")[0]
    if kind in ("ply", "off", "pcd", "xyz", "txt", "csv", "npz"):
        np.testing.assert_allclose(cloud.normals, NORMALS / np.linalg.norm(NORMALS, axis=1, keepdims=True), atol=1e-15)
    if kind in ("ply", "off", "obj", "npz"):
        np.testing.assert_array_equal(cloud.faces, FACES)
    write_cloud(path, PointCloud(POINTS[:, :2]), binary=binary)
    assert read_cloud(path).points[:, :2].tolist() == POINTS[:, :2].tolist()


def big_endian_ply() -> bytes:
    header = (
        "ply\nformat binary_big_endian 1.0\ncomment a\nelement extra 2\nproperty list uchar short a\nproperty int b\n"
        "element vertex 4\nproperty float x\nproperty uchar red\nproperty float y\nproperty double z\n"
        "element face 2\nproperty uchar flag\nproperty list uchar uint vertex_index\nend_header\n"
    )
    body = struct.pack(">B3hi", 3, 1, 2, 3, 9) + struct.pack(">Bi", 0, 9)
    for k in range(4):
        body += struct.pack(">fBfd", k, 255, 2 * k, 0.5 * k)
    return header.encode() + body + struct.pack(">BB4I", 0, 4, 0, 1, 2, 3) + struct.pack(">BB3I", 7, 3, 3, 1, 0)


def test_binary_ply_with_lists_of_any_length_and_other_elements(tmp_path):
    path = tmp_path / "a.ply"
    path.write_bytes(big_endian_ply())
    cloud = read_cloud(path)
    np.testing.assert_array_equal(cloud.points, [[0, 0, 0], [1, 2, 0.5], [2, 4, 1], [3, 6, 1.5]])
    np.testing.assert_array_equal(cloud.faces, [[0, 1, 2], [0, 2, 3], [3, 1, 0]])
    content = big_endian_ply()
    for cut in range(len(content)):
        path.write_bytes(content[:cut])
        with pytest.raises(DataFileError, match=r"a\.ply:\d+: "):
            read_cloud(path)


def test_obj_polygons_textures_and_negative_positions(tmp_path):
    path = tmp_path / "a.obj"
    path.write_text("# x\nv 0 0 0\nv 1 0 0 0.5 0.5 0.5\nvn 0 0 1\nv 1 1 0\nv 0 1 0\nf 1/1/1 2//1 3 4\nf -1 -2 -3\n")
    cloud = read_cloud(path)
    np.testing.assert_array_equal(cloud.faces, [[0, 1, 2], [0, 2, 3], [3, 2, 1]])
    assert len(cloud) == 4


def test_off_with_comments_and_counts_beside_the_name(tmp_path):
    path = tmp_path / "a.off"
    path.write_text("OFF 4 2 0 # counts\n\n0 0 0 255 0 0\n1 0 0\n1 1 0\n# more\n0 1 0\n4 0 1 2 3 0.5 0.5 0.5\n2 0 1\n")
    np.testing.assert_array_equal(read_cloud(path).faces, [[0, 1, 2], [0, 2, 3]])


def test_compressed_pcd(tmp_path):
    points = np.array([[1, 2, 3], [1, 2, 3], [1, 2, 3], [4, 5, 6]], "<f4")
    raw = points.T.tobytes()  # field by field
    packed = b"".join(bytes([len(part) - 1]) + part for part in (raw[k : k + 30] for k in range(0, len(raw), 30)))
    header = "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 4\nHEIGHT 1\nPOINTS 4\nDATA binary_compressed\n"
    path = tmp_path / "a.pcd"
    path.write_bytes(header.encode() + struct.pack("<2I", len(packed), len(raw)) + packed)
    np.testing.assert_array_equal(read_cloud(path).points, points)
    # 12 bytes as they are, then "go back 4 bytes and copy 8", as the format's own compressor writes
    run = b"\x03" + raw[:4] + bytes([(6 << 5) | 0, 3]) + b"\x1f" + raw[12:44] + b"\x03" + raw[44:]
    path.write_bytes(header.encode() + struct.pack("<2I", len(run), len(raw)) + run)
    np.testing.assert_array_equal(read_cloud(path).points, points)
    path.write_bytes(header.encode() + struct.pack("<2I", len(run), len(raw)) + b"\xff" * len(run))
    with pytest.raises(DataFileError, match="damaged"):
        read_cloud(path)


def test_columns_with_a_header_name_their_coordinates(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,z,x,y\n1,3,1,2\n2,6,4,5\n")
    np.testing.assert_array_equal(read_cloud(path).points, [[1, 2, 3], [4, 5, 6]])
    path.write_text("1;2\n3;4\n")
    np.testing.assert_array_equal(read_cloud(path).points, [[1, 2], [3, 4]])


def test_missing_points_are_an_error_unless_dropped(tmp_path):
    path = tmp_path / "a.ply"
    text = "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n"
    text += "element face 2\nproperty list uchar int vertex_indices\nend_header\n"
    text += "0 0 0\nnan nan nan\n1 0 0\n0 1 0\n3 0 2 3\n3 0 1 2\n"
    path.write_text(text)
    with pytest.raises(DataFileError, match="point 1"):
        read_cloud(path)
    cloud = read_cloud(path, drop_missing=True)
    assert len(cloud) == 3
    np.testing.assert_array_equal(cloud.faces, [[0, 1, 2]])


PLY = "ply\nformat ascii 1.0\nelement vertex {}\nproperty float x\nproperty float y\nproperty float z\nend_header\n"
BAD = {
    "a.ply": [
        ("", r":1: .*end_header"),
        ("plx\n", r":1: a PLY file begins with ply"),
        (PLY.format(10**15) + "0 0 0\n", r":8: 1000000000000000 points should follow"),
        (PLY.format("1e3"), r":3: expected 'element name count'"),
        (PLY.format(2) + "0 0 0\n0 0\n", r":9: expected 3 numbers, found 2"),
        (PLY.format(2) + "0 0 0\n0 0 x\n", r":9: expected a number, found 'x'"),
        (PLY.format(2).replace("ascii", "asciy"), r":2: unknown format"),
        (PLY.format(2).replace("float z", "float y"), r"names a property twice"),
        (PLY.format(2).replace("float x", "flaat x"), r":4: expected 'property type name'"),
        (PLY.format(2).replace("element vertex", "element corner"), r"element vertex"),
        (
            PLY.format(10**12).replace("ascii", "binary_little_endian") + "abc",
            r"byte 127: .* need 12000000000000 bytes",
        ),
    ],
    "a.off": [
        ("FOO\n", r":1: an OFF file begins with OFF"),
        ("OFF\n99999999999 1 0\n0 0 0\n", r":3: 99999999999 points should follow"),
        ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 3\n", r":6: a face names point 3"),
        ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n4 0 1 2\n", r":6: a face of 4 corners"),
        ("OFF\n3 -1 0\n", r":2: expected the number of faces, a whole number, found '-1'"),
        ("OFF\n3\n", r":2: expected the numbers of points and faces"),
    ],
    "a.obj": [
        ("f 1 2 3\n", r":1: an OBJ file has lines"),
        ("v 0 0 0\nv 0 0\n", r":2: expected 3 coordinates, found 2"),
        ("v 0 0 0\nv 0 0 zero\n", r":2: expected a number, found 'zero'"),
        ("v 0 0 0\nf 1 2 3\n", r":2: a face names point 2, but there are points 1 to 1 only"),
        ("v 0 0 0\nf 0 1 1\n", r":2: positions of points begin with 1"),
        ("v 0 0 0\nf 1 1\n", r":2: a face needs at least 3 corners"),
    ],
    "a.pcd": [
        ("VERSION 7\n", r"ends with DATA"),
        ("FIELDS x y\nSIZE 4\nTYPE F F\nPOINTS 1\nDATA ascii\n1 2\n", r"one entry a field"),
        ("FIELDS x y\nSIZE 4 4\nTYPE F F\nPOINTS 9999999999999\nDATA binary\n1 2\n", r"need 79999999999992 bytes"),
        ("FIELDS x y\nSIZE 4 3\nTYPE F F\nPOINTS 1\nDATA ascii\n1 2\n", r"unknown field of type"),
        ("FIELDS x w\nSIZE 4 4\nTYPE F F\nPOINTS 1\nDATA ascii\n1 2\n", r"FIELDS must name x, y"),
        ("FIELDS x y\nSIZE 4 4\nTYPE F F\nPOINTS 1\nDATA zip\n1 2\n", r"unknown form 'zip'"),
    ],
    "a.xyz": [
        ("", r"found none"),
        ("1\n2\n", r"at least 2 numbers"),
        ("1 2 3\n1 2\n", r":2: expected 3 numbers, found 2"),
    ],
    "a.csv": [("a,b\n1,2\n", r":1: expected numbers, or a header")],
    "a.npy": [("hello", r"not a valid \.npy"), ("\x93NUMPY\x01\x00\x10\x00{'shape': (9**9,)", r"not a valid \.npy")],
    "a.npz": [("hello", r"not a valid \.npz")],
    "a.ply.gz": [("hello", r"gzip")],
}


@pytest.mark.parametrize(("name", "content", "message"), [(k, c, m) for k, cases in BAD.items() for c, m in cases])
def test_damaged_files_are_named_with_their_line(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content.encode("latin1"))
    with pytest.raises(DataFileError, match=message):
        read_cloud(path)


def test_a_header_of_numpy_that_promises_too_much(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, POINTS)
    path.write_bytes(path.read_bytes().replace(b"(7, 3)", b"(9, 9)"))
    with pytest.raises(DataFileError, match=r"not a valid \.npy"):
        read_cloud(path)
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DataFileError, match="expected numbers"):
        read_cloud(path)


def test_unknown_endings_and_dimensions(tmp_path):
    with pytest.raises(ValueError, match="unknown kind of file"):
        read_cloud(tmp_path / "a.stl")
    with pytest.raises(ValueError, match="unknown kind of file"):
        write_cloud(tmp_path / "a.stl", PointCloud(POINTS))
    with pytest.raises(ValueError, match=r"only \.npy and \.npz"):
        write_cloud(tmp_path / "a.ply", PointCloud(np.zeros((3, 4))))
    with pytest.raises(FileNotFoundError):
        read_cloud(tmp_path / "a.ply")
    write_cloud(tmp_path / "a.npy", PointCloud(np.zeros((3, 4))))
    assert read_cloud(tmp_path / "a.npy").dimension == 4


def test_cut_gzip(tmp_path):
    path = tmp_path / "a.ply.gz"
    path.write_bytes(gzip.compress(PLY.format(0).encode())[:-12])
    with pytest.raises(DataFileError, match="end too early"):
        read_cloud(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "points", "faces"),
    [
        ("bunny/stanford-bunny.obj.gz", 35_947, 69_451),
        ("dragon/dragon.ply.gz", 22_982, 45_550),
        ("bunny-scans/bun000.ply.gz", 40_256, None),
        ("cpd/fish_source.txt", 91, None),
    ],
)
def test_public_clouds(file, points, faces):
    try:
        path = data_home() / "pointclouds" / file
    except FileNotFoundError as error:
        pytest.skip(str(error))
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    cloud = read_cloud(path)
    assert len(cloud) == points
    assert (cloud.faces is None) if faces is None else len(cloud.faces) == faces


@pytest.mark.parametrize("missing", [1, 13, 30])
def test_binary_faces_that_are_cut_short_are_an_error_of_the_file(missing, tmp_path):
    """Faces of three corners are read in one look, where there are as many bytes as they need."""
    write_cloud(tmp_path / "whole.ply", PointCloud(POINTS, faces=FACES))
    content = (tmp_path / "whole.ply").read_bytes()
    path = tmp_path / "cut.ply"
    path.write_bytes(content[:-missing])
    with pytest.raises(DataFileError, match=r"cut\.ply"):
        read_cloud(path)
