"""Checks of arguments that many packages share."""

import os
from numbers import Integral

from seedless.core.errors import SeedlessError


def check_integer(
    name: str, value: object, least: int, most: int | None = None, *, error: type[SeedlessError]
) -> int:
    """Return ``value`` as an int; raise ``error`` unless it is an integer from least to most."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if least <= number and (most is None or number <= most):
            return number
    limits = f">= {least}" if most is None else f"from {least} to {most}"
    raise error(f"expected {name} to be an integer {limits}, got {value!r}")


def check_memory(what: str, needed: int, *, error: type[SeedlessError]) -> None:
    """Raise ``error`` if something needs more bytes than this machine has memory.

    Without this check, the system would end the process without a message.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory:
        raise error(
            f"{what} need {needed / 1e9:,.0f} GB of memory, and this machine has "
            f"{memory / 1e9:,.0f} GB: use fewer, or a larger machine"
        )
