"""A paper's published results, computed again: ``python -m benchmarks.published``."""
