"""The part of ``mercer demo`` about images: blocks labelled one by one, and all blocks of an image together."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

from mercer.cli import terminal

if TYPE_CHECKING:
    from mercer.datasets import ShapeTask
    from mercer.report.demo_images import ImageResult, Painter

_SIZE = 64
_BLOCK = 2
_GRID = (0.01, 0.1)
_ALONE: dict[str, Any] = {"edge_weights": "none"}
_TOGETHER: dict[str, Any] = {"max_iter": 30, "tol": 0.02}


def run_images(n_train: int = 8, n_test: int = 16, seed: int = 0, size: int = _SIZE) -> ImageResult:
    """Train both models of labelling and test them on new images."""
    from mercer.datasets import make_shapes
    from mercer.report.demo_images import ImageResult, shown_images

    task = make_shapes(n_train + n_test, size, random_state=seed)
    _, alone = _painter("support vector machine, block by block", task, n_train, _ALONE)
    model, grid = _painter("grid labeller", task, n_train, _TOGETHER)
    images, truth = task.images[n_train:], task.maps[n_train:]
    shown = shown_images(truth, alone, grid)
    return ImageResult(
        n_train=n_train,
        labels=task.labels,
        images=images,
        truth=truth,
        alone=alone,
        grid=grid,
        marginals=model.predict_marginals([images[i] for i in shown]),
    )


def show_images(result: ImageResult) -> None:
    """Print the table on the terminal."""
    terminal.heading(f"{len(result.images)} images of overlapping shapes under noise, every pixel to be labelled")
    print()
    terminal.table(
        ["", "pixels correct", "overlap", "training"],
        [(p.name, f"{100 * p.pixels:.1f} %", f"{p.overlap:.3f}", f"{p.seconds:.2f} s") for p in result.painters],
        "lrrr",
    )
    print()


def _painter(name: str, task: ShapeTask, n_train: int, options: dict[str, Any]) -> tuple[Any, Painter]:
    from mercer.metrics import mean_iou
    from mercer.report.demo_images import Painter

    fitted = n_train - n_train // 4
    C = max(_GRID, key=lambda C: _fit(C, task, slice(fitted), options).score(*_part(task, slice(fitted, n_train))))
    begin = time.perf_counter()
    model = _fit(C, task, slice(n_train), options)
    seconds = time.perf_counter() - begin
    images, truth = _part(task, slice(n_train, None))
    maps = model.predict(images)
    right = sum(int((a == b).sum()) for a, b in zip(maps, truth, strict=True)) / sum(m.size for m in truth)
    return model, Painter(name, C, maps, right, mean_iou(truth, maps), seconds)


def _fit(C: float, task: ShapeTask, part: slice, options: dict[str, Any]) -> Any:
    from mercer.labeling import GridLabeler

    with warnings.catch_warnings():  # approximate inference, and few passes: the table shows how good that is
        warnings.simplefilter("ignore")
        return GridLabeler("hinge", C=C, block=_BLOCK, random_state=0, **options).fit(*_part(task, part))


def _part(task: ShapeTask, part: slice) -> tuple[list[Any], list[Any]]:
    return task.images[part], task.maps[part]
