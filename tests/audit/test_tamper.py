"""Changed and forged run folders: `validate` finds each change.

First with an editor; then with this package at hand, so that every digest is right again; last with
a run of their own behind it, which only executing the run again can find.
"""

import io
import json

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from torch import nn

import seedless
from seedless.audit import validate
from seedless.core.digests import digest
from seedless.evaluate.predictions import digest_predictions, parse_predictions
from seedless.evaluate.scores import score_predictions
from seedless.runs.folder import read_config
from tests.forgery import (
    alter,
    forge,
    list_leaves,
    list_mappings,
    look_up,
    pun,
    read_entries,
    read_statement,
    reconfigure,
    remove,
    replace,
    rewrite_checkpoint,
    seal,
    strip_run,
)
from tests.tiny import copy_run, fit_run, flags_restored, give, make_model

FILES = (
    "checkpoints/epoch-0001.safetensors",
    "checkpoints/epoch-0002.safetensors",
    "checkpoints/epoch-0003.safetensors",
    "config.toml",
    "log.jsonl",
    "metrics.json",
    "predictions.npz",
    "trail.jsonl",
    "weights.safetensors",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("tamper") / "run")


@pytest.fixture
def run(finished, tmp_path):
    return copy_run(finished, tmp_path / "run")


@pytest.fixture
def lean(tmp_path):
    """A run with one checkpoint, quicker to validate many times."""
    return fit_run(tmp_path / "lean", train={"checkpoint_every": 3})


def find_problems(run):
    """Return what validation says; it must say something."""
    verdict = seedless.verify(run, validate_only=True)
    assert verdict.code == 2
    return " | ".join([verdict.sentence, *verdict.details])


def execute(run):
    """Return the verdict of executing a run again that validation can find nothing in."""
    assert seedless.verify(run, validate_only=True).outcome == "consistent"
    return seedless.verify(run, **give())


# Files


def test_the_run_as_made_is_consistent_and_repeats(run):
    assert tuple(sorted(read_statement(run)["predicate"]["files"])) == FILES
    verdict = execute(run)
    assert (verdict.outcome, verdict.code, verdict.details) == ("identical", 0, ())


@pytest.mark.parametrize("name", FILES)
def test_one_flipped_bit_in_any_file_is_named(run, name):
    content = (run / name).read_bytes()
    for place in (0, len(content) // 3, len(content) // 2, len(content) - 1):
        for bit in (1, 128):
            changed = bytearray(content)
            changed[place] ^= bit
            (run / name).write_bytes(changed)
            assert f"{name} was changed" in find_problems(run), (place, bit)


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_short_emptied_lengthened_or_missing_is_named(run, name):
    content = (run / name).read_bytes()
    for changed in (content[: len(content) // 2], content[:-1], b"", content + b"\n"):
        (run / name).write_bytes(changed)
        assert f"{name} was changed" in find_problems(run)
    (run / name).unlink()
    assert f"{name} is missing" in find_problems(run)
    (run / name).mkdir()
    assert f"'{name}' is a folder, where a run has plain files only" in find_problems(run)


def test_an_added_file_is_named(run):
    name = "checkpoints/epoch-0009.safetensors"
    (run / name).write_bytes(b"added")
    assert f"{name} is not covered by the receipt: it was added later" in find_problems(run)


def test_what_is_made_from_a_receipt_may_be_added(run):
    for name in ("report.html", ".lock"):
        (run / name).write_bytes(b"anything")
    assert seedless.verify(run, validate_only=True).outcome == "consistent"


def test_a_signature_that_is_none_is_found_without_a_key(run):
    (run / "receipt.dsse.json").write_bytes(b"anything")
    verdict = seedless.verify(run, validate_only=True)
    assert verdict.outcome == "invalid"
    assert "expected a DSSE envelope" in verdict.sentence


def test_two_files_that_changed_places_are_both_named(run):
    one, two = (run / name for name in FILES[:2])
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)
    problems = find_problems(run)
    assert f"{FILES[0]} was changed" in problems
    assert f"{FILES[1]} was changed" in problems
    seal(run)
    assert "epoch-0001.safetensors holds the state of epoch-0002" in find_problems(run)


# The receipt, sealed again

# What validation cannot know: the published hash is over parameters in the order of the model.
ONLY_EXECUTION = {("predicate", "weights", "md5")}


def test_no_field_of_a_receipt_can_be_changed_and_sealed_again(lean):
    statement = read_statement(lean)
    passed = set()
    for path in list_leaves(statement):
        leaf = look_up(statement, path)
        if path == ("predicate", "digest"):
            continue  # the seal itself
        for new in (alter(leaf), pun(leaf)):
            if new is None:
                continue
            seal(lean, replace(statement, path, new), files=False)
            verdict = seedless.verify(lean, validate_only=True)
            if verdict.code == 2:
                assert verdict.details or path[-1] in ("schema", "_type", "predicateType")
                continue
            passed.add(path)
            executed = seedless.verify(lean, **give())
            assert executed.outcome == "differs", path
            assert path[-1] in executed.details[0]
    assert passed == ONLY_EXECUTION


def test_no_field_can_be_removed_or_added_and_the_receipt_sealed_again(lean):
    statement = read_statement(lean)
    for path in list_leaves(statement):
        if path != ("predicate", "digest"):
            seal(lean, remove(statement, path), files=False)
            assert find_problems(lean), path
    for path in list_mappings(statement):
        seal(lean, replace(statement, (*path, "added"), "something"), files=False)
        assert find_problems(lean), path


def test_a_run_of_fit_cannot_pass_for_one_of_train(run):
    seal(run, replace(read_statement(run), ("predicate", "kind"), "train"))
    assert "config.toml is of a run of kind fit, the receipt's 'train'" in find_problems(run)


# The trail, chained again and the receipt sealed over it

# Nobody can know later what a machine was, beyond what of it shows in the bits.
UNKNOWABLE = {
    ("environment", "cpu", "cores"),
    ("environment", "platform"),
    ("environment", "python"),
    ("environment", "threads", "interop"),
}
# Claims about a machine unlike this one: the bits agree all the same, and the verdict says so.
ELSEWHERE = ("environment", "source")


def test_no_field_of_a_trail_can_be_changed_and_chained_again(lean):
    entries = read_entries(lean)
    receipt = (lean / "receipt.json").read_bytes()
    executed = 0
    for path in list_leaves(entries):
        if path[1:] in (("digest",), ("previous",)):
            continue  # the chain itself
        leaf = look_up(entries, path)
        for new in (alter(leaf), pun(leaf)):
            if new is None or (path[1] == "state" and path[2] != "model/0.weight"):
                continue  # of the tensors one stands for all
            (lean / "receipt.json").write_bytes(receipt)
            forge(lean, replace(entries, path, new))
            if seedless.verify(lean, validate_only=True).code == 2:
                continue
            verdict = seedless.verify(lean, **give())
            executed += 1
            if path[1:] in UNKNOWABLE:
                assert verdict.outcome == "identical"
            elif path[1] in ELSEWHERE:
                assert verdict.outcome == "identical"
                field = ".".join(map(str, path[1 if path[1] == "source" else 2 :]))
                assert any(f"identical although {field}:" in d for d in verdict.details), path
            else:
                assert verdict.outcome == "differs", path
    assert executed > 50


@pytest.mark.parametrize("field", ["environment", "data", "state", "source", "model"])
@pytest.mark.parametrize("wrong", [None, 7, "text", [1], {}])
def test_a_trail_with_a_part_of_another_type_is_no_crash(run, field, wrong):
    forge(run, replace(read_entries(run), (0, field), wrong))
    verdict = seedless.verify(run, validate_only=True)
    if verdict.code != 2:
        assert seedless.verify(run, **give()).outcome == "differs" or field == "source"


@pytest.mark.parametrize("wrong", [7, None, ["AVX2"], "1\0", "1\n", "x" * 501])
def test_a_variable_that_is_no_short_text_is_refused(run, wrong):
    """It would be set in the process that executes the run."""
    variables = {"ATEN_CPU_CAPABILITY": wrong}
    forge(run, replace(read_entries(run), (0, "environment", "variables"), variables))
    assert "the variables of the environment are not short texts of one line" in find_problems(run)


# One file, with all digests made to fit


def test_weights_of_another_epoch_are_not_those_of_the_trail(run):
    statement = read_statement(run)
    chosen = statement["predicate"]["weights"]["epoch"]
    other = 1 if chosen != 1 else 2
    state = load_file(run / "checkpoints" / f"epoch-{other:04d}.safetensors")
    weights = {
        name.removeprefix("model/"): value
        for name, value in state.items()
        if name.startswith("model/")
    }
    assert weights.keys() == load_file(run / "weights.safetensors").keys()
    save_file(weights, run / "weights.safetensors", metadata={"format": "pt"})
    claims = {**statement["predicate"]["weights"], "digest": digest(weights)}
    seal(run, replace(statement, ("predicate", "weights"), claims))
    expected = f"weights.safetensors does not have the weights that the trail has at epoch {chosen}"
    assert expected in find_problems(run)
    # and where the receipt says that this epoch was selected
    statement["predicate"]["weights"] = {**claims, "epoch": other}
    statement["predicate"]["metrics"]["selected"]["epoch"] = other
    seal(run, statement)
    change_metrics(run, lambda metrics: None)
    assert f"the best recorded score is not that of the selected epoch, {other}" in find_problems(
        run
    )


def change_predictions(run, change):
    """Let ``change(arrays)`` work on the predictions, with their digest in the receipt."""
    with np.load(run / "predictions.npz") as file:
        arrays = dict(file)
    change(arrays)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    (run / "predictions.npz").write_bytes(buffer.getvalue())
    statement = read_statement(run)
    statement["predicate"]["predictions"] = digest_predictions(arrays)
    seal(run, statement)
    return arrays


def score_again(run):
    """Give a run the scores that its predictions have."""
    found = score_predictions(parse_predictions((run / "predictions.npz").read_bytes()))
    change_metrics(run, lambda metrics: metrics.update(found))


def improve(arrays):
    """Predict every label of the test split."""
    arrays["test_probabilities"] = arrays["test_labels"] * 0.5 + 0.25


def test_better_predictions_contradict_the_scores(run):
    change_predictions(run, improve)
    assert "the test scores are not those of predictions.npz" in find_problems(run)


@pytest.mark.parametrize("split", ["validation", "test"])
def test_better_predictions_with_their_scores_are_found(run, split):
    def change(arrays):
        improve(arrays)
        arrays[f"{split}_probabilities"] = arrays[f"{split}_labels"] * 0.5 + 0.25

    change_predictions(run, change)
    score_again(run)
    assert read_statement(run)["predicate"]["metrics"]["test"]["macro_auc"] == 1.0
    if split == "validation":
        assert "the validation score is not that of the selected epoch" in find_problems(run)
        return
    verdict = execute(run)
    assert verdict.outcome == "differs"
    assert any(detail.startswith("metrics.test.macro_auc: 1.0 there") for detail in verdict.details)
    assert any(detail.startswith("predictions: sha256:") for detail in verdict.details)


QUIET = {
    "probabilities in the same order": lambda a: a.update(
        test_probabilities=a["test_probabilities"] * 0.5
    ),
    "other names of the samples": lambda a: a.update(test_ids=a["test_ids"][::-1]),
}


@pytest.mark.parametrize("what", QUIET)
def test_quiet_changes_with_their_scores_are_found_by_executing(run, what):
    change_predictions(run, QUIET[what])
    score_again(run)
    verdict = execute(run)
    assert verdict.outcome == "differs"
    assert any(detail.startswith("predictions: sha256:") for detail in verdict.details)


def test_halved_probabilities_keep_their_order_and_not_their_calibration(run):
    change_predictions(run, QUIET["probabilities in the same order"])
    assert "the test scores are not those of predictions.npz" in find_problems(run)


ODD = {
    "predictions of other weights": (
        lambda a: a.update(weights=np.array("sha256:" + 64 * "0")),
        "predictions.npz holds predictions of other weights than the receipt's",
    ),
    "no weights": (lambda a: a.pop("weights"), "predictions.npz lacks 'weights'"),
    "another task": (
        lambda a: a.update(task=np.array("multi-label")),
        "predictions.npz is about another task than the receipt",
    ),
    "other classes": (
        lambda a: a.update(classes=np.array(["x", "y", "z"])),
        "predictions.npz is about other classes than the receipt",
    ),
    "one more array": (lambda a: a.update(note=np.array([1.0])), "'note', which does not belong"),
    "a name twice": (
        lambda a: a.update(test_ids=a["test_ids"][[0, *range(15)]]),
        "occurs more than once",
    ),
    "no probability": (
        lambda a: a.update(test_probabilities=a["test_probabilities"] * np.nan),
        "expected probabilities from 0 to 1, found NaN",
    ),
    "features": (
        lambda a: a.update(test_features=np.eye(16, dtype="f4")),
        "the test scores are not those of predictions.npz",
    ),
}


@pytest.mark.parametrize("what", ODD)
def test_predictions_must_be_whole_and_of_these_weights(run, what):
    change, complaint = ODD[what]
    change_predictions(run, change)
    assert complaint in find_problems(run)


def test_predictions_of_other_weights_are_refused_with_their_scores_too(run):
    """A forger who has another model's predictions must name its weights, or lie about them."""
    change_predictions(run, ODD["predictions of other weights"][0])
    score_again(run)
    assert "predictions of other weights" in find_problems(run)
    statement = read_statement(run)
    claims = {**statement["predicate"]["weights"], "digest": "sha256:" + 64 * "0"}
    seal(run, replace(statement, ("predicate", "weights"), claims))
    assert "weights.safetensors does not have the weights" in find_problems(run)


def test_damaged_weights_of_a_stripped_run_are_a_problem_and_no_crash(run):
    strip_run(run, weights=True)
    assert validate(run).problems == ()
    (run / "weights.safetensors").write_bytes(b"damaged")
    assert "weights.safetensors cannot be read" in find_problems(run)
    (run / "weights.safetensors").unlink()
    assert "weights.safetensors cannot be read" in find_problems(run)


def test_predictions_without_a_split_are_found(run):
    def change(arrays):
        for part in ("ids", "labels", "probabilities"):
            del arrays[f"test_{part}"]

    change_predictions(run, change)
    assert "predictions.npz and metrics.json are not about the same splits" in find_problems(run)


def change_metrics(run, change):
    """Let ``change(metrics)`` work on the scores, in their file and in the receipt."""
    statement = read_statement(run)
    metrics = statement["predicate"]["metrics"]
    change(metrics)
    (run / "metrics.json").write_text(json.dumps(metrics, indent=2, sort_keys=True) + "\n")
    seal(run, statement)


SCORES = {
    "converged": (
        lambda m: m.update(converged=not m["converged"]),
        "whether the run converged does not follow from its score",
    ),
    "an area": (
        lambda m: m["test"]["classes"]["class 0"].update(auc=0.999),
        "the test scores are not those of predictions.npz",
    ),
    "a macro mean": (
        lambda m: m["validation"].update(macro_auc=0.999),
        "the validation scores are not those of predictions.npz",
    ),
    "the selected epoch": (
        lambda m: m["selected"].update(epoch=m["selected"]["epoch"] % 3 + 1),
        "the scores are of another epoch than the weights",
    ),
    "the selected score": (lambda m: m["selected"].update(score=1.0), "the best recorded score"),
    "the metric": (lambda m: m["selected"].update(metric="accuracy"), "the best recorded score"),
    "a split less": (lambda m: m.pop("test"), "not about the same splits"),
}


@pytest.mark.parametrize("what", SCORES)
def test_scores_that_do_not_follow_are_found(run, what):
    change, complaint = SCORES[what]
    change_metrics(run, change)
    assert complaint in find_problems(run)


@pytest.mark.parametrize("wrong", ["", "published", 32 * "g", 31 * "0", 33 * "0", 32 * "A"])
def test_an_md5_that_is_none_needs_no_execution(run, wrong):
    seal(run, replace(read_statement(run), ("predicate", "weights", "md5"), wrong))
    assert "the receipt's md5 does not have the form of an MD5" in find_problems(run)


def edit(file, *changes):
    text = file.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    file.write_text(text)


@pytest.mark.parametrize("field", ["epoch", "step", "loss", "rate", "score"])
def test_a_log_must_say_what_the_trail_says(run, field):
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    lines[1][field] += 1
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    seal(run)
    assert "log.jsonl does not say what the trail says" in find_problems(run)


def test_nobody_can_check_the_seconds_of_a_log(run):
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    lines[1]["seconds"] = 86400.0
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    seal(run)
    assert execute(run).outcome == "identical"


def test_no_epoch_took_less_than_no_time(run):
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    lines[1]["seconds"] = -0.5
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    seal(run)
    assert "log.jsonl has an epoch of less than 0 seconds" in find_problems(run)


@pytest.mark.parametrize(
    ("old", "new"), [("rate = 0.001", "rate = 0.002"), ('basis = "dct"', 'basis = "hadamard"')]
)
def test_another_configuration_is_not_the_one_of_the_receipt(run, old, new):
    edit(run / "config.toml", (old, new))
    seal(run)
    problems = find_problems(run)
    assert "config.toml is not the configuration the receipt quotes" in problems
    assert "begun with another configuration" in problems


def test_the_path_of_the_data_is_not_part_of_the_identity(run):
    edit(run / "config.toml", ("cache = true", 'cache = false\npath = "/elsewhere"'))
    seal(run)
    assert execute(run).outcome == "identical"


CHECKPOINT = {
    "a weight": lambda meta, tensors: tensors["model/0.weight"].add_(1e-7),
    "a moment": lambda meta, tensors: tensors["optimizer/exp_avg/0.weight"].mul_(2),
    "a tensor less": lambda meta, tensors: tensors.pop("optimizer/step/0.weight"),
    "the best weights": lambda meta, tensors: tensors["best/0.weight"].add_(1e-7),
    "the best score": lambda meta, tensors: meta["best"].update(score=1.0),
    "the best epoch": lambda meta, tensors: meta["best"].update(epoch=3),
    "no best": lambda meta, tensors: meta.update(best=None),
    "steps": lambda meta, tensors: meta.update(step=99),
    "generators": lambda meta, tensors: meta.update(moved=["torch's CPU generator"]),
    "another run": lambda meta, tensors: meta.update(config="sha256:" + 64 * "0"),
}


@pytest.mark.parametrize("what", CHECKPOINT)
def test_a_checkpoint_must_hold_what_the_trail_says(run, what):
    chosen = read_statement(run)["predicate"]["weights"]["epoch"]
    number = 2 if what == "the best epoch" and chosen == 3 else 3
    file = run / "checkpoints" / f"epoch-{number:04d}.safetensors"
    rewrite_checkpoint(file, CHECKPOINT[what])
    seal(run)
    assert file.name in find_problems(run)


def test_a_checkpoint_beyond_the_end_is_named(run):
    file = run / "checkpoints" / "epoch-0004.safetensors"
    file.write_bytes((run / "checkpoints" / "epoch-0003.safetensors").read_bytes())
    rewrite_checkpoint(file, lambda meta, tensors: meta.update(epoch=4))
    seal(run)
    assert "epoch-0004.safetensors is of an epoch that the trail does not have" in find_problems(
        run
    )


# Another run, made to look like this one


@pytest.mark.parametrize("step", [0, 6])
def test_a_run_with_a_flipped_bit_that_denies_it_is_found_by_executing(tmp_path, step):
    run = fit_run(tmp_path / "run", control={"flip_bit": "0.weight:3:0", "at_step": step})
    assert seedless.verify(run, **give()).outcome == "identical"
    config = read_config(run)
    reconfigure(run, config.change(control={"flip_bit": None, "at_step": 0}))
    verdict = execute(run)
    assert (verdict.outcome, verdict.code) == ("differs", 1)
    assert verdict.difference["epoch"] == step // 4 + 1
    assert "model/0.weight" in verdict.difference["names"]
    assert f"in epoch {step // 4 + 1}: " in verdict.details[0]
    assert "model/0.bias" in verdict.details[0]


@pytest.mark.parametrize(
    ("section", "change"),
    [
        ("train", {"rate": 0.002}),
        ("order", {"offset": 1}),
        ("init", {"basis": "hadamard"}),
        ("train", {"weight_decay": 0.01}),
    ],
)
def test_a_run_of_another_configuration_is_found_by_executing(tmp_path, section, change):
    run = fit_run(tmp_path / "run", **{section: change})
    honest = read_config(fit_run(tmp_path / "honest"))
    reconfigure(run, honest)
    if "rate" in change:  # the log holds it
        lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
        halved = [{**line, "rate": line["rate"] / 2} for line in lines]
        (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in halved))
        assert "log.jsonl" in find_problems(run)
        seal(run)
    if section == "init":
        entries = read_entries(run)
        entries[0]["initialization"] = read_entries(tmp_path / "honest")[0]["initialization"]
        forge(run, entries)
    verdict = execute(run)
    assert verdict.outcome == "differs"
    assert verdict.difference["epoch"] == (0 if section == "init" else 1)
    assert verdict.difference["names"]


def make_forgetful():
    """A model that draws from torch's generator, where a run without a seed must not."""
    return nn.Sequential(make_model(), nn.Dropout(0.5))


def test_a_run_that_drew_from_a_generator_cannot_deny_it(tmp_path):
    given = {**give(), "model": make_forgetful}
    run = fit_run(tmp_path / "run", given, train={"guard": "report"})
    statement = read_statement(run)
    promise = statement["predicate"]["promise"]
    assert (promise["same_bits"], promise["generators_moved"]) == (False, ["torch's CPU generator"])
    assert seedless.verify(run, validate_only=True).ok
    denied = {**promise, "same_bits": True, "generators_moved": []}
    seal(run, replace(statement, ("predicate", "promise"), denied))
    assert "disagree about the generators that moved" in find_problems(run)
    for path in (run / "checkpoints").iterdir():
        rewrite_checkpoint(path, lambda meta, tensors: meta.update(moved=[]))
    seal(run)
    assert seedless.verify(run, validate_only=True).ok
    assert seedless.verify(run, **given).outcome == "differs"


def test_a_run_that_drew_from_none_cannot_excuse_itself_with_one(run):
    statement = read_statement(run)
    promise = statement["predicate"]["promise"]
    excused = {**promise, "same_bits": False, "generators_moved": ["numpy's np.random"]}
    for path in (run / "checkpoints").iterdir():
        rewrite_checkpoint(path, lambda meta, tensors: meta.update(moved=["numpy's np.random"]))
    seal(run, replace(statement, ("predicate", "promise"), excused))
    verdict = execute(run)
    assert verdict.outcome == "differs"
    assert any("promise.same_bits: False there, True here" in d for d in verdict.details)
