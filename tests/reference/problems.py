"""Small random sequence-labelling problems, for the oracles and in the library's own containers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix

from mercer.data import Sequences
from mercer.data.labels import LabelIndex, TagSequences
from mercer.learning import Log, Risk
from mercer.structures import Chain, Constraints, patterns
from reference.crf import EnumeratedCRF


@dataclass
class Problem:
    """One problem in both forms."""

    matrices: list[np.ndarray]
    labels: list[list]
    X: Sequences
    y: TagSequences
    chain: Chain
    make_oracle: Callable[[], EnumeratedCRF]

    @cached_property
    def oracle(self) -> EnumeratedCRF:
        """All labellings of all sequences: not every test of many sequences asks for them."""
        return self.make_oracle()

    @property
    def risk(self) -> Risk:
        return Risk(self.chain, Log(), self.X, self.y)


def make_problem(
    lengths=(4, 1, 3, 0, 2, 4),
    C=3,
    F=4,
    *,
    seed=0,
    dtype=np.float64,
    sparse=False,
    pattern=False,
    edge_features=0,
    edge_pattern=False,
    constraints: Constraints | None = None,
    trained=None,
    partial=None,
    threads=1,
) -> Problem:
    """Random inputs and labels. ``partial``: None, "none" (hidden) or "sets" (hidden or one of two)."""
    rng = np.random.default_rng(seed)
    matrices = [rng.normal(size=(n, F)) for n in lengths]
    if sparse or pattern:
        matrices = [np.where(rng.random(m.shape) < 0.5, m, 0.0) for m in matrices]
    matrices = [m.astype(dtype).astype(float) for m in matrices]
    edges = [rng.normal(size=(n, edge_features)).astype(dtype) for n in lengths] if edge_features else None

    def allowed(z) -> bool:
        return constraints is None or constraints.allows([int(label) for label in z])

    labels: list[list] = []
    for n in lengths:
        while not allowed(tags := rng.integers(0, C, n).tolist()):
            pass
        labels.append(tags)
    if partial:
        for tags in labels:
            for t, label in enumerate(tags):
                if rng.random() < 0.5:
                    tags[t] = None if partial == "none" or rng.random() < 0.5 else {label, int(rng.integers(C))}
    stacked = np.concatenate(matrices).astype(dtype)
    X = Sequences(
        csr_matrix(stacked) if sparse or pattern else stacked,
        np.concatenate([[0], np.cumsum(lengths)]),
        edges=None if edges is None else np.concatenate(edges),
    )
    y = LabelIndex(range(C)).encode(labels, X.lengths)

    def random_pattern(n: int, width: int):
        mask = rng.random((n, width)) < 0.5
        mask[0] = True
        starts = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64)
        return starts, np.nonzero(mask)[1].astype(np.int32)

    node_pattern = random_pattern(F, C) if pattern else None
    own_pattern = random_pattern(edge_features, C * C) if edge_pattern else None
    chain = Chain(
        C,
        F,
        n_edge_features=edge_features,
        pattern=node_pattern,
        edge_pattern=own_pattern,
        masks=None if constraints is None else constraints.masks(range(C)),
        trained_transitions=trained,
        threads=threads,
    )
    shared = C * C + 2 * C
    kept = np.concatenate(
        [
            patterns.keys(node_pattern, F, C),
            F * C + np.arange(shared),
            F * C + shared + patterns.keys(own_pattern, edge_features, C * C),
        ]
    )

    def make_oracle() -> EnumeratedCRF:
        return EnumeratedCRF(
            matrices, labels, C, edge_features=edges, allowed=None if constraints is None else allowed, kept=kept
        )

    return Problem(matrices, labels, X, y, chain, make_oracle)
