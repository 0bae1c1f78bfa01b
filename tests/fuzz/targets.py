"""All targets by name."""

from __future__ import annotations

from collections.abc import Callable

from fuzz.checkpoints import Checkpoints
from fuzz.core_calls import CoreCalls
from fuzz.engine import Target
from fuzz.model_files import ModelFiles
from fuzz.readers import Readers
from fuzz.requests import Requests
from fuzz.stores import Stores

TARGETS: dict[str, Callable[[str | None], Target]] = {
    "checkpoints": Checkpoints,
    "core": CoreCalls,
    "models": ModelFiles,
    "readers": Readers,
    "requests": Requests,
    "stores": Stores,
}
SHARES = {"core": 5, "models": 3, "readers": 2, "requests": 2, "stores": 1, "checkpoints": 1}  # of time and cases
