"""Sums over the samples of a batch, and batches computed in parts."""
