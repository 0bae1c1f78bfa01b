"""Every reader of files, with small files mutated: only errors that name the thing, no crash, no endless allocation."""

from __future__ import annotations

import base64
import contextlib
import copy
import gzip
import os
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fuzz.engine import REFUSED, Case, Target, describe

CONLL = b"He PRP B-NP\nreckons VBZ B-VP\nthe DT B-NP\ncurrent JJ I-NP\n\nConfidence NN B-NP\nin IN B-PP\n. . O\n"
TEMPLATE = b"# unigrams\nU00:%x[-2,0]\nU01:%x[-1,0]\nU05:%x[-1,0]/%x[0,0]\n\n# bigram\nB\nB01:%x[0,1]\n"
TREES = b"(S (NP (Det the) (N dog)) (VP (V barks)))\n( (S (NP (N cats)) (VP (V sleep) (-LRB- -LRB-))) )\n"
GRAMMAR = b"S -> NP VP 1.0\nNP -> 'dogs' 0.5\nNP -> NP NP 0.5\nVP -> 'bark' 1\n"
ARFF = b"""@relation 'a b'
@attribute size numeric
@attribute 'the colour' {red, 'dark blue'}
@attribute sea {0,1}
@attribute sky {NO,YES}
@data
1.5,red,1,NO
-2,'dark blue',0,YES
"""
ARFF_SPARSE = b"@attribute size numeric\n@attribute sea {0,1}\n@attribute sky {0,1}\n@data\n{0 1.5,2 1}\n{1 1}\n{}\n"
LABEL_SETS = b"sea,sky 1:0.5 7:2\nsea 2:1e3 # a comment\n 3:1\n"
LABEL_COLUMN = b'size,labels\n1,sea;sky\n2.5,"[""sea""]"\n3,\n'
BIF = b"""network unknown {
}
variable rain {
  type discrete [ 2 ] { yes, no };
}
variable wet {
  type discrete [ 3 ] { dry, damp, wet };
}
probability ( rain ) {
  table 0.2, 0.8;
}
probability ( wet | rain ) {
  (yes) 0.1, 0.3, 0.6;
  (no) 0.9, 0.06, 0.04;
}
"""
UAI = b"MARKOV\n3\n2 2 3\n2\n2 0 1\n3 0 1 2\n\n4\n.4 .6\n.3 .7\n\n12\n0.2 0.1 0.1 0.2 0.2 0.2 0.1 0.1 0.3 0.4 0.5 0.6\n"
UAI_EVIDENCE = b"1\n2 1 0 2 1\n"
TU = {
    "A": b"1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
    "graph_indicator": b"1\n1\n1\n2\n2\n",
    "graph_labels": b"1\n-1\n",
    "node_labels": b"0\n1\n0\n2\n1\n",
    "edge_labels": b"0\n0\n1\n1\n2\n2\n",
    "node_attributes": b"0.5, 1\n1.0, 2\n0.25, 3\n1e3, 4\n-2, 5\n",
}
TEXT = b"spam\tbuy now cheap pills\nham\tsee you at noon\nspam\tcheap cheap offer\nham\tlunch today then\n"
VW = b"1 2.0 'tag| a:1.5 b c:-2e3\n-1 | d e\n1 1.0 |f a b |g c:0.25\n-1 |g d:3\n"
SVMLIGHT = b"1 1:0.5 3:1 10:-2.5 # comment\n-1 2:1\n1 qid:3 1:1e-3\n-1 3:2 4:1\n"
CSV = b'label,text,age\nspam,"buy, now",3\nham,"say ""hi""",4.5\nspam,cheap,\nham,see you,-1e3\n'
JSONL = b'{"label": "spam", "text": "a \\u00e9", "n": {"a": 1.5, "b": [1]}}\n{"label": "ham", "text": "hi", "n": {}}\n'
DATES = "größe;tag;label\n1,5;2024-01-31;ja\n2;31.12.2023;nein\n3;2024-02-29 10:30;ja\n4;x;nein\n".encode("latin-1") * 3
LABELLED = b"a x B\nb y O\n\nc x B\n"
TABLE = b"bag,label,f1,f2\n1,a,0.5,1\n1,b,0.25,2\n2,a,1.5,3\n2,a,0.1,4\n"
PLY = (
    b"ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\nelement face 1\n"
    b"property list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0.5\n0 1e2 0\n3 0 1 2\n"
)
PLY_BINARY = (
    b"ply\nformat binary_little_endian 1.0\nelement vertex 3\nproperty uchar x\nproperty uchar y\nelement face 2\n"
    b"property list uchar uchar vertex_indices\nproperty uchar flag\nend_header\n\1\2\3\4\5\6\3\0\1\2\0\4\0\1\2\1\0"
)
OFF = b"OFF\n4 2 0\n0 0 0\n1 0 0\n0 1 0\n1 1 1 255 0 0\n3 0 1 2\n4 0 1 2 3\n"
OBJ = b"# mesh\nv 0 0 0\nv 1 0 0\nv 0 1.5 0\nvn 0 0 1\nf 1/1/1 2/2 3\nf -1 -2 -3\n"
PCD = b"FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 2\nHEIGHT 1\nPOINTS 2\nDATA ascii\n1 2 3\n4 5 6\n"
PCD_PACKED = (
    b"FIELDS x y\nSIZE 1 1\nTYPE U U\nCOUNT 1 1\nWIDTH 4\nHEIGHT 1\nPOINTS 4\nDATA binary_compressed\n"
    b"\5\0\0\0\10\0\0\0\1\1\2\200\1"
)
XYZ = b"x,y,z,nx,ny,nz\n0,0,0,1,0,0\n1,2,3,0,1,0\n-1e3,2,3,0,0,1\n"
NPY = (
    b"\x93NUMPY\1\0v\0" + b"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }".ljust(117) + b"\n\1\2\3\4\5\6"
)
PARAGRAPHS = b"One sentence. Another one.\nStill the first.\n\nA second paragraph. It ends.\n"

NUMBERS = (
    b"0",
    b"-1",
    b"1",
    b"2147483648",
    b"-9223372036854775808",
    b"9223372036854775807",
    b"12345678901234567890123",
    b"1e400",
    b"nan",
    b"-inf",
    b"0x10",
    b"1_0",
    b"1e-400",
    b"99999999",
    b"\xd9\xa3",
)
PIECES = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r",
    b"\r\n",
    b"\n\n",
    b" ",
    b"\t",
    b",",
    b'"',
    b"'",
    b":",
    b"|",
    b"(",
    b"){",
    b"}",
    b"[",
    b"]",
    b"#",
    b"%x[99999999999999999999,0]",
    b"%x[0,-1]",
    b"(" * 3000,
    b"[" * 3000,
    b'{"a":' * 3000,
    b"x" * 5000,
    b"\\u",
    b"\\ud800",
    "日本é".encode(),
    b"\xed\xa0\x80",
)


def _with_file(use: Callable[[Path], Any], suffix: str = ".txt") -> Callable[[dict[str, bytes], Path], Any]:
    def run(files: dict[str, bytes], folder: Path) -> Any:
        path = folder / f"file{suffix}"
        path.write_bytes(files["file"])
        return use(path)

    return run


def _read_tu(files: dict[str, bytes], folder: Path) -> None:
    from mercer.data import read_tu

    for part, content in files.items():
        (folder / f"X_{part}.txt").write_bytes(content)
    for simplify in (False, True):
        graphs, _ = read_tu(folder, simplify=simplify)
        for graph in graphs:
            assert len(graph.edges) == graph.n_edges


def _read_examples(form: str, **options: Any) -> Callable[[Path], Any]:
    def use(path: Path) -> None:
        from mercer.online import FileFormat, HashedClassifier

        model, said = HashedClassifier(n_bits=8), FileFormat(form, **options)
        model.fit_file(path, said)
        model.predict_file(path, path.with_name("answers"), said)

    return use


def _sniffed(path: Path) -> None:
    from mercer.data import read_columns, read_records
    from mercer.data.readers.sniff import sniff
    from mercer.data.readers.source import Source
    from mercer.online import HashedClassifier

    found = sniff(Source(path))
    if found.format in ("csv", "jsonl"):
        for read in (read_columns, read_records):
            with contextlib.suppress(ValueError):
                read(path)
    model = HashedClassifier(n_bits=8)
    model.fit_file(path)
    model.predict_file(path, path.with_name("answers"))


def _folder(files: dict[str, bytes], folder: Path) -> None:
    for label in ("a", "b"):
        (folder / label).mkdir()
        for part, content in files.items():
            (folder / label / part).write_bytes(content)
    _sniffed(folder)


def _text(read: Callable[[str], Any]) -> Callable[[Path], Any]:
    return lambda path: read(path.read_bytes().decode("utf-8", "replace"))


def _network(path: Path) -> None:
    from mercer.inference.bif import read_bif

    assert read_bif(path).factor_graph.n_variables >= 0


def _factor_graph(path: Path) -> None:
    from mercer.inference import infer, read_uai

    graph = read_uai(path)
    if graph.n_variables <= 8:
        infer(graph, "elimination")


def _evidence(path: Path) -> None:
    from mercer.inference import read_uai_evidence

    read_uai_evidence(path)


def _conll(path: Path) -> None:
    from mercer.data import Template, read_conll

    template = Template.parse("U00:%x[0,0]\nU01:%x[-1,1]\n")
    for sentence in read_conll(path):
        if all(len(row) >= 2 for row in sentence):
            template.expand(sentence)


def _template(text: str) -> None:
    from mercer.data import Template

    template = Template.parse(text)
    if template.n_columns <= 3:
        template.expand([("a", "b", "c"), ("d", "e", "f")])


def _trees(text: str) -> None:
    from mercer.parsing import read_trees

    for tree in read_trees(text):
        assert read_trees(str(tree)) == [tree]


def _grammar(text: str) -> None:
    from mercer.parsing import Grammar

    Grammar.from_text(text)


def _lines(path: Path) -> None:
    from mercer.data import TextBuffer
    from mercer.maps import TextHasher

    TextHasher(n_bits=6).transform(TextBuffer(path))


def _labelled(path: Path) -> None:
    from mercer.cli.columns import read_labelled

    read_labelled(str(path))


def _table(path: Path) -> None:
    from mercer.cli.proportions import read_table

    read_table(str(path), None)


def _cloud(path: Path) -> None:
    from mercer.data import read_cloud

    cloud = read_cloud(path, drop_missing=path.stat().st_size % 2 == 0)
    if cloud.faces is not None and cloud.area < 1e30 and cloud.area > 0:
        cloud.sample(4, random_state=0)


def _arff(path: Path) -> None:
    from mercer.data import read_mulan

    read_mulan(path, ["sea", "sky"])


def _multilabel(path: Path) -> None:
    from mercer.data import read_multilabel

    read_multilabel(path).label_sets()


def _paragraphs(path: Path) -> None:
    from mercer.segmentation.text import read_paragraphs

    list(read_paragraphs(path))


READERS: dict[str, tuple[dict[str, bytes], Callable[[dict[str, bytes], Path], Any]]] = {
    "conll": ({"file": CONLL}, _with_file(_conll)),
    "template": ({"file": TEMPLATE}, _with_file(_text(_template))),
    "trees": ({"file": TREES}, _with_file(_text(_trees))),
    "grammar": ({"file": GRAMMAR}, _with_file(_text(_grammar))),
    "bif": ({"file": BIF}, _with_file(_network, ".bif")),
    "uai": ({"file": UAI}, _with_file(_factor_graph, ".uai")),
    "uai evidence": ({"file": UAI_EVIDENCE}, _with_file(_evidence, ".evid")),
    "tu": (TU, _read_tu),
    "text": ({"file": TEXT}, _with_file(_read_examples("text"))),
    "vw": ({"file": VW}, _with_file(_read_examples("vw"))),
    "svmlight": ({"file": SVMLIGHT}, _with_file(_read_examples("svmlight"))),
    "csv": ({"file": CSV}, _with_file(_read_examples("csv", label="label", columns="rest"), ".csv")),
    "jsonl": ({"file": JSONL}, _with_file(_read_examples("jsonl", label="label", text=["text"]), ".jsonl")),
    "any text": ({"file": TEXT * 5}, _with_file(_sniffed, "")),
    "any table": ({"file": TABLE * 3}, _with_file(_sniffed, "")),
    "any json": ({"file": b"[" + b",".join(JSONL.splitlines()) + b"]"}, _with_file(_sniffed, "")),
    "any libsvm": ({"file": SVMLIGHT * 5}, _with_file(_sniffed, "")),
    "latin table": ({"file": DATES}, _with_file(_sniffed, ".dat")),
    "packed": ({"file": gzip.compress(DATES)}, _with_file(_sniffed, "")),
    "folder": ({"one": b"cheap pills", "two": b"long meeting"}, _folder),
    "lines": ({"file": TEXT}, _with_file(_lines)),
    "labelled columns": ({"file": LABELLED}, _with_file(_labelled)),
    "table": ({"file": TABLE}, _with_file(_table, ".csv")),
    "ply": ({"file": PLY}, _with_file(_cloud, ".ply")),
    "binary ply": ({"file": PLY_BINARY}, _with_file(_cloud, ".ply")),
    "off": ({"file": OFF}, _with_file(_cloud, ".off")),
    "obj": ({"file": OBJ}, _with_file(_cloud, ".obj")),
    "pcd": ({"file": PCD}, _with_file(_cloud, ".pcd")),
    "packed pcd": ({"file": PCD_PACKED}, _with_file(_cloud, ".pcd")),
    "xyz": ({"file": XYZ}, _with_file(_cloud, ".xyz")),
    "npy": ({"file": NPY}, _with_file(_cloud, ".npy")),
    "arff": ({"file": ARFF}, _with_file(_arff, ".arff")),
    "sparse arff": ({"file": ARFF_SPARSE}, _with_file(_arff, ".arff")),
    "label sets": ({"file": LABEL_SETS}, _with_file(_multilabel, ".svm")),
    "csv of label sets": ({"file": LABEL_COLUMN}, _with_file(_multilabel, ".csv")),
    "paragraphs": ({"file": PARAGRAPHS}, _with_file(_paragraphs)),
}


class Readers(Target):
    """Mutated files."""

    name = "readers"

    def __init__(self, only: str | None = None) -> None:
        self.names = [only] if only else list(READERS)

    def load(self) -> None:
        warnings.simplefilter("ignore")
        with tempfile.TemporaryDirectory() as folder:  # imports happen before workers are forked
            for name, (files, run) in READERS.items():
                inner = Path(folder, name.replace(" ", "_"))
                inner.mkdir()
                run(files, inner)

    def case(self, seed: int, number: int) -> Case:
        draw = random.Random(seed * 1_000_003 + number)
        name = self.names[number % len(self.names)]
        files = dict(READERS[name][0])
        for _ in range(draw.choice((1, 1, 2, 3))):
            part = draw.choice(list(files))
            files[part] = changed_bytes(files[part], draw)
        return {"reader": name, "files": {part: base64.b64encode(content).decode() for part, content in files.items()}}

    def run(self, case: Case) -> str | None:
        files = {part: base64.b64decode(content) for part, content in case["files"].items()}
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            try:
                READERS[case["reader"]][1](files, Path(folder))
            except BaseException as error:
                return reader_error(error) or REFUSED
        return None

    def subject(self, case: Case) -> str:
        return str(case["reader"])

    def smaller(self, case: Case) -> Iterator[Case]:
        for part, content in READERS[case["reader"]][0].items():
            original = base64.b64encode(content).decode()
            if case["files"][part] != original:
                made = copy.deepcopy(case)
                made["files"][part] = original
                yield made
            lines = base64.b64decode(case["files"][part]).split(b"\n")
            for at in range(len(lines)):
                made = copy.deepcopy(case)
                made["files"][part] = base64.b64encode(b"\n".join(lines[:at] + lines[at + 1 :])).decode()
                yield made


def reader_error(error: BaseException) -> str | None:
    """Return what is wrong with the error of a reader: a user needs the place in the file, or what was expected."""
    if isinstance(error, UnicodeError) or not isinstance(error, ValueError) or not str(error):
        return f"unclear error: {type(error).__name__}: {error}"
    return describe(error)


def changed_bytes(content: bytes, draw: random.Random) -> bytes:
    """Return the content with one change: of a number, a byte, a line or the end."""
    way = draw.randrange(10)
    lines = content.split(b"\n")
    at = draw.randrange(len(content) + 1)
    if way < 3:
        starts = [i for i in range(len(content)) if content[i : i + 1].isdigit() and not content[i - 1 : i].isdigit()]
        if starts:
            begin = end = draw.choice(starts)
            while content[end : end + 1].isdigit():
                end += 1
            return content[:begin] + draw.choice(NUMBERS) + content[end:]
    if way < 5:
        return content[:at] + draw.choice(PIECES) + content[at + draw.randrange(3) :]
    if way == 5:
        return content[:at] + bytes([draw.randrange(256)]) + content[at + 1 :]
    line = draw.randrange(len(lines))
    if way == 6:
        del lines[line]
    elif way == 7:
        lines.insert(line, draw.choice(lines))
    elif way == 8:
        other = draw.randrange(len(lines))
        lines[line], lines[other] = lines[other], lines[line]
    else:
        return content[:at]
    return b"\n".join(lines)
