"""``mercer register``: the motion that aligns one point cloud with another."""

from __future__ import annotations

import json
import math
import warnings
from enum import StrEnum
from typing import Annotated, Any

import typer

from mercer.cli import terminal
from mercer.cli.columns import check_writable, shown
from mercer.cli.errors import UsageError


class MethodName(StrEnum):
    auto = "auto"
    kernel = "kernel"
    matching = "matching"
    icp = "icp"


def register(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="The cloud that moves: ply, off, obj, pcd, xyz, csv, npy; also .gz."),
    ],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The cloud that stays.")],
    output: Annotated[
        str | None, typer.Option("--output", metavar="PATH", help="Write the source, moved onto the target, here.")
    ] = None,
    transform: Annotated[
        str | None, typer.Option("--transform", metavar="PATH", help="Write the matrix of the motion as text here.")
    ] = None,
    html: Annotated[
        str | None, typer.Option("--html", metavar="PATH", help="Write a page with pictures of before and after here.")
    ] = None,
    method: Annotated[
        MethodName, typer.Option("--method", help="How to find the coarse pose; icp only refines.")
    ] = MethodName.auto,
    scale: Annotated[bool, typer.Option("--scale", help="Also find a factor between the clouds.")] = False,
    reflection: Annotated[bool, typer.Option("--reflection", help="Also try the mirror image of the source.")] = False,
    points: Annotated[
        int,
        typer.Option(
            "--points", metavar="N", min=0, help="Points to sample from the faces of meshes; 0 uses their corners."
        ),
    ] = 10_000,
    drop_missing: Annotated[bool, typer.Option("--drop-missing", help="Drop points without coordinates.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    jobs: Annotated[int, typer.Option(metavar="N", help="Threads; -1 for all cores.")] = -1,
) -> None:
    """Find the motion that aligns one point cloud or mesh with another, from any initial rotation.

    Prints the motion, its fit, and whether the evidence excludes a fit by chance. The exit status is 0 even for poses
    that are not certified: read the report.

    [bold]Examples[/bold]
      mercer register scan1.ply scan2.ply --output aligned.ply --html report.html
      mercer register part.obj whole.ply --json
    """
    for path in (output, transform, html):
        if path is not None:
            check_writable(path)
    from mercer.exceptions import UncertainPoseWarning
    from mercer.registration import register as find

    whole, (x, y) = _read(source, target, points, drop_missing)
    try:
        with warnings.catch_warnings(), terminal.working("aligning"):
            warnings.simplefilter("ignore", UncertainPoseWarning)  # the report says it
            result = find(x, y, method=method.value, scale=scale, reflection=reflection, n_jobs=jobs)
    except ValueError as error:
        raise UsageError(f"{shown(source)}, {shown(target)}: {error}") from error
    _print(result, source, target, as_json)
    if output is not None:
        from mercer.data import write_cloud

        try:
            write_cloud(output, result.apply(whole))
        except ValueError as error:
            raise UsageError(str(error)) from error
    if transform is not None:
        from mercer.data.readers.lines import replacing

        with replacing(transform) as file:
            file.write("".join(" ".join(map(repr, row)) + "\n" for row in result.transform.tolist()).encode())
    if html is not None:
        from mercer.report import write_page
        from mercer.report.clouds import registration_page

        write_page(html, registration_page(x, y, result, title=f"{shown(source)} onto {shown(target)}"))


def _read(source: str, target: str, points: int, drop_missing: bool) -> tuple[Any, list[Any]]:
    """The source as it is in the file, and both clouds as they are aligned."""
    from mercer.data import PointCloud, read_cloud

    whole = []
    for path in (source, target):
        try:
            whole.append(read_cloud(path, drop_missing=drop_missing))
        except ValueError as error:
            hint = str(getattr(error, "hint", ""))
            raise UsageError(str(error), hint.replace("pass drop_missing=True", "use --drop-missing")) from error
    clouds: list[PointCloud] = []
    for k, cloud in enumerate(whole):
        clouds.append(cloud.sample(points, random_state=k) if points and cloud.area > 0 else cloud)
    return whole[0], clouds


def _print(result: Any, source: str, target: str, as_json: bool) -> None:
    if as_json:
        facts = {
            "transform": result.transform.tolist(),
            "fitness": result.fitness,
            "rmse": result.rmse if math.isfinite(result.rmse) else None,
            "radius": result.radius,
            "certified": result.certified,
            "reason": result.reason,
            "method": result.method,
            "evidence": {k: v if math.isfinite(v) else None for k, v in result.evidence.items()},
            "alternatives": [pose.tolist() for pose in result.alternatives],
        }
        print(json.dumps(facts))
        return
    terminal.heading(f"{shown(source)} onto {shown(target)}")
    state = "certified" if result.certified else "not certified"
    terminal.figures(
        [
            ("pose", f"{state}: {result.reason}" if result.reason else state),
            ("fitness", f"{result.fitness:.1%} of the source points within {result.radius:.3g} of the target"),
            ("rmse", f"{result.rmse:.4g}"),
            ("method", result.method),
        ]
    )
    rows = [[f"{value:.6f}" for value in row] for row in result.transform]
    terminal.table([""] * len(rows[0]), rows, "r" * len(rows[0]))
    if result.alternatives:
        terminal.say(f"  {terminal.count(len(result.alternatives), 'other pose')} fit nearly as well")
