"""A dataset by name: settings it has or has not, the cache in front, what was fetched."""

import os
import shutil

import numpy as np
import pytest

from seedless.core.config import DataConfig
from seedless.core.errors import DataError, UnknownNameError
from seedless.data.catalog import CATALOG
from seedless.data.loading import check_data_exists, load
from seedless.data.readers.registry import READERS


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SEEDLESS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_every_dataset_of_the_catalog_has_a_reader_but_noise():
    records = {name for name, entry in CATALOG.items() if entry.kind != "noise"}
    assert records <= set(READERS)


def test_the_default_needs_nothing():
    data = load(DataConfig())
    assert (data.name, len(data)) == ("simulated", 1500)
    assert len(load(DataConfig(records=7))) == 7
    images = load(DataConfig(name="simulated-images", classes=3, channels=3, size=32))
    assert images.X.shape[1:] == (3, 32, 32)


def test_a_folder_is_decoded_once_and_defaults_spelled_out_are_the_same_entry(real_data, cache):
    path = str(real_data / "ptb-xl-sample")
    fresh = load(DataConfig(name="ptb-xl", path=path, cache=False))
    assert not cache.exists()
    first = load(DataConfig(name="ptb-xl", path=path))
    assert isinstance(first.X, np.memmap)
    load(DataConfig(name="ptb-xl", path=path, fs=100, task="rhythm", leads="12", short="refuse"))
    entries = [folder for folder in cache.iterdir() if folder.is_dir()]
    assert len(entries) == 1
    assert first.digest == fresh.digest
    six = load(DataConfig(name="ptb-xl", path=path, leads="6"))
    assert six.X.shape[1] == 6
    assert len([folder for folder in cache.iterdir() if folder.is_dir()]) == 2


def test_verify_finds_a_bit_that_rotted_quietly(real_data, cache):
    config = DataConfig(name="ptb-xl", path=str(real_data / "ptb-xl-sample"))
    digest = load(config).digest
    file = next(cache.glob("*/X.npy"))
    times = file.stat()
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    mended = load(config.model_copy(update={"verify": True}))
    assert mended.digest == digest
    assert "built again" in mended.provenance["cache"]


def test_a_change_below_a_linked_folder_is_noticed(real_data, tmp_path):
    folder, elsewhere = tmp_path / "ptb-xl", tmp_path / "elsewhere"
    shutil.copytree(real_data / "ptb-xl-sample", folder, copy_function=shutil.copyfile)
    shutil.copytree(folder / "records100" / "00000", elsewhere)
    shutil.rmtree(folder / "records100" / "00000")
    (folder / "records100" / "00000").symlink_to(elsewhere)
    config = DataConfig(name="ptb-xl", path=str(folder))
    before = load(config).digest
    header = elsewhere / "00009_lr.hea"
    header.write_text(header.read_text().replace("1000.0(0)/z", "500.0(0)/z"))
    assert load(config).digest != before


def test_afdb_has_one_rate(real_data):
    with pytest.raises(DataError, match="expected 250 Hz, found 360 Hz"):
        load(DataConfig(name="afdb", path=str(real_data / "mitdb")))


def test_what_was_fetched_is_found(real_data, cache):
    place = cache / "downloads" / "breastmnist"
    place.mkdir(parents=True)
    shutil.copyfile(real_data / "medmnist/breastmnist.npz", place / "breastmnist.npz")
    assert len(load(DataConfig(name="breastmnist"))) == 780


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "ptb-xl"}, "seedless data fetch ptb-xl"),
        ({"name": "rhythms"}, "give its path"),
        ({"name": "simulated", "path": "x"}, "leave the path out"),
        ({"name": "simulated", "fs": 100}, "has no setting data.fs; it has preset, records, leads"),
        ({"name": "breastmnist", "path": "x", "leads": "6"}, "it has size"),
        ({"name": "cifar-100", "path": "x", "size": 64}, "none of these settings"),
        ({"name": "breastmnist", "size": 64}, "seedless data fetch breastmnist --size 64"),
        ({"name": "breastmnist", "size": 65}, "has 28, 64, 128, 224 pixels on a side"),
        ({"name": "a.npz", "path": "x"}, "leave data.path out"),
        ({"name": "a.npz", "fs": 100}, "no setting data.fs"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(DataError, match=message):
        load(DataConfig(**settings))


def test_unknown_names_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'chapman'"):
        load(DataConfig(name="chapmann"))


def test_an_npz_of_a_known_set_is_read_as_that_set(tmp_path):
    images = np.zeros((2, 28, 28), dtype=np.uint8)
    labels = np.array([[0], [1]], dtype=np.uint8)
    arrays = {}
    for number, split in enumerate(("train", "val", "test")):
        arrays |= {f"{split}_images": images + number, f"{split}_labels": labels}
    np.savez(tmp_path / "scans.npz", **arrays)
    data = load(DataConfig(name=str(tmp_path / "scans.npz")))
    assert (data.name, len(data.rows("test"))) == ("breastmnist", 2)
    with pytest.raises(DataError, match=r"say data\.name=.*scans\.npz"):
        load(DataConfig(name="simulated", path=str(tmp_path / "scans.npz")))


@pytest.mark.parametrize("name", ["mine.npy", "labels.csv", "pictures"])
def test_other_files_are_told_how_arrays_are_stored(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.npy").touch()
    (tmp_path / "labels.csv").touch()
    (tmp_path / "pictures").mkdir()
    for read in (load, check_data_exists):
        with pytest.raises(DataError, match=r"arrays are one \.npz file: np\.savez"):
            read(DataConfig(name=name))
        with pytest.raises(UnknownNameError, match="unknown dataset 'ptb'"):
            read(DataConfig(name="ptb"))
