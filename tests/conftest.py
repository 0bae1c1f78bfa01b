"""Lets tests import the oracles as ``from reference.chains import …``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
