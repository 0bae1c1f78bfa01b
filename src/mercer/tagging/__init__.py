"""Sequence labelling: a label for each position of a sequence."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.markov.hidden import HiddenMarkovModel as HMM
    from mercer.structures.constraints import Constraints
    from mercer.tagging.neural import NeuralTagger
    from mercer.tagging.scorers import SequenceScorer, sequence_scorer
    from mercer.tagging.tagger import Tagger

__all__ = ["HMM", "Constraints", "NeuralTagger", "SequenceScorer", "Tagger", "sequence_scorer"]
__getattr__, __dir__ = on_demand(__name__)
