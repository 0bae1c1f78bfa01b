"""The compiled readers of example files: every format as Python's own parsers read it, however the bytes are cut."""

from __future__ import annotations

import json
import math
import time

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.reference import readers as slow

from mercer._core.examples import ExampleReader, Examples

CHUNKS = [1, 2, 7, 64 << 10]


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)] or [b""]


def read(data: bytes, format: str, size: int = 64 << 10, **options) -> tuple[list[Examples], ExampleReader]:
    reader = ExampleReader(format, **options)
    pieces = cut(data, size)
    blocks = []
    for i, piece in enumerate(pieces):
        blocks.append(reader.feed(piece, i + 1 == len(pieces)))
        if reader.error:
            break
    return blocks, reader


def plain(blocks: list[Examples]) -> dict[str, list]:
    """What blocks hold, in the form of the slow readers."""
    out: dict[str, list] = {"labels": [], "weights": [], "features": []}
    for block in blocks:
        names, n = block.label_names, len(block)
        out["labels"] += [None if i < 0 else names[i] for i in block.labels.tolist()]
        out["weights"] += block.weights.tolist() if len(block.weights) else [1.0] * n
        values = block.values.tolist() if len(block.values) else [1.0] * len(block.hashes)
        pairs = list(zip(block.hashes.tolist(), values, strict=True))
        out["features"] += [pairs[a:b] for a, b in zip(block.indptr[:-1], block.indptr[1:], strict=True)]
    return out


def same_as(data: bytes, expected: list, format: str, **options) -> None:
    want = slow.as_examples(expected)
    for size in CHUNKS:
        blocks, reader = read(data, format, size, **options)
        assert reader.error is None
        assert reader.n_skipped == 0
        assert reader.n_examples == len(expected)
        assert reader.n_lines == len(slow.lines(data))
        assert plain(blocks) == want, f"chunks of {size}"


# ---------------------------------------------------------------------------------------------- what files hold

line_ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
ascii_words = st.text("abcXYZ019_", min_size=1, max_size=20).map(str.encode)
numbers = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.floats(-1e6, 1e6, allow_nan=False).map(repr),
    st.sampled_from(
        ["1", "1.", ".5", "+2", "-0.0", "1e-3", "2E+5", "123456789012345678901", "0.1000000000000000055511151231"]
    ),
).map(str.encode)
labels = st.one_of(st.sampled_from([b"1", b"-1", b"+1", b"1.0", b"spam", b"2.5", b"007"]), ascii_words)


def file_of(record: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Records with any line ends between them, with or without one at the end."""
    whole = st.lists(st.tuples(record, line_ends), max_size=12).map(lambda rows: b"".join(a + b for a, b in rows))
    return st.one_of(whole, st.tuples(whole, record).map(b"".join))


free_text = st.lists(
    st.one_of(ascii_words, st.sampled_from([b" ", b", ", b"\t", b"\x00", b"|", b'"', b": ", b"\x1f"])), max_size=12
).map(b"".join)
vw_feature = st.one_of(ascii_words, st.tuples(ascii_words, numbers).map(b":".join), numbers.map(lambda x: b":" + x))
vw_space = st.tuples(
    st.one_of(st.just(b""), ascii_words, st.tuples(ascii_words, numbers).map(b":".join)),
    st.lists(vw_feature, max_size=5),
).map(lambda part: b" ".join([b"|" + part[0], *part[1]]))
vw_head = st.one_of(
    st.just(b""),
    labels.map(lambda y: y + b" "),
    labels.map(lambda y: y + b" 0.5 "),
    labels.map(lambda y: y + b"\t2 'tag "),
    labels.map(lambda y: y + b" tag"),
)
vw_line = st.tuples(vw_head, st.lists(vw_space, min_size=1, max_size=3).map(b" ".join)).map(b"".join)
svm_feature = st.tuples(st.integers(1, 10**9).map(lambda i: str(i).encode()), numbers).map(b":".join)
svm_line = st.one_of(
    st.tuples(
        labels,
        st.lists(st.one_of(svm_feature, st.just(b"qid:7")), max_size=6).map(b" ".join),
        st.sampled_from([b"", b" # note 1:2", b" "]),
    ).map(lambda p: p[0] + b" " + p[1] + p[2]),
    st.sampled_from([b"", b"# a comment", b"  "]),
)


@settings(max_examples=25, deadline=None)
@given(file_of(st.tuples(labels, free_text).map(b"\t".join)))
@example(b"a\tone two\r\n\r\nb\tthree\rc\t\n")
@example(b"\xef\xbb\xbfa\tone two\n")
def test_text_is_read_as_python_reads_it(data):
    same_as(data, slow.read_text(data), "text")


@settings(max_examples=25, deadline=None)
@given(file_of(vw_line))
@example(b"1 |a x:2 y |b:0.5 z:4 \r\n\n1 2 'tag |x\n|: a")
def test_vw_is_read_as_python_reads_it(data):
    try:
        expected = slow.read_vw(data)
    except ValueError:
        return  # the generator makes few of these; another test is about them
    if any(abs(x) > 3e38 for _, _, features in expected for _, x in features):
        return
    same_as(data, expected, "vw", label_required=False)


@settings(max_examples=25, deadline=None)
@given(file_of(svm_line))
def test_svmlight_is_read_as_python_reads_it(data):
    same_as(data, slow.read_svmlight(data), "svmlight")


cells = st.text(' ab,"\n\r\t019.é', max_size=8)


def csv_cell(text: str, quoted: bool) -> str:
    return '"' + text.replace('"', '""') + '"' if quoted or set(text) & set(',"\n\r') else text


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["x", "y,z", '"']),
            st.lists(st.tuples(cells, st.booleans()), min_size=2, max_size=2),
            line_ends,
        ),
        max_size=6,
    ),
    st.booleans(),
    st.sampled_from(["", " ", " \t "]),
)
def test_csv_is_read_as_python_reads_it(rows, with_text, padding):
    """Python reads cells without the spaces around them, which are no part of a cell unless in quotes."""
    name = "text" if with_text else "other"
    padded, bare = f"{padding}{name},label{padding},n\n", f"{name},label,n\n"
    for y, (a, b), end in rows:
        written = [csv_cell(*a), csv_cell(y, False), csv_cell(*b)]
        padded += ",".join(f"{padding}{cell}{padding}" for cell in written) + end.decode()
        bare += ",".join(cell if cell.startswith('"') else cell.strip(" \t") for cell in written) + end.decode()
    # Which letters beyond ASCII make words is the analyser's business.
    raw, plain_raw = (data.replace("é", "e" if with_text else "é").encode() for data in (padded, bare))
    same_as(raw, slow.read_csv(plain_raw, "label", "text" if with_text else None), "csv", separator=",")


def test_spaces_after_commas_leave_numbers_numbers():
    """As in the census data of the UCI repository."""
    spaced = b"label, age, job\n x, 39, State-gov\n y , 50 ,  Private \n"
    bare = b"label,age,job\nx,39,State-gov\ny,50,Private\n"
    assert spaced != bare
    same_as(spaced, slow.read_csv(bare, "label", None), "csv", separator=",")
    tabs = b"label\tage\nx\t 39 \n"
    same_as(tabs, slow.read_csv(b"label\tage\nx\t39\n", "label", None, "\t"), "csv", separator="\t")
    same_as(b"label age\nx 39\n", slow.read_csv(b"label,age\nx,39\n", "label", None), "csv", separator=" ")


json_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
json_label = json_text.filter(lambda name: name and "\0" not in name)
json_value = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(-1e30, 1e30, allow_nan=False), json_text,
    st.lists(st.integers(), max_size=2), st.dictionaries(json_text, st.text("ab", max_size=2), max_size=2),
)  # fmt: skip


@settings(max_examples=30, deadline=None)
@example([(5.960464477539063e-08, {}, "")], False, False)
@given(
    st.lists(
        st.tuples(
            st.one_of(json_label, st.integers(-9, 9), st.floats(-9, 9, allow_nan=False)),
            st.dictionaries(json_text.filter(lambda name: name not in ("label", "text")), json_value, max_size=4),
            st.text('ab_ \\"\n/é😀', max_size=12),
        ),
        max_size=5,
    ),
    st.booleans(),
    st.booleans(),
)
def test_json_lines_are_read_as_python_reads_them(rows, with_text, ascii_only):
    data = b""
    for y, fields, text in rows:
        row = {**fields, "label": y, **({"text": text} if with_text else {})}
        data += json.dumps(row, ensure_ascii=ascii_only).encode() + b"\n"
    wanted = [(y, w, f) for y, w, f in slow.read_jsonl(data, "label", "text" if with_text else None)]
    if with_text:
        # Letters beyond ASCII are the analyser's business: compare with what it makes of the text alone.
        blocks, _ = read(data, "jsonl")
        lone, _ = read("".join("x\t" + text.replace("\n", " ") + "\n" for _, _, text in rows).encode(), "text")
        assert plain(blocks)["features"] == plain(lone)["features"]
        assert plain(blocks)["labels"] == slow.as_examples(wanted)["labels"]
    else:
        same_as(data, wanted, "jsonl")


@settings(max_examples=60, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, width=64), st.integers(0, 20))
def test_numbers_are_rounded_correctly(x, precision):
    for text in (repr(x), f"{x:.{precision}e}", f"{x:.{precision}f}"):
        if math.isinf(float(text)):
            continue
        (block,), reader = read(f"{text} |f".encode(), "vw", numeric=True)
        assert reader.error is None
        assert block.targets[0] == float(text)


def test_numbers_of_extreme_size():
    for text, value in {
        "1e-400": 0.0,
        "4.9e-324": 4.9e-324,
        "1" + "0" * 300: 1e300,
        "0." + "0" * 400 + "1": 0.0,
    }.items():
        (block,), _ = read(f"{text} |f".encode(), "vw", numeric=True)
        assert block.targets[0] == value
    for text in ("1e400", "-1e999999999999", "1" + "0" * 400):
        _, reader = read(f"{text} |f".encode(), "vw", numeric=True)
        assert reader.error is not None, text


# ---------------------------------------------------------------------------------------------- labels and targets


def test_labels_that_are_equal_numbers_are_one_class():
    (block,), _ = read(b"1 1:1\n+1 1:1\n1.0 1:1\n01 1:1\n-0 1:1\n0 1:1\n2.50 1:1\nx 1:1", "svmlight")
    assert [block.label_names[i] for i in block.labels] == ["1", "1", "1", "1", "0", "0", "2.5", "x"]


def test_many_labels_get_one_number_each():
    data = b"".join(b"class%d\tone\n" % (i % 500) for i in range(2000))
    (block,), _ = read(data, "text", size=1 << 20)
    assert block.label_names == [f"class{i}" for i in range(500)]
    assert (block.labels == np.arange(2000) % 500).all()


def test_quoted_labels_of_vw_may_have_spaces():
    (block,), _ = read(b'"two words" 2 |f a\n', "vw")
    assert (block.label_names, block.weights.tolist()) == (["two words"], [2.0])


def test_labels_that_are_not_utf8_survive():
    (block,), _ = read(b"caf\xe9\tone\n", "text")
    assert block.label_names[0].encode("utf-8", "surrogateescape") == b"caf\xe9"


@pytest.mark.parametrize(
    ("format", "data"),
    [
        ("text", b"words\n"), ("vw", b"|f a\n"), ("svmlight", b"1:2\n"), ("csv", b"text\nwords\n"),
        ("jsonl", b'{"text": "words"}\n'), ("jsonl", b'{"text": "words", "label": null}\n'),
        ("csv", b"label,text\n,words\n"),
    ],
)  # fmt: skip
def test_a_label_may_be_missing_where_none_is_required(format, data):
    options = {"separator": ","} if format == "csv" else {}
    if data.startswith(b"text\n"):
        options["label"] = "label"
    (block,), reader = read(data, format, label_required=False, **options)
    assert reader.error is None
    assert block.labels.tolist() == [-1]
    assert len(block.hashes) == 1
    (block,), _ = read(data, format, label_required=False, numeric=True, **options)
    assert math.isnan(block.targets[0])
    _, reader = read(data, format, **options)
    assert reader.error is not None


def test_targets_are_numbers_where_numbers_are_asked_for():
    for format, data in (
        ("text", b"2.5\ta\n"),
        ("vw", b"2.5 |\n"),
        ("svmlight", b"2.5 1:1\n"),
        ("jsonl", b'{"label": 2.5, "a": 1}'),
    ):
        (block,), _ = read(data, format, numeric=True)
        assert block.targets.tolist() == [2.5]
        assert len(block.labels) == len(block.label_names) == 0
    _, reader = read(b"2.5\ta\nabc\tb\n", "text", numeric=True)
    assert reader.error == (2, "expected a number as target, found 'abc'")


def test_text_labels_may_come_last_and_be_split_by_another_sign():
    (block,), _ = read(b"one, two three;x\n", "text", label_place="last", separator=";")
    assert block.label_names == ["x"]
    assert len(block.hashes) == 3
    (block,), _ = read(b"one\ttwo\n", "text", label_place="none", label_required=False)
    assert len(block.hashes) == 2


def test_columns_of_svmlight_are_their_own_hashes_where_there_is_room():
    (block,), reader = read(b"1 1:1 4:1 5:1\n", "svmlight", n_bits=2)
    assert block.hashes.tolist() == [0, 3, slow.feature_hash(4, 0)]
    assert reader.n_columns == 5
    assert read(b"1 0:1 4:1\n", "svmlight", n_bits=2, zero_based=True)[0][0].hashes[0] == 0


# ---------------------------------------------------------------------------------------------- fields


def hashes(data: bytes, format: str, **options) -> list[int]:
    blocks, reader = read(data, format, **options)
    assert reader.error is None
    return np.concatenate([b.hashes for b in blocks]).tolist()


def test_two_text_fields_do_not_share_features():
    both = hashes(b"label,a,b\nx,one,one\n", "csv", separator=",", texts=["a", "b"])
    h = slow.feature_hash
    assert both == [slow.combine(h(name, 0), h(b"one", 0)) for name in (b"a", b"b")]
    assert hashes(b'{"label": 1, "b": "one", "a": "one"}', "jsonl", texts=["a", "b"]) == both


def test_fields_follow_the_rule_when_nothing_is_named():
    def fields(data: bytes, format: str, **options):
        return read(data, format, **options)[1].fields

    assert fields(b"y,a,b\n", "csv", separator=",") == {"label": "y", "texts": [], "columns": ["a", "b"], "rest": False}
    assert fields(b"text,a,label\n", "csv", separator=",") == {
        "label": "label",
        "texts": ["text"],
        "columns": [],
        "rest": False,
    }
    assert fields(b"a,text\n", "csv", separator=",", columns=["a"], label=1)["texts"] == []
    assert fields(b'{"label": 1, "text": "a", "b": 1}', "jsonl")["texts"] == ["text"]
    assert fields(b'{"label": 1, "b": 1}', "jsonl") == {"label": "label", "texts": [], "columns": [], "rest": True}
    assert fields(b"1,2,3\n", "csv", separator=",", header=False, label=-1)["columns"] == ["0", "1"]


def test_numbers_of_categorical_columns_are_names():
    h = slow.feature_hash
    assert hashes(b"y,zip\n1,10115\n", "csv", separator=",") == [h(b"zip", 0)]
    assert hashes(b"y,zip\n1,10115\n", "csv", separator=",", categorical=["zip"]) == [
        slow.combine(h(b"zip", 0), h(b"10115", 0))
    ]


def test_fields_inside_objects_are_named_by_dots():
    data = b'{"meta": {"class": "x", "skip": [1, {"a": 2}]}, "body": {"text": "one two"}}\n'
    (block,), reader = read(data, "jsonl", label="meta.class", texts=["body.text"])
    assert reader.error is None
    assert block.label_names == ["x"]
    assert block.hashes.tolist() == hashes(b"x\tone two", "text")


@pytest.mark.parametrize(
    ("format", "data", "options", "what"),
    [
        ("csv", b"a,b\n", {"label": "y"}, "expected a column 'y' (the label); the columns are: a, b"),
        ("csv", b"a,b\n", {"texts": ["t"]}, "expected a column 't' (text); the columns are: a, b"),
        ("csv", b"a,b\n", {"label": 2}, "expected a column number 2 (the label); there are 2: a, b"),
        ("csv", b"a,a\n", {}, "expected different names of columns, found 'a' twice"),
        ("csv", b"label\n", {}, "expected something to learn from beside the label; found: label"),
        ("csv", b"a,b\n", {"label": "a", "texts": ["a"]}, "the field 'a' has two parts to play"),
        ("jsonl", b'{"a": 1, "b": 2}\n', {}, "expected a field 'label' (the label); the fields are: a, b"),
    ],
)  # fmt: skip
def test_fields_that_are_not_there_are_named_even_when_malformed_lines_are_skipped(format, data, options, what):
    for skip in (False, True):
        _, reader = read(data, format, separator=",", skip=skip, **options)
        assert reader.error == (1, what)


# ---------------------------------------------------------------------------------------------- malformed records

NUL = "expected a label without NUL bytes, found '{}' (a file in UTF-16?)"
MALFORMED = [
    ("text", b"no tab here", "expected a label, a tab and a text, found no tab in 'no tab here'"),
    ("text", b"\tno label", "expected a label"),
    ("text", b"\xffa\0\tone", NUL.format("\ufffda\\x00")),
    ("jsonl", b'{"label": "\\u0000", "text": ""}', NUL.format("\\x00")),
    ("vw", b"1 f a b", "expected '|' before the features, found none in '1 f a b'"),
    ("vw", b"1 |f a:x", "column 8: expected a number after a name and ':', found 'x'"),
    ("vw", b"1 |f a:", "column 8: expected a number after a name and ':', found ''"),
    ("vw", b"1 |f a:1x", "column 8: expected a number after a name and ':', found '1x'"),
    ("vw", b"1 |f a:nan", "column 8: expected a number after a name and ':', found 'nan'"),
    ("vw", b"1 |f:x a", "column 6: expected a number after a namespace and ':', found 'x'"),
    ("vw", b"1 |f a:1e99", "column 6: expected a finite number that fits single precision"),
    ("vw", b"1 -2 |f a", "expected a number of at least 0 as importance, found '-2'"),
    ("vw", b"1:0.5 2:1 |f a", "expected one label and no costs, found '1:0.5'"),
    ("vw", b"1 2 3 |f a", "expected a label, an importance and a tag; an initial prediction is not supported"),
    ("vw", b'"open |f a', "column 1: expected '\"' after the label"),
    ("svmlight", b"1 2:3 4", "column 7: expected index:value, found '4'"),
    ("svmlight", b"1 2:3 4:", "column 7: expected index:value, found '4:'"),
    ("svmlight", b"1 -2:3", "column 3: expected index:value, found '-2:3'"),
    ("svmlight", b"1 0:3", "column 3: expected an index of at least 1 (or zero_based=True), found 0"),
    ("svmlight", b"1 2:1e99", "column 3: expected a finite number that fits single precision"),
    ("svmlight", b"1 99999999999999999999:1", "column 3: expected index:value, found '99999999999999999999:1'"),
    ("svmlight", b"1,2 3:4", "expected one label, found several: '1,2'"),
    ("csv", b"x", "expected 2 columns as in the header, found 1"),
    ("csv", b"x,a,b", "expected 2 columns as in the header, found 3"),
    ("csv", b'x,"a"b', "expected the end of the cell after '\"', found 'b'"),
    ("jsonl", b"[1]", "column 1: expected '{', found '['"),
    ("jsonl", b'{"label": 1 "text": 2}', "column 13: expected ',' or '}', found '\"'"),
    ("jsonl", b'{"label" 1}', "column 10: expected ':' after the name of a field, found '1'"),
    ("jsonl", b'{"label": 1, "text": "a', "column 24: expected '\"' at the end of a string, found the end of the line"),
    ("jsonl", b'{"label": 1, "text": "\\x"}', "column 24: expected one of \"\\/bfnrtu after '\\', found 'x'"),
    ("jsonl", b'{"label": 1, "text": "\\ud83d"}', "column 29: expected the second half of a surrogate pair"),
    ("jsonl", b'{"label": 1, "text": "\x01"}', "column 23: expected no control character inside a string (byte 1)"),
    ("jsonl", b'{"label": 01, "text": ""}', "column 11: expected a number without a leading zero"),
    ("jsonl", b'{"label": 1., "text": ""}', "column 11: expected a digit after the point of a number"),
    ("jsonl", b'{"label": nul, "text": ""}', "column 11: expected null"),
    ("jsonl", b'{"label": 1, "text": ""} x', "column 26: expected the end of the line, found 'x'"),
    ("jsonl", b'{"label": 1, "text": 7}', "expected a string as 'text'"),
    ("jsonl", b'{"label": 1}', "expected a field 'text'"),
    ("jsonl", b'{"text": "a"}', "expected a label"),
    ("jsonl", b'{"label": [1], "text": "a"}', "expected a string or a number as 'label'"),
    ("jsonl", b'{"label": 1, "text": "", "deep": ' + b"[" * 300 + b"]" * 300 + b"}", None),
]  # fmt: skip
GOOD = {
    "text": (b"", b"x\tone two"), "vw": (b"", b"x |f one two"), "svmlight": (b"", b"x 1:1 2:1"),
    "csv": (b"label,text\n", b"x,one two"), "jsonl": (b"", b'{"label": "x", "text": "one two"}'),
}  # fmt: skip


@pytest.mark.parametrize(("format", "bad", "what"), MALFORMED)
@pytest.mark.parametrize("size", [1, 1 << 16])
def test_a_malformed_line_is_named_and_what_came_before_is_kept(format, bad, what, size):
    head, good = GOOD[format]
    data = head + good + b"\n" + good + b"\r\n\n" + bad + b"\n" + good + b"\n"
    options = {"separator": ","} if format == "csv" else {}
    line = 4 + bool(head)
    blocks, reader = read(data, format, size, **options)
    assert sum(map(len, blocks)) == reader.n_examples == 2
    assert reader.error[0] == line
    assert what is None or reader.error[1] == what
    with pytest.raises(ValueError, match="ended with an error"):
        reader.feed(b"", True)
    blocks, reader = read(data, format, size, skip=True, **options)
    assert reader.error is None
    assert reader.n_skipped == 1
    assert reader.skipped[0][0] == line
    assert plain(blocks)["features"] == 3 * plain(read(head + good, format, **options)[0])["features"]


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_file_cut_in_the_middle_ends_with_an_error(format):
    head, good = GOOD[format]
    options = {"separator": ","} if format == "csv" else {}
    for stop in range(1, len(good)):
        data = head + good + b"\n" + good[:stop]
        _, reader = read(data, format, **options)
        whole = format == "csv" and b"," in good[:stop]
        assert (reader.error is None) == whole
    _, reader = read(b'label,text\nx,"one\ntwo', "csv", separator=",")
    assert reader.error == (2, "expected '\"' at the end of a quoted cell, found the end of the file")


def test_lines_are_counted_through_quoted_line_ends():
    data = b'label,text\n"x","a\nb\r\nc\rd"\ny,"e"\nz\n'
    for size in CHUNKS:
        _, reader = read(data, "csv", size, separator=",")
        assert reader.error == (7, "expected 2 columns as in the header, found 1")


def test_only_the_first_problems_are_kept_but_all_are_counted():
    blocks, reader = read(b"bad\n" * 1000 + b"x\tgood one\n", "text", skip=True)
    assert reader.n_skipped == 1000
    assert [line for line, _ in reader.skipped] == list(range(1, 11))
    assert sum(map(len, blocks)) == 1


# ---------------------------------------------------------------------------------------------- odd files


def test_bytes_that_are_not_utf8_and_nul_separate_words():
    (block,), reader = read(b"x\tone\x00two \xff\xfethree\n", "text")
    assert reader.error is None
    assert len(block.hashes) == 3


@pytest.mark.parametrize("format", list(GOOD))
@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n\r\n\n\r"])
def test_an_empty_file_has_no_examples(format, data):
    for size in CHUNKS:
        blocks, reader = read(data, format, size)
        assert sum(map(len, blocks)) == 0
        assert reader.error is None


@pytest.mark.parametrize("format", ["text", "csv"])
def test_one_long_line_takes_linear_time(format):
    """In chunks of 64 KB the bytes before would be searched hundreds of times if they were searched again."""
    n = 40 << 20
    head = b'label,text\nx,"' if format == "csv" else b"x\t"
    reader = ExampleReader(format, separator="," if format == "csv" else "\t")
    reader.feed(head, False)
    chunk, total, start = bytes(64 << 10), 0, time.process_time()
    for _ in range(n // len(chunk)):
        total += len(reader.feed(chunk, False))
    block = reader.feed(b' word"\n' if format == "csv" else b" word\n", True)
    assert (total, len(block), block.hashes.tolist()) == (0, 1, [slow.feature_hash(b"word", 0)])
    assert time.process_time() - start < 20  # seconds; quadratic work would take minutes


def test_a_limit_ends_the_reading():
    data = b"x\tone\n" * 100
    for size in CHUNKS:
        reader = ExampleReader("text", limit=7)
        n = 0
        for piece in cut(data, size):
            n += len(reader.feed(piece, False))
            if reader.done:
                break
        assert n == reader.n_examples == 7


def test_any_buffer_can_be_fed():
    for chunk in (
        b"x\tone\n",
        bytearray(b"x\tone\n"),
        memoryview(b"__x\tone\n")[2:],
        np.frombuffer(b"x\tone\n", np.uint8),
    ):
        assert len(ExampleReader("text").feed(chunk, True)) == 1
    with pytest.raises(TypeError):
        ExampleReader("text").feed("x\tone\n", True)
    reader = ExampleReader("text")
    reader.feed(b"", True)
    with pytest.raises(ValueError, match="last chunk"):
        reader.feed(b"", True)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"format": "xml"}, "format must be"), ({"format": "text", "analyzer": "x"}, "analyzer must be"),
        ({"format": "text", "ngrams": (2, 1)}, "ngrams must be"), ({"format": "text", "limit": -2}, "limit must be"),
        ({"format": "csv", "separator": ";;"}, "separator must be"),
        ({"format": "csv", "separator": "\n"}, "separator must be"),
        ({"format": "text", "label_place": "middle"}, "label_place must be"),
        ({"format": "text", "label_place": "none"}, "cannot be required"),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(options, what):
    with pytest.raises(ValueError, match=what):
        ExampleReader(**options)


def test_every_prefix_of_a_broken_file_is_survived():
    """Random bytes with the signs of each format: an error or an example, never a crash; chunks change nothing."""
    rng = np.random.default_rng(0)
    signs = np.frombuffer(b"|:,\" \t\n\r{}[]\\u0019.eE+-ab\x00\xff#'", np.uint8)
    for format in GOOD:
        for _ in range(150):
            data = rng.choice(signs, size=60).tobytes()
            if format == "csv":
                data = b"label,b\n" + data
            results = []
            for size in (1, 5, 1 << 16):
                blocks, reader = read(data, format, size, skip=True, separator="," if format == "csv" else "\t")
                results.append((plain(blocks), reader.n_skipped, reader.skipped, reader.error, reader.n_lines))
            assert results[0] == results[1] == results[2], (format, data)
