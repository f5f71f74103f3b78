"""`seedless run`: its name for a run, its answer, and its exit code where there is no receipt."""

import sys

import pytest

from seedless.cli.run import describe_run, name_run


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python", "train.py", "--config", "x.py"], "train"),
        (["python", "-u", "scripts/fit.py"], "fit"),
        (["python", "-m", "pkg.train"], "train"),
        (["python", "-m", "torch.distributed.run", "ddp.py"], "ddp"),
        (["/usr/bin/make"], "make"),
    ],
)
def test_a_run_is_named_after_its_script(command, name):
    assert name_run(command) == name


def test_the_answer_is_of_visible_characters_and_says_what_was_not_seen():
    values = {
        "run": "runs/a\x1b[2J",
        "steps": 3,
        "processes": 2,
        "sources": 1,
        "data": 0,
        "missing": ["lost.pt"],
        "unobserved": ["h5py"],
        "changed": ["state.json"],
        "outputs": {f"{n}.pt": "sha256:0" for n in range(12)},
        "receipt": "sha256:1",
    }
    text = describe_run(values)
    assert text.replace("\n", "").isprintable()
    for part in (
        "3 steps in 2 processes",
        "and 2 more",
        "lost.pt",
        "h5py",
        "state.json",
        "sha256:1",
    ):
        assert part in text


def test_a_script_that_fails_ends_with_2_and_without_a_result(run_python, tmp_path):
    code = "import sys; print('printed'); sys.exit('broken')"
    command = ["-P", "-m", "seedless", "run", "--json", "--out", str(tmp_path / "run")]
    done = run_python(*command, "--", sys.executable, "-c", code, check=False)
    assert done.returncode == 2
    assert done.stdout == ""  # what the script prints goes to standard error
    assert "printed" in done.stderr
    assert "error: no receipt was written: it ended with exit code 1" in done.stderr
    assert done.stderr.rstrip().endswith("broken")
    assert list(tmp_path.iterdir()) == []
