"""What is recorded of each operation, under which name and module, and that recording changes no
bit and leaves nothing behind.
"""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules import module as torch_module
from torch.utils.checkpoint import checkpoint

import seedless
from seedless.core.digests import canonical_json
from seedless.script_recorder.op_record import UNINITIALIZED, digest_tensor
from seedless.script_recorder.op_recorder import OpRecord, OpRecorder


def watch(run, model=None, **names):
    """Record one function and return its records."""
    with OpRecorder(model or nn.Identity(), names) as seen:
        run()
    return seen.records


def pick(records, op):
    """The one record of an operation."""
    (found,) = [record for record in records if record.op == op]
    return found


# --- digests


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int64, torch.bool]
)
def test_a_digest_sees_every_dtype_and_each_element(dtype):
    ones = torch.ones(2, 3).to(dtype)
    other = ones.clone()
    other.view(-1)[4] = 0
    assert digest_tensor(ones) == digest_tensor(ones.clone())
    assert digest_tensor(ones) != digest_tensor(other)


def test_a_digest_covers_shape_and_dtype_and_bytes():
    zeros = torch.zeros(2, 3)
    alike = [zeros, zeros.view(3, 2), zeros.view(torch.int32), torch.zeros(0, 3), torch.zeros(3, 0)]
    assert len({digest_tensor(tensor) for tensor in alike}) == len(alike)


def test_a_digest_compares_bits_and_not_numbers():
    nan = torch.tensor([float("nan")])
    assert digest_tensor(nan) == digest_tensor(nan.clone())
    assert digest_tensor(torch.tensor([0.0])) != digest_tensor(torch.tensor([-0.0]))


def test_a_digest_does_not_depend_on_the_memory_layout():
    x = torch.arange(24.0).view(2, 3, 4)
    turned = x.transpose(0, 2)
    assert digest_tensor(turned) == digest_tensor(turned.contiguous())
    z = torch.complex(x, -x)
    assert digest_tensor(z.conj()) == digest_tensor(z.conj().resolve_conj())


def test_tensors_without_bytes_are_recorded_as_not_compared():
    meta = torch.ones(3, device="meta")
    (record,) = watch(lambda: meta * 2, batch=meta)
    assert record.inputs == record.outputs == ("not compared: Tensor, strided, float32 on meta",)
    with torch._subclasses.FakeTensorMode():
        fake = torch.ones(3)
    assert digest_tensor(fake) == "not compared: FakeTensor, strided, float32 on cpu"


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("to_sparse", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_a_sparse_tensor_has_the_digest_of_its_indices_and_values(to_sparse):
    one, two = to_sparse(torch.eye(3)), to_sparse(torch.eye(3).flip(0))
    assert digest_tensor(one) == digest_tensor(to_sparse(torch.eye(3)))
    assert len({*map(digest_tensor, (one, two, one * 2, torch.eye(3)))}) == 4
    record = watch(lambda: one * 2)[-1]
    assert record.inputs[0] == digest_tensor(one)
    assert record.outputs == (digest_tensor(one * 2),)


# --- one operation


def test_inputs_are_read_before_and_changed_arguments_after():
    x, before = torch.arange(3.0), torch.arange(3.0)
    record = pick(watch(lambda: x.add_(1), x=x), "aten.add_.Tensor")
    assert record.inputs == (digest_tensor(before),)
    assert record.outputs == (digest_tensor(before + 1),)
    assert record.shapes == ((3,),)
    assert record.sources == ("x",)
    assert record.settings == ("other=1",)


def test_lists_of_changed_tensors_count_one_by_one():
    xs = [torch.arange(3.0), torch.arange(4.0)]
    record = pick(watch(lambda: torch._foreach_add_(xs, 1.0)), "aten._foreach_add_.Scalar")
    assert record.outputs == tuple(digest_tensor(x) for x in xs)
    assert record.shapes == ((3,), (4,))


def test_out_arguments_are_outputs():
    x, out = torch.arange(4.0), torch.zeros(4)
    record = pick(watch(lambda: torch.exp(x, out=out)), "aten.exp.out")
    assert record.outputs == (digest_tensor(x.exp()),)


def test_batchnorms_running_statistics_are_outputs_though_no_schema_says_so():
    norm = nn.BatchNorm1d(3)
    x = torch.arange(12.0).view(4, 3)
    record = pick(watch(lambda: norm(x), norm), "aten.native_batch_norm.default")
    assert digest_tensor(norm.running_mean) in record.outputs
    assert digest_tensor(norm.running_var) in record.outputs
    assert record.sources[1:] == tuple(
        f"model/{name}" for name in ("weight", "bias", "running_mean", "running_var")
    )


def test_uninitialized_memory_is_compared_only_where_it_is_read():
    source = torch.arange(4.0)

    def run():
        out = torch.empty(4)
        out[:2].copy_(source[:2])
        out[2:].copy_(source[2:])
        return out * 2

    records = watch(run, source=source)
    assert pick(records, "aten.empty.memory_format").outputs == ()
    copies = [record for record in records if record.op == "aten.copy_.default"]
    assert [record.inputs[0] for record in copies] == [UNINITIALIZED] * 2
    assert copies[1].outputs == (digest_tensor(source[2:]),)
    assert pick(records, "aten.mul.Tensor").inputs == (digest_tensor(source),)


def test_memory_written_as_a_whole_is_compared_from_then_on():
    def run():
        torch.empty(4).fill_(1.0).add_(1.0)

    assert pick(watch(run), "aten.add_.Tensor").inputs == (digest_tensor(torch.ones(4)),)


def test_views_are_recorded_without_being_read_again():
    x = torch.arange(6.0)
    records = watch(lambda: (x * 2).view(2, 3).t().exp(), x=x)
    assert [record.note for record in records] == ["", "view", "view", ""]
    assert pick(records, "aten.t.default").inputs == ()
    assert pick(records, "aten.exp.default").inputs == (digest_tensor((x * 2).view(2, 3).t()),)


def test_scalars_that_leave_torch_show_their_value():
    record = pick(watch(torch.tensor(0.1).item), "aten._local_scalar_dense.default")
    assert record.outputs == (repr(torch.tensor(0.1).item()),)


def test_settings_hold_no_address_and_stay_short():
    generator = torch.Generator()
    record = pick(watch(lambda: torch.randn(2, generator=generator)), "aten.randn.generator")
    assert "generator=Generator" in record.settings
    x = torch.zeros(302)
    long, other = ([1] * 300 + end for end in ([0, 2], [2, 0]))
    one, two = (watch(lambda sizes=sizes: x.split(sizes))[0] for sizes in (long, other))
    assert one.settings[0] != two.settings[0]
    assert len(one.settings[0]) < 300


def test_a_record_survives_json():
    x = torch.arange(4.0).view(2, 2)
    for record in watch(lambda: (x @ x).sum().item(), x=x):
        text = canonical_json(record.as_dict())
        assert OpRecord.from_dict(json.loads(text)) == record


# --- where tensors come from


def test_inputs_from_outside_are_distinguished_from_results_of_operations():
    x, other = torch.arange(4.0), torch.ones(4)
    records = watch(lambda: (x + other) * x[1:2], **{"batch/samples": x})
    assert pick(records, "aten.add.Tensor").sources == ("batch/samples", "unnamed argument 'other'")
    assert pick(records, "aten.mul.Tensor").sources == ("", "batch/samples")


def test_names_distinguish_parts_of_one_storage():
    flat = torch.arange(10.0)
    names = {"first": flat[:4], "second": flat[4:8], "empty": flat[5:5]}
    assert watch(lambda: flat[4:6] * 2, **names)[-1].sources == ("second",)
    assert watch(lambda: flat * 2, **names)[-1].sources == ("first, second",)
    assert watch(lambda: flat[8:] * 2, **names)[-1].sources == ("unnamed argument 'self'",)


def test_a_name_of_the_caller_takes_precedence_over_the_models():
    model = nn.Linear(2, 2)
    x = torch.ones(1, 2)
    records = watch(lambda: model(x), model, mine=model.weight)
    assert pick(records, "aten.addmm.default").sources[0] == "model/bias"
    assert pick(records, "aten.addmm.default").sources[2] == "mine"


def test_a_new_tensor_at_an_old_address_is_not_taken_for_the_old_one():
    array = torch.arange(4.0).numpy()
    with OpRecorder(nn.Identity()) as seen:
        for _ in range(50):
            torch.zeros(4)  # made by an operation, and gone at once
            torch.from_numpy(array) * 2
    products = [record for record in seen.records if record.op == "aten.mul.Tensor"]
    assert {record.sources for record in products} == {("unnamed argument 'self'",)}


# --- modules and phases


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.Tanh())

    def forward(self, x):
        return self.inner(self.inner(x).exp()) + x


def test_a_module_used_twice_is_found_in_forward_and_backward():
    model = Twice()
    x = torch.arange(6.0).view(2, 3).sin()
    with OpRecorder(model) as seen:
        with seen.phase("forward"):
            out = model(x).sum()
        with seen.phase("backward"):
            out.backward()
    found = {(record.phase, record.op, record.module) for record in seen.records}
    assert {
        ("forward", "aten.addmm.default", "inner.0"),
        ("forward", "aten.tanh.default", "inner.1"),
        ("forward", "aten.exp.default", ""),
        ("backward", "aten.mm.default", "inner.0"),
        ("backward", "aten.tanh_backward.default", "inner.1"),
    } <= found
    assert ("backward", "aten.mm.default", "") not in found
    backward = [record for record in seen.records if record.phase == "backward"]
    assert {record.module for record in backward if "AccumulateGrad" in record.note} == {"inner.0"}


def test_a_convolution_of_our_own_is_found_in_backward():
    model = seedless.build("conformer", small=True)
    seedless.initialize(model, "mixed")
    x = torch.arange(2 * 12 * 100.0).sin().view(2, 12, 100)
    records = watch(lambda: model(x).sum().backward(), model)
    ours = [record for record in records if "_Conv1dBackward" in record.note]
    convolutions = {
        path for path, module in model.named_modules() if type(module).__name__ == "Conv1d"
    }
    assert {record.module for record in ours if record.op == "aten.mm.default"} == convolutions


def test_a_forward_recomputed_in_backward_is_found():
    model = Twice()
    x = torch.ones(2, 3, requires_grad=True)
    with OpRecorder(model) as seen:
        out = checkpoint(model, x, use_reentrant=False).sum()
        with seen.phase("backward"):
            out.backward()
    again = [record for record in seen.records if record.phase == "backward"]
    assert {record.module for record in again if record.op == "aten.tanh.default"} == {"inner.1"}


def test_a_module_outside_the_model_shows_its_class():
    x = torch.ones(2, 3)
    records = watch(lambda: nn.MSELoss()(x, x), nn.Identity())
    assert {record.module for record in records} == {"MSELoss"}


def test_phases_nest():
    x = torch.ones(2)
    with OpRecorder(nn.Identity()) as seen:
        with seen.phase("outer"):
            with seen.phase("inner"):
                x.exp()
            x.exp()
        x.exp()
    assert [record.phase for record in seen.records] == ["inner", "outer", ""]


# --- nothing changes, nothing stays


def train(name, watched, steps=2):
    model = seedless.build(name, small=True)
    seedless.initialize(model, "mixed")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    x = torch.arange(4 * 12 * 200.0).sin().view(4, 12, 200)

    def step(epoch):
        optimizer.zero_grad()
        with seedless.dropout_keys(samples=torch.arange(4), epoch=epoch):
            logits = model(x)
        F.binary_cross_entropy_with_logits(logits, torch.ones(4, 12)).backward()
        optimizer.step()

    for epoch in range(steps):
        if watched:
            with OpRecorder(model, {"batch/samples": x}) as seen:
                step(epoch)
            assert len(seen.records) > 300
        else:
            step(epoch)
    return model


@pytest.mark.parametrize("name", ["baseline", "conformer", "xresnet1d101"])
def test_recording_changes_no_bit(name):
    assert seedless.digest(train(name, watched=True)) == seedless.digest(train(name, watched=False))


def test_recording_moves_no_generator():
    before = torch.get_rng_state()
    train("baseline", watched=True, steps=1)
    assert torch.equal(torch.get_rng_state(), before)


def count_hooks(model):
    everywhere = [
        torch_module._global_forward_hooks,
        torch_module._global_forward_pre_hooks,
        torch_module._global_forward_hooks_always_called,
        torch_module._global_forward_hooks_with_kwargs,
    ]
    for module in model.modules():
        everywhere += [module._forward_hooks, module._forward_pre_hooks, module._backward_hooks]
    tensors = [parameter._backward_hooks or {} for parameter in model.parameters()]
    return sum(map(len, [*everywhere, *tensors]))


def test_no_hook_stays_not_even_after_an_error():
    model = train("baseline", watched=True, steps=1)
    assert count_hooks(model) == 0
    wrong = torch.ones(2, 5, 200)
    with pytest.raises(seedless.SeedlessError), OpRecorder(model) as seen:
        model(wrong)
    assert count_hooks(model) == 0
    assert torch._C._len_torch_dispatch_stack() == 0
    assert seen.records == ()


def test_a_failed_module_does_not_stay_open():
    model = nn.Sequential(nn.Linear(3, 3))
    with OpRecorder(model) as seen:
        with pytest.raises(RuntimeError):
            model(torch.ones(2, 5))
        torch.ones(2).exp()
    assert seen.records[-1].module == ""
