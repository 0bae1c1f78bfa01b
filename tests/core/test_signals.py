"""Ctrl-C inside one long pair of strings, trees or sequences."""

from __future__ import annotations

import signal
import subprocess
import sys

SCRIPT = """
import signal, threading
from mercer.alignment import Aligner
from mercer.kernels import EditDistance, PartialTree, Subsequence, WeightedDegree

pair = "ab" * 20_000
star = "(S " + " ".join(f"(A{i} w{i})" for i in range(400_000)) + ")"
aligner = Aligner(C=1.0, random_state=0).fit([("ab", "ab"), ("aab", "ab")], [[(0, 0), (1, 1)], [(1, 0), (2, 1)]])
calls = {
    "subsequences": lambda: Subsequence(8, 0.5)([pair * 10]),
    "subsequences in lanes": lambda: Subsequence(40, 0.999)([pair[:4000]] * 400),
    "weighted degrees": lambda: WeightedDegree(20, shift=49_000)([pair * 500]),
    "edit distances": lambda: EditDistance()([pair * 300]),
    "weighted edit distances": lambda: EditDistance(indel=1.0, substitution=1.5)([pair * 40]),
    "partial trees": lambda: PartialTree()([star]),
    "alignments": lambda: aligner.score_pairs([(pair * 20, pair * 20)]),
}
for name, call in calls.items():
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        call()
        print(name, "ended by itself", flush=True)
    except KeyboardInterrupt:
        print(name, flush=True)
    timer.cancel()
"""


def test_ctrl_c_ends_a_call_within_one_pair() -> None:
    """Each of the calls takes many minutes if nothing looks for signals inside of a pair."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert done.stdout.splitlines() == [
        "subsequences",
        "subsequences in lanes",
        "weighted degrees",
        "edit distances",
        "weighted edit distances",
        "partial trees",
        "alignments",
    ], done.stderr
