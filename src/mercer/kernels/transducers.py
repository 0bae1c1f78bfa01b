"""Weighted transducers: automata that read one string and write another.

A transducer reads a string x and writes a string y along paths of arcs, each with a weight:

    [[T]](x, y) = ⊕ over the paths that read x and write y of initial ⊗ arcs ⊗ final

with (⊕, ⊗) = (+, ×) in the real semiring and (min, +) in the tropical one. `Rational` makes kernels from them. None
stands for epsilon: an arc that reads nothing, or writes nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from mercer import _core
from mercer._validation import check_choice, check_count
from mercer.kernels._semirings import RINGS, gather, solve_part, strong_parts

__all__ = ["Transducer"]

SEMIRINGS = ("real", "tropical")


class Arc(NamedTuple):
    """One arc of a transducer, as `Transducer.arcs` lists them."""

    source: Any
    input: Any
    output: Any
    weight: float
    target: Any


class Transducer:
    """A weighted finite-state transducer over the real or the tropical semiring.

    States and symbols are any hashable objects. Using one adds it. Weights may be negative; in the tropical semiring ∞
    is "no arc". Parallel arcs are added.

    Parameters
    ----------
    semiring : {"real", "tropical"}, default="real"
        (+, ×), or (min, +) for costs.
    alphabet : iterable of symbols, optional
        The allowed symbols: others raise an error, in arcs and in strings. Without an alphabet, a string with a symbol
        on no arc has the weight 0 (tropical: ∞).

    Examples
    --------
    >>> from mercer.kernels import Transducer
    >>> T = Transducer()
    >>> T.add_arc(0, "a", "b", 0.5, 0).add_arc(0, "a", None, 0.25, 1).set_initial(0).set_final(0).set_final(1)
    <Transducer: real, 2 states, 2 arcs>
    >>> T.weight("aa", "bb"), T.weight("aa", "b"), T.weight("aa", "")
    (0.25, 0.125, 0.0)

    Composition reads with one and writes with the other:

    >>> T.compose(T.inverse()).weight("aa", "aa")  # Σ over outputs: 0.25² + 0.125²
    0.078125
    """

    def __init__(self, semiring: str = "real", alphabet: Iterable[Hashable] | None = None) -> None:
        self.semiring = check_choice("semiring", semiring, SEMIRINGS)
        self.alphabet = None if alphabet is None else _alphabet(alphabet)
        self._numbers: dict[Any, int] = {}
        self._arcs: list[tuple[int, Any, Any, float, int]] = []
        self._initial: dict[int, float] = {}
        self._final: dict[int, float] = {}
        self._made: dict[str, Any] = {}  # what has been derived from the arcs

    # ------------------------------------------------------------------ building

    def add_arc(self, src: Any, ilabel: Any, olabel: Any, weight: float, dst: Any) -> Transducer:
        """Add an arc from state ``src`` to ``dst`` that reads ``ilabel`` and writes ``olabel`` (None: nothing)."""
        value = self._weight_of("weight", weight)
        for name, label in (("ilabel", ilabel), ("olabel", olabel)):
            self._check_label(name, label)
        source, target = self._number("src", src), self._number("dst", dst)
        if value != RINGS[self.semiring].zero:
            self._arcs.append((source, ilabel, olabel, value, target))
        self._forget()
        return self

    def set_initial(self, state: Any, weight: float | None = None) -> Transducer:
        """Let paths begin in a state; the weight is by default the semiring's one (1, or 0 if tropical)."""
        return self._set_end(self._initial, state, weight)

    def set_final(self, state: Any, weight: float | None = None) -> Transducer:
        """Let paths end in a state; the weight is by default the semiring's one (1, or 0 if tropical)."""
        return self._set_end(self._final, state, weight)

    def _set_end(self, ends: dict[int, float], state: Any, weight: float | None) -> Transducer:
        value = RINGS[self.semiring].one if weight is None else self._weight_of("weight", weight)
        ends[self._number("state", state)] = value
        if value == RINGS[self.semiring].zero:
            del ends[self._number("state", state)]
        self._forget()
        return self

    def _forget(self) -> None:
        """Drop what was derived from the arcs."""
        kept = self.alphabet is not None and "symbols" in self._made
        self._made = {"symbols": self._made["symbols"]} if kept else {}

    def _weight_of(self, name: str, value: Any) -> float:
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if not number or math.isnan(value) or value == -math.inf or (value == math.inf and self.semiring == "real"):
            kind = "a finite number" if self.semiring == "real" else "a number above −∞"
            raise ValueError(f"{name} must be {kind} in the {self.semiring} semiring, got {value!r}")
        return float(value)

    def _check_label(self, name: str, label: Any) -> None:
        if label is None:
            return
        _check_hashable(name, label)
        if isinstance(label, str) and not label:
            raise ValueError(f"{name} is an empty string: use None for epsilon")
        if self.alphabet is not None and label not in self._symbols():
            raise ValueError(f"{name}={label!r} is not in the alphabet")

    def _number(self, name: str, state: Any) -> int:
        _check_hashable(name, state)
        return self._numbers.setdefault(state, len(self._numbers))

    # ------------------------------------------------------------------ what is there

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self._numbers)

    @property
    def states(self) -> list[Any]:
        """The states, in the order of first use."""
        return list(self._numbers)

    @property
    def arcs(self) -> list[Arc]:
        """The arcs (source, input, output, weight, target), in the order in which they were added."""
        names = self.states
        return [Arc(names[p], a, b, w, names[q]) for p, a, b, w, q in self._arcs]

    @property
    def initial(self) -> dict[Any, float]:
        """Initial states and their weights."""
        names = self.states
        return {names[p]: w for p, w in self._initial.items()}

    @property
    def final(self) -> dict[Any, float]:
        """Final states and their weights."""
        names = self.states
        return {names[p]: w for p, w in self._final.items()}

    @property
    def is_acceptor(self) -> bool:
        """Return whether every arc writes the symbol that it reads."""
        return all(a == b for _, a, b, _, _ in self._arcs)

    def __repr__(self) -> str:
        symbols = "" if self.alphabet is None else f", {len(self.alphabet)} symbols"
        return f"<Transducer: {self.semiring}, {self.n_states} states, {len(self._arcs)} arcs{symbols}>"

    def to_dot(self) -> str:
        """Return the transducer as a Graphviz graph, with arcs labelled ``input:output/weight``.

        Examples
        --------
        >>> from mercer.kernels import Transducer
        >>> print(Transducer.from_string("a").to_dot())
        digraph transducer {
          rankdir=LR
          0 [label="0", shape=circle, style=bold]
          1 [label="1", shape=doublecircle]
          0 -> 1 [label="a:a"]
        }
        """
        one = RINGS[self.semiring].one
        lines = ["digraph transducer {", "  rankdir=LR"]
        for p, name in enumerate(self.states):
            text = str(name)
            for mark, ends in (("initial", self._initial), ("final", self._final)):
                if ends.get(p, one) != one:
                    text += f"\n{mark} {ends[p]:g}"
            style = ", style=bold" if p in self._initial else ""
            shape = "doublecircle" if p in self._final else "circle"
            lines.append(f"  {p} [label={_quoted(text)}, shape={shape}{style}]")
        for p, a, b, w, q in self._arcs:
            label = f"{_shown(a)}:{_shown(b)}" + ("" if w == one else f"/{w:g}")
            lines.append(f"  {p} -> {q} [label={_quoted(label)}]")
        return "\n".join([*lines, "}"])

    # ------------------------------------------------------------------ weights

    def weight(self, x: Any, y: Any) -> float:
        """Return [[T]](x, y), the weight of reading x and writing y.

        Parameters
        ----------
        x, y : str or sequence of symbols

        Returns
        -------
        float
            The weight; 0 (tropical: ∞) if there is no such path.

        Raises
        ------
        ValueError
            If the weights of a cycle of epsilon arcs have no finite sum.
        """
        self._check_complete()
        left, right = self._encoded([x], "x"), self._encoded([y], "y")
        out = np.empty((1, 1))
        _core.kernels.transducer_weights(self._machine(), *left, *right, out)
        if self.semiring == "real" and not np.isfinite(out[0, 0]):
            raise OverflowError("the weight is too large for float64: scale the arcs of the transducer")
        return float(out[0, 0])

    def _check_complete(self) -> None:
        for name, ends in (("initial", self._initial), ("final", self._final)):
            if self._numbers and not ends:
                raise ValueError(f"the transducer has no {name} state: call set_{name}(state)")

    def _symbols(self) -> dict[Any, int]:
        """Numbers of symbols, from 1."""
        if "symbols" not in self._made:
            known: dict[Any, int] = {}
            labels = (label for arc in self._arcs for label in arc[1:3] if label is not None)
            for label in labels if self.alphabet is None else self.alphabet:
                known.setdefault(label, len(known) + 1)
            self._made["symbols"] = known
        return self._made["symbols"]

    def _encoded(self, strings: Iterable[Any], name: str) -> tuple[np.ndarray, np.ndarray]:
        """Offsets and numbers of the symbols of strings; −1 for symbols that are on no arc."""
        known = self._symbols()
        offsets, numbers = [0], []
        for i, string in enumerate(strings):
            where = f"string {i}" if name == "string" else name
            if not hasattr(string, "__iter__") or isinstance(string, (Mapping, set, frozenset)):
                raise ValueError(f"{where} must be a string or a sequence of symbols, got {type(string).__name__}")
            for place, symbol in enumerate(string):
                _check_hashable(f"symbol {place} of {where}", symbol)
                number = known.get(symbol, -1)
                if number < 0 and self.alphabet is not None:
                    raise ValueError(f"{where} has the symbol {symbol!r} at place {place}: it is not in the alphabet")
                numbers.append(number)
            offsets.append(len(numbers))
        return np.array(offsets, np.int64), np.array(numbers, np.int32)

    def _machine(self) -> Any:
        """The machine in compiled form, without arcs that read and write nothing."""
        if "machine" not in self._made:
            plain, known, ring = self._without_silent_arcs(), self._symbols(), RINGS[self.semiring]
            columns = list(zip(*plain._arcs, strict=True)) if plain._arcs else [()] * 5
            initial, final = (np.full(plain.n_states, ring.zero) for _ in range(2))
            for row, given in ((initial, plain._initial), (final, plain._final)):
                row[list(given)] = list(given.values())
            weights = np.array(columns[3], np.float64)
            if not np.isfinite(weights).all() or (plain.semiring == "real" and not np.isfinite(final).all()):
                raise OverflowError("weights of paths are too large for float64: scale the arcs of the transducer")
            self._made["machine"] = _core.kernels.Machine(
                plain.n_states,
                len(known),
                np.array(columns[0], np.int32),
                np.array([0 if a is None else known[a] for a in columns[1]], np.int32),
                np.array([0 if b is None else known[b] for b in columns[2]], np.int32),
                np.array(columns[4], np.int32),
                weights,
                initial,
                final,
                self.semiring == "tropical",
            )
        return self._made["machine"]

    def _without_silent_arcs(self) -> Transducer:
        """An equal machine whose arcs all read or write something.

        With E the matrix of the other arcs, the arcs of a state p become those of E* = I + E + E² + … applied to all
        arcs, row by row from the states that E leads to last. Cycles of E are solved one strongly connected part at a
        time.
        """
        trimmed, ring = self.trim(), RINGS[self.semiring]
        silent: list[dict[int, float]] = [{} for _ in range(trimmed.n_states)]
        rows: list[dict[Any, float]] = [{} for _ in range(trimmed.n_states)]  # (input, output, target); None: the end
        for p, a, b, w, q in trimmed._arcs:
            if a is None and b is None:
                gather(ring, silent[p], q, w)
            else:
                gather(ring, rows[p], (a, b, q), w)
        for p, w in trimmed._final.items():
            gather(ring, rows[p], None, w)
        if any(silent):
            for part in strong_parts(silent):
                solve_part(ring, part, silent, rows, trimmed.states)
        made = trimmed._like()
        made._numbers = dict(trimmed._numbers)
        made._initial = dict(trimmed._initial)
        for p, row in enumerate(rows):
            for key, w in row.items():
                if key is None:
                    made._final[p] = w
                elif w != ring.zero:
                    made._arcs.append((p, key[0], key[1], w, key[2]))
        return made.trim() if any(silent) else made

    # ------------------------------------------------------------------ operations

    def _like(self, alphabet: Any = ()) -> Transducer:
        """An empty machine over the same semiring."""
        made = Transducer(self.semiring)
        made.alphabet = self.alphabet if alphabet == () else alphabet
        return made

    def _copy(self) -> Transducer:
        made = self._like()
        made._numbers = dict(self._numbers)
        made._arcs = list(self._arcs)
        made._initial, made._final = dict(self._initial), dict(self._final)
        return made

    def inverse(self) -> Transducer:
        """Return the transducer with input and output exchanged: [[T⁻¹]](x, y) = [[T]](y, x)."""
        made = self._copy()
        made._arcs = [(p, b, a, w, q) for p, a, b, w, q in self._arcs]
        return made

    def project(self, side: str) -> Transducer:
        """Return the acceptor of the inputs or of the outputs: ``side`` is ``"input"`` or ``"output"``."""
        keep = 1 if check_choice("side", side, ("input", "output")) == "input" else 2
        made = self._copy()
        made._arcs = [(arc[0], arc[keep], arc[keep], arc[3], arc[4]) for arc in self._arcs]
        return made

    def trim(self) -> Transducer:
        """Return the transducer without states that no successful path visits."""
        after: list[list[int]] = [[] for _ in self._numbers]
        before: list[list[int]] = [[] for _ in self._numbers]
        for p, _, _, _, q in self._arcs:
            after[p].append(q)
            before[q].append(p)
        useful = _reached(after, self._initial) & _reached(before, self._final)
        place = {p: i for i, p in enumerate(sorted(useful))}
        made = self._like()
        made._numbers = {name: place[p] for name, p in self._numbers.items() if p in place}
        made._arcs = [(place[p], a, b, w, place[q]) for p, a, b, w, q in self._arcs if p in place and q in place]
        made._initial = {place[p]: w for p, w in self._initial.items() if p in place}
        made._final = {place[p]: w for p, w in self._final.items() if p in place}
        return made

    def compose(self, other: Transducer) -> Transducer:
        """Compose: U reads the output of T. [[T ∘ U]](x, y) = ⊕_z [[T]](x, z) ⊗ [[U]](z, y).

        Moves where T writes nothing and U reads nothing could be interleaved in many ways, and each would be counted. A
        filter allows only one order: moves of T alone, then moves of U alone, then a symbol for both.

        Parameters
        ----------
        other : Transducer
            Over the same semiring.

        Returns
        -------
        Transducer
            Trimmed. States are pairs of states, and (p, q, "ε") after a move of U alone.
        """
        self._check_partner("compose", other)
        ring, names, others = RINGS[self.semiring], self.states, other.states
        leaving: list[list[tuple[Any, Any, float, int]]] = [[] for _ in names]
        for p, a, b, w, q in self._arcs:
            leaving[p].append((a, b, w, q))
        reading: list[dict[Any, list[tuple[Any, float, int]]]] = [{} for _ in others]
        for p, a, b, w, q in other._arcs:
            reading[p].setdefault(a, []).append((b, w, q))
        made = self._like(_joint_alphabet(self, other))

        def number(p: int, q: int, alone: int) -> int:
            name = (names[p], others[q], "ε") if alone else (names[p], others[q])
            if name not in made._numbers:
                made._numbers[name] = len(made._numbers)
                todo.append((p, q, alone))
            return made._numbers[name]

        todo: deque[tuple[int, int, int]] = deque()
        for p, w in self._initial.items():
            for q, v in other._initial.items():
                made._initial[number(p, q, 0)] = ring.times(w, v)
        while todo:
            p, q, alone = todo.popleft()
            here = number(p, q, alone)
            if p in self._final and q in other._final:
                made._final[here] = ring.times(self._final[p], other._final[q])
            for a, b, w, target in leaving[p]:
                if b is None:
                    if not alone:
                        made._arcs.append((here, a, None, w, number(target, q, 0)))
                    continue
                for c, v, end in reading[q].get(b, ()):
                    made._arcs.append((here, a, c, ring.times(w, v), number(target, end, 0)))
            for c, v, end in reading[q].get(None, ()):
                made._arcs.append((here, None, c, v, number(p, end, 1)))
        return made.trim()

    def remove_epsilon(self) -> Transducer:
        """Return an equal acceptor without epsilon arcs; only for acceptors (see `project`)."""
        if not self.is_acceptor:
            raise ValueError("epsilon arcs are removed from acceptors: call project('input' or 'output') first")
        return self._without_silent_arcs()

    def union(self, other: Transducer) -> Transducer:
        """Return the union T ⊕ U."""
        self._check_partner("union", other)
        return self._beside(other)

    def concat(self, other: Transducer) -> Transducer:
        """Concatenate T and U: ⊕ over all ways to split x and y."""
        self._check_partner("concat", other)
        made, shift, ring = self._beside(other), self.n_states, RINGS[self.semiring]
        made._initial, made._final = dict(self._initial), {shift + q: w for q, w in other._final.items()}
        for p, w in self._final.items():
            for q, v in other._initial.items():
                made._arcs.append((p, None, None, ring.times(w, v), shift + q))
        return made

    def closure(self) -> Transducer:
        """Return the closure: T repeated any number of times, including none."""
        made, ring = self._like(), RINGS[self.semiring]
        made._numbers = {"start": 0, **{(0, name): p + 1 for name, p in self._numbers.items()}}
        made._arcs = [(p + 1, a, b, w, q + 1) for p, a, b, w, q in self._arcs]
        made._arcs += [(0, None, None, w, p + 1) for p, w in self._initial.items()]
        made._arcs += [(p + 1, None, None, w, 0) for p, w in self._final.items()]
        made._initial, made._final = {0: ring.one}, {0: ring.one}
        return made

    def _beside(self, other: Transducer) -> Transducer:
        made, shift = self._like(_joint_alphabet(self, other)), self.n_states
        made._numbers = {(0, name): p for name, p in self._numbers.items()}
        made._numbers |= {(1, name): p + shift for name, p in other._numbers.items()}
        made._arcs = self._arcs + [(p + shift, a, b, w, q + shift) for p, a, b, w, q in other._arcs]
        made._initial = self._initial | {p + shift: w for p, w in other._initial.items()}
        made._final = self._final | {p + shift: w for p, w in other._final.items()}
        return made

    def _check_partner(self, verb: str, other: Any) -> None:
        if not isinstance(other, Transducer):
            raise ValueError(f"{verb} needs another Transducer, got {type(other).__name__}")
        if other.semiring != self.semiring:
            raise ValueError(f"{verb} needs one semiring, got {self.semiring} and {other.semiring}")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}}

    # ------------------------------------------------------------------ machines that are often wanted

    @classmethod
    def from_string(cls, x: Any, semiring: str = "real", alphabet: Iterable[Hashable] | None = None) -> Transducer:
        """Return the acceptor of one string, with the weight one.

        Examples
        --------
        >>> from mercer.kernels import Transducer
        >>> T = Transducer.from_string("ab")
        >>> T.weight("ab", "ab"), T.weight("ab", "a")
        (1.0, 0.0)
        """
        made = cls(semiring, alphabet)
        made.set_initial(0)
        place = 0
        for place, symbol in enumerate(x, 1):
            made.add_arc(place - 1, symbol, symbol, RINGS[semiring].one, place)
        return made.set_final(place)

    @classmethod
    def ngram(cls, n: int, alphabet: Iterable[Hashable]) -> Transducer:
        """Return the n-gram transducer: [[T]](x, z) is the number of times z occurs in x.

        Examples
        --------
        >>> from mercer.kernels import Rational, Transducer
        >>> T = Transducer.ngram(3, "AB")
        >>> T.weight("ABABA", "ABA")
        2.0
        >>> Rational(T).pair("ABABA", "BABAB")
        4.0
        """
        return cls._subsequences(check_count("n", n), alphabet, 1.0, None)

    @classmethod
    def gappy(cls, n: int, alphabet: Iterable[Hashable], decay: float) -> Transducer:
        """Return the transducer that writes every subsequence of n symbols, with the weight decay^span.

        The span is the number of symbols from the first to the last one of the subsequence, including gaps.

        Examples
        --------
        >>> from mercer.kernels import Transducer
        >>> Transducer.gappy(2, "act", 0.5).weight("cat", "ct")
        0.125
        """
        if isinstance(decay, bool) or not isinstance(decay, (int, float, np.number)) or not 0 < decay <= 1:
            raise ValueError(f"decay must be above 0 and at most 1, got {decay!r}")
        return cls._subsequences(check_count("n", n), alphabet, float(decay), float(decay))

    @classmethod
    def _subsequences(cls, n: int, alphabet: Iterable[Hashable], keep: float, gap: float | None) -> Transducer:
        made = cls("real", alphabet)
        for state in range(n + 1):
            made._number("state", state)
        made.set_initial(0).set_final(n)
        for a in made.alphabet or ():
            for end in (0, n):
                made.add_arc(end, a, None, 1.0, end)
            for i in range(n):
                made.add_arc(i, a, a, keep, i + 1)
                if gap is not None and i > 0:
                    made.add_arc(i, a, None, gap, i)
        return made

    @classmethod
    def mismatch(cls, k: int, m: int, alphabet: Iterable[Hashable]) -> Transducer:
        """Return the transducer that writes every string within m mismatches of a block of k symbols.

        Examples
        --------
        >>> from mercer.kernels import Transducer
        >>> Transducer.mismatch(2, 1, "ab").weight("aab", "ab")  # aa and ab
        2.0
        """
        check_count("k", k)
        if check_count("m", m, 0) > k:
            raise ValueError(f"m must be at most k={k}, got {m}")
        made = cls("real", alphabet).set_initial("start").set_final("end")
        symbols = made.alphabet or ()
        for a in symbols:
            made.add_arc("start", a, None, 1.0, "start").add_arc("end", a, None, 1.0, "end")
        for i in range(k):
            for wrong in range(min(i, m) + 1):
                here = "start" if i == 0 else (i, wrong)
                for a in symbols:
                    for b in symbols:
                        missed = wrong + (a != b)
                        if missed <= m:
                            made.add_arc(here, a, b, 1.0, "end" if i == k - 1 else (i + 1, missed))
        return made

    @classmethod
    def edit(cls, costs: float | Mapping[Any, float], alphabet: Iterable[Hashable]) -> Transducer:
        """Return the tropical transducer of an edit distance: [[T]](x, y) is the minimum cost of turning x into y.

        Parameters
        ----------
        costs : float or mapping
            One cost for all edits (1.0: Levenshtein's distance), or a mapping. The keys ``"insert"``, ``"delete"`` and
            ``"substitute"`` (default 1) give general costs. Pairs of symbols give costs of single edits: ``("a", "b")``
            to substitute, ``("a", None)`` to delete, ``(None, "b")`` to insert, ``("a", "a")`` to keep (default 0).
        alphabet : iterable of symbols

        Examples
        --------
        >>> from mercer.kernels import Transducer
        >>> import string
        >>> Transducer.edit(1.0, string.ascii_lowercase).weight("kitten", "sitting")
        3.0
        """
        made = cls("tropical", alphabet).set_initial(0).set_final(0)
        symbols = made.alphabet or ()
        edits = ("insert", "delete", "substitute")
        given: dict[Any, Any] = dict(costs) if isinstance(costs, Mapping) else dict.fromkeys(edits, costs)
        labels = {None, *symbols}
        for key in given:
            pair = isinstance(key, tuple) and len(key) == 2 and set(key) <= labels and key != (None, None)
            if not pair and key not in edits:
                raise ValueError(
                    f"costs has the key {key!r}: expected 'insert', 'delete', 'substitute' or a pair of symbols"
                )
        for a in (None, *symbols):
            for b in (None, *symbols):
                if a is None and b is None:
                    continue
                kind = "insert" if a is None else "delete" if b is None else "substitute"
                cost = given.get((a, b), 0.0 if a == b else given.get(kind, 1.0))
                if isinstance(cost, bool) or not isinstance(cost, (int, float, np.number)) or not cost >= 0:
                    raise ValueError(f"costs must be numbers of at least 0, got {cost!r} for {(a, b)!r}")
                made.add_arc(0, a, b, float(cost), 0)
        return made

    # ------------------------------------------------------------------ for kernels

    def _writes_finitely(self) -> bool:
        """Whether every string has finitely many outputs: no circle of arcs that read nothing."""
        if "finite" not in self._made:
            plain = self._without_silent_arcs()
            after: list[dict[int, float]] = [{} for _ in range(plain.n_states)]
            for p, a, _, w, q in plain._arcs:
                if a is None:
                    after[p][q] = w
            parts = strong_parts(after)
            self._made["finite"] = all(len(part) == 1 and part[0] not in after[part[0]] for part in parts)
        return self._made["finite"]

    def _with_itself(self) -> Transducer:
        """T ∘ T⁻¹."""
        if "square" not in self._made:
            square = self.compose(self.inverse())
            square._made["symbols"] = self._symbols()
            self._made["square"] = square
        return self._made["square"]


# ---------------------------------------------------------------------------------------------------- helpers


def _alphabet(symbols: Iterable[Hashable]) -> tuple[Any, ...]:
    if isinstance(symbols, np.ndarray):
        symbols = symbols.ravel().tolist()
    if not hasattr(symbols, "__iter__"):
        raise ValueError(f"alphabet must be a collection of symbols, got {symbols!r}")
    listed = tuple(symbols)
    for symbol in listed:
        _check_hashable("a symbol of the alphabet", symbol)
        if symbol is None or (isinstance(symbol, str) and not symbol):
            raise ValueError(f"alphabet holds {symbol!r}, which stands for epsilon")
    if not listed or len(set(listed)) != len(listed):
        raise ValueError("alphabet must hold symbols that differ, at least one")
    return listed


def _joint_alphabet(first: Transducer, second: Transducer) -> tuple[Any, ...] | None:
    if first.alphabet is None or second.alphabet is None:
        return None
    return tuple(dict.fromkeys((*first.alphabet, *second.alphabet)))


def _check_hashable(name: str, value: Any) -> None:
    try:
        hash(value)
    except TypeError as error:
        raise ValueError(f"{name} must be hashable, got a {type(value).__name__}") from error
    if isinstance(value, float) and math.isnan(value):
        raise ValueError(f"{name} is NaN")


def _shown(label: Any) -> str:
    return "ε" if label is None else str(label)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _reached(after: list[list[int]], begin: Iterable[int]) -> set[int]:
    seen = set(begin)
    todo = list(seen)
    while todo:
        for q in after[todo.pop()]:
            if q not in seen:
                seen.add(q)
                todo.append(q)
    return seen
