"""The segmenter: planted structure is found, every form of input, every loss and solver, what it tells, bad input."""

from __future__ import annotations

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import mercer
from mercer.data import Sequences, SpanSequences, segments_to_bio, segments_to_frames
from mercer.datasets import make_actions, make_paragraphs
from mercer.learning import ConvergenceWarning, Log, RelativeMargin
from mercer.metrics import boundary_score, segment_f1
from mercer.segmentation import BoundaryClassifier, ParagraphFeatures, Segmenter, SegmentStatistics
from mercer.tagging import Constraints, Tagger
from reference.names import stable
from reference.segments import segmentations

pytestmark = pytest.mark.filterwarnings("ignore::mercer.learning.ConvergenceWarning")

ACTIONS = make_actions(6, n_frames=60, n_actions=3, n_persons=1, duration=(5.0, 9.0), random_state=2)
PACK = SegmentStatistics(sum=True, window=1, contrast=3)


def small(n=8, seed=0, T=9, classes=("a", "b", "c")):
    """Short sequences of noisy frames with segments of up to four positions."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(len(classes), 3))
    X, y = [], []
    for _ in range(n):
        segments, at, before = [], 0, -1
        while at < T:
            end = min(T, at + int(rng.integers(1, 5)))
            before = int(rng.choice([c for c in range(len(classes)) if c != before]))
            segments.append((at, end, classes[before]))
            at = end
        labels = [classes.index(c) for c in segments_to_frames(segments)]
        X.append(means[labels] + 0.5 * rng.normal(size=(T, 3)))
        y.append(segments)
    return X, y


def objective(model):
    return model.history_["objective"][-1] if "primal" not in model.history_ else min(model.history_["primal"])


# ------------------------------------------------------------------------------------------- what it learns


def test_planted_boundaries_of_easy_data_are_found():
    """F1 above 0.95."""
    task = make_paragraphs(n_documents=24, n_paragraphs=(4, 6), topic_share=0.8, cue_share=0.5, random_state=0)
    pack = ParagraphFeatures(words=False, max_length=6)
    model = Segmenter(features=pack, C=10.0, tol=0.01, random_state=0).fit(task.documents[:14], task.starts[:14])
    assert model.score(task.documents[14:], task.starts[14:]) > 0.95
    assert model.classes_.tolist() == [0]
    assert model.form_ == "boundaries"


def test_cues_of_whole_segments_are_worth_more_than_five_points():
    """Where a sentence alone says little, the classifier of sentences is beaten clearly."""
    task = make_paragraphs(n_documents=30, n_paragraphs=(4, 6), topic_share=0.5, random_state=0)
    pack = ParagraphFeatures(words=False, max_length=6)
    base = BoundaryClassifier("svm", features=pack).fit(task.documents[:20], task.starts[:20])
    model = Segmenter(features=pack, tol=0.01, random_state=0).fit(task.documents[:20], task.starts[:20])
    scores = [m.score(task.documents[20:], task.starts[20:]) for m in (model, base)]
    assert scores[0] > scores[1] + 0.05


def test_segments_beat_chains_and_chains_beat_frames_on_actions():
    """Small: frame accuracy on average over levels of difficulty."""
    pack = SegmentStatistics(sum=True, mean=False, window=0, contrast=3)
    found = {"segments": [], "chain": [], "frames": []}
    for difficulty in (1, 4):
        for seed in (0, 1):
            task = make_actions(16, 100, 2, 1, difficulty=difficulty, random_state=seed)
            X, y = task.X[:10], [one.tolist() for one in task.y[:10]]
            model = Segmenter(features=pack, length_model="poisson", tol=0.01, random_state=0).fit(X, y)
            found["segments"].append(model.score(task.X[10:], task.y[10:]))
            found["chain"].append(Tagger("hinge", random_state=0).fit(X, y).score(task.X[10:], task.y[10:]))
            alone = Tagger("hinge", random_state=0).fit(*cut_to_frames(X, y))
            found["frames"].append(alone.score(*cut_to_frames(task.X[10:], task.y[10:])))
    means = {name: np.mean(values) for name, values in found.items()}
    assert means["segments"] > means["chain"] > means["frames"] + 0.02


def cut_to_frames(X, y):
    return [x[t : t + 1] for x in X for t in range(len(x))], [[label] for one in y for label in one]


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "names"])
def test_with_segments_of_one_position_it_is_a_tagger(loss, kind):
    X, y = small(10)
    tags = [segments_to_frames(one) for one in y]
    if kind == "sparse":
        X = [csr_matrix(np.where(np.abs(x) > 0.7, x, 0)) for x in X]
    elif kind == "names":
        X = [[{"sign": str(row[0] > 0), "size": float(row[1])} for row in x] for x in X]
    options = {"loss": loss, "solver": "lbfgs" if loss == "log" else "bmrm", "C": 2.0, "tol": 1e-6}
    tagger, segmenter = Tagger(**options).fit(X, tags), Segmenter(max_length=1, **options).fit(X, tags)
    assert segmenter.predict(X) == tagger.predict(X)
    assert segmenter.coef_.shape == tagger.coef_.shape
    np.testing.assert_allclose(segmenter.coef_, tagger.coef_, atol=1e-3 if loss == "log" else 1e-7)
    segmenter.coef_ = tagger.coef_
    for ours, theirs in zip(segmenter.predict_marginals(X), tagger.predict_marginals(X), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    np.testing.assert_allclose(segmenter.log_likelihood(X, tags), tagger.log_likelihood(X, tags), atol=1e-10)


@pytest.mark.parametrize(
    ("loss", "solver"),
    [
        ("hinge", "auto"),
        ("hinge", "bcfw"),
        ("hinge", "cutting-plane"),
        ("hinge", "subgradient"),
        ("hinge", "marginal-dual"),
        ("squared-hinge", "bcfw"),
        ("squared-hinge", "cutting-plane"),
        ("slack", "bcfw"),
        ("log", "auto"),
        ("log", "bmrm"),
        ("log", "owlqn"),
        ("softmax-margin", "lbfgs"),
        ("hybrid", "bmrm"),
        (RelativeMargin(B=30.0), "cutting-plane"),
    ],
    ids=stable,
)
@pytest.mark.parametrize("cost", ["hamming", "boundary", "segment"])
def test_every_loss_and_solver_lowers_the_objective(loss, solver, cost):
    X, y = small(5, T=7)
    model = Segmenter(loss=loss, solver=solver, cost=cost, max_iter=12, random_state=0).fit(X, y)
    first = Segmenter(loss=loss, solver=solver, cost=cost, max_iter=0, random_state=0).fit(X, y)
    risks = []
    for fitted in (first, model):
        from mercer.learning.losses import resolve_loss
        from mercer.learning.risk import Risk

        bound = resolve_loss(loss, fitted._cost()).for_labels(list(fitted.classes_))
        risk = Risk(fitted.structure_, bound, fitted._inputs(X), fitted._encoded(y, fitted._inputs(X)))
        risks.append(0.5 * float(fitted.coef_ @ fitted.coef_) + risk.value(fitted.coef_))
    assert risks[1] < 0.9 * risks[0]
    assert model.score(X, y) > first.score(X, y)


@pytest.mark.parametrize("cost", ["hamming", "boundary"])
def test_margin_solvers_have_one_optimum(cost):
    X, y = small(6, T=7)
    found = [
        objective(Segmenter(solver=solver, cost=cost, C=0.5, tol=2e-4, max_iter=5000, random_state=0).fit(X, y))
        for solver in ("bmrm", "cutting-plane", "bcfw")
    ]
    np.testing.assert_allclose(found, found[0], rtol=1e-3)


def test_the_log_loss_has_one_optimum():
    X, y = small(6, T=7)
    found = [objective(Segmenter(loss="log", solver=s, tol=1e-5, max_iter=2000).fit(X, y)) for s in ("bmrm", "lbfgs")]
    np.testing.assert_allclose(found, found[0], rtol=1e-3)


def test_the_number_of_threads_does_not_change_the_result():
    models = [Segmenter(features=PACK, n_jobs=n, max_iter=15).fit(ACTIONS.X, ACTIONS.y) for n in (1, 2)]
    assert (models[0].coef_ == models[1].coef_).all()
    for a, b in zip(*(m.predict_marginals(ACTIONS.X) for m in models), strict=True):
        assert (a == b).all()


def test_held_out_data_stop_the_training_and_keep_the_best_weights():
    X, y = small(12, seed=3)
    model = Segmenter(solver="bmrm", patience=3, tol=1e-6).fit(X[:6], y[:6], dev=(X[6:], y[6:]))
    scores = model.history_["dev_score"]
    assert model.score(X[6:], y[6:]) == max(scores)
    assert len(scores) == scores.index(max(scores)) + 4
    assert model.converged_


def test_ctrl_c_keeps_the_best_so_far(monkeypatch):
    from mercer.learning.monitor import Monitor

    record, calls = Monitor.record, []

    def interrupt(self, weights, **figures):
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return record(self, weights, **figures)

    monkeypatch.setattr(Monitor, "record", interrupt)
    X, y = small()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = Segmenter(solver="bmrm", tol=1e-9).fit(X, y)
    assert model.interrupted_
    assert not model.converged_
    assert model.n_iter_ == 7
    assert model.score(X, y) > 0.5


def test_a_killed_training_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    from mercer.learning import Checkpoint
    from mercer.learning.monitor import Monitor

    X, y = small()
    whole = Segmenter(loss="log", tol=1e-7).fit(X, y)
    save, calls = Monitor.save, []

    def die(self, *given):
        save(self, *given)
        calls.append(1)
        if len(calls) == 5:
            raise RuntimeError("killed")

    monkeypatch.setattr(Monitor, "save", die)
    with pytest.raises(RuntimeError, match="killed"):
        Segmenter(loss="log", tol=1e-7).fit(X, y, checkpoint=Checkpoint(tmp_path / "run", every=0))
    monkeypatch.setattr(Monitor, "save", save)
    with pytest.raises(mercer.ModelFileError, match="other data or settings"):
        Segmenter(loss="log", C=2.0).fit(X, y, checkpoint=tmp_path / "run")
    with pytest.raises(mercer.ModelFileError, match="held-out data"):
        Segmenter(loss="log", tol=1e-7).fit(X, y, dev=(X[:2], y[:2]), checkpoint=tmp_path / "run")
    again = Segmenter(loss="log", tol=1e-7).fit(X, y, checkpoint=tmp_path / "run")
    assert again.history_["objective"][:5] == whole.history_["objective"][:5]
    np.testing.assert_allclose(again.coef_, whole.coef_, atol=1e-4)
    assert not (tmp_path / "run").exists()


# ------------------------------------------------------------------------------------------- what goes in


@pytest.mark.parametrize("form", ["frames", "triples", "bio", "boundaries"])
def test_predictions_have_the_form_of_the_training_data(form):
    X, y = small(8)
    written = {
        "frames": [segments_to_frames(one) for one in y],
        "triples": y,
        "bio": [segments_to_bio(one) for one in y],
        "boundaries": [[start for start, _, _ in one] for one in y],
    }[form]
    model = Segmenter(C=100.0, random_state=0).fit(X, written)
    assert model.form_ == form
    predicted, segments = model.predict(X), model.predict_segments(X)
    if form == "boundaries":
        assert predicted == [[start for start, _, _ in one] for one in segments]
        assert model.score(X, predicted) == 1.0
        return
    assert (
        predicted
        == {
            "frames": [segments_to_frames(one) for one in segments],
            "triples": segments,
            "bio": [segments_to_bio(one) for one in segments],
        }[form]
    )
    assert model.score(X, written) == model.score(X, y)
    assert model.score(X, predicted) == 1.0


def test_labels_a_frame_and_triples_give_the_same_model():
    X, y = small(8)
    models = [Segmenter(random_state=0).fit(X, given) for given in (y, [np.array(segments_to_frames(o)) for o in y])]
    assert (models[0].coef_ == models[1].coef_).all()


def test_a_form_that_could_be_read_in_two_ways_is_taken_as_said():
    X = [np.ones((3, 1)), np.zeros((2, 1))]
    y = [[0, 1, 2], [0, 1]]
    assert Segmenter().fit(X, y).form_ == "frames"
    model = Segmenter(form="boundaries").fit(X, y)
    assert model.form_ == "boundaries"
    assert model.predict(X) == [[0, 1, 2], [0, 1]]


def test_dense_sparse_stacked_and_named_features_give_the_same_model():
    X, y = small(8)
    sparse = [csr_matrix(x) for x in X]
    named = [[{f"f{j}": float(v) for j, v in enumerate(row)} for row in x] for x in X]
    options = {"weights": "all", "loss": "log", "tol": 1e-6}
    models = [Segmenter(**options).fit(given, y) for given in (X, sparse, Sequences.from_matrices(X), named)]
    for model, given in zip(models[1:], (sparse, Sequences.from_matrices(X), named), strict=True):
        np.testing.assert_allclose(model.coef_, models[0].coef_, atol=1e-6)
        assert model.predict(given) == models[0].predict(X)
    assert models[3].top_features(1, label="a")[0][0].partition(":")[2] in {"f0", "f1", "f2"}


def test_features_of_a_pack_may_be_made_beforehand():
    made = PACK.fit_transform(ACTIONS.X)
    outside = Segmenter(random_state=0).fit(made[:4], ACTIONS.y[:4])
    inside = Segmenter(features=PACK, random_state=0).fit(ACTIONS.X[:4], ACTIONS.y[:4])
    assert (outside.coef_ == inside.coef_).all()
    assert outside.predict(made[4:]) == inside.predict(ACTIONS.X[4:])


def test_features_of_whole_segments_are_used_for_all_lengths():
    """A segment is right if its frames sum to zero: no feature of positions tells."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(30):
        sizes = rng.integers(2, 5, size=4)
        parts = [rng.choice([-1.0, 1.0], size=n) for n in sizes]
        for part in parts:
            part[-1] -= part.sum()
        X.append(np.concatenate(parts)[:, None])
        y.append(np.cumsum([0, *sizes[:-1]]).tolist())
    spans = SpanSequences.from_function(
        Sequences.from_matrices(X), lambda x, s, e: [float(abs(x[s:e].sum()) < 1e-9)], max_length=6
    )
    plain = Segmenter(form="boundaries", random_state=0).fit(Sequences.from_matrices(X)[:20], y[:20])
    model = Segmenter(form="boundaries", random_state=0).fit(spans[:20], y[:20])
    assert model.max_length_ == 4
    assert model.score(spans[20:], y[20:]) > plain.score(Sequences.from_matrices(X)[20:], y[20:]) + 0.1


def test_features_of_two_whole_neighbours_find_what_single_segments_cannot_show():
    """Every segment is twice as heavy as the one before it, or half: neither alone tells where it ends."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(40):
        sizes, total, parts = rng.integers(1, 4, size=4), rng.choice([8.0, 12.0]), []
        for n in sizes:
            parts.append(total * rng.dirichlet(np.ones(n)))
            total *= rng.choice([0.5, 2.0])
        X.append(np.concatenate(parts)[:, None])
        y.append(np.cumsum([0, *sizes[:-1]]).tolist())

    def doubled(x, s, t, e):
        ratio = x[t:e].sum() / x[s:t].sum()
        return [float(min(abs(ratio - 2.0), abs(ratio - 0.5)) < 1e-9)]

    plain = Sequences.from_matrices(X)
    pairs = SpanSequences.from_function(plain, max_length=4, pairs=doubled)
    alone = Segmenter(form="boundaries", random_state=0).fit(plain[:30], y[:30])
    model = Segmenter(form="boundaries", random_state=0).fit(pairs[:30], y[:30])
    assert model.structure_.n_pair_features == 1
    assert model.score(pairs[30:], y[30:]) > 0.95 > alone.score(plain[30:], y[30:]) + 0.1
    again = type(model).from_state(*model.to_state())
    assert again.predict(pairs[30:]) == model.predict(pairs[30:])


def test_the_longest_segment_of_training_is_the_longest_there_can_be():
    X, y = small(8)
    model = Segmenter(random_state=0).fit(X, y)
    longest = max(end - start for one in y for start, end, _ in one)
    assert model.max_length_ == longest
    assert max(e - s for one in model.predict_segments([np.zeros((40, 3))]) for s, e, _ in one) <= longest


def test_bounds_by_label_hold():
    X, y = small(8)
    model = Segmenter(max_length={"a": 4, "b": 9}, random_state=0).fit(X, y)
    assert model.max_length_ == 9
    model.coef_ = model.coef_.copy()
    model.coef_[model.structure_.slices["sum"]] = 0.0
    model.offset_ = -100.0
    found = model.predict_segments([np.zeros((30, 3))])[0]
    assert max(e - s for s, e, c in found if c == "b") == 9
    assert all(e - s <= 4 for s, e, c in found if c != "b")


@pytest.mark.parametrize("repeats", ["auto", True, False])
def test_neighbours_of_one_label_are_allowed_if_they_occur(repeats):
    X, y = small(8)
    model = Segmenter(repeats=repeats, random_state=0).fit(X, y)
    assert np.isneginf(np.diag(model.transitions_)).all() == (repeats is not True)
    joined = [[(0, 2, "a"), (2, len(x), "a")] for x in X]
    if repeats is False:
        with pytest.raises(ValueError, match="forbid its true segments"):
            Segmenter(repeats=repeats).fit(X, y[:-1] + joined[:1])
    else:
        again = Segmenter(repeats=repeats).fit(X, y[:-1] + joined[:1])
        assert np.isfinite(again.transitions_).all()


def test_forbidden_neighbours_are_not_predicted():
    X, y = small(12)
    y = [one for one in y if not any(a[2] == "a" and b[2] == "c" for a, b in pairwise(one))]
    X = X[: len(y)]
    model = Segmenter(constraints=Constraints([("a", "c")], forbidden_end=["zzz"]), random_state=0).fit(X, y)
    for one in model.predict_segments(X):
        assert not any(a[2] == "a" and b[2] == "c" for a, b in pairwise(one))


@pytest.mark.parametrize("model", ["table", "poisson", "log-normal", "constant", None])
def test_length_models_give_the_scores_they_say(model):
    X, y = small(8)
    fitted = Segmenter(length_model=model, random_state=0).fit(X, y)
    lengths = fitted.lengths_
    l = np.arange(1, len(lengths) + 1)
    shape = {"poisson": 3, "log-normal": 3, "constant": 1, None: 0}
    if model == "table":
        assert np.linalg.matrix_rank(lengths) == 3
    elif model is None:
        assert (lengths == 0).all()
    else:
        basis = {
            "poisson": [l**0, l, np.cumsum(np.log(l))],
            "log-normal": [l**0, np.log(l), np.log(l) ** 2],
            "constant": [l**0],
        }[model]
        design = np.stack(basis, axis=1).astype(float)
        assert design.shape[1] == shape[model]
        residual = lengths - design @ np.linalg.lstsq(design, lengths, rcond=None)[0]
        np.testing.assert_allclose(residual, 0, atol=1e-9)


def test_more_about_neighbours_gives_more_weights():
    made = PACK.fit_transform(ACTIONS.X)
    sizes = [
        Segmenter(neighbours=n, max_iter=5, random_state=0).fit(made, ACTIONS.y).coef_.size
        for n in ((), ("boundary",), ("boundary", "mean", "variance"))
    ]
    B, F, C = made.boundaries.n_features, made.frames.n_features, 3
    assert np.diff(sizes).tolist() == [B * C * C, 2 * F * C * C]


# ------------------------------------------------------------------------------------------- what it tells


def fitted_small():
    X, y = small(6, T=5)
    return Segmenter(loss="log", random_state=0).fit(X, y), X, y


def test_probabilities_agree_with_all_segmentations():
    model, X, _ = fitted_small()
    every = [[(s, e, "abc"[c]) for s, e, c in one] for one in segmentations(5, 3)]
    p = np.exp(model.log_likelihood([X[0]] * len(every), every))
    assert p.sum() == pytest.approx(1.0)
    frames, starts = np.zeros((5, 3)), np.zeros(5)
    spans = np.zeros((5, model.max_length_, 3))
    for weight, one in zip(p, every, strict=True):
        for s, e, c in one:
            if weight:
                frames[s:e, "abc".index(c)] += weight
                starts[s] += weight
                spans[s, e - s - 1, "abc".index(c)] += weight
    np.testing.assert_allclose(model.predict_marginals(X[:1])[0], frames, atol=1e-9)
    np.testing.assert_allclose(model.boundary_marginals(X[:1])[0], starts, atol=1e-9)
    np.testing.assert_allclose(model.segment_marginals(X[:1])[0], spans, atol=1e-9)
    order = np.argsort(-p)
    best = model.k_best(X[:1], 5)[0]
    np.testing.assert_allclose(np.exp([score for _, score in best]), p[order[:5]], rtol=1e-9)
    assert [segments for segments, _ in best] == [every[i] for i in order[:5]]
    assert model.predict_segments(X[:1])[0] == best[0][0]
    known = p[p > 0]
    assert model.entropy(X[:1])[0] == pytest.approx(-(known * np.log(known)).sum())


def test_samples_follow_the_probabilities():
    model, X, _ = fitted_small()
    draws = model.sample(X[:1], 4000)[0]
    found = np.mean([[any(s == t for s, _, _ in one) for t in range(5)] for one in draws], axis=0)
    np.testing.assert_allclose(found, model.boundary_marginals(X[:1])[0], atol=0.04)
    assert model.sample(X[:2], 3) == model.sample(X[:2], 3)


def test_the_score_is_frame_accuracy_or_with_one_label_f1_of_boundaries():
    model, X, y = fitted_small()
    predicted = model.predict_segments(X)
    right = [
        a == b
        for true, guess in zip(y, predicted, strict=True)
        for a, b in zip(segments_to_frames(true), segments_to_frames(guess), strict=True)
    ]
    assert model.score(X, y) == pytest.approx(np.mean(right))
    assert segment_f1(y, y).f1 == 1.0
    starts = [[s for s, _, _ in one] for one in y]
    one = Segmenter(form="boundaries", random_state=0).fit(X, starts)
    assert one.score(X, starts) == boundary_score(starts, one.predict(X), [5] * 6).f1


def test_more_offset_means_more_segments_and_more_recall():
    """The number of segments never falls as each of them earns more; in the end every start is found."""
    task = make_paragraphs(n_documents=24, n_paragraphs=(4, 6), topic_share=0.5, random_state=0)
    pack = ParagraphFeatures(words=False)
    model = Segmenter(features=pack, tol=0.05, random_state=0).fit(task.documents[:10], task.starts[:10])
    lengths = task.lengths[16:]
    counts = []
    for model.offset_ in np.linspace(-5.0, 5.0, 11):
        counts.append(boundary_score(task.starts[16:], model.predict(task.documents[16:]), lengths).predicted)
    assert (np.diff(counts) >= 0).all()
    assert counts[0] < counts[5] < counts[10]
    model.offset_ = 0.0
    held_out = task.documents[10:16], task.starts[10:16]
    before = model.score(*held_out)
    model.tune_offset(*held_out)
    assert model.offset_ == model.curve_.best
    assert model.score(*held_out) == pytest.approx(model.curve_.f1.max())
    assert model.score(*held_out) >= before
    assert model.curve_.recall[-1] == model.curve_.recall.max() == 1.0
    assert model.curve_.recall[0] < model.curve_.recall[-1]
    model.tune_offset(*held_out, metric="precision", min_recall=0.9)
    found = boundary_score(held_out[1], model.predict(held_out[0]), task.lengths[10:16])
    assert found.recall >= 0.9
    model.tune_offset(*held_out, offsets=[1.0])
    assert model.curve_.offsets.tolist() == [0.0, 1.0]


def test_top_features_name_the_part_and_the_feature():
    model = Segmenter(features=PACK, random_state=0).fit(ACTIONS.X, ACTIONS.y)
    names = [name for name, _ in model.top_features(10_000, label=0)]
    F, B = ACTIONS.X[0].shape[1], model.structure_.n_boundary_features
    assert len(names) == 3 * F + B
    assert {name.partition(":")[0] for name in names} == {"sum", "mean", "variance", "boundary"}
    assert "boundary:step_norm" in names
    weights = [weight for _, weight in model.top_features(5, label=0)]
    assert weights == sorted(weights, reverse=True)


# ------------------------------------------------------------------------------------- scikit-learn and files


def test_cloning_keeps_parameters_and_nothing_else():
    model = Segmenter(max_length={"a": 3}, features=PACK, length_model="poisson", neighbours=("mean",))
    copy = clone(model)
    assert copy.max_length == {"a": 3}
    assert copy.features.get_params() == PACK.get_params()
    assert not hasattr(clone(Segmenter(max_iter=3).fit(*small())), "coef_")


def test_model_selection_works_on_lists_and_on_sequences():
    X, y = small(12, seed=3)
    scores = cross_val_score(Segmenter(random_state=0, tol=0.2), X, y, cv=2)
    stacked = cross_val_score(Segmenter(random_state=0, tol=0.2), Sequences.from_matrices(X), y, cv=2)
    assert scores.tolist() == stacked.tolist()
    assert scores.mean() > 0.6
    grid = {"C": [1e-3, 1.0], "length_model": ["poisson"], "features__contrast": [0, 2]}
    search = GridSearchCV(Segmenter(features=PACK, random_state=0, tol=0.2), grid, cv=2).fit(X, y)
    assert search.best_params_["C"] == 1.0
    assert search.best_estimator_.features_.contrast == search.best_params_["features__contrast"]


@pytest.mark.parametrize("case", ["pack", "paragraphs", "named", "hashed", "bounds"])
def test_a_saved_model_answers_as_before(case, tmp_path):
    X, y = small(8)
    if case == "pack":
        X, y = ACTIONS.X, ACTIONS.y
        model = Segmenter(features=PACK, neighbours=("boundary", "mean"), cost="segment", tol=0.1)
    elif case == "paragraphs":
        task = make_paragraphs(n_documents=6, n_paragraphs=3, random_state=0)
        X, y = task.documents, task.starts
        model = Segmenter(features=ParagraphFeatures(max_length=5), offset=0.5, tol=0.1)
    elif case == "bounds":
        y = [[(s, e, "abc".index(c)) for s, e, c in one] for one in y]
        limits = {0: 5, 2: 6}
        model = Segmenter(limits, loss=RelativeMargin(B=50.0), constraints=Constraints(forbidden_end=[7]), tol=0.1)
    else:
        X = [[{"size": float(row[0]), "sign": str(row[1] > 0)} for row in x] for x in X]
        model = Segmenter(n_bits=6 if case == "hashed" else 0, length_model=np.ones((4, 1)), loss="log")
    model.set_params(random_state=0).fit(X, y)
    mercer.save(model, tmp_path / "model")
    loaded = mercer.load(tmp_path / "model")
    for copy in (loaded, pickle.loads(pickle.dumps(model))):
        assert copy.predict(X) == model.predict(X)
        assert copy.score(X, y) == model.score(X, y)
        for a, b in zip(copy.boundary_marginals(X), model.boundary_marginals(X), strict=True):
            assert (a == b).all()
        assert copy.top_features(5, label=model.classes_[0]) == model.top_features(5, label=model.classes_[0])
    assert (loaded.offset_, loaded.max_length_, loaded.form_) == (model.offset_, model.max_length_, model.form_)
    assert len(loaded.history_["seconds"]) == len(model.history_["seconds"]) == loaded.n_iter_
    again = clone(loaded).fit(X, y)
    assert (again.coef_ == model.coef_).all()


def test_a_damaged_model_is_refused(tmp_path):
    meta, arrays = Segmenter(max_iter=3).fit(*small()).to_state()
    for wrong in (arrays["coef_"][:-1], arrays["coef_"] * np.nan):
        with pytest.raises(ValueError, match="coef_ must"):
            Segmenter.from_state(meta, {**arrays, "coef_": wrong})
    with pytest.raises(ValueError, match="form"):
        Segmenter.from_state({**meta, "fitted": {**meta["fitted"], "form_": "nonsense"}}, arrays)


# ------------------------------------------------------------------------------------------------ bad input

X3 = [np.zeros((3, 2)), np.ones((4, 2))]
Y3 = [[(0, 2, "a"), (2, 3, "b")], [(0, 1, "b"), (1, 4, "a")]]


@pytest.mark.parametrize(
    ("parameters", "X", "y", "message"),
    [
        ({"max_length": 2}, X3, Y3, r"sequence 1: the true segment \[1, 4\) of label 'a' has 3 positions, max_length"),
        ({"min_length": 2}, X3, Y3, r"sequence 0: the true segment \[2, 3\) of label 'b' has 1 positions, min_length"),
        ({"min_length": 5}, X3, Y3, "min_length=5 is greater than max_length=3 .the longest"),
        ({"min_length": 5, "max_length": 4}, X3, Y3, "min_length=5 is greater than max_length=4"),
        ({"max_length": 0}, X3, Y3, "max_length must be an integer of at least 1"),
        ({"max_length": {"z": 4}}, X3, Y3, "max_length names the label 'z'"),
        ({}, X3, [[(0, 2, "a"), (1, 3, "b")], Y3[1]], r"sequence 0: segment 1: \[1, 3\) overlaps"),
        ({}, X3, [[(0, 1, "a"), (2, 3, "b")], Y3[1]], "sequence 0: segment 1: the positions 1 to 1 .* no segment"),
        ({}, X3, [[(0, 2, "a")], Y3[1]], "sequence 0: the segments end at 2, the sequence at 3"),
        ({}, X3, [[0, 2, 1], [0]], "sequence 0: boundaries must ascend"),
        ({}, X3, [[0, 5], [0]], "sequence 0: boundary 5 lies outside"),
        ({}, X3, Y3[:1], "2 sequences in X, 1 in y"),
        ({}, X3, [["a", "b", "a"], ["a", "b"]], "sequence 1 has 4 positions in X and 2 labels"),
        ({"form": "frames"}, X3, [["a", "b"], ["a", "b", "a", "b"]], "sequence 0: 3 positions in X and 2 labels"),
        ({}, X3, [["I-x", "O", "O"], ["O"] * 4], "sequence 0: position 0: 'I-x' does not follow"),
        ({}, [np.zeros((3, 2)), np.full((4, 2), np.nan)], Y3, "sequence 1: features must be finite"),
        ({}, [np.zeros((3, 2)), np.zeros((4, 3))], Y3, "sequence 1 has 3 features"),
        ({}, [], [], "X is empty"),
        ({}, [np.zeros((0, 2))], [[]], "all sequences are empty"),
        ({"cost": "hamming"}, X3, [[0, 1], [0]], "use cost='boundary'"),
        ({"C": 0}, X3, Y3, "C must be"),
        ({"loss": "nonsense"}, X3, Y3, "unknown loss"),
        ({"solver": "nonsense"}, X3, Y3, "unknown solver"),
        ({"cost": "nonsense"}, X3, Y3, "unknown cost"),
        ({"length_model": "nonsense"}, X3, Y3, "lengths must be one of"),
        ({"length_model": np.ones((7, 1))}, X3, Y3, "lengths must be of shape"),
        ({"statistics": ("median",)}, X3, Y3, "statistics must be one of"),
        ({"neighbours": ("median",)}, X3, Y3, "neighbours must be one of"),
        ({"form": "nonsense"}, X3, Y3, "form must be one of"),
        ({"repeats": "maybe"}, X3, Y3, "repeats must be one of"),
        ({"offset": np.inf}, X3, Y3, "offset must be a finite number"),
        ({"n_jobs": 0}, X3, Y3, "n_jobs"),
        ({"patience": 0}, X3, Y3, "patience"),
        ({"statistics": ("variance",)}, [csr_matrix(x) for x in X3], Y3, "variances need dense features"),
    ],
    ids=lambda value: "" if isinstance(value, list) else str(value)[:40],
)
def test_bad_input_is_refused_with_its_name(parameters, X, y, message):
    with pytest.raises(ValueError, match=message):
        Segmenter(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"features": "statistics"}, "features must be a FeaturePack or None"),
        ({"template": "words"}, "template must be a Template or None"),
        ({"constraints": [("a", "b")]}, "constraints must be a Constraints or None"),
    ],
)
def test_wrong_kinds_of_parameters_are_refused(parameters, message):
    with pytest.raises(TypeError, match=message):
        Segmenter(**parameters).fit(X3, Y3)


def test_a_label_unseen_in_training_is_named():
    model = Segmenter(max_iter=2).fit(X3, Y3)
    assert model.score([np.zeros((3, 2))], [[(0, 3, "z")]]) == 0.0
    for ask in (model.log_likelihood, model.tune_offset):
        with pytest.raises(ValueError, match=r"sequence 0, segment \[0, 3\): unknown label 'z'; known are 'a', 'b'"):
            ask([np.zeros((3, 2))], [[(0, 3, "z")]])


def test_a_sequence_that_cannot_be_cut_is_named():
    X = [np.zeros((6, 2))] * 3
    model = Segmenter(min_length=3, max_length=4, max_iter=2).fit(X, [[0, 3]] * 3)
    assert model.predict([np.zeros((7, 2))])[0][0] == 0
    for ask in (model.predict, model.predict_marginals, model.sample, lambda given: model.k_best(given, 2)):
        with pytest.raises(ValueError, match="sequence 1 with 5 positions cannot be cut into segments of 3 to 4"):
            ask([np.zeros((6, 2)), np.zeros((5, 2))])
    with pytest.raises(ValueError, match="sequence 0 with 5 positions cannot be cut"):
        Segmenter(min_length=3, max_length=4).fit([np.zeros((5, 2))], [[0]])


def test_empty_sequences_have_no_segments():
    model = Segmenter(max_iter=5).fit([*X3, np.zeros((0, 2))], [*Y3, []])
    assert model.predict([np.zeros((0, 2)), X3[0]])[0] == []
    assert model.predict_segments([np.zeros((0, 2))]) == [[]]
    assert model.boundary_marginals([np.zeros((0, 2))])[0].shape == (0,)
    assert model.predict([]) == []


def test_other_features_than_in_training_are_refused():
    model = Segmenter(max_iter=2).fit(X3, Y3)
    with pytest.raises(ValueError, match="X has 3 features, the model has 2"):
        model.predict([np.zeros((3, 3))])
    with pytest.raises(NotFittedError, match="not fitted"):
        Segmenter().predict(X3)


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = Segmenter(max_iter=5).fit(X3, Y3)
    before, coef = model.predict(X3), model.coef_
    with pytest.raises(ValueError, match="overlaps"):
        model.fit(X3, [[(0, 2, "a"), (1, 3, "b")], Y3[1]])
    assert model.coef_ is coef
    assert model.predict(X3) == before


def test_fits_that_end_too_early_say_so():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning, match="max_iter=1"):
            Segmenter(solver="bmrm", max_iter=1).fit(*small())


@pytest.mark.parametrize("X", [[[[], ["x"], [], ["y"]]], [[[], [], [], []]]])
def test_positions_without_features_at_starts_or_at_all_are_no_special_case(X):
    model = Segmenter().fit(X, [[(0, 2, "a"), (2, 4, "b")]])
    assert model.predict(X)[0][-1][1] == 4


# --------------------------------------------------------------------------------------------- the default loss


def named_spans(n=12):
    """Sentences whose capitals are spans, as lists of names."""
    random = np.random.default_rng(0)
    X, y = [], []
    for _ in range(n):
        words = ["Aa" if random.random() < 0.4 else "bb" for _ in range(6)]
        X.append([[f"w={word}"] for word in words])
        y.append(["x" if word == "Aa" else "O" for word in words])
    return X, y


@pytest.mark.parametrize(
    ("parameters", "dense", "loss", "solver"),
    [
        ({}, False, "log", "lbfgs"),
        ({}, True, "hinge", "bmrm"),
        ({"cost": "segment"}, False, "hinge", "bcfw"),
        ({"solver": "bcfw"}, False, "hinge", "bcfw"),
        ({"solver": "lbfgs"}, True, "log", "lbfgs"),
        ({"penalty": "l1"}, True, "log", "owlqn"),
        ({"loss": "hinge"}, False, "hinge", "bcfw"),
        ({"loss": Log()}, True, "log", "lbfgs"),
    ],
    ids=["features", "dense", "segment-cost", "bcfw", "lbfgs", "l1", "hinge", "log-object"],
)
def test_the_default_loss_follows_the_features(parameters, dense, loss, solver, tmp_path):
    X, y = named_spans()
    if dense:
        X = [np.array([[float("Aa" in name) for name in names] for names in x]) for x in X]
    model = Segmenter(form="frames", **parameters).fit(X, y)
    assert (model.loss_, model.solver_) == (loss, solver)
    assert model.score(X, y) > 0.9
    mercer.save(model, tmp_path / "model")
    loaded = mercer.load(tmp_path / "model")
    assert (loaded.loss_, loaded.loss if isinstance(loaded.loss, str) else loaded.loss.name) == (
        loss, model.loss if isinstance(model.loss, str) else model.loss.name
    )  # fmt: skip
    assert loaded.predict(X) == model.predict(X)


def test_the_default_loss_is_the_hinge_with_a_pack_or_what_it_made():
    task = make_paragraphs(4, random_state=0)
    pack = ParagraphFeatures()
    made = pack.fit_transform(task.documents)
    packed = Segmenter(features=pack).fit(task.documents, task.starts)
    given = Segmenter(form="boundaries").fit(made, task.starts)
    assert packed.loss_ == given.loss_ == "hinge"
    np.testing.assert_array_equal(packed.coef_, given.coef_)
