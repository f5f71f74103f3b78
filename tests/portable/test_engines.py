"""The engines of matrix products: the same integers, and int8 without any float64 product."""

import math
from operator import mul

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from seedless.core.errors import UnknownNameError
from seedless.portable import self_test
from seedless.portable.batch.microbatch import Split
from seedless.portable.check.compute import read_committed, train_and_hash
from seedless.portable.check.networks import INPUT_SHAPE, NETWORKS
from seedless.portable.context import CONTEXT, Context
from seedless.portable.exact.engines import ENGINES, float64, int8
from seedless.portable.exact.rounding_grid import normalize_parts
from seedless.portable.kernels.launch import find_kernels
from seedless.portable.mode import portable
from seedless.portable.ops.registry import REGISTRY
from tests.portable.reference_cases import some

CPU = torch.device("cpu")
LIMIT = 1 << 23
EDGES = (LIMIT, LIMIT - 1, 8_355_711, 8_355_712, 262_144, 4096, 64, 33, 32, 31, 1, 0)
PRODUCTS = ("mm", "bmm", "convolution", "convolution_backward")
MATRIX_OPS = {"mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "_int_mm"}
PRODUCT_KERNELS = {"add_chunk", "multiply_on_cpu"}


def make_integers(*shape):
    """Return integers of 23 bits in float64, a third of them edges of the range."""
    values = [i * 7_919_317 % (2 * LIMIT + 1) - LIMIT for i in range(math.prod(shape))]
    signed = [*EDGES, *(-edge for edge in EDGES)]
    values[::3] = [signed[i * 7 % len(signed)] for i in range(len(values[::3]))]
    return torch.tensor(values, dtype=torch.float64).view(shape)


def multiply_exactly(p, q):
    """Return the product of (batch, m, k) and (batch, k, n) in Python's integers."""
    return [
        [[sum(map(mul, row, column)) for column in b.t().long().tolist()] for row in a]
        for a, b in zip(p.long().tolist(), q, strict=True)
    ]


def join(high, low):
    parts = high.long() if low is None else high.long() + low.long()
    return parts.tolist()


@pytest.mark.parametrize("multiply_integers", [float64.multiply_integers, int8.multiply_integers])
@pytest.mark.parametrize("k", [1, 2, 127, 128, 129, 300])
@pytest.mark.parametrize(("batch", "m", "n"), [(1, 1, 1), (3, 4, 5), (1, 20, 2), (2, 1, 17)])
def test_engines_compute_the_integers_of_python(multiply_integers, batch, m, k, n):
    p, q = make_integers(batch, m, k), make_integers(batch, n, k).mT
    high, low = multiply_integers(p, q)
    assert join(high, low) == multiply_exactly(p, q)
    # Batches in parts add up what engines return: one part up to 128 addends, otherwise two.
    assert (low is None) == (k <= 128)
    assert low is None or bool((high % 4096 == 0).all())


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("k", [128, 129, 1 << 16])
def test_the_largest_sums_are_exact(name, sign, k):
    """2^23 times 2^23 in every place: 2^53 with 128 addends, 2^62 with 2^16."""
    engine = {"float64": float64, "int8": int8}[name]
    p = torch.full((1, 2, k), float(LIMIT), dtype=torch.float64)
    parts = engine.multiply_integers(p, sign * p.mT)
    assert join(*parts) == [[[sign * k * LIMIT**2] * 2] * 2]
    high, low = normalize_parts(*parts)
    assert join(high, low) == join(*parts)


def test_every_integer_of_the_range_has_its_digits():
    """All 2^24 + 1 of them: no digit is above 32, and together they are the integer."""
    for start in range(-LIMIT, LIMIT + 1, 1 << 21):
        integers = torch.arange(start, min(start + (1 << 21), LIMIT + 1), dtype=torch.float64)
        for highest_first in (False, True):
            digits = int8._list_digits(integers.view(1, 1, -1), 1, len(integers), highest_first)
            assert int(digits.min()) >= -32
            assert int(digits.max()) <= 32
            places = digits.view(4, -1).flip(0) if highest_first else digits.view(4, -1)
            whole = sum(place.to(torch.int32) * 64**i for i, place in enumerate(places))
            assert bool((whole == integers).all())


def test_pieces_of_a_long_sum_do_not_show(monkeypatch):
    p, q = make_integers(2, 3, 700), make_integers(2, 4, 700).mT
    whole = join(*int8.multiply_integers(p, q))
    monkeypatch.setattr(int8, "MAX_INT8_ADDENDS", 200)
    assert join(*int8.multiply_integers(p, q)) == whole == multiply_exactly(p, q)


def test_products_have_sizes_that_cuda_takes(monkeypatch):
    """More than 16 rows, and steps of 16 in every size and distance between rows."""
    seen, original = [], torch._int_mm

    def note(left, right):
        assert left.stride(1) == right.stride(0) == 1
        seen.append((*left.shape, right.shape[1], left.stride(0), right.stride(1)))
        return original(left, right)

    monkeypatch.setattr(torch, "_int_mm", note)
    for m, k, n in ((1, 1, 1), (17, 9, 3), (33, 130, 17)):
        int8.multiply_integers(make_integers(2, m, k), make_integers(2, n, k).mT)
    assert len(seen) == 3 * 2 * 7
    assert all(number % 16 == 0 for sizes in seen for number in sizes)
    assert all(sizes[0] > 16 for sizes in seen)


def add_pairs_in_int16(left, right):
    """Return an int8 product as processors without an int8 dot product compute it.

    The left operand is moved by 128 to make it unsigned, pairs of products are added in int16,
    which saturates, and what the 128 added is subtracted again.
    """
    pairs = (left.long()[:, :, None] + 128) * right.long()[None]
    pairs = pairs[:, ::2] + pairs[:, 1::2]
    sums = pairs.clamp(-(1 << 15), (1 << 15) - 1).sum(1) - 128 * right.long().sum(0)
    return sums.to(torch.int32)


def test_digits_are_small_enough_for_sums_of_pairs_in_int16(monkeypatch):
    p, q = make_integers(1, 5, 300), make_integers(1, 4, 300).mT
    monkeypatch.setattr(torch, "_int_mm", add_pairs_in_int16)
    assert join(*int8.multiply_integers(p, q)) == multiply_exactly(p, q)


def test_negative_control_full_int8_values_saturate_there():
    full = torch.full((1, 16), 127, dtype=torch.int8)
    assert add_pairs_in_int16(full, full.t()).item() < 16 * 127 * 127


@pytest.mark.parametrize("with_kernels", [True, False])
def test_ops_have_the_bits_of_the_float64_engine(with_kernels):
    calls = [call for call in self_test.list_calls(CPU) if call[0] in PRODUCTS]
    wide = some(6, 200, scale=1e-30)
    for special in (math.inf, math.nan, 3e38, 0.0, 1e-45):
        odd = wide.clone()
        odd[2, 7] = special
        odd[4] = 0.0
        calls += [("mm", (odd, wide.t()), {}), ("mm", (wide, odd.t()), {})]
    plain = [self_test._run(call) for call in calls]
    with CONTEXT.multiply_with("int8"):
        if with_kernels:
            found = [self_test._run(call) for call in calls]
        else:
            with CONTEXT.without_kernels():
                found = [self_test._run(call) for call in calls]
    for call, one, other in zip(calls, found, plain, strict=True):
        assert all(map(self_test._same, one, other)), call[0]


def test_a_batch_in_parts_has_the_bits_of_the_whole():
    x, results = some(40, 6, 30), []
    for engine, size in (("float64", 40), ("int8", 40), ("int8", 10)):
        net = torch.nn.Conv1d(6, 4, 3)
        for i, parameter in enumerate(net.parameters()):
            parameter.data.copy_(some(*parameter.shape, name=f"w{i}"))
        with CONTEXT.multiply_with(engine), portable():
            Split(net.parameters(), size).step(net, lambda out, x: out.square().mean(), x)
        results.append([parameter.grad for parameter in net.parameters()])
    assert all(map(torch.equal, results[0], results[1]))
    assert all(map(torch.equal, results[0], results[2]))


class Counter(TorchDispatchMode):
    """Counts the matrix products that torch computes, by type; also those of implementations."""

    def __init__(self):
        super().__init__()
        self.counts = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket.__name__ in MATRIX_OPS:
            dtype = next(x.dtype for x in args if isinstance(x, torch.Tensor))
            self.counts[dtype] = self.counts.get(dtype, 0) + 1
        return func(*args, **(kwargs or {}))


def count_products(engine, monkeypatch):
    """Train a step and compute each op that multiplies; return digests, products and kernels."""
    launched = []
    kernels = find_kernels(CPU)
    if kernels is not None:
        original = kernels.launch
        monkeypatch.setattr(
            *(kernels, "launch"),
            lambda name, *rest: (launched.append(name), original(name, *rest)),
            raising=False,
        )
    with CONTEXT.multiply_with(engine), Counter() as counter:
        fit = train_and_hash("transformer", NETWORKS["transformer"](), INPUT_SHAPE, steps=1)
        for call in self_test.list_calls(CPU):
            if call[0] in PRODUCTS:
                self_test._run(call)
        with CONTEXT.without_kernels(), portable():
            F.conv_transpose1d(some(2, 4, 9), some(4, 3, 3, name="w"))
            some(300, 300) @ some(300, 300)
    monkeypatch.undo()
    return fit, counter.counts, launched


def test_int8_computes_no_float64_product(monkeypatch):
    fit, counts, launched = count_products("int8", monkeypatch)
    shipped = read_committed()["models"]["transformer"]
    assert fit.digests == (shipped["digests"][0],)
    assert fit.traces == (shipped["traces"][0],)
    assert set(counts) == {torch.int8}
    assert PRODUCT_KERNELS.isdisjoint(launched)


def test_negative_control_float64_computes_them(monkeypatch):
    _, counts, launched = count_products("float64", monkeypatch)
    assert set(counts) == {torch.float64}
    computed = counts[torch.float64] + sum(name in PRODUCT_KERNELS for name in launched)
    assert computed > 20
    assert find_kernels(CPU) is None or PRODUCT_KERNELS & set(launched)


def test_the_environment_variable_names_the_engine(monkeypatch):
    monkeypatch.delenv("SEEDLESS_ENGINE", raising=False)
    assert Context().engine == "auto"
    monkeypatch.setenv("SEEDLESS_ENGINE", "int8")
    assert Context().engine == "int8"
    assert not Context().multiplies_in_float64(CPU)


def test_an_unknown_engine_is_refused_with_the_known_ones():
    with (
        CONTEXT.multiply_with("int4"),
        pytest.raises(
            UnknownNameError, match=r"SEEDLESS_ENGINE 'int4'.*known: auto, float64, int8"
        ),
        portable(),
    ):
        pass
    with CONTEXT.multiply_with("int4"), pytest.raises(UnknownNameError, match="SEEDLESS_ENGINE"):
        REGISTRY["aten::mm"](some(2, 3), some(3, 2))


def test_tensors_without_memory_have_their_shapes():
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    left, right = (mode.from_tensor(x) for x in (some(4, 5), some(5, 3)))
    with CONTEXT.multiply_with("int8"):
        assert REGISTRY["aten::mm"](left, right).shape == (4, 3)


def test_onednn_is_on_for_int8_products_alone(monkeypatch):
    seen, original = [], torch._int_mm

    def note(*given):
        seen.append(bool(torch.backends.mkldnn.enabled))
        return original(*given)

    monkeypatch.setattr(torch, "_int_mm", note)
    with CONTEXT.multiply_with("int8"), portable():
        assert not torch.backends.mkldnn.enabled
        some(3, 4) @ some(4, 2)
        assert not torch.backends.mkldnn.enabled
    assert seen
    assert all(seen)
