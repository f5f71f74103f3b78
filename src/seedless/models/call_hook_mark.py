"""The mark of modules with call hooks. Not in call_hooks.py, which loads torch's compiler."""

from torch import nn

CALL = "_seedless_call"  # the attribute of a module that has call hooks


def has_call_hooks(module: nn.Module) -> bool:
    """Whether `convert` added call hooks to a module.

    Random draws inside such a module are made for each sample, or refused.
    """
    return CALL in vars(module)
