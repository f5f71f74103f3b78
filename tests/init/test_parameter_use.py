"""What a module computes with a parameter, read from its code."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from seedless.init.parameter_use import find_uses
from seedless.init.value_flow import Use


def stretch(table, index):
    return table[index]


class Reader(nn.Module):
    """Every way of using a parameter, one attribute each."""

    def forward(self, x, index, mask):
        y = self.bias_by_add + x
        y += self.added_later
        y[0].add_(self.added_in_place)
        held = [x]
        held.append(self.in_a_list.expand(3, -1))
        y = torch.cat(held + [y], dim=1)  # noqa: RUF005 - as libraries write it
        y[mask] = self.written
        y = torch.where(mask, self.chosen, y)
        y = y * self.gain
        y = F.linear(y, self.dense, self.dense_bias)
        y = F.conv2d(y, self.kernel)
        y = y @ self.right
        y = torch.matmul(y, self.flipped.t())
        y = torch.einsum("bi,ijk->bjk", y, self.summed) + torch.einsum(self.text, y, self.unknown)
        y = F.embedding(index, self.rows) + y
        y = y + stretch(self.looked_up, index)
        y = y + torch.exp(self.changed)
        y = torch.addcmul(self.base, self.factor, y)
        y = self.child(y, self.handed_over)
        if self.compared is None or self.measured.shape[0] > 2:
            return y
        first, second = self.one_of_two, y
        return second + first.reshape(-1) + self.helper(index)

    def helper(self, index):
        return getattr(self, "by_name")[:, 0].unsqueeze(0)  # noqa: B009


@pytest.mark.parametrize(
    ("name", "uses"),
    [
        ("bias_by_add", {Use("added")}),
        ("added_later", {Use("added")}),
        ("added_in_place", {Use("added")}),
        ("in_a_list", {Use("joined")}),
        ("written", {Use("substituted")}),
        ("chosen", {Use("substituted")}),
        ("gain", {Use("multiplied")}),
        ("dense", {Use("weight")}),
        ("dense_bias", {Use("bias")}),
        ("kernel", {Use("kernel")}),
        ("right", {Use("weight", transposed=True)}),
        ("flipped", {Use("weight")}),
        ("summed", {Use("einsum", axes="IOO")}),
        ("unknown", {Use("einsum")}),
        ("rows", {Use("table")}),
        ("looked_up", {Use("added", indexed=True)}),
        ("changed", set()),
        ("base", {Use("added")}),
        ("factor", {Use("multiplied")}),
        ("handed_over", {Use("passed")}),
        ("compared", set()),
        ("measured", set()),
        ("one_of_two", {Use("added")}),
        ("by_name", {Use("added")}),
        ("not_there", set()),
    ],
)
def test_uses(name, uses):
    assert find_uses(Reader, name) == uses


def test_a_class_without_source_has_no_uses():
    space = {"Module": nn.Module}
    exec("class Own(Module):\n def forward(self, x): return x + self.a", space)
    assert find_uses(space["Own"], "a") == set()
