"""Every kind of model can be looked at, as text and as a page; results show themselves in notebooks."""

from __future__ import annotations

import functools
import re
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from estimators.cases import CASES, Case
from estimators.outputs import fit
from mercer.cli import main
from mercer.inference import BayesianNetwork, Factor, FactorGraph, Inference, MarkovNetwork, infer
from mercer.proportions import Bags
from mercer.report.examined import examined, examined_numbers
from mercer.report.model import blocks_html, model_page
from mercer.report.portrait import Curves, Facts, Listing, Matrix, Weights, portrait
from mercer.report.views import draw_graph, html_of, network_page

SAVED = [case for case in CASES if case.not_saved is None]
every_saved_case = pytest.mark.parametrize("case", SAVED, ids=lambda case: case.cls.__name__)


@functools.cache
def fitted(case: Case) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(case)


def parsed(markup: str) -> ET.Element:
    return ET.fromstring(f"<main>{markup}</main>")


# ------------------------------------------------------------------------------------------------------ every kind


@every_saved_case
def test_every_kind_of_model_has_a_page_and_a_text(case: Case, tmp_path: Path, capsys: Any) -> None:
    model, path, page = fitted(case), str(tmp_path / "m.mercer"), tmp_path / "m.html"
    mercer.save(model, path)
    assert main(["inspect", path]) == 0
    out = capsys.readouterr().out
    assert type(model).__name__ in out.splitlines()[0]
    assert len(out.splitlines()) > 3
    assert main(["inspect", path, "--html", str(page)]) == 0
    text = page.read_text()
    root = ET.fromstring(text[text.index("<main>") : text.index("</main>") + 7])
    assert len(list(root.iter("tr"))) > 1


def test_a_portrait_has_what_the_model_has() -> None:
    by_name = {case.cls.__name__: portrait(fitted(case)) for case in SAVED}
    titles = {name: {block.title for block in blocks} for name, blocks in by_name.items()}
    assert {"Transitions", "Features", "Training"} <= titles["Tagger"]
    assert {"Transitions", "Emissions"} <= titles["HiddenMarkovModel"]
    assert "Support objects" in titles["KernelSVC"]
    assert "Substitutions" in titles["Aligner"]
    assert any("Pairs of labels" in title for title in titles["GridLabeler"])
    assert "Fitted arrays" in titles["FourierFeatures"]
    words = next(block for block in by_name["HashedClassifier"] if isinstance(block, Weights))
    assert any("cat" in name for pairs in words.lists.values() for name, _ in pairs)


def test_facts_say_which_settings_are_not_the_defaults() -> None:
    case = next(case for case in SAVED if case.cls.__name__ == "KernelSVC")
    facts = portrait(case.make().set_params(C=7.5).fit(*case.data(0).args))[0]
    assert isinstance(facts, Facts)
    assert "C=7.5" in dict(facts.rows)["settings"]


# ------------------------------------------------------------------------------------------------------- data


def test_what_is_examined_is_counted_right() -> None:
    truth, predicted = ["a", "a", "b", "b"], ["a", "b", "b", "b"]
    blocks = examined(truth, predicted, confidence=[0.9, 0.6, 0.8, 0.7], of_truth=[0.9, 0.4, 0.8, 0.7], shown=str)
    facts, classes, confusion, calibration, worst = blocks
    assert isinstance(facts, Facts)
    assert dict(facts.rows)["accuracy"] == "0.7500"
    assert isinstance(classes, Listing)
    assert classes.rows[0] == ["a", "1.0000", "0.5000", "0.6667", "2", "1"]
    assert isinstance(confusion, Matrix)
    assert confusion.values.tolist() == [[0.5, 0.5], [0.0, 1.0]]
    assert isinstance(calibration, Curves)
    assert calibration.series["right"] == ([0.6, 0.7, 0.8, 0.9], [0.0, 1.0, 1.0, 1.0])
    assert isinstance(worst, Listing)
    assert worst.rows == [["a", "b", "0.4000", "1"]]
    parsed(blocks_html(blocks))


def test_numbers_are_examined_too() -> None:
    facts, _, worst = examined_numbers([1.0, 2.0, 3.0], [1.0, 2.5, 3.0])
    assert dict(facts.rows)["mean absolute error"] == "0.1667"
    assert worst.rows[0] == ["2", "2.5", "2"]
    for wrong in (([], []), ([1.0], [1.0, 2.0])):
        with pytest.raises(ValueError, match="same positive number"):
            examined_numbers(*wrong)
        with pytest.raises(ValueError, match="same positive number"):
            examined(*wrong)


def test_inspect_shows_words_and_what_went_wrong_on_a_file(tmp_path: Path, capsys: Any) -> None:
    train, test, model = tmp_path / "mail.txt", tmp_path / "test.txt", str(tmp_path / "m.mercer")
    train.write_text(
        "spam\tcheap pills now\nham\tmeeting at noon\nspam\tcheap watches\nham\tnotes of the meeting\n" * 9
    )
    test.write_text("spam\tcheap\nham\tthe meeting\nham\tcheap lunch\n")
    assert main(["train", "classifier", str(train), "--model", model, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["inspect", model, "--data", str(test)]) == 0
    out = capsys.readouterr().out
    for text in ("cheap  ", "meeting  ", "confusion", "calibration", "most wrong", "ham cheap lunch", "names kept"):
        assert text in out, text
    assert main(["inspect", model, "--data", str(test), "--html", str(tmp_path / "p.html")]) == 0
    assert "cheap lunch" in (tmp_path / "p.html").read_text()


@pytest.mark.parametrize(
    ("name", "lines", "known"),
    [
        ("a.csv", "label,city,age,note\nx,Oslo,3,a b c d\ny,Rome,9,e f g h\n", {"city=Oslo", "age", "city=Rome"}),
        ("a.jsonl", '{"label": "x", "city": "Oslo", "age": 3}\n{"label": "y", "city": "Rome", "age": 9}\n',
         {"city=Oslo", "age"}),
        ("a.vw", "1 |w red:2 wine |n blue\n-1 |w blue sky\n", {"w: red", "w: blue", "n: blue"}),
        ("a.vw", "1 | red wine\n-1 | blue sky\n", {"red", "blue"}),
        ("a.txt", "x\tred wine\ny\tblue sky\n", {"red", "blue"}),
    ],
    ids=["csv", "jsonl", "vw namespaces", "vw", "text"],
)  # fmt: skip
def test_files_give_names_to_the_hashes_of_their_readers(tmp_path: Path, name: str, lines: str, known: set) -> None:
    path = tmp_path / name
    head, _, rest = lines.partition("\n") if name.endswith("csv") else ("", "", lines)
    path.write_text((head + "\n" if head else "") + rest * 12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mercer.HashedClassifier(n_bits=22).fit_file(path)
    assert known <= set(model.names_.names)  # names whose hash is not that of the reader would have no weight


# ------------------------------------------------------------------------------------------------- notebooks


def network() -> BayesianNetwork:
    return BayesianNetwork(
        {"rain": ["no", "yes"], "sprinkler": ["off", "on"], "grass": ["dry", "wet"]},
        {"grass": ["rain", "sprinkler"]},
        {"rain": [0.8, 0.2], "sprinkler": [0.9, 0.1], "grass": [[[1.0, 0.0], [0.1, 0.9]], [[0.0, 1.0], [0.0, 1.0]]]},
    )


def test_results_show_themselves() -> None:
    net = network()
    equal = [[3.0, 1.0], [1.0, 3.0]]
    bags = Bags([0, 0, 1, 1, 1], {0: 0.5, 1: 1 / 3})
    shown = {
        "p(grass | rain, sprinkler)": net,
        "likeliest": infer(net, evidence={"grass": "wet"}),
        "best state": infer(net, task="map", method="junction-tree"),
        "junction-tree": Inference("junction-tree"),
        "φ(a, b)": MarkovNetwork([Factor(["a", "b"], equal), Factor(["b", "c"], equal)]),
        "φ(0, 1)": FactorGraph([2, 2], edges=[[0, 1]], pairwise=equal),
        "shares": bags,
        "rather than": fitted(next(case for case in SAVED if case.cls.__name__ == "LinearClassifier")).explain(
            np.ones(4)
        ),
    }
    for text, value in shown.items():
        markup = value._repr_html_()
        parsed(markup.replace("<br>", "<br/>"))
        if text != "best state":
            assert text in markup, text
        assert value.plot() == markup


def test_names_in_results_never_become_markup() -> None:
    bad = "<script>alert(1)</script>"
    net = BayesianNetwork({bad: [bad + "a", "b"]}, {}, {bad: [0.5, 0.5]})
    for markup in (net._repr_html_(), infer(net)._repr_html_(), network_page(net, title=bad), draw_graph([bad], [])):
        assert "<script" not in markup


def test_graphs_are_drawn_in_layers_or_on_a_circle() -> None:
    assert draw_graph(["a", "b", "c"], [(0, 1), (1, 2)], directed=True).count("<rect") == 3
    assert draw_graph(["a", "b"], [(0, 1), (1, 0)], directed=True).count("<path") == 2
    assert "<line" not in draw_graph(["alone"], [])
    with pytest.raises(ValueError, match="at least one node"):
        draw_graph([], [])
    with pytest.raises(TypeError, match="no view"):
        html_of(3)


def test_inspect_takes_files_of_graphical_models(tmp_path: Path, capsys: Any) -> None:
    from mercer.inference import write_uai
    from mercer.inference.bif import write_bif

    write_bif(network(), tmp_path / "net.bif")
    write_uai(network().factor_graph, tmp_path / "net.uai")
    assert main(["inspect", str(tmp_path / "net.bif")]) == 0
    assert "p(grass | rain, sprinkler)" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "net.bif"), "--html", str(tmp_path / "net.html")]) == 0
    assert "<svg" in (tmp_path / "net.html").read_text()
    assert main(["inspect", str(tmp_path / "net.uai")]) == 0
    assert main(["inspect", str(tmp_path / "net.bif"), "--label", "x"]) != 0


def test_a_title_and_top_are_checked() -> None:
    with pytest.raises(ValueError, match="top"):
        model_page(fitted(SAVED[0]), title="x", top=0)


def test_a_label_that_the_model_does_not_know_has_probability_zero(tmp_path: Path, capsys: Any) -> None:
    train, test, model = tmp_path / "mail.txt", tmp_path / "test.txt", str(tmp_path / "m.mercer")
    train.write_text("spam\tcheap pills\nham\tmeeting at noon\n" * 9)
    test.write_text("spam\tcheap\nspam\tmeeting at noon\neggs\tmeeting at noon\nham\tcheap pills\n")
    assert main(["train", "classifier", str(train), "--model", model, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["inspect", model, "--data", str(test)]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(k for k, line in enumerate(lines) if "most wrong" in line)
    rows = [line.split() for line in lines[first:] if re.match(r"\s*(eggs|ham|spam)\s+(ham|spam)\s", line)]
    assert rows[0][:3] == ["eggs", "ham", "0.0000"]
    assert sorted(row[:2] for row in rows[1:]) == [["ham", "spam"], ["spam", "ham"]]
    assert all(0 < float(row[2]) < 0.5 for row in rows[1:])
