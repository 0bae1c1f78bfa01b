"""Bounds and calculators of learning theory."""

__all__: list[str] = []
