"""The part of ``mercer demo`` about shapes: point clouds divided into common parts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mercer.cli import terminal

if TYPE_CHECKING:
    import numpy as np

    from mercer.report.demo_parts import PartResult

_SIZES = (180, 120, 100)
_TERMS: dict[str, dict[str, Any]] = {
    "which places occur together": {"smoothness": False, "position": None},
    "and neighbouring points": {"position": None},
    "and the position of a part": {},
}


def run_parts(n_clouds: int = 6, seed: int = 0) -> PartResult:
    """Divide drawn figures into three parts, by models with one, two and three terms."""
    import numpy as np
    from sklearn.metrics import adjusted_rand_score

    from mercer.fields import ShapePartModel
    from mercer.report.demo_parts import Divider, PartResult

    random = np.random.default_rng(seed)
    clouds = [_figure(random) for _ in range(n_clouds)]
    truth = np.tile(np.repeat(np.arange(3), _SIZES), n_clouds)
    dividers = []
    for name, terms in _TERMS.items():
        begin = time.perf_counter()
        labels = ShapePartModel(3, random_state=seed, **terms).fit(clouds).labels_
        seconds = time.perf_counter() - begin
        dividers.append(Divider(name, float(adjusted_rand_score(truth, np.concatenate(labels))), seconds, labels))
    return PartResult(clouds, dividers)


def _figure(random: np.random.Generator) -> np.ndarray:
    """A body, a head and a stick, of sizes that vary."""
    import numpy as np

    def sphere(n: int, radius: float, height: float) -> np.ndarray:
        points = random.normal(size=(n, 3))
        return radius * points / np.linalg.norm(points, axis=1, keepdims=True) + [0, 0, height]

    body = sphere(_SIZES[0], 1 + 0.1 * random.normal(), 0)
    head = sphere(_SIZES[1], 0.5, 1.6 + 0.1 * random.normal())
    stick = np.stack([random.uniform(1.1, 2.4, _SIZES[2]), *0.08 * random.normal(size=(2, _SIZES[2]))], axis=1)
    return np.concatenate([body, head, stick])


def show_parts(result: PartResult) -> None:
    """Print the table on the terminal."""
    terminal.heading(f"parts of {len(result.clouds)} figures, as clouds of points without labels")
    print()
    rows = [(one.name, f"{one.agreement:.2f}", f"{one.seconds:.2f} s") for one in result.dividers]
    terminal.table(["", "agreement with the true parts", "time"], rows, "lrr")
    print()
