"""One family of errors. Each message says what was expected, what was found, and what to do."""

from __future__ import annotations


class SeedlessError(ValueError):
    """Everything this package refuses. The command line turns it into one line and exit code 2."""


class UnknownNameError(SeedlessError):
    """A name that is in no registry."""


class ConfigError(SeedlessError):
    """A configuration with an unknown key, a value of the wrong type, or a contradiction."""


class DataError(SeedlessError):
    """Arrays or labels that cannot be trained on."""


class OrderError(SeedlessError):
    """A batch order asked for something it cannot give."""


class InitError(SeedlessError):
    """A model that cannot be initialized as asked."""


class ModelError(SeedlessError):
    """A model that cannot be built as asked."""


class NumericsError(SeedlessError):
    """An operation or setting outside the promise of identical bits."""


class TrainError(SeedlessError):
    """A run that cannot start, or cannot go on."""


class RunError(SeedlessError):
    """A run folder that is missing, in the way, damaged, or not what its receipt says."""


class StudyError(SeedlessError):
    """A study that cannot be run or read: unequal arms, a missing run, a store in the way."""


class StatsError(SeedlessError):
    """Numbers that a statistic cannot be computed from, or runs that cannot be compared."""
