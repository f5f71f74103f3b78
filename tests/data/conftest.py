"""Readers that need wfdb and downloads that need pooch are not tested where these are missing."""

from importlib.util import find_spec

collect_ignore = []
if find_spec("wfdb") is None:
    collect_ignore += ["test_rhythms.py", "test_waveform.py", "test_nstdb.py", "test_challenge.py"]
    collect_ignore += ["test_ptbxl.py"]
if find_spec("pooch") is None:
    collect_ignore += ["test_fetch.py"]
