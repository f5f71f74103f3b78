"""Small runs of our own models, with a test split that can be opened again."""

from seedless.core.config import override
from seedless.core.config_files import open_config
from seedless.runs.train import train_run

COMMON = (
    "train.epochs=1",
    "train.warmup_steps=0",
    "execution.device=cpu",
    "execution.threads=1",
)
ECG = ("demo", "data.preset=tiny")
IMAGES = ("images-small", "data.records=120")


def train_small(out, preset, *settings):
    """Train one epoch of a preset into ``out`` and return that folder."""
    return train_run(override(open_config(preset), [*COMMON, *settings]), out).path
