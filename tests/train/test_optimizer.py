"""Optimizers against torch's plain ones, and steps against each other."""

import sys
from dataclasses import replace

import pytest
import torch
from torch import nn

from seedless.core.config import TrainConfig
from seedless.core.digests import digest
from seedless.core.errors import ConfigError, UnknownNameError
from seedless.init import initialize
from seedless.models.conversion import convert
from seedless.numerics.dropout import Dropout
from seedless.runs.prepare import prepare
from seedless.train.learning_rate import learning_rate_at, set_learning_rate
from seedless.train.optimizer import OPTIMIZERS, apply_step, make_optimizer
from seedless.train.step import Step
from tests.train.problems import flat, images, linear, make_problem, small_conformer

CPU = torch.device("cpu")


REFERENCES = {
    "adam": (torch.optim.Adam, {}),
    "adamw": (torch.optim.AdamW, {}),
    "sgd": (torch.optim.SGD, {}),
    "sgd with momentum": (torch.optim.SGD, {"momentum": 0.9}),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_a_step_has_the_bits_of_torchs_own_and_calls_its_hooks(name):
    reference, options = REFERENCES[name]
    config = TrainConfig(optimizer=name.split()[0], rate=0.01, weight_decay=0.1, **options)
    ours, theirs = linear(), linear()
    for model in (ours, theirs):
        initialize(model, "dct")
    mine = make_optimizer(config, ours.parameters(), CPU)
    rate = torch.tensor(0.01)
    plain = reference(theirs.parameters(), lr=rate, weight_decay=0.1, fused=True, **options)
    called = []
    mine.register_step_post_hook(lambda *_: called.append(torch.is_grad_enabled()))
    draws = torch.Generator().manual_seed(3)
    for _ in range(3):
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            one.grad = torch.randn(one.shape, generator=draws)
            other.grad = one.grad.clone()
        apply_step(mine)
        plain.step()
    assert digest(ours) == digest(theirs)
    assert called == [True] * 3
    assert not hasattr(torch.optim.Optimizer.add_param_group.__wrapped__, "__dynamo_disable") or (
        "torch._dynamo" in sys.modules  # the reference asked for it
    )


def test_training_does_not_load_the_compiler(run_python):
    """It is 2 s of every start, and neither building nor an eager step has a use for it."""
    script = (
        "import sys, tempfile\n"
        "from tests.tiny import fit_run, give\n"
        "import seedless\n"
        "for name in ('conformer', 'baseline', 'xresnet1d101', 'resnet18'):\n"
        "    seedless.build(name, small=True)\n"
        "run = fit_run(tempfile.mkdtemp() + '/run', train={'clip_norm': 1.0})\n"
        "assert seedless.verify(run, **give()).outcome == 'identical'\n"
        "print(sorted({'torch._dynamo', 'torch._inductor', 'sympy'} & set(sys.modules)))\n"
    )
    assert run_python("-c", script).stdout == "[]\n"


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_the_fused_optimizers_agree_with_torchs_plain_ones(name, weight_decay):
    reference, options = REFERENCES[name]
    config = TrainConfig(optimizer=name.split()[0], rate=0.01, weight_decay=weight_decay, **options)
    ours, theirs = linear(), linear()
    theirs.load_state_dict(ours.state_dict())
    start = flat(ours.parameters()).clone()
    fused = make_optimizer(config, ours.parameters(), CPU)
    plain = reference(
        theirs.parameters(),
        lr=0.01,
        weight_decay=weight_decay,
        foreach=False,
        fused=False,
        **options,
    )
    samples = torch.sin(torch.arange(6 * 24.0)).view(6, 24)
    for step in range(20):
        rate = learning_rate_at(TrainConfig(epochs=20, rate=0.01, warmup_steps=3), step, step)
        set_learning_rate(fused, rate)
        plain.param_groups[0]["lr"] = rate
        for model, optimizer in ((ours, fused), (theirs, plain)):
            optimizer.zero_grad()
            model(samples).square().mean().backward()
            optimizer.step()
    assert (flat(ours.parameters()) - start).abs().max() > 1e-3
    torch.testing.assert_close(
        flat(ours.parameters()), flat(theirs.parameters()), rtol=1e-5, atol=1e-6
    )


def test_weight_decay_and_momentum_reach_the_optimizer():
    options = {"optimizer": "sgd", "rate": 0.5, "weight_decay": 0.2, "momentum": 0.9}
    parameter = nn.Parameter(torch.tensor([1.0]))
    optimizer = make_optimizer(TrainConfig(**options), [parameter], CPU)
    parameter.grad = torch.tensor([0.0])
    optimizer.step()
    assert parameter.item() == pytest.approx(0.9)  # 1 - 0.5 x 0.2
    optimizer.step()
    assert parameter.item() == pytest.approx(0.9 - 0.5 * (0.9 * 0.2 + 0.2 * 0.9))


def test_frozen_parameters_are_left_alone():
    model = linear()
    model[1].bias.requires_grad_(False)
    optimizer = make_optimizer(TrainConfig(), model.parameters(), CPU)
    assert [p.shape for p in optimizer.param_groups[0]["params"]] == [model[1].weight.shape]
    model.requires_grad_(False)
    with pytest.raises(ConfigError, match="no parameter to train"):
        make_optimizer(TrainConfig(), model.parameters(), CPU)


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name != "sgd"])
def test_momentum_belongs_to_sgd(name):
    with pytest.raises(ConfigError, match=f"momentum belongs to sgd; leave it out of {name}"):
        make_optimizer(TrainConfig(optimizer=name, momentum=0.9), linear().parameters(), CPU)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer": "adm"}, r"unknown optimizer 'adm' \(did you mean 'adam'\?\)"),
        ({"decay": "linear"}, "unknown decay 'linear'.*; known: cosine, none"),
    ],
)
def test_unknown_names_list_the_known_ones(settings, message):
    with pytest.raises(UnknownNameError, match=message):
        make_optimizer(TrainConfig(**settings), linear().parameters(), CPU)


def gradients(problem):
    """Make one step over all training samples; return every gradient and the sample losses."""
    losses = Step(problem)(torch.arange(len(problem.train)), epoch=0)
    return flat(p.grad for p in problem.model.parameters()), losses


def test_microbatches_give_the_gradient_of_the_whole_batch():
    whole, losses = gradients(make_problem(small_conformer, count=13))
    for size in (1, 4, 13, 50):
        problem = make_problem(small_conformer, count=13, train={"microbatch": size})
        parts, seen = gradients(problem)
        torch.testing.assert_close(parts, whole, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(seen, losses, rtol=1e-5, atol=1e-6)


def test_negative_control_a_part_of_the_batch_has_another_gradient():
    whole, _ = gradients(make_problem(small_conformer, count=13))
    problem = make_problem(small_conformer, count=13)
    Step(problem)(torch.arange(12), epoch=0)
    part = flat(p.grad for p in problem.model.parameters())
    assert (part - whole).abs().max() > 1e-3 * whole.abs().max()


def test_microbatches_draw_the_same_dropout_masks():
    """A sample has its mask however the batch is split; only BatchNorm would change the result."""

    def model():
        return nn.Sequential(nn.Flatten(), Dropout(0.5, layer=0), nn.Linear(24, 3))

    whole, _ = gradients(make_problem(model, count=13))
    parts, _ = gradients(make_problem(model, count=13, train={"microbatch": 3}))
    torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-7)


class SkipsLayers(nn.Module):
    """LayerDrop: one draw decides for all samples of a batch."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(24, 24) for _ in range(8))
        self.last = nn.Linear(24, 3)

    def forward(self, x):
        x = x.flatten(1)
        for layer in self.layers:
            if not self.training or torch.rand([]) >= 0.5:
                x = layer(x)
        return self.last(x)


def test_microbatches_skip_the_same_layers():
    def model():
        torch.manual_seed(0)
        return convert(SkipsLayers())

    problems = [make_problem(model, count=13, train={"microbatch": size}) for size in (13, 3)]
    whole, parts = (Step(problem)(torch.arange(13), epoch=0) for problem in problems)
    torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-6)


def test_clip_norm_limits_the_gradient_and_keeps_its_direction():
    free, _ = gradients(make_problem(count=13))
    assert free.norm() > 0.02
    limited, _ = gradients(make_problem(count=13, train={"clip_norm": 0.01}))
    assert limited.norm() == pytest.approx(0.01, rel=1e-3)
    torch.testing.assert_close(limited / limited.norm(), free / free.norm(), rtol=1e-4, atol=1e-6)
    loose, _ = gradients(make_problem(count=13, train={"clip_norm": 1e6}))
    torch.testing.assert_close(loose, free, rtol=0, atol=0)


def test_clipping_sees_the_whole_batch_not_its_parts():
    """Clipped part by part, the accumulated gradient would have another direction."""
    free, _ = gradients(make_problem(count=13))
    options = {"clip_norm": 0.01, "microbatch": 2}
    limited, _ = gradients(make_problem(count=13, train=options))
    torch.testing.assert_close(limited / limited.norm(), free / free.norm(), rtol=1e-4, atol=1e-5)


def test_augmentation_follows_the_sample_and_the_epoch():
    """The step moves images by key and epoch: not by their place in the batch."""
    problem = prepare(images(augment={"padding": 2, "flip": True})).problem
    rows = torch.arange(8)
    problem.model.eval()  # BatchNorm would mix the samples of a batch
    set_learning_rate(problem.optimizer, 0.0)
    step = Step(problem)
    first = step(rows, epoch=0)
    torch.testing.assert_close(step(rows.flip(0), epoch=0), first.flip(0))
    assert not torch.allclose(step(rows, epoch=1), first)
    assert not torch.allclose(Step(replace(problem, config=images()))(rows, epoch=0), first)
