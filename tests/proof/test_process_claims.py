"""What a receipt may say of its processes, and forged claims that are found."""

import pytest

from seedless.proof.process_claims import MAX_PROCESSES, check_processes

GOOD = {"count": 2, "backend": "gloo", "devices": ["cpu", "NVIDIA H200"]}


def test_claims_as_a_run_writes_them():
    assert check_processes(GOOD) == []


@pytest.mark.parametrize(
    ("claimed", "words"),
    [
        (None, "does not state count, backend and devices"),
        ({"count": 1}, "does not state count, backend and devices"),
        ({**GOOD, "more": 1}, "does not state count, backend and devices"),
        ({**GOOD, "count": 1, "devices": ["cpu"]}, "processes in the receipt"),
        ({**GOOD, "count": True}, "processes in the receipt"),
        ({**GOOD, "count": MAX_PROCESSES + 1}, "processes in the receipt"),
        ({**GOOD, "backend": "pigeons"}, "as backend"),
        ({**GOOD, "backend": ["gloo"]}, "as backend"),
        ({**GOOD, "devices": ["cpu"]}, "a device for each of the 2"),
        ({**GOOD, "devices": "no"}, "a device for each of the 2"),
        ({**GOOD, "devices": ["cpu", 1]}, "not a short text"),
        ({**GOOD, "devices": ["cpu", "x" * 1000]}, "not a short text"),
    ],
)
def test_forged_claims_are_found(claimed, words):
    assert words in check_processes(claimed)[0]
