"""The first operation at which two recorded runs differ, and the tensors in which two states do.

Later differences may only be consequences of the first, so only the first is named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

import torch
from torch import Tensor

from seedless.audit.op_alignment import DRAW_PHASE, align_operations
from seedless.core.errors import NumericsError, SeedlessError
from seedless.script_recorder.op_record import (
    UNINITIALIZED,
    OpRecord,
    describe_type,
    is_plain,
    take_bytes,
)

# The name of an input that an operation made and that differs although all before it agree.
CHANGED_OUTSIDE = "a tensor changed outside every recorded operation"
_SOURCES = {"": CHANGED_OUTSIDE, UNINITIALIZED: "uninitialized memory"}
ENDED = "nothing: the run had ended"

Kind = Literal["op", "draw", "source", "setting", "program"]


@dataclass(frozen=True)
class Finding:
    """The first operation at which two runs differ.

    Attributes:
        kind: "op": inputs and settings are equal and the outputs are not. "draw": the same, and the
            operation drew from a generator. "source": an input that no operation made differs.
            "setting": an argument that is no tensor differs. "program": the two runs do not perform
            the same operation here.
        index: how many operations agreed before it.
        phase, module, op, note, line, draws, device: as recorded in the first run, or in the one
            that performs it.
        shapes: those of its outputs that differ.
        names: the tensors that differ, for "source".
        left, right: the settings that differ, or for "program" what each run performed.
        origins: lines of the script that explain the content of those tensors, for "source".
        unwritten: among its inputs is uninitialized memory, whose bytes are not compared.
        downstream: how many of the operations after it differ too.
        total: how many operations the longer run has.
    """

    kind: Kind
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
    line: str = ""
    draws: str = ""
    device: str = ""
    origins: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return it in two or three sentences."""
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
        where = _show_place(self.phase, self.module, self.op, self.note, self.line)
        if self.kind == "draw":
            return (
                f"The runs begin to differ at {where}: it drew from the generator {self.draws!r} "
                "and got other values, from equal inputs."
            )
        values = f"{', '.join(self.left)} against {', '.join(self.right)}"
        if self.kind == "setting":
            return (
                f"The runs begin to differ at {where}: its tensors are equal, its settings are not "
                f"({values})."
            )
        if self.kind == "source":
            too = f" Its settings differ too ({values})." if self.left or self.right else ""
            verb = "differs" if len(self.names) == 1 else "differ"
            return (
                f"The difference comes from outside the operations: {_list(self.names)} {verb} "
                f"already on entering {where}.{too}"
            )
        fresh = " Uninitialized memory among its inputs was not compared." if self.unwritten else ""
        return (
            f"The runs begin to differ at {where}: its inputs and settings are equal to the bit, "
            f"and its output is not (of shape {_list([str(s) for s in self.shapes])}).{fresh}"
        )


def find_first_difference(
    a: Sequence[OpRecord], b: Sequence[OpRecord], *, aligned: bool = False
) -> Finding | None:
    """Return the first operation at which two runs differ, or None if every record agrees.

    Args:
        a: the operations of one run.
        b: those of the other.
        aligned: leave out operations that only one run performs and on which nothing depends, such
            as those of a progress bar. Otherwise operations are paired by position.
    """
    # [Step 1] Pair the operations; a run has none for what only the other performs.
    pairs = align_operations(a, b) if aligned else list(zip_longest(a, b))
    differing = [index for index, (one, two) in enumerate(pairs) if not _agree(one, two)]
    if not differing:
        return None
    index = differing[0]
    one, two = pairs[index]
    shown = one or two
    assert shown is not None  # no pair is of nothing with nothing
    # [Step 2] Decide the kind: another operation, another input from outside, another setting, or
    # the same of all three and another output.
    names: tuple[str, ...] = ()
    left, right = _show_step(one), _show_step(two)
    kind: Kind = "program"
    if one is not None and two is not None and left == right:
        names = _name_sources(one, two)
        left, right = _separate(one.settings, two.settings)
        kind = "source" if names else "setting" if left or right else "draw" if one.draws else "op"
    return Finding(
        kind=kind,
        index=index,
        phase=shown.phase,
        module=shown.module,
        op=shown.op,
        shapes=_list_differing_shapes(one, two),
        note=shown.note,
        names=names,
        left=left,
        right=right,
        unwritten=UNINITIALIZED in shown.inputs,
        downstream=len(differing) - 1,
        total=len(pairs),
        line=shown.line,
        draws=shown.draws,
        device=shown.device,
        origins=_list_origins(one, two) if names else (),
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
    """Return a row for each tensor that differs in any byte, sorted by name."""
    if a.keys() != b.keys():
        alone = sorted(a.keys() ^ b.keys())
        raise SeedlessError(
            f"expected two states with the same names, got {len(alone)} that only one has "
            f"({_list(alone)}); compare two states of one model"
        )
    rows = (_compare(name, a[name], b[name]) for name in sorted(a))
    return [row for row in rows if row is not None]


def _compare(name: str, one: Tensor, two: Tensor) -> TensorDifference | None:
    if one.dtype != two.dtype or one.shape != two.shape:
        raise SeedlessError(
            f"expected {name} with one dtype and shape in both states, got {one.dtype} "
            f"{tuple(one.shape)} and {two.dtype} {tuple(two.shape)}; compare states of one model"
        )
    if not (is_plain(one) and is_plain(two)):
        raise NumericsError(
            f"{name} is a tensor of another form ({describe_type(one)}), and only dense ones can "
            "be compared byte by byte; make it dense"
        )
    changed = take_bytes(one) ^ take_bytes(two)
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
    """Whether two records agree in everything that was computed; names and notes only explain."""
    if one is None or two is None:
        return False
    return (
        _show_step(one) == _show_step(two)
        and one.inputs == two.inputs
        and one.settings == two.settings
        and one.outputs == two.outputs
    )


def _show_step(record: OpRecord | None) -> tuple[str, ...]:
    """Return which operation was performed where, without any value."""
    if record is None:
        return (ENDED,)
    line = record.line if record.phase == DRAW_PHASE else ""
    place = _show_place(record.phase, record.module, record.op, "", line)
    return (place, f"{len(record.inputs)} tensors in")


def _show_place(phase: str, module: str, op: str, note: str, line: str) -> str:
    where = f"in module {module}" if module else "at the top level"
    details = ", ".join(filter(None, (phase, note, line)))
    return f"{op} {where}" + (f" ({details})" if details else "")


def _name_sources(one: OpRecord, two: OpRecord) -> tuple[str, ...]:
    """Return the names of the inputs whose bytes differ, each once."""
    named = zip(one.inputs, two.inputs, one.sources, two.sources, strict=True)
    labels = (s or t for left, right, s, t in named if left != right)
    return tuple(dict.fromkeys(_SOURCES.get(label, label) for label in labels))


def _list_origins(one: OpRecord | None, two: OpRecord | None) -> tuple[str, ...]:
    """Return the lines that explain the content of the inputs whose bytes differ, each once."""
    if one is None or two is None:
        return ()
    known = zip(one.inputs, two.inputs, one.origins, strict=False)
    lines = [line for a, b, origin in known if a != b and origin for line in origin.split(", ")]
    return tuple(dict.fromkeys(lines))


def _list_differing_shapes(
    one: OpRecord | None, two: OpRecord | None
) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of the first run's outputs that differ from the second's."""
    if one is None or two is None:
        return ()
    outputs = zip_longest(one.shapes, one.outputs, two.outputs)
    return tuple(shape for shape, left, right in outputs if shape is not None and left != right)


def _list(items: Sequence[str]) -> str:
    """Return items joined by commas; of more than three, the first three and how many more."""
    more = [f"{len(items) - 3} more"] if len(items) > 3 else []
    return ", ".join([*items[:3], *more])


def _separate(one: Sequence[str], two: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the settings that only the first run has, and those that only the second has."""
    left = tuple(setting for setting in one if setting not in two)
    right = tuple(setting for setting in two if setting not in one)
    return left, right
