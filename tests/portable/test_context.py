"""The context: what is entered is seen by every thread and restored, after an exception too."""

import threading
from contextlib import contextmanager

import pytest
import torch

from seedless.core.errors import NumericsError
from seedless.portable.context import Context

CPU = torch.device("cpu")


class Evaluator:
    def __init__(self, redirects=True, is_tracing=False):
        self.redirects, self.is_tracing = redirects, is_tracing


def read(context):
    """Return the state as another thread sees it: torch computes some gradients in one."""
    seen = []

    def look():
        seen.append(
            (
                context.redirects_sums,
                context.splits_tensors,
                context.allows_kernels(CPU),
                context.result_observers,
            )
        )

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return seen[0]


def observe(*_):
    pass


SWITCHES = {
    "sums": (lambda c: c.evaluate_sums_with(Evaluator()), (True, True, True, ())),
    "ops": (lambda c: c.evaluate_sums_with(Evaluator(False)), (False, True, True, ())),
    "trace": (lambda c: c.evaluate_sums_with(Evaluator(True, True)), (True, False, True, ())),
    "kernels": (lambda c: c.without_kernels(), (False, True, False, ())),
    "results": (lambda c: c.observe_results_with(observe), (False, True, True, (observe,))),
}
OFF = (False, True, True, ())


@pytest.fixture
def context(monkeypatch):
    monkeypatch.delenv("SEEDLESS_FUSED", raising=False)
    monkeypatch.delenv("SEEDLESS_ENGINE", raising=False)
    return Context()


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_is_seen_by_other_threads_and_restored(context, name):
    enter, on = SWITCHES[name]
    assert read(context) == OFF
    with enter(context):
        assert read(context) == on
    assert read(context) == OFF


@pytest.mark.parametrize("name", SWITCHES)
def test_an_exception_restores_a_switch(context, name):
    with pytest.raises(KeyError), SWITCHES[name][0](context):
        raise KeyError
    assert read(context) == OFF


@pytest.mark.parametrize("name", ["kernels", "results"])
def test_switches_nest(context, name):
    enter, on = SWITCHES[name]
    with enter(context):
        with enter(context):
            pass
        assert read(context) == on
    assert read(context) == OFF


def test_a_second_evaluator_of_sums_is_refused_and_the_first_stays(context):
    first = Evaluator()
    with context.evaluate_sums_with(first):
        with (
            pytest.raises(NumericsError, match="one batch in parts at a time"),
            context.evaluate_sums_with(Evaluator()),
        ):
            pass
        assert context.sum_evaluator is first


@pytest.mark.parametrize(("is_tracing", "redirects"), [(True, True), (False, False)])
def test_sums_within_samples_are_hidden_except_from_a_trace(context, is_tracing, redirects):
    with context.evaluate_sums_with(Evaluator(True, is_tracing)):
        with context.within_samples():
            assert context.redirects_sums is redirects
        assert context.redirects_sums


def test_no_stop_of_the_kernels_is_lost_between_threads(context):
    def toggle():
        for _ in range(2000):
            with context.without_kernels():
                assert not context.allows_kernels(CPU)

    threads = [threading.Thread(target=toggle) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert context.allows_kernels(CPU)


def test_settings_of_the_process_last_from_the_first_block_to_the_last(context):
    events = []

    @contextmanager
    def settings():
        events.append("entered")
        yield
        events.append("left")

    first, second = (context.share_settings(settings) for _ in range(2))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert events == ["entered"]
    second.__exit__(None, None, None)
    assert events == ["entered", "left"]


def test_onednn_is_on_until_the_last_user_leaves_and_then_as_before(context):
    def is_on():
        return bool(torch.backends.mkldnn.enabled)

    before = is_on()
    torch._C._set_mkldnn_enabled(False)
    try:
        first, second = context.allow_onednn(), context.allow_onednn()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert is_on()
        second.__exit__(None, None, None)
        assert not is_on()
        with pytest.raises(KeyError), context.allow_onednn():
            raise KeyError
        assert not is_on()
    finally:
        torch._C._set_mkldnn_enabled(before)


def test_an_exception_restores_the_engine(context):
    with context.multiply_with("int8"):
        assert context.engine == "int8"
    with pytest.raises(KeyError), context.multiply_with("int8"):
        raise KeyError
    assert context.engine == "auto"


def test_the_environment_variable_stops_kernels(monkeypatch):
    monkeypatch.setenv("SEEDLESS_FUSED", "0")
    assert not Context().allows_kernels(CPU)
