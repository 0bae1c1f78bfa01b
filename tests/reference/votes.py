"""Votes of the 98th Congress, for tests that need a real set; those skip where it is not at hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from mercer.datasets import load_proportion_set


def votes() -> tuple[np.ndarray, np.ndarray]:
    """Rows of votes, and who is a republican."""
    folder = os.environ.get("MERCER_DATA")
    if not folder or not (Path(folder) / "uci" / "HouseVotes84.csv").exists():
        pytest.skip("MERCER_DATA is not set, or has no uci/HouseVotes84.csv")
    return load_proportion_set("vote")
