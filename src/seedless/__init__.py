"""Train a network twice and get the same bits, without a seed, and hand anyone the proof.

Importing this package does no work: each name below is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from seedless.core.version import __version__

if TYPE_CHECKING:
    from seedless.core.digest import digest, md5, sample_keys
    from seedless.core.errors import SeedlessError
    from seedless.core.marks import mark
    from seedless.init import basis, initialize
    from seedless.models import build
    from seedless.numerics.dropout import Dropout, draws
    from seedless.numerics.environment import settle
    from seedless.numerics.portable.mode import portable
    from seedless.ordering import make_order as order
    from seedless.pipeline.compare import compare
    from seedless.pipeline.diff import diff
    from seedless.pipeline.fit import fit, load
    from seedless.pipeline.verify import verify
    from seedless.proof.trail import Trail

_HOMES = {
    "Dropout": ("seedless.numerics.dropout", "Dropout"),
    "SeedlessError": ("seedless.core.errors", "SeedlessError"),
    "basis": ("seedless.init", "basis"),
    "Trail": ("seedless.proof.trail", "Trail"),
    "build": ("seedless.models", "build"),
    "compare": ("seedless.pipeline.compare", "compare"),
    "diff": ("seedless.pipeline.diff", "diff"),
    "digest": ("seedless.core.digest", "digest"),
    "draws": ("seedless.numerics.dropout", "draws"),
    "fit": ("seedless.pipeline.fit", "fit"),
    "initialize": ("seedless.init", "initialize"),
    "load": ("seedless.pipeline.fit", "load"),
    "mark": ("seedless.core.marks", "mark"),
    "md5": ("seedless.core.digest", "md5"),
    "order": ("seedless.ordering", "make_order"),
    "portable": ("seedless.numerics.portable.mode", "portable"),
    "sample_keys": ("seedless.core.digest", "sample_keys"),
    "settle": ("seedless.numerics.environment", "settle"),
    "verify": ("seedless.pipeline.verify", "verify"),
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
    "draws",
    "fit",
    "initialize",
    "load",
    "mark",
    "md5",
    "order",
    "portable",
    "sample_keys",
    "settle",
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
