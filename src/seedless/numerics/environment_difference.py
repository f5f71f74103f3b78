"""Which differences between two captured environments can change the bits of a run."""

from collections.abc import Mapping
from typing import Any

from seedless.core.config import ExecutionConfig
from seedless.core.mismatch import Mismatch, compare_values

# The sections of an environment that can change bits. The others (Python, kernel, memory, threads)
# are recorded and shown, and decide nothing.
DECISIVE = ("machine", "packages", "cpu", "flags", "precision", "devices", "variables")
# Fields of these sections that cannot. The thread count is set by the program, whatever the shell
# says.
_HARMLESS = {
    "cpu": ("cores",),
    "devices": ("memory_bytes",),
    "variables": ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "PYTHONHASHSEED"),
}


def compare_environments(
    recorded: Mapping[str, Any], here: Mapping[str, Any], execution: ExecutionConfig
) -> tuple[list[Mismatch], list[Mismatch]]:
    """Return what differs between two environments: what can change bits, and the rest.

    In portable arithmetic only package versions can: another version may use another algorithm.
    """
    sections = ("packages",) if execution.arithmetic == "portable" else DECISIVE
    decisive: list[Mismatch] = []
    harmless: list[Mismatch] = []
    for mismatch in compare_values(recorded, here):
        section, _, rest = mismatch.field.partition(".")
        leaf = rest.rpartition(".")[2]
        matters = section in sections and leaf not in _HARMLESS.get(section, ())
        if section == "devices" and execution.device == "cpu":
            matters = False
        (decisive if matters else harmless).append(mismatch)
    return decisive, harmless
