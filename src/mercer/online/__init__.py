"""Online learners: hashed linear models for streams, files and thousands of classes."""

from mercer.exceptions import ColumnGuessWarning
from mercer.online.classifier import HashedClassifier
from mercer.online.regressor import HashedRegressor

__all__ = ["ColumnGuessWarning", "HashedClassifier", "HashedRegressor"]
