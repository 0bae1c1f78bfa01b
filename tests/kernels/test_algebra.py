"""The algebra, Gram matrices in pipelines, tables, memory, and conditionally positive definite kernels."""

from __future__ import annotations

import operator
from functools import reduce

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KernelCenterer
from sklearn.svm import SVC

from mercer.kernels import (
    ANOVA,
    BSpline,
    Constant,
    Convolution,
    DirectSum,
    FunctionKernel,
    Gaussian,
    Gram,
    Laplacian,
    Linear,
    Matern,
    NegativeDistance,
    NystroemMap,
    Polynomial,
    Scaled,
    TensorProduct,
    base,
)

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(40, 4))
Y = np.where(np.linalg.norm(X, axis=1) > 1.8, 1, 0)

ATOMS = [
    Linear(), Polynomial(2, coef0=0.5), Gaussian(0.3), Laplacian(0.2), Matern(2.0), BSpline(1, 2.0), ANOVA(2),
    Constant(2.0),
]  # fmt: skip


def compositions() -> st.SearchStrategy:
    atoms = st.sampled_from(ATOMS)
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.builds(operator.add, inner, inner),
            st.builds(operator.mul, inner, inner),
            st.builds(operator.mul, st.floats(0, 5), inner),
            st.builds(operator.add, inner, st.floats(0, 5)),
            st.builds(operator.pow, inner, st.integers(1, 3)),
            st.builds(lambda k: k.normalized(), inner),
            st.builds(lambda k: k.centered(X[:5]), inner),
            st.builds(lambda k: k.translated(X[:2], [0.5, -2.0]), inner),
        ),
        max_leaves=5,
    )


@settings(max_examples=25, deadline=None, derandomize=True)
@given(kernel=compositions(), seed=st.integers(0, 10**6))
def test_compositions_of_positive_definite_kernels_are_positive_definite(kernel, seed):
    data = np.random.default_rng(seed).normal(size=(9, 4))
    assert kernel.definiteness == "pd"
    K = kernel(data)
    np.testing.assert_array_equal(K, K.T)
    scale = max(np.abs(K).max(), _largest_inside(kernel, data))
    assert np.linalg.eigvalsh(K).min() >= -1e-9 * max(1.0, scale)


def _largest_inside(kernel, data):
    """Entries of the matrices that a centred or translated one is the difference of."""
    inner = [value for value in kernel.get_params(deep=False).values() if hasattr(value, "definiteness")]
    return max([np.abs(kernel(data)).max(), np.abs(kernel(X[:5])).max(), *(_largest_inside(k, data) for k in inner)])


@pytest.mark.parametrize(("made", "expected"), [
    (lambda: 2.0 * Linear() + Gaussian(0.3), lambda L, G: 2 * L + G),
    (lambda: Linear() * 2 * Gaussian(0.3), lambda L, G: 2 * L * G),
    (lambda: (Linear() + 1) ** 3, lambda L, G: (L + 1) ** 3),
    (lambda: 0.0 * Linear() + Gaussian(0.3) ** 2, lambda L, G: G**2),
    (lambda: sum([Linear(), Gaussian(0.3)]), lambda L, G: L + G),
])  # fmt: skip
def test_operators_are_those_of_the_matrices(made, expected):
    np.testing.assert_allclose(made()(X), expected(X @ X.T, Gaussian(0.3)(X)), rtol=1e-10)


@pytest.mark.parametrize("make", [
    lambda: -1.0 * Linear(),
    lambda: Linear() * -0.5,
    lambda: Linear() + -1.0,
    lambda: np.nan * Linear(),
    lambda: np.inf * Linear(),
    lambda: Scaled(Linear(), -1.0)(X),
    lambda: Constant(-1.0)(X),
    lambda: Linear() ** -1,
    lambda: Linear() ** 0,
    lambda: Linear() ** 1.5,
    lambda: Linear() ** True,
])  # fmt: skip
def test_what_would_lose_definiteness_is_refused(make):
    with pytest.raises(ValueError):
        make()


def test_subtraction_is_not_defined():
    with pytest.raises(TypeError):
        Linear() - Gaussian()


def test_repr_reads_as_code():
    kernel = 2.0 * (Linear() + Gaussian(gamma=0.5)) ** 2
    assert repr(kernel) == "2.0 * ((Linear() + Gaussian(gamma=0.5)) ** 2)"
    np.testing.assert_allclose(eval(repr(kernel))(X), kernel(X))


def test_parameters_inside_are_found_by_name_and_copies_are_deep():
    kernel = 2.0 * Gaussian(0.5) + OwnKernel()
    copy = clone(kernel).set_params(left__kernel__gamma=3.0)
    assert copy.left.kernel.gamma == 3.0
    assert kernel.left.kernel.gamma == 0.5
    tuples = DirectSum(Linear(), Gaussian(0.5))
    assert clone(tuples).set_params(kernel_1__gamma=2.0).kernels[1].gamma == 2.0
    assert tuples.kernels[1].gamma == 0.5
    with pytest.raises(ValueError, match="kernel_0 … kernel_1"):
        tuples.set_params(kernel_7=Linear())


def test_changed_parameters_of_a_translation_are_noticed():
    """Also where the text of the arrays is the same: it leaves their middle out."""
    points, coef = RANDOM.normal(size=(2000, 2)), np.full(2000, 1e-3)
    other = coef.copy()
    other[1000] = 5.0
    kernel = Gaussian(0.5).translated(points, coef)
    kernel(X[:, :2])
    np.testing.assert_array_equal(
        kernel.set_params(coef=other)(X[:, :2]), Gaussian(0.5).translated(points, other)(X[:, :2])
    )
    np.testing.assert_array_equal(
        kernel.set_params(kernel__gamma=0.1)(X[:, :2]), Gaussian(0.1).translated(points, other)(X[:, :2])
    )


class OwnKernel(Linear):
    """A kernel of the user's own, which the algebra takes like any other."""


def test_wrong_things_are_refused_by_name():
    with pytest.raises(ValueError, match="must be a Kernel"):
        Gram("rbf").fit(X)
    with pytest.raises(TypeError):
        Linear() + "rbf"
    with pytest.raises(ValueError, match="object 1 must be a tuple of 2 parts"):
        DirectSum(Linear(), Linear())([([1.0], [2.0]), ([1.0],)])
    with pytest.raises(ValueError, match="dtype must be float64 or float32"):
        Linear()(X, dtype=np.int64)
    with pytest.raises(ValueError, match="n_jobs"):
        Linear()(X, n_jobs=0)
    with pytest.raises(ValueError, match="gave nan for object 1"):
        FunctionKernel(lambda x: float(x))([1.0, float("nan")])


# ------------------------------------------------------------------------------------------------ pipelines


def test_kernels_stand_in_cross_validation_as_in_the_svm_itself():
    made = cross_val_score(make_pipeline(Gram(Gaussian(0.5)), SVC(kernel="precomputed")), X, Y)
    np.testing.assert_array_equal(made, cross_val_score(SVC(kernel="rbf", gamma=0.5), X, Y))


def test_parameters_of_the_kernel_are_searched():
    grid = {"gram__kernel__gamma": [1e-3, 0.3, 300.0]}
    search = GridSearchCV(Pipeline([("gram", Gram(Gaussian())), ("svc", SVC(kernel="precomputed"))]), grid).fit(X, Y)
    peer = GridSearchCV(SVC(), {"gamma": [1e-3, 0.3, 300.0]}).fit(X, Y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"])
    assert search.best_params_["gram__kernel__gamma"] == peer.best_params_["gamma"]


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Polynomial(2, coef0=1.0), NegativeDistance()], ids=repr)
def test_centred_matrices_are_those_of_scikit_learn(kernel):
    train, test = X[:25], X[25:]
    gram, peer = Gram(kernel, center=True), KernelCenterer()
    np.testing.assert_allclose(gram.fit_transform(train), peer.fit_transform(kernel(train)), atol=1e-10)
    np.testing.assert_allclose(gram.transform(test), peer.transform(kernel(test, train)), atol=1e-10)
    np.testing.assert_allclose(gram.transform(train).sum(axis=0), 0.0, atol=1e-10)


def test_gram_takes_sparse_matrices_and_float32():
    gram = Gram(Gaussian(0.2), dtype=np.float32, center=True).fit(sp.csr_matrix(X))
    assert gram.transform(sp.csr_matrix(X[:3])).shape == (3, 40)
    assert gram.transform(X).dtype == np.float32
    with pytest.raises(ValueError, match="X is empty"):
        Gram(Linear()).fit([])


def test_progress_is_shown_when_asked(capsys, monkeypatch):
    monkeypatch.setattr(Linear, "_block_entries", 400)
    Linear()(X)
    assert capsys.readouterr().err == ""
    Linear()(X, verbose=1)
    assert "100.0% of the Gram matrix" in capsys.readouterr().err


def test_matrix_that_does_not_fit_is_refused_before_it_is_begun(monkeypatch):
    monkeypatch.setattr(base, "_free_memory", lambda: 10_000)
    assert Linear()(X).shape == (40, 40)  # so small that nobody asks
    monkeypatch.setattr(base, "_SMALL", 0)
    with pytest.raises(MemoryError, match=r"40 x 40 float64 values needs 12.5 KiB, 9.77 KiB are free: .*approximate"):
        Linear()(X)
    assert Linear()(X, dtype=np.float32).shape == (40, 40)


# ------------------------------------------------------------------------------------------------ tables


def tables() -> dict[str, object]:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    columns = {"price": [1.0, 2.0, 4.0], "size": [3, 1, 2], "name": ["a", "bb", "cc"]}
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    structured = np.array([tuple(r.values()) for r in records], dtype=[("price", "f8"), ("size", "i8"), ("name", "U2")])
    return {
        "pandas": pd.DataFrame(columns), "polars": pl.DataFrame(columns), "arrow": pa.table(columns), "dict": columns,
        "records": records, "structured": structured,
    }  # fmt: skip


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow", "dict", "records", "structured"])
def test_columns_of_tables_are_taken_by_name(form):
    table = tables()[form]
    price, size = np.array([[1.0], [2.0], [4.0]]), np.array([[3.0], [1.0], [2.0]])
    kernel = Gaussian(0.1).on("price") * (Linear().on("size") + 1.0) + FunctionKernel(len).on("name")
    lengths = np.outer([1, 2, 2], [1, 2, 2])
    expected = Gaussian(0.1)(price) * (size @ size.T + 1) + lengths
    np.testing.assert_allclose(kernel(table), expected)
    np.testing.assert_allclose(kernel.diag(table), np.diag(expected))
    np.testing.assert_allclose(Linear().on(["price", "size"])(table), price @ price.T + size @ size.T)
    with pytest.raises(ValueError, match="no column 'weight'"):
        Linear().on("weight")(table)
    if form in ("pandas", "polars"):
        np.testing.assert_allclose(Gram(kernel, center=True).fit_transform(table).sum(), 0.0, atol=1e-10)


def test_columns_of_arrays_are_taken_by_place():
    np.testing.assert_allclose(Gaussian(0.2).on([0, 2])(X), Gaussian(0.2)(X[:, [0, 2]]))
    np.testing.assert_allclose(Gaussian(0.2).on(3)(X), Gaussian(0.2)(X[:, 3:]))
    with pytest.raises(ValueError, match="no column 9"):
        Linear().on(9)(X)


# ------------------------------------------------------------------------------------------------ conditionally pd


CPD = NegativeDistance()


@pytest.mark.parametrize("make", [
    lambda: (CPD * Linear())(X),
    lambda: (Linear() * CPD)(X),
    lambda: (CPD**2)(X),
    lambda: CPD.normalized()(X),
    lambda: TensorProduct(CPD, Linear())([(x, x) for x in X]),
    lambda: Convolution(list, CPD)([[x] for x in X]),
    lambda: NystroemMap(CPD).fit(X),
    lambda: CPD.approximate(10).fit(X),
    lambda: CPD.translated(X[:2], [0.5, 0.5])(X),
    lambda: NystroemMap(CPD + Linear()).fit(X),
    lambda: NystroemMap(2.0 * CPD).fit(X),
])  # fmt: skip
def test_conditionally_positive_definite_kernel_is_refused(make):
    with pytest.raises(ValueError, match=r"conditionally positive definite"):
        make()


def test_conditionally_positive_definite_kernel_is_taken_where_it_may_be():
    assert (CPD + Linear()).definiteness == "cpd"
    assert (2.0 * CPD).definiteness == "cpd"
    assert DirectSum(CPD, Linear()).definiteness == "cpd"
    assert (CPD**1).definiteness == "cpd"
    for kernel in (CPD.centered(X), CPD.translated(X[:2], [-0.25, -0.75]), (CPD + Linear()).centered(X)):
        assert kernel.definiteness == "pd"
        assert np.linalg.eigvalsh(kernel(X)).min() > -1e-10
        NystroemMap(kernel, 10, random_state=0).fit(X)
    scores = cross_val_score(make_pipeline(Gram(CPD), SVC(kernel="precomputed")), X, Y)
    assert scores.mean() > 0.5


def test_square_distance_centred_is_the_linear_kernel_centred():
    """−‖x − z‖² differs from 2⟨x, z⟩ by functions of x and of z alone."""
    np.testing.assert_allclose(NegativeDistance(2.0).centered(X)(X), 2 * Linear().centered(X)(X), atol=1e-10)


def test_nystroem_takes_tables_and_sparse_matrices():
    made = NystroemMap(Gaussian(0.2), 40, random_state=0).fit(sp.csr_matrix(X))
    F = made.transform(sp.csr_matrix(X))
    np.testing.assert_allclose(F @ F.T, Gaussian(0.2)(X), atol=1e-6)
    table = {"a": X[:, 0], "b": X[:, 1]}
    kernel = reduce(operator.add, [Laplacian(0.3).on(name) for name in table])
    F = NystroemMap(kernel, 40, random_state=0).fit(table).transform(table)
    np.testing.assert_allclose(F @ F.T, kernel(table), atol=1e-6)


@pytest.mark.parametrize("scale", [50.0, 1e-3])
def test_normalized_values_are_right_in_float32_where_plain_ones_are_out_of_its_range(scale: float) -> None:
    X = scale * np.random.default_rng(0).normal(size=(5, 4))
    k = Polynomial(degree=20).normalized()
    np.testing.assert_allclose(k(X, dtype=np.float32), k(X), atol=1e-6)
    np.testing.assert_allclose(k(X[:2], X, dtype=np.float32), k(X[:2], X), atol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "(2.0 * Linear()) ** 2",
        "2.0 * (Linear() ** 2)",
        "(Linear() * Gaussian()) ** 2",
        "(2.0 * Linear()).normalized()",
        "(Linear() * Gaussian()).on('a')",
        "(Linear() + Gaussian()) * Linear()",
        "(Linear() ** 2).normalized()",
    ],
)
def test_the_repr_of_an_expression_is_that_expression(text: str) -> None:
    names = {"Linear": Linear, "Gaussian": Gaussian}
    kernel = eval(text, names)
    assert repr(eval(repr(kernel), names)) == repr(kernel) == text
