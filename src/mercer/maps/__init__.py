"""Explicit feature maps of structured inputs: transformers in scikit-learn's idiom."""

__all__: list[str] = []
