"""Each side's flags hold for its turn, and for no longer."""

from functools import partial

import pytest
import torch

from seedless.bench.flags import (
    TORCH_DEFAULT,
    run_with_flags,
    use_nondeterministic_flags,
    use_plain_flags,
    use_published_flags,
)
from seedless.numerics.determinism import make_deterministic
from seedless.numerics.environment import capture_environment
from seedless.train.step_modes import configure_compiler

SIDES = {
    "ours": partial(make_deterministic, threads=2),
    "ours tf32": partial(make_deterministic, threads=2, tf32=True),
    "plain": partial(use_plain_flags, threads=2, precision=TORCH_DEFAULT),
    **{
        f"plain {precision}": partial(use_plain_flags, threads=2, precision=precision)
        for precision in ("fp32", "tf32", "bf16")
    },
    "published": partial(use_published_flags, threads=2),
    "mode off": partial(use_nondeterministic_flags, threads=2),
}


@pytest.mark.parametrize(
    "before", [lambda: None, partial(make_deterministic, threads=1), SIDES["ours tf32"]]
)
@pytest.mark.parametrize("side", SIDES)
def test_every_flag_is_put_back_even_after_an_error(side, before):
    with run_with_flags(before):
        found = capture_environment()
        with pytest.raises(ZeroDivisionError), run_with_flags(SIDES[side]):
            _fail()
        after = capture_environment()
        for part in ("flags", "precision", "threads"):
            assert after[part] == found[part]


def _fail():
    assert torch.get_num_threads() == 2
    raise ZeroDivisionError


def test_what_each_side_runs_under():
    found = {}
    for name, side in SIDES.items():
        with run_with_flags(side):
            found[name] = capture_environment()
    flags = {name: values["flags"] for name, values in found.items()}
    deterministic = {name for name in SIDES if flags[name]["deterministic_algorithms"]}
    assert deterministic == {"ours", "ours tf32", "published"}
    assert {name for name in SIDES if flags[name]["cudnn_deterministic"]} == deterministic
    tuned = {name for name in SIDES if flags[name]["cudnn_benchmark"]}
    assert tuned == {"plain", "plain fp32", "plain tf32", "plain bf16"}
    precision = {name: values["precision"] for name, values in found.items()}
    convolutions = {name for name in SIDES if precision[name]["cudnn conv"] == "tf32"}
    assert convolutions == {"ours tf32", "plain", "plain tf32", "plain bf16"}
    products = {name for name in SIDES if precision[name]["cuda matmul"] == "tf32"}
    assert products == {"ours tf32", "plain tf32"}


def test_the_compiler_has_its_own_settings_again_after_our_turn():
    import torch._inductor.config as inductor

    def look():
        return inductor.deterministic, inductor.triton.autotune_pointwise

    # torch's switch for deterministic algorithms, which other tests use, sets the first one too.
    with inductor.patch({"deterministic": False, "triton.autotune_pointwise": True}):
        with run_with_flags(configure_compiler):
            assert look() == (True, False)
        assert look() == (False, True)


def test_plain_is_what_torch_comes_with(run_python):
    code = (
        "import torch\n"
        "from seedless.bench.flags import run_with_flags, use_plain_flags\n"
        "b = torch.backends\n"
        "def look():\n"
        "    return (b.cudnn.conv.fp32_precision, torch.get_float32_matmul_precision(),\n"
        "            b.cudnn.deterministic, torch.are_deterministic_algorithms_enabled(),\n"
        "            b.cuda.matmul.allow_bf16_reduced_precision_reduction,\n"
        "            torch.utils.deterministic.fill_uninitialized_memory)\n"
        "fresh = look()\n"
        "with run_with_flags(lambda: use_plain_flags(threads=1)):\n"
        "    print(look() == fresh)\n"
    )
    assert run_python("-c", code).stdout.strip() == "True"
