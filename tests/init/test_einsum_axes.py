"""Which axes of an einsum's operand are inputs, outputs, or numbers of layers."""

import pytest

from seedless.init.einsum_axes import DenseLayout, classify_axes, find_layout


@pytest.mark.parametrize(
    ("equation", "operand", "axes"),
    [
        ("bi,ij->bj", 1, "IO"),
        ("oi,bi->bo", 0, "OI"),
        ("ibh, hnd -> ibnd", 1, "IOO"),
        ("ebi,eij->ebj", 1, "EIO"),
        ("bi,bj,ijk->bk", 2, "IIO"),
        ("bi,ii->bi", 1, ""),  # a diagonal
        ("bi,ijk->bj", 1, ""),  # k is summed alone
        ("...i,ij->...j", 1, ""),
        ("bi,ij", 1, ""),
        ("ij->ji", 0, ""),
        ("bi,ij->bj", 2, ""),
        ("", 0, ""),
    ],
)
def test_axes_are_classified(equation, operand, axes):
    assert classify_axes(equation, operand) == axes


@pytest.mark.parametrize(
    ("axes", "shape", "layout"),
    [
        ("IO", (3, 4), DenseLayout(1, 4, 3, True)),
        ("OOI", (2, 3, 4), DenseLayout(1, 6, 4, False)),
        ("EIO", (2, 3, 4), DenseLayout(2, 4, 3, True)),
        ("IOI", (2, 3, 4), None),
        ("IE", (2, 3), None),
        ("IEO", (2, 3, 4), None),
        ("IO", (2, 3, 4), None),
        ("", (2, 3), None),
    ],
)
def test_layouts_of_dense_layers(axes, shape, layout):
    assert find_layout(axes, shape) == layout
