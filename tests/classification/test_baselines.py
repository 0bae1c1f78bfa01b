"""Baselines for many classes: equal to the obvious computation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs
from sklearn.feature_extraction.text import HashingVectorizer

import mercer
from mercer.classification import KMeansMajority, SampledKNN
from mercer.datasets import make_topic_tree
from reference.contract import contract

DRAWN = {
    name: "first centres are drawn by place"
    for name in (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    )
}


@contract(
    [SampledKNN(fraction=0.8, n_neighbors=3), KMeansMajority(coverage=1.0)], expected_failed_checks=lambda model: DRAWN
)
def test_every_check_of_scikit_learn_passes(checks):
    checks()


def nearest_votes(rows: np.ndarray, labels: np.ndarray, x: np.ndarray, k: int, metric: str):
    """The slow way: sort all distances, count, ties to the nearest."""
    if metric == "cosine":
        distance = 1 - rows @ x / np.linalg.norm(rows, axis=1) / np.linalg.norm(x)
    elif metric == "manhattan":
        distance = np.abs(rows - x).sum(axis=1)
    else:
        distance = np.linalg.norm(rows - x, axis=1)
    votes = labels[np.argsort(distance)[:k]].tolist()
    return max(votes, key=lambda label: (votes.count(label), -votes.index(label)))


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("k", [1, 4])
def test_sampled_neighbours_equal_a_full_search_of_the_sample(metric: str, sparse: bool, k: int) -> None:
    X, y = make_blobs(200, 5, centers=6, cluster_std=4.0, random_state=0)
    names = np.array(list("abcdef"))[y]
    model = SampledKNN(0.3, k, metric=metric, random_state=0).fit(csr_array(X) if sparse else X, names)
    rows = model.sample_indices_
    assert len(rows) == len(set(rows.tolist())) == 60
    expected = [nearest_votes(X[rows], names[rows], x, k, metric) for x in X]
    assert model.predict(X).tolist() == expected


def test_a_sample_smaller_than_the_neighbours_votes_as_a_whole() -> None:
    X, y = np.arange(20.0)[:, None], np.repeat([0, 1], 10)
    model = SampledKNN(0.05, 5, random_state=0).fit(X, y)
    assert len(model.sample_indices_) == 1
    assert set(model.predict(X).tolist()) == {y[model.sample_indices_[0]]}
    assert model.classes_.tolist() == [0, 1]  # also the label that is not in the sample


@pytest.mark.parametrize("coverage", [0.3, 0.5, 0.9, 0.95, 1.0])
def test_clusters_are_the_fewest_classes_with_the_coverage(coverage: float) -> None:
    random = np.random.default_rng(0)
    sizes = random.integers(1, 60, size=12)
    y = np.repeat(np.arange(12), sizes)
    X = random.normal(size=(len(y), 3)) + 5 * random.normal(size=(12, 3))[y]
    model = KMeansMajority(coverage, random_state=0).fit(X, y)
    in_order = np.sort(sizes)[::-1]
    fewest = next(n for n in range(1, 13) if in_order[:n].sum() >= coverage * len(y))
    assert model.n_clusters_ == fewest == len(model.cluster_centers_) == len(model.cluster_labels_)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_cluster_predicts_the_majority_of_its_members(sparse: bool) -> None:
    X, y = make_blobs(300, 4, centers=5, cluster_std=5.0, random_state=1)
    X = np.abs(X)
    model = KMeansMajority(1.0, random_state=0).fit(csr_array(X) if sparse else X, y)
    nearest = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2).argmin(axis=1)
    for cluster in range(model.n_clusters_):
        counts = np.bincount(y[nearest == cluster], minlength=5)
        assert counts[model.cluster_labels_[cluster]] == counts.max()
    assert np.array_equal(model.predict(X), model.cluster_labels_[nearest])


def test_more_clusters_than_distinct_rows_do_no_harm() -> None:
    X, y = np.zeros((6, 2)), np.arange(6)
    model = KMeansMajority(1.0, random_state=0).fit(X, y)
    assert model.n_clusters_ == 6
    assert set(model.predict(X).tolist()) <= set(range(6))


@pytest.mark.parametrize("make", [SampledKNN, KMeansMajority])
def test_the_same_seed_gives_the_same_answers(make) -> None:
    X, y = make_blobs(200, 4, centers=10, cluster_std=5.0, random_state=0)
    first, again, other = (make(fraction=0.3, random_state=seed).fit(X, y) for seed in (0, 0, 1))
    assert np.array_equal(first.predict(X), again.predict(X))
    assert not np.array_equal(first.sample_indices_, other.sample_indices_)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("model", [SampledKNN(0.5, 3, random_state=0), KMeansMajority(fraction=0.5, random_state=0)])
def test_models_survive_a_file(model, names: bool, sparse: bool, tmp_path) -> None:
    X, y = make_blobs(120, 4, centers=5, cluster_std=3.0, random_state=0)
    X, y = csr_array(np.abs(X)) if sparse else np.abs(X), np.array(list("abcde"))[y] if names else y
    mercer.save(model.fit(X, y), tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    assert again.get_params() == model.get_params()
    assert again.classes_.tolist() == model.classes_.tolist()
    assert np.array_equal(again.predict(X), model.predict(X))


def test_a_model_file_with_wrong_arrays_is_refused() -> None:
    X, y = make_blobs(30, 3, centers=2, random_state=0)
    meta, arrays = SampledKNN(1.0).fit(X, y).to_state()
    with pytest.raises(ValueError, match="_labels"):
        SampledKNN.from_state(meta, arrays | {"_labels": arrays["_labels"] + 5})
    with pytest.raises(ValueError, match="expected a row for each of 30 labels"):
        SampledKNN.from_state(meta, arrays | {"_rows": arrays["_rows"][:3]})
    with pytest.raises(ValueError, match="the rows must be finite"):
        SampledKNN.from_state(meta, arrays | {"_rows": np.full((30, 3), np.nan)})
    meta, arrays = KMeansMajority().fit(X, y).to_state()
    with pytest.raises(ValueError, match="cluster_centers_"):
        KMeansMajority.from_state(meta, arrays | {"cluster_centers_": arrays["cluster_centers_"][:, :2]})


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SampledKNN(fraction=0), "fraction must be a positive finite number, got 0"),
        (SampledKNN(fraction=1.5), "fraction must be above 0 and at most 1, got 1.5"),
        (SampledKNN(n_neighbors=0), "n_neighbors must be an integer of at least 1, got 0"),
        (SampledKNN(metric="hamming"), "metric must be one of 'euclidean', 'cosine', 'manhattan', got 'hamming'"),
        (KMeansMajority(coverage=1.1), "coverage must be above 0 and at most 1, got 1.1"),
        (KMeansMajority(fraction=-1), "fraction must be a positive finite number, got -1"),
        (KMeansMajority(max_iter=0), "max_iter must be an integer of at least 1, got 0"),
    ],
)
def test_wrong_parameters_are_named(model, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit([[0.0], [1.0]], [0, 1])


def test_more_of_the_sample_means_fewer_errors() -> None:
    """That hashed learning beats both is a test of the experiments."""
    tree = make_topic_tree(100, 6000, random_state=0)
    X = HashingVectorizer(n_features=2**16).transform(tree.texts)
    accuracy = [
        SampledKNN(share, metric="cosine", random_state=0).fit(X[:5000], tree.y[:5000]).score(X[5000:], tree.y[5000:])
        for share in (0.03, 0.1, 0.3, 1.0)
    ]
    assert accuracy == sorted(accuracy)
    assert accuracy[0] + 0.1 < accuracy[-1]
