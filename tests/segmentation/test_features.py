"""Feature packs: every feature by hand on a small text, statistics and tables against direct sums, scaling, states."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from mercer.data import Sequences
from mercer.data.prose import words
from mercer.segmentation import (
    Document,
    MinMaxRescaler,
    NgramModel,
    ParagraphFeatures,
    SegmentFeatures,
    SegmentStatistics,
    bow_rescale,
    segment_statistics,
)
from mercer.segmentation.features import _NUMERIC, _Corpus, _numeric, _pair_tables, _segment_tables, _Surprisal
from reference.prose import cosine, paragraph_cosines

TEXT = [
    "The Cat sat on the mat.",
    "The cat saw a Dog!",
    "“But why?",
    "I like the dog,” said Ann.",
    "However, Ann left:",
    "Ann saw the cat.",
]


def numeric(documents, order=0, window=2):
    """The numeric boundary features before rescaling, by name; the words of the documents are known."""
    corpus = _Corpus(documents)
    corpus.weigh(corpus.vocabulary, np.ones(len(corpus.vocabulary)))
    surprisal = _Surprisal.of(NgramModel(order).fit_tokens(corpus.tokens), corpus, corpus.tokens)
    return dict(zip(_NUMERIC, _numeric(corpus, surprisal, window).T, strict=True))


# ------------------------------------------------------------------------------------------------- sentences by hand


def test_counts_by_hand():
    found = numeric([TEXT])
    assert found["length"].tolist() == [6, 5, 2, 6, 3, 4]
    assert found["position"] == pytest.approx(np.arange(6) / 6)
    assert found["capitals"].tolist() == [2, 2, 1, 2, 2, 1]
    assert found["quotes"].tolist() == [0, 0, 0.5, 0.5, 0, 0]
    assert found["quotes_previous"].tolist() == [0, 0, 0, 0.5, 0.5, 0]
    assert found["quotation_open"].tolist() == [0, 0, 0, 1, 0, 0]


def test_overlaps_and_products_by_hand():
    found = numeric([TEXT])
    # {the cat sat on mat} and {the cat saw a dog} share two words
    assert found["overlap_next"][0] == pytest.approx(2 * 2 / 10)
    assert found["overlap_previous"][1] == pytest.approx(2 * 2 / 10)
    assert found["overlap_previous"][0] == found["overlap_next"][5] == 0
    # {the cat saw a dog} against {but why}
    assert found["overlap_next"][1] == 0
    # (the 2, cat, sat, on, mat) and (the, cat, saw, a, dog): inner product 3, squared norms 8 and 5
    assert found["cosine_previous"][1] == pytest.approx(3 / math.sqrt(8 * 5))
    # ⟨B_0 + B_1, B_1 + B_2⟩ = ⟨B_0, B_1⟩ + ‖B_1‖²
    assert found["pair_product"][1] == 3 + 5
    # the first sentence has none before it: ⟨B_0, B_0 + B_1⟩
    assert found["pair_product"][0] == 8 + 3
    bags = [Counter(words(s)) for s in TEXT]
    assert found["cosine_windows"][2] == pytest.approx(cosine(bags[0] + bags[1], bags[2] + bags[3]))
    assert found["cosine_windows"][0] == 0


def test_entropy_is_that_of_the_language_model():
    found = numeric([TEXT])
    assert found["entropy"] == pytest.approx(math.log(len({w for s in TEXT for w in words(s)}) + 1))
    model = NgramModel(2).fit(TEXT)
    assert numeric([TEXT], order=2)["entropy"] == pytest.approx([model.entropy(s) for s in TEXT])


def test_documents_do_not_see_each_other():
    together, alone = numeric([TEXT, TEXT[:2]]), numeric([TEXT])
    for name in set(alone) - {"entropy"}:
        np.testing.assert_allclose(together[name][:6], alone[name])
    assert together["cosine_previous"][6] == together["quotes_previous"][6] == 0


def test_final_marks_and_cues():
    features = ParagraphFeatures(words=False).fit_transform([TEXT])
    table = features.boundaries[0]
    column = {name: table[:, j].tolist() for j, name in enumerate(features.boundary_names)}
    assert column["start"] == [1] * 6
    assert column["final=stop"] == [1, 0, 0, 1, 0, 1]
    assert column["final=exclamation"] == [0, 1, 0, 0, 0, 0]
    assert column["final=question"] == [0, 0, 1, 0, 0, 0]
    assert column["final=colon"] == [0, 0, 0, 0, 1, 0]
    assert column["final_previous=exclamation"] == [0, 0, 1, 0, 0, 0]
    assert column["cue=contrast"] == [0, 0, 1, 0, 1, 0]
    assert column["cue=reference"] == [0] * 6
    text = ["In addition, no.", "It is.", "Italy is.", "For example this", "So-so."]
    more = ParagraphFeatures(words=False).fit_transform([text])
    column = {name: more.boundaries[0][:, j].tolist() for j, name in enumerate(more.boundary_names)}
    assert column["cue=addition"] == [1, 0, 0, 0, 0]
    assert column["cue=reference"] == [0, 1, 0, 0, 0]
    assert column["cue=example"] == [0, 0, 0, 1, 0]
    assert column["cue=cause"] == [0, 0, 0, 0, 0]
    assert column["final=none"] == [0, 0, 0, 1, 0]


@pytest.mark.parametrize("power", [1, 2])
def test_word_columns_are_rescaled_bags(power):
    features = ParagraphFeatures(min_count=1, bow_power=power).fit_transform([TEXT])
    table = features.boundaries[0].toarray()
    column = {name: table[:, j] for j, name in enumerate(features.boundary_names)}
    bags = [Counter(words(s)) for s in TEXT]
    for kind, bag in (("word", bags[1]), ("word_before", bags[0] + bags[1]), ("word_after", bags[1] + bags[2])):
        norm = sum(v * v for v in bag.values()) ** (power / 2)
        for word in ("the", "saw", "why", "ann"):
            assert column[f"{kind}={word}"][1] == pytest.approx(bag[word] / norm), (kind, word)
    assert column["first=the"].tolist() == [1, 1, 0, 0, 0, 0]
    assert "first=cat" not in column


def test_rare_words_have_no_column_and_new_words_are_left_out():
    pack = ParagraphFeatures(min_count=2).fit([TEXT])
    names = pack.transform([TEXT]).boundary_names
    assert "word=ann" in names
    assert "word=mat" not in names
    assert pack.transform([["Zebra xylophone."]]).boundaries.n_features == len(names)
    none = ParagraphFeatures(min_count=99).fit_transform([TEXT])
    assert not any(name.startswith("word") for name in none.boundary_names)


def test_no_documents_and_empty_documents_have_empty_features():
    pack = ParagraphFeatures(max_length=3).fit([TEXT])
    assert len(pack.transform([])) == 0
    features = pack.transform([[], ["One."], []])
    assert features.lengths.tolist() == [0, 1, 0]
    assert [t.shape for t in features.segments] == [(0, 3, 4), (1, 3, 4), (0, 3, 4)]


def test_hashed_words_take_a_fixed_number_of_columns():
    pack = ParagraphFeatures(n_bits=6).fit([TEXT])
    dense = ParagraphFeatures(words=False).fit([TEXT]).transform([TEXT]).boundaries.n_features
    table = pack.transform([TEXT, ["New words only."]])
    assert table.boundaries.n_features == dense + 64
    assert table.boundaries[1].toarray()[0, dense:].any()


# ------------------------------------------------------------------------------------------ segments by prefix sums


def test_statistics_by_prefix_sums_equal_numpy_on_random_segments():
    rng = np.random.default_rng(0)
    frames = 1e4 + rng.normal(size=(60, 5))  # far from 0, where squares lose digits
    ends = np.sort(np.array([rng.choice(61, 2, replace=False) for _ in range(200)]), axis=1)
    found = segment_statistics(frames, ends, ("sum", "mean", "variance", "length"))
    for row, (a, b) in zip(found, ends, strict=True):
        part = frames[a:b]
        expected = np.concatenate([part.sum(axis=0), part.mean(axis=0), part.var(axis=0), [b - a]])
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("unit", ["word", "character"])
def test_segment_tables_equal_direct_computation(unit):
    rng = np.random.default_rng(1)
    documents = [[" ".join(rng.choice(list("abcdefg"), rng.integers(0, 6))) for _ in range(n)] for n in (12, 1, 5, 0)]
    corpus = _Corpus(documents)
    tokens = corpus.symbols(unit)
    model = NgramModel(2, unit=unit).fit_tokens(tokens)
    tables = _segment_tables(corpus, _Surprisal.of(model, corpus, tokens), 6)
    for document, table in zip(documents, tables, strict=True):
        bags = [Counter(words(s)) for s in document]
        for s in range(len(document)):
            for l in range(1, 7):
                if s + l > len(document):
                    assert not table[s, l - 1].any()
                    continue
                before, after = paragraph_cosines(bags, s, s + l)
                stream = [w for sentence in document[s : s + l] for w in model.tokens(sentence)]
                # Exact but where the first sentence is empty: then the second is read as going on from what is before.
                surprisals = model.surprisals([stream])
                assert table[s, l - 1, :3] == pytest.approx([l, before, after])
                if model.tokens(document[s]):
                    assert table[s, l - 1, 3] == pytest.approx(surprisals.mean())


def test_pair_tables_equal_direct_computation():
    rng = np.random.default_rng(2)
    documents = [[" ".join(rng.choice(list("abcdefg"), rng.integers(0, 6))) for _ in range(n)] for n in (9, 1, 2, 0)]
    corpus = _Corpus(documents)
    corpus.weigh(corpus.vocabulary, rng.random(len(corpus.vocabulary)) + 0.1)
    weights = dict(
        zip(corpus.vocabulary, (corpus.weighted.sum(axis=0) / corpus.bags.sum(axis=0)).tolist(), strict=True)
    )
    tokens = corpus.symbols("word")
    tables = _segment_tables(corpus, _Surprisal.of(NgramModel(2).fit_tokens(tokens), corpus, tokens), 4)

    def cosine(a, b, scale):
        a, b = ({w: n * scale(w) for w, n in Counter(x).items()} for x in (a, b))
        norm = np.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))
        return sum(a[w] * b.get(w, 0.0) for w in a) / norm if norm else 0.0

    for document, table, pairs in zip(documents, tables, _pair_tables(corpus, tables), strict=True):
        n = len(document)
        assert pairs.shape == (n, 4, 4, 4)
        for t, l, m in np.ndindex(n, 4, 4):
            found = pairs[t, l, m]
            if t - l - 1 < 0 or t + m + 1 > n:
                assert not found.any()
                continue
            left, right = words(" ".join(document[t - l - 1 : t])), words(" ".join(document[t : t + m + 1]))
            step = abs(table[t - l - 1, l, 3] - table[t, m, 3])
            ratio = min(l + 1, m + 1) / max(l + 1, m + 1)
            wanted = [cosine(left, right, lambda w: 1.0), cosine(left, right, weights.get), ratio, step]
            assert found == pytest.approx(wanted)


def test_pairs_need_a_longest_segment_and_two_sentences():
    with pytest.raises(ValueError, match="pairs=True needs max_length"):
        ParagraphFeatures(pairs=True).fit([TEXT])
    with pytest.raises(ValueError, match="two sentences"):
        ParagraphFeatures(max_length=2, pairs=True).fit([TEXT[:1]])


def test_scaled_tables_lie_in_0_1_and_are_0_beyond_the_end():
    pack = ParagraphFeatures(max_length=4)
    features = pack.fit_transform([TEXT, TEXT[:3]])
    assert features.segment_names == ("length", "cosine_previous", "cosine_next", "entropy")
    assert [t.shape for t in features.segments] == [(6, 4, 4), (3, 4, 4)]
    assert all((t >= 0).all() and (t <= 1).all() for t in features.segments)
    assert not features.segments[1][2, 1:].any()
    assert features.segments[1][0, :3, 0].tolist() == pytest.approx([0, 1 / 3, 2 / 3])


# ------------------------------------------------------------------------------------------------------------ scaling


def test_rescaling_keeps_to_0_1_and_constants_become_0():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=50), np.full(50, 7.0), rng.integers(0, 9, 50)])
    scaler = MinMaxRescaler().fit(X)
    inside = scaler.transform(X)
    assert inside[:, [0, 2]].min(axis=0).tolist() == [0, 0]
    assert inside[:, [0, 2]].max(axis=0).tolist() == [1, 1]
    assert not inside[:, 1].any()
    beyond = scaler.transform(10 * X + 100)
    assert np.isfinite(beyond).all()
    assert beyond.min() >= 0
    assert beyond.max() <= 1
    for bad, message in [(X * np.nan, "NaN"), (X[:, :2], "2 features"), (X[0], "2D array")]:
        with pytest.raises(ValueError, match=message):
            scaler.transform(bad)
    with pytest.raises(ValueError, match="no rows"):
        MinMaxRescaler().fit(np.zeros((0, 2)))


def test_a_rescaled_bag_has_inner_product_1_with_itself():
    B = np.random.default_rng(0).integers(0, 4, (20, 6)).astype(float)
    B[3] = 0
    squared, unit = bow_rescale(B), bow_rescale(B, power=1)
    filled = B.any(axis=1)
    np.testing.assert_allclose((squared * B).sum(axis=1), filled)
    np.testing.assert_allclose((unit**2).sum(axis=1), filled)
    np.testing.assert_allclose(bow_rescale(csr_array(B)).toarray(), squared)
    np.testing.assert_allclose(bow_rescale(csr_array(B), 1).toarray(), unit)
    with pytest.raises(ValueError, match="power"):
        bow_rescale(B, power=3)


def test_features_lie_in_0_1_with_ranges_of_training_alone():
    pack = ParagraphFeatures(words=False, n_topics=0).fit([TEXT])
    wild = [["A " * 500 + "end."], ["“" * 9, "", "?!"]]
    for features in (pack.transform([TEXT]), pack.transform(wild)):
        for part in (features.boundaries, features.frames):
            values = part.matrix()
            assert np.isfinite(values).all()
            assert values.min() >= 0
            assert values.max() <= 1


def test_one_sentence_alone_gives_no_nan():
    features = ParagraphFeatures(max_length=3).fit_transform([["One sentence."]])
    assert np.isfinite(features.frames.matrix()).all()
    assert np.isfinite(features.boundaries.matrix().toarray()).all()


# --------------------------------------------------------------------------------------------------- the pack itself


def test_training_sentences_are_judged_by_models_of_other_documents():
    documents = [["Apples grow here.", "Apples grow there."], ["Trains run late.", "Trains run now."], ["All is well."]]
    pack = ParagraphFeatures(words=False)
    column = pack.fit_transform(documents).frame_names.index("entropy")
    trained, seen = pack.fit_transform(documents), pack.fit(documents).transform(documents)
    assert trained.frames.matrix()[:, column].sum() > seen.frames.matrix()[:, column].sum()


def test_topics_keep_inner_products_but_for_collisions():
    many = ParagraphFeatures(n_topics=1 << 14).fit([TEXT])
    h = many.transform([TEXT]).frames.matrix()[:, 4:]
    weights = dict(zip(many.words_, many.weights_, strict=True))
    bags = [Counter({w: c * weights[w] for w, c in Counter(words(s)).items()}) for s in TEXT]
    expected = [[cosine(a, b) for b in bags] for a in bags]
    np.testing.assert_allclose(h @ h.T, expected, atol=1e-12)


@pytest.mark.parametrize(
    "pack",
    [
        ParagraphFeatures(),
        ParagraphFeatures(n_bits=5, max_length=3, unit="character", order=3),
        ParagraphFeatures(words=False),
        ParagraphFeatures(words=False, max_length=3, pairs=True),
    ],
)
def test_a_paragraph_pack_comes_back_from_its_state(pack):
    pack = clone(pack).fit([TEXT, TEXT[::-1]])
    meta, arrays = pack.to_state()
    again = ParagraphFeatures.from_state(json.loads(json.dumps(meta)), arrays)
    assert again.get_params() == pack.get_params()
    probe = [[*TEXT, "Some new words!"], []]
    a, b = pack.transform(probe), again.transform(probe)
    assert a.frames == b.frames
    assert a.boundaries == b.boundaries
    assert a.boundary_names == b.boundary_names
    for x, y in zip((*(a.segments or ()), *(a.pairs or ())), (*(b.segments or ()), *(b.pairs or ())), strict=True):
        np.testing.assert_array_equal(x, y)


def test_damaged_states_are_refused():
    meta, arrays = ParagraphFeatures().fit([TEXT]).to_state()
    with pytest.raises((TypeError, ValueError)):
        SegmentStatistics.from_state(meta, arrays)
    with pytest.raises(ValueError, match="minimum_ must"):
        ParagraphFeatures.from_state(meta, arrays | {"numeric_.minimum_": np.full(12, np.nan)})
    with pytest.raises(ValueError, match="weights_ must"):
        ParagraphFeatures.from_state(meta, arrays | {"weights_": np.zeros(3)})


def test_documents_may_come_with_their_starts():
    pack = ParagraphFeatures().fit([Document(TEXT, np.array([0, 3]))])
    assert pack.transform([TEXT]).boundaries == pack.transform([Document(TEXT, np.array([0]))]).boundaries


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"min_count": 0}, "min_count"),
        ({"bow_power": 3}, "bow_power"),
        ({"order": -1}, "order"),
        ({"unit": "byte"}, "unit"),
        ({"window": 0}, "window"),
        ({"n_topics": -1}, "n_topics"),
        ({"max_length": 0}, "max_length"),
        ({"statistics": ("median",)}, "statistics must be one of"),
        ({"statistics": ("mean", "mean")}, "twice"),
        ({"statistics": "mean"}, "tuple of names"),
        ({"cv": 1}, "cv"),
        ({"n_bits": 99}, "n_bits"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        ParagraphFeatures(**parameters).fit([TEXT])


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        (["a text"], "document 0 must be a list of sentences"),
        ([TEXT, [3]], "document 1 must hold sentences as strings"),
        ([3], "document 0 must be a list"),
        ([], "no sentence"),
        ([[]], "no sentence"),
    ],
)
def test_bad_documents_are_named(documents, message):
    with pytest.raises(ValueError, match=message):
        ParagraphFeatures().fit(documents)


# ------------------------------------------------------------------------------------------------------------- frames


def test_boundary_windows_by_hand():
    frames = [np.array([[1.0, 0], [2, 0], [5, 1], [6, 1]]), np.array([[9.0, 9]])]
    features = SegmentStatistics(window=3, contrast=2).fit_transform(frames)
    table = {name: features.boundaries.matrix()[:, j].tolist() for j, name in enumerate(features.boundary_names)}
    assert features.frames == Sequences.from_matrices(frames)
    assert table["start"] == [1] * 5
    assert table["frame[-1]:0"] == [1, 1, 2, 5, 9]
    assert table["frame[0]:0"] == [1, 2, 5, 6, 9]
    assert table["frame[+1]:0"] == [2, 5, 6, 6, 9]
    assert table["step:0"] == [0, 3.5 - 1, 5.5 - 1.5, 6 - 3.5, 0]
    assert table["|step|:1"] == [0, 0.5, 1, 0.5, 0]
    assert table["step_norm"] == pytest.approx([0, math.hypot(2.5, 0.5), math.hypot(4, 1), math.hypot(2.5, 0.5), 0])


def test_sparse_frames_give_the_same_features():
    rng = np.random.default_rng(0)
    frames = [rng.poisson(0.5, (n, 4)).astype(float) for n in (7, 1, 4)]
    pack = SegmentStatistics().fit(frames)
    dense, sparse = pack.transform(frames), pack.transform([csr_array(f) for f in frames])
    np.testing.assert_allclose(sparse.boundaries.matrix().toarray(), dense.boundaries.matrix())
    assert sparse.frames == dense.frames


def test_the_statistics_are_those_chosen():
    frames = [np.eye(3)]
    assert SegmentStatistics().fit_transform(frames).statistics == ("mean", "variance", "length")
    chosen = SegmentStatistics(False, False, True, sum=True, window=0, contrast=0).fit_transform(frames)
    assert chosen.statistics == ("sum", "length")
    assert chosen.boundary_names == ("start",)


def test_parts_of_features_and_states_of_packs():
    frames = [np.eye(3), np.ones((2, 3)), np.zeros((4, 3))]
    pack = SegmentStatistics(window=1).fit(frames)
    features = pack.transform(frames)
    assert len(features[1:]) == 2
    assert features[[2, 0]].lengths.tolist() == [4, 3]
    assert features[-1].lengths.tolist() == [4]
    assert features[np.array([True, False, True])].boundaries == features[[0, 2]].boundaries
    assert SegmentStatistics.from_state(*pack.to_state()).transform(frames).boundaries == features.boundaries
    with_tables = ParagraphFeatures(max_length=2, pairs=True).fit_transform([TEXT, TEXT[:2]])
    assert [len(t) for t in with_tables[[1]].segments] == [2]
    assert [t.shape for t in with_tables[[1]].pairs] == [(2, 2, 2, 4)]


def test_bad_frames_and_settings_are_named():
    for bad, message in [
        ([np.array([[np.nan]])], "NaN"),
        ([np.ones(3)], "2-D"),
        ([np.ones((2, 2)), np.ones((2, 3))], "features"),
        ([], "no sequences"),
    ]:
        with pytest.raises(ValueError, match=message):
            SegmentStatistics().fit(bad)
    pack = SegmentStatistics().fit([np.ones((2, 2))])
    with pytest.raises(ValueError, match="fitted to 2"):
        pack.transform([np.ones((2, 3))])
    with pytest.raises(ValueError, match="window must be odd"):
        SegmentStatistics(window=2).fit([np.ones((2, 2))])
    bad = [([(0, 0)], "start < end"), ([(0, 5)], "within 0 .. 4"), ([(0.5, 1)], "integers"), ([1], "shape")]
    for segments, message in bad:
        with pytest.raises(ValueError, match=message):
            segment_statistics(np.ones((4, 1)), segments)
    with pytest.raises(ValueError, match="NaN"):
        segment_statistics(np.full((4, 1), np.inf), [(0, 1)])
    assert segment_statistics(np.ones((4, 2)), []).shape == (0, 5)
    X = Sequences(np.ones((3, 1)))
    with pytest.raises(ValueError, match="same lengths"):
        SegmentFeatures(X, Sequences(np.ones((2, 1))), ("mean",), ("a",), ("b",))
    with pytest.raises(ValueError, match="boundary_names holds 0"):
        SegmentFeatures(X, X, ("mean",), ("a",), ())
