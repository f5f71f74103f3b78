"""The candidate of a fused block: its plan of tiles, its counts, its record; no kernel is run."""

import copy
import json
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.fused_block import choices, estimate
from benchmarks.fused_block.block import list_weights, run_block, view_gradients
from benchmarks.fused_block.checks import compare, hash_tensors, make_block, make_inputs, run_twin
from benchmarks.fused_block.flat_optimizer import flatten
from benchmarks.fused_block.images import ProductConv2d, use_products
from benchmarks.fused_block.record import Record
from benchmarks.fused_block.resources import hash_sources, list_kernels
from benchmarks.fused_block.settings import BLOCKS, LENGTH, WIDTH, Settings
from benchmarks.fused_block.tiles import (
    REACH,
    BlockShape,
    Variant,
    check_variant,
    count_weights,
    list_gradients,
    list_shapes,
    plan_tiles,
    split_width,
)
from seedless.core.config import TrainConfig
from seedless.models import build
from seedless.models.conformer import Bottleneck
from seedless.models.layers import set_weight_layout
from seedless.train.optimizer import apply_step, make_optimizer

CPU = torch.device("cpu")
SHAPES = [
    *list_shapes(WIDTH, BLOCKS, LENGTH),
    BlockShape(1, 1),
    BlockShape(2, 2),
    BlockShape(17, 2),
    BlockShape(6, 1),
]


def test_the_shapes_are_those_of_the_full_size_conformer():
    model = build("conformer")
    seen: dict[tuple[int, int], int] = {}

    def note(block, arguments):
        key = (arguments[0].shape[1], block.convolve.stride[0])
        seen[key] = seen.get(key, 0) + 1
        assert arguments[0].shape[2] == block.narrow.in_channels == 4 * WIDTH

    for module in model.modules():
        if isinstance(module, Bottleneck):
            module.register_forward_pre_hook(note)
    with torch.no_grad():
        model(torch.zeros(1, 12, LENGTH))
    found = {(shape.length, shape.stride): shape.count for shape in SHAPES[:5]}
    assert found == seen
    assert sum(found.values()) == 30


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_row_has_one_owner_and_what_a_tile_reads_fits(shape):
    for tile in {1, 2, 3, shape.bins // 2, shape.bins - 1, shape.bins} - {0}:
        if tile > shape.bins:
            continue
        plan = plan_tiles(shape, tile)
        owned_out, owned_in = [], []
        for number in range(plan.tiles):
            out = range(number * tile, min((number + 1) * tile, shape.bins))
            inputs = range(
                number * tile * shape.stride, min((number + 1) * tile * shape.stride, shape.length)
            )
            owned_out += out
            owned_in += inputs
            # What the kernels address: rows from these starts, as many as the plan says.
            first_in = max(out[0] * shape.stride - REACH, 0)
            first = max(out[0] - REACH, 0)
            for t in out:
                for tap in range(-REACH, REACH + 1):
                    row = t * shape.stride + tap
                    if 0 <= row < shape.length:
                        assert 0 <= row - first_in < plan.input_rows
            for row in inputs:
                assert row - inputs[0] < plan.input_rows
                for t in range(shape.bins):
                    low, high = t * shape.length // shape.bins, (t + 1) * shape.length - 1
                    in_bin = low <= row <= high // shape.bins
                    if abs(t * shape.stride - row) <= REACH or (shape.stride > 1 and in_bin):
                        assert 0 <= t - first < plan.output_rows
        assert owned_out == list(range(shape.bins))
        assert owned_in == list(range(shape.length))


def test_a_bin_of_the_skip_has_at_most_one_sample_more_than_the_stride():
    for shape in SHAPES:
        for t in range(shape.bins):
            low = t * shape.length // shape.bins
            high = ((t + 1) * shape.length - 1) // shape.bins
            assert high - low + 1 <= (1 if shape.stride == 1 else shape.stride + 1)


def test_tiles_and_variants_that_cannot_be_computed_are_refused():
    shape = BlockShape(63, 1)
    for tile in (0, 64):
        with pytest.raises(ValueError, match="expected a tile of 1 to 63 rows"):
            plan_tiles(shape, tile)
    for variant, message in (
        (Variant(63, chunk=64), "divides 160 channels"),
        (Variant(63, warps=3), "warps to be a power of two"),
        (Variant(63, inner=8), "at least 16"),
    ):
        with pytest.raises(ValueError, match=message):
            check_variant(shape, variant)
    check_variant(shape, Variant(63))


@pytest.mark.parametrize("width", [1, 8, 16, 31, 32, 40, 63])
def test_two_powers_of_two_cover_a_width(width):
    first, rest = split_width(width)
    assert first <= width <= first + rest
    assert first & (first - 1) == rest & (rest - 1) == 0


def test_the_flat_gradient_has_the_weights_of_a_block_in_their_shapes_and_layouts():
    shape = BlockShape(9, 1, 32, 8)
    block = make_block(shape, CPU)
    weights = list_weights(block)
    assert count_weights(32, 8) == sum(weight.numel() for weight in block.parameters())
    assert len(weights) == len(list(block.parameters()))
    flat = torch.arange(float(count_weights(32, 8)))
    for weight, view in zip(weights, view_gradients(flat, shape), strict=True):
        assert view.shape == weight.shape
        assert [*view.stride()][: 1 + (view.ndim == 3)] == [*weight.stride()][
            : 1 + (view.ndim == 3)
        ]
    # Tap 3 from input 5 to output 2 is where the kernel writes it: (out, tap, in) after `narrow`.
    taps = view_gradients(flat, shape)[1]
    assert taps[2, 5, 3] == 8 * 32 + 2 * 5 * 8 + 3 * 8 + 5
    assert list(list_gradients(32, 8)) == [name for name, _ in sorted_names(block)]


def sorted_names(block):
    names = dict(block.named_parameters())
    return [(name, names[name]) for name in list_gradients(32, 8)]


def test_the_operations_are_those_that_torch_counts():
    shape, samples = BlockShape(17, 2, 32, 8), 3
    block, (x, _) = make_block(shape, CPU), make_inputs(shape, 3, CPU)
    with FlopCounterMode(display=False) as counter:
        block(x)
    work = estimate.count_forward(shape, samples, Variant(9), "fp32")
    assert work.operations == counter.get_total_flops()
    assert work.padded_operations > work.operations


def test_the_bytes_of_a_small_block_counted_by_hand():
    shape, samples = BlockShape(4, 1, 32, 8), 1
    weights = 2 * 32 * 8 + 5 * 8 * 8 + 2 * 8 + 3 * 32
    work = estimate.count_forward(shape, samples, Variant(4), "fp32")
    assert work.bytes == 4 * (3 * 4 * 32 + 2 * 4 * 8 + weights + 2 * 4)
    half = estimate.count_forward(shape, samples, Variant(4), "bf16")
    assert work.bytes - half.bytes == 2 * (2 * 4 * 8)
    back = estimate.count_backward(shape, samples, Variant(2), "fp32")
    assert back.bytes == 4 * (4 * 4 * 32 + 2 * 4 * 8 + 2 * weights + 2 * 2 * weights + 2 * 4)
    row = estimate.estimate_shape(replace(shape, count=3), 1, (Variant(4), Variant(4)), "tf32")
    floors = row["forward_floor_ms"] + row["backward_floor_ms"]
    assert row["all_blocks_floor_ms"] == pytest.approx(3 * floors)
    assert row["forward_floor_ms"] == pytest.approx(1e3 * work.bytes / estimate.BYTES_PER_SECOND)


def test_a_variant_that_spills_is_no_candidate_and_a_known_one_is_the_choice(monkeypatch):
    shape, spills = BlockShape(63, 1), {}
    everything = choices.list_all_variants(shape)
    monkeypatch.setattr(choices, "read_spills", lambda: spills)

    def candidates():
        return choices.list_variants(shape, "tf32", "backward")

    def key(number):
        return ("backward", "63", "tf32", everything[number])

    assert candidates() == everything
    spills[key(2)] = 0  # compiled, and does not spill
    assert candidates() == [everything[2], *everything[:2], *everything[3:]]
    spills[key(0)] = 24
    assert candidates() == [everything[2], everything[1], *everything[3:]]
    assert choices.choose_variants(shape, "tf32") == (everything[0], everything[2])
    assert choices.choose_variants(shape, "tf32x3") == (everything[0], everything[2])
    spills |= {key(number): 100 + number for number in range(len(everything))}
    assert candidates() == everything[:1]


def test_the_committed_record_of_resources_is_of_these_kernels():
    rows = json.loads(choices.RESOURCES.read_text())["rows"]
    assert {row["source"] for row in rows} == {hash_sources()}
    known = {
        (kernel, shape.name, precision, variant)
        for kernel, shape, variant, precision in list_kernels()
    }
    spills = choices.read_spills()
    assert spills.keys() <= known
    for shape, precision in Settings("cpu", False, 1.0).each_shape():
        chosen = zip(choices.KERNELS, choices.choose_variants(shape, precision), strict=True)
        assert [spills[kernel, shape.name, precision, one] for kernel, one in chosen] == [0, 0]


def test_every_fixed_choice_can_be_computed():
    for small in (True, False):
        for shape, precision in Settings("cpu", small, 1.0).each_shape(more=True):
            for variant in choices.choose_variants(shape, precision):
                check_variant(shape, variant)


def test_the_small_command_asks_for_the_interpreter(run_python, tmp_path):
    arguments = ("-m", "benchmarks.fused_block", "--small", "--out", str(tmp_path / "out.json"))
    done = run_python(*arguments, check=False, TRITON_INTERPRET=0)
    assert done.returncode == 2
    assert "set TRITON_INTERPRET=1" in done.stderr


def test_without_triton_the_block_says_so(monkeypatch):
    monkeypatch.setattr("benchmarks.fused_block.block.triton", None)
    block, (x, _) = make_block(BlockShape(9, 1, 32, 8), CPU), make_inputs(SHAPES[0], 1, CPU)
    with pytest.raises(RuntimeError, match="needs Triton"):
        run_block(block, x, (Variant(9), Variant(9)), "fp32")


def test_the_record_is_written_after_every_row_and_says_what_is_missing(tmp_path):
    path = tmp_path / "record.json"

    def read():
        return json.loads(path.read_text())

    record = Record(path, 1000.0, {"command": "c"})
    record.measure("check", {"shape": "63"}, lambda: {"right": True})
    assert read()["phases"]["check"][0]["right"] is True
    assert read()["complete"] is False

    def fail():
        raise RuntimeError("no kernel\nmore")

    record.measure("check", {"shape": "125"}, fail)
    assert read()["phases"]["check"][1]["error"] == "RuntimeError: no kernel"
    with pytest.raises(KeyError), record.finish():
        raise KeyError
    assert read()["complete"] is False
    with record.finish():
        pass
    assert read()["complete"] is True
    with record.finish():
        record.add("failed", {"phase": "images"})
    assert read()["complete"] is False
    late = Record(path, 0.0, {})
    with late.finish():
        late.measure("check", {"shape": "250"}, lambda: {"right": True})
    assert "left out" in read()["phases"]["check"][0]["error"]
    assert read()["complete"] is False


def test_flat_memory_gives_the_bits_of_the_usual_optimizer():
    model = build("conformer", small=True)
    with torch.no_grad():
        for number, weight in enumerate(model.parameters()):
            weight.copy_(torch.linspace(-1, 1, weight.numel()).view(weight.shape) + number / 7)
    set_weight_layout(model)
    other, config = copy.deepcopy(model), TrainConfig(optimizer="adam")
    usual = make_optimizer(config, model.parameters(), CPU)
    flat, pieces = flatten(other, config, CPU)
    before = hash_tensors({name: value.detach() for name, value in other.named_parameters()})
    for step in range(3):
        for weight in model.parameters():
            weight.grad = (weight.detach() + step).sin()
        for weight, _ in flat.copied:
            weight.grad = (weight.detach() + step).sin()
        for block, piece in pieces.items():
            grads = [(weight.detach() + step).sin() for weight in list_weights(block)]
            views = view_gradients(piece, BlockShape(9, 1, 32, 8))
            torch._foreach_copy_(views, grads)
        apply_step(usual)
        apply_step(flat)
    digests = [
        hash_tensors({name: value.detach() for name, value in one.named_parameters()})
        for one in (model, other)
    ]
    assert digests[0] == digests[1] != before
    assert all(weight.grad is None for weight, _ in flat.copied)


def test_flat_memory_refuses_another_optimizer():
    with pytest.raises(ValueError, match="expected the optimizer adam, got sgd"):
        flatten(build("conformer", small=True), TrainConfig(optimizer="sgd"), CPU)


@pytest.mark.parametrize(("kernel", "stride", "size"), [(3, 1, 7), (3, 2, 7), (3, 2, 8), (1, 2, 7)])
def test_a_convolution_as_a_product_is_torchs(kernel, stride, size):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, size, size, generator=generator, dtype=torch.float64)
    weight = torch.randn(4, 3, kernel, kernel, generator=generator, dtype=torch.float64)
    layer = nn.Conv2d(3, 4, kernel, stride, kernel // 2, bias=False, device="meta")
    layer.weight = nn.Parameter(weight.clone())
    product = use_products(layer)
    assert type(product) is ProductConv2d
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    y = product(ours)
    reference = weight.clone().requires_grad_()
    expected = F.conv2d(theirs, reference, stride=stride, padding=kernel // 2)
    torch.testing.assert_close(y, expected)
    y.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    torch.testing.assert_close(product.weight.grad, reference.grad)


def test_the_comparison_finds_a_wrong_tap_and_memory_that_nobody_wrote():
    shape = BlockShape(9, 1, 32, 8)
    block, (x, dy) = make_block(shape, CPU), make_inputs(shape, 2, CPU)
    expected = run_twin(block, x, dy, "fp64")
    right = compare(run_twin(block, x, dy, "fp32"), expected)
    assert max(right.values()) < 1e-5
    with torch.no_grad():
        block.convolve.weight.copy_(block.convolve.weight.flip(2))
    wrong = compare(run_twin(block, x, dy, "fp32"), expected)
    assert wrong["output"] > 1e-2
    assert wrong["convolve.weight"] > 1e-2
    unwritten = {**expected, "input": expected["input"].clone()}
    unwritten["input"][0, 0, 0] = torch.nan
    assert not compare(unwritten, expected)["input"] <= 1e9
