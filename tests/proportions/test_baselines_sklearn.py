"""scikit-learn's contract, model files and wrong inputs, for the learners that see bags as points."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mercer
from mercer.kernels import Gaussian, Linear
from mercer.maps import FourierFeatures
from mercer.proportions import Bags, IllPosedWarning, InverseCalibration, MeanMap, bag_proportions, make_bags
from reference.contract import contract

ESTIMATORS = [
    InverseCalibration(),
    InverseCalibration(kernel=Linear() + 1.0),
    InverseCalibration(kernel="precomputed"),
    MeanMap(),
    MeanMap(kernel=Linear() + 1.0),
    MeanMap(kernel="precomputed"),
]
LEARNERS = [InverseCalibration, MeanMap]


@contract(ESTIMATORS)
def test_scikit_learn_contract(checks):
    checks()


def task(n: int = 80, n_classes: int = 2, seed: int = 0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 3)) + 3 * np.eye(3)[y], y


# ---------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("make", LEARNERS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("how", ["linear", "kernel", "map"])
def test_models_come_back_from_files(make, n_classes, how, tmp_path):
    X, y = task(n_classes=n_classes)
    parts = {"kernel": {"kernel": Gaussian(0.2)}, "map": {"map": FourierFeatures(20, random_state=0)}}.get(how, {})
    model = make(**parts).fit(X, bags=make_bags(y, 4, random_state=0))
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    name = "duality_gap_" if make is InverseCalibration else "gradient_norm_"
    assert getattr(again, name) == getattr(model, name)


@pytest.mark.parametrize("make", LEARNERS)
def test_a_clone_forgets_and_a_fit_repeats(make):
    X, y = task()
    bags = make_bags(y, 4, random_state=0)
    model = make().fit(X, bags=bags)
    np.testing.assert_array_equal(clone(model).fit(X, bags=bags).coef_, model.coef_)
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


# ---------------------------------------------------------------------------------------------------- wrong inputs

BAG = np.arange(12) // 3


@pytest.mark.parametrize("make", LEARNERS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"proportions": [0.5, 1.2, 0, 1]}, r"must lie in \[0, 1\], but bag 1 has"),
        ({"proportions": [0.5, -0.1, 0, 1]}, r"must lie in \[0, 1\]"),
        ({"proportions": np.full((4, 3), 0.3)}, "must sum to 1"),
        ({"proportions": [0.5, np.nan, 0, 1]}, "bag 1 are NaN"),
        ({"proportions": [0.5, 0.5, 0.1, 0.2, 0.3]}, "bag 4 has no rows"),
        ({"proportions": [0.5, 0.5]}, "one entry for each of the 4 bags"),
        ({"proportions": {0: 0.5, 1: 0.5, 2: 0.5, 3: 0.5, 9: 0.1}}, "names bag 9, which has no rows"),
        ({"proportions": {0: 0.5, 1: 0.5, 2: 0.5}}, "no entry for bag 3"),
        ({"proportions": None}, "requires proportions"),
        ({"bags": BAG[:5], "proportions": [0.5, 0.5]}, "one value for each of the 12 rows"),
        ({"bags": np.where(BAG == 3, np.nan, BAG), "proportions": [0.1, 0.2, 0.3]}, "row 9 has no bag and no label"),
        ({"bags": [[0, 0], [1, 2]], "proportions": [0.1, 0.2, 0.3]}, "bag 1 has no rows"),
        ({"bags": None, "proportions": [0.5] * 4}, "without bags"),
        ({"proportions": [0.5] * 4, "bag_weight": [1, 1, 1, -1]}, "bag_weight must be"),
        ({"proportions": [0.5] * 4, "y": [5] * 12}, "y holds 5, which is not among the classes"),
    ],
)
def test_wrong_bags_are_named(make, arguments, message):
    arguments = {"bags": BAG, **arguments}
    with pytest.raises(ValueError, match=message):
        make().fit(np.eye(12), **arguments)


@pytest.mark.parametrize("make", LEARNERS)
def test_nan_in_rows_is_refused(make):
    X, y = task()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        make().fit(X, bags=make_bags(y, 4, random_state=0))


@pytest.mark.parametrize("make", LEARNERS)
def test_one_class_is_refused_and_one_bag_flagged(make):
    X, _ = task()
    with pytest.raises(ValueError, match="at least 2 classes"):
        make().fit(X, np.zeros(80))
    with pytest.warns(IllPosedWarning):
        make().fit(X, bags=np.zeros(80, int), proportions=[0.4])


@pytest.mark.parametrize("make", LEARNERS)
def test_bags_may_be_strings_pairs_and_frames(make):
    pd = pytest.importorskip("pandas")
    X, y = task()
    number = make_bags(y, 8, random_state=0)
    code = np.empty(80, int)
    code[number.members] = number.number
    names = np.array([f"region {c}" for c in code])
    expected = make().fit(X, bags=number).coef_
    table = dict(zip([f"region {k}" for k in range(10)], number.proportions, strict=True))
    np.testing.assert_allclose(make().fit(X, bags=names, proportions=table).coef_, expected, atol=1e-8)
    pairs = np.column_stack([np.arange(80), code])
    np.testing.assert_allclose(make().fit(X, bags=pairs, proportions=number.proportions).coef_, expected, atol=1e-8)
    bags = Bags.from_frame(pd.DataFrame({"region": names}), "region", pd.Series(table))
    np.testing.assert_allclose(make().fit(X, bags=bags).coef_, expected, atol=1e-8)


@pytest.mark.parametrize("make", LEARNERS)
def test_shares_that_no_count_of_rows_gives_are_used_as_they_are(make):
    """Population shares: 0.37 of a bag of 4 rows is no count."""
    X, y = task(400)
    bags = make_bags(y, 4, random_state=0)
    noisy = np.clip(bags.proportions + np.random.default_rng(0).uniform(-0.1, 0.1, len(bags)), 0, 1)
    assert make().fit(X, bags=bags, proportions=noisy).score(X, y) > 0.9


@pytest.mark.parametrize("make", LEARNERS)
def test_overlapping_bags_are_learnt_from_and_predicted(make):
    X, y = task(300)
    bags = make_bags(y, 10, scheme="iid", n_bags=60, random_state=0)
    rows = np.unique(bags.members)
    pairs = np.column_stack([np.searchsorted(rows, bags.members), bags.number])
    model = make().fit(X[rows], bags=pairs, proportions=bags.proportions)
    found = model.predict_proportions(X[rows], pairs)
    assert found.shape == (60,)
    assert np.abs(found - bag_proportions(y[rows], pairs)).mean() < 0.1


@pytest.mark.parametrize("make", LEARNERS)
def test_sparse_rows_predict_like_dense_ones(make):
    X, y = task()
    bags = make_bags(y, 4, random_state=0)
    model = make().fit(sp.csr_matrix(X), bags=bags)
    np.testing.assert_allclose(model.decision_function(sp.csr_array(X)), model.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("make", LEARNERS)
def test_labels_name_the_classes(make):
    X, y = task()
    bags = make_bags(np.array(["no", "yes"])[y], 4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make().fit(X, bags=bags)
    assert set(model.predict(X)) == {"no", "yes"}
