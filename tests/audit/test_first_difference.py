"""Two runs laid side by side: each kind of difference is found, at its first place and by name."""

import json
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import seedless
from seedless.audit.first_difference import (
    CHANGED_OUTSIDE,
    ENDED,
    compare_tensors,
    find_first_difference,
)
from seedless.core.errors import SeedlessError
from seedless.numerics.saved_flags import preserve_flags
from seedless.script_recorder import op_recorder
from seedless.script_recorder.op_recorder import OpRecord, OpRecorder

MODELS = ["baseline", "conformer"]


def make_model(name):
    model = seedless.build(name, small=True)
    seedless.initialize(model, "mixed")
    return model


def make_batch(shift=0.0, batch=4):
    return (torch.arange(batch * 12 * 200.0) + shift).sin().view(batch, 12, 200)


def record(model, x=None, seed=0, lr=1e-3, steps=1, **options):
    """Record whole training steps: forward, backward and Adam."""
    x = make_batch() if x is None else x
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True, **options)
    names = {"batch/samples": x, **({"lr": lr} if isinstance(lr, torch.Tensor) else {})}
    keys = torch.arange(len(x))
    torch.manual_seed(seed)
    with OpRecorder(model, names) as seen:
        for step in range(steps):
            optimizer.zero_grad()
            with seen.phase("forward"), seedless.dropout_keys(samples=keys, epoch=step):
                logits = model(x)
                loss = F.binary_cross_entropy_with_logits(logits, torch.ones_like(logits))
            with seen.phase("backward"):
                loss.backward()
            with seen.phase("optimizer"):
                optimizer.step()
    return seen.records


# --- real training steps


@pytest.mark.parametrize("name", MODELS)
def test_the_same_steps_agree(name):
    one, two = (record(make_model(name), steps=2) for _ in range(2))
    assert len(one) > 600
    assert find_first_difference(one, two) is None


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weight", ["stem.0.weight", "head.weight"])
def test_one_flipped_bit_in_a_weight_is_found_by_name(name, weight):
    changed = make_model(name)
    with torch.no_grad():
        changed.get_parameter(weight).view(-1).view(torch.int32)[5] ^= 1
    found = find_first_difference(record(make_model(name)), record(changed))
    assert (found.kind, found.names) == ("source", (f"model/{weight}",))
    assert (found.phase, found.module) == ("forward", weight.removesuffix(".weight"))
    assert found.downstream > 0
    assert f"model/{weight} differs already on entering" in found.describe()


def test_another_bit_in_a_running_statistic_is_found_by_name():
    changed = make_model("baseline")
    changed.stem[1].running_var[3] += 1
    found = find_first_difference(record(make_model("baseline")), record(changed))
    assert (found.kind, found.names) == ("source", ("model/stem.1.running_var",))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("batch", [4, 5])
def test_another_batch_is_found_by_name(name, batch):
    other = make_batch(shift=1.0, batch=batch)
    found = find_first_difference(record(make_model(name)), record(make_model(name), x=other))
    assert (found.kind, found.index, found.names) == ("source", 0, ("batch/samples",))


def test_a_batch_of_another_size_is_found_although_a_view_is_its_first_use():
    model = nn.Flatten()
    records = []
    for x in (torch.ones(2, 3, 4), torch.ones(2, 4, 3)):
        with OpRecorder(model, {"batch": x}) as seen:
            model(x).exp()
        records.append(seen.records)
    assert find_first_difference(*records).names == ("batch",)


def record_dropout(seed):
    model = make_model("baseline")
    model.neck[1] = nn.Dropout(0.5)
    return record(model, seed=seed)


def test_a_draw_from_the_global_generator_is_found_in_its_module():
    found = find_first_difference(record_dropout(1), record_dropout(2))
    assert (found.kind, found.module, found.phase) == ("op", "neck.1", "forward")
    assert found.op in ("aten.bernoulli_.float", "aten.native_dropout.default")
    assert found.shapes == ((4, 64),)
    text = found.describe()
    assert text.startswith(f"The runs begin to differ at {found.op} in module neck.1 (forward)")
    assert f"{found.index} of {found.total} operations agreed before it" in text


def test_the_same_seed_finds_nothing():
    assert find_first_difference(record_dropout(1), record_dropout(1)) is None


def test_without_digests_the_draw_is_not_found(monkeypatch):
    """Negative control: it is the digests of outputs, and nothing else, that find the operation."""
    blind = [
        [replace(one, outputs=("?",) * len(one.outputs)) for one in record_dropout(seed)]
        for seed in (1, 2)
    ]
    found = find_first_difference(*blind)
    assert (found.kind, found.names) == ("source", (CHANGED_OUTSIDE,))
    monkeypatch.setattr(op_recorder.OpRecorder.__init__, "__defaults__", (None, lambda _: "?"))
    assert find_first_difference(record_dropout(1), record_dropout(2)) is None


def record_threads(threads):
    """Record a forward pass of a whole model, and take the records through JSON."""
    with preserve_flags():
        seedless.make_deterministic(threads=threads)
        model = seedless.build("baseline")
        seedless.initialize(model, "mixed")
        x = torch.arange(8 * 12 * 1000.0).sin().view(8, 12, 1000)
        drawn = seedless.dropout_keys(samples=torch.arange(8), epoch=0)
        with OpRecorder(model, {"batch/samples": x}) as seen, seen.phase("forward"), drawn:
            model(x)
    rows = json.loads(json.dumps([record.as_dict() for record in seen.records]))
    return [OpRecord.from_dict(row) for row in rows]


def test_another_number_of_threads_is_found_at_an_operation():
    one, two, again = (record_threads(threads) for threads in (1, 2, 1))
    assert find_first_difference(one, again) is None
    found = find_first_difference(one, two)
    assert found.kind == "op"
    left, right = one[found.index], two[found.index]
    assert left.inputs == right.inputs
    assert left.inputs
    assert left.settings == right.settings
    assert left.outputs != right.outputs
    assert one[: found.index] == two[: found.index]


@pytest.mark.parametrize(
    ("option", "left", "right"), [("weight_decay", 0.0, 0.01), ("lr", 0.001, 0.002)]
)
def test_another_setting_of_the_optimizer_is_found_with_both_values(option, left, right):
    one, two = (record(make_model("baseline"), **{option: value}) for value in (left, right))
    found = find_first_difference(one, two)
    assert (found.kind, found.phase, found.op) == (
        "setting",
        "optimizer",
        "aten._fused_adamw_.default",
    )
    assert (found.left, found.right) == ((f"{option}={left}",), (f"{option}={right}",))
    assert f"{option}={left} against {option}={right}" in found.describe()


def test_another_learning_rate_held_in_a_tensor_is_found_by_name():
    one, two = (record(make_model("baseline"), lr=torch.tensor(lr)) for lr in (0.001, 0.002))
    found = find_first_difference(one, two)
    assert (found.kind, found.phase, found.names) == ("source", "optimizer", ("lr",))


# --- laws on records


OP = OpRecord(
    "forward", "head", "aten.mm.default", ("a", "b"), ("x", ""), ("n=1",), ("c",), ((2, 3),)
)
LAST = OpRecord("forward", "", "aten.sum.default", ("c",), ("",), (), ("d",), ((),))


def test_no_records_and_equal_records_agree():
    assert find_first_difference([], []) is None
    assert find_first_difference([OP, LAST], [OP, LAST]) is None
    assert (
        find_first_difference([OP], [replace(OP, note="said otherwise", sources=("", ""))]) is None
    )


def test_an_operation_is_the_cause_only_if_its_inputs_and_settings_agree():
    assert find_first_difference([OP], [replace(OP, outputs=("z",))]).kind == "op"
    assert (
        find_first_difference([OP], [replace(OP, outputs=("z",), settings=("n=2",))]).kind
        == "setting"
    )
    assert (
        find_first_difference([OP], [replace(OP, outputs=("z",), inputs=("y", "b"))]).kind
        == "source"
    )
    both = find_first_difference([OP], [replace(OP, settings=("n=2",), inputs=("y", "b"))])
    assert (both.kind, both.names) == ("source", ("x",))
    assert "settings differ too (n=1 against n=2)" in both.describe()


def test_another_number_of_outputs_is_the_operations():
    found = find_first_difference([OP], [replace(OP, outputs=("c", "e"), shapes=((2, 3), (4,)))])
    assert found.kind == "op"


def test_an_input_that_no_one_can_have_changed_is_said_to_be_so():
    found = find_first_difference([OP], [replace(OP, inputs=("a", "z"))])
    assert (found.kind, found.names) == ("source", (CHANGED_OUTSIDE,))


def test_a_tensor_changed_outside_torch_is_no_operations_difference():
    records = []
    for value in (0.0, 1.0):
        x = torch.zeros(4)
        with OpRecorder(nn.Identity()) as seen:
            y = x + 1
            y.numpy()[2] = value
            y.exp()
        records.append(seen.records)
    found = find_first_difference(*records)
    assert (found.kind, found.names, found.op) == ("source", (CHANGED_OUTSIDE,), "aten.exp.default")


@pytest.mark.parametrize(
    "other",
    [
        replace(OP, op="aten.bmm.default"),
        replace(OP, module="neck"),
        replace(OP, phase="backward"),
        replace(OP, inputs=("a",), sources=("x",)),
    ],
)
def test_other_steps_are_another_program(other):
    found = find_first_difference([LAST, OP, LAST], [LAST, other, LAST])
    assert (found.kind, found.index, found.downstream) == ("program", 1, 0)
    assert found.left != found.right
    assert "stop performing the same operations" in found.describe()


def test_a_run_that_ends_early_is_another_program():
    for pair in (([OP], [OP, LAST, LAST]), ([OP, LAST, LAST], [OP])):
        found = find_first_difference(*pair)
        assert (found.kind, found.index, found.downstream, found.total) == ("program", 1, 1, 3)
        assert (ENDED,) in (found.left, found.right)
        assert found.op == LAST.op


def test_only_the_first_is_named_and_the_rest_counted():
    one = [OP, LAST, OP, LAST]
    two = [OP, replace(LAST, outputs=("e",)), OP, replace(LAST, inputs=("e",))]
    found = find_first_difference(one, two)
    assert (found.index, found.downstream, found.total) == (1, 1, 4)


def test_of_many_shapes_three_are_shown():
    many = replace(OP, outputs=tuple("abcde"), shapes=((1,), (2,), (3,), (4,), (5,)))
    found = find_first_difference([many], [replace(many, outputs=tuple("vwxye"))])
    assert found.shapes == ((1,), (2,), (3,), (4,))
    assert "(of shape (1,), (2,), (3,), 1 more)" in found.describe()


# --- states


def test_equal_states_have_no_rows():
    state = {"nan": torch.full((2,), float("nan")), "none": torch.ones(0, 3), "one": torch.ones(())}
    assert compare_tensors(state, {name: value.clone() for name, value in state.items()}) == []


def test_a_single_element_shows_its_values_and_bits():
    one = torch.arange(12.0).view(3, 4)
    two = one.clone()
    two.view(torch.int32)[1, 2] ^= 0b101
    (row,) = compare_tensors({"w": one}, {"w": two})
    assert (row.name, row.elements, row.differing, row.first, row.bits) == ("w", 12, 1, (1, 2), 2)
    assert (row.left, row.right) == (6.0, two[1, 2].item())
    assert row.largest == two[1, 2].item() - 6.0


def test_rows_come_by_name_and_count_elements():
    zeros = torch.zeros(2, 3)
    one = {"b": zeros, "a": zeros, "same": zeros}
    two = {"a": torch.tensor([[0, 0, 0], [0, -3.0, 2]]), "b": zeros + 1, "same": zeros}
    first, second = compare_tensors(one, two)
    assert (first.name, first.differing, first.first, first.largest) == ("a", 2, (1, 1), 3.0)
    assert (first.left, first.right, first.bits) == (0.0, -3.0, None)
    assert (second.name, second.differing) == ("b", 6)


@pytest.mark.parametrize(
    ("one", "two", "largest", "bits"),
    [
        (torch.tensor(True), torch.tensor(False), 1.0, 1),
        (torch.tensor(7), torch.tensor(8), 1.0, 4),
        (torch.tensor(1.0).bfloat16(), torch.tensor(2.0).bfloat16(), 1.0, 8),
        (torch.tensor(3 + 4j), torch.tensor(0j), 5.0, None),
        (torch.tensor(0.0), torch.tensor(-0.0), 0.0, 1),
    ],
)
def test_every_dtype_is_compared(one, two, largest, bits):
    (row,) = compare_tensors({"x": one}, {"x": two})
    assert (row.first, row.differing, row.largest) == ((), 1, largest)
    assert bits is None or row.bits == bits


def test_a_nan_on_one_side_shows():
    (row,) = compare_tensors({"x": torch.tensor([1.0, float("nan")])}, {"x": torch.ones(2)})
    assert (row.differing, row.first) == (1, (1,))
    assert row.largest != row.largest


def test_states_that_are_not_alike_are_refused():
    x = torch.ones(2)
    with pytest.raises(SeedlessError, match=r"1 that only one has \(b\)"):
        compare_tensors({"a": x}, {"a": x, "b": x})
    with pytest.raises(SeedlessError, match="expected a with one dtype and shape"):
        compare_tensors({"a": x}, {"a": x.double()})
    with pytest.raises(SeedlessError, match=r"a is a tensor of another form .*sparse_coo"):
        compare_tensors({"a": x.to_sparse()}, {"a": x.to_sparse()})
