"""Generated documents: the tree has the stated shape, classes the stated sizes, words the stated sources."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.datasets import make_topic_tree, make_zipf_corpus, path_features


@pytest.fixture(scope="module")
def tree():
    return make_topic_tree(n_classes=600, n_documents=12_000, random_state=0)


def test_a_tree_has_the_stated_classes_and_documents(tree) -> None:
    assert (len(tree), len(tree.y), len(tree.paths), len(set(tree.paths))) == (12_000, 12_000, 600, 600)
    assert tree.paths == sorted(tree.paths)
    assert set(tree.y.tolist()) == set(range(600))  # every class has a document
    assert tree.labels[5] == tree.paths[tree.y[5]]
    lengths = {len(text.split()) for text in tree.texts}
    assert lengths == set(range(10, 31))


def test_leaves_stand_two_or_three_levels_below_the_root(tree) -> None:
    parts = [path.split("/") for path in tree.paths]
    assert {p[0] for p in parts} == {"Top"}
    assert len({p[1] for p in parts}) == 15
    depth = np.array([len(p) - 1 for p in parts])
    assert set(depth.tolist()) == {2, 3}
    middle = {tuple(p[:3]) for p in parts}
    assert 30 < len(middle) < 70
    inner = {tuple(p[:3]) for p in parts if len(p) == 4}
    assert inner.isdisjoint({tuple(p) for p in parts if len(p) == 3})  # a leaf has nothing below it
    assert {len(p.split("/")) for p in make_topic_tree(50, 100, depth=2).paths} == {3}


@pytest.mark.parametrize("zipf", [0.0, 1.0, 1.5])
def test_class_sizes_follow_the_power_law(zipf: float) -> None:
    n_classes, n_documents = 40, 40_000
    tree = make_topic_tree(n_classes, n_documents, zipf=zipf, length=1)
    share = np.arange(1, n_classes + 1) ** -zipf
    expected = 1 + (n_documents - n_classes) * share / share.sum()
    sizes = np.sort(np.bincount(tree.y))[::-1]
    assert np.all(np.abs(sizes - expected) <= 5 * np.sqrt(expected) + 30)


def test_documents_speak_of_the_topics_on_their_path() -> None:
    # words of the top topics alone: two documents have more words in common if their top topic is the same
    tree = make_topic_tree(40, 4000, signal=(1.0, 0.0, 0.0), ambiguity=0.0)
    tops = [path.split("/")[1] for path in tree.paths]
    words = [set(text.split()) for text in tree.texts[:400]]
    same, other = [], []
    for i in range(400):
        for j in range(i):
            kept = same if tops[tree.y[i]] == tops[tree.y[j]] else other
            kept.append(len(words[i] & words[j]))
    assert np.mean(same) > 5 * np.mean(other)


def test_classes_can_be_told_apart_until_documents_are_exchanged() -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    errors = []
    for ambiguity in (0.0, 0.3):
        tree = make_topic_tree(60, 8000, zipf=0.0, ambiguity=ambiguity)
        X = CountVectorizer().fit_transform(tree.texts)
        model = MultinomialNB(alpha=0.01).fit(X[:6000], tree.y[:6000])
        errors.append(1 - model.score(X[6000:], tree.y[6000:]))
    assert errors[0] < 0.2
    assert errors[0] + 0.1 < errors[1] < errors[0] + 0.4


def test_languages_below_world_have_words_of_their_own() -> None:
    tree = make_topic_tree(60, 6000, signal=(0.0, 0.0, 0.0))
    by_language: dict[str, set[str]] = {}
    for text, label in zip(tree.texts, tree.labels, strict=True):
        parts = label.split("/")
        by_language.setdefault(parts[2] if parts[1] == "World" else "", set()).update(text.split())
    assert len(by_language) > 1
    words = list(by_language.values())
    assert all(a.isdisjoint(b) for k, a in enumerate(words) for b in words[:k])


def test_the_vocabulary_grows_with_the_classes() -> None:
    sizes = [make_topic_tree(n, n).n_words for n in (10, 100, 1000)]
    assert sizes[0] < sizes[1] < sizes[2]


@pytest.mark.parametrize(("make", "sizes"), [(make_topic_tree, (20, 50)), (make_zipf_corpus, (50, 200))])
def test_the_same_seed_gives_the_same_documents(make, sizes: tuple[int, int]) -> None:
    first, again, other = (make(*sizes, random_state=seed) for seed in (3, 3, 4))
    assert first.texts == again.texts
    assert first.labels.tolist() == again.labels.tolist()
    assert first.texts != other.texts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_classes": 1}, "n_classes must be an integer of at least 2, got 1"),
        ({"n_classes": 10, "n_documents": 9}, "n_documents must be an integer of at least 10, got 9"),
        ({"depth": 4}, "depth must be 2 or 3, got 4"),
        ({"length": 0}, "length must be an integer of at least 1, got 0"),
        ({"length": (5, 3)}, r"low <= high, got \(5, 3\)"),
        ({"signal": (0.5, 0.5)}, "signal must be 3 shares"),
        ({"signal": (0.5, 0.5, 0.5)}, "sum to at most 1"),
        ({"signal": (-0.1, 0.5, 0.5)}, "signal must be 3 shares of at least 0"),
        ({"signal": (float("nan"), 0.5, 0.5)}, "signal must be 3 shares"),
        ({"zipf": -1.0}, "zipf must be a number of at least 0, got -1.0"),
        ({"ambiguity": 1.5}, "ambiguity must be a number from 0 to 1, got 1.5"),
    ],
)
def test_impossible_trees_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_topic_tree(**arguments)


# ---------------------------------------------------------------------------------------------- the Zipfian corpus


def test_words_of_the_corpus_are_zipfian() -> None:
    data = make_zipf_corpus(2000, 1000, separation=0.01, length=50)
    words, counts = np.unique(" ".join(data.texts).split(), return_counts=True)
    assert len(words) <= 1000
    expected = 100_000 / np.arange(1, 1001) / np.sum(1.0 / np.arange(1, 1001))
    assert np.allclose(np.sort(counts)[::-1][:50], expected[:50], rtol=0.15)
    assert set(data.labels.tolist()) == {0, 1}
    assert data.is_test is None


def test_separation_and_mixing_make_the_task_easy_or_hard() -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    def error(**settings: float) -> float:
        data = make_zipf_corpus(2000, 2000, length=(20, 40), **settings)
        X_train, X_test, y_train, y_test = data.split()
        counts = CountVectorizer().fit(X_train)
        model = MultinomialNB().fit(counts.transform(X_train), y_train)
        return 1 - model.score(counts.transform(X_test), y_test)

    assert error(separation=1.0, mixing=0.0) < 0.05
    assert error(separation=1.0, mixing=0.0) < error(separation=1.0, mixing=1.0) - 0.05
    assert error(separation=0.1, mixing=0.0) > 0.2


def test_impossible_corpora_are_refused() -> None:
    with pytest.raises(ValueError, match="separation must be a positive finite number"):
        make_zipf_corpus(separation=0.0)
    with pytest.raises(ValueError, match="mixing must be a number from 0 to 1, got 2"):
        make_zipf_corpus(mixing=2)
    with pytest.raises(ValueError, match="n_words must be an integer of at least 2"):
        make_zipf_corpus(n_words=1)


# ---------------------------------------------------------------------------------------------- paths


def test_features_of_a_path_are_the_topics_on_the_way() -> None:
    assert path_features("Top/Arts/Music") == ["Top", "Top/Arts", "Top/Arts/Music"]
    assert path_features("/a//b/") == ["a", "a/b"]
    assert path_features("a.b", separator=".") == ["a", "a.b"]
    assert path_features("") == []
    with pytest.raises(TypeError, match="label_path must be a string"):
        path_features(3)
    with pytest.raises(ValueError, match="separator must not be empty"):
        path_features("a", separator="")
