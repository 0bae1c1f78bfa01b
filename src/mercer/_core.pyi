"""Types of the compiled core; see cpp/bind/module.cpp."""

from typing import Any

import numpy as np

UNICODE_VERSION: str

class Rows:
    def __init__(self, *args: Any) -> None: ...
    single: bool
    n_rows: int
    n_columns: int

class Pattern:
    def __init__(self, *args: Any) -> None: ...
    n_weights: int
    n_features: int
    width: int

class OnlineState:
    def __init__(self) -> None: ...
    scale: float
    step: float
    l1_total: float

class Vocabulary:
    def __init__(self, n_bits: int = 0) -> None: ...
    def __len__(self) -> int: ...
    n_bits: int
    def name(self, column: int) -> str: ...
    def find(self, name: str) -> int: ...
    def encode_tokens(self, sequences: Any, grow: bool) -> tuple[Any, Any, Any, Any]: ...
    def encode_columns(self, sentences: Any, patterns: Any, grow: bool) -> tuple[Any, Any, Any, Any]: ...
    def encode_utf8(
        self, bytes: np.ndarray, string_offsets: np.ndarray, token_offsets: np.ndarray, grow: bool
    ) -> tuple[Any, Any, Any, Any]: ...
    def sort(self, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray | None) -> None: ...
    def state(self) -> tuple[np.ndarray, np.ndarray]: ...
    def add_names(self, bytes: np.ndarray, offsets: np.ndarray) -> None: ...

class Examples:
    def __init__(
        self,
        indptr: np.ndarray,
        hashes: np.ndarray,
        values: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        targets: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        label_names: list[str] = ...,
        documents: bool = False,
    ) -> None: ...
    def __len__(self) -> int: ...
    documents: bool
    indptr: np.ndarray
    hashes: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    targets: np.ndarray
    labels: np.ndarray
    label_names: list[str]

class ExampleReader:
    def __init__(
        self,
        format: str,
        *,
        numeric: bool = False,
        label_required: bool = True,
        skip: bool = False,
        limit: int = -1,
        analyzer: str = "word",
        ngrams: tuple[int, int] = (1, 1),
        lowercase: bool = True,
        seed: int = 0,
        label_place: str = "first",
        separator: str = "\t",
        header: bool = True,
        zero_based: bool = False,
        n_bits: int = 0,
        label: int | str | None = None,
        texts: list[int | str] | None = None,
        columns: list[int | str] | None = None,
        rest: bool = False,
        categorical: list[int | str] = ...,
    ) -> None: ...
    def feed(self, chunk: Any, last: bool) -> Examples: ...
    error: tuple[int, str] | None
    skipped: list[tuple[int, str]]
    n_skipped: int
    n_examples: int
    n_columns: int
    n_lines: int
    done: bool
    fields: dict[str, Any] | None

class HashedModel:
    def __init__(
        self,
        *,
        task: str,
        loss: str,
        n_bits: int = 22,
        label_hashing: str = "joint",
        optimizer: str = "adagrad",
        rate: float = 0.5,
        l1: float = 0.0,
        l2: float = 0.0,
        alpha: float = 0.5,
        quantile: float = 0.5,
        epsilon: float = 1.0,
        intercept: bool = True,
        scaled: bool = False,
        damped: bool = True,
    ) -> None: ...
    def learn(self, examples: Examples, begin: int = 0, end: int | None = None) -> dict[str, Any]: ...
    def scores(self, examples: Examples, begin: int = 0, end: int | None = None, threads: int = 1) -> np.ndarray: ...
    def top_k(self, examples: Examples, k: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]: ...
    def labels(self) -> list[str]: ...
    def set_labels(self, labels: list[str]) -> None: ...
    def settings(self) -> dict[str, Any]: ...
    def state(self) -> dict[str, np.ndarray]: ...
    def set_state(
        self, table: np.ndarray, scales: np.ndarray, intercepts: np.ndarray, counters: np.ndarray
    ) -> None: ...
    n_outputs: int
    table_bytes: int

class RelativeMarginDual:
    def __init__(self, *args: Any) -> None: ...
    def start(self, s: np.ndarray, g: np.ndarray) -> bool: ...
    def run(self, max_steps: int, tol: float) -> int: ...
    def figures(self) -> tuple[float, float, float, float, float]: ...
    def coefficients(self, out: np.ndarray) -> None: ...

class SegmentParts:
    def __init__(
        self,
        lengths: np.ndarray,
        transitions: np.ndarray,
        start: np.ndarray,
        end: np.ndarray,
        offsets: np.ndarray,
        frames: np.ndarray | None = None,
        means: np.ndarray | None = None,
        starts: np.ndarray | None = None,
        edges: np.ndarray | None = None,
        pair_means: np.ndarray | None = None,
        spans: np.ndarray | None = None,
        x: np.ndarray | None = None,
        variances: np.ndarray | None = None,
        pair_variances: np.ndarray | None = None,
        mark_length: np.ndarray | None = None,
        mark_label: np.ndarray | None = None,
        mark_score: np.ndarray | None = None,
    ) -> None: ...
    n_sums: int
    def marginals(
        self,
        log_partition: np.ndarray,
        sums: np.ndarray | None = None,
        frames: np.ndarray | None = None,
        means: np.ndarray | None = None,
        starts: np.ndarray | None = None,
        edges: np.ndarray | None = None,
        pair_means: np.ndarray | None = None,
        spans: np.ndarray | None = None,
        entropy: np.ndarray | None = None,
        threads: int = 1,
    ) -> None: ...
    def best(self, length: np.ndarray, label: np.ndarray, score: np.ndarray, threads: int = 1) -> None: ...
    def k_best(self, length: np.ndarray, label: np.ndarray, score: np.ndarray, threads: int = 1) -> None: ...
    def sample(self, seed: int, length: np.ndarray, label: np.ndarray, threads: int = 1) -> None: ...
    def spans(self, out: np.ndarray, threads: int = 1) -> None: ...
    def score(
        self, lengths: np.ndarray, labels: np.ndarray, firsts: np.ndarray, out: np.ndarray, threads: int = 1
    ) -> None: ...

class ChartGrammar:
    def __init__(
        self,
        n_terminals: int,
        n_labels: int,
        n_weights: int,
        start: int,
        labels: np.ndarray,
        binary: np.ndarray,
        unary: np.ndarray,
        lexical: np.ndarray,
    ) -> None: ...
    def best(
        self,
        w: np.ndarray,
        words: np.ndarray,
        offsets: np.ndarray,
        spans: np.ndarray | None,
        count_lexical: bool,
        threads: int = 1,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
    def k_best(
        self,
        w: np.ndarray,
        words: np.ndarray,
        offsets: np.ndarray,
        k: int,
        spans: np.ndarray | None,
        count_lexical: bool,
        threads: int = 1,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
    def log_partition(
        self,
        w: np.ndarray,
        words: np.ndarray,
        offsets: np.ndarray,
        spans: np.ndarray | None,
        count_lexical: bool,
        counts: np.ndarray | None,
        brackets: np.ndarray | None,
        threads: int = 1,
    ) -> np.ndarray: ...
    def f1_best(
        self,
        w: np.ndarray,
        words: np.ndarray,
        offsets: np.ndarray,
        truth: np.ndarray,
        n_true: np.ndarray,
        spans: np.ndarray | None,
        count_lexical: bool,
        threads: int = 1,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...
def use_instruction_set(name: str) -> None: ...
def hash_bytes(text: bytes, seed: int = 0) -> int: ...
def feature_hash(name: bytes, seed: int = 0) -> int: ...
def combine_hashes(first: np.ndarray, second: int) -> np.ndarray: ...
def pack_documents(documents: Any) -> tuple[np.ndarray, np.ndarray, bool]: ...
def split_lines(text: np.ndarray) -> np.ndarray: ...
def pack_ucs4(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]: ...
def pack_bytes(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]: ...
def text_rows(
    data: np.ndarray,
    offsets: np.ndarray,
    analyzer: str,
    min_n: int,
    max_n: int,
    lowercase: bool,
    seed: int,
    n_bits: int,
    with_signs: bool,
    copies: int,
    single: bool,
    threads: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def text_names(
    data: np.ndarray, offsets: np.ndarray, analyzer: str, min_n: int, max_n: int, lowercase: bool, seed: int
) -> tuple[list[str], np.ndarray, np.ndarray]: ...
def string_rows(
    data: np.ndarray,
    offsets: np.ndarray,
    kernel: str,
    length: int,
    mismatches: int,
    gap: int,
    shift: int,
    binary: bool,
    seed: int,
    alphabet: list[bytes],
    weights: np.ndarray,
    n_bits: int,
    with_signs: bool,
    single: bool,
    threads: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def string_names(
    data: np.ndarray,
    offsets: np.ndarray,
    kernel: str,
    length: int,
    mismatches: int,
    gap: int,
    shift: int,
    binary: bool,
    seed: int,
    alphabet: list[bytes],
) -> tuple[list[str], np.ndarray, np.ndarray]: ...
def string_characters(data: np.ndarray, offsets: np.ndarray, binary: bool) -> list[bytes]: ...
def scores(
    rows: Rows, row: int, count: int, pattern: Pattern, w: np.ndarray, out: np.ndarray, threads: int = 1
) -> None: ...
def backward(
    rows: Rows, row: int, count: int, pattern: Pattern, mu: np.ndarray, out: np.ndarray, threads: int = 1
) -> None: ...
def chain_marginals(*args: Any) -> int: ...
def hidden_marginals(
    table: np.ndarray,
    codes: np.ndarray,
    transitions: np.ndarray,
    start: np.ndarray,
    offsets: np.ndarray,
    nodes: np.ndarray,
    counts: np.ndarray,
    out_transitions: np.ndarray,
    out_start: np.ndarray,
    log_partition: np.ndarray,
    threads: int = 1,
) -> None: ...
def chain_log_loss(*args: Any) -> None: ...
def chain_decode(*args: Any) -> None: ...
def label_lists(classes: list[Any], labels: np.ndarray, offsets: np.ndarray) -> list[list[Any]]: ...
def chain_viterbi(*args: Any) -> None: ...
def chain_k_best(*args: Any) -> None: ...
def chain_sample(*args: Any) -> None: ...
def chain_score(*args: Any) -> None: ...
def chain_add(*args: Any) -> None: ...
def chain_difference(*args: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def online(*args: Any) -> tuple[float, int]: ...
def observed_pattern(
    indptr: np.ndarray, indices: np.ndarray, columns: np.ndarray, n_features: int, n_columns: int, fill: float
) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]: ...
def dot(x: np.ndarray, y: np.ndarray) -> float: ...
def axpy(alpha: float, x: np.ndarray, out: np.ndarray) -> None: ...
def to_bfloat16(x: np.ndarray, out: np.ndarray) -> None: ...
def pair_losses(
    scores: np.ndarray,
    grades: np.ndarray,
    offsets: np.ndarray,
    squared: bool,
    gradient: np.ndarray,
    values: np.ndarray,
    threads: int = 1,
) -> None: ...
def average_precision_losses(
    scores: np.ndarray,
    grades: np.ndarray,
    offsets: np.ndarray,
    gradient: np.ndarray,
    values: np.ndarray,
    threads: int = 1,
) -> None: ...
def f1_losses(
    scores: np.ndarray,
    grades: np.ndarray,
    offsets: np.ndarray,
    gradient: np.ndarray,
    values: np.ndarray,
    threads: int = 1,
) -> None: ...
def swapped_pairs(
    scores: np.ndarray, grades: np.ndarray, offsets: np.ndarray, counts: np.ndarray, pairs: np.ndarray
) -> None: ...

class Planes:
    def __init__(self, n_blocks: int, n_weights: int, mass: np.ndarray, power: int = 1) -> None: ...
    n_blocks: int
    count: int
    nbytes: int
    linear: float
    quadratic: float
    def add(
        self,
        blocks: np.ndarray,
        indptr: np.ndarray,
        indices: np.ndarray,
        values: np.ndarray,
        offsets: np.ndarray,
        bound: bool,
        w: np.ndarray,
    ) -> int: ...
    def solve(self, blocks: np.ndarray, w: np.ndarray, max_idle: int = 0) -> None: ...
    def trim(self, most: int) -> None: ...
    def highest(self, w: np.ndarray, values: np.ndarray, slope: np.ndarray) -> tuple[float, float]: ...
    def residual(self, w: np.ndarray) -> float: ...
    def gaps(self) -> np.ndarray: ...
    def state(self) -> dict[str, np.ndarray]: ...
    def restore(
        self,
        blocks: np.ndarray,
        indptr: np.ndarray,
        indices: np.ndarray,
        values: np.ndarray,
        offsets: np.ndarray,
        multipliers: np.ndarray,
        bounds: np.ndarray,
        idle: np.ndarray,
        gaps: np.ndarray,
        linear: np.ndarray,
    ) -> None: ...

def chain_ascent(*args: Any) -> float: ...
def chain_subgradient(*args: Any) -> tuple[float, float]: ...

class MulticlassDual:
    def __init__(
        self,
        rows: Rows,
        labels: np.ndarray,
        upper: np.ndarray,
        costs: np.ndarray,
        squared: bool,
        seed: int,
        shards: int,
        block: int,
        strips: int = 1,
    ) -> None: ...
    active: int
    strips: int
    def epoch(self, threads: int) -> float: ...
    def check(self, tol: float, threads: int) -> tuple[float, float]: ...
    def weights(self, out: np.ndarray) -> None: ...
    def dual_variables(self, out: np.ndarray) -> None: ...
    def state(self) -> dict[str, np.ndarray]: ...
    def restore(
        self,
        w: np.ndarray,
        average: np.ndarray,
        starts: np.ndarray,
        labels: np.ndarray,
        values: np.ndarray,
        old_starts: np.ndarray,
        old_labels: np.ndarray,
        old_values: np.ndarray,
        active: np.ndarray,
        counts: np.ndarray,
        reach: np.ndarray,
    ) -> None: ...

class AlignmentBatch:
    def __init__(
        self,
        s: np.ndarray,
        s_offsets: np.ndarray,
        t: np.ndarray,
        t_offsets: np.ndarray,
        substitution: np.ndarray,
        gap_open: float,
        gap_extend: float,
        local: bool,
        anchor: np.ndarray | None = None,
        bonus: np.ndarray | None = None,
    ) -> None: ...

def align_k_best(
    batch: AlignmentBatch, k: int, threads: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
def align_scores(batch: AlignmentBatch, threads: int = 1) -> np.ndarray: ...
def align_log_partition(batch: AlignmentBatch, threads: int = 1) -> np.ndarray: ...
def align_expect(
    batch: AlignmentBatch, counts: np.ndarray, matches: np.ndarray | None = None, threads: int = 1
) -> np.ndarray: ...
def graphlet_rows(
    offsets: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    codes: np.ndarray | None,
    keys: np.ndarray | None,
    sizes: list[int],
    method: str,
    connected: bool,
    n_samples: int,
    burn_in: int,
    thin: int,
    beta: list[list[float]],
    normalize: bool,
    seed: int,
    n_bits: int,
    signed: bool,
    threads: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def graphlet_keys(
    offsets: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    codes: np.ndarray | None,
    keys: np.ndarray | None,
    sizes: list[int],
    method: str,
    connected: bool,
    n_samples: int,
    normalize: bool,
    seed: int,
    threads: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def graphlet_forms(
    offsets: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    codes: np.ndarray | None,
    keys: np.ndarray | None,
    sizes: list[int],
    method: str,
    connected: bool,
    n_samples: int,
    burn_in: int,
    thin: int,
    beta: list[list[float]],
    seed: int,
    n_bits: int,
) -> list[tuple[bytes, int, float]]: ...
def canonical_graph(adjacency: np.ndarray, labels: np.ndarray | None) -> bytes: ...
def canonical_order(adjacency: np.ndarray, labels: np.ndarray | None) -> np.ndarray: ...
def label_key(label: str) -> int: ...
def graphlet_transitions(
    indptr: np.ndarray, indices: np.ndarray, k: int, beta: list[float], connected: bool
) -> tuple[np.ndarray, np.ndarray]: ...
def graphlet_walk(
    indptr: np.ndarray,
    indices: np.ndarray,
    k: int,
    beta: list[float],
    connected: bool,
    n_samples: int,
    burn_in: int,
    thin: int,
    seed: int,
) -> np.ndarray: ...
def kmer_rows(
    codes: np.ndarray,
    offsets: np.ndarray,
    hashes: np.ndarray | None,
    alphabet: int,
    mode: str,
    shortest: int,
    longest: int,
    extra: int,
    values: np.ndarray,
    letters: np.ndarray,
    presence: bool,
    threads: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def all_substrings_gram(
    codes: np.ndarray,
    offsets: np.ndarray,
    other_codes: np.ndarray | None,
    other_offsets: np.ndarray | None,
    sigma: int,
    cumulative: np.ndarray,
    start: int,
    stop: int,
    K: np.ndarray,
    threads: int,
) -> None: ...
def weighted_degree_gram(
    codes: np.ndarray,
    offsets: np.ndarray,
    other_codes: np.ndarray | None,
    other_offsets: np.ndarray | None,
    sigma: int,
    shift: int,
    weights: np.ndarray,
    start: int,
    stop: int,
    K: np.ndarray,
    threads: int,
) -> None: ...
def subsequence_gram(
    codes: np.ndarray,
    offsets: np.ndarray,
    other_codes: np.ndarray | None,
    other_offsets: np.ndarray | None,
    sigma: int,
    shortest: int,
    length: int,
    decay: float,
    start: int,
    stop: int,
    K: np.ndarray,
    threads: int,
) -> None: ...
def edit_distance_gram(
    codes: np.ndarray,
    offsets: np.ndarray,
    other_codes: np.ndarray | None,
    other_offsets: np.ndarray | None,
    sigma: int,
    indel: float,
    substitution: float,
    start: int,
    stop: int,
    K: np.ndarray,
    threads: int,
) -> None: ...

class KeyTable:
    def __init__(self, keys: np.ndarray, weights: np.ndarray) -> None: ...
    def scores(self, offsets: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray: ...

class SubstringModel:
    def __init__(
        self, codes: np.ndarray, offsets: np.ndarray, sigma: int, coef: np.ndarray, cumulative: np.ndarray
    ) -> None: ...
    def scores(self, codes: np.ndarray, offsets: np.ndarray, threads: int) -> np.ndarray: ...

def token_hash(name: bytes, seed: int) -> int: ...

class RecordColumns:
    def __init__(self, rows: int, seed: int, categories: bool) -> None: ...
    def add_text(self, name: str, bytes: np.ndarray, offsets: np.ndarray, valid: np.ndarray | None) -> None: ...
    def add_fixed(self, name: str, cells: np.ndarray) -> None: ...
    def add_codes(self, name: str, codes: np.ndarray, categories: np.ndarray) -> None: ...
    def add_integers(self, name: str, numbers: np.ndarray, valid: np.ndarray | None) -> None: ...
    def add_numbers(self, name: str, numbers: np.ndarray, valid: np.ndarray | None) -> None: ...
    def add_lists(self, name: str, starts: np.ndarray, categories: np.ndarray) -> None: ...
    def add_objects(self, name: str, values: Any, single: bool) -> None: ...
    def transform(
        self, n_bits: int, signed: bool, crosses: list[list[int]], single: bool, threads: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

def hash_records(
    rows: Any,
    n_bits: int,
    seed: int,
    signed: bool,
    categories: bool,
    crosses: list[list[str]],
    pairs: bool,
    single: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def name_records(
    rows: Any, first_row: int, seed: int, categories: bool, crosses: list[list[str]], pairs: bool
) -> tuple[list[str], np.ndarray]: ...
def hash_utf8(bytes: np.ndarray, offsets: np.ndarray, seed: int) -> np.ndarray: ...
def hash_fixed(cells: np.ndarray, seed: int) -> np.ndarray: ...
def hash_numbers(numbers: np.ndarray, seed: int) -> np.ndarray: ...
def hash_keys(keys: Any, seed: int) -> np.ndarray: ...
def hash_categories(values: Any, seed: int, field: str) -> np.ndarray: ...
def number_text(number: Any) -> str: ...
def weigh(weights: np.ndarray, mass_whole: int, mass_fraction: int) -> tuple[int, int, bool]: ...
def add_weights(
    whole: np.ndarray, fraction: np.ndarray | None, hashes: np.ndarray, weights: np.ndarray | None, signed: bool
) -> None: ...
def round_sums(whole: np.ndarray, fraction: np.ndarray | None, single: bool) -> np.ndarray: ...
def update_sketch(
    table: np.ndarray, seed: int, hashes: np.ndarray, weights: np.ndarray | None, conservative: bool
) -> None: ...
def query_sketch(table: np.ndarray, seed: int, hashes: np.ndarray) -> np.ndarray: ...
def row_examples(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    order: np.ndarray,
    n_columns: int,
    n_bits: int,
    seed: int,
) -> Examples: ...
def buffer_examples(
    data: np.ndarray,
    offsets: np.ndarray,
    order: np.ndarray,
    analyzer: str,
    min_n: int,
    max_n: int,
    lowercase: bool,
    seed: int,
) -> Examples: ...
def document_examples(
    documents: Any, order: np.ndarray, analyzer: str, min_n: int, max_n: int, lowercase: bool, seed: int
) -> Examples: ...
def set_outputs(
    examples: Examples,
    labels: np.ndarray | None = None,
    label_names: list[str] = ...,
    targets: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> None: ...
def plain_blocks(plain: bool) -> None: ...
def key_columns(keys: np.ndarray) -> tuple[np.ndarray, int]: ...
def keyed_products(
    left_offsets: np.ndarray,
    left_columns: np.ndarray,
    left_values: np.ndarray,
    right_offsets: np.ndarray | None,
    right_columns: np.ndarray | None,
    right_values: np.ndarray | None,
    dense: np.ndarray,
    out: np.ndarray,
    threads: int = 1,
) -> None: ...
def keyed_dense(
    offsets: np.ndarray, columns: np.ndarray, values: np.ndarray, dense: np.ndarray, out: np.ndarray
) -> None: ...

class FlatGraph:
    def __init__(
        self,
        cards: np.ndarray,
        unary: np.ndarray,
        constant: float,
        scope_starts: np.ndarray,
        scopes: np.ndarray,
        table_starts: np.ndarray,
        tables: np.ndarray,
    ) -> None: ...
    def with_potentials(self, unary: np.ndarray, tables: np.ndarray, constant: float) -> FlatGraph: ...
    is_forest: bool

def min_cut(
    source: np.ndarray,
    sink: np.ndarray,
    edges: np.ndarray,
    forward: np.ndarray,
    backward: np.ndarray,
    side: np.ndarray,
) -> float: ...
def can_colour(graph: Any) -> bool: ...

class Sampler:
    def __init__(self, graph: Any, start: np.ndarray, seed: int, kind: str, blocks: list[list[int]]) -> None: ...
    def run(
        self,
        betas: np.ndarray,
        keep: int,
        samples: np.ndarray | None,
        trace: np.ndarray | None,
        collect: bool,
        threads: int = 1,
    ) -> None: ...
    def states(self) -> np.ndarray: ...
    def totals(self) -> tuple[np.ndarray, np.ndarray]: ...
    def mobility(self) -> tuple[np.ndarray, np.ndarray]: ...
    def best(self) -> tuple[np.ndarray, float]: ...
    def acceptance(self) -> float: ...

def dual_ascent(graph: Any, max_iter: int, tol: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]: ...
def without_impossible_states(graph: FlatGraph) -> Any: ...

class CliqueTree:
    def __init__(
        self, graph: FlatGraph, heuristic: str, max_size: float, stop_early: bool, effort: float = 0.25
    ) -> None: ...
    fits: bool
    complete: bool
    size: float
    bytes: float
    operations: float
    most_variables: int
    def cliques(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
    def elimination(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
    def sum(self, graph: FlatGraph) -> tuple[np.ndarray, np.ndarray, float]: ...
    def max(self, graph: FlatGraph, k: int) -> tuple[np.ndarray, np.ndarray]: ...
    def factor_beliefs(self, beliefs: np.ndarray) -> np.ndarray: ...
    def sample(self, graph: FlatGraph, count: int, seed: int) -> tuple[np.ndarray, float]: ...

def tree_messages(graph: FlatGraph, maximise: bool) -> Any: ...
def loopy_messages(
    graph: FlatGraph,
    maximise: bool,
    schedule: str,
    max_iter: int,
    tol: float,
    damping: float,
    seed: int,
    rho: np.ndarray | None,
    start: np.ndarray | None = None,
) -> Any: ...
def joint_beliefs(graph: FlatGraph, messages: np.ndarray, rho: np.ndarray | None) -> np.ndarray: ...
def forest_weights(graph: FlatGraph, least: int, seed: int) -> np.ndarray: ...
def mean_field(graph: FlatGraph, q: np.ndarray, max_iter: int, tol: float) -> Any: ...
def chain_mean_field(
    graph: FlatGraph, q: np.ndarray, starts: np.ndarray, variables: np.ndarray, max_iter: int, tol: float
) -> Any: ...
def icm(graph: FlatGraph, start: np.ndarray, max_iter: int) -> tuple[np.ndarray, np.ndarray, bool]: ...

class PairRule:
    def __init__(
        self, term: str, finish: str = "none", gamma: float = 1.0, coef: float = 0.0, degree: int = 1
    ) -> None: ...
    def set_subsets(self, degree: int, gamma: float) -> None: ...
    def set_groups(
        self, offsets: np.ndarray, indices: np.ndarray, values: np.ndarray, weights: np.ndarray, degree: int
    ) -> None: ...
    def set_splines(self, pieces: np.ndarray, width: float) -> None: ...

def pairwise(
    A: np.ndarray,
    B: np.ndarray,
    rule: PairRule,
    a_norms: np.ndarray | None,
    b_norms: np.ndarray | None,
    out: np.ndarray,
    row0: int = 0,
    mirror: bool = False,
    threads: int = 1,
) -> None: ...
def sparse_pairwise(
    a_indptr: np.ndarray,
    a_indices: np.ndarray,
    a_data: np.ndarray,
    b_indptr: np.ndarray,
    b_indices: np.ndarray,
    b_data: np.ndarray,
    n_columns: int,
    term: str,
    out: np.ndarray,
    threads: int = 1,
) -> None: ...
def transpose_into(matrix: np.ndarray, out: np.ndarray) -> None: ...
def permuted_products(
    K: np.ndarray, L: np.ndarray, permutations: np.ndarray, out: np.ndarray, threads: int = 1
) -> None: ...

class Forest:
    def __init__(self, objects: list[Any], leaves: bool, productions: bool) -> None: ...
    def __len__(self) -> int: ...
    @property
    def n_nodes(self) -> int: ...
    def cut(self, start: int, stop: int) -> Forest: ...

def subset_tree_gram(left: Forest, right: Forest | None, decay: float, out: np.ndarray, threads: int = 1) -> None: ...
def subset_tree_diagonal(forest: Forest, decay: float, threads: int = 1) -> np.ndarray: ...
def partial_tree_gram(
    left: Forest, right: Forest | None, decay: float, decay_depth: float, out: np.ndarray, threads: int = 1
) -> None: ...
def partial_tree_diagonal(forest: Forest, decay: float, decay_depth: float, threads: int = 1) -> np.ndarray: ...
def subtree_rows(objects: list[Any], leaves: bool, decay: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

class Machine:
    def __init__(
        self,
        n_states: int,
        n_symbols: int,
        sources: np.ndarray,
        inputs: np.ndarray,
        outputs: np.ndarray,
        targets: np.ndarray,
        weights: np.ndarray,
        initial: np.ndarray,
        final: np.ndarray,
        tropical: bool,
    ) -> None: ...

def transducer_weights(
    machine: Machine,
    left_offsets: np.ndarray,
    left_symbols: np.ndarray,
    right_offsets: np.ndarray,
    right_symbols: np.ndarray,
    out: np.ndarray,
    threads: int = 1,
) -> None: ...
def transducer_outputs(
    machine: Machine, offsets: np.ndarray, symbols: np.ndarray, limit: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None: ...
def shortest_path_rows(
    offsets: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    keys: np.ndarray | None,
    weights: np.ndarray | None,
    threads: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
def weisfeiler_lehman_rows(
    offsets: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    keys: np.ndarray | None,
    edge_keys: np.ndarray | None,
    rounds: int,
    base: str,
    threads: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

class WalkGraphs:
    def __init__(
        self,
        offsets: np.ndarray,
        indptr: np.ndarray,
        indices: np.ndarray,
        weights: np.ndarray,
        edge_codes: np.ndarray,
        keys: np.ndarray,
        start: np.ndarray,
        stop: np.ndarray,
        radius: np.ndarray,
        n_edge_codes: int,
    ) -> None: ...
    def __len__(self) -> int: ...

def walk_gram(
    left: WalkGraphs,
    right: WalkGraphs | None,
    solver: str,
    max_length: int,
    tol: float,
    out: np.ndarray,
    threads: int,
) -> None: ...
def spectral_gram(
    left_offsets: np.ndarray,
    left_weights: np.ndarray,
    left_values: np.ndarray,
    right_offsets: np.ndarray,
    right_weights: np.ndarray,
    right_values: np.ndarray,
    symmetric: bool,
    out: np.ndarray,
    threads: int,
) -> None: ...
def waves(
    angles: np.ndarray, phases: np.ndarray, paired: int, amplitude: float, out: np.ndarray, threads: int
) -> None: ...
def structured_waves(
    x: np.ndarray,
    signs: np.ndarray,
    scales: np.ndarray,
    phases: np.ndarray,
    paired: int,
    amplitude: float,
    out: np.ndarray,
    threads: int,
) -> None: ...
def count_sketch(x: np.ndarray, columns: np.ndarray, signs: np.ndarray, out: np.ndarray, threads: int) -> None: ...
def signed_hash_rows(x: np.ndarray, seed: int, n_hashes: int, out: np.ndarray, threads: int) -> None: ...
def signed_hash_sparse(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    seed: int,
    n_hashes: int,
    out: np.ndarray,
    threads: int,
) -> None: ...
def edit_pairs(
    offsets: np.ndarray, codes: np.ndarray, limit: int, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def circulant_length(n: int) -> bool: ...

class Circulant32:
    def __init__(self, r: np.ndarray, signs: np.ndarray | None) -> None: ...
    def project(self, X: np.ndarray, out: np.ndarray, threads: int) -> None: ...
    def codes(self, X: np.ndarray, n_bits: int, out: np.ndarray, threads: int) -> None: ...

class Circulant64:
    def __init__(self, r: np.ndarray, signs: np.ndarray | None) -> None: ...
    def project(self, X: np.ndarray, out: np.ndarray, threads: int) -> None: ...
    def codes(self, X: np.ndarray, n_bits: int, out: np.ndarray, threads: int) -> None: ...

def hamming_search(
    blocks: np.ndarray, n: int, queries: np.ndarray, k: int, radius: int, allowed: np.ndarray | None, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def multi_index(blocks: np.ndarray, n: int, n_bits: int, m: int, threads: int) -> MultiIndex: ...
def pack_signs(values: np.ndarray, out: np.ndarray) -> None: ...

class MultiIndex:
    def search(
        self, blocks: np.ndarray, queries: np.ndarray, k: int, radius: int, allowed: np.ndarray | None, threads: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

def assign_labels(
    scores: np.ndarray,
    offsets: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    bag_weight: np.ndarray,
    row_weight: np.ndarray,
    known: np.ndarray,
    current: np.ndarray | None,
    ratio: float,
    loss: str,
    proportion_loss: str,
    threads: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

class KernelMachine:
    def __init__(self, K: np.ndarray) -> None: ...
    def solve(
        self, labels: np.ndarray, upper: np.ndarray, tol: float, max_iter: int
    ) -> tuple[float, float, float, float, int, bool]: ...
    def solve_box(
        self,
        members: np.ndarray,
        slope: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        start: np.ndarray,
        split: int,
        tol: float,
        max_iter: int,
    ) -> tuple[np.ndarray, np.ndarray, float, float, float, float, float, int, bool]: ...
    def solve_tube(
        self, members: np.ndarray, target: np.ndarray, width: float, upper: np.ndarray, tol: float, max_iter: int
    ) -> tuple[np.ndarray, np.ndarray, float, float, float, float, float, int, bool]: ...
    def scores(self) -> np.ndarray: ...
    def weights(self) -> np.ndarray: ...

class LinearMachine:
    def __init__(self, rows: Rows) -> None: ...
    def solve(
        self, labels: np.ndarray, upper: np.ndarray, tol: float, max_iter: int
    ) -> tuple[float, float, float, float, int, bool]: ...
    def scores(self) -> np.ndarray: ...
    def weights(self) -> np.ndarray: ...

def label_bags(
    scores: np.ndarray,
    weight: np.ndarray,
    offsets: np.ndarray,
    least: np.ndarray,
    most: np.ndarray,
    known: np.ndarray,
    out: np.ndarray,
    threads: int = 1,
) -> None: ...

class LabelledPrograms:
    def __init__(self, K: np.ndarray) -> None: ...
    def ascend(
        self,
        labelings: np.ndarray,
        mu: np.ndarray,
        upper: np.ndarray,
        alpha: np.ndarray,
        slope: np.ndarray,
        tol: float,
        max_sweeps: int,
    ) -> float: ...
    def raise_labellings(
        self,
        scores: np.ndarray,
        labelings: np.ndarray,
        weight: np.ndarray,
        offsets: np.ndarray,
        least: np.ndarray,
        most: np.ndarray,
        known: np.ndarray,
        squares: np.ndarray,
        max_steps: int,
        threads: int = 1,
    ) -> None: ...
    def block(self, labelings: np.ndarray, mu: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None: ...

def mix_rows(payoff: np.ndarray, mix: np.ndarray) -> None: ...
def bound_program(alpha: np.ndarray, slope: np.ndarray, upper: np.ndarray, tol: float = 1e-6) -> float: ...
def ascend_rows(
    U: np.ndarray, upper: np.ndarray, alpha: np.ndarray, slope: np.ndarray, tol: float, max_sweeps: int
) -> float: ...
