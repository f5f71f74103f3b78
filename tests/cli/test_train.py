"""`seedless train` and `resume` as people mistype them: one message, exit code 2, no traceback."""

import json
import os
import shutil
import sys

import numpy as np
import pytest
import torch

from seedless.cli.main import main
from tests.tiny import flags_restored
from tests.train.problems import make_arrays

SHORT = """
[data]
name = "{file}"
[model]
name = "baseline"
small = true
[order]
batch_size = 12
[execution]
device = "cpu"
threads = 1
[train]
epochs = 1
"""


@pytest.fixture(autouse=True)
def _leave_no_flags():
    with flags_restored():
        yield


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """A configuration that trains in half a second, on 3 classes and 2 leads."""
    folder = tmp_path_factory.mktemp("config")
    samples, labels = make_arrays(40, leads=2, length=48)
    np.savez(folder / "arrays.npz", X=samples, Y=labels, folds=np.arange(40) % 10 + 1)
    (folder / "short.toml").write_text(SHORT.format(file=folder / "arrays.npz"))
    return folder / "short.toml"


@pytest.fixture
def seedless(monkeypatch, capfd):
    """Run a command in this process; return exit code, standard output and standard error."""

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["seedless", *map(str, arguments)])
        ended = 0
        try:
            main()
        except SystemExit as end:
            ended = end.code or 0
        output = capfd.readouterr()
        assert ended == code, output
        return output

    return run


@pytest.fixture
def refuse(seedless):
    """Run a command that must be refused; return its one message."""

    def run(*arguments):
        output = seedless(*arguments, code=2)
        assert output.out == ""
        assert "Traceback" not in output.err
        (line,) = output.err.splitlines()
        assert line.startswith("error: ")
        return line

    return run


@pytest.fixture(scope="module")
def finished(config, tmp_path_factory):
    """A finished run; copy it before changing it."""
    from seedless.core.config_files import load_config
    from seedless.runs.train import train_run

    folder = tmp_path_factory.mktemp("finished") / "run"
    train_run(load_config(config), folder)
    return folder


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def listing(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


SETTINGS = [
    ("model.name=conformr", "unknown model.name 'conformr' (did you mean 'conformer'?); known: "),
    (
        "train.optimizer=adm",
        "unknown train.optimizer 'adm' (did you mean 'adam'?); known: adam, adamw",
    ),
    ("order.name=goldne", "unknown order.name 'goldne' (did you mean 'golden'?); known: "),
    ("data.name=simulatd", "unknown dataset 'simulatd' (did you mean 'simulated'"),
    ("init.basis=dtc", "unknown init.basis 'dtc'"),
    ("loss.name=mse", "unknown loss.name 'mse'"),
    ("loss.class_weights=sqr", "unknown loss.class_weights 'sqr' (did you mean 'sqrt'?)"),
    ("train.guard=off", "unknown train.guard 'off'"),
    ("train.decay=cosin", "unknown train.decay 'cosin' (did you mean 'cosine'?)"),
    ("execution.device=gpu", "unknown execution.device 'gpu'"),
    ("data.normalize=zscore", "unknown data.normalize 'zscore'"),
    ("model.classes=5", "model.classes is 5, but arrays has 3 classes"),
    ("model.leads=12", "model.leads is 12, but arrays has 2 leads"),
    ("model.name=resnet18", "takes channels, but arrays holds recordings"),
    ("model.channels=3", "takes leads, not channels"),
    ("augment.flip=true", "augment moves images; these samples are signals"),
    ("data.preset=tiny", "has no setting data.preset"),
    ("data.name=no.npz", "no file at 'no.npz'"),
    ("train.momentum=0.9", "train.momentum belongs to sgd"),
    ("loss.spare_penalty=0.1", "loss.spare_penalty"),
    ("loss.name=cross_entropy", "exactly one class for each sample"),
    ("order.seed=1", "seed-free"),
    ("init.seed=1", "has no seed"),
    ("control.flip_bit=head.weight:0:99", "control.flip_bit"),
    ("control.flip_bit=head.wait:0:0", "did you mean 'head.weight'"),
    ("train.epoch=3", "did you mean 'train.epochs'"),
    ("trian.epochs=3", "unknown key 'trian' (did you mean 'train'?)"),
    ("train.epochs=many", "train.epochs: input should be a valid integer, got 'many'"),
    ("train.epochs=0", "train.epochs"),
    ("train.epochs=1.5", "train.epochs"),
    ("train.rate=-1", "train.rate"),
    ("train.rate=inf", "train.rate"),
    ("train.rate=fast", "train.rate: input should be a valid number, got 'fast'"),
    ("model.small=1", "model.small"),
    ("execution.threads=0", "execution.threads"),
    ("train.rate", "expected a setting such as init.basis=dct, got 'train.rate'"),
]


@pytest.mark.parametrize(("setting", "message"), SETTINGS, ids=[pair[0] for pair in SETTINGS])
def test_a_setting_that_cannot_be_is_one_message(refuse, config, tmp_path, setting, message):
    found = refuse("train", config, "--out", tmp_path / "run", "--set", setting)
    assert message in found
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dmo", "unknown preset 'dmo' (did you mean 'demo'?); known: "),
        ("no/such.toml", "no file at 'no/such.toml'; presets are "),
    ],
)
def test_an_unknown_preset_or_file_lists_the_presets(refuse, tmp_path, name, message):
    found = refuse("train", name, "--out", tmp_path / "run")
    assert message in found
    assert "demo" in found


def test_a_broken_file_is_named(refuse, tmp_path):
    file = tmp_path / "broken.toml"
    file.write_text("[train\nepochs = 3")
    assert f"{file} is not valid TOML" in refuse("train", file, "--out", tmp_path / "run")
    file.write_text('[train]\nepochs = "three"\n[order]\nname = 3\n')
    found = refuse("train", file, "--out", tmp_path / "run")
    assert "train.epochs" in found
    assert "order.name" in found


def test_a_place_that_cannot_be_written_is_refused_before_any_work(refuse, config, tmp_path):
    occupied = tmp_path / "file"
    occupied.write_text("here already")
    data = tmp_path / "never-read.npz"
    data.write_text("no arrays")
    for out in (occupied, occupied / "run", occupied / "deep" / "run"):
        found = refuse("train", "no-such-preset-is-reached-later", "--out", out)
        assert "unknown preset" in found  # the configuration is read first, it costs nothing
        found = refuse("train", config, "--set", f"data.name={data}", "--out", out)
        assert str(occupied) in found
        assert "never-read" not in found
    assert occupied.read_text() == "here already"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(refuse, config, tmp_path):
    tmp_path.chmod(0o500)
    try:
        assert "may write to" in refuse("train", config, "--out", tmp_path / "run")
    finally:
        tmp_path.chmod(0o700)


def test_a_finished_run_is_not_overwritten_unless_forced(seedless, refuse, config, run):
    before = listing(run)
    found = refuse("train", config, "--out", run)
    assert "holds a finished run" in found
    assert "--force" in found
    assert listing(run) == before
    seedless("train", config, "--out", run, "--force", "--set", "train.rate=0.02")
    assert listing(run)["config.toml"] != before["config.toml"]
    assert listing(run)["weights.safetensors"] != before["weights.safetensors"]
    assert (run / "receipt.json").exists()


@pytest.mark.parametrize("setting", ["model.classes=9", "train.guard=off"])
def test_a_bad_setting_does_not_cost_the_run_it_was_to_replace(refuse, config, run, setting):
    before = listing(run)
    refuse("train", config, "--out", run, "--force", "--set", setting)
    assert listing(run) == before


def test_an_unfinished_run_is_pointed_out(refuse, config, run):
    (run / "receipt.json").unlink()
    found = refuse("train", config, "--out", run)
    assert f"`seedless resume {run}`" in found
    assert "--force" in found


def test_an_empty_folder_is_taken(seedless, config, tmp_path):
    (tmp_path / "run").mkdir()
    seedless("train", config, "--out", tmp_path / "run")
    assert (tmp_path / "run" / "receipt.json").exists()


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_folder_of_something_else_is_never_touched(refuse, config, tmp_path, force):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter-1.txt").write_text("years of work")
    found = refuse("train", config, "--out", tmp_path / "thesis", *force)
    assert "holds files that are not a run" in found
    assert (tmp_path / "thesis" / "chapter-1.txt").read_text() == "years of work"


def test_a_config_toml_of_something_else_does_not_make_a_folder_a_run(refuse, config, tmp_path):
    """Many programs have a file of that name."""
    (tmp_path / "site" / "posts").mkdir(parents=True)
    (tmp_path / "site" / "config.toml").write_text('baseURL = "https://example.org"\n')
    (tmp_path / "site" / "posts" / "first.md").write_text("years of work")
    refuse("train", config, "--out", tmp_path / "site", "--force")
    assert (tmp_path / "site" / "posts" / "first.md").read_text() == "years of work"


def test_files_put_into_a_run_folder_are_not_deleted_with_it(refuse, config, run):
    (run / "notes.txt").write_text("what I thought of it")
    refuse("train", config, "--out", run, "--force")
    assert (run / "notes.txt").read_text() == "what I thought of it"


def test_a_page_made_of_a_run_is_replaced_with_it(seedless, config, run):
    (run / "report.html").write_text("<html>")
    seedless("train", config, "--out", run, "--force")
    assert (run / "receipt.json").exists()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "no run at '"),
        (lambda path: path.mkdir(), "is not a run folder"),
        (lambda path: path.write_text("?"), "not a run folder"),
    ],
    ids=["nothing", "empty folder", "file"],
)
def test_resume_says_what_is_not_a_run(refuse, tmp_path, make, message):
    make(tmp_path / "run")
    assert message in refuse("resume", tmp_path / "run")


def test_a_finished_run_is_shown_in_words_and_as_json(seedless, config, tmp_path):
    shown = seedless("train", config, "--out", tmp_path / "a").out
    found = json.loads(seedless("train", config, "--out", tmp_path / "b", "--json").out)
    assert f"weights                {found['weights']['digest']}" in shown
    assert f"md5                    {found['weights']['md5']}" in shown
    assert f"trail head             {found['trail']['head']}" in shown
    assert f"seedless verify {tmp_path / 'a'}" in shown
    assert f"validation macro AUC   {found['metrics']['validation']['macro_auc']:.4f}" in shown


def test_a_run_at_chance_is_shown_as_not_converged(seedless, config, tmp_path):
    settings = ("--set", "train.rate=1e-9", "--set", "train.converged_above=0.99")
    shown = seedless("train", config, "--out", tmp_path / "run", *settings).out
    assert "is not above train.converged_above = 0.99" in shown.split("NOT CONVERGED")[1]


def test_what_is_left_out_and_looks_wrong_is_said_before_training(seedless, config, tmp_path):
    samples, labels = make_arrays(40, leads=2, length=48)
    labels = labels.copy()
    labels[:3] = 0
    file = tmp_path / "swapped.npz"
    swapped = samples.transpose(0, 2, 1)
    np.savez(file, X=swapped, Y=labels, folds=np.arange(40) % 10 + 1)
    shown = seedless("train", config, "--out", tmp_path / "a", "--set", f"data.name={file}").err
    assert "29 training samples" in shown
    assert "3 of 32 training records have no label and are left out" in shown
    assert "read as 48 leads of 2 samples each" in shown
    assert "note:" not in seedless("train", config, "--out", tmp_path / "b").err


def test_output_into_a_pipe_has_no_control_characters(run_python, config, tmp_path):
    done = run_python("-m", "seedless", "train", str(config), "--out", str(tmp_path / "run"))
    for text in (done.stdout, done.stderr):
        assert text.endswith("\n")
        assert not set(text) & {"\r", "\x1b", "\b"}
        assert text.isprintable() or all(c.isprintable() or c == "\n" for c in text)
    assert "epoch" in done.stderr


def test_out_of_memory_is_one_message(seedless, config, tmp_path, monkeypatch):
    from seedless.models.baseline import Baseline

    features = Baseline.features

    def greedy(self, x):
        return features(self, x) + torch.empty(1 << 44)[:1]

    monkeypatch.setattr(Baseline, "features", greedy)
    output = seedless("train", config, "--out", tmp_path / "run", "--json", code=2)
    (line,) = output.err.splitlines()
    assert line.startswith("error: out of memory on cpu with batches of 12")
    assert "order.batch_size" in line


def test_a_real_process_ends_as_main_does(run_python, tmp_path):
    done = run_python("-m", "seedless", "train", "dmo", "--out", str(tmp_path), check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: unknown preset 'dmo'")
    assert done.stderr.count("\n") == 1
