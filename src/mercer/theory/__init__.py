"""Bounds and calculators of learning theory."""

from mercer.theory import consistency, hashing, margins, pac_bayes, proportions, risk, sensing

__all__ = ["consistency", "hashing", "margins", "pac_bayes", "proportions", "risk", "sensing"]
