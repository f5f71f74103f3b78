"""Ways to train ResNet-18 in fp32 that may be faster than ours: layouts and matrix products.

Ours stores images with the channels last and calls cuDNN's deterministic convolutions, none of
which was made for float32 without TF32 in that layout. `ProductConv2d` is what the conformer does
with its convolutions: copy the windows, then one matrix product.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seedless.bench.comparison import make_config
from seedless.bench.rivals import Rival, list_rivals, make_our_runner
from seedless.numerics.determinism import make_deterministic
from seedless.numerics.sliding_windows import apply_function
from seedless.runs.prepare import prepare
from seedless.train.training_problem import TrainingProblem

WANTED = ("ours graph fp32", "ours compiled fp32", "plain compiled fp32")


def copy_windows(x: Tensor, kernel: int, stride: int, padding: int) -> Tensor:
    """Return every window of x (batch, height, width, channel) as one row, channels innermost."""
    padded = F.pad(x, (0, 0, padding, padding, padding, padding))
    windows = padded.unfold(1, kernel, stride).unfold(2, kernel, stride)
    return windows.permute(0, 1, 2, 4, 5, 3).reshape(-1, kernel * kernel * x.shape[3])


class ProductConvolution(torch.autograd.Function):
    """Windows times weight; gradients by two more products, without atomic additions."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
        """Return (batch, out, height, width), stored with the channels last."""
        outputs, inputs, kernel, _ = weight.shape
        rows = [(size + 2 * padding - kernel) // stride + 1 for size in x.shape[2:]]
        columns = copy_windows(x.permute(0, 2, 3, 1), kernel, stride, padding)
        ctx.save_for_backward(columns, weight)
        ctx.sizes = (*x.shape, stride, padding)
        matrix = weight.permute(2, 3, 1, 0).reshape(kernel * kernel * inputs, outputs)
        return (columns @ matrix).view(len(x), *rows, outputs).permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x and of the weight."""
        columns, weight = ctx.saved_tensors
        batch, inputs, height, width, stride, padding = ctx.sizes
        outputs, _, kernel, _ = weight.shape
        grad = grads[0].permute(0, 2, 3, 1)
        grad_x = None
        flat = grad.reshape(-1, outputs)
        grad_weight = (flat.t() @ columns).view(outputs, kernel, kernel, inputs)
        if ctx.needs_input_grad[0]:
            # The same convolution over the gradient, taps reversed; zeros between for a stride.
            if stride > 1:
                sizes = [size + 2 * padding - kernel + 1 for size in (height, width)]
                spread = grad.new_zeros(batch, *sizes, outputs)
                spread[:, ::stride, ::stride] = grad
                grad = spread
            columns = copy_windows(grad, kernel, 1, kernel - 1 - padding)
            matrix = weight.flip(2, 3).permute(2, 3, 0, 1).reshape(-1, inputs)
            grad_x = (columns @ matrix).view(batch, height, width, inputs).permute(0, 3, 1, 2)
        return grad_x, grad_weight.permute(0, 3, 1, 2), None, None


class ProductConv2d(nn.Conv2d):
    """A convolution of images as a matrix product over windows; square, without bias."""

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102  # as nn.Conv2d
        (stride, _), padding = self.stride, self.padding
        if isinstance(padding, str) or self.bias is not None or self.groups != 1:
            raise ValueError("expected a convolution with a padding in numbers, no bias, no groups")
        return apply_function(ProductConvolution, x, self.weight, stride, padding[0])


def use_products(model: nn.Module) -> nn.Module:
    """Return a copy of the model whose convolutions of images are matrix products."""
    model = copy.deepcopy(model)
    for module in model.modules():
        if type(module) is nn.Conv2d:
            module.__class__ = ProductConv2d
    return model


def store_channels_first(problem: TrainingProblem) -> TrainingProblem:
    """Return the problem with images and weights as torch lays them out by itself."""
    # torch's declaration allows memory_format beside a device or dtype only.
    model = copy.deepcopy(problem.model).to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    split = replace(problem.in_memory, samples=problem.in_memory.samples.contiguous())
    return replace(problem, model=model, train=split)


def prepare_images(device: str, batch: int, small: bool) -> TrainingProblem:
    """Return ResNet-18 on simulated images of 28 x 28 with one channel."""
    settings = ["data.size=28", "data.channels=1"]
    if small:
        settings += ["model.small=true", "execution.threads=1"]
    return prepare(make_config("resnet18", batch, device, settings)).problem


def list_image_rivals(problem: TrainingProblem) -> list[Rival]:
    """Return ours and the plain compiled step in fp32, then the candidates."""
    threads = problem.config.execution.threads or 1
    first = store_channels_first(problem)
    products = replace(problem, model=use_products(problem.model))
    on_gpu = problem.device.type == "cuda"
    modes = ("graph", "compiled") if on_gpu else ("eager",)
    rivals = [rival for rival in list_rivals(problem) if rival.name in WANTED and on_gpu]
    candidates: dict[str, TrainingProblem] = {
        "convolutions as products": products,
        "channels first": first,
    }
    for name, changed in candidates.items():
        for mode in modes:
            make: Callable[[], Any] = partial(make_our_runner, changed, mode, "fp32")
            flags = partial(make_deterministic, threads=threads)
            rivals.append(Rival(f"ours {mode} fp32, {name}", "ours", "fp32", flags, make))
    return rivals
