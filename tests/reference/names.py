"""Names of parameters of tests that are the same in every process, so that tests can be collected in several."""

from __future__ import annotations

import re
from typing import Any


def stable(value: Any) -> str:
    """ASCII for a value, without the addresses of objects."""
    text = value if isinstance(value, str) and value.isascii() else ascii(value)
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)
