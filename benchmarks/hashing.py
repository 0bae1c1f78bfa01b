"""Hashing maps: text, strings and records to sparse rows, beside scikit-learn, one thread each, in one run.

python benchmarks/hashing.py [--parts words chars bits records] [--repeats 5]
"""

from __future__ import annotations

import argparse
import os
import tarfile
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from _timing import SMOKE, parse, record, sized
from _timing import interleaved as in_turn
from sklearn.feature_extraction.text import HashingVectorizer

from mercer.data import TextBuffer
from mercer.maps import TextHasher

interleaved = partial(in_turn, clock=time.perf_counter)


# ------------------------------------------------------------------------------------------------ text


@cache
def zipf_text(megabytes: float) -> list[str]:
    """Documents of about 1.5 kB of words whose frequencies fall with their rank."""
    rng = np.random.default_rng(0)
    n, size = 50_000, 200
    lengths = rng.integers(2, 13, n)
    letters = rng.integers(97, 123, (n, 12)).astype(np.uint8)
    words = np.array([bytes(row[:length]).decode() for row, length in zip(letters, lengths, strict=True)], dtype=object)
    p = 1.0 / np.arange(1, n + 1) ** 1.05
    documents: list[str] = []
    total = 0
    while total < megabytes * 1e6:
        documents.append(" ".join(words[rng.choice(n, size, p=p / p.sum())]))
        total += len(documents[-1]) + 1
    return documents


@cache
def real_text(name: str) -> list[str]:
    """Posts and reviews from the folder MERCER_DATA; nothing where it is not set."""
    home = os.environ.get("MERCER_DATA")
    if not home:
        return []
    documents = []
    for path in sorted((Path(home) / name).glob("*.tar.gz")):
        with tarfile.open(path) as archive:
            files = (archive.extractfile(member) for member in archive if member.isfile())
            documents += [file.read().decode("latin-1") for file in files if file]
    return documents


def corpora(megabytes: float) -> dict[str, list[str]]:
    found = {"zipf": zipf_text(megabytes)}
    if not SMOKE:
        found |= {name: real_text(name) for name in ("20newsgroups", "movie-reviews")}
    chosen = {}
    for name, documents in found.items():
        ends = np.cumsum([len(d) for d in documents]) if documents else np.zeros(0)
        if len(ends):
            chosen[name] = documents[: int(np.searchsorted(ends, megabytes * 1e6)) + 1]
    return chosen


def compare(
    title: str,
    documents: list[str],
    repeats: int,
    peer: HashingVectorizer,
    hasher: TextHasher,
    sources: dict[str, object],
) -> None:
    """Times of the peer from a list of str and of ours from each kind of input, as MB/s of UTF-8, and ratios."""
    size = sum(len(d.encode()) for d in documents) / 1e6
    calls = [partial(hasher.transform, source) for source in sources.values()]
    peer_time, *times = interleaved(repeats, partial(peer.transform, documents), *calls)
    print(f"{title} ({size:.1f} MB, {len(documents):,} documents)")
    print(f"  {'scikit-learn HashingVectorizer':34} {size / peer_time:8.1f} MB/s")
    for name, seconds in zip(sources, times, strict=True):
        print(f"  {'mercer, from ' + name:34} {size / seconds:8.1f} MB/s   {peer_time / seconds:6.1f} x")
        record(
            "text",
            f"{title}, from {name}",
            peer="scikit-learn",
            theirs=size / peer_time,
            ours=size / seconds,
            unit="MB/s",
            sizes=f"{size:.1f} MB",
        )


def same_features(documents: list[str], peer: HashingVectorizer, hasher: TextHasher) -> None:
    """Both sides make the same features: as many non-zero columns, up to collisions, and equal sums."""
    a = HashingVectorizer(**{**peer.get_params(), "alternate_sign": False}).transform(documents[:200])
    b = TextHasher(**{**hasher.get_params(), "signed": False}).transform(documents[:200])
    assert abs(a.nnz - b.nnz) <= 0.002 * a.nnz, (a.nnz, b.nnz)
    assert a.sum() == b.sum()


def words(repeats: int) -> None:
    """Words to counts in 2^20 columns, from a list of str, an Arrow column and a file."""
    for name, documents in corpora(sized(20, 0.02)).items():
        peer, hasher = HashingVectorizer(norm=None), TextHasher()
        same_features(documents, peer, hasher)
        column = pa.array(documents)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lines.txt"
            path.write_text("\n".join(" ".join(d.split()) for d in documents))
            sources = {"list[str]": documents, "an Arrow column": column, "a file": path}
            compare(f"words, {name}", documents, repeats, peer, hasher, sources)


def chars(repeats: int) -> None:
    """Character 3-grams, and 3- to 5-grams inside words, in 2^20 columns."""
    for analyzer, ngrams in (("char", (3, 3)), ("char_wb", (3, 5))):
        for name, documents in corpora(sized(2, 0.02)).items():
            peer = HashingVectorizer(norm=None, analyzer=analyzer, ngram_range=ngrams)
            hasher = TextHasher(analyzer=analyzer, ngrams=ngrams)
            same_features(documents, peer, hasher)
            column = pa.array(documents)
            title = f"{analyzer} {ngrams[0]}-{ngrams[1]}-grams, {name}"
            sources = {"list[str]": documents, "an Arrow column": column}
            compare(title, documents, min(repeats, 3), peer, hasher, sources)


def bits(repeats: int) -> None:
    """The time does not depend on the number of columns."""
    buffer = TextBuffer(zipf_text(sized(20, 0.02)))
    sizes = range(10, 25, 2)
    times = interleaved(repeats, *(partial(TextHasher(n_bits=n).transform, buffer) for n in sizes))
    print(f"words against n_bits ({buffer.n_bytes / 1e6:.1f} MB)")
    for n, seconds in zip(sizes, times, strict=True):
        print(f"  2^{n:<2} {buffer.n_bytes / 1e6 / seconds:8.1f} MB/s")
        record("bits", f"words, 2^{n} columns", ours=buffer.n_bytes / 1e6 / seconds, unit="MB/s")


# ------------------------------------------------------------------------------------------------ records


def records(repeats: int) -> None:
    """A million rows of eight categories, from columns and from dicts, beside FeatureHasher on dicts.

    Both sides begin with their input in memory and end with a CSR matrix of 2^20 columns, sorted, without duplicates.
    Making the dicts, the arrays and the Arrow tables is not counted on either side; hashing the categories of a
    dictionary is.
    """
    import numpy as np
    import pyarrow as pa
    from sklearn.feature_extraction import FeatureHasher

    from mercer.maps import RecordHasher

    rows, sizes = sized(1_000_000, 1000), [5, 50, 500, 5000, 100, 1000, 20, 50_000]
    random = np.random.default_rng(0)
    codes = {f"field{k}": random.integers(0, size, rows, dtype=np.int32) for k, size in enumerate(sizes)}
    values = {name: [f"value{v}" for v in range(size)] for name, size in zip(codes, sizes, strict=True)}
    strings = {name: np.array(values[name])[code] for name, code in codes.items()}
    lists = {name: column.tolist() for name, column in strings.items()}
    plain = pa.table({name: pa.array(column) for name, column in lists.items()})
    dictionary = pa.table({name: pa.DictionaryArray.from_arrays(codes[name], values[name]) for name in codes})
    dicts = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    hasher, numbers = RecordHasher(), RecordHasher(numeric="category")
    crossed = RecordHasher(interactions=[("field1", "field3"), ("field2", "field6")])
    ours: dict[str, Callable[[], object]] = {
        "Arrow dictionaries": lambda: hasher.transform(dictionary),
        "Arrow strings": lambda: hasher.transform(plain),
        "NumPy strings": lambda: hasher.transform(strings),
        "NumPy integers, as categories": lambda: numbers.transform(codes),
        "lists of str": lambda: hasher.transform(lists),
        "dicts": lambda: hasher.transform(dicts),
        "Arrow dictionaries, with two crosses": lambda: crossed.transform(dictionary),
    }
    peer = FeatureHasher(2**20)
    times = interleaved(repeats, lambda: peer.transform(dicts), *ours.values())
    print(f"records: {rows:,} rows of {len(sizes)} categories → CSR, one thread, medians of {repeats}")
    print(f"  {'FeatureHasher on dicts':56} {times[0]:8.3f} s")
    for name, seconds in zip(ours, times[1:], strict=True):
        print(f"  {'RecordHasher from ' + name:56} {seconds:8.3f} s {times[0] / seconds:6.1f}x")
        record(
            "records",
            f"from {name}",
            peer="scikit-learn, from dicts",
            theirs=times[0],
            ours=seconds,
            sizes=f"{rows:,} rows",
        )
    flat = interleaved(repeats, *(lambda b=b: RecordHasher(b).transform(dictionary) for b in (10, 14, 18, 20, 24)))
    print("  by n_bits 10, 14, 18, 20, 24:  " + "  ".join(f"{seconds:.3f} s" for seconds in flat))


PARTS: dict[str, Callable[[int], None]] = {"words": words, "chars": chars, "bits": bits, "records": records}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parse(parser, repeats=1)
    for part in arguments.parts:
        PARTS[part](arguments.repeats)


if __name__ == "__main__":
    main()
