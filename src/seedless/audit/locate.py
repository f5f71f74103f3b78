"""The first operation at which two recorded runs part, and the tensors in which two states differ.

Whatever differs after the first difference may only follow from it, so only the first is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

import torch
from torch import Tensor

from seedless.audit.op_record import UNINITIALIZED, OpRecord, take_bytes
from seedless.core.errors import SeedlessError

# What an input is called that an operation made, and that differs although all before it agree.
CHANGED_OUTSIDE = "a tensor changed outside every recorded operation"
_SOURCES = {"": CHANGED_OUTSIDE, UNINITIALIZED: "uninitialized memory"}
ENDED = "nothing: the run had ended"


@dataclass(frozen=True)
class Finding:
    """Where two runs part.

    Attributes:
        kind: "op": inputs and settings match and the outputs do not. "source": something that no
            operation made goes in with other bytes. "setting": an argument that is no tensor
            differs. "program": the two runs do not perform the same operation here.
        index: position of the operation, which is also how many agreed before it.
        phase, module, op, note: as recorded in the first run, or in the one that went on.
        shapes: those of its outputs that differ.
        names: the tensors that differ, for "source".
        left, right: the settings that differ, or for "program" what each run performed.
        unwritten: among its inputs was uninitialized memory, whose bytes are not compared.
        downstream: how many of the operations after it differ too.
        total: how many operations the longer run has.
    """

    kind: Literal["op", "source", "setting", "program"]
    index: int
    phase: str
    module: str
    op: str
    shapes: tuple[tuple[int, ...], ...]
    note: str
    names: tuple[str, ...]
    left: tuple[str, ...]
    right: tuple[str, ...]
    unwritten: bool
    downstream: int
    total: int

    def describe(self) -> str:
        """Say it in two or three plain sentences."""
        rest = self.total - self.index - 1
        return (
            f"{self._describe_kind()} {self.index} of {self.total} operations agreed before it; "
            f"{self.downstream} of the {rest} after it differ too."
        )

    def _describe_kind(self) -> str:
        if self.kind == "program":
            return (
                f"The runs stop performing the same operations: the first performs "
                f"{', '.join(self.left)}; the second {', '.join(self.right)}."
            )
        where = _show_place(self.phase, self.module, self.op, self.note)
        values = f"{', '.join(self.left)} against {', '.join(self.right)}"
        if self.kind == "setting":
            return f"The runs part at {where}: its tensors match, its settings do not ({values})."
        if self.kind == "source":
            too = f" Its settings differ too ({values})." if self.left or self.right else ""
            verb = "differs" if len(self.names) == 1 else "differ"
            return (
                f"The difference comes from outside the operations: {_list(self.names)} {verb} "
                f"already on entering {where}.{too}"
            )
        fresh = " Uninitialized memory among its inputs was not compared." if self.unwritten else ""
        return (
            f"The runs part at {where}: its inputs and settings match to the bit, and its output "
            f"does not (of shape {_list([str(shape) for shape in self.shapes])}).{fresh}"
        )


def find_first(a: Sequence[OpRecord], b: Sequence[OpRecord]) -> Finding | None:
    """Return where two runs part first, or None if every record agrees."""
    pairs = list(zip_longest(a, b))
    differing = [index for index, (one, two) in enumerate(pairs) if not _agree(one, two)]
    if not differing:
        return None
    index = differing[0]
    one, two = pairs[index]
    shown = one or two
    names: tuple[str, ...] = ()
    left, right = _show_step(one), _show_step(two)
    kind: Literal["op", "source", "setting", "program"] = "program"
    if one is not None and two is not None and left == right:
        names = _name_sources(one, two)
        left, right = _differ(one.settings, two.settings)
        kind = "source" if names else "setting" if left or right else "op"
    return Finding(
        kind=kind,
        index=index,
        phase=shown.phase,
        module=shown.module,
        op=shown.op,
        shapes=_take_differing(one, two),
        note=shown.note,
        names=names,
        left=left,
        right=right,
        unwritten=UNINITIALIZED in shown.inputs,
        downstream=len(differing) - 1,
        total=len(pairs),
    )


@dataclass(frozen=True)
class TensorDifference:
    """One tensor whose bytes differ between two states.

    Attributes:
        name: its name in both.
        elements: how many it has.
        differing: how many of them differ in any bit.
        first: index of the first that does.
        left, right: the two values there.
        largest: the largest absolute difference, in float64; NaN where a NaN takes part.
        bits: how many bits differ, if exactly one element does.
    """

    name: str
    elements: int
    differing: int
    first: tuple[int, ...]
    left: bool | int | float | complex
    right: bool | int | float | complex
    largest: float
    bits: int | None


def compare_tensors(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> list[TensorDifference]:
    """Return a row for each tensor that differs, sorted by name; none if all bytes agree."""
    if a.keys() != b.keys():
        alone = sorted(a.keys() ^ b.keys())
        raise SeedlessError(
            f"expected two states with the same names, got {len(alone)} that only one has "
            f"({', '.join(alone[:3])}{', ...' if len(alone) > 3 else ''}); compare like with like"
        )
    rows = (_compare(name, a[name], b[name]) for name in sorted(a))
    return [row for row in rows if row is not None]


def _compare(name: str, one: Tensor, two: Tensor) -> TensorDifference | None:
    if one.dtype != two.dtype or one.shape != two.shape:
        raise SeedlessError(
            f"expected {name} alike in both states, got {one.dtype} {tuple(one.shape)} and "
            f"{two.dtype} {tuple(two.shape)}; compare like with like"
        )
    changed = take_bytes(one, name) ^ take_bytes(two, name)
    positions = changed.view(one.numel(), one.itemsize).any(1).nonzero().flatten()
    if len(positions) == 0:
        return None
    first = int(positions[0])
    wide = torch.complex128 if one.is_complex() else torch.float64
    left, right = one.detach().cpu().reshape(-1), two.detach().cpu().reshape(-1)
    gaps = (left[positions].to(wide) - right[positions].to(wide)).abs()
    return TensorDifference(
        name=name,
        elements=one.numel(),
        differing=len(positions),
        first=tuple(int(i) for i in torch.unravel_index(positions[0], one.shape)),
        left=left[first].item(),
        right=right[first].item(),
        largest=float(gaps.max()),
        bits=sum(byte.bit_count() for byte in changed.tolist()) if len(positions) == 1 else None,
    )


def _agree(one: OpRecord | None, two: OpRecord | None) -> bool:
    """Whether two records agree in all that was computed; names and notes only explain."""
    if one is None or two is None:
        return False
    return (
        _show_step(one) == _show_step(two)
        and one.inputs == two.inputs
        and one.settings == two.settings
        and one.outputs == two.outputs
    )


def _show_step(record: OpRecord | None) -> tuple[str, ...]:
    """Return what was performed, apart from any value: what makes two steps the same step."""
    if record is None:
        return (ENDED,)
    place = _show_place(record.phase, record.module, record.op, "")
    return (place, f"{len(record.inputs)} tensors in")


def _show_place(phase: str, module: str, op: str, note: str) -> str:
    where = f"in module {module}" if module else "at the top level"
    details = ", ".join(filter(None, (phase, note)))
    return f"{op} {where}" + (f" ({details})" if details else "")


def _name_sources(one: OpRecord, two: OpRecord) -> tuple[str, ...]:
    """Return the names of the inputs whose bytes differ, each once."""
    named = zip(one.inputs, two.inputs, one.sources, two.sources, strict=True)
    labels = (s or t for left, right, s, t in named if left != right)
    return tuple(dict.fromkeys(_SOURCES.get(label, label) for label in labels))


def _take_differing(one: OpRecord | None, two: OpRecord | None) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of the first run's outputs that the second run has not, place by place."""
    if one is None or two is None:
        return ()
    found = zip_longest(one.shapes, one.outputs, two.outputs)
    return tuple(shape for shape, left, right in found if shape is not None and left != right)


def _list(items: Sequence[str]) -> str:
    """Write items one after another; of many, the first three and how many more."""
    more = [f"{len(items) - 3} more"] if len(items) > 3 else []
    return ", ".join([*items[:3], *more])


def _differ(one: Sequence[str], two: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the settings that only one side has, side by side."""
    left = tuple(setting for setting in one if setting not in two)
    right = tuple(setting for setting in two if setting not in one)
    return left, right
