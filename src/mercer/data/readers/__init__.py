"""Readers of files: column files, graphs, point clouds, tables of label sets."""

from mercer.data.readers.arff import ArffAttribute, ArffTable, MultilabelTable, read_arff, read_mulan
from mercer.data.readers.conll import iter_conll, read_conll, write_conll
from mercer.data.readers.label_sets import read_multilabel
from mercer.data.readers.meshes import read_cloud, write_cloud
from mercer.data.readers.table import read_columns, read_records
from mercer.data.readers.tu import read_tu

__all__ = [
    "ArffAttribute",
    "ArffTable",
    "MultilabelTable",
    "iter_conll",
    "read_arff",
    "read_cloud",
    "read_columns",
    "read_conll",
    "read_mulan",
    "read_multilabel",
    "read_records",
    "read_tu",
    "write_cloud",
    "write_conll",
]
