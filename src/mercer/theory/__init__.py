"""Bounds and calculators of learning theory."""

from mercer.theory import hashing, proportions, risk

__all__ = ["hashing", "proportions", "risk"]
