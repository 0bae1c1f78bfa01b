"""Bounds and calculators of learning theory."""

from mercer.theory import hashing, proportions, risk, sensing

__all__ = ["hashing", "proportions", "risk", "sensing"]
