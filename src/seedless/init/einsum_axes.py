"""The axes of a weight in an einsum: which are inputs, which are outputs, which number layers.

An axis of the weight that the other operands have too, and the result has not, is summed over: it
is an input. One that the result has, and no other operand has, is an output. One that both have
numbers layers of their own, such as experts.
"""

import math
from dataclasses import dataclass

from seedless.init.rule import Shape

INPUT, OUTPUT, LAYER = "I", "O", "E"


@dataclass(frozen=True)
class DenseLayout:
    """A weight as dense layers: how many, (outputs, inputs) of each, and which are stored first."""

    layers: int
    outputs: int
    inputs: int
    inputs_first: bool


def classify_axes(equation: str, operand: int) -> str:
    """Return I, O or E for each axis of an operand of an einsum; "" where that does not say it all.

    >>> classify_axes("ibh,hnd->ibnd", 1)
    'IOO'
    """
    terms, arrow, result = equation.replace(" ", "").partition("->")
    operands = terms.split(",")
    if not arrow or "." in equation or len(operands) < 2 or operand >= len(operands):
        return ""
    own = operands[operand]
    others = "".join(term for place, term in enumerate(operands) if place != operand)
    if len(set(own)) != len(own) or any(letter not in others + result for letter in own):
        return ""  # a diagonal, or an axis that is summed alone
    kinds = {(True, False): INPUT, (False, True): OUTPUT, (True, True): LAYER}
    return "".join(kinds[letter in others, letter in result] for letter in own)


def find_layout(axes: str, shape: Shape) -> DenseLayout | None:
    """Return the dense layers that a weight with such axes holds; None where it holds none.

    The axes that number layers come first, and inputs and outputs are not mixed.
    """
    if len(axes) != len(shape) or not {INPUT, OUTPUT} <= set(axes):
        return None
    inputs_first = axes.index(INPUT) < axes.index(OUTPUT)
    order = LAYER + (INPUT + OUTPUT if inputs_first else OUTPUT + INPUT)
    if sorted(axes, key=order.index) != list(axes):
        return None
    sizes = {
        kind: math.prod(size for axis, size in zip(axes, shape, strict=True) if axis == kind)
        for kind in order
    }
    return DenseLayout(sizes[LAYER], sizes[OUTPUT], sizes[INPUT], inputs_first)
