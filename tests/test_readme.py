"""What the README shows runs, and what it prints is true."""

import re

import torch

import seedless
from benchmarks import speed
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()


def test_the_example_runs_and_is_short(run_python, tmp_path):
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    statements = [line for line in code.splitlines() if line.strip()]
    assert len(statements) <= 11
    code = code.replace("runs/mine", str(tmp_path / "mine"))
    digest, sentence = run_python("-W", "error", "-c", code).stdout.splitlines()
    assert digest == seedless.load(tmp_path / "mine", model=small_net()).digest
    assert "identical in every bit" in sentence


def small_net():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(128, 3))


def test_every_file_in_the_tree_exists():
    tree = README.split("## The tree")[1]
    for name in re.findall(r"\w+\.py", tree):
        assert list((ROOT / "src").rglob(name)), name
    rooms = re.findall(r"^  (\w+)/", tree, re.MULTILINE)
    assert rooms
    for room in rooms:
        assert (ROOT / "src" / "seedless" / room).is_dir(), room


# Places and things a reader has, and what takes longer than a test may.
NEEDS = {"FILE.npz", "PATH", "fetch", "demo", "OTHER", "KEY.pem", "resume", "bench"}
NEEDS |= {"'A/*'", "FILE.onnx", "study", "portable"}


def test_the_printed_commands_run(run_seedless, tmp_path):
    commands = re.findall(r"^seedless (\w[^\n]*?)(?:   .*)?$", README, re.MULTILINE)
    assert len(commands) == 29
    run = tmp_path / "RUN"
    tiny = ["--set", "data.preset=tiny", "--set", "train.checkpoint_every=1"]
    run_seedless("train", "demo", "--set", "train.epochs=2", *tiny, "--out", run)
    for command in commands:
        words = [str(run) if word == "RUN" else word for word in command.split()]
        if not NEEDS & set(words):
            out = ["--out", str(tmp_path / "record.png")] if " show simulated" in command else []
            run_seedless(*words, *out)


def test_the_measured_figures_are_there():
    assert README.count("| seedless mixed, cold |") == 1
    assert "@" not in README.split("## What it costs")[1].split("## The tree")[0]


def test_the_page_on_speed_is_what_the_results_say():
    assert (ROOT / "docs" / "speed.md").read_text() == speed.make_page()
