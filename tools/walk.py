"""The way of a newcomer, step by step and timed: ``python tools/walk.py`` (or ``make walk``).

    fresh clone → make demo → a tutorial → a csv of one's own → a saved model → predicted by the command, and served
    → the same table in other formats → files as their publishers ship them, where MERCER_DATA has them

Every step uses only what README and documentation name. ``--python PATH`` begins behind the demo, with an environment
where Mercer is installed already. A step that fails ends the walk with its output.

What stood in the way on earlier walks, and is gone: three silent minutes of compiling; a format asked for that the file
shows by itself; spaces, semicolons and byte order marks taken as data; ids learnt as features; labels that came back
without the blank lines of the file; names at the top of the package that could not be imported; hints that named
arguments of Python where an option was needed; lower bounds of dependencies with which nothing could be imported; a
core that Clang, and so macOS, did not compile; no list of all options outside of ``--help``.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import io
import json
import lzma
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
TUTORIAL = "docs/tutorials/text-streams.md"


def step(name: str, run: Callable[[], str]) -> None:
    """Run one step, and print how long it took and what it says."""
    start = time.perf_counter()
    try:
        said = run()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{name}: failed\n{error.stdout or ''}{error.stderr or ''}")
    print(f"{time.perf_counter() - start:7.1f} s  {name}: {said}", flush=True)


def call(*command: str | Path, folder: Path) -> str:
    """Standard output of a command that must succeed."""
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of code of a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


def own_csv(path: Path, n: int, seed: int) -> None:
    """Customers, of whom some leave: numbers, categories, a text and a date, as a spreadsheet writes them."""
    draw = random.Random(seed)
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["customer", "since", "plan", "monthly", "last message", "left"])
        for i in range(n):
            plan, monthly = draw.choice(["basic", "plus", "team"]), draw.randint(5, 60)
            angry = draw.random() < 0.4
            words = (
                ["please cancel my contract", "this is far too slow"]
                if angry
                else ["thanks for the help", "all is well now"]
            )
            left = draw.random() < (0.85 if angry else 0.1)
            since = f"20{draw.randint(18, 25)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
            writer.writerow([f"C{i:05}", since, plan, monthly, draw.choice(words), "yes" if left else "no"])


def written(rows: list[dict[str, str]], delimiter: str, quoting: int = csv.QUOTE_MINIMAL) -> str:
    """Rows as csv."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator="\n", quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


class Walk:
    """The steps, in a folder of their own."""

    def __init__(self, sources: Path, python: Path, folder: Path) -> None:
        self.sources, self.python, self.folder = sources, python, folder
        self.mercer = python.parent / "mercer"

    def tutorial(self) -> str:
        page = self.sources / TUTORIAL
        program = self.folder / "tutorial.py"
        program.write_text("\n".join(blocks(page, "python")))
        call(self.python, program, folder=self.folder)
        lines = [line.partition("#")[0].split() for line in blocks(page, "console")[0].splitlines()]
        (self.folder / "new.csv").write_text("text\nwhere is my parcel\n")
        for words in lines:
            call(self.mercer, *words[1:], folder=self.folder)
        return f"{TUTORIAL} and its {len(lines)} commands"

    def train(self) -> str:
        own_csv(self.folder / "customers.csv", 2000, 1)
        own_csv(self.folder / "next.csv", 200, 2)
        said = call(self.mercer, "train", "auto", "customers.csv", folder=self.folder)
        found = re.search(r"accuracy, held out +([\d.]+)", said)
        page = self.folder / "customers.html"
        if found is None or page.stat().st_size < 10_000:
            sys.exit(f"train auto: no accuracy or no page\n{said}")
        return f"accuracy {found[1]} on rows held out, and a page of {page.stat().st_size // 1000} kB"

    def formats(self) -> str:
        """The table of customers in other formats: each must give the answers of the first."""
        with (self.folder / "customers.csv").open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file, delimiter=";"))
        typed = [{**row, "monthly": int(row["monthly"])} for row in rows]
        plain = written(rows, ",")
        files = {
            "commas.csv": plain.encode(),
            "tabs.tsv": written(rows, "\t").encode(),
            "bars": written(rows, "|").encode(),
            "windows.csv": plain.replace("\n", "\r\n").encode("utf-16"),
            "spaces.csv": plain.replace(",", " , ").encode(),
            "quoted.csv": written(rows, ",", csv.QUOTE_ALL).encode(),
            "lines.jsonl": "\n".join(map(json.dumps, typed)).encode(),
            "array.json": json.dumps(typed).encode(),
            "columns": json.dumps({name: [row[name] for row in typed] for name in typed[0]}).encode(),
            "packed.csv.gz": gzip.compress(plain.encode()),
            "packed.bz2": bz2.compress(plain.encode()),
            "packed": lzma.compress(plain.encode()),
        }
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
            call(self.mercer, "train", "auto", name, "--model", "form.mercer", "--quiet", folder=self.folder)
            answers = call(self.mercer, "predict", "form.mercer", "next.csv", folder=self.folder).splitlines()[1:]
            if answers != self.predicted:
                sys.exit(f"{name}: other answers than those of customers.csv")
        return f"{len(files)} formats, the same answers"

    def shipped(self) -> str:
        """Files as their publishers ship them: seconds to model and page, and what is right on rows held out."""
        data = Path(os.environ.get("MERCER_DATA", "/nonexistent"))
        reviews = data / "movie-reviews" / "movie_reviews.tar.gz"
        if reviews.exists():
            call("tar", "xzf", reviews, folder=self.folder)
        told = []
        for name, path in (
            ("Adult", data / "uci" / "adult.data.gz"),
            ("SMS", data / "sms-spam" / "SMSSpamCollection"),
            ("a1a", data / "libsvm" / "a1a"),
            ("movie reviews", self.folder / "movie_reviews"),
            ("CoNLL-2002", data / "conll2002" / "esp.testa"),
        ):
            if not path.exists():
                continue
            start = time.perf_counter()
            said = call(self.mercer, "train", "auto", path, "--model", "shipped.mercer", folder=self.folder)
            right = re.search(r"(?:accuracy|span F1), held out +([\d.]+)", said)
            if right is None or (self.folder / "shipped.html").stat().st_size < 10_000:
                sys.exit(f"train auto {path}: no accuracy or no page\n{said}")
            told.append(f"{name} {right[1]} in {time.perf_counter() - start:.1f} s")
        return ", ".join(told) or "none of them is here: set MERCER_DATA"

    def predict(self) -> str:
        predicted = call(self.mercer, "predict", "customers.mercer", "next.csv", folder=self.folder).splitlines()
        rows = (self.folder / "next.csv").read_text(encoding="utf-8-sig").splitlines()
        if len(predicted) != len(rows):
            sys.exit(f"predict: {len(predicted)} lines for {len(rows)}")
        self.predicted = predicted[1:]
        judged = call(self.mercer, "evaluate", "customers.mercer", "next.csv", folder=self.folder)
        accuracy = re.search(r"accuracy +([\d.]+)", judged)
        call(self.mercer, "inspect", "customers.mercer", "--html", "inside.html", folder=self.folder)
        return f"{len(self.predicted)} rows of another file, accuracy {accuracy[1] if accuracy else '?'}"

    def serve(self) -> str:
        command = [self.mercer, "serve", "customers.mercer", "--port", "0"]
        server = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            found = re.search(r"http://[\w.:]+", line)
            if found is None:
                server.wait(10)
                raise subprocess.CalledProcessError(1, command, line, server.stderr.read() if server.stderr else "")
            with (self.folder / "next.csv").open(newline="", encoding="utf-8-sig") as file:
                rows = list(csv.DictReader(file, delimiter=";"))
            instances = [{**row, "monthly": float(row["monthly"])} for row in rows]
            body = json.dumps({"instances": instances}).encode()
            with urllib.request.urlopen(f"{found[0]}/v1/models/customers:predict", body, timeout=60) as answer:
                served = json.load(answer)["predictions"]
            if served != self.predicted:
                sys.exit("serve: the answers are not those of the command predict")
            with urllib.request.urlopen(found[0], timeout=60) as page:
                title = re.search(r"<title>(.*?)</title>", page.read().decode())
            return f"the same {len(served)} answers over HTTP, and the page {title[1] if title else '?'!r}"
        finally:
            server.terminate()
            server.wait(30)


def main() -> None:
    """Walk."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, help="an environment where Mercer is installed: begin behind the demo")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        here, clone = Path(folder), Path(folder) / "mercer"
        if asked.python is None:
            step("git clone", lambda: call("git", "clone", "--quiet", ROOT, clone, folder=here) or "a fresh clone")
            step("make demo", lambda: call("make", "demo", folder=clone).strip().splitlines()[-1])
            python = clone / ".venv" / "bin" / "python"
            extra = [python, "-m", "pip", "install", "--quiet", "--no-build-isolation", "-e", ".[serve]"]
            step("pip install '.[serve]'", lambda: call(*extra, folder=clone) or "the extra")
        walk = Walk(ROOT if asked.python else clone, (asked.python or python).absolute(), here)
        os.environ["PATH"] = f"{walk.python.parent}:{os.environ['PATH']}"
        step("a tutorial", walk.tutorial)
        step("a csv of one's own", walk.train)
        step("predict", walk.predict)
        step("serve", walk.serve)
        step("other formats", walk.formats)
        step("files as shipped", walk.shipped)


if __name__ == "__main__":
    main()
