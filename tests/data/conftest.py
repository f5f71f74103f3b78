"""Tests of readers need wfdb, tests of downloads requests: they are left out without these."""

from importlib.util import find_spec

collect_ignore = []
if find_spec("wfdb") is None:
    collect_ignore += ["test_rhythms.py", "test_waveform.py", "test_nstdb.py", "test_challenge.py"]
    collect_ignore += ["test_ptbxl.py"]
if find_spec("requests") is None:
    collect_ignore += ["test_fetch.py"]
