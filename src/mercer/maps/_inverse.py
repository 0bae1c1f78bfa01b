"""Names of hashed features: a bounded dictionary of names, and the rate of hash collisions.

collision rate = 1 − (distinct buckets) / (distinct names),    expected 1 − (n/N)(1 − (1 − 1/n)^N)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from mercer._state.saved import Count, Fields, Objects, Saved
from mercer._validation import check_count

__all__ = ["CollisionReport", "InverseDictionary", "expected_collision_rate"]


@dataclass(frozen=True)
class CollisionReport:
    """Collisions among the stored names: see `InverseDictionary.report`."""

    n_names: int
    """Distinct names kept."""
    n_buckets_used: int
    """Distinct buckets they fall into."""
    n_buckets: int
    """Buckets there are."""
    rate: float
    """1 − n_buckets_used / n_names: the share of names lost to sharing."""
    expected_rate: float
    """The same for names that fall at random."""
    dropped: int
    """Number of names dropped from the bounded dictionary: if not 0, the values describe frequent names."""
    crowded: list[tuple[int, list[str]]]
    """The buckets with most names, and these, the most frequent first."""

    def __str__(self) -> str:
        lines = [
            f"{self.n_names:,} names in {self.n_buckets_used:,} of {self.n_buckets:,} buckets: "
            f"{100 * self.rate:.2f} % lost to sharing ({100 * self.expected_rate:.2f} % expected)"
        ]
        if self.dropped:
            lines.append(f"{self.dropped:,} rare names were forgotten: the dictionary is full")
        lines += [f"bucket {bucket}: {', '.join(names)}" for bucket, names in self.crowded]
        return "\n".join(lines)


class InverseDictionary(Saved):
    """Map buckets back to likely names, in bounded memory.

    It stores at most ``capacity`` names with their counts. When full, it drops the rarer half, so frequent names
    survive in any order of the stream.

    Parameters
    ----------
    capacity : int
        Maximum number of names.
    n_buckets : int
        The number of buckets.

    Examples
    --------
    >>> names = InverseDictionary(capacity=10, n_buckets=8)
    >>> names.add(["cat", "dog", "dog"], [3, 3, 3])
    >>> names.names(3)
    ['dog', 'cat']
    """

    saved = Fields(dropped=Count(), _seen=Objects())

    def __init__(self, capacity: int, n_buckets: int) -> None:
        self.capacity = capacity
        self.n_buckets = n_buckets
        self.dropped = 0
        self._seen: dict[str, list[int]] = {}  # name → [count, bucket, …]: a name has several buckets if it has copies
        self._by_bucket: dict[int, list[str]] | None = None

    def __len__(self) -> int:
        return len(self._seen)

    def add(
        self, names: Iterable[str], buckets: Iterable[int] | np.ndarray, counts: Iterable[int] | None = None
    ) -> None:
        """Add names with their buckets and counts (1 by default)."""
        self._by_bucket = None
        weights = repeat(1) if counts is None else counts
        for name, bucket, weight in zip(names, np.asarray(buckets).tolist(), weights, strict=counts is not None):
            entry = self._seen.get(name)
            if entry is None:
                self._seen[name] = [weight, bucket]
                if len(self._seen) > self.capacity:
                    self._forget()
            else:
                entry[0] += weight
                if bucket not in entry[1:]:
                    entry.append(bucket)

    def names(self, bucket: int) -> list[str]:
        """Return the names seen in a bucket, the most frequent first."""
        return list(self.by_bucket().get(int(bucket), ()))

    def by_bucket(self) -> dict[int, list[str]]:
        """Return all buckets with a name, and their names, the most frequent first."""
        if self._by_bucket is None:
            self._by_bucket = {}
            for name, entry in sorted(self._seen.items(), key=lambda item: (-item[1][0], item[0])):
                for place in entry[1:]:
                    self._by_bucket.setdefault(place, []).append(name)
        return self._by_bucket

    def report(self, n_crowded: int = 10) -> CollisionReport:
        """Return the collision rate of the names, and the expected rate."""
        by_bucket = self.by_bucket()
        used, kept = len(by_bucket), len(self._seen)
        placed = sum(len(entry) - 1 for entry in self._seen.values())
        crowded = sorted(by_bucket.items(), key=lambda item: (-len(item[1]), item[0]))[:n_crowded]
        return CollisionReport(
            n_names=kept,
            n_buckets_used=used,
            n_buckets=self.n_buckets,
            rate=1.0 - used / placed if placed else 0.0,
            expected_rate=expected_collision_rate(placed, self.n_buckets),
            dropped=self.dropped,
            crowded=[(bucket, names) for bucket, names in crowded if len(names) > 1],
        )

    def _check_state(self) -> None:
        check_count("capacity", self.capacity)
        check_count("n_buckets", self.n_buckets)
        if not isinstance(self._seen, dict) or not all(isinstance(name, str) for name in self._seen):
            raise ValueError("the kept names are damaged: they must be strings")
        for entry in self._seen.values():
            if not isinstance(entry, list) or len(entry) < 2 or not all(type(x) is int and x >= 0 for x in entry):
                raise ValueError("the kept names are damaged: their counts and buckets do not fit them")
            if max(entry[1:]) >= self.n_buckets:
                raise ValueError(f"the kept names are damaged: a bucket lies outside of 0 .. {self.n_buckets - 1}")

    def _forget(self) -> None:
        kept = sorted(self._seen.items(), key=lambda item: (-item[1][0], item[0]))[: max(1, self.capacity // 2)]
        self.dropped += len(self._seen) - len(kept)
        self._seen = dict(kept)


def expected_collision_rate(n_names: int, n_buckets: int) -> float:
    """Return the expected share of names lost to sharing when ``n_names`` names fall into ``n_buckets`` at random.

    1 − (n/N)(1 − (1 − 1/n)^N) for N names and n buckets.

    Examples
    --------
    >>> from mercer.maps import expected_collision_rate
    >>> round(expected_collision_rate(287_970, 2**20), 3)
    0.126
    """
    n_names, n_buckets = check_count("n_names", n_names, 0), check_count("n_buckets", n_buckets)
    if n_names == 0:
        return 0.0
    # log1p and expm1: (1 − 1/n)^N for large n loses its digits otherwise.
    filled = -n_buckets * math.expm1(n_names * math.log1p(-1.0 / n_buckets)) if n_buckets > 1 else 1.0
    return max(0.0, 1.0 - filled / n_names)
