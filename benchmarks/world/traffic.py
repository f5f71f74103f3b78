"""Messages and bytes of a step of full-size models, which no batch size changes much."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

import seedless
from benchmarks.measure import write_results
from benchmarks.world.processes import join
from seedless.portable.batch.group_step import GroupStep

SAMPLES = 2


class Text(nn.Module):
    """A transformer encoder of the size of BERT base, without its table of words."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            768, 12, 3072, dropout=0.0, batch_first=True, activation="gelu"
        )
        self.body = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        self.head = nn.Linear(768, 5)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, 768) -> (batch, 5)."""
        out: Tensor = self.head(self.body(x).mean(1))
        return out


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "conformer": (lambda: seedless.build("conformer"), (12, 1000)),
    "baseline": (lambda: seedless.build("baseline"), (12, 1000)),
    "xresnet1d101": (lambda: seedless.build("xresnet1d101"), (12, 1000)),
    "resnet18": (lambda: seedless.build("resnet18", channels=3), (3, 32, 32)),
    "transformer, 12 layers of 768": (Text, (8, 768)),
}


def count_traffic(out: Path) -> None:
    """Take two steps of each model in a group of one process; write what the second one sent."""
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        join(0, 1, "gloo", folder)
        for name, (make, shape) in MODELS.items():
            model = make().train()
            seedless.initialize(model, "dct")
            numbers = torch.arange(SAMPLES * torch.Size(shape).numel()) * 40503 % 1024 - 512
            x = (numbers.float() / 256).view(SAMPLES, *shape)
            group_step = GroupStep(model.parameters(), dist.group.WORLD)

            def forward(x: Tensor, keys: Tensor, model: nn.Module = model) -> Tensor:
                with seedless.dropout_keys(samples=keys, epoch=0, axis=0):
                    y: Tensor = model(x)
                return y

            def loss_of(outputs: Tensor, x: Tensor, keys: Tensor) -> Tensor:
                return outputs.square().mean()

            for _ in range(2):
                before = group_step.exchange.messages, group_step.exchange.bytes
                with seedless.portable():
                    group_step.step(forward, loss_of, x, torch.arange(SAMPLES))
            assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
            rows[name] = {
                "messages": group_step.exchange.messages - before[0],
                "bytes": group_step.exchange.bytes - before[1],
                "parameters": sum(p.numel() for p in model.parameters()),
                "batch_norms": sum("BatchNorm" in type(m).__name__ for m in model.modules()),
            }
            print(name, rows[name], flush=True)
            results = {"rows": rows, "samples": SAMPLES}
            write_results("world-traffic", "python -m benchmarks.world traffic", results, out)
        dist.destroy_process_group()
