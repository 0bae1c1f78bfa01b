"""The demo: its claims, its table and its page."""

from __future__ import annotations

import itertools
import warnings
import xml.etree.ElementTree as ET
from functools import partial

import numpy as np
import pytest

from mercer.cli import demo, demo_images, demo_shares, main
from mercer.cli.demo import neighbours, run_demo
from mercer.cli.demo_shares import run_shares
from mercer.datasets import make_digit_codes
from mercer.report.demo import DemoResult, chosen_examples, demo_page, shown_actions
from mercer.report.demo_images import Painter, shown_images


@pytest.fixture(scope="module")
def result() -> DemoResult:
    """All parts of the demo, with little data, and few strengths of penalties to choose from."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((demo_images, "_GRID"), (demo_shares, "_GRID")):
            patch.setattr(module, name, getattr(module, name)[:1])
        patch.setattr(demo, "run_shares", partial(run_shares, 24))
        return run_demo(n_train=80, n_test=40, n_sequences=8, n_images=4)


def test_every_code_obeys_the_keypad() -> None:
    allowed = set(neighbours())
    codes = make_digit_codes(50, 50)
    assert all(pair in allowed for y in codes.y_train + codes.y_test for pair in itertools.pairwise(y))


def test_the_chain_reads_more_codes(result: DemoResult) -> None:
    assert result.chain.digits > result.alone.digits
    assert result.chain.codes > result.alone.codes
    assert result.ruled.impossible == 0


def test_examples_are_gains_and_one_loss(result: DemoResult) -> None:
    *gains, loss = chosen_examples(result)
    assert gains
    for i in gains:
        assert result.chain.readings[i] == result.truth[i] != result.alone.readings[i]
    assert result.chain.readings[loss] != result.truth[loss]


def test_segments_find_more_actions_than_frames(result: DemoResult) -> None:
    alone, chain, whole = result.actions.cutters
    assert whole.frames > alone.frames
    assert whole.boundaries >= chain.boundaries > alone.boundaries
    assert all(one[-1][1] == len(x) for one, x in zip(whole.segments, result.actions.X, strict=True))
    assert 0 <= shown_actions(result.actions) < len(result.actions.X)


def test_sparse_codes_name_more_faces_than_the_nearest_image(result: DemoResult) -> None:
    nearest, sparse = result.faces.recognisers
    assert sparse.right > nearest.right
    assert result.faces.strangers > 0.8
    assert result.faces.person in [name for _, name, _ in result.faces.used]


def test_position_keeps_the_parts_of_shapes_together(result: DemoResult) -> None:
    together, smooth, placed = result.parts.dividers
    assert placed.agreement > 0.2 + max(smooth.agreement, together.agreement)
    assert placed.agreement > 0.5


def test_neighbours_label_more_pixels_than_blocks_alone(result: DemoResult) -> None:
    images = result.segmentation
    assert images.grid.pixels > images.alone.pixels + 0.1
    assert images.grid.overlap > images.alone.overlap
    shown = shown_images(images.truth, images.alone, images.grid)
    assert len(shown) == len(images.marginals)
    assert all(p.shape == (*images.truth[i].shape, 3) for i, p in zip(shown, images.marginals, strict=True))


def test_images_are_shown_by_their_gain_not_by_their_looks() -> None:
    truth = [np.zeros((2, 2), int)] * 3
    alone = Painter("", 1.0, [np.ones((2, 2), int)] * 3, 0.0, 0.0, 0.0)
    gained = [np.array([[0, 0], [0, 0]]), np.array([[1, 1], [1, 1]]), np.array([[0, 0], [1, 1]])]
    assert shown_images(truth, alone, Painter("", 1.0, gained, 0.0, 0.0, 0.0)) == [2, 1]  # the median, then the least


def test_bags_that_mislead_on_purpose_warn_nobody() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        means, machine = demo_shares._toy()
    assert "0 % right" in means[0]
    assert "100 % right" in machine[0]


def test_the_page_holds_everything_itself(result: DemoResult) -> None:
    page = demo_page(result)
    for missing in ("<script", "http://www.w3.org/1999", "https://", "url("):
        assert missing not in page
    charts = ("transition weights", "objective", "p(start)", "true segment", "together (", "probability of ground")
    for present in ("data:image/png;base64,", "<mark", "<pre><code>", *charts):
        assert present in page
    body = page[page.index("<main>") : page.index("</main>") + len("</main>")]
    ET.fromstring(body)


def test_the_command_prints_a_table_and_says_where_the_page_is(result, tmp_path, capfd, monkeypatch) -> None:
    def again(part):
        part("codes", lambda: vars(result))
        for name in ("actions", "segmentation", "shares", "faces", "parts"):
            part(name, partial(getattr, result, name))
        return result

    monkeypatch.setattr(demo, "run_demo", again)
    path = tmp_path / "demo.html"
    assert main(["demo", "--output", str(path)]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert "whole codes correct" in out
    assert "F1 of boundaries" in out
    assert "pixels correct" in out
    assert f"page written to {path}" in out
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert main(["demo"]) == 0
    assert "--output" in capfd.readouterr().out


def test_a_place_that_cannot_be_written_is_named_at_once(tmp_path, capfd, monkeypatch) -> None:
    monkeypatch.setattr(demo, "run_demo", lambda part: pytest.fail("the demo ran"))
    assert main(["demo", "--output", str(tmp_path)]) == 2
    assert "it is a directory" in capfd.readouterr().err
