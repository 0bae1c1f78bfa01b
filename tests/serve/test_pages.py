"""The page at /: drawings for every kind of model, and the page in a real browser."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("orjson", reason="the extra serve is not installed")

from mercer.data.templates import Template
from mercer.labeling import GridLabeler
from mercer.report.labellings import _png_rgb
from mercer.serve import app
from mercer.serve.kinds import INPUTS
from mercer.tagging import Tagger
from reference.model_zoo import TEXT_LABELS, TEXTS, ZOO
from serve.calls import ask

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SENTENCES = [["Ada", "wrote", "programs"], ["Bob", "saw", "Ada"], ["The", "cat", "saw", "Bob"]]
TAGS = [["B-PER", "O", "O"], ["B-PER", "O", "B-PER"], ["O", "O", "O", "B-PER"]]

ONE_OF_EACH_PAGE = (
    "Tagger", "HiddenMarkovModel", "Segmenter", "Parser", "Aligner", "GraphLabeler", "GridLabeler", "HashedClassifier",
    "KernelSVC", "JointSVM", "KernelHomogeneityAnalysis", "MeanMap", "ICP", "SignProjection", "FourierFeatures",
    "HashedRegressor", "TextHasher",
)  # fmt: skip


@pytest.fixture(scope="module")
def zoo() -> Iterator[Any]:
    made = app({kind: ZOO[kind].fit() for kind in ONE_OF_EACH_PAGE}, reload_seconds=0)
    made.begin()
    yield made
    made.end()


def test_every_page_is_among_them(zoo: Any) -> None:
    from mercer.serve.pages import _DRAWINGS

    assert {entry.current.answers.page for entry in zoo.store.entries.values()} == set(_DRAWINGS)
    assert set(ONE_OF_EACH_PAGE) <= set(INPUTS)


@pytest.mark.parametrize("kind", ONE_OF_EACH_PAGE)
def test_answers_are_drawn(zoo: Any, kind: str) -> None:
    said = ask(zoo, "GET", f"/v1/models/{kind}").json
    body = dict(said["example"])
    for option, value in (("probabilities", True), ("k_best", 2), ("explain", 3)):
        if option in said["options"]:
            body[option] = value
    if kind == "ICP":
        cloud = np.random.default_rng(0).normal(size=(40, 3)).tolist()
        body = {"verb": "register", "source": cloud, "target": cloud}
    elif kind == "SignProjection":
        body |= {"verb": "nearest", "among": body["instances"] * 3}
    elif kind == "MeanMap":
        body = {"verb": "shares", "instances": body["instances"] * 3, "groups": ["a", "<b>", "a"]}
    answer = ask(zoo, "POST", f"/v1/models/{kind}:show", body)
    assert answer.status == 200, answer.body
    assert set(answer.json) == {"model", "version", "answer", "html"}
    html = answer.json["html"]
    assert html.startswith("<")
    assert ("Nothing to explain" in html) == (kind == "Parser")  # one parse, and no second to compare with
    assert "<b>" not in html
    assert "<script" not in html


def test_texts_are_escaped_and_the_page_allows_no_foreign_code(zoo: Any) -> None:
    body = {"instances": ["<img src=x onerror=alert(1)> cheap"], "explain": 5}
    html = ask(zoo, "POST", "/v1/models/HashedClassifier:show", body).json["html"]
    assert "<img" not in html
    page = ask(zoo, "GET", "/")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "http://" not in page.body.decode()
    assert "script-src 'self'" in ask(zoo, "GET", "/docs").headers["content-security-policy"]
    for name in ("page.js", "docs.js", "page.css", "report.css", "icon.svg"):
        part = ask(zoo, "GET", f"/static/{name}")
        assert part.status == 200
        assert "https://" not in part.body.decode()
    assert ask(zoo, "GET", "/static/page.py").status == 404
    assert ask(zoo, "POST", "/v1/models/Tagger:show", {"instances": 3}).status == 422
    assert ask(zoo, "POST", "/v1/models/Tagger:show", {"verb": "fit", "instances": []}).status == 404


# ------------------------------------------------------------------------------------------------- in a real browser


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server on a thread, with a tagger, a classifier, an image labeller and a model of proportions."""
    uvicorn = pytest.importorskip("uvicorn", reason="the extra serve is not installed")
    if BROWSER is None:
        pytest.skip("no browser found: install chromium")
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    from mercer.serve.server import bind

    columns = [[(word,) for word in sentence] for sentence in SENTENCES]
    tagger = Tagger(C=10.0, template=Template.load("words")).fit(columns * 4, TAGS * 4)
    mask = np.where(np.arange(16) < 8, 0, 1)[None].repeat(16, 0)
    images = [200.0 * mask + np.random.default_rng(k).normal(size=mask.shape) for k in range(3)]
    models = {
        "tagger": tagger,
        "spam": ZOO["HashedClassifier"].fit(),
        "grid": GridLabeler(block=4, max_iter=5, random_state=0).fit(images, [mask] * 3),
        "votes": ZOO["MeanMap"].fit(),
        "icp": ZOO["ICP"].fit(),
    }
    assert TEXTS
    assert TEXT_LABELS
    sock = bind("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app(models, reload_seconds=0), log_config=None, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    server.should_exit = True
    thread.join(20)


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark")
    made = context.new_page()
    made.set_default_timeout(60_000)
    complaints: list[str] = []
    made.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.goto(f"{address}/#tagger")
    made.wait_for_selector("#ask:not([hidden])")
    yield made
    expected = [text for text in complaints if "422" not in text]
    wide = made.evaluate("document.documentElement.scrollWidth")
    context.close()
    assert expected == []
    assert wide <= 390  # nothing sticks out of a phone


@pytest.mark.slow
def test_a_sentence_is_typed_and_its_curl_line_runs(page: Any) -> None:
    page.fill("#instances", "Ada saw Bob")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".token")
    assert [one.inner_text().split() for one in page.query_selector_all(".token")] == [
        ["Ada", "B-PER"], ["saw", "O"], ["Bob", "B-PER"],
    ]  # fmt: skip
    assert "probability" in page.get_attribute(".token", "title")
    line = page.inner_text("#curl")
    assert "from mercer.serve import Client" in page.inner_text("#python")
    if shutil.which("curl"):
        said = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=True).stdout
        assert '"predictions":[["B-PER","O","B-PER"]]' in said


@pytest.mark.slow
def test_an_image_is_dropped_a_table_is_dropped_and_errors_are_shown(page: Any, tmp_path: Any) -> None:
    picture = np.zeros((16, 16, 3))
    picture[:, 8:] = 200
    (tmp_path / "picture.png").write_bytes(_png_rgb(picture))
    page.click("text=grid")
    page.set_input_files("#file", tmp_path / "picture.png")
    page.wait_for_selector("#drawing svg image")
    page.click("nav >> text=votes")
    (tmp_path / "rows.csv").write_text("a,b,c,group\n1,2,3,x\n3,4,5,y\n")
    page.wait_for_selector("#group")
    page.fill("#instances", "[[1, 2]]")
    page.click("#run")
    page.wait_for_selector("#problem:not([hidden])")
    assert "instances[0] has 2 numbers, this model takes 3" in page.inner_text("#problem")
    page.fill("#instances", "[[1, 2, 3], [3, 4, 5]]")
    page.click("#run")
    page.wait_for_selector("#drawing table")
    assert page.is_hidden("#problem")
    page.click("nav >> text=icp")
    page.wait_for_selector("#source")
    page.click("#run")
    page.wait_for_selector("#drawing svg")
    page.click("nav >> text=spam")
    page.wait_for_selector("#option-explain")
    page.check("#option-explain")
    page.click("#run")
    page.wait_for_selector(".verdict")


@pytest.mark.slow
def test_the_requests_are_listed_with_a_line_of_curl_that_runs(page: Any) -> None:
    page.click("a[href='/docs']")
    page.wait_for_selector("#paths section")
    assert "POST /v1/models/tagger:predict" in page.inner_text("#paths")
    line = page.inner_text("#paths section pre")
    if shutil.which("curl"):
        said = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=True).stdout
        assert '"predictions":[[' in said
