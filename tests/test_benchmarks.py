"""Benchmarks do not rot: every script ends well at its smallest size and prints what it claims to measure.

The scripts run inside this process, one import of NumPy and scikit-learn for all of them, and without the peers of the
extra ``bench`` unless those are installed: then the lines beside them are checked too.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import io
import json
import os
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from benchmarks import __main__ as runner

FOLDER = Path(__file__).parent.parent / "benchmarks"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("[!_]*.py") if '__name__ == "__main__"' in path.read_text())
NUMBER = r"\d[\d.,]*"

# What the output of each script must have: figures of every part that runs at the smallest size.
CLAIMS: dict[str, list[str]] = {
    "alignment": [r"score +mercer +\d+\.\d Mcells/s", r"10 best +mercer", r"hinge +bcfw", r"log +lbfgs"],
    "annotation": [],
    "attributes_awa": [r"\| shares, by gradient \| \d\.\d{3} ±", r"\| default, C = 1 \| \d\.\d{3} ±"],
    "auto": [],
    "census": [],
    "chain_crf": [r"equal .*\d s", r"ragged .*\d s"],
    "chunking": [],
    "codes": [
        r"long +320 bits: circulant +\d", r"growth +time ~ d\^", r"recall +digits .*@10 \d", r"time +digits .*µs",
        r"classes +digits .*symmetric +\d",
    ],
    "compact_maps": [r"strokes: 200 rows", r"\n +8 +\d+\.\d +\d+\.\d +[+-]", r"behind the best"],
    "defaults": [r"digits \* +\d+\.\d \(", r"HashedRegressor: R²", r"C of Ranker: pairs right"],
    "floors": [r"logistic, 500 x 20 +\d", r"Gram, .*d = 784.* +\d", r"import mercer.tagging, memory +\d"],
    "fields": [r"epoch of PCD-1 \| scikit-learn", r"topics: 2000 tokens", r"PSMC +-\d", r"digits +-\d"],
    "fields_gpu": [],
    "gpu_maps": [],
    "graphlets": [r"10 random graphs .*\d", r"our own rates", r"10 random graphs +5 +\d"],
    "guards": [r"sample +\d", r"stream-csv +\d", r"shortest-path +\d"],
    "hamming": [r"batch +2,000", r"apart +a plain read", r"long +200", r"multi-index +\d", r"tables built in"],
    "hash_kernels": [
        r"2\^14: +\d.* unique", r"no hashing", r"projection +\d", r"joint 2\^24 +\d", r"log p added up along the path"
    ],
    "hashing": [r"words, zipf", r"char_wb 3-5-grams", r"2\^24 +\d", r"RecordHasher from dicts +\d"],
    "hidden_markov": [],
    "inference": [r"chains: 100 nodes", r"networks: 100 nodes", r"loopy: 30 x 30", r"sweeps/s", r"cut of noise"],
    "kernel_defaults": [r"\| digits \| 200 × 64, 10 \| \d", r"\| mean \|"],
    "kernel_machines": [
        r"\| classes \| hard.*\dx", r"\| many classes .*\dx", r"\| nu .*\dx", r"\| regression .*\dx",
        r"\| one class .*\dx",
    ],
    "kernel_rows": [r"\| drawn \| 300 \| fit .*\dx", r"\| drawn \| 300 \| predict .*\dx", r"\| 300 \| memory .*\dx"],
    "kernels": [
        r"\| Gaussian Gram.*x \|", r"\| spectrum k = 3", r"\| subset trees, ", r"\| shortest path, \d+ x generated",
        r"\| HSIC, n = 60", r"\| words, 30 texts", r"exponent -?\d",
    ],
    "kernels_graphs": [r"shortest path, labelled +10", r"geometric walks, labelled +10"],
    "kernels_sets": [r"\| words, .*x \|", r"\| jaccard, .*x \|", r"\| bags, .*x \|", r"\| rank, .*x \|"],
    "kernels_strings": [r"## linear", r"AllSubstrings.*DNA.*\d"],
    "kernels_tests": [r"HSIC, n = 60, 10 dimensions", r"MMD, 60 and 60 objects", r"1,000 objects of 2 dimensions"],
    "kernels_trees": [
        r"Gram matrix of 20 trees", r"ratio [\d,]+×; values agree", r"matched pairs: -?\d", r"in nodes: -?\d",
        r"Rational \d.*Convolution",
    ],
    "kernels_vectors": [
        r"gaussian 100 x 100.*ratio +\d", r"laplacian .*ratio +\d", r"additive chi2 .*ratio +\d", r"largest error"
    ],
    "labeling": [r"\n +50 +\d\.\d+ \(", r"pixels, 15 iterations: \d"],
    "hinge": [r"digits: 200 x 64, 10 classes", r"mercer \d.*liblinear \d.*x"],
    "logistic": [r"digits: 200 x 64, 10 classes", r"mercer +\d", r"newton-cholesky +\d.*x"],
    "layers": [],
    "maps": [r"RBFSampler +\d", r"structured +\d.*ratio", r"PolynomialCountSketch +\d", r"\n +64 +0\.\d", r"exponent"],
    "margin": [
        r"One pass of bcfw", r"peak memory of the process \d+ MiB", r"subgradient +\d", r"compiled chain, bmrm +\d",
        r"multiclass\n", r"grammars\n", r"1-slack, cache +10 ", r"\n +10 +\d+\.\d\d",
    ],
    "margin_multiclass": [r"digits: 200 x 64, 10 classes", r"certified gap \d", r"mercer, 2 threads +\d"],
    "multilabel": [r"three components with row scores", r"blocks: time ~ n\^", r"\| 30,000 \| \d"],
    "networks": [],
    "online": [r"adagrad +sqrt +\d", r"10 two-stage hinge", r"mercer, vw format, n_jobs=1 +\d", r"mercer, text format"],
    "parsing": [r"seed 100: PCFG", r"SSVM, \(1 - F1\) cost +accuracy", r"SSVM, bracket cost, boundaries +accuracy"],
    "projection_times": [r"d = 2\^7: full +\d", r"time of the circulant ~ d\^"],
    "proportions": [r"rows, bags of +64: +\d"],
    "proportions_author": [],
    "proportions_constants": [r"\| 8 \| \d+ % of 6"],
    "proportions_convex": [],
    "proportions_mean_map": [r"\| rbf \| either \| shares \| \d"],
    "proportions_page": [r"linear: \d+ cells", r"rbf +mean-map +mean", r"furthest above"],
    "proportions_starts": [r"\| 10 \| default \(better of both, swaps\) \| \d"],
    "ranking": [r"\n +30 +\d.*\d\.\d\n", r"task 'normal': 200 × 20", r"better than the hinge: roc-area in \d of 2"],
    "attributes": [
        r"design: 20 attributes of 12 classes in \d", r"machines: 8 on .*LinearSVC .*x\)", r"ranking by columns: .*x\)",
        r"\| designed \| \d", r"\| fused 200 \| \d", r"\| ESZSL \| \d", r"\| low-level features \| \d",
        r"\| structured, all \| ",
    ],
    "recognition": [
        r"OMP, 1,000 signals.*\d\.\d+x", r"projection 32,256.*x", r"orl HASH-l1 20: \d", r"equal time: HASH-OMP 85: \d",
        r"codes raw 20: SVM", r"rejection orl: ROC area", r"defaults orl: hash 300",
    ],
    "results": [],
    "registration": [
        r"\| generalized ICP, 600 points", r"\| KernelRegistration \| \d", r"growth: .*exponent",
        r"\| 180° \| register \|", r"motion: mean error", r"outliers: mean error", r"\| kernel, no polish \| \d",
        r"overlap: solved", r"1\.859 → \d",
    ],
    "relative_margin": [r"SVM +\d", r"RMM lower in \d of 8", r"B chosen: 1\.5"],
    "serving": [r"load: mercer serve: requests/s \d", r"hostile: 100 requests, 0 crashes, 0 stack traces, 0 hung"],
    "scaling": [r"a pass: memory \d", r"equal values: True", r"hashed: \d+ MB of text", r"of the first \d+ pieces \d"],
    "shape_parts": [r"SLDMRF +0\.\d", r"classes, drawn, GM +: \d"],
    "segments": [
        r"flash-semicrf 0\.2\.0 +200", r"exponents of T:", r"a table of all segments at T = 300 would take",
        r"segment SVM, bmrm +\d", r"3 actions", r"sentences, SVM +\d", r"mercer, as dlib +\d", r"1 thread \d",
    ],
    "structured_rmm": [r"## 12 labels", r"StructRMM − CRF: [+-]\d"],
    "theory": [
        r"printed condition holds +\d", r"exact threshold wrong +0",
        r"\n +3 +0\.\d+ +0\.\d+", r"Seeger, KL = 0 +\d+ of", r"\n 0\.5 +60 +\d",
        r"adaptive, less the best",
    ],
    "tuned": [r"LinearClassifier, log +wine +\d", r"LinearClassifier, hinge +digits +\d"],
    "video_events": [r"\| 0\.3", r"\| mi-SVM \| 1 \|", r"\| gradient \| 1 \+ 3 \+ 5 \+ all \|"],
}  # fmt: skip

# What the output must have besides where MERCER_DATA names the folder of public data sets.
WITH_DATA: dict[str, list[str]] = {
    "multilabel": [
        r"\| emotions \(80 .*fit",
        r"one machine a label",
        r"emotions: fit",
        r"\| flags \| JointSVM \| \d",
        r"\| flags \| KernelHomogeneityAnalysis \| \d",
    ],
    "annotation": [r"\| joint SVM \| \d", r"\| 0\.8 \| \d", r"\| kernel ridge \| \d", r"\| emotions \| 15 \|"],
    "attributes_awa": [r"images: \d+ images to learn from"],
    "census": [r"majority of the bag +\d", r"Bags drawn from everybody", r"Bags of one occupation each"],
    "chunking": [r"mercer, as chosen +\d", r"mercer, Hybrid +\d", r"mercer, testb, Spanish +\d"],
    "graphlets": [r"MUTAG: 60 graphs", r"HKF labelled +\d"],
    "kernels_graphs": [r"MUTAG: 50 graphs", r"refined labels +\d"],
    "kernels_strings": [r"\| spectrum k = 3 \| promoters \| 20", r"\| promoters \| SVM, mismatch \| \d", r"TREC"],
    "proportions": [r"convex +\d.*for 5 folds"],
    "proportions_author": [r"\| linear \| heart \| 64 \| mean-map \| 1 \|", r"released split", r"toy of figure 8.1"],
    "proportions_convex": [r"\| ours, processor \| \d", r"\| heart \| gaussian \| 32 \| \d"],
    "segments": [r"esp +segments"],
}

# Where a peer is missing, the line that says so, and what then may not be printed: a ratio to it.
PEERS: dict[str, list[tuple[str, str]]] = {
    "alignment": [("Bio", "Biopython / mercer"), ("parasail", "parasail / mercer")],
    "chain_crf": [("pycrfsuite", r"\dx|aim")],
    "defaults": [("sklearn_crfsuite", "sklearn-crfsuite +\\d")],
    "fields_gpu": [("torch", "ratio")],
    "gpu_maps": [("torch", r"\dx")],
    "graphlets": [("grakel", r"\dx")],
    "hamming": [("faiss", r"faiss +\d|× faster")],
    "hidden_markov": [("hmmlearn", r"\d x\b")],
    "inference": [("pyagrum", "pyAgrum"), ("pgmpy", "pgmpy,"), ("pgmax", "PGMax"), ("maxflow", "PyMaxflow")],
    "kernels": [
        ("grakel", r"\| GraKeL \| +\d"), ("hyppo", r"\| hyppo \| +\d"), ("strkernel", r"\| strkernel \| +\d"),
        ("strkernels", r"\| strkernels \| +\d"),
    ],
    "kernels_graphs": [("grakel", r"\dx")],
    "kernels_tests": [("hyppo", r"hyppo.* / ")],
    "margin": [("dlib", r"\d+\.\dx|dlib /"), ("clarabel", "Clarabel")],
    "margin_multiclass": [("liblinear", r"\dx|liblinear -s")],
    "networks": [("torch", "error")],
    "online": [("vowpalwabbit", r"\bvw --sgd|wall ×")],
    "recognition": [("spams", r"spams \d")],
    "segments": [("torch", r"semicrf.*\dx|torch-struct.*\dx"), ("dlib", "times as many tokens")],
}  # fmt: skip


def run(script: str, folder: Path, *options: str) -> str:
    """The output of a script that ends with status 0, run here as if from a command line in the folder."""
    output, status = io.StringIO(), 0
    environment, argv, path, modules = dict(os.environ), sys.argv, list(sys.path), set(sys.modules)
    random = np.random.get_state()  # noqa: NPY002 - of those that use it
    sys.argv, sys.path[:0] = [str(FOLDER / f"{script}.py"), *options], [str(FOLDER)]
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(output), warnings.catch_warnings():
            try:
                runpy.run_path(sys.argv[0], run_name="__main__")
            except SystemExit as end:
                status = end.code or 0
    finally:
        sys.argv, sys.path[:] = argv, path
        os.environ.clear()
        os.environ.update(environment)
        np.random.set_state(random)  # noqa: NPY002
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
                del sys.modules[name]
    assert status == 0, f"{script} ended with {status!r} after\n{output.getvalue()[-2000:]}"
    return output.getvalue()


CORPORA = (
    "conll2000/train.txt",
    "conll2000/test.txt",
    *(f"conll2002/esp.{part}" for part in ("train", "testa", "testb")),
)
SENTENCES = 100


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The folder of public data sets, with the first sentences of the corpora only: scripts use a few of them."""
    given = os.environ.get("MERCER_DATA")
    if not given:
        return None
    folder = tmp_path_factory.mktemp("data")
    for path in Path(given).iterdir():
        if path.name not in ("conll2000", "conll2002"):
            (folder / path.name).symlink_to(path)
    for name in CORPORA:
        file = Path(given, name)
        if not file.exists():
            file = Path(given, f"{name}.gz")
        raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"\n\n".join(raw.split(b"\n\n")[:SENTENCES]) + b"\n")
    return str(folder)


def test_every_script_says_what_it_prints():
    assert set(CLAIMS) == set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_runs_at_its_smallest_size_and_prints_its_figures(script, data, tmp_path, monkeypatch):
    if data:
        monkeypatch.setenv("MERCER_DATA", data)
    file = tmp_path / "rows.jsonl"
    monkeypatch.setenv(runner.ROWS, str(file))
    output = run(script, tmp_path, "--smoke")
    rows = runner.read(file) or runner.rows_of_tables(script, output.splitlines())
    check_rows(script, rows)
    assert rows or not CLAIMS[script], f"{script} prints figures and records none"
    expected = CLAIMS[script] + (WITH_DATA.get(script, []) if os.environ.get("MERCER_DATA") else [])
    for claim in expected:
        assert re.search(claim, output), f"{script} did not print {claim!r}:\n{output[-4000:]}"
    for module, ratio in PEERS.get(script, []):
        if importlib.util.find_spec(module) is None:
            assert f"{module}: not installed" in output
            assert not re.search(ratio, output), f"{script} compares with {module}, which is not installed"


def check_rows(script: str, rows: list[dict]) -> None:
    """Every row says what it is about and has a figure; ratios are of its own two sides."""
    for row in rows:
        assert row["script"] == script
        assert row["table"], row
        assert row["measure"], row
        assert row.get("ours") is not None or row.get("values") or row.get("note"), row
        assert ("ratio" in row) <= ("ours" in row and "theirs" in row and bool(row["peer"])), row
        if "ratio" in row:
            ours, theirs = row["ours"], row["theirs"]
            expected = ours / theirs if row["unit"].endswith("/s") else theirs / ours
            assert row["ratio"] == pytest.approx(expected, rel=1e-2), row
    keys = [tuple(row.get(key) for key in runner.KEY) for row in rows]
    assert len(set(keys)) == len(keys), f"{script} gives two rows of one name: {keys}"


@pytest.mark.parametrize("script", ["census", "chunking", "kernels_strings", "proportions", "proportions_convex"])
def test_a_script_says_which_data_are_missing(script, tmp_path, monkeypatch):
    monkeypatch.delenv("MERCER_DATA", raising=False)
    assert re.search("left out.*MERCER_DATA", run(script, tmp_path, "--smoke"))


def test_all_scripts_run_before_a_failure_shows_in_the_status(tmp_path):
    (tmp_path / "broken.py").write_text("if __name__ == \"__main__\":\n    print('first'); raise ValueError('here')\n")
    (tmp_path / "fine.py").write_text("if __name__ == \"__main__\":\n    print('dlib: not installed\\nsecond')\n")
    (tmp_path / "_shared.py").write_text("raise SystemExit(3)\n")
    command = [sys.executable, "-m", "benchmarks", f"--folder={tmp_path}", "--all"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.search(r"== broken.py\nfirst\n(.*\n)*.*here\n(.*\n)*== fine.py\n(.*\n)*second\n", done.stdout)
    assert "2 scripts, 1 failed: broken.py" in done.stdout
    assert "peers that were not installed: dlib" in done.stdout
    (tmp_path / "broken.py").unlink()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_the_runner_lists_scripts_and_passes_options_on(tmp_path):
    code = 'import sys, os, json\nif __name__ == "__main__":\n    print(sys.argv[1:])\n'
    code += "    row = {'script': 'one', 'table': 't', 'measure': 'm', 'ours': 1.0, 'unit': 's'}\n"
    code += "    open(os.environ['MERCER_BENCHMARK_ROWS'], 'a').write(json.dumps(row) + '\\n')\n"
    (tmp_path / "one.py").write_text(f'"""What it measures."""\n{code}')
    (tmp_path / "helper.py").write_text("x = 1\n")
    command = [sys.executable, "-m", "benchmarks", f"--folder={tmp_path}"]

    def call(*options: str) -> subprocess.CompletedProcess:
        return subprocess.run([*command, *options], capture_output=True, text=True, check=False, cwd=FOLDER.parent)

    assert call().stdout.split(maxsplit=1) == ["one", "What it measures.\n"]
    done = call("one", "--json", "--smoke", "--tasks", "a", "b")
    assert done.returncode == 0
    (row,) = map(json.loads, done.stdout.splitlines())
    assert "['--smoke', '--tasks', 'a', 'b']" in done.stderr
    assert (row["measure"], row["ours"], row["options"]) == ("m", 1.0, "--smoke --tasks a b")
    assert row["machine"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"])
    file = tmp_path / "rows.jsonl"
    for _ in range(2):
        assert "1 rows written to rows.jsonl" in call("one", "--json", str(file)).stdout
    assert len(runner.read(file)) == 1
    assert "no script is named 'two'" in call("two").stderr
    assert call("two").returncode == 2
    assert call("--all", "one").returncode == 2


def test_every_kind_of_model_is_tuned_or_has_a_reason() -> None:
    from mercer._state.registry import MODELS

    text = (Path(__file__).parent.parent / "benchmarks" / "tuned.py").read_text()
    without = text[text.index("WITHOUT = {") : text.index("}  # fmt: skip")]
    wrong = [name for name in MODELS if (f'"{name}"' in without) == bool(re.search(rf"\b{name}\(", text))]
    assert not wrong
