"""Compiled dual ascent for single labels: the multiclass support vector machine with costs.

    min_W  ½‖W‖² + C Σ_i weight_i ξ_i    (or ξ_i²),    ξ_i = max_c [Δ(y_i, c) + ⟨w_c, x_i⟩ − ⟨w_{y_i}, x_i⟩]

Each visit to an example solves its block of dual variables exactly. Inactive examples are skipped until the next pass
over all examples. That pass also gives the primal and dual values, so the reported gap is certified. The examples of an
epoch are distributed over a few shards, each with its own copy of W between merges. On wide sparse data a merge would
cost about half as much as the visits before it. There, examples are visited in batches instead, and the features are
split into a few strips. The number of shards or strips depends on the data, not on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mercer import _core
from mercer.data.sequences import Rows
from mercer.learning.checkpoint import count_of
from mercer.learning.losses import Hinge, RelativeMargin
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk
from mercer.learning.solvers.base import Result, Solver
from mercer.learning.solvers.certified import Best, check_ridge, named, part_of
from mercer.structures.base import check_random_seed
from mercer.structures.costs import Hamming
from mercer.structures.labels import Labels

_SPARSE = 0.3  # a dense matrix with a smaller share of non-zeros is walked as a sparse one
_SHARD_EXAMPLES = 4096  # fewer than this, and a second shard costs more than it brings
_SHARD_VALUES = 32  # non-zeros for each feature: with fewer, merges take too large a share of the time
_SHARD_BYTES = 2**30  # room for the copies of the weights
_STRIP_VALUES = 32  # non-zeros of a row in each of the strips, on average, and at least two strips
_MOST_STRIPS = 8
_BLOCK = 1024  # least number of examples that a shard visits between two merges
_MERGE_SHARE = 8  # and so many that they touch this many times the number of features
_LONG = 3  # visits of all examples, or as many, between two checks
_MANY = 100  # epochs between two checks


class Dual(Solver):
    """Dual ascent for the (squared) hinge over single labels, with any cost.

    Parameters
    ----------
    polish : bool, default=False
        Continue after the gap is small enough, until changes are rounding errors. For small problems: the weights then
        do not depend on the representation of the data (order of examples, or weights for repeated examples).
    """

    name = "dual"
    reads_examples = True
    default_max_iter = 10000
    default_tol = 1e-4

    def __init__(self, polish: bool = False) -> None:
        self.polish = polish

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Require single labels, the hinge or its square, and ½‖w‖²."""
        check_ridge(penalty, self.name)
        loss = getattr(risk, "loss", None)
        if not isinstance(loss, Hinge) or isinstance(loss, RelativeMargin):
            given = "no loss" if loss is None else repr(loss.name)
            raise ValueError(f"solver 'dual' takes the losses 'hinge' and 'squared-hinge', not {given}")
        if not isinstance(risk.structure, Labels):
            raise ValueError("solver 'dual' is for single labels; use 'bcfw'")
        if risk.structure.is_partial(risk.y):
            raise ValueError(f"the loss {loss.name!r} needs known labels; use the log loss where some are missing")

    def minimize(
        self,
        risk: Risk,
        penalty: Penalty,
        C: float,
        w0: np.ndarray | None,
        *,
        max_iter: int,
        tol: float,
        monitor: Monitor,
        random_state: Any = None,
        resumed: tuple[dict[str, Any], dict[str, np.ndarray]] | None = None,
        state: dict[str, Any] | None = None,
    ) -> Result:
        """See :class:`~.Solver`. ``w0`` is ignored: the method starts from dual variables, all at the true labels."""
        n, threads, best = risk.n_examples, risk.structure.threads, Best(risk.n_weights)
        ascent = _ascent(risk, C / penalty.l2, check_random_seed(random_state))
        epochs, waits = 0, False
        if resumed is not None:
            with monitor.restoring():
                best.resume(resumed[1], monitor.source)
                epochs, waits = count_of(resumed[0], "epochs"), True  # the state is that after a check
                kept_arrays = {name: np.ascontiguousarray(x) for name, x in part_of(resumed[1], "ascent").items()}
                ascent.restore(**kept_arrays)
                _check_weights(risk, kept_arrays)
                if not ascent.active:
                    raise ValueError("no example is active")

        def weights() -> np.ndarray:
            ascent.weights(best.w)
            return best.w

        try:
            if resumed is not None:
                weights()
                best.verify(risk, C / penalty.l2)
            while True:
                if not waits:
                    primal, dual = ascent.check(tol, threads)
                    if not np.isfinite(primal):
                        raise ValueError("scores left the range of floating point: scale the features, or lower C")
                    best.primal, best.dual = primal, max(best.dual, dual)
                    figures = best.figures(penalty.l2, passes=epochs, active=float(ascent.active))
                    if monitor.record(weights, **figures):
                        return best.result(monitor, True, tol, max_iter, stopped=True, iterations=epochs)
                done, waits = best.gap <= tol, False
                if done or epochs >= max_iter or not ascent.active:
                    break
                monitor.save({"epochs": epochs}, lambda: {**best.arrays(), **named("ascent", ascent.state())})
                epochs += _round(ascent, best, n, tol, max_iter - epochs, threads)
            if done and self.polish:
                epochs += _polish(ascent, best, max_iter - epochs, threads)
        except KeyboardInterrupt:
            weights()
            return best.interrupted(monitor, iterations=epochs)
        weights()
        return best.result(monitor, done, tol, max_iter, iterations=epochs)


def _check_weights(risk: Risk, kept_arrays: dict[str, np.ndarray]) -> None:
    """W = Σ_i Σ_c α_ic x_i ⊗ (e_{y_i} − e_c), up to the rounding of many steps."""
    X, y = risk.X, np.asarray(risk.y)
    rows = csr_array(X.rows.matrix(int(X.offsets[0]), int(X.offsets[-1])))
    shape = len(y), risk.n_weights // rows.shape[1]
    alpha = csr_array((kept_arrays["values"], kept_arrays["labels"], kept_arrays["starts"]), shape=shape)
    mass = csr_array((alpha.sum(axis=1), y, np.arange(len(y) + 1)), shape=shape)
    W, most = (rows.T @ (mass - alpha)).toarray().ravel(), (abs(rows).T @ (mass + alpha)).max()
    if not np.abs(W - kept_arrays["w"]).max(initial=0.0) <= 1e-4 * most + 1e-9:
        raise ValueError("its weights are not those of its dual variables")


def _round(ascent: Any, best: Best, n: int, tol: float, epochs: int, threads: int) -> int:
    """Epochs over the active examples until the gap met on the way has fallen enough to be worth a check."""
    goal = max(0.3 * (best.primal - best.dual), tol * best.primal)
    visits = 0
    for k in range(1, min(epochs, _MANY) + 1):
        visits += ascent.active
        if ascent.epoch(threads) <= goal or (visits >= _LONG * n and k > 3) or not ascent.active:
            return k
    return min(epochs, _MANY)


def _polish(ascent: Any, best: Best, epochs: int, threads: int) -> int:
    """Epochs until the sum of gaps is 0 but for rounding, and their number; the weights are those of the last one."""
    enough, done = 1e-24 * best.primal, 0
    while done < epochs:
        for _ in range(min(_MANY, epochs - done)):
            done += 1
            if ascent.epoch(threads) <= enough:
                break
        ascent.check(0.0, threads)
        if done == epochs:
            break
        done += 1
        if ascent.epoch(threads) <= 100 * enough:
            break
    primal, dual = ascent.check(0.0, threads)
    best.primal, best.dual = primal, max(best.dual, dual)
    return done


def _ascent(risk: Risk, C: float, seed: int) -> Any:
    """The compiled solver for this risk."""
    X, structure = risk.X, risk.structure
    assert isinstance(structure, Labels)
    assert isinstance(risk.loss, Hinge)
    first, last = int(X.offsets[0]), int(X.offsets[-1])
    rows = X.rows
    if (first, last) != (0, rows.shape[0]):
        rows = Rows.from_matrix(rows.matrix(first, last))
    if rows.dense is not None and np.count_nonzero(rows.dense) < _SPARSE * rows.dense.size:
        rows = Rows.from_matrix(csr_array(rows.dense))
    cost = (risk.loss.cost or Hamming()).table(np.arange(structure.n_labels), structure.n_labels)
    weights, shards = getattr(risk, "weights", None), _shards(rows, 8 * risk.n_weights)
    upper = np.full(risk.n_examples, float(C)) if weights is None else C * np.asarray(weights, dtype=float)
    return _core.multiclass.MulticlassDual(
        rows.core,
        np.array(risk.y, dtype=np.int32),
        upper,
        np.array(cost, dtype=float),
        risk.loss.power == 2,
        seed,
        shards,
        max(_BLOCK, _MERGE_SHARE * rows.shape[1] * rows.shape[0] // max(1, _values(rows))),
        _strips(rows) if shards == 1 else 1,
    )


def _values(rows: Rows) -> int:
    """Number of stored values."""
    return rows.dense.size if rows.dense is not None else int(rows.indptr[-1])  # type: ignore[index]


def _shards(rows: Rows, weight_bytes: int) -> int:
    """A matter of the data alone, so that the result is the same for any number of threads."""
    shards = 1
    while shards < 8 and rows.shape[0] >= (_SHARD_EXAMPLES if shards == 1 else shards * 2**16):
        shards *= 2
    while shards > 1 and (shards + 2) * weight_bytes > _SHARD_BYTES:
        shards //= 2
    return shards if _values(rows) >= _SHARD_VALUES * rows.shape[1] else 1


def _strips(rows: Rows) -> int:
    """Parts into which the features of sparse rows are cut; a matter of the data alone, too."""
    if rows.dense is not None or rows.shape[0] < _SHARD_EXAMPLES:
        return 1
    strips = 2
    while strips < _MOST_STRIPS and _values(rows) >= 2 * strips * _STRIP_VALUES * rows.shape[0]:
        strips *= 2
    return strips
