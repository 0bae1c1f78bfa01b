"""The part of ``mercer demo`` about faces: people recognised by sparse codes over a gallery."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mercer.cli import terminal

if TYPE_CHECKING:
    from mercer.report.demo_faces import FaceResult

_MEASUREMENTS = 100


def run_faces(n_people: int = 24, seed: int = 0) -> FaceResult:
    """Recognise drawn faces, and detect people who are not in the gallery."""
    import numpy as np
    from sklearn.metrics import roc_auc_score
    from sklearn.neighbors import KNeighborsClassifier

    from mercer.datasets import make_faces
    from mercer.maps import SignedHashProjection
    from mercer.recognition import SparseRepresentationClassifier
    from mercer.report.demo_faces import FaceResult, Recogniser

    images, names = make_faces(n_people, 16, random_state=seed)
    pixels = images.reshape(len(images), -1)
    strangers = np.isin(names, np.unique(names)[-n_people // 6 :])
    gallery = (np.arange(len(names)) % 16 < 12) & ~strangers
    queries = ~gallery & ~strangers
    hashed = SignedHashProjection(_MEASUREMENTS, random_state=seed)
    models: dict[str, Any] = {
        "nearest image, all pixels": KNeighborsClassifier(1),
        f"sparse codes, {_MEASUREMENTS} hashed measurements": SparseRepresentationClassifier(hashed),
    }
    recognisers, predictions = [], []
    for name, model in models.items():
        begin = time.perf_counter()
        predictions.append(model.fit(pixels[gallery], names[gallery]).predict(pixels[queries]))
        right = float((predictions[-1] == names[queries]).mean())
        recognisers.append(Recogniser(name, right, time.perf_counter() - begin))
    truth = names[queries]
    gains = np.flatnonzero((predictions[1] == truth) & (predictions[0] != truth))
    shown = int(gains[0]) if len(gains) else 0
    at = np.flatnonzero(queries)[shown]
    code = model.code(pixels[[at]]).codes
    order = np.argsort(-abs(code.data), kind="stable")[:5]
    members = np.flatnonzero(gallery)[code.indices[order]]
    used = [(images[m], str(names[m]), float(w)) for m, w in zip(members, code.data[order], strict=True)]
    outside = strangers & (np.arange(len(names)) % 16 >= 12)
    concentration = np.r_[model.concentration(pixels[queries]), model.concentration(pixels[outside])]
    area = float(roc_auc_score(np.r_[np.ones(queries.sum()), np.zeros(outside.sum())], concentration))
    return FaceResult(
        len(np.unique(truth)), int(gallery.sum()), len(truth), _MEASUREMENTS, recognisers, images[at],
        str(names[at]), str(predictions[0][shown]), used, area,
    )  # fmt: skip


def show_faces(result: FaceResult) -> None:
    """Print the table on the terminal."""
    terminal.heading(f"{result.n_queries} drawn faces of {result.n_people} people, light from all sides")
    print()
    rows = [(one.name, f"{100 * one.right:.1f} %", f"{one.seconds:.2f} s") for one in result.recognisers]
    terminal.table(["", "names right", "time"], rows, "lrr")
    print()
