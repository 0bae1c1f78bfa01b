"""What a user can get wrong: an error at once that says what and where, never a repair or a crash."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError

import mercer
from mercer import ModelFileError
from mercer.data import FeatureIndex, Sequences, Template
from mercer.tagging import HMM, Constraints, Tagger

X = [[{"w": "a"}, {"w": "b"}], [{"w": "b"}]]
Y = [["A", "B"], ["B"]]
NUMBERS = [np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[1.0, 0.0]])]


@pytest.fixture(scope="module")
def fitted():
    return Tagger(max_iter=5, tol=1.0).fit(X, Y)


@pytest.fixture(scope="module")
def numeric():
    return Tagger(max_iter=5, tol=1.0).fit(NUMBERS, Y)


# ------------------------------------------------------------------------------------------------- fit


@pytest.mark.parametrize(
    ("inputs", "labels", "error", "message"),
    [
        ([], [], ValueError, "empty"),
        ([[], []], [[], []], ValueError, "all sequences are empty"),
        (X, Y[:1], ValueError, "2 sequences in X, 1 in y"),
        (X, [["A", "B"], ["B", "A"]], ValueError, "sequence 1 has 1 positions in X and 2 labels in y"),
        (X, [["A", "B"], "B"], TypeError, "sequence 1: expected a list of labels, found str"),
        (X, [["A", "B"], None], TypeError, "sequence 1: expected a list of labels, found NoneType"),
        (X, "AB", TypeError, "expected a list of label"),
        (X, None, TypeError, "label"),
        (X, [["A", "A"], ["A"]], ValueError, "at least two different labels"),
        (X, [[None, None], [None]], ValueError, "at least two different labels"),
        (X, [["A", "B"], [1]], TypeError, "all strings or all numbers"),
        (X, [["A", ["B"]], ["B"]], TypeError, "label must be a string or a number, found list"),
        (X, [["A", ("B", "A")], ["B"]], TypeError, "label must be a string or a number, found tuple"),
        (X, [["A", {"B": 1}], ["B"]], TypeError, "label must be a string or a number, found dict"),
        (X, [[1.0, float("nan")], [2.0]], ValueError, "NaN"),
        (X, [["A", set()], ["B"]], ValueError, "sequence 0, position 1: the set of possible labels is empty"),
        ([[{"w": float("nan")}, {}], [{}]], Y, ValueError, "sequence 0, token 0: feature 'w' is not finite"),
        ([[{"w": float("inf")}, {}], [{}]], Y, ValueError, "sequence 0, token 0: feature 'w' is not finite"),
        ([NUMBERS[0], np.array([[np.nan, 0.0]])], Y, ValueError, "sequence 1: features must be finite"),
        ([NUMBERS[0], np.array([[np.inf, 0.0]])], Y, ValueError, "sequence 1: features must be finite"),
        (
            [csr_matrix(NUMBERS[0]), csr_matrix([[np.nan, 0.0]])],
            Y,
            ValueError,
            "sequence 1: features must be finite",
        ),
        (
            [NUMBERS[0], np.array([[1.0, 0.0, 3.0]])],
            Y,
            ValueError,
            "sequence 1 has 3 features, sequence 0 has 2",
        ),
        ([NUMBERS[0], np.array([1.0, 0.0])], Y, ValueError, "sequence 1: expected a 2-D array"),
        ([NUMBERS[0], csr_matrix(NUMBERS[1])], Y, ValueError, "all sequences to be sparse or all dense"),
        ("the dog", Y, TypeError, "expected a list of sequences, found str"),
        ({"w": "a"}, Y, TypeError, "expected a list of sequences, found dict"),
        (3, Y, TypeError, "expected a list of sequences, found int"),
        (None, Y, TypeError, "expected a list of sequences, found NoneType"),
        ([[{"w": "a"}, 3], [{}]], Y, TypeError, "sequence 0, token 1"),
        (["ab", "b"], Y, TypeError, "sequence 0: expected a list of tokens"),
    ],
    ids=repr,
)
def test_bad_training_data_is_refused(inputs, labels, error, message):
    with pytest.raises(error, match=message):
        Tagger().fit(inputs, labels)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"C": 0}, ValueError, "C must be a positive"),
        ({"C": -1.0}, ValueError, "C must be a positive"),
        ({"C": float("nan")}, ValueError, "C must be a positive"),
        ({"C": float("inf")}, ValueError, "C must be a positive"),
        ({"C": "1"}, ValueError, "C must be a positive"),
        ({"C": None}, ValueError, "C must be a positive"),
        ({"solver": "simplex"}, ValueError, "unknown solver 'simplex'; known are"),
        ({"solver": None}, ValueError, "unknown solver"),
        ({"loss": "hinge loss"}, ValueError, "unknown loss 'hinge loss'; known are"),
        ({"penalty": "l3"}, ValueError, "unknown penalty 'l3'; known are"),
        ({"penalty": "elasticnet", "solver": "owlqn", "l1_ratio": 2.0}, ValueError, "l1_ratio"),
        ({"penalty": "l1", "solver": "lbfgs"}, ValueError, "owlqn"),
        ({"penalty": "elasticnet", "solver": "lbfgs"}, ValueError, "owlqn"),
        ({"transitions": "some"}, ValueError, "transitions must be one of"),
        ({"weights": "some"}, ValueError, "weights must be one of"),
        ({"features": "embedding"}, ValueError, "features must be one of"),
        ({"n_bits": 0}, ValueError, "n_bits"),
        ({"n_bits": 31}, ValueError, "n_bits"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"n_jobs": 1.5}, ValueError, "n_jobs"),
        ({"max_iter": -1}, ValueError, "max_iter"),
        ({"max_iter": 2.5}, ValueError, "max_iter"),
        ({"tol": -1e-3}, ValueError, "tol"),
        ({"tol": float("nan")}, ValueError, "tol"),
        ({"tol": "small"}, ValueError, "tol"),
        ({"patience": 0}, ValueError, "patience"),
        ({"random_state": "seed", "solver": "sgd"}, ValueError, "random_state"),
        ({"constraints": [("A", "B")]}, TypeError, "constraints must be a Constraints object"),
        ({"constraints": Constraints(forbidden_start=["A", "B"])}, ValueError, "every label"),
        ({"template": "U0:%x[0,0]"}, TypeError, "template must be a Template"),
    ],
    ids=repr,
)
def test_bad_parameters_are_refused(parameters, error, message):
    with pytest.raises(error, match=message):
        Tagger(**parameters).fit(X, Y)


def test_a_template_needs_its_columns():
    with pytest.raises(ValueError, match="template needs column 1"):
        Tagger(template=Template.parse("U:%x[0,1]")).fit([[("a",), ("b",)]], [["A", "B"]])


@pytest.mark.parametrize(
    ("dev", "message"),
    [
        ((X, Y[:1]), "2 sequences in X, 1 in y"),
        ((X, [[None, None], [None]]), "no known label"),
    ],
)
def test_bad_held_out_data_is_refused(dev, message):
    with pytest.raises(ValueError, match=message):
        Tagger().fit(X, Y, dev=dev)


def test_partial_fit_needs_an_online_solver_and_the_classes_named():
    with pytest.raises(ValueError, match="partial_fit needs an online solver"):
        Tagger().partial_fit(X, Y)
    with pytest.raises(ValueError, match="'B', which is not in classes"):
        Tagger(solver="sgd").partial_fit(X, Y, classes=["A", "C"])


# --------------------------------------------------------------------------------------------- predict


@pytest.mark.parametrize("model", [Tagger(), HMM()], ids=["Tagger", "HMM"])
@pytest.mark.parametrize("verb", ["predict", "predict_marginals", "score"])
def test_a_model_that_is_not_fitted_says_so(model, verb):
    arguments = (X, Y) if verb == "score" else (X,)
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(model, verb)(*arguments)


@pytest.mark.parametrize("attribute", ["transitions_", "start_", "end_"])
def test_fitted_attributes_need_a_fit(attribute):
    with pytest.raises((NotFittedError, AttributeError)):
        getattr(Tagger(), attribute)
    with pytest.raises(NotFittedError):
        mercer.save(Tagger(), "/nonexistent/never")


def test_empty_sequences_get_empty_results(fitted, numeric):
    assert fitted.predict([]) == []
    assert fitted.predict([[], X[0], []])[::2] == [[], []]
    assert [m.shape for m in fitted.predict_marginals([[], X[1]])] == [(0, 2), (1, 2)]
    assert fitted.log_likelihood([[]], [[]]).tolist() == [0.0]
    assert fitted.k_best([[]], 2) == [[([], 0.0)]]
    assert fitted.sample([[]], 2) == [[[], []]]
    assert fitted.entropy([]).shape == (0,)
    assert numeric.predict([]) == []
    assert numeric.predict([np.zeros((0, 2)), NUMBERS[1]])[0] == []


def test_empty_sequences_do_not_disturb_training():
    for solver in ("lbfgs", "owlqn", "averaged-perceptron", "passive-aggressive", "sgd"):
        kwargs = {"solver": solver, "random_state": 0, "max_iter": 30}
        with_empty = Tagger(**kwargs).fit([[], *X, []], [[], *Y, []])
        assert with_empty.predict(X) == Tagger(**kwargs).fit(X, Y).predict(X)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([np.zeros((2, 3))], "X has 3 features, the model has 2"),
        ([csr_matrix((2, 1))], "X has 1 features, the model has 2"),
        (Sequences(np.zeros((2, 3))), "X has 3 features, the model has 2"),
        ([np.array([[np.nan, 0.0]])], "finite"),
    ],
    ids=str,
)
def test_inputs_of_another_shape_are_refused(numeric, inputs, message):
    with pytest.raises(ValueError, match=message):
        numeric.predict(inputs)


def test_names_are_not_numbers(fitted, numeric):
    with pytest.raises(TypeError, match="trained on numeric features"):
        numeric.predict(X)
    with pytest.raises(ValueError, match="features"):
        fitted.predict([np.zeros((2, 7))])


def test_an_unknown_label_has_no_likelihood_and_is_never_met(fitted):
    with pytest.raises(ValueError, match="sequence 1, position 0: unknown label 'Z'; known are 'A', 'B'"):
        fitted.log_likelihood(X, [["A", "B"], ["Z"]])
    assert fitted.score(X, [fitted.predict(X)[0], ["Z"]]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("verb", ["score", "log_likelihood"])
def test_labels_that_do_not_fit_are_refused(fitted, verb):
    with pytest.raises(ValueError, match="sequence 1 has 1 positions in X and 2 labels in y"):
        getattr(fitted, verb)(X, [["A", "B"], ["A", "B"]])
    with pytest.raises(ValueError, match="2 sequences in X, 1 in y"):
        getattr(fitted, verb)(X, Y[:1])


def test_a_score_needs_a_known_label(fitted):
    with pytest.raises(ValueError, match="no known label"):
        fitted.score(X, [[None, None], [None]])


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "2"])
def test_numbers_of_answers_must_be_positive_integers(fitted, k):
    with pytest.raises(ValueError, match="k must be"):
        fitted.k_best(X, k)
    with pytest.raises(ValueError, match="n_samples must be"):
        fitted.sample(X, k)
    with pytest.raises(ValueError, match="n must be"):
        fitted.top_features(k, label="A")


def test_bad_numbers_of_threads_are_refused_at_prediction(fitted):
    with pytest.raises(ValueError, match="n_jobs"):
        Tagger(max_iter=2, tol=1.0).fit(X, Y).set_params(n_jobs=0).predict(X)


# ----------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.999])
def test_half_a_model_file_is_refused(fitted, share, tmp_path):
    path = tmp_path / "model"
    mercer.save(fitted, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ModelFileError, match="model"):
        mercer.load(path)


@pytest.mark.parametrize("existed", [False, True])
def test_a_full_disk_leaves_the_old_file(fitted, existed, tmp_path, monkeypatch):
    path = tmp_path / "model"
    if existed:
        mercer.save(fitted, path)
    before = path.read_bytes() if existed else None

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        mercer.save(fitted, path)
    assert caught.value.errno == errno.ENOSPC
    assert os.listdir(tmp_path) == (["model"] if existed else [])
    if existed:
        assert path.read_bytes() == before


def test_a_full_disk_does_not_lose_a_training(tmp_path, monkeypatch):
    """A checkpoint that cannot be written is a warning, not half a file, and training goes on."""
    from mercer.learning import Checkpoint

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        model = Tagger().fit(X, Y, checkpoint=Checkpoint(tmp_path / "run", every=0))
    np.testing.assert_array_equal(model.coef_, Tagger().fit(X, Y).coef_)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_device_is_no_place_for_a_model(fitted):
    with pytest.raises(OSError, match="regular file"):
        mercer.save(fitted, "/dev/full")


def test_a_model_whose_parts_do_not_fit_is_refused(fitted, tmp_path):
    """A file that is whole and yet makes no sense."""
    from mercer._state.container import write_file

    meta, arrays = fitted.to_state()
    path = tmp_path / "model"
    learnt = meta["fitted"]

    def other(**changed):
        return {**meta, "fitted": {**learnt, **changed}}

    def labels(*names):
        return {**learnt["_labels"], "params": {"classes": {"kind": "list", "items": names}}}

    names = learnt["index_"]["fitted"]["_names"]["offsets"]
    bad = [
        (meta, {**arrays, "coef_": arrays["coef_"][:-1]}),
        (meta, {**arrays, "coef_": np.full_like(arrays["coef_"], np.nan)}),
        (other(_labels=labels("A")), arrays),
        (other(_labels=labels("A", "A")), arrays),
        (other(n_features_in_=1), arrays),
        (other(n_features_in_="many"), arrays),
        (other(surprise=1), arrays),
        ({**meta, "params": {**meta["params"], "surprise": 1}}, arrays),
        ({**meta, "version": 0}, arrays),
        ({**meta, "fitted": {k: v for k, v in learnt.items() if k != "history_"}}, arrays),
        (meta, {k: v for k, v in arrays.items() if k != "coef_"}),
        (meta, {**arrays, names: arrays[names][::-1].copy()}),
    ]
    for number, (m, a) in enumerate(bad):
        write_file(path, "Tagger", m, a)
        try:
            mercer.load(path)
        except ModelFileError:
            continue
        pytest.fail(f"case {number} was taken")


def test_a_template_with_bigram_features_needs_transitions_from_features():
    template = Template.parse("U0:%x[0,0]\nB1:%x[0,0]")
    with pytest.raises(ValueError, match="transitions='features'"):
        Tagger(template=template).fit([[("a",), ("b",)]], [["A", "B"]])


def test_sequences_of_another_vocabulary_are_refused():
    X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["B", "A"]]
    tagger = Tagger().fit(X, y)
    other = FeatureIndex().learn([[["c"], ["d"]]])
    with pytest.raises(ValueError, match="another feature index"):
        tagger.predict(other)
    with pytest.raises(ValueError, match="different feature indices"):
        Sequences.concatenate([FeatureIndex().learn(X), other])


def test_a_warm_start_with_other_kinds_of_features_is_refused():
    tagger = Tagger(warm_start=True).fit([[[1.0], [0.0]], [[0.0], [1.0]]], [["A", "B"], ["B", "A"]])
    with pytest.raises(ValueError, match="other features"):
        tagger.fit([[["a"], ["b"]]], [["A", "B"]])


def test_numbers_are_recognised_behind_an_empty_first_sequence():
    X = [np.zeros((0, 1)), np.array([[1.0], [0.0]])]
    tagger = Tagger(C=10.0).fit(X, [[], ["A", "B"]])
    assert tagger.predict(X) == [[], ["A", "B"]]


@pytest.mark.parametrize("solver", ["lbfgs", "sgd", "averaged-perceptron"])
def test_overflowing_scores_are_an_error_that_says_what_to_do(solver):
    X = [np.array([[1e200], [-1e200]]), np.array([[-1e200], [1e200]])] * 5
    with pytest.raises(ValueError, match="scale the features"):
        Tagger(solver=solver, random_state=0).fit(X, [["A", "B"], ["B", "A"]] * 5)
