"""A conditional random field by enumeration: joint features of every labelling, and the optimum from SciPy.

F(w) = l1 ‖w‖₁ + ½ l2 ‖w‖² + C Σ_i (log Σ_y exp⟨w, Φ(x_i, y)⟩ − log Σ_{y agrees with y_i} exp⟨w, Φ(x_i, y)⟩)
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from reference.chains import labellings, log_sum_exp


def joint_features(x, y, n_labels: int, edge_features=None) -> np.ndarray:
    """Φ(x, y) = [feature × label | label × label | first label | last label | edge feature × label pair]."""
    x = np.asarray(x, dtype=float)
    C, F = n_labels, x.shape[1]
    nodes, pairs, first, last = np.zeros((F, C)), np.zeros((C, C)), np.zeros(C), np.zeros(C)
    E = 0 if edge_features is None else edge_features.shape[1]
    edges = np.zeros((E, C * C))
    for t, label in enumerate(y):
        nodes[:, label] += x[t]
        if t:
            pairs[y[t - 1], label] += 1.0
            if E:
                edges[:, y[t - 1] * C + label] += edge_features[t]
    if len(y):
        first[y[0]] += 1.0
        last[y[-1]] += 1.0
    return np.concatenate([nodes.ravel(), pairs.ravel(), first, last, edges.ravel()])


class EnumeratedCRF:
    """The objective over lists of matrices and label sequences; a label may be None or a set."""

    def __init__(self, X, y, n_labels: int, *, edge_features=None, allowed=None, kept=None) -> None:
        """``allowed(labelling)`` leaves labellings out; ``kept`` are the columns of Φ that have a weight."""
        self.features, self.agree = [], []
        for i, x in enumerate(X):
            edges = None if edge_features is None else edge_features[i]
            every = [z for z in labellings(len(x), n_labels) if allowed is None or allowed(z)]
            phi = np.array([joint_features(x, z, n_labels, edges) for z in every])
            self.features.append(phi if kept is None else phi[:, kept])
            self.agree.append(np.array([all(_fits(a, b) for a, b in zip(z, y[i], strict=True)) for z in every]))
        self.n_weights = self.features[0].shape[1]

    def losses(self, w: np.ndarray) -> np.ndarray:
        out = []
        for phi, agree in zip(self.features, self.agree, strict=True):
            scores = phi @ w
            out.append(log_sum_exp(scores) - log_sum_exp(scores[agree]))
        return np.array(out)

    def risk(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        gradient = np.zeros(self.n_weights)
        for phi, agree in zip(self.features, self.agree, strict=True):
            scores = phi @ w
            gradient += np.exp(scores - log_sum_exp(scores)) @ phi
            gradient -= np.exp(scores[agree] - log_sum_exp(scores[agree])) @ phi[agree]
        return float(self.losses(w).sum()), gradient

    def empirical(self) -> np.ndarray:
        """Σ_i Φ(x_i, y_i) of fully known labels."""
        return sum(phi[agree][0] for phi, agree in zip(self.features, self.agree, strict=True))

    def objective(self, w: np.ndarray, C: float, l1: float = 0.0, l2: float = 1.0) -> float:
        return C * self.risk(w)[0] + 0.5 * l2 * float(w @ w) + l1 * float(np.abs(w).sum())

    def optimum(self, C: float, l1: float = 0.0, l2: float = 1.0) -> np.ndarray:
        """The minimiser by SciPy's L-BFGS-B. With ℓ1: w = u − v, u, v ≥ 0, so that it is smooth."""

        def smooth(w: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self.risk(w)
            return C * value + 0.5 * l2 * float(w @ w), C * gradient + l2 * w

        options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-9, "maxcor": 50}
        n = self.n_weights
        if not l1:
            return minimize(smooth, np.zeros(n), jac=True, method="L-BFGS-B", options=options).x

        def halves(uv: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = smooth(uv[:n] - uv[n:])
            return value + l1 * float(uv.sum()), np.concatenate([gradient + l1, l1 - gradient])

        bounds = [(0.0, None)] * (2 * n)
        uv = minimize(halves, np.zeros(2 * n), jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        return uv[:n] - uv[n:]


def _fits(label: int, known) -> bool:
    if known is None:
        return True
    return label in known if isinstance(known, (set, frozenset)) else label == known
