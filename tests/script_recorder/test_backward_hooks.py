"""A script that updates its weights by hand: each backward pass counts as a step."""

import pytest
import torch

from seedless.script_recorder.backward_hooks import find_leaves

BY_HAND = """
import os, sys
import torch

print(os.environ.get("SET_BY_SITECUSTOMIZE"))
os.makedirs("listed", exist_ok=True)
for name in "ab":
    open(f"listed/{name}", "w").close()
names = os.listdir("listed")
with open("given.txt") as file:
    start = float(file.read())
weight = torch.full((3,), start, requires_grad=True)
for _ in range(3):
    loss = (weight * torch.arange(3.0)).square().sum()
    loss.backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
        weight.grad = None
gradient, = torch.autograd.grad((weight * 2).sum(), [weight])
torch.save(weight, "saved.pt")
print(weight.detach().numpy().tobytes().hex())
raise RuntimeError("at the end")
"""


@pytest.fixture(scope="module")
def by_hand(scripts):
    """The script, without and with a record, with another sitecustomize on its path."""
    (scripts.folder / "given.txt").write_text("0.5")
    site = scripts.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import os\nos.environ['SET_BY_SITECUSTOMIZE'] = 'yes'\n"
    )
    variables = {"PYTHONPATH": str(site)}
    return (
        scripts.run(BY_HAND, recorded=False, variables=variables),
        scripts.run(BY_HAND, variables=variables),
    )


def test_a_failing_script_fails_as_before(by_hand):
    plain, recorded = by_hand
    assert (recorded.stdout, recorded.stderr, recorded.code) == (
        plain.stdout,
        plain.stderr,
        plain.code,
    )
    assert plain.code == 1
    end = recorded.lines[-1]
    assert (end["kind"], end["reason"]) == ("end", "exception")
    assert end["error"] == "RuntimeError: at the end"


def test_the_sitecustomize_that_ours_hides_is_executed(by_hand):
    assert by_hand[1].stdout.startswith("yes")


def test_each_backward_pass_is_a_step(by_hand):
    passes = by_hand[1].of_kind("backward")
    assert [line["step"] for line in passes] == [1, 2, 3, 4]
    line_of_pass = BY_HAND.splitlines().index("    loss.backward()") + 1
    assert [line["line"] for line in passes[:3]] == [f"script.py:{line_of_pass}"] * 3
    assert len({line["values"]["weights_before"] for line in passes}) == 4
    assert by_hand[1].of_kind("step") == []


def test_files_and_listings_are_observed(by_hand, scripts):
    (files,) = by_hand[1].of_kind("files")
    assert [(entry["path"], entry["size"]) for entry in files["read"]] == [
        (str(scripts.folder / "given.txt"), 3)
    ]
    assert files["read"][0]["sha256"].startswith("d2cbad71")
    written = [entry["path"] for entry in files["written"]]
    assert written == [str(scripts.folder / name) for name in ("listed/a", "listed/b", "saved.pt")]
    (listing,) = by_hand[1].of_kind("listing")
    assert (listing["path"], listing["count"]) == (str(scripts.folder / "listed"), 2)
    (sources,) = by_hand[1].of_kind("sources")
    names = [entry["path"] for entry in sources["files"]]
    assert names == [
        str(scripts.folder / "script.py"),
        str(scripts.folder / "site/sitecustomize.py"),
    ]


def test_an_isolated_interpreter_leaves_no_record(scripts, by_hand):
    isolated = scripts.run(BY_HAND, prefix=["-I"])
    assert isolated.stdout == by_hand[0].stdout.replace("yes", "None")
    assert isolated.records == []


def test_leaves_are_found_in_the_graph_of_a_loss():
    used, unused = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    loss = (used * used.detach() * used).sum()
    assert [id(leaf) for leaf in find_leaves(loss)] == [id(used)]
    both = find_leaves([loss, (unused * loss).sum()])
    assert {id(leaf) for leaf in both} == {id(used), id(unused)}


UNSEEN = """
import torch

def train(update, passes=1):
    for _ in range(4):
        for _ in range(passes):
            (weight.square().sum() / passes).backward()
        update()
        weight.grad = None

weight = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)

@torch.no_grad()
def change():
    # Stands for a compiled step, which calls no hook either.
    weight.sub_(0.1 * weight.grad)

train({update}, {passes})
"""


@pytest.mark.parametrize(
    ("update", "passes", "kinds"),
    [("change", 1, ["backward"] * 3), ("optimizer.step", 2, ["step"] * 4)],
)
def test_steps_that_call_no_hook_are_counted_by_backward_passes(scripts, update, passes, kinds):
    """From the second pass on: then the weights have changed, and no step was seen."""
    text = UNSEEN.replace("{update}", update).replace("{passes}", str(passes))
    found = scripts.run(text)
    steps = [line for line in found.lines if line["kind"] in ("step", "backward")]
    assert [line["kind"] for line in steps] == kinds
    assert len({line["values"]["weights_before"] for line in steps}) == len(kinds)


def test_optimizers_that_step_within_a_backward_pass_are_counted_each(scripts):
    text = """
import torch
weights = [torch.ones(3, requires_grad=True) for _ in range(2)]
optimizers = {weight: torch.optim.SGD([weight], lr=0.1) for weight in weights}
for weight in weights:
    weight.register_post_accumulate_grad_hook(lambda one: optimizers[one].step())
for _ in range(3):
    sum(weight.square().sum() for weight in weights).backward()
"""
    steps = scripts.run(text).of_kind("step")
    assert [line["step"] for line in steps] == [1, 2, 3, 4, 5, 6]
    assert {line["line"] for line in steps} == {"script.py:6"}
