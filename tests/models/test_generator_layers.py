"""Layers that would draw from torch's generator are found before a model trains."""

import pytest
from torch import nn

import seedless
from seedless.core.errors import NumericsError
from seedless.models.generator_layers import list_generator_layers, refuse_generator_layers


class Frozen(nn.Module):
    """A model that keeps its backbone in evaluation mode."""

    def __init__(self):
        super().__init__()
        self.backbone, self.head = nn.Sequential(nn.Dropout(0.5)), nn.Dropout(0.1)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self


@pytest.mark.parametrize(
    ("layer", "found"),
    [
        (nn.Dropout(0.5), ["0: Dropout(p=0.5)"]),
        (nn.Dropout2d(0.1), ["0: Dropout2d(p=0.1)"]),
        (nn.LSTM(2, 2, num_layers=2, dropout=0.3), ["0: LSTM(p=0.3)"]),
        (nn.MultiheadAttention(4, 2, dropout=0.2), ["0: MultiheadAttention(p=0.2)"]),
        (nn.Dropout(0.0), []),
        (nn.MultiheadAttention(4, 2), []),
        (seedless.Dropout(0.5, layer=0), []),
        (Frozen(), ["0.head: Dropout(p=0.1)"]),
    ],
)
def test_what_would_draw_is_listed(layer, found):
    model = nn.Sequential(layer).eval()
    assert list_generator_layers(model) == found
    assert not any(module.training for module in model.modules())  # as it was


def test_a_converted_model_or_part_draws_nothing():
    layers = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.1)
    assert len(list_generator_layers(nn.Sequential(layers))) == 4
    part = seedless.convert(layers)
    assert list_generator_layers(part) == []
    assert list_generator_layers(nn.Sequential(part, nn.Dropout(0.5))) == ["1: Dropout(p=0.5)"]


def test_the_message_says_what_to_do():
    with pytest.raises(NumericsError, match=r"0: Dropout\(p=0.5\).* and 2 more .*convert\(model\)"):
        refuse_generator_layers(nn.Sequential(*(nn.Dropout(0.5) for _ in range(5))))
