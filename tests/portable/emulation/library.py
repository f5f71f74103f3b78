"""The kernels' CUDA text, compiled for the CPU with a shim in place of CUDA."""

import ctypes
import re
import shutil
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

from seedless.portable.exact.engines import float64
from seedless.portable.kernels import launch, products
from seedless.portable.kernels.source import write_source

SHIM = Path(__file__).parent / "shim.h"
HEAD = re.compile(r'extern "C" __global__ void __launch_bounds__\(\d+\)\s+(\w+)\s*\(([^)]*)\)')
FLAGS = ["-O1", "-ffp-contract=off", "-fPIC", "-shared", "-w", "-fpermissive", "-std=c++17"]
CALL = """
struct Args_{name} {{ {fields} }};
static void call_{name}(void *p) {{ auto a = (Args_{name} *)p; {name}({passed}); }}
extern "C" void run_{name}(unsigned gx, unsigned gy, unsigned tx, unsigned ty, {listed})
{{ Args_{name} a = {{{words}}}; launch(gx, gy, tx, ty, call_{name}, &a); }}
"""


def _describe(name, listed):
    """Return the parts of CALL for a kernel with these parameters."""
    pairs = [re.match(r"(.*?)(\w+)$", one.strip(), re.S).groups() for one in listed.split(",")]
    words = [word for _, word in pairs]
    fields = " ".join(f"{kind} {word};" for kind, word in pairs)
    passed = ", ".join(f"a->{word}" for word in words)
    return {
        "name": name,
        "listed": listed,
        "fields": fields,
        "passed": passed,
        "words": ", ".join(words),
    }


FIXED_SHAPE = ("multiply_f32", "product_exponents")  # written for one number of threads


class Emulated:
    """Launches kernels as a GPU would, with fewer threads a block.

    ``flags``: more of them for the compiler.
    """

    multiplies_tiles = True

    def __init__(self, folder, flags=()):
        compiler = shutil.which("g++")
        text = folder / "kernels.cpp"
        text.write_text(write_source())
        command = [compiler, "-E", "-P", "-D__CUDACC__", str(text)]
        plain = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.names = dict(HEAD.findall(plain))
        text.write_text(
            f'#include "{SHIM}"\n' + plain.replace("__global__", "") + self.write_calls()
        )
        made = folder / "kernels.so"
        command = [compiler, *FLAGS, *flags, "-o", str(made), str(text)]
        subprocess.run(command, capture_output=True, text=True, check=True)
        self.library = ctypes.CDLL(str(made))
        self.launched = []

    def write_calls(self):
        """Return a function for each kernel that launches it."""
        return "\n".join(CALL.format(**_describe(name, self.names[name])) for name in self.names)

    def launch(self, name, work, args):
        """Run a kernel on CPU tensors."""
        self.launched.append(name)
        function = getattr(self.library, f"run_{name}")
        function.restype = None
        most = (1024, 1024) if name in FIXED_SHAPE else (64, 3)
        threads = min(work.threads_x, most[0]), min(work.threads_y, most[1])
        function(work.blocks_x, work.blocks_y, *threads, *args)

    @contextmanager
    def in_order(self, *, backwards):
        """Run the threads, and the blocks, from the first to the last, or backwards."""
        self.library.run_backwards(int(backwards))
        try:
            yield
        finally:
            self.library.run_backwards(0)


@contextmanager
def send_to(emulated):
    """Send what CUDA would compute to the emulated kernels; products there are not in products."""
    with ExitStack() as patches:
        for place, name, value in (
            (launch, "load_cpu_kernels", lambda: emulated),
            (products, "is_ready", lambda *_: False),
            (float64, "MIN_CHUNKED_ELEMENTS", 1 << 40),
        ):
            patches.enter_context(mock.patch.object(place, name, value))
        emulated.launched.clear()
        yield emulated
