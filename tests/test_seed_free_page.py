"""The page on seed-free scripts: its lines make a script repeat, with any number of workers."""

import re
import runpy

import pytest

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "how-to" / "seed-free-script.md"
SCRIPT = ROOT / "tests" / "seed_free" / "digits.py"


def read_diff():
    """The lines that go and those that come in their place, as the page shows them."""
    hunks = re.search(r"```diff\n(.*?)```", PAGE.read_text(), re.DOTALL)[1].split("...\n")
    return [
        [[line[1:] for line in hunk.splitlines() if line[0] == sign] for sign in "-+"]
        for hunk in hunks
    ]


def squeeze(line):
    return line.replace(" ", "")


def change(text):
    """The script with the page's lines, and how many of them came."""
    lines, count = text.splitlines(), 0
    for old, new in read_diff():
        count += len(new)
        squeezed = [squeeze(line) for line in lines]
        place = squeezed.index(squeeze(old[0])) if old else squeezed.index("importtorch") + 1
        lines[place : place + len(old)] = new
    return "\n".join(lines), count


@pytest.fixture(scope="module")
def run(run_python, tmp_path_factory):
    """Run a script with a seed and a number of workers; return what it prints."""
    file = tmp_path_factory.mktemp("script") / "train.py"

    def run_script(text, seed, workers):
        file.write_text(text)
        return run_python(str(file), f"--seed={seed}", f"--workers={workers}").stdout.split()[-1]

    return run_script


def test_five_lines_make_the_script_repeat(run):
    text, count = change(SCRIPT.read_text())
    assert count <= 5
    text = text.replace("DataLoader(dataset1,", "DataLoader(dataset1, num_workers=args.workers,")
    assert run(text, seed=1, workers=0) == run(text, seed=2, workers=2)


def test_negative_control_the_script_as_it_was_depends_on_its_seed(monkeypatch, capsys):
    for seed in (1, 2):  # in this process, where torch is loaded
        monkeypatch.setattr("sys.argv", [str(SCRIPT), f"--seed={seed}"])
        runpy.run_path(str(SCRIPT), run_name="__main__")
    first, second = capsys.readouterr().out.split()
    assert first != second
