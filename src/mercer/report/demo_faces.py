"""The demo's section on faces: a query as a sparse combination of gallery images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.report.charts import bars, grey_image
from mercer.report.html import Html, columns, figure, paragraph, table

__all__ = ["FaceResult", "Recogniser", "faces_part"]


@dataclass(frozen=True)
class Recogniser:
    """A method of face recognition.

    Attributes
    ----------
    name : str
    right : float
        Accuracy on the queries.
    seconds : float
        Time of training and all queries.
    """

    name: str
    right: float
    seconds: float


@dataclass(frozen=True)
class FaceResult:
    """Results of the demo for faces.

    Attributes
    ----------
    n_people, n_gallery, n_queries, n_measurements : int
    recognisers : list of Recogniser
    query : ndarray of shape (height, width)
        The query shown: the first query that sparse codes classify correctly and the nearest neighbour does not.
    person, neighbour : str
        Its person, and the prediction of the nearest neighbour.
    used : list of (array of shape (height, width), str, float)
        The gallery images with the largest weights in its code: image, name, weight.
    strangers : float
        Area under the ROC curve of the concentration, for detecting people who are not in the gallery.
    """

    n_people: int
    n_gallery: int
    n_queries: int
    n_measurements: int
    recognisers: list[Recogniser]
    query: np.ndarray
    person: str
    neighbour: str
    used: list[tuple[np.ndarray, str, float]]
    strangers: float


def faces_part(r: FaceResult) -> list[Html | str]:
    """Return the table and the images."""
    rows = [(one.name, f"{100 * one.right:.1f} %", f"{one.seconds:.2f}") for one in r.recognisers]
    names = [f"{k + 1}: {name}" for k, (_, name, _) in enumerate(r.used)]
    faces = [figure(grey_image(image, scale=3), f"{k + 1}: {name}") for k, (image, name, _) in enumerate(r.used)]
    return [
        paragraph(
            "Synthetic faces with varying light. A query is represented as a sparse combination of gallery images, "
            f"of which only {r.n_measurements} hashed measurements are kept. The images with non-zero weights identify "
            "the person: ",
            Html("<code>SparseRepresentationClassifier</code>"),
            ".",
        ),
        table(rows, ["", "names right", "seconds"], "lrr"),
        f"{r.n_gallery} gallery images of {r.n_people} people, {r.n_queries} other images as queries. Codes of people "
        f"outside the gallery are spread over many people: area under the ROC curve {r.strangers:.3f}.",
        columns(figure(grey_image(r.query, scale=3), f"A query: {r.person}. The nearest image shows {r.neighbour}."),
                *faces),
        figure(bars(names, [weight for _, _, weight in r.used]), "Weights of these images in the code of the query."),
    ]  # fmt: skip
