"""Runs of `fit` on three processes: the bits of one process, and groups that are refused."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

import seedless
from seedless.core.config import ExecutionConfig
from seedless.core.errors import ConfigError, RunError
from seedless.core.processes import MEETING_FILE
from seedless.core.rendezvous import Place
from seedless.core.sample_digests import READ_TWICE, digest_dataset
from seedless.proof.trail import compare_trails, read_trail
from seedless.runs import group
from seedless.runs.group import join_group, share_cores
from tests.runs.group_member import PROBLEMS, Watched, fit_problem

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """The folder of three processes' runs, and what each process wrote."""
    folder = tmp_path_factory.mktemp("three")
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    members = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.runs.group_member", str(folder)],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": path,
                "RANK": str(rank),
                "WORLD_SIZE": "3",
                MEETING_FILE: str(folder / "meeting"),
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]
    errors = [member.communicate(timeout=300)[1] for member in members]
    assert [member.returncode for member in members] == [0, 0, 0], errors
    found = [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(3)]
    return folder, found


@pytest.mark.parametrize("name", PROBLEMS)
def test_three_processes_have_the_bits_of_one(three, tmp_path, name):
    folder, found = three
    alone = fit_problem(name, tmp_path)
    assert [member["runs"][name] for member in found] == [alone.digest] * 3
    trails = [read_trail(run / name) for run in (folder, tmp_path)]
    assert compare_trails(*trails) is None
    assert trails[0][0]["settings"] == trails[1][0]["settings"]


@pytest.mark.parametrize("name", PROBLEMS)
def test_one_process_verifies_a_run_of_three(three, name):
    run = three[0] / name
    verdict = seedless.verify(run, **PROBLEMS[name])
    assert verdict.outcome == "identical", verdict.details
    made, executed = verdict.details[:2]
    assert made.startswith("made on ")
    assert made.endswith(", in 3 processes")
    assert executed.startswith("executed on ")
    assert "processes" not in executed


def test_a_receipt_says_what_it_ran_on_and_its_settings_do_not(three, tmp_path):
    receipt = json.loads((three[0] / "images" / "receipt.json").read_text())["predicate"]
    alone = fit_problem("images", tmp_path).claims
    devices = ["cpu", "cpu", "cpu"]
    assert receipt["processes"] == {"count": 3, "backend": "gloo", "devices": devices}
    assert receipt["schema"] == "2.3"
    assert receipt["config"] == alone["config"]
    assert alone["processes"] == {"count": 1}


def test_a_finished_run_is_returned_in_every_process(three):
    assert {member["again"] for member in three[1]} == {three[1][0]["runs"]["images"]}


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("native", "in native arithmetic every number of processes has other bits"),
        ("micro-batches", "train.microbatch is 4, and 3 processes were started"),
        ("there already", "holds a finished run"),
        ("other settings", "settings.train.epochs is 2 in process 0 and 3 in process 1"),
        ("other function", "callables.loss=squared_error is sha256:"),
        ("other function", "let it use none that differ between processes"),
        ("other data", "process 2 has other samples than process 0"),
        ("mixing collate", "do not mix samples in collate"),
        ("padding", "pad all samples to one length"),
    ],
)
def test_every_process_refuses_what_cannot_have_the_same_bits(three, what, words):
    for member in three[1]:
        assert words in member["refused"][what]


def test_each_process_hashes_its_share_and_checks_a_few_of_the_others(three):
    alone = digest_dataset(Watched(), shown=False).tobytes().hex()
    for rank, member in enumerate(three[1]):
        assert member["hashed"] == alone
        others = [row for row in member["read"] if row % 3 != rank]
        assert 0 < len(others) <= READ_TWICE
        assert len(member["read"]) - len(others) == len(range(rank, 200, 3))


def test_several_processes_verify_only_what_they_can_prepare(three, tmp_path):
    run = three[0] / "images"
    with pytest.raises(ConfigError, match="leave --processes out"):
        seedless.verify(run, processes=2, **PROBLEMS["images"])
    native = {"execution": {"device": "cpu", "threads": 1}, "train": {"epochs": 1}}
    made = seedless.fit(**{**PROBLEMS["images"], "config": native, "out": tmp_path / "native"})
    with pytest.raises(ConfigError, match="every number of processes has other bits"):
        seedless.verify(made, processes=2)


def test_the_example_of_the_page_runs_on_one_process(tmp_path, monkeypatch):
    page = (ROOT / "docs/how-to/several-machines.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(code, names)
    assert names["run"].claims["processes"] == {"count": 1}


def test_a_refused_group_writes_nothing(three):
    assert not (three[0] / "no").exists()


@pytest.mark.parametrize(
    ("own", "members", "threads"),
    [
        ([0, 1, 2, 3], [[0, 1, 2, 3]] * 2, 2),  # torchrun: all may use all cores
        ([0, 1], [[0, 1], [2, 3]], 2),  # Slurm: each has cores of its own
        ([0], [[0]] * 5, 1),
    ],
)
def test_processes_of_a_machine_share_its_cores(own, members, threads):
    assert share_cores(own, members) == threads


@pytest.mark.parametrize(
    ("variables", "missing"),
    [
        ({}, "MASTER_ADDR and MASTER_PORT are not"),
        ({"MASTER_PORT": "29500"}, "MASTER_ADDR is not"),
        ({"MASTER_ADDR": "here"}, "MASTER_PORT is not"),
    ],
)
def test_a_process_that_was_not_told_where_to_meet_ends_at_once_and_says_so(
    monkeypatch, variables, missing
):
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    said = f"process 1 of 2 .* RANK and WORLD_SIZE are set, {missing}"
    with pytest.raises(ConfigError, match=said):
        join_group(Place(1, 2, "env://"), ExecutionConfig())


def test_a_process_at_whose_address_another_program_answers_ends(monkeypatch, capsys):
    """Torch waits for such a program without end."""
    ended = threading.Event()
    monkeypatch.setattr(group.os, "_exit", lambda code: ended.set())
    monkeypatch.setattr(group, "_GRACE_SECONDS", 0.0)
    with group._end_if_nobody_answers(Place(1, 2, "tcp://here:1"), timedelta(seconds=0)):
        assert ended.wait(60)
    said = capsys.readouterr().err
    assert said.startswith("error: process 1 of 2 could not meet the others within 0 s")
    assert "MASTER_PORT" in said


def test_a_process_that_meets_the_others_is_not_ended(monkeypatch):
    monkeypatch.setattr(group.os, "_exit", lambda code: pytest.fail("ended"))
    before = threading.active_count()
    with group._end_if_nobody_answers(Place(1, 2, "tcp://here:1"), timedelta(seconds=60)):
        assert threading.active_count() == before + 1


def test_a_port_that_is_taken_is_named_with_what_to_do(monkeypatch):
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setenv("MASTER_PORT", str(taken.getsockname()[1]))
        with pytest.raises(RunError, match=r"process 0 of 2 .*set MASTER_PORT to a free one"):
            join_group(Place(0, 2, "env://"), ExecutionConfig())


@pytest.mark.parametrize("address", ["env://", "tcp://no.such.host.invalid:29500"])
def test_a_machine_that_cannot_be_found_is_named_at_once(monkeypatch, address):
    monkeypatch.setenv("MASTER_ADDR", "no.such.host.invalid")
    monkeypatch.setenv("MASTER_PORT", "29500")
    with pytest.raises(ConfigError, match=r"cannot find the machine 'no\.such\.host\.invalid'"):
        join_group(Place(1, 2, address), ExecutionConfig())
