"""The engine of a device is the faster one; whichever it is, the bits are the same."""

import json
import threading
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from seedless.core.errors import NumericsError, UnknownNameError
from seedless.portable import engine_check, engine_choice
from seedless.portable.check.compute import read_committed, train_and_hash
from seedless.portable.check.networks import INPUT_SHAPE, NETWORKS
from seedless.portable.context import CONTEXT, Context, EngineChoice
from seedless.portable.exact import engines
from seedless.portable.exact.engines import int8
from seedless.portable.mode import portable
from tests.portable.group_cases import CASES, SHARES, train
from tests.portable.reference_cases import some
from tests.portable.test_context import Evaluator
from tests.portable.test_engine_check import saturate_at
from tests.portable.test_engines import Counter

CPU, GPU = torch.device("cpu"), torch.device("cuda:0")  # the GPU's products are never computed
FAST_INT8, FAST_FLOAT64 = {"float64": 3.0, "int8": 1.0}, {"float64": 1.0, "int8": 3.0}
TIE = {"float64": 1.2, "int8": 1.0}
SHIPPED = read_committed()["models"]["gru"]


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch):
    """Let each test begin as a process does, and leave no choice behind."""
    monkeypatch.setattr(CONTEXT, "engine", "auto")
    monkeypatch.setattr(CONTEXT, "engine_choices", {})
    engine_check.check_int8_once.cache_clear()
    yield
    engine_check.check_int8_once.cache_clear()


@pytest.fixture
def inject(monkeypatch):
    """Let engines take these seconds; returns the devices that were timed."""

    def start(seconds):
        timed = []
        monkeypatch.setattr(
            engine_choice, "time_engines", lambda device: (timed.append(device), seconds)[1]
        )
        return timed

    return start


def train_one_step():
    """Return the digests of one step, and the types of the matrix products."""
    with portable():  # chooses, after float64 products of `ieee_check`
        pass
    with Counter() as counter:
        fit = train_and_hash("gru", NETWORKS["gru"](), INPUT_SHAPE, steps=1)
    return fit, set(counter.counts)


@pytest.mark.parametrize(
    ("seconds", "engine", "dtype"),
    [
        (FAST_INT8, "int8", torch.int8),
        (FAST_FLOAT64, "float64", torch.float64),
        (TIE, "float64", torch.float64),
    ],
)
def test_the_faster_engine_is_chosen_and_the_digests_stay(inject, seconds, engine, dtype):
    inject(seconds)
    fit, types = train_one_step()
    assert CONTEXT.name_engine(CPU) == engine
    assert types == {dtype}
    assert fit.digests == (SHIPPED["digests"][0],)
    assert fit.traces == (SHIPPED["traces"][0],)
    reason = CONTEXT.engine_choices[CPU].reason
    expected = f"float64 {1e3 * seconds['float64']:.2f} ms, int8 {1e3 * seconds['int8']:.2f} ms"
    assert reason == f"chosen by timing: {expected}"


def test_negative_control_a_wrong_engine_changes_the_digests(inject, monkeypatch):
    def lose_a_bit(left, right, exponents):
        high, low = int8.multiply(left, right, exponents)
        return (high / 2**10).round() * 2**10, low

    inject(FAST_INT8)
    monkeypatch.setattr(engine_choice, "check_engine", lambda device: None)
    monkeypatch.setitem(engines._SETTINGS, "int8", lose_a_bit)
    assert train_one_step()[0].digests != (SHIPPED["digests"][0],)


def test_a_fast_engine_that_is_wrong_is_not_chosen(inject, monkeypatch):
    inject(FAST_INT8)
    monkeypatch.setattr(torch, "_int_mm", saturate_at(1 << 15))
    fit, types = train_one_step()
    assert types == {torch.float64}
    assert fit.digests == (SHIPPED["digests"][0],)
    assert "not exact" in CONTEXT.engine_choices[CPU].reason


def test_a_device_that_cannot_compute_int8_products_has_float64(monkeypatch):
    def lack(*_):
        raise NotImplementedError("no kernel for int8\nand a trace")

    monkeypatch.setattr(torch, "_int_mm", lack)
    chosen = engine_choice.choose_engine(CPU)
    assert chosen == EngineChoice("float64", "int8 products do not run there: no kernel for int8")


def test_a_cpu_without_onednn_is_not_timed(inject):
    timed, before = inject(FAST_INT8), bool(torch.backends.mkldnn.enabled)
    torch._C._set_mkldnn_enabled(False)
    try:
        assert engine_choice.choose_engine(CPU).engine == "float64"
    finally:
        torch._C._set_mkldnn_enabled(before)
    assert timed == []
    assert engine_choice.choose_engine(torch.device("xpu:0")).engine == "float64"
    assert timed == []


@pytest.mark.parametrize("engine", ["float64", "int8"])
def test_an_explicit_setting_wins_and_nothing_is_timed(inject, monkeypatch, engine):
    timed = inject(FAST_INT8 if engine == "float64" else FAST_FLOAT64)
    monkeypatch.setenv("SEEDLESS_ENGINE", engine)
    monkeypatch.setattr(CONTEXT, "engine", Context().engine)
    fit, types = train_one_step()
    assert types == {getattr(torch, engine)}
    assert fit.digests == (SHIPPED["digests"][0],)
    assert engine_choice.explain_engine(CPU) == (engine, "set by SEEDLESS_ENGINE")
    assert timed == []


@pytest.mark.parametrize("name", ["", "auto"])
def test_auto_and_nothing_mean_the_same(monkeypatch, name):
    monkeypatch.setenv("SEEDLESS_ENGINE", name)
    assert Context().engine == "auto"


def test_a_wrong_value_is_refused_with_the_known_ones(inject, monkeypatch):
    timed = inject(FAST_INT8)
    monkeypatch.setattr(CONTEXT, "engine", "Auto")
    with pytest.raises(UnknownNameError, match=r"did you mean 'auto'.*auto, float64, int8"):
        engine_choice.prepare_engine(CPU)
    assert timed == []


def test_a_device_is_timed_once_in_a_process(inject):
    timed = inject(FAST_INT8)
    for _ in range(3):
        with portable():
            some(3, 4) @ some(4, 2)
    assert timed == [CPU]


def test_timing_measures_both_engines_here(monkeypatch):
    monkeypatch.setattr(engine_choice, "MAX_SECONDS", {"cpu": 600.0})
    seconds = engine_choice.time_engines(CPU)
    assert set(seconds) == {"float64", "int8"}
    assert all(value > 0 for value in seconds.values())


def test_timing_takes_the_shortest_round_and_stops_when_one_engine_is_far_behind(monkeypatch):
    """Rounds of 5, 2 and 9 seconds for float64, and so many times as much for int8."""
    for loss, total in ((3.0, 2.0 * len(engine_choice.SHAPES["cpu"])), (9.0, 5.0)):
        rounds = []

        def measure(engine, left, right, loss=loss, rounds=rounds):
            if left.shape[1] == engine_choice.WARM_UP[1]:
                return 100.0
            rounds.append(engine)
            return (5.0, 2.0, 9.0)[(len(rounds) - 1) // 2 % 3] * (loss if engine == "int8" else 1)

        monkeypatch.setattr(engine_choice, "_time_product", measure)
        monkeypatch.setattr(engine_choice, "MAX_SECONDS", {"cpu": 600.0})
        assert engine_choice.time_engines(CPU) == {
            "float64": total,
            "int8": total * loss,
        }


def test_a_busy_machine_is_timed_for_a_short_while_and_has_float64(monkeypatch):
    calls = []
    monkeypatch.setattr(
        engine_choice,
        "_time_product",
        lambda engine, *_: calls.append(engine) or FAST_INT8[engine],
    )
    monkeypatch.setattr(engine_choice, "MAX_SECONDS", {"cpu": 0.0})
    chosen = engine_choice.choose_engine(CPU)
    assert (chosen.engine, "too busy" in chosen.reason) == ("float64", True)
    assert calls == ["float64", "int8"] * 2  # to warm up, and one round


def test_timing_shows_neither_in_random_numbers_nor_in_modes():
    before = torch.get_rng_state()
    with Counter() as counter, portable():
        pass
    assert CPU in CONTEXT.engine_choices
    assert counter.counts.keys() <= {torch.float64}  # those of `ieee_check`, before
    assert torch.equal(before, torch.get_rng_state())


def test_another_thread_does_not_see_an_engine_that_is_timed():
    seen = []
    with CONTEXT.time_engine("int8"):
        assert CONTEXT.name_engine(CPU) == "int8"
        other = threading.Thread(target=lambda: seen.append(CONTEXT.name_engine(CPU)))
        other.start()
        other.join()
    assert seen == ["float64"]
    with pytest.raises(KeyError), CONTEXT.time_engine("int8"):
        raise KeyError
    assert CONTEXT.name_engine(CPU) == "float64"


def test_nothing_is_timed_while_a_graph_is_captured(inject, monkeypatch):
    """The graph gets float64 products, and the first use outside chooses."""
    timed, capturing = inject(FAST_INT8), [True]
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[0])
    monkeypatch.setattr(engine_choice, "check_int8_once", lambda device: None)
    monkeypatch.setattr(engine_choice, "check_engine", lambda device: None)
    engine_choice.prepare_engine(GPU)
    assert (timed, CONTEXT.name_engine(GPU)) == ([], "float64")
    capturing[0] = False
    engine_choice.prepare_engine(GPU)
    assert (timed, CONTEXT.name_engine(GPU)) == ([GPU], "int8")
    assert CONTEXT.name_engine(CPU) == "float64"  # each device has a choice of its own


def test_a_gpu_with_wrong_int8_products_has_float64(inject, monkeypatch):
    def refuse(device):
        raise NumericsError("wrong")

    inject(FAST_INT8)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(engine_choice, "check_int8_once", refuse)
    engine_choice.prepare_engine(GPU)
    assert CONTEXT.name_engine(GPU) == "float64"


def test_nothing_is_timed_while_sums_are_followed_or_on_meta(inject):
    timed = inject(FAST_INT8)
    with CONTEXT.evaluate_sums_with(Evaluator()):
        engine_choice.prepare_engine(CPU)
    engine_choice.prepare_engine(torch.device("meta"))
    assert (timed, CONTEXT.engine_choices) == ([], {})


FORK = """
import os
from seedless.portable import engine_choice
from seedless.portable.context import CONTEXT
from seedless.portable.mode import portable
times = []
engine_choice.time_engines = lambda device: times.append(1) or {"float64": 9.0, "int8": 1.0}
with portable():
    pass
child = os.fork()
if not child:
    with portable():
        pass
    (choice,) = CONTEXT.engine_choices.values()
    os._exit(0 if (len(times), choice.engine) == (1, "int8") else 1)
print(os.waitpid(child, 0)[1], len(times))
"""


def test_a_forked_process_keeps_the_choice(run_python):
    assert run_python("-c", FORK).stdout.split() == ["0", "1"]


def choose_as_rank(rank, folder):
    """Be one of two processes, of which the second chooses the int8 engine."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    CONTEXT.engine = "auto"
    engine_choice.time_engines = lambda device: FAST_INT8 if rank else FAST_FLOAT64
    found = train(CASES["gru"], dist.group.WORLD, SHARES["2"], rank)[0]
    Path(folder, f"rank{rank}.json").write_text(json.dumps([CONTEXT.name_engine(CPU), found]))
    dist.barrier()
    dist.destroy_process_group()


def test_processes_of_a_group_may_choose_differently(tmp_path, inject):
    mp.spawn(choose_as_rank, (str(tmp_path),), nprocs=2)
    found = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in (0, 1)]
    inject(FAST_FLOAT64)
    alone = train(CASES["gru"])[0]
    assert found == [["float64", alone], ["int8", alone]]
