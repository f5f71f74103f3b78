"""The kernels as CUDA has them, run on a CPU: how blocks and threads share work, with no GPU."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from seedless.portable import self_test
from seedless.portable.context import CONTEXT
from seedless.portable.kernels import launch, products
from seedless.portable.kernels.launch import COLUMN_THREADS, LaunchShape
from tests.portable.emulation.library import Emulated
from tests.portable.reference_cases import some

CPU = torch.device("cpu")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("needs a C++ compiler")
    return Emulated(tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def as_cuda(emulated, monkeypatch):
    """Send what CUDA would compute to the emulated kernels; products there are not in products."""
    monkeypatch.setattr(launch, "load_cpu_kernels", lambda: emulated)
    monkeypatch.setattr(products, "is_ready", lambda *_: False)
    monkeypatch.setattr("seedless.portable.exact.product.MIN_CHUNKED_ELEMENTS", 1 << 40)
    emulated.launched.clear()
    return emulated


def test_every_kernel_agrees_with_ops_one_by_one(as_cuda):
    assert self_test.find_differing(CPU) == []
    cpu_only = {"add_chunk", "chunk_rows", "chunk_columns", "join_chunks"}
    unused = set(as_cuda.names) - set(as_cuda.launched) - cpu_only
    assert unused <= {
        "row_exponents_f64",
        "column_maxima_f64",
        "column_sums_f64",
        "scale_sums_f32",
    } | {"exponents_f64", "round_rows_f64", "round_columns_f64"}


@pytest.mark.parametrize("across", [1, 3])
@pytest.mark.parametrize("down", [1, 5])
def test_any_share_of_the_work_gives_the_same_bits(as_cuda, monkeypatch, across, down):
    real = as_cuda.launch

    def shared(name, work, args):
        high = 2 if work.threads_y > 1 else 1
        real(
            name,
            LaunchShape(across, down if work.threads_y == COLUMN_THREADS else 1, 32, high),
            args,
        )

    monkeypatch.setattr(as_cuda, "launch", shared)
    assert self_test.find_differing(CPU) == []


def test_a_barrier_that_some_threads_never_reach_is_found(tmp_path):
    """Negative control: threads without a column leave before the others wait for them."""
    code = (
        "import torch; from pathlib import Path\n"
        "from tests.portable.emulation import library\n"
        "real = library.write_source\n"
        "old = 't - threadIdx.x < (n);'\n"
        "assert old in real()\n"
        "library.write_source = lambda: real().replace(old, 't < (n);')\n"
        "from seedless.portable.kernels.launch import LaunchShape, convert_argument\n"
        f"kernels = library.Emulated(Path({str(tmp_path)!r}))\n"
        "given = (torch.ones(4, 40), torch.zeros(40, dtype=torch.int64), 1, 4, 40, 0, 40)\n"
        "args = [convert_argument(value) for value in given]\n"
        "kernels.launch('column_maxima_f32', LaunchShape(2, 1, 32, 2), args)\n"
    )
    if shutil.which("g++") is None:
        pytest.skip("needs a C++ compiler")
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == -signal.SIGABRT, run.stderr


def test_longer_rows_and_columns(as_cuda):
    from seedless.portable.ops.registry import REGISTRY

    x, grad = some(130, 300), some(130, 300, name="g")
    calls = [
        ("_softmax", x, 1, False),
        ("sum.dim_IntList", x, [0]),
        ("mm", x, grad.t()),
        ("native_batch_norm", x, None, None, None, None, True, 0.1, 1e-5),
        ("native_layer_norm", x, [300], None, None, 1e-5),
    ]
    for name, *given in calls:
        fused = REGISTRY[f"aten::{name}"](*given)
        with CONTEXT.without_kernels():
            plain = REGISTRY[f"aten::{name}"](*given)
        pairs = zip(fused, plain, strict=True) if isinstance(fused, tuple) else [(fused, plain)]
        assert all(self_test._same(one, other) for one, other in pairs), name
