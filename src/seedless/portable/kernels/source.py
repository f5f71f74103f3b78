"""The C text of the kernels, with the constants and tables of `constants` in front."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from seedless.portable import constants as c

FILES = (
    *("common", "elementary", "gelu", "elementwise", "rows", "column_sums", "batch_norm"),
    *("products", "fused_product", "cpu_packing", "cpu_product"),
)
_ERF_PADDING = (0.0,)  # makes a centre's coefficients two vectors of four


@lru_cache(maxsize=1)
def write_source() -> str:
    """Return the whole text, a function of this version alone."""
    folder = Path(__file__).parent / "c"
    texts = [(folder / f"{name}.c").read_text("utf-8") for name in FILES]
    return "\n".join([texts[0], _write_constants(), *texts[1:]])


def _write_constants() -> str:
    names = ("PER_LN2", "STEP_HIGH", "STEP_LOW", "ROOT_HALF", "ROOT_2_PER_PI")
    numbers = {
        **{name: getattr(c, name) for name in names},
        "ERF_STEP": float(c.ERF_STEP),
        "ERF_EDGE": float(c.ERF_EDGE),
        "HALF_SHIFT": 1.5 * 2.0 ** (52 + c.HALF_BITS),
        "CHUNK_SHIFT": 1.5 * 2.0 ** (52 + c.LOW_PART_BITS),
        **{f"EXP_{k}": value for k, value in enumerate(c.EXP)},
    }
    bits = ("SUM_BITS", "PRODUCT_BITS", "STEP_BITS")
    exponents = ("HALF_BIAS", "LOWEST_EXPONENT", "HIGHEST_EXPONENT")
    integers = {name: getattr(c, name) for name in (*exponents, *bits)}
    integers["ERF_ROWS"] = c.ERF_STEP * c.ERF_EDGE
    integers["ERF_DEGREE"] = c.ERF_DEGREE
    integers["ERF_STRIDE"] = c.ERF_DEGREE + 1 + len(_ERF_PADDING)
    # The coefficients of one centre are contiguous, with a zero at the end: they are read together.
    by_centre = [
        term for centre in zip(*c.erf_rows(), strict=True) for term in (*centre, *_ERF_PADDING)
    ]
    return "\n".join(
        [
            *(f"#define {name} ({value.hex()})" for name, value in numbers.items()),
            *(f"#define {name} ({value}LL)" for name, value in integers.items()),
            "#define INFINITE FROM_BITS(0x7ff0000000000000LL)",
            "#define NOT_A_NUMBER FROM_BITS(0x7ff8000000000000LL)",
            _write_table("POWERS", c.powers()),
            _write_table("ERF", by_centre),
        ]
    )


def _write_table(name: str, values: Sequence[float]) -> str:
    listed = ", ".join(value.hex() for value in values)
    return f"TABLE double {name}[{len(values)}] = {{{listed}}};"
