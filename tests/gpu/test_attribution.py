"""Maps on a GPU: they repeat in another process, and lie close to the CPU's."""

import numpy as np
import pytest
import torch

from seedless.evaluate.attention import explain_attention
from seedless.evaluate.gradcam import explain_classes
from seedless.train.bit_flip import flip_bit
from tests.evaluate.models import MODELS, make_model, make_samples

pytestmark = pytest.mark.gpu

SCRIPT = """
from seedless.numerics.determinism import make_deterministic, set_environment_variables
set_environment_variables()
from seedless.evaluate.attention import explain_attention
from seedless.evaluate.gradcam import explain_classes
from tests.evaluate.models import MODELS, make_model, make_samples
make_deterministic(threads=1)
for name in MODELS:
    print(explain_classes(make_model(name).cuda(), make_samples(name, 70), 0).digest)
print(explain_attention(make_model("conformer").cuda(), make_samples("conformer", 70))[0].digest)
"""


def test_two_processes_have_one_digest(run_python):
    first, second = (run_python("-c", SCRIPT).stdout for _ in range(2))
    assert first == second
    assert first.count("sha256:") == len(MODELS) + 1


@pytest.mark.parametrize("name", MODELS)
def test_maps_are_those_of_the_cpu_but_for_rounding(name):
    samples = make_samples(name, 3)
    there = explain_classes(make_model(name).cuda(), samples, 0)
    here = explain_classes(make_model(name), samples, 0)
    np.testing.assert_allclose(there.maps, here.maps, atol=2e-3)
    model = make_model(name).cuda()
    flip_bit(model, "head.weight:0:22")
    assert explain_classes(model, torch.from_numpy(samples).cuda(), 0).digest != there.digest


def test_attention_is_that_of_the_cpu_but_for_rounding():
    samples = make_samples("conformer", 3)
    there = explain_attention(make_model("conformer").cuda(), samples)
    here = explain_attention(make_model("conformer"), samples)
    np.testing.assert_allclose(there[0].maps, here[0].maps, atol=1e-3)
