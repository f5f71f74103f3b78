"""Arithmetic whose bits are the same on every processor: each op a function of its inputs alone.

`seedless.portable()` switches it on for a block of code: see `help(seedless.portable.block)`.
README.md in this folder has the laws, the layers, and how to add an op.
"""

from typing import TYPE_CHECKING

from seedless.core.callable_package import make_callable
from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.portable.batch.microbatch import Split
    from seedless.portable.block import Block, portable
    from seedless.portable.mode import is_active

__all__ = ["Block", "Split", "is_active", "portable"]
__getattr__, __dir__ = lazy_names(__name__)
make_callable(__name__, f"{__name__}.block", "portable")
