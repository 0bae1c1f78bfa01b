"""Data for learning from proportions: the toy, the census, the small sets."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

from mercer.datasets import load_adult, load_proportion_set, make_proportion_toy
from mercer.proportions import InverseCalibration, MeanMap

needs_data = pytest.mark.skipif(
    not os.environ.get("MERCER_DATA"), reason="set MERCER_DATA to the folder of public data sets"
)


@pytest.mark.parametrize("seed", range(10))
def test_the_means_of_the_toys_bags_mislead(seed):
    """Both baselines have every point wrong."""
    X, y, bags = make_proportion_toy(seed)
    assert len(X) == 200
    p = [0.6, 0.4]
    assert InverseCalibration().fit(X, bags=bags, proportions=p).score(X, y) == 0.0
    for alpha in (0.1, 1.0, 10.0):
        assert MeanMap(alpha).fit(X, bags=bags, proportions=p).score(X, y) == 0.0


PEOPLE = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40,"
    " United-States, <=50K\n"
    "50, ?, 183311, HS-grad, 9, Divorced, ?, Husband, White, Male, 0, 0, 13, ?, >50K\n\n"
)


def test_people_are_read_from_a_folder(tmp_path):
    folder = tmp_path / "uci"
    folder.mkdir()
    (folder / "adult.data").write_text(PEOPLE)
    with gzip.open(folder / "adult.test.gz", "wt") as file:
        file.write("|1x3 Cross validator\n" + PEOPLE.split("\n")[0] + ".\n")
    data = load_adult(data_home=tmp_path)
    assert data.y.tolist() == [0, 1]
    assert data.groups["occupation"].tolist() == ["Adm-clerical", "?"]
    X = data.X.toarray()
    assert X.sum(axis=1).tolist() == [14, 11]  # what is not known has no column
    assert X[:, data.feature_names.index("age 33..41")].tolist() == [1, 0]
    assert X[:, data.feature_names.index("capital-gain 1..")].tolist() == [1, 0]
    assert X[:, data.feature_names.index("hours-per-week 40..41")].tolist() == [1, 0]
    test = load_adult("test", data_home=tmp_path)
    np.testing.assert_array_equal(test.X.toarray(), X[:1])
    assert len(load_adult("all", data_home=tmp_path)) == 3
    (folder / "adult.data").write_text("39, State-gov\n")
    with pytest.raises(ValueError, match=r"adult\.data:1: expected 15 cells"):
        load_adult(data_home=tmp_path)
    with pytest.raises(ValueError, match="subset must be one of"):
        load_adult("valid", data_home=tmp_path)


@needs_data
def test_the_census_has_the_columns_of_a9a():
    from sklearn.datasets import load_svmlight_file

    data = load_adult()
    assert data.X.shape == (32_561, 123)
    assert {name: len(set(data.groups[name])) for name in ("native-country", "education", "occupation", "race")} == {
        "native-country": 42, "education": 16, "occupation": 15, "race": 5,
    }  # fmt: skip
    with gzip.open(os.path.join(os.environ["MERCER_DATA"], "libsvm", "a9a.gz")) as file:
        A, y = load_svmlight_file(file, n_features=123)
    np.testing.assert_array_equal(data.y, y > 0)
    random = np.random.default_rng(0).normal(size=len(y))  # a fingerprint of each column
    np.testing.assert_allclose(np.sort(data.X.T @ random), np.sort(A.T @ random))


@needs_data
@pytest.mark.parametrize(
    ("name", "shape", "positive"),
    [
        ("heart", (270, 13), 120),
        ("vote", (435, 16), 168),
        ("australian", (690, 14), 307),
        ("breast-w", (699, 9), 241),
        ("ionosphere", (351, 34), 225),
        ("dna-1", (928, 180), 464),
        ("dna-2", (970, 180), 485),
        ("dna-3", (2000, 180), 1051),
        ("satimage-2", (958, 36), 479),
    ],
)
def test_small_sets_are_complete_and_scaled(name, shape, positive):
    X, y = load_proportion_set(name)
    assert X.shape == shape
    assert y.sum() == positive
    assert np.isfinite(X).all()
    assert (X.min(), X.max()) == (-1.0, 1.0)
    again, _ = load_proportion_set(name, random_state=0)
    np.testing.assert_array_equal(again, X)


def test_a_small_set_is_read_from_a_folder(tmp_path):
    folder = tmp_path / "uci"
    folder.mkdir()
    (folder / "HouseVotes84.csv").write_text("Class,V1,V2\nrepublican,n,y\ndemocrat,?,y\ndemocrat,y,n\n")
    X, y = load_proportion_set("vote", data_home=tmp_path)
    assert X.tolist() == [[-1, 1], [0, 1], [1, -1]]
    assert y.tolist() == [1, 0, 0]
    with pytest.raises(FileNotFoundError, match="Satellite"):
        load_proportion_set("satimage-2", data_home=tmp_path)
    (folder / "ionosphere.data").write_text("1,2,g\n1,b\n")
    with pytest.raises(ValueError, match=r"ionosphere\.data:2: expected 3 cells"):
        load_proportion_set("ionosphere", data_home=tmp_path)
    with pytest.raises(ValueError, match="name must be one of 'heart'"):
        load_proportion_set("iris")
