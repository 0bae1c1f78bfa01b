"""Videos as bags of segments: scores are means over segments, and frames are found that nobody labelled."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

import mercer
import mercer.proportions
from mercer.data import Sequences
from mercer.datasets import make_videos
from mercer.proportions import ProportionClassifier, VideoEventDetector
from mercer.proportions.video import cut, pooled

GRANULARITIES = [(1,), (3,), ("all",), (1, 3, 5, "all")]


def detector(granularities=(1, 3, 5, "all"), **options):
    return VideoEventDetector(granularities, estimator=ProportionClassifier(random_state=0), **options)


def brute_segments(n, granularities, stride):
    found = []
    for g in granularities:
        size = n if g == "all" else g
        starts = sorted({*range(0, n - size + 1, stride), n - size}) if size <= n else []
        found += [(a, a + size) for a in starts]
    return found or [(0, n)]


@pytest.mark.parametrize("stride", [1, 2, 4])
@pytest.mark.parametrize("granularities", [*GRANULARITIES, (7, 9)])
def test_segments_are_all_stretches_of_the_lengths_asked_for(granularities, stride):
    lengths = np.array([8, 1, 13])
    found = cut(lengths, granularities, stride)
    begin = [0, 8, 9]
    expected = [
        (v, begin[v] + a, begin[v] + b) for v in range(3) for a, b in brute_segments(lengths[v], granularities, stride)
    ]
    assert list(zip(found.video, found.starts, found.stops, strict=True)) == expected


@pytest.mark.parametrize("pooling", ["mean", "max"])
@pytest.mark.parametrize("sparse", [False, True])
def test_features_of_segments_are_pooled_over_their_frames(pooling, sparse):
    X = np.random.default_rng(0).normal(size=(20, 4))
    X[X < 0.3] = 0
    segments = cut(np.array([12, 8]), (1, 3, "all"), 2)
    found = pooled(sp.csr_matrix(X) if sparse else X, segments, pooling)
    found = found.toarray() if sparse else found
    expected = [getattr(X[a:b], pooling)(axis=0) for a, b in zip(segments.starts, segments.stops, strict=True)]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("granularities", GRANULARITIES)
def test_scores_are_means_over_segments(granularities):
    task = make_videos(20, (6, 12), 4)
    model = detector(granularities).fit(task.videos, task.y)
    (learner,) = model.estimators_
    frames = model.frame_scores(task.videos)
    for number, x in enumerate(task.videos):
        segments = brute_segments(len(x), granularities, 1)
        scores = [learner.decision_function(x[a:b].mean(axis=0)[None])[0] for a, b in segments]
        weights = [b - a for a, b in segments]
        assert model.score_videos([x])[0] == pytest.approx(np.average(scores, weights=weights))
        per_frame = [
            np.mean([s for s, (a, b) in zip(scores, segments, strict=True) if a <= t < b]) for t in range(len(x))
        ]
        np.testing.assert_allclose(frames[number], per_frame)
        best = model.top_instances(x, 3)
        assert (best[0].start, best[0].stop) == segments[int(np.argmax(scores))]
        assert len(best) == min(3, len(segments))
    np.testing.assert_array_equal(model.decision_function(task.videos), model.score_videos(task.videos))


def test_frames_that_no_segment_covers_have_the_score_of_their_video():
    task = make_videos(10, 9, 4)
    model = detector((2,), stride=4).fit(task.videos, task.y)  # frames 0 1, 4 5, 7 8
    frames = model.frame_scores(task.videos)
    np.testing.assert_allclose([f[3] for f in frames], model.score_videos(task.videos))


def frame_precision(model, task, which):
    found = np.concatenate(model.frame_scores([task.videos[i] for i in which]))
    return average_precision_score(np.concatenate([task.frames[i] for i in which]) > 0, found)


def learners():
    found = [ProportionClassifier(random_state=0)]
    return found + ([None] if hasattr(mercer.proportions, "AlternatingProportionSVM") else [])


@pytest.mark.parametrize("estimator", learners(), ids=["gradient", "default"][: len(learners())])
def test_frames_of_events_are_found_from_labels_of_videos(estimator):
    # Better at frames than one vector for each video; most of the first frames are right.
    whole, multiple, right = [], [], []
    for seed in range(1):
        task = make_videos(120, random_state=seed)
        learn, test = range(60), range(60, 120)
        videos, y = [task.videos[i] for i in learn], task.y[:60]
        options = {"estimator": estimator, "random_state": 0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = VideoEventDetector(**options).fit(videos, y)
            words = VideoEventDetector(("all",), **options).fit(videos, y).set_params(granularities=(1,))
        multiple.append(frame_precision(model, task, test))
        whole.append(frame_precision(words, task, test))
        for i in (i for i in test if task.y[i]):
            right += [task.frames[i][s][0] > 0 for s in model.top_instances(task.videos[i], 5, granularity=1)]
        assert model.score([task.videos[i] for i in test], task.y[60:]) > 0.95
    assert np.mean(multiple) > np.mean(whole) + 0.03
    assert all(a > b for a, b in zip(multiple, whole, strict=True))
    assert np.mean(right) >= 0.8


def test_frames_are_found_better_than_by_multiple_instance_learning():
    task = make_videos(120, random_state=0)
    learn, test = range(60), range(60, 120)
    model = VideoEventDetector(random_state=0).fit([task.videos[i] for i in learn], task.y[:60])
    rows = np.concatenate([task.videos[i] for i in learn])
    number = np.repeat(np.arange(60), [len(task.videos[i]) for i in learn])
    other = mercer.proportions.MultipleInstanceSVM()
    other.fit(rows, bags=number, proportions=task.y[:60].astype(float))
    scores = other.decision_function(np.concatenate([task.videos[i] for i in test]))
    theirs = average_precision_score(np.concatenate([task.frames[i] for i in test]) > 0, scores)
    assert frame_precision(model, task, test) > theirs


def test_several_events_one_detector_for_each():
    task = make_videos(120, n_events=2)
    model = detector(n_jobs=2).fit(task.videos[:60], task.y[:60])
    assert len(model.estimators_) == 3
    assert model.score_videos(task.videos[60:]).shape == (60, 3)
    assert np.mean(model.predict(task.videos[60:]) == task.y[60:]) > 0.7  # a third by chance
    first = next(i for i in range(60, 120) if task.y[i] == 2)
    shown = model.top_instances(task.videos[first], 5, event=2, granularity=1)
    assert np.mean([task.frames[first][s][0] == 2 for s in shown]) >= 0.6
    with pytest.raises(ValueError, match="event must be one of"):
        model.top_instances(task.videos[0])
    with pytest.raises(ValueError, match="event must be one of"):
        model.top_instances(task.videos[0], event=7)


def test_a_matrix_of_labels_is_several_events_at_once():
    a, b = make_videos(80, n_events=2), make_videos(80, n_events=2, random_state=0)
    videos = [x + z for x, z in zip(a.videos, b.videos[1:] + b.videos[:1], strict=True)]
    Y = np.array([[1 in pair, 2 in pair] for pair in zip(a.y, np.roll(b.y, -1), strict=True)]).astype(int)
    model = detector().fit(videos, Y)
    assert model.predict(videos).shape == Y.shape
    assert model.score(videos, Y) > 0.8
    one = detector().fit(videos, Y[:, :1])
    assert one.score_videos(videos).shape == (80, 1)
    assert one.frame_scores(videos)[0].shape == (30, 1)


def test_two_descriptions_are_better_than_one():
    task = make_videos(200, n_features=24, separation=2.2)
    views = [[x[:, :12] for x in task.videos], [x[:, 12:] for x in task.videos]]
    models = [detector().fit(view[:100], task.y[:100]) for view in views]
    test = [view[100:] for view in views]
    alone = [model.score(view, task.y[100:]) for model, view in zip(models, test, strict=True)]
    fused = average_precision_score(task.y[100:], VideoEventDetector.fuse(models, test))
    assert fused > max(alone)
    first = VideoEventDetector.fuse(models, test, [1, 0])
    scores = models[0].score_videos(test[0])
    np.testing.assert_allclose(first, (scores - models[0].score_mean_) / models[0].score_scale_)
    for arguments, message in [
        ((models, test[:1]), "one view for each detector"),
        ((models, test, [0, 0]), "weights must be"),
        ((models, [test[0], test[1][:5]]), "same videos"),
    ]:
        with pytest.raises(ValueError, match=message):
            VideoEventDetector.fuse(*arguments)


def test_lists_sparse_matrices_and_sequences_are_the_same_videos():
    task = make_videos(20, 8, 4)
    dense = detector().fit(task.videos, task.y)
    sparse = detector().fit([sp.csr_matrix(x) for x in task.videos], task.y)
    packed = Sequences.from_matrices(task.videos)
    np.testing.assert_allclose(sparse.score_videos(task.videos), dense.score_videos(task.videos), atol=1e-4)
    np.testing.assert_allclose(dense.score_videos(packed), dense.score_videos(task.videos), rtol=1e-5)
    stacked = np.array(task.videos)
    np.testing.assert_array_equal(dense.score_videos(stacked), dense.score_videos(task.videos))


def test_model_files(tmp_path):
    task = make_videos(30, 8, 4, n_events=2)
    model = detector((1, "all"), pooling="max").fit(task.videos, task.y)
    mercer.save(model, tmp_path / "model")
    loaded = mercer.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.score_videos(task.videos), model.score_videos(task.videos))
    assert loaded.granularities == (1, "all")
    again = clone(loaded).fit(task.videos, task.y)
    np.testing.assert_allclose(again.score_videos(task.videos), model.score_videos(task.videos))
    meta, arrays = model.to_state()
    meta["fitted"]["multilabel_"] = False
    meta["fitted"]["estimators_"].pop()
    with pytest.raises(ValueError, match="must have 3 items, found 2"):
        VideoEventDetector.from_state(meta, arrays)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"granularities": ()}, "granularities must be"),
        ({"granularities": (0,)}, "granularities must be"),
        ({"granularities": ("some",)}, "granularities must be"),
        ({"granularities": (1, 1)}, "granularities must differ"),
        ({"stride": 0}, "stride must be"),
        ({"pooling": "median"}, "pooling must be"),
        ({"C": 0.0}, "C must be"),
        ({"estimator": LogisticRegression()}, "estimator must be a learner from proportions"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    task = make_videos(4)
    options = {"estimator": ProportionClassifier(), **options}
    with pytest.raises(ValueError, match=message):
        VideoEventDetector(**options).fit(task.videos, task.y)


TASK = make_videos(4, 5, 3)


@pytest.mark.parametrize(
    ("videos", "y", "message"),
    [
        ([], [], "videos is empty"),
        (TASK.videos[0], [0], r"pass \[video\]"),
        ("video", [0], "videos must be a list"),
        ([*TASK.videos[:3], np.zeros((0, 3))], TASK.y, "video 3: "),
        ([*TASK.videos[:3], TASK.videos[3] * np.nan], TASK.y, "video 3: .*NaN"),
        ([*TASK.videos[:3], np.ones((5, 4))], TASK.y, "one width"),
        (TASK.videos, TASK.y[:3], "for each of the 4 videos"),
        (TASK.videos, [1, 1, 1, 1], "at least 2 classes"),
        (TASK.videos, [0, 1, 0, np.nan], "NaN"),
        (TASK.videos, [[0, 1], [1, 1], [0, 1], [0, 1]], "event 1 is in all videos"),
        (TASK.videos, [[0, 2], [1, 1], [0, 1], [0, 1]], "0 and 1 only"),
    ],
)
def test_wrong_data_is_named(videos, y, message):
    with pytest.raises(ValueError, match=message):
        detector().fit(videos, y)


def test_wrong_use_is_named():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        VideoEventDetector().score_videos(TASK.videos)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        VideoEventDetector.fuse([VideoEventDetector(), VideoEventDetector()], [TASK.videos, TASK.videos])
    model = detector((1, "all")).fit(TASK.videos, TASK.y)
    with pytest.raises(ValueError, match="fitted with 3"):
        model.predict([np.ones((5, 4))])
    with pytest.raises(ValueError, match="granularity must be one of"):
        model.top_instances(TASK.videos[0], granularity=3)
    with pytest.raises(ValueError, match="no video with an event"):
        model.score(TASK.videos, [0, 0, 0, 0])
