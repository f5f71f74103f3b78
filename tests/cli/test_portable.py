"""`seedless portable check`: digests beside the shipped ones, one verdict, and an exit code."""

import json

import pytest
from typer.testing import CliRunner

from seedless.audit import portable_check
from seedless.cli.main import app
from seedless.core.errors import SeedlessError
from seedless.portable import engine_choice
from seedless.portable.check import compute
from seedless.portable.context import CONTEXT

SHIPPED = compute.read_committed()


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """A few ops and one step of each of two models."""
    ops = {name: compute.OPS[name] for name in ("exp", "mm", "conv2d")}
    monkeypatch.setattr(compute, "OPS", ops)
    monkeypatch.setattr(portable_check, "MODELS", {"baseline": None})
    monkeypatch.setattr(portable_check, "NETWORKS", {"gru": portable_check.NETWORKS["gru"]})
    train = portable_check.train_and_hash
    monkeypatch.setattr(portable_check, "train_and_hash", lambda *given: train(*given[:4], 1))
    kept = {name: SHIPPED["ops"][name] for name in ops}
    monkeypatch.setattr(portable_check, "read_committed", lambda: SHIPPED | {"ops": kept})


def run(*words):
    return CliRunner().invoke(app, ["portable", "check", *words])


def test_the_same_bits_are_said_to_be_the_same():
    shown = run()
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    exp = SHIPPED["ops"]["exp"]
    assert f"{'op exp':<32} {exp}  {exp}  same" in lines
    assert sum(line.endswith("same") for line in lines) == 5
    assert lines[-1].startswith("SAME: 3 ops and 2 models on cpu have the shipped digests")


def test_the_engine_of_products_is_named_and_does_not_show(monkeypatch):
    monkeypatch.setattr(CONTEXT, "engine", "int8")
    shown = run()
    assert shown.exit_code == 0, shown.output
    assert "computed by the engine int8, set by SEEDLESS_ENGINE" in shown.output


def test_an_engine_that_was_timed_is_named_with_the_times(monkeypatch):
    monkeypatch.setattr(CONTEXT, "engine", "auto")
    monkeypatch.setattr(CONTEXT, "engine_choices", {})
    seconds = {"float64": 0.002, "int8": 0.005}
    monkeypatch.setattr(engine_choice, "time_engines", lambda device: seconds)
    expected = "float64, chosen by timing: float64 2.00 ms, int8 5.00 ms"
    assert f"matrix products: computed by the engine {expected}" in run().output
    found = json.loads(run("--json").output)
    assert f"{found['engine']}, {found['engine_reason']}" == expected


def test_another_digest_ends_in_exit_code_1_and_names_it(monkeypatch):
    wrong = dict.fromkeys(("exp", "mm", "conv2d"), "0" * 16)
    monkeypatch.setattr(portable_check, "read_committed", lambda: SHIPPED | {"ops": wrong})
    shown = run()
    assert shown.exit_code == 1
    assert f"exp: expected {'0' * 16}, found {SHIPPED['ops']['exp']}" in shown.output
    assert "DIFFERENT: 3 of 3 ops and 2 models on cpu" in shown.output


def test_json_holds_everything():
    shown = run("--json")
    found = json.loads(shown.output)
    assert found["same"] is True
    assert found["differences"] == []
    assert found["engine"] == "float64"
    assert found["ops"]["exp"] == found["shipped"]["ops"]["exp"]
    gru = SHIPPED["models"]["gru"]
    assert found["models"]["gru"] == {k: [v[0]] for k, v in gru.items()}


def test_full_runs_the_models_of_published_size_too(monkeypatch):
    monkeypatch.setattr(portable_check, "FULL", {"baseline": (2, 12, 60)})
    monkeypatch.setattr(portable_check, "make_model", lambda name, small: _small(name))
    shown = run("--full")
    assert "full baseline" in shown.output
    assert "expected nothing" in shown.output  # none is shipped for it
    assert shown.exit_code == 1


def _small(name):
    model = portable_check.build(name, small=True)
    portable_check.initialize(model, "dct")
    return model


@pytest.mark.parametrize(("device", "words"), [("tpu", "unknown device"), ("cuda", "found none")])
def test_a_device_that_is_not_there_is_refused(monkeypatch, device, words):
    monkeypatch.setattr(portable_check.torch.cuda, "is_available", lambda: False)
    refused = run("--device", device).exception
    assert isinstance(refused, SeedlessError)
    assert words in str(refused)
