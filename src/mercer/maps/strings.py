"""Map strings to hashed substring counts: string kernels as inner products of sparse rows.

k(x, z) = Σ_u λ_|u|² #_u(x) #_u(z)     is     ⟨Φ(x), Φ(z)⟩  with  Φ_u(x) = λ_|u| #_u(x)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError

from mercer import _core
from mercer._state.saved import Fields, Objects, Optional
from mercer._validation import check_choice, check_count, check_seed, thread_count
from mercer.data import TextBuffer
from mercer.maps.hashed import HashedMap, check_dtype, to_csr

__all__ = ["StringHasher"]

KERNELS = ("spectrum", "bounded", "mismatch", "gappy", "positional")
BLOCK = 1024
MOST_FEATURES = 1_000_000
"""Maximum number of features per position of a string."""


class StringHasher(HashedMap):
    """Substrings of strings, hashed into 2^n_bits columns: explicit feature maps of string kernels.

    With k = ``max_length``, #_u(x) the number of occurrences of u in x, and λ the ``weights``, the features are

    ============  ==================================================================================================
    kernel        feature map
    ============  ==================================================================================================
    spectrum      ``Φ_u(x) = λ_k #_u(x)`` for substrings u of length k
    bounded       ``Φ_u(x) = λ_|u| #_u(x)`` for substrings u of length 1 to k
    mismatch      ``Φ_u(x) = λ_k #{i : u and x[i:i+k] differ in at most m places}``, m = ``mismatches``
    gappy         ``Φ_u(x) = Σ λ_s`` over i₁ < … < iₖ with ``x[i₁] … x[iₖ] = u`` and span s = iₖ − i₁ + 1 ≤ k + ``gap``
    positional    ``Φ_{u,q}(x) = λ_|u| #{i : x[i:i+|u|] = u, 0 ≤ q − i ≤ shift}`` for u of length 1 to k
    ============  ==================================================================================================

    and the kernel is k(x, z) = ⟨Φ(x), Φ(z)⟩, up to collisions of the hash. Spectrum is mismatch with no mismatches
    and gappy without a gap. Positional is the weighted-degree kernel: substrings count if they are at the same
    position, or, with a shift, with the weight shift + 1 − \\|i − j\\| where their places i and j are at most ``shift``
    apart.

    Characters are Unicode code points for str and bytes for bytes. Strings are not normalised: case and white space are
    kept.

    Parameters
    ----------
    n_bits : int, default=20
        There are 2^n_bits columns, up to 2^30.
    max_length : int, default=5
        Length k of the substrings, or the maximum length for "bounded" and "positional".
    kernel : {"spectrum", "bounded", "mismatch", "gappy", "positional"}, default="spectrum"
        Which substrings are features; see above.
    weights : None, float, sequence of float or callable, default=None
        λ by length (by span for "gappy"). None: 1; a float d: d^length; a sequence: λ_1, λ_2, … up to the greatest
        length (or span, max_length + gap); a callable: length → λ. None may be negative.
    mismatches : int, default=1
        For "mismatch": maximum number of different characters.
    alphabet : str, bytes or sequence of characters, optional
        For "mismatch": the letters that may replace others. By default, the characters of the strings given
        to `fit`. Other characters of a string are kept, or replaced by letters.
    gap : int, default=1
        For "gappy": maximum number of skipped characters.
    shift : int, default=0
        For "positional": the maximum distance of positions.
    signed : bool, default=False
        Whether features are added with a random sign, which makes the inner product unbiased.
    seed : int, default=0
        Seed of the hash; different seeds give independent columns and signs.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the values.
    inverse_size : int, default=0
        Maximum number of feature names that `fit` and `partial_fit` store for `inverse`, `collision_report` and
        `get_feature_names_out`.
    n_jobs : int, optional
        Threads; the result does not depend on them.

    Attributes
    ----------
    n_features_out_ : int
        Number of columns, 2^n_bits.
    alphabet_ : list of bytes
        With "mismatch", after `fit`: the letters, in UTF-8.

    See Also
    --------
    TextHasher : words and character n-grams of documents.

    References
    ----------
    .. [Shi2009] Q. Shi, J. Petterson, G. Dror, J. Langford, A. Smola and S. V. N. Vishwanathan. Hash kernels for
       structured data. Journal of Machine Learning Research 10, 2009.

    Examples
    --------
    >>> from mercer.maps import StringHasher
    >>> X = StringHasher(max_length=3, kernel="bounded", weights=0.5).transform(["banana", "bandana"])
    >>> float((X @ X.T)[0, 1])      # Σ_u 0.25^|u| #_u(banana) #_u(bandana)
    3.984375
    >>> hasher = StringHasher(max_length=2, kernel="gappy", gap=1, inverse_size=50).fit(["abc"])
    >>> sorted(name for j in hasher.transform(["abc"]).indices for name in hasher.inverse(j))
    ['ab', 'ac', 'bc']
    """

    alphabet_: list[bytes]
    _learnt = ("inverse_", "alphabet_")
    saved = HashedMap.saved | Fields(alphabet_=Optional(Objects()))

    def __init__(
        self,
        n_bits: int = 20,
        max_length: int = 5,
        kernel: str = "spectrum",
        weights: float | Sequence[float] | Callable[[int], float] | None = None,
        mismatches: int = 1,
        alphabet: str | bytes | Sequence[str] | Sequence[bytes] | None = None,
        gap: int = 1,
        shift: int = 0,
        signed: bool = False,
        seed: int = 0,
        dtype: Any = np.float64,
        inverse_size: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.max_length = max_length
        self.kernel = kernel
        self.weights = weights
        self.mismatches = mismatches
        self.alphabet = alphabet
        self.gap = gap
        self.shift = shift
        self.signed = signed
        self.seed = seed
        self.dtype = dtype
        self.inverse_size = inverse_size
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> StringHasher:
        """Check the parameters, find the alphabet for "mismatch", and store feature names for ``inverse_size``.

        Parameters
        ----------
        X : strings
            See `mercer.data.TextBuffer`.
        y : ignored

        Returns
        -------
        StringHasher
            The map itself.
        """
        return super().fit(X, y)

    def partial_fit(self, X: Any, y: Any = None) -> StringHasher:
        """Fit on more strings, in addition to earlier calls.

        Parameters
        ----------
        X : strings
            See `mercer.data.TextBuffer`.
        y : ignored

        Returns
        -------
        StringHasher
            The map itself.
        """
        self._check_parameters()
        buffer = TextBuffer(X)
        if self.kernel == "mismatch":
            if self.alphabet is None:
                characters = _core.text.string_characters(buffer.data, buffer.offsets, buffer.binary)
                self.alphabet_ = sorted({*characters, *getattr(self, "alphabet_", ())})
            else:
                self.alphabet_ = _letters(self.alphabet)
            self._check_size(len(self.alphabet_))
        return super().partial_fit(buffer)

    def transform(self, X: Any) -> csr_matrix:
        """Return the hashed features of strings.

        Parameters
        ----------
        X : strings
            See `mercer.data.TextBuffer`: lists of str or bytes, arrays and columns of strings, a path or an open file.

        Returns
        -------
        scipy.sparse.csr_matrix
            One row per string, 2^n_bits columns; column indices ascend in each row, and values that cancel to 0 are not
            stored.
        """
        self._check_parameters()
        buffer = TextBuffer(X)
        single = check_dtype(self.dtype) == np.float32
        rows = _core.text.string_rows(
            buffer.data, buffer.offsets, **self._settings(buffer.binary), weights=self._weights(), n_bits=self.n_bits,
            with_signs=bool(self.signed), single=single, threads=thread_count(self.n_jobs),
        )  # fmt: skip
        return to_csr(rows, self.n_features_out_)

    def _names(self, X: Any) -> Iterator[tuple[list[str], np.ndarray, list[int]]]:
        buffer = TextBuffer(X)
        mask = np.uint64(self.n_features_out_ - 1)
        for start in range(0, len(buffer), BLOCK):
            block = buffer[start : start + BLOCK]
            names, hashes, counts = _core.text.string_names(block.data, block.offsets, **self._settings(block.binary))
            yield names, hashes & mask, counts.tolist()

    def _settings(self, binary: bool) -> dict[str, Any]:
        """What the compiled analyzer needs (StringSettings in ``cpp/hashing/substrings.hpp``)."""
        letters: list[bytes] = []
        if self.kernel == "mismatch":
            letters = self._known_letters()
        return {
            "kernel": self.kernel,
            "length": int(self.max_length),
            "mismatches": int(self.mismatches),
            "gap": int(self.gap),
            "shift": int(self.shift),
            "binary": binary,
            "seed": int(self.seed),
            "alphabet": letters,
        }

    def _known_letters(self) -> list[bytes]:
        if self.alphabet is not None:
            return _letters(self.alphabet)
        if not hasattr(self, "alphabet_"):
            raise NotFittedError("this StringHasher does not know the alphabet yet: call fit, or give alphabet=")
        return self.alphabet_

    def _weights(self) -> np.ndarray:
        """λ of the lengths 0 .. longest; that of 0 is not used."""
        longest = int(self.max_length) + (int(self.gap) if self.kernel == "gappy" else 0)
        lengths = range(1, longest + 1)
        if self.weights is None:
            values = [1.0] * longest
        elif callable(self.weights):
            values = [float(self.weights(n)) for n in lengths]
        elif isinstance(self.weights, Real):
            values = [float(self.weights) ** n for n in lengths]
        else:
            try:
                values = [float(value) for value in np.ravel(self.weights)]
            except (TypeError, ValueError):
                raise ValueError(
                    f"weights must be None, a number, a list of numbers or a function, got {self.weights!r}"
                ) from None
            if len(values) != longest:
                raise ValueError(f"weights must be {longest} numbers, one for each length from 1 on, got {len(values)}")
        array = np.array([0.0, *values])
        if not np.isfinite(array).all() or (array < 0).any():
            raise ValueError(f"weights must be finite and not negative, got {values!r}")
        return array

    # ------------------------------------------------------------------------------------------------ files

    def _saved_params(self) -> dict[str, Any]:
        """A callable ``weights`` is kept as the numbers it gives."""
        params = super()._saved_params()
        if self.weights is not None and not isinstance(self.weights, Real):
            params["weights"] = self._weights()[1:].tolist()
        params["alphabet"] = None if self.alphabet is None else _letters(self.alphabet)
        return params

    def _check_state(self) -> None:
        super()._check_state()
        if hasattr(self, "alphabet_"):
            if self.alphabet_ != _letters(self.alphabet_):
                raise ValueError("alphabet_ must be a list of letters, sorted")
            self._check_size(len(self.alphabet_))

    # ------------------------------------------------------------------------------------------------ checks

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("kernel", self.kernel, KERNELS)
        if check_count("max_length", self.max_length) > MOST_FEATURES:
            raise ValueError(f"max_length must be at most {MOST_FEATURES}, got {self.max_length}")
        for name in ("mismatches", "gap", "shift"):
            value = getattr(self, name)
            if check_count(name, value, 0) > MOST_FEATURES:
                raise ValueError(f"{name} must be at most {MOST_FEATURES}, got {value}")
        check_seed(self.seed)
        check_dtype(self.dtype)
        thread_count(self.n_jobs)
        self._check_size(len(_letters(self.alphabet)) if self.alphabet is not None else 1)
        self._weights()

    def _check_size(self, n_letters: int) -> None:
        """An error where a single place of a string would give more features than anybody can want."""
        features = self._features_a_place(n_letters)
        if features > MOST_FEATURES:
            raise ValueError(
                f"kernel={self.kernel!r} with these parameters makes {features:,} features at each place of a string "
                f"(the limit is {MOST_FEATURES:,}): take a smaller max_length, mismatches, gap, shift or alphabet"
            )

    def _features_a_place(self, n_letters: int | None = None) -> int:
        """How many features begin at a place of a string."""
        k = int(self.max_length)
        if self.kernel == "mismatch":
            letters = len(self._known_letters()) if n_letters is None else n_letters
            most = min(int(self.mismatches), k)
            return sum(math.comb(k, i) * max(0, letters - 1) ** i for i in range(most + 1))
        if self.kernel == "gappy":
            return math.comb(k + int(self.gap) - 1, k - 1)
        if self.kernel == "positional":
            return k * (int(self.shift) + 1)
        return k if self.kernel == "bounded" else 1

    def __sklearn_is_fitted__(self) -> bool:
        return self.kernel != "mismatch" or self.alphabet is not None or hasattr(self, "alphabet_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.kernel == "mismatch" and self.alphabet is None
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _letters(alphabet: Any) -> list[bytes]:
    """The distinct letters of an alphabet in UTF-8, sorted."""
    items = [alphabet[i : i + 1] for i in range(len(alphabet))] if isinstance(alphabet, str | bytes) else list(alphabet)
    for letter in items:
        # A character of several bytes is a str, or its UTF-8.
        text = letter.decode(errors="replace") if isinstance(letter, bytes) and len(letter) > 1 else letter
        if not isinstance(text, str | bytes) or len(text) != 1:
            raise ValueError(f"alphabet must hold single characters, got {letter!r}")
    return sorted({letter.encode() if isinstance(letter, str) else letter for letter in items})
