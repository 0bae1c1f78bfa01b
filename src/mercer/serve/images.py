"""A dependency-free PNG decoder for images sent by the web pages and other clients.

It supports 8 bits per channel (grey, grey with alpha, RGB, RGBA, palette) and 1, 2, 4 and 16 bits of grey, not
interlaced. Sizes are checked before decompression, and decompression stops at the size in the header.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

__all__ = ["decode_png"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}


def decode_png(data: bytes, *, max_pixels: int = 1 << 24) -> np.ndarray:
    """Return the pixels of a PNG file as numbers from 0 to 255, of shape (H, W) or (H, W, 3).

    Transparent pixels are composited on white.

    Parameters
    ----------
    data : bytes
        The file.
    max_pixels : int, default=2**24
        Larger images are rejected.

    Examples
    --------
    >>> from mercer.report.labellings import _png_rgb
    >>> import numpy as np
    >>> decode_png(_png_rgb(np.full((2, 3, 3), 7))).shape
    (2, 3, 3)
    """
    if data[:8] != _SIGNATURE:
        raise ValueError("not a PNG image")
    header, palette, body = b"", b"", []
    at = 8
    while at + 12 <= len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        chunk = data[at + 8 : at + 8 + size]
        if len(chunk) < size:
            raise ValueError("the PNG image is truncated")
        if kind == b"IHDR":
            header = chunk
        elif kind == b"PLTE":
            palette = chunk
        elif kind == b"IDAT":
            body.append(chunk)
        elif kind == b"IEND":
            break
        at += 12 + size
    if len(header) != 13 or not body:
        raise ValueError("the PNG image has no header or no pixels")
    width, height, depth, colour, method, filtering, interlaced = struct.unpack(">IIBBBBB", header)
    if colour not in _CHANNELS or depth not in _DEPTHS[colour] or method or filtering:
        raise ValueError("the PNG image has a colour type that the standard does not define")
    if interlaced:
        raise ValueError("interlaced PNG images are not supported: save the image without interlacing")
    if not width or not height or width * height > max_pixels:
        raise ValueError(f"the PNG image has {width} × {height} pixels, at most {max_pixels} are allowed")
    channels = _CHANNELS[colour]
    stride = -(-width * channels * depth // 8)
    wanted = height * (stride + 1)
    unpack = zlib.decompressobj()
    try:
        raw = unpack.decompress(b"".join(body), wanted)
    except zlib.error:
        raise ValueError("the pixels of the PNG image are damaged") from None
    if len(raw) != wanted:
        raise ValueError("the PNG image is truncated")
    lines = np.frombuffer(raw, np.uint8).reshape(height, stride + 1)
    pixels = _unfiltered(lines, max(1, channels * depth // 8))
    return _colours(_samples(pixels, width, channels, depth), colour, depth, palette)


def _unfiltered(lines: np.ndarray, step: int) -> np.ndarray:
    """Undo the line filters: differences to the pixels on the left, above, or both."""
    kinds, rows = lines[:, 0], lines[:, 1:].copy()
    if kinds.max() > 4:
        raise ValueError("the pixels of the PNG image are damaged")
    above = np.zeros(rows.shape[1], np.uint8)
    for kind, row in zip(kinds.tolist(), rows, strict=True):
        if kind == 1:
            for channel in range(step):
                np.add.accumulate(row[channel::step], out=row[channel::step], dtype=np.uint8)
        elif kind == 2:
            row += above
        elif kind in (3, 4):
            _recurse(kind, row, above, step)
        above = row
    return rows


def _recurse(kind: int, row: np.ndarray, above: np.ndarray, step: int) -> None:
    """Undo the filters that depend on decoded pixels on the left, pixel by pixel, on plain integers."""
    out, up = row.tolist(), above.tolist()
    for i, value in enumerate(out):
        left = out[i - step] if i >= step else 0
        if kind == 3:
            out[i] = (value + ((left + up[i]) >> 1)) & 255
            continue
        corner = up[i - step] if i >= step else 0
        guess = left + up[i] - corner
        a, b, c = abs(guess - left), abs(guess - up[i]), abs(guess - corner)
        out[i] = (value + (left if a <= b and a <= c else up[i] if b <= c else corner)) & 255
    row[:] = out


def _samples(rows: np.ndarray, width: int, channels: int, depth: int) -> np.ndarray:
    if depth == 16:
        return rows[:, ::2].reshape(len(rows), width, channels)
    if depth == 8:
        return rows.reshape(len(rows), width, channels)
    shifts = np.arange(8 - depth, -1, -depth, dtype=np.uint8)
    spread = (rows[:, :, None] >> shifts) & ((1 << depth) - 1)
    return spread.reshape(len(rows), -1)[:, :width, None]


def _colours(samples: np.ndarray, colour: int, depth: int, palette: bytes) -> np.ndarray:
    if colour == 3:
        table = np.frombuffer(palette[: len(palette) // 3 * 3], np.uint8).reshape(-1, 3)
        if not len(table) or samples.max() >= len(table):
            raise ValueError("the PNG image has colour indices outside its palette")
        return table[samples[:, :, 0]].astype(float)
    values = samples.astype(float)
    if depth < 8:
        values *= 255.0 / ((1 << depth) - 1)
    if colour in (4, 6):
        opaque = values[:, :, -1:] / 255.0
        values = values[:, :, :-1] * opaque + 255.0 * (1 - opaque)
    return values[:, :, 0] if values.shape[2] == 1 else values
