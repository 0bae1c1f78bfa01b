"""Your own structures: write features, cost and argmax, and every loss and solver works."""

from mercer.structured.predictor import StructuredPredictor
from mercer.structures.custom import CustomStructure
from mercer.structures.joint import OracleError

__all__ = ["CustomStructure", "OracleError", "StructuredPredictor"]
