"""Circulant layers beside dense ones on a GPU (or, slowly, on the CPU).

    python benchmarks/gpu_maps.py [--parts layers] [--widths 1024 4096 8192 16384] [--batch 1024] [--repeats 20]

layers   a training step (forward, backward, SGD) of one layer, float32: `mercer.nn.CirculantLinear` beside
         ``torch.nn.Linear``, with and without TF32 products for the latter; and the memory of the parameters

Milliseconds between events on the device, medians; both layers in turn. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from mercer.nn import CirculantLinear

PARTS = ("layers",)


def milliseconds(step: Callable[[], object], device: torch.device) -> float:
    """Of one call, on the clock of the device."""
    if device.type != "cuda":
        begun = time.perf_counter()
        step()
        return 1e3 * (time.perf_counter() - begun)
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
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
        print(
            f"{width:7d} {ms['dense']:10.3f} {ms['tf32']:11.3f} {ms['circulant']:10.3f} "
            f"{ms['dense'] / ms['circulant']:6.2f}x {ms['tf32'] / ms['circulant']:7.2f}x {size[0]:9.1f} {size[1]:8.3f}"
        )
        del dense, circulant, steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--widths", type=int, nargs="+", default=[1024, 2048, 4096, 8192, 16384])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    for part in given.parts:
        if part == "layers":
            layers(given.widths, given.batch, given.repeats, device)


if __name__ == "__main__":
    main()
