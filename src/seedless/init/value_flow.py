"""A parameter's values on their way through a module's code, and the operations that use them."""

from dataclasses import dataclass, replace

TRANSPOSING = {"t", "T", "mT", "transpose"}
# Functions and methods that move values or round them, and do not compute others from them.
MOVING = {
    *("expand", "expand_as", "repeat", "repeat_interleave", "tile", "broadcast_to"),
    *("view", "reshape", "flatten", "unflatten", "unsqueeze", "squeeze", "contiguous", "clone"),
    *("permute", "movedim", "roll", "flip", "chunk", "split", "unbind", "narrow", "rearrange"),
    *("to", "type", "type_as", "float", "double", "half", "cast", "detach"),
    *("interpolate", "pad", "dropout", "stack"),
    *TRANSPOSING,
}


@dataclass(frozen=True)
class Use:
    """An operation on the values of a parameter.

    Attributes:
        operation: "added", "joined" (concatenated with other values), "substituted" (written in the
            place of other values), "multiplied", "weight" (of a dense layer), "kernel" (of a
            convolution), "bias" (of either), "table" (its rows are looked up), "einsum" (an operand
            of one), or "passed" (to another module).
        indexed: whether entries were picked by an index that is computed.
        transposed: for a weight, whether its filters are the last axis: (I, O).
        axes: in an einsum, I, O or E for each axis: input, output, number of a layer; "" where the
            equation does not say it.
    """

    operation: str
    indexed: bool = False
    transposed: bool = False
    axes: str = ""


@dataclass(frozen=True)
class Flow:
    """Values of the parameter on their way: picked by a computed index, transposed."""

    indexed: bool = False
    transposed: bool = False


Flows = dict[str, Flow]  # by the name of a variable


def transpose(flow: Flow | None) -> Flow | None:
    """Return the flow with its two last axes exchanged."""
    return replace(flow, transposed=not flow.transposed) if flow else None
