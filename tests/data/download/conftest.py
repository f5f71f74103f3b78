"""Tests of downloads need requests; they are left out without it."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("requests") is not None else ["test_fetch.py"]
