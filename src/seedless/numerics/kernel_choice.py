"""The switches by which torch chooses a kernel for an op; two kernels differ in bits.

Anyone in the process may have changed them. Their values are set for a run, and put back after it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_ATTENTION = ("flash", "mem_efficient", "math", "cudnn")

# What a run in native arithmetic has: torch's defaults. The order in which `einsum` contracts three
# operands is from left to right, as where the optional package opt_einsum is not installed.
NATIVE = {
    "cudnn": True,
    "onednn": True,
    "nnpack": True,
    "attention fast path": True,
    **{f"attention {name}": True for name in _ATTENTION},
    "opt_einsum": False,
}


def read_switches() -> dict[str, bool]:
    """Return the value of each switch in `NATIVE`."""
    import torch

    attention = {
        f"attention {name}": getattr(torch.backends.cuda, f"{name}_sdp_enabled")()
        for name in _ATTENTION
    }
    return {
        "cudnn": torch.backends.cudnn.enabled,
        "onednn": bool(torch.backends.mkldnn.enabled),
        "nnpack": torch._C._get_nnpack_enabled(),
        "attention fast path": torch.backends.mha.get_fastpath_enabled(),
        **attention,
        "opt_einsum": bool(torch.backends.opt_einsum.enabled),
    }


def set_switches(values: Mapping[str, bool]) -> None:
    """Set some of the switches in `NATIVE`."""
    import torch

    for name, enabled in values.items():
        if name == "cudnn":
            torch.backends.cudnn.enabled = enabled
        elif name == "onednn":
            torch._C._set_mkldnn_enabled(enabled)
        elif name == "nnpack":
            torch._C._set_nnpack_enabled(enabled)
        elif name == "attention fast path":
            torch.backends.mha.set_fastpath_enabled(enabled)
        elif name == "opt_einsum":
            torch.backends.opt_einsum.set_flags(enabled)  # type: ignore[no-untyped-call]
        else:
            # torch's own context for it ends in the thread that began it; ours do not always.
            kernel = name.removeprefix("attention ")
            getattr(torch.backends.cuda, f"enable_{kernel}_sdp")(enabled)


@contextmanager
def switch(values: Mapping[str, bool]) -> Iterator[None]:
    """Set some of the switches for a block."""
    before = read_switches()
    set_switches(values)
    try:
        yield
    finally:
        set_switches({name: before[name] for name in values})
