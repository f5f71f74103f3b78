"""Rank, size and address of a process, from the variables of torchrun, srun and our launcher."""

import pytest

from seedless.core.config import parse_config
from seedless.core.errors import ConfigError
from seedless.core.processes import MEETING_FILE
from seedless.core.rendezvous import (
    Place,
    check_group_settings,
    find_first_host,
    find_place,
)

SLURM = {
    "SLURM_PROCID": "3",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_NODELIST": "gpu[07-08]",
    "SLURM_JOB_ID": "41",
    "SLURM_STEP_ID": "1",
}


def test_torchrun():
    assert find_place({"RANK": "2", "WORLD_SIZE": "3"}) == Place(2, 3, "env://")


def test_our_own_launcher_meets_at_a_file():
    variables = {"RANK": "0", "WORLD_SIZE": "2", MEETING_FILE: "/tmp/x"}
    assert find_place(variables) == Place(0, 2, "file:///tmp/x")


def test_slurm_meets_on_the_first_machine_of_the_step():
    assert find_place(SLURM) == Place(3, 4, "tcp://gpu07:20042")
    chosen = {**SLURM, "MASTER_ADDR": "a", "MASTER_PORT": "29500"}
    assert find_place(chosen) == Place(3, 4, "tcp://a:29500")


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"RANK": "0", "WORLD_SIZE": "1"},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"},  # a batch script, before srun
        {**SLURM, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"},
    ],
)
def test_one_process_by_itself_has_no_group(variables):
    assert find_place(variables) is None


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"RANK": "x", "WORLD_SIZE": "2"}, "a number in the environment variable RANK, got 'x'"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "got 2 of 2"),
        ({**SLURM, "SLURM_STEP_NODELIST": ""}, "set MASTER_ADDR"),
    ],
)
def test_variables_that_make_no_sense_are_refused(variables, words):
    with pytest.raises(ConfigError, match=words):
        find_place(variables)


@pytest.mark.parametrize(
    ("machines", "first"),
    [("a", "a"), ("a1,b2", "a1"), ("n[3,5]-ib,x", "n3-ib"), ("n[009-010]", "n009")],
)
def test_first_machine_of_a_list(machines, first):
    assert find_first_host(machines) == first


def test_settings_that_a_group_cannot_have():
    portable = {"execution": {"arithmetic": "portable"}}
    check_group_settings(parse_config(portable), 2)
    with pytest.raises(ConfigError, match=r"Set execution\.arithmetic to portable"):
        check_group_settings(parse_config({}), 2)
    with pytest.raises(ConfigError, match=r"Leave train\.microbatch out"):
        check_group_settings(parse_config({**portable, "train": {"microbatch": 8}}), 2)
