"""Maps of what predictions rest on: computed twice, in two processes, and of a broken twin.

The same run trained twice is one run in the store, so what is repeated is the explanation. A run
with one bit of one weight flipped before its first step shows that digests can differ.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedless.analysis.attribute import METHODS, Explained, attribute_run
from seedless.analysis.demo import FLIP
from seedless.core.errors import StudyError
from seedless.core.processes import Workers
from seedless.report.paper import draw_ecg
from seedless.studies.engine.grid import Grid, Point, make_grid
from seedless.studies.engine.options import StudyOptions, choose_init
from seedless.studies.engine.results import Results
from seedless.studies.engine.store import Outcome
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WHOLE, BROKEN = "as it is", "one bit flipped"
FREE = "seed-free"
RECORDS = 256  # at most


def make(options: StudyOptions) -> Grid:
    """The seed-free run, and its twin with a flipped bit: neither says anything alone."""
    if options.arms:
        raise StudyError("--arms: attribution holds its two runs against each other: leave it out")
    order = {"name": "content"}
    whole = options.ecg(init=choose_init("mixed"), order=order)
    broken = options.ecg(init=choose_init("mixed"), order=order, control={"flip_bit": FLIP})
    points = [Point(WHOLE, FREE, whole), Point(BROKEN, FREE, broken)]
    return make_grid("attribution", ("control",), points)


@cache
def explain_here(run: Path, weights: str, method: str) -> Explained:
    """Return a run's maps, computed in this process."""
    return attribute_run(run, records=RECORDS, method=method)


@cache
def explain_elsewhere(run: Path, weights: str, method: str) -> dict[str, str]:
    """Return the digest of each layer's maps, computed in a process of its own."""
    asked = ["--method", method, "--records", str(RECORDS), "--json"]
    with Workers() as workers:
        workers.start("seedless", ["attribute", str(run), *asked], capture=True)
        (result,) = workers.wait()
    said: dict[str, Any] = json.loads(result.check().stdout)
    return dict(said["layers"])


def find_digests(one: Outcome, method: str) -> dict[str, str]:
    """Return the digest of each layer's maps, computed in this process."""
    if one.weights is None:
        return {}
    found = explain_here(one.run, one.weights, method)
    return {part.layer: part.digest for part in found.attributions}


def tabulate(results: Results) -> list[Table]:
    """Return the digests of all maps, and the weights they belong to."""
    whole, broken = (results.of(arm)[0] for arm in (WHOLE, BROKEN))
    rows, values = [], []
    for method in METHODS:
        control = find_digests(broken, method)
        again = explain_elsewhere(whole.run, whole.weights, method) if whole.weights else {}
        for layer, first in find_digests(whole, method).items():
            second, other = again[layer], control.get(layer, "")
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
        for one in (whole, broken)
    ]
    note = f"Maps of at most {RECORDS} test records, each for the class the model finds likeliest."
    return [
        Table("Digests of the maps", columns, tuple(rows), (note,), tuple(values)),
        Table("The runs", ("", "run", "weights"), tuple(runs)),
    ]


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:16]


def draw(results: Results) -> Figure:
    """Return one test record on paper, tinted where the evidence for its class lies."""
    from matplotlib.figure import Figure

    (one,) = results.of(WHOLE)
    if one.weights is None:
        figure = Figure(figsize=(8.0, 1.2), dpi=120, facecolor="white")
        figure.text(0.05, 0.5, "There is no map: the run failed")
        return figure
    found = explain_here(one.run, one.weights, "gradcam")
    maps, finished = found.attributions[-1], found.finished
    # The record with the most certain answer that has any evidence at all.
    shown = [row for row in range(len(maps.ids)) if maps.maps[row].any()] or [0]
    row = max(shown, key=lambda place: float(found.probabilities[place]))
    place = int((finished.ids == maps.ids[row]).argmax())
    title = f"{maps.ids[row]}: {found.classes[row]}, p = {found.probabilities[row]:.2f}"
    leads = finished.leads or tuple(str(k) for k in range(finished.records.shape[1]))
    # Our own readers give millivolts; arrays of one's own are in a unit nobody knows.
    known = not one.point.config.data.name.endswith(".npz")
    return draw_ecg(
        finished.records[place], leads, finished.fs or 100.0, title, known, maps.maps[row]
    )


STUDY = Study(
    "attribution",
    "Does an explanation repeat, and does it notice a single bit?",
    make,
    tabulate,
    draw,
)
