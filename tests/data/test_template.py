"""Feature templates: how a line is read, what is refused, and what a sentence becomes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.data import FeatureIndex
from mercer.data.templates import Template
from mercer.exceptions import DataFileError

SENTENCE = [("He", "PRP"), ("reckons", "VBZ"), ("so", "RB")]


def test_a_line_becomes_literals_and_cells() -> None:
    template = Template.parse("# words\nU00:%x[-1,0]/%x[0,0]\n\n  U01:%x[0,1]%x[1,2]x\nB\nB01:%x[0,1]\n")
    assert template.unigrams == (("U00:", (-1, 0), "/", (0, 0)), ("U01:", (0, 1), (1, 2), "x"))
    assert template.bigrams == (("B",), ("B01:", (0, 1)))
    assert template.edge_patterns == (("B01:", (0, 1)),)
    assert template.n_columns == 3


def test_a_template_of_literals_needs_no_columns() -> None:
    template = Template.parse("U\nB")
    assert (template.unigrams, template.bigrams, template.n_columns) == ((("U",),), (("B",),), 0)
    assert template.expand([("a",)]) == ([["U"]], [[]])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("X00:%x[0,0]", "expected a line that begins with U or B, found 'X00:%x"),
        ("*", "expected a line that begins with U or B"),
        ("U00:%x[0]", "malformed macro '%x.0.', expected %x"),
        ("U00:%x[0,0", "malformed macro '%x.0,0', expected %x"),
        ("U00:%x[a,0]/%x[0,0]", "malformed macro '%x.a,0.'"),
        ("U00:%y[0,0]", "malformed macro '%y.0,0.'"),
        ("U00:100%", "malformed macro '%'"),
        ("B:%x[0,-1]", "column -1 in '%x.0,-1.' is negative"),
    ],
)
def test_malformed_lines_name_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "my.template"
    path.write_text(f"# mine\n\nU:%x[0,0]\n{line}\n")
    with pytest.raises(DataFileError, match=message) as caught:
        Template.load(path)
    assert (caught.value.file, caught.value.line) == (str(path), 4)
    assert str(caught.value).startswith(f"{path}:4: ")
    assert "%x[row,column]" in caught.value.hint


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_a_template_without_lines_is_refused(text: str) -> None:
    with pytest.raises(DataFileError, match="expected feature templates, found none"):
        Template.parse(text)


def test_a_template_file_that_is_not_utf8_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "my.template"
    path.write_bytes(b"U:%x[0,0]\n# \xc3\xa9 caf\xe9\n")
    with pytest.raises(DataFileError, match=r"my\.template:2: invalid UTF-8"):
        Template.load(path)


def test_an_unknown_name_lists_the_built_in_ones() -> None:
    with pytest.raises(FileNotFoundError, match=r"'words', 'words\+pos'.* or 'words\+pos\+spelling'.*wrods"):
        Template.load("wrods")


def test_words_is_a_window_of_words_and_two_pairs() -> None:
    template = Template.load("words")
    assert template.n_columns == 1
    assert template.bigrams == (("B",),)
    unigrams, edges = template.expand([(word,) for word, _ in SENTENCE])
    assert [[f.split(":", 1)[1] for f in token] for token in unigrams] == [
        ["_B-2", "_B-1", "He", "reckons", "so", "_B-1/He", "He/reckons"],
        ["_B-1", "He", "reckons", "so", "_B+1", "He/reckons", "reckons/so"],
        ["He", "reckons", "so", "_B+1", "_B+2", "reckons/so", "so/_B+1"],
    ]
    assert edges == [[], [], []]


def test_words_and_pos_is_the_chunking_window() -> None:
    template = Template.load("words+pos")
    assert template.n_columns == 2
    assert template.bigrams == (("B",),)
    assert len(template.unigrams) == 7 + 5 + 4 + 3
    features = [f.split(":", 1)[1] for f in template.expand(SENTENCE)[0][1]]
    assert features[7:] == [
        *("_B-1", "PRP", "VBZ", "RB", "_B+1"),
        *("_B-1/PRP", "PRP/VBZ", "VBZ/RB", "RB/_B+1"),
        *("_B-1/PRP/VBZ", "PRP/VBZ/RB", "VBZ/RB/_B+1"),
    ]


def test_spelling_macros_look_at_letters() -> None:
    template = Template.parse(
        "U0:%lower[0,0]\nU1:%prefix2[0,0]\nU2:%suffix3[0,0]\nU3:%shape[0,0]/%shape[1,0]\nU4:%shape[0,1]"
    )
    features, _ = template.expand([("Émile", "NNP"), ("B-52s", "x1"), ("a", "")])
    assert features == [
        ["U0:émile", "U1:Ém", "U2:ile", "U3:Aa/A-0a", "U4:A"],
        ["U0:b-52s", "U1:B-", "U2:52s", "U3:A-0a/a", "U4:a0"],
        ["U0:a", "U1:a", "U2:a", "U3:a/_B+1", "U4:"],
    ]
    assert template.describe("U1:Ém") == "prefix2=Ém"
    assert template.describe("U3:a/_B+1") == "shape=a shape[+1]=<end>"
    assert template.describe("U4:a0") == "shape(column1)=a0"
    assert template.unigrams[3] == ("U3:", (0, 0, "shape"), "/", (1, 0, "shape"))
    for wrong in ("%prefix0[0,0]", "%prefix[0,0]", "%upper[0,0]", "%shape[0]"):
        with pytest.raises(DataFileError, match="malformed macro"):
            Template.parse(f"U:{wrong}")


@pytest.mark.parametrize("name", ["words+spelling", "words+pos+spelling"])
def test_the_compiled_reader_makes_the_features_that_expand_spells_out(name: str) -> None:
    template = Template.load(name)
    assert template.unigrams[: len(Template.load(name[:-9]).unigrams)] == Template.load(name[:-9]).unigrams
    sentences = [SENTENCE, [("Île", "NP", "ignored"), ("de", "P", "too"), ("Ré", "NP", "x")], [], [["U.S.", "NNP"]]]
    index = FeatureIndex()
    X = index.learn(sentences, template)
    for encoded, sentence in zip(X, sentences, strict=True):
        expected = [sorted(set(features)) for features in template.expand(sentence)[0]]
        rows = encoded.toarray() if len(sentence) else []
        assert [sorted(index.name(c) for c in row.nonzero()[0]) for row in rows] == expected


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ([["dog"]], "expected a tuple of columns"),
        ([[("dog", "N")], [(1, "N")]], "expected strings in the columns"),
        ([[("dog", ["N"])]], "expected strings in the columns"),
        ([[("dog",)]], "the template needs column 1"),
        ([[("dog", "N"), ("cat", "N", "x")]], "expected 2 columns, found 3"),
        (["dog"], "expected"),
    ],
)
def test_malformed_tokens_are_named_with_spelling_macros_too(sentences: list, message: str) -> None:
    for name in ("words+pos", "words+pos+spelling"):
        with pytest.raises((TypeError, ValueError), match=message):
            FeatureIndex().learn(sentences, Template.load(name))


def test_edge_features_may_look_at_spellings() -> None:
    template = Template.parse("U:%x[0,0]\nB1:%shape[-1,0]/%shape[0,0]")
    index = FeatureIndex()
    rows = index.edge_rows([[("New", "x"), ("york", "y")]], template, grow=True)
    assert sorted(index.names()) == ["B1:Aa/a", "B1:_B-1/Aa"]
    assert rows.shape[0] == 2


@pytest.mark.parametrize("name", ["words", "words+pos", "words+spelling", "words+pos+spelling"])
def test_built_in_patterns_have_names_of_their_own(name: str) -> None:
    names = [str(pattern[0]) for pattern in Template.load(name).unigrams]
    assert len(set(names)) == len(names)


def test_edge_features_come_from_bigrams_with_cells_only() -> None:
    template = Template.parse("U:%x[0,0]\nB\nB1:%x[-1,1]/%x[0,1]\n")
    assert template.expand(SENTENCE)[1] == [["B1:_B-1/PRP"], ["B1:PRP/VBZ"], ["B1:VBZ/RB"]]


def test_too_few_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="the template needs 2 columns, but token 2 has 1"):
        Template.load("words+pos").expand([("a", "A"), ("b",)])
    with pytest.raises(ValueError, match="expected a tuple of columns, found the string 'dog'"):
        Template.load("words").expand(["dog"])


def test_an_empty_sentence_has_no_features() -> None:
    assert Template.load("words").expand([]) == ([], [])


def test_equality_is_about_patterns_not_comments() -> None:
    a, b = Template.parse("U:%x[0,0]\nB"), Template.parse("# the same\nB\n\nU:%x[0,0]\r\n")
    assert a == b
    assert hash(a) == hash(b)
    assert a != Template.parse("U:%x[0,0]")
    assert repr(a) == "<Template: 1 unigram and 1 bigram patterns over 1 column>"


def test_a_saved_file_loads_as_the_same_template(tmp_path: Path) -> None:
    path = tmp_path / "copy.template"
    path.write_text(Template.load("words+pos").text)
    assert Template.load(path) == Template.load("words+pos")
    assert Template.load(path).text == Template.load("words+pos").text.rstrip("\n")


cells = st.one_of(
    st.tuples(st.integers(-5, 5), st.integers(0, 9)),
    st.tuples(st.integers(-5, 5), st.integers(0, 9), st.sampled_from(["lower", "shape", "prefix3", "suffix9"])),
)
literals = st.text("abcXYZ:/_|[]-, x", min_size=1).filter(lambda text: text == text.strip())


@given(st.lists(st.tuples(st.sampled_from("UB"), st.lists(st.one_of(cells, literals))), min_size=1))
def test_text_rebuilds_the_template(lines: list) -> None:
    def spell(piece: object) -> str:
        return piece if isinstance(piece, str) else "%{2}[{0},{1}]".format(*piece, "x")  # type: ignore[misc]

    text = "\n".join(prefix + "".join(map(spell, pieces)) for prefix, pieces in lines)
    template = Template.parse(text)
    assert Template.parse(template.text) == template
    patterns = template.unigrams + template.bigrams
    rebuilt = sorted("".join(map(spell, pattern)) for pattern in patterns)
    assert rebuilt == sorted(text.split("\n"))
    used = [column for _, pieces in lines for piece in pieces if isinstance(piece, tuple) for column in piece[1:2]]
    assert template.n_columns == max(used, default=-1) + 1
