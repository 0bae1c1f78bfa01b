"""Bounds and calculators of learning theory."""

from mercer.theory import hashing, risk

__all__ = ["hashing", "risk"]
