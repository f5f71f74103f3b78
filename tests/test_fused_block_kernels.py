"""The kernels of the fused block in Triton's interpreter, on a CPU, in processes of their own.

Skipped where Triton is not installed. The interpreter computes TF32 as float32 and cuts bfloat16
off instead of rounding it: tiles, masks, windows and sums are tested here, rounding is not.
"""

import importlib.util
import json

import pytest

from benchmarks.fused_block.checks import TOLERANCES

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="needs Triton, which is not installed"
)

# Arguments: precision, a change, then length, stride and tiles for each case. Prints for each case
# the largest error and the digest of output and gradients.
SCRIPT = """
import json, sys
import torch
from benchmarks.fused_block.checks import compare, hash_tensors, make_block, make_inputs
from benchmarks.fused_block.checks import run_fused, run_twin
from benchmarks.fused_block.tiles import BlockShape, Variant
from seedless.numerics.determinism import make_deterministic

make_deterministic(threads=1)
precision, change, *cases = sys.argv[1:]
for case in cases:
    length, stride, forward_tile, backward_tile = map(int, case.split(","))
    shape = BlockShape(length, stride, 32, 8)
    block, (x, dy) = make_block(shape, torch.device("cpu")), make_inputs(shape, 2, "cpu")
    expected = run_twin(block, x, dy, "fp64")
    if change == "taps":
        with torch.no_grad():
            block.convolve.weight.copy_(block.convolve.weight.flip(2))
    variants = (Variant(forward_tile), Variant(backward_tile))
    got = run_fused(block, x, dy, precision, variants)
    errors = compare(got, expected)
    worst = float("nan") if any(e != e for e in errors.values()) else max(errors.values())
    print(json.dumps([worst, hash_tensors(got)]))
"""


@pytest.fixture
def run_kernels(run_python):
    def run(precision, *cases, change="none"):
        arguments = [",".join(map(str, case)) for case in cases]
        done = run_python("-c", SCRIPT, precision, change, *arguments, TRITON_INTERPRET=1)
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_forward_and_all_gradients_are_those_of_the_models_block(run_kernels):
    cases = [
        (9, 1, 9, 9),  # a whole recording in one tile
        (9, 1, 4, 3),  # tiles that do not divide it, others forward than backward
        (9, 2, 5, 5),  # bins of two and three samples
        (8, 2, 2, 3),
        (1, 1, 1, 1),  # shorter than the taps
    ]
    for case, (error, _) in zip(cases, run_kernels("fp32", *cases), strict=True):
        assert error <= TOLERANCES["fp32"], case


def test_bfloat16_is_within_what_its_eight_bits_allow(run_kernels):
    ((error, _),) = run_kernels("bf16", (9, 1, 4, 3))
    assert 1e-4 < error <= TOLERANCES["bf16"]


def test_two_processes_have_the_same_bits_and_other_tiles_have_others(run_kernels):
    case, other = (9, 1, 9, 9), (9, 1, 9, 4)
    (first,), second = run_kernels("fp32", case), run_kernels("fp32", case, other)
    assert first[1] == second[0][1]
    assert second[1][1] != first[1]  # the weight gradients are added in another order
    assert second[1][0] <= TOLERANCES["fp32"]


def test_a_wrong_tap_is_found(run_kernels):
    ((error, _),) = run_kernels("fp32", (9, 1, 9, 9), change="taps")
    assert error > 1e3 * TOLERANCES["fp32"]


def test_the_command_checks_every_small_shape(run_python, tmp_path):
    out = tmp_path / "record.json"
    arguments = ("--small", "--only", "check", "--out", str(out))
    run_python("-m", "benchmarks.fused_block", *arguments, TRITON_INTERPRET=1)
    record = json.loads(out.read_text())
    assert record["complete"] is True
    assert "failed" not in record["phases"]
    assert len(record["phases"]["check"]) == len(record["phases"]["estimate"]) == 4
    assert all(row["right"] and row["repeats"] for row in record["phases"]["check"])
