"""Random generators for a user's augmentation that depend on sample and epoch alone.

They are generators of torch, numpy and Python, each started from four words of Philox for the
sample's key and the epoch. What they draw is repeated as exactly as these libraries repeat their
own draws from one seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch

from seedless.core.checks import check_integer
from seedless.core.errors import DataError
from seedless.core.sample_digests import digest_sample
from seedless.core.sample_index import SampleIndex
from seedless.numerics.counter_random import WORD_MASK, philox

_COUNTER_WORD = 0x61756732  # differs from that of `crop_and_flip` and from layer numbers in use
_MASK_64 = (1 << 64) - 1


@dataclass(frozen=True)
class AugmentGenerators:
    """The generators of one sample in one epoch, made by `augment`.

    Attributes:
        words: four 32-bit words, from which each generator is started.
    """

    words: tuple[int, int, int, int]
    _before: list[tuple[Any, Any, Any]] = field(default_factory=list, repr=False, compare=False)

    @property
    def seed(self) -> int:
        """An integer from 0 to 2^32 - 1, for libraries that take a seed."""
        return self.words[0]

    def numpy_generator(self) -> np.random.Generator:
        """Return a new generator of numpy's."""
        return np.random.Generator(np.random.Philox(key=self._join_words()))

    def numpy_random_state(self) -> np.random.RandomState:
        """Return a new generator of numpy's older kind, as MONAI's transforms take it."""
        return np.random.RandomState(list(self.words))

    def python_random(self) -> random.Random:
        """Return a new generator of Python's."""
        return random.Random(self._join_words())

    def torch_generator(self, device: torch.device | str = "cpu") -> torch.Generator:
        """Return a new generator of torch's."""
        return torch.Generator(device).manual_seed(self._join_words() & _MASK_64)

    def __enter__(self) -> Self:
        """Let the global generators of torch (CPU), numpy and Python draw for this sample."""
        state = (torch.get_rng_state(), np.random.get_state(), random.getstate())
        self._before.append(state)
        torch.default_generator.manual_seed(self._join_words() & _MASK_64)
        np.random.seed(list(self.words))
        random.seed(self._join_words())
        return self

    def __exit__(self, *error: object) -> None:
        """Put the global generators back to where they were."""
        in_torch, in_numpy, in_python = self._before.pop()
        torch.set_rng_state(in_torch)
        np.random.set_state(in_numpy)
        random.setstate(in_python)

    def _join_words(self) -> int:
        return sum(word << 32 * place for place, word in enumerate(self.words))


def augment(key: int | str | bytes, epoch: int | None = None) -> AugmentGenerators:
    """Return random generators that depend on a sample and an epoch alone.

    Args:
        key: in a dataset's ``__getitem__``, the index that it receives, which carries the sample's
            key and the epoch. Elsewhere a key of your own: an integer, text or bytes.
        epoch: with a key of your own, 0 to 2^32 - 1.

    Inside ``with seedless.augment(index):`` the global generators of torch (CPU), numpy and Python
    draw by this sample and epoch, as for transforms of torchvision; afterwards they are where they
    were before. For other libraries, pass a generator or a seed.

    Example:
        >>> class Images(torch.utils.data.Dataset):
        ...     def __getitem__(self, index):
        ...         with seedless.augment(index):
        ...             return self.transform(self.images[index])
    """
    if isinstance(key, SampleIndex) and epoch is None:
        number, epoch = key.key, key.epoch
    elif epoch is None:
        raise DataError(
            f"augment({key!r}) has no key and no epoch: expected the index that a dataset receives "
            "from seedless.Sampler or seedless.fit, or a key of your own as augment(key, epoch). A "
            "Subset, or arithmetic on the index, gives the dataset inside a plain number: augment "
            "in a dataset around it"
        )
    elif isinstance(key, str | bytes):
        number = int.from_bytes(digest_sample(key)[:8], "little")
    else:
        number = check_integer("key", key, -(1 << 63), _MASK_64, error=DataError)
    epoch = check_integer("epoch", epoch, 0, WORD_MASK, error=DataError)
    unsigned = number & _MASK_64
    words = philox((0, _COUNTER_WORD, epoch, 1), (unsigned & WORD_MASK, unsigned >> 32))
    return AugmentGenerators(words)
