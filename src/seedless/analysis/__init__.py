"""Use finished runs: evaluate, compare, explain, export, report."""
