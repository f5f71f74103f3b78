"""ECG paper: drawn to scale, and the same bytes every time."""

import numpy as np
import pytest

from seedless.core.errors import DataError
from seedless.data.leads import SIX, TWELVE
from seedless.report.ecg_paper import draw_ecg, save_png


def signal(leads):
    return np.cos(np.arange(leads * 1000.0) / 9).reshape(leads, 1000).astype(np.float32)


def test_a_second_is_25_millimetres_and_a_millivolt_10():
    figure = draw_ecg(signal(1), ["II"], 100)
    axes = figure.axes[0]
    width, height = figure.get_size_inches() * 25.4
    assert axes.get_xlim() == (0, pytest.approx(width))
    assert axes.get_ylim() == (0, pytest.approx(height))
    trace = next(line for line in axes.lines if len(line.get_xdata()) == 1000)
    x, y = trace.get_data()
    assert x[100] - x[0] == pytest.approx(25)
    assert (y.max() - y.min()) / 10 == pytest.approx(2, abs=1e-3)


@pytest.mark.parametrize(("names", "traces"), [(TWELVE, 13), (SIX, 6), (("MLII", "V5"), 2)])
def test_every_lead_is_drawn_and_named(names, traces):
    figure = draw_ecg(signal(len(names)), names, 100, title="record 1")
    axes = figure.axes[0]
    drawn = [line for line in axes.lines if len(line.get_xdata()) >= 250]
    assert len(drawn) == traces
    texts = [text.get_text() for text in axes.texts]
    assert set(names) <= set(texts)
    assert "record 1" in texts


def test_the_bytes_repeat(tmp_path):
    files = [save_png(draw_ecg(signal(12), TWELVE, 100), tmp_path / f"{k}.png") for k in (1, 2)]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_units_that_are_not_millivolts_say_so():
    figure = draw_ecg(signal(2), ["I", "II"], 100, millivolts=False)
    assert any("10 mm/unit (not mV)" in text.get_text() for text in figure.axes[0].texts)
    tall = draw_ecg(40 * signal(2), ["I", "II"], 100, millivolts=False).axes[0]
    assert any("0.2 mm/unit" in text.get_text() for text in tall.texts)
    lines = [line for line in tall.lines if len(line.get_xdata()) == 1000]
    assert all(np.ptp(line.get_ydata()) < 27 for line in lines)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(DataError, match="cannot write"):
        save_png(draw_ecg(signal(1), ["I"], 100), tmp_path / "none" / "a.png")
