"""Ops on tensors whose sizes no block, warp or tile divides, with emulated kernels and without.

    python -m tests.portable.emulation.odd_sizes [OLD NEW]

runs them under AddressSanitizer, which `run_sanitized` loads first; OLD in the kernels' text is
replaced by NEW. Prints "same", or the calls that differ.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from seedless.portable import self_test
from seedless.portable.context import CONTEXT
from tests.portable.emulation import library
from tests.portable.reference_cases import some

ROOT = Path(__file__).parents[3]
SIZES = (1, 7, 31, 33, 127, 129)
# The stacks of emulated threads are not watched: those of a block that is over are used again.
SANITIZED = ("-fsanitize=address", "--param", "asan-stack=0", "-g", "-fno-omit-frame-pointer")
ADAM = {
    "lr": 0.01,
    "beta1": 0.9,
    "beta2": 0.999,
    "weight_decay": 0.1,
    "eps": 1e-8,
    "amsgrad": False,
    "maximize": False,
}


def list_calls():
    """Yield overloads with their positional and named arguments."""
    empty = torch.empty(0)
    for x in (*(some(size) for size in SIZES), empty):
        for name in ("gelu", "silu", "exp", "sigmoid", "relu"):
            yield name, (x,), {}
        for name in ("gelu_backward", "silu_backward"):
            yield name, (x.flip(0), x), {}
    for rows, n in zip(SIZES, reversed(SIZES), strict=True):
        yield from list_row_calls(rows, n)
    yield from list_row_calls(3, 521)  # a block for each row
    for m, k, n in ((1, 1, 1), (7, 31, 33), (33, 129, 7), (129, 7, 127), (31, 127, 1), (1, 527, 7)):
        for left in (some(m, k), some(k, m).t()):
            for right in (some(k, n, name="r"), some(n, k, name="r").t()):
                yield "mm", (left, right), {}
                yield "addmm", (some(n, name="b"), left, right), {}
    image, filters = some(3, 7, 5, 9), some(5, 7, 3, 2, name="f")
    settings = ([2, 1], [1, 0], [1, 1], False, [0, 0], 1)
    yield "convolution", (image, filters, None, *settings), {}
    given = (some(3, 5, 3, 8, name="g"), image, filters, None, *settings, [True, True, False])
    yield "convolution_backward", given, {}
    # Other sizes than before in one launch, and more tensors than a launch takes.
    sizes = [*SIZES, 0, *([1, 3] * 40)]
    lists = [[some(size, name=name) for size in sizes] for name in ("p", "g", "n")]
    lists += [[some(size, name="q").abs() for size in sizes], []]
    lists += [[torch.full((), float(number + 1)) for number in range(len(sizes))]]
    for name in ("_fused_adam_", "_fused_adamw_"):
        yield name, tuple([x.clone() for x in each] for each in lists), ADAM


def list_row_calls(rows, n):
    """Yield calls on (rows, n), whose rows or columns are summed."""
    x, grad = some(rows, n), some(rows, n, name="g")
    weight, bias = some(n, name="w"), some(n, name="v")
    stats = (some(rows, 1, name="m"), some(rows, 1, name="s"))
    yield "native_layer_norm", (x, [n], weight, bias, 1e-5), {}
    given = (grad, x, [n], *stats, weight, bias, [True] * 3)
    yield "native_layer_norm_backward", given, {}
    yield "_softmax", (x, 1, False), {}
    yield "_softmax_backward_data", (grad, x, 1, torch.float32), {}
    yield "sum.dim_IntList", (x, [0]), {}
    yield "sum.dim_IntList", (x, [1]), {}
    image, grads = some(3, n, 3, 2), some(3, n, 3, 2, name="g")
    for last in (torch.contiguous_format, torch.channels_last):
        image, grads = (one.contiguous(memory_format=last) for one in (image, grads))
        running = (some(n, name="m"), some(n, name="r", shift=4.0))
        yield "native_batch_norm", (image, weight, bias, *running, True, 0.1, 1e-5), {}
        means = (some(n, name="c"), some(n, name="d"))
        given = (grads, image, weight, *running, *means, True, 1e-5, [True] * 3)
        yield "native_batch_norm_backward", given, {}


def find_differing():
    """Return the calls that have other bits with kernels than without, as words."""
    fused = [self_test._run(call) for call in list_calls()]
    with CONTEXT.without_kernels():
        plain = [self_test._run(call) for call in list_calls()]
    return [
        f"{call[0]} {[tuple(x.shape) for x in call[1] if isinstance(x, torch.Tensor)]}"
        for call, one, other in zip(list_calls(), fused, plain, strict=True)
        if not all(map(self_test._same, one, other))
    ]


def find_sanitizer():
    """Return the library of AddressSanitizer; None where g++ has none."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    command = [compiler, "-print-file-name=libasan.so"]
    found = Path(subprocess.run(command, capture_output=True, text=True).stdout.strip())
    return found.resolve() if found.is_absolute() and found.exists() else None


def run_sanitized(*replaced):
    """Run this module as a program under AddressSanitizer; return the finished process."""
    variables = {
        **os.environ,
        "LD_PRELOAD": str(find_sanitizer()),
        # Python and torch free nothing at their end.
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
    }
    command = [sys.executable, "-m", "tests.portable.emulation.odd_sizes", *replaced]
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        source = library.write_source().replace(*sys.argv[1:])
        assert source != library.write_source()
        library.write_source = lambda: source
    with (
        TemporaryDirectory() as folder,
        library.send_to(library.Emulated(Path(folder), SANITIZED)),
    ):
        print("\n".join(find_differing()) or "same")
