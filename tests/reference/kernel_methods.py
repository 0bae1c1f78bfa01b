"""Slow and obvious: kernels for tests, machines as general programs, perceptrons on explicit vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from mercer.kernels.base import CPD, Kernel


class Bump(Kernel):
    """exp(−gamma ‖x − z‖²)."""

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _prepare(self, X: Any) -> np.ndarray:
        return np.asarray(X, dtype=float)

    def _gram(self, A: np.ndarray, B: np.ndarray | None, work: Any) -> np.ndarray:
        B = A if B is None else B
        return np.exp(-self.gamma * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


class Minus(Kernel):
    """−‖x − z‖²: conditionally positive definite."""

    @property
    def definiteness(self) -> str:
        return CPD

    def _prepare(self, X: Any) -> np.ndarray:
        return np.asarray(X, dtype=float)

    def _gram(self, A: np.ndarray, B: np.ndarray | None, work: Any) -> np.ndarray:
        B = A if B is None else B
        return -((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)


class Letters(Kernel):
    """Counts of letters in common: strings."""

    def __init__(self, alphabet: str = "abcd", power: int = 1) -> None:
        self.alphabet = alphabet
        self.power = power

    def _prepare(self, X: Any) -> np.ndarray:
        return np.array([[x.count(c) for c in self.alphabet] for x in X], dtype=float).reshape(len(X), -1)

    def _gram(self, A: np.ndarray, B: np.ndarray | None, work: Any) -> np.ndarray:
        return (A @ (A if B is None else B).T) ** self.power


def blobs(seed: int, n: int = 40, apart: float = 2.0, classes: int = 2, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Clouds of points around different centres."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    centres = rng.normal(size=(classes, d))
    centres *= apart / np.linalg.norm(centres, axis=1, keepdims=True)
    if classes == 2:
        centres[1] = -centres[0]
    return centres[y] + rng.normal(size=(n, d)), y


def svm_dual(K: np.ndarray, signs: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, float]:
    """The dual of the soft-margin machine by a general solver: coefficients a, and its value 1ᵀa − ½ aᵀQa."""
    Q = np.outer(signs, signs) * K
    n = len(signs)
    found = minimize(
        lambda a: 0.5 * a @ Q @ a - a.sum(),
        np.zeros(n),
        jac=lambda a: Q @ a - 1.0,
        bounds=[(0.0, c) for c in upper],
        constraints=[{"type": "eq", "fun": lambda a: a @ signs, "jac": lambda a: signs}],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return found.x, -float(found.fun)


def one_class_dual(K: np.ndarray, nu: float) -> tuple[np.ndarray, float]:
    """min ½ aᵀKa, 1ᵀa = ν n, 0 ≤ a ≤ 1."""
    n = len(K)
    found = minimize(
        lambda a: 0.5 * a @ K @ a,
        np.full(n, nu),
        jac=lambda a: K @ a,
        bounds=[(0.0, 1.0)] * n,
        constraints=[{"type": "eq", "fun": lambda a: a.sum() - nu * n, "jac": lambda a: np.ones(n)}],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return found.x, float(found.fun)


def perceptron(X: np.ndarray, signs: np.ndarray, eta: float, epochs: int) -> tuple[np.ndarray, int, list[np.ndarray]]:
    """w, the number of mistakes, and w after every object: update where y ⟨w, x⟩ ≤ 0."""
    w, mistakes, course = np.zeros(X.shape[1]), 0, []
    for _ in range(epochs):
        before = mistakes
        for x, y in zip(X, signs, strict=True):
            if y * (w @ x) <= 0:
                w = w + eta * y * x
                mistakes += 1
            course.append(w)
        if mistakes == before:
            break
    return w, mistakes, course


def multiclass_perceptron(X: np.ndarray, y: np.ndarray, k: int, eta: float, epochs: int) -> tuple[np.ndarray, int]:
    """W with a row for each class, and the number of mistakes: a tie is one."""
    W, mistakes = np.zeros((k, X.shape[1])), 0
    for _ in range(epochs):
        before = mistakes
        for x, c in zip(X, y, strict=True):
            scores = W @ x
            others = np.where(np.arange(k) == c, -np.inf, scores)
            if others.max() >= scores[c]:
                W[c] += eta * x
                W[others.argmax()] -= eta * x
                mistakes += 1
        if mistakes == before:
            break
    return W, mistakes
