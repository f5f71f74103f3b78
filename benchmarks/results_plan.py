"""Which studies stand in docs/results, and the exact commands that make them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seedless.studies.engine.sizes import Setting

BREAST, ECGS = "medmnist/breastmnist.npz", "ptb-xl-derived100.npz"
ORDERS = ("seeded", "content", "golden", "class_guaranteed", "sobol")


@dataclass(frozen=True)
class Entry:
    """One study on one kind of data: how its page is called, and how it is run.

    ``at_once``: runs at a time on a device, which changes no bit.
    """

    slug: str
    study: str
    setting: Setting
    at_once: int = 1


def list_entries(data: Path) -> tuple[Entry, ...]:
    """Return what docs/results holds, with the data in one folder.

    The small models train on a CPU, where anyone can repeat them; images need a GPU.
    """
    breast, ecgs = str(data / BREAST), str(data / ECGS)
    others = tuple(f"{name}={data / name}" for name in ("mitdb", "cpsc2021"))
    real = Setting("small", ecgs, seeds=10, device="cpu", folds=3)
    orders = Setting("small", ecgs, seeds=10, device="cpu", folds=3, arms=ORDERS)
    simulated = Setting("small", seeds=10, device="cpu", arms=ORDERS)
    # TF32 is what torch computes convolutions in unless it is told otherwise.
    images = Setting(
        "paper", breast, device="cuda", prove=True, changes=("execution.precision=tf32",)
    )
    crossed = Setting("small", ecgs, seeds=10, device="cpu", other=others)
    return (
        Entry("medmnist", "medmnist", images, 4),
        Entry("basis", "basis", real, 2),
        Entry("golden", "golden", real, 2),
        Entry("perclass", "perclass", real, 2),
        Entry("order", "order", orders, 2),
        Entry("order-simulated", "order", simulated, 2),
        Entry("crossdataset", "crossdataset", crossed, 2),
        Entry("theory", "theory", Setting("paper", ecgs, device="cpu")),
        Entry("theory-simulated", "theory", Setting("paper", device="cpu")),
    )


def spell_command(entry: Entry, store: str = "STORE") -> str:
    """Return the command that makes an entry; data lie in a folder called DATA."""
    setting = entry.setting
    words = ["seedless study run", entry.study, "--scale", setting.scale]
    if not setting.simulated:
        words += ["--data", _shorten(setting.data)]
    for option, value in (("--seeds", setting.seeds), ("--folds", setting.folds)):
        words += [] if value is None else [option, str(value)]
    words += ["--arms", ",".join(setting.arms)] if setting.arms else []
    for other in setting.other:
        name, _, place = other.partition("=")
        words += ["--other", f"{name}={_shorten(place)}"]
    for change in setting.changes:
        words += ["--set", change]
    words += ["--device", setting.device]
    words += ["--prove"] if setting.prove else []
    words += ["--runs-per-device", str(entry.at_once)] if entry.at_once > 1 else []
    return " ".join([*words, "--store", store])


def _shorten(place: str) -> str:
    """Return a place below the data's folder, whatever that is called here."""
    path = Path(place)
    known = Path(BREAST)
    return f"DATA/{known}" if path.name == known.name else f"DATA/{path.name}"
