"""`seedless resume RUN`: continue a run that was stopped."""

from contextlib import closing
from typing import TYPE_CHECKING

from seedless.cli.options import AsJson, DataPlace, Entry, RunFolder
from seedless.cli.train import show_run, stop_on_interrupt

if TYPE_CHECKING:
    from seedless.core.config import Config
    from seedless.runs.prepare import Prepared


def resume(
    run: RunFolder,
    entry: Entry = None,
    data: DataPlace = None,
    as_json: AsJson = False,
) -> None:
    """Continue a run that was stopped, to the same bits."""
    from seedless.runs.progress import TrainingProgress
    from seedless.runs.resume import resume_run
    from seedless.runs.user_model import choose_preparer

    def prepare_again(config: "Config") -> "Prepared":
        return choose_preparer(config, entry, data)(config)

    progress = TrainingProgress(run.name, shown=not as_json)
    with stop_on_interrupt() as stop, closing(progress):
        finished = resume_run(
            run, observers=(progress,), stop=stop, preparer=prepare_again, warn=progress.say
        )
    show_run(finished, as_json)
