"""Which differences between two machines can change bits."""

import copy

import pytest

from seedless.core.config import ExecutionConfig
from seedless.numerics.environment import VARIABLES, capture_environment
from seedless.numerics.environment_difference import compare_environments
from tests.forgery import alter, list_leaves, look_up, replace

HARMLESS = ("python", "platform", "cpu.cores", "threads.interop", "threads.intraop", "memory_bytes")
LOCAL = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "PYTHONHASHSEED")


def test_what_of_a_machine_can_change_bits_is_decisive():
    here = {**capture_environment(), "devices": [{"name": "GPU", "memory_bytes": 1, "cudnn": 9}]}
    here["variables"] = {"MKL_CBWR": "AVX2", **dict.fromkeys(LOCAL, "0")}
    assert compare_environments(here, copy.deepcopy(here), ExecutionConfig(device="cuda")) == (
        [],
        [],
    )
    decisive = set()
    for path in list_leaves(here):
        field = ".".join(map(str, path))
        there = replace(here, path, alter(look_up(here, path)))
        found, rest = compare_environments(there, here, ExecutionConfig(device="cuda"))
        (mismatch,) = [*found, *rest]
        assert mismatch.field == field
        harmless = field.endswith((*HARMLESS, *LOCAL))
        assert bool(rest) == harmless, field
        if found:
            decisive.add(field)
    assert {
        "packages.torch",
        "packages.numpy",
        "cpu.model",
        "cpu.capability",
        "cpu.blas.0",
        "flags.deterministic_algorithms",
        "precision.cuda matmul",
        "devices.0.name",
        "devices.0.cudnn",
        "machine",
        "variables.MKL_CBWR",
    } <= decisive


def test_devices_matter_only_to_runs_on_them():
    here = capture_environment()
    there = {**here, "devices": [*here["devices"], {"name": "another GPU"}]}
    assert compare_environments(there, here, ExecutionConfig(device="cuda"))[0]
    decisive, harmless = compare_environments(there, here, ExecutionConfig(device="cpu"))
    assert not decisive
    assert [mismatch.field for mismatch in harmless] == ["devices"]


@pytest.mark.parametrize("name", VARIABLES)
def test_every_variable_that_changes_bits_is_decisive_and_local_ones_are_not(name):
    here = {**capture_environment(), "variables": {}}
    there = {**here, "variables": {name: "1"}}
    decisive, harmless = compare_environments(there, here, ExecutionConfig(device="cpu"))
    assert bool(decisive) == (name not in LOCAL)
    assert [str(m) for m in [*decisive, *harmless]] == [f"variables.{name}: 1 there, nothing here"]
