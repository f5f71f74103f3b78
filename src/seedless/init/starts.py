"""Starts, the named ways to fill weights: the rule, the key of its numbers, and the defaults.

Basis, residual scale and head are separate settings: every start takes all of them. Where a caller
names none, a start has the values of the published recipe it belongs to: structured starts scale
residual exits by 0.01 and use the heads that the model declares; random ones do neither.
"""

from dataclasses import dataclass

STRUCTURED_SCALE = 0.01
# The start of `initialize` and `fit` where none is named: docs/results/default-start.md says why.
DEFAULT_START = "canonical_kaiming"


@dataclass(frozen=True)
class Start:
    """How a start fills the weights of a model.

    Attributes:
        rule: "filters" for the rows of a basis in their order, "scrambled" for the same rows
            permuted and signed, "orthogonal" for a random orthogonal matrix, "uniform" or "normal".
        keyed_by: what keys its numbers besides a parameter's name: "seed", which a user chooses;
            "offset", together with the parameter's shape, which is 0 unless replicates are wanted;
            or "", where there is nothing to draw.
        structured: whether its default recipe is that of the structured starts.
    """

    rule: str = "filters"
    keyed_by: str = ""
    structured: bool = True

    @property
    def residual_scale(self) -> float:
        """The factor on residual exits where none is set."""
        return STRUCTURED_SCALE if self.structured else 1.0


INITIALIZATIONS: dict[str, Start] = {
    "dct": Start(),
    "hadamard": Start(),
    "hartley": Start(),
    "sinusoidal": Start(),
    "walsh": Start(),
    "mixed": Start(),
    "scrambled": Start("scrambled", "offset"),
    "kaiming": Start("uniform", "seed", structured=False),
    "kaiming_normal": Start("normal", "seed", structured=False),
    "orthogonal": Start("orthogonal", "seed", structured=False),
    "canonical_kaiming": Start("uniform", "offset", structured=False),
    "canonical_orthogonal": Start("orthogonal", "offset", structured=False),
}


def list_starts(keyed_by: str) -> list[str]:
    """Return the names of the starts whose numbers are keyed by "seed", by "offset" or by ""."""
    return [name for name, start in INITIALIZATIONS.items() if start.keyed_by == keyed_by]


def write_out_defaults(
    basis: str, residual_scale: float | None, heads: str | None, declared: str
) -> tuple[float | None, str | None]:
    """Return residual scale and head with the defaults of a start written out.

    Left out they mean one thing with one start and another with the next. ``declared``: what the
    model's heads declare. Weights that a user gave ("given") have neither, and stay as they are.
    """
    if basis not in INITIALIZATIONS:
        return residual_scale, heads
    start = INITIALIZATIONS[basis]
    scale = start.residual_scale if residual_scale is None else residual_scale
    return scale, heads or (declared if start.structured else "basis")
