"""Arithmetic whose bits are known: exact sums, the counter, deterministic operations."""
