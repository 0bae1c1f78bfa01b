# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Segmentations."""

from typing import Annotated

import numpy
from numpy.typing import NDArray

class SegmentParts:
    """Part scores of segmentations, checked."""

    def __init__(
        self,
        lengths: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        transitions: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        frames: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None = None,
        means: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None = None,
        starts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None = None,
        edges: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ]
        | None = None,
        pair_means: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ]
        | None = None,
        spans: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ]
        | None = None,
        x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None = None,
        variances: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None = None,
        pair_variances: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ]
        | None = None,
        mark_length: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
        mark_label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
        mark_score: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
        cuts: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
        pair_spans: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None, None), order="C", device="cpu", writable=False)
        ]
        | None = None,
        pair_span_scores: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ]
        | None = None,
    ) -> None: ...
    @property
    def n_sums(self) -> int: ...
    def marginals(
        self,
        log_partition: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None = None,
        frames: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")] | None = None,
        means: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")] | None = None,
        starts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")] | None = None,
        edges: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")] | None = None,
        pair_means: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")]
        | None = None,
        spans: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")] | None = None,
        entropy: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None = None,
        threads: int = 1,
    ) -> None: ...
    def best(
        self,
        length: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
        label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
        score: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        threads: int = 1,
    ) -> None: ...
    def k_best(
        self,
        length: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu")],
        label: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu")],
        score: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        threads: int = 1,
    ) -> None: ...
    def sample(
        self,
        seed: int,
        length: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu")],
        label: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu")],
        threads: int = 1,
    ) -> None: ...
    def spans(
        self,
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")],
        threads: int = 1,
    ) -> None: ...
    def score(
        self,
        lengths: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        firsts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        threads: int = 1,
    ) -> None: ...
