# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Factor graphs, and files of them."""

from collections.abc import Sequence
from typing import Any, Annotated

import numpy
from numpy.typing import NDArray

def gathered(
    cards: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    unary: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    constant: float,
    scope_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    scopes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    table_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    tables: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    observed: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
) -> tuple: ...
def widened_beliefs(
    graph: FlatGraph,
    observed: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    numbers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    beliefs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    marginals: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
) -> Any: ...
def without_impossible_states(graph: FlatGraph) -> Any: ...

class FlatGraph:
    def __init__(
        self,
        cards: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        unary: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        constant: float,
        scope_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        scopes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        table_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tables: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None: ...
    def with_potentials(
        self,
        unary: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tables: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        constant: float,
    ) -> FlatGraph: ...
    @property
    def state_starts(self) -> Any: ...
    @property
    def is_forest(self) -> bool: ...

def tree_messages(graph: FlatGraph, maximise: bool) -> Any: ...
def loopy_messages(
    graph: FlatGraph,
    maximise: bool,
    schedule: str,
    max_iter: int,
    tol: float,
    damping: float,
    seed: int,
    rho: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)]
    | None = None,
) -> Any: ...
def joint_beliefs(
    graph: FlatGraph,
    messages: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    rho: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
) -> Any: ...
def forest_weights(graph: FlatGraph, least: int, seed: int) -> Any: ...
def mean_field(
    graph: FlatGraph,
    q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    max_iter: int,
    tol: float,
) -> Any: ...
def chain_mean_field(
    graph: FlatGraph,
    q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    variables: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    max_iter: int,
    tol: float,
) -> Any: ...
def icm(
    graph: FlatGraph,
    start: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    max_iter: int,
) -> tuple: ...

class CliqueTree:
    def __init__(
        self, graph: FlatGraph, heuristic: str, max_size: float, stop_early: bool, effort: float = 0.25
    ) -> None: ...
    @property
    def fits(self) -> bool: ...
    @property
    def complete(self) -> bool: ...
    @property
    def size(self) -> float: ...
    @property
    def bytes(self) -> float: ...
    @property
    def operations(self) -> float: ...
    @property
    def most_variables(self) -> int: ...
    def cliques(self) -> tuple: ...
    def elimination(self) -> tuple: ...
    def sum(self, graph: FlatGraph) -> tuple: ...
    def max(self, graph: FlatGraph, k: int) -> tuple: ...
    def factor_beliefs(
        self, beliefs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)]
    ) -> Any: ...
    def sample(self, graph: FlatGraph, count: int, seed: int) -> tuple: ...

def can_colour(graph: FlatGraph) -> bool: ...

class Sampler:
    """Chains of samples of a factor graph."""

    def __init__(
        self,
        graph: FlatGraph,
        start: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        seed: int,
        kind: str,
        blocks: Sequence[Sequence[int]],
    ) -> None: ...
    def run(
        self,
        betas: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        keep: int,
        samples: Annotated[NDArray[numpy.int32], dict(shape=(None, None, None), order="C", device="cpu")] | None,
        trace: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")] | None,
        collect: bool,
        threads: int = 1,
    ) -> None: ...
    def states(self) -> Any: ...
    def totals(self) -> tuple: ...
    def mobility(self) -> tuple: ...
    def best(self) -> tuple: ...
    def acceptance(self) -> float: ...

def min_cut(
    source: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    sink: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    forward: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    backward: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    side: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu")],
) -> float:
    """
    Fills the side of each node (0: the source's) in a minimum cut; returns its capacity.
    """

def dual_ascent(graph: FlatGraph, max_iter: int, tol: float) -> tuple:
    """
    (best states, bounds, values, converged) of dual ascent on a factor graph.
    """

def read_bif(file: bytes) -> tuple: ...
def read_uai(file: bytes) -> tuple: ...
