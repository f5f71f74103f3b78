"""Where a portable step's time goes on a CUDA device: kernels by name, and single products.

    python -m benchmarks.portable_steps steps [--in-steps] [--models conformer,resnet18] --out FILE
    python -m benchmarks.portable_steps products [--small] --out FILE

`steps` times the captured step of each model, full size, and profiles it; `--in-steps` computes
products from operands on their grids, as GPUs without float64 units for matrices do. `products`
compares both ways for the shapes of the models. Weights are compared with those of
portable-steps-cuda.json. The file is written after every row. --device cpu
tries a command out, without kernels and graphs; --small has shapes that take no time.
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import RESULTS, tally_kernels
from benchmarks.portable import MODELS, Loop
from seedless.numerics.environment import capture_environment

ROUNDS, PROFILED = 20, 2
RECORDED_BATCH = 128
# batch, m, k, n, and which operand is read down its columns: of the conformer, ResNet-18, and large
SHAPES: dict[str, tuple[tuple[int, int, int, int], str]] = {
    "conformer narrow": ((1, 8064, 160, 40), "right"),
    "conformer widen": ((1, 8064, 40, 160), "right"),
    "conformer convolve": ((1, 8064, 200, 40), "right"),
    "conformer weight gradient": ((1, 160, 8064, 40), "left"),
    "conformer attention": ((512, 32, 40, 32), "right"),
    "resnet18 layer 1": ((1, 64, 576, 131072), ""),
    "resnet18 layer 1 weight gradient": ((1, 64, 131072, 576), "right"),
    "resnet18 layer 4": ((1, 512, 4608, 2048), ""),
    "large": ((1, 4096, 4096, 4096), ""),
}


def profile_kernels(call: Any, times: int, device: str) -> dict[str, Any]:
    """Return kernels and microseconds of one call, the longest first; of a GPU alone."""
    if device == "cpu":
        return {}
    number, microseconds = tally_kernels(call, times)
    return {
        "kernels": sum(number.values()) / times,
        "kernel_ms": sum(microseconds.values()) / times / 1e3,
        "longest": [
            [name[:90], number[name] / times, round(time / times / 1e3, 4)]
            for name, time in microseconds.most_common(40)
        ],
    }


def time_calls(call: Any, times: int, device: str) -> float:
    """Return milliseconds of a call, the mean of many, on a GPU between two events."""
    if device == "cpu":
        start = time.perf_counter()
        for _ in range(times):
            call()
        return 1e3 * (time.perf_counter() - start) / times
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        call()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / times


def measure_step(name: str, batch: int, device: str) -> dict[str, Any]:
    """Return the time of a captured step, its kernels, and the weights after all steps."""
    begin = time.perf_counter()
    loop = Loop(name, "portable eager" if device == "cpu" else "portable graph", batch, device)
    for _ in range(3):
        loop()
    ready = time.perf_counter() - begin
    rounds = sorted(time_calls(loop, 1, device) for _ in range(ROUNDS))
    weights = loop.digest()
    kernels = profile_kernels(loop, PROFILED, device)
    return {
        "has_recorded_weights": compare_with_record(name, batch, weights),
        "ms_median": rounds[ROUNDS // 2],
        "ms_least": rounds[0],
        "seconds_until_ready": ready,
        "weights_after": ROUNDS + 3,
        "weights": weights,
        **kernels,
    }


def compare_with_record(name: str, batch: int, weights: str) -> bool | None:
    """Return whether these are the weights of the record; None where it has no such step."""
    file = RESULTS / "portable-steps-cuda.json"
    if batch != RECORDED_BATCH or not file.exists():
        return None
    recorded = json.loads(file.read_text())["after"].get(name)
    if recorded is None or recorded["weights_after"] != ROUNDS + 3:
        return None
    return bool(recorded["weights"] == weights)


def measure_product(shape: tuple[int, int, int, int], columns: str, device: str) -> dict[str, Any]:
    """Return times and rates of a product, fused and in steps, and whether the bits agree."""
    from seedless.portable.context import CONTEXT
    from seedless.portable.exact.product import multiply_and_round

    batch, m, k, n = shape
    sizes = {"left": (batch, m, k), "right": (batch, k, n)}
    made = {}
    for side, (b, rows, across) in sizes.items():
        turned = torch.randn(b, across, rows, device=device).mT
        made[side] = turned if side in columns else turned.contiguous()
    found: dict[str, Any] = {}
    results = []
    for way, switch in (("fused", nullcontext), ("in steps", CONTEXT.multiply_in_steps)):
        with switch():

            def call() -> torch.Tensor:
                return multiply_and_round(made["left"], made["right"])

            results.append(call().clone())
            ms = time_calls(call, 10, device)
            found[way] = {
                "ms": ms,
                "tflops": 2e-9 * batch * m * k * n / ms,
                **profile_kernels(call, 3, device),
            }
    found["same bits"] = torch.equal(*(x.view(torch.int32) for x in results))
    return found


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("steps", "products"))
    parser.add_argument("--in-steps", action="store_true")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--batch", type=int, default=RECORDED_BATCH)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    on_cpu = options.device == "cpu"
    device = "cpu" if on_cpu else torch.cuda.get_device_name()
    results: dict[str, Any] = {"device": device, "torch": torch.__version__}
    results["environment"] = capture_environment()
    if options.in_steps:
        from seedless.portable.context import CONTEXT

        CONTEXT.fuses_products = False
    rows = options.models.split(",") if options.what == "steps" else list(SHAPES)
    for name in rows:
        try:
            if options.what == "steps":
                found = measure_step(name, options.batch, options.device)
            else:
                (batch, m, k, n), columns = SHAPES[name]
                shape = (min(batch, 3), 9, 20, 7) if options.small else (batch, m, k, n)
                found = measure_product(shape, columns, options.device)
        except Exception as error:  # the other rows are still worth having
            found = {"error": repr(error)}
        results[name] = found
        options.out.write_text(json.dumps(results, indent=1))
        short = {k: v for k, v in found.items() if k != "longest" and not isinstance(v, dict)}
        inner = {k: (v["ms"], v["tflops"]) for k, v in found.items() if isinstance(v, dict)}
        print(name, short, inner, flush=True)
    wrong = [name for name in rows if results[name].get("has_recorded_weights") is False]
    failed = [name for name in rows if "error" in results[name]]
    if wrong or failed:
        raise SystemExit(
            f"other weights than recorded: {wrong or 'none'}; failed: {failed or 'none'}"
        )


if __name__ == "__main__":
    main()
