"""A plan says how every parameter is filled, before any is: parse, print, hash, then execute."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from seedless.core.digests import digest, digest_value
from seedless.init import filter_measures, layer_weights
from seedless.init.etf_head import simplex_etf

Float32 = NDArray[np.float32]
T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """One parameter's rule. The values are a pure function of this row."""

    parameter: str
    shape: tuple[int, ...]
    rule: str  # filters | frame | uniform | normal | constant
    basis: str | None = None
    stage: int | None = None
    filters: tuple[int, ...] | None = None  # (O, I, *kernel), whatever the parameter's own layout
    fan_in: int | None = None
    sigma: float | None = None  # standard deviation aimed at, scale included
    scale: float = 1.0  # residual exits: alpha
    value: float | None = None  # constants
    seed: int | None = None
    transposed_groups: int = 0
    zero_row: int | None = None

    def values(self) -> Float32:
        """Return the parameter's values: rounded to float32 once, here."""
        weights = self._weights()
        if self.transposed_groups:
            groups = self.transposed_groups
            out, inner, *kernel = weights.shape
            weights = weights.reshape(groups, out // groups, inner, *kernel).swapaxes(1, 2)
        return np.ascontiguousarray(weights, dtype=np.float32).reshape(self.shape)

    def _weights(self) -> layer_weights.Float64:
        """Return the weights as (O, I, *kernel) in float64."""
        weights = self._fill()
        if self.zero_row is not None:
            weights[self.zero_row] = 0.0
        return weights

    def _fill(self) -> layer_weights.Float64:
        if self.rule == "constant":
            return np.full(self.shape, self.value, dtype=np.float64)
        if self.rule == "filters":
            assert self.filters is not None
            assert self.basis is not None
            return layer_weights.structured_weights(self.basis, self.filters) * self.scale
        if self.rule == "frame":
            return simplex_etf(*self.shape)
        assert self.fan_in is not None
        assert self.seed is not None
        draw = (
            layer_weights.uniform_weights
            if self.rule == "uniform"
            else layer_weights.normal_weights
        )
        return draw(self.filters or self.shape, self.fan_in, self.seed, self.parameter)

    def key(self) -> Row:
        """Return the row without what cannot change its values, so that equal layers share work."""
        random = self.rule in ("uniform", "normal")
        return self if random else replace(self, parameter="", stage=None)

    def measure(self) -> dict[str, Any]:
        """Return distinct filters, coherence and orthogonality error; {} for constants and biases.

        Distinct filters and coherence are those of the values as filled; orthogonality is that of
        the basis vectors before centring.
        """
        if self.filters is None:
            return {}
        weights = self._weights().reshape(self.filters[0], -1)
        rounded = weights.astype(np.float32)
        before = layer_weights.basis_filters(self.basis, self.filters) if self.basis else weights
        likeness = filter_measures.coherence(rounded)
        return {
            "distinct": filter_measures.count_distinct(rounded),
            "coherence": likeness if likeness is None else float(f"{likeness:.6f}"),
            "orthogonality_error": float(f"{filter_measures.orthogonality_error(before):.1e}"),
        }


@dataclass(frozen=True)
class Plan:
    """How a model is initialized: one row a parameter. Printable, hashable, and executable.

    ``kept`` names the buffers that initialization leaves as they are.
    """

    basis: str
    rows: tuple[Row, ...]
    kept: tuple[str, ...] = ()

    def tensors(self) -> dict[str, Float32]:
        """Compute every parameter's values, by name. Equal layers share one array."""
        found = self._for_each(Row.values)
        # Drawing millions of values costs more than hashing them: not twice for a digest.
        self.__dict__.setdefault("digests", _digest_each(found))
        return found

    @cached_property
    def digests(self) -> dict[str, str]:
        """Each parameter's own digest."""
        return _digest_each(self._for_each(Row.values))

    @cached_property
    def digest(self) -> str:
        """One digest over every rule and every bit of every parameter."""
        rows = [{**asdict(row), "digest": self.digests[row.parameter]} for row in self.rows]
        return digest_value({"basis": self.basis, "rows": rows})

    @cached_property
    def measures(self) -> dict[str, dict[str, Any]]:
        """Distinct filters, coherence and orthogonality error of each weight, by name."""
        return self._for_each(Row.measure)

    def _for_each(self, compute: Callable[[Row], T]) -> dict[str, T]:
        """Return ``compute(row)`` by parameter name, computed once for rows that are alike."""
        made: dict[Row, T] = {}
        for row in self.rows:
            if row.key() not in made:
                made[row.key()] = compute(row)
        return {row.parameter: made[row.key()] for row in self.rows}

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain values: nothing in it depends on the machine."""
        rows = [
            {**asdict(row), **self.measures[row.parameter], "digest": self.digests[row.parameter]}
            for row in self.rows
        ]
        return {
            "basis": self.basis,
            "kept_buffers": list(self.kept),
            "parameters": sum(math.prod(row.shape) for row in self.rows),
            "digest": self.digest,
            "rows": rows,
        }

    def __str__(self) -> str:
        lines = [_HEADER, *(_line(name, row, seen) for name, row, seen in self._groups())]
        count = sum(math.prod(row.shape) for row in self.rows)
        lines += ["", f"{len(self.rows)} parameters, {count:,} values"]
        if self.kept:
            lines += [f"buffers left as they are: {', '.join(self.kept)}"]
        lines += [f"digest {self.digest}"]
        return "\n".join(lines)

    def _groups(self) -> Iterator[tuple[str, Row, dict[str, Any]]]:
        """Yield one line for parameters that differ in nothing but a number in their name.

        What was measured is the largest of the group, so that nothing worse hides behind a line.
        """
        groups: dict[tuple[str, Row], list[Row]] = {}
        for row in self.rows:
            pattern = re.sub(r"(?<![^.])\d+(?=\.)", "*", row.parameter)
            groups.setdefault((pattern, replace(row, parameter="")), []).append(row)
        for (_, row), rows in groups.items():
            names = [member.parameter for member in rows]
            name = names[0] if len(names) == 1 else f"{_merge(names)} x{len(names)}"
            seen = [self.measures[name] for name in names]
            worst = {
                key: max((m[key] for m in seen if m[key] is not None), default=None)
                for key in seen[0]
            }
            yield name, row, worst


def _digest_each(tensors: dict[str, Float32]) -> dict[str, str]:
    return {name: digest({name: values}) for name, values in tensors.items()}


def _merge(names: list[str]) -> str:
    """Return one name for several, with a star where they differ: a.0.w, a.1.w -> a.*.w."""
    parts = zip(*(name.split(".") for name in names), strict=True)
    return ".".join(part[0] if len(set(part)) == 1 else "*" for part in parts)


_HEADER = (
    f"{'parameter':<44} {'rule':<10} {'stage':>5} {'shape':<14} {'sigma':>9} "
    f"{'distinct':>8} {'coherence':>9} {'orth. error':>11}"
)


def _line(name: str, row: Row, seen: dict[str, Any]) -> str:
    rule = row.basis or row.rule
    if row.value is not None:
        rule = {0.0: "zeros", 1.0: "ones"}.get(row.value, str(row.value))
    cells = (
        f"{name:<44}",
        f"{rule:<10}",
        f"{_show(row.stage):>5}",
        f"{'x'.join(map(str, row.shape)):<14}",
        f"{_show(row.sigma, '.5f'):>9}",
        f"{_show(seen.get('distinct')):>8}",
        f"{_show(seen.get('coherence'), '.4f'):>9}",
        f"{_show(seen.get('orthogonality_error'), '.1e'):>11}",
    )
    return " ".join(cells).rstrip()


def _show(value: float | None, form: str = "") -> str:
    return "" if value is None else format(value, form)
