"""Lets tests import the oracles as ``from reference.chains import …``; examples that are drawn are the same each time.

``HYPOTHESIS_PROFILE=wandering`` draws others: worth a run now and then.
"""

import os
import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
# No deadlines: on a busy machine any example may take long.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("wandering", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
