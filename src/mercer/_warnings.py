"""Warnings that name the line of the user's code that led to them."""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn_caller"]

_PASSED_OVER = {"mercer", "sklearn", "joblib"}  # scikit-learn wraps transform, and calls fit in searches


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line outside of Mercer and scikit-learn, however many of their functions lie between."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED_OVER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
