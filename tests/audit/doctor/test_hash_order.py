"""The line that depends on the order of a set, named as all other lines are."""

import pytest

from seedless.audit.doctor.diagnosis import fill_remedy
from seedless.audit.doctor.hash_order import judge_hash_order, judge_parameter_order
from seedless.audit.doctor.recorded_run import read_run
from tests.audit.doctor.records import make_case, make_end, make_process, make_step, write_process


@pytest.mark.parametrize("is_full", [True, False])
def test_a_line_in_the_working_folder_is_named_once_and_relative(tmp_path, is_full):
    script = tmp_path / "train.py"
    script.write_text("names = {'a', 'b'}\nfor name in names:\n    print(name)\n")
    path = str(script) if is_full else "train.py"
    runs = []
    for loss in ("one", "two"):
        lines = [
            make_process(cwd=str(tmp_path)),
            make_step(1, loss=loss),
            {"kind": "sources", "files": [{"path": path, "sha256": "0" * 64}]},
            make_end(1),
        ]
        write_process(tmp_path / loss, lines)
        runs.append(read_run(tmp_path / loss))
    found = judge_hash_order(make_case(*runs))
    assert found.line == "train.py:2"
    assert len(found.evidence) == 1


def test_the_same_weights_in_another_order_are_a_set_of_tensors(tmp_path):
    source = "a = set(net.parameters())\nopt = torch.optim.SGD(list(a), lr=0.1)\n"
    (tmp_path / "train.py").write_text(source)
    runs = []
    for order in ("one", "two"):
        step = {**make_step(1, weights_before=order), "line": "train.py:9"}
        write_process(tmp_path / order, [make_process(cwd=str(tmp_path)), step, make_end(1)])
        runs.append(read_run(tmp_path / order))
    by_hash, by_address = judge_parameter_order(make_case(*runs, reordered=True))
    assert (by_hash.cause, by_hash.line, by_hash.experiment) == (
        "hash-order",
        "train.py:2",
        "hash-seed",
    )
    assert (by_address.cause, by_address.line) == ("address-order", "train.py:1")
    assert (by_hash.confidence, by_address.confidence) == ("possible", "likely")
    assert list(judge_parameter_order(make_case(*runs))) == [], "other weights are no other order"


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ("number = hash('a') % 50\n", "use hashlib in place of hash() at train.py:1, or start"),
        ("for name in {'a', 'b'}:\n    print(name)\n", "use sorted(...) at train.py:1, or start"),
    ],
)
def test_the_advice_is_for_what_the_line_does(tmp_path, source, advice):
    """A value of hash() is as different after sorting as before."""
    (tmp_path / "train.py").write_text(source)
    runs = []
    for loss in ("one", "two"):
        step = {**make_step(1, loss=loss), "line": "train.py:9"}
        write_process(tmp_path / loss, [make_process(cwd=str(tmp_path)), step, make_end(1)])
        runs.append(read_run(tmp_path / loss))
    found = judge_hash_order(make_case(*runs))
    _, remedy = fill_remedy(found, found.line)
    assert remedy.startswith(advice)
