"""Which keys a dropout layer finds: under activation checkpointing, and in other threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import seedless
from seedless.core.errors import NumericsError
from seedless.numerics import active_keys

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]  # whose backward has its own thread
KEYS = [torch.tensor([5, -7, 2**62 + 11, 0]), torch.tensor([1, 2, 3, 4])]


class Blocks(nn.Module):
    """Two blocks with dropout, each recomputed in the backward pass where ``reentrant`` is set."""

    def __init__(self, reentrant=None, nested=False):
        super().__init__()
        self.reentrant, self.nested = reentrant, nested
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 8), seedless.Dropout(0.5, layer=n), nn.Tanh())
            for n in range(2)
        )
        for n, parameter in enumerate(self.parameters()):
            values = torch.linspace(-1, 1, parameter.numel()).view_as(parameter)
            parameter.data.copy_(values + 0.1 * n)

    def forward(self, x):
        if self.nested:
            return checkpoint(self.run_blocks, x, use_reentrant=self.reentrant)
        return self.run_blocks(x)

    def run_blocks(self, x):
        for block in self.blocks:
            recomputed = self.reentrant is not None
            x = checkpoint(block, x, use_reentrant=self.reentrant) if recomputed else block(x)
        return x


def take_input(n):
    return torch.linspace(-1, 1, 32).view(4, 8).add(n).requires_grad_()


def get_gradients(model):
    return [parameter.grad for parameter in model.parameters()]


def compute_gradients(model, backward_inside, device="cpu"):
    """Two forward passes with keys of their own, then both backward passes."""
    losses = []
    model.to(device)
    for n, keys in enumerate(KEYS):
        with seedless.dropout_keys(samples=keys, epoch=n):
            losses.append(model(take_input(n).to(device)).square().sum())
            if backward_inside == "own":
                losses.pop().backward()
    if backward_inside == "another":
        with seedless.dropout_keys(samples=KEYS[1].flip(0), epoch=7):
            sum(losses).backward()
    elif losses:
        sum(losses).backward()
    return get_gradients(model)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("backward_inside", ["own", "none", "another"])
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_recomputed_layer_has_the_mask_of_its_forward_pass(reentrant, backward_inside, device):
    plain = compute_gradients(Blocks(), backward_inside, device)
    found = compute_gradients(Blocks(reentrant), backward_inside, device)
    assert all(map(torch.equal, plain, found))


@pytest.mark.parametrize("device", DEVICES)
def test_nested_checkpoints_have_it_too(device):
    plain = compute_gradients(Blocks(), "another", device)
    found = compute_gradients(Blocks(False, nested=True), "another", device)
    assert all(map(torch.equal, plain, found))


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("device", DEVICES)
def test_nested_reentrant_checkpoints_are_refused(device):
    with pytest.raises(NumericsError, match="use_reentrant=False"):
        compute_gradients(Blocks(True, nested=True), "none", device)


def test_negative_control_other_keys_give_other_gradients():
    first = compute_gradients(Blocks(False), "none")
    model = Blocks(False)
    for n, keys in enumerate(reversed(KEYS)):
        with seedless.dropout_keys(samples=keys, epoch=n):
            model(take_input(n)).square().sum().backward()
    assert not torch.equal(first[0], get_gradients(model)[0])


def test_the_backward_pass_may_run_in_another_thread():
    plain = compute_gradients(Blocks(), "none")
    model = Blocks(False)
    losses = []
    for n, keys in enumerate(KEYS):
        with seedless.dropout_keys(samples=keys, epoch=n):
            losses.append(model(take_input(n)).square().sum())
    with ThreadPoolExecutor(1) as pool:
        pool.submit(sum(losses).backward).result()
    assert all(map(torch.equal, plain, get_gradients(model)))


def test_a_forward_pass_within_a_backward_pass_has_its_own_keys():
    layer, x = seedless.Dropout(0.5, layer=0), torch.ones(4, 64)
    with seedless.dropout_keys(samples=KEYS[1], epoch=3):
        expected = layer(x)
    found = []

    def hook(gradient):
        with seedless.dropout_keys(samples=KEYS[1], epoch=3):
            found.append(layer(x))
        return gradient

    y = torch.ones(4, 64, requires_grad=True)
    with seedless.dropout_keys(samples=KEYS[0], epoch=0):
        z = layer(y)
        z.register_hook(hook)
        z.sum().backward()
    assert torch.equal(found[0], expected)


def test_what_was_forgotten_is_refused(monkeypatch):
    monkeypatch.setattr(active_keys, "MAX_REMEMBERED", 1)
    model = Blocks(False)
    with seedless.dropout_keys(samples=KEYS[0], epoch=0):
        loss = model(take_input(0)).sum()
    for _ in range(3):
        with seedless.dropout_keys(samples=KEYS[1], epoch=0):
            model(take_input(0)).sum().backward()
    with pytest.raises(NumericsError, match=r"keys of the forward pass .* are not known"):
        loss.backward()


# Threads


def test_another_thread_finds_the_keys_that_are_set():
    layer, x = seedless.Dropout(0.5, layer=0), torch.ones(4, 64)
    with ThreadPoolExecutor(1) as pool, seedless.dropout_keys(samples=KEYS[0], epoch=1):
        expected = layer(x)
        assert torch.equal(pool.submit(layer, x).result(), expected)
        with seedless.dropout_keys(samples=KEYS[1], epoch=1):
            inner = layer(x)
            assert torch.equal(pool.submit(layer, x).result(), inner)
        assert torch.equal(pool.submit(layer, x).result(), expected)
    assert not torch.equal(inner, expected)
    with ThreadPoolExecutor(1) as pool, pytest.raises(NumericsError, match="dropout_keys"):
        pool.submit(layer, x).result()


def test_a_thread_with_keys_of_its_own_uses_them_and_a_third_is_refused():
    layer, x = seedless.Dropout(0.5, layer=0), torch.ones(4, 64)
    entered, leave = threading.Event(), threading.Event()
    found = []

    def run():
        with seedless.dropout_keys(samples=KEYS[1], epoch=0):
            found.append(layer(x))
            entered.set()
            leave.wait(30)

    with seedless.dropout_keys(samples=KEYS[0], epoch=0):
        other = threading.Thread(target=run)
        other.start()
        assert entered.wait(30)
        mine = layer(x)
        with ThreadPoolExecutor(1) as pool, pytest.raises(NumericsError, match="2 threads"):
            pool.submit(layer, x).result()
        leave.set()
        other.join()
    assert not torch.equal(mine, found[0])


def test_few_forward_passes_are_remembered(monkeypatch):
    monkeypatch.setattr(active_keys, "MAX_REMEMBERED", 10)
    for _ in range(30):
        with seedless.dropout_keys(samples=KEYS[0], epoch=0):
            torch.ones(1, requires_grad=True).mul(2)
    mine = active_keys._Process.threads[threading.get_ident()]
    assert (len(mine.passes), len(mine.numbers), mine.stack) == (20, 20, [])


def test_threads_that_ended_are_forgotten():
    def run():
        with seedless.dropout_keys(samples=KEYS[0], epoch=0):
            pass

    for _ in range(3):
        threads = [threading.Thread(target=run) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(active_keys._Process.threads) <= 66


def see_mask():
    return seedless.Dropout(0.5, layer=0)(torch.ones(4, 64)) != 0


def see_with(keys, epoch):
    with seedless.dropout_keys(samples=keys, epoch=epoch):
        return see_mask()


def test_the_keys_of_a_delivered_batch_last_until_the_next():
    active_keys.set_batch_keys(KEYS[0], 2, 0)
    assert torch.equal(see_mask(), see_with(KEYS[0], 2))
    with seedless.dropout_keys(samples=KEYS[1], epoch=5):  # a block comes before them
        assert torch.equal(see_mask(), see_with(KEYS[1], 5))
    with ThreadPoolExecutor(1) as pool:
        assert torch.equal(pool.submit(see_mask).result(), see_with(KEYS[0], 2))
    active_keys.set_batch_keys(KEYS[1], 2, 1)
    assert torch.equal(see_mask(), see_with(KEYS[1], 2))
    active_keys.clear_batch_keys()
    with pytest.raises(NumericsError, match=r"seedless\.Sampler"):
        see_mask()


def test_what_is_computed_again_has_the_keys_of_its_delivered_batch():
    plain, model, losses = compute_gradients(Blocks(), "none"), Blocks(False), []
    for n, keys in enumerate(KEYS):
        active_keys.set_batch_keys(keys, n, 0)
        losses.append(model(take_input(n)).square().sum())
    active_keys.clear_batch_keys()
    sum(losses).backward()
    assert all(map(torch.equal, plain, get_gradients(model)))


@pytest.mark.parametrize("step", [-1, 1.5])
def test_a_step_is_a_number(step):
    with (
        pytest.raises(NumericsError, match="expected step to be an integer"),
        seedless.dropout_keys(samples=KEYS[0], epoch=0, step=step),
    ):
        pass
