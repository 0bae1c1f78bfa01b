"""Lets tests import the oracles as ``from reference.chains import …``; examples that are drawn are the same each time.

``HYPOTHESIS_PROFILE=wandering`` draws others: worth a run now and then.
"""

import os
import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
settings.register_profile("steady", derandomize=True)
settings.register_profile("wandering", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
