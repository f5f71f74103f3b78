"""Grids so small that a test may run one of its own: four runs of a small network."""

from seedless.studies.engine.grid import Point, make_grid
from seedless.studies.engine.options import StudyOptions, choose_init

OPTIONS = StudyOptions(scale="smoke", device="cpu")


def make_config(basis="dct", seed=0, **sections):
    """Return a run of an epoch over forty images."""
    start = choose_init(f"{basis} at 1", seed)
    data = {"records": 60, "classes": 2, **sections.pop("data", {})}
    order = {"name": "seeded", "seed": seed, "batch_size": 16, **sections.pop("order", {})}
    return OPTIONS.images(init=start, order=order, data=data, **sections)


def make_tiny_grid(epochs=1, **sections):
    """Return a grid of two arms and two seeds, checkpointed after every epoch."""
    train = {"epochs": epochs, "checkpoint_every": 1, **sections.pop("train", {})}
    points = [
        Point(basis, f"seed {seed}", make_config(basis, seed, train=train, **sections))
        for basis in ("dct", "kaiming")
        for seed in range(2)
    ]
    return make_grid("tiny", ("init.basis",), points)
