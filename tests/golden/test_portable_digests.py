"""The committed digests of portable arithmetic, and what must not change them.

The negative control runs the same steps in plain arithmetic and must see the digests part.
"""

import json

import pytest

from seedless.numerics.portable.check import compare
from tests.golden.write_portable import FILE, compute_all

COMMITTED = json.loads(FILE.read_text())
PRINT = ("-m", "tests.golden.write_portable", "--print")
SETTINGS = [
    {"OMP_NUM_THREADS": "1", "ATEN_CPU_CAPABILITY": "default"},
    {"OMP_NUM_THREADS": "2", "ATEN_CPU_CAPABILITY": "avx2"},
    {"OMP_NUM_THREADS": "2", "ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
]

PLAIN = """
from contextlib import nullcontext
from seedless.numerics.portable import check
check.portable = nullcontext
from tests.golden import write_portable
import json
print(json.dumps(write_portable.compute_all()))
"""


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: ",".join(s.values()))
def test_threads_and_simd_level_do_not_show(run_python, setting):
    found = json.loads(run_python(*PRINT, **setting).stdout)
    for kind, digests in COMMITTED.items():
        assert compare(found[kind], digests) == []


def test_negative_control_plain_arithmetic_lets_threads_and_simd_level_show(run_python):
    one, two = (json.loads(run_python("-c", PLAIN, **setting).stdout) for setting in SETTINGS[:2])
    assert len(compare(one["models"], two["models"])) >= 5
    assert len(compare(one["ops"], two["ops"])) >= 20


def test_enough_is_committed():
    assert len(COMMITTED["ops"]) >= 60
    assert {"conformer", "baseline", "xresnet1d101", "resnet18", "transformer", "gru"} <= set(
        COMMITTED["models"]
    )


def test_no_two_digests_are_equal():
    every = [value for digests in COMMITTED.values() for value in digests.values()]
    assert len(set(every)) == len(every)


@pytest.mark.gpu
def test_a_gpu_finds_the_same_digests():
    found = compute_all("cuda")
    for kind, digests in COMMITTED.items():
        assert compare(found[kind], digests) == []
