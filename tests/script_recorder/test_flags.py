"""Torch's switches, as an experiment holds them."""

SCRIPT = """
import numpy as np, torch
torch.use_deterministic_algorithms(False)
torch.backends.cudnn.benchmark = True
print(torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark)
print(torch.empty(3).isnan().all().item(), np.empty(3).tolist())
print(torch.is_deterministic_algorithms_warn_only_enabled())
"""


def test_a_script_cannot_leave_the_deterministic_algorithms_of_an_experiment(scripts):
    plain, held = scripts.run(SCRIPT), scripts.run(SCRIPT, deterministic=True)
    assert plain.stdout.splitlines()[0] == "False True"
    assert held.stdout.splitlines() == ["True False", "True [0.0, 0.0, 0.0]", "True"]
    assert held.code == 0
