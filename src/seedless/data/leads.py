"""ECG leads: chosen by name, never by position; and the limb leads computed from I and II."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError
from seedless.core.registry import choose

TWELVE = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
SIX = TWELVE[:6]
LEAD_SETS: dict[str, tuple[str, ...]] = {"12": TWELVE, "6": SIX}
_SPELLING = {name.upper(): name for name in TWELVE}


def get_lead_set(name: str) -> tuple[str, ...]:
    """Return the names of the leads in a set: "12", or "6" for the limb leads."""
    return choose("lead set", name, LEAD_SETS)


def spell_lead(name: str) -> str:
    """Return a lead's name in the spelling of `TWELVE`: AVR, avr and aVR are the same lead."""
    return _SPELLING.get(name.strip().upper(), name.strip())


def select_leads(
    signal: NDArray[np.float32], names: Sequence[str], wanted: Sequence[str], where: str
) -> NDArray[np.float32]:
    """Return the wanted leads of ``signal`` (leads, time), in the wanted order."""
    spelled = [spell_lead(name) for name in names]
    missing = [name for name in wanted if name not in spelled]
    if missing:
        raise DataError(
            f"{where}: lead {', '.join(missing)} is missing; the record has {', '.join(names)}"
        )
    return np.ascontiguousarray(signal[[spelled.index(name) for name in wanted]])


def derive_limb_leads(
    first: NDArray[np.float32], second: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return (6, time): I, II, III, aVR, aVL, aVF from leads I and II.

    Einthoven: III = II - I. Goldberger: aVR = -(I + II)/2, aVL = I - II/2, aVF = II - I/2.
    """
    i, ii = first.astype(np.float64), second.astype(np.float64)
    leads = [i, ii, ii - i, -(i + ii) / 2, i - ii / 2, ii - i / 2]
    return np.stack(leads).astype(np.float32)
