"""Binary codes of long vectors, and exact Hamming search.

    b(x) = sign(R D x)                  R a circulant, bilinear or dense projection, D random signs

Codes of k bits preserve angles: the codes of two vectors at angle θ differ in k θ / π bits on average. A circulant R =
circ(r) needs O(d) memory and O(d log d) time, so codes of tens of thousands of bits are cheap to compute.
`HammingIndex` stores packed codes and searches them exactly.

- `CirculantEmbedding`: codes by circulants, random or learned;
- `BilinearEmbedding`, `SignProjection`: baselines, codes by two small matrices or by a full matrix;
- `IterativeQuantization`, `SpectralHashing`, `ShiftInvariantHashing`: published baselines;
- `HammingIndex`: k nearest codes, codes within a radius; ids, removal, filters, files; `ShardedIndex` merges several,
  also on a cluster.
"""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.exceptions import IndexFileError
    from mercer.retrieval._codes import (
        angle_estimate,
        circulant_variance_bound,
        hamming_distances,
        hamming_variance,
        pack_codes,
        recall_at,
        unpack_codes,
    )
    from mercer.retrieval.circulant import CirculantEmbedding
    from mercer.retrieval.index import HammingIndex
    from mercer.retrieval.projections import BilinearEmbedding, SignProjection
    from mercer.retrieval.quantization import IterativeQuantization, ShiftInvariantHashing, SpectralHashing
    from mercer.retrieval.shards import ShardedIndex

__all__ = [
    "BilinearEmbedding",
    "CirculantEmbedding",
    "HammingIndex",
    "IndexFileError",
    "IterativeQuantization",
    "ShardedIndex",
    "ShiftInvariantHashing",
    "SignProjection",
    "SpectralHashing",
    "angle_estimate",
    "circulant_variance_bound",
    "hamming_distances",
    "hamming_variance",
    "pack_codes",
    "recall_at",
    "unpack_codes",
]
__getattr__, __dir__ = on_demand(__name__)
