"""Every kind of model is served, or refused with a reason; what is served answers as the model itself."""

from __future__ import annotations

import asyncio
import functools
import json
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

pytest.importorskip("starlette", reason="the extra serve is not installed")
orjson = pytest.importorskip("orjson", reason="the extra serve is not installed")

from fuzz.engine import REFUSED as EXPLAINED  # noqa: E402
from fuzz.requests import Requests  # noqa: E402
from mercer._state.registry import MODELS  # noqa: E402
from mercer.data.alignments import Alignment  # noqa: E402
from mercer.serve import app  # noqa: E402
from mercer.serve.forms import Limits, form_of_objects  # noqa: E402
from mercer.serve.kinds import INPUTS, REFUSED, answerer, plain  # noqa: E402
from reference.model_zoo import IMAGES, PAIRS, POINTS, SEQUENCES, TEXTS, WORDS, ZOO  # noqa: E402
from serve.calls import ask, call  # noqa: E402


def test_the_tables_have_every_kind() -> None:
    assert set(INPUTS) | set(REFUSED) == set(MODELS)
    assert not set(INPUTS) & set(REFUSED)


@pytest.mark.parametrize("kind", REFUSED)
def test_kinds_that_are_not_served_say_why(kind: str) -> None:
    with pytest.raises(ValueError, match=f"a {kind} is not served: {REFUSED[kind]}"):
        app({"m": ZOO[kind].fit()})


@functools.cache
def fitted(kind: str) -> Any:
    return ZOO[kind].fit()


def as_json(value: Any) -> Any:
    return json.loads(orjson.dumps(plain(value), default=plain, option=orjson.OPT_SERIALIZE_NUMPY))


def same(a: Any, b: Any) -> bool:
    """Equal, but for the last digits of numbers: sums over joined requests are rounded in another order."""
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=1e-9, atol=1e-12))
    return a == b


def asked(answers: Any, verb: str, X: Any) -> tuple[Any, str | None]:
    """What the model answers directly, or what it says of a verb that it does not have in this setting."""
    try:
        return as_json(answers.ask(verb, X)), None
    except (ValueError, AttributeError) as error:
        return None, str(error).splitlines()[0]


@pytest.mark.parametrize("kind", INPUTS)
def test_answers_are_those_of_the_model(kind: str) -> None:
    """All verbs of a model, over HTTP and called directly, for its example three times, and joined with others."""
    model = fitted(kind)
    served = app({"m": model}, reload_seconds=0)
    served.begin()
    answers = answerer(model)
    instances = answers.example() * 3
    X = answers.form.read(model, instances, Limits())

    async def all_verbs() -> list[Any]:
        path = "/v1/models/m:"
        verbs = ["predict", *answers.verbs]
        return await asyncio.gather(*(call(served, "POST", path + verb, {"instances": instances}) for verb in verbs))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, *found = asyncio.run(all_verbs())
        served.end()
        assert first.status == 200, first.body
        for verb, answer in zip(answers.verbs, found, strict=True):
            direct, refusal = asked(answers, verb, X)
            if refusal is not None:
                assert (answer.status, answer.message) == (422, refusal)
                continue
            assert answer.status == 200, answer.body
            assert same(answer.json[verb if verb != "predict" else "predictions"], direct)
            if verb == answers.verbs[0]:
                assert same(first.json["predictions"], direct)


@pytest.mark.parametrize("kind", INPUTS)
def test_changed_requests_are_answered_or_refused_with_a_reason(kind: str) -> None:
    """`make fuzz` draws others."""
    target = Requests(kind)
    target.answers[kind] = answerer(fitted(kind))
    for number in range(4):
        case = target.case(18, number)
        assert target.run(case) in (None, EXPLAINED), case


NATURAL = {
    "Tagger": (SEQUENCES, [x.tolist() for x in SEQUENCES]),
    "Segmenter": (SEQUENCES, [x.tolist() for x in SEQUENCES]),
    "HiddenMarkovModel": ([list(w) for w in WORDS], [list(w) for w in WORDS]),
    "HashedClassifier": (TEXTS, TEXTS),
    "KernelSVC": (POINTS, POINTS.tolist()),
    "LinearClassifier": (POINTS, POINTS.tolist()),
    "GridLabeler": (IMAGES, [x.tolist() for x in IMAGES]),
    "Aligner": (PAIRS, [list(pair) for pair in PAIRS]),
    "Parser": ([["dogs", "bark"]], [["dogs", "bark"]]),
    "MeanMap": (POINTS, POINTS.tolist()),
}


@pytest.mark.parametrize("kind", NATURAL)
def test_json_means_what_python_means(kind: str) -> None:
    """What a Python user gives to ``predict``, and the same written as JSON."""
    X, instances = NATURAL[kind]
    model = ZOO[kind].fit()
    served = app({"m": model}, reload_seconds=0)
    served.begin()
    answer = ask(served, "POST", "/v1/models/m:predict", {"instances": instances})
    served.end()
    assert answer.status == 200, answer.body
    assert same(answer.json["predictions"], as_json(model.predict(X)))


def test_every_kind_says_what_it_takes() -> None:
    models = {kind: ZOO[kind].fit() for kind in ("Tagger", "KernelSVC", "GridLabeler", "CCA", "TableEncoder")}
    served = app(models, reload_seconds=0)
    served.begin()
    for kind in models:
        said = ask(served, "GET", f"/v1/models/{kind}").json
        assert said["kind"] == kind
        answer = ask(served, "POST", f"/v1/models/{kind}:predict", {"instances": [None]})
        assert answer.status == 422
        assert answer.message.startswith("instances[0] must be")
        assert answer.json["error"]["takes"] == said["input"]["says"]
        assert answer.json["error"]["example"] == said["example"]
        assert ask(served, "POST", f"/v1/models/{kind}:predict", said["example"]).status == 200
    served.end()


def test_registration_retrieval_and_shares_have_verbs_of_their_own() -> None:
    models = {kind: ZOO[kind].fit() for kind in ("ICP", "SignProjection", "MeanMap")}
    served = app(models, reload_seconds=0)
    served.begin()
    rng = np.random.default_rng(0)
    source = rng.normal(size=(60, 3)) * [3, 2, 1]
    moved = ask(
        served, "POST", "/v1/models/ICP:register", {"source": source.tolist(), "target": (source + 0.1).tolist()}
    ).json
    assert np.allclose(moved["moved"], source + 0.1, atol=1e-6)
    assert moved["fitness"] == 1.0
    rows = POINTS.tolist()
    near = ask(served, "POST", "/v1/models/SignProjection:nearest", {"instances": rows[:2], "among": rows, "k": 3}).json
    assert [found[0]["distance"] for found in near["nearest"]] == [0, 0]
    groups = ["a"] * 12 + ["b"] * 12
    shares = ask(served, "POST", "/v1/models/MeanMap:shares", {"instances": rows, "groups": groups}).json
    assert shares["groups"]["a"]["rows"] == 12
    assert shares["predictions"] == models["MeanMap"].predict(POINTS).tolist()
    assert sum(shares["shares"].values()) == pytest.approx(1.0)
    for path, body in (
        ("ICP:register", {"source": [[0, "x"]], "target": []}),
        ("ICP:register", {"source": [[0.0, 1.0, 2.0]]}),
        ("SignProjection:nearest", {"instances": rows, "among": rows, "k": 0}),
        ("MeanMap:shares", {"instances": rows, "groups": ["a"]}),
    ):
        assert ask(served, "POST", f"/v1/models/{path}", body).status == 422
    served.end()


def test_machines_whose_objects_are_whole_numbers_take_names() -> None:
    assert form_of_objects([3, 5]).name == form_of_objects(np.arange(3)).name == "names"
    assert form_of_objects([0.5]).name == form_of_objects(None).name == form_of_objects([]).name == "rows"


class Sequence(list):  # type: ignore[type-arg]
    """A list of another type, as models may return."""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        ("a", "a"),
        (3, 3),
        (0.5, 0.5),
        (float("nan"), None),
        (float("-inf"), None),
        (np.float64("inf"), None),
        (np.int64(4), 4),
        (np.bool_(True), True),
        (np.str_("b"), "b"),
        (np.array(2.5), 2.5),
        (np.array(["x", "y"]), ["x", "y"]),
        (np.array([[1, 2], [3, 4]])[:, ::-1], [[2, 1], [4, 3]]),
        (np.array([0.5, np.nan]), [0.5, None]),
        ((1, "a", None), [1, "a", None]),
        ([1, "a", None], [1, "a", None]),
        ([0.5, np.float64("nan")], [0.5, None]),
        (Sequence([1, 2]), [1, 2]),
        ({"only"}, ["only"]),
        ({1: np.array([1.0]), "b": (np.nan,)}, {"1": [1.0], "b": [None]}),
        (range, "<class 'range'>"),
    ],
    ids=repr,
)
def test_values_are_written_as_json_has_them(value: Any, expected: Any) -> None:
    assert as_json(value) == expected


def test_lists_of_json_values_are_not_copied_and_others_are() -> None:
    words, numbers = ["a", None, 3, True], [0.5, 1.0]
    assert plain(words) is words
    assert plain(numbers) is not numbers
    assert type(plain(Sequence(["a"]))) is list
    assert type(plain(np.array(3))) is int


def test_sparse_rows_and_alignments_are_written_as_objects() -> None:
    matrix = csr_matrix(np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]]))
    assert as_json(matrix) == [
        {"columns": [1], "values": [2.0]}, {"columns": [], "values": []}, {"columns": [0, 2], "values": [1.0, 3.0]},
    ]  # fmt: skip
    alignment = Alignment("GAT", "GT", [(0, 0), (2, 1)], score=1.5)
    assert as_json(alignment) == {"pairs": [[0, 0], [2, 1]], "score": 1.5, "rows": ["GAT", "G-T"]}
