"""What the README and the list of commands show runs; the map of the architecture is the tree."""

import json
import re

import torch

import seedless
from benchmarks.two_seeds import find_changed, find_closest
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
COMMANDS = (ROOT / "docs" / "reference" / "commands.md").read_text()


def test_the_example_runs_and_is_short(run_python, tmp_path):
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    statements = [line for line in code.splitlines() if line.strip()]
    assert len(statements) <= 11
    code = code.replace("runs/mine", str(tmp_path / "mine"))
    digest, sentence = run_python("-W", "error", "-c", code).stdout.splitlines()
    assert digest == seedless.load(tmp_path / "mine", model=small_net()).digest
    assert "identical in every bit" in sentence


def test_the_readme_is_short_and_its_figure_is_the_records():
    assert len(README.split()) <= 900
    record = json.loads((ROOT / "benchmarks" / "results" / "two-seeds.json").read_text())
    one, other = find_closest(record["runs"])
    changed = find_changed(one, other)
    words = " ".join(README.split())
    assert f"AUC {one['auc']:.3f} and {other['auc']:.3f}" in words
    assert f"{sum(changed)} of {len(changed)} test images" in words


def test_the_minutes_of_the_first_hour_are_the_records():
    record = json.loads((ROOT / "benchmarks" / "results" / "first-hour.json").read_text())
    demo, own = (
        round(sum(record["results"][f"{way}, seconds"].values()) / 60)
        for way in ("clone to the demo's page", "wheel to a verified run")
    )
    words = " ".join(README.split())
    assert f"{demo} minutes from clone to page" in words
    assert f"{own} minute from the wheel to a verified run on own arrays (" in words
    tutorial = (ROOT / "docs" / "tutorial" / "first-run.md").read_text()
    assert f"{demo} minutes on two cores" in " ".join(tutorial.split())


def small_net():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(128, 2))


def test_the_map_shows_every_package_once_in_the_order_of_imports():
    shown = re.findall(r"^  (\w+)/", ARCHITECTURE.split("## Map")[1].split("## ")[0], re.MULTILINE)
    folders = [path.parent.name for path in (ROOT / "src" / "seedless").glob("*/__init__.py")]
    assert sorted(shown) == sorted(folders)
    contract = (ROOT / "pyproject.toml").read_text().split("layers = [")[1].split("]")[0]
    layers = [set(names.split(" | ")) for names in re.findall(r'"([^"]+)"', contract)]
    place = {name: number for number, names in enumerate(reversed(layers)) for name in names}
    assert [place[name] for name in shown] == sorted(place[name] for name in shown)


# Places and things a reader has, and what takes longer than a test may.
NEEDS = {"FILE.npz", "PATH", "fetch", "demo", "OTHER", "KEY.pem", "resume", "bench"}
NEEDS |= {"train.py", "'A/*'", "FILE.onnx", "FILE.tar.xz", "table", "report", "portable"}
LISTED = re.findall(r"^seedless (\w[^\n]*?)(?:   .*)?$", COMMANDS, re.MULTILINE)


def test_the_printed_commands_run(run_seedless, tmp_path):
    run = tmp_path / "RUN"
    tiny = ["--set", "data.preset=tiny", "--set", "train.checkpoint_every=1"]
    run_seedless("train", "demo", "--set", "train.epochs=2", *tiny, "--out", run)
    done = 0
    for command in LISTED:
        files = {name: str(tmp_path / name) for name in ("FILE.json", "FILE.html")}
        places = {"RUN": str(run), **files}
        words = [places.get(word, word) for word in command.split()]
        if NEEDS & set(words) or words[:2] == ["study", "run"]:
            continue
        out = ["--out", str(tmp_path / "record.png")] if " show simulated" in command else []
        part = ["--accept-part"] if {"--segment", "--sample"} & set(words) else []
        run_seedless(*words, *out, *part)
        done += 1
    assert done >= 14


def test_every_command_is_listed(run_seedless):
    """Each command in the help of the program has an example, and the panels are the headings."""
    helped = run_seedless("--help").stdout
    commands = re.findall(r"^│ (\w+) ", helped, re.MULTILINE)
    assert len(commands) > 20
    assert {line.split()[0] for line in LISTED} == set(commands)
    panels = re.findall(r"^╭─ ([^─]+) ─", helped, re.MULTILINE)
    headings = re.findall(r"^## (.*)$", COMMANDS, re.MULTILINE)
    assert [name for name in panels if name != "Options"] == headings[: len(panels) - 1]
