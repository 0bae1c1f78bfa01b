"""Names decide, not places; what counts for nothing changes nothing; what is missing is missing."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from mercer.proportions import (
    AlternatingProportionSVM,
    AttributeModeler,
    BagCV,
    Bags,
    ConvexProportionSVM,
    InverseCalibration,
    MeanMap,
    MultipleInstanceSVM,
    ProportionClassifier,
    bag_proportions,
    bag_score,
    make_bags,
)

NAN = float("nan")


@pytest.mark.parametrize("mode", ["mi", "MI"])
def test_bags_of_weight_zero_are_as_good_as_absent(mode: str) -> None:
    X = np.random.default_rng(0).normal(size=(120, 2))
    bags, labels, weight = np.repeat(np.arange(20), 6), np.array([1] * 10 + [0] * 10), np.ones(20)
    X[:60:6] += 6
    weight[[3, 15]] = 0
    left = np.isin(bags, [3, 15])
    whole = MultipleInstanceSVM(mode).fit(X, bags=bags, labels=labels, bag_weight=weight)
    part = MultipleInstanceSVM(mode).fit(X[~left], bags=bags[~left], labels=labels[weight > 0])
    np.testing.assert_allclose(whole.decision_function(X), part.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("model", [AlternatingProportionSVM(C=10, n_init=3, random_state=0), ConvexProportionSVM()])
def test_a_class_that_no_bag_holds_is_never_predicted(model) -> None:
    rng = np.random.default_rng(1)
    y, bags = rng.integers(0, 3, 150), np.arange(150) // 5
    X = np.column_stack([4.0 * y + 0.5 * rng.normal(size=150), rng.normal(size=150)])
    shares = np.array([[(y[bags == k] == c).mean() for c in range(4)] for k in range(30)])
    assert 3 not in model.fit(X, bags=bags, proportions=shares).predict(X)


def test_columns_of_frames_go_by_their_names() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"yes": [1.0, 0.8], "no": [0.0, 0.2]}, index=["a", "b"])
    assert Bags(["a", "b"], frame, classes=["no", "yes"]).proportions.tolist() == [1.0, 0.8]
    high = frame[["no", "yes"]] + 0.1
    bags = Bags(["a", "b"], ((frame - 0.1).clip(lower=0), high.clip(upper=1)))
    assert bags.upper[1].tolist() == pytest.approx([0.9, 0.3])
    low, high = (part.rename_axis("region").reset_index() for part in (frame * 0.5, frame * 0.5 + 0.5))
    people = pd.DataFrame({"region": ["a", "b", "b"]})
    assert Bags.from_frame(people, "region", (low, high)).lower[0].tolist() == [0.5, 0.0]


def test_nan_among_text_is_missing() -> None:
    bags = Bags(["a", NAN, "b"])
    assert bags.names.tolist() == ["a", "b"]
    assert bags.alone.tolist() == [1]
    X, y = np.arange(6.0)[:, None], ["no", "no", NAN, "yes", NAN, "yes"]
    model = MeanMap().fit(X, y, bags=[0, 0, 0, 1, 1, 1], proportions=[0.0, 1.0])
    assert model.classes_.tolist() == ["no", "yes"]


def test_unknown_shares_of_attributes_are_left_out_by_means() -> None:
    rng = np.random.default_rng(0)
    X, category = rng.normal(size=(90, 3)), np.arange(90) % 3
    share = np.array([[0.1], [0.9], [NAN]])
    seen = category < 2
    whole = AttributeModeler(MeanMap()).fit(X, category, share).decision_function(X)
    part = AttributeModeler(MeanMap()).fit(X[seen], category[seen], share[:2]).decision_function(X)
    np.testing.assert_allclose(whole, part, atol=1e-6)


def test_bags_are_chosen_by_numbers_only() -> None:
    bags = Bags(np.arange(10) // 2, np.linspace(0, 1, 5))
    for wrong in (np.arange(5) < 3, [0.7], [None]):
        with pytest.raises(ValueError, match="chosen"):
            bags.select(wrong)


def test_labels_of_bags_must_be_there() -> None:
    for call in (lambda y: bag_proportions(y, [0, 0, 1]), lambda y: make_bags(y, 1)):
        with pytest.raises(ValueError, match="label"):
            call([0, None, 1])


def test_selection_names_rows_of_the_whole_table_and_takes_folds_of_weight_zero() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = rng.normal(size=(60, 2)) + 3 * y[:, None]
    bags = make_bags(y, 6, random_state=0)
    weight = np.ones(10)
    weight[4] = 0
    search = BagCV(MeanMap(), {"alpha": [0.1, 1.0]}, cv=10).fit(X, bags=bags, bag_weight=weight)
    assert np.isfinite(search.best_score_)
    ids = [None if i == 36 else i // 6 for i in range(60)]
    with pytest.raises(ValueError, match="row 36 has no bag and no label"):
        BagCV(MeanMap(), {"alpha": [0.1]}, cv=2).fit(X, bags=ids, proportions=np.full(10, 0.5))


def test_early_stopping_says_what_it_cannot_hold_out() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    bags = Bags(np.arange(40) // 4, np.linspace(0, 1, 10), bag_weight=[1.0] + [0.0] * 9)
    with pytest.raises(ValueError, match="early_stopping"):
        ProportionClassifier(early_stopping=True, random_state=0).fit(X, bags=bags)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ({"a": 1.0, "c": 1.0}, "bag_weight names bag 'c'"),
        ({"a": 1.0}, "bag_weight has no entry for bag 'b'"),
        ({"a": 1.0, "b": "heavy"}, "bag_weight must be numbers"),
    ],
)
def test_weights_by_name_are_told_from_proportions(weight, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bags(["a", "a", "b"], {"a": 0.5, "b": 1.0}, bag_weight=weight)


@pytest.mark.parametrize("model", [MeanMap(), InverseCalibration(), LogisticRegression()], ids=repr)
def test_models_that_are_not_fitted_have_no_score(model) -> None:
    with pytest.raises(NotFittedError, match=type(model).__name__):
        bag_score(model, np.eye(4), [0, 0, 1, 1], [0.5, 1.0])


def test_similarities_of_labelled_rows_follow_those_of_bags() -> None:
    """Two bags, one labelled row without a bag, one within: four points, in this order."""
    rng = np.random.default_rng(0)
    X, bags = rng.normal(size=(5, 2)), [0, 0, 1, 1, None]
    y = [np.nan, 1.0, np.nan, np.nan, 0.0]
    given = {"bags": bags, "proportions": [0.5, 0.2]}
    with pytest.raises(ValueError, match=r"shape \(4, 4\), one row for each of 2 bags and 2 labelled rows"):
        MeanMap(laplacian=0.1, similarity=np.eye(2)).fit(X, y, **given)
    points = np.array([X[:2].mean(axis=0), X[2:4].mean(axis=0), X[4], X[1]])
    S = np.exp(-np.linalg.norm(points[:, None] - points, axis=2) / 0.7)
    by_matrix = MeanMap(laplacian=0.1, similarity=S).fit(X, y, **given)
    by_width = MeanMap(laplacian=0.1, similarity=0.7).fit(X, y, **given)
    np.testing.assert_allclose(by_matrix.coef_, by_width.coef_)
