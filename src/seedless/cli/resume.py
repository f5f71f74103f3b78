"""`seedless resume RUN`: continue a run that was stopped."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seedless.cli.argument_checks import check_exists, one_of_setting
from seedless.cli.group import Processes, join_processes, start_processes
from seedless.cli.options import AsJson, DataPlace, Entry, WeightsPlace
from seedless.cli.train import make_observers, show_run, stop_on_interrupt
from seedless.core.rendezvous import is_first_process

if TYPE_CHECKING:
    from seedless.core.config import Config
    from seedless.runs.prepare import Prepared


def resume(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="The folder of a run.", callback=check_exists),
    ],
    processes: Processes = 1,
    device: Annotated[
        str | None,
        typer.Option(
            help="cpu, cuda or auto, for a run in portable arithmetic.",
            callback=one_of_setting("execution.device"),
        ),
    ] = None,
    entry: Entry = None,
    data: DataPlace = None,
    weights: WeightsPlace = None,
    as_json: AsJson = False,
) -> None:
    """Continue a run that was stopped, to the same bits."""
    from seedless.runs.folder import read_config

    config = read_config(run)
    options = [("--device", device), ("--entry", entry), ("--data", data), ("--weights", weights)]
    flags = [part for name, value in options if value is not None for part in (name, str(value))]
    flags += ["--json"] * as_json
    start_processes(config, processes, ["resume", str(run), *flags])
    from seedless.runs.progress import TrainingProgress
    from seedless.runs.resume import move_run, resume_run
    from seedless.runs.user_model import choose_preparer

    def prepare_again(config: "Config") -> "Prepared":
        return choose_preparer(config, entry, data, weights)(config)

    progress = TrainingProgress(run.name, shown=not as_json and is_first_process())
    with (
        stop_on_interrupt() as stop,
        closing(progress),
        join_processes(move_run(config, device, in_group=True)) as group,
    ):
        finished = resume_run(
            run,
            observers=make_observers(run, progress),
            stop=stop,
            preparer=prepare_again,
            warn=progress.say,
            device=device,
            group=group,
        )
    show_run(finished, as_json)
