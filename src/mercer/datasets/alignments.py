"""Pairs of sequences with known alignments, drawn from a pair model with planted scores.

A pair of sequences is generated from left to right. Before each aligned pair of letters, and again at the end, a run of
unpaired letters of s occurs with probability δ, then a run of unpaired letters of t with probability δ. A run has
length l with probability (1 − ε) ε^(l−1), and its letters are drawn from frequencies f. Aligned letters (a, b) are
drawn from q. So

    log p(s, t, y) = Σ_pairs S[a, b] + Σ_gaps (open + (l − 1) extend) + a term of s and t alone
    S[a, b] = log q(a, b) / (f(a) f(b)) + 2 log (1 − δ),   open = log δ (1 − ε) / (1 − δ),   extend = log ε

up to the number of pairs, which is drawn separately. The planted scores define the most probable alignment.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer._validation import check_count, check_positive

__all__ = ["AlignmentTask", "make_alignments"]

_LETTERS = "ACDEFGHIKLMNPQRSTVWYBJOUXZabcdefghijklmnopqrstuvwxyz"


class AlignmentTask(NamedTuple):
    """Pairs of strings, their alignments and the planted scores; see :func:`make_alignments`."""

    pairs: list[tuple[str, str]]
    alignments: list[np.ndarray]
    alphabet: str
    substitution: np.ndarray
    gap_open: float
    gap_extend: float


def make_alignments(
    n: int = 100,
    length: int | tuple[int, int] = (20, 40),
    n_letters: int = 20,
    *,
    conservation: float = 2.0,
    gap_rate: float = 0.05,
    gap_extension: float = 0.5,
    flank: int = 0,
    random_state: int | np.random.Generator | None = 0,
) -> AlignmentTask:
    """Draw pairs of strings with known alignments from a model with planted substitution and gap scores.

    Parameters
    ----------
    n : int, default=100
        Number of pairs.
    length : int or (low, high), default=(20, 40)
        Number of aligned letters; for a pair of numbers, uniform from ``low`` to ``high``, both included.
    n_letters : int, default=20
        Size of the alphabet, up to 52.
    conservation : float, default=2.0
        Strength of conservation: raises the log-odds of equal letters by about this value.
    gap_rate : float, default=0.05
        δ: probability of a run of unpaired letters of either string before each pair.
    gap_extension : float, default=0.5
        ε: probability that such a run continues.
    flank : int, default=0
        Add from 0 to this many unrelated letters before and after each string, for local alignment.
    random_state : int, Generator or None, default=0
        Seed; the same seed gives the same task.

    Returns
    -------
    task : AlignmentTask
        ``pairs`` of strings, ``alignments`` as arrays of index pairs (i, j), ``alphabet``, and the planted
        ``substitution`` matrix, ``gap_open`` and ``gap_extend``: a gap of length l scores
        ``gap_open + (l − 1) · gap_extend``.

    Examples
    --------
    >>> from mercer.datasets import make_alignments
    >>> task = make_alignments(3, length=8, random_state=0)
    >>> len(task.pairs), task.substitution.shape
    (3, (20, 20))
    >>> bool((task.substitution == task.substitution.T).all())
    True
    """
    check_count("n", n, 0)
    low, high = (length, length) if isinstance(length, int) else length
    check_count("length", low, 0)
    check_count("length", high, 0)
    if low > high:
        raise ValueError(f"length must be a pair (low, high) with low <= high, got {(low, high)}")
    if check_count("n_letters", n_letters, 2) > len(_LETTERS):
        raise ValueError(f"n_letters must be at most {len(_LETTERS)}, got {n_letters}")
    check_positive("conservation", conservation)
    for name, value in (("gap_rate", gap_rate), ("gap_extension", gap_extension)):
        if check_positive(name, value) >= 1:
            raise ValueError(f"{name} must be a probability below 1, got {value!r}")
    check_count("flank", flank, 0)

    rng = np.random.default_rng(random_state)
    f, q, log_odds = _letter_model(n_letters, conservation, rng)
    pairs, alignments = [], []
    alphabet = np.array(list(_LETTERS[:n_letters]))
    for size in rng.integers(low, high + 1, size=n):
        s, t, y = _draw_pair(int(size), f, q, gap_rate, gap_extension, flank, rng)
        pairs.append(("".join(alphabet[s]), "".join(alphabet[t])))
        alignments.append(y)
    return AlignmentTask(
        pairs,
        alignments,
        _LETTERS[:n_letters],
        log_odds + 2 * np.log1p(-gap_rate),
        float(np.log(gap_rate * (1 - gap_extension) / (1 - gap_rate))),
        float(np.log(gap_extension)),
    )


def _letter_model(
    n_letters: int, conservation: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return letter frequencies f, symmetric joint frequencies q of aligned letters, and log q(a, b) / (f(a) f(b))."""
    f = rng.dirichlet(np.full(n_letters, 10.0))
    raw = rng.normal(size=(n_letters, n_letters))
    log_odds = (raw + raw.T) / 2 + np.diag(np.full(n_letters, conservation))
    q = np.outer(f, f) * np.exp(log_odds)
    log_odds -= np.log(q.sum())
    return f, q / q.sum(), log_odds


def _draw_pair(
    size: int, f: np.ndarray, q: np.ndarray, gap_rate: float, gap_extension: float, flank: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw two strings of letter numbers and their alignment."""
    runs = rng.geometric(1 - gap_extension, size=(size + 1, 2)) * (rng.random((size + 1, 2)) < gap_rate)
    before, after = rng.integers(0, flank + 1, size=(2, 2))
    runs[0] += before
    runs[-1] += after
    y = (np.cumsum(runs[:-1], axis=0) + np.arange(size)[:, None]).astype(np.int64)
    letters = rng.choice(len(f) ** 2, size=size, p=q.ravel())
    sequences = []
    for side, aligned in enumerate((letters // len(f), letters % len(f))):
        x = rng.choice(len(f), size=size + int(runs[:, side].sum()), p=f)
        x[y[:, side]] = aligned
        sequences.append(x)
    return sequences[0], sequences[1], y
