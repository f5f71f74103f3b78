"""However the records are stored, a run comes to the same bits."""

import csv
import json
import shutil

import numpy as np
import pytest

from seedless.core.config import DataConfig
from seedless.data.loading import load

SETTINGS = {
    "model.small": "true",
    "execution.device": "cpu",
    "execution.threads": 1,
    "train.epochs": 2,
    "train.evaluate_every": 1,
    "order.batch_size": 16,
}
REPEATS = ("weights", "trail", "predictions", "schedule", "metrics", "data", "config")


@pytest.fixture
def train(nursery, tmp_path):
    """Train on a dataset with `--set` alone; return the receipt's claims."""
    made = iter(range(100))
    file = tmp_path / "empty.toml"
    file.write_text("")

    def run(name, before="", **options):
        chosen = {**SETTINGS, "data.name": name, **options}
        flags = [part for key in chosen for part in ("--set", f"{key}={chosen[key]}")]
        out = tmp_path / f"run-{next(made)}"
        done = nursery.run("train", file, "--out", out, "--json", *flags, before=before)
        return {**json.loads(done.stdout), "out": out}

    return run


def same(one, other):
    assert [name for name in REPEATS if one[name] != other[name]] == []
    for file in ("weights.safetensors", "trail.jsonl", "predictions.npz"):
        assert (one["out"] / file).read_bytes() == (other["out"] / file).read_bytes()


def shuffle(count, turn):
    """A permutation that follows no order of the records."""
    return np.argsort(np.sin(np.arange(count) * (turn + 1.1)))


@pytest.fixture(scope="module")
def arrays():
    """Eighty simulated records, of which some are alike in content: twins and a contradiction."""
    data = load(DataConfig(records=80))
    samples, labels, folds = data.X.copy(), data.Y.copy(), data.folds.copy()
    train = np.flatnonzero(folds <= 8)
    samples[train[1]] = samples[train[0]]  # one content, perhaps other labels
    samples[train[3]], labels[train[3]] = samples[train[2]], labels[train[2]]  # twins
    return {"X": samples[:, :, ::4], "Y": labels, "folds": folds, "ids": data.ids}


@pytest.mark.parametrize("ids", ["from the file", "by content"])
@pytest.mark.parametrize(
    ("model", "order"), [("baseline", "content"), ("conformer", "loss_ranked")]
)
def test_shuffled_rows_of_an_npz_give_the_same_run(train, arrays, tmp_path, ids, model, order):
    kept = {key: arrays[key] for key in arrays if key != "ids" or ids == "from the file"}
    found = []
    for turn in range(2):
        folder = tmp_path / f"place-{turn}"
        folder.mkdir()
        rows = shuffle(80, turn) if turn else np.arange(80)
        np.savez(folder / "mine.npz", **{key: value[rows] for key, value in kept.items()})
        options = {"model.name": model, "order.name": order}
        found.append(train(folder / "mine.npz", **options))
    same(*found)


def test_how_the_numbers_are_stored_does_not_show(train, arrays, tmp_path):
    """Compressed, in another memory order, as float64: the samples are the same."""
    for name in ("plain", "packed"):
        (tmp_path / name).mkdir()
    np.savez(tmp_path / "plain" / "mine.npz", **arrays)
    other = {**arrays, "X": np.asfortranarray(arrays["X"].astype(np.float64))}
    np.savez_compressed(tmp_path / "packed" / "mine.npz", **other)
    same(*(train(tmp_path / name / "mine.npz") for name in ("plain", "packed")))


UNSORTED = """
from seedless.data import model_inputs
model_inputs.sort_records = lambda data: data
"""


def test_negative_control_unsorted_the_order_by_row_number_shows_the_storage(
    train, arrays, tmp_path
):
    """`golden_index` numbers the rows; it repeats because records are sorted before."""
    found = {"": [], UNSORTED: []}
    for turn in range(2):
        folder = tmp_path / f"place-{turn}"
        folder.mkdir()
        rows = shuffle(80, turn) if turn else np.arange(80)
        np.savez(folder / "mine.npz", **{key: value[rows] for key, value in arrays.items()})
        options = {"order.name": "golden_index", "train.epochs": 1, "model.name": "baseline"}
        for before in found:
            found[before].append(train(folder / "mine.npz", before, **options))
    same(*found[""])
    one, other = found[UNSORTED]
    assert one["weights"]["digest"] != other["weights"]["digest"]


def test_negative_control_another_record_is_another_run(train, arrays, tmp_path):
    """One sample of one record, by one part in ten thousand."""
    found = []
    for change in (0, 1e-4):
        folder = tmp_path / f"place-{change}"
        folder.mkdir()
        samples = arrays["X"].copy()
        row = int(np.flatnonzero((arrays["folds"] <= 8) & arrays["Y"].any(axis=1))[-1])
        samples[row, 0, 0] += change
        np.savez(folder / "mine.npz", **{**arrays, "X": samples})
        found.append(train(folder / "mine.npz"))
    one, other = found
    assert one["data"]["digest"] != other["data"]["digest"]
    assert one["weights"]["digest"] != other["weights"]["digest"]


def test_real_arrays_train_by_their_path_alone(train, real_data):
    options = {"train.epochs": 1, "order.batch_size": 64, "model.name": "baseline"}
    claims = train(real_data / "ptb-xl-derived100.npz", **options)
    assert claims["data"]["name"] == "ptb-xl-derived100.npz"
    assert sum(claims["data"]["records"].values()) == 1819
    assert claims["metrics"]["validation"]["macro_auc"] is not None
    assert claims["metrics"]["test"]["n"] == claims["data"]["records"]["test"]


@pytest.fixture
def copies(real_data, tmp_path):
    """PTB-XL's sample as published, and a copy whose table lists the records another way round."""
    original = real_data / "ptb-xl-sample"
    copy = tmp_path / "copy"
    shutil.copytree(original, copy)
    table = copy / "ptbxl_database.csv"
    table.chmod(0o644)
    with open(table, encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    with open(table, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *(rows[row] for row in shuffle(len(rows), 3))])
    return original, copy


def test_ptb_xl_from_its_files_from_the_cache_and_by_a_shuffled_table(train, copies, tmp_path):
    pytest.importorskip("wfdb")
    original, copy = copies
    cache = tmp_path / "cache"
    before = f"import os\nos.environ['SEEDLESS_CACHE'] = {str(cache)!r}"
    options = {"train.epochs": 1, "order.batch_size": 32, "model.name": "baseline"}
    ways = [(original, "false", 0), (original, "true", 1), (original, "true", 1), (copy, "true", 2)]
    found = []
    for path, cached, entries in ways:
        chosen = {**options, "data.path": path, "data.cache": cached}
        found.append(train("ptb-xl", before, **chosen))
        assert len(list(cache.glob("ptb-xl-*"))) == entries
    for other in found[1:]:
        same(found[0], other)
