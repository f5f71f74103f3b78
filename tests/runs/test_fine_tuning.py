"""`fit` with the weights of a file: the same bits again, what the receipt says, and refusals."""

import copy
import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import seedless
from seedless.core.config import override, parse_config
from seedless.core.config_files import open_config
from seedless.core.digests import digest
from seedless.core.errors import ConfigError, InitError, RunError
from seedless.runs.fit_settings import read_settings
from seedless.runs.opened_run import open_run
from seedless.runs.resume import resume_run
from seedless.runs.train import InterruptedRunError, train_run
from seedless.runs.user_model import UserModel, choose_preparer
from tests.small import COMMON, IMAGES, train_small
from tests.tiny import SETTINGS, fit_run, flags_restored, give, make_arrays, make_model, merge

NO_START = {name: values for name, values in SETTINGS.items() if name != "init"}


def give_new_head():
    """Return what `give` returns with one class more, as --entry wants it."""

    def add_class():
        model = make_model()
        model[4] = torch.nn.Linear(16, 4)
        return model

    samples, labels = make_arrays(64, 1)
    labels[:8] = 3
    return {"model": add_class, "train": (samples, labels)}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The weights of a run, as others would publish them."""
    with flags_restored():
        run = fit_run(tmp_path_factory.mktemp("base") / "run")
    return shutil.copy(run / "weights.safetensors", run.parent / "published.safetensors")


@pytest.fixture(scope="module")
def tuned(base, tmp_path_factory):
    with flags_restored():
        folder = tmp_path_factory.mktemp("tuned") / "run"
        return seedless.fit(**give(), weights=base, config=NO_START, out=folder)


def read_file(run):
    return run.claims["initialization"]["file"]


def test_a_run_begins_with_the_weights_of_the_file(base, tuned):
    published = load_file(base)
    first = json.loads((tuned.path / "trail.jsonl").read_text().splitlines()[0])
    model = make_model()
    model.load_state_dict(published)
    assert first["initialization"]["weights"] == digest(model) == digest(published)
    assert tuned.claims["schema"] == "2.4"
    assert tuned.claims["initialization"]["basis"] == "file"
    assert tuned.claims["initialization"]["plan"] is None
    assert read_file(tuned)["name"] == "published.safetensors"
    assert str(base) not in (tuned.path / "receipt.json").read_text()
    assert tuned.digest != digest(published)


def test_it_trains_to_the_same_bits_from_a_renamed_copy(base, tuned, tmp_path):
    """The name of the file and its path change nothing; other bytes change everything."""
    moved = shutil.copy(base, tmp_path / "other name.safetensors")
    again = seedless.fit(**give(), weights=moved, config=NO_START, out=tmp_path / "again")
    assert again.digest == tuned.digest
    assert again.claims["config"]["digest"] == tuned.claims["config"]["digest"]
    tensors = load_file(base)
    tensors["0.weight"][0, 0] += 2**-10
    save_file(tensors, tmp_path / "changed.safetensors")
    other = seedless.fit(
        **give(), weights=tmp_path / "changed.safetensors", config=NO_START, out=tmp_path / "other"
    )
    assert other.digest != tuned.digest
    assert other.claims["config"]["digest"] != tuned.claims["config"]["digest"]


def test_it_is_verified_with_the_file_wherever_it_is_now(base, tuned, tmp_path):
    moved = shutil.copy(base, tmp_path / "moved.safetensors")
    for place in (None, base, moved):
        verdict = seedless.verify(tuned.path, **give(), weights=place)
        assert verdict.outcome == "identical", verdict.as_text()


def test_a_new_head_and_a_frozen_backbone(base, tmp_path):
    """Frozen tensors are those of the file, before and after; the head is new, and trained."""
    given = give_new_head()

    def freeze():
        model = given["model"]()
        model[0].requires_grad_(False)
        model[1].requires_grad_(False)
        return model

    arguments = {**given, "model": freeze}
    run = seedless.fit(
        **arguments, weights=base, reinitialize=["4.*"], config=NO_START, out=tmp_path / "run"
    )
    assert read_file(run)["started"] == ["4.bias", "4.weight"]
    assert run.claims["initialization"]["basis"] == "canonical_kaiming"
    published, trained = load_file(base), load_file(run.path / "weights.safetensors")
    assert torch.equal(trained["0.weight"], published["0.weight"])
    assert torch.equal(trained["1.weight"], published["1.weight"])
    assert trained["4.weight"].shape == (4, 16)
    verdict = seedless.verify(run.path, **arguments, weights=base)
    assert verdict.outcome == "identical", verdict.as_text()
    # [Negative control] The same head in a backbone that is trained.
    free = seedless.fit(
        **given, weights=base, reinitialize=["4.*"], config=NO_START, out=tmp_path / "free"
    )
    assert not torch.equal(free.model[0].weight.detach(), published["0.weight"])


def test_the_file_is_chosen_by_a_setting_too(base, tuned, tmp_path):
    config = merge(init={"weights": str(base), "basis": "dct"})
    run = seedless.fit(**give(), config=config, out=tmp_path / "run")
    assert run.claims["config"]["digest"] == tuned.claims["config"]["digest"]


def test_a_head_of_another_shape_is_refused_unless_it_is_named(base, tmp_path):
    with pytest.raises(InitError, match=r"expected 4\.weight \(4, 16\), got \(3, 16\)"):
        seedless.fit(**give_new_head(), weights=base, config=NO_START, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_names_to_reinitialize_need_a_file(tmp_path):
    with pytest.raises(ConfigError, match=r"give the path of the file as init\.weights"):
        seedless.fit(**give(), reinitialize=["4.*"], config=NO_START, out=tmp_path / "run")


def test_nothing_is_said_of_weights_that_the_file_replaces(base, tmp_path, capsys):
    model = make_model()
    model.load_state_dict(load_file(base))
    given = {**give(), "model": model}
    seedless.fit(**given, weights=base, config=NO_START, out=tmp_path / "run")
    assert "init.basis" not in capsys.readouterr().err


def test_a_finished_run_is_returned_only_for_the_same_file(base, tuned, tmp_path):
    options = {"config": NO_START, "out": tuned.path, "resume": True}
    assert seedless.fit(**give(), weights=base, **options).digest == tuned.digest
    tensors = load_file(base)
    tensors["0.weight"][0, 0] += 1
    save_file(tensors, tmp_path / "other.safetensors")
    with pytest.raises(RunError, match="another configuration"):
        seedless.fit(**give(), weights=tmp_path / "other.safetensors", **options)


def stop_after(steps):
    """Return a function that asks a run to stop after so many steps."""
    left = [steps]

    def stop():
        left[0] -= 1
        return left[0] <= 0

    return stop


def flip_bit(file, to):
    """Copy a file with one bit of its last byte flipped."""
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    to.write_bytes(content)
    return to


def test_a_stopped_run_is_continued_with_the_moved_file(tmp_path):
    """Resumed from a renamed copy it has the bits of one that was not stopped."""
    weights = train_small(tmp_path / "base", *IMAGES) / "weights.safetensors"
    weights = weights.rename(tmp_path / "a.safetensors")
    settings = [*COMMON, *IMAGES[1:], "train.epochs=2", f"init.weights={weights}"]
    config = override(open_config(IMAGES[0]), settings)
    whole = train_run(config, tmp_path / "whole")
    with pytest.raises(InterruptedRunError):
        train_run(config, tmp_path / "run", stop=stop_after(2))
    moved = weights.rename(tmp_path / "b.safetensors")
    with pytest.raises(ConfigError, match=r"a\.safetensors: expected a safetensors weights file"):
        resume_run(tmp_path / "run")
    flipped = flip_bit(moved, tmp_path / "c.safetensors")
    with pytest.raises(ConfigError, match="holds other bytes"):
        resume_run(tmp_path / "run", preparer=choose_preparer(config, None, None, flipped))
    resumed = resume_run(tmp_path / "run", preparer=choose_preparer(config, None, None, moved))
    assert resumed.digest == whole.digest
    assert resumed.claims["trail"] == whole.claims["trail"]


def test_a_finished_run_is_opened_without_the_file(base, tmp_path):
    """Its own weights are in its folder: only executing it again needs the others."""
    moved = shutil.copy(base, tmp_path / "base.safetensors")
    run = seedless.fit(**give(), weights=moved, config=NO_START, out=tmp_path / "run")
    (tmp_path / "base.safetensors").unlink()
    assert seedless.load(run.path, model=make_model()).digest == run.digest
    opened = open_run(run.path, user=UserModel(**give(), weights=moved))
    assert opened.predict(opened.records).shape == (16, 3)
    assert seedless.bundle(run.path, tmp_path / "run.zip").bytes
    for place in (run.path, tmp_path / "run.zip"):
        assert seedless.verify(place, validate_only=True).outcome == "consistent"
        with pytest.raises(ConfigError, match="--weights FILE"):
            seedless.verify(place, **give())
        assert seedless.verify(place, **give(), weights=base).outcome == "identical"


def test_settings_of_fit_come_before_those_of_its_configuration():
    read = read_settings({"init": {"reinitialize": ["a.*"]}}, reinitialize=("b.*", "c.*"))
    assert read.init.reinitialize == ["b.*", "c.*"]
    assert "basis" not in read.init.model_fields_set
    assert read_settings(parse_config({})) == parse_config({})


def test_a_model_given_twice_is_not_changed_by_a_refusal(base, tmp_path):
    model = make_model()
    before = copy.deepcopy(model.state_dict())
    given = {**give(), "model": model}
    with pytest.raises(InitError, match="names no tensor"):
        seedless.fit(
            **given, weights=base, reinitialize=["x.*"], config=NO_START, out=tmp_path / "run"
        )
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
