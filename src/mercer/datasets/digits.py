"""Handwritten keypad codes: consecutive digits are neighbouring keys of a telephone keypad.

    1 2 3
    4 5 6        after 5 comes 2, 4, 6 or 8; after 0 comes 8
    7 8 9
      0

The digits are noisy 8 × 8 images of scikit-learn. A single digit is often unreadable, but its neighbours restrict it. A
code is a random walk on the keypad's graph. A digit has 3.2 bits of entropy alone and 1.5 bits given its left
neighbour; a first-order chain can learn the difference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["DigitCodes", "make_digit_codes"]

_NEIGHBOURS = {
    0: (8,),
    1: (2, 4),
    2: (1, 3, 5),
    3: (2, 6),
    4: (1, 5, 7),
    5: (2, 4, 6, 8),
    6: (3, 5, 9),
    7: (4, 8),
    8: (0, 5, 7, 9),
    9: (6, 8),
}
_LENGTHS = (6, 10)
_NOISE = 0.4

Floats = NDArray[np.float64]


class DigitCodes(NamedTuple):
    """Training and test codes; see :func:`make_digit_codes`."""

    X_train: list[Floats]
    y_train: list[list[str]]
    X_test: list[Floats]
    y_test: list[list[str]]

    def images(self, subset: str = "test") -> list[Floats]:
        """Return the codes as images: one array of shape (length, 8, 8) per code, 0 for paper and 1 for ink.

        Examples
        --------
        >>> from mercer.datasets import make_digit_codes
        >>> codes = make_digit_codes(n_train=1, n_test=1)
        >>> codes.images("train")[0].shape[1:]
        (8, 8)
        """
        if subset not in ("train", "test"):
            raise ValueError(f"subset must be 'train' or 'test', found {subset!r}")
        return [x.reshape(-1, 8, 8) for x in (self.X_train if subset == "train" else self.X_test)]


def make_digit_codes(
    n_train: int = 400, n_test: int = 200, random_state: int | np.random.Generator | None = 0
) -> DigitCodes:
    """Generate handwritten codes of 6 to 10 digits, each a finger's walk over neighbouring keys of a telephone keypad.

    The images of each digit in scikit-learn's ``load_digits`` are split at random, three in five for training; no image
    of a training code appears in a test code. Within each part, an image may be used several times. Each drawn image
    gets Gaussian noise of standard deviation 0.4 per pixel (ink 1, paper 0), clipped to 0 ... 1.

    Parameters
    ----------
    n_train, n_test : int
        Numbers of codes.
    random_state : int, Generator or None, default=0
        Seed; the same seed gives the same codes.

    Returns
    -------
    codes : DigitCodes
        ``X_train``, ``y_train``, ``X_test``, ``y_test``: a code in X is an array of shape (length, 64), and in y a list
        of the strings ``"0"`` ... ``"9"``. ``codes.images("test")`` returns the images.

    Examples
    --------
    >>> from mercer.datasets import make_digit_codes
    >>> codes = make_digit_codes(n_train=20, n_test=10)
    >>> codes.X_train[0].shape == (len(codes.y_train[0]), 64)
    True
    """
    for name, value in (("n_train", n_train), ("n_test", n_test)):
        if value < 0:
            raise ValueError(f"{name} must not be negative, found {value}")
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    pixels = pixels / 16.0
    rng = np.random.default_rng(random_state)
    pools: tuple[list[Floats], list[Floats]] = ([], [])
    for digit in range(10):
        members = rng.permutation(np.flatnonzero(digits == digit))
        cut = 3 * len(members) // 5
        pools[0].append(pixels[members[:cut]])
        pools[1].append(pixels[members[cut:]])
    train = [_write(_walk(rng), pools[0], rng) for _ in range(n_train)]
    test = [_write(_walk(rng), pools[1], rng) for _ in range(n_test)]
    return DigitCodes([x for x, _ in train], [y for _, y in train], [x for x, _ in test], [y for _, y in test])


def _walk(rng: np.random.Generator) -> list[int]:
    """Draw the digits of one code; the first digit in proportion to its neighbours, which makes the walk stationary."""
    starts = [digit for digit, near in _NEIGHBOURS.items() for _ in near]
    code = [starts[rng.integers(len(starts))]]
    length = rng.integers(_LENGTHS[0], _LENGTHS[1] + 1)
    while len(code) < length:
        near = _NEIGHBOURS[code[-1]]
        code.append(near[rng.integers(len(near))])
    return code


def _write(code: list[int], pool: list[Floats], rng: np.random.Generator) -> tuple[Floats, list[str]]:
    """Draw noisy images of the code, and return its labels."""
    ink = np.stack([pool[digit][rng.integers(len(pool[digit]))] for digit in code])
    noisy = np.clip(ink + _NOISE * rng.standard_normal(ink.shape), 0.0, 1.0)
    return noisy, [str(digit) for digit in code]
