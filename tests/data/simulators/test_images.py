"""Simulated images: the same bytes everywhere, imbalanced, every class in every split."""

import numpy as np
import pytest

from seedless.core.dataset import THREE_SPLITS
from seedless.core.errors import DataError, UnknownNameError
from seedless.data.simulators.images import label_images, least_count, simulate_images

# A changed digest means other images under the same numbers: raise VERSION and say so.
GOLDEN = {  # size, channels, classes, task
    "28 1 8 multi-class": "214ead68156b47f0e844d17433577e15121f2be5ecfd3c9f2f015f18b3ee60c7",
    "32 3 100 multi-class": "72e05a3afbba144a166f9e097c01b58e65c588497bc1e1a457f3ec5400b8d3f5",
    "28 3 14 multi-label": "f72bb67e5f4ac9dbe10cb008a7512985d82437a11a9c2de11e4e168f85bcc3fd",
}
PRINT_DIGEST = (
    "from seedless.data.simulators.images import simulate_images;"
    "print(simulate_images(64, size=32, channels=3).digest)"
)


@pytest.mark.parametrize("kind", GOLDEN)
def test_the_committed_digests(kind):
    *numbers, task = kind.split()
    size, channels, classes = (int(number) for number in numbers)
    data = simulate_images(300, size=size, channels=channels, classes=classes, task=task)
    assert data.X.shape == (300, channels, size, size)
    assert data.X.dtype == np.uint8
    assert data.protocol == THREE_SPLITS
    assert data.digest == f"sha256:{GOLDEN[kind]}"


def test_image_i_depends_on_i_alone(run_python):
    ten = simulate_images(10, channels=3, task="multi-label")
    seventh = simulate_images(1, start=7, channels=3, task="multi-label")
    np.testing.assert_array_equal(seventh.X[0], ten.X[7])
    np.testing.assert_array_equal(seventh.Y[0], ten.Y[7])
    assert (seventh.ids[0], seventh.folds[0]) == (ten.ids[7], ten.folds[7])
    elsewhere = run_python("-c", PRINT_DIGEST, OMP_NUM_THREADS=1).stdout.strip()
    assert elsewhere == simulate_images(64, size=32, channels=3).digest


@pytest.mark.parametrize("task", ["multi-class", "multi-label"])
@pytest.mark.parametrize("classes", [2, 3, 8, 14, 100])
def test_every_class_is_in_every_split(classes, task):
    folds, labels = label_images(np.arange(least_count(classes, task)), classes, task)
    counts = np.stack([labels[folds == fold].sum(axis=0) for fold in (1, 2, 3)])
    assert counts.min() >= 1
    np.testing.assert_allclose(np.bincount(folds)[1:] / len(folds), [0.7, 0.1, 0.2])
    total = counts.sum(axis=0)
    assert 4 < total[0] / total[-1] < 14


def test_the_default_count_is_enough():
    data = simulate_images()
    assert len(data) == 1000
    for split in THREE_SPLITS:
        assert data.Y[data.rows(split)].any(axis=0).all()
    assert (data.Y.sum(axis=1) == 1).all()


def test_multi_label_images_hold_none_one_or_several():
    _, labels = label_images(np.arange(4000), 14, "multi-label")
    held = np.bincount(labels.sum(axis=1)) / 4000
    assert held[0] == pytest.approx(0.25, abs=0.01)
    assert held[1] > 0.3
    assert held[2:].sum() > 0.15


def test_images_use_the_range_of_pixels_and_differ():
    data = simulate_images(500)
    assert len({image.tobytes() for image in data.X}) == 500
    assert 60 < data.X.mean() < 150
    assert ((data.X == 0) | (data.X == 255)).mean() < 0.02


def test_classes_look_different_and_not_trivially_so():
    """A class's mean image says little: the nearest one is right more often than chance, rarely."""
    data = simulate_images(1500, classes=5)
    x = data.X.reshape(1500, -1) - data.X.reshape(1500, -1).mean(axis=1, keepdims=True)
    y = data.Y.argmax(axis=1)
    train, test = data.rows("train"), data.rows("test")
    means = np.stack([x[train][y[train] == k].mean(axis=0) for k in range(5)])
    nearest = (((x[test][:, None] - means) ** 2).sum(axis=2)).argmin(axis=1)
    recall = np.mean([(nearest[y[test] == k] == k).mean() for k in range(5)])
    assert 0.15 < recall < 0.7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 64}, r"size to be one of \(28, 32\), got 64"),
        ({"channels": 2}, r"channels to be one of \(1, 3\), got 2"),
        ({"classes": 1}, "classes to be an integer from 2 to 100, got 1"),
        ({"classes": 101}, "classes to be an integer from 2 to 100"),
        ({"count": 0}, "count to be an integer from 1"),
        ({"count": 5.0}, "count to be an integer from 1"),
        ({"count": 1, "start": -1}, "start to be an integer from 0"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        simulate_images(**arguments)


def test_an_unknown_task_is_refused():
    with pytest.raises(UnknownNameError, match="unknown task 'ordinal'"):
        simulate_images(10, task="ordinal")
