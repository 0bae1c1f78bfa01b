"""Restricted Boltzmann machines on a GPU (or, slowly, on the CPU): PSMC beside plain torch, and all learners on MNIST.

    python benchmarks/fields_gpu.py [--parts psmc table] [--data carry-data/mnist] [--steps 10000] [--seconds 25]

psmc   steps of persistent sequential Monte Carlo of a machine of 784 × 500 on MNIST, batches of 200, 200 particles:
       Mercer's beside the same algorithm written with torch's own operations; seconds of an epoch of 300 steps
table  784 × 10 and 784 × 500, learners PCD-1, PCD-H, PT, TT, SMC and PSMC, steps of 1 / (100 + t), batches of 200: mean
       log-likelihood of training and test images by annealing from the data's side and from the model's. Every learner
       makes the same number of steps, or as many as --seconds allow; the rows say how many. "PCD-1, long" makes as
       many as the published table: 1,000 epochs

Images are binarised at half of the range. Rows go to the folder named by the environment variable OUT as
fields_gpu.jsonl, and are printed. Needs PyTorch (without it the script only says so) and MNIST's four files; the
compiled core is not needed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
from _timing import parse, record, required, sized

torch = required("torch")
try:
    import mercer._core  # noqa: F401
except ImportError:  # what runs here on tensors does not call it
    sys.modules["mercer._core"] = MagicMock()

from mercer.fields._tensors import TensorUnits  # noqa: E402
from mercer.fields.partition import estimate  # noqa: E402
from mercer.learning import learners  # noqa: E402
from mercer.learning.learners import Chains, Keys  # noqa: E402

BATCH, PARTICLES = 200, 200
PRINTED = {
    (10, "PCD-1"): (-206.3846, -207.7464), (10, "PCD-H"): (-203.5884, -204.6717), (10, "PT"): (-206.2819, None),
    (10, "TT"): (-206.9033, -208.2452), (10, "SMC"): (-203.3672, -204.4852), (10, "PSMC"): (-199.9089, -201.0794),
    (500, "PCD-1"): (-176.3767, -177.0584), (500, "PCD-H"): (-173.0064, -173.4998), (500, "PT"): (-165.2149, -166.1645),
    (500, "TT"): (-170.9312, -171.6008), (500, "SMC"): (-678.6464, -678.7835), (500, "PSMC"): (-161.6231, -162.1705),
}  # fmt: skip
"""Train and test log-likelihoods of the published table [Xiong2014]_; one cell of PT was lost in print."""


def images(folder: Path, name: str, device: Any) -> Any:
    with gzip.open(folder / f"{name}-images-idx3-ubyte.gz") as file:
        raw = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    return torch.tensor(raw > 127, dtype=torch.float32, device=device)


def first_weights(n_hidden: int, data: Any, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    share = np.clip(data.mean(0).cpu().numpy(), 0.005, 0.995)
    parts = [0.01 * random.standard_normal(784 * n_hidden), np.zeros(n_hidden), np.log(share / (1 - share))]
    return torch.tensor(np.concatenate(parts), dtype=torch.float32, device=data.device)


def wait(device: Any) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


# ------------------------------------------------------------------------------------------------ plain torch


class Plain:
    """PSMC as one would write it with torch alone: bisection for temperatures, torch's generator, one tensor a part."""

    def __init__(self, theta: Any, units: TensorUnits) -> None:
        W, b, c = units.parts(theta)
        self.W, self.b, self.c = W.clone(), b.clone(), c.clone()
        self.old = (self.W, self.b, self.c)
        self.particles = torch.randint(0, 2, (PARTICLES, 784), device=W.device).float()

    @staticmethod
    def log_p(v: Any, W: Any, b: Any, c: Any) -> Any:
        return v @ c + torch.nn.functional.softplus(v @ W + b).sum(1)

    @staticmethod
    def sweep(v: Any, W: Any, b: Any, c: Any) -> Any:
        h = torch.bernoulli(torch.sigmoid(v @ W + b))
        return torch.bernoulli(torch.sigmoid(h @ W.T + c))

    def anneal(self, v: Any, start: tuple, end: tuple) -> tuple[Any, int]:
        beta, count = 0.0, 0
        while beta < 1.0:

            def mixed(at: float) -> list:
                return [(1 - at) * a + at * b for a, b in zip(start, end, strict=True)]

            here = self.log_p(v, *mixed(beta))

            def weights(at: float, v: Any = v, here: Any = here) -> tuple[Any, float]:
                log_w = self.log_p(v, *mixed(at)) - here
                w = (log_w - log_w.max()).exp()
                return w, (w.sum() ** 2 / (len(w) * (w**2).sum())).item()

            w, size = weights(1.0)
            stop = 1.0
            if size < 0.9:
                low, high = beta, 1.0
                while high - low > 0.01 * max(low - beta, 1e-6):
                    middle = 0.5 * (low + high)
                    w, size = weights(middle)
                    low, high = (middle, high) if size >= 0.9 else (low, middle)
                stop = low if low > beta else high
                w, _ = weights(stop)
            v = v[torch.multinomial(w, len(v), replacement=True)]
            v = self.sweep(v, *mixed(stop))
            beta, count = stop, count + 1
        return v, count

    def step(self, batch: Any, rate: float) -> int:
        new = (self.W, self.b, self.c)
        order = torch.randperm(PARTICLES, device=batch.device)
        half = PARTICLES // 2
        kept, first = self.anneal(self.particles[order[half:]], self.old, new)
        zero = tuple(torch.zeros_like(part) for part in new)
        fresh, second = self.anneal(torch.randint(0, 2, (half, 784), device=batch.device).float(), zero, new)
        self.particles, self.old = torch.cat([kept, fresh]), new
        p, q = torch.sigmoid(batch @ self.W + self.b), torch.sigmoid(self.particles @ self.W + self.b)
        self.W = self.W + rate * (batch.T @ p / len(batch) - self.particles.T @ q / PARTICLES)
        self.b = self.b + rate * (p.mean(0) - q.mean(0))
        self.c = self.c + rate * (batch.mean(0) - self.particles.mean(0))
        return max(first, second)


def psmc(train: Any, rows: list[dict[str, Any]], steps: int) -> None:
    device = train.device
    hidden = sized(500, 5)
    units = TensorUnits(784, hidden)
    units.device = device
    theta = first_weights(hidden, train)
    keys = Keys(0)
    for step in range(sized(600, 2)):  # a machine that has begun to learn, so that there is something to anneal
        batch = train[(step * BATCH) % 60_000 :][:BATCH]
        theta = theta + 0.05 * units.contrast(batch, theta, keys)
    chains, learner = Chains(units, keys, PARTICLES), learners.PSMC()
    learner.start(chains, theta)
    plain = Plain(theta, units)
    seconds: dict[str, list[float]] = {"mercer": [], "torch": []}
    counts: dict[str, list[float]] = {"mercer": [], "torch": []}
    for step in range(steps + sized(2, 0)):
        batch, rate = train[step * BATCH :][:BATCH], 1.0 / (100 + step)
        wait(device)
        begun = time.perf_counter()
        theta = theta + rate * learner.gradient(chains, theta, batch)
        wait(device)
        middle = time.perf_counter()
        counts["torch"].append(plain.step(batch, rate))
        wait(device)
        seconds["mercer"].append(middle - begun)
        seconds["torch"].append(time.perf_counter() - middle)
        counts["mercer"].append(chains.figures["n_temperatures"])
    ours, theirs = (300 * float(np.median(seconds[name][sized(2, 0) :])) for name in ("mercer", "torch"))
    mean = {name: np.mean(values[sized(2, 0) :]) for name, values in counts.items()}
    note = f"{mean['mercer']:.0f} temperatures a step, torch {mean['torch']:.0f}"
    print(f"PSMC epoch of 784 x 500: mercer {ours:.1f} s, torch {theirs:.1f} s, ratio {theirs / ours:.2f}; {note}")
    record("gpu", "PSMC epoch, 784 × 500", ours=ours, theirs=theirs, peer="torch", note=note)
    rows.append({"part": "psmc", "ours": ours, "torch": theirs, "ratio": theirs / ours, "note": note, "steps": steps})


def likelihoods(units: TensorUnits, theta: Any, train: Any, test: Any, seed: int) -> dict[str, Any]:
    means = train.mean(0).cpu().numpy()
    found = estimate(units, theta, "reverse-ais", sized(6000, 20), sized(500, 10), Keys(seed), means)
    scores = [float(units.log_density(part, theta).mean()) for part in (train[:10_000], test)]
    exact = estimate(units, theta, "exact", 1, 2, Keys(0)).lower if units.n_hidden <= 16 else None
    log_z = found.lower if exact is None else exact
    return {
        "train": scores[0] - log_z,
        "test": scores[1] - log_z,
        "train, reverse": scores[0] - found.upper,
        "test, reverse": scores[1] - found.upper,
        "log Z, lower": found.lower,
        "log Z, upper": found.upper,
        "log Z, exact": exact,
        "ess": found.ess,
        "error": found.error,
    }


def table(train: Any, test: Any, rows: list[dict[str, Any]], args: argparse.Namespace) -> None:
    device = train.device
    print("    model     learner  steps      s      H     train      test   reverse    ess  printed")
    for hidden, ladder in sized([(10, 100), (500, 200)], [(10, 3)]):
        if hidden not in args.hidden:
            continue
        for name, learner in (
            ("none", None),
            ("PCD-1, long", learners.PCD()),
            ("PCD-1", learners.PCD()),
            ("PCD-H", learners.PCD(ladder)),
            ("PT", learners.ParallelTempering(ladder)),
            ("TT", learners.TemperedTransitions(ladder)),
            ("SMC", learners.SMC()),
            ("PSMC", learners.PSMC()),
        )[: sized(None, 4)]:
            if args.learners and name not in args.learners:
                continue
            steps, seconds = (args.long, 1e9) if name.endswith("long") else (args.steps, args.seconds)
            units = TensorUnits(784, hidden)
            units.device = device
            theta, keys = first_weights(hidden, train), Keys(1)
            chains = Chains(units, keys, PARTICLES)
            order = torch.tensor(np.random.default_rng(0).permutation(len(train)), device=device)
            done, temperatures, begun = 0, [], time.perf_counter()
            if learner is not None:
                learner.start(chains, theta)
                while done < steps and time.perf_counter() - begun < seconds:
                    at = (done * BATCH) % (len(train) - BATCH + 1)
                    theta = theta + learner.gradient(chains, theta, train[order[at : at + BATCH]]) / (100 + done)
                    temperatures.append(chains.figures.get("n_temperatures", np.nan))
                    done += 1
            wait(device)
            taken = time.perf_counter() - begun
            found = likelihoods(units, theta, train, test, 2)
            count = float(np.mean(temperatures)) if temperatures else float("nan")
            row = {
                "part": "table",
                "hidden": hidden,
                "learner": name,
                "steps": done,
                "seconds": taken,
                "H": count,
                **found,
            }
            row["printed"] = PRINTED.get((hidden, name.removesuffix(", long")))
            rows.append(row)
            columns = {name: found[name] for name in ("test", "test, reverse")}
            printed = (row["printed"] or (None, None))[1]
            values = {"steps": done, "train": found["train"], **columns, "effective size": found["ess"]}
            values |= {"temperatures": count} if temperatures and np.isfinite(count) else {}
            record("table 1", f"784 × {hidden}, {name}", values=values | {"published test": printed or ""})
            print(
                f"784 x {hidden:3d} {name:>11} {done:6d} {taken:6.1f} {count:6.1f} {found['train']:9.2f}"
                f" {found['test']:9.2f} {found['test, reverse']:9.2f} {found['ess']:6.1f}  {row['printed']}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=["psmc", "table"])
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--epoch-steps", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=25.0)
    parser.add_argument("--long", type=int, default=300_000, help="steps of the row 'PCD-1, long': 1,000 epochs")
    parser.add_argument("--hidden", type=int, nargs="+", default=[10, 500])
    parser.add_argument("--learners", nargs="+", default=None, help="rows of the table, such as PCD-1 (default: all)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parse(parser, steps=3, epoch_steps=1, seconds=2.0, long=3, parts=["psmc", "table"])
    homes = [args.data, Path("carry-data/mnist"), Path(os.environ.get("MERCER_DATA", ".")) / "mnist"]
    folder = next((home for home in homes if home is not None and home.is_dir()), None)
    if folder is None:
        print("left out: MNIST is not there; name its folder with --data")
        return
    device = torch.device(args.device)
    if device.type == "cuda":
        print(torch.cuda.get_device_name(device), "torch", torch.__version__)
    train, test = images(folder, "train", device), images(folder, "t10k", device)
    if sized(False, True):
        train, test = train[:2000], test[:200]
    rows: list[dict[str, Any]] = []
    if "psmc" in args.parts:
        psmc(train, rows, args.epoch_steps)
    if "table" in args.parts:
        table(train, test, rows, args)
    if os.environ.get("OUT"):
        Path(os.environ["OUT"], "fields_gpu.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
