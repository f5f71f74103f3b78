"""The release, in one place; caches and receipts name it."""

__version__ = "0.1.0"
