"""Pairwise alignment of sequences, with given or learnt scores."""

from mercer.alignment.aligner import Aligner
from mercer.data.alignments import Alignment
from mercer.structures.alignment import AlignmentStructure

__all__ = ["Aligner", "Alignment", "AlignmentStructure"]
