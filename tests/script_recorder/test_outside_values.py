"""What no seed fixes is recorded with its line, and can be fixed in an experiment."""

import pytest

SCRIPT = """
import logging, os, pickle, secrets, time, uuid
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.pool import ThreadPool
import torch

logging.warning("this reads a clock for itself")
parameter = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([parameter], lr=0.1)
def work(number):
    time.sleep(0.2 if number == 0 else 0.0)
    return number
values = [time.time(), time.perf_counter_ns()]
values += [secrets.randbelow(10**9), uuid.uuid4().hex, os.urandom(70)]
with ThreadPoolExecutor(2) as pool:
    values += [each.result() for each in as_completed([pool.submit(work, n) for n in range(2)])]
with ThreadPool(2) as pool:
    values += list(pool.imap_unordered(work, range(2)))
pickle.loads(pickle.dumps([time.time, os.urandom]))
parameter.sum().backward()
optimizer.step()
print(values)
"""
FIXED = ("clock", "entropy", "completion")


@pytest.fixture(scope="module")
def runs(scripts):
    """The script as it is, and twice with every source fixed."""
    return [scripts.run(SCRIPT, fixed=fixed) for fixed in ((), FIXED, FIXED)]


def test_reads_are_recorded_with_their_lines_and_those_of_packages_are_not(runs):
    found = [
        (line["source"], line["call"], line["line"].rpartition(":")[2])
        for line in runs[0].of_kind("outside")
    ]
    assert found == [
        ("clock", "time.time", "13"),
        ("clock", "time.perf_counter_ns", "13"),
        ("entropy", "os.urandom", "14"),
        ("completion", "as_completed", "16"),
        ("completion", "Pool.imap_unordered", "18"),
    ]


def test_fixed_sources_give_the_same_values_in_each_run(runs):
    _, one, two = (run.stdout for run in runs)
    assert one == two
    assert one.endswith("0, 1, 0, 1]\n")  # in the order of the tasks


def test_without_it_they_are_the_systems_own(runs):
    plain, one, _ = (run.stdout for run in runs)
    assert plain.endswith("1, 0, 1, 0]\n")  # the first task ends last
    assert plain.split(", ")[0] != one.split(", ")[0]
