"""`seedless resume RUN`: continue a run that was stopped."""

from contextlib import closing

from seedless.cli.options import AsJson, DataPlace, Entry, RunFolder
from seedless.cli.train import show_run, stop_on_interrupt


def resume(
    run: RunFolder,
    entry: Entry = None,
    data: DataPlace = None,
    as_json: AsJson = False,
) -> None:
    """Continue a run that was stopped, to the same bits."""
    from seedless.runs.folder import read_config
    from seedless.runs.progress import TrainingProgress
    from seedless.runs.resume import resume_run
    from seedless.runs.user_model import choose_preparer

    preparer = choose_preparer(read_config(run), entry, data)
    progress = TrainingProgress(run.name, shown=not as_json)
    with stop_on_interrupt() as stop, closing(progress):
        finished = resume_run(
            run, observers=(progress,), stop=stop, preparer=preparer, warn=progress.say
        )
    show_run(finished, as_json)
