"""Bounds and calculators of learning theory."""

from mercer.theory import consistency, hashing, proportions, risk, sensing

__all__ = ["consistency", "hashing", "proportions", "risk", "sensing"]
