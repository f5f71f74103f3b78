"""How much is measured, on which device, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.fused_block.tiles import BlockShape, list_shapes

PHASES = ("check", "steps", "blocks", "variants", "steps_fastest", "images")
WIDTH, BLOCKS, LENGTH = 40, (3, 4, 23), 1000  # of the full-size conformer


@dataclass(frozen=True)
class Settings:
    """Where and how much is measured."""

    device: str
    small: bool
    limit: float

    @property
    def precisions(self) -> tuple[str, ...]:
        """The precisions, that of the hardest target first; in the interpreter TF32 is fp32."""
        return ("fp32", "bf16") if self.small else ("tf32", "bf16", "fp32")

    @property
    def samples(self) -> int:
        """Recordings in a batch."""
        return 2 if self.small else 128

    @property
    def rounds(self) -> tuple[int, int]:
        """Turns of each step, and steps in a turn."""
        return (1, 1) if self.small else (5, 20)

    @property
    def wait_seconds(self) -> float:
        """The longest wait for the other processes: the interpreter takes minutes."""
        return self.limit if self.small else 240.0

    @property
    def reserved_seconds(self) -> float:
        """The seconds that timing variants leaves to whole steps with the fastest of them."""
        return 0.0 if self.small else 75.0

    def list_shapes(self) -> list[BlockShape]:
        """Return the shapes of the blocks, the most frequent first."""
        if self.small:
            return [BlockShape(11, 1, 32, 8, 2), BlockShape(11, 2, 32, 8, 1)]
        return sorted(list_shapes(WIDTH, BLOCKS, LENGTH), key=lambda shape: -shape.count)

    def each_shape(self, *, more: bool = False) -> Iterator[tuple[BlockShape, str]]:
        """Yield every shape and precision.

        ``more`` adds three products of TF32 in the place of one of float32: nearly as exact and
        faster, but not IEEE float32, and so no candidate for fp32. It is measured once, to know.
        """
        shapes = self.list_shapes()
        for precision in self.precisions:
            for shape in shapes:
                yield shape, precision
        if more and not self.small:
            yield shapes[0], "tf32x3"
