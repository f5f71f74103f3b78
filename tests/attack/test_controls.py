"""The same harness on honest victims, and on a program that does everything wrong."""

import sys

import pytest

from tests.attack.attack import SIGNED, VALIDATE, VERIFY, Attack, leave
from tests.attack.escapes import list_attacks as list_escapes
from tests.attack.forged_runs import list_attacks as list_forgeries
from tests.attack.runner import make_attack
from tests.attack.scripts import EXECUTE
from tests.attack.study_stores import ARCHIVE, REPORT, TABLE, UNPACK, WRITES
from tests.attack.weights_files import BASE
from tests.attack.weights_files import list_attacks as list_weights_files

HONEST = {
    ("native", VERIFY): "IDENTICAL",
    ("native", VALIDATE): "CONSISTENT",
    ("portable", VERIFY): "IDENTICAL",
    ("fit", VALIDATE): "CONSISTENT",
    ("tuned", VALIDATE): "CONSISTENT",
    ("tuned", (*VERIFY, "--weights", BASE)): "IDENTICAL",
    ("script", VALIDATE): "CONSISTENT",
    ("script", EXECUTE): "IDENTICAL",
    ("signed", SIGNED): "CONSISTENT",
    ("attested", SIGNED): "CONSISTENT",
    ("attested", (*VALIDATE, "--public-key", "{keys}/model.pem.pub")): "CONSISTENT",
    ("stripped", VERIFY): "IDENTICAL",
    ("stripped", VALIDATE): "CONSISTENT",
    ("bundle.zip", VALIDATE): "CONSISTENT",
    ("signed.zip", SIGNED): "CONSISTENT",
    ("data.zip", VERIFY): "IDENTICAL",
    ("own.zip", VERIFY): "IDENTICAL",
    ("store", TABLE): "DONE",
    ("store", REPORT): "DONE",
    ("store", ARCHIVE): "DONE",
    ("archive.tar.xz", UNPACK): "DONE",
}


@pytest.mark.parametrize(("victim", "command"), HONEST)
def test_the_honest_victims_pass(victim, command, victims, server, tmp_path):
    control = Attack("control", victim, leave, command, writes=WRITES)
    outcome = make_attack(control, victims, server, tmp_path / "box")
    expected = HONEST[victim, command]
    # Nothing else is wrong: no attack is found only because the sandbox disturbs the program.
    assert outcome.verdict == expected, outcome
    assert [p for p in outcome.problems if not p.startswith(f"got {expected}")] == []


def test_the_honest_run_of_fit_passes(victims, server):
    entry = ("--entry", "own_model:give")
    answer = server.run(["verify", victims / "fit", *entry], cwd=victims / "entry")
    assert answer["stdout"].startswith(b"IDENTICAL"), answer


def test_forgeries_that_are_executed_pass_validation(victims, server, tmp_path):
    """They are what they claim to be: without executing them, nobody can tell."""
    forgeries = [one for one in list_forgeries(victims) if one.victim == "native"]
    for number, forgery in enumerate(forgeries):
        control = Attack("control", "native", forgery.change, VALIDATE, frozenset({"CONSISTENT"}))
        outcome = make_attack(control, victims, server, tmp_path / str(number))
        assert outcome.problems == (), (forgery.name, outcome)
    assert len(forgeries) > 10


def test_names_that_draw_are_in_runs_that_pass_validation(victims, server, tmp_path):
    """Otherwise they would be refused before any command shows them."""
    attacks = [*list_escapes(victims), *list_weights_files(victims)]
    shown = {
        what: attack
        for attack in attacks
        if (what := attack.name.partition(",")[0]).partition("/")[2].startswith(("class", "file"))
    }
    assert len(shown) == 8
    for number, attack in enumerate(shown.values()):
        control = Attack(
            "control", attack.victim, attack.change, VALIDATE, frozenset({"CONSISTENT"})
        )
        outcome = make_attack(control, victims, server, tmp_path / str(number))
        assert outcome.problems == (), (attack.name, outcome)


class Program:
    """Stands for the program: a script that is run in its place."""

    def __init__(self, server, script, **limits):
        self.server, self.script, self.limits = server, script, limits

    def run(self, arguments, **more):
        return self.server.run(arguments, script=self.script, **self.limits, **more)


FAULTS = {
    "executed": f"import subprocess; subprocess.run([{sys.executable!r}, '-m', 'conftest'])",
    "wrote": "open('added.txt', 'w').close()",
    "wrote ['target/native/log": "import sys; open(sys.argv[2] + '/log.jsonl', 'a').write('x')",
    "in TMPDIR": "import tempfile; tempfile.mkdtemp()",
    "MB": "x = b'x' * (1100 << 20)",
    "raw": "print('\\x1b[2J')",
    "second verdict": "print('INVALID: x'); print(' IDENTICAL: y'); raise SystemExit(2)",
    "got CONSISTENT": "print('CONSISTENT: x')",
    "got IDENTICAL with exit 1": "print('IDENTICAL: x'); raise SystemExit(1)",
    "got TRACEBACK": "raise ValueError",
    "got TIMEOUT": "import time; time.sleep(60)",
    "TIMEOUT, expected": "while True: pass",
    "got SIGNAL 9": "import os; os.kill(os.getpid(), 9)",
}


LIMITS = {"got TIMEOUT": {"seconds": 2}, "TIMEOUT, expected": {"processor_seconds": 2}}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_program_does_wrong_is_seen(fault, victims, server, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(FAULTS[fault])
    control = Attack("control", "native", leave, VALIDATE)
    program = Program(server, script, **LIMITS.get(fault, {}))
    outcome = make_attack(control, victims, program, tmp_path / "box")
    assert any(fault in problem for problem in outcome.problems), outcome


def test_a_program_that_refuses_and_does_nothing_else_is_right(victims, server, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print('INVALID: x'); raise SystemExit(2)")
    control = Attack("control", "native", leave, VALIDATE)
    outcome = make_attack(control, victims, Program(server, script), tmp_path / "box")
    assert (outcome.verdict, outcome.problems) == ("INVALID", ())
