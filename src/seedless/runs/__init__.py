"""A configuration or a user's model becomes a finished run: prepare, train, resume, seal, open."""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.runs.bundled_run import bundle
    from seedless.runs.finished_run import Run
    from seedless.runs.fit_model import fit
    from seedless.runs.opened_run import OpenRun, load, open_run
    from seedless.runs.resume import resume_run
    from seedless.runs.signed_run import sign_run
    from seedless.runs.train import train_run

__all__ = [
    "OpenRun",
    "Run",
    "bundle",
    "fit",
    "load",
    "open_run",
    "resume_run",
    "sign_run",
    "train_run",
]

__getattr__, __dir__ = lazy_names(__name__)
