"""Checks of arguments that many packages share."""

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
