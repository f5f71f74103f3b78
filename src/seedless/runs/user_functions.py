"""The functions that a user gives to `fit`: which there are, and the settings they take over."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import nn

from seedless.core.config import Config, TrainConfig
from seedless.core.errors import ConfigError
from seedless.numerics.generator_guard import GeneratorGuard
from seedless.proof.callable_digest import describe_callables
from seedless.train.learning_rate import UserRates
from seedless.train.optimizer import make_optimizer
from seedless.train.streamed_evaluation import Metrics
from seedless.train.user_optimizer import USER_FUNCTION, make_user_optimizer, read_rates

# Settings that belong to the optimizers of the configuration, and to their learning rate.
_OPTIMIZER_SETTINGS = ("rate", "weight_decay", "momentum", "warmup_steps")
_SCHEDULER_SETTINGS = ("warmup_steps",)


@dataclass(frozen=True, eq=False)
class UserFunctions:
    """The functions of `fit`; None where the configuration decides.

    Attributes:
        loss: (outputs, targets) -> one loss, or one for each sample.
        optimizer: model -> torch.optim.Optimizer.
        scheduler: (epoch, step) -> a factor on the optimizer's learning rates.
        collate: list of samples -> (inputs, targets).
        key: index -> a name of a training sample.
        metrics: name -> (outputs, targets) -> a value for each sample, or one for the batch.
    """

    loss: Callable[[Any, Any], Any] | None = None
    optimizer: Callable[[nn.Module], torch.optim.Optimizer] | None = None
    scheduler: Callable[[int, int], float] | None = None
    collate: Callable[[list[Any]], Any] | None = None
    key: Callable[[int], Any] | None = None
    metrics: Metrics | None = None

    def __post_init__(self) -> None:
        _check(self)

    def describe(self) -> list[dict[str, str]]:
        """Return role, name and digest of each function, as a receipt states them."""
        return describe_callables({item.name: getattr(self, item.name) for item in fields(self)})


def take_over_settings(config: Config, functions: UserFunctions) -> Config:
    """Return the configuration with "given" in place of what the user's functions decide.

    A setting of the configuration that would have no effect is refused, and so is a run that was
    made with functions that are not given now.
    """
    train = config.train
    _check_given("loss.name", config.loss.name, functions.loss, "loss")
    _check_given("train.optimizer", train.optimizer, functions.optimizer, "optimizer")
    _check_given("train.decay", train.decay, functions.scheduler, "scheduler")
    changes: dict[str, dict[str, Any]] = {"train": {}}
    if functions.optimizer is not None:
        _refuse_settings(train, _OPTIMIZER_SETTINGS, "optimizer")
        changes["train"] = {"optimizer": USER_FUNCTION, "decay": "none"}
    if functions.scheduler is not None:
        _refuse_settings(train, _SCHEDULER_SETTINGS, "scheduler")
        changes["train"]["decay"] = USER_FUNCTION
    if functions.loss is not None:
        changes["loss"] = {"name": USER_FUNCTION}
    return config.change(**changes) if changes != {"train": {}} else config


def make_any_optimizer(
    config: TrainConfig, functions: UserFunctions, model: nn.Module, device: torch.device
) -> tuple[torch.optim.Optimizer, UserRates | None]:
    """Return the user's optimizer or that of the configuration, with the user's learning rates."""
    if functions.optimizer is not None:
        guard = GeneratorGuard()
        optimizer = make_user_optimizer(functions.optimizer, model)
        if config.guard == "refuse":
            guard.check("in optimizer(model)")
        return optimizer, UserRates(read_rates(optimizer), functions.scheduler)
    if functions.scheduler is None:
        return make_optimizer(config, model.parameters(), device), None
    plain = config.model_copy(update={"decay": "none"})
    optimizer = make_optimizer(plain, model.parameters(), device)
    return optimizer, UserRates((config.rate,), functions.scheduler)


def _check(functions: UserFunctions) -> None:
    for name in ("loss", "optimizer", "scheduler", "collate", "key"):
        value = getattr(functions, name)
        if value is not None and not callable(value):
            raise ConfigError(
                f"expected {name} as a function, got {type(value).__name__}"
                + _EXAMPLES.get(name, "")
            )
    metrics = functions.metrics
    if metrics is None:
        return
    if not isinstance(metrics, Mapping) or not all(
        isinstance(name, str) and callable(metric) for name, metric in metrics.items()
    ):
        raise ConfigError(
            "expected metrics as a dict of functions by name, such as {'dice': dice}, where "
            f"dice(outputs, targets) returns a value for each sample; got {type(metrics).__name__}"
        )
    if taken := {"n", "loss"} & {*metrics}:
        raise ConfigError(f"the metric {min(taken)!r} is there in every run; choose another name")
    if functions.loss is None:
        raise ConfigError(
            "metrics= goes with loss=, a function of outputs and targets; without one the run is "
            "scored by AUC and the other scores of classification"
        )


_EXAMPLES = {
    "optimizer": "; for example lambda model: torch.optim.AdamW(model.parameters(), lr=1e-3)",
    "scheduler": "; it returns a factor on the optimizer's learning rates, for example lambda "
    "epoch, step: 0.9**epoch",
}


def _check_given(setting: str, value: str | None, function: Any, name: str) -> None:
    if value == USER_FUNCTION and function is None:
        raise ConfigError(
            f"{setting} is {USER_FUNCTION!r}: this run has a function of its own there; pass it as "
            f"{name}=, as fit() had it"
        )


def _refuse_settings(train: TrainConfig, names: tuple[str, ...], function: str) -> None:
    for name in names:
        if getattr(train, name) != TrainConfig.model_fields[name].default:
            raise ConfigError(
                f"train.{name} has no effect with a function of your own as {function}=: leave it "
                "out, and set it there"
            )


NO_FUNCTIONS = UserFunctions()
