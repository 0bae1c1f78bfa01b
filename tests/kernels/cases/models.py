"""Kernels from generative models."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from kernels.cases import Case
from mercer.kernels import (
    Fisher,
    GaussianMixtureModel,
    GaussianModel,
    MultinomialModel,
    ProbabilityProduct,
)
from mercer.markov import HiddenMarkovModel
from reference.models import fisher, gaussian_product, multinomial_product

SAMPLE = np.random.default_rng(3).normal(size=(60, 2)) @ np.array([[1.0, 0.5], [0.0, 2.0]]) + np.array([3.0, -1.0])
STRINGS = ["aabc", "abcc", "bb", "cab", "a", "bcbcb", "aaaaab", "cc", "ccbaacb", "b"] * 3

GAUSSIAN = GaussianModel().fit(SAMPLE)
MEAN = GaussianModel(free="mean").fit(SAMPLE)
MULTINOMIAL = MultinomialModel().fit(STRINGS)
MIXTURE = GaussianMixtureModel(2, random_state=0).fit(SAMPLE)
HMM = HiddenMarkovModel(2, random_state=0, max_iter=500).fit(STRINGS)


def vectors(random: np.random.Generator, n: int) -> np.ndarray:
    return random.normal(size=(n, 2)) * 2 + np.array([3.0, -1.0])


def bags(random: np.random.Generator, n: int) -> list[np.ndarray]:
    found = [random.normal(size=(random.integers(1, 6), 2)) + random.normal(size=2) for _ in range(n)]
    found[-1] = found[n // 2]
    return found


def strings(random: np.random.Generator, n: int) -> list[str]:
    return ["", *("".join("abc"[i] for i in random.integers(0, 3, random.integers(0, 8))) for _ in range(n - 1))]


def texts(random: np.random.Generator, n: int) -> list[list[str]]:
    return [["abcd"[i] for i in random.integers(0, 4, random.integers(1, 8))] for _ in range(n)]


def normalised(model: Any, ridge: float = 1e-6, diagonal: bool = False, sample: Any = None) -> Any:
    """k(x, z) with the information of the sample, from scores one by one."""
    U = [model.scores([x])[0] for x in (model.sample_ if sample is None else sample)]
    information = sum(np.outer(u, u) for u in U) / len(U)
    if diagonal:
        information = np.diag(np.diag(information))
    information = information + ridge * np.diag(information).mean() * np.eye(len(information))
    return partial(fisher, score=lambda x: model.scores([x])[0], information=information)


def plain(model: Any) -> Any:
    return lambda x, z: float(model.scores([x])[0] @ model.scores([z])[0])


def shuffled(random: np.random.Generator, x: Any) -> Any:
    return [x[i] for i in random.permutation(len(x))]


CASES = [
    Case("fisher gaussian", Fisher(GAUSSIAN), vectors, normalised(GAUSSIAN), rtol=1e-7),
    Case("fisher gaussian mean", Fisher(MEAN, ridge=0.0), vectors, normalised(MEAN, 0.0)),
    Case("fisher gaussian of bags", Fisher(GAUSSIAN, information=None), bags, plain(GAUSSIAN)),
    Case("fisher multinomial", Fisher(MULTINOMIAL), strings, normalised(MULTINOMIAL), {"order": shuffled}, rtol=1e-6),
    Case("fisher multinomial plain", Fisher(MULTINOMIAL, information=None), strings, plain(MULTINOMIAL)),
    Case("fisher mixture", Fisher(MIXTURE), vectors, normalised(MIXTURE), rtol=1e-6),
    Case(
        "fisher mixture diagonal", Fisher(MIXTURE, information="diagonal"), vectors, normalised(MIXTURE, diagonal=True)
    ),
    Case("fisher hmm", Fisher(HMM, sample=STRINGS), strings, normalised(HMM, sample=STRINGS), rtol=1e-6),
    Case("fisher hmm plain", Fisher(HMM, information=None), strings, plain(HMM)),
    *(
        Case(
            f"probability product gaussian {rho} {covariance}",
            ProbabilityProduct(rho=rho, reg_covar=0.1, covariance=covariance), bags,
            partial(gaussian_product, rho=rho, reg=0.1, diagonal=covariance == "diag"), {"order": shuffled},
        )
        for rho, covariance in ((0.5, "full"), (1.0, "full"), (0.7, "diag"))
    ),
    Case("probability product of one-component mixtures",
         ProbabilityProduct("mixture", rho=1.0, reg_covar=0.1, n_components=1), bags,
         partial(gaussian_product, rho=1.0, reg=0.1)),
    *(
        Case(f"probability product multinomial {rho}", ProbabilityProduct("multinomial", rho=rho), texts,
             partial(multinomial_product, rho=rho), {"order": shuffled})
        for rho in (0.5, 1.0)
    ),
]  # fmt: skip
