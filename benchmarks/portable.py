"""What portable arithmetic costs: a training step in it and in plain PyTorch, in turns.

    python -m benchmarks.portable [--device cuda] [--out FOLDER]

It writes the results, and fills docs/portable.md from what is recorded and from the table of ops.
``--page`` only does the latter.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

import seedless
from benchmarks.measure import RESULTS, take_turns, write_results
from seedless.numerics.portable.drawn import Drawn
from seedless.numerics.portable.table import EXACT, HANDLERS, INTEGER
from seedless.pipeline.portable import make_model

PAGE = RESULTS.parent.parent / "docs" / "portable.md"
SHAPES = {"conformer": (32, 12, 1000), "resnet18": (64, 3, 32, 32)}
ROUNDS = 5


def make_step(
    name: str, device: str, context: Callable[[], AbstractContextManager[None]]
) -> Callable[[], None]:
    """Return a training step of a full-size model."""
    model = make_model(name, False).to(device).train()
    x = Drawn(SHAPES[name]).make(name, torch.device(device))
    y = torch.arange(len(x), device=device) % 7
    keys = torch.arange(len(x), device=device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> None:
        with context(), seedless.draws(samples=keys, epoch=0):
            optimizer.zero_grad()
            torch.autograd.backward(F.cross_entropy(model(x), y))
            optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return step


def measure(device: str) -> dict[str, Any]:
    """Return the seconds a step takes, plain and portable, for each model."""
    return {
        name: {"shape": list(shape)}
        | take_turns(
            {
                "plain": make_step(name, device, nullcontext),
                "portable": make_step(name, device, seedless.portable),
            },
            ROUNDS,
        )
        for name, shape in SHAPES.items()
    }


def describe_ops() -> str:
    """Return the table of ops."""
    rows = {"replaced": HANDLERS, "as they are": EXACT, "on integers": INTEGER}
    lines = ["| | ops |", "|---|---|"]
    for name, ops in rows.items():
        lines.append(f"| {name}, {len(ops)} | {', '.join(f'`{op}`' for op in sorted(ops))} |")
    return "\n".join(lines)


def describe_cost() -> str:
    """Return a table of every recorded device, or a sentence where none is."""
    files = [
        file for place in ("cpu", "cuda") if (file := RESULTS / f"portable-{place}.json").exists()
    ]
    if not files:
        return "No measurement is recorded yet; `python -m benchmarks.portable` makes one."
    lines = [
        "| where | a training step of | plain, ms | portable, ms | ratio |",
        "|---|---|---|---|---|",
    ]
    for file in files:
        for name, row in json.loads(file.read_text())["results"].items():
            plain, ours = row["plain"] * 1e3, row["portable"] * 1e3
            size = " x ".join(map(str, row["shape"]))
            link = f"[{file.stem.removeprefix('portable-')}](../benchmarks/results/{file.name})"
            lines.append(
                f"| {link} | {name}, {size} | {plain:.0f} | {ours:.0f} | {ours / plain:.1f} |"
            )
    return "\n".join(lines)


def make_page(text: str) -> str:
    """Return the page with both parts that are not typed filled in."""
    for mark, part in (("ops", describe_ops()), ("cost", describe_cost())):
        before, rest = text.split(f"<!-- {mark} -->")
        after = rest.split(f"<!-- /{mark} -->")[1]
        text = f"{before}<!-- {mark} -->\n{part}\n<!-- /{mark} -->{after}"
    return text


def main() -> None:
    """Measure, write, and fill the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if not given.page:
        command = f"python -m benchmarks.portable --device {given.device}"
        print(write_results(f"portable-{given.device}", command, measure(given.device), given.out))
    PAGE.write_text(make_page(PAGE.read_text()))


if __name__ == "__main__":
    main()
