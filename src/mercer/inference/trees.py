"""Trees of binary variables, learnt from rows of 0 and 1; with hidden variables where these explain more.

    Chow–Liu    the spanning tree with the largest sum of mutual informations: the tree of the highest likelihood
    hidden      distances d_ij = −log |corr_ij| add up along the paths of a tree. Neighbours a, b of a node i with a
                distance below d_ai + d_bi have a hidden node between them and i; it is kept where BIC says so, and
                the parameters are then found by expectation maximisation [Choi2011]

What is known of a variable is a state (evidence), or a probability that its marginal shall have (Jeffrey's rule, soft
evidence): the product Π_v φ_v(x_v) · p(x) with factors φ such that every marginal is met, by iterative proportional
fitting along a tour of the tree, which costs two messages an edge.

All rows of a batch go through the tree together: a message is an array (rows, 2).
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._estimator import Estimator
from mercer._state.saved import Count, Fields, Floats, Ints, Number, Saved
from mercer._validation import check_count, check_positive, used_examples
from mercer.inference.bayesian import BayesianNetwork

__all__ = ["ChowLiuTree", "LatentTree"]

_FAR = 1e3  # distance of variables that are independent
_TINY = 1e-12


class BinaryTree(Saved, Estimator):
    """A tree of binary variables: a parent and a conditional table for each, and the questions it answers."""

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
        """Number of variables, hidden ones included."""
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
        """Return the probability of each variable to be 1, given states or marginals of others.

        Parameters
        ----------
        evidence : array of shape (n_rows, n_features) or mapping, optional
            States 0 and 1, NaN where nothing is known; or ``{variable: state}``.
        soft : array of shape (n_rows, n_features) or mapping, optional
            Probabilities that the marginals of these variables shall have, NaN elsewhere: the distribution closest to
            the tree that has them (Jeffrey's rule).
        tol : float, default=1e-9
            Distance to the marginals in ``soft`` at which to stop.
        max_iter : int, default=100
            Most tours of the tree.

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
            warnings.warn(
                f"the marginals of {len(wanted)} variables were met to {worst:.2g} only after {max_iter} tours: they "
                "may contradict each other",
                ConvergenceWarning,
                stacklevel=4,
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
        """Return the log-probability of rows; NaN is a value that is not known.

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
            Of the draws.

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
        Of each variable with its parent, in nats; 0 for roots.
    log_likelihood_, bic_ : float
        Of the training rows; BIC is the log-likelihood less ½ log n for each free number.

    References
    ----------
    .. [1] C. K. Chow and C. N. Liu. Approximating discrete probability distributions with dependence trees. IEEE
       Transactions on Information Theory, 1968.

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
    """Mutual information of all pairs of columns of 0 and 1, in nats."""
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

    The tree starts as that of Chow and Liu. Within each neighbourhood, variables that are closer to each other than the
    path over their common neighbour allows get a hidden parent, where the BIC of the family improves. Expectation
    maximisation then finds the conditional tables. As a transformer the tree gives the posterior of the hidden
    variables, from −1 to 1.

    Parameters
    ----------
    max_hidden : int, optional
        Most hidden variables; by default half the number of columns.
    smoothing : float, default=0.5
        Added to every expected count.
    max_iter : int, default=50
        Most iterations of expectation maximisation.
    tol : float, default=1e-5
        Gain of the mean log-likelihood at which it stops.

    Attributes
    ----------
    parents_ : ndarray of int of shape (n_nodes,)
        Parent of each variable, columns of X first, then hidden ones; −1 for roots.
    conditional_ : ndarray of shape (n_nodes, 2)
        Probability of 1, for parents of 0 and of 1.
    n_hidden_ : int
        Number of hidden variables.
    log_likelihood_, bic_ : float
        Of the training rows.
    n_iter_ : int
        Iterations made.

    References
    ----------
    .. [1] M. J. Choi, V. Y. F. Tan, A. Anandkumar and A. S. Willsky. Learning latent tree graphical models. Journal of
       Machine Learning Research, 2011.

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
        most = d // 2 if self.max_hidden is None else check_count("max_hidden", self.max_hidden, 0)
        grouping = _Grouping(X, weights, _spanning(mutual_informations(X, weights)), most)
        grouping.run()
        self.n_hidden_ = len(grouping.posteriors)
        self._set_tree(grouping.edges(), d + self.n_hidden_)
        rows, place = np.unique(X, axis=0, return_inverse=True)
        self._counts = np.bincount(place.ravel(), weights, minlength=len(rows))
        self.conditional_ = self._first_tables(np.hstack([X, *grouping.posteriors]), weights, smoothing)
        self.n_iter_ = self._maximise(rows, smoothing, max_iter, tol) if self.n_hidden_ else 0
        self._keep_scores(rows, self._counts)
        del self._counts
        return self

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
            Rows of 0 and 1; NaN where a value is not known.

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


class _Grouping:
    """Hidden nodes for the neighbourhoods of a tree, by distances that add up and by BIC."""

    def __init__(self, X: np.ndarray, counts: np.ndarray, edges: list[tuple[int, int]], most: int) -> None:
        self.X, self.counts, self.most = X, counts, most
        self.n, self.d = float(counts.sum()), X.shape[1]
        self.links: dict[int, set[int]] = {v: set() for v in range(self.d)}
        for a, b in edges:
            self.links[a].add(b)
            self.links[b].add(a)
        self.posteriors: list[np.ndarray] = []
        self.stand_in = list(range(self.d))  # the observed variable nearest to a node
        self.D = _distances(X, counts)

    def run(self) -> None:
        for i in sorted(range(self.d), key=lambda v: (-len(self.links[v]), v)):
            while len(self.posteriors) < self.most and len(self.links[i]) >= 2 and self._join(i):
                pass

    def edges(self) -> list[tuple[int, int]]:
        return [(a, b) for a, near in sorted(self.links.items()) for b in sorted(near) if a < b]

    def _join(self, i: int) -> bool:
        """Give the closest neighbours of i a hidden parent, if their BIC gains by it; whether that was so."""
        near = sorted(self.links[i])
        excess = {(a, b): self.D[a, i] + self.D[b, i] - self.D[a, b] for a, b in itertools.combinations(near, 2)}
        for (a, b), gain in sorted(excess.items(), key=lambda item: (-item[1], item[0]))[:3]:
            if gain <= 0.05:
                return False
            family = [a, b]
            fitted = self._family(family, i)
            if fitted is None:
                continue
            for c in near:  # others that are as close to both
                if c not in family and min(excess[min(c, m), max(c, m)] for m in family) > 0.5 * gain:
                    larger = self._family([*family, c], i)
                    if larger is not None and larger[0] >= fitted[0]:
                        family, fitted = [*family, c], larger
            self._add(family, i, fitted[1])
            return True
        return False

    def _family(self, family: list[int], i: int) -> tuple[float, np.ndarray] | None:
        """Gain in likelihood of a hidden parent over the best tree without it, and its posterior; None for no BIC."""
        members = list(dict.fromkeys(self.stand_in[v] for v in [*family, i]))
        if len(members) < 3:
            return None
        rows, inverse = np.unique(self.X[:, members], axis=0, return_inverse=True)
        weights = np.bincount(inverse.ravel(), self.counts, minlength=len(rows))
        information = mutual_informations(rows, weights)
        on = weights @ rows / self.n
        entropy = -sum(p * np.log(p) for q in on for p in (q, 1.0 - q) if p > 0)
        plain = self.n * (sum(information[a, b] for a, b in _spanning(information)) - entropy)
        value, posterior = _two_classes(rows, weights)
        if value - plain <= np.log(self.n):  # two free numbers more, ½ log n each
            return None
        return value - plain, posterior[inverse.ravel()]

    def _add(self, family: list[int], i: int, posterior: np.ndarray) -> None:
        h = self.d + len(self.posteriors)
        self.posteriors.append(posterior[:, None])
        a, b = family[:2]
        to_a = np.clip(0.5 * (self.D[a, b] + self.D[a, i] - self.D[b, i]), 0.0, self.D[a, b])
        row = np.maximum(self.D[a] - to_a, 1e-3)
        for v in family:
            row[v] = to_a if v == a else max(self.D[a, v] - to_a, 1e-3)
        row[i] = max(self.D[a, i] - to_a, 1e-3)
        self.D = np.block([[self.D, row[:, None]], [row[None], np.zeros((1, 1))]])
        self.stand_in.append(self.stand_in[min(family, key=lambda v: row[v])])
        self.links[h] = {*family, i}
        self.links[i] -= set(family)
        self.links[i].add(h)
        for v in family:
            self.links[v].discard(i)
            self.links[v].add(h)


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
