"""Pairwise alignment of sequences, with given or learnt scores."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.alignment.aligner import Aligner
    from mercer.data.alignments import Alignment
    from mercer.structures.alignment import AlignmentStructure

__all__ = ["Aligner", "Alignment", "AlignmentStructure"]
__getattr__, __dir__ = on_demand(__name__)
