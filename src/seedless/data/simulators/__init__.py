"""Simulated ECGs and images: record i is a pure function of i."""
