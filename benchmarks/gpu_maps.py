"""Layers, codes, maps, search and learning on a GPU (or, slowly, on the CPU).

    python benchmarks/gpu_maps.py [--parts layers codes maps hamming learning] [--widths 1024 4096 8192 16384]
                                  [--batch 1024] [--repeats 20] [--small]

layers    a training step (forward, backward, SGD) of one layer, float32: `mercer.nn.CirculantLinear` beside
          ``torch.nn.Linear``, with and without TF32 products for the latter; and the memory of the parameters
codes     4,096 vectors of 25,600 float32 numbers to packed codes of 25,600 bits: the steps written with torch,
          `CirculantEmbedding.transform`, and, as a floor, reading the vectors once and writing the codes once
maps      784 to 4,096 features of float32 rows: `FourierFeatures` (structured, dense, circulant), `PolynomialSketch`,
          on the GPU beside NumPy arrays on the processor
hamming   the ten nearest of 1,000,000 codes of 256 bits, 1,000 queries in a call and one; checked by brute force
learning  `CirculantEmbedding(method="learned")`, 20,000 × 4,096, ten rounds, and `CompactNonlinearMap`, 20,000 × 784,
          five rounds: on the GPU beside NumPy arrays on the processor

Milliseconds between events on the device, medians, of calls that are queued before the device comes to them; what waits
for its own results (`transform`, `search`) shows its waiting. What is compared runs in turn. --small divides sizes, to
try it out.
Needs PyTorch (without it the script only says so), and neither the compiled core nor a GPU; without the core NumPy
arrays take the paths of scipy.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from _timing import parse, record, required, sized

from mercer.maps import CompactNonlinearMap, FourierFeatures, PolynomialSketch
from mercer.retrieval import CirculantEmbedding, HammingIndex

torch = required("torch")
CirculantLinear = import_module("mercer.nn").CirculantLinear

PARTS = ("layers", "codes", "maps", "hamming", "learning")


def milliseconds(step: Callable[[], object], device: torch.device) -> float:
    """Of one call, on the clock of the device."""
    if device.type != "cuda":
        begun = time.perf_counter()
        step()
        return 1e3 * (time.perf_counter() - begun)
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(4_000_000)  # two milliseconds in which the call is queued: starting it is not what is measured
    start.record()
    step()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop)


def training_step(layer: torch.nn.Module, x: torch.Tensor, target: torch.Tensor) -> Callable[[], None]:
    """One step of gradient descent on a squared error; the gradient of the input is asked for, as inside a network."""
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        inputs = x.detach().requires_grad_()
        (layer(inputs) - target).square().mean().backward()
        optimizer.step()

    return step


def layers(widths: list[int], batch: int, repeats: int, device: torch.device) -> None:
    """The widths at which circulant layers are faster."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"training step of one layer, batch {batch}, float32, {name}, torch {torch.__version__}")
    print("  width   dense ms  dense TF32  circulant   ratio  to TF32    MiB dense, circulant")
    for width in widths:
        x, target = torch.randn(batch, width, device=device), torch.randn(batch, width, device=device)
        dense = torch.nn.Linear(width, width, device=device)
        circulant = CirculantLinear(width, width, device=device)
        steps = {"dense": training_step(dense, x, target), "circulant": training_step(circulant, x, target)}
        taken: dict[str, list[float]] = {"dense": [], "tf32": [], "circulant": []}
        for repeat in range(repeats + 3):
            for kind in taken:
                torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
                value = milliseconds(steps["circulant" if kind == "circulant" else "dense"], device)
                if repeat >= 3:
                    taken[kind].append(value)
        ms = {kind: statistics.median(values) for kind, values in taken.items()}
        size = [sum(p.numel() * p.element_size() for p in layer.parameters()) / 2**20 for layer in (dense, circulant)]
        for kind in ("dense", "tf32"):
            measure = f"step of a layer {width:,} wide, {kind}"
            record("layer", measure, peer="torch", theirs=ms[kind], ours=ms["circulant"], unit="ms")
        print(
            f"{width:7d} {ms['dense']:10.3f} {ms['tf32']:11.3f} {ms['circulant']:10.3f} "
            f"{ms['dense'] / ms['circulant']:6.2f}x {ms['tf32'] / ms['circulant']:7.2f}x {size[0]:9.1f} {size[1]:8.3f}"
        )
        del dense, circulant, steps


def medians(calls: dict[str, Callable[[], object]], repeats: int, device: torch.device) -> dict[str, float]:
    """Milliseconds of each call, in turn, after three rounds to warm up."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for repeat in range(repeats + 3):
        for name, call in calls.items():
            value = milliseconds(call, device)
            if repeat >= 3:
                taken[name].append(value)
    return {name: statistics.median(values) for name, values in taken.items()}


def seconds(call: Callable[[], object], device: torch.device) -> float:
    """Of one long call."""
    begun = time.perf_counter()
    call()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def codes(repeats: int, device: torch.device, share: int) -> None:
    """Packed codes of long vectors."""
    n, d = 4096 // share, 25_600 // share
    X = torch.randn(n, d, device=device)
    model = CirculantEmbedding(d, random_state=0).fit(X)
    signs, r = (torch.from_numpy(a[0]).to(device, torch.float32) for a in (model.signs_, model.r_))
    weights = (2 ** torch.arange(7, -1, -1, device=device)).to(torch.uint8)
    scratch, out = torch.empty_like(X), torch.empty((n, d // 8), dtype=torch.uint8, device=device)

    def plain() -> torch.Tensor:
        projected = torch.fft.irfft(torch.fft.rfft(X * signs) * torch.fft.rfft(r), n=d)
        return ((projected >= 0).view(n, d // 8, 8) * weights).sum(dim=2, dtype=torch.uint8)

    same = float((plain() == model.transform(X)).float().mean())
    calls: dict[str, Callable[[], object]] = {
        "steps written with torch": plain,
        "CirculantEmbedding.transform": lambda: model.transform(X),
        "its kernel alone": lambda: model._plans["cuda", X.device].write(X, d, out),
        "the same by torch's transforms": lambda: model._codes(X),
        "copy of the vectors (read and write)": lambda: scratch.copy_(X),
        "read the vectors, write the codes": lambda: (X.sum(), out.fill_(1)),
    }
    if device.type != "cuda":
        del calls["its kernel alone"]
    print(f"codes    {n} × {d} float32 to packed bits; bytes equal to those of the plain steps: {same:.6f}")
    for name, value in medians(calls, repeats, device).items():
        rate = X.numel() * 4 / value / 1e6
        record("codes", name, ours=value, unit="ms", sizes=f"{n} x {d}")
        print(f"codes    {name:38} {value:9.3f} ms  ({rate:7.0f} GB/s of input)", flush=True)


def maps(repeats: int, device: torch.device, share: int) -> None:
    """Features of rows of 784 numbers."""
    n, k = 16_384 // share, 4096
    X = torch.randn(n, 784, device=device) / 28
    few = X[:1024].cpu().numpy()
    for name, model in (
        ("FourierFeatures structured", FourierFeatures(k, gamma=1.0, random_state=0)),
        ("FourierFeatures iid", FourierFeatures(k, gamma=1.0, variant="iid", random_state=0)),
        ("FourierFeatures circulant", FourierFeatures(k, gamma=1.0, variant="circulant", random_state=0)),
        ("PolynomialSketch", PolynomialSketch(k, random_state=0)),
    ):
        model.fit(few)
        apart = np.abs(model.transform(few) - model.transform(X[:1024]).cpu().numpy()).max()
        there = medians({name: lambda m=model: m.transform(X)}, repeats, device)[name] / n
        here = 1e3 * min(seconds(lambda m=model: m.transform(few), torch.device("cpu")) for _ in range(3)) / len(few)
        line = f"{1e6 * there:9.1f} ns/row on {device.type}, {1e6 * here:9.1f} as NumPy arrays"
        print(f"maps     {name:28} 784 → {k}: {line}; largest difference {apart:.1e}", flush=True)


def hamming(repeats: int, device: torch.device, share: int) -> None:
    """Exact search among packed codes."""
    n, n_queries = 1_000_000 // share, 1000 // share
    generator = np.random.default_rng(0)
    base = generator.integers(0, 256, (n, 32), dtype=np.uint8)
    queries = torch.from_numpy(generator.integers(0, 256, (n_queries, 32), dtype=np.uint8)).to(device)
    index = HammingIndex(base)
    found, ids = index.search(queries, k=10)
    asked = queries[:3].cpu().numpy()
    truth = np.stack([np.unpackbits(base ^ row, axis=1).sum(axis=1) for row in asked])
    right = np.array_equal(np.argsort(truth, axis=1, kind="stable")[:, :10], ids[:3].cpu().numpy())
    calls: dict[str, Callable[[], object]] = {
        f"{n_queries} queries": lambda: index.search(queries, k=10),
        "1 query": lambda: index.search(queries[:1], k=10),
    }
    print(f"hamming  {n:,} × 256 bits, k = 10; as brute force: {right}; nearest at {int(found.min())}")
    for name, value in medians(calls, max(3, repeats // 4), device).items():
        each = value / (1 if name == "1 query" else n_queries)
        print(f"hamming  {name:14} {value:9.3f} ms, {each:8.4f} ms/query", flush=True)


def learning(device: torch.device, share: int) -> None:
    """Learned circulants and learned waves."""
    long = torch.randn(20_000 // share, 4096 // share, device=device)
    short = torch.randn(20_000 // share, 784 // share, device=device)
    y = (short[:, 0] * short[:, 1] > 0).cpu().numpy()
    models: dict[str, tuple[Callable[[], Any], torch.Tensor, Any]] = {
        "CirculantEmbedding": (lambda: CirculantEmbedding(4096 // share, "learned", random_state=0), long, None),
        "CompactNonlinearMap": (lambda: CompactNonlinearMap(64, max_iter=5, random_state=0), short, y),
    }
    for name, (make, X, labels) in models.items():
        make().fit(X[:1000], None if labels is None else labels[:1000])  # warms up
        there, array = seconds(lambda m=make, X=X, y=labels: m().fit(X, y), device), X.cpu().numpy()
        here = seconds(lambda m=make, X=array, y=labels: m().fit(X, y), torch.device("cpu"))
        size = f"{X.shape[0]:,} × {X.shape[1]:,}"
        print(f"learning {name:20} {size:16} {there:8.2f} s on {device.type}, {here:8.2f} as NumPy arrays", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--widths", type=int, nargs="+", default=[1024, 2048, 4096, 8192, 16384])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--small", action="store_true", help="an eighth of the sizes")
    given = parse(parser, widths=[256], batch=64, repeats=1, small=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    share = sized(8 if given.small else 1, 64)
    for part in given.parts:
        if part == "layers":
            layers([w // share for w in given.widths], given.batch // share, given.repeats, device)
        elif part == "learning":
            learning(device, share)
        else:
            {"codes": codes, "maps": maps, "hamming": hamming}[part](given.repeats, device, share)


if __name__ == "__main__":
    main()
