"""Learners that see each example once: hashed linear models for streams, files and thousands of classes."""

__all__: list[str] = []
