"""A user's or a named model before training: its first weights, a first check, its device."""

from collections import Counter
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from seedless.core.config import Config
from seedless.core.digests import digest, name_tensors
from seedless.core.errors import ConfigError, SeedlessError
from seedless.init import initialize
from seedless.models.layers import set_weight_layout
from seedless.numerics.dropout import check_layers
from seedless.runs.initial_weights import begin_with_file
from seedless.train.arithmetic import compute_in
from seedless.train.training_problem import DataSplit, TrainingProblem

# Said where two classes meet a model of one output.
_ONE_LOGIT = "; for one logit a sample give labels of 0 and 1 with the shape (n, 1)"


def initialize_model(config: Config, model: nn.Module) -> dict[str, Any]:
    """Give a model its first weights; return "initialization" and "model" of the receipt.

    ``init.basis`` "given" keeps the weights that the model has; ``init.weights`` is a file to take
    them from.
    """
    lazy = [name for name, value in model.named_parameters() if is_lazy(value)]
    if lazy:
        raise ConfigError(
            f"the model has layers whose shapes are not known yet, such as {lazy[0]}: call it once "
            "on a batch before, model(batch), or use layers with shapes (Linear for LazyLinear)"
        )
    start = config.init
    check_layers(model)
    plan, source = None, {}
    if start.weights is not None:
        plan, file = begin_with_file(start, model)
        source = {"file": file}
    elif start.basis != "given":
        plan = initialize(model, **start.start())
    return {
        "initialization": {
            "basis": start.basis,
            "plan": None if plan is None else plan.digest,
            "weights": digest(model),
            **source,
        },
        "model": {
            "type": type(model).__name__,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
        },
    }


@torch.no_grad()
def check_model(problem: TrainingProblem, classes: int) -> None:
    """Refuse a model that rejects the samples, or does not return one logit for each class."""
    was_training = problem.model.training
    problem.model.eval()
    for name, split in (("train", problem.train), ("val", problem.val)):
        if split is None:
            continue
        assert isinstance(split, DataSplit)
        samples = split.as_input(split.samples[:2])
        try:
            with compute_in(problem.config.execution.arithmetic):
                logits = problem.model(samples)
        except (SeedlessError, torch.OutOfMemoryError, MemoryError):
            raise
        except Exception as error:  # the model is not ours: whatever it raises is the message
            if "allocate memory" in str(error):
                raise
            raise ConfigError(
                f"the model cannot process the {name} samples, {samples.dtype} of shape "
                f"{tuple(samples.shape)}: {type(error).__name__}: {error}" + _advise(samples)
            ) from error
        if not isinstance(logits, torch.Tensor):
            raise ConfigError(
                f"expected the model to return logits of shape {(len(samples), classes)}, got a "
                f"{type(logits).__name__}: for a model with several outputs give loss=, a function "
                "of the model's outputs and the labels, such as lambda outputs, labels: "
                "F.cross_entropy(outputs[0], labels)"
            )
        shape = tuple(logits.shape)
        if shape != (len(samples), classes):
            raise ConfigError(
                f"expected the model to give {classes} logits a sample, one for each class, so "
                f"shape {(len(samples), classes)}; got {shape}. Change its last layer, or name "
                "every class with `classes`"
                + (_ONE_LOGIT if classes == 2 and shape == (len(samples), 1) else "")
            )
    problem.model.train(was_training)


def _advise(samples: torch.Tensor) -> str:
    """Return what to do where a model rejects samples of whole numbers; "" for others."""
    if samples.is_floating_point():
        return ""
    return (
        ". Whole numbers stay whole numbers, as an embedding needs them: give other models "
        "X.astype('float32')"
    )


def move_model(model: nn.Module, device: torch.device, images: bool) -> None:
    """Move a model to the device, with its weights in the memory layout its operations read."""
    model.to(device)
    _make_strides_plain(model)
    set_weight_layout(model)
    if images and device.type == "cuda":
        # torch accepts memory_format alone; its type stubs do not say so.
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def _make_strides_plain(model: nn.Module) -> None:
    """Store the tensors of a model in C order: torch chooses kernels by strides.

    No digest has strides: two models with equal weights, one of them made with `channels_last`,
    would be trained to different bits. Tensors that are views of one memory stay views of it.
    """
    tensors = {id(tensor): tensor for tensor in name_tensors(model).values()}
    strided = [tensor for tensor in tensors.values() if tensor.layout == torch.strided]
    users = Counter(tensor.untyped_storage().data_ptr() for tensor in strided)
    for tensor in strided:
        data = tensor.data
        is_plain = data.stride() == torch.empty(data.shape, device="meta").stride()
        if not is_plain and users[data.untyped_storage().data_ptr()] == 1:
            tensor.data = data.contiguous().view(-1).view(data.shape)
