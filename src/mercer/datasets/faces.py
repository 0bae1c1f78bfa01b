"""Images of faces: a generator and three public collections."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mercer._validation import check_choice, check_count
from mercer.datasets._home import data_file

__all__ = ["FaceImages", "load_faces", "make_faces"]


class FaceImages(NamedTuple):
    """Grey images and the people they show."""

    images: np.ndarray
    """Shape (n, height, width), values from 0 to 1."""
    names: np.ndarray
    """A name for each image."""


def make_faces(
    n_people: int = 20,
    n_images: int = 16,
    size: tuple[int, int] = (24, 20),
    *,
    noise: float = 0.03,
    random_state: int | np.random.RandomState | None = None,
) -> FaceImages:
    """Draw faces of several people under changing light.

    Each person has their own head, eyes, brows, nose, mouth, hair and skin tones. An image has a direction of light on
    the ellipsoid of the head, a small shift, and noise. Light changes pixels more than identity does, so nearest
    neighbours often err.

    Parameters
    ----------
    n_people : int, default=20
        People.
    n_images : int, default=16
        Images per person.
    size : (int, int), default=(24, 20)
        Height and width, at least 8.
    noise : float, default=0.03
        Standard deviation of the noise of a pixel.
    random_state : int, RandomState or None, default=None
        Seed of people, light and noise.

    Returns
    -------
    FaceImages
        ``n_people * n_images`` images, person by person, and names such as "person 03".

    Examples
    --------
    >>> from mercer.datasets import make_faces
    >>> images, names = make_faces(3, 2, random_state=0)
    >>> images.shape, names[:3].tolist()
    ((6, 24, 20), ['person 00', 'person 00', 'person 01'])
    """
    from sklearn.utils import check_random_state

    people, each = check_count("n_people", n_people), check_count("n_images", n_images)
    height, width = check_count("size[0]", size[0], 8), check_count("size[1]", size[1], 8)
    random = check_random_state(random_state)
    v, u = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    images = np.empty((people, each, height, width))
    for person in images:
        features = _draw_person(random)
        for image in person:
            du, dv = random.uniform(-0.04, 0.04, 2)
            image[:] = _lit(_albedo(u - du, v - dv, features), u - du, v - dv, features["head"], random)
            image += noise * random.standard_normal(image.shape)
    names = np.array([f"person {i:02d}" for i in range(people)])
    return FaceImages(np.clip(images.reshape(-1, height, width), 0, 1), np.repeat(names, each))


def _draw_person(random: np.random.RandomState) -> dict[str, np.ndarray]:
    """Draw positions, sizes and shades of the parts of a face, and waves of the skin shade."""
    return {
        "head": random.uniform([0.72, 0.85], [0.92, 0.98]),
        "eyes": random.uniform([0.26, -0.25, 0.09, 0.05, 0.35], [0.42, -0.08, 0.16, 0.09, 0.6]),
        "brows": random.uniform([0.1, 0.14, 0.03, 0.1], [0.2, 0.24, 0.07, 0.45]),
        "nose": random.uniform([0.05, 0.1, 0.16, -0.25], [0.2, 0.22, 0.3, 0.15]),
        "mouth": random.uniform([0.42, 0.18, 0.05, 0.2], [0.6, 0.36, 0.1, 0.5]),
        "hair": random.uniform([-0.75, 0.2], [-0.4, 0.7]),
        "skin": np.append(random.normal(scale=0.05, size=(8, 2)).ravel(), random.uniform(0.65, 0.85)),
        "waves": random.uniform(-4, 4, size=(8, 2)),
    }


def _albedo(u: np.ndarray, v: np.ndarray, person: dict[str, np.ndarray]) -> np.ndarray:
    def spot(cu: float, cv: float, su: float, sv: float) -> np.ndarray:
        return np.exp(-0.5 * (((u - cu) / su) ** 2 + ((v - cv) / sv) ** 2))

    shade = np.full_like(u, person["skin"][-1])
    for (a, b), (ku, kv) in zip(person["skin"][:-1].reshape(8, 2), person["waves"], strict=True):
        shade += a * np.cos(ku * u + kv * v) + b * np.sin(ku * u + kv * v)
    apart, level, wide, high, dark = person["eyes"]
    above, length, thick, depth = person["brows"]
    for side in (-apart, apart):
        shade -= dark * spot(side, level, wide, high) + depth * spot(side, level - above, length, thick)
    below, wide, long, tone = person["nose"]
    shade += tone * spot(0, below, wide, long)
    level, wide, high, dark = person["mouth"]
    shade -= dark * spot(0, level, wide, high)
    line, dark = person["hair"]
    return shade - dark / (1 + np.exp(12 * (v - line - 0.3 * u**2)))


def _lit(
    albedo: np.ndarray, u: np.ndarray, v: np.ndarray, head: np.ndarray, random: np.random.RandomState
) -> np.ndarray:
    """Shade an ellipsoid by Lambert's law, with ambient light."""
    nu, nv = u / head[0], v / head[1]
    radius = nu**2 + nv**2
    nw = np.sqrt(np.clip(1 - radius, 0.05, None))
    azimuth, elevation = random.uniform(-1.1, 1.1), random.uniform(-0.6, 0.4)
    light = np.sin(azimuth), np.sin(elevation), np.cos(azimuth) * np.cos(elevation)
    lengths = np.sqrt(nu**2 + nv**2 + nw**2)
    shading = np.clip((nu * light[0] + nv * light[1] + nw * light[2]) / lengths, 0, None)
    inside = 1 / (1 + np.exp(np.clip(20 * (radius - 1), -50, 50)))
    return inside * albedo * (0.15 + 0.95 * shading) + 0.1 * (1 - inside)


def load_faces(name: str, data_home: str | os.PathLike[str] | None = None) -> FaceImages:
    """Read a public collection of faces.

    Parameters
    ----------
    name : {"yale-b", "orl", "lfw"}
        The Extended Yale B crops (2,414 of 32 × 32 pixels, 38 people, 64 kinds of light), the ORL faces (400 of
        112 × 92, 40 people) or a part of LFWcrop (1,240 of 64 × 64, 62 people).
    data_home : path, optional
        Folder that contains ``yale-b/YaleB_32x32.mat``, ``orl-faces/att_faces.tar.gz`` or
        ``lfwcrop-subset/lfwcrop_grey_62x20.tar.gz``; by default the environment variable ``MERCER_DATA``.

    Returns
    -------
    FaceImages
        Images and names.

    Examples
    --------
    >>> from mercer.datasets import load_faces
    >>> load_faces("orl").images.shape  # doctest: +SKIP
    (400, 112, 92)
    """
    check_choice("name", name, ("yale-b", "orl", "lfw"))
    if name == "yale-b":
        return _read_matlab(data_file("yale-b", "YaleB_32x32.mat", data_home))
    folder, file = {
        "orl": ("orl-faces", "att_faces.tar.gz"),
        "lfw": ("lfwcrop-subset", "lfwcrop_grey_62x20.tar.gz"),
    }[name]
    return _read_archive(data_file(folder, file, data_home))


def _read_matlab(path: Path) -> FaceImages:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        content = loadmat(path)
        rows, people = np.asarray(content["fea"], np.float64), np.asarray(content["gnd"]).ravel().astype(int)
        if rows.ndim != 2 or rows.shape != (len(people), 1024):
            raise ValueError(f"expected rows of 1,024 pixels and a number for each, found {rows.shape}")
    except (KeyError, TypeError, ValueError, OSError, NotImplementedError, MatReadError) as error:
        raise ValueError(f"{path}: not a MATLAB file of faces with 'fea' and 'gnd': {error}") from error
    images = rows.reshape(-1, 32, 32).transpose(0, 2, 1) / 255  # pixels are in the order of columns
    return FaceImages(np.ascontiguousarray(images), np.array([f"person {i:02d}" for i in people]))


def _read_archive(path: Path) -> FaceImages:
    images, names = [], []
    try:
        with tarfile.open(path) as archive:
            members = [member for member in archive.getmembers() if member.name.endswith(".pgm") and member.isfile()]
            for member in sorted(members, key=lambda member: _place(member.name)):
                content = archive.extractfile(member)
                if content is None:
                    continue
                images.append(_read_pgm(content.read(), f"{path}:{member.name}"))
                names.append(Path(member.name).parent.name)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ValueError(f"{path}: not an archive of images: {error}") from error
    if not images or len({image.shape for image in images}) != 1:
        raise ValueError(f"{path}: expected PGM images of one size, found {len(images)} images")
    return FaceImages(np.stack(images), np.array(names))


def _place(name: str) -> tuple[str, str]:
    """Return a sort key with numbers in numeric order: s2 before s10."""
    padded = "".join(part.zfill(6) if part.isdigit() else part for part in _digits_apart(name))
    return str(Path(padded).parent), padded


def _digits_apart(name: str) -> list[str]:
    parts = [""]
    for character in name:
        if parts[-1] and character.isdigit() != parts[-1][-1].isdigit():
            parts.append("")
        parts[-1] += character
    return parts


def _read_pgm(content: bytes, where: str) -> np.ndarray:
    """Read a binary grey image: P5, width, height and the largest value in ASCII, then bytes."""
    fields: list[bytes] = []
    position = 0
    while len(fields) < 4 and position < len(content):
        line_end = content.find(b"\n", position)
        line = content[position : line_end if line_end >= 0 else len(content)]
        fields += line.partition(b"#")[0].split()
        position = line_end + 1 if line_end >= 0 else len(content)
    if len(fields) != 4 or fields[0] != b"P5" or not all(field.isdigit() for field in fields[1:]):
        raise ValueError(f"{where}: not a binary PGM image")
    width, height, largest = (int(field) for field in fields[1:])
    pixels = content[position:]
    if not 1 <= largest <= 255 or len(pixels) != width * height or not pixels:
        raise ValueError(f"{where}: expected {width} × {height} bytes, found {len(pixels)}")
    return np.frombuffer(pixels, np.uint8).reshape(height, width) / largest
