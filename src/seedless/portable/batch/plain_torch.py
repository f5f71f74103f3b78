"""A context in which torch's ops are torch's own, as they are inside an op's implementation."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import _disable_current_modes


@contextmanager
def plain_torch() -> Iterator[None]:
    """Leave out dispatch modes, function overrides and gradients inside."""
    with torch.no_grad(), torch._C.DisableTorchFunction(), _disable_current_modes():
        yield
