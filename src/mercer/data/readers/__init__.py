"""Readers of files: column files, graphs, point clouds."""

from mercer.data.readers.conll import iter_conll, read_conll, write_conll
from mercer.data.readers.meshes import read_cloud, write_cloud
from mercer.data.readers.tu import read_tu

__all__ = ["iter_conll", "read_cloud", "read_conll", "read_tu", "write_cloud", "write_conll"]
