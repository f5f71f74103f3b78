"""Fused kernels: the bits of ops one by one, wherever they are used; and what would break that."""

import ctypes
import math
import shutil
import warnings
from pathlib import Path

import pytest
import torch

from seedless.portable import self_test
from seedless.portable.check.compute import OPS, hash_op, read_committed
from seedless.portable.context import CONTEXT
from seedless.portable.kernels import cpu, cuda, kernel_cache, launch, products
from seedless.portable.kernels.launch import find_kernels
from seedless.portable.kernels.source import write_source
from seedless.portable.mode import portable
from seedless.portable.ops.registry import REGISTRY
from seedless.portable.test_inputs import EDGES
from tests.portable.reference_cases import some

CPU = torch.device("cpu")
HARD = torch.tensor([*EDGES, math.inf, -math.inf, math.nan, 3e38, -3e38], dtype=torch.float32)

needs_kernels = pytest.mark.skipif(
    find_kernels(CPU) is None, reason="no C compiler here to make kernels with"
)


def same_bits(one, other):
    return one.shape == other.shape and self_test._same(one, other)


def run_both(name, *args):
    """Return what an op gives with kernels and without; what it writes into is copied before."""
    results = []
    for fused in (True, False):
        given = [x.clone() if isinstance(x, torch.Tensor) else x for x in args]
        calls = []
        kernels = find_kernels(CPU)
        original = kernels.launch
        kernels.launch = lambda kernel, *rest, to=original, seen=calls: (
            seen.append(kernel),
            to(kernel, *rest),
        )
        try:
            if fused:
                out = REGISTRY[f"aten::{name}"](*given)
                assert calls, f"{name} used no kernel"
            else:
                with CONTEXT.without_kernels():
                    out = REGISTRY[f"aten::{name}"](*given)
                assert not calls
        finally:
            del kernels.launch
        listed = list(out) if isinstance(out, tuple | list) else [out]
        results.append([*listed, *(x for x in given if isinstance(x, torch.Tensor))])
    return results


def agree(name, *args):
    fused, plain = run_both(name, *args)
    assert len(fused) == len(plain)
    return all(
        same_bits(one, two) for one, two in zip(fused, plain, strict=True) if one is not None
    )


@needs_kernels
@pytest.mark.parametrize("name", ["gelu", "silu", "exp", "sigmoid", "relu"])
def test_functions_of_hard_numbers(name):
    assert agree(name, HARD)
    assert agree(name, some(17, 31, scale=20.0))
    assert agree(name, some(17, 31, scale=1e-30).t())
    assert agree(name, some(40_000, scale=8.0))  # several threads


@needs_kernels
@pytest.mark.parametrize("name", ["gelu_backward", "silu_backward", "threshold_backward"])
def test_gradients_of_hard_numbers(name):
    more = (0,) if name == "threshold_backward" else ()
    assert agree(name, HARD.flip(0), HARD, *more)
    assert agree(name, some(17, 31), some(31, 17, name="b").t(), *more)
    assert agree(name, some(1, 31).expand(17, 31), some(17, 31, name="b"), *more)


@needs_kernels
@pytest.mark.parametrize("scale", [1e-44, 1e-30, 1.0, 1e25])
@pytest.mark.parametrize("special", [None, math.inf, -math.inf, math.nan])
def test_rows(scale, special):
    x = some(20, 33, scale=scale)
    grad = some(20, 33, name="g", scale=scale)
    if special is not None:
        x[3, 5] = special
        grad[7, 1] = special
    w, v = some(33, name="w"), some(33, name="v")
    assert agree("native_layer_norm", x, [33], w, v, 1e-5)
    assert agree("native_layer_norm", x, [33], None, None, 1e-5)
    stats = (some(20, 1, name="m", scale=scale), some(20, 1, name="s"))
    for weight in (w, None):
        assert agree("native_layer_norm_backward", grad, x, [33], *stats, weight, v, [True] * 3)
    assert agree("_softmax", x, 1, False)
    assert agree("_softmax", torch.where(x > 0, x, -math.inf), 1, False)
    assert agree("_softmax_backward_data", grad, x, 1, torch.float32)
    assert agree("sum.dim_IntList", x, [0])
    assert agree("mm", x, grad.t())
    assert agree("mm", x.t(), grad)


@needs_kernels
@pytest.mark.parametrize("scale", [1e-40, 1.0, 1e20])
@pytest.mark.parametrize("last", [False, True])
def test_batch_norms_in_both_layouts(scale, last):
    x, grad = some(5, 70, 6, scale=scale), some(5, 70, 6, name="g")
    if last:
        x = x.transpose(1, 2).contiguous().transpose(1, 2)
    w, v = some(70, name="w"), some(70, name="v")
    stats = (some(70, name="m"), some(70, name="r", shift=4.0))
    assert agree("native_batch_norm", x, w, v, *stats, True, 0.1, 1e-5)
    assert agree("native_batch_norm", x, None, None, None, None, True, 0.1, 1e-5)
    kept = (some(70, name="c", scale=scale), some(70, name="d"))
    for weight in (w, None):
        given = (grad, x, weight, *stats, *kept, True, 1e-5, [True] * 3)
        assert agree("native_batch_norm_backward", *given)


@needs_kernels
@pytest.mark.parametrize("k", [1, 2, 127, 128, 129, 1000])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 70), (70, 3), (40, 40)])
def test_products_in_every_layout(k, m, n):
    for left in (some(m, k, scale=9.0), some(k, m, scale=9.0).t(), some(m, 2 * k)[:, ::2]):
        for right in (some(k, n, name="b"), some(n, k, name="b").t(), some(2 * k, n)[k:]):
            with CONTEXT.without_kernels():
                plain = REGISTRY["aten::mm"](left, right)
            assert same_bits(REGISTRY["aten::mm"](left, right), plain)


@needs_kernels
def test_batches_of_products_in_every_layout():
    for left in (some(6, 9, 150), some(6, 150, 9).mT, some(1, 9, 150).expand(6, 9, 150)):
        for right in (some(6, 150, 8, name="b"), some(6, 8, 150, name="b").mT):
            with CONTEXT.without_kernels():
                plain = REGISTRY["aten::bmm"](left, right)
            assert same_bits(REGISTRY["aten::bmm"](left, right), plain)


@needs_kernels
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("stride", "padding", "dilation"), [((1, 1), (1, 1), (1, 1)), ((2, 3), (0, 2), (2, 1))]
)
def test_convolutions(groups, stride, padding, dilation):
    x, weight = some(3, 4, 11, 70), some(6, 4 // groups, 3, 2, name="w")
    settings = (stride, padding, dilation)
    given = (*map(list, settings), False, [0, 0], groups)
    fused, plain = run_both("convolution", x, weight, None, *given)
    assert same_bits(fused[0], plain[0])
    grad = torch.flip(plain[0], [0])
    assert agree("convolution_backward", grad, x, weight, None, *given, [True, True, False])
    assert agree("convolution", grad, weight, None, *map(list, settings), True, [0, 0], groups)


@needs_kernels
def test_blocks_do_not_show(monkeypatch):
    x, weight = some(9, 4, 11, 7), some(6, 4, 3, 3, name="w")
    given = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    whole = REGISTRY["aten::convolution"](x, weight, None, *given)
    back = REGISTRY["aten::convolution_backward"](
        whole, x, weight, None, *given, [True, True, False]
    )
    product = REGISTRY["aten::mm"](some(50, 300), some(300, 40))
    monkeypatch.setattr(products, "MAX_BLOCK_ELEMENTS", 2000)
    assert same_bits(REGISTRY["aten::convolution"](x, weight, None, *given), whole)
    again = REGISTRY["aten::convolution_backward"](
        whole, x, weight, None, *given, [True, True, False]
    )
    assert all(map(same_bits, again[:2], back[:2]))
    assert same_bits(REGISTRY["aten::mm"](some(50, 300), some(300, 40)), product)


@needs_kernels
def test_kernels_agree_with_ops_one_by_one_here():
    assert self_test.find_differing(CPU) == []


def compile_with(tmp_path, *changes, flags=()):
    """Return the library made from a text with something in it replaced, by other flags."""
    text = write_source()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    kept = tuple(flag for flag in cpu.FLAGS if not any(flag.split("=")[0] in f for f in flags))
    path = tmp_path / "kernels.so"
    before, cpu.FLAGS = cpu.FLAGS, (*kept, *flags)
    try:
        cpu.compile_library(shutil.which("cc"), text, path)
    finally:
        cpu.FLAGS = before
    return launch.CpuKernels(ctypes.CDLL(str(path)))


WEAK = {
    "a library's exponential": (
        ("double out = rest * EXP_6 + EXP_5;", "return exp((float)x); double out = 0.0;"),
    ),
    "a sum in float32": (
        ("sum += rint((double)row[j] * up);", "sum = (float)(sum + (double)row[j] * up);"),
    ),
    "one rounding instead of three": (
        ("return old_part + new_part;", "return old * (1.0 - momentum) + now * momentum;"),
    ),
}


@needs_kernels
@pytest.mark.parametrize("name", sorted(WEAK))
def test_negative_control_a_weak_kernel_is_found_and_not_used(name, tmp_path, monkeypatch):
    library = compile_with(tmp_path, *WEAK[name])
    monkeypatch.setattr(launch, "load_cpu_kernels", lambda: library)
    monkeypatch.setattr(CONTEXT, "tested_devices", set())
    monkeypatch.setattr(CONTEXT, "rejected_devices", set())
    with pytest.warns(RuntimeWarning, match="other bits than the ops they replace"):
        self_test.check_kernels_once(CPU)
    assert find_kernels(CPU) is None


@needs_kernels
def test_negative_control_contraction_is_found(tmp_path, monkeypatch):
    if "fma" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no fused multiply-add")
    library = compile_with(tmp_path, flags=("-ffp-contract=fast",))
    monkeypatch.setattr(launch, "load_cpu_kernels", lambda: library)
    assert self_test.find_differing(CPU)


@pytest.mark.parametrize("name", ["gelu", "layer_norm", "softmax", "conv2d", "mm", "sum"])
def test_without_kernels_the_digests_are_the_shipped_ones(name):
    with CONTEXT.without_kernels():
        assert hash_op(name, OPS[name], CPU) == read_committed()["ops"][name]


def test_without_a_compiler_ops_are_computed_one_by_one(monkeypatch):
    monkeypatch.setattr(cpu.shutil, "which", lambda _: None)
    launch.load_cpu_kernels.cache_clear()
    try:
        assert find_kernels(CPU) is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with portable():
                out = torch.nn.functional.gelu(some(9))
    finally:
        monkeypatch.undo()
        launch.load_cpu_kernels.cache_clear()
    with portable():
        assert same_bits(torch.nn.functional.gelu(some(9)), out)


def test_a_compiler_that_fails_is_no_error(monkeypatch, tmp_path):
    monkeypatch.setattr(cpu.shutil, "which", lambda _: "/bin/false")
    launch.load_cpu_kernels.cache_clear()
    try:
        assert cpu.load_library() is None
    finally:
        monkeypatch.undo()
        launch.load_cpu_kernels.cache_clear()


def test_the_text_for_cuda_contracts_nothing():
    try:
        nvrtc = cuda.find_nvrtc()
    except OSError:
        pytest.skip("no NVRTC here")
    text = cuda.compile_binary(nvrtc, write_source(), "compute_90", "PTX").decode()
    assert "mul.rn.f64" in text
    assert not any(word in text for word in ("fma.", "mad.rn", ".ftz", ".approx"))


def test_kernels_are_cached_in_a_folder_that_can_be_written(monkeypatch, tmp_path):
    made = []

    def make(path):
        made.append(path)
        path.write_bytes(b"kernels")

    for place in (tmp_path / "cache", Path("/proc/nowhere")):  # the second cannot be written
        monkeypatch.setenv("SEEDLESS_CACHE", str(place))
        kernel_cache.find_folder.cache_clear()
        files = [
            kernel_cache.find_or_build(known, ".so", make) for known in (b"one", b"one", b"two")
        ]
        assert files[0] == files[1] != files[2]
        assert all(file.read_bytes() == b"kernels" for file in files)
        assert sorted(files[0].parent.iterdir()) == sorted(files[1:])
        assert (place in files[0].parents) == place.exists()
    assert len(made) == 4
    kernel_cache.find_folder.cache_clear()
