"""Kernels of strings: several ways to count common substrings.

    k(x, z) = Σ_u w(u) #_u(x) #_u(z)     u: substrings of a length, of all lengths, with mismatches, gaps, positions

A string is a str (its characters are code points), bytes, or any other sequence of hashable tokens: a list of words, of
integers, …
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_choice, check_count, check_positive
from mercer.kernels._keyed import KeyedRows, matrices
from mercer.kernels._symbols import ANY, UNKNOWN, Alphabet, Symbols, joined, read_symbols, same_kind
from mercer.kernels.base import INDEFINITE, Kernel, Work

__all__ = [
    "AllSubstrings",
    "EditDistance",
    "Gappy",
    "Mismatch",
    "NGram",
    "Spectrum",
    "Subsequence",
    "WeightedDegree",
]

Weights = float | Sequence[float] | Callable[[int], float] | None

UNITS = ("char", "word")
MOST_FEATURES = 1_000_000
"""Features that one place of a string may give."""
STEPS_A_CALL = 1 << 28
"""Steps of about a nanosecond that one compiled call may take, so that Ctrl-C is heard."""
FEATURES_A_CALL = 1 << 23
"""Features that one compiled call may count, for the same reason."""
LONG = 1 << 13
"""Strings above this length have suffix arrays with every other string instead of one automaton."""


# ---------------------------------------------------------------------------------------------------- counts


class _Counted:
    """Strings as rows of counted substrings; a prepared collection."""

    def __init__(self, kind: str | None, rows: KeyedRows) -> None:
        self.kind = kind
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice) -> _Counted:
        return _Counted(self.kind, self.rows[rows])


class _Counts(Kernel):
    """Inner products of counted substrings. Subclasses say which: `_plan`."""

    has_features = True
    _block_entries = 1 << 22
    unit: str = "char"
    alphabet: Any = None
    unknown: str = "error"
    presence: bool = False

    def _plan(self) -> tuple[str, int, int, int, np.ndarray]:
        """Mode, shortest and longest substring, mismatches or gap or shift, and the value of a feature by length."""
        raise NotImplementedError

    def _check_params(self) -> None:
        check_choice("unit", self.unit, UNITS)
        check_choice("unknown", self.unknown, ("error", "skip"))
        if self.alphabet is not None:
            Alphabet(self.alphabet)
        self._plan()

    def _prepare(self, X: Any) -> Any:
        return self._counted(read_symbols(X, self.unit))

    def _counted(self, symbols: Symbols) -> _Counted:
        mode, shortest, longest, extra, values = self._plan()
        codes, hashes, letters, exact = symbols.codes, symbols.hashes, np.array([ANY], np.uint32), 0
        if self.alphabet is not None:
            alphabet = Alphabet(self.alphabet)
            exact = len(alphabet) if max(2, len(alphabet)) ** longest < 2**63 else 0
            codes, letters, hashes = alphabet.numbers(symbols, bool(exact))
            if self.unknown == "error":
                _refuse_unknown(symbols, codes)

        def rows(part: Symbols) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            return _core.kernels.kmer_rows(
                part.codes, part.offsets, hashes, exact, mode, shortest, longest, extra, values, letters,
                bool(self.presence), 1,
            )  # fmt: skip

        return _Counted(symbols.kind, _counted_rows(Symbols(None, symbols.offsets, codes, None), rows, self._a_place()))

    def _a_place(self) -> int:
        """Features that one place of a string gives, about."""
        return 1

    def _gram(self, A: Any, B: Any, work: Work) -> np.ndarray:
        same_kind(A, B)
        return A.rows.gram(None if B is None else B.rows, work)

    def _diag(self, A: Any, work: Work) -> np.ndarray:
        return A.rows.diag()

    def _features(self, parts: list[Any]) -> list[Any]:
        for part in parts[1:]:
            same_kind(parts[0], part)
        return matrices([part.rows for part in parts])


def _counted_rows(strings: Symbols, rows: Callable[[Symbols], Any], a_place: int) -> KeyedRows:
    """Rows of the strings, some at a time, so that Ctrl-C is heard."""
    ends = np.cumsum((strings.lengths + 1.0) * a_place)
    made: list[Any] = []
    start = 0
    while start < len(strings) or not made:
        done = ends[start - 1] if start else 0.0
        stop = max(start + 1, int(np.searchsorted(ends, done + FEATURES_A_CALL, side="right")))
        made.append(rows(strings[start:stop]))
        start = stop
    if len(made) == 1:
        return KeyedRows(*made[0])
    counts = np.concatenate([np.diff(offsets) for offsets, _, _ in made])
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return KeyedRows(offsets, np.concatenate([part[1] for part in made]), np.concatenate([part[2] for part in made]))


def _refuse_unknown(symbols: Symbols, codes: np.ndarray) -> None:
    places = np.flatnonzero(codes == UNKNOWN)
    if len(places) == 0:
        return
    string, position = symbols.place(int(places[0]))
    symbol = symbols.codes[places[0]]
    name = "a token" if symbols.kind == "tokens" else repr(chr(symbol)) if symbols.kind == "str" else f"byte {symbol}"
    raise ValueError(
        f"string {string} has {name} at position {position}, which is not in the alphabet: extend the alphabet, or use "
        'unknown="skip" to leave out the substrings that hold it'
    )


def _length_weights(weights: Weights, shortest: int, longest: int) -> np.ndarray:
    """w of the lengths 0 .. longest; 0 below the shortest."""
    if weights is None:
        values = np.ones(longest + 1)
    elif callable(weights):
        values = np.array([0.0, *(float(weights(n)) for n in range(1, longest + 1))])
    elif isinstance(weights, Real) and not isinstance(weights, bool):
        values = _powers(check_positive("weights", weights), longest)
    else:
        try:
            given = np.asarray(weights, np.float64)
        except (TypeError, ValueError):
            given = np.zeros((0, 0))
        if given.ndim != 1 or len(given) == 0:
            raise ValueError(f"weights must be None, a number, a list of numbers or a function, got {weights!r}")
        if len(given) > longest:
            raise ValueError(f"weights are for the lengths 1 to {longest}, got {len(given)} of them")
        values = np.concatenate([[0.0], given, np.zeros(longest - len(given))])
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("weights must be finite and not negative for all lengths")
    values[: min(shortest, longest + 1)] = 0.0
    return values


def _powers(base: float, longest: int) -> np.ndarray:
    """base^0 .. base^longest; 0 from where they are too small for a double, which are slow to compute."""
    reach = longest if base >= 1 else min(longest, int(-700 / math.log(base)))
    values = np.zeros(longest + 1)
    values[: reach + 1] = base ** np.arange(reach + 1, dtype=float)
    return values


def _check_length(name: str, value: Any) -> int:
    if check_count(name, value) > MOST_FEATURES:
        raise ValueError(f"{name} must be at most {MOST_FEATURES:,}, got {value}")
    return int(value)


def _check_features(name: str, count: int) -> None:
    if count > MOST_FEATURES:
        raise ValueError(
            f"{name} makes {count:,} features at each place of a string with these parameters, the limit is "
            f"{MOST_FEATURES:,}"
        )


class NGram(_Counts):
    """Count common substrings of length n: Σ_u #_u(x) #_u(z) over all u of n symbols.

    The time is linear in the lengths of the strings, for any n. A string shorter than n has the value 0 with all
    strings.

    Parameters
    ----------
    n : int, default=3
        Length of the substrings.
    unit : {"char", "word"}, default="char"
        Symbols of a str or bytes: characters, or words between white space. Symbols of other sequences are their items.
    method : {"hash", "suffix"}, default="hash"
        ``"hash"``: rows of counts with 64-bit keys, one inner product per pair. ``"suffix"``: suffix arrays of the
        pairs, without hashing; for few long strings, and to check ``"hash"``.

    See Also
    --------
    Spectrum : substrings of several lengths, presence instead of counts, a fixed alphabet.

    Examples
    --------
    >>> from mercer.kernels import NGram
    >>> NGram(3).pair("ABABA", "BABAB")  # ABA is in them twice and once, BAB once and twice
    4.0
    >>> NGram(2, unit="word").pair("to be or not to be", "not to be")
    3.0
    >>> NGram(2).pair([1, 2, 1, 2], [2, 1, 2])
    3.0
    """

    def __init__(self, n: int = 3, unit: str = "char", method: str = "hash") -> None:
        self.n = n
        self.unit = unit
        self.method = method

    def _plan(self) -> tuple[str, int, int, int, np.ndarray]:
        n = _check_length("n", self.n)
        values = np.zeros(n + 1)
        values[n] = 1.0
        return "substrings", n, n, 0, values

    def _check_params(self) -> None:
        check_choice("method", self.method, ("hash", "suffix"))
        check_choice("unit", self.unit, UNITS)
        _check_length("n", self.n)

    def _prepare(self, X: Any) -> Any:
        symbols = read_symbols(X, self.unit)
        return symbols if self.method == "suffix" else self._counted(symbols)

    def _gram(self, A: Any, B: Any, work: Work) -> np.ndarray:
        if self.method == "hash":
            return super()._gram(A, B, work)
        fill, steps = _substring_filling(A, self._cumulative(_longest(A, B)), work)
        return _filled(A, B, steps, fill)

    def _diag(self, A: Any, work: Work) -> np.ndarray:
        if self.method == "hash":
            return super()._diag(A, work)
        fill, steps = _substring_filling(A, self._cumulative(_longest(A, None)), work)
        return _diagonal(A, steps * (A.lengths + 1.0), fill)

    def _features(self, parts: list[Any]) -> list[Any]:
        return super()._features([self._counted(part) if isinstance(part, Symbols) else part for part in parts])

    def _cumulative(self, longest: int) -> np.ndarray:
        return (np.arange(longest + 1) >= self.n).astype(float)


class Spectrum(_Counts):
    """Counts of k-mers, of one length or of all lengths up to k: ``Σ_u w(|u|) #_u(x) #_u(z)``.

    Parameters
    ----------
    k : int, default=3
        Length of the substrings, or the maximum length.
    shortest : int, optional
        Least length; by default k. With 1, the blended (bounded-range) spectrum kernel.
    weights : None, float, sequence of float or callable, default=None
        w by length. None: 1; a float d: d^length; a sequence: w(1), w(2), …; a callable: length → weight. None negative.
    presence : bool, default=False
        Whether a substring counts once, however often it occurs in a string.
    alphabet : str, bytes or sequence of letters, optional
        Letters that strings may have. With an alphabet, k-mers have exact codes up to (number of letters)^k < 2^63.
        Without one, strings of A, C, G, T have exact codes up to k = 30, and other characters below 256 up to k = 7.
        All other k-mers get a 62-bit hash.
    unknown : {"error", "skip"}, default="error"
        Symbols outside the alphabet raise an error, or the substrings that contain them are skipped.
    unit : {"char", "word"}, default="char"
        Symbols of a str or bytes: characters, or words between white space.

    References
    ----------
    .. [Leslie2002] C. Leslie, E. Eskin and W. S. Noble. The spectrum kernel: a string kernel for SVM protein
       classification. Pacific Symposium on Biocomputing, 2002.

    Examples
    --------
    >>> from mercer.kernels import Spectrum
    >>> Spectrum(3).pair("GATTACA", "ATTAC")
    3.0
    >>> Spectrum(3, shortest=1, weights=0.25).pair("GATTACA", "ATTAC")
    3.046875
    >>> Spectrum(3, alphabet="ACGT").pair("GATTACA", "GATNACA")
    Traceback (most recent call last):
        ...
    ValueError: string 0 has 'N' at position 3, which is not in the alphabet: extend the alphabet, or use unknown="skip" to leave out the substrings that hold it
    """  # noqa: E501

    def __init__(
        self,
        k: int = 3,
        shortest: int | None = None,
        weights: Weights = None,
        presence: bool = False,
        alphabet: Any = None,
        unknown: str = "error",
        unit: str = "char",
    ) -> None:
        self.k = k
        self.shortest = shortest
        self.weights = weights
        self.presence = presence
        self.alphabet = alphabet
        self.unknown = unknown
        self.unit = unit

    def _plan(self) -> tuple[str, int, int, int, np.ndarray]:
        k = _check_length("k", self.k)
        shortest = k if self.shortest is None else check_count("shortest", self.shortest)
        if shortest > k:
            raise ValueError(f"shortest must be at most k = {k}, got {shortest}")
        return "substrings", shortest, k, 0, np.sqrt(_length_weights(self.weights, shortest, k))

    def _a_place(self) -> int:
        return int(self.k) + 1 - int(self.k if self.shortest is None else self.shortest)


class Mismatch(_Counts):
    """Counts of k-mers that differ in at most m positions: Σ_u Φ_u(x) Φ_u(z), Φ_u(x) = #{i : u ≈ x[i:i+k]}.

    With m = 0 it is `NGram`.

    Parameters
    ----------
    k : int, default=3
        Length of the substrings.
    m : int, default=1
        Maximum number of mismatches of u and a substring of the string.
    alphabet : str, bytes or sequence of letters, optional
        Letters of u: u runs over all strings of k letters. None: replaced letters become wildcards, so a feature is a
        k-mer with at most m wildcards (the wildcard kernel), which needs no alphabet.
    unknown : {"error", "skip"}, default="error"
        Symbols outside the alphabet raise an error, or the substrings that contain them are skipped.
    unit : {"char", "word"}, default="char"
        Symbols of a str or bytes: characters, or words between white space.

    References
    ----------
    .. [Leslie2004] C. Leslie, E. Eskin, A. Cohen, J. Weston and W. S. Noble. Mismatch string kernels for discriminative
       protein classification. Bioinformatics 20, 2004.

    Examples
    --------
    >>> from mercer.kernels import Mismatch
    >>> Mismatch(3, 1, alphabet="ACGT").pair("AAA", "AAC")  # AAA, AAC, AAG, AAT are near to both
    4.0
    >>> Mismatch(3, 1).pair("AAA", "AAC")  # AA? is
    1.0
    """

    def __init__(
        self, k: int = 3, m: int = 1, alphabet: Any = None, unknown: str = "error", unit: str = "char"
    ) -> None:
        self.k = k
        self.m = m
        self.alphabet = alphabet
        self.unknown = unknown
        self.unit = unit

    def _plan(self) -> tuple[str, int, int, int, np.ndarray]:
        k, m = _check_length("k", self.k), min(check_count("m", self.m, 0), int(self.k))
        _check_features("Mismatch", self._a_place())
        return "mismatch" if m > 0 else "substrings", k, k, m, np.ones(k + 1)

    def _a_place(self) -> int:
        others = 1 if self.alphabet is None else len(Alphabet(self.alphabet)) - 1
        return sum(math.comb(int(self.k), i) * others**i for i in range(min(int(self.m), int(self.k)) + 1))


class Gappy(_Counts):
    """Counts of k-mers with up to ``gap`` gaps: Φ_u(x) = Σ decay^span over i₁ < … < iₖ with x[i₁] … x[iₖ] = u.

    The span iₖ − i₁ + 1 is at most k + gap. Without a gap it is decay^2k `NGram`; with gaps of any length it is
    `Subsequence`.

    Parameters
    ----------
    k : int, default=3
        Number of symbols in a subsequence.
    gap : int, default=1
        Maximum number of symbols skipped between the first and the last one.
    decay : float, default=1.0
        Above 0. A subsequence counts decay^span; with 1 all count the same.
    alphabet : str, bytes or sequence of letters, optional
        Letters that strings may have; see `Spectrum`.
    unknown : {"error", "skip"}, default="error"
        Symbols outside the alphabet raise an error, or the subsequences that contain them are skipped.
    unit : {"char", "word"}, default="char"
        Symbols of a str or bytes: characters, or words between white space.

    Examples
    --------
    >>> from mercer.kernels import Gappy
    >>> Gappy(2, gap=1).pair("cat", "cart")  # ca, ct (skipping a) and at; ca, cr, ar, at, rt
    2.0
    >>> Gappy(2, gap=2, decay=0.5).pair("cat", "cart")
    0.1015625
    """

    def __init__(
        self,
        k: int = 3,
        gap: int = 1,
        decay: float = 1.0,
        alphabet: Any = None,
        unknown: str = "error",
        unit: str = "char",
    ) -> None:
        self.k = k
        self.gap = gap
        self.decay = decay
        self.alphabet = alphabet
        self.unknown = unknown
        self.unit = unit

    def _plan(self) -> tuple[str, int, int, int, np.ndarray]:
        k, gap = _check_length("k", self.k), check_count("gap", self.gap, 0)
        decay = check_positive("decay", self.decay)
        gap = gap if k > 1 else 0
        if gap and k > 1000:
            raise ValueError(f"k must be at most 1000 where there are gaps, got {k}")
        _check_features("Gappy", self._a_place())
        with np.errstate(over="ignore"):
            values = decay ** np.arange(k + gap + 1, dtype=float)
        if not np.isfinite(values).all():
            raise ValueError(f"decay = {decay} to the power of the span k + gap = {k + gap} is too large")
        return "gappy" if gap else "substrings", k, k, gap, values

    def _a_place(self) -> int:
        return math.comb(int(self.k) + int(self.gap) - 1, int(self.gap)) if self.k > 1 else 1


# ---------------------------------------------------------------------------------------------------- pairs


Fill = Callable[..., None]
"""A compiled function after its own parameters: (codes, offsets, other codes, other offsets, sigma, start, stop, K)."""


class _Pairwise(Kernel):
    """Kernels that compare the symbols of every two strings: a compiled function fills rows of the matrix."""

    unit: str = "char"

    def _check_params(self) -> None:
        check_choice("unit", self.unit, UNITS)

    def _prepare(self, X: Any) -> Symbols:
        return read_symbols(X, self.unit)

    def _filling(self, A: Symbols, B: Symbols | None, work: Work) -> tuple[Fill, np.ndarray]:
        """What fills rows of the matrix, and how many steps one symbol of a column takes in each row."""
        raise NotImplementedError

    def _gram(self, A: Symbols, B: Symbols | None, work: Work) -> np.ndarray:
        fill, steps = self._filling(A, B, work)
        return _filled(A, B, steps, fill)

    def _diag(self, A: Symbols, work: Work) -> np.ndarray:
        fill, steps = self._filling(A, None, work)
        return _diagonal(A, steps * (self._in_order(A) + 1.0), fill)

    @staticmethod
    def _in_order(A: Symbols) -> np.ndarray:
        """Lengths of the strings in the order in which rows of a collection with itself are filled."""
        return A.lengths


def _longest(A: Symbols, B: Symbols | None) -> int:
    return max(int(part.lengths.max(initial=0)) for part in (A, B) if part is not None)


def _filled(A: Symbols, B: Symbols | None, steps: np.ndarray, fill: Fill) -> np.ndarray:
    """The matrix, a few rows a call."""
    left, right, sigma = joined(A, B)
    columns = A if B is None else B
    K = np.zeros((len(A), len(columns)))
    ends = np.cumsum(steps * float(columns.lengths.sum() + len(columns)))
    start = 0
    while start < len(A):
        done = ends[start - 1] if start else 0.0
        stop = min(len(A), max(start + 1, int(np.searchsorted(ends, done + STEPS_A_CALL, side="right"))))
        fill(left, A.offsets, right, None if B is None else B.offsets, sigma, start, stop, K)
        start = stop
    return K


def _diagonal(A: Symbols, steps: np.ndarray, fill: Fill) -> np.ndarray:
    """The values of the strings with themselves, which take so many steps each, some strings a call."""
    codes, _, sigma = joined(A, None)
    K = np.zeros((len(A), 1))
    ends = np.cumsum(steps)
    start = 0
    while start < len(A):
        done = ends[start - 1] if start else 0.0
        stop = min(len(A), max(start + 1, int(np.searchsorted(ends, done + STEPS_A_CALL, side="right"))))
        fill(codes, A.offsets, None, None, sigma, start, stop, K)
        start = stop
    return K[:, 0]


def _substring_filling(A: Symbols, cumulative: np.ndarray, work: Work) -> tuple[Fill, np.ndarray]:
    def fill(left: Any, offsets: Any, right: Any, other: Any, sigma: int, start: int, stop: int, K: Any) -> None:
        _core.kernels.all_substrings_gram(left, offsets, right, other, sigma, cumulative, start, stop, K, work.threads)

    return fill, np.where(A.lengths > LONG, 100.0, 10.0)


class AllSubstrings(_Pairwise):
    """Count common substrings of all lengths: ``Σ_u w(|u|) #_u(x) #_u(z)`` over all strings u.

    The time for two strings is linear in the sum of their lengths. The method is a suffix array of the pair. If a
    string is compared with many short ones, its suffix automaton is built once instead (Vishwanathan and Smola's
    kernel).

    Parameters
    ----------
    weights : None, float, sequence of float or callable, default=None
        w by length. None: 1; a float d: d^length, d < 1 for less weight of long ones; a sequence: w(1), w(2), …, 0
        beyond it; a callable: length → weight. None negative.
    shortest : int, default=1
        Minimum length that counts.
    longest : int, optional
        Maximum length that counts.
    unit : {"char", "word"}, default="char"
        Symbols of a str or bytes: characters, or words between white space.

    References
    ----------
    .. [Vishwanathan2003] S. V. N. Vishwanathan and A. Smola. Fast kernels for string and tree matching. NIPS, 2003.

    Examples
    --------
    >>> from mercer.kernels import AllSubstrings
    >>> AllSubstrings().pair("abab", "ab")  # a, b and ab, each twice
    6.0
    >>> AllSubstrings(weights=0.5).pair("abab", "ab")
    2.5
    >>> AllSubstrings(shortest=3, longest=3).pair("ABABA", "BABAB")  # NGram(3)
    4.0
    """

    def __init__(
        self, weights: Weights = None, shortest: int = 1, longest: int | None = None, unit: str = "char"
    ) -> None:
        self.weights = weights
        self.shortest = shortest
        self.longest = longest
        self.unit = unit

    def _check_params(self) -> None:
        super()._check_params()
        shortest = check_count("shortest", self.shortest)
        if self.longest is not None and check_count("longest", self.longest) < shortest:
            raise ValueError(f"longest must be at least shortest = {shortest}, got {self.longest}")
        _cumulative(self, 1)

    def _filling(self, A: Symbols, B: Symbols | None, work: Work) -> tuple[Fill, np.ndarray]:
        return _substring_filling(A, _cumulative(self, _longest(A, B)), work)


def _cumulative(kernel: AllSubstrings | NGram, longest: int) -> np.ndarray:
    """w(1) + … + w(l) for l = 0 .. longest."""
    if isinstance(kernel, NGram):
        return kernel._cumulative(longest)
    given = kernel.weights
    if given is not None and not callable(given) and not isinstance(given, Real):
        reach = max(longest, len(np.atleast_1d(np.asarray(given, dtype=object))))
        weights = _length_weights(given, int(kernel.shortest), reach)[: longest + 1]
    else:
        with np.errstate(over="ignore"):
            weights = _length_weights(given, int(kernel.shortest), longest)
    if kernel.longest is not None:
        weights[int(kernel.longest) + 1 :] = 0.0
    total = np.cumsum(weights)
    if not np.isfinite(total).all():
        raise ValueError("weights are too large for strings of this length")
    return total


class WeightedDegree(_Pairwise):
    """Matching substrings at the same position: Σ_d β_d #{i : x[i:i+d] = z[i:i+d]} for d up to the degree.

    With a shift S, also at positions i and j that are at most S apart, with the weight ``1 − |i − j| / (S + 1)``. Use
    it for aligned strings, such as windows around a site in DNA (Rätsch and Sonnenburg's kernel).

    Parameters
    ----------
    degree : int, default=5
        Maximum length of the substrings, D.
    shift : int, default=0
        Maximum distance S of their positions.
    weights : None, float, sequence of float or callable, default=None
        β by length. None: 2 (D − d + 1) / (D (D + 1)); otherwise as for `Spectrum`.
    unit : {"char", "word"}, default="char"
        Symbols of a str or bytes: characters, or words between white space.

    References
    ----------
    .. [Ratsch2004] G. Rätsch and S. Sonnenburg. Accurate splice site detection for Caenorhabditis elegans. In Kernel
       Methods in Computational Biology, MIT Press, 2004.

    Examples
    --------
    >>> from mercer.kernels import WeightedDegree
    >>> WeightedDegree(2, weights=[1, 1]).pair("GATTACA", "GATCACA")  # six letters, four pairs of letters
    10.0
    >>> WeightedDegree(1, shift=1, weights=[1]).pair("AC", "CA")  # both letters, one place apart
    1.0
    """

    has_features = True

    def __init__(self, degree: int = 5, shift: int = 0, weights: Weights = None, unit: str = "char") -> None:
        self.degree = degree
        self.shift = shift
        self.weights = weights
        self.unit = unit

    def _check_params(self) -> None:
        super()._check_params()
        degree, shift = check_count("degree", self.degree), check_count("shift", self.shift, 0)
        _check_features("WeightedDegree", degree * (shift + 1))
        self._betas()

    def _betas(self) -> np.ndarray:
        """β of the lengths 0 .. degree."""
        D = int(self.degree)
        if self.weights is None:
            return np.concatenate([[0.0], 2.0 * np.arange(D, 0, -1) / (D * (D + 1.0))])
        return _length_weights(self.weights, 1, D)

    def _filling(self, A: Symbols, B: Symbols | None, work: Work) -> tuple[Fill, np.ndarray]:
        betas, shift = self._betas()[1:], int(self.shift)

        def fill(left: Any, offsets: Any, right: Any, other: Any, sigma: int, start: int, stop: int, K: Any) -> None:
            _core.kernels.weighted_degree_gram(
                left, offsets, right, other, sigma, shift, betas, start, stop, K, work.threads
            )

        return fill, np.full(len(A), 0.1 * len(betas) * (2 * shift + 1))

    def _counted(self, symbols: Symbols) -> _Counted:
        D, shift = int(self.degree), int(self.shift)
        values = np.sqrt(self._betas() / (shift + 1))

        def rows(part: Symbols) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            return _core.kernels.kmer_rows(
                part.codes, part.offsets, part.hashes, 0, "positional", 1, D, shift, values,
                np.zeros(0, np.uint32), False, 1,
            )  # fmt: skip

        return _Counted(symbols.kind, _counted_rows(symbols, rows, D * (shift + 1)))

    def _features(self, parts: list[Symbols]) -> list[Any]:
        for part in parts[1:]:
            same_kind(parts[0], part)
        return matrices([self._counted(part).rows for part in parts])


class Subsequence(_Pairwise):
    """Common subsequences of two strings, with weights that decay with their span (string subsequence kernel).

    Σ_u Φ_u(x) Φ_u(z) with Φ_u(x) = Σ decay^span over all i₁ < … < iₙ with x[i₁] … x[iₙ] = u, span iₙ − i₁ + 1. The time
    for two strings is ``length · |x| · |z|``.

    Parameters
    ----------
    length : int, default=3
        Number of symbols in a subsequence, n.
    decay : float, default=0.5
        Above 0, at most 1.
    shortest : int, optional
        Minimum length of subsequences; by default ``length``. The kernels of all lengths are summed.
    unit : {"char", "word"}, default="char"
        Symbols of a str or bytes: characters, or words between white space.

    References
    ----------
    .. [Lodhi2002] H. Lodhi, C. Saunders, J. Shawe-Taylor, N. Cristianini and C. Watkins. Text classification using
       string kernels. Journal of Machine Learning Research 2, 2002.

    Examples
    --------
    >>> from mercer.kernels import Subsequence
    >>> Subsequence(2, decay=0.5).pair("cat", "cart")  # ca: 0.5^4, ct: 0.5^(3 + 4), at: 0.5^(2 + 3)
    0.1015625
    """

    def __init__(self, length: int = 3, decay: float = 0.5, shortest: int | None = None, unit: str = "char") -> None:
        self.length = length
        self.decay = decay
        self.shortest = shortest
        self.unit = unit

    def _check_params(self) -> None:
        super()._check_params()
        if check_count("length", self.length) > 10_000:
            raise ValueError(f"length must be at most 10000, got {self.length}")
        if check_positive("decay", self.decay) > 1:
            raise ValueError(f"decay must be at most 1, got {self.decay!r}")
        if self.shortest is not None and check_count("shortest", self.shortest) > self.length:
            raise ValueError(f"shortest must be at most length = {self.length}, got {self.shortest}")

    def _filling(self, A: Symbols, B: Symbols | None, work: Work) -> tuple[Fill, np.ndarray]:
        length, decay = int(self.length), float(self.decay)
        shortest = length if self.shortest is None else int(self.shortest)

        def fill(left: Any, offsets: Any, right: Any, other: Any, sigma: int, start: int, stop: int, K: Any) -> None:
            _core.kernels.subsequence_gram(
                left, offsets, right, other, sigma, shortest, length, decay, start, stop, K, work.threads
            )

        return fill, length * ((self._in_order(A) if B is None else A.lengths) + 1.0)

    @staticmethod
    def _in_order(A: Symbols) -> np.ndarray:
        return np.sort(A.lengths)  # a collection with itself is taken by length


class EditDistance(_Pairwise):
    """−d(x, z), or exp(−γ d(x, z)), d the least cost of insertions, deletions and substitutions that turn x into z.

    Neither is positive definite in general, so methods that require definiteness raise an error.
    ``EditDistance().corrected(X)`` is positive definite: it drops the negative eigenvalues of the matrix of the
    training objects X.

    Parameters
    ----------
    gamma : float, optional
        None: −d; otherwise exp(−γ d), γ > 0.
    indel : float, default=1.0
        Cost of inserting or deleting a symbol; one number, because the kernel must be symmetric.
    substitution : float, default=1.0
        Cost of replacing a symbol. If both costs are equal, 64 positions are compared at a time.
    unit : {"char", "word"}, default="char"
        Symbols of a str or bytes: characters, or words between white space.

    Examples
    --------
    >>> from mercer.kernels import EditDistance
    >>> EditDistance().pair("kitten", "sitting")
    -3.0
    >>> EditDistance(gamma=0.5).definiteness
    'indefinite'
    >>> words = ["kitten", "sitting", "mitten", "sit"]
    >>> EditDistance(gamma=0.5).corrected(words).definiteness
    'pd'
    """

    def __init__(
        self, gamma: float | None = None, indel: float = 1.0, substitution: float = 1.0, unit: str = "char"
    ) -> None:
        self.gamma = gamma
        self.indel = indel
        self.substitution = substitution
        self.unit = unit

    @property
    def definiteness(self) -> str:
        return INDEFINITE

    def _check_params(self) -> None:
        super()._check_params()
        if self.gamma is not None:
            check_positive("gamma", self.gamma)
        check_positive("indel", self.indel)
        check_positive("substitution", self.substitution)

    def _filling(self, A: Symbols, B: Symbols | None, work: Work) -> tuple[Fill, np.ndarray]:
        indel, substitution = float(self.indel), float(self.substitution)

        def fill(left: Any, offsets: Any, right: Any, other: Any, sigma: int, start: int, stop: int, K: Any) -> None:
            _core.kernels.edit_distance_gram(
                left, offsets, right, other, sigma, indel, substitution, start, stop, K, work.threads
            )

        return fill, 3.0 * (A.lengths // (64 if indel == substitution else 1) + 1)

    def _gram(self, A: Symbols, B: Symbols | None, work: Work) -> np.ndarray:
        return self._of_distance(super()._gram(A, B, work))

    def _of_distance(self, d: np.ndarray) -> np.ndarray:
        return 0.0 - d if self.gamma is None else np.exp(-float(self.gamma) * d)

    def _diag(self, A: Symbols, work: Work) -> np.ndarray:
        return self._of_distance(np.zeros(len(A)))
