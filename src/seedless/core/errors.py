"""The errors of this package. A message says what was expected, what was found, and what to do."""

FORCE = "--force (in Python: force=True)"  # how an existing file or run is replaced
NEEDS_PAGE = (  # said by the command, and by the function in Python
    "a report of several runs belongs to none of them: name a file, --out FILE.html (in Python: "
    "out=)"
)


class SeedlessError(ValueError):
    """Base class of every error that this package raises on purpose.

    The command line prints its message as one line and ends with exit code 2.
    """


class UnknownNameError(SeedlessError):
    """A name that is in no registry."""


class ConfigError(SeedlessError):
    """A configuration with an unknown key, a value of the wrong type, or a contradiction."""


class DataError(SeedlessError):
    """Arrays or labels that cannot be trained on."""


class OrderError(SeedlessError):
    """A batch order that cannot be made from these settings or samples."""


class InitError(SeedlessError):
    """A model that cannot be initialized with these settings."""


class ModelError(SeedlessError):
    """A model that cannot be built with these settings."""


class NumericsError(SeedlessError):
    """An operation or setting for which identical bits cannot be promised."""


class TrainError(SeedlessError):
    """A training run that cannot start, or cannot continue."""


class TrainingDivergedError(TrainError):
    """A training run whose losses, weights or outputs stopped being finite."""


class RunError(SeedlessError):
    """A run folder that is missing, exists already, is damaged, or contradicts its receipt."""


class LostProcessError(RunError):
    """Another process of the group ended, or does not answer.

    Attributes:
        reports_it: whether this process is the one that says so.
    """

    def __init__(self, message: str, reports_it: bool) -> None:
        super().__init__(message)
        self.reports_it = reports_it


class StorageError(SeedlessError):
    """A disk of this machine that is full or cannot be written; no run or archive is at fault."""


class StudyError(SeedlessError):
    """A study that cannot be run or read: unequal arms, a missing run, a bad store."""


class StatsError(SeedlessError):
    """Numbers for which a statistic is not defined, or runs that cannot be compared."""
