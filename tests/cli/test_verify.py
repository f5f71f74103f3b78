"""`seedless verify` as a person runs it: one line, details, and an exit code a script can use."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields

import pytest
import torch

import seedless
from seedless.audit.verdict import CODES, Verdict
from seedless.cli.main import main
from seedless.runs.folder import read_config
from tests.conftest import ROOT
from tests.forgery import forge, read_entries, reconfigure, replace
from tests.tiny import ENTRY, answer_here, copy_run, fit_run, flags_restored

ABSENT = os.strerror(errno.ENOENT)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("cli") / "run")


@pytest.fixture
def run(finished, tmp_path):
    with flags_restored():
        yield copy_run(finished, tmp_path / "run")


@pytest.fixture
def call(monkeypatch, capsys):
    """Run the program in this process; return exit code, standard output and standard error."""
    monkeypatch.setattr("seedless.audit.verification.run_worker", answer_here)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["seedless", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


def flip(run):
    """Return the run of another one with a flipped bit, that denies it."""
    other = fit_run(run.parent / "flipped", control={"flip_bit": "0.weight:3:0"})
    reconfigure(other, read_config(run))
    return other


def test_identical_is_0(call, run):
    code, out, _ = call("verify", run, "--entry", ENTRY)
    assert code == 0
    assert out.startswith("IDENTICAL: executed again, identical in every bit: 4 trail entries, ")


def test_consistent_is_0_and_says_that_nothing_was_executed(call, run):
    code, out, _ = call("verify", run, "--validate-only")
    assert code == 0
    limits = "nothing was executed, and the predictions were not computed again"
    assert out == f"CONSISTENT: {run} agrees with its receipt; {limits}\n  not signed\n"


def test_different_is_1_with_epoch_and_tensors(call, run):
    code, out, _ = call("verify", flip(run), "--entry", ENTRY)
    assert code == 1
    first, second, third = out.splitlines()
    assert first == "DIFFERS: executed again, the run differs from its receipt"
    assert second == "  not signed"
    assert third.startswith("  in epoch 1: ")
    assert "tensors (model/" in third


def test_invalid_is_2_with_every_reason(call, run):
    (run / "metrics.json").write_text("{}")
    (run / "weights.safetensors").unlink()
    code, out, _ = call("verify", run)
    assert code == 2
    assert out.startswith(f"INVALID: {run} is not what its receipt says\n")
    assert "  metrics.json was changed: expected sha256:" in out
    assert "  weights.safetensors is missing" in out


def test_not_to_be_judged_is_3_and_says_what_differs(call, run):
    other = flip(run)
    forge(other, replace(read_entries(other), (0, "environment", "packages", "torch"), "1.0"))
    code, out, _ = call("verify", other, "--entry", ENTRY)
    assert code == 3
    assert out.startswith("CANNOT JUDGE: executed again, it differs; but this machine is not like")
    assert "\n  packages.torch: 1.0 there, " in out


@pytest.mark.parametrize("options", [("--validate-only",), ("--entry", ENTRY)])
def test_json_is_json_and_nothing_else(call, run, options):
    code, out, err = call("verify", run, "--json", *options)
    found = json.loads(out)
    assert (code, found["code"], err) == (0, 0, "")
    assert {*found} == {field.name for field in fields(Verdict)} | {"code"}
    (run / "log.jsonl").unlink()
    code, out, err = call("verify", run, "--json", *options)
    found = json.loads(out)
    assert (code, found["code"], found["outcome"]) == (2, 2, "invalid")
    assert "log.jsonl is missing" in found["details"]


def test_one_segment_is_4_and_never_called_identical(call, run):
    code, out, _ = call("verify", run, "--entry", ENTRY, "--segment", 2)
    assert code == 4
    assert out.startswith("SEGMENT 2 OF 3 IDENTICAL: executed again, identical in every bit: 2 tra")
    assert "; the rest of the run was not executed\n" in out


def test_accepting_a_part_needs_a_part(call, run):
    code, _, error = call("verify", run, "--entry", ENTRY, "--accept-part")
    assert code == 2
    assert "--segment K or --sample N" in error


def test_a_script_can_accept_a_part_and_nothing_worse(call, run):
    options = ("--entry", ENTRY, "--segment", 1, "--accept-part")
    code, out, _ = call("verify", run, *options, "--json")
    found = json.loads(out)
    assert (code, found["code"], found["outcome"]) == (0, 0, "segment identical")
    assert call("verify", flip(run), *options)[0] == 1
    (run / "log.jsonl").unlink()
    assert call("verify", run, *options)[0] == 2


def test_a_sample_is_4_and_prints_its_token_and_the_chance_of_a_miss(call, run):
    code, out, _ = call("verify", run, "--entry", ENTRY, "--sample", 1)
    assert code == 4
    lines = out.splitlines()
    assert lines[0].startswith("SAMPLE OF 1 OF 3 SEGMENTS IDENTICAL: ")
    chosen = next(line for line in lines if " chosen by --sample-token " in line)
    assert "  probability that this sample misses every forged segment: 1 forged: 0.667, " in out
    assert "  one false segment is enough to forge a run" in out
    token = chosen.split()[-1]
    again = ("--sample", 1, "--sample-token", token, "--accept-part")
    code, out, _ = call("verify", run, "--entry", ENTRY, *again)
    assert code == 0
    assert chosen in out.splitlines()
    code, out, err = call("verify", run, "--entry", ENTRY, "--sample", 3)
    assert (code, out) == (2, "")
    assert "expected a sample of 1 to 2 of them, got 3" in err


def test_a_segment_that_is_not_there_is_2(call, run):
    code, out, err = call("verify", run, "--entry", ENTRY, "--segment", 9)
    assert (code, out) == (2, "")
    assert "has 3 segments between checkpoints, numbered from 1; got 9" in err


def test_a_run_of_fit_without_its_entry_is_2_and_says_how_to_give_it(call, run):
    code, out, err = call("verify", run)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {run} is a run of fit(): ")
    assert "--entry package.module:function" in err
    assert "Traceback" not in err


def test_a_wrong_key_file_is_an_error_and_no_verdict(call, run, tmp_path):
    code, out, err = call("verify", run, "--validate-only", "--public-key", tmp_path / "none.pub")
    assert (code, out) == (2, "")
    assert err == f"error: {tmp_path / 'none.pub'}: the public key cannot be read: {ABSENT}\n"


def test_help_lists_every_exit_code(call):
    code, out, _ = call("verify", "--help")
    assert code == 0
    assert all(f"{number}:" in out for number in {*CODES.values()})


def test_a_bad_entry_is_2(call, run):
    code, _, err = call("verify", run, "--entry", "nowhere:at_all")
    assert code == 2
    assert "cannot be loaded: ModuleNotFoundError: No module named 'nowhere'" in err


def test_what_is_no_run_is_2_with_a_helpful_sentence(call, run, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("text")
    (tmp_path / "cut.zip").write_bytes(b"PK\x03\x04 and no more")
    seedless.record(tmp_path / "own", torch.nn.Linear(1, 1)).close()
    (run / "receipt.json").unlink()
    expected = {
        tmp_path / "nowhere": "no run at '",
        tmp_path / "empty": "is not a run folder: it has no receipt.json",
        tmp_path / "file.txt": "is a file, and neither a run folder nor a bundle of one",
        tmp_path / "cut.zip": "is damaged or cut short",
        tmp_path / "own": "`seedless diff` can compare it, but nothing can verify it",
        run: f"the run is not finished; `seedless resume {run}` finishes it",
    }
    for place, sentence in expected.items():
        code, out, err = call("verify", place)
        assert code == 2, place
        assert sentence in out + err
        assert "Traceback" not in out + err


def test_without_arguments_it_is_2(call):
    code, _, err = call("verify")
    assert code == 2
    assert "Missing argument" in err


# A shell lets what it runs in the background ignore Ctrl-C; this is what a terminal runs.
HEEDING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from seedless.cli.main import main
main()
"""
SLOW = """
import time
from pathlib import Path

def give():
    Path({marker!r}).touch()
    time.sleep(100)
"""


def test_ctrl_c_is_one_line_and_130_in_both_processes(run, tmp_path):
    """As a terminal sends it: to the program and to the process that executes the run."""
    marker = tmp_path / "begun"
    (tmp_path / "slow.py").write_text(SLOW.format(marker=str(marker)))
    process = subprocess.Popen(
        [sys.executable, "-c", HEEDING, "verify", str(run), "--entry", "slow:give"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        start_new_session=True,
    )
    while not marker.exists() and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (130, "", "stopped by Ctrl-C\n")


@pytest.mark.parametrize("command", ["verify", "diff"])
def test_ctrl_c_before_anything_was_found_is_130(call, run, monkeypatch, command):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    home = {"verify": "verification", "diff": "run_diff"}[command]
    monkeypatch.setattr(f"seedless.audit.{home}.{command}", interrupt)
    runs = [run] if command == "verify" else [run, run]
    assert call(command, *runs) == (130, "", "stopped by Ctrl-C\n")


def test_a_fresh_process_finds_the_entry_beside_you(run, tmp_path):
    module = f"import sys\nsys.path.append({str(ROOT)!r})\nfrom tests.tiny import give\n"
    (tmp_path / "beside.py").write_text(module)
    command = [sys.executable, "-m", "seedless", "verify", "run", "--entry", "beside:give"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("IDENTICAL: ")
    assert done.stdout.splitlines()[1:] == ["  not signed"]


def test_resuming_a_finished_run_of_fit_says_that_it_is_finished(call, run):
    code, _, err = call("resume", run)
    assert code == 2
    assert err == f"error: {run} is finished; `seedless verify {run}` checks it\n"
