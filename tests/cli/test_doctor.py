"""What an installation says about itself."""

from __future__ import annotations

import pytest

import mercer
from mercer import _versions
from mercer.cli import main


def test_doctor_names_versions_instruction_set_and_missing_extras(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    installed = _versions._installed
    monkeypatch.setattr(_versions, "_installed", lambda package: None if package == "torch" else installed(package))
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert mercer.__version__ in shown
    assert mercer._core.instruction_set() in shown
    assert 'missing torch: pip install "mercer[torch]"' in shown
    assert "all checks passed" in shown


@pytest.mark.parametrize(
    ("package", "folder", "told"), [("scipy", None, "scipy is not installed"), (None, "/no/such", "/no/such")]
)
def test_doctor_fails_where_something_needed_is_missing(
    package: str | None,
    folder: str | None,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    installed = _versions._installed
    monkeypatch.setattr(_versions, "_installed", lambda name: None if name == package else installed(name))
    if folder:
        monkeypatch.setenv("MERCER_DATA", folder)
    else:
        monkeypatch.delenv("MERCER_DATA", raising=False)
    assert main(["doctor"]) == 1
    assert told in capsys.readouterr().err


def test_doctor_tells_of_a_core_that_gives_wrong_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    monkeypatch.setattr(mercer.Tagger, "predict", lambda self, X: [["DET"]])
    assert main(["doctor"]) == 1
    assert "does not reproduce" in capsys.readouterr().err


def test_requirements_of_extras_are_read_from_the_installation() -> None:
    assert {"plot", "torch", "data", "graphs"} <= set(_versions.extras())
    assert not {"dev", "bench", "docs"} & set(_versions.extras())
