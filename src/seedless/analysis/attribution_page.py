"""The page of a run's attribution maps."""

from seedless.analysis.attribute import Explained
from seedless.analysis.examples import draw_example
from seedless.evaluate.attribution import Attribution
from seedless.report.attribution_page import MapsView, render_maps
from seedless.report.ecg_paper import EVIDENCE
from seedless.report.example_pictures import Example


def render_explained(explained: Explained, label: str) -> str:
    """Return the page of maps as text; ``label`` is the name that the run has on it."""
    layers = [
        MapsView(one.layer, one.digest, _draw_layer(explained, one))
        for one in explained.attributions
    ]
    weights = explained.opened.run.digest
    return render_maps(label, explained.attributions[0].method, weights, layers)


def _draw_layer(explained: Explained, maps: Attribution) -> list[Example]:
    opened = explained.opened
    places = {str(name): place for place, name in enumerate(opened.ids.tolist())}
    examples = []
    for row, name in enumerate(maps.ids):
        is_gradcam, is_mapped = maps.method == "gradcam", bool(maps.maps[row].any())
        what = f"the evidence for {explained.classes[row]}" if is_gradcam else "the attention"
        caption = _write_caption(explained, row, name)
        if not is_mapped:
            caption += f". Nothing is coloured: nothing in the layer shows {what}"
        examples.append(
            draw_example(
                opened,
                places[name],
                caption,
                maps.maps[row] if is_mapped else None,
                what,
                EVIDENCE if is_gradcam else "attention",
            )
        )
    return examples


def _write_caption(explained: Explained, row: int, name: str) -> str:
    opened, label = explained.opened, explained.classes[row]
    place = int((opened.ids == name).argmax())
    hot = zip(opened.classes, opened.labels[place], strict=True)
    truth = ", ".join(one for one, is_hot in hot if is_hot) or "nothing"
    answer = f"the model gives {label} a probability of {explained.probabilities[row]:.2f}"
    return f"{name}: labelled {truth}; {answer}"
