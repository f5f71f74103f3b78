"""Make the random draws of any model functions of sample, epoch and layer: no generator, no seed.

Three things are done to a model, in place:

1. Torch's dropout layers are replaced by layers that draw by sample.
2. The root and every module that torch did not write note their calls, so that a draw inside them
   has a name. While the model computes in training mode, functions of torch's that draw (functional
   dropout, attention, recurrent layers, uniform and Bernoulli numbers) draw by these names too.
3. What would still draw from a generator is refused: a torch function when it is called, with
   module and line; all else after the first forward pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import nn

from seedless.core.errors import ModelError
from seedless.models.call_hooks import CallSettings, add_call_hooks
from seedless.models.converted_layers import REPLACEMENTS
from seedless.models.draw_scan import DrawLine, ModuleDraws, scan_module
from seedless.numerics.sample_draws import SHARED, Axis

M = TypeVar("M", bound=nn.Module)
_TRANSFORMER_LAYERS = (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
_WRAPPERS = (
    "DataParallel",
    "DistributedDataParallel",
    "FullyShardedDataParallel",
    "OptimizedModule",
)
_RECURRENT = (nn.LSTM, nn.GRU, nn.RNN)
_DRAWING_IN_TORCH = (nn.RReLU, nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)
_DRAWING = (*_RECURRENT, nn.MultiheadAttention, *_DRAWING_IN_TORCH)


@dataclass(frozen=True)
class Replaced:
    """A dropout layer that was replaced: its name in the model, its class, its rate."""

    name: str
    kind: str
    p: float

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}(p={self.p})"


@dataclass(frozen=True)
class ModuleDraw:
    """A draw of a module: its name in the model, its class, and the line."""

    name: str
    kind: str
    draw: DrawLine

    def __str__(self) -> str:
        return f"{self.name or 'the model'} ({self.kind}): {self.draw}"


@dataclass(frozen=True)
class ConversionReport:
    """What `convert` did to a model.

    Attributes:
        replaced: layers that were replaced.
        intercepted: draws that will be made by sample when they happen.
        remaining: draws that no form by sample is known for, and draws of modules in ``keep``. The
            first are refused when they happen in training mode.
    """

    replaced: tuple[Replaced, ...]
    intercepted: tuple[ModuleDraw, ...]
    remaining: tuple[ModuleDraw, ...]

    def __str__(self) -> str:
        parts = {
            "replaced": self.replaced,
            "intercepted": self.intercepted,
            "remaining": self.remaining,
        }
        return "\n".join(
            f"{title}: {len(found)}" + "".join(f"\n  {one}" for one in found)
            for title, found in parts.items()
        )


def convert(model: M, *, keep: Iterable[str] = (), axes: Mapping[str, Axis] | None = None) -> M:
    """Make a model's dropout and other draws seed-free, in place, and return the model.

    In training mode the model then needs the keys of the samples: those that `seedless.Sampler`
    delivers with each batch, or `seedless.dropout_keys` around the forward pass.
    ``model.seedless_report`` says what was replaced and what remains.

    Args:
        model: any nn.Module.
        keep: names of modules, as in ``model.named_modules()``, that are left as they are with
            everything in them. Their draws use torch's generator.
        axes: the axis of the samples in what a module draws for, by the module's name, where it
            cannot be found: 1 for input with time first, "shared" for a draw that does not belong
            to single samples, such as dropout on a table of positions. It holds for all modules
            inside that module too, unless they are named themselves.

    Example:
        >>> model = seedless.convert(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)))
        >>> print(model.seedless_report)
        replaced: 1
          1: Dropout(p=0.5)
        intercepted: 0
        remaining: 0
    """
    _check_model(model)
    named = dict(model.named_modules())
    axes = dict(axes or {})
    kept = _find_kept(named, keep)
    _check_names("axes", axes, named)
    _check_axes(axes)
    inherited = {name: _find_nearest(name, axes) for name in named}
    # [Step 1] Replace torch's dropout layers.
    known_axes = {**inherited, **_find_transformer_axes(named), **axes}
    replaced = []
    for name, module in named.items():
        if name not in kept and type(module) in REPLACEMENTS:
            layer = _replace(model, module, named)
            layer.name_layer(name, known_axes.get(name))
            replaced.append(Replaced(name, type(module).__name__, module.p))
        elif type(module) in REPLACEMENTS.values():  # converted before, maybe as part of a model
            module.name_layer(name, known_axes.get(name))
    # [Step 2] Let modules note their calls.
    named = dict(model.named_modules())
    for name, module in named.items():
        if not name or not _is_of_torch(module) or isinstance(module, _DRAWING) or name in kept:
            found = _find_draws(module)
            draws = bool(found.intercepted or found.remaining or found.unclear)
            add_call_hooks(
                module, CallSettings(name, inherited[name], name in kept, draws, not kept)
            )
    # [Step 3] Report.
    report = ConversionReport(tuple(replaced), *_list_draws(named, kept))
    setattr(model, "seedless_report", report)  # noqa: B010  # no tensor or module, as mypy expects
    return model


def _check_model(model: nn.Module) -> None:
    """Refuse a single layer, and a wrapper, whose name would be part of every module's name."""
    kind = type(model).__name__
    if not isinstance(model, nn.Module):
        raise ModelError(f"expected a model, an nn.Module, got {kind}")
    if type(model) in REPLACEMENTS:
        raise ModelError(
            f"expected a model, got a single {kind}, which cannot be replaced in place: convert "
            "the model that holds it, or use seedless.Dropout"
        )
    if kind in _WRAPPERS and type(model).__module__.startswith("torch."):
        raise ModelError(
            f"expected a model, got it wrapped in {kind}: call seedless.convert(model) first, and "
            "wrap or compile it then, so that its masks do not depend on the wrapper"
        )


def _check_names(what: str, names: Iterable[str], named: Mapping[str, nn.Module]) -> None:
    if unknown := sorted(set(names) - set(named)):
        raise ModelError(
            f"{what} names {unknown[0]!r}, and the model has no such module; model.named_modules() "
            "lists their names"
        )


def _check_axes(axes: Mapping[str, Axis]) -> None:
    for name, axis in axes.items():
        if axis != SHARED and (isinstance(axis, bool) or not isinstance(axis, int)):
            raise ModelError(
                f"axes of {name!r}: expected a whole number or {SHARED!r}, got {axis!r}"
            )


def _find_nearest(name: str, axes: Mapping[str, Axis]) -> Axis:
    """Return the axis of a module, or else of the nearest module around it that has one."""
    while name not in axes:
        if not name:
            return None
        name = name.rpartition(".")[0]
    return axes[name]


def _find_kept(named: Mapping[str, nn.Module], keep: Iterable[str]) -> set[str]:
    """Return the names of the modules to leave as they are, with all modules in them."""
    tops = (keep,) if isinstance(keep, str) else tuple(keep)
    _check_names("keep", tops, named)
    return {
        name
        for name in named
        for top in tops
        if not top or name == top or name.startswith(f"{top}.")
    }


def _find_transformer_axes(named: Mapping[str, nn.Module]) -> dict[str, int]:
    """Return the axis of the samples for the dropout layers of torch transformer layers."""
    found = {}
    for name, module in named.items():
        if isinstance(module, _TRANSFORMER_LAYERS):
            axis = 0 if module.self_attn.batch_first else 1
            for child, _ in module.named_children():
                found[f"{name}.{child}" if name else child] = axis
    return found


def _replace(model: nn.Module, module: nn.Module, named: Mapping[str, nn.Module]) -> Any:
    """Put the layer that draws by sample wherever the module is; return it."""
    layer = REPLACEMENTS[type(module)](module.p)
    layer.train(module.training)
    for parent in named.values():
        for child, held in list(parent._modules.items()):
            if held is module:
                parent._modules[child] = layer
    return layer


def _is_of_torch(module: nn.Module) -> bool:
    return type(module).__module__.startswith(("torch.nn.", "seedless.models.converted_layers"))


def _list_draws(
    named: Mapping[str, nn.Module], kept: set[str]
) -> tuple[tuple[ModuleDraw, ...], tuple[ModuleDraw, ...]]:
    """Return the draws that will be intercepted, and those that remain."""
    intercepted: list[ModuleDraw] = []
    remaining: list[ModuleDraw] = []
    for name, module in named.items():
        kind, found = type(module).__name__, _find_draws(module)
        draws = [ModuleDraw(name, kind, draw) for draw in found.intercepted]
        (remaining if name in kept else intercepted).extend(draws)
        remaining += [ModuleDraw(name, kind, draw) for draw in found.remaining]
    return tuple(intercepted), tuple(remaining)


def _find_draws(module: nn.Module) -> ModuleDraws:
    """Return what a module draws itself."""
    if not _is_of_torch(module):
        return scan_module(module)
    attention = isinstance(module, nn.MultiheadAttention) and module.dropout
    recurrent = isinstance(module, _RECURRENT) and module.dropout and module.num_layers > 1
    by_sample = attention or recurrent or type(module) in REPLACEMENTS
    inside = [DrawLine(type(module).__name__, "torch", 0)]
    return ModuleDraws(
        intercepted=inside if by_sample else [],
        remaining=inside if isinstance(module, _DRAWING_IN_TORCH) else [],
    )
