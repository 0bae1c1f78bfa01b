"""Leaves out modules whose optional library is not installed: their examples cannot run."""

import importlib.util

OF_TORCH = ["src/mercer/nn/*", "src/mercer/retrieval/_tensors.py"]
collect_ignore_glob = [] if importlib.util.find_spec("torch") else OF_TORCH
