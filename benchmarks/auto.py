"""``mercer train auto`` on files as their publishers ship them: seconds to a page, and the score on rows held out.

    python benchmarks/auto.py [--only adult,sms,a1a,reviews,conll2000,conll2002] [--smoke]

The command gets each file without an option. The seconds are those of the whole process, from the call to the page.
Beside the score stand the most frequent class (of column files: the most frequent label of each word), and on examples
scikit-learn's logistic regression with its defaults, on the same rows: scaled numbers and one-hot categories, tf-idf of
words with sublinear counts, or the columns of the file. The peer is told what each column is.
"""

from __future__ import annotations

import argparse
import gzip
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from _timing import from_data, parse, record, sized

from mercer.cli.tasks import look_at
from mercer.datasets._home import data_home


def shortened(source: Path, to: Path) -> Path:
    """The first lines of a file, for the smallest run."""
    with (gzip.open if source.suffix == ".gz" else open)(source, "rt", encoding="latin-1") as lines:
        text = "".join(islice(lines, 400))
    to.write_text(text, encoding="latin-1")
    return to


def adult(rows: np.ndarray, held_out: np.ndarray, path: Path) -> float:
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame = pd.read_csv(path, header=None, skipinitialspace=True)
    numbers = [0, 2, 4, 10, 11, 12]
    words = [k for k in range(14) if k not in numbers]
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), words))
    X, y = frame[list(range(14))], frame[14]
    model = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(X.iloc[rows], y.iloc[rows])
    return float(model.score(X.iloc[held_out], y.iloc[held_out]))


def of_texts(texts: list[str], y: np.ndarray, rows: np.ndarray, held_out: np.ndarray) -> float:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    def of(which: np.ndarray) -> list[str]:
        return [texts[i] for i in which]

    model = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(max_iter=1000)).fit(of(rows), y[rows])
    return float(model.score(of(held_out), y[held_out]))


def sms(rows: np.ndarray, held_out: np.ndarray, path: Path) -> float:
    lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    pairs = [line.rstrip("\r").split("\t", 1) for line in lines if line.strip()]
    return of_texts([text for _, text in pairs], np.array([label for label, _ in pairs]), rows, held_out)


def reviews(rows: np.ndarray, held_out: np.ndarray, path: Path) -> float:
    files = sorted(path.rglob("*.txt"))
    labels = np.array([file.parent.name for file in files])
    return of_texts([file.read_text(encoding="latin-1") for file in files], labels, rows, held_out)


def a1a(rows: np.ndarray, held_out: np.ndarray, path: Path) -> float:
    from sklearn.datasets import load_svmlight_file
    from sklearn.linear_model import LogisticRegression

    X, y = load_svmlight_file(str(path))
    return float(LogisticRegression(max_iter=1000).fit(X[rows], y[rows]).score(X[held_out], y[held_out]))


FILES: dict[str, tuple[str, str, Callable[..., float] | None]] = {
    "adult": ("Adult (adult.data.gz)", "uci/adult.data.gz", adult),
    "sms": ("SMS spam (SMSSpamCollection)", "sms-spam/SMSSpamCollection", sms),
    "a1a": ("a1a", "libsvm/a1a", a1a),
    "reviews": ("movie reviews (a folder of class folders)", "movie-reviews/movie_reviews.tar.gz", reviews),
    "conll2000": ("CoNLL-2000 (train.txt.gz)", "conll2000/train.txt.gz", None),
    "conll2002": ("CoNLL-2002, Spanish (esp.testa)", "conll2002/esp.testa", None),
}


def one(name: str, folder: Path) -> None:
    title, place, peer = FILES[name]
    path = Path(data_home()) / place
    if not path.exists():
        raise FileNotFoundError(2, "No such file", str(path))
    if name == "reviews":
        with tarfile.open(path) as archive:
            wanted = [m for m in archive.getmembers() if m.name.endswith(".txt")]
            archive.extractall(folder, sized(wanted, wanted[:40] + wanted[-40:]), filter="data")
        path = next(file.parent.parent for file in folder.rglob("*.txt"))
    elif sized(False, True):
        path = shortened(path, folder / "shortened")
    model, page = folder / "model.mercer", folder / "page.html"
    start = "from mercer.cli import main; main()"
    command = [sys.executable, "-c", start, "train", "auto", str(path), "--model", str(model), "--html", str(page)]
    begun = time.perf_counter()
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    seconds = time.perf_counter() - begun
    assert page.stat().st_size > 10_000
    figures = dict(re.findall(r"^\s+(.+?), held out\s+([\d.]+)$", said, re.M))
    first, *_ = figures.values()
    usual = figures.get("most frequent class") or figures["most frequent label of each word"]
    values: dict[str, Any] = {"seconds": seconds, "mercer": 100 * float(first), "most frequent": 100 * float(usual)}
    if peer is not None and sized(True, False):
        rows, held_out = look_at(str(path), None, {}, True).split(0.2, 0)
        values["logistic regression"] = 100 * peer(rows, held_out, path)
    if "span F1" in figures:
        values["span F1"] = 100 * float(figures["span F1"])
    print(f"{title}: " + ", ".join(f"{key} {value:.1f}" for key, value in values.items()), flush=True)
    record("right on rows held out, %", title, values=values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(FILES))
    args = parse(parser, only="sms")
    for name in args.only.split(","):
        if name not in FILES:
            parser.error(f"no such file: {name}")
        with from_data(name), tempfile.TemporaryDirectory() as folder:
            one(name, Path(folder))


if __name__ == "__main__":
    main()
