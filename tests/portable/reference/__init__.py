"""The slow reference of every replaced op, under the op's name and with its arguments.

References share no code with the tensor ops but the tables of coefficients: sums are Python's
integers, everything else is one IEEE operation on one float after another. A test compares every
op with its reference, bit for bit.
"""

from __future__ import annotations

from tests.portable.reference import (
    convolutions,
    ctc,
    functions,
    gamma,
    grid_points,
    losses,
    norms,
    optimizers,
    resampling,
    sums,
    windows,
)
from tests.portable.reference.arrays import Reference

REFERENCES: dict[str, Reference] = {
    **functions.REFERENCES,
    **sums.REFERENCES,
    **convolutions.REFERENCES,
    **windows.REFERENCES,
    **resampling.REFERENCES,
    **grid_points.REFERENCES,
    **norms.REFERENCES,
    **losses.REFERENCES,
    **ctc.REFERENCES,
    **gamma.REFERENCES,
    **optimizers.REFERENCES,
}
