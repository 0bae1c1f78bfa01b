"""Sentence splitting on a page of hard cases; paragraphs in and out."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.data.prose import words
from mercer.segmentation import join_paragraphs, read_paragraphs, sentence_spans, split_sentences

# Each case is written with "|" where a sentence must end.
HARD = [
    "It rained.| We stayed at home.| Nobody came.",
    "Mr. and Mrs. Smith met Dr. Jones in St. Ives.| They had tea.",
    "The book by J. R. R. Tolkien is long.| C. S. Lewis read it.",
    "Philip K. Dick wrote it.| So did I.| Nobody else can.",
    "It costs $3.50 or 1,299.95 euros.| Version 2.0.1 is free.",
    "In 1990 it was 42.| The next year brought 43.",
    "The U.S. Senate met.| He lives in the U.S.| The law is old.",
    "We met at 5 p.m. sharp.| She left at 6 p.m.| It was dark.",
    "Fruit, e.g. apples, i.e. the red ones, is cheap.| See cf. the list.",
    "Smith et al. (2004) agree.| Apples, pears, etc. are sold here.",
    "Acme Inc. makes it.| It is sold by Acme Inc.| The price is low.",
    "See Fig. 3 and pp. 12 of vol. II.| No. 5 was sold.",
    '"Why?" he asked.| "I do not know."| He left.',
    "“Stop!” she cried.| “No.”| ‘Go.’| He went.",
    "(It was late.)| [See above.]| The end.",
    "What?!| Really!?| Yes!!!| No.",
    "Well... perhaps not.| And then...| Nothing happened.| Wait … there is more.",
    "Visit http://example.org/a.b?c=d.e!f now.| Or www.x.org.| Then write to a.b@c.de.",
    "Run python3.11 setup.py.| Read README.md, config.json and so on.",
    "Yes. no capital, so it goes on? yes.| 3 dogs came.",
    "He said: it is so.| She: no; never.",
    "A quotation “in the middle.| Of it” goes on.| Done.",
    "1. Open the box.| Look inside.| 2. is not a mark here.",
    "It was the end of part I.| Part II follows.",
    "See sec. 4.2.| Rev. 2 is new.| Gen. Lee came.",
    "Sept. 3 was hot.| It was Jan. 5 then.",
    "彼は来た。|私は行く。|何？|はい！",
    "No mark at the end",
    "No.| He left.| The cat sat.| Dogs bark.| It took 5 ms.| Nobody saw the sun.| Rain fell.",
    "The United States (U.S.) Senate (est. 1789) voted.| (They meet on Mon. and Fri. only.)| All left.",
    "Smith v. Jones is a case.| Let there be a vertex v.| Then it has a degree.",
]


@pytest.mark.parametrize("case", HARD)
def test_hard_cases(case):
    expected = [" ".join(part.split()) for part in case.split("|")]
    assert split_sentences(case.replace("|", "")) == expected


def test_list_items_are_sentences_of_their_own():
    text = "Do this:\n1. Open it. Look.\n2. Close it.\n- then rest\n- and sleep\n\n(a) One.\n(b) Two."
    assert split_sentences(text) == [
        "Do this:", "1. Open it.", "Look.", "2. Close it.", "- then rest", "- and sleep", "(a) One.", "(b) Two.",
    ]  # fmt: skip


def test_a_line_that_happens_to_begin_like_an_item_goes_on():
    assert split_sentences("There were exactly\n12. Then more came.") == ["There were exactly 12.", "Then more came."]
    assert split_sentences("He wrote - as always\n- to nobody at all.") == ["He wrote - as always - to nobody at all."]


def test_line_breaks_inside_a_sentence_become_spaces_and_blank_lines_end_it():
    assert split_sentences("One\n  two.\n \nThree") == ["One two.", "Three"]


@given(st.text(alphabet="aB .!?…\n\"')(1-。“”", max_size=60))
def test_spans_cover_all_but_white_space(text):
    spans = sentence_spans(text)
    assert all(a < b and not text[a].isspace() and not text[b - 1].isspace() for a, b in spans)
    assert all(b <= c for (_, b), (c, _) in pairwise(spans))
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())


def test_long_paragraphs_are_split_like_short_ones():
    text = "Mr. X came at 5 p.m. and left. He said no. "
    assert split_sentences(text * 500) == split_sentences(text) * 500
    assert len(split_sentences("Mr. X and " * 2000)) == 1
    assert len(split_sentences("So:" + "\n- an item" * 500)) == 501


@pytest.mark.parametrize("text", ["", "  \n\n \t"])
def test_nothing_has_no_sentences(text):
    assert split_sentences(text) == []
    [document] = read_paragraphs(text)
    assert document.sentences == []
    assert document.starts.shape == (0,)


def test_text_must_be_a_string():
    with pytest.raises(TypeError, match="text must be a string"):
        split_sentences(b"bytes")


def test_words_are_in_lower_case_with_inner_marks():
    assert words("The dog's well-known __init__ -- 3.5") == ["the", "dog's", "well-known", "__init__", "3", "5"]


# ------------------------------------------------------------------------------------------------------- paragraphs

TEXT = "It rained. We stayed\nat home.\n\n\nThen the sun came. \n \n“Now!” he said. And left.\n"


def test_paragraphs_start_after_blank_lines():
    [document] = read_paragraphs(TEXT)
    assert document.sentences == [
        "It rained.", "We stayed at home.", "Then the sun came.", "“Now!” he said.", "And left.",
    ]  # fmt: skip
    assert document.starts.tolist() == [0, 2, 3]


def test_files_texts_and_lists_of_them(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    [direct] = read_paragraphs(TEXT)
    [from_file] = read_paragraphs(path)
    both = read_paragraphs([path, TEXT])
    for other in (from_file, *both):
        assert other.sentences == direct.sentences
        np.testing.assert_array_equal(other.starts, direct.starts)


def test_joined_text_reads_as_the_same_document():
    [document] = read_paragraphs(TEXT)
    [again] = read_paragraphs(join_paragraphs(*document))
    assert again.sentences == document.sentences
    np.testing.assert_array_equal(again.starts, document.starts)


@given(
    st.lists(st.text(alphabet='aB .!?1-"', min_size=1).filter(str.strip), min_size=1, max_size=8),
    st.data(),
)
def test_any_sentences_survive_the_round_trip_by_lines(sentences, data):
    sentences = [" ".join(s.split()) for s in sentences]
    inner = data.draw(st.sets(st.integers(1, max(len(sentences) - 1, 1))))
    starts = sorted({0, *(t for t in inner if t < len(sentences))})
    [document] = read_paragraphs(join_paragraphs(sentences, starts, lines=True), sentences="lines")
    assert document.sentences == sentences
    assert document.starts.tolist() == starts


def test_bad_documents_are_named(tmp_path):
    with pytest.raises(ValueError, match="sentence 1 is blank"):
        join_paragraphs(["a.", "  "], [0])
    with pytest.raises(ValueError, match="begin with 0"):
        join_paragraphs(["a.", "b."], [1])
    with pytest.raises(TypeError, match="list of strings"):
        join_paragraphs("text", [0])
    with pytest.raises(ValueError, match="sentences must be one of"):
        read_paragraphs("a", sentences="words")
    with pytest.raises(TypeError, match="texts or paths"):
        read_paragraphs([3])
    path = tmp_path / "latin.txt"
    path.write_bytes("Müller.".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin\.txt is not text in UTF-8"):
        read_paragraphs(path)
    assert join_paragraphs([], []) == ""
