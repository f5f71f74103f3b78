"""The command of a script's run: what a receipt states of it, and what of it may be executed."""

from pathlib import Path

import pytest

from seedless.audit.script.command_line import describe_command, plan_execution
from seedless.core.errors import ConfigError

SOURCES = {"train.py": "", "pkg/net.py": "", "pkg/__main__.py": "", "/lib/own/tool.py": ""}
TORCHRUN = ("python", "-m", "torch.distributed.run")
DATA = ["table.csv", "/data/cifar/train.bin"]


def plan(*command):
    script = {"command": list(command), "sources": SOURCES}
    return plan_execution(script, DATA, "/mine/python")


@pytest.mark.parametrize(
    ("command", "described"),
    [
        (["/usr/bin/python3.11", "train.py"], ["python", "train.py"]),
        (["python", "/home/me/x/train.py", "--n", "1"], ["python", "train.py", "--n", "1"]),
        (["python", "t.py", "--out=/home/me/x/o"], ["python", "t.py", "--out=o"]),
        (["python", "t.py", "/home/me/xy", "/data"], ["python", "t.py", "/home/me/xy", "/data"]),
        (["torchrun", "t.py"], ["python", "-m", "torch.distributed.run", "t.py"]),
        (["/bin/sh", "-c", "x"], ["sh", "-c", "x"]),
    ],
)
def test_a_receipt_states_a_command_without_places_of_the_machine(command, described):
    assert describe_command(command, Path("/home/me/x")) == described


@pytest.mark.parametrize(
    ("command", "main"),
    [
        (["python", "train.py"], "train.py"),
        (["python3.11", "-u", "-O", "./train.py", "--epochs", "2"], "train.py"),
        (["python", "-m", "pkg.net", "x"], "pkg/net.py"),
        (["python", "-m", "pkg"], "pkg/__main__.py"),
        (["python", "/lib/own/tool.py"], "/lib/own/tool.py"),
        (["python", "train.py", "--data", "/data/cifar", "--url=https://host/x"], "train.py"),
        (["python", "train.py", "a..b", "--table=table.csv"], "train.py"),
        (
            [*TORCHRUN, "--nproc-per-node=2", "--nnodes", "1", "--standalone", "train.py"],
            "train.py",
        ),
    ],
)
def test_own_sources_are_executed_with_the_interpreter_of_the_verifier(command, main):
    assert plan(*command) == (["/mine/python", *command[1:]], main)


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "python train.py"],
        ["pythonx", "train.py"],
        ["python"],
        ["python", "-"],
        ["python", "-c", "import os"],
        ["python", "-ic", "import os"],
        ["python", "-I", "train.py"],
        ["python", "-X", "importtime", "train.py"],
        ["python", "-W", "ignore::x.y", "train.py"],
        ["python", "other.py"],
        ["python", "../train.py"],
        ["python", "/usr/lib/python3/pip.py"],
        ["python", "-m", "pip", "install", "x"],
        ["python", "-m", "pkg.other"],
        ["python", "-m", "../pkg"],
        ["python", "-m"],
        ["python", "-m", "torch.distributed.run"],
        ["python", "-m", "torch.distributed.run", "--no-python", "train.py"],
        ["python", "-m", "torch.distributed.run", "--no_p", "sh", "train.py"],
        ["python", "-m", "torch.distributed.run", "--nproc_per_node", "--no-python", "train.py"],
        ["python", "-m", "torch.distributed.run", "--log_dir=/home", "train.py"],
        ["python", "-m", "torch.distributed.run", "-m", "pip"],
        ["python", "-m", "torch.distributed.run", "--master_addr=evil;x", "train.py"],
        ["python", "train.py", "--out", "/home/victim/.bashrc"],
        ["python", "train.py", "--out=/etc"],
        ["python", "train.py", "--data", "/"],
        ["python", "train.py", "--out", "../../x"],
        ["python", "train.py", "--out=a/../../x"],
        ["python", "train.py", "~/.ssh"],
        ["python", "train.py", "--out", "/data/cifar/../../etc"],
        ["python", "train.py", "a,/etc/x"],
        ["python", "train.py", "file:///etc/x"],
    ],
    ids=" ".join,
)
def test_every_other_command_is_refused(command):
    with pytest.raises(ConfigError, match="is not executed: "):
        plan(*command)
