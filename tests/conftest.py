"""Lets tests import the oracles as ``from reference.chains import …``; examples that are drawn are the same each time;
marks slow tests.

``HYPOTHESIS_PROFILE=wandering`` draws others: worth a run now and then.
"""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
# No deadlines: on a busy machine any example may take long.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("wandering", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# Files whose tests take long together: marked slow, as are all but the first variant of a parametrised test.
SLOW = (
    "cli/",
    "datasets/test_texts.py",
    "learning/test_gradients.py",
    "learning/test_margin_checkpoints.py",
    "learning/test_simulations.py",
    "online/test_experiments.py",
    "peers/",
    "proportions/test_public_data.py",
    "proportions/test_video.py",
    "retrieval/test_gpu_codes.py",
    "test_benchmarks.py",
    "test_collection.py",
    "test_docs.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test-fast` leaves out."""
    here, seen = Path(__file__).parent, set()
    for item in items:
        if not item.path.is_relative_to(here):
            continue
        name = item.nodeid.split("[")[0]
        if name in seen or item.path.relative_to(here).as_posix().startswith(SLOW):
            item.add_marker(pytest.mark.slow)
        seen.add(name)
