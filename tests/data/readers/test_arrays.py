"""Your own arrays: what an .npz may hold, and what is refused by name."""

import contextlib
import pickle
import re
import zipfile

import numpy as np
import pytest

from seedless.core.dataset import TEN_FOLDS, THREE_SPLITS
from seedless.core.errors import DataError
from seedless.data.readers.arrays import read_arrays

N = 20


def fields(**changes):
    values = {
        "X": np.cos(np.arange(N * 2 * 30.0)).reshape(N, 2, 30),
        "Y": np.eye(3, dtype=np.int64)[np.arange(N) % 3] + (np.arange(N) == 4)[:, None] * [1, 0, 0],
        "folds": np.arange(N) % 10 + 1,
    }
    return {name: value for name, value in {**values, **changes}.items() if value is not None}


def save(folder, **changes):
    path = folder / "mine.npz"
    np.savez(path, **fields(**changes))
    return path


def test_the_real_file(real_data):
    data = read_arrays(real_data / "ptb-xl-derived100.npz")
    assert data.X.shape == (1819, 12, 1000)
    assert data.X.dtype == np.float32
    assert (data.fs, data.protocol, data.task) == (100.0, TEN_FOLDS, "multi-label")
    assert data.classes[-1] == "TRIGU"
    assert data.leads[3] == "aVR"
    assert data.ids[0] == "9"
    assert data.patients[0] == "18792"
    assert int((data.Y.sum(axis=1) > 0).sum()) == 1769
    with np.load(real_data / "ptb-xl-derived100.npz", allow_pickle=False) as raw:
        expected = raw["X"][:50].astype(np.float32) * raw["scale"]
    np.testing.assert_array_equal(data.X[:50], expected)


def test_the_least_a_file_must_hold(tmp_path):
    data = read_arrays(save(tmp_path))
    assert data.name == "mine"
    assert data.classes == ("0", "1", "2")
    assert (data.patients, data.leads, data.fs, data.warnings) == (None, None, None, ())
    np.testing.assert_array_equal(data.X, fields()["X"].astype(np.float32))
    np.testing.assert_array_equal(data.Y, fields()["Y"])


@pytest.mark.parametrize("ids", [None, np.arange(N)])
def test_the_order_in_the_file_does_not_show(tmp_path, ids):
    values = fields(ids=ids)
    values["X"][3] = values["X"][13]  # twins, with other labels: told apart all the same
    first = read_arrays(save(tmp_path, **values))
    shuffled = np.argsort(np.cos(np.arange(N) * 5.0))
    second = read_arrays(save(tmp_path, **{k: v[shuffled] for k, v in values.items()}))
    assert first.digest == second.digest
    assert len(set(first.ids)) == N


def test_class_numbers_make_a_multi_class_set(tmp_path):
    data = read_arrays(save(tmp_path, Y=np.arange(N) % 3))
    assert data.task == "multi-class"
    np.testing.assert_array_equal(data.Y, np.eye(3)[np.arange(N) % 3])
    named = read_arrays(save(tmp_path, Y=np.arange(N) % 3, classes=np.array(list("abcd"))))
    assert named.classes == ("a", "b", "c", "d")
    assert named.Y[:, 3].sum() == 0


@pytest.mark.parametrize(
    ("folds", "protocol"),
    [
        (np.arange(N) % 10 + 1, TEN_FOLDS),
        ((np.arange(N) % 10 + 1).astype(np.uint8), TEN_FOLDS),
        ((np.arange(N) % 10 + 1).astype(float), TEN_FOLDS),
        (np.arange(N) % 3 + 1, THREE_SPLITS),
        (np.array(["train", "val", "test", "train"] * 5), THREE_SPLITS),
    ],
)
def test_folds(tmp_path, folds, protocol):
    data = read_arrays(save(tmp_path, folds=folds))
    assert data.protocol == protocol
    assert sum(len(data.rows(split)) for split in protocol) == N


def test_words_for_splits_mean_what_they_say(tmp_path):
    data = read_arrays(save(tmp_path, folds=np.array(["train", "val", "test", "train"] * 5)))
    assert data.rows("val").tolist() == [1, 5, 9, 13, 17]


@pytest.mark.parametrize("scale", [np.float32(0.01), np.array([0.01]), np.array([0.01, 0.5])])
def test_scale(tmp_path, scale):
    raw = np.arange(N * 2 * 30, dtype=np.int16).reshape(N, 2, 30)
    data = read_arrays(save(tmp_path, X=raw, scale=scale))
    expected = raw * np.reshape(np.float64(scale), (-1, 1))
    np.testing.assert_array_equal(data.X, expected.astype(np.float32))


def test_images(tmp_path):
    images = np.arange(N * 3 * 4 * 4, dtype=np.uint16).reshape(N, 3, 4, 4).astype(np.uint8)
    assert read_arrays(save(tmp_path, X=images)).X.dtype == np.uint8
    assert read_arrays(save(tmp_path, X=images, scale=np.array(1 / 255))).X.dtype == np.float32


def test_names_may_be_numbers(tmp_path):
    data = read_arrays(
        save(tmp_path, patients=np.arange(N) / 1.0, ids=np.arange(N), leads=np.array(["i", "AVR"]))
    )
    assert data.patients[1] == "1"
    assert data.leads == ("I", "aVR")


def test_arrays_without_a_use_are_a_warning(tmp_path):
    data = read_arrays(save(tmp_path, sexes=np.ones(N)))
    assert data.warnings == ("arrays that are not used: sexes",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"folds": None}, r"found X, Y; add folds: a number from 1 to 10 .* train, val and test"),
        ({"X": None, "Y": None}, "add X: samples .*; Y: labels"),
        ({"Y": np.zeros((N - 1, 3))}, "same number of records .* X 20, Y 19, folds 20"),
        ({"ids": np.arange(N + 1)}, "ids 21"),
        ({"X": np.zeros((N, 60))}, r"expected X as numbers .* found float64 \(20, 60\)"),
        ({"X": np.full((N, 2, 3), "a")}, "expected X as numbers"),
        ({"Y": np.full((N, 3), 0.5)}, "expected Y as whole numbers"),
        ({"Y": np.full(N, np.nan)}, "expected Y as whole numbers"),
        ({"Y": np.full(N, np.inf)}, "expected Y as whole numbers"),
        ({"Y": np.full(N, "SR")}, "expected Y as whole numbers"),
        ({"Y": np.zeros((N, 0))}, "expected Y as whole numbers"),
        ({"Y": np.full((N, 3), 2)}, r"values from 2 to 2; class numbers have the shape \(20,\)"),
        ({"Y": np.arange(N) - 1}, "class numbers from 0 to 18, found -1 to 18"),
        ({"Y": np.arange(N), "classes": np.array(["a"])}, "from 0 to 0, found 0 to 19"),
        ({"classes": np.array(["a", "b"])}, "2 names in classes for 3 classes in Y"),
        ({"classes": np.array([["a"]])}, "expected classes as text"),
        ({"folds": np.arange(N) % 10}, "from 1 to 10, .* found 0, 1, 2"),
        ({"folds": np.full(N, "dev")}, "train, val and test; found dev"),
        ({"folds": np.ones((N, 1))}, r"found shape \(20, 1\)"),
        ({"scale": np.zeros(())}, "finite and not 0"),
        ({"scale": np.ones(3)}, "one for each of 2 leads"),
        ({"fs": np.array(0)}, "fs as one number above 0"),
        ({"fs": np.array("fast")}, "fs as one number above 0"),
        ({"ids": np.zeros(N)}, "'0' occurs more than once"),
        ({"ids": np.arange(N) + 0.5}, "expected ids as text or whole numbers"),
        ({"leads": np.array(["I"])}, "1 lead names for 2 leads"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, changes, message):
    with pytest.raises(DataError, match=message) as caught:
        read_arrays(save(tmp_path, **changes))
    assert "mine" in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_samples_that_are_no_numbers_are_named(tmp_path, value):
    samples = fields()["X"]
    samples[[7, 9], 0, 3] = value
    ids = np.array([f"r{i}" for i in range(N)])
    with pytest.raises(DataError, match=r"mine.npz: record r7 holds NaN .*2 of 20 records"):
        read_arrays(save(tmp_path, X=samples, ids=ids))
    with pytest.raises(DataError, match="record row 7"):
        read_arrays(save(tmp_path, X=samples))


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def test_objects_are_never_unpickled(tmp_path):
    path = save(tmp_path, ids=np.array([Trap()] * N, dtype=object))
    with pytest.raises(DataError, match=r"mine.npz: ids holds Python objects"):
        read_arrays(path)
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(DataError, match="Python objects"):
        read_arrays(path)


def test_files_that_are_no_npz(tmp_path):
    path = save(tmp_path)
    data = path.read_bytes()
    for broken in (data[: len(data) // 2], b"", b"text"):
        path.write_bytes(broken)
        with pytest.raises(DataError, match=r"mine.npz: "):
            read_arrays(path)
    flipped = bytearray(data)
    flipped[len(data) // 4] ^= 0xFF
    path.write_bytes(flipped)
    with pytest.raises(DataError, match=r"mine.npz: X is damaged"):
        read_arrays(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", b"not an array")
    with pytest.raises(DataError, match=r"mine.npz: X is damaged, .* no array"):
        read_arrays(path)
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(DataError, match="one array; expected"):
        read_arrays(tmp_path / "one.npy")
    with pytest.raises(DataError, match="No such file"):
        read_arrays(tmp_path / "none.npz")
    with pytest.raises(DataError, match="cannot be read"):
        read_arrays(tmp_path)


def test_damaged_headers_of_any_kind_are_refused(tmp_path):
    good = tmp_path / "good.npz"
    np.savez(good, X=np.zeros((4, 2, 8), np.float32), Y=np.eye(4), folds=np.arange(4) + 1)
    content = good.read_bytes()
    file = tmp_path / "bad.npz"
    refused = 0
    for place in range(40, len(content), 7):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x29]) + content[place + 1 :])
        with contextlib.suppress(DataError):  # and nothing else
            read_arrays(file)
            continue
        refused += 1
    assert refused > 20


def test_class_numbers_have_a_bound(tmp_path):
    file = tmp_path / "many.npz"
    labels = np.array([0, 1, 2, 1 << 40])
    np.savez(file, X=np.zeros((4, 2, 8), np.float32), Y=labels, folds=np.arange(4) + 1)
    with pytest.raises(DataError, match="below 10,000"):
        read_arrays(file)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((20, 100, 12), r"read as 100 leads of 12 samples each; if it is \(n, time, leads\)"),
        ((20, 9, 8, 3), r"read as 9 channels of 8 x 3 pixels; if it is \(n, height, width, chan"),
        ((20, 12, 100), None),
        ((20, 12, 12), None),
        ((20, 3, 9, 8), None),
        ((20, 9, 8, 8), None),
        ((20, 1, 30, 3), None),
    ],
)
def test_axes_that_look_swapped_are_a_warning(tmp_path, shape, message):
    samples = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    file = save(tmp_path, X=samples, Y=np.arange(20) % 2, folds=np.arange(20) % 10 + 1)
    warnings = " ".join(read_arrays(file).warnings)
    assert "transpose" in warnings if message else "transpose" not in warnings
    assert re.search(message or "", warnings)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((20, 28, 28), True), ((20, 64, 96), True), ((20, 12, 12), False), ((20, 32, 1000), False)],
)
def test_grey_images_without_an_axis_of_channels_are_a_warning(tmp_path, shape, expected):
    samples = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    file = save(tmp_path, X=samples, Y=np.arange(20) % 2, folds=np.arange(20) % 10 + 1)
    warnings = " ".join(read_arrays(file).warnings)
    assert ("if these are grey images, store X[:, None]" in warnings) is expected


def test_labels_that_are_text_say_how_to_number_them(tmp_path):
    rest = {"X": np.zeros((20, 2, 8), np.float32), "folds": np.arange(20) % 10 + 1}
    with pytest.raises(DataError, match=r"found text.*np\.unique\(Y, return_inverse=True\)"):
        read_arrays(save(tmp_path, Y=np.array(["AF", "SR"] * 10), **rest))
    with pytest.raises(DataError, match=r"found float64 \(20,\), such as 0\.5"):
        read_arrays(save(tmp_path, Y=np.array([0, 0.5] * 10), **rest))


def test_leads_with_names_say_which_axis_they_are(tmp_path):
    samples = np.arange(20 * 6 * 4, dtype=np.float32).reshape(20, 6, 4)
    rest = {"Y": np.arange(20) % 2, "folds": np.arange(20) % 10 + 1}
    names = np.array(["I", "II", "III", "aVR", "aVL", "aVF"])
    with pytest.raises(DataError, match=r"expected X as \(n, leads, time\).*transpose\(0, 2, 1\)"):
        read_arrays(save(tmp_path, X=samples, leads=names[:4], **rest))
    assert read_arrays(save(tmp_path, X=samples, leads=names, **rest)).warnings == ()


def test_one_class_a_sample_as_columns_is_said_to_be_read_as_several(tmp_path):
    data = read_arrays(save(tmp_path, Y=np.eye(3, dtype=np.int64)[np.arange(N) % 3]))
    assert data.task == "multi-label"
    (warning,) = data.warnings
    assert warning.startswith("Y (20, 3) has exactly one 1 in each row and is read as several")
    assert "Y.argmax(axis=1)" in warning
    # Negative controls: a sample with two classes, a sample with none, one column.
    both, none = np.eye(3, dtype=np.int64)[np.arange(N) % 3], np.zeros((N, 3), np.int64)
    both[0] = 1
    none[1:] = both[1:]
    for labels in (both, none, np.ones((N, 1), np.int64)):
        assert read_arrays(save(tmp_path, Y=labels)).warnings == ()


def test_class_numbers_that_begin_with_one_are_doubted(tmp_path):
    data = read_arrays(save(tmp_path, Y=np.arange(N) % 3 + 1))
    assert data.classes == ("0", "1", "2", "3")
    assert data.warnings == (
        "the class numbers in Y go from 1 to 3, and are counted from 0: class 0 has no sample; "
        "Y - 1 leaves it out",
    )
    # Negative controls: a class in the middle is missing, and names that say which are meant.
    assert read_arrays(save(tmp_path, Y=np.arange(N) % 3 * 2)).warnings == ()
    named = {"classes": np.array(["none", "some", "more", "most"])}
    assert read_arrays(save(tmp_path, Y=np.arange(N) % 3 + 1, **named)).warnings == ()


def test_one_class_alone_is_doubted(tmp_path):
    (warning,) = read_arrays(save(tmp_path, Y=np.zeros(N, np.int64))).warnings
    assert warning == "Y has one class only, 0: there is nothing to tell apart"


@pytest.mark.parametrize(
    ("given", "unit"), [("mV", "mV"), (" MV", "mV"), ("uV", "uV"), (None, None)]
)
def test_a_file_may_state_the_unit_of_its_samples(tmp_path, given, unit):
    data = read_arrays(save(tmp_path, units=None if given is None else np.array(given)))
    assert data.units == unit
    assert data.warnings == ()
    # The unit is for drawings: it changes no digest.
    assert data.digest == read_arrays(save(tmp_path)).digest


def test_a_unit_that_is_no_text_is_refused(tmp_path):
    with pytest.raises(DataError, match='expected units as one text, such as "mV", found 5'):
        read_arrays(save(tmp_path, units=np.array(5)))


def test_records_without_ids_are_named_by_their_rows(tmp_path):
    assert read_arrays(save(tmp_path)).name_record(7) == "row 7"
    assert read_arrays(save(tmp_path, ids=np.arange(N) + 100)).name_record(7) == "107"
