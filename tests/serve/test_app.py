"""The application: options, content types, who may ask, limits, and what callers are told."""

from __future__ import annotations

import asyncio
import base64
import gzip
import io
import json
import re
import struct
import threading
import zlib
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("orjson", reason="the extra serve is not installed")

from mercer.classification import LinearClassifier
from mercer.kernel_methods import KernelSVC
from mercer.kernels import NGram
from mercer.labeling import GridLabeler
from mercer.report.labellings import _png_rgb
from mercer.serve import Limits, app
from mercer.serve.images import decode_png
from mercer.serve.metrics import Metrics
from mercer.tagging import Tagger
from serve.calls import ask, call

SENTENCES = [["Ada", "wrote", "programs"], ["Bob", "saw", "Ada"], ["The", "cat", "saw", "Bob"]]
TAGS = [["B-PER", "O", "O"], ["B-PER", "O", "B-PER"], ["O", "O", "O", "B-PER"]]
POINTS = np.array([[0.0, 1.0], [0.5, 0.0], [3.0, 1.0], [4.0, 0.0]])


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return Tagger(C=10.0).fit(SENTENCES * 4, TAGS * 4)


@pytest.fixture(scope="module")
def rows() -> LinearClassifier:
    return LinearClassifier().fit(POINTS, ["low", "low", "high", "high"])


@pytest.fixture(scope="module")
def served(tagger: Tagger, rows: LinearClassifier) -> Any:
    words = KernelSVC(NGram(2)).fit(["abab", "abba", "bbbb", "bbab"], [0, 0, 1, 1])
    mask = np.where(np.arange(8) < 4, 0, 1)[None].repeat(8, 0)
    images = [200.0 * mask + np.random.default_rng(k).normal(size=mask.shape) for k in range(3)]
    grid = GridLabeler(block=2, max_iter=10, random_state=0).fit(images, [mask] * 3)
    made = app({"tagger": tagger, "rows": rows, "words": words, "grid": grid}, reload_seconds=0)
    made.begin()
    yield made
    made.end()


def predict(served: Any, body: Any, model: str = "tagger", **more: Any) -> Any:
    return ask(served, "POST", f"/v1/models/{model}:predict", body, **more)


def test_options_of_a_tagger(served: Any, tagger: Tagger) -> None:
    answer = predict(
        served,
        {"instances": SENTENCES[:2], "probabilities": True, "k_best": 2, "explain": 3, "outputs": ["entropy"]},
    )
    said = answer.json
    assert said["predictions"] == tagger.predict(SENTENCES[:2])
    assert np.allclose(said["probabilities"][1], tagger.predict_marginals(SENTENCES[:2])[1])
    assert said["classes"] == ["B-PER", "O"]
    best = tagger.k_best(SENTENCES[:2], 2)
    assert [one["output"] for one in said["k_best"][0]] == [labels for labels, _ in best[0]]
    assert said["k_best"][0][0]["score"] == pytest.approx(best[0][0][1])
    assert said["explanations"][0]["terms"][0]["name"] == tagger.explain(SENTENCES[0], 3).terms[0].name
    assert np.allclose(said["entropy"], tagger.entropy(SENTENCES[:2]))
    assert said["model"] == "tagger"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "the body is empty"),
        (b"{", 400, "the body is not JSON"),
        (b'{"instances": [["\xff"]]}', 400, "the body is not JSON"),
        (b"[]", 422, "the body must be an object"),
        ({}, 422, '"instances" is missing'),
        ({"instances": "Ada"}, 422, '"instances" must be an array'),
        ({"instances": []}, 422, '"instances" is empty'),
        ({"instances": [[]]}, 422, r"instances\[0\] is empty"),
        ({"instances": [["Ada"], "Bob"]}, 422, r"instances\[1\] must be an array of positions"),
        ({"instances": [["Ada", 3]]}, 422, r"instances\[0\] must contain positions of one kind, but \[1\] is a number"),
        (b'{"instances": [[NaN]]}', 400, "the body is not JSON"),
        ({"instances": [["a"] * 11]}, 413, r"instances\[0\] has 11 positions, at most 10"),
        ({"instances": [["a"]] * 6}, 413, "too many instances: 6"),
        ({"instances": [["a"]], "k_best": 0}, 422, '"k_best" must be an integer from 1 to 100'),
        ({"instances": [["a"]], "k_best": True}, 422, '"k_best" must be'),
        ({"instances": [["a"]], "probabilities": 1}, 422, '"probabilities" must be true or false'),
        ({"instances": [["a"]], "scores": True}, 422, "has no decision function"),
        ({"instances": [["a"]], "outputs": ["fit"]}, 422, '"outputs": this model supports'),
        ({"instances": [["a"]], "probability": True}, 422, "unknown field 'probability'"),
        (b'{"instances": ' + b"[" * 5000 + b"]" * 5000 + b"}", (400, 422), ""),
    ],
)
def test_bad_requests_say_what_is_wrong(tagger: Tagger, body: Any, status: Any, message: str) -> None:
    served = app({"tagger": tagger}, limits=Limits(instances=5, length=10), reload_seconds=0)
    answer = predict(served, body)
    assert answer.status in (status if isinstance(status, tuple) else (status,))
    assert re.search(message, answer.message)
    served.end()


def test_what_the_model_says_about_its_input_reaches_the_caller(served: Any) -> None:
    answer = predict(served, {"instances": [[1.0, 2.0, 3.0]]}, "rows")
    assert (answer.status, answer.message) == (422, "instances[0] has 3 numbers, this model takes 2")
    assert answer.json["error"]["example"] == {"instances": [[0.0, 0.1]]}
    assert predict(served, {"instances": [[1.0, None]]}, "rows").message.endswith("but [1] is null")
    assert predict(served, {"instances": [[1.0, "2"]]}, "rows").message.endswith("but [1] is a string")
    assert predict(served, {"instances": ["aba"], "probabilities": True}, "words").status == 422


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/models/nobody:predict", 404),
        ("POST", "/v1/models/tagger:fit", 404),
        ("POST", "/v1/models/tagger:__init__", 404),
        ("POST", "/v1/models/tagger", 405),
        ("GET", "/v1/models/tagger:predict", 404),
        ("DELETE", "/v1/models", 405),
        ("GET", "/nothing", 404),
        ("GET", "/static/../app.py", 404),
        ("GET", "/static/..%2fapp.py", 404),
        ("GET", "/v1/models/../../etc/passwd", 404),
        ("POST", "/v2/models/tagger/versions/9/infer", 404),
    ],
)
def test_paths_that_there_are_not(served: Any, method: str, path: str, status: int) -> None:
    answer = ask(served, method, path, {"instances": [["a"]]} if method == "POST" else b"")
    assert answer.status == status
    assert "Traceback" not in answer.body.decode()


# -------------------------------------------------------------------------------------------------------- content types


def test_rows_come_as_npy_csv_and_arrow(served: Any, rows: LinearClassifier) -> None:
    expected = rows.predict(POINTS).tolist()
    buffer = io.BytesIO()
    np.save(buffer, POINTS)
    kind = {"content-type": "application/x-npy"}
    answer = ask(served, "POST", "/v1/models/rows:predict?scores=true", buffer.getvalue(), kind)
    assert answer.json["predictions"] == expected
    assert np.allclose(answer.json["scores"], rows.decision_function(POINTS))
    accepted = ask(
        served, "POST", "/v1/models/rows:decision_function", buffer.getvalue(), {**kind, "accept": "application/x-npy"}
    )
    assert np.allclose(np.load(io.BytesIO(accepted.body)), rows.decision_function(POINTS))
    for broken in (b"", b"\x93NUMPY", buffer.getvalue()[:-3], b"x" * 100):
        assert ask(served, "POST", "/v1/models/rows:predict", broken, kind).status == 400
    held = np.array([{"a": 1}], dtype=object)
    pickled = io.BytesIO()
    np.save(pickled, held, allow_pickle=True)
    assert ask(served, "POST", "/v1/models/rows:predict", pickled.getvalue(), kind).status == 400


def test_csv_by_the_names_of_the_features() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(POINTS, columns=["width", "height"])
    model = LinearClassifier().fit(frame, ["low", "low", "high", "high"])
    served = app({"m": model}, reload_seconds=0)
    table = b"height,name,width\n1,x,0\n0,y,4\n"
    answer = predict(served, table, "m", headers={"content-type": "text/csv; charset=utf-8"})
    assert answer.json["predictions"] == ["low", "high"]
    assert predict(served, b"height\n1\n", "m", headers={"content-type": "text/csv"}).message.startswith(
        "instances[0] has no 'width'"
    )
    assert predict(served, b"a,b\n1\n", "m", headers={"content-type": "text/csv"}).status == 422
    assert predict(served, b"\xff\xfe", "m", headers={"content-type": "text/csv"}).status == 400
    assert predict(served, b"<a/>", "m", headers={"content-type": "text/xml"}).status == 415
    served.end()


def test_sentences_come_as_arrow(served: Any, tagger: Tagger) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"tokens": SENTENCES})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    kind = {"content-type": "application/vnd.apache.arrow.stream"}
    assert predict(served, sink.getvalue(), headers=kind).json["predictions"] == tagger.predict(SENTENCES)
    assert predict(served, sink.getvalue()[:60], headers=kind).status == 400
    accepted = predict(served, sink.getvalue(), headers={**kind, "accept": kind["content-type"]})
    assert accepted.status == 200
    assert pa.ipc.open_stream(accepted.body).read_all().to_pydict() == {"predictions": tagger.predict(SENTENCES)}


def test_answers_of_rows_go_as_arrow(served: Any, rows: LinearClassifier) -> None:
    pa = pytest.importorskip("pyarrow")
    body = {"instances": POINTS.tolist(), "scores": True}
    answer = predict(served, body, "rows", headers={"accept": "application/vnd.apache.arrow.stream"})
    table = pa.ipc.open_stream(answer.body).read_all().to_pydict()
    assert table["predictions"] == rows.predict(POINTS).tolist()
    assert np.allclose(table["scores"], rows.decision_function(POINTS))


def test_images_come_as_png(served: Any) -> None:
    picture = np.zeros((8, 8, 3))
    picture[:, 4:] = 200
    png = base64.b64encode(_png_rgb(picture)).decode()
    by_png = predict(served, {"instances": [{"png": png}]}, "grid")
    by_rows = predict(served, {"instances": [picture[:, :, 0].tolist()]}, "grid")
    assert by_png.json["predictions"] == by_rows.json["predictions"]
    assert np.asarray(by_png.json["predictions"][0]).tolist() == [[0] * 4 + [1] * 4] * 8
    for wrong in ({"png": "x"}, {"png": base64.b64encode(b"GIF89a").decode()}, {"jpg": ""}, 3, [[1, "a"]], []):
        assert predict(served, {"instances": [wrong]}, "grid").status == 422


def test_png_images_of_all_kinds_are_read_as_a_library_reads_them() -> None:
    image_module = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    smooth = np.add.outer(np.arange(13), np.arange(17)) * 7 % 256
    for mode, channels in (("L", 0), ("RGB", 3), ("1", 0), ("P", 0)):
        pixels = smooth if not channels else np.stack([smooth, smooth.T[:13, :13].sum() % 255 + 0 * smooth, smooth], 2)
        source = image_module.fromarray(pixels.astype(np.uint8)).convert(mode)
        buffer = io.BytesIO()
        source.save(buffer, "PNG")
        wanted = np.asarray(source.convert("RGB") if mode == "P" else source.convert("L" if not channels else "RGB"))
        assert np.array_equal(decode_png(buffer.getvalue()), wanted)
    noise = image_module.fromarray(rng.integers(0, 255, (9, 5, 4)).astype(np.uint8))
    buffer = io.BytesIO()
    noise.save(buffer, "PNG")
    white = image_module.new("RGBA", noise.size, (255, 255, 255, 255))
    white.alpha_composite(noise)
    assert np.abs(decode_png(buffer.getvalue()) - np.asarray(white.convert("RGB"))).max() <= 1.0
    whole = buffer.getvalue()
    for broken in (whole[:40], whole[:-30], whole.replace(b"IDAT", b"IDAX"), whole[:16] + b"\xff" * 8 + whole[24:]):
        with pytest.raises(ValueError, match="PNG"):
            decode_png(broken)


# ---------------------------------------------------------------------------------------------------------- who may ask


def test_a_token_is_needed_where_there_is_one(tagger: Tagger) -> None:
    served = app({"tagger": tagger}, token="a-token-nobody-guesses", reload_seconds=0)
    body = {"instances": SENTENCES}
    right = {"authorization": "Bearer a-token-nobody-guesses"}
    assert predict(served, body, headers=right).status == 200
    for wrong in ({}, {"authorization": "Bearer x"}, {"authorization": "Basic a-token-nobody-guesses"}, {"x": "é"}):
        answer = predict(served, body, headers=wrong)
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert ask(served, "GET", "/v1/models", headers=wrong).status == 401
        assert ask(served, "GET", "/metrics", headers=wrong).status == 401
    for path in ("/", "/health", "/ready", "/v2/health/ready"):
        assert ask(served, "GET", path).status == 200
    served.end()


def test_hosts_and_origins_that_are_not_ours_are_refused(tagger: Tagger) -> None:
    served = app({"tagger": tagger}, hosts=["localhost", "[::1]"], origins=["https://ours.example"], reload_seconds=0)
    for host, status in (("localhost:8000", 200), ("[::1]:8000", 200), ("evil.example", 421), ("", 421)):
        assert ask(served, "GET", "/health", headers={"host": host}).status == status
    body = {"instances": SENTENCES}
    assert predict(served, body, headers={"origin": "https://evil.example"}).status == 403
    same = predict(served, body, headers={"origin": "http://localhost:8000", "host": "localhost:8000"})
    assert same.status == 200
    assert "access-control-allow-origin" not in same.headers
    ours = predict(served, body, headers={"origin": "https://ours.example"})
    assert ours.headers["access-control-allow-origin"] == "https://ours.example"
    before = ask(served, "OPTIONS", "/v1/models/tagger:predict", headers={"origin": "https://ours.example"})
    assert before.status == 204
    served.end()


def test_bodies_beyond_the_limit_are_refused_before_they_are_read(tagger: Tagger) -> None:
    served = app({"tagger": tagger}, limits=Limits(body=1000), reload_seconds=0)
    long = {"instances": [["word"] * 1000]}
    assert predict(served, long, headers={"content-length": "6000"}).status == 413
    assert predict(served, long, parts=9).status == 413
    assert predict(served, {"instances": SENTENCES}, parts=9).status == 200
    served.end()


# ------------------------------------------------------------------------------------------ queues, time, failures


def test_slow_models_give_503_and_504_and_callers_that_leave_are_dropped(rows: LinearClassifier) -> None:
    go, begun = threading.Event(), threading.Event()
    served = app({"m": rows}, max_queue=2, limits=Limits(seconds=0.3), reload_seconds=0)
    served.begin()
    answers = served.store.get("m").answers
    predicted = []

    def slow(verb: str, X: Any) -> Any:
        begun.set()
        go.wait(20)
        predicted.append(len(X))
        return answers.model.predict(X)

    object.__setattr__(answers, "ask", slow)
    body = {"instances": [[0.0, 1.0]]}

    async def run() -> list[Any]:
        first = asyncio.create_task(call(served, "POST", "/v1/models/m:predict", body))
        await asyncio.to_thread(begun.wait, 20)
        second = asyncio.create_task(call(served, "POST", "/v1/models/m:predict", body))
        await asyncio.sleep(0.02)
        third = await call(served, "POST", "/v1/models/m:predict", body)
        found = [await first, await second, third]
        go.set()
        while served.batchers["m"].waiting:
            await asyncio.sleep(0.01)
        return [*found, await call(served, "POST", "/v1/models/m:predict", body)]

    first, second, third, last = asyncio.run(run())
    assert (first.status, second.status, third.status, last.status) == (504, 504, 503, 200)
    assert third.headers["retry-after"] == "1"
    assert predicted == [1, 1]  # the second had waited in vain and was not predicted
    served.end()


def test_a_failure_of_ours_tells_nothing_but_a_reference(tagger: Tagger) -> None:
    log: list[Any] = []
    served = app({"tagger": tagger}, reload_seconds=0)
    served.log = lambda level, event, **facts: log.append((level, event, facts))
    served.begin()

    def fail(verb: str, X: Any) -> Any:
        raise KeyError("/folder/of/somebody/secret")

    object.__setattr__(served.store.get("tagger").answers, "ask", fail)
    answer = predict(served, {"instances": SENTENCES})
    assert answer.status == 500
    assert "secret" not in answer.body.decode()
    (_, _, facts) = log[-1]
    assert facts["reference"] in answer.message
    assert "secret" in facts["error"]
    served.end()


def test_a_thousand_callers_at_once_get_their_own_answers(served: Any, tagger: Tagger) -> None:
    """Sentences of their own and options of three kinds."""
    words = ["Ada", "Bob", "cat", "saw", "The", "wrote"]
    random = np.random.default_rng(0)
    asked = [[str(w) for w in random.choice(words, size=random.integers(1, 6))] for _ in range(300)]
    options = [{}, {"probabilities": True}, {"k_best": 2}]

    async def one(i: int) -> Any:
        while True:
            body = {"instances": [asked[i]], **options[i % 3]}
            answer = await call(served, "POST", "/v1/models/tagger:predict", body)
            if answer.status != 503:
                return answer.json
            await asyncio.sleep(0.005)

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(one(i) for i in range(len(asked))))

    expected, marginals = tagger.predict(asked), tagger.predict_marginals(asked)
    found = asyncio.run(all_of_them())
    for i, said in enumerate(found):
        assert said["predictions"] == [expected[i]]
        assert ("probabilities" in said, "k_best" in said) == (i % 3 == 1, i % 3 == 2)
        if i % 3 == 1:
            assert np.allclose(said["probabilities"][0], marginals[i])
    assert served.batchers["tagger"].batched > served.batchers["tagger"].batches


# ------------------------------------------------------------------------------------------------ what else it answers


def test_metrics_count_and_openapi_names_every_path(served: Any) -> None:
    text = ask(served, "GET", "/metrics").body.decode()
    assert 'mercer_requests_total{model="tagger",status="200"}' in text
    assert 'mercer_request_seconds_bucket{model="tagger",le="+Inf"}' in text
    for line in text.splitlines():
        assert line.startswith("#") or float(line.rpartition(" ")[2]) >= 0
    document = ask(served, "GET", "/openapi.json").json
    assert document["openapi"].startswith("3.1")
    for name in ("tagger", "rows", "words", "grid"):
        post = document["paths"][f"/v1/models/{name}:predict"]["post"]
        example = post["requestBody"]["content"]["application/json"]["example"]
        assert predict(served, example, name).status == 200
        assert {"200", "422", "503"} <= set(post["responses"])
    for path, methods in document["paths"].items():
        if "get" in methods:
            assert ask(served, "GET", path).status == 200, path


def test_requests_are_counted_below_the_bounds_that_they_reach() -> None:
    metrics = Metrics(["m", "n"], workers=2, worker=1)
    for seconds, batch in ((0.0, 1), (0.001, 2), (0.0011, 3), (10.0, 128), (10.1, 129)):
        metrics.request("m", 200, seconds, 2, batch)
    metrics.request("m", 503, 0.0, 0)
    metrics.request("m", 418, 0.0, 0)
    metrics.request(None, 404, 0.0, 0)
    text = metrics.text()
    for name, bounds in (
        ("request_seconds", {"0.001": 2, "0.002": 3, "5.0": 3, "10.0": 4, "+Inf": 5}),
        ("batch_requests", {"1": 1, "2": 2, "4": 3, "64": 3, "128": 4, "+Inf": 5}),
    ):
        for bound, count in bounds.items():
            assert f'mercer_{name}_bucket{{model="m",le="{bound}"}} {count}\n' in text
        assert f'mercer_{name}_count{{model="m"}} 5\n' in text
        assert f'mercer_{name}_count{{model="n"}} 0\n' in text
    assert metrics.total("seconds_sum", "m") == pytest.approx(20.1021)
    assert metrics.total("batch_sum", "m") == 263
    assert 'mercer_instances_total{model="m"} 10\n' in text
    for status in (503, 500):
        assert f'mercer_requests_total{{model="m",status="{status}"}} 1\n' in text
    assert 'mercer_other_requests_total{status="404"} 1\n' in text


def test_the_inference_protocol_in_json(served: Any, rows: LinearClassifier, tagger: Tagger) -> None:
    assert ask(served, "GET", "/v2").json["extensions"] == ["binary_tensor_data"]
    assert ask(served, "GET", "/v2/health/live").status == 200
    said = ask(served, "GET", "/v2/models/rows").json
    assert said["inputs"] == [{"name": "instances", "datatype": "FP64", "shape": [-1, 2]}]
    version = said["versions"][0]
    for data in (POINTS.tolist(), POINTS.ravel().tolist()):
        tensor = {"name": "x", "shape": [4, 2], "datatype": "FP32", "data": data}
        answer = ask(served, "POST", f"/v2/models/rows/versions/{version}/infer", {"id": "a", "inputs": [tensor]}).json
        assert answer["id"] == "a"
        [output] = answer["outputs"]
        assert (output["datatype"], output["shape"]) == ("BYTES", [4])
        assert output["data"] == rows.predict(POINTS).tolist()
    texts = [json.dumps(sentence) for sentence in SENTENCES]
    tensor = {"name": "x", "shape": [3], "datatype": "BYTES", "data": texts, "parameters": {"content_type": "str"}}
    wanted = {"outputs": [{"name": "predictions"}, {"name": "probabilities"}], "inputs": [tensor]}
    answer = ask(served, "POST", "/v2/models/tagger/infer", wanted).json
    assert [json.loads(text) for text in answer["outputs"][0]["data"]] == tagger.predict(SENTENCES)
    assert answer["outputs"][1]["name"] == "probabilities"
    assert ask(served, "GET", "/v2/models/tagger/ready").status == 200


def test_the_inference_protocol_with_binary_tensors(served: Any, rows: LinearClassifier) -> None:
    raw = POINTS.astype("<f4").tobytes()
    tensor = {"name": "x", "shape": [4, 2], "datatype": "FP32", "parameters": {"binary_data_size": len(raw)}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True, "scores": True}}).encode()
    length = {"inference-header-content-length": str(len(head))}
    answer = ask(served, "POST", "/v2/models/rows/infer", head + raw, length)
    assert answer.status == 200, answer.body
    size = int(answer.headers["inference-header-content-length"])
    said = json.loads(answer.body[:size])
    rest = answer.body[size:]
    texts, at = [], 0
    while at < said["outputs"][0]["parameters"]["binary_data_size"]:
        (n,) = struct.unpack_from("<I", rest, at)
        texts.append(rest[at + 4 : at + 4 + n].decode())
        at += 4 + n
    assert texts == rows.predict(POINTS).tolist()
    assert np.allclose(np.frombuffer(rest[at:], "<f8"), rows.decision_function(POINTS).ravel(), atol=1e-5)
    broken = [
        (head + raw[:-1], length),
        (head + raw + b"x", length),
        (head + raw, {"inference-header-content-length": "999999"}),
        (head + raw, {"inference-header-content-length": "x"}),
        (b"{}", {}),
        ({"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1]}]}, {}),
        ({"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP99", "data": [1, 2]}]}, {}),
        ({"inputs": [{"name": "x", "shape": [-1, 2], "datatype": "FP32", "data": [1, 2]}]}, {}),
        ({"inputs": [{"name": "x", "shape": [1, 2], "datatype": "INT8", "data": [1e9, 2]}]}, {}),
        ({"inputs": [tensor]}, {}),
        (
            {
                "inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}],
                "outputs": [{"name": "y"}],
            },
            {},
        ),
    ]
    for body, headers in broken:
        refused = ask(served, "POST", "/v2/models/rows/infer", body, headers)
        assert refused.status == 400, body
        assert isinstance(refused.json["error"], str)


def test_regular_tensors_get_regular_answers_and_the_metadata_say_which(served: Any, tagger: Tagger) -> None:
    words = [sentence[:2] for sentence in SENTENCES]
    tensor = {"name": "x", "shape": [len(words), 2], "datatype": "BYTES", "data": words}
    [output] = ask(served, "POST", "/v2/models/tagger/infer", {"inputs": [tensor]}).json["outputs"]
    assert (output["datatype"], output["shape"]) == ("BYTES", [len(words), 2])
    assert output["data"] == [label for labels in tagger.predict(words) for label in labels]
    refused = ask(served, "POST", "/v2/models/rows/infer", {"inputs": [tensor]})
    assert refused.status == 400
    assert "BYTES must have the shape [n]" in refused.json["error"]
    X = np.repeat(np.arange(4.0), 3)[:, None]
    numbered = app({"numbers": LinearClassifier().fit(X, X[:, 0].astype(int))}, reload_seconds=0)
    try:
        said = ask(numbered, "GET", "/v2/models/numbers").json["outputs"][0]
        tensor = {"name": "x", "shape": [4, 1], "datatype": "FP64", "data": [0.0, 1.0, 2.0, 3.0]}
        [output] = ask(numbered, "POST", "/v2/models/numbers/infer", {"inputs": [tensor]}).json["outputs"]
        assert (said["datatype"], said["shape"]) == (output["datatype"], [-1]) == ("INT64", [-1])
    finally:
        numbered.end()


def test_maps_of_images_of_one_size_are_one_tensor(served: Any) -> None:
    images = np.where(np.arange(8) < 4, 0.0, 200.0)[None, None].repeat(2, 0).repeat(8, 1)
    tensor = {"name": "x", "shape": [2, 8, 8], "datatype": "FP32", "data": images.ravel().tolist()}
    [output] = ask(served, "POST", "/v2/models/grid/infer", {"inputs": [tensor]}).json["outputs"]
    assert (output["datatype"], output["shape"]) == ("INT64", [2, 8, 8])
    model = served.store.entries["grid"].current.answers.model
    assert output["data"] == np.stack(model.predict(list(images))).ravel().tolist()


def test_compressed_bodies_are_read_up_to_the_limit(tagger: Tagger) -> None:
    body = json.dumps({"instances": SENTENCES}).encode()
    limited = app({"tagger": tagger}, limits=Limits(body=10_000), reload_seconds=0)

    def status(sent: bytes, coding: str) -> int:
        return ask(limited, "POST", "/v1/models/tagger:predict", sent, {"content-encoding": coding}).status

    try:
        said = ask(limited, "POST", "/v1/models/tagger:predict", gzip.compress(body), {"content-encoding": "gzip"})
        assert said.json["predictions"] == tagger.predict(SENTENCES)
        assert status(zlib.compress(body), "deflate") == 200
        assert status(gzip.compress(b" " * 5_000_000), "gzip") == 413
        assert status(gzip.compress(body)[:-9], "gzip") == 400
        assert status(body, "gzip") == 400
        assert status(body, "br") == 415
    finally:
        limited.end()


def test_arguments_of_app_are_checked(tagger: Tagger) -> None:
    for wrong in ({"max_batch": 0}, {"max_queue": 1.5}, {"max_delay": -1}, {"reload_seconds": "1"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            app({"m": tagger}, **wrong)  # type: ignore[arg-type]
    for name in ("", "../x", "a/b", ".x", "é b"):
        with pytest.raises(ValueError, match="is not a valid model name"):
            app({name: tagger})


def test_the_limits_of_options(served: Any) -> None:
    one = {"instances": SENTENCES[:1]}
    assert predict(served, {**one, "outputs": ["entropy"] * 20}).status == 200
    assert (
        predict(served, {**one, "outputs": ["entropy"] * 21}).message
        == '"outputs" must be an array of names of methods'
    )
    for name in ("k_best", "explain"):
        assert predict(served, {**one, name: 1}).status == 200
        assert predict(served, {**one, name: 100}).status == 200
        for wrong in (0, 101, 1.5):
            assert predict(served, {**one, name: wrong}).message == f'"{name}" must be an integer from 1 to 100'
    refused = predict(served, {"instances": ["abab"], "k_best": 2}, "words")
    assert (refused.status, refused.message) == (422, '"k_best": a KernelSVC does not list its best outputs')


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([[np.nan, 0.0]]), "rows contain a number that is not finite"),
        (np.array([[0.0, np.inf]], np.float32), "rows contain a number that is not finite"),
        (np.zeros((1, 3), int), "rows have 3 numbers, this model takes 2"),
        (np.array(1.0), "the body must be an array of numbers with a row for each instance"),
        (np.array([["a", "b"]]), "the body must be an array of numbers with a row for each instance"),
    ],
    ids=["nan", "infinite", "wide", "one number", "texts"],
)
def test_arrays_that_are_no_rows_are_refused(served: Any, array: np.ndarray, message: str) -> None:
    buffer = io.BytesIO()
    np.save(buffer, array)
    answer = ask(served, "POST", "/v1/models/rows:predict", buffer.getvalue(), {"content-type": "application/x-npy"})
    assert (answer.status, answer.message) == (422, message)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, bool, np.float32])
def test_arrays_of_any_numbers_are_rows(served: Any, rows: LinearClassifier, dtype: Any) -> None:
    points = np.array([[0, 1], [1, 0]], dtype)
    buffer = io.BytesIO()
    np.save(buffer, points)
    answer = ask(served, "POST", "/v1/models/rows:predict", buffer.getvalue(), {"content-type": "application/x-npy"})
    assert answer.json["predictions"] == rows.predict(points.astype(float)).tolist()


def test_a_table_needs_names_and_a_row(served: Any) -> None:
    kind = {"headers": {"content-type": "text/csv"}}
    for table in (b"", b"a,b\n", b"\n\na,b\n"):
        assert predict(served, table, "rows", **kind).status in (400, 422)
    assert predict(served, b"a,b\n", "rows", **kind).message == (
        "the table needs a header line with column names, and at least one row"
    )
    assert predict(served, b"a,b\n1,2\n3\n", "rows", **kind).message == "row 2 of the table has 1 cells, its header 2"
