"""The multi-label data sets that Mulan distributes."""

from __future__ import annotations

import os

from mercer._validation import check_choice
from mercer.data.readers.arff import MultilabelTable, read_mulan
from mercer.datasets._home import data_file

__all__ = ["load_multilabel"]

_FILES = {
    "birds": ("birds-{}.arff", "birds.xml"),
    "cal500": ("cal500.arff", "cal500.xml"),
    "corel5k": ("Corel5k-{}-sparse.arff", "Corel5k.xml"),
    "emotions": ("emotions-{}.arff", "emotions.xml"),
    "flags": ("flags-{}.arff", "flags.xml"),
    "genbase": ("genbase-{}.arff", "genbase.xml"),
    "medical": ("medical-{}.arff", "medical.xml"),
    "scene": ("scene-{}.arff", "scene.xml"),
    "tmc2007": ("tmc2007-500-{}.arff", "tmc2007-500.xml"),
    "yeast": ("yeast-{}.arff", "yeast.xml"),
}
_IDENTIFIERS = {"genbase": ("protein",)}  # a value for each row, which says nothing about another
_TRAIN_ROWS = {"cal500": 335}  # of a set that has no split: two thirds, the first rows


def load_multilabel(
    name: str, subset: str = "train", data_home: str | os.PathLike[str] | None = None
) -> MultilabelTable:
    """Read one of Mulan's multi-label data sets.

    Parameters
    ----------
    name : str
        ``"birds"``, ``"cal500"``, ``"corel5k"``, ``"emotions"``, ``"flags"``, ``"genbase"``, ``"medical"``,
        ``"scene"``, ``"tmc2007"`` or ``"yeast"``.
    subset : {"train", "test"}, default="train"
        The published split. cal500 has none; its first 335 of 502 rows are the training set.
    data_home : path, optional
        Folder that contains ``multilabel/NAME/``; by default the environment variable ``MERCER_DATA``.

    Returns
    -------
    table : MultilabelTable
        X, Y (a CSR matrix of 0 and 1), feature_names and label_names.

    Examples
    --------
    >>> from mercer.datasets import load_multilabel
    >>> load_multilabel("emotions").X.shape  # doctest: +SKIP
    (391, 72)
    """
    check_choice("name", name, tuple(_FILES))
    check_choice("subset", subset, ("train", "test"))
    pattern, xml = _FILES[name]
    folder = f"multilabel/{name}"
    path, labels = data_file(folder, pattern.format(subset), data_home), data_file(folder, xml, data_home)
    table = read_mulan(path, labels, ignore=_IDENTIFIERS.get(name, ()))
    if name not in _TRAIN_ROWS:
        return table
    rows = slice(None, _TRAIN_ROWS[name]) if subset == "train" else slice(_TRAIN_ROWS[name], None)
    return MultilabelTable(table.X[rows], table.Y[rows], table.feature_names, table.label_names)
