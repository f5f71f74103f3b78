"""A group that has ended leaves nothing behind: no thread of torch's, no step of an ended block."""

import os
import sys

import pytest
import torch

import seedless
from seedless.core.errors import NumericsError

# Torch ends the threads of a group with its last reference. A thread that still runs when Python
# ends aborts the process: "terminate called without an active exception".
SCRIPT = """
import os
import torch, torch.distributed as dist
import seedless

def list_threads():
    names = [open(f"/proc/self/task/{each}/comm").read() for each in os.listdir("/proc/self/task")]
    return [name.strip() for name in names if "gloo" in name]

dist.init_process_group("gloo", init_method="file://" + os.environ["MEETING"], rank=0, world_size=1)
net, x, y = torch.nn.Linear(4, 2), torch.arange(16.0).view(4, 4).sin(), torch.tensor([0, 1, 0, 1])
with seedless.portable(group=dist.group.WORLD) as p:
    p.step(lambda x, y: net(x), lambda out, x, y: torch.nn.functional.cross_entropy(out, y), x, y)
print(len(list_threads()) > 0)
keep = dist.group.WORLD if os.environ["KEEP"] == "1" else None
dist.destroy_process_group()
print(list_threads())
os._exit(0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the names of threads from /proc")
@pytest.mark.parametrize("keep", [False, True], ids=["released", "kept by the script"])
def test_a_group_ends_with_its_threads(run_python, tmp_path, keep):
    done = run_python("-c", SCRIPT, MEETING=tmp_path / "meeting", KEEP=int(keep))
    before, after = done.stdout.splitlines()
    assert before == "True"
    assert (after == "[]") is not keep  # the second case shows that threads would be seen


@pytest.mark.parametrize("grouped", [False, True])
def test_a_step_after_the_end_of_its_block_is_refused(tmp_path, grouped):
    net, x = torch.nn.Linear(4, 2), torch.ones(4, 4)
    group = None
    if grouped:
        place = f"file://{tmp_path / 'meeting'}{os.getpid()}"
        torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
        group = torch.distributed.group.WORLD
    try:
        with seedless.portable(group=group) as p:
            p.step(net, lambda out, x: out.mean(), x)
            messages = p.count_messages()
        with pytest.raises(NumericsError, match=r"expected p\.step inside of .* after the end"):
            p.step(net, lambda out, x: out.mean(), x)
        assert p.count_messages() == messages
        assert (messages > 0) is grouped
    finally:
        if grouped:
            torch.distributed.destroy_process_group()
