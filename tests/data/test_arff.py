"""ARFF files and Mulan's label lists: what is read, and what is named when it is wrong."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.data import DataFileError, read_arff, read_mulan
from mercer.datasets import load_multilabel

HEADER = """% a comment
@RELATION 'two words'

@attribute size numeric
@attribute 'the colour' {red, 'dark blue', green}
@attribute on {0,1}
@attribute "sea" {0,1}
@attribute sky {NO,YES}
@data
"""
DENSE = HEADER + "1.5,red,1,1,NO\n% in between\n\n-2,'dark blue',0,0,YES\n?,green,1,0,NO\n"
SPARSE = HEADER + "{0 1.5, 2 1, 3 1}\n{0 -2,1 'dark blue', 4 YES}\n{}\n"
XML = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="sea"></label><label name="sky"/></labels>'


@pytest.fixture
def write(tmp_path):
    def written(text: str, name: str = "a.arff"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return written


def test_dense_rows(write):
    table = read_arff(write(DENSE))
    assert table.relation == "two words"
    assert [a.name for a in table.attributes] == ["size", "the colour", "on", "sea", "sky"]
    assert table.attributes[1].values == ("red", "dark blue", "green")
    assert np.array_equal(table.data, [[1.5, 0, 1, 1, 0], [-2, 1, 0, 0, 1], [np.nan, 2, 1, 0, 0]], equal_nan=True)


def test_sparse_rows_have_the_first_value_where_none_is_given(write):
    table = read_arff(write(SPARSE))
    assert sp.issparse(table.data)
    assert np.array_equal(table.data.toarray(), [[1.5, 0, 1, 1, 0], [-2, 1, 0, 0, 1], [0, 0, 0, 0, 0]])


@pytest.mark.parametrize("text", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_labels_of_an_xml_file_or_a_list(write, text):
    path, xml = write(text), write(XML, "a.xml")
    for labels in (xml, ["sea", "sky"]):
        found = read_mulan(path, labels)
        assert found.label_names == ["sea", "sky"]
        assert found.feature_names == ["size", "the colour=red", "the colour=dark blue", "the colour=green", "on"]
        assert np.array_equal(found.Y.toarray()[:2], [[1, 0], [0, 1]])
        X = found.X.toarray() if sp.issparse(found.X) else found.X
        assert np.array_equal(X[:2], [[1.5, 1, 0, 0, 1], [-2, 0, 1, 0, 0]])
    assert read_mulan(path, xml, ignore=["the colour"]).feature_names == ["size", "on"]


@pytest.mark.parametrize(("count", "labels"), [(2, ["on", "size"]), (-2, ["sea", "sky"]), (-1, ["sky"])])
def test_labels_that_the_relation_counts(write, count, labels):
    """MEKA's files: -C 2 are the first two attributes, -C -2 the last two."""
    text = DENSE.replace("@RELATION 'two words'", f"@relation 'toy: -C {count} -split-percentage 50'")
    if count > 0:
        text = text.replace("@attribute size numeric", "@attribute on {0,1}\n@attribute size {1.5,-2}", 1)
        text = text.replace('\n@attribute on {0,1}\n@attribute "sea"', '\n@attribute "sea"')
        text = text[: text.index("@data")] + "@data\n1,1.5,red,1,NO\n0,-2,green,0,YES\n"
    found = read_mulan(write(text))
    assert found.label_names == labels
    assert found.Y.shape[1] == abs(count)


@pytest.mark.parametrize("count", ["", "-C 0", "-C 9", "-C -9"])
def test_a_relation_that_counts_wrongly_is_named(write, count):
    with pytest.raises(DataFileError, match="-C"):
        read_mulan(write(DENSE.replace("two words", f"toy: {count}")))


def test_packed_files(write, tmp_path):
    path = tmp_path / "a.arff.gz"
    path.write_bytes(gzip.compress(DENSE.encode()))
    assert np.array_equal(read_arff(path).data, read_arff(write(DENSE)).data, equal_nan=True)
    path.write_bytes(gzip.compress(DENSE.encode())[:-12])
    with pytest.raises(DataFileError, match=r"a\.arff\.gz:\d+"):
        read_arff(path)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "empty"),
        ("@relation a\n@attribute x numeric\n", 2, "before @data"),
        ("@relation a\n@data\n1\n", 2, "before any @attribute"),
        (HEADER, 9, "no rows"),
        (HEADER + "1,red,1,1\n", 10, "expected 5 values, found 4"),
        (HEADER + "1,red,1,1,NO,2\n", 10, "expected 5 values, found 6"),
        (HEADER + "1,pink,1,1,NO\n", 10, "'pink' is no value of the attribute 'the colour'"),
        (HEADER + "one,red,1,1,NO\n", 10, "'one' of 'size' is no number"),
        (HEADER + "nan,red,1,1,NO\n", 10, "not finite"),
        (HEADER + "1e999,red,1,1,NO\n", 10, "not finite"),
        (HEADER + "1,'red,1,1,NO\n", 10, "quote"),
        (HEADER + "{0 1, 5 1}\n", 10, "attribute 0 .. 4"),
        (HEADER + "{0 1, 0 2}\n", 10, "ascend"),
        (HEADER + "{0 1, x 2}\n", 10, "attribute 0 .. 4"),
        (HEADER + "{0 1\n", 10, "brace"),
        (HEADER + "{0 1}\n1,red,1,1,NO\n", 11, "dense row among sparse"),
        (HEADER + "1,red,1,1,NO\n{0 1}\n", 11, "sparse row among dense"),
        ("@attribute x string\n@data\n", 1, "type 'string'"),
        ("@attribute x {a,b\n@data\n", 1, "brace"),
        ("@attribute x {a,a}\n@data\n", 1, "twice"),
        ("@attribute x {}\n@data\n", 1, "malformed"),
        ("@attribute\n@data\n", 1, "@attribute NAME TYPE"),
        ("@attribute x numeric\n@attribute x numeric\n@data\n", 2, "second attribute"),
        ("hello\n", 1, "expected @relation"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(write, text, line, message):
    with pytest.raises(DataFileError, match=message) as info:
        read_arff(write(text))
    assert info.value.line == line


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("<labels>", "no valid XML"),
        ("<labels></labels>", "expected elements"),
        ('<labels><label name="sea"/><label name="sea"/></labels>', "twice"),
        ('<labels><label name="tree"/></labels>', "'tree' is no attribute"),
        ('<labels><label name="size"/></labels>', "missing values"),
        ('<labels><label name="the colour"/></labels>', "3 values"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><labels/>', "document type"),
    ],
)
def test_wrong_lists_of_labels_are_named(write, labels, message):
    with pytest.raises(DataFileError, match=message):
        read_mulan(write(DENSE), write(labels, "a.xml"))


def test_a_set_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="emotions"):
        load_multilabel("emotions")
    with pytest.raises(ValueError, match="name must be one of"):
        load_multilabel("nothing")
