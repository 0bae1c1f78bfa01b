"""Readers of files: column files, graphs."""

from mercer.data.readers.conll import iter_conll, read_conll, write_conll
from mercer.data.readers.tu import read_tu

__all__ = ["iter_conll", "read_conll", "read_tu", "write_conll"]
