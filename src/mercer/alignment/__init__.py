"""Pairwise alignment: which symbols of two sequences belong together, with scores given or learned."""

from mercer.alignment.aligner import Aligner
from mercer.data.alignments import Alignment
from mercer.structures.alignment import AlignmentStructure

__all__ = ["Aligner", "Alignment", "AlignmentStructure"]
