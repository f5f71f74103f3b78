"""One place sets what changes bits; one record says how it was set."""

import json

import pytest
import torch

from seedless.core.errors import NumericsError
from seedless.numerics import environment

SHOW = "import json; from seedless.numerics import environment as e; "


FLAGS = {
    "deterministic_algorithms": True,
    "cudnn_deterministic": True,
    "cudnn_benchmark": False,
    "bf16_reduced_precision": False,
    "fp16_reduced_precision": False,
    "flush_denormal": False,
}
SPOIL = """
import torch
torch.set_float32_matmul_precision("medium")
torch.backends.fp32_precision = "tf32"
torch.backends.cudnn.conv.fp32_precision = "tf32"
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True
torch.set_flush_denormal(True)
"""


@pytest.mark.parametrize("before", ["", SPOIL], ids=["fresh", "spoilt"])
def test_every_flag_is_set_and_captured(run_python, before):
    script = (
        before + SHOW + "e.prepare_process(); e.settle(threads=3); print(json.dumps(e.capture()))"
    )
    found = json.loads(run_python("-c", script, OMP_NUM_THREADS=1).stdout)
    assert found["threads"]["intraop"] == 3  # the explicit call beats OMP_NUM_THREADS
    assert FLAGS.items() <= found["flags"].items()
    assert set(found["precision"].values()) == {"ieee"}
    assert found["variables"]["OMP_NUM_THREADS"] == "1"
    assert found["variables"]["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert found["packages"]["torch"] == torch.__version__
    assert found["cpu"]["capability"]


def test_tf32_only_where_asked(run_python):
    script = SHOW + "e.settle(threads=1, tf32=True); print(json.dumps(e.capture()['precision']))"
    found = json.loads(run_python("-c", script).stdout)
    assert {name for name, value in found.items() if value == "tf32"} == {
        "cuda matmul",
        "cudnn",
        "cudnn conv",
        "cudnn rnn",
    }


def test_the_capability_override_shows(run_python):
    script = SHOW + "print(json.dumps(e.capture()))"
    found = json.loads(run_python("-c", script, ATEN_CPU_CAPABILITY="default").stdout)
    assert found["cpu"]["capability"] == "DEFAULT"
    assert found["variables"]["ATEN_CPU_CAPABILITY"] == "default"


def test_all_usable_cores_unless_told(run_python):
    script = SHOW + "e.settle(); print(json.dumps([e.usable_cores(), e.capture()['threads']]))"
    cores, threads = json.loads(run_python("-c", script, OMP_NUM_THREADS=1).stdout)
    assert threads["intraop"] == cores


def test_a_workspace_that_is_not_reproducible_is_refused(run_python):
    done = run_python("-c", SHOW + "e.settle()", check=False, CUBLAS_WORKSPACE_CONFIG=":0:0")
    assert done.returncode != 0
    assert "not reproducible" in done.stderr


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_bad_thread_counts(threads):
    with pytest.raises(NumericsError, match="at least 1"):
        environment.settle(threads=threads)
