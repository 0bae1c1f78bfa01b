"""Brute-force oracles: slow and obviously right."""
