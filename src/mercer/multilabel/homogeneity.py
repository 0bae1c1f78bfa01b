"""Homogeneity analysis (multiple correspondence analysis) of tables of categories, with missing values and weights.

    min Σ_j tr (X − G_j Y_j)' S_j W (X − G_j Y_j)        1'S W X = 0,   X'S W X = (1'S W 1) I,   S = Σ_j S_j

G_j the indicator matrix of variable j, S_j = diag(1 if not missing), W weights of rows. X holds the scores of the rows,
Y_j the quantifications of the categories: a category is the weighted mean of its rows, and a row the mean of its
categories, up to the eigenvalue. The solution is one eigenproblem of the size of the number of categories,

    B v = λ v,   B = D^−½ G'W S⁻¹ G D^−½ − u u',   G = [G_1 … G_J],  D = diag(G'W 1),  u = D^½ 1 / ‖D^½ 1‖

where u u' removes the trivial solution, to which alternating updates without centring converge (as in [Xiong2013b]). B
needs only counts of pairs of categories, so a table of any length takes one pass.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._state.saved import Fields, Floats, LabelValues, ListOf, Saved, Strings
from mercer._validation import check_choice, check_count, check_weights
from mercer.multilabel._categories import columns_of_table, encode_column, factorize

__all__ = ["HomogeneityAnalysis"]

_DENSE = 1500  # categories up to which the matrix is formed
_ROWS = 1 << 16  # rows whose scores are summed at a time


class HomogeneityAnalysis(Saved, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Embed the rows and the categories of a table in one space (multiple correspondence analysis).

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the space; at most the number of categories minus the number of columns.
    handle_unknown : {"error", "missing"}, default="error"
        Treatment of unseen categories in `transform`.

    Attributes
    ----------
    object_scores_ : array of shape (n_rows, n_components)
        Scores of the training rows, of mean 0 and variance 1 (weighted by the number of values that a row has).
    quantifications_ : list of arrays of shape (n_categories, n_components)
        For each column the coordinates of its categories.
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues from 1, where rows agree in all columns, down to 0.
    columns_ : list of str
    categories_ : list of arrays
        Categories of each column.

    Examples
    --------
    >>> from mercer.multilabel import HomogeneityAnalysis
    >>> table = {"shape": ["cup", "cup", "knife", "knife", None], "metal": ["no", "no", "yes", "yes", "yes"]}
    >>> model = HomogeneityAnalysis(n_components=1).fit(table)
    >>> scores = model.object_scores_[:, 0]
    >>> bool(scores[0] == scores[1] and scores[2] == scores[3] and scores[0] * scores[2] < 0)
    True

    References
    ----------
    .. [Gifi1990] A. Gifi. Nonlinear multivariate analysis. Wiley, 1990.
    .. [Xiong2013b] H. Xiong, S. Szedmak and J. Piater. Homogeneity analysis for object-action relation reasoning in
       kitchen scenarios. 2nd Workshop on Machine Learning for Interactive Systems, 2013.
    """

    saved = Fields(
        columns_=Strings(),
        categories_=ListOf(LabelValues(0), "columns_"),
        quantifications_=ListOf(Floats(None, "eigenvalues_"), "columns_"),
        eigenvalues_=Floats(None, low=0.0, high=1.0 + 1e-9),
        object_scores_=Floats(None, "eigenvalues_"),
    )

    def __init__(self, n_components: int = 2, *, handle_unknown: str = "error") -> None:
        self.n_components = n_components
        self.handle_unknown = handle_unknown

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> HomogeneityAnalysis:
        """Learn the coordinates of categories.

        Parameters
        ----------
        X : table
            A data frame, a dict of columns, or an array; None, NaN and negative integers are missing.
        y : ignored
        sample_weight : array of shape (n_rows,), optional
            Weights of rows, at least 0.

        Returns
        -------
        self : HomogeneityAnalysis
        """
        p = check_count("n_components", self.n_components)
        check_choice("handle_unknown", self.handle_unknown, ("error", "missing"))
        names, columns = columns_of_table(X)
        self._remember(names, len(columns))
        coded = [factorize(column) for column in columns]
        codes = [one for one, _ in coded]
        self.categories_ = [categories for _, categories in coded]
        n = len(codes[0])
        self._check_table(n, p)
        present = _present(codes)
        given = check_weights(sample_weight, n)
        weights = np.ones(n) if given is None else given
        starts = np.concatenate([[0], np.cumsum([len(c) for c in self.categories_])])
        values, vectors, mass = _solve(codes, starts, weights, present, p)
        total = float((weights * present).sum())
        kept = mass > 0
        scaled = np.zeros_like(vectors)
        scaled[kept] = vectors[kept] / np.sqrt(mass[kept])[:, None]
        Y = scaled * np.sqrt(values * total)  # λ D^−½ v √(total / λ)
        self.eigenvalues_ = values
        self.quantifications_ = [np.ascontiguousarray(Y[a:b]) for a, b in pairwise(starts)]
        self.object_scores_ = self._scores(codes, present)
        return self

    def _remember(self, names: list[str] | None, J: int) -> None:
        self.n_features_in_ = J
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.columns_ = [f"x{j}" for j in range(J)] if names is None else names

    def _check_table(self, n: int, p: int) -> None:
        sizes = [len(c) for c in self.categories_]
        for name, size in zip(self.columns_, sizes, strict=True):
            if size == 0:
                raise ValueError(f"column {name!r} has no value at all: leave it out")
            if size == n > 20:
                raise ValueError(
                    f"column {name!r} has another category in each of the {n} rows: leave it out, or cut its numbers"
                    " into intervals"
                )
        if all(size == 1 for size in sizes):
            raise ValueError("all columns are constant: there is nothing to tell rows apart by")
        most = min(sum(sizes) - len(sizes), n - 1)
        if p > most:
            raise ValueError(f"n_components is {p}, but {n} rows with {sum(sizes)} categories have {most} at most")

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def transform(self, X: Any) -> np.ndarray:
        """Return the scores of rows: the means of their categories, in the units of the training scores.

        Parameters
        ----------
        X : table with the columns of training

        Returns
        -------
        scores : array of shape (n_rows, n_components)
        """
        codes = self._encoded(X)
        return self._scores(codes, _present(codes))

    def _encoded(self, X: Any) -> list[np.ndarray]:
        check_is_fitted(self, "quantifications_")
        names, columns = columns_of_table(X)
        if names is not None and hasattr(self, "feature_names_in_"):
            missing = [name for name in self.columns_ if name not in names]
            if missing:
                raise ValueError(f"the table has no column {missing[0]!r}, which training had")
            columns = [columns[names.index(name)] for name in self.columns_]
        elif len(columns) != len(self.columns_):
            raise ValueError(f"the table has {len(columns)} columns, training had {len(self.columns_)}")
        each = zip(columns, self.categories_, self.columns_, strict=True)
        return [encode_column(column, categories, name, self.handle_unknown) for column, categories, name in each]

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and return the scores of the rows.

        Parameters
        ----------
        X : table
        y : ignored
        sample_weight : array of shape (n_rows,), optional

        Returns
        -------
        scores : array of shape (n_rows, n_components)
        """
        return self.fit(X, y, sample_weight).object_scores_

    def _scores(self, codes: list[np.ndarray], present: np.ndarray) -> np.ndarray:
        """S⁻¹ Σ_j G_j Y_j / λ."""
        n, p = len(present), len(self.eigenvalues_)
        inverse = np.where(self.eigenvalues_ > 1e-12, 1.0 / np.maximum(self.eigenvalues_, 1e-300), 0.0)
        tables = [np.vstack([Y * inverse, np.zeros(p)]) for Y in self.quantifications_]  # −1 finds the last row
        scores = np.zeros((n, p))
        for at in range(0, n, _ROWS):
            part = scores[at : at + _ROWS]
            for one, table in zip(codes, tables, strict=True):
                part += table[one[at : at + _ROWS]]
            part /= present[at : at + _ROWS, None]
        return scores

    def plot(self, components: tuple[int, int] = (0, 1), *, rows: bool = True, ax: Any = None) -> Any:
        """Draw rows as points and categories as names, on two components.

        Parameters
        ----------
        components : pair of int, default=(0, 1)
        rows : bool, default=True
            Whether rows are drawn.
        ax : matplotlib axes, optional

        Returns
        -------
        ax : matplotlib axes
        """
        check_is_fitted(self, "quantifications_")
        a, b = components
        for k in (a, b):
            if not 0 <= k < len(self.eigenvalues_):
                raise ValueError(f"components names {k}, but there are {len(self.eigenvalues_)} components")
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(7, 6))
        if rows:
            shown = self.object_scores_[:: max(1, len(self.object_scores_) // 5000)]
            ax.scatter(shown[:, a], shown[:, b], s=8, color="0.8", zorder=1)
        for j, (name, categories, Y) in enumerate(
            zip(self.columns_, self.categories_, self.quantifications_, strict=True)
        ):
            color = f"C{j % 10}"
            ax.scatter(Y[:, a], Y[:, b], s=22, color=color, zorder=3, label=name)
            for category, place in zip(categories.tolist(), Y, strict=True):
                ax.annotate(
                    f"{name}={category}", place[[a, b]], fontsize=7, color=color, xytext=(3, 3),
                    textcoords="offset points", zorder=4,
                )  # fmt: skip
        ax.axhline(0, color="0.9", zorder=0)
        ax.axvline(0, color="0.9", zorder=0)
        ax.set_xlabel(f"component {a} (eigenvalue {self.eigenvalues_[a]:.2f})")
        ax.set_ylabel(f"component {b} (eigenvalue {self.eigenvalues_[b]:.2f})")
        return ax

    def _check_state(self) -> None:
        check_count("n_components", self.n_components)
        for name, categories, Y in zip(self.columns_, self.categories_, self.quantifications_, strict=True):
            if len(categories) != len(Y):
                raise ValueError(f"column {name!r} has {len(categories)} categories and {len(Y)} quantifications")


# ---------------------------------------------------------------------------------------------------- parts


def _present(codes: list[np.ndarray]) -> np.ndarray:
    """How many columns have a value, for each row; raises ValueError for a row that has none."""
    present = np.zeros(len(codes[0]))
    for one in codes:
        present += one >= 0
    if (present == 0).any():
        raise ValueError(f"row {int(np.flatnonzero(present == 0)[0])} of the table has no value at all")
    return present


def _solve(
    codes: list[np.ndarray], starts: np.ndarray, weights: np.ndarray, present: np.ndarray, p: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The leading eigenvalues and eigenvectors without the trivial ones, and D."""
    N = int(starts[-1])
    per_row = weights / present
    plain = bool((weights == 1).all())
    mass = np.zeros(N)
    for one, a, b in zip(codes, starts[:-1], starts[1:], strict=True):
        there = one >= 0
        kept, w = (one, weights) if there.all() else (one[there], weights[there])
        mass[a:b] = np.bincount(kept, None if plain else w, minlength=b - a)
    root = np.sqrt(np.where(mass > 0, mass, 1.0))
    trivial = np.where(mass > 0, root, 0.0)
    trivial /= np.linalg.norm(trivial)
    if N <= _DENSE:
        B = _burt(codes, starts, per_row)
        B /= root[:, None]
        B /= root
        B -= np.outer(trivial, trivial)
        values, vectors = eigh(B, subset_by_index=(N - p, N - 1))
    else:
        G = _indicators(codes, starts)
        forward = sp.csr_matrix(G.multiply(np.sqrt(per_row)[:, None]) @ sp.diags(1.0 / root))

        def product(v: np.ndarray) -> np.ndarray:
            v = v.ravel()
            return forward.T @ (forward @ v) - trivial * (trivial @ v)

        start = np.cos(np.arange(N, dtype=np.float64))
        values, vectors = eigsh(LinearOperator((N, N), product, dtype=np.float64), k=p, which="LA", v0=start)
    order = np.argsort(-values)
    values, vectors = np.clip(values[order], 0.0, 1.0), vectors[:, order]
    largest = np.abs(vectors).argmax(axis=0)
    return values, vectors * np.sign(vectors[largest, np.arange(p)]), mass


def _burt(codes: list[np.ndarray], starts: np.ndarray, per_row: np.ndarray) -> np.ndarray:
    """G'W S⁻¹ G: how often two categories meet, rows weighted."""
    J, N = len(codes), int(starts[-1])
    B = np.zeros((N, N))
    same = float(per_row[0]) if (per_row == per_row[0]).all() else None
    # A category more for what is missing, so that no row has to be left out.
    sizes = [int(b - a) for a, b in pairwise(starts)]
    shifted = [np.where(one >= 0, one, size).astype(np.int64) for one, size in zip(codes, sizes, strict=True)]
    for j in range(J):
        row = shifted[j]
        for k in range(j, J):
            width = sizes[k] + 1
            cell = row * width + shifted[k]
            counts = np.bincount(cell, None if same is not None else per_row, minlength=(sizes[j] + 1) * width)
            block = counts.reshape(-1, width)[: sizes[j], : sizes[k]] * (1.0 if same is None else same)
            B[starts[j] : starts[j + 1], starts[k] : starts[k + 1]] = block
            B[starts[k] : starts[k + 1], starts[j] : starts[j + 1]] = block.T
    return B


def _indicators(codes: list[np.ndarray], starts: np.ndarray) -> sp.csr_matrix:
    n = len(codes[0])
    stacked = np.stack([np.where(one >= 0, one + a, -1) for one, a in zip(codes, starts[:-1], strict=True)], axis=1)
    there = stacked >= 0
    indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    return sp.csr_matrix((np.ones(int(indptr[-1])), stacked[there], indptr), shape=(n, int(starts[-1])))
