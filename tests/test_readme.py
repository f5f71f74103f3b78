"""What the README shows runs, and what it prints is true."""

import re
from pathlib import Path

import seedless
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()


def test_the_example_runs_and_is_short(run_python):
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    statements = [line for line in code.splitlines() if line.strip()]
    assert len(statements) <= 11
    printed = run_python("-W", "error", "-c", code).stdout.split()
    model = seedless.build("conformer", leads=12, classes=12)
    plan = seedless.initialize(model, basis="mixed")
    assert printed == [plan.digest, seedless.digest(model)]


def test_every_file_in_the_tree_exists():
    tree = README.split("## The tree")[1]
    for name in re.findall(r"\w+\.py", tree):
        assert list((ROOT / "src").rglob(name)), name
    rooms = re.findall(r"^  (\w+)/", tree, re.MULTILINE)
    assert rooms
    for room in rooms:
        assert (ROOT / "src" / "seedless" / room).is_dir(), room


def test_every_link_leads_somewhere():
    for page in [ROOT / "README.md", *Path(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_printed_commands_run(run_python, tmp_path):
    commands = re.findall(r"^seedless (\w[^\n]*?)(?:   .*)?$", README, re.MULTILINE)
    assert len(commands) == 9
    for command in commands:
        if not {"FILE.npz", "PATH", "fetch"} & set(command.split()):
            out = ["--out", str(tmp_path / "record.png")] if " show simulated" in command else []
            run_python("-m", "seedless", *command.split(), *out)


def test_the_measured_figures_are_there():
    assert README.count("| seedless mixed, cold |") == 1
    assert "@" not in README.split("## What it costs")[1].split("## The tree")[0]
