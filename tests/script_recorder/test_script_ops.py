"""The operations of a stranger's step: their lines, modules and draws; nothing raises."""

import copy
import inspect

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from seedless.script_recorder import script_ops
from seedless.script_recorder.script_ops import ScriptOps


def record(run):
    """Record a function and return the lines of its operations."""
    lines = []
    ops = ScriptOps(lines.append, lambda: False)
    ops.start()
    try:
        run()
    finally:
        ops.stop()
    assert torch._C._len_torch_dispatch_stack() == 0
    return lines


def find(lines, op, phase=None):
    """The first line of an operation."""
    return next(line for line in lines if line["op"] == op and phase in (None, line["phase"]))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        hidden = self.body(x)
        hidden = F.dropout(hidden.tanh(), 0.5)
        return self.head(hidden)


def number_of(text):
    """The number of the line of this file that has a text, in code and not in this call."""
    source = inspect.getsource(inspect.getmodule(number_of)).splitlines()
    (found,) = [at for at, line in enumerate(source, 1) if line.strip() == text]
    return f"test_script_ops.py:{found}"


@pytest.fixture(scope="module")
def step():
    """The operations of a step."""
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.ones(3, 4)

    def run():
        loss = model(x).pow(2).sum()
        loss.backward()
        optimizer.step()

    return record(run)


def test_a_backward_operation_has_the_line_of_the_forward_call(step):
    forward, backward = (find(step, "aten.tanh.default"), find(step, "aten.tanh_backward.default"))
    assert forward["line"].endswith(number_of("hidden = F.dropout(hidden.tanh(), 0.5)"))
    assert backward["line"] == forward["line"]
    assert (forward["phase"], backward["phase"]) == ("forward", "backward")
    head = find(step, "aten.mm.default", "backward")
    assert head["line"].endswith(number_of("return self.head(hidden)"))


def test_the_optimizers_operations_have_the_line_of_its_step(step):
    updates = [line for line in step if line["op"].startswith(("aten._foreach", "aten.add_."))]
    assert updates[-1]["line"].endswith(number_of("optimizer.step()"))


def test_modules_and_weights_have_names(step):
    product = find(step, "aten.addmm.default")
    assert product["module"] == "Net.body"
    assert product["sources"] == ["Net.body.bias", "unnamed argument 'mat1'", "Net.body.weight"]
    assert find(step, "aten.tanh_backward.default")["module"] == "Net"


def test_only_operations_that_moved_a_generator_have_drawn():
    generator = torch.Generator()

    def run():
        torch.rand(2)
        torch.randperm(4, generator=generator)
        F.dropout(torch.ones(4), 0.5, training=False)
        torch.native_dropout(torch.ones(4), 0.5, False)
        torch.ones(2) + 1

    drawn = {line["op"]: line["draws"] for line in record(run) if line["draws"]}
    assert drawn == {"aten.rand.default": "torch", "aten.randperm.generator": "torch-generator"}


def test_a_view_of_one_sample_costs_no_digest_of_the_whole(monkeypatch):
    seen = []
    monkeypatch.setattr(script_ops, "digest_tensors", lambda ts: seen.extend(ts) or "")
    data = torch.zeros(100, 4)
    record(lambda: data[3] + 1)
    assert max(tensor.numel() for tensor in seen) == 4


def test_the_users_own_backward_function_and_hooks_have_their_own_lines():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return x.sinh() * gradient

    x = torch.ones(3, requires_grad=True)
    x.register_hook(lambda gradient: gradient.cosh())
    lines = record(lambda: Square.apply(x).sum().backward())
    assert find(lines, "aten.sinh.default")["line"].endswith(
        number_of("return x.sinh() * gradient")
    )
    assert find(lines, "aten.cosh.default")["line"].endswith(
        number_of("x.register_hook(lambda gradient: gradient.cosh())")
    )


def test_a_recomputed_forward_has_its_own_line_and_module():
    model = Net()
    x = torch.ones(3, 4, requires_grad=True)
    lines = record(lambda: checkpoint(model, x, use_reentrant=False).sum().backward())
    again = find(lines, "aten.tanh.default", "backward")
    assert again["module"] == "Net"
    assert again["line"].endswith(number_of("hidden = F.dropout(hidden.tanh(), 0.5)"))


# --- odd tensors


def embed_sparsely():
    table = nn.Embedding(10, 4, sparse=True)
    table(torch.tensor([1, 2, 1])).sum().backward()
    torch.optim.SparseAdam(table.parameters()).step()


def use_a_wrapper():
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            plain = [one.inner if isinstance(one, Wrapper) else one for one in args]
            return func(*plain, **(kwargs or {}))

    Wrapper(torch.ones(3)) + 1


def differentiate_functionally():
    torch.func.vmap(torch.func.grad(lambda x: x.sin().sum()))(torch.ones(3, 2))


def predict_in_inference_mode():
    with torch.inference_mode():
        nn.Linear(4, 2)(torch.ones(3, 4)).add_(1)


def fail_and_go_on():
    with pytest.raises(RuntimeError):
        nn.Linear(4, 2)(torch.ones(3, 5))
    torch.ones(2).exp()


ODD = {
    "sparse gradients": embed_sparsely,
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8).dequantize(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]) * 2,
    "jagged": lambda: (
        torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)], layout=torch.jagged) * 2
    ),
    "meta": lambda: nn.Linear(4, 2, device="meta")(torch.ones(3, 4, device="meta")),
    "a wrapper": use_a_wrapper,
    "torch.func": differentiate_functionally,
    "inference mode": predict_in_inference_mode,
    "a failing operation": fail_and_go_on,
    "deepcopy": lambda: copy.deepcopy(Net()),
    "mkldnn": lambda: torch.ones(4, 4).to_mkldnn().to_dense(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ODD)
def test_odd_tensors_are_recorded_without_an_error(name):
    lines = record(ODD[name])
    assert lines
    assert [line["op"] for line in lines if script_ops.FAILED in line["note"]] == []


def test_a_failure_of_our_own_does_not_reach_the_script(monkeypatch):
    def fail(tensors):
        raise ValueError("ours")

    monkeypatch.setattr(script_ops, "digest_tensors", fail)
    lines = record(lambda: torch.ones(2) + 1)
    assert {line["note"] for line in lines} == {script_ops.FAILED}


def test_no_more_operations_than_the_limit_are_recorded(monkeypatch):
    monkeypatch.setattr(script_ops, "MAX_OPERATIONS", 3)
    assert len(record(lambda: [torch.ones(1) for _ in range(10)])) == 3


def test_a_mode_that_the_surroundings_took_away_comes_back_and_ends():
    """Hooks may start it inside a backward pass, at whose end torch restores the modes before."""
    lines = []
    ops = ScriptOps(lines.append, lambda: False)
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda gradient: ops.start())
    (x * 2).sum().backward()
    nn.Linear(2, 2)(torch.ones(2))
    ops.stop()
    assert find(lines, "aten.addmm.default", "forward")
    assert torch._C._len_torch_dispatch_stack() == 0


def test_what_a_collective_is_still_writing_is_not_read():
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        lines = record(lambda: dist.all_reduce(torch.ones(4)))
    finally:
        dist.destroy_process_group()
    (line,) = [line for line in lines if line["op"].startswith("c10d.")]
    assert line["outputs"] == []
    assert script_ops.LATER in line["note"]


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.empty(4))

    def forward(self, x):
        return x + self.state


def test_a_buffer_that_was_never_written_is_uninitialized_memory_under_its_name():
    def run():
        memory = Memory()
        memory(torch.ones(4))
        memory.state.zero_()
        memory(torch.ones(4))

    first, second = [line for line in record(run) if line["op"] == "aten.add.Tensor"]
    assert first["sources"] == ["", "Memory.state, uninitialized memory"]
    made = number_of('self.register_buffer("state", torch.empty(4))')
    assert first["origins"][1].endswith(made)
    assert second["sources"] == ["", "Memory.state"]
    assert not any(second["origins"])


def test_values_from_python_have_the_line_that_made_a_tensor_of_them():
    def run():
        values = torch.tensor([1.0, 2.0])
        return values.view(2, 1).exp()

    (line,) = [line for line in record(run) if line["op"] == "aten.exp.default"]
    assert line["sources"][0].startswith("unnamed argument")
    assert line["origins"][0].endswith(number_of("values = torch.tensor([1.0, 2.0])"))


def test_a_draw_inside_an_operation_of_the_scripts_own_is_seen():
    @torch.library.custom_op("recorded_here::jitter", mutates_args=())
    def jitter(x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand(x.shape)

    @torch.library.custom_op("recorded_here::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    lines = record(lambda: double(jitter(torch.ones(2))))
    assert find(lines, "recorded_here.jitter.default")["draws"] == "torch"
    assert find(lines, "recorded_here.double.default")["draws"] == ""
