"""Tensors rounded to their grids, with the step of the grid, to compare with references."""

from seedless.portable.exact.rounding_grid import find_exponents, power_of_two, round_to_grid


def round_with_step(x, dims, bits):
    """Return integers q in float64 and the step of their grid, so that x is about q step."""
    exponent = find_exponents(x, dims)
    return round_to_grid(x, exponent, bits), power_of_two(exponent - bits)
