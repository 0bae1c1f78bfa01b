"""Data for learning from proportions: a toy with misleading bag means, the Adult census, and small public data sets.

The loaders read the subfolders ``uci`` and ``libsvm`` of the folder of data sets; each loader lists its files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer._validation import check_choice
from mercer.datasets._home import data_file
from mercer.datasets.texts import _lines

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["AdultData", "load_adult", "load_proportion_set", "make_proportion_toy"]

Home = str | os.PathLike[str] | None


# ------------------------------------------------------------------------------------------------ a toy


def make_proportion_toy(random_state: Any = None) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Generate 200 points of the plane in two bags whose means are on the wrong sides.

    Bag 0 contains 60 % positive points, but its mean lies among the negative points. Bag 1 contains 40 % positive
    points, and its mean lies among the positive points. A learner that uses only the means of bags misclassifies every
    point. A large-margin classifier that agrees with both shares classifies every point correctly.

    Parameters
    ----------
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray of shape (200, 2)
    y : ndarray of 0 and 1
    bags : ndarray of 0 and 1
        The bag of every point.

    Examples
    --------
    >>> from mercer.datasets import make_proportion_toy
    >>> X, y, bags = make_proportion_toy(0)
    >>> [float(y[bags == k].mean()) for k in (0, 1)]
    [0.6, 0.4]
    """
    from sklearn.utils import check_random_state

    rng = check_random_state(random_state)
    groups = [  # rows, label, bag, centre, standard deviation
        (60, 1, 0, (-0.26, -0.28), 0.1),
        (40, 0, 0, (0.66, 0.68), 0.157),
        (40, 1, 1, (-0.65, -0.64), 0.15),
        (60, 0, 1, (0.26, 0.25), 0.1),
    ]
    X = np.concatenate([np.array(centre) + spread * rng.normal(size=(n, 2)) for n, _, _, centre, spread in groups])
    y, bags = (np.concatenate([np.full(group[0], group[place]) for group in groups]) for place in (1, 2))
    return X, y, bags


# ------------------------------------------------------------------------------------------------ the census


@dataclass(frozen=True)
class AdultData:
    """People of the census of 1994 as binary features, with their groups.

    Examples
    --------
    >>> from mercer.datasets import load_adult
    >>> data = load_adult()  # doctest: +SKIP
    >>> data.X.shape, round(float(data.y.mean()), 3)  # doctest: +SKIP
    ((32561, 123), 0.241)
    >>> len(set(data.groups["occupation"]))  # doctest: +SKIP
    15
    """

    X: csr_array
    """Zeros and ones, shape (n, 123)."""
    y: NDArray[Any]
    """1 for an income above $50,000, else 0."""
    groups: dict[str, NDArray[Any]]
    """The value of each categorical column for every person; ``"?"`` if unknown."""
    feature_names: list[str]
    """Names of the columns of X."""

    def __len__(self) -> int:
        return len(self.y)


_ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
)  # fmt: skip
# Where bins of numbers begin: fifths of the training data, as in the a9a encoding; gains and losses are there or not.
_CUTS: dict[str, tuple[int, ...]] = {
    "age": (26, 33, 41, 50),
    "fnlwgt": (106648, 158662, 196338, 259873),
    "education-num": (9, 10, 11, 13),
    "capital-gain": (1,),
    "capital-loss": (1,),
    "hours-per-week": (35, 40, 41, 48),
}


def load_adult(subset: str = "train", data_home: Home = None) -> AdultData:
    """Load the Adult census data (UCI) as 123 binary features, with all its groups.

    The features are those of the a9a encoding in another column order: one per category (none if unknown), five bins
    for age, final weight, years of education and hours per week, and two for capital gain and loss (zero or not).

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        32,561 people of ``adult.data``, 16,281 of ``adult.test``, or both.
    data_home : path-like, optional
        A folder with ``uci/adult.data`` and ``uci/adult.test``, compressed (``.gz``) or not. Default: the environment
        variable MERCER_DATA.

    Returns
    -------
    AdultData

    Examples
    --------
    >>> from mercer.datasets import load_adult
    >>> data = load_adult("test")  # doctest: +SKIP
    >>> len(data)  # doctest: +SKIP
    16281
    """
    from scipy.sparse import csr_array

    check_choice("subset", subset, ("train", "test", "all"))
    people = _adult_rows(data_file("uci", "adult.data", data_home))
    categories = {
        name: sorted({row[place] for row in people} - {"?"}) for place, name in enumerate(_ADULT) if name not in _CUTS
    }
    if subset != "train":
        others = _adult_rows(data_file("uci", "adult.test", data_home))
        people = others if subset == "test" else people + others
    columns: list[NDArray[Any]] = []
    names: list[str] = []
    for place, name in enumerate(_ADULT):
        cell = np.array([row[place] for row in people])
        if name in _CUTS:
            bins = np.searchsorted(_CUTS[name], cell.astype(np.float64), side="right")
            columns.extend(bins == j for j in range(len(_CUTS[name]) + 1))
            bounds = ["", *map(str, _CUTS[name]), ""]
            names.extend(f"{name} {low}..{high}" for low, high in pairwise(bounds))
        else:
            columns.extend(cell == value for value in categories[name])
            names.extend(f"{name} {value}" for value in categories[name])
    groups = {name: np.array([row[place] for row in people]) for place, name in enumerate(_ADULT) if name not in _CUTS}
    y = np.array([row[-1] == ">50K" for row in people], np.int64)
    return AdultData(csr_array(np.column_stack(columns).astype(np.float64)), y, groups, names)


def _adult_rows(path: Path) -> list[list[str]]:
    rows = []
    for number, line in enumerate(_lines(path), 1):
        if not line.strip() or line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.rstrip(".").split(",")]
        if len(cells) != 15 or cells[-1] not in ("<=50K", ">50K"):
            raise ValueError(f"{path}:{number}: expected 15 cells, the last of them <=50K or >50K")
        rows.append(cells)
    return rows


# ------------------------------------------------------------------------------------------------ small sets


def load_proportion_set(
    name: str, data_home: Home = None, random_state: Any = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Load a small public data set of two classes with attributes scaled to [−1, 1].

    Parameters
    ----------
    name : str
        ``"heart"`` (270 × 13), ``"vote"`` (435 × 16: yes 1, no −1, neither 0), ``"australian"`` (690 × 14),
        ``"breast-w"`` (699 × 9, missing values are the median), ``"ionosphere"`` (351 × 34). Multi-class sets give one
        class against up to equally many rows of the others: ``"dna-1"`` (928 × 180), ``"dna-2"`` (970), ``"dna-3"``
        (2,000) and ``"satimage-2"`` (958 × 36, the first 4,435 rows).
    data_home : path-like, optional
        A folder with ``libsvm/heart_scale``, ``libsvm/dna.scale`` and, in ``uci``, ``HouseVotes84.csv``,
        ``keel-australian.dat``, ``BreastCancer.csv``, ``ionosphere.data``, ``Satellite.csv``, compressed (``.gz``) or
        not. Default: the environment variable MERCER_DATA.
    random_state : int, RandomState or None, default=0
        Seed of the draw of the other rows.

    Returns
    -------
    X : ndarray of shape (n, d)
    y : ndarray of 0 and 1
        1 for the presence of heart disease, republicans, an approved credit, malignant, good; for multi-class sets, the
        class in the name.

    Notes
    -----
    The file of ``"australian"`` has lost the decimal points of three columns. The second, an age, is corrected (two
    digits before the point); the third and the seventh are used unchanged.

    Examples
    --------
    >>> from mercer.datasets import load_proportion_set
    >>> X, y = load_proportion_set("vote")  # doctest: +SKIP
    >>> X.shape, int(y.sum())  # doctest: +SKIP
    ((435, 16), 168)
    """
    check_choice("name", name, tuple(_SETS))
    X, y = _SETS[name](data_home)
    if name.startswith(("dna", "satimage")):
        X, y = _against_as_many(X, y, random_state)
    return _scaled(X), y.astype(np.int64)


def _against_as_many(X: NDArray[Any], y: NDArray[Any], random_state: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    from sklearn.utils import check_random_state

    others = np.flatnonzero(~y)
    drawn = check_random_state(random_state).permutation(others)[: int(y.sum())]
    rows = np.sort(np.concatenate([np.flatnonzero(y), drawn]))
    return X[rows], y[rows]


def _scaled(X: NDArray[Any]) -> NDArray[np.float64]:
    """Scale every column to [−1, 1] and constant columns to 0."""
    low, high = X.min(axis=0), X.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    return np.where(high > low, 2.0 * (X - low) / span - 1.0, 0.0)


def _cells(home: Home, name: str, header: bool) -> list[list[str]]:
    path = data_file("uci", name, home)
    lines = [line for line in _lines(path) if line.strip()][1 if header else 0 :]
    cells = [[cell.strip() for cell in line.split(",")] for line in lines]
    for number, row in enumerate(cells, 2 if header else 1):
        if len(row) != len(cells[0]):
            raise ValueError(f"{path}:{number}: expected {len(cells[0])} cells, found {len(row)}")
    return cells


def _svmlight(home: Home, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(data_file("libsvm", name, home)))
    return X.toarray(), y


def _heart(home: Home) -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = _svmlight(home, "heart_scale")
    return X, y > 0


def _vote(home: Home) -> tuple[NDArray[Any], NDArray[Any]]:
    cells = _cells(home, "HouseVotes84.csv", header=True)
    value = {"y": 1.0, "n": -1.0, "?": 0.0, "NA": 0.0}
    return np.array([[value[cell] for cell in row[1:]] for row in cells]), np.array(
        [c[0] == "republican" for c in cells]
    )


def _australian(home: Home) -> tuple[NDArray[Any], NDArray[Any]]:
    table = np.array(_cells(home, "keel-australian.dat", header=False), np.float64)
    age = table[:, 1]
    digits = np.floor(np.log10(np.maximum(age, 1.0))) + 1
    table[:, 1] = age / 10.0 ** np.maximum(digits - 2, 0)
    return table[:, :-1], table[:, -1] > 0


def _breast(home: Home) -> tuple[NDArray[Any], NDArray[Any]]:
    cells = _cells(home, "BreastCancer.csv", header=True)
    X = np.array([[np.nan if cell in ("?", "NA") else float(cell) for cell in row[1:-1]] for row in cells])
    return np.where(np.isnan(X), np.nanmedian(X, axis=0), X), np.array([row[-1] == "malignant" for row in cells])


def _ionosphere(home: Home) -> tuple[NDArray[Any], NDArray[Any]]:
    cells = _cells(home, "ionosphere.data", header=False)
    return np.array([row[:-1] for row in cells], np.float64), np.array([row[-1] == "g" for row in cells])


def _dna(k: int) -> Callable[[Home], tuple[NDArray[Any], NDArray[Any]]]:
    def read(home: Home) -> tuple[NDArray[Any], NDArray[Any]]:
        X, y = _svmlight(home, "dna.scale")
        return X, y == k

    return read


def _satimage(home: Home) -> tuple[NDArray[Any], NDArray[Any]]:
    cells = _cells(home, "Satellite.csv", header=True)[:4435]
    return np.array([row[:-1] for row in cells], np.float64), np.array([row[-1] == "cotton crop" for row in cells])


_SETS: dict[str, Callable[[Home], tuple[NDArray[Any], NDArray[Any]]]] = {
    "heart": _heart,
    "vote": _vote,
    "australian": _australian,
    "breast-w": _breast,
    "ionosphere": _ionosphere,
    "dna-1": _dna(1),
    "dna-2": _dna(2),
    "dna-3": _dna(3),
    "satimage-2": _satimage,
}
