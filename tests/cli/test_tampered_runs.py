"""Every command that opens a run refuses a folder that is not what its receipt says.

The commands are taken from the program itself: a new one must be put into one of the two lists.
"""

import os

import pytest
import typer

from seedless.cli.main import app
from seedless.core.errors import SeedlessError
from seedless.proof.keys import make_key
from tests.forgery import seal
from tests.tiny import ENTRY, answer_here, copy_run, fit_run, flags_restored

# What each command is called with. RUN is the folder in question, GOOD a valid run, ARM both of
# them, and OUT a file that must not be written.
OPENS_A_RUN = {
    "attribute": ["RUN", "--entry", ENTRY, "--out", "OUT"],
    "bundle": ["RUN", "--out", "OUT"],
    "card": ["RUN", "--out", "OUT"],
    "churn": ["GOOD", "RUN"],
    "compare": ["ARM", "ARM"],
    "diff": ["GOOD", "RUN"],
    "evaluate": ["RUN"],
    "export": ["RUN", "--entry", ENTRY, "--onnx", "OUT"],
    "provenance": ["RUN", "--out", "OUT"],
    "referee": ["GOOD", "RUN"],
    "report": ["GOOD", "RUN", "--out", "OUT"],
    "resume": ["RUN", "--entry", ENTRY],
    "robustness": ["RUN", "--entry", ENTRY],
    "sign": ["RUN", "--key", "KEY"],
    "verify": ["RUN", "--entry", ENTRY],
}
# The same commands, with options that lead to other code.
OTHER_WAYS = {
    "evaluate --data": ["evaluate", "RUN", "--data", "simulated"],
    "bundle --with-data": ["bundle", "RUN", "--with-data", "--out", "OUT"],
    "report --verify": ["report", "RUN", "--verify", "--out", "OUT"],
    "diff --locate": ["diff", "RUN", "GOOD", "--locate", "--entry", ENTRY],
    "export --cyclonedx": ["export", "RUN", "--cyclonedx", "OUT"],
    "provenance in the folder": ["provenance", "RUN"],
    "sign --model-signing": ["sign", "RUN", "--model-signing", "--key", "MODEL_KEY"],
    "verify --summary": ["verify", "RUN", "--entry", ENTRY, "--summary", "OUT", "--key", "KEY"],
    "referee --answer": ["referee", "RUN", "--answer", "--entry", ENTRY],
    "verify --sample": ["verify", "RUN", "--sample", "1", "--entry", ENTRY],
    "verify --validate-only": ["verify", "RUN", "--validate-only"],
    "verify --segment": ["verify", "RUN", "--segment", "1", "--entry", ENTRY],
}
OPENS_NONE = {
    "bench",
    "config",
    "data",
    "demo",
    "env",
    "init",
    "order",
    "portable",
    "study",
    "train",
}
OPENS_NONE |= {"doctor", "run"}  # they run a command of the user
CASES = {name: [name, *arguments] for name, arguments in OPENS_A_RUN.items()} | OTHER_WAYS


def change_byte(file):
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def change_weights(run):
    change_byte(run / "weights.safetensors")


def change_weights_and_seal(run):
    change_byte(run / "weights.safetensors")
    seal(run)


def change_metrics(run):
    file = run / "metrics.json"
    file.write_text(file.read_text().replace('"macro_auc": 0.', '"macro_auc": 0.9', 1))


def add_module(run):
    (run / "torch.py").write_text("raise SystemExit(0)\n")


def add_module_and_seal(run):
    add_module(run)
    seal(run)


def add_pipe(run):
    (run / "predictions.npz").unlink()
    os.mkfifo(run / "predictions.npz")


TAMPERS = (
    *(change_weights, change_weights_and_seal, change_metrics),
    *(add_module, add_module_and_seal, add_pipe),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("tampered") / "run", train={"epochs": 1})


@pytest.fixture(scope="module")
def tampered(made, tmp_path_factory):
    """Run folders by what was done to them."""
    folder = tmp_path_factory.mktemp("folders")
    runs = {tamper.__name__: folder / tamper.__name__ / "run" for tamper in TAMPERS}
    for tamper in TAMPERS:
        copy_run(made, runs[tamper.__name__].with_name("good"))
        tamper(copy_run(made, runs[tamper.__name__]))
    return runs


@pytest.fixture
def call(made, tmp_path, monkeypatch):
    """Run a command; return its exit code, and everything it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("seedless.audit.verification.run_worker", answer_here)
    make_key(tmp_path / "KEY")
    make_key(tmp_path / "MODEL_KEY", "P-256")
    good = copy_run(made, tmp_path / "good")

    def run(arguments, folder, capsys):
        names = {"RUN": str(folder), "GOOD": str(good), "ARM": f"{folder.parent}/*"}
        with flags_restored():
            try:
                code = command([names.get(a, a) for a in arguments], standalone_mode=False)
            except SeedlessError as error:
                return 2, str(error)
        return code, capsys.readouterr().out

    command = typer.main.get_command(app)
    return run


def test_every_command_is_in_one_of_the_lists():
    commands = set(typer.main.get_command(app).commands)
    assert commands == {*OPENS_A_RUN, *OPENS_NONE}
    assert not {*OPENS_A_RUN} & OPENS_NONE


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("tamper", [tamper.__name__ for tamper in TAMPERS])
def test_a_tampered_run_is_refused(call, tampered, tmp_path, capsys, case, tamper):
    run = tampered[tamper]
    before = {path: path.lstat().st_mtime_ns for path in run.rglob("*")}
    code, said = call(CASES[case], run, capsys)
    assert code == 2
    assert f"{run} is finished" in said if case == "resume" else "not what its receipt says" in said
    assert not (tmp_path / "OUT").exists()
    assert {path: path.lstat().st_mtime_ns for path in run.rglob("*")} == before


# `referee --answer` is left out: with a run that is intact, it waits for requests.
@pytest.mark.parametrize("case", sorted({*CASES} - {"referee --answer"}))
def test_an_intact_run_is_not_called_tampered(call, made, capsys, case):
    """Whether the command then succeeds is tested with the command."""
    _, said = call(CASES[case], made, capsys)
    assert "not what its receipt says" not in said
