"""Compile every variant for compute capability 9.0 without a GPU; write what each needs:

    python -m benchmarks.fused_block.resources [--only NAME] [--most NUMBER] [--out FOLDER]

The record, fused-block-resources.json, has registers, shared memory, bytes of stack (registers that
were spilled) and the matrix instructions of each kernel. It is written after every kernel; kernels
whose source and variant it has already are not compiled again. Needs Triton, but no CUDA device.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from benchmarks.fused_block import backward_kernel, forward_kernel, jit
from benchmarks.fused_block.block import list_constants
from benchmarks.fused_block.choices import KERNELS, list_all_variants
from benchmarks.fused_block.tiles import (
    PRECISIONS,
    BlockShape,
    Variant,
    count_weights,
    list_shapes,
    plan_tiles,
)
from benchmarks.pages import RESULTS

NAME = "fused-block-resources.json"
FUNCTIONS = {
    "forward": forward_kernel.block_forward,
    "backward": backward_kernel.block_backward,
}
NUMBERS = ("length", "bins", "tile", "tiles", "weights")
HALF = ("z1", "z2", "h1", "d2")  # stored as bfloat16 where the products are
WORDS = ("HGMMA", "HMMA", "FFMA", "LDL", "STL", "BAR.SYNC")
PUBLISHED = (40, (3, 4, 23), 1000)  # width, blocks and samples of the full-size conformer


def compile_kernel(kernel: str, shape: BlockShape, variant: Variant, precision: str) -> Any:
    """Return the compiled kernel, specialized to its numbers as a launch would specialize it."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function, constants = FUNCTIONS[kernel], list_constants(shape, variant, precision)
    plan = plan_tiles(shape, variant.tile)
    numbers = {
        "length": shape.length,
        "bins": shape.bins,
        "tile": plan.tile,
        "tiles": plan.tiles,
        "weights": count_weights(shape.channels, shape.width),
    }
    constants |= {name: 1 for name in NUMBERS if numbers[name] == 1 and name in function.arg_names}
    signature, attributes = {}, {}
    for index, name in enumerate(function.arg_names):
        if name in constants:
            signature[name] = "constexpr"
            continue
        if name in NUMBERS:
            signature[name] = "i32"
        elif name == "eps":
            signature[name] = "fp32"
        else:
            signature[name] = "*bf16" if precision == "bf16" and name in HALF else "*fp32"
        if signature[name].startswith("*") or numbers.get(name, 1) % 16 == 0:
            attributes[index,] = [["tt.divisibility", 16]]
    return jit.triton.compile(
        ASTSource(function, signature, constexprs=constants, attrs=attributes),
        target=GPUTarget("cuda", 90, 32),
        options={"num_warps": variant.warps, "num_stages": variant.stages},
    )


def read_resources(compiled: Any) -> dict[str, int]:
    """Return what a compiled kernel needs, as the tool of CUDA prints it."""
    tool = Path(jit.triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        usage, code = (
            subprocess.run([tool, flag, file.name], capture_output=True, text=True, check=True)
            for flag in ("-res-usage", "-sass")
        )
    found = re.search(r"REG:(\d+) STACK:(\d+)", usage.stdout)
    if found is None:
        raise RuntimeError(f"expected registers and stack from {tool}, got {usage.stdout!r}")
    words = {word: len(re.findall(rf"\b{re.escape(word)}", code.stdout)) for word in WORDS}
    return {
        "registers": int(found[1]),
        "stack_bytes": int(found[2]),
        "shared_bytes": int(compiled.metadata.shared),
        "lines": len(code.stdout.splitlines()),
        **words,
    }


def list_kernels() -> Iterator[tuple[str, BlockShape, Variant, str]]:
    """Yield every kernel, shape, variant and precision: the fixed choices come first."""
    shapes = sorted(list_shapes(*PUBLISHED), key=lambda shape: -shape.count)
    longest = max(len(list_all_variants(shape)) for shape in shapes)
    for number in range(longest):
        for shape in shapes:
            for precision in PRECISIONS:
                for kernel in KERNELS:
                    if number < len(variants := list_all_variants(shape)):
                        yield kernel, shape, variants[number], precision


def hash_sources() -> str:
    """Return a short digest of the kernels' source."""
    files = [module.__file__ for module in (jit, forward_kernel, backward_kernel)]
    content = b"".join(Path(file or "").read_bytes() for file in files)
    return hashlib.sha256(content).hexdigest()[:16]


def main() -> None:
    """Compile what the record has not, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of 'KERNEL SHAPE PRECISION'")
    parser.add_argument("--most", type=int, default=100, help="variants of each, in their order")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    path, source = arguments.out / NAME, hash_sources()
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    rows = [row for row in rows if row["source"] == source]
    for kernel, shape, variant, precision in list_kernels():
        name = f"{kernel} {shape.name} {precision}"
        key = {
            "kernel": kernel,
            "shape": shape.name,
            "precision": precision,
            "variant": variant.as_values(),
            "source": source,
        }
        late = list_all_variants(shape).index(variant) >= arguments.most
        if late or arguments.only not in name or any(key.items() <= row.items() for row in rows):
            continue
        began = time.perf_counter()
        try:
            row = {**key, **read_resources(compile_kernel(kernel, shape, variant, precision))}
        except Exception as error:  # such as too much shared memory
            row = {**key, "error": f"{type(error).__name__}: {error}"[-400:]}
        row["seconds"] = round(time.perf_counter() - began, 1)
        rows.append(row)
        print(name, variant, {k: v for k, v in row.items() if k not in key}, flush=True)
        record = {
            "command": "python -m benchmarks.fused_block.resources",
            "target": "cuda 90",
            "triton": jit.triton.__version__,
            "rows": rows,
        }
        path.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
