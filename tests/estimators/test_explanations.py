"""`explain` and `top_features` of every estimator that has them: sums that are the scores of the model."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from estimators.cases import CASES, Case
from estimators.outputs import fitted
from mercer._explain import UNEXPLAINED, Explanation, ScoreRows, Term, chosen_labels, votes_of_pairs
from mercer.classification import CompactClassifier, LinearClassifier, RelativeMarginSVC
from mercer.clustering import SupervisedClusterer
from mercer.data.templates import Template
from mercer.kernel_methods import KernelFisher, KernelOneClass, KernelPCA, KernelRidge, KernelSVC, KernelSVR
from mercer.kernels import Gaussian, NGram
from mercer.multilabel import KernelHomogeneityAnalysis, MultiLabelCRF
from mercer.online import HashedClassifier, HashedRegressor
from mercer.parsing import Parser, Tree
from mercer.ranking import LabelRanker, Ranker
from mercer.segmentation import Segmenter
from mercer.tagging import Tagger

EXPLAINED = [case for case in CASES if hasattr(case.make(), "explain")]
WEIGHED = [case for case in CASES if hasattr(case.make(), "top_features")]


def total(explanation: Explanation) -> float:
    return explanation.constant + explanation.rest + sum(term.contribution for term in explanation.terms)


def one_of(inputs: Any) -> Any:
    """The first of new inputs."""
    return inputs[:1] if hasattr(inputs, "toarray") else inputs[0]


def three_classes(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 4)) + 2.0 * np.eye(4)[y], np.array(["a", "b", "c"])[y]


# ------------------------------------------------------------------------------------------------------ every estimator


def test_the_families_that_the_mechanism_serves_are_all_there() -> None:
    explained = {case.cls.__name__ for case in EXPLAINED}
    expected = {
        "LinearClassifier", "HashedClassifier", "KernelSVC", "Tagger", "Segmenter", "GraphLabeler", "GridLabeler",
        "Parser", "Aligner", "MeanMap", "RelativeMarginSVC", "Ranker", "LabelRanker", "StructuredPredictor",
    }  # fmt: skip
    assert expected <= explained
    assert explained <= {case.cls.__name__ for case in WEIGHED}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.cls.__name__)
def test_an_estimator_explains_its_decisions_or_says_why_not(case: Case) -> None:
    name, model = case.cls.__name__, case.make()
    assert hasattr(model, "explain") == (name not in UNEXPLAINED)
    if name in UNEXPLAINED:
        with pytest.raises(AttributeError) as caught:
            _ = model.explain
        assert UNEXPLAINED[name] in f"{caught.value} {caught.value.__cause__}"


def test_no_reason_is_of_an_estimator_that_is_gone() -> None:
    assert set(UNEXPLAINED) <= {case.cls.__name__ for case in CASES}


@pytest.mark.parametrize(
    "case", [case for case in EXPLAINED if case.cls is not Parser], ids=lambda case: case.cls.__name__
)
def test_the_terms_of_an_explanation_sum_to_its_score(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted(case)[0]
        new = case.data(0).new
        views = case.cls.__name__ == "KernelHomogeneityAnalysis" and isinstance(new, list)
        x = [view[:1] for view in new] if views else one_of(new)
        options = {} if case.cls.__name__ != "StructuredPredictor" else alternatives(model, case)
        few, all_of_them = model.explain(x, 2, **options), model.explain(x, 100_000, **options)
    assert all_of_them.rest == pytest.approx(0.0, abs=1e-12)
    assert total(all_of_them) == pytest.approx(all_of_them.score, rel=1e-9, abs=1e-9)
    assert total(few) == pytest.approx(few.score, rel=1e-9, abs=1e-9)
    assert len(few.terms) <= 2
    assert few.n_terms == len(all_of_them.terms)
    sizes = [abs(term.contribution) for term in all_of_them.terms]
    assert sizes == sorted(sizes, reverse=True)
    assert str(few).splitlines()[0]


def alternatives(model: Any, case: Case) -> dict[str, Any]:
    """Two outputs of the case's structure, which has no k_best."""
    outputs = case.data(0).args[1]
    first = outputs[0]
    return {"output": first, "against": next(y for y in outputs if not model.structure.equal(y, first))}


@pytest.mark.parametrize("case", WEIGHED, ids=lambda case: case.cls.__name__)
def test_top_features_are_named_and_in_order(case: Case) -> None:
    model = fitted(case)[0]
    answer = model.top_features(3)
    lists = list(answer.values()) if isinstance(answer, dict) else [answer]
    assert lists
    for features in lists:
        weights = [weight for _, weight in features]
        assert weights == sorted(weights, reverse=True)
        assert all(isinstance(name, str) and name for name, _ in features)
        assert len(features) <= 3
    against = model.top_features(3, against=True)
    lowest = next(iter(against.values())) if isinstance(against, dict) else against
    assert [w for _, w in lowest] == sorted(w for _, w in lowest)
    with pytest.raises(ValueError, match="label"):
        model.top_features(3, label="no such label")
    with pytest.raises(ValueError, match="n must be"):
        model.top_features(0)


# ------------------------------------------------------------------------------------------------------- score models


@pytest.mark.parametrize(
    "model",
    [LinearClassifier(), KernelSVC(Gaussian(0.3)), RelativeMarginSVC(), RelativeMarginSVC(multiclass="one-vs-rest"),
     RelativeMarginSVC(kernel="rbf"), HashedClassifier(n_bits=10, random_state=0)],
    ids=lambda model: repr(model)[:50],
)  # fmt: skip
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_score_is_positive_for_what_is_predicted_and_changes_sign_when_asked_the_other_way(model, n_classes) -> None:
    X, y = three_classes()
    kept = y != "c" if n_classes == 2 else slice(None)
    X, y = X[kept], y[kept]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    for x, label in zip(X[:9], model.predict(X[:9]), strict=True):
        found = model.explain(x)
        assert found.output == label
        assert found.score > 0
        back = model.explain(x, output=found.against, against=found.output)
        assert back.score == pytest.approx(-found.score)


def test_the_score_of_two_classes_is_the_decision_function() -> None:
    X, y = three_classes()
    X, y = X[y != "c"], y[y != "c"]
    for model in (LinearClassifier(), KernelSVC(Gaussian(0.3)), HashedClassifier(n_bits=10), LabelRanker()):
        truth = [[(label, "b" if label == "a" else "a")] for label in y] if isinstance(model, LabelRanker) else y
        model.fit(X, truth)
        scores = np.asarray(model.decision_function(X[:1]))
        expected = scores[0, 1] - scores[0, 0] if scores.ndim == 2 else scores[0]
        assert model.explain(X[0], output="b", against="a").score == pytest.approx(float(expected), rel=1e-5)


def test_models_of_one_score_explain_their_prediction() -> None:
    X, _ = three_classes()
    t = X @ [1.0, -2.0, 0.0, 0.5]
    for model in (KernelRidge(Gaussian(0.3)), KernelSVR(), HashedRegressor(n_bits=10)):
        model.fit(X, t)
        found = model.explain(X[0])
        assert found.score == pytest.approx(float(model.predict(X[:1])[0]), rel=1e-5)
        assert found.against is None
    ranker = Ranker().fit(X, (t > 0).astype(int))
    assert ranker.explain(X[0]).score == pytest.approx(float(ranker.decision_function(X[:1])[0]))
    outlier = KernelOneClass().fit(X)
    assert outlier.explain(X[0]).score == pytest.approx(float(outlier.decision_function(X[:1])[0]))
    with pytest.raises(ValueError, match="single score"):
        outlier.explain(X[0], against=1)


def test_columns_have_the_names_of_the_frame() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = three_classes()
    frame = pandas.DataFrame(X, columns=["north", "east", "south", "west"])
    model = LinearClassifier().fit(frame, y)
    assert model.top_features(1)["a"][0][0] == "north"
    assert {term.name for term in model.explain(frame.iloc[[0]]).terms} == {"north", "east", "south", "west"}
    hashed = HashedClassifier(n_bits=8, random_state=0).fit(frame, y)
    assert hashed.top_features(1, label="b")[0][0] == "east"


def test_a_sparse_row_has_the_terms_of_its_nonzeros() -> None:
    X, y = three_classes()
    X[:, 2] = 0.0
    model = LinearClassifier().fit(csr_matrix(X), y)
    assert "x2" not in {term.name for term in model.explain(csr_matrix(X[:1])).terms}
    assert model.explain(csr_matrix(X[:1])).score == pytest.approx(model.explain(X[0]).score)


def test_a_wrong_question_names_its_argument() -> None:
    X, y = three_classes()
    model = LinearClassifier().fit(X, y)
    with pytest.raises(ValueError, match="output: unknown label 'z'"):
        model.explain(X[0], output="z")
    with pytest.raises(ValueError, match="must differ"):
        model.explain(X[0], output="a", against="a")
    with pytest.raises(AttributeError, match="explain"):
        KernelPCA(Gaussian()).explain(X[0])


def test_support_objects_that_are_strings_are_named_by_themselves() -> None:
    words = ["aaab", "aaba", "abaa", "ccdc", "cdcc", "dccc"]
    model = KernelSVC(NGram(2)).fit(words, [0, 0, 0, 1, 1, 1])
    names = [term.name for term in model.explain("ccdd").terms]
    assert any("'ccdc'" in name or "'cdcc'" in name or "'dccc'" in name for name in names)


def test_scores_of_fisher_and_of_maps_are_differences_of_their_decisions() -> None:
    X, y = three_classes()
    for model in (KernelFisher(Gaussian(0.3)), CompactClassifier(8, max_iter=2, random_state=0)):
        model.fit(X, y)
        scores = model.decision_function(X[:1])[0]
        found = model.explain(X[0], output="b", against="c")
        assert found.score == pytest.approx(scores[1] - scores[2])


def test_label_sets_are_explained_by_columns_and_by_pairs_of_labels() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3))
    sets = [[name for name, on in (("sea", x[0] > 0), ("sky", x[1] > 0), ("sand", x[0] > 0.2)) if on] for x in X]
    model = MultiLabelCRF(C=1.0).fit(X, sets)
    found = model.explain(X[0], 100, output=["sea", "sand"], against=["sea", "sky"])
    log_p = model.log_prob(X[[0, 0]], [["sea", "sand"], ["sea", "sky"]])
    assert found.score == pytest.approx(log_p[0] - log_p[1])
    assert total(found) == pytest.approx(found.score)
    assert any(term.name == "x0: sand" for term in found.terms)
    assert any(" and " in term.name for term in found.terms)
    narrow = model.explain(X[0])
    assert len(set(narrow.output) ^ set(narrow.against)) == 1
    with pytest.raises(ValueError, match="the same"):
        model.explain(X[0], output=["sea"], against=["sea"])
    views = KernelHomogeneityAnalysis().fit(X, sets)
    scores = dict(zip(views.classes_.tolist(), views.decision_function(X[:1])[0], strict=True))
    found = views.explain(X[0], output="sea", against="sky")
    assert found.score == pytest.approx(scores["sea"] - scores["sky"])


def test_a_partition_is_explained_by_the_features_of_its_pairs() -> None:
    random = np.random.default_rng(0)
    y = [random.integers(0, 2, 6).tolist() for _ in range(8)]
    X = [np.array([[3.0 * c, random.normal()] for c in labels]) for labels in y]
    model = SupervisedClusterer(random_state=0).fit(X, y)
    a, b = [0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 1]
    found = model.explain(X[0], output=a, against=b)
    i, j = np.triu_indices(6, 1)
    affinity = np.abs(X[0][i] - X[0][j]) @ model.coef_ + model.intercept_
    together = [np.array([labels[p] == labels[q] for p, q in zip(i, j, strict=True)], float) for labels in (a, b)]
    assert found.score == pytest.approx((together[0] - together[1]) @ affinity)
    assert model.explain(X[0]).output.tolist() == model.predict(X[:1])[0].tolist()


# ------------------------------------------------------------------------------------------------------------- words


DOCUMENTS = ["red red rose", "a blue sky", "red wine", "blue sea and sky", "green tree", "a green leaf"] * 4
COLOURS = ["r", "b", "r", "b", "g", "g"] * 4


@pytest.mark.parametrize("counts", ["sqrt", "linear"])
def test_the_words_of_a_document_sum_to_its_score(counts: str) -> None:
    model = HashedClassifier(n_bits=16, counts=counts, random_state=0).fit(DOCUMENTS, COLOURS)
    document = "red red sea of unknown words"
    found = model.explain(document, 100)
    scores = model.decision_function([document])[0]
    first, second = np.argsort(-scores)[:2]
    assert found.output == model.classes_[first]
    assert found.score == pytest.approx(float(scores[first] - scores[second]), rel=1e-4)
    assert found.terms[0].name == "red"
    assert found.terms[0].value == pytest.approx(2.0 if counts == "linear" else 2**0.5)


def test_names_are_kept_in_a_bounded_table_and_in_the_file(tmp_path) -> None:
    import mercer

    model = HashedClassifier(n_bits=16, random_state=0).fit(DOCUMENTS, COLOURS)
    assert model.top_features(1)["r"][0][0] == "red"
    assert 0 < model.names_bytes_ < 2000
    mercer.save(model, tmp_path / "m")
    assert mercer.load(tmp_path / "m").top_features(2) == model.top_features(2)
    few = HashedClassifier(n_bits=16, random_state=0, inverse_size=3).fit(DOCUMENTS, COLOURS)
    assert len(few.names_.names) == 3
    assert few.predict(["red"]) == model.predict(["red"])
    none = HashedClassifier(n_bits=16, inverse_size=0).fit(DOCUMENTS, COLOURS)
    with pytest.raises(ValueError, match="no names"):
        none.top_features()
    assert none.explain("red").terms[0].name == "red"  # a document has its names itself


def test_partial_fit_goes_on_with_the_names() -> None:
    model = HashedClassifier(n_bits=16).partial_fit(DOCUMENTS[:2], COLOURS[:2], classes=["r", "b", "g"])
    model.partial_fit(["brown bear"] * 3, ["g"] * 3)
    assert {"red", "brown"} <= set(model.names_.names)


# -------------------------------------------------------------------------------------------------------- structures


def test_a_tagger_explains_against_the_runner_up() -> None:
    X, y = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["dog"]], [["D", "N", "V"], ["D", "N", "V"], ["N"]]
    tagger = Tagger().fit(X, y)
    found = tagger.explain(X[0])
    (best, first), (second, other) = tagger.k_best([X[0]], 2)[0]
    assert (found.output, found.against) == (best, second)
    assert found.score == pytest.approx(first - other)
    asked = tagger.explain(X[0], output=["D", "N", "V"], against=["N", "N", "V"])
    assert {"the: D", "start → D", "D → N"} <= {term.name for term in asked.terms}
    with pytest.raises(ValueError, match="the same"):
        tagger.explain(X[0], output=["D", "N", "V"], against=["D", "N", "V"])


def test_a_tagger_with_a_template_speaks_of_words_not_of_template_lines() -> None:
    X = [[("in", "IN"), ("New", "NNP"), ("York", "NNP")], [("in", "IN"), ("Paris", "NNP")]]
    y = [["O", "B", "I"], ["O", "B"]]
    tagger = Tagger(template=Template.load("words+pos")).fit(X, y)
    names = [name for name, _ in tagger.top_features(30, label="I")]
    assert "word[-1]=New" in names
    assert "word[-1]=New word=York" in names
    assert "pos[-1]=NNP pos=NNP pos[+1]=<end>" in names
    assert not any(name.startswith("U") for name in names)


def test_a_segmenter_explains_its_offset_too() -> None:
    X = [list("aabb"), list("abba"), list("bbaa")]
    y = [[(0, 2, "A"), (2, 4, "B")], [(0, 1, "A"), (1, 3, "B"), (3, 4, "A")], [(0, 2, "B"), (2, 4, "A")]]
    model = Segmenter(loss="log", offset=0.5).fit(X, y)
    found = model.explain(X[0], 1000)
    (best, first), (second, other) = model.k_best([X[0]], 2)[0]
    assert (found.output, found.against) == (best, second)
    assert found.score == pytest.approx(first - other, abs=1e-9)


def test_a_parser_explains_by_rules_and_says_where_there_is_one_tree_only() -> None:
    high = Tree.parse("(S (NP we) (VP (V saw) (NP (NP dogs) (PP (P in) (NP parks)))))")
    low = Tree.parse("(S (NP we) (VP (VP (V saw) (NP cats)) (PP (P in) (NP parks))))")
    plain = Tree.parse("(S (NP we) (VP (V saw) (NP cats)))")
    parser = Parser(method="pcfg").fit(None, [high, low, plain, plain])
    sentence = ["we", "saw", "dogs", "in", "parks"]
    found = parser.explain(sentence, 100)
    (best, first), (second, other) = parser.k_best([sentence], 2)[0]
    assert (found.output, found.against) == (best, second)
    assert found.score == pytest.approx(first - other)
    assert any("PP" in term.name for term in found.terms)
    with pytest.raises(ValueError, match="no other output"):
        parser.explain(["we", "saw", "cats"])


def test_records_of_a_frame_are_explained() -> None:
    """A dict, a row and a series say the same, and the terms add up to the score."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"age": rng.integers(20, 70, 80), "job": rng.choice(["cook", "boss", "clerk"], 80)})
    frame["note"] = ["paid well and on time" if job == "boss" else "seldom paid" for job in frame["job"]]
    frame["rich"] = np.where(frame["job"] == "boss", "yes", "no")
    model = HashedClassifier(n_bits=12, random_state=0).fit(frame, "rich")
    X = frame.drop(columns="rich")
    for i in range(3):
        score = float(model.decision_function(X.iloc[[i]])[0])
        told = [model.explain(x, 50) for x in (X.iloc[[i]], X.iloc[i], X.iloc[i].to_dict())]
        assert len({str(explanation) for explanation in told}) == 1
        assert np.isclose(abs(score), told[0].score, rtol=1e-4)
        assert f"job={frame['job'][i]}" in str(told[0])
        assert "(unnamed)" not in str(told[0])
    with pytest.raises(ValueError, match="one record, got 3 rows"):
        model.explain(X.iloc[:3])


def test_an_explanation_is_written_as_a_table() -> None:
    terms = [Term("long name", 1.0, 2.0), Term("b", 1.0, -0.25)]
    assert str(Explanation("spam", "ham", 1.5, terms, 0.0, 0.0, 2)) == (
        "spam rather than ham: +1.5\n  long name         +2\n  b              -0.25"
    )
    assert str(Explanation(0.5, None, 3.0, terms, 1.0, 0.25, 1002)) == (
        "0.5: +3\n  long name            +2\n  b                 -0.25\n"
        "  (1,000 more)      +0.25\n  (constant)           +1"
    )
    words = ["word"] * 12  # 59 characters
    assert str(Explanation(words, None, 0.0, [], 0.0, 0.0, 0)) == f"{' '.join(words)}: +0"
    assert str(Explanation("x" * 60, "y" * 61, 0.0, [], 0.0, 0.0, 0)) == f"{'x' * 60} rather than {'y' * 59}…: +0"


def test_the_weights_of_a_class_in_pairs_are_the_mean_of_its_pairs() -> None:
    weights = np.array([[1.0, 0.0], [0.0, 3.0], [5.0, 7.0]])  # of the pairs (a, b), (a, c), (b, c), for the second
    rows = ScoreRows(weights, np.zeros(3), ["a", "b", "c"], True)
    assert rows.of_label(0).tolist() == [-0.5, -1.5]
    assert rows.of_label(1).tolist() == [-2.0, -3.5]
    assert rows.of_label(2).tolist() == [2.5, 5.0]
    two = ScoreRows(weights[:1], np.zeros(1), ["a", "b"])
    assert (two.of_label(0).tolist(), two.of_label(1).tolist()) == ([-1.0, 0.0], [1.0, 0.0])


def test_votes_of_pairs_are_whole_but_for_ties() -> None:
    votes = votes_of_pairs(np.array([[1.0, 1.0, -1.0], [0.0, 0.0, 0.0], [3.0, -1.0, 1.0]]), 3)
    np.testing.assert_allclose(votes[0], [0 - 2 / 9, 2 + 2 / 9, 1 + 0])
    np.testing.assert_allclose(votes[1], [2.0, 1.0, 0.0])  # a tie is for the first class
    np.testing.assert_allclose(votes[2], [1 - 2 / 9, 1 + 2 / 9, 1.0])
    classes = np.array(["a", "b", "c"])
    assert chosen_labels(votes, classes).tolist() == ["b", "a", "b"]
    assert chosen_labels(np.array([-0.5, 0.0, 0.5]), classes[:2]).tolist() == ["a", "a", "b"]


def test_labels_without_weights_are_named() -> None:
    model = LinearClassifier().fit(np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]] * 4), ["a", "b", "c"] * 4)
    with pytest.raises(ValueError, match=r"unknown label 'd'; known are .*'a'.*'b'.*'c'"):
        model.top_features(label="d")
    every = model.top_features(n=2)
    assert list(every) == ["a", "b", "c"]
    for label, listed in every.items():
        assert model.top_features(n=1, label=label) == listed[:1]
        assert model.top_features(n=3, label=label) == listed
