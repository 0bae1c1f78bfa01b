"""Defaults are claims: a change of a public signature shows in the file that records them."""

import runpy
from pathlib import Path

SIGNATURES = runpy.run_path(str(Path(__file__).parent.parent / "tools" / "signatures.py"))


def test_public_signatures_are_those_on_record():
    changed = SIGNATURES["changes"]()
    assert not changed, "\n".join(["if this is meant, record it with `make signatures`:", *changed])


def test_the_record_has_classes_functions_and_methods_with_their_defaults():
    recorded = SIGNATURES["lines"]()
    names = {line.split("(")[0] for line in recorded}
    assert {"mercer.tagging.Tagger", "mercer.load", "mercer.tagging.Tagger.fit", "mercer.inference.infer"} <= names
    tagger = next(line for line in recorded if line.startswith("mercer.tagging.Tagger("))
    assert "C='auto'" in tagger
    assert not any("0x" in line for line in recorded)


def test_a_changed_default_is_seen(monkeypatch):
    from mercer.markov import HiddenMarkovModel

    defaults = HiddenMarkovModel.__init__.__defaults__
    monkeypatch.setattr(HiddenMarkovModel.__init__, "__defaults__", (3, *defaults[1:]))
    assert [line[0] for line in SIGNATURES["changes"]()] == ["-", "+"]
