"""The experiments on hash kernels: errors against bits, against projections, and thousands of classes in one vector.

    MERCER_DATA=... python benchmarks/hash_kernels.py [--parts collisions bits projections sampling topics]
                                                      [--sets sms ...] [--quick]

collisions   table 2.4: distinct buckets of as many words as RCV1 has, beside the printed ones
bits         tables 2.2 and 2.4: error against the number of buckets, beside the same learner without hashing and
             scikit-learn's HashingVectorizer + SGDClassifier. Loss and passes (for scikit-learn alpha) are chosen on a
             fifth of the training documents, without hashing, and used for all numbers of bits.
projections  tables 2.3 and 2.7: hashing against random projection at equal dimension. Time and memory are the claim;
             which of the two errs less depends on the data.
sampling     inner products of rows from k numbers each: conditional random sampling beside signed hashing
topics       tables 2.5 and 2.6, Fig. 2.2: generated topic trees of 1,000 and 7,000 classes.

"printed" are the figures of Shi's thesis (2011) on RCV1 and the Open Directory, which are not public: shapes compare,
numbers do not. Seconds are of the processor, one thread.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _timing import from_data, parse, record, sized
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from mercer.classification import KMeansMajority, SampledKNN
from mercer.datasets import (
    load_20newsgroups,
    load_movie_reviews,
    load_news20,
    load_reuters21578,
    load_sms_spam,
    make_topic_tree,
    make_zipf_corpus,
    path_features,
)
from mercer.maps import RandomProjection, RowSamples, SignedHashProjection, TextHasher, expected_collision_rate
from mercer.metrics import error_by_class_size
from mercer.online import HashedClassifier

BITS = (10, 12, 14, 16, 18, 20, 22, 24)
GRID = [("log", 1), ("log", 5), ("hinge", 1), ("hinge", 5)]
ALPHAS = (1e-6, 1e-5, 1e-4)

PRINTED_COLLISIONS = {  # table 2.4: bits → unique, collisions in %, error in %
    24: (285_614, 0.82, 5.586), 22: (278_238, 3.38, 5.655), 20: (251_910, 12.52, 5.594),
    18: (174_776, 39.31, 5.655), 16: (64_758, 77.51, 5.763), 14: (16_383, 94.31, 6.096),
}  # fmt: skip
PRINTED_PROJECTIONS = {  # table 2.3: bits → (preparation s, training and test s, error %) of projection and of hashing
    8: ((748.30, 210.23, 29.35), (0.0, 22.82, 17.00)),
    9: ((1079.30, 393.46, 25.08), (0.0, 24.19, 12.32)),
    10: ((1717.30, 860.95, 19.86), (0.0, 24.41, 9.93)),
}
PRINTED_TOPICS = {  # tables 2.5 and 2.6: errors in % on 575 and 7,100 classes
    "joint 2^28": (30.12, 52.10), "joint 2^24": (30.71, 53.36), "separate": (31.28, 51.47), "uniform": (99.83, 99.99),
    "majority": (85.05, 86.83), "neighbours in 3 %": (49.77, 69.07), "neighbours in 6 %": (47.41, 67.33),
    "neighbours in 9 %": (46.19, 66.29), "clusters of 3 %": (57.71, 68.37), "clusters of 6 %": (57.04, 68.44),
    "clusters of 9 %": (57.24, 68.47),
}  # fmt: skip


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and the processor seconds it took."""
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def error(model: Any, X: Any, y: np.ndarray) -> float:
    """Test error in percent."""
    return 100.0 * float(np.mean(model.predict(X) != y))


def scaled(counts: Any) -> csr_matrix:
    """Rows of log(1 + count) of length 1, as TextHasher(weighting="log", norm="l2") makes them."""
    counts = csr_matrix(counts, dtype=np.float64, copy=True)
    counts.data = np.copysign(np.log1p(np.abs(counts.data)), counts.data)
    return normalize(counts, copy=False)


# ------------------------------------------------------------------------------------------------ bits


@dataclass
class Corpus:
    """Training and test documents, or rows of counts."""

    name: str
    train: Any
    test: Any
    y_train: np.ndarray
    y_test: np.ndarray

    @property
    def is_text(self) -> bool:
        return isinstance(self.train, list)


def _texts(name: str, data: Any) -> Corpus:
    X_train, X_test, y_train, y_test = data.split()
    return Corpus(name, X_train, X_test, y_train, y_test)


def _news20() -> Corpus:
    data = load_news20()
    rows = train_test_split(np.arange(len(data.y)), test_size=0.25, stratify=data.y, random_state=0)
    return Corpus("news20", data.X[rows[0]], data.X[rows[1]], data.y[rows[0]], data.y[rows[1]])


ZIPF = sized((12_000, 100_000), (200, 2000))  # documents and words
SETS: dict[str, Callable[[], Corpus]] = {
    "reuters-earn": lambda: _texts("Reuters-21578, earn against the rest", load_reuters21578("earn")),
    "reuters-acq": lambda: _texts("Reuters-21578, acq against the rest", load_reuters21578("acq")),
    "sms": lambda: _texts("SMS spam", load_sms_spam()),
    "movies": lambda: _texts("movie reviews", load_movie_reviews()),
    "zipf": lambda: _texts("generated Zipf corpus, 2 classes", make_zipf_corpus(*ZIPF)),
    "r8": lambda: _texts("Reuters-21578, 8 topics", load_reuters21578(single_label=True, n_categories=10)),
    "20news": lambda: _texts("20 newsgroups without headers", load_20newsgroups(headers=False)),
    "news20": _news20,
}


def counts_of(corpus: Corpus) -> tuple[csr_matrix, csr_matrix, list[str]]:
    """Scaled rows without hashing, and the words of the training documents."""
    if not corpus.is_text:
        return scaled(corpus.train), scaled(corpus.test), []
    words = CountVectorizer()
    train = words.fit_transform(corpus.train)
    return scaled(train), scaled(words.transform(corpus.test)), list(words.get_feature_names_out())


def own_bits(n_columns: int) -> int:
    """Bits with which every column has weights of its own."""
    return max(4, int(n_columns - 1).bit_length())


def unhashed(n_columns: int, loss: str, passes: int) -> HashedClassifier:
    """The same learner with a weight for each column and class."""
    return HashedClassifier(loss=loss, max_iter=passes, n_bits=own_bits(n_columns), label_hashing="separate")


def choose(X: csr_matrix, y: np.ndarray) -> tuple[str, int, float]:
    """Loss, passes and scikit-learn's alpha with the least error on a fifth of the training rows."""
    fit, held = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=0)
    ours = [error(unhashed(X.shape[1], loss, passes).fit(X[fit], y[fit]), X[held], y[held]) for loss, passes in GRID]
    theirs = [error(peer(alpha).fit(X[fit], y[fit]), X[held], y[held]) for alpha in ALPHAS]
    loss, passes = GRID[int(np.argmin(ours))]
    return loss, passes, ALPHAS[int(np.argmin(theirs))]


def peer(alpha: float) -> SGDClassifier:
    """scikit-learn's learner of the same kind."""
    return SGDClassifier(loss="log_loss", alpha=alpha, random_state=0)


def collisions(words: list[str], n_bits: int) -> tuple[int, float]:
    """Distinct buckets of distinct words, and the share of words lost in percent."""
    unique = len(np.unique(TextHasher(n_bits, signed=False).transform(words).indices))
    return unique, 100.0 * (1 - unique / len(words))


def buckets(sets: list[str], quick: bool) -> None:
    """Distinct buckets of distinct words."""
    words = [f"word{k}" for k in range(sized(287_970, 2000))]
    print(f"\nTable 2.4: distinct buckets of {len(words):,} distinct words; printed: of the 287,970 words of RCV1")
    for n_bits, (printed, rate, _) in PRINTED_COLLISIONS.items():
        unique, lost = collisions(words, n_bits)
        print(f"  2^{n_bits}: {unique:>8,} unique, {lost:5.2f} % lost   printed {printed:>8,}, {rate:5.2f} %")
        columns = {"distinct": {"value": unique, "printed": printed}, "%": {"value": round(lost, 2), "printed": rate}}
        record("collisions", f"2^{n_bits}", values=columns)


def bits(sets: list[str], quick: bool) -> None:
    """Error against the number of buckets."""
    for name in sets:
        with from_data(name):
            _bits_of(SETS[name](), sized(BITS[::2] if quick else BITS, (10, 12)))


def _bits_of(corpus: Corpus, all_bits: tuple[int, ...]) -> None:
    X, X_test, words = counts_of(corpus)
    y, y_test = corpus.y_train, corpus.y_test
    n_classes = len(np.unique(y))
    loss, passes, alpha = choose(X, y)
    print(f"\n{corpus.name}: {len(y):,} / {len(y_test):,} documents, {X.shape[1]:,} words, {n_classes} classes;")
    print(f"  chosen on training documents: {loss} with {passes} passes; scikit-learn alpha {alpha:g}")
    if n_classes > 2:
        print("  ours hashes pairs of word and class to 2^bits weights; scikit-learn has 2^bits weights for each class")
    model, s = timed(lambda: unhashed(X.shape[1], loss, passes).fit(X, y))
    other, t = timed(lambda: peer(alpha).fit(X, y))
    print("  bits           unique  lost %   ours: error %  seconds   sklearn: error %  seconds   printed lost, error")
    row = "  {:<10} {:>10}  {:>6}   {:>13.2f}  {:>7.2f}   {:>16}  {:>7}   {:>15}"
    errors = error(model, X_test, y_test), error(other, X_test, y_test)
    print(row.format("no hashing", "", "", errors[0], s, f"{errors[1]:.2f}", f"{t:.2f}", ""))
    columns: dict[str, Any] = {"unhashed": [round(e, 2) for e in errors]}
    for n_bits in all_bits:
        if n_classes > 2:
            unique, lost = 0, 100 * expected_collision_rate(X.shape[1] * n_classes, 2**n_bits)
        else:
            unique, lost = collisions(words, n_bits)
        ours, s = timed(lambda b=n_bits: _ours(corpus, X, X_test, n_classes, loss, passes, b))
        theirs = seconds = "-"
        if corpus.is_text and n_bits <= (24 if n_classes == 2 else 18):  # scikit-learn: 2^bits for each class
            found, t = timed(lambda b=n_bits: _theirs(corpus, alpha, b))
            theirs, seconds = f"{found:.2f}", f"{t:.2f}"
        printed = "{1:.2f}, {2:.2f}".format(*PRINTED_COLLISIONS[n_bits]) if n_bits in PRINTED_COLLISIONS else ""
        shown = f"{unique:,}" if unique else "(expected)"
        columns[f"2^{n_bits}"] = [round(ours, 2), *([float(theirs)] if theirs != "-" else [])]
        print(row.format(f"2^{n_bits}", shown, f"{lost:.2f}", ours, s, theirs, seconds, printed))
    record("bits", corpus.name, values=columns)


def _ours(
    corpus: Corpus, X: csr_matrix, X_test: csr_matrix, n_classes: int, loss: str, passes: int, n_bits: int
) -> float:
    """Test error from documents, hashed to 2^bits columns; with several classes to 2^bits pairs of word and class."""
    if corpus.is_text:
        hasher = TextHasher(n_bits if n_classes == 2 else 24, weighting="log", norm="l2")
        X, X_test = hasher.transform(corpus.train), hasher.transform(corpus.test)
    model = HashedClassifier(loss=loss, max_iter=passes, n_bits=n_bits).fit(X, corpus.y_train)
    return error(model, X_test, corpus.y_test)


def _theirs(corpus: Corpus, alpha: float, n_bits: int) -> float:
    """The same of scikit-learn."""
    hasher = HashingVectorizer(n_features=2**n_bits, norm=None)
    model = peer(alpha).fit(scaled(hasher.transform(corpus.train)), corpus.y_train)
    return error(model, scaled(hasher.transform(corpus.test)), corpus.y_test)


# ------------------------------------------------------------------------------------------------ projections


def projections(sets: list[str], quick: bool) -> None:
    """Hashing against random projection at equal dimension."""
    for name in [name for name in sets if name in ("reuters-earn", "zipf")] or ["zipf"]:
        corpus = SETS[name]()
        loss, passes, _ = choose(counts_of(corpus)[0], corpus.y_train)  # as in bits: the same cell has the same error
        learner = HashedClassifier(loss=loss, max_iter=passes)
        print(f"\n{corpus.name}: preparation s / training and test s / error % / MB of training rows;")
        print(f"  chosen on training documents: {loss} with {passes} passes")
        for n_bits in (8, 10) if quick else (8, 9, 10):
            learner.set_params(n_bits=n_bits)
            other, ours = _projected_run(corpus, learner), _hashed_run(corpus, learner)
            printed = PRINTED_PROJECTIONS[n_bits]
            for way, run, figures in (("projection", other, printed[0]), ("hashing", ours, printed[1])):
                shown = "{:7.2f} / {:6.2f} / {:5.2f} / {:6.1f}".format(*run)
                print(f"  2^{n_bits:<2}  {way:10} {shown}   printed " + " / ".join(map(str, figures)))
            faster = (other[0] + other[1]) / (ours[0] + ours[1])
            beside = {"theirs": other[0] + other[1], "ours": ours[0] + ours[1]}
            record("projections", f"{corpus.name}, 2^{n_bits}", peer="random projection", **beside)
            print(f"        {faster:.0f}x faster (printed {sum(printed[0][:2]) / sum(printed[1][:2]):.0f}x)")


def sampling(sets: list[str], quick: bool) -> None:
    """Inner products of documents from k numbers each: conditional random sampling beside signed hashing."""
    corpus = SETS["reuters-earn" if "reuters-earn" in sets else "zipf"]()
    X = counts_of(corpus)[0][: sized(1000, 60)]
    X.data = np.log1p(X.data)
    X = normalize(X)
    exact = (X @ X.T).toarray()
    pairs = np.triu_indices(len(exact), 1)
    print(f"\n{corpus.name}: root mean square error of cosines of {len(exact):,} documents, and mean error, over seeds")
    for k in sized((16, 64, 256), (16,)):
        found: dict[str, list[np.ndarray]] = {"sampling": [], "hashing": []}
        for seed in range(sized(3 if quick else 10, 2)):
            found["sampling"].append((RowSamples(X, k, seed=seed).inner() - exact)[pairs])
            # k numbers of a hashed row, all of them; a sample of k entries also keeps k columns
            Z = SignedHashProjection(k, n_hashes=1, random_state=seed).fit(X).transform(X)
            found["hashing"].append((Z @ Z.T - exact)[pairs])
        values = {}
        for way, errors in found.items():
            values[f"{way}, error"] = round(float(np.sqrt(np.mean(np.square(errors)))), 4)
            values[f"{way}, bias"] = round(float(np.mean(errors)), 5)
        print(f"  k = {k:4}  " + "  ".join(f"{name} {value:9.5f}" for name, value in values.items()), flush=True)
        record("sampling", f"{corpus.name}, k = {k}", values=values)


Run = tuple[float, float, float, float]


def _hashed_run(corpus: Corpus, learner: HashedClassifier) -> Run:
    """Seconds before (none), seconds from documents to predictions, error, MB of the training rows."""

    def run() -> tuple[float, float]:
        hasher = TextHasher(learner.n_bits, weighting="log", norm="l2")
        Z = hasher.transform(corpus.train)
        model = clone(learner).fit(Z, corpus.y_train)
        wrong = error(model, hasher.transform(corpus.test), corpus.y_test)
        return wrong, (Z.data.nbytes + Z.indices.nbytes + Z.indptr.nbytes) / 2**20

    (wrong, size), seconds = timed(run)
    return 0.0, seconds, wrong, size


def _projected_run(corpus: Corpus, learner: HashedClassifier) -> Run:
    """Seconds for the vocabulary, the counts and their projection; of learning and predicting; error; MB."""

    def prepare() -> tuple[np.ndarray, np.ndarray]:
        X, X_test, _ = counts_of(corpus)
        projection = RandomProjection(2**learner.n_bits, random_state=0).fit(X)
        return projection.transform(X), projection.transform(X_test)

    (Z, Z_test), before = timed(prepare)
    model, learning = timed(lambda: clone(learner).fit(Z, corpus.y_train))
    wrong, predicting = timed(lambda: error(model, Z_test, corpus.y_test))
    return before, learning + predicting, wrong, Z.nbytes / 2**20


# ------------------------------------------------------------------------------------------------ topics


def memory_table() -> None:
    """The memory column of table 2.5: entries of 8 bytes in GB."""
    print("\nTable 2.5, memory in GB = entries · 8 / 2^30")
    rows = [
        ("joint 2^28", 2**28, "2"),
        ("joint 2^24", 2**24, "0.125"),
        ("separate 2^19 x 575 classes", 2**19 * 575, "2.25"),
        ("separate 2^15 x 7,100 classes", 2**15 * 7100, "1.73"),
        ("no hashing, 1,832,704 words x 575", 1_832_704 * 575, "7.85"),
        ("no hashing, 1,832,704 words x 7,100", 1_832_704 * 7100, "96.95"),
    ]
    for name, entries, printed in rows:
        print(f"  {name:36} {entries * 8 / 2**30:8.3f}   printed {printed}")


def competitors(n_classes: int, n_words: int, quick: bool) -> Iterator[tuple[str, Callable[[], Any], str]]:
    """Name, estimator and kind of input of everything that is compared."""
    for n_bits in (22, 24):
        yield f"joint 2^{n_bits}", lambda b=n_bits: HashedClassifier("hinge", n_bits=b), "texts"
    yield "two-stage 2^24", lambda: HashedClassifier("hinge", n_bits=24, label_hashing="two-stage"), "texts"
    n_bits = 14 if n_classes <= 1000 else 12
    yield f"separate 2^{n_bits}", lambda: HashedClassifier("hinge", n_bits=n_bits, label_hashing="separate"), "texts"
    if n_classes * 2 ** own_bits(n_words) * 12 < 2**30:
        yield "no hashing", lambda: unhashed(n_words, "hinge", 1), "counts"
    yield "majority", lambda: DummyClassifier(strategy="most_frequent"), "rows"
    yield "uniform", lambda: DummyClassifier(strategy="uniform", random_state=0), "rows"
    for share in (3, 6, 9):
        yield f"neighbours in {share} %", lambda s=share: SampledKNN(s / 100, metric="cosine", random_state=0), "rows"
    for share in (3,) if n_classes > 1000 or quick else (3, 6, 9):
        clusters = partial(KMeansMajority, fraction=share / 100, max_iter=10, random_state=0)
        yield f"clusters of {share} %", clusters, "narrow"


def topics(sets: list[str], quick: bool) -> None:
    """Thousands of classes in one vector of weights."""
    memory_table()
    sizes = ((1000, 20_000), (7000, 30_000)) if quick else ((1000, 60_000), (7000, 120_000))
    sizes, n_test = sized((sizes, 5000), (((100, 600),), 100))
    for column, (n_classes, n_train) in enumerate(sizes):
        tree, seconds = timed(lambda M=n_classes, n=n_train: make_topic_tree(M, n + n_test, random_state=0))
        size = f"{n_classes:,} classes, {n_train:,} / {n_test:,} documents"
        print(f"\n{size}, up to {tree.n_words:,} words ({seconds:.1f} s)")
        print("                        error %   MB of weights   training s   test s   printed (Open Directory)")
        _topics_of(tree, n_train, column, quick)


def _topics_of(tree: Any, n_train: int, column: int, quick: bool) -> None:
    X, X_test, y, y_test = tree.texts[:n_train], tree.texts[n_train:], tree.y[:n_train], tree.y[n_train:]
    maps = {kind: TextHasher(b, weighting="tfidf", norm="l2") for kind, b in (("rows", 18), ("narrow", 11))}
    inputs: dict[str, Any] = {"texts": (X, X_test)}
    inputs |= {kind: (hasher.fit_transform(X), hasher.transform(X_test)) for kind, hasher in maps.items()}
    counter = CountVectorizer().fit(X)
    n_words = len(counter.vocabulary_)
    best = None
    for name, make, kind in competitors(len(tree.paths), n_words, quick):
        if kind == "counts":
            inputs["counts"] = counter.transform(X).astype(np.float32), counter.transform(X_test).astype(np.float32)
        train, test = inputs[kind]
        model, s_train = timed(lambda make=make, rows=train: make().fit(rows, y))
        wrong, s_test = timed(lambda model=model, rows=test: error(model, rows, y_test))
        size = getattr(model, "model_bytes_", None)
        printed = PRINTED_TOPICS.get(name.split(" 2^")[0] if name.startswith("separate") else name)
        shown = "-" if size is None else f"{size / 2**20:.1f}"
        end = "" if printed is None else f"{printed[column]:.2f}"
        columns: dict[str, Any] = {"error, %": {"value": round(float(wrong), 1)}, "MB": ""}
        if printed is not None:
            columns["error, %"]["printed"] = printed[column]
        if size is not None:
            columns["MB"] = round(size / 2**20)
        record("topics", f"{len(tree.paths):,} classes, {name}", values=columns)
        print(f"  {name:20} {wrong:9.2f}   {shown:>13}   {s_train:10.2f}   {s_test:6.2f}   {end}")
        if name == "joint 2^24":
            best = model.predict(test)
    print("\n  Fig. 2.2, joint 2^24 by size of class: training documents of a class, classes, test documents, error %")
    for group in error_by_class_size(y, y_test, best):
        sizes = f"{group.smallest:>6} .. {group.largest:<6}"
        print(f"    {sizes} {group.n_classes:>6} {group.n_examples:>6}   {100 * group.error:6.2f}")
        of_group = {"classes": group.n_classes, "error, %": round(100 * group.error, 1)}
        record("frequency", f"{len(tree.paths):,} topics, classes of {sizes.strip()} documents", values=of_group)
    if not quick or len(tree.paths) <= 1000:
        _by_levels(tree, n_train)


def _by_levels(tree: Any, n_train: int) -> None:
    """The hierarchy: a model for each level of the path, log p added up along the path of each class."""
    prefixes = [path_features(path) for path in tree.paths]
    y, y_test = tree.y[:n_train], tree.y[n_train:]
    seen = np.unique(y)
    total = np.zeros((len(y_test), len(seen)))
    for depth in (1, 2, 3):
        topic = np.array([prefix[min(depth, len(prefix) - 1)] for prefix in prefixes])
        model = HashedClassifier("log", n_bits=22).fit(tree.texts[:n_train], topic[y])
        scores = model.decision_function(tree.texts[n_train:])
        scores -= np.logaddexp.reduce(scores, axis=1, keepdims=True)
        own = scores[:, np.searchsorted(model.classes_, topic[seen])]
        total += own
    alone, summed = (100 * np.mean(seen[found.argmax(axis=1)] != y_test) for found in (own, total))
    print(f"\n  log loss, joint 2^22: error {alone:.2f} %; log p added up along the path: {summed:.2f} %")


PARTS: dict[str, Callable[[list[str], bool], None]] = {
    "collisions": buckets,
    "bits": bits,
    "projections": projections,
    "sampling": sampling,
    "topics": topics,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--sets", nargs="+", choices=list(SETS))
    parser.add_argument("--quick", action="store_true", help="smaller trees and fewer numbers of bits")
    arguments = parse(parser, sets=["zipf"], quick=True)
    sets = arguments.sets or (list(SETS) if os.environ.get("MERCER_DATA") else ["zipf"])
    if arguments.sets is None and sets == ["zipf"]:
        print("MERCER_DATA is not set: only the generated corpus")
    for part in arguments.parts:
        PARTS[part](sets, arguments.quick)


if __name__ == "__main__":
    main()
