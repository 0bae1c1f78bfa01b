"""Bounds and calculators of learning theory."""

from mercer.theory import hashing

__all__ = ["hashing"]
