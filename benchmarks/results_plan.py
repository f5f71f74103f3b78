"""Which studies are in docs/results, and the exact commands that make them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from seedless.studies.engine.grid import Point
from seedless.studies.engine.options import StudyOptions

BREAST, ECGS = "medmnist/breastmnist.npz", "ptb-xl-derived100.npz"
ORDERS = ("seeded", "content", "golden", "class_guaranteed", "sobol")


@dataclass(frozen=True)
class Entry:
    """One study on one kind of data: how its page is called, and how it is run.

    ``at_once``: runs at a time on a device, which changes no bit.
    """

    slug: str
    study: str
    options: StudyOptions
    at_once: int = 1


def list_entries(data: Path) -> tuple[Entry, ...]:
    """Return what docs/results holds, with the data in one folder.

    The small models train on a CPU, where anyone can repeat them; images need a GPU.
    """
    breast, ecgs = str(data / BREAST), str(data / ECGS)
    others = tuple(f"{name}={data / name}" for name in ("mitdb", "cpsc2021"))
    real = StudyOptions("small", ecgs, seeds=10, device="cpu", folds=3)
    orders = StudyOptions("small", ecgs, seeds=10, device="cpu", folds=3, arms=ORDERS)
    simulated = StudyOptions("small", seeds=10, device="cpu", arms=ORDERS)
    # TF32 is what torch computes convolutions in by default.
    images = StudyOptions(
        "paper", breast, device="cuda", prove=True, changes=("execution.precision=tf32",)
    )
    # docs/results/protocol.md says why these and so many.
    starts = StudyOptions("paper", ecgs, seeds=50, device="cuda", folds=3)
    crossed = StudyOptions("small", ecgs, seeds=10, device="cpu", other=others)
    return (
        Entry("factorial", "factorial", starts, 8),
        Entry("medmnist", "medmnist", images, 4),
        Entry("basis", "basis", real, 2),
        Entry("golden", "golden", real, 2),
        Entry("perclass", "perclass", real, 2),
        Entry("order", "order", orders, 2),
        Entry("order-simulated", "order", simulated, 2),
        Entry("crossdataset", "crossdataset", crossed, 2),
        Entry("theory", "theory", StudyOptions("paper", ecgs, device="cpu")),
        Entry("theory-simulated", "theory", StudyOptions("paper", device="cpu")),
    )


def choose_tenth(points: Iterable[Point]) -> list[Point]:
    """Return every tenth run by its key, which nobody chose: those that are executed again."""
    by_key = {point.key: point for point in points}
    return [by_key[key] for key in sorted(by_key)[::10]]


def spell_command(entry: Entry, store: str = "STORE") -> str:
    """Return the command that makes an entry; data are in a folder called DATA."""
    options = entry.options
    words = ["seedless study run", entry.study, "--scale", options.scale]
    if not options.simulated:
        words += ["--data", _shorten(options.data)]
    for option, value in (("--seeds", options.seeds), ("--folds", options.folds)):
        words += [] if value is None else [option, str(value)]
    words += ["--arms", ",".join(options.arms)] if options.arms else []
    for other in options.other:
        name, _, place = other.partition("=")
        words += ["--other", f"{name}={_shorten(place)}"]
    for change in options.changes:
        words += ["--set", change]
    words += ["--device", options.device]
    words += ["--prove"] if options.prove else []
    words += ["--runs-per-device", str(entry.at_once)] if entry.at_once > 1 else []
    return " ".join([*words, "--store", store])


def _shorten(place: str) -> str:
    """Return a place below the data's folder, whatever that is called here."""
    path = Path(place)
    known = Path(BREAST)
    return f"DATA/{known}" if path.name == known.name else f"DATA/{path.name}"
