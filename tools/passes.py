"""Twelve tasks from a file to a prediction, and the files of the package that each of them passes.

    python tools/passes.py [task …]

writes the table of docs/architecture.md, or prints the files of single tasks. A task is run twice: first to import what
it needs, then with a profiler, which notes the file of every function of the package that is called, in the order of
the first calls.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import mercer

SOURCE = Path(mercer.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
BEGINS, ENDS = "<!-- tools/passes.py -->", "<!-- end of tools/passes.py -->"


def kept(model: Any, folder: Path) -> Any:
    """The model after a way through its file."""
    mercer.save(model, folder / "model")
    return mercer.load(folder / "model")


def table(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of a csv that NumPy reads."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = np.where(X[:, 0] > 0, "up", "down")
    path = folder / "rows.csv"
    path.write_text("".join(f"{label},{','.join(map(str, row))}\n" for label, row in zip(y, X, strict=True)))
    cells = np.loadtxt(path, delimiter=",", dtype=str)
    return cells[:, 1:].astype(float), cells[:, 0]


def columns(folder: Path) -> Path:
    path = folder / "words.txt"
    path.write_text("the D\ncat N\nsees V\n\na D\ndog N\nruns V\n\n" * 4)
    return path


def tagging(folder: Path) -> object:
    from mercer.data import Template, read_conll
    from mercer.tagging import Tagger

    sentences = read_conll(columns(folder))
    X, y = [[row[:1] for row in s] for s in sentences], [[row[-1] for row in s] for s in sentences]
    return kept(Tagger(template=Template.load("words"), max_iter=3).fit(X, y), folder).predict(X)


def segmentation(folder: Path) -> object:
    from mercer.data import read_conll
    from mercer.segmentation import Segmenter

    sentences = read_conll(columns(folder))
    X, y = [[row[:1] for row in s] for s in sentences], [[row[-1] for row in s] for s in sentences]
    return kept(Segmenter(max_iter=3).fit(X, y), folder).predict(X)


def classification(folder: Path) -> object:
    from mercer.classification import LinearClassifier

    X, y = table(folder)
    return kept(LinearClassifier().fit(X, y), folder).predict(X)


def online(folder: Path) -> object:
    from mercer.online import HashedClassifier

    path = folder / "texts.txt"
    path.write_text("good\tfine weather\nbad\train again\n" * 10)
    return list(kept(HashedClassifier(n_bits=10, max_iter=1).fit_file(path), folder).predict_file(path))


def kernel_machine(folder: Path) -> object:
    from mercer.kernel_methods import KernelSVC
    from mercer.kernels import Gaussian

    X, y = table(folder)
    return kept(KernelSVC(Gaussian(1.0)).fit(X, y), folder).predict(X)


def graph_labels(folder: Path) -> object:
    from mercer.labeling import GraphLabeler

    X, y = table(folder)
    graphs = [(X[i : i + 3], [(0, 1), (1, 2)]) for i in range(0, 30, 3)]
    labels = [list(y[i : i + 3]) for i in range(0, 30, 3)]
    return kept(GraphLabeler(max_iter=3).fit(graphs, labels), folder).predict(graphs)


def parsing(folder: Path) -> object:
    from mercer.parsing import Parser, read_trees

    path = folder / "trees.txt"
    path.write_text("(S (N dogs) (V bark))\n(S (N cats) (V sleep))\n" * 3)
    return kept(Parser(max_iter=3).fit(None, list(read_trees(path.read_text()))), folder).predict([["dogs", "bark"]])


def alignment(folder: Path) -> object:
    from mercer.alignment import Aligner

    path = folder / "pairs.txt"
    path.write_text("AC-G A-TG\nACGT AC-T\n" * 3)
    lines = [tuple(line.split()) for line in path.read_text().splitlines()]
    X = [(s.replace("-", ""), t.replace("-", "")) for s, t in lines]
    return kept(Aligner(max_iter=3).fit(X, lines), folder).predict(X)


def ranking(folder: Path) -> object:
    from mercer.ranking import Ranker

    X, y = table(folder)
    return kept(Ranker(max_iter=3).fit(X, (y == "up").astype(float)), folder).predict(X)


def label_sets(folder: Path) -> object:
    from mercer.multilabel import SeparateSVM

    X, y = table(folder)
    return kept(SeparateSVM().fit(X, [[label, "any"][: 1 + i % 2] for i, label in enumerate(y)]), folder).predict(X)


def shares_of_bags(folder: Path) -> object:
    from mercer.proportions import MeanMap, make_bags

    X, y = table(folder)
    return kept(MeanMap().fit(X, bags=make_bags(y, 5, random_state=0)), folder).predict(X)


def hidden_markov(folder: Path) -> object:
    from mercer.data import read_conll
    from mercer.markov import HiddenMarkovModel

    words = [[row[0] for row in s] for s in read_conll(columns(folder))]
    return kept(HiddenMarkovModel(2, max_iter=3, random_state=0).fit(words), folder).predict(words)


TASKS: dict[str, Callable[[Path], object]] = {
    task.__name__: task
    for task in (
        tagging, segmentation, classification, online, kernel_machine, graph_labels, parsing, alignment, ranking,
        label_sets, shares_of_bags, hidden_markov,
    )
}  # fmt: skip


def passed(task: str) -> list[str]:
    """The files of the package whose functions are called, in the order of the first calls."""
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(str(SOURCE)):
            files[Path(name).relative_to(SOURCE).as_posix().removesuffix(".py")] = None

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        TASKS[task](Path(folder))
        sys.setprofile(note)
        try:
            TASKS[task](Path(folder))
        finally:
            sys.setprofile(None)
    return list(files)


LAYERS = {
    "data": ("data/", "maps/"),
    "structure": ("structures/", "inference/", "kernels/"),
    "learning": ("learning/",),
}


def by_layer(task: str, files: list[str]) -> str:
    """A row of the table: the files of each layer but the base, which serves all of them."""
    cells: dict[str, list[str]] = {"own": [], **{layer: [] for layer in LAYERS}}
    for name in files:
        if not name.startswith("_"):
            layer = next((layer for layer, folders in LAYERS.items() if name.startswith(folders)), "own")
            cells[layer].append(f"`{name.removeprefix('learning/')}`")
    told = [", ".join(names) for names in cells.values()]
    return f"| {task.replace('_', ' ')} | {' | '.join(told)} | {sum(map(len, cells.values()))} |"


def page() -> str:
    """The table of all tasks."""
    head = "| task | estimator | data, maps | structure, inference, kernels | learning | files |"
    rule = "|---" * 6 + "|"
    return "\n".join([head, rule, *(by_layer(task, passed(task)) for task in TASKS)])


def table_of(text: str) -> tuple[int, int]:
    """Where the table begins and ends in the text of the page."""
    begin = text.index(BEGINS) + len(BEGINS)
    return begin, text.index(ENDS)


def main() -> int:
    if not sys.argv[1:]:
        text = PAGE.read_text()
        begin, end = table_of(text)
        PAGE.write_text(f"{text[:begin]}\n{page()}\n{text[end:]}")
    for task in sys.argv[1:]:
        print(f"{task}: {' '.join(passed(task))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
