"""The tensors of a loop by name: several models, wrapped, compiled and sharded ones."""

import textwrap

import pytest
import torch
from torch import nn

import seedless
from seedless.core.errors import RunError
from seedless.proof.loop_lines import read_loop
from seedless.proof.loop_state import digest_state, name_model_tensors


def make_model(value=0.5):
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    for parameter in model.parameters():
        nn.init.constant_(parameter, value)
    return model


def take_step(model, optimizer):
    optimizer.zero_grad()
    model(torch.tensor([[1.0, 2.0], [3.0, -1.0]])).square().sum().backward()
    optimizer.step()


def test_several_models_and_optimizers_are_named_by_their_keys():
    models = {"G": make_model(0.5), "D": make_model(0.25)}
    optimizers = {
        name: torch.optim.Adam(model.parameters(), lr=0.1) for name, model in models.items()
    }
    for name in models:
        take_step(models[name], optimizers[name])
    names = {*digest_state(models, optimizers)}
    assert {"model/G.0.weight", "model/D.1.running_mean"} <= names
    assert {"optimizer.G/exp_avg/G.0.weight", "optimizer.D/step/D.2.bias"} <= names
    listed = {*digest_state([*models.values()], [*optimizers.values()])}
    assert {"model/0.0.weight", "optimizer.1/exp_avg/1.0.weight"} <= listed
    assert len(listed) == len(names)


def test_one_optimizer_may_have_several_models():
    models = [make_model(), make_model()]
    optimizer = torch.optim.SGD(
        [p for model in models for p in model.parameters()], lr=0.1, momentum=0.9
    )
    take_step(models[1], optimizer)
    assert "optimizer/momentum_buffer/1.0.weight" in digest_state(models, optimizer)


def test_a_parameter_of_no_model_is_recorded_with_its_value():
    model, free = make_model(), nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([*model.parameters(), free], lr=0.1, momentum=0.9)
    free.grad = torch.ones(2)
    before = digest_state(model, optimizer)["optimizer/parameter/group0.6"]
    optimizer.step()
    after = digest_state(model, optimizer)
    assert after["optimizer/parameter/group0.6"] != before
    assert "optimizer/momentum_buffer/group0.6" in after


def test_any_state_of_an_optimizer_is_recorded():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.state[model[0].weight] = {"past": {"a": torch.ones(1), "b": [2, None]}, "x": object()}
    optimizer.state["global"] = {"steps": 3}
    found = digest_state(model, optimizer)
    assert {"optimizer/past.a/0.weight", "optimizer/past.b.0/0.weight"} <= {*found}
    assert "optimizer/steps/global" in found
    optimizer.state["global"] = {"steps": 4}
    assert (
        found["optimizer/steps/global"] != digest_state(model, optimizer)["optimizer/steps/global"]
    )


def test_an_optimizer_with_a_closure_is_recorded_with_its_past(tmp_path):
    def train(folder, bend):
        model = make_model()
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)

        def closure():
            optimizer.zero_grad()
            loss = (model(torch.tensor([[1.0, 2.0], [3.0, -1.0]])) - bend).square().sum()
            loss.backward()
            return loss

        with seedless.record(folder, model, optimizer) as trail:
            for step in (1, 2):
                trail.step(step=step, loss=optimizer.step(closure))

    for name, bend in (("a", 1.0), ("b", 1.0), ("c", 1.5)):
        train(tmp_path / name, bend)
    names = {*read_loop(tmp_path / "a")[0][1]["state"]}
    assert {"optimizer/old_dirs.0/0.weight", "optimizer/n_iter/0.weight", "model/0.bias"} <= names
    assert seedless.diff(tmp_path / "a", tmp_path / "b").identical
    assert "optimizer/old_dirs.0/0.weight" in seedless.diff(tmp_path / "a", tmp_path / "c").names


class Sparse(nn.Module):
    """Tensors that are not dense, or have no data."""

    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.eye(3).to_sparse())
        self.register_buffer("rows", torch.eye(3).to_sparse_csr())
        self.register_buffer("absent", torch.empty(3, device="meta"))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_sparse_tensors_are_recorded_and_those_without_data_left_out():
    assert {*digest_state(Sparse(), None)} == {
        "model/edges.indices",
        "model/edges.values",
        "model/rows",
    }


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(RunError, match=r"expected a model, .* got a Tensor"):
        seedless.record(tmp_path / "a", torch.ones(1))


# Wrapped models


def test_a_compiled_model_has_the_names_and_digests_of_the_eager_one():
    eager = make_model()
    inner = make_model()
    inner[0] = torch.compile(inner[0], backend="eager")
    states = []
    for model in (eager, torch.compile(make_model(), backend="eager"), inner):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        take_step(model, optimizer)
        states.append(digest_state(model, optimizer))
    assert states[0] == states[1] == states[2]
    assert "model/0.weight" in states[0]


def test_a_wrapped_model_has_its_own_names():
    named = {*name_model_tensors(make_model())}
    assert {*name_model_tensors(nn.DataParallel(make_model()))} == named
    compiled = torch.compile(nn.DataParallel(make_model()), backend="eager")
    assert {*name_model_tensors(compiled)} == named


def test_a_module_that_the_user_called_module_keeps_its_name():
    model = nn.Module()
    model.module = nn.Linear(1, 1)
    assert {*name_model_tensors(model)} == {"module.weight", "module.bias"}


# Processes

PROGRAM = textwrap.dedent("""
    import sys, torch, torch.distributed as dist, torch.multiprocessing as mp
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel
    import seedless

    def train(rank, out):
        dist.init_process_group("gloo", init_method=f"file://{out}/store", rank=rank, world_size=2)
        mesh = init_device_mesh("cpu", (2,))
        for name in ("sharded-0", "sharded-1", "replicated-0", "replicated-1"):
            torch.manual_seed(0)
            model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
            if name.startswith("sharded"):
                fully_shard(model, mesh=mesh)
            else:
                model = DistributedDataParallel(model)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
            with seedless.record(f"{out}/{name}", model, optimizer) as trail:
                for step in (1, 2):
                    x = torch.ones(3, 4) * (rank + step)
                    if name.endswith("1") and step == 2 and rank == 1:
                        x[0, 0] += 1
                    optimizer.zero_grad()
                    loss = model(x).square().mean()
                    loss.backward()
                    optimizer.step()
                    trail.step(step=step, epoch=0, loss=loss, batch=x)
        dist.destroy_process_group()

    if __name__ == "__main__":
        mp.start_processes(train, (sys.argv[1],), nprocs=2, start_method="fork")
""")


@pytest.fixture(scope="module")
def processes(tmp_path_factory, run_python):
    """Loops of two processes, sharded and replicated; in "-1" a batch of process 1 is changed."""
    folder = tmp_path_factory.mktemp("processes")
    (folder / "program.py").write_text(PROGRAM)
    run_python(str(folder / "program.py"), str(folder), OMP_NUM_THREADS=1)
    return folder


def test_each_process_records_the_shard_that_it_holds(processes):
    loops = read_loop(processes / "sharded-0")
    assert [*loops] == [0, 1]
    names = [{*lines[1]["state"]} for lines in loops.values()]
    assert names[0] == names[1]
    assert {"model/0.weight", "optimizer/exp_avg/1.bias", "optimizer/step/0.weight"} <= names[0]
    shards = [lines[2]["state"]["model/0.weight"] for lines in loops.values()]
    assert shards[0] != shards[1]
    assert [lines[0]["world_size"] for lines in loops.values()] == [2, 2]


def test_replicated_processes_have_equal_states_under_plain_names(processes):
    loops = read_loop(processes / "replicated-0")
    assert loops[0][2]["state"] == loops[1][2]["state"]
    assert "model/0.weight" in loops[0][2]["state"]
    assert loops[0][2]["batch"] != loops[1][2]["batch"]


@pytest.mark.parametrize("kind", ["sharded", "replicated"])
def test_a_difference_names_the_step_and_all_processes_it_reaches(processes, kind):
    found = seedless.diff(processes / f"{kind}-0", processes / f"{kind}-1")
    assert (found.step, found.epoch, found.ranks) == (2, 0, (0, 1))
    assert {"batch", "loss"} <= {*found.names}
    same = seedless.diff(processes / f"{kind}-0", processes / f"{kind}-0")
    assert same.identical
    assert same.notes == ()
