"""Histories of trainings, compared."""

from __future__ import annotations

__all__ = ["without_seconds"]


def without_seconds(history: dict[str, list[float]]) -> dict[str, list[float]]:
    """What equal trainings have in common, on any machine."""
    return {name: values for name, values in history.items() if name != "seconds"}
