"""New classes: scores of every method against their formulas, names in any order, calibration, what is refused."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.attributes import ZeroShotClassifier, attribute_similarity, visual_proximity

pd = pytest.importorskip("pandas")


def latent_classes(seed=0, known=40, new=10, rows=25, d=60):
    """Classes with 12 hidden properties; the similarities of the new ones are those of their hidden neighbours."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(known + new, 12))
    mixing = rng.normal(size=(12, d)) / 4
    labels = np.repeat(np.arange(known + new), rows)
    X = hidden[labels] @ mixing + rng.normal(size=(len(labels), d))
    D = np.linalg.norm(hidden[known:, None] - hidden[:known], axis=2)
    similarity = np.zeros_like(D)
    np.put_along_axis(similarity, np.argsort(D, axis=1)[:, :5], 1.0, axis=1)
    return X, labels, similarity, hidden


def split(X, labels, known=40):
    return X[labels < known], labels[labels < known], X[labels >= known], labels[labels >= known]


@pytest.mark.parametrize("method", ["designed", "attributes", "eszsl", "dap"])
def test_every_method_knows_new_classes(method):
    X, labels, similarity, hidden = latent_classes()
    X_known, y, X_new, y_new = split(X, labels)
    model = ZeroShotClassifier(similarity, novel=range(40, 50), attributes=hidden, method=method, C=0.1)
    assert model.fit(X_known, y).score(X_new, y_new) > 0.3  # chance is 0.1


def test_designed_attributes_know_half_of_the_rows_and_fusion_helps():
    single, fused, designed = [], [], []
    for seed in range(2):
        X, labels, similarity, _ = latent_classes(seed)
        X_known, y, X_new, y_new = split(X, labels)
        rng = np.random.default_rng(seed)
        people = np.stack([np.where(rng.random(similarity.shape) < 0.1, rng.random(similarity.shape) < 0.2, similarity)
                           for _ in range(10)]).astype(float)  # fmt: skip

        def accuracy(given, X_known=X_known, y=y, X_new=X_new, y_new=y_new):
            return (
                ZeroShotClassifier(given, novel=range(40, 50), n_attributes=85, C=0.1)
                .fit(X_known, y)
                .score(X_new, y_new)
            )

        designed.append(accuracy(similarity))
        fused.append(accuracy(people))
        single.append(np.mean([accuracy(person + 1e-9) for person in people[:3]]))
    assert np.mean(designed) > 0.5
    assert np.mean(fused) >= np.mean(single)


def test_people_are_averaged():
    X, labels, similarity, _ = latent_classes(rows=5)
    X_known, y, X_new, _ = split(X, labels)
    people = np.stack([similarity, 0.5 * similarity + 0.1])
    a = ZeroShotClassifier(people, novel=range(40, 50), n_attributes=30).fit(X_known, y)
    b = ZeroShotClassifier(people.mean(axis=0), novel=range(40, 50), n_attributes=30).fit(X_known, y)
    assert (a.decision_function(X_new) == b.decision_function(X_new)).all()
    assert np.allclose(a.similarity_, people.mean(axis=0))


def test_new_descriptions_are_means_of_similar_ones():
    X, labels, similarity, _ = latent_classes(rows=5)
    X_known, y, X_new, _ = split(X, labels)
    model = ZeroShotClassifier(similarity, novel=range(40, 50), n_attributes=30).fit(X_known, y)
    assert np.allclose(model.novel_attributes_, similarity @ model.known_attributes_ / 5)
    F = X_new @ model.coef_.T + model.intercept_
    A = model.novel_attributes_
    cosine = F @ A.T / np.linalg.norm(F, axis=1)[:, None] / np.linalg.norm(A, axis=1)
    assert np.allclose(model.decision_function(X_new), cosine)


@pytest.mark.parametrize("d", [4, 40])
def test_eszsl_is_its_closed_form(d):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, d)), np.arange(30) % 5
    table = rng.normal(size=(7, 3))
    model = ZeroShotClassifier(attributes=table, novel=[5, 6], method="eszsl", C=0.5, table_penalty=2.0).fit(X, y)
    S = table / np.linalg.norm(table[:5], axis=1).mean()
    Xc = X - X.mean(axis=0)
    Y = np.where(y[:, None] == np.arange(5), 1.0, -1.0)
    V = np.linalg.inv(Xc.T @ Xc + 2.0 * np.eye(d)) @ Xc.T @ Y @ S[:5] @ np.linalg.inv(S[:5].T @ S[:5] + 2.0 * np.eye(3))
    scores = Xc @ V @ S[5:].T
    assert np.allclose(model.decision_function(X), scores[:, 1] - scores[:, 0])


def test_dap_multiplies_probabilities_of_attributes():
    X, labels, _, hidden = latent_classes(rows=8)
    X_known, y, X_new, _ = split(X, labels)
    table = (hidden > 0).astype(float)
    model = ZeroShotClassifier(attributes=table, novel=range(40, 50), method="dap", C=0.1).fit(X_known, y)
    F = X_new @ model.coef_.T + model.intercept_
    p = 1 / (1 + np.exp(-(model.platt_[:, 0] * F + model.platt_[:, 1])))
    prior = np.clip(table[:40].mean(axis=0), 0.02, 0.98)
    a = table[40:]
    expected = np.array([np.prod(np.where(row == 1, p / prior, (1 - p) / (1 - prior)), axis=1) for row in a]).T
    assert np.allclose(np.exp(model.decision_function(X_new)), expected)
    assert (model.platt_[:, 0] > 0).mean() > 0.9


def test_names_may_come_in_any_order():
    X, labels, similarity, hidden = latent_classes(rows=4)
    X_known, y, X_new, _ = split(X, labels)
    rng = np.random.default_rng(0)
    columns, rows, everyone = rng.permutation(40), rng.permutation(10), rng.permutation(50)
    plain = ZeroShotClassifier(similarity, novel=range(40, 50), n_attributes=30).fit(X_known, y)
    frame = pd.DataFrame(similarity[rows][:, columns], index=rows + 40, columns=columns)
    named = ZeroShotClassifier(frame, n_attributes=30).fit(X_known, y)
    assert (plain.predict(X_new) == named.predict(X_new)).all()
    listed = ZeroShotClassifier(similarity[:, columns], novel=range(40, 50), known=columns, n_attributes=30)
    assert (plain.predict(X_new) == listed.fit(X_known, y).predict(X_new)).all()
    plain = ZeroShotClassifier(attributes=hidden, novel=range(40, 50), n_attributes=30).fit(X_known, y)
    frame = pd.DataFrame(hidden[everyone], index=everyone)
    assert (
        plain.predict(X_new) == ZeroShotClassifier(attributes=frame, n_attributes=30).fit(X_known, y).predict(X_new)
    ).all()


def test_adaptive_attributes_separate_the_new_classes_more():
    X, labels, similarity, _ = latent_classes(rows=6)
    X_known, y, _, _ = split(X, labels)

    def spread(adaptive):
        model = ZeroShotClassifier(similarity, novel=range(40, 50), n_attributes=30, adaptive=adaptive).fit(X_known, y)
        A = model.novel_attributes_
        return ((A[:, None] - A) ** 2).sum()

    assert spread(True) > spread(False)


def test_the_generalised_setting_finds_known_and_new_classes():
    X, labels, similarity, hidden = latent_classes(rows=30)
    rng = np.random.default_rng(0)
    train = (labels < 40) & (rng.random(len(labels)) < 0.7)
    truth = labels[~train]
    new = truth >= 40

    def harmonic(**options):
        model = ZeroShotClassifier(novel=range(40, 50), n_attributes=85, C=0.1, generalised=True, **options)
        right = model.fit(X[train], labels[train]).predict(X[~train]) == truth
        assert model.classes_.tolist() == list(range(50))
        a, b = right[new].mean(), right[~new].mean()
        return 2 * a * b / max(a + b, 1e-12)

    for options in ({"similarity": similarity}, {"attributes": hidden, "method": "eszsl"}):
        chosen, plain, far = (
            harmonic(**options),
            harmonic(calibration=0.0, **options),
            harmonic(calibration=9.0, **options),
        )
        assert far == 0.0  # only new classes
        assert chosen > plain - 0.06
        assert chosen > 0.35


def test_similarities_from_a_table_are_the_nearest_cosines():
    rng = np.random.default_rng(0)
    new, known = rng.normal(size=(3, 6)), rng.normal(size=(9, 6))
    S = attribute_similarity(new, known, 2)
    a, b = ((t - known.mean(axis=0)) / known.std(axis=0) for t in (new, known))
    cosines = a @ b.T / np.linalg.norm(a, axis=1)[:, None] / np.linalg.norm(b, axis=1)
    assert ((S > 0).sum(axis=1) <= 2).all()
    assert (S.argmax(axis=1) == cosines.argmax(axis=1)).all()
    assert np.allclose(S[S > 0], cosines[S > 0])


def test_similarities_from_a_table_are_the_best_nonnegative_weights():
    rng = np.random.default_rng(1)
    new, known = rng.normal(size=(3, 6)), rng.normal(size=(9, 6))
    S = attribute_similarity(new, known, alpha=0.3)
    a, b = ((t - known.mean(axis=0)) / known.std(axis=0) for t in (new, known))
    penalty = 0.3 * (b**2).sum(axis=1).mean()
    slopes = (S @ b - a) @ b.T + penalty * S  # of half the objective: 0 where a weight is positive, else not below
    assert (S >= 0).all()
    assert np.abs(slopes[S > 0]).max() < 1e-9
    assert slopes.min() > -1e-9
    near = attribute_similarity(0.7 * known[:1] + 0.3 * known[1:2], known, alpha=1e-9)
    assert np.allclose(near @ b, (0.7 * b[0] + 0.3 * b[1])[None], atol=1e-6)  # weights of more classes fit as well


@pytest.mark.parametrize("n_similar", [None, 2])
def test_a_new_class_that_resembles_none_is_named(n_similar):
    known = np.random.default_rng(0).normal(size=(9, 6))
    with pytest.warns(UserWarning, match="new class 0 resemble those of no known class"):
        S = attribute_similarity(known.mean(axis=0)[None], known, n_similar)
    assert S.sum() == 1.0


@pytest.mark.parametrize(
    ("new", "options", "message"),
    [
        ([[1.0, 2.0, 3.0]], {}, "the same"),
        ([[1.0, np.nan]], {}, "NaN"),
        ([[1.0, 2.0]], {"n_similar": 0}, "n_similar"),
        ([[1.0, 2.0]], {"alpha": 0.0}, "alpha"),
    ],
)
def test_wrong_tables_of_similarity_are_named(new, options, message):
    with pytest.raises(ValueError, match=message):
        attribute_similarity(new, [[0.0, 1.0], [1.0, 0.0]], **options)


def test_similarities_alone_describe_new_classes_by_machines_of_the_known_ones():
    """Without a table each known class is its own attribute: its rows against all others."""
    X, labels, similarity, _ = latent_classes()
    X_known, y, X_new, y_new = split(X, labels)
    model = ZeroShotClassifier(similarity, novel=range(40, 50), method="attributes", C=0.1).fit(X_known, y)
    assert model.known_attributes_.min() == -1.0
    assert model.score(X_new, y_new) > 0.4


def test_a_saved_model_predicts_the_same(tmp_path):
    X, labels, similarity, hidden = latent_classes(rows=4)
    X_known, y, X_new, _ = split(X, labels)
    for method in ("designed", "attributes", "eszsl", "dap"):
        model = ZeroShotClassifier(similarity, novel=range(40, 50), attributes=hidden, method=method, n_attributes=30)
        mercer.save(model.fit(X_known, y), tmp_path / "model.mercer")
        again = mercer.load(tmp_path / "model.mercer")
        assert (again.decision_function(X_new) == model.decision_function(X_new)).all()
        assert (again.predict(X_new) == model.predict(X_new)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"similarity": None}, "give similarity or attributes"),
        ({"novel": None}, "novel must name the new classes"),
        ({"similarity": np.ones((2, 4))}, "column for each of the 3 known classes"),
        ({"similarity": np.ones((3, 3))}, "row for each of the 2 new classes"),
        ({"similarity": -np.ones((2, 3))}, "must not be negative"),
        ({"similarity": np.full((2, 3), np.nan)}, "NaN"),
        ({"similarity": np.array([[1, 0, 0], [0, 0, 0.0]])}, "new class 'e' is similar to no known class"),
        ({"novel": ["a", "e"]}, "class 'a' is new, but has rows in y"),
        ({"novel": ["d", "d"]}, "twice"),
        ({"known": ["a", "b", "x"]}, "class 'c' of y is not among the known"),
        ({"known": ["a", "b", "c", "x"]}, "known class 'x' has no row in y"),
        ({"similarity": None, "attributes": np.ones((4, 2))}, "attributes must have a row for each of the 5"),
        ({"method": "sse"}, "method"),
        ({"adaptive": True, "similarity": np.ones((1, 3)), "novel": ["d"]}, "two new classes"),
        ({"calibration": np.inf}, "calibration"),
    ],
)
def test_wrong_knowledge_of_new_classes_is_named(options, message):
    X, y = np.random.default_rng(0).normal(size=(12, 3)), np.array(list("abc"))[np.arange(12) % 3]
    given = {"similarity": np.array([[1, 0, 0], [0, 1, 1.0]]), "novel": ["d", "e"], **options}
    with pytest.raises(ValueError, match=message):
        ZeroShotClassifier(**given).fit(X, y)


def test_a_frame_without_a_class_is_refused():
    X, y = np.random.default_rng(0).normal(size=(12, 3)), np.array(list("abc"))[np.arange(12) % 3]
    frame = pd.DataFrame(np.eye(4), index=list("abde"))
    with pytest.raises(ValueError, match="no row for class 'c'"):
        ZeroShotClassifier(attributes=frame).fit(X, y)


def test_animals_that_were_not_in_training():
    """PHOG features of the Animals with Attributes: the ten standard new classes, by what people said of them."""
    folder = Path(os.environ.get("MERCER_DATA", "")) / "awa"
    if not os.environ.get("MERCER_DATA") or not folder.exists():
        pytest.skip("needs the Animals with Attributes in MERCER_DATA")
    with gzip.open(folder / "phog_first100perclass.npy.gz") as file:
        X = np.load(file).astype(float)
    names = np.array([line.split()[1] for line in (folder / "classes.txt").read_text().splitlines()])
    y = names[np.loadtxt(folder / "phog_first100perclass_labels.txt", int) - 1]
    frame = pd.read_csv(folder / "similarity_averaged.csv", index_col=0)
    X = np.sqrt(X / X.sum(axis=1, keepdims=True))
    new = np.isin(y, list(frame.index))
    model = ZeroShotClassifier(frame, C=0.1).fit(X[~new], y[~new])
    assert model.score(X[new], y[new]) > 0.2  # chance is 0.1
    assert visual_proximity(X[~new], y[~new]).shape == (40, 40)
