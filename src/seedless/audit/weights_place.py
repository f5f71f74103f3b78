"""Whether the file of weights that a run began with is here, before the run is executed again."""

from seedless.core.errors import ConfigError
from seedless.core.weights_file import find_weights
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
    if tried is None or not find_weights(tried).is_file():
        raise ConfigError(
            f"the run began with the weights of {file['name']}, {file['digest']}, and there is "
            f"no such file at {tried}: give it with --weights FILE (in Python: weights=FILE)"
        )
