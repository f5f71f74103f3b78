"""Which studies are in docs/results, and the exact commands that make them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from seedless.studies.engine.grid import Point
from seedless.studies.engine.options import StudyOptions

BREAST, ECGS = "medmnist/breastmnist.npz", "ptb-xl-derived100.npz"
NOISE = "nstdb-excerpt"
AT_ONCE = 12  # small networks that share a GPU with room for more
ORDERS = ("seeded", "content", "golden", "class_guaranteed", "sobol")


@dataclass(frozen=True)
class Entry:
    """One study on one kind of data: how its page is called, and how it is run.

    ``at_once``: runs at a time on a device, which changes no bit. ``measured``: whether its trained
    models are measured after the runs, so that archives must hold their weights.
    """

    slug: str
    study: str
    options: StudyOptions
    at_once: int = 1
    measured: bool = False


def list_entries(data: Path) -> tuple[Entry, ...]:
    """Return what docs/results holds, with the data in one folder.

    docs/results/protocol.md says why so many runs, and why small models where they are small.
    """
    breast, ecgs = str(data / BREAST), str(data / ECGS)
    others = tuple(f"{name}={data / name}" for name in ("mitdb", "cpsc2021"))
    real = StudyOptions("small", ecgs, seeds=10, device="cpu", folds=3)
    simulated = StudyOptions("small", seeds=10, device="cpu", arms=ORDERS)
    small = StudyOptions("small", ecgs, device="cuda")
    # TF32 is what torch computes convolutions in by default.
    images = StudyOptions(
        "paper", breast, device="cuda", prove=True, changes=("execution.precision=tf32",)
    )
    shorter = StudyOptions(
        "paper", breast, device="cuda", changes=("execution.precision=tf32", "train.epochs=100")
    )
    starts = StudyOptions("paper", ecgs, seeds=50, device="cuda", folds=3)
    crossed = StudyOptions("small", ecgs, seeds=10, device="cpu", other=others)
    headline = replace(small, seeds=20)
    noisy = replace(small, seeds=5, noise=str(data / NOISE))
    return (
        Entry("factorial", "factorial", starts, 8),
        Entry("factorial-small", "factorial", replace(starts, scale="small", device="cpu"), 2),
        Entry("main", "main", headline, AT_ONCE),
        Entry("power", "power", headline, AT_ONCE),
        Entry("convergence", "convergence", replace(small, seeds=10), AT_ONCE),
        Entry("ablation", "ablation", replace(small, seeds=5), AT_ONCE),
        Entry("variance", "variance", replace(small, seeds=10), AT_ONCE),
        Entry("cv", "cv", replace(small, seeds=5, device="cpu"), 2),
        Entry("noise", "noise", noisy, AT_ONCE, measured=True),
        Entry("attribution", "attribution", small, measured=True),
        Entry("medmnist", "medmnist", images, 4),
        Entry("medmnist-scales", "medmnist", replace(shorter, seeds=20), AT_ONCE),
        Entry("medmnist_bases", "medmnist_bases", replace(shorter, seeds=5), AT_ONCE),
        Entry("basis", "basis", real, 2),
        Entry("golden", "golden", real, 2),
        Entry("perclass", "perclass", real, 2),
        Entry("order", "order", replace(real, arms=ORDERS), 2),
        Entry("order-simulated", "order", simulated, 2),
        Entry("crossdataset", "crossdataset", crossed, 2, measured=True),
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
    words += ["--noise-path", _shorten(options.noise)] if options.noise else []
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
