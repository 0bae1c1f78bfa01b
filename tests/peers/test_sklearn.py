"""Machines and kernels beside scikit-learn's, which is always installed: the same optima on random inputs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import kernel_ridge, svm
from sklearn.datasets import make_classification
from sklearn.decomposition import KernelPCA as PeerKernelPCA
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import pairwise

from mercer.classification import LinearClassifier
from mercer.kernel_methods import KernelNuSVC, KernelPCA, KernelRidge, KernelSVC, KernelSVR
from mercer.kernels import ChiSquared, Gaussian, Laplacian, Linear, Polynomial
from mercer.maps import TextHasher

SEEDS = range(3)


def two_classes(seed: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        80, 6, n_informative=5, n_redundant=0, n_classes=classes, class_sep=0.7, random_state=seed
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Gaussian(0.3), lambda X: pairwise.rbf_kernel(X, gamma=0.3)),
        (Laplacian(0.2), lambda X: pairwise.laplacian_kernel(X, gamma=0.2)),
        (Polynomial(3, 1.0, 1.0), lambda X: pairwise.polynomial_kernel(X, degree=3, gamma=1.0, coef0=1.0)),
        (Linear(), pairwise.linear_kernel),
    ],
    ids=["gaussian", "laplacian", "polynomial", "linear"],
)
def test_gram_matrices(seed, ours, theirs):
    X = np.random.default_rng(seed).normal(size=(30, 7))
    np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_gram_matrices_of_histograms(seed):
    X = np.random.default_rng(seed).dirichlet(np.full(8, 0.5), size=20)
    np.testing.assert_allclose(ChiSquared(1.0)(X), pairwise.chi2_kernel(X), rtol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("C", [0.3, 5.0])
def test_support_vector_machines_have_the_same_scores(seed, C):
    X, y = two_classes(seed)
    ours = KernelSVC(Gaussian(0.2), C=C, tol=1e-6).fit(X, y)
    theirs = svm.SVC(C=C, gamma=0.2, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_nu_machines_have_the_same_scores(seed):
    X, y = two_classes(seed)
    ours = KernelNuSVC(Gaussian(0.2), nu=0.4, tol=1e-6).fit(X, y)
    theirs = svm.NuSVC(nu=0.4, gamma=0.2, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_support_vector_regression_has_the_same_values(seed):
    X, _ = two_classes(seed)
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1]
    ours = KernelSVR(Gaussian(0.2), C=2.0, epsilon=0.05, tol=1e-6).fit(X, y)
    theirs = svm.SVR(C=2.0, epsilon=0.05, gamma=0.2, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_kernel_ridge_regression_has_the_same_values(seed):
    X, _ = two_classes(seed)
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1]
    ours = KernelRidge(Gaussian(0.2), alpha=0.5).fit(X, y)
    theirs = kernel_ridge.KernelRidge(kernel="rbf", gamma=0.2, alpha=0.5).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_kernel_components_are_the_same_up_to_sign(seed):
    X, _ = two_classes(seed)
    ours = KernelPCA(Gaussian(0.2), n_components=3).fit(X).transform(X)
    theirs = PeerKernelPCA(3, kernel="rbf", gamma=0.2).fit_transform(X)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_multiclass_margins_reach_the_objective_of_liblinear(seed):
    X, y = two_classes(seed, classes=3)

    def objective(W: np.ndarray) -> float:
        scores = X @ W.T
        own = scores[np.arange(len(y)), y].copy()
        scores += 1.0
        scores[np.arange(len(y)), y] -= 1.0
        return 0.5 * float((W**2).sum()) + 0.5 * float((scores.max(axis=1) - own).sum())

    ours = LinearClassifier(C=0.5, fit_intercept=False, tol=1e-6, random_state=0).fit(X, y)
    theirs = svm.LinearSVC(C=0.5, multi_class="crammer_singer", fit_intercept=False, tol=1e-8, max_iter=10**6)
    assert objective(ours.coef_) <= objective(theirs.fit(X, y).coef_) * (1 + 1e-4)


@pytest.mark.parametrize("analyzer", ["word", "char", "char_wb"])
def test_texts_have_the_same_features_up_to_collisions(analyzer):
    random = np.random.default_rng(0)
    words = ["".join(random.choice(list("abcdeé"), size=n)) for n in random.integers(1, 9, 200)]
    texts = [" ".join(random.choice(words, size=30)) + "." for _ in range(40)]
    n = (1, 1) if analyzer == "word" else (2, 4)
    ours = TextHasher(n_bits=22, analyzer=analyzer, ngrams=n, signed=False).transform(texts)
    theirs = HashingVectorizer(
        n_features=2**22, analyzer=analyzer, ngram_range=n, norm=None, alternate_sign=False
    ).transform(texts)
    assert np.array_equal(np.sort(ours.data), np.sort(theirs.data))
    np.testing.assert_array_equal(ours.sum(axis=1), theirs.sum(axis=1))
