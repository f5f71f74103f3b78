"""Several values written to one place: the last stays, whatever the threads do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from seedless.portable.mode import portable

N = 200_000  # enough for two threads to have a share each


def _slow(x: Tensor, places: Tensor, values: Tensor) -> Tensor:
    out = x.tolist()
    for place, value in zip(places.tolist(), values.tolist(), strict=True):
        out[place] = value
    return torch.tensor(out)


def _assign(x: Tensor, places: Tensor, values: Tensor) -> Tensor:
    x = x.clone()
    x[places] = values
    return x


WRITES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "index_put": _assign,
    "index_copy": lambda x, places, values: x.index_copy(0, places, values),
    "scatter": lambda x, places, values: x.scatter(0, places, values),
    "put": lambda x, places, values: x.put(places, values),
}


@pytest.fixture
def written() -> tuple[Tensor, Tensor, Tensor]:
    numbers = torch.arange(N)
    return torch.full((700,), -1.0), numbers * 7919 % 611, numbers.to(torch.float32)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", WRITES)
def test_the_last_value_stays(
    name: str, threads: int, written: tuple[Tensor, Tensor, Tensor]
) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with portable():
            out = WRITES[name](*written)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(out, _slow(*written))


def test_gradients_of_rows_taken_behind_a_whole_axis_are_added() -> None:
    x, places = torch.zeros(3, 4, 2, requires_grad=True), torch.tensor([1, 3, 1])
    with portable():
        x[:, places].sum().backward()
        counts = torch.zeros(3, 4, dtype=torch.int64).index_put(
            (torch.tensor([0]), places), torch.tensor(1), accumulate=True
        )
    assert x.grad is not None
    assert torch.equal(x.grad, torch.tensor([0.0, 2.0, 0.0, 1.0]).view(1, 4, 1).expand(3, 4, 2))
    assert counts.tolist() == [[0, 2, 0, 1], [0] * 4, [0] * 4]


@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 3, 2)])
def test_gradients_of_rows_taken_by_an_index_of_two_axes_are_added(shape: tuple[int, ...]) -> None:
    x, places = torch.zeros(shape, requires_grad=True), torch.tensor([[1, 3], [4, 1], [1, 0]])
    with portable():
        x[places].sum().backward()
    counts = torch.tensor([1.0, 3.0, 0.0, 1.0, 1.0])
    assert x.grad is not None
    assert torch.equal(x.grad, counts.view(5, *[1] * (len(shape) - 1)).expand(shape))


def test_writes_without_a_clash_are_torch_s() -> None:
    x = torch.zeros(4, 5, 6)
    values = torch.arange(2.0 * 3 * 6).view(2, 3, 6)
    rows, columns = torch.tensor([3, 0]), torch.tensor([[4], [1]]).expand(2, 3) - torch.arange(3)
    index = torch.tensor([[2, 0, 1], [0, 1, 3]])
    mask = torch.arange(4) % 2 == 0

    def run() -> list[Tensor]:
        one, two = x.clone(), x.clone()
        one[rows[:, None], columns] = values
        two[:, mask.nonzero()[:, 0]] = values[:1, :2] + 1.0
        two[mask] = 3.0
        two[:, mask[:1].expand(5)] = 4.0
        three = x[0].scatter(1, index, values[0, :2, :3])
        four = x.index_copy(-1, torch.tensor([5, 2]), torch.ones(4, 5, 2))
        five = x.put(torch.tensor([-1, 3]), torch.tensor([1.0, 2.0]))
        six = x.clone()
        six[torch.tensor([], dtype=torch.int64)] = torch.ones(0, 5, 6)
        return [one, two, three, four, five, six]

    with portable():
        ours = run()
    for one, two in zip(ours, run(), strict=True):
        assert torch.equal(one, two)
