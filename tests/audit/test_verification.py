"""Verification: four verdicts, each earned; a fresh process with what was recorded, and no traces.

Tampering has a file of its own (test_tamper.py).
"""

import hashlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import seedless
from seedless.audit import verification
from seedless.core.config import parse_config
from seedless.core.digests import canonical_json
from seedless.core.errors import ConfigError, RunError, StorageError
from seedless.proof.bundle import write_bundle
from seedless.proof.keys import SignatureError, make_key, public_path, read_keyid
from seedless.proof.signature import sign_receipt
from seedless.runs.folder import read_config
from seedless.runs.train import train_run
from seedless.runs.user_model import load_entry
from tests.forgery import (
    forge,
    read_entries,
    read_statement,
    reconfigure,
    rewrite_checkpoint,
    seal,
)
from tests.tiny import (
    ENTRY,
    SETTINGS,
    answer_here,
    copy_run,
    fit_run,
    flags_restored,
    give,
    make_arrays,
    make_model,
)


def write_arrays(file, seed=0):
    """Write 48 recordings of two leads, in three classes, as `seedless train` reads them."""
    draw = np.random.default_rng(seed)
    numbers = np.arange(48) % 3
    samples = draw.normal(size=(48, 2, 250)).astype("f4") + numbers[:, None, None].astype("f4")
    np.savez(file, X=samples, Y=np.eye(3, dtype="u1")[numbers], folds=np.arange(48) % 10 + 1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of `seedless train` on a file of arrays."""
    folder = tmp_path_factory.mktemp("verify")
    write_arrays(folder / "ours.npz")
    settings = {
        **SETTINGS,
        "data": {"name": str(folder / "ours.npz")},
        "model": {"name": "baseline", "small": True},
        "train": {"epochs": 2, "checkpoint_every": 1, "evaluate_every": 1},
    }
    with flags_restored():
        return train_run(parse_config(settings), folder / "run").path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A run of `seedless.fit`."""
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("fitted") / "run")


@pytest.fixture
def in_process(monkeypatch):
    """Execute runs again in this process; the tests that do without this start one of its own."""
    monkeypatch.setattr("seedless.audit.verification.run_worker", answer_here)


def look(folder):
    """Return everything that could change in a folder: names, contents, modes and times."""
    return {
        path.relative_to(folder).as_posix(): (
            path.stat().st_mode,
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in [folder, *folder.rglob("*")]
    }


# Identical


def test_a_run_of_train_repeats_in_a_fresh_process_and_stays_untouched(trained, tmp_path):
    run = copy_run(trained, tmp_path / "run")
    for path in [*run.rglob("*"), run]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = look(run)
    try:
        verdict = seedless.verify(run)
        after = look(run)
    finally:
        for path in [run, *run.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert (verdict.outcome, verdict.code, verdict.ok) == ("identical", 0, True)
    assert verdict.sentence == (
        "executed again, identical in every bit: 3 trail entries, weights, predictions and scores"
    )
    assert verdict.remarks == (f"on the data in {trained.parent / 'ours.npz'}",)
    assert verdict.details == ()
    assert after == before


def test_validating_alone_touches_and_executes_nothing(trained, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("a process was started")

    monkeypatch.setattr("seedless.audit.verification.run_worker", refuse)
    before = look(trained)
    verdict = seedless.verify(trained, validate_only=True)
    assert (verdict.outcome, verdict.code) == ("consistent", 0)
    assert "nothing was executed" in verdict.sentence
    assert look(trained) == before


def test_a_verdict_is_plain_values(fitted):
    verdict = seedless.verify(fitted, validate_only=True).as_dict()
    assert json.loads(json.dumps(verdict)) == verdict
    assert verdict["code"] == 0


# One validation, and what was validated is what runs


def change_after_validation(monkeypatch, change):
    """Let ``change()`` work on the folder after it was validated and before it is executed."""
    counted = []
    real = verification.validate
    monkeypatch.setattr(verification, "validate", lambda run: counted.append(run) or real(run))

    def execute(*request):
        change()
        return answer_here(*request)

    monkeypatch.setattr(verification, "run_worker", execute)
    return counted


def test_a_folder_is_validated_once_and_not_read_again(fitted, tmp_path, monkeypatch):
    run = copy_run(fitted, tmp_path / "run")
    counted = change_after_validation(monkeypatch, lambda: shutil.rmtree(run))
    assert seedless.verify(run, entry=ENTRY).outcome == "identical"
    assert counted == [run]


def test_a_checkpoint_swapped_after_the_validation_is_found(fitted, tmp_path, monkeypatch):
    """It is the one file that is read later: for a segment that begins with it."""
    run = copy_run(fitted, tmp_path / "run")
    path = run / "checkpoints" / "epoch-0001.safetensors"

    def nudge(meta, tensors):
        tensors["model/0.weight"][0, 0] += 1e-3

    change_after_validation(monkeypatch, lambda: rewrite_checkpoint(path, nudge))
    verdict = seedless.verify(run, entry=ENTRY, segment=2)
    assert (verdict.outcome, verdict.difference["epoch"]) == ("differs", 1)
    assert verdict.difference["names"] == ["model/0.weight"]


# What was recorded is what runs


def test_recorded_variables_are_restored_in_the_process(tmp_path, run_python):
    assert "ATEN_CPU_CAPABILITY" not in os.environ
    script = f"from tests.tiny import fit_run; fit_run({str(tmp_path / 'run')!r})"
    run_python("-c", script, ATEN_CPU_CAPABILITY="default")
    recorded = read_statement(tmp_path / "run")["predicate"]["environment"]
    assert recorded["variables"]["ATEN_CPU_CAPABILITY"] == "default"
    if recorded["cpu"]["capability"] == torch.backends.cpu.get_cpu_capability():
        pytest.skip("this processor has no more than the default instructions")
    verdict = seedless.verify(tmp_path / "run", entry=ENTRY)
    assert (verdict.outcome, verdict.details) == ("identical", ())
    # Negative control: without restoring them the arithmetic is another one, and verify says so.
    here = seedless.verify(tmp_path / "run", **give())
    assert here.outcome == "cannot judge"
    details = " ".join(here.details)
    assert "cpu.capability" in details
    assert "variables.ATEN_CPU_CAPABILITY: default there, nothing here" in details


def test_variables_of_this_shell_do_not_reach_the_process(fitted, monkeypatch):
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    verdict = seedless.verify(fitted, entry=ENTRY)
    assert (verdict.outcome, verdict.details) == ("identical", ())


def test_the_recorded_thread_count_is_used_whatever_this_process_has(tmp_path, fitted):
    run = fit_run(tmp_path / "two", execution={"threads": 2})
    statements = [read_statement(path)["predicate"] for path in (run, fitted)]
    assert statements[0]["weights"]["digest"] != statements[1]["weights"]["digest"]
    for path in (run, fitted):
        for threads in (1, 2):
            torch.set_num_threads(threads)
            assert seedless.verify(path, **give()).outcome == "identical"


# Stretches between checkpoints


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """Five epochs with checkpoints after 2, 4 and 5."""
    out = tmp_path_factory.mktemp("uneven") / "run"
    with flags_restored():
        return fit_run(out, train={"epochs": 5, "checkpoint_every": 2})


@pytest.mark.parametrize(("segment", "entries"), [(1, 3), (2, 3), (3, 2)])
def test_every_segment_can_be_executed_alone(uneven, segment, entries):
    verdict = seedless.verify(uneven, **give(), segment=segment)
    assert (verdict.outcome, verdict.code) == ("segment identical", 4)
    assert verdict.partial
    assert not verdict.ok
    assert verdict.checked == {"segments": [segment], "of": 3}
    assert f"{entries} trail entries of segment {segment}" in verdict.sentence
    assert verdict.sentence.endswith("; the rest of the run was not executed")


def test_a_run_of_one_segment_is_checked_as_a_whole(tmp_path):
    run = fit_run(tmp_path / "run", train={"epochs": 2, "checkpoint_every": 2})
    verdict = seedless.verify(run, **give(), segment=1)
    assert (verdict.outcome, verdict.ok, verdict.checked) == ("identical", True, {})
    assert verdict == replace(seedless.verify(run, **give()), seconds=verdict.seconds)


@pytest.mark.parametrize("segment", [0, 4, -1])
def test_a_stretch_that_is_not_there_is_refused(uneven, segment):
    with pytest.raises(RunError, match=f"has 3 segments .* numbered from 1; got {segment}"):
        seedless.verify(uneven, **give(), segment=segment)


def test_segments_show_where_a_run_was_changed(tmp_path):
    run = fit_run(tmp_path / "run", control={"flip_bit": "4.weight:0:2", "at_step": 6})
    honest = read_config(run).change(control={"flip_bit": None, "at_step": 0})
    reconfigure(run, honest)
    verdicts = [seedless.verify(run, **give(), segment=k) for k in (1, 2, 3)]
    outcomes = ["segment identical", "differs", "segment identical"]
    assert [verdict.outcome for verdict in verdicts] == outcomes
    assert not any(verdict.ok for verdict in verdicts)


def test_a_stretch_does_not_begin_from_a_damaged_checkpoint(fitted, tmp_path):
    run = copy_run(fitted, tmp_path / "run")
    file = run / "checkpoints" / "epoch-0001.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    verdict = seedless.verify(run, **give(), segment=2)
    assert verdict.code == 2
    assert "epoch-0001.safetensors was changed" in " ".join(verdict.details)
    seal(run)
    verdict = seedless.verify(run, **give(), segment=2)
    assert verdict.code == 2
    assert "is damaged" in " ".join(verdict.details)


# Cannot be judged here


@pytest.fixture(scope="module")
def lying(tmp_path_factory):
    """A run that differs when executed: it denies that one of its bits was flipped."""
    out = tmp_path_factory.mktemp("lying") / "run"
    with flags_restored():
        run = fit_run(out, control={"flip_bit": "0.weight:3:0"})
        reconfigure(run, read_config(run).change(control={"flip_bit": None, "at_step": 0}))
    return run


@pytest.mark.parametrize(
    ("path", "there"),
    [
        (("environment", "packages", "torch"), "1.13.1"),
        (("environment", "cpu", "model"), "Another Processor"),
        (("environment", "variables", "MKL_CBWR"), "COMPATIBLE"),
        (("source", "digest"), "sha256:" + 64 * "0"),
    ],
)
def test_a_difference_on_another_machine_cannot_be_judged(lying, fitted, tmp_path, path, there):
    run = copy_run(lying, tmp_path / "run")
    entries = read_entries(run)
    assert seedless.verify(run, **give()).outcome == "differs"
    place = entries[0]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = there
    forge(run, entries)
    verdict = seedless.verify(run, **give())
    assert (verdict.outcome, verdict.code) == ("cannot judge", 3)
    field = ".".join(path).removeprefix("environment.")
    assert any(detail.startswith(f"{field}: {there} there, ") for detail in verdict.details)
    assert verdict.details[0].startswith("in epoch 1: ")
    assert verdict.difference["epoch"] == 1


@pytest.mark.parametrize(
    "path", [("python",), ("platform",), ("cpu", "cores"), ("variables", "PYTHONHASHSEED")]
)
def test_what_changes_no_bits_is_no_excuse(lying, tmp_path, path):
    run = copy_run(lying, tmp_path / "run")
    entries = read_entries(run)
    place = entries[0]["environment"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = "another"
    forge(run, entries)
    assert seedless.verify(run, **give()).outcome == "differs"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_run_of_a_gpu_cannot_be_judged_without_one(fitted, tmp_path):
    run = copy_run(fitted, tmp_path / "run")
    reconfigure(run, read_config(run).change(execution={"device": "cuda"}))
    verdict = seedless.verify(run, **give())
    assert (verdict.outcome, verdict.code) == ("cannot judge", 3)
    assert "made on a CUDA device, and there is none here" in verdict.sentence


# Data


@pytest.fixture
def moved(trained, tmp_path, in_process):
    """The run of `trained`, whose data are no longer where they were."""
    run = copy_run(trained, tmp_path / "run")
    config = read_config(run)
    gone = config.change(data={"name": str(tmp_path / "gone" / "ours.npz")})
    (run / "config.toml").write_text(gone.to_toml())
    seal(run)
    assert seedless.verify(run, validate_only=True).ok
    return run


def test_data_that_are_gone_are_named(moved, tmp_path):
    with pytest.raises(RunError, match=r"no file at .*gone/ours\.npz', .* give --data FILE"):
        seedless.verify(moved)


def test_data_are_found_where_they_are_said_to_be(moved, trained, tmp_path):
    shutil.copy(trained.parent / "ours.npz", tmp_path / "ours.npz")
    verdict = seedless.verify(moved, data=str(tmp_path / "ours.npz"))
    assert verdict.outcome == "identical"


def test_other_data_under_the_same_name_differ_and_are_named(moved, tmp_path):
    write_arrays(tmp_path / "ours.npz", seed=1)
    verdict = seedless.verify(moved, data=str(tmp_path / "ours.npz"))
    assert (verdict.outcome, verdict.code) == ("differs", 1)
    assert any(detail.startswith("data.digest: sha256:") for detail in verdict.details)
    assert verdict.difference["epoch"] == 0


def test_one_changed_sample_differs(moved, trained, tmp_path):
    with np.load(trained.parent / "ours.npz") as file:
        arrays = dict(file)
    arrays["X"][5, 1, 100] = np.nextafter(arrays["X"][5, 1, 100], np.float32(9))
    np.savez(tmp_path / "ours.npz", **arrays)
    verdict = seedless.verify(moved, data=str(tmp_path / "ours.npz"))
    assert verdict.outcome == "differs"
    assert "data.content" in verdict.details[0]


def test_the_order_of_the_records_in_the_file_does_not_matter(moved, trained, tmp_path):
    with np.load(trained.parent / "ours.npz") as file:
        arrays = {name: file[name][::-1] for name in file.files}
    np.savez(tmp_path / "ours.npz", **arrays)
    assert seedless.verify(moved, data=str(tmp_path / "ours.npz")).outcome == "identical"


# Runs of fit


def test_a_run_of_fit_repeats_from_its_model_and_arrays(fitted):
    before = look(fitted)
    verdict = seedless.verify(fitted, **give())
    assert (verdict.outcome, verdict.details) == ("identical", ())
    assert seedless.verify(fitted, **{**give(), "model": make_model()}).outcome == "identical"
    assert look(fitted) == before


def test_class_names_need_not_be_repeated_and_others_differ(tmp_path):
    arrays = {split: pair for split, pair in give().items() if split != "model"}
    names, settings = ("low", "middle", "high"), {"train": {"epochs": 1}}
    with flags_restored():
        seedless.fit(make_model, **arrays, classes=names, config=settings, out=tmp_path / "run")
    given = {"model": make_model, **arrays}
    assert seedless.verify(tmp_path / "run", **given).outcome == "identical"
    verdict = seedless.verify(tmp_path / "run", **given, classes=("low", "middle", "other"))
    assert verdict.outcome == "differs"
    assert "data.classes.2: high there, other here" in verdict.details
    assert str(verdict) == repr(verdict) == verdict.as_text()  # a notebook shows the second
    samples, labels = give()["train"]
    fewer = {**given, "train": (samples, labels % 2), "val": None, "test": None}
    assert seedless.verify(tmp_path / "run", **fewer).outcome == "differs"


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_other_arrays_differ_and_are_named(fitted, split):
    samples, labels = give()[split]
    samples = samples.copy()
    samples[3, 4] += 1e-6
    verdict = seedless.verify(fitted, **{**give(), split: (samples, labels)})
    assert verdict.outcome == "differs"
    assert verdict.details[0].startswith("data.content: ")


def test_other_labels_differ(fitted):
    samples, labels = give()["train"]
    verdict = seedless.verify(fitted, **{**give(), "train": (samples, (labels + 1) % 3)})
    assert verdict.outcome == "differs"
    assert verdict.details[0].startswith("data.content: ")


def test_a_split_less_differs(fitted):
    given = {name: value for name, value in give().items() if name != "test"}
    verdict = seedless.verify(fitted, **given)
    assert verdict.outcome == "differs"
    assert "data.records.test: 16 there, nothing here" in verdict.details


def make_wider():
    return nn.Sequential(nn.Linear(8, 17), nn.ReLU(), nn.Linear(17, 3))


def make_tanh():
    """The same weights, and another function between them."""
    model = make_model()
    model[2] = nn.Tanh()
    return model


def test_another_architecture_differs_and_is_named(fitted):
    verdict = seedless.verify(fitted, **{**give(), "model": make_wider})
    assert verdict.outcome == "differs"
    assert "model.parameters: 227 there, 207 here" in verdict.details
    assert any(detail.startswith("initialization.plan: ") for detail in verdict.details)


def test_another_function_with_the_same_weights_differs_in_the_first_epoch(fitted):
    verdict = seedless.verify(fitted, **{**give(), "model": make_tanh})
    assert verdict.outcome == "differs"
    assert verdict.difference["epoch"] == 1
    assert "model/0.weight" in verdict.difference["names"]


def test_a_run_of_fit_alone_cannot_be_executed_and_says_how(fitted):
    with pytest.raises(ConfigError, match=r"is a run of fit\(\): .*--entry package\.module:func"):
        seedless.verify(fitted)
    assert seedless.verify(fitted, validate_only=True).ok


def test_a_model_without_arrays_is_refused(fitted):
    with pytest.raises(ConfigError, match="both model and train"):
        seedless.verify(fitted, model=make_model)
    with pytest.raises(ConfigError, match="both model and train"):
        seedless.verify(fitted, train=make_arrays(8, 0))


def test_a_run_of_train_takes_no_model(trained):
    with pytest.raises(ConfigError, match="run of `seedless train`, which prepares itself"):
        seedless.verify(trained, **give())


# Entry points

MODULE = """
from tests.tiny import give, make_model

def wrong():
    return [make_model]

def without_model():
    return {"train": ()}

def with_more():
    return {**give(), "seed": 0}
"""


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "nowhere:give",
            "--entry nowhere:give cannot be loaded: ModuleNotFoundError: No module named 'nowhere'",
        ),
        (
            "beside_too:nothing",
            "AttributeError: module 'beside_too' has no attribute 'nothing'",
        ),
        ("beside_too", "expected --entry as package.module:function, got 'beside_too'"),
        (":give", "expected --entry as package.module:function"),
        ("", "expected --entry as package.module:function"),
        ("beside_too:wrong", "expected beside_too:wrong to return a mapping with 'model' and"),
        ("beside_too:without_model", "with 'model' and 'train'.* got ['train']"),
        ("beside_too:with_more", "got ['model', 'seed', 'test', 'train', 'val']"),
    ],
)
def test_an_entry_that_gives_nothing_useful_is_refused(tmp_path, monkeypatch, entry, message):
    (tmp_path / "beside_too.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError) as found:
        load_entry(entry)
    for part in message.split(".*"):
        assert part in str(found.value)


# What is no run, and bundles


def test_a_bundle_is_verified_as_its_folder_is(fitted, tmp_path):
    write_bundle(fitted, tmp_path / "run.zip")
    before = (tmp_path / "run.zip").read_bytes()
    verdict = seedless.verify(tmp_path / "run.zip", **give())
    assert verdict.outcome == "identical"
    assert (tmp_path / "run.zip").read_bytes() == before


def test_a_full_disk_of_the_verifier_does_not_make_a_bundle_invalid(fitted, tmp_path):
    """A limit on the size of files stands for a full disk: writing fails in the same call."""
    write_bundle(fitted, tmp_path / "run.zip")
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(StorageError, match="this says nothing about the archive"):
            seedless.verify(tmp_path / "run.zip", **give())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert seedless.verify(tmp_path / "run.zip", validate_only=True).ok


def test_no_place_for_temporary_files_does_not_make_a_bundle_invalid(fitted, tmp_path, monkeypatch):
    write_bundle(fitted, tmp_path / "run.zip")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StorageError, match=r"cannot make a temporary folder: .*; set TMPDIR"):
        seedless.verify(tmp_path / "run.zip", **give())


# Signatures


@pytest.fixture(scope="module")
def signed(fitted, tmp_path_factory):
    """A signed copy of a run, and its key."""
    folder = tmp_path_factory.mktemp("signed")
    run, key = copy_run(fitted, folder / "run"), make_key(folder / "key.pem")
    sign_receipt(run, key)
    return run, key


def test_the_verdict_says_who_signed_and_whether_that_was_checked(fitted, signed):
    run, key = signed
    found = [
        seedless.verify(fitted, **give()),
        seedless.verify(run, **give()),
        seedless.verify(run, **give(), public_key=public_path(key)),
        seedless.verify(run, validate_only=True, public_key=public_path(key)),
    ]
    keyid = read_keyid(key)
    states = [("none", None), ("not checked", keyid), ("checked", keyid), ("checked", keyid)]
    assert [(v.signature["state"], v.signature["keyid"]) for v in found] == states
    assert all(verdict.ok for verdict in found)


def test_a_broken_signature_is_invalid_without_a_public_key_too(signed, tmp_path):
    run = copy_run(signed[0], tmp_path / "run")
    envelope = json.loads((run / "receipt.dsse.json").read_bytes())
    envelope["signatures"][0]["sig"] = "AAAA"
    (run / "receipt.dsse.json").write_bytes(canonical_json(envelope) + b"\n")
    for options in ({}, {"public_key": public_path(signed[1])}):
        verdict = seedless.verify(run, **give(), **options)
        assert (verdict.outcome, verdict.signature["state"]) == ("invalid", "invalid")
        assert "its signature has 3 bytes, not 64" in verdict.sentence


def test_a_signature_of_another_receipt_is_invalid_without_a_public_key_too(signed, tmp_path):
    run = copy_run(signed[0], tmp_path / "run")
    statement = read_statement(run)
    seal(run, statement | {"_type": statement["_type"]}, files=False)
    assert seedless.verify(run, validate_only=True).ok  # sealed again, the receipt is the same
    statement["predicate"]["promise"]["across"] = "everything"
    seal(run, statement, files=False)
    verdict = seedless.verify(run, validate_only=True)
    assert (verdict.outcome, verdict.signature["state"]) == ("invalid", "invalid")
    assert "signs another receipt" in verdict.sentence


def test_an_unsigned_run_is_invalid_where_a_signature_is_demanded(fitted, signed):
    verdict = seedless.verify(fitted, validate_only=True, public_key=public_path(signed[1]))
    assert verdict.outcome == "invalid"
    assert "so it is not signed" in verdict.sentence


@pytest.mark.parametrize("kind", ["text", "private", "missing", "folder"])
def test_a_wrong_key_file_is_an_error_about_the_key_and_not_about_the_run(signed, tmp_path, kind):
    file = tmp_path / "wrong"
    if kind == "text":
        file.write_text("no key")
    elif kind == "private":
        file = signed[1]
    elif kind == "folder":
        file.mkdir()
    with pytest.raises(SignatureError, match=str(file)):
        seedless.verify(signed[0], validate_only=True, public_key=file)


def test_without_cryptography_a_signature_is_named_and_not_checked(signed, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    verdict = seedless.verify(signed[0], validate_only=True)
    assert (verdict.ok, verdict.signature["state"]) == (True, "not checked")


def test_an_interrupted_run_is_not_finished(fitted, tmp_path):
    run = copy_run(fitted, tmp_path / "run")
    (run / "receipt.json").unlink()
    (run / "weights.safetensors").unlink()
    verdict = seedless.verify(run, **give())
    assert (verdict.outcome, verdict.code) == ("invalid", 2)
    assert f"`seedless resume {run}` finishes it" in verdict.sentence
