"""Train a network twice and get the same bits, without a seed, and hand anyone the proof.

Importing this package does no work: each name below is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from seedless.core.version import __version__

if TYPE_CHECKING:
    from seedless.analysis.compare import compare
    from seedless.audit.diff import diff
    from seedless.audit.verify import verify
    from seedless.core.digest import digest, md5, sample_keys
    from seedless.core.errors import SeedlessError
    from seedless.core.marks import mark
    from seedless.init import basis, initialize
    from seedless.models import build
    from seedless.numerics.dropout import Dropout, dropout_keys
    from seedless.numerics.environment import make_deterministic
    from seedless.ordering import make_order as order
    from seedless.portable.mode import portable
    from seedless.proof.trail import Trail
    from seedless.runs.fit import fit, load

_HOMES = {
    "Dropout": ("seedless.numerics.dropout", "Dropout"),
    "SeedlessError": ("seedless.core.errors", "SeedlessError"),
    "basis": ("seedless.init", "basis"),
    "Trail": ("seedless.proof.trail", "Trail"),
    "build": ("seedless.models", "build"),
    "compare": ("seedless.analysis.compare", "compare"),
    "diff": ("seedless.audit.diff", "diff"),
    "digest": ("seedless.core.digest", "digest"),
    "dropout_keys": ("seedless.numerics.dropout", "dropout_keys"),
    "fit": ("seedless.runs.fit", "fit"),
    "initialize": ("seedless.init", "initialize"),
    "load": ("seedless.runs.fit", "load"),
    "mark": ("seedless.core.marks", "mark"),
    "md5": ("seedless.core.digest", "md5"),
    "order": ("seedless.ordering", "make_order"),
    "portable": ("seedless.portable.mode", "portable"),
    "sample_keys": ("seedless.core.digest", "sample_keys"),
    "make_deterministic": ("seedless.numerics.environment", "make_deterministic"),
    "verify": ("seedless.audit.verify", "verify"),
}

__all__ = [
    "Dropout",
    "SeedlessError",
    "Trail",
    "__version__",
    "basis",
    "build",
    "compare",
    "diff",
    "digest",
    "dropout_keys",
    "fit",
    "initialize",
    "load",
    "make_deterministic",
    "mark",
    "md5",
    "order",
    "portable",
    "sample_keys",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'seedless' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
