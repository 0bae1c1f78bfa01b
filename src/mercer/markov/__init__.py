"""Hidden Markov models."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.markov.classifier import HMMClassifier
    from mercer.markov.hidden import HiddenMarkovModel

__all__ = ["HMMClassifier", "HiddenMarkovModel"]
__getattr__, __dir__ = on_demand(__name__)
