"""A run belongs to a plan by its settings: what the plan leaves open may be filled in, no more."""

from itertools import chain

import pytest

from seedless.core.config import flatten
from seedless.runs.prepare import prepare
from seedless.studies.engine.grid import Point
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.run_identity import (
    OPEN_SETTINGS,
    compare_with_plan,
    list_keys,
    name_run,
)
from tests.studies.tiny_grids import make_config


def resolve(plan):
    """Return the configuration of the run that a plan gives on this machine."""
    return prepare(plan).config


def make_ecg():
    return StudyOptions(scale="smoke", device="cpu").ecg(data={"preset": "tiny"})


@pytest.mark.parametrize("make", [make_config, make_ecg])
def test_a_run_belongs_to_the_plan_it_was_made_from(make):
    plan = make()
    run = resolve(plan)
    assert run.digest != plan.digest
    assert compare_with_plan(plan, run) == []
    assert name_run(plan.digest) == Point("a", "b", plan).key
    assert {name_run(plan.digest), name_run(run.digest)} <= list_keys(run)


def test_only_open_settings_are_filled_in():
    """Negative control: the list holds every setting that a run changes, and is not empty."""
    filled_in = set()
    for plan in (make_config(), make_ecg()):
        before, after = flatten(plan.identity()), flatten(resolve(plan).identity())
        filled_in |= {key for key in before if before[key] != after[key]}
    assert filled_in
    assert filled_in <= {*OPEN_SETTINGS}


@pytest.mark.parametrize(
    "change",
    [
        {"train": {"rate": 0.5}},
        {"order": {"seed": 7}},
        {"init": {"basis": "walsh"}},
        {"data": {"records": 61}},
        {"execution": {"precision": "bf16"}},
        {"execution": {"device": "cuda"}},  # the plan says cpu: this one is not open
        {"control": {"at_step": 3}},
    ],
    ids=lambda change: ".".join(chain(change, *change.values())),
)
def test_another_setting_makes_another_run(change):
    plan = make_config()
    run = resolve(plan).change(**change)
    (section,) = change
    assert [one.field for one in compare_with_plan(plan, run)] == [
        f"{section}.{next(iter(change[section]))}"
    ]
    assert name_run(plan.digest) not in list_keys(run)


def test_a_setting_that_the_plan_fixes_is_not_open():
    plan = make_config(execution={"mode": "compiled"})
    run = resolve(make_config())
    assert [one.field for one in compare_with_plan(plan, run)] == ["execution.mode"]
