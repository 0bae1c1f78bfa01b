"""Pairwise alignment: which symbols of two sequences belong together, with scores given or learned."""

from mercer.alignment.aligner import Aligner
from mercer.alignment.pairs import Alignment
from mercer.alignment.structure import AlignmentStructure

__all__ = ["Aligner", "Alignment", "AlignmentStructure"]
