"""User-defined structures: implement features, cost and argmax, and every loss and solver works."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.exceptions import OracleError
    from mercer.structured.discrimination import MaximumEntropyDiscrimination
    from mercer.structured.predictor import StructuredPredictor
    from mercer.structures.custom import CustomStructure

__all__ = ["CustomStructure", "MaximumEntropyDiscrimination", "OracleError", "StructuredPredictor"]
__getattr__, __dir__ = on_demand(__name__)
