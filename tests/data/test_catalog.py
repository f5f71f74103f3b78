"""The catalog: every fact that can be checked without a network."""

import json
import re
from dataclasses import FrozenInstanceError

import pytest

from seedless.core.errors import DataError, UnknownNameError
from seedless.core.files import hash_file
from seedless.data.catalog import CATALOG, as_dict, find_entry
from seedless.data.download.transfer import check_url

MEDMNIST = {
    "bloodmnist": (3, 8, (11959, 1712, 3421)),
    "organcmnist": (1, 11, (12975, 2392, 8216)),
    "dermamnist": (3, 7, (7007, 1003, 2005)),
    "breastmnist": (1, 2, (546, 78, 156)),
    "retinamnist": (3, 5, (1080, 120, 400)),
    "chestmnist": (1, 14, (78468, 11219, 22433)),
    "pathmnist": (3, 9, (89996, 10004, 7180)),
}


def test_all_datasets_are_there_under_their_own_names():
    others = {
        "simulated", "simulated-images", "ptb-xl", "afdb", "nstdb", "cpsc2018",
        "cpsc2018-original", "chapman", "cifar-100",
    }  # fmt: skip
    assert set(CATALOG) == others | set(MEDMNIST)
    assert all(entry.name == name for name, entry in CATALOG.items())


@pytest.mark.parametrize("name", sorted(CATALOG))
def test_an_entry_is_complete(name):
    entry = find_entry(name)
    assert entry.title
    assert entry.licence
    assert entry.kind in ("ecg", "image", "noise")
    assert entry.task in ("multi-label", "multi-class", None)
    assert (entry.task is None) == (entry.kind == "noise")
    assert (entry.fs is None) == (entry.kind == "image")
    assert len(set(entry.classes)) == len(entry.classes)
    for file in entry.files:
        check_url(file.url)
        if file.hash is None:
            assert file.check
        else:
            assert re.fullmatch("md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", file.hash)
    if entry.files:
        assert entry.size > 0
        assert entry.citation
        assert entry.homepage
    with pytest.raises(FrozenInstanceError):
        entry.name = "other"


@pytest.mark.parametrize("name", sorted(MEDMNIST))
def test_medmnist(name):
    channels, classes, sizes = MEDMNIST[name]
    entry = find_entry(name)
    assert entry.shape == (channels, 28, 28)
    assert len(entry.classes) == classes
    assert tuple(entry.sizes.values()) == sizes
    assert entry.files[0].url == f"https://zenodo.org/records/10519652/files/{name}.npz?download=1"
    assert entry.task == ("multi-label" if name == "chestmnist" else "multi-class")


def test_the_real_breastmnist_has_the_hash_and_size(real_data):
    entry = find_entry("breastmnist")
    path = real_data / "medmnist" / "breastmnist.npz"
    assert hash_file(path, "md5") == entry.files[0].hash
    assert path.stat().st_size == entry.size


def test_cifar_100_has_a_hundred_classes_in_their_own_order():
    classes = find_entry("cifar-100").classes
    assert len(classes) == 100
    assert list(classes) == sorted(classes)


def test_channels_without_names_are_mapped_explicitly():
    assert find_entry("afdb").leads is None
    assert find_entry("afdb").lead_map == {"ECG1": "I", "ECG2": "II"}


def test_of_ecg_arrhythmia_only_chapman_is_wanted():
    wanted = re.compile(find_entry("chapman").listed)
    numbers = [n for n in range(46_000) if wanted.fullmatch(f"WFDBRecords/01/010/JS{n:05d}.mat")]
    assert numbers == list(range(10_647))  # there is no JS00000
    assert not wanted.fullmatch("WFDBRecords/01/010/JS00001.mat.part")


@pytest.mark.parametrize(
    ("name", "path", "wanted"),
    [
        ("ptb-xl", "records100/00000/00001_lr.dat", True),
        ("ptb-xl", "records500/00000/00001_hr.dat", False),
        ("ptb-xl", "ptbxl_database.csv", True),
        ("afdb", "04015.dat", True),
        ("afdb", "00735.atr", True),
        ("afdb", "old/04015.atr", False),
        ("nstdb", "em.dat", True),
        ("nstdb", "118e06.dat", False),
        ("cpsc2018", "training/cpsc_2018/g7/A6877.hea", True),
        ("cpsc2018", "training/cpsc_2018_extra/g1/Q0001.hea", False),
        ("cpsc2018", "training/ptb-xl/g1/HR00001.mat", False),
    ],
)
def test_what_is_wanted_of_a_physionet_project(name, path, wanted):
    assert bool(re.fullmatch(find_entry(name).listed, path)) is wanted


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match="did you mean 'ptb-xl'") as refusal:
        find_entry("ptbxl")
    assert "cifar-100" in str(refusal.value)


def test_entries_become_plain_values():
    for entry in CATALOG.values():
        values = as_dict(entry)
        assert json.loads(json.dumps(values)) == values
    assert as_dict(find_entry("simulated"))["embedded"] is True
    assert as_dict(find_entry("afdb"))["embedded"] is False


@pytest.mark.parametrize("name", sorted(MEDMNIST))
def test_larger_images_have_files_and_sums_of_their_own(name):
    small, found = find_entry(name), {}
    for size in (64, 128, 224):
        entry = find_entry(name, size)
        (file,) = entry.files
        assert entry.shape == (small.shape[0], size, size)
        assert entry.root == file.path == f"{name}_{size}.npz"
        assert f"/{name}_{size}.npz?" in file.url
        assert re.fullmatch("md5:[0-9a-f]{32}", file.hash)
        assert f"{size} x {size}" in entry.title
        assert (entry.classes, entry.sizes) == (small.classes, small.sizes)
        found[size] = file.hash
    assert len({*found.values(), small.files[0].hash}) == 4
    assert find_entry(name, 28) == small
    listed = {file["hash"] for file in as_dict(small)["files"]}
    assert listed == {*found.values(), small.files[0].hash}


def test_no_two_files_have_the_same_sum():
    sums = [file["hash"] for entry in CATALOG.values() for file in as_dict(entry)["files"]]
    known = [one for one in sums if one is not None]
    assert len(known) == len({*known})


@pytest.mark.parametrize(("name", "size"), [("breastmnist", 32), ("cifar-100", 64), ("ptb-xl", 28)])
def test_a_size_that_is_not_published_is_refused(name, size):
    with pytest.raises(DataError, match=rf"data\.size is {size}, and {name} has"):
        find_entry(name, size)
