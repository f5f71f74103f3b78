"""The text of the kernels, with the constants and tables of `constants` in front."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from seedless.portable import constants as c

FILES = ("common", "elementary", "maps", "rows", "columns", "channels", "products")


@lru_cache(maxsize=1)
def write_source() -> str:
    """Return the whole text, a function of this version alone."""
    folder = Path(__file__).parent / "c"
    texts = [(folder / f"{name}.c").read_text("utf-8") for name in FILES]
    return "\n".join([texts[0], _write_constants(), *texts[1:]])


def _write_constants() -> str:
    numbers = {
        "PER_LN2": c.PER_LN2,
        "STEP_HIGH": c.STEP_HIGH,
        "STEP_LOW": c.STEP_LOW,
        "ROOT_HALF": c.ROOT_HALF,
        "ROOT_2_PER_PI": c.ROOT_2_PER_PI,
        "ERF_STEP": float(c.ERF_STEP),
        "ERF_EDGE": float(c.ERF_EDGE),
        "HALF_SHIELD": 1.5 * 2.0 ** (52 + c.HALF),
        "CHUNK_SHIELD": 1.5 * 2.0 ** (52 + c.LIMB),
        **{f"EXP_{k}": value for k, value in enumerate(c.EXP)},
    }
    integers = {
        "HALF_BIAS": c.HALF_BIAS,
        "ERF_ROWS": c.ERF_STEP * c.ERF_EDGE,
        "LOWEST": c.LOWEST,
        "HIGHEST": c.HIGHEST,
        "SUM_BITS": c.SUM_BITS,
        "PRODUCT_BITS": c.PRODUCT_BITS,
    }
    lines = [f"#define {name} ({value.hex()})" for name, value in numbers.items()]
    lines += [f"#define {name} ({value}LL)" for name, value in integers.items()]
    lines += [
        "#define INFINITE FROM_BITS(0x7ff0000000000000LL)",
        "#define NOT_A_NUMBER FROM_BITS(0x7ff8000000000000LL)",
        _write_table("POWERS", c.powers()),
        # The coefficients of one place lie side by side, where `constants` has them in rows.
        _write_table("ERF", [term for place in zip(*c.erf_rows(), strict=True) for term in place]),
    ]
    return "\n".join(lines)


def _write_table(name: str, values: Sequence[float]) -> str:
    listed = ", ".join(value.hex() for value in values)
    return f"TABLE double {name}[{len(values)}] = {{{listed}}};"
