"""Bounds and calculators of learning theory."""

from mercer.theory import consistency, cuts, hashing, margins, pac_bayes, proportions, risk, sensing

__all__ = ["consistency", "cuts", "hashing", "margins", "pac_bayes", "proportions", "risk", "sensing"]
