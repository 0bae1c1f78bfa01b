"""Pictures of labellings show what they are given and refuse what does not fit."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from mercer.report import labelling_picture, plot_convergence, plot_graph_labelling, plot_labelling, write_png

TRUTH = np.array([[0, 0, 1], [0, 1, 1]])
ANSWER = np.array([[0, 1, 1], [0, 1, 1]])


def test_a_picture_has_a_panel_for_each_part():
    marginals = np.stack([1 - TRUTH * 0.9, TRUTH * 0.9], axis=2)
    svg = plot_labelling(TRUTH * 1.0, TRUTH, ANSWER, marginals)
    assert svg.count("<image") == 5
    assert "errors (16.7%)" in svg
    assert "probability of 1" in svg
    assert plot_labelling(truth=TRUTH).count("<image") == 1


def test_errors_are_where_labels_differ():
    picture = labelling_picture(None, TRUTH, ANSWER)
    errors = picture[:, -3:]
    np.testing.assert_array_equal((errors == [213, 94, 0]).all(axis=2), TRUTH != ANSWER)


def test_labels_have_one_colour_in_all_panels():
    picture = labelling_picture(None, TRUTH, ANSWER)
    truth, answer = picture[:, :3], picture[:, 7:10]
    assert (truth[TRUTH == 1] == answer[ANSWER == 1][0]).all()
    assert (truth[0, 0] != truth[0, 2]).any()


def test_a_png_holds_the_pixels(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (3, 4, 3)).astype(np.uint8)
    write_png(tmp_path / "a.png", pixels)
    data = (tmp_path / "a.png").read_bytes()
    at = data.index(b"IDAT") + 4
    rows = np.frombuffer(zlib.decompress(data[at : data.index(b"IEND") - 8]), np.uint8).reshape(3, 13)
    np.testing.assert_array_equal(rows[:, 1:].reshape(3, 4, 3), pixels)


def test_a_graph_shows_nodes_edges_and_errors():
    svg = plot_graph_labelling([(0, 1), (1, 2)], ["<a>", "b", "b"], ["<a>", "b", "c"], marginals=np.eye(3))
    assert svg.count("<circle") == 3
    assert svg.count("<line") == 2
    assert "node 2: b, true label c" in svg
    assert "<a>" not in svg
    assert plot_graph_labelling([], []).count("<circle") == 0


def test_convergence_is_a_chart_of_histories():
    assert "residual against iteration" in plot_convergence({"bp": [1.0, 0.1, 0.0]})
    with pytest.raises(ValueError, match="no history"):
        plot_convergence({"bp": []})


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: plot_labelling(np.zeros((2, 2)), TRUTH), "one size"),
        (lambda: plot_labelling(marginals=np.zeros((2, 2))), "marginals must have shape"),
        (lambda: plot_labelling(), "one size"),
        (lambda: plot_graph_labelling([(0, 5)], ["a", "b"]), "edges must contain nodes"),
        (lambda: plot_graph_labelling([], ["a"], ["a", "b"]), "1 predicted labels and 2"),
        (lambda: plot_graph_labelling([], ["a"], positions=[[np.nan, 0]]), "positions"),
        (lambda: write_png("x.png", np.zeros((2, 2))), "shape"),
    ],
)
def test_what_does_not_fit_is_named(act, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        act()


def test_several_answers_stand_side_by_side_with_their_errors():
    truth = np.array([[0, 0], [1, 1]])
    svg = plot_labelling(truth * 0.5, truth, {"before": 1 - truth, "after": truth}, width=100)
    assert "before (100.0% wrong)" in svg
    assert "after (0.0% wrong)" in svg
    assert "errors" not in svg
    assert svg.count("<image") == 4
    with pytest.raises(ValueError, match="cannot be named 'truth'"):
        plot_labelling(truth=truth, prediction={"truth": truth})
    with pytest.raises(ValueError, match="width"):
        plot_labelling(truth=truth, prediction=truth, width=0)
