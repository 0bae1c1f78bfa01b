"""Sentence splitting by rules over punctuation marks, without a model.

A mark is a run of ``.``, ``!``, ``?`` or ``…`` with the closing quotes and brackets behind it, followed by white
space. Whether it ends a sentence depends on its neighbours, in this order:

1. a blank line, and the beginning of a list item after a mark or a colon, always end a sentence;
2. the number or letter that opens a list item (``1.``, ``b.``, ``iv.``) ends none;
3. a sentence begins with a capital, a digit, a letter without case, or a quotation; no sentence ends before a
   lower-case letter, or at a mark with nothing before it;
4. after an ellipsis, ``!`` and ``?`` no further rule applies;
5. a full stop after a title (``Dr.``) or a word that never ends a sentence (``e.g.``) ends nothing; one after ``No.``
   or ``p.`` ends nothing before a number; one after an initial, ``U.S.``, ``etc.`` or ``Inc.`` ends a sentence only
   before a word that opens sentences, such as "The";
6. the ideographic marks 。！？ end a sentence wherever they stand.

Marks without white space behind them are inside something: decimals, addresses, file names.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import pairwise

__all__ = ["paragraph_spans", "sentence_spans", "split_sentences", "words"]

_MARK = re.compile(r"""(?:[.!?…]+["'”’»›)\]}*]*(?=\s|$))|[。！？]+[」』”’）]*""")
_OPENING = "\"'“‘„«‹([{*_—–-"
_QUOTES = "\"'“‘„«‹"
_BEFORE = re.compile(r"[^\s\"'“”‘’„«»‹›()\[\]{}*—–]+$")
_BLANK = re.compile(r"\n[^\S\n]*\n\s*")
_ITEM = re.compile(r"\n[^\S\n]*(?=(?:[-*•‣◦–]|\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)])\s+\S)")
_LABEL = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5})$")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]{1,2}$")
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_NEAR = 200  # characters on either side of a mark that are looked at
_NUMBER = re.compile(r"[\[(]?(?:\d|[IVXLC]+\b)")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TITLES = _set(  # and the like, which a name follows: with a capital, since "sat" and "ms" are words
    "Adm Atty Brig Capt Cdr Cmdr Col Cpl Dr Drs Fr Gen Gov Hon Insp Lt Maj Messrs Mme Mlle Mr Mrs Ms Msgr Mt Pres "
    "Prof Rep Reps Rev Sen Sens Sgt Sra St Supt Herr Frl"
)
_GO_ON = _set("e.g eg i.e ie cf viz")
_NUMBERED = _set("no nos nr fig figs eq eqs sec secs ch chap vol vols p pp art arts op pt sect tab para paras ver bd")
_MAY_END = _set(
    "etc al approx ca ed eds esp est ext ft hr hrs ibid incl lb lbs oz repr resp tel trans v vs Ave Bldg Blvd Bros Co "
    "Corp Dept Esq Inc Jr Ltd Rd Sq Sr Univ Assn Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues Wed "
    "Thu Thurs Fri Sat Sun"
)
_STARTERS = _set(
    "A About After All Also Although An And Another Any As At Because Before Both But By Can Did Do Does Each Even "
    "Every First For From Had Has Have He Hence Her Here His How However I If In Indeed Instead Is It Its Just Last "
    "Later Let Like Many May Maybe Meanwhile Most Much My Neither Nevertheless Next No Nobody None Nor Not Nothing "
    "Now Of Often On Once One Only Or Other Others Our Perhaps Please See She Since So Some Sometimes Soon Still "
    "Such Than That The Their Then There Therefore These They This Those Though Thus To Today Two Under Unless "
    "Until Was We Well Were What When Where Whether Which While Who Why Will With Would Yes Yet You Your"
)


def words(text: str) -> list[str]:
    """Return the words of a text in lower case: runs of letters, digits and underscores, with inner ``'`` or ``-``.

    Examples
    --------
    >>> words("Don't go: it's 3 o'clock, a well-known hour.")
    ["don't", 'go', "it's", '3', "o'clock", 'a', 'well-known', 'hour']
    """
    return _WORD.findall(text.lower())


def paragraph_spans(text: str) -> list[tuple[int, int]]:
    """Return paragraphs as (start, end) in the text: parts between blank lines, stripped of white space.

    Examples
    --------
    >>> paragraph_spans("One.\\nTwo.\\n\\n  Three.\\n")
    [(0, 9), (13, 19)]
    """
    text_end, start, spans = len(text), 0, []
    cuts = [match.span() for match in _BLANK.finditer(text)]
    for a, b in [*cuts, (text_end, text_end)]:
        span = _strip(text, start, a)
        if span is not None:
            spans.append(span)
        start = b
    return spans


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return sentences as (start, end) in the text, in order; between them there is only white space.

    Parameters
    ----------
    text : str

    Returns
    -------
    spans : list of (start, end)
        ``text[start:end]`` is a sentence, with its line breaks.

    Examples
    --------
    >>> from mercer.segmentation import sentence_spans
    >>> sentence_spans("Dr. No left.  (At 3.15 p.m.) Who saw it?")
    [(0, 12), (14, 28), (29, 40)]
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {type(text).__name__}")
    return [
        span
        for paragraph in paragraph_spans(text)
        for a, b in pairwise(_cuts(text, *paragraph))
        if (span := _strip(text, a, b)) is not None
    ]


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, each on one line.

    The splitter uses rules, not a model. They cover titles, initials, abbreviations, decimals, addresses, quotes and
    brackets after a mark, ellipses and list items, for English and languages with its punctuation. Blank lines end a
    sentence.

    Parameters
    ----------
    text : str

    Returns
    -------
    sentences : list of str
        White space inside a sentence becomes single spaces; use :func:`sentence_spans` for positions in the text.

    Examples
    --------
    >>> from mercer.segmentation import split_sentences
    >>> split_sentences('Mr. J. R. Smith paid $3.50. "Why?" he asked. See www.x.org/a.html... Then he left')
    ['Mr. J. R. Smith paid $3.50.', '"Why?" he asked.', 'See www.x.org/a.html...', 'Then he left']
    """
    return [" ".join(text[a:b].split()) for a, b in sentence_spans(text)]


def _strip(text: str, start: int, end: int) -> tuple[int, int] | None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None


def _cuts(text: str, start: int, end: int) -> list[int]:
    """Where the sentences of a paragraph begin, and its end."""
    items = _items(text, start, end)
    cuts, last = [start], start
    for match in _MARK.finditer(text, start, end):
        place = match.end()
        while (k := bisect_right(items, last)) < len(items) and items[k] < place:
            last = items[k]
        if place < end and _ends(text, last, match, place, end):
            cuts.append(place)
            last = place
    return [*sorted({*cuts, *items}), end]


def _items(text: str, start: int, end: int) -> list[int]:
    """Beginnings of list items: lines with a list mark, after the end of something or after another item."""
    ends: list[int] = []
    is_list = _ITEM.match("\n" + text[start : min(end, start + _NEAR)]) is not None
    for match in _ITEM.finditer(text, start, end):
        before = text[max(start, match.start() - _NEAR) : match.start()].rstrip()
        if before and (is_list or before[-1] in ".:;!?)"):
            ends.append(match.end())
            is_list = True
    return ends


def _ends(text: str, start: int, match: re.Match[str], place: int, end: int) -> bool:
    """Whether the mark ends the sentence that began at ``start``; ``place`` is where the next would begin."""
    mark = match.group()
    if mark[0] in "。！？":
        return True
    following = text[place : min(end, place + _NEAR)].lstrip()
    start = max(start, match.start() - _NEAR)
    if not _may_begin(following) or not text[start : match.start()].strip(_OPENING + " \n"):
        return False
    if mark[0] != "." or mark.startswith(("..", ".!", ".?")):
        return True
    before = _BEFORE.search(text, start, match.start())
    if before is None:
        return True
    return _stop_ends(before.group(), text[start : before.start()].strip(), following)


def _may_begin(following: str) -> bool:
    bare = following.lstrip(_OPENING + " ")
    if not bare:
        return False
    first = bare[0]
    if first.islower():  # a quotation may begin in lower case; a word may not
        return following[0] in _QUOTES and following[0] != "'"
    return True


def _stop_ends(word: str, before: str, following: str) -> bool:
    """Whether a plain full stop after ``word`` ends its sentence, of which ``before`` is what comes earlier."""
    word = word.lstrip(_OPENING)
    small = word.lower()
    if not before.strip(_OPENING + " ") and _LABEL.match(word):
        return False  # rule 2: "1. First …", "a. …"
    if word in _TITLES or small in _GO_ON:
        return False
    if small in _NUMBERED and _NUMBER.match(following):
        return False
    first = _WORD.search(following)
    opens = first is not None and first.group() in _STARTERS
    if len(word) == 1 and word.isalpha() and word.isupper():
        if word == "I" and before[-1:].islower() and not before.split()[-1][0].isupper():
            return True  # the pronoun: "so do I. Then …"
        return opens
    if word in _MAY_END or _DOTTED.match(word):
        return opens
    return True
