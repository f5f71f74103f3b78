"""From a configuration to a problem: sorted, scaled, resolved; contradictions are refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from seedless.core.config import Config, DataConfig, override, parse_config
from seedless.core.digests import digest, sample_keys
from seedless.core.errors import ConfigError, DataError, SeedlessError, UnknownNameError
from seedless.core.threads import count_usable_cores
from seedless.data.loading import check_data_exists, load
from seedless.data.model_inputs import Arrays, sort_records
from seedless.data.normalize import fit_scale
from seedless.data.quality_checks import check_quality
from seedless.models import MODELS, build
from seedless.runs.prepare import check_names, configure_execution, make_split, prepare, resolve
from tests.train.problems import images

TINY = parse_config(
    {
        "data": {"preset": "tiny"},
        "model": {"small": True},
        "execution": {"device": "cpu", "threads": 1},
    }
)


@pytest.fixture(scope="module")
def tiny():
    return load(DataConfig(preset="tiny"))


@pytest.fixture(scope="module")
def prepared():
    made = prepare(TINY)
    torch.set_deterministic_debug_mode("default")
    return made


def test_all_that_was_left_open_is_filled_in(prepared):
    config = prepared.config
    assert (config.model.leads, config.model.classes) == (12, 12)
    assert (config.data.normalize, config.loss.name) == ("global", "bce")
    assert (config.execution.device, config.execution.threads) == ("cpu", 1)


def test_a_resolved_configuration_resolves_to_itself(prepared):
    """Else a run could be neither resumed nor verified."""
    again = prepare(prepared.config)
    assert again.config == prepared.config
    assert again.facts == prepared.facts


def test_splits_follow_the_protocol_and_the_test_split_is_kept_apart(prepared, tiny):
    for split, name in ((prepared.problem.val, "val"), (prepared.test, "test")):
        assert sorted(split.ids) == sorted(tiny.ids[tiny.rows(name)])
    trained = tiny.take(tiny.rows("train"))
    labelled = trained.Y.any(axis=1)
    assert sorted(prepared.problem.train.ids) == sorted(trained.ids[labelled])
    sizes = {"train": 194, "val": 23, "test": 23}
    assert prepared.facts["data"]["records"] == sizes


def test_unlabelled_records_are_trained_on_only_if_asked(tiny):
    asked = override(TINY, ["order.keep_unlabelled=true"])
    kept = prepare(asked).problem
    assert len(kept.train) == len(tiny.rows("train"))
    assert len(kept.order) == len(kept.train)


def test_samples_are_scaled_by_the_training_split_alone(prepared, tiny):
    scale = fit_scale(sort_records(tiny), "global")
    assert prepared.facts["data"]["scale"] == {
        "mean": list(scale.mean),
        "deviation": list(scale.deviation),
    }
    rows = {name: row for row, name in enumerate(tiny.ids)}
    for split in (prepared.problem.train, prepared.test):
        expected = scale.apply(tiny.X[[rows[name] for name in split.ids]])
        np.testing.assert_array_equal(split.samples.numpy(), expected)
    train = prepared.problem.train.samples.double()
    assert abs(train.mean()) < 0.05
    assert abs(train.std() - 1) < 0.05


def test_keys_are_those_of_the_samples_the_model_receives(prepared):
    problem = prepared.problem
    np.testing.assert_array_equal(problem.keys, sample_keys(problem.train.samples))


def test_the_weights_are_those_of_the_plan(prepared):
    assert digest(prepared.problem.model) == prepared.facts["initialization"]["weights"]
    parameters = sum(p.numel() for p in build("conformer", small=True).parameters())
    assert prepared.facts["model"] == {"type": "Conformer", "parameters": parameters}


def test_records_are_sorted_by_content_so_storage_order_does_not_show(tiny):
    order = np.argsort(np.sin(np.arange(len(tiny))))
    one, other = sort_records(tiny), sort_records(tiny.take(order))
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.X, other.X)
    assert one.digest == other.digest == tiny.digest
    assert one.ids.tolist() != tiny.ids.tolist()


def test_records_of_equal_content_are_sorted_by_labels_fold_and_name(tiny):
    few = tiny.take(np.arange(6))
    alike = replace(
        few,
        X=np.repeat(few.X[:1], 6, axis=0),
        Y=np.repeat(np.eye(12, dtype=np.uint8)[[3, 1]], 3, axis=0),
        folds=np.array([2, 1, 1, 2, 1, 1]),
        ids=np.array(list("fedcba")),
        content=None,
    )
    expected = None
    for turn in range(6):
        found = sort_records(alike.take(np.roll(np.arange(6), turn))).ids.tolist()
        expected = expected or found
        assert found == expected == ["d", "e", "f", "a", "b", "c"]


def test_device_and_threads_are_filled_in_by_the_machine():
    config = configure_execution(Config())
    assert config.execution.device == ("cuda" if torch.cuda.is_available() else "cpu")
    assert config.execution.threads == count_usable_cores() == torch.get_num_threads()
    assert torch.are_deterministic_algorithms_enabled()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match=r"execution.device is cuda.*use cpu"):
        configure_execution(override(Config(), ["execution.device=cuda"]))
    with pytest.raises(UnknownNameError, match=r"unknown device 'gpu'.*known: auto, cpu, cuda"):
        configure_execution(override(Config(), ["execution.device=gpu"]))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.name=conformr", r"unknown model 'conformr' \(did you mean 'conformer'\?\); known:"),
        ("order.name=goldne", "unknown order 'goldne'.*known:.*golden"),
        ("train.optimizer=adm", "unknown optimizer 'adm'.*known: adam, adamw, sgd"),
        ("train.decay=step", "unknown decay 'step'.*known: cosine, none"),
    ],
)
def test_unknown_names_are_refused_before_data_are_read(setting, message):
    with pytest.raises(UnknownNameError, match=message):
        check_names(override(TINY, [setting]))
    missing = override(TINY, [setting, "data.name=no-such-file.npz"])
    with pytest.raises(UnknownNameError, match=message):
        prepare(missing)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model.classes=5"], "model.classes is 5, but simulated has 12 classes"),
        (["model.leads=6"], "model.leads is 6, but simulated has 12 leads"),
        (["model.name=resnet18"], "takes channels, but simulated holds recordings"),
        (["model.channels=3"], "takes leads, not channels"),
        (["augment.flip=true"], "augment moves images; these samples are signals"),
        (["augment.padding=2"], "augment moves images"),
        (["loss.name=cross_entropy"], "exactly one class for each sample"),
        (["data.normalize=lots"], "unknown normalization 'lots'"),
        (["init.seed=3"], "has no seed"),
        (["order.seed=3"], "seed-free"),
        (["train.momentum=0.5"], "momentum belongs to sgd"),
    ],
)
def test_contradictions_are_refused(tiny, settings, message):
    with pytest.raises(SeedlessError, match=message):
        prepare(override(TINY, settings), tiny)


def test_signal_models_refuse_images_and_image_models_take_them():
    problem = prepare(images()).problem
    assert problem.config.data.normalize == "pixels"
    assert problem.config.loss.name == "cross_entropy"
    assert -1 <= problem.train.samples.min() < -0.5
    assert 0.5 < problem.train.samples.max() <= 1
    for name in MODELS:
        if MODELS[name].input_name == "leads":
            with pytest.raises(ConfigError, match="takes leads, but simulated-images holds images"):
                prepare(override(images(), [f"model.name={name}"]))


def test_resolve_fills_in_only_what_was_left_open(tiny):
    chosen = override(TINY, ["data.normalize=lead", "loss.name=bce", "model.leads=12"])
    resolved = resolve(chosen, tiny)
    assert resolved.data.normalize == "lead"
    assert resolved.model.classes == 12


def test_a_dataset_without_training_records_is_refused(tmp_path):
    file = tmp_path / "late.npz"
    samples = np.cos(np.arange(6 * 2 * 50.0)).reshape(6, 2, 50)
    np.savez(file, X=samples, Y=np.eye(3, dtype=int)[[0, 1, 2] * 2], folds=[9, 9, 9, 10, 10, 10])
    with pytest.raises(DataError, match="train"):
        prepare(parse_config({"data": {"name": str(file)}, "model": {"small": True}}))


def test_preparing_moves_no_generator(tiny):
    from seedless.numerics.generator_guard import GeneratorGuard

    guard = GeneratorGuard()
    prepare(TINY)
    assert guard.moved() == ()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", [np.float32, np.uint8])
def test_samples_are_stored_alike_however_the_arrays_were(channels, kind):
    """Torch chooses kernels by strides, and kernels differ in bits."""
    plain = np.arange(4 * channels * 30).astype(kind).reshape(4, channels, 6, 5)
    turned = np.ascontiguousarray(plain.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    expanded = None
    if kind is np.uint8:
        expanded = np.zeros((channels, 256), np.float32)
    labels, ids = np.ones((4, 1), np.uint8), np.array(list("abcd"))
    stored = [
        make_split(Arrays(X, labels, ids, values=expanded), torch.device("cpu"), "float32").samples
        for X in (plain, turned, np.asfortranarray(plain))
    ]
    assert {samples.stride() for samples in stored} == {(30 * channels, 30, 5, 1)}
    assert all(torch.equal(samples, torch.from_numpy(plain)) for samples in stored)


def save_arrays(path, shape, labels):
    samples = np.sin(np.arange(np.prod(shape)) ** 1.5).astype(np.float32).reshape(shape)
    np.savez(path, X=samples, Y=labels, folds=np.arange(shape[0]) % 10 + 1)
    return str(path)


def test_one_class_alone_is_refused_in_words(tmp_path):
    file = save_arrays(tmp_path / "one.npz", (20, 2, 64), np.zeros(20, int))
    data = {"name": file}
    with pytest.raises(ConfigError, match="at least two classes in Y, found one, '0'"):
        prepare(parse_config({"data": data, "model": {"small": True}}))


def test_grey_images_for_an_image_model_name_the_axis_that_is_missing(tmp_path):
    file = save_arrays(tmp_path / "grey.npz", (20, 28, 28), np.arange(20) % 2)
    with pytest.raises(ConfigError, match=r"if they are grey images, store X\[:, None\]"):
        prepare(parse_config({"data": {"name": file}, "model": {"name": "resnet18"}}))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.npz", "^no file at 'nowhere.npz'$"),
        ("mine.npy", r"arrays are one \.npz file.*X=.*Y=.*folds="),
    ],
)
def test_a_file_that_cannot_be_read_as_data_is_named(name, message):
    with pytest.raises(DataError, match=message):
        check_data_exists(DataConfig(name=name))


def save_images(folder, pixels):
    """Forty images of two classes as an .npz, and the settings that train on them."""
    path = folder / "images.npz"
    folds = np.array(["train"] * 30 + ["val"] * 5 + ["test"] * 5)
    np.savez(path, X=pixels, Y=np.arange(40) % 2, folds=folds)
    return parse_config(
        {
            "data": {"name": str(path)},
            "model": {"name": "resnet18", "small": True},
            "execution": {"device": "cpu", "threads": 1},
        }
    )


def test_only_images_of_bytes_are_scaled_as_bytes(tmp_path):
    """0..255 to [-1, 1] would leave nothing of pixels from 0 to 1 but a constant, -1."""
    pixels = np.sin(np.arange(40 * 3 * 12 * 12.0) ** 1.5).reshape(40, 3, 12, 12) / 2 + 0.5
    floats = prepare(save_images(tmp_path, pixels))
    assert floats.config.data.normalize == "global"
    samples = floats.problem.train.samples
    assert samples.mean().abs() < 1e-4
    assert abs(samples.std() - 1) < 1e-3
    in_bytes = prepare(save_images(tmp_path, np.rint(255 * pixels).astype(np.uint8)))
    assert in_bytes.config.data.normalize == "pixels"
    torch.set_deterministic_debug_mode("default")


def test_a_record_in_two_splits_without_a_name_can_be_found(tmp_path):
    pixels = np.sin(np.arange(40 * 12 * 12.0) ** 1.5).reshape(40, 1, 12, 12)
    pixels[38] = pixels[3]
    config = save_images(tmp_path, pixels)
    command = f"`seedless data check {config.data.name}` says in which rows"
    assert command in prepare(config).repeated_record
    (warning,) = check_quality(load(config.data)).warnings
    assert "for example row 3 (train) and row 38 (test)" in warning
    torch.set_deterministic_debug_mode("default")


def test_a_run_that_ends_before_its_warm_up_says_so(tmp_path):
    """Also where its score is above the limit: 30 samples are one step an epoch."""
    config = save_images(tmp_path, np.sin(np.arange(40 * 144.0) ** 1.5).reshape(40, 1, 12, 12))
    short = config.change(train={"epochs": 4, "warmup_steps": 4})
    (note,) = prepare(short).problem.notes
    assert note.startswith("the learning rate never reaches train.rate, since train.warmup_steps")
    assert "is 4 and the run has 4 steps at most" in note
    assert prepare(config.change(train={"epochs": 5, "warmup_steps": 4})).problem.notes == ()
    torch.set_deterministic_debug_mode("default")
