"""Collections of texts: parsers on small files in the real formats, and the real files where they lie at hand."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

from mercer.datasets import (
    TextData,
    load_20newsgroups,
    load_ag_news,
    load_movie_reviews,
    load_news20,
    load_r8,
    load_rcv1_small,
    load_reuters21578,
    load_sms_spam,
    load_trec_questions,
    load_webkb,
)

needs_data = pytest.mark.skipif(
    not os.environ.get("MERCER_DATA"), reason="set MERCER_DATA to the folder of public data sets"
)


def put(home: Path, name: str, content: str | bytes) -> None:
    path = home / name
    path.parent.mkdir(exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes({".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)(data))


def archive(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


# ---------------------------------------------------------------------------------------------- Reuters


def wire(split: str, topics: list[str], text: str, has_topics: str = "YES") -> str:
    listed = "".join(f"<D>{topic}</D>" for topic in topics)
    return (
        f'<REUTERS TOPICS="{has_topics}" LEWISSPLIT="{split}" CGISPLIT="TRAINING-SET" OLDID="1" NEWID="2">\n'
        f"<DATE>26-FEB-1987</DATE>\n<TOPICS>{listed}</TOPICS>\n<PLACES><D>usa</D></PLACES>\n"
        f"<UNKNOWN>&#5;&#5;C T</UNKNOWN>\n<TEXT>&#2;\n{text}</TEXT>\n</REUTERS>\n"
    )


BODY = (
    "<TITLE>PROFITS &lt;AM> UP</TITLE>\n<AUTHOR>by A. Nobody</AUTHOR><DATELINE>  ROME - </DATELINE>"
    "<BODY>AT&amp;T won.\n Reuter\n&#3;</BODY>"
)


@pytest.fixture
def reuters(tmp_path: Path) -> Path:
    documents = [
        wire("TRAIN", ["earn"], BODY),
        wire("TRAIN", ["earn", "acq"], "<BODY>both</BODY>"),
        wire("TRAIN", [], "&#3;no title, no body\n", has_topics="YES"),
        wire("TEST", ["acq"], "<BODY>one</BODY>"),
        wire("TEST", ["tea"], "<BODY>two</BODY>"),
        wire("TRAIN", ["tea"], "<BODY>not topical</BODY>", has_topics="NO"),
        wire("NOT-USED", ["earn"], "<BODY>not used</BODY>"),
    ]
    for k in range(22):
        name = f"reuters21578/reut2-{k:03d}.sgm" + (".gz" if k % 2 else "")
        content = documents[k] if k < len(documents) else wire("NOT-USED", [], "<BODY>.</BODY>")
        put(tmp_path, name, '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n' + content)
    return tmp_path


def test_reuters_documents_are_read_in_the_modapte_division(reuters: Path) -> None:
    data = load_reuters21578(data_home=reuters)
    assert data.labels.tolist() == [("earn",), ("earn", "acq"), (), ("acq",), ("tea",)]
    assert data.is_test.tolist() == [False, False, False, True, True]
    assert data.classes == ["acq", "earn", "tea"]
    X_train, X_test, _, y_test = data.split()
    assert (len(X_train), X_test, y_test.tolist()) == (3, ["one", "two"], [("acq",), ("tea",)])


def test_reuters_text_is_title_dateline_and_body_without_marks(reuters: Path) -> None:
    texts = load_reuters21578(data_home=reuters).texts
    assert texts[0].split() == ["PROFITS", "<AM>", "UP", "ROME", "-", "AT&T", "won.", "Reuter"]
    assert texts[2] == "no title, no body"


def test_reuters_labels_may_be_one_category_against_the_rest(reuters: Path) -> None:
    assert load_reuters21578("acq", data_home=reuters).labels.tolist() == [False, True, False, True, False]
    with pytest.raises(ValueError, match=r"category must be a topic of the training documents.*'tea'"):
        load_reuters21578("tea", data_home=reuters)  # in test documents only: nothing to learn from


def test_reuters_may_be_reduced_to_single_labels_and_frequent_topics(reuters: Path) -> None:
    assert load_reuters21578(single_label=True, data_home=reuters).labels.tolist() == ["earn", "acq", "tea"]
    data = load_reuters21578(single_label=True, n_categories=2, data_home=reuters)
    assert data.labels.tolist() == ["earn", "acq"]  # a document of two topics stays out, whichever are frequent
    data = load_reuters21578(n_categories=1, data_home=reuters)
    assert data.labels.tolist() == [("earn",), ("earn",), (), (), ()]
    with pytest.raises(ValueError, match="category and single_label cannot be combined"):
        load_reuters21578("earn", single_label=True, data_home=reuters)
    with pytest.raises(ValueError, match="n_categories must be an integer of at least 1, got 0"):
        load_reuters21578(n_categories=0, data_home=reuters)


def test_a_document_that_is_cut_off_ends_at_the_next(reuters: Path) -> None:
    cut = wire("TRAIN", ["earn"], "<BODY>first</BODY>").removesuffix("</TEXT>\n</REUTERS>\n")
    put(reuters, "reuters21578/reut2-000.sgm", cut + wire("TEST", ["acq"], "<BODY>next"))
    data = load_reuters21578(data_home=reuters)
    assert data.texts[:2] == ["first", "next"]
    assert data.labels[:2].tolist() == [("earn",), ("acq",)]


def test_damaged_reuters_files_are_named(reuters: Path) -> None:
    put(reuters, "reuters21578/reut2-004.sgm", "<html>not found</html>")
    with pytest.raises(ValueError, match=r"reut2-004\.sgm: expected documents in <REUTERS"):
        load_reuters21578(data_home=reuters)
    path = reuters / "reuters21578" / "reut2-001.sgm.gz"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ValueError, match=r"reut2-001\.sgm\.gz: cannot be decompressed"):
        load_reuters21578(data_home=reuters)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"needs the file reut2-001\.sgm or"):
        load_reuters21578(data_home=reuters)


# ---------------------------------------------------------------------------------------------- archives


@pytest.mark.parametrize("end", ["\n", "\t", " ", "\r\n"])
def test_newsgroup_headers_are_kept_or_stripped_whatever_divides_lines(tmp_path: Path, end: str) -> None:
    body = f"Dear all,{end}caf\xe9."
    post = f"From: me@x{end}Subject: a  b{end}Lines: 2{end}{end}{body}".encode("latin-1")
    put(tmp_path, "20newsgroups/20news-bydate-train.tar.gz", archive({"20news-bydate-train/sci.med/2": post}))
    put(tmp_path, "20newsgroups/20news-bydate-test.tar.gz", archive({"t/rec.autos/9": b"x", "t/alt.atheism/3": b"y"}))
    kept, stripped = load_20newsgroups(data_home=tmp_path), load_20newsgroups(headers=False, data_home=tmp_path)
    assert kept.texts[0] == post.decode("latin-1")
    assert stripped.texts[0].split() == body.split()
    assert kept.labels.tolist() == ["sci.med", "alt.atheism", "rec.autos"]
    assert kept.is_test.tolist() == [False, True, True]


def test_movie_reviews_are_labelled_by_folder(tmp_path: Path) -> None:
    members = {"m/README": b"?", "m/pos/b.txt": b"good", "m/neg/a.txt": b"bad"}
    put(tmp_path, "movie-reviews/movie_reviews.tar.gz", archive(members))
    data = load_movie_reviews(data_home=tmp_path)
    assert (data.texts, data.labels.tolist(), data.is_test) == (["bad", "good"], ["neg", "pos"], None)


def test_damaged_archives_are_named(tmp_path: Path) -> None:
    put(tmp_path, "movie-reviews/movie_reviews.tar.gz", b"no archive" * 100)
    with pytest.raises(ValueError, match=r"movie_reviews\.tar\.gz: not a complete tar archive"):
        load_movie_reviews(data_home=tmp_path)
    put(tmp_path, "movie-reviews/movie_reviews.tar.gz", archive({"README": b"?"}))
    with pytest.raises(ValueError, match="expected reviews"):
        load_movie_reviews(data_home=tmp_path)
    whole = gzip.compress(archive({"m/neg/a.txt": os.urandom(20_000)}))
    (tmp_path / "movie-reviews" / "movie_reviews.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="not a complete tar archive"):
        load_movie_reviews(data_home=tmp_path)


# ---------------------------------------------------------------------------------------------- lines


def test_messages_are_read_line_by_line(tmp_path: Path) -> None:
    put(tmp_path, "sms-spam/SMSSpamCollection", "ham\tsee\tyou\u2028later\r\nspam\tWIN £1\n")
    data = load_sms_spam(data_home=tmp_path)
    assert data.texts == ["see\tyou\u2028later", "WIN £1"]
    assert data.labels.tolist() == ["ham", "spam"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("ham\ta\nno tab here\n", r"SMSSpamCollection:2: expected 2 fields separated by a tab, found 1"),
        ("ham\ta\nEGG\tb\n", r"SMSSpamCollection:2: expected 'ham' or 'spam' before the tab, found 'EGG'"),
        ("", "SMSSpamCollection: the file is empty"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, content: str, message: str) -> None:
    put(tmp_path, "sms-spam/SMSSpamCollection", content)
    with pytest.raises(ValueError, match=message):
        load_sms_spam(data_home=tmp_path)


def test_ag_news_puts_two_files_side_by_side(tmp_path: Path) -> None:
    put(tmp_path, "ag-news-test/test_texts.txt.gz", "one\r\ntwo\r\n")
    put(tmp_path, "ag-news-test/test_labels.txt", "Business\r\nSci/Tech\r\n")
    data = load_ag_news(data_home=tmp_path)
    assert (data.texts, data.labels.tolist()) == (["one", "two"], ["Business", "Sci/Tech"])
    put(tmp_path, "ag-news-test/test_labels.txt", "Business\n")
    with pytest.raises(ValueError, match=r"test_texts.txt.gz: expected a line for each of the 1 labels, found 2 lines"):
        load_ag_news(data_home=tmp_path)


def test_questions_have_coarse_or_fine_labels(tmp_path: Path) -> None:
    put(tmp_path, "trec-qc/train.txt", "NUM:dist How far ?\nHUM:ind Who is caf\xe9 ?\n".encode("latin-1"))
    put(tmp_path, "trec-qc/test.txt", "NUM:date When ?\n")
    assert load_trec_questions(data_home=tmp_path).labels.tolist() == ["NUM", "HUM", "NUM"]
    data = load_trec_questions(fine=True, data_home=tmp_path)
    assert data.labels.tolist() == ["NUM:dist", "HUM:ind", "NUM:date"]
    assert data.texts[1] == "Who is café ?"
    put(tmp_path, "trec-qc/test.txt", "When was it ?\n")
    with pytest.raises(ValueError, match=r"test.txt:1: expected a label such as 'NUM:dist' first, found 'When'"):
        load_trec_questions(data_home=tmp_path)


@pytest.mark.parametrize(("load", "folder", "stem"), [(load_r8, "text-r8", "R8"), (load_webkb, "text-webkb", "WebKB")])
def test_an_index_stands_beside_the_documents(load, folder: str, stem: str, tmp_path: Path) -> None:
    put(tmp_path, f"{folder}/{stem}.txt", "0\ttrain\tearn\n1\ttest\tacq\n")
    put(tmp_path, f"{folder}/{stem}.clean.txt.gz", "first words\nsecond words\n")
    data = load(data_home=tmp_path)
    assert data.split()[:2] == (["first words"], ["second words"])
    assert data.labels.tolist() == ["earn", "acq"]
    put(tmp_path, f"{folder}/{stem}.txt", "0\ttrain\tearn\n1\tdev\tacq\n")
    with pytest.raises(ValueError, match=rf"{stem}.txt:2: expected 'train' or 'test' .* found 'dev'"):
        load(data_home=tmp_path)
    put(tmp_path, f"{folder}/{stem}.txt", "0\ttrain\tearn\n")
    with pytest.raises(ValueError, match="expected a line for each of the 1 labels"):
        load(data_home=tmp_path)


# ---------------------------------------------------------------------------------------------- matrices


def test_news20_is_a_sparse_matrix(tmp_path: Path) -> None:
    put(tmp_path, "news20/news20.bz2", "3 1:2 4:1\n1 2:5\n")
    data = load_news20(data_home=tmp_path)
    assert data.X.toarray().tolist() == [[0, 2, 0, 0, 1], [0, 0, 5, 0, 0]]
    assert data.y.tolist() == [3, 1]
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32  # SGDClassifier takes no others
    put(tmp_path, "news20/news20.bz2", "3 1:2 x\n")
    with pytest.raises(ValueError, match=r"news20.bz2: expected lines 'label index:value"):
        load_news20(data_home=tmp_path)


def test_rcv1_is_read_from_the_format_of_vowpal_wabbit(tmp_path: Path) -> None:
    put(tmp_path, "rcv1-vw/rcv1_small.dat.gz", "-1 |f 2:0.5 0:1e-1\n1 | 3:2\n1 |f\n")
    put(tmp_path, "rcv1-vw/rcv1_multiclass.dat", "2 |f 1:1\n")
    data = load_rcv1_small(data_home=tmp_path)
    assert data.X.toarray().tolist() == [[0.1, 0, 0.5, 0], [0, 0, 0, 2], [0, 0, 0, 0]]
    assert data.X.indices.dtype == np.int32
    assert (data.y.tolist(), data.path.name) == ([-1, 1, 1], "rcv1_small.dat.gz")
    assert load_rcv1_small("multiclass", data_home=tmp_path).y.tolist() == [2]
    with pytest.raises(ValueError, match="labels must be one of 'binary', 'multiclass', got 'both'"):
        load_rcv1_small("both", data_home=tmp_path)
    put(tmp_path, "rcv1-vw/rcv1_multiclass.dat", "2 |f 1:1\n1 |f 1:one\n")
    with pytest.raises(ValueError, match=r"rcv1_multiclass.dat:2: expected 'label \|f index:value"):
        load_rcv1_small("multiclass", data_home=tmp_path)


# ---------------------------------------------------------------------------------------------- TextData


def test_texts_without_a_division_are_divided_class_by_class() -> None:
    labels = np.repeat(["a", "b"], [80, 20])
    data = TextData([str(k) for k in range(100)], labels)
    X_train, X_test, y_train, y_test = data.split(test_size=0.1)
    assert sorted(X_train + X_test, key=int) == data.texts
    assert ((y_test == "a").sum(), (y_test == "b").sum()) == (8, 2)
    assert all(labels[int(x)] == y for x, y in zip(X_train, y_train, strict=True))
    assert data.split(test_size=0.1)[1] == X_test
    assert data.split(test_size=0.1, random_state=1)[1] != X_test


def test_texts_and_labels_must_be_equally_many() -> None:
    with pytest.raises(ValueError, match="labels must have a value for each of the 1 texts, got 2"):
        TextData(["a"], np.array([1, 2]))
    with pytest.raises(ValueError, match="is_test must have a value for each of the 1 texts, got 0"):
        TextData(["a"], np.array([1]), np.array([], dtype=bool))


# ---------------------------------------------------------------------------------------------- the real files


@needs_data
def test_reuters_is_complete_and_its_ten_frequent_topics_with_single_labels_are_r8() -> None:
    data = load_reuters21578()
    assert (len(data), int(data.is_test.sum())) == (12_902, 3299)
    assert not any("&#" in text or "</" in text for text in data.texts)
    earn = np.array(["earn" in labels for labels in data.labels])
    assert (int(earn[~data.is_test].sum()), int(earn[data.is_test].sum())) == (2877, 1087)
    ours, r8 = load_reuters21578(single_label=True, n_categories=10), load_r8()
    assert sorted(ours.labels[ours.is_test]) == sorted(r8.labels[r8.is_test])
    assert sorted(ours.labels[~ours.is_test]) == sorted(r8.labels[~r8.is_test])


@needs_data
@pytest.mark.parametrize(
    ("load", "n_train", "n_test", "n_classes"),
    [
        (load_20newsgroups, 11_314, 7532, 20),
        (load_sms_spam, 5574, None, 2),
        (load_movie_reviews, 2000, None, 2),
        (load_ag_news, 7600, None, 4),
        (load_trec_questions, 5452, 500, 6),
        (load_r8, 5485, 2189, 8),
        (load_webkb, 2803, 1396, 4),
    ],
)
def test_collections_are_complete(load, n_train: int, n_test: int | None, n_classes: int) -> None:
    data = load()
    assert len(data.classes) == n_classes
    assert len(data) == n_train + (n_test or 0)
    assert (data.is_test is None) == (n_test is None)
    assert n_test is None or data.is_test.sum() == n_test


@needs_data
def test_matrices_are_complete() -> None:
    news, rcv1 = load_news20(), load_rcv1_small()
    assert (news.X.shape, sorted(set(news.y.tolist()))) == ((15_935, 62_062), list(range(1, 21)))
    assert (rcv1.X.shape, int((rcv1.y == 1).sum())) == ((1000, 47_118), 459)
