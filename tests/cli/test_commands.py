"""The commands as a person runs them: output, JSON, exit codes, and no tracebacks."""

import json

import numpy as np
import pytest
import torch

import seedless
from seedless.core.threads import count_usable_cores


@pytest.fixture
def cli(run_seedless):
    return run_seedless


@pytest.fixture
def arrays(tmp_path):
    """A small file of arrays, with one unlabelled record."""
    samples = np.cos(np.arange(30 * 2 * 16.0)).reshape(30, 2, 16)
    labels = np.eye(3, dtype=np.int8)[np.arange(30) % 3]
    labels[4] = 0
    file = tmp_path / "arrays.npz"
    np.savez(file, X=samples, Y=labels, folds=np.arange(30) % 10 + 1)
    return file, samples, labels


def test_init_show_prints_the_plan_and_three_digests(cli):
    shown = cli("init", "show", "baseline", "--basis", "dct", "--small").stdout
    model = seedless.build("baseline", small=True)
    plan = seedless.initialize(model, "dct")
    assert shown.startswith(str(plan))
    assert f"weights {seedless.digest(model)}" in shown
    assert f"md5 {seedless.md5(model)}" in shown


def test_init_show_takes_settings_from_file_flags_and_set(cli, tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('[init]\nbasis = "hartley"\nresidual_scale = 0.42\n[model]\nsmall = true\n')
    shown = cli(
        *("init", "show", "conformer", "--leads", "6", "--config", str(file), "--json"),
        *("--set", "model.classes=5"),
    )
    found = json.loads(shown.stdout)
    assert found["basis"] == "hartley"
    rows = {row["parameter"]: row for row in found["rows"]}
    assert rows["stem.0.weight"]["shape"][1] == 6
    assert rows["head.weight"]["shape"][0] == 5
    assert {row["scale"] for row in found["rows"]} == {1.0, 0.42}


def test_order_show_agrees_with_the_library(cli, arrays):
    file, samples, labels = arrays
    found = json.loads(
        cli("order", "show", "content", "--data", str(file), "--batch-size", "8", "--json").stdout
    )
    order = seedless.order("content", samples.astype(np.float32), labels=labels, batch_size=8)
    assert (found["records"], found["samples"]) == (30, 29)
    for shown in found["epochs"]:
        schedule = order.schedule(shown["epoch"])
        assert shown["digest"] == schedule.digest
        assert shown["first"] == schedule.batches[0].tolist()


def test_order_show_golden_prints_collisions_and_entropy_lost(cli):
    shown = cli("order", "show", "golden", "--set", "data.preset=tiny").stdout
    assert "records sharing" in shown
    assert "entropy lost" in shown
    found = json.loads(cli("order", "show", "golden", "--json").stdout)
    assert found["collisions"]["exact"]["records"] <= found["collisions"]["float32"]["records"]


def test_order_show_golden_on_real_ecgs(cli, real_data):
    file = real_data / "ptb-xl-derived100.npz"
    found = json.loads(cli("order", "show", "golden", "--data", str(file), "--json").stdout)
    assert (found["records"], found["samples"]) == (1819, 1769)
    assert found["collisions"]["samples"] == 1769
    assert found["collisions"]["exact"]["records"] == 0
    assert found["collisions"]["float32"]["records"] == 6  # three pairs that float32 cannot part


@pytest.mark.parametrize(
    "name", ["content", "seeded", "herding", "class_guaranteed", "pair_balance", "golden_index"]
)
def test_order_show_needs_no_data(cli, name):
    found = json.loads(
        cli("order", "show", name, "--epochs", "2", "--json", "--set", "data.preset=tiny").stdout
    )
    assert found["data"] == "simulated"
    assert len(found["epochs"]) == 2


def test_env_shows_what_a_run_would_use(cli):
    found = json.loads(cli("env", "--json", "--set", "execution.threads=1").stdout)
    assert found["threads"]["intraop"] == 1
    assert found["cpu"]["cores"] == count_usable_cores()
    text = cli("env").stdout
    assert torch.__version__ in text
    assert "deterministic_algorithms" in text


def test_env_names_the_engine_and_its_digest_does_not_cover_it(run_python):
    found = [
        json.loads(run_python("-m", "seedless", "env", "--json", SEEDLESS_ENGINE=engine).stdout)
        for engine in ("float64", "int8")
    ]
    named = [one["portable_engines"]["cpu"] for one in found]
    assert [one["engine"] for one in named] == ["float64", "int8"]
    assert {one["reason"] for one in named} == {"set by SEEDLESS_ENGINE"}
    assert found[0]["digest"] == found[1]["digest"]


def test_version_and_help(cli, run_python):
    """The first in a process started anew, as all of them are in a shell."""
    anew = run_python("-m", "seedless", "--version").stdout.strip()
    assert anew == cli("--version").stdout.strip() == f"seedless {seedless.__version__}"
    assert "init" in cli("--help").stdout
    assert "--basis" in cli("init", "show", "--help").stdout


BAD = [
    (["init", "show", "conformr"], "unknown model.name 'conformr' (did you mean 'conformer'?)"),
    (["init", "show", "conformer", "--basis", "dcd"], "unknown init.basis 'dcd' (did"),
    (["init", "show", "resnet18", "--leads", "12"], "takes channels, not leads"),
    (["init", "show", "conformer", "--classes", "1"], "at least 2 classes"),
    (["init", "show", "conformer", "--classes", "0"], "model.classes"),
    (["init", "show", "conformer", "--set", "init.sead=1"], "did you mean 'init.seed'"),
    (["init", "show", "conformer", "--set", "init.seed=1"], "has no seed"),
    (["init", "show", "conformer", "--config", "no.toml"], "cannot read no.toml"),
    (["order", "show", "goldne"], "unknown order 'goldne' (did you mean 'golden'?)"),
    (["order", "show", "content", "--seed", "1"], "seed-free"),
    (["order", "show", "content", "--data", "no.npz"], "no.npz: cannot be read"),
    (["order", "show", "content", "--data", "ptb-xl"], "needs the folder or file"),
    (["order", "show", "content", "--data", "ptb_xl"], "did you mean 'ptb-xl'"),
    (["order", "show", "content", "--set", "data.fs=500"], "simulated has no setting data.fs"),
    (["order", "show", "content", "--batch-size", "0"], "order.batch_size"),
    (["order", "show", "content", "--epochs", "0"], "--epochs"),
    (["demo", "--arithmetic", "portabel"], "did you mean 'portable'"),
    (["portable", "check", "--device", "tpu"], "unknown device 'tpu'"),
    (["study", "unpack", "no.tar.xz"], "no file at 'no.tar.xz'"),
    (["env", "--set", "execution.threads=0"], "execution.threads"),
    (["env", "--set", "exection.threads=1"], "did you mean 'execution'"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(bad[0]) for bad in BAD])
def test_bad_input_ends_in_one_message_and_exit_code_2(cli, arguments, message):
    done = cli(*arguments, check=False)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) <= 12  # nothing was begun


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.full((30, 2, 16), np.nan)}, "NaN"),
        ({"X": np.zeros((0, 2, 16))}, "number of records"),
        ({"Y": np.zeros(5, dtype=int)}, "number of records"),
        ({"Y": np.full((30, 2), 0)}, "none of the 30 samples is labelled"),
        ({"X": np.array([{"a": 1}] * 30)}, "never unpickled"),
    ],
    ids=["nan", "empty", "length", "unlabelled", "pickle"],
)
def test_bad_arrays_end_in_one_message_and_exit_code_2(cli, arrays, change, message):
    file, samples, labels = arrays
    folds = np.arange(30) % 10 + 1
    np.savez(file, **{"X": samples, "Y": labels, "folds": folds, **change})
    done = cli("order", "show", "content", "--data", str(file), check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_npz_of_another_kind_says_what_to_add(cli, tmp_path):
    file = tmp_path / "other.npz"
    np.savez(file, train_images=np.zeros(3))
    done = cli("order", "show", "content", "--data", str(file), check=False)
    assert done.returncode == 2
    assert "expected arrays X, Y, folds, found train_images" in done.stderr


def test_help_loads_no_torch(run_python):
    script = (
        "import sys, seedless, seedless.cli.main\n"
        "heavy = {'torch', 'numpy', 'scipy', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    run_python("-c", script)
