"""Is the weights file that a run began with here? Checked before the run is executed again."""

from seedless.core.bounded_reading import shorten
from seedless.core.display import escape_text
from seedless.core.errors import ConfigError
from seedless.core.weights_file import has_weights
from seedless.proof.schemas import has_weights_file
from seedless.runs.validation import ValidatedRun


def check_weights_present(run: ValidatedRun, path: str | None) -> None:
    """Refuse to execute a run that began with a weights file if no such file is found.

    Args:
        run: the run to execute again.
        path: where the user says the file is; None for the path that the run recorded.

    Its digest is compared when it is read: a file with other bytes is refused there.
    """
    if not has_weights_file(run.claims):
        if path is not None:
            raise ConfigError("the run began with no weights file: leave --weights out")
        return
    file, recorded = run.claims["initialization"]["file"], run.config.init.weights
    tried = path if path is not None else recorded
    if tried is None or not has_weights(tried):
        name, missing = escape_text(file["name"]), escape_text(shorten(str(tried)))
        raise ConfigError(
            f"the run began with the weights of {name}, {file['digest']}, and there is no such "
            f"file at {missing}: give it with --weights FILE (in Python: weights=FILE)"
        )
