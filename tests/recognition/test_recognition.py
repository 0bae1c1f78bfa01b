"""Classification by sparse representation: residuals by the definition, rejection, occlusion, images on entry."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer.datasets import make_faces
from mercer.exceptions import ConvergenceWarning
from mercer.maps import CirculantProjection, RandomProjection, SignedHashProjection
from mercer.recognition import CodeClassifier, SparseCoder, SparseRepresentationClassifier

SOLVERS = {
    "omp": {"n_nonzero": 10},
    "order-recursive": {"n_nonzero": 10},
    "l1": {"tol": 0.1},
    "lasso": {"alpha": 0.02},
}


@pytest.fixture(scope="module")
def faces():
    """16 images of 20 people each, 12 of them to learn from."""
    images, names = make_faces(20, 16, random_state=0)
    train = np.arange(len(names)) % 16 < 12
    return images[train], names[train], images[~train], names[~train]


# ------------------------------------------------------------------------------------------------------- the classifier


@pytest.mark.parametrize("solver", SOLVERS)
def test_residuals_are_those_of_the_definition(faces, solver):
    A, names, X, _ = faces
    model = SparseRepresentationClassifier(SignedHashProjection(60, random_state=0), solver, **SOLVERS[solver])
    model.fit(A, names)
    atoms, queries = (model.projection_.transform(images.reshape(len(images), -1)) for images in (A, X[:5]))
    codes = SparseCoder(atoms, solver, **SOLVERS[solver]).transform(queries).toarray()
    assert np.allclose(codes, model.code(X[:5]).codes.toarray())
    for x, code, residuals, label in zip(queries, codes, model.residuals(X[:5]), model.predict(X[:5]), strict=True):
        expected = [
            np.linalg.norm(x - np.where(names == name, code, 0) @ atoms) / np.linalg.norm(x) for name in model.classes_
        ]
        assert np.allclose(residuals, expected)
        assert label == model.classes_[np.argmin(expected)]


@pytest.mark.parametrize("factor", [1e-200, 1e6, 1e200])
def test_units_of_queries_change_nothing(factor):
    rng = np.random.default_rng(0)
    atoms, names = rng.normal(size=(24, 8)), np.repeat(["a", "b", "c"], 8)
    X = rng.normal(size=(5, 8))
    for model in (SparseRepresentationClassifier(), SparseRepresentationClassifier(occlusion=True), CodeClassifier()):
        model.fit(atoms, names)
        np.testing.assert_allclose(model.decision_function(factor * X), model.decision_function(X), rtol=1e-6)
        assert model.predict(factor * X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("solver", SOLVERS)
def test_hashed_faces_are_recognised(faces, solver):
    A, names, X, truth = faces
    model = SparseRepresentationClassifier(SignedHashProjection(100, random_state=0), solver, **SOLVERS[solver])
    assert model.fit(A, names).score(X, truth) >= 0.9


def test_random_maps_with_l1_reach_nine_tenths_at_100_dimensions(faces):
    A, names, X, truth = faces
    model = SparseRepresentationClassifier(RandomProjection(100, random_state=0), "l1", tol=0.05)
    assert model.fit(A, names).score(X, truth) >= 0.9


def test_accuracy_rises_with_the_dimension(faces):
    A, names, X, truth = faces
    scores = []
    for d in (6, 25, 100):
        maps = (SignedHashProjection(d, random_state=seed) for seed in range(3))
        scores.append(np.mean([SparseRepresentationClassifier(p).fit(A, names).score(X, truth) for p in maps]))
    assert scores[0] < scores[1] < scores[2]


@pytest.mark.parametrize(
    "projection",
    [None, RandomProjection(40, random_state=0), CirculantProjection(40, random_state=0), PCA(40, random_state=0)],
    ids=["none", "random", "circulant", "pca"],
)
def test_any_projection_serves(faces, projection):
    A, names, X, truth = faces
    model = SparseRepresentationClassifier(projection).fit(A, names)
    assert model.score(X, truth) > 0.6
    assert projection is None or not hasattr(projection, "n_features_in_")


def test_images_and_rows_of_pixels_give_the_same(faces):
    A, names, X, _ = faces
    flat = SparseRepresentationClassifier().fit(A.reshape(len(A), -1), names).residuals(X.reshape(len(X), -1))
    assert np.array_equal(SparseRepresentationClassifier().fit(A, names).residuals(X), flat)
    assert np.array_equal(SparseRepresentationClassifier().fit(list(A), names).residuals(list(X)), flat)
    colour = np.stack([A, A], axis=3)
    assert SparseRepresentationClassifier().fit(colour, names).n_features_in_ == 2 * A[0].size


def test_images_of_another_shape_are_refused(faces):
    X, y = faces[0], faces[1]
    images = np.asarray(X).reshape(len(X), -1)[:, :12].reshape(-1, 3, 4)
    model = SparseRepresentationClassifier().fit(images, y)
    with pytest.raises(ValueError, match="4 × 3 pixels, those of training 3 × 4"):
        model.predict(images.transpose(0, 2, 1))


def test_one_image_is_a_batch_of_one(faces):
    A, names, X, _ = faces
    model = SparseRepresentationClassifier().fit(A, names)
    assert model.predict(X[0]).tolist() == model.predict(X[:1]).tolist()
    colour = SparseRepresentationClassifier().fit(np.stack([A, A], axis=3), names)
    assert colour.predict(np.stack([X[0], X[0]], axis=2)).shape == (1,)


def test_people_who_are_not_in_the_gallery_have_spread_codes(faces):
    A, names, X, truth = faces
    known = np.isin(names, np.unique(names)[:12])
    model = SparseRepresentationClassifier(SignedHashProjection(120, random_state=0)).fit(A[known], names[known])
    inside = np.isin(truth, model.classes_)
    concentration = model.concentration(X)
    assert ((concentration >= 0) & (concentration <= 1)).all()
    assert roc_auc_score(inside, concentration) > 0.85


def test_fit_warns_where_rows_of_a_class_do_not_span_each_other(faces):
    A, names, _, _ = faces
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseRepresentationClassifier(SignedHashProjection(100, random_state=0)).fit(A, names)
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match="spread over the classes"):
        SparseRepresentationClassifier().fit(rng.normal(size=(200, 30)), np.arange(200) % 20)


def test_queries_with_a_spread_code_get_the_label_unknown(faces):
    A, names, X, _ = faces
    plain = SparseRepresentationClassifier().fit(A, names)
    model = SparseRepresentationClassifier(min_concentration=0.4, unknown="nobody").fit(A, names)
    rejected = plain.concentration(X) < 0.4
    assert 0 < rejected.sum() < len(X)
    assert (model.predict(X) == np.where(rejected, "nobody", plain.predict(X))).all()


def test_pixels_explain_themselves_where_a_face_is_occluded(faces):
    A, names, X, truth = faces
    X, truth = X[::2], truth[::2]
    rng, occluded = np.random.default_rng(0), X.copy()
    for image in occluded:
        image.flat[rng.choice(image.size, 70, replace=False)] = rng.uniform(size=70)
    plain = SparseRepresentationClassifier(alpha=0.003).fit(A, names)
    robust = SparseRepresentationClassifier(alpha=0.003, occlusion=True).fit(A, names)
    assert robust.score(occluded, truth) > plain.score(occluded, truth) + 0.1
    assert robust.score(X, truth) > 0.9


# --------------------------------------------------------------------------------------------------- codes as features


def test_codes_of_training_rows_leave_the_row_out(faces):
    A, names, X, truth = faces
    model = CodeClassifier(SignedHashProjection(60, random_state=0), alpha=0.02).fit(A, names)
    codes = model._unit_codes(model.atoms_, np.arange(len(A)))
    assert not codes.diagonal().any()
    assert model.score(X, truth) > 0.8


@pytest.mark.parametrize("scale", [None, "minmax"])
def test_the_classifier_gets_the_codes(faces, scale):
    A, names, X, truth = faces
    model = CodeClassifier(SignedHashProjection(60, random_state=0), "omp", LogisticRegression(C=10), scale=scale)
    assert model.set_params(n_nonzero=10).fit(A, names).score(X, truth) > 0.6
    features = model._features(X)
    assert sp.issparse(features) == (scale is None)
    assert (model.classifier_.predict(features) == model.predict(X)).all()


# ---------------------------------------------------------------------------------------------------------------- coder


def test_a_dictionary_needs_no_fit():
    atoms = np.random.default_rng(0).normal(size=(30, 12))
    X = np.random.default_rng(1).normal(size=(6, 12))
    given, fitted = SparseCoder(atoms, n_nonzero=4), SparseCoder(n_nonzero=4).fit(atoms)
    assert np.allclose(given.transform(X).toarray(), fitted.transform(X).toarray(), atol=1e-12)
    assert np.allclose(given.fit().transform(X).toarray(), fitted.transform(X).toarray())
    assert list(fitted.get_feature_names_out()[:2]) == ["sparsecoder0", "sparsecoder1"]


def test_defaults_stop_at_a_twentieth_or_at_a_penalty():
    atoms = np.random.default_rng(0).normal(size=(30, 12))
    for solver in ("omp", "order-recursive", "l1"):
        assert SparseCoder(atoms, solver).code(atoms[:3] + atoms[3:6]).residuals.max() <= 0.05 * (1 + 1e-9)
    assert np.allclose(SparseCoder(atoms, "lasso").code(atoms[:3] + atoms[3:6]).penalties, 0.01)


@parametrize_with_checks(
    [
        SparseCoder(n_nonzero=1),
        SparseRepresentationClassifier(),
        CodeClassifier(None, "lasso", LogisticRegression(), alpha=0.1),
    ],
    expected_failed_checks=lambda model: {
        "check_sample_weight_equivalence_on_dense_data": "rows are atoms, too, and a repeated atom changes codes"
    },
)
def test_scikit_learn_accepts_them(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


# ------------------------------------------------------------------------------------------------------------ bad input


def rows(n: int = 12, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(0).normal(size=(n, d)), np.arange(n) % 3


def test_a_tolerance_out_of_reach_is_told():
    atoms, _ = rows(3, 6)
    with pytest.warns(ConvergenceWarning, match="out of reach for 2 of 2 rows"):
        SparseCoder(atoms, "l1", tol=0.01).transform(np.random.default_rng(1).normal(size=(2, 6)))


def test_a_tolerance_beyond_the_signal_is_told():
    X, y = rows()
    with pytest.warns(UserWarning, match="all codes are 0"):
        codes = SparseCoder(X, "l1", tol=1.5).transform(X)
    assert codes.nnz == 0
    model = SparseRepresentationClassifier(solver="l1", tol=1.0).fit(X, y)
    with pytest.warns(UserWarning, match="all codes are 0"):
        labels = model.predict(X)
    assert set(labels) <= set(y)


def test_zero_rows_are_told_and_serve_no_code():
    X, y = rows()
    X[4] = 0
    with pytest.warns(UserWarning, match="row 4 of X is 0"):
        model = SparseRepresentationClassifier().fit(X, y)
    assert not model.code(rows(20)[0]).codes[:, 4].nnz
    assert model.predict(np.zeros((1, 6))).shape == (1,)
    assert model.concentration(np.zeros((1, 6)))[0] == 0
    with pytest.raises(ValueError, match="all rows of X are 0"):
        SparseRepresentationClassifier().fit(np.zeros((4, 3)), [0, 1, 0, 1])


def test_repeated_images_and_one_image_a_class_are_fine():
    X, _ = rows(5)
    model = SparseRepresentationClassifier().fit(np.vstack([X, X]), [*"abcde", *"abcde"])
    assert list(model.predict(X)) == [*"abcde"]
    assert list(SparseRepresentationClassifier().fit(X, [*"abcde"]).predict(2 * X)) == [*"abcde"]


def test_more_features_than_rows_are_fine():
    X, y = rows(6, 40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert list(SparseRepresentationClassifier(solver="l1").fit(X, y).predict(X)) == list(y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y: SparseRepresentationClassifier().fit(X, np.zeros(len(X))), "two classes"),
        (lambda X, y: SparseRepresentationClassifier().fit(np.where(X > 1, np.nan, X), y), "NaN"),
        (lambda X, y: SparseRepresentationClassifier(occlusion=True, projection=PCA(2)).fit(X, y), "projection=None"),
        (lambda X, y: SparseRepresentationClassifier(min_concentration=2.0).fit(X, y), "min_concentration"),
        (lambda X, y: SparseRepresentationClassifier(min_concentration=0.1).fit(X, y), "unknown"),
        (lambda X, y: SparseRepresentationClassifier(min_concentration=0.1, unknown="x").fit(X, y), "unknown"),
        (lambda X, y: SparseRepresentationClassifier(solver="lars").fit(X, y), "solver"),
        (lambda X, y: SparseRepresentationClassifier(tol=0.1).fit(X, y), "tol"),
        (lambda X, y: SparseRepresentationClassifier().fit(X, y).predict(X[:, :3]), "3 features"),
        (lambda X, y: SparseRepresentationClassifier().fit([X[:2], X[:3]], [0, 1]), "one shape"),
        (lambda X, y: CodeClassifier(scale="standard").fit(X, y), "scale"),
        (lambda X, y: SparseCoder().fit(), "dictionary"),
        (lambda X, y: SparseCoder(X).transform(X[:, :2]), "2 features"),
        (lambda X, y: SparseCoder(X).fit(X[:, :2]), "2 features"),
        (lambda X, y: SparseCoder(np.where(X > 1, np.inf, X)).transform(X), "dictionary"),
        (lambda X, y: SparseCoder(X, n_nonzero=0).transform(X), "n_nonzero"),
    ],
)
def test_wrong_arguments_are_named(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make(*rows())


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_files_give_the_same_answers(faces, tmp_path, n_jobs):
    A, names, X, _ = faces
    models = [
        SparseRepresentationClassifier(SignedHashProjection(30, random_state=0), n_jobs=n_jobs).fit(A, names),
        SparseRepresentationClassifier(occlusion=True).fit(A[:40, :8, :8], names[:40]),
    ]
    for model, queries in zip(models, (X[:9], X[:9, :8, :8]), strict=True):
        mercer.save(model, tmp_path / "model")
        assert np.array_equal(mercer.load(tmp_path / "model").residuals(queries), model.residuals(queries))
