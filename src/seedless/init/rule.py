"""The rule by which one parameter is filled."""

from dataclasses import dataclass

Shape = tuple[int, ...]


@dataclass(frozen=True)
class ParameterRule:
    """How one parameter is filled.

    Attributes:
        filters: the layer's weight as (O, I, *kernel), whatever the parameter's own layout; None
            for a constant.
        value: the constant.
        transposed_groups: groups of a transposed convolution; 0 for other layers.
        zero_row: the row of an embedding that stays zero (its padding index).
        bias_fan_in: for a bias, the fan-in of its weight, which scales a random bias.
        spread: the standard deviation of the values, where it is not that of a layer's weight.
        norms_of: the weight whose norms are the values (weight normalization).
        kept: why the parameter keeps what it holds: "frozen", "zeros", "constant" or "table"; ""
            where it is filled.
    """

    filters: Shape | None = None
    value: float = 0.0
    transposed_groups: int = 0
    zero_row: int | None = None
    bias_fan_in: int | None = None
    spread: float | None = None
    norms_of: str | None = None
    kept: str = ""
