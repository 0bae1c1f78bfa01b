"""Leaves out modules whose optional library is not installed: their examples cannot run."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["src/mercer/nn/*", "src/mercer/retrieval/_tensors.py"]
