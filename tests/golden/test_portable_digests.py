"""The shipped digests of portable arithmetic, and what must not change them.

The negative control runs the same lists in plain arithmetic and must see the digests part.
"""

import json
from pathlib import Path

import pytest

from seedless.audit.portable_check import FULL, check, find_differences, unpack
from seedless.models import MODELS
from seedless.portable.check.compute import STEPS, read_committed
from seedless.portable.check.networks import NETWORKS

SHIPPED = read_committed()
# Every step once; for the rest of the settings the ops and the first steps of each model.
SETTINGS = {
    "one thread, AVX2": (STEPS, {"OMP_NUM_THREADS": 1, "ATEN_CPU_CAPABILITY": "avx2"}),
    "two threads, no SIMD": (1, {"OMP_NUM_THREADS": 2, "ATEN_CPU_CAPABILITY": "default"}),
    "two threads, oneDNN and MKL held to AVX2": (
        1,
        {
            "OMP_NUM_THREADS": 2,
            "ONEDNN_MAX_CPU_ISA": "AVX2",
            "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        },
    ),
    "two threads, no fused kernels": (1, {"OMP_NUM_THREADS": 2, "SEEDLESS_FUSED": 0}),
    "two threads, int8 products": (1, {"OMP_NUM_THREADS": 2, "SEEDLESS_ENGINE": "int8"}),
    # Held to AVX2, oneDNN adds pairs of int8 products in int16, which saturates.
    "one thread, int8 products, oneDNN held to AVX2": (
        1,
        {"OMP_NUM_THREADS": 1, "SEEDLESS_ENGINE": "int8", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    ),
    "AVX-512": (1, {"OMP_NUM_THREADS": 2, "ATEN_CPU_CAPABILITY": "avx512"}),
}
PLAIN = """
from contextlib import nullcontext
from seedless.portable.check import compute
compute.portable = nullcontext
from tests.golden import write_portable
import json
print(json.dumps(write_portable.compute(steps=1)))
"""


def run(run_python, *arguments, **variables):
    found = json.loads(run_python(*arguments, OMP_WAIT_POLICY="PASSIVE", **variables).stdout)
    return found["ops"], unpack(found["models"])


@pytest.mark.parametrize("name", SETTINGS)
def test_threads_and_simd_level_do_not_show(run_python, name):
    steps, setting = SETTINGS[name]
    if name == "AVX-512" and "avx512f" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX-512")
    ops, models = run(
        run_python, "-m", "tests.golden.write_portable", "--print", str(steps), **setting
    )
    assert len(models) == len(MODELS) + len(NETWORKS)
    assert {len(fit.digests) for fit in models.values()} == {steps}
    assert find_differences(ops, models, {}) == ()


def test_negative_control_plain_arithmetic_differs_from_it_and_from_itself(run_python):
    settings = [SETTINGS[name][1] for name in list(SETTINGS)[:2]]
    (ops, models), (other_ops, other_models) = (
        run(run_python, "-c", PLAIN, **setting) for setting in settings
    )
    lines = find_differences(ops, models, {})
    assert all(any(line.startswith(f"{name}: ") for line in lines) for name in models)
    assert len(lines) >= len(models) + 60
    assert sum(models[name].digests != other_models[name].digests for name in models) >= 5
    assert sum(ops[name] != other_ops[name] for name in ops) >= 20


def test_enough_is_shipped():
    assert len(SHIPPED["ops"]) >= 60
    assert set(SHIPPED["models"]) == {*MODELS, *NETWORKS}
    assert set(SHIPPED["full"]) == set(FULL) == {"conformer", "resnet18"}
    for fit in (*unpack(SHIPPED["models"]).values(), *unpack(SHIPPED["full"]).values()):
        assert len(fit.digests) == len(fit.traces) == SHIPPED["steps"] == STEPS == 20


def test_no_two_digests_are_equal():
    fits = [*unpack(SHIPPED["models"]).values(), *unpack(SHIPPED["full"]).values()]
    every = [*SHIPPED["ops"].values(), *(d for fit in fits for d in (*fit.digests, *fit.traces))]
    assert len(set(every)) == len(every)


@pytest.mark.gpu
@pytest.mark.parametrize("full", [False, True])
def test_a_gpu_finds_the_same_digests(full):
    assert check("cuda", full=full).differences == ()
