"""Kernel methods to files and back."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer._state.container import read_file, write_file
from mercer.kernel_methods import (
    CCA,
    HuberLoss,
    IncompleteCholesky,
    KernelCCA,
    KernelDependencyEstimation,
    KernelFisher,
    KernelMeanClassifier,
    KernelNuSVC,
    KernelOneClass,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    LinearProgramSVC,
    MultiSetCCA,
    OnlineKernelClassifier,
    ParzenWindow,
    PreImage,
    RepresenterEstimator,
    TaxonomyLoss,
)
from mercer.kernels import (
    AdditiveMap,
    AllSubstrings,
    ChiSquared,
    Fisher,
    FourierMap,
    FunctionKernel,
    Gaussian,
    GaussianMixtureModel,
    GaussianModel,
    Gram,
    Linear,
    LinearStringModel,
    MultinomialModel,
    NGram,
    NystroemMap,
    ProbabilityProduct,
    Spectrum,
)
from reference.kernel_methods import Bump, blobs

SQUARE = (Linear() + 1.0) ** 2
TAXONOMY = TaxonomyLoss([("r", 0), ("r", "i", 2.0), ("i", 1), ("i", 2)])
MODELS = [
    KernelSVC(SQUARE, C=np.inf),
    KernelSVC(SQUARE.normalized(), class_weight={0: 2.0, 1: 1.0, 2: 1.5}),
    KernelSVC(),
    KernelNuSVC(SQUARE, nu=0.3),
    KernelSVR(0.5 * Linear()),
    KernelOneClass(SQUARE, nu=0.3),
    KernelRidge(SQUARE),
    KernelPCA(SQUARE, n_components=2),
    KernelMeanClassifier(SQUARE),
    ParzenWindow(SQUARE),
    IncompleteCholesky(SQUARE, rank=3),
    OnlineKernelClassifier(SQUARE, "norma", loss=TAXONOMY, budget=20, average=True, random_state=0),
    RepresenterEstimator(SQUARE, "logistic"),
    RepresenterEstimator(SQUARE, HuberLoss(0.5)),
    LinearProgramSVC(SQUARE),
    LinearProgramSVC(penalty="w"),
]


def answers(model, X):
    for name in ("decision_function", "score_samples", "transform", "predict"):
        if hasattr(model, name):
            return getattr(model, name)(X)
    raise AssertionError


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_model_comes_back_with_the_same_answers(model, tmp_path):
    X, y = blobs(0, n=45, apart=7.0, classes=3)
    model = model.fit(X, y)
    mercer.save(model, tmp_path / "m")
    again = mercer.load(tmp_path / "m")
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    np.testing.assert_array_equal(answers(again, X), answers(model, X))
    assert again.n_features_in_ == 2
    np.testing.assert_array_equal(again.support_, model.support_)


def test_models_of_a_matrix_come_back(tmp_path):
    X, y = blobs(0, n=30, apart=1.0)
    K = Bump()(X)
    model = KernelSVC("precomputed").fit(K, y)
    mercer.save(model, tmp_path / "m")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m").predict(K), model.predict(K))


def test_stream_goes_on_after_a_file(tmp_path):
    X, y = blobs(1, n=60, apart=1.0)
    whole = OnlineKernelClassifier(SQUARE, "norma", average=True, budget=15).partial_fit(X, y)
    half = OnlineKernelClassifier(SQUARE, "norma", average=True, budget=15).partial_fit(X[:30], y[:30])
    mercer.save(half, tmp_path / "m")
    again = mercer.load(tmp_path / "m").partial_fit(X[30:], y[30:])
    np.testing.assert_allclose(again.decision_function(X), whole.decision_function(X), atol=1e-12)
    assert again.n_mistakes_ == whole.n_mistakes_


def test_labels_of_any_kind_come_back(tmp_path):
    X, y = blobs(2, n=20)
    for labels in (
        np.array(["no", "yes"]),
        np.array([False, True]),
        np.array([-1.0, 2.0]),
        np.array(["a", "b"], object),
    ):
        model = KernelMeanClassifier().fit(X, labels[y])
        mercer.save(model, tmp_path / "m")
        again = mercer.load(tmp_path / "m").predict(X)
        assert again.dtype.kind == model.predict(X).dtype.kind
        np.testing.assert_array_equal(again, model.predict(X))


@pytest.mark.parametrize("kernel", [Bump(), FunctionKernel(np.sum), Linear() + FunctionKernel(np.sum)], ids=repr)
def test_kernels_of_one_s_own_and_functions_are_refused(kernel, tmp_path):
    X, y = blobs(3, n=20)
    model = KernelMeanClassifier(kernel).fit(X, y)
    with pytest.raises(TypeError, match="cannot be written to a model file"):
        mercer.save(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_functions_as_losses_are_refused(tmp_path):
    X, y = blobs(3, n=20)
    model = RepresenterEstimator(loss=lambda f, y: ((f - y) ** 2, 2 * (f - y))).fit(X, y)
    with pytest.raises(TypeError, match="cannot be written to a model file"):
        mercer.save(model, tmp_path / "m")


def test_models_that_are_not_fitted_are_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted yet"):
        mercer.save(KernelSVC(), tmp_path / "m")


WORDS = ["abab", "abba", "bbab", "aabb", "baba", "bbbb", "aaba", "babb"] * 2
POINTS = np.abs(np.random.default_rng(0).normal(size=(16, 3)))
OTHERS = np.random.default_rng(1).normal(size=(16, 2))
LABELS = np.repeat(["no", "yes"], 8)


def names(value):
    return repr(value) if hasattr(value, "get_params") or isinstance(value, str) else ""


def same(value, expected):
    """Up to rounding: arrays come back in another order in memory."""
    np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-12)


def again_from_file(model, path):
    mercer.save(model, path)
    again = mercer.load(path)
    assert type(again) is type(model)
    here = {"n_jobs": None} if hasattr(model, "n_jobs") else {}  # how this machine computes is not in the file
    assert repr(again) == repr(clone(model).set_params(**here) if here else model)
    return again


@pytest.mark.parametrize(
    ("model", "objects"),
    [
        (NystroemMap(Spectrum(2), 5, random_state=0), WORDS),
        (NystroemMap(Gaussian(0.5), 5, random_state=0, n_jobs=1), POINTS),
        (FourierMap(Gaussian(0.5), 7, random_state=0), POINTS),
        (AdditiveMap(ChiSquared(None), 2), POINTS),
        (AdditiveMap(ChiSquared(None), 2, period=0.5), POINTS),
        (Gram(NGram(2)), WORDS),
        (Gram(Gaussian(0.5), center=True, dtype=np.float32), POINTS),
    ],
    ids=names,
)
def test_map_comes_back_with_the_same_vectors(model, objects, tmp_path):
    model.fit(objects)
    again = again_from_file(model, tmp_path / "m")
    same(again.transform(objects[3:9]), model.transform(objects[3:9]))
    if not isinstance(model, Gram):
        assert list(again.get_feature_names_out()) == list(model.get_feature_names_out())


@pytest.mark.parametrize("kernel", [NGram(2), 2.0 * AllSubstrings().normalized()], ids=repr)
def test_linear_models_of_strings_come_back(kernel, tmp_path):
    model = LinearStringModel(kernel, WORDS, np.linspace(-1, 1, len(WORDS)), 0.25)
    again = again_from_file(model, tmp_path / "m")
    same(again.predict(["ab", "bbaab"]), model.predict(["ab", "bbaab"]))


@pytest.mark.parametrize(
    ("model", "views"),
    [
        (CCA(2, 0.1), (POINTS, OTHERS)),
        (MultiSetCCA(1), ([POINTS, OTHERS, POINTS[:, :2]],)),
        (KernelCCA([NGram(2), Gaussian(0.5)], 2, 0.1), ([WORDS, POINTS],)),
        (KernelCCA(Gaussian(0.5), method="features", n_features=6, random_state=0), ([POINTS, OTHERS],)),
    ],
    ids=names,
)
def test_canonical_correlations_come_back(model, views, tmp_path):
    model.fit(*views)
    again = again_from_file(model, tmp_path / "m")
    for view, expected in zip(again.transform(*views), model.transform(*views), strict=True):
        same(view, expected)
    same(again.correlations_, model.correlations_)
    same(again.score(*views), model.score(*views))


@pytest.mark.parametrize(
    ("model", "objects"),
    [
        (KernelFisher(Gaussian(0.5), n_components=1), POINTS),
        (KernelFisher(NGram(2)), WORDS),
        (KernelFisher(Gaussian(0.5), method="features", n_features=8, random_state=0), POINTS),
    ],
    ids=names,
)
def test_discriminants_come_back(model, objects, tmp_path):
    model.fit(objects, LABELS)
    again = again_from_file(model, tmp_path / "m")
    same(again.predict_proba(objects), model.predict_proba(objects))
    np.testing.assert_array_equal(again.predict(objects), model.predict(objects))
    same(again.transform(objects), model.transform(objects))


@pytest.mark.parametrize(
    "decoder", ["candidates", "beam", PreImage(NGram(2), "beam", alphabet="ab", beam_width=3, max_length=5)], ids=names
)
def test_dependency_estimation_comes_back(decoder, tmp_path):
    model = KernelDependencyEstimation(Gaussian(0.5), NGram(2), 3, pre_image=decoder).fit(POINTS, WORDS)
    again = again_from_file(model, tmp_path / "m")
    same(again.predict_coordinates(POINTS), model.predict_coordinates(POINTS))
    assert list(again.predict(POINTS[:4])) == list(model.predict(POINTS[:4]))


@pytest.mark.parametrize("method", ["candidates", "fixed_point"])
def test_pre_images_come_back(method, tmp_path):
    model = PreImage(Gaussian(0.5), method).fit(POINTS)
    again = again_from_file(model, tmp_path / "m")
    coef = np.random.default_rng(2).dirichlet(np.ones(len(POINTS)), 3)
    same(again.decode(coef), model.decode(coef))


@pytest.mark.parametrize(
    ("model", "objects"),
    [
        (GaussianModel(), POINTS),
        (GaussianMixtureModel(2, random_state=0), POINTS),
        (MultinomialModel(), WORDS),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("information", ["full", "diagonal", None])
def test_fisher_kernels_come_back_with_the_sample_of_their_model(model, objects, information, tmp_path):
    model.fit(objects)
    fitted = KernelMeanClassifier(Fisher(model, information)).fit(objects[2:14], LABELS[2:14])
    again = again_from_file(fitted, tmp_path / "m")
    same(again.decision_function(objects), fitted.decision_function(objects))


def test_probability_products_come_back(tmp_path):
    bags = [np.random.default_rng(i).normal(size=(6, 2)) for i in range(8)]
    fitted = KernelMeanClassifier(ProbabilityProduct()).fit(bags, LABELS[4:12])
    again = again_from_file(fitted, tmp_path / "m")
    same(again.decision_function(bags), fitted.decision_function(bags))


def changed(model, path, spoil):
    mercer.save(model, path)
    file = read_file(path)
    meta, arrays = json.loads(json.dumps(file.meta)), {name: array.copy() for name, array in file.arrays.items()}
    spoil(meta, arrays)
    write_file(path, file.kind, meta, arrays)


@pytest.mark.parametrize(
    ("model", "data", "spoil"),
    [
        (KernelFisher(Gaussian(0.5)), (POINTS, LABELS), lambda meta: meta["fitted"].pop("means_")),
        (
            KernelFisher(Gaussian(0.5)), (POINTS, LABELS),
            lambda meta: meta["fitted"]["coordinates_"]["fitted"].pop("axes"),
        ),
        (
            KernelFisher(Gaussian(0.5)), (POINTS, LABELS),
            lambda meta: meta["fitted"].update(weights_=meta["fitted"]["means_"]),
        ),
        (CCA(), (POINTS, OTHERS), lambda meta: meta["params"].update(n_components=2)),
        (KernelCCA(Gaussian(0.5)), ([POINTS, OTHERS],), lambda meta: meta["fitted"]["coordinates_"].pop()),
        (
            KernelDependencyEstimation(Gaussian(0.5), NGram(2), 3), (POINTS, WORDS),
            lambda meta: meta["fitted"]["inputs_"].update(array="nowhere"),
        ),
        (FourierMap(Gaussian(0.5), 8), (POINTS,), lambda meta: meta["params"].update(n_components=20)),
        (NystroemMap(Gaussian(0.5), 8), (POINTS,), lambda meta: meta["fitted"].update(
            normalization_=meta["fitted"]["landmarks_"]["array"])),
        (AdditiveMap(ChiSquared(None)), (POINTS,), lambda meta: meta["fitted"].update(n_features_in_=-1)),
        (Gram(NGram(2)), (WORDS,), lambda meta: meta["params"]["dtype"].update(name="object")),
    ],
)  # fmt: skip
def test_spoilt_files_of_maps_and_projections_are_refused(model, data, spoil, tmp_path):
    model.fit(*data)
    changed(model, tmp_path / "m", lambda meta, arrays: spoil(meta))
    with pytest.raises(mercer.ModelFileError):
        mercer.load(tmp_path / "m")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda meta, arrays: meta["fitted"].pop("support_"),
        lambda meta, arrays: meta["fitted"].update(predict=1),
        lambda meta, arrays: meta["params"]["kernel"].update(name="Kernel"),
        lambda meta, arrays: meta["params"]["kernel"].update(name="os.system"),
        lambda meta, arrays: meta["params"].update(shell=1),
        lambda meta, arrays: meta["fitted"].update(dual_coef_=meta["fitted"]["intercept_"]),
        lambda meta, arrays: arrays[meta["fitted"]["dual_coef_"]].fill(np.nan),
        lambda meta, arrays: arrays[meta["fitted"]["support_"]].fill(-1),
        lambda meta, arrays: meta["fitted"]["support_objects_"].update(kind="pickle"),
        lambda meta, arrays: meta["fitted"]["support_objects_"].update(array="nowhere"),
    ],
)
def test_spoilt_files_are_refused(spoil, tmp_path):
    X, y = blobs(4, n=20)
    changed(KernelSVC(SQUARE).fit(X, y), tmp_path / "m", spoil)
    with pytest.raises(mercer.ModelFileError):
        mercer.load(tmp_path / "m")
