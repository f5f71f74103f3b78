"""The slow twin of every replaced op, under the op's name and with its arguments.

Twins share no code with the tensor ops but the tables of coefficients: sums are Python's integers,
everything else is one IEEE operation on one float after another. A test holds every op to its twin
bit for bit.
"""

from __future__ import annotations

from tests.portable.reference import (
    convolutions,
    functions,
    losses,
    norms,
    places,
    steps,
    sums,
    windows,
)
from tests.portable.reference.arrays import Twin

TWINS: dict[str, Twin] = {
    **functions.TWINS,
    **sums.TWINS,
    **convolutions.TWINS,
    **windows.TWINS,
    **places.TWINS,
    **norms.TWINS,
    **losses.TWINS,
    **steps.TWINS,
}
