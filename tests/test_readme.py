"""What the README and the list of commands show runs, and the map shows the tree as it is."""

import re

import torch

import seedless
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()
COMMANDS = (ROOT / "docs" / "reference" / "commands.md").read_text()


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


def test_the_map_shows_every_package_once_in_the_order_of_imports():
    shown = re.findall(r"^  (\w+)/", README.split("## Map")[1], re.MULTILINE)
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
        places = {"RUN": str(run), "FILE.json": str(tmp_path / "bom.json")}
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
