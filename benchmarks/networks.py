"""Circulant against dense layers in networks: error, numbers and bytes at full and at equal memory.

    MERCER_DATA=... python benchmarks/networks.py [--parts digits table reduced images] [--shapes plain lenet]
                                 [--seeds 3] [--rows 60000] [--epochs 4] [--sizes 50 … 8000] [--kinds …]
                                 [--device cpu] [--threads 1]

digits    scikit-learn's digits, 64 → 64 → 10: trained and random layers, and subsets of 50 … 800 rows
table     MNIST: dense, circulant, reduced dense, random dense and random circulant hidden layers, beside the source
reduced   the same three trained kinds on 50 … 8,000 rows of MNIST
images    a tenth of CIFAR-10 (5,000 and 1,000 images): the trained kinds, dense and circulant also with dropout. Takes
          minutes on a GPU and hours on a processor, so it runs where it is named

plain     pixels → 1,024 → 10
lenet     two convolutions of 5 × 5 with pooling (20 and 50 channels), then 800 → 500 → 10
cifar     three convolutions with pooling (16, 32 and 64 channels), then 576 → 144 → 10, on crops of 24 × 24 that are
          mirrored, turned by up to 10° and scaled by up to a tenth in training, and cut from the middle in testing

"circulant" has a trained vector r and fixed random signs; "random" layers keep what was drawn, so only what stands
around them learns; "reduced dense" has a hidden width that gives it as many numbers in all as the circulant network
has. Bytes are four for a number and an eighth for a sign. Adam, batches of 64, a rate that falls to zero; the first
rate, and the share of it that a trained circulant vector gets, are chosen for every kind and size on rows of the
training set that are kept aside (--tune of them, for as many epochs), and the network is then trained on all of them.
Test rows are only counted. Error in percent, mean ± standard deviation over the seeds.
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
from _timing import parse, record, required, sized, spread

torch = required("torch")
Tensor, nn = torch.Tensor, torch.nn
CirculantLinear = import_module("mercer.nn").CirculantLinear

RATES = sized((1e-3, 3e-3, 1e-2, 3e-2), (1e-2,))
SHARES = (1.0, 0.1)  # of the rate, for the numbers of a circulant layer: each of them stands in every row of its matrix
KINDS = ("dense", "circulant", "reduced dense", "random dense", "random circulant")
TRAINED = KINDS[:3]
WITH_DROPOUT = ("dense, dropout", "circulant, dropout")
PRINTED = {
    "lenet": {"dense": "LeNet 0.92, 1.56 MB", "circulant": "circulant LeNet 0.95, 0.27 MB"},
    "cifar": {"dense": "15.60, 0.45 MB (50,000 images)", "circulant": "16.71, 0.12 MB (50,000 images)"},
}
Rows = tuple[Tensor, Tensor]


def hidden(kind: str, width: int, out: int) -> nn.Module:
    """The layer that is compared."""
    if kind.startswith("circulant"):
        return CirculantLinear(width, out)
    if kind == "random circulant":
        return CirculantLinear(width, out, bias=False, trainable=False)
    layer = nn.Linear(width, out, bias=kind != "random dense")
    if kind == "random dense":  # as large as the entries of the circulant one
        nn.init.normal_(layer.weight, std=1 / math.sqrt(width))
        layer.weight.requires_grad_(False)
    return layer


class Crops(nn.Module):
    """24 × 24 pixels of each image of 32 × 32: from the middle, in training turned, scaled, mirrored and moved."""

    def forward(self, x: Tensor) -> Tensor:
        images = x.unflatten(1, (3, 32, 32))
        if not self.training:
            return images[:, :, 4:28, 4:28]
        n, share = len(x), 24 / 32
        turn, scale = (torch.rand(2, n, device=x.device) - 0.5) * torch.tensor([[math.pi / 9], [0.2]], device=x.device)
        mirror = torch.where(torch.rand(n, device=x.device) < 0.5, -1.0, 1.0)
        size = share * (1 + scale)
        cosine, sine = size * turn.cos(), size * turn.sin()
        move = (torch.rand(2, n, device=x.device) - 0.5) * 2 * (1 - share)
        rows = torch.stack([mirror * cosine, -sine, move[0], mirror * sine, cosine, move[1]], dim=1)
        grid = nn.functional.affine_grid(rows.unflatten(1, (2, 3)), [n, 3, 24, 24], align_corners=False)
        return nn.functional.grid_sample(images, grid, padding_mode="reflection", align_corners=False)


def network(kind: str, shape: str, width: int) -> nn.Module:
    """A network with one hidden layer of the kind; ``width`` is that of plain inputs."""
    front: list[nn.Module] = []
    out = {"plain": 1024, "lenet": 500, "digits": 64, "cifar": 144}[shape]
    if shape == "lenet":
        front = [nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5),
                 nn.MaxPool2d(2), nn.Flatten()]  # fmt: skip
        width = 800
    if shape == "cifar":
        front, width = [Crops()], 576
        for channels, more, field in ((3, 16, 5), (16, 32, 5), (32, 64, 3)):
            front += [nn.Conv2d(channels, more, field, padding="same"), nn.ReLU(), nn.MaxPool2d(2)]
        front.append(nn.Flatten())
    if kind == "reduced dense":  # width h with (width + 1) h + 10 h = numbers of the circulant layer and the last one
        out = math.ceil((max(width, out) + out + 10 * out) / (width + 11))
    drop = [nn.Dropout(0.5)] if kind in WITH_DROPOUT else []
    return nn.Sequential(*front, hidden(kind, width, out), nn.ReLU(), *drop, nn.Linear(out, 10))


def size(model: nn.Module) -> tuple[int, float]:
    """Numbers, and bytes with the signs."""
    numbers = sum(p.numel() for p in model.parameters())
    return numbers, 4 * numbers + sum(b.numel() for b in model.buffers()) / 8


Rate = tuple[float, float]  # of all numbers, and the share of it for those of circulant layers


def train(make: Callable[[], nn.Module], rows: Rows, rate: Rate, steps: int, seed: int, device: str) -> nn.Module:
    """Adam with a rate that rises over a twentieth of the steps and then falls to zero in a straight line."""
    torch.manual_seed(seed)
    model = make().to(device)
    X, y = rows
    own = [m.weight for m in model.modules() if isinstance(m, CirculantLinear) and m.weight.requires_grad]
    others = [p for p in model.parameters() if p.requires_grad and all(p is not q for q in own)]
    groups = [{"params": others, "lr": rate[0]}, {"params": own, "lr": rate[0] * rate[1]}]
    optimizer = torch.optim.Adam([group for group in groups if group["params"]])
    warm = max(1, steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: min((t + 1) / warm, (steps - t) / steps))
    order, place = torch.randperm(len(y)), 0
    for _ in range(steps):
        if place + 64 > len(y) and place:
            order, place = torch.randperm(len(y)), 0
        chosen = order[place : place + 64].to(device)
        place += 64
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(X[chosen]), y[chosen]).backward()
        optimizer.step()
        schedule.step()
    return model


@torch.no_grad()
def error(model: nn.Module, rows: Rows) -> float:
    """Percent of the rows that get a wrong label."""
    X, y = rows
    model.eval()
    wrong = sum(int((model(X[i : i + 1000]).argmax(dim=1) != y[i : i + 1000]).sum()) for i in range(0, len(y), 1000))
    return 100.0 * wrong / len(y)


def best_rate(
    make: Callable[[], nn.Module], rows: Rows, steps: int, device: str, seeds: int, shares: tuple[float, ...]
) -> Rate:
    """The first rate that does best on a fifth of the rows after training on the rest of them."""
    X, y = rows
    aside = max(1, len(y) // 5)
    held, rest = (X[:aside], y[:aside]), (X[aside:], y[aside:])

    def loss(rate: Rate) -> float:
        return float(np.mean([error(train(make, rest, rate, steps, 1000 + s, device), held) for s in range(seeds)]))

    return min(((rate, share) for rate in RATES for share in shares), key=loss)


def mnist(device: str) -> tuple[Rows, Rows] | None:
    home = os.environ.get("MERCER_DATA")
    if not home:
        print("MERCER_DATA is not set: only digits")
        return None
    found = []
    for part in ("train", "t10k"):
        with gzip.open(Path(home) / "mnist" / f"{part}-images-idx3-ubyte.gz") as file:
            X = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784) / np.float32(255)
        with gzip.open(Path(home) / "mnist" / f"{part}-labels-idx1-ubyte.gz") as file:
            y = np.frombuffer(file.read(), np.uint8, offset=8)
        found.append((torch.tensor(X, device=device), torch.tensor(y.astype(np.int64), device=device)))
    return found[0], found[1]


def cifar(device: str) -> tuple[Rows, Rows] | None:
    """Pixels with mean 0 and deviation 1 over the training images."""
    home = os.environ.get("MERCER_DATA")
    if not home:
        print("MERCER_DATA is not set: no images")
        return None
    found = []
    for name in ("train_batch_500perclass", "test_batch_100perclass"):
        with gzip.open(Path(home) / "cifar10-subset" / f"{name}.bin.gz") as file:
            rows = np.frombuffer(file.read(), np.uint8).reshape(-1, 3073)
        pixels, labels = rows[:, 1:].astype(np.float32), rows[:, 0].astype(np.int64)
        found.append((torch.tensor(pixels, device=device), torch.tensor(labels, device=device)))
    (X, y), (X_test, y_test) = found
    mean, deviation = X.mean(), X.std()
    return ((X - mean) / deviation, y), ((X_test - mean) / deviation, y_test)


def digits() -> tuple[Rows, Rows]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    pixels, labels = torch.tensor(X[order] / 16, dtype=torch.float32), torch.tensor(y[order])
    return (pixels[:1200], labels[:1200]), (pixels[1200:], labels[1200:])


def some(rows: Rows, n: int, seed: int) -> Rows:
    """n rows."""
    chosen = torch.randperm(len(rows[1]), generator=torch.Generator().manual_seed(seed))[:n].to(rows[1].device)
    return rows[0][chosen], rows[1][chosen]


def measured(
    kind: str, shape: str, rows: Rows, test: Rows, steps: int, seeds: int, device: str, n: int | None = None,
    tune: int = 10_000,
) -> tuple[np.ndarray, np.ndarray, Rate]:  # fmt: skip
    """Errors of the seeds on test and training rows, other ones for each seed if n are asked for; and the rate.

    The rate is found on at most ``tune`` rows.
    """

    def make() -> nn.Module:
        return network(kind, shape, rows[0].shape[1])

    trial = some(rows, min(n or len(rows[1]), tune), 99)
    few = min(steps, 500) if n else max(1, steps * len(trial[1]) // len(rows[1]))
    rate = best_rate(
        make, trial, few, device, 1 if len(trial[1]) > 200 else 2, SHARES if kind.startswith("circulant") else (1.0,)
    )
    sets = [some(rows, n, seed) if n else rows for seed in range(seeds)]
    models = [train(make, r, rate, steps, s, device) for s, r in enumerate(sets)]
    seen = [error(model, r) for model, r in zip(models, sets, strict=True)]
    return np.array([error(model, test) for model in models]), np.array(seen), rate


def table(
    shape: str, train_rows: Rows, test: Rows, steps: int, seeds: int, device: str, tune: int, kinds: tuple[str, ...],
) -> None:  # fmt: skip
    """One line for each kind."""
    print(f"{shape}: {len(train_rows[1]):,} rows, {steps:,} steps of 64, {seeds} seeds")
    print(
        f"{'hidden layer':>18}{'error':>8}{'±':>7}{'numbers':>10}{'bytes':>11}{'rate':>8}{'share':>6}{'s':>7}   printed"
    )
    for kind in kinds:
        start = time.perf_counter()
        found, seen, rate = measured(kind, shape, train_rows, test, steps, seeds, device, tune=tune)
        numbers, bytes_ = size(network(kind, shape, train_rows[0].shape[1]))
        printed = PRINTED.get(shape, {}).get(kind, "–")
        took = time.perf_counter() - start
        deviation = found.std(ddof=1) if seeds > 1 else 0.0
        columns = {"training error, %": spread(seen, 2)} if shape == "cifar" else {}
        columns |= {"test error, %": spread(found, 2), "numbers": numbers, "bytes": round(bytes_)}
        record("error", f"{shape}, {kind}", values=columns)
        print(f"{kind:>18}{found.mean():>8.2f}{deviation:>7.2f}{numbers:>10,}{bytes_:>11,.0f}{rate[0]:>8g}{rate[1]:>6g}{took:>7.0f}"
              f"   {printed}", flush=True)  # fmt: skip


def reduced(shape: str, train_rows: Rows, test: Rows, sizes: list[int], steps: int, seeds: int, device: str) -> None:
    """One line for each number of rows."""
    print(f"{shape}: error on few training rows, {seeds} draws of them, {steps} steps or more")
    print(f"{'rows':>8}" + "".join(f"{kind:>18}" for kind in TRAINED) + f"{'circulant − dense':>20}")
    for n in sizes:
        cells, means, deviations, columns = [], {}, {}, {}
        for kind in TRAINED:
            found, _, _ = measured(kind, shape, train_rows, test, max(steps, 8 * n // 64), seeds, device, n)
            means[kind], deviations[kind] = found.mean(), found.std(ddof=1) if seeds > 1 else 0.0
            columns[kind] = {"value": round(means[kind], 2), "deviation": round(deviations[kind], 2)}
            cells.append(f"{means[kind]:>11.2f} ± {deviations[kind]:4.2f}")
        gap = means["circulant"] - means["dense"]
        noise = math.hypot(deviations["circulant"], deviations["dense"]) / math.sqrt(seeds)
        record("few rows", f"{shape}, {n:,} rows", values=columns)
        print(f"{n:>8,}" + "".join(cells) + f"{gap:>+13.2f} ± {noise:4.2f}", flush=True)


def main() -> None:
    parts, shapes = ("digits", "table", "reduced", "images"), ("plain", "lenet")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts[:3]))
    parser.add_argument("--shapes", nargs="+", choices=shapes, default=list(shapes))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=60_000, help="training rows of table")
    parser.add_argument("--epochs", type=int, default=4, help="epochs of table")
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200, 500, 1000, 2000, 4000, 8000])
    parser.add_argument("--steps", type=int, default=400, help="least steps of reduced")
    parser.add_argument("--image-epochs", type=int, default=150, help="epochs of images")
    parser.add_argument("--kinds", nargs="+", choices=TRAINED + WITH_DROPOUT, default=list(TRAINED + WITH_DROPOUT),
                        help="kinds of images")  # fmt: skip
    parser.add_argument("--tune", type=int, default=10_000, help="rows that rates are chosen on")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    args = parse(parser, parts=["digits"], tune=100, steps=5)
    torch.set_num_threads(args.threads)
    if "digits" in args.parts:
        rows, test = digits()
        seeds = sized(10, 2)
        table("digits", rows, test, sized(500, 5), seeds, "cpu", args.tune, KINDS)
        reduced("digits", rows, test, sized([50, 100, 200, 400, 800], [50]), args.steps, seeds, "cpu")
    images = cifar(args.device) if "images" in args.parts else None
    if images is not None:
        steps = args.image_epochs * len(images[0][1]) // 64
        table("cifar", *images, steps, args.seeds, args.device, args.tune, tuple(args.kinds))
    found = mnist(args.device) if set(args.parts) & {"table", "reduced"} else None
    if found is None:
        return
    rows, test = found
    for shape in args.shapes:
        if "table" in args.parts:
            used = some(rows, args.rows, 0)
            table(shape, used, test, args.epochs * len(used[1]) // 64, args.seeds, args.device, args.tune, KINDS)
        if "reduced" in args.parts:
            reduced(shape, rows, test, args.sizes, args.steps, args.seeds, args.device)


if __name__ == "__main__":
    main()
