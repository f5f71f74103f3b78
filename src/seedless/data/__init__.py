"""Datasets: a catalog, downloads, one reader for each dataset, simulators, and a cache."""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.core.dataset import Dataset
    from seedless.data.augment import crop_and_flip
    from seedless.data.catalog import CATALOG
    from seedless.data.download.fetch import fetch
    from seedless.data.loading import load
    from seedless.data.normalize import Scale, fit_scale
    from seedless.data.quality_checks import check_quality
    from seedless.data.readers.arrays import read_arrays
    from seedless.data.readers.nstdb import add_noise, read_noise
    from seedless.data.simulators.ecg import simulate_ecg
    from seedless.data.simulators.images import simulate_images

__all__ = [
    "CATALOG",
    "Dataset",
    "Scale",
    "add_noise",
    "check_quality",
    "crop_and_flip",
    "fetch",
    "fit_scale",
    "load",
    "read_arrays",
    "read_noise",
    "simulate_ecg",
    "simulate_images",
]

__getattr__, __dir__ = lazy_names(__name__)
