"""Aten ops in portable arithmetic, one file per family."""
