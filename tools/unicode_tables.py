"""Writes cpp/hashing/unicode.hpp: which characters make words, which are white space, and their lower case.

    python tools/unicode_tables.py > cpp/hashing/unicode.hpp

The tables are those of the Python that runs this (``str.isalnum``, ``str.isspace``, ``str.lower``). They are
committed, so that hashes of text do not depend on the Python at hand; making them anew with a newer Unicode changes
the words of some texts.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator

CHARACTERS = [c for c in map(chr, range(sys.maxunicode + 1)) if not "\ud800" <= c <= "\udfff"]
DOTTED_I = "\u0130"  # the one character whose lower case is two: "i" and a dot above


def ranges(holds: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """First and last code point of every run for which ``holds``."""
    found = [ord(c) for c in CHARACTERS if holds(c)]
    first = last = found[0]
    for code in found[1:]:
        if code != last + 1:
            yield first, last
            first = code
        last = code
    yield first, last


def lower_runs() -> Iterator[tuple[int, int, int, int]]:
    """(first, last, step, delta) of the characters above ASCII with a lower case of one other character."""
    simple = [(c, c.lower()) for c in CHARACTERS if c > "\x7f" and len(c.lower()) == 1]
    todo = [(ord(c), ord(low) - ord(c)) for c, low in simple if low != c]
    while todo:
        first, delta = todo[0]
        step = todo[1][0] - first if len(todo) > 1 and todo[1][0] - first in (1, 2) and todo[1][1] == delta else 1
        n = 1
        while n < len(todo) and todo[n] == (first + n * step, delta):
            n += 1
        yield first, first + (n - 1) * step, step, delta
        todo = todo[n:]


def check() -> None:
    """What the compiled code relies on."""
    assert [c for c in CHARACTERS if len(c.lower()) > 1] == [DOTTED_I]
    assert DOTTED_I.lower() == "i\u0307"
    assert not "\u0307".isalnum()
    for c in CHARACTERS:
        if c != DOTTED_I:
            assert c.lower().isalnum() == c.isalnum()
            assert c.lower().isspace() == c.isspace()


def table(name: str, kind: str, rows: list[tuple[int, ...]]) -> str:
    cells = [f"{{{', '.join(map(str, row))}}}" for row in rows]
    lines, line = [], " "
    for cell in cells:
        if len(line) + len(cell) > 116:
            lines.append(line)
            line = " "
        line += f" {cell},"
    return f"constexpr {kind} {name}[] = {{\n" + "\n".join([*lines, line]) + "\n};\n"


def main() -> None:
    check()
    print(f"""// Made by tools/unicode_tables.py from Unicode {unicodedata.unidata_version}; not to be edited by hand.
//
// WORD_RANGES: letters, digits, other numbers and the underscore, as Python's \\w. SPACE_RANGES: as Python's \\s.
// LOWER_RUNS: the characters first, first + step .. last above ASCII, whose lower case is delta further on.
#pragma once

#include <cstdint>

namespace mercer {{

constexpr char UNICODE_VERSION[] = "{unicodedata.unidata_version}";

struct CodeRange {{
  uint32_t first, last;
}};
struct LowerRun {{
  uint32_t first, last, step;
  int32_t delta;
}};
""")
    print(table("WORD_RANGES", "CodeRange", list(ranges(lambda c: c.isalnum() or c == "_"))))
    print(table("SPACE_RANGES", "CodeRange", list(ranges(str.isspace))))
    print(table("LOWER_RUNS", "LowerRun", list(lower_runs())))
    print("}  // namespace mercer")


if __name__ == "__main__":
    main()
