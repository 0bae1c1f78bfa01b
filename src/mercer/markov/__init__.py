"""Hidden Markov models."""

from mercer.markov.classifier import HMMClassifier
from mercer.markov.hidden import HiddenMarkovModel

__all__ = ["HMMClassifier", "HiddenMarkovModel"]
