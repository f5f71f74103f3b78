"""The initialization plan: how every parameter will be filled. It is printed and hashed first."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.digests import digest, digest_value
from seedless.init import filter_measures, layer_weights
from seedless.init.etf_head import simplex_etf
from seedless.init.random_matrices import CounterKey
from seedless.init.tabled_matrix import TabledMatrix

Float32 = NDArray[np.float32]


@dataclass(frozen=True)
class PlanRow:
    """How one parameter is filled; its values are a pure function of this row."""

    parameter: str
    shape: tuple[int, ...]
    rule: (
        str  # filters | scrambled | orthogonal | uniform | normal | frame | norms | constant | kept
    )
    basis: str | None = None
    stage: int | None = None
    filters: tuple[int, ...] | None = None  # (O, I, *kernel), whatever the parameter's own layout
    fan_in: int | None = None
    sigma: float | None = None  # the standard deviation of the values, scale included
    scale: float = 1.0  # of residual exits
    value: float | None = None  # constants
    seed: int | None = None
    transposed_groups: int = 0
    zero_row: int | None = None
    offset: int | None = None  # of seed-free starts that are drawn from the counter
    norms_of: PlanRow | None = None  # the weight v of which these are the norms (weight_norm)
    kept: str = ""  # why it stays what the model set it to: frozen, zeros, constant or table
    kept_digest: str | None = None  # of values that no rule makes
    first_row: int = 0  # rows of the basis that are left out

    def values(self) -> Float32:
        """Return the parameter's values: float32 of its shape, rounded once, here."""
        weights = self._compute_weights()
        if self.transposed_groups:
            # A transposed convolution stores its weight as (I, O / groups, *kernel).
            groups = self.transposed_groups
            out, inner, *kernel = weights.shape
            weights = weights.reshape(groups, out // groups, inner, *kernel).swapaxes(1, 2)
        return np.ascontiguousarray(weights, dtype=np.float32).reshape(self.shape)

    def _compute_weights(self) -> NDArray[Any]:
        """Return the weights as (O, I, *kernel): float32 if made from a matrix, else float64."""
        weights = self._apply_rule()
        if self.zero_row is not None:
            weights[self.zero_row] = 0.0
        return weights

    def _apply_rule(self) -> NDArray[Any]:
        if self.rule == "constant":
            return np.full(self.shape, self.value, dtype=np.float64)
        if self.rule == "frame":
            return simplex_etf(*self.shape)
        if self.norms_of is not None:
            return layer_weights.weight_norms(self.norms_of.values(), self.shape)
        if self.rule in ("uniform", "normal"):
            assert self.fan_in is not None
            draw = (
                layer_weights.uniform_weights
                if self.rule == "uniform"
                else layer_weights.normal_weights
            )
            return draw(self.filters or self.shape, self.fan_in, self._counter_key) * self.scale
        assert self.filters is not None
        return layer_weights.scale_filters(self._find_filters(), self.filters, self.scale)

    def _find_filters(self) -> TabledMatrix:
        """Return the filters of a weight that is made from a matrix, before centring: (O, F)."""
        assert self.filters is not None
        if self.rule == "scrambled":
            return layer_weights.scrambled_filters(self.filters, self._counter_key)
        if self.rule == "orthogonal":
            return layer_weights.orthogonal_filters(self.filters, self._counter_key)
        assert self.basis is not None
        filters, *features = self.filters
        rows = (filters + self.first_row, *features)
        return layer_weights.basis_filters(self.basis, rows).drop_rows(self.first_row)

    @property
    def _counter_key(self) -> CounterKey:
        """What the numbers are drawn under: (seed, name), or (offset, name and shape)."""
        if self.offset is not None:
            return self.offset, f"{self.parameter} {'x'.join(map(str, self.shape))}"
        assert self.seed is not None
        return self.seed, self.parameter

    def as_dict(self) -> dict[str, Any]:
        """Return its fields as plain values; the later ones only where they are set.

        Plans without them keep the digests from before there were such fields.
        """
        fields = asdict(self)
        unset = {"offset": None, "norms_of": None, "kept": "", "kept_digest": None, "first_row": 0}
        for name, value in unset.items():
            if getattr(self, name) == value:
                del fields[name]
        if self.norms_of is not None:
            fields["norms_of"] = self.norms_of.parameter
        return fields

    def key(self) -> PlanRow:
        """Return the row without what does not affect its values: equal layers have one key."""
        is_drawn = self.seed is not None or self.offset is not None
        return self if is_drawn else replace(self, parameter="", stage=None)

    def measure(self) -> dict[str, Any]:
        """Return distinct filters, coherence and orthogonality error; {} for constants and biases.

        Distinct filters and coherence are measured on the values; orthogonality is measured on the
        filters before centring.
        """
        if self.filters is None:
            return {}
        weights = self._compute_weights().reshape(self.filters[0], -1)
        rounded = weights.astype(np.float32, copy=False)
        has_matrix = self.rule in ("filters", "scrambled", "orthogonal")
        before = self._find_filters().fill() if has_matrix else weights
        coherence = filter_measures.coherence(rounded)
        return {
            "distinct": filter_measures.count_distinct(rounded),
            "coherence": coherence if coherence is None else float(f"{coherence:.6f}"),
            "orthogonality_error": float(f"{filter_measures.orthogonality_error(before):.1e}"),
        }


@dataclass(frozen=True)
class Plan:
    """How a model is initialized: one row for each parameter, and the buffers that are kept.

    Example:
        >>> plan = seedless.init.make_plan(model, "dct")
        >>> print(plan)
    """

    basis: str
    rows: tuple[PlanRow, ...]
    kept_buffers: tuple[str, ...] = ()

    def tensors(self) -> dict[str, Float32]:
        """Return every filled parameter's values by name. Equal layers share one array."""
        values = dict(self.iterate_tensors())
        return {row.parameter: values[row.parameter] for row in self.rows if row.rule != "kept"}

    def iterate_tensors(self) -> Iterator[tuple[str, Float32]]:
        """Yield each filled parameter's name and values, equal layers one after the other.

        Only one layer's values are in memory at a time, if the caller does not keep them.
        """
        digests = {row.parameter: row.kept_digest for row in self.rows if row.kept_digest}
        for rows in self._group_equal_rows().values():
            if rows[0].rule == "kept":
                continue
            values = rows[0].values()
            for row in rows:
                # Computing millions of values takes longer than hashing them: hash them now.
                digests[row.parameter] = digest({row.parameter: values})
                yield row.parameter, values
        self.__dict__.setdefault("digests", digests)

    @cached_property
    def digests(self) -> dict[str, str]:
        """Each parameter's own digest."""
        for _ in self.iterate_tensors():
            pass  # it leaves the digests here
        # What lies in `__dict__` has no type for mypy.
        return self.__dict__["digests"]  # type: ignore[no-any-return]

    @cached_property
    def digest(self) -> str:
        """One digest over every rule and every bit of every parameter."""
        rows = [{**row.as_dict(), "digest": self.digests[row.parameter]} for row in self.rows]
        return digest_value({"basis": self.basis, "rows": rows})

    @cached_property
    def measures(self) -> dict[str, dict[str, Any]]:
        """Distinct filters, coherence and orthogonality error of each weight, by name."""
        computed = {key: rows[0].measure() for key, rows in self._group_equal_rows().items()}
        return {row.parameter: computed[row.key()] for row in self.rows}

    def _group_equal_rows(self) -> dict[PlanRow, list[PlanRow]]:
        """Return the rows of each key: their values are equal, and computed once."""
        groups: dict[PlanRow, list[PlanRow]] = {}
        for row in self.rows:
            groups.setdefault(row.key(), []).append(row)
        return groups

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, which do not depend on the machine."""
        rows = [
            {**row.as_dict(), **self.measures[row.parameter], "digest": self.digests[row.parameter]}
            for row in self.rows
        ]
        return {
            "basis": self.basis,
            "kept_buffers": list(self.kept_buffers),
            "parameters": sum(math.prod(row.shape) for row in self.rows),
            "digest": self.digest,
            "rows": rows,
        }

    def __str__(self) -> str:
        lines = [_HEADER, *(_format_line(*group) for group in self._group_rows())]
        count = sum(math.prod(row.shape) for row in self.rows)
        lines += ["", f"{len(self.rows)} parameters, {count:,} values"]
        if self.kept_buffers:
            lines += [f"buffers left as they are: {', '.join(self.kept_buffers)}"]
        lines += [f"digest {self.digest}"]
        return "\n".join(lines)

    def _group_rows(self) -> Iterator[tuple[str, PlanRow, dict[str, Any]]]:
        """Yield (name, row, measures) for parameters that differ only in a number in their names.

        The measures are the largest of the group, so that a printed line does not hide a worse one.
        """
        groups: dict[tuple[str, PlanRow], list[PlanRow]] = {}
        for row in self.rows:
            pattern = re.sub(r"(?<![^.])\d+(?=\.)", "*", row.parameter)
            groups.setdefault((pattern, replace(row, parameter="")), []).append(row)
        for (_, row), rows in groups.items():
            names = [member.parameter for member in rows]
            name = names[0] if len(names) == 1 else f"{_merge_names(names)} x{len(names)}"
            measures = [self.measures[name] for name in names]
            largest = {
                key: max((m[key] for m in measures if m[key] is not None), default=None)
                for key in measures[0]
            }
            yield name, row, largest


def _merge_names(names: list[str]) -> str:
    """Return one name for several, with a star where they differ: a.0.w, a.1.w -> a.*.w."""
    parts = zip(*(name.split(".") for name in names), strict=True)
    return ".".join(part[0] if len(set(part)) == 1 else "*" for part in parts)


_HEADER = (
    f"{'parameter':<44} {'rule':<10} {'stage':>5} {'shape':<14} {'sigma':>9} "
    f"{'distinct':>8} {'coherence':>9} {'orth. error':>11}"
)


def _format_line(name: str, row: PlanRow, measures: dict[str, Any]) -> str:
    rule = row.basis or row.rule
    if row.value is not None:
        rule = {0.0: "zeros", 1.0: "ones"}.get(row.value, f"{row.value:.3g}")
    if row.kept:
        rule = row.kept if row.value is None else f"kept {rule}"
    cells = (
        f"{name:<44}",
        f"{rule:<10}",
        f"{_format_value(row.stage):>5}",
        f"{'x'.join(map(str, row.shape)):<14}",
        f"{_format_value(row.sigma, '.5f'):>9}",
        f"{_format_value(measures.get('distinct')):>8}",
        f"{_format_value(measures.get('coherence'), '.4f'):>9}",
        f"{_format_value(measures.get('orthogonality_error'), '.1e'):>11}",
    )
    return " ".join(cells).rstrip()


def _format_value(value: float | None, form: str = "") -> str:
    return "" if value is None else format(value, form)
