"""Kernel methods to files and back."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mercer
from mercer._persistence import read_file, write_file
from mercer.kernel_methods import (
    HuberLoss,
    IncompleteCholesky,
    KernelMeanClassifier,
    KernelNuSVC,
    KernelOneClass,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    LinearProgramSVC,
    OnlineKernelClassifier,
    ParzenWindow,
    RepresenterEstimator,
    TaxonomyLoss,
)
from mercer.kernels import FunctionKernel, Linear
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


@pytest.mark.parametrize(
    "spoil",
    [
        lambda meta, arrays: meta["fitted"].pop("support_"),
        lambda meta, arrays: meta["fitted"].update(predict={"value": 1}),
        lambda meta, arrays: meta["params"]["kernel"].update(kernel="Kernel"),
        lambda meta, arrays: meta["params"]["kernel"].update(kernel="os.system"),
        lambda meta, arrays: meta["params"].update(shell={"value": 1}),
        lambda meta, arrays: meta["fitted"]["dual_coef_"].update(array=meta["fitted"]["intercept_"]["array"]),
        lambda meta, arrays: arrays[meta["fitted"]["dual_coef_"]["array"]].fill(np.nan),
        lambda meta, arrays: arrays[meta["fitted"]["support_"]["array"]].fill(-1),
        lambda meta, arrays: meta["fitted"]["support_objects_"].update(kind="pickle"),
        lambda meta, arrays: meta["fitted"]["support_objects_"].update(array="nowhere"),
    ],
)
def test_spoilt_files_are_refused(spoil, tmp_path):
    X, y = blobs(4, n=20)
    mercer.save(KernelSVC(SQUARE).fit(X, y), tmp_path / "m")
    file = read_file(tmp_path / "m")
    meta, arrays = json.loads(json.dumps(file.meta)), {name: array.copy() for name, array in file.arrays.items()}
    spoil(meta, arrays)
    write_file(tmp_path / "m", file.kind, meta, arrays)
    with pytest.raises(mercer.ModelFileError):
        mercer.load(tmp_path / "m")
