"""The committed digests, and what must not change them: threads and SIMD level.

The negative control removes the mechanism, exact sums, and must see the digests part.
"""

import json

import pytest

import seedless
from seedless.init import INITIALIZATIONS
from seedless.models import MODELS
from tests.golden.write import FILE, compute

COMMITTED = json.loads(FILE.read_text())
SHOW = ("-m", "seedless", "init", "show", "conformer", "--basis", "mixed", "--json")
SETTINGS = [
    {"OMP_NUM_THREADS": "1"},
    {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"},
    {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "2"},
    {"OMP_NUM_THREADS": "1", "ATEN_CPU_CAPABILITY": "default"},
    {"ATEN_CPU_CAPABILITY": "avx2"},
    {"ATEN_CPU_CAPABILITY": "avx512"},
]


@pytest.mark.parametrize("basis", sorted(INITIALIZATIONS))
@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_and_basis_has_its_committed_digest(name, basis):
    assert compute(name, basis) == COMMITTED[name][basis]


def test_nothing_else_is_committed():
    assert {name: sorted(bases) for name, bases in COMMITTED.items()} == {
        name: sorted(INITIALIZATIONS) for name in MODELS
    }


@pytest.fixture(scope="module")
def plan():
    """The plan of one of them, made in this process, as it is printed in JSON."""
    model = seedless.build("conformer")
    return json.loads(json.dumps(seedless.initialize(model, "mixed").as_dict()))


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: ",".join(f"{k}={s[k]}" for k in s))
def test_threads_and_simd_level_do_not_show(run_python, plan, setting):
    """Neither in the digests nor in anything else that is printed of the plan."""
    shown = json.loads(run_python(*SHOW, **setting).stdout)
    assert shown["digest"] == COMMITTED["conformer"]["mixed"]["plan"]
    assert shown["weights"] == COMMITTED["conformer"]["mixed"]["weights"]
    assert {key: shown[key] for key in plan} == plan


SABOTAGE = """
import torch, seedless
from seedless.init import layer_weights

def scale_filters(filters, shape, scale=1.0):
    tensor = torch.from_numpy(filters.fill("float32"))  # float32 mean and std, as is common
    sigma = scale * layer_weights.default_sigma(shape)
    tensor = (tensor - tensor.mean()) * (sigma / tensor.std(correction=0))
    return tensor.numpy().reshape(shape)

layer_weights.scale_filters = scale_filters
for threads in (1, 2, 4):
    torch.set_num_threads(threads)
    model = seedless.build("conformer")
    seedless.initialize(model, "mixed")
    print(seedless.digest(model))
"""


def test_negative_control_float32_sums_let_the_thread_count_show(run_python):
    digests = run_python("-c", SABOTAGE).stdout.split()
    assert len(set(digests)) > 1


def test_mixed_puts_all_three_bases_into_the_conformer(plan):
    found = {(row["stage"], row["basis"]) for row in plan["rows"] if row["rule"] == "filters"}
    assert found == {(0, "dct"), (1, "hadamard"), (2, "hartley"), (3, "dct")}
    digests = COMMITTED["conformer"]
    assert digests["mixed"]["weights"] != digests["dct"]["weights"]


def test_no_two_initializations_share_a_digest():
    for kind in ("plan", "weights"):
        every = [entry[kind] for bases in COMMITTED.values() for entry in bases.values()]
        assert len(set(every)) == len(every)
