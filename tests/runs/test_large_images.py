"""Runs on images of 64 pixels and more: from their file, in little memory, to the same bits."""

import numpy as np
import pytest

import seedless
from seedless.core.config import override
from seedless.core.config_files import open_config
from seedless.core.errors import DataError, OrderError
from seedless.data import model_inputs
from seedless.runs.opened_run import open_run
from seedless.runs.train import train_run
from tests.data.readers.test_medmnist import made, write, write_large
from tests.peak import measure
from tests.small import COMMON, IMAGES, train_small


def write_set(folder, side, sizes=(24, 8, 12), name="breastmnist"):
    return write(folder, f"{name}_{side}", made(name, sizes, side))


def train(out, file, side, *settings):
    chosen = (f"data.path={file}", f"data.size={side}", "data.name=breastmnist", *settings)
    return train_small(out, "images-small", *chosen)


@pytest.mark.parametrize("side", [64, 224])
def test_a_run_on_larger_images_is_verified_and_reported(tmp_path, side):
    file = write_set(tmp_path, side, (8, 4, 6))
    run = train(tmp_path / "run", file, side, "order.batch_size=8")
    opened = seedless.load(run)
    assert opened.claims["data"]["shape"] == [1, side, side]
    assert opened.config.data.size == side
    assert "IDENTICAL" in seedless.verify(run).as_text()
    page = seedless.report(run, out=tmp_path / "page.html").read_text()
    assert page.count("data:image/") > 1


def test_another_size_than_the_file_has_is_refused_before_training(tmp_path):
    file = write_set(tmp_path, 64)
    with pytest.raises(DataError, match=r"say data\.size=64"):
        train(tmp_path / "run", file, 128)
    assert not (tmp_path / "run").exists()


CASES = {
    "as they are": (),
    "halves": ("execution.storage=float16",),
    "on the host": ("execution.storage=host",),
    "scaled by channel": ("data.normalize=lead", "data.channels=3"),
    "not augmented": ("augment.padding=0", "augment.flip=false"),
    "in portable arithmetic": ("execution.arithmetic=portable", "data.records=60"),
    "with several labels": ("data.task=multi-label", "order.keep_unlabelled=true"),
}


@pytest.mark.parametrize("case", CASES)
def test_images_kept_as_bytes_train_to_the_same_bits(tmp_path, monkeypatch, case):
    whole = train_small(tmp_path / "whole", *IMAGES, *CASES[case])
    monkeypatch.setattr(model_inputs, "MAX_FLOAT_BYTES", 0)
    kept = train_small(tmp_path / "kept", *IMAGES, *CASES[case])
    one, two = (seedless.load(run).claims for run in (whole, kept))
    for claim in ("trail", "weights", "predictions", "schedule"):
        assert one[claim] == two[claim]
    opened = open_run(kept)
    predicted = opened.predict(opened.records)
    np.testing.assert_array_equal(
        predicted, open_run(whole).run.predictions.loc["test"]["probability"].to_numpy()
    )


def test_orders_that_look_at_all_values_need_images_that_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(model_inputs, "MAX_FLOAT_BYTES", 0)
    with pytest.raises(OrderError, match="needs the values of all samples"):
        train_small(tmp_path / "run", *IMAGES, "order.name=feature_diverse")


TRAIN = """
from pathlib import Path
import seedless.data.model_inputs as model_inputs
from seedless.core.config import override
from seedless.core.config_files import open_config
from seedless.runs.prepare import prepare

model_inputs.MAX_FLOAT_BYTES = {limit}
problem = prepare(override(open_config("images-small"), {settings!r})).problem
images, _ = problem.train.read(problem.keys[:4] * 0, 0)
assert images.shape == (4, 3, 224, 224) and str(images.dtype) == "torch.float32"
"""


def test_a_set_of_large_images_is_never_float32_as_a_whole(tmp_path):
    """The same preparation, with the images expanded, is the control."""
    sizes, side = (300, 30, 70), 224
    file = write_large(tmp_path, sizes)
    settings = [
        *COMMON,
        f"data.path={file}",
        "data.name=retinamnist",
        f"data.size={side}",
        "data.repeated=900",
    ]
    imports = measure(TRAIN.partition("model_inputs.MAX")[0])
    kept = measure(TRAIN.format(limit=0, settings=settings))
    whole = measure(TRAIN.format(limit=2**40, settings=settings))
    assert (imports.error, kept.error, whole.error) == ("", "", "")
    as_bytes = sum(sizes) * 3 * side * side
    assert whole.peak_bytes - kept.peak_bytes > 4 * as_bytes
    # The images take three times their bytes for a moment, the model and its first batch the rest.
    assert kept.peak_bytes - imports.peak_bytes < 4 * as_bytes + 100 * 2**20


def test_the_setting_is_part_of_the_configuration(tmp_path):
    config = override(open_config("images-small"), ["data.name=breastmnist"])
    larger = override(config, ["data.size=64"])
    assert config.digest != larger.digest
    with pytest.raises(DataError, match="seedless data fetch breastmnist --size 64"):
        train_run(larger, tmp_path / "run")
