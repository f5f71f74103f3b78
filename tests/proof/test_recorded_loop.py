"""The user's own loop, recorded: by step, after a resume, with all that changes its bits."""

import json
import os
import random

import numpy as np
import pytest
import torch
from torch import nn

import seedless
from seedless.core.errors import RunError
from seedless.proof import loop_lines, trail_file
from seedless.proof.loop_lines import compare_lines, read_loop, read_loop_trail
from seedless.proof.trail import GENESIS, chain


class Loop:
    """A loop as people write it: dropout, momentum, a schedule, and a checkpoint of all of it."""

    def __init__(self, seed=0):
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(2, 4), nn.Dropout(0.5), nn.Linear(4, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=2, gamma=0.5)
        self.done = 0

    def save(self, leave_out=()):
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "torch": torch.get_rng_state(),
            "done": self.done,
        }
        kept = {name: value for name, value in state.items() if name not in leave_out}
        return json.loads(json.dumps(kept)) if not kept else _copy(kept)

    def load(self, state):
        for name in ("model", "optimizer", "scheduler"):
            if name in state:
                getattr(self, name).load_state_dict(_copy(state[name]))
        if "torch" in state:
            torch.set_rng_state(state["torch"])
        self.done = state["done"]

    def train(self, folder, until, every=1, config=None, **options):
        """Train up to a step; return the trail and the states saved after each step."""
        saved = {}
        with seedless.record(
            folder,
            self.model,
            self.optimizer,
            scheduler=self.scheduler,
            config=config,
            **options,
        ) as trail:
            while self.done < until:
                batch = torch.full((3, 2), float(self.done))
                self.optimizer.zero_grad()
                loss = (self.model(batch) - 1).square().mean()
                loss.backward()
                self.optimizer.step()
                self.scheduler.step()
                self.done += 1
                if self.done % every == 0:
                    epoch = (self.done - 1) // 3
                    trail.step(step=self.done, epoch=epoch, loss=loss, batch={"x": batch})
                saved[self.done] = self.save()
        return trail, saved


def _copy(value):
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return value.clone() if isinstance(value, torch.Tensor) else value


def strip(entries):
    """The lines without their chain."""
    return [{k: v for k, v in e.items() if k not in ("previous", "digest")} for e in entries]


# What a line holds


def test_a_line_has_state_rate_schedule_generators_and_batch(tmp_path):
    trail, _ = Loop().train(tmp_path / "a", 3, config={"rate": 0.1})
    entries = read_loop_trail(tmp_path / "a")
    assert [entry["kind"] for entry in entries] == ["start", "step", "step", "step"]
    assert entries[-1]["digest"] == trail.head
    start, first, second = entries[:3]
    assert (start["schema"], start["settings"]) == ("seedless.trail/2", {"rate": 0.1})
    assert start["environment"]["packages"]["torch"] == torch.__version__
    assert (start["rank"], start["world_size"]) == (0, 1)
    assert start["command"]["cwd"] == os.getcwd()
    assert (first["step"], first["epoch"]) == (1, 0)
    assert isinstance(first["loss"], float)
    assert [first["rate"], second["rate"]] == [{"optimizer": [0.1]}, {"optimizer": [0.05]}]
    assert {"model/0.weight", "optimizer/momentum_buffer/2.bias"} <= {*first["state"]}
    assert {*first["generators"]} >= {"python", "numpy", "torch"}
    for field in ("batch", "loss", "scheduler", "generators", "state"):
        assert first[field] != second[field]
    assert first["generators"]["python"] == second["generators"]["python"]


def test_two_loops_that_are_equal_have_one_head(tmp_path):
    heads = {Loop().train(tmp_path / name, 3)[0].head for name in "ab"}
    assert len(heads) == 1
    assert seedless.diff(tmp_path / "a", tmp_path / "b").identical


CHANGES = {
    "scheduler": lambda loop: setattr(loop.scheduler, "gamma", 0.25),
    "options": lambda loop: loop.optimizer.param_groups[0].update(momentum=0.8),
    "rate": lambda loop: loop.optimizer.param_groups[0].update(lr=0.2),
    "model/2.bias": lambda loop: loop.model[2].bias.data.add_(1e-7),
}


@pytest.mark.parametrize("what", CHANGES)
def test_each_part_of_a_line_shows_its_change(tmp_path, what):
    Loop().train(tmp_path / "a", 1)
    loop = Loop()
    CHANGES[what](loop)
    loop.train(tmp_path / "b", 1)
    found = seedless.diff(tmp_path / "a", tmp_path / "b")
    assert what in found.names


def test_scaler_sampler_and_own_generators_are_recorded(tmp_path):
    model = nn.Linear(1, 1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    sampler = torch.utils.data.RandomSampler(range(4), generator=torch.Generator().manual_seed(1))
    own = {"shuffle": np.random.default_rng(0), "order": random.Random(0)}
    with seedless.record(
        tmp_path / "a", model, scaler=scaler, sampler=[sampler], generators=own
    ) as trail:
        trail.step(step=1)
        list(sampler)
        own["shuffle"].random()
        scaler.scale(torch.ones(()))
        scaler.update(8.0)
        trail.step(step=2)
    _, first, second = read_loop_trail(tmp_path / "a")
    assert (first["scaler"]["scaler"]["scale"], second["scaler"]["scaler"]["scale"]) == (4.0, 8.0)
    assert first["sampler"]["sampler.0"] != second["sampler"]["sampler.0"]
    assert first["generators"]["shuffle"] != second["generators"]["shuffle"]
    assert first["generators"]["order"] == second["generators"]["order"]


@pytest.mark.parametrize(
    ("loss", "recorded"),
    [
        (None, None),
        (0.5, 0.5),
        (torch.tensor([0.25]), 0.25),
        (np.float32(2), 2.0),
        (float("nan"), "nan"),
        (torch.tensor(float("-inf")), "-inf"),
        ({"real": torch.tensor(1.0), "fake": 2}, {"real": 1.0, "fake": 2}),
        ([1.0, None], [1.0, None]),
    ],
)
def test_any_loss_is_recorded(tmp_path, loss, recorded):
    with seedless.record(tmp_path / "a", nn.Linear(1, 1)) as trail:
        trail.step(step=1, loss=loss)
    assert read_loop_trail(tmp_path / "a")[1]["loss"] == recorded


@pytest.mark.parametrize(
    "config", [{"x": float("inf")}, {"folder": os.path}, nn.Linear(1, 1), object(), None]
)
def test_no_config_ends_the_script(tmp_path, config):
    with seedless.record(tmp_path / "a", nn.Linear(1, 1), config=config) as trail:
        trail.step(step=1)
    assert isinstance(read_loop_trail(tmp_path / "a")[0]["settings"], dict)


# Steps


def test_steps_are_the_users_own_and_must_increase(tmp_path):
    with seedless.record(tmp_path / "a", nn.Linear(1, 1)) as trail:
        for step in (0, 5, np.int64(6), torch.tensor(9)):
            trail.step(step=step)
        for step in (9, 3):
            with pytest.raises(RunError, match=rf"expected a step above 9, .* got {step}: give"):
                trail.step(step=step)
        for step in (-1, 1.5, "10", True, None):
            with pytest.raises(RunError, match="expected step to be an integer"):
                trail.step(step=step)
    assert [line["step"] for line in read_loop_trail(tmp_path / "a")] == [None, 0, 5, 6, 9]
    with pytest.raises(RunError, match="until its block is left"):
        trail.step(step=10)


# Resuming


@pytest.mark.gpu
def test_the_generator_of_a_gpu_is_recorded(tmp_path):
    model = nn.Linear(2, 1).cuda()
    with seedless.record(tmp_path / "a", model) as trail:
        trail.step(step=1)
        torch.rand(1, device="cuda")
        trail.step(step=2, loss=model(torch.ones(1, 2, device="cuda")).sum())
    _, first, second = read_loop_trail(tmp_path / "a")
    assert first["generators"]["cuda:0"] != second["generators"]["cuda:0"]
    assert first["generators"]["torch"] == second["generators"]["torch"]
    assert first["state"] == second["state"]


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize(("killed", "resumed"), [(7, 4), (7, 7), (4, 0)])
def test_a_killed_and_resumed_loop_has_the_lines_of_an_unbroken_one(
    tmp_path, every, killed, resumed
):
    Loop().train(tmp_path / "whole", 9, every=every)
    first = Loop()
    start = first.save()
    _, saved = first.train(tmp_path / "cut", killed, every=every)
    with (tmp_path / "cut" / "trail.jsonl").open("ab") as file:
        file.write(b'{"kind":"st')  # as a killed process leaves it
    again = Loop(seed=5)
    again.load({0: start, **saved}[resumed])
    trail, _ = again.train(tmp_path / "cut", 9, every=every)
    assert trail.difference is None
    whole, cut = (read_loop_trail(tmp_path / name) for name in ("whole", "cut"))
    assert whole == cut
    assert seedless.diff(tmp_path / "whole", tmp_path / "cut").identical
    assert [*tmp_path.glob("cut/*")] == [tmp_path / "cut" / "trail.jsonl"]


@pytest.mark.parametrize(
    ("left_out", "step", "what"),
    [("torch", 5, "(loss"), ("optimizer", 5, "rate"), ("scheduler", 5, "scheduler")],
)
def test_a_resume_that_is_not_exact_says_at_which_step_it_differs(tmp_path, left_out, step, what):
    _, saved = Loop().train(tmp_path / "a", 7)
    before = (tmp_path / "a" / "trail.jsonl").read_bytes()
    again = Loop(seed=5)
    again.load({name: value for name, value in saved[4].items() if name != left_out})
    with pytest.warns(UserWarning, match=f"step {step} differs from what .* recorded") as warned:
        trail, _ = again.train(tmp_path / "a", 9)
    assert what in trail.difference
    assert warned[0].filename == __file__
    assert (tmp_path / "a" / "trail.replaced-1.jsonl").read_bytes() == before
    lines = read_loop_trail(tmp_path / "a")
    assert [line["step"] for line in lines[1:]] == [*range(1, 10)]
    former = [json.loads(line) for line in before.splitlines()]
    assert lines[:5] == former[:5]
    assert lines[5]["replaces"] == former[5]["digest"]
    assert not any("replaces" in line for line in lines[6:])


def test_a_step_that_is_left_out_after_a_resume_is_a_difference(tmp_path):
    model = nn.Linear(1, 1)
    with seedless.record(tmp_path / "a", model) as trail:
        for step in (1, 2, 3):
            trail.step(step=step)
    with seedless.record(tmp_path / "a", model) as trail:
        trail.step(step=1)
        with pytest.warns(UserWarning, match=r"step 2 differs .*\(step\)"):
            trail.step(step=3)
    assert [line["step"] for line in read_loop_trail(tmp_path / "a")[1:]] == [1, 3]


def test_a_new_trail_takes_the_place_of_another_if_forced(tmp_path):
    Loop().train(tmp_path / "a", 3)
    Loop(seed=1).train(tmp_path / "a", 2, force=True)
    assert len(read_loop_trail(tmp_path / "a")) == 3


def test_a_trail_of_schema_1_is_read_and_not_continued(tmp_path):
    write_schema_1(tmp_path / "old", ["a", "b"])
    write_schema_1(tmp_path / "other", ["a", "c"])
    with pytest.raises(RunError, match=r"trail of seedless.trail/1, which cannot be continued"):
        seedless.record(tmp_path / "old", nn.Linear(1, 1))
    found = seedless.diff(tmp_path / "old", tmp_path / "other")
    assert (found.step, found.epoch, found.names) == (2, None, ("model/weight",))
    assert seedless.diff(tmp_path / "old", tmp_path / "old").identical


def write_schema_1(folder, states):
    """A trail as `seedless.Trail` wrote it: calls are counted, and line 0 has no tensors."""
    lines = [
        {
            "kind": "start",
            "schema": "seedless.trail/1",
            "epoch": 0,
            "step": 0,
            "settings": {},
            "environment": {"variables": {}},
            "state": {},
        },
        *(
            {"kind": "step", "step": number, "loss": None, "state": {"model/weight": state}}
            for number, state in enumerate(states, start=1)
        ),
    ]
    folder.mkdir()
    previous = GENESIS
    with (folder / "trail.jsonl").open("w") as file:
        for line in lines:
            entry = chain(line, previous)
            previous = entry["digest"]
            file.write(json.dumps(entry, sort_keys=True, separators=(",", ":")) + "\n")


# Long loops


def test_a_long_trail_stops_naming_tensors_and_still_compares(tmp_path, monkeypatch):
    Loop().train(tmp_path / "named", 9)
    named = read_loop_trail(tmp_path / "named")
    values = sum(sum(map(json.dumps(line).count, ",[{")) + 1 for line in named[:4])
    monkeypatch.setattr(loop_lines, "MAX_NAMED_VALUES", values)
    Loop().train(tmp_path / "whole", 9)
    whole = read_loop_trail(tmp_path / "whole")
    assert [loop_lines.is_folded(line["state"]) for line in whole] == [False] * 5 + [True] * 5
    assert {*whole[-1]["state"]} == {"model", "optimizer"}
    assert seedless.diff(tmp_path / "whole", tmp_path / "named").identical
    _, saved = Loop().train(tmp_path / "cut", 7)
    again = Loop(seed=5)
    again.load(saved[3])
    assert again.train(tmp_path / "cut", 9)[0].difference is None
    assert read_loop_trail(tmp_path / "cut") == whole
    Loop(seed=1).train(tmp_path / "other", 9)
    found = compare_lines(whole[-1], read_loop_trail(tmp_path / "other")[-1])
    assert {"model", "optimizer"} <= {*found}


def test_a_full_trail_warns_once_and_the_loop_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(loop_lines, "MAX_TRAIL_BYTES", 2**20 + 12_000)
    loop = Loop()
    with pytest.warns(UserWarning, match="step .* and later ones are not recorded") as warned:
        loop.train(tmp_path / "a", 30)
    assert (len(warned), loop.done) == (1, 30)
    assert warned[0].filename == __file__
    assert 2 < len(read_loop_trail(tmp_path / "a")) < 30


# Files and processes


def test_two_writers_of_one_file_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(trail_file, "LOCK_SECONDS", 0.0)
    with seedless.record(tmp_path / "a", nn.Linear(1, 1)) as trail:
        with pytest.raises(RunError, match="is being written by another process"):
            seedless.record(tmp_path / "a", nn.Linear(1, 1))
        trail.step(step=1)
    with seedless.record(tmp_path / "a", nn.Linear(1, 1)):
        pass


def test_a_forked_process_cannot_write_the_trail_of_its_parent(tmp_path):
    with seedless.record(tmp_path / "a", nn.Linear(1, 1)) as trail:
        child = os.fork()
        if child == 0:
            try:
                trail.step(step=1)
            except RunError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        trail.step(step=1)
    assert len(read_loop_trail(tmp_path / "a")) == 2


def test_each_rank_has_its_file_in_one_folder(tmp_path, monkeypatch):
    for name, bias in (("a", 0.0), ("b", 0.5)):
        for rank in (0, 1, 12):
            monkeypatch.setenv("RANK", str(rank))
            monkeypatch.setenv("WORLD_SIZE", "13")
            model = nn.Linear(1, 1)
            nn.init.constant_(model.weight, rank)
            nn.init.zeros_(model.bias)
            with seedless.record(tmp_path / name, model) as trail:
                nn.init.constant_(model.bias, bias if rank == 12 else 0.0)
                trail.step(step=1)
    loops = read_loop(tmp_path / "a")
    assert [*loops] == [0, 1, 12]
    assert {lines[0]["world_size"] for lines in loops.values()} == {13}
    found = seedless.diff(tmp_path / "a", tmp_path / "b")
    assert (found.identical, found.ranks, found.names) == (False, (12,), ("model/bias",))
    assert seedless.diff(tmp_path / "a", tmp_path / "a").identical
    (tmp_path / "b" / "trail-12.jsonl").unlink()
    found = seedless.diff(tmp_path / "a", tmp_path / "b")
    assert (found.identical, found.names, found.ranks) == (False, ("ranks",), (12,))


def test_where_nothing_can_be_written_the_place_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match=r"cannot write .*file/a/trail.jsonl: Not a directory"):
        seedless.record(tmp_path / "file" / "a", nn.Linear(1, 1))
    with seedless.record(tmp_path / "b", nn.Linear(1, 1)) as trail:
        (tmp_path / "b" / "trail.jsonl").unlink()
        with pytest.raises(RunError, match=r"cannot write .*b/trail.jsonl: No such file"):
            trail.step(step=1)


def test_a_script_executed_again_records_elsewhere(tmp_path, monkeypatch):
    Loop().train(tmp_path / "mine", 2)
    before = (tmp_path / "mine" / "trail.jsonl").read_bytes()
    monkeypatch.setenv("SEEDLESS_RECORD_FOLDER", str(tmp_path / "scratch"))
    Loop(seed=3).train(tmp_path / "mine", 2)
    assert (tmp_path / "mine" / "trail.jsonl").read_bytes() == before
    assert len(read_loop_trail(tmp_path / "scratch" / "mine")) == 3


def test_a_script_executed_again_ends_at_the_step_that_is_wanted(tmp_path, monkeypatch):
    monkeypatch.setenv("SEEDLESS_RECORD_UNTIL", "2")
    loop = Loop()
    with pytest.raises(SystemExit) as ended:
        loop.train(tmp_path / "a", 5)
    assert (ended.value.code, loop.done) == (0, 2)
    assert [line["step"] for line in read_loop_trail(tmp_path / "a")] == [None, 1, 2]


@pytest.mark.parametrize(
    ("place", "change", "complaint"),
    [
        (1, {"kind": "epoch"}, "line 2 is not of kind 'step'"),
        (2, {"step": 1}, "line 3 has step 1, expected an integer above 1"),
        (2, {"step": True}, "line 3 has step True"),
        (2, {"step": "2"}, "line 3 has step '2'"),
        (0, {"schema": "seedless.trail/3"}, "this version reads seedless.trail/1 or"),
    ],
)
def test_a_trail_from_someone_else_is_checked(tmp_path, place, change, complaint):
    Loop().train(tmp_path / "a", 2)
    lines = strip(read_loop_trail(tmp_path / "a"))
    lines[place] |= change
    previous = GENESIS
    with (tmp_path / "a" / "trail.jsonl").open("w") as file:
        for line in lines:
            entry = chain(line, previous)
            previous = entry["digest"]
            text = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            file.write(text + "\n")
    with pytest.raises(RunError, match=complaint):
        read_loop_trail(tmp_path / "a")
