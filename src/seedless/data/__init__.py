"""Datasets: where they are, how they are read, cached, normalized and augmented."""
