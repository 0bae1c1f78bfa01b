"""Homogeneity analysis against alternating updates, brute force and correspondence analysis; dependencies."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer.multilabel import DependencyModel, HomogeneityAnalysis


def table(n: int = 120, seed: int = 0, missing: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    columns = [np.digitize(z + 0.7 * rng.normal(size=n), cuts) for cuts in ([-1, 0, 1], [0.0], [-0.5, 0.5], [-1, 1])]
    X = np.stack(columns, axis=1)
    X[rng.random(X.shape) < missing] = -1
    return X[(X >= 0).any(axis=1)]


def indicators(X: np.ndarray) -> list[np.ndarray]:
    return [(column[:, None] == np.unique(column[column >= 0])).astype(float) for column in X.T]


def alternating(
    X: np.ndarray, p: int, weights: np.ndarray, rounds: int = 20_000
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The updates of the source with its two repairs: centring, and Gram-Schmidt in the metric of S."""
    G = indicators(X)
    S = sum(g.sum(axis=1) for g in G) * 1.0
    metric = S * weights
    scores = np.random.default_rng(1).normal(size=(len(X), p))
    for _ in range(rounds):
        Y = [np.linalg.solve(g.T @ (weights[:, None] * g), g.T @ (weights[:, None] * scores)) for g in G]
        new = sum(g @ y for g, y in zip(G, Y, strict=True)) / S[:, None]
        new -= metric @ new / metric.sum()
        Q, _ = np.linalg.qr(np.sqrt(metric)[:, None] * new)
        new = Q / np.sqrt(metric)[:, None] * np.sqrt(metric.sum())
        moved = np.abs(np.abs((metric[:, None] * new * scores).sum(axis=0) / metric.sum()) - 1).max()
        scores = new
        if moved < 1e-14:
            break
    return scores, Y


def angle(A: np.ndarray, B: np.ndarray) -> float:
    """The sine of the largest principal angle."""
    cosines = np.linalg.svd(np.linalg.qr(A)[0].T @ np.linalg.qr(B)[0])[1]
    return float(np.sqrt(max(0.0, 1 - cosines.min() ** 2)))


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_eigenproblem_is_where_alternating_updates_end(missing, weighted):
    X = table(missing=missing)
    weights = np.random.default_rng(2).random(len(X)) + 0.5 if weighted else np.ones(len(X))
    model = HomogeneityAnalysis(2).fit(X, sample_weight=weights if weighted else None)
    scores, _ = alternating(X, 2, weights)
    metric = np.sqrt(weights * (X >= 0).sum(axis=1))[:, None]
    assert angle(metric * model.object_scores_, metric * scores) < 1e-4


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_constraints_hold_and_scores_are_means_of_categories_and_back(missing):
    X = table(missing=missing)
    model = HomogeneityAnalysis(3).fit(X)
    S = (X >= 0).sum(axis=1).astype(float)
    scores = model.object_scores_
    assert np.abs(S @ scores).max() < 1e-8 * len(X)
    assert np.allclose((scores * S[:, None]).T @ scores / S.sum(), np.eye(3), atol=1e-8)
    G = indicators(X)
    for g, Y in zip(G, model.quantifications_, strict=True):
        assert np.allclose(Y, (g.T @ scores) / g.sum(axis=0)[:, None])
    mean = sum(g @ Y for g, Y in zip(G, model.quantifications_, strict=True)) / S[:, None]
    assert np.allclose(mean, scores * model.eigenvalues_)


def test_eigenvalues_are_those_of_correspondence_analysis_of_the_indicators():
    X = table()
    Z = np.hstack(indicators(X))
    P = Z / Z.sum()
    r, c = P.sum(axis=1), P.sum(axis=0)
    residuals = (P - np.outer(r, c)) / np.sqrt(np.outer(r, c))
    values = np.linalg.svd(residuals, compute_uv=False) ** 2
    assert np.allclose(HomogeneityAnalysis(4).fit(X).eigenvalues_, values[:4])


def test_many_categories_go_by_products(monkeypatch):
    X = table(400)
    by_matrix = HomogeneityAnalysis(2).fit(X)
    monkeypatch.setattr("mercer.multilabel.homogeneity._DENSE", 1)
    by_products = HomogeneityAnalysis(2).fit(X)
    assert np.allclose(by_matrix.eigenvalues_, by_products.eigenvalues_)
    assert angle(by_matrix.object_scores_, by_products.object_scores_) < 1e-6


def test_scores_with_a_fifth_missing_resemble_those_of_the_whole_table():
    whole = table(600)
    holes = whole.copy()
    holes[np.random.default_rng(5).random(holes.shape) < 0.2] = -1
    rows = (holes >= 0).any(axis=1)
    a = HomogeneityAnalysis(1).fit(whole).object_scores_[rows, 0]
    b = HomogeneityAnalysis(1).fit(holes[rows]).object_scores_[:, 0]
    assert abs(np.corrcoef(a, b)[0, 1]) > 0.9


def test_transform_gives_the_scores_of_training_rows_and_columns_are_found_by_name():
    X = table()
    columns = {name: column for name, column in zip("abcd", X.T, strict=True)}
    model = HomogeneityAnalysis(2).fit(columns)
    assert np.allclose(model.transform(columns), model.object_scores_)
    assert np.allclose(model.transform({name: columns[name] for name in "dcba"}), model.object_scores_)
    assert np.allclose(HomogeneityAnalysis(2).fit_transform(X), model.object_scores_)


def test_strings_objects_frames_and_numbers_are_the_same_table():
    pd = pytest.importorskip("pandas")
    X = table(missing=0.1)
    words = np.where(X < 0, None, np.array(["p", "q", "r", "s"], dtype=object)[np.maximum(X, 0)])
    expected = HomogeneityAnalysis(2).fit(X).object_scores_
    frame = pd.DataFrame(words, columns=list("abcd"))
    floats = np.where(X < 0, np.nan, X)
    for other in (words, frame, frame.astype("category"), floats, pd.DataFrame(floats), words.tolist()):
        assert np.allclose(HomogeneityAnalysis(2).fit(other).object_scores_, expected)


@pytest.mark.parametrize(
    ("X", "p", "message"),
    [
        (np.zeros((5, 3), int), 1, "all columns are constant"),
        (np.arange(60).reshape(30, 2), 1, "another category in each"),
        (np.array([[0, 1], [1, 0], [-1, -1]]), 1, "row 2 of the table has no value"),
        (np.array([[0, -1], [1, -1]]), 1, "column 'x1' has no value"),
        (table(), 9, "n_components is 9, but"),
        (table(), 0, "n_components"),
        (np.zeros(4), 1, "two dimensions"),
        (np.zeros((0, 2)), 1, "no rows"),
        ({}, 1, "no columns"),
        ({"a": [1, 2], "b": [1]}, 1, "different lengths"),
    ],
)
def test_wrong_tables_are_named(X, p, message):
    with pytest.raises(ValueError, match=message):
        HomogeneityAnalysis(p).fit(X)


def test_unknown_categories_and_columns_at_transform_are_named():
    columns = {"a": ["x", "y", "x"], "b": ["u", "u", "v"]}
    model = HomogeneityAnalysis(1).fit(columns)
    with pytest.raises(ValueError, match="column 'a' has the category 'z'"):
        model.transform({"a": ["z"], "b": ["u"]})
    with pytest.raises(ValueError, match="no column 'b'"):
        model.transform({"a": ["x"]})
    with pytest.raises(ValueError, match="3 columns, training had 2"):
        model.transform([["x", "u", "u"]])
    lenient = HomogeneityAnalysis(1, handle_unknown="missing").fit(columns)
    known, unknown = lenient.transform({"a": [None], "b": ["u"]}), lenient.transform({"a": ["z"], "b": ["u"]})
    assert np.array_equal(known, unknown)


@pytest.mark.parametrize("weights", [[1.0], [np.nan] * 120, [-1.0] * 120, [0.0] * 120])
def test_wrong_weights_are_named(weights):
    with pytest.raises(ValueError, match="sample_weight"):
        HomogeneityAnalysis().fit(table(120), sample_weight=weights)


def test_the_biplot_names_every_category():
    plt = pytest.importorskip("matplotlib.pyplot")
    model = HomogeneityAnalysis(2).fit({"a": ["x", "y", "x", "y"], "b": ["u", "u", "v", "v"]})
    ax = model.plot()
    assert {text.get_text() for text in ax.texts} == {"a=x", "a=y", "b=u", "b=v"}
    plt.close(ax.figure)
    with pytest.raises(ValueError, match="components"):
        model.plot((0, 2))


# ------------------------------------------------------------------------------------------------------- dependencies

FEATURES = ("gripper", "rim", "handle", "function", "material")


def kitchen(n: int, seed: int) -> dict[str, np.ndarray]:
    """Kitchen objects by rule: what can be cut, rolled or grasped follows from what a thing is."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(
        ["container", "food", "cooker", "cutting tool", "eating tool"], n, p=[0.3, 0.25, 0.15, 0.15, 0.15]
    )
    material = np.array(
        [
            rng.choice({"container": ["plastic", "glass", "ceramic"], "food": ["plant", "animal"]}.get(k, ["metal"]))
            for k in kind
        ]
    )
    handle = np.where(np.isin(kind, ["food"]), "no", rng.choice(["no", "yes"], n, p=[0.4, 0.6]))
    rim = np.where(np.isin(kind, ["container", "cooker"]), "yes", "no")
    small = rng.choice(["small", "large"], n)
    return {
        "gripper": small, "rim": rim, "handle": handle, "function": kind, "material": material,
        "cut": np.where(kind == "food", "+", "-"),
        "roll": np.where(handle == "no", "+", "-"),
        "grasp": np.where((small == "small") | (rim == "yes"), "+", "-"),
    }  # fmt: skip


def split(data: dict[str, np.ndarray], rows: slice) -> dict[str, np.ndarray]:
    return {name: column[rows] for name, column in data.items()}


def trial(seed: int, noise: float = 0.0, missing: float = 0.0) -> dict[str, float]:
    data = kitchen(140, seed)
    rng = np.random.default_rng(seed + 1000)
    train = {name: column[:100].astype(object) for name, column in data.items()}
    for name, column in train.items():
        wrong = rng.random(100) < noise
        column[wrong] = rng.choice(data[name], wrong.sum())
        if name in FEATURES:
            column[rng.random(100) < missing] = None
    model = DependencyModel(["cut", "roll", "grasp"]).fit(train)
    new = {name: data[name][100:] for name in FEATURES}
    return {name: float((model.predict_effect(new, name) == data[name][100:]).mean()) for name in model.outcomes}


def test_effects_of_rule_made_objects_are_predicted_and_noise_costs_little():
    clean = [trial(seed) for seed in range(8)]
    noisy = [trial(seed, 0.1, 0.2) for seed in range(8)]
    for name in ("cut", "roll"):
        mean = np.mean([t[name] for t in clean])
        majority = np.mean([max(np.mean(kitchen(140, s)[name] == c) for c in "+-") for s in range(8)])
        assert mean >= 0.85
        assert mean > majority
    assert np.mean([list(t.values()) for t in noisy]) > np.mean([list(t.values()) for t in clean]) - 0.08


def test_dependencies_name_what_the_rules_say():
    model = DependencyModel(["cut", "roll", "grasp"]).fit(kitchen(140, 0))
    kept = {name: {(d.column, d.category) for d in model.dependencies_[name]} for name in model.outcomes}
    assert {("function", "food"), ("material", "plant")} <= kept["cut"]
    assert {("handle", "no"), ("handle", "yes")} & kept["roll"]
    food = next(d for d in model.dependencies_["cut"] if d.category == "food")
    assert food.effect == "+"
    for weights in model.weights_:
        assert weights.sum() == pytest.approx(1)
        assert np.isfinite(weights).all()


def test_an_outcome_that_is_a_category_gives_no_nan():
    data = kitchen(60, 3)
    data["cut"] = np.where(data["function"] == "food", "food", "other")
    two = {"kind": data["cut"], "rim": data["rim"], "cut": data["cut"]}
    model = DependencyModel(["cut"], n_components=2).fit(two)
    assert np.isfinite(model.weights_[0]).all()
    assert (model.predict({"kind": data["cut"], "rim": data["rim"]})[:, 0] == data["cut"]).all()


def test_objects_and_actions_are_chosen_by_their_promise():
    data = kitchen(140, 0)
    model = DependencyModel(["cut", "roll"], n_components=3).fit({k: data[k] for k in (*FEATURES, "cut", "roll")})
    new = {name: data[name][:40] for name in FEATURES}
    order = model.select_objects(new, "cut", "+")
    cut = data["cut"][:40] == "+"
    assert cut[order[: cut.sum()]].mean() > 0.9
    actions = model.select_action(new, {"cut": "+", "roll": "-"})
    assert np.mean([a == "cut" for a in np.array(actions)[cut]]) > np.mean(
        [a == "cut" for a in np.array(actions)[~cut]]
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"outcomes": ["taste"]}, "'taste'"),
        ({"outcomes": []}, "at least one"),
        ({"outcomes": "cut"}, "must be a list"),
        ({"outcomes": ["function"]}, "two categories, found 5"),
        ({"outcomes": ["cut", "cut"]}, "twice"),
        ({"outcomes": [99]}, "column 99"),
        ({"outcomes": ["cut"], "threshold": 2.0}, "at most 1"),
        ({"outcomes": ["cut"], "threshold": 0.99}, "leaves no category"),
        ({"outcomes": ["cut"], "n_neighbors": 0}, "n_neighbors"),
    ],
)
def test_wrong_models_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        DependencyModel(**params).fit(kitchen(60, 0))


def test_wrong_questions_are_named():
    model = DependencyModel(["cut"]).fit({name: kitchen(60, 0)[name] for name in (*FEATURES, "cut")})
    new = {name: kitchen(5, 1)[name] for name in FEATURES}
    with pytest.raises(ValueError, match="is a feature"):
        model.predict_effect(new, "rim")
    with pytest.raises(ValueError, match="effect must be one of"):
        model.select_objects(new, "cut", "maybe")
    with pytest.raises(ValueError, match="no column 'gripper'"):
        model.predict({"handle": ["no"]})
    with pytest.raises(ValueError, match="dict"):
        model.select_action(new, {})


def test_files_hold_the_models(tmp_path):
    data = kitchen(60, 0)
    for model in (HomogeneityAnalysis(2).fit(data), DependencyModel(["cut", "roll"]).fit(data)):
        mercer.save(model, tmp_path / "m.mercer")
        loaded = mercer.load(tmp_path / "m.mercer")
        assert np.array_equal(loaded.transform(data), model.transform(data))
