"""Lines of column files: tokens, comments, and what is neither."""

from __future__ import annotations

import pytest

from mercer.cli.columns import line_batches
from mercer.exceptions import DataFileError


def tokens_and_rest(path, content, n_columns=2):
    path.write_text(content)
    lines = [line for batch in line_batches(str(path), n_columns, 100) for line in batch]
    return [line.token for line in lines if line.token], [line.text for line in lines if not line.token]


@pytest.mark.parametrize(
    ("content", "tokens", "rest"),
    [
        ("# 1\nsold NN\n", [("#", "1"), ("sold", "NN")], []),  # the hash is a word of the first sentence
        ("# 1 O\nsold NN O\n", [("#", "1", "O"), ("sold", "NN", "O")], []),
        ("# read by hand from here\nsold NN\n", [("sold", "NN")], ["# read by hand from here"]),
        ("sold NN\n# 1\n", [("sold", "NN"), ("#", "1")], []),
        ("sold NN\n# by hand\n", [("sold", "NN")], ["# by hand"]),  # as many columns as with a label
        ("sold NN O\n# by\n", [("sold", "NN", "O")], ["# by"]),  # as many as without
    ],
)
def test_a_hash_begins_a_comment_where_its_columns_are_not_those_of_a_token(tmp_path, content, tokens, rest):
    assert tokens_and_rest(tmp_path / "words", content) == (tokens, rest)


def test_another_number_of_columns_is_an_error_of_its_line(tmp_path):
    with pytest.raises(DataFileError, match="expected 2 columns as in line 1, found 3"):
        tokens_and_rest(tmp_path / "words", "sold NN\nbought VB O\n")
