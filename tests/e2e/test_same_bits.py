"""Two processes, one configuration, the same bits: every model, optimizer and kind of order."""

import json
import os
import tomllib

import pytest

from seedless.proof.trail import GENESIS, chain, read_trail

ECG = '[data]\nrecords = 80\n[execution]\ndevice = "cpu"\nthreads = 1\n'
IMAGES = """
[data]
name = "simulated-images"
records = 120
[execution]
device = "cpu"
threads = 1
[augment]
padding = 2
flip = true
"""

# A covering set: each model, optimizer, order and option is in one of them at least.
RUNS = {
    "conformer, adam, content": f"""{ECG}
[model]
small = true
[order]
batch_size = 16
[loss]
class_weights = "sqrt"
clamp = 50.0
[train]
epochs = 2
rate = 3e-3
warmup_steps = 4
evaluate_every = 1
""",
    "baseline (dropout and BatchNorm), sgd, golden": f"""{ECG}
[model]
name = "baseline"
small = true
[init]
basis = "dct"
[order]
name = "golden"
batch_size = 16
[train]
epochs = 2
optimizer = "sgd"
momentum = 0.9
rate = 0.01
clip_norm = 1.0
""",
    "xresnet1d101, adamw, seeded": f"""{ECG}
[model]
name = "xresnet1d101"
small = true
[init]
basis = "hartley"
[order]
name = "seeded"
seed = 3
batch_size = 24
[train]
epochs = 2
optimizer = "adamw"
weight_decay = 0.01
decay = "none"
""",
    "resnet18 with augmentation, adam, class_guaranteed": f"""{IMAGES}
[model]
name = "resnet18"
small = true
[order]
name = "class_guaranteed"
batch_size = 16
[train]
epochs = 2
""",
    "conformer in microbatches, sgd, loss_ranked": f"""{ECG}
[model]
small = true
[init]
basis = "kaiming"
seed = 5
[order]
name = "loss_ranked"
batch_size = 32
[train]
epochs = 3
optimizer = "sgd"
rate = 0.01
microbatch = 12
""",
}


@pytest.fixture
def train(tmp_path):
    """Train a TOML file in a nursery, and return the receipt's claims."""
    made = iter(range(100))

    def run(where, text, *settings, **options):
        file = tmp_path / "run.toml"
        file.write_text(text)
        out = tmp_path / f"run-{next(made)}"
        flags = [part for setting in settings for part in ("--set", setting)]
        done = where.run("train", file, "--out", out, "--json", *flags, **options)
        return {**json.loads(done.stdout), "out": out}

    return run


def head_without_variables(run):
    """Return the trail's head as it would be had the processes' variables been the same.

    A trail begins with the environment it was made in, variables included; those here differ.
    """
    entries = read_trail(run)
    entries[0]["environment"].pop("variables")
    previous = GENESIS
    for entry in entries:
        content = {key: entry[key] for key in entry if key not in ("previous", "digest")}
        previous = chain(content, previous)["digest"]
    return previous


@pytest.mark.parametrize("name", RUNS)
def test_two_processes_give_the_same_weights_trail_and_predictions(
    nursery, other_nursery, train, name
):
    one, other = (train(where, RUNS[name]) for where in (nursery, other_nursery))
    assert one["environment"]["variables"]["PYTHONHASHSEED"] == "1"
    assert other["environment"]["variables"]["PYTHONHASHSEED"] == "7"
    assert one["weights"] == other["weights"]
    assert one["predictions"] == other["predictions"]
    assert one["schedule"] == other["schedule"]
    assert one["metrics"] == other["metrics"]
    assert head_without_variables(one["out"]) == head_without_variables(other["out"])
    for file in ("weights.safetensors", "predictions.npz", "metrics.json", "config.toml"):
        assert (one["out"] / file).read_bytes() == (other["out"] / file).read_bytes()
    start, *_, end = read_trail(one["out"])
    moved = [key for key in start["state"] if start["state"][key] != end["state"][key]]
    assert len(moved) > 10  # it was training that repeated, not standing still


def test_two_processes_of_the_command_itself_write_the_same_trail(run_python, nursery, train):
    """Not forked: started anew, from the interpreter up."""
    text = RUNS["conformer, adam, content"]
    forked = train(nursery, text)
    file, out = forked["out"].with_name("run.toml"), forked["out"].with_name("anew")
    arguments = ("-m", "seedless", "train", str(file), "--out", str(out), "--json")
    done = run_python(*arguments, PYTHONHASHSEED=1, OMP_NUM_THREADS=1)
    anew = json.loads(done.stdout)
    assert anew["weights"] == forked["weights"]
    variables = [claims["environment"]["variables"] for claims in (anew, forked)]
    assert variables[0] == variables[1]
    assert anew["trail"] == forked["trail"]
    assert (out / "trail.jsonl").read_bytes() == (forked["out"] / "trail.jsonl").read_bytes()


def test_negative_control_another_thread_count_is_another_arithmetic(nursery, train):
    text = RUNS["conformer, adam, content"]
    one, two = (train(nursery, text, f"execution.threads={threads}") for threads in (1, 2))
    assert one["weights"]["digest"] != two["weights"]["digest"]
    assert one["initialization"] == two["initialization"]  # which no thread count changes
    for claims, threads in ((one, 1), (two, 2)):
        assert claims["environment"]["threads"]["intraop"] == threads
        assert claims["config"]["values"]["execution"]["threads"] == threads
        config = tomllib.loads((claims["out"] / "config.toml").read_text())
        assert config["execution"]["threads"] == threads
    assert one["config"]["digest"] != two["config"]["digest"]


def test_without_a_thread_count_the_one_used_is_written_down(nursery, train):
    text = RUNS["resnet18 with augmentation, adam, class_guaranteed"].replace("threads = 1\n", "")
    claims = train(nursery, text, "train.epochs=1", "data.records=60")
    threads = len(os.sched_getaffinity(0))
    assert claims["config"]["values"]["execution"]["threads"] == threads
    assert claims["environment"]["threads"]["intraop"] == threads


def test_negative_control_another_setting_gives_another_digest(nursery, train):
    text = RUNS["xresnet1d101, adamw, seeded"]
    base = train(nursery, text, "train.epochs=1")
    for setting, cause in (
        ("order.offset=1", "schedule"),
        ("order.seed=4", "schedule"),
        ("init.basis=dct", "initialization"),
    ):
        other = train(nursery, text, "train.epochs=1", setting)
        assert other["weights"]["digest"] != base["weights"]["digest"]
        assert other["config"]["digest"] != base["config"]["digest"]
        assert other[cause] != base[cause]


# Torch's own dropout in place of ours, seeded by the clock as torch does it.
SABOTAGE = """
import torch
from seedless.models import baseline
torch.seed()
baseline.Dropout = lambda p, layer: torch.nn.Dropout(p)
"""


def test_negative_control_with_torchs_dropout_two_runs_part_and_are_refused(nursery, train):
    text = RUNS["baseline (dropout and BatchNorm), sgd, golden"]
    told = ("train.epochs=1", "train.guard=report")
    one, other = (train(nursery, text, *told, before=SABOTAGE) for _ in "ab")
    assert one["weights"]["digest"] != other["weights"]["digest"]
    assert one["promise"]["same_bits"] is other["promise"]["same_bits"] is False
    out = one["out"].with_name("refused")
    file = one["out"].with_name("run.toml")
    done = nursery.run("train", file, "--out", out, before=SABOTAGE, code=2)
    assert "torch's CPU generator moved" in done.stderr
    assert "Traceback" not in done.stderr
