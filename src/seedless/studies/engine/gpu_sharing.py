"""Several runs at once on one GPU, through NVIDIA's multi-process service (MPS).

Without the service, kernels of different processes take turns on the GPU. With it they run at the
same time: 8 processes that train the conformer made 119 steps a second together, where one alone
made 71 and 8 without the service 68. No bit depends on it.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

CONTROL = "nvidia-cuda-mps-control"
PIPE, LOG = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
SERVICE_SECONDS = 60.0  # that the service may take to start or to answer
# It ends when its last client has ended, which may be this process: nobody waits longer for that.
STOP_SECONDS = 10.0
GPU_TEST = "import torch; torch.zeros(1, device='cuda').add_(1).cpu()"

Say = Callable[[str], None]


@contextmanager
def share_gpus(runs_per_device: int, *, on_cuda: bool, say: Say) -> Iterator[bool]:
    """Start a service of our own while the block runs, and end it after; yield whether one is used.

    Where a service cannot be used the block runs all the same. ``say`` is called with what was
    done, in words.

    Args:
        runs_per_device: how many runs share a GPU; for one alone no service is needed.
        on_cuda: whether any run is executed on a GPU.
    """
    if runs_per_device < 2 or not on_cuda:
        yield False
        return
    if PIPE in os.environ:
        say(f"several runs share a GPU through the service that {PIPE} names")
        yield True
        return
    if shutil.which(CONTROL) is None:
        say(f"several runs take turns on a GPU: this machine has no {CONTROL}")
        yield False
        return
    with TemporaryDirectory(prefix="seedless-mps-") as folder:
        variables = {PIPE: folder, LOG: folder}
        environment = {**os.environ, **variables}
        problem = _start(environment)
        if problem:
            say(f"several runs take turns on a GPU: {CONTROL} could not be used ({problem})")
            yield False
            return
        say(f"several runs share a GPU through {CONTROL}, started here")
        os.environ.update(variables)  # the workers inherit them
        try:
            yield True
        finally:
            for name in variables:
                del os.environ[name]
            problem = _stop(environment)
            say(f"{CONTROL} was ended" if not problem else f"{CONTROL} did not end: {problem}")


def _start(environment: dict[str, str]) -> str:
    """Start the service and use the GPU through it once; return what went wrong, or ""."""
    problem = _call([CONTROL, "-d"], environment)
    if problem:
        return problem
    problem = _call([sys.executable, "-P", "-c", GPU_TEST], environment)
    if problem:
        _stop(environment)
    return problem


def _stop(environment: dict[str, str]) -> str:
    return _call([CONTROL], environment, "quit\n", STOP_SECONDS)


def _call(
    command: list[str],
    environment: dict[str, str],
    text: str = "",
    seconds: float = SERVICE_SECONDS,
) -> str:
    """Run a command; return the last line of its output if it failed, or ""."""
    try:
        done = subprocess.run(
            command,
            input=text,
            env=environment,
            timeout=seconds,
            capture_output=True,
            text=True,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = (done.stderr + done.stdout).strip().splitlines()
    return "" if done.returncode == 0 else (lines or [f"exit code {done.returncode}"])[-1]
