"""A difference prints what `seedless diff` prints; values of other people cannot end a line."""

from seedless.audit.difference import Difference
from seedless.core.mismatch import Mismatch


def test_equal_runs():
    same = Difference(True, notes=("nothing drew from it",))
    expected = "IDENTICAL: every entry of the two trails agrees\n  nothing drew from it"
    assert str(same) == expected


def test_runs_that_differ_in_a_setting_and_from_an_epoch_on():
    names = tuple(f"layer{k}" for k in range(6))
    settings = (Mismatch("train.rate", 0.1, "0.2\nIDENTICAL"),)
    found = Difference(False, settings=settings, epoch=2, names=names, step=7, step_names=("w",))
    first, second, third = str(found).splitlines()
    assert first.startswith("configuration: train.rate is 0.1 in A, '0.2")
    assert second == "THEY DIFFER in epoch 2: layer0, layer1, layer2, layer3 and 2 more"
    assert third == "  first at step 7: w"


def test_a_recorded_loop_names_step_epoch_and_process():
    found = Difference(False, epoch=1, names=("loss",), step=3, recorded_loop=True, ranks=(1, 2))
    assert str(found) == "THEY DIFFER at step 3 of epoch 1 in process 1, 2: loss"
