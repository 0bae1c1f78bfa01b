"""Trees of binary variables, learnt from rows of 0 and 1, optionally with hidden variables.

    Chow–Liu    the spanning tree with the largest sum of mutual informations: the tree of the highest likelihood
    hidden      distances d_ij = −log |corr_ij| add up along the paths of a tree. Neighbour joining finds the joints of
                each neighbourhood of the tree of Chow and Liu, those already found included; joints at the end of short
                branches vanish. How short, BIC says after expectation maximisation; where it gains by that, hidden
                nodes are then contracted into a neighbour, and columns made leaves of a hidden one [Choi2011]

Evidence on a variable is a state, or a probability that its marginal must have (Jeffrey's rule, soft evidence). Soft
evidence gives the product Π_v φ_v(x_v) · p(x) with factors φ such that every marginal is matched, by iterative
proportional fitting along a tour of the tree, with two messages per edge.

All rows of a batch are processed together: a message is an array (rows, 2).
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._estimator import Estimator
from mercer._state.saved import Count, Fields, Floats, Ints, Number, Saved
from mercer._validation import check_count, check_positive, used_examples
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning
from mercer.inference.bayesian import BayesianNetwork

__all__ = ["ChowLiuTree", "LatentTree"]

_FAR = 1e3  # distance of variables that are independent
_TINY = 1e-12
_LONG = 5.0  # the longest distance that is told from independence
_BRANCHES = (0.05, 0.1, 0.2, 0.4, np.inf)  # the shortest branches of trees that are compared
_MOST_CHANGES = 20  # of a tree after it was made


class BinaryTree(Saved, Estimator):
    """A tree of binary variables, with a parent and a conditional table for each, and its inference methods."""

    parents_: np.ndarray
    conditional_: np.ndarray

    saved = Fields(
        parents_=Ints(None, low=-1, below="parents_"),
        conditional_=Floats("parents_", 2, low=0.0, high=1.0),
        log_likelihood_=Number(),
        bic_=Number(),
    )

    # ------------------------------------------------------------------ shape

    def _set_tree(self, edges: Sequence[tuple[int, int]], n_nodes: int, root: int = 0) -> None:
        """Parents by walks from the root; edges of separate parts start at nodes without a parent."""
        neighbours: list[list[int]] = [[] for _ in range(n_nodes)]
        for a, b in edges:
            neighbours[a].append(b)
            neighbours[b].append(a)
        parents, order, seen = np.full(n_nodes, -1), [], np.zeros(n_nodes, bool)
        for start in [root, *range(n_nodes)]:
            stack = [] if seen[start] else [start]
            seen[start] = True
            while stack:
                v = stack.pop()
                order.append(v)
                for c in sorted(neighbours[v], reverse=True):
                    if not seen[c]:
                        seen[c], parents[c] = True, v
                        stack.append(c)
        self.parents_ = parents
        self._order = np.array(order)
        self._children = [np.flatnonzero(parents == v).tolist() for v in range(n_nodes)]

    def _tables(self) -> np.ndarray:
        """p(x_v = s | parent = r) as (nodes, r, s)."""
        return np.stack([1.0 - self.conditional_, self.conditional_], axis=2)

    def _prepare(self) -> None:
        """Order and children from the parents, for a model from a file."""
        n = len(self.parents_)
        edges = [(v, int(p)) for v, p in enumerate(self.parents_) if p >= 0]
        roots = np.flatnonzero(self.parents_ < 0)
        if len(edges) + len(roots) != n or not len(roots):
            raise ValueError("the parents are not those of a tree")
        before = self.parents_.copy()
        self._set_tree(edges, n, int(roots[0]))
        if (before != self.parents_).any():
            raise ValueError("the parents are not those of a tree")

    @property
    def n_nodes(self) -> int:
        """Return the number of variables, including hidden ones."""
        return len(self.parents_)

    @property
    def edges_(self) -> list[tuple[int, int]]:
        """Pairs (parent, child)."""
        return [(int(p), v) for v, p in enumerate(self.parents_) if p >= 0]

    def to_network(self) -> BayesianNetwork:
        """Return the tree as a Bayesian network, for `infer`; variables are numbered as columns, then hidden ones.

        Returns
        -------
        BayesianNetwork
            The same distribution.
        """
        check_is_fitted(self)
        tables = self._tables()
        parents = {v: [int(p)] for v, p in enumerate(self.parents_) if p >= 0}
        return BayesianNetwork(
            dict.fromkeys(range(self.n_nodes), 2),
            parents,
            {v: tables[v] if v in parents else tables[v, 0] for v in range(self.n_nodes)},
        )

    # ------------------------------------------------------------------ messages

    def _up(self, phi: np.ndarray, tables: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Evidence below each node (V, n, 2), messages to parents (V, n, 2), and the log of what was divided out."""
        below, up = phi.copy(), np.ones_like(phi)
        scale = np.zeros(phi.shape[1])
        for v in self._order[::-1]:
            for c in self._children[v]:
                below[v] *= up[c]
            total = below[v].sum(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                below[v] = np.where(total[:, None] > 0, below[v] / total[:, None], 0.0)
                scale += np.log(total)
            up[v] = below[v] @ tables[v].T
        return below, up, scale

    def _log_evidence(self, phi: np.ndarray) -> np.ndarray:
        """log Σ_x p(x) Π_v φ_v(x_v) of each row."""
        _, up, scale = self._up(phi, self._tables())
        with np.errstate(divide="ignore"):
            return scale + sum(np.log(up[v][:, 0]) for v in np.flatnonzero(self.parents_ < 0))

    def _beliefs(self, phi: np.ndarray, tables: np.ndarray, pairs: bool = False) -> tuple[np.ndarray, Any, np.ndarray]:
        """Marginals (V, n, 2), sums over rows of pairs (V, 2, 2) if asked, and the log of the evidence."""
        below, up, scale = self._up(phi, tables)
        beliefs, above = np.empty_like(phi), np.empty_like(phi)
        together = np.zeros((len(phi), 2, 2)) if pairs else None
        for v in self._order:
            p = self.parents_[v]
            if p < 0:
                above[v] = tables[v, 0]
                with np.errstate(divide="ignore"):
                    scale = scale + np.log(up[v][:, 0])
            else:  # everything about the parent but what this child says
                with np.errstate(divide="ignore", invalid="ignore"):
                    rest = np.where(up[v] > 0, beliefs[p] / up[v], 0.0)
                if together is not None:
                    joint = rest[:, :, None] * tables[v] * below[v][:, None, :]
                    total = joint.sum(axis=(1, 2), keepdims=True)
                    together[v] = np.einsum("nab,n->ab", joint / np.maximum(total, 1e-300), self._counts)
                above[v] = rest @ tables[v]
            joint = above[v] * below[v]
            beliefs[v] = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
        return beliefs, together, scale

    def _factors(self, evidence: Any, n_default: int = 1) -> np.ndarray:
        """φ (V, n, 2) of evidence: rows of states, NaN where nothing is known."""
        evidence = self._states("evidence", evidence, n_default)
        phi = np.ones((self.n_nodes, len(evidence), 2))
        known = ~np.isnan(evidence).T
        if not np.isin(evidence[known.T], (0.0, 1.0)).all():
            raise ValueError("evidence must be 0 or 1, or NaN where nothing is known")
        phi[..., 1][known] = evidence.T[known]
        phi[..., 0][known] = 1.0 - evidence.T[known]
        return phi

    def _states(self, name: str, given: Any, n_default: int = 1) -> np.ndarray:
        """Rows (n, V): of a mapping from variables, of columns alone (hidden ones unknown), or of all variables."""
        if given is None:
            return np.full((n_default, self.n_nodes), np.nan)
        if isinstance(given, Mapping):
            row = np.full((1, self.n_nodes), np.nan)
            for v, value in given.items():
                row[0, self._node(v)] = value
            return row
        rows = np.atleast_2d(np.asarray(given, np.float64))
        if rows.ndim != 2 or rows.shape[1] not in (self.n_features_in_, self.n_nodes):
            raise ValueError(f"{name} must have a column for each of the {self.n_features_in_} variables")
        if rows.shape[1] < self.n_nodes:
            rows = np.hstack([rows, np.full((len(rows), self.n_nodes - rows.shape[1]), np.nan)])
        return rows

    def _node(self, v: Any) -> int:
        if isinstance(v, bool) or not isinstance(v, (int, np.integer)) or not 0 <= v < self.n_nodes:
            raise ValueError(f"{v!r} is not a variable: they are numbered 0 to {self.n_nodes - 1}")
        return int(v)

    # ------------------------------------------------------------------ questions

    def marginals(
        self, evidence: Any = None, soft: Any = None, *, tol: float = 1e-9, max_iter: int = 100
    ) -> np.ndarray:
        """Return the probability that each variable is 1, given states or marginals of others.

        Parameters
        ----------
        evidence : array of shape (n_rows, n_features) or mapping, optional
            States 0 and 1, NaN if unknown; or ``{variable: state}``.
        soft : array of shape (n_rows, n_features) or mapping, optional
            Required marginal probabilities of these variables, NaN elsewhere. The result is the closest distribution to
            the tree with these marginals (Jeffrey's rule).
        tol : float, default=1e-9
            Tolerance on the marginals in ``soft``.
        max_iter : int, default=100
            Maximum number of tours of the tree.

        Returns
        -------
        ndarray of shape (n_rows, n_nodes)
            Probabilities; hidden variables come last.

        Raises
        ------
        ValueError
            If the evidence has probability 0.
        """
        phi = self._with_soft(evidence, soft, tol, max_iter)
        beliefs, _, log_evidence = self._beliefs(phi, self._tables())
        _check_possible(log_evidence)
        return beliefs[..., 1].T

    def joint(
        self,
        variables: Sequence[int],
        evidence: Any = None,
        soft: Any = None,
        *,
        tol: float = 1e-9,
        max_iter: int = 100,
    ) -> np.ndarray:
        """Return the joint distribution of a few variables.

        Parameters
        ----------
        variables : sequence of int
            Up to 12 different variables.
        evidence, soft, tol, max_iter
            See `marginals`.

        Returns
        -------
        ndarray of shape (n_rows, 2, …, 2)
            An axis for each variable.
        """
        nodes = [self._node(v) for v in variables]
        if not nodes or len(nodes) > 12 or len(set(nodes)) < len(nodes):
            raise ValueError(f"variables must be 1 to 12 different ones, got {list(variables)}")
        p = self._joint_of(nodes, self._with_soft(evidence, soft, tol, max_iter))
        return p.reshape(len(p), *[2] * len(nodes))

    def _joint_of(self, nodes: Sequence[int], phi: np.ndarray) -> np.ndarray:
        """The joint distribution (n, 2^k) of nodes under factors φ, the first node changing slowest."""
        logs = []
        for states in itertools.product((0, 1), repeat=len(nodes)):
            clamped = phi.copy()
            for v, state in zip(nodes, states, strict=True):
                clamped[v, :, 1 - state] = 0.0
            logs.append(self._log_evidence(clamped))
        scores = np.stack(logs, axis=1)
        top = scores.max(axis=1, keepdims=True)
        _check_possible(top[:, 0])
        p = np.exp(scores - top)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def _with_soft(self, evidence: Any, soft: Any, tol: float, max_iter: int) -> np.ndarray:
        check_is_fitted(self)
        check_positive("tol", tol)
        check_count("max_iter", max_iter)
        targets = self._states("soft", soft)
        phi = self._factors(evidence, len(targets))
        if len(targets) != phi.shape[1]:
            if len(targets) != 1 and phi.shape[1] != 1:
                raise ValueError(
                    f"evidence has {phi.shape[1]} rows and soft {len(targets)}: they must be of one length"
                )
            n = max(len(targets), phi.shape[1])
            targets = np.broadcast_to(targets, (n, self.n_nodes))
            phi = np.broadcast_to(phi, (self.n_nodes, n, 2)).copy()
        if np.isnan(targets).all():
            return phi
        if (targets[~np.isnan(targets)] < 0).any() or (targets[~np.isnan(targets)] > 1).any():
            raise ValueError("soft must hold probabilities from 0 to 1, or NaN where there is none")
        return self._fit_marginals(phi, targets.T, tol, max_iter)

    def _fit_marginals(self, phi: np.ndarray, targets: np.ndarray, tol: float, max_iter: int) -> np.ndarray:
        """φ times factors with which every marginal is its target: proportional fitting along a tour of the tree."""
        tables, phi = self._tables(), phi.copy()
        wanted = [v for v in range(self.n_nodes) if not np.isnan(targets[v]).all()]
        known = ~np.isnan(targets)
        goal = np.stack([1.0 - targets, targets], axis=2)
        worst = np.inf
        for _ in range(max_iter):
            _, up, _ = self._up(phi, tables)
            worst = 0.0
            for root in np.flatnonzero(self.parents_ < 0):
                worst = max(worst, self._tour(int(root), phi, up, tables, goal, known))
            if worst <= tol:
                return phi
        if worst > 1e-4:
            warn_caller(
                f"the marginals of {len(wanted)} variables were met to {worst:.2g} only after {max_iter} tours: they "
                "may contradict each other",
                ConvergenceWarning,
            )
        return phi

    def _tour(self, root: int, phi: Any, up: Any, tables: Any, goal: Any, known: Any) -> float:
        """Visit all nodes below a root; scale φ of each so that its marginal is met, with messages that are current."""
        worst = 0.0
        above = {root: np.broadcast_to(tables[root, 0], phi[root].shape)}
        stack: list[tuple[int, int]] = [(root, 0)]
        while stack:
            v, i = stack.pop()
            children = self._children[v]
            if i == 0 and known[v].any():
                belief = above[v] * phi[v]
                for c in children:
                    belief = belief * up[c]
                belief /= np.maximum(belief.sum(axis=1, keepdims=True), 1e-300)
                rows = known[v]
                worst = max(worst, float(np.abs(belief[rows, 1] - goal[v, rows, 1]).max()))
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = np.where(goal[v, rows] > 0, goal[v, rows] / belief[rows], 0.0)
                ratio[~np.isfinite(ratio)] = 0.0
                changed = phi[v, rows] * ratio
                phi[v, rows] = changed / np.maximum(changed.max(axis=1, keepdims=True), 1e-300)
            if i < len(children):
                c = children[i]
                rest = above[v] * phi[v]
                for other in children:
                    if other != c:
                        rest = rest * up[other]
                rest = rest / np.maximum(rest.sum(axis=1, keepdims=True), 1e-300)
                above[c] = rest @ tables[c]
                stack += [(v, i + 1), (c, 0)]
            elif self.parents_[v] >= 0:
                below = phi[v].copy()
                for c in children:
                    below *= up[c]
                below /= np.maximum(below.sum(axis=1, keepdims=True), 1e-300)
                up[v] = below @ tables[v].T
        return worst

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-probability of rows; NaN marks an unknown value.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows of 0 and 1.

        Returns
        -------
        ndarray of shape (n_rows,)
            log p(x).
        """
        check_is_fitted(self)
        X = self._binary_rows(X, reset=False)
        return self._log_evidence(self._factors(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-probability of rows.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows of 0 and 1.
        y : None
            Not used.

        Returns
        -------
        float
            The mean.
        """
        return float(self.score_samples(X).mean())

    def sample(self, size: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw rows.

        Parameters
        ----------
        size : int, default=1
            Number of rows.
        random_state : int, Generator or None
            Seed of the draws.

        Returns
        -------
        ndarray of int of shape (size, n_features)
            Rows of 0 and 1.
        """
        check_is_fitted(self)
        size = check_count("size", size)
        random = np.random.default_rng(random_state)
        drawn = np.zeros((size, self.n_nodes), np.int64)
        for v in self._order:
            before = drawn[:, self.parents_[v]] if self.parents_[v] >= 0 else np.zeros(size, np.int64)
            drawn[:, v] = random.random(size) < self.conditional_[v, before]
        return drawn[:, : self.n_features_in_]

    # ------------------------------------------------------------------ learning

    def _binary_rows(self, X: Any, reset: bool) -> np.ndarray:
        if hasattr(X, "toarray"):
            X = X.toarray()
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite=True if reset else "allow-nan", reset=reset)
        known = X[~np.isnan(X)]
        if not ((known == 0) | (known == 1)).all():
            bad = known[(known != 0) & (known != 1)][0]
            raise ValueError(f"X must hold 0 and 1 only, found {bad:g}")
        return X

    def _keep_scores(self, rows: np.ndarray, counts: np.ndarray) -> None:
        n = float(counts.sum())
        self.log_likelihood_ = float(counts @ self._log_evidence(self._factors(rows)))
        free = 2 * (self.parents_ >= 0).sum() + (self.parents_ < 0).sum()
        self.bic_ = self.log_likelihood_ - 0.5 * float(free) * float(np.log(max(n, 2.0)))

    def _weighted_rows(self, X: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
        """Training rows with a weight above 0, and these weights."""
        X = self._binary_rows(X, reset=True)
        used, weights = used_examples(sample_weight, len(X))
        return (X, np.ones(len(X))) if used is None or weights is None else (X[used], weights)

    def _fit_tables(self, X: np.ndarray, smoothing: float, counts: np.ndarray) -> None:
        """Conditional tables by counts, with ``smoothing`` added to each."""
        self.conditional_ = np.empty((len(self.parents_), 2))
        for v, p in enumerate(self.parents_):
            if p < 0:
                on = (counts @ X[:, v] + smoothing) / (counts.sum() + 2.0 * smoothing)
                self.conditional_[v] = on
                continue
            for state in (0, 1):
                own = counts * (X[:, p] == state)
                weight = own.sum() + 2.0 * smoothing
                self.conditional_[v, state] = (own @ X[:, v] + smoothing) / weight if weight else 0.5

    def _check_state(self) -> None:
        if len(self.parents_) < self.n_features_in_:
            raise ValueError(f"{len(self.parents_)} nodes are fewer than the {self.n_features_in_} columns")
        self._prepare()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class ChowLiuTree(BinaryTree):
    """Learn the tree of binary variables with the highest likelihood.

    Parameters
    ----------
    smoothing : float, default=0.5
        Added to every count of the conditional tables.

    Attributes
    ----------
    parents_ : ndarray of int of shape (n_features,)
        Parent of each variable; −1 for roots.
    conditional_ : ndarray of shape (n_features, 2)
        Probability of 1, for parents of 0 and of 1.
    mutual_information_ : ndarray of shape (n_features,)
        Mutual information of each variable with its parent, in nats; 0 for roots.
    log_likelihood_, bic_ : float
        Log-likelihood and BIC of the training rows; BIC is the log-likelihood minus ½ log n for each free parameter.

    References
    ----------
    .. [Chow1968] C. K. Chow and C. N. Liu. Approximating discrete probability distributions with dependence trees. IEEE
       Transactions on Information Theory 14, 1968.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference import ChowLiuTree
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.random(500) < 0.3
    >>> wet = rain ^ (rng.random(500) < 0.1)
    >>> slip = wet & (rng.random(500) < 0.4)
    >>> tree = ChowLiuTree().fit(np.c_[rain, wet, slip].astype(int))
    >>> tree.parents_
    array([-1,  0,  1])
    >>> tree.marginals({2: 1}).round(2)  # who slips: it has probably rained
    array([[0.78, 0.99, 1.  ]])
    """

    saved = BinaryTree.saved | Fields(mutual_information_=Floats("parents_", low=0.0))

    def __init__(self, smoothing: float = 0.5) -> None:
        self.smoothing = smoothing

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ChowLiuTree:
        """Learn the tree from rows of 0 and 1.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.
        y : None
            Not used.
        sample_weight : array of n_rows numbers of at least 0, optional
            A row of weight 2 counts as two; one of weight 0 is left out.

        Returns
        -------
        ChowLiuTree
            This tree.
        """
        smoothing = check_positive("smoothing", self.smoothing)
        X, counts = self._weighted_rows(X, sample_weight)
        information = mutual_informations(X, counts)
        self._set_tree(_spanning(information), X.shape[1])
        own = np.arange(X.shape[1])
        self.mutual_information_ = np.where(self.parents_ >= 0, information[own, self.parents_], 0.0)
        self._fit_tables(X, smoothing, counts)
        self._keep_scores(X, counts)
        return self


def mutual_informations(X: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the mutual information of all pairs of columns of 0 and 1, in nats."""
    w = np.ones(len(X)) if weights is None else weights
    n = w.sum()
    both = (X * w[:, None]).T @ X / n
    on = np.diag(both)
    total = np.zeros_like(both)
    for p, a, b in (
        (both, on[:, None], on[None]),
        (on[:, None] - both, on[:, None], 1.0 - on[None]),
        (on[None] - both, 1.0 - on[:, None], on[None]),
        (1.0 - on[:, None] - on[None] + both, 1.0 - on[:, None], 1.0 - on[None]),
    ):
        p = np.maximum(p, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            total += np.where(p > 0, p * np.log(p / (a * b)), 0.0)
    np.fill_diagonal(total, 0.0)
    return np.maximum(total, 0.0)


def _spanning(weights: np.ndarray) -> list[tuple[int, int]]:
    """The spanning tree of the largest weight (Prim, from the first node; of equal edges the first)."""
    n = len(weights)
    best, start = weights[0].copy(), np.zeros(n, np.int64)
    inside = np.zeros(n, bool)
    inside[0] = True
    edges = []
    for _ in range(n - 1):
        v = int(np.where(inside, -np.inf, best).argmax())
        edges.append((int(start[v]), v))
        inside[v] = True
        better = weights[v] > best
        best, start = np.where(better, weights[v], best), np.where(better, v, start)
    return edges


# ---------------------------------------------------------------------------------------------------- hidden nodes


class LatentTree(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BinaryTree):
    """Learn a tree of binary variables with hidden ones.

    The tree starts as that of Chow and Liu. Neighbour joining then reconnects each variable and its neighbours by their
    distances ``−log |correlation|``, and adds hidden variables where these distances require them. Hidden variables on
    branches shorter than a limit are dropped. Expectation maximisation fits the tables of trees with several limits,
    and of the tree without hidden variables; the tree with the highest BIC is kept. If this raises the BIC, hidden
    variables that repeat a neighbour, or join only two variables, are contracted into a neighbour, and columns between
    others become leaves of a hidden variable. `transform` returns the posterior of the hidden variables, from −1 to 1.

    Parameters
    ----------
    max_hidden : int, optional
        Maximum number of hidden variables; trees with more are discarded. By default the number of columns.
    smoothing : float, default=0.5
        Added to every expected count.
    max_iter : int, default=50
        Maximum number of iterations of expectation maximisation.
    tol : float, default=1e-5
        Gain of the mean log-likelihood below which it stops.

    Attributes
    ----------
    parents_ : ndarray of int of shape (n_nodes,)
        Parent of each variable, columns of X first, then hidden ones; −1 for roots.
    conditional_ : ndarray of shape (n_nodes, 2)
        Probability of 1, for parents of 0 and of 1.
    n_hidden_ : int
        Number of hidden variables.
    log_likelihood_, bic_ : float
        Log-likelihood and BIC of the training rows.
    n_iter_ : int
        Number of iterations.

    References
    ----------
    .. [Choi2011] M. J. Choi, V. Y. F. Tan, A. Anandkumar and A. S. Willsky. Learning latent tree graphical models.
       Journal of Machine Learning Research 12, 2011.
    .. [Saitou1987] N. Saitou and M. Nei. The neighbor-joining method: a new method for reconstructing phylogenetic
       trees. Molecular Biology and Evolution 4, 1987.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference import LatentTree
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.random((2000, 1)) < 0.5
    >>> X = (cause ^ (rng.random((2000, 4)) < 0.2)).astype(int)  # four effects of one cause that is not seen
    >>> tree = LatentTree().fit(X)
    >>> tree.n_hidden_
    1
    >>> bool(abs(np.corrcoef(tree.transform(X)[:, 0], cause[:, 0])[0, 1]) > 0.8)
    True
    """

    saved = BinaryTree.saved | Fields(n_hidden_=Count(0), n_iter_=Count(0))

    def __init__(
        self, max_hidden: int | None = None, *, smoothing: float = 0.5, max_iter: int = 50, tol: float = 1e-5
    ) -> None:
        self.max_hidden = max_hidden
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LatentTree:
        """Learn the tree from rows of 0 and 1.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.
        y : None
            Not used.
        sample_weight : array of n_rows numbers of at least 0, optional
            A row of weight 2 counts as two; one of weight 0 is left out.

        Returns
        -------
        LatentTree
            This tree.
        """
        smoothing = check_positive("smoothing", self.smoothing)
        max_iter, tol = check_count("max_iter", self.max_iter, 0), check_positive("tol", self.tol)
        X, weights = self._weighted_rows(X, sample_weight)
        d = X.shape[1]
        most = d if self.max_hidden is None else check_count("max_hidden", self.max_hidden, 0)
        edges, D = _spanning(mutual_informations(X, weights)), _distances(X, weights)
        rows, place = np.unique(X, axis=0, return_inverse=True)
        counts = np.bincount(place.ravel(), weights, minlength=len(rows))
        best: LatentTree | None = None
        tried: set[tuple[tuple[int, int], ...]] = set()
        reach = -np.log(min(1.0, 4.0 / np.sqrt(weights.sum())))  # of correlations that are hardly by chance
        for least in _BRANCHES if most else (np.inf,):  # the last one leaves the tree of Chow and Liu
            joined = _Joined(D, edges, least, reach)
            shape = tuple(joined.edges())
            if joined.n_hidden > most or shape in tried:
                continue
            tried.add(shape)
            trial = copy.copy(self)
            trial.n_hidden_, trial._counts = joined.n_hidden, counts
            trial._set_tree(joined.edges(), d + joined.n_hidden)
            trial.conditional_ = trial._first_tables(np.hstack([X, joined.posteriors(X, weights)]), weights, smoothing)
            trial.n_iter_ = trial._maximise(rows, smoothing, min(max_iter, 10), tol) if joined.n_hidden else 0
            trial._keep_scores(rows, counts)
            if best is None or trial.bic_ > best.bic_:
                best = trial
        assert best is not None
        self.__dict__.update(best.__dict__)
        if self.n_hidden_ and max_iter:
            self._prune(rows, smoothing, max_iter, tol)
            self.n_iter_ += self._maximise(rows, smoothing, max_iter, tol)
            self._keep_scores(rows, counts)
        del self._counts
        return self

    def _prune(self, rows: np.ndarray, smoothing: float, max_iter: int, tol: float) -> None:
        """Change the tree while its BIC gains: hidden variables contracted into the most alike neighbour; columns that
        lie between others made leaves of a hidden neighbour."""
        refused: set[tuple[Any, ...]] = set()
        for _ in range(_MOST_CHANGES):
            freed = [(v, h) for v in range(self.n_features_in_) for h in self._hidden_near(v)]
            for v, g in [*self._alike(rows), *freed]:
                key = (v, g, *sorted(self.edges_))
                if key in refused:
                    continue
                trial = copy.copy(self)
                trial._rewire(v, g, rows, smoothing)
                trial.n_iter_ = self.n_iter_ + trial._maximise(rows, smoothing, min(max_iter, 10), tol)
                trial._keep_scores(rows, self._counts)
                if trial.bic_ > self.bic_:
                    self.__dict__.update(trial.__dict__)
                    break
                refused.add(key)
            else:
                return

    def _hidden_near(self, v: int) -> list[int]:
        """Hidden neighbours of a column that has other neighbours, too."""
        near = [a if b == v else b for a, b in self.edges_ if v in (a, b)]
        return [h for h in near if h >= self.n_features_in_] if len(near) > 1 else []

    def _alike(self, rows: np.ndarray) -> list[tuple[int, int]]:
        """Hidden variables with the neighbour that says most about them, those that it says almost all of first."""
        beliefs, together, _ = self._beliefs(self._factors(rows), self._tables(), pairs=True)
        near: dict[int, list[tuple[float, int]]] = {v: [] for v in range(self.n_features_in_, self.n_nodes)}
        n = self._counts.sum()
        for p, v in self.edges_:
            for h, g in ((p, v), (v, p)):
                if h in near:
                    near[h].append((float(information_of_pair(together[v] / n)), g))
        alike = []
        for h, pairs in near.items():
            on = float(self._counts @ beliefs[h, :, 1]) / n
            entropy = -sum(q * np.log(q) for q in (on, 1.0 - on) if q > 0)
            if pairs:
                most, g = max(pairs)
                if len(pairs) <= 2 or most > 0.5 * entropy:
                    alike.append((len(pairs) > 2, -most / max(entropy, _TINY), h, g))
        return [(h, g) for _, _, h, g in sorted(alike)]

    def _rewire(self, v: int, g: int, rows: np.ndarray, smoothing: float) -> None:
        """Give all neighbours of v but g to g; then v goes if it is hidden, and is a leaf of g if it is a column."""
        soft = self._beliefs(self._factors(rows), self._tables())[0][..., 1].T
        moved = [(g if a == v else a, g if b == v else b) for a, b in self.edges_ if {a, b} != {v, g}]
        edges = {(min(pair), max(pair)) for pair in moved}
        if v < self.n_features_in_:
            edges.add((min(v, g), max(v, g)))
            self._set_tree(sorted(edges), self.n_nodes)
        else:
            self.n_hidden_ -= 1
            soft = np.delete(soft, v, axis=1)
            self._set_tree([(a - (a > v), b - (b > v)) for a, b in sorted(edges)], self.n_nodes - 1)
        self.conditional_ = self._first_tables(soft, self._counts, smoothing)

    def _first_tables(self, soft: np.ndarray, counts: np.ndarray, smoothing: float) -> np.ndarray:
        """Tables from columns and posteriors of hidden variables, as if these were independent given the row."""
        conditional = np.empty((len(self.parents_), 2))
        for v, p in enumerate(self.parents_):
            if p < 0:
                conditional[v] = (counts @ soft[:, v] + smoothing) / (counts.sum() + 2.0 * smoothing)
                continue
            for state in (0, 1):
                weight = counts * (soft[:, p] if state else 1.0 - soft[:, p])
                conditional[v, state] = (weight @ soft[:, v] + smoothing) / (weight.sum() + 2.0 * smoothing)
        return conditional

    def _maximise(self, rows: np.ndarray, smoothing: float, max_iter: int, tol: float) -> int:
        phi = self._factors(rows)
        n, before = self._counts.sum(), -np.inf
        for iteration in range(max_iter):
            beliefs, together, log_evidence = self._beliefs(phi, self._tables(), pairs=True)
            value = float(self._counts @ log_evidence) / n
            if value - before <= tol:
                return iteration
            before = value
            for v, p in enumerate(self.parents_):
                if p < 0:
                    on = self._counts @ beliefs[v, :, 1]
                    self.conditional_[v] = (on + smoothing) / (n + 2.0 * smoothing)
                else:
                    table = together[v] + smoothing
                    self.conditional_[v] = table[:, 1] / table.sum(axis=1)
        return max_iter

    def transform(self, X: Any) -> np.ndarray:
        """Return the posterior of the hidden variables, mapped to −1 … 1.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows of 0 and 1; NaN marks an unknown value.

        Returns
        -------
        ndarray of shape (n_rows, n_hidden)
            2 p − 1.
        """
        check_is_fitted(self)
        X = self._binary_rows(X, reset=False)
        return 2.0 * self.marginals(X)[:, X.shape[1] :] - 1.0

    @property
    def _n_features_out(self) -> int:
        return self.n_hidden_

    def _check_state(self) -> None:
        super()._check_state()
        if len(self.parents_) != self.n_features_in_ + self.n_hidden_:
            raise ValueError("the numbers of nodes, of columns and of hidden variables do not fit")


def information_of_pair(table: np.ndarray) -> float:
    """Return the mutual information of a joint table of two variables that sums to 1, in nats."""
    both = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
    known = table > 0
    return float((table[known] * np.log(table[known] / both[known])).sum())


class _Joined:
    """Hidden nodes by neighbour joining in the neighbourhoods of a tree; branches shorter than ``least`` vanish.

    Neighbours that are ``reach`` or more apart may be independent, and stay as they are.
    """

    def __init__(self, D: np.ndarray, edges: list[tuple[int, int]], least: float, reach: float) -> None:
        self.D, self.d, self.least, self.reach = np.minimum(D, _LONG), len(D), least, reach
        self.links: dict[int, set[int]] = {v: set() for v in range(self.d)}
        for a, b in edges:
            self._link(a, b)
        for i in sorted(range(self.d), key=lambda v: (-len(self.links[v]), v)):
            if len(self.links[i]) >= 2:
                self._join(i)

    @property
    def n_hidden(self) -> int:
        return len(self.D) - self.d

    def edges(self) -> list[tuple[int, int]]:
        return [(a, b) for a, near in sorted(self.links.items()) for b in sorted(near) if a < b]

    def _link(self, a: int, b: int) -> None:
        self.links[a].add(b)
        self.links[b].add(a)

    def _join(self, i: int) -> None:
        """Put the tree of neighbour joining in the place of the star of i and its neighbours."""
        members = [i, *sorted(v for v in self.links[i] if self.D[i, v] < self.reach)]
        if len(members) < 3:
            return
        branches = _contracted(neighbour_joining(self.D[np.ix_(members, members)]), len(members), self.least)
        inner = sorted({v for a, b, _ in branches for v in (a, b) if v >= len(members)})
        if not inner:
            return
        name = dict(enumerate(members)) | {v: len(self.D) + k for k, v in enumerate(inner)}
        lengths = _path_lengths(branches)
        for v in members[1:]:
            self.links[i].discard(v)
            self.links[v].discard(i)
        for v in inner:
            # The way from a member on the other side of the joint to a node outside leads over the joint.
            row = np.maximum(np.max([self.D[m] - lengths[v, k] for k, m in enumerate(members)], axis=0), _TINY)
            row[members] = [lengths[v, k] for k in range(len(members))]
            for w in inner:
                if name[w] < len(self.D):
                    row[name[w]] = lengths[v, w]
            self.D = np.block([[self.D, row[:, None]], [row[None], np.zeros((1, 1))]])
            self.links[name[v]] = set()
        for a, b, _ in branches:
            self._link(name[a], name[b])

    def posteriors(self, X: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """First guesses of the hidden variables: two classes of the columns around each, nearest in every direction."""
        out = np.empty((len(X), self.n_hidden))
        for h in range(self.d, len(self.D)):
            near = [int(self.D[v, : self.d].argmin()) if v >= self.d else v for v in sorted(self.links[h])]
            columns = list(dict.fromkeys([*near, *np.argsort(self.D[h, : self.d], kind="stable")[:3].tolist()]))
            rows, inverse = np.unique(X[:, columns], axis=0, return_inverse=True)
            weights = np.bincount(inverse.ravel(), counts, minlength=len(rows))
            out[:, h - self.d] = _two_classes(rows, weights)[1][inverse.ravel()]
        return out


def neighbour_joining(D: np.ndarray) -> list[tuple[int, int, float]]:
    """Return the branches (node, node, length) of the tree with path lengths D; inner nodes come after leaves.

    The result is exact if D is additive on a tree, and approximate otherwise [Saitou1987].
    """
    alive, size = list(range(len(D))), len(D)
    D = D.astype(float).copy()
    branches: list[tuple[int, int, float]] = []
    while len(alive) > 2:
        part = D[np.ix_(alive, alive)]
        sums = part.sum(axis=1)
        criterion = (len(alive) - 2) * part - sums[:, None] - sums
        np.fill_diagonal(criterion, np.inf)
        p, q = divmod(int(criterion.argmin()), len(alive))
        a, b = alive[p], alive[q]
        to_a = float(np.clip(0.5 * D[a, b] + 0.5 * (sums[p] - sums[q]) / (len(alive) - 2), 0.0, D[a, b]))
        row = np.maximum(0.5 * (D[a] + D[b] - D[a, b]), 0.0)
        D = np.block([[D, row[:, None]], [row[None], np.zeros((1, 1))]])
        branches += [(a, size, to_a), (b, size, float(D[a, b]) - to_a)]
        alive = [v for v in alive if v not in (a, b)] + [size]
        size += 1
    return [*branches, (alive[0], alive[1], float(D[alive[0], alive[1]]))] if len(alive) == 2 else branches


def _contracted(branches: list[tuple[int, int, float]], leaves: int, least: float) -> list[tuple[int, int, float]]:
    """The tree without joints at the end of short branches, and without joints of two branches."""
    branches = list(branches)
    while True:
        degree: dict[int, int] = {}
        for a, b, _ in branches:
            degree[a], degree[b] = degree.get(a, 0) + 1, degree.get(b, 0) + 1
        short = [
            (length if length < least else -1.0, a, b)
            for a, b, length in branches
            if max(a, b) >= leaves and (length < least or any(v >= leaves and degree[v] == 2 for v in (a, b)))
        ]
        if not short:
            return branches
        _, a, b = min(short)
        if max(a, b) >= leaves and degree[max(a, b)] != 2 and min(a, b) >= leaves and degree[min(a, b)] == 2:
            a, b = max(a, b), min(a, b)  # the joint of two branches goes
        gone, stays = (a, b) if a > b or (a >= leaves and b < leaves) else (b, a)
        kept = next(length for x, y, length in branches if {x, y} == {a, b})
        merged = []
        for x, y, length in branches:
            if {x, y} == {a, b}:
                continue
            if gone in (x, y):
                length += kept
            merged.append((stays if x == gone else x, stays if y == gone else y, length))
        branches = merged


def _path_lengths(branches: list[tuple[int, int, float]]) -> dict[tuple[int, int], float]:
    """The lengths of the paths between all nodes of a tree."""
    near: dict[int, list[tuple[int, float]]] = {}
    for a, b, length in branches:
        near.setdefault(a, []).append((b, length))
        near.setdefault(b, []).append((a, length))
    lengths = {}
    for start in near:
        stack = [(start, -1, 0.0)]
        while stack:
            v, before, length = stack.pop()
            lengths[start, v] = length
            stack += [(w, v, length + more) for w, more in near[v] if w != before]
    return lengths


def _distances(X: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """−log |correlation| of all pairs of columns."""
    centred = (X - np.average(X, axis=0, weights=counts)) * np.sqrt(counts)[:, None]
    length = np.sqrt((centred * centred).sum(axis=0))
    length[length < _TINY] = np.inf
    with np.errstate(divide="ignore"):
        D = -np.log(np.abs(centred.T @ centred / length / length[:, None]))
    D = np.minimum(np.maximum(D, 0.0), _FAR)
    np.fill_diagonal(D, 0.0)
    return D


def _two_classes(rows: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Log-likelihood of two hidden classes of rows with independent columns, and the posterior of the second, by EM.

    Three starts: classes by the sum of the columns, aligned with the first of them, and by the first one alone.
    """
    n = weights.sum()
    centred = rows - weights @ rows / n
    aligned = rows * np.where((weights * centred[:, 0]) @ centred >= 0, 1.0, -1.0)
    best, posterior = -np.inf, np.zeros(len(rows))
    for start in (aligned.sum(axis=1), rows.sum(axis=1), rows[:, 0]):
        cut = (weights @ start) / n
        r = np.where(start > cut, 0.85, 0.15)
        before = -np.inf
        for _ in range(100):
            share = np.clip(weights @ r / n, 1e-6, 1.0 - 1e-6)
            on = [((weights * q) @ rows + 0.1) / ((weights * q).sum() + 0.2) for q in (1.0 - r, r)]
            logs = [
                np.log(part) + rows @ np.log(p) + (1.0 - rows) @ np.log1p(-p)
                for part, p in zip((1.0 - share, share), on, strict=True)
            ]
            total = np.logaddexp(*logs)
            value = float(weights @ total)
            r = np.exp(logs[1] - total)
            if value - before <= 1e-6 * n:
                break
            before = value
        if value > best:
            best, posterior = value, r
    return best, posterior


def _check_possible(log_evidence: np.ndarray) -> None:
    if not np.isfinite(log_evidence).all():
        row = int(np.flatnonzero(~np.isfinite(log_evidence))[0])
        raise ValueError(f"the evidence of row {row} has probability 0")
