"""Tests of readers that need wfdb are left out without it."""

from importlib.util import find_spec

NEED_WFDB = ("afdb", "nstdb", "physionet_challenge", "ptbxl", "wfdb_records")
collect_ignore = [] if find_spec("wfdb") is not None else [f"test_{name}.py" for name in NEED_WFDB]
