"""Which modules note their calls: kept apart from the hooks, which load torch's compiler."""

from torch import nn

CALL = "_seedless_call"  # the attribute of a module that notes its calls


def is_noted(module: nn.Module) -> bool:
    """Whether a module notes its calls, so that draws inside it are made by sample or refused."""
    return CALL in vars(module)
