"""Layers, losses and ops of users' models: close to torch's own, gradients included."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import seedless
from seedless.core.errors import NumericsError
from seedless.data.augment import crop_and_flip
from seedless.portable.mode import portable
from seedless.portable.test_inputs import Input

CPU = torch.device("cpu")
SIGNAL = Input((4, 6, 20)).make("signal", CPU)
IMAGE = Input((3, 4, 9, 10)).make("image", CPU)
VOLUME = Input((2, 2, 5, 6, 4)).make("volume", CPU)
ROWS = Input((5, 7), 2.0).make("rows", CPU)
OTHER = Input((5, 7), 0.4, 0.5).make("other", CPU)
LABELS = torch.arange(5) * 3 % 7
BY_SHAPE = {1: SIGNAL, 2: IMAGE, 3: VOLUME}
LENGTHS = torch.tensor([6, 4, 4, 1])


def fill(module):
    """Counted weights instead of torch's random ones."""
    for name, parameter in module.named_parameters():
        values = Input(tuple(parameter.shape), 0.5, 0.1).make(name, CPU)
        parameter.data.copy_(values)
    return module


def run_packed(layer, x):
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True)
    out, last = layer(packed)
    last = last if isinstance(last, torch.Tensor) else torch.cat(last, -1)
    rows = pad_packed_sequence(out, batch_first=True)[0]
    return torch.cat([rows.flatten(), last.flatten()])


LAYERS = {
    **{
        f"Conv{n}d, {mode}": (
            getattr(nn, f"Conv{n}d")(x.shape[1], 4, 3, padding=2, padding_mode=mode),
            x,
        )
        for n, x in BY_SHAPE.items()
        for mode in ("zeros", "reflect", "replicate", "circular")
    },
    **{
        f"ConvTranspose{n}d": (getattr(nn, f"ConvTranspose{n}d")(x.shape[1], 4, 3, 2), x)
        for n, x in BY_SHAPE.items()
    },
    **{
        f"{kind}Pool{n}d, ceil": (getattr(nn, f"{kind}Pool{n}d")(3, 2, 1, ceil_mode=True), x)
        for n, x in BY_SHAPE.items()
        for kind in ("Max", "Avg")
    },
    **{
        f"Adaptive{kind}Pool{n}d": (getattr(nn, f"Adaptive{kind}Pool{n}d")(4), x)
        for n, x in BY_SHAPE.items()
        for kind in ("Max", "Avg")
    },
    **{
        f"BatchNorm{n}d": (getattr(nn, f"BatchNorm{n}d")(x.shape[1]), x)
        for n, x in BY_SHAPE.items()
    },
    "Conv1d, same": (nn.Conv1d(6, 4, 4, padding="same"), SIGNAL),
    "Unfold": (nn.Unfold(3, 1, 1, 2), IMAGE),
    "Fold": (nn.Fold((5, 6), 3, 1, 1, 2), Input((2, 18, 9)).make("fold", CPU)),
    "LayerNorm": (nn.LayerNorm(20), SIGNAL),
    "GroupNorm": (nn.GroupNorm(2, 6), SIGNAL),
    "InstanceNorm1d": (nn.InstanceNorm1d(6, affine=True, track_running_stats=True), SIGNAL),
    "RMSNorm": (nn.RMSNorm(20), SIGNAL),
    "weight_norm": (nn.utils.parametrizations.weight_norm(nn.Conv1d(6, 3, 3)), SIGNAL),
    "Transformer decoder": (
        nn.TransformerDecoderLayer(20, 4, 16, 0.0, batch_first=True),
        (SIGNAL, SIGNAL),
    ),
    "LSTMCell": (nn.LSTMCell(7, 5), ROWS),
    "GRUCell": (nn.GRUCell(7, 5), ROWS),
    "RNNCell": (nn.RNNCell(7, 5), ROWS),
    "LSTM, projected": (nn.LSTM(20, 5, 2, proj_size=3, bidirectional=True), SIGNAL),
    "PixelShuffle": (nn.PixelShuffle(2), IMAGE),
    "LocalResponseNorm": (nn.LocalResponseNorm(2), IMAGE),
    **{
        name: (getattr(nn, name)(), SIGNAL)
        for name in (
            *("ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "GLU"),
            *("Softplus", "Softsign", "Tanh", "Sigmoid", "LogSigmoid", "Hardtanh", "Hardswish"),
            *("Hardsigmoid", "Hardshrink", "Softshrink", "Tanhshrink", "PReLU"),
        )
    },
}
for kind in (nn.GRU, nn.LSTM, nn.RNN):
    layer = kind(20, 5, 2, batch_first=True, bidirectional=True)
    LAYERS[f"{kind.__name__}, packed"] = (layer, SIGNAL, run_packed)

SIZES = {"nearest": {}, "nearest-exact": {}, "bilinear": {}, "bicubic": {}, "area": {}}
CALLS = {
    **{f"interpolate {m}": lambda x, m=m: F.interpolate(x, size=(7, 13), mode=m) for m in SIZES},
    **{f"by factor {m}": lambda x, m=m: F.interpolate(x, scale_factor=2, mode=m) for m in SIZES},
    "aligned": lambda x: F.interpolate(x, (7, 13), mode="bilinear", align_corners=True),
    **{
        f"antialiased {mode} {size} {aligned}": lambda x, mode=mode, size=size, aligned=aligned: (
            F.interpolate(x, size, mode=mode, align_corners=aligned, antialias=True)
        )
        for mode in ("bilinear", "bicubic")
        for size in ((7, 13), (2, 3))
        for aligned in (False, True)
    },
    "antialiased by factor": lambda x: F.interpolate(
        x, scale_factor=0.4, mode="bicubic", antialias=True
    ),
    "max_unpool": lambda x: F.max_unpool2d(
        *F.max_pool2d(x, 3, 2, return_indices=True), 3, 2, output_size=x.shape
    ),
}
LOSSES = {
    "cross_entropy": lambda x: F.cross_entropy(
        x, LABELS, OTHER[0], ignore_index=3, label_smoothing=0.1
    ),
    "cross_entropy of shares": lambda x: F.cross_entropy(x, OTHER.softmax(1)),
    "nll": lambda x: F.nll_loss(x.log_softmax(1), LABELS, reduction="none"),
    "bce": lambda x: F.binary_cross_entropy(x.sigmoid(), OTHER, OTHER),
    "bce with logits": lambda x: F.binary_cross_entropy_with_logits(
        x, OTHER, OTHER, pos_weight=OTHER[0]
    ),
    "mse": lambda x: F.mse_loss(x, OTHER),
    "l1": lambda x: F.l1_loss(x, OTHER),
    "huber": lambda x: F.huber_loss(x, OTHER, delta=0.3),
    "smooth l1": lambda x: F.smooth_l1_loss(x, OTHER),
    "kl": lambda x: F.kl_div(x.log_softmax(1), OTHER.softmax(1), reduction="batchmean"),
    "cosine": lambda x: F.cosine_embedding_loss(x, OTHER, torch.ones(5)),
    "triplet": lambda x: F.triplet_margin_loss(x, OTHER, OTHER.flip(0)),
    "gaussian nll": lambda x: F.gaussian_nll_loss(x, OTHER, OTHER + 1),
    "topk": lambda x: x.topk(3)[0],
    "sort": lambda x: x.sort(descending=True)[0],
    "cumsum": lambda x: x.cumsum(1),
    "pow": lambda x: x.abs().pow(OTHER) + OTHER.pow(x),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, OTHER),
    "normalize": lambda x: F.normalize(x),
    "logsumexp": lambda x: x.logsumexp(1),
    "embedding": lambda x: F.embedding(LABELS % 5, x, padding_idx=2),
    "embedding bag": lambda x: F.embedding_bag(LABELS % 5, x, torch.tensor([0, 2]), mode="mean"),
    "mask": lambda x: x.masked_fill(OTHER > 0.5, -1e9).softmax(1),
    "one hot": lambda x: x * F.one_hot(LABELS, 7),
    "linspace": lambda x: x * torch.linspace(0, 1, 7),
    "quantile": lambda x: x.quantile(0.3, dim=1),
}


def compare(run, module, inputs):
    """Run plainly and portably; return whether results and all gradients are close."""
    plain = copy.deepcopy(module)
    pairs = []
    for net, context in ((plain, None), (module, portable())):
        given = [x.clone().requires_grad_() for x in inputs]

        def step(net=net, given=given):
            y = run(net, *given)
            torch.autograd.backward(y, Input(tuple(y.shape)).make("y", CPU))
            return y.detach()

        if context is None:
            y = step()
        else:
            with context:
                y = step()
        trained = list(net.parameters()) if isinstance(net, nn.Module) else []
        pairs.append([y, *(leaf.grad for leaf in (*given, *trained))])
    for plain, ours in zip(*pairs, strict=True):
        assert (plain is None) == (ours is None)
        if plain is not None:
            assert torch.allclose(plain, ours, atol=2e-5, rtol=2e-4)


@pytest.mark.filterwarnings(
    "ignore:Using padding='same'", "ignore:LSTM with projections"
)  # torch's
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_agrees_with_torch(name):
    layer, inputs, *rest = LAYERS[name]
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)

    def call(net, *given):
        out = net(*given)
        return out if isinstance(out, torch.Tensor) else out[0]

    compare(rest[0] if rest else call, fill(layer), inputs)


@pytest.mark.parametrize("name", CALLS)
def test_resizing_agrees_with_torch(name):
    compare(lambda _, x: CALLS[name](x), None, (IMAGE,))


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_or_op_agrees_with_torch(name):
    compare(lambda _, x: LOSSES[name](x), None, (ROWS,))


def test_what_is_stateless_is_the_same_inside_and_outside():
    """Dropout and augmentation draw from counters: integers, and products by a power of two."""
    keys = torch.arange(3) * 2**40 + 17
    dropout = seedless.Dropout(0.5, layer=1)
    with seedless.dropout_keys(samples=keys, epoch=3):
        plain = dropout(IMAGE), crop_and_flip(IMAGE, samples=keys, epoch=3, padding=2)
        with portable():
            ours = dropout(IMAGE), crop_and_flip(IMAGE, samples=keys, epoch=3, padding=2)
    assert all(torch.equal(a, b) for a, b in zip(plain, ours, strict=True))


def test_gradients_are_clipped_by_norm_and_value():
    for clip in (nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_):
        leaves = [SIGNAL.clone().requires_grad_(), ROWS.clone().requires_grad_()]
        theirs = copy.deepcopy(leaves)
        for parameter in (*leaves, *theirs):
            parameter.grad = parameter.detach() * 3
        clip(theirs, 0.7)
        with portable():
            clip(leaves, 0.7)
        for one, two in zip(leaves, theirs, strict=True):
            assert torch.allclose(one.grad, two.grad, rtol=1e-5)


def test_dropout_between_recurrent_layers_is_refused():
    layer = fill(nn.GRU(20, 5, 2, dropout=0.5))
    with portable(), pytest.raises(NumericsError, match="gru with dropout between its layers"):
        layer(SIGNAL)


EMPTY = {  # the shape of one sample, and a function of a batch of them
    "gelu": ((4,), F.gelu),
    "erf": ((4,), torch.erf),
    "group_norm": ((4, 5), lambda x: F.group_norm(x, 2)),
    "linear": ((4,), lambda x: F.linear(x, torch.ones(3, 4))),
    "layer_norm": ((4,), lambda x: F.layer_norm(x, (4,))),
    "conv1d": ((4, 5), lambda x: F.conv1d(x, torch.ones(2, 4, 3))),
    "conv2d": ((4, 5, 5), lambda x: F.conv2d(x, torch.ones(2, 2, 3, 3), groups=2)),
    "conv3d": ((4, 5, 5, 5), lambda x: F.conv3d(x, torch.ones(2, 4, 3, 3, 3))),
    "conv_transpose2d": ((4, 5, 5), lambda x: F.conv_transpose2d(x, torch.ones(4, 2, 3, 3))),
    "unfold": ((4, 5, 5), lambda x: F.unfold(x, 2)),
    "fold": ((8, 4), lambda x: F.fold(x, (3, 3), 2)),
    "max_pool1d": ((4, 6), lambda x: F.max_pool1d(x, 2)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_a_batch_of_no_samples_has_the_shapes_of_plain_torch(name):
    shape, run = EMPTY[name]
    x = torch.empty((0, *shape), requires_grad=True)
    expected = run(x).shape
    with portable():
        out = run(x)
        out.sum().backward()
    assert out.shape == expected
    assert x.grad.shape == x.shape


def test_the_weights_of_a_convolution_of_no_samples_have_a_gradient_of_zeros():
    weight, bias = (torch.ones(shape, requires_grad=True) for shape in ((2, 4, 3), (2,)))
    with portable():
        F.conv1d(torch.empty(0, 4, 5), weight, bias).sum().backward()
    assert torch.equal(weight.grad, torch.zeros(2, 4, 3))
    assert torch.equal(bias.grad, torch.zeros(2))
