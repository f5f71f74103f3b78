"""Attribution maps computed twice, in two processes, and for a run with one flipped bit.

A run that is trained twice is one run in the store, so what is repeated here is the explanation.
The run with one bit of one weight flipped before its first step shows that digests can differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seedless.analysis.attribute import METHODS, Explained
from seedless.analysis.demo import FLIP
from seedless.core.digests import get_hex
from seedless.core.errors import StudyError
from seedless.report.record_picture import draw_record
from seedless.studies.engine.grid import Grid, Point, make_grid
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Table
from seedless.studies.shared.map_digests import RECORDS, digest_in_worker, digest_maps, explain_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WHOLE, BROKEN = "as it is", "one bit flipped"
FREE = "seed-free"


@dataclass(frozen=True)
class Maps:
    """The maps of one method: of both runs, and the digests that another process computed.

    A run that failed has none.
    """

    whole: Explained | None
    broken: Explained | None
    in_worker: dict[str, str]


def make(options: StudyOptions) -> Grid:
    """Return the seed-free run and the same run with a flipped bit; both are needed."""
    if options.arms:
        raise StudyError("--arms: attribution compares its two runs: leave it out")
    whole = options.ecg_run("mixed", None)
    broken = options.ecg_run("mixed", None, control={"flip_bit": FLIP})
    points = [Point(WHOLE, FREE, whole), Point(BROKEN, FREE, broken)]
    return make_grid("attribution", ("control",), points)


def measure(results: Results) -> dict[str, Maps]:
    """Return the maps of both runs by method."""
    whole, broken = (results.outcomes_of(arm)[0] for arm in (WHOLE, BROKEN))
    data = results.options.data_path
    return {
        method: Maps(
            explain_run(whole.run, method, data) if whole.ok else None,
            explain_run(broken.run, method, data) if broken.ok else None,
            digest_in_worker(whole.run, method, data) if whole.ok else {},
        )
        for method in METHODS
    }


def tabulate(results: Results) -> list[Table]:
    """Return the digests of all maps, and the weights they belong to."""
    rows, values = [], []
    for method, maps in results.measured.items():
        control = digest_maps(maps.broken) if maps.broken is not None else {}
        here = digest_maps(maps.whole) if maps.whole is not None else {}
        for layer, first in here.items():
            second, other = maps.in_worker[layer], control.get(layer, "")
            rows.append(
                (
                    f"{method}, {layer}",
                    _short(first),
                    _short(second),
                    "yes" if first == second else "NO",
                    _short(other) if other else "not there",
                    "yes" if other and other != first else "NO",
                )
            )
            values.append(
                {"method": method, "layer": layer, "digests": [first, second], "control": other}
            )
    columns = ("maps", "here", "another process", "equal", "one bit flipped", "differ")
    runs = [
        (one.point.arm, one.point.key, _short(one.weights) if one.weights else str(one.error))
        for arm in (WHOLE, BROKEN)
        for one in results.outcomes_of(arm)
    ]
    note = f"Maps of at most {RECORDS} test records, each for the class the model finds likeliest."
    return [
        Table("Digests of the maps", columns, tuple(rows), (note,), tuple(values)),
        Table("The runs", ("", "run", "weights"), tuple(runs)),
    ]


def _short(digest: str) -> str:
    return get_hex(digest)[:16]


def draw(results: Results) -> Figure:
    """Return one test record on ECG paper, with the evidence for its class tinted."""
    from matplotlib.figure import Figure

    explained = results.measured["gradcam"].whole
    if explained is None:
        figure = Figure(figsize=(8.0, 1.2), dpi=120, facecolor="white")
        figure.text(0.05, 0.5, "There is no map: the run failed")
        return figure
    maps, opened = explained.attributions[-1], explained.opened
    # Draw the most certain answer among the records whose map is not all zero.
    shown = [row for row in range(len(maps.ids)) if maps.maps[row].any()] or [0]
    row = max(shown, key=lambda place: float(explained.probabilities[place]))
    place = int((opened.ids == maps.ids[row]).argmax())
    title = f"{maps.ids[row]}: {explained.classes[row]}, p = {explained.probabilities[row]:.2f}"
    return draw_record(
        opened.records[place],
        leads=opened.leads,
        fs=opened.fs,
        units=opened.units,
        title=title,
        emphasis=maps.maps[row],
    )


STUDY = Study(
    "attribution",
    "Does an explanation repeat, and does it notice a single bit?",
    make,
    tabulate,
    draw,
    measure=measure,
)
