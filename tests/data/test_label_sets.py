"""Rows with label sets from svmlight, csv and ARFF files."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.data import DataFileError, read_multilabel

SVM = "sky,sea 1:0.5 3:2\n\nsea 2:1 # noted\n 1:1\n"
CSV = 'size,tags,width\n1,sea;sky,2\n2,"[""sea""]",3\n3,,4\n5,sun|sea,6\n'


def written(tmp_path, name: str, text: str):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_svmlight_with_several_labels(tmp_path):
    table = read_multilabel(written(tmp_path, "a.svm", SVM))
    assert table.label_sets() == [["sea", "sky"], ["sea"], []]
    assert np.array_equal(table.X.toarray(), [[0.5, 0, 2], [0, 1, 0], [1, 0, 0]])
    assert read_multilabel(tmp_path / "a.svm", n_features=9).X.shape == (3, 9)


def test_csv_with_a_column_of_label_sets(tmp_path):
    table = read_multilabel(written(tmp_path, "a.csv", CSV), "tags")
    assert table.label_sets() == [["sea", "sky"], ["sea"], [], ["sea", "sun"]]
    assert table.feature_names == ["size", "width"]
    assert np.array_equal(table.X, [[1, 2], [2, 3], [3, 4], [5, 6]])
    tabs = written(tmp_path, "a.tsv", "size\tlabels\n1\ta,b\n")
    assert read_multilabel(tabs).label_sets() == [["a", "b"]]


def test_arff_finds_its_list_of_labels(tmp_path):
    arff = "@attribute x numeric\n@attribute a {0,1}\n@data\n1,1\n2,0\n"
    path = written(tmp_path, "toy-train.arff", arff)
    with pytest.raises(DataFileError, match="list of labels"):
        read_multilabel(path)
    written(tmp_path, "toy.xml", '<labels><label name="a"/></labels>')
    assert read_multilabel(path).label_sets() == [["a"], []]


@pytest.mark.parametrize(
    ("name", "text", "line", "message"),
    [
        ("a.svm", "", 1, "no rows"),
        ("a.svm", "a 1:1\nb 0:1\n", 2, "must ascend from 1"),
        ("a.svm", "a 2:1 1:1\n", 1, "must ascend"),
        ("a.svm", "a 1:x\n", 1, "FEATURE:VALUE"),
        ("a.svm", "a 1:nan\n", 1, "FEATURE:VALUE"),
        ("a.svm", "a 99999999999:1\n", 1, "out of range"),
        ("a.csv", "", 1, "empty"),
        ("a.csv", "x,y\n1,2\n", 1, "one column 'labels'"),
        ("a.csv", "x,labels\n1\n", 2, "expected 2 columns"),
        ("a.csv", "x,labels\nred,a\n", 2, "'red' in column 'x'"),
        ("a.csv", 'x,labels\n1,"[1"\n', 2, "list of labels"),
        ("a.csv", "x,labels\n", 1, "no rows"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, name, text, line, message):
    with pytest.raises(DataFileError, match=message) as info:
        read_multilabel(written(tmp_path, name, text))
    assert info.value.line == line


def test_a_feature_number_cannot_ask_for_gigabytes_of_names(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("a 2147483646:1\n")
    with pytest.raises(DataFileError, match=r"a\.svm:1: feature 2147483646 is out of range: at most 8,388,608"):
        read_multilabel(path)
