"""The mean map: class means, the model at its optimum, the Laplacian variant, and when it is ill posed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from mercer.kernels import Gaussian, Linear
from mercer.maps import FourierFeatures
from mercer.proportions import Bags, IllPosedWarning, MeanMap, make_bags
from mercer.proportions._base import Space

TRUE = np.array([[-1.0, 0.0, 0.5], [1.0, 2.0, 0.0]])


def drawn(n_bags: int = 60, size: int = 10, seed: int = 0):
    """Bags with shares of their own; classes are distributed alike in all."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n_bags)
    y = (rng.random((n_bags, size)) < p[:, None]).astype(int).ravel()
    X = rng.normal(size=(len(y), 3)) + TRUE[y]
    return X, y, Bags(np.repeat(np.arange(n_bags), size), y.reshape(n_bags, size).mean(axis=1))


def objective(model, X, u, mu, p):
    w, b = model.coef_[0], model.intercept_[0]
    f = X @ w + b
    return u @ np.logaddexp(f, -f) - w @ mu - b * (2 * p - 1) + model.alpha * w @ w


@pytest.mark.parametrize("weighted", [True, False])
def test_class_means_become_the_true_ones_as_rows_grow(weighted):
    errors = []
    for n_bags in (20, 2000):
        X, _, bags = drawn(n_bags)
        errors.append(np.abs(MeanMap(weighted=weighted).fit(X, bags=bags).class_means_ - TRUE).max())
    assert errors[1] < 0.06
    assert errors[1] < errors[0] / 3


def test_class_means_are_those_of_weighted_least_squares():
    rng = np.random.default_rng(1)
    bag = np.repeat([0, 1, 2, 3], [2, 5, 9, 14])
    X, p, c = rng.normal(size=(30, 4)), np.array([0.1, 0.5, 0.3, 0.9]), np.array([1.0, 2.0, 0.5, 1.0])
    m = np.array([X[bag == k].mean(axis=0) for k in range(4)])
    for weighted in (False, True):
        W = np.diag(c * (np.bincount(bag) if weighted else 1))
        P = np.column_stack([1 - p, p])
        expected = np.linalg.solve(P.T @ W @ P, P.T @ W @ m)
        model = MeanMap(weighted=weighted).fit(X, bags=bag, proportions=p, bag_weight=c)
        np.testing.assert_allclose(model.class_means_, expected, atol=1e-10)


def test_the_model_is_at_the_minimum_of_its_objective():
    X, _, bags = drawn()
    model = MeanMap(alpha=0.05).fit(X, bags=bags)
    n, p = len(X), bags.proportions.mean()
    u, mu = np.full(n, 1 / n), p * model.class_means_[1] - (1 - p) * model.class_means_[0]
    f = X @ model.coef_[0] + model.intercept_[0]
    gradient = X.T @ (u * np.tanh(f)) - mu + 2 * 0.05 * model.coef_[0]
    assert np.linalg.norm(np.append(gradient, u @ np.tanh(f) - (2 * p - 1))) == pytest.approx(
        model.gradient_norm_, abs=1e-12
    )
    assert model.gradient_norm_ < 1e-7
    best = objective(model, X, u, mu, p)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = MeanMap(alpha=0.05).fit(X, bags=bags)
        other.coef_ = model.coef_ + 0.01 * rng.normal(size=model.coef_.shape)
        assert objective(other, X, u, mu, p) > best


@pytest.mark.parametrize("how", ["labels", "bags of one"])
def test_labels_of_all_rows_make_it_logistic_regression(how):
    X, y, _ = drawn()
    n, alpha = len(X), 0.02
    model = MeanMap(alpha=alpha)
    model = model.fit(X, y) if how == "labels" else model.fit(X, bags=np.arange(n), proportions=y)
    # log(e^f + e^-f) − y f = log(1 + e^{−2 y f}), so that v = 2 w has the penalty α/4 ‖v‖².
    peer = LogisticRegression(C=2 / (n * alpha), tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(2 * model.coef_, peer.coef_, atol=1e-5)
    np.testing.assert_allclose(2 * model.intercept_, peer.intercept_, atol=1e-5)


def test_the_linear_kernel_gives_the_linear_model():
    X, _, bags = drawn()
    linear = MeanMap().fit(X, bags=bags)
    kernel = MeanMap(kernel=Linear(), fit_intercept=True).fit(X, bags=bags)
    np.testing.assert_allclose(kernel.decision_function(X), linear.decision_function(X), atol=1e-6)
    assert not hasattr(kernel, "class_means_")


def test_a_kernel_separates_what_no_line_does():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (np.linalg.norm(X, axis=1) > 1.2).astype(int)
    bags = make_bags(y, 4, random_state=0)
    assert MeanMap(0.001, kernel=Gaussian(0.5)).fit(X, bags=bags).score(X, y) > 0.85
    matrix = Gaussian(0.5)(X)
    by_matrix = MeanMap(0.001, kernel="precomputed").fit(matrix, bags=bags)
    by_kernel = MeanMap(0.001, kernel=Gaussian(0.5)).fit(X, bags=bags)
    np.testing.assert_allclose(by_matrix.decision_function(matrix), by_kernel.decision_function(X), atol=1e-8)


def test_sparse_features_and_maps():
    X, _, bags = drawn()
    X[np.abs(X) < 0.5] = 0
    dense = MeanMap().fit(X, bags=bags)
    np.testing.assert_allclose(MeanMap().fit(sp.csr_array(X), bags=bags).coef_, dense.coef_, atol=1e-7)
    model = MeanMap(map=FourierFeatures(20, random_state=0)).fit(X, bags=bags)
    assert model.class_means_.shape == (2, model.coef_.shape[1])


def test_known_labels_help_with_class_means():
    X, y, bags = drawn(4, 30)
    known = np.array([label if i % 3 == 0 else None for i, label in enumerate(y.tolist())], object)
    without, with_labels = MeanMap().fit(X, bags=bags), MeanMap().fit(X, known, bags=bags)
    means = [np.abs(model.class_means_ - TRUE).max() for model in (without, with_labels)]
    assert means[1] < means[0]


def test_rows_of_repeated_and_weighted_bags_count_alike():
    X, _, bags = drawn(12)
    weight = np.ones(12)
    weight[3] = 2
    pairs = np.column_stack([bags.members, bags.number])
    again = np.vstack([pairs, np.column_stack([np.arange(30, 40), np.full(10, 12)])])
    twice = MeanMap().fit(X, bags=again, proportions=np.append(bags.proportions, bags.proportions[3]))
    np.testing.assert_allclose(MeanMap().fit(X, bags=bags, bag_weight=weight).coef_, twice.coef_, atol=1e-6)


# ---------------------------------------------------------------------------------------------------- Laplacian


def test_a_strong_laplacian_is_the_plain_mean_map():
    X, _, bags = drawn()
    plain = MeanMap().fit(X, bags=bags)
    smooth = MeanMap(laplacian=1e6).fit(X, bags=bags)
    np.testing.assert_allclose(smooth.coef_, plain.coef_, atol=1e-3)
    np.testing.assert_allclose(smooth.class_means_, plain.class_means_, atol=1e-3)


def test_class_means_of_each_bag_minimise_the_smooth_objective():
    """Compared with a dense least-squares problem over the means of all bags."""
    rng = np.random.default_rng(2)
    M, gamma = 5, 0.7
    bag = np.repeat(np.arange(M), 4)
    X, p = rng.normal(size=(20, 2)), np.array([0.2, 0.4, 0.9, 0.6, 0.3])
    S = rng.random((M, M))
    S = S + S.T
    m = X.reshape(M, 4, 2).mean(axis=1)
    rows, right = [], []
    for k in range(M):
        row = np.zeros(2 * M)
        row[k], row[M + k] = 1 - p[k], p[k]
        rows.append(row * np.sqrt(1 / M))
        right.append(m[k] * np.sqrt(1 / M))
    for k in range(M):
        for other in range(M):
            for shift in (0, M):
                row = np.zeros(2 * M)
                row[shift + k] += 1
                row[shift + other] -= 1
                rows.append(row * np.sqrt(gamma * S[k, other] / 2))
                right.append(np.zeros(2))
    B = np.linalg.lstsq(np.array(rows), np.array(right), rcond=None)[0]
    share = p.mean()
    expected = [(1 - p) @ B[:M] / M / (1 - share), p @ B[M:] / M / share]
    model = MeanMap(laplacian=gamma, similarity=S).fit(X, bags=bag, proportions=p)
    np.testing.assert_allclose(model.class_means_, expected, atol=1e-9)


@pytest.mark.parametrize("similarity", ["means of bags", "places"])
def test_the_laplacian_variant_follows_class_means_that_drift(similarity):
    """They move along a path of bags, and shares grow along it, which breaks the assumption of the plain one."""
    rng = np.random.default_rng(0)
    M, size = 60, 40
    place = np.linspace(-4, 4, M)
    p = np.clip(0.5 + 0.06 * place + rng.uniform(-0.25, 0.25, M), 0.02, 0.98)
    y = (rng.random((M, size)) < p[:, None]).astype(int)
    centre = np.stack([np.where(y, 1.0, -1.0), -np.broadcast_to(place[:, None], y.shape)], axis=-1)
    X, y = (0.5 * rng.normal(size=(M, size, 2)) + centre).reshape(-1, 2), y.ravel()
    bags = Bags(np.repeat(np.arange(M), size), y.reshape(M, size).mean(axis=1))
    S = 0.1 if similarity == "means of bags" else np.exp(-np.abs(np.subtract.outer(place, place)) / 0.2)
    assert MeanMap(0.01).fit(X, bags=bags).score(X, y) < 0.75
    assert MeanMap(0.01, laplacian=0.001, similarity=S).fit(X, bags=bags).score(X, y) > 0.95


@pytest.mark.parametrize(
    ("similarity", "message"),
    [(np.ones((2, 2)), "shape"), (-np.ones((60, 60)), "at least 0"), (0.0, "similarity must be a positive")],
)
def test_wrong_similarities_are_named(similarity, message):
    X, _, bags = drawn()
    with pytest.raises(ValueError, match=message):
        MeanMap(laplacian=1.0, similarity=similarity).fit(X, bags=bags)


# ---------------------------------------------------------------------------------------------------- ill posed, wrong


@pytest.mark.parametrize("laplacian", [None, 1.0])
def test_equal_shares_are_flagged(laplacian):
    X, _, bags = drawn()
    with pytest.warns(IllPosedWarning, match="shares of all bags are equal"):
        model = MeanMap(laplacian=laplacian).fit(X, bags=bags, proportions=np.full(len(bags), 0.386))
    np.testing.assert_allclose(model.class_means_, [X.mean(axis=0)] * 2)
    assert np.isfinite(model.coef_).all()


def test_a_single_bag_and_pure_shares_stay_finite():
    X, _, _ = drawn()
    for p in (0.0, 0.5, 1.0):
        with pytest.warns(IllPosedWarning):
            model = MeanMap().fit(X, bags=np.zeros(len(X)), proportions=[p])
        assert np.isfinite(model.decision_function(X)).all()
        if p != 0.5:
            assert (model.predict(X) == p).all()


def test_three_classes_are_told_apart():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = rng.normal(size=(600, 2)) + np.array([[0, 0], [5, 0], [0, 5]])[y]
    model = MeanMap(0.001).fit(X, bags=make_bags(y, 5, random_state=0))
    assert model.score(X, y) > 0.9
    assert len(model.class_means_) == 3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0}, "alpha must be"),
        ({"alpha": "x"}, "alpha must be"),
        ({"weighted": "yes"}, "weighted must be"),
        ({"laplacian": -1.0}, "laplacian must be"),
        ({"similarity": 1.0}, "without laplacian"),
        ({"tol": 0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    X, _, bags = drawn()
    with pytest.raises(ValueError, match=message):
        MeanMap(**parameters).fit(X, bags=bags)


def test_a_limit_on_steps_warns():
    from mercer.exceptions import ConvergenceWarning

    X, _, bags = drawn()
    with pytest.warns(ConvergenceWarning, match="stopped after 1 steps"):
        MeanMap(1e-4, max_iter=1).fit(X, bags=bags)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_the_tolerance_is_reached_at_any_scale_of_features(scale):
    X, _, bags = drawn()
    model = MeanMap(1e-6).fit(scale * X, bags=bags)
    assert model.gradient_norm_ <= 1e-8 * max(1.0, 4 * scale)


# ---------------------------------------------------------------------------------------------------- coordinates


@pytest.mark.parametrize("kind", ["full", "repeated", "low", "indefinite", "zero"])
def test_coordinates_have_the_inner_products_of_a_kernel_matrix(kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    if kind == "repeated":
        X[20:] = X[:20]
    K = X @ X.T if kind == "low" else np.exp(-np.square(X[:, None] - X).sum(axis=2))
    if kind == "indefinite":
        K = np.tanh(X @ X.T - 1.0)
    if kind == "zero":
        K = np.zeros((40, 40))
    values, vectors = np.linalg.eigh(K)
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T  # of those without negative eigenvalues
    space = Space(gram=K)
    Z = space.coordinates()
    np.testing.assert_allclose(Z @ Z.T, nearest, atol=1e-7)
    assert Z.shape[1] == {"full": 40, "repeated": 20, "low": 5, "zero": 0}.get(kind, Z.shape[1])
    # Coefficients over instances give the same function.
    w = rng.normal(size=Z.shape[1])
    np.testing.assert_allclose(nearest @ space.weights_of(w), Z @ w, atol=1e-6)


@pytest.mark.parametrize("kernel", [None, Gaussian(0.5)], ids=["features", "kernel"])
def test_without_an_offset_there_is_none(kernel) -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.7).astype(int)
    X = rng.normal(size=(200, 3)) + 2 * y[:, None]
    bags = make_bags(y, 5, random_state=0)
    chosen = {fit: MeanMap(0.1, kernel=kernel, fit_intercept=fit).fit(X, bags=bags) for fit in (True, False, "auto")}
    assert chosen[False].intercept_ == 0
    assert chosen[True].intercept_ != 0
    assert chosen["auto"].intercept_ == chosen[kernel is None].intercept_
    K = X if kernel is None else kernel(X)
    model = chosen[False]
    weights = (model.coef_ if kernel is None else model.dual_coef_).ravel()
    columns = K if kernel is None else K[:, model.support_]
    np.testing.assert_allclose(model.decision_function(X), columns @ weights, atol=1e-9)
    assert model.gradient_norm_ < 1e-6


def test_a_strong_penalty_with_a_kernel_still_tells_rows_apart() -> None:
    rng = np.random.default_rng(1)
    y = (rng.random(400) < 0.6).astype(int)
    X = rng.normal(size=(400, 10)) + 0.8 * y[:, None]
    bags = make_bags(y, 4, random_state=0)
    model = MeanMap(10.0, kernel=Gaussian(0.05)).fit(X, bags=bags)
    with_offset = MeanMap(10.0, kernel=Gaussian(0.05), fit_intercept=True).fit(X, bags=bags)
    assert len(np.unique(with_offset.predict(X))) == 1
    assert model.score(X, y) > with_offset.score(X, y) + 0.05


def test_a_wrong_word_for_the_offset_is_named() -> None:
    with pytest.raises(ValueError, match="fit_intercept must be True, False or 'auto', got 'no'"):
        MeanMap(fit_intercept="no").fit(np.eye(4), bags=[0, 0, 1, 1], proportions=[0.5, 1.0])


@pytest.mark.parametrize("kernel", [None, Gaussian(0.05)], ids=["features", "kernel"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_threshold_by_shares_meets_them_best(kernel, weighted) -> None:
    rng = np.random.default_rng(2)
    y = (rng.random(400) < 0.7).astype(int)
    X = rng.normal(size=(400, 5)) + 1.5 * y[:, None]
    of_row, v = np.arange(400) // 8, rng.uniform(0.5, 1.5, 400) if weighted else np.ones(400)
    bags = Bags(of_row, y.reshape(50, 8).mean(axis=1), row_weight=v)
    at_zero, cut = (MeanMap(10.0, kernel=kernel, threshold=way).fit(X, bags=bags) for way in ("model", "shares"))
    # The same function, moved.
    shift = cut.decision_function(X) - at_zero.decision_function(X)
    assert np.ptp(shift) < 1e-12

    def error(positive) -> float:
        share = np.bincount(of_row, v * positive) / np.bincount(of_row, v)
        return float(np.abs(share - bags.proportions).sum())

    f = at_zero.decision_function(X)
    every = [error(f > value) for value in f]
    assert error(cut.predict(X) == 1) == pytest.approx(min(*every, error(f >= f.min())))
    assert cut.score(X, y) > max(at_zero.score(X, y), 0.9)


def test_labelled_rows_move_the_threshold() -> None:
    X = np.arange(12.0)[:, None]
    y = np.full(12, np.nan)
    y[8] = 0  # by its bag alone it would be positive
    assert MeanMap(threshold="shares").fit(X, bags=[0] * 6 + [1] * 6, proportions=[0.0, 0.8]).predict(X)[8] == 1
    known = MeanMap(threshold="shares").fit(X, bags=[0] * 6 + [1] * 6, proportions=[0.0, 0.8], y=y)
    assert known.predict(X)[8] == 0


def test_a_threshold_by_shares_for_several_classes() -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 2)) + 4 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    bags = make_bags(y, 5, random_state=0)
    assert MeanMap(1.0, threshold="shares").fit(X, bags=bags).score(X, y) > 0.9


def test_a_wrong_word_for_the_threshold_is_named() -> None:
    with pytest.raises(ValueError, match=r"threshold must be .*'model'.*'shares'.*, got 'half'"):
        MeanMap(threshold="half").fit(np.eye(4), bags=[0, 0, 1, 1], proportions=[0.5, 1.0])


def test_one_row_has_the_class_of_its_bag() -> None:
    with pytest.warns(IllPosedWarning):
        assert MeanMap().fit([[1.0, 2.0]], bags=[0], proportions=[1.0]).predict([[1.0, 2.0]]).tolist() == [1]
