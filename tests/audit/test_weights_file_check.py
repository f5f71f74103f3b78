"""`train` and `verify` from the command line: the weights file in other processes."""

import json
import shutil
from functools import partial

import pytest

from tests.small import COMMON, IMAGES, train_small
from tests.tiny import flags_restored


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    with flags_restored():
        run = train_small(folder / "run", *IMAGES)
    return (run / "weights.safetensors").rename(folder / "base.safetensors")


def train(run_seedless, out, base):
    """Fine-tune with two classes, and so with a new head; return what `train --json` prints."""
    head = ("data.classes=2", 'init.reinitialize=["head.*"]')
    chosen = [*COMMON, *IMAGES[1:], *head, f"init.weights={base}"]
    flags = [part for setting in chosen for part in ("--set", setting)]
    return json.loads(run_seedless("train", IMAGES[0], "--out", str(out), *flags, "--json").stdout)


@pytest.fixture(scope="module")
def tuned(nursery, base, tmp_path_factory):
    run = tmp_path_factory.mktemp("tuned") / "run"
    train(partial(nursery.run, code=0), run, base)
    return run


@pytest.fixture
def claims(tuned):
    return json.loads((tuned / "receipt.json").read_text())["predicate"]


def test_two_processes_and_a_verifier_agree_in_every_bit(
    run_seedless, base, tuned, claims, tmp_path
):
    """Another place and name of the file, another process, the same digests."""
    moved = shutil.copy(base, tmp_path / "renamed.safetensors")
    again = train(run_seedless, tmp_path / "again", moved)
    assert again["weights"] == claims["weights"]
    assert again["config"]["digest"] == claims["config"]["digest"]
    verified = run_seedless("verify", str(tuned), "--weights", str(moved))
    assert verified.stdout.startswith("IDENTICAL")


def test_a_flipped_bit_of_the_file_is_refused(run_seedless, base, tuned, claims, tmp_path):
    """[Negative control] As a start of its own, the flipped file gives another model."""
    content = bytearray(base.read_bytes())
    content[-9] ^= 4
    flipped = tmp_path / "flipped.safetensors"
    flipped.write_bytes(content)
    refused = run_seedless("verify", str(tuned), "--weights", str(flipped), check=False)
    assert refused.code == 2
    assert "flipped.safetensors holds other bytes" in refused.stderr
    other = train(run_seedless, tmp_path / "other", flipped)
    assert other["config"]["digest"] != claims["config"]["digest"]
    assert other["weights"] != claims["weights"]


def test_a_missing_file_is_asked_for_by_name_and_digest(run_seedless, base, tuned, tmp_path):
    bundle = tmp_path / "run.zip"
    run_seedless("bundle", str(tuned), "--out", str(bundle))
    away = base.rename(base.with_name("away"))
    try:
        for run in (tuned, bundle):
            refused = run_seedless("verify", str(run), check=False)
            assert refused.code == 2
            assert "began with the weights of base.safetensors, sha256:" in refused.stderr
            assert "give it with --weights FILE" in refused.stderr
        verified = run_seedless("verify", str(bundle), "--weights", str(away))
        assert verified.stdout.startswith("IDENTICAL")
        assert "CONSISTENT" in run_seedless("verify", str(tuned), "--validate-only").stdout
    finally:
        away.rename(base)


def test_a_file_is_refused_for_a_run_that_began_with_none(run_seedless, base, tmp_path):
    run = train_small(tmp_path / "plain", *IMAGES)
    refused = run_seedless("verify", str(run), "--weights", str(base), check=False)
    assert refused.returncode == 2
    assert "began with no weights file: leave --weights out" in refused.stderr


def test_a_pickle_and_a_missing_file_are_refused_before_anything_is_read(run_seedless, tmp_path):
    for name in ("model.pt", "missing.safetensors"):
        (tmp_path / "model.pt").touch()
        flags = ["--set", f"init.weights={tmp_path / name}"]
        refused = run_seedless("train", "demo", "--out", str(tmp_path / "run"), *flags, check=False)
        assert refused.returncode == 2
        assert "expected a safetensors weights file" in refused.stderr
        assert not (tmp_path / "run").exists()


def test_a_plan_is_not_shown_for_a_file(run_seedless, base):
    refused = run_seedless(
        "init", "show", "resnet18", "--small", "--set", f"init.weights={base}", check=False
    )
    assert refused.returncode == 2
    assert "leave init.weights" in refused.stderr
