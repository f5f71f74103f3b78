"""The demonstration: one training in two processes, verified, beside two ordinary seeds.

A negative control, with one bit flipped, must differ.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedless.analysis.examples import draw_examples
from seedless.analysis.run_report import view_run
from seedless.core.config import override
from seedless.core.config_files import open_config
from seedless.core.processes import Workers
from seedless.evaluate.changed_answers import ChangedAnswers, compare_answers
from seedless.proof.trail import compare_trails, digest_entry
from seedless.report.page import Verdict, render_page, write_page
from seedless.runs.folder import read_config
from seedless.runs.validation import ValidatedRun, open_validated
from seedless.train.arithmetic import check_arithmetic
from seedless.train.log import LOG_FILE as LOG
from seedless.train.log import read_log

LABELS = {"first": "process 1", "second": "process 2", "control": "one bit flipped"}
# Two runs as they are usually made. The seeds are the first two numbers: none was picked for its
# result.
SEEDS = {"seed-1": "seed 1", "seed-2": "seed 2"}
FLIP = "stem.0.weight:0:0"  # the last bit of the first weight
PAGE = "report.html"
PRESET = "demo"
PAUSE = 0.2  # seconds between two looks at the runs

Show = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Demo:
    """The results of the demonstration.

    Attributes:
        digests: for each epoch, the digest of the whole state in each run.
        identical: whether the trails of the two processes are equal in every entry.
        control_differs: the first epoch at which the negative control differs, or None.
        verdict: the result of `verify` for the first run.
        flips: the test records whose most probable class differs: between the "seeds", two
            ordinary runs with different seeds, and between the "repeats", the two processes.
    """

    folder: Path
    digests: tuple[tuple[str, ...], ...]
    receipts: Mapping[str, Mapping[str, Any]]
    identical: bool
    control_differs: int | None
    verdict: Mapping[str, Any]
    flips: Mapping[str, ChangedAnswers]
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether repeats are identical and the control differs."""
        proven = self.identical and self.control_differs is not None
        return proven and self.verdict["outcome"] == "identical"


def run_demo(out: Path, settings: Sequence[str] = (), *, show: Show = lambda *_: None) -> Demo:
    """Train twice, verify, train with one bit flipped, and write a page about it."""
    began = time.perf_counter()
    check_arithmetic(override(open_config(PRESET), list(settings)))  # before processes are started
    changes = [part for setting in settings for part in ("--set", setting)]
    train = ["train", PRESET, *changes, "--force", "--json", "--out"]
    control = ["--set", f"control.flip_bit={FLIP}"]
    places = {name: out / name for name in (*LABELS, *SEEDS)}
    out.mkdir(parents=True, exist_ok=True)
    _run_together(
        "training twice, in two processes",
        [[*train, str(places["first"])], [*train, str(places["second"])]],
        [places["first"], places["second"]],
        show,
    )
    answers = _run_together(
        "verifying the first, training with one bit flipped, and with two ordinary seeds",
        [
            ["verify", str(places["first"]), "--json"],
            [*train, str(places["control"]), *control],
            *([*train, str(places[name]), *_seed(name)] for name in SEEDS),
        ],
        [places["control"], *(places[name] for name in SEEDS)],
        show,
    )
    verdict = json.loads(answers[0])
    opened = {name: open_validated(place) for name, place in places.items()}
    trails = {name: opened[name].trail for name in LABELS}
    difference = compare_trails(trails["first"], trails["control"])
    demo = Demo(
        folder=out,
        digests=tuple(
            tuple(digest_entry(entry) for entry in row)
            for row in zip(*trails.values(), strict=True)
        ),
        receipts={name: opened[name].claims for name in (*LABELS, *SEEDS)},
        identical=compare_trails(trails["first"], trails["second"]) is None,
        control_differs=None if difference is None else difference[0],
        verdict=verdict,
        flips={
            "seeds": _compare_answers([opened[name] for name in SEEDS]),
            "repeats": _compare_answers([opened["first"], opened["second"]]),
        },
        seconds=time.perf_counter() - began,
    )
    views = [view_run(opened[name], label) for name, label in LABELS.items()]
    page = render_page(
        views[:2],
        title="seedless demo",
        verdict=Verdict(verdict["outcome"], verdict["sentence"], verdict["seconds"]),
        controls=views[2:],
        seeds=[view_run(opened[name], label) for name, label in SEEDS.items()],
        examples=draw_examples(opened["first"]),
    )
    write_page(out / PAGE, page)
    return demo


def _seed(name: str) -> list[str]:
    """Return the arguments of an ordinary run: random weights and order, drawn from a seed."""
    number = name.removeprefix("seed-")
    settings = (
        *("init.basis=kaiming", f"init.seed={number}", "order.name=seeded", f"order.seed={number}"),
        "execution.arithmetic=native",
    )
    return [part for setting in settings for part in ("--set", setting)]


def _compare_answers(runs: Sequence[ValidatedRun]) -> ChangedAnswers:
    """Return the test records that two runs answer differently."""
    first, second = (run.read_predictions() for run in runs)
    return compare_answers(first, second)


def _run_together(
    title: str, commands: Sequence[Sequence[str]], watched: Sequence[Path], show: Show
) -> list[str]:
    """Run commands of this program side by side, show how far they are, return what they print."""
    with Workers() as workers:
        for command in commands:
            workers.start("seedless", command, capture=True)
        results = workers.wait(lambda: show(title, *_count_epochs(watched)), PAUSE)
    # 1 and 3 are verdicts of `seedless verify`, which the page shows.
    return [result.check(allowed=(0, 1, 3)).stdout for result in results]


def _count_epochs(runs: Sequence[Path]) -> tuple[int, int]:
    """Return the epochs done and the epochs in all, of runs that may not have begun."""
    done = total = 0
    for run in runs:
        if (run / "config.toml").exists():
            total += read_config(run).train.epochs
            done += len(read_log(run / LOG))
    return done, total
