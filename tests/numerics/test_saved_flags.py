"""What a run sets is put back, also with runs in threads; no mode of the caller holds in it."""

import threading
from types import SimpleNamespace

import pytest
import torch

from seedless.numerics.determinism import make_deterministic
from seedless.numerics.kernel_choice import NATIVE, read_switches, set_switches
from seedless.numerics.saved_flags import preserve_flags, run_by_itself


def test_the_last_of_two_threads_puts_the_flags_back():
    """A run that ends while another goes on leaves it its flags."""
    begun, ended = threading.Event(), threading.Event()
    within = []

    def run_longer():
        with preserve_flags():
            make_deterministic(threads=1)
            begun.set()
            ended.wait(60)
            within.append((torch.are_deterministic_algorithms_enabled(), read_switches()["onednn"]))

    with preserve_flags():
        torch.set_deterministic_debug_mode("default")
        set_switches({"onednn": False})
        thread = threading.Thread(target=run_longer)
        with preserve_flags():
            make_deterministic(threads=1)
            thread.start()
            assert begun.wait(60)
        ended.set()
        thread.join()
        assert within == [(True, True)]
        assert not torch.are_deterministic_algorithms_enabled()
        assert not read_switches()["onednn"]


def test_the_first_of_two_threads_goes_on_with_its_flags():
    with preserve_flags():
        torch.set_deterministic_debug_mode("default")
        with preserve_flags():
            make_deterministic(threads=1)
            thread = threading.Thread(target=preserve_flags()(make_deterministic))
            thread.start()
            thread.join()
            assert torch.are_deterministic_algorithms_enabled()
        assert not torch.are_deterministic_algorithms_enabled()


def test_every_switch_is_set_and_put_back():
    before = read_switches()
    assert {*before} == {*NATIVE}
    for name in NATIVE:
        if name == "opt_einsum":
            continue  # torch refuses to switch it on where it is not installed
        with preserve_flags():
            set_switches({name: False})
            assert read_switches() == {**before, name: False}
            with preserve_flags():
                make_deterministic(threads=1)
                assert read_switches() == NATIVE
            assert read_switches() == {**before, name: False}
    assert read_switches() == before


def test_the_order_of_a_contraction_does_not_depend_on_an_optional_package(monkeypatch):
    paths = []

    def contract_path(*args, **kwargs):
        paths.append(args[0])
        return [(1, 2), (0, 1)], None

    module = torch.backends.opt_einsum.m
    monkeypatch.setattr(module, "_opt_einsum", SimpleNamespace(contract_path=contract_path))
    monkeypatch.setattr(module, "is_available", lambda: True)
    monkeypatch.setattr(module, "enabled", True)
    monkeypatch.setattr(module, "strategy", "auto")
    operands = [torch.ones(2, 2)] * 3
    torch.einsum("ij,jk,kl->il", *operands)
    assert len(paths) == 1  # [Negative control] torch asks the package
    with preserve_flags():
        make_deterministic(threads=1)
        torch.einsum("ij,jk,kl->il", *operands)
    assert len(paths) == 1
    assert module.enabled
    import seedless

    with seedless.portable():
        torch.einsum("ij,jk,kl->il", *operands)
    assert len(paths) == 1


def test_flags_that_torch_refuses_to_read_are_no_error():
    """The older and the newer interface for precisions, mixed by someone."""
    with preserve_flags():
        torch.backends.mkldnn.matmul.fp32_precision = "bf16"
        with pytest.raises(RuntimeError):
            torch.get_float32_matmul_precision()
        with preserve_flags():
            make_deterministic(threads=1)
            assert torch.backends.mkldnn.matmul.fp32_precision == "ieee"
        assert torch.backends.mkldnn.matmul.fp32_precision == "bf16"


def look():
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_default_dtype(),
    )


def test_no_mode_of_the_caller_holds():
    outside = look()
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        torch.set_default_dtype(torch.float64)
        try:
            within = look()
            assert within == (False, True, True, torch.float64)
            with run_by_itself():
                assert look() == (True, False, False, torch.float32)
            assert look() == within
        finally:
            torch.set_default_dtype(torch.float32)
    assert look() == outside
