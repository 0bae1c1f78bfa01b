"""Classification: one label for each input."""

from mercer.classification.relative import RelativeMarginSVC

__all__ = ["RelativeMarginSVC"]
