"""Markov models whose states are hidden."""

from mercer.markov.hidden import HiddenMarkovModel

__all__ = ["HiddenMarkovModel"]
