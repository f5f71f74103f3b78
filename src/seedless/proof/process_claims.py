"""What a receipt says of the processes that finished a run, where there were several."""

from typing import Any

BACKENDS = ("gloo", "nccl")
MAX_PROCESSES = 100_000
_MAX_NAME = 200
_FIELDS = {"count", "backend", "devices"}


def check_processes(claimed: Any) -> list[str]:
    """Return what is wrong with the processes of a receipt, a sentence each.

    >>> check_processes({"count": 2, "backend": "gloo", "devices": ["cpu", "cpu"]})
    []
    """
    if not isinstance(claimed, dict) or {*claimed} != _FIELDS:
        return ["the receipt does not state count, backend and devices of its processes"]
    count, devices = claimed["count"], claimed["devices"]
    if type(count) is not int or not 2 <= count <= MAX_PROCESSES:
        return [f"expected 2 to {MAX_PROCESSES:,} processes in the receipt, got another count"]
    if claimed["backend"] not in BACKENDS:
        return [f"expected {' or '.join(BACKENDS)} as backend of the processes, got another"]
    if not isinstance(devices, list) or len(devices) != count:
        return [f"expected a device for each of the {count} processes in the receipt"]
    if not all(isinstance(name, str) and 0 < len(name) <= _MAX_NAME for name in devices):
        return ["a device of the processes in the receipt is not a short text"]
    return []
