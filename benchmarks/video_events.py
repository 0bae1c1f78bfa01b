"""Events in videos from labels of whole videos: what each choice of segment lengths gives.

    python benchmarks/video_events.py [--parts choose table] [--seeds 5]

choose   the default weight C of shares, by the average precision of videos held out (frames have no labels in use):
         generated with seeds 100, 101, …, which the table does not show
table    each choice of segment lengths with that C, seeds 1000, 1001, …

Videos are generated (`mercer.datasets.make_videos`): 100 to learn from and 100 to rank, 30 frames of 20 features, the
event in 40 % of the frames of positive videos. Printed figures are for CCV, 9,317 videos with 5,000 visual words: other
data, so only the order of rows can be compared.
"""

from __future__ import annotations

import argparse
import copy
import time
import warnings

import numpy as np
from _timing import parse, record, sized, spread
from sklearn.metrics import average_precision_score

import mercer.proportions
from mercer.datasets import make_videos
from mercer.proportions import ProportionClassifier, VideoEventDetector

TABLE = [
    ("video BoW", ("all",), 0.39),
    ("1", (1,), 0.39),
    ("1 + 3", (1, 3), 0.38),
    ("1 + 3 + 5", (1, 3, 5), 0.37),
    ("3 + all", (3, "all"), 0.41),
    ("1 + all", (1, "all"), 0.41),
    ("1 + 3 + 5 + all", (1, 3, 5, "all"), 0.43),
]


HALF = sized(100, 20)  # videos to learn from, and as many to rank
CHOOSING, SHOWN = 100, 1000  # first seeds: the table shows videos on which nothing was chosen


def learners() -> dict[str, object]:
    """The default learner, where it is there, and the one by gradient."""
    found = {"gradient": ProportionClassifier(random_state=0)}
    return ({"alternating": None} if hasattr(mercer.proportions, "AlternatingProportionSVM") else {}) | found


def frame_precision(scores: list[np.ndarray], frames: list[np.ndarray]) -> float:
    """Average precision of the ranking of all frames of all videos."""
    return float(average_precision_score(np.concatenate(frames) > 0, np.concatenate(scores)))


def measured(granularities: tuple, estimator: object, seeds: int) -> np.ndarray:
    """Of each seed: AP of videos, AP of frames, share of true ones among the five best frames, CPU seconds."""
    rows = []
    for seed in range(SHOWN, SHOWN + seeds):
        task = make_videos(2 * HALF, random_state=seed)
        model = VideoEventDetector(granularities, estimator=estimator, random_state=0)
        begin = time.process_time()
        model.fit(task.videos[:HALF], task.y[:HALF])
        taken = time.process_time() - begin
        test, frames = task.videos[HALF:], task.frames[HALF:]
        of_videos = model.score(test, task.y[HALF:])
        if granularities == ("all",):  # its frames are scored one by one
            model.set_params(granularities=(1,))
        of_frames = frame_precision(model.frame_scores(test), frames)
        single = copy.copy(model).set_params(granularities=(1,))
        right = [
            frames[i][s][0] > 0
            for i in np.flatnonzero(task.y[HALF:])
            for s in single.top_instances(test[i], 5, granularity=1)
        ]
        rows.append((of_videos, of_frames, np.mean(right), taken))
    return np.array(rows)


def multiple_instance(mode: str, seeds: int) -> np.ndarray:
    """The same for the multiple-instance machines, over frames; the score of a video is that of its best frame."""
    rows = []
    for seed in range(SHOWN, SHOWN + seeds):
        task = make_videos(2 * HALF, random_state=seed)
        number = np.repeat(np.arange(HALF), [len(x) for x in task.videos[:HALF]])
        model = mercer.proportions.MultipleInstanceSVM(mode=mode)
        begin = time.process_time()
        model.fit(np.concatenate(task.videos[:HALF]), bags=number, proportions=task.y[:HALF].astype(float))
        taken = time.process_time() - begin
        scores = [model.decision_function(x) for x in task.videos[HALF:]]
        of_videos = average_precision_score(task.y[HALF:], [s.max() for s in scores])
        right = [
            task.frames[HALF + i][t] > 0
            for i in np.flatnonzero(task.y[HALF:])
            for t in np.argsort(-scores[i], kind="stable")[:5]
        ]
        rows.append((of_videos, frame_precision(scores, task.frames[HALF:]), np.mean(right), taken))
    return np.array(rows)


def choose(seeds: int) -> None:
    """Average precision against C."""
    print("| C | AP videos | AP frames (not used) | CPU s |\n|---|---|---|---|")
    for C in sized((0.03, 0.1, 0.3, 1.0, 3.0, 10.0), (0.3,)):
        rows = []
        for seed in range(CHOOSING, CHOOSING + seeds):
            task = make_videos(2 * HALF, random_state=seed)
            begin = time.process_time()
            model = VideoEventDetector(C=C, random_state=0).fit(task.videos[:HALF], task.y[:HALF])
            taken = time.process_time() - begin
            of_frames = frame_precision(model.frame_scores(task.videos[HALF:]), task.frames[HALF:])
            rows.append((model.score(task.videos[HALF:], task.y[HALF:]), of_frames, taken))
        mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0)
        cells = [f"{m:.3f} ± {s:.3f}" for m, s in zip(mean[:2], spread[:2], strict=True)]
        default = " (default)" if C == VideoEventDetector().C else ""
        print(f"| {C:g}{default} | {' | '.join(cells)} | {mean[2]:.2f} |", flush=True)
    print()


def table(seeds: int) -> None:
    print("| learner | segments | AP videos | AP frames | top 5 frames true | CPU s | printed mAP, CCV (other data) |")
    print("|---|---|---|---|---|---|---|")
    for mode, printed in (("mi", 0.26), ("MI", 0.25)):
        if hasattr(mercer.proportions, "MultipleInstanceSVM"):
            show(f"{mode}-SVM", "1", multiple_instance(mode, seeds), printed)
    for name, estimator in learners().items():
        for label, granularities, printed in sized(TABLE, TABLE[-1:]):
            show(name, label, measured(granularities, estimator, seeds), printed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=["choose", "table"], default=["table"])
    parser.add_argument("--seeds", type=int, default=5)
    given = parse(parser, parts=["choose", "table"], seeds=1)
    warnings.simplefilter("ignore")
    for part in given.parts:
        {"choose": choose, "table": table}[part](given.seeds)


def show(name: str, label: str, rows: np.ndarray, printed: float) -> None:
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    cells = [f"{m:.3f} ± {s:.3f}" for m, s in zip(mean[:3], deviation[:3], strict=True)]
    titles = ("AP videos", "AP frames", "top 5 frames true")
    columns = {title: spread(part) for title, part in zip(titles, rows.T[:3], strict=True)}
    columns |= {"CPU s": round(float(mean[3]), 2), "printed, CCV": printed}
    record("lengths", f"{name}, {label}", values=columns)
    print(f"| {name} | {label} | {' | '.join(cells)} | {mean[3]:.2f} | {printed:.2f} |", flush=True)


if __name__ == "__main__":
    main()
