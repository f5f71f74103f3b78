"""One place sets what changes bits; one record says how it was set."""

import json

import pytest
import torch

from seedless.core.errors import NumericsError
from seedless.core.threads import count_usable_cores
from seedless.numerics.determinism import make_deterministic
from seedless.numerics.environment import capture_environment
from seedless.numerics.saved_flags import preserve_flags

SHOW = (
    "import json; from seedless.numerics import environment as e; "
    "from seedless.numerics import determinism as d; "
)


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


@pytest.fixture(scope="module")
def captured(run_python):
    """What one process captures: after make_deterministic, after changed flags, and untouched."""
    script = (
        SHOW + "d.set_environment_variables(); d.make_deterministic(threads=3)\n"
        "show = [e.capture_environment()]\n"
        f"{SPOIL}\n"
        "d.make_deterministic(threads=3); show += [e.capture_environment()]\n"
        "d.make_deterministic(); show += [e.capture_environment()]\n"
        "print(json.dumps(dict(zip(('fresh', 'spoilt', 'untold'), show))))"
    )
    return json.loads(run_python("-c", script, OMP_NUM_THREADS=1).stdout)


@pytest.mark.parametrize("before", ["fresh", "spoilt"])
def test_every_flag_is_set_and_captured(captured, before):
    found = captured[before]
    assert found["threads"]["intraop"] == 3  # the explicit call beats OMP_NUM_THREADS
    assert FLAGS.items() <= found["flags"].items()
    assert set(found["precision"].values()) == {"ieee"}
    assert found["variables"]["OMP_NUM_THREADS"] == "1"
    assert found["variables"]["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert found["packages"]["torch"] == torch.__version__
    assert found["cpu"]["capability"]


def test_tf32_only_where_asked():
    with preserve_flags():
        make_deterministic(threads=1, tf32=True)
        found = capture_environment()["precision"]
    assert {name for name, value in found.items() if value == "tf32"} == {
        "cuda matmul",
        "cudnn",
        "cudnn conv",
        "cudnn rnn",
    }


@pytest.mark.parametrize("tf32", [False, True])
@pytest.mark.parametrize("before", ["", SPOIL], ids=["fresh", "spoilt"])
def test_the_old_switches_can_be_read_and_say_the_same(tf32, before):
    with preserve_flags():
        exec(before)
        make_deterministic(threads=1, tf32=tf32)
        assert torch.backends.cudnn.allow_tf32 is tf32
        assert torch.backends.cuda.matmul.allow_tf32 is tf32
        assert torch.get_float32_matmul_precision() == ("high" if tf32 else "highest")
        with torch.backends.cudnn.flags(enabled=False):  # reads and puts back the old one
            pass


def test_all_usable_cores_are_the_default_of_threads(captured):
    assert captured["untold"]["threads"]["intraop"] == count_usable_cores()
    assert captured["untold"]["variables"]["OMP_NUM_THREADS"] == "1"


def test_a_workspace_that_is_not_reproducible_is_refused(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":0:0")
    with preserve_flags(), pytest.raises(NumericsError, match="not reproducible"):
        make_deterministic()


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_bad_thread_counts(threads):
    with pytest.raises(NumericsError, match="threads to be an integer >= 1"):
        make_deterministic(threads=threads)


LIMITS = {"OMP_DYNAMIC": "TRUE", "OMP_MAX_ACTIVE_LEVELS": "0", "OMP_THREAD_LIMIT": "1"}
HARMLESS = {"OMP_DYNAMIC": "false", "OMP_MAX_ACTIVE_LEVELS": "1", "OMP_THREAD_LIMIT": "2"}


@pytest.mark.parametrize("name", LIMITS)
def test_fewer_threads_than_asked_for_are_refused(monkeypatch, name):
    """oneDNN's LSTM then gives other numbers at each call, and its convolution never ends."""
    monkeypatch.setenv(name, LIMITS[name])
    with preserve_flags():
        with pytest.raises(NumericsError, match=f"{name} is '{LIMITS[name]}'.*unset it"):
            make_deterministic(threads=2)
        make_deterministic(threads=1)  # one thread is always there
        monkeypatch.setenv(name, HARMLESS[name])
        make_deterministic(threads=2)
