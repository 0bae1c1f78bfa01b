"""What models of label sets say about labels that go together."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import Gaussian
from mercer.multilabel import (
    CompressedLabels,
    JointSVM,
    KernelHomogeneityAnalysis,
    MultiLabelCRF,
    NeighborLabels,
    OnlineJointSVM,
    PolynomialOutput,
    SeparateSVM,
)
from mercer.multilabel.joint import dependence_order
from mercer.online import HashedClassifier

MODELS = [
    JointSVM(),
    KernelHomogeneityAnalysis(3),
    MultiLabelCRF(),
    NeighborLabels(),
    OnlineJointSVM(random_state=0),
    SeparateSVM(),
    OnlineJointSVM(kernel=Gaussian(0.5), random_state=0),
]


def task() -> tuple[np.ndarray, np.ndarray]:
    """Label 1 is label 0, up to noise; label 2 excludes it; label 3 is of another feature."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    first = X[:, 0] > 0
    noise = rng.random((2, 200)) < 0.05
    return X, np.stack([first, first ^ noise[0], ~first ^ noise[1], X[:, 1] > 0], axis=1).astype(int)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_labels_that_go_together_are_alike_and_those_that_exclude_each_other_are_not(model):
    X, Y = task()
    D = model.fit(X, Y).label_dependence()
    assert D.shape == (4, 4)
    assert np.allclose(D, D.T)
    assert np.allclose(np.diag(D), 1)
    assert np.abs(D).max() <= 1
    assert D[0, 1] > 0.3
    assert D[0, 2] < -0.3
    assert abs(D[0, 3]) < 0.3


def test_the_dependence_of_a_joint_machine_is_the_cosine_of_its_functions():
    X, Y = task()
    model = JointSVM(kernel=Gaussian(0.5)).fit(X[:60], Y[:60])
    A = model.dual_coef_[:, None] * model.output_.features(model.labels_)
    products = A.T @ Gaussian(0.5)(model.support_objects_) @ A
    scale = np.sqrt(np.diag(products))
    assert np.allclose(model.label_dependence(), products / np.outer(scale, scale))


def test_the_heat_map_names_labels_and_puts_those_alike_beside_each_other():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, Y = task()
    model = JointSVM().fit(X, [[name for name, on in zip("abcd", row, strict=True) if on] for row in Y])
    ax = model.plot_dependence()
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    plt.close("all")
    assert sorted(names) == list("abcd")
    assert abs(names.index("a") - names.index("b")) == 1
    assert len(dependence_order(model.label_dependence(), 2)) == 2


def test_models_without_anything_to_compare_say_so():
    X, Y = task()
    with pytest.raises(ValueError, match="compared by"):
        CompressedLabels(random_state=0).fit(X, Y).label_dependence()
    with pytest.raises(ValueError, match="coefficients of their own"):
        JointSVM(output_kernel=PolynomialOutput()).fit(X, Y).label_dependence()
    with pytest.raises(ValueError, match="precomputed"):
        JointSVM(kernel="precomputed").fit(Gaussian(1.0)(X), Y).label_dependence()


@pytest.mark.parametrize("y", [[["a"], ["a", "b"]], np.eye(2, dtype=int)])
def test_the_hashed_classifier_names_the_class_that_learns_label_sets(y):
    with pytest.raises(ValueError, match="HashedLabelSets"):
        HashedClassifier(n_bits=10).fit(["some words", "other words"], y)
