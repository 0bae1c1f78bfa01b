"""Bounds and calculators of learning theory."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.theory import consistency, cuts, hashing, margins, pac_bayes, proportions, risk, sensing

__all__ = ["consistency", "cuts", "hashing", "margins", "pac_bayes", "proportions", "risk", "sensing"]
__getattr__, __dir__ = on_demand(__name__)
