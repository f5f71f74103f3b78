"""Whether the file of weights that a run began with is here, before the run is executed again."""

from seedless.core.bounded_reading import shorten
from seedless.core.display import escape_text
from seedless.core.errors import ConfigError
from seedless.core.weights_file import has_weights
from seedless.proof.schemas import has_weights_file
from seedless.runs.validation import ValidatedRun


def check_weights_given(run: ValidatedRun, place: str | None) -> None:
    """Refuse to execute a run that began with the weights of a file, and no file is here.

    Whether it is that file is found when it is read: another one is refused by its digest.
    """
    if not has_weights_file(run.claims):
        if place is not None:
            raise ConfigError("the run began with no file of weights: leave --weights out")
        return
    file, recorded = run.claims["initialization"]["file"], run.config.init.weights
    tried = place if place is not None else recorded
    if tried is None or not has_weights(tried):
        name, missing = escape_text(file["name"]), escape_text(shorten(str(tried)))
        raise ConfigError(
            f"the run began with the weights of {name}, {file['digest']}, and there is no such "
            f"file at {missing}: give it with --weights FILE (in Python: weights=FILE)"
        )
