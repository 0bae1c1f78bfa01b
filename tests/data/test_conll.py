"""Column files: what is read, what is refused and how, and that nothing is half written."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.data.readers.conll import iter_conll, read_conll, write_conll
from mercer.exceptions import DataFileError

TEXT = "the DT B-NP\ndog NN I-NP\n\nsleeps VB B-VP\n"
SENTENCES = [[("the", "DT", "B-NP"), ("dog", "NN", "I-NP")], [("sleeps", "VB", "B-VP")]]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.conll"
    path.write_text(TEXT)
    return path


def test_paths_open_files_and_gzip_read_the_same(corpus: Path) -> None:
    packed = corpus.with_suffix(".gz")
    packed.write_bytes(gzip.compress(TEXT.encode()))
    assert read_conll(corpus) == SENTENCES
    assert read_conll(str(corpus)) == SENTENCES
    assert read_conll(packed) == SENTENCES
    assert read_conll(io.StringIO(TEXT)) == SENTENCES
    assert read_conll(io.BytesIO(TEXT.encode())) == SENTENCES


def test_open_files_stay_open() -> None:
    file = io.StringIO(TEXT)
    read_conll(file)
    assert not file.closed


def test_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("né X\n".encode()), encoding="ascii"))
    assert read_conll("-") == [[("né", "X")]]


@pytest.mark.parametrize(
    "text",
    [
        "a b\n\nc d",  # no newline at the end
        "\n\n  \na b\n\t\n\n\nc d\n\n\n",  # blank lines everywhere
        "a b\r\n\r\nc d\r\n",  # Windows
        "\ufeffa b\n\nc d\n",  # byte order mark
        "a\tb\n\n  c \t d  \n",  # tabs and runs of spaces
    ],
)
def test_layout_does_not_matter(text: str) -> None:
    expected = [[("a", "b")], [("c", "d")]]
    assert read_conll(io.StringIO(text)) == expected
    assert read_conll(io.BytesIO(text.encode())) == expected


@pytest.mark.parametrize("text", ["", "\n", "\n \n\t\n"])
def test_a_file_without_tokens_is_no_sentence(text: str) -> None:
    assert read_conll(io.StringIO(text)) == []


def test_only_spaces_and_tabs_split_columns() -> None:
    assert read_conll(io.BytesIO("10\u00a0000 N\u2028\x0c\n".encode())) == [[("10\u00a0000", "N\u2028\x0c")]]


def test_inconsistent_columns_name_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.conll"
    path.write_text("a b c\n\na b\n")
    with pytest.raises(DataFileError) as caught:
        read_conll(path)
    assert str(caught.value) == f"{path}:3: expected 3 columns as in line 1, found 2"
    assert (caught.value.file, caught.value.line) == (str(path), 3)
    assert caught.value.hint == "sentences are separated by blank lines; columns by spaces or tabs"


def test_inconsistent_columns_point_at_the_first_token_not_the_first_line() -> None:
    with pytest.raises(DataFileError, match=r"<file>:5: expected 1 column as in line 3, found 2"):
        read_conll(io.StringIO("\n\na\n\na b\n"))


def test_invalid_utf8_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "latin1.conll"
    path.write_bytes(b"a b\n\n" + "é y\n".encode() * 5000 + b"caf\xe9 y\n")
    with pytest.raises(DataFileError, match=r"latin1\.conll:5003: invalid UTF-8: byte 0xe9") as caught:
        read_conll(path)
    assert "UTF-8" in caught.value.hint
    with open(path, encoding="utf-8") as file, pytest.raises(DataFileError, match=r"latin1\.conll:5003: "):
        read_conll(file)


@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_truncated_gzip_is_named(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "cut.conll.gz"
    whole = gzip.compress("".join(f"word{i} tag{i * i}\n" for i in range(20_000)).encode())
    path.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(DataFileError, match=r"cut\.conll\.gz:\d+: the compressed data end too early"):
        read_conll(path)


def test_packed_or_not_is_told_by_the_content_not_by_the_name(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain.gz", tmp_path / "packed.conll"
    plain.write_text(TEXT)
    packed.write_bytes(bz2.compress(TEXT.encode()))
    assert read_conll(plain) == read_conll(packed) == read_conll(io.StringIO(TEXT))


def test_missing_file_is_the_ordinary_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_conll(tmp_path / "nowhere.conll")


def test_sentences_before_the_broken_one_are_streamed() -> None:
    stream = iter_conll(io.StringIO("a b\n\nc d\n\ne\n"))
    assert next(stream) == [("a", "b")]
    assert next(stream) == [("c", "d")]
    with pytest.raises(DataFileError, match=":5: "):
        next(stream)


def test_data_file_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(DataFileError("f", 3, "what", "hint")))
    assert (str(error), error.file, error.line, error.hint) == ("f:3: what", "f", 3, "hint")


def test_label_columns_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "out.conll"
    write_conll(path, SENTENCES, [["1", "2"], ["3"]], [["x", "y"], ["z"]])
    assert path.read_text() == "the DT B-NP 1 x\ndog NN I-NP 2 y\n\nsleeps VB B-VP 3 z\n\n"


def test_dash_writes_utf8_to_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    write_conll("-", [[("né",)]], [["X"]])
    assert raw.getvalue() == "né X\n\n".encode()


def test_open_text_and_binary_files_are_written() -> None:
    text, binary = io.StringIO(), io.BytesIO()
    write_conll(text, SENTENCES)
    write_conll(binary, SENTENCES)
    assert text.getvalue().encode() == binary.getvalue()
    assert read_conll(io.StringIO(text.getvalue())) == SENTENCES


def test_packed_output_reads_back_and_is_the_same_each_time(tmp_path: Path) -> None:
    first, second = tmp_path / "first.conll.gz", tmp_path / "second.conll.gz"
    write_conll(first, SENTENCES)
    write_conll(second, SENTENCES)
    assert read_conll(first) == SENTENCES
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("sentences", "columns", "message"),
    [
        (SENTENCES, [[["1", "2"], ["3", "4"]]], "sentence 2 has 1 token, but 2 labels in label column 1"),
        (
            SENTENCES,
            [[["1", "2"], ["3"]], [["1"], ["3"]]],
            "sentence 1 has 2 tokens, but 1 label in label column 2",
        ),
        (SENTENCES, [[["1", "2"]]], "sentence 2 has no labels in label column 1"),
        (
            SENTENCES,
            [[["1", "2"], ["3"], ["4"]]],
            "there are 2 sentences, but a label column goes on to sentence 3",
        ),
        ([[("a",)], []], [], "sentence 2 is empty"),
        ([[("a",)], [("a", "b")]], [], "sentence 2 has a token of 2 columns; the first has 1"),
        ([[("a",)], [("",)]], [], "sentence 2: '' is empty"),
        ([[("a",)], [("b c",)]], [], "sentence 2: 'b c' is empty or has white space"),
        ([["a", "b"]], [], "sentence 1: a token is a tuple of columns, found the string 'a'"),
    ],
)
def test_what_could_not_be_read_back_is_refused_and_the_old_file_stays(
    tmp_path: Path, sentences: list, columns: list, message: str
) -> None:
    path = tmp_path / "out.conll"
    path.write_text("old")
    with pytest.raises(ValueError, match=message):
        write_conll(path, sentences, *columns)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.conll"]


def test_a_link_is_followed_and_a_device_is_not_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target.conll", tmp_path / "link.conll"
    target.write_text("old")
    link.symlink_to(target)
    write_conll(link, SENTENCES)
    assert link.is_symlink()
    assert read_conll(target) == SENTENCES
    write_conll(os.devnull, SENTENCES)
    assert not os.path.isfile(os.devnull)


# Any character but those that end a column or a line, and surrogates, which UTF-8 cannot hold.
# A byte order mark at the very start of a file is not text, so it is left out too.
values = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" \t\r\n\ufeff"), min_size=1, max_size=4)
corpora = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(st.tuples(*[values] * width), min_size=1, max_size=4), max_size=4)
)


@given(corpora)
def test_what_is_written_is_read_back(sentences: list) -> None:
    file = io.BytesIO()
    write_conll(file, sentences)
    assert read_conll(io.BytesIO(file.getvalue())) == sentences


@given(corpora)
def test_an_appended_column_is_the_last_one_read(sentences: list) -> None:
    file = io.BytesIO()
    write_conll(file, sentences, [[f"y{t}" for t in range(len(s))] for s in sentences])
    read = read_conll(io.BytesIO(file.getvalue()))
    assert [[row[:-1] for row in s] for s in read] == sentences
    assert all([row[-1] for row in s] == [f"y{t}" for t in range(len(s))] for s in read)


def test_importing_the_data_side_does_not_import_scipy_or_sklearn() -> None:
    code = (
        "import sys\n"
        "import mercer.data.readers.conll\n"
        "import mercer.metrics\n"
        "import mercer.datasets\n"
        "print(sorted({'scipy', 'sklearn'} & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
