"""Runs cases in child processes: a crash, a hang or an unclear error is attributed to its case, made smaller and kept.

A target draws case ``number`` of a run from a seed, so that a worker only has to say which number it is at. Workers are
forked; they write that number into shared memory before each case, and a timer of processor time ends a case that does
not end by itself.
"""

from __future__ import annotations

import collections
import faulthandler
import hashlib
import json
import mmap
import os
import re
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Case = Any
CORPUS = Path(__file__).with_name("corpus")
SANITIZED = "ASAN_OPTIONS" in os.environ
CPU_SECONDS = 30.0 if SANITIZED else 5.0  # of one case
WALL_SECONDS = 24 * CPU_SECONDS  # of one case that waits: a busy machine may give a process a tenth of the processor
MEMORY = 2 << 30  # bytes beyond those of the parent
UNCLEAR = re.compile(r"std::|_M_|basic_string|vector::|bad_cast|bad_alloc|map::at|Unknown exception")
# Where memory is missing the sanitizer ends the process; without it the same case ends in a MemoryError.
OUT_OF_MEMORY = re.compile(r"AddressSanitizer: (out.of.memory|allocation-size-too-big|requested allocation)")
REFUSED = "refused"  # what `Target.run` may return for a case that ended in a clear error


class Target:
    """What is fuzzed: draws cases and runs them."""

    name = ""

    def load(self) -> None:
        """Get ready, once, before workers are forked."""

    def case(self, seed: int, number: int) -> Case:
        """Return case ``number`` of the run with this seed."""
        raise NotImplementedError

    def run(self, case: Case) -> str | None:
        """Run a case; return what is wrong with the way it ended, or None."""
        raise NotImplementedError

    def subject(self, case: Case) -> str:
        """Return what the case is about: an entry point, a kind of model file, a reader."""
        raise NotImplementedError

    def smaller(self, case: Case) -> Iterator[Case]:
        """Yield simpler cases that may end in the same way."""
        return iter(())

    def plain(self, case: Case) -> Any:
        """Return the case as JSON."""
        return case

    def unreached(self) -> list[str]:
        """Return the subjects that there are no cases of, but should be."""
        return []


@dataclass
class Finding:
    """One way in which a target failed."""

    target: str
    subject: str
    why: str
    case: Any
    number: int = -1

    @property
    def name(self) -> str:
        """The name of its file in the corpus."""
        digest = hashlib.sha256(json.dumps(self.case, sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.target}-{re.sub(r'[^A-Za-z0-9_.]', '-', self.subject)}-{digest}.json"

    def save(self, folder: Path = CORPUS) -> Path:
        """Write it to the corpus."""
        folder.mkdir(exist_ok=True)
        path = folder / self.name
        path.write_text(json.dumps({"target": self.target, "why": self.why, "case": self.case}) + "\n")
        return path


@dataclass
class Report:
    """Figures of a run."""

    target: str
    cases: int = 0
    refused: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        kinds = collections.Counter(finding.why.partition(":")[0] for finding in self.findings)
        found = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "nothing found"
        return f"{self.target}: {self.cases} cases, {self.refused} refused, {self.seconds:.0f} s: {found}"


def describe(error: BaseException) -> str | None:
    """Return what is wrong with an exception of compiled code, or None where it is one that a user can read."""
    if isinstance(error, MemoryError):
        return None  # more was asked for than there is
    if isinstance(error, (ValueError, TypeError, OverflowError, LookupError, RuntimeError)) and not isinstance(
        error, RecursionError
    ):
        return f"unclear error: {type(error).__name__}: {error}" if UNCLEAR.search(str(error)) and str(error) else None
    return f"unclear error: {type(error).__name__}: {error}"


# ------------------------------------------------------------------------------------------------ children


def _limit(cpu_seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not SANITIZED:  # the sanitizer reserves terabytes of addresses
        used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)


class _Child:
    """A forked process that does some work and ends; what it writes to standard error is kept."""

    def __init__(self, work: Callable[[], None]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed in `ending`)
        self.pid = os.fork()
        if self.pid == 0:
            self._work(work)

    def _work(self, work: Callable[[], None]) -> None:
        status = 1
        try:
            faulthandler.disable()
            os.dup2(self.errors.fileno(), 2)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def ending(self, status: int) -> str | None:
        """Return what is wrong with the way the child ended, or None; its errors are shown where it crashed."""
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace")
        self.errors.close()
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if number == signal.SIGPROF:
                return f"hang: {CPU_SECONDS:.0f} s of processor time"
            if number == signal.SIGKILL:
                return "hang: no progress"
            why = f"crash: {signal.Signals(number).name}"
        elif os.WEXITSTATUS(status) == 0:
            return None
        else:
            why = f"crash: exit status {os.WEXITSTATUS(status)}"
        if OUT_OF_MEMORY.search(said):
            return REFUSED
        if said:
            print(said[:8000], file=sys.stderr)
        return why


def run_alone(target: Target, case: Case, patience: float = 1.0) -> str | None:
    """Run one case in a child of its own; return what is wrong, or None."""
    read, write = os.pipe()

    def work() -> None:
        os.close(read)
        _limit(patience * CPU_SECONDS)
        os.write(write, (target.run(case) or "").encode()[:2000])

    child = _Child(work)
    os.close(write)
    deadline = time.monotonic() + WALL_SECONDS
    while True:
        done, status = os.waitpid(child.pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            os.kill(child.pid, signal.SIGKILL)
        time.sleep(0.001)
    with open(read, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    return child.ending(status) or said or None


def minimised(target: Target, case: Case, why: str, tries: int = 60) -> Case:
    """Return a simpler case that still ends in the same way."""
    kind = why.partition(":")[0]
    tries = min(tries, 8) if kind == "hang" else tries  # each of which takes its time
    progress = True
    while progress and tries > 0:
        progress = False
        for candidate in target.smaller(case):
            tries -= 1
            if tries < 0:
                break
            if (run_alone(target, candidate) or "").partition(":")[0] == kind:
                case, progress = candidate, True
                break
    return case


# ------------------------------------------------------------------------------------------------ a run

_SLOT = struct.Struct("<qqqd")  # number of the case, cases done, cases refused, time


class _Worker:
    """A child that runs every ``step``-th case from ``first`` on, until a time."""

    def __init__(self, target: Target, seed: int, first: int, step: int, until: float, stop: int) -> None:
        self.target, self.seed, self.step, self.until, self.stop = target, seed, step, until, stop
        self.shared = mmap.mmap(-1, mmap.PAGESIZE)
        self.first = first
        self.cases = self.refused = 0
        self.read = -1
        self.start()

    def start(self) -> None:
        self.read, write = os.pipe()
        self.shared[: _SLOT.size] = _SLOT.pack(-1, 0, 0, time.monotonic())
        self.child = _Child(lambda: self._work(write))
        os.close(write)

    def _work(self, write: int) -> None:
        os.close(self.read)
        _limit(CPU_SECONDS)
        done = refused = 0
        number = self.first
        told: set[tuple[str, str]] = set()  # the pipe is read at the end only, and holds 64 kB
        while number < self.stop and time.monotonic() < self.until:
            self.shared[: _SLOT.size] = _SLOT.pack(number, done, refused, time.monotonic())
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
            try:
                case = self.target.case(self.seed, number)
                why = self.target.run(case)
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                why = f"error of the fuzzer: {type(error).__name__}: {error} in {where.filename}:{where.lineno}"
            done += 1
            if why == REFUSED:
                refused += 1
            elif why and len(told) < 100:
                key = self.target.subject(case), re.sub(r"\d+", "", why)
                if key not in told:
                    told.add(key)
                    os.write(write, (json.dumps([number, why[:500]]) + "\n").encode())
            number += self.step
        self.shared[: _SLOT.size] = _SLOT.pack(number, done, refused, time.monotonic())

    def slot(self) -> tuple[int, int, int, float]:
        return _SLOT.unpack(self.shared[: _SLOT.size])

    def said(self) -> list[tuple[int, str]]:
        with open(self.read, "rb") as pipe:
            return [tuple(json.loads(line)) for line in pipe.read().decode().splitlines() if line.endswith("]")]


def fuzz(
    target: Target,
    seed: int,
    seconds: float,
    *,
    workers: int = 2,
    most_cases: int = 2**62,
    most_findings: int = 200,
    log: Callable[[str], None] = print,
) -> Report:
    """Run cases of a target for some seconds; equal failures of one subject are reported once, in the simplest form."""
    target.load()
    report = Report(target.name)
    begin = time.monotonic()
    until = begin + seconds
    running = [_Worker(target, seed, first, workers, until, most_cases) for first in range(workers)]
    seen: set[tuple[str, str]] = set()

    def note(number: int, why: str) -> None:
        case = target.case(seed, number)
        subject = target.subject(case)
        key = subject, re.sub(r"\d+", "", why)
        if key in seen:
            return
        seen.add(key)
        log(f"  {subject}: {why} (case {number})")
        alone = run_alone(target, case)
        if alone and alone != REFUSED:
            why = alone
            case = minimised(target, case, alone)
        else:
            why += " (not alone)"
        report.findings.append(Finding(target.name, subject, why, target.plain(case), number))

    while running:
        time.sleep(0.01)
        for worker in list(running):
            done, status = os.waitpid(worker.child.pid, os.WNOHANG)
            number, cases, refused, at = worker.slot()
            if not done:
                if time.monotonic() - at > WALL_SECONDS:
                    os.kill(worker.child.pid, signal.SIGKILL)
                continue
            report.cases += cases
            report.refused += refused
            for at_number, why in worker.said():
                note(at_number, why)
            ending = worker.child.ending(status)
            running.remove(worker)
            if ending and number >= 0:
                report.cases += 1
                if ending == REFUSED:
                    report.refused += 1
                else:
                    note(number, ending)
                if time.monotonic() < until and len(report.findings) < most_findings:
                    running.append(_Worker(target, seed, number + workers, workers, until, most_cases))
    report.seconds = time.monotonic() - begin
    return report


def replay(target: Target, folder: Path = CORPUS) -> list[Finding]:
    """Run the corpus of a target, each case in a child of its own; return those that still fail."""
    target.load()
    failing = []
    for path in sorted(folder.glob(f"{target.name}-*.json")):
        kept = json.loads(path.read_text())
        why = run_alone(target, kept["case"], 4.0)
        if why and why != REFUSED:
            failing.append(Finding(target.name, path.name, why, kept["case"]))
    return failing
