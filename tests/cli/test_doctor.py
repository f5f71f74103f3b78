"""`seedless doctor` as a person runs it, on small scripts in processes of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from seedless.audit.doctor.diagnosis import Diagnosis
from seedless.cli.doctor import describe
from tests.conftest import ROOT

TRAIN = """
import torch
SEED
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.arange(32.0).reshape(8, 4)
for batch in data.split(4):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
print("what the script prints")
"""


@pytest.fixture
def doctor(tmp_path):
    """Run the program in a folder with a script; return the finished process."""

    def doctor(*arguments, code=None):
        if code is not None:
            (tmp_path / "train.py").write_text(code)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            [sys.executable, "-m", "seedless", "doctor", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=300,
        )

    return doctor


COMMAND = ("--", sys.executable, "train.py")


def test_identical_is_0_and_the_output_goes_to_files(doctor, tmp_path):
    done = doctor("--out", "records", *COMMAND, code=TRAIN.replace("SEED", "torch.manual_seed(0)"))
    assert (done.returncode, done.stdout) == (
        0,
        "IDENTICAL: every value recorded in 2 steps agrees\n",
    ), done.stderr
    assert (tmp_path / "records" / "run-1" / "stdout.txt").read_text() == "what the script prints\n"
    first, *_, last = done.stderr.splitlines()
    assert first.startswith("2 runs of the command if they agree; if they differ, at most ")
    assert re.search(r"^run-1 took [0-9.]+ s$", done.stderr, re.MULTILINE)
    assert re.fullmatch(r"2 runs of the command in [0-9]+ s", last)


def test_the_runs_that_were_made_are_counted_and_no_more_than_announced(doctor, tmp_path):
    done = doctor("--out", "records", *COMMAND, code=TRAIN.replace("SEED", ""))
    made = len(list((tmp_path / "records").glob("run-*")))
    most = int(re.search(r"at most ([0-9]+),", done.stderr)[1])
    assert 2 < made <= most
    assert done.stderr.splitlines()[-1].startswith(f"{made} runs of the command in ")


def test_an_unseeded_script_is_1_with_the_call_to_add(doctor, tmp_path):
    page = tmp_path / "page.html"
    done = doctor("--json", "--report", page, *COMMAND, code=TRAIN.replace("SEED", ""))
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["identical"] is False
    assert (found["step"], found["what"]) == (1, "initial weights")
    assert (found["cause"], found["confidence"]) == ("unseeded-weights", "certain")
    assert "torch.manual_seed(0)" in found["remedy"]
    assert done.stderr == ""
    text = page.read_text()
    assert "The runs differ first at step 1: initial weights" in text
    assert "optimizer.zero_grad()" in text.split("</header>")[0]
    assert "2 of 2 steps have a value that differs" in text
    assert all(result["sentence"].split(", ")[-1] in text for result in found["experiments"])


def test_a_page_that_cannot_be_written_is_refused_before_the_runs(doctor, tmp_path):
    done = doctor("--report", "none/page.html", "--out", "records", *COMMAND, code=TRAIN)
    assert done.returncode == 2
    assert "there is no folder 'none'; make it first" in done.stderr
    assert not (tmp_path / "records").exists()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ([sys.executable, "-I", "train.py"], "option -I keeps the recorder out"),
        ([sys.executable, "-c", "print()"], "no process imported torch"),
        ([sys.executable, "-c", "raise SystemExit('no \\x1b[1m data')"], r"no \x1b[1m data"),
        ([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], "ended by SIGKILL"),
    ],
)
def test_a_run_without_a_step_is_2_with_the_reason(doctor, command, reason):
    done = doctor("--json", "--", *command, code="import sys\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no training step was recorded" in done.stderr
    assert reason in done.stderr


def test_arguments_are_refused_with_2(doctor):
    assert "there is no program 'nosuch'" in doctor("--", "nosuch").stderr
    assert "expected --vary" in doctor("--vary", "threads=1", "--", "true").stderr
    assert doctor().returncode == 2


def test_time_is_limited_and_nothing_is_left_running(doctor, tmp_path):
    child = "import time; time.sleep(100)"
    code = f"""
import pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {child!r}], start_new_session=True)
pathlib.Path("child").write_text(str(child.pid))
child.wait()
"""
    done = doctor("--timeout", "3", *COMMAND, code=code)
    assert done.returncode == 2
    assert "it was ended after 3 s; allow more with --timeout" in done.stderr
    assert not is_running(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "stopped by Ctrl-C"), (signal.SIGTERM, 143, "")],
)
def test_a_signal_ends_the_whole_command(tmp_path, number, code, said):
    (tmp_path / "train.py").write_text(
        "import os, pathlib, time\n"
        "pathlib.Path('part').write_text(str(os.getpid())); os.rename('part', 'child')\n"
        "time.sleep(100)\n"
    )
    # A test suite in the background ignores Ctrl-C, and so would every program it starts.
    start = (
        "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "runpy.run_module('seedless', run_name='__main__')"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", start, "doctor", *COMMAND],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "child").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    assert said in process.communicate(timeout=300)[1]
    assert process.returncode == code
    assert not is_running(int((tmp_path / "child").read_text()))


FOUND = Diagnosis(
    identical=False,
    step=3,
    what="optimizer_state_before",
    op="aten.mm.default",
    module="head",
    line="train.py:12",
    cause="threads",
    title="torch splits its sums among another number of threads",
    remedy="set the same number in both runs",
    confidence="likely",
    ranks=(1,),
    evidence=("a value of \x1b[31m someone else\nTHEY AGREE", "with one thread, the runs agree"),
    experiments=({"sentence": "with one thread, the runs agree"},),
)


@pytest.mark.parametrize("columns", [80, 120])
def test_an_answer_says_what_why_and_which_line_first(columns):
    lines = describe(FOUND, columns).splitlines()
    assert max(map(len, lines)) <= columns
    joined = "\n".join(lines).replace("\n  ", " ")
    what, why, change, *rest = joined.splitlines()
    assert what == (
        "THEY DIFFER first at step 3 of rank 1: optimizer state before, in aten.mm.default of "
        "module head"
    )
    assert why == (
        "because torch splits its sums among another number of threads [threads, likely]"
    )
    assert change == "change: train.py:12: set the same number in both runs"
    assert rest[:2] == ["", "evidence"]


def test_what_records_hold_is_escaped_and_an_experiment_is_told_once():
    text = describe(FOUND, 200)
    assert r"- a value of \x1b[31m someone else\nTHEY AGREE" in text
    assert text.count("with one thread") == 1


def test_answers_that_are_no_difference():
    assert describe(Diagnosis(True, steps=1)) == "IDENTICAL: every value recorded in 1 step agrees"
    assert describe(Diagnosis(None, reason="one run failed")) == "COULD NOT TELL: one run failed"


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return ") Z " not in file.read()
    except FileNotFoundError:
        return False
