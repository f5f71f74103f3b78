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
from seedless.portable.exact.product import multiply_and_round
from seedless.portable.kernels import fused_product, launch
from seedless.portable.kernels.launch import COLUMN_THREADS, LaunchShape
from tests.portable.emulation import library, odd_sizes
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
def as_cuda(emulated):
    with library.send_to(emulated):
        yield emulated


def test_every_kernel_agrees_with_ops_one_by_one(as_cuda):
    assert self_test.find_differing(CPU) == []
    cpu_only = {"add_chunk"}
    unused = set(as_cuda.names) - set(as_cuda.launched) - cpu_only
    assert unused <= {
        "row_exponents_f64",
        "column_maxima_f64",
        "column_sums_f64",
        "scale_sums_f32",
    } | {"exponents_f64", "round_rows_f64", "round_columns_f64"}


def test_threads_and_blocks_in_the_other_order_give_the_same_bits(as_cuda):
    with as_cuda.in_order(backwards=True):
        assert self_test.find_differing(CPU) == []


BARRIERS = {  # a line before a barrier, without it an order in which threads read too early
    "multiply_f32": "write_slab((double *)slab_y, read_y, up[1], row_y, k_y);\n",
    "product_exponents": "held[ty][tx] = top;\n",
    "column sums": "if (width) held[threadIdx.y][threadIdx.x] = *seen;",
}


@pytest.mark.parametrize("kernel", BARRIERS)
def test_negative_control_a_missing_barrier_is_found(kernel, tmp_path, monkeypatch):
    if shutil.which("g++") is None:
        pytest.skip("needs a C++ compiler")
    head, found, tail = library.write_source().partition(BARRIERS[kernel])
    assert found
    weak = head + found + tail.replace("__syncthreads();", "", 1)
    monkeypatch.setattr(library, "write_source", lambda: weak)
    with library.send_to(Emulated(tmp_path)) as kernels:
        differing = []
        for backwards in (False, True):
            with kernels.in_order(backwards=backwards):
                differing += self_test.find_differing(CPU)
    assert differing


@pytest.mark.parametrize("backwards", [False, True])
def test_odd_sizes(as_cuda, backwards):
    with as_cuda.in_order(backwards=backwards):
        assert odd_sizes.find_differing() == []
    assert {"gelu", "layer_norm", "adam", "multiply_f32", "join_splits"} <= set(as_cuda.launched)


def test_no_kernel_reads_or_writes_beyond_a_tensor():
    """AddressSanitizer ends the process where one does; the negative control writes one further."""
    if not odd_sizes.find_sanitizer():
        pytest.skip("needs g++ with AddressSanitizer")
    assert odd_sizes.run_sanitized().stdout.split() == ["same"]
    wrong = odd_sizes.run_sanitized("y[i] = (float)gelu_of", "y[i + 1] = (float)gelu_of")
    assert "heap-buffer-overflow" in wrong.stderr
    assert "in gelu" in wrong.stderr


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
    monkeypatch.setattr(as_cuda, "multiplies_tiles", False)  # fused products have one shape alone
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


def make_hostile(rows, columns, name):
    """Return rows from denormal to huge, of zeros, of one magnitude, with infinity and with NaN."""
    x = some(rows, columns, name=name)
    x *= torch.logspace(-44, 37, rows, dtype=torch.float64).to(torch.float32)[:, None]
    x[1] = 0.0
    x[2] = torch.finfo(torch.float32).max
    x[3] = 2.0**-149
    x[4, columns // 2] = torch.inf
    x[5, columns - 1] = torch.nan
    x[6] = torch.tensor([1.0, 0.5, 1.5, 2.5]).repeat(columns)[:columns] * 2.0**-23
    x[6, 0] = 1.0 - 2.0**-24  # the grid's step is 2^-23: the others lie half way, ties to even
    x[7] = -1.0 + 2.0**-24  # rounds up to 2^23 itself
    return x


@pytest.mark.parametrize(("m", "n", "k"), [(70, 66, 17), (9, 9, 1), (9, 9, 130), (9, 9, 530)])
def test_a_fused_product_of_hostile_rows(as_cuda, m, n, k):
    left, right = make_hostile(m, k, "l"), make_hostile(n, k, "r")
    for x in (left, left.t().contiguous().t()):
        for y in (right.t(), right.t().contiguous()):
            fused = fused_product.multiply(x[None], y[None])
            with CONTEXT.without_kernels():
                plain = multiply_and_round(x[None], y[None])
            assert self_test._same(fused, plain)
    assert ("join_splits" in as_cuda.launched) == (k > 512)


def test_sums_of_all_parts_are_rounded_once(as_cuda):
    """Their sum may need more than 63 bits; Python's integers say what it rounds to."""
    parts = torch.randint(-(1 << 62), 1 << 62, (5, 60), generator=torch.Generator().manual_seed(0))
    parts[:, 0] = 1 << 62
    parts[:, 1] = -(1 << 62)
    parts[:, 2] = torch.tensor([1 << 60, 0, 0, 0, 1])
    grids = torch.full((60,), 23)  # a step of one
    whole = torch.empty(60, dtype=torch.float64)
    arrays = (parts, grids[:1], grids, None, None, whole)
    launch.launch("join_splits", CPU, launch.shape_map(60), *arrays, 5, 1, 1, 60, 0, 0, 0)
    expected = [float(sum(column)) for column in parts.t().tolist()]
    assert whole.tolist() == expected


def test_negative_control_a_chunk_too_long_is_found(as_cuda, tmp_path, monkeypatch):
    """With sums of more than 128 products in float64, the last bits are lost."""
    real = library.write_source
    assert "#define CHUNK 128" in real()
    wrong = lambda: real().replace("#define CHUNK 128", "#define CHUNK 1024")  # noqa: E731
    monkeypatch.setattr(library, "write_source", wrong)
    x = 1.0 - 2.0**-23 * torch.arange(9 * 300).view(1, 9, 300)  # near the largest integers
    right = fused_product.multiply_in_float64(x, x.mT)
    weak = library.Emulated(tmp_path)
    monkeypatch.setattr(launch, "load_cpu_kernels", lambda: weak)
    assert not torch.equal(fused_product.multiply_in_float64(x, x.mT), right)
