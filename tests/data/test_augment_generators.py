"""Generators for augmentation: of sample and epoch alone, for the libraries that people use."""

import random

import numpy as np
import pytest
import torch
from monai.transforms import Compose, RandFlip, RandGaussianNoise
from torch.utils.data import DataLoader, Dataset

import seedless
from seedless.core.errors import DataError
from seedless.core.sample_index import SampleIndex
from seedless.numerics.generator_guard import GeneratorGuard

N = 12
IMAGES = torch.sin(torch.arange(N * 36.0)).view(N, 1, 6, 6)


def draw(generators):
    return (
        generators.seed,
        generators.numpy_generator().random(),
        generators.numpy_random_state().rand(),
        generators.python_random().random(),
        torch.rand(1, generator=generators.torch_generator()).item(),
    )


def draw_globally(generators):
    with generators:
        return random.random(), np.random.rand(), torch.rand(1).item()


@pytest.mark.parametrize("see", [draw, draw_globally])
def test_key_and_epoch_decide_everything(see):
    first = see(seedless.augment(5, 2))
    assert see(seedless.augment(5, 2)) == first
    assert see(seedless.augment(SampleIndex(0, key=5, epoch=2))) == first
    for other in (seedless.augment(6, 2), seedless.augment(5, 3), seedless.augment("5", 2)):
        assert all(a != b for a, b in zip(see(other), first, strict=True))


def test_the_numbers_stay_as_they_are():
    """Recorded runs depend on them."""
    assert seedless.augment(5, 2).words == (1900181740, 109855916, 3046813109, 2013612924)


def test_the_global_generators_are_put_back():
    guard = GeneratorGuard()
    with seedless.augment(1, 0), seedless.augment(2, 0):
        torch.rand(1)
        np.random.rand()
        random.gauss()
    with pytest.raises(ValueError, match="empty"), seedless.augment(1, 0):
        random.choice([random.random() for _ in range(0)] or np.random.choice([]))
    assert guard.moved() == ()


def test_one_object_may_be_entered_twice():
    generators = seedless.augment(1, 0)
    outer = draw_globally(generators)
    with generators:
        assert draw_globally(generators) == outer
        assert random.random() == outer[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3,), r"no key and no epoch.*seedless\.Sampler.*Subset"),
        ((SampleIndex(3, key=1, epoch=0) + 1,), "arithmetic on the index"),
        ((3, -1), "epoch"),
        ((2.5, 0), "key to be an integer"),
        ((1 << 64, 0), "key to be an integer"),
    ],
)
def test_what_is_no_key_is_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        seedless.augment(*arguments)


class TorchvisionStyle:
    """Draws from torch's global generator, as transforms of torchvision do."""

    def __call__(self, image):
        return image.flip(-1) if torch.rand(1) < 0.5 else image + torch.randn_like(image)


class AlbumentationsStyle:
    """Has generators of its own, made from a seed, as `Compose` of Albumentations has."""

    def set_random_seed(self, seed):
        self.random_generator, self.py_random = np.random.default_rng(seed), random.Random(seed)

    def __call__(self, image):
        if self.py_random.random() < 0.5:
            image = image.flip(-1)
        return image + self.random_generator.normal()


class Augmented(Dataset):
    def __init__(self, kind):
        self.kind = kind
        self.monai = Compose([RandFlip(prob=0.5), RandGaussianNoise(prob=0.8)])
        self.torchvision, self.albumentations = TorchvisionStyle(), AlbumentationsStyle()

    def __len__(self):
        return N

    def __getitem__(self, index):
        image = IMAGES[index]
        if self.kind == "monai":
            self.monai.set_random_state(state=seedless.augment(index).numpy_random_state())
            return torch.as_tensor(self.monai(image)).clone()
        if self.kind == "albumentations":
            self.albumentations.set_random_seed(seedless.augment(index).seed)
            return self.albumentations(image)
        with seedless.augment(index):
            return self.torchvision(image)


def read(kind, workers):
    dataset = Augmented(kind)
    sampler = seedless.Sampler(dataset, batch_size=5, shown=False)
    loader = DataLoader(dataset, batch_sampler=sampler, num_workers=workers)
    return [torch.cat(list(loader)) for _ in range(2)]


@pytest.mark.parametrize("kind", ["monai", "torchvision", "albumentations"])
def test_transforms_repeat_with_any_number_of_workers(kind):
    torch.manual_seed(1)
    first, second = read(kind, 0)
    torch.manual_seed(2)
    again = read(kind, 2)
    assert torch.equal(again[0], first)
    assert torch.equal(again[1], second)
    assert not torch.equal(first.sort(0).values, second.sort(0).values)  # epochs differ


def test_negative_control_transforms_by_the_global_generator_do_not():
    class Plain(Augmented):
        def __getitem__(self, index):
            return self.torchvision(IMAGES[index])

    loader = DataLoader(Plain("torchvision"), batch_size=5, num_workers=0)
    assert not torch.equal(torch.cat(list(loader)), torch.cat(list(loader)))
