"""What other programs used of the processor is what the system counts, less our own."""

import os

from seedless.bench import other_load
from seedless.bench.other_load import OtherLoad


def write(path, busy, idle):
    """Write the line of all processors: user, nice, system, idle, waiting, interrupts, guests."""
    path.write_text(f"cpu {busy} 0 0 {idle} 7 0 0 0 99 99\ncpu0 1 1 1 1\n")


def test_cores_of_others_are_counted(tmp_path, monkeypatch):
    ticks, own, clock = os.sysconf("SC_CLK_TCK"), [1.0], [10.0]
    monkeypatch.setattr(other_load, "STATISTICS", tmp_path / "stat")
    monkeypatch.setattr(other_load.time, "perf_counter", lambda: clock[0])
    times = os.times()
    monkeypatch.setattr(
        other_load.os, "times", lambda: type(times)((own[0], 0.0, 0.0, 0.0, clock[0]))
    )
    write(tmp_path / "stat", busy=100 * ticks, idle=5 * ticks)
    load = OtherLoad()
    write(tmp_path / "stat", busy=106 * ticks, idle=9 * ticks)
    clock[0], own[0] = 14.0, 3.0  # in 4 s: 6 s of all processors, 2 s of them our own
    assert load.measure() == 1.0


def test_where_the_system_does_not_say_nothing_is_claimed(tmp_path, monkeypatch):
    monkeypatch.setattr(other_load, "STATISTICS", tmp_path / "nowhere")
    assert OtherLoad().measure() is None
