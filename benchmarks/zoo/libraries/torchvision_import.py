"""Import torchvision where its build does not match torch's.

Its compiled ops are then missing, and its own import stops because it describes two of them that do
not exist. Both are declared here, without an implementation: no network of the zoo calls them.
"""

from __future__ import annotations

import torch

_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_DECLARED: list[torch.library.Library] = []  # a library's ops vanish with its object


def import_torchvision() -> None:
    """Import torchvision, so that later imports of it succeed."""
    try:
        import torchvision
    except RuntimeError as error:
        if "torchvision::nms does not exist" not in str(error):
            raise
        library = torch.library.Library("torchvision", "FRAGMENT")
        for op in ("nms", "qnms"):
            library.define(op + _SCHEMA)
        _DECLARED.append(library)
        import torchvision  # noqa: F401
