"""ECG paper: drawn to scale, and the same bytes every time."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from seedless.core.errors import DataError
from seedless.data.leads import SIX, TWELVE
from seedless.report.ecg_paper import draw_ecg
from seedless.report.record_picture import draw_image, draw_record, encode_png, save_png


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
    figure = draw_ecg(signal(2), ["I", "II"], 100, units=None)
    assert any("10 mm per unit, unit unknown" in text.get_text() for text in figure.axes[0].texts)
    tall = draw_ecg(40 * signal(2), ["I", "II"], 100, units=None).axes[0]
    assert any("0.2 mm per unit" in text.get_text() for text in tall.texts)
    lines = [line for line in tall.lines if len(line.get_xdata()) == 1000]
    assert all(np.ptp(line.get_ydata()) < 27 for line in lines)


def list_texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


@pytest.mark.parametrize("units", ["mV", "uV", None])
def test_only_a_record_in_millivolts_has_a_pulse_and_their_scale(units):
    figure = draw_record(signal(2), leads=["I", "II"], fs=100.0, units=units)
    pulses = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 6]
    assert len(pulses) == (2 if units == "mV" else 0)
    assert any("mm/mV" in text for text in list_texts(figure)) is (units == "mV")


def test_a_record_without_names_and_rate_is_a_signal_all_the_same():
    figure = draw_record(signal(3), leads=None, fs=None, units=None)
    traces = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1000]
    assert len(traces) == 3
    texts = list_texts(figure)
    assert {"lead 1", "lead 2", "lead 3"} <= set(texts)
    (note,) = [text for text in texts if "1,000 samples, rate unknown" in text]
    assert "Hz" not in note
    assert "mm/s" not in note
    # Negative control: with a rate the speed is printed.
    known = list_texts(draw_record(signal(3), leads=None, fs=100.0, units=None))
    assert any("25 mm/s" in text and "100 Hz" in text for text in known)


def test_a_long_record_and_one_of_many_leads_still_fit_on_the_paper():
    hour = np.zeros((1, 100 * 3600), dtype=np.float32)
    wide = draw_record(hour, leads=["II"], fs=100.0, units="mV")
    many = draw_record(np.zeros((1000, 12), np.float32), leads=None, fs=None, units=None)
    for figure in (wide, many):
        assert (figure.get_size_inches() * figure.dpi < 2**16).all()  # the most a PNG can have
    assert any("0.208 mm/s" in text for text in list_texts(wide))
    assert any("the first 24 of 1,000 leads" in text for text in list_texts(many))


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_an_image_of_any_number_type_is_drawn_from_black_to_white(channels):
    values = np.linspace(-0.5, 0.5, channels * 16, dtype=np.float32).reshape(channels, 4, 4)
    drawn = draw_image(values).axes[0].images[0].get_array()
    assert drawn.min() == 0
    assert drawn.max() == (123 if channels == 2 else 255)  # of two, the first is drawn
    bytes_ = np.full((channels, 4, 4), 7, np.uint8)
    assert (draw_image(bytes_).axes[0].images[0].get_array() == 7).all()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(DataError, match="cannot write"):
        save_png(draw_ecg(signal(1), ["I"], 100), tmp_path / "none" / "a.png")


def test_an_explained_image_stands_beside_itself_with_a_scale():
    image = np.zeros((3, 8, 8), dtype=np.uint8)
    heat = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    figure = draw_image(image, "one", heat)
    left, right, scale = figure.axes
    assert len(left.images) == 1  # the image as it is
    assert len(right.images) == 2  # in grey, with the map on it
    np.testing.assert_array_equal(right.images[1].get_array(), heat)
    assert "Grad-CAM" in scale.get_ylabel()
    assert figure.get_size_inches()[0] * figure.dpi > 1200  # pixels
    assert len(draw_image(image, "one").axes) == 1


def test_the_lines_of_the_grid_have_equal_distances_in_pixels():
    for narrow, step in ((False, 6), (True, 40)):  # lines of 1 mm, and of 5 mm on a phone
        figure = draw_ecg(signal(2) * 0, ["I", "II"], 100, narrow=narrow)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())[-3, :, :3].astype(int)  # below all traces
        darkness = 3 * 255 - pixels.sum(axis=1)
        lines = np.flatnonzero(darkness > darkness.min() + 10)
        starts = lines[np.diff(lines, prepend=-2) > 1]
        assert set(np.diff(starts).tolist()) == {step}


def test_a_narrow_figure_has_every_lead_in_full_below_the_others():
    figure = draw_ecg(signal(12), TWELVE, 100, narrow=True)
    axes = figure.axes[0]
    assert figure.get_size_inches()[0] * figure.dpi == pytest.approx(2 * 368)  # pixels
    traces = [line for line in axes.lines if len(line.get_xdata()) == 1000]
    assert len(traces) == 12
    texts = {text.get_text(): text for text in axes.texts}
    assert set(TWELVE) <= set(texts)
    # Letters of 10 pixels of the page or more, of which each is two of the picture's.
    assert all(texts[lead].get_fontsize() / 72 * figure.dpi / 2 >= 10 for lead in TWELVE)
    heights = [texts[lead].get_position()[1] for lead in TWELVE]
    assert heights == sorted(heights, reverse=True)
    assert any("7.5 mm/s" in text and "5 mm/mV" in text for text in texts)


@pytest.mark.parametrize("narrow", [False, True])
def test_a_tint_has_a_scale_in_the_colours_that_it_uses(narrow):
    heat = np.linspace(0, 1, 1000, dtype=np.float32)
    options = {"emphasis": heat, "meaning": "attention", "narrow": narrow}
    figure = draw_ecg(signal(2), ["I", "II"], 100, **options)
    tint, scale = figure.axes[0].images
    assert {*np.unique(tint.get_array()[..., 3])} == {*np.unique(scale.get_array()[..., 3])}
    assert any("attention" in text for text in list_texts(figure))
    plain = draw_ecg(signal(2), ["I", "II"], 100, narrow=narrow)
    assert not plain.axes[0].images
    assert not any("attention" in text for text in list_texts(plain))


def test_a_narrow_image_stands_above_its_map():
    image = np.zeros((1, 8, 8), dtype=np.uint8)
    heat = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    above, below, _ = draw_image(image, "", heat, narrow=True).axes
    assert above.get_position().y0 >= below.get_position().y1
    left, right, _ = draw_image(image, "", heat).axes
    assert left.get_position().x1 <= right.get_position().x0


def test_a_picture_for_a_page_repeats_and_is_shorter_with_few_colours():
    drawn = [encode_png(draw_ecg(signal(2), ["I", "II"], 100), few_colours=True) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) < len(encode_png(draw_ecg(signal(2), ["I", "II"], 100))) / 2


@pytest.mark.parametrize("narrow", [False, True])
def test_the_name_of_a_lead_hides_nothing_of_its_trace(narrow):
    axes = draw_ecg(signal(12), TWELVE, 100, narrow=narrow).axes[0]
    names = [text for text in axes.texts if text.get_text() in TWELVE]
    traces = [line for line in axes.lines if len(line.get_xdata()) >= 250]
    assert len(names) >= 12
    assert max(text.get_zorder() for text in names) < min(line.get_zorder() for line in traces)
