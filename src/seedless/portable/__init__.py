"""Arithmetic whose bits are the same on every processor: each op a function of its inputs alone.

`seedless.portable()` switches it on for a block of code. README.md in this folder has the laws, the
layers, and how to add an op.
"""

from seedless.core.callable_package import make_callable

make_callable(__name__, f"{__name__}.mode", "portable")
