"""Margin learning by enumeration: every output of every example written out, losses by their formulas, and the optimum
of the quadratic program over all constraints from SciPy.

    min ½‖w‖² + C Σ_i ξ_i^power   subject to   ⟨w, Φ(x_i, y_i) − Φ(x_i, z)⟩ ≥ Δ(y_i, z) − ξ_i,   ξ_i ≥ 0,   for all z
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from mercer.data import Segmentations, Sequences, SpanSequences
from mercer.data.labels import TagSequences
from mercer.learning import Risk
from mercer.structured import CustomStructure
from mercer.structures import Constraints, Enumerated, Labels, Segments
from mercer.structures.costs import Cost, CostMatrix, Hamming, Taxonomy, ZeroOne, resolve_cost
from mercer.structures.joint import Examples, Joint
from reference.chains import labellings, log_sum_exp
from reference.problems import make_problem
from reference.segments import segmentations

# ------------------------------------------------------------------------------------------------ costs


class Squared(Cost):
    """A cost as a user writes one: the squared distance between label numbers."""

    def table(self, truth, n_labels):
        return (truth[:, None] - np.arange(n_labels)).astype(float) ** 2


MATRIX = np.array([[0.0, 2.0, 0.5], [1.0, 0.0, 3.0], [0.25, 1.5, 0.0]])
WEIGHTS = [0.5, 2.0, 1.25]
TREE = Taxonomy([("a", 0), ("a", 1, 0.5), ("root", "a", 2.0), ("root", 2)])  # labels 0, 1, 2


def of_two_labels(y, z):
    return 0.0 if y == z else 1.0 + abs(y - z) * (2.0 if y < z else 1.0)


# name → (the cost, the cost of one pair of labels; None for 0/1 over whole outputs), for three labels
COSTS: dict[str, tuple[Cost, Callable[[int, int], float] | None]] = {
    "hamming": (Hamming(), lambda y, z: float(y != z)),
    "weighted": (Hamming(WEIGHTS), lambda y, z: WEIGHTS[y] * (y != z)),
    "matrix": (CostMatrix(MATRIX), lambda y, z: MATRIX[y, z]),
    "taxonomy": (TREE.bind([0, 1, 2]), lambda y, z: [[0, 1.5, 4], [1.5, 0, 3.5], [4, 3.5, 0]][y][z]),
    "zero-one": (ZeroOne(), None),
    "subclass": (Squared(), lambda y, z: float((y - z) ** 2)),
    "callable": (resolve_cost(of_two_labels).bind([0, 1, 2]), of_two_labels),
}


def cost_of(pair: Callable[[int, int], float] | None, y, z) -> float:
    """Δ(y, z) of two label sequences, position by position."""
    if pair is None:
        return float(any(a != b for a, b in zip(y, z, strict=True)))
    return float(sum(pair(int(a), int(b)) for a, b in zip(y, z, strict=True)))


# --------------------------------------------------------------------------------------------- problems


@dataclass
class Written:
    """A problem in both forms: as a structure with data, and as a table of all outputs."""

    structure: Any
    X: Any
    y: Any
    features: list[np.ndarray]  # of all outputs of each example, one a row
    truth: list[int]
    outputs: list[list[Any]]
    own_cost: Callable[[Any, Any], float]  # of two outputs, when no cost is named
    pack: Callable[[list[Any]], Any]  # outputs as the structure's batch
    of_labels: bool = True  # outputs are label sequences, to which the costs of label pairs apply
    labels_of: Callable[[Any], Any] = tuple  # the label sequence of an output
    costs: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.costs = self.costs_of(self.own_cost)

    def costs_of(self, cost: Callable[[Any, Any], float]) -> list[np.ndarray]:
        """Δ(y_i, z) of all outputs z."""
        return [
            np.array([cost(outputs[t], z) for z in outputs])
            for outputs, t in zip(self.outputs, self.truth, strict=True)
        ]

    def with_cost(self, pair: Callable[[int, int], float] | None) -> Written:
        """The same problem with the cost of label pairs (None: 0/1) in the table."""
        if pair is None or not self.of_labels:
            self.costs = self.costs_of(lambda y, z: float(y != z))
        else:
            self.costs = self.costs_of(lambda y, z: cost_of(pair, self.labels_of(y), self.labels_of(z)))
        return self

    @property
    def n_weights(self) -> int:
        return self.features[0].shape[1]

    def __len__(self) -> int:
        return len(self.features)

    def risk(self, loss) -> Risk:
        return Risk(self.structure, loss, self.X, self.y)

    def scores(self, w: np.ndarray) -> list[np.ndarray]:
        return [phi @ w for phi in self.features]

    def choose(self, rng) -> tuple[list[int], Any]:
        """Random outputs: their numbers, and as a batch."""
        chosen = [int(rng.integers(len(outputs))) for outputs in self.outputs]
        return chosen, self.pack([outputs[k] for outputs, k in zip(self.outputs, chosen, strict=True)])

    def losses(self, w: np.ndarray, kind: str = "hinge", **options) -> np.ndarray:
        """The loss of each example by its formula."""
        found = [
            loss_of(kind, scores, t, costs, **options)
            for scores, t, costs in zip(self.scores(w), self.truth, self.costs, strict=True)
        ]
        return np.array(found)

    def objective(self, w: np.ndarray, C: float, kind: str = "hinge", **options) -> float:
        return 0.5 * float(w @ w) + C * float(self.losses(w, kind, **options).sum())

    def leads(self, w: np.ndarray) -> np.ndarray:
        """By how much each true output beats each other one, all examples end to end."""
        return np.concatenate([s[t] - s for s, t in zip(self.scores(w), self.truth, strict=True)])

    def rows(self, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All constraints ⟨w, slope⟩ ≥ offset − ξ_example, those of the true outputs left out."""
        slopes, offsets, examples = [], [], []
        for i, (phi, t, delta) in enumerate(zip(self.features, self.truth, self.costs, strict=True)):
            for k in range(len(phi)):
                if k == t:
                    continue
                factor = delta[k] if kind == "slack" else 1.0
                slopes.append(factor * (phi[t] - phi[k]))
                offsets.append(delta[k])
                examples.append(i)
        return np.array(slopes).reshape(-1, self.n_weights), np.array(offsets), np.array(examples, dtype=int)

    def optimum(self, C: float, kind: str = "hinge", B: float = np.inf) -> tuple[np.ndarray, float]:
        """The minimiser and the minimum of the program over all constraints, by SciPy's SLSQP."""
        slopes, offsets, examples = self.rows("slack" if kind == "slack" else "hinge")
        n, m = self.n_weights, len(self)
        # Directions that no slope has stay 0, so the program is solved in the span of the slopes.
        basis = np.linalg.svd(slopes, full_matrices=False)[2][: np.linalg.matrix_rank(slopes)]
        A, d = slopes @ basis.T, len(basis)
        slack = np.zeros((len(A), m))
        slack[np.arange(len(A)), examples] = 1.0
        power = 2 if kind == "squared-hinge" else 1

        def value(v: np.ndarray) -> tuple[float, np.ndarray]:
            u, xi = v[:d], v[d:]
            return 0.5 * u @ u + C * (xi**power).sum(), np.concatenate([u, C * power * xi ** (power - 1)])

        above = np.hstack([A, slack])
        constraints = [{"type": "ineq", "fun": lambda v: above @ v - offsets, "jac": lambda v: above}]
        if np.isfinite(B):
            below = np.hstack([-A, np.zeros((len(A), m))])
            constraints.append({"type": "ineq", "fun": lambda v: below @ v + B, "jac": lambda v: below})
        start = np.concatenate([np.zeros(d), [max(c.max(), 0.1) for c in self.costs]])
        bounds = [(None, None)] * d + [(0.0, None)] * m
        found = minimize(
            value,
            start,
            jac=True,
            method="SLSQP",
            bounds=bounds,
            constraints=constraints,
            options={"maxiter": 1000, "ftol": 1e-13},
        )
        assert found.status in (0, 8), found.message  # 8: no lower value along the last direction
        assert n == basis.shape[1]
        return found.x[:d] @ basis, float(found.fun)


def loss_of(
    kind: str, scores: np.ndarray, t: int, costs: np.ndarray, *, alpha: float = 0.5, margin: str = "unit"
) -> float:
    """One loss of one example, from the scores and costs of all outputs."""
    if kind == "log":
        return log_sum_exp(scores) - scores[t]
    if kind in ("hinge", "relative-margin"):
        return float((costs + scores).max() - scores[t])
    if kind == "squared-hinge":
        return float((costs + scores).max() - scores[t]) ** 2
    if kind == "slack":
        return float((costs * (1.0 + scores - scores[t])).max())
    if kind == "softmax-margin":
        return log_sum_exp(scores + costs) - scores[t]
    if kind == "circle":
        p = np.exp(scores - log_sum_exp(scores))
        return float(np.linalg.norm(p - np.eye(len(p))[t]))
    assert kind == "hybrid"
    if margin == "cost":
        hinge = float((costs + scores).max() - scores[t])
    else:
        others = np.delete(scores, t)
        hinge = max(0.0, 1.0 + others.max(initial=-np.inf) - scores[t])
    return alpha * (log_sum_exp(scores) - scores[t]) + (1 - alpha) * hinge


# ------------------------------------------------------------------------------ small quadratic programs


def best_of_faces(
    G: np.ndarray, b: np.ndarray, total: float = np.inf, limited: np.ndarray | None = None, exact: bool = False
) -> tuple[np.ndarray, float]:
    """max ⟨b, a⟩ − ½ aᵀGa over a ≥ 0 with the sum of the ``limited`` at most (``exact``: equal to) ``total``.

    Every face is tried: on one of them the maximum is a solution of linear equations.
    """
    m = len(b)
    limited = np.ones(m, bool) if limited is None else limited
    found, best = np.zeros(m), -np.inf if exact else 0.0
    for support in itertools.chain.from_iterable(itertools.combinations(range(m), k) for k in range(1, m + 1)):
        S = list(support)
        k, ones = len(S), limited[S].astype(float)
        for tight in (True,) if exact else (False, True):
            if tight and (not ones.any() or not np.isfinite(total)):
                continue
            system, right = G[np.ix_(S, S)], b[S]
            if tight:
                system = np.block([[system, ones[:, None]], [ones[None, :], np.zeros((1, 1))]])
                right = np.append(right, total)
            part = np.linalg.lstsq(system, right, rcond=1e-12)[0][:k]
            if (part < -1e-9).any() or (ones @ part > total * (1 + 1e-9)) or (exact and abs(part.sum() - total) > 1e-9):
                continue
            a = np.zeros(m)
            a[S] = np.maximum(part, 0.0)
            value = float(b @ a - 0.5 * a @ G @ a)
            if value > best:
                found, best = a, value
    return found, best


# ------------------------------------------------------------------------------------ one of each structure

RULES = Constraints([(0, 1), (2, 2)], forbidden_start=[1])
TRAINED = np.array([[True, False, True], [True, True, False], [False, True, True]])


def chain(lengths=(3, 1, 2, 0, 3, 2), *, seed=0, **options) -> Written:
    problem = make_problem(lengths, seed=seed, **options)
    rules = options.get("constraints")
    outputs = [
        [tuple(map(int, z)) for z in labellings(n, 3) if rules is None or rules.allows([int(c) for c in z])]
        for n in lengths
    ]
    features = [phi.copy() for phi in problem.oracle.features]
    if options.get("trained") is not None:
        at = problem.chain.slices["transitions"]
        for phi in features:
            phi[:, at][:, ~options["trained"].ravel()] = 0.0
    truth = [outputs[i].index(tuple(tags)) for i, tags in enumerate(problem.labels)]
    offsets = problem.X.offsets

    def pack(chosen):
        return TagSequences(np.array(list(itertools.chain(*chosen)), dtype=np.int32), offsets, partial=False)

    own = lambda y, z: cost_of(COSTS["hamming"][1], y, z)  # noqa: E731
    return Written(problem.chain, problem.X, problem.y, features, truth, outputs, own, pack)


def labels(n=8, F=3, C=3, *, sparse=False, seed=0, dtype=np.float64, threads=1) -> Written:
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(n, F)).astype(dtype)
    if sparse:
        matrix[rng.random(matrix.shape) < 0.4] = 0.0
    y = rng.integers(0, C, n).astype(np.int32)
    X = Sequences(csr_matrix(matrix) if sparse else matrix, np.arange(n + 1))
    features = [np.array([np.kron(x, np.eye(C)[c]) for c in range(C)], dtype=float) for x in matrix]
    outputs = [[(c,) for c in range(C)] for _ in range(n)]
    own = lambda a, b: float(a != b)  # noqa: E731
    pack = lambda chosen: np.array([c[0] for c in chosen], dtype=np.int32)  # noqa: E731
    return Written(Labels(C, F, threads=threads), X, y, features, y.tolist(), outputs, own, pack)


def enumerated(n=7, *, seed=0, own=True) -> Written:
    """2 to 5 outputs an input, with a cost of its own unless told otherwise."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, 5, 4))
    cost = (lambda a, b: abs(a - b) * 0.7) if own else None
    structure = Enumerated(lambda x: range(2 + x % 4), lambda x, y: table[x, y], 4, cost)
    outputs: list[list[Any]] = [list(range(2 + x % 4)) for x in range(n)]
    truth = [int(rng.integers(len(o))) for o in outputs]
    pack = lambda chosen: np.array(chosen, dtype=np.int32)  # noqa: E731
    features = [table[x, : len(o)] for x, o in enumerate(outputs)]
    used = cost if own else lambda a, b: float(a != b)
    return Written(structure, list(range(n)), np.array(truth), features, truth, outputs, used, pack, of_labels=False)


class Ordering(CustomStructure):
    """A user's structure: y is an order of the rows of x, earlier places count more; all by enumeration."""

    def features(self, x, y):
        places = np.linspace(1.0, -1.0, len(y))
        return np.concatenate([places @ x[list(y)], [float(y[0] == 0)]])

    def cost(self, y_true, y):
        return float(sum(a != b for a, b in zip(y_true, y, strict=True))) / 2

    def all(self, w, x, cost_to=None):
        outputs = list(itertools.permutations(range(len(x))))
        extra = [0.0 if cost_to is None else self.cost(cost_to, y) for y in outputs]
        return outputs, np.array([w @ self.features(x, y) + e for y, e in zip(outputs, extra, strict=True)])

    def argmax(self, w, x, cost_to=None):
        outputs, scores = self.all(w, x, cost_to)
        return outputs[int(scores.argmax())]

    def argmin(self, w, x):
        outputs, scores = self.all(w, x)
        return outputs[int(scores.argmin())]

    def k_best(self, w, x, k):
        outputs, scores = self.all(w, x)
        return [(outputs[i], float(scores[i])) for i in np.argsort(-scores, kind="stable")[:k]]

    def log_partition(self, w, x, cost_to=None):
        outputs, scores = self.all(w, x, cost_to)
        log_z = log_sum_exp(scores)
        return log_z, np.exp(scores - log_z) @ np.array([self.features(x, y) for y in outputs])


def joint(n=7, *, seed=0) -> Written:
    rng = np.random.default_rng(seed)
    structure, X = Ordering(), [rng.normal(size=(1 + i % 3, 3)) for i in range(n)]
    outputs: list[list[Any]] = [list(itertools.permutations(range(len(x)))) for x in X]
    truth = [int(rng.integers(len(o))) for o in outputs]
    features = [np.array([structure.features(x, y) for y in o]) for x, o in zip(X, outputs, strict=True)]
    Y = [o[t] for o, t in zip(outputs, truth, strict=True)]
    return Written(
        Joint(structure, 4), Examples(X), Examples(Y), features, truth, outputs, structure.cost, list, of_labels=False
    )


def segments(
    sizes=(3, 1, 2, 0, 3, 2), *, seed=0, C=3, n_bounds=0, n_spans=0, rules=None, sparse=False, cost=None, **options
) -> Written:
    """Segmentations with the given parts; features of every output are written out from their definitions."""
    rng = np.random.default_rng(seed)
    T, F = sum(sizes), 2
    matrix = rng.normal(size=(T, F))
    if sparse:
        matrix[rng.random(matrix.shape) < 0.4] = 0.0
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    edges = rng.normal(size=(T, n_bounds)) if n_bounds else None
    X = Sequences(csr_matrix(matrix) if sparse else matrix, offsets, edges=edges)
    options = {"max_length": 2, **options}
    masks = None if rules is None else rules.masks(range(C))
    structure = Segments(C, F, n_bounds, n_spans, masks=masks, **options)
    if n_spans:
        X = SpanSequences.from_function(X, lambda x, s, e: rng.normal(size=n_spans), structure.K)
    allowed = [[y for y in segmentations(n, C) if within(structure, rules, y)] for n in sizes]
    features = [
        np.array([segment_features(structure, matrix, edges, getattr(X, "spans", None), a, y) for y in outputs])
        for a, outputs in zip(offsets[:-1], allowed, strict=True)
    ]
    truth = [int(rng.integers(len(outputs))) for outputs in allowed]

    def pack(chosen):
        return Segmentations.from_segments(chosen, sizes, range(C))

    own = cost or (lambda y, z: float(sum(a != b for a, b in zip(frames_of(y), frames_of(z), strict=True))))
    y = pack([outputs[t] for outputs, t in zip(allowed, truth, strict=True)])
    return Written(structure, X, y, features, truth, allowed, own, pack, labels_of=frames_of)


def frames_of(y) -> tuple[int, ...]:
    return tuple(c for s, e, c in y for _ in range(s, e))


def boundary_cost(y, z) -> float:
    """S42 as a difference of sets."""
    return float(len({s for s, _, _ in y} ^ {s for s, _, _ in z}))


def within(structure, rules, y) -> bool:
    fits = all(structure.shortest[c] <= e - s <= structure.longest[c] for s, e, c in y)
    return fits and (rules is None or rules.allows([c for *_, c in y]))


def segment_features(structure, x, edges, spans, begin, y) -> np.ndarray:
    """Φ(x, y), term by term."""
    C, out = structure.n_labels, np.zeros(structure.n_weights)

    def add(part, values, column, width):
        if part in structure.slices:
            at = structure.slices[part].start + np.arange(len(values)) * width + column
            out[at] += values

    if y:
        add("start", [1.0], y[0][2], C)
        add("end", [1.0], y[-1][2], C)
    for k, (s, e, c) in enumerate(y):
        inside = x[begin + s : begin + e].astype(float)
        add("sum", inside.sum(axis=0), c, C)
        add("mean", inside.mean(axis=0), c, C)
        add("variance", inside.var(axis=0), c, C)
        add("length", structure._basis[e - s - 1], c, C)
        if edges is not None:
            add("boundary", edges[begin + s], c, C)
        if spans is not None:
            add("span", spans[begin + s, e - s - 1], c, C)
        if k + 1 == len(y):
            continue
        pair = c * C + y[k + 1][2]
        add("transitions", [1.0], pair, C * C)
        if edges is not None:
            add("edges", edges[begin + e], pair, C * C)
        add("pair mean", inside.mean(axis=0), pair, C * C)
        add("pair variance", inside.var(axis=0), pair, C * C)
    return out


SEGMENTS: dict[str, dict[str, Any]] = {
    "segments": {},
    "segments, sparse": {"sparse": True, "lengths": "poisson"},
    "segments, boundaries": {"n_bounds": 2, "max_length": 3, "statistics": ("mean",)},
    "segments, bounds": {"max_length": [1, 3, 2], "min_length": [1, 1, 2], "lengths": "constant"},
    "segments, constraints": {"rules": RULES, "n_bounds": 2, "neighbours": ("boundary",), "lengths": None},
    "segments, everything": {
        "n_bounds": 1,
        "n_spans": 2,
        "statistics": ("sum", "mean", "variance"),
        "neighbours": ("boundary", "mean", "variance"),
    },
}
CHAINS: dict[str, dict[str, Any]] = {
    "chain": {},
    "chain, sparse": {"sparse": True},
    "chain, pattern": {"pattern": True},
    "chain, edges": {"edge_features": 2},
    "chain, edges and patterns": {"edge_features": 3, "pattern": True, "edge_pattern": True},
    "chain, constraints": {"constraints": RULES},
    "chain, constraints and edges": {"constraints": RULES, "edge_features": 2},
}
PROBLEMS: dict[str, Callable[[], Written]] = {
    "labels": labels,
    "labels, sparse": lambda: labels(sparse=True),
    "enumerated": enumerated,
    "enumerated, 0/1": lambda: enumerated(own=False),
    "joint": joint,
    **{name: (lambda options=options: chain(**options)) for name, options in CHAINS.items()},
    **{name: (lambda options=options: segments(**options)) for name, options in SEGMENTS.items()},
    "unlabelled segments": lambda: segments((4, 3, 0, 5), C=1, n_bounds=2, max_length=3, cost=boundary_cost),
}
