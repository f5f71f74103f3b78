"""Digests see every name, dtype, shape and bit; the published MD5 sees less, and we show it."""

import hashlib

import numpy as np
import pytest
import torch
from torch import nn

import seedless
from seedless.core.digests import as_rows, digest_samples
from seedless.core.errors import DataError


def make_model():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    seedless.initialize(model, "dct")
    return model


def test_the_bytes_hashed_are_as_specified():
    tensors = {"b": torch.tensor([1.0, 2.0]), "a": torch.tensor(3, dtype=torch.int64)}
    expected = hashlib.sha256(
        b'{"dtype":"int64","name":"a","shape":[]}\n'
        + np.array(3, "<i8").tobytes()
        + b'{"dtype":"float32","name":"b","shape":[2]}\n'
        + np.array([1, 2], "<f4").tobytes()
    ).hexdigest()
    assert seedless.digest(tensors) == f"sha256:{expected}"


def test_the_order_of_names_does_not_matter():
    state = make_model().state_dict()
    assert seedless.digest(dict(reversed(state.items()))) == seedless.digest(make_model())


def test_one_flipped_bit_shows_in_both():
    model, other = make_model(), make_model()
    with torch.no_grad():
        other[0].weight.view(torch.int32)[1, 2] ^= 1
    assert seedless.digest(model) != seedless.digest(other)
    assert seedless.md5(model) != seedless.md5(other)


def test_batchnorm_statistics_show_in_ours_and_not_in_the_published_hash():
    model, other = make_model(), make_model()
    other[1].running_mean += 1
    assert seedless.md5(model) == seedless.md5(other)
    assert seedless.digest(model) != seedless.digest(other)


def test_name_dtype_and_shape_show():
    values = torch.zeros(4)
    digests = {
        seedless.digest({"a": values}),
        seedless.digest({"b": values}),
        seedless.digest({"a": values.view(2, 2)}),
        seedless.digest({"a": values.to(torch.int32)}),
    }
    assert len(digests) == 4


def test_md5_is_over_parameter_bytes_in_order():
    model = nn.Linear(2, 2)
    seedless.initialize(model, "dct")
    data = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    assert seedless.md5(model) == hashlib.md5(data, usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.bool, torch.uint8])
def test_dtypes_numpy_lacks_are_hashed_too(dtype):
    assert seedless.digest({"a": torch.ones(3).to(dtype)}).startswith("sha256:")


def test_memory_layout_does_not_show():
    square = torch.arange(6.0).view(2, 3)
    assert seedless.digest({"a": square.t()}) == seedless.digest({"a": square.t().contiguous()})


def test_sample_digests_are_of_what_the_model_receives():
    samples = np.arange(24.0).reshape(4, 2, 3)
    expected = hashlib.blake2b(b'["<f4",[2,3]]', digest_size=32)
    expected.update(samples[1].astype("<f4").tobytes())
    digests = digest_samples(samples)
    assert digests[1].tobytes() == expected.digest()
    np.testing.assert_array_equal(digests, digest_samples(torch.from_numpy(samples).float()))
    np.testing.assert_array_equal(digests, digest_samples(np.asfortranarray(samples)))
    assert len({row.tobytes() for row in digests}) == 4


def test_negative_zero_is_zero():
    plus, minus = np.zeros((1, 3)), -np.zeros((1, 3))
    np.testing.assert_array_equal(digest_samples(plus), digest_samples(minus))


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.array([[1.0], [np.nan]]), "sample 1 holds NaN, infinity"),
        (np.array([[np.inf]]), "sample 0"),
        (np.zeros((0, 4)), "no samples"),
        (np.float32(3), "no samples"),
        (np.array([["a"]]), "real numbers"),
        ([[1.0], [1.0, 2.0]], "cannot be read as an array"),
        (np.array([[1e300]]), "beyond float32"),
    ],
)
def test_bad_samples_are_refused(samples, message):
    with pytest.raises(DataError, match=message):
        as_rows(samples)


def test_a_model_without_data_has_no_digest():
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    with pytest.raises(seedless.SeedlessError, match="meta"):
        seedless.digest(model)


def test_buffers_outside_the_state_dict_show():
    models = [nn.Linear(2, 2) for _ in range(2)]
    for value, model in enumerate(models):
        seedless.initialize(model, "dct")
        model.register_buffer("hidden", torch.full((2,), float(value)), persistent=False)
    assert seedless.digest(models[0]) != seedless.digest(models[1])


def test_views_orders_and_default_devices_do_not_show():
    values = np.arange(6.0).reshape(2, 3)
    plain = seedless.digest({"a": values})
    assert seedless.digest({"a": np.asfortranarray(values)}) == plain
    assert seedless.digest({"a": values[:, ::-1][:, ::-1]}) == plain
    assert seedless.digest({"a": values.astype(">f8")}) == plain
    with torch.device("meta"):
        assert seedless.digest({"a": values}) == plain
    number = torch.tensor([1 + 2j])
    assert seedless.digest({"a": number.conj()}) == seedless.digest({"a": torch.tensor([1 - 2j])})
    assert seedless.digest({"a": torch.zeros(0, 3)}) != seedless.digest({"a": torch.zeros(3, 0)})


@pytest.mark.parametrize("tensors", [{1: torch.zeros(2)}, {"a": torch.eye(2).to_sparse()}])
def test_what_has_no_digest_is_refused(tensors):
    with pytest.raises(seedless.SeedlessError):
        seedless.digest(tensors)


def test_bfloat16_samples_are_read():
    samples = torch.arange(8.0).view(2, 4)
    np.testing.assert_array_equal(
        digest_samples(samples.to(torch.bfloat16)), digest_samples(samples)
    )
