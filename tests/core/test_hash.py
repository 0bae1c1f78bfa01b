"""The hash is XXH64, values pinned from the xxhash package: hashed models mean the same everywhere."""

import pytest

from mercer._core.hashing import hash_bytes
from mercer.data import FeatureIndex


@pytest.mark.parametrize(
    ("text", "seed", "value"),
    [
        (b"", 0, 0xEF46DB3751D8E999),
        (b"", 1, 0xD5AFBA1336A3BE4B),
        (b"\x00", 0, 0xE934A84ADB052768),
        (b"a", 0, 0xD24EC4F1A98C6E5B),
        (b"abc", 0, 0x44BC2CF5AD770999),
        (b"abcd", 0, 0xDE0327B0D25D92CC),
        (b"abcdefg", 7, 0xB621F5C42CC6C89B),
        (b"12345678", 0, 0xD2D02F08CF7CFD4A),
        (b"word=the", 0, 0x718C6FDE5ED26475),
        (b"\xff" * 12, 0, 0x0E9A748176145F5F),
        (b"x" * 31, 0, 0x60DD0D01083B99F0),
        (b"x" * 32, 0, 0xE2DF261FC2EC30EB),
        (bytes(range(33)), 0, 0x0C535D1ACAFB8EAD),
        (bytes(range(100)), 2**64 - 1, 0x09A991A091C9F6D7),
        (bytes(range(256)) * 4, 123456789, 0x471F0B00732DA179),
        ("naïve—日本".encode(), 0, 0xC32DB6FE095BA6CE),
    ],
)
def test_hash_equals_the_published_algorithm(text, seed, value):
    assert hash_bytes(text, seed) == value


def test_hash_does_not_depend_on_alignment():
    text = bytes(range(64))
    padded = [b"." * k + text for k in range(8)]
    assert len({hash_bytes(p[k:]) for k, p in enumerate(padded)}) == 1


@pytest.mark.parametrize(("name", "column"), [("word=the", 116273), ("naïve—日本", 199862), ("", 245019)])
def test_hashed_columns_are_the_upper_bits_of_the_hash(name, column):
    assert FeatureIndex(18).find(name) == column


@pytest.mark.parametrize("text", ["text", None, 3, bytearray(b"x")])
def test_only_bytes_are_hashed(text):
    with pytest.raises(TypeError):
        hash_bytes(text)
