"""What `--vary` changes in the second run of a pair: variables of the environment."""

import re

from seedless.core.errors import RunError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KNOWN = {
    "threads": ("OMP_NUM_THREADS", "MKL_NUM_THREADS"),
}


def parse_variation(text: str) -> dict[str, tuple[str, str]]:
    """Return the two values of each variable that ``--vary`` names.

    >>> parse_variation("seed-env")
    {'PYTHONHASHSEED': ('1', '2')}
    """
    if text == "seed-env":
        return {"PYTHONHASHSEED": ("1", "2")}
    name, _, rest = text.partition("=")
    values = rest.split(",")
    if not _NAME.fullmatch(name) or len(values) != 2 or values[0] == values[1]:
        raise RunError(
            f"expected --vary threads=1,2, seed-env, or NAME=a,b with two values, got {text!r}"
        )
    if name == "threads" and not all(value.isdigit() and int(value) > 0 for value in values):
        raise RunError(f"expected two numbers of threads, as threads=1,2, got {text!r}")
    return dict.fromkeys(_KNOWN.get(name, (name,)), (values[0], values[1]))
