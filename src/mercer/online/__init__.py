"""Online learners: hashed linear models for streams, files and thousands of classes."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.exceptions import ColumnGuessWarning
    from mercer.online.classifier import HashedClassifier
    from mercer.online.formats import FileFormat
    from mercer.online.regressor import HashedRegressor

__all__ = ["ColumnGuessWarning", "FileFormat", "HashedClassifier", "HashedRegressor"]
__getattr__, __dir__ = on_demand(__name__)
