"""Killed at any moment, any number of times, a run ends in the bits it would have had.

Moments are of three kinds: so many seconds after the start, at the n-th thing done to a file, and
before the n-th step. The first finds what no one thought of, the others repeat exactly.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from seedless.train.checkpoint import list_checkpoints
from tests.forks import ROOT
from tests.train.problems import make_arrays

EPOCHS, STEPS = 6, 4  # of 60 records, 48 are trained on, in batches of 12
VARIANTS = {
    "baseline": """
[model]
name = "baseline"
small = true
[order]
name = "pair_balance"
batch_size = 12
""",
    "conformer": """
[model]
name = "conformer"
small = true
[order]
batch_size = 12
""",
}
REST = """
[data]
name = "{file}"
[execution]
device = "cpu"
threads = 1
[train]
epochs = 6
rate = 0.01
evaluate_every = 2
checkpoint_every = 1
"""


@pytest.fixture(scope="module")
def configs(tmp_path_factory):
    """A TOML file of each variant, over a small file of arrays."""
    folder = tmp_path_factory.mktemp("kill")
    samples, labels = make_arrays(60, leads=2, length=64)
    folds = np.arange(60) % 10 + 1
    np.savez(folder / "arrays.npz", X=samples, Y=labels, folds=folds)
    files = {}
    for name, text in VARIANTS.items():
        files[name] = folder / f"{name}.toml"
        files[name].write_text(text + REST.format(file=folder / "arrays.npz"))
    return files


@pytest.fixture(scope="module")
def whole(nursery, configs, tmp_path_factory):
    """The undisturbed run of each variant, and how long it took."""
    folder = tmp_path_factory.mktemp("whole")
    seconds = {}
    for name, file in configs.items():
        began = time.monotonic()
        nursery.run("train", file, "--out", folder / name, "--json")
        seconds[name] = time.monotonic() - began
    return {name: (folder / name, seconds[name]) for name in configs}


def content(run):
    """Return all of a finished run that must repeat: everything but the times in its log."""
    files = {
        str(path.relative_to(run)): path.read_bytes()
        for path in sorted(run.rglob("*"))
        if path.is_file() and path.suffix != ".part"
    }
    for name in (".lock", "report.html", "receipt.json"):
        files.pop(name, None)
    lines = [json.loads(line) for line in files.pop("log.jsonl").splitlines()]
    files["log.jsonl"] = [{k: line[k] for k in line if k != "seconds"} for line in lines]
    claims = json.loads((run / "receipt.json").read_text())["predicate"]
    for name in ("files", "digest"):
        claims.pop(name)
    return {**files, "receipt.json": claims}


def same(run, expected):
    """Compare two finished runs; say which file differs, not how."""
    found, wanted = content(run), content(expected)
    assert sorted(found) == sorted(wanted)
    assert found["log.jsonl"] == wanted["log.jsonl"]
    assert [name for name in wanted if found[name] != wanted[name]] == []


def go_on(nursery, config, run, **options):
    """Resume a run, or start it where the kill left nothing to resume."""
    if run.exists():
        return nursery.run("resume", run, **options)
    return nursery.run("train", config, "--out", run, **options)


def moments(count, span):
    """Return moments spread over a span without a pattern: the same ones every time."""
    return [span * ((0.5 + 0.6180339887498949 * k) % 1) for k in range(count)]


@pytest.mark.parametrize(("name", "count"), [("baseline", 25), ("conformer", 6)])
def test_killed_at_many_moments_in_chains_it_ends_in_the_same_bits(
    nursery, configs, whole, tmp_path, name, count
):
    expected, seconds = whole[name]
    delays, chain = moments(count, 1.1 * seconds), 0
    killed, finished = 0, 0
    while delays:
        run = tmp_path / f"run-{chain}"
        chain += 1
        for _ in range(5):  # five kills in a row, unless the run is over before
            if not delays or (run / "receipt.json").exists():
                break
            ended = go_on(nursery, configs[name], run, kill_after=delays.pop(0), code=None)
            assert ended.code in (0, -signal.SIGKILL), ended
            killed += ended.code != 0
        if not (run / "receipt.json").exists():
            go_on(nursery, configs[name], run)
        finished += 1
        same(run, expected)
        shutil.rmtree(run)
    assert killed + finished >= count
    assert killed  # how many depends on how fast the machine happens to be


TOUCHING = """
import os, signal, sys
seen = os.open({notes!r}, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
count = 0
def touch(event, arguments):
    global count
    if event in ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"):
        if isinstance(arguments[0], (str, os.PathLike)) and {part!r} in str(arguments[0]):
            count += 1
            os.write(seen, f"{{event}} {{arguments[0]}}\\n".encode())
            if count == {at}:
                os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(touch)
"""


def test_killed_before_anything_done_to_a_file_it_ends_in_the_same_bits(nursery, configs, tmp_path):
    """Once before every kind of thing: each file of the run opened, renamed or removed."""
    notes, run, expected = tmp_path / "notes", tmp_path / "victim", tmp_path / "expected"
    arguments = ("train", configs["baseline"], "--set", "train.epochs=3", "--out", run)

    def kill_at(at):
        return TOUCHING.format(notes=str(notes), part="victim", at=at)

    nursery.run(*arguments, before=kill_at(0))
    run.rename(expected)
    kinds = {}
    for place, line in enumerate(notes.read_text().splitlines(), start=1):
        kinds.setdefault(re.sub(r"\d+", "#", line), []).append(place)
    assert len(kinds) >= 15, kinds
    twice = 0
    for kind, places in kinds.items():
        place = places[len(places) // 2]
        nursery.run(*arguments, before=kill_at(place), code=-signal.SIGKILL)
        if place % 2 and run.exists() and not (run / "receipt.json").exists():
            ended = nursery.run("resume", run, before=kill_at(1 + 7 * place % 20), code=None)
            assert ended.code in (0, -signal.SIGKILL), (kind, ended)
            twice += ended.code != 0
        if not run.exists():
            nursery.run(*arguments)
        elif not (run / "receipt.json").exists():
            nursery.run("resume", run)
        same(run, expected)
        shutil.rmtree(run)
    assert twice >= 3


REMOVING = """
import os, signal, sys
count = 0
def hook(event, arguments):
    global count
    if event == "os.remove":
        count += 1
        if count == {at}:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
"""


def test_killed_while_replacing_a_run_it_can_be_replaced_again(nursery, configs, whole, tmp_path):
    """`--force` removes file by file; what a kill leaves must not be in the way for ever."""
    finished, _ = whole["baseline"]
    arguments = ("train", configs["baseline"], "--force", "--out", tmp_path / "run")
    files = len([path for path in finished.rglob("*") if path.is_file()])
    for place in range(1, files, 2):
        shutil.copytree(finished, tmp_path / "run")
        nursery.run(*arguments, before=REMOVING.format(at=place), code=-signal.SIGKILL)
        begun = at_step(1, signal.SIGKILL)
        ended = nursery.run(*arguments, before=begun, code=None)
        assert ended.code == -signal.SIGKILL, (place, ended)
        shutil.rmtree(tmp_path / "run")


def test_nothing_half_written_stays_behind(nursery, configs, tmp_path):
    """A killed process leaves temporary files; the finished folder, which is sealed, has none."""
    run, part = tmp_path / "victim", "victim/checkpoints/.epoch"
    kill = TOUCHING.format(notes=str(tmp_path / "notes"), part=part, at=2)
    config = configs["baseline"]
    nursery.run("train", config, "--out", run, before=kill, code=-signal.SIGKILL)
    assert list(run.rglob("*.part"))
    nursery.run("resume", run)
    assert list(run.rglob("*.part")) == []
    receipt = json.loads((run / "receipt.json").read_text())
    assert not [name for name in receipt["predicate"]["files"] if name.endswith(".part")]


AT_STEP = """
import os, signal
from seedless.train.step import Step
real, steps = Step.__call__, 0
def counted(self, rows, epoch):
    global steps
    steps += 1
    if steps == {at}:
        for number in {signals}:
            os.kill(os.getpid(), number)
    return real(self, rows, epoch)
Step.__call__ = counted
"""


def at_step(step, *signals):
    return AT_STEP.format(at=step, signals=[int(number) for number in signals])


def test_killed_processes_of_the_command_itself(nursery, configs, whole, tmp_path):
    """Real processes, started anew and killed from outside: at a file, while importing, later."""
    expected, _ = whole["baseline"]
    run = tmp_path / "run"

    def start(*arguments):
        return subprocess.Popen(
            [sys.executable, "-m", "seedless", *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def wait_for(path, process):
        end = time.monotonic() + 120
        while not path.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.002)

    process = start("train", configs["baseline"], "--out", run)
    wait_for(run / "trail.jsonl", process)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    process = start("resume", run)
    time.sleep(1.0)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    process = start("resume", run)
    wait_for(run / "checkpoints" / "epoch-0002.safetensors", process)
    process.kill()
    killed = process.wait() == -signal.SIGKILL
    if killed or not (run / "receipt.json").exists():
        nursery.run("resume", run)
    same(run, expected)


# Each leaves something out of what a run remembers, in trail and checkpoint alike.
FORGET = {
    "the optimizer's state": ("conformer", "collect(model, None, order)"),
    "the losses an order ranks by": ("baseline", "collect(model, optimizer, None)"),
}


@pytest.mark.parametrize("what", FORGET)
def test_negative_control_without_part_of_the_state_the_bits_differ(
    nursery, configs, whole, tmp_path, what
):
    name, call = FORGET[what]
    forget = f"""
from seedless.train import progress_state
collect = progress_state.collect_state
progress_state.collect_state = lambda model, optimizer, order: {call}
from seedless.runs import resume
restore = resume.restore_state
def fill_in(state, model, optimizer, order):
    live = {{name: value.clone() for name, value in collect(model, optimizer).items()}}
    restore({{**live, **state}}, model, optimizer, order)
resume.restore_state = fill_in
"""
    expected, _ = whole[name]
    weights = (expected / "weights.safetensors").read_bytes()
    undisturbed, run = tmp_path / "undisturbed", tmp_path / "run"
    nursery.run("train", configs[name], "--out", undisturbed, before=forget)
    assert (undisturbed / "weights.safetensors").read_bytes() == weights
    kill = at_step(3 * STEPS + 1, signal.SIGKILL)
    arguments = ("train", configs[name], "--out", run)
    nursery.run(*arguments, before=forget + kill, code=-signal.SIGKILL)
    nursery.run("resume", run, before=forget)
    last = "checkpoints/epoch-0006.safetensors"
    assert (run / last).read_bytes() != (undisturbed / last).read_bytes()
    shutil.rmtree(run)
    nursery.run(*arguments, before=kill, code=-signal.SIGKILL)
    nursery.run("resume", run)
    assert (run / last).read_bytes() == (expected / last).read_bytes()


LOSE = """
from dataclasses import replace
from seedless.runs import train
save = train.save_checkpoint
def lose(folder, progress, digest):
    less = replace(progress)
    less.__dict__["state"] = {
        name: tensor for name, tensor in progress.state.items() if not name.startswith("optimizer")
    }
    return save(folder, less, digest)
train.save_checkpoint = lose
"""


def test_a_checkpoint_that_lacks_what_the_trail_has_is_refused(nursery, configs, tmp_path):
    run = tmp_path / "run"
    kill = at_step(3 * STEPS + 1, signal.SIGKILL)
    arguments = ("train", configs["conformer"], "--out", run)
    nursery.run(*arguments, before=LOSE + kill, code=-signal.SIGKILL)
    done = nursery.run("resume", run, code=2)
    assert "does not fit the model and its optimizer" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("step", [STEPS, STEPS + 2, EPOCHS * STEPS])
def test_ctrl_c_keeps_the_very_step_and_says_how_to_go_on(nursery, configs, whole, tmp_path, step):
    """At the last step of an epoch, within one, and at the last of all."""
    expected, _ = whole["baseline"]
    run = tmp_path / "run"
    interrupt = at_step(step, signal.SIGINT)
    done = nursery.run("train", configs["baseline"], "--out", run, before=interrupt, code=130)
    assert (
        done.stderr.splitlines()[-1]
        == f"stopped; `seedless resume {run}` continues after step {step}"
    )
    assert done.stdout == ""
    epoch, batch = divmod(step - 1, STEPS)
    names = [path.name for _, path in list_checkpoints(run)]
    assert names[-1] == f"epoch-{epoch:04d}-batch-{batch + 1:04d}.safetensors"
    assert len(names) == epoch + 1
    nursery.run("resume", run)
    same(run, expected)


def test_ctrl_c_again_and_again_and_a_kill_between(nursery, configs, whole, tmp_path):
    expected, _ = whole["baseline"]
    run = tmp_path / "run"
    interrupt = at_step(3, signal.SIGINT)
    nursery.run("train", configs["baseline"], "--out", run, before=interrupt, code=130)
    for _ in range(3):
        nursery.run("resume", run, before=interrupt, code=130)
    kill = at_step(3, signal.SIGKILL)
    nursery.run("resume", run, before=kill, code=-signal.SIGKILL)
    nursery.run("resume", run)
    same(run, expected)


def test_a_second_ctrl_c_ends_at_once_and_the_last_checkpoint_stands(
    nursery, configs, whole, tmp_path
):
    expected, _ = whole["baseline"]
    run = tmp_path / "run"
    twice = at_step(STEPS + 2, signal.SIGINT, signal.SIGINT)
    done = nursery.run("train", configs["baseline"], "--out", run, before=twice, code=130)
    assert "stopped at once" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert [path.name for _, path in list_checkpoints(run)] == ["epoch-0001.safetensors"]
    nursery.run("resume", run)
    same(run, expected)


@pytest.fixture
def killed(nursery, configs, tmp_path):
    """A run of the baseline, killed in its fifth epoch."""
    run = tmp_path / "run"
    kill = at_step(4 * STEPS + 2, signal.SIGKILL)
    arguments = ("train", configs["baseline"], "--out", run)
    nursery.run(*arguments, before=kill, code=-signal.SIGKILL)
    assert [path.name for _, path in list_checkpoints(run)][-1] == "epoch-0004.safetensors"
    return run


@pytest.mark.parametrize("damaged", [1, 4])
def test_damaged_checkpoints_are_passed_over_and_said_so(nursery, killed, whole, damaged):
    for _, path in list_checkpoints(killed)[-damaged:]:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    done = nursery.run("resume", killed)
    lines = [line for line in done.stderr.splitlines() if "skipping a checkpoint" in line]
    assert len(lines) == damaged
    assert all("is damaged" in line for line in lines)
    assert "epoch-0004" in lines[0]
    same(killed, whole["baseline"][0])


def test_torn_last_lines_are_cut(nursery, killed, whole):
    for name in ("trail.jsonl", "log.jsonl"):
        with open(killed / name, "ab") as file:
            file.write(b'{"epoch":5,"kind":"ep')
    nursery.run("resume", killed)
    same(killed, whole["baseline"][0])


def test_without_any_checkpoint_it_begins_again(nursery, killed, whole):
    shutil.rmtree(killed / "checkpoints")
    nursery.run("resume", killed)
    same(killed, whole["baseline"][0])


def test_a_trail_that_ends_before_the_checkpoint_is_refused(nursery, killed):
    trail = killed / "trail.jsonl"
    lines = trail.read_bytes().splitlines(keepends=True)
    trail.write_bytes(b"".join(lines[:3]))
    done = nursery.run("resume", killed, code=2)
    assert "ends with epoch 2, before the checkpoint of epoch 4" in done.stderr


def test_an_edited_configuration_is_refused(nursery, killed):
    file = killed / "config.toml"
    file.write_text(file.read_text().replace("rate = 0.01", "rate = 0.02"))
    done = nursery.run("resume", killed, code=None)
    assert done.code == 2, done
    assert "Traceback" not in done.stderr


def test_data_that_changed_meanwhile_are_refused(nursery, configs, killed, tmp_path):
    """Under the same name, of the same shape: only the content is another."""
    arrays = dict(np.load(configs["baseline"].with_name("arrays.npz")))
    changed = tmp_path / "elsewhere" / "arrays.npz"
    changed.parent.mkdir()
    np.savez(changed, **{**arrays, "X": arrays["X"] + 0.25})
    config = (killed / "config.toml").read_text()
    original = str(configs["baseline"].with_name("arrays.npz"))
    (killed / "config.toml").write_text(config.replace(original, str(changed)))
    done = nursery.run("resume", killed, code=None)
    assert done.code == 2, done.stdout
    assert "data" in done.stderr


def test_data_may_have_moved_meanwhile(nursery, configs, killed, whole, tmp_path):
    original = configs["baseline"].with_name("arrays.npz")
    moved = tmp_path / "elsewhere" / "arrays.npz"
    moved.parent.mkdir()
    shutil.copy(original, moved)
    config = (killed / "config.toml").read_text()
    (killed / "config.toml").write_text(config.replace(str(original), str(moved)))
    nursery.run("resume", killed)
    weights = [run / "weights.safetensors" for run in (killed, whole["baseline"][0])]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_resumed_in_another_shell_the_run_is_still_a_valid_one(
    nursery, other_nursery, killed, whole
):
    """Variables that differ are recorded; they do not make the receipt contradict the trail."""
    other_nursery.run("resume", killed)
    trail = "trail.jsonl"
    assert (killed / trail).read_bytes() == (whole["baseline"][0] / trail).read_bytes()
    done = nursery.run("verify", killed, "--validate-only", code=None)
    assert done.code == 0, done.stdout


def test_a_finished_run_is_not_resumed(nursery, whole):
    run, _ = whole["baseline"]
    done = nursery.run("resume", run, code=2)
    assert f"{run} is finished" in done.stderr


def test_two_processes_cannot_write_one_run(nursery, killed):
    hold = f"""
from pathlib import Path
from seedless.runs.folder import lock
held = lock(Path({str(killed)!r}))
held.__enter__()
import os
if os.fork():
    os.wait()
    os._exit(0)
"""
    done = nursery.run("resume", killed, before=hold, code=None)
    assert "another process is writing" in done.stderr
