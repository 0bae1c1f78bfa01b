"""Every estimator with its defaults, untuned, beside the simplest baseline and the obvious peer.

    python benchmarks/defaults.py [--size smallest|small] [--parts tagging segments graphs images texts columns …]

``smallest`` uses built-in and generated data alone and takes seconds; ``small`` reads public sets from the folder that
MERCER_DATA names (sets that are missing are left out, and named at the end). Nothing is chosen: a cell is one call of
the constructor without arguments but those that its column names. Seconds are processor time of fit and prediction, on
one thread. Peers that are not installed are named at the end.

The rule for C and the number of passes were chosen on CoNLL-2000, base NPs, digit codes and generated chains, and on
sms-spam, movie-reviews, webkb, digits, segment, wdbc, a1a and letters; rows marked * are sets that took part.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import os
import re
import tarfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _timing import missing, parse, record, sized
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_svmlight_file
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from mercer.classification import LinearClassifier
from mercer.datasets import (
    load_basenp,
    load_conll2000,
    load_conll2002,
    load_movie_reviews,
    load_r8,
    load_sms_spam,
    load_trec_questions,
    load_webkb,
    make_actions,
    make_chain_task,
    make_digit_codes,
    make_paragraphs,
    make_regions,
    make_shapes,
    make_treebank,
)
from mercer.labeling import GraphLabeler, GridLabeler
from mercer.metrics import is_span_labelling, span_f1, token_accuracy
from mercer.online import HashedClassifier, HashedRegressor
from mercer.parsing import Parser
from mercer.ranking import LabelRanker, Ranker
from mercer.ranking.preference_graph import from_label
from mercer.segmentation import ParagraphFeatures, Segmenter, SegmentStatistics
from mercer.tagging import Tagger

MISSING: dict[str, str] = {}


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=("smallest", "small"), default="smallest")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    args = parse(parser, size="smallest")
    missing("sklearn_crfsuite")
    warnings.simplefilter("ignore")
    for part in args.parts:
        PARTS[part](args.size == "small")
    for name, why in MISSING.items():
        print(f"left out: {name} ({why})")


HEAD: tuple[str, list[str]] = "", []


def table(title: str, columns: list[str]) -> None:
    """Print the head of a table."""
    global HEAD
    HEAD = title, columns
    print(f"\n{title}\n{'set':26}" + "".join(f"{name:>22}" for name in columns), flush=True)


def line(name: str, fits: list[Callable[[], float] | None]) -> None:
    """Print the score and the seconds of each fit."""
    cells = []
    values: dict[str, Any] = {}
    for column, fit in zip(HEAD[1], fits, strict=True):
        values[column] = ""
        if fit is None:
            cells.append("")
            continue
        start = time.process_time()
        score = fit()
        taken = time.process_time() - start
        values[column] = {"value": round(100 * score, 1), "seconds": round(taken, 1)}
        cells.append(f"{100 * score:.1f} ({taken:.1f} s)")
    record(HEAD[0], name, values=values)
    print(f"{name:26}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


def real(name: str, load: Callable[[], Any]) -> Any:
    """Return a data set, or None where it is missing."""
    try:
        return load()
    except (OSError, ValueError, KeyError) as error:
        MISSING[name] = str(error).split("\n")[0][:80]
        return None


# ------------------------------------------------------------------------------------------------- sequences


def shape(word: str) -> str:
    """Return the kinds of the characters of a word, without repeats."""
    kinds = "".join("X" if c.isupper() else "x" if c.islower() else "9" if c.isdigit() else c for c in word)
    return re.sub(r"(.)\1+", r"\1", kinds)


def window(sentence: list[tuple[str, ...]], spelling: bool) -> list[list[str]]:
    """Return words and parts of speech around each token, and its spelling."""
    rows = []
    for i, (word, *_) in enumerate(sentence):
        names = ["bias"]
        for step in range(-2, 3):
            if 0 <= i + step < len(sentence):
                names += [f"w{step}={sentence[i + step][0].lower()}", f"p{step}={sentence[i + step][1]}"]
        if spelling:
            names += [f"shape={shape(word)}", f"word={word}", f"suffix={word[-3:]}", f"prefix={word[:3]}"]
        rows.append(names)
    return rows


def tokens(sentences: list[Any], n_train: int, n_test: int, spelling: bool) -> tuple[list, list, list, list]:
    """Return features and tags of a random part of the sentences."""
    order = np.random.default_rng(0).permutation(len(sentences))[: n_train + n_test]
    chosen = [sentences[i] for i in order]
    X, y = [window(one, spelling) for one in chosen], [[token[-1] for token in one] for one in chosen]
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def sequences(small: bool) -> Iterator[tuple[str, tuple[list, list, list, list]]]:
    """Yield tagging tasks."""
    codes = make_digit_codes(*((300, 300) if small else (40, 40)), random_state=11)
    yield "digit codes *", tuple(codes)  # type: ignore[misc]
    chain = make_chain_task(
        *((300, 300) if small else sized((30, 30), (10, 10))), n_labels=8, n_features=sized(800, 80), random_state=12
    )
    yield "generated chain *", tuple(chain)  # type: ignore[misc]
    if not small:
        return
    for name, load, spelling in (
        ("base NPs *", lambda: load_basenp("train") + load_basenp("test"), False),
        ("CoNLL-2000, 1,000 *", lambda: load_conll2000("train"), False),
        ("CoNLL-2002 Spanish, 1,000", lambda: load_conll2002("esp", "train"), True),
        ("CoNLL-2002 Dutch, 1,000", lambda: load_conll2002("ned", "train"), True),
    ):
        if (found := real(name, load)) is not None:
            yield name, tokens(found, min(1000, len(found) // 2), min(1000, len(found) // 2), spelling)
    if (found := real("words of letters", letters)) is not None:
        yield "words of letters", found
    if (found := real("splice sites", splice)) is not None:
        yield "splice sites", found


def letters() -> tuple[list, list, list, list]:
    """Return words of the Wall Street Journal, written in single letters of the UCI set."""
    path = Path(os.environ["MERCER_DATA"]) / "uci" / "LetterRecognition.csv.gz"
    with gzip.open(path, "rt") as file:
        rows = list(csv.reader(file))[1:]
    label = np.array([row[0].strip('"').lower() for row in rows])
    numbers = np.array([[float(value) for value in row[1:]] for row in rows])
    pixels = (numbers[:, :, None] == np.arange(16)).reshape(len(rows), -1).astype(float)
    random = np.random.default_rng(1)
    words = sorted({t[0].lower() for s in load_conll2000("train") for t in s if t[0].isalpha() and t[0].isascii()})
    words = [words[i] for i in random.permutation(len(words)) if 4 <= len(words[i]) <= 10][:800]
    half = random.random(len(rows)) < 0.5
    parts: list[list] = []
    for side, chosen in ((half, words[:400]), (~half, words[400:])):
        images = [[random.choice(np.flatnonzero(side & (label == c))) for c in word] for word in chosen]
        parts += [[pixels[one] for one in images], [list(word) for word in chosen]]
    return tuple(parts)  # type: ignore[return-value]


def splice() -> tuple[list, list, list, list]:
    """Return bases around splice sites: exon, intron or neither at each of 60 positions."""
    path = Path(os.environ["MERCER_DATA"]) / "splice" / "keel-splice.dat"
    lines = [row for row in path.read_text().splitlines() if row and not row.startswith("@")]
    X, y = [], []
    for i in np.random.default_rng(0).permutation(len(lines))[:800]:
        *bases, kind = (value.strip() for value in lines[i].split(","))
        X.append([
            [f"{step}={bases[t + step]}" for step in range(-4, 5) if 0 <= t + step < 60]
            + [f"{step}:{''.join(bases[t + step : t + step + 3])}" for step in range(-4, 3) if 0 <= t + step < 58]
            for t in range(60)
        ])  # fmt: skip
        y.append({"N": ["N"] * 60, "EI": ["E"] * 30 + ["I"] * 30, "IE": ["I"] * 30 + ["E"] * 30}[kind])
    return X[:400], y[:400], X[400:], y[400:]


def majority(y: list[list], truth: list[list]) -> list[list]:
    """Return the most frequent label everywhere."""
    most = Counter(label for labels in y for label in labels).most_common(1)[0][0]
    return [[most] * len(labels) for labels in truth]


def crfsuite() -> Any:
    """Return sklearn-crfsuite's estimator, or None."""
    try:
        from sklearn_crfsuite import CRF
    except ImportError:
        MISSING["sklearn-crfsuite"] = "not installed"
        return None
    return CRF


def tagging(small: bool) -> None:
    """Taggers: F1 of spans where labels are spans, else positions right."""
    table(
        "Tagger: F1 of spans (corpora), positions right (others), %",
        ["majority", "one by one", "Tagger()", 'Tagger("hinge")', "hinge, C = 1", "CRFsuite"],
    )
    CRF = crfsuite()
    for name, (X, y, X_test, y_test) in sequences(small):
        spans = is_span_labelling(label for labels in y for label in labels)

        def score(found: Any, truth: list = y_test, spans: bool = spans) -> float:
            found = [list(labels) for labels in found]
            return span_f1(truth, found) if spans else token_accuracy(truth, found)

        def alone(X: list = X, y: list = y, X_test: list = X_test) -> float:
            single = [[row] for x in X for row in x], [[label] for labels in y for label in labels]
            if isinstance(X[0], np.ndarray):
                single = [row[None] for x in X for row in x], single[1]
            model = Tagger().fit(*single)
            rows = [[row] if not isinstance(x, np.ndarray) else row[None] for x in X_test for row in x]
            found = iter(model.predict(rows))
            return score([[next(found)[0] for _ in x] for x in X_test])

        def fitted(model: Any, X: list = X, y: list = y, X_test: list = X_test) -> Callable[[], float]:
            return lambda: score(model.fit(X, y).predict(X_test))

        peer = None
        if CRF is not None:
            data = (X, X_test)
            if isinstance(X[0], np.ndarray):
                data = tuple([[dict(enumerate(row.tolist())) for row in x] for x in some] for some in data)
                data = tuple([[{f"x{k}": v for k, v in row.items() if v} for row in x] for x in some] for some in data)
            else:
                data = tuple([[dict.fromkeys(row, 1.0) for row in x] for x in some] for some in data)
            peer = fitted(CRF(), data[0], y, data[1])
        line(name, [
            lambda y=y, y_test=y_test: score(majority(y, y_test)), alone, fitted(Tagger()),
            fitted(Tagger("hinge", random_state=0)), fitted(Tagger("hinge", C=1.0, random_state=0)), peer,
        ])  # fmt: skip


def segments(small: bool) -> None:
    """Segmenters: F1 of spans, or the estimator's own score."""
    table("Segmenter: F1 of spans (corpora), own score (others), %", ["Tagger()", "Segmenter()", 'loss="hinge"'])
    many = 8 if small else sized(3, 2)
    for emissions in ("gaussian", "histogram"):
        task = make_actions(many, sized(150, 50), emissions=emissions, random_state=21)
        n = len(task.X) // 2
        half = task.X[:n], task.y[:n], task.X[n:], task.y[n:]
        frames = [np.asarray(x) for x in task.X]
        line(f"actions, {emissions}", [
            lambda f=frames, t=task, n=n: Tagger().fit(f[:n], t.y[:n]).score(f[n:], t.y[n:]),
            *(
                lambda h=half, o=o: Segmenter(features=SegmentStatistics(), **o).fit(h[0], h[1]).score(h[2], h[3])
                for o in ({}, {"loss": "hinge"})
            ),
        ])  # fmt: skip
    text = make_paragraphs(20 if small else sized(6, 4), random_state=22)
    n = len(text) // 2
    line("paragraphs", [
        None,
        *(
            lambda o=o: Segmenter(features=ParagraphFeatures(), **o)
            .fit(text.documents[:n], text.starts[:n])
            .score(text.documents[n:], text.starts[n:])
            for o in ({}, {"loss": "hinge"})
        ),
    ])  # fmt: skip
    if not small:
        return
    for name, load in (
        ("Spanish entities, 500", lambda: load_conll2002("esp", "train")),
        ("Dutch entities, 500", lambda: load_conll2002("ned", "train")),
        ("CoNLL-2000, 300", lambda: load_conll2000("train")),
    ):
        if (found := real(name, load)) is None:
            continue
        size = int(name.split(", ")[1])
        X, y, X_test, y_test = tokens(found, size, 500, True)
        line(name, [
            lambda m=m, X=X, y=y, X_test=X_test, y_test=y_test: span_f1(y_test, m.fit(X, y).predict(X_test))
            for m in (Tagger(), Segmenter(), Segmenter(loss="hinge"))
        ])  # fmt: skip


# ------------------------------------------------------------------------------------------- graphs, images


def graphs(small: bool) -> None:
    """Labels of nodes, and trees."""
    table("GraphLabeler: nodes right, %", ["one by one", "GraphLabeler()", 'GraphLabeler("hinge")', "hinge, C = 1"])
    n = 40 if small else 6
    task = make_regions(2 * n, random_state=31)
    line("regions", [
        lambda m=m: token_accuracy(task.y[n:], m.fit(task.X[:n], task.y[:n]).predict(task.X[n:]))  # labels may be new
        for m in (
            GraphLabeler(edge_weights="none"),
            GraphLabeler(),
            GraphLabeler("hinge", random_state=0),
            GraphLabeler("hinge", C=1.0, random_state=0),
        )
    ])  # fmt: skip
    table("Parser: F1 of brackets, %", ["PCFG", "Parser()"])
    bank = make_treebank(120 if small else 30, n_labels=6, n_tags=12, n_rules=50, max_length=7, random_state=32)
    n = len(bank.trees) // 2
    known = {word for tree in bank.trees[:n] for word in tree.leaves()}
    test = [tree for tree in bank.trees[n:] if known.issuperset(tree.leaves())]
    line("generated treebank", [
        lambda m=m: m.fit(None, bank.trees[:n]).score(None, test)
        for m in (Parser(method="pcfg", on_failure="none"), Parser(random_state=0, on_failure="none"))
    ])  # fmt: skip


def images(small: bool) -> None:
    """Labels of pixels."""
    table("GridLabeler: pixels right, %", ["majority", "one by one", "GridLabeler()", "block=8"])
    shapes = make_shapes(12 if small else 4, size=64 if small else sized(24, 16), random_state=41)
    tasks = [("generated shapes", shapes.images, shapes.maps)]
    if small and (found := real("weizmann-horses", horses)) is not None:
        tasks += [("horses, full size", *found), ("horses, a quarter of the side", *quartered(*found))]
    for name, X, y in tasks:
        n = len(X) // 2
        most = Counter(label for one in y[:n] for label in np.asarray(one).ravel().tolist()).most_common(1)[0][0]
        line(name, [
            lambda y=y, n=n, most=most: float(np.mean(np.concatenate([(m == most).ravel() for m in y[n:]]))),
            *(
                lambda m=m, X=X, y=y, n=n: m.fit(X[:n], y[:n]).score(X[n:], y[n:])
                for m in (GridLabeler(edge_weights="none"), GridLabeler(), GridLabeler(block=8))
            ),
        ])  # fmt: skip


def horses(n: int = 40) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return grey images of horses and their masks."""
    from PIL import Image

    home = Path(os.environ["MERCER_DATA"]) / "weizmann-horses"
    found: dict[str, dict[str, np.ndarray]] = {}
    for kind in ("gray", "figure_ground"):
        with tarfile.open(home / f"{kind}.tar.gz") as archive:
            members = sorted((m for m in archive.getmembers() if m.name.endswith(".jpg")), key=lambda m: m.name)
            found[kind] = {
                Path(m.name).name: np.asarray(Image.open(io.BytesIO(archive.extractfile(m).read())).convert("L"))  # type: ignore[union-attr]
                for m in members
            }
    names = sorted(set(found["gray"]) & set(found["figure_ground"]))
    names = [str(name) for name in np.random.default_rng(5).permutation(names)[:n]]
    return [found["gray"][k] for k in names], [(found["figure_ground"][k] >= 128).astype(int) for k in names]


def quartered(X: list[np.ndarray], y: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the images with every fourth pixel of every fourth row."""
    return [x[::4, ::4] for x in X], [mask[::4, ::4] for mask in y]


# --------------------------------------------------------------------------------------------- single labels


def texts(small: bool) -> None:
    """Documents."""
    table("HashedClassifier: documents right, %", [
        "majority", "passes=1", "HashedClassifier()", "SGDClassifier", "log. regression",
    ])  # fmt: skip
    tasks: list[tuple[str, Any]] = [("generated topics", generated_topics(small))]
    if small:
        for name, load in (
            ("sms-spam *", load_sms_spam),
            ("movie-reviews *", load_movie_reviews),
            ("webkb *", load_webkb),
            ("trec-qc", load_trec_questions),
            ("text-r8", load_r8),
        ):
            if (found := real(name, load)) is not None:
                order = np.random.default_rng(0).permutation(len(found.labels))[:4000]
                tasks.append((name, ([found.texts[i] for i in order], np.asarray(found.labels)[order])))
    for name, (X, y) in tasks:
        n = int(0.75 * len(y))
        line(name, [
            lambda m=m, X=X, y=y, n=n: m.fit(X[:n], y[:n]).score(X[n:], y[n:])
            for m in (
                DummyClassifier(),
                HashedClassifier(max_iter=1),
                HashedClassifier(),
                make_pipeline(HashingVectorizer(n_features=sized(2**20, 2**10)), SGDClassifier(random_state=0)),
                make_pipeline(HashingVectorizer(n_features=sized(2**18, 2**10)), LogisticRegression(max_iter=200)),
            )
        ])  # fmt: skip


def generated_topics(small: bool) -> tuple[list[str], np.ndarray]:
    """Return documents of words that each lean to one of five topics."""
    random = np.random.default_rng(52)
    y = random.integers(0, 5, 1000 if small else 150)
    texts = []
    for label in y:
        own, any_ = 100 * label + random.zipf(1.5, 20) % 50, random.zipf(1.3, 20) % 500
        texts.append(" ".join(f"w{word}" for word in np.where(random.random(20) < 0.15, own, any_)))
    return texts, y


def columns(small: bool) -> None:
    """Rows of numbers, standardised."""
    table("HashedClassifier, LinearClassifier: rows right, %", [
        "majority", "passes=1", "HashedClassifier()", "LinearClassifier()", "SGDClassifier", "LinearSVC",
        "log. regression",
    ])  # fmt: skip
    X, y = load_digits(return_X_y=True)
    tasks = [("digits *", X[:: 1 if small else 6], y[:: 1 if small else 6])]
    tasks.append(("breast cancer *", *load_breast_cancer(return_X_y=True)))
    if small:
        for name, load in (
            ("segment *", keel("segment")),
            ("satimage, 3,000", keel("satimage")),
            ("covtype, 3,000", covtype),
        ):
            if (found := real(name, load)) is not None:
                order = np.random.default_rng(0).permutation(len(found[1]))[:4000]
                tasks.append((name, found[0][order], found[1][order]))
    for name, X, y in tasks:
        n, order = int(0.75 * len(y)), np.random.default_rng(1).permutation(len(y))
        X, y = X[order], y[order]
        X = StandardScaler().fit(X[:n]).transform(X)
        line(name, [
            lambda m=m, X=X, y=y, n=n: m.fit(X[:n], y[:n]).score(X[n:], y[n:])
            for m in (
                DummyClassifier(), HashedClassifier(max_iter=1), HashedClassifier(), LinearClassifier(),
                SGDClassifier(random_state=0), LinearSVC(), LogisticRegression(max_iter=500),
            )
        ])  # fmt: skip
    table("HashedRegressor: R², %", ["mean", "passes=1", "HashedRegressor()", "least squares"])
    X, y = load_diabetes(return_X_y=True)
    X, n = StandardScaler().fit_transform(X), 330
    line("diabetes", [
        lambda m=m: max(0.0, m.fit(X[:n], y[:n]).score(X[n:], y[n:]))
        for m in (DummyRegressor(), HashedRegressor(max_iter=1), HashedRegressor(), LinearRegression())
    ])  # fmt: skip


def keel(name: str) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """Return a reader of a set of UCI in KEEL's form."""

    def load() -> tuple[np.ndarray, np.ndarray]:
        path = Path(os.environ["MERCER_DATA"]) / "uci" / f"keel-{name}.dat"
        rows = [row.split(",") for row in path.read_text().splitlines() if row.strip() and not row.startswith("@")]
        return np.array([[float(v) for v in row[:-1]] for row in rows]), np.array([row[-1].strip() for row in rows])

    return load


def covtype() -> tuple[np.ndarray, np.ndarray]:
    """Return the subset of Forest CoverType."""
    path = Path(os.environ["MERCER_DATA"]) / "covtype-subset" / "covtype_kaggle_train15120.csv.gz"
    with gzip.open(path, "rt") as file:
        values = np.array(list(csv.reader(file))[1:], float)
    return values[:, 1:-1], values[:, -1].astype(int)


# ------------------------------------------------------------------------------------------- the weight of the loss


def strength(small: bool) -> None:
    """C = 1 where there is no C="auto", beside the rule of those that have it, and three folds of the training part."""
    tasks: dict[str, tuple[np.ndarray, np.ndarray]] = {"breast cancer *": load_breast_cancer(return_X_y=True)}
    if small:
        for name, load in (
            ("australian", keel("australian")),
            ("heart", keel("heart")),
            ("ionosphere", uci("ionosphere.data", 0, 0)),
            ("glass", uci("Glass.csv", 1, 0)),
            ("vowel", uci("Vowel.csv", 1, 1)),
            ("dna", libsvm("dna.scale")),
            ("mushrooms", libsvm("mushrooms")),
        ):
            if (found := real(name, load)) is not None:
                tasks[name] = found
    rule = 'C="auto" of Tagger'
    for title, machine, fits in (
        ("C of LinearClassifier: rows right, %", LinearClassifier, lambda k: True),
        ("C of Ranker: pairs right, %", Ranker, lambda k: k == 2),
        ("C of LabelRanker: first labels right, %", LabelRanker, lambda k: k > 2),
    ):
        chosen = {name: task for name, task in tasks.items() if fits(len(np.unique(task[1])))}
        if not chosen:
            continue
        table(title, ["C=1", rule, "cross-validated"])
        for name, (X, y) in chosen.items():
            order = np.random.default_rng(1).permutation(len(y))[: sized(1200, 150)]
            n = 2 * len(order) // 3
            X, y = X[order], y[order]
            X = StandardScaler().fit(X[:n]).transform(X)
            parts = X[:n], y[:n], X[n:], y[n:]
            C = 2.0 / float((X[:n] ** 2).sum(axis=1).mean())
            line(name, [
                lambda p=parts, machine=machine: right(machine(C=1.0), *p),
                lambda p=parts, machine=machine, C=C: right(machine(C=C), *p),
                lambda p=parts, machine=machine: right(machine(C=folded(machine, p[0], p[1])), *p),
            ])  # fmt: skip


def right(model: Any, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> float:
    """Return the score of a model on other rows: of a ranker of labels the share of rows whose label comes first."""
    if isinstance(model, LabelRanker):
        labels = np.unique(y).tolist()
        model.fit(X, from_label(y.tolist(), labels))
        return float(np.mean([ranked[0] == label for ranked, label in zip(model.predict(X_test), y_test, strict=True)]))
    if isinstance(model, Ranker):
        y, y_test = (np.unique(part, return_inverse=True)[1] for part in (y, y_test))
    return float(model.fit(X, y).score(X_test, y_test))


def folded(machine: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the best of a few C by three folds of the rows."""
    fold = np.arange(len(y)) % 3
    grid = sized((0.01, 0.1, 1.0, 10.0), (0.1, 1.0))
    scores = [
        np.mean([right(machine(C=C), X[fold != k], y[fold != k], X[fold == k], y[fold == k]) for k in range(3)])
        for C in grid
    ]
    return grid[int(np.argmax(scores))]


def uci(name: str, header: int, skipped: int) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """Return a reader of a csv whose last column is the class."""

    def load() -> tuple[np.ndarray, np.ndarray]:
        rows = list(csv.reader((Path(os.environ["MERCER_DATA"]) / "uci" / name).read_text().splitlines()))[header:]
        return np.array([row[skipped:-1] for row in rows], float), np.array([row[-1] for row in rows])

    return load


def libsvm(name: str) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """Return a reader of a set of LIBSVM's page."""

    def load() -> tuple[np.ndarray, np.ndarray]:
        X, y = load_svmlight_file(os.path.join(os.environ["MERCER_DATA"], "libsvm", name))
        return X.toarray(), y.astype(int)

    return load


PARTS: dict[str, Callable[[bool], None]] = {
    "tagging": tagging, "segments": segments, "graphs": graphs, "images": images, "texts": texts, "columns": columns,
    "strength": strength,
}  # fmt: skip


if __name__ == "__main__":
    main()
