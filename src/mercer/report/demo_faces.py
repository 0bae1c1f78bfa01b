"""The part of the demo's page about faces: a query as a combination of few images of a gallery."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.report.charts import bars, grey_image
from mercer.report.html import Html, columns, figure, paragraph, table

__all__ = ["FaceResult", "Recogniser", "faces_part"]


@dataclass(frozen=True)
class Recogniser:
    """One way of recognising people.

    Attributes
    ----------
    name : str
    right : float
        Share of queries that get the right name.
    seconds : float
        Time of training and of all queries.
    """

    name: str
    right: float
    seconds: float


@dataclass(frozen=True)
class FaceResult:
    """What the demo found about faces.

    Attributes
    ----------
    n_people, n_gallery, n_queries, n_measurements : int
    recognisers : list of Recogniser
    query : ndarray of shape (height, width)
        The query that is shown: the first one that sparse codes get right and the nearest neighbour does not.
    person, neighbour : str
        Who it is, and whom the nearest neighbour takes it for.
    used : list of (array of shape (height, width), str, float)
        The images of the gallery with the largest weights in its code: image, name, weight.
    strangers : float
        Area under the ROC curve of concentration, for people who are not in the gallery.
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
    """Table and pictures."""
    rows = [(one.name, f"{100 * one.right:.1f} %", f"{one.seconds:.2f}") for one in r.recognisers]
    names = [f"{k + 1}: {name}" for k, (_, name, _) in enumerate(r.used)]
    faces = [figure(grey_image(image, scale=3), f"{k + 1}: {name}") for k, (image, name, _) in enumerate(r.used)]
    return [
        paragraph(
            "Drawn faces under light from all sides. A query is written as a combination of few images of a gallery, "
            f"of which only {r.n_measurements} hashed measurements are kept, and the images that are used say who it "
            "is: ",
            Html("<code>SparseRepresentationClassifier</code>"),
            ".",
        ),
        table(rows, ["", "names right", "seconds"], "lrr"),
        f"{r.n_gallery} images of {r.n_people} people, {r.n_queries} other images as queries. Codes of people who are "
        f"not in the gallery are spread over many: area under the ROC curve {r.strangers:.3f}.",
        columns(figure(grey_image(r.query, scale=3), f"A query: {r.person}. The nearest image is of {r.neighbour}."),
                *faces),
        figure(bars(names, [weight for _, _, weight in r.used]), "Weights of these images in the code of the query."),
    ]  # fmt: skip
